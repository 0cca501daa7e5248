//! `code_explain`: describes a symbol, file or module with its dependencies and dependents.

use crate::features::code::rendering;
use crate::features::graph::communities::CommunityCache;
use crate::registry::META;
use crate::registry::{Meta, Op, Prompt, Resource};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::ViewGraph;
use crate::view::symbols::{
    LinkDirection, LocatedSymbol, SymbolContents, SymbolKind, SymbolRelation, Symbols, about, flagged, number, text,
};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_graph::community::CommunityOptions;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Content, Result, Time, Tx, VersionId};
use lukasa_store::VersionFields;
use lukasa_store::ledger::ViewSpec;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct CodeExplain;

/// Maximum number of members whose relationships count for a class or file, and that are sorted by source position.
const MEMBERS: usize = 5_000;
/// Boolean properties of a symbol.
const FLAGS: [&str; 6] = ["exported", "async", "abstract", "static", "entry", "test"];

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The symbol: `Type:key`, a key, an id, a name, or the end of a key such as `Class::method` or `auth.py`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Maximum number of symbols per list, up to 1,000.
    #[serde(default)]
    pub limit: Limit<10>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// What it depends on; for a class, module or file, what its members depend on outside of it.
    pub dependencies: Vec<GroupOut>,
    /// What depends on it or on its members.
    pub dependents: Vec<GroupOut>,
    pub symbol: ExplainedSymbolOut,
    /// The symbol that contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<LocatedSymbol>,
    /// Its members in source order; for a type also methods defined in other files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberOut>,
    #[serde(skip_serializing_if = "is_zero")]
    pub total_members: usize,
    pub importance: ImportanceOut,
    /// Its community, if communities were computed on this branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub community: Option<SymbolCommunityOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryOut>,
    /// A list was cut off at `limit`.
    pub truncated: bool,
    pub view: ViewEcho,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

#[derive(Serialize, JsonSchema)]
pub struct ExplainedSymbolOut {
    #[serde(flatten)]
    pub symbol: LocatedSymbol,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// One-sentence description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// Absent means public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
    /// exported, async, abstract, static, entry, test.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<&'static str>,
    /// Number of lines, for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// Calls that could not be resolved; for a class or file, those of all its members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unresolved_calls: Option<u64>,
    /// Why the file could not be read completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Symbols related to it by one kind of relationship.
#[derive(Serialize, JsonSchema)]
pub struct GroupOut {
    /// calls, calls_outside, imports, inherits, implements, references; called_by, imported_by, inherited_by,
    /// implemented_by, referenced_by, tested_by.
    pub relation: &'static str,
    /// Number of symbols before the limit.
    pub total: usize,
    /// Highest confidence first, then by key.
    pub symbols: Vec<RelatedSymbolOut>,
}

#[derive(Serialize, JsonSchema)]
pub struct RelatedSymbolOut {
    #[serde(flatten)]
    pub symbol: LocatedSymbol,
    /// 1 where none is recorded.
    pub confidence: f64,
}

#[derive(Serialize, JsonSchema)]
pub struct MemberOut {
    #[serde(flatten)]
    pub symbol: LocatedSymbol,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// Rank by PageRank among all symbols of the project.
#[derive(Serialize, JsonSchema)]
pub struct ImportanceOut {
    pub place: usize,
    pub of: usize,
    pub pagerank: f64,
}

#[derive(Serialize, JsonSchema)]
pub struct SymbolCommunityOut {
    pub key: String,
    pub summary: String,
    pub size: usize,
}

/// The visible version.
#[derive(Serialize, JsonSchema)]
pub struct HistoryOut {
    /// Time of the transaction that last changed it.
    pub recorded_at: Time,
    pub tx: Tx,
    pub version: u32,
    pub version_id: VersionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Op for CodeExplain {
    const META: Meta = Meta {
        name: "code_explain",
        shown: ResponseView::Cut(rendering::explain),
        default_tool: &["ref", "limit"],
        answer: &[
            "symbol.key",
            "symbol.path",
            "symbol.line",
            "symbol.signature",
            "symbol.about",
            "dependents.relation",
            "dependents.total",
            "dependents.symbols.key",
            "dependents.symbols.line",
            "dependencies.relation",
            "dependencies.total",
            "dependencies.symbols.key",
            "dependencies.symbols.line",
            "members.key",
            "members.line",
            "total_members",
            "symbol.fault",
        ],
        summary: "Explain a symbol or file",
        description: "Its kind and location, signature and doc comment, container and members, dependencies (calls, \
                      imports, bases) and dependents (callers, importers, subclasses, tests), how central it is, and \
                      when it was last changed.",
        verb: "explain",
        toolset: "code",
        names: &["ref"],
        positional: &["ref"],
        aliases: &[("symbol", "ref"), ("node_id", "ref")],
        examples: &["lukasa explain login", "lukasa explain src/auth.py --limit 30"],
        resource: Some(Resource {
            path: "symbol/{symbol}",
            title: "Symbol",
            about: "A symbol or file explained",
            field: "ref",
        }),
        prompt: Some(Prompt {
            name: "explain_module",
            title: "Explain this module",
            about: "What a file or symbol does, who uses it and what it uses",
            argument: ("module", "A file or symbol"),
            field: "ref",
            with: &[],
            asks: "Explain this module to someone new to the project, from what is known of it below.",
        }),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let look = engine.view_graph(context, &request.view)?;
        let symbols = Symbols::new(&look);
        let node = look.node(&request.reference)?;
        let around = Around::new(&symbols, node);
        let (mut dependencies, mut dependents) = (around.dependencies(), around.dependents());
        let mut members = symbols.members(node);
        let container = symbols.owner(node);
        let mut read: Vec<Node> = around.whole.clone();
        read.extend(container);
        read.extend(members.iter().take(MEMBERS));
        for (_, others) in dependencies.iter_mut().chain(&mut dependents) {
            others.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| symbols.key(a.0).cmp(&symbols.key(b.0))));
            read.extend(others.iter().take(request.limit.get()).map(|(other, _)| *other));
        }
        let contents = symbols.contents(&read)?;
        members.sort_by_cached_key(|m| {
            let line = contents.get(m).and_then(|c| number(c, "line"));
            // Members defined in other files come last.
            let elsewhere = symbols.file(*m) != symbols.file(node);
            (elsewhere, line.unwrap_or(u64::MAX), symbols.key(*m).into_owned())
        });
        let total_members = members.len();
        members.truncate(request.limit.get().max(30));
        let groups = |all: Vec<Group>| -> Vec<GroupOut> {
            let shown = |(relation, others): Group| GroupOut {
                relation,
                total: others.len(),
                symbols: others
                    .iter()
                    .take(request.limit.get())
                    .map(|(other, confidence)| RelatedSymbolOut {
                        symbol: symbols.placed(*other, &contents),
                        confidence: *confidence,
                    })
                    .collect(),
            };
            all.into_iter().map(shown).collect()
        };
        let cut = dependencies.iter().chain(&dependents).any(|(_, others)| others.len() > request.limit.get());
        let truncated = cut || total_members > members.len() || !around.complete;
        let symbol = symbol_out(&symbols, &around, node, &contents);
        Ok(Response {
            summary: in_words(&symbols, node, &symbol, &dependencies, &dependents),
            dependencies: groups(dependencies),
            dependents: groups(dependents),
            symbol,
            container: container.map(|c| symbols.placed(c, &contents)),
            members: members
                .iter()
                .map(|m| MemberOut {
                    symbol: symbols.placed(*m, &contents),
                    signature: contents.get(m).and_then(|c| text(c, "signature")),
                })
                .collect(),
            total_members,
            importance: importance(&symbols, node),
            community: community(engine, &look, node)?,
            history: history(&look, node)?,
            truncated,
            view: look.view.echo(),
        })
    }
}

/// Related symbols with the confidence of each relationship.
type Group = (&'static str, Vec<(Node, f64)>);

/// A symbol with all its members.
struct Around<'s, 'a> {
    symbols: &'s Symbols<'a>,
    whole: Vec<Node>,
    inside: FxHashSet<Node>,
    complete: bool,
}

impl<'s, 'a> Around<'s, 'a> {
    fn new(symbols: &'s Symbols<'a>, node: Node) -> Self {
        let (whole, complete) = symbols.whole(node, MEMBERS);
        let inside = whole.iter().copied().collect();
        Around { symbols, whole, inside, complete }
    }

    /// Returns the related symbols outside of it, each once, with the highest confidence.
    fn others(&self, rel: SymbolRelation, way: LinkDirection) -> Vec<(Node, f64)> {
        let mut best: FxHashMap<Node, f64> = FxHashMap::default();
        for node in &self.whole {
            for (other, edge) in self.symbols.linked(*node, rel, way) {
                if !self.inside.contains(&other) {
                    let confidence = self.symbols.confidence(edge);
                    let known = best.entry(other).or_insert(confidence);
                    *known = known.max(confidence);
                }
            }
        }
        best.into_iter().collect()
    }

    fn dependencies(&self) -> Vec<Group> {
        let outside = |(node, _): &(Node, f64)| self.symbols.kind(*node).is_some_and(SymbolKind::outside);
        let (external, calls): (Vec<_>, Vec<_>) =
            self.others(SymbolRelation::Calls, LinkDirection::Out).into_iter().partition(outside);
        let mut all = vec![("calls", calls), ("calls_outside", external)];
        for (name, rel) in [
            ("imports", SymbolRelation::Imports),
            ("inherits", SymbolRelation::Extends),
            ("implements", SymbolRelation::Implements),
            ("references", SymbolRelation::References),
        ] {
            all.push((name, self.others(rel, LinkDirection::Out)));
        }
        all.retain(|(_, others)| !others.is_empty());
        all
    }

    fn dependents(&self) -> Vec<Group> {
        let is_test = |(node, _): &(Node, f64)| self.symbols.is_test(*node);
        let (mut tests, callers): (Vec<_>, Vec<_>) =
            self.others(SymbolRelation::Calls, LinkDirection::In).into_iter().partition(is_test);
        let by_file = self.others(SymbolRelation::Tests, LinkDirection::In);
        if !by_file.is_empty() {
            // For a file, list the test files instead of every test in them.
            tests = by_file;
        }
        let mut all = vec![("called_by", callers)];
        for (name, rel) in [
            ("imported_by", SymbolRelation::Imports),
            ("inherited_by", SymbolRelation::Extends),
            ("implemented_by", SymbolRelation::Implements),
            ("referenced_by", SymbolRelation::References),
        ] {
            all.push((name, self.others(rel, LinkDirection::In)));
        }
        all.push(("tested_by", tests));
        all.retain(|(_, others)| !others.is_empty());
        all
    }
}

fn symbol_out(
    symbols: &Symbols<'_>,
    around: &Around<'_, '_>,
    node: Node,
    contents: &SymbolContents,
) -> ExplainedSymbolOut {
    let empty = Content::default();
    let content = contents.get(&node).unwrap_or(&empty);
    let unresolved = around.whole.iter().filter_map(|n| contents.get(n)).filter_map(|c| number(c, "unresolved_calls"));
    let signature = text(content, "signature");
    ExplainedSymbolOut {
        symbol: symbols.placed(node, contents),
        end_line: number(content, "end_line"),
        language: text(content, "language"),
        about: about(content, signature.as_deref(), &symbols.key(node)),
        signature,
        doc: text(content, "doc"),
        visibility: text(content, "visibility"),
        flags: FLAGS.into_iter().filter(|flag| flagged(content, flag)).collect(),
        lines: number(content, "lines"),
        unresolved_calls: Some(unresolved.sum()).filter(|n| *n > 0),
        fault: text(content, "fault"),
    }
}

/// Returns one sentence on what the symbol is and what depends on it.
fn in_words(
    symbols: &Symbols<'_>,
    node: Node,
    symbol: &ExplainedSymbolOut,
    needs: &[Group],
    needed: &[Group],
) -> String {
    let kind = symbol.symbol.subtype.clone().unwrap_or_else(|| symbol.symbol.type_name.to_lowercase());
    let mut sentence = format!("{} is a {kind}", symbols.short(node));
    if kind.starts_with(['a', 'e', 'i', 'o', 'u']) {
        sentence = format!("{} is an {kind}", symbols.short(node));
    }
    if let (Some(path), Some(line)) = (&symbol.symbol.path, symbol.symbol.line) {
        sentence += &format!(" in {path}:{line}");
    }
    if let Some(about) = &symbol.about {
        sentence += &format!(": {}", about.trim_end_matches('.'));
    }
    let total = |groups: &[Group], names: &[&str]| -> usize {
        groups.iter().filter(|(name, _)| names.contains(name)).map(|(_, others)| others.len()).sum()
    };
    let mut parts = Vec::new();
    for (n, one) in [
        (total(needed, &["called_by"]), "caller"),
        (total(needed, &["imported_by"]), "importer"),
        (total(needed, &["inherited_by", "implemented_by"]), "subtype"),
        (total(needed, &["tested_by"]), "test"),
        (total(needs, &["calls", "calls_outside"]), "callee"),
        (total(needs, &["imports"]), "import"),
    ] {
        if n > 0 {
            parts.push(count(n, one));
        }
    }
    if parts.is_empty() { sentence } else { format!("{sentence}; {}", parts.join(", ")) }
}

fn importance(symbols: &Symbols<'_>, node: Node) -> ImportanceOut {
    let s = &symbols.look.snapshot;
    let own = s.rank(node);
    let (mut place, mut of) = (1, 0);
    for (other, rank) in s.flat().nodes.iter().zip(s.ranks().iter()) {
        if symbols.kind(*other).is_some_and(|k| !k.outside()) || *other == node {
            of += 1;
            place += usize::from(*rank > own);
        }
    }
    ImportanceOut { place, of, pagerank: own }
}

/// Returns the community only if communities are cached: computing them takes longer than the whole operation.
fn community(engine: &Engine, look: &ViewGraph, node: Node) -> Result<Option<SymbolCommunityOut>> {
    let known = look.view.known;
    let kept =
        engine.state::<CommunityCache>().kept(&look.ledger, look.view.branch, known, &CommunityOptions::default())?;
    let Some(kept) = kept.filter(|_| look.is_head) else { return Ok(None) };
    let found = kept.of(look.snapshot.thing(node)).map(|at| &kept.communities[at]);
    let out = |c: &crate::features::graph::communities::CommunityOut| SymbolCommunityOut {
        key: c.key.clone(),
        summary: c.summary.clone(),
        size: c.size,
    };
    Ok(found.map(out))
}

fn history(look: &ViewGraph, node: Node) -> Result<Option<HistoryOut>> {
    let states = look.ledger.states(&look.view, &[look.snapshot.thing(node)], VersionFields::Header)?;
    let Some(statement) = states.into_iter().next().and_then(|state| state.statement) else { return Ok(None) };
    let tx = statement.version.tx();
    let header = look.ledger.transactions(tx, tx, 1)?.pop().map(|t| t.header).unwrap_or_default();
    Ok(Some(HistoryOut {
        recorded_at: statement.recorded_at,
        tx,
        version: statement.number,
        version_id: statement.version,
        git_commit: header.git_commit,
        author: header.author,
        reason: header.reason,
    }))
}
