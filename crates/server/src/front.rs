//! The one way from a surface to the engine: who asks, how many at once, how long, and which places may be touched.

use crate::metrics::metrics;
use crate::owner::Desk;
use lukasa_engine::{Answer, Engine, Grants, Operation, registry};
use lukasa_model::{Error, ErrorKind, Result, Scope};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    pub scope: Scope,
    pub user: Option<String>,
    pub agent: Option<String>,
    pub session: Option<String>,
    pub grants: Grants,
    /// Works on this machine as the person who started us, who may name any place on it.
    pub local: bool,
}

impl Caller {
    /// Whoever started us.
    pub fn owner(scope: Scope) -> Caller {
        Caller { scope, user: None, agent: None, session: None, grants: Grants::All, local: true }
    }
}

/// How much is taken on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests worked on at the same time.
    pub at_once: usize,
    /// Requests that may wait for their turn; more are refused.
    pub waiting: usize,
    /// Longest work on one request.
    pub time: Duration,
    /// Largest request, in bytes.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { at_once: 16, waiting: 256, time: Duration::from_secs(120), bytes: 4 << 20 }
    }
}

/// How far work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub of: Option<u64>,
}

/// The engine as surfaces see it. Cheap to clone.
#[derive(Clone)]
pub struct Front {
    desk: Desk,
    limits: Limits,
    turns: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// The working tree that is meant when none is named.
    home: Option<PathBuf>,
}

impl Front {
    /// Over an engine of this process alone.
    pub fn new(engine: Engine, limits: Limits, home: Option<PathBuf>) -> Front {
        Front::over(Desk::own(engine), limits, home)
    }

    /// Over an engine that processes share.
    pub fn over(desk: Desk, limits: Limits, home: Option<PathBuf>) -> Front {
        let turns = Arc::new(Semaphore::new(limits.at_once));
        let waiting = Arc::new(Semaphore::new(limits.at_once + limits.waiting));
        Front { desk, limits, turns, waiting, home }
    }

    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Whether requests would be answered: the store itself is asked, by whichever process has it open.
    pub async fn ready(&self) -> Result<()> {
        let operation = registry::find("projects").ok_or_else(|| unknown("projects"))?;
        let caller = Caller::owner(Scope::new("local", "any")?);
        self.desk.call(&caller, operation, serde_json::json!({}), None).await.map(drop)
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Runs an operation. Work goes on a thread of its own; who gives up waiting drops the future, and work stops.
    pub async fn call(
        &self,
        caller: &Caller,
        name: &str,
        request: Value,
        progress: Option<UnboundedSender<Progress>>,
    ) -> Result<Answer> {
        let operation = registry::find(name).ok_or_else(|| unknown(name))?;
        let began = Instant::now();
        let answer = self.run(caller, operation, request, progress).await;
        let status = answer.as_ref().map_or_else(|error| error.code, |_| "ok");
        metrics().add(operation.meta.name, status, began.elapsed());
        answer
    }

    async fn run(
        &self,
        caller: &Caller,
        operation: &'static Operation,
        request: Value,
        progress: Option<UnboundedSender<Progress>>,
    ) -> Result<Answer> {
        let name = operation.meta.name;
        let request = self.placed(operation, caller, request)?;
        let _place = self.waiting.try_acquire().map_err(|_| busy())?;
        let _turn = self.turns.acquire().await.map_err(|_| busy())?;
        let work = self.desk.call(caller, operation, request, progress);
        match tokio::time::timeout(self.limits.time, work).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::new(
                ErrorKind::Timeout,
                "timeout",
                format!("`{name}` took longer than {} s", self.limits.time.as_secs()),
            )
            .hint("ask for less, or try again")),
        }
    }

    /// Fills in the working tree that is meant, and keeps callers from elsewhere within it.
    fn placed(&self, operation: &Operation, caller: &Caller, request: Value) -> Result<Value> {
        // By its own names first, or a place could come in by another one.
        let mut request = operation.read(request)?;
        let Some(fields) = request.as_object_mut() else { return Ok(request) };
        let named = operation.meta.places.contains(&"path") && fields.contains_key("path");
        // A look back is not brought up to date, and who may only read cannot have anything indexed.
        let looks_back = ["as_of", "cursor"].iter().any(|field| fields.contains_key(*field));
        let may_index = caller.grants.cover("graph:write") && !looks_back;
        if let Some(home) = self
            .home
            .as_ref()
            .filter(|_| !named && operation.meta.places.contains(&"path") && !operation.requires("path"))
            && (operation.meta.name != "context_pack" || may_index)
        {
            fields.insert("path".into(), Value::String(home.display().to_string()));
        }
        if caller.local {
            return Ok(request);
        }
        let here = operation.meta.places.iter().find(|place| {
            // What is left out would mean where this process happens to be.
            !fields.contains_key(**place)
                && operation.fields().get(**place).is_some_and(|field| field["default"] == ".")
        });
        if let Some(name) = here {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "place_not_served",
                format!("{name}: no working tree is served"),
            )
            .hint("serve from within one"));
        }
        for name in operation.meta.places {
            let Some(given) = fields.get(*name).and_then(Value::as_str) else { continue };
            let within = self.home.as_deref().and_then(|home| within(home, Path::new(given)));
            let Some(path) = within else {
                return Err(Error::new(
                    ErrorKind::Forbidden,
                    "place_not_served",
                    format!("{name}: `{given}` is not within what is served"),
                )
                .hint("name a place below the served working tree, or leave it out"));
            };
            fields.insert((*name).into(), Value::String(path.display().to_string()));
        }
        Ok(request)
    }
}

/// The real place of a path below a folder; none when it is not there or leads elsewhere.
fn within(home: &Path, path: &Path) -> Option<PathBuf> {
    let home = home.canonicalize().ok()?;
    let real = home.join(path).canonicalize().ok()?;
    real.starts_with(&home).then_some(real)
}

fn unknown(name: &str) -> Error {
    Error::not_found("unknown_operation", format!("no operation `{name}`")).hint("`find_tools` lists them")
}

fn busy() -> Error {
    Error::new(ErrorKind::RateLimited, "too_busy", "too many requests are waiting").hint("try again in a second")
}
