//! The `tck` suite to be: so far it reads the scenarios and checks that their queries can be taken apart.

mod feature;

use lukasa_graph::cypher::{Class, parse};
use std::path::Path;

fn queries(folder: &Path, all: &mut Vec<(String, String, bool)>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").filter_map(|e| Some(e.ok()?.path())).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            queries(&path, all);
        } else if path.extension().is_some_and(|e| e == "feature") {
            let text = std::fs::read_to_string(&path).expect("a text file");
            for scenario in feature::scenarios(&text) {
                let fails = scenario.steps.iter().any(|s| s.text.contains("should be raised at compile time"));
                for step in scenario.steps.iter().filter(|s| s.text.starts_with("executing")) {
                    let name = format!("{}: {}", path.file_stem().unwrap_or_default().to_string_lossy(), scenario.name);
                    all.push((name, step.doc.clone().unwrap_or_default(), fails));
                }
            }
        }
    }
}

/// Run with the TCK's folder in `LUKASA_TCK`.
#[test]
#[ignore = "needs the TCK"]
fn every_query_that_reads_can_be_taken_apart() {
    let folder = std::env::var("LUKASA_TCK").expect("the TCK's folder");
    let mut all = Vec::new();
    queries(Path::new(&folder), &mut all);
    let (mut read, mut wrote) = (0, 0);
    let mut failed = Vec::new();
    for (name, query, fails) in &all {
        match parse(query) {
            Ok(_) => read += 1,
            Err(fault) if fault.class == Class::ReadOnly => wrote += 1,
            Err(_) if *fails => {}
            Err(fault) => failed.push(format!("{name}: {} at {:?}\n{query}", fault.message, fault.place(query))),
        }
    }
    println!("{} queries: {read} read, {wrote} write, {} cannot be taken apart", all.len(), failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Enough of the language to ask functions of dates and times: literals, maps, lists, calls, parts, and rows of values.
mod small {
    use lukasa_graph::cypher::ast::{Clause, Expr, Kind, Query};
    use lukasa_graph::cypher::functions::{Surroundings, component, find};
    use lukasa_graph::cypher::value::Value;
    use std::collections::HashMap;
    use std::sync::Arc;

    type Row = HashMap<String, Value>;

    fn value(expr: &Expr, row: &Row) -> Option<Value> {
        let all = |list: &[Expr]| list.iter().map(|e| value(e, row)).collect::<Option<Vec<_>>>();
        Some(match &expr.kind {
            Kind::Null => Value::Null,
            Kind::Bool(b) => Value::Bool(*b),
            Kind::Integer(n) => Value::Integer(*n),
            Kind::Float(f) => Value::Float(*f),
            Kind::Text(t) => Value::text(t),
            Kind::Negate(e) => match value(e, row)? {
                Value::Integer(n) => Value::Integer(-n),
                Value::Float(f) => Value::Float(-f),
                _ => return None,
            },
            Kind::Variable(name) => row.get(name)?.clone(),
            Kind::List(items) => Value::list(all(items)?),
            Kind::Map(entries) => {
                let entries = entries.iter().map(|(k, e)| Some((k.text.clone(), value(e, row)?)));
                Value::Map(Arc::new(entries.collect::<Option<_>>()?))
            }
            Kind::Property(subject, name) => component(&value(subject, row)?, &name.text)?,
            Kind::Call { function, arguments, .. } => {
                let around = Surroundings { now: 0, longest_list: 1_000 };
                (find(&function.text)?.run)(&all(arguments)?, &around).ok()?
            }
            _ => return None,
        })
    }

    /// Rows of the query; none when it asks for more than this knows, or fails.
    pub fn run(query: &Query) -> Option<Vec<Vec<Value>>> {
        let mut rows = vec![Row::new()];
        for clause in &query.first {
            match clause {
                Clause::Unwind { list, name } => {
                    let mut next = Vec::new();
                    for row in &rows {
                        let Value::List(items) = value(list, row)? else { return None };
                        next.extend(items.iter().map(|item| {
                            let mut row = row.clone();
                            row.insert(name.text.clone(), item.clone());
                            row
                        }));
                    }
                    rows = next;
                }
                Clause::With { projection, filter: None } if projection.order.is_empty() => {
                    for row in &mut rows {
                        for item in &projection.items {
                            let found = value(&item.expr, row)?;
                            row.insert(item.alias.as_ref().map_or(item.text.clone(), |a| a.text.clone()), found);
                        }
                    }
                }
                Clause::Return(projection) if projection.order.is_empty() => {
                    let row =
                        |row: &Row| projection.items.iter().map(|i| value(&i.expr, row)).collect::<Option<Vec<_>>>();
                    return rows.iter().map(row).collect();
                }
                _ => return None,
            }
        }
        None
    }
}

/// Run with the TCK's folder in `LUKASA_TCK`: whatever this knows how to ask must say what the TCK expects.
#[test]
#[ignore = "needs the TCK"]
fn functions_of_dates_and_times_say_what_is_expected() {
    use lukasa_graph::cypher::functions::find;
    use lukasa_graph::cypher::value::Value;
    let folder = std::env::var("LUKASA_TCK").expect("the TCK's folder");
    let around = lukasa_graph::cypher::functions::Surroundings { now: 0, longest_list: 1_000 };
    let shown = |v: &Value| match v {
        Value::Integer(_) | Value::Null | Value::Bool(_) | Value::Float(_) => find("toString")
            .and_then(|f| (f.run)(std::slice::from_ref(v), &around).ok())
            .map_or(String::new(), |t| if let Value::Text(t) = t { t.to_string() } else { "null".into() }),
        other => match find("toString").and_then(|f| (f.run)(std::slice::from_ref(other), &around).ok()) {
            Some(Value::Text(t)) => format!("'{t}'"),
            _ => format!("{other:?}"),
        },
    };
    let (mut right, mut beyond, mut wrong) = (0, 0, Vec::new());
    let temporal = Path::new(&folder).join("expressions/temporal");
    let mut files: Vec<_> =
        std::fs::read_dir(temporal).expect("a folder").filter_map(|e| Some(e.ok()?.path())).collect();
    files.sort();
    for path in files {
        for scenario in feature::scenarios(&std::fs::read_to_string(&path).expect("a text file")) {
            let query = scenario.steps.iter().find(|s| s.text == "executing query:").and_then(|s| s.doc.clone());
            let expected = scenario.steps.iter().find(|s| s.text.starts_with("the result should be"));
            let (Some(query), Some(expected)) = (query, expected) else { continue };
            let Some(rows) = parse(&query).ok().and_then(|q| small::run(&q)) else {
                beyond += 1;
                continue;
            };
            let mut got: Vec<Vec<String>> = rows.iter().map(|r| r.iter().map(shown).collect()).collect();
            let mut want = expected.table[1..].to_vec();
            got.sort();
            want.sort();
            if got == want {
                right += 1;
            } else {
                let file = path.file_stem().unwrap_or_default().to_string_lossy();
                wrong.push(format!("{file} {}\n{query}\n  got  {got:?}\n  want {want:?}", scenario.name));
            }
        }
    }
    println!("{right} right, {} wrong, {beyond} beyond this", wrong.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
