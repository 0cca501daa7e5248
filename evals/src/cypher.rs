//! The `cypher` suite: the same queries on the same graph in Lukasa, Kuzu and FalkorDB.

use crate::graph::peers::script;
use crate::graph::synthetic::{SeededRandom, SyntheticGraph};
use crate::{print, round};
use lukasa_engine::{Context, Engine};
use lukasa_graph::cypher::value::Value as Found;
use lukasa_graph::cypher::{QueryContext, QueryLimits, QueryParameters, prepare};
use lukasa_model::batch::{PutObject, PutRelationship, Reference};
use lukasa_model::{Batch, Scope, Write};
use lukasa_store::sqlite::Durability;
use lukasa_store::{Clock, Ledger, SqliteStore, Store, SystemClock};
use serde_json::{Value, json};
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Fault = Box<dyn Error>;

pub struct CypherOptions {
    pub nodes: u64,
    pub edges: u64,
    pub seed: u64,
    pub peers: bool,
    pub json: bool,
    /// Only queries whose name contains this.
    pub only: Option<String>,
}

const BATCH: usize = 10_000;
/// Runs of one query, each with another node.
const SAMPLES: usize = 200;
/// A slow query is repeated until this time has passed, at least ten times.
const LONGEST: Duration = Duration::from_secs(60);

/// A query in the dialect of each engine; one text if the dialects agree.
struct Question {
    name: &'static str,
    text: &'static str,
    kuzu: Option<&'static str>,
    falkordb: Option<&'static str>,
}

const QUESTIONS: [Question; 10] = [
    Question { name: "point_lookup", text: "MATCH (n:N {id: $a}) RETURN n.score, n.team", kuzu: None, falkordb: None },
    Question {
        name: "hop2_count_filter",
        text: "MATCH (a:N {id: $a})-[:E]->(:N)-[:E]->(c:N) WHERE c.score > 500 RETURN count(*)",
        kuzu: None,
        falkordb: None,
    },
    Question {
        name: "hop3_count_filter",
        text: "MATCH (a:N {id: $a})-[:E]->(:N)-[:E]->(:N)-[:E]->(d:N) WHERE d.score > 500 RETURN count(*)",
        kuzu: None,
        falkordb: None,
    },
    Question {
        name: "var_length_1_3",
        text: "MATCH (a:N {id: $a})-[:E*1..3]->(b:N) RETURN count(*)",
        // A plain pattern of Kuzu matches a relationship twice; a trail does not.
        kuzu: Some("MATCH (a:N {id: $a})-[:E* TRAIL 1..3]->(b:N) RETURN count(*)"),
        falkordb: None,
    },
    Question {
        name: "var_length_1_3_distinct",
        text: "MATCH (a:N {id: $a})-[:E*1..3]->(b:N) RETURN count(DISTINCT b.id)",
        kuzu: None,
        falkordb: None,
    },
    Question {
        name: "aggregate_by_neighbour",
        text: "MATCH (a:N)-[:E]->(b:N) RETURN b.id AS id, count(*) AS c ORDER BY c DESC, id LIMIT 10",
        kuzu: None,
        falkordb: None,
    },
    Question {
        name: "aggregate_by_group",
        text: "MATCH (a:N)-[:E]->(b:N) RETURN b.team AS team, count(*) AS c, avg(a.score) AS s ORDER BY team",
        kuzu: None,
        falkordb: None,
    },
    Question {
        name: "triangle_count",
        text: "MATCH (a:N)-[:E]->(b:N)-[:E]->(c:N)-[:E]->(a) RETURN count(*)",
        kuzu: None,
        falkordb: None,
    },
    Question {
        name: "shortest_path",
        text: "MATCH (a:N {id: $a}), (b:N {id: $b}), p = shortestPath((a)-[:E*..8]->(b)) RETURN length(p)",
        kuzu: Some("MATCH p = (a:N {id: $a})-[:E* SHORTEST 1..8]->(b:N {id: $b}) RETURN length(p)"),
        falkordb: Some("MATCH (a:N {id: $a}), (b:N {id: $b}) RETURN length(shortestPath((a)-[:E*..8]->(b)))"),
    },
    Question {
        name: "top_k_by_property",
        text: "MATCH (n:N) RETURN n.id AS id, n.score AS score ORDER BY score DESC, id LIMIT 10",
        kuzu: None,
        falkordb: None,
    },
];

fn score(i: u64) -> u64 {
    SeededRandom(i ^ 0x5c0e).below(1_000)
}

fn team(i: u64) -> String {
    format!("team-{}", SeededRandom(i ^ 0x7ea3).below(20))
}

fn writes(made: &SyntheticGraph) -> impl Iterator<Item = Write> {
    let key = |i: u64| format!("n{i:07}");
    let objects = (0..made.nodes).map(move |i| {
        let put = PutObject::new("N", &key(i)).property("id", i).property("score", score(i)).property("team", team(i));
        Write::from(put)
    });
    let edges = made.edges.iter().map(move |(src, dst, type_no)| {
        let end = |v: &u32| Reference::exact("N", &key(u64::from(*v)));
        let mut put = PutRelationship::new("E", end(src), end(dst));
        // Two nodes may be connected more than once.
        put.discriminator = type_no.to_string();
        Write::from(put)
    });
    objects.chain(edges)
}

/// Runs generated queries on generated graphs in Lukasa, Kuzu and a naive evaluator, and compares the bags of rows.
pub fn compare(cases: u64, as_json: bool) -> Result<(), Fault> {
    use lukasa_testkit::random_queries::{RandomGraph, RandomQuery, SeededRandom, answer};
    let folder = tempfile::tempdir()?;
    let mut out = std::io::BufWriter::new(std::fs::File::create(folder.path().join("cases.jsonl"))?);
    let (mut asked, mut same, mut for_kuzu) = (0u64, 0u64, 0u64);
    for seed in 0..cases.div_ceil(4) {
        let mut dice = SeededRandom(seed);
        let world = RandomGraph::new(&mut dice);
        let mut questions = Vec::new();
        let mut desk = made_world(&world)?;
        for _ in 0..4 {
            let question = RandomQuery::new(&mut dice);
            let mut want = answer(&world, &question);
            let mut got = desk(&question.text())?;
            if question.ordered.is_none() {
                want.sort();
                got.sort();
            }
            asked += 1;
            same += u64::from(got == want);
            let loops = question.goes_either_way() && world.edges.iter().any(|e| e.src == e.dst);
            if let Some(text) = question.without_repetition().filter(|_| !loops) {
                for_kuzu += 1;
                questions.push(json!({"text": text, "rows": got}));
            }
        }
        let nodes: Vec<_> = world.nodes.iter().map(|n| json!([n.label, n.n, n.s])).collect();
        let edges: Vec<_> = world.edges.iter().map(|e| json!([e.src, e.dst, e.kind, e.w])).collect();
        writeln!(out, "{}", json!({"nodes": nodes, "edges": edges, "questions": questions}))?;
    }
    out.flush()?;
    let line = json!({"suite": "cypher", "engine": "naive", "query": "generated", "asked": asked, "same": same,
        "different": asked - same});
    print(&line, as_json);
    eprintln!("kuzu: {for_kuzu} of them …");
    let folder = folder.path().display().to_string();
    for line in script(&["--compare".into(), folder, "--engines".into(), "kuzu".into()])? {
        print(&line, as_json);
    }
    Ok(())
}

type RunQuery = Box<dyn FnMut(&str) -> Result<Vec<Vec<String>>, Fault>>;

/// Writes a small graph into a new store; returns a function that runs a query on it.
fn made_world(world: &lukasa_testkit::random_queries::RandomGraph) -> Result<RunQuery, Fault> {
    use lukasa_testkit::random_queries::{LABELS, TYPES};
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store: Arc<dyn Store> = Arc::new(lukasa_store::MemoryStore::new(Arc::clone(&clock)));
    let ledger = Ledger::new(store, clock, Scope::new("evals", "cypher")?);
    let mut batch = Batch::on("main");
    for (i, facts) in world.nodes.iter().enumerate() {
        let mut put = PutObject::new(LABELS[facts.label], &format!("k{i}")).property("id", i as i64);
        facts.n.into_iter().for_each(|n| drop(put.properties.insert("n".into(), n.into())));
        facts.s.into_iter().for_each(|s| drop(put.properties.insert("s".into(), s.into())));
        batch.writes.push(put.into());
    }
    for (i, e) in world.edges.iter().enumerate() {
        let end = |node: usize| Reference::exact(LABELS[world.nodes[node].label], &format!("k{node}"));
        let mut put = PutRelationship::new(TYPES[e.kind], end(e.src), end(e.dst));
        put.discriminator = i.to_string();
        e.w.into_iter().for_each(|w| drop(put.properties.insert("w".into(), w.into())));
        batch.writes.push(put.into());
    }
    ledger.commit(&batch)?;
    let view = ledger.view(&lukasa_store::ledger::ViewSpec::default())?;
    let graph = lukasa_graph::Projection::build(&ledger, &view, &mut |_, _| {})?;
    Ok(Box::new(move |query| {
        let place = QueryContext { snapshot: graph.snapshot(), ledger: &ledger, now: 0, silent_type: None };
        let prepared = prepare(query, &QueryParameters::new(), place).map_err(|f| f.message)?;
        let deadline = Instant::now() + LONGEST;
        let found = prepared.run(QueryLimits { deadline, timeout_ms: 60_000, rows: usize::MAX, memory: 1 << 30 });
        let shown = |v: &Found| match v {
            Found::Null => "null".into(),
            Found::Integer(n) => n.to_string(),
            Found::Text(text) => format!("'{text}'"),
            other => format!("{other:?}"),
        };
        let found = found.map_err(|t| t.into_error(query).message)?;
        Ok(found.rows.iter().map(|row| row.iter().map(shown).collect()).collect())
    }))
}

fn answer_of(engine: &Engine, scope: &Scope, request: Value) -> lukasa_model::Result<lukasa_engine::OperationAnswer> {
    let mut progress = |_, _| {};
    let mut context = Context::of(scope.clone(), &mut progress);
    engine.answer(&mut context, "cypher", request)
}

pub fn run(ask: &CypherOptions) -> Result<(), Fault> {
    let folder = tempfile::tempdir()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let path = folder.path().join("lukasa.db");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, Arc::clone(&clock), Durability::Rebuildable)?);
    let scope = Scope::new("evals", "cypher")?;
    let ledger = Ledger::new(Arc::clone(&store), Arc::clone(&clock), scope.clone());
    let made = SyntheticGraph::new(ask.nodes, ask.edges, ask.seed);
    eprintln!("committing {} nodes and {} edges …", ask.nodes, ask.edges);
    let mut all = writes(&made);
    loop {
        let batch: Vec<_> = all.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        ledger.commit(&Batch { writes: batch, ..Batch::on("main") })?;
    }
    drop(all);
    let mut dice = SeededRandom(ask.seed ^ 0x5eed);
    let parameters: Vec<(u64, u64)> = (0..SAMPLES).map(|_| (dice.below(ask.nodes), dice.below(ask.nodes))).collect();
    let engine = Engine::new(store, clock, std::env::temp_dir());
    let mut ours = Vec::new();
    let only = ask.only.as_deref().unwrap_or_default();
    for question in QUESTIONS.iter().filter(|q| q.name.contains(only)) {
        eprintln!("lukasa: {} …", question.name);
        ours.push(measure(&engine, &scope, question, &parameters, ask)?);
    }
    for line in &ours {
        print(line, ask.json);
    }
    if only.is_empty() {
        eprintln!("lukasa: queries that would run for minutes …");
        for query in ENDLESS {
            print(&stopped(&engine, &scope, query)?, ask.json);
        }
    }
    if ask.peers {
        for mut line in peers(&made, &parameters, only)? {
            if let Some(own) = ours.iter().find(|own| own["query"] == line["query"]) {
                line["same_answers"] = json!(own["answers"] == line["answers"]);
                let faster = |field: &str| Some(round(line[field].as_f64()? / own[field].as_f64()?));
                let (p50, p95) = (faster("p50_us"), faster("p95_us"));
                line["lukasa_faster_p50"] = json!(p50);
                line["lukasa_faster_p95"] = json!(p95);
            }
            print(&line, ask.json);
        }
    }
    Ok(())
}

/// Queries that would run for minutes or longer on this graph.
const ENDLESS: [&str; 8] = [
    "MATCH (a), (b), (c) RETURN count(*)",
    "MATCH (a:N)-[:E*]->(b:N) RETURN count(*)",
    "MATCH (a:N)-[:E]-(b)-[:E]-(c)-[:E]-(d)-[:E]-(e) RETURN count(DISTINCT e)",
    "MATCH (a:N), (b:N) WHERE a.score < b.score RETURN a.id, count(*) AS c ORDER BY c DESC LIMIT 5",
    "MATCH (a:N), (b:N) WHERE exists { MATCH (a)-[:E*4]->(b) } RETURN count(*)",
    "MATCH (a:N {id: 1}), (b:N) MATCH p = allShortestPaths((a)-[:E*]-(b)) RETURN count(p)",
    "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b RETURN max(a * b)",
    "MATCH (n:N) RETURN reduce(s = 0, x IN range(1, 1000000) | s + x * n.score)",
];
const STOP_MS: u64 = 200;

/// How long a query runs after its deadline, the worst of five runs, and the memory that is left in use.
fn stopped(engine: &Engine, scope: &Scope, query: &str) -> Result<Value, Fault> {
    let before = crate::status_mb("VmRSS:");
    let mut over = 0.0f64;
    let mut code = "none";
    for _ in 0..5 {
        let start = Instant::now();
        let answer = answer_of(engine, scope, json!({"query": query, "timeout_ms": STOP_MS}));
        over = over.max(start.elapsed().as_secs_f64() * 1e3 - STOP_MS as f64);
        code = answer.map_or_else(|e| e.code.name(), |_| "answered");
    }
    let after = crate::status_mb("VmRSS:");
    Ok(json!({"suite": "cypher", "engine": "lukasa", "query": "stopped", "text": query, "timeout_ms": STOP_MS,
        "over_ms": round(over), "code": code, "rss_before_mb": before, "rss_after_mb": after}))
}

/// The whole operation, from the request to the text of the answer.
fn measure(
    engine: &Engine,
    scope: &Scope,
    question: &Question,
    parameters: &[(u64, u64)],
    ask: &CypherOptions,
) -> Result<Value, Fault> {
    let call = |(a, b): (u64, u64)| {
        let request = json!({"query": question.text, "parameters": {"a": a, "b": b}, "timeout_ms": 30_000});
        answer_of(engine, scope, request)
    };
    let (mut rows, mut answers) = (0, json!(0));
    // The first round warms up, and its answers are kept.
    for (i, pair) in parameters.iter().enumerate().take(if question.text.contains("$a") { SAMPLES } else { 1 }) {
        let found = call(*pair)?.value()?;
        if i == 0 {
            rows = found["rows"].as_array().map_or(0, Vec::len);
        }
        answers = added(&answers, &found["rows"]);
    }
    let mut times = Vec::new();
    let begun = Instant::now();
    for pair in parameters {
        let start = Instant::now();
        std::hint::black_box(call(*pair)?.text()?);
        times.push(start.elapsed().as_secs_f64() * 1e6);
        if begun.elapsed() > LONGEST && times.len() >= 10 {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| round(times[((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1]);
    Ok(json!({"suite": "cypher", "engine": "lukasa", "query": question.name, "nodes": ask.nodes, "edges": ask.edges,
        "p50_us": at(0.5), "p95_us": at(0.95), "rows": rows, "samples": times.len(), "answers": answers,
        "text": question.text}))
}

/// Adds every number of an answer to a sum, so that answers of engines can be compared.
fn added(so_far: &Value, rows: &Value) -> Value {
    fn sum(value: &Value) -> f64 {
        match value {
            Value::Number(n) => n.as_f64().unwrap_or(0.0),
            Value::Array(items) => items.iter().map(sum).sum(),
            _ => 0.0,
        }
    }
    json!(round(so_far.as_f64().unwrap_or(0.0) + sum(rows)))
}

fn peers(made: &SyntheticGraph, parameters: &[(u64, u64)], only: &str) -> Result<Vec<Value>, Fault> {
    let folder = tempfile::tempdir()?;
    let mut nodes = std::io::BufWriter::new(std::fs::File::create(folder.path().join("nodes.csv"))?);
    for i in 0..made.nodes {
        writeln!(nodes, "{i},{},{}", score(i), team(i))?;
    }
    nodes.flush()?;
    let mut edges = std::io::BufWriter::new(std::fs::File::create(folder.path().join("edges.csv"))?);
    for (src, dst, _) in &made.edges {
        writeln!(edges, "{src},{dst}")?;
    }
    edges.flush()?;
    let questions: Vec<_> = QUESTIONS
        .iter()
        .filter(|q| q.name.contains(only))
        .map(|q| json!({"query": q.name, "kuzu": q.kuzu.unwrap_or(q.text), "falkordb": q.falkordb.unwrap_or(q.text)}))
        .collect();
    let meta = json!({"nodes": made.nodes, "edges": made.edges.len(), "questions": questions,
        "parameters": parameters, "longest_s": LONGEST.as_secs()});
    std::fs::write(folder.path().join("meta.json"), meta.to_string())?;
    script(&["--cypher".into(), folder.path().display().to_string(), "--engines".into(), "kuzu,falkordb".into()])
}
