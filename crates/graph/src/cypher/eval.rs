//! Evaluates expressions in a row.

use super::ast::{ComparisonOperator, Operator, Quantifier};
use super::deep;
use super::expr::{GraphFunction, MapEntry, PlanExpr, PlanExprKind, Slot};
use super::fault::{Fault, FaultClass};
use super::functions::{FunctionError, component};
use super::operators;
use super::run::{Executor, QueryError, QueryStop};
use super::value::{PathValue, Value, equals};
use crate::contents::{KEY, PropertyNo, in_row};
use crate::convert::length;
use crate::snapshot::Edge;
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) type Row = Vec<Value>;
type Found = Result<Value, QueryStop>;

static NULL: Value = Value::Null;

pub(super) fn wrong(wrong: FunctionError, at: usize) -> QueryStop {
    Box::new(QueryError::Fault(Fault { class: wrong.class, detail: wrong.detail, message: wrong.message, at }))
}

pub(super) fn fail(class: FaultClass, detail: &'static str, message: impl Into<String>, at: usize) -> QueryStop {
    Box::new(QueryError::Fault(Fault { class, detail, message: message.into(), at }))
}

/// Values of at least this many bytes are charged while they are held, and the deadline is checked before they are
/// copied.
const LARGE: usize = 64 << 10;

/// The size of a value without its heap memory.
pub(super) fn shallow(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::List(items) => items.len() * size_of::<Value>(),
        Value::Map(entries) => entries.len() * 64,
        Value::Path(path) => path.nodes.len() * 8,
        _ => 0,
    }
}

/// Values that an expression holds until it is done. Their memory is charged meanwhile.
struct Held<'e, 'x> {
    exec: &'e Executor<'x>,
    bytes: usize,
    /// Bytes that are held but too few to be charged yet.
    small: usize,
}

impl<'e, 'x> Held<'e, 'x> {
    fn new(exec: &'e Executor<'x>) -> Held<'e, 'x> {
        Held { exec, bytes: 0, small: 0 }
    }

    fn value(&mut self, value: Value) -> Found {
        self.more(shallow(&value))?;
        Ok(value)
    }

    fn more(&mut self, bytes: usize) -> Result<(), QueryStop> {
        self.small += bytes;
        if self.small > LARGE {
            self.exec.charge(self.small)?;
            self.bytes += std::mem::take(&mut self.small);
        }
        Ok(())
    }
}

impl Drop for Held<'_, '_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.exec.release(self.bytes);
        }
    }
}

impl Executor<'_> {
    pub(super) fn eval(&self, ex: &PlanExpr, row: &mut Row) -> Found {
        match &ex.kind {
            PlanExprKind::Const(value) => Ok(value.clone()),
            PlanExprKind::Slot(slot) => Ok(row[*slot].clone()),
            PlanExprKind::Property(subject, name, number) => match subject.kind {
                PlanExprKind::Slot(slot) => self.property(&row[slot], name, *number, ex.at),
                _ => deep(|| self.eval_nested(ex, row)),
            },
            _ => deep(|| self.eval_nested(ex, row)),
        }
    }

    fn eval_nested(&self, ex: &PlanExpr, row: &mut Row) -> Found {
        Ok(match &ex.kind {
            PlanExprKind::Const(value) => value.clone(),
            PlanExprKind::Slot(slot) => row[*slot].clone(),
            PlanExprKind::Property(subject, name, number) => {
                let subject = self.eval(subject, row)?;
                self.property(&subject, name, *number, ex.at)?
            }
            PlanExprKind::Compare(first, rest) => {
                let truth = if let [(comparison, second)] = rest.as_slice() {
                    self.compared(first, *comparison, second, row)?
                } else {
                    self.chain(first, rest, row)?
                };
                operators::of_truth(truth)
            }
            PlanExprKind::Binary(operator, a, b) => self.binary(*operator, a, b, ex.at, row)?,
            PlanExprKind::Not(inner) => operators::of_truth(self.truth(inner, row)?.map(|t| !t)),
            PlanExprKind::Negate(inner) => operators::negate(&self.eval(inner, row)?).map_err(|w| wrong(w, ex.at))?,
            PlanExprKind::Plus(inner) => self.eval(inner, row)?,
            PlanExprKind::IsNull(inner, null) => Value::Bool(self.eval(inner, row)?.is_null() == *null),
            PlanExprKind::List(items) => {
                let mut all = Vec::with_capacity(items.len());
                let mut held = Held::new(self);
                for item in items {
                    all.push(held.value(self.eval(item, row)?)?);
                }
                self.sized(Value::list(all), ex.at)?
            }
            PlanExprKind::Map(entries) => {
                let mut all = std::collections::BTreeMap::new();
                let mut held = Held::new(self);
                for (name, e) in entries {
                    all.insert(name.clone(), held.value(self.eval(e, row)?)?);
                }
                self.sized(Value::Map(Arc::new(all)), ex.at)?
            }
            PlanExprKind::HasLabels(subject, labels) => match self.eval(subject, row)? {
                Value::Null => Value::Null,
                Value::Node(node) => Value::Bool(labels.iter().all(|l| l.node(self.snapshot, node))),
                Value::Edge(edge) => {
                    let name = self.snapshot.edge_type(edge);
                    let is_type = |l: &str| self.snapshot.registry.is_same_type(l, name, true);
                    Value::Bool(labels.iter().all(|l| is_type(&l.name)))
                }
                other => return Err(self.not_a("a node", &other, ex.at)),
            },
            PlanExprKind::Index(subject, index) => {
                let (subject, index) = (self.eval(subject, row)?, self.eval(index, row)?);
                match (&subject, &index) {
                    (Value::Node(_) | Value::Edge(_), Value::Text(name)) => {
                        // A name that no row has is unknown, so the property does not exist.
                        match &subject {
                            Value::Node(node) => drop(self.contents.node(*node)?),
                            Value::Edge(edge) => drop(self.contents.edge(*edge)?),
                            _ => {}
                        }
                        match self.snapshot.properties().find(name) {
                            Some(number) => self.property(&subject, name, number, ex.at)?,
                            None => Value::Null,
                        }
                    }
                    (Value::Node(_) | Value::Edge(_), Value::Null) => Value::Null,
                    (Value::Node(_) | Value::Edge(_), other) => {
                        let message = format!("a property has no name like a {}", other.type_name());
                        return Err(fail(FaultClass::Type, "MapElementAccessByNonString", message, ex.at));
                    }
                    _ => operators::element(&subject, &index).map_err(|w| wrong(w, ex.at))?,
                }
            }
            PlanExprKind::Slice(subject, from, to) => {
                let subject = self.eval(subject, row)?;
                let from = from.as_ref().map(|e| self.eval(e, row)).transpose()?;
                let to = to.as_ref().map(|e| self.eval(e, row)).transpose()?;
                operators::slice(&subject, from.as_ref(), to.as_ref()).map_err(|w| wrong(w, ex.at))?
            }
            PlanExprKind::Call(run, arguments) => {
                let mut all = Vec::with_capacity(arguments.len());
                let mut held = Held::new(self);
                for argument in arguments {
                    all.push(held.value(self.eval(argument, row)?)?);
                }
                if held.bytes > 0 {
                    self.check_time()?;
                }
                let found = run(&all, &self.around).map_err(|w| wrong(w, ex.at))?;
                self.sized(found, ex.at)?
            }
            PlanExprKind::Graph(function, arguments) => self.graph(*function, arguments, ex.at, row)?,
            PlanExprKind::Case { subject, branches, otherwise } => {
                let subject = subject.as_ref().map(|s| self.eval(s, row)).transpose()?;
                for (when, then) in branches {
                    let hit = match &subject {
                        Some(subject) => equals(subject, &self.eval(when, row)?) == Some(true),
                        None => self.truth(when, row)? == Some(true),
                    };
                    if hit {
                        return self.eval(then, row);
                    }
                }
                otherwise.as_ref().map_or(Ok(Value::Null), |e| self.eval(e, row))?
            }
            PlanExprKind::Each { slot, list, filter, map } => {
                let Some(items) = self.items(list, row)? else { return Ok(Value::Null) };
                let mut all = Vec::new();
                let mut held = Held::new(self);
                for item in items.iter() {
                    self.tick()?;
                    row[*slot] = item.clone();
                    if let Some(filter) = filter
                        && self.truth(filter, row)? != Some(true)
                    {
                        continue;
                    }
                    all.push(match map {
                        Some(map) => held.value(self.eval(map, row)?)?,
                        None => item.clone(),
                    });
                    held.more(size_of::<Value>())?;
                }
                self.sized(Value::list(all), ex.at)?
            }
            PlanExprKind::Quantified { quantifier, slot, list, filter } => {
                let Some(items) = self.items(list, row)? else { return Ok(Value::Null) };
                operators::of_truth(self.quantified(*quantifier, *slot, &items, filter.as_deref(), row)?)
            }
            PlanExprKind::Reduce { sum, start, slot, list, step } => {
                let mut total = self.eval(start, row)?;
                let Some(items) = self.items(list, row)? else { return Ok(Value::Null) };
                for item in items.iter() {
                    self.tick()?;
                    row[*sum] = total;
                    row[*slot] = item.clone();
                    total = self.eval(step, row)?;
                }
                total
            }
            PlanExprKind::MapProjection { subject, parts } => {
                let subject = self.eval(subject, row)?;
                if subject.is_null() {
                    return Ok(Value::Null);
                }
                let mut all = std::collections::BTreeMap::new();
                for part in parts {
                    match part {
                        MapEntry::All => all.extend(self.entries(&subject, ex.at)?),
                        MapEntry::Property(name, number) => {
                            all.insert(name.clone(), self.property(&subject, name, *number, ex.at)?);
                        }
                        MapEntry::Entry(name, e) => {
                            all.insert(name.clone(), self.eval(e, row)?);
                        }
                    }
                }
                self.sized(Value::Map(Arc::new(all)), ex.at)?
            }
            PlanExprKind::Gather(part, map) => {
                let mut all = Vec::new();
                let mut held = Held::new(self);
                self.run_part(part, row, &mut |row| {
                    all.push(held.value(self.eval(map, row)?)?);
                    held.more(size_of::<Value>())?;
                    if all.len() > self.around.longest_list {
                        return Err(self.too_long(ex.at));
                    }
                    Ok(true)
                })?;
                self.sized(Value::list(all), ex.at)?
            }
            PlanExprKind::First(part, map) => {
                let mut found = Value::Null;
                self.run_part(part, row, &mut |row| {
                    found = self.eval(map, row)?;
                    Ok(false)
                })?;
                found
            }
            PlanExprKind::Exists(whole) => {
                let mut any = false;
                self.run_whole(whole, row, &mut |_, _| {
                    any = true;
                    Ok(false)
                })?;
                Value::Bool(any)
            }
            PlanExprKind::Count(whole) => {
                let mut count = 0;
                self.run_whole(whole, row, &mut |_, _| {
                    count += 1;
                    Ok(true)
                })?;
                Value::Integer(count)
            }
        })
    }

    pub(super) fn truth(&self, ex: &PlanExpr, row: &mut Row) -> Result<Option<bool>, QueryStop> {
        if let PlanExprKind::Compare(first, rest) = &ex.kind
            && let [(comparison, second)] = rest.as_slice()
        {
            return self.compared(first, *comparison, second, row);
        }
        operators::truth(&self.eval(ex, row)?).map_err(|w| wrong(w, ex.at))
    }

    /// The value of an expression, if it exists already and need not be computed.
    #[inline]
    pub(super) fn peek<'v>(&'v self, ex: &'v PlanExpr, row: &'v Row) -> Result<Option<&'v Value>, QueryStop> {
        Ok(match &ex.kind {
            PlanExprKind::Const(value) => Some(value),
            PlanExprKind::Slot(slot) => Some(&row[*slot]),
            PlanExprKind::Property(subject, _, number) => match &subject.kind {
                PlanExprKind::Slot(slot) => match &row[*slot] {
                    Value::Node(node) => match self.column(*number) {
                        Some(column) => Some(column.of(*node)),
                        None if *number == KEY => None,
                        None => Some(in_row(self.contents.node(*node)?, *number).unwrap_or(&NULL)),
                    },
                    Value::Edge(edge) => Some(in_row(self.contents.edge(*edge)?, *number).unwrap_or(&NULL)),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        })
    }

    #[inline]
    fn compared(
        &self,
        a: &PlanExpr,
        comparison: ComparisonOperator,
        b: &PlanExpr,
        row: &mut Row,
    ) -> Result<Option<bool>, QueryStop> {
        if let Some(left) = self.peek(a, row)?
            && let Some(right) = self.peek(b, row)?
        {
            return Ok(compare(left, comparison, right));
        }
        let a = self.eval(a, row)?;
        if let PlanExprKind::Const(b) = &b.kind {
            return Ok(compare(&a, comparison, b));
        }
        Ok(compare(&a, comparison, &self.eval(b, row)?))
    }

    fn chain(
        &self,
        first: &PlanExpr,
        rest: &[(ComparisonOperator, PlanExpr)],
        row: &mut Row,
    ) -> Result<Option<bool>, QueryStop> {
        let mut left = self.eval(first, row)?;
        let mut all = Some(true);
        for (comparison, e) in rest {
            let right = self.eval(e, row)?;
            all = operators::and(all, compare(&left, *comparison, &right));
            if all == Some(false) {
                break;
            }
            left = right;
        }
        Ok(all)
    }

    fn binary(&self, operator: Operator, a: &PlanExpr, b: &PlanExpr, at: usize, row: &mut Row) -> Found {
        match operator {
            Operator::And => {
                let left = self.truth(a, row)?;
                if left == Some(false) {
                    return Ok(Value::Bool(false));
                }
                return Ok(operators::of_truth(operators::and(left, self.truth(b, row)?)));
            }
            Operator::Or => {
                let left = self.truth(a, row)?;
                if left == Some(true) {
                    return Ok(Value::Bool(true));
                }
                return Ok(operators::of_truth(operators::or(left, self.truth(b, row)?)));
            }
            Operator::Xor => {
                let left = self.truth(a, row)?;
                return Ok(operators::of_truth(operators::xor(left, self.truth(b, row)?)));
            }
            _ => {}
        }
        let (a, b) = (self.eval(a, row)?, self.eval(b, row)?);
        let found = match operator {
            Operator::Add => {
                self.sum_fits(&a, &b, at)?;
                if shallow(&a) + shallow(&b) > LARGE {
                    self.check_time()?;
                }
                operators::add(&a, &b)
            }
            Operator::Subtract => operators::subtract(&a, &b),
            Operator::Multiply => operators::multiply(&a, &b),
            Operator::Divide => operators::divide(&a, &b),
            Operator::Modulo => operators::modulo(&a, &b),
            Operator::Power => operators::power(&a, &b),
            Operator::In => {
                if shallow(&b) > LARGE {
                    self.check_time()?;
                }
                operators::is_in(&a, &b)
            }
            Operator::StartsWith => Ok(operators::text_test(&a, &b, |a, b| a.starts_with(b))),
            Operator::EndsWith => Ok(operators::text_test(&a, &b, |a, b| a.ends_with(b))),
            Operator::Contains => Ok(operators::text_test(&a, &b, |a, b| a.contains(b))),
            Operator::And | Operator::Or | Operator::Xor | Operator::Matches => Ok(Value::Null),
        };
        let found = found.map_err(|w| wrong(w, at))?;
        if operator == Operator::Add { self.sized(found, at) } else { Ok(found) }
    }

    fn quantified(
        &self,
        quantifier: Quantifier,
        slot: Slot,
        items: &[Value],
        filter: Option<&PlanExpr>,
        row: &mut Row,
    ) -> Result<Option<bool>, QueryStop> {
        let (mut yes, mut open) = (0usize, 0usize);
        for item in items {
            self.tick()?;
            row[slot] = item.clone();
            let found = match filter {
                Some(filter) => self.truth(filter, row)?,
                None => operators::truth(item).map_err(|w| wrong(w, 0))?,
            };
            match found {
                Some(true) => yes += 1,
                Some(false) => {}
                None => open += 1,
            }
        }
        let no = items.len() - yes - open;
        Ok(match quantifier {
            Quantifier::All if no > 0 => Some(false),
            Quantifier::Any if yes > 0 => Some(true),
            Quantifier::None if yes > 0 => Some(false),
            Quantifier::Single if yes > 1 => Some(false),
            _ if open > 0 => None,
            Quantifier::All | Quantifier::None => Some(true),
            Quantifier::Any => Some(false),
            Quantifier::Single => Some(yes == 1),
        })
    }

    /// The elements of a list. `None` for null.
    fn items(&self, list: &PlanExpr, row: &mut Row) -> Result<Option<Arc<Vec<Value>>>, QueryStop> {
        match self.eval(list, row)? {
            Value::Null => Ok(None),
            Value::List(items) => Ok(Some(items)),
            other => Err(self.not_a("a list", &other, list.at)),
        }
    }

    fn not_a(&self, wanted: &str, found: &Value, at: usize) -> QueryStop {
        let message = format!("expected {wanted}, found a {}", found.type_name());
        fail(FaultClass::Type, "InvalidArgumentValue", message, at)
    }

    #[inline]
    pub(super) fn property(&self, subject: &Value, name: &str, number: PropertyNo, at: usize) -> Found {
        match subject {
            Value::Node(node) => match self.column(number) {
                Some(column) => Ok(column.of(*node).clone()),
                None => Ok(self.contents.node_property(*node, number)?),
            },
            Value::Edge(edge) => Ok(self.contents.edge_property(*edge, number)?),
            other => self.part(other, name, at),
        }
    }

    fn part(&self, subject: &Value, name: &str, at: usize) -> Found {
        match subject {
            Value::Null => Ok(Value::Null),
            Value::Map(entries) => Ok(entries.get(name).cloned().unwrap_or_default()),
            Value::Date(_)
            | Value::LocalTime(_)
            | Value::Time(_)
            | Value::LocalDateTime(_)
            | Value::DateTime(_)
            | Value::Duration(_) => component(subject, name).ok_or_else(|| {
                let message = format!("a {} has no `{name}`", subject.type_name());
                fail(FaultClass::Type, "InvalidArgumentValue", message, at)
            }),
            other => {
                let message = format!("a {} has no properties", other.type_name());
                Err(fail(FaultClass::Type, "InvalidArgumentType", message, at))
            }
        }
    }

    /// All properties of a node, a relationship or a map, by name.
    pub(super) fn entries(&self, subject: &Value, at: usize) -> Result<Vec<(String, Value)>, QueryStop> {
        let named = |all: Vec<(Arc<str>, Value)>| all.into_iter().map(|(name, v)| (name.to_string(), v)).collect();
        match subject {
            Value::Node(node) => Ok(named(self.contents.node_properties(*node)?)),
            Value::Edge(edge) => Ok(named(self.contents.edge_properties(*edge)?)),
            Value::Map(entries) => Ok(entries.iter().map(|(k, v)| (k.clone(), v.clone())).collect()),
            other => Err(self.not_a("a node, a relationship or a map", other, at)),
        }
    }

    fn graph(&self, function: GraphFunction, arguments: &[PlanExpr], at: usize, row: &mut Row) -> Found {
        use GraphFunction as F;
        let s = self.snapshot;
        match function {
            F::Rand => return Ok(Value::Float(self.random())),
            F::Timestamp => return Ok(Value::Integer(i64::try_from(self.around.now / 1_000_000).unwrap_or(i64::MAX))),
            _ => {}
        }
        let value = self.eval(&arguments[0], row)?;
        if value.is_null() {
            return Ok(Value::Null);
        }
        let list = |items: Vec<Value>| Ok(Value::list(items));
        match (function, &value) {
            (F::Labels, Value::Node(node)) => list(self.labels(*node).into_iter().map(Value::Text).collect()),
            (F::Type, Value::Edge(edge)) => Ok(Value::Text(Arc::clone(s.edge_type(*edge)))),
            (F::Id, Value::Node(node)) => Ok(Value::Integer(s.thing(*node).0.cast_signed())),
            (F::Id, Value::Edge(edge)) => Ok(Value::Integer(s.edge_thing(*edge).0.cast_signed())),
            (F::ElementId, Value::Node(node)) => Ok(Value::text(&s.id(*node).to_string())),
            (F::ElementId, Value::Edge(edge)) => Ok(Value::text(&s.edge_id(*edge).to_string())),
            (F::Keys, v) => list(self.entries(v, at)?.into_iter().map(|(name, _)| Value::text(&name)).collect()),
            (F::Properties, v) => Ok(Value::Map(Arc::new(self.entries(v, at)?.into_iter().collect()))),
            (F::Nodes, Value::Path(path)) => list(path.nodes.iter().map(|n| Value::Node(*n)).collect()),
            (F::Relationships, Value::Path(path)) => list(path.edges.iter().map(|e| Value::Edge(*e)).collect()),
            (F::StartNode, Value::Edge(edge)) => Ok(Value::Node(s.ends(*edge).0)),
            (F::EndNode, Value::Edge(edge)) => Ok(Value::Node(s.ends(*edge).1)),
            (F::Length, Value::Path(path)) => Ok(Value::Integer(length(path.edges.len()))),
            (F::Degree, Value::Node(node)) => Ok(Value::Integer(length(s.degree(*node)))),
            (F::Ended, Value::Node(node)) => Ok(Value::Bool(s.is_ended(*node))),
            (F::IsEmpty, Value::List(items)) => Ok(Value::Bool(items.is_empty())),
            (F::IsEmpty, Value::Text(text)) => Ok(Value::Bool(text.is_empty())),
            (F::IsEmpty, Value::Map(entries)) => Ok(Value::Bool(entries.is_empty())),
            (F::Matches, Value::Text(text)) => match self.eval(&arguments[1], row)? {
                Value::Null => Ok(Value::Null),
                Value::Text(pattern) => Ok(Value::Bool(self.matches(&pattern, text, at)?)),
                other => Err(self.not_a("a regular expression", &other, at)),
            },
            (F::Matches, _) => Ok(Value::Null),
            (_, other) => {
                let message = format!("the function does not take a {}", other.type_name());
                Err(fail(FaultClass::Type, "InvalidArgumentValue", message, at))
            }
        }
    }

    /// The path along edges from a node. Null if a part is null.
    pub(super) fn path(&self, start: &Value, edges: &[Slot], row: &Row) -> Value {
        let Value::Node(start) = start else { return Value::Null };
        let mut path = PathValue { nodes: vec![*start], edges: Vec::new() };
        for slot in edges {
            match &row[*slot] {
                Value::Edge(edge) => self.along(&mut path, *edge),
                Value::List(items) => {
                    for item in items.iter() {
                        if let Value::Edge(edge) = item {
                            self.along(&mut path, *edge);
                        }
                    }
                }
                _ => return Value::Null,
            }
        }
        Value::Path(Arc::new(path))
    }

    fn along(&self, path: &mut PathValue, edge: Edge) {
        let (src, dst) = self.snapshot.ends(edge);
        let last = path.nodes[path.nodes.len() - 1];
        path.edges.push(edge);
        path.nodes.push(if last == src { dst } else { src });
    }
}

fn compare(a: &Value, comparison: ComparisonOperator, b: &Value) -> Option<bool> {
    use Ordering::{Equal, Greater, Less};
    match comparison {
        ComparisonOperator::Equal => equals(a, b),
        ComparisonOperator::NotEqual => equals(a, b).map(|t| !t),
        ComparisonOperator::Less => operators::ordered(a, b, &[Less]),
        ComparisonOperator::LessOrEqual => operators::ordered(a, b, &[Less, Equal]),
        ComparisonOperator::Greater => operators::ordered(a, b, &[Greater]),
        ComparisonOperator::GreaterOrEqual => operators::ordered(a, b, &[Greater, Equal]),
    }
}
