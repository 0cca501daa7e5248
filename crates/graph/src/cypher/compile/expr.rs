//! Compiles expressions, and checks that variables exist and that functions accept their arguments.

use super::super::ast::{Expr, Kind, MapPart, Name, Operator, Shortest, Subquery};
use super::super::deep;
use super::super::expr::{Aggregate, AggregateCall, Ex, ExKind, GraphFunction, MapEntry, Part, Whole};
use super::super::fault::{Class, Fault, Result};
use super::super::functions::find;
use super::super::value::Value;
use super::types::Ty;
use super::{Aggregation, Compiler, Scope, Var, fault, undefined};
use crate::contents::PropertyNo;
use std::sync::Arc;

type Typed = (Ex, Ty);

fn wrong_type(wanted: &str, found: &Ty, at: usize) -> Fault {
    Fault::syntax("InvalidArgumentType", format!("expected {wanted}, found a {}", found.name()), at)
}

fn type_of(value: &Value) -> Ty {
    match value {
        Value::Null => Ty::Null,
        Value::Bool(_) => Ty::Bool,
        Value::Integer(_) => Ty::Integer,
        Value::Float(_) => Ty::Float,
        Value::Text(_) => Ty::Text,
        Value::List(items) => Ty::list(items.iter().map(type_of).reduce(Ty::join).unwrap_or(Ty::Any)),
        Value::Map(_) => Ty::Map,
        Value::Node(_) => Ty::Node,
        Value::Edge(_) => Ty::Edge,
        Value::Path(_) => Ty::Path,
        _ => Ty::Moment,
    }
}

/// Whether an expression has one value in each group if one of the keys is equal to it.
fn is_plain(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Variable(_) => true,
        Kind::Property(subject, _) => is_plain(subject),
        _ => false,
    }
}

fn is_aggregate(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::CountStar => true,
        Kind::Call { function, .. } => Aggregate::find(&function.text).is_some(),
        _ => false,
    }
}

impl Compiler<'_> {
    pub(super) fn expr(&mut self, expr: &Expr, scope: &Scope) -> Result<Typed> {
        let inner = matches!(
            expr.kind,
            Kind::ListComprehension { .. }
                | Kind::Quantifier { .. }
                | Kind::Reduce { .. }
                | Kind::PatternComprehension { .. }
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

    fn compiled(&mut self, expr: &Expr, scope: &Scope) -> Result<Typed> {
        let at = expr.at;
        let patterns = std::mem::replace(&mut self.patterns, false);
        if let Aggregation::Grouped { keys, .. } = &self.aggregation
            && (is_plain(expr) || is_aggregate(expr))
            && let Some((_, var)) = keys.iter().find(|(key, _)| key == expr)
        {
            return Ok((Ex::slot(var.slot, at), var.ty.clone()));
        }
        let value = |value: Value| {
            let ty = type_of(&value);
            Ok((Ex { kind: ExKind::Const(value), at }, ty))
        };
        let (kind, ty) = match &expr.kind {
            Kind::Null => return value(Value::Null),
            Kind::Bool(b) => return value(Value::Bool(*b)),
            Kind::Integer(n) => return value(Value::Integer(*n)),
            Kind::Float(f) => return value(Value::Float(*f)),
            Kind::Text(t) => return value(Value::text(t)),
            Kind::Parameter(name) => {
                let found = self.frame.parameters.get(name).cloned().ok_or_else(|| {
                    fault(Class::Parameter, "MissingParameter", format!("no value is given for `${name}`"), at)
                })?;
                // A parameter may have another type the next time, so its type is not checked.
                return Ok((Ex { kind: ExKind::Const(found), at }, Ty::Any));
            }
            Kind::Variable(name) => return self.variable(name, at, scope),
            Kind::List(items) => return self.list(items, at, scope),
            Kind::Map(entries) => {
                let mut all = Vec::with_capacity(entries.len());
                for (name, e) in entries {
                    all.push((name.text.clone(), self.expr(e, scope)?.0));
                }
                (ExKind::Map(all), Ty::Map)
            }
            Kind::Property(subject, name) => return self.property(subject, name, at, scope),
            Kind::HasLabels(subject, names) => {
                let (subject, ty) = self.expr(subject, scope)?;
                if !ty.may_be(&Ty::Node) && ty != Ty::Edge {
                    return Err(wrong_type("a node or a relationship", &ty, at));
                }
                let labels = names.iter().map(|n| self.label(&n.text)).collect();
                (ExKind::HasLabels(Box::new(subject), labels), Ty::Bool)
            }
            Kind::Index(subject, index) => {
                let (subject, ty) = self.expr(subject, scope)?;
                let (index, _) = self.expr(index, scope)?;
                let of = if let Ty::List(of) = ty { *of } else { Ty::Any };
                (ExKind::Index(Box::new(subject), Box::new(index)), of)
            }
            Kind::Slice(subject, from, to) => {
                let (subject, ty) = self.expr(subject, scope)?;
                let from = from.as_ref().map(|e| self.boxed(e, scope)).transpose()?;
                let to = to.as_ref().map(|e| self.boxed(e, scope)).transpose()?;
                (ExKind::Slice(Box::new(subject), from, to), ty)
            }
            Kind::Not(inner) => {
                self.patterns = patterns;
                (ExKind::Not(Box::new(self.truth(inner, scope)?)), Ty::Bool)
            }
            Kind::Negate(inner) => {
                let (ex, ty) = self.amount(inner, scope)?;
                (ExKind::Negate(Box::new(ex)), ty)
            }
            Kind::Plus(inner) => {
                let (ex, ty) = self.amount(inner, scope)?;
                (ExKind::Plus(Box::new(ex)), ty)
            }
            Kind::Binary(operator, a, b) => {
                self.patterns = patterns;
                self.binary(*operator, a, b, scope)?
            }
            Kind::Compare(first, rest) => {
                let first = self.boxed(first, scope)?;
                let mut all = Vec::with_capacity(rest.len());
                for (comparison, e) in rest {
                    all.push((*comparison, self.expr(e, scope)?.0));
                }
                (ExKind::Compare(first, all), Ty::Bool)
            }
            Kind::IsNull(inner) => (ExKind::IsNull(self.boxed(inner, scope)?, true), Ty::Bool),
            Kind::IsNotNull(inner) => (ExKind::IsNull(self.boxed(inner, scope)?, false), Ty::Bool),
            Kind::Call { function, distinct, arguments } => {
                return self.call(function, *distinct, arguments, at, scope);
            }
            Kind::CountStar => return self.aggregate(Aggregate::Count, false, None, None, at, scope),
            Kind::Case { subject, branches, otherwise } => {
                return self.case(subject.as_deref(), branches, otherwise.as_deref(), at, scope);
            }
            Kind::ListComprehension { name, list, filter, map } => {
                [filter, map].into_iter().flatten().try_for_each(|e| no_aggregate(e))?;
                let (list, of) = self.elements(list, scope)?;
                let mut inner = scope.clone();
                let slot = self.local(name, of.clone(), &mut inner);
                let filter = filter.as_ref().map(|f| self.filter(f, &inner).map(Box::new)).transpose()?;
                let mapped = map.as_ref().map(|m| self.expr(m, &inner)).transpose()?;
                let (map, of) = mapped.map_or((None, of), |(ex, ty)| (Some(Box::new(ex)), ty));
                (ExKind::Each { slot, list, filter, map }, Ty::list(of))
            }
            Kind::Quantifier { quantifier, name, list, filter } => {
                filter.iter().try_for_each(|e| no_aggregate(e))?;
                let (list, of) = self.elements(list, scope)?;
                let mut inner = scope.clone();
                let slot = self.local(name, of, &mut inner);
                let filter = filter.as_ref().map(|f| self.filter(f, &inner).map(Box::new)).transpose()?;
                (ExKind::Quantified { quantifier: *quantifier, slot, list, filter }, Ty::Bool)
            }
            Kind::Reduce { sum, start, name, list, step } => {
                no_aggregate(step)?;
                let (start, _) = self.expr(start, scope)?;
                let (list, of) = self.elements(list, scope)?;
                let mut inner = scope.clone();
                let total = self.local(sum, Ty::Any, &mut inner);
                let slot = self.local(name, of, &mut inner);
                let step = self.boxed(step, &inner)?;
                (ExKind::Reduce { sum: total, start: Box::new(start), slot, list, step }, Ty::Any)
            }
            Kind::MapProjection { subject, parts } => self.map_projection(subject, parts, scope)?,
            Kind::Pattern(pattern) => {
                if !patterns {
                    let message = "a pattern can only stand where a truth is asked for; use exists { … } or a \
                                   pattern comprehension";
                    return Err(Fault::syntax("UnexpectedSyntax", message, at));
                }
                let part = self.predicate(pattern, scope)?;
                (ExKind::Exists(Box::new(Whole { parts: vec![part], distinct: false })), Ty::Bool)
            }
            Kind::PatternComprehension { name, pattern, filter, map } => {
                let (part, map) = self.comprehension(name.as_ref(), pattern, filter.as_deref(), map, scope)?;
                (ExKind::Gather(Box::new(part), Box::new(map)), Ty::list(Ty::Any))
            }
            Kind::ShortestPath(which, pattern) => {
                let (part, path) = self.shortest(*which, pattern, scope)?;
                match which {
                    Shortest::One => (ExKind::First(Box::new(part), Box::new(Ex::slot(path, at))), Ty::Path),
                    Shortest::All => (ExKind::Gather(Box::new(part), Box::new(Ex::slot(path, at))), Ty::list(Ty::Path)),
                }
            }
            Kind::Exists(subquery) => (ExKind::Exists(Box::new(self.subquery(subquery, scope)?)), Ty::Bool),
            Kind::Count(subquery) => (ExKind::Count(Box::new(self.subquery(subquery, scope)?)), Ty::Integer),
        };
        Ok((Ex { kind, at }, ty))
    }

    fn boxed(&mut self, expr: &Expr, scope: &Scope) -> Result<Box<Ex>> {
        Ok(Box::new(self.expr(expr, scope)?.0))
    }

    /// A variable that is visible only inside an expression.
    fn local(&mut self, name: &Name, ty: Ty, scope: &mut Scope) -> usize {
        let slot = self.slot(&name.text);
        scope.add(&name.text, Var { slot, ty: ty.clone() });
        if let Aggregation::Grouped { keys, .. } = &mut self.aggregation {
            keys.retain(|(key, _)| !speaks_of(key, &name.text));
            // Its value is the same wherever it is visible.
            let kind = Kind::Variable(name.text.clone());
            keys.insert(0, (Expr { kind, at: name.at }, Var { slot, ty }));
        }
        slot
    }

    fn variable(&mut self, name: &str, at: usize, scope: &Scope) -> Result<Typed> {
        let var = scope.get(name).ok_or_else(|| undefined(name, at))?;
        if matches!(self.aggregation, Aggregation::Grouped { .. }) {
            let message = format!("`{name}` is not a grouping key, so it can have many values here");
            return Err(Fault::syntax("AmbiguousAggregationExpression", message, at));
        }
        Ok((Ex::slot(var.slot, at), var.ty.clone()))
    }

    fn list(&mut self, items: &[Expr], at: usize, scope: &Scope) -> Result<Typed> {
        let mut all = Vec::with_capacity(items.len());
        let mut of: Option<Ty> = None;
        for item in items {
            let (ex, ty) = self.expr(item, scope)?;
            all.push(ex);
            of = Some(of.map_or(ty.clone(), |t| t.join(ty)));
        }
        let ty = Ty::list(of.unwrap_or(Ty::Any));
        let constants: Option<Vec<Value>> =
            all.iter().map(|e| if let ExKind::Const(v) = &e.kind { Some(v.clone()) } else { None }).collect();
        let kind = constants.map_or(ExKind::List(all), |values| ExKind::Const(Value::list(values)));
        Ok((Ex { kind, at }, ty))
    }

    fn property(&mut self, subject: &Expr, name: &Name, at: usize, scope: &Scope) -> Result<Typed> {
        let (subject, ty) = self.expr(subject, scope)?;
        match ty {
            Ty::Any | Ty::Null | Ty::Map | Ty::Node | Ty::Edge | Ty::Moment => {}
            Ty::Path => return Err(wrong_type("a node, a relationship or a map", &ty, at)),
            _ => {
                let message = format!("a {} has no properties", ty.name());
                return Err(fault(Class::Type, "InvalidArgumentType", message, at));
            }
        }
        let number = match ty {
            Ty::Edge | Ty::Map | Ty::Moment => self.frame.snapshot.properties().number(&name.text),
            _ => self.property_no(&name.text, ty == Ty::Node),
        };
        Ok((Ex { kind: ExKind::Property(Box::new(subject), name.text.as_str().into(), number), at }, Ty::Any))
    }

    /// An expression that must be true or false.
    pub(super) fn truth(&mut self, expr: &Expr, scope: &Scope) -> Result<Ex> {
        let (ex, ty) = self.expr(expr, scope)?;
        if ty.may_be_truth() { Ok(ex) } else { Err(wrong_type("true or false", &ty, expr.at)) }
    }

    /// A condition that selects rows. A pattern may be one.
    pub(super) fn filter(&mut self, expr: &Expr, scope: &Scope) -> Result<Ex> {
        self.patterns = true;
        let found = self.truth(expr, scope);
        self.patterns = false;
        found
    }

    fn amount(&mut self, expr: &Expr, scope: &Scope) -> Result<Typed> {
        let (ex, ty) = self.expr(expr, scope)?;
        if ty.may_be_amount() { Ok((ex, ty)) } else { Err(wrong_type("a number", &ty, expr.at)) }
    }

    fn elements(&mut self, list: &Expr, scope: &Scope) -> Result<(Box<Ex>, Ty)> {
        let (ex, ty) = self.expr(list, scope)?;
        let of = match ty {
            Ty::List(of) => *of,
            Ty::Any | Ty::Null => Ty::Any,
            other => return Err(wrong_type("a list", &other, list.at)),
        };
        Ok((Box::new(ex), of))
    }

    fn binary(&mut self, operator: Operator, a: &Expr, b: &Expr, scope: &Scope) -> Result<(ExKind, Ty)> {
        let patterns = self.patterns;
        let (left, right, ty) = match operator {
            Operator::Or | Operator::Xor | Operator::And => {
                let left = self.truth(a, scope)?;
                self.patterns = patterns;
                (left, self.truth(b, scope)?, Ty::Bool)
            }
            Operator::Add => {
                let (left, first) = self.expr(a, scope)?;
                let (right, second) = self.expr(b, scope)?;
                let ty = match (first, second) {
                    (Ty::List(_), _) | (_, Ty::List(_)) => Ty::list(Ty::Any),
                    (Ty::Integer, Ty::Integer) => Ty::Integer,
                    (a, b) if a.is_number() && b.is_number() => Ty::Float,
                    _ => Ty::Any,
                };
                (left, right, ty)
            }
            Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Modulo | Operator::Power => {
                let (left, first) = self.amount(a, scope)?;
                let (right, second) = self.amount(b, scope)?;
                let ty = match (first, second) {
                    (Ty::Integer, Ty::Integer) if operator != Operator::Power => Ty::Integer,
                    (a, b) if a.is_number() && b.is_number() => Ty::Float,
                    _ => Ty::Any,
                };
                (left, right, ty)
            }
            Operator::In => {
                let (left, _) = self.expr(a, scope)?;
                let (right, ty) = self.expr(b, scope)?;
                if !ty.may_be_list() {
                    return Err(wrong_type("a list", &ty, b.at));
                }
                (left, right, Ty::Bool)
            }
            Operator::Matches => {
                let arguments = vec![self.expr(a, scope)?.0, self.expr(b, scope)?.0];
                return Ok((ExKind::Graph(GraphFunction::Matches, arguments), Ty::Bool));
            }
            Operator::StartsWith | Operator::EndsWith | Operator::Contains => {
                (self.expr(a, scope)?.0, self.expr(b, scope)?.0, Ty::Bool)
            }
        };
        Ok((ExKind::Binary(operator, Box::new(left), Box::new(right)), ty))
    }

    fn case(
        &mut self,
        subject: Option<&Expr>,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        at: usize,
        scope: &Scope,
    ) -> Result<Typed> {
        let simple = subject.is_some();
        let subject = subject.map(|s| self.boxed(s, scope)).transpose()?;
        let mut all = Vec::with_capacity(branches.len());
        let mut ty: Option<Ty> = None;
        for (when, then) in branches {
            let when = if simple { self.expr(when, scope)?.0 } else { self.filter(when, scope)? };
            let (then, found) = self.expr(then, scope)?;
            ty = Some(ty.map_or(found.clone(), |t| t.join(found)));
            all.push((when, then));
        }
        let otherwise = otherwise.map(|e| self.expr(e, scope)).transpose()?;
        let mut ty = ty.unwrap_or(Ty::Any);
        let otherwise = otherwise.map(|(ex, found)| {
            ty = std::mem::replace(&mut ty, Ty::Any).join(found);
            Box::new(ex)
        });
        Ok((Ex { kind: ExKind::Case { subject, branches: all, otherwise }, at }, ty))
    }

    fn map_projection(&mut self, subject: &Name, parts: &[MapPart], scope: &Scope) -> Result<(ExKind, Ty)> {
        let named = |name: &Name| Expr { kind: Kind::Variable(name.text.clone()), at: name.at };
        let (from, ty) = self.expr(&named(subject), scope)?;
        if !matches!(ty, Ty::Any | Ty::Null | Ty::Map | Ty::Node | Ty::Edge) {
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
        Ok((ExKind::MapProjection { subject: Box::new(from), parts: all }, Ty::Map))
    }

    fn call(&mut self, function: &Name, distinct: bool, arguments: &[Expr], at: usize, scope: &Scope) -> Result<Typed> {
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
            let pattern = matches!(ex.kind, ExKind::Exists(_));
            let kind = if pattern { ex.kind } else { ExKind::IsNull(Box::new(ex), false) };
            return Ok((Ex { kind, at }, Ty::Bool));
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
            return Ok((Ex { kind: ExKind::Graph(graph, all), at }, gives));
        }
        let found =
            find(name).ok_or_else(|| Fault::syntax("UnknownFunction", format!("there is no function `{name}`"), at))?;
        count(found.least, found.most)?;
        let mut all = Vec::with_capacity(arguments.len());
        let lower = name.to_ascii_lowercase();
        for argument in arguments {
            let (ex, ty) = self.expr(argument, scope)?;
            if lower == "size" && matches!(ty, Ty::Path | Ty::Node | Ty::Edge) {
                return Err(wrong_type("a list or a text", &ty, argument.at));
            }
            all.push(ex);
        }
        let ty = result_type(&lower);
        let constants: Option<Vec<Value>> =
            all.iter().map(|e| if let ExKind::Const(v) = &e.kind { Some(v.clone()) } else { None }).collect();
        // Errors of constant expressions are reported when the query runs.
        if let Some(Ok(value)) = constants
            .filter(|_| !matches!(lower.as_str(), "range" | "replace" | "split"))
            .map(|a| (found.run)(&a, self.frame.around))
        {
            return Ok((Ex { kind: ExKind::Const(value), at }, ty));
        }
        Ok((Ex { kind: ExKind::Call(found.run, all), at }, ty))
    }

    fn aggregate(
        &mut self,
        function: Aggregate,
        distinct: bool,
        argument: Option<&Expr>,
        second: Option<&Expr>,
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
            Aggregate::Count => Ty::Integer,
            Aggregate::Collect => Ty::list(Ty::Any),
            _ => Ty::Any,
        };
        Ok((Ex::slot(slot, at), ty))
    }

    fn aggregate_arguments(
        &mut self,
        argument: Option<&Expr>,
        second: Option<&Expr>,
        scope: &Scope,
    ) -> Result<(Option<Ex>, Option<Ex>)> {
        let mut read = |e: Option<&Expr>| -> Result<Option<Ex>> {
            let Some(e) = e else { return Ok(None) };
            if let Kind::Call { function, .. } = &e.kind
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
            if let Kind::Variable(name) = &key.kind {
                seen.add(name, var.clone());
            }
        }
        seen
    }

    fn subquery(&mut self, subquery: &Subquery, scope: &Scope) -> Result<Whole> {
        let scope = &self.visible(scope);
        self.apart(|c| match subquery {
            Subquery::Pattern { patterns, filter } => {
                let mut inner = scope.clone();
                let steps = c.matching(patterns, filter.as_ref(), &mut inner)?;
                Ok(Whole { parts: vec![Part::new(steps, vec![])], distinct: false })
            }
            Subquery::Whole(query) => Ok(c.inner_query(query, scope)?),
        })
    }

    fn predicate(&mut self, pattern: &super::super::ast::Pattern, scope: &Scope) -> Result<Part> {
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
            Ok(Part::new(steps, vec![]))
        })
    }

    fn comprehension(
        &mut self,
        name: Option<&Name>,
        pattern: &super::super::ast::Pattern,
        filter: Option<&Expr>,
        map: &Expr,
        scope: &Scope,
    ) -> Result<(Part, Ex)> {
        let scope = &self.visible(scope);
        self.apart(|c| {
            let mut inner = scope.clone();
            let part = super::super::ast::PatternPart { name: name.cloned(), shortest: None, pattern: pattern.clone() };
            let steps = c.matching(&[part], filter, &mut inner)?;
            let (map, _) = c.expr(map, &inner)?;
            Ok((Part::new(steps, vec![]), map))
        })
    }

    fn shortest(
        &mut self,
        which: Shortest,
        pattern: &super::super::ast::Pattern,
        scope: &Scope,
    ) -> Result<(Part, usize)> {
        let scope = &self.visible(scope);
        self.apart(|c| {
            let mut inner = scope.clone();
            // A name that cannot be written in a query.
            let name = Name { text: " path".into(), at: pattern.at };
            let part =
                super::super::ast::PatternPart { name: Some(name), shortest: Some(which), pattern: pattern.clone() };
            let steps = c.matching(&[part], None, &mut inner)?;
            let path = inner.get(" path").map(|v| v.slot).unwrap_or_default();
            Ok((Part::new(steps, vec![]), path))
        })
    }
}

/// Elements of a list are not rows, so aggregates are refused there.
fn no_aggregate(expr: &Expr) -> Result<()> {
    if aggregates(expr) {
        return Err(Fault::syntax("InvalidAggregation", "elements of a list cannot be aggregated", expr.at));
    }
    Ok(())
}

type Signature = (GraphFunction, usize, usize, &'static [Ty], Ty);

/// A function that reads the graph: its least and most arguments, the type of the first, and the result.
fn graph_function(name: &str) -> Option<Signature> {
    use GraphFunction as F;
    const NODE: &[Ty] = &[Ty::Node];
    const EDGE: &[Ty] = &[Ty::Edge];
    const PATH: &[Ty] = &[Ty::Path];
    const NODE_OR_EDGE: &[Ty] = &[Ty::Node, Ty::Edge];
    const HOLDS: &[Ty] = &[Ty::Node, Ty::Edge, Ty::Map];
    Some(match name.to_ascii_lowercase().as_str() {
        "labels" => (F::Labels, 1, 1, NODE, Ty::list(Ty::Text)),
        "type" => (F::Type, 1, 1, EDGE, Ty::Text),
        "id" => (F::Id, 1, 1, NODE_OR_EDGE, Ty::Integer),
        "elementid" => (F::ElementId, 1, 1, NODE_OR_EDGE, Ty::Text),
        "keys" => (F::Keys, 1, 1, HOLDS, Ty::list(Ty::Text)),
        "properties" => (F::Properties, 1, 1, HOLDS, Ty::Map),
        "nodes" => (F::Nodes, 1, 1, PATH, Ty::list(Ty::Node)),
        "relationships" | "rels" => (F::Relationships, 1, 1, PATH, Ty::list(Ty::Edge)),
        "startnode" => (F::StartNode, 1, 1, EDGE, Ty::Node),
        "endnode" => (F::EndNode, 1, 1, EDGE, Ty::Node),
        "length" => (F::Length, 1, 1, PATH, Ty::Integer),
        "degree" => (F::Degree, 1, 1, NODE, Ty::Integer),
        "ended" => (F::Ended, 1, 1, NODE, Ty::Bool),
        "isempty" => (F::IsEmpty, 1, 1, &[], Ty::Bool),
        "rand" => (F::Rand, 0, 0, &[], Ty::Float),
        "timestamp" => (F::Timestamp, 0, 0, &[], Ty::Integer),
        _ => return None,
    })
}

fn result_type(function: &str) -> Ty {
    match function {
        "size" | "tointeger" | "sign" => Ty::Integer,
        "tostring" | "toupper" | "tolower" | "trim" | "ltrim" | "rtrim" | "replace" | "substring" | "left"
        | "right" => Ty::Text,
        "toboolean" => Ty::Bool,
        "tofloat" | "sqrt" | "exp" | "log" | "log10" | "sin" | "cos" | "tan" | "pi" | "e" | "rand" | "ceil"
        | "floor" | "round" => Ty::Float,
        "range" => Ty::list(Ty::Integer),
        "split" => Ty::list(Ty::Text),
        _ if function.starts_with("date") || function.starts_with("local") || function.starts_with("time") => {
            Ty::Moment
        }
        _ if function.starts_with("duration") => Ty::Moment,
        _ => Ty::Any,
    }
}

/// Whether it contains an aggregate, other than in inner queries.
pub(super) fn aggregates(expr: &Expr) -> bool {
    let any = |list: &[&Expr]| list.iter().any(|e| aggregates(e));
    match &expr.kind {
        Kind::CountStar => true,
        Kind::Call { function, arguments, .. } => {
            Aggregate::find(&function.text).is_some() || arguments.iter().any(aggregates)
        }
        Kind::List(items) => items.iter().any(aggregates),
        Kind::Map(entries) => entries.iter().any(|(_, e)| aggregates(e)),
        Kind::Property(e, _)
        | Kind::HasLabels(e, _)
        | Kind::Not(e)
        | Kind::Negate(e)
        | Kind::Plus(e)
        | Kind::IsNull(e)
        | Kind::IsNotNull(e) => aggregates(e),
        Kind::Index(a, b) | Kind::Binary(_, a, b) => any(&[a, b]),
        Kind::Slice(e, from, to) => aggregates(e) || [from, to].into_iter().flatten().any(|e| aggregates(e)),
        Kind::Compare(first, rest) => aggregates(first) || rest.iter().any(|(_, e)| aggregates(e)),
        Kind::Case { subject, branches, otherwise } => {
            [subject, otherwise].into_iter().flatten().any(|e| aggregates(e))
                || branches.iter().any(|(when, then)| any(&[when, then]))
        }
        Kind::ListComprehension { list, filter, map, .. } => {
            aggregates(list) || [filter, map].into_iter().flatten().any(|e| aggregates(e))
        }
        Kind::Quantifier { list, filter, .. } => aggregates(list) || filter.iter().any(|e| aggregates(e)),
        Kind::Reduce { start, list, step, .. } => any(&[start, list, step]),
        Kind::MapProjection { parts, .. } => {
            parts.iter().any(|p| if let MapPart::Entry(_, e) = p { aggregates(e) } else { false })
        }
        _ => false,
    }
}

/// Whether a key may refer to a variable of this name.
fn speaks_of(key: &Expr, name: &str) -> bool {
    match &key.kind {
        Kind::Variable(own) => own == name,
        Kind::Property(subject, _) => speaks_of(subject, name),
        Kind::CountStar => false,
        _ => true,
    }
}

/// Whether it uses a variable outside of aggregates.
pub(super) fn mentions(expr: &Expr, name: &str) -> bool {
    match &expr.kind {
        _ if is_aggregate(expr) => false,
        Kind::Variable(own) => own == name,
        Kind::Property(e, _) | Kind::HasLabels(e, _) | Kind::Not(e) | Kind::Negate(e) | Kind::Plus(e) => {
            mentions(e, name)
        }
        Kind::Binary(_, a, b) | Kind::Index(a, b) => mentions(a, name) || mentions(b, name),
        Kind::List(items) | Kind::Call { arguments: items, .. } => items.iter().any(|e| mentions(e, name)),
        Kind::Compare(first, rest) => mentions(first, name) || rest.iter().any(|(_, e)| mentions(e, name)),
        _ => false,
    }
}

/// The name of a property as stored in an expression.
pub(super) fn property_of(ex: &Ex) -> Option<(usize, PropertyNo, Arc<str>)> {
    let ExKind::Property(subject, name, number) = &ex.kind else { return None };
    let ExKind::Slot(slot) = subject.kind else { return None };
    Some((slot, *number, Arc::clone(name)))
}
