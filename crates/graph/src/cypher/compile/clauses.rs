//! Compiles clauses in order. Each sees the variables that the ones before it define.

use super::super::ast::{CallClause, Clause, CypherExprKind, CypherQuery, Yields};
use super::super::expr::{PlanExpr, PlanExprKind, QueryPart, QueryPlan, QueryStep, QueryStepKind};
use super::super::fault::{Fault, FaultClass, Result};
use super::super::procedures::{self, Procedure};
use super::types::ExprType;
use super::{Compiler, Scope, Var, fault};

fn composition(message: &str, at: usize) -> Fault {
    Fault::syntax("InvalidClauseComposition", message, at)
}

/// The position of a clause.
fn place(clause: &Clause) -> usize {
    match clause {
        Clause::Match { at, .. } => *at,
        Clause::Unwind { list, .. } => list.at,
        Clause::With { projection, .. } | Clause::Return(projection) => projection.at,
        Clause::Call(call) => call.procedure.at,
    }
}

impl Compiler<'_> {
    pub(super) fn query(&mut self, query: &CypherQuery, scope: &Scope) -> Result<(QueryPlan, Vec<String>)> {
        let (first, columns) = self.clauses(&query.first, scope, false)?;
        let mut parts = vec![first];
        for (_, clauses) in &query.unions {
            let (mut part, names) = self.clauses(clauses, scope, false)?;
            let mut sorted = [columns.clone(), names.clone()];
            sorted.iter_mut().for_each(|list| list.sort());
            if sorted[0] != sorted[1] {
                let at = clauses.first().map_or(0, place);
                let message = format!("one part has the columns {columns:?}, another {names:?}");
                return Err(Fault::syntax("DifferentColumnsInUnion", message, at));
            }
            let by_name = |column: &String| names.iter().position(|n| n == column).map(|i| part.output[i]);
            part.output = columns.iter().filter_map(by_name).collect();
            parts.push(part);
        }
        let distinct = query.unions.first().is_some_and(|(all, _)| !all);
        Ok((QueryPlan { parts, distinct }, columns))
    }

    /// A query in braces, which need not end with RETURN.
    pub(super) fn inner_query(&mut self, query: &CypherQuery, scope: &Scope) -> Result<QueryPlan> {
        let mut parts = vec![self.clauses(&query.first, scope, true)?.0];
        for (_, clauses) in &query.unions {
            parts.push(self.clauses(clauses, scope, true)?.0);
        }
        Ok(QueryPlan { parts, distinct: query.unions.first().is_some_and(|(all, _)| !all) })
    }

    fn clauses(&mut self, clauses: &[Clause], scope: &Scope, inner: bool) -> Result<(QueryPart, Vec<String>)> {
        let mut scope = scope.clone();
        let mut steps: Vec<QueryStep> = Vec::new();
        let mut columns = Vec::new();
        let mut output = Vec::new();
        let count = clauses.len();
        for (i, clause) in clauses.iter().enumerate() {
            let last = i + 1 == count;
            self.check_length(0, place(clause))?;
            match clause {
                Clause::Match { optional, patterns, filter, .. } => {
                    let before = scope.slots();
                    let found = self.matching(patterns, filter.as_ref(), &mut scope)?;
                    if *optional {
                        let nulls = scope.slots().into_iter().filter(|s| !before.contains(s)).collect();
                        steps.push(self.step(QueryStepKind::Optional { steps: found, nulls }, 1.0));
                    } else {
                        steps.extend(found);
                    }
                }
                Clause::Unwind { list, name } => {
                    let (ex, ty) = self.expr(list, &scope)?;
                    if scope.get(&name.text).is_some() {
                        return Err(already(&name.text, name.at));
                    }
                    let of = if let ExprType::List(of) = ty { *of } else { ExprType::Any };
                    let slot = self.slot(&name.text);
                    scope.add(&name.text, Var { slot, ty: of });
                    steps.push(self.step(QueryStepKind::Unwind { list: ex, slot }, 10.0));
                }
                Clause::With { projection, filter } => {
                    let (found, next, _) = self.projection(projection, filter.as_ref(), &scope, false)?;
                    steps.extend(found);
                    scope = next;
                }
                Clause::Return(projection) => {
                    if !last {
                        return Err(composition("nothing can come after RETURN", place(&clauses[i + 1])));
                    }
                    let (found, next, names) = self.projection(projection, None, &scope, true)?;
                    steps.extend(found);
                    output = names.iter().filter_map(|n| next.get(n)).map(|v| v.slot).collect();
                    columns = names;
                }
                Clause::Call(call) => {
                    let alone = count == 1;
                    let names = self.procedure(call, alone, &mut scope, &mut steps)?;
                    if alone {
                        output = names.iter().filter_map(|n| scope.get(n)).map(|v| v.slot).collect();
                        columns = names;
                    }
                }
            }
            let may_end =
                inner || matches!(clause, Clause::Return(_)) || count == 1 && matches!(clause, Clause::Call(_));
            if last && !may_end {
                return Err(composition("a query ends with RETURN", place(clause)));
            }
        }
        Ok((QueryPart::new(steps, output), columns))
    }

    /// Compiles a call of a procedure. Returns the names of its columns.
    fn procedure(
        &mut self,
        call: &CallClause,
        alone: bool,
        scope: &mut Scope,
        steps: &mut Vec<QueryStep>,
    ) -> Result<Vec<String>> {
        let at = call.procedure.at;
        let procedure: &'static Procedure = procedures::find(&call.procedure.text).ok_or_else(|| {
            let message = format!("there is no procedure `{}`; there are {}", call.procedure.text, procedures::names());
            fault(FaultClass::Procedure, "ProcedureNotFound", message, at)
        })?;
        self.searches |= procedure.name == procedures::SEARCH;
        let arguments = match &call.arguments {
            Some(given) => {
                if !(procedure.least..=procedure.arguments.len()).contains(&given.len()) {
                    let message = format!("`{}` is called as {}", procedure.name, procedure.signature());
                    return Err(Fault::syntax("InvalidNumberOfArguments", message, at));
                }
                let mut all = Vec::with_capacity(given.len());
                for argument in given {
                    all.push(self.expr(argument, scope)?.0);
                }
                all
            }
            None if !alone => {
                let message = "arguments must be written out when the call is part of a larger query";
                return Err(Fault::syntax("InvalidArgumentPassingMode", message, at));
            }
            None => {
                let mut all = Vec::new();
                for (i, name) in procedure.arguments.iter().enumerate() {
                    match self.frame.parameters.get(*name) {
                        Some(value) => all.push(PlanExpr { kind: PlanExprKind::Const(value.clone()), at }),
                        None if i >= procedure.least => break,
                        None => {
                            let message = format!("no value is given for `${name}`");
                            return Err(fault(FaultClass::Parameter, "MissingParameter", message, at));
                        }
                    }
                }
                all
            }
        };
        let columns: Vec<(usize, String, usize)> = match &call.yields {
            Yields::Unspecified if !alone && !procedure.columns.is_empty() => {
                return Err(Fault::syntax("UndefinedVariable", "name the wanted columns with YIELD", at));
            }
            Yields::All if !alone => {
                return Err(Fault::syntax("UnexpectedSyntax", "YIELD * is for a call that stands alone", at));
            }
            Yields::Unspecified | Yields::All => {
                procedure.columns.iter().enumerate().map(|(i, (name, _))| (i, (*name).to_owned(), at)).collect()
            }
            Yields::These(wanted) => {
                let mut all = Vec::new();
                for (column, alias) in wanted {
                    let number = procedure.columns.iter().position(|(name, _)| *name == column.text);
                    let number = number.ok_or_else(|| {
                        let message = format!("`{}` gives {}", procedure.name, procedure.signature());
                        Fault::syntax("UndefinedVariable", message, column.at)
                    })?;
                    all.push((number, alias.text.clone(), alias.at));
                }
                all
            }
        };
        let mut yields = Vec::new();
        for (number, name, at) in &columns {
            if scope.get(name).is_some() {
                return Err(already(name, *at));
            }
            let slot = self.slot(name);
            let ty = if procedure.columns[*number].1 { ExprType::Node } else { ExprType::Any };
            scope.add(name, Var { slot, ty });
            yields.push((*number, slot));
        }
        steps.push(self.step(QueryStepKind::Call { procedure, arguments, yields }, 10.0));
        if let Some(filter) = &call.filter {
            let filter = self.filter(filter, scope)?;
            steps.push(self.step(QueryStepKind::Filter(filter), 0.5));
        }
        Ok(columns.into_iter().map(|(_, name, _)| name).collect())
    }
}

pub(super) fn already(name: &str, at: usize) -> Fault {
    Fault::syntax("VariableAlreadyBound", format!("there is a variable `{name}` already"), at)
}

/// The default name of an expression as a column.
pub(super) fn own_name(kind: &CypherExprKind) -> Option<&str> {
    if let CypherExprKind::Variable(name) = kind { Some(name) } else { None }
}
