//! One way from the names that callers write to the objects they stand for, for every operation that takes one.

mod form;
mod origin;
mod resolve;

pub use origin::Origin;
pub use resolve::Resolved;

use crate::view::Look;
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::{Reference, Result};
use lukasa_store::ledger::{Named, ViewSpec};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// The field of answers that says which names were taken for what.
pub const RESOLVED: &str = "resolved";
/// Names that one answer explains; more are of a list that shows what was taken itself.
const EXPLAINED: usize = 20;

/// What a name was taken for that is neither a key, `Type:key` nor an id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Taken {
    /// The name as the caller wrote it.
    pub given: String,
    /// `Type:key` of the object it was taken for.
    #[serde(rename = "ref")]
    pub reference: String,
    /// How many overloads of one function it stands for, where there are several; this is one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overloads: Option<usize>,
}

/// Names taken for something while one request is answered.
#[derive(Clone, Debug, Default)]
pub struct TakenNames(Arc<Mutex<Vec<Taken>>>);

impl TakenNames {
    fn note(&self, taken: Taken) {
        let mut all = self.0.lock();
        if all.len() < EXPLAINED && !all.contains(&taken) {
            all.push(taken);
        }
    }

    /// All of them, once.
    pub fn take(&self) -> Vec<Taken> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Look {
    /// The object that a name stands for: see `docs/graph.md`, "Names". Every operation on a graph comes here.
    pub fn node(&self, name: &str) -> Result<Node> {
        Ok(self.resolve(name)?.node)
    }

    /// The same, with the overloads that the name also stands for.
    pub fn resolve(&self, name: &str) -> Result<Resolved> {
        let found = resolve::Resolver::new(self, name).any()?;
        if !found.exact {
            let overloads = (!found.overloads.is_empty()).then(|| found.overloads.len() + 1);
            let reference = self.snapshot.name(found.node);
            self.origin.taken.note(Taken { given: name.trim().to_owned(), reference, overloads });
        }
        Ok(found)
    }

    /// The symbol that a name stands for among those of a file.
    pub fn node_in(&self, file: Node, name: &str) -> Result<Node> {
        Ok(resolve::Resolver::new(self, name).within(file)?.node)
    }
}

impl Engine {
    /// A name as the ledger knows it, for operations that need no graph: unchanged where it is exact, else the id of the
    /// object it stands for in a view. What has ended keeps its name.
    pub fn reference(&self, context: &mut Context<'_>, spec: &ViewSpec, name: &str) -> Result<Reference> {
        let ledger = self.ledger(&context.scope);
        let reference = Reference::from(name.trim());
        match ledger.named(&ledger.view(spec)?, &reference)? {
            Named::Visible(_) | Named::Ended => Ok(reference),
            Named::Unknown => {
                let look = self.look(context, spec)?;
                Ok(Reference::Id(look.snapshot.id(look.node(name)?)))
            }
        }
    }
}
