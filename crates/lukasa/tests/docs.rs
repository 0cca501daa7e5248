//! The docs are correct: links lead somewhere, and every error code is listed. `cli/documented.rs` tests that their
//! commands parse.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() && !name.starts_with('.') && name != "target" {
            files(&entry, ending, found);
        } else if name.ends_with(ending) {
            found.push(entry);
        }
    }
}

#[test]
fn links_lead_somewhere() {
    let mut pages = Vec::new();
    files(&root(), ".md", &mut pages);
    assert!(pages.len() > 5);
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                assert!(page.parent().unwrap().join(target).exists(), "{}: {link} leads nowhere", page.display());
            }
        }
    }
}

/// The error codes in the sources.
fn codes() -> BTreeSet<String> {
    let mut sources = Vec::new();
    for crate_name in ["model", "store", "graph", "engine", "server", "lukasa"] {
        files(&root().join("crates").join(crate_name).join("src"), ".rs", &mut sources);
    }
    let mut codes = BTreeSet::new();
    for source in sources {
        let text = std::fs::read_to_string(source).unwrap();
        for start in
            ["Error::invalid(", "Error::not_found(", "Error::conflict(", "Error::too_large(", "Error::new(", "refused("]
        {
            for rest in text.split(start).skip(1) {
                // The first literal of the call is the code; the error kind may precede it.
                let call: String = rest.chars().take(160).collect();
                let literal = call.split('"').nth(1).unwrap_or_default();
                if literal.chars().all(|c| c.is_ascii_lowercase() || c == '_') && literal.contains('_') {
                    codes.insert(literal.to_string());
                }
            }
        }
    }
    codes
}

#[test]
fn every_error_code_is_listed() {
    let listed = std::fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let words: BTreeSet<_> = listed.split(|c: char| !(c.is_ascii_lowercase() || c == '_')).collect();
    let codes = codes();
    assert!(codes.len() > 60, "only {} codes were found in the sources", codes.len());
    let missing: Vec<_> = codes.iter().filter(|code| !words.contains(code.as_str())).collect();
    assert!(missing.is_empty(), "docs/errors.md does not list {missing:?}");
}

/// Names in the first column of the table under a heading.
fn listed(page: &str, heading: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs").join(page)).unwrap();
    let part =
        text.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("{page} has no part {heading}"));
    let part = part.split("\n## ").next().unwrap();
    part.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(String::from)).collect()
}

#[test]
fn every_metric_is_listed_and_no_other() {
    let all: Vec<_> = lukasa_engine::telemetry::metrics().all().iter().map(|metric| metric.name.to_string()).collect();
    assert!(all.len() > 40);
    assert_eq!(listed("telemetry.md", "Which figures are there?"), all);
    let text = lukasa_engine::telemetry::metrics().text(None);
    for name in all {
        assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
    }
}

#[test]
fn every_event_is_listed_and_no_other() {
    let mut sources = Vec::new();
    for crate_name in ["engine", "server", "lukasa"] {
        files(&root().join("crates").join(crate_name).join("src"), ".rs", &mut sources);
    }
    let mut told = BTreeSet::new();
    for source in sources {
        let text = std::fs::read_to_string(source).unwrap();
        for rest in text.split("log::event(").skip(1) {
            // The first literal of the call is the name of the event.
            told.insert(rest.split('"').nth(1).unwrap().to_string());
        }
    }
    assert_eq!(listed("telemetry.md", "What is logged?").into_iter().collect::<BTreeSet<_>>(), told);
}

#[test]
fn every_scope_is_listed() {
    let listed: BTreeSet<String> = listed("access.md", "What are scopes?").into_iter().collect();
    for operation in lukasa_engine::operations() {
        assert!(listed.contains(operation.meta.scope), "docs/access.md does not list `{}`", operation.meta.scope);
    }
    // Scopes that operations check themselves.
    for scope in ["graph:sensitive:read", "graph:search:citations", "graph:admin:metrics", "graph:admin:cross-project"]
    {
        assert!(listed.contains(scope), "docs/access.md does not list `{scope}`");
    }
}
