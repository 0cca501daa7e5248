//! Evaluates a query by trying every node and every edge for every part of its patterns.

use super::{Arrow, Chain, Column, EdgeAsked, NodeAsked, Question, Term, Test, World};
use std::cmp::Ordering;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
enum Held {
    Node(usize),
    Edge(usize),
    /// The edges of a path of variable length.
    Edges(Vec<usize>),
    Nothing,
}

type Row = BTreeMap<(bool, usize), Held>;

#[derive(Clone, Debug, PartialEq)]
enum Worth {
    Null,
    Integer(i64),
    Text(&'static str),
}

const NODE: bool = true;
const EDGE: bool = false;

/// Returns the rows of the answer as texts, in no particular order unless the query has one.
pub fn answer(world: &World, question: &Question) -> Vec<Vec<String>> {
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
                        empty.entry(name).or_insert(Held::Nothing);
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
        let mut seen: Vec<Vec<Worth>> = Vec::new();
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
    let shown = |w: &Worth| match w {
        Worth::Null => "null".to_string(),
        Worth::Integer(n) => n.to_string(),
        Worth::Text(t) => format!("'{t}'"),
    };
    answer.iter().map(|row| row.iter().map(shown).collect()).collect()
}

fn names(chain: &Chain) -> Vec<(bool, usize)> {
    let steps = chain.steps.iter().flat_map(|(e, n)| [(EDGE, e.var), (NODE, n.var)]);
    [(NODE, chain.start.var)].into_iter().chain(steps).collect()
}

/// Returns every match of a chain, each with the edges used so far.
fn chains(world: &World, chain: &Chain, row: &Row, used: &[usize]) -> Vec<(Row, Vec<usize>)> {
    let mut found = Vec::new();
    for node in 0..world.nodes.len() {
        if let Some(row) = bound(world, &chain.start, node, row) {
            steps(world, &chain.steps, node, &row, used, &mut found);
        }
    }
    found
}

/// Returns the row with the node bound to a node pattern, or `None` if it does not match.
fn bound(world: &World, asked: &NodeAsked, node: usize, row: &Row) -> Option<Row> {
    let facts = &world.nodes[node];
    if asked.label.is_some_and(|l| facts.label != l) || asked.n.is_some_and(|n| facts.n != Some(n)) {
        return None;
    }
    match row.get(&(NODE, asked.var)) {
        Some(held) if *held != Held::Node(node) => None,
        _ => {
            let mut row = row.clone();
            row.insert((NODE, asked.var), Held::Node(node));
            Some(row)
        }
    }
}

fn ways(world: &World, asked: &EdgeAsked, from: usize, edge: usize) -> Vec<usize> {
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
    world: &World,
    rest: &[(EdgeAsked, NodeAsked)],
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
        let held = if edge.length.is_some() { Held::Edges(trail.clone()) } else { Held::Edge(trail[0]) };
        row.insert((EDGE, edge.var), held);
        let used: Vec<usize> = used.iter().copied().chain(trail).collect();
        steps(world, rest, end, &row, &used, found);
    }
}

/// Collects every path of distinct edges up to a length, with its end node.
fn trail(
    world: &World,
    asked: &EdgeAsked,
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

fn worth(world: &World, term: &Term, row: &Row) -> Worth {
    let integer = |n: Option<i64>| n.map_or(Worth::Null, Worth::Integer);
    let node = |var: &usize| match row.get(&(NODE, *var)) {
        Some(Held::Node(node)) => Some(*node),
        _ => None,
    };
    match term {
        Term::NodeN(v) => integer(node(v).and_then(|n| world.nodes[n].n)),
        Term::NodeS(v) => node(v).and_then(|n| world.nodes[n].s).map_or(Worth::Null, Worth::Text),
        Term::NodeId(v) => integer(node(v).map(|n| n as i64)),
        Term::EdgeW(v) => match row.get(&(EDGE, *v)) {
            Some(Held::Edge(e)) => integer(world.edges[*e].w),
            _ => Worth::Null,
        },
        Term::Integer(n) => Worth::Integer(*n),
        Term::Text(t) => Worth::Text(t),
        Term::Null => Worth::Null,
        Term::Sum(a, b) => match (worth(world, a, row), worth(world, b, row)) {
            (Worth::Integer(a), Worth::Integer(b)) => Worth::Integer(a + b),
            _ => Worth::Null,
        },
    }
}

fn test(world: &World, asked: &Test, row: &Row) -> Option<bool> {
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
            if a == Worth::Null || b == Worth::Null {
                return None;
            }
            let same_kind =
                matches!((&a, &b), (Worth::Integer(_), Worth::Integer(_)) | (Worth::Text(_), Worth::Text(_)));
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
        Test::IsNull(t) => Some(worth(world, t, row) == Worth::Null),
        Test::StartsWith(t, with) => match worth(world, t, row) {
            Worth::Text(text) => Some(text.starts_with(with)),
            _ => None,
        },
        Test::In(t, list) => match worth(world, t, row) {
            _ if list.is_empty() => Some(false),
            Worth::Null => None,
            Worth::Integer(n) => Some(list.contains(&n)),
            Worth::Text(_) => Some(false),
        },
        Test::Label(v, label) => match row.get(&(NODE, *v)) {
            Some(Held::Node(n)) => Some(world.nodes[*n].label == *label),
            _ => None,
        },
        // No path starts at a missing node.
        Test::Exists(chain) => match row.get(&(NODE, chain.start.var)) {
            Some(Held::Node(_)) => {
                let outer: Row =
                    row.iter().filter(|(_, held)| **held != Held::Nothing).map(|(k, v)| (*k, v.clone())).collect();
                let lost = chain.steps.iter().any(|(_, n)| row.get(&(NODE, n.var)) == Some(&Held::Nothing));
                Some(!lost && !chains(world, chain, &outer, &[]).is_empty())
            }
            _ => Some(false),
        },
    }
}

/// Sorts texts before numbers, and null last.
fn order(a: &Worth, b: &Worth) -> Ordering {
    let rank = |w: &Worth| match w {
        Worth::Text(_) => 0,
        Worth::Integer(_) => 1,
        Worth::Null => 2,
    };
    match (a, b) {
        (Worth::Integer(a), Worth::Integer(b)) => a.cmp(b),
        (Worth::Text(a), Worth::Text(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn columns(world: &World, question: &Question, rows: &[Row]) -> Vec<Vec<Worth>> {
    let grouped = question.columns.iter().any(|c| !matches!(c, Column::Plain(_)));
    let key = |row: &Row| -> Vec<Worth> {
        let plain = question.columns.iter().filter_map(|c| if let Column::Plain(t) = c { Some(t) } else { None });
        plain.map(|t| worth(world, t, row)).collect()
    };
    if !grouped {
        return rows.iter().map(key).collect();
    }
    let mut groups: Vec<(Vec<Worth>, Vec<&Row>)> = Vec::new();
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
    let aggregate = |(key, members): (Vec<Worth>, Vec<&Row>)| {
        let mut key = key.into_iter();
        let values = |t: &Term| -> Vec<Worth> {
            members.iter().map(|row| worth(world, t, row)).filter(|w| *w != Worth::Null).collect()
        };
        let column = |c: &Column| match c {
            Column::Plain(_) => key.next().unwrap_or(Worth::Null),
            Column::CountAll => Worth::Integer(members.len() as i64),
            Column::Count { distinct: false, of } => Worth::Integer(values(of).len() as i64),
            Column::Count { distinct: true, of } => {
                let mut seen: Vec<Worth> = Vec::new();
                values(of).into_iter().for_each(|w| {
                    if !seen.contains(&w) {
                        seen.push(w);
                    }
                });
                Worth::Integer(seen.len() as i64)
            }
            Column::Sum(t) => {
                let of = |w: Worth| if let Worth::Integer(n) = w { n } else { 0 };
                Worth::Integer(values(t).into_iter().map(of).sum())
            }
            Column::Least(t) => values(t).into_iter().min_by(order).unwrap_or(Worth::Null),
            Column::Most(t) => values(t).into_iter().max_by(order).unwrap_or(Worth::Null),
        };
        question.columns.iter().map(column).collect()
    };
    groups.into_iter().map(aggregate).collect()
}
