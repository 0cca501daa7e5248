//! The `serve` suite: many concurrent clients of one server, with searches, packs, walks and writes.

use crate::pack::{synthetic, tasks};
use crate::retrieval::{Project, Times};
use crate::{Fault, cpu_seconds, print, round, status_mb};
use lukasa_engine::Audit;
use lukasa_engine::audit::{AuditKey, AuditedOperations};
use lukasa_server::auth::Authenticator;
use lukasa_server::auth::guard::GuardRules;
use lukasa_server::http::{ClientLimits, Site, serve};
use lukasa_server::mcp::Toolsets;
use lukasa_server::{ProjectFolders, RequestGate, RequestLimits};
use lukasa_store::SystemClock;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Writes in one import.
const PART: usize = 50_000;
/// Operations that a client calls, one after the other.
const MIX: [&str; 10] =
    ["search", "traverse", "context_pack", "traverse", "put", "search", "traverse", "get_callers", "search", "put"];

/// The operations that only read.
const READS: [&str; 4] = ["search", "traverse", "context_pack", "get_callers"];
/// Seconds between two measurements of the memory.
const MEMORY_EVERY_S: u64 = 10;

/// Counts and times of requests of one kind.
#[derive(Default)]
struct Counts {
    requests: u64,
    errors: u64,
    rate_limited: u64,
    times: Times,
}

impl Counts {
    fn join(&mut self, other: &Counts) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.rate_limited += other.rate_limited;
        self.times.join(&other.times);
    }
}

pub fn run(clients: usize, seconds: u64, nodes: u64, as_json: bool) -> Result<(), Fault> {
    let mut project = Project::new()?;
    // As in a server, every request is recorded in the audit, and a write is acknowledged when its entry is durable.
    let key = Arc::new(AuditKey::new(&[7; 32])?);
    let engine = project.engine.clone();
    let audit =
        Audit::new(Arc::clone(engine.store()), Arc::new(SystemClock), "evals", key, AuditedOperations::default());
    project.engine = engine.with_audit(audit);
    eprintln!("writing {nodes} nodes …");
    let writes: Vec<_> = synthetic::writes(nodes).collect();
    writes.chunks(PART).try_for_each(|part| project.import(part))?;
    drop(writes);
    let (tasks, _) = tasks(&project)?;
    let keys = keys(&project)?;
    let (runtime, address) = started(&project)?;
    // Loads the graph and the indexes before the measurement.
    let mut first = Client::open(address)?;
    for name in MIX {
        first.ask(name, &request(name, 0, &tasks, &keys))?;
    }
    let rss_start = status_mb("VmRSS:");
    eprintln!("{clients} clients for {seconds} s at {address} …");
    let ended = AtomicBool::new(false);
    let all: Mutex<BTreeMap<&str, Counts>> = Mutex::default();
    let mut memory = Vec::new();
    let (began, cpu) = (Instant::now(), cpu_seconds());
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (ended, all, tasks, keys) = (&ended, &all, &tasks, &keys);
            scope.spawn(move || work(client, address, ended, all, tasks, keys));
        }
        while began.elapsed().as_secs() < seconds {
            std::thread::sleep(Duration::from_secs(MEMORY_EVERY_S.min(seconds - began.elapsed().as_secs())));
            memory.push(status_mb("VmRSS:"));
        }
        ended.store(true, Ordering::Relaxed);
    });
    let took = began.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu;
    let rss_end = status_mb("VmRSS:");
    runtime.shutdown_background();
    let all = all.into_inner().map_err(|_| "a client broke off")?;
    let (mut whole, mut reads) = (Counts::default(), Counts::default());
    for (name, went) in &all {
        whole.join(went);
        if READS.contains(name) {
            reads.join(went);
        }
        print(&line(name, went, clients, nodes, took), as_json);
    }
    print(&line("reads", &reads, clients, nodes, took), as_json);
    let mut last = line("all", &whole, clients, nodes, took);
    // Processor time of server and clients together, which does not depend on other load of the machine.
    last["cpu_ms_each"] = json!(round(cpu * 1e3 / whole.requests.max(1) as f64));
    last["rss_start_mb"] = json!(rss_start);
    last["rss_every_10s_mb"] = json!(memory);
    last["rss_end_mb"] = json!(rss_end);
    print(&last, as_json);
    Ok(())
}

fn line(operation: &str, went: &Counts, clients: usize, nodes: u64, took: f64) -> Value {
    json!({"suite": "serve", "operation": operation, "clients": clients, "nodes": nodes, "requests": went.requests,
        "errors": went.errors, "rate_limited": went.rate_limited, "per_s": (went.requests as f64 / took).round(),
        "p50_ms": went.times.percentile(50), "p95_ms": went.times.percentile(95), "p99_ms": went.times.percentile(99)})
}

/// A server on any free port of this machine.
fn started(project: &Project) -> Result<(tokio::runtime::Runtime, SocketAddr), Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let site = Site {
        front: RequestGate::new(project.engine.clone(), RequestLimits::default(), ProjectFolders::default()),
        door: Arc::new(Authenticator::open(project.scope().clone())),
        rates: None,
        guard: GuardRules { open: true, ..GuardRules::default() },
        toolsets: Toolsets::default(),
        clock: Arc::new(SystemClock),
        failures: None,
        patience: ClientLimits::default(),
        record: project.scope().clone(),
        checks: vec![],
    };
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    runtime.spawn(serve(site, listener, std::future::pending()));
    Ok((runtime, address))
}

/// Keys of some functions.
fn keys(project: &Project) -> Result<Vec<String>, Fault> {
    let seen = project.see()?;
    let snapshot = &seen.look.snapshot;
    let nodes = snapshot.nodes();
    let functions = nodes.iter().filter(|node| &**snapshot.type_name(**node) == "Function");
    Ok(functions.step_by(97).map(|node| snapshot.name(*node)).collect())
}

fn request(name: &str, turn: usize, tasks: &[String], keys: &[String]) -> Value {
    let (task, key) = (&tasks[turn % tasks.len()], &keys[turn % keys.len()]);
    match name {
        "search" => json!({"query": task.chars().take(200).collect::<String>(), "limit": 10}),
        "context_pack" => json!({"task": task}),
        "traverse" => json!({"roots": [key], "max_depth": 2}),
        "get_callers" => json!({"ref": key}),
        _ => json!({"type": "Note", "key": format!("note-{}", turn % 5_000), "title": format!("Note {turn}")}),
    }
}

fn work(
    client: usize,
    address: SocketAddr,
    ended: &AtomicBool,
    all: &Mutex<BTreeMap<&'static str, Counts>>,
    tasks: &[String],
    keys: &[String],
) {
    let mut own: BTreeMap<&'static str, Counts> = BTreeMap::new();
    let mut connection = Client::open(address);
    for turn in 0.. {
        if ended.load(Ordering::Relaxed) {
            break;
        }
        let name = MIX[(turn + client) % MIX.len()];
        let asked = request(name, turn * 31 + client * 7, tasks, keys);
        let began = Instant::now();
        let status = match &mut connection {
            Ok(connection) => connection.ask(name, &asked).map(|(status, _)| status),
            Err(_) => Err("no connection".into()),
        };
        let went = own.entry(name).or_default();
        went.requests += 1;
        match status {
            Ok(200) => went.times.add(began.elapsed().as_secs_f64() * 1e3),
            Ok(429) => {
                went.rate_limited += 1;
                std::thread::sleep(Duration::from_millis(100));
            }
            other => {
                if went.errors == 0 {
                    eprintln!("{name}: {other:?}");
                }
                went.errors += 1;
                connection = Client::open(address);
            }
        }
    }
    if let Ok(mut all) = all.lock() {
        for (name, went) in own {
            all.entry(name).or_default().join(&went);
        }
    }
}

/// A kept-alive connection.
struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn open(address: SocketAddr) -> Result<Client, Fault> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(130)))?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// The status and the body of an answer.
    fn ask(&mut self, operation: &str, request: &Value) -> Result<(u16, Vec<u8>), Fault> {
        let body = request.to_string();
        let head = format!(
            "POST /v1/{operation} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut whole = head.into_bytes();
        whole.extend(body.into_bytes());
        self.stream.get_mut().write_all(&whole)?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or("no status")?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        Ok((status, answer))
    }
}
