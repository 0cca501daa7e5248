//! Owners are killed during reads and writes of other processes.

use super::{NEVER, ask, open, place};
use lukasa_model::{ErrorCode, Scope};
use lukasa_server::{EngineHandle, EngineRole};
use lukasa_store::ledger::{Ledger, ViewSpec};
use lukasa_store::sqlite::Durability;
use lukasa_store::{SqliteStore, SystemClock, VersionFields};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const STORE: &str = "LUKASA_TEST_STORE";
const NAME: &str = "LUKASA_TEST_NAME";
const KILLS: usize = 5;
/// Far more than a takeover takes, to allow for a busy machine.
const TAKEN_OVER: Duration = Duration::from_secs(5);

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // If the reader is gone, this process is about to end.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// One of the processes: writes and reads until its input ends, and prints the outcome of each.
#[test]
#[ignore = "started by the test below, as a process of its own"]
fn agent() {
    let (store, name) = (PathBuf::from(std::env::var(STORE).unwrap()), std::env::var(NAME).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async move {
        let there = store.clone();
        let desk = EngineHandle::start(place(&store), move || {
            say("opened");
            open(&there)
        });
        let roles = desk.clone();
        tokio::spawn(async move {
            let mut role = EngineRole::Seeking;
            loop {
                role = roles.role_after(role).await;
                if role == EngineRole::Owner {
                    say(&format!("owner {}", now().as_nanos()));
                }
            }
        });
        for writer in ["a", "b"] {
            let (desk, name) = (desk.clone(), name.clone());
            tokio::spawn(async move {
                for i in 0.. {
                    let (key, began) = (format!("{name}:{writer}:{i}"), now().as_nanos());
                    match ask(&desk, "put", json!({"type": "Note", "key": key})).await {
                        Ok(_) => say(&format!("ack {key} {began}")),
                        Err(error) if error.code == ErrorCode::OwnerChanged => say(&format!("lost {key}")),
                        Err(error) => say(&format!("fault {} {error}", error.code)),
                    }
                }
            });
        }
        let reading = desk.clone();
        tokio::spawn(async move {
            loop {
                for (name, request) in [("log", json!({"limit": 5})), ("list", json!({"limit": 5}))] {
                    match ask(&reading, name, request).await {
                        Ok(_) => say("read"),
                        // Before the first write there is no project to read.
                        Err(error) if error.code == ErrorCode::UnknownProject => {}
                        Err(error) => say(&format!("fault {} {error}", error.code)),
                    }
                }
            }
        });
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().count());
        ended.await.unwrap();
    });
    // Work in progress ends with the process, as when an agent ends.
    std::process::exit(0);
}

struct Agent {
    name: String,
    child: Child,
}

struct Story {
    store: PathBuf,
    agents: Vec<Agent>,
    sender: Sender<(String, String)>,
    receiver: Receiver<(String, String)>,
    acked: BTreeSet<String>,
    owners: Vec<(String, Duration)>,
    opened: usize,
    reads: usize,
    lost: usize,
    faults: Vec<String>,
}

impl Story {
    fn start(&mut self, name: &str) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::agent", "--ignored", "--nocapture"])
            .envs([(STORE, self.store.as_os_str()), (NAME, name.as_ref())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, sender, named) = (child.stdout.take().unwrap(), self.sender.clone(), name.to_string());
        std::thread::spawn(move || {
            let mut out = BufReader::new(out);
            let mut line = String::new();
            // An incomplete line is ignored.
            while out.read_line(&mut line).is_ok_and(|bytes| bytes > 0) && line.ends_with('\n') {
                let _ = sender.send((named.clone(), std::mem::take(&mut line)));
            }
        });
        self.agents.push(Agent { name: name.into(), child });
    }

    /// Waits until every process has an acknowledged write that it started after `after`, and until there have been
    /// `owners` owners. Returns when the first write was acknowledged.
    fn until_all_write(&mut self, after: Duration, owners: usize) -> Duration {
        let mut names: BTreeSet<String> = self.agents.iter().map(|agent| agent.name.clone()).collect();
        let mut first = None;
        while !names.is_empty() || self.owners.len() < owners {
            let (name, line) = self.receiver.recv_timeout(NEVER).expect("some process goes on");
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["ack", _, began] = words[..]
                && Duration::from_nanos(began.parse().unwrap()) > after
            {
                first.get_or_insert_with(now);
                names.remove(&name);
            }
            self.note(name, &words);
        }
        first.unwrap()
    }

    fn note(&mut self, name: String, words: &[&str]) {
        match words {
            ["ack", key, _] => assert!(self.acked.insert((*key).into()), "{key} twice"),
            ["owner", at] => self.owners.push((name, Duration::from_nanos(at.parse().unwrap()))),
            ["opened"] => self.opened += 1,
            ["read"] => self.reads += 1,
            ["lost", _] => self.lost += 1,
            ["fault", ..] => self.faults.push(words.join(" ")),
            // Output of the test harness.
            _ => {}
        }
    }

    /// Kills the owner. Returns the time of the kill.
    fn kill_owner(&mut self, lock: &Path) -> Duration {
        let note: Value = serde_json::from_str(&std::fs::read_to_string(lock).unwrap()).unwrap();
        let owner = self.agents.iter().position(|agent| note["pid"] == agent.child.id()).expect("an owner");
        let mut owner = self.agents.remove(owner);
        let killed = now();
        owner.child.kill().unwrap();
        owner.child.wait().unwrap();
        killed
    }
}

#[test]
fn owners_are_killed_and_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (store, lock) = (folder.path().join("lukasa.db"), folder.path().join("lukasa.db.owner"));
    let (sender, receiver) = channel();
    let mut story = Story {
        store: store.clone(),
        agents: vec![],
        sender,
        receiver,
        acked: BTreeSet::new(),
        owners: vec![],
        opened: 0,
        reads: 0,
        lost: 0,
        faults: vec![],
    };
    for name in ["p0", "p1", "p2", "p3"] {
        story.start(name);
    }
    story.until_all_write(Duration::ZERO, 1);
    for kill in 0..KILLS {
        let killed = story.kill_owner(&lock);
        let first = story.until_all_write(killed, kill + 2);
        let (name, owner) = story.owners.last().unwrap();
        assert!(*owner > killed, "{name} was the owner before the last one ended");
        println!(
            "kill {kill}: {name} owns the store after {} ms, writes are acknowledged again after {} ms",
            (*owner - killed).as_millis(),
            (first - killed).as_millis()
        );
        assert!(first - killed < TAKEN_OVER);
        story.start(&format!("p{}", kill + 4));
        story.until_all_write(killed, kill + 2);
        // Only owners open engines, and each starts after its predecessor has ended.
        assert_eq!((story.owners.len(), story.opened), (kill + 2, kill + 2), "{:?}", story.owners);
    }
    for agent in &mut story.agents {
        drop(agent.child.stdin.take());
    }
    for mut agent in std::mem::take(&mut story.agents) {
        agent.child.wait().unwrap();
    }
    story.sender = channel().0;
    while let Ok((name, line)) = story.receiver.recv_timeout(NEVER) {
        story.note(name, &line.split_whitespace().collect::<Vec<_>>());
    }
    println!(
        "{} writes acknowledged, {} in flight when their owner was killed, {} reads",
        story.acked.len(),
        story.lost,
        story.reads
    );
    assert_eq!(story.faults, Vec::<String>::new(), "no read fails, and writes only for a change of owner");
    assert!(story.reads > 0);

    let clock = Arc::new(SystemClock);
    let store = Arc::new(SqliteStore::open(&store, clock.clone(), Durability::Full).unwrap());
    let ledger = Ledger::new(store, clock, Scope::new("local", "shop").unwrap());
    let rows = ledger.stream_view(&ledger.view(&ViewSpec::default()).unwrap(), VersionFields::Content).unwrap();
    let there: BTreeSet<String> = rows.filter_map(|row| row.unwrap().thing.key.clone()).map(String::from).collect();
    let gone: Vec<_> = story.acked.difference(&there).collect();
    assert!(gone.is_empty(), "acknowledged and gone: {gone:?}");
    ledger.verify(&mut |_, _| {}).unwrap();
}
