//! The text indexes of a view: symbols by their own text, files by all of theirs, files by path, and everything else.

use crate::features::code::left_out;
use crate::features::code::sources::Sources;
use crate::hex::unhex;
use crate::sensitive::is_sensitive;
use crate::view::Look;
use crate::view::symbols::{Symbols, keys, number, text};
use lukasa_graph::lookup::Kept;
use lukasa_graph::{Node, Snapshot};
use lukasa_model::{Content, Result, ThingNo};
use lukasa_search::text::{Field, Gathered, TextIndex};
use lukasa_search::{titles, tokens};
use lukasa_store::Fields;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use std::sync::Arc;

/// Nodes and files read and taken apart at a time.
const AT_ONCE: usize = 2_048;
const FILES_AT_ONCE: usize = 32;
/// Longest text of one field; beyond it are data.
const LONGEST: usize = 1 << 20;
/// How deep properties are read.
const DEEP: usize = 6;

/// What can be found by words. Belongs to a snapshot, and follows it.
pub struct Texts {
    /// Symbols, and files for what stands outside of their symbols: name, path, what is written about it, its own source.
    pub units: TextIndex,
    /// Files by their whole text.
    pub files: TextIndex,
    /// Files by name and folders.
    pub paths: TextIndex,
    /// Files by the names of what they define.
    pub defined: TextIndex,
    /// Everything that is not source code: title, key, and whatever it says.
    pub objects: TextIndex,
    /// The same by the keys of their titles, as texts mention them.
    pub titles: TextIndex,
    /// The same by the words in them that are names.
    pub names: TextIndex,
    /// The same by who says it.
    pub speakers: TextIndex,
    /// Files whose source was not at hand.
    pub without_source: FxHashSet<Node>,
    /// Files whose text is not searched because no person wrote it, with their names in lower case.
    left_out: Arc<FxHashMap<Node, Box<str>>>,
    /// The file of each symbol and file.
    homes: Arc<Vec<Node>>,
    touches: u64,
}

/// Stands for no file.
const NOWHERE: Node = Node(u32::MAX);
/// How many there are.
const INDEXES: usize = 8;

fn taken<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

impl Kept for Texts {
    fn bytes(&self) -> usize {
        let texts: usize = self.indexes().iter().map(|index| index.bytes()).sum();
        texts + self.homes.len() * size_of::<Node>()
    }
}

impl Texts {
    /// Whether they are those of this state.
    pub fn are_of(&self, snapshot: &Snapshot) -> bool {
        self.touches == snapshot.touches()
    }

    /// The file that a symbol is in; itself if it is one.
    pub fn file(&self, node: Node) -> Option<Node> {
        self.homes.get(node.index()).copied().filter(|file| *file != NOWHERE)
    }

    /// Whether it is, or is in, a file whose text is not searched.
    pub fn is_left_out(&self, node: Node) -> bool {
        self.file(node).is_some_and(|file| self.left_out.contains_key(&file))
    }

    /// Files that are not searched and that a question names.
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

    /// How often nodes had been touched when it was made.
    pub fn touches(&self) -> u64 {
        self.touches
    }

    pub fn build(look: &Look, sources: &Sources, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<Texts> {
        let read = Reading::new(look, sources).read(&look.snapshot.nodes(), progress)?;
        let homes = homes(&Arc::default(), &[], &read.homes, look.snapshot.node_places());
        Ok(Texts {
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

    /// Whether what another process would make is the same: all sources were at hand.
    pub fn can_be_kept(&self) -> bool {
        self.without_source.is_empty()
    }

    /// Appends all of it.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let number = |out: &mut Vec<u8>, number: usize| out.extend((number as u32).to_le_bytes());
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

    /// What [`Texts::write_to`] wrote of a graph with so many places; none where the bytes are something else.
    pub fn read_from(bytes: &[u8], places: usize) -> Option<Texts> {
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
        Some(Texts {
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
        let Texts { units, files, paths, defined, objects, titles, names, speakers, .. } = self;
        [units, files, paths, defined, objects, titles, names, speakers]
    }

    /// The indexes of a later state of the same graph; none when it is too long ago to follow.
    pub fn follow(&self, look: &Look, sources: &Sources) -> Result<Option<Texts>> {
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
        // A place may hold something of another kind now: it goes from all, and comes back where it belongs.
        let homes = homes(&self.homes, &touched, &read.homes, look.snapshot.node_places());
        Ok(Some(Texts {
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

/// The files of symbols after some nodes changed; the same as before when none of them is in one.
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

/// What was read of some nodes.
#[derive(Default)]
struct Read {
    /// Symbols and files, with their files.
    homes: Vec<(Node, Node)>,
    units: Vec<Gathered>,
    files: Vec<Gathered>,
    paths: Vec<Gathered>,
    defined: Vec<Gathered>,
    objects: Vec<Gathered>,
    titles: Vec<Gathered>,
    names: Vec<Gathered>,
    speakers: Vec<Gathered>,
    without_source: FxHashSet<Node>,
    left_out: FxHashMap<Node, Box<str>>,
}

impl Read {
    fn join(&mut self, other: Read) {
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
    look: &'a Look,
    sources: &'a Sources,
    symbols: Symbols<'a>,
    /// By type number: declared not to be in the text index.
    unread: Vec<bool>,
}

/// A file, and which of it and its symbols are wanted.
struct Wanted {
    file: Node,
    nodes: Vec<Node>,
}

impl<'a> Reading<'a> {
    fn new(look: &'a Look, sources: &'a Sources) -> Reading<'a> {
        let declared = |name: &str| look.registry.object_type(name).is_some_and(|declared| !declared.embedding.fts);
        let unread = look.snapshot.names().types().iter().map(|name| declared(name)).collect();
        Reading { look, sources, symbols: Symbols::new(look), unread }
    }

    fn read(&self, nodes: &[Node], progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<Read> {
        let mut by_file: FxHashMap<Node, Vec<Node>> = FxHashMap::default();
        let mut others = Vec::new();
        for node in nodes.iter().filter(|node| !self.unread[self.look.snapshot.type_no(**node).index()]) {
            let own = self.symbols.kind(*node).is_some_and(|kind| !kind.outside());
            match if own { self.symbols.file(*node) } else { None } {
                Some(file) => by_file.entry(file).or_default().push(*node),
                None => others.push(*node),
            }
        }
        let mut wanted: Vec<Wanted> = by_file.into_iter().map(|(file, nodes)| Wanted { file, nodes }).collect();
        wanted.iter_mut().for_each(|wanted| wanted.nodes.sort_unstable());
        wanted.sort_unstable_by_key(|wanted| self.look.snapshot.thing(wanted.file));
        let homes = wanted.iter().flat_map(|of| of.nodes.iter().map(|node| (*node, of.file))).collect();
        let mut all = Read { homes, ..Read::default() };
        let mut done = 0;
        // A few at a time, so that progress can be told in between.
        for files in wanted.chunks(FILES_AT_ONCE * 16) {
            progress(done, Some(nodes.len() as u64));
            done += files.iter().map(|wanted| wanted.nodes.len() as u64).sum::<u64>();
            let read: Vec<Result<Read>> = files.par_chunks(FILES_AT_ONCE).map(|files| self.files(files)).collect();
            read.into_iter().try_for_each(|read| read.map(|read| all.join(read)))?;
        }
        for nodes in others.chunks(AT_ONCE * 8) {
            progress(done, Some(nodes.len() as u64));
            done += nodes.len() as u64;
            let read: Vec<Result<Read>> = nodes.par_chunks(AT_ONCE).map(|nodes| self.objects(nodes)).collect();
            read.into_iter().try_for_each(|read| read.map(|read| all.join(read)))?;
        }
        Ok(all)
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

    fn files(&self, files: &[Wanted]) -> Result<Read> {
        let mut read = Read::default();
        let [mut units, mut whole, mut paths, mut defined] = std::array::from_fn(|_| Gathered::default());
        let mut file_of: FxHashMap<Node, usize> = FxHashMap::default();
        for (at, wanted) in files.iter().enumerate() {
            // All symbols of the file: which lines are a symbol's own depends on the others.
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
            if left_out::file(&path, source.as_deref()).is_some() {
                if wanted.nodes.binary_search(&wanted.file).is_ok() {
                    let name = path.rsplit('/').next().unwrap_or(&path);
                    read.left_out.insert(wanted.file, name.to_lowercase().into());
                    self.define(&mut defined, wanted.file);
                }
                continue;
            }
            let own = source.as_deref().map(|source| Owned::new(source, &contents));
            for (node, content) in contents.iter().filter(|(node, _)| wanted.nodes.binary_search(node).is_ok()) {
                units.begin(*node);
                let key = self.symbols.key(*node);
                let is_file = *node == wanted.file;
                // What it stands in is named by all that stands there, so it says little about one of them.
                units.add(Field::Name, keys::name(&key));
                units.add(Field::Path, &key);
                about(&mut units, content, own.is_some());
                for text in own.iter().flat_map(|own| own.texts(*node, is_file)) {
                    units.add(Field::Body, text);
                }
                if is_file {
                    whole.begin(*node);
                    match &source {
                        Some(source) => whole.add(Field::Body, source),
                        None => {
                            read.without_source.insert(*node);
                            about(&mut whole, content, false);
                        }
                    }
                    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
                    paths.begin(*node);
                    paths.add(Field::Name, name.rsplit_once('.').map_or(name, |(stem, _)| stem));
                    paths.add(Field::Path, folders);
                    self.define(&mut defined, *node);
                }
            }
        }
        [read.units, read.files, read.paths, read.defined] =
            [units, whole, paths, defined].map(|gathered| vec![gathered]);
        Ok(read)
    }

    /// Adds the names of what a file defines.
    fn define(&self, defined: &mut Gathered, file: Node) {
        defined.begin(file);
        for member in self.symbols.whole(file, usize::MAX).0 {
            let name = keys::name(&self.symbols.key(member)).trim_matches(['_', '$', '#']).to_owned();
            defined.add_word(Field::Name, &tokens::folded(&name));
        }
    }

    fn objects(&self, nodes: &[Node]) -> Result<Read> {
        let [titles, names, speakers] = std::array::from_fn(|_| Gathered::default());
        let mut all = Objects { texts: Gathered::prose(), titles, names, speakers };
        for (node, content) in self.contents(nodes)? {
            // What is kept from everybody but its owner is not to be found by its words.
            if !is_sensitive(&content) {
                all.add(&self.look.snapshot, node, &content);
            }
        }
        let Objects { texts, titles, names, speakers } = all;
        let [objects, titles, names, speakers] = [texts, titles, names, speakers].map(|gathered| vec![gathered]);
        Ok(Read { objects, titles, names, speakers, ..Read::default() })
    }
}

/// Things that are not source code, on their way into the indexes.
struct Objects {
    texts: Gathered,
    titles: Gathered,
    names: Gathered,
    speakers: Gathered,
}

impl Objects {
    fn add(&mut self, snapshot: &Snapshot, node: Node, content: &Content) {
        let Objects { texts, titles: keys, names, speakers } = self;
        let mut asks = false;
        let key = snapshot.key(node).unwrap_or("");
        texts.begin(node);
        texts.add(Field::Path, key);
        texts.add(Field::Path, snapshot.type_name(node));
        content.subtype.iter().chain(&content.labels).for_each(|text| texts.add(Field::Path, text));
        names.begin(node);
        let title = title(content);
        if let Some(title) = &title {
            texts.add(Field::Name, title);
            keys.begin(node);
            titles::keys(title).iter().for_each(|key| keys.add_word(Field::Name, key));
        }
        let mut named: Vec<String> = titles::names(title.as_deref().unwrap_or(""));
        said(content, &mut |text| {
            texts.add(Field::Text, text);
            asks |= ends_asking(text);
            named.extend(titles::names(text));
        });
        if let Some(speaker) = text(content, "speaker").or_else(|| text(content, "agent_id")) {
            speakers.begin(node);
            titles::keys(&speaker).iter().for_each(|key| speakers.add_word(Field::Name, key));
            if asks {
                speakers.add_word(Field::Body, ASKS);
            }
        }
        named.sort();
        named.dedup();
        named.iter().for_each(|name| names.add_word(Field::Name, name));
    }
}

/// What is written about a symbol; its signature only where there is no source to have it.
fn about(into: &mut Gathered, content: &Content, has_source: bool) {
    let doc = text(content, "doc").or_else(|| text(content, "summary"));
    let signature = if has_source { None } else { text(content, "signature") };
    doc.iter().chain(&signature).for_each(|text| into.add(Field::Text, text));
}

/// Lines of a file by the innermost symbol they are in.
struct Owned<'s> {
    /// By symbol; by none those outside of all.
    lines: FxHashMap<Option<Node>, Vec<&'s str>>,
}

impl<'s> Owned<'s> {
    fn new(source: &'s str, contents: &[(Node, Content)]) -> Owned<'s> {
        let lines: Vec<&str> = source.split_inclusive('\n').collect();
        let mut spans: Vec<(usize, usize, Node)> = Vec::new();
        for (node, content) in contents {
            if let (Some(first), Some(last)) = (number(content, "line"), number(content, "end_line")) {
                spans.push((first.saturating_sub(1) as usize, last as usize, *node));
            }
        }
        // Outer ones first, so that inner ones have the last word.
        spans.sort_by_key(|(first, last, node)| (*first, usize::MAX - last, *node));
        let mut owners = vec![None; lines.len()];
        for (first, last, node) in spans {
            let last = last.min(lines.len());
            owners[first.min(last)..last].fill(Some(node));
        }
        let mut owned = Owned { lines: FxHashMap::default() };
        for (line, owner) in lines.into_iter().zip(owners) {
            owned.lines.entry(owner).or_default().push(line);
        }
        owned
    }

    /// A symbol's own lines; a file's are those that no symbol has.
    fn texts(&self, node: Node, is_file: bool) -> &[&'s str] {
        let own = if is_file { None } else { Some(node) };
        self.lines.get(&own).map_or(&[], Vec::as_slice)
    }
}

/// What a thing that is not source code is called.
pub fn title(content: &Content) -> Option<String> {
    content.title.clone().or_else(|| text(content, "name"))
}

/// Every text that it says beside its title.
pub fn said(content: &Content, each: &mut dyn FnMut(&str)) {
    for (name, value) in content.properties.iter().filter(|(name, _)| *name != "name") {
        values(name, value, DEEP, each);
    }
}

/// Stands in the index of speakers for turns that ask something.
pub const ASKS: &str = "?";
/// Last letters of a turn that can hold its question.
const END: usize = 30;

fn ends_asking(text: &str) -> bool {
    text.chars().rev().take(END).any(|c| c == '?')
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
