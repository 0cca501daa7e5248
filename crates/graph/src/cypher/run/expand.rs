//! Follows relationships from a node: one, or a path of variable length.

use super::super::ast::Arrow;
use super::super::eval::Row;
use super::super::expr::{ExpandStep, QueryStep, VarLengthExpand};
use super::super::value::{Value, equals};
use super::{Executor, QueryStop, RowResult, RowSink, State};
use crate::contents::{PropertyNo, in_row};
use crate::snapshot::{Edge, EdgeList, Node, Snapshot};
use rustc_hash::FxHashSet;

/// The lists of a node's relationships that an arrow allows, each with whether it contains incoming ones.
#[inline]
pub(super) fn ways(snapshot: &Snapshot, node: Node, arrow: Arrow) -> [Option<(EdgeList<'_>, bool)>; 2] {
    match arrow {
        Arrow::Right => [Some((snapshot.outgoing(node), false)), None],
        Arrow::Left => [None, Some((snapshot.incoming(node), true))],
        Arrow::Either => [Some((snapshot.outgoing(node), false)), Some((snapshot.incoming(node), true))],
    }
}

pub(super) fn turned(arrow: Arrow) -> Arrow {
    match arrow {
        Arrow::Right => Arrow::Left,
        Arrow::Left => Arrow::Right,
        Arrow::Either => Arrow::Either,
    }
}

/// Most paths are short. From this many edges on, a set records which are on the path.
const SHORT: usize = 24;

#[derive(Default)]
struct Walked {
    edges: Vec<Edge>,
    more: FxHashSet<Edge>,
}

impl Walked {
    fn contains(&self, edge: Edge) -> bool {
        self.edges[..self.edges.len().min(SHORT)].contains(&edge) || self.more.contains(&edge)
    }

    fn push(&mut self, edge: Edge) {
        if self.edges.len() >= SHORT {
            self.more.insert(edge);
        }
        self.edges.push(edge);
    }

    fn pop(&mut self) {
        if let Some(edge) = self.edges.pop()
            && self.edges.len() >= SHORT
        {
            self.more.remove(&edge);
        }
    }
}

/// The neighbours of a node for which many neighbours are checked in a row.
#[derive(Default)]
pub(super) struct NeighborMarks {
    of: Node,
    /// How many checks there were in a row for this node.
    asked: u32,
    round: u32,
    stamps: Vec<u32>,
}

impl NeighborMarks {
    /// Whether `node` may be a neighbour of `of`. Always true for the first few checks, before the neighbours are
    /// marked.
    fn may_connect(&mut self, s: &Snapshot, e: &ExpandStep, of: Node, node: Node) -> bool {
        if self.asked == 0 || self.of != of {
            (self.of, self.asked) = (of, 1);
            return true;
        }
        self.asked = self.asked.saturating_add(1);
        if self.asked < 4 {
            return true;
        }
        if self.asked == 4 {
            self.stamps.resize(s.node_places(), 0);
            self.round += 1;
            for (links, _) in ways(s, of, turned(e.arrow)).into_iter().flatten() {
                links.nodes.iter().for_each(|other| self.stamps[other.index()] = self.round);
            }
        }
        self.stamps[node.index()] == self.round
    }
}

/// A node on the current path, and which of its relationships is next.
struct Level {
    node: Node,
    way: usize,
    next: usize,
}

impl Executor<'_> {
    pub(super) fn expand(
        &self,
        step: &QueryStep,
        e: &ExpandStep,
        rest: &[QueryStep],
        row: &mut Row,
        sink: RowSink<'_>,
    ) -> RowResult {
        let Value::Node(from) = row[e.from] else { return Ok(true) };
        if e.into {
            return self.close(step, e, from, rest, row, sink);
        }
        let s = &**self.snapshot;
        for (links, incoming) in ways(s, from, e.arrow).into_iter().flatten() {
            for i in 0..links.len() {
                let other = links.nodes[i];
                if !e.types.fits(links.types[i]) {
                    continue;
                }
                self.tick()?;
                // A relationship of a node with itself is in both lists.
                if incoming && other == from && e.arrow == Arrow::Either {
                    continue;
                }
                if !e.labels.iter().all(|l| l.node(s, other)) {
                    continue;
                }
                let edge = links.edges[i];
                if !e.unlike.is_empty() && self.is_one_of(edge, &e.unlike, row) {
                    continue;
                }
                row[e.edge] = Value::Edge(edge);
                row[e.to] = Value::Node(other);
                self.count(step, 1);
                if !self.run(rest, row, sink)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Both ends are bound: the lists of the end with fewer relationships are searched.
    fn close(
        &self,
        step: &QueryStep,
        e: &ExpandStep,
        from: Node,
        rest: &[QueryStep],
        row: &mut Row,
        sink: RowSink<'_>,
    ) -> RowResult {
        let Value::Node(to) = row[e.to] else { return Ok(true) };
        let s = &**self.snapshot;
        {
            let mut state = self.states[step.id].borrow_mut();
            if !matches!(*state, State::Marks(_)) {
                *state = State::Marks(NeighborMarks::default());
            }
            if let State::Marks(marks) = &mut *state
                && !marks.may_connect(s, e, to, from)
            {
                return Ok(true);
            }
        }
        let degree = |node: Node, arrow: Arrow| -> usize {
            ways(s, node, arrow).into_iter().flatten().map(|(links, _)| links.len()).sum()
        };
        let back = turned(e.arrow);
        let (here, there, arrow) =
            if degree(to, back) < degree(from, e.arrow) { (to, from, back) } else { (from, to, e.arrow) };
        for (links, incoming) in ways(s, here, arrow).into_iter().flatten() {
            if incoming && here == there && arrow == Arrow::Either {
                continue;
            }
            for i in 0..links.len() {
                if links.nodes[i] != there || !e.types.fits(links.types[i]) {
                    continue;
                }
                self.tick()?;
                let edge = links.edges[i];
                if !e.unlike.is_empty() && self.is_one_of(edge, &e.unlike, row) {
                    continue;
                }
                row[e.edge] = Value::Edge(edge);
                self.count(step, 1);
                if !self.run(rest, row, sink)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Values of properties that every relationship of a path must have.
    pub(super) fn wanted(
        &self,
        stretch: &VarLengthExpand,
        row: &mut Row,
    ) -> Result<Vec<(PropertyNo, Value)>, QueryStop> {
        stretch.each.iter().map(|(number, ex)| Ok((*number, self.eval(ex, row)?))).collect()
    }

    pub(super) fn has_values(&self, edge: Edge, wanted: &[(PropertyNo, Value)]) -> Result<bool, QueryStop> {
        if wanted.is_empty() {
            return Ok(true);
        }
        let own = self.contents.edge(edge)?;
        Ok(wanted.iter().all(|(number, value)| in_row(own, *number).and_then(|v| equals(v, value)) == Some(true)))
    }

    pub(super) fn stretch(
        &self,
        step: &QueryStep,
        stretch: &VarLengthExpand,
        rest: &[QueryStep],
        row: &mut Row,
        sink: RowSink<'_>,
    ) -> RowResult {
        let e = &stretch.expand;
        let Value::Node(from) = row[e.from] else { return Ok(true) };
        let s = &**self.snapshot;
        let into = if e.into {
            let Value::Node(to) = row[e.to] else { return Ok(true) };
            Some(to)
        } else {
            None
        };
        let wanted = self.wanted(stretch, row)?;
        if stretch.reach {
            return self.reach(step, stretch, from, &wanted, rest, row, sink);
        }
        let mut path = Walked::default();
        let mut give = |node: Node, edges: &[Edge], row: &mut Row| -> RowResult {
            match into {
                Some(to) if to != node => return Ok(true),
                None if !e.labels.iter().all(|l| l.node(s, node)) => return Ok(true),
                _ => {}
            }
            if stretch.keep {
                let mut list: Vec<Value> = edges.iter().map(|e| Value::Edge(*e)).collect();
                if stretch.turned {
                    list.reverse();
                }
                row[e.edge] = Value::list(list);
            }
            row[e.to] = Value::Node(node);
            self.count(step, 1);
            self.run(rest, row, sink)
        };
        if stretch.least == 0 && !give(from, &[], row)? {
            return Ok(false);
        }
        if stretch.most == 0 {
            return Ok(true);
        }
        let mut levels = vec![Level { node: from, way: 0, next: 0 }];
        while let Some(level) = levels.last_mut() {
            self.tick()?;
            let Some((links, incoming)) = ways(s, level.node, e.arrow)[level.way] else {
                if level.way == 1 {
                    levels.pop();
                    path.pop();
                } else {
                    level.way = 1;
                }
                continue;
            };
            if level.next == links.len() {
                if level.way == 1 {
                    levels.pop();
                    path.pop();
                } else {
                    (level.way, level.next) = (1, 0);
                }
                continue;
            }
            let i = level.next;
            level.next += 1;
            let (other, edge) = (links.nodes[i], links.edges[i]);
            let twice = incoming && other == level.node && e.arrow == Arrow::Either;
            if twice || !e.types.fits(links.types[i]) || path.contains(edge) {
                continue;
            }
            if self.is_one_of(edge, &e.unlike, row) || !self.has_values(edge, &wanted)? {
                continue;
            }
            path.push(edge);
            let length = path.edges.len() as u64;
            if length >= stretch.least && !give(other, &path.edges, row)? {
                return Ok(false);
            }
            if length < stretch.most {
                levels.push(Level { node: other, way: 0, next: 0 });
            } else {
                path.pop();
            }
        }
        Ok(true)
    }

    /// Passes on every reachable node once.
    #[expect(clippy::too_many_arguments, reason = "a step, taken apart once")]
    fn reach(
        &self,
        step: &QueryStep,
        stretch: &VarLengthExpand,
        from: Node,
        wanted: &[(PropertyNo, Value)],
        rest: &[QueryStep],
        row: &mut Row,
        sink: RowSink<'_>,
    ) -> RowResult {
        let e = &stretch.expand;
        let s = &**self.snapshot;
        let mut give = |node: Node, row: &mut Row| -> RowResult {
            if !e.labels.iter().all(|l| l.node(s, node)) {
                return Ok(true);
            }
            row[e.to] = Value::Node(node);
            self.count(step, 1);
            self.run(rest, row, sink)
        };
        let mut seen: FxHashSet<Node> = FxHashSet::default();
        let mut border = vec![from];
        let mut depth = 0;
        let mut more = true;
        if stretch.least == 0 {
            seen.insert(from);
            more = give(from, row)?;
        }
        while more && !border.is_empty() && depth < stretch.most {
            depth += 1;
            let mut next = Vec::new();
            for node in border {
                for (links, _) in ways(s, node, e.arrow).into_iter().flatten() {
                    for i in 0..links.len() {
                        self.tick()?;
                        let other = links.nodes[i];
                        if !more || !e.types.fits(links.types[i]) || seen.contains(&other) {
                            continue;
                        }
                        if !self.has_values(links.edges[i], wanted)? {
                            continue;
                        }
                        seen.insert(other);
                        self.charge(16)?;
                        next.push(other);
                        more = give(other, row)?;
                    }
                }
            }
            border = next;
        }
        self.release(16 * seen.len());
        Ok(more)
    }
}
