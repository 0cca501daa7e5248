//! Metrics and log events of operations that ended, and of the ledger.

use super::{log, metrics};
use crate::Context;
use crate::redacted_summary::RedactedSummary;
use lukasa_model::Error;
use lukasa_store::ledger::{CommitStats, LogReplacement};
use serde_json::{Value, json};
use std::time::Duration;

/// An operation that ended.
pub struct EndedOperation<'a> {
    pub request: &'a RedactedSummary,
    pub answer: Result<&'a RedactedSummary, &'a Error>,
    pub took: Duration,
}

impl EndedOperation<'_> {
    /// The duration in milliseconds.
    pub fn millis(&self) -> f64 {
        self.took.as_secs_f64() * 1e3
    }

    /// The duration for log events, in milliseconds with three decimals.
    pub fn elapsed_ms(&self) -> Value {
        json!((self.millis() * 1e3).round() / 1e3)
    }

    /// Records the latency of a traversal of so many hops, if it succeeded.
    pub fn walked(&self, context: &Context<'_>, hops: Option<f64>) {
        if self.answer.is_ok() {
            let hops = hops.map_or_else(|| "unknown".into(), |hops| hops.to_string());
            metrics().traversal_latency.record_of(&[&hops, &context.scope.tenant], self.took.as_secs_f64());
        }
    }

    /// Records the latency of a search, if it succeeded.
    pub fn search_took(&self) {
        if self.answer.is_ok() {
            metrics().search_latency.record(self.took.as_secs_f64());
        }
    }
}

/// Reports a log that was replaced by another. Called by the ledger.
pub fn log_replaced(replaced: &LogReplacement) {
    metrics().log_replaced.inc_of(&[&replaced.scope.tenant]);
    log::event(
        log::LogLevel::Error,
        "store.log_replaced",
        &[
            ("scope", json!(format!("{}/{}", replaced.scope.tenant, replaced.scope.project))),
            ("common_tx", json!(replaced.common.tx)),
            ("lost_tx", json!(replaced.lost.tx)),
            ("lost_hash", json!(replaced.lost.hash)),
            ("head_tx", json!(replaced.found.tx)),
            ("head_hash", json!(replaced.found.hash)),
        ],
    );
}

/// Counts the facts that a commit writes. Called by the ledger.
pub fn committed(stated: &CommitStats) {
    use lukasa_model::TransactionKind as Kind;
    let all = metrics();
    let source = match stated.kind {
        Kind::FullRebuild | Kind::IncrementalRebuild | Kind::FileChange => "code",
        Kind::Import => "import",
        Kind::AgentEdit => "agent",
        _ => "api",
    };
    for (name, count) in &stated.objects {
        all.extracted.add_of(&[name, source, &stated.tenant], *count);
    }
    for (name, count) in &stated.relationships {
        all.relationships_created.add_of(&[name, &stated.tenant], *count);
    }
    for change in &stated.changes {
        all.change_paths.record(change.paths as f64);
        all.change_bytes.record(change.bytes as f64);
        if change.elided {
            all.change_truncated.inc();
        }
    }
}
