//! Embedding through operations, on every store: the order of objects, and behaviour while the model fails.

use crate::test_engine::TestEngine;
use lukasa_engine::features::search::embedding::{EmbeddingEndpoint, EmbeddingEndpointConfig, InputRules};
use lukasa_engine::features::search::{EmbeddingModel, SearchState};
use lukasa_model::transaction::Header;
use lukasa_model::types::{EmbeddingPolicy, ObjectType, TypeEmbedding as Policy};
use lukasa_testkit::{FakeBehavior, FakeEmbeddings};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// An engine on each store whose vectors come from an endpoint that can be made to fail.
fn tests(batch: usize) -> Vec<(TestEngine, FakeEmbeddings)> {
    let with_endpoint = |mut test: TestEngine| {
        let fake = FakeEmbeddings::start(8);
        let config = EmbeddingEndpointConfig {
            base_url: fake.url(),
            model: "small".into(),
            version: "1".into(),
            key: None,
            dimensions: 8,
            batch,
            prefix: String::new(),
            question_prefix: "query: ".into(),
            timeout: Duration::from_millis(400),
        };
        let model = EmbeddingEndpoint::new(&config).unwrap().with_pause(|_| {});
        let embedding = EmbeddingModel::new(Arc::new(model), InputRules::default(), None);
        // No stage is shed, however slow the machine: warnings must be about the model.
        let searching = SearchState::default().with_patience(f64::INFINITY);
        test.engine = test.engine.clone().with_embedding(embedding).with_searching(searching);
        (test, fake)
    };
    TestEngine::all().into_iter().map(with_endpoint).collect()
}

/// First lines of the texts that were embedded, in order, from a request on.
fn embedded(fake: &FakeEmbeddings, from: usize) -> Vec<String> {
    let texts = |body: &str| serde_json::from_str::<Value>(body).unwrap()["input"].as_array().unwrap().clone();
    let all = fake.asked()[from..].iter().flat_map(|asked| texts(&asked.body)).collect::<Vec<_>>();
    all.iter().map(|text| text.as_str().unwrap().lines().next().unwrap().to_owned()).collect()
}

fn put(test: &TestEngine, type_name: &str, key: &str, branch: &str) {
    let about = format!("what {key} is about");
    let request =
        json!({"type": type_name, "key": key, "title": key, "properties": {"about": about}, "branch": branch});
    test.ok("put", request);
}

fn link(test: &TestEngine, src: &str, dst: &str, branch: &str) {
    test.ok("link", json!({"type": "uses", "src": src, "dst": dst, "branch": branch}));
}

#[test]
fn what_is_required_comes_first_and_then_what_is_most_central() {
    for (test, fake) in tests(1) {
        let required = Policy { policy: EmbeddingPolicy::Required, relevant_paths: vec![], fts: true };
        let must = ObjectType { name: "Must".into(), embedding: required, ..ObjectType::default() };
        test.fixture.ledger.declare_object_type(&must, &Header::default()).unwrap();
        // More of them than are counted one by one in the store.
        for i in 0..40 {
            put(&test, "Note", &format!("n{i}"), "main");
        }
        for key in ["m0", "m1", "m2"] {
            put(&test, "Must", key, "main");
        }
        for i in 30..34 {
            link(&test, &format!("n{i}"), "n7", "main");
        }
        for i in 34..36 {
            link(&test, &format!("n{i}"), "n3", "main");
        }
        link(&test, "n36", "m1", "main");
        for i in 10..15 {
            link(&test, &format!("n{i}"), "n20", "main");
        }
        for i in 10..15 {
            let links = test.ok("get", json!({"ref": format!("n{i}")}))["links"].clone();
            test.ok("delete", json!({"ref": links[0]["id"]}));
        }
        let done = test.ok("embed", json!({}));
        assert_eq!((&done["embedded"], &done["waiting"]), (&json!(43), &json!(0)), "{}", test.fixture.name);
        let order = embedded(&fake, 0);
        assert_eq!(order[0], "m1", "{order:?}");
        assert_eq!(order[1..3].iter().collect::<BTreeSet<_>>(), ["m0".to_owned(), "m2".to_owned()].iter().collect());
        assert_eq!(order[3..5], ["n7", "n3"], "what many lead to, before what leads there");
        let leading: BTreeSet<_> = order[5..12].iter().cloned().collect();
        assert_eq!(leading, (30..37).map(|i| format!("n{i}")).collect());
        assert!(order[12..].contains(&"n20".to_owned()), "what no longer holds counts for nothing");
        // Few at a time.
        let before = fake.asked().len();
        for key in ["alone", "hub", "was"] {
            put(&test, "Note", key, "main");
        }
        put(&test, "Must", "must", "main");
        link(&test, "n1", "hub", "main");
        link(&test, "was", "n1", "main");
        link(&test, "was", "n2", "main");
        for link in test.ok("get", json!({"ref": "was"}))["links"].as_array().unwrap() {
            test.ok("delete", json!({"ref": link["id"]}));
        }
        test.ok("embed", json!({}));
        let order = embedded(&fake, before);
        assert_eq!((order.len(), &order[..2]), (4, &["must".to_owned(), "hub".to_owned()][..]), "{order:?}");
        // A branch has relationships of its own.
        let before = fake.asked().len();
        test.ok("branch_create", json!({"name": "side"}));
        for key in ["x", "y"] {
            put(&test, "Note", key, "side");
        }
        link(&test, "n1", "y", "side");
        test.ok("embed", json!({}));
        assert_eq!(embedded(&fake, before), ["y", "x"]);
    }
}

#[test]
fn no_secret_is_sent_with_an_object_or_a_question() {
    for (test, fake) in tests(8) {
        let note = "log in at the till with password=hunter2hunter2";
        test.ok("put", json!({"type": "Note", "key": "till", "title": "Till", "properties": {"note": note}}));
        test.ok("embed", json!({}));
        test.ok("search", json!({"query": "who uses PASSWORD: swordfish99 at the till"}));
        let sent = fake.asked().iter().map(|asked| asked.body.clone()).collect::<Vec<_>>().join("\n");
        assert!(!sent.contains("hunter2") && !sent.contains("swordfish"), "{sent}");
        assert!(sent.contains("log in at the till with password=[redacted]"), "{sent}");
        assert!(sent.contains("query: who uses PASSWORD: [redacted] at the till"), "{sent}");
    }
}

const OBJECTS: u64 = 60;
const BAD: [FakeBehavior; 9] = [
    FakeBehavior::Down,
    FakeBehavior::HangsUp,
    FakeBehavior::Busy,
    FakeBehavior::Slow,
    FakeBehavior::WrongDimensions,
    FakeBehavior::TooFew,
    FakeBehavior::Garbage,
    FakeBehavior::NotANumber,
    FakeBehavior::Nulls,
];

/// Sends a question that is not cached, so that the model is needed, and checks the warnings.
struct Seeker<'a> {
    test: &'a TestEngine,
    asked: u64,
}

impl Seeker<'_> {
    fn seeks(&mut self, embedded: u64, by_meaning: bool, when: &str) {
        self.asked += 1;
        let answer = self.test.ok("search", json!({"query": format!("lighthouse of harbour {}", self.asked)}));
        let when = format!("{when} on {}: {answer}", self.test.fixture.name);
        assert!(!answer["items"].as_array().unwrap().is_empty(), "{when}");
        let meta = &answer["meta"];
        let channels: Vec<_> = meta["channels"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
        assert!(channels.contains(&"lexical"), "{when}");
        assert_eq!(channels.contains(&"vector"), by_meaning, "{when}");
        let share = meta["embedded_share"].as_f64().unwrap();
        assert!((share - embedded as f64 / OBJECTS as f64).abs() < 1e-3, "{when}");
        let warned = meta["warnings"].to_string().contains("no search by meaning");
        assert_eq!(warned, embedded > 0 && !by_meaning, "{when}");
    }
}

fn readiness(test: &TestEngine) -> Value {
    test.ok("search_readiness", json!({}))["embedding"].clone()
}

#[test]
fn a_failing_model_only_disables_search_by_meaning_until_it_recovers() {
    for (test, fake) in tests(16) {
        for i in 0..OBJECTS {
            let about = format!("the lighthouse number {i} of the harbour");
            test.ok("put", json!({"type": "Note", "key": format!("n{i}"), "properties": {"about": about}}));
        }
        let mut seeker = Seeker { test: &test, asked: 0 };
        fake.set(FakeBehavior::Down);
        seeker.seeks(0, false, "before anything is embedded");
        fake.set(FakeBehavior::Fine);
        let mut done = test.ok("embed", json!({"limit": 10}))["embedded"].as_u64().unwrap();
        assert_eq!(done, 10);
        seeker.seeks(done, true, "in the middle");
        for mood in BAD {
            let when = format!("{mood:?} on {}", test.fixture.name);
            // Failed jobs are due again.
            test.fixture.clock.advance(75 * 60);
            fake.set(mood);
            seeker.seeks(done, false, &when);
            let mut tries = 0;
            while readiness(&test)["breaker"]["state"] == "closed" {
                assert_eq!(test.fails("embed", json!({})), "embedding_failed", "{when}");
                tries += 1;
                assert!(tries < 10, "{when}: it never opens");
            }
            assert!(tries > 1, "{when}: it is not given up at once");
            let asked = fake.asked().len();
            let paused = test.ok("embed", json!({}));
            assert_eq!((&paused["embedded"], &paused["waiting"]), (&json!(0), &json!(OBJECTS - done)), "{when}");
            assert!(paused["paused_until"].is_string() && fake.asked().len() == asked, "{when}: {paused}");
            let report = readiness(&test);
            assert_eq!(report["breaker"]["state"], "open", "{when}");
            assert_eq!(report["optional"]["embedded"], done, "{when}: {report}");
            assert_eq!(report["backlog"]["optional"], OBJECTS - done, "{when}: {report}");
            assert!(report["backlog"]["failing"].as_u64().unwrap() >= 30, "{when}: {report}");
            seeker.seeks(done, false, &when);
            // A probe that fails leaves it open.
            test.fixture.clock.advance(121);
            assert_eq!(test.fails("embed", json!({})), "embedding_failed", "{when}");
            assert_eq!(readiness(&test)["breaker"]["state"], "open", "{when}");
            // One that succeeds closes it.
            fake.set(FakeBehavior::Fine);
            test.fixture.clock.advance(121);
            assert_eq!(test.ok("embed", json!({"limit": 1}))["embedded"], 1, "{when}");
            done += 1;
            let report = readiness(&test);
            assert_eq!(report["breaker"]["state"], "closed", "{when}");
            assert_eq!(report["backlog"]["optional"], OBJECTS - done, "{when}: nothing is lost");
            seeker.seeks(done, true, &when);
        }
        test.fixture.clock.advance(75 * 60);
        let rest = test.ok("embed", json!({}));
        assert_eq!((&rest["embedded"], &rest["waiting"]), (&json!(OBJECTS - done), &json!(0)), "{rest}");
        let report = readiness(&test);
        assert_eq!(
            (&report["optional"]["percent"], &report["backlog"]["failing"]),
            (&json!(100.0), &json!(0)),
            "{report}"
        );
        seeker.seeks(OBJECTS, true, "in the end");
    }
}

#[test]
fn queries_search_by_words_and_meaning() {
    for (test, fake) in tests(16) {
        for (key, about) in [
            ("discount", "A discount is rounded to whole cents at the till."),
            ("parking", "Cars stand behind the house."),
            ("till", "The till opens at nine."),
        ] {
            test.ok("put", json!({"type": "Note", "key": key, "properties": {"about": about}}));
        }
        test.ok("put", json!({"type": "Person", "key": "ann"}));
        test.ok("link", json!({"type": "WROTE", "src": "Person:ann", "dst": "Note:discount"}));
        let ask = |query: &str| test.ok("cypher", json!({"query": query}));
        let rows = |query: &str| ask(query)["rows"].clone();
        let found = "CALL lukasa.search('how are discounts rounded at the till') YIELD node, score";
        let all = rows(&format!("{found} RETURN node.key, score"));
        assert_eq!((&all[0][0], &all[1][0]), (&json!("discount"), &json!("till")), "{all}");
        assert!(all[0][1].as_f64() > all[1][1].as_f64(), "{all}");
        let searched = test.ok("search", json!({"query": "how are discounts rounded at the till"}));
        assert_eq!(searched["items"][0]["ref"], "Note:discount");
        // A result is a node like any other.
        let who = rows(&format!("{found} MATCH (p)-[:WROTE]->(node) RETURN p.key, node.key"));
        assert_eq!(who, json!([["ann", "discount"]]));
        assert_eq!(rows("CALL lukasa.search('discount till', 1) YIELD node RETURN count(node)"), json!([[1]]));
        assert_eq!(rows("CALL lukasa.search('xylophone')"), json!([]));
        let given =
            json!({"query": "CALL lukasa.search($what) YIELD node RETURN node.key", "parameters": {"what": "cars"}});
        assert_eq!(test.ok("cypher", given)["rows"], json!([["parking"]]));
        assert_eq!(ask(&format!("EXPLAIN {found} RETURN node"))["summary"], "the plan, not run");
        assert_eq!(
            test.ok("graph_query", json!({"query": format!("{found} RETURN count(*)"), "language": "cypher"}))["cypher"]
                ["rows"],
            json!([[2]])
        );
        // A view of the past returns what was visible then.
        let past = json!({"query": "CALL lukasa.search('cars') YIELD node RETURN node.key", "known_at": "tx:1"});
        assert_eq!(test.ok("cypher", past)["rows"], json!([]), "{}", test.fixture.name);
        for (query, code) in [
            ("CALL lukasa.search('')", "invalid_query"),
            ("CALL lukasa.search(7)", "cypher_argument_error"),
            ("CALL lukasa.search('x', -1)", "cypher_argument_error"),
            ("CALL lukasa.search()", "cypher_syntax_error"),
        ] {
            assert_eq!(test.fails("cypher", json!({"query": query})), code, "{query}");
        }
        // Without the model, results by words are still returned.
        test.ok("embed", json!({}));
        fake.set(FakeBehavior::Down);
        let answer = ask("CALL lukasa.search('the till opens') YIELD node RETURN node.key");
        assert_eq!(answer["rows"][0], json!(["till"]));
        assert!(answer["warnings"].to_string().contains("no search by meaning"), "{answer}");
        fake.set(FakeBehavior::Fine);
        let answer = ask("CALL lukasa.search('a house for cars') YIELD node RETURN node.key");
        assert!(answer["rows"].as_array().unwrap().len() > 1, "by meaning also what has none of the words: {answer}");
        assert!(answer["warnings"].is_null(), "{answer}");
    }
}

#[test]
fn what_is_sensitive_is_never_sent_to_a_model() {
    for (test, fake) in tests(4) {
        let schema = json!({"properties": {"about": {"type": "string", "sensitive": true}}});
        let relevant = json!({"policy": "required", "relevant_paths": ["/properties/about", "/properties/open"]});
        test.ok("type_object", json!({"name": "Plain", "schema": schema}));
        test.ok("type_object", json!({"name": "Chosen", "schema": schema, "embedding": relevant}));
        test.ok("branch_create", json!({"name": "dev"}));
        for (kind, branch) in [("Plain", "main"), ("Chosen", "main"), ("Plain", "dev"), ("Chosen", "dev")] {
            let properties = json!({"about": "quartzmarmot", "open": format!("ordinary {branch}")});
            test.ok("put", json!({"type": kind, "key": "k", "title": "K", "properties": properties, "branch": branch}));
        }
        test.ok("embed", json!({}));
        test.ok("search", json!({"query": "ordinary"}));
        let sent: String = fake.asked().iter().map(|asked| asked.body.as_str()).collect();
        assert!(sent.contains("ordinary main") && sent.contains("ordinary dev"), "{sent}");
        assert!(!sent.contains("quartzmarmot"), "{sent}");
    }
}

/// Waits for other threads.
fn until(what: &str, done: &dyn Fn() -> bool) {
    for _ in 0..6_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}");
}

#[test]
fn a_server_embeds_by_itself_until_it_is_stopped() {
    for (test, fake) in tests(4) {
        put(&test, "Note", "one", "main");
        let keeper = lukasa_engine::features::search::embedding::embed_in_background(
            &test.engine,
            &[test.fixture.ledger.scope().clone()],
        );
        let embedded = || test.ok("search_readiness", json!({}))["embedding"]["optional"]["embedded"].clone();
        until("the first", &|| embedded() == 1);
        // While the model is down nothing is lost.
        fake.set(FakeBehavior::Down);
        put(&test, "Note", "two", "main");
        until("the failure", &|| test.ok("search_readiness", json!({}))["embedding"]["backlog"]["failing"] == 1);
        fake.set(FakeBehavior::Fine);
        test.fixture.clock.advance(3_600);
        until("the second", &|| embedded() == 2);
        // Search by meaning finds the objects that have a vector by now.
        until("search", &|| {
            test.ok("search", json!({"query": "one", "recipe": "objects"}))["meta"]["embedded_share"] == 1.0
        });
        // Reconciliation runs after a day.
        let (derived, scope) = (test.fixture.store.derived(), test.fixture.ledger.scope());
        let model = derived.vector_models(scope).unwrap().remove(0);
        derived.remove_model(scope, &model).unwrap();
        assert_eq!(embedded(), 0);
        test.fixture.clock.advance(25 * 3_600);
        until("the next day", &|| embedded() == 2);
        drop(keeper);
        put(&test, "Note", "three", "main");
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(embedded(), 2, "it has ended");
    }
}

#[test]
fn a_new_model_that_is_far_behind_causes_a_warning() {
    for (mut test, fake) in tests(4) {
        for key in ["one", "two"] {
            put(&test, "Note", key, "main");
        }
        test.ok("embed", json!({}));
        let is_warned = |test: &TestEngine| {
            let answer = test.ok("search", json!({"query": "one", "recipe": "objects"}));
            answer["meta"]["warnings"].to_string().contains("embedding_version_backlog")
        };
        assert!(!is_warned(&test));
        let config = of_version(&fake, "2");
        let embedding =
            |reads: Option<String>| EmbeddingModel::by_endpoint(&config, InputRules::default(), reads).unwrap();
        let old = test.fixture.store.derived().vector_models(test.fixture.ledger.scope()).unwrap().remove(0);
        test.engine = test.engine.clone().with_embedding(embedding(None));
        assert!(is_warned(&test), "it has no vector yet");
        test.ok("embed", json!({"limit": 1}));
        assert!(is_warned(&test), "half of them");
        test.ok("embed", json!({}));
        assert!(!is_warned(&test));
        test.engine = test.engine.clone().with_embedding(embedding(Some(old)));
        assert!(is_warned(&test), "search reads those of another");
    }
}

/// Settings of the endpoint's model in another version.
fn of_version(fake: &FakeEmbeddings, version: &str) -> EmbeddingEndpointConfig {
    EmbeddingEndpointConfig {
        base_url: fake.url(),
        model: "small".into(),
        version: version.into(),
        key: None,
        dimensions: 8,
        batch: 4,
        prefix: String::new(),
        question_prefix: String::new(),
        timeout: Duration::from_secs(20),
    }
}

#[test]
fn vectors_of_a_model_are_removed_once_it_is_not_in_use() {
    for (mut test, fake) in tests(4) {
        for key in ["one", "two"] {
            put(&test, "Note", key, "main");
        }
        test.ok("embed", json!({}));
        let old = test.ok("search_readiness", json!({}))["embedding"]["model"].as_str().unwrap().to_owned();
        let remove = |test: &TestEngine, model: &str| test.ok("remove_model", json!({"model": model}));
        assert_eq!(test.fails("remove_model", json!({"model": old})), "model_in_use");
        assert_eq!(test.fails("remove_model", json!({"model": "large"})), "model_not_found");
        assert_eq!(test.fails("remove_model", json!({"model": ""})), "model_not_found");
        let config = of_version(&fake, "2");
        let embedding =
            |reads: Option<String>| EmbeddingModel::by_endpoint(&config, InputRules::default(), reads).unwrap();
        test.engine = test.engine.clone().with_embedding(embedding(Some(old.clone())));
        test.ok("embed", json!({}));
        assert_eq!(test.fails("remove_model", json!({"model": old})), "model_in_use", "search reads it");
        assert_eq!(test.fails("remove_model", json!({"model": "small"})), "ambiguous");
        test.engine = test.engine.clone().with_embedding(embedding(None));
        let removed = remove(&test, "small@1");
        assert_eq!((&removed["removed"], &removed["model"]), (&json!(2), &json!(old)));
        assert_eq!(removed["models"].as_array().unwrap().len(), 1);
        assert_eq!(test.fails("remove_model", json!({"model": old})), "model_not_found");
        let found = test.ok("search", json!({"query": "one", "recipe": "objects"}));
        assert_eq!(found["meta"]["embedded_share"], 1.0, "the other model keeps its vectors");
        // By force, those of the model in use too; they are made again.
        assert_eq!(test.ok("remove_model", json!({"model": "small", "force": true}))["removed"], 2);
        assert_eq!(test.ok("search_readiness", json!({}))["embedding"]["optional"]["embedded"], 0);
        assert_eq!(test.ok("embed", json!({}))["embedded"], 2);
    }
}

#[test]
fn a_store_with_vectors_of_an_earlier_built_in_model_gets_those_of_this_one() {
    for (mut test, fake) in tests(4) {
        for key in ["zebra", "otter", "lion"] {
            put(&test, "Note", key, "main");
        }
        // An endpoint stands for the earlier model, with a name and a pooling of its own.
        test.ok("embed", json!({}));
        let asked = fake.asked().len();
        test.engine = test.engine.clone().with_embedding(EmbeddingModel::built_in(InputRules::default(), None));
        let search = |test: &TestEngine| test.ok("search", json!({"query": "zebra", "recipe": "objects"}));
        let answer = search(&test);
        assert!(answer["meta"]["warnings"].to_string().contains("embedding_version_backlog"), "{answer}");
        assert!(answer["items"][0].to_string().contains("what zebra is about"), "found by words meanwhile: {answer}");
        assert_eq!(test.ok("embed", json!({"limit": 1}))["waiting"], 2, "all objects were queued");
        assert_eq!(test.ok("embed", json!({}))["embedded"], 2);
        let embedding = test.ok("search_readiness", json!({}))["embedding"].clone();
        assert_eq!(embedding["optional"]["percent"], 100.0);
        let models: Vec<&Value> = embedding["models"].as_array().unwrap().iter().map(|m| &m["vectors"]).collect();
        assert_eq!(models, [3, 3], "those of both models are kept");
        let answer = search(&test);
        assert!(answer["meta"]["embedding_model"].as_str().unwrap().starts_with("gte-small@"), "{answer}");
        assert!(answer["meta"].get("warnings").is_none(), "{answer}");
        assert_eq!(fake.asked().len(), asked, "the earlier model is not asked any more");
    }
}
