//! Plans a MATCH: starts with the fewest nodes, follows the relationships that lead to the fewest more, and applies
//! every condition as early as possible.

use super::super::ast::{Arrow, ComparisonOperator, Operator};
use super::super::expr::{
    EdgeTypes, ExpandStep, GraphFunction, LabelTest, PlanExpr, PlanExprKind, QueryStep, QueryStepKind, ScanSource,
    ShortestPathStep, Slot, VarLengthExpand,
};
use super::Compiler;
use super::expr::property_of;
use super::pattern::{MatchPattern, PatternEdge};
use crate::contents::KEY;
use crate::snapshot::TypeNo;

/// A condition and the slots that it needs.
struct Condition {
    ex: Option<PlanExpr>,
    needs: Vec<Slot>,
    /// Whether it was used to look the node up.
    sure: bool,
}

/// How to find the first node, and how many nodes are expected.
struct Start {
    source: ScanSource,
    rows: f64,
}

impl Compiler<'_> {
    pub(super) fn plan(&mut self, wanted: MatchPattern) -> Vec<QueryStep> {
        let MatchPattern { mut nodes, mut links, trails, conditions, mut bound } = wanted;
        for node in nodes.iter_mut().filter(|n| !bound.contains(&n.slot) && n.linked) {
            // A label that all nodes have need not be checked for each.
            if node.labels.len() == 1 && self.all_have(&node.labels[0]) {
                node.everything = node.labels.pop();
            }
        }
        let mut own: Vec<Slot> = nodes.iter().map(|n| n.slot).chain(links.iter().map(|l| l.slot)).collect();
        own.extend(trails.iter().map(|t| t.slot));
        own.extend(links.iter().filter_map(|l| l.shortest.map(|(_, path)| path)));
        let needs = |ex: &PlanExpr| {
            let mut slots = Vec::new();
            ex.slots(&mut slots);
            slots.retain(|s| own.contains(s));
            slots.sort_unstable();
            slots.dedup();
            slots
        };
        let mut conditions: Vec<Condition> =
            conditions.into_iter().map(|ex| Condition { needs: needs(&ex), ex: Some(ex), sure: false }).collect();
        let many = links.len() > 1;
        let mut trails: Vec<Option<_>> = trails.into_iter().map(Some).collect();
        let mut steps: Vec<QueryStep> = Vec::new();
        let mut walked: Vec<Slot> = Vec::new();
        // Labels of nodes that are bound already are checked first.
        for node in nodes.iter().filter(|n| bound.contains(&n.slot) && !n.labels.is_empty()) {
            let subject = Box::new(PlanExpr::slot(node.slot, 0));
            let test = PlanExpr { kind: PlanExprKind::HasLabels(subject, node.labels.clone()), at: 0 };
            steps.push(self.step(QueryStepKind::Filter(test), 0.5));
        }
        for node in nodes.iter().filter(|n| bound.contains(&n.slot) && n.labels.is_empty() && !n.linked) {
            let there = PlanExpr { kind: PlanExprKind::IsNull(Box::new(PlanExpr::slot(node.slot, 0)), false), at: 0 };
            steps.push(self.step(QueryStepKind::Filter(there), 1.0));
        }
        loop {
            self.settle(&mut conditions, &mut trails, &mut bound, &mut steps);
            if let Some(place) = self.cheapest(&links, &nodes, &bound) {
                let link = links.remove(place);
                self.follow(link, &nodes, &mut bound, &mut walked, many, &mut steps);
                continue;
            }
            let open = nodes.iter().filter(|n| !bound.contains(&n.slot));
            let starts = open.map(|n| {
                let all = n.everything.as_slice();
                let labels = if n.labels.is_empty() { all } else { &n.labels };
                (n, self.start(n.slot, labels, &conditions, &bound))
            });
            let starts: Vec<_> = starts.collect();
            let helps = |slot: Slot| {
                let there: Vec<Slot> = bound.iter().copied().chain([slot]).collect();
                let others = nodes.iter().filter(|n| !there.contains(&n.slot));
                others.into_iter().any(|n| {
                    matches!(self.start(n.slot, &n.labels, &conditions, &there).source, ScanSource::Seek { .. })
                })
            };
            // Among equal ones, the start from which another node can be looked up.
            let equal = starts.len() > 1 && starts.iter().all(|(_, s)| s.rows == starts[0].1.rows);
            let better = if equal { starts.iter().position(|(n, _)| helps(n.slot)) } else { None };
            let fewest = starts.iter().enumerate().min_by(|a, b| a.1.1.rows.total_cmp(&b.1.1.rows)).map(|(i, _)| i);
            let Some(place) = better.or(fewest) else { break };
            let Some((node, start)) = starts.into_iter().nth(place) else { break };
            let (slot, mut labels, ended) = (node.slot, node.labels.clone(), node.linked);
            if let ScanSource::Label(label) = &start.source {
                labels.retain(|l| l.name != label.name);
            }
            bound.push(slot);
            if let ScanSource::Seek { value, .. } | ScanSource::Id(value) = &start.source {
                // It is checked again after the lookup, and keeps nearly all rows.
                let at = value.at;
                conditions.iter_mut().filter(|c| c.ex.as_ref().is_some_and(|e| e.at == at)).for_each(|c| c.sure = true);
            }
            let rows = start.rows;
            steps.push(self.step(QueryStepKind::Scan { slot, source: start.source, labels, ended }, rows));
        }
        self.settle(&mut conditions, &mut trails, &mut bound, &mut steps);
        steps
    }

    /// Adds the conditions and paths whose parts are all bound.
    fn settle(
        &mut self,
        conditions: &mut [Condition],
        trails: &mut [Option<super::pattern::NamedPath>],
        bound: &mut Vec<Slot>,
        steps: &mut Vec<QueryStep>,
    ) {
        for trail in trails.iter_mut() {
            let ready =
                |t: &super::pattern::NamedPath| bound.contains(&t.start) && t.edges.iter().all(|e| bound.contains(e));
            if trail.as_ref().is_some_and(ready)
                && let Some(trail) = trail.take()
            {
                bound.push(trail.slot);
                let kind = QueryStepKind::Path { slot: trail.slot, start: trail.start, edges: trail.edges };
                steps.push(self.step(kind, 1.0));
            }
        }
        for condition in conditions.iter_mut() {
            if condition.needs.iter().all(|s| bound.contains(s))
                && let Some(ex) = condition.ex.take()
            {
                steps.push(self.step(QueryStepKind::Filter(ex), if condition.sure { 1.0 } else { 0.3 }));
            }
        }
    }

    /// The relationship that leads to the fewest rows, among those with a bound end.
    fn cheapest(&self, links: &[PatternEdge], nodes: &[super::pattern::PatternNode], bound: &[Slot]) -> Option<usize> {
        let cost = |link: &PatternEdge| {
            let left = bound.contains(&nodes[link.left].slot);
            let right = bound.contains(&nodes[link.right].slot);
            match (left, right) {
                _ if link.bound && link.length.is_none() => Some(0.0),
                (true, true) if link.shortest.is_some() => Some(1e6),
                (true, true) => Some(0.5),
                _ if link.shortest.is_some() => None,
                (true, false) => Some(self.fan(link, &nodes[link.right].labels)),
                (false, true) => Some(self.fan(link, &nodes[link.left].labels)),
                (false, false) => None,
            }
        };
        let all = links.iter().enumerate().filter_map(|(i, link)| Some((i, cost(link)?)));
        all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(i, _)| i)
    }

    /// The expected number of nodes that a relationship leads to.
    fn fan(&self, link: &PatternEdge, labels: &[LabelTest]) -> f64 {
        let edges: usize = match &link.types {
            EdgeTypes::Any => self.stats.edges,
            types => (0..self.stats.by_edge_type.len())
                .filter(|t| types.fits(TypeNo::at(*t)))
                .map(|t| self.stats.by_edge_type[t])
                .sum(),
        };
        let nodes = self.stats.nodes.max(1) as f64;
        let both = if link.arrow == Arrow::Either { 2.0 } else { 1.0 };
        let one = both * edges as f64 / nodes;
        let all = match link.length {
            None => one,
            Some((_, most)) => one.max(1.1).powf(most.min(6) as f64),
        };
        all * self.share(labels)
    }

    fn all_have(&self, label: &LabelTest) -> bool {
        let s = self.frame.snapshot;
        self.labelled(label) >= 0.9 * s.node_count() as f64
            && s.all_labelled(&self.frame.label_key(label), |node| label.node(s, node))
    }

    /// The share of nodes that have these labels.
    fn share(&self, labels: &[LabelTest]) -> f64 {
        let nodes = self.stats.nodes.max(1) as f64;
        labels.iter().map(|l| self.labelled(l) / nodes).fold(1.0, f64::min)
    }

    fn labelled(&self, label: &LabelTest) -> f64 {
        let count = |table: &[bool], counts: &[usize]| -> usize {
            table.iter().zip(counts).filter(|(fits, _)| **fits).map(|(_, n)| n).sum()
        };
        let by_type = count(&label.types, &self.stats.by_type);
        (by_type + count(&label.sets, &self.stats.by_label_set)).min(self.stats.nodes) as f64
    }

    fn start(&self, slot: Slot, labels: &[LabelTest], conditions: &[Condition], bound: &[Slot]) -> Start {
        let nodes = self.stats.nodes as f64;
        let fewest = labels.iter().min_by(|a, b| self.labelled(a).total_cmp(&self.labelled(b)));
        let mut best = match fewest {
            Some(label) => Start { rows: self.labelled(label), source: ScanSource::Label(label.clone()) },
            None => Start { rows: nodes, source: ScanSource::All },
        };
        for condition in conditions {
            let others = |s: &Slot| *s == slot || bound.contains(s);
            let Some(ex) = condition.ex.as_ref().filter(|_| condition.needs.iter().all(others)) else { continue };
            let Some(found) = self.seek(ex, slot, best.rows) else { continue };
            if found.rows <= best.rows {
                best = found;
            }
        }
        best
    }

    /// Whether a condition can be used to look up a node.
    fn seek(&self, ex: &PlanExpr, slot: Slot, scanned: f64) -> Option<Start> {
        let free = |ex: &PlanExpr| {
            let mut slots = Vec::new();
            ex.slots(&mut slots);
            !slots.contains(&slot)
        };
        let (subject, value, any) = match &ex.kind {
            PlanExprKind::Compare(first, rest) if rest.len() == 1 && rest[0].0 == ComparisonOperator::Equal => {
                let (a, b) = (&**first, &rest[0].1);
                let is_own = |e: &PlanExpr| {
                    property_of(e).is_some_and(|(s, ..)| s == slot)
                        || matches!(&e.kind, PlanExprKind::Graph(GraphFunction::Id | GraphFunction::ElementId, a)
                            if matches!(a[0].kind, PlanExprKind::Slot(s) if s == slot))
                };
                if is_own(a) { (a, b, false) } else { (b, a, false) }
            }
            PlanExprKind::Binary(Operator::In, a, b) => (&**a, &**b, true),
            _ => return None,
        };
        if !free(value) {
            return None;
        }
        if let PlanExprKind::Graph(GraphFunction::Id | GraphFunction::ElementId, arguments) = &subject.kind {
            let own = matches!(arguments[0].kind, PlanExprKind::Slot(s) if s == slot);
            return (own && !any).then(|| Start { source: ScanSource::Id(value.clone()), rows: 0.5 });
        }
        let (_, property, name) = property_of(subject).filter(|(s, ..)| *s == slot)?;
        let made = self.frame.snapshot.index_made(property);
        // Scanning the nodes of a rare label is faster than building an index over all nodes.
        if made.is_none() && property != KEY && scanned * 20.0 < self.stats.nodes as f64 {
            return None;
        }
        let rows = made.map_or(1.0, |index| index.selectivity()) * if any { 3.0 } else { 1.0 };
        Some(Start { source: ScanSource::Seek { property, name, value: value.clone(), any }, rows })
    }

    fn follow(
        &mut self,
        link: PatternEdge,
        nodes: &[super::pattern::PatternNode],
        bound: &mut Vec<Slot>,
        walked: &mut Vec<Slot>,
        many: bool,
        steps: &mut Vec<QueryStep>,
    ) {
        let (left, right) = (&nodes[link.left], &nodes[link.right]);
        let estimate = self.fan(&link, &[]);
        let unlike = if many { walked.clone() } else { vec![] };
        walked.push(link.slot);
        if link.bound && link.length.is_none() {
            let (from, to) = (left.slot, right.slot);
            let asked = |n: &super::pattern::PatternNode| (!bound.contains(&n.slot)).then(|| n.labels.clone());
            let (from_labels, to_labels) = (asked(left), asked(right));
            let known = QueryStepKind::Known {
                edge: link.slot,
                from,
                to,
                arrow: link.arrow,
                types: link.types,
                from_labels,
                to_labels,
                unlike,
            };
            bound.extend([from, to]);
            steps.push(self.step(known, 1.0));
            return;
        }
        let there = |slot: Slot| bound.contains(&slot);
        let turned = !there(left.slot) || there(right.slot) && !there(left.slot);
        let (from, to) = if turned { (right, left) } else { (left, right) };
        let arrow = match (link.arrow, turned) {
            (Arrow::Right, true) => Arrow::Left,
            (Arrow::Left, true) => Arrow::Right,
            (arrow, _) => arrow,
        };
        let into = there(to.slot);
        let labels = if into { vec![] } else { to.labels.clone() };
        let expand = ExpandStep {
            from: from.slot,
            edge: link.slot,
            to: to.slot,
            arrow,
            types: link.types,
            into,
            labels,
            unlike,
        };
        bound.extend([to.slot, link.slot]);
        let Some((least, most)) = link.length else {
            steps.push(self.step(QueryStepKind::Expand(expand), estimate));
            return;
        };
        let keep = link.keep || many || link.bound;
        let mut stretch = VarLengthExpand { expand, least, most, each: link.each, turned, keep, reach: false };
        if let Some((which, path)) = link.shortest {
            bound.push(path);
            stretch.keep = true;
            steps.push(self.step(QueryStepKind::Shortest(Box::new(ShortestPathStep { stretch, which, path })), 1.0));
            return;
        }
        if link.bound {
            // A list that is bound already must equal the list that is found.
            let given = link.slot;
            let found = self.slot("");
            stretch.expand.edge = found;
            steps.push(self.step(QueryStepKind::Stretch(Box::new(stretch)), estimate));
            let same = PlanExprKind::Compare(
                Box::new(PlanExpr::slot(given, link.at)),
                vec![(ComparisonOperator::Equal, PlanExpr::slot(found, link.at))],
            );
            steps.push(self.step(QueryStepKind::Filter(PlanExpr { kind: same, at: link.at }), 0.1));
            return;
        }
        steps.push(self.step(QueryStepKind::Stretch(Box::new(stretch)), estimate));
    }
}
