//! What the product does: every operation, defined once, over a ledger.

pub mod ops;
pub mod registry;
pub mod shape;

pub use registry::{Effect, Meta, Operation, operations};

use lukasa_model::transaction::Header;
use lukasa_model::{Error, Result, Scope};
use lukasa_store::{Clock, Ledger, Store};
use serde_json::Value;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// Answers requests over one store.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Where operations may make temporary stores.
    pub temp_dir: PathBuf,
}

/// Who asks, about what, and the streams of operations that carry bulk data.
pub struct Context<'a> {
    pub scope: Scope,
    pub author: Option<String>,
    pub agent: Option<String>,
    pub session: Option<String>,
    pub input: Option<&'a mut dyn BufRead>,
    pub output: Option<&'a mut dyn Write>,
    /// Told how far long work has come: done, of how many if that is known.
    pub progress: &'a mut dyn FnMut(u64, Option<u64>),
}

impl Context<'_> {
    /// A header with who is asking.
    pub fn header(&self, reason: Option<String>) -> Header {
        let (author, agent, session) = (self.author.clone(), self.agent.clone(), self.session.clone());
        Header { author, agent, session, reason, ..Header::default() }
    }

    fn output(&mut self) -> Result<&mut dyn Write> {
        match &mut self.output {
            Some(output) => Ok(*output),
            None => Err(Error::invalid("no_output", "this operation writes a stream and was given none")),
        }
    }
}

impl Engine {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, temp_dir: PathBuf) -> Engine {
        Engine { store, clock, temp_dir }
    }

    /// Runs an operation by name. The one way in, for every surface.
    pub fn call(&self, context: &mut Context<'_>, name: &str, request: Value) -> Result<Value> {
        let operation = registry::find(name).ok_or_else(|| {
            Error::not_found("unknown_operation", format!("no operation `{name}`")).hint("`lukasa --help` lists them")
        })?;
        operation.run(self, context, request).map_err(|e| self.explain(context, e))
    }

    /// Adds what only the whole store knows.
    fn explain(&self, context: &Context<'_>, error: Error) -> Error {
        match self.store.projects(&context.scope.tenant) {
            Ok(projects) if error.code == "unknown_project" && !projects.is_empty() => {
                error.hint(format!("projects here: {}; name one with --project", projects.join(", ")))
            }
            _ => error,
        }
    }

    pub fn ledger(&self, scope: &Scope) -> Ledger {
        Ledger::new(Arc::clone(&self.store), Arc::clone(&self.clock), scope.clone())
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}
