//! Shapes: types of objects with relationships between them, such as `Class -EXTENDS-> Class`.

use super::PatternMatch;
use crate::view::ViewGraph;
use crate::view::symbols::{Symbols, keys};
use lukasa_graph::walk::Filter;
use lukasa_graph::{Edge, Node, Snapshot};
use lukasa_model::{Error, ErrorCode, Result};

/// Maximum number of objects in a shape; use openCypher for longer ones.
const LONGEST: usize = 6;
/// Maximum number of matches counted, and of relationships examined.
const MOST: usize = 10_000;
const LOOKED_AT: usize = 2_000_000;
/// Names that other tools use for relationship types of the code index.
const ALSO: [(&str, &str); 1] = [("DEPENDS_ON", "IMPORTS")];

/// A sequence of objects and the relationships between neighbours.
pub struct GraphShape {
    objects: Vec<ShapeObject>,
    steps: Vec<ShapeStep>,
}

struct ShapeObject {
    types: Filter,
    /// Required last part of the key, if any.
    name: Option<String>,
}

struct ShapeStep {
    types: Filter,
    forward: bool,
}

/// A parsed shape, before its types are resolved.
#[derive(Debug, PartialEq)]
struct ParsedShape {
    /// Type and name; `None` matches any.
    objects: Vec<(Option<String>, Option<String>)>,
    /// Type, and whether the arrow points right.
    steps: Vec<(Option<String>, bool)>,
}

impl ParsedShape {
    fn read(text: &str) -> Result<ParsedShape> {
        let wrong = |what: &str| {
            Error::invalid(ErrorCode::InvalidPattern, format!("`{text}` is no shape: {what}")).hint(
                "write it as `Class -EXTENDS-> Class <-CONTAINS- File`; `*` is any object, `-->` any relationship, \
                 `Class:Session` one name",
            )
        };
        let (mut objects, mut steps) = (Vec::new(), Vec::new());
        let mut rest = text;
        loop {
            let end = rest.find(['-', '<']).unwrap_or(rest.len());
            objects.push(object(&rest[..end]).ok_or_else(|| wrong("an object is missing"))?);
            rest = &rest[end..];
            if rest.is_empty() {
                break;
            }
            let (step, after) = step(rest).ok_or_else(|| wrong("an arrow has no end"))?;
            steps.push(step);
            rest = after;
        }
        if objects.len() > LONGEST {
            return Err(wrong(&format!("it has more than {LONGEST} objects")));
        }
        Ok(ParsedShape { objects, steps })
    }
}

fn object(text: &str) -> Option<(Option<String>, Option<String>)> {
    let text = text.trim().trim_start_matches('(').trim_end_matches(')').trim();
    let (type_name, name) = match text.split_once(':') {
        Some((type_name, name)) => (type_name.trim(), Some(name.trim().to_owned()).filter(|name| !name.is_empty())),
        None => (text, None),
    };
    match type_name {
        "" if name.is_none() => None,
        "" | "*" => Some((None, name)),
        type_name => Some((Some(type_name.to_owned()), name)),
    }
}

/// Parses the arrow at the start of the text and returns it with the rest.
fn step(text: &str) -> Option<((Option<String>, bool), &str)> {
    let forward = !text.starts_with('<');
    let (label, after) = match forward {
        true => text[1..].split_once('>').filter(|(label, _)| label.ends_with('-') || label.is_empty())?,
        false => text.strip_prefix("<-")?.split_once('-')?,
    };
    let label = label.trim_matches(|c: char| c.is_whitespace() || "-[]:".contains(c));
    let fits = label.chars().all(|c| c.is_alphanumeric() || c == '_');
    fits.then(|| ((Some(label.to_owned()).filter(|label| !label.is_empty()), forward), after))
}

impl GraphShape {
    /// Parses a shape and resolves its types in a view.
    pub fn read(text: &str, look: &ViewGraph) -> Result<GraphShape> {
        let written = ParsedShape::read(text)?;
        let list = |name: Option<String>| name.into_iter().collect::<Vec<String>>();
        let objects = written
            .objects
            .into_iter()
            .map(|(type_name, name)| Ok(ShapeObject { types: look.filter(&[], &list(type_name), &[])?, name }));
        let steps = written.steps.into_iter().map(|(type_name, forward)| {
            let type_name = type_name.map(|name| spelled(&look.snapshot, name));
            Ok(ShapeStep { types: look.filter(&list(type_name), &[], &[])?, forward })
        });
        Ok(GraphShape { objects: objects.collect::<Result<_>>()?, steps: steps.collect::<Result<_>>()? })
    }

    /// Returns the matches whose first object is in a requested file, sorted by key, and whether these are all.
    pub fn find(&self, symbols: &Symbols<'_>, path: Option<&str>) -> (Vec<PatternMatch>, bool) {
        let s = &symbols.look.snapshot;
        let asked = |node: &Node| path.is_none_or(|path| symbols.key(*node).starts_with(path));
        let mut first: Vec<Node> = s.nodes().into_iter().filter(|n| self.fits(s, 0, *n) && asked(n)).collect();
        first.sort_by_cached_key(|node| (symbols.key(*node).into_owned(), s.thing(*node)));
        let mut search =
            ShapeSearch { shape: self, symbols, found: vec![], edges: vec![], nodes: vec![], looked_at: 0 };
        let complete = first.into_iter().all(|node| search.go_on(node));
        (search.found, complete)
    }

    fn fits(&self, snapshot: &Snapshot, at: usize, node: Node) -> bool {
        let ShapeObject { types, name } = &self.objects[at];
        let named = |name: &String| snapshot.key(node).is_some_and(|key| keys::name(key).eq_ignore_ascii_case(name));
        types.node(snapshot, node) && !snapshot.is_ended(node) && name.as_ref().is_none_or(named)
    }
}

/// Maps another tool's relationship type to ours, unless this graph uses that type itself.
fn spelled(snapshot: &Snapshot, name: String) -> String {
    let used = |name: &str| snapshot.names().types().iter().any(|known| known.eq_ignore_ascii_case(name));
    let other = ALSO.iter().find(|(other, _)| other.eq_ignore_ascii_case(&name));
    match other {
        Some((_, ours)) if !used(&name) && used(ours) => (*ours).to_string(),
        _ => name,
    }
}

struct ShapeSearch<'a> {
    shape: &'a GraphShape,
    symbols: &'a Symbols<'a>,
    found: Vec<PatternMatch>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    looked_at: usize,
}

impl ShapeSearch<'_> {
    /// Extends the match with a node; returns false when a limit is reached.
    fn go_on(&mut self, node: Node) -> bool {
        let (shape, symbols) = (self.shape, self.symbols);
        let s = &symbols.look.snapshot;
        self.nodes.push(node);
        let at = self.edges.len();
        let mut goes_on = true;
        match shape.steps.get(at) {
            None if self.found.len() == MOST => goes_on = false,
            None => self.found.push(PatternMatch { node: self.nodes[0], detail: self.in_words() }),
            Some(step) => {
                let links = if step.forward { s.outgoing(node) } else { s.incoming(node) };
                for (to, edge, type_no) in links.iter() {
                    self.looked_at += 1;
                    if self.looked_at > LOOKED_AT {
                        goes_on = false;
                        break;
                    }
                    // A relationship may be used for one step only.
                    if step.types.edge_type(type_no) && shape.fits(s, at + 1, to) && !self.edges.contains(&edge) {
                        self.edges.push(edge);
                        goes_on = self.go_on(to);
                        self.edges.pop();
                        if !goes_on {
                            break;
                        }
                    }
                }
            }
        }
        self.nodes.pop();
        goes_on
    }

    fn in_words(&self) -> String {
        let s = &self.symbols.look.snapshot;
        let mut text = self.symbols.key(self.nodes[0]).into_owned();
        for ((edge, node), step) in self.edges.iter().zip(&self.nodes[1..]).zip(&self.shape.steps) {
            let name = s.edge_type(*edge);
            text += &if step.forward { format!(" -{name}-> ") } else { format!(" <-{name}- ") };
            text += &self.symbols.key(*node);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read() {
        let some = |text: &str| Some(text.to_string());
        for (text, objects, steps) in [
            (
                "Class -EXTENDS-> Class",
                vec![(some("Class"), None), (some("Class"), None)],
                vec![(some("EXTENDS"), true)],
            ),
            ("Class-EXTENDS->Class", vec![(some("Class"), None), (some("Class"), None)], vec![(some("EXTENDS"), true)]),
            ("(Class) -[:CALLS]-> (*)", vec![(some("Class"), None), (None, None)], vec![(some("CALLS"), true)]),
            ("File <-IMPORTS- File", vec![(some("File"), None), (some("File"), None)], vec![(some("IMPORTS"), false)]),
            (
                "Class:Session --> * <-- File",
                vec![(some("Class"), some("Session")), (None, None), (some("File"), None)],
                vec![(None, true), (None, false)],
            ),
            ("A -> B", vec![(some("A"), None), (some("B"), None)], vec![(None, true)]),
        ] {
            assert_eq!(ParsedShape::read(text).unwrap(), ParsedShape { objects, steps }, "{text}");
        }
        for wrong in ["-> B", "A ->", "A -X- B", "A <-X", "A -X Y-> B", "A -> B -> C -> D -> E -> F -> G"] {
            assert_eq!(ParsedShape::read(wrong).unwrap_err().code, ErrorCode::InvalidPattern, "{wrong}");
        }
    }
}
