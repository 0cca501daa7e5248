//! An engine over each kind of store, with short functions to call operations.

use lukasa_engine::{Context, Engine, Grants};
use lukasa_model::Error;
use lukasa_store::Clock;
use lukasa_testkit::{Fixture, fixtures};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// One engine with its store.
pub struct TestEngine {
    pub fixture: Fixture,
    pub engine: Engine,
}

impl TestEngine {
    pub fn all() -> Vec<TestEngine> {
        fixtures()
            .into_iter()
            .map(|fixture| {
                let clock = Arc::clone(&fixture.clock) as Arc<dyn Clock>;
                let engine = Engine::new(Arc::clone(&fixture.store), clock, std::env::temp_dir());
                TestEngine { fixture, engine }
            })
            .collect()
    }

    /// The same over keys of agents.
    #[allow(dead_code)]
    pub fn with_keys(&self, keys: &[(&str, &str)]) -> Engine {
        let clock = Arc::clone(&self.fixture.clock) as Arc<dyn Clock>;
        let engine = Engine::new(Arc::clone(&self.fixture.store), clock, std::env::temp_dir());
        engine.with_vault(lukasa_engine::features::memory::Vault::new(keys.iter().copied()).unwrap())
    }

    pub fn call(&self, name: &str, request: Value) -> Result<Value, Error> {
        self.call_in(None, name, request)
    }

    fn call_in(&self, session: Option<&str>, name: &str, request: Value) -> Result<Value, Error> {
        let mut progress = |_, _| {};
        let mut context = Context { session: session.map(str::to_owned), ..self.context(&mut progress) };
        self.engine.call(&mut context, name, request)
    }

    fn context<'a>(&self, progress: &'a mut dyn FnMut(u64, Option<u64>)) -> Context<'a> {
        Context { author: Some("ann".into()), ..Context::of(self.fixture.ledger.scope().clone(), progress) }
    }

    /// As a caller who works in a working tree, with these grants.
    pub fn call_from(&self, tree: &Path, grants: Grants, name: &str, request: Value) -> Result<Value, Error> {
        let mut progress = |_, _| {};
        let tree = Some(tree.to_path_buf());
        let mut context = Context { tree, grants, ..self.context(&mut progress) };
        self.engine.call(&mut context, name, request)
    }

    pub fn ok_from(&self, tree: &Path, name: &str, request: Value) -> Value {
        let answer = self.call_from(tree, Grants::All, name, request);
        answer.unwrap_or_else(|e| panic!("{name} on {}: {e:?}", self.fixture.name))
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
