//! An engine over each kind of store, and a short way to ask it.

use lukasa_engine::{Context, Engine, Grants, Stop};
use lukasa_model::Error;
use lukasa_store::Clock;
use lukasa_testkit::{Fixture, fixtures};
use serde_json::Value;
use std::sync::Arc;

/// One engine with its store.
pub struct Desk {
    pub fixture: Fixture,
    pub engine: Engine,
}

impl Desk {
    pub fn all() -> Vec<Desk> {
        fixtures()
            .into_iter()
            .map(|fixture| {
                let clock = Arc::clone(&fixture.clock) as Arc<dyn Clock>;
                let engine = Engine::new(Arc::clone(&fixture.store), clock, std::env::temp_dir());
                Desk { fixture, engine }
            })
            .collect()
    }

    /// The same over keys of agents.
    #[allow(dead_code)]
    pub fn with_keys(&self, keys: &[(&str, &str)]) -> Engine {
        let clock = Arc::clone(&self.fixture.clock) as Arc<dyn Clock>;
        let engine = Engine::new(Arc::clone(&self.fixture.store), clock, std::env::temp_dir());
        engine.with_vault(lukasa_engine::memory::Vault::new(keys.iter().copied()).unwrap())
    }

    pub fn call(&self, name: &str, request: Value) -> Result<Value, Error> {
        self.call_in(None, name, request)
    }

    fn call_in(&self, session: Option<&str>, name: &str, request: Value) -> Result<Value, Error> {
        let mut context = Context {
            scope: self.fixture.ledger.scope().clone(),
            author: Some("ann".into()),
            agent: None,
            session: session.map(str::to_owned),
            connection: None,
            grants: Grants::All,
            request_id: None,
            stop: Stop::default(),
            input: None,
            output: None,
            progress: &mut |_, _| {},
        };
        self.engine.call(&mut context, name, request)
    }

    /// The code of the error.
    #[allow(dead_code)]
    pub fn fails(&self, name: &str, request: Value) -> String {
        match self.call(name, request) {
            Ok(answer) => panic!("{name} on {}: {answer}", self.fixture.name),
            Err(error) => error.code.to_string(),
        }
    }

    #[allow(dead_code)]
    pub fn ok_in(&self, session: &str, name: &str, request: Value) -> Value {
        self.call_in(Some(session), name, request).unwrap_or_else(|e| panic!("{name} on {}: {e:?}", self.fixture.name))
    }

    #[allow(dead_code)]
    pub fn ok(&self, name: &str, request: Value) -> Value {
        self.call(name, request).unwrap_or_else(|e| panic!("{name} on {}: {e:?}", self.fixture.name))
    }
}
