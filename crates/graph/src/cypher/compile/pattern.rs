//! Compiles the patterns of a MATCH to nodes, relationships and conditions.

use super::super::ast::{Arrow, CypherExpr, CypherExprKind, EdgePattern, NodePattern, Pattern, PatternPart, Shortest};
use super::super::ast::{ComparisonOperator, Operator};
use super::super::expr::{EdgeTypes, LabelTest, PlanExpr, PlanExprKind, QueryStep, Slot};
use super::super::fault::{Fault, Result};
use super::clauses::already;
use super::types::ExprType;
use super::{Compiler, Scope, Var};
use crate::contents::PropertyNo;

/// The number and the name of a property.
type Property = (PropertyNo, std::sync::Arc<str>);

/// A node of the pattern, which may be bound already.
#[derive(Debug)]
pub(super) struct PatternNode {
    pub slot: Slot,
    pub labels: Vec<LabelTest>,
    /// A label of the pattern that every node of the graph has.
    pub everything: Option<LabelTest>,
    /// Whether a relationship of the pattern is connected to it.
    pub linked: bool,
}

/// A relationship of the pattern, or a path of variable length, between two nodes.
#[derive(Debug)]
pub(super) struct PatternEdge {
    pub slot: Slot,
    /// Index in the list of nodes.
    pub left: usize,
    pub right: usize,
    pub arrow: Arrow,
    pub types: EdgeTypes,
    /// The least and the most relationships, for a path of variable length.
    pub length: Option<(u64, u64)>,
    pub each: Vec<(PropertyNo, PlanExpr)>,
    /// Whether it was bound before.
    pub bound: bool,
    /// Whether its value is used.
    pub keep: bool,
    /// For a shortest path: whether one or all, and the slot of the path.
    pub shortest: Option<(Shortest, Slot)>,
    pub at: usize,
}

/// The path of a named pattern: its slot, its first node, and its relationships.
#[derive(Debug)]
pub(super) struct NamedPath {
    pub slot: Slot,
    pub start: Slot,
    pub edges: Vec<Slot>,
}

/// Everything that a MATCH must find.
#[derive(Debug, Default)]
pub(super) struct MatchPattern {
    pub nodes: Vec<PatternNode>,
    pub links: Vec<PatternEdge>,
    pub trails: Vec<NamedPath>,
    pub conditions: Vec<PlanExpr>,
    /// Slots that are bound before.
    pub bound: Vec<Slot>,
}

impl Compiler<'_> {
    /// The steps of a MATCH. Its variables are added to the scope.
    pub(super) fn matching(
        &mut self,
        parts: &[PatternPart],
        filter: Option<&CypherExpr>,
        scope: &mut Scope,
    ) -> Result<Vec<QueryStep>> {
        let mut wanted = MatchPattern { bound: scope.slots(), ..MatchPattern::default() };
        let before = scope.clone();
        let mut seen_edges: Vec<String> = Vec::new();
        // Variables first, so that every part can refer to those of all others.
        let mut places: Vec<Vec<usize>> = Vec::new();
        for part in parts {
            if part.shortest.is_some() && part.pattern.steps.len() != 1 {
                let message = "a shortest path takes exactly one relationship pattern";
                return Err(Fault::syntax("InvalidRelationshipPattern", message, part.pattern.at));
            }
            let least = part.pattern.steps.first().and_then(|(edge, _)| edge.length).and_then(|l| l.least);
            if part.shortest.is_some() && least > Some(1) {
                let message = "a shortest path has a least length of 0 or 1";
                return Err(Fault::syntax("InvalidRelationshipPattern", message, part.pattern.at));
            }
            let links = wanted.links.len().max(wanted.nodes.len()) + part.pattern.steps.len();
            self.check_length(links, part.pattern.at)?;
            places.push(self.names_of(part, scope, &before, &mut wanted, &mut seen_edges)?);
        }
        for (part, places) in parts.iter().zip(&places) {
            self.conditions_of(&part.pattern, places, scope, &mut wanted)?;
        }
        if let Some(filter) = filter {
            let filter = self.filter(filter, scope)?;
            conjuncts(filter, &mut wanted.conditions);
        }
        Ok(self.plan(wanted))
    }

    /// Defines the variables of a part. Returns the indexes of its nodes.
    fn names_of(
        &mut self,
        part: &PatternPart,
        scope: &mut Scope,
        before: &Scope,
        wanted: &mut MatchPattern,
        seen_edges: &mut Vec<String>,
    ) -> Result<Vec<usize>> {
        let pattern = &part.pattern;
        let linked = !pattern.steps.is_empty();
        let mut places = vec![self.node(&pattern.start, linked, scope, wanted)?];
        let first_link = wanted.links.len();
        for (edge, node) in &pattern.steps {
            let left = places[places.len() - 1];
            let (slot, bound) = self.edge(edge, scope, before, seen_edges)?;
            let right = self.node(node, true, scope, wanted)?;
            places.push(right);
            let length = edge.length.map(|l| (l.least.unwrap_or(1), l.most.unwrap_or(u64::MAX)));
            wanted.links.push(PatternEdge {
                slot,
                left,
                right,
                arrow: edge.arrow,
                types: self.edge_types(edge.types.iter().map(|n| n.text.as_str())),
                length,
                each: Vec::new(),
                bound,
                keep: edge.name.is_some() || part.name.is_some(),
                shortest: None,
                at: edge.at,
            });
        }
        let path = match &part.name {
            Some(name) => {
                if scope.get(&name.text).is_some() {
                    return Err(already(&name.text, name.at));
                }
                let slot = self.slot(&name.text);
                scope.add(&name.text, Var { slot, ty: ExprType::Path });
                Some(slot)
            }
            None if part.shortest.is_some() => Some(self.slot("")),
            None => None,
        };
        if let (Some(which), Some(path)) = (part.shortest, path) {
            let link = &mut wanted.links[first_link];
            link.shortest = Some((which, path));
            link.length = Some(link.length.unwrap_or((1, 1)));
        } else if let Some(slot) = path {
            let edges = wanted.links[first_link..].iter().map(|l| l.slot).collect();
            wanted.trails.push(NamedPath { slot, start: wanted.nodes[places[0]].slot, edges });
        }
        Ok(places)
    }

    fn node(
        &mut self,
        node: &NodePattern,
        linked: bool,
        scope: &mut Scope,
        wanted: &mut MatchPattern,
    ) -> Result<usize> {
        let labels: Vec<LabelTest> = node.labels.iter().map(|l| self.label(&l.text)).collect();
        let slot = match &node.name {
            Some(name) => match scope.get(&name.text) {
                Some(var) if var.ty.may_be(&ExprType::Node) => var.slot,
                Some(_) => return Err(conflict(&name.text, name.at)),
                None => {
                    let slot = self.slot(&name.text);
                    scope.add(&name.text, Var { slot, ty: ExprType::Node });
                    slot
                }
            },
            None => self.slot(""),
        };
        if let Some(place) = wanted.nodes.iter().position(|n| n.slot == slot) {
            wanted.nodes[place].labels.extend(labels);
            wanted.nodes[place].linked |= linked;
            return Ok(place);
        }
        wanted.nodes.push(PatternNode { slot, labels, everything: None, linked });
        Ok(wanted.nodes.len() - 1)
    }

    fn edge(
        &mut self,
        edge: &EdgePattern,
        scope: &mut Scope,
        before: &Scope,
        seen: &mut Vec<String>,
    ) -> Result<(Slot, bool)> {
        let Some(name) = &edge.name else { return Ok((self.slot(""), false)) };
        if seen.contains(&name.text) {
            let message = format!("`{}` cannot stand for two relationships of one pattern", name.text);
            return Err(Fault::syntax("RelationshipUniquenessViolation", message, name.at));
        }
        let ty = if edge.length.is_some() { ExprType::list(ExprType::Edge) } else { ExprType::Edge };
        match scope.get(&name.text) {
            Some(var) => {
                let fits = match &var.ty {
                    ExprType::List(of) => edge.length.is_some() && of.may_be(&ExprType::Edge),
                    other => other.may_be(&ty),
                };
                if !fits || before.get(&name.text).is_none() {
                    return Err(conflict(&name.text, name.at));
                }
                seen.push(name.text.clone());
                Ok((var.slot, true))
            }
            None => {
                let slot = self.slot(&name.text);
                scope.add(&name.text, Var { slot, ty });
                seen.push(name.text.clone());
                Ok((slot, false))
            }
        }
    }

    fn conditions_of(
        &mut self,
        pattern: &Pattern,
        places: &[usize],
        scope: &Scope,
        wanted: &mut MatchPattern,
    ) -> Result<()> {
        let nodes = std::iter::once(&pattern.start).chain(pattern.steps.iter().map(|(_, node)| node));
        for (node, place) in nodes.zip(places) {
            let slot = wanted.nodes[*place].slot;
            for (property, value) in self.properties(node.properties.as_ref(), scope)? {
                self.property_no(&property.1, true);
                wanted.conditions.push(equal(slot, property, value));
            }
        }
        for ((edge, _), pair) in pattern.steps.iter().zip(places.windows(2)) {
            let properties = self.properties(edge.properties.as_ref(), scope)?;
            let Some(link) =
                wanted.links.iter_mut().find(|l| l.left == pair[0] && l.right == pair[1] && l.at == edge.at)
            else {
                continue;
            };
            if link.length.is_some() {
                link.each = properties.into_iter().map(|((number, _), value)| (number, value)).collect();
            } else {
                let slot = link.slot;
                wanted.conditions.extend(properties.into_iter().map(|(property, value)| equal(slot, property, value)));
            }
        }
        Ok(())
    }

    fn properties(&mut self, given: Option<&CypherExpr>, scope: &Scope) -> Result<Vec<(Property, PlanExpr)>> {
        let entries = match given.map(|e| &e.kind) {
            None => return Ok(vec![]),
            Some(CypherExprKind::Map(entries)) => entries,
            Some(_) => {
                let at = given.map_or(0, |e| e.at);
                let message = "properties are written as a map here; a parameter can stand for each value";
                return Err(Fault::syntax("InvalidParameterUse", message, at));
            }
        };
        let mut all = Vec::with_capacity(entries.len());
        for (name, value) in entries {
            let number = self.frame.snapshot.properties().number(&name.text);
            all.push(((number, name.text.as_str().into()), self.expr(value, scope)?.0));
        }
        Ok(all)
    }
}

fn conflict(name: &str, at: usize) -> Fault {
    Fault::syntax("VariableTypeConflict", format!("`{name}` has another type already"), at)
}

fn equal(slot: Slot, (number, name): Property, value: PlanExpr) -> PlanExpr {
    let at = value.at;
    let property = PlanExpr { kind: PlanExprKind::Property(Box::new(PlanExpr::slot(slot, at)), name, number), at };
    PlanExpr { kind: PlanExprKind::Compare(Box::new(property), vec![(ComparisonOperator::Equal, value)]), at }
}

/// Splits a conjunction into its conditions.
fn conjuncts(ex: PlanExpr, all: &mut Vec<PlanExpr>) {
    match ex.kind {
        PlanExprKind::Binary(Operator::And, a, b) => {
            conjuncts(*a, all);
            conjuncts(*b, all);
        }
        _ => all.push(ex),
    }
}
