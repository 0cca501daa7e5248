//! Every metric of a process, with its name and help text. docs/telemetry.md lists them; a test compares both.

use super::measure::{Metric, MetricKind};

const SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];
const MILLIS: &[f64] = &[1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 5_000.0];
const COUNTS: &[f64] = &[0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 250.0, 1_000.0, 10_000.0];
const DEPTHS: &[f64] = &[0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0];
const BYTES: &[f64] = &[64.0, 256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0];
const SHARES: &[f64] = &[0.1, 0.25, 0.5, 0.75, 0.9, 1.0];
const DAYS: &[f64] = &[1.0, 7.0, 30.0, 90.0, 365.0];
const WAITS: &[f64] = &[1.0, 5.0, 30.0, 60.0, 300.0, 1_800.0, 3_600.0, 86_400.0];
const SIZES: &[f64] = &[10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0];

macro_rules! metrics {
    ($($field:ident: $kind:ident $name:literal [$($label:literal),*] $bounds:expr, $help:literal;)*) => {
        /// The metrics of one process.
        pub struct Metrics { $(pub $field: Metric,)* }

        static ALL: Metrics = Metrics { $($field: Metric::new($name, MetricKind::$kind, &[$($label),*], $bounds, $help),)* };

        impl Metrics {
            /// All metrics, in the order in which they are written.
            pub fn all(&self) -> Vec<&Metric> {
                vec![$(&self.$field,)*]
            }
        }
    };
}

metrics! {
    // Operations.
    queries: Counter "graph_queries_total" ["operation", "status"] &[], "Operations by how they ended.";
    latency: Histogram "graph_operation_latency_seconds" ["operation"] SECONDS, "How long operations took.";
    traversal_latency: Histogram "graph_traversal_latency_seconds" ["hops", "tenant_id"] SECONDS, "How long walks took, by how far they went.";
    expand_ms: Histogram "graph_expand_execution_ms" [] MILLIS, "How long expansions took.";
    expand_depth: Histogram "graph_expand_depth" [] DEPTHS, "How deep expansions went.";
    expand_nodes: Histogram "graph_expand_nodes" [] COUNTS, "Objects in answers of expansions.";
    expand_edges: Histogram "graph_expand_edges" [] COUNTS, "Relationships in answers of expansions.";
    expand_truncated: Counter "graph_expand_truncated_total" [] &[], "Expansions that met a limit.";
    // Facts.
    extracted: Counter "graph_entities_extracted_total" ["entity_type", "source_system", "tenant_id"] &[], "Objects written, by type and by the system that they come from.";
    relationships_created: Counter "graph_relationships_created_total" ["rel_type", "tenant_id"] &[], "Relationships written for the first time.";
    extraction_latency: Histogram "graph_extraction_latency_seconds" ["doc_type"] SECONDS, "How long it took to parse sources and to write their facts.";
    total_nodes: Gauge "graph_total_nodes" ["entity_type", "tenant_id"] &[], "Objects of the graphs in memory that follow a branch.";
    total_relationships: Gauge "graph_total_relationships" ["rel_type", "tenant_id"] &[], "Relationships of the graphs in memory that follow a branch.";
    branch_fallback_depth: Histogram "branch_fallback_depth" [] DEPTHS, "How many branches up a fact was found that was looked up; 0: on the branch itself.";
    log_replaced: Counter "graph_log_replaced_total" ["tenant_id"] &[], "Times that the log of a project turned out to be another one, after a restore or a fail-over of the database.";
    release_size: Histogram "release_snapshot_size" [] SIZES, "Facts in a release.";
    release_ms: Histogram "release_snapshot_duration_ms" [] MILLIS, "How long releases took to make.";
    merge_conflicts: Counter "merge_conflicts_count" ["field", "tenant_id"] &[], "Conflicts that merges reported, by the first part of the path.";
    change_paths: Histogram "change_paths_count" [] COUNTS, "Paths of a content that a version changed.";
    change_bytes: Histogram "change_summary_size_bytes" [] BYTES, "Sizes of change summaries.";
    change_truncated: Counter "change_truncated_count" [] &[], "Versions that changed too much for a summary of it.";
    // Embedding and text.
    embedding_pending: Gauge "embedding_jobs_pending" ["tenant_id", "project", "policy"] &[], "Objects that wait for their vector, when it was last asked.";
    embedding_attempt: Counter "embedding_jobs_attempt" ["attempt_number"] &[], "Tries of jobs, by how often each was tried.";
    embedding_ms: Histogram "embedding_duration_ms" ["model"] MILLIS, "How long a model took for one batch.";
    embedding_failure_rate: Gauge "embedding_failure_rate" [] &[], "Share of the latest tries that failed, older ones fading.";
    embedding_coverage: Gauge "embedding_coverage_pct" ["policy"] &[], "Objects that have a vector, in percent, when it was last asked.";
    embedding_staleness: Histogram "embedding_staleness_seconds" [] WAITS, "How long objects waited for their vector.";
    fts_update_ms: Histogram "fts_update_ms" ["n_chars_bucket"] MILLIS, "How long it took to bring the text index up to date, by how many objects changed.";
    // Search.
    search_latency: Histogram "graph_search_latency_seconds" [] SECONDS, "How long searches took.";
    search_ms: Histogram "graph_search_latency_ms" ["stage", "intent", "rerank_applied"] MILLIS, "How long stages of searches took.";
    search_steps: Counter "graph_search_adaptive_step_total" ["step"] &[], "Optional stages that searches left out to be in time.";
    search_budget: Histogram "graph_search_token_budget_utilization_ratio" [] SHARES, "Share of its budget of tokens that an answer used.";
    search_pool: Gauge "graph_search_candidate_pool_size" [] &[], "Candidates of the last search.";
    search_pruned: Counter "graph_search_memory_prune_total" [] &[], "Graphs and indexes put out of memory to make room.";
    vector_ema: Gauge "graph_search_vector_latency_ema_ms" [] &[], "How long it takes to find the nearest vectors, older searches fading.";
    rate_hits: Counter "graph_search_rate_limit_hits_total" ["tenant_id", "level"] &[], "Requests beyond the soft or the hard limit.";
    redacted: Counter "graph_search_sensitive_fields_redacted_total" [] &[], "Sensitive fields left out of answers.";
    debug_denied: Counter "graph_search_debug_denied_total" [] &[], "Requests for debug figures by callers without the scope for them.";
    cross_project: Counter "graph_search_cross_project_queries_total" [] &[], "Answers that went beyond one project.";
    search_truncated: Counter "graph_search_expansion_truncated_total" [] &[], "Searches whose neighbours met the limit.";
    neighbors: Histogram "expansion_neighbors_count" ["intent", "depth"] COUNTS, "Neighbours that searches found.";
    hub_sampled: Counter "expansion_hub_sampled" [] &[], "Searches that sampled relationships of a hub.";
    edge_score: Gauge "expansion_edge_score_mean" ["relation_type", "tenant_id"] &[], "Mean score of relationships that were followed, older ones fading.";
    edge_recency: Histogram "expansion_edge_recency_distribution" ["relation_type", "tenant_id"] DAYS, "Age of relationships that were followed, in days, where age counts.";
    expansion_truncated: Counter "expansion_truncated" ["reason"] &[], "Expansions of searches that met a limit.";
    expansion_boost: Histogram "expansion_boost_total" ["intent"] SHARES, "What relationships added to scores.";
    collapsed: Counter "expansion_duplicate_neighbor_collapsed" [] &[], "Neighbours that several results led to.";
    // Access and workers.
    access_refused: Counter "access_refused_total" ["code"] &[], "Callers that were refused, and requests that the caller has no right to, by code.";
    workers_stuck: Gauge "workers_stuck" [] &[], "Workers that still run some time after they were cancelled.";
    workers_stuck_total: Counter "workers_stuck_total" ["operation"] &[], "Workers that were ever found stuck.";
    // The record of operations.
    audit_entries: Counter "audit_entries_total" [] &[], "Operations recorded.";
    audit_failures: Counter "audit_append_failures_total" [] &[], "Tries to record that failed; what could not be recorded waits.";
    audit_lost: Counter "audit_entries_lost_total" [] &[], "Entries that could not be recorded before the process ended.";
    audit_waits: Counter "audit_full_queue_waits_total" [] &[], "Times that an operation waited for a place in the record's queue.";
    audit_waiting: Gauge "audit_entries_waiting" [] &[], "Operations that ended and are not recorded yet.";
    audit_append_seconds: Histogram "audit_append_seconds" [] SECONDS, "How long it took to record a group.";
    // Spans.
    spans_dropped: Counter "otel_spans_dropped_total" [] &[], "Spans that the collector did not accept; 0 if no collector is configured.";
    // The process.
    resident: Gauge "process_resident_memory_bytes" [] &[], "Memory of the process.";
    graph_memory: Gauge "graph_memory_bytes" [] &[], "Memory of the graphs held.";
    cache_hits: Gauge "graph_cache_hit_ratio" [] &[], "Share of requests for a graph that found it in memory.";
}

/// The metrics of this process.
pub fn metrics() -> &'static Metrics {
    &ALL
}

impl Metrics {
    /// All metrics in the text format of Prometheus. With a `tenant`, values of other tenants are left out.
    pub fn text(&self, tenant: Option<&str>) -> String {
        let mut text = String::with_capacity(1 << 14);
        self.all().iter().for_each(|metric| metric.write(&mut text, tenant));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_there_once_and_as_prometheus_wants_them() {
        let names: Vec<_> = metrics().all().iter().map(|metric| metric.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for metric in metrics().all() {
            assert!(
                metric.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }
}
