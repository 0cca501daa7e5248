//! The `community` suite: communities of the graphs in a folder, compared with the true groups if there is a `.truth`
//! file.

use crate::graph::peers::script;
use crate::print;
use lukasa_graph::community::{Algorithm, CommunityOptions, Undirected, detect};
use serde_json::json;
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Fault = Box<dyn Error>;

pub fn run(data: &Path, peers: bool, as_json: bool) -> Result<(), Fault> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(data)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    files.retain(|f| matches!(f.extension().and_then(|e| e.to_str()), Some("gml" | "edges" | "txt")));
    files.sort();
    if files.is_empty() {
        return Err(format!("no .gml or .edges files in {}", data.display()).into());
    }
    for file in &files {
        let text = std::fs::read_to_string(file)?;
        let graph = if file.extension().is_some_and(|e| e == "gml") { gml(&text)? } else { edge_list(&text)? };
        let truth = truth(&file.with_extension("truth"), &graph)?;
        for algorithm in [Algorithm::Leiden, Algorithm::Louvain] {
            let start = Instant::now();
            let undirected = Undirected::new(graph.names.len(), graph.edges.iter().copied());
            let found = detect(&undirected, &CommunityOptions { algorithm, ..CommunityOptions::default() });
            let ms = start.elapsed().as_secs_f64() * 1e3;
            let again = detect(&undirected, &CommunityOptions { algorithm, ..CommunityOptions::default() });
            let line = json!({
                "suite": "community", "engine": "lukasa",
                "graph": file.file_stem().and_then(|s| s.to_str()),
                "algorithm": algorithm,
                "modularity": (found.modularity * 1e5).round() / 1e5,
                "communities": found.count,
                "nmi": truth.as_ref().map(|t| (nmi(&found.community, t) * 1e4).round() / 1e4),
                "all_connected": undirected.all_connected(&found.community),
                "same_again": found == again,
                "ms": crate::round(ms),
            });
            print(&line, as_json);
        }
    }
    if peers {
        for line in script(&["--community".into(), data.display().to_string()])? {
            print(&line, as_json);
        }
    }
    Ok(())
}

/// Names of nodes in order of appearance, and edges between their numbers.
#[derive(Default)]
struct InputGraph {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    edges: Vec<(u32, u32, f64)>,
}

impl InputGraph {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }
}

fn edge_list(text: &str) -> Result<InputGraph, Fault> {
    let mut given = InputGraph::default();
    for line in text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with(['#', '%'])) {
        let words: Vec<&str> = line.split([' ', '\t', ',']).filter(|w| !w.is_empty()).collect();
        let [a, b, rest @ ..] = words.as_slice() else { return Err(format!("not an edge: {line}").into()) };
        let weight = rest.first().map_or(Ok(1.0), |w| w.parse())?;
        let (a, b) = (given.number(a), given.number(b));
        given.edges.push((a, b, weight));
    }
    Ok(given)
}

/// The part of GML that graphs of this kind use: nodes with ids, edges with source, target and perhaps a value.
fn gml(text: &str) -> Result<InputGraph, Fault> {
    let mut given = InputGraph::default();
    let mut words = text.split_whitespace();
    let mut inside = "";
    let (mut source, mut target, mut weight) = (None, None, 1.0);
    while let Some(word) = words.next() {
        match (inside, word) {
            (_, "node" | "edge") => {
                inside = word;
                (source, target, weight) = (None, None, 1.0);
            }
            ("node", "id") => drop(given.number(words.next().unwrap_or_default())),
            ("edge", "source") => source = words.next(),
            ("edge", "target") => target = words.next(),
            ("edge", "value" | "weight") => weight = words.next().unwrap_or("1").parse()?,
            ("edge", "]") => {
                let (Some(a), Some(b)) = (source, target) else { return Err("an edge without ends".into()) };
                let (a, b) = (given.number(a), given.number(b));
                given.edges.push((a, b, weight));
                inside = "";
            }
            ("node", "]") => inside = "",
            _ => {}
        }
    }
    Ok(given)
}

fn truth(path: &Path, graph: &InputGraph) -> Result<Option<Vec<u32>>, Fault> {
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(None) };
    let mut groups: HashMap<String, u32> = HashMap::new();
    let mut truth = vec![u32::MAX; graph.names.len()];
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(node), Some(group)) = (words.next(), words.next()) else { continue };
        let next = groups.len() as u32;
        let group = *groups.entry(group.into()).or_insert(next);
        if let Some(number) = graph.numbers.get(node) {
            truth[*number as usize] = group;
        }
    }
    if truth.contains(&u32::MAX) {
        return Err(format!("{}: not every node has a group", path.display()).into());
    }
    Ok(Some(truth))
}

/// Normalised mutual information, by the arithmetic mean of the entropies.
fn nmi(a: &[u32], b: &[u32]) -> f64 {
    let n = a.len() as f64;
    let count = |list: &[u32]| {
        let mut counts: HashMap<u32, f64> = HashMap::new();
        list.iter().for_each(|c| *counts.entry(*c).or_default() += 1.0);
        counts
    };
    let entropy = |counts: &HashMap<u32, f64>| -> f64 { counts.values().map(|c| -(c / n) * (c / n).ln()).sum() };
    let (left, right) = (count(a), count(b));
    let mut both: HashMap<(u32, u32), f64> = HashMap::new();
    a.iter().zip(b).for_each(|(x, y)| *both.entry((*x, *y)).or_default() += 1.0);
    let mutual: f64 = both.iter().map(|((x, y), c)| c / n * (n * c / (left[x] * right[y])).ln()).sum();
    let mean = (entropy(&left) + entropy(&right)) / 2.0;
    if mean == 0.0 { 1.0 } else { mutual / mean }
}
