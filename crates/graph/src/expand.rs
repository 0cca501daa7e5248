//! Expands a graph hop by hop, with separate rules for each hop, and checks contents if a rule needs them.

use crate::snapshot::{Edge, Node, Snapshot};
use crate::walk::{Cap, Direction, Filter, sides};
use lukasa_model::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an expansion visits at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dedupe {
    /// A node is expanded once, when it is first reached.
    #[default]
    Node,
    /// An edge is followed once. A node may be expanded at several depths.
    Edge,
    /// Every path without a cycle is followed.
    Path,
}

/// The rules of one hop.
#[derive(Clone, Debug, Default)]
pub struct Phase {
    /// The direction in which edges are followed.
    pub direction: Direction,
    /// The edges and nodes that are allowed.
    pub filter: Filter,
}

/// The parameters of an expansion.
#[derive(Clone, Debug)]
pub struct ExpansionPlan {
    /// One for each hop.
    pub phases: Vec<Phase>,
    /// What is visited only once.
    pub dedupe: Dedupe,
    /// The most nodes to return, roots included.
    pub max_nodes: usize,
    /// The most edges to return.
    pub max_edges: usize,
    /// The most paths to return. 0 returns none.
    pub max_paths: usize,
}

/// Checks edges and nodes by their contents, a layer at a time. Each call returns one answer per item, in order.
pub trait ContentFilter {
    fn edges(&mut self, edges: &[Edge]) -> Result<Vec<bool>>;
    fn nodes(&mut self, nodes: &[Node]) -> Result<Vec<bool>>;
}

/// Accepts every edge and every node.
pub struct AcceptAll;

impl ContentFilter for AcceptAll {
    fn edges(&mut self, edges: &[Edge]) -> Result<Vec<bool>> {
        Ok(vec![true; edges.len()])
    }

    fn nodes(&mut self, nodes: &[Node]) -> Result<Vec<bool>> {
        Ok(vec![true; nodes.len()])
    }
}

/// Nodes and edges in the order they were found, roots first.
#[derive(Clone, Debug, Default)]
pub struct ExpandedGraph {
    pub nodes: Vec<Node>,
    /// The hop that first reached each node.
    pub depths: Vec<u32>,
    pub edges: Vec<Edge>,
    /// The hop that first followed each edge, from 1.
    pub edge_depths: Vec<u32>,
    /// Whether the edge was first followed against its direction.
    pub against: Vec<bool>,
    /// Paths that could not be extended: nodes, and the edges between them.
    pub paths: Vec<(Vec<Node>, Vec<Edge>)>,
    /// The cap that was reached first; `None` if nothing was cut.
    pub cut: Option<Cap>,
    /// Edges examined.
    pub scanned: usize,
    /// Nodes that a rule excluded.
    pub refused: usize,
    /// The last hop that reached a node; 0 if none did.
    pub depth_reached: u32,
    /// The first hop that reached nothing to expand, from 1.
    pub empty_phase: Option<u32>,
}

/// The most edges that one expansion examines. Larger ones are cut.
const STEPS: usize = 1_000_000;

/// The most paths kept in memory when every path without a cycle is followed.
const WAYS: usize = 100_000;

/// The last step of a path: the step before it, the edge and the node.
struct Step {
    before: usize,
    edge: Option<Edge>,
    node: Node,
    gone_on: bool,
}

/// Runs the phases in order, until one reaches nothing.
pub fn expand(
    snapshot: &Snapshot,
    roots: &[Node],
    plan: &ExpansionPlan,
    judge: &mut dyn ContentFilter,
) -> Result<ExpandedGraph> {
    let mut state =
        State { snapshot, plan, found: ExpandedGraph::default(), places: FxHashMap::default(), steps: vec![] };
    let mut frontier = vec![];
    for root in roots {
        if state.places.contains_key(root) {
            continue;
        }
        if !state.list(*root, 0) {
            return Ok(state.finish());
        }
        state.steps.push(Step { before: usize::MAX, edge: None, node: *root, gone_on: false });
        frontier.push(state.steps.len() - 1);
    }
    let mut walked: FxHashMap<Edge, bool> = FxHashMap::default();
    let mut judged: FxHashMap<Node, bool> = FxHashMap::default();
    for (hop, phase) in (1..).zip(&plan.phases) {
        let (candidates, complete) = state.candidates(&frontier, phase);
        state.judge(&candidates, judge, &mut walked, &mut judged)?;
        let (next, more) = state.accept(&candidates, hop, &walked, &judged);
        if !complete {
            state.found.cut = Some(Cap::Steps);
        }
        if next.is_empty() && state.found.cut.is_none() {
            state.found.empty_phase = Some(hop);
        }
        if next.is_empty() || !more || !complete {
            break;
        }
        frontier = next;
    }
    Ok(state.finish())
}

struct State<'a> {
    snapshot: &'a Snapshot,
    plan: &'a ExpansionPlan,
    found: ExpandedGraph,
    places: FxHashMap<Node, usize>,
    steps: Vec<Step>,
}

/// A possible next step: from a step, by an edge (against its direction or not), to a node.
struct Candidate {
    step: usize,
    edge: Edge,
    node: Node,
    against: bool,
}

impl State<'_> {
    /// Adds a node to the result if it is new. Returns `false` if the result is full.
    fn list(&mut self, node: Node, depth: u32) -> bool {
        if self.places.contains_key(&node) {
            return true;
        }
        if self.found.nodes.len() == self.plan.max_nodes {
            self.found.cut = Some(Cap::Node);
            return false;
        }
        self.places.insert(node, self.found.nodes.len());
        self.found.nodes.push(node);
        self.found.depths.push(depth);
        self.found.depth_reached = self.found.depth_reached.max(depth);
        true
    }

    /// Roots are named by the caller, so no rule excludes them.
    fn is_root(&self, node: Node) -> bool {
        self.places.get(&node).is_some_and(|place| self.found.depths[*place] == 0)
    }

    fn candidates(&mut self, frontier: &[usize], phase: &Phase) -> (Vec<Candidate>, bool) {
        let mut all = Vec::new();
        for &step in frontier {
            let node = self.steps[step].node;
            for (links, outgoing) in sides(self.snapshot, node, phase.direction) {
                for (other, edge, type_no) in links.iter() {
                    if self.found.scanned == STEPS {
                        return (all, false);
                    }
                    self.found.scanned += 1;
                    // An edge from a node to itself is followed once, as an outgoing one.
                    let twice = other == node && !outgoing && phase.direction == Direction::Both;
                    if twice || !phase.filter.edge(self.snapshot, edge, type_no) {
                        continue;
                    }
                    if self.is_root(other) || phase.filter.node(self.snapshot, other) {
                        all.push(Candidate { step, edge, node: other, against: !outgoing });
                    } else {
                        self.found.refused += 1;
                    }
                }
            }
        }
        (all, true)
    }

    fn judge(
        &mut self,
        candidates: &[Candidate],
        judge: &mut dyn ContentFilter,
        walked: &mut FxHashMap<Edge, bool>,
        judged: &mut FxHashMap<Node, bool>,
    ) -> Result<()> {
        let mut seen = FxHashSet::default();
        let edges: Vec<Edge> =
            candidates.iter().map(|c| c.edge).filter(|e| !walked.contains_key(e) && seen.insert(*e)).collect();
        walked.extend(edges.iter().copied().zip(judge.edges(&edges)?));
        let mut seen = FxHashSet::default();
        let open = candidates.iter().filter(|c| walked[&c.edge]).map(|c| c.node);
        let nodes: Vec<Node> =
            open.filter(|n| !judged.contains_key(n) && !self.is_root(*n) && seen.insert(*n)).collect();
        let answers = judge.nodes(&nodes)?;
        self.found.refused += answers.iter().filter(|a| !**a).count();
        judged.extend(nodes.into_iter().zip(answers));
        Ok(())
    }

    /// Adds the accepted candidates. Returns the steps to expand next, and whether there is room for more.
    fn accept(
        &mut self,
        candidates: &[Candidate],
        hop: u32,
        walked: &FxHashMap<Edge, bool>,
        judged: &FxHashMap<Node, bool>,
    ) -> (Vec<usize>, bool) {
        let mut next = Vec::new();
        let mut in_layer: FxHashSet<Node> = FxHashSet::default();
        let mut listed: FxHashSet<Edge> = self.found.edges.iter().copied().collect();
        for c in candidates {
            let refused = !walked[&c.edge] || judged.get(&c.node) == Some(&false);
            if refused || self.plan.dedupe == Dedupe::Path && self.passed(c.step, c.node) {
                continue;
            }
            let new_node = !self.places.contains_key(&c.node);
            let new_edge = !listed.contains(&c.edge);
            if new_edge && self.found.edges.len() == self.plan.max_edges {
                self.found.cut = Some(Cap::Edge);
                return (next, false);
            }
            if !self.list(c.node, hop) {
                return (next, false);
            }
            if new_edge {
                listed.insert(c.edge);
                self.found.edges.push(c.edge);
                self.found.edge_depths.push(hop);
                self.found.against.push(c.against);
            }
            let go_on = match self.plan.dedupe {
                Dedupe::Node => new_node,
                Dedupe::Edge => new_edge && in_layer.insert(c.node),
                Dedupe::Path => true,
            };
            if !go_on {
                continue;
            }
            if self.plan.dedupe == Dedupe::Path && self.steps.len() >= WAYS {
                self.found.cut = Some(Cap::Path);
                return (next, false);
            }
            self.steps[c.step].gone_on = true;
            self.steps.push(Step { before: c.step, edge: Some(c.edge), node: c.node, gone_on: false });
            next.push(self.steps.len() - 1);
        }
        (next, true)
    }

    /// Whether the path to a step contains a node.
    fn passed(&self, mut step: usize, node: Node) -> bool {
        loop {
            if self.steps[step].node == node {
                return true;
            }
            step = self.steps[step].before;
            if step == usize::MAX {
                return false;
            }
        }
    }

    fn finish(mut self) -> ExpandedGraph {
        if self.plan.max_paths == 0 {
            return self.found;
        }
        for last in 0..self.steps.len() {
            if self.steps[last].gone_on || self.steps[last].edge.is_none() {
                continue;
            }
            if self.found.paths.len() == self.plan.max_paths {
                self.found.cut = self.found.cut.or(Some(Cap::Path));
                break;
            }
            let (mut nodes, mut edges, mut at) = (vec![], vec![], last);
            while at != usize::MAX {
                let step = &self.steps[at];
                nodes.push(step.node);
                edges.extend(step.edge);
                at = step.before;
            }
            nodes.reverse();
            edges.reverse();
            self.found.paths.push((nodes, edges));
        }
        self.found
    }
}
