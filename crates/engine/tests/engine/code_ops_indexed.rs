//! Operations on folders that were indexed, on every store.

use crate::test_engine::TestEngine;
use serde_json::{Value, json};

fn keys(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|n| n["key"].as_str().unwrap()).collect()
}

#[test]
fn a_folder_that_was_indexed_can_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        std::fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
        std::fs::write(folder.path().join(path), text).unwrap();
    };
    for test in TestEngine::all() {
        write(
            "shop/auth.py",
            "def check(word):\n    return word\n\n\ndef login(user):\n    \"\"\"Lets a user in.\"\"\"\n    return check(user)\n",
        );
        write("shop/web.py", "from shop.auth import login\n\n\ndef page(user):\n    return login(user)\n");
        write("shop/test_auth.py", "from shop.auth import login\n\n\ndef test_login():\n    assert login('ann')\n");
        test.ok("index_directory", json!({"path": folder.path().to_str().unwrap(), "branch": "main"}));
        let out = test.ok("get_callers", json!({"ref": "login"}));
        assert_eq!(keys(&out["callers"]), ["shop/web.py::page", "shop/test_auth.py::test_login"]);
        assert_eq!((&out["callers"][1]["test"], &out["callers"][0]["call_lines"]), (&json!(true), &json!([5])));
        let chain = test.ok("call_chain", json!({"from": "page", "to": "check"}));
        assert_eq!(
            keys(&chain["chains"][0]["steps"]),
            ["shop/web.py::page", "shop/auth.py::login", "shop/auth.py::check"]
        );
        let explained = test.ok("code_explain", json!({"ref": "auth.login"}));
        assert_eq!(
            (&explained["symbol"]["about"], &explained["container"]["key"]),
            (&json!("Lets a user in."), &json!("shop/auth.py"))
        );
        assert_eq!(test.ok("symbol_lookup", json!({"query": "shop page"}))["symbols"][0]["key"], "shop/web.py::page");
        let first = test.ok("log", json!({}))["head"].clone();
        test.fixture.clock.advance(60);
        write("shop/web.py", "def page(user):\n    return user\n");
        test.ok("index_directory", json!({"path": folder.path().to_str().unwrap(), "branch": "main"}));
        let now = test.ok("get_callers", json!({"ref": "login", "include_tests": false}));
        assert_eq!(now["total"], 0);
        let before =
            test.ok("get_callers", json!({"ref": "login", "include_tests": false, "as_of": format!("tx:{first}")}));
        assert_eq!(keys(&before["callers"]), ["shop/web.py::page"]);
    }
}

#[test]
fn methods_written_beside_their_type_are_its_members() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        std::fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
        std::fs::write(folder.path().join(path), text).unwrap();
    };
    write("Cargo.toml", "[package]\nname = \"shop\"\n");
    write(
        "src/lib.rs",
        "mod more;\npub trait Close {\n    fn close(&self);\n}\npub struct Till {\n    pub open: bool,\n}\nimpl Till \
         {\n    pub fn new() -> Till {\n        Till { open: true }\n    }\n}\nimpl Close for Till {\n    fn close(&self) \
         {}\n}\npub fn evening(all: &[Box<dyn Close>]) {\n    for one in all {\n        one.close();\n    }\n}\n",
    );
    write(
        "src/more.rs",
        "use crate::Till;\nimpl Till {\n    pub fn sell(&self) {}\n}\npub fn day() {\n    let till = Till::new();\n    \
         till.sell();\n}\n",
    );
    for test in TestEngine::all() {
        test.ok("index_directory", json!({"path": folder.path().to_str().unwrap(), "branch": "main"}));
        let till = test.ok("code_explain", json!({"ref": "Till"}));
        let members = till["members"].as_array().unwrap();
        let mut titles: Vec<_> = members.iter().map(|m| m["title"].as_str().unwrap()).collect();
        titles.sort_unstable();
        assert_eq!(titles, ["close", "new", "open", "sell"]);
        assert!(members.iter().any(|m| m["title"] == "open" && m["subtype"] == "field"));
        let sell = test.ok("code_explain", json!({"ref": "Till::sell"}));
        assert_eq!(sell["container"]["key"], "src/lib.rs::Till");
        let close = test.ok("get_callers", json!({"ref": "Till::close"}));
        let direct = keys(&close["callers"]);
        let through: Vec<&str> = close
            .get("through")
            .map(|t| t.as_array().unwrap().iter().flat_map(|t| keys(&t["symbols"])).collect())
            .unwrap_or_default();
        assert!([direct, through].concat().contains(&"src/lib.rs::evening"), "{close}");
        let chain = test.ok("call_chain", json!({"from": "day", "to": "Till"}));
        assert_eq!(chain["chains"][0]["calls"], 1);
    }
}
