//! The binary as a person or a script uses it, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::{FakeBehavior, FakeEmbeddings, FakeEndpoint, FakeReply, TestDatabase, git, has_git};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A folder to work in, and the store to use if not the folder's own.
struct Desk {
    folder: tempfile::TempDir,
    store: Option<String>,
}

impl Desk {
    fn new() -> Desk {
        Desk { folder: tempfile::tempdir().unwrap(), store: None }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
        command.current_dir(self.folder.path()).env_remove("LUKASA_STORE").env("USER", "tester").stdin(Stdio::null());
        for variable in ["LUKASA_TENANT", "LUKASA_PROJECT", "LUKASA_AUTHOR", "LUKASA_AGENT", "LUKASA_SESSION"] {
            command.env_remove(variable);
        }
        if let Some(store) = &self.store {
            command.env("LUKASA_STORE", store);
        }
        // The model that the developer has configured is not used.
        command.env("LUKASA_PROJECT", "shop").env("LUKASA_MODEL_URL", "off");
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command().args(args).output().unwrap()
    }

    /// Runs it with `--json` and parses the answer.
    fn ok(&self, args: &[&str]) -> Value {
        let out = self.command().args(args).arg("--json").output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}"))
    }

    /// Runs it with `--json` and parses the error.
    fn error(&self, args: &[&str]) -> Value {
        let out = self.command().args(args).arg("--json").output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{args:?}");
        assert!(out.stdout.is_empty(), "an error is no answer");
        serde_json::from_slice::<Value>(&out.stderr).unwrap_or_else(|e| panic!("{args:?}: {e}"))["error"].clone()
    }

    fn code(&self, args: &[&str]) -> String {
        let error = self.error(args);
        assert!(error["message"].is_string());
        error["code"].as_str().unwrap().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_string()
    }
}

fn text(out: &[u8]) -> String {
    String::from_utf8(out.to_vec()).unwrap()
}

#[test]
fn the_demo_shows_its_steps() {
    let desk = Desk::new();
    let out = desk.run(&["demo"]);
    assert!(out.status.success());
    let shown = text(&out.stdout);
    for part in [
        "$ lukasa get billing",
        "patch Service:billing (transaction 8)",
        "--as-of release:1.0",
        "1 in conflict",
        "/properties/port",
        "merged feature/ports into main: 1 added",
        "/properties/port: 8081 → 9000",
        "all is well",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(std::fs::read_dir(desk.folder.path()).unwrap().next().is_none(), "it leaves nothing behind");
    let steps = desk.ok(&["demo"])["steps"].as_array().unwrap().clone();
    assert!(steps.iter().all(|s| s.get("error").is_none()), "{steps:?}");
}

/// Every command once, in sequence; the same on every store.
fn story(desk: &Desk) {
    desk.ok(&[
        "type",
        "object",
        "Service",
        "--schema",
        r#"{"type":"object","properties":{"port":{"type":"integer"}}}"#,
    ]);
    desk.ok(&["type", "relationship", "OWNS", "--src-type", "Team", "--one-per-dst"]);
    let put = desk.ok(&["put", "Service", "auth", "--title", "Auth", "--set", "port=8080", "--label", "core"]);
    assert_eq!((&put["tx"], &put["written"][0]["version"]), (&json!(3), &json!(1)));
    desk.ok(&["put", "Team", "red"]);
    desk.ok(&["put", "Team", "blue"]);
    let link = desk.ok(&["link", "Team:red", "OWNS", "auth", "--confidence", "0.9"]);
    assert_eq!(desk.code(&["link", "Team:blue", "OWNS", "auth"]), "relationship_multiplicity_violation");
    let error = desk.error(&["put", "Service", "auth", "--set", "port=high"]);
    assert_eq!(
        (&error["code"], &error["details"]["fields"][0]["path"]),
        (&json!("schema_violation"), &json!("/properties/port"))
    );
    let got = desk.ok(&["get", "auth"]);
    assert_eq!((&got["thing"]["properties"]["port"], &got["links"][0]["type"]), (&json!(8080), &json!("OWNS")));
    assert_eq!(desk.ok(&["get", link["written"][0]["id"].as_str().unwrap()])["thing"]["src"]["key"], "red");

    // Every command that traverses the graph.
    let near = desk.ok(&["neighbors", "auth"]);
    assert_eq!((&near["nodes"][1]["key"], &near["edges"][0]["confidence"]), (&json!("red"), &json!(0.9)));
    assert_eq!(desk.ok(&["traverse", "auth", "Team:blue", "--max-depth", "1"])["total_nodes"], 3);
    let team = r#"{"node":{"type":"Team"}}"#;
    assert_eq!(desk.ok(&["expand", "auth", "--filters", team, "--return-paths"])["meta"]["nodes_returned"], 2);
    assert_eq!(desk.ok(&["graph-traverse", "auth", "--min-confidence", "0.95"])["total_entities"], 0);
    assert_eq!(desk.ok(&["impact", "auth"])["blast_radius"], 1);
    assert_eq!(desk.ok(&["shortest-path", "Team:red", "auth"])["path"]["hops"], 1);
    assert_eq!(desk.ok(&["paths", "Team:red", "auth"])["paths"].as_array().unwrap().len(), 1);
    assert_eq!(desk.ok(&["subgraph", "auth", "Team:red", "Team:blue"])["total_edges"], 1);
    assert_eq!(desk.ok(&["rank", "--limit", "1"])["nodes"][0]["key"], "auth");
    assert_eq!(desk.ok(&["communities"])["total"], 1);
    assert_eq!(desk.ok(&["graph-stats"])["components"], 2);
    let asked = desk.ok(&[
        "cypher",
        "MATCH (t:Team)-[:OWNS]->(s {key: $key}) RETURN t.key",
        "--parameters",
        "{\"key\": \"auth\"}",
    ]);
    assert_eq!(asked["rows"], serde_json::json!([["red"]]));
    let tree = desk.run(&["cypher", "MATCH (s:Service {key: 'auth'}) RETURN s", "--tree"]);
    assert!(text(&tree.stdout).contains("└─ s: (:Service"), "{}", text(&tree.stdout));
    let shown = desk.run(&["neighbors", "auth"]);
    let shown = text(&shown.stdout);
    assert!(shown.starts_with("1 object within 2 hops of Service:auth") && shown.contains("—OWNS→"), "{shown}");
    for verb in ["impact", "traverse", "graph-stats", "rank", "communities"] {
        let arguments: &[&str] = if verb == "impact" || verb == "traverse" { &[verb, "auth"] } else { &[verb] };
        assert!(desk.run(arguments).status.success(), "{verb}");
    }
    let json = desk.run(&["neighbors", "auth", "--json"]);
    assert!(text(&json.stdout).starts_with("{\"summary\":"), "answers begin with their summary");

    desk.ok(&["release", "create", "1.0"]);
    desk.ok(&["tag", "create", "stable", "1.0"]);
    desk.ok(&["patch", "auth", "--set", "port=9090", "--status", "active", "--reason", "moved"]);
    assert_eq!(desk.ok(&["get", "auth", "--as-of", "tag:stable"])["thing"]["properties"]["port"], 8080);
    assert_eq!(desk.code(&["put", "Service", "auth", "--expected-version", "1"]), "version_conflict");
    let history = desk.ok(&["history", "auth", "--changes"]);
    assert_eq!(
        history["versions"][1]["change_summary"]["updated"]["/properties/port"],
        json!({"from": 8080, "to": 9090})
    );

    desk.ok(&["branch", "create", "feature", "--pinned"]);
    desk.ok(&["patch", "auth", "--set", "port=1", "--branch", "feature"]);
    desk.ok(&["patch", "auth", "--set", "port=2"]);
    let dry = desk.ok(&["merge", "feature", "--dry-run"]);
    assert_eq!((&dry["conflicts"][0]["ours"], &dry["conflicts"][0]["theirs"]), (&json!(2), &json!(1)));
    let error = desk.error(&["merge", "feature"]);
    assert_eq!(
        (&error["code"], error["details"]["conflicts"].as_array().unwrap().len()),
        (&json!("merge_conflict"), 1)
    );
    assert_eq!(desk.code(&["merge", "feature", "--into", "feature"]), "merge_into_itself");
    desk.ok(&["patch", "auth", "--set", "port=2", "--branch", "feature"]);
    desk.ok(&["put", "Service", "web", "--branch", "feature"]);
    assert_eq!(desk.ok(&["merge", "feature"])["counts"]["added"], 1);
    desk.ok(&["branch", "close", "feature"]);
    assert_eq!(desk.code(&["put", "Service", "x", "--branch", "feature"]), "branch_closed");
    desk.ok(&["branch", "open", "feature"]);
    desk.ok(&["branch", "move", "feature"]);
    assert_eq!(desk.ok(&["branch", "list"])["branches"].as_array().unwrap().len(), 2);

    desk.ok(&["delete", "web", "--reason", "gone"]);
    assert_eq!(desk.code(&["get", "web"]), "not_found");
    desk.ok(&["restore", "web"]);
    desk.ok(&["rename", "web", "front"]);
    assert_eq!(desk.ok(&["get", "Service:web"])["renamed_from"], "Service:web");
    desk.ok(&["release", "create", "2.0", "--base", "1.0"]);
    let diff = desk.ok(&["release", "diff", "1.0", "2.0"]);
    // The renamed service, and the relationship to its former name.
    assert_eq!((&diff["added"], &diff["modified"]), (&json!(2), &json!(1)), "{diff}");
    assert_eq!(diff["changes"][2]["between"], json!(["Service:front", "Service:web"]), "{diff}");
    assert_eq!(desk.ok(&["diff", "release:1.0", "release:2.0"])["modified"], 1);
    let branches = desk.ok(&["diff", "--from-branch", "main", "--to-branch", "feature"]);
    assert_eq!((&branches["added"], &branches["changes"][0]["key"]), (&json!(1), &json!("web")), "{branches}");
    let since = desk.ok(&["diff-since", "release:1.0"]);
    assert!(since["transactions_total"].as_u64().unwrap() > 3);
    desk.ok(&["tag", "describe", "stable", "for everyone"]);
    assert_eq!(desk.ok(&["tag", "show", "stable"])["tag"]["description"], "for everyone");
    desk.ok(&["tag", "delete", "stable"]);
    assert_eq!(desk.ok(&["tag", "list"])["tags"], json!([]));
    assert_eq!(desk.ok(&["release", "list"])["releases"].as_array().unwrap().len(), 2);
    assert_eq!(desk.ok(&["release", "show", "1.0"])["release"]["relationships"], 1);
    assert_eq!(desk.ok(&["type", "show", "OWNS"])["relationship_type"]["multiplicity"]["dst"], "one");
    desk.ok(&["type", "strict", "on"]);
    assert_eq!(desk.code(&["put", "Unheard", "x"]), "unknown_type");
    desk.ok(&["type", "strict", "off"]);
    assert_eq!(desk.ok(&["type", "list"])["object_types"][0]["name"], "Service");
    let batch = desk.ok(&["batch", "--client-id", "b1", "--writes", r#"[{"object":{"type":"Service","key":"b"}}]"#]);
    assert!(batch["tx"].is_number());
    let again = desk.ok(&["batch", "--client-id", "b1", "--writes", r#"[{"object":{"type":"Service","key":"b"}}]"#]);
    assert_eq!((&again["repeated"], &again["tx"]), (&json!(true), &batch["tx"]));
    assert_eq!(desk.ok(&["list", "Service"])["total"], 3);
    assert_eq!(desk.ok(&["log", "--limit", "2"])["transactions"].as_array().unwrap().len(), 2);
    assert_eq!(desk.ok(&["log"])["transactions"][0]["author"], "tester");
    assert_eq!(desk.ok(&["projects"])["projects"][0]["project"], "shop");
    desk.ok(&["verify"]);

    // Export and import: one view, the graph, the whole log.
    desk.ok(&["export", "facts.jsonl"]);
    desk.ok(&["export", "graph.json", "--format", "node-link"]);
    desk.ok(&["export", "all.jsonl", "--history"]);
    let graph: Value = serde_json::from_str(&desk.read("graph.json")).unwrap();
    assert_eq!((graph["nodes"].as_array().unwrap().len(), graph["links"].as_array().unwrap().len()), (5, 1));
    let count = |desk: &Desk| (desk.ok(&["list"])["total"].clone(), desk.ok(&["get", "auth"])["links_total"].clone());
    for (file, format) in [("facts.jsonl", "jsonl"), ("graph.json", "node-link"), ("all.jsonl", "jsonl")] {
        let copy = Desk::new();
        copy.ok(&["import", &desk.path(file), "--format", format]);
        assert_eq!(count(&copy), count(desk), "{file}");
        copy.ok(&["verify"]);
        if file == "all.jsonl" {
            copy.ok(&["export", "again.jsonl", "--history"]);
            assert_eq!(copy.read("again.jsonl"), desk.read(file), "the same to the letter");
            assert_eq!(copy.ok(&["get", "auth", "--as-of", "release:1.0"])["thing"]["properties"]["port"], 8080);
        } else {
            let again = copy.ok(&["import", &desk.path(file), "--format", format]);
            assert_eq!(
                (&again["transactions"], &again["objects"]),
                (&json!(0), &json!(0)),
                "{file} again writes nothing"
            );
        }
    }
    // A backup restores into a store of either kind.
    desk.ok(&["backup", "dump.jsonl"]);
    assert_eq!(desk.code(&["backup", "dump.jsonl"]), "file_exists");
    let restored = Desk::new();
    restored.ok(&["restore-backup", &desk.path("dump.jsonl")]);
    assert_eq!(count(&restored), count(desk));
    assert_eq!(restored.code(&["restore-backup", &desk.path("dump.jsonl")]), "project_not_empty");
}

/// What one process records, another recalls.
fn remembered(desk: &Desk) {
    let remembered =
        desk.ok(&["remember", "auth forgets its tokens", "--entities", "auth", "--session", "s1", "--agent", "ada"]);
    assert_eq!(remembered["entities"][0]["ref"], "Service:auth");
    desk.ok(&["remember", "auth remembers them again", "--session", "s1"]);
    desk.ok(&[
        "decide",
        "Tokens last an hour",
        "--rationale",
        "stolen ones must die",
        "--id",
        "7",
        "--entities",
        "auth",
    ]);
    let chain = desk.ok(&["cypher", "MATCH (a)-[:NEXT_EPISODE]->(b) RETURN a.key"]);
    assert_eq!(chain["rows"], json!([[remembered["episode_id"]]]), "the second process went on where the first was");
    assert_eq!(desk.code(&["remember", "x", "--type", "edit"]), "missing_metadata");
    assert_eq!(desk.code(&["remember", "x", "--entities", "auht"]), "unknown_entity");
    let found = desk.ok(&["recall", "what forgets its tokens"]);
    assert_eq!(found["episodes"][0]["episode_id"], remembered["episode_id"], "{found}");
    assert_eq!(desk.ok(&["decisions", "tokens"])["episodes"][0]["episode_id"], "decision:7");
    let shown = text(&desk.run(&["recall", "forgets tokens"]).stdout);
    assert!(shown.contains("> auth forgets its tokens") && shown.contains("about Service:auth"), "{shown}");
    for ask in [["recall", "how long do tokens last"], ["decisions", "tokens"]] {
        let shown = text(&desk.run(&ask).stdout);
        assert!(shown.contains("why: stolen ones must die"), "{shown}");
    }
    assert_eq!(desk.ok(&["reflect"])["episodes"], 3);
    // A key that only some processes have.
    let key = format!("ada={}", "0f".repeat(32));
    let secret = ["remember", "swordfish", "--sensitive", "--agent", "ada", "--json"];
    let out = desk.command().env("LUKASA_AGENT_KEYS", &key).args(secret).output().unwrap();
    assert!(
        text(&out.stdout).contains("\"encrypted\":true") || text(&out.stdout).contains("\"encrypted\": true"),
        "{out:?}"
    );
    let ask = ["recall", "swordfish", "--include-sensitive", "--agent", "ada", "--json"];
    let out = desk.command().env("LUKASA_AGENT_KEYS", &key).args(ask).output().unwrap();
    let mine: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(mine["episodes"][0]["content"], "swordfish", "{mine}");
    let without: Value = serde_json::from_slice(&desk.run(&ask).stdout).unwrap();
    assert!(without["warnings"].to_string().contains("no_agent_key"), "{without}");
    let out = desk.command().env("LUKASA_AGENT_KEYS", "ada=short").args(["recall", "x"]).output().unwrap();
    assert!(!out.status.success() && text(&out.stderr).contains("openssl rand"), "{out:?}");
}

/// Two agents side by side, as a person sees them.
fn coordinated(desk: &Desk) {
    desk.ok(&["task", "update", "12", "--title", "Add a timeout", "--agent", "ada"]);
    let held =
        desk.ok(&["claim", "src/auth.ts", "--intent", "fix the retry", "--agent", "ada", "--task-id", "12", "--new"]);
    assert_eq!(held["status"], "ok", "{held}");
    let refused = desk.run(&["claim", "src/auth.ts::login", "--intent", "add a timeout", "--agent", "bob", "--new"]);
    let shown = text(&refused.stdout);
    assert_eq!(refused.status.code(), Some(3), "a conflict is an answer, but not the claim that was asked for");
    assert_eq!(text(&refused.stderr), "", "and no error");
    assert!(shown.starts_with("CONFLICT: `src/auth.ts::login` is taken by ada"), "{shown}");
    assert!(shown.contains("`src/auth.ts` around it") && shown.contains("fix the retry"), "{shown}");
    let who = text(&desk.run(&["who"]).stdout);
    assert!(who.contains("1 claim held by 1 agent") && who.contains("src/auth.ts") && who.contains("ada"), "{who}");
    let tasks = text(&desk.run(&["tasks"]).stdout);
    assert!(tasks.contains("task:12") && tasks.contains("Add a timeout") && tasks.contains("pending"), "{tasks}");
    assert_eq!(desk.code(&["release-claim", "src/auth.ts", "--agent", "bob"]), "not_holder");
    let freed = desk.run(&["release-claim", "src/auth.ts", "--agent", "ada", "--outcome", "it retries"]);
    assert!(text(&freed.stdout).starts_with("released the claim on `src/auth.ts`"), "{freed:?}");
    assert_eq!(desk.ok(&["who"])["active_claims"], json!([]));
    desk.ok(&["decide", "Retry twice", "--rationale", "lines fail", "--id", "12", "--task-id", "12", "--agent", "ada"]);
    let lineage = text(&desk.run(&["lineage", "decision:12"]).stdout);
    assert!(lineage.contains("Task:task:12") && lineage.contains("PRODUCES"), "{lineage}");
}

#[test]
fn every_verb_on_sqlite() {
    let desk = Desk::new();
    story(&desk);
    assert!(Path::new(&desk.path(".lukasa/lukasa.db")).exists());
    assert_eq!(desk.read(".lukasa/.gitignore"), "*\n");
    // A native SQLite backup, with retention.
    for _ in 0..3 {
        desk.ok(&["backup", "backups", "--keep", "2"]);
    }
    let kept = std::fs::read_dir(desk.folder.path().join("backups")).unwrap().count();
    assert_eq!(kept, 2);
    desk.write("backups/lukasa-shop-20990101000000.db", "from a clock that ran ahead");
    let new = desk.ok(&["backup", "backups", "--keep", "1"])["path"].as_str().unwrap().to_string();
    assert!(Path::new(&desk.path(&new)).exists(), "the new one is never the one to go");
    desk.ok(&["backup", "copy.db"]);
    let restored = Desk::new();
    assert_eq!(restored.ok(&["restore-backup", &desk.path("copy.db")])["projects"], json!(["shop"]));
    restored.ok(&["verify"]);
    assert_eq!(restored.ok(&["log"])["head"], desk.ok(&["log"])["head"]);
    // The same store is found from a subfolder.
    std::fs::create_dir_all(desk.folder.path().join("src/deep")).unwrap();
    let below = desk.command().current_dir(desk.folder.path().join("src/deep")).args(["get", "auth"]).output().unwrap();
    assert!(below.status.success());
    remembered(&desk);
    coordinated(&desk);
}

#[test]
fn every_verb_on_postgres() {
    let Some(database) = TestDatabase::new() else { return };
    let desk = Desk { store: Some(database.app_url.clone()), ..Desk::new() };
    story(&desk);
    assert_eq!(desk.code(&["backup", "copy.db"]), "no_native_copy");
    // PostgreSQL restores a backup from SQLite, too.
    let lite = Desk::new();
    lite.ok(&["restore-backup", &desk.path("dump.jsonl")]);
    lite.ok(&["backup", "lite.db"]);
    let mut restore = lite.command();
    restore.args(["restore-backup", "lite.db", "--json"]).env("LUKASA_STORE", &database.app_url);
    let refused = restore.output().unwrap();
    assert!(text(&refused.stderr).contains("project_not_empty"), "{}", text(&refused.stderr));
    let second = TestDatabase::new().unwrap();
    let moved = Desk { store: Some(second.app_url.clone()), ..Desk::new() };
    moved.ok(&["restore-backup", &lite.path("lite.db")]);
    assert_eq!(moved.ok(&["log"])["head"], desk.ok(&["log"])["head"]);
    moved.ok(&["verify"]);
    // Set up by its own command, on a database without the schema.
    second.as_admin("DROP SCHEMA lukasa CASCADE");
    assert_eq!(moved.code(&["log"]), "schema_missing");
    let set_up = moved.run(&["setup-postgres", "--admin-url", &second.admin_url, "--app-url", &second.app_url]);
    assert!(set_up.status.success(), "{}", text(&set_up.stderr));
    moved.ok(&["put", "Service", "again"]);
    remembered(&desk);
}

fn keys_are_made_listed_and_revoked(desk: &Desk) {
    let made =
        desk.ok(&["key", "create", "--user", "ci", "--scope", "graph:read,graph:search:*", "--expires", "2999-01-01"]);
    let (key, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    assert!(key.starts_with(&format!("lk_{id}_")) && key.len() == 63, "{made}");
    assert_eq!((&made["project"], &made["scopes"]), (&json!("shop"), &json!(["graph:read", "graph:search:*"])));
    let all = desk.run(&["key", "create", "--user", "indexer", "--scope", "graph:write", "--all-projects"]);
    assert!(all.status.success(), "{}", text(&all.stderr));
    let (shown, errors) = (text(&all.stdout), text(&all.stderr));
    assert!(shown.starts_with("lk_") && shown.lines().count() == 1, "the key alone: {shown}");
    assert!(!errors.contains(shown.trim()), "{errors}");
    let listed = desk.ok(&["key", "list"]);
    let users: Vec<_> = listed["keys"].as_array().unwrap().iter().map(|key| key["user"].as_str().unwrap()).collect();
    assert_eq!(users, ["ci", "indexer"]);
    assert_eq!(listed["keys"][1]["project"], Value::Null);
    let secret = key.strip_prefix(&format!("lk_{id}_")).unwrap();
    let table = text(&desk.run(&["key", "list"]).stdout);
    assert!(table.contains(id) && table.contains("(all)"), "{table}");
    assert!(!table.contains(secret) && !listed.to_string().contains(secret), "shown once");
    assert_eq!(desk.ok(&["key", "list", "--tenant", "other"])["keys"], json!([]));
    assert_eq!(desk.code(&["key", "revoke", id, "--tenant", "other"]), "unknown_access_key");
    // By its id, or by the whole key.
    let revoked = desk.ok(&["key", "revoke", key]);
    assert!(revoked["revoked_at"].is_string() && revoked["id"] == made["id"], "{revoked}");
    assert_eq!(desk.ok(&["key", "revoke", id]), revoked);
    let unknown = desk.error(&["key", "revoke", &format!("{key}x")]);
    assert!(!unknown.to_string().contains(secret), "{unknown}");
    assert_eq!(desk.code(&["key", "create", "--user", "x", "--scope", "All Of It"]), "invalid_scope");
    assert_eq!(
        desk.code(&["key", "create", "--user", "x", "--scope", "admin", "--expires", "2020-01-01"]),
        "invalid_time"
    );
}

#[test]
fn access_keys_on_sqlite() {
    let desk = Desk::new();
    assert_eq!(desk.code(&["key", "list"]), "no_store");
    keys_are_made_listed_and_revoked(&desk);
}

#[test]
fn access_keys_on_postgres() {
    let Some(database) = TestDatabase::new() else { return };
    keys_are_made_listed_and_revoked(&Desk { store: Some(database.app_url.clone()), ..Desk::new() });
}

#[test]
fn errors_have_codes_and_hints_and_change_nothing() {
    let desk = Desk::new();
    assert_eq!(desk.code(&["get", "x"]), "no_store");
    assert!(!Path::new(&desk.path(".lukasa")).exists(), "reading makes nothing");
    desk.ok(&["put", "Service", "auth"]);
    let before = desk.ok(&["log"])["head"].clone();
    let long = "k".repeat(1_025);
    let large = format!("{{\"p\":\"{}\"}}", "x".repeat(1 << 20));
    let deep = format!("{{\"p\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    desk.write("large.jsonl", &format!("{{\"object\":{{\"type\":\"S\",\"key\":\"a\",\"properties\":{large}}}}}\n"));
    for (args, code) in [
        (vec!["put", "Service", long.as_str()], "text_too_long"),
        (vec!["put", "Service", "a", "--properties", deep.as_str()], "json_too_deep"),
        (vec!["put", "Service", "a", "--properties", r#"{"p":"\u0000"}"#], "nul_byte"),
        (vec!["put", "Service", "a", "--valid-from", "2026-02-01", "--valid-to", "2026-01-01"], "reversed_period"),
        (vec!["put", "Service", "a", "--valid-from", "soon"], "invalid_request"),
        (vec!["put", "Service", "a", "--branch", "nowhere"], "unknown_branch"),
        (vec!["put", "Service", "a", "--set", "novalue"], "invalid_set"),
        (vec!["put", "two words", "a"], "invalid_type_name"),
        (vec!["link", "auth", "CALLS", "absent"], "not_found"),
        (vec!["branch", "create", "b", "--from", "b"], "cyclic_branch"),
        (vec!["get", "auth", "--as-of", "release:none"], "unknown_release"),
        (vec!["import", "nothing.jsonl"], "file_failure"),
        (vec!["import", "large.jsonl"], "properties_too_large"),
        (vec!["type", "object", "T", "--schema", r#"{"type":"wrong"}"#], "invalid_schema"),
        (vec!["backup", "somewhere.zip"], "unknown_backup_kind"),
        (vec!["backup", "x.db", "--keep", "3"], "keep_needs_folder"),
        (vec!["log", "--limit", "5000"], "out_of_range"),
        (vec!["list", "--limit", "0"], "out_of_range"),
        (vec!["diff"], "nothing_to_compare"),
        (vec!["branch", "create", "b", "--at", "1"], "at_needs_pinned"),
        (vec!["get", "auth", "--as-of", "2026-13-01"], "invalid_time"),
        (vec!["rename", "auth", "auth"], "key_taken"),
        (vec!["type", "object", "T", "--alias", "Branch"], "system_type"),
    ] {
        assert_eq!(desk.code(&args), code, "{args:?}");
        assert_eq!(desk.ok(&["log"])["head"], before, "{code} changed something");
    }
    let nearly = desk.run(&["get", "Service:auht"]);
    assert_eq!(nearly.status.code(), Some(1));
    let error = text(&nearly.stderr);
    assert!(error.starts_with("error: nothing is named `Service:auht` in this view (not_found)\nhint: "), "{error}");
    assert!(error.contains("closest: `Service:auth`"), "{error}");
    // Usage errors come from clap, with its own exit code.
    assert_eq!(desk.run(&["frobnicate"]).status.code(), Some(2));
    assert_eq!(desk.run(&["put"]).status.code(), Some(2));
    // A failed export does not change an existing file.
    desk.write("precious.txt", "mine");
    assert_eq!(desk.code(&["export", "precious.txt", "--branch", "nowhere"]), "unknown_branch");
    assert_eq!(desk.read("precious.txt"), "mine");
    let error = desk.error(&["list", "--project", "elsewhere"]);
    assert_eq!(error["hint"], "projects here: shop; name one with --project");
    // A file that is not a store.
    desk.write("garbage.db", &"not a database ".repeat(1_000));
    let error = desk.error(&["log", "--store", "garbage.db"]);
    assert_eq!(error["code"], "corrupt_store");
    assert!(error["hint"].is_string());
}

#[test]
fn import_errors_name_the_line_and_earlier_batches_stay() {
    let desk = Desk::new();
    let line = |i: usize| format!("{{\"object\":{{\"type\":\"S\",\"key\":\"k{i}\"}}}}\n");
    let good: String = (0..25).map(line).collect();
    for (bad, code) in [
        ("{\"object\":", "malformed_line"),
        ("[1,2]", "malformed_line"),
        ("{\"object\":{\"type\":\"S\",\"key\":\"z\",\"tpye\":1}}", "malformed_line"),
        ("{\"object\":{\"type\":\"S\",\"key\":\"k24\"}}", "duplicate_in_batch"),
        ("{\"relationship\":{\"type\":\"R\",\"src\":\"k1\",\"dst\":\"absent\"}}", "dangling_end"),
        ("{\"end\":{\"ref\":\"absent\"}}", "not_found"),
        ("{\"object\":{\"type\":\"S\",\"key\":\"a\\u0000\"}}", "nul_byte"),
    ] {
        desk.write("facts.jsonl", &format!("{good}{bad}\n{}", line(99)));
        let error = desk.error(&["import", "facts.jsonl", "--batch-size", "20"]);
        assert_eq!(error["code"], code, "{bad}");
        assert!(error["message"].as_str().unwrap().starts_with("line 26: "), "{error}");
    }
    assert_eq!(desk.ok(&["list"])["total"], 20, "the first batch stands, the broken one does not");
    desk.write("facts.jsonl", &good);
    let done = desk.ok(&["import", "facts.jsonl", "--batch-size", "20"]);
    assert_eq!((&done["objects"], &done["unchanged"]), (&json!(5), &json!(20)), "mended, it goes on where it stopped");
    desk.write("graph.json", "{\"nodes\":[{\"id\":1},{\"noid\":2}],\"links\":[]}");
    let error = desk.error(&["import", "graph.json", "--format", "node-link"]);
    assert!(error["message"].as_str().unwrap().starts_with("nodes[1]: "), "{error}");
    let mut piped =
        desk.command().args(["import", "-", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut piped.stdin.take().unwrap(), line(500).as_bytes()).unwrap();
    assert!(text(&piped.wait_with_output().unwrap().stdout).contains("\"objects\":1"));
}

#[test]
fn questions_about_code_are_answered_in_tables() {
    let desk = Desk::new();
    std::fs::create_dir(desk.folder.path().join("src")).unwrap();
    desk.write("src/auth.py", "def check(word):\n    return word\n\n\ndef login(user):\n    return check(user)\n");
    desk.write(
        "src/web.py",
        "import os\nfrom auth import login\n\n\ndef page(user):\n    os.getcwd()\n    return login(user)\n",
    );
    desk.ok(&["index", "src"]);
    for (arguments, says) in [
        (&["callers", "login"][..], ["1 function calls `login`", "\nweb.py:5  page  calls at 7"]),
        (&["callers", "check", "--depth", "2", "--include-tests", "false"], ["2 functions lead to `check`", "2 hops"]),
        (&["callees", "page"], ["`page` calls 1 function, and 1 name outside of the project", "python:os::getcwd"]),
        (&["call-chain", "page", "check"], ["`page` leads to `check` by 2 calls", "\nauth.py:5  login  calls at 6"]),
        (&["call-chain", "check", "page"], ["no chain of calls from `check` to `page`", "in the other direction:"]),
        (&["call-stats", "--limit", "1"], ["3 functions and methods", "most called"]),
        (&["symbol", "logni"], ["no symbol is named `logni`; 1 name near it", "def login(user)"]),
        (&["explain", "login"], ["`login` is a function in auth.py:5", "called by"]),
    ] {
        let out = desk.run(arguments);
        let shown = text(&out.stdout);
        assert!(out.status.success() && shown.starts_with(says[0]), "{arguments:?}: {shown}{}", text(&out.stderr));
        assert!(shown.contains(says[1]), "{arguments:?}: {shown}");
    }
    let few = text(&desk.run(&["symbol", "e", "--limit", "1"]).stdout);
    assert!(few.contains("raise --limit"), "{few}");
    assert_eq!(desk.code(&["callers", "nothing_like_it"]), "not_found");
}

#[test]
fn paths_are_relative_to_the_current_folder() {
    let desk = Desk::new();
    std::fs::create_dir(desk.folder.path().join("src")).unwrap();
    desk.write("src/auth.py", "def check(word):\n    return word\n\n\ndef login(user):\n    return check(user)\n");
    desk.write("web.py", "def page(user):\n    return user\n");
    desk.ok(&["index"]);
    let root = desk.folder.path().canonicalize().unwrap();
    let absolute = root.join("src/auth.py").display().to_string();
    for (name, key) in [
        ("./auth.py", "src/auth.py"),
        ("auth.py:6", "src/auth.py::login"),
        ("../web.py", "web.py"),
        (&absolute, "src/auth.py"),
        ("auth.login", "src/auth.py::login"),
    ] {
        let command = |json: bool| {
            let mut command = desk.command();
            command.current_dir(root.join("src")).args(["get", name]).args(json.then_some("--json"));
            command.output().unwrap()
        };
        let out: Value = serde_json::from_slice(&command(true).stdout).unwrap();
        assert_eq!(out["thing"]["key"], key, "{name}");
        let shown = text(&command(false).stdout);
        assert!(shown.contains(&format!("`{name}` is F")) && shown.contains(key), "{name}: {shown}");
    }
    let out = desk.command().current_dir(root.join("src")).args(["get", "../../web.py"]).output().unwrap();
    assert!(text(&out.stderr).contains("outside_workspace"), "{out:?}");
}

#[test]
fn slices_patterns_and_questions_are_answered_for_people() {
    let desk = Desk::new();
    desk.write(
        "auth.py",
        "from web import page\n\n\ndef check(word):\n\treturn word\n\n\ndef login(user):\n\treturn check(user)\n",
    );
    desk.write("web.py", "from auth import login\n\n\ndef page(user):\n    return login(user)\n");
    desk.ok(&["index"]);
    for (arguments, says) in [
        (&["slice", "login"][..], ["`login` in auth.py, lines 8-9, called by 1", "9 | \treturn check(user)"]),
        (
            &["slice", "check", "--context", "with-deps"],
            ["`check` in auth.py, lines 4-5", "called by\nauth.py:8  login"],
        ),
        (&["slice", "--file", "web.py"], ["`web.py`, lines 1-5", "1 | from auth import login"]),
        (&["slice", "--query", "check the word"], ["`check` in auth.py", "def check(word):"]),
        (&["pack", "login checks the user twice"], ["Begin at `login` in auth.py:8", "9 | \treturn check(user)"]),
        (
            &["search", "check the word"],
            ["3 found by code; the best: check (Function:auth.py::check)", "says `word`, `check`"],
        ),
        (&["pattern", "circular_imports"], ["files that import one another", "auth.py -> web.py -> auth.py"]),
        (&["pattern", "Function -CALLS-> Function", "--limit", "1"], ["the shape: 2 places found", "… 1 of 2"]),
        (&["pattern", "all"], ["10 patterns: ", "no test reaches it"]),
        (&["ask", "check the word"], ["3 things found, best `Function:auth.py::check`", "name 1.8, file 1.8"]),
        (&["ask", "overview", "--mode", "global"], ["2 communities, largest first", "COMMUNITY:"]),
        (&["ask", "MATCH (f:File) RETURN count(f)", "--language", "cypher"], ["1 row", "count(f)"]),
    ] {
        let out = desk.run(arguments);
        let shown = text(&out.stdout);
        assert!(out.status.success() && shown.starts_with(says[0]), "{arguments:?}: {shown}{}", text(&out.stderr));
        assert!(shown.contains(says[1]), "{arguments:?}: {shown}");
    }
    desk.write("auth.py", "def login(user):\n    pass\n");
    let fresh = text(&desk.run(&["slice", "login"]).stdout);
    assert!(fresh.contains("the file on disk is the same") && fresh.contains("2 |     pass"), "{fresh}");
    assert_eq!(desk.code(&["slice", "lgoin"]), "not_found");
    assert_eq!(desk.code(&["pattern", "Function -CALLS->"]), "invalid_pattern");
    desk.ok(&["put", "Person", "ada", "--title", "Ada Byron", "--set", "text=Wrote to Charles Babbage"]);
    desk.ok(&["put", "Person", "charles", "--title", "Charles Babbage", "--set", "text=Knew Ada Byron"]);
    let linked = desk.ok(&["link-mentions"]);
    assert_eq!((&linked["added"], &linked["objects"]), (&json!(2), &json!(2)), "{linked}");
    let again = text(&desk.run(&["link-mentions"]).stdout);
    assert_eq!(again, "2 mentions among 2 objects: nothing new, no transaction\n");
}

/// Runs it in a subfolder, with the project named after the folder, and parses the answer.
fn in_folder(desk: &Desk, folder: &str, args: &[&str]) -> Value {
    let mut command = desk.command();
    let out =
        command.env_remove("LUKASA_PROJECT").current_dir(desk.path(folder)).args(args).arg("--json").output().unwrap();
    assert!(out.status.success(), "{folder} {args:?}: {}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn worktrees_share_the_store_of_their_main_tree() {
    if !has_git() {
        return;
    }
    let desk = Desk::new();
    let main = desk.folder.path().join("main");
    std::fs::create_dir_all(main.join("src")).unwrap();
    git(&main, &["init", "--quiet", "--initial-branch", "main"]);
    desk.write("main/src/a.py", "def one(): pass\n");
    git(&main, &["add", "."]);
    git(&main, &["commit", "--quiet", "--message", "one"]);
    git(&main, &["worktree", "add", "--quiet", "-b", "side", "../side"]);
    // First in a subfolder of the worktree: the store is created in the main tree.
    desk.write("side/src/a.py", "def two(): pass\n");
    let report = in_folder(&desk, "side/src", &["index"]);
    assert_eq!(report["branch"], "side", "{report}");
    assert!(main.join(".lukasa/lukasa.db").exists() && !desk.folder.path().join("side/.lukasa").exists());
    assert_eq!(in_folder(&desk, "main", &["index"])["branch"], "main");
    let status = git(&main, &["status", "--porcelain"]);
    assert_eq!(status, "", "the store is kept out of commits");
    for folder in ["main", "main/src", "side", "side/src"] {
        let got = in_folder(&desk, folder, &["get", "Function:src/a.py::two", "--branch", "side"]);
        assert_eq!(got["thing"]["key"], "src/a.py::two", "{folder}: {got}");
        in_folder(&desk, folder, &["get", "Function:src/a.py::one", "--branch", "main"]);
    }
    assert_eq!(in_folder(&desk, "side", &["projects"])["projects"][0]["project"], "main", "named after the main tree");
    // From outside, by naming the folder.
    desk.write("side/src/b.py", "def three(): pass\n");
    let report = in_folder(&desk, "", &["index", "side"]);
    assert_eq!((&report["branch"], &report["changed"]), (&json!("side"), &json!(1)), "{report}");
    assert!(!desk.folder.path().join(".lukasa").exists());
    // A bare repository has no main tree. Its worktrees share a store inside it, separate from its neighbours.
    git(desk.folder.path(), &["clone", "--quiet", "--bare", "main", "bare.git"]);
    git(&desk.folder.path().join("bare.git"), &["worktree", "add", "--quiet", "../of-bare", "main"]);
    in_folder(&desk, "of-bare", &["index"]);
    assert!(desk.folder.path().join("bare.git/.lukasa/lukasa.db").exists());
}

#[test]
fn a_configured_model_writes_summaries() {
    let model = FakeEndpoint::start(|_, _| FakeReply::ok(r#"{"choices": [{"message": {"content": "Says hello."}}]}"#));
    let desk = Desk::new();
    desk.write("a.py", "def greet():\n    return 'hello'\n");
    let settings = format!("[model]\nurl = \"{}\"\nname = \"small\"\nkey_env = \"MODEL_KEY\"\n", model.url());
    desk.write("settings.toml", &settings);
    let run = |args: &[&str], key: Option<&str>| {
        let mut command = desk.command();
        command.env_remove("LUKASA_MODEL_URL").env("LUKASA_CONFIG", desk.path("settings.toml")).env_remove("MODEL_KEY");
        if let Some(key) = key {
            command.env("MODEL_KEY", key);
        }
        command.args(args).output().unwrap()
    };
    let failed = run(&["index"], None);
    assert!(!failed.status.success() && text(&failed.stderr).contains("`MODEL_KEY`"), "{}", text(&failed.stderr));
    let out = run(&["index"], Some("sk-secret"));
    let (shown, errors) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success() && shown.contains("2 summaries by small"), "{shown}{errors}");
    assert!(!shown.contains("sk-secret") && !errors.contains("sk-secret"));
    assert_eq!(model.asked().len(), 2);
    assert!(model.asked()[0].headers.contains("Bearer sk-secret"));
    assert!(desk.folder.path().join(".lukasa/cache/summaries.jsonl").exists());
    let got = desk.ok(&["get", "Function:a.py::greet"]);
    assert_eq!(got["thing"]["properties"]["summary"], "Says hello.");
    // Reads need no model, so they need no key either.
    assert!(run(&["get", "Function:a.py::greet"], None).status.success());
    desk.ok(&["index"]);
    assert_eq!(model.asked().len(), 2, "off means off");
}

#[test]
fn progress_of_embedding_is_shown() {
    let desk = Desk::new();
    let fake = FakeEmbeddings::start(8);
    let run = |args: &[&str]| {
        let mut command = desk.command();
        command.env("LUKASA_EMBEDDING_BASE_URL", fake.url()).env("LUKASA_EMBEDDING_MODEL", "small");
        command.env("LUKASA_EMBEDDING_DIMENSIONS", "8").args(args).output().unwrap()
    };
    let shown = |args: &[&str]| {
        let out = run(args);
        assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
        let shown = text(&out.stdout);
        assert!(!shown.contains('{') && !shown.contains('"'), "{args:?} in words: {shown}");
        shown
    };
    for (key, about) in [("a", "the first note"), ("b", "the second, with password = 'hunter22'")] {
        desk.ok(&["put", "Note", key, "--set", &format!("about={about}")]);
    }
    let none = shown(&["readiness"]);
    assert!(none.starts_with("2 objects can be found by words; none is embedded: `lukasa embed` does it\n"), "{none}");
    for says in [
        "ready: no object is of a type that has to be embedded",
        "optional    0 of 2 embedded, 0 %",
        "waiting     nothing in the queue",
        "small@",
    ] {
        assert!(none.contains(says), "{says}: {none}");
    }
    let done = shown(&["embed"]);
    assert!(done.starts_with("2 texts embedded in "), "{done}");
    for says in [", 0 waiting\n", "texts a second", "redacted    1 ", "model       small@"] {
        assert!(done.contains(says), "{says}: {done}");
    }
    // Failed objects are retried after half a minute. Nothing is embedded after this, however long the test takes.
    desk.ok(&["put", "Note", "c", "--set", "about=the third note"]);
    fake.set(FakeBehavior::WrongDimensions);
    let failed = run(&["embed"]);
    assert!(!failed.status.success() && text(&failed.stderr).contains("9 dimensions, 8 are configured"));
    let waiting = shown(&["readiness"]);
    assert!(waiting.contains("waiting     1: 1 failed before, the oldest since 20"), "{waiting}");
    for says in
        ["2 of 3 objects embedded (67 %), 1 waiting", "optional    2 of 3 embedded, 66.6 %", "vectors of", "bytes"]
    {
        assert!(waiting.contains(says), "{says}: {waiting}");
    }
}

/// Facts with every kind of terminal control sequence, in every field that holds text.
fn steering(desk: &Desk) {
    let evil = "\u{1b}[31m\u{1b}]0;own\u{7}\u{9b}2J\u{8}\r";
    let object = |kind: &str, key: &str| {
        json!({"object": {"type": kind, "key": key, "title": format!("T{evil}"), "status": format!("s{evil}"),
            "subtype": format!("u{evil}"), "labels": [format!("l{evil}")], "evidence": {"quote": [evil, {"more": evil}]},
            "properties": {"name": format!("n{evil}"), "signature": evil, "summary": evil, "content": evil, "line": 1,
                "end_line": 2, "list": [evil, 1], "deep": {evil: evil}, evil: evil}}})
    };
    let link = |kind: &str, src: &str, dst: &str| {
        json!({"relationship": {"type": kind, "src": src, "dst": dst, "properties": {"note": evil, "at": [1, evil]},
            "derivation": evil, "role_src": evil}})
    };
    let facts = [
        object("Service", "web"),
        object("Service", &format!("odd{evil}")),
        object("File", "shop.py"),
        object("Function", "shop.py::price"),
        object("Function", "shop.py::total"),
        object("EPISODE", "e1"),
        link("CALLS", "Function:shop.py::total", "Function:shop.py::price"),
        link("CALLS", "Service:web", &format!("Service:odd{evil}")),
        link("CONTAINS", "File:shop.py", "Function:shop.py::price"),
    ];
    // Before the import: indexing afterwards would remove the imported files as deleted.
    desk.write("odd.py", &format!("def odd():\n    return '{}'\n", evil.replace('\r', "")));
    desk.ok(&["index"]);
    desk.write("facts.jsonl", &facts.iter().map(|fact| fact.to_string() + "\n").collect::<String>());
    desk.ok(&["import", "facts.jsonl", "--reason", evil]);
    desk.ok(&["branch", "create", "dev", "--description", evil]);
    desk.ok(&["patch", "Service:web", "--title", &format!("U{evil}"), "--branch", "dev"]);
    desk.ok(&["release", "create", "r1", "--description", evil]);
    desk.ok(&["tag", "create", "t1", "r1", "--description", evil]);
    desk.ok(&["type", "object", "Thing", "--description", evil]);
    let odd = format!("D{evil}");
    desk.ok(&[
        "task",
        "update",
        "7",
        "--title",
        &odd,
        "--description",
        evil,
        "--feature-id",
        "f1",
        "--status",
        "blocked",
    ]);
    desk.ok(&["claim", "shop.py", "--intent", &odd, "--agent-id", "ann", "--new"]);
    desk.ok(&["decide", &odd, "--rationale", &odd, "--tradeoffs", &odd, "--agent-id", "ann"]);
    desk.ok(&["remember", &odd, "--agent-id", "ann"]);
}

#[test]
fn no_output_contains_control_characters() {
    use lukasa_engine::{Effect, operations};
    let desk = Desk::new();
    steering(&desk);
    // Further arguments that some operations need.
    let more: &[(&str, &[&str])] = &[
        ("merge", &["--dry-run"]),
        ("diff", &["tx:1"]),
        ("history", &["--changes"]),
        ("subgraph", &["--radius", "1", "--draw", "mermaid"]),
        ("expand", &["--include", r#"{"object": ["title", "properties", "status"]}"#]),
        ("semantic_slice", &["odd"]),
        ("agent_status", &["ann"]),
    ];
    let mut shown = 0;
    for operation in operations().iter().filter(|o| o.meta.effect == Effect::Read || o.meta.name == "merge") {
        let meta = &operation.meta;
        if meta.name == "export" {
            // Data for programs, which is not escaped.
            continue;
        }
        let mut words: Vec<&str> = meta.verb.split(' ').collect();
        let needed = meta.positional.iter().filter(|field| operation.requires(field));
        words.extend(needed.map(|field| match (meta.name, *field) {
            ("get_callers" | "get_callees" | "code_explain" | "symbol_lookup" | "call_chain", "to" | "ref") => {
                "Function:shop.py::price"
            }
            ("call_chain", _) => "Function:shop.py::total",
            ("release_show" | "release_diff", _) => "r1",
            ("tag_show", _) => "t1",
            ("type_show", _) => "Thing",
            ("feature_status", _) => "f1",
            ("merge", _) => "dev",
            ("diff_since", _) => "tx:1",
            ("find_pattern", _) => "all",
            ("cypher", _) => "MATCH (n) OPTIONAL MATCH (n)-[r]->(m) RETURN n, r, m.title, keys(n), collect(m)",
            (_, "query" | "task" | "question") => "price of the web",
            _ => "Service:web",
        }));
        words.extend(more.iter().filter(|(name, _)| *name == meta.name).flat_map(|(_, words)| *words));
        let out = desk.run(&words);
        let printed = [&out.stdout[..], &out.stderr[..]].concat();
        let text = String::from_utf8_lossy(&printed);
        let bad = text.chars().find(|c| c.is_control() && !"\n\t".contains(*c));
        assert!(bad.is_none(), "{words:?}: {bad:?} in {text:?}");
        shown += usize::from(out.status.success());
    }
    assert!(shown > 25, "only {shown} commands had something to show");
    // Errors repeat the arguments.
    for words in [["get", "\u{1b}[31mno"], ["\u{1b}[31mno", "x"], ["log", "--\u{1b}[31mno"]] {
        let out = desk.run(&words);
        assert!(!out.status.success());
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!text.contains('\u{1b}'), "{words:?}: {text:?}");
    }
}

#[test]
fn no_error_and_no_check_shows_the_password_of_a_database() {
    let desk = Desk { store: Some("postgres://ann:HIDDEN@127.0.0.1:1/shop".into()), ..Desk::new() };
    let url = desk.store.clone().unwrap();
    for args in [
        &["context-graph", "auth"][..],
        &["get", "auth"],
        &["doctor"],
        &["doctor", "--json"],
        &["--store", &url, "context-graph", "auth"],
        &["list", "--limit", &url],
        &["search", "--nosuch", &url],
        &["--store", "mysql://ann:HIDDEN@127.0.0.1/shop", "list"],
        &["serve", "--listen", &url],
        &["setup-postgres", "--admin-url", &url, "--app-url", "postgres://bob:HIDDEN@127.0.0.1:x/y"],
    ] {
        let out = desk.run(args);
        let shown = text(&out.stdout) + &text(&out.stderr);
        assert!(!out.status.success() && !shown.is_empty(), "{args:?}");
        assert!(!shown.contains("HIDDEN"), "{args:?}: {shown}");
    }
    let refused = desk.run(&["--store", "mysql://ann:HIDDEN@127.0.0.1/shop", "put", "Service", "a"]);
    assert!(text(&refused.stderr).contains("invalid_url"), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read_dir(desk.folder.path()).unwrap().count(), 0, "no file was made for a URL");
}

#[test]
fn a_context_graph_is_created_in_the_named_store() {
    let desk = Desk::new();
    let store = desk.path("elsewhere.db");
    desk.ok(&["--store", &store, "put", "Service", "auth"]);
    let made = desk.ok(&["--store", &store, "context-graph", "Service:auth"]);
    assert!(made["context_graph_id"].is_string(), "{made}");
    let unkept = desk.ok(&["context-graph", "Service:auth", "--keep", "false", "--store", &store]);
    assert!(unkept["context_graph_id"].is_null(), "{unkept}");
    assert!(!Path::new(&desk.path("false")).exists());
}

#[test]
fn direction_marks_do_not_reach_a_terminal() {
    let desk = Desk::new();
    let title = "is_admin\u{202e} }\u{2066}\u{9b}2J";
    desk.ok(&["put", "Service", "auth", "--title", title]);
    for args in [&["get", "auth"][..], &["get", "auth", "--json"], &["list"], &["list", "--json"], &["get", title]] {
        let out = desk.run(args);
        let shown = text(&out.stdout) + &text(&out.stderr);
        assert!(shown.contains("is_admin"), "{args:?}: {shown}");
        assert!(!shown.contains(['\u{202e}', '\u{2066}', '\u{9b}']), "{args:?}: {shown}");
    }
    assert_eq!(desk.ok(&["get", "auth"])["thing"]["title"], title, "it is the same value");
}

#[cfg(unix)]
#[test]
fn created_files_are_readable_only_by_their_user() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    desk.write("shop.py", "def price():\n    return 1\n");
    desk.ok(&["index"]);
    desk.ok(&["backup", &desk.path("backups/one.db")]);
    desk.ok(&["backup", &desk.path("backups/one.jsonl")]);
    desk.ok(&["export", &desk.path("export.jsonl")]);
    desk.ok(&["audit", "export", &desk.path("audit.jsonl")]);
    let mut left = vec![desk.folder.path().join(".lukasa"), desk.folder.path().join("backups")];
    left.extend(["export.jsonl", "audit.jsonl"].map(|name| desk.folder.path().join(name)));
    let mut seen = 0;
    while let Some(path) = left.pop() {
        let found = path.symlink_metadata().unwrap();
        let mode = found.permissions().mode() & 0o777;
        assert_eq!(mode, if found.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        if found.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        seen += 1;
    }
    assert!(seen >= 12, "{seen}");
}

#[cfg(unix)]
#[test]
fn counts_of_a_test_run_are_those_of_the_output_or_unknown() {
    let desk = Desk::new();
    desk.ok(&["put", "Service", "auth"]);
    for (output, passed, failed, says) in [
        ("Ran 5 tests in 0.003s\n\nOK (skipped=1)", json!(4), json!(0), "4 passed, 0 failed"),
        ("Ran 9 tests in 0.1s\n\nFAILED (failures=1, errors=2)", json!(6), json!(3), "6 passed, 3 failed"),
        ("all is well", Value::Null, Value::Null, "counts unknown"),
    ] {
        desk.write("tests.sh", &format!("cat <<'END'\n{output}\nEND\n"));
        let run = ["test-run", "--command", "sh", "--command", "tests.sh"];
        let counts = desk.ok(&run);
        assert_eq!((&counts["passed"], &counts["failed"]), (&passed, &failed), "{output}: {counts}");
        let shown = text(&desk.run(&run).stdout);
        assert!(shown.lines().next().is_some_and(|line| line.contains(says)), "{shown}");
    }
}
