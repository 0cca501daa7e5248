//! `CALL lukasa.search`: the ranking of `search` within a Cypher query.

use super::ops::search::check_query;
use super::{Recipe, SearchQuestion, find};
use crate::feature::Searcher;
use crate::view::ViewGraph;
use crate::{Context, Engine};
use lukasa_graph::cypher::SearchNodes;
use lukasa_model::Result;
use lukasa_search::pipeline::fuse::Fusion;
use lukasa_search::pipeline::intent::detect;
use lukasa_search::recipes::POOLS;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Builds the indexes of the view before the query runs, so that its time limit does not include them.
pub fn searcher(engine: &Engine, context: &mut Context<'_>, look: &ViewGraph) -> Result<Searcher> {
    let texts = engine.texts(context, look)?;
    let warnings: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let (engine, scope, look, collected) = (engine.clone(), context.scope.clone(), look.clone(), Arc::clone(&warnings));
    let search: SearchNodes = Arc::new(move |text, most| {
        check_query(text)?;
        let mut silent = |_: u64, _: Option<u64>| {};
        let meaning = engine.nearest(&mut Context::of(scope.clone(), &mut silent), &look, text, None)?;
        collected.lock().extend(meaning.warning);
        let ask = SearchQuestion {
            text,
            recipe: Recipe::Auto,
            lexical: true,
            vector: true,
            intent: detect(text),
            fusion: Fusion::WeightedSum,
            pool: POOLS.cypher.max(most),
            nearest: meaning.nearest,
            allowed: &|_| true,
        };
        let found = find(&look, &texts, &ask).candidates.into_iter();
        Ok(found.take(most).map(|candidate| (candidate.node, candidate.score())).collect())
    });
    Ok(Searcher { search, warnings })
}
