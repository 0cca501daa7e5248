//! The `claims` suite: agents in several processes compete for the same targets over MCP, some processes are killed,
//! and the log shows whether a target was ever held twice or left claimed.

use crate::retrieval::Times;
use crate::{Fault, print};
use lukasa_model::claims::{BOARD, held_in};
use lukasa_model::{Reference, Scope};
use lukasa_store::ledger::ViewSpec;
use lukasa_store::sqlite::Durability;
use lukasa_store::{Ledger, SqliteStore, Store, SystemClock, VersionFields};
use lukasa_testkit::TestDatabase;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

pub struct ClaimOptions {
    pub agents: u64,
    pub processes: u64,
    pub targets: u64,
    /// `sqlite`, `postgres`, or the URL of a PostgreSQL superuser.
    pub backend: String,
    /// Seconds that claims of a killed process may last.
    pub grace: u64,
    pub json: bool,
}

/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Tries of one request: while another process takes over, a request may fail with an unknown outcome.
const TRIES: usize = 5;
/// One in three won claims is released at once, so that others get the target.
const RELEASED: u64 = 3;

/// Counts of one agent, or of all.
#[derive(Default)]
struct Counts {
    attempts: u64,
    won: u64,
    lost: u64,
    released: u64,
    /// Conflicts without holder, intent or time; `untold` in the output.
    unexplained: u64,
    errors: BTreeMap<String, u64>,
    times: Times,
}

pub fn run(ask: &ClaimOptions) -> Result<(), Fault> {
    let program = program()?;
    let folder = tempfile::tempdir()?;
    let database = match ask.backend.as_str() {
        "sqlite" => None,
        "postgres" => {
            let url = std::env::var("LUKASA_TEST_POSTGRES")
                .map_err(|_| "no server: run it as `tools/with-postgres lukasa-evals …`, or give a URL")?;
            Some(TestDatabase::on(&url))
        }
        url => Some(TestDatabase::on(url)),
    };
    let place = match &database {
        Some(database) => database.app_url.clone(),
        None => folder.path().join("lukasa.db").display().to_string(),
    };
    let targets: Vec<String> = (0..ask.targets).map(target).collect();
    let count = ask.processes.max(1);
    let mut processes = Vec::new();
    for _ in 0..count {
        processes.push(McpProcess::start(&program, folder.path(), &place, ask.grace)?);
        if processes.len() == 1 {
            // The first write creates the project.
            processes[0].call("put", json!({"type": "Note", "key": "begin"}))?;
        }
    }
    // A quarter is killed midway, including the first process, which owns the engine of an SQLite store.
    let doomed: BTreeSet<u64> = (0..(count / 4).max(u64::from(count > 1))).map(|n| n * 4 % count).collect();
    eprintln!(
        "{} agents in {count} processes compete for {} targets; {} are killed …",
        ask.agents,
        ask.targets,
        doomed.len()
    );
    let progress = AtomicU64::new(0);
    let half = ask.agents * ask.targets / 2;
    let began = Instant::now();
    let counts: Mutex<Counts> = Mutex::default();
    std::thread::scope(|scope| {
        for agent in 0..ask.agents {
            let (processes, doomed, targets, progress, counts) = (&processes, &doomed, &targets, &progress, &counts);
            scope.spawn(move || {
                let number = agent % count;
                let own =
                    race(&processes[number as usize], agent, number, targets, doomed.contains(&number), progress, half);
                if let Ok(mut all) = counts.lock() {
                    all.join(own);
                }
            });
        }
        let (processes, doomed, progress) = (&processes, &doomed, &progress);
        scope.spawn(move || {
            while progress.load(Ordering::Relaxed) < half && began.elapsed() < Duration::from_secs(1_800) {
                std::thread::sleep(Duration::from_millis(5));
            }
            doomed.iter().for_each(|number| processes[*number as usize].kill());
        });
    });
    let took = began.elapsed().as_secs_f64();
    let counts = counts.into_inner().map_err(|_| "an agent panicked")?;
    let dead = |agent: &str| doomed.iter().any(|number| agent.ends_with(&format!("@{number}")));
    let left_before = active(&processes, &doomed)?.iter().filter(|agent| dead(agent)).count();
    eprintln!("waiting for {} s of grace …", ask.grace);
    let grace = Duration::from_secs(ask.grace);
    // One missed confirmation of the connection, the grace time, and the next check.
    std::thread::sleep(grace + grace / 2 + Duration::from_secs(3));
    let orphaned = active(&processes, &doomed)?.iter().filter(|agent| dead(agent)).count();
    processes.iter().for_each(McpProcess::end);
    let store: Arc<dyn Store> = match &database {
        None => Arc::new(SqliteStore::open(Path::new(&place), Arc::new(SystemClock), Durability::Full)?),
        Some(database) => Arc::new(database.open(None)?),
    };
    let ledger = Ledger::new(store, Arc::new(SystemClock), Scope::new("local", "claims")?);
    let (states, double_held) = by_the_log(&ledger)?;
    let reasons = reasons(&ledger)?;
    print(
        &json!({
            "suite": "claims", "backend": if database.is_some() { "postgres" } else { "sqlite" },
            "agents": ask.agents, "processes": count, "targets": ask.targets, "killed": doomed.len(),
            "attempts": counts.attempts, "won": counts.won, "lost": counts.lost, "released": counts.released,
            "untold": counts.unexplained, "double_held": double_held, "orphaned": orphaned, "orphans_before_grace": left_before,
            "board_states": states, "ended_by_reason": reasons, "errors": counts.errors,
            "p50_ms": counts.times.percentile(50), "p95_ms": counts.times.percentile(95), "took_s": (took * 10.0).round() / 10.0,
            "grace_s": ask.grace,
        }),
        ask.json,
    );
    Ok(())
}

/// The `lukasa` program next to this one.
fn program() -> Result<PathBuf, Fault> {
    let own = std::env::current_exe()?;
    let program = own.with_file_name(if cfg!(windows) { "lukasa.exe" } else { "lukasa" });
    match program.is_file() {
        true => Ok(program),
        false => {
            let message = format!(
                "`{}` is not there; build it with `cargo build -p lukasa`, in the same profile",
                program.display()
            );
            Err(message.into())
        }
    }
}

/// Files, functions within some of them, tasks and features.
fn target(number: u64) -> String {
    match number % 10 {
        0..6 => format!("src/part{}/f{number}.rs", number % 7),
        6 | 7 => format!("src/part{}/f{}.rs::work", (number - 6) % 7, number - 6),
        8 => format!("task:{number}"),
        _ => format!("feature:{number}"),
    }
}

/// One agent claims all targets, in a random order.
fn race(
    process: &McpProcess,
    agent: u64,
    number: u64,
    targets: &[String],
    doomed: bool,
    progress: &AtomicU64,
    half: u64,
) -> Counts {
    let name = format!("agent-{agent}@{number}");
    let mut counts = Counts::default();
    let mut dice = (agent + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut order: Vec<&String> = targets.iter().collect();
    for place in (1..order.len()).rev() {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        order.swap(place, (dice % (place as u64 + 1)) as usize);
    }
    for target in order {
        let request = json!({"target_id": target, "intent": format!("work of {name}"), "agent_id": name, "new": true});
        let began = Instant::now();
        let answer = (0..TRIES).find_map(|_| match process.call("agent_claim", request.clone()) {
            Ok(answer) => Some(answer),
            Err(error) => {
                *counts.errors.entry(error.to_string()).or_default() += 1;
                None
            }
        });
        if process.is_dead() && doomed {
            return counts;
        }
        let Some(answer) = answer else { continue };
        counts.attempts += 1;
        counts.times.add(began.elapsed().as_secs_f64() * 1e3);
        progress.fetch_add(1, Ordering::Relaxed);
        if answer["status"] == "ok" {
            counts.won += 1;
            // Agents that will be killed keep their claims.
            if counts.won.is_multiple_of(RELEASED) && !(doomed && progress.load(Ordering::Relaxed) > half / 2) {
                let request = json!({"claim_id": answer["claim_id"], "agent_id": name});
                match process.call("agent_release", request) {
                    Ok(_) => counts.released += 1,
                    Err(error) => *counts.errors.entry(error.to_string()).or_default() += 1,
                }
            }
        } else {
            counts.lost += 1;
            let conflict = &answer["conflict"];
            let is_explained = ["agent_id", "intent", "since"].iter().all(|field| conflict[*field].is_string());
            counts.unexplained += u64::from(!is_explained || conflict["agent_id"] == name.as_str());
        }
    }
    counts
}

impl Counts {
    fn join(&mut self, other: Counts) {
        self.attempts += other.attempts;
        self.won += other.won;
        self.lost += other.lost;
        self.released += other.released;
        self.unexplained += other.unexplained;
        self.times.join(&other.times);
        for (error, count) in other.errors {
            *self.errors.entry(error).or_default() += count;
        }
    }
}

/// The agent of each held claim, from a process that was not killed.
fn active(processes: &[McpProcess], doomed: &BTreeSet<u64>) -> Result<Vec<String>, Fault> {
    let living = (0..processes.len()).find(|number| !doomed.contains(&(*number as u64)));
    let process = living.and_then(|number| processes.get(number)).ok_or("every process was killed")?;
    let answer = process.call("coordination_overview", json!({"limit": 1, "profile": "debug"}))?;
    let agents = answer["agent_summary"].as_array().cloned().unwrap_or_default();
    let claims = agents.iter().flat_map(|agent| {
        let count = agent["claim_count"].as_u64().unwrap_or(0) as usize;
        std::iter::repeat_n(agent["agent_id"].as_str().unwrap_or_default().to_owned(), count)
    });
    Ok(claims.collect())
}

/// The number of versions of all boards, and in how many of them two agents hold the same target.
fn by_the_log(ledger: &Ledger) -> Result<(u64, u64), Fault> {
    let view = ledger.view(&ViewSpec::default())?;
    let (mut states, mut double) = (0, 0);
    for board in ledger.states_with_prefix(&view, Some(BOARD), "", VersionFields::Header)? {
        let (_, history) = ledger.history(&view, &Reference::Id(board.thing.id), false)?;
        for entry in history {
            states += 1;
            let held = held_in(&entry.statement.parsed()?)?;
            let clash = held.iter().enumerate().any(|(at, one)| {
                held[at + 1..]
                    .iter()
                    .any(|other| one.agent_id != other.agent_id && one.at().relation(&other.at()).is_some())
            });
            double += u64::from(clash);
        }
    }
    Ok((states, double))
}

/// Claims by the reason why they ended; `held` for the others.
fn reasons(ledger: &Ledger) -> Result<BTreeMap<String, u64>, Fault> {
    let view = ledger.view(&ViewSpec::default())?;
    let mut reasons = BTreeMap::new();
    for claim in ledger.states_with_prefix(&view, Some("Claim"), "claim:", VersionFields::Content)? {
        let Some(statement) = claim.statement else { continue };
        let content = statement.parsed()?;
        let reason = content.properties.get("invalidation_reason").and_then(Value::as_str);
        *reasons.entry(reason.unwrap_or("held").to_owned()).or_default() += 1;
    }
    Ok(reasons)
}

/// A process of `lukasa mcp` that several agents share.
struct McpProcess {
    child: Mutex<Child>,
    input: Mutex<ChildStdin>,
    waiting: Arc<Mutex<PendingReplies>>,
    next: AtomicU64,
}

#[derive(Default)]
struct PendingReplies {
    ended: bool,
    by_id: HashMap<u64, mpsc::Sender<Value>>,
}

impl McpProcess {
    fn start(program: &Path, folder: &Path, store: &str, grace: u64) -> Result<McpProcess, Fault> {
        let mut child = Command::new(program)
            .args(["--store", store, "--project", "claims", "mcp", "--no-watch"])
            .current_dir(folder)
            .env("XDG_RUNTIME_DIR", folder)
            .env("LUKASA_CONFIG", "")
            .env("HOME", folder)
            .env("LUKASA_CLAIM_GRACE_SECONDS", grace.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("the process has no input")?;
        let output = child.stdout.take().ok_or("the process has no output")?;
        let waiting: Arc<Mutex<PendingReplies>> = Arc::default();
        let answers = Arc::clone(&waiting);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
                let Some(id) = message["id"].as_u64() else { continue };
                let waiter = answers.lock().ok().and_then(|mut waiting| waiting.by_id.remove(&id));
                if let Some(waiter) = waiter {
                    // The receiver is gone if the caller no longer waits.
                    let _ = waiter.send(message);
                }
            }
            if let Ok(mut waiting) = answers.lock() {
                waiting.ended = true;
                waiting.by_id.clear();
            }
        });
        let process =
            McpProcess { child: Mutex::new(child), input: Mutex::new(input), waiting, next: AtomicU64::new(1) };
        let about = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "evals", "version": "1"}});
        process.request("initialize", about)?;
        process.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(process)
    }

    fn send(&self, message: &Value) -> Result<(), Fault> {
        let mut input = self.input.lock().map_err(|_| "an agent panicked")?;
        writeln!(input, "{message}")?;
        Ok(input.flush()?)
    }

    fn request(&self, method: &str, params: Value) -> Result<Value, Fault> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (send, receive) = mpsc::channel();
        {
            let mut waiting = self.waiting.lock().map_err(|_| "an agent panicked")?;
            if waiting.ended {
                return Err("the process has ended".into());
            }
            waiting.by_id.insert(id, send);
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let answer = receive.recv_timeout(ANSWER_TIMEOUT).map_err(|_| "the process has ended")?;
        match answer.get("error") {
            Some(error) => Err(format!("{method}: {error}").into()),
            None => Ok(answer["result"].clone()),
        }
    }

    fn call(&self, tool: &str, arguments: Value) -> Result<Value, Fault> {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}))?;
        if result["isError"] == true {
            let code = result["structuredContent"]["errorCode"].as_str().unwrap_or("error");
            return Err(format!("{tool}: {code}").into());
        }
        Ok(result["structuredContent"]["data"].clone())
    }

    fn is_dead(&self) -> bool {
        self.waiting.lock().map_or(true, |waiting| waiting.ended)
    }

    /// At once, as a machine that loses its power.
    fn kill(&self) {
        if let Ok(mut child) = self.child.lock() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn end(&self) {
        self.kill();
    }
}

impl Drop for McpProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
