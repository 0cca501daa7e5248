//! The symbols that patterns are searched in, and their properties.

use crate::view::symbols::{LinkDirection, SymbolKind, SymbolRelation, Symbols, keys};
use lukasa_graph::Node;
use lukasa_graph::contents::{PropertyNo, PropertyReader, in_row};
use lukasa_graph::cypher::value::Value;
use lukasa_model::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// The code of a view.
pub struct Code<'a> {
    pub symbols: &'a Symbols<'a>,
    /// Symbols whose source is part of the project, in the order they were first recorded.
    pub own: Vec<(Node, SymbolKind)>,
    path: Option<&'a str>,
    contents: PropertyReader<'a>,
}

impl<'a> Code<'a> {
    /// Collects the symbols of a view; `path` limits the requested files to a prefix.
    pub fn new(symbols: &'a Symbols<'a>, path: Option<&'a str>) -> Code<'a> {
        let s = &symbols.look.snapshot;
        let own = |node: Node| Some((node, symbols.kind(node).filter(|kind| !kind.outside())?));
        let own: Vec<(Node, SymbolKind)> = s.nodes().into_iter().filter_map(own).collect();
        Code { symbols, own, path, contents: PropertyReader::new(s, &symbols.look.ledger) }
    }

    /// Returns whether the symbol is in a requested file.
    pub fn is_asked(&self, node: Node) -> bool {
        self.path.is_none_or(|path| self.symbols.key(node).starts_with(path))
    }

    /// Returns the requested symbols that are not part of a test.
    pub fn asked(&self, wanted: impl Fn(SymbolKind) -> bool) -> impl Iterator<Item = (Node, SymbolKind)> {
        self.own
            .iter()
            .copied()
            .filter(move |(node, kind)| wanted(*kind) && self.is_asked(*node) && !self.symbols.is_test(*node))
    }

    pub fn key(&self, node: Node) -> Cow<'_, str> {
        self.symbols.key(node)
    }

    pub fn name(&self, node: Node) -> String {
        keys::name(&self.key(node)).to_string()
    }

    /// Returns the nodes connected to a node by a relationship type, in one direction.
    pub fn others(&self, node: Node, rel: SymbolRelation, way: LinkDirection) -> impl Iterator<Item = Node> {
        self.symbols.linked(node, rel, way).map(|(other, _)| other).filter(move |other| *other != node)
    }

    /// Returns the files that import this file, or that it imports.
    pub fn files(&self, file: Node, way: LinkDirection) -> FxHashSet<Node> {
        self.others(file, SymbolRelation::Imports, way)
            .filter(|other| self.symbols.is(*other, SymbolKind::File))
            .collect()
    }

    fn property(&self, name: &str) -> PropertyNo {
        self.symbols.look.snapshot.properties().number(name)
    }

    /// Returns a numeric property of a symbol; 0 if it is missing.
    pub fn number(&self, node: Node, name: &str) -> Result<u64> {
        Ok(match in_row(self.contents.node(node)?, self.property(name)) {
            Some(Value::Integer(n)) => u64::try_from(*n).unwrap_or(0),
            _ => 0,
        })
    }

    /// Whether a boolean property of a symbol is true.
    pub fn holds(&self, node: Node, name: &str) -> Result<bool> {
        Ok(matches!(in_row(self.contents.node(node)?, self.property(name)), Some(Value::Bool(true))))
    }

    /// Returns a text property of a symbol.
    pub fn text(&self, node: Node, name: &str) -> Result<Option<String>> {
        Ok(match in_row(self.contents.node(node)?, self.property(name)) {
            Some(Value::Text(text)) => Some(text.to_string()),
            _ => None,
        })
    }

    /// Returns the names in unresolved calls, with the number of calls of each.
    pub fn unresolved_names(&self) -> Result<FxHashMap<String, usize>> {
        let sites = self.property("unresolved_sites");
        let mut all: FxHashMap<String, usize> = FxHashMap::default();
        for (file, _) in self.own.iter().filter(|(_, kind)| *kind == SymbolKind::File) {
            let Some(Value::List(list)) = in_row(self.contents.node(*file)?, sites) else { continue };
            for site in list.iter() {
                if let Value::Text(site) = site
                    && let Some((name, _)) = site.rsplit_once(':')
                {
                    *all.entry(name.to_owned()).or_default() += 1;
                }
            }
        }
        Ok(all)
    }

    /// Returns the names that other files import from a file, as far as imports list them.
    pub fn imported_names(&self, file: Node) -> Result<FxHashSet<String>> {
        let names = self.property("names");
        let mut all = FxHashSet::default();
        for (_, edge) in self.symbols.linked(file, SymbolRelation::Imports, LinkDirection::In) {
            if let Some(Value::List(list)) = in_row(self.contents.edge(edge)?, names) {
                all.extend(list.iter().filter_map(|name| match name {
                    Value::Text(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
        }
        Ok(all)
    }
}
