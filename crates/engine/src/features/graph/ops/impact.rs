//! `impact`: lists what a change of one object affects, and what the object depends on.

use crate::claims::ClaimOut;
use crate::features::graph::rendering;
use crate::names::ResolvedNode;
use crate::ranges::check_range;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::ViewGraph;
use crate::view::symbols::{LinkDirection, SymbolKind, SymbolRelation, Symbols, number};
use crate::{Context, Engine};
use lukasa_graph::walk::{Direction, Filter, PooledWalkResult, Walk, walk};
use lukasa_graph::{Node, TypeNo};
use lukasa_model::Result;
use lukasa_model::claims::{ClaimTarget, HeldClaim, TargetRelation};
use lukasa_model::view::ViewEcho;
use lukasa_store::ledger::ViewSpec;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

pub struct Impact;

/// Maximum number of objects followed in each direction.
const MOST: usize = 20_000;
/// Maximum number of objects whose content is read for the name of their service, if no relationship leads to it.
const ASKED: usize = 2_000;
/// Types of relationships from a container to its contents, and from contents to their container.
const CONTAINS: [&str; 7] =
    ["CONTAINS", "CONTAINS_FILE", "DEFINES", "DEFINES_SYMBOL", "OWNS_ENTITY", "PROVIDES_CONTRACT", "EXPOSES_ENDPOINT"];
const CONTAINED: [&str; 3] = ["DEFINED_IN", "BELONGS_TO", "PART_OF"];
/// The type of relationship from a method to the one that it overrides or implements.
const OVERRIDES: &str = "OVERRIDES";
/// Maximum number of nested containers.
const LEVELS: usize = 8;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The object that changes: `Type:key`, a key alone, or an id.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Maximum number of hops, 1 to 8.
    #[serde(default = "max_depth")]
    #[schemars(range(min = 1, max = 8))]
    pub max_depth: u32,
    /// Follow only relationships of these types, and start from the object without its contents; when left out, all
    /// types except those that merely record (such as INVOLVES) or contain.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub relationship_types: Vec<String>,
    /// Maximum number of dependents, and of dependencies, 1 to 1,000.
    #[serde(default)]
    pub limit: Limit<50>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn max_depth() -> u32 {
    3
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub source_node: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_service: Option<String>,
    /// Number of objects that depend on it within the depth.
    pub blast_radius: usize,
    /// Tests that use it or its contents directly.
    pub direct_tests: Vec<String>,
    /// Tests reached through others.
    pub transitive_tests: Vec<String>,
    /// Other services that were reached, with the numbers of their objects that depend on it or that it depends on.
    pub impacted_services: Vec<ServiceOut>,
    pub impacted_contracts: Vec<ContractOut>,
    pub impacted_entities: Vec<DomainEntityOut>,
    /// What depends on it, nearest first.
    pub dependents: Vec<ReachedOut>,
    pub total_dependents: usize,
    /// What it depends on, nearest first.
    pub dependencies: Vec<ReachedOut>,
    pub total_dependencies: usize,
    pub total_impacted_nodes: usize,
    /// Claims on it, or on objects that depend on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimOut>,
    /// A list is incomplete, or the search stopped at a limit.
    pub truncated: bool,
    pub view: ViewEcho,
}

#[derive(Serialize, JsonSchema)]
pub struct ReachedOut {
    pub id: Uuid,
    pub name: String,
    /// For a symbol: its location.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub distance: u32,
    /// It has ended and is shown because a lasting relationship leads to it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// The relationship by which it was reached.
    pub via: String,
}

#[derive(Serialize, JsonSchema)]
pub struct ServiceOut {
    pub service_name: String,
    /// Its objects that depend on the source.
    pub impact_count: usize,
    /// Its objects that the source depends on.
    pub dependencies: usize,
    /// The shortest path to one of its objects.
    pub path: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct ContractOut {
    pub contract: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    pub endpoints_affected: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct DomainEntityOut {
    pub entity: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owning_service: Option<String>,
}

impl Op for Impact {
    const META: Meta = Meta {
        name: "impact",
        shown: ResponseView::Cut(rendering::impact),
        essential: true,
        default_tool: &["ref", "max_depth", "limit"],
        answer: &[
            "dependents.name",
            "dependents.distance",
            "total_dependents",
            "direct_tests",
            "impacted_services.service_name",
            "impacted_contracts.contract",
            "impacted_entities.entity",
            "claims.agent_id",
            "claims.target_id",
            "claims.intent",
            "blast_radius",
        ],
        summary: "Show what a change of an object affects",
        description: "Starts with the object and its contents; for objects other than symbols also with their \
                      containers below their service. Follows relationships backwards to dependents and forwards to \
                      dependencies. The dependents of a function or method are what calls, uses or overrides it, and \
                      their callers, but not what uses the class that contains it. Groups the results by service, with \
                      a shortest path to each service, and lists tests, contracts and domain entities where such \
                      objects exist, and the claims on any of them.",
        verb: "impact",
        toolset: "graph",
        names: &["ref"],
        positional: &["ref"],
        aliases: &[("node_id", "ref")],
        examples: &["lukasa impact src/auth.ts::login", "lukasa impact Service:auth --max-depth 2"],
        ended: Some(|context, ended| ended.walked(context, ended.request.number("max_depth"))),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        check_range("relationship_types", request.relationship_types.len(), 0, 32)?;
        let look = engine.view_graph(context, &request.view)?;
        let ResolvedNode { node: source, overloads, .. } = look.resolve(&request.reference)?;
        let symbols = Symbols::new(&look);
        let containment = Containment::new(&look);
        let given = !request.relationship_types.is_empty();
        let runs = !given && symbols.kind(source).is_some_and(SymbolKind::runs);
        let mut whole = if given { vec![source] } else { containment.whole(&symbols, source) };
        whole.extend(overloads);
        let filter = filter(&look, &request.relationship_types, &containment)?;
        let follow = |direction, filter: &Filter| {
            let plan = Walk { direction, depth: request.max_depth, max_nodes: MOST, max_edges: usize::MAX, filter };
            walk(&look.snapshot, &whole, &plan)
        };
        let calling = if runs { calling(&look, &filter) } else { filter.clone() };
        let (up, down) = (follow(Direction::In, &calling), follow(Direction::Out, &filter));
        let mut overriding = if runs { symbols.same_method(source, LinkDirection::In) } else { vec![] };
        overriding.retain(|node| !up.nodes.contains(node));
        let mut services = Services { look: &look, containment: &containment, known: FxHashMap::default() };
        let reached = Both { up: &up, down: &down, whole: whole.len() };
        services.ask(&[source])?;
        let all_asked = services.ask(&reached.nodes())?;
        let source_service = services.of(source);
        let impacted_services = reached.services(&look, &mut services, source_service.as_deref());
        let (direct_tests, transitive_tests) = tests(&symbols, &whole, &up);
        let total_dependents = up.nodes.len() - whole.len() + overriding.len();
        let total_dependencies = down.nodes.len() - whole.len();
        let truncated = !all_asked
            || up.cut.is_some()
            || down.cut.is_some()
            || total_dependents.max(total_dependencies) > request.limit.get();
        let held = if look.is_head { engine.claims_held(&look.ledger)? } else { vec![] };
        let claims: Vec<ClaimOut> = touched(&look, source, &up, &overriding, held)
            .into_iter()
            .map(|claim| ClaimOut::of(claim, &context.scope))
            .collect();
        let name = look.snapshot.name(source);
        let is_called = runs && !symbols.is(source, SymbolKind::Test) && !symbols.is_test(source);
        let depend = match total_dependents {
            0 if is_called => "no object was found that depends".into(),
            1 => "1 object depends".into(),
            n => format!("{n} objects depend"),
        };
        let mut summary = format!("{depend} on {name} within {}", count(request.max_depth, "hop"));
        for (n, what) in [
            (direct_tests.len() + transitive_tests.len(), "test"),
            (impacted_services.iter().filter(|s| s.impact_count > 0).count(), "other service"),
            (claims.len(), "claim"),
        ] {
            if n > 0 {
                summary += &format!(", {}", count(n, what));
            }
        }
        if is_called && total_dependents == 0 {
            summary += &format!("; {}", symbols.why_callers_may_be_missing(source)?);
        }
        Ok(Response {
            summary,
            source_node: name,
            source_service,
            blast_radius: total_dependents,
            direct_tests,
            transitive_tests,
            impacted_services,
            impacted_contracts: reached.contracts(&look, &mut services),
            impacted_entities: reached.entities(&look, &mut services),
            dependents: dependents(&look, &overriding, &up, whole.len(), request.limit.get())?,
            total_dependents,
            dependencies: list(&look, &down, whole.len(), request.limit.get())?,
            total_dependencies,
            total_impacted_nodes: reached.nodes().len(),
            claims,
            truncated,
            view: look.view.echo(),
        })
    }
}

/// Claims on the source, on anything in it, and on what depends on it.
fn touched(
    look: &ViewGraph,
    source: Node,
    up: &PooledWalkResult,
    overriding: &[Node],
    held: Vec<HeldClaim>,
) -> Vec<HeldClaim> {
    if held.is_empty() {
        return held;
    }
    let s = &look.snapshot;
    let target = |node: Node| ClaimTarget::of_object(s.type_name(node), s.key(node)?);
    let own = target(source);
    let reached: Vec<ClaimTarget> = up.nodes.iter().chain(overriding).filter_map(|node| target(*node)).collect();
    let mut held = held;
    held.retain(|claim| {
        let at = claim.at();
        // A container of the source changes with it, but its other parts do not.
        let of =
            |target: &ClaimTarget| matches!(target.relation(&at), Some(TargetRelation::Same | TargetRelation::Within));
        own.as_ref().is_some_and(|own| own.relation(&at).is_some()) || reached.iter().any(of)
    });
    held.sort_by_key(|claim| claim.since);
    held
}

/// The filter for the requested types, else for all types that do not merely record or contain.
fn filter(look: &ViewGraph, types: &[String], containment: &Containment<'_>) -> Result<Filter> {
    if !types.is_empty() {
        return look.filter(types, &[], &[]);
    }
    let names = look.snapshot.names().types().iter().enumerate();
    let follow = names.map(|(i, t)| !look.registry.is_lasting(t) && !containment.above[i] && !containment.below[i]);
    Ok(Filter { edge_types: Some(follow.collect()), ..Filter::default() })
}

/// Restricts a filter to callers and users of a function. Containing types are excluded, because everything that uses
/// the type would be reached through them.
fn calling(look: &ViewGraph, filter: &Filter) -> Filter {
    let types = look.snapshot.names().types();
    let is_apart = |t: &str| {
        matches!(
            SymbolRelation::of_type(t),
            Some(SymbolRelation::Extends | SymbolRelation::Implements | SymbolRelation::Imports)
        )
    };
    let edge_types = types.iter().enumerate().map(|(i, t)| filter.edge_type(TypeNo::at(i)) && !is_apart(t));
    let is_passed = |kind: SymbolKind| kind.runs() || kind == SymbolKind::File || kind.outside();
    let node_types = types.iter().map(|t| SymbolKind::of_type(t).is_none_or(is_passed));
    Filter { edge_types: Some(edge_types.collect()), node_types: Some(node_types.collect()), ..filter.clone() }
}

fn is_type(look: &ViewGraph, node: Node, names: &[&str]) -> bool {
    let name = look.snapshot.type_name(node).to_ascii_lowercase().replace(['_', '-'], "");
    names.contains(&name.as_str())
}

/// The dependents, with overriding methods first, because they have to change with it.
fn dependents(
    look: &ViewGraph,
    overriding: &[Node],
    up: &PooledWalkResult,
    roots: usize,
    limit: usize,
) -> Result<Vec<ReachedOut>> {
    let overriding = overriding.iter().take(limit).map(|node| (*node, 1, OVERRIDES.to_owned())).collect();
    let mut all = reached(look, overriding)?;
    all.extend(list(look, up, roots, limit - all.len())?);
    Ok(all)
}

fn list(look: &ViewGraph, found: &PooledWalkResult, roots: usize, limit: usize) -> Result<Vec<ReachedOut>> {
    let trails = found.trails(&look.snapshot);
    let via = |i| trails.edge_to(i).map(|edge| look.snapshot.edge_type(edge).to_string()).unwrap_or_default();
    let all = (roots..found.nodes.len()).take(limit);
    reached(look, all.map(|i| (found.nodes[i], found.depth(i), via(i))).collect())
}

/// Objects as the response lists them, with their distances and the relationships by which they were reached.
fn reached(look: &ViewGraph, all: Vec<(Node, u32, String)>) -> Result<Vec<ReachedOut>> {
    let s = &look.snapshot;
    let symbols = Symbols::new(look);
    let code: Vec<Node> = all.iter().map(|(node, ..)| *node).filter(|node| symbols.kind(*node).is_some()).collect();
    let contents = symbols.contents(&code)?;
    let out = all.into_iter().map(|(node, distance, via)| ReachedOut {
        id: s.id(node),
        name: s.name(node),
        line: contents.get(&node).and_then(|content| number(content, "line")),
        distance,
        ended: s.is_ended(node),
        via,
    });
    Ok(out.collect())
}

/// The edge types that mean containment, as tables by type number.
struct Containment<'a> {
    look: &'a ViewGraph,
    /// Types of edges from container to contents.
    above: Vec<bool>,
    /// Types of edges from contents to container.
    below: Vec<bool>,
}

impl Containment<'_> {
    fn new(look: &ViewGraph) -> Containment<'_> {
        let table = |names: &[&str]| {
            let all = look.snapshot.names().types().iter();
            all.map(|t| names.iter().any(|n| t.eq_ignore_ascii_case(n))).collect()
        };
        Containment { look, above: table(&CONTAINS), below: table(&CONTAINED) }
    }

    fn ends(links: lukasa_graph::EdgeList<'_>, table: &[bool]) -> Vec<Node> {
        links.iter().filter(|(_, _, t)| table[t.index()]).map(|(node, _, _)| node).collect()
    }

    /// The direct containers of a node.
    fn containers(&self, node: Node) -> Vec<Node> {
        let s = &self.look.snapshot;
        let mut all = Self::ends(s.incoming(node), &self.above);
        all.extend(Self::ends(s.outgoing(node), &self.below));
        all
    }

    /// The direct contents of a node.
    fn contents(&self, node: Node) -> Vec<Node> {
        let s = &self.look.snapshot;
        let mut all = Self::ends(s.outgoing(node), &self.above);
        all.extend(Self::ends(s.incoming(node), &self.below));
        all
    }

    /// The node first, then everything that changes with it: its contents, and its containers below its service. The
    /// containers of a symbol do not change with it.
    fn whole(&self, symbols: &Symbols<'_>, node: Node) -> Vec<Node> {
        let mut seen: FxHashSet<Node> = FxHashSet::from_iter([node]);
        let mut all = vec![node];
        let mut level = vec![node];
        for _ in 0..LEVELS {
            level = level.iter().flat_map(|n| self.contents(*n)).filter(|n| seen.insert(*n)).collect();
            all.extend(&level);
            if all.len() > MOST / 2 {
                break;
            }
        }
        if symbols.kind(node).is_some_and(|kind| kind != SymbolKind::File) {
            return all;
        }
        let mut level = vec![node];
        for _ in 0..LEVELS {
            let above = level.iter().flat_map(|n| self.containers(*n));
            level = above.filter(|n| !is_type(self.look, *n, &["service"]) && seen.insert(*n)).collect();
            all.extend(&level);
        }
        all
    }
}

/// Tests by their type, by their label, or by a TESTS relationship: those that use the object directly, and those that
/// were reached through others.
fn tests(symbols: &Symbols<'_>, whole: &[Node], up: &PooledWalkResult) -> (Vec<String>, Vec<String>) {
    let s = &symbols.look.snapshot;
    let is_test = |node: Node| {
        s.type_name(node).to_ascii_lowercase().contains("test")
            || symbols.is_test(node)
            || s.outgoing(node).iter().any(|(_, _, t)| s.names().type_name(t).eq_ignore_ascii_case("TESTS"))
    };
    let (mut direct, mut transitive) = (vec![], vec![]);
    for (i, node) in up.nodes.iter().enumerate().skip(whole.len()).filter(|(_, n)| is_test(**n)) {
        if up.depth(i) == 1 { direct.push(s.name(*node)) } else { transitive.push(s.name(*node)) }
    }
    (direct, transitive)
}

/// What was reached in either direction. What was reached in both counts as a dependent.
struct Both<'a> {
    up: &'a PooledWalkResult,
    down: &'a PooledWalkResult,
    /// The number of roots, which are the first nodes in each direction.
    whole: usize,
}

impl Both<'_> {
    /// All nodes except the source.
    fn nodes(&self) -> Vec<Node> {
        let mut seen: FxHashSet<Node> = self.up.nodes.iter().take(1).copied().collect();
        self.up.nodes.iter().chain(&self.down.nodes).copied().filter(|n| seen.insert(*n)).collect()
    }

    fn services(&self, look: &ViewGraph, services: &mut Services<'_>, own: Option<&str>) -> Vec<ServiceOut> {
        let mut found: BTreeMap<String, ServiceOut> = BTreeMap::new();
        for (reached, depends) in [(self.up, true), (self.down, false)] {
            let trails = reached.trails(&look.snapshot);
            for i in self.whole..reached.nodes.len() {
                let Some(name) = services.of(reached.nodes[i]).filter(|s| Some(s.as_str()) != own) else { continue };
                let entry = found.entry(name.clone()).or_insert_with(|| ServiceOut {
                    service_name: name,
                    impact_count: 0,
                    dependencies: 0,
                    // The nearest object of the service comes first.
                    path: trails.path(i).0.iter().map(|n| look.snapshot.name(*n)).collect(),
                });
                if depends { entry.impact_count += 1 } else { entry.dependencies += 1 }
            }
        }
        let mut all: Vec<_> = found.into_values().collect();
        all.sort_by(|a, b| {
            let more = (b.impact_count, b.dependencies).cmp(&(a.impact_count, a.dependencies));
            more.then(a.service_name.cmp(&b.service_name))
        });
        all
    }

    fn contracts(&self, look: &ViewGraph, services: &mut Services<'_>) -> Vec<ContractOut> {
        let s = &look.snapshot;
        let nodes = self.nodes();
        let reached: FxHashSet<Node> = nodes.iter().copied().collect();
        let endpoints = |contract: Node| {
            let near = s.outgoing(contract).nodes.iter().chain(s.incoming(contract).nodes).copied();
            let mut names: Vec<_> =
                near.filter(|n| reached.contains(n) && is_type(look, *n, &["endpoint"])).map(|n| s.name(n)).collect();
            names.sort();
            names.dedup();
            names
        };
        let contracts = nodes.iter().filter(|n| is_type(look, **n, &["contract"]));
        contracts
            .map(|n| ContractOut {
                contract: s.name(*n),
                service_name: services.of(*n),
                endpoints_affected: endpoints(*n),
            })
            .collect()
    }

    fn entities(&self, look: &ViewGraph, services: &mut Services<'_>) -> Vec<DomainEntityOut> {
        let nodes = self.nodes();
        let entities = nodes.iter().filter(|n| is_type(look, **n, &["domainentity", "entity"]));
        entities.map(|n| DomainEntityOut { entity: look.snapshot.name(*n), owning_service: services.of(*n) }).collect()
    }
}

/// The service of each node: the nearest one that contains it, else the `service_name` in its content.
struct Services<'a> {
    look: &'a ViewGraph,
    containment: &'a Containment<'a>,
    known: FxHashMap<Node, Option<String>>,
}

impl Services<'_> {
    fn of(&mut self, node: Node) -> Option<String> {
        if let Some(known) = self.known.get(&node) {
            return known.clone();
        }
        let (mut level, mut seen) = (vec![node], FxHashSet::from_iter([node]));
        let mut found = None;
        for _ in 0..=LEVELS {
            let services = level.iter().filter(|n| is_type(self.look, **n, &["service"]));
            if let Some(service) = services.min_by_key(|n| self.look.snapshot.thing(**n)) {
                found = Some(self.look.snapshot.name(*service));
                break;
            }
            level = level.iter().flat_map(|n| self.containment.containers(*n)).filter(|n| seen.insert(*n)).collect();
        }
        self.known.insert(node, found.clone());
        found
    }

    /// Reads `service_name` of nodes without a container. Returns false if there are too many to read.
    fn ask(&mut self, nodes: &[Node]) -> Result<bool> {
        let s = &self.look.snapshot;
        let mut homeless: Vec<Node> = nodes.iter().copied().filter(|n| self.of(*n).is_none()).collect();
        let all = homeless.len() <= ASKED;
        homeless.truncate(ASKED);
        let contents = self.look.contents(&homeless.iter().map(|n| s.thing(*n)).collect::<Vec<_>>())?;
        for node in homeless {
            let name = contents.get(&s.thing(node)).and_then(|c| c.properties.get("service_name")?.as_str());
            if let Some(name) = name {
                self.known.insert(node, Some(format!("Service:{name}")));
            }
        }
        Ok(all)
    }
}
