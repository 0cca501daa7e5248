//! `locate --level function`: the functions that a task concerns, and whether a pack shows them.

use super::functions::{self, Functions, GoldInPack, Spans};
use super::tasks::{self, Task};
use super::tree::Tree;
use super::{Files, PROGRESS};
use crate::retrieval::answer_file::AnswerFile;
use crate::retrieval::score::{Gold, all_within, percent};
use crate::retrieval::{Project, Times, ViewWithIndexes};
use crate::{Fault, print};
use lukasa_engine::features::search::{Recipe, find};
use lukasa_search::pipeline::seeds::NearestNodes;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Instant;

const OURS: &str = "ours";
const BM25: &str = "bm25_functions";
const BY_FILES: &str = "bm25_files_then_functions";
const PLACES: [usize; 4] = [1, 3, 5, 10];
/// Profiles of packs, with their tokens.
const PROFILES: [(&str, usize); 2] = [("compact", 300), ("balanced", 1_200)];

pub fn run(
    data: &Path,
    repos: &Path,
    limit: Option<usize>,
    mut out: Option<AnswerFile>,
    as_json: bool,
) -> Result<(), Fault> {
    let mut all = Methods::default();
    for (name, tasks) in tasks::read(data, limit)? {
        let own = repository(repos, &name, tasks, out.as_mut())?;
        own.print(&name, as_json);
        all.join(own);
    }
    all.print("all", as_json);
    out.map_or(Ok(()), AnswerFile::finish)
}

/// All tasks of one repository, in the order of their commits, so that little changes from one to the next.
fn repository(
    repos: &Path,
    name: &str,
    mut tasks: Vec<Task>,
    mut out: Option<&mut AnswerFile>,
) -> Result<Methods, Fault> {
    let project = Project::new()?;
    let mut tree = Tree::new(repos, name, project.folder())?;
    let commits: Vec<&str> = tasks.iter().map(|task| task.commit.as_str()).collect();
    let times = tree.times(&commits);
    tasks.sort_by(|a, b| (times.get(&a.commit), &a.id).cmp(&(times.get(&b.commit), &b.id)));
    project.engine.sources().add(project.scope(), &tree.work)?;
    let (mut files, mut functions) = (Files::default(), Functions::default());
    let mut methods = Methods::default();
    let began = Instant::now();
    for (at, task) in tasks.iter().enumerate() {
        if !times.contains_key(&task.commit) {
            eprintln!("{name}: no commit {}; {} is left out", task.commit, task.id);
            methods.left_out += 1;
            continue;
        }
        let listed = tree.check_out(&task.commit)?.clone();
        project.call("index_directory", json!({"path": tree.work, "branch": "main"}))?;
        let seen = project.see()?;
        let (gold, spans) = gold(&seen, &tree, task)?;
        if gold.is_empty() {
            methods.left_out += 1;
            continue;
        }
        functions.move_to(&seen, &tree, &listed, &task.pool)?;
        files.move_to(&tree, listed, task);

        let mut took = Times::default();
        let nodes = took.take(tasks.len(), || Ok(ours(&seen, &task.text)))?;
        let ranked = functions::ranked(&seen, nodes.symbols.into_iter());
        if let Some(out) = &mut out {
            out.write(OURS, &task.id, &ranked)?;
        }
        let packs = PROFILES.map(|(profile, _)| -> Result<GoldInPack, Fault> {
            let request = json!({"task": task.text, "profile": profile, "branch": "main"});
            Ok(functions::pack(&project.call("context_pack", request)?, &gold, &spans))
        });
        let [compact, balanced] = packs;
        methods.add(OURS, &gold, &ranked, Some([compact?, balanced?]));
        methods.times.join(&took);
        for (channel, found) in nodes.channels {
            methods.add(&format!("channel_{channel}"), &gold, &functions::ranked(&seen, found.into_iter()), None);
        }
        let plain = functions.rank(&task.text);
        let within = functions.rank_within(&plain, &files.rank(&task.text));
        for (method, ranked) in [(BM25, plain), (BY_FILES, within)] {
            let packs = PROFILES.map(|(_, budget)| functions.packed(&ranked, budget));
            methods.add(method, &gold, &functions.keys(&ranked), Some(packs));
        }
        if (at + 1) % PROGRESS == 0 || at + 1 == tasks.len() {
            let of =
                |method| methods.by_name.get(method).map_or(0.0, |figures| percent(&column(figures, |row| row.any[2])));
            let seconds = began.elapsed().as_secs_f64();
            eprintln!("{name}: {} of {}, fn_any5 {} bm25 {}, {seconds:.0} s", at + 1, tasks.len(), of(OURS), of(BM25));
        }
    }
    Ok(methods)
}

/// The functions that were edited, and the lines of the parent tree that each has.
fn gold(seen: &ViewWithIndexes, tree: &Tree, task: &Task) -> Result<(Gold, Spans), Fault> {
    let files = seen.keyed("File");
    let touched = match &task.annotated {
        Some(_) => FxHashMap::default(),
        None => functions::touched(&tree.diff(&task.commit, &task.id, &task.gold)?),
    };
    let (mut gold, mut spans) = (Gold::new(), FxHashMap::default());
    for path in &task.gold {
        let Some(file) = files.get(path) else { continue };
        let definitions = functions::definitions(seen, *file)?;
        gold.extend(functions::edited(&definitions, touched.get(path).map_or(&[], Vec::as_slice)));
        spans.extend(definitions.into_iter().map(|definition| (definition.key, definition.lines)));
    }
    if let Some(annotated) = &task.annotated {
        for key in annotated.iter().filter(|key| !spans.contains_key(*key)) {
            eprintln!("{}: no {key}, which counts as not found", task.id);
        }
        gold = annotated.clone();
    }
    Ok((gold, spans))
}

/// Symbols as ranked by Lukasa, and by each channel over symbols alone.
struct LukasaRanking {
    symbols: Vec<lukasa_graph::Node>,
    channels: Vec<(&'static str, Vec<lukasa_graph::Node>)>,
}

fn ours(seen: &ViewWithIndexes, task: &str) -> LukasaRanking {
    let answered = find(&seen.look, &seen.texts, &seen.ask(task, Recipe::Code, NearestNodes::default()));
    let nodes = |found: &[(lukasa_graph::Node, f64)]| found.iter().map(|(node, _)| *node).collect();
    LukasaRanking {
        symbols: answered.candidates.iter().map(|candidate| candidate.node).collect(),
        channels: answered.channels.iter().map(|channel| (channel.name, nodes(&channel.found))).collect(),
    }
}

/// Scores of one method for one task.
struct FunctionScores {
    /// Whether all, and whether any, of the gold functions are in the first places.
    all: [f64; 4],
    any: [f64; 4],
    pack: Option<PackScores>,
}

struct PackScores {
    entry_right: f64,
    confidence: Option<String>,
    /// By profile: all named, any named, all with code, any with code, tokens.
    profiles: [[f64; 5]; 2],
}

#[derive(Default)]
struct Methods {
    by_name: std::collections::BTreeMap<String, Vec<FunctionScores>>,
    times: Times,
    left_out: usize,
}

impl Methods {
    fn add(&mut self, method: &str, gold: &Gold, ranked: &[String], packs: Option<[GoldInPack; 2]>) {
        let is_any = |found: &[String]| f64::from(u8::from(found.iter().any(|key| gold.contains(key))));
        let row = FunctionScores {
            all: PLACES.map(|k| all_within(gold, ranked, k)),
            any: PLACES.map(|k| is_any(&ranked[..ranked.len().min(k)])),
            pack: packs.map(|packs| PackScores {
                entry_right: f64::from(u8::from(packs[0].entry.as_ref().is_some_and(|entry| gold.contains(entry)))),
                confidence: packs[1].confidence.clone(),
                profiles: packs.each_ref().map(|pack| {
                    let all = |of: &Gold| f64::from(u8::from(gold.is_subset(of)));
                    let any = |of: &Gold| f64::from(u8::from(!gold.is_disjoint(of)));
                    [all(&pack.named), any(&pack.named), all(&pack.shown), any(&pack.shown), pack.tokens as f64]
                }),
            }),
        };
        self.by_name.entry(method.to_owned()).or_default().push(row);
    }

    fn join(&mut self, other: Methods) {
        for (name, rows) in other.by_name {
            self.by_name.entry(name).or_default().extend(rows);
        }
        self.times.join(&other.times);
        self.left_out += other.left_out;
    }

    fn print(&self, repo: &str, as_json: bool) {
        for (method, rows) in &self.by_name {
            let mut line =
                json!({"suite": "locate", "level": "function", "repo": repo, "method": method, "tasks": rows.len()});
            let fields = line.as_object_mut().expect("a line is an object");
            for (at, k) in PLACES.iter().enumerate() {
                fields.insert(format!("fn_acc{k}"), percent(&column(rows, |row| row.all[at])).into());
            }
            for (at, k) in PLACES.iter().enumerate() {
                fields.insert(format!("fn_any{k}"), percent(&column(rows, |row| row.any[at])).into());
            }
            let packs: Vec<&PackScores> = rows.iter().filter_map(|row| row.pack.as_ref()).collect();
            if !packs.is_empty() {
                add_packs(fields, &packs, method == OURS);
            }
            if method == OURS {
                fields.insert("without_gold".into(), self.left_out.into());
                fields.insert("p95_ms".into(), json!(self.times.percentile(95)));
            }
            print(&line, as_json);
        }
    }
}

fn add_packs(fields: &mut Map<String, Value>, packs: &[&PackScores], ours: bool) {
    let column = |of: &dyn Fn(&PackScores) -> f64| packs.iter().map(|row| of(row)).collect::<Vec<f64>>();
    if ours {
        fields.insert("entry_right".into(), percent(&column(&|row| row.entry_right)).into());
    }
    for (at, (profile, _)) in PROFILES.iter().enumerate() {
        for (field, name) in ["in_pack", "any_in_pack", "code_in_pack", "any_code_in_pack"].iter().enumerate() {
            fields.insert(format!("{name}_{profile}"), percent(&column(&|row| row.profiles[at][field])).into());
        }
        let tokens = column(&|row| row.profiles[at][4]);
        let mean = tokens.iter().sum::<f64>() / tokens.len().max(1) as f64;
        fields.insert(format!("tokens_{profile}"), (mean.round() as u64).into());
    }
    if ours {
        let mut levels = Map::new();
        for level in ["high", "medium", "low"] {
            let of: Vec<f64> = packs
                .iter()
                .filter(|row| row.confidence.as_deref() == Some(level))
                .map(|row| row.entry_right)
                .collect();
            levels.insert(level.into(), json!({"tasks": of.len(), "entry_right": percent(&of)}));
        }
        fields.insert("confidence".into(), Value::Object(levels));
    }
}

fn column(rows: &[FunctionScores], of: impl Fn(&FunctionScores) -> f64) -> Vec<f64> {
    rows.iter().map(of).collect()
}
