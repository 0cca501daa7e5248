//! Summaries by a language model: requested once, cached, recorded, and never blocking.

use crate::test_engine::TestEngine;
use lukasa_engine::features::code::{Summaries, Watch};
use lukasa_engine::features::graph::communities::CommunityCache;
use lukasa_engine::model_endpoint::{Endpoint, EndpointConfig, EndpointKey};
use lukasa_testkit::{FakeEndpoint, FakeReply};
use serde_json::{Value, json};
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SECRET: &str = "sk-the-key-of-ann";

/// Three symbols without a doc comment, and one with.
const SHOP: &str = "class Shop:\n    def open(self):\n        return greet()\n\n\ndef greet():\n    return 'hello'\n\n\ndef described():\n    \"\"\"Is described.\"\"\"\n";

struct Setting {
    test: TestEngine,
    folder: TempDir,
}

impl Setting {
    fn new(test: TestEngine) -> Setting {
        let setting = Setting { test, folder: TempDir::new().unwrap() };
        fs::create_dir(setting.root()).unwrap();
        setting.write("shop.py", SHOP);
        setting
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().canonicalize().unwrap().join("tree")
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.root().join(path), text).unwrap();
    }

    fn cache(&self) -> std::path::PathBuf {
        self.folder.path().join("cache")
    }

    /// An engine like one in a new process, with empty caches.
    fn restart(&mut self, endpoint: Option<(Endpoint, usize)>) {
        let mut summaries = Summaries::new(self.cache());
        if let Some((endpoint, per_pass)) = endpoint {
            summaries = summaries.with_endpoint(endpoint, per_pass);
        }
        let clock = Arc::clone(&self.test.fixture.clock) as Arc<dyn lukasa_store::Clock>;
        let store = Arc::clone(&self.test.fixture.store);
        self.test.engine = lukasa_engine::Engine::new(store, clock, std::env::temp_dir()).with_summaries(summaries);
    }

    fn index(&self) -> Value {
        self.test.fixture.clock.advance(1);
        self.test.ok("index_directory", json!({"path": self.root()}))
    }

    fn summary(&self, name: &str) -> (String, Option<String>) {
        let got = self.test.ok("get", json!({"ref": name}));
        let text = |name: &str| got["thing"]["properties"][name].as_str().map(str::to_owned);
        (text("summary").unwrap_or_default(), text("summary_by"))
    }
}

fn settings() -> Vec<Setting> {
    TestEngine::all().into_iter().map(Setting::new).collect()
}

fn setting() -> Setting {
    Setting::new(TestEngine::all().remove(0))
}

fn endpoint(url: &str) -> Endpoint {
    patient(url, Duration::from_secs(30)).with_pause(|_| {})
}

fn patient(url: &str, timeout: Duration) -> Endpoint {
    let key = Some(EndpointKey::new(SECRET));
    Endpoint::new(&EndpointConfig { url: url.into(), name: "small".into(), key, timeout }).unwrap()
}

/// The symbol that a request asks about, from its body.
fn symbol(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    let text = body["messages"][1]["content"].as_str().unwrap();
    text.lines().next().unwrap().trim_start_matches("Symbol: ").to_owned()
}

fn says(text: &str) -> FakeReply {
    FakeReply::ok(json!({"choices": [{"message": {"role": "assistant", "content": text}}]}).to_string())
}

/// A model that answers with the symbol it was asked about.
fn model() -> FakeEndpoint {
    FakeEndpoint::start(|asked, _| says(&format!("Describes {}.", symbol(&asked.body))))
}

#[test]
fn a_summary_is_requested_once_and_recorded() {
    for mut setting in settings() {
        let model = model();
        setting.restart(Some((endpoint(&model.url()), 200)));
        let report = setting.index();
        let done = &report["model"];
        assert_eq!(
            (&done["model"], &done["summaries"], &done["left"]),
            (&json!("small"), &json!(4), &json!(0)),
            "{report}"
        );
        assert!(done["tx"].as_u64() > report["tx"].as_u64(), "code first, then the summaries of a model");
        let by_model = |text: &str| (text.to_owned(), Some("model".to_owned()));
        assert_eq!(setting.summary("Function:shop.py::greet"), by_model("Describes Function:shop.py::greet."));
        assert_eq!(setting.summary("Class:shop.py::Shop"), by_model("Describes Class:shop.py::Shop."));
        assert_eq!(setting.summary("File:shop.py"), by_model("Describes File:shop.py."));
        assert_eq!(
            setting.summary("Function:shop.py::described"),
            ("Is described.".into(), None),
            "that is the doc comment"
        );
        assert_eq!(model.asked().len(), 4);
        assert!(model.asked().iter().all(|a| a.path == "/v1/chat/completions"));
        // Again, in this process and in another: nothing to request, nothing to write.
        for new in [false, true] {
            if new {
                setting.restart(Some((endpoint(&model.url()), 200)));
            }
            let report = setting.index();
            assert_eq!((&report["tx"], &report["model"]), (&Value::Null, &Value::Null), "{report}");
        }
        setting.test.ok("graph_rebuild", json!({"path": setting.root()}));
        assert_eq!(setting.summary("Function:shop.py::greet").1.as_deref(), Some("model"));
        assert_eq!(model.asked().len(), 4);
        // One symbol changes: only it and its containers are requested again.
        setting.write("shop.py", &SHOP.replace("hello", "good evening"));
        setting.index();
        let mut asked: Vec<String> = model.asked()[4..].iter().map(|a| symbol(&a.body)).collect();
        asked.sort();
        assert_eq!(asked, ["File:shop.py", "Function:shop.py::greet"]);
        assert_eq!(setting.summary("Method:shop.py::Shop::open").1.as_deref(), Some("model"), "kept");
    }
}

#[test]
fn cached_summaries_are_used_by_another_store_and_without_a_model() {
    let model = model();
    let mut first = setting();
    first.restart(Some((endpoint(&model.url()), 200)));
    first.index();
    // A new store, the same cache: the summaries are recorded in one transaction, without a request to the model.
    let mut second = setting();
    second.folder = std::mem::replace(&mut first.folder, TempDir::new().unwrap());
    second.restart(Some((endpoint(&model.url()), 200)));
    let report = second.index();
    assert_eq!(second.summary("Function:shop.py::greet").1.as_deref(), Some("model"));
    assert!(report["tx"].is_u64() && report["model"].is_null(), "{report}");
    assert_eq!(model.asked().len(), 4);
    // A process without a model does not undo it,
    second.restart(None);
    second.write("new.py", "def new(): pass\n");
    second.index();
    assert_eq!(second.summary("Function:shop.py::greet").1.as_deref(), Some("model"));
    // nor does one with an empty cache, because the branch has the summaries.
    fs::remove_dir_all(second.cache()).unwrap();
    second.restart(Some((endpoint(&model.url()), 200)));
    second.write("newer.py", "def newer(): pass\n");
    let report = second.index();
    assert_eq!(report["changed"], json!(1), "{report}");
    assert_eq!(second.summary("Function:shop.py::greet").1.as_deref(), Some("model"));
    let asked: Vec<String> = model.asked()[4..].iter().map(|a| symbol(&a.body)).collect();
    assert!(!asked.is_empty() && asked.iter().all(|name| name.contains("new")), "{asked:?}");
}

#[test]
fn an_index_made_before_there_was_a_model_gets_its_summaries() {
    let mut setting = setting();
    setting.index();
    assert_eq!(setting.summary("Function:shop.py::greet"), ("return 'hello'".into(), None));
    let model = model();
    setting.restart(Some((endpoint(&model.url()), 3)));
    let report = setting.index();
    assert_eq!(
        (&report["tx"], &report["model"]["summaries"], &report["model"]["left"]),
        (&Value::Null, &json!(3), &json!(1))
    );
    assert!(report["summary"].as_str().unwrap().ends_with("3 summaries by small, 1 left for later"), "{report}");
    let asked: Vec<String> = model.asked().iter().map(|a| symbol(&a.body)).collect();
    assert!(asked.contains(&"Function:shop.py::greet".into()), "what is called comes first: {asked:?}");
    assert!(!asked.contains(&"File:shop.py".into()), "what nothing leads to, last: {asked:?}");
    assert_eq!(setting.index()["model"]["summaries"], json!(1));
    assert_eq!(setting.index()["model"], Value::Null);
    assert_eq!(model.asked().len(), 4);
}

#[test]
fn no_request_is_sent_unless_a_model_is_configured() {
    let model = model();
    let mut setting = setting();
    setting.restart(None);
    let report = setting.index();
    assert!(report.get("model").is_none() && model.asked().is_empty());
    assert!(!setting.cache().exists());
}

#[test]
fn secrets_are_not_sent_and_the_key_is_never_shown() {
    let model = FakeEndpoint::start(|_, before| match before {
        0..4 => says("Does something."),
        _ => FakeReply::status(401, json!({"error": {"message": format!("no: {SECRET}")}}).to_string()),
    });
    let mut setting = setting();
    setting.write(
        "shop.py",
        &SHOP.replace("'hello'", "connect(password='hunter2', url='https://ann:hunter3@example.org')"),
    );
    setting.restart(Some((endpoint(&model.url()), 200)));
    setting.index();
    let asked = model.asked();
    assert!(
        asked.iter().any(|a| a.body.contains("connect(password=")) && asked.iter().all(|a| !a.body.contains("hunter"))
    );
    assert!(asked.iter().all(|a| a.headers.contains(&format!("Bearer {SECRET}")) && !a.body.contains(SECRET)));
    setting.write("more.py", "def more():\n    return 1\n");
    let report = setting.index();
    let what = report["diagnostics"][0]["what"].as_str().unwrap();
    assert!(what.contains("model_refused") && what.contains("no: …") && what.contains("model.key_env"), "{report}");
    assert_eq!(setting.summary("Function:more.py::more"), ("return 1".into(), None), "the rule's summary stays");
    let (mut dump, mut progress) = (Vec::new(), |_: u64, _: Option<u64>| {});
    let mut context = lukasa_engine::Context {
        output: Some(&mut dump),
        ..lukasa_engine::Context::of(setting.test.fixture.ledger.scope().clone(), &mut progress)
    };
    setting.test.engine.call(&mut context, "export", json!({"file": "-", "history": true})).unwrap();
    assert!(dump.len() > 1000);
    for text in [report.to_string(), String::from_utf8(dump).unwrap()] {
        assert!(!text.contains(SECRET), "{text}");
    }
    for entry in fs::read_dir(setting.cache()).unwrap() {
        assert!(!fs::read_to_string(entry.unwrap().path()).unwrap().contains(SECRET));
    }
}

#[test]
fn an_endpoint_that_asks_for_a_pause_is_given_it() {
    let model = FakeEndpoint::start(|_, before| match before {
        0 => FakeReply::Say(429, vec!["Retry-After: 7".into()], String::new()),
        1 => FakeReply::status(503, ""),
        _ => says("Opens the shop."),
    });
    let mut setting = setting();
    let pauses: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let noted = Arc::clone(&pauses);
    let patient = patient(&model.url(), Duration::from_secs(30)).with_pause(move |d| noted.lock().unwrap().push(d));
    setting.restart(Some((patient, 1)));
    let report = setting.index();
    assert_eq!((&report["model"]["summaries"], &report["diagnostics"]), (&json!(1), &json!([])), "{report}");
    assert_eq!(*pauses.lock().unwrap(), [Duration::from_secs(7), Duration::from_secs(1)]);
    assert_eq!(model.asked().len(), 3);
}

/// The response of a bad endpoint, the error code reported, and the maximum number of requests sent.
#[test]
fn a_failing_endpoint_never_fails_an_index() {
    let long = format!("\"{}\"", "x".repeat(17 << 20));
    let cases: Vec<(&str, FakeReply, &str, usize)> = vec![
        ("no JSON", FakeReply::ok("<html>Welcome!</html>"), "model_answer_invalid", 7),
        ("no message", FakeReply::ok("{\"choices\": []}"), "model_answer_invalid", 7),
        ("a long pause", FakeReply::Say(429, vec!["Retry-After: 3600".into()], "".into()), "model_rate_limited", 7),
        ("it fails", FakeReply::status(500, "{\"error\": \"oh\"}"), "model_failed", 16),
        ("moved", FakeReply::Say(302, vec!["Location: http://127.0.0.1:1/".into()], "".into()), "model_not_found", 4),
        ("refused", FakeReply::status(400, "{\"error\": {\"message\": \"no\"}}"), "model_request_refused", 13),
        ("too long", FakeReply::ok(long), "model_answer_too_large", 7),
    ];
    for (name, reply, code, most) in cases {
        let model = FakeEndpoint::start(move |_, _| reply.clone());
        let mut setting = setting();
        setting.restart(Some((endpoint(&model.url()), 200)));
        let report = setting.index();
        let fault = report["diagnostics"][0]["what"].as_str().unwrap_or_else(|| panic!("{name}: {report}"));
        assert!(fault.contains(code) && !fault.contains("Welcome"), "{name}: {fault}");
        assert_eq!(report["model"]["left"], json!(4), "{name}: {report}");
        assert_eq!(setting.summary("Function:shop.py::greet"), ("return 'hello'".into(), None), "{name}");
        let asked = model.asked().len();
        assert!((1..=most).contains(&asked), "{name}: {asked} requests");
    }
}

#[test]
fn a_missing_or_silent_endpoint_is_reported() {
    let mut setting = setting();
    setting.restart(Some((endpoint("http://127.0.0.1:9/v1"), 200)));
    assert!(setting.index()["diagnostics"][0]["what"].as_str().unwrap().contains("model_unreachable"));
    let model = FakeEndpoint::start(|_, _| FakeReply::Nothing);
    setting.restart(Some((patient(&model.url(), Duration::from_millis(200)), 200)));
    let report = setting.index();
    assert!(report["diagnostics"][0]["what"].as_str().unwrap().contains("model_timeout"), "{report}");
}

#[test]
fn settings_an_endpoint_does_not_know_are_left_out_and_having_nothing_to_say_is_final() {
    let model = FakeEndpoint::start(|asked, _| {
        if asked.body.contains("max_tokens") {
            return FakeReply::status(
                400,
                json!({"error": {"message": "unsupported parameter: max_tokens"}}).to_string(),
            );
        }
        if symbol(&asked.body).contains("greet") { says("") } else { says("Opens the shop.") }
    });
    let mut setting = setting();
    setting.restart(Some((endpoint(&model.url()), 200)));
    let report = setting.index();
    assert_eq!((&report["model"]["summaries"], &report["model"]["left"]), (&json!(3), &json!(0)), "{report}");
    assert_eq!(setting.summary("Function:shop.py::greet"), ("return 'hello'".into(), None));
    let before = model.asked().len();
    setting.write("other.txt", "x");
    setting.index();
    assert_eq!(model.asked().len(), before);
}

#[test]
fn a_watcher_does_not_wait_for_a_model() {
    let model = FakeEndpoint::start(|_, _| FakeReply::Nothing);
    let mut setting = setting();
    setting.restart(Some((patient(&model.url(), Duration::from_secs(600)), 200)));
    let scope = setting.test.fixture.ledger.scope().clone();
    let watch = Watch::start(&setting.test.engine, &scope, &setting.root(), Duration::from_millis(30), None).unwrap();
    let began = Instant::now();
    let wait = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(began.elapsed() < Duration::from_secs(60), "it should have happened by now");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait(&|| !model.asked().is_empty());
    setting.write("saved.py", "def saved(): pass\n");
    wait(&|| setting.test.call("get", json!({"ref": "Function:saved.py::saved"})).is_ok());
    drop(watch);
}

#[test]
fn communities_are_summed_up_by_a_model_where_one_is_configured() {
    let fake = FakeEndpoint::start(|asked, _| {
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        let question = body["messages"][1]["content"].as_str().unwrap().to_owned();
        let sentence =
            if question.starts_with("Group:") { "Opens shops and greets every visitor." } else { "Does something." };
        FakeReply::ok(json!({"choices": [{"message": {"content": sentence}}]}).to_string())
    });
    let config = EndpointConfig { url: fake.url(), name: "small".into(), key: None, timeout: Duration::from_secs(20) };
    let mut setting = setting();
    setting.restart(None);
    setting.index();
    let summaries = |setting: &Setting| -> Vec<String> {
        let answer = setting.test.ok("communities", json!({}));
        setting.test.engine.state::<CommunityCache>().settle();
        answer["communities"].as_array().unwrap().iter().map(|c| c["summary"].as_str().unwrap().to_owned()).collect()
    };
    let counted = summaries(&setting);
    assert!(!counted.is_empty() && counted.iter().all(|summary| !summary.contains("greets")), "{counted:?}");
    assert!(fake.asked().is_empty());
    setting.restart(Some((Endpoint::new(&config).unwrap(), 10)));
    assert_eq!(summaries(&setting), counted, "the answer does not wait for the model");
    let asked = fake.asked().len();
    assert_eq!(asked, counted.len(), "once about each");
    let by_model = summaries(&setting);
    assert!(by_model.iter().all(|summary| summary == "Opens shops and greets every visitor."), "{by_model:?}");
    assert_eq!(fake.asked().len(), asked, "who is known is not asked about again");
    // A process without a model uses the cached summaries too.
    setting.restart(None);
    assert_eq!(summaries(&setting), by_model);
}
