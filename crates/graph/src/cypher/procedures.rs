//! The procedures that CALL can call. All of them only read.

use super::eval::fail;
use super::fault::FaultClass;
use super::run::{Executor, QueryStop, RowResult};
use super::value::Value;
use crate::community::{CommunityOptions, Undirected, detect};
use crate::convert::to_u32;
use crate::rank::{DAMPING, EdgeWeights, around};
use crate::snapshot::{Node, Snapshot, TypeNo};
use crate::walk::{Direction, Filter, Walk, walk};
use std::collections::BTreeMap;
use std::sync::Arc;

type Give<'g> = &'g mut dyn FnMut(&[Value]) -> RowResult;
type Run = fn(&Executor<'_>, &[Value], Give<'_>) -> RowResult;

/// A procedure.
pub struct Procedure {
    pub name: &'static str,
    pub arguments: &'static [&'static str],
    /// The number of required arguments.
    pub least: usize,
    /// Names of the columns, each with whether it contains nodes.
    pub columns: &'static [(&'static str, bool)],
    pub summary: &'static str,
    pub(super) run: Run,
}

impl std::fmt::Debug for Procedure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Procedure {
    /// The signature, with `?` after optional arguments.
    pub fn signature(&self) -> String {
        let columns: Vec<_> = self.columns.iter().map(|(name, _)| *name).collect();
        let optional = |(i, name): (usize, &&str)| if i < self.least { (*name).to_owned() } else { format!("{name}?") };
        let arguments: Vec<_> = self.arguments.iter().enumerate().map(optional).collect();
        format!("{}({}) YIELD {}", self.name, arguments.join(", "), columns.join(", "))
    }
}

/// The procedure that searches by text.
pub const SEARCH: &str = "lukasa.search";
/// The procedure that finds a node by name.
pub const NODE: &str = "lukasa.node";
/// The number of nodes that a search returns if no limit is given.
const FOUND: usize = 10;

/// All procedures.
pub const ALL: &[Procedure] = &[
    Procedure {
        name: "db.labels",
        arguments: &[],
        least: 0,
        columns: &[("label", false)],
        summary: "Types and labels of nodes",
        run: labels,
    },
    Procedure {
        name: "db.relationshipTypes",
        arguments: &[],
        least: 0,
        columns: &[("relationshipType", false)],
        summary: "Types of relationships",
        run: relationship_types,
    },
    Procedure {
        name: "db.propertyKeys",
        arguments: &[],
        least: 0,
        columns: &[("propertyKey", false)],
        summary: "Names of properties",
        run: property_keys,
    },
    Procedure {
        name: "db.schema",
        arguments: &[],
        least: 0,
        columns: &[("from", false), ("relationshipType", false), ("to", false), ("count", false)],
        summary: "Which types of nodes are connected by which types of relationships, the most frequent first",
        run: schema,
    },
    Procedure {
        name: "lukasa.pagerank",
        arguments: &["limit"],
        least: 0,
        columns: &[("node", true), ("score", false)],
        summary: "The most central nodes by PageRank",
        run: pagerank,
    },
    Procedure {
        name: "lukasa.ppr",
        arguments: &["seeds", "limit"],
        least: 1,
        columns: &[("node", true), ("score", false)],
        summary: "The nodes near some nodes, by personalized PageRank; seeds are nodes, names, or a list of them",
        run: ppr,
    },
    Procedure {
        name: "lukasa.communities",
        arguments: &["resolution"],
        least: 0,
        columns: &[("node", true), ("community", false)],
        summary: "The community of every node, by Leiden; the largest has the number 0",
        run: communities,
    },
    Procedure {
        name: "lukasa.neighbors",
        arguments: &["seeds", "hops"],
        least: 1,
        columns: &[("node", true), ("distance", false)],
        summary: "Every node within so many hops, in any direction, with its distance",
        run: neighbors,
    },
    Procedure {
        name: SEARCH,
        arguments: &["text", "limit"],
        least: 1,
        columns: &[("node", true), ("score", false)],
        summary: "The nodes that match the words and the meaning of a text, best first",
        run: search,
    },
    Procedure {
        name: NODE,
        arguments: &["name"],
        least: 1,
        columns: &[("node", true)],
        summary: "The node that a name stands for, in any form: `Context.JSON`, `context.go:1255`, `./path`",
        run: node,
    },
];

pub fn find(name: &str) -> Option<&'static Procedure> {
    ALL.iter().find(|p| p.name.eq_ignore_ascii_case(name))
}

/// The names of all procedures, for messages.
pub fn names() -> String {
    ALL.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
}

fn each(rows: impl IntoIterator<Item = Vec<Value>>, give: Give<'_>) -> RowResult {
    for row in rows {
        if !give(&row)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn labels(exec: &Executor<'_>, _: &[Value], give: Give<'_>) -> RowResult {
    let s = exec.snapshot;
    let (mut types, mut sets) = (vec![false; s.names().types().len()], vec![false; s.names().label_sets()]);
    for node in s.all_places().filter(|n| s.is_live(*n)) {
        exec.tick()?;
        types[s.type_no(node).index()] = true;
        sets[s.label_set(node) as usize] = true;
    }
    let own = s.names().types().iter().zip(types).filter(|(_, seen)| *seen).map(|(name, _)| name);
    let mut all: Vec<Arc<str>> = own.filter(|name| exec.silent_type != Some(&***name)).cloned().collect();
    for (set, _) in sets.iter().enumerate().filter(|(_, seen)| **seen) {
        all.extend(s.names().labels(to_u32(set)).iter().cloned());
    }
    all.sort();
    all.dedup();
    each(all.into_iter().map(|name| vec![Value::Text(name)]), give)
}

fn relationship_types(exec: &Executor<'_>, _: &[Value], give: Give<'_>) -> RowResult {
    let s = exec.snapshot;
    let mut seen = vec![false; s.names().types().len()];
    for node in s.all_places() {
        exec.tick()?;
        s.outgoing(node).types.iter().for_each(|t| seen[t.index()] = true);
    }
    let used = s.names().types().iter().zip(seen).filter(|(_, seen)| *seen);
    let mut all: Vec<_> = used.map(|(name, _)| Arc::clone(name)).collect();
    all.sort();
    each(all.into_iter().map(|name| vec![Value::Text(name)]), give)
}

fn property_keys(exec: &Executor<'_>, _: &[Value], give: Give<'_>) -> RowResult {
    let s = exec.snapshot;
    let mut seen = std::collections::BTreeSet::new();
    for node in s.all_places().filter(|n| !s.is_free(*n)) {
        exec.tick()?;
        if s.key(node).is_some() {
            seen.insert(crate::contents::KEY);
        }
        seen.extend(exec.contents.node(node)?.iter().map(|(number, _)| *number));
        for edge in s.outgoing(node).edges {
            exec.tick()?;
            seen.extend(exec.contents.edge(*edge)?.iter().map(|(number, _)| *number));
        }
    }
    let mut names: Vec<_> = seen.into_iter().map(|number| s.properties().name(number)).collect();
    names.sort();
    each(names.into_iter().map(|name| vec![Value::Text(name)]), give)
}

fn schema(exec: &Executor<'_>, _: &[Value], give: Give<'_>) -> RowResult {
    let s = exec.snapshot;
    let mut counts: BTreeMap<[TypeNo; 3], i64> = BTreeMap::new();
    for node in s.all_places().filter(|n| !s.is_free(*n)) {
        let links = s.outgoing(node);
        for i in 0..links.len() {
            exec.tick()?;
            *counts.entry([s.type_no(node), links.types[i], s.type_no(links.nodes[i])]).or_default() += 1;
        }
    }
    let mut all: Vec<_> = counts.into_iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let name = |number: TypeNo| Value::Text(Arc::clone(s.names().type_name(number)));
    each(all.into_iter().map(|([a, r, b], n)| vec![name(a), name(r), name(b), Value::Integer(n)]), give)
}

/// Work over the whole graph. Its result is kept with the snapshot for later queries.
fn beside<T: Send + 'static>(
    exec: &Executor<'_>,
    work: impl FnOnce(&Arc<Snapshot>) -> T + Send + 'static,
) -> Result<T, QueryStop> {
    let snapshot = Arc::clone(exec.snapshot);
    exec.beside(move || work(&snapshot))
}

fn limit(value: Option<&Value>, otherwise: usize) -> Result<usize, QueryStop> {
    match value {
        None | Some(Value::Null) => Ok(otherwise),
        Some(Value::Integer(n)) if *n >= 0 => Ok(usize::try_from(*n).unwrap_or(usize::MAX)),
        Some(other) => {
            let found = if let Value::Integer(n) = other { n.to_string() } else { format!("a {}", other.type_name()) };
            let message = format!("expected a number of 0 or more, found {found}");
            Err(fail(FaultClass::Argument, "InvalidArgumentType", message, 0))
        }
    }
}

/// Seeds: nodes, keys of nodes, or lists of either.
fn seeds(exec: &Executor<'_>, value: &Value) -> Result<Vec<Node>, QueryStop> {
    let mut found = Vec::new();
    match value {
        Value::Null => {}
        Value::Node(node) => found.push(*node),
        Value::List(items) => {
            for item in items.iter().filter(|v| !matches!(v, Value::List(_))) {
                found.extend(seeds(exec, item)?);
            }
        }
        Value::Text(name) if exec.resolve.is_some() => found.push(resolved(exec, name)?),
        Value::Text(key) => {
            let s = exec.snapshot;
            let index = s.index(&exec.contents, crate::contents::KEY, || exec.tick())?;
            let named = |key: &str, type_name: Option<&str>| {
                let is = |node: &Node| {
                    s.key(*node) == Some(key)
                        && s.is_live(*node)
                        && type_name.is_none_or(|t| s.type_name(*node).eq_ignore_ascii_case(t))
                };
                s.candidates(&index, &Value::text(key)).filter(is).collect::<Vec<_>>()
            };
            found.extend(named(key, None));
            if found.is_empty()
                && let Some((type_name, key)) = key.split_once(':')
            {
                found.extend(named(key, Some(type_name)));
            }
            if found.is_empty() {
                let message = format!("no object has the key `{key}`");
                return Err(fail(FaultClass::Argument, "InvalidArgumentValue", message, 0));
            }
        }
        other => {
            let message = format!("seeds are nodes or keys, not a {}", other.type_name());
            return Err(fail(FaultClass::Argument, "InvalidArgumentType", message, 0));
        }
    }
    Ok(found)
}

fn pagerank(exec: &Executor<'_>, arguments: &[Value], give: Give<'_>) -> RowResult {
    let most = limit(arguments.first(), usize::MAX)?;
    let ranks = beside(exec, |snapshot| Arc::clone(snapshot.ranks()))?;
    let flat = exec.snapshot.flat();
    let mut order: Vec<u32> = (0..to_u32(ranks.len())).collect();
    order.sort_by(|a, b| ranks[*b as usize].total_cmp(&ranks[*a as usize]).then(a.cmp(b)));
    let row = |i: u32| vec![Value::Node(flat.nodes[i as usize]), Value::Float(ranks[i as usize])];
    each(order.into_iter().take(most).map(row), give)
}

fn ppr(exec: &Executor<'_>, arguments: &[Value], give: Give<'_>) -> RowResult {
    let seeds: Vec<(Node, f64)> = seeds(exec, &arguments[0])?.into_iter().map(|n| (n, 1.0)).collect();
    let most = limit(arguments.get(1), usize::MAX)?;
    let ranked = beside(exec, move |snapshot| {
        let weights = EdgeWeights::new(snapshot, &snapshot.registry, &[]);
        around(snapshot, &weights, &seeds, DAMPING).0
    })?;
    let row = |(node, score): (Node, f64)| vec![Value::Node(node), Value::Float(score)];
    each(ranked.into_iter().take(most).map(row), give)
}

fn communities(exec: &Executor<'_>, arguments: &[Value], give: Give<'_>) -> RowResult {
    let resolution = match arguments.first() {
        None | Some(Value::Null) => 1.0,
        Some(Value::Integer(n)) if *n > 0 => *n as f64,
        Some(Value::Float(f)) if *f > 0.0 => *f,
        Some(_) => {
            return Err(fail(FaultClass::Argument, "InvalidArgumentType", "the resolution is a number above 0", 0));
        }
    };
    let found = beside(exec, move |snapshot| snapshot.communities(resolution))?;
    let flat = exec.snapshot.flat();
    let row = |(node, community): (&Node, &u32)| vec![Value::Node(*node), Value::Integer(i64::from(*community))];
    each(flat.nodes.iter().zip(found.iter()).map(row), give)
}

impl Snapshot {
    /// The community of every node, by dense number. The result of the last resolution is kept.
    fn communities(&self, resolution: f64) -> Arc<Vec<u32>> {
        let mut kept = self.beside.communities.lock();
        match &*kept {
            Some((by, found)) if *by == resolution => Arc::clone(found),
            _ => {
                let options = CommunityOptions { resolution, ..CommunityOptions::default() };
                let found = Arc::new(detect(&Undirected::of(self.flat()), &options).community);
                *kept = Some((resolution, Arc::clone(&found)));
                found
            }
        }
    }
}

fn neighbors(exec: &Executor<'_>, arguments: &[Value], give: Give<'_>) -> RowResult {
    let roots = seeds(exec, &arguments[0])?;
    let hops = limit(arguments.get(1), 1)?;
    let found = beside(exec, move |snapshot| {
        let filter = Filter { edge_types: None, node_types: None, label_sets: None, min_confidence: None };
        let depth = u32::try_from(hops).unwrap_or(u32::MAX);
        let (direction, most) = (Direction::Both, usize::MAX);
        let reached =
            walk(snapshot, &roots, &Walk { direction, depth, max_nodes: most, max_edges: most, filter: &filter });
        (0..reached.nodes.len()).map(|i| (reached.nodes[i], reached.depth(i))).collect::<Vec<_>>()
    })?;
    let row = |(node, depth): (Node, u32)| vec![Value::Node(node), Value::Integer(i64::from(depth))];
    each(found.into_iter().filter(|(_, depth)| *depth > 0).map(row), give)
}

/// The node of a name, by the caller's resolution of names.
fn resolved(exec: &Executor<'_>, name: &Arc<str>) -> Result<Node, QueryStop> {
    let Some(resolve) = exec.resolve.clone() else {
        let message = format!("`{NODE}` is not available here: only keys are known");
        return Err(fail(FaultClass::Procedure, "ProcedureNotFound", message, 0));
    };
    let name = Arc::clone(name);
    Ok(exec.beside(move || resolve(&name))??)
}

fn node(exec: &Executor<'_>, arguments: &[Value], give: Give<'_>) -> RowResult {
    let Value::Text(name) = &arguments[0] else {
        let message = format!("expected a name, found a {}", arguments[0].type_name());
        return Err(fail(FaultClass::Argument, "InvalidArgumentType", message, 0));
    };
    each([vec![Value::Node(resolved(exec, name)?)]], give)
}

fn search(exec: &Executor<'_>, arguments: &[Value], give: Give<'_>) -> RowResult {
    let Some(search) = exec.search.clone() else {
        let message = format!("`{SEARCH}` is not available here: this graph has no text index");
        return Err(fail(FaultClass::Procedure, "ProcedureNotFound", message, 0));
    };
    let Value::Text(text) = &arguments[0] else {
        let message = format!("expected a text to look for, found a {}", arguments[0].type_name());
        return Err(fail(FaultClass::Argument, "InvalidArgumentType", message, 0));
    };
    let (text, most) = (Arc::clone(text), limit(arguments.get(1), FOUND)?);
    let found = exec.beside(move || search(&text, most))??;
    let row = |(node, score): (Node, f64)| vec![Value::Node(node), Value::Float(score)];
    each(found.into_iter().map(row), give)
}
