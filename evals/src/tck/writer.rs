//! A subset of CREATE that sets up scenarios: patterns become objects and relationships in a memory store.

use lukasa_graph::cypher::ast::{
    Arrow, Clause, CypherExpr, CypherExprKind, CypherName, CypherQuery, NodePattern, Pattern, ProjectionBody,
    ProjectionItem, QueryMode,
};
use lukasa_graph::cypher::value::Value;
use lukasa_graph::cypher::{QueryContext, QueryLimits, QueryParameters, parse, prepare_parsed, stored};
use lukasa_graph::{Projection as Graph, Snapshot};
use lukasa_model::batch::{End, PutObject, PutRelationship, Reference};
use lukasa_model::{Batch, Scope, Write};
use lukasa_store::ledger::ViewSpec;
use lukasa_store::{Clock, Ledger, MemoryStore, SystemClock};
use serde_json::Map;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

type Fault = Box<dyn Error>;

/// The type of nodes without labels.
const UNLABELLED: &str = "Unlabelled";

pub struct ScenarioGraph {
    ledger: Ledger,
    graph: Option<Graph>,
    edges: u64,
}

/// One row of a query that writes: the values of its variables.
type BoundRow = Vec<(String, Value)>;

impl ScenarioGraph {
    /// An empty project.
    pub fn new() -> Result<ScenarioGraph, Fault> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let scope = Scope::new("tck", "scenario")?;
        let ledger = Ledger::new(Arc::new(MemoryStore::new(Arc::clone(&clock))), clock, scope);
        ledger.commit(&Batch::on("main").write(PutObject::new(UNLABELLED, "first")))?;
        ledger.commit(&Batch::on("main").write(End::new(Reference::exact(UNLABELLED, "first"))))?;
        Ok(ScenarioGraph { ledger, graph: None, edges: 0 })
    }

    pub fn place<'a>(snapshot: &'a Arc<Snapshot>, ledger: &'a Ledger) -> QueryContext<'a> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        QueryContext { snapshot, ledger, now: now.as_nanos() as i128, silent_type: Some(UNLABELLED) }
    }

    pub fn view_graph(&mut self) -> Result<(Arc<Snapshot>, Ledger), Fault> {
        let view = self.ledger.view(&ViewSpec::default())?;
        let mut graph = match self.graph.take() {
            Some(graph) => graph,
            None => Graph::build(&self.ledger, &view, &mut |_, _| {})?,
        };
        if !graph.advance(&self.ledger, &view)? {
            return Err("the graph cannot be followed".into());
        }
        let snapshot = Arc::clone(graph.snapshot());
        self.graph = Some(graph);
        Ok((snapshot, self.ledger.clone()))
    }

    /// Runs a query that reads and creates.
    pub fn create(&mut self, query: &str) -> Result<(), Fault> {
        let (text, creates) = as_matches(query);
        let parsed = parse(&text).map_err(|f| f.message)?;
        let mut rows: Vec<BoundRow> = vec![vec![]];
        let mut reads: Vec<Clause> = Vec::new();
        let mut number = 0;
        for clause in parsed.first {
            let is_match = matches!(clause, Clause::Match { .. });
            let writes = is_match && creates[number];
            number += usize::from(is_match);
            match clause {
                Clause::Match { patterns, .. } if writes => {
                    rows = self.read(rows, std::mem::take(&mut reads))?;
                    for row in &mut rows {
                        for part in &patterns {
                            self.state(&part.pattern, row)?;
                        }
                    }
                }
                other => reads.push(other),
            }
        }
        Ok(())
    }

    /// Takes rows through clauses that read.
    fn read(&mut self, rows: Vec<BoundRow>, clauses: Vec<Clause>) -> Result<Vec<BoundRow>, Fault> {
        if clauses.is_empty() {
            return Ok(rows);
        }
        let star = ProjectionBody {
            distinct: false,
            star: true,
            items: vec![],
            order: vec![],
            skip: None,
            limit: None,
            at: 0,
        };
        let row_name = || CypherName { text: " row".into(), at: 0 };
        let mut first = Vec::new();
        if let Some(row) = rows.first().filter(|r| !r.is_empty()) {
            let list = CypherExpr { kind: CypherExprKind::Parameter("rows".into()), at: 0 };
            first.push(Clause::Unwind { list, name: row_name() });
            let of = |name: &String| {
                let subject = CypherExpr { kind: CypherExprKind::Variable(row_name().text), at: 0 };
                CypherExpr {
                    kind: CypherExprKind::Property(Box::new(subject), CypherName { text: name.clone(), at: 0 }),
                    at: 0,
                }
            };
            first.push(with(row.iter().map(|(name, _)| (name.clone(), of(name)))));
        }
        first.extend(clauses);
        first.push(Clause::Return(star));
        let maps = rows.into_iter().map(|row| Value::Map(Arc::new(row.into_iter().collect()))).collect();
        self.ask(first, &vec![("rows".into(), Value::list(maps))])
    }

    fn ask(&mut self, first: Vec<Clause>, row: &BoundRow) -> Result<Vec<BoundRow>, Fault> {
        let (snapshot, ledger) = self.view_graph()?;
        let place = ScenarioGraph::place(&snapshot, &ledger);
        let parameters: QueryParameters = row.iter().cloned().collect();
        let query = CypherQuery { mode: QueryMode::Run, first, unions: vec![] };
        let prepared = prepare_parsed(&query, &parameters, place).map_err(|f| f.message)?;
        let deadline = Instant::now() + Duration::from_secs(10);
        let outcome = prepared
            .run(QueryLimits { deadline, timeout_ms: 10_000, rows: 100_000, memory: 1 << 30 })
            .map_err(|t| t.into_error("").message)?;
        let columns = outcome.columns;
        Ok(outcome.rows.into_iter().map(|values| columns.iter().cloned().zip(values).collect()).collect())
    }

    /// Creates a pattern for a row and adds the nodes to the row.
    fn state(&mut self, pattern: &Pattern, row: &mut BoundRow) -> Result<(), Fault> {
        let mut batch = Batch::on("main");
        let mut fresh = Vec::new();
        self.pattern(pattern, row, &mut fresh, &mut batch)?;
        if batch.writes.is_empty() {
            return Ok(());
        }
        self.ledger.commit(&batch)?;
        let (snapshot, ledger) = self.view_graph()?;
        for (name, id) in fresh {
            let found = ledger.find(&snapshot.view, &reference(id))?;
            let node = snapshot.find(found.thing.no).ok_or("what was created is not there")?;
            row.push((name, Value::Node(node)));
        }
        Ok(())
    }

    /// Creates a pattern; `fresh` are the nodes created before, by name.
    fn pattern(
        &mut self,
        pattern: &Pattern,
        row: &BoundRow,
        fresh: &mut Vec<(String, Uuid)>,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        let mut here = self.node(&pattern.start, row, fresh, batch)?;
        for (edge, node) in &pattern.steps {
            let there = self.node(node, row, fresh, batch)?;
            let (src, dst) = if edge.arrow == Arrow::Left { (there, here) } else { (here, there) };
            let name = edge.types.first().ok_or("a relationship without a type")?;
            self.edges += 1;
            let put = PutRelationship::new(&name.text, reference(src), reference(dst));
            let properties = self.properties(edge.properties.as_ref(), row)?;
            // Parallel relationships of one type stay separate.
            let discriminator = self.edges.to_string();
            batch.writes.push(Write::from(PutRelationship { discriminator, properties, ..put }));
            here = there;
        }
        Ok(())
    }

    fn node(
        &mut self,
        node: &NodePattern,
        row: &BoundRow,
        fresh: &mut Vec<(String, Uuid)>,
        batch: &mut Batch,
    ) -> Result<Uuid, Fault> {
        if let Some(name) = &node.name {
            if let Some((_, id)) = fresh.iter().find(|(n, _)| *n == name.text) {
                return Ok(*id);
            }
            if let Some((_, Value::Node(place))) = row.iter().find(|(n, _)| *n == name.text) {
                let (snapshot, _) = self.view_graph()?;
                return Ok(snapshot.id(*place));
            }
        }
        let id = Uuid::now_v7();
        let labels: Vec<&str> = node.labels.iter().map(|l| l.text.as_str()).collect();
        // The first label is the type, if it is a valid name of a type.
        let own = labels.first().filter(|l| lukasa_model::id::check_type_name(l).is_ok());
        let put = PutObject {
            type_name: own.copied().unwrap_or(UNLABELLED).to_owned(),
            id: Some(id),
            labels: labels.iter().skip(usize::from(own.is_some())).map(ToString::to_string).collect(),
            properties: self.properties(node.properties.as_ref(), row)?,
            ..PutObject::default()
        };
        batch.writes.push(Write::from(put));
        if let Some(name) = &node.name {
            fresh.push((name.text.clone(), id));
        }
        Ok(id)
    }

    fn properties(
        &mut self,
        given_map: Option<&CypherExpr>,
        row: &BoundRow,
    ) -> Result<Map<String, serde_json::Value>, Fault> {
        let Some(expr) = given_map else { return Ok(Map::new()) };
        let item = ProjectionItem {
            expr: expr.clone(),
            alias: Some(CypherName { text: "map".into(), at: 0 }),
            text: String::new(),
        };
        let projection = ProjectionBody {
            distinct: false,
            star: false,
            items: vec![item],
            order: vec![],
            skip: None,
            limit: None,
            at: 0,
        };
        let mut clauses = if row.is_empty() { vec![] } else { vec![given(row)] };
        clauses.push(Clause::Return(projection));
        let found = self.ask(clauses, row)?;
        let Some((_, Value::Map(entries))) = found.first().and_then(|r| r.first()) else {
            return Err("properties are no map".into());
        };
        let mut all = Map::new();
        for (name, value) in entries.iter().filter(|(_, v)| !v.is_null()) {
            all.insert(name.clone(), stored::to_json(value).ok_or("a property cannot be stored")?);
        }
        Ok(all)
    }
}

fn reference(id: Uuid) -> Reference {
    Reference::from(id.to_string().as_str())
}

/// The same query with MATCH in place of CREATE, and which of its MATCH clauses were CREATE.
fn as_matches(query: &str) -> (String, Vec<bool>) {
    let mut text = String::new();
    let mut creates = Vec::new();
    let mut quote: Option<char> = None;
    let mut rest = query;
    while let Some(c) = rest.chars().next() {
        let starts_word = !text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let word = |w: &str| {
            rest.get(..w.len()).is_some_and(|head| head.eq_ignore_ascii_case(w))
                && !rest[w.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
        };
        let mut taken = c.len_utf8();
        match quote {
            Some(q) => {
                if c == q {
                    quote = None;
                }
                text.push(c);
            }
            None if starts_word && word("CREATE") => {
                creates.push(true);
                text.push_str("MATCH");
                taken = 6;
            }
            None => {
                if starts_word && word("MATCH") {
                    creates.push(false);
                }
                if matches!(c, '\'' | '"' | '`') {
                    quote = Some(c);
                }
                text.push(c);
            }
        }
        rest = &rest[taken..];
    }
    (text, creates)
}

/// A clause that passes the variables of a row as parameters.
fn given(row: &BoundRow) -> Clause {
    with(
        row.iter().map(|(name, _)| (name.clone(), CypherExpr { kind: CypherExprKind::Parameter(name.clone()), at: 0 })),
    )
}

fn with(columns: impl Iterator<Item = (String, CypherExpr)>) -> Clause {
    let item = |(name, expr): (String, CypherExpr)| {
        let alias = Some(CypherName { text: name.clone(), at: 0 });
        ProjectionItem { expr, alias, text: name }
    };
    let items = columns.map(item).collect();
    let projection =
        ProjectionBody { distinct: false, star: false, items, order: vec![], skip: None, limit: None, at: 0 };
    Clause::With { projection, filter: None }
}
