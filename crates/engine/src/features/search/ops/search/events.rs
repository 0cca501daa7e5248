//! Metrics and log events of a search.

use crate::outline::Outline;
use crate::telemetry::events::Ended;
use crate::telemetry::log;
use crate::{Context, Grants};
use serde_json::json;

pub fn ended(context: &Context<'_>, ended: &Ended<'_>) {
    ended.search_took();
    if !log::is_on(log::Level::Info) {
        return;
    }
    let nothing = Outline::default();
    let told = ended.answer.unwrap_or(&nothing);
    let meta = |name: &str| json!(told.count(&format!("meta.{name}")));
    let (warnings, rerank) =
        (json!(told.texts("meta.warnings")), json!(told.flag("meta.rerank.applied").unwrap_or(false)));
    let asked = |name: &str| ended.request.flag(name).unwrap_or(false);
    let scopes = match &context.grants {
        Grants::All => json!("*"),
        Grants::Of(scopes) => json!(scopes),
    };
    let granted = asked("debug") && told.at("debug") != &Outline::Absent;
    log::event(
        log::Level::Info,
        "graph.search.access",
        &[
            ("scopes", scopes),
            ("item_count", json!(told.count("items"))),
            ("warnings", warnings.clone()),
            ("rerank_applied", rerank.clone()),
            ("debug_requested", json!(asked("debug"))),
            ("debug_granted", json!(granted)),
            ("partial_results", json!(told.truncated())),
            ("elapsed_ms", ended.elapsed_ms()),
        ],
    );
    log::event(
        log::Level::Info,
        "graph.search",
        &[
            ("intent", json!(told.text("meta.intent"))),
            ("items_returned", json!(told.count("items"))),
            ("elapsed_ms", ended.elapsed_ms()),
            ("channels", json!(told.texts("meta.channels"))),
            ("rerank_applied", rerank),
            ("neighbor_count", meta("neighbor_expanded")),
            ("token_estimate", meta("token_estimate")),
            ("warnings", warnings),
            ("truncation_notice", json!(told.flag("meta.truncation_notice"))),
            ("coverage_pct", json!(told.number("meta.embedded_share").map(|share| share * 100.0))),
            ("error_code", json!(ended.answer.err().map(|error| error.code))),
            ("normalization_version", json!(told.text("meta.normalization_version"))),
            ("fusion_strategy", json!(told.text("meta.fusion"))),
        ],
    );
    let backwards = told.at("previous_cursor") != &Outline::Absent && told.at("next_cursor") == &Outline::Absent;
    log::event(
        log::Level::Info,
        "graph.search.pagination",
        &[
            ("direction", json!(if backwards { "backward" } else { "forward" })),
            ("requested_limit", json!(ended.request.count("limit"))),
            ("limit", json!(told.count("items"))),
            ("total_estimate", json!(told.count("total"))),
            ("has_next", json!(told.at("next_cursor") != &Outline::Absent)),
            ("has_prev", json!(told.at("previous_cursor") != &Outline::Absent)),
            ("truncated", json!(told.truncated())),
            ("elapsed_ms", ended.elapsed_ms()),
        ],
    );
}
