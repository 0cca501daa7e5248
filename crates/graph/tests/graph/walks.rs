//! Walks, expansions, paths and ranks are compared with naive implementations of their definitions.

use lukasa_graph::expand::{AcceptAll, Dedupe, ExpansionPlan, Phase, expand};
use lukasa_graph::paths::{all_simple, most_likely, shortest};
use lukasa_graph::rank::{DAMPING, EdgeWeights, REVERSE, TransitionShares, ppr, push};
use lukasa_graph::walk::{Cap, Direction, Filter, Walk, walk};
use lukasa_graph::{Edge, Node, Projection, Snapshot};
use lukasa_model::Batch;
use lukasa_model::batch::{PutObject, PutRelationship};
use lukasa_store::ledger::ViewSpec;
use lukasa_testkit::Fixture;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Source, destination, type, confidence in tenths.
type Given = (usize, Vec<(u8, u8, bool, u8)>);

fn given() -> impl Strategy<Value = Given> {
    (1usize..9).prop_flat_map(|n| {
        let v = 0..n as u8;
        (Just(n), prop::collection::vec((v.clone(), v, any::<bool>(), 1u8..=10), 0..24))
    })
}

/// Builds a graph of `n` nodes, of which those with odd numbers have the label `odd`. Returns the nodes by number.
fn build((n, edges): &Given) -> (Arc<Snapshot>, Vec<Node>) {
    let fixture = Fixture::memory();
    let mut batch = Batch::on("main");
    for i in 0..*n {
        let labels = (i % 2 == 1).then(|| "odd".to_string()).into_iter().collect();
        let type_name = if i % 3 == 0 { "Third" } else { "Other" };
        batch.writes.push(PutObject { labels, ..PutObject::new(type_name, &format!("k{i}")) }.into());
    }
    for (place, (src, dst, calls, confidence)) in edges.iter().enumerate() {
        let (src, dst) = (format!("k{src}"), format!("k{dst}"));
        let put = PutRelationship::new(if *calls { "CALLS" } else { "USES" }, src.as_str(), dst.as_str());
        let (confidence, discriminator) = (Some(f64::from(*confidence) / 10.0), place.to_string());
        batch.writes.push(PutRelationship { confidence, discriminator, ..put }.into());
    }
    fixture.ledger.commit(&batch).unwrap();
    let view = fixture.ledger.view(&ViewSpec::default()).unwrap();
    let snapshot = Arc::clone(Projection::build(&fixture.ledger, &view, &mut |_, _| {}).unwrap().snapshot());
    let nodes = snapshot.nodes();
    assert_eq!(nodes.len(), *n);
    (snapshot, nodes)
}

fn sorted<T: Copy + Ord>(list: &[T]) -> BTreeSet<T> {
    list.iter().copied().collect()
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Out), Just(Direction::In), Just(Direction::Both)]
}

/// Every edge that a walk may follow, as (from, edge, to).
fn ways(s: &Snapshot, direction: Direction, filter: &Filter) -> Vec<(Node, Edge, Node)> {
    let mut all = Vec::new();
    for node in s.nodes() {
        for (_, edge, type_no) in s.outgoing(node).iter() {
            if filter.edge(s, edge, type_no) {
                let (src, dst) = s.ends(edge);
                if direction != Direction::In {
                    all.push((src, edge, dst));
                }
                if direction != Direction::Out && !(src == dst && direction == Direction::Both) {
                    all.push((dst, edge, src));
                }
            }
        }
    }
    all
}

/// Depth of every reachable node, by trying all edges for each depth.
fn reached(
    s: &Snapshot,
    roots: &[Node],
    ways: &[(Node, Edge, Node)],
    filter: &Filter,
    depth: u32,
) -> BTreeMap<Node, u32> {
    let mut found: BTreeMap<Node, u32> = roots.iter().map(|r| (*r, 0)).collect();
    for hop in 1..=depth {
        let layer: Vec<Node> = found.iter().filter(|(_, d)| **d == hop - 1).map(|(n, _)| *n).collect();
        for (from, _, to) in ways {
            if layer.contains(from) && filter.node(s, *to) {
                found.entry(*to).or_insert(hop);
            }
        }
    }
    found
}

fn filters(s: &Snapshot, which: u8) -> Filter {
    let by = |name: &str| Some(s.names().types().iter().map(|t| **t == *name).collect::<Vec<_>>());
    match which {
        0 => Filter::default(),
        1 => Filter { edge_types: by("CALLS"), ..Filter::default() },
        2 => Filter { node_types: by("Other"), ..Filter::default() },
        3 => Filter { label_sets: Some(Filter::label_sets(s, &["odd".into()])), ..Filter::default() },
        _ => Filter { min_confidence: Some(0.5), ..Filter::default() },
    }
}

/// All paths without a cycle from a node, with at most `depth` hops. Parallel edges are different paths.
fn simple(ways: &[(Node, Edge, Node)], from: Node, depth: u32) -> Vec<(Vec<Node>, Vec<Edge>)> {
    let mut all = vec![(vec![from], vec![])];
    let mut last = all.clone();
    for _ in 0..depth {
        let mut next = Vec::new();
        for (nodes, edges) in &last {
            for (a, edge, b) in ways {
                if a == nodes.last().unwrap() && !nodes.contains(b) {
                    let (mut nodes, mut edges) = (nodes.clone(), edges.clone());
                    nodes.push(*b);
                    edges.push(*edge);
                    next.push((nodes, edges));
                }
            }
        }
        all.extend(next.clone());
        last = next;
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_walk_finds_all_reachable_nodes_and_edges(g in given(), d in direction(), which in 0u8..5, depth in 0u32..4, a: u8, b: u8) {
        let (s, nodes) = build(&g);
        let roots = [nodes[a as usize % nodes.len()], nodes[b as usize % nodes.len()]];
        let filter = filters(&s, which);
        let plan = Walk { direction: d, depth, max_nodes: usize::MAX, max_edges: usize::MAX, filter: &filter };
        let found = walk(&s, &roots, &plan);
        let ways = ways(&s, d, &filter);
        let want = reached(&s, &roots, &ways, &filter, depth);
        let got: BTreeMap<Node, u32> = found.nodes.iter().enumerate().map(|(i, n)| (*n, found.depth(i))).collect();
        prop_assert_eq!(&got, &want);
        prop_assert_eq!(got.len(), found.nodes.len(), "each node once");
        let edges = found.edges(&s);
        let distinct: BTreeSet<Edge> = edges.iter().copied().collect();
        prop_assert_eq!((distinct.len(), edges.len()), (found.edge_count(), found.edge_count()), "each edge once");
        let led: BTreeSet<Edge> = ways.iter()
            .filter(|(from, _, to)| want.get(from).is_some_and(|d| *d < depth) && want.contains_key(to))
            .map(|(_, edge, _)| *edge).collect();
        prop_assert_eq!(distinct, led);
        let trails = found.trails(&s);
        for i in 0..found.nodes.len() {
            let (way, steps) = trails.path(i);
            prop_assert_eq!(steps.len() as u32, found.depth(i));
            prop_assert!(roots.contains(&way[0]) && way[way.len() - 1] == found.nodes[i]);
            for (step, edge) in steps.iter().enumerate() {
                prop_assert!(ways.contains(&(way[step], *edge, way[step + 1])));
            }
        }
        for (edge, place) in edges.iter().zip(&trails.edge_places) {
            let (src, dst) = s.ends(*edge);
            let at = |n: Node| found.nodes.iter().position(|m| *m == n).unwrap();
            prop_assert_eq!(*place as usize, at(src).max(at(dst)));
        }
        // A cap cuts the end of the same list, and is reported.
        for cap in 1..found.nodes.len() + 2 {
            let cut = walk(&s, &roots, &Walk { max_nodes: cap, ..plan.clone() });
            prop_assert_eq!(&cut.nodes[..], &found.nodes[..cap.min(found.nodes.len())]);
            prop_assert!(edges.starts_with(&cut.edges(&s)));
            prop_assert_eq!(cut.cut, (cap < found.nodes.len()).then_some(Cap::Node));
        }
        for cap in 1..edges.len() + 2 {
            let cut = walk(&s, &roots, &Walk { max_edges: cap, ..plan.clone() });
            prop_assert_eq!(&cut.edges(&s)[..], &edges[..cap.min(edges.len())]);
            prop_assert!(found.nodes.starts_with(&cut.nodes));
            prop_assert_eq!(cut.cut, (cap < edges.len()).then_some(Cap::Edge));
        }
    }

    #[test]
    fn the_shortest_path_is_a_path_of_least_length(g in given(), d in direction(), which in 0u8..5, a: u8, b: u8, depth in 1u32..9) {
        let (s, nodes) = build(&g);
        let (from, to) = (nodes[a as usize % nodes.len()], nodes[b as usize % nodes.len()]);
        let filter = filters(&s, which);
        let ways: Vec<_> = ways(&s, d, &filter);
        // The filter applies to nodes between the ends only.
        let inner: Vec<_> = ways.iter().copied()
            .filter(|(x, _, y)| [x, y].iter().all(|n| **n == from || **n == to || filter.node(&s, **n))).collect();
        let want = reached(&s, &[from], &inner, &Filter::default(), depth).get(&to).copied();
        let got = shortest(&s, from, to, d, &filter, depth);
        prop_assert_eq!(got.as_ref().map(|p| p.edges.len() as u32), want);
        if let Some(path) = got {
            prop_assert_eq!((path.nodes[0], *path.nodes.last().unwrap()), (from, to));
            for (i, edge) in path.edges.iter().enumerate() {
                prop_assert!(ways.contains(&(path.nodes[i], *edge, path.nodes[i + 1])));
            }
        }
    }

    #[test]
    fn all_paths_are_returned_shortest_first(g in given(), d in direction(), which in 0u8..5, a: u8, b: u8, depth in 1u32..5) {
        let (s, nodes) = build(&g);
        let (from, to) = (nodes[a as usize % nodes.len()], nodes[b as usize % nodes.len()]);
        let filter = filters(&s, which);
        let inner: Vec<_> = ways(&s, d, &filter).into_iter()
            .filter(|(x, _, y)| [x, y].iter().all(|n| **n == from || **n == to || filter.node(&s, **n))).collect();
        let want: BTreeSet<Vec<Node>> = simple(&inner, from, depth).into_iter().map(|(nodes, _)| nodes)
            .filter(|w| w.len() > 1 && *w.last().unwrap() == to && !w[..w.len() - 1].contains(&to)).collect();
        let (got, cut) = all_simple(&s, from, to, d, &filter, depth, 10_000);
        prop_assert_eq!(cut, None);
        prop_assert!(got.is_sorted_by_key(|p| p.edges.len()));
        let distinct: BTreeSet<Vec<Node>> = got.iter().map(|p| p.nodes.clone()).collect();
        prop_assert_eq!(distinct.len(), got.len(), "parallel edges count as one path");
        prop_assert_eq!(distinct, want);
        if got.len() > 1 {
            let (few, cut) = all_simple(&s, from, to, d, &filter, depth, 1);
            prop_assert_eq!((few.len(), &few[0], cut), (1, &got[0], Some(Cap::Path)));
        }
    }

    #[test]
    fn the_most_likely_path_has_the_largest_product(g in given(), d in direction(), a: u8, hops in 1u32..4, least in 0u8..8) {
        let (s, nodes) = build(&g);
        let root = nodes[a as usize % nodes.len()];
        let filter = Filter { min_confidence: Some(f64::from(least) / 10.0), ..Filter::default() };
        // A cycle never increases the product, so paths without one are enough.
        let mut want: BTreeMap<Node, f64> = BTreeMap::new();
        for (nodes, edges) in simple(&ways(&s, d, &filter), root, hops) {
            let product: f64 = edges.iter().map(|e| s.confidence(*e).unwrap()).product();
            let best = want.entry(*nodes.last().unwrap()).or_insert(0.0);
            *best = best.max(product);
        }
        let (got, explored, cut) = most_likely(&s, &[root], None, d, &filter, hops);
        prop_assert_eq!((explored, cut), (want.len(), None));
        want.remove(&root);
        prop_assert_eq!(got.len(), want.len());
        for sure in &got {
            prop_assert!((sure.confidence - want[&sure.node]).abs() < 1e-12);
            let product: f64 = sure.path.edges.iter().map(|e| s.confidence(*e).unwrap()).product();
            prop_assert!((sure.confidence - product).abs() < 1e-12);
            prop_assert_eq!(sure.path.edges.len() as u32, sure.hops);
        }
    }

    #[test]
    fn an_expansion_without_rules_is_a_walk(g in given(), d in direction(), which in 0u8..5, depth in 0u32..4, a: u8) {
        let (s, nodes) = build(&g);
        let roots = [nodes[a as usize % nodes.len()]];
        let phase = Phase { direction: d, filter: filters(&s, which) };
        let plan = |dedupe| ExpansionPlan {
            phases: vec![phase.clone(); depth as usize],
            dedupe,
            max_nodes: 1_000,
            max_edges: 1_000,
            max_paths: 100_000,
        };
        let wide = Walk { direction: d, depth, max_nodes: 1_000, max_edges: 1_000, filter: &phase.filter };
        let walked = walk(&s, &roots, &wide);
        for dedupe in [Dedupe::Node, Dedupe::Edge, Dedupe::Path] {
            let found = expand(&s, &roots, &plan(dedupe), &mut AcceptAll).unwrap();
            prop_assert_eq!(found.cut, None);
            prop_assert_eq!(sorted(&found.nodes), sorted(&walked.nodes), "{:?}", dedupe);
            if dedupe == Dedupe::Node {
                prop_assert_eq!(sorted(&found.edges), sorted(&walked.edges(&s)));
            }
        }
        let found = expand(&s, &roots, &plan(Dedupe::Path), &mut AcceptAll).unwrap();
        let free: Vec<_> = ways(&s, d, &phase.filter).into_iter().filter(|(_, _, to)| roots.contains(to) || phase.filter.node(&s, *to)).collect();
        let all = simple(&free, roots[0], depth);
        let longest: BTreeSet<_> = all.iter()
            .filter(|(_, edges)| !edges.is_empty())
            .filter(|(_, edges)| !all.iter().any(|(_, more)| more.len() > edges.len() && more.starts_with(edges)))
            .cloned().collect();
        prop_assert_eq!(found.paths.iter().cloned().collect::<BTreeSet<_>>(), longest);
    }

    #[test]
    fn forward_push_converges_to_power_iteration(g in given(), a: u8, b: u8) {
        let (s, nodes) = build(&g);
        let seeds = [(nodes[a as usize % nodes.len()], 1.0), (nodes[b as usize % nodes.len()], 0.5)];
        let weights = EdgeWeights::by_type(vec![0.9; s.names().types().len()], REVERSE);
        let flat = s.flat();
        let dense: Vec<_> = seeds.iter().map(|(n, w)| (flat.dense(*n).unwrap(), *w)).collect();
        let whole = ppr(&TransitionShares::new(flat, &weights), &dense, DAMPING, 300);
        let near: BTreeMap<Node, f64> = push(&s, &weights, &seeds, DAMPING, 1e-13).into_iter().collect();
        for (i, node) in flat.nodes.iter().enumerate() {
            prop_assert!((whole[i] - near.get(node).copied().unwrap_or(0.0)).abs() < 1e-8);
        }
    }
}

#[test]
fn a_phase_that_reaches_nothing_ends_the_expansion() {
    let (s, nodes) = build(&(3, vec![(0, 1, true, 10), (1, 2, false, 10)]));
    let hop = |name: &str, direction| Phase {
        direction,
        filter: Filter {
            edge_types: Some(s.names().types().iter().map(|t| **t == *name).collect()),
            ..Filter::default()
        },
    };
    let run = |phases: Vec<Phase>| {
        let plan = ExpansionPlan { phases, dedupe: Dedupe::Node, max_nodes: 10, max_edges: 10, max_paths: 10 };
        expand(&s, &[nodes[0]], &plan, &mut AcceptAll).unwrap()
    };
    let found = run(vec![hop("CALLS", Direction::Out), hop("USES", Direction::Out)]);
    assert_eq!((found.nodes, found.depth_reached, found.empty_phase), (nodes.clone(), 2, None));
    let found = run(vec![hop("USES", Direction::Out), hop("USES", Direction::Out)]);
    assert_eq!((found.nodes, found.empty_phase), (vec![nodes[0]], Some(1)));
}

#[test]
fn weights_come_from_defaults_declarations_and_the_caller() {
    use lukasa_model::types::{Ranking, RelationshipType};
    let fixture = Fixture::memory();
    let ledger = &fixture.ledger;
    let mut batch = Batch::on("main");
    batch.writes.extend(["a", "b", "c"].map(|k| PutObject::new("T", k).into()));
    batch.writes.push(PutRelationship::new("CALLS", "a", "b").into());
    batch.writes.push(PutRelationship::new("USES", "b", "c").into());
    ledger.commit(&batch).unwrap();
    let ranks = |given: &[(String, f64)], by_hand: Option<(f64, f64)>| {
        let view = ledger.view(&ViewSpec::default()).unwrap();
        let projection = Projection::build(ledger, &view, &mut |_, _| {}).unwrap();
        let s = projection.snapshot();
        let weights = match by_hand {
            None => EdgeWeights::new(s, &s.registry, given),
            Some((calls, reverse)) => {
                let by_name = |t: &Arc<str>| if **t == *"CALLS" { calls } else { 0.5 };
                EdgeWeights::by_type(s.names().types().iter().map(by_name).collect(), reverse)
            }
        };
        ppr(&TransitionShares::new(s.flat(), &weights), &[(1, 1.0)], DAMPING, 30)
    };
    assert_eq!(
        ranks(&[], None),
        ranks(&[], Some((0.9, REVERSE))),
        "0.9 for CALLS, 0.5 for others, half against the direction"
    );
    let given = [("calls".to_string(), 0.1)];
    assert_eq!(ranks(&given, None), ranks(&[], Some((0.1, REVERSE))), "the caller overrides them");
    let ranking = Ranking { base_weight: 0.3, reciprocal_boost: true, ..Ranking::default() };
    for name in ["CALLS", "USES"] {
        let ranking = if name == "USES" { Ranking { base_weight: 0.5, ..ranking } } else { ranking };
        let declared = RelationshipType { name: name.into(), ranking: Some(ranking), ..Default::default() };
        ledger.declare_relationship_type(&declared, &Default::default()).unwrap();
    }
    assert_eq!(ranks(&[], None), ranks(&[], Some((0.3, 1.0))), "a declaration sets the weight in both directions");
}
