//! What is told of an operation that ended: figures, and the events that watchers of graphs know by name.

use super::{log, metrics};
use crate::Context;
use crate::outline::Outline;
use lukasa_model::Error;
use lukasa_store::ledger::{Replaced, Stated};
use serde_json::{Value, json};
use std::time::Duration;

/// An operation that ended.
pub struct Ended<'a> {
    pub operation: &'static str,
    pub request: &'a Outline,
    pub answer: Result<&'a Outline, &'a Error>,
    pub took: Duration,
}

/// Whether requests have to be looked at for events.
pub fn are_told(operation: &str) -> bool {
    matches!(
        operation,
        "search"
            | "context_pack"
            | "traverse"
            | "expand"
            | "graph_traverse"
            | "neighbors"
            | "impact"
            | "release_create"
            | "merge"
    )
}

pub fn ended(context: &Context<'_>, ended: &Ended<'_>) {
    let millis = ended.took.as_secs_f64() * 1e3;
    match (ended.operation, ended.answer) {
        ("search", answer) => search(context, ended, answer, millis),
        ("context_pack", Ok(_)) => metrics().search_latency.record(ended.took.as_secs_f64()),
        ("traverse", Ok(answer)) => {
            walked(context, ended, answer.number("max_depth_reached"));
            page(answer, millis);
        }
        ("expand", Ok(answer)) => expand(context, ended, answer, millis),
        ("graph_traverse", Ok(answer)) => {
            walked(context, ended, answer.number("traversal_depth_reached"));
            log::event(
                log::Level::Info,
                "graph_query",
                &[
                    ("entry_entities", json!(ended.request.count("entry_entity_ids"))),
                    ("hops", json!(answer.count("traversal_depth_reached"))),
                    ("nodes_explored", json!(answer.count("nodes_explored"))),
                    ("nodes_returned", json!(answer.count("entities"))),
                    ("relationships_returned", json!(answer.count("relationships"))),
                    ("connected_documents", json!(answer.count("connected_document_ids"))),
                    ("truncated", json!(answer.truncated())),
                    ("latency_ms", rounded(millis)),
                ],
            );
        }
        ("neighbors", Ok(_)) => walked(context, ended, Some(1.0)),
        ("impact", Ok(_)) => walked(context, ended, ended.request.number("max_depth")),
        ("release_create", Ok(answer)) => {
            let size = ["release.objects", "release.relationships"].iter().filter_map(|path| answer.number(path)).sum();
            metrics().release_size.record(size);
            metrics().release_ms.record(millis);
        }
        ("merge", Ok(answer)) => {
            let conflicts = answer.count("counts.conflict").unwrap_or(0);
            metrics().merge_conflicts.add_of(&["dry_run", &context.scope.tenant], conflicts);
        }
        ("merge", Err(error)) => conflicts(&context.scope.tenant, error),
        _ => {}
    }
}

/// Conflicts are told with the paths that differ; what stands first in a path is the field.
fn conflicts(tenant: &str, error: &Error) {
    let all = error.details.get("conflicts").and_then(Value::as_array);
    for conflict in all.into_iter().flatten() {
        let paths = conflict.get("paths").and_then(Value::as_array);
        let named = paths.into_iter().flatten().filter_map(|path| path.as_str().or_else(|| path.get("path")?.as_str()));
        let fields: Vec<&str> = named.filter_map(|path| path.split('/').find(|part| !part.is_empty())).collect();
        for field in if fields.is_empty() { vec!["other"] } else { fields } {
            metrics().merge_conflicts.inc_of(&[field, tenant]);
        }
    }
}

fn walked(context: &Context<'_>, ended: &Ended<'_>, hops: Option<f64>) {
    let hops = hops.map_or_else(|| "unknown".into(), |hops| hops.to_string());
    metrics().traversal_latency.record_of(&[&hops, &context.scope.tenant], ended.took.as_secs_f64());
}

fn page(answer: &Outline, millis: f64) {
    let meta = |name: &str| json!(answer.count(&format!("meta.{name}")));
    log::event(
        log::Level::Info,
        "graph.traverse.page",
        &[
            ("roots_count", meta("roots_count")),
            ("direction", json!(answer.text("meta.direction"))),
            ("page_direction", json!(answer.text("meta.page_direction"))),
            ("requested_limit", meta("requested_limit")),
            ("effective_limit", meta("effective_limit")),
            ("total_nodes", json!(answer.count("total_nodes"))),
            ("page_item_count", meta("page_item_count")),
            ("has_next_page", json!(answer.flag("has_next_page"))),
            ("has_previous_page", json!(answer.flag("has_previous_page"))),
            ("max_depth_requested", meta("max_depth_requested")),
            ("max_depth_reached", json!(answer.count("max_depth_reached"))),
            ("truncated", json!(answer.truncated())),
            ("approx_position_start", meta("approx_position_start")),
            ("approx_position_end", meta("approx_position_end")),
            ("next_cursor_set", json!(answer.at("next_cursor") != &Outline::Absent)),
            ("prev_cursor_set", json!(answer.at("previous_cursor") != &Outline::Absent)),
            ("elapsed_ms", rounded(millis)),
        ],
    );
}

fn expand(context: &Context<'_>, ended: &Ended<'_>, answer: &Outline, millis: f64) {
    let (nodes, edges) = (answer.number("nodes").unwrap_or(0.0), answer.number("edges").unwrap_or(0.0));
    let depth = answer.number("meta.depth_reached");
    metrics().expand_ms.record(millis);
    metrics().expand_depth.record(depth.unwrap_or(0.0));
    metrics().expand_nodes.record(nodes);
    metrics().expand_edges.record(edges);
    if answer.truncated() {
        metrics().expand_truncated.inc();
    }
    walked(context, ended, depth);
    let asked = |name: &str| json!(ended.request.count(name));
    log::event(
        log::Level::Info,
        "graph.expand",
        &[
            ("roots_count", json!(answer.count("meta.roots_count"))),
            (
                "requested",
                json!({
                    "max_depth": asked("max_depth"), "max_nodes": asked("limit_nodes"), "max_edges": asked("limit_edges"),
                    "direction": ended.request.text("direction"),
                }),
            ),
            ("node_count", json!(nodes)),
            ("edge_count", json!(edges)),
            ("max_depth_reached", json!(depth)),
            ("truncated", json!(answer.truncated())),
            (
                "filters",
                json!({
                    "relationship_types": ended.request.texts("edge_types"),
                    "object_types": ended.request.texts("node_types"),
                    "projection_include": ended.request.texts("include.object"),
                }),
            ),
            ("edge_scan_count", json!(answer.count("meta.edge_scan_count"))),
            ("objects_filtered", json!(answer.count("meta.objects_filtered"))),
            ("elapsed_ms", rounded(millis)),
        ],
    );
}

fn search(context: &Context<'_>, ended: &Ended<'_>, answer: Result<&Outline, &Error>, millis: f64) {
    if answer.is_ok() {
        metrics().search_latency.record(ended.took.as_secs_f64());
    }
    if !log::is_on(log::Level::Info) {
        return;
    }
    let nothing = Outline::default();
    let told = answer.unwrap_or(&nothing);
    let meta = |name: &str| json!(told.count(&format!("meta.{name}")));
    let (warnings, rerank) =
        (json!(told.texts("meta.warnings")), json!(told.flag("meta.rerank.applied").unwrap_or(false)));
    let asked = |name: &str| ended.request.flag(name).unwrap_or(false);
    let scopes = match &context.grants {
        crate::Grants::All => json!("*"),
        crate::Grants::Of(scopes) => json!(scopes),
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
            ("elapsed_ms", rounded(millis)),
        ],
    );
    log::event(
        log::Level::Info,
        "graph.search",
        &[
            ("intent", json!(told.text("meta.intent"))),
            ("items_returned", json!(told.count("items"))),
            ("elapsed_ms", rounded(millis)),
            ("channels", json!(told.texts("meta.channels"))),
            ("rerank_applied", rerank),
            ("neighbor_count", meta("neighbor_expanded")),
            ("token_estimate", meta("token_estimate")),
            ("warnings", warnings),
            ("truncation_notice", json!(told.flag("meta.truncation_notice"))),
            ("coverage_pct", json!(told.number("meta.embedded_share").map(|share| share * 100.0))),
            ("error_code", json!(answer.err().map(|error| error.code))),
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
            ("elapsed_ms", rounded(millis)),
        ],
    );
}

fn rounded(millis: f64) -> Value {
    json!((millis * 1e3).round() / 1e3)
}

/// Reports a log that was replaced by another. To be called by the ledger.
pub fn log_replaced(replaced: &Replaced) {
    metrics().log_replaced.inc_of(&[&replaced.scope.tenant]);
    log::event(
        log::Level::Error,
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

/// Counts what commits state. To be told by the ledger.
pub fn committed(stated: &Stated) {
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
