//! The `gate`: fails if figures of a run are lower than those of an earlier run.

use crate::retrieval::rows;
use crate::{Fault, print};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Fields that identify a line.
const NAMES: [&str; 6] = ["suite", "set", "repo", "mode", "method", "profile"];
/// Figures in percent that must not fall.
const FIGURES: [&str; 8] = ["r2", "r5", "r10", "acc5", "acc10", "mrr", "ndcg10", "noleak_r5"];

/// Compares the output of two runs; an error if a figure fell by more than `allowed` points or is missing.
pub fn run(baseline: &Path, now: &Path, allowed: f64, as_json: bool) -> Result<(), Fault> {
    let fallen = fallen(&rows(baseline)?, &rows(now)?, allowed);
    for (line, figure, before, after) in &fallen {
        let report = json!({"suite": "gate", "line": line, "figure": figure, "before": before, "after": after});
        print(&report, as_json);
    }
    match fallen.len() {
        0 => Ok(()),
        some => Err(format!("{some} figures fell by more than {allowed} points").into()),
    }
}

type Fallen = (String, &'static str, f64, Option<f64>);

fn fallen(before: &[Value], after: &[Value], allowed: f64) -> Vec<Fallen> {
    let after: BTreeMap<String, &Value> = after.iter().map(|line| (name(line), line)).collect();
    let mut all = Vec::new();
    for line in before {
        let name = name(line);
        for figure in FIGURES {
            let Some(was) = line[figure].as_f64() else { continue };
            let is = after.get(&name).and_then(|line| line[figure].as_f64());
            if is.is_none_or(|is| is < was - allowed) {
                all.push((name.clone(), figure, was, is));
            }
        }
    }
    all
}

fn name(line: &Value) -> String {
    let parts: Vec<&str> = NAMES.iter().filter_map(|name| line[name].as_str()).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fell_or_is_gone_is_told() {
        let line = |method: &str, r5: f64| json!({"suite": "multihop", "set": "a", "method": method, "r5": r5});
        let before = [line("ours", 80.0), line("bm25", 60.0)];
        assert!(fallen(&before, &[line("ours", 79.0), line("bm25", 70.0)], 2.0).is_empty());
        let found = fallen(&before, &[line("ours", 77.9)], 2.0);
        let found: Vec<_> = found.iter().map(|(line, figure, _, after)| (line.as_str(), *figure, *after)).collect();
        assert_eq!(found, [("multihop a ours", "r5", Some(77.9)), ("multihop a bm25", "r5", None)]);
    }
}
