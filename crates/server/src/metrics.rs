//! Figures about operations for who watches a server: how many, how they ended, how long they took.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;
use std::time::Duration;

/// Upper bounds of what is counted together, in seconds.
const BOUNDS: [f64; 10] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Figures of one process.
#[derive(Default)]
pub struct Metrics {
    /// By operation and how it ended.
    ended: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    took: Mutex<BTreeMap<&'static str, Took>>,
}

#[derive(Clone, Copy, Default)]
struct Took {
    counts: [u64; BOUNDS.len()],
    all: u64,
    seconds: f64,
}

static ALL: LazyLock<Metrics> = LazyLock::new(Metrics::default);

pub fn metrics() -> &'static Metrics {
    &ALL
}

impl Metrics {
    /// `status`: `ok`, or the code of the error.
    pub fn add(&self, operation: &'static str, status: &'static str, took: Duration) {
        *self.ended.lock().entry((operation, status)).or_default() += 1;
        let mut all = self.took.lock();
        let own = all.entry(operation).or_default();
        let seconds = took.as_secs_f64();
        own.all += 1;
        own.seconds += seconds;
        own.counts.iter_mut().zip(BOUNDS).filter(|(_, bound)| seconds <= *bound).for_each(|(count, _)| *count += 1);
    }

    /// As Prometheus reads them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |line: std::fmt::Arguments<'_>| {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{line}");
        };
        line(format_args!("# HELP graph_queries_total Operations by how they ended."));
        line(format_args!("# TYPE graph_queries_total counter"));
        for ((operation, status), count) in self.ended.lock().iter() {
            line(format_args!("graph_queries_total{{operation=\"{operation}\",status=\"{status}\"}} {count}"));
        }
        line(format_args!("# HELP graph_operation_latency_seconds How long operations took."));
        line(format_args!("# TYPE graph_operation_latency_seconds histogram"));
        for (operation, took) in self.took.lock().iter() {
            let name = "graph_operation_latency_seconds";
            for (count, bound) in took.counts.iter().zip(BOUNDS) {
                line(format_args!("{name}_bucket{{operation=\"{operation}\",le=\"{bound}\"}} {count}"));
            }
            line(format_args!("{name}_bucket{{operation=\"{operation}\",le=\"+Inf\"}} {}", took.all));
            line(format_args!("{name}_sum{{operation=\"{operation}\"}} {}", took.seconds));
            line(format_args!("{name}_count{{operation=\"{operation}\"}} {}", took.all));
        }
        let name = "graph_search_sensitive_fields_redacted_total";
        line(format_args!("# HELP {name} Values of sensitive properties that were kept back."));
        line(format_args!("# TYPE {name} counter"));
        line(format_args!("{name} {}", lukasa_engine::sensitive::redacted_total()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up() {
        let metrics = Metrics::default();
        metrics.add("get", "ok", Duration::from_millis(3));
        metrics.add("get", "not_found", Duration::from_secs(60));
        let text = metrics.text();
        for line in [
            "graph_queries_total{operation=\"get\",status=\"ok\"} 1",
            "graph_operation_latency_seconds_bucket{operation=\"get\",le=\"0.001\"} 0",
            "graph_operation_latency_seconds_bucket{operation=\"get\",le=\"0.005\"} 1",
            "graph_operation_latency_seconds_bucket{operation=\"get\",le=\"30\"} 1",
            "graph_operation_latency_seconds_count{operation=\"get\"} 2",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in\n{text}");
        }
    }
}
