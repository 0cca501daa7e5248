//! PyCG's micro-benchmark: folders with `callgraph.json`, edges by dotted names. Only edges within a case count.

use super::{Analysis, Case, Fault, folders_with, read_all};
use lukasa_code::facts::{DefKind, ROOT};
use lukasa_code::resolve::DefRef;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub fn cases(data: &Path, least: f64) -> Result<Vec<Case>, Fault> {
    let mut cases = Vec::new();
    for folder in folders_with(data, "callgraph.json")? {
        let files: Vec<(String, String)> =
            read_all(&folder)?.into_iter().filter(|(path, _)| path.ends_with(".py")).collect();
        let expected: BTreeMap<String, Vec<String>> =
            serde_json::from_str(&std::fs::read_to_string(folder.join("callgraph.json"))?)?;
        let analysis = Analysis::of(&files);
        let modules: BTreeSet<String> = files.iter().map(|(path, _)| module(path)).collect();
        let inside = |name: &str| modules.iter().any(|m| name == m || name.starts_with(&format!("{m}.")));
        let mut truth = BTreeSet::new();
        for (from, to) in &expected {
            for to in to {
                if inside(from) && inside(to) {
                    truth.insert((from.clone(), to.clone()));
                }
            }
        }
        let mut found = BTreeSet::new();
        for (from, to, _) in analysis.edges(least) {
            found.insert((name(&analysis, from), name(&analysis, to)));
        }
        let name = folder.strip_prefix(data)?.display().to_string();
        cases.push(Case { name, truth, found });
    }
    Ok(cases)
}

fn module(path: &str) -> String {
    let path = path.trim_end_matches(".py");
    path.strip_suffix("/__init__").unwrap_or(path).replace('/', ".")
}

fn name(analysis: &Analysis, gid: DefRef) -> String {
    let file = analysis.program.file(gid.file);
    let mut parts = Vec::new();
    let mut at = gid.def;
    while at != ROOT {
        let def = file.facts.def(at);
        if def.kind == DefKind::Lambda {
            // Numbered within the definition around them.
            let place = file
                .facts
                .defs
                .iter()
                .take(at.index())
                .filter(|d| d.kind == DefKind::Lambda && d.parent == def.parent)
                .count();
            parts.push(format!("<lambda{}>", place + 1));
        } else {
            parts.push(file.facts.name(def.name).to_owned());
        }
        at = def.parent;
    }
    parts.push(module(&file.path));
    parts.reverse();
    parts.join(".")
}
