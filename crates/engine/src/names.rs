//! Resolves the names that callers write to objects, for every operation that takes a name.

mod origin;
mod parsed_name;
mod resolve;

pub use origin::Origin;
pub use parsed_name::NamePattern;
pub use resolve::ResolvedNode;

use crate::view::ViewGraph;
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::{Reference, Result};
use lukasa_store::ledger::{NamedFact, ViewSpec};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// The response field that lists which names were resolved to which objects.
pub const RESOLVED: &str = "resolved";
/// Maximum number of resolved names in one response. Requests with more names list the objects anyway.
const EXPLAINED: usize = 20;

/// The object that a name was resolved to which is neither a key, `Type:key` nor an id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ResolvedName {
    /// The name as the caller wrote it.
    pub given: String,
    /// `Type:key` of the object that it was resolved to.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Number of overloads of one function that the name stands for, if there are several; `ref` is one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overloads: Option<usize>,
}

/// The names that were resolved while one request is answered.
#[derive(Clone, Debug, Default)]
pub struct ResolvedNames(Arc<Mutex<Vec<ResolvedName>>>);

impl ResolvedNames {
    fn note(&self, taken: ResolvedName) {
        let mut all = self.0.lock();
        if all.len() < EXPLAINED && !all.contains(&taken) {
            all.push(taken);
        }
    }

    /// Returns all names and empties the list.
    pub fn take(&self) -> Vec<ResolvedName> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl ViewGraph {
    /// Resolves a name to an object: see `docs/graph.md`, "Names". Every operation on a graph uses this function.
    pub fn node(&self, name: &str) -> Result<Node> {
        Ok(self.resolve(name)?.node)
    }

    /// Like `node`, with the overloads that the name also stands for.
    pub fn resolve(&self, name: &str) -> Result<ResolvedNode> {
        let found = resolve::NameResolver::new(self, name).any()?;
        if !found.exact {
            let overloads = (!found.overloads.is_empty()).then(|| found.overloads.len() + 1);
            let reference = self.snapshot.name(found.node);
            self.origin.taken.note(ResolvedName { given: name.trim().to_owned(), reference, overloads });
        }
        Ok(found)
    }

    /// Resolves a name among the symbols of a file.
    pub fn node_in(&self, file: Node, name: &str) -> Result<Node> {
        Ok(resolve::NameResolver::new(self, name).within(file)?.node)
    }
}

impl Engine {
    /// Resolves a name for an operation that reads the ledger without a graph. An exact name is unchanged, also that of
    /// an object that has ended; any other name becomes the id of the object it stands for in the view.
    pub fn reference(&self, context: &mut Context<'_>, spec: &ViewSpec, name: &str) -> Result<Reference> {
        let ledger = self.ledger(&context.scope);
        let reference = Reference::from(name.trim());
        match ledger.named(&ledger.view(spec)?, &reference)? {
            NamedFact::Visible(_) | NamedFact::Ended => Ok(reference),
            NamedFact::Unknown => {
                let look = self.view_graph(context, spec)?;
                Ok(Reference::Id(look.snapshot.id(look.node(name)?)))
            }
        }
    }
}
