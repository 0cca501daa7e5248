//! The text indexes of a view: symbols by their own text, files by their whole text, files by path, and everything else.

use crate::convert::{to_u32, to_usize};
use crate::features::code::sources::Sources;
use crate::features::code::unsearched;
use crate::hex::unhex;
use crate::sensitive::is_sensitive;
use crate::view::ViewGraph;
use crate::view::symbols::{Symbols, keys, number, text};
use lukasa_graph::lookup::SnapshotDerived;
use lukasa_graph::{Node, Snapshot};
use lukasa_model::{Content, FactNo, Result};
use lukasa_search::text::{DocumentBatch, TextField, TextIndex};
use lukasa_search::{titles, tokens};
use lukasa_store::VersionFields;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use std::sync::Arc;

/// Number of nodes and files that are read and parsed at a time.
const AT_ONCE: usize = 2_048;
const FILES_AT_ONCE: usize = 32;
/// Maximum length of one field; longer values are data.
const LONGEST: usize = 1 << 20;
/// Maximum depth of properties.
const DEEP: usize = 6;

/// The text indexes of a snapshot, updated with it.
pub struct TextIndexes {
    /// Symbols, and files for the lines outside of their symbols: name, path, documentation, source.
    pub units: TextIndex,
    /// Files by their whole text.
    pub files: TextIndex,
    /// Files by name and folders.
    pub paths: TextIndex,
    /// Files by the names they define.
    pub defined: TextIndex,
    /// Everything that is not source code: title, key and all texts.
    pub objects: TextIndex,
    /// The same objects by the keys of their titles, as texts mention them.
    pub titles: TextIndex,
    /// The same objects by the names that occur in them.
    pub names: TextIndex,
    /// The same objects by their speaker or agent.
    pub speakers: TextIndex,
    /// Files whose source was not available.
    pub without_source: FxHashSet<Node>,
    /// Files whose text is not searched because it was generated, with their names in lower case.
    left_out: Arc<FxHashMap<Node, Box<str>>>,
    /// The file of each symbol and file.
    homes: Arc<Vec<Node>>,
    touches: u64,
}

/// Marks a node without a file.
const NOWHERE: Node = Node(u32::MAX);
/// Numbers of indexed entries.
const INDEXES: usize = 8;

fn taken<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

impl SnapshotDerived for TextIndexes {
    fn bytes(&self) -> usize {
        let texts: usize = self.indexes().iter().map(|index| index.bytes()).sum();
        texts + self.homes.len() * size_of::<Node>()
    }
}

impl TextIndexes {
    /// Whether the indexes belong to this state of the graph.
    pub fn are_of(&self, snapshot: &Snapshot) -> bool {
        self.touches == snapshot.touches()
    }

    /// The file that a symbol is in; the node itself if it is a file.
    pub fn file(&self, node: Node) -> Option<Node> {
        self.homes.get(node.index()).copied().filter(|file| *file != NOWHERE)
    }

    /// Whether the node is, or is in, a file whose text is not searched.
    pub fn is_left_out(&self, node: Node) -> bool {
        self.file(node).is_some_and(|file| self.left_out.contains_key(&file))
    }

    /// Files that are not searched but that the question names.
    pub fn named_all_the_same(&self, question: &str) -> Vec<Node> {
        if self.left_out.is_empty() {
            return vec![];
        }
        let question = question.to_lowercase();
        let goes_on = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let names = |name: &str| {
            question
                .match_indices(name)
                .any(|(at, _)| !question[..at].ends_with(goes_on) && !question[at + name.len()..].starts_with(goes_on))
        };
        let mut named: Vec<Node> =
            self.left_out.iter().filter(|(_, name)| names(name)).map(|(node, _)| *node).collect();
        named.sort_unstable();
        named
    }

    /// The graph's change counter when the index was built.
    pub fn touches(&self) -> u64 {
        self.touches
    }

    /// Builds the indexes of a view from the facts and the source texts that are available. `progress` receives the
    /// number of nodes done.
    pub fn build(
        look: &ViewGraph,
        sources: &Sources,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<TextIndexes> {
        let read = Reading::new(look, sources).read(&look.snapshot.nodes(), progress)?;
        let homes = homes(&Arc::default(), &[], &read.homes, look.snapshot.node_places());
        Ok(TextIndexes {
            homes,
            units: TextIndex::build(read.units),
            files: TextIndex::build(read.files),
            paths: TextIndex::build(read.paths),
            defined: TextIndex::build(read.defined),
            objects: TextIndex::build(read.objects),
            titles: TextIndex::build(read.titles),
            names: TextIndex::build(read.names),
            speakers: TextIndex::build(read.speakers),
            without_source: read.without_source,
            left_out: Arc::new(read.left_out),
            touches: look.snapshot.touches(),
        })
    }

    /// Whether another process would build the same indexes: all sources were available.
    pub fn can_be_kept(&self) -> bool {
        self.without_source.is_empty()
    }

    /// Appends the serialized indexes.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let number = |out: &mut Vec<u8>, number: usize| out.extend(to_u32(number).to_le_bytes());
        out.extend(self.touches.to_le_bytes());
        number(out, self.homes.len());
        self.homes.iter().for_each(|file| out.extend(file.0.to_le_bytes()));
        number(out, self.left_out.len());
        for (file, name) in &*self.left_out {
            out.extend(file.0.to_le_bytes());
            number(out, name.len());
            out.extend(name.as_bytes());
        }
        for index in self.indexes() {
            let at = out.len();
            out.extend(0u64.to_le_bytes());
            index.write_to(out);
            let length = (out.len() - at - 8) as u64;
            out[at..at + 8].copy_from_slice(&length.to_le_bytes());
        }
    }

    /// Restores what [`TextIndexes::write_to`] wrote for a graph with this many nodes; `None` if the bytes are invalid.
    pub fn read_from(bytes: &[u8], places: usize) -> Option<TextIndexes> {
        let mut from = bytes;
        let touches = u64::from_le_bytes(taken(&mut from)?);
        let count = u32::from_le_bytes(taken(&mut from)?) as usize;
        let (files, rest) = from.split_at_checked(count.checked_mul(size_of::<Node>())?)?;
        from = rest;
        let homes: Vec<Node> =
            files.chunks_exact(4).map(|four| Node(u32::from_le_bytes(four.try_into().unwrap_or_default()))).collect();
        if homes.len() > places || homes.iter().any(|file| *file != NOWHERE && file.index() >= places) {
            return None;
        }
        let mut left_out = FxHashMap::default();
        for _ in 0..u32::from_le_bytes(taken(&mut from)?) {
            let (file, length) = (Node(u32::from_le_bytes(taken(&mut from)?)), u32::from_le_bytes(taken(&mut from)?));
            let (name, rest) = from.split_at_checked(length as usize)?;
            from = rest;
            left_out.insert(file, std::str::from_utf8(name).ok()?.into());
        }
        let mut parts = Vec::with_capacity(INDEXES);
        for _ in 0..INDEXES {
            let length = usize::try_from(u64::from_le_bytes(taken(&mut from)?)).ok()?;
            let (part, rest) = from.split_at_checked(length)?;
            from = rest;
            parts.push(part);
        }
        let read = |mut part: &[u8]| TextIndex::read_from(&mut part).filter(|_| part.is_empty());
        let indexes: Vec<TextIndex> = parts.into_par_iter().map(read).collect::<Option<_>>()?;
        let [units, files, paths, defined, objects, titles, names, speakers] = indexes.try_into().ok()?;
        from.is_empty().then_some(())?;
        let (left_out, homes, without_source) = (Arc::new(left_out), Arc::new(homes), FxHashSet::default());
        Some(TextIndexes {
            units,
            files,
            paths,
            defined,
            objects,
            titles,
            names,
            speakers,
            without_source,
            left_out,
            homes,
            touches,
        })
    }

    fn indexes(&self) -> [&TextIndex; INDEXES] {
        let TextIndexes { units, files, paths, defined, objects, titles, names, speakers, .. } = self;
        [units, files, paths, defined, objects, titles, names, speakers]
    }

    /// Returns the indexes of a later state of the same graph; `None` if it is too far ahead to be followed.
    pub fn follow(&self, look: &ViewGraph, sources: &Sources) -> Result<Option<TextIndexes>> {
        let Some(touched) = look.snapshot.touched_since(self.touches) else { return Ok(None) };
        let mut touched = touched.to_vec();
        touched.sort_unstable();
        touched.dedup();
        let there: Vec<Node> = touched.iter().copied().filter(|node| look.snapshot.is_live(*node)).collect();
        let read = Reading::new(look, sources).read(&there, &mut |_, _| {})?;
        let mut without_source = self.without_source.clone();
        touched.iter().for_each(|node| {
            without_source.remove(node);
        });
        without_source.extend(read.without_source);
        let mut left_out = Arc::clone(&self.left_out);
        if !read.left_out.is_empty() || touched.iter().any(|node| left_out.contains_key(node)) {
            let left_out = Arc::make_mut(&mut left_out);
            touched.iter().for_each(|node| drop(left_out.remove(node)));
            left_out.extend(read.left_out);
        }
        // The kind of a node may have changed, so it is removed from all indexes and added to the right one.
        let homes = homes(&self.homes, &touched, &read.homes, look.snapshot.node_places());
        Ok(Some(TextIndexes {
            homes,
            units: self.units.with(&touched, read.units),
            files: self.files.with(&touched, read.files),
            paths: self.paths.with(&touched, read.paths),
            defined: self.defined.with(&touched, read.defined),
            objects: self.objects.with(&touched, read.objects),
            titles: self.titles.with(&touched, read.titles),
            names: self.names.with(&touched, read.names),
            speakers: self.speakers.with(&touched, read.speakers),
            without_source,
            left_out,
            touches: look.snapshot.touches(),
        }))
    }
}

/// Returns the files of symbols after some nodes changed; the same value if nothing changed.
fn homes(before: &Arc<Vec<Node>>, touched: &[Node], found: &[(Node, Node)], places: usize) -> Arc<Vec<Node>> {
    let was_home = |node: &Node| before.get(node.index()).is_some_and(|file| *file != NOWHERE);
    if found.is_empty() && !touched.iter().any(was_home) {
        return Arc::clone(before);
    }
    let mut homes = Vec::clone(before);
    homes.resize(homes.len().max(places), NOWHERE);
    touched.iter().filter(|node| was_home(node)).for_each(|node| homes[node.index()] = NOWHERE);
    found.iter().for_each(|(node, file)| homes[node.index()] = *file);
    Arc::new(homes)
}

/// What was read for some nodes.
#[derive(Default)]
struct ReadTexts {
    /// Symbols and files, with their files.
    homes: Vec<(Node, Node)>,
    units: Vec<DocumentBatch>,
    files: Vec<DocumentBatch>,
    paths: Vec<DocumentBatch>,
    defined: Vec<DocumentBatch>,
    objects: Vec<DocumentBatch>,
    titles: Vec<DocumentBatch>,
    names: Vec<DocumentBatch>,
    speakers: Vec<DocumentBatch>,
    without_source: FxHashSet<Node>,
    left_out: FxHashMap<Node, Box<str>>,
}

impl ReadTexts {
    fn join(&mut self, other: ReadTexts) {
        self.units.extend(other.units);
        self.files.extend(other.files);
        self.paths.extend(other.paths);
        self.defined.extend(other.defined);
        self.objects.extend(other.objects);
        self.titles.extend(other.titles);
        self.names.extend(other.names);
        self.speakers.extend(other.speakers);
        self.without_source.extend(other.without_source);
        self.left_out.extend(other.left_out);
    }
}

struct Reading<'a> {
    look: &'a ViewGraph,
    sources: &'a Sources,
    symbols: Symbols<'a>,
    /// By type number: excluded from the text index.
    unread: Vec<bool>,
}

/// A file, and which of its nodes (file and symbols) are requested.
struct RequestedFile {
    file: Node,
    nodes: Vec<Node>,
}

impl<'a> Reading<'a> {
    fn new(look: &'a ViewGraph, sources: &'a Sources) -> Reading<'a> {
        let declared = |name: &str| look.registry.object_type(name).is_some_and(|declared| !declared.embedding.fts);
        let unread = look.snapshot.names().types().iter().map(|name| declared(name)).collect();
        Reading { look, sources, symbols: Symbols::new(look), unread }
    }

    fn read(&self, nodes: &[Node], progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<ReadTexts> {
        let mut by_file: FxHashMap<Node, Vec<Node>> = FxHashMap::default();
        let mut others = Vec::new();
        for node in nodes.iter().filter(|node| !self.unread[self.look.snapshot.type_no(**node).index()]) {
            let own = self.symbols.kind(*node).is_some_and(|kind| !kind.outside());
            match if own { self.symbols.file(*node) } else { None } {
                Some(file) => by_file.entry(file).or_default().push(*node),
                None => others.push(*node),
            }
        }
        let mut wanted: Vec<RequestedFile> =
            by_file.into_iter().map(|(file, nodes)| RequestedFile { file, nodes }).collect();
        wanted.iter_mut().for_each(|wanted| wanted.nodes.sort_unstable());
        wanted.sort_unstable_by_key(|wanted| self.look.snapshot.thing(wanted.file));
        let homes = wanted.iter().flat_map(|of| of.nodes.iter().map(|node| (*node, of.file))).collect();
        let mut all = ReadTexts { homes, ..ReadTexts::default() };
        let mut done = 0;
        // In small portions, so that progress can be reported in between.
        for files in wanted.chunks(FILES_AT_ONCE * 16) {
            progress(done, Some(nodes.len() as u64));
            done += files.iter().map(|wanted| wanted.nodes.len() as u64).sum::<u64>();
            let read: Vec<Result<ReadTexts>> = files.par_chunks(FILES_AT_ONCE).map(|files| self.files(files)).collect();
            read.into_iter().try_for_each(|read| read.map(|read| all.join(read)))?;
        }
        for nodes in others.chunks(AT_ONCE * 8) {
            progress(done, Some(nodes.len() as u64));
            done += nodes.len() as u64;
            let read: Vec<Result<ReadTexts>> = nodes.par_chunks(AT_ONCE).map(|nodes| self.objects(nodes)).collect();
            read.into_iter().try_for_each(|read| read.map(|read| all.join(read)))?;
        }
        Ok(all)
    }

    fn contents(&self, nodes: &[Node]) -> Result<Vec<(Node, Content)>> {
        let snapshot = &self.look.snapshot;
        let mut numbers: Vec<FactNo> = nodes.iter().map(|node| snapshot.thing(*node)).collect();
        numbers.sort_unstable();
        let states = self.look.ledger.states(&self.look.view, &numbers, VersionFields::Content)?;
        let mut all = Vec::with_capacity(states.len());
        for state in states {
            let (Some(node), Some(statement)) = (snapshot.find(state.thing.no), state.statement) else { continue };
            all.push((node, statement.parsed()?));
        }
        Ok(all)
    }

    fn files(&self, files: &[RequestedFile]) -> Result<ReadTexts> {
        let mut read = ReadTexts::default();
        let [mut units, mut whole, mut paths, mut defined] = std::array::from_fn(|_| DocumentBatch::default());
        let mut file_of: FxHashMap<Node, usize> = FxHashMap::default();
        for (at, wanted) in files.iter().enumerate() {
            // All symbols of the file are needed: which lines belong to a symbol depends on the symbols inside it.
            file_of.extend(self.symbols.whole(wanted.file, usize::MAX).0.iter().map(|node| (*node, at)));
            file_of.extend(wanted.nodes.iter().chain([&wanted.file]).map(|node| (*node, at)));
        }
        let nodes: Vec<Node> = file_of.keys().copied().collect();
        let mut by_file: Vec<Vec<(Node, Content)>> = vec![vec![]; files.len()];
        for (node, content) in self.contents(&nodes)? {
            by_file[file_of[&node]].push((node, content));
        }
        for (wanted, contents) in files.iter().zip(by_file) {
            let path = self.symbols.key(wanted.file);
            let id = contents.iter().find(|(node, _)| *node == wanted.file);
            let id = id.and_then(|(_, content)| unhex(&text(content, "content_hash")?));
            let source = id
                .and_then(|id| self.sources.text(self.look.ledger.scope(), &path, &id))
                .filter(|text| text.len() <= LONGEST);
            if unsearched::file(&path, source.as_deref()).is_some() {
                if wanted.nodes.binary_search(&wanted.file).is_ok() {
                    let name = path.rsplit('/').next().unwrap_or(&path);
                    read.left_out.insert(wanted.file, name.to_lowercase().into());
                    self.define(&mut defined, wanted.file);
                }
                continue;
            }
            let own = source.as_deref().map(|source| OwnLines::new(source, &contents));
            for (node, content) in contents.iter().filter(|(node, _)| wanted.nodes.binary_search(node).is_ok()) {
                units.begin(*node);
                let key = self.symbols.key(*node);
                let is_file = *node == wanted.file;
                // The container's name occurs with all its members, so it has little weight for one of them.
                units.add(TextField::Name, keys::name(&key));
                units.add(TextField::Path, &key);
                about(&mut units, content, own.is_some());
                for text in own.iter().flat_map(|own| own.texts(*node, is_file)) {
                    units.add(TextField::Body, text);
                }
                if is_file {
                    whole.begin(*node);
                    match &source {
                        Some(source) => whole.add(TextField::Body, source),
                        None => {
                            read.without_source.insert(*node);
                            about(&mut whole, content, false);
                        }
                    }
                    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
                    paths.begin(*node);
                    paths.add(TextField::Name, name.rsplit_once('.').map_or(name, |(stem, _)| stem));
                    paths.add(TextField::Path, folders);
                    self.define(&mut defined, *node);
                }
            }
        }
        [read.units, read.files, read.paths, read.defined] =
            [units, whole, paths, defined].map(|gathered| vec![gathered]);
        Ok(read)
    }

    /// Adds the names that a file defines.
    fn define(&self, defined: &mut DocumentBatch, file: Node) {
        defined.begin(file);
        for member in self.symbols.whole(file, usize::MAX).0 {
            let name = keys::name(&self.symbols.key(member)).trim_matches(['_', '$', '#']).to_owned();
            defined.add_word(TextField::Name, &tokens::folded(&name));
        }
    }

    fn objects(&self, nodes: &[Node]) -> Result<ReadTexts> {
        let [titles, names, speakers] = std::array::from_fn(|_| DocumentBatch::default());
        let mut all = ObjectTexts { texts: DocumentBatch::prose(), titles, names, speakers };
        for (node, content) in self.contents(nodes)? {
            // Sensitive facts must not be found by their words.
            if !is_sensitive(&content) {
                all.add(&self.look.snapshot, node, &content);
            }
        }
        let ObjectTexts { texts, titles, names, speakers } = all;
        let [objects, titles, names, speakers] = [texts, titles, names, speakers].map(|gathered| vec![gathered]);
        Ok(ReadTexts { objects, titles, names, speakers, ..ReadTexts::default() })
    }
}

/// Objects that are not source code, before they are added to the indexes.
struct ObjectTexts {
    texts: DocumentBatch,
    titles: DocumentBatch,
    names: DocumentBatch,
    speakers: DocumentBatch,
}

impl ObjectTexts {
    fn add(&mut self, snapshot: &Snapshot, node: Node, content: &Content) {
        let ObjectTexts { texts, titles: keys, names, speakers } = self;
        let mut asks = false;
        let key = snapshot.key(node).unwrap_or("");
        texts.begin(node);
        texts.add(TextField::Path, key);
        texts.add(TextField::Path, snapshot.type_name(node));
        content.subtype.iter().chain(&content.labels).for_each(|text| texts.add(TextField::Path, text));
        names.begin(node);
        let title = title(content);
        if let Some(title) = &title {
            texts.add(TextField::Name, title);
            keys.begin(node);
            titles::keys(title).iter().for_each(|key| keys.add_word(TextField::Name, key));
        }
        let mut named: Vec<String> = titles::names(title.as_deref().unwrap_or(""));
        property_texts(content, &mut |text| {
            texts.add(TextField::Text, text);
            asks |= ends_asking(text);
            named.extend(titles::names(text));
        });
        if let Some(speaker) = text(content, "speaker").or_else(|| text(content, "agent_id")) {
            speakers.begin(node);
            titles::keys(&speaker).iter().for_each(|key| speakers.add_word(TextField::Name, key));
            if asks {
                speakers.add_word(TextField::Body, ASKS);
            }
        }
        named.sort();
        named.dedup();
        named.iter().for_each(|name| names.add_word(TextField::Name, name));
    }
}

/// Returns the documentation of a symbol, and its signature if there is no source that contains it.
fn about(into: &mut DocumentBatch, content: &Content, has_source: bool) {
    let doc = text(content, "doc").or_else(|| text(content, "summary"));
    let signature = if has_source { None } else { text(content, "signature") };
    doc.iter().chain(&signature).for_each(|text| into.add(TextField::Text, text));
}

/// The lines of a file by the innermost symbol that contains them.
struct OwnLines<'s> {
    /// By symbol; `None` for lines outside of all symbols.
    lines: FxHashMap<Option<Node>, Vec<&'s str>>,
}

impl<'s> OwnLines<'s> {
    fn new(source: &'s str, contents: &[(Node, Content)]) -> OwnLines<'s> {
        let lines: Vec<&str> = source.split_inclusive('\n').collect();
        let mut spans: Vec<(usize, usize, Node)> = Vec::new();
        for (node, content) in contents {
            if let (Some(first), Some(last)) = (number(content, "line"), number(content, "end_line")) {
                spans.push((to_usize(first.saturating_sub(1)), to_usize(last), *node));
            }
        }
        // Outer symbols come first, so that inner ones overwrite them.
        spans.sort_by_key(|(first, last, node)| (*first, usize::MAX - last, *node));
        let mut owners = vec![None; lines.len()];
        for (first, last, node) in spans {
            let last = last.min(lines.len());
            owners[first.min(last)..last].fill(Some(node));
        }
        let mut owned = OwnLines { lines: FxHashMap::default() };
        for (line, owner) in lines.into_iter().zip(owners) {
            owned.lines.entry(owner).or_default().push(line);
        }
        owned
    }

    /// Returns a symbol's own lines; for a file, the lines outside of all symbols.
    fn texts(&self, node: Node, is_file: bool) -> &[&'s str] {
        let own = if is_file { None } else { Some(node) };
        self.lines.get(&own).map_or(&[], Vec::as_slice)
    }
}

/// Returns the title of an object that is not source code.
pub fn title(content: &Content) -> Option<String> {
    content.title.clone().or_else(|| text(content, "name"))
}

/// Calls `each` with every text of an object besides its title.
pub fn property_texts(content: &Content, each: &mut dyn FnMut(&str)) {
    for (name, value) in content.properties.iter().filter(|(name, _)| *name != "name") {
        values(name, value, DEEP, each);
    }
}

/// In the index of speakers, marks turns that contain a question.
pub const ASKS: &str = "?";
/// Number of final letters of a turn that are searched for its question mark.
const END: usize = 30;

fn ends_asking(text: &str) -> bool {
    text.chars().rev().take(END).any(|c| c == '?')
}

/// Visits the texts of a property, except ids and hashes.
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
