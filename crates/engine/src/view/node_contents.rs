//! Reads the contents of several nodes at once.

use super::ViewGraph;
use lukasa_graph::Node;
use lukasa_graph::contents::{ObjectContent, known};
use lukasa_model::{Content, Result, Time};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Contents of nodes, with the times they were written, and the names of sensitive properties that were left out.
#[derive(Default)]
pub struct NodeContents(FxHashMap<Node, Arc<ObjectContent>>);

impl NodeContents {
    /// Reads the contents of nodes.
    pub fn of(look: &ViewGraph, nodes: &[Node]) -> Result<NodeContents> {
        Ok(NodeContents(known(&look.snapshot, &look.ledger, nodes)?.into_iter().collect()))
    }

    /// Reads the contents of further nodes.
    pub fn add(&mut self, look: &ViewGraph, nodes: &[Node]) -> Result<()> {
        let missing: Vec<Node> = nodes.iter().copied().filter(|node| !self.0.contains_key(node)).collect();
        self.0.extend(known(&look.snapshot, &look.ledger, &missing)?);
        Ok(())
    }

    pub fn content(&self, node: Node) -> Option<&Content> {
        self.0.get(&node).map(|known| &known.content)
    }

    /// When the visible version of a node was written.
    pub fn stated(&self, node: Node) -> Option<Time> {
        self.0.get(&node).map(|known| known.stated)
    }

    /// Names of the sensitive properties that were left out.
    pub fn hidden(&self, node: Node) -> impl Iterator<Item = String> {
        self.0.get(&node).into_iter().flat_map(|known| &known.hidden).map(|name| name.to_string())
    }
}
