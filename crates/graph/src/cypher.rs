//! openCypher, read-only, over a snapshot: a query is taken apart, compiled to steps, and run within limits.

mod aggregate;
pub mod ast;
mod compile;
mod eval;
mod explain;
mod expr;
pub mod fault;
pub mod functions;
pub mod operators;
mod parse;
pub mod procedures;
mod run;
pub mod stored;
pub mod temporal;
mod token;
pub mod value;

pub use compile::Parameters;
pub use explain::PlanStep;
pub use fault::{Class, Fault};
pub use parse::parse;
pub use run::{LONGEST_LIST, Limits, Trouble};

use crate::contents::Contents;
use crate::snapshot::Snapshot;
use ast::{Mode, Query};
use compile::{Compiled, Frame, compile};
use explain::Teller;
use functions::Surroundings;
use lukasa_model::{Error, Result as ModelResult};
use lukasa_store::Ledger;
use run::Exec;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use value::Value;

/// Runs what may go deep, as deep as a query is nested, with room for it on the stack.
fn deep<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 1 << 20, run)
}

/// Most bytes of a query.
pub const LONGEST_QUERY: usize = 64 << 10;

/// Words that queries are made of, for completion.
pub const KEYWORDS: &[&str] = &[
    "MATCH",
    "OPTIONAL MATCH",
    "WHERE",
    "WITH",
    "RETURN",
    "UNWIND",
    "UNION",
    "UNION ALL",
    "ORDER BY",
    "SKIP",
    "LIMIT",
    "DISTINCT",
    "CALL",
    "YIELD",
    "AS",
    "AND",
    "OR",
    "XOR",
    "NOT",
    "IN",
    "STARTS WITH",
    "ENDS WITH",
    "CONTAINS",
    "IS NULL",
    "IS NOT NULL",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "DESC",
    "ASC",
    "EXPLAIN",
    "PROFILE",
    "EXISTS",
    "COUNT",
    "true",
    "false",
    "null",
];

/// Functions of the graph and of rows, for completion.
pub const GRAPH_FUNCTIONS: &[&str] = &[
    "labels",
    "type",
    "id",
    "elementId",
    "keys",
    "properties",
    "nodes",
    "relationships",
    "startNode",
    "endNode",
    "length",
    "degree",
    "ended",
    "isEmpty",
    "rand",
    "timestamp",
    "exists",
    "shortestPath",
    "allShortestPaths",
    "all",
    "any",
    "none",
    "single",
    "reduce",
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "collect",
    "stDev",
    "stDevP",
    "percentileCont",
    "percentileDisc",
];

/// Whether a text is the beginning of a query that could go on.
pub fn is_unfinished(query: &str) -> bool {
    let text = query.trim_end();
    match parse(text) {
        Ok(parsed) => {
            let last = parsed.unions.last().map_or(&parsed.first, |(_, clauses)| clauses).last();
            !matches!(last, Some(ast::Clause::Return(_) | ast::Clause::Call(_)))
        }
        Err(fault) => fault.at >= text.len(),
    }
}

/// Where a query is asked.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub snapshot: &'a Arc<Snapshot>,
    /// Properties are read from here when first needed.
    pub ledger: &'a Ledger,
    /// The moment of the query, in nanoseconds since 1970.
    pub now: i128,
    /// A type whose name is no label: for graphs whose nodes need not have one.
    pub silent_type: Option<&'a str>,
}

/// Finds nodes of the snapshot by words: the best of them, at most so many, each with its score. It comes from outside,
/// because a graph knows no texts.
pub type Search = Arc<dyn Fn(&str, usize) -> ModelResult<Vec<(crate::Node, f64)>> + Send + Sync>;

/// The node that a name stands for, in every form that callers write names. It comes from outside as well, because a graph
/// knows no working tree.
pub type Resolve = Arc<dyn Fn(&str) -> ModelResult<crate::Node> + Send + Sync>;

/// A query that can be run in the place it was prepared for.
pub struct Prepared<'a> {
    place: Place<'a>,
    compiled: Compiled,
    search: Option<Search>,
    resolve: Option<Resolve>,
    /// Set when nobody waits for the answer any more.
    stop: Option<Arc<AtomicBool>>,
    /// It has been run, so that what it asked for has been read.
    ran: AtomicBool,
}

/// What a query gives.
#[derive(Debug)]
pub struct Outcome {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    /// There were more rows than asked for.
    pub truncated: bool,
    /// The plan, when it was asked for.
    pub plan: Option<Vec<PlanStep>>,
    /// The most that was kept at once, in bytes.
    pub memory: usize,
}

/// Takes a query apart and plans it. What can never be meant is refused here.
pub fn prepare<'a>(query: &str, parameters: &Parameters, place: Place<'a>) -> Result<Prepared<'a>, Fault> {
    if query.len() > LONGEST_QUERY {
        let message = format!("the query has {} bytes, {LONGEST_QUERY} are allowed", query.len());
        return Err(Fault::syntax("UnexpectedSyntax", message, 0));
    }
    prepare_parsed(&parse(query)?, parameters, place)
}

/// Plans a query that was taken apart before.
pub fn prepare_parsed<'a>(parsed: &Query, parameters: &Parameters, place: Place<'a>) -> Result<Prepared<'a>, Fault> {
    let around = Surroundings { now: place.now, longest_list: LONGEST_LIST };
    let frame = Frame { snapshot: place.snapshot, parameters, silent_type: place.silent_type, around: &around };
    let compiled = compile(parsed, &frame)?;
    Ok(Prepared { place, compiled, search: None, resolve: None, stop: None, ran: false.into() })
}

impl Prepared<'_> {
    pub fn columns(&self) -> &[String] {
        &self.compiled.columns
    }

    /// What is likely a slip of the pen: labels and types that nothing has, and, after running, properties.
    pub fn warnings(&self) -> Vec<String> {
        let known = self.place.snapshot.properties();
        let mut all = self.compiled.warnings.clone();
        let ran = self.ran.load(std::sync::atomic::Ordering::Relaxed);
        for number in self.compiled.of_nodes.iter().filter(|n| ran && !known.is_stated(**n)) {
            all.push(format!("nothing that was read has a property `{}`", known.name(*number)));
        }
        all
    }

    /// Whether it calls `lukasa.search`, which has to be given to it.
    pub fn searches(&self) -> bool {
        self.compiled.searches
    }

    /// With what `lukasa.search` finds.
    #[must_use]
    pub fn searching(mut self, search: Search) -> Self {
        self.search = Some(search);
        self
    }

    /// With what names stand for; without it, seeds are named by key or `Type:key`.
    #[must_use]
    pub fn resolving(mut self, resolve: Resolve) -> Self {
        self.resolve = Some(resolve);
        self
    }

    /// Stops when this is set.
    #[must_use]
    pub fn stopping(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Only the plan is wanted.
    pub fn only_explains(&self) -> bool {
        self.compiled.mode == Mode::Explain
    }

    pub fn run(&self, limits: Limits) -> Result<Outcome, Box<Trouble>> {
        let compiled = &self.compiled;
        let (snapshot, mode) = (self.place.snapshot, compiled.mode);
        let columns = compiled.columns.clone();
        if mode == Mode::Explain {
            let plan = Some(Teller { compiled, snapshot, counts: None }.tell());
            return Ok(Outcome { columns, rows: vec![], truncated: false, plan, memory: 0 });
        }
        let around = Surroundings { now: self.place.now, longest_list: LONGEST_LIST };
        let profile = mode == Mode::Profile;
        let mut exec =
            Exec::new(snapshot, self.place.ledger, around, limits, (compiled.steps, compiled.slots), profile);
        exec.silent_type = self.place.silent_type;
        exec.search.clone_from(&self.search);
        exec.resolve.clone_from(&self.resolve);
        exec.stop.clone_from(&self.stop);
        let mut rows: Vec<Vec<Value>> = Vec::new();
        let mut truncated = false;
        let mut row = vec![Value::Null; compiled.slots];
        exec.check_time()?;
        exec.prepare(&compiled.properties)?;
        exec.run_whole(&compiled.whole, &mut row, &mut |part, row| {
            if rows.len() == limits.rows {
                truncated = true;
                return Ok(false);
            }
            let values: Vec<Value> = part.output.iter().map(|slot| row[*slot].clone()).collect();
            exec.charge(24 + values.iter().map(|v| size_of::<Value>() + v.heap()).sum::<usize>())?;
            rows.push(values);
            Ok(true)
        })?;
        // Where no node was found, nothing can be said about properties.
        let read = self.place.snapshot.properties().has_read();
        self.ran.store(read, std::sync::atomic::Ordering::Relaxed);
        let plan = profile.then(|| Teller { compiled, snapshot, counts: exec.counts.as_deref() }.tell());
        Ok(Outcome { columns, rows, truncated, plan, memory: exec.most_used() })
    }
}

/// The type of a node, unless it is a silent one, then its labels.
fn labels_of(snapshot: &Snapshot, node: crate::Node, silent_type: Option<&str>) -> Vec<Arc<str>> {
    let own = snapshot.type_name(node);
    let own = (silent_type != Some(&**own)).then_some(own);
    let stated = snapshot.labels(node).iter().filter(|l| own != Some(l));
    own.into_iter().chain(stated).cloned().collect()
}

impl Trouble {
    /// As every surface tells it.
    pub fn into_error(self, query: &str) -> Error {
        match self {
            Trouble::Fault(fault) => fault.into_error(query),
            Trouble::Other(error) => error,
        }
    }
}

/// What a node or an edge of an outcome says of itself.
pub struct Reader<'a> {
    contents: Contents<'a>,
    silent_type: Option<&'a str>,
}

impl<'a> Reader<'a> {
    pub fn new(place: &Place<'a>) -> Reader<'a> {
        Reader { contents: Contents::new(place.snapshot, place.ledger), silent_type: place.silent_type }
    }

    /// Its type first, then its labels.
    pub fn labels(&self, node: crate::Node) -> Vec<Arc<str>> {
        labels_of(self.contents.snapshot, node, self.silent_type)
    }

    pub fn node(&self, node: crate::Node) -> ModelResult<Vec<(Arc<str>, Value)>> {
        self.contents.node_properties(node)
    }

    pub fn edge(&self, edge: crate::Edge) -> ModelResult<Vec<(Arc<str>, Value)>> {
        self.contents.edge_properties(edge)
    }
}
