//! Requests without a view use the working tree of the project: its checked-out branch, as it is on disk.

use crate::house::{House, SURFACES, Surface};
use crate::repository::{head, repository, scope};
use lukasa_server::ProjectFolders;
use lukasa_testkit::{fixtures, git, has_git};
use serde_json::{Value, json};
use std::path::Path;

const BEFORE: &str = "def price():\n    return tax()\n\n\ndef tax():\n    return 7\n";
const FEATURE: &str =
    "def price():\n    return discount()\n\n\ndef tax():\n    return 7\n\n\ndef discount():\n    return 3\n";
const BRANCH: &str = "feature/discount";
const WRITER: [&str; 3] = ["graph:read", "graph:write", "graph:search:read"];

/// Checks out a feature branch with a committed function and an uncommitted caller of it.
fn on_a_feature_branch(tree: &Path) {
    git(tree, &["checkout", "-q", "-b", BRANCH]);
    std::fs::write(tree.join("shop.py"), FEATURE).unwrap();
    git(tree, &["commit", "-qam", "a discount"]);
    std::fs::write(tree.join("cart.py"), "from shop import discount\n\n\ndef cart():\n    return discount()\n")
        .unwrap();
}

/// Requests, with a text that an answer about the feature branch contains and one about `main` does not.
fn questions() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("get_callers", json!({"symbol": "discount"}), "cart.py::cart"),
        ("get_callees", json!({"symbol": "cart"}), "shop.py::discount"),
        ("semantic_slice", json!({"symbol": "discount"}), "return 3"),
        ("search", json!({"query": "discount"}), "shop.py::discount"),
        ("symbol_lookup", json!({"query": "cart"}), "cart.py::cart"),
        ("code_explain", json!({"symbol": "discount"}), "shop.py::discount"),
        ("impact", json!({"ref": "discount"}), "cart"),
        ("get", json!({"ref": "cart.py::cart"}), "cart.py::cart"),
        ("cypher", json!({"query": "MATCH (n) WHERE n.key = 'cart.py::cart' RETURN n.key"}), "cart.py::cart"),
        ("context_pack", json!({"task": "the discount of the cart is wrong"}), "cart.py"),
        ("neighbors", json!({"ref": "cart.py::cart"}), "discount"),
    ]
}

/// A tree for each surface, so that no surface benefits from the indexing of another.
fn given(folder: &Path) -> ProjectFolders {
    SURFACES.into_iter().fold(ProjectFolders::default(), |given, surface| {
        let tree = folder.join(tenant(surface));
        repository(&tree, &[("shop.py", BEFORE)]);
        git(&tree, &["branch", "-qm", "main", "master"]);
        given.with_tree(scope(&tenant(surface)), tree)
    })
}

fn tenant(surface: Surface) -> String {
    format!("{surface:?}").to_lowercase()
}

fn with_branch(mut request: Value, branch: &str) -> Value {
    request["branch"] = json!(branch);
    request
}

#[test]
fn reads_follow_the_branch_and_the_changes_of_the_given_tree() {
    if !has_git() {
        return;
    }
    for fixture in fixtures() {
        let (kind, folder) = (fixture.name, tempfile::tempdir().unwrap());
        let house = House::giving(fixture, given(folder.path()));
        for surface in SURFACES {
            let tree = folder.path().join(tenant(surface));
            let client = house.client(&house.key(&tenant(surface), "ada", &WRITER));
            assert_eq!(client.ok(surface, "index_directory", json!({}))["branch"], "main");
            on_a_feature_branch(&tree);
            for (n, (operation, request, has)) in questions().into_iter().enumerate() {
                // Saved just now and not indexed yet.
                let saved = format!("def fresh_{n}():\n    return {n}\n");
                std::fs::write(tree.join(format!("fresh_{n}.py")), saved).unwrap();
                let answer = client.ok(surface, operation, request.clone()).to_string();
                assert!(answer.contains(has), "{kind} {surface:?}: {operation} {request}\n{answer}");
                assert!(!answer.contains("\"behind\""), "{kind} {surface:?}: {operation}\n{answer}");
                let seen = json!({"ref": format!("fresh_{n}.py::fresh_{n}"), "branch": BRANCH});
                client.ok(surface, "get", seen);
                for branch in ["main", "master"] {
                    let request = with_branch(request.clone(), branch);
                    let answer = client.ask(surface, operation, &request);
                    assert!(
                        !answer.data.to_string().contains(has),
                        "{kind} {surface:?}: {operation} {request}\n{}",
                        answer.text
                    );
                }
            }
            // `graph_health` compares the tree with the index and does not index.
            let health = client.ok(surface, "graph_health", json!({}));
            assert_eq!(
                (&health["view"]["branch"], &health["pending_changes"]),
                (&json!(BRANCH), &json!(0)),
                "{health}"
            );
            let callers = client.ok(surface, "get_callers", json!({"symbol": "tax", "branch": "master"}));
            assert!(callers.to_string().contains("shop.py::price"), "{kind} {surface:?}: {callers}");
        }
    }
}

#[test]
fn a_reader_learns_how_far_the_answer_is_behind() {
    if !has_git() {
        return;
    }
    for fixture in fixtures() {
        let (kind, folder) = (fixture.name, tempfile::tempdir().unwrap());
        let house = House::giving(fixture, given(folder.path()));
        for surface in SURFACES {
            let (tree, tenant) = (folder.path().join(tenant(surface)), tenant(surface));
            let writer = house.client(&house.key(&tenant, "ada", &WRITER));
            let reader = house.client(&house.key(&tenant, "rob", &["graph:read", "graph:search:read"]));
            writer.ok(surface, "index_directory", json!({}));
            on_a_feature_branch(&tree);
            writer.ok(surface, "get", json!({"ref": "cart.py::cart"}));
            let before = head(&house, &tenant);
            for name in ["one.py", "two.py"] {
                std::fs::write(tree.join(name), "def more():\n    return 1\n").unwrap();
            }
            for (operation, request, has) in questions() {
                let answer = reader.ask(surface, operation, &request);
                assert!(
                    answer.code == "ok" && answer.data.to_string().contains(has),
                    "{kind} {surface:?}: {}",
                    answer.text
                );
                let behind = match surface {
                    Surface::Rest => answer.data["behind"]["files"] == 2 && answer.data["behind"]["branch"] == BRANCH,
                    Surface::Mcp => answer.text.contains("2 files behind the working tree"),
                };
                assert!(behind, "{kind} {surface:?}: {operation}\n{}", answer.text);
            }
            assert_eq!(head(&house, &tenant), before, "{kind} {surface:?}: a reader wrote something");
        }
    }
}
