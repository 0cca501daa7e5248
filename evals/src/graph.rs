//! The `graph` suite: what the projection costs compared with plain arrays.

pub mod peers;
mod reference;
pub mod synthetic;

use crate::{peak_rss_mb, print, round};
use lukasa_engine::{Context, Engine};
use lukasa_graph::community::{CommunityOptions, Undirected, detect};
use lukasa_graph::rank::{DAMPING, EdgeWeights, ITERATIONS, REVERSE, ppr};
use lukasa_graph::walk::{Direction, Filter, Walk, walk};
use lukasa_graph::{Node, Projections, Snapshot};
use lukasa_model::batch::End;
use lukasa_model::{Batch, Scope};
use lukasa_store::ledger::ViewSpec;
use lukasa_store::sqlite::Durability;
use lukasa_store::{Clock, Ledger, SqliteStore, Store, SystemClock};
use reference::{Csr, ReferencePageRank, ReferenceWalk};
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use synthetic::{FILE, SeededRandom, SyntheticGraph, TYPES};

const BATCH: usize = 10_000;
const STARTS: usize = 200;
const HUBS: usize = 50;
/// Commits of one file's worth of changes.
const COMMITS: usize = 200;

pub struct GraphOptions {
    pub nodes: u64,
    pub edges: u64,
    pub seed: u64,
    pub peers: bool,
    pub json: bool,
}

pub fn run(ask: &GraphOptions) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let path = folder.path().join("lukasa.db");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, Arc::clone(&clock), Durability::Rebuildable)?);
    let scope = Scope::new("evals", "graph")?;
    let ledger = Ledger::new(Arc::clone(&store), Arc::clone(&clock), scope.clone());
    let made = SyntheticGraph::new(ask.nodes, ask.edges, ask.seed);
    eprintln!("committing {} nodes and {} edges …", ask.nodes, ask.edges);
    let mut writes = made.writes();
    loop {
        let batch: Vec<_> = writes.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        ledger.commit(&Batch { writes: batch, ..Batch::on("main") })?;
    }
    drop(writes);

    eprintln!("building the projection …");
    let projections = Projections::new(usize::MAX);
    let before = resident_mb();
    let start = Instant::now();
    let (_, snapshot) = projections.view_graph(&ledger, &ViewSpec::default(), &mut |_, _| {})?;
    let build_ms = start.elapsed().as_secs_f64() * 1e3;
    let memory = snapshot.memory();
    let resident = resident_mb().zip(before).map(|(after, before)| after.saturating_sub(before));
    let mut line = json!({
        "suite": "graph", "engine": "lukasa", "nodes": snapshot.node_count(), "edges": snapshot.edge_count(),
        "build_ms": build_ms.round(),
        "bytes_per_edge": round(memory.bytes as f64 / snapshot.edge_count() as f64),
        "bytes_per_edge_row": round(memory.bytes_per_edge), "bytes_per_node_row": round(memory.bytes_per_node),
        "projection_mb": memory.bytes >> 20, "resident_growth_mb": resident,
    });

    eprintln!("walking …");
    let mut dice = SeededRandom(ask.seed ^ 0x5eed);
    let starts: Vec<u32> = (0..STARTS).map(|_| dice.below(ask.nodes) as u32).collect();
    let hubs = made.hubs(HUBS);
    let places: Vec<Node> = places(&ledger, &snapshot, ask.nodes)?;
    hops(&mut line, &snapshot, &made, &places, &starts, &hubs);
    drop(snapshot);

    eprintln!("whole operations …");
    operations(&mut line, &store, &clock, &scope, &starts, &hubs)?;

    eprintln!("ranking …");
    let (_, snapshot) = projections.view_graph(&ledger, &ViewSpec::default(), &mut |_, _| {})?;
    let seeds = [(starts[0], 1.0), (starts[1], 0.5), (starts[2], 0.25)];
    rank(&mut line, &snapshot, &made, &places, &seeds);

    eprintln!("communities …");
    let start = Instant::now();
    let graph = Undirected::of(snapshot.flat());
    let found = detect(&graph, &CommunityOptions::default());
    set(&mut line, "leiden_ms", start.elapsed().as_secs_f64() * 1e3);
    line["leiden_modularity"] = json!((found.modularity * 1e5).round() / 1e5);
    line["leiden_communities"] = json!(found.count);
    drop((snapshot, graph, found));

    eprintln!("following {COMMITS} commits …");
    follow(&mut line, &ledger, &projections, &made, &mut dice)?;
    line["peak_rss_mb"] = json!(peak_rss_mb());
    print(&line, ask.json);
    if ask.peers {
        let seeds = seeds.iter().map(|(v, w)| (v.to_string(), *w)).collect();
        for line in peers::run(&made, &starts, &hubs, seeds)? {
            print(&line, ask.json);
        }
    }
    Ok(())
}

fn set(line: &mut Value, field: &str, value: f64) {
    line[field] = json!(round(value));
}

/// The node of the snapshot for each synthetic node.
fn places(ledger: &Ledger, snapshot: &Snapshot, nodes: u64) -> Result<Vec<Node>, Box<dyn Error>> {
    let mut places = vec![Node(0); nodes as usize];
    for node in snapshot.nodes() {
        let key = snapshot.key(node).unwrap_or_default();
        let number: usize = key.rsplit('_').next().unwrap_or_default().parse()?;
        places[number] = node;
    }
    let found = ledger.find(&snapshot.view, &synthetic::reference(nodes - 1))?;
    assert_eq!(snapshot.find(found.thing.no), Some(places[nodes as usize - 1]));
    Ok(places)
}

/// Times of one call for each of `starts`, in microseconds, sorted; and the sum of the results.
fn times(starts: &[u32], mut call: impl FnMut(u32) -> usize) -> (Vec<f64>, usize) {
    let mut sum = 0;
    // The first pass warms up.
    starts.iter().for_each(|s| sum += call(*s));
    let rounds = 200usize.div_ceil(starts.len()).max(3);
    let mut all = Vec::with_capacity(starts.len() * rounds);
    for _ in 0..rounds {
        for s in starts {
            let start = Instant::now();
            std::hint::black_box(call(*s));
            all.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    all.sort_by(f64::total_cmp);
    (all, sum)
}

/// Two calls in turn for each of `starts`, so that other load of the machine affects both.
fn side_by_side(
    starts: &[u32],
    mut one: impl FnMut(u32) -> usize,
    mut two: impl FnMut(u32) -> usize,
) -> (Vec<f64>, Vec<f64>, (usize, usize)) {
    let sums = (starts.iter().map(|s| one(*s)).sum(), starts.iter().map(|s| two(*s)).sum());
    let (mut ones, mut twos) = (vec![], vec![]);
    for _ in 0..7 {
        for s in starts {
            let start = Instant::now();
            std::hint::black_box(one(*s));
            ones.push(start.elapsed().as_secs_f64() * 1e6);
            let start = Instant::now();
            std::hint::black_box(two(*s));
            twos.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    ones.sort_by(f64::total_cmp);
    twos.sort_by(f64::total_cmp);
    (ones, twos, sums)
}

fn percentile(sorted: &[f64], p: usize) -> f64 {
    sorted[(sorted.len() * p / 100).min(sorted.len() - 1)]
}

fn hops(line: &mut Value, snapshot: &Snapshot, made: &SyntheticGraph, places: &[Node], starts: &[u32], hubs: &[u32]) {
    let csr = Csr::new(made.nodes as usize, &made.edges);
    let mut search = ReferenceWalk::new(made.nodes as usize);
    let filter = Filter::default();
    for (name, starts, depth) in [("hop2", starts, 2), ("hop3", starts, 3), ("hub_hop3", hubs, 3)] {
        let plan =
            Walk { direction: Direction::Out, depth, max_nodes: usize::MAX, max_edges: usize::MAX, filter: &filter };
        let (ours, reference, sums) = side_by_side(
            starts,
            |s| walk(snapshot, &[places[s as usize]], &plan).nodes.len(),
            |s| search.run(&csr, s, depth),
        );
        assert_eq!(sums.0, sums.1, "the same nodes are reached");
        let sum = sums.0;
        for (prefix, times) in [("", &ours), ("ref_csr_", &reference)] {
            set(line, &format!("{prefix}{name}_p50_us"), percentile(times, 50));
            set(line, &format!("{prefix}{name}_p95_us"), percentile(times, 95));
        }
        line[format!("{name}_sum")] = json!(sum);
        set(line, &format!("{name}_p95_ratio"), percentile(&ours, 95) / percentile(&reference, 95));
    }
}

fn operations(
    line: &mut Value,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    scope: &Scope,
    starts: &[u32],
    hubs: &[u32],
) -> Result<(), Box<dyn Error>> {
    let engine = Engine::new(Arc::clone(store), Arc::clone(clock), std::env::temp_dir());
    let call = |start: u32, depth: u32, direction: &str| {
        let mut progress = |_, _| {};
        let mut context = Context::of(scope.clone(), &mut progress);
        let root = format!("Function:{}", synthetic::key(u64::from(start)));
        let request = json!({"roots": [root], "max_depth": depth, "direction": direction});
        engine.answer(&mut context, "traverse", request).and_then(|a| a.text()).expect("a walk through the operation")
    };
    for (name, starts, depth, direction) in [
        ("op_hop2", starts, 2, "out"),
        ("op_hop2_both", starts, 2, "both"),
        ("op_hop3", starts, 3, "out"),
        ("op_hub_hop2", hubs, 2, "out"),
    ] {
        // The whole answer as text; the objects in it are counted separately.
        let sum: usize = starts.iter().map(|s| call(*s, depth, direction).matches("\"depth\":").count()).sum();
        let (times, bytes) = times(starts, |s| call(s, depth, direction).len());
        line[format!("{name}_mean_bytes")] = json!(bytes / starts.len());
        set(line, &format!("{name}_p50_us"), percentile(&times, 50));
        set(line, &format!("{name}_p95_us"), percentile(&times, 95));
        line[format!("{name}_sum")] = json!(sum);
    }
    Ok(())
}

fn rank(line: &mut Value, snapshot: &Snapshot, made: &SyntheticGraph, places: &[Node], seeds: &[(u32, f64)]) {
    let start = Instant::now();
    let flat = Arc::clone(snapshot.flat());
    set(line, "flatten_ms", start.elapsed().as_secs_f64() * 1e3);
    let by_name = |name: &str| TYPES.iter().find(|(n, _, _)| *n == name).map_or(0.0, |(_, w, _)| *w);
    let weights = EdgeWeights::by_type(snapshot.names().types().iter().map(|t| by_name(t)).collect(), REVERSE);
    let dense: Vec<_> = seeds.iter().filter_map(|(v, w)| Some((flat.dense(places[*v as usize])?, *w))).collect();
    let by_type: Vec<f64> = TYPES.iter().map(|(_, w, _)| *w).collect();
    let spread = ReferencePageRank::new(made.nodes as usize, &made.edges, &by_type, REVERSE);
    let start = Instant::now();
    let ours_spread = snapshot.spread(&weights);
    set(line, "ppr_prepare_ms", start.elapsed().as_secs_f64() * 1e3);
    let (mut ours, mut reference) = (vec![], vec![]);
    let mut off = 0.0f64;
    for _ in 0..7 {
        let start = Instant::now();
        let ranks = ppr(&ours_spread, &dense, DAMPING, ITERATIONS);
        ours.push(start.elapsed().as_secs_f64() * 1e3);
        let (plain, took) = spread.run(seeds, DAMPING, ITERATIONS);
        reference.push(took.as_secs_f64() * 1e3);
        for (v, place) in places.iter().enumerate() {
            let here = flat.dense(*place).map_or(0.0, |d| ranks[d as usize]);
            off = off.max((here - plain[v]).abs());
        }
    }
    assert!(off < 1e-9, "the same ranks: {off}");
    ours.sort_by(f64::total_cmp);
    reference.sort_by(f64::total_cmp);
    set(line, "ppr_ms", ours[3]);
    set(line, "ref_csr_ppr_ms", reference[3]);
    set(line, "ppr_ratio", ours[3] / reference[3]);
    let from: Vec<_> = seeds.iter().map(|(v, w)| (places[*v as usize], *w)).collect();
    let start = Instant::now();
    let near = lukasa_graph::rank::push(snapshot, &weights, &from, DAMPING, lukasa_graph::rank::REST);
    set(line, "ppr_push_ms", start.elapsed().as_secs_f64() * 1e3);
    line["ppr_push_nodes"] = json!(near.len());
    let whole = ppr(&ours_spread, &dense, DAMPING, 100);
    let mut best: Vec<usize> = (0..whole.len()).collect();
    best.sort_by(|a, b| whole[*b].total_cmp(&whole[*a]));
    let top: std::collections::HashSet<Node> = best.iter().take(100).map(|i| flat.nodes[*i]).collect();
    line["ppr_push_top100"] = json!(near.iter().take(100).filter(|(node, _)| top.contains(node)).count());
    let start = Instant::now();
    std::hint::black_box(snapshot.ranks());
    set(line, "pagerank_ms", start.elapsed().as_secs_f64() * 1e3);
}

/// Commits the changes of one file at a time: 50 objects and 150 edges with new versions, 25 ended, 25 new or restored.
fn follow(
    line: &mut Value,
    ledger: &Ledger,
    projections: &Projections,
    made: &SyntheticGraph,
    dice: &mut SeededRandom,
) -> Result<(), Box<dyn Error>> {
    let mut commits = Vec::with_capacity(COMMITS);
    let mut by_file: std::collections::HashMap<u64, Vec<usize>> = std::collections::HashMap::new();
    for (i, (src, _, _)) in made.edges.iter().enumerate() {
        by_file.entry(u64::from(*src) / FILE).or_default().push(i);
    }
    let files: Vec<u64> = (0..(made.nodes / FILE).max(1)).collect();
    for round in 0..COMMITS {
        let file = files[dice.below(files.len() as u64) as usize];
        let nodes = (file * FILE..(file + 1) * FILE).filter(|i| *i < made.nodes);
        let mut batch = Batch::on("main");
        batch.writes.extend(nodes.map(|i| synthetic::object(i, 2 + round as u64).into()));
        let own = by_file.get(&file).map(Vec::as_slice).unwrap_or_default();
        for (place, edge) in own.iter().take(175).enumerate() {
            let (src, dst, type_no) = made.edges[*edge];
            if place < 150 {
                batch.writes.push(synthetic::relationship((src, dst, type_no), 0.3 + (round % 60) as f64 / 100.0));
            } else if round % 2 == 0 {
                let found = ledger.view(&ViewSpec::default()).and_then(|view| {
                    let end = |v: u32| ledger.find(&view, &synthetic::reference(u64::from(v))).map(|f| f.thing.id);
                    let namespace = ledger.head()?.namespace;
                    let name = TYPES[usize::from(type_no)].0;
                    Ok(lukasa_model::id::relationship_id(namespace, name, end(src)?, end(dst)?, ""))
                })?;
                batch.writes.push(End::new(lukasa_model::Reference::Id(found)).into());
            }
        }
        for _ in 0..25 {
            let src = (file * FILE + dice.below(FILE)).min(made.nodes - 1);
            let dst = dice.below(made.nodes);
            batch.writes.push(synthetic::relationship((src as u32, dst as u32, 0), 0.9));
        }
        let done = ledger.commit(&dedupe(batch))?;
        let start = Instant::now();
        let (view, _) = projections.view_graph(ledger, &ViewSpec::default(), &mut |_, _| {})?;
        commits.push(start.elapsed().as_secs_f64() * 1e6);
        assert_eq!(Some(view.known), done.tx, "the commit is seen");
    }
    commits.sort_by(f64::total_cmp);
    set(line, "follow_commit_p50_us", percentile(&commits, 50));
    set(line, "follow_commit_p95_us", percentile(&commits, 95));
    Ok(())
}

/// Removes repeated relationships, because a batch may contain a fact only once.
fn dedupe(mut batch: Batch) -> Batch {
    let mut seen = std::collections::HashSet::new();
    batch.writes.retain(|write| match write {
        lukasa_model::Write::Relationship(put) => {
            seen.insert((put.type_name.clone(), put.src.to_string(), put.dst.to_string()))
        }
        _ => true,
    });
    batch
}

fn resident_mb() -> Option<u64> {
    crate::status_mb("VmRSS:")
}
