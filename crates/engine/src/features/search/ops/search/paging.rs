//! Cursors of a search: what they record and when they are refused.

use super::{Request, RerankOut};
use crate::cursor::Cursor;
use crate::features::search::RankedCandidates;
use crate::view::ViewGraph;
use crate::{Context, Engine};
use lukasa_model::json::{self, Hash};
use lukasa_model::{Error, ErrorCode, Result};
use lukasa_search::pipeline::fuse::NORMALIZATION;

/// Hash of the request without its cursor.
pub(super) fn request_hash(request: &Request) -> Result<Hash> {
    let plain = Request { cursor: None, ..request.clone() };
    let value =
        serde_json::to_value(plain).map_err(|e| Error::internal(format!("a request cannot be written: {e}")))?;
    Ok(Hash::of(format!("search {NORMALIZATION} {}", json::canonical(&value)).as_bytes()))
}

/// Hash of what determines the order apart from the request; a cursor is refused when it changes.
pub(super) fn order_hash(found: &RankedCandidates, model: Option<&str>, rerank: Option<&RerankOut>) -> Hash {
    let (recipe, fusion, model) = (found.recipe.name(), &found.fusion, model.unwrap_or_default());
    let judged = rerank.filter(|rerank| rerank.applied).map_or("", |rerank| &rerank.model);
    Hash::of([NORMALIZATION, recipe, fusion, model, judged].join("\n").as_bytes())
}

/// Bytes of a cursor's hash that identify the request; the same number after them identifies the order.
const HALF: usize = 4;

pub(super) fn joined(request: &Hash, order: &Hash) -> Hash {
    let mut both = *request;
    both.0[HALF..2 * HALF].copy_from_slice(&order.0[..HALF]);
    both
}

pub(super) struct Paging {
    pub look: ViewGraph,
    pub place: usize,
    pub backwards: bool,
    pub spared: u8,
    pub order: Option<[u8; HALF]>,
}

impl Paging {
    pub(super) fn open(engine: &Engine, context: &mut Context<'_>, request: &Request, hash: &Hash) -> Result<Paging> {
        let Some(text) = &request.cursor else {
            return Ok(Paging {
                look: engine.view_graph(context, &request.view)?,
                place: 0,
                backwards: false,
                spared: 0,
                order: None,
            });
        };
        let ledger = engine.ledger(&context.scope);
        let cursor = Cursor::open(text, &engine.graphs().cursor_key(&ledger)?)?;
        let mut order = [0; HALF];
        order.copy_from_slice(&cursor.request[HALF..]);
        // The order is not known before the search ran, so take it from the cursor and check only the request here.
        let mut known = *hash;
        known.0[HALF..2 * HALF].copy_from_slice(&order);
        cursor.check(&known)?;
        let look = engine.view_graph_at(context, &request.view, &cursor)?;
        let Cursor { place, backwards, spared, .. } = cursor;
        Ok(Paging { look, place: place as usize, backwards, spared, order: Some(order) })
    }

    /// Refuses the cursor if the results are now ranked in another order.
    pub(super) fn check_order(&self, order: &Hash) -> Result<()> {
        if self.order.is_none_or(|known| known == order.0[..HALF]) {
            return Ok(());
        }
        Err(Error::invalid(ErrorCode::StaleCursor, "results are ranked otherwise than when this cursor was given")
            .hint("ask again without a cursor, and go on with the ones in the answer"))
    }
}
