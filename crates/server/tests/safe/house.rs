//! A server with authentication over the store of a test, and access keys for it.

use lukasa_engine::audit::{AuditKey, AuditedOperations};
use lukasa_engine::{Audit, Engine};
use lukasa_model::Scope;
use lukasa_server::auth::api_key::{self, NewKey};
use lukasa_server::auth::guard::GuardRules;
use lukasa_server::auth::{AuthConfig, Authenticator};
use lukasa_server::http::{ClientLimits, Site, serve};
use lukasa_server::mcp::Toolsets;
use lukasa_server::{ProjectFolders, RequestGate, RequestLimits};
use lukasa_store::Clock;
use lukasa_testkit::Fixture;
use lukasa_testkit::http::{HttpReply, ask};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// Default byte of the audit key.
pub const KEY: u8 = 7;

pub struct House {
    pub address: SocketAddr,
    pub fixture: Arc<Fixture>,
    pub engine: Engine,
    // Dropped first, so that the server ends before the store does.
    runtime: Option<tokio::runtime::Runtime>,
}

/// An engine with an audit log, whose key consists of this byte.
pub fn engine(fixture: &Fixture, key: u8) -> Engine {
    engine_by(Arc::clone(&fixture.clock) as Arc<dyn Clock>, fixture, key)
}

/// As [`engine`], with another clock.
pub fn engine_by(clock: Arc<dyn Clock>, fixture: &Fixture, key: u8) -> Engine {
    let secret = Arc::new(AuditKey::new(&[key; 32]).unwrap());
    let audit = Audit::new(Arc::clone(&fixture.store), Arc::clone(&clock), "house", secret, AuditedOperations::All);
    Engine::new(Arc::clone(&fixture.store), clock, std::env::temp_dir()).with_audit(audit)
}

impl House {
    /// With `home` as the working tree of the project `shop` of `ours`. No other project has one.
    pub fn of(fixture: Fixture, home: Option<&Path>) -> House {
        House::with(fixture, home, |_| ())
    }

    /// `change` adjusts the site before it is served.
    pub fn with(fixture: Fixture, home: Option<&Path>, change: impl FnOnce(&mut Site)) -> House {
        let shop = Scope::new("ours", "shop").unwrap();
        let given = home.map_or_else(ProjectFolders::default, |home| ProjectFolders::default().with_tree(shop, home));
        let engine = engine(&fixture, KEY);
        House::serving(Arc::new(fixture), engine, given, change)
    }

    /// With these folders for projects.
    pub fn giving(fixture: Fixture, given: ProjectFolders) -> House {
        let engine = engine(&fixture, KEY);
        House::serving(Arc::new(fixture), engine, given, |_| ())
    }

    /// Another server over the same store, with its own engine and these folders.
    pub fn beside(&self, given: ProjectFolders) -> House {
        House::serving(Arc::clone(&self.fixture), engine(&self.fixture, KEY), given, |_| ())
    }

    pub fn serving(
        fixture: Arc<Fixture>,
        engine: Engine,
        given: ProjectFolders,
        change: impl FnOnce(&mut Site),
    ) -> House {
        let clock = Arc::clone(&fixture.clock) as Arc<dyn Clock>;
        let door = Authenticator::with_credentials(AuthConfig {
            tokens: None,
            keys: Some(Arc::clone(&fixture.store)),
            project: Some("shop".into()),
            clock: Arc::clone(&clock),
        });
        let mut site = Site {
            front: RequestGate::new(engine.clone(), RequestLimits::default(), given),
            door: Arc::new(door.unwrap()),
            rates: None,
            guard: GuardRules::default(),
            toolsets: Toolsets::read(["all"]).unwrap(),
            clock,
            failures: None,
            patience: ClientLimits::default(),
            record: Scope::new("served", "shop").unwrap(),
            checks: vec![],
        };
        change(&mut site);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(serve(site, listener, std::future::pending()));
        House { address, fixture, engine, runtime: Some(runtime) }
    }

    /// A key of a user for every project and any agent.
    pub fn key(&self, tenant: &str, user: &str, scopes: &[&str]) -> String {
        self.key_of(tenant, user, scopes, &["*"])
    }

    /// A key that is bound to these agents.
    pub fn key_of(&self, tenant: &str, user: &str, scopes: &[&str], agents: &[&str]) -> String {
        let new = NewKey {
            tenant: tenant.into(),
            project: None,
            user: user.into(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            agents: agents.iter().map(|agent| (*agent).to_owned()).collect(),
            expires_at: None,
        };
        let keys = self.fixture.store.access_keys();
        api_key::create(keys, new, self.fixture.clock.now()).unwrap().0.reveal()
    }

    pub fn call(&self, key: &str, operation: &str, request: &Value) -> HttpReply {
        let path = format!("/v1/{operation}");
        ask(self.address, "POST", &path, &[("x-api-key", key)], &request.to_string())
    }

    pub fn ok(&self, key: &str, operation: &str, request: Value) -> Value {
        let reply = self.call(key, operation, &request);
        assert_eq!(reply.status, 200, "{operation} {request}: {}", reply.body);
        reply.json()
    }

    pub fn get(&self, key: &str, path: &str) -> HttpReply {
        ask(self.address, "GET", path, &[("x-api-key", key)], "")
    }

    /// Starts an MCP session and returns its id.
    pub fn session(&self, key: &str, agent: &str) -> String {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
            "capabilities": {}, "clientInfo": {"name": agent, "version": "1"}}});
        let reply = self.say(key, None, &hello);
        assert_eq!(reply.status, 200, "{}", reply.all());
        let session = reply.header("mcp-session-id").expect("sessions have ids").to_owned();
        let accepted = self.say(key, Some(&session), &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(accepted.status, 202, "{}", accepted.all());
        session
    }

    /// The structured answer of a tool in a session.
    pub fn tool(&self, key: &str, session: &str, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.request(key, session, "tools/call", params)["result"]["structuredContent"].clone()
    }

    /// The message that answers a request in a session.
    pub fn request(&self, key: &str, session: &str, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let reply = self.say(key, Some(session), &message);
        assert_eq!(reply.status, 200, "{}", reply.all());
        let line = reply.body.lines().find_map(|line| line.strip_prefix("data: ").filter(|line| line.starts_with('{')));
        serde_json::from_str(line.unwrap_or(&reply.body)).unwrap()
    }

    /// A client with this key on every surface.
    pub fn client(&self, key: &str) -> Client<'_> {
        Client { house: self, key: key.to_owned(), session: self.session(key, "agent") }
    }

    pub fn say(&self, key: &str, session: Option<&str>, message: &Value) -> HttpReply {
        let mut headers = vec![("x-api-key", key), ("accept", "application/json, text/event-stream")];
        headers.extend(session.map(|session| ("mcp-session-id", session)));
        ask(self.address, "POST", "/mcp", &headers, &message.to_string())
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A protocol of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    Rest,
    Mcp,
}

pub const SURFACES: [Surface; 2] = [Surface::Rest, Surface::Mcp];

pub struct Client<'a> {
    house: &'a House,
    pub key: String,
    session: String,
}

/// An answer in the same form from every surface.
#[derive(Debug)]
pub struct SurfaceAnswer {
    /// `ok`, or the error code.
    pub code: String,
    /// The answer of the operation.
    pub data: Value,
    /// The whole response.
    pub text: String,
}

impl Client<'_> {
    pub fn ask(&self, surface: Surface, operation: &str, request: &Value) -> SurfaceAnswer {
        if surface == Surface::Rest {
            let reply = self.house.call(&self.key, operation, request);
            let data = if reply.status == 200 { reply.json() } else { Value::Null };
            return SurfaceAnswer { code: reply.code(), data, text: reply.all() };
        }
        let mut arguments = request.clone();
        if let Some(fields) = arguments.as_object_mut() {
            fields.entry("profile").or_insert(json!("debug"));
        }
        let params = json!({"name": operation, "arguments": arguments});
        let answer = self.house.request(&self.key, &self.session, "tools/call", params);
        let structured = &answer["result"]["structuredContent"];
        let code = match structured["ok"].as_bool() {
            Some(true) => "ok",
            _ => structured["errorCode"].as_str().unwrap_or("none"),
        };
        SurfaceAnswer { code: code.to_owned(), data: structured["data"].clone(), text: answer.to_string() }
    }

    pub fn ok(&self, surface: Surface, operation: &str, request: Value) -> Value {
        let answer = self.ask(surface, operation, &request);
        assert_eq!(
            answer.code, "ok",
            "{surface:?} {operation} {request} on {}: {}",
            self.house.fixture.name, answer.text
        );
        answer.data
    }
}
