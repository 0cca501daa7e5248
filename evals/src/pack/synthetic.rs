//! A synthetic program: files of functions that call one another, with names and summaries of words in a Zipf
//! distribution.

use crate::graph::synthetic::SyntheticGraph;
use crate::search::synthetic::{sentence, word};
use lukasa_model::Write;
use lukasa_model::batch::{PutObject, PutRelationship, Reference};
use lukasa_testkit::random_queries::SeededRandom;
use std::collections::BTreeSet;

/// Functions of a file; with the file itself, twenty nodes.
const FUNCTIONS: u64 = 19;
/// Calls of a function.
const CALLS: u64 = 4;
/// Words of the summary of a function.
const SUMMARY: u64 = 8;
/// Lines of a function.
const LINES: u64 = 12;

/// Objects first, so that relationships find their ends.
pub fn writes(nodes: u64) -> impl Iterator<Item = Write> {
    let files = nodes.div_ceil(FUNCTIONS + 1);
    let functions = nodes - files;
    let paths: Vec<String> = (0..files).map(path).collect();
    let keys: Vec<String> =
        (0..functions).map(|at| format!("{}::{}", paths[(at / FUNCTIONS) as usize], name(at))).collect();
    // At most one call for each pair.
    let calls = SyntheticGraph::new(functions, functions * CALLS, 1).edges.into_iter().map(|(src, dst, _)| (src, dst));
    let calls: BTreeSet<(u32, u32)> = calls.collect();
    let of_files = paths.clone().into_iter().map(|path| {
        let title = path.rsplit('/').next().unwrap_or(&path).to_owned();
        Write::from(PutObject::new("File", &path).title(&title).property("lines", FUNCTIONS * LINES))
    });
    let of_functions = keys.clone().into_iter().enumerate().map(|(at, key)| {
        let (name, line) = (name(at as u64), at as u64 % FUNCTIONS * LINES + 1);
        let object = PutObject::new("Function", &key).title(&name).property("signature", format!("def {name}(value)"));
        let summary = sentence(&mut dice(at as u64, 3), SUMMARY);
        Write::from(object.property("summary", summary).property("line", line).property("end_line", line + LINES - 2))
    });
    let containing = keys.clone().into_iter().enumerate().map(move |(at, key)| {
        let file = Reference::exact("File", &paths[at / FUNCTIONS as usize]);
        PutRelationship::new("CONTAINS", file, Reference::exact("Function", &key)).into()
    });
    let calling = calls.into_iter().map(move |(src, dst)| {
        let [src, dst] = [src, dst].map(|at| Reference::exact("Function", &keys[at as usize]));
        let call = PutRelationship::new("CALLS", src, dst);
        PutRelationship { confidence: Some(0.9), derivation: Some("import".into()), ..call }.into()
    });
    of_files.chain(of_functions).chain(containing).chain(calling)
}

fn path(file: u64) -> String {
    let mut dice = dice(file, 1);
    format!("src/{}/{}_{file}.py", word(&mut dice), word(&mut dice))
}

fn name(at: u64) -> String {
    let mut dice = dice(at, 2);
    format!("{}_{}_{at}", word(&mut dice), word(&mut dice))
}

fn dice(at: u64, of: u64) -> SeededRandom {
    SeededRandom(of.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at.wrapping_mul(0xd1b5_4a32_d192_ed03))
}
