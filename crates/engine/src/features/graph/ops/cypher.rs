//! `cypher`: answers read-only openCypher queries.

use crate::feature::Searcher;
use crate::features::graph::rendering::cypher;
use crate::registry::META;
use crate::registry::{Meta, Op, Shell};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_graph::cypher::functions::{FunctionContext, find};
use lukasa_graph::cypher::value::Value as Found;
use lukasa_graph::cypher::{
    PlanStep, QueryContext, QueryLimits, QueryParameters, QueryResult, QueryResultReader, prepare, stored,
};
use lukasa_graph::{Edge, Node, Snapshot};
use lukasa_model::view::ViewEcho;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Cypher;

pub use lukasa_graph::cypher::is_unfinished;

/// Returns the keywords, functions and procedures of the query language.
pub fn words() -> (Vec<&'static str>, Vec<&'static str>, Vec<&'static str>) {
    use lukasa_graph::cypher::{GRAPH_FUNCTIONS, KEYWORDS, functions, procedures};
    let functions = GRAPH_FUNCTIONS.iter().chain(functions::NAMES).copied().collect();
    (KEYWORDS.to_vec(), functions, procedures::ALL.iter().map(|p| p.name).collect())
}

/// Memory limit of a running query, in bytes.
const MEMORY: usize = 256 << 20;
/// Approximate size limit of an answer, in bytes.
const LARGEST_ANSWER: usize = 64 << 20;
const LONGEST_MS: u64 = 30_000;
const MOST_ROWS: usize = 10_000;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The query; a leading `EXPLAIN` or `PROFILE` returns its plan.
    #[schemars(length(min = 1))]
    pub query: String,
    /// Values for `$name` in the query, by name.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Timeout in milliseconds, 1 to 30,000; loading the graph does not count.
    #[serde(default = "timeout_ms")]
    #[schemars(range(min = 1, max = LONGEST_MS))]
    pub timeout_ms: u64,
    /// Maximum number of rows, 1 to 10,000.
    #[serde(default)]
    pub limit: Limit<1_000, MOST_ROWS>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

impl Request {
    /// Creates a request without parameters for the current view, with default limits.
    pub fn of(query: String) -> Request {
        let (parameters, view) = (Map::new(), ViewSpec::default());
        Request { query, parameters, timeout_ms: timeout_ms(), limit: Limit::default(), view }
    }
}

fn timeout_ms() -> u64 {
    10_000
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub columns: Vec<String>,
    /// One list per row, in column order. Nodes have `id`, `type`, `labels` and `properties`, relationships also `src`
    /// and `dst`, paths `nodes` and `relationships`.
    pub rows: Vec<Vec<Value>>,
    /// There were more rows than `limit`.
    pub truncated: bool,
    /// Labels and types in the query that do not occur in the graph; possibly misspelled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The query plan, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<PlanStep>>,
    /// Execution time of the query.
    pub took_ms: f64,
    pub view: ViewEcho,
}

impl Op for Cypher {
    const META: Meta = Meta {
        name: "cypher",
        long: true,
        shown: ResponseView::Cut(cypher::table),
        answer: &["rows", "columns", "plan"],
        rest: &["POST /v1/graph/cypher"],
        summary: "Ask the graph a question in openCypher",
        description: "Read-only openCypher over the objects and relationships of a view: any branch, any time. The \
                      labels of a node are its type and its labels; its properties are those recorded, and `key`, \
                      `title`, `status`, `subtype`; a relationship also has `confidence`, `weight` and `derivation`. \
                      CALL db.schema() lists types and properties, CALL lukasa.node('Class.method') YIELD node finds a \
                      node by name. A query ends at its timeout, and a shortened answer is marked as truncated.",
        verb: "cypher",
        toolset: "graph",
        positional: &["query"],
        examples: &[
            "lukasa cypher \"MATCH (s:Service)-[:DEPENDS_ON]->(d) RETURN s.key, collect(d.key)\"",
            "lukasa cypher 'MATCH (n {key: $key})--(m) RETURN m' --parameters '{\"key\": \"auth\"}'",
            "lukasa cypher \"EXPLAIN MATCH (a)-[*1..3]->(b) RETURN count(b)\" --as-of 2026-01-31",
        ],
        shell: Some(Shell { field: "query", tree: cypher::tree }),
        translate: Some(translate),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let look = engine.view_graph(context, &request.view)?;
        let now = i128::from(engine.clock().now().0) * 1_000;
        let place = QueryContext { snapshot: &look.snapshot, ledger: &look.ledger, now, silent_type: None };
        let read = |(name, value): (&String, &Value)| match stored::checked(value) {
            Ok(value) => Ok((name.clone(), value)),
            Err(wrong) => Err(Error::invalid(ErrorCode::InvalidArgument, format!("the parameter `{name}`: {wrong}"))),
        };
        let parameters: QueryParameters = request.parameters.iter().map(read).collect::<Result<_>>()?;
        let mut start = Instant::now();
        let mut prepared =
            prepare(&request.query, &parameters, place).map_err(|f| hinted(f.into_error(&request.query)))?;
        let named = look.clone();
        prepared = prepared.resolving(Arc::new(move |name| named.node(name)));
        let mut searcher = None;
        if prepared.searches() && !prepared.only_explains() {
            let made = engine.searcher(context, &look)?;
            prepared = prepared.searching(Arc::clone(&made.search));
            searcher = Some(made);
            // Building indexes does not count towards the timeout, like loading the graph.
            start = Instant::now();
        }
        prepared = prepared.stopping(context.stop.flag());
        let limits = QueryLimits {
            deadline: start + Duration::from_millis(request.timeout_ms),
            timeout_ms: request.timeout_ms,
            rows: request.limit.get(),
            memory: MEMORY,
        };
        let outcome = prepared.run(limits).map_err(|t| hinted(t.into_error(&request.query)))?;
        let rows = shown(&outcome, &place, &limits)?;
        let took_ms = (start.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        let QueryResult { columns, truncated, plan, .. } = outcome;
        let summary = match (prepared.only_explains(), truncated) {
            (true, _) => "the plan, not run".into(),
            (false, true) => format!("the first {} of more", count(rows.len(), "row")),
            (false, false) => count(rows.len(), "row"),
        };
        let mut warnings = prepared.warnings();
        warnings.extend(searcher.iter().flat_map(Searcher::warnings));
        Ok(Response { summary, columns, rows, truncated, warnings, plan, took_ms, view: look.view.echo() })
    }
}

fn hinted(error: Error) -> Error {
    match error.code {
        ErrorCode::ReadOnly => error.hint("write with `put`, `link`, `delete` or `batch`"),
        ErrorCode::CypherParameterMissing => error.hint(
            "values come by name in `parameters` (--parameters '{\"name\": 1}', :param name 1 in the shell); names \
             are taken as written",
        ),
        _ => error,
    }
}

fn shown(outcome: &QueryResult, place: &QueryContext<'_>, limits: &QueryLimits) -> Result<Vec<Vec<Value>>> {
    let shape = Shape { snapshot: place.snapshot, reader: QueryResultReader::new(place), limits, bytes: Cell::new(0) };
    outcome.rows.iter().map(|row| row.iter().map(|value| shape.json(value)).collect()).collect()
}

/// Converts query values to JSON.
struct Shape<'a> {
    snapshot: &'a Snapshot,
    reader: QueryResultReader<'a>,
    limits: &'a QueryLimits,
    /// Approximate number of bytes written.
    bytes: Cell<usize>,
}

/// Bytes written between two checks of the timeout.
const STRIDE: usize = 1 << 16;

impl Shape<'_> {
    /// Limits the size of the answer, because a small value can expand to a large one.
    fn count(&self, bytes: usize) -> Result<()> {
        let before = self.bytes.get();
        let now = before + bytes;
        self.bytes.set(now);
        if now > LARGEST_ANSWER {
            let message = format!("the answer would be larger than {} MB", LARGEST_ANSWER >> 20);
            return Err(
                Error::too_large(ErrorCode::AnswerTooLarge, message).hint("return fewer rows, or single properties")
            );
        }
        if now / STRIDE != before / STRIDE && Instant::now() > self.limits.deadline {
            let message = format!("the answer could not be written within {} ms", self.limits.timeout_ms);
            return Err(Error::new(ErrorKind::Timeout, ErrorCode::QueryTimeout, message));
        }
        Ok(())
    }

    fn json(&self, value: &Found) -> Result<Value> {
        self.count(if let Found::Text(text) = value { 32 + text.len() } else { 32 })?;
        Ok(match value {
            Found::Null => Value::Null,
            Found::Bool(b) => json!(b),
            Found::Integer(n) => json!(n),
            Found::Float(f) if f.is_finite() => json!(f),
            Found::Text(t) => json!(&**t),
            Found::List(items) => Value::Array(items.iter().map(|v| self.json(v)).collect::<Result<_>>()?),
            Found::Map(entries) => {
                let entries = entries.iter().map(|(name, v)| Ok((name.clone(), self.json(v)?)));
                Value::Object(entries.collect::<Result<_>>()?)
            }
            Found::Node(node) => self.node(*node)?,
            Found::Edge(edge) => self.edge(*edge)?,
            Found::Path(path) => json!({
                "nodes": path.nodes.iter().map(|n| self.node(*n)).collect::<Result<Vec<_>>>()?,
                "relationships": path.edges.iter().map(|e| self.edge(*e)).collect::<Result<Vec<_>>>()?,
            }),
            // Numbers that JSON cannot represent, dates and times become strings.
            other => {
                let around = FunctionContext { now: 0, longest_list: 1 };
                match find("toString").map(|f| (f.run)(std::slice::from_ref(other), &around)) {
                    Some(Ok(Found::Text(text))) => json!(&*text),
                    _ => Value::Null,
                }
            }
        })
    }

    fn properties(&self, all: Vec<(Arc<str>, Found)>) -> Result<Map<String, Value>> {
        self.count(200)?;
        all.into_iter().map(|(name, value)| Ok((name.to_string(), self.json(&value)?))).collect()
    }

    fn node(&self, node: Node) -> Result<Value> {
        let s = self.snapshot;
        let mut shown = json!({
            "id": s.id(node),
            "type": s.type_name(node),
            "labels": self.reader.labels(node),
            "properties": self.properties(self.reader.node(node)?)?,
        });
        if s.is_ended(node) {
            shown["ended"] = json!(true);
        }
        Ok(shown)
    }

    fn edge(&self, edge: Edge) -> Result<Value> {
        let s = self.snapshot;
        let (src, dst) = s.ends(edge);
        Ok(json!({
            "id": s.edge_id(edge),
            "type": s.edge_type(edge),
            "src": s.name(src),
            "dst": s.name(dst),
            "properties": self.properties(self.reader.edge(edge)?)?,
        }))
    }
}

/// Earlier services send `read_only: true`; queries never write here.
fn translate(mut request: Map<String, Value>) -> Result<Map<String, Value>> {
    for name in ["read_only", "readOnly"] {
        if request.get(name) == Some(&Value::Bool(true)) {
            request.shift_remove(name);
        }
    }
    Ok(request)
}
