//! Cached graphs and text indexes: a new process gives the same answers, and reads no cache of another log.

use crate::search::{note, refs, write};
use crate::test_engine::TestEngine;
use lukasa_engine::features::search::SearchState;
use lukasa_engine::{Context, Engine};
use lukasa_store::Clock;
use lukasa_store::ledger::ViewSpec;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// An engine as in a new process, optionally with a cache.
fn process(test: &TestEngine, cache: Option<&Path>) -> Engine {
    let clock = Arc::clone(&test.fixture.clock) as Arc<dyn Clock>;
    let engine = Engine::new(Arc::clone(&test.fixture.store), clock, std::env::temp_dir());
    let engine = engine.with_searching(SearchState::default().with_patience(f64::INFINITY));
    match cache {
        Some(cache) => engine.with_cache(cache.to_owned()),
        None => engine,
    }
}

/// The results, and how many indexes were built for them.
fn found(test: &TestEngine, cache: Option<&Path>, root: &Path) -> (Vec<Vec<String>>, u64) {
    let engine = process(test, cache);
    let mut progress = |_, _| ();
    let mut context = Context::of(test.fixture.ledger.scope().clone(), &mut progress);
    engine.workspace(&context.scope, root).unwrap();
    let answers = ["tariff of ship 7", "harbour", "quay 123", "lighthouse", "winch"].map(|query| {
        let request = json!({"query": query, "limit": 20});
        refs(&engine.call(&mut context, "search", request).unwrap())
    });
    let walked = engine.call(&mut context, "get_callers", json!({"ref": "fees.py::tariff"})).unwrap();
    let mut answers = answers.to_vec();
    answers.push(vec![walked["callers"].to_string()]);
    (answers, engine.searching().full_builds())
}

fn was_read(test: &TestEngine, cache: &Path) -> bool {
    let engine = process(test, Some(cache));
    let mut progress = |_, _| ();
    let mut context = Context::of(test.fixture.ledger.scope().clone(), &mut progress);
    engine.view_graph(&mut context, &ViewSpec::default()).unwrap().snapshot.origin().is_some()
}

/// Seven hundred functions that call one another.
fn port(root: &Path) {
    write(root, "fees.py", "def tariff(ship):\n    \"\"\"The tariff of a ship.\"\"\"\n    return ship * 2\n");
    for part in 0..7 {
        let functions = (0..100).map(|n| {
            let n = part * 100 + n;
            format!("def quay_{n}(ship):\n    \"\"\"Harbour quay {n}.\"\"\"\n    return tariff(ship + {n})\n\n\n")
        });
        let text = format!("from fees import tariff\n\n\n{}", functions.collect::<String>());
        write(root, &format!("quays_{part}.py"), &text);
    }
}

fn files(cache: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut kept: Vec<PathBuf> =
        all.filter(|path| name(path).starts_with("graph-") || name(path).starts_with("texts-")).collect();
    kept.sort();
    kept
}

#[test]
fn a_new_process_reads_what_the_last_one_kept() {
    for test in TestEngine::all() {
        let (folder, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let (root, cache) = (folder.path(), Some(cache.path()).map(|p| p.join("cache")).unwrap());
        port(root);
        test.ok("index_directory", json!({"path": root}));
        note(&test, "decision:1", "Lighthouse", "The lighthouse of the harbour stays lit.");
        let (plain, _) = found(&test, None, root);
        assert_eq!(found(&test, Some(&cache), root), (plain.clone(), 1), "the first makes it");
        let kept = files(&cache);
        assert_eq!(kept.len(), 2, "{kept:?}");
        #[cfg(unix)]
        for file in &kept {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(was_read(&test, &cache));
        assert_eq!(found(&test, Some(&cache), root), (plain, 0), "the next has it");
        // Later changes are applied.
        note(&test, "decision:2", "Winch", "The winch of the harbour is oiled.");
        test.ok("delete", json!({"ref": "Decision:decision:1"}));
        write(root, "quays_3.py", "from fees import tariff\n\n\ndef winch(ship):\n    return tariff(ship)\n");
        fs::remove_file(root.join("quays_4.py")).unwrap();
        test.ok("index_directory", json!({"path": root}));
        let (plain, _) = found(&test, None, root);
        assert!(plain[3].is_empty() && plain[4].len() >= 2, "{plain:?}");
        assert!(was_read(&test, &cache));
        assert_eq!(found(&test, Some(&cache), root), (plain.clone(), 0), "followed");
        // A damaged file is ignored.
        for file in &kept {
            let whole = fs::read(file).unwrap();
            let middle = whole.len() / 2;
            let mut changed = whole.clone();
            changed[middle] ^= 0x20;
            for bytes in [&changed[..], &whole[..middle]] {
                fs::write(file, bytes).unwrap();
                assert_eq!(found(&test, Some(&cache), root), (plain.clone(), 1), "{file:?}");
            }
        }
    }
}

#[test]
fn what_another_log_kept_is_not_read() {
    let cache = TempDir::new().unwrap();
    let [one, other] = [TestEngine::all().remove(0), TestEngine::all().remove(0)];
    assert_eq!(one.fixture.ledger.scope(), other.fixture.ledger.scope());
    let trees = [&one, &other].map(|test| {
        let folder = TempDir::new().unwrap();
        port(folder.path());
        test.ok("index_directory", json!({"path": folder.path()}));
        folder
    });
    note(&other, "decision:1", "Lighthouse", "The lighthouse of the harbour stays lit.");
    note(&one, "decision:9", "Elsewhere", "Nothing of that kind.");
    found(&one, Some(cache.path()), trees[0].path());
    assert_eq!(files(cache.path()).len(), 2);
    assert!(!was_read(&other, cache.path()), "the same number of transactions, another history");
    let (answers, made) = found(&other, Some(cache.path()), trees[1].path());
    assert_eq!((answers[3].as_slice(), made), (["Decision:decision:1".to_owned()].as_slice(), 1));
}

/// Words of a property that becomes sensitive are not found any more, although they are in the cache.
#[test]
fn what_became_sensitive_is_not_read_from_what_was_kept() {
    let cache = TempDir::new().unwrap();
    let test = TestEngine::all().remove(0);
    let folder = TempDir::new().unwrap();
    port(folder.path());
    test.ok("index_directory", json!({"path": folder.path()}));
    test.ok("put", json!({"type": "Person", "key": "p", "properties": {"salary": "lighthouse keeper"}}));
    let (before, _) = found(&test, Some(cache.path()), folder.path());
    assert_eq!(before[3], ["Person:p"]);
    let schema = json!({"properties": {"salary": {"type": "string", "sensitive": true}}});
    test.ok("type_object", json!({"name": "Person", "schema": schema}));
    let (after, made) = found(&test, Some(cache.path()), folder.path());
    assert_eq!((after[3].len(), made), (0, 1), "{after:?}");
}
