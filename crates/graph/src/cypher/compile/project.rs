//! Compiles WITH and RETURN: columns, groups, order, and numbers of rows.

use super::super::ast::{CypherExpr, CypherExprKind, ProjectionBody, Sort};
use super::super::expr::{
    AggregateCall, Aggregation as Groups, PlanExpr, PlanExprKind, QueryStep, QueryStepKind, Slot,
};
use super::super::fault::{Fault, Result};
use super::super::functions::FunctionContext;
use super::super::operators;
use super::super::value::Value;
use super::clauses::own_name;
use super::expr::{aggregates, mentions};
use super::types::ExprType;
use super::{Aggregation, Compiler, Scope, Var};

/// An expression and the name of its column.
type Named = (CypherExpr, String);

/// A column: its expression, its name, and the slot of its value.
struct Column {
    expr: CypherExpr,
    name: String,
    var: Var,
    aggregated: bool,
}

/// Whether columns can be computed after sorting. Their values must not change by that, and the sort keys may use
/// columns only by themselves.
fn may_wait(set: &[(PlanExpr, Slot)], sorts: &[(PlanExpr, bool)], scope: &Scope) -> bool {
    // Their inputs are kept until then, so they must be small.
    let small = |slot: &Slot| {
        let var = scope.vars.iter().find(|(_, v)| v.slot == *slot);
        var.is_none_or(|(_, v)| matches!(v.ty, ExprType::Node | ExprType::Edge))
    };
    let light = |(ex, _): &(PlanExpr, Slot)| {
        let mut slots = Vec::new();
        ex.slots(&mut slots);
        slots.iter().all(small)
    };
    if !set.iter().all(light) {
        return false;
    }
    let is_column = |slot: &Slot| set.iter().any(|(_, out)| out == slot);
    let plain = |ex: &PlanExpr| {
        let mut slots = Vec::new();
        ex.slots(&mut slots);
        matches!(ex.kind, PlanExprKind::Slot(_)) || !slots.iter().any(is_column)
    };
    !sorts.is_empty() && set.iter().all(|(ex, _)| ex.is_steady()) && sorts.iter().all(|(ex, _)| plain(ex))
}

impl Compiler<'_> {
    /// The steps, the scope after them, and the names of the columns in order.
    pub(super) fn projection(
        &mut self,
        projection: &ProjectionBody,
        filter: Option<&CypherExpr>,
        scope: &Scope,
        is_return: bool,
    ) -> Result<(Vec<QueryStep>, Scope, Vec<String>)> {
        let (wanted, nameless) = self.wanted(projection, scope, is_return)?;
        let grouped = wanted.iter().any(|(expr, _)| aggregates(expr))
            || projection.order.iter().any(|s| aggregates(&s.expr)) && wanted.iter().any(|(e, _)| aggregates(e));
        if !grouped && let Some(sort) = projection.order.iter().find(|s| aggregates(&s.expr)) {
            let message = "an aggregate can only order rows that are groups";
            return Err(Fault::syntax("InvalidAggregation", message, sort.expr.at));
        }
        let mut steps = Vec::new();
        let mut columns: Vec<Column> = Vec::new();
        let mut set: Vec<(PlanExpr, Slot)> = Vec::new();
        for (expr, name) in &wanted {
            let aggregated = aggregates(expr);
            if aggregated {
                continue;
            }
            let (ex, ty) = self.expr(expr, scope)?;
            let slot = match ex.kind {
                // A variable keeps its slot.
                PlanExprKind::Slot(slot) => {
                    if grouped {
                        set.push((ex, slot));
                    }
                    slot
                }
                _ => {
                    let slot = self.slot(name);
                    set.push((ex, slot));
                    slot
                }
            };
            columns.push(Column { expr: expr.clone(), name: name.clone(), var: Var { slot, ty }, aggregated });
        }
        let mut calls: Vec<AggregateCall> = Vec::new();
        let mut after: Vec<(PlanExpr, Slot)> = Vec::new();
        if grouped {
            let keys = || columns.iter().map(|c| (c.expr.clone(), c.var.clone())).collect::<Vec<_>>();
            let mut made = Vec::new();
            for (expr, name) in wanted.iter().filter(|(expr, _)| aggregates(expr)) {
                let (ex, ty) = self.grouped(expr, scope, keys(), &mut calls)?;
                let slot = self.slot(name);
                after.push((ex, slot));
                made.push(Column { expr: expr.clone(), name: name.clone(), var: Var { slot, ty }, aggregated: true });
            }
            columns.extend(made);
        }
        let mut next = Scope::default();
        let names: Vec<String> = wanted.iter().map(|(_, name)| name.clone()).collect();
        for name in &names {
            if let Some(column) = columns.iter().find(|c| c.name == *name) {
                next.add(name, column.var.clone());
            }
        }
        // ORDER BY and WHERE can use columns and, unless rows were grouped, the variables from before.
        let closed = grouped || projection.distinct;
        let mut seen = if closed { Scope::default() } else { scope.clone() };
        for (name, var) in &next.vars {
            seen.add(name, var.clone());
        }
        let mut sorts: Vec<(PlanExpr, bool)> = Vec::new();
        for Sort { expr, descending } in &projection.order {
            let ex = self.sort(expr, &seen, &columns, grouped, closed, &mut calls)?;
            sorts.push((ex, *descending));
        }
        if let Some(fault) = nameless {
            return Err(fault);
        }
        let filter = match filter {
            Some(filter) => Some(self.filter_columns(filter, &seen, &columns, closed)?),
            None => None,
        };
        let late = !grouped && !projection.distinct && projection.limit.is_some() && may_wait(&set, &sorts, scope);
        if grouped {
            steps.push(
                self.step(QueryStepKind::Aggregate(Box::new(Groups { keys: std::mem::take(&mut set), calls })), 0.1),
            );
            if !after.is_empty() {
                steps.push(self.step(QueryStepKind::Project(after), 1.0));
            }
        } else if !set.is_empty() && !late {
            steps.push(self.step(QueryStepKind::Project(std::mem::take(&mut set)), 1.0));
        }
        if projection.distinct {
            steps.push(self.step(QueryStepKind::Distinct(next.slots()), 0.5));
        }
        let skip = projection.skip.as_ref().map(|e| self.amount_of_rows(e, "SKIP")).transpose()?;
        let limit = projection.limit.as_ref().map(|e| self.amount_of_rows(e, "LIMIT")).transpose()?;
        if !sorts.is_empty() {
            let mut keep = next.slots();
            if let Some(filter) = &filter {
                filter.slots(&mut keep);
            }
            if late {
                // Most rows are dropped after sorting, so only the remaining ones are projected.
                for (ex, _) in &mut sorts {
                    if let PlanExprKind::Slot(slot) = ex.kind
                        && let Some((made, _)) = set.iter().find(|(_, out)| *out == slot)
                    {
                        *ex = made.clone();
                    }
                }
                keep.retain(|slot| set.iter().all(|(_, out)| out != slot));
                set.iter().for_each(|(ex, _)| ex.slots(&mut keep));
            }
            keep.sort_unstable();
            keep.dedup();
            let most = limit.clone().map(|limit| match &skip {
                Some(skip) => {
                    let at = limit.at;
                    let saturating = |a: &[Value], _: &FunctionContext| match (&a[0], &a[1]) {
                        (Value::Integer(a), Value::Integer(b)) => Ok(Value::Integer(a.saturating_add(*b))),
                        // SKIP and LIMIT report a value that is not a number.
                        (Value::Integer(_), other) | (other, _) => Ok(other.clone()),
                    };
                    PlanExpr { kind: PlanExprKind::Call(saturating, vec![skip.clone(), limit]), at }
                }
                None => limit,
            });
            steps.push(self.step(QueryStepKind::Sort { keys: sorts, keep, most }, 1.0));
            if late && !set.is_empty() {
                steps.push(self.step(QueryStepKind::Project(set), 1.0));
            }
        }
        if let Some(skip) = skip {
            steps.push(self.step(QueryStepKind::Skip(skip), 1.0));
        }
        if let Some(limit) = limit {
            steps.push(self.step(QueryStepKind::Limit(limit), 1.0));
        }
        if let Some(filter) = filter {
            steps.push(self.step(QueryStepKind::Filter(filter), 0.5));
        }
        Ok((steps, next, names))
    }

    /// Expressions with the names of their columns, and the fault if a name is missing. Other faults take precedence
    /// over it.
    fn wanted(
        &self,
        projection: &ProjectionBody,
        scope: &Scope,
        is_return: bool,
    ) -> Result<(Vec<Named>, Option<Fault>)> {
        let mut wanted: Vec<(CypherExpr, String)> = Vec::new();
        let mut nameless = None;
        if projection.star {
            if scope.vars.is_empty() && is_return {
                let message = "there is no variable for `*`";
                return Err(Fault::syntax("NoVariablesInScope", message, projection.at));
            }
            for (name, _) in &scope.vars {
                wanted.push((
                    CypherExpr { kind: CypherExprKind::Variable(name.clone()), at: projection.at },
                    name.clone(),
                ));
            }
        }
        for item in &projection.items {
            let name = match (&item.alias, own_name(&item.expr.kind)) {
                (Some(alias), _) => alias.text.clone(),
                (None, Some(own)) => own.to_owned(),
                (None, None) if is_return => item.text.clone(),
                (None, None) => {
                    let message = format!("`{}` needs a name: write `… AS name`", item.text);
                    nameless = Some(Fault::syntax("NoExpressionAlias", message, item.expr.at));
                    item.text.clone()
                }
            };
            if wanted.iter().any(|(_, other)| *other == name) {
                let message = format!("there are two columns `{name}`");
                return Err(Fault::syntax("ColumnNameConflict", message, item.expr.at));
            }
            wanted.push((item.expr.clone(), name));
        }
        Ok((wanted, nameless))
    }

    fn grouped(
        &mut self,
        expr: &CypherExpr,
        scope: &Scope,
        keys: Vec<(CypherExpr, Var)>,
        calls: &mut Vec<AggregateCall>,
    ) -> Result<(PlanExpr, ExprType)> {
        let grouped = Aggregation::Grouped { calls: std::mem::take(calls), keys };
        let outer = std::mem::replace(&mut self.aggregation, grouped);
        let found = self.expr(expr, scope);
        if let Aggregation::Grouped { calls: made, .. } = std::mem::replace(&mut self.aggregation, outer) {
            *calls = made;
        }
        found
    }

    fn sort(
        &mut self,
        expr: &CypherExpr,
        seen: &Scope,
        columns: &[Column],
        grouped: bool,
        closed: bool,
        calls: &mut Vec<AggregateCall>,
    ) -> Result<PlanExpr> {
        if let Some(column) = columns.iter().find(|c| c.expr == *expr && own_name(&expr.kind).is_none()) {
            return Ok(PlanExpr::slot(column.var.slot, expr.at));
        }
        if grouped {
            let mut keys: Vec<(CypherExpr, Var)> = Vec::new();
            for column in columns {
                let named = CypherExpr { kind: CypherExprKind::Variable(column.name.clone()), at: expr.at };
                keys.push((named, column.var.clone()));
            }
            keys.extend(columns.iter().map(|c| (c.expr.clone(), c.var.clone())));
            return self.grouped(expr, seen, keys, calls).map(|(ex, _)| ex).map_err(|f| {
                let hidden = |name: &str| {
                    mentions(expr, name) && columns.iter().any(|c| !c.aggregated && mentions(&c.expr, name))
                };
                match f.message.split('`').nth(1) {
                    // It occurs only inside of larger keys, so it is ambiguous on its own.
                    Some(name) if f.detail == "UndefinedVariable" && hidden(name) => {
                        let message = format!("`{name}` is not a grouping key, so it can have many values here");
                        Fault::syntax("AmbiguousAggregationExpression", message, f.at)
                    }
                    _ => f,
                }
            });
        }
        if closed {
            return self.by_columns(expr, seen, columns);
        }
        Ok(self.expr(expr, seen)?.0)
    }

    /// An expression in which parts that equal a column refer to that column.
    fn by_columns(&mut self, expr: &CypherExpr, seen: &Scope, columns: &[Column]) -> Result<PlanExpr> {
        let keys = columns.iter().map(|c| (c.expr.clone(), c.var.clone())).collect::<Vec<_>>();
        let named = columns.iter().map(|c| {
            let name = CypherExpr { kind: CypherExprKind::Variable(c.name.clone()), at: expr.at };
            (name, c.var.clone())
        });
        let keys = named.chain(keys).collect();
        let mut none = Vec::new();
        self.grouped(expr, seen, keys, &mut none).map(|(ex, _)| ex)
    }

    fn filter_columns(
        &mut self,
        expr: &CypherExpr,
        seen: &Scope,
        columns: &[Column],
        closed: bool,
    ) -> Result<PlanExpr> {
        if closed && !aggregates(expr) && self.filter(expr, seen).is_err() {
            self.patterns = true;
            let found = self.by_columns(expr, seen, columns);
            self.patterns = false;
            // If both fail, the fault of the plain reading is reported.
            return found.or_else(|_| self.filter(expr, seen));
        }
        self.filter(expr, seen)
    }

    /// The number of rows of SKIP or LIMIT, which must not depend on a row.
    fn amount_of_rows(&mut self, expr: &CypherExpr, clause: &str) -> Result<PlanExpr> {
        let (ex, ty) = match self.expr(expr, &Scope::default()) {
            Err(f) if f.detail == "UndefinedVariable" => {
                let message = format!("{clause} cannot depend on a row");
                return Err(Fault::syntax("NonConstantExpression", message, expr.at));
            }
            other => other?,
        };
        let constant = match &ex.kind {
            PlanExprKind::Const(value) => Some(value.clone()),
            PlanExprKind::Negate(inner) => match &inner.kind {
                PlanExprKind::Const(value) => operators::negate(value).ok(),
                _ => None,
            },
            _ => None,
        };
        if matches!(expr.kind, CypherExprKind::Parameter(_)) {
            return Ok(ex);
        }
        match (constant, ty) {
            (Some(Value::Integer(n)), _) if n < 0 => {
                let message = format!("{clause} takes no negative number");
                Err(Fault::syntax("NegativeIntegerArgument", message, expr.at))
            }
            (Some(Value::Integer(_)), _) | (None, ExprType::Any | ExprType::Integer | ExprType::Null) => Ok(ex),
            (None, _) | (Some(_), _) => {
                let message = format!("{clause} takes a whole number");
                Err(Fault::syntax("InvalidArgumentType", message, expr.at))
            }
        }
    }
}
