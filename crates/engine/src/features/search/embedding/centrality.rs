//! The centrality of objects: how many relationships each has now. The most central ones are embedded first.

use super::EmbeddingQueue;
use super::objects::view_now;
use crate::Engine;
use crate::view::Graphs;
use lukasa_model::{BranchNo, FactNo, Result, Scope, Time};
use lukasa_store::ledger::ViewSpec;
use lukasa_store::{Ledger, VersionFields};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Up to this many objects are counted in the store. Loading the graph would take longer for a few; counting takes longer for
/// many.
const FEW: usize = 32;

impl Engine {
    /// Returns the queue of objects without a vector, ordered by requirement, then by centrality.
    pub fn central_queue(&self, scope: &Scope) -> EmbeddingQueue {
        let (ledger, graphs) = (self.ledger(scope), Arc::clone(self.graphs()));
        self.embedding_queue(scope).by_centrality(move |branch, things, now| match things.len() {
            0..=FEW => stored(&ledger, branch, things, now),
            _ => in_graph(&ledger, &graphs, branch, things),
        })
    }
}

/// Counts in the graph of the branch, which is fast once it is loaded.
fn in_graph(ledger: &Ledger, graphs: &Graphs, branch: BranchNo, things: &[FactNo]) -> Result<Vec<f64>> {
    let branch = Some(ledger.registry()?.branch_name(branch).to_owned());
    let spec = ViewSpec { branch, ..ViewSpec::default() };
    let (_, snapshot) = graphs.projections.view_graph(ledger, &spec, &mut |_, _| {})?;
    let degree = |thing: &FactNo| snapshot.find(*thing).map_or(0, |node| snapshot.degree(node)) as f64;
    Ok(things.iter().map(degree).collect())
}

/// Counts in the store. Relationships whose other end was deleted are included.
fn stored(ledger: &Ledger, branch: BranchNo, things: &[FactNo], now: Time) -> Result<Vec<f64>> {
    let view = view_now(ledger, branch, now)?;
    let numbers: Vec<FactNo> = ledger.relationships_at(things)?.iter().map(|thing| thing.no).collect();
    let mut degrees: FxHashMap<FactNo, usize> = FxHashMap::default();
    let there =
        ledger.states(&view, &numbers, VersionFields::Header)?.into_iter().filter(|state| state.statement.is_some());
    for ends in there.filter_map(|state| state.thing.ends) {
        *degrees.entry(ends.src).or_default() += 1;
        *degrees.entry(ends.dst).or_default() += 1;
    }
    Ok(things.iter().map(|thing| degrees.get(thing).map_or(0, |degree| *degree) as f64).collect())
}
