//! The `graphalytics` suite: LDBC's validation graphs through store, projection and algorithms.

use crate::print;
use lukasa_graph::measures::{components, costs, distances};
use lukasa_graph::rank::{PageRankStop, pagerank};
use lukasa_graph::{Csr, Node, Projection, Snapshot};
use lukasa_model::batch::{PutObject, PutRelationship, Reference};
use lukasa_model::{Batch, Scope};
use lukasa_store::ledger::ViewSpec;
use lukasa_store::{Clock, Ledger, MemoryStore, SystemClock};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Fault = Box<dyn Error>;
/// LDBC's tolerance for ranks and costs.
const EPSILON: f64 = 1e-4;
/// Iterations of PageRank in LDBC's own validation tests, by graph; a `.properties` file next to the graph takes
/// precedence.
const PR_ITERATIONS: [(&str, usize); 3] = [("pr/dir", 14), ("pr/undir", 26), ("example/", 2)];
/// Iterations of LDBC's benchmark if neither names a number.
const PR_DEFAULT: usize = 10;

pub fn run(data: &Path, as_json: bool) -> Result<(), Fault> {
    let mut files = Vec::new();
    collect(data, &mut files)?;
    files.sort();
    let mut checked = 0;
    for output in &files {
        let Some(case) = Case::of(data, output, &files) else { continue };
        checked += 1;
        let line = match case.check() {
            Ok(wrong) => json!({"suite": "graphalytics", "algorithm": case.algorithm, "graph": case.graph,
                "ok": wrong.is_empty(), "wrong": wrong}),
            Err(e) => json!({"suite": "graphalytics", "algorithm": case.algorithm, "graph": case.graph,
                "ok": false, "wrong": [e.to_string()]}),
        };
        print(&line, as_json);
    }
    if checked == 0 {
        return Err(format!("no validation graphs in {}", data.display()).into());
    }
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Fault> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// One expected answer with its graph.
struct Case {
    algorithm: &'static str,
    graph: String,
    output: PathBuf,
    input: Input,
    directed: bool,
    iterations: usize,
}

enum Input {
    /// A vertex and its neighbours on each line.
    Lists(PathBuf),
    /// Vertices, and edges with weights.
    Edges(PathBuf, PathBuf),
}

impl Case {
    /// `pr/dir-output` belongs to `pr/dir-input`; `x-BFS` to `x-input`, or to `x.v` and `x.e`.
    fn of(data: &Path, output: &Path, files: &[PathBuf]) -> Option<Case> {
        let name = output.file_name()?.to_str()?;
        let folder = output.parent()?;
        let inside = folder.file_name()?.to_str()?;
        let (stem, word) = name.rsplit_once('-')?;
        let word = if word == "output" { inside.to_lowercase() } else { word.to_lowercase() };
        let algorithm = ["bfs", "pr", "wcc", "sssp"].into_iter().find(|a| *a == word)?;
        let there = |file: String| Some(folder.join(file)).filter(|f| files.contains(f));
        let edges = |stem: &str| there(format!("{stem}.v")).zip(there(format!("{stem}.e")));
        let weighted = || edges(stem).or_else(|| edges(&format!("{stem}-input"))).map(|(v, e)| Input::Edges(v, e));
        let lists = || there(format!("{stem}-input")).map(Input::Lists);
        let input = if algorithm == "sssp" { weighted() } else { lists().or_else(weighted) }?;
        let graph = output.strip_prefix(data).ok()?.with_file_name(stem).display().to_string();
        let properties = std::fs::read_to_string(folder.join(format!("{stem}.properties"))).unwrap_or_default();
        let configured =
            properties.lines().find_map(|l| l.split_once("pr.num-iterations")?.1.trim_matches([' ', '=']).parse().ok());
        let known = PR_ITERATIONS.iter().find(|(name, _)| graph.contains(name)).map(|(_, n)| *n);
        let iterations = configured.or(known).unwrap_or(PR_DEFAULT);
        Some(Case { algorithm, directed: !stem.contains("undir"), graph, output: output.into(), input, iterations })
    }

    /// What differs from the expected answer, the first few.
    fn check(&self) -> Result<Vec<String>, Fault> {
        let expected: BTreeMap<u64, String> = lines(&self.output)?
            .iter()
            .filter_map(|line| Some((line.first()?.parse().ok()?, line.get(1)?.clone())))
            .collect();
        let graph = Graph::load(&self.input, self.directed)?;
        let flat = graph.snapshot.flat();
        let number =
            |vertex: &u64| graph.dense.get(vertex).copied().ok_or(format!("vertex {vertex} is not in the graph"));
        let source = || {
            let zero = expected.iter().find(|(_, v)| v.parse() == Ok(0.0)).map(|(k, _)| *k);
            zero.ok_or("no vertex is at distance 0").and_then(|v| number(&v).map_err(|_| "the source is not there"))
        };
        let got: Vec<f64> = match self.algorithm {
            "bfs" => distances(&flat.out, source()?).iter().map(|d| d.map_or(i64::MAX as f64, f64::from)).collect(),
            "pr" => pagerank(&flat.out, &flat.into, 0.85, PageRankStop::After(self.iterations)),
            "sssp" => costs(&flat.out, &graph.costs, source()?),
            _ => components(flat).iter().map(|c| f64::from(*c)).collect(),
        };
        let mut wrong = Vec::new();
        let mut paired: HashMap<u64, f64> = HashMap::new();
        for (vertex, want) in &expected {
            let have = got[number(vertex)? as usize];
            let want: f64 = if want == "Infinity" { f64::INFINITY } else { want.parse()? };
            let fine = match self.algorithm {
                "bfs" => have == want,
                // Components may have any names, so only the groups are compared.
                "wcc" => *paired.entry(want as u64).or_insert(have) == have,
                _ => have == want || (have - want).abs() <= EPSILON * want.abs(),
            };
            if !fine && wrong.len() < 5 {
                wrong.push(format!("{vertex}: {have}, expected {want}"));
            }
        }
        let names: BTreeSet<u64> = paired.values().map(|c| *c as u64).collect();
        if names.len() < paired.len() {
            wrong.push("two components have become one".into());
        }
        Ok(wrong)
    }
}

/// A validation graph as a projection, with the numbers of its vertices.
struct Graph {
    snapshot: Arc<Snapshot>,
    dense: HashMap<u64, u32>,
    /// Weight of each entry of the outgoing lists.
    costs: Vec<f64>,
}

impl Graph {
    fn load(input: &Input, directed: bool) -> Result<Graph, Fault> {
        let mut vertices: BTreeSet<u64> = BTreeSet::new();
        let mut edges: Vec<(u64, u64, f64)> = Vec::new();
        match input {
            Input::Lists(path) => {
                for line in lines(path)? {
                    let numbers: Vec<u64> = line.iter().map(|w| w.parse()).collect::<Result<_, _>>()?;
                    vertices.extend(&numbers);
                    edges.extend(numbers.iter().skip(1).map(|to| (numbers[0], *to, 1.0)));
                }
            }
            Input::Edges(nodes, list) => {
                vertices.extend(lines(nodes)?.iter().filter_map(|l| l[0].parse::<u64>().ok()));
                for line in lines(list)? {
                    let (a, b) = (line[0].parse()?, line[1].parse()?);
                    let weight = line.get(2).map_or(Ok(1.0), |w| w.parse())?;
                    edges.push((a, b, weight));
                    if !directed {
                        edges.push((b, a, weight));
                    }
                }
            }
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(Arc::clone(&clock)));
        let ledger = Ledger::new(store, clock, Scope::new("evals", "graphalytics")?);
        let mut batch = Batch::on("main");
        batch.writes.extend(vertices.iter().map(|v| PutObject::new("Vertex", &v.to_string()).into()));
        let vertex = |v: &u64| Reference::exact("Vertex", &v.to_string());
        batch.writes.extend(edges.iter().map(|(a, b, weight)| {
            let put = PutRelationship::new("EDGE", vertex(a), vertex(b));
            PutRelationship { weight: Some(*weight), ..put }.into()
        }));
        ledger.commit(&batch)?;
        let view = ledger.view(&ViewSpec::default())?;
        let snapshot = Arc::clone(Projection::build(&ledger, &view, &mut |_, _| {})?.snapshot());
        let flat = snapshot.flat();
        let name = |node: Node| snapshot.key(node).unwrap_or_default().parse();
        let dense = (0..).zip(&flat.nodes).map(|(i, node)| Ok((name(*node)?, i))).collect::<Result<_, Fault>>()?;
        let costs: Vec<f64> = flat
            .nodes
            .iter()
            .flat_map(|node| snapshot.outgoing(*node).edges)
            .map(|edge| snapshot.weight(*edge).unwrap_or(1.0))
            .collect();
        let out: &Csr = &flat.out;
        assert_eq!(costs.len(), out.targets.len());
        Ok(Graph { dense, costs, snapshot: Arc::clone(&snapshot) })
    }
}

fn lines(path: &Path) -> Result<Vec<Vec<String>>, Fault> {
    let text = std::fs::read_to_string(path)?;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    Ok(text.lines().map(words).filter(|l| !l.is_empty()).collect())
}
