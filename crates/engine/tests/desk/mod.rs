//! An engine over each kind of store, and a short way to ask it.

use lukasa_engine::{Context, Engine};
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

    pub fn call(&self, name: &str, request: Value) -> Result<Value, Error> {
        let mut context = Context {
            scope: self.fixture.ledger.scope().clone(),
            author: Some("ann".into()),
            agent: None,
            session: None,
            input: None,
            output: None,
            progress: &mut |_, _| {},
        };
        self.engine.call(&mut context, name, request)
    }

    #[allow(dead_code)]
    pub fn ok(&self, name: &str, request: Value) -> Value {
        self.call(name, request).unwrap_or_else(|e| panic!("{name} on {}: {e:?}", self.fixture.name))
    }
}
