//! The `tck` suite: openCypher's scenarios, set up by a small writer and queried through the graph.

mod feature;
mod value;
mod writer;

use crate::print;
use feature::{Scenario, Step};
use lukasa_graph::cypher::{self, FaultClass, QueryError, QueryLimits, QueryParameters};
use lukasa_model::ErrorCode;
use serde_json::json;
use std::collections::BTreeMap;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use value::{Expected, from_value, read};
use writer::ScenarioGraph;

type Fault = Box<dyn Error>;

/// The outcome of a scenario.
#[derive(Debug, PartialEq)]
enum ScenarioOutcome {
    Passed,
    Failed(String),
    /// The scenario writes, or calls procedures that only the TCK has.
    Skipped,
    Crashed(String),
    TimedOut,
}

const TIMEOUT_MS: u64 = 10_000;

#[derive(Default)]
struct Tally {
    scenarios: u64,
    passed: u64,
    failed: u64,
    skipped: u64,
    crashed: u64,
    timed_out: u64,
}

impl Tally {
    fn add(&mut self, ending: &ScenarioOutcome) {
        self.scenarios += 1;
        match ending {
            ScenarioOutcome::Passed => self.passed += 1,
            ScenarioOutcome::Failed(_) => self.failed += 1,
            ScenarioOutcome::Skipped => self.skipped += 1,
            ScenarioOutcome::Crashed(_) => self.crashed += 1,
            ScenarioOutcome::TimedOut => self.timed_out += 1,
        }
    }

    fn line(&self) -> serde_json::Value {
        let run = self.scenarios - self.skipped;
        let share = if run == 0 { 0.0 } else { (self.passed as f64 / run as f64 * 10_000.0).round() / 100.0 };
        json!({"scenarios": self.scenarios, "passed": self.passed, "failed": self.failed, "skipped": self.skipped,
            "crashed": self.crashed, "timed_out": self.timed_out, "pass_pct": share})
    }
}

pub fn run(data: &Path, as_json: bool) -> Result<(), Fault> {
    let mut files = Vec::new();
    collect(data, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(format!("no feature files in {}", data.display()).into());
    }
    // A crash is reported as the outcome of its scenario, without a backtrace between the figures.
    std::panic::set_hook(Box::new(|_| {}));
    let mut all = Tally::default();
    let mut by_folder: BTreeMap<String, Tally> = BTreeMap::new();
    let mut failing = Vec::new();
    for file in &files {
        let name = file.strip_prefix(data).unwrap_or(file).display().to_string();
        let folder = Path::new(&name).parent().map(|p| p.display().to_string()).unwrap_or_default();
        for scenario in feature::scenarios(&std::fs::read_to_string(file)?) {
            let ending = catch_unwind(AssertUnwindSafe(|| play(&scenario, data))).unwrap_or_else(|panic| {
                let words = panic.downcast_ref::<String>().cloned();
                let words = words.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                ScenarioOutcome::Crashed(words.unwrap_or_default())
            });
            all.add(&ending);
            by_folder.entry(folder.clone()).or_default().add(&ending);
            let reason = match ending {
                ScenarioOutcome::Passed | ScenarioOutcome::Skipped => continue,
                ScenarioOutcome::Failed(reason) => reason,
                ScenarioOutcome::Crashed(words) => format!("crashed: {words}"),
                ScenarioOutcome::TimedOut => "timed out".into(),
            };
            failing.push(json!({"suite": "tck", "file": name, "name": scenario.name, "reason": reason}));
        }
    }
    drop(std::panic::take_hook());
    let mut line = all.line();
    line["suite"] = json!("tck");
    line["by_folder"] =
        json!(by_folder.iter().map(|(folder, tally)| (folder, tally.line())).collect::<BTreeMap<_, _>>());
    print(&line, as_json);
    for line in failing {
        print(&line, as_json);
    }
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Fault> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "feature") {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether a scenario needs writes or procedures of the TCK.
fn is_beyond(scenario: &Scenario) -> bool {
    scenario.steps.iter().any(|step| {
        step.text.starts_with("there exists a procedure")
            || step.text.starts_with("executing")
                && step.doc.as_deref().is_some_and(|q| cypher::parse(q).is_err_and(|f| f.class == FaultClass::ReadOnly))
    })
}

fn play(scenario: &Scenario, data: &Path) -> ScenarioOutcome {
    if is_beyond(scenario) {
        return ScenarioOutcome::Skipped;
    }
    let mut world = match ScenarioGraph::new() {
        Ok(world) => world,
        Err(e) => return ScenarioOutcome::Failed(format!("setup: {e}")),
    };
    let mut parameters = QueryParameters::new();
    let mut answer: Option<Answer> = None;
    for step in &scenario.steps {
        let done = match step.text.as_str() {
            "any graph" | "an empty graph" | "no side effects" => Ok(()),
            "having executed:" => {
                world.create(step.doc.as_deref().unwrap_or_default()).map_err(|e| format!("setup: {e}"))
            }
            "parameters are:" => parameters_of(step, &mut parameters),
            "executing query:" | "executing control query:" => {
                answer = Some(ask(&mut world, step.doc.as_deref().unwrap_or_default(), &parameters));
                if matches!(&answer, Some(Answer::TimedOut)) {
                    return ScenarioOutcome::TimedOut;
                }
                Ok(())
            }
            text if text.starts_with("the ") && text.ends_with(" graph") => {
                graph(text, data).and_then(|query| world.create(&query).map_err(|e| format!("setup: {e}")))
            }
            text if text.contains("should be raised") => raised(text, answer.as_ref()),
            text if text.starts_with("the result should be") => result(step, answer.as_ref()),
            text if text.starts_with("the side effects should be") => Ok(()),
            text => Err(format!("unknown step `{text}`")),
        };
        if let Err(reason) = done {
            return ScenarioOutcome::Failed(reason);
        }
    }
    ScenarioOutcome::Passed
}

enum Answer {
    Rows { columns: Vec<String>, rows: Vec<Vec<Expected>> },
    Wrong { fault: cypher::Fault, compile_time: bool },
    TimedOut,
    Other(String),
}

fn ask(world: &mut ScenarioGraph, query: &str, parameters: &QueryParameters) -> Answer {
    let (snapshot, ledger) = match world.view_graph() {
        Ok(found) => found,
        Err(e) => return Answer::Other(e.to_string()),
    };
    let place = ScenarioGraph::place(&snapshot, &ledger);
    let prepared = match cypher::prepare(query, parameters, place) {
        Ok(prepared) => prepared,
        Err(fault) => return Answer::Wrong { fault, compile_time: true },
    };
    let deadline = Instant::now() + Duration::from_millis(TIMEOUT_MS);
    match prepared.run(QueryLimits { deadline, timeout_ms: TIMEOUT_MS, rows: 1_000_000, memory: 1 << 30 }) {
        Ok(outcome) => {
            let reader = cypher::QueryResultReader::new(&place);
            let rows = outcome.rows.iter().map(|row| row.iter().map(|v| from_value(v, &snapshot, &reader)).collect());
            match rows.collect::<Result<Vec<Vec<_>>, _>>() {
                Ok(rows) => Answer::Rows { columns: outcome.columns, rows },
                Err(e) => Answer::Other(e.to_string()),
            }
        }
        Err(trouble) => match *trouble {
            QueryError::Fault(fault) => Answer::Wrong { fault, compile_time: false },
            QueryError::Other(error) if error.code == ErrorCode::QueryTimeout => Answer::TimedOut,
            QueryError::Other(error) => Answer::Other(error.to_string()),
        },
    }
}

fn graph(text: &str, data: &Path) -> Result<String, String> {
    let name = text.trim_start_matches("the ").trim_end_matches(" graph");
    let inside = |folder: &Path| folder.join("graphs").join(name).join(format!("{name}.cypher"));
    let found = data.ancestors().map(inside).find(|p| p.exists()).ok_or(format!("no graph `{name}`"))?;
    std::fs::read_to_string(found).map_err(|e| e.to_string())
}

fn parameters_of(step: &Step, parameters: &mut QueryParameters) -> Result<(), String> {
    for row in &step.table {
        let [name, text] = row.as_slice() else { return Err("a parameter has a name and a value".into()) };
        let value = read(text)?.to_value().ok_or(format!("`{text}` is no value of a parameter"))?;
        parameters.insert(name.clone(), value);
    }
    Ok(())
}

fn raised(text: &str, answer: Option<&Answer>) -> Result<(), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let class = words.get(1).copied().unwrap_or_default();
    let detail = text.rsplit(':').next().unwrap_or_default().trim();
    let (fault, compile_time) = match answer {
        Some(Answer::Wrong { fault, compile_time }) => (fault, *compile_time),
        Some(Answer::Rows { rows, .. }) => return Err(format!("expected {class} {detail}, got {} rows", rows.len())),
        Some(Answer::Other(e)) => return Err(format!("expected {class} {detail}, got {e}")),
        _ => return Err("no query was run".into()),
    };
    let when = if text.contains("any time") { compile_time } else { text.contains("compile time") };
    let raised =
        format!("{} {} at {}", fault.class.name(), fault.detail, if compile_time { "compile time" } else { "runtime" });
    if fault.class.name() == class && (detail == "*" || fault.detail == detail) && when == compile_time {
        Ok(())
    } else {
        Err(format!("expected {text}, got {raised}: {}", fault.message))
    }
}

fn result(step: &Step, answer: Option<&Answer>) -> Result<(), String> {
    let (columns, rows) = match answer {
        Some(Answer::Rows { columns, rows }) => (columns, rows),
        Some(Answer::Wrong { fault, .. }) => {
            return Err(format!("{} {}: {}", fault.class.name(), fault.detail, fault.message));
        }
        Some(Answer::Other(e)) => return Err(e.clone()),
        _ => return Err("no query was run".into()),
    };
    let heading = step.table.first().cloned().unwrap_or_default();
    let mut wanted_columns = heading.clone();
    let mut got_columns = columns.clone();
    wanted_columns.sort();
    got_columns.sort();
    if step.text.contains("should be empty") {
        return if rows.is_empty() { Ok(()) } else { Err(format!("expected nothing, got {} rows", rows.len())) };
    }
    if wanted_columns != got_columns {
        return Err(format!("expected the columns {heading:?}, got {columns:?}"));
    }
    let places: Vec<usize> = heading.iter().filter_map(|name| columns.iter().position(|c| c == name)).collect();
    let any_order = step.text.contains("any order") || !step.text.contains("in order");
    let loose = step.text.contains("ignoring element order");
    let mut wanted: Vec<Vec<Expected>> = Vec::new();
    for row in step.table.iter().skip(1) {
        wanted.push(row.iter().map(|cell| read(cell)).collect::<Result<_, _>>()?);
    }
    let mut got: Vec<Vec<Expected>> = rows.iter().map(|row| places.iter().map(|i| row[*i].clone()).collect()).collect();
    for row in wanted.iter_mut().chain(got.iter_mut()) {
        row.iter_mut().for_each(|v| v.settle(loose));
    }
    let shown = |rows: &[Vec<Expected>]| {
        rows.iter().map(|r| r.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")).collect::<Vec<_>>()
    };
    let (mut wanted, mut got) = (shown(&wanted), shown(&got));
    if any_order {
        wanted.sort();
        got.sort();
    }
    if wanted == got { Ok(()) } else { Err(format!("expected {wanted:?}, got {got:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(scenario: &str) -> ScenarioOutcome {
        let text = format!("Feature: f\n\n  Scenario: s\n{scenario}");
        play(&feature::scenarios(&text)[0], Path::new("."))
    }

    #[test]
    fn scenarios_are_judged() {
        let setup = "    Given an empty graph\n    And having executed:\n      \"\"\"\n      CREATE (a:A {n: 1})-[:T {w: 1.0}]->(b:B:C), ()\n      \"\"\"\n";
        let asked = |query: &str, then: &str| {
            ending(&format!("{setup}    When executing query:\n      \"\"\"\n      {query}\n      \"\"\"\n    {then}"))
        };
        let path =
            "Then the result should be, in any order:\n      | p |\n      | <(:A {n: 1})-[:T {w: 1.0}]->(:B:C)> |\n";
        assert_eq!(asked("MATCH p = (:A)-->() RETURN p", path), ScenarioOutcome::Passed);
        assert!(matches!(asked("MATCH p = (:A)--(:A) RETURN p", path), ScenarioOutcome::Failed(_)));
        let empty = "Then the result should be, in any order:\n      | l |\n      | [] |\n";
        assert_eq!(asked("MATCH (n) WHERE NOT (n)--() RETURN labels(n) AS l", empty), ScenarioOutcome::Passed);
        assert_eq!(asked("CREATE (n) RETURN labels(n) AS l", empty), ScenarioOutcome::Skipped);
        let fails = "Then a SyntaxError should be raised at compile time: UndefinedVariable\n";
        assert_eq!(asked("RETURN x", fails), ScenarioOutcome::Passed);
        assert!(matches!(asked("RETURN 1", fails), ScenarioOutcome::Failed(_)));
        assert!(matches!(asked("RETURN 1 +", fails), ScenarioOutcome::Failed(_)));
    }

    #[test]
    fn the_writer_follows_what_was_read() {
        let mut world = ScenarioGraph::new().unwrap();
        world
            .create("CREATE (a {v: 'start'}) WITH * UNWIND range(1, 3) AS i CREATE (a)-[:T {i: i}]->(:N {i: i + 1})")
            .unwrap();
        world.create("MATCH (n:N) WHERE n.i > 2 CREATE (n)-[:U]->(n), (n)-[:U]->(n)").unwrap();
        let answer =
            ask(&mut world, "MATCH (a)-[r:U]->(a) RETURN count(r) AS c, sum(a.i) AS s", &QueryParameters::new());
        let Answer::Rows { rows, .. } = answer else { panic!("no rows") };
        assert_eq!(rows[0].iter().map(ToString::to_string).collect::<Vec<_>>(), ["4", "14"]);
    }
}
