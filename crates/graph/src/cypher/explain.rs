//! Describes a plan: its steps in order, with the expected and the actual number of rows.

use super::ast::{Arrow, Operator, Shortest};
use super::compile::Compiled;
use super::expr::{Ex, ExKind, Expand, LabelTest, Part, Slot, Source, Step, StepKind, Stretch, Types};
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

pub(super) struct Teller<'a> {
    pub compiled: &'a Compiled,
    pub snapshot: &'a Snapshot,
    pub counts: Option<&'a [Cell<u64>]>,
}

impl Teller<'_> {
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

    fn part(&self, part: &Part, depth: usize, all: &mut Vec<PlanStep>) {
        self.steps(&part.steps, depth, 1.0, all);
    }

    fn steps(&self, steps: &[Step], depth: usize, mut rows: f64, all: &mut Vec<PlanStep>) {
        for step in steps {
            let (operator, details) = self.words(step);
            rows = match &step.kind {
                StepKind::Aggregate(a) if a.keys.is_empty() => 1.0,
                StepKind::Limit(Ex { kind: ExKind::Const(Value::Integer(n)), .. }) => rows.min(*n as f64),
                _ => rows * step.estimate,
            };
            let counted = self.counts.map(|counts| counts[step.id].get());
            let expected_rows = (rows * 10.0).round() / 10.0;
            all.push(PlanStep { depth, operator, details, expected_rows, rows: counted });
            if let StepKind::Optional { steps, .. } = &step.kind {
                self.steps(steps, depth + 1, 1.0, all);
            }
        }
    }

    fn words(&self, step: &Step) -> (&'static str, String) {
        match &step.kind {
            StepKind::Scan { slot, source, labels, .. } => {
                let name = self.name(*slot);
                match source {
                    Source::All => ("AllNodesScan", format!("{name}{}", shown(labels))),
                    Source::Label(label) => {
                        let rest: Vec<_> = labels.iter().filter(|l| l.name != label.name).cloned().collect();
                        ("LabelScan", format!("{name}:{}{}", label.name, shown(&rest)))
                    }
                    Source::Seek { name: property, value, any, .. } => {
                        let sign = if *any { "IN" } else { "=" };
                        let details = format!("{name}.{property} {sign} {}{}", self.ex(value), shown(labels));
                        if &**property == "key" { ("KeySeek", details) } else { ("PropertySeek", details) }
                    }
                    Source::Id(value) => ("IdSeek", format!("id({name}) = {}", self.ex(value))),
                }
            }
            StepKind::Expand(e) if e.into => ("ExpandInto", self.edge(e, "")),
            StepKind::Expand(e) => ("Expand", self.edge(e, "")),
            StepKind::Stretch(s) if s.reach => ("Reach", self.edge(&s.expand, &length(s))),
            StepKind::Stretch(s) => ("VarLengthExpand", self.edge(&s.expand, &length(s))),
            StepKind::Shortest(n) => {
                let operator = if n.which == Shortest::One { "ShortestPath" } else { "AllShortestPaths" };
                (operator, self.edge(&n.stretch.expand, &length(&n.stretch)))
            }
            StepKind::Known { edge, from, to, .. } => {
                ("BoundRelationship", format!("({})-[{}]-({})", self.name(*from), self.name(*edge), self.name(*to)))
            }
            StepKind::Filter(ex) => ("Filter", self.ex(ex)),
            StepKind::Path { slot, .. } => ("Path", self.name(*slot)),
            StepKind::Optional { .. } => ("Optional", String::new()),
            StepKind::Unwind { list, slot } => ("Unwind", format!("{} AS {}", self.ex(list), self.name(*slot))),
            StepKind::Project(items) => {
                let items: Vec<_> =
                    items.iter().map(|(ex, slot)| format!("{} AS {}", self.ex(ex), self.name(*slot))).collect();
                ("Projection", items.join(", "))
            }
            StepKind::Distinct(slots) => ("Distinct", self.names(slots)),
            StepKind::Skip(ex) => ("Skip", self.ex(ex)),
            StepKind::Limit(ex) => ("Limit", self.ex(ex)),
            StepKind::Aggregate(a) => {
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
            StepKind::Sort { keys, most, .. } => {
                let keys: Vec<_> =
                    keys.iter().map(|(ex, desc)| self.ex(ex) + if *desc { " DESC" } else { "" }).collect();
                match most {
                    Some(most) => ("Top", format!("{} by {}", self.ex(most), keys.join(", "))),
                    None => ("Sort", keys.join(", ")),
                }
            }
            StepKind::Call { procedure, .. } => ("ProcedureCall", procedure.name.into()),
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

    fn edge(&self, e: &Expand, length: &str) -> String {
        let types = match &e.types {
            Types::Any => String::new(),
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

    fn ex(&self, ex: &Ex) -> String {
        match &ex.kind {
            ExKind::Const(value) => literal(value),
            ExKind::Slot(slot) => self.name(*slot),
            ExKind::Property(subject, name, _) => format!("{}.{name}", self.ex(subject)),
            ExKind::Not(e) => format!("NOT {}", self.ex(e)),
            ExKind::Negate(e) => format!("-{}", self.ex(e)),
            ExKind::IsNull(e, null) => format!("{} IS {}NULL", self.ex(e), if *null { "" } else { "NOT " }),
            ExKind::HasLabels(e, labels) => format!("{}{}", self.ex(e), shown(labels)),
            ExKind::Compare(first, rest) => {
                use super::ast::Comparison as C;
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
            ExKind::Binary(operator, a, b) => {
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
            ExKind::Exists(_) => "exists { … }".into(),
            ExKind::Count(_) => "count { … }".into(),
            ExKind::Graph(function, arguments) => {
                let arguments: Vec<_> = arguments.iter().map(|e| self.ex(e)).collect();
                format!("{}({})", format!("{function:?}").to_lowercase(), arguments.join(", "))
            }
            ExKind::List(items) => {
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

fn length(stretch: &Stretch) -> String {
    match (stretch.least, stretch.most) {
        (least, u64::MAX) => format!("*{least}.."),
        (least, most) => format!("*{least}..{most}"),
    }
}
