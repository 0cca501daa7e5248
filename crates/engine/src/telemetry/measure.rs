//! Counters, gauges and histograms with labels, in the text format of Prometheus.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum sets of label values per metric. Further ones count as `other`, so that clients cannot fill the memory with
/// names.
const SETS: usize = 1_000;
/// Maximum characters of a label value.
const LABEL: usize = 100;
/// The label of metrics that belong to a tenant.
const TENANT: &str = "tenant_id";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

/// A metric: one value for each set of label values.
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub help: &'static str,
    pub labels: &'static [&'static str],
    bounds: &'static [f64],
    values: Mutex<BTreeMap<Vec<String>, Value>>,
}

#[derive(Clone, Default)]
struct Value {
    /// For a histogram: how many values were at most each bound.
    counts: Vec<u64>,
    all: u64,
    sum: f64,
}

impl Metric {
    pub const fn new(
        name: &'static str,
        kind: MetricKind,
        labels: &'static [&'static str],
        bounds: &'static [f64],
        help: &'static str,
    ) -> Metric {
        Metric { name, kind, help, labels, bounds, values: Mutex::new(BTreeMap::new()) }
    }

    /// Adds 1 to a counter without labels.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds to a counter without labels.
    pub fn add(&self, more: u64) {
        self.add_of(&[], more);
    }

    /// Adds 1 to a counter, for these label values.
    pub fn inc_of(&self, labels: &[&str]) {
        self.add_of(labels, 1);
    }

    /// Adds to a counter, for these label values.
    pub fn add_of(&self, labels: &[&str], more: u64) {
        self.change(labels, |value| value.sum += more as f64);
    }

    /// Sets a gauge without labels.
    pub fn set(&self, to: f64) {
        self.set_of(&[], to);
    }

    /// Sets a gauge, for these label values.
    pub fn set_of(&self, labels: &[&str], to: f64) {
        self.change(labels, |value| value.sum = to);
    }

    /// Updates a gauge as an exponential moving average; `share` is the weight of the new value.
    pub fn blend_of(&self, labels: &[&str], seen: f64, share: f64) {
        self.change(labels, |value| {
            value.sum = if value.all == 0 { seen } else { value.sum + share * (seen - value.sum) };
            value.all += 1;
        });
    }

    /// Removes all sets of label values of a gauge, before it is set again.
    pub fn clear(&self) {
        self.values.lock().clear();
    }

    /// Adds a value to a histogram without labels.
    pub fn record(&self, seen: f64) {
        self.record_of(&[], seen);
    }

    /// Adds a value to a histogram, for these label values.
    pub fn record_of(&self, labels: &[&str], seen: f64) {
        let bounds = self.bounds;
        self.change(labels, |value| {
            value.counts.resize(bounds.len(), 0);
            value.counts.iter_mut().zip(bounds).filter(|(_, bound)| seen <= **bound).for_each(|(count, _)| *count += 1);
            value.all += 1;
            value.sum += seen;
        });
    }

    /// The current value of a counter or gauge; for a histogram, the number of values recorded.
    pub fn now(&self, labels: &[&str]) -> f64 {
        let values = self.values.lock();
        let value = values.get(&labels.iter().map(ToString::to_string).collect::<Vec<_>>());
        value.map_or(0.0, |value| if self.kind == MetricKind::Histogram { value.all as f64 } else { value.sum })
    }

    fn change(&self, labels: &[&str], change: impl FnOnce(&mut Value)) {
        debug_assert_eq!(labels.len(), self.labels.len(), "{}", self.name);
        let mut values = self.values.lock();
        let mut key: Vec<String> = labels.iter().map(|label| label.chars().take(LABEL).collect()).collect();
        if values.len() >= SETS && !values.contains_key(&key) {
            key.fill("other".into());
        }
        change(values.entry(key).or_default());
    }

    /// Appends the lines of this metric. With a `tenant`, lines of other tenants are left out.
    pub fn write(&self, text: &mut String, tenant: Option<&str>) {
        let kind = match self.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "# HELP {} {}\n# TYPE {} {kind}\n", self.name, self.help, self.name);
        let mut values = self.values.lock().clone();
        let of = self.labels.iter().position(|label| *label == TENANT);
        values.retain(|labels, _| of.zip(tenant).is_none_or(|(place, tenant)| labels[place] == tenant));
        if values.is_empty() && self.labels.is_empty() {
            values.insert(Vec::new(), Value { counts: vec![0; self.bounds.len()], ..Value::default() });
        }
        for (labels, value) in &values {
            let pairs: Vec<String> =
                self.labels.iter().zip(labels).map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            let set = |more: Option<String>| match pairs.iter().cloned().chain(more).collect::<Vec<_>>() {
                all if all.is_empty() => String::new(),
                all => format!("{{{}}}", all.join(",")),
            };
            if self.kind != MetricKind::Histogram {
                let _ = writeln!(text, "{}{} {}", self.name, set(None), value.sum);
                continue;
            }
            for (bound, count) in self.bounds.iter().zip(&value.counts) {
                let _ = writeln!(text, "{}_bucket{} {count}", self.name, set(Some(format!("le=\"{bound}\""))));
            }
            let _ = writeln!(text, "{}_bucket{} {}", self.name, set(Some("le=\"+Inf\"".into())), value.all);
            let _ = writeln!(text, "{}_sum{} {}", self.name, set(None), value.sum);
            let _ = writeln!(text, "{}_count{} {}", self.name, set(None), value.all);
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(metric: &Metric) -> String {
        let mut text = String::new();
        metric.write(&mut text, None);
        text
    }

    #[test]
    fn buckets_add_up() {
        let metric = Metric::new("took", MetricKind::Histogram, &["of"], &[0.005, 30.0], "How long.");
        metric.record_of(&["get"], 0.003);
        metric.record_of(&["get"], 60.0);
        let want = "# HELP took How long.\n# TYPE took histogram\ntook_bucket{of=\"get\",le=\"0.005\"} 1\n\
                    took_bucket{of=\"get\",le=\"30\"} 1\ntook_bucket{of=\"get\",le=\"+Inf\"} 2\n\
                    took_sum{of=\"get\"} 60.003\ntook_count{of=\"get\"} 2\n";
        assert_eq!(text(&metric), want);
        assert_eq!(metric.now(&["get"]), 2.0);
    }

    #[test]
    fn a_metric_without_values_is_written_as_zero() {
        let metric = Metric::new("all", MetricKind::Counter, &[], &[], "All.");
        assert_eq!(text(&metric), "# HELP all All.\n# TYPE all counter\nall 0\n");
        metric.add(2);
        assert!(text(&metric).ends_with("all 2\n"));
    }

    #[test]
    fn labels_cannot_break_out_nor_grow_without_end() {
        let metric = Metric::new("n", MetricKind::Counter, &["by"], &[], "N.");
        metric.inc_of(&["a\"} 9\n\\"]);
        assert!(text(&metric).contains("n{by=\"a\\\"} 9\\n\\\\\"} 1\n"), "{}", text(&metric));
        for number in 0..SETS + 50 {
            metric.inc_of(&[&number.to_string()]);
        }
        assert_eq!(metric.values.lock().len(), SETS + 1);
        assert_eq!(metric.now(&["other"]), 51.0);
    }

    #[test]
    fn a_tenant_sees_its_own() {
        let metric = Metric::new("n", MetricKind::Gauge, &["type", "tenant_id"], &[], "N.");
        metric.set_of(&["A", "acme"], 1.0);
        metric.set_of(&["B", "other"], 2.0);
        let mut own = String::new();
        metric.write(&mut own, Some("acme"));
        assert_eq!(own, "# HELP n N.\n# TYPE n gauge\nn{type=\"A\",tenant_id=\"acme\"} 1\n");
        assert!(text(&metric).contains("other"));
    }

    #[test]
    fn an_average_moves_towards_what_is_seen() {
        let metric = Metric::new("ema", MetricKind::Gauge, &[], &[], "Average.");
        metric.blend_of(&[], 10.0, 0.2);
        metric.blend_of(&[], 20.0, 0.2);
        assert_eq!(metric.now(&[]), 12.0);
    }
}
