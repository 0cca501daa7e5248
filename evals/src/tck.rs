//! The `tck` suite to be: so far it reads the scenarios and checks that their queries can be taken apart.

mod feature;

use lukasa_graph::cypher::{Class, parse};
use std::path::Path;

fn queries(folder: &Path, all: &mut Vec<(String, String, bool)>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").filter_map(|e| Some(e.ok()?.path())).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            queries(&path, all);
        } else if path.extension().is_some_and(|e| e == "feature") {
            let text = std::fs::read_to_string(&path).expect("a text file");
            for scenario in feature::scenarios(&text) {
                let fails = scenario.steps.iter().any(|s| s.text.contains("should be raised at compile time"));
                for step in scenario.steps.iter().filter(|s| s.text.starts_with("executing")) {
                    let name = format!("{}: {}", path.file_stem().unwrap_or_default().to_string_lossy(), scenario.name);
                    all.push((name, step.doc.clone().unwrap_or_default(), fails));
                }
            }
        }
    }
}

/// Run with the TCK's folder in `LUKASA_TCK`.
#[test]
#[ignore = "needs the TCK"]
fn every_query_that_reads_can_be_taken_apart() {
    let folder = std::env::var("LUKASA_TCK").expect("the TCK's folder");
    let mut all = Vec::new();
    queries(Path::new(&folder), &mut all);
    let (mut read, mut wrote) = (0, 0);
    let mut failed = Vec::new();
    for (name, query, fails) in &all {
        match parse(query) {
            Ok(_) => read += 1,
            Err(fault) if fault.class == Class::ReadOnly => wrote += 1,
            Err(_) if *fails => {}
            Err(fault) => failed.push(format!("{name}: {} at {:?}\n{query}", fault.message, fault.place(query))),
        }
    }
    println!("{} queries: {read} read, {wrote} write, {} cannot be taken apart", all.len(), failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
