//! Repositories in every format that the `git` program makes: ids by SHA-1 and SHA-256, references as files and as a
//! reftable.

use crate::test_engine::TestEngine;
use lukasa_engine::features::code::git::{GitHead, ObjectFormat, Repository, is_blob_id};
use lukasa_model::ErrorCode;
use lukasa_testkit::{git, has_git};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const ONE: &str = "def one():\n    return 1\n";
const TWO: &str = "def one():\n    return 2\n\n\ndef two():\n    return one()\n";

const FORMATS: [(&str, &str); 3] = [("sha256", "files"), ("sha1", "reftable"), ("sha256", "reftable")];

/// An empty repository. None, with a message, if this `git` program cannot make one.
fn made(objects: &str, references: &str) -> Option<TempDir> {
    if !has_git() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = [format!("--object-format={objects}"), format!("--ref-format={references}")];
    let made =
        Command::new("git").args(["init", "-q", "-b", "main"]).args(&options).current_dir(folder.path()).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: the `git` program cannot make a repository with {}", options.join(" "));
        return None;
    }
    Some(folder)
}

fn commit(root: &Path, text: &str) -> String {
    std::fs::write(root.join("a.py"), text).unwrap();
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "more"]);
    git(root, &["rev-parse", "HEAD"])
}

fn open(root: &Path) -> Repository {
    Repository::discover(root).unwrap().unwrap()
}

#[test]
fn commits_trees_and_contents_are_read_in_every_format() {
    for (objects, references) in FORMATS {
        let Some(folder) = made(objects, references) else { continue };
        let (root, format) = (folder.path(), format!("{objects}, {references}"));
        let empty = open(root);
        assert_eq!(empty.head().unwrap(), GitHead { branch: Some("main".into()), commit: None }, "{format}");
        assert_eq!(empty.commit("HEAD").unwrap_err().code, ErrorCode::UnknownCommit, "{format}");

        let one = commit(root, ONE);
        git(root, &["tag", "-a", "v1", "-m", "a tag"]);
        git(root, &["branch", "feature/x"]);
        let two = commit(root, TWO);
        let repository = open(root);
        let sha256 = objects == "sha256";
        let named = if sha256 { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 };
        assert_eq!((repository.object_format(), one.len()), (named, if sha256 { 64 } else { 40 }), "{format}");
        assert_eq!(repository.head().unwrap(), GitHead { branch: Some("main".into()), commit: Some(two.clone()) });
        assert_eq!(repository.checked_out().as_deref(), Some("main"), "{format}");
        assert_eq!(repository.default_branch(), "main", "{format}");
        for (spec, id) in [("HEAD", &two), ("main", &two), (&*two, &two), (&two[..9], &two), ("HEAD~1", &one)] {
            assert_eq!(&repository.commit(spec).unwrap().id, id, "{format}: {spec}");
        }
        for spec in ["v1", "feature/x", "refs/heads/feature/x"] {
            assert_eq!(repository.commit(spec).unwrap().id, one, "{format}: {spec}");
        }
        for spec in ["", "nothing", "HEAD~7", "main..v1", "^main", "--all", "-x", &"f".repeat(one.len())] {
            assert_eq!(repository.commit(spec).unwrap_err().code, ErrorCode::UnknownCommit, "{format}: {spec}");
        }
        let newest: Vec<String> = repository.first_parents("main", 9).unwrap().into_iter().map(|c| c.id).collect();
        assert_eq!(newest, [two.clone(), one.clone()], "{format}");
        assert_eq!(repository.merge_base("main", "feature/x").unwrap(), Some(one.clone()), "{format}");

        // The same from a pack.
        for pack in [false, true] {
            if pack {
                git(root, &["gc", "-q"]);
            }
            let repository = open(root);
            let id = repository.tree("main").unwrap()["a.py"].id;
            assert_eq!(id, named.blob_id(TWO.as_bytes()), "{format}");
            assert!(is_blob_id(&id, TWO.as_bytes()) && !is_blob_id(&id, ONE.as_bytes()), "{format}");
            assert_eq!(repository.blob(id).unwrap(), TWO.as_bytes(), "{format}");
            assert_eq!(repository.blob_size(id).unwrap(), TWO.len() as u64, "{format}");
            assert_eq!(repository.blob([7; 20]).unwrap_err().code, ErrorCode::MissingObject, "{format}");
            let changes = repository.changes(&one, &two).unwrap();
            let [change] = &changes[..] else { panic!("{format}: {changes:?}") };
            assert_eq!((change.path.as_str(), change.after), ("a.py", Some(id)), "{format}");
            assert_eq!(change.before, Some(named.blob_id(ONE.as_bytes())), "{format}");
        }

        let beside = tempfile::tempdir().unwrap();
        let linked = beside.path().join("linked");
        git(root, &["worktree", "add", "-q", linked.to_str().unwrap(), "feature/x"]);
        let linked = open(&linked);
        assert!(linked.is_worktree(), "{format}");
        assert_eq!(linked.head().unwrap(), GitHead { branch: Some("feature/x".into()), commit: Some(one.clone()) });
        git(root, &["checkout", "-q", "--detach"]);
        assert_eq!(open(root).head().unwrap(), GitHead { branch: None, commit: Some(two) }, "{format}");
    }
}

#[test]
fn working_trees_are_indexed_in_every_format() {
    for (objects, references) in FORMATS {
        let Some(folder) = made(objects, references) else { continue };
        let (root, format) = (folder.path(), format!("{objects}, {references}"));
        let test = TestEngine::all().remove(0);
        let one = commit(root, ONE);
        commit(root, TWO);
        let index = |request| {
            test.fixture.clock.advance(1);
            test.ok("index_directory", request)
        };
        let report = index(json!({"path": root, "history": 5}));
        assert_eq!(
            (&report["branch"], &report["history"]["commits"]),
            (&json!("main"), &json!(1)),
            "{format}: {report}"
        );
        let slice = || test.ok("semantic_slice", json!({"symbol": "two"}));
        assert_eq!(slice()["code"], "def two():\n    return one()\n", "{format}");
        // The text that was indexed comes from git when the file has changed.
        std::fs::write(root.join("a.py"), "").unwrap();
        let slice = slice();
        assert_eq!(
            (&slice["code"], &slice["freshness"]["differs_on_disk"]),
            (&json!("def two():\n    return one()\n"), &json!(true))
        );
        git(root, &["checkout", "-q", "a.py"]);
        let again = index(json!({"path": root}));
        assert!(again["tx"].is_null(), "{format}: nothing has changed: {again}");

        git(root, &["checkout", "-q", "-b", "older", &one]);
        let older = index(json!({"path": root}));
        assert_eq!(older["branch"], "older", "{format}: {older}");
        assert!(test.call("get", json!({"ref": "Function:a.py::two", "branch": "older"})).is_err(), "{format}");
        assert!(test.call("get", json!({"ref": "Function:a.py::two", "branch": "main"})).is_ok(), "{format}");
    }
}
