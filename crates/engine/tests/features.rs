//! Dependencies between features lead downwards, in the order of `features::ALL`, and the layer below names no feature.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_engine::features;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The name of the layer below the features.
const BELOW: &str = "the layer below";

/// A source file, without comments and the contents of strings.
struct Source {
    /// From the root of the crate: `features`, `facts`, `ops`, `get`.
    module: Vec<String>,
    code: String,
}

fn sources(folder: &Path, root: &Path, found: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, root, found);
        } else if entry.extension().is_some_and(|ending| ending == "rs") {
            let path = entry.strip_prefix(root).unwrap().with_extension("");
            let mut module: Vec<String> =
                path.components().map(|part| part.as_os_str().to_str().unwrap().to_owned()).collect();
            if matches!(module.last().unwrap().as_str(), "mod" | "lib") {
                module.pop();
            }
            found.push(Source { module, code: code(&std::fs::read_to_string(&entry).unwrap()) });
        }
    }
}

/// The text with comments and the contents of strings replaced by nothing.
fn code(text: &str) -> String {
    let parts = Regex::new(
        r##"(?s)//[^\n]*|r#".*?"#|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\])'"##, // lifetimes have no second quote
    );
    parts.unwrap().replace_all(text, "\"\"").into_owned()
}

/// The paths of a `use` tree: `a::{b, c::d}` has `a::b` and `a::c::d`.
fn leaves(tree: &str, prefix: &[String], found: &mut Vec<Vec<String>>) {
    let (path, group) = match tree.split_once('{') {
        Some((path, rest)) => (path, rest.trim_end().strip_suffix('}')),
        None => (tree, None),
    };
    let named = path.split(" as ").next().unwrap().split("::").map(str::trim).filter(|part| !part.is_empty());
    let path: Vec<String> = prefix.iter().cloned().chain(named.map(str::to_owned)).collect();
    let Some(group) = group else {
        found.push(path);
        return;
    };
    let (mut depth, mut start) = (0, 0);
    for (at, character) in group.char_indices().chain([(group.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !group[start..at].trim().is_empty() {
                    leaves(group[start..at].trim(), &path, found);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// The end of the block that opens at the first brace from `start`.
fn block(code: &str, start: usize) -> usize {
    let mut depth = 0;
    for (at, character) in code[start..].char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => return start + at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// The items of this crate that a file refers to, as paths from the root of the crate.
fn named(source: &Source) -> Vec<Vec<String>> {
    let inline = Regex::new(r"\bmod (\w+) \{").unwrap();
    let inline: Vec<(usize, usize, String)> = inline
        .captures_iter(&source.code)
        .map(|found| {
            let start = found.get(0).unwrap().start();
            (start, block(&source.code, start), found[1].to_owned())
        })
        .collect();
    let uses = Regex::new(r"\buse ([^;]+);").unwrap();
    let paths = Regex::new(r"\b(?:crate|super|self|features)(?:::\w+)+").unwrap();
    let in_uses = uses.captures_iter(&source.code).flat_map(|found| {
        let (tree, mut all) = (found.get(1).unwrap(), Vec::new());
        leaves(tree.as_str(), &[], &mut all);
        all.into_iter().map(move |path| (tree.start(), path))
    });
    let in_code = paths.find_iter(&source.code).map(|found| {
        let path = found.as_str().split("::").map(str::to_owned).collect::<Vec<_>>();
        (found.start(), path)
    });
    let mut all = Vec::new();
    for (at, path) in in_uses.chain(in_code) {
        let inside = inline.iter().filter(|(start, end, _)| (*start..*end).contains(&at)).map(|(_, _, name)| name);
        let mut base: Vec<String> = source.module.iter().chain(inside).cloned().collect();
        let mut rest = &path[..];
        match rest[0].as_str() {
            "crate" => (base, rest) = (Vec::new(), &rest[1..]),
            "features" => base = Vec::new(),
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            _ => {}
        }
        all.push(base.into_iter().chain(rest.iter().cloned()).collect());
    }
    all
}

/// The feature that a path is in.
fn owner(path: &[String]) -> &str {
    match path {
        [first, feature, ..] if first == "features" && feature != "ALL" && feature != "*" => feature,
        _ => BELOW,
    }
}

/// The functions that features add to `Engine`, with the feature of each.
fn extensions(all: &[Source]) -> BTreeMap<String, String> {
    let function = Regex::new(r"\n    (?:pub(?:\([a-z]+\))? )?fn (\w+)").unwrap();
    let mut found = BTreeMap::new();
    for source in all.iter().filter(|source| owner(&source.module) != BELOW) {
        for (start, _) in source.code.match_indices("\nimpl Engine {") {
            let body = &source.code[start..block(&source.code, start)];
            for name in function.captures_iter(body).map(|name| name[1].to_owned()) {
                let other = found.insert(name.clone(), owner(&source.module).to_owned());
                assert!(other.is_none(), "two features add `{name}` to the engine");
            }
        }
    }
    found
}

/// The uses of each part by each other part, with file and item.
fn dependencies(all: &[Source]) -> BTreeMap<(String, String), BTreeSet<String>> {
    let extensions = extensions(all);
    let called = Regex::new(r"\b(engine|self)\s*\.\s*(\w+)\(").unwrap();
    let mut found: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for source in all {
        let own = owner(&source.module);
        let mut uses = |of: &str, what: String| {
            if of != own && of != BELOW {
                let place = format!("{} uses {what}", source.module.join("::"));
                found.entry((own.to_owned(), of.to_owned())).or_default().insert(place);
            }
        };
        for path in named(source) {
            uses(owner(&path), path.join("::"));
        }
        let extends = source.code.contains("impl Engine {");
        for call in called.captures_iter(&source.code).filter(|call| extends || &call[1] == "engine") {
            if let Some(of) = extensions.get(&call[2]) {
                uses(of, format!("Engine::{}", &call[2]));
            }
        }
    }
    found
}

#[test]
fn features_use_only_features_below_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    sources(&root, &root, &mut all);
    let order: Vec<&str> = features::ALL.iter().map(|feature| feature.folder).collect();
    let folders: BTreeSet<&str> =
        all.iter().map(|source| owner(&source.module)).filter(|name| *name != BELOW).collect();
    assert_eq!(folders, order.iter().copied().collect(), "each folder of `features` is a feature in the list");
    let found = dependencies(&all);
    let mut wrong = Vec::new();
    for ((from, to), places) in &found {
        println!("{from} -> {to}: {}", places.len());
        let height = |name: &str| order.iter().position(|known| *known == name);
        // The layer below is lower than every feature.
        if height(to).is_none_or(|to| height(from) <= Some(to)) {
            wrong.extend(places.iter().map(|place| format!("{from} must not use {to}: {place}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found.contains_key(&("admin".to_owned(), "facts".to_owned())), "dependencies are found");
}

#[test]
fn every_form_of_a_path_is_recognized() {
    let source =
        |module: &str, text: &str| Source { module: module.split("::").map(str::to_owned).collect(), code: code(text) };
    let all = [
        source("features::graph::communities", "\nimpl Engine {\n    pub fn find(&self) {}\n}\n"),
        source("features::facts::ops::get", "use crate::{Engine, features::{code::{self, git}, graph as g}};"),
        source("features::facts::a", "fn f() { crate::features::search::find() }"),
        source("features::facts::b", "mod tests { use super::super::super::memory::recall; }"),
        source("features::facts::c", "use super::super::admin::ops;"),
        source("features::facts::d", "// crate::features::code\nconst A: &str = \"crate::features::code\";"),
        source("features::facts::e", "fn f(engine: &Engine) { engine\n        .find() }"),
        source("features::facts::f", "use super::g; use crate::features::ALL;"),
        source("names", "use crate::features; fn f() { features::coordination::x() }"),
    ];
    let found: Vec<String> = dependencies(&all).keys().map(|(from, to)| format!("{from} -> {to}")).collect();
    let facts = ["admin", "code", "graph", "memory", "search"].map(|to| format!("facts -> {to}"));
    assert_eq!(found, [&facts[..], &[format!("{BELOW} -> coordination")]].concat());
}
