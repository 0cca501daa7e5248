//! Metrics and log events of a search.

use crate::redacted_summary::RedactedSummary;
use crate::telemetry::events::EndedOperation;
use crate::telemetry::log;
use crate::{Context, Grants};
use serde_json::json;

pub fn ended(context: &Context<'_>, ended: &EndedOperation<'_>) {
    ended.search_took();
    if !log::is_on(log::LogLevel::Info) {
        return;
    }
    let nothing = RedactedSummary::default();
    let answer = ended.answer.unwrap_or(&nothing);
    let meta = |name: &str| json!(answer.count(&format!("meta.{name}")));
    let (warnings, rerank) =
        (json!(answer.texts("meta.warnings")), json!(answer.flag("meta.rerank.applied").unwrap_or(false)));
    let asked = |name: &str| ended.request.flag(name).unwrap_or(false);
    let scopes = match &context.grants {
        Grants::All => json!("*"),
        Grants::Of(scopes) => json!(scopes),
    };
    let granted = asked("debug") && answer.at("debug") != &RedactedSummary::Absent;
    log::event(
        log::LogLevel::Info,
        "graph.search.access",
        &[
            ("scopes", scopes),
            ("item_count", json!(answer.count("items"))),
            ("warnings", warnings.clone()),
            ("rerank_applied", rerank.clone()),
            ("debug_requested", json!(asked("debug"))),
            ("debug_granted", json!(granted)),
            ("partial_results", json!(answer.truncated())),
            ("elapsed_ms", ended.elapsed_ms()),
        ],
    );
    log::event(
        log::LogLevel::Info,
        "graph.search",
        &[
            ("intent", json!(answer.text("meta.intent"))),
            ("items_returned", json!(answer.count("items"))),
            ("elapsed_ms", ended.elapsed_ms()),
            ("channels", json!(answer.texts("meta.channels"))),
            ("rerank_applied", rerank),
            ("neighbor_count", meta("neighbor_expanded")),
            ("token_estimate", meta("token_estimate")),
            ("warnings", warnings),
            ("truncation_notice", json!(answer.flag("meta.truncation_notice"))),
            ("coverage_pct", json!(answer.number("meta.embedded_share").map(|share| share * 100.0))),
            ("error_code", json!(ended.answer.err().map(|error| error.code))),
            ("normalization_version", json!(answer.text("meta.normalization_version"))),
            ("fusion_strategy", json!(answer.text("meta.fusion"))),
        ],
    );
    let backwards = answer.at("previous_cursor") != &RedactedSummary::Absent
        && answer.at("next_cursor") == &RedactedSummary::Absent;
    log::event(
        log::LogLevel::Info,
        "graph.search.pagination",
        &[
            ("direction", json!(if backwards { "backward" } else { "forward" })),
            ("requested_limit", json!(ended.request.count("limit"))),
            ("limit", json!(answer.count("items"))),
            ("total_estimate", json!(answer.count("total"))),
            ("has_next", json!(answer.at("next_cursor") != &RedactedSummary::Absent)),
            ("has_prev", json!(answer.at("previous_cursor") != &RedactedSummary::Absent)),
            ("truncated", json!(answer.truncated())),
            ("elapsed_ms", ended.elapsed_ms()),
        ],
    );
}
