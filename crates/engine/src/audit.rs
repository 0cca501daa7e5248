//! Records every operation that ends: caller, operation and outcome, but no contents of requests or responses.
//!
//! Entries go through a queue to one thread that appends them in groups, so requests do not wait for one another.

mod key;
mod queue;

pub use key::AuditKey;
pub use queue::AuditState;

use crate::redacted_summary::RedactedSummary;
use crate::registry::{self, Effect, Operation};
use crate::{Context, Grants};
use lukasa_model::json::canonical;
use lukasa_model::{Error, ErrorKind, Result};
use lukasa_store::audit::AuditNote;
use lukasa_store::{Clock, Store};
use queue::{AuditQueue, AuditSlot};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;

/// Maximum bytes of a name that the client chose.
const NAME_BYTES: usize = 128;

/// Which operations are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditedOperations {
    /// Every operation.
    #[default]
    All,
    /// Operations that write or concern the whole store.
    Writes,
    Nothing,
}

/// Records operations. Dropping the last clone writes the entries that still wait.
#[derive(Clone)]
pub struct Audit {
    queue: Arc<AuditQueue>,
    clock: Arc<dyn Clock>,
    key: Arc<AuditKey>,
    keeps: AuditedOperations,
}

impl Audit {
    /// `server` names the chains that entries are appended to. It is the same at each start of a server, and unique to
    /// it.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        server: &str,
        key: Arc<AuditKey>,
        keeps: AuditedOperations,
    ) -> Audit {
        let queue = Arc::new(AuditQueue::new(store, server, Arc::clone(&key)));
        Audit { queue, clock, key, keeps }
    }

    /// The key that hashes names and seals chains.
    pub fn key(&self) -> &Arc<AuditKey> {
        &self.key
    }

    /// The state of the recording.
    pub fn state(&self) -> AuditState {
        self.queue.state()
    }

    /// Waits until every operation that has ended so far is recorded.
    pub fn flush(&self) -> Result<()> {
        self.queue.flush()
    }

    /// Reserves a place in the queue for an operation that begins. None if the operation is not recorded.
    pub(crate) fn begin(
        &self,
        context: &Context<'_>,
        operation: &Operation,
        request: &Value,
    ) -> Result<Option<AuditRecording>> {
        let reads = operation.meta.effect == Effect::Read;
        if self.keeps == AuditedOperations::Nothing || reads && self.keeps == AuditedOperations::Writes {
            return Ok(None);
        }
        let place = self.queue.place(!reads)?;
        let note = self.pending_note(context, operation.meta.name, request);
        let (clock, address) = (Arc::clone(&self.clock), context.address.clone());
        Ok(Some(AuditRecording { note: Some(note), place: Some(place), began: Instant::now(), clock, address }))
    }

    /// Records what was refused before it began, without waiting for the record.
    pub(crate) fn refused(&self, context: &Context<'_>, what: &'static str, error: &Error) -> Result<()> {
        let reads = registry::find(what).is_some_and(|operation| operation.meta.effect == Effect::Read);
        if self.keeps == AuditedOperations::Nothing
            || self.keeps == AuditedOperations::Writes && reads && !is_refusal(error)
        {
            return Ok(());
        }
        let address = context.address.clone().filter(|_| is_refusal(error));
        let note =
            AuditNote { status: error.code.to_string(), address, ..self.pending_note(context, what, &Value::Null) };
        self.queue.place(false)?.fill(note);
        Ok(())
    }

    /// Records a manual action that is not an operation, such as creating a key.
    pub fn note(&self, context: &Context<'_>, what: &'static str, ended: &Result<()>) -> Result<()> {
        if self.keeps == AuditedOperations::Nothing {
            return Ok(());
        }
        let place = self.queue.place(true)?;
        let status = ended.as_ref().map_or_else(|error| error.code.name(), |()| "ok").into();
        place.fill(AuditNote { status, ..self.pending_note(context, what, &Value::Null) });
        Ok(())
    }

    /// What is known before the operation ends. The status is that of an operation that breaks off.
    fn pending_note(&self, context: &Context<'_>, operation: &'static str, request: &Value) -> AuditNote {
        let scope = &context.scope;
        AuditNote {
            tenant: scope.tenant.clone(),
            project: scope.project.clone(),
            at: self.clock.now(),
            user: context.author.as_deref().map(|user| self.key.user(&scope.tenant, user)),
            agent: context.agent.as_deref().map(short),
            operation: operation.into(),
            scopes: match &context.grants {
                Grants::All => "*".into(),
                Grants::Of(scopes) => scopes.iter().map(|scope| short(scope)).collect::<Vec<_>>().join(" "),
            },
            request: self.key.request(operation, &canonical(request)),
            status: "internal_error".into(),
            counts: Default::default(),
            truncated: false,
            took_us: 0,
            request_id: context.request_id.as_deref().map(short),
            address: None,
        }
    }
}

/// Whether an error is a refusal, for which the network address is recorded.
fn is_refusal(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Unauthenticated)
}

/// Shortens a name that the client chose, and replaces control characters, which some stores cannot keep.
fn short(text: &str) -> String {
    let end = (0..=NAME_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].replace(char::is_control, " ")
}

/// An operation in progress. One that is dropped before it ends is recorded as broken off.
pub(crate) struct AuditRecording {
    note: Option<AuditNote>,
    place: Option<AuditSlot>,
    began: Instant,
    clock: Arc<dyn Clock>,
    /// The caller's network address.
    address: Option<String>,
}

impl AuditRecording {
    /// Records the outcome. An operation that writes waits until its entry is durable.
    pub fn end(mut self, ended: std::result::Result<&RedactedSummary, &Error>) {
        if let Some(note) = &mut self.note {
            match ended {
                Ok(outline) => {
                    note.status = "ok".into();
                    note.counts = outline.counts();
                    note.truncated = outline.truncated();
                }
                Err(error) => {
                    note.status = error.code.to_string();
                    note.address = self.address.take().filter(|_| is_refusal(error));
                }
            }
        }
        self.fill();
    }

    /// Discards the entry.
    pub fn forget(mut self) {
        self.note = None;
        self.place = None;
    }

    fn fill(&mut self) {
        let (Some(mut note), Some(place)) = (self.note.take(), self.place.take()) else { return };
        note.took_us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        note.at = self.clock.now();
        place.fill(note);
    }
}

impl Drop for AuditRecording {
    fn drop(&mut self) {
        self.fill();
    }
}
