//! Evaluates a query by trying every node and every edge for every part of its patterns.

use super::{Arrow, Column, RandomEdgePattern, RandomGraph, RandomNodePattern, RandomPath, RandomQuery, Term, Test};
use std::cmp::Ordering;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
enum BoundValue {
    Node(usize),
    Edge(usize),
    /// The edges of a path of variable length.
    Edges(Vec<usize>),
    Nothing,
}

type Row = BTreeMap<(bool, usize), BoundValue>;

#[derive(Clone, Debug, PartialEq)]
enum NaiveValue {
    Null,
    Integer(i64),
    Text(&'static str),
}

const NODE: bool = true;
const EDGE: bool = false;

/// Returns the rows of the answer as texts, in no particular order unless the query has one.
pub fn answer(world: &RandomGraph, question: &RandomQuery) -> Vec<Vec<String>> {
    let mut rows: Vec<Row> = vec![Row::new()];
    for m in &question.matches {
        let mut next = Vec::new();
        for row in &rows {
            let mut found = vec![(row.clone(), vec![])];
            for chain in &m.chains {
                found = found.iter().flat_map(|(row, used)| chains(world, chain, row, used)).collect();
            }
            let holds = |row: &Row| m.filter.as_ref().is_none_or(|t| test(world, t, row) == Some(true));
            let mut found: Vec<Row> = found.into_iter().map(|(row, _)| row).filter(holds).collect();
            if found.is_empty() && m.optional {
                let mut empty = row.clone();
                for chain in &m.chains {
                    for name in names(chain) {
                        empty.entry(name).or_insert(BoundValue::Nothing);
                    }
                }
                found.push(empty);
            }
            next.extend(found);
        }
        rows = next;
    }
    let mut answer = columns(world, question, &rows);
    if question.distinct {
        let mut seen: Vec<Vec<NaiveValue>> = Vec::new();
        answer.retain(|row| {
            let new = !seen.contains(row);
            if new {
                seen.push(row.clone());
            }
            new
        });
    }
    if let Some((skip, limit)) = question.ordered {
        answer.sort_by(|a, b| a.iter().zip(b).map(|(a, b)| order(a, b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal));
        answer = answer.into_iter().skip(skip as usize).take(limit as usize).collect();
    }
    let shown = |w: &NaiveValue| match w {
        NaiveValue::Null => "null".to_string(),
        NaiveValue::Integer(n) => n.to_string(),
        NaiveValue::Text(t) => format!("'{t}'"),
    };
    answer.iter().map(|row| row.iter().map(shown).collect()).collect()
}

fn names(chain: &RandomPath) -> Vec<(bool, usize)> {
    let steps = chain.steps.iter().flat_map(|(e, n)| [(EDGE, e.var), (NODE, n.var)]);
    [(NODE, chain.start.var)].into_iter().chain(steps).collect()
}

/// Returns every match of a chain, each with the edges used so far.
fn chains(world: &RandomGraph, chain: &RandomPath, row: &Row, used: &[usize]) -> Vec<(Row, Vec<usize>)> {
    let mut found = Vec::new();
    for node in 0..world.nodes.len() {
        if let Some(row) = bound(world, &chain.start, node, row) {
            steps(world, &chain.steps, node, &row, used, &mut found);
        }
    }
    found
}

/// Returns the row with the node bound to a node pattern, or `None` if it does not match.
fn bound(world: &RandomGraph, asked: &RandomNodePattern, node: usize, row: &Row) -> Option<Row> {
    let facts = &world.nodes[node];
    if asked.label.is_some_and(|l| facts.label != l) || asked.n.is_some_and(|n| facts.n != Some(n)) {
        return None;
    }
    match row.get(&(NODE, asked.var)) {
        Some(held) if *held != BoundValue::Node(node) => None,
        _ => {
            let mut row = row.clone();
            row.insert((NODE, asked.var), BoundValue::Node(node));
            Some(row)
        }
    }
}

fn ways(world: &RandomGraph, asked: &RandomEdgePattern, from: usize, edge: usize) -> Vec<usize> {
    let e = &world.edges[edge];
    if asked.kind.is_some_and(|k| e.kind != k) {
        return vec![];
    }
    let mut ends = Vec::new();
    if asked.arrow != Arrow::Left && e.src == from {
        ends.push(e.dst);
    }
    if asked.arrow != Arrow::Right && e.dst == from && !(asked.arrow == Arrow::Either && e.src == e.dst) {
        ends.push(e.src);
    }
    ends
}

fn steps(
    world: &RandomGraph,
    rest: &[(RandomEdgePattern, RandomNodePattern)],
    from: usize,
    row: &Row,
    used: &[usize],
    found: &mut Vec<(Row, Vec<usize>)>,
) {
    let Some(((edge, node), rest)) = rest.split_first() else {
        found.push((row.clone(), used.to_vec()));
        return;
    };
    let mut trails: Vec<(usize, Vec<usize>)> = Vec::new();
    let (least, most) = edge.length.unwrap_or((1, 1));
    trail(world, edge, from, most, used, &mut vec![], &mut trails);
    for (end, trail) in trails.into_iter().filter(|(_, t)| t.len() >= least) {
        let Some(mut row) = bound(world, node, end, row) else { continue };
        let held = if edge.length.is_some() { BoundValue::Edges(trail.clone()) } else { BoundValue::Edge(trail[0]) };
        row.insert((EDGE, edge.var), held);
        let used: Vec<usize> = used.iter().copied().chain(trail).collect();
        steps(world, rest, end, &row, &used, found);
    }
}

/// Collects every path of distinct edges up to a length, with its end node.
fn trail(
    world: &RandomGraph,
    asked: &RandomEdgePattern,
    at: usize,
    most: usize,
    used: &[usize],
    so_far: &mut Vec<usize>,
    found: &mut Vec<(usize, Vec<usize>)>,
) {
    found.push((at, so_far.clone()));
    if so_far.len() == most {
        return;
    }
    for edge in 0..world.edges.len() {
        if used.contains(&edge) || so_far.contains(&edge) {
            continue;
        }
        for end in ways(world, asked, at, edge) {
            so_far.push(edge);
            trail(world, asked, end, most, used, so_far, found);
            so_far.pop();
        }
    }
}

fn worth(world: &RandomGraph, term: &Term, row: &Row) -> NaiveValue {
    let integer = |n: Option<i64>| n.map_or(NaiveValue::Null, NaiveValue::Integer);
    let node = |var: &usize| match row.get(&(NODE, *var)) {
        Some(BoundValue::Node(node)) => Some(*node),
        _ => None,
    };
    match term {
        Term::NodeN(v) => integer(node(v).and_then(|n| world.nodes[n].n)),
        Term::NodeS(v) => node(v).and_then(|n| world.nodes[n].s).map_or(NaiveValue::Null, NaiveValue::Text),
        Term::NodeId(v) => integer(node(v).map(|n| n as i64)),
        Term::EdgeW(v) => match row.get(&(EDGE, *v)) {
            Some(BoundValue::Edge(e)) => integer(world.edges[*e].w),
            _ => NaiveValue::Null,
        },
        Term::Integer(n) => NaiveValue::Integer(*n),
        Term::Text(t) => NaiveValue::Text(t),
        Term::Null => NaiveValue::Null,
        Term::Sum(a, b) => match (worth(world, a, row), worth(world, b, row)) {
            (NaiveValue::Integer(a), NaiveValue::Integer(b)) => NaiveValue::Integer(a + b),
            _ => NaiveValue::Null,
        },
    }
}

fn test(world: &RandomGraph, asked: &Test, row: &Row) -> Option<bool> {
    match asked {
        Test::And(a, b) => match (test(world, a, row), test(world, b, row)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        },
        Test::Or(a, b) => match (test(world, a, row), test(world, b, row)) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        },
        Test::Xor(a, b) => Some(test(world, a, row)? != test(world, b, row)?),
        Test::Not(a) => test(world, a, row).map(|t| !t),
        Test::Compare(a, sign, b) => {
            let (a, b) = (worth(world, a, row), worth(world, b, row));
            if a == NaiveValue::Null || b == NaiveValue::Null {
                return None;
            }
            let same_kind = matches!(
                (&a, &b),
                (NaiveValue::Integer(_), NaiveValue::Integer(_)) | (NaiveValue::Text(_), NaiveValue::Text(_))
            );
            match *sign {
                "=" => Some(a == b),
                "<>" => Some(a != b),
                _ if !same_kind => None,
                "<" => Some(order(&a, &b).is_lt()),
                "<=" => Some(order(&a, &b).is_le()),
                ">" => Some(order(&a, &b).is_gt()),
                _ => Some(order(&a, &b).is_ge()),
            }
        }
        Test::IsNull(t) => Some(worth(world, t, row) == NaiveValue::Null),
        Test::StartsWith(t, with) => match worth(world, t, row) {
            NaiveValue::Text(text) => Some(text.starts_with(with)),
            _ => None,
        },
        Test::In(t, list) => match worth(world, t, row) {
            _ if list.is_empty() => Some(false),
            NaiveValue::Null => None,
            NaiveValue::Integer(n) => Some(list.contains(&n)),
            NaiveValue::Text(_) => Some(false),
        },
        Test::Label(v, label) => match row.get(&(NODE, *v)) {
            Some(BoundValue::Node(n)) => Some(world.nodes[*n].label == *label),
            _ => None,
        },
        // No path starts at a missing node.
        Test::Exists(chain) => match row.get(&(NODE, chain.start.var)) {
            Some(BoundValue::Node(_)) => {
                let outer: Row = row
                    .iter()
                    .filter(|(_, held)| **held != BoundValue::Nothing)
                    .map(|(k, v)| (*k, v.clone()))
                    .collect();
                let lost = chain.steps.iter().any(|(_, n)| row.get(&(NODE, n.var)) == Some(&BoundValue::Nothing));
                Some(!lost && !chains(world, chain, &outer, &[]).is_empty())
            }
            _ => Some(false),
        },
    }
}

/// Sorts texts before numbers, and null last.
fn order(a: &NaiveValue, b: &NaiveValue) -> Ordering {
    let rank = |w: &NaiveValue| match w {
        NaiveValue::Text(_) => 0,
        NaiveValue::Integer(_) => 1,
        NaiveValue::Null => 2,
    };
    match (a, b) {
        (NaiveValue::Integer(a), NaiveValue::Integer(b)) => a.cmp(b),
        (NaiveValue::Text(a), NaiveValue::Text(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn columns(world: &RandomGraph, question: &RandomQuery, rows: &[Row]) -> Vec<Vec<NaiveValue>> {
    let grouped = question.columns.iter().any(|c| !matches!(c, Column::Plain(_)));
    let key = |row: &Row| -> Vec<NaiveValue> {
        let plain = question.columns.iter().filter_map(|c| if let Column::Plain(t) = c { Some(t) } else { None });
        plain.map(|t| worth(world, t, row)).collect()
    };
    if !grouped {
        return rows.iter().map(key).collect();
    }
    let mut groups: Vec<(Vec<NaiveValue>, Vec<&Row>)> = Vec::new();
    for row in rows {
        let key = key(row);
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, members)) => members.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    let keyless = question.columns.iter().all(|c| !matches!(c, Column::Plain(_)));
    if groups.is_empty() && keyless {
        groups.push((vec![], vec![]));
    }
    let aggregate = |(key, members): (Vec<NaiveValue>, Vec<&Row>)| {
        let mut key = key.into_iter();
        let values = |t: &Term| -> Vec<NaiveValue> {
            members.iter().map(|row| worth(world, t, row)).filter(|w| *w != NaiveValue::Null).collect()
        };
        let column = |c: &Column| match c {
            Column::Plain(_) => key.next().unwrap_or(NaiveValue::Null),
            Column::CountAll => NaiveValue::Integer(members.len() as i64),
            Column::Count { distinct: false, of } => NaiveValue::Integer(values(of).len() as i64),
            Column::Count { distinct: true, of } => {
                let mut seen: Vec<NaiveValue> = Vec::new();
                values(of).into_iter().for_each(|w| {
                    if !seen.contains(&w) {
                        seen.push(w);
                    }
                });
                NaiveValue::Integer(seen.len() as i64)
            }
            Column::Sum(t) => {
                let of = |w: NaiveValue| if let NaiveValue::Integer(n) = w { n } else { 0 };
                NaiveValue::Integer(values(t).into_iter().map(of).sum())
            }
            Column::Least(t) => values(t).into_iter().min_by(order).unwrap_or(NaiveValue::Null),
            Column::Most(t) => values(t).into_iter().max_by(order).unwrap_or(NaiveValue::Null),
        };
        question.columns.iter().map(column).collect()
    };
    groups.into_iter().map(aggregate).collect()
}
