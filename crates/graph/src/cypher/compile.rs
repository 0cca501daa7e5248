//! Compiles a query to steps: variables become slots, and errors are reported with their position.

mod clauses;
mod expr;
mod pattern;
mod plan;
mod project;
mod types;

use super::ast::{CypherExpr, CypherQuery, QueryMode};
use super::expr::{AggregateCall, EdgeTypes, LabelTest, QueryPlan, QueryStep, QueryStepKind, Slot};
use super::fault::{Fault, FaultClass, Result};
use super::functions::FunctionContext;
use super::value::Value;
use crate::contents::PropertyNo;
use crate::convert::to_u32;
use crate::lookup::Stats;
use crate::snapshot::{Snapshot, TypeNo};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::ExprType;

/// The most steps of a plan, and the most relationships of one MATCH: far more than people write, and few enough to
/// plan quickly and to run without deep recursion.
const MOST_STEPS: usize = 400;
const MOST_LINKS: usize = 150;

/// Values given for the parameters of a query.
pub type QueryParameters = BTreeMap<String, Value>;

/// A compiled query.
#[derive(Debug)]
pub struct CompiledQuery {
    pub mode: QueryMode,
    pub columns: Vec<String>,
    pub whole: QueryPlan,
    /// The number of values in a row.
    pub slots: usize,
    /// The number of steps, including those of inner queries.
    pub steps: usize,
    /// Names of slots, for the plan.
    pub names: Vec<String>,
    /// Properties of nodes that the query reads, each once.
    pub properties: Vec<PropertyNo>,
    /// Those of them that are read only from nodes.
    pub of_nodes: Vec<PropertyNo>,
    /// Likely misspellings.
    pub warnings: Vec<String>,
    /// Whether it calls `lukasa.search`.
    pub searches: bool,
}

/// What a query is compiled for, besides its text.
pub struct CompileContext<'a> {
    pub snapshot: &'a Snapshot,
    pub parameters: &'a QueryParameters,
    /// A type whose name is not shown as a label.
    pub silent_type: Option<&'a str>,
    pub around: &'a FunctionContext,
}

impl CompileContext<'_> {
    /// The name under which lookups cache the nodes with a label.
    pub fn label_key(&self, label: &LabelTest) -> String {
        format!("{}:{}", self.silent_type.unwrap_or_default(), label.name)
    }
}

pub fn compile(query: &CypherQuery, frame: &CompileContext<'_>) -> Result<CompiledQuery> {
    let mut compiler = Compiler {
        frame,
        stats: frame.snapshot.stats(),
        names: Vec::new(),
        steps: 0,
        aggregation: Aggregation::Refused,
        patterns: false,
        properties: Vec::new(),
        of_nodes: Vec::new(),
        warnings: Vec::new(),
        searches: false,
    };
    let (whole, columns) = compiler.query(query, &Scope::default())?;
    Ok(CompiledQuery {
        mode: query.mode,
        columns,
        whole,
        slots: compiler.names.len(),
        steps: compiler.steps,
        names: compiler.names,
        properties: compiler.properties,
        of_nodes: compiler.of_nodes,
        warnings: compiler.warnings,
        searches: compiler.searches,
    })
}

/// A variable in scope.
#[derive(Clone, Debug)]
struct Var {
    slot: Slot,
    ty: ExprType,
}

/// The variables in scope, in order of definition.
#[derive(Clone, Debug, Default)]
struct Scope {
    vars: Vec<(String, Var)>,
}

impl Scope {
    fn get(&self, name: &str) -> Option<&Var> {
        self.vars.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    fn add(&mut self, name: &str, var: Var) {
        self.vars.retain(|(n, _)| n != name);
        self.vars.push((name.to_owned(), var));
    }

    fn slots(&self) -> Vec<Slot> {
        self.vars.iter().map(|(_, v)| v.slot).collect()
    }
}

/// How an aggregating function is treated at the current position.
enum Aggregation {
    /// An error: there are no groups.
    Refused,
    /// An error: it is inside another aggregate.
    Inside,
    /// It is collected. The rest of the expression must have the same value in all rows of the group.
    Grouped { calls: Vec<AggregateCall>, keys: Vec<(CypherExpr, Var)> },
}

struct Compiler<'a> {
    frame: &'a CompileContext<'a>,
    stats: Arc<Stats>,
    /// Names of slots. Slots without a name of the query have an empty one.
    names: Vec<String>,
    steps: usize,
    aggregation: Aggregation,
    /// Whether a pattern may be used as a condition here.
    patterns: bool,
    properties: Vec<PropertyNo>,
    of_nodes: Vec<PropertyNo>,
    warnings: Vec<String>,
    searches: bool,
}

fn undefined(name: &str, at: usize) -> Fault {
    Fault::syntax("UndefinedVariable", format!("there is no variable `{name}` here"), at)
}

fn fault(class: FaultClass, detail: &'static str, message: impl Into<String>, at: usize) -> Fault {
    Fault { class, detail, message: message.into(), at }
}

impl Compiler<'_> {
    /// Refuses a query with too many steps.
    fn check_length(&self, links: usize, at: usize) -> Result<()> {
        if self.steps <= MOST_STEPS && links <= MOST_LINKS {
            return Ok(());
        }
        let message = format!("a query can have {MOST_STEPS} steps, and {MOST_LINKS} relationships in one MATCH");
        Err(Fault::syntax("UnexpectedSyntax", message, at))
    }

    fn slot(&mut self, name: &str) -> Slot {
        self.names.push(name.to_owned());
        self.names.len() - 1
    }

    fn step(&mut self, kind: QueryStepKind, estimate: f64) -> QueryStep {
        self.steps += 1;
        QueryStep { kind, id: self.steps - 1, estimate }
    }

    fn label(&mut self, name: &str) -> LabelTest {
        let snapshot = self.frame.snapshot;
        let is_type = |known: &str| snapshot.registry.is_same_type(name, known, false);
        let silent = |n: &str| self.frame.silent_type == Some(n);
        let names = snapshot.names();
        let sets = (0..names.label_sets()).map(|set| names.labels(to_u32(set)).iter().any(|label| &**label == name));
        let sets: Arc<[bool]> = sets.collect();
        let types: Arc<[bool]> = names.types().iter().map(|t| is_type(t) && !silent(t)).collect();
        if !types.iter().chain(sets.iter()).any(|fits| *fits) {
            self.warn(format!("nothing here has the label `{name}`; CALL db.labels() lists all"));
        }
        LabelTest { name: name.into(), types, sets }
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// The number of a property. Records that it is read from nodes.
    fn property_no(&mut self, name: &str, surely: bool) -> PropertyNo {
        let number = self.frame.snapshot.properties().number(name);
        if surely && !self.of_nodes.contains(&number) {
            self.of_nodes.push(number);
        }
        if !self.properties.contains(&number) {
            self.properties.push(number);
        }
        number
    }

    fn edge_types<'n>(&mut self, wanted: impl Iterator<Item = &'n str>) -> EdgeTypes {
        let snapshot = self.frame.snapshot;
        let mut table = vec![false; snapshot.names().types().len()];
        let mut any = true;
        for name in wanted {
            any = false;
            let mut found = false;
            for (known, fits) in snapshot.names().types().iter().zip(&mut table) {
                let is = snapshot.registry.is_same_type(name, known, true);
                found |= is;
                *fits |= is;
            }
            if !found {
                let list = "CALL db.relationshipTypes() lists all";
                self.warn(format!("no relationship here has the type `{name}`; {list}"));
            }
        }
        let mut numbers = table.iter().enumerate().filter(|(_, fits)| **fits).map(|(i, _)| i);
        match (any, numbers.next(), numbers.next()) {
            (true, ..) => EdgeTypes::Any,
            (false, Some(one), None) => EdgeTypes::One(TypeNo::at(one)),
            _ => EdgeTypes::These(table.into()),
        }
    }
}
