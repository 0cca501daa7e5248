//! The `slices` suite: whether `semantic_slice` shows the right lines of the right file for every symbol.

use crate::retrieval::Project;
use crate::{Fault, print};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

/// Most symbols that `--verbose` lists.
const LISTED: usize = 50;

pub fn run(repo: &Path, verbose: bool, as_json: bool) -> Result<(), Fault> {
    let repo = repo.canonicalize()?;
    let project = Project::new()?;
    eprintln!("indexing …");
    project.call("index_directory", json!({"path": repo, "branch": "main"}))?;
    project.engine.sources().add(project.scope(), &repo)?;
    let symbols = symbols(&project)?;
    let mut files: HashMap<&str, Vec<String>> = HashMap::new();
    let (mut same, mut shortened, mut wrong) = (0, 0, Vec::new());
    for (name, key) in &symbols {
        let path = key.split("::").next().unwrap_or(key);
        if !files.contains_key(path) {
            let text = String::from_utf8_lossy(&std::fs::read(repo.join(path))?).into_owned();
            files.insert(path, text.split_inclusive('\n').map(str::to_owned).collect());
        }
        let slice = project.call("semantic_slice", json!({"symbol": name}))?;
        match check(&slice, path, key, &files[path]) {
            Ok(true) => same += 1,
            Ok(false) => shortened += 1,
            Err(why) => wrong.push(format!("{key}: {why}")),
        }
    }
    if verbose {
        wrong.iter().take(LISTED).for_each(|line| eprintln!("{line}"));
    }
    let name = repo.file_name().map(|name| name.to_string_lossy().into_owned());
    let line = json!({"suite": "slices", "repo": name, "symbols": symbols.len(), "same": same, "shortened": shortened,
        "wrong": wrong.len()});
    print(&line, as_json);
    Ok(())
}

/// Names and keys of all symbols in files.
fn symbols(project: &Project) -> Result<Vec<(String, String)>, Fault> {
    let seen = project.see()?;
    let snapshot = &seen.look.snapshot;
    let is_code = |type_name: &str| !["File", "Package", "External", "Commit"].contains(&type_name);
    let nodes = snapshot.nodes().into_iter().filter(|node| is_code(snapshot.type_name(*node)));
    let named = nodes.filter_map(|node| Some((snapshot.name(node), snapshot.key(node)?.to_owned())));
    Ok(named.filter(|(_, key)| key.contains("::")).collect())
}

/// Checks that a slice has exactly the lines of that file and contains the name of the symbol; `false` if it was
/// shortened.
fn check(slice: &Value, path: &str, key: &str, lines: &[String]) -> Result<bool, String> {
    let file = slice["file"].as_str().unwrap_or_default();
    if file != path {
        return Err(format!("shown from {file}"));
    }
    let [first, last] = ["start_line", "end_line"].map(|at| slice[at].as_u64().unwrap_or_default() as usize);
    if first == 0 || last < first || last > lines.len() {
        return Err(format!("lines {first} to {last} of {}", lines.len()));
    }
    let own = lines[first - 1..last].concat();
    let name = key.rsplit("::").next().unwrap_or(key).split('~').next().unwrap_or_default();
    let last_name = name.rsplit(['.', ' ']).next().unwrap_or(name);
    // Fields of a tuple have a number as their name, which the source does not contain.
    let unwritten = last_name.bytes().all(|byte| byte.is_ascii_digit());
    if !unwritten && !own.contains(last_name) {
        return Err(format!("lines {first} to {last} do not contain the name"));
    }
    let code = slice["code"].as_str().unwrap_or_default();
    let begins = code.lines().next().unwrap_or_default();
    match slice["truncated"] == true {
        false if code.trim_end() == own.trim_end() => Ok(true),
        // A single line may be too long to be shown.
        true if code.is_empty() || own.contains(begins) => Ok(false),
        _ => Err(format!("lines {first} to {last} differ from the file")),
    }
}
