//! Other engines on the same graph, measured by a Python script.

use super::synthetic::{SyntheticGraph, TYPES};
use lukasa_graph::rank::{DAMPING, ITERATIONS, REVERSE};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Exports the graph and returns the lines that the script prints.
pub fn run(
    made: &SyntheticGraph,
    starts: &[u32],
    hubs: &[u32],
    seeds: BTreeMap<String, f64>,
) -> Result<Vec<Value>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut out = BufWriter::new(std::fs::File::create(folder.path().join("graph.txt"))?);
    for (src, dst, type_no) in &made.edges {
        writeln!(out, "{src} {dst} {type_no}")?;
    }
    out.flush()?;
    let weights: BTreeMap<String, f64> = TYPES.iter().enumerate().map(|(i, (_, w, _))| (i.to_string(), *w)).collect();
    let meta = json!({
        "nodes": made.nodes, "edges": made.edges.len(), "starts": starts, "hubs": hubs, "type_weights": weights,
        "reverse_factor": REVERSE, "damping": DAMPING, "iterations": ITERATIONS, "ppr_seeds": seeds,
    });
    std::fs::write(folder.path().join("meta.json"), meta.to_string())?;
    script(&["--data".into(), folder.path().display().to_string()])
}

/// Runs the script; its standard error is passed on.
pub fn script(arguments: &[String]) -> Result<Vec<Value>, Box<dyn Error>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/run.py");
    let mut child = Command::new("python3").arg(script).args(arguments).stdout(Stdio::piped()).spawn()?;
    let out = child.stdout.take().ok_or("the script has no output")?;
    let lines = BufReader::new(out).lines().map(|line| Ok(serde_json::from_str(&line?)?)).collect();
    let status = child.wait()?;
    if status.success() { lines } else { Err(format!("the script of the peers failed: {status}").into()) }
}
