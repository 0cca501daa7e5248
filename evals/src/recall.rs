//! The `recall` suite: questions about long conversations, answered by the turns with the evidence.

mod episodes;

use crate::retrieval::answer_file::AnswerFile;
use crate::retrieval::plain_bm25::PlainBm25;
use crate::retrieval::score::{Gold, ndcg, percent, recall, reciprocal};
use crate::retrieval::vectors::{Vectors, nearest};
use crate::retrieval::{Project, Times, ViewWithIndexes, by_places, rows, text, texts};
use crate::{Fault, print, round};
use lukasa_engine::features::search::{Recipe, find};
use lukasa_graph::Node;
use lukasa_model::Write;
use lukasa_model::batch::{PutObject, PutRelationship, Reference};
use lukasa_search::embed::Purpose;
use lukasa_search::pipeline::fuse::best;
use lukasa_search::pipeline::seeds::NearestNodes;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

const TYPE: &str = "Turn";
const NEXT: &str = "NEXT";
/// The compared methods; `window` is plain BM25 over a turn together with its neighbours.
const METHODS: [&str; 5] = ["ours", "bm25", "window", "vector", "rrf"];

struct Turn {
    id: String,
    session: String,
    time: String,
    speaker: String,
    text: String,
}

struct Question {
    id: String,
    text: String,
    gold: Gold,
    category: u64,
}

pub fn run(
    data: &Path,
    mode: &str,
    vectors: &Vectors,
    mut out: Option<AnswerFile>,
    as_json: bool,
) -> Result<(), Fault> {
    match mode {
        "index" => {}
        "episodes" => return episodes::run(data, out, as_json),
        other => return Err(format!("no mode `{other}`; there are index and episodes").into()),
    }
    let folders = conversations(data)?;
    let mut conversations = Vec::new();
    for folder in &folders {
        conversations.push(Conversation::load(folder, vectors)?);
    }
    let questions: usize = conversations.iter().map(|conversation| conversation.questions.len()).sum();
    let turns: usize = conversations.iter().map(|conversation| conversation.nodes.len()).sum();
    let ingest_s: f64 = conversations.iter().map(|conversation| conversation.ingest_s).sum();
    for method in METHODS {
        let mut shares: Vec<(u64, QuestionScores)> = Vec::new();
        let mut times = Times::default();
        for conversation in &conversations {
            shares.extend(conversation.ask_all(method, questions, &mut times, out.as_mut())?);
        }
        if shares.is_empty() {
            continue;
        }
        let mut by_category: BTreeMap<u64, Vec<QuestionScores>> = BTreeMap::new();
        shares.iter().for_each(|(category, shares)| by_category.entry(*category).or_default().push(*shares));
        let by_category: Map<String, Value> =
            by_category.into_iter().map(|(category, shares)| (name(category), figures(&shares))).collect();
        let mut line = json!({"suite": "recall", "method": method, "mode": mode});
        let all = figures(&shares.iter().map(|(_, shares)| *shares).collect::<Vec<_>>());
        let fields = line.as_object_mut().expect("an object");
        fields.extend(all.as_object().cloned().unwrap_or_default());
        fields.insert("by_category".into(), Value::Object(by_category));
        fields.insert("ingest_per_s".into(), json!(round(turns as f64 / ingest_s)));
        fields.insert("p95_ms".into(), json!(times.percentile(95)));
        fields.insert("turns".into(), json!(turns));
        print(&line, as_json);
    }
    out.map_or(Ok(()), AnswerFile::finish)
}

/// Scores of one question: recall in the first 5 and 10, reciprocal rank, NDCG of the first 10.
type QuestionScores = [f64; 4];

fn shares_of<S: AsRef<str>>(gold: &Gold, ranked: &[S]) -> QuestionScores {
    [recall(gold, ranked, 5), recall(gold, ranked, 10), reciprocal(gold, ranked), ndcg(gold, ranked, 10)]
}

fn figures(shares: &[QuestionScores]) -> Value {
    let at = |k: usize| percent(&shares.iter().map(|shares| shares[k]).collect::<Vec<_>>());
    json!({"questions": shares.len(), "r5": at(0), "r10": at(1), "mrr": at(2), "ndcg10": at(3)})
}

/// The name that the authors of the data use.
fn name(category: u64) -> String {
    let name = match category {
        1 => "multi-hop",
        2 => "temporal",
        3 => "open-domain",
        4 => "single-hop",
        5 => "adversarial",
        _ => "other",
    };
    format!("{category} {name}")
}

/// Numbered folders, in the order of their numbers.
fn conversations(data: &Path) -> Result<Vec<PathBuf>, Fault> {
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(data)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        if let Some(number) = number.filter(|_| path.join("turns.jsonl").exists()) {
            found.push((number, path));
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(format!("no numbered folders with turns.jsonl in `{}`", data.display()).into());
    }
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

type TextVectors = Vec<Vec<f32>>;

/// The turns of one conversation, in a separate project.
struct Conversation {
    seen: ViewWithIndexes,
    // Kept because its folder contains the store.
    _project: Project,
    nodes: Vec<Node>,
    ids: FxHashMap<Node, String>,
    questions: Vec<Question>,
    plain: PlainBm25,
    window: PlainBm25,
    /// Vectors of turns and of questions.
    vectors: Option<(TextVectors, TextVectors)>,
    /// Seconds until everything could be found.
    ingest_s: f64,
}

impl Conversation {
    fn load(folder: &Path, vectors: &Vectors) -> Result<Conversation, Fault> {
        let (turns, questions) = (turns(folder)?, questions(folder)?);
        let project = Project::new()?;
        let began = Instant::now();
        project.import(&writes(&turns))?;
        let seen = project.see()?;
        let ingest_s = began.elapsed().as_secs_f64();
        let keyed = seen.keyed(TYPE);
        let node = |turn: &Turn| keyed.get(&turn.id).copied().ok_or_else(|| format!("turn {} is not there", turn.id));
        let nodes: Vec<Node> = turns.iter().map(node).collect::<Result<_, _>>()?;
        let lines: Vec<String> = turns.iter().map(|turn| format!("{}: {}", turn.speaker, turn.text)).collect();
        let windows: Vec<String> = (0..turns.len()).map(|at| window(&turns, &lines, at)).collect();
        let asked: Vec<&str> = questions.iter().map(|question| question.text.as_str()).collect();
        let both = (vectors.of(&lines, Purpose::Keep)?, vectors.of(&asked, Purpose::Question)?);
        let plain = |texts: &[String]| PlainBm25::new(nodes.iter().copied().zip(texts.iter().map(String::as_str)));
        Ok(Conversation {
            plain: plain(&lines),
            window: plain(&windows),
            ids: keyed.into_iter().map(|(id, node)| (node, id)).collect(),
            vectors: both.0.zip(both.1),
            seen,
            _project: project,
            nodes,
            questions,
            ingest_s,
        })
    }

    /// The category and the scores of each question; empty if the method needs vectors and there are none.
    fn ask_all(
        &self,
        method: &str,
        runs: usize,
        times: &mut Times,
        mut out: Option<&mut AnswerFile>,
    ) -> Result<Vec<(u64, QuestionScores)>, Fault> {
        let mut shares = Vec::new();
        let order = |node: Node| self.seen.order(node);
        for (at, question) in self.questions.iter().enumerate() {
            let near = || self.vectors.as_ref().map(|(kept, asked)| nearest(&self.nodes, kept, &asked[at]));
            if self.vectors.is_none() && ["vector", "rrf"].contains(&method) {
                return Ok(vec![]);
            }
            let sorted = |near: Option<NearestNodes>| best(near.unwrap_or_default().found, usize::MAX, order);
            let ranked = times.take(runs, || {
                let first = |found: Vec<(Node, f64)>| found.into_iter().map(|(node, _)| node).collect();
                Ok(match method {
                    "bm25" => first(self.plain.rank(&question.text)),
                    "window" => first(self.window.rank(&question.text)),
                    "vector" => first(sorted(near())),
                    "rrf" => by_places(self.plain.rank(&question.text), sorted(near()), order),
                    _ => self.ours(&question.text, near().unwrap_or_default()),
                })
            })?;
            let ranked: Vec<&String> = ranked.iter().filter_map(|node| self.ids.get(node)).collect();
            shares.push((question.category, shares_of(&question.gold, &ranked)));
            if let Some(out) = &mut out {
                out.write(method, &question.id, &ranked)?;
            }
        }
        Ok(shares)
    }

    fn ours(&self, question: &str, near: NearestNodes) -> Vec<Node> {
        let answered = find(&self.seen.look, &self.seen.texts, &self.seen.ask(question, Recipe::Recall, near));
        answered.candidates.into_iter().map(|candidate| candidate.node).collect()
    }
}

fn turns(folder: &Path) -> Result<Vec<Turn>, Fault> {
    let mut turns = Vec::new();
    for row in rows(&folder.join("turns.jsonl"))? {
        let own = |name: &str| text(&row, name).map(str::to_owned);
        let (id, session, time) = (own("id")?, own("session")?, own("time")?);
        turns.push(Turn { id, session, time, speaker: own("speaker")?, text: own("text")? });
    }
    Ok(turns)
}

/// The questions that have an answer.
fn questions(folder: &Path) -> Result<Vec<Question>, Fault> {
    let mut questions = Vec::new();
    for row in rows(&folder.join("questions.jsonl"))? {
        let gold: Gold = texts(&row, "gold").into_iter().collect();
        let (id, asked) = (text(&row, "id")?.to_owned(), text(&row, "question")?.to_owned());
        questions.push(Question { id, text: asked, gold, category: row["category"].as_u64().unwrap_or(0) });
    }
    questions.retain(|question| !question.gold.is_empty());
    Ok(questions)
}

fn follows(turns: &[Turn], at: usize) -> bool {
    turns.get(at + 1).is_some_and(|next| next.session == turns[at].session)
}

fn writes(turns: &[Turn]) -> Vec<Write> {
    let object = |turn: &Turn| {
        let object = PutObject::new(TYPE, &turn.id).property("text", turn.text.clone());
        let object = object.property("speaker", turn.speaker.clone()).property("session_id", turn.session.clone());
        // The day is a searchable property of a turn; the hour is not.
        let day = turn.time.split_once(" on ").map_or(turn.time.as_str(), |(_, day)| day);
        Write::from(object.property("said_at", turn.time.clone()).property("day", day))
    };
    let end = |at: usize| Reference::exact(TYPE, &turns[at].id);
    let next = |at: usize| Write::from(PutRelationship::new(NEXT, end(at), end(at + 1)));
    let links = (0..turns.len()).filter(|at| follows(turns, *at)).map(next);
    turns.iter().map(object).chain(links).collect()
}

/// A turn with the one before and the one after, of the same session.
fn window(turns: &[Turn], lines: &[String], at: usize) -> String {
    let first = at - usize::from(at > 0 && follows(turns, at - 1));
    lines[first..=at + usize::from(follows(turns, at))].join("\n")
}
