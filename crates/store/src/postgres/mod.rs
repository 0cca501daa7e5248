//! PostgreSQL with forced row-level security: pooled connections, one project scope per transaction.
//!
//! The trait is synchronous; this store runs its queries on the runtime whose handle it was given. Therefore it must
//! not be called from a thread of that runtime.

mod audit;
mod connect;
mod derived;
mod keys;
mod policies;
mod session;
mod tls;

pub use policies::setup;

use crate::{AccessKeys, AuditTrail, Clock, Derived, Reader, Store, Writer};
use connect::ConnectionTarget;
use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use parking_lot::Mutex;
use session::PostgresSession;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::error::SqlState;

/// How to reach the server.
#[derive(Clone, Debug)]
pub struct PostgresConfig {
    /// URL with a login role that may not bypass row-level security.
    pub url: String,
    /// Whether to fail on start when policies or the role differ from what is required; otherwise only warn.
    pub strict: bool,
    pub connections: usize,
}

impl PostgresConfig {
    /// Creates a strict configuration for a URL.
    pub fn new(url: &str) -> PostgresConfig {
        PostgresConfig { url: url.into(), strict: true, connections: 8 }
    }
}

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    pool: Pool,
    /// Connections made before this time are not reused.
    stale_until: Arc<Mutex<Option<Instant>>>,
    runtime: Handle,
    /// Overrides the server's clock, for tests.
    clock: Option<Arc<dyn Clock>>,
    /// At most half of the connections are for writers.
    writers: Arc<Semaphore>,
    place: String,
    warnings: Vec<String>,
}

/// How long to wait for a connection, or for the project's lock.
const WAIT: Duration = Duration::from_secs(30);
/// Connections tried before a failure is reported: a stale one, one that was in use meanwhile, and a new one.
const TRIES: usize = 3;

impl PostgresStore {
    /// Connects as the application role and checks schema, role and policies.
    pub fn open(config: &PostgresConfig, runtime: Handle, clock: Option<Arc<dyn Clock>>) -> Result<PostgresStore> {
        let mut target = ConnectionTarget::parse(&config.url)?;
        // Every query here has an index. A plan made while a table was small must not scan it when it is large.
        target.config.options("-c enable_seqscan=off -c jit=off");
        let (place, patience) = (server_addresses(&target.config), target.patience());
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(target.config.clone(), target, recycling);
        let stale_until = Arc::new(Mutex::new(None::<Instant>));
        let stale = Arc::clone(&stale_until);
        let pool = Pool::builder(manager)
            .pre_recycle(Hook::sync_fn(move |_, metrics| match *stale.lock() {
                Some(until) if metrics.created <= until => Err(HookError::message("made before a fail-over")),
                _ => Ok(()),
            }))
            .max_size(config.connections)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(patience))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|e| Error::internal(format!("no connection pool: {e}")))?;
        let drift = runtime.block_on(async {
            let client = pool.get().await.map_err(pool_fault)?;
            policies::check_schema(&client, &place).await?;
            policies::drift(&client).await
        })?;
        if config.strict && !drift.is_empty() {
            return Err(Error::new(
                ErrorKind::Unavailable,
                ErrorCode::PolicyDrift,
                format!("tenants are not safe from one another: {}", drift.join("; ")),
            )
            .hint(
                "run `lukasa setup-postgres` with an administrator's URL, take memberships and tables from the application \
                 role that it must not have, then connect as that role",
            ));
        }
        let writers = Arc::new(Semaphore::new((config.connections / 2).max(1)));
        Ok(PostgresStore { pool, stale_until, runtime, clock, writers, place, warnings: drift })
    }

    /// Deviations that do not prevent the store from starting.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// The addresses of the servers, without the password.
fn server_addresses(settings: &tokio_postgres::Config) -> String {
    let ports = settings.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let place = |(at, host): (usize, &tokio_postgres::config::Host)| match host {
        tokio_postgres::config::Host::Tcp(host) => format!("{host}:{}", port(at)),
        #[cfg(unix)]
        tokio_postgres::config::Host::Unix(path) => format!("{}:{}", path.display(), port(at)),
    };
    let hosts: Vec<String> = settings.get_hosts().iter().enumerate().map(place).collect();
    let hosts = if hosts.is_empty() { format!("localhost:{}", port(0)) } else { hosts.join(",") };
    format!("postgres {hosts}/{}", settings.get_dbname().unwrap_or_default())
}

impl Store for PostgresStore {
    fn read<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Reader + 'a>> {
        let mut session = self.session(scope, false)?;
        session.fix_head()?;
        Ok(Box::new(session))
    }

    fn write<'a>(&'a self, scope: &Scope) -> Result<Box<dyn Writer + 'a>> {
        Ok(Box::new(self.session(scope, true)?))
    }

    fn derived(&self) -> &dyn Derived {
        self
    }

    fn access_keys(&self) -> &dyn AccessKeys {
        self
    }

    fn audit(&self) -> &dyn AuditTrail {
        self
    }

    fn projects(&self, tenant: &str) -> Result<Vec<String>> {
        // A scope with only the tenant can read its list of projects and nothing else.
        let scope = Scope { tenant: tenant.into(), project: String::new() };
        self.session(&scope, false)?.projects()
    }

    fn copy_to(&self, _: &Path) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, ErrorCode::NoNativeCopy, "a PostgreSQL store is backed up as a dump"))
    }

    fn describe(&self) -> String {
        self.place.clone()
    }
}

impl PostgresStore {
    fn session(&self, scope: &Scope, write: bool) -> Result<PostgresSession<'_>> {
        self.begun(scope, write, |session| session.begin(write))
    }

    /// Returns a session that has begun. Nothing has been sent before that, so a connection that is broken, or leads to
    /// a server that no longer accepts writes, is replaced by another.
    fn begun(
        &self,
        scope: &Scope,
        write: bool,
        begin: impl Fn(&PostgresSession<'_>) -> Result<()>,
    ) -> Result<PostgresSession<'_>> {
        let mut tries = 0;
        loop {
            let (client, permit) = self.runtime.block_on(async {
                let permit = if write { Some(self.writer_permit().await?) } else { None };
                Ok::<_, Error>((self.pool.get().await.map_err(pool_fault)?, permit))
            })?;
            // From here on, dropping the session rolls back.
            let session = PostgresSession::new(client, &self.runtime, scope.clone(), self.clock.as_deref(), permit);
            match begin(&session) {
                Err(error) if is_stale(&error) => {
                    session.discard();
                    self.forget_connections();
                    tries += 1;
                    if tries == TRIES {
                        return Err(error);
                    }
                }
                begun => return begun.map(|()| session),
            }
        }
    }

    /// Makes the pool reconnect: after a failover, existing connections lead to a server that does not accept writes.
    /// Connections in use are dropped when they return to the pool.
    fn forget_connections(&self) {
        *self.stale_until.lock() = Some(Instant::now());
        self.pool.retain(|_, _| false);
    }

    /// Passes a result through and stops reusing connections to a server that does not accept writes.
    fn seen<T>(&self, done: Result<T>) -> Result<T> {
        done.inspect_err(|error| {
            if is_stale(error) {
                self.forget_connections();
            }
        })
    }

    /// Limits writers, so that those waiting for a project do not take every connection from readers.
    async fn writer_permit(&self) -> Result<OwnedSemaphorePermit> {
        let permit = tokio::time::timeout(WAIT, Arc::clone(&self.writers).acquire_owned()).await;
        permit.ok().and_then(Result::ok).ok_or_else(|| {
            Error::new(ErrorKind::Unavailable, ErrorCode::StoreBusy, "too many writers are waiting")
                .hint("try again in a moment")
        })
    }
}

fn pool_fault(error: deadpool_postgres::PoolError) -> Error {
    match error {
        deadpool_postgres::PoolError::Backend(e) => fault(e),
        other => Error::new(
            ErrorKind::Unavailable,
            ErrorCode::StoreUnreachable,
            format!("no connection to PostgreSQL: {other}"),
        )
        .hint("check that the server runs and takes connections"),
    }
}

/// Whether an error shows that the connection is broken or leads to a server that does not accept writes.
fn is_stale(error: &Error) -> bool {
    matches!(error.code, ErrorCode::StoreUnreachable | ErrorCode::ReadOnlyStore)
}

/// Converts an error of PostgreSQL.
pub(crate) fn fault(error: tokio_postgres::Error) -> Error {
    let Some(db) = error.as_db_error() else {
        return Error::new(
            ErrorKind::Unavailable,
            ErrorCode::StoreUnreachable,
            format!("the connection to PostgreSQL failed: {}", chain(&error)),
        )
        .hint("check that the server runs and takes connections; send the batch again under its client_id");
    };
    let message = db.message();
    match *db.code() {
        SqlState::INSUFFICIENT_PRIVILEGE => {
            Error::new(ErrorKind::Forbidden, ErrorCode::NotPermitted, format!("PostgreSQL refused: {message}"))
        }
        SqlState::DISK_FULL => {
            Error::new(ErrorKind::Unavailable, ErrorCode::DiskFull, "the database's disk is full, nothing was written")
                .hint("make room and repeat the write")
        }
        SqlState::CHARACTER_NOT_IN_REPERTOIRE | SqlState::UNTRANSLATABLE_CHARACTER => {
            Error::invalid(ErrorCode::NulByte, format!("PostgreSQL cannot keep a character: {message}"))
                .hint("leave it out")
        }
        SqlState::LOCK_NOT_AVAILABLE | SqlState::QUERY_CANCELED => {
            Error::new(ErrorKind::Unavailable, ErrorCode::StoreBusy, "another writer holds the project")
                .hint("try again in a moment")
        }
        SqlState::READ_ONLY_SQL_TRANSACTION => Error::new(
            ErrorKind::Unavailable,
            ErrorCode::ReadOnlyStore,
            format!("PostgreSQL takes no writes: {message}"),
        )
        .hint("it is a standby, or was made read-only: name all servers in the URL, and try again in a moment"),
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => Error::new(
            ErrorKind::Unavailable,
            ErrorCode::StoreConflict,
            format!("PostgreSQL gave up this transaction in favour of another: {message}"),
        )
        .hint("nothing was written; try again in a moment"),
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => Error::new(
            ErrorKind::Unavailable,
            ErrorCode::StoreLoginFailed,
            format!("PostgreSQL refused the login: {message}"),
        )
        .hint("check user and password in the URL"),
        SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN | SqlState::CANNOT_CONNECT_NOW => Error::new(
            ErrorKind::Unavailable,
            ErrorCode::StoreUnreachable,
            format!("PostgreSQL is going down or coming up: {message}"),
        )
        .hint("try again in a moment"),
        _ => Error::internal(format!("PostgreSQL: {message} ({})", db.code().code())),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
