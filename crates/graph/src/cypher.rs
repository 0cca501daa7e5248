//! openCypher, read-only, over a snapshot: a query is parsed, compiled to steps, and run within limits.

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

pub use compile::QueryParameters;
pub use explain::PlanStep;
pub use fault::{Fault, FaultClass};
pub use parse::parse;
pub use run::{LONGEST_LIST, QueryError, QueryLimits};

use crate::contents::PropertyReader;
use crate::snapshot::Snapshot;
use ast::{CypherQuery, QueryMode};
use compile::{CompileContext, CompiledQuery, compile};
use explain::PlanWriter;
use functions::FunctionContext;
use lukasa_model::{Error, Result as ModelResult};
use lukasa_store::Ledger;
use run::Executor;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use value::Value;

/// Runs a recursive function, and grows the stack if a deeply nested query needs it.
fn deep<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 1 << 20, run)
}

/// The longest query, in bytes.
pub const LONGEST_QUERY: usize = 64 << 10;

/// The keywords of queries, for completion.
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

/// Whether a text is an incomplete query that more text could complete.
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

/// What a query is run against.
#[derive(Clone, Copy)]
pub struct QueryContext<'a> {
    pub snapshot: &'a Arc<Snapshot>,
    /// Properties are read from here on first use.
    pub ledger: &'a Ledger,
    /// The moment of the query, in nanoseconds since 1970.
    pub now: i128,
    /// A type whose name is not shown as a label, for graphs in which nodes need no label.
    pub silent_type: Option<&'a str>,
}

/// Finds the nodes of a snapshot that fit a text best: at most the given number, each with its score. The caller
/// provides it, because a graph contains no text index.
pub type SearchNodes = Arc<dyn Fn(&str, usize) -> ModelResult<Vec<(crate::Node, f64)>> + Send + Sync>;

/// Finds the node of a name, in every form in which clients write names. The caller provides it, because a graph has no
/// access to the working tree.
pub type ResolveNode = Arc<dyn Fn(&str) -> ModelResult<crate::Node> + Send + Sync>;

/// A planned query, ready to run.
pub struct PreparedQuery<'a> {
    place: QueryContext<'a>,
    compiled: CompiledQuery,
    search: Option<SearchNodes>,
    resolve: Option<ResolveNode>,
    /// Set when the caller no longer waits for the answer.
    stop: Option<Arc<AtomicBool>>,
    /// It has been run, so the properties that it uses have been read.
    ran: AtomicBool,
}

/// The result of a query.
#[derive(Debug)]
pub struct QueryResult {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    /// There were more rows than requested.
    pub truncated: bool,
    /// The plan, if it was requested.
    pub plan: Option<Vec<PlanStep>>,
    /// The most memory in use at once, in bytes.
    pub memory: usize,
}

/// Parses a query and plans it. A query that can have no meaning is refused here.
pub fn prepare<'a>(
    query: &str,
    parameters: &QueryParameters,
    place: QueryContext<'a>,
) -> Result<PreparedQuery<'a>, Fault> {
    if query.len() > LONGEST_QUERY {
        let message = format!("the query has {} bytes, {LONGEST_QUERY} are allowed", query.len());
        return Err(Fault::syntax("UnexpectedSyntax", message, 0));
    }
    prepare_parsed(&parse(query)?, parameters, place)
}

/// Plans a parsed query.
pub fn prepare_parsed<'a>(
    parsed: &CypherQuery,
    parameters: &QueryParameters,
    place: QueryContext<'a>,
) -> Result<PreparedQuery<'a>, Fault> {
    let around = FunctionContext { now: place.now, longest_list: LONGEST_LIST };
    let frame =
        CompileContext { snapshot: place.snapshot, parameters, silent_type: place.silent_type, around: &around };
    let compiled = compile(parsed, &frame)?;
    Ok(PreparedQuery { place, compiled, search: None, resolve: None, stop: None, ran: false.into() })
}

impl PreparedQuery<'_> {
    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.compiled.columns
    }

    /// Likely misspellings: labels and types that nothing has, and after a run also such properties.
    pub fn warnings(&self) -> Vec<String> {
        let known = self.place.snapshot.properties();
        let mut all = self.compiled.warnings.clone();
        let ran = self.ran.load(std::sync::atomic::Ordering::Relaxed);
        for number in self.compiled.of_nodes.iter().filter(|n| ran && !known.is_stated(**n)) {
            all.push(format!("nothing that was read has a property `{}`", known.name(*number)));
        }
        all
    }

    /// Whether it calls `lukasa.search`, for which [`PreparedQuery::searching`] must provide a search.
    pub fn searches(&self) -> bool {
        self.compiled.searches
    }

    /// Provides the search for `lukasa.search`.
    #[must_use]
    pub fn searching(mut self, search: SearchNodes) -> Self {
        self.search = Some(search);
        self
    }

    /// Provides the resolution of names. Without it, seeds are given by key or as `Type:key`.
    #[must_use]
    pub fn resolving(mut self, resolve: ResolveNode) -> Self {
        self.resolve = Some(resolve);
        self
    }

    /// Provides a flag that stops the query once it is set.
    #[must_use]
    pub fn stopping(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Whether the query only requests its plan.
    pub fn only_explains(&self) -> bool {
        self.compiled.mode == QueryMode::Explain
    }

    /// Runs the query. The error is a fault of the query, an exceeded limit, or a failure of the store.
    pub fn run(&self, limits: QueryLimits) -> Result<QueryResult, Box<QueryError>> {
        let compiled = &self.compiled;
        let (snapshot, mode) = (self.place.snapshot, compiled.mode);
        let columns = compiled.columns.clone();
        if mode == QueryMode::Explain {
            let plan = Some(PlanWriter { compiled, snapshot, counts: None }.steps_of_plan());
            return Ok(QueryResult { columns, rows: vec![], truncated: false, plan, memory: 0 });
        }
        let around = FunctionContext { now: self.place.now, longest_list: LONGEST_LIST };
        let profile = mode == QueryMode::Profile;
        let mut exec =
            Executor::new(snapshot, self.place.ledger, around, limits, (compiled.steps, compiled.slots), profile);
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
        // If no node was read, it is unknown which properties exist.
        let read = self.place.snapshot.properties().has_read();
        self.ran.store(read, std::sync::atomic::Ordering::Relaxed);
        let plan = profile.then(|| PlanWriter { compiled, snapshot, counts: exec.counts.as_deref() }.steps_of_plan());
        Ok(QueryResult { columns, rows, truncated, plan, memory: exec.most_used() })
    }
}

/// The labels of a node: its type, unless that is the silent one, then its other labels.
fn labels_of(snapshot: &Snapshot, node: crate::Node, silent_type: Option<&str>) -> Vec<Arc<str>> {
    let own = snapshot.type_name(node);
    let own = (silent_type != Some(&**own)).then_some(own);
    let stated = snapshot.labels(node).iter().filter(|l| own != Some(l));
    own.into_iter().chain(stated).cloned().collect()
}

impl QueryError {
    /// The error as clients receive it.
    pub fn into_error(self, query: &str) -> Error {
        match self {
            QueryError::Fault(fault) => fault.into_error(query),
            QueryError::Other(error) => error,
        }
    }
}

/// Reads the labels and properties of the nodes and edges of an outcome.
pub struct QueryResultReader<'a> {
    contents: PropertyReader<'a>,
    silent_type: Option<&'a str>,
}

impl<'a> QueryResultReader<'a> {
    /// A reader for outcomes of queries at this place.
    pub fn new(place: &QueryContext<'a>) -> QueryResultReader<'a> {
        QueryResultReader {
            contents: PropertyReader::new(place.snapshot, place.ledger),
            silent_type: place.silent_type,
        }
    }

    /// The type first, then the labels.
    pub fn labels(&self, node: crate::Node) -> Vec<Arc<str>> {
        labels_of(self.contents.snapshot, node, self.silent_type)
    }

    /// All properties of a node, by name.
    pub fn node(&self, node: crate::Node) -> ModelResult<Vec<(Arc<str>, Value)>> {
        self.contents.node_properties(node)
    }

    /// All properties of an edge, by name.
    pub fn edge(&self, edge: crate::Edge) -> ModelResult<Vec<(Arc<str>, Value)>> {
        self.contents.edge_properties(edge)
    }
}
