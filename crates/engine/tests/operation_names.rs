//! The name of an operation is in its own file only: other code refers to its type, so that adding, renaming or
//! removing an operation touches one file and its line in the registry.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_engine::operations;
use std::path::{Path, PathBuf};

/// Uses of these words that are not names of operations: they name a toolset, a resource, an HTTP method, a table, …
const OTHER_MEANINGS: [&str; 33] = [
    "backup",
    "batch",
    "communities",
    "cypher",
    "delete",
    "demo",
    "diff",
    "embed",
    "expand",
    "export",
    "get",
    "history",
    "impact",
    "import",
    "link",
    "list",
    "log",
    "merge",
    "neighbors",
    "patch",
    "paths",
    "projects",
    "put",
    "rank",
    "reflect",
    "rename",
    "restore",
    "search",
    "subgraph",
    "traverse",
    "verify",
    "test_run",
    "graph_query",
];

/// Ways to refer to an operation by name, for words that have other meanings as well.
const BY_NAME: [&str; 5] = ["meta.name == ", "find(", ".call(", "grants.check(", "operation: "];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|ending| ending == "rs") && !entry.ends_with("tests.rs") {
            found.push(entry);
        }
    }
}

/// The lines before the tests of a file, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let tests = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    (1..).zip(text[..tests].lines()).filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn no_operation_is_named_outside_of_its_own_file() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for name in ["engine", "server", "lukasa"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let texts: Vec<(PathBuf, String)> =
        files.into_iter().map(|file| (file.clone(), std::fs::read_to_string(file).unwrap())).collect();
    let mut wrong = Vec::new();
    for operation in operations() {
        let name = operation.meta.name;
        let own = texts.iter().filter(|(_, text)| text.contains(&format!("name: \"{name}\","))).count();
        assert_eq!(own, 1, "`{name}` is declared in one file");
        for (file, text) in &texts {
            // The file of the operation, and its parts in a folder of the same name.
            if text.contains(&format!("name: \"{name}\",")) {
                continue;
            }
            for (number, line) in code(text) {
                let quoted = format!("\"{name}\"");
                let is_name = line.contains(&quoted)
                    && (!OTHER_MEANINGS.contains(&name)
                        || BY_NAME.iter().any(|way| {
                            line.split(way).skip(1).any(|rest| rest.split(')').next().unwrap().contains(&quoted))
                        }));
                if is_name {
                    wrong.push(format!("{}:{number}: {}", file.display(), line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "use `Type::META.name` instead:\n{}", wrong.join("\n"));
}
