//! Compiles expressions, and checks that variables exist and that functions accept their arguments.

use super::super::ast::{CypherExpr, CypherExprKind, CypherName, MapPart, Operator, Shortest, Subquery};
use super::super::deep;
use super::super::expr::{
    Aggregate, AggregateCall, GraphFunction, MapEntry, PlanExpr, PlanExprKind, QueryPart, QueryPlan,
};
use super::super::fault::{Fault, FaultClass, Result};
use super::super::functions::find;
use super::super::value::Value;
use super::types::ExprType;
use super::{Aggregation, Compiler, Scope, Var, fault, undefined};
use crate::contents::PropertyNo;
use std::sync::Arc;

type Typed = (PlanExpr, ExprType);

fn wrong_type(wanted: &str, found: &ExprType, at: usize) -> Fault {
    Fault::syntax("InvalidArgumentType", format!("expected {wanted}, found a {}", found.name()), at)
}

fn type_of(value: &Value) -> ExprType {
    match value {
        Value::Null => ExprType::Null,
        Value::Bool(_) => ExprType::Bool,
        Value::Integer(_) => ExprType::Integer,
        Value::Float(_) => ExprType::Float,
        Value::Text(_) => ExprType::Text,
        Value::List(items) => ExprType::list(items.iter().map(type_of).reduce(ExprType::join).unwrap_or(ExprType::Any)),
        Value::Map(_) => ExprType::Map,
        Value::Node(_) => ExprType::Node,
        Value::Edge(_) => ExprType::Edge,
        Value::Path(_) => ExprType::Path,
        _ => ExprType::Moment,
    }
}

/// Whether an expression has one value in each group if one of the keys is equal to it.
fn is_plain(expr: &CypherExpr) -> bool {
    match &expr.kind {
        CypherExprKind::Variable(_) => true,
        CypherExprKind::Property(subject, _) => is_plain(subject),
        _ => false,
    }
}

fn is_aggregate(expr: &CypherExpr) -> bool {
    match &expr.kind {
        CypherExprKind::CountStar => true,
        CypherExprKind::Call { function, .. } => Aggregate::find(&function.text).is_some(),
        _ => false,
    }
}

impl Compiler<'_> {
    pub(super) fn expr(&mut self, expr: &CypherExpr, scope: &Scope) -> Result<Typed> {
        let inner = matches!(
            expr.kind,
            CypherExprKind::ListComprehension { .. }
                | CypherExprKind::Quantifier { .. }
                | CypherExprKind::Reduce { .. }
                | CypherExprKind::PatternComprehension { .. }
        );
        // Its own variables hide keys that use variables of the same name, and they are removed afterwards.
        let saved = match &self.aggregation {
            Aggregation::Grouped { keys, .. } if inner => Some(keys.clone()),
            _ => None,
        };
        let found = deep(|| self.compiled(expr, scope))?;
        if let (Some(saved), Aggregation::Grouped { keys, .. }) = (saved, &mut self.aggregation) {
            *keys = saved;
        }
        Ok(found)
    }

    fn compiled(&mut self, expr: &CypherExpr, scope: &Scope) -> Result<Typed> {
        let at = expr.at;
        let patterns = std::mem::replace(&mut self.patterns, false);
        if let Aggregation::Grouped { keys, .. } = &self.aggregation
            && (is_plain(expr) || is_aggregate(expr))
            && let Some((_, var)) = keys.iter().find(|(key, _)| key == expr)
        {
            return Ok((PlanExpr::slot(var.slot, at), var.ty.clone()));
        }
        let value = |value: Value| {
            let ty = type_of(&value);
            Ok((PlanExpr { kind: PlanExprKind::Const(value), at }, ty))
        };
        let (kind, ty) = match &expr.kind {
            CypherExprKind::Null => return value(Value::Null),
            CypherExprKind::Bool(b) => return value(Value::Bool(*b)),
            CypherExprKind::Integer(n) => return value(Value::Integer(*n)),
            CypherExprKind::Float(f) => return value(Value::Float(*f)),
            CypherExprKind::Text(t) => return value(Value::text(t)),
            CypherExprKind::Parameter(name) => {
                let found = self.frame.parameters.get(name).cloned().ok_or_else(|| {
                    fault(FaultClass::Parameter, "MissingParameter", format!("no value is given for `${name}`"), at)
                })?;
                // A parameter may have another type the next time, so its type is not checked.
                return Ok((PlanExpr { kind: PlanExprKind::Const(found), at }, ExprType::Any));
            }
            CypherExprKind::Variable(name) => return self.variable(name, at, scope),
            CypherExprKind::List(items) => return self.list(items, at, scope),
            CypherExprKind::Map(entries) => {
                let mut all = Vec::with_capacity(entries.len());
                for (name, e) in entries {
                    all.push((name.text.clone(), self.expr(e, scope)?.0));
                }
                (PlanExprKind::Map(all), ExprType::Map)
            }
            CypherExprKind::Property(subject, name) => return self.property(subject, name, at, scope),
            CypherExprKind::HasLabels(subject, names) => {
                let (subject, ty) = self.expr(subject, scope)?;
                if !ty.may_be(&ExprType::Node) && ty != ExprType::Edge {
                    return Err(wrong_type("a node or a relationship", &ty, at));
                }
                let labels = names.iter().map(|n| self.label(&n.text)).collect();
                (PlanExprKind::HasLabels(Box::new(subject), labels), ExprType::Bool)
            }
            CypherExprKind::Index(subject, index) => {
                let (subject, ty) = self.expr(subject, scope)?;
                let (index, _) = self.expr(index, scope)?;
                let of = if let ExprType::List(of) = ty { *of } else { ExprType::Any };
                (PlanExprKind::Index(Box::new(subject), Box::new(index)), of)
            }
            CypherExprKind::Slice(subject, from, to) => {
                let (subject, ty) = self.expr(subject, scope)?;
                let from = from.as_ref().map(|e| self.boxed(e, scope)).transpose()?;
                let to = to.as_ref().map(|e| self.boxed(e, scope)).transpose()?;
                (PlanExprKind::Slice(Box::new(subject), from, to), ty)
            }
            CypherExprKind::Not(inner) => {
                self.patterns = patterns;
                (PlanExprKind::Not(Box::new(self.truth(inner, scope)?)), ExprType::Bool)
            }
            CypherExprKind::Negate(inner) => {
                let (ex, ty) = self.amount(inner, scope)?;
                (PlanExprKind::Negate(Box::new(ex)), ty)
            }
            CypherExprKind::Plus(inner) => {
                let (ex, ty) = self.amount(inner, scope)?;
                (PlanExprKind::Plus(Box::new(ex)), ty)
            }
            CypherExprKind::Binary(operator, a, b) => {
                self.patterns = patterns;
                self.binary(*operator, a, b, scope)?
            }
            CypherExprKind::Compare(first, rest) => {
                let first = self.boxed(first, scope)?;
                let mut all = Vec::with_capacity(rest.len());
                for (comparison, e) in rest {
                    all.push((*comparison, self.expr(e, scope)?.0));
                }
                (PlanExprKind::Compare(first, all), ExprType::Bool)
            }
            CypherExprKind::IsNull(inner) => (PlanExprKind::IsNull(self.boxed(inner, scope)?, true), ExprType::Bool),
            CypherExprKind::IsNotNull(inner) => {
                (PlanExprKind::IsNull(self.boxed(inner, scope)?, false), ExprType::Bool)
            }
            CypherExprKind::Call { function, distinct, arguments } => {
                return self.call(function, *distinct, arguments, at, scope);
            }
            CypherExprKind::CountStar => return self.aggregate(Aggregate::Count, false, None, None, at, scope),
            CypherExprKind::Case { subject, branches, otherwise } => {
                return self.case(subject.as_deref(), branches, otherwise.as_deref(), at, scope);
            }
            CypherExprKind::ListComprehension { name, list, filter, map } => {
                [filter, map].into_iter().flatten().try_for_each(|e| no_aggregate(e))?;
                let (list, of) = self.elements(list, scope)?;
                let mut inner = scope.clone();
                let slot = self.local(name, of.clone(), &mut inner);
                let filter = filter.as_ref().map(|f| self.filter(f, &inner).map(Box::new)).transpose()?;
                let mapped = map.as_ref().map(|m| self.expr(m, &inner)).transpose()?;
                let (map, of) = mapped.map_or((None, of), |(ex, ty)| (Some(Box::new(ex)), ty));
                (PlanExprKind::Each { slot, list, filter, map }, ExprType::list(of))
            }
            CypherExprKind::Quantifier { quantifier, name, list, filter } => {
                filter.iter().try_for_each(|e| no_aggregate(e))?;
                let (list, of) = self.elements(list, scope)?;
                let mut inner = scope.clone();
                let slot = self.local(name, of, &mut inner);
                let filter = filter.as_ref().map(|f| self.filter(f, &inner).map(Box::new)).transpose()?;
                (PlanExprKind::Quantified { quantifier: *quantifier, slot, list, filter }, ExprType::Bool)
            }
            CypherExprKind::Reduce { sum, start, name, list, step } => {
                no_aggregate(step)?;
                let (start, _) = self.expr(start, scope)?;
                let (list, of) = self.elements(list, scope)?;
                let mut inner = scope.clone();
                let total = self.local(sum, ExprType::Any, &mut inner);
                let slot = self.local(name, of, &mut inner);
                let step = self.boxed(step, &inner)?;
                (PlanExprKind::Reduce { sum: total, start: Box::new(start), slot, list, step }, ExprType::Any)
            }
            CypherExprKind::MapProjection { subject, parts } => self.map_projection(subject, parts, scope)?,
            CypherExprKind::Pattern(pattern) => {
                if !patterns {
                    let message = "a pattern can only stand where a truth is asked for; use exists { … } or a \
                                   pattern comprehension";
                    return Err(Fault::syntax("UnexpectedSyntax", message, at));
                }
                let part = self.predicate(pattern, scope)?;
                (PlanExprKind::Exists(Box::new(QueryPlan { parts: vec![part], distinct: false })), ExprType::Bool)
            }
            CypherExprKind::PatternComprehension { name, pattern, filter, map } => {
                let (part, map) = self.comprehension(name.as_ref(), pattern, filter.as_deref(), map, scope)?;
                (PlanExprKind::Gather(Box::new(part), Box::new(map)), ExprType::list(ExprType::Any))
            }
            CypherExprKind::ShortestPath(which, pattern) => {
                let (part, path) = self.shortest(*which, pattern, scope)?;
                match which {
                    Shortest::One => {
                        (PlanExprKind::First(Box::new(part), Box::new(PlanExpr::slot(path, at))), ExprType::Path)
                    }
                    Shortest::All => (
                        PlanExprKind::Gather(Box::new(part), Box::new(PlanExpr::slot(path, at))),
                        ExprType::list(ExprType::Path),
                    ),
                }
            }
            CypherExprKind::Exists(subquery) => {
                (PlanExprKind::Exists(Box::new(self.subquery(subquery, scope)?)), ExprType::Bool)
            }
            CypherExprKind::Count(subquery) => {
                (PlanExprKind::Count(Box::new(self.subquery(subquery, scope)?)), ExprType::Integer)
            }
        };
        Ok((PlanExpr { kind, at }, ty))
    }

    fn boxed(&mut self, expr: &CypherExpr, scope: &Scope) -> Result<Box<PlanExpr>> {
        Ok(Box::new(self.expr(expr, scope)?.0))
    }

    /// A variable that is visible only inside an expression.
    fn local(&mut self, name: &CypherName, ty: ExprType, scope: &mut Scope) -> usize {
        let slot = self.slot(&name.text);
        scope.add(&name.text, Var { slot, ty: ty.clone() });
        if let Aggregation::Grouped { keys, .. } = &mut self.aggregation {
            keys.retain(|(key, _)| !speaks_of(key, &name.text));
            // Its value is the same wherever it is visible.
            let kind = CypherExprKind::Variable(name.text.clone());
            keys.insert(0, (CypherExpr { kind, at: name.at }, Var { slot, ty }));
        }
        slot
    }

    fn variable(&mut self, name: &str, at: usize, scope: &Scope) -> Result<Typed> {
        let var = scope.get(name).ok_or_else(|| undefined(name, at))?;
        if matches!(self.aggregation, Aggregation::Grouped { .. }) {
            let message = format!("`{name}` is not a grouping key, so it can have many values here");
            return Err(Fault::syntax("AmbiguousAggregationExpression", message, at));
        }
        Ok((PlanExpr::slot(var.slot, at), var.ty.clone()))
    }

    fn list(&mut self, items: &[CypherExpr], at: usize, scope: &Scope) -> Result<Typed> {
        let mut all = Vec::with_capacity(items.len());
        let mut of: Option<ExprType> = None;
        for item in items {
            let (ex, ty) = self.expr(item, scope)?;
            all.push(ex);
            of = Some(of.map_or(ty.clone(), |t| t.join(ty)));
        }
        let ty = ExprType::list(of.unwrap_or(ExprType::Any));
        let constants: Option<Vec<Value>> =
            all.iter().map(|e| if let PlanExprKind::Const(v) = &e.kind { Some(v.clone()) } else { None }).collect();
        let kind = constants.map_or(PlanExprKind::List(all), |values| PlanExprKind::Const(Value::list(values)));
        Ok((PlanExpr { kind, at }, ty))
    }

    fn property(&mut self, subject: &CypherExpr, name: &CypherName, at: usize, scope: &Scope) -> Result<Typed> {
        let (subject, ty) = self.expr(subject, scope)?;
        match ty {
            ExprType::Any | ExprType::Null | ExprType::Map | ExprType::Node | ExprType::Edge | ExprType::Moment => {}
            ExprType::Path => return Err(wrong_type("a node, a relationship or a map", &ty, at)),
            _ => {
                let message = format!("a {} has no properties", ty.name());
                return Err(fault(FaultClass::Type, "InvalidArgumentType", message, at));
            }
        }
        let number = match ty {
            ExprType::Edge | ExprType::Map | ExprType::Moment => self.frame.snapshot.properties().number(&name.text),
            _ => self.property_no(&name.text, ty == ExprType::Node),
        };
        Ok((
            PlanExpr { kind: PlanExprKind::Property(Box::new(subject), name.text.as_str().into(), number), at },
            ExprType::Any,
        ))
    }

    /// An expression that must be true or false.
    pub(super) fn truth(&mut self, expr: &CypherExpr, scope: &Scope) -> Result<PlanExpr> {
        let (ex, ty) = self.expr(expr, scope)?;
        if ty.may_be_truth() { Ok(ex) } else { Err(wrong_type("true or false", &ty, expr.at)) }
    }

    /// A condition that selects rows. A pattern may be one.
    pub(super) fn filter(&mut self, expr: &CypherExpr, scope: &Scope) -> Result<PlanExpr> {
        self.patterns = true;
        let found = self.truth(expr, scope);
        self.patterns = false;
        found
    }

    fn amount(&mut self, expr: &CypherExpr, scope: &Scope) -> Result<Typed> {
        let (ex, ty) = self.expr(expr, scope)?;
        if ty.may_be_amount() { Ok((ex, ty)) } else { Err(wrong_type("a number", &ty, expr.at)) }
    }

    fn elements(&mut self, list: &CypherExpr, scope: &Scope) -> Result<(Box<PlanExpr>, ExprType)> {
        let (ex, ty) = self.expr(list, scope)?;
        let of = match ty {
            ExprType::List(of) => *of,
            ExprType::Any | ExprType::Null => ExprType::Any,
            other => return Err(wrong_type("a list", &other, list.at)),
        };
        Ok((Box::new(ex), of))
    }

    fn binary(
        &mut self,
        operator: Operator,
        a: &CypherExpr,
        b: &CypherExpr,
        scope: &Scope,
    ) -> Result<(PlanExprKind, ExprType)> {
        let patterns = self.patterns;
        let (left, right, ty) = match operator {
            Operator::Or | Operator::Xor | Operator::And => {
                let left = self.truth(a, scope)?;
                self.patterns = patterns;
                (left, self.truth(b, scope)?, ExprType::Bool)
            }
            Operator::Add => {
                let (left, first) = self.expr(a, scope)?;
                let (right, second) = self.expr(b, scope)?;
                let ty = match (first, second) {
                    (ExprType::List(_), _) | (_, ExprType::List(_)) => ExprType::list(ExprType::Any),
                    (ExprType::Integer, ExprType::Integer) => ExprType::Integer,
                    (a, b) if a.is_number() && b.is_number() => ExprType::Float,
                    _ => ExprType::Any,
                };
                (left, right, ty)
            }
            Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Modulo | Operator::Power => {
                let (left, first) = self.amount(a, scope)?;
                let (right, second) = self.amount(b, scope)?;
                let ty = match (first, second) {
                    (ExprType::Integer, ExprType::Integer) if operator != Operator::Power => ExprType::Integer,
                    (a, b) if a.is_number() && b.is_number() => ExprType::Float,
                    _ => ExprType::Any,
                };
                (left, right, ty)
            }
            Operator::In => {
                let (left, _) = self.expr(a, scope)?;
                let (right, ty) = self.expr(b, scope)?;
                if !ty.may_be_list() {
                    return Err(wrong_type("a list", &ty, b.at));
                }
                (left, right, ExprType::Bool)
            }
            Operator::Matches => {
                let arguments = vec![self.expr(a, scope)?.0, self.expr(b, scope)?.0];
                return Ok((PlanExprKind::Graph(GraphFunction::Matches, arguments), ExprType::Bool));
            }
            Operator::StartsWith | Operator::EndsWith | Operator::Contains => {
                (self.expr(a, scope)?.0, self.expr(b, scope)?.0, ExprType::Bool)
            }
        };
        Ok((PlanExprKind::Binary(operator, Box::new(left), Box::new(right)), ty))
    }

    fn case(
        &mut self,
        subject: Option<&CypherExpr>,
        branches: &[(CypherExpr, CypherExpr)],
        otherwise: Option<&CypherExpr>,
        at: usize,
        scope: &Scope,
    ) -> Result<Typed> {
        let simple = subject.is_some();
        let subject = subject.map(|s| self.boxed(s, scope)).transpose()?;
        let mut all = Vec::with_capacity(branches.len());
        let mut ty: Option<ExprType> = None;
        for (when, then) in branches {
            let when = if simple { self.expr(when, scope)?.0 } else { self.filter(when, scope)? };
            let (then, found) = self.expr(then, scope)?;
            ty = Some(ty.map_or(found.clone(), |t| t.join(found)));
            all.push((when, then));
        }
        let otherwise = otherwise.map(|e| self.expr(e, scope)).transpose()?;
        let mut ty = ty.unwrap_or(ExprType::Any);
        let otherwise = otherwise.map(|(ex, found)| {
            ty = std::mem::replace(&mut ty, ExprType::Any).join(found);
            Box::new(ex)
        });
        Ok((PlanExpr { kind: PlanExprKind::Case { subject, branches: all, otherwise }, at }, ty))
    }

    fn map_projection(
        &mut self,
        subject: &CypherName,
        parts: &[MapPart],
        scope: &Scope,
    ) -> Result<(PlanExprKind, ExprType)> {
        let named = |name: &CypherName| CypherExpr { kind: CypherExprKind::Variable(name.text.clone()), at: name.at };
        let (from, ty) = self.expr(&named(subject), scope)?;
        if !matches!(ty, ExprType::Any | ExprType::Null | ExprType::Map | ExprType::Node | ExprType::Edge) {
            return Err(wrong_type("a node, a relationship or a map", &ty, subject.at));
        }
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            all.push(match part {
                MapPart::All => MapEntry::All,
                MapPart::Property(name) => {
                    MapEntry::Property(name.text.clone(), self.frame.snapshot.properties().number(&name.text))
                }
                MapPart::Entry(name, e) => MapEntry::Entry(name.text.clone(), self.expr(e, scope)?.0),
                MapPart::Variable(name) => MapEntry::Entry(name.text.clone(), self.expr(&named(name), scope)?.0),
            });
        }
        Ok((PlanExprKind::MapProjection { subject: Box::new(from), parts: all }, ExprType::Map))
    }

    fn call(
        &mut self,
        function: &CypherName,
        distinct: bool,
        arguments: &[CypherExpr],
        at: usize,
        scope: &Scope,
    ) -> Result<Typed> {
        let name = function.text.as_str();
        let count = |least: usize, most: usize| {
            if (least..=most).contains(&arguments.len()) {
                return Ok(());
            }
            let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let message = format!("`{name}` takes {wanted} arguments, not {}", arguments.len());
            Err(Fault::syntax("InvalidNumberOfArguments", message, at))
        };
        if let Some(aggregate) = Aggregate::find(name) {
            count(aggregate.arguments(), aggregate.arguments())?;
            return self.aggregate(aggregate, distinct, arguments.first(), arguments.get(1), at, scope);
        }
        if distinct {
            return Err(Fault::syntax("UnexpectedSyntax", format!("`{name}` does not take DISTINCT"), at));
        }
        if name.eq_ignore_ascii_case("exists") {
            count(1, 1)?;
            self.patterns = true;
            let (ex, _) = self.expr(&arguments[0], scope)?;
            self.patterns = false;
            let pattern = matches!(ex.kind, PlanExprKind::Exists(_));
            let kind = if pattern { ex.kind } else { PlanExprKind::IsNull(Box::new(ex), false) };
            return Ok((PlanExpr { kind, at }, ExprType::Bool));
        }
        if let Some((graph, least, most, takes, gives)) = graph_function(name) {
            count(least, most)?;
            let mut all = Vec::with_capacity(arguments.len());
            for (i, argument) in arguments.iter().enumerate() {
                let (ex, ty) = self.expr(argument, scope)?;
                if i == 0 && !takes.is_empty() && !takes.iter().any(|t| ty.may_be(t)) {
                    return Err(wrong_type(&format!("a {}", takes[0].name()), &ty, argument.at));
                }
                all.push(ex);
            }
            return Ok((PlanExpr { kind: PlanExprKind::Graph(graph, all), at }, gives));
        }
        let found =
            find(name).ok_or_else(|| Fault::syntax("UnknownFunction", format!("there is no function `{name}`"), at))?;
        count(found.least, found.most)?;
        let mut all = Vec::with_capacity(arguments.len());
        let lower = name.to_ascii_lowercase();
        for argument in arguments {
            let (ex, ty) = self.expr(argument, scope)?;
            if lower == "size" && matches!(ty, ExprType::Path | ExprType::Node | ExprType::Edge) {
                return Err(wrong_type("a list or a text", &ty, argument.at));
            }
            all.push(ex);
        }
        let ty = result_type(&lower);
        let constants: Option<Vec<Value>> =
            all.iter().map(|e| if let PlanExprKind::Const(v) = &e.kind { Some(v.clone()) } else { None }).collect();
        // Errors of constant expressions are reported when the query runs.
        if let Some(Ok(value)) = constants
            .filter(|_| !matches!(lower.as_str(), "range" | "replace" | "split"))
            .map(|a| (found.run)(&a, self.frame.around))
        {
            return Ok((PlanExpr { kind: PlanExprKind::Const(value), at }, ty));
        }
        Ok((PlanExpr { kind: PlanExprKind::Call(found.run, all), at }, ty))
    }

    fn aggregate(
        &mut self,
        function: Aggregate,
        distinct: bool,
        argument: Option<&CypherExpr>,
        second: Option<&CypherExpr>,
        at: usize,
        scope: &Scope,
    ) -> Result<Typed> {
        match self.aggregation {
            Aggregation::Grouped { .. } => {}
            Aggregation::Refused => {
                return Err(Fault::syntax("InvalidAggregation", "aggregates are not allowed here", at));
            }
            Aggregation::Inside => {
                return Err(Fault::syntax("NestedAggregation", "an aggregate cannot contain another one", at));
            }
        }
        let outer = std::mem::replace(&mut self.aggregation, Aggregation::Inside);
        let compiled = self.aggregate_arguments(argument, second, scope);
        self.aggregation = outer;
        let (argument, second) = compiled?;
        let slot = self.slot("");
        if let Aggregation::Grouped { calls, .. } = &mut self.aggregation {
            calls.push(AggregateCall { function, distinct, argument, second, slot, at });
        }
        let ty = match function {
            Aggregate::Count => ExprType::Integer,
            Aggregate::Collect => ExprType::list(ExprType::Any),
            _ => ExprType::Any,
        };
        Ok((PlanExpr::slot(slot, at), ty))
    }

    fn aggregate_arguments(
        &mut self,
        argument: Option<&CypherExpr>,
        second: Option<&CypherExpr>,
        scope: &Scope,
    ) -> Result<(Option<PlanExpr>, Option<PlanExpr>)> {
        let mut read = |e: Option<&CypherExpr>| -> Result<Option<PlanExpr>> {
            let Some(e) = e else { return Ok(None) };
            if let CypherExprKind::Call { function, .. } = &e.kind
                && function.text.eq_ignore_ascii_case("rand")
            {
                let message = "a random number cannot be aggregated";
                return Err(Fault::syntax("NonConstantExpression", message, e.at));
            }
            Ok(Some(self.expr(e, scope)?.0))
        };
        Ok((read(argument)?, read(second)?))
    }

    /// Compiles an expression without groups.
    pub(super) fn apart<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let patterns = std::mem::replace(&mut self.patterns, false);
        let outer = std::mem::replace(&mut self.aggregation, Aggregation::Refused);
        let found = run(self);
        self.aggregation = outer;
        self.patterns = patterns;
        found
    }

    /// In a grouped query, the outer variables of an inner query must have one value in each group.
    fn visible(&self, scope: &Scope) -> Scope {
        let Aggregation::Grouped { keys, .. } = &self.aggregation else { return scope.clone() };
        let mut seen = Scope::default();
        for (key, var) in keys.iter().rev() {
            if let CypherExprKind::Variable(name) = &key.kind {
                seen.add(name, var.clone());
            }
        }
        seen
    }

    fn subquery(&mut self, subquery: &Subquery, scope: &Scope) -> Result<QueryPlan> {
        let scope = &self.visible(scope);
        self.apart(|c| match subquery {
            Subquery::Pattern { patterns, filter } => {
                let mut inner = scope.clone();
                let steps = c.matching(patterns, filter.as_ref(), &mut inner)?;
                Ok(QueryPlan { parts: vec![QueryPart::new(steps, vec![])], distinct: false })
            }
            Subquery::Whole(query) => Ok(c.inner_query(query, scope)?),
        })
    }

    fn predicate(&mut self, pattern: &super::super::ast::Pattern, scope: &Scope) -> Result<QueryPart> {
        let scope = &self.visible(scope);
        let names = std::iter::once(&pattern.start.name)
            .chain(pattern.steps.iter().flat_map(|(edge, node)| [&edge.name, &node.name]))
            .flatten();
        for name in names {
            if scope.get(&name.text).is_none() {
                return Err(undefined(&name.text, name.at));
            }
        }
        self.apart(|c| {
            let part = super::super::ast::PatternPart { name: None, shortest: None, pattern: pattern.clone() };
            let steps = c.matching(&[part], None, &mut scope.clone())?;
            Ok(QueryPart::new(steps, vec![]))
        })
    }

    fn comprehension(
        &mut self,
        name: Option<&CypherName>,
        pattern: &super::super::ast::Pattern,
        filter: Option<&CypherExpr>,
        map: &CypherExpr,
        scope: &Scope,
    ) -> Result<(QueryPart, PlanExpr)> {
        let scope = &self.visible(scope);
        self.apart(|c| {
            let mut inner = scope.clone();
            let part = super::super::ast::PatternPart { name: name.cloned(), shortest: None, pattern: pattern.clone() };
            let steps = c.matching(&[part], filter, &mut inner)?;
            let (map, _) = c.expr(map, &inner)?;
            Ok((QueryPart::new(steps, vec![]), map))
        })
    }

    fn shortest(
        &mut self,
        which: Shortest,
        pattern: &super::super::ast::Pattern,
        scope: &Scope,
    ) -> Result<(QueryPart, usize)> {
        let scope = &self.visible(scope);
        self.apart(|c| {
            let mut inner = scope.clone();
            // A name that cannot be written in a query.
            let name = CypherName { text: " path".into(), at: pattern.at };
            let part =
                super::super::ast::PatternPart { name: Some(name), shortest: Some(which), pattern: pattern.clone() };
            let steps = c.matching(&[part], None, &mut inner)?;
            let path = inner.get(" path").map(|v| v.slot).unwrap_or_default();
            Ok((QueryPart::new(steps, vec![]), path))
        })
    }
}

/// Elements of a list are not rows, so aggregates are refused there.
fn no_aggregate(expr: &CypherExpr) -> Result<()> {
    if aggregates(expr) {
        return Err(Fault::syntax("InvalidAggregation", "elements of a list cannot be aggregated", expr.at));
    }
    Ok(())
}

type Signature = (GraphFunction, usize, usize, &'static [ExprType], ExprType);

/// A function that reads the graph: its least and most arguments, the type of the first, and the result.
fn graph_function(name: &str) -> Option<Signature> {
    use GraphFunction as F;
    const NODE: &[ExprType] = &[ExprType::Node];
    const EDGE: &[ExprType] = &[ExprType::Edge];
    const PATH: &[ExprType] = &[ExprType::Path];
    const NODE_OR_EDGE: &[ExprType] = &[ExprType::Node, ExprType::Edge];
    const HOLDS: &[ExprType] = &[ExprType::Node, ExprType::Edge, ExprType::Map];
    Some(match name.to_ascii_lowercase().as_str() {
        "labels" => (F::Labels, 1, 1, NODE, ExprType::list(ExprType::Text)),
        "type" => (F::Type, 1, 1, EDGE, ExprType::Text),
        "id" => (F::Id, 1, 1, NODE_OR_EDGE, ExprType::Integer),
        "elementid" => (F::ElementId, 1, 1, NODE_OR_EDGE, ExprType::Text),
        "keys" => (F::Keys, 1, 1, HOLDS, ExprType::list(ExprType::Text)),
        "properties" => (F::Properties, 1, 1, HOLDS, ExprType::Map),
        "nodes" => (F::Nodes, 1, 1, PATH, ExprType::list(ExprType::Node)),
        "relationships" | "rels" => (F::Relationships, 1, 1, PATH, ExprType::list(ExprType::Edge)),
        "startnode" => (F::StartNode, 1, 1, EDGE, ExprType::Node),
        "endnode" => (F::EndNode, 1, 1, EDGE, ExprType::Node),
        "length" => (F::Length, 1, 1, PATH, ExprType::Integer),
        "degree" => (F::Degree, 1, 1, NODE, ExprType::Integer),
        "ended" => (F::Ended, 1, 1, NODE, ExprType::Bool),
        "isempty" => (F::IsEmpty, 1, 1, &[], ExprType::Bool),
        "rand" => (F::Rand, 0, 0, &[], ExprType::Float),
        "timestamp" => (F::Timestamp, 0, 0, &[], ExprType::Integer),
        _ => return None,
    })
}

fn result_type(function: &str) -> ExprType {
    match function {
        "size" | "tointeger" | "sign" => ExprType::Integer,
        "tostring" | "toupper" | "tolower" | "trim" | "ltrim" | "rtrim" | "replace" | "substring" | "left"
        | "right" => ExprType::Text,
        "toboolean" => ExprType::Bool,
        "tofloat" | "sqrt" | "exp" | "log" | "log10" | "sin" | "cos" | "tan" | "pi" | "e" | "rand" | "ceil"
        | "floor" | "round" => ExprType::Float,
        "range" => ExprType::list(ExprType::Integer),
        "split" => ExprType::list(ExprType::Text),
        _ if function.starts_with("date") || function.starts_with("local") || function.starts_with("time") => {
            ExprType::Moment
        }
        _ if function.starts_with("duration") => ExprType::Moment,
        _ => ExprType::Any,
    }
}

/// Whether it contains an aggregate, other than in inner queries.
pub(super) fn aggregates(expr: &CypherExpr) -> bool {
    let any = |list: &[&CypherExpr]| list.iter().any(|e| aggregates(e));
    match &expr.kind {
        CypherExprKind::CountStar => true,
        CypherExprKind::Call { function, arguments, .. } => {
            Aggregate::find(&function.text).is_some() || arguments.iter().any(aggregates)
        }
        CypherExprKind::List(items) => items.iter().any(aggregates),
        CypherExprKind::Map(entries) => entries.iter().any(|(_, e)| aggregates(e)),
        CypherExprKind::Property(e, _)
        | CypherExprKind::HasLabels(e, _)
        | CypherExprKind::Not(e)
        | CypherExprKind::Negate(e)
        | CypherExprKind::Plus(e)
        | CypherExprKind::IsNull(e)
        | CypherExprKind::IsNotNull(e) => aggregates(e),
        CypherExprKind::Index(a, b) | CypherExprKind::Binary(_, a, b) => any(&[a, b]),
        CypherExprKind::Slice(e, from, to) => aggregates(e) || [from, to].into_iter().flatten().any(|e| aggregates(e)),
        CypherExprKind::Compare(first, rest) => aggregates(first) || rest.iter().any(|(_, e)| aggregates(e)),
        CypherExprKind::Case { subject, branches, otherwise } => {
            [subject, otherwise].into_iter().flatten().any(|e| aggregates(e))
                || branches.iter().any(|(when, then)| any(&[when, then]))
        }
        CypherExprKind::ListComprehension { list, filter, map, .. } => {
            aggregates(list) || [filter, map].into_iter().flatten().any(|e| aggregates(e))
        }
        CypherExprKind::Quantifier { list, filter, .. } => aggregates(list) || filter.iter().any(|e| aggregates(e)),
        CypherExprKind::Reduce { start, list, step, .. } => any(&[start, list, step]),
        CypherExprKind::MapProjection { parts, .. } => {
            parts.iter().any(|p| if let MapPart::Entry(_, e) = p { aggregates(e) } else { false })
        }
        _ => false,
    }
}

/// Whether a key may refer to a variable of this name.
fn speaks_of(key: &CypherExpr, name: &str) -> bool {
    match &key.kind {
        CypherExprKind::Variable(own) => own == name,
        CypherExprKind::Property(subject, _) => speaks_of(subject, name),
        CypherExprKind::CountStar => false,
        _ => true,
    }
}

/// Whether it uses a variable outside of aggregates.
pub(super) fn mentions(expr: &CypherExpr, name: &str) -> bool {
    match &expr.kind {
        _ if is_aggregate(expr) => false,
        CypherExprKind::Variable(own) => own == name,
        CypherExprKind::Property(e, _)
        | CypherExprKind::HasLabels(e, _)
        | CypherExprKind::Not(e)
        | CypherExprKind::Negate(e)
        | CypherExprKind::Plus(e) => mentions(e, name),
        CypherExprKind::Binary(_, a, b) | CypherExprKind::Index(a, b) => mentions(a, name) || mentions(b, name),
        CypherExprKind::List(items) | CypherExprKind::Call { arguments: items, .. } => {
            items.iter().any(|e| mentions(e, name))
        }
        CypherExprKind::Compare(first, rest) => mentions(first, name) || rest.iter().any(|(_, e)| mentions(e, name)),
        _ => false,
    }
}

/// The name of a property as stored in an expression.
pub(super) fn property_of(ex: &PlanExpr) -> Option<(usize, PropertyNo, Arc<str>)> {
    let PlanExprKind::Property(subject, name, number) = &ex.kind else { return None };
    let PlanExprKind::Slot(slot) = subject.kind else { return None };
    Some((slot, *number, Arc::clone(name)))
}
