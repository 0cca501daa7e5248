//! The text indexes of a view: one over everything by what it says of itself, one over files by their whole text.

use super::sources::{Sources, lines};
use crate::code::index::unhex;
use crate::code::symbols::{Kind, Symbols, keys, number, text};
use crate::graph::Look;
use lukasa_graph::lookup::Derived;
use lukasa_graph::{Node, Snapshot};
use lukasa_model::{Content, Result, ThingNo};
use lukasa_search::text::{Field, Gathered, TextIndex};
use lukasa_store::Fields;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

/// Nodes read and taken apart at a time.
const AT_ONCE: usize = 2_048;
/// Longest text of one field; beyond it are data.
const LONGEST: usize = 1 << 20;
/// How deep properties are read.
const DEEP: usize = 6;

/// What can be found by words. Belongs to a snapshot, and follows it.
pub struct Texts {
    /// Every node: name or title, key, what it says of itself, and for what runs its source.
    pub objects: TextIndex,
    /// Files: their path, the names they define, their whole text.
    pub files: TextIndex,
    /// Files whose source was not at hand.
    pub without_source: FxHashSet<Node>,
    touches: u64,
}

impl Derived for Texts {
    fn bytes(&self) -> usize {
        self.objects.bytes() + self.files.bytes()
    }
}

impl Texts {
    /// Whether they are those of this state.
    pub fn are_of(&self, snapshot: &Snapshot) -> bool {
        self.touches == snapshot.touches()
    }

    pub fn build(look: &Look, sources: &Sources, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<Texts> {
        let nodes = look.snapshot.nodes();
        let read = Reading::new(look, sources).read(&nodes, progress)?;
        let touches = look.snapshot.touches();
        Ok(Texts {
            objects: TextIndex::build(read.objects),
            files: TextIndex::build(read.files),
            without_source: read.without_source,
            touches,
        })
    }

    /// The indexes of a later state of the same graph; none when it is too long ago to follow.
    pub fn follow(&self, look: &Look, sources: &Sources) -> Result<Option<Texts>> {
        let Some(touched) = look.snapshot.touched_since(self.touches) else { return Ok(None) };
        let mut touched = touched.to_vec();
        touched.sort_unstable();
        touched.dedup();
        let (there, gone): (Vec<Node>, Vec<Node>) = touched.iter().partition(|node| look.snapshot.is_live(**node));
        let read = Reading::new(look, sources).read(&there, &mut |_, _| {})?;
        let mut without_source = self.without_source.clone();
        touched.iter().for_each(|node| {
            without_source.remove(node);
        });
        without_source.extend(read.without_source);
        // A place that was a file may be something else now.
        let files_gone: Vec<Node> = touched.iter().copied().filter(|node| !read.is_file.contains(node)).collect();
        Ok(Some(Texts {
            objects: self.objects.with(&gone, read.objects),
            files: self.files.with(&files_gone, read.files),
            without_source,
            touches: look.snapshot.touches(),
        }))
    }
}

/// What was read of some nodes.
#[derive(Default)]
struct Read {
    objects: Vec<Gathered>,
    files: Vec<Gathered>,
    without_source: FxHashSet<Node>,
    is_file: FxHashSet<Node>,
}

struct Reading<'a> {
    look: &'a Look,
    sources: &'a Sources,
    symbols: Symbols<'a>,
}

/// A file's text while its symbols are read.
struct Source {
    path: String,
    text: Option<String>,
}

impl<'a> Reading<'a> {
    fn new(look: &'a Look, sources: &'a Sources) -> Reading<'a> {
        Reading { look, sources, symbols: Symbols::new(look) }
    }

    fn read(&self, nodes: &[Node], progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<Read> {
        let files = self.files_of(nodes)?;
        let mut all = Read::default();
        // A few chunks at a time, so that progress can be told in between.
        for (done, chunks) in nodes.chunks(AT_ONCE * 8).enumerate() {
            progress((done * AT_ONCE * 8) as u64, Some(nodes.len() as u64));
            let read: Vec<Result<Read>> = chunks.par_chunks(AT_ONCE).map(|chunk| self.chunk(chunk, &files)).collect();
            for part in read {
                let part = part?;
                all.objects.extend(part.objects);
                all.files.extend(part.files);
                all.without_source.extend(part.without_source);
                all.is_file.extend(part.is_file);
            }
        }
        Ok(all)
    }

    /// Content ids of the files that the nodes are, or are in, by path.
    fn files_of(&self, nodes: &[Node]) -> Result<FxHashMap<String, [u8; 20]>> {
        let mut files: Vec<Node> = nodes.iter().filter_map(|node| self.symbols.file(*node)).collect();
        files.sort_unstable();
        files.dedup();
        let mut found = FxHashMap::default();
        for chunk in files.chunks(AT_ONCE) {
            for (node, content) in self.contents(chunk)? {
                if let Some(id) = text(&content, "content_hash").and_then(|hex| unhex(&hex)) {
                    found.insert(self.symbols.key(node).into_owned(), id);
                }
            }
        }
        Ok(found)
    }

    fn contents(&self, nodes: &[Node]) -> Result<Vec<(Node, Content)>> {
        let snapshot = &self.look.snapshot;
        let mut numbers: Vec<ThingNo> = nodes.iter().map(|node| snapshot.thing(*node)).collect();
        numbers.sort_unstable();
        let states = self.look.ledger.states(&self.look.view, &numbers, Fields::Content)?;
        let mut all = Vec::with_capacity(states.len());
        for state in states {
            let (Some(node), Some(statement)) = (snapshot.find(state.thing.no), state.statement) else { continue };
            all.push((node, statement.parsed()?));
        }
        Ok(all)
    }

    fn chunk(&self, nodes: &[Node], files: &FxHashMap<String, [u8; 20]>) -> Result<Read> {
        let mut read = Read::default();
        let (mut objects, mut whole) = (Gathered::default(), Gathered::default());
        let mut source = Source { path: String::new(), text: None };
        for (node, content) in self.contents(nodes)? {
            objects.begin(node);
            let kind = self.symbols.kind(node);
            match kind {
                Some(kind) if !kind.outside() => {
                    let key = self.symbols.key(node);
                    let path = keys::path(&key);
                    if source.path != path {
                        source = self.source(path, files);
                    }
                    symbol(&mut objects, kind, &key, &content, source.text.as_deref());
                    if kind == Kind::File {
                        read.is_file.insert(node);
                        if source.text.is_none() {
                            read.without_source.insert(node);
                        }
                        whole.begin(node);
                        self.file(&mut whole, node, path, &content, source.text.as_deref());
                    }
                }
                _ => object(&mut objects, &self.look.snapshot, node, &content),
            }
        }
        read.objects.push(objects);
        read.files.push(whole);
        Ok(read)
    }

    fn source(&self, path: &str, files: &FxHashMap<String, [u8; 20]>) -> Source {
        let text = files.get(path).and_then(|id| self.sources.text(path, id)).filter(|text| text.len() <= LONGEST);
        Source { path: path.to_owned(), text }
    }

    fn file(&self, into: &mut Gathered, node: Node, path: &str, content: &Content, source: Option<&str>) {
        into.add(Field::Path, path);
        for member in self.symbols.whole(node, usize::MAX).0 {
            into.add(Field::Name, keys::name(&self.symbols.key(member)));
        }
        match source {
            Some(source) => into.add(Field::Body, source),
            // What is known without it.
            None => ["summary", "doc"].iter().filter_map(|p| text(content, p)).for_each(|t| into.add(Field::Text, &t)),
        }
    }
}

fn symbol(into: &mut Gathered, kind: Kind, key: &str, content: &Content, source: Option<&str>) {
    into.add(Field::Name, if kind == Kind::File { keys::name(key) } else { keys::local(key) });
    into.add(Field::Path, keys::path(key));
    for property in ["summary", "doc", "signature"] {
        if let Some(text) = text(content, property) {
            into.add(Field::Text, &text);
        }
    }
    // What holds others is found by them.
    if let (Some(source), Some(first), Some(last)) = (source, number(content, "line"), number(content, "end_line"))
        && !kind.contains()
    {
        into.add(Field::Body, lines(source, first, last));
    }
}

fn object(into: &mut Gathered, snapshot: &Snapshot, node: Node, content: &Content) {
    let key = snapshot.key(node);
    into.add(Field::Name, content.title.as_deref().unwrap_or_else(|| key.map_or("", keys::name)));
    into.add(Field::Path, key.unwrap_or(""));
    into.add(Field::Path, snapshot.type_name(node));
    content.subtype.iter().chain(&content.labels).for_each(|text| into.add(Field::Path, text));
    for (name, value) in &content.properties {
        values(name, value, DEEP, &mut |text| into.add(Field::Text, text));
    }
}

/// Texts in a property, but for ids and hashes.
fn values(name: &str, value: &Value, deep: usize, each: &mut dyn FnMut(&str)) {
    let is_id = ["_id", "_hash", "_at"].iter().any(|end| name.ends_with(end)) || ["id", "hash"].contains(&name);
    match value {
        _ if is_id || deep == 0 => {}
        Value::String(text) if text.len() <= LONGEST => each(text),
        Value::Array(list) => list.iter().for_each(|value| values(name, value, deep - 1, each)),
        Value::Object(map) => map.iter().for_each(|(name, value)| values(name, value, deep - 1, each)),
        _ => {}
    }
}
