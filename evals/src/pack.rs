//! The `pack` suite: how long a context pack takes, and whether it stays within its token budget.

pub mod synthetic;

use crate::retrieval::{Project, Times};
use crate::{Fault, print};
use lukasa_search::count::count;
use serde_json::{Value, json};
use std::path::Path;

/// Profiles with the token budgets of their packs.
const PROFILES: [(&str, usize); 2] = [("compact", 300), ("balanced", 1_200)];
/// Tasks for each profile.
const TASKS: usize = 200;
/// Writes in one import.
const PART: usize = 50_000;

/// The source of the graph.
pub enum PackSource<'a> {
    Repository(&'a Path),
    Nodes(u64),
}

pub fn run(from: &PackSource<'_>, as_json: bool) -> Result<(), Fault> {
    let project = Project::new()?;
    match from {
        PackSource::Repository(path) => {
            let path = path.canonicalize()?;
            eprintln!("indexing …");
            project.call("index_directory", json!({"path": path, "branch": "main"}))?;
            project.engine.sources().add(project.scope(), &path)?;
        }
        PackSource::Nodes(nodes) => {
            eprintln!("writing {nodes} nodes …");
            let writes: Vec<_> = synthetic::writes(*nodes).collect();
            writes.chunks(PART).try_for_each(|part| project.import(part))?;
        }
    }
    let (tasks, nodes) = tasks(&project)?;
    for (profile, budget) in PROFILES {
        let mut times = Times::default();
        let mut tokens = Vec::new();
        for task in &tasks {
            let request = json!({"task": task, "profile": profile});
            let pack = times.take(tasks.len(), || project.call("context_pack", request.clone()))?;
            tokens.push(count(&pack.to_string()));
        }
        tokens.sort_unstable();
        let line = json!({"suite": "pack", "nodes": nodes, "profile": profile, "tasks": tasks.len(), "budget": budget,
            "p50_ms": times.percentile(50), "p95_ms": times.percentile(95), "tokens_p50": tokens.get(tokens.len() / 2),
            "tokens_max": tokens.last(), "over_budget": tokens.iter().filter(|n| **n > budget).count()});
        print(&line, as_json);
    }
    Ok(())
}

/// Tasks made from the name or the documentation of a symbol.
pub fn tasks(project: &Project) -> Result<(Vec<String>, usize), Fault> {
    let seen = project.see()?;
    let snapshot = &seen.look.snapshot;
    let nodes = snapshot.nodes();
    let kinds = ["Function", "Method", "Class", "Test"];
    let named: Vec<_> = nodes.iter().filter(|node| kinds.contains(&&**snapshot.type_name(**node))).collect();
    let step = (named.len() / TASKS).max(1);
    let mut tasks = Vec::new();
    for (at, node) in named.iter().step_by(step).take(TASKS).enumerate() {
        let full = snapshot.name(**node);
        let name = full.rsplit([':', '.', '/']).next().unwrap_or(&full);
        let got = project.call("get", json!({"ref": full}))?;
        let documented = ["doc", "summary"].iter().find_map(|field| text(&got, field)).unwrap_or_default();
        let sentence = documented.lines().next().unwrap_or_default().trim();
        tasks.push(match at % 3 {
            0 => format!("fix a bug in {name}"),
            1 if !sentence.is_empty() => sentence.to_owned(),
            1 => format!("where is {name} used"),
            _ => format!("change {name} so that it takes another parameter. {sentence}"),
        });
    }
    if tasks.is_empty() {
        return Err("no function or class was indexed".into());
    }
    Ok((tasks, nodes.len()))
}

/// A property of an answer of `get`, at any depth.
fn text(value: &Value, name: &str) -> Option<String> {
    match value {
        Value::Object(map) => match map.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            _ => map.values().find_map(|value| text(value, name)),
        },
        _ => None,
    }
}
