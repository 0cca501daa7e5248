//! Random combinations and mutations of queries: each is answered or refused, and none panics.
//! `FUZZ_SECONDS=600 cargo test --release -p lukasa-graph --test graph cypher_fuzz` runs for longer.

use lukasa_graph::Projection;
use lukasa_graph::cypher::value::Value;
use lukasa_graph::cypher::{QueryContext, QueryLimits, QueryParameters, prepare};
use lukasa_model::Batch;
use lukasa_model::batch::{PutObject, PutRelationship, Reference};
use lukasa_store::ledger::ViewSpec;
use lukasa_testkit::Fixture;
use lukasa_testkit::random_queries::{RandomQuery, SeededRandom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const SEEDS: &[&str] = &[
    "MATCH p = (a:A {n: 1})-[r:R*1..3 {w: 2}]->(b:B) WHERE a.n > 1 AND NOT b:C RETURN p, nodes(p), length(p) ORDER BY a.n DESC SKIP 1 LIMIT 3",
    "OPTIONAL MATCH (a)--(b) WITH a, collect(DISTINCT b.n) AS l UNWIND l AS x RETURN a, x, count(*) AS c",
    "RETURN [x IN range(1, 5) WHERE x % 2 = 0 | x ^ 2] AS l, {a: 1, b: [null, true, 'x']} AS m, -1.5e3 AS f",
    "MATCH (a) RETURN CASE a.n WHEN 1 THEN 'one' ELSE 'more' END, CASE WHEN a.n > 1 THEN a ELSE null END",
    "RETURN date('2020-01-01') + duration('P1M2DT3H') AS d, datetime({year: 2020, timezone: 'Europe/Stockholm'}).epochMillis",
    "RETURN duration.between(date('1984-10-11'), localdatetime('2015-06-24T12:00')) AS x, date.truncate('week', date())",
    "MATCH (a), (b) WHERE exists((a)-[:R]->(b)) OR exists { MATCH (a)-->(c) WHERE c.n = b.n } RETURN count { (a)--() }",
    "MATCH (a), (b) RETURN shortestPath((a)-[*..4]-(b)), allShortestPaths((a)-[:R*]->(b))",
    "RETURN all(x IN [1, 2] WHERE x > 0), none(x IN [] WHERE x), single(x IN [1] WHERE true), reduce(s = 0, x IN [1, 2] | s + x)",
    "CALL db.labels() YIELD label AS l WHERE l STARTS WITH 'A' RETURN l UNION ALL MATCH (n) RETURN n.s AS l",
    "CALL lukasa.neighbors('k1', 2) YIELD node, distance RETURN node {.n, .*, d: distance, node}",
    "MATCH (n) RETURN n.n AS k, sum(n.n), avg(n.n), min(n.s), max(n.s), stDev(n.n), percentileCont(n.n, 0.5), percentileDisc(n.n, $p)",
    "MATCH (n) WITH n ORDER BY n.s, n.n DESC WHERE n.n IS NOT NULL RETURN DISTINCT n.n XOR false, n.s =~ 'a.*', $list[0..-1], $map.x['y']",
    "RETURN 'it\\'s \\u00e9' + \"x\", `odd name`.y, 0x1F, 0o17, .5, 1e400, 9223372036854775807 + 1, 1 / 0, 1 % 0, -9223372036854775808",
    "EXPLAIN MATCH (a)-[:R|S]->(b)<-[*0..2]-(a) RETURN *",
    "PROFILE UNWIND [[1, 2], null, 'x', {a: 1}] AS x WITH x LIMIT 2 RETURN x, size(x), keys(x), toString(x)",
    "RETURN substring('hello', 1, 3), split('a,b', ','), replace('aa', 'a', 'b'), left('x', 9), toInteger('7'), round(2.5), rand()",
    "MATCH (a)-[r]->(b) WHERE id(a) = 1 OR elementId(b) = 'x' RETURN type(r), startNode(r) = a, properties(r), labels(b), r.w < a.n <= 3",
    "RETURN time('12:00+01:00') < time(), localtime({hour: 12}).minute, duration({days: 1.5, months: -2}) * 3 / 2",
];

const TOKENS: &[&str] = &[
    "MATCH",
    "OPTIONAL",
    "WHERE",
    "RETURN",
    "WITH",
    "UNWIND",
    "AS",
    "UNION",
    "ALL",
    "ORDER BY",
    "LIMIT",
    "SKIP",
    "CALL",
    "YIELD",
    "DISTINCT",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "AND",
    "OR",
    "XOR",
    "NOT",
    "IN",
    "IS NULL",
    "STARTS WITH",
    "CONTAINS",
    "exists",
    "count",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "-",
    "->",
    "<-",
    "--",
    "*",
    "..",
    "|",
    ":",
    ",",
    ".",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "=~",
    "+",
    "/",
    "%",
    "^",
    "$p",
    "$list",
    "$map",
    "null",
    "true",
    "1",
    "-1",
    "0",
    "2.5",
    "9223372036854775807",
    "1e308",
    "''",
    "'x'",
    "a",
    "b",
    "n",
    "r",
    "p",
    "x",
    "A",
    "R",
    "collect(",
    "range(",
    "date(",
    "duration(",
    "reduce(",
    "size(",
    "nodes(",
    "shortestPath(",
    "sum(",
    ";",
    "//",
    "/*",
    "*/",
    "`",
    "'",
    "\"",
    "\\",
    "é",
    "\u{0}",
];

fn mutated(query: &str, other: &str, dice: &mut SeededRandom) -> String {
    let mut words: Vec<String> = split(query);
    let others = split(other);
    for _ in 0..1 + dice.below(6) {
        let at = dice.below(words.len() as u64 + 1) as usize;
        match dice.below(8) {
            0 if at < words.len() => drop(words.remove(at)),
            1 => words.insert(at, TOKENS[dice.below(TOKENS.len() as u64) as usize].into()),
            2 if at < words.len() => words[at] = TOKENS[dice.below(TOKENS.len() as u64) as usize].into(),
            3 if at + 1 < words.len() => words.swap(at, at + 1),
            4 if !others.is_empty() => {
                let from = dice.below(others.len() as u64) as usize;
                let to = (from + 1 + dice.below(12) as usize).min(others.len());
                words.splice(at..at, others[from..to].iter().cloned());
            }
            5 if at < words.len() => {
                let to = (at + 1 + dice.below(10) as usize).min(words.len());
                let part: Vec<String> = words[at..to].to_vec();
                for _ in 0..1 + dice.below(4) {
                    words.splice(at..at, part.iter().cloned());
                }
            }
            6 if at < words.len() => {
                let to = (at + 1 + dice.below(10) as usize).min(words.len());
                words.drain(at..to);
            }
            _ if at < words.len() => {
                let place = words[at].char_indices().map(|(i, _)| i).nth(dice.below(3) as usize).unwrap_or(0);
                words[at].insert(place, char::from(32 + dice.below(95) as u8));
            }
            _ => {}
        }
        words.truncate(400);
    }
    let space = if dice.below(4) == 0 { "" } else { " " };
    words.join(space)
}

/// Words and signs.
fn split(query: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in query.chars() {
        match words.last_mut() {
            Some(word) if is_part(c) && is_part(last) => word.push(c),
            _ if c == ' ' => {}
            _ => words.push(c.into()),
        }
        last = c;
    }
    words
}

#[test]
fn mutated_queries_do_not_panic() {
    let seconds: u64 = std::env::var("FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    let fixture = Fixture::memory();
    let mut batch = Batch::on("main");
    for i in 0..6i64 {
        let put =
            PutObject::new(["A", "B", "C"][i as usize % 3], &format!("k{i}")).property("n", i).property("s", "ab");
        batch.writes.push(put.property("l", serde_json::json!([1, "x", null])).into());
    }
    for i in 0..6u32 {
        let end = |i: u32| Reference::exact(["A", "B", "C"][i as usize % 3], &format!("k{i}"));
        batch.writes.push(PutRelationship::new("R", end(i), end((i * 2 + 1) % 6)).into());
    }
    fixture.ledger.commit(&batch).unwrap();
    let view = fixture.ledger.view(&ViewSpec::default()).unwrap();
    let graph = Projection::build(&fixture.ledger, &view, &mut |_, _| {}).unwrap();
    let map = Value::Map(std::sync::Arc::new([("x".to_string(), Value::Integer(1))].into()));
    let parameters: QueryParameters = [
        ("p".to_string(), Value::Float(0.5)),
        ("list".to_string(), Value::list(vec![Value::Null, map.clone(), Value::Float(f64::NAN)])),
        ("map".to_string(), map),
    ]
    .into();
    let place = QueryContext { snapshot: graph.snapshot(), ledger: &fixture.ledger, now: 1 << 60, silent_type: None };
    let seed: u64 = std::env::var("FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut dice = SeededRandom(seed);
    let (mut tried, mut answered, mut read) = (0u64, 0u64, 0u64);
    let begun = Instant::now();
    let mut kept: Vec<String> = SEEDS.iter().map(|s| (*s).to_owned()).collect();
    while tried < 6_000 || begun.elapsed() < Duration::from_secs(seconds) {
        tried += 1;
        let pick = |dice: &mut SeededRandom, kept: &[String]| match dice.below(4) {
            0 => RandomQuery::new(dice).text(),
            _ => kept[dice.below(kept.len() as u64) as usize].clone(),
        };
        let (one, other) = (pick(&mut dice, &kept), pick(&mut dice, &kept));
        let query = mutated(&one, &other, &mut dice);
        let run = catch_unwind(AssertUnwindSafe(|| {
            let prepared = match prepare(&query, &parameters, place) {
                Ok(prepared) => prepared,
                Err(fault) => {
                    assert!(fault.place(&query).0 > 0);
                    return (false, false);
                }
            };
            let deadline = Instant::now() + Duration::from_millis(20);
            let limits = QueryLimits { deadline, timeout_ms: 20, rows: 100, memory: 8 << 20 };
            (true, prepared.run(limits).is_ok())
        }));
        let (valid, ran) = run.unwrap_or_else(|_| panic!("crashed, seed {seed}, after {tried}: {query:?}"));
        read += u64::from(valid);
        answered += u64::from(ran);
        // A valid query is mutated further.
        if valid && query.len() < 600 {
            let place = SEEDS.len() + dice.below(200) as usize;
            if place < kept.len() { kept[place] = query } else { kept.push(query) }
        }
    }
    println!("{tried} tried, {read} valid, {answered} answered");
    assert!(answered * 100 > tried, "{answered} of {tried} were answered");
}

#[test]
fn deep_and_long_queries_are_refused_or_answered() {
    let fixture = Fixture::memory();
    fixture.ledger.commit(&Batch::on("main").write(PutObject::new("A", "x"))).unwrap();
    let view = fixture.ledger.view(&ViewSpec::default()).unwrap();
    let graph = Projection::build(&fixture.ledger, &view, &mut |_, _| {}).unwrap();
    let place = QueryContext { snapshot: graph.snapshot(), ledger: &fixture.ledger, now: 0, silent_type: None };
    let many = |n: usize, what: &str| what.repeat(n);
    for n in [10, 90, 240, 2_000, 20_000] {
        for query in [
            format!("RETURN {}1{}", many(n, "("), many(n, ")")),
            format!("RETURN {}1{}", many(n, "["), many(n, "]")),
            format!("RETURN {}true", many(n, "NOT ")),
            format!("RETURN 1{}", many(n, " + 1")),
            format!("RETURN true{}", many(n, " AND true")),
            format!("RETURN {}1", many(n, "-")),
            format!("WITH {{a: 1}} AS a RETURN a{}", many(n, ".a")),
            format!("WITH [1] AS a RETURN a{}", many(n, "[0]")),
            format!("RETURN 1{}", many(n, " < 1")),
            format!("RETURN 1{}", many(n, " IS NULL")),
            format!("{} RETURN 1", many(n, "MATCH (a) WITH 1 AS one ")),
            format!("MATCH (a){} RETURN 1", many(n, "-->()")),
            format!("RETURN 1 AS a{}", many(n, " UNION RETURN 1 AS a")),
            format!("RETURN {}1{}", many(n, "CASE WHEN true THEN "), many(n, " END")),
            format!("RETURN {}true{}", many(n, "exists { MATCH (a) WHERE "), many(n, " }")),
            format!("RETURN {}1{}", many(n, "[x IN [1] | "), many(n, "]")),
            format!("RETURN {}", many(n, "((")),
            many(n, "("),
            many(n, "[("),
            many(n, "'"),
        ] {
            if let Ok(prepared) = prepare(&query, &QueryParameters::new(), place) {
                let deadline = Instant::now() + Duration::from_secs(5);
                let _ = prepared.run(QueryLimits { deadline, timeout_ms: 5_000, rows: 10, memory: 8 << 20 });
            }
        }
    }
    let simple = prepare(&format!("RETURN 1{} AS s", many(90, " + 1")), &QueryParameters::new(), place).unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    let found = simple.run(QueryLimits { deadline, timeout_ms: 5_000, rows: 10, memory: 8 << 20 }).unwrap();
    assert!(matches!(found.rows[0][0], Value::Integer(91)));
}
