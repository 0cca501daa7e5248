//! The `locate` suite: finds the files that a task concerns by its text, in the tree before the change.

mod by_function;
mod functions;
mod tasks;
mod tree;

pub use by_function::run as run_by_function;

use crate::retrieval::answer_file::AnswerFile;
use crate::retrieval::plain_bm25::PlainBm25;
use crate::retrieval::score::{Pool, all_within, ndcg, percent, recall, reciprocal};
use crate::retrieval::{Project, Times};
use crate::{Fault, print};
use lukasa_engine::features::search::{Recipe, find};
use lukasa_search::count::count;
use lukasa_search::pipeline::seeds::NearestNodes;
use lukasa_search::text::Doc;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use tasks::Task;
use tree::{BlobIds, Tree};

/// The recipe, plain BM25, then each channel of the recipe alone.
const METHODS: [&str; 6] = ["ours", "bm25", "body", "path", "symbols", "defined"];
const CHANNELS: usize = 2;
/// Files that a reader opens at most to find a gold file.
const READ: usize = 20;
/// Tasks between two lines of progress.
const PROGRESS: usize = 10;

pub fn run(
    data: &Path,
    repos: &Path,
    limit: Option<usize>,
    mut out: Option<AnswerFile>,
    as_json: bool,
) -> Result<(), Fault> {
    let tasks = tasks::read(data, limit)?;
    let mut all = METHODS.map(|_| LocateScores::default());
    for (name, tasks) in tasks {
        let figures = repository(repos, &name, tasks, out.as_mut())?;
        for ((method, figures), all) in METHODS.iter().zip(&figures).zip(&mut all) {
            print(&figures.line(&name, method), as_json);
            all.join(figures);
        }
    }
    for (method, all) in METHODS.iter().zip(&all) {
        print(&all.line("all", method), as_json);
    }
    out.map_or(Ok(()), AnswerFile::finish)
}

/// All tasks of one repository, in the order of their commits, so that little changes from one to the next.
fn repository(
    repos: &Path,
    name: &str,
    mut tasks: Vec<Task>,
    mut out: Option<&mut AnswerFile>,
) -> Result<[LocateScores; METHODS.len()], Fault> {
    let project = Project::new()?;
    let mut tree = Tree::new(repos, name, project.folder())?;
    let commits: Vec<&str> = tasks.iter().map(|task| task.commit.as_str()).collect();
    let times = tree.times(&commits);
    tasks.sort_by(|a, b| (times.get(&a.commit), &a.id).cmp(&(times.get(&b.commit), &b.id)));
    let mut files = Files::default();
    let mut figures = METHODS.map(|_| LocateScores::default());
    project.engine.sources().add(project.scope(), &tree.work)?;
    let began = Instant::now();
    for (at, task) in tasks.iter().enumerate() {
        if !times.contains_key(&task.commit) {
            eprintln!("{name}: no commit {}; {} counts as not found", task.commit, task.id);
            figures.iter_mut().for_each(|figures| figures.add::<&str>(task, &[]));
            continue;
        }
        let listed = tree.check_out(&task.commit)?.clone();
        project.call("index_directory", json!({"path": tree.work, "branch": "main"}))?;
        files.move_to(&tree, listed, task);
        for (method, figures) in METHODS.iter().zip(&mut figures).skip(CHANNELS) {
            let ranked = alone(&project, &task.text, method)?;
            let in_pool: Vec<&String> = ranked.iter().filter(|path| task.pool.has(path)).collect();
            figures.add(task, &in_pool);
        }
        for (method, figures) in METHODS.iter().zip(&mut figures).take(CHANNELS) {
            let mut took = Times::default();
            let ranked = took.take(tasks.len(), || match *method {
                "bm25" => Ok(files.rank(&task.text)),
                _ => ours(&project, &task.text),
            })?;
            figures.times.join(&took);
            if let Some(out) = &mut out {
                out.write(method, &task.id, &ranked)?;
            }
            let in_pool: Vec<String> = ranked.into_iter().filter(|path| task.pool.has(path)).collect();
            figures.add(task, &in_pool);
            let tokens = match *method {
                "bm25" => files.read_until(&tree, task, &in_pool),
                _ => packed(&project, &mut files, &tree, task, &in_pool)?,
            };
            figures.tokens.push(tokens);
        }
        if (at + 1) % PROGRESS == 0 || at + 1 == tasks.len() {
            let [ours, bm25, ..] = figures.each_ref().map(|figures| percent(&figures.column(|shares| shares.r[1])));
            let seconds = began.elapsed().as_secs_f64();
            eprintln!("{name}: {} of {}, r5 {ours} bm25 {bm25}, {seconds:.0} s", at + 1, tasks.len());
        }
    }
    let reference = figures[1].tokens.clone();
    figures.iter_mut().for_each(|figures| figures.reference = reference.clone());
    Ok(figures)
}

/// Files as Lukasa ranks them.
fn ours(project: &Project, task: &str) -> Result<Vec<String>, Fault> {
    let seen = project.see()?;
    let answered = find(&seen.look, &seen.texts, &seen.ask(task, Recipe::Code, NearestNodes::default()));
    let key = |node| seen.look.snapshot.key(node).map(str::to_owned);
    Ok(answered.files.iter().filter_map(|file| key(file.node)).collect())
}

/// Files as one channel of the recipe ranks them.
fn alone(project: &Project, task: &str, channel: &str) -> Result<Vec<String>, Fault> {
    let seen = project.see()?;
    let answered = find(&seen.look, &seen.texts, &seen.ask(task, Recipe::Code, NearestNodes::default()));
    let found = answered.channels.iter().filter(|own| own.name == channel).flat_map(|own| &own.found);
    Ok(found.filter_map(|(node, _)| seen.look.snapshot.key(*node).map(str::to_owned)).collect())
}

/// Tokens until a gold file is named: of a compact context pack; if that does not name one, also of a balanced pack; if
/// that does not either, also of the first files.
fn packed(project: &Project, files: &mut Files, tree: &Tree, task: &Task, ranked: &[String]) -> Result<usize, Fault> {
    let mut tokens = 0;
    for profile in ["compact", "balanced"] {
        let pack = project.call("context_pack", json!({"task": task.text, "profile": profile}))?.to_string();
        tokens += count(&pack);
        if task.gold.iter().any(|path| pack.contains(path.as_str())) {
            return Ok(tokens);
        }
    }
    Ok(tokens + files.tokens_of(tree, &ranked[..ranked.len().min(READ)]))
}

/// Files of the pool at the present commit, for plain BM25, with the tokens of reading them.
#[derive(Default)]
struct Files {
    plain: PlainBm25,
    pool: Option<Pool>,
    /// By path, the id of its content and its number.
    there: FxHashMap<String, (String, Doc)>,
    paths: Vec<String>,
    /// By the id of a content.
    tokens: FxHashMap<String, usize>,
}

impl Files {
    fn move_to(&mut self, tree: &Tree, mut now: BlobIds, task: &Task) {
        if self.pool.as_ref() != Some(&task.pool) {
            let tokens = std::mem::take(&mut self.tokens);
            *self = Files { pool: Some(task.pool.clone()), tokens, ..Files::default() };
        }
        now.retain(|path, _| task.pool.has(path));
        let gone: Vec<String> = self.there.keys().filter(|path| !now.contains_key(*path)).cloned().collect();
        let gone: Vec<Doc> = gone.iter().filter_map(|path| self.there.remove(path)).map(|(_, doc)| doc).collect();
        let mut changed: Vec<(Doc, String)> = Vec::new();
        let mut now: Vec<(String, String)> = now.into_iter().collect();
        now.sort();
        for (path, id) in now {
            if self.there.get(&path).is_some_and(|(old, _)| *old == id) {
                continue;
            }
            let doc = self.there.get(&path).map_or(Doc::at(self.paths.len()), |(_, doc)| *doc);
            if doc.index() == self.paths.len() {
                self.paths.push(path.clone());
            }
            changed.push((doc, text(tree, &path)));
            self.there.insert(path, (id, doc));
        }
        self.plain = self.plain.with(&gone, changed.iter().map(|(doc, text)| (*doc, text.as_str())));
    }

    fn rank(&self, task: &str) -> Vec<String> {
        self.plain.rank(task).into_iter().map(|(doc, _)| self.paths[doc.index()].clone()).collect()
    }

    /// Tokens of the files, read whole one after the other up to the first gold file, at most `READ` files.
    fn read_until(&mut self, tree: &Tree, task: &Task, ranked: &[String]) -> usize {
        let first = &ranked[..ranked.len().min(READ)];
        let met = first.iter().position(|path| task.gold.contains(path)).map_or(first.len(), |at| at + 1);
        self.tokens_of(tree, &first[..met])
    }

    fn tokens_of(&mut self, tree: &Tree, paths: &[String]) -> usize {
        let mut sum = 0;
        for path in paths {
            let Some((id, _)) = self.there.get(path) else { continue };
            sum += *self.tokens.entry(id.clone()).or_insert_with(|| count(&text(tree, path)));
        }
        sum
    }
}

/// The text of a file; `None` if it cannot be read, such as a dangling link.
fn text(tree: &Tree, path: &str) -> String {
    std::fs::read(tree.work.join(path)).map_or_else(|_| String::new(), |b| String::from_utf8_lossy(&b).into_owned())
}

/// Scores of one method, by task.
#[derive(Default)]
struct LocateScores {
    shares: Vec<TaskScores>,
    times: Times,
    tokens: Vec<usize>,
    reference: Vec<usize>,
}

#[derive(Clone, Copy)]
struct TaskScores {
    /// Recall in the first 1, 5 and 10.
    r: [f64; 3],
    /// Whether all is in the first 1, 3, 5 and 10.
    acc: [f64; 4],
    /// The reciprocal rank of the first, and NDCG of the first 10.
    places: [f64; 2],
    is_given_away: Option<bool>,
}

impl LocateScores {
    fn add<S: AsRef<str>>(&mut self, task: &Task, ranked: &[S]) {
        self.shares.push(TaskScores {
            r: [1, 5, 10].map(|k| recall(&task.gold, ranked, k)),
            acc: [1, 3, 5, 10].map(|k| all_within(&task.gold, ranked, k)),
            places: [reciprocal(&task.gold, ranked), ndcg(&task.gold, ranked, 10)],
            is_given_away: task.is_given_away,
        });
    }

    fn column(&self, of: impl Fn(&TaskScores) -> f64) -> Vec<f64> {
        self.shares.iter().map(of).collect()
    }

    fn join(&mut self, other: &LocateScores) {
        self.shares.extend(&other.shares);
        self.times.join(&other.times);
        self.tokens.extend(&other.tokens);
        self.reference.extend(&other.reference);
    }

    fn line(&self, repo: &str, method: &str) -> Value {
        let r = |at: usize| percent(&self.column(|shares| shares.r[at]));
        let acc = |at: usize| percent(&self.column(|shares| shares.acc[at]));
        let place = |at: usize| percent(&self.column(|shares| shares.places[at]));
        let hidden = self.shares.iter().filter(|shares| shares.is_given_away == Some(false));
        let hidden: Vec<f64> = hidden.map(|shares| shares.r[1]).collect();
        let noleak = if hidden.is_empty() { None } else { Some(percent(&hidden)) };
        json!({"suite": "locate", "repo": repo, "method": method, "tasks": self.shares.len(), "r1": r(0), "r5": r(1),
            "r10": r(2), "acc1": acc(0), "acc3": acc(1), "acc5": acc(2), "acc10": acc(3), "mrr": place(0), "ndcg10": place(1), "noleak_r5": noleak,
            "noleak_tasks": hidden.len(), "tokens_to_gold_median": median(&self.tokens),
            "ref_tokens_to_gold_median": median(&self.reference), "p95_ms": self.times.percentile(95)})
    }
}

fn median(values: &[usize]) -> Option<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}
