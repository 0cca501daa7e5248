//! Names of objects: every spelling that callers write, in every operation that takes a name, on every store.

use crate::test_engine::TestEngine;
use lukasa_engine::registry::fields;
use lukasa_engine::{Context, operations};
use lukasa_model::{Error, ErrorCode};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const CONTEXT_GO: &str = "package gin

type Context struct {
	code int
}

func (c *Context) JSON(code int) {
	c.render(code)
}

func (c *Context) render(code int) {
	c.code = code
}

func Run(c *Context) {
	c.JSON(200)
}
";
const CONTEXT_TEST_GO: &str = "package gin

import \"testing\"

type fake struct{}

func (f *fake) render(code int) {}

func TestRender(t *testing.T) {
	Run(&Context{})
}
";
const HONO_TS: &str = "export class Hono {
  #dispatch(path: string): string {
    return path
  }

  fetch(path: string): string {
    return this.#dispatch(path)
  }
}

export function serve(app: Hono): string {
  return app.fetch('/')
}
";
const TILL_RS: &str = "pub struct Till;

impl Till {
    pub fn sell(&self) -> u32 {
        price()
    }
}

pub fn price() -> u32 {
    1
}
";
const AUTH_PY: &str = "class Session:
    def close(self):
        return check(self)


def check(word):
    return word


def close(word):
    return check(word)
";
const SUM_JAVA: &str = "package shop;

class Sum {
    int of(int a) {
        return a;
    }

    int of(long a) {
        return 1;
    }

    int twice(int a) {
        return of(a) + of(2L);
    }
}
";

const JSON: &str = "context.go::Context::JSON";
const DISPATCH: &str = "src/hono.ts::Hono::#dispatch";
const FETCH: &str = "src/hono.ts::Hono::fetch";
const SELL: &str = "crates/till/src/till.rs::Till::sell";
const CLOSE: &str = "shop/auth.py::Session::close";

fn write(folder: &Path, path: &str, text: &str) {
    std::fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
    std::fs::write(folder.join(path), text).unwrap();
}

/// A repository in four languages, indexed, and the engine over it.
struct Shop {
    test: TestEngine,
    folder: TempDir,
}

impl Shop {
    fn all() -> Vec<Shop> {
        TestEngine::all().into_iter().map(Shop::new).collect()
    }

    fn new(test: TestEngine) -> Shop {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("context.go", CONTEXT_GO),
            ("context_test.go", CONTEXT_TEST_GO),
            ("src/hono.ts", HONO_TS),
            ("crates/till/src/till.rs", TILL_RS),
            ("shop/auth.py", AUTH_PY),
            ("shop/Sum.java", SUM_JAVA),
        ] {
            write(folder.path(), path, text);
        }
        test.ok("index_directory", json!({"path": folder.path().to_str().unwrap(), "branch": "main"}));
        Shop { test, folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Calls an operation as an agent that works in a folder of the tree.
    fn ask_in(&self, agent: &str, folder: &str, name: &str, request: Value) -> Result<Value, Error> {
        let mut progress = |_, _| {};
        let mut context = Context {
            agent: Some(agent.into()),
            tree: Some(self.root()),
            folder: Some(self.root().join(folder)),
            ..Context::of(self.test.fixture.ledger.scope().clone(), &mut progress)
        };
        self.test.engine.call(&mut context, name, request)
    }

    fn ask(&self, name: &str, request: Value) -> Result<Value, Error> {
        self.ask_in("ada", "", name, request)
    }

    fn ok(&self, name: &str, request: Value) -> Value {
        self.ask(name, request.clone()).unwrap_or_else(|e| panic!("{name} {request}: {e:?}"))
    }
}

/// An operation, its request for a name, and the object that its answer shows for that name.
type Asked = (&'static str, fn(&str) -> Value, fn(&Value) -> Value);

/// One operation of each family.
const ASKED: [Asked; 9] = [
    ("get", |name| json!({"ref": name}), |out| out["thing"]["key"].clone()),
    ("history", |name| json!({"ref": name}), |out| out["key"].clone()),
    ("impact", |name| json!({"ref": name}), |out| without_type(&out["source_node"])),
    ("get_callers", |name| json!({"ref": name}), |out| out["symbol"]["key"].clone()),
    ("code_explain", |name| json!({"ref": name}), |out| out["symbol"]["key"].clone()),
    ("semantic_slice", |name| json!({"symbol": name}), |out| out["key"].clone()),
    ("agent_claim", |name| json!({"target_id": name, "intent": "mend it"}), |out| out["target_id"].clone()),
    (
        "episode_add",
        |name| json!({"content": "seen", "entities": [name]}),
        |out| without_type(&out["entities"][0]["ref"]),
    ),
    (
        "cypher",
        |name| json!({"query": "CALL lukasa.node($name) YIELD node RETURN node.key", "parameters": {"name": name}}),
        |out| out["rows"][0][0].clone(),
    ),
];

fn without_type(name: &Value) -> Value {
    json!(name.as_str().unwrap_or_default().split_once(':').map_or("", |(_, key)| key))
}

#[test]
fn every_form_of_a_name_leads_to_one_object_in_every_operation() {
    for shop in Shop::all() {
        let id = shop.ok("get", json!({"ref": JSON}))["thing"]["id"].as_str().unwrap().to_owned();
        let absolute = shop.root().join("src/hono.ts").display().to_string();
        let (file, symbol) = (absolute.clone(), format!("{absolute}::Hono::fetch"));
        for (form, key) in [
            (id.as_str(), JSON),
            (JSON, JSON),
            ("Method:context.go::Context::JSON", JSON),
            ("method:Context.JSON", JSON),
            ("Context.JSON", JSON),
            ("Context::JSON", JSON),
            ("Context#JSON", JSON),
            ("JSON", JSON),
            ("JSON()", JSON),
            ("(*Context).JSON", JSON),
            ("gin.Context.JSON", JSON),
            ("(*gin.Context).JSON", JSON),
            ("context.go:JSON", JSON),
            ("context.go:Context.JSON", JSON),
            ("context.go:8", JSON),
            ("./context.go:7:2", JSON),
            ("./context.go::Context::JSON", JSON),
            ("symbol::context.go::Context::JSON", JSON),
            ("function:context.go:JSON", JSON),
            ("render", "context.go::Context::render"),
            ("context.go:1", "context.go"),
            ("./context.go", "context.go"),
            ("file::context.go", "context.go"),
            ("file:/context.go", "context.go"),
            ("File:context.go", "context.go"),
            ("hono.ts", "src/hono.ts"),
            (&file, "src/hono.ts"),
            (&symbol, FETCH),
            ("Hono.fetch", FETCH),
            ("hono.Hono.fetch", FETCH),
            ("src/hono.ts:Hono.fetch", FETCH),
            ("hono.ts#L7", FETCH),
            ("Hono.#dispatch", DISPATCH),
            ("Hono.dispatch", DISPATCH),
            ("#dispatch", DISPATCH),
            ("dispatch", DISPATCH),
            ("Till::sell", SELL),
            ("till::Till::sell", SELL),
            ("crate::till::Till::sell", SELL),
            ("Session.close", CLOSE),
            ("shop.auth.Session.close", CLOSE),
            ("auth.py:3", CLOSE),
            ("auth.close", "shop/auth.py::close"),
        ] {
            for (name, request, taken) in ASKED {
                let out = shop.ok(name, request(form));
                assert_eq!(taken(&out), key, "{name} {form}");
                if name == "semantic_slice" {
                    continue;
                }
                let exact = [id.as_str(), key].contains(&form)
                    || form.ends_with(&format!(":{key}")) && form.contains("Method:")
                    || form == "File:context.go";
                let shown = out["resolved"][0]["given"].as_str();
                assert_eq!(shown, (!exact).then_some(form), "{name} {form}: {}", out["resolved"]);
            }
        }
    }
}

#[test]
fn paths_may_be_written_from_the_callers_folder() {
    for shop in Shop::all() {
        write(shop.folder.path(), "src/context.go", "package other\n\nfunc Other() {}\n");
        shop.ok("index_directory", json!({"path": shop.folder.path().to_str().unwrap(), "branch": "main"}));
        let key = |folder: &str, name: &str| {
            let out = shop.ask_in("ada", folder, "get", json!({"ref": name}));
            out.map(|out| out["thing"]["key"].as_str().unwrap().to_owned()).map_err(|e| e.code)
        };
        assert_eq!(key("shop", "auth.py").as_deref(), Ok("shop/auth.py"));
        assert_eq!(key("shop", "./auth.py::check").as_deref(), Ok("shop/auth.py::check"));
        assert_eq!(key("shop", "../src/hono.ts").as_deref(), Ok("src/hono.ts"));
        assert_eq!(key("src", "context.go").as_deref(), Ok("context.go"), "a whole key is never something else");
        assert_eq!(key("src", "./context.go").as_deref(), Ok("src/context.go"));
        assert_eq!(key("src", "./context.go:3").as_deref(), Ok("src/context.go::Other"));
        assert_eq!(key("", "/etc/passwd"), Err(ErrorCode::OutsideWorkspace));
        assert_eq!(key("", "../context.go"), Err(ErrorCode::OutsideWorkspace));
    }
}

#[test]
fn several_candidates_are_listed_and_none_gives_the_nearest() {
    for shop in Shop::all() {
        for name in ["get", "get_callers", "semantic_slice", "agent_claim", "episode_add", "cypher"] {
            let (_, request, _) = ASKED.into_iter().find(|(asked, ..)| *asked == name).unwrap();
            let error = shop.ask(name, request("close")).unwrap_err();
            assert_eq!(error.code, ErrorCode::Ambiguous, "{name}: {error:?}");
            let hint = error.hint.unwrap();
            for candidate in [
                "`Method:shop/auth.py::Session::close` (shop/auth.py:2)",
                "`Function:shop/auth.py::close` (shop/auth.py:10)",
            ] {
                assert!(hint.contains(candidate), "{name}: {hint}");
            }
            assert_eq!(error.details["total"], 2, "{name}");
            let error = shop.ask(name, request("Hono.fetchh")).unwrap_err();
            assert_eq!(error.kind.http_status(), 404, "{name}: {error:?}");
            assert!(error.hint.unwrap().contains("Method:src/hono.ts::Hono::fetch"), "{name}");
        }
        let error = shop.ask("get", json!({"ref": "context.go:400"})).unwrap_err();
        assert!(error.code == ErrorCode::NotFound && error.message.contains("no line 400"), "{error:?}");
    }
}

#[test]
fn overloads_of_one_function_are_one_candidate() {
    for shop in Shop::all() {
        let out = shop.ok("get_callers", json!({"ref": "Sum.of"}));
        assert!(out["symbol"]["key"].as_str().unwrap().starts_with("shop/Sum.java::Sum::of"), "{out}");
        assert_eq!(out["resolved"][0]["overloads"], 2);
        assert_eq!(out["callers"][0]["key"], "shop/Sum.java::Sum::twice");
        assert_eq!(out["callers"][0]["call_lines"], json!([13]));
    }
}

#[test]
fn all_names_of_one_thing_are_one_claim() {
    for shop in Shop::all() {
        let claim = |agent: &str, folder: &str, target: &str, new: bool| {
            let request = json!({"target_id": target, "intent": "mend it", "new": new});
            shop.ask_in(agent, folder, "agent_claim", request)
        };
        assert_eq!(claim("ada", "", "Hono.fetch", false).unwrap()["target_id"], FETCH);
        for form in [FETCH, "Hono::fetch", "fetch", "Method:src/hono.ts::Hono::fetch", "hono.ts:7"] {
            let second = claim("bob", "", form, false).unwrap();
            assert_eq!((&second["status"], &second["target_id"]), (&json!("CONFLICT"), &json!(FETCH)), "{form}");
        }
        let sum = claim("ada", "", "Sum.of", false).unwrap()["target_id"].clone();
        for overload in ["Sum.java:5", "Sum.java:9", "shop.Sum.of"] {
            let second = claim("bob", "", overload, false).unwrap();
            assert_eq!((&second["status"], &second["target_id"]), (&json!("CONFLICT"), &sum), "{overload}");
        }
        for nothing in ["src/nowhere.ts", "src/hono.ts::Hono::nowhere", "Hono.nowhere", "nowhere", "nowhere.ts:f"] {
            let error = claim("bob", "", nothing, false).unwrap_err();
            assert_eq!(error.code, ErrorCode::UnknownTarget, "{nothing}: {error:?}");
        }
        let made = claim("bob", "", "./src/nowhere.ts", true).unwrap();
        assert_eq!((&made["status"], &made["target_id"]), (&json!("ok"), &json!("src/nowhere.ts")));
        assert_eq!(claim("ada", "src", "nowhere.ts", true).unwrap()["status"], "ok", "from the root: another file");
        assert_eq!(claim("ada", "src", "./nowhere.ts", true).unwrap()["status"], "CONFLICT");
        assert_eq!(
            claim("bob", "", "nowhere", true).unwrap_err().code,
            ErrorCode::UnknownTarget,
            "no file has such a name"
        );
        write(shop.folder.path(), "notes/plan.txt", "to do\n");
        let plan = claim("bob", "notes", "plan.txt", false).unwrap();
        assert_eq!(plan["target_id"], "notes/plan.txt", "a file that is not indexed");
        assert_eq!(claim("bob", "", "task:12", false).unwrap()["status"], "ok", "tasks need not exist");
        let released = shop.ask_in("bob", "", "agent_release", json!({"claim_id": "src/nowhere.ts"})).unwrap();
        assert_eq!(released["status"], "released");
        let released = shop.ask_in("ada", "", "agent_release", json!({"claim_id": "Hono.fetch"})).unwrap();
        assert_eq!(released["target_id"], FETCH);
    }
}

#[test]
fn what_is_remembered_names_what_exists_unless_it_is_new() {
    for shop in Shop::all() {
        let out = shop.ok("episode_add", json!({"content": "slow", "entities": ["Context.JSON", "hono.ts"]}));
        let refs: Vec<&str> = out["entities"].as_array().unwrap().iter().map(|e| e["ref"].as_str().unwrap()).collect();
        assert_eq!(refs, ["Method:context.go::Context::JSON", "File:src/hono.ts"]);
        let again = shop.ok("episode_recall", json!({"query": "slow", "entities": ["context.go:JSON"]}));
        assert_eq!(again["episodes"][0]["episode_id"], out["episode_id"]);
        let decide = |files: Value, new: bool| {
            let request = json!({"title": "One queue", "rationale": "order", "affected_files": files, "new": new});
            shop.ask("decision_add", request)
        };
        let out = decide(json!(["./src/hono.ts"]), false).unwrap();
        assert_eq!(out["entities"][0]["ref"], "File:src/hono.ts");
        let kept = shop.ok("get", json!({"ref": out["episode_id"]}));
        assert_eq!(kept["thing"]["properties"]["affected_files"], json!(["src/hono.ts"]));
        let error = decide(json!(["src/nowhere.ts"]), false).unwrap_err();
        assert!(error.code == ErrorCode::UnknownEntity && error.hint.as_ref().unwrap().contains("--new"), "{error:?}");
        let out = decide(json!(["src/nowhere.ts"]), true).unwrap();
        assert!(out["warnings"][0].as_str().unwrap().contains("src/nowhere.ts"), "{out}");
        let remember =
            |new: bool| shop.ask("episode_add", json!({"content": "x", "entities": ["Hono.nowhere"], "new": new}));
        assert_eq!(remember(false).unwrap_err().code, ErrorCode::UnknownEntity);
        let out = remember(true).unwrap();
        assert!(out["warnings"][0].as_str().unwrap().contains("Hono.nowhere"), "{out}");
        let kept = shop.ok("get", json!({"ref": out["episode_id"]}));
        assert_eq!(kept["thing"]["properties"]["unlinked"], json!(["Hono.nowhere"]));
    }
}

/// The object that a field of an operation is about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    Code,
    File,
    Decision,
    ContextGraph,
    Policy,
    Claim,
}

fn wanted(operation: &str, field: &str) -> Wanted {
    match (operation, field) {
        ("semantic_slice", "file") | (_, "affected_files") => Wanted::File,
        (_, "decision_id" | "supersedes") => Wanted::Decision,
        (_, "replay" | "context_graph_id") => Wanted::ContextGraph,
        (_, "policies") => Wanted::Policy,
        ("agent_release", _) => Wanted::Claim,
        _ => Wanted::Code,
    }
}

/// A new object for every call, because some operations end it: its key, and the end of its key.
fn make(shop: &Shop, what: Wanted, n: usize) -> (String, String, String) {
    let (type_name, key, suffix) = match what {
        Wanted::Code | Wanted::Claim => ("Function", format!("made/f{n}.py::made{n}"), format!("made{n}")),
        Wanted::File => ("File", format!("made/g{n}.py"), format!("g{n}.py")),
        Wanted::Decision => ("Decision", format!("decision:made-{n}"), format!("made-{n}")),
        Wanted::Policy => ("Policy", format!("policy:made-{n}"), format!("made-{n}")),
        Wanted::ContextGraph => {
            let out = shop.ok("build_context_graph", json!({"anchors": [JSON], "store": true}));
            let key = out["context_graph_id"].as_str().unwrap().to_owned();
            let suffix = key.rsplit(':').next().unwrap().to_owned();
            return (key.clone(), format!("ContextGraph:{key}"), suffix);
        }
    };
    shop.ok("put", json!({"type": type_name, "key": key}));
    if what == Wanted::Code {
        shop.ok("link", json!({"type": "CALLS", "src": key, "dst": JSON}));
    }
    if what == Wanted::Claim {
        shop.ok("agent_claim", json!({"target_id": key, "intent": "mend it"}));
    }
    (key.clone(), format!("{type_name}:{key}"), suffix)
}

/// The other fields of a request, so that the outcome depends on the name alone.
fn rest_of(operation: &str, field: &str, n: usize) -> Map<String, Value> {
    let rest = match (operation, field) {
        ("link", "src") => json!({"type": "RELATES_TO", "dst": JSON}),
        ("link", _) => json!({"type": "RELATES_TO", "src": JSON}),
        ("call_chain" | "shortest_path" | "paths", "from") => json!({"to": JSON}),
        ("call_chain" | "shortest_path" | "paths", _) => json!({"from": JSON}),
        ("rename", _) => json!({"to": format!("made/renamed{n}.py::r")}),
        ("merge", _) => json!({"source": format!("side-{n}")}),
        ("communities", _) => json!({"fresh": true}),
        ("patch", _) => json!({"title": "x"}),
        ("search", _) => json!({"query": "context"}),
        ("agent_claim", _) => json!({"intent": "mend it"}),
        ("episode_add", _) => json!({"content": "seen"}),
        ("episode_recall" | "decision_query", _) => json!({"query": "seen"}),
        ("decision_add", _) => json!({"title": "one queue", "rationale": "order"}),
        ("build_context_graph", "policies") => json!({"mode": "policy_first"}),
        ("context_graph_usage", "result") => json!({"context_graph_id": "", "usage_type": "validation"}),
        ("context_graph_usage", _) => json!({"usage_type": "validation"}),
        ("task_update", _) => json!({"task_id": format!("{n}")}),
        ("test_run", _) => json!({"path": "", "command": ["true"]}),
        _ => json!({}),
    };
    rest.as_object().unwrap().clone()
}

#[test]
fn every_field_that_names_an_object_takes_every_form() {
    let shop = Shop::new(TestEngine::all().remove(0));
    let mut n = 0;
    let mut asked = 0;
    for operation in operations() {
        for field in operation.meta.names {
            let own = fields::fields(operation).into_iter().find(|f| f.name == *field);
            let own = own.unwrap_or_else(|| panic!("{} has no field {field}", operation.meta.name));
            let is_list = matches!(own.shape, fields::FieldSyntax::Texts);
            for form in ["key", "Type:key", "id", "suffix"] {
                n += 1;
                let name = operation.meta.name;
                if name == "merge" {
                    shop.ok("branch_create", json!({"name": format!("side-{n}")}));
                }
                let (key, typed, suffix) = make(&shop, wanted(name, field), n);
                if name == "merge" {
                    let side = json!({"type": "Function", "key": key, "branch": format!("side-{n}"), "title": "side"});
                    shop.ok("put", side);
                }
                let id = shop.ok("get", json!({"ref": typed}))["thing"]["id"].as_str().unwrap().to_owned();
                let given = match form {
                    "key" => &key,
                    "Type:key" => &typed,
                    "id" => &id,
                    _ => &suffix,
                };
                let mut request = rest_of(name, field, n);
                if name == "test_run" {
                    request.insert("path".into(), json!(shop.root()));
                }
                if (name, *field) == ("context_graph_usage", "result") {
                    request.insert("context_graph_id".into(), json!(make(&shop, Wanted::ContextGraph, n).0));
                }
                request.insert((*field).into(), if is_list { json!([given]) } else { json!(given) });
                let out = shop.ask(name, Value::Object(request.clone()));
                let out = out.unwrap_or_else(|e| panic!("{name}.{field} by {form}, {request:?}: {e:?}"));
                // A slice names the symbol itself, and a claim its target.
                let names_it = name == "semantic_slice" || wanted(name, field) == Wanted::Claim;
                if form == "suffix" && !names_it {
                    let taken = &out["resolved"][0];
                    assert_eq!((&taken["given"], &taken["ref"]), (&json!(given), &json!(typed)), "{name}.{field}");
                }
                asked += 1;
            }
        }
    }
    assert!(asked > 150, "{asked}");
}

#[test]
fn fields_declared_to_take_names_are_resolved() {
    for operation in operations() {
        for (field, schema) in operation.fields() {
            let described = schema["description"].as_str().unwrap_or_default();
            if described.contains("`Type:key`") && !operation.meta.names.contains(&field.as_str()) {
                panic!("{}.{field} takes names: {described}", operation.meta.name);
            }
        }
    }
}
