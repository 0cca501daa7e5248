//! Tests of the parser, with valid queries and with faults.

use super::super::ast::{Arrow, Clause, ComparisonOperator, CypherExprKind, Length, Operator, QueryMode, Yields};
use super::super::fault::FaultClass;
use super::*;
use lukasa_model::ErrorCode;
use proptest::prelude::*;

fn returned(expression: &str) -> CypherExprKind {
    let query = parse(&format!("RETURN {expression}")).unwrap_or_else(|e| panic!("{expression}: {e:?}"));
    match query.first.into_iter().next() {
        Some(Clause::Return(mut projection)) => projection.items.remove(0).expr.kind,
        other => panic!("{other:?}"),
    }
}

/// An expression with all parentheses that precedence implies.
fn shape(expr: &CypherExpr) -> String {
    match &expr.kind {
        CypherExprKind::Binary(operator, a, b) => format!("({} {operator:?} {})", shape(a), shape(b)),
        CypherExprKind::Compare(first, rest) => {
            let rest: String = rest.iter().map(|(c, e)| format!(" {c:?} {}", shape(e))).collect();
            format!("({}{rest})", shape(first))
        }
        CypherExprKind::Not(a) => format!("(Not {})", shape(a)),
        CypherExprKind::Negate(a) => format!("(Negate {})", shape(a)),
        CypherExprKind::IsNull(a) => format!("({} IsNull)", shape(a)),
        CypherExprKind::Integer(n) => n.to_string(),
        CypherExprKind::Variable(name) => name.clone(),
        CypherExprKind::Property(a, name) => format!("{}.{}", shape(a), name.text),
        other => format!("{other:?}"),
    }
}

#[test]
fn operators_follow_precedence() {
    for (text, want) in [
        ("a OR b XOR c AND NOT d", "(a Or (b Xor (c And (Not d))))"),
        ("1 + 2 * 3 ^ 4 - 5", "((1 Add (2 Multiply (3 Power 4))) Subtract 5)"),
        ("2 ^ 3 ^ 4", "((2 Power 3) Power 4)"),
        ("-a ^ 2", "((Negate a) Power 2)"),
        ("a = b + 1 IN c", "(a Equal ((b Add 1) In c))"),
        ("1 < a <= 3", "(1 Less a LessOrEqual 3)"),
        ("NOT a = b", "(Not (a Equal b))"),
        ("a.b.c IS NULL AND b", "((a.b.c IsNull) And b)"),
        ("a <-1", "(a Less -1)"),
        ("(a) - (b)", "(a Subtract b)"),
        ("a STARTS WITH b + c", "(a StartsWith (b Add c))"),
    ] {
        let kind = returned(text);
        assert_eq!(shape(&CypherExpr { kind, at: 0 }), want, "{text}");
    }
    assert_eq!(returned("-9223372036854775808"), CypherExprKind::Integer(i64::MIN));
}

#[test]
fn patterns_with_everything() {
    let query = parse(
        "PROFILE MATCH p = (a:A:B {x: 1})-[r:R|:S*1..3 {y: $p}]->(b)<--(c), shortestPath((a)-[*]-(c)) \
         OPTIONAL MATCH (b)-[*..2]-(), (b)-[*2]-() WHERE a.x > 1 RETURN DISTINCT *, a.x AS x ORDER BY x DESC, b SKIP 1 LIMIT 2",
    )
    .unwrap();
    assert_eq!(query.mode, QueryMode::Profile);
    let Clause::Match { patterns, optional: false, .. } = &query.first[0] else { panic!() };
    let (edge, _) = &patterns[0].pattern.steps[0];
    assert_eq!((edge.types.len(), edge.arrow), (2, Arrow::Right));
    assert_eq!(edge.length, Some(Length { least: Some(1), most: Some(3) }));
    assert_eq!(patterns[0].pattern.steps[1].0.arrow, Arrow::Left);
    assert_eq!(patterns[1].pattern.steps[0].0.length, Some(Length { least: None, most: None }));
    let Clause::Match { patterns, optional: true, filter: Some(_), .. } = &query.first[1] else { panic!() };
    assert_eq!(patterns[0].pattern.steps[0].0.length, Some(Length { least: None, most: Some(2) }));
    assert_eq!(patterns[1].pattern.steps[0].0.length, Some(Length { least: Some(2), most: Some(2) }));
    let Clause::Return(projection) = &query.first[2] else { panic!() };
    assert!(
        projection.star && projection.distinct && projection.order[0].descending && !projection.order[1].descending
    );
    assert!(projection.skip.is_some() && projection.limit.is_some());
}

#[test]
fn expressions_of_every_kind() {
    for text in [
        "[x IN range(1, 3) WHERE x > 1 | x * 2]",
        "[x IN list]",
        "[(a)-[:R]->(b) WHERE b.x = 1 | b.name]",
        "[p = (a)-->(b) | p]",
        "all(x IN xs WHERE x > 0) AND single(y IN ys WHERE y)",
        "reduce(s = 0, x IN xs | s + x)",
        "CASE a WHEN 1 THEN 'x' ELSE 'y' END",
        "CASE WHEN a THEN b END",
        "a {.x, .*, y: 1 + 1, z}",
        "EXISTS { (a)-->(b) WHERE b.x = 1 }",
        "EXISTS { MATCH (a)-->(b) RETURN b UNION MATCH (c) RETURN c }",
        "COUNT { (a)--() }",
        "exists(a.b)",
        "count(*) + count(DISTINCT a)",
        "duration.between(a, b).days",
        "a[1], a[1..2], a[..2], a[1..], a['x'].y",
        "n:A:B",
        "(a)-[:R*]->()",
        "size((a)--())",
        "shortestPath((a)-[*..5]->(b))",
        "{a: 1, `b c`: [], d: {}}",
        "$p.x + $`a b`",
        "'a' =~ 'b' OR a CONTAINS b",
        "+1 - -1",
        "not(true)",
    ] {
        returned(text);
    }
    let CypherExprKind::Binary(Operator::And, left, _) = returned("all(x IN xs WHERE x > 0) AND true") else {
        panic!()
    };
    assert!(matches!(left.kind, CypherExprKind::Quantifier { .. }));
    assert!(matches!(returned("a = 1"), CypherExprKind::Compare(_, rest) if rest[0].0 == ComparisonOperator::Equal));
}

#[test]
fn calls_and_columns() {
    let query = parse("CALL db.labels() YIELD label AS l WHERE l <> 'x' RETURN l AS `the label`,  1 +  1").unwrap();
    let Clause::Call(call) = &query.first[0] else { panic!() };
    assert_eq!((call.procedure.text.as_str(), call.arguments.as_ref().map(Vec::len)), ("db.labels", Some(0)));
    assert!(matches!(&call.yields, Yields::These(columns) if columns[0].1.text == "l"));
    let Clause::Return(projection) = &query.first[1] else { panic!() };
    assert_eq!(projection.items[0].alias.as_ref().unwrap().text, "the label");
    assert_eq!(projection.items[1].text, "1 +  1", "a column is named as it was written");
}

#[test]
fn faults_are_reported_with_class_and_detail() {
    for (query, class, detail) in [
        ("", FaultClass::Syntax, "UnexpectedSyntax"),
        ("CREATE (a)", FaultClass::ReadOnly, "ReadOnly"),
        ("MATCH (a) SET a.x = 1", FaultClass::ReadOnly, "ReadOnly"),
        ("MATCH (a) DETACH DELETE a", FaultClass::ReadOnly, "ReadOnly"),
        ("MATCH (a RETURN a", FaultClass::Syntax, "UnexpectedSyntax"),
        ("RETURN 1 UNION RETURN 2 UNION ALL RETURN 3", FaultClass::Syntax, "InvalidClauseComposition"),
        ("RETURN 1 2", FaultClass::Syntax, "UnexpectedSyntax"),
        ("RETURN [1, 2", FaultClass::Syntax, "UnexpectedSyntax"),
        ("RETURN 99999999999999999999", FaultClass::Syntax, "IntegerOverflow"),
        ("MATCH (a)-[]-b RETURN 1", FaultClass::Syntax, "UnexpectedSyntax"),
    ] {
        let fault = parse(query).unwrap_err();
        assert_eq!((fault.class, fault.detail), (class, detail), "{query}");
    }
    let deep = format!("RETURN {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(parse(&deep).unwrap_err().detail, "UnexpectedSyntax");
    let openings =
        ["[", "{a:", "-", "NOT ", "(a)-[{x:", "[(a)-[{x:", "CASE WHEN ", "EXISTS { MATCH (a) WHERE ", "((", "f("];
    for nested in openings {
        for times in [30, 20_000] {
            assert!(parse(&format!("RETURN {}", nested.repeat(times))).is_err());
            // Also if every level can be parsed, but only as a list instead of a pattern.
            assert!(parse(&format!("RETURN {}1{}", nested.repeat(times), "}]-(b)".repeat(times / 2))).is_err());
        }
    }
    let error = parse("RETURN 1\nMERGE (a)").unwrap_err().into_error("RETURN 1\nMERGE (a)");
    assert_eq!(
        (error.code, &error.details["line"], &error.details["column"]),
        (ErrorCode::ReadOnly, &2.into(), &1.into())
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_text_makes_it_panic(words in prop::collection::vec(prop_oneof![
        Just("MATCH".to_string()), Just("RETURN".into()), Just("(a)".into()), Just("-[r:R*1..2]->".into()), Just("WHERE".into()),
        Just("CASE".into()), Just("WHEN".into()), Just("[".into()), Just("]".into()), Just("{".into()), Just("}".into()),
        Just("(".into()), Just(")".into()), Just("|".into()), Just("IN".into()), Just("..".into()), Just("'".into()),
        Just("EXISTS {".into()), Just("reduce(".into()), Just("x = 1".into()), Just(",".into()), Just("WITH *".into()),
        Just("UNION".into()), Just("NOT".into()), Just("-".into()), Just("all(x IN".into()), ".{0,4}", "[a-z0-9.:$`]{0,5}",
    ], 0..24)) {
        let text = words.join(" ");
        if let Err(fault) = parse(&text) {
            prop_assert!(fault.at <= text.len());
            fault.into_error(&text);
        }
    }
}
