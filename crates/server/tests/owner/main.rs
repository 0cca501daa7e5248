//! Processes share one engine: one owns it, others attach, another takes over, and no acknowledged write is lost.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod claims;
mod killed;

use lukasa_engine::features::search::EmbeddingModel;
use lukasa_engine::features::search::embedding::{EmbeddingEndpointConfig, InputRules};
use lukasa_engine::{Engine, Grants, registry};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use lukasa_server::request_gate::WorkProgress;
use lukasa_server::{Caller, EngineHandle, EngineRole, ProjectFolders, RequestGate, RequestLimits, StoreLocation};
use lukasa_store::sqlite::Durability;
use lukasa_store::{SqliteStore, SystemClock};
use lukasa_testkit::{FakeEndpoint, FakeReply};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tempfile::TempDir;

/// Timeout for events that must happen; long enough for a busy machine.
const NEVER: Duration = Duration::from_secs(60);

/// A temporary store, and how often an engine was opened on it.
struct Site {
    folder: TempDir,
    opened: Arc<AtomicUsize>,
}

impl Site {
    fn new() -> Site {
        Site { folder: tempfile::tempdir().unwrap(), opened: Arc::default() }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("lukasa.db")
    }

    fn lock(&self) -> PathBuf {
        self.folder.path().join("lukasa.db.owner")
    }

    fn place(&self) -> StoreLocation {
        place(&self.store())
    }

    fn desk(&self) -> EngineHandle {
        let (store, opened) = (self.store(), Arc::clone(&self.opened));
        EngineHandle::start(self.place(), move || {
            opened.fetch_add(1, Ordering::SeqCst);
            open(&store)
        })
    }

    fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    /// The note of the owner.
    fn note(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.lock()).unwrap()).unwrap()
    }

    fn socket(&self) -> PathBuf {
        PathBuf::from(self.note()["socket"].as_str().unwrap())
    }
}

fn place(store: &Path) -> StoreLocation {
    let folder = store.parent().unwrap();
    StoreLocation::of(store, Some(folder), folder).unwrap()
}

fn open(store: &Path) -> Result<Engine> {
    let clock = Arc::new(SystemClock);
    let opened = SqliteStore::open(store, clock.clone(), Durability::Full)?;
    Ok(Engine::new(Arc::new(opened), clock, std::env::temp_dir()))
}

fn caller() -> Caller {
    let user = Some("ada".to_string());
    Caller { user, agent: Some("tester".into()), ..Caller::owner(Scope::new("local", "shop").unwrap()) }
}

async fn ask(desk: &EngineHandle, name: &str, request: Value) -> Result<Value> {
    let operation = registry::find(name).unwrap();
    tokio::time::timeout(NEVER, desk.call(&caller(), operation, request, None)).await.expect("an answer")?.value()
}

async fn role(desk: &EngineHandle, wanted: impl Fn(EngineRole) -> bool) -> EngineRole {
    let waiting = async {
        let mut role = desk.role();
        while !wanted(role) {
            role = desk.role_after(role).await;
        }
        role
    };
    tokio::time::timeout(NEVER, waiting).await.expect("the role")
}

async fn owning(desk: &EngineHandle) {
    role(desk, |role| role == EngineRole::Owner).await;
}

async fn attached(desk: &EngineHandle) {
    role(desk, |role| matches!(role, EngineRole::Attached { .. })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_share_one_engine_and_get_the_same_answers() {
    let site = Site::new();
    let owner = site.desk();
    owning(&owner).await;
    let others: Vec<EngineHandle> = (0..9).map(|_| site.desk()).collect();
    for (i, desk) in others.iter().enumerate() {
        let put = json!({"type": "Service", "key": format!("s{i}"), "properties": {"x": 0.1 + i as f64, "s": "ü\n"}});
        ask(desk, "put", put).await.unwrap();
        assert_eq!(desk.role(), EngineRole::Attached { owner: std::process::id() });
        assert!(desk.engine().is_none());
    }
    // What one process wrote, all others read, byte for byte.
    let operation = registry::find("list").unwrap();
    let request = json!({"type": "Service", "as_of": "tx:9"});
    let text = |desk: EngineHandle, request: Value| async move {
        desk.call(&caller(), operation, request, None).await.unwrap().text().unwrap()
    };
    let own = text(owner.clone(), request.clone()).await;
    assert!(own.contains("s8"), "{own}");
    for desk in &others {
        assert_eq!(text(desk.clone(), request.clone()).await, own);
    }
    let log = ask(&others[0], "log", json!({})).await.unwrap();
    assert_eq!(
        (&log["transactions"][0]["author"], &log["transactions"][0]["agent"]),
        (&json!("ada"), &json!("tester"))
    );
    // Errors are passed on completely, too.
    for (name, request) in [
        ("get", json!({"ref": "absent"})),
        ("get", json!({"name": 1})),
        ("put", json!({"type": "Service", "key": "s1", "expected_version": 7})),
        ("export", json!({"file": "-"})),
    ] {
        let (here, there) =
            (ask(&owner, name, request.clone()).await.unwrap_err(), ask(&others[3], name, request).await.unwrap_err());
        assert_eq!(here, there);
    }
    assert_eq!(site.opened(), 1, "one engine for all");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_share_a_connection() {
    let site = Site::new();
    let owner = site.desk();
    owning(&owner).await;
    let desk = site.desk();
    let puts = (0..200).map(|i| {
        let desk = desk.clone();
        tokio::spawn(async move { ask(&desk, "put", json!({"type": "Service", "key": format!("s{i}")})).await })
    });
    for put in puts.collect::<Vec<_>>() {
        put.await.unwrap().unwrap();
    }
    let all = ask(&desk, "list", json!({"type": "Service", "limit": 1})).await.unwrap();
    assert_eq!(all["total"], 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_over_a_shared_engine_keeps_its_limits_and_its_grants() {
    let site = Site::new();
    let owner = site.desk();
    owning(&owner).await;
    let front = RequestGate::over(site.desk(), RequestLimits::default(), ProjectFolders::default());
    front.ready(|| Ok(())).await.unwrap();
    let reader = Caller { grants: Grants::of(["graph:read"]), ..caller() };
    let request = json!({"type": "Service", "key": "a"});
    let refused = front.call(&reader, "put", request.clone(), None).await.err().unwrap();
    assert_eq!((refused.kind, refused.code), (ErrorKind::Forbidden, ErrorCode::MissingScope));
    front.call(&caller(), "put", request, None).await.unwrap();
    front.call(&reader, "get", json!({"ref": "a"}), None).await.unwrap();
    assert!(matches!(front.engine_handle().role(), EngineRole::Attached { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_comes_through() {
    let site = Site::new();
    let owner = site.desk();
    owning(&owner).await;
    let desk = site.desk();
    for i in 0..3 {
        ask(&desk, "put", json!({"type": "Service", "key": format!("s{i}")})).await.unwrap();
    }
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    desk.call(&caller(), registry::find("verify").unwrap(), json!({}), Some(sender)).await.unwrap();
    let first: WorkProgress = receiver.recv().await.expect("some progress");
    assert!(first.of == Some(3) && first.done <= 3, "{first:?}");
    assert!(matches!(desk.role(), EngineRole::Attached { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_owner_ends_exactly_one_other_takes_over() {
    let site = Site::new();
    let mut desks = vec![site.desk()];
    owning(&desks[0]).await;
    desks.extend((0..5).map(|_| site.desk()));
    for (i, desk) in desks.iter().enumerate() {
        ask(desk, "put", json!({"type": "Service", "key": format!("s{i}")})).await.unwrap();
    }
    for ended in 1..6 {
        let gone = desks.iter().position(|desk| desk.role() == EngineRole::Owner).unwrap();
        drop(desks.remove(gone));
        // A request before the other processes have noticed that the owner ended.
        for desk in &desks {
            let all = ask(desk, "list", json!({"type": "Service"})).await.unwrap();
            assert_eq!(all["total"], 6);
        }
        // The ending owner may still have answered, so the takeover may take a moment.
        let owners = || desks.iter().filter(|desk| desk.role() == EngineRole::Owner).count();
        while owners() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for desk in &desks {
            ask(desk, "projects", json!({})).await.unwrap();
        }
        assert_eq!((owners(), site.opened()), (1, ended + 1));
    }
}

/// Requests that arrive while the store is being opened wait for it, in the owner and in attached processes.
#[tokio::test(flavor = "multi_thread")]
async fn requests_wait_until_the_engine_is_open() {
    let site = Site::new();
    let store = site.store();
    let (go, gate): (Sender<()>, Receiver<()>) = channel();
    let gate = std::sync::Mutex::new(gate);
    let owner = EngineHandle::start(site.place(), move || {
        gate.lock().unwrap().recv().unwrap();
        open(&store)
    });
    owning(&owner).await;
    let other = site.desk();
    attached(&other).await;
    let asked: Vec<_> = [owner.clone(), other.clone()]
        .into_iter()
        .map(|desk| tokio::spawn(async move { ask(&desk, "projects", json!({})).await }))
        .collect();
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(asked.iter().all(|task| !task.is_finished()) && owner.engine().is_none());
    go.send(()).unwrap();
    for task in asked {
        task.await.unwrap().unwrap();
    }
    assert!(owner.engine().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_to_open_the_store_is_reported_and_opening_is_retried() {
    let site = Site::new();
    let (store, tries) = (site.store(), AtomicUsize::new(0));
    let owner = EngineHandle::start(site.place(), move || match tries.fetch_add(1, Ordering::SeqCst) {
        0 => Err(Error::new(ErrorKind::Unavailable, ErrorCode::DiskFull, "no room")),
        1 => panic!("as a test"),
        _ => open(&store),
    });
    owning(&owner).await;
    let other = site.desk();
    // The first attempt starts on its own; only requests that wait for it see its error.
    let mut codes = vec![];
    while let Err(error) = ask(&other, "projects", json!({})).await {
        codes.push(error.code);
    }
    assert!(codes.len() <= 2 && codes.last() == Some(&ErrorCode::InternalError), "{codes:?}");
    ask(&owner, "projects", json!({})).await.unwrap();
}

/// An owner played by the test: it reads requests and sends what the test wants.
struct Impostor {
    lock: File,
    listener: UnixListener,
    hello: Value,
}

impl Impostor {
    fn at(site: &Site) -> Impostor {
        let lock = File::create(site.lock()).unwrap();
        lock.try_lock().unwrap();
        let socket = site.folder.path().join("test.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let note = json!({"pid": 1, "socket": socket, "fault": null});
        (&lock).write_all(note.to_string().as_bytes()).unwrap();
        let store = site.place().store().to_owned();
        let hello = json!({"protocol": 5, "version": env!("CARGO_PKG_VERSION"), "store": store, "pid": 1});
        Impostor { lock, listener, hello }
    }

    /// Accepts a connection.
    fn welcome(&self) -> UnixStream {
        let (mut stream, _) = self.listener.accept().unwrap();
        assert_eq!(hear(&mut stream)["hello"]["version"], env!("CARGO_PKG_VERSION"));
        say(&mut stream, &json!({"hello": self.hello}));
        stream
    }
}

fn hear(stream: &mut UnixStream) -> Value {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn say(stream: &mut UnixStream, frame: &Value) {
    let text = frame.to_string();
    stream.write_all(&(text.len() as u32).to_be_bytes()).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::time::timeout(NEVER, tokio::task::spawn_blocking(work)).await.expect("in time").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_in_flight_are_repeated_and_writes_are_reported_as_unknown() {
    let site = Site::new();
    let impostor = Impostor::at(&site);
    let desk = site.desk();
    let started = |name: &'static str, request: Value| {
        let desk = desk.clone();
        tokio::spawn(async move { ask(&desk, name, request).await })
    };
    let read = started("projects", json!({}));
    let write = started("put", json!({"type": "Service", "key": "a"}));
    let heard = blocking(move || {
        let mut stream = impostor.welcome();
        let heard = [hear(&mut stream), hear(&mut stream)];
        // It ends without a reply: first the connection, then the lock.
        drop(stream);
        std::thread::sleep(Duration::from_millis(30));
        drop(impostor.lock);
        heard
    });
    let mut names: Vec<_> = heard.await.iter().map(|frame| frame["request"]["operation"].clone()).collect();
    names.sort_by_key(|name| name.to_string());
    assert_eq!(names, [json!("projects"), json!("put")]);
    read.await.unwrap().unwrap();
    let error = write.await.unwrap().unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::Unavailable, ErrorCode::OwnerChanged));
    assert!(error.hint.unwrap().contains("may or may not have happened"));
    assert_eq!((desk.role(), site.opened()), (EngineRole::Owner, 1));
    // The next attempt finds this process as the owner. The lost write was not repeated.
    let done = ask(&desk, "put", json!({"type": "Service", "key": "a"})).await.unwrap();
    assert_eq!(done["tx"], 1, "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_brings_down_its_owners_is_given_up() {
    let site = Site::new();
    let impostor = Impostor::at(&site);
    let desk = site.desk();
    let reader = desk.clone();
    let read = tokio::spawn(async move { ask(&reader, "projects", json!({})).await });
    let sent = blocking(move || {
        for _ in 0..3 {
            let mut stream = impostor.welcome();
            assert_eq!(hear(&mut stream)["request"]["operation"], "projects");
        }
        impostor
    });
    let _impostor = sent.await;
    assert_eq!(read.await.unwrap().unwrap_err().code, ErrorCode::OwnerChanged);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_stops_waiting_cancels_the_work() {
    let site = Site::new();
    let impostor = Impostor::at(&site);
    let desk = site.desk();
    let asking = desk.clone();
    let read = tokio::spawn(async move { ask(&asking, "projects", json!({})).await });
    let (mut stream, id) = blocking(move || {
        let mut stream = impostor.welcome();
        let request = hear(&mut stream);
        ((stream, impostor), request["request"]["id"].clone())
    })
    .await;
    read.abort();
    let cancel = blocking(move || hear(&mut stream.0)).await;
    assert_eq!(cancel, json!({"cancel": {"id": id}}));
}

/// A slow embedding model that counts requests.
fn slow_model() -> (FakeEndpoint, EmbeddingModel) {
    let endpoint = FakeEndpoint::start(|asked, _| {
        std::thread::sleep(Duration::from_millis(20));
        let texts = serde_json::from_str::<Value>(&asked.body).unwrap()["input"].as_array().unwrap().len();
        let data: Vec<_> = (0..texts).map(|index| json!({"index": index, "embedding": [1.0, 0.5]})).collect();
        FakeReply::ok(json!({"data": data}).to_string())
    });
    let config = EmbeddingEndpointConfig {
        base_url: endpoint.url(),
        model: "slow".into(),
        version: "1".into(),
        key: None,
        dimensions: 2,
        batch: 8,
        prefix: String::new(),
        question_prefix: String::new(),
        timeout: NEVER,
    };
    let embedding = EmbeddingModel::by_endpoint(&config, InputRules::default(), None).unwrap();
    (endpoint, embedding)
}

/// Either the request or the whole attached process goes away while the owner works for it.
#[tokio::test(flavor = "multi_thread")]
async fn the_owner_stops_when_the_caller_is_gone() {
    for whole_process in [false, true] {
        let site = Site::new();
        let (endpoint, embedding) = slow_model();
        let engine = open(&site.store()).unwrap().with_embedding(embedding);
        let owner = EngineHandle::start(site.place(), move || Ok(engine.clone()));
        owning(&owner).await;
        let writes: Vec<_> = (0..640)
            .map(|i| json!({"object": {"type": "Note", "key": format!("n{i}"), "title": format!("t{i}")}}))
            .collect();
        ask(&owner, "batch", json!({"writes": writes})).await.unwrap();
        let desk = site.desk();
        attached(&desk).await;
        let asking = desk.clone();
        let embed = tokio::spawn(async move { ask(&asking, "embed", json!({})).await });
        while endpoint.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        embed.abort();
        if whole_process {
            drop(desk);
        }
        let mut calls = 0;
        while endpoint.asked().len() > calls {
            calls = endpoint.asked().len();
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        assert!(calls < 40, "{calls} calls of 80 were made after the caller had gone");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_versions_are_refused_with_an_explanation() {
    // An owner of another version, seen by this process.
    let site = Site::new();
    let mut impostor = Impostor::at(&site);
    impostor.hello["version"] = json!("0.0.1");
    let desk = site.desk();
    let greeting = std::thread::spawn(move || {
        drop(impostor.welcome());
        impostor
    });
    let error = ask(&desk, "projects", json!({})).await.unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::Unavailable, ErrorCode::OwnerVersion));
    assert!(error.message.contains("0.0.1") && error.hint.is_some(), "{error:?}");
    // Once it has ended, this process takes over.
    drop(greeting.join().unwrap());
    owning(&desk).await;
    ask(&desk, "projects", json!({})).await.unwrap();

    // This process as the owner, seen by another version and by a process with another store.
    let hello = json!({"protocol": 5, "version": env!("CARGO_PKG_VERSION"), "store": site.place().store(), "pid": 2});
    let socket = site.socket();
    let greet = move |hello: Value| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        say(&mut stream, &json!({"hello": hello}));
        hear(&mut stream)
    };
    let (same, older, other) = blocking(move || {
        let (mut older, mut other) = (hello.clone(), hello.clone());
        older["version"] = json!("0.0.1");
        other["store"] = json!("/elsewhere/lukasa.db");
        (greet(hello), greet(older), greet(other))
    })
    .await;
    assert_eq!(same["hello"]["pid"], std::process::id());
    assert_eq!(older["refused"]["code"], "owner_version");
    assert!(older["refused"]["message"].as_str().unwrap().contains("this is 0.0.1"), "{older}");
    assert_eq!(other["refused"]["code"], "owner_unreachable");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_frames_end_only_their_connection() {
    let site = Site::new();
    let owner = site.desk();
    owning(&owner).await;
    let other = site.desk();
    ask(&other, "projects", json!({})).await.unwrap();
    let socket = site.socket();
    blocking(move || {
        for nonsense in [&b"\xff\xff\xff\xff{}"[..], b"\0\0\0\x02{}", b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x02[]"] {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.write_all(nonsense).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut rest = Vec::new();
            // A reset counts as the end, too.
            let _ = stream.read_to_end(&mut rest);
            assert!(rest.is_empty());
        }
    })
    .await;
    ask(&other, "projects", json!({})).await.unwrap();
}
