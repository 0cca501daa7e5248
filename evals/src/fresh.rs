//! The `fresh` suite: what a request costs in a new process, compared with the same request over MCP and with `git
//! grep`. No vectors are made, because that background work would be counted as part of the request.

use crate::{Fault, print};
use lukasa_testkit::Agent;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Requests of each operation.
const QUESTIONS: usize = 20;
/// Clock ticks per second in `/proc`, the same on every Linux.
const TICKS: f64 = 100.0;

/// Measures requests about a repository that `program` has indexed into a temporary store.
pub fn run(repo: &Path, program: &Path, as_json: bool) -> Result<(), Fault> {
    let (repo, program) = (repo.canonicalize()?, program.canonicalize()?);
    let folder = tempfile::tempdir()?;
    let asked = MeasuredProgram { repo: &repo, program: &program, store: folder.path() };
    eprintln!("indexing …");
    asked.command(&["index"]).output()?;
    let names = asked.functions()?;
    let mut rows: Vec<OperationTimes> = ASKED.iter().map(|asked| OperationTimes::new(asked, &names)).collect();
    // Without an owner of the store, each process has to open it.
    for row in &mut rows {
        asked.command(&[row.verb, &row.questions[0]]).output()?;
        for (question, key) in row.questions.iter().zip(&names) {
            row.alone.run(&mut asked.command(&[row.verb, question]))?;
            row.grep.run(Command::new("git").current_dir(&repo).args(["grep", "-nw", last(key)]))?;
        }
    }
    let mut agent = Agent::start(asked.command(&["mcp", "--no-watch", "--no-embed"]), "evals");
    let repository = repo.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    for row in &mut rows {
        row.ask(&mut agent)?;
        print(&row.line(&repository), as_json);
    }
    agent.leave();
    Ok(())
}

/// Operations with their commands and the argument for the question.
const ASKED: [(&str, &str, &str); 3] =
    [("context_pack", "pack", "task"), ("search", "search", "query"), ("get_callers", "callers", "symbol")];

struct OperationTimes {
    operation: &'static str,
    verb: &'static str,
    argument: &'static str,
    questions: Vec<String>,
    alone: ProcessTimes,
    grep: ProcessTimes,
    over_mcp: ProcessTimes,
}

impl OperationTimes {
    fn new(
        (operation, verb, argument): &(&'static str, &'static str, &'static str),
        names: &[String],
    ) -> OperationTimes {
        let questions = names.iter().map(|key| question(operation, key)).collect();
        let (alone, grep, over_mcp) = <(ProcessTimes, ProcessTimes, ProcessTimes)>::default();
        OperationTimes { operation, verb, argument, questions, alone, grep, over_mcp }
    }

    /// Measures requests to a running `lukasa mcp`. The first request is not counted, because it loads what the others
    /// use.
    fn ask(&mut self, agent: &mut Agent) -> Result<(), Fault> {
        let stat = format!("/proc/{}/stat", agent.id());
        for (at, question) in self.questions.iter().take(1).chain(&self.questions).enumerate() {
            let before = used(&stat, 13)?;
            let began = Instant::now();
            let call = json!({"name": self.operation, "arguments": {self.argument: question}});
            agent.request("tools/call", call).map_err(|e| e.to_string())?;
            if at > 0 {
                self.over_mcp.add(began, used(&stat, 13)? - before);
            }
        }
        Ok(())
    }

    fn line(&self, repository: &str) -> Value {
        let OperationTimes { alone, grep, over_mcp, .. } = self;
        json!({"suite": "fresh", "repo": repository, "operation": self.operation, "questions": self.questions.len(),
            "cpu_ms": alone.cpu(), "wall_p50_ms": alone.wall(50), "wall_p95_ms": alone.wall(95),
            "mcp_cpu_ms": over_mcp.cpu(), "mcp_wall_p50_ms": over_mcp.wall(50), "mcp_wall_p95_ms": over_mcp.wall(95),
            "ref_git_grep_cpu_ms": grep.cpu(), "ref_git_grep_wall_p50_ms": grep.wall(50)})
    }
}

struct MeasuredProgram<'a> {
    repo: &'a Path,
    program: &'a Path,
    store: &'a Path,
}

impl MeasuredProgram<'_> {
    /// The program, without the settings of this machine.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command.current_dir(self.repo).args(arguments).env("LUKASA_STORE", self.store.join("lukasa.db"));
        command.env("LUKASA_MODEL_URL", "off").env("HOME", self.store).env("XDG_RUNTIME_DIR", self.store);
        command.stderr(Stdio::null());
        command
    }

    /// Keys of functions, spread over the repository.
    fn functions(&self) -> Result<Vec<String>, Fault> {
        let query = "MATCH (f) WHERE f:Function OR f:Method RETURN f.key ORDER BY f.key";
        let output = self.command(&["cypher", query, "--limit", "10000", "--json"]).output()?;
        let answer: Value = serde_json::from_slice(&output.stdout)?;
        let rows = answer["rows"].as_array().ok_or("the index has no functions")?;
        let step = (rows.len() / QUESTIONS).max(1);
        Ok(rows.iter().step_by(step).take(QUESTIONS).filter_map(|row| row[0].as_str().map(str::to_owned)).collect())
    }
}

fn last(key: &str) -> &str {
    key.rsplit("::").next().unwrap_or(key).split('~').next().unwrap_or(key)
}

fn question(operation: &str, key: &str) -> String {
    match operation {
        "context_pack" => format!("{} gives the wrong result when its input is empty", last(key)),
        "search" => last(key).replace('_', " "),
        _ => key.to_owned(),
    }
}

/// Processor and wall time of requests.
#[derive(Default)]
struct ProcessTimes {
    cpu_s: f64,
    wall_ms: Vec<f64>,
}

impl ProcessTimes {
    fn add(&mut self, began: Instant, cpu_s: f64) {
        self.wall_ms.push(began.elapsed().as_secs_f64() * 1_000.0);
        self.cpu_s += cpu_s;
    }

    /// Runs a process to its end.
    fn run(&mut self, command: &mut Command) -> Result<(), Fault> {
        let before = used("/proc/self/stat", 15)?;
        let began = Instant::now();
        command.output()?;
        self.add(began, used("/proc/self/stat", 15)? - before);
        Ok(())
    }

    /// Mean per request, in milliseconds.
    fn cpu(&self) -> f64 {
        (self.cpu_s * 1_000.0 / self.wall_ms.len().max(1) as f64).round()
    }

    fn wall(&self, percent: usize) -> f64 {
        let mut all = self.wall_ms.clone();
        all.sort_by(f64::total_cmp);
        all.get((all.len() * percent / 100).min(all.len().saturating_sub(1))).map_or(0.0, |ms| ms.round())
    }
}

/// Seconds of user and system time in two fields of a `stat` file, counted from 0: 13 of the process, 15 of its
/// children.
fn used(stat: &str, field: usize) -> Result<f64, Fault> {
    let text = std::fs::read_to_string(stat)?;
    // The name of the program is in brackets and may contain spaces.
    let rest = text.rsplit_once(')').ok_or("not a stat file")?.1;
    let fields: Vec<f64> = rest.split_whitespace().map(|field| field.parse().unwrap_or_default()).collect();
    let both = fields.get(field - 2..field).ok_or("not a stat file")?;
    Ok(both.iter().sum::<f64>() / TICKS)
}
