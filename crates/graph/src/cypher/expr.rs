//! Expressions and steps in their executable form: variables are slots, and labels and properties are numbers.

use super::ast::{Arrow, ComparisonOperator, Operator, Quantifier, Shortest};
use super::functions::{FunctionContext, FunctionResult};
use super::value::Value;
use crate::contents::PropertyNo;
use crate::snapshot::{Node, Snapshot, TypeNo};
use std::sync::Arc;

/// The index of a variable in a row.
pub type Slot = usize;

/// An executable expression and its position in the query, in bytes.
#[derive(Clone, Debug)]
pub struct PlanExpr {
    pub kind: PlanExprKind,
    pub at: usize,
}

/// The operations of expressions.
#[derive(Clone, Debug)]
pub enum PlanExprKind {
    Const(Value),
    Slot(Slot),
    List(Vec<PlanExpr>),
    Map(Vec<(String, PlanExpr)>),
    Property(Box<PlanExpr>, Arc<str>, PropertyNo),
    HasLabels(Box<PlanExpr>, Vec<LabelTest>),
    Index(Box<PlanExpr>, Box<PlanExpr>),
    Slice(Box<PlanExpr>, Option<Box<PlanExpr>>, Option<Box<PlanExpr>>),
    Not(Box<PlanExpr>),
    Negate(Box<PlanExpr>),
    Plus(Box<PlanExpr>),
    Binary(Operator, Box<PlanExpr>, Box<PlanExpr>),
    Compare(Box<PlanExpr>, Vec<(ComparisonOperator, PlanExpr)>),
    /// `IS NULL` if true, `IS NOT NULL` otherwise.
    IsNull(Box<PlanExpr>, bool),
    Call(fn(&[Value], &FunctionContext) -> FunctionResult, Vec<PlanExpr>),
    Graph(GraphFunction, Vec<PlanExpr>),
    Case {
        subject: Option<Box<PlanExpr>>,
        branches: Vec<(PlanExpr, PlanExpr)>,
        otherwise: Option<Box<PlanExpr>>,
    },
    Each {
        slot: Slot,
        list: Box<PlanExpr>,
        filter: Option<Box<PlanExpr>>,
        map: Option<Box<PlanExpr>>,
    },
    Quantified {
        quantifier: Quantifier,
        slot: Slot,
        list: Box<PlanExpr>,
        filter: Option<Box<PlanExpr>>,
    },
    Reduce {
        sum: Slot,
        start: Box<PlanExpr>,
        slot: Slot,
        list: Box<PlanExpr>,
        step: Box<PlanExpr>,
    },
    MapProjection {
        subject: Box<PlanExpr>,
        parts: Vec<MapEntry>,
    },
    /// A list with one element per row.
    Gather(Box<QueryPart>, Box<PlanExpr>),
    Exists(Box<QueryPlan>),
    Count(Box<QueryPlan>),
    /// The value of the expression in the first row, or null.
    First(Box<QueryPart>, Box<PlanExpr>),
}

/// An entry of a map projection such as `n {.name, *}`.
#[derive(Clone, Debug)]
pub enum MapEntry {
    All,
    Property(String, PropertyNo),
    Entry(String, PlanExpr),
}

impl PlanExpr {
    pub fn slot(slot: Slot, at: usize) -> PlanExpr {
        PlanExpr { kind: PlanExprKind::Slot(slot), at }
    }

    /// Calls `look` for the expression and all of its parts, but not for inner queries.
    pub fn visit(&self, look: &mut dyn FnMut(&PlanExpr)) {
        look(self);
        match &self.kind {
            PlanExprKind::Const(_) | PlanExprKind::Slot(_) | PlanExprKind::Exists(_) | PlanExprKind::Count(_) => {}
            PlanExprKind::List(items) | PlanExprKind::Call(_, items) | PlanExprKind::Graph(_, items) => {
                items.iter().for_each(|e| e.visit(look));
            }
            PlanExprKind::Map(entries) => entries.iter().for_each(|(_, e)| e.visit(look)),
            PlanExprKind::Property(e, ..)
            | PlanExprKind::HasLabels(e, _)
            | PlanExprKind::Not(e)
            | PlanExprKind::Negate(e)
            | PlanExprKind::Plus(e)
            | PlanExprKind::IsNull(e, _)
            | PlanExprKind::Gather(_, e)
            | PlanExprKind::First(_, e) => e.visit(look),
            PlanExprKind::Index(a, b) | PlanExprKind::Binary(_, a, b) => [a, b].into_iter().for_each(|e| e.visit(look)),
            PlanExprKind::Slice(e, from, to) => {
                e.visit(look);
                [from, to].into_iter().flatten().for_each(|e| e.visit(look));
            }
            PlanExprKind::Compare(first, rest) => {
                first.visit(look);
                rest.iter().for_each(|(_, e)| e.visit(look));
            }
            PlanExprKind::Case { subject, branches, otherwise } => {
                [subject, otherwise].into_iter().flatten().for_each(|e| e.visit(look));
                branches.iter().for_each(|(when, then)| [when, then].into_iter().for_each(|e| e.visit(look)));
            }
            PlanExprKind::Each { list, filter, map, .. } => {
                list.visit(look);
                [filter, map].into_iter().flatten().for_each(|e| e.visit(look));
            }
            PlanExprKind::Quantified { list, filter, .. } => {
                list.visit(look);
                filter.iter().for_each(|e| e.visit(look));
            }
            PlanExprKind::Reduce { start, list, step, .. } => {
                [start, list, step].into_iter().for_each(|e| e.visit(look));
            }
            PlanExprKind::MapProjection { subject, parts } => {
                subject.visit(look);
                parts.iter().for_each(|p| {
                    if let MapEntry::Entry(_, e) = p {
                        e.visit(look);
                    }
                });
            }
        }
    }

    /// Adds every slot that it reads, including those that it sets itself.
    pub fn slots(&self, all: &mut Vec<Slot>) {
        self.visit(&mut |ex| match &ex.kind {
            PlanExprKind::Slot(slot) => all.push(*slot),
            PlanExprKind::Gather(part, _) | PlanExprKind::First(part, _) => part.slots(all),
            PlanExprKind::Exists(whole) | PlanExprKind::Count(whole) => whole.parts.iter().for_each(|p| p.slots(all)),
            _ => {}
        });
    }

    /// Whether repeated evaluation in the same row returns the same value.
    pub fn is_steady(&self) -> bool {
        let mut steady = true;
        self.visit(&mut |ex| {
            steady &= !matches!(
                ex.kind,
                PlanExprKind::Graph(GraphFunction::Rand, _)
                    | PlanExprKind::Gather(..)
                    | PlanExprKind::First(..)
                    | PlanExprKind::Exists(_)
                    | PlanExprKind::Count(_)
            );
        });
        steady
    }
}

/// Functions that read the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphFunction {
    Labels,
    Type,
    Id,
    ElementId,
    Keys,
    Properties,
    Nodes,
    Relationships,
    StartNode,
    EndNode,
    Length,
    Degree,
    Ended,
    IsEmpty,
    Rand,
    Timestamp,
    /// A regular expression, which must match the whole text.
    Matches,
}

/// Tests whether a node has a label, which is the name of its type or one of its labels, or whether an edge has a type.
#[derive(Clone, Debug)]
pub struct LabelTest {
    pub name: Arc<str>,
    /// By type number.
    pub types: Arc<[bool]>,
    /// By number of the label set.
    pub sets: Arc<[bool]>,
}

impl LabelTest {
    #[inline]
    pub fn node(&self, snapshot: &Snapshot, node: Node) -> bool {
        let row = snapshot.node(node);
        self.types[row.type_no.index()] || self.sets[row.labels as usize]
    }
}

/// The types that a relationship may have.
#[derive(Clone, Debug)]
pub enum EdgeTypes {
    Any,
    One(TypeNo),
    /// By type number.
    These(Arc<[bool]>),
}

impl EdgeTypes {
    #[inline]
    pub fn fits(&self, type_no: TypeNo) -> bool {
        match self {
            EdgeTypes::Any => true,
            EdgeTypes::One(one) => *one == type_no,
            EdgeTypes::These(table) => table[type_no.index()],
        }
    }
}

/// A sequence of steps. Each passes rows to the next.
#[derive(Clone, Debug, Default)]
pub struct QueryPart {
    pub steps: Vec<QueryStep>,
    /// The values of an output row, if the part is a whole query.
    pub output: Vec<Slot>,
    /// Whether any of its steps keeps state between rows.
    pub stateful: bool,
}

impl QueryPart {
    pub fn new(mut steps: Vec<QueryStep>, output: Vec<Slot>) -> QueryPart {
        for i in 0..steps.len() {
            let (here, rest) = steps.split_at_mut(i + 1);
            if let QueryStepKind::Stretch(stretch) = &mut here[i].kind {
                stretch.reach = stretch.may_reach() && ways_are_one(rest);
            }
        }
        let stateful = steps.iter().any(|s| s.is_stateful());
        QueryPart { steps, output, stateful }
    }

    pub fn slots(&self, all: &mut Vec<Slot>) {
        self.steps.iter().for_each(|s| s.slots(all));
        all.extend(&self.output);
    }
}

/// Whether the following steps return the same for one row as for several equal rows.
fn ways_are_one(rest: &[QueryStep]) -> bool {
    for step in rest {
        match &step.kind {
            QueryStepKind::Filter(ex) if ex.is_steady() => {}
            QueryStepKind::Project(items) if items.iter().all(|(ex, _)| ex.is_steady()) => {}
            QueryStepKind::Distinct(_) => return true,
            QueryStepKind::Aggregate(a) => {
                let once = |c: &AggregateCall| {
                    c.argument.is_some() && (c.distinct || matches!(c.function, Aggregate::Least | Aggregate::Most))
                };
                return a.calls.iter().all(once);
            }
            _ => return false,
        }
    }
    false
}

impl VarLengthExpand {
    /// Whether its ends can be found by a breadth-first search over nodes. In one direction, every node that a walk of
    /// at least one relationship reaches is also reached without repeating a relationship. Undirected, that is not so.
    fn may_reach(&self) -> bool {
        let e = &self.expand;
        !self.keep && self.least <= 1 && e.arrow != Arrow::Either && e.unlike.is_empty() && !e.into
    }
}

/// A query of one part, or of several parts whose rows are added.
#[derive(Clone, Debug)]
pub struct QueryPlan {
    pub parts: Vec<QueryPart>,
    /// Whether duplicate rows are dropped.
    pub distinct: bool,
}

/// A step of a plan.
#[derive(Clone, Debug)]
pub struct QueryStep {
    pub kind: QueryStepKind,
    /// The number of the step in the whole query.
    pub id: usize,
    /// The estimated number of output rows per input row.
    pub estimate: f64,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum QueryStepKind {
    Scan {
        slot: Slot,
        source: ScanSource,
        labels: Vec<LabelTest>,
        /// Whether ended nodes are included, because a relationship of the pattern shows them.
        ended: bool,
    },
    Expand(ExpandStep),
    /// A path of relationships of variable length.
    Stretch(Box<VarLengthExpand>),
    /// Checks a relationship that is bound already.
    Known {
        edge: Slot,
        from: Slot,
        to: Slot,
        arrow: Arrow,
        types: EdgeTypes,
        /// Labels of the ends that this step binds. `None` for an end that is bound already.
        from_labels: Option<Vec<LabelTest>>,
        to_labels: Option<Vec<LabelTest>>,
        unlike: Vec<Slot>,
    },
    Shortest(Box<ShortestPathStep>),
    Filter(PlanExpr),
    Path {
        slot: Slot,
        start: Slot,
        edges: Vec<Slot>,
    },
    Optional {
        steps: Vec<QueryStep>,
        nulls: Vec<Slot>,
    },
    Unwind {
        list: PlanExpr,
        slot: Slot,
    },
    Project(Vec<(PlanExpr, Slot)>),
    Distinct(Vec<Slot>),
    Skip(PlanExpr),
    Limit(PlanExpr),
    Aggregate(Box<Aggregation>),
    Sort {
        keys: Vec<(PlanExpr, bool)>,
        keep: Vec<Slot>,
        /// The number of rows that are needed, if it is limited.
        most: Option<PlanExpr>,
    },
    Call {
        procedure: &'static super::procedures::Procedure,
        arguments: Vec<PlanExpr>,
        /// Column of the procedure, and slot.
        yields: Vec<(usize, Slot)>,
    },
}

/// Follows one relationship from a node.
#[derive(Clone, Debug)]
pub struct ExpandStep {
    pub from: Slot,
    pub edge: Slot,
    pub to: Slot,
    pub arrow: Arrow,
    pub types: EdgeTypes,
    /// Whether the other end is bound already.
    pub into: bool,
    pub labels: Vec<LabelTest>,
    /// Relationships of the same MATCH, which must be different ones.
    pub unlike: Vec<Slot>,
}

/// Follows a path of relationships of variable length.
#[derive(Clone, Debug)]
pub struct VarLengthExpand {
    pub expand: ExpandStep,
    pub least: u64,
    pub most: u64,
    /// Properties that every relationship must have.
    pub each: Vec<(PropertyNo, PlanExpr)>,
    /// Whether it is followed from its right end.
    pub turned: bool,
    /// Whether the list of relationships is used.
    pub keep: bool,
    /// Whether later steps depend only on the nodes reached, and not on the number of paths.
    pub reach: bool,
}

/// Finds shortest paths between two bound nodes.
#[derive(Clone, Debug)]
pub struct ShortestPathStep {
    pub stretch: VarLengthExpand,
    pub which: Shortest,
    pub path: Slot,
}

/// How a scan finds its nodes.
#[derive(Clone, Debug)]
pub enum ScanSource {
    All,
    Label(LabelTest),
    /// By the value of a property, or by one of the values of a list.
    Seek {
        property: PropertyNo,
        name: Arc<str>,
        value: PlanExpr,
        any: bool,
    },
    Id(PlanExpr),
}

/// Groups rows by keys and aggregates each group.
#[derive(Clone, Debug)]
pub struct Aggregation {
    pub keys: Vec<(PlanExpr, Slot)>,
    pub calls: Vec<AggregateCall>,
}

/// One aggregate of an aggregation.
#[derive(Clone, Debug)]
pub struct AggregateCall {
    pub function: Aggregate,
    pub distinct: bool,
    /// `None` counts rows.
    pub argument: Option<PlanExpr>,
    /// The second argument, which is the percentage for percentiles.
    pub second: Option<PlanExpr>,
    pub slot: Slot,
    pub at: usize,
}

/// The aggregating functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    Count,
    Sum,
    Average,
    Least,
    Most,
    Collect,
    Deviation,
    DeviationOfAll,
    PercentileContinuous,
    PercentileDiscrete,
}

impl Aggregate {
    pub fn find(name: &str) -> Option<Aggregate> {
        Some(match name.to_ascii_lowercase().as_str() {
            "count" => Aggregate::Count,
            "sum" => Aggregate::Sum,
            "avg" => Aggregate::Average,
            "min" => Aggregate::Least,
            "max" => Aggregate::Most,
            "collect" => Aggregate::Collect,
            "stdev" => Aggregate::Deviation,
            "stdevp" => Aggregate::DeviationOfAll,
            "percentilecont" => Aggregate::PercentileContinuous,
            "percentiledisc" => Aggregate::PercentileDiscrete,
            _ => return None,
        })
    }

    pub fn arguments(self) -> usize {
        match self {
            Aggregate::PercentileContinuous | Aggregate::PercentileDiscrete => 2,
            _ => 1,
        }
    }
}

impl QueryStep {
    pub fn is_breaker(&self) -> bool {
        matches!(self.kind, QueryStepKind::Aggregate(_) | QueryStepKind::Sort { .. })
    }

    fn is_stateful(&self) -> bool {
        self.is_breaker()
            || matches!(self.kind, QueryStepKind::Distinct(_) | QueryStepKind::Skip(_) | QueryStepKind::Limit(_))
    }

    pub fn slots(&self, all: &mut Vec<Slot>) {
        match &self.kind {
            QueryStepKind::Scan { slot, source, .. } => {
                all.push(*slot);
                if let ScanSource::Seek { value, .. } | ScanSource::Id(value) = source {
                    value.slots(all);
                }
            }
            QueryStepKind::Expand(e) => all.extend([e.from, e.to, e.edge]),
            QueryStepKind::Stretch(s) => {
                all.extend([s.expand.from, s.expand.to, s.expand.edge]);
                s.each.iter().for_each(|(_, e)| e.slots(all));
            }
            QueryStepKind::Shortest(n) => {
                all.extend([n.stretch.expand.from, n.stretch.expand.to, n.path]);
                n.stretch.each.iter().for_each(|(_, e)| e.slots(all));
            }
            QueryStepKind::Known { edge, from, to, .. } => all.extend([*edge, *from, *to]),
            QueryStepKind::Filter(e) | QueryStepKind::Skip(e) | QueryStepKind::Limit(e) => e.slots(all),
            QueryStepKind::Path { slot, start, edges } => all.extend(edges.iter().chain([slot, start])),
            QueryStepKind::Optional { steps, .. } => steps.iter().for_each(|s| s.slots(all)),
            QueryStepKind::Unwind { list, slot } => {
                list.slots(all);
                all.push(*slot);
            }
            QueryStepKind::Project(items) => items.iter().for_each(|(e, _)| e.slots(all)),
            QueryStepKind::Distinct(slots) => all.extend(slots),
            QueryStepKind::Aggregate(a) => {
                a.keys.iter().for_each(|(e, _)| e.slots(all));
                a.calls.iter().for_each(|c| c.argument.iter().chain(&c.second).for_each(|e| e.slots(all)));
            }
            QueryStepKind::Sort { keys, keep, .. } => {
                keys.iter().for_each(|(e, _)| e.slots(all));
                all.extend(keep);
            }
            QueryStepKind::Call { arguments, .. } => arguments.iter().for_each(|e| e.slots(all)),
        }
    }
}
