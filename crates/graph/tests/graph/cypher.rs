//! Queries are compared with a naive implementation, on small graphs and on graphs large enough for every optimization.
//! Further tests cover limits, and that a query reads only its own project and moment.

use expect_test::{Expect, expect};
use lukasa_graph::contents::known;
use lukasa_graph::cypher::value::Value;
use lukasa_graph::cypher::{QueryContext, QueryError, QueryLimits, QueryParameters, QueryResult, SearchNodes, prepare};
use lukasa_graph::{Node, Projection, Snapshot};
use lukasa_model::batch::{End, PutObject, PutRelationship, Reference};
use lukasa_model::{Batch, Error, ErrorCode, ErrorKind, Write};
use lukasa_store::Ledger;
use lukasa_store::ledger::ViewSpec;
use lukasa_testkit::Fixture;
use lukasa_testkit::random_queries::{LABELS, RandomGraph, RandomQuery, SeededRandom, TYPES, answer};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn object(world: &RandomGraph, i: usize) -> Write {
    let facts = &world.nodes[i];
    let mut put = PutObject::new(LABELS[facts.label], &format!("k{i}")).property("id", i as i64);
    if let Some(n) = facts.n {
        put = put.property("n", n);
    }
    if let Some(s) = facts.s {
        put = put.property("s", s);
    }
    put.into()
}

fn relationship(world: &RandomGraph, i: usize) -> Write {
    let e = &world.edges[i];
    let end = |node: usize| Reference::exact(LABELS[world.nodes[node].label], &format!("k{node}"));
    let mut put = PutRelationship::new(TYPES[e.kind], end(e.src), end(e.dst));
    put.discriminator = i.to_string();
    if let Some(w) = e.w {
        put.properties.insert("w".into(), w.into());
    }
    put.into()
}

fn state(ledger: &Ledger, world: &RandomGraph) {
    let nodes = (0..world.nodes.len()).map(|i| object(world, i));
    let writes = nodes.chain((0..world.edges.len()).map(|i| relationship(world, i))).collect();
    ledger.commit(&Batch { writes, ..Batch::on("main") }).expect("facts are stated");
}

fn graph(ledger: &Ledger) -> Projection {
    let view = ledger.view(&ViewSpec::default()).expect("a view");
    Projection::build(ledger, &view, &mut |_, _| {}).expect("a graph")
}

fn limits(ms: u64) -> QueryLimits {
    QueryLimits {
        deadline: Instant::now() + Duration::from_millis(ms),
        timeout_ms: ms,
        rows: 100_000,
        memory: 64 << 20,
    }
}

fn ask(
    query: &str,
    snapshot: &Arc<Snapshot>,
    ledger: &Ledger,
    limits: QueryLimits,
) -> Result<QueryResult, Box<QueryError>> {
    let place = QueryContext { snapshot, ledger, now: 0, silent_type: None };
    prepare(query, &QueryParameters::new(), place).map_err(|f| Box::new(QueryError::Fault(f)))?.run(limits)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Integer(n) => n.to_string(),
        Value::Text(t) => format!("'{t}'"),
        other => format!("{other:?}"),
    }
}

fn rows(query: &str, snapshot: &Arc<Snapshot>, ledger: &Ledger) -> Vec<Vec<String>> {
    let all = QueryLimits { rows: usize::MAX, memory: 4 << 30, ..limits(60_000) };
    let outcome = ask(query, snapshot, ledger, all).unwrap_or_else(|t| panic!("{query}: {t:?}"));
    outcome.rows.iter().map(|row| row.iter().map(shown).collect()).collect()
}

fn check(world: &RandomGraph, question: &RandomQuery, snapshot: &Arc<Snapshot>, ledger: &Ledger, seed: u64) -> usize {
    let query = question.text();
    let mut got = rows(&query, snapshot, ledger);
    let mut want = answer(world, question);
    let count = want.len();
    if question.ordered.is_none() {
        got.sort();
        want.sort();
    }
    assert!(got == want, "seed {seed}: {query}\n{world:?}\n{} and {} rows", got.len(), want.len());
    count
}

#[test]
fn two_thousand_queries_return_the_same_as_the_naive_implementation() {
    let cases: u64 = std::env::var("CASES").ok().and_then(|c| c.parse().ok()).unwrap_or(2_000);
    let (mut asked, mut with_rows) = (0, 0);
    for seed in 0..cases.div_ceil(4) {
        let mut dice = SeededRandom(seed);
        let fixture = Fixture::memory();
        let world = RandomGraph::new(&mut dice);
        state(&fixture.ledger, &world);
        let graph = graph(&fixture.ledger);
        for _ in 0..4 {
            let question = RandomQuery::new(&mut dice);
            with_rows += usize::from(check(&world, &question, graph.snapshot(), &fixture.ledger, seed) > 0);
            asked += 1;
        }
    }
    assert!(asked >= cases as usize && with_rows * 5 > asked * 2, "{with_rows} of {asked} have rows");
}

#[test]
fn optimizations_for_larger_graphs_return_the_same_while_facts_change() {
    for seed in 0..3 {
        let mut dice = SeededRandom(seed ^ 0xabc);
        let fixture = Fixture::memory();
        let mut world = RandomGraph::of(400, 700, &mut dice);
        state(&fixture.ledger, &world);
        let mut graph = graph(&fixture.ledger);
        for round in 0..3 {
            for _ in 0..8 {
                let question = RandomQuery::of(1, 1, &mut dice);
                // The first query reads properties, and later ones use cached ones.
                for _ in 0..3 {
                    check(&world, &question, graph.snapshot(), &fixture.ledger, seed);
                }
            }
            let (ordered, all) = (
                "MATCH (n) RETURN n.n AS n, n.id AS id ORDER BY n, id LIMIT 7",
                "MATCH (n) RETURN n.n AS n, n.id AS id",
            );
            for _ in 0..4 {
                let mut every = rows(all, graph.snapshot(), &fixture.ledger);
                let number = |t: &String| t.parse::<i64>().unwrap_or(i64::MAX);
                every.sort_by_key(|r| (number(&r[0]), number(&r[1])));
                assert_eq!(rows(ordered, graph.snapshot(), &fixture.ledger), every[..7]);
                every.reverse();
                let back = ordered.replace("ORDER BY n, id", "ORDER BY n DESC, id DESC");
                assert_eq!(rows(&back, graph.snapshot(), &fixture.ledger), every[..7]);
            }
            let mut batch = Batch::on("main");
            for _ in 0..25 {
                let i = dice.below(400) as usize;
                world.nodes[i].n = Some(dice.below(6) as i64);
                batch.writes.push(object(&world, i));
                let e = dice.below(700) as usize;
                world.edges[e].w = Some(dice.below(4) as i64);
                batch.writes.push(relationship(&world, e));
            }
            batch.writes.sort_by_key(|w| format!("{w:?}"));
            batch.writes.dedup();
            let mut seen = std::collections::HashSet::new();
            batch.writes.retain(|w| match w {
                Write::Object(put) => seen.insert(put.key.clone().unwrap_or_default()),
                Write::Relationship(put) => seen.insert(format!("e{}", put.discriminator)),
                Write::End(_) => true,
            });
            // The last write of each fact is the one that counts.
            for i in 0..400 {
                if seen.contains(&format!("k{i}")) {
                    batch
                        .writes
                        .retain(|w| !matches!(w, Write::Object(p) if p.key.as_deref() == Some(&format!("k{i}"))));
                    batch.writes.push(object(&world, i));
                }
            }
            for e in 0..700 {
                if seen.contains(&format!("e{e}")) {
                    batch.writes.retain(|w| !matches!(w, Write::Relationship(p) if p.discriminator == e.to_string()));
                    batch.writes.push(relationship(&world, e));
                }
            }
            fixture.clock.advance(1);
            fixture.ledger.commit(&batch).unwrap();
            let view = fixture.ledger.view(&ViewSpec::default()).unwrap();
            let before = Arc::clone(graph.snapshot());
            assert!(graph.advance(&fixture.ledger, &view).unwrap(), "round {round}");
            // The older snapshot does not change, not even properties that were never read from it.
            let old = rows("MATCH (n) RETURN n.id, n.n", &before, &fixture.ledger);
            assert_eq!(old.len(), 400);
        }
    }
}

#[test]
fn an_older_snapshot_reads_older_properties() {
    for fixture in lukasa_testkit::fixtures() {
        let ledger = &fixture.ledger;
        ledger.commit(&Batch::on("main").write(PutObject::new("A", "x").property("n", 1))).unwrap();
        let mut graph = graph(ledger);
        let before = Arc::clone(graph.snapshot());
        fixture.clock.advance(1);
        ledger.commit(&Batch::on("main").write(PutObject::new("A", "x").property("n", 2))).unwrap();
        assert!(graph.advance(ledger, &ledger.view(&ViewSpec::default()).unwrap()).unwrap());
        let query = "MATCH (a:A {key: 'x'}) RETURN a.n";
        // The newer one first: the older one must not use what it reads.
        assert_eq!(rows(query, graph.snapshot(), ledger), [["2"]], "{}", fixture.name);
        assert_eq!(rows(query, &before, ledger), [["1"]], "{}", fixture.name);
    }
}

#[test]
fn cached_contents_belong_to_their_snapshot() {
    for fixture in lukasa_testkit::fixtures() {
        let ledger = &fixture.ledger;
        let stated = |n: i64| Batch::on("main").write(PutObject::new("A", "x").property("n", n));
        ledger.commit(&stated(1).write(PutObject::new("A", "y").property("n", 9))).unwrap();
        let mut graph = graph(ledger);
        // From the store, then from memory.
        let contents = |snapshot: &Snapshot| {
            let once = || {
                let all = known(snapshot, ledger, &snapshot.nodes()).unwrap();
                let mut all: Vec<i64> =
                    all.iter().map(|(_, known)| known.content.properties["n"].as_i64().unwrap()).collect();
                all.sort_unstable();
                all
            };
            assert_eq!(once(), once(), "{}", fixture.name);
            once()
        };
        let first = Arc::clone(graph.snapshot());
        assert_eq!(contents(&first), [1, 9]);
        for (batch, expected) in [
            (stated(2), vec![2, 9]),
            (Batch::on("main").write(End::new(Reference::exact("A", "x"))), vec![9]),
            (stated(3), vec![3, 9]),
        ] {
            fixture.clock.advance(1);
            ledger.commit(&batch).unwrap();
            let before = Arc::clone(graph.snapshot());
            let then = contents(&before);
            assert!(graph.advance(ledger, &ledger.view(&ViewSpec::default()).unwrap()).unwrap());
            assert_eq!(contents(graph.snapshot()), expected, "{}", fixture.name);
            assert_eq!(contents(&before), then, "{}", fixture.name);
        }
        assert_eq!(contents(&first), [1, 9], "{}", fixture.name);
    }
}

/// A graph on which unselective queries do not finish.
fn crowded() -> (Fixture, Projection) {
    let fixture = Fixture::memory();
    let mut dice = SeededRandom(7);
    let mut world = RandomGraph::of(300, 6_000, &mut dice);
    world.nodes.iter_mut().for_each(|n| n.n = Some(1));
    state(&fixture.ledger, &world);
    let graph = graph(&fixture.ledger);
    (fixture, graph)
}

#[test]
fn a_query_that_takes_too_long_is_stopped() {
    let (fixture, graph) = crowded();
    let queries = [
        "MATCH (a), (b), (c), (d), (e) RETURN count(*)",
        "MATCH (a)-[*]->(b) RETURN count(*)",
        "MATCH p = (a)-[*]-(b) WHERE length(p) > 50 RETURN p",
        "MATCH (a)-->(b)-->(c)-->(d)-->(e)-->(f) RETURN count(DISTINCT f)",
        "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b RETURN sum(a * b)",
        "RETURN reduce(s = 0, x IN range(1, 2000000) | s + reduce(t = 0, y IN range(1, 2000000) | t + y))",
        "RETURN size([x IN range(1, 2000000) WHERE any(y IN range(1, 2000000) WHERE y < 0)])",
        "MATCH (a) WHERE exists { MATCH (a)-[*10..12]->(b) WHERE b.n = 2 } RETURN a",
        "MATCH (a) RETURN [(a)-[*6..8]->(b) WHERE b.n = 2 | b]",
        "MATCH (a), (b) WITH a, b MATCH p = allShortestPaths((a)-[*]-(b)) RETURN count(p)",
        "UNWIND range(1, 2000000) AS a UNWIND range(1, 100) AS b WITH a ORDER BY -a LIMIT 3 RETURN a",
        "UNWIND range(1, 2000000) AS a WITH count { UNWIND range(1, 2000000) AS b RETURN b } AS c RETURN sum(c)",
    ];
    for query in queries {
        let start = Instant::now();
        let trouble = ask(query, graph.snapshot(), &fixture.ledger, limits(150)).expect_err(query);
        let QueryError::Other(error) = *trouble else { panic!("{query}: {trouble:?}") };
        assert_eq!((error.kind, error.code), (ErrorKind::Timeout, ErrorCode::QueryTimeout), "{query}");
        // A generous bound, only to detect a query that is not stopped.
        assert!(start.elapsed() < Duration::from_secs(20), "{query} went on for {:?}", start.elapsed());
    }
}

#[test]
fn memory_of_a_query_stays_within_its_limit() {
    let (fixture, graph) = crowded();
    for query in [
        "MATCH (a), (b), (c) RETURN collect([a.id, b.id, c.id])",
        "MATCH (a), (b), (c) RETURN DISTINCT a.id, b.id, c.id ORDER BY a.id",
        "MATCH (a), (b), (c) WITH a.id AS x, b.id AS y, c.id AS z ORDER BY x, y, z RETURN x",
        "UNWIND range(1, 2000000) AS a WITH a, count(*) AS c RETURN a, c",
        "UNWIND range(1, 2000000) AS a RETURN a UNION UNWIND range(1, 2000000) AS a RETURN a",
        "UNWIND range(1, 2000000) AS a RETURN count(DISTINCT a)",
        "WITH reduce(s = 'x', i IN range(1, 20) | s + s) AS t RETURN size([i IN range(1, 100000) | t + i])",
        "WITH range(1, 150000) AS a, range(1, 150000) AS b RETURN size(a)",
        "RETURN [range(1, 100000), range(1, 100000), range(1, 100000)] IS NULL",
    ] {
        let few = QueryLimits { memory: 4 << 20, rows: usize::MAX, ..limits(60_000) };
        let trouble = ask(query, graph.snapshot(), &fixture.ledger, few).expect_err(query);
        let QueryError::Other(error) = *trouble else { panic!("{query}: {trouble:?}") };
        assert_eq!((error.kind, error.code), (ErrorKind::TooLarge, ErrorCode::QueryMemory), "{query}");
    }
    for query in [
        "RETURN range(1, 1000000000000)",
        "RETURN reduce(s = 'a', x IN range(1, 60) | s + s)",
        "RETURN reduce(l = [1], x IN range(1, 60) | [l, l])",
        "RETURN reduce(l = [1], x IN range(1, 60) | l + l)",
        "RETURN reduce(m = {a: 1}, x IN range(1, 60) | {a: m, b: m})",
        "RETURN reduce(m = {a: 1}, x IN range(1, 60) | m {a: m, b: m})",
        "RETURN reduce(m = {}, x IN range(1, 100000) | m {a: m}) IS NULL",
        "WITH reduce(s = 'x', i IN range(1, 20) | s + s) AS t RETURN size(replace(t, 'x', t))",
        "WITH reduce(s = 'xy', i IN range(1, 22) | s + s) AS t RETURN size(split(t, 'x'))",
    ] {
        let trouble = ask(query, graph.snapshot(), &fixture.ledger, limits(60_000)).expect_err(query);
        let QueryError::Fault(fault) = *trouble else { panic!("{query}: {trouble:?}") };
        assert_eq!(fault.detail, "NumberOutOfRange", "{query}");
    }
    // Released memory does not count.
    for query in [
        "UNWIND range(1, 30000) AS i WITH count { UNWIND [1, 2, 3] AS x RETURN DISTINCT x } AS c RETURN sum(c)",
        "UNWIND range(1, 3000) AS i WITH size(range(1, 10000)) AS c RETURN sum(c)",
        "UNWIND range(1, 200000) AS i RETURN i ORDER BY i LIMIT 9000",
        "WITH range(1, 3000) AS l UNWIND l AS i RETURN i, size(l) AS s ORDER BY i LIMIT 5",
    ] {
        let few = QueryLimits { memory: 4 << 20, ..limits(60_000) };
        ask(query, graph.snapshot(), &fixture.ledger, few).unwrap_or_else(|t| panic!("{query}: {t:?}"));
    }
    // Rows beyond the limit are not computed.
    let first = QueryLimits { rows: 10, ..limits(60_000) };
    let outcome = ask("MATCH (a), (b), (c), (d), (e), (f) RETURN a", graph.snapshot(), &fixture.ledger, first).unwrap();
    assert_eq!((outcome.rows.len(), outcome.truncated), (10, true));
}

/// Each query, followed by the steps of its plan in order.
#[test]
fn plans_start_with_the_fewest_nodes() {
    let (fixture, graph) = crowded();
    let plan = |query: &str| {
        let outcome = ask(&format!("EXPLAIN {query}"), graph.snapshot(), &fixture.ledger, limits(60_000)).unwrap();
        let steps = outcome.plan.unwrap();
        steps.iter().map(|s| format!("{} {}", s.operator, s.details).trim_end().to_owned() + "\n").collect::<String>()
    };
    let check = |query: &str, expected: Expect| expected.assert_eq(&plan(query));
    check(
        "MATCH (a:A {key: 'k1'}) RETURN a",
        expect![[r#"
        KeySeek a.key = 'k1':A
        Filter a.key = 'k1'
    "#]],
    );
    check(
        "MATCH (a:A)-[:R]->(b {key: 'k3'}) RETURN a.id",
        expect![[r#"
        KeySeek b.key = 'k3'
        Filter b.key = 'k3'
        Expand (b)<-[:R]-(a:A)
        Projection a.id AS a.id
    "#]],
    );
    check(
        "MATCH (a:A)-->(b)-->(c) WHERE a.n > 1 AND c.n = b.n RETURN c",
        expect![[r#"
        LabelScan a:A
        Filter a.n > 1
        Expand (a)-[]->(b)
        Expand (b)-[]->(c)
        Filter c.n = b.n
    "#]],
    );
    check(
        "MATCH (a {key: 'k1'}), (b) WHERE b.key = a.s RETURN b",
        expect![[r#"
        KeySeek a.key = 'k1'
        Filter a.key = 'k1'
        KeySeek b.key = a.s
        Filter b.key = a.s
    "#]],
    );
    check(
        "MATCH (a)-->(b)-->(c)-->(a) RETURN count(*)",
        expect![[r#"
        AllNodesScan a
        Expand (a)-[]->(b)
        Expand (b)-[]->(c)
        ExpandInto (c)-[]->(a)
        Aggregation count(*)
        Projection _6 AS count(*)
    "#]],
    );
    check(
        "MATCH (a {key: 'k1'})-[:R*]->(b) RETURN count(DISTINCT b)",
        expect![[r#"
        KeySeek a.key = 'k1'
        Filter a.key = 'k1'
        Reach (a)-[:R*1..]->(b)
        Aggregation count(distinct b)
        Projection _3 AS count(DISTINCT b)
    "#]],
    );
    check(
        "MATCH (a {key: 'k1'})-[:R*]->(b) RETURN count(b)",
        expect![[r#"
        KeySeek a.key = 'k1'
        Filter a.key = 'k1'
        VarLengthExpand (a)-[:R*1..]->(b)
        Aggregation count(b)
        Projection _3 AS count(b)
    "#]],
    );
    check(
        "MATCH (a), (b) WHERE a.key = b.s + 'x' RETURN a",
        expect![[r#"
        AllNodesScan b
        KeySeek a.key = b.s + 'x'
        Filter a.key = b.s + 'x'
    "#]],
    );
    check(
        "MATCH (a:A) RETURN a.id AS id ORDER BY a.n LIMIT 3",
        expect![[r#"
        LabelScan a:A
        Top 3 by a.n
        Projection a.id AS id
        Limit 3
    "#]],
    );
    let ran = ask("PROFILE MATCH (a:A)-->(b) RETURN count(*) AS c", graph.snapshot(), &fixture.ledger, limits(60_000))
        .unwrap();
    let Value::Integer(count) = ran.rows[0][0] else { panic!("a count") };
    let steps = ran.plan.unwrap();
    assert_eq!(steps.iter().find(|s| s.operator == "Expand").unwrap().rows, Some(count as u64));
    assert_eq!(steps.last().unwrap().rows, Some(1));
}

#[test]
fn two_tenants_with_the_same_keys_are_separate() {
    for fixture in lukasa_testkit::fixtures() {
        let tenants = [fixture.project("one", "shop"), fixture.project("two", "shop")];
        for (i, ledger) in tenants.iter().enumerate() {
            let put =
                |key: &str| PutObject::new("Service", key).property("owner", i as i64).property(&format!("only{i}"), 1);
            let link = |a: &str, b: &str| {
                PutRelationship::new("USES", Reference::exact("Service", a), Reference::exact("Service", b))
            };
            let batch = Batch::on("main")
                .write(put("a"))
                .write(put("b"))
                .write(put("c"))
                .write(link("a", "b"))
                .write(link("b", "c"));
            ledger.commit(&batch).unwrap();
        }
        for (i, ledger) in tenants.iter().enumerate() {
            let graph = graph(ledger);
            let (own, other) = (i.to_string(), (1 - i).to_string());
            for query in [
                "MATCH (n) RETURN n.owner",
                "MATCH (n:Service {key: 'a'}) RETURN n.owner",
                "MATCH (a {key: 'a'})-[*0..5]-(b) RETURN b.owner",
                "MATCH p = shortestPath((a {key: 'a'})-[*]-(c {key: 'c'})) UNWIND nodes(p) AS n RETURN n.owner",
                "MATCH (a)-[r]->(b) RETURN startNode(r).owner + endNode(r).owner - a.owner",
                "MATCH (n) WHERE id(n) >= 0 RETURN n.owner",
                "UNWIND range(0, 50) AS i MATCH (n) WHERE id(n) = i RETURN n.owner",
                "MATCH (n) RETURN [(n)--(m) | m.owner][0]",
                "MATCH (n) WHERE exists { MATCH (n)--(m) WHERE m.owner = n.owner } RETURN n.owner",
                "CALL lukasa.pagerank() YIELD node RETURN node.owner",
                "CALL lukasa.ppr('a') YIELD node RETURN node.owner",
                "CALL lukasa.communities() YIELD node RETURN node.owner",
                "CALL lukasa.neighbors('a', 9) YIELD node RETURN node.owner",
                "MATCH (n) RETURN n.owner UNION ALL MATCH (n) RETURN n.owner",
            ] {
                let found = rows(query, graph.snapshot(), ledger);
                assert!(!found.is_empty(), "{query} on {}", fixture.name);
                assert!(found.iter().all(|row| row[0] == own), "{query} on {}: {found:?}", fixture.name);
            }
            let names = rows("CALL db.propertyKeys()", graph.snapshot(), ledger);
            assert!(names.contains(&vec![format!("'only{own}'")]) && !names.contains(&vec![format!("'only{other}'")]));
            for query in ["CALL db.schema() YIELD count RETURN count", "MATCH ()-[r]->() RETURN count(r)"] {
                assert_eq!(rows(query, graph.snapshot(), ledger), [["2"]], "{query}");
            }
        }
    }
}

#[test]
fn a_limit_in_one_part_of_a_union_does_not_end_the_others() {
    let fixture = Fixture::memory();
    fixture.ledger.commit(&Batch::on("main").write(PutObject::new("A", "x"))).unwrap();
    let graph = graph(&fixture.ledger);
    for (query, want) in [
        ("UNWIND [1, 2] AS k RETURN k LIMIT 1 UNION ALL UNWIND [3, 4] AS k RETURN k", "1 3 4"),
        ("UNWIND [1, 2] AS k WITH k LIMIT 1 RETURN k UNION UNWIND [1, 4] AS k RETURN k", "1 4"),
        ("UNWIND [2, 1] AS k RETURN k ORDER BY k LIMIT 1 UNION ALL MATCH (a) RETURN 5 AS k", "1 5"),
        ("UNWIND [1, 2, 3] AS x WITH x, exists { UNWIND [1, 2] AS y WITH y LIMIT 1 RETURN y } AS e RETURN x", "1 2 3"),
        ("UNWIND [1, 2] AS x RETURN count { UNWIND [1, 2, 3] AS y WITH y LIMIT 2 RETURN y } + x", "3 4"),
    ] {
        let found: Vec<String> = rows(query, graph.snapshot(), &fixture.ledger).concat();
        assert_eq!(found.join(" "), want, "{query}");
    }
}

#[test]
fn reachable_nodes_are_the_ends_of_all_paths() {
    for seed in 0..60 {
        let mut dice = SeededRandom(seed ^ 0x4ea);
        let fixture = Fixture::memory();
        let world = RandomGraph::of(5, 7, &mut dice);
        state(&fixture.ledger, &world);
        let graph = graph(&fixture.ledger);
        for length in ["*", "*0..", "*1..2", "*0..3", "*..1", "*0..0"] {
            for (left, right) in [("-", "->"), ("<-", "-"), ("-", "-")] {
                let pattern = format!("MATCH (a){left}[r:R|S{length}]{right}(b)");
                let nameless = pattern.replace("[r:", "[:");
                for (quick, slow) in [
                    ("RETURN DISTINCT a.id AS a, b.id AS b", "WITH a, b, r RETURN DISTINCT a.id AS a, b.id AS b"),
                    (
                        "RETURN a.id AS a, count(DISTINCT b) AS b",
                        "WITH a, b, r RETURN a.id AS a, count(DISTINCT b) AS b",
                    ),
                    (
                        "WHERE b.n > 0 RETURN a.id AS a, max(b.id) AS b",
                        "WITH a, b, r WHERE b.n > 0 RETURN a.id AS a, max(b.id) AS b",
                    ),
                ] {
                    let sorted = |query: String| {
                        let mut all = rows(&query, graph.snapshot(), &fixture.ledger);
                        all.sort();
                        all
                    };
                    let (quick, slow) = (format!("{nameless} {quick}"), format!("{pattern} {slow}"));
                    assert_eq!(sorted(quick.clone()), sorted(slow), "seed {seed}: {quick}\n{world:?}");
                }
            }
        }
    }
}

#[test]
fn edge_cases() {
    let fixture = Fixture::memory();
    let link = PutRelationship::new("R", Reference::exact("A", "x"), Reference::exact("A", "y"));
    let put = |key: &str| PutObject::new("A", key).property("name", key);
    fixture.ledger.commit(&Batch::on("main").write(put("x")).write(put("y")).write(link)).unwrap();
    let graph = graph(&fixture.ledger);
    for (query, want) in [
        ("MATCH (x {key: 'x'})-->(y) RETURN x.name, [x IN collect(y) | x.name][0]", "'x' 'y'"),
        ("MATCH (x {key: 'x'})-->(y) RETURN x.name, all(x IN collect(y.name) WHERE x = 'y') + ''", "'x' 'true'"),
        ("MATCH (x) RETURN x.name AS n, reduce(x = '', y IN collect(x.name) | x + y) ORDER BY n LIMIT 1", "'x' 'x'"),
        ("MATCH (n {key: 'x'}) WITH id(n) + 0.0 AS i MATCH (m) WHERE id(m) = i RETURN m.key", "'x'"),
        ("MATCH (n {key: 'x'}) WITH elementId(n) AS i MATCH (m) WHERE elementId(m) = i RETURN m.key", "'x'"),
        ("MATCH (n {key: 'x'}) RETURN n['na' + 'me'], n['no' + 'pe']", "'x' null"),
        ("UNWIND [1, 2] AS x RETURN x ORDER BY x SKIP 9223372036854775807 LIMIT 1", ""),
        (
            "RETURN toInteger('9223372036854775808'), toInteger(9.25e18), toInteger('-9223372036854775808')",
            "null null -9223372036854775808",
        ),
        (
            "RETURN toString(round(0.49999999999999994)), toString(round(2.5)), toString(round(-2.5))",
            "'0.0' '3.0' '-2.0'",
        ),
        ("RETURN 'abc' =~ 'a.*', 'abc' =~ 'b', null =~ 'b'", "Bool(true) Bool(false) null"),
        ("MATCH (n) WHERE n.name IN ['x', 'x', null] RETURN count(n)", "1"),
    ] {
        let found: Vec<String> = rows(query, graph.snapshot(), &fixture.ledger).concat();
        assert_eq!(found.join(" "), want, "{query}");
    }
}

#[test]
fn procedures_return_their_columns() {
    let fixture = Fixture::memory();
    let put = |key: &str| PutObject::new("Service", key);
    let link =
        |a: &str, b: &str| PutRelationship::new("USES", Reference::exact("Service", a), Reference::exact("Service", b));
    let mut batch = Batch::on("main").write(link("a", "hub")).write(link("b", "hub")).write(link("hub", "c"));
    for key in ["a", "b", "c", "hub", "far"] {
        let mut put = put(key);
        put.labels.insert("core".into());
        batch.writes.insert(0, put.into());
    }
    fixture.ledger.commit(&batch).unwrap();
    let graph = graph(&fixture.ledger);
    let asked = |query: &str| rows(query, graph.snapshot(), &fixture.ledger);
    assert_eq!(asked("CALL db.labels()"), [["'Service'"], ["'core'"]]);
    assert_eq!(asked("CALL db.relationshipTypes()"), [["'USES'"]]);
    assert_eq!(
        asked("CALL db.schema() YIELD from, relationshipType, to, count RETURN *"),
        [["'Service'", "'USES'", "'Service'", "3"]]
    );
    assert_eq!(asked("CALL lukasa.pagerank(1) YIELD node RETURN node.key"), [["'c'"]]);
    let near = asked("MATCH (a {key: 'a'}) CALL lukasa.ppr(a) YIELD node, score WHERE score > 0 RETURN node.key");
    assert!(near[..2].contains(&vec!["'a'".to_string()]), "{near:?}");
    assert!(!near.contains(&vec!["'far'".to_string()]));
    assert_eq!(
        asked("CALL lukasa.neighbors('a', 2) YIELD node, distance RETURN node.key AS k, distance ORDER BY k"),
        [["'b'", "2"], ["'c'", "2"], ["'hub'", "1"]]
    );
    assert_eq!(asked("CALL lukasa.communities() YIELD node, community RETURN count(DISTINCT community)"), [["2"]]);
    for (query, detail) in [
        ("CALL lukasa.nothing('x')", "ProcedureNotFound"),
        ("CALL lukasa.search('x')", "ProcedureNotFound"),
        ("CALL lukasa.ppr()", "InvalidNumberOfArguments"),
        ("CALL lukasa.ppr", "MissingParameter"),
        ("MATCH (n) CALL lukasa.ppr YIELD node RETURN node", "InvalidArgumentPassingMode"),
        ("CALL lukasa.ppr('missing')", "InvalidArgumentValue"),
        ("CALL db.labels() YIELD nothing RETURN nothing", "UndefinedVariable"),
    ] {
        let trouble = ask(query, graph.snapshot(), &fixture.ledger, limits(60_000)).expect_err(query);
        assert!(matches!(&*trouble, QueryError::Fault(f) if f.detail == detail), "{query}: {trouble:?}");
    }
}

#[test]
fn the_caller_provides_the_search() {
    let fixture = Fixture::memory();
    let put = |key: &str| PutObject::new("Service", key);
    fixture.ledger.commit(&Batch::on("main").write(put("a")).write(put("b"))).unwrap();
    let graph = graph(&fixture.ledger);
    let found: Vec<(Node, f64)> = graph.snapshot().nodes().into_iter().zip([0.5, 0.25]).collect();
    let search: SearchNodes = Arc::new(move |text, most| match text {
        "slow" => {
            std::thread::sleep(Duration::from_secs(5));
            Ok(vec![])
        }
        "broken" => Err(Error::internal("no texts")),
        _ => Ok(found.iter().copied().take(most).collect()),
    });
    let place = QueryContext { snapshot: graph.snapshot(), ledger: &fixture.ledger, now: 0, silent_type: None };
    let asked = |query: &str, ms: u64| {
        let prepared = prepare(query, &QueryParameters::new(), place).unwrap();
        assert!(prepared.searches(), "{query}");
        prepared.searching(Arc::clone(&search)).run(limits(ms))
    };
    let outcome = asked("CALL lukasa.search('x') YIELD node, score RETURN node.key, score * 4", 60_000).unwrap();
    let rows: Vec<String> = outcome.rows.concat().iter().map(shown).collect();
    assert_eq!(rows, ["'a'", "Float(2.0)", "'b'", "Float(1.0)"]);
    assert_eq!(
        asked("UNWIND ['x', 'y'] AS t CALL lukasa.search(t, 1) YIELD node RETURN node", 60_000).unwrap().rows.len(),
        2
    );
    let code = |query: &str| match *asked(query, 50).unwrap_err() {
        QueryError::Other(error) => error.code,
        QueryError::Fault(fault) => panic!("{fault:?}"),
    };
    assert_eq!(code("CALL lukasa.search('slow')"), ErrorCode::QueryTimeout);
    assert_eq!(code("CALL lukasa.search('broken')"), Error::internal("").code);
    assert!(!prepare("CALL db.labels()", &QueryParameters::new(), place).unwrap().searches());
}

#[test]
fn a_lasting_relationship_shows_ended_objects() {
    let fixture = Fixture::memory();
    let ledger = &fixture.ledger;
    let mut batch = Batch::on("main").write(PutObject::new("Episode", "e").property("n", 1));
    batch = batch.write(PutObject::new("Function", "f").property("n", 2)).write(PutObject::new("Function", "g"));
    let ends = (Reference::exact("Episode", "e"), Reference::exact("Function", "f"));
    batch = batch.write(PutRelationship::new("INVOLVES", ends.0, ends.1));
    ledger.commit(&batch).unwrap();
    fixture.clock.advance(1);
    let end = lukasa_model::batch::End::new(Reference::exact("Function", "f"));
    ledger.commit(&Batch::on("main").write(end)).unwrap();
    let graph = graph(ledger);
    let asked = |query: &str| rows(query, graph.snapshot(), ledger);
    assert_eq!(asked("MATCH (f:Function) RETURN f.key"), [["'g'"]], "alone, only what is there counts");
    for query in ["MATCH (e:Episode)-->(f) RETURN f.key, f.n", "MATCH (f:Function)<--(e) RETURN f.key, f.n"] {
        assert_eq!(asked(query), [["'f'", "null"]], "from either end: {query}");
    }
    assert_eq!(asked("MATCH (e:Episode)-->(f) WHERE ended(f) RETURN count(*)"), [["1"]]);
}
