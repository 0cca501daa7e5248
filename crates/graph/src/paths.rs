//! Paths between nodes: the shortest, all within a length, and the most likely ones.

use crate::snapshot::{Edge, Node, Snapshot};
use crate::walk::{Cap, Direction, Filter, sides};
use rustc_hash::FxHashMap;

/// A path: nodes, and the edges between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePath {
    /// From the first to the last, both included.
    pub nodes: Vec<Node>,
    /// One fewer than nodes.
    pub edges: Vec<Edge>,
}

/// Neighbours along the edges that may be followed. Nodes other than the ends of a path must pass the filter too.
fn steps<'a>(
    snapshot: &'a Snapshot,
    node: Node,
    direction: Direction,
    filter: &'a Filter,
) -> impl Iterator<Item = (Node, Edge)> + 'a {
    sides(snapshot, node, direction)
        .flat_map(|(links, _)| links.iter())
        .filter(move |(_, edge, type_no)| filter.edge(snapshot, *edge, *type_no))
        .map(|(other, edge, _)| (other, edge))
}

type Tree = FxHashMap<Node, Option<(Node, Edge)>>;

/// A shortest path of at most `depth` hops, searched from both ends at once. Among paths of equal length, the one whose
/// middle node has the lowest fact number.
pub fn shortest(
    snapshot: &Snapshot,
    from: Node,
    to: Node,
    direction: Direction,
    filter: &Filter,
    depth: u32,
) -> Option<NodePath> {
    if from == to {
        return Some(NodePath { nodes: vec![from], edges: vec![] });
    }
    let mut trees: [Tree; 2] = [Tree::from_iter([(from, None)]), Tree::from_iter([(to, None)])];
    let mut frontiers = [vec![from], vec![to]];
    let directions = [direction, direction.turned()];
    let ends = [to, from];
    for _ in 0..depth {
        let side = usize::from(frontiers[1].len() < frontiers[0].len());
        let mut next = Vec::new();
        for &node in &frontiers[side] {
            for (other, edge) in steps(snapshot, node, directions[side], filter) {
                if !trees[side].contains_key(&other) && (other == ends[side] || filter.node(snapshot, other)) {
                    trees[side].insert(other, Some((node, edge)));
                    next.push(other);
                }
            }
        }
        let met = next.iter().filter(|n| trees[1 - side].contains_key(n)).min_by_key(|n| snapshot.thing(**n));
        if let Some(&middle) = met {
            return Some(join(&trees, middle));
        }
        if next.is_empty() {
            return None;
        }
        frontiers[side] = next;
    }
    None
}

fn join(trees: &[Tree; 2], middle: Node) -> NodePath {
    let trail = |tree: &Tree| {
        let (mut nodes, mut edges, mut at) = (vec![middle], vec![], middle);
        while let Some((before, edge)) = tree[&at] {
            nodes.push(before);
            edges.push(edge);
            at = before;
        }
        (nodes, edges)
    };
    let (mut nodes, mut edges) = trail(&trees[0]);
    nodes.reverse();
    edges.reverse();
    let (rest, more) = trail(&trees[1]);
    nodes.extend(&rest[1..]);
    edges.extend(more);
    NodePath { nodes, edges }
}

/// The most edges that a search for all paths examines.
const STEPS: usize = 2_000_000;

/// Paths without a cycle, the shortest first: at most `limit`, each of at most `depth` hops. Parallel edges count as
/// one path. Also returns the cap that cut the list, if one did.
pub fn all_simple(
    snapshot: &Snapshot,
    from: Node,
    to: Node,
    direction: Direction,
    filter: &Filter,
    depth: u32,
    limit: usize,
) -> (Vec<NodePath>, Option<Cap>) {
    // The distance of each node from the goal: nodes that are too far away are not entered.
    let mut left: FxHashMap<Node, u32> = FxHashMap::from_iter([(to, 0)]);
    let mut frontier = vec![to];
    for hops in 1..=depth {
        let mut next = Vec::new();
        for &node in &frontier {
            for (other, _) in steps(snapshot, node, direction.turned(), filter) {
                if !left.contains_key(&other) && (other == from || filter.node(snapshot, other)) {
                    left.insert(other, hops);
                    next.push(other);
                }
            }
        }
        frontier = next;
    }
    let mut search = Search { snapshot, to, direction, filter, left, limit, scanned: 0, found: vec![], cut: None };
    for hops in 1..=depth {
        if search.cut.is_some() || !search.left.contains_key(&from) {
            break;
        }
        search.go(&mut NodePath { nodes: vec![from], edges: vec![] }, hops);
    }
    (search.found, search.cut)
}

struct Search<'a> {
    snapshot: &'a Snapshot,
    to: Node,
    direction: Direction,
    filter: &'a Filter,
    left: FxHashMap<Node, u32>,
    limit: usize,
    scanned: usize,
    found: Vec<NodePath>,
    cut: Option<Cap>,
}

impl Search<'_> {
    /// Extends the path by exactly `hops` more hops.
    fn go(&mut self, way: &mut NodePath, hops: u32) {
        let Some(&node) = way.nodes.last() else { return };
        let mut tried: Vec<Node> = Vec::new();
        let all: Vec<_> = steps(self.snapshot, node, self.direction, self.filter).collect();
        for (other, edge) in all {
            self.scanned += 1;
            if self.scanned > STEPS {
                self.cut = Some(Cap::Steps);
            }
            if self.cut.is_some() {
                return;
            }
            let arrives = other == self.to;
            let in_time = self.left.get(&other).is_some_and(|left| *left < hops) && (arrives == (hops == 1));
            if !in_time || way.nodes.contains(&other) || tried.contains(&other) {
                continue;
            }
            tried.push(other);
            way.nodes.push(other);
            way.edges.push(edge);
            if !arrives {
                self.go(way, hops - 1);
            } else if self.found.len() == self.limit {
                self.cut = Some(Cap::Path);
            } else {
                self.found.push(way.clone());
            }
            way.nodes.pop();
            way.edges.pop();
        }
    }
}

/// A node and the most likely path to it.
#[derive(Clone, Debug, PartialEq)]
pub struct LikelyPath {
    pub node: Node,
    /// The number of edges of the path.
    pub hops: u32,
    /// Product of the confidences along the path.
    pub confidence: f64,
    pub path: NodePath,
}

/// The most nodes that a search for likely paths examines.
const EXPLORED: usize = 100_000;

/// All nodes within some hops of the roots, each with its most likely path. Edges without a confidence count as
/// certain. The result leaves out the roots, and contains a `goal` whatever the filter excludes. Also returns how many
/// nodes were examined, and whether the search was cut.
pub fn most_likely(
    snapshot: &Snapshot,
    roots: &[Node],
    goal: Option<Node>,
    direction: Direction,
    filter: &Filter,
    hops: u32,
) -> (Vec<LikelyPath>, usize, Option<Cap>) {
    struct Step {
        before: usize,
        edge: Option<Edge>,
        node: Node,
        hops: u32,
        confidence: f64,
    }
    let mut trail: Vec<Step> = Vec::new();
    let mut best: FxHashMap<Node, usize> = FxHashMap::default();
    let mut order: Vec<Node> = Vec::new();
    for root in roots {
        if best.insert(*root, trail.len()).is_none() {
            order.push(*root);
        }
        trail.push(Step { before: usize::MAX, edge: None, node: *root, hops: 0, confidence: 1.0 });
    }
    let mut frontier: Vec<usize> = (0..trail.len()).collect();
    let mut cut = None;
    'hops: for hop in 1..=hops {
        let mut improved: Vec<Node> = Vec::new();
        for &step in &frontier {
            let (node, so_far) = (trail[step].node, trail[step].confidence);
            for (other, edge) in steps(snapshot, node, direction, filter) {
                let confidence = so_far * snapshot.confidence(edge).unwrap_or(1.0);
                let known = best.get(&other).map(|b| &trail[*b]);
                if known.is_some_and(|k| k.confidence >= confidence)
                    || !(filter.node(snapshot, other) || goal == Some(other))
                {
                    continue;
                }
                if known.is_none() {
                    if order.len() == EXPLORED {
                        cut = Some(Cap::Steps);
                        break 'hops;
                    }
                    order.push(other);
                }
                if known.is_none_or(|k| k.hops < hop) {
                    improved.push(other);
                }
                best.insert(other, trail.len());
                trail.push(Step { before: step, edge: Some(edge), node: other, hops: hop, confidence });
            }
        }
        frontier = improved.iter().map(|node| best[node]).collect();
        if frontier.is_empty() {
            break;
        }
    }
    let paths = order.iter().map(|node| best[node]).filter(|step| trail[*step].hops > 0).map(|last| {
        let (mut path, mut at) = (NodePath { nodes: vec![], edges: vec![] }, last);
        while at != usize::MAX {
            path.nodes.push(trail[at].node);
            path.edges.extend(trail[at].edge);
            at = trail[at].before;
        }
        path.nodes.reverse();
        path.edges.reverse();
        LikelyPath { node: trail[last].node, hops: trail[last].hops, confidence: trail[last].confidence, path }
    });
    (paths.collect(), order.len(), cut)
}
