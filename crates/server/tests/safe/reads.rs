//! A read writes to no index of another working tree, wherever the server runs.

use crate::house::{Client, House, SURFACES, Surface};
use crate::repository::{SHOP, dump, head, repository, scope};
use crate::requests::requests;
use lukasa_engine::{Effect, operations};
use lukasa_server::ProjectFolders;
use lukasa_testkit::{fixtures, git, has_git};
use serde_json::{Value, json};
use std::path::Path;

/// The widest permissions: what this caller does not write by reading, no caller does.
const WRITER: [&str; 1] = ["admin"];

fn of_shop(tree: &Path) -> ProjectFolders {
    ProjectFolders::default().with_tree(scope("ours"), tree)
}

/// A server with the working tree of `shop`, which is indexed.
fn indexed(fixture: lukasa_testkit::Fixture, tree: &Path) -> House {
    let house = House::giving(fixture, of_shop(tree));
    let key = house.key("ours", "ada", &WRITER);
    let done = house.ok(&key, "index_directory", json!({}));
    assert_eq!((&done["branch"], &done["files"]), (&json!("main"), &json!(2)), "{done}");
    house
}

/// Calls every operation that reads without a path, as agents do. Returns the number of successful calls.
fn read_everything(client: &Client<'_>, surface: Surface) -> usize {
    let reads = operations().iter().filter(|operation| operation.meta.effect == Effect::Read);
    let answered = reads.filter(|operation| {
        let request = requests(operation, &[]).remove(0);
        client.ask(surface, operation.meta.name, &request).code == "ok"
    });
    answered.count()
}

/// The facts of a branch, for comparison.
fn facts(house: &House, key: &str, branch: &str) -> String {
    let reply = house.get(key, &format!("/graph/export?branch={branch}"));
    assert_eq!(reply.status, 200, "{}", reply.all());
    reply.body
}

#[test]
fn reads_through_a_server_without_the_tree_write_nothing() {
    if !has_git() {
        return;
    }
    for fixture in fixtures() {
        let kind = fixture.name;
        let folder = tempfile::tempdir().unwrap();
        let [tree, other, empty] = ["shop", "other", "empty"].map(|name| folder.path().join(name));
        repository(&tree, &[("shop.py", SHOP), ("README.md", "# Shop\n")]);
        repository(&other, &[("other.py", "def stranger():\n    return 1\n")]);
        std::fs::create_dir(&empty).unwrap();
        let home = indexed(fixture, &tree);
        let (before, key) = (dump(&home, "ours"), home.key("ours", "ada", &WRITER));
        let stats = home.ok(&key, "graph_stats", json!({}));
        // An empty folder without given paths, and another repository that belongs to another project.
        let elsewhere = [
            ProjectFolders::default(),
            ProjectFolders::default().with_tree(scope("theirs"), &other),
            ProjectFolders::default().with_tree(scope("theirs"), &empty),
        ];
        for given in elsewhere {
            let server = home.beside(given.clone());
            let client = server.client(&key);
            for surface in SURFACES {
                let pack = client.ok(surface, "context_pack", json!({"task": "the price is wrong"}));
                assert!(pack.to_string().contains("price"), "{kind} {surface:?}: {pack}");
                let callers = client.ok(surface, "get_callers", json!({"symbol": "price"}));
                assert!(callers.to_string().contains("shop.py::total"), "{kind} {surface:?}: {callers}");
                let found = client.ok(surface, "search", json!({"query": "price"}));
                assert!(found.to_string().contains("shop.py::price"), "{kind} {surface:?}: {found}");
                let answered = read_everything(&client, surface);
                assert!(answered > 25, "{kind} {surface:?}: {answered}");
                assert_eq!(client.ok(surface, "graph_stats", json!({}))["objects"], stats["objects"]);
                client.ok(surface, "verify", json!({}));
                assert!(dump(&home, "ours") == before, "{kind} {surface:?}: a read wrote something ({given:?})");
            }
        }
    }
}

#[test]
fn a_server_with_another_tree_of_the_project_leaves_the_branch_as_it_is() {
    if !has_git() {
        return;
    }
    for fixture in fixtures() {
        let kind = fixture.name;
        let folder = tempfile::tempdir().unwrap();
        let [tree, other, empty] = ["shop", "other", "empty"].map(|name| folder.path().join(name));
        repository(&tree, &[("shop.py", SHOP), ("README.md", "# Shop\n")]);
        repository(&other, &[("other.py", "def stranger():\n    return 1\n")]);
        std::fs::create_dir(&empty).unwrap();
        let home = indexed(fixture, &tree);
        let key = home.key("ours", "ada", &WRITER);
        let reader = home.key("ours", "rob", &["graph:read", "graph:search:read"]);
        let (before, whole) = (facts(&home, &key, "main"), dump(&home, "ours"));
        for tree in [&other, &empty] {
            let server = home.beside(of_shop(tree));
            // A caller that may only read causes no writes.
            let client = server.client(&reader);
            for surface in SURFACES {
                read_everything(&client, surface);
                assert!(tree == &empty || dump(&home, "ours") == whole, "{kind} {surface:?}: a reader wrote something");
            }
            // A pack for a caller that may write is about the server's own tree, on a separate branch.
            let client = server.client(&key);
            client.ask(Surface::Rest, "context_pack", &json!({"task": "the price is wrong"}));
            let after = head(&home, "ours");
            let ours = home.client(&key);
            for surface in SURFACES {
                for _ in 0..2 {
                    for client in [&client, &ours] {
                        client.ask(surface, "context_pack", &json!({"task": "the price is wrong"}));
                        client.ask(surface, "search", &json!({"query": "price"}));
                        client.ask(surface, "get_callers", &json!({"symbol": "price"}));
                    }
                }
                let pack = ours.ok(surface, "context_pack", json!({"task": "the price is wrong"}));
                assert!(pack.to_string().contains("shop.py"), "{kind} {surface:?}: {pack}");
                assert!(!pack.to_string().contains("stranger"), "{kind} {surface:?}: {pack}");
                client.ok(surface, "verify", json!({}));
            }
            assert_eq!(head(&home, "ours"), after, "{kind}: nothing goes back and forth");
            assert_eq!(facts(&home, &key, "main"), before, "{kind}: the branch of the first tree");
        }
    }
}

/// A repository, and a clone of it with one more file.
fn clones(folder: &Path) -> [std::path::PathBuf; 2] {
    let [first, second] = ["first", "second"].map(|name| folder.join(name));
    repository(&first, &[("shop.py", SHOP), ("README.md", "# Shop\n")]);
    git(folder, &["clone", "-q", first.to_str().unwrap(), second.to_str().unwrap()]);
    std::fs::write(second.join("more.py"), "def more():\n    return 1\n").unwrap();
    [first, second]
}

#[test]
fn two_clones_behind_two_servers_do_not_overwrite_each_other() {
    if !has_git() {
        return;
    }
    for fixture in fixtures() {
        let kind = fixture.name;
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = clones(folder.path());
        let home = indexed(fixture, &first);
        let server = home.beside(of_shop(&second));
        let key = home.key("ours", "ada", &WRITER);
        let before = facts(&home, &key, "main");
        let [ours, theirs] = [home.client(&key), server.client(&key)];
        let apart = theirs.ok(Surface::Mcp, "index_directory", json!({}));
        let branch = apart["branch"].as_str().unwrap().to_owned();
        assert!(branch.starts_with("main@second-"), "{kind}: {apart}");
        assert!(apart["apart"].as_str().unwrap().contains("--take-over"), "{kind}: {apart}");
        let after = head(&home, "ours");
        for surface in SURFACES {
            for operation in ["index_directory", "graph_rebuild", "graph_set_workspace"] {
                let request = if operation == "graph_set_workspace" { json!({"no_watch": true}) } else { json!({}) };
                assert_eq!(ours.ok(surface, operation, request.clone())["branch"], "main", "{kind} {surface:?}");
                assert_eq!(theirs.ok(surface, operation, request)["branch"], json!(branch), "{kind} {surface:?}");
            }
            for request in [json!({"task": "more"}), json!({"task": "more", "path": "."})] {
                ours.ok(surface, "context_pack", request.clone());
                theirs.ok(surface, "context_pack", request);
            }
            let seen = theirs.ok(surface, "get", json!({"ref": "more.py"}));
            assert_eq!(seen["view"]["branch"], json!(branch), "{kind} {surface:?}: {seen}");
            assert_eq!(ours.ask(surface, "get", &json!({"ref": "more.py"})).code, "not_found", "{kind} {surface:?}");
            theirs.ok(surface, "verify", json!({}));
        }
        assert_eq!(head(&home, "ours"), after, "{kind}: nothing changed, so nothing is written");
        assert_eq!(facts(&home, &key, "main"), before, "{kind}: the branch of the first clone");
    }
}

#[test]
fn two_clones_indexed_at_the_same_moment_keep_apart() {
    if !has_git() {
        return;
    }
    for fixture in fixtures() {
        let kind = fixture.name;
        let folder = tempfile::tempdir().unwrap();
        let trees = clones(folder.path());
        let home = House::giving(fixture, of_shop(&trees[0]));
        let server = home.beside(of_shop(&trees[1]));
        let key = home.key("ours", "ada", &WRITER);
        let start = std::sync::Barrier::new(2);
        let index = |house: &House| {
            start.wait();
            house.ok(&key, "index_directory", json!({}))["branch"].clone()
        };
        let branches: Vec<Value> = std::thread::scope(|scope| {
            let both = [scope.spawn(|| index(&home)), scope.spawn(|| index(&server))];
            both.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_ne!(branches[0], branches[1], "{kind}: both were kept on one branch");
        assert!(branches.contains(&json!("main")), "{kind}: {branches:?}");
        for (house, more) in [(&home, "not_found"), (&server, "ok")] {
            let client = house.client(&key);
            for surface in SURFACES {
                assert_eq!(client.ask(surface, "get", &json!({"ref": "more.py"})).code, more, "{kind} {surface:?}");
            }
        }
    }
}

/// A dump does not contain the origin of the code, so after a restore no working tree counts as the indexed one.
#[test]
fn a_restored_project_is_not_replaced_by_a_read_from_another_tree() {
    if !has_git() {
        return;
    }
    for fixture in fixtures() {
        let kind = fixture.name;
        let folder = tempfile::tempdir().unwrap();
        let [tree, other] = ["shop", "other"].map(|name| folder.path().join(name));
        repository(&tree, &[("shop.py", SHOP), ("README.md", "# Shop\n")]);
        repository(&other, &[("other.py", "def stranger():\n    return 1\n")]);
        let home = indexed(fixture, &tree);
        let copy = dump(&home, "ours");
        home.fixture.project("theirs", "shop").restore(&mut copy.as_bytes(), &mut |_, _| ()).unwrap();
        let server = home.beside(ProjectFolders::default().with_tree(scope("theirs"), &other));
        let key = server.key("theirs", "ada", &WRITER);
        let client = server.client(&key);
        for surface in SURFACES {
            for request in [json!({"task": "the price is wrong"}), json!({"task": "the price is wrong", "path": "."})] {
                client.ask(surface, "context_pack", &request);
                assert!(dump(&home, "theirs") == copy, "{kind} {surface:?}: {request} wrote something");
            }
        }
        // An explicit request to index does so.
        let done = client.ok(Surface::Mcp, "index_directory", json!({}));
        assert_eq!(done["branch"], "main", "{kind}: {done}");
    }
}
