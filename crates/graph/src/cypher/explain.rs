//! Describes a plan: its steps in order, with the expected and the actual number of rows.

use super::ast::{Arrow, Operator, Shortest};
use super::compile::CompiledQuery;
use super::expr::{
    EdgeTypes, ExpandStep, LabelTest, PlanExpr, PlanExprKind, QueryPart, QueryStep, QueryStepKind, ScanSource, Slot,
    VarLengthExpand,
};
use super::value::Value;
use crate::snapshot::{Snapshot, TypeNo};
use std::cell::Cell;

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct PlanStep {
    /// How deep the step is nested in other steps.
    pub depth: usize,
    pub operator: &'static str,
    pub details: String,
    /// The estimated number of rows that the step returns.
    pub expected_rows: f64,
    /// The number of rows that the step returned. Only after running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

pub(super) struct PlanWriter<'a> {
    pub compiled: &'a CompiledQuery,
    pub snapshot: &'a Snapshot,
    pub counts: Option<&'a [Cell<u64>]>,
}

impl PlanWriter<'_> {
    pub fn steps_of_plan(&self) -> Vec<PlanStep> {
        let mut all = Vec::new();
        for (i, part) in self.compiled.whole.parts.iter().enumerate() {
            if i > 0 {
                let details = if self.compiled.whole.distinct { "each row once" } else { "all rows" };
                all.push(PlanStep {
                    depth: 0,
                    operator: "Union",
                    details: details.into(),
                    expected_rows: 0.0,
                    rows: None,
                });
            }
            self.part(part, 0, &mut all);
        }
        all
    }

    fn part(&self, part: &QueryPart, depth: usize, all: &mut Vec<PlanStep>) {
        self.steps(&part.steps, depth, 1.0, all);
    }

    fn steps(&self, steps: &[QueryStep], depth: usize, mut rows: f64, all: &mut Vec<PlanStep>) {
        for step in steps {
            let (operator, details) = self.words(step);
            rows = match &step.kind {
                QueryStepKind::Aggregate(a) if a.keys.is_empty() => 1.0,
                QueryStepKind::Limit(PlanExpr { kind: PlanExprKind::Const(Value::Integer(n)), .. }) => {
                    rows.min(*n as f64)
                }
                _ => rows * step.estimate,
            };
            let counted = self.counts.map(|counts| counts[step.id].get());
            let expected_rows = (rows * 10.0).round() / 10.0;
            all.push(PlanStep { depth, operator, details, expected_rows, rows: counted });
            if let QueryStepKind::Optional { steps, .. } = &step.kind {
                self.steps(steps, depth + 1, 1.0, all);
            }
        }
    }

    fn words(&self, step: &QueryStep) -> (&'static str, String) {
        match &step.kind {
            QueryStepKind::Scan { slot, source, labels, .. } => {
                let name = self.name(*slot);
                match source {
                    ScanSource::All => ("AllNodesScan", format!("{name}{}", shown(labels))),
                    ScanSource::Label(label) => {
                        let rest: Vec<_> = labels.iter().filter(|l| l.name != label.name).cloned().collect();
                        ("LabelScan", format!("{name}:{}{}", label.name, shown(&rest)))
                    }
                    ScanSource::Seek { name: property, value, any, .. } => {
                        let sign = if *any { "IN" } else { "=" };
                        let details = format!("{name}.{property} {sign} {}{}", self.ex(value), shown(labels));
                        if &**property == "key" { ("KeySeek", details) } else { ("PropertySeek", details) }
                    }
                    ScanSource::Id(value) => ("IdSeek", format!("id({name}) = {}", self.ex(value))),
                }
            }
            QueryStepKind::Expand(e) if e.into => ("ExpandInto", self.edge(e, "")),
            QueryStepKind::Expand(e) => ("Expand", self.edge(e, "")),
            QueryStepKind::Stretch(s) if s.reach => ("Reach", self.edge(&s.expand, &length(s))),
            QueryStepKind::Stretch(s) => ("VarLengthExpand", self.edge(&s.expand, &length(s))),
            QueryStepKind::Shortest(n) => {
                let operator = if n.which == Shortest::One { "ShortestPath" } else { "AllShortestPaths" };
                (operator, self.edge(&n.stretch.expand, &length(&n.stretch)))
            }
            QueryStepKind::Known { edge, from, to, .. } => {
                ("BoundRelationship", format!("({})-[{}]-({})", self.name(*from), self.name(*edge), self.name(*to)))
            }
            QueryStepKind::Filter(ex) => ("Filter", self.ex(ex)),
            QueryStepKind::Path { slot, .. } => ("Path", self.name(*slot)),
            QueryStepKind::Optional { .. } => ("Optional", String::new()),
            QueryStepKind::Unwind { list, slot } => ("Unwind", format!("{} AS {}", self.ex(list), self.name(*slot))),
            QueryStepKind::Project(items) => {
                let items: Vec<_> =
                    items.iter().map(|(ex, slot)| format!("{} AS {}", self.ex(ex), self.name(*slot))).collect();
                ("Projection", items.join(", "))
            }
            QueryStepKind::Distinct(slots) => ("Distinct", self.names(slots)),
            QueryStepKind::Skip(ex) => ("Skip", self.ex(ex)),
            QueryStepKind::Limit(ex) => ("Limit", self.ex(ex)),
            QueryStepKind::Aggregate(a) => {
                let keys: Vec<_> = a.keys.iter().map(|(ex, _)| self.ex(ex)).collect();
                let calls: Vec<_> = a
                    .calls
                    .iter()
                    .map(|c| {
                        let argument = c.argument.as_ref().map_or("*".into(), |e| self.ex(e));
                        let distinct = if c.distinct { "DISTINCT " } else { "" };
                        format!("{:?}({distinct}{argument})", c.function).to_lowercase()
                    })
                    .collect();
                let by = if keys.is_empty() { String::new() } else { format!(" by {}", keys.join(", ")) };
                ("Aggregation", format!("{}{by}", calls.join(", ")))
            }
            QueryStepKind::Sort { keys, most, .. } => {
                let keys: Vec<_> =
                    keys.iter().map(|(ex, desc)| self.ex(ex) + if *desc { " DESC" } else { "" }).collect();
                match most {
                    Some(most) => ("Top", format!("{} by {}", self.ex(most), keys.join(", "))),
                    None => ("Sort", keys.join(", ")),
                }
            }
            QueryStepKind::Call { procedure, .. } => ("ProcedureCall", procedure.name.into()),
        }
    }

    fn name(&self, slot: Slot) -> String {
        match self.compiled.names.get(slot).map(String::as_str) {
            Some("") | None => format!("_{slot}"),
            Some(name) => name.to_owned(),
        }
    }

    fn names(&self, slots: &[Slot]) -> String {
        slots.iter().map(|s| self.name(*s)).collect::<Vec<_>>().join(", ")
    }

    fn edge(&self, e: &ExpandStep, length: &str) -> String {
        let types = match &e.types {
            EdgeTypes::Any => String::new(),
            types => {
                let known = self.snapshot.names().types().iter().enumerate();
                let names: Vec<_> =
                    known.filter(|(i, _)| types.fits(TypeNo::at(*i))).map(|(_, n)| n.to_string()).collect();
                format!(":{}", names.join("|"))
            }
        };
        let name = self.name(e.edge);
        let name = if name.starts_with('_') { String::new() } else { name };
        let (left, right) = match e.arrow {
            Arrow::Right => ("-", "->"),
            Arrow::Left => ("<-", "-"),
            Arrow::Either => ("-", "-"),
        };
        format!("({}){left}[{name}{types}{length}]{right}({}{})", self.name(e.from), self.name(e.to), shown(&e.labels))
    }

    fn ex(&self, ex: &PlanExpr) -> String {
        match &ex.kind {
            PlanExprKind::Const(value) => literal(value),
            PlanExprKind::Slot(slot) => self.name(*slot),
            PlanExprKind::Property(subject, name, _) => format!("{}.{name}", self.ex(subject)),
            PlanExprKind::Not(e) => format!("NOT {}", self.ex(e)),
            PlanExprKind::Negate(e) => format!("-{}", self.ex(e)),
            PlanExprKind::IsNull(e, null) => format!("{} IS {}NULL", self.ex(e), if *null { "" } else { "NOT " }),
            PlanExprKind::HasLabels(e, labels) => format!("{}{}", self.ex(e), shown(labels)),
            PlanExprKind::Compare(first, rest) => {
                use super::ast::ComparisonOperator as C;
                let sign = |c: &C| match c {
                    C::Equal => "=",
                    C::NotEqual => "<>",
                    C::Less => "<",
                    C::LessOrEqual => "<=",
                    C::Greater => ">",
                    C::GreaterOrEqual => ">=",
                };
                let rest: Vec<_> = rest.iter().map(|(c, e)| format!(" {} {}", sign(c), self.ex(e))).collect();
                format!("{}{}", self.ex(first), rest.concat())
            }
            PlanExprKind::Binary(operator, a, b) => {
                let sign = match operator {
                    Operator::Or => "OR",
                    Operator::Xor => "XOR",
                    Operator::And => "AND",
                    Operator::Add => "+",
                    Operator::Subtract => "-",
                    Operator::Multiply => "*",
                    Operator::Divide => "/",
                    Operator::Modulo => "%",
                    Operator::Power => "^",
                    Operator::In => "IN",
                    Operator::StartsWith => "STARTS WITH",
                    Operator::EndsWith => "ENDS WITH",
                    Operator::Contains => "CONTAINS",
                    Operator::Matches => "=~",
                };
                format!("{} {sign} {}", self.ex(a), self.ex(b))
            }
            PlanExprKind::Exists(_) => "exists { … }".into(),
            PlanExprKind::Count(_) => "count { … }".into(),
            PlanExprKind::Graph(function, arguments) => {
                let arguments: Vec<_> = arguments.iter().map(|e| self.ex(e)).collect();
                format!("{}({})", format!("{function:?}").to_lowercase(), arguments.join(", "))
            }
            PlanExprKind::List(items) => {
                let items: Vec<_> = items.iter().map(|e| self.ex(e)).collect();
                format!("[{}]", items.join(", "))
            }
            _ => "…".into(),
        }
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Integer(n) => n.to_string(),
        Value::Float(f) => super::functions::float_text(*f),
        Value::Text(text) if text.chars().count() > 40 => format!("'{}…'", text.chars().take(40).collect::<String>()),
        Value::Text(text) => format!("'{text}'"),
        Value::List(items) => format!("[{} elements]", items.len()),
        other => other.type_name().to_lowercase(),
    }
}

fn shown(labels: &[LabelTest]) -> String {
    labels.iter().map(|l| format!(":{}", l.name)).collect()
}

fn length(stretch: &VarLengthExpand) -> String {
    match (stretch.least, stretch.most) {
        (least, u64::MAX) => format!("*{least}.."),
        (least, most) => format!("*{least}..{most}"),
    }
}
