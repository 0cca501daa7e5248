//! Gauges that are updated when metrics are read: memory, sizes of graphs, and waiting audit entries.

use super::metrics;
use crate::Engine;
use std::collections::BTreeMap;

/// Updates all gauges that can be read without work. `engine` is none in a process without the store.
pub fn refresh(engine: Option<&Engine>) {
    let all = metrics();
    if let Some(bytes) = resident() {
        all.resident.set(bytes as f64);
    }
    let Some(engine) = engine else { return };
    let projections = &engine.graphs().projections;
    all.graph_memory.set(projections.uses().iter().map(|held| held.bytes).sum::<usize>() as f64);
    let (hits, misses, dropped) = projections.cache_stats();
    all.cache_hits.set(hits as f64 / (hits + misses).max(1) as f64);
    all.search_pruned.set(dropped as f64);
    if let Some(audit) = engine.audit() {
        all.audit_waiting.set(audit.state().waiting as f64);
    }
    let (mut nodes, mut edges) = (BTreeMap::<(String, String), usize>::new(), BTreeMap::new());
    for (scope, _, snapshot) in projections.heads() {
        let (stats, names) = (snapshot.stats(), snapshot.names().types());
        for (counts, all) in [(&stats.by_type, &mut nodes), (&stats.by_edge_type, &mut edges)] {
            for (name, count) in names.iter().zip(counts).filter(|(_, count)| **count > 0) {
                *all.entry((name.to_string(), scope.tenant.clone())).or_insert(0) += count;
            }
        }
    }
    for (metric, counts) in [(&all.total_nodes, nodes), (&all.total_relationships, edges)] {
        metric.clear();
        for ((name, tenant), count) in counts {
            metric.set_of(&[&name, &tenant], count as f64);
        }
    }
}

/// Resident memory of this process in bytes. None where the system does not report it.
pub fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
