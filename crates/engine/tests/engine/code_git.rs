//! Indexing git working trees: branches, commits, worktrees.

use crate::made::Made;
use crate::test_engine::TestEngine;
use gix::ObjectId;
use gix::objs::tree::EntryKind;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const ONE: &str = "def one():\n    return two()\n\n\ndef two():\n    pass\n";
const OTHER: &str = "def one():\n    return three()\n\n\ndef three():\n    pass\n";

/// Writes files into a working tree and sets HEAD to a branch or commit.
fn check_out(made: &Made, head: &str, files: &[(&str, &str)]) {
    for entry in fs::read_dir(&made.root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::remove_file(path).unwrap();
        }
    }
    for (path, text) in files {
        fs::write(made.root.join(path), text).unwrap();
    }
    made.file("HEAD", head);
}

fn commit(made: &Made, branch: &str, n: u32, parents: &[ObjectId], files: &[(&str, &str)]) -> ObjectId {
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, EntryKind::Blob, *text)).collect();
    made.commit(branch, n, parents, &files)
}

fn index(test: &TestEngine, root: &Path) -> Value {
    test.fixture.clock.advance(1);
    test.ok("index_directory", json!({"path": root}))
}

fn has(test: &TestEngine, name: &str, branch: &str) -> bool {
    test.call("get", json!({"ref": name, "branch": branch})).is_ok()
}

#[test]
fn a_folder_of_a_repository_stands_for_the_repository_and_the_summary_names_it() {
    for test in TestEngine::all() {
        let made = Made::new();
        let files = [("a.py", ONE)];
        commit(&made, "main", 1, &[], &files);
        check_out(&made, "ref: refs/heads/main\n", &files);
        fs::create_dir(made.root.join("part")).unwrap();
        fs::write(made.root.join("part/b.py"), "def b(): pass\n").unwrap();
        let part = index(&test, &made.root.join("part"));
        assert_eq!(part["files"], 2, "{part}");
        assert!(part["summary"].as_str().unwrap().starts_with("the whole repository at "), "{part}");
        let whole = index(&test, &made.root);
        assert!(whole["summary"].as_str().unwrap().starts_with("2 files on main"), "{whole}");
    }
}

#[test]
fn a_git_branch_is_a_pinned_branch_and_only_differences_are_written() {
    for test in TestEngine::all() {
        let made = Made::new();
        let (first, second) =
            ([("a.py", ONE), ("b.py", "def b(): pass\n")], [("a.py", OTHER), ("b.py", "def b(): pass\n")]);
        let root = commit(&made, "main", 1, &[], &first);
        commit(&made, "feature/x", 2, &[root], &second);
        check_out(&made, "ref: refs/heads/main\n", &first);
        let report = index(&test, &made.root);
        assert_eq!((&report["branch"], &report["commit"]), (&json!("main"), &json!(root.to_string())), "{report}");
        check_out(&made, "ref: refs/heads/feature/x\n", &second);
        let report = index(&test, &made.root);
        assert_eq!((&report["branch"], &report["changed"]), (&json!("feature/x"), &json!(1)), "{report}");
        assert!(has(&test, "Function:a.py::three", "feature/x") && !has(&test, "Function:a.py::three", "main"));
        assert!(has(&test, "Function:a.py::two", "main") && !has(&test, "Function:a.py::two", "feature/x"));
        assert!(has(&test, "Function:b.py::b", "feature/x"), "what is the same is seen through the fork");
        // Back on the first branch there is nothing to write. Later changes of main do not alter the pinned branch.
        check_out(&made, "ref: refs/heads/main\n", &first);
        assert_eq!(index(&test, &made.root)["tx"], Value::Null);
        check_out(&made, "ref: refs/heads/main\n", &[("a.py", ONE), ("b.py", "def changed(): pass\n")]);
        let report = index(&test, &made.root);
        assert!(report["commit"].is_null(), "a tree with changes of its own is no commit: {report}");
        assert!(has(&test, "Function:b.py::changed", "main") && !has(&test, "Function:b.py::changed", "feature/x"));
    }
}

#[test]
fn a_new_process_reports_the_commit_only_if_all_of_its_files_exist() {
    for mut test in TestEngine::all() {
        let (made, cache) = (Made::new(), tempfile::TempDir::new().unwrap());
        let many: Vec<(String, String)> =
            (0..60).map(|at| (format!("m{at}.py"), format!("def f{at}():\n    pass\n"))).collect();
        let files = many.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        let files: Vec<(&str, &str)> =
            files.chain([("logo.png", "\0PNG"), (".lukasaignore", "*.txt\n"), ("n.txt", "n\n")]).collect();
        let first = commit(&made, "main", 1, &[], &files);
        check_out(&made, "ref: refs/heads/main\n", &files);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        test.fixture.clock.set(lukasa_model::Time((now + 60) as i64 * 1_000_000));
        let mut indexed = || {
            let clock = std::sync::Arc::clone(&test.fixture.clock) as std::sync::Arc<dyn lukasa_store::Clock>;
            let store = std::sync::Arc::clone(&test.fixture.store);
            let engine = lukasa_engine::Engine::new(store, clock, std::env::temp_dir());
            test.engine = engine.with_cache(cache.path().into());
            let report = index(&test, &made.root);
            (report["bytes"].as_u64().unwrap(), report["commit"].as_str().map(str::to_owned))
        };
        let (one, nothing_read) = (Some(first.to_string()), 0);
        assert_eq!(indexed().1, one);
        assert_eq!(indexed(), (nothing_read, one.clone()));
        for (path, text) in [("logo.png", "\0PNG"), ("n.txt", "n\n"), ("m7.py", "def f7():\n    pass\n")] {
            fs::remove_file(made.root.join(path)).unwrap();
            assert_eq!(indexed().1, None, "without {path}");
            fs::write(made.root.join(path), text).unwrap();
            assert_eq!(indexed().1, one, "with {path} again");
        }
        let second = commit(&made, "main", 2, &[first], &files);
        assert_eq!(indexed().1, Some(second.to_string()), "the same files under another name");
    }
}

#[test]
fn a_clean_tree_claims_its_commit_and_nothing_else_does() {
    let test = TestEngine::all().remove(0);
    let made = Made::new();
    let (first, second) = ([("a.py", ONE)], [("a.py", OTHER)]);
    let one = commit(&made, "main", 1, &[], &first);
    check_out(&made, "ref: refs/heads/main\n", &first);
    index(&test, &made.root);
    // Edited first, committed afterwards: the files are the same, but the commit is recorded.
    check_out(&made, "ref: refs/heads/main\n", &second);
    assert!(index(&test, &made.root)["commit"].is_null());
    let two = commit(&made, "main", 2, &[one], &second);
    let report = index(&test, &made.root);
    assert_eq!((&report["commit"], &report["changed"]), (&json!(two.to_string()), &json!(0)), "{report}");
    assert!(report["tx"].is_u64(), "claiming is a transaction");
    assert_eq!(index(&test, &made.root)["tx"], Value::Null, "once");
    let at =
        |commit: &str, name: &str| test.call("get", json!({"ref": name, "as_of": format!("commit:{commit}")})).is_ok();
    let (one, two) = (one.to_string(), two.to_string());
    assert!(at(&one, "Function:a.py::two") && !at(&one, "Function:a.py::three"));
    assert!(at(&two, "Function:a.py::three") && !at(&two[..8], "Function:a.py::two"));
    // An untracked file is not in the commit.
    fs::write(made.root.join("new.py"), "def new(): pass\n").unwrap();
    assert!(index(&test, &made.root)["commit"].is_null());
    // A detached head has a branch of its own.
    check_out(&made, &format!("{one}\n"), &first);
    assert_eq!(index(&test, &made.root)["branch"], json!(format!("git-{}", &one[..12])));
}

/// Facts read on one branch are not used for another branch.
#[test]
fn switching_back_and_editing_another_file_resolves_with_what_is_there() {
    let test = TestEngine::all().remove(0);
    let made = Made::new();
    let uses = |name: &str| format!("from a import {name}\n\n\ndef use():\n    {name}()\n");
    let (on_main, on_side) = (uses("two"), uses("three"));
    let first = [("a.py", ONE), ("b.py", on_main.as_str())];
    let second = [("a.py", OTHER), ("b.py", on_side.as_str())];
    let root = commit(&made, "main", 1, &[], &first);
    commit(&made, "side", 2, &[root], &second);
    for (head, files) in [("main", &first), ("side", &second), ("main", &first)] {
        check_out(&made, &format!("ref: refs/heads/{head}\n"), files);
        index(&test, &made.root);
    }
    fs::write(made.root.join("b.py"), format!("{on_main}\n\ndef more():\n    two()\n")).unwrap();
    index(&test, &made.root);
    let callers = test.ok("get_callers", json!({"ref": "Function:a.py::two"}));
    assert_eq!(callers["total"], 3, "one, use and more: {callers}");
}

/// The language of a script is recognized by its first line, which may differ by branch, also in a new process.
#[test]
fn scripts_without_an_extension_are_recognized_by_their_first_line() {
    let test = TestEngine::all().remove(0);
    let made = Made::new();
    let script = "#!/usr/bin/env python3\nfrom lib import work\n\n\ndef main():\n    work()\n";
    let first = [("tool", script), ("lib.py", "def work(): pass\n"), ("README", "def main(): no script\n")];
    let second = [("tool", "just a note\n"), ("lib.py", "def work(): pass\n"), ("README", "same\n")];
    let root = commit(&made, "main", 1, &[], &first);
    commit(&made, "side", 2, &[root], &second);
    check_out(&made, "ref: refs/heads/main\n", &first);
    index(&test, &made.root);
    let tool = test.ok("get", json!({"ref": "File:tool"}));
    assert_eq!(tool["thing"]["properties"]["language"], "python", "{tool}");
    assert!(has(&test, "Function:tool::main", "main") && !has(&test, "Function:README::main", "main"));
    check_out(&made, "ref: refs/heads/side\n", &second);
    index(&test, &made.root);
    assert!(has(&test, "File:tool", "side") && !has(&test, "Function:tool::main", "side"));
    assert!(has(&test, "Function:tool::main", "main"));
    // A new process reads the script besides the changed files, so its call stays.
    check_out(&made, "ref: refs/heads/main\n", &first);
    fs::write(made.root.join("lib.py"), "def work(): pass\n\n\ndef more(): pass\n").unwrap();
    let clock = std::sync::Arc::clone(&test.fixture.clock) as std::sync::Arc<dyn lukasa_store::Clock>;
    let store = std::sync::Arc::clone(&test.fixture.store);
    let fresh = TestEngine { engine: lukasa_engine::Engine::new(store, clock, std::env::temp_dir()), ..test };
    index(&fresh, &made.root);
    let callers = fresh.ok("get_callers", json!({"ref": "Function:lib.py::work"}));
    assert_eq!(callers["callers"][0]["key"], "tool::main", "{callers}");
}

/// The files are indexed although the commit cannot be read, and a diagnostic reports that it is not recorded.
#[test]
fn a_commit_that_cannot_be_read_is_reported_and_files_are_indexed() {
    for what in ["tree", "commit"] {
        let test = TestEngine::all().remove(0);
        let made = Made::new();
        let id = commit(&made, "main", 1, &[], &[("a.py", ONE)]);
        let tree = made.git.find_commit(id).unwrap().tree_id().unwrap().detach();
        check_out(&made, "ref: refs/heads/main\n", &[("a.py", ONE)]);
        let gone = if what == "tree" { tree } else { id }.to_string();
        fs::remove_file(made.git.git_dir().join("objects").join(&gone[..2]).join(&gone[2..])).unwrap();
        let report = index(&test, &made.root);
        assert_eq!((&report["branch"], &report["changed"]), (&json!("main"), &json!(1)), "{what}: {report}");
        assert!(report["commit"].is_null() && has(&test, "Function:a.py::two", "main"), "{what}: {report}");
        let diagnostic = &report["diagnostics"][0];
        assert_eq!(diagnostic["path"], ".git", "{what}: {report}");
        assert!(diagnostic["what"].as_str().unwrap().starts_with("the commit cannot be read: "), "{what}: {report}");
        let again = index(&test, &made.root);
        assert!(again["tx"].is_null() && again["diagnostics"][0]["path"] == ".git", "{what}: {again}");
    }
}

/// A file that only another branch has is not recorded on this one when something else changes here.
#[test]
fn files_of_another_branch_stay_there() {
    let test = TestEngine::all().remove(0);
    let made = Made::new();
    let (first, second) = ([("a.py", ONE)], [("a.py", ONE), ("only.py", "def only(): pass\n")]);
    let root = commit(&made, "main", 1, &[], &first);
    commit(&made, "side", 2, &[root], &second);
    for (head, files) in [("main", &first[..]), ("side", &second), ("main", &first)] {
        check_out(&made, &format!("ref: refs/heads/{head}\n"), files);
        index(&test, &made.root);
    }
    fs::write(made.root.join("a.py"), OTHER).unwrap();
    let report = index(&test, &made.root);
    assert_eq!((&report["sources"], &report["written_files"]), (&json!(1), &json!(1)), "{report}");
    assert!(!has(&test, "File:only.py", "main") && has(&test, "Function:only.py::only", "side"));
}
