//! The `multihop` suite: questions whose answer is in several passages that mention one another.

use crate::retrieval::answer_file::AnswerFile;
use crate::retrieval::plain_bm25::PlainBm25;
use crate::retrieval::score::{Gold, ndcg, percent, recall, reciprocal};
use crate::retrieval::vectors::{Vectors, nearest};
use crate::retrieval::{Project, Times, ViewWithIndexes, by_places, rows, text, texts};
use crate::{Fault, print};
use lukasa_engine::features::search::{RecallTies, Recipe, find};
use lukasa_graph::Node;
use lukasa_model::Write;
use lukasa_model::batch::PutObject;
use lukasa_search::embed::Purpose;
use lukasa_search::pipeline::fuse::best;
use lukasa_search::pipeline::seeds::NearestNodes;
use lukasa_search::pipeline::{self, RecallIndexes};
use lukasa_search::question;
use lukasa_search::recipes::RecallRecipe;
use rustc_hash::FxHashMap;
use serde_json::json;
use std::path::{Path, PathBuf};

pub const TYPE: &str = "Passage";

/// The compared methods.
const METHODS: [&str; 5] = ["ours", "bm25", "vector", "graph", "rrf"];

struct Passage {
    id: String,
    title: String,
    text: String,
}

struct Question {
    id: String,
    text: String,
    gold: Gold,
}

pub fn run(data: &Path, vectors: &Vectors, mut out: Option<AnswerFile>, as_json: bool) -> Result<(), Fault> {
    for folder in sets(data)? {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        eprintln!("{name}: loading …");
        let set = QuestionSet::load(&folder, vectors)?;
        for method in METHODS {
            let Some(found) = set.ask_all(method, out.as_mut())? else { continue };
            let at = |k: usize| percent(&found.shares.iter().map(|shares| shares[k]).collect::<Vec<_>>());
            let line = json!({"suite": "multihop", "set": name, "method": method, "questions": set.questions.len(),
                "r2": at(0), "r5": at(1), "r10": at(2), "mrr": at(3), "ndcg10": at(4), "p95_ms": found.times.percentile(95),
                "p50_ms": found.times.percentile(50), "passages": set.nodes.len()});
            print(&line, as_json);
        }
    }
    out.map_or(Ok(()), AnswerFile::finish)
}

/// The folder itself, or the sets in it.
fn sets(data: &Path) -> Result<Vec<PathBuf>, Fault> {
    let is_set = |folder: &Path| folder.join("passages.jsonl").exists();
    if is_set(data) {
        return Ok(vec![data.to_owned()]);
    }
    let mut sets: Vec<PathBuf> =
        std::fs::read_dir(data)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    sets.retain(|folder| is_set(folder));
    sets.sort();
    if sets.is_empty() {
        return Err(format!("no passages.jsonl in `{}` or a folder in it", data.display()).into());
    }
    Ok(sets)
}

type TextVectors = Vec<Vec<f32>>;

/// Passages in a project, and the questions about them.
struct QuestionSet {
    seen: ViewWithIndexes,
    // Kept because its folder contains the store.
    _project: Project,
    nodes: Vec<Node>,
    ids: FxHashMap<Node, String>,
    questions: Vec<Question>,
    plain: PlainBm25,
    /// Vectors of passages and of questions.
    vectors: Option<(TextVectors, TextVectors)>,
}

/// Scores of a method.
struct MethodScores {
    /// By question, the shares of gold in the first 2, 5 and 10, the reciprocal rank of the first, and NDCG of the
    /// first 10.
    shares: Vec<[f64; 5]>,
    times: Times,
}

impl QuestionSet {
    fn load(folder: &Path, vectors: &Vectors) -> Result<QuestionSet, Fault> {
        let mut passages = Vec::new();
        for row in rows(&folder.join("passages.jsonl"))? {
            let own = |name: &str| text(&row, name).map(str::to_owned);
            passages.push(Passage { id: own("id")?, title: own("title")?, text: own("text")? });
        }
        let mut questions = Vec::new();
        for row in rows(&folder.join("questions.jsonl"))? {
            let gold: Gold = texts(&row, "gold").into_iter().collect();
            let id = row["id"].as_str().map_or_else(|| row["id"].to_string(), str::to_owned);
            questions.push(Question { id, text: text(&row, "question")?.to_owned(), gold });
        }
        questions.retain(|question| !question.gold.is_empty());
        let project = Project::new()?;
        let object = |p: &Passage| PutObject::new(TYPE, &p.id).title(&p.title).property("text", p.text.clone());
        project.import(&passages.iter().map(|passage| Write::from(object(passage))).collect::<Vec<_>>())?;
        project.call("link_mentions", json!({"types": [TYPE]}))?;
        let seen = project.see()?;
        let keyed = seen.keyed(TYPE);
        let node = |p: &Passage| keyed.get(&p.id).copied().ok_or_else(|| format!("passage {} is not there", p.id));
        let nodes: Vec<Node> = passages.iter().map(node).collect::<Result<_, _>>()?;
        let whole: Vec<String> = passages.iter().map(|p| format!("{}. {}", p.title, p.text)).collect();
        let asked: Vec<&str> = questions.iter().map(|question| question.text.as_str()).collect();
        let both = (vectors.of(&whole, Purpose::Keep)?, vectors.of(&asked, Purpose::Question)?);
        Ok(QuestionSet {
            plain: PlainBm25::new(nodes.iter().copied().zip(whole.iter().map(String::as_str))),
            ids: keyed.into_iter().map(|(id, node)| (node, id)).collect(),
            vectors: both.0.zip(both.1),
            seen,
            _project: project,
            nodes,
            questions,
        })
    }

    /// `None` if the method needs vectors and there are none.
    fn ask_all(&self, method: &str, mut out: Option<&mut AnswerFile>) -> Result<Option<MethodScores>, Fault> {
        let mut found = MethodScores { shares: vec![], times: Times::default() };
        for (at, question) in self.questions.iter().enumerate() {
            let near = || self.vectors.as_ref().map(|(kept, asked)| nearest(&self.nodes, kept, &asked[at]));
            if self.vectors.is_none() && ["vector", "rrf"].contains(&method) {
                return Ok(None);
            }
            let ranked = found.times.take(self.questions.len(), || {
                Ok(match method {
                    "bm25" => first(self.plain.rank(&question.text)),
                    "vector" => first(self.sorted(near())),
                    "rrf" => by_places(self.plain.rank(&question.text), self.sorted(near()), |n| self.seen.order(n)),
                    "graph" => self.walked(&question.text),
                    _ => self.ours(&question.text, near().unwrap_or_default()),
                })
            })?;
            let ranked: Vec<&String> = ranked.iter().filter_map(|node| self.ids.get(node)).collect();
            let [r2, r5, r10] = [2, 5, 10].map(|k| recall(&question.gold, &ranked, k));
            let (mrr, ndcg) = (reciprocal(&question.gold, &ranked), ndcg(&question.gold, &ranked, 10));
            found.shares.push([r2, r5, r10, mrr, ndcg]);
            if let Some(out) = &mut out {
                out.write(method, &question.id, &ranked)?;
            }
        }
        Ok(Some(found))
    }

    fn ours(&self, question: &str, near: NearestNodes) -> Vec<Node> {
        let answered = find(&self.seen.look, &self.seen.texts, &self.seen.ask(question, Recipe::Recall, near));
        answered.candidates.into_iter().map(|candidate| candidate.node).collect()
    }

    /// The walk alone, from the hits of the text index.
    fn walked(&self, question: &str) -> Vec<Node> {
        let texts = &self.seen.texts;
        let indexes = RecallIndexes { texts: &texts.objects, titles: &texts.titles, names: &texts.names };
        let recipe = RecallRecipe { vector: 0.0, keys: 0.0, bridges: 0, ..RecallRecipe::default() };
        let bonds = RecallTies::new(&self.seen.look, texts, question);
        let (terms, none) = (question::prose_terms(question), NearestNodes::default());
        let found = pipeline::recall(&indexes, question, &terms, &none, &recipe, &bonds, |n| self.seen.order(n));
        found.candidates.into_iter().map(|candidate| candidate.node).collect()
    }

    fn sorted(&self, near: Option<NearestNodes>) -> Vec<(Node, f64)> {
        best(near.unwrap_or_default().found, usize::MAX, |node| self.seen.order(node))
    }
}

fn first(found: Vec<(Node, f64)>) -> Vec<Node> {
    found.into_iter().map(|(node, _)| node).collect()
}
