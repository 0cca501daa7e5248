//! `call_graph_stats`: size, confidence and structure of the call graph.

use crate::features::code::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::symbols::{LinkDirection, SymbolKind, SymbolRelation, Symbols};
use crate::{Context, Engine};
use lukasa_graph::contents::{PropertyNo, PropertyReader, in_row};
use lukasa_graph::cypher::value::Value;
use lukasa_graph::measures::strong_components;
use lukasa_graph::{Csr, Node};
use lukasa_model::Result;
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub struct CallGraphStats;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Only symbols in files whose path has this prefix: their calls and the calls to them.
    #[serde(default)]
    pub path: Option<String>,
    /// Maximum number of symbols per list, up to 1,000.
    #[serde(default)]
    pub limit: Limit<10>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Number of symbols by type.
    pub symbols: BTreeMap<String, usize>,
    /// Pairs of caller and callee; `external` counts those whose callee is outside the project.
    pub calls: usize,
    pub external: usize,
    /// The same pairs by derivation.
    pub by_derivation: BTreeMap<String, DerivationOut>,
    /// Call sites in the source.
    pub call_sites: u64,
    /// Call sites that could not be resolved.
    pub unresolved: u64,
    /// Share of unresolved call sites, 0 to 1; null when no file records its number of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unresolved_share: Option<f64>,
    /// Symbols with the most callers.
    pub most_called: Vec<CountedOut>,
    /// Symbols with the most callees.
    pub most_calling: Vec<CountedOut>,
    pub entry_points: ListOut,
    /// Functions and methods without callers, except tests and entry points.
    pub never_called: usize,
    /// Of `never_called`, those that are exported.
    pub never_called_exported: usize,
    /// Groups of symbols that call each other in a cycle.
    pub cycles: CyclesOut,
    /// Functions and methods that call themselves.
    pub recursive: ListOut,
    pub view: ViewEcho,
}

#[derive(Serialize, JsonSchema)]
pub struct DerivationOut {
    pub calls: usize,
    pub mean_confidence: f64,
}

#[derive(Serialize, JsonSchema)]
pub struct CountedOut {
    pub key: String,
    #[serde(rename = "type")]
    pub type_name: String,
    pub count: usize,
}

/// The first symbols of a list, and its full length.
#[derive(Serialize, JsonSchema)]
pub struct ListOut {
    pub total: usize,
    pub symbols: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct CyclesOut {
    pub total: usize,
    /// Members of the largest cycle.
    pub largest: ListOut,
}

impl Op for CallGraphStats {
    const META: Meta = Meta {
        name: "call_graph_stats",
        long: true,
        shown: ResponseView::Cut(rendering::stats),
        answer: &[
            "calls",
            "symbols",
            "call_sites",
            "unresolved",
            "unresolved_share",
            "most_called.key",
            "most_called.count",
            "most_calling.key",
            "most_calling.count",
            "entry_points",
            "never_called",
            "cycles.total",
        ],
        summary: "Show the size and confidence of the call graph",
        description: "Counts of symbols and calls, derivation and confidence of calls, the share that could not be \
                      resolved, symbols with the most callers and callees, entry points, functions without callers, \
                      cycles of calls and recursion.",
        verb: "call-stats",
        toolset: "code",
        examples: &["lukasa call-stats", "lukasa call-stats --path src/api/ --limit 5"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let look = engine.view_graph(context, &request.view)?;
        let symbols = Symbols::new(&look);
        let s = &look.snapshot;
        let path = request.path.as_deref().map(|p| p.strip_prefix("./").unwrap_or(p));
        let within = |node: &Node| match path {
            None => true,
            Some(path) => s.key(*node).is_some_and(|key| key.starts_with(path)),
        };
        let own: Vec<(Node, SymbolKind)> = s
            .nodes()
            .into_iter()
            .filter(within)
            .filter_map(|node| Some((node, symbols.kind(node).filter(|k| !k.outside())?)))
            .collect();
        let calls = Calls::of(&symbols, &own);
        let recorded = Recorded::of(&symbols, &own)?;
        let mut by_type: BTreeMap<String, usize> = BTreeMap::new();
        own.iter().for_each(|(node, _)| *by_type.entry(s.type_name(*node).to_string()).or_default() += 1);
        let unresolved_share =
            (recorded.sites > 0).then(|| (recorded.unresolved as f64 / recorded.sites as f64 * 1e4).round() / 1e4);
        let first = |nodes: &[Node]| ListOut {
            total: nodes.len(),
            symbols: nodes.iter().take(request.limit.get()).map(|n| symbols.key(*n).into_owned()).collect(),
        };
        let most = |mut counted: Vec<(usize, Node)>| -> Vec<CountedOut> {
            counted.retain(|(n, _)| *n > 0);
            counted.sort_by_cached_key(|(n, node)| (Reverse(*n), symbols.key(*node).into_owned()));
            let row = |(count, node): &(usize, Node)| CountedOut {
                key: symbols.key(*node).into_owned(),
                type_name: s.type_name(*node).to_string(),
                count: *count,
            };
            counted.iter().take(request.limit.get()).map(row).collect()
        };
        let by_way =
            |way| own.iter().map(|(n, _)| (symbols.linked(*n, SymbolRelation::Calls, way).count(), *n)).collect();
        let idle: Vec<Node> = own
            .iter()
            .filter(|(node, kind)| kind.runs() && symbols.callers(*node) == 0 && !recorded.entries.contains(node))
            .map(|(node, _)| *node)
            .filter(|node| !symbols.is_test(*node))
            .collect();
        let never_called_exported = idle.iter().filter(|node| recorded.exported.contains(node)).count();
        let runs = own.iter().filter(|(_, kind)| kind.runs()).count();
        let mut summary = format!(
            "{} and methods, {}, {} of them to names outside of the project",
            count(runs, "function"),
            count(calls.total, "call"),
            calls.external
        );
        if let Some(share) = unresolved_share {
            summary += &format!("; {:.1} % of {} unresolved", share * 100.0, count(recorded.sites, "call site"));
        }
        if let Some(path) = path {
            summary += &format!("; under `{path}`");
        }
        Ok(Response {
            summary,
            symbols: by_type,
            calls: calls.total,
            external: calls.external,
            by_derivation: calls.by_derivation,
            call_sites: recorded.sites,
            unresolved: recorded.unresolved,
            unresolved_share,
            most_called: most(by_way(LinkDirection::In)),
            most_calling: most(by_way(LinkDirection::Out)),
            entry_points: first(&recorded.entries),
            never_called: idle.len(),
            never_called_exported,
            cycles: CyclesOut { total: calls.cycles, largest: first(&calls.largest) },
            recursive: first(&calls.recursive),
            view: look.view.echo(),
        })
    }
}

/// Statistics of the calls of some symbols.
#[derive(Default)]
struct Calls {
    total: usize,
    external: usize,
    by_derivation: BTreeMap<String, DerivationOut>,
    cycles: usize,
    largest: Vec<Node>,
    recursive: Vec<Node>,
}

impl Calls {
    fn of(symbols: &Symbols<'_>, own: &[(Node, SymbolKind)]) -> Calls {
        let mut calls = Calls::default();
        let dense: FxHashMap<Node, u32> = own.iter().zip(0..).map(|((node, _), at)| (*node, at)).collect();
        let mut edges: Vec<(u32, u32, u16)> = Vec::new();
        for (node, from) in own.iter().map(|(node, _)| (*node, dense[node])) {
            for (other, edge) in symbols.linked(node, SymbolRelation::Calls, LinkDirection::Out) {
                calls.total += 1;
                calls.external += usize::from(symbols.kind(other).is_some_and(SymbolKind::outside));
                let how = symbols.look.snapshot.derivation(edge).map_or("unstated", |d| &**d);
                let known = match calls.by_derivation.get_mut(how) {
                    Some(known) => known,
                    None => calls
                        .by_derivation
                        .entry(how.to_string())
                        .or_insert(DerivationOut { calls: 0, mean_confidence: 0.0 }),
                };
                known.calls += 1;
                // Holds the sum until all calls are counted.
                known.mean_confidence += symbols.confidence(edge);
                if other == node && calls.recursive.last() != Some(&node) {
                    calls.recursive.push(node);
                }
                edges.extend(dense.get(&other).map(|to| (from, *to, 0)));
            }
        }
        for known in calls.by_derivation.values_mut() {
            known.mean_confidence = (known.mean_confidence / known.calls as f64 * 1e4).round() / 1e4;
        }
        let component = strong_components(&Csr::new(own.len(), edges.iter().copied()));
        let mut members: FxHashMap<u32, Vec<Node>> = FxHashMap::default();
        for ((node, _), component) in own.iter().zip(component) {
            members.entry(component).or_default().push(*node);
        }
        calls.cycles = members.values().filter(|m| m.len() > 1).count();
        // The largest cycle; among equals, the one whose first symbol was recorded first.
        let first = |m: &Vec<Node>| m.first().map(|n| symbols.look.snapshot.thing(*n));
        let largest = members.into_values().filter(|m| m.len() > 1).max_by_key(|m| (m.len(), Reverse(first(m))));
        calls.largest = largest.unwrap_or_default();
        for list in [&mut calls.largest, &mut calls.recursive] {
            list.sort_by_cached_key(|n| symbols.key(*n).into_owned());
        }
        calls
    }
}

/// Properties of symbols, read once and cached with the graph.
#[derive(Default)]
struct Recorded {
    sites: u64,
    unresolved: u64,
    entries: Vec<Node>,
    exported: rustc_hash::FxHashSet<Node>,
}

impl Recorded {
    fn of(symbols: &Symbols<'_>, own: &[(Node, SymbolKind)]) -> Result<Recorded> {
        let s = &symbols.look.snapshot;
        let contents = PropertyReader::new(s, &symbols.look.ledger);
        let number = |name: &str| s.properties().number(name);
        let (calls, unresolved, entry, exported) =
            (number("calls"), number("unresolved_calls"), number("entry"), number("exported"));
        let mut recorded = Recorded::default();
        for (node, kind) in own {
            let row = contents.node(*node)?;
            let whole = |property: PropertyNo| match in_row(row, property) {
                Some(Value::Integer(n)) => u64::try_from(*n).unwrap_or(0),
                _ => 0,
            };
            let holds = |property: PropertyNo| matches!(in_row(row, property), Some(Value::Bool(true)));
            if *kind == SymbolKind::File {
                recorded.sites += whole(calls);
            }
            recorded.unresolved += whole(unresolved);
            if holds(entry) {
                recorded.entries.push(*node);
            }
            if holds(exported) {
                recorded.exported.insert(*node);
            }
        }
        recorded.entries.sort_by_cached_key(|n| symbols.key(*n).into_owned());
        Ok(recorded)
    }
}
