//! Shortest paths between two nodes: one by a search from both ends, or all of them level by level.

use super::super::ast::{Arrow, Shortest};
use super::super::eval::Row;
use super::super::expr::{QueryStep, ShortestPathStep};
use super::super::value::{PathValue, Value};
use super::expand::{turned, ways};
use super::{Executor, QueryStop, RowResult, RowSink};
use crate::contents::PropertyNo;
use crate::snapshot::{Edge, Node};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What was reached from one end: for each node, the node before it and the edge.
#[derive(Default)]
struct Side {
    reached: FxHashMap<Node, (Node, Edge)>,
    border: Vec<Node>,
    depth: u64,
}

impl Executor<'_> {
    pub(super) fn nearest(
        &self,
        step: &QueryStep,
        nearest: &ShortestPathStep,
        rest: &[QueryStep],
        row: &mut Row,
        sink: RowSink<'_>,
    ) -> RowResult {
        let e = &nearest.stretch.expand;
        let (Value::Node(from), Value::Node(to)) = (&row[e.from], &row[e.to]) else { return Ok(true) };
        let (from, to) = (*from, *to);
        let wanted = self.wanted(&nearest.stretch, row)?;
        let mut give = |path: PathValue, row: &mut Row| -> RowResult {
            row[e.edge] = Value::list(path.edges.iter().map(|e| Value::Edge(*e)).collect());
            row[nearest.path] = Value::Path(Arc::new(path));
            self.count(step, 1);
            self.run(rest, row, sink)
        };
        if from == to {
            // No path is shorter than the empty one.
            return if nearest.stretch.least == 0 {
                give(PathValue { nodes: vec![from], edges: vec![] }, row)
            } else {
                Ok(true)
            };
        }
        match nearest.which {
            Shortest::One => match self.one(nearest, from, to, &wanted, row)? {
                Some(path) => give(path, row),
                None => Ok(true),
            },
            Shortest::All => self.all(nearest, from, to, &wanted, row, &mut give),
        }
    }

    /// Relationships that may be followed from a node, with their other nodes.
    fn around(
        &self,
        nearest: &ShortestPathStep,
        node: Node,
        arrow: Arrow,
        wanted: &[(PropertyNo, Value)],
        row: &Row,
        mut visit: impl FnMut(Node, Edge) -> Result<(), QueryStop>,
    ) -> Result<(), QueryStop> {
        let e = &nearest.stretch.expand;
        for (links, _) in ways(self.snapshot, node, arrow).into_iter().flatten() {
            for i in 0..links.len() {
                self.tick()?;
                let edge = links.edges[i];
                if e.types.fits(links.types[i])
                    && !self.is_one_of(edge, &e.unlike, row)
                    && self.has_values(edge, wanted)?
                {
                    visit(links.nodes[i], edge)?;
                }
            }
        }
        Ok(())
    }

    fn one(
        &self,
        nearest: &ShortestPathStep,
        from: Node,
        to: Node,
        wanted: &[(PropertyNo, Value)],
        row: &Row,
    ) -> Result<Option<PathValue>, QueryStop> {
        let side = |node: Node| Side { border: vec![node], ..Side::default() };
        let (mut ahead, mut back) = (side(from), side(to));
        let most = nearest.stretch.most;
        let forth = nearest.stretch.expand.arrow;
        while !ahead.border.is_empty() && !back.border.is_empty() && ahead.depth + back.depth < most {
            let forward = ahead.border.len() <= back.border.len();
            let (near, far, start, goal, arrow) = if forward {
                (&mut ahead, &back, from, to, forth)
            } else {
                (&mut back, &ahead, to, from, turned(forth))
            };
            let mut next = Vec::new();
            let mut met: Option<Node> = None;
            for node in std::mem::take(&mut near.border) {
                let reached = &mut near.reached;
                self.around(nearest, node, arrow, wanted, row, |other, edge| {
                    if other != start && !reached.contains_key(&other) {
                        reached.insert(other, (node, edge));
                        next.push(other);
                        if met.is_none() && (other == goal || far.reached.contains_key(&other)) {
                            met = Some(other);
                        }
                    }
                    Ok(())
                })?;
                if met.is_some() {
                    break;
                }
            }
            if let Some(middle) = met {
                return Ok(Some(joined(&ahead, &back, from, to, middle)));
            }
            near.border = next;
            near.depth += 1;
        }
        Ok(None)
    }

    fn all(
        &self,
        nearest: &ShortestPathStep,
        from: Node,
        to: Node,
        wanted: &[(PropertyNo, Value)],
        row: &mut Row,
        give: &mut dyn FnMut(PathValue, &mut Row) -> RowResult,
    ) -> RowResult {
        let arrow = nearest.stretch.expand.arrow;
        let mut levels: FxHashMap<Node, u64> = FxHashMap::from_iter([(from, 0)]);
        let mut before: FxHashMap<Node, Vec<(Node, Edge)>> = FxHashMap::default();
        let mut border = vec![from];
        let mut depth = 0;
        while !border.is_empty() && depth < nearest.stretch.most && !levels.contains_key(&to) {
            depth += 1;
            let mut next = Vec::new();
            for node in border {
                self.around(nearest, node, arrow, wanted, row, |other, edge| {
                    let level = *levels.entry(other).or_insert_with(|| {
                        next.push(other);
                        depth
                    });
                    if level == depth {
                        before.entry(other).or_default().push((node, edge));
                    }
                    Ok(())
                })?;
            }
            border = next;
        }
        if !levels.contains_key(&to) {
            return Ok(true);
        }
        // Follows all paths back to the start.
        let mut trail: Vec<(Node, usize)> = vec![(to, 0)];
        let mut edges: Vec<Edge> = Vec::new();
        while let Some((node, next)) = trail.last_mut() {
            self.tick()?;
            if *node == from {
                let mut path = PathValue { nodes: trail.iter().map(|(n, _)| *n).collect(), edges: edges.clone() };
                path.nodes.reverse();
                path.edges.reverse();
                if !give(path, row)? {
                    return Ok(false);
                }
                trail.pop();
                edges.pop();
                continue;
            }
            let options = before.get(node).map_or(&[][..], Vec::as_slice);
            match options.get(*next) {
                Some((previous, edge)) => {
                    *next += 1;
                    trail.push((*previous, 0));
                    edges.push(*edge);
                }
                None => {
                    trail.pop();
                    edges.pop();
                }
            }
        }
        Ok(true)
    }
}

fn joined(ahead: &Side, back: &Side, from: Node, to: Node, middle: Node) -> PathValue {
    let mut path = PathValue { nodes: vec![middle], edges: vec![] };
    let mut node = middle;
    while node != from {
        let (previous, edge) = ahead.reached[&node];
        path.nodes.push(previous);
        path.edges.push(edge);
        node = previous;
    }
    path.nodes.reverse();
    path.edges.reverse();
    node = middle;
    while node != to {
        let (next, edge) = back.reached[&node];
        path.nodes.push(next);
        path.edges.push(edge);
        node = next;
    }
    path
}
