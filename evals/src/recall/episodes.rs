//! Conversations as episodes: recorded with `episode_add`, recalled with `episode_recall`.

use super::{Question, QuestionScores, Turn, conversations, figures, name, questions, shares_of, turns, window};
use crate::retrieval::answer_file::AnswerFile;
use crate::retrieval::plain_bm25::PlainBm25;
use crate::retrieval::{Project, Times};
use crate::{Fault, print, round};
use jiff::civil::DateTime;
use lukasa_graph::Node;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// The compared methods: the default; the same without times in questions; the sum of likeness, age and entities; plain
/// BM25 over turns, and over turns with their neighbours.
const METHODS: [&str; 5] = ["ours", "untimed", "seed", "bm25", "window"];
/// Episodes that are recorded to measure the speed.
const MANY: usize = 10_000;
/// Writes that measure the speed of the disk.
const SYNCS: usize = 500;
/// Episodes in one call.
const LIST: usize = 100;

struct Conversation {
    project: Project,
    ids: Vec<String>,
    questions: Vec<Question>,
    plain: PlainBm25,
    window: PlainBm25,
}

pub fn run(data: &Path, mut out: Option<AnswerFile>, as_json: bool) -> Result<(), Fault> {
    let mut all = Vec::new();
    let (mut taken_s, mut embed_s, mut count) = (0.0, 0.0, 0);
    let mut every: Vec<Turn> = Vec::new();
    for folder in conversations(data)? {
        let turns = turns(&folder)?;
        let project = Project::new()?;
        let began = Instant::now();
        for turn in &turns {
            project.call("episode_add", episode(turn, true)?)?;
        }
        taken_s += began.elapsed().as_secs_f64();
        let began = Instant::now();
        project.call("embed", json!({}))?;
        embed_s += began.elapsed().as_secs_f64();
        count += turns.len();
        let lines: Vec<String> = turns.iter().map(|turn| format!("{}: {}", turn.speaker, turn.text)).collect();
        let windows: Vec<String> = (0..turns.len()).map(|at| window(&turns, &lines, at)).collect();
        let plain =
            |texts: &[String]| PlainBm25::new((0..turns.len()).map(Node::at).zip(texts.iter().map(String::as_str)));
        all.push(Conversation {
            plain: plain(&lines),
            window: plain(&windows),
            ids: turns.iter().map(|turn| turn.id.clone()).collect(),
            questions: questions(&folder)?,
            project,
        });
        every.extend(turns);
    }
    let asked: usize = all.iter().map(|conversation| conversation.questions.len()).sum();
    for method in METHODS {
        let mut shares: Vec<(u64, QuestionScores)> = Vec::new();
        let mut times = Times::default();
        for conversation in &all {
            for question in &conversation.questions {
                let ranked = times.take(asked, || conversation.ask(method, &question.text))?;
                let ranked: Vec<&String> = ranked.iter().collect();
                shares.push((question.category, shares_of(&question.gold, &ranked)));
                if let Some(out) = &mut out {
                    out.write(method, &question.id, &ranked)?;
                }
            }
        }
        let mut by_category: BTreeMap<u64, Vec<QuestionScores>> = BTreeMap::new();
        shares.iter().for_each(|(category, shares)| by_category.entry(*category).or_default().push(*shares));
        let by_category: Map<String, Value> =
            by_category.into_iter().map(|(category, shares)| (name(category), figures(&shares))).collect();
        let mut line = json!({"suite": "recall", "method": method, "mode": "episodes"});
        let fields = line.as_object_mut().expect("an object");
        let own = figures(&shares.iter().map(|(_, shares)| *shares).collect::<Vec<_>>());
        fields.extend(own.as_object().cloned().unwrap_or_default());
        fields.insert("by_category".into(), Value::Object(by_category));
        fields.insert("ingest_per_s".into(), json!(round(count as f64 / taken_s)));
        fields.insert("embed_per_s".into(), json!(round(count as f64 / embed_s)));
        fields.insert("p95_ms".into(), json!(times.percentile(95)));
        fields.insert("turns".into(), json!(count));
        print(&line, as_json);
    }
    ingest(&every, as_json)?;
    out.map_or(Ok(()), AnswerFile::finish)
}

impl Conversation {
    /// Ids of turns, best first.
    fn ask(&self, method: &str, question: &str) -> Result<Vec<String>, Fault> {
        let plain = |index: &PlainBm25| {
            index.rank(question).into_iter().map(|(at, _)| self.ids[at.index()].clone()).collect::<Vec<_>>()
        };
        let request = match method {
            "bm25" => return Ok(plain(&self.plain)),
            "window" => return Ok(plain(&self.window)),
            "seed" => json!({"query": question, "limit": 10, "recipe": "added"}),
            "untimed" => json!({"query": question, "limit": 10, "moments": false}),
            _ => json!({"query": question, "limit": 10}),
        };
        let answer = self.project.call("episode_recall", request)?;
        let found = answer["episodes"].as_array().into_iter().flatten();
        Ok(found.filter_map(|row| row["episode_id"].as_str()?.strip_prefix("episode:").map(str::to_owned)).collect())
    }
}

/// A turn as an episode: who speaks and on which day is part of what is known of it.
fn episode(turn: &Turn, with_id: bool) -> Result<Value, Fault> {
    let day = turn.time.split_once(" on ").map_or(turn.time.as_str(), |(_, day)| day);
    let mut episode = json!({
        "content": turn.text,
        "session_id": turn.session,
        "time": moment(&turn.time)?,
        "metadata": {"speaker": turn.speaker, "day": day},
    });
    if with_id {
        episode["id"] = json!(turn.id);
    }
    Ok(episode)
}

/// `1:56 pm on 8 May, 2023` as a moment.
fn moment(text: &str) -> Result<String, Fault> {
    let fault = || Fault::from(format!("`{text}` is not a time"));
    let (hour, day) = text.split_once(" on ").ok_or_else(fault)?;
    let read = DateTime::strptime("%I:%M %p %d %B %Y", format!("{} {}", hour.trim(), day.replace(',', "").trim()));
    Ok(format!("{}Z", read.map_err(|_| fault())?))
}

/// How often the disk takes two pages and says that it has them: no store can commit more often, one by one.
fn syncs() -> Result<f64, Fault> {
    let mut file = tempfile::tempfile()?;
    let began = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&[7; 8_192])?;
        file.sync_data()?;
    }
    Ok(round(SYNCS as f64 / began.elapsed().as_secs_f64()))
}

/// How fast ten thousand are taken in: one by one; one by one with the text index moved on after each; in lists.
fn ingest(turns: &[Turn], as_json: bool) -> Result<(), Fault> {
    let many: Vec<Value> =
        turns.iter().cycle().take(MANY).map(|turn| episode(turn, false)).collect::<Result<_, _>>()?;
    let timed = |run: &dyn Fn(&Project) -> Result<(), Fault>| -> Result<f64, Fault> {
        let project = Project::new()?;
        // Types are declared once.
        project.call("episode_add", json!({"content": "first"}))?;
        let began = Instant::now();
        run(&project)?;
        Ok(round(MANY as f64 / began.elapsed().as_secs_f64()))
    };
    let one = timed(&|project| many.iter().try_for_each(|one| project.call("episode_add", one.clone()).map(drop)))?;
    let current = timed(&|project| {
        many.iter().try_for_each(|one| {
            project.call("episode_add", one.clone())?;
            project.see().map(drop)
        })
    })?;
    let list = timed(&|project| {
        many.chunks(LIST).try_for_each(|list| {
            project.call("episode_add", json!({"episodes": list}))?;
            project.see().map(drop)
        })
    })?;
    let line = json!({"suite": "recall", "method": "ingest", "mode": "episodes", "episodes": MANY, "one_per_s": one,
        "one_current_per_s": current, "list": LIST, "list_current_per_s": list, "disk_syncs_per_s": syncs()?});
    print(&line, as_json);
    Ok(())
}
