//! A private PostgreSQL database and login role for a test, on the server in `LUKASA_TEST_POSTGRES`.

use lukasa_model::Result;
use lukasa_store::postgres::{PostgresConfig, setup};
use lukasa_store::{Clock, PostgresStore};
use std::str::FromStr;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio_postgres::{Config, NoTls};

/// A database that is removed when dropped, except after a panic.
pub struct TestDatabase {
    runtime: Runtime,
    server: Config,
    name: String,
    /// URL of this database with the server's administrator.
    pub admin_url: String,
    /// URL of this database with the application's login role.
    pub app_url: String,
}

impl TestDatabase {
    /// Creates and sets up a database. Without `LUKASA_TEST_POSTGRES`, reports that on standard error and returns
    /// `None`; with `CI` set, panics instead.
    pub fn new() -> Option<TestDatabase> {
        let Ok(url) = std::env::var("LUKASA_TEST_POSTGRES") else {
            assert!(std::env::var_os("CI").is_none(), "CI must test PostgreSQL: LUKASA_TEST_POSTGRES is not set");
            eprintln!("SKIPPED on PostgreSQL: LUKASA_TEST_POSTGRES is not set (./test starts a server)");
            return None;
        };
        Some(TestDatabase::on(&url))
    }

    /// Creates and sets up a database on the server with this administrator's URL.
    pub fn on(url: &str) -> TestDatabase {
        let server = Config::from_str(url).expect("a PostgreSQL URL");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let name = format!("lukasa_{}", uuid::Uuid::now_v7().simple());
        let host = match server.get_hosts().first() {
            Some(tokio_postgres::config::Host::Tcp(host)) => host.clone(),
            _ => "127.0.0.1".into(),
        };
        let port = server.get_ports().first().copied().unwrap_or(5432);
        let user = server.get_user().unwrap_or("postgres");
        let password = server.get_password().map(|p| format!(":{}", String::from_utf8_lossy(p))).unwrap_or_default();
        let database = TestDatabase {
            admin_url: format!("postgres://{user}{password}@{host}:{port}/{name}"),
            app_url: format!("postgres://{name}:it's \"quoted\\\"@{host}:{port}/{name}")
                .replace(' ', "%20")
                .replace('"', "%22")
                .replace('\\', "%5C"),
            runtime,
            server,
            name,
        };
        database.on_server(&format!("CREATE DATABASE {}", database.name));
        let (admin, app) = (database.admin_url.clone(), database.app_url.clone());
        database.runtime.block_on(setup(&admin, &app)).expect("a new database is set up");
        database
    }

    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Opens a store on this database as the application's role.
    pub fn open(&self, clock: Option<Arc<dyn Clock>>) -> Result<PostgresStore> {
        self.open_with(&PostgresConfig::new(&self.app_url), clock)
    }

    pub fn open_with(&self, config: &PostgresConfig, clock: Option<Arc<dyn Clock>>) -> Result<PostgresStore> {
        PostgresStore::open(config, self.runtime.handle().clone(), clock)
    }

    /// Runs the setup once more, which repairs rights and policies.
    pub fn setup_again(&self) -> Result<()> {
        self.runtime.block_on(setup(&self.admin_url, &self.app_url))
    }

    /// Runs SQL as the administrator in this database.
    pub fn as_admin(&self, sql: &str) {
        self.run(&self.admin_url, sql).expect("the administrator has all rights");
    }

    /// Like `as_admin`, and returns the first column of each row.
    pub fn as_admin_rows(&self, sql: &str) -> Vec<String> {
        self.run(&self.admin_url, sql).expect("the administrator has all rights")
    }

    /// Whether a server accepts connections.
    pub fn answers(url: &str) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async { tokio_postgres::connect(url, NoTls).await.is_ok() })
    }

    /// Runs SQL as the application's role. Returns the first column of each row as text, or the code of the error.
    pub fn as_app(&self, sql: &str) -> std::result::Result<Vec<String>, String> {
        self.run(&self.app_url, sql)
    }

    fn run(&self, url: &str, sql: &str) -> std::result::Result<Vec<String>, String> {
        self.runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(|e| e.to_string())?;
            let pump = tokio::spawn(connection);
            let answer = client.simple_query(sql).await;
            drop(client);
            let _ = pump.await;
            let rows = answer.map_err(|e| e.code().map_or_else(|| e.to_string(), |c| c.code().to_string()))?;
            let first = |message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("null").to_string()),
                _ => None,
            };
            Ok(rows.into_iter().filter_map(first).collect())
        })
    }

    fn on_server(&self, sql: &str) {
        self.runtime.block_on(async {
            let (client, connection) = self.server.connect(NoTls).await.expect("LUKASA_TEST_POSTGRES answers");
            let pump = tokio::spawn(connection);
            client.batch_execute(sql).await.expect("the administrator has all rights");
            drop(client);
            let _ = pump.await;
        });
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.on_server(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
            self.on_server(&format!("DROP ROLE {}", self.name));
        }
    }
}
