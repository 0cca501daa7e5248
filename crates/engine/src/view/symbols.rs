//! Symbols of the code index in a graph: their kinds, names and locations.

mod about;
mod calls;
mod fuzzy;
pub mod keys;

pub use about::about;
pub use calls::{
    CallOut, CallWalk, NamesakesOut, ReachedSymbol, ThroughOut, UnresolvedOut, check_confidence, lines, through,
};
pub use fuzzy::{MatchKind, NameQuery};
pub use keys::{local, name, path};

use crate::view::ViewGraph;
use lukasa_code::type_names::{self, OBJECT_TYPES, RELATIONSHIP_TYPES};
use lukasa_graph::{Edge, Node};
use lukasa_model::{Content, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// Maximum number of nested containers.
const LEVELS: usize = 32;

/// The kind of an object of the code index, in the order of [`OBJECT_TYPES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SymbolKind {
    File,
    Module,
    Class,
    Interface,
    Type,
    Function,
    Method,
    Variable,
    Test,
    Package,
    External,
}

impl SymbolKind {
    const ALL: [SymbolKind; 11] = [
        SymbolKind::File,
        SymbolKind::Module,
        SymbolKind::Class,
        SymbolKind::Interface,
        SymbolKind::Type,
        SymbolKind::Function,
        SymbolKind::Method,
        SymbolKind::Variable,
        SymbolKind::Test,
        SymbolKind::Package,
        SymbolKind::External,
    ];

    /// None for a type that does not belong to the code index.
    pub fn of_type(name: &str) -> Option<SymbolKind> {
        OBJECT_TYPES.iter().position(|known| name.eq_ignore_ascii_case(known)).map(|at| SymbolKind::ALL[at])
    }

    /// Whether it can be called and has a body with calls.
    pub fn runs(self) -> bool {
        matches!(self, SymbolKind::Function | SymbolKind::Method | SymbolKind::Test)
    }

    /// Whether only its name is known: its source is not in the project.
    pub fn outside(self) -> bool {
        matches!(self, SymbolKind::Package | SymbolKind::External)
    }

    /// Whether it has members.
    pub fn contains(self) -> bool {
        matches!(self, SymbolKind::File | SymbolKind::Module | SymbolKind::Class | SymbolKind::Interface)
    }

    /// Rank among several symbols of one name, lowest first: symbols with a body or members, then data, then symbols
    /// known by name only.
    pub fn preference(self) -> u8 {
        match self {
            SymbolKind::Variable => 1,
            kind if kind.outside() => 2,
            _ => 0,
        }
    }

    /// The rank of objects that are not symbols.
    pub const LAST_PREFERENCE: u8 = 3;

    /// Whether callers use the same word for both: a method or a test is a function, an interface is a type.
    pub fn is_like(self, other: SymbolKind) -> bool {
        let group = |kind: SymbolKind| match kind {
            SymbolKind::Method | SymbolKind::Test => SymbolKind::Function,
            SymbolKind::Interface | SymbolKind::Type => SymbolKind::Class,
            kind => kind,
        };
        group(self) == group(other)
    }
}

/// The type of a relationship between symbols, in the order of [`RELATIONSHIP_TYPES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolRelation {
    Contains,
    DefinedIn,
    Imports,
    Calls,
    Extends,
    Implements,
    References,
    Tests,
}

impl SymbolRelation {
    const ALL: [SymbolRelation; 8] = [
        SymbolRelation::Contains,
        SymbolRelation::DefinedIn,
        SymbolRelation::Imports,
        SymbolRelation::Calls,
        SymbolRelation::Extends,
        SymbolRelation::Implements,
        SymbolRelation::References,
        SymbolRelation::Tests,
    ];

    /// None for a type that does not belong to the code index.
    pub fn of_type(name: &str) -> Option<SymbolRelation> {
        let name = type_names::relationship_type(name)?;
        RELATIONSHIP_TYPES.iter().position(|known| *known == name).map(|at| SymbolRelation::ALL[at])
    }
}

/// The direction in which a relationship is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkDirection {
    /// From a symbol to others.
    Out,
    /// From others to the symbol.
    In,
}

/// The graph of a view, read as code.
pub struct Symbols<'a> {
    pub look: &'a ViewGraph,
    /// By type number of the snapshot.
    kinds: Vec<Option<SymbolKind>>,
    rels: Vec<Option<SymbolRelation>>,
}

/// A symbol as responses name it, and where it is defined.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LocatedSymbol {
    /// Its key, or its id where it has none.
    pub key: String,
    #[serde(rename = "type")]
    pub type_name: String,
    /// The kind in detail: struct, enum, constructor, field, constant, macro.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line of its definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// Contents by node, as far as they were read.
pub type SymbolContents = FxHashMap<Node, Content>;

impl<'a> Symbols<'a> {
    pub fn new(look: &'a ViewGraph) -> Symbols<'a> {
        let types = look.snapshot.names().types();
        let kinds = types.iter().map(|t| SymbolKind::of_type(t)).collect();
        let rels = types.iter().map(|t| SymbolRelation::of_type(t)).collect();
        Symbols { look, kinds, rels }
    }

    /// None for a node that does not belong to the code index.
    pub fn kind(&self, node: Node) -> Option<SymbolKind> {
        self.kinds[self.look.snapshot.type_no(node).index()]
    }

    pub fn is(&self, node: Node, kind: SymbolKind) -> bool {
        self.kind(node) == Some(kind)
    }

    /// The neighbours along one type of relationship, each with its edge, in the order in which they were first
    /// recorded.
    pub fn linked(&self, node: Node, rel: SymbolRelation, way: LinkDirection) -> impl Iterator<Item = (Node, Edge)> {
        let s = &self.look.snapshot;
        let links = if way == LinkDirection::Out { s.outgoing(node) } else { s.incoming(node) };
        links
            .iter()
            .filter(move |(_, _, type_no)| self.rels[type_no.index()] == Some(rel))
            .map(|(other, edge, _)| (other, edge))
    }

    /// The confidence of an edge; 1 if it has none.
    pub fn confidence(&self, edge: Edge) -> f64 {
        self.look.snapshot.confidence(edge).unwrap_or(1.0)
    }

    /// The key, or the id of an object without one.
    pub fn key(&self, node: Node) -> Cow<'_, str> {
        match self.look.snapshot.key(node) {
            Some(key) => Cow::Borrowed(key),
            None => Cow::Owned(self.look.snapshot.id(node).to_string()),
        }
    }

    /// The name in a sentence: `Class::method`, without the file.
    pub fn short(&self, node: Node) -> String {
        match self.look.snapshot.key(node) {
            Some(key) => format!("`{}`", local(key)),
            None => format!("`{}`", self.look.snapshot.id(node)),
        }
    }

    /// The class, module or file that directly contains the symbol.
    pub fn container(&self, node: Node) -> Option<Node> {
        self.linked(node, SymbolRelation::Contains, LinkDirection::In)
            .map(|(above, _)| above)
            .find(|above| self.kind(*above).is_some())
    }

    /// All containers of the symbol, up to the file.
    pub fn containers(&self, node: Node) -> Vec<Node> {
        self.above(node).collect()
    }

    /// The containers of the symbol, nearest first.
    pub fn above(&self, node: Node) -> impl Iterator<Item = Node> {
        std::iter::successors(self.container(node), |at| self.container(*at)).take(LEVELS)
    }

    /// The file that the symbol is written in; itself if it is a file. A method written outside of its type is
    /// contained in the type and defined in another file: the nearest file to the symbol is returned.
    pub fn file(&self, node: Node) -> Option<Node> {
        let written_in = |at: Node| match self.is(at, SymbolKind::File) {
            true => Some(at),
            false => self
                .linked(at, SymbolRelation::DefinedIn, LinkDirection::Out)
                .map(|(to, _)| to)
                .find(|to| self.is(*to, SymbolKind::File)),
        };
        std::iter::once(node).chain(self.above(node)).find_map(written_in)
    }

    /// Whether it is a test, or written within one.
    pub fn is_test(&self, node: Node) -> bool {
        let marked = |n: Node| self.look.snapshot.labels(n).iter().any(|label| type_names::is_test_label(label));
        marked(node) || self.above(node).any(marked) || self.file(node).is_some_and(marked)
    }

    /// The symbol that it is a member of: its container, or the type of a method that is written outside of it, as in
    /// Rust and Go.
    pub fn owner(&self, node: Node) -> Option<Node> {
        let container = self.container(node)?;
        let beside = self.is(node, SymbolKind::Method) && !self.is_type(container);
        beside.then(|| self.beside(node, container)).flatten().or(Some(container))
    }

    /// The type of a method that is written outside of it: one in the same file, or one that the method or file refers
    /// to.
    fn beside(&self, method: Node, container: Node) -> Option<Node> {
        let s = &self.look.snapshot;
        let above = keys::above(s.key(method)?)?;
        let here = self.linked(container, SymbolRelation::Contains, LinkDirection::Out).map(|(other, _)| other);
        let same_file = here.filter(|other| self.is_type(*other)).find(|other| s.key(*other) == Some(above));
        same_file.or_else(|| {
            let wanted = name(above);
            let refer =
                |from: Node| self.linked(from, SymbolRelation::References, LinkDirection::Out).map(|(other, _)| other);
            refer(method)
                .chain(refer(container))
                .find(|other| self.is_type(*other) && s.key(*other).is_some_and(|key| name(key) == wanted))
        })
    }

    fn is_type(&self, node: Node) -> bool {
        matches!(self.kind(node), Some(SymbolKind::Class | SymbolKind::Interface | SymbolKind::Type))
    }

    /// The direct members; of a type also the methods written outside of it, in its file or another.
    pub fn members(&self, node: Node) -> Vec<Node> {
        let written = |within: Node| {
            let all = self.linked(within, SymbolRelation::Contains, LinkDirection::Out).map(|(member, _)| member);
            all.filter(|member| self.kind(*member).is_some())
        };
        if self.is(node, SymbolKind::File) {
            return self.written_in(node);
        }
        let mut all: Vec<Node> = written(node).collect();
        let s = &self.look.snapshot;
        let Some(key) = s.key(node).filter(|_| self.is_type(node)) else { return all };
        let own = name(key);
        let of_that_name = |method: &Node| {
            self.is(*method, SymbolKind::Method)
                && s.key(*method).and_then(keys::above).is_some_and(|above| name(above) == own)
        };
        let refer = self.linked(node, SymbolRelation::References, LinkDirection::In).map(|(from, _)| from);
        let files: Vec<Node> = self.container(node).into_iter().chain(refer).collect();
        let near = files.into_iter().flat_map(|from| written(from).chain([from]));
        let mut seen: FxHashSet<Node> = all.iter().copied().collect();
        let beside = near.filter(|m| of_that_name(m) && seen.insert(*m) && self.owner(*m) == Some(node));
        let beside: Vec<Node> = beside.collect();
        all.extend(beside);
        all
    }

    /// The top level of a file: what it contains, and methods whose types are written in other files.
    fn written_in(&self, file: Node) -> Vec<Node> {
        let contained = self.linked(file, SymbolRelation::Contains, LinkDirection::Out).map(|(member, _)| member);
        let mut all: Vec<Node> = contained.filter(|member| self.kind(*member).is_some()).collect();
        let defined = self.linked(file, SymbolRelation::DefinedIn, LinkDirection::In).map(|(member, _)| member);
        let elsewhere = |member: &Node| self.container(*member).is_none_or(|within| self.file(within) != Some(file));
        all.extend(defined.filter(|member| self.kind(*member).is_some()).filter(elsewhere));
        all
    }

    /// The node and everything in it, at most `most` nodes. Also returns whether that is everything.
    pub fn whole(&self, node: Node, most: usize) -> (Vec<Node>, bool) {
        let mut all = vec![node];
        let mut seen = FxHashSet::from_iter([node]);
        let mut next = 0;
        let file = self.is(node, SymbolKind::File).then_some(node);
        while next < all.len() {
            let members: Vec<Node> = match (next, file) {
                (0, _) => self.members(node),
                (_, None) => self
                    .linked(all[next], SymbolRelation::Contains, LinkDirection::Out)
                    .map(|(member, _)| member)
                    .collect(),
                // Of a file, only what is written in it: members of its types in other files are left out.
                (_, Some(_)) => {
                    let contained =
                        self.linked(all[next], SymbolRelation::Contains, LinkDirection::Out).map(|(member, _)| member);
                    contained.filter(|member| self.file(*member) == file).collect()
                }
            };
            for member in members {
                if self.kind(member).is_some() && seen.insert(member) {
                    if all.len() == most {
                        return (all, false);
                    }
                    all.push(member);
                }
            }
            next += 1;
        }
        (all, true)
    }

    /// The overload of a function that was recorded first; itself if there are no others.
    pub fn first_overload(&self, node: Node) -> Node {
        let s = &self.look.snapshot;
        let Some(own) = s.key(node).filter(|_| self.kind(node).is_some_and(SymbolKind::runs)).map(keys::plain) else {
            return node;
        };
        let same = |other: &Node| {
            let key = s.key(*other).filter(|key| key.starts_with(own) && !s.is_ended(*other));
            key.is_some_and(|key| keys::plain(key) == own) && s.type_no(*other) == s.type_no(node)
        };
        s.nodes().into_iter().filter(same).min_by_key(|other| s.thing(*other)).unwrap_or(node)
    }

    /// The number of symbols that call it.
    pub fn callers(&self, node: Node) -> usize {
        self.linked(node, SymbolRelation::Calls, LinkDirection::In).count()
    }

    /// The contents of nodes, in one read.
    pub fn contents(&self, nodes: &[Node]) -> Result<SymbolContents> {
        let s = &self.look.snapshot;
        let things: Vec<_> = nodes.iter().map(|n| s.thing(*n)).collect();
        let found = self.look.contents(&things)?;
        Ok(found.into_iter().filter_map(|(no, content)| Some((s.find(no)?, content))).collect())
    }

    /// A symbol for a response, with title and location from `contents` if it is there.
    pub fn placed(&self, node: Node, contents: &SymbolContents) -> LocatedSymbol {
        let s = &self.look.snapshot;
        let content = contents.get(&node);
        let key = self.key(node).into_owned();
        let inside = self.kind(node).is_some_and(|k| !k.outside());
        let path_in_key = || inside.then(|| path(&key).to_string());
        LocatedSymbol {
            title: content.and_then(|c| c.title.clone()).unwrap_or_else(|| name(&key).to_string()),
            type_name: s.type_name(node).to_string(),
            subtype: content.and_then(|c| c.subtype.clone()),
            path: content.and_then(|c| text(c, "path")).or_else(path_in_key),
            line: content.and_then(|c| number(c, "line")),
            key,
        }
    }
}

/// A text property; none if it is empty.
pub fn text(content: &Content, property: &str) -> Option<String> {
    content.properties.get(property).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned)
}

/// A number property.
pub fn number(content: &Content, property: &str) -> Option<u64> {
    content.properties.get(property).and_then(Value::as_u64)
}

/// Whether a property is true.
pub fn flagged(content: &Content, property: &str) -> bool {
    content.properties.get(property) == Some(&Value::Bool(true))
}
