//! Expressions and steps in their executable form: variables are slots, and labels and properties are numbers.

use super::ast::{Arrow, Comparison, Operator, Quantifier, Shortest};
use super::functions::{Answer, Surroundings};
use super::value::Value;
use crate::contents::PropertyNo;
use crate::snapshot::{Node, Snapshot, TypeNo};
use std::sync::Arc;

/// The index of a variable in a row.
pub type Slot = usize;

/// An executable expression and its position in the query, in bytes.
#[derive(Clone, Debug)]
pub struct Ex {
    pub kind: ExKind,
    pub at: usize,
}

/// The operations of expressions.
#[derive(Clone, Debug)]
pub enum ExKind {
    Const(Value),
    Slot(Slot),
    List(Vec<Ex>),
    Map(Vec<(String, Ex)>),
    Property(Box<Ex>, Arc<str>, PropertyNo),
    HasLabels(Box<Ex>, Vec<LabelTest>),
    Index(Box<Ex>, Box<Ex>),
    Slice(Box<Ex>, Option<Box<Ex>>, Option<Box<Ex>>),
    Not(Box<Ex>),
    Negate(Box<Ex>),
    Plus(Box<Ex>),
    Binary(Operator, Box<Ex>, Box<Ex>),
    Compare(Box<Ex>, Vec<(Comparison, Ex)>),
    /// `IS NULL` if true, `IS NOT NULL` otherwise.
    IsNull(Box<Ex>, bool),
    Call(fn(&[Value], &Surroundings) -> Answer, Vec<Ex>),
    Graph(GraphFunction, Vec<Ex>),
    Case {
        subject: Option<Box<Ex>>,
        branches: Vec<(Ex, Ex)>,
        otherwise: Option<Box<Ex>>,
    },
    Each {
        slot: Slot,
        list: Box<Ex>,
        filter: Option<Box<Ex>>,
        map: Option<Box<Ex>>,
    },
    Quantified {
        quantifier: Quantifier,
        slot: Slot,
        list: Box<Ex>,
        filter: Option<Box<Ex>>,
    },
    Reduce {
        sum: Slot,
        start: Box<Ex>,
        slot: Slot,
        list: Box<Ex>,
        step: Box<Ex>,
    },
    MapProjection {
        subject: Box<Ex>,
        parts: Vec<MapEntry>,
    },
    /// A list with one element per row.
    Gather(Box<Part>, Box<Ex>),
    Exists(Box<Whole>),
    Count(Box<Whole>),
    /// The value of the expression in the first row, or null.
    First(Box<Part>, Box<Ex>),
}

/// An entry of a map projection such as `n {.name, *}`.
#[derive(Clone, Debug)]
pub enum MapEntry {
    All,
    Property(String, PropertyNo),
    Entry(String, Ex),
}

impl Ex {
    pub fn slot(slot: Slot, at: usize) -> Ex {
        Ex { kind: ExKind::Slot(slot), at }
    }

    /// Calls `look` for the expression and all of its parts, but not for inner queries.
    pub fn visit(&self, look: &mut dyn FnMut(&Ex)) {
        look(self);
        match &self.kind {
            ExKind::Const(_) | ExKind::Slot(_) | ExKind::Exists(_) | ExKind::Count(_) => {}
            ExKind::List(items) | ExKind::Call(_, items) | ExKind::Graph(_, items) => {
                items.iter().for_each(|e| e.visit(look));
            }
            ExKind::Map(entries) => entries.iter().for_each(|(_, e)| e.visit(look)),
            ExKind::Property(e, ..)
            | ExKind::HasLabels(e, _)
            | ExKind::Not(e)
            | ExKind::Negate(e)
            | ExKind::Plus(e)
            | ExKind::IsNull(e, _)
            | ExKind::Gather(_, e)
            | ExKind::First(_, e) => e.visit(look),
            ExKind::Index(a, b) | ExKind::Binary(_, a, b) => [a, b].into_iter().for_each(|e| e.visit(look)),
            ExKind::Slice(e, from, to) => {
                e.visit(look);
                [from, to].into_iter().flatten().for_each(|e| e.visit(look));
            }
            ExKind::Compare(first, rest) => {
                first.visit(look);
                rest.iter().for_each(|(_, e)| e.visit(look));
            }
            ExKind::Case { subject, branches, otherwise } => {
                [subject, otherwise].into_iter().flatten().for_each(|e| e.visit(look));
                branches.iter().for_each(|(when, then)| [when, then].into_iter().for_each(|e| e.visit(look)));
            }
            ExKind::Each { list, filter, map, .. } => {
                list.visit(look);
                [filter, map].into_iter().flatten().for_each(|e| e.visit(look));
            }
            ExKind::Quantified { list, filter, .. } => {
                list.visit(look);
                filter.iter().for_each(|e| e.visit(look));
            }
            ExKind::Reduce { start, list, step, .. } => {
                [start, list, step].into_iter().for_each(|e| e.visit(look));
            }
            ExKind::MapProjection { subject, parts } => {
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
            ExKind::Slot(slot) => all.push(*slot),
            ExKind::Gather(part, _) | ExKind::First(part, _) => part.slots(all),
            ExKind::Exists(whole) | ExKind::Count(whole) => whole.parts.iter().for_each(|p| p.slots(all)),
            _ => {}
        });
    }

    /// Whether repeated evaluation in the same row returns the same value.
    pub fn is_steady(&self) -> bool {
        let mut steady = true;
        self.visit(&mut |ex| {
            steady &= !matches!(
                ex.kind,
                ExKind::Graph(GraphFunction::Rand, _)
                    | ExKind::Gather(..)
                    | ExKind::First(..)
                    | ExKind::Exists(_)
                    | ExKind::Count(_)
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
pub enum Types {
    Any,
    One(TypeNo),
    /// By type number.
    These(Arc<[bool]>),
}

impl Types {
    #[inline]
    pub fn fits(&self, type_no: TypeNo) -> bool {
        match self {
            Types::Any => true,
            Types::One(one) => *one == type_no,
            Types::These(table) => table[type_no.index()],
        }
    }
}

/// A sequence of steps. Each passes rows to the next.
#[derive(Clone, Debug, Default)]
pub struct Part {
    pub steps: Vec<Step>,
    /// The values of an output row, if the part is a whole query.
    pub output: Vec<Slot>,
    /// Whether any of its steps keeps state between rows.
    pub stateful: bool,
}

impl Part {
    pub fn new(mut steps: Vec<Step>, output: Vec<Slot>) -> Part {
        for i in 0..steps.len() {
            let (here, rest) = steps.split_at_mut(i + 1);
            if let StepKind::Stretch(stretch) = &mut here[i].kind {
                stretch.reach = stretch.may_reach() && ways_are_one(rest);
            }
        }
        let stateful = steps.iter().any(|s| s.is_stateful());
        Part { steps, output, stateful }
    }

    pub fn slots(&self, all: &mut Vec<Slot>) {
        self.steps.iter().for_each(|s| s.slots(all));
        all.extend(&self.output);
    }
}

/// Whether the following steps return the same for one row as for several equal rows.
fn ways_are_one(rest: &[Step]) -> bool {
    for step in rest {
        match &step.kind {
            StepKind::Filter(ex) if ex.is_steady() => {}
            StepKind::Project(items) if items.iter().all(|(ex, _)| ex.is_steady()) => {}
            StepKind::Distinct(_) => return true,
            StepKind::Aggregate(a) => {
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

impl Stretch {
    /// Whether its ends can be found by a breadth-first search over nodes. In one direction, every node that a walk of
    /// at least one relationship reaches is also reached without repeating a relationship. Undirected, that is not so.
    fn may_reach(&self) -> bool {
        let e = &self.expand;
        !self.keep && self.least <= 1 && e.arrow != Arrow::Either && e.unlike.is_empty() && !e.into
    }
}

/// A query of one part, or of several parts whose rows are added.
#[derive(Clone, Debug)]
pub struct Whole {
    pub parts: Vec<Part>,
    /// Whether duplicate rows are dropped.
    pub distinct: bool,
}

/// A step of a plan.
#[derive(Clone, Debug)]
pub struct Step {
    pub kind: StepKind,
    /// The number of the step in the whole query.
    pub id: usize,
    /// The estimated number of output rows per input row.
    pub estimate: f64,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum StepKind {
    Scan {
        slot: Slot,
        source: Source,
        labels: Vec<LabelTest>,
        /// Whether ended nodes are included, because a relationship of the pattern shows them.
        ended: bool,
    },
    Expand(Expand),
    /// A path of relationships of variable length.
    Stretch(Box<Stretch>),
    /// Checks a relationship that is bound already.
    Known {
        edge: Slot,
        from: Slot,
        to: Slot,
        arrow: Arrow,
        types: Types,
        /// Labels of the ends that this step binds. `None` for an end that is bound already.
        from_labels: Option<Vec<LabelTest>>,
        to_labels: Option<Vec<LabelTest>>,
        unlike: Vec<Slot>,
    },
    Shortest(Box<Nearest>),
    Filter(Ex),
    Path {
        slot: Slot,
        start: Slot,
        edges: Vec<Slot>,
    },
    Optional {
        steps: Vec<Step>,
        nulls: Vec<Slot>,
    },
    Unwind {
        list: Ex,
        slot: Slot,
    },
    Project(Vec<(Ex, Slot)>),
    Distinct(Vec<Slot>),
    Skip(Ex),
    Limit(Ex),
    Aggregate(Box<Aggregation>),
    Sort {
        keys: Vec<(Ex, bool)>,
        keep: Vec<Slot>,
        /// The number of rows that are needed, if it is limited.
        most: Option<Ex>,
    },
    Call {
        procedure: &'static super::procedures::Procedure,
        arguments: Vec<Ex>,
        /// Column of the procedure, and slot.
        yields: Vec<(usize, Slot)>,
    },
}

/// Follows one relationship from a node.
#[derive(Clone, Debug)]
pub struct Expand {
    pub from: Slot,
    pub edge: Slot,
    pub to: Slot,
    pub arrow: Arrow,
    pub types: Types,
    /// Whether the other end is bound already.
    pub into: bool,
    pub labels: Vec<LabelTest>,
    /// Relationships of the same MATCH, which must be different ones.
    pub unlike: Vec<Slot>,
}

/// Follows a path of relationships of variable length.
#[derive(Clone, Debug)]
pub struct Stretch {
    pub expand: Expand,
    pub least: u64,
    pub most: u64,
    /// Properties that every relationship must have.
    pub each: Vec<(PropertyNo, Ex)>,
    /// Whether it is followed from its right end.
    pub turned: bool,
    /// Whether the list of relationships is used.
    pub keep: bool,
    /// Whether later steps depend only on the nodes reached, and not on the number of paths.
    pub reach: bool,
}

/// Finds shortest paths between two bound nodes.
#[derive(Clone, Debug)]
pub struct Nearest {
    pub stretch: Stretch,
    pub which: Shortest,
    pub path: Slot,
}

/// How a scan finds its nodes.
#[derive(Clone, Debug)]
pub enum Source {
    All,
    Label(LabelTest),
    /// By the value of a property, or by one of the values of a list.
    Seek {
        property: PropertyNo,
        name: Arc<str>,
        value: Ex,
        any: bool,
    },
    Id(Ex),
}

/// Groups rows by keys and aggregates each group.
#[derive(Clone, Debug)]
pub struct Aggregation {
    pub keys: Vec<(Ex, Slot)>,
    pub calls: Vec<AggregateCall>,
}

/// One aggregate of an aggregation.
#[derive(Clone, Debug)]
pub struct AggregateCall {
    pub function: Aggregate,
    pub distinct: bool,
    /// `None` counts rows.
    pub argument: Option<Ex>,
    /// The second argument, which is the percentage for percentiles.
    pub second: Option<Ex>,
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

impl Step {
    pub fn is_breaker(&self) -> bool {
        matches!(self.kind, StepKind::Aggregate(_) | StepKind::Sort { .. })
    }

    fn is_stateful(&self) -> bool {
        self.is_breaker() || matches!(self.kind, StepKind::Distinct(_) | StepKind::Skip(_) | StepKind::Limit(_))
    }

    pub fn slots(&self, all: &mut Vec<Slot>) {
        match &self.kind {
            StepKind::Scan { slot, source, .. } => {
                all.push(*slot);
                if let Source::Seek { value, .. } | Source::Id(value) = source {
                    value.slots(all);
                }
            }
            StepKind::Expand(e) => all.extend([e.from, e.to, e.edge]),
            StepKind::Stretch(s) => {
                all.extend([s.expand.from, s.expand.to, s.expand.edge]);
                s.each.iter().for_each(|(_, e)| e.slots(all));
            }
            StepKind::Shortest(n) => {
                all.extend([n.stretch.expand.from, n.stretch.expand.to, n.path]);
                n.stretch.each.iter().for_each(|(_, e)| e.slots(all));
            }
            StepKind::Known { edge, from, to, .. } => all.extend([*edge, *from, *to]),
            StepKind::Filter(e) | StepKind::Skip(e) | StepKind::Limit(e) => e.slots(all),
            StepKind::Path { slot, start, edges } => all.extend(edges.iter().chain([slot, start])),
            StepKind::Optional { steps, .. } => steps.iter().for_each(|s| s.slots(all)),
            StepKind::Unwind { list, slot } => {
                list.slots(all);
                all.push(*slot);
            }
            StepKind::Project(items) => items.iter().for_each(|(e, _)| e.slots(all)),
            StepKind::Distinct(slots) => all.extend(slots),
            StepKind::Aggregate(a) => {
                a.keys.iter().for_each(|(e, _)| e.slots(all));
                a.calls.iter().for_each(|c| c.argument.iter().chain(&c.second).for_each(|e| e.slots(all)));
            }
            StepKind::Sort { keys, keep, .. } => {
                keys.iter().for_each(|(e, _)| e.slots(all));
                all.extend(keep);
            }
            StepKind::Call { arguments, .. } => arguments.iter().for_each(|e| e.slots(all)),
        }
    }
}
