//! The watcher indexes saved files, however they were saved.

use crate::test_engine::TestEngine;
use lukasa_engine::features::code::Watch;
use lukasa_engine::features::code::watch::WatchState;
use lukasa_testkit::{git, has_git};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than any machine needs; a passing test does not wait that long.
const PATIENCE: Duration = Duration::from_secs(60);

fn write(root: &Path, path: &str, text: &str) {
    let place = root.join(path);
    fs::create_dir_all(place.parent().expect("inside the root")).unwrap();
    fs::write(place, text).unwrap();
}

fn wait(test: &TestEngine, name: &str, there: bool) {
    wait_on(test, "main", name, there);
}

fn wait_on(test: &TestEngine, branch: &str, name: &str, there: bool) {
    let began = Instant::now();
    while test.call("get", json!({"ref": name, "branch": branch})).is_ok() != there {
        assert!(began.elapsed() < PATIENCE, "{name} should be {}", if there { "there" } else { "gone" });
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn saves_renames_and_floods_are_followed() {
    let test = TestEngine::all().remove(0);
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    write(&root, "a.py", "def one(): pass\n");
    let scope = test.fixture.ledger.scope().clone();
    let watch = Watch::start(&test.engine, &scope, &root, Duration::from_millis(30), None).unwrap();
    wait(&test, "Function:a.py::one", true);
    // An ordinary save.
    write(&root, "a.py", "def two(): pass\n");
    wait(&test, "Function:a.py::two", true);
    wait(&test, "Function:a.py::one", false);
    // An editor's atomic save: beside it, then over it.
    write(&root, ".a.py.swp", "def three(): pass\n");
    fs::rename(root.join(".a.py.swp"), root.join("a.py")).unwrap();
    wait(&test, "Function:a.py::three", true);
    // New folders, with files written at once.
    write(&root, "deep/er/b.py", "def four(): pass\n");
    wait(&test, "Function:deep/er/b.py::four", true);
    write(&root, "deep/er/c.py", "def five(): pass\n");
    wait(&test, "Function:deep/er/c.py::five", true);
    // A mass rename.
    fs::rename(root.join("deep"), root.join("moved")).unwrap();
    wait(&test, "Function:moved/er/b.py::four", true);
    wait(&test, "File:moved/er/c.py", true);
    assert!(test.call("get", json!({"ref": "Function:deep/er/b.py::four"})).is_err());
    write(&root, "moved/er/d.py", "def six(): pass\n");
    wait(&test, "Function:moved/er/d.py::six", true);
    // Ten thousand events.
    for number in 0..10_000 {
        fs::write(root.join("flood.py"), format!("def last_{number}(): pass\n")).unwrap();
    }
    wait(&test, "Function:flood.py::last_9999", true);
    fs::remove_dir_all(root.join("moved")).unwrap();
    wait(&test, "File:moved/er/d.py", false);
    let began = Instant::now();
    while watch.health().state != WatchState::Idle {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    let health = watch.health();
    assert_eq!((health.pending, health.error), (0, None));
    assert!(health.passes > 5);
}

#[test]
fn an_ignored_file_causes_nothing() {
    let test = TestEngine::all().remove(0);
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    write(&root, ".gitignore", "out/\n");
    write(&root, "a.py", "def one(): pass\n");
    write(&root, "out/x.py", "def made(): pass\n");
    let scope = test.fixture.ledger.scope().clone();
    let _watch = Watch::start(&test.engine, &scope, &root, Duration::from_millis(30), None).unwrap();
    wait(&test, "Function:a.py::one", true);
    write(&root, "out/y.py", "def made(): pass\n");
    write(&root, "b.py", "def two(): pass\n");
    wait(&test, "Function:b.py::two", true);
    assert!(test.call("get", json!({"ref": "File:out/y.py"})).is_err());
}

/// Changes of many files by the `git` program are indexed on the right branches.
#[test]
fn checkouts_and_stashes_are_followed() {
    if !has_git() {
        return;
    }
    let test = TestEngine::all().remove(0);
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let run = |arguments: &[&str]| git(&root, arguments);
    run(&["init", "--quiet", "--initial-branch", "main"]);
    write(&root, "a.py", "def on_main(): pass\n");
    write(&root, "same.py", "def same(): pass\n");
    run(&["add", "."]);
    run(&["commit", "--quiet", "--message", "one"]);
    run(&["checkout", "--quiet", "-b", "side"]);
    write(&root, "a.py", "def on_side(): pass\n");
    write(&root, "only/here/b.py", "def deep(): pass\n");
    run(&["add", "."]);
    run(&["commit", "--quiet", "--message", "two"]);
    run(&["checkout", "--quiet", "main"]);
    let scope = test.fixture.ledger.scope().clone();
    let _watch = Watch::start(&test.engine, &scope, &root, Duration::from_millis(30), None).unwrap();
    wait(&test, "Function:a.py::on_main", true);

    run(&["checkout", "--quiet", "side"]);
    wait_on(&test, "side", "Function:a.py::on_side", true);
    wait_on(&test, "side", "Function:only/here/b.py::deep", true);
    wait_on(&test, "side", "Function:a.py::on_main", false);
    wait_on(&test, "side", "Function:same.py::same", true);
    let has = |branch: &str, name: &str| test.call("get", json!({"ref": name, "branch": branch})).is_ok();
    assert!(has("main", "Function:a.py::on_main") && !has("main", "Function:a.py::on_side"));
    assert!(!has("main", "File:only/here/b.py"));

    // Edited, put away, taken back; all of it on the branch that is checked out.
    write(&root, "a.py", "def edited(): pass\n");
    wait_on(&test, "side", "Function:a.py::edited", true);
    run(&["stash", "--quiet"]);
    wait_on(&test, "side", "Function:a.py::on_side", true);
    wait_on(&test, "side", "Function:a.py::edited", false);
    // Stashed changes can go to another branch.
    run(&["checkout", "--quiet", "-b", "third"]);
    run(&["stash", "pop", "--quiet"]);
    wait_on(&test, "third", "Function:a.py::edited", true);
    assert!(has("side", "Function:a.py::on_side") && !has("side", "Function:a.py::edited"));
    run(&["checkout", "--quiet", "--", "a.py"]);
    wait_on(&test, "third", "Function:a.py::edited", false);

    // Back, where a whole folder is not.
    run(&["checkout", "--quiet", "main"]);
    write(&root, "a.py", "def on_main_again(): pass\n");
    wait(&test, "Function:a.py::on_main_again", true);
    assert!(!has("main", "File:only/here/b.py"), "it is on another branch");
    assert!(has("side", "Function:only/here/b.py::deep"), "it is still there");
    assert!(has("side", "Function:a.py::on_side"));
}

/// A worktree has its own HEAD, somewhere else than in its folder.
#[test]
fn a_checkout_in_a_linked_worktree_is_followed() {
    if !has_git() {
        return;
    }
    let test = TestEngine::all().remove(0);
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap().join("tree");
    fs::create_dir(&root).unwrap();
    git(&root, &["init", "--quiet", "--initial-branch", "main"]);
    write(&root, "a.py", "def one(): pass\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "--quiet", "--message", "one"]);
    git(&root, &["worktree", "add", "--quiet", "-b", "linked", "../linked"]);
    let linked = root.parent().unwrap().join("linked");
    let scope = test.fixture.ledger.scope().clone();
    let _watch = Watch::start(&test.engine, &scope, &linked, Duration::from_millis(30), None).unwrap();
    wait_on(&test, "linked", "Function:a.py::one", true);
    // The files stay the same: only HEAD changes.
    git(&linked, &["checkout", "--quiet", "-b", "other"]);
    wait_on(&test, "other", "Function:a.py::one", true);
}

#[test]
fn a_watcher_reports_its_state_and_pending_files() {
    let test = TestEngine::all().remove(0);
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    write(&root, "a.py", "def one(): pass\n");
    let scope = test.fixture.ledger.scope().clone();
    // A pass ends when the test lets it.
    let (done, passes) = std::sync::mpsc::channel();
    let (let_go, may_go) = std::sync::mpsc::channel::<()>();
    let listener = Box::new(move |_: &_| {
        let _ = done.send(());
        let _ = may_go.recv_timeout(PATIENCE);
    });
    let watch = Watch::start(&test.engine, &scope, &root, Duration::from_millis(700), Some(listener)).unwrap();
    let until = |state: WatchState| {
        let began = Instant::now();
        while watch.health().state != state {
            assert!(began.elapsed() < PATIENCE, "{state:?}: {:?}", watch.health());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    passes.recv_timeout(PATIENCE).unwrap();
    let_go.send(()).unwrap();
    until(WatchState::Idle);
    // The watcher waits while a file is written; changes of other files are counted.
    let began = Instant::now();
    let mut seen = Vec::new();
    while !seen.contains(&WatchState::Debouncing) {
        assert!(began.elapsed() < PATIENCE, "{seen:?}");
        write(&root, "b.py", &format!("def two(): return {}\n", seen.len()));
        std::thread::sleep(Duration::from_millis(20));
        let health = watch.health();
        if !seen.contains(&health.state) {
            seen.push(health.state);
        }
        if health.state != WatchState::Idle {
            assert!(health.pending > 0, "{health:?}");
        }
    }
    write(&root, "c.py", "def three(): pass\n");
    passes.recv_timeout(PATIENCE).unwrap();
    let health = watch.health();
    assert_eq!(health.state, WatchState::Rebuilding);
    assert!(health.pending >= 2, "two files are being indexed: {health:?}");
    let_go.send(()).unwrap();
    // Events that arrived meanwhile may need another pass.
    drop(let_go);
    until(WatchState::Idle);
    assert_eq!(watch.health().pending, 0);
    assert!(test.call("get", json!({"ref": "Function:c.py::three"})).is_ok());
}

#[test]
fn a_single_change_is_detected_before_it_is_waited_for() {
    let test = TestEngine::all().remove(0);
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    write(&root, "a.py", "def one(): pass\n");
    write(&root, "b.py", "");
    let scope = test.fixture.ledger.scope().clone();
    let watch = Watch::start(&test.engine, &scope, &root, Duration::from_secs(2), None).unwrap();
    wait(&test, "Function:a.py::one", true);
    let began = Instant::now();
    while watch.health().state != WatchState::Idle {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
    // One event, and nothing after it.
    fs::remove_file(root.join("b.py")).unwrap();
    let mut seen = Vec::new();
    while watch.health().passes < 2 {
        assert!(began.elapsed() < PATIENCE, "{seen:?}");
        let health = watch.health();
        if !seen.contains(&health.state) {
            seen.push(health.state);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(seen.contains(&WatchState::Detecting), "{seen:?}");
}
