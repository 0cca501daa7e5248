//! Every operation of the registry answers in the compact profile, on a repository of 2,500 files.

use crate::faults::{self, Faults};
use crate::scip::encode;
use crate::test_engine::TestEngine;
use lukasa_engine::audit::{AuditKey, AuditedOperations};
use lukasa_engine::registry::Effect;
use lukasa_engine::response_budget::Profile;
use lukasa_engine::{Audit, Context, Operation, operations, response_budget};
use lukasa_model::{Error, Scope};
use lukasa_search::count::count;
use lukasa_store::Clock;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILES: usize = 2_500;
const CORE: &str = "core/dispatching_of_requests.py::dispatch_request_to_the_right_handler_of_the_application";
const CORE_NAME: &str = "dispatch_request_to_the_right_handler_of_the_application";
const WORDS: &str = "The handler must be looked up by the full path of the request, because two applications may have \
                     mounted handlers of the same name. ";

/// Sources with long names, long comments and long bodies, of which one function is called from everywhere.
fn sources(root: &Path) {
    let write = |path: String, text: String| {
        let place = root.join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    };
    let body: String = (0..120)
        .map(|n| format!("    handlers_by_path_{n} = lookup_handlers(request, {n})  # {}\n", &WORDS[..60]))
        .collect();
    let methods: String = (0..40)
        .map(|n| {
            format!(
                "    def mount_application_below_prefix_{n}(self, application, prefix):\n        return {CORE_NAME}(application, prefix)\n\n"
            )
        })
        .collect();
    write(
        "core/dispatching_of_requests.py".into(),
        format!(
            "def lookup_handlers(request, n):\n    return n\n\n\ndef {CORE_NAME}(request, response, configuration_of_the_application=None, middleware_in_order=(), timeout_in_seconds=30):\n    \"\"\"{}\"\"\"\n{body}    return lookup_handlers(request, 1)\n\n\nclass ApplicationRouter:\n{methods}",
            WORDS.repeat(8)
        ),
    );
    for n in 1..FILES - 1 {
        let text = match n % 100 {
            0 => format!(
                "from core.dispatching_of_requests import {CORE_NAME}\n\n\ndef handler_{n}_with_a_name(request):\n    \"\"\"{WORDS}\"\"\"\n    return {CORE_NAME}(request, None)\n"
            ),
            _ => format!("def small_{n}(value):\n    return value\n"),
        };
        write(format!("part_{}/module_{n}.py", n % 50), text);
    }
    write("docs/handlers.md".into(), format!("# Handlers\n\n{}\n", WORDS.repeat(5)));
}

struct Setting {
    test: TestEngine,
    root: PathBuf,
    beside: PathBuf,
    claim: String,
    context_graph: String,
    _folder: tempfile::TempDir,
}

impl Setting {
    fn new() -> Setting {
        let mut test = TestEngine::all().into_iter().find(|test| test.fixture.name.contains("sqlite")).unwrap();
        let clock = Arc::clone(&test.fixture.clock) as Arc<dyn Clock>;
        let key = Arc::new(AuditKey::new(&[7; 32]).unwrap());
        let audit = Audit::new(Arc::clone(&test.fixture.store), clock, "s1", key, AuditedOperations::All);
        test.engine = test.engine.clone().with_audit(audit);
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().canonicalize().unwrap();
        let root = beside.join("tree");
        sources(&root);
        test.ok("index_directory", json!({"path": root, "branch": "main"}));
        let mut setting =
            Setting { test, root, beside, claim: String::new(), context_graph: String::new(), _folder: folder };
        setting.remember();
        setting.coordinate();
        setting.declare();
        setting
    }

    fn remember(&mut self) {
        let ok = |name: &str, request: Value| self.test.ok(name, request);
        for n in 0..12 {
            let (title, why) = (format!("Handlers are looked up by path, rule {n}"), WORDS.repeat(4));
            ok(
                "decision_add",
                json!({"title": title, "rationale": why, "entities": [CORE], "id": format!("d{n}"), "agent_id": "ada", "session_id": "s"}),
            );
        }
        for n in 0..24 {
            let content = format!("Observation {n}. {}", WORDS.repeat(3));
            ok(
                "episode_add",
                json!({"content": content, "entities": [CORE], "agent_id": "ada", "session_id": "s", "task_id": "1"}),
            );
        }
        for n in 0..6 {
            let learning = json!({"type": "LEARNING", "content": format!("Learned {n}: {}", WORDS.repeat(2)), "entities": [CORE],
                "metadata": {"confidence": 0.9}});
            ok("episode_add", learning);
        }
        for n in 0..4 {
            let edit = json!({"file": "core/dispatching_of_requests.py", "diff_summary": "later", "lines_before": 1,
                "lines_after": 2, "reason": "r"});
            let content = format!("edit {n} of the dispatcher");
            ok(
                "episode_add",
                json!({"type": "EDIT", "content": content, "metadata": edit, "agent_id": "ada", "task_id": "1"}),
            );
        }
    }

    fn coordinate(&mut self) {
        for n in 0..8 {
            let blocked: Vec<String> = if n > 4 { (0..n).map(|n| n.to_string()).collect() } else { vec![] };
            self.test.ok(
                "task_update",
                json!({"task_id": n.to_string(), "title": format!("Task {n}: {WORDS}"), "feature_id": "routing", "blocked_by": blocked,
                    "agent_id": "ada"}),
            );
        }
        let methods = (0..6)
            .map(|n| format!("core/dispatching_of_requests.py::ApplicationRouter::mount_application_below_prefix_{n}"));
        for (n, target) in std::iter::once(CORE.to_owned()).chain(methods).enumerate() {
            let request = json!({"target_id": target, "agent_id": format!("agent-number-{n}"), "intent": WORDS});
            self.test.ok("agent_claim", request);
        }
        for agent in ["eve", "bob"] {
            self.test.ok("agent_claim", json!({"target_id": CORE, "agent_id": agent, "intent": WORDS}));
        }
        let own = json!({"target_id": "part_1/module_1.py", "agent_id": "ada", "intent": "a claim to release"});
        self.claim = self.test.ok("agent_claim", own)["claim_id"].as_str().unwrap().to_owned();
        let graph = self.test.ok("build_context_graph", json!({"anchors": [CORE], "include_properties": true}));
        self.context_graph = graph["context_graph_id"].as_str().unwrap().to_owned();
    }

    fn declare(&self) {
        for n in 0..30 {
            let object = json!({"type": "Service", "key": format!("service-number-{n}"), "title": WORDS,
                "properties": {"about": WORDS.repeat(3), "port": n}});
            self.test.ok("put", object);
        }
        for n in 1..30 {
            let link = json!({"type": "CALLS", "src": "Service:service-number-0", "dst": format!("Service:service-number-{n}")});
            self.test.ok("link", link);
        }
        self.test.ok("release_create", json!({"name": "v1", "description": WORDS}));
        self.test.ok("tag_create", json!({"name": "stable", "release": "v1"}));
        self.test.ok("branch_create", json!({"name": "feature"}));
        self.test.ok("branch_create", json!({"name": "closed"}));
        self.test.ok("branch_create", json!({"name": "pinned", "pinned": true}));
        self.test.ok("branch_close", json!({"name": "closed"}));
        let changed: Vec<Value> = (0..30)
            .map(|n| json!({"object": {"type": "Service", "key": format!("changed-number-{n}"), "title": WORDS}}))
            .collect();
        self.test.ok("batch", json!({"writes": changed, "branch": "feature"}));
        self.test.ok("put", json!({"type": "Service", "key": "gone"}));
        self.test.ok("delete", json!({"ref": "Service:gone"}));
        std::fs::write(
            self.beside.join("facts.jsonl"),
            "{\"object\": {\"type\": \"Service\", \"key\": \"imported\"}}\n",
        )
        .unwrap();
        let small = json!({"type": "Service", "key": "a"});
        self.ask("small", "put", small).unwrap();
        let dump = self.beside.join("small.jsonl");
        self.ask("small", "export", json!({"file": dump, "history": true})).unwrap();
        let source = "def small_1(value):\n    return value\n";
        let doc = encode::Doc::new("part_1/module_1.py", source, encode::Units::Utf16);
        let doc = doc.define(1, "small_1", "scip-python python shop 1.0.0 `part_1.module_1`/small_1().");
        std::fs::write(self.beside.join("index.scip"), encode::index("scip-python", "file:///x", &[doc], &[])).unwrap();
    }

    /// Calls an operation in a project; operations that restore need an empty one.
    fn ask(&self, project: &str, name: &str, request: Value) -> Result<Value, Error> {
        let mut progress = |_, _| {};
        let scope = self.test.fixture.ledger.scope();
        let project = if project.is_empty() { scope.project.clone() } else { project.into() };
        let mut context = Context::of(Scope { project, tenant: scope.tenant.clone() }, &mut progress);
        self.test.engine.call(&mut context, name, request)
    }

    /// The request for each operation; an operation without a request fails the test.
    fn request(&self, name: &str) -> Value {
        let file = |name: &str| self.beside.join(name);
        match name {
            "demo"
            | "call_graph_stats"
            | "graph_stats"
            | "rank"
            | "communities"
            | "search_readiness"
            | "log"
            | "event_list"
            | "branch_list"
            | "release_list"
            | "tag_list"
            | "type_list"
            | "verify"
            | "audit_list"
            | "audit_verify"
            | "projects"
            | "coordination_overview"
            | "progress_query"
            | "task_ready"
            | "blocking_issues"
            | "find_tools"
            | "link_mentions" => {
                json!({})
            }
            "embed" => json!({"limit": 3}),
            "remove_model" => json!({"model": "gte-small", "force": true}),
            "index_directory" | "graph_health" | "graph_rebuild" => json!({"path": self.root, "branch": "main"}),
            "graph_set_workspace" => json!({"path": self.root, "no_watch": true}),
            "index_file" => json!({"path": self.root.join("core/dispatching_of_requests.py"), "branch": "main"}),
            "import_scip" => json!({"file": file("index.scip"), "path": self.root, "branch": "main"}),
            "get" => json!({"ref": "Service:service-number-0"}),
            "list" => json!({"type": "Service"}),
            "put" => json!({"type": "Service", "key": "put-here"}),
            "patch" => json!({"ref": "Service:service-number-1", "set": ["port=7"]}),
            "link" => json!({"type": "CALLS", "src": "Service:service-number-1", "dst": "Service:service-number-2"}),
            "delete" => json!({"ref": "Service:service-number-29"}),
            "restore" => json!({"ref": "Service:gone"}),
            "rename" => json!({"ref": "Service:service-number-28", "to": "service-renamed"}),
            "batch" => {
                let writes = (0..200).map(|n| json!({"object": {"type": "Service", "key": format!("batch-{n}")}}));
                json!({"writes": writes.collect::<Vec<_>>()})
            }
            "neighbors" | "impact" | "code_explain" | "get_callers" | "get_callees" | "history" => json!({"ref": CORE}),
            "traverse" | "expand" | "subgraph" => json!({"roots": [CORE]}),
            "graph_traverse" => json!({"entry_entity_ids": [self.test.ok("get", json!({"ref": CORE}))["thing"]["id"]]}),
            "shortest_path" | "paths" => json!({"from": "Service:service-number-0", "to": "Service:service-number-3"}),
            "call_chain" => json!({"from": "handler_100_with_a_name", "to": "lookup_handlers"}),
            "symbol_lookup" => json!({"query": "mount_application"}),
            "search"
            | "graph_query"
            | "query_knowledge_graph"
            | "memory_linked_search"
            | "episode_recall"
            | "decision_query" => {
                json!({"query": "looked up handlers by the path of the request"})
            }
            "context_pack" => json!({"task": "the handler of a request is looked up wrongly", "agent_id": "zoe"}),
            "semantic_slice" => json!({"symbol": CORE, "context": "full"}),
            "find_pattern" => json!({"pattern": "long_functions"}),
            "cypher" => json!({"query": "MATCH (f:Function) RETURN f.key, f.summary LIMIT 100"}),
            "episode_add" => json!({"content": WORDS.repeat(5), "entities": [CORE]}),
            "decision_add" => json!({"title": "Decided", "rationale": WORDS, "entities": [CORE]}),
            "reflect" => json!({"task_id": "1"}),
            "test_run" => json!({"path": self.root, "command": ["echo", "1 passed in 0.1s"]}),
            "trace_decision_lineage" => json!({"decision_id": "decision:d1"}),
            "build_context_graph" => json!({"anchors": [CORE], "include_properties": true}),
            "context_graph_usage" => json!({"context_graph_id": self.context_graph}),
            "get_entity_neighbors" => json!({"node_id": CORE}),
            "agent_claim" => json!({"target_id": CORE, "agent_id": "eve", "intent": WORDS}),
            "agent_release" => json!({"claim_id": self.claim, "agent_id": "ada", "outcome": WORDS}),
            "agent_status" => json!({"agent_id": "ada"}),
            "task_update" => json!({"task_id": "1", "status": "completed", "agent_id": "ada"}),
            "feature_status" => json!({"feature_id": "routing"}),
            "diff" => json!({"to_branch": "feature"}),
            "merge" => json!({"source": "feature"}),
            "diff_since" => json!({"since": "tx:1"}),
            "branch_create" => json!({"name": "made-here"}),
            "branch_move" => json!({"name": "pinned"}),
            "branch_close" => json!({"name": "made-here"}),
            "branch_open" => json!({"name": "closed"}),
            "release_create" => json!({"name": "v2", "description": WORDS.repeat(4)}),
            "release_show" => json!({"name": "v1"}),
            "release_diff" => json!({"from": "v1", "to": "v2"}),
            "tag_create" => json!({"name": "newest", "release": "v1"}),
            "tag_show" => json!({"name": "stable"}),
            "tag_describe" => json!({"name": "stable", "description": WORDS}),
            "tag_delete" => json!({"name": "stable"}),
            "type_object" => json!({"name": "Machine", "description": WORDS}),
            "type_relationship" => json!({"name": "RUNS_ON", "description": WORDS}),
            "type_show" => json!({"name": "Machine"}),
            "type_strict" => json!({"mode": "off"}),
            "import" => json!({"file": file("facts.jsonl")}),
            "export" => json!({"file": file("out.jsonl")}),
            "audit_export" => json!({"file": file("audit.jsonl")}),
            "backup" => json!({"path": file("backup")}),
            "restore_backup" => json!({"path": file("small.jsonl")}),
            _ => panic!("`{name}` has no request here: say what a caller may ask it"),
        }
    }
}

/// Operations whose answer here has none of the declared fields, with the reason.
const VACUOUS: [(&str, &str); 0] = [];

impl Setting {
    /// The whole answer and the fitted ones of an operation, which is called once unless it reads and fits its answer itself.
    fn answers(&self, operation: &'static Operation, request: Value) -> Result<Vec<FittedAnswer>, Error> {
        let name = operation.meta.name;
        let project = if name == "restore_backup" { "restored" } else { "" };
        let ask = |profile: Profile| {
            let mut arguments = request.as_object().expect("a request is an object").clone();
            arguments.insert("profile".into(), json!(profile.name()));
            let options = response_budget::take_response_options(operation, &mut arguments)?;
            Ok::<_, Error>((options, self.ask(project, name, Value::Object(arguments))?))
        };
        let (options, whole) = ask(Profile::Debug)?;
        let fitted = [Profile::Compact, Profile::Balanced, Profile::Debug].map(|profile| {
            let answer = if operation.meta.fits_itself { ask(profile)?.1 } else { whole.clone() };
            let options = response_budget::ResponseOptions { profile, ..options };
            let shaped = response_budget::fit_response(operation, answer, options)?;
            Ok(FittedAnswer { operation, profile, whole: whole.clone(), shaped })
        });
        fitted.into_iter().collect()
    }
}

struct FittedAnswer {
    operation: &'static Operation,
    profile: Profile,
    whole: Value,
    shaped: Value,
}

impl FittedAnswer {
    fn faults(&self) -> Vec<String> {
        let meta = &self.operation.meta;
        let checked =
            Faults { declared: meta.answer, pages: meta.effect == Effect::Read, is_beginning: !meta.fits_itself };
        let mut faults = checked.of(&self.whole, &self.shaped);
        let tokens = count(&self.shaped.to_string());
        if tokens > self.profile.tokens() || self.shaped["ok"] != true {
            faults.push(format!("{tokens} tokens"));
        }
        let reason = VACUOUS.iter().find(|(name, _)| *name == meta.name);
        if faults::is_vacuous(meta.answer, &self.whole) != reason.is_some() {
            faults.push(format!("is it vacuous? {reason:?}, {}", self.whole));
        }
        let named = |fault| format!("{} in {}: {fault}", meta.name, self.profile.name());
        faults.into_iter().map(named).collect()
    }
}

#[test]
fn every_operation_answers_in_every_profile_on_2500_files() {
    let setting = Setting::new();
    let mut failed = Vec::new();
    for operation in operations() {
        let answers = match setting.answers(operation, setting.request(operation.meta.name)) {
            Ok(answers) => answers,
            Err(error) => {
                failed.push(format!("{}: {error:?}", operation.meta.name));
                continue;
            }
        };
        for answer in answers {
            let faults = answer.faults();
            let shows = std::env::var_os("LUKASA_SHOW_ANSWERS").is_some() && answer.profile == Profile::Compact;
            if shows || !faults.is_empty() {
                println!("{} {}: {}\n", operation.meta.name, answer.profile.name(), answer.shaped);
            }
            failed.extend(faults);
        }
    }
    assert!(failed.is_empty(), "{} faults:\n{}", failed.len(), failed.join("\n"));
}

/// Keys of objects of a type, evenly over all of them.
fn some(test: &TestEngine, type_name: &str, most: usize) -> Vec<String> {
    let listed = test.ok("list", json!({"type": type_name, "limit": 1_000}))["objects"].clone();
    let all: Vec<&str> = listed.as_array().unwrap().iter().map(|object| object["key"].as_str().unwrap()).collect();
    all.iter().step_by(all.len().div_ceil(most)).map(|key| format!("{type_name}:{key}")).collect()
}

#[test]
fn many_symbols_are_explained_and_sliced_in_every_profile() {
    let setting = Setting::new();
    let mut functions = some(&setting.test, "Function", 40);
    functions.push(format!("Function:{CORE}"));
    functions.extend(some(&setting.test, "Method", 20));
    let others = ["Class", "File"].map(|type_name| some(&setting.test, type_name, 15)).concat();
    let explained: Vec<&String> = functions.iter().chain(&others).collect();
    assert!(functions.len() >= 60 && explained.len() >= 72, "{} {}", functions.len(), explained.len());
    let explain = explained.into_iter().map(|symbol| ("code_explain", json!({"ref": symbol})));
    let slice = functions.iter().map(|symbol| ("semantic_slice", json!({"symbol": symbol, "context": "full"})));
    let mut failed = Vec::new();
    for (name, request) in explain.chain(slice) {
        let operation = operations().iter().find(|operation| operation.meta.name == name).unwrap();
        match setting.answers(operation, request.clone()) {
            Ok(answers) => {
                let faults = answers.iter().flat_map(FittedAnswer::faults);
                failed.extend(faults.map(|fault| format!("{request}: {fault}")));
            }
            Err(error) => failed.push(format!("{name} {request}: {error:?}")),
        }
    }
    assert!(failed.is_empty(), "{} faults:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn what_operations_declare_as_their_answer_exists() {
    let mut unknown = Vec::new();
    for operation in operations() {
        let schema = operation.response.as_value();
        assert!(!operation.meta.answer.is_empty(), "{} declares no answer", operation.meta.name);
        let known = |path: &&&str| exists(schema, schema, &path.split('.').collect::<Vec<_>>());
        let missing = operation.meta.answer.iter().filter(|path| !known(path));
        unknown.extend(missing.map(|path| format!("{}: {path}", operation.meta.name)));
    }
    assert_eq!(unknown, [""; 0]);
}

/// Whether a path exists in a schema; every path exists where any value is allowed.
fn exists(root: &Value, here: &Value, path: &[&str]) -> bool {
    let Some((name, rest)) = path.split_first() else { return true };
    if let Some(reference) = here["$ref"].as_str() {
        return exists(root, root.pointer(reference.trim_start_matches('#')).unwrap(), path);
    }
    for list in ["anyOf", "allOf", "oneOf"] {
        if here[list].as_array().is_some_and(|all| all.iter().any(|one| exists(root, one, path))) {
            return true;
        }
    }
    if here.get("items").is_some() {
        return exists(root, &here["items"], path);
    }
    match here["properties"].get(name) {
        Some(field) => exists(root, field, rest),
        None => *here == true || here.get("additionalProperties").is_some_and(|more| *more != false),
    }
}
