//! Finding things in a view: indexes that follow the graph, and where sources are read from.

mod find;
mod sources;
mod texts;

pub use find::{Answered, Ask, Recipe, find, is_code};
pub use sources::{Sources, lines};
pub use texts::Texts;

use crate::graph::Look;
use crate::{Context, Engine};
use lukasa_model::{Result, Scope};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What searching needs beside the graph.
#[derive(Default)]
pub struct Searching {
    pub sources: Sources,
    /// Held while the indexes of a project are made, so that they are made once.
    making: Mutex<FxHashMap<Scope, Arc<Mutex<()>>>>,
}

impl Engine {
    /// The text indexes of a view, as they are after the last commit it shows.
    pub fn texts(&self, context: &mut Context<'_>, look: &Look) -> Result<Arc<Texts>> {
        let searching = self.searching();
        let making = Arc::clone(searching.making.lock().entry(context.scope.clone()).or_default());
        let _one = making.lock();
        let snapshot = &look.snapshot;
        let kept = snapshot.derived::<Texts>();
        if let Some(texts) = kept.as_ref().filter(|texts| texts.are_of(snapshot)) {
            return Ok(Arc::clone(texts));
        }
        let followed = match &kept {
            Some(texts) => texts.follow(look, &searching.sources)?,
            None => None,
        };
        let texts = match followed {
            Some(texts) => texts,
            None => Texts::build(look, &searching.sources, context.progress)?,
        };
        let texts = Arc::new(texts);
        snapshot.keep(Arc::clone(&texts));
        Ok(texts)
    }
}
