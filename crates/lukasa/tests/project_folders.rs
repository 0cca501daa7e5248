//! `lukasa serve` with a settings file that gives folders to projects: callers reach those of their own project only.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::http::{HttpReply, ask};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of the folder `run`, beside the folders that its settings give away.
struct Server {
    child: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

fn lukasa(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
    let run = folder.join("run");
    command.current_dir(&run).env("LUKASA_STORE", run.join("lukasa.db")).env("XDG_RUNTIME_DIR", &run);
    command.env("LUKASA_CONFIG", folder.join("config.toml")).env("LUKASA_MODEL_URL", "off");
    for variable in ["LUKASA_TENANT", "LUKASA_PROJECT", "LUKASA_AUTHOR", "LUKASA_AGENT", "LUKASA_SESSION"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// A fact to import, in a file that is made with its folder.
fn facts(file: &Path, key: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let fact = json!({"object": {"type": "Service", "key": key}});
    std::fs::write(file, format!("{fact}\n")).unwrap();
}

impl Server {
    /// `tree` and `exchange` belong to the project `shop` of `acme`; `outside` to no project.
    fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        for made in ["run", "tree/inner", "outside"] {
            std::fs::create_dir_all(folder.path().join(made)).unwrap();
        }
        for tree in ["tree", "outside"] {
            std::fs::write(folder.path().join(tree).join("shop.py"), "def price():\n    return 1\n").unwrap();
        }
        facts(&folder.path().join("exchange/in.jsonl"), "inside");
        facts(&folder.path().join("outside/in.jsonl"), "outside");
        std::os::unix::fs::symlink(folder.path().join("outside"), folder.path().join("exchange/link")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("outside"), folder.path().join("tree/link")).unwrap();
        let given = [("trees", "tree"), ("folders", "exchange")].map(|(list, name)| {
            let path = folder.path().join(name).display().to_string();
            format!("[[serve.{list}]]\ntenant = \"acme\"\nproject = \"shop\"\npath = {path:?}\n")
        });
        std::fs::write(folder.path().join("config.toml"), given.concat()).unwrap();
        let mut command = lukasa(folder.path());
        command.args(["serve", "--listen", "127.0.0.1:0", "--access-keys", "--no-watch", "--no-embed"]);
        command.args(["--rate", "10000"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next());
        Server { address: address.expect("it prints its address").parse().unwrap(), child, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A caller with every scope in one project.
    fn caller(&self, tenant: &str, project: &str) -> Caller<'_> {
        let mut command = lukasa(self.folder.path());
        command.args(["--tenant", tenant, "--project", project, "key", "create", "--user", "ada", "--scope", "admin"]);
        let made = command.output().unwrap();
        let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        assert!(made.status.success() && key.starts_with("lk_"), "{key}");
        Caller { server: self, key }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Caller<'a> {
    server: &'a Server,
    key: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    Rest,
    Mcp,
}

const SURFACES: [Surface; 2] = [Surface::Rest, Surface::Mcp];

impl Caller<'_> {
    /// The error code of the answer, or `ok`, and the answer.
    fn ask(&self, surface: Surface, operation: &str, request: &Value) -> (String, Value) {
        match surface {
            Surface::Rest => {
                let reply = self.send(&format!("/v1/{operation}"), None, request);
                (reply.code(), reply.json())
            }
            Surface::Mcp => {
                let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                    "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": {"name": "ada", "version": "1"}}});
                let begun = self.send("/mcp", None, &hello);
                let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": operation, "arguments": request}});
                let reply = self.send("/mcp", Some(begun.header("mcp-session-id").unwrap()), &call);
                let line =
                    reply.body.lines().find_map(|line| line.strip_prefix("data: ").filter(|l| l.starts_with('{')));
                let answer: Value = serde_json::from_str(line.unwrap_or(&reply.body)).unwrap();
                let answer = answer["result"]["structuredContent"].clone();
                let code = if answer["ok"] == true { "ok" } else { answer["errorCode"].as_str().unwrap_or("none") };
                (code.to_owned(), answer["data"].clone())
            }
        }
    }

    fn send(&self, path: &str, session: Option<&str>, body: &Value) -> HttpReply {
        let mut headers = vec![("x-api-key", self.key.as_str()), ("accept", "application/json, text/event-stream")];
        headers.extend(session.map(|session| ("mcp-session-id", session)));
        ask(self.server.address, "POST", path, &headers, &body.to_string())
    }

    fn code(&self, operation: &str, request: &Value) -> [String; 2] {
        SURFACES.map(|surface| self.ask(surface, operation, request).0)
    }

    /// The number of transactions of the project.
    fn head(&self) -> Value {
        self.ask(Surface::Rest, "log", &json!({})).1["head"].clone()
    }
}

const FORBIDDEN: [&str; 2] = ["forbidden_path"; 2];

#[test]
fn a_working_tree_is_indexed_by_callers_of_its_project_only() {
    let server = Server::start();
    let tree = server.path("tree");
    let strangers = [server.caller("other", "shop"), server.caller("acme", "other"), server.caller("other", "mine")];
    for stranger in &strangers {
        for path in [json!({"path": tree}), json!({"path": tree.join("inner")}), json!({"path": "."}), json!({})] {
            for operation in ["index_directory", "graph_rebuild", "graph_set_workspace", "graph_health"] {
                assert_eq!(stranger.code(operation, &path), FORBIDDEN, "{operation} {path}");
            }
        }
        assert_eq!(stranger.code("index_file", &json!({"path": tree.join("shop.py")})), FORBIDDEN);
        assert!(stranger.head().is_null() || stranger.head() == 0, "{}", stranger.head());
    }
    let own = server.caller("acme", "shop");
    for path in ["outside", "run", "exchange", "tree/link", "tree/../outside"] {
        assert_eq!(own.code("index_directory", &json!({"path": server.path(path)})), FORBIDDEN, "{path}");
    }
    for surface in SURFACES {
        // Saved for this surface, so that it has something to index.
        let name = format!("{surface:?}").to_lowercase();
        std::fs::write(tree.join(format!("{name}.py")), format!("def by_{name}():\n    return 1\n")).unwrap();
        for request in [json!({"path": tree}), json!({})] {
            let (code, answer) = own.ask(surface, "index_directory", &request);
            assert_eq!(code, "ok", "{surface:?} {request}: {answer}");
        }
        let symbol = json!({"ref": format!("Function:{name}.py::by_{name}")});
        assert_eq!(own.code("get", &symbol), ["ok"; 2], "{symbol}");
    }
}

#[test]
fn data_is_exchanged_through_the_folder_of_the_project_only() {
    let server = Server::start();
    let (own, stranger) = (server.caller("acme", "shop"), server.caller("other", "shop"));
    let inside = server.path("exchange/in.jsonl");
    assert_eq!(stranger.code("import", &json!({"file": inside})), FORBIDDEN);
    assert_eq!(stranger.code("export", &json!({"file": server.path("exchange/out.jsonl")})), FORBIDDEN);
    for path in ["outside/in.jsonl", "exchange/link/in.jsonl", "exchange/../outside/in.jsonl", "tree/shop.py"] {
        assert_eq!(own.code("import", &json!({"file": server.path(path)})), FORBIDDEN, "{path}");
    }
    assert_eq!(own.code("import", &json!({"file": "../outside/in.jsonl"})), FORBIDDEN);
    assert_eq!(own.code("export", &json!({"file": server.path("outside/out.jsonl")})), FORBIDDEN);
    assert_eq!(own.code("get", &json!({"ref": "Service:inside"})), ["unknown_project"; 2], "nothing was imported");
    for (surface, file) in SURFACES.into_iter().zip([json!(inside), json!("mcp.jsonl")]) {
        facts(&server.path("exchange/mcp.jsonl"), "by_mcp");
        let (code, answer) = own.ask(surface, "import", &json!({"file": file}));
        assert_eq!(code, "ok", "{surface:?}: {answer}");
        let out = server.path(&format!("exchange/{surface:?}.jsonl"));
        let (code, answer) = own.ask(surface, "export", &json!({"file": out}));
        assert!(code == "ok" && std::fs::read_to_string(&out).unwrap().contains("inside"), "{surface:?}: {answer}");
    }
    for key in ["inside", "by_mcp"] {
        assert_eq!(own.code("get", &json!({"ref": format!("Service:{key}")})), ["ok"; 2], "{key}");
    }
    assert_eq!(own.code("get", &json!({"ref": "Service:outside"})), ["not_found"; 2]);
    assert!(!server.path("outside/out.jsonl").exists());
}
