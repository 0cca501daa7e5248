//! The objects and relationships that a file contributes to the graph.
//!
//! A relationship belongs to the file of its source, except CONTAINS, which belongs to the file of its target.

use crate::convert::to_u32;
use crate::facts::{BaseKind, CallKind, Def, DefId, DefKind, FileFacts, ImportKind, ROOT, Visibility, flag};
use crate::ids::IdVec;
use crate::keys;
use crate::languages::LanguageId;
use crate::resolve::{DefRef, Derivation, ExternalId, FileId, FileLinks, LinkTarget, Program, ProgramFile};
use crate::type_names;
use lukasa_model::batch::{PutObject, PutRelationship, Reference};
use lukasa_model::id::object_id;
use lukasa_model::json::Hasher;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Ids and keys of all symbols of a program.
#[derive(Default)]
pub struct SymbolNames {
    namespace: Uuid,
    files: IdVec<FileId, IdVec<DefId, Option<Symbol>>>,
    /// The version of each file for which `files` was computed.
    named: IdVec<FileId, Option<Arc<ProgramFile>>>,
}

struct Symbol {
    object_type: &'static str,
    key: String,
    id: Uuid,
}

impl SymbolNames {
    /// The names of all symbols of a program, within a namespace of ids.
    pub fn new(program: &Program, namespace: Uuid) -> SymbolNames {
        let mut names = SymbolNames { namespace, ..SymbolNames::default() };
        names.update(program, namespace);
        names
    }

    /// Recomputes the symbols of the files that changed since the last call.
    pub fn update(&mut self, program: &Program, namespace: Uuid) {
        if self.namespace != namespace {
            *self = SymbolNames { namespace, ..SymbolNames::default() };
        }
        self.files.resize_with(program.slots(), IdVec::new);
        self.named.resize_with(program.slots(), || None);
        let named = |id: &FileId| match (&self.named[*id], program.get(*id)) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            _ => false,
        };
        let ids: Vec<FileId> = program.ids().filter(|id| !named(id)).collect();
        let made: Vec<(FileId, IdVec<DefId, Option<Symbol>>)> =
            ids.par_iter().map(|id| (*id, symbols(program, *id, namespace))).collect();
        for (id, symbols) in made {
            self.files[id] = symbols;
            self.named[id] = program.get(id).cloned();
        }
    }

    /// Ids of a file's objects.
    pub fn ids_of(&self, file: FileId) -> impl Iterator<Item = Uuid> + '_ {
        self.files[file].iter().flatten().map(|symbol| symbol.id)
    }

    /// Object type and key of a symbol; `None` if the definition is not a symbol.
    pub fn name_of(&self, gid: DefRef) -> Option<(&'static str, &str)> {
        self.get(gid).map(|symbol| (symbol.object_type, symbol.key.as_str()))
    }

    fn get(&self, gid: DefRef) -> Option<&Symbol> {
        self.files[gid.file].get(gid.def)?.as_ref()
    }

    /// The symbol that a definition is attributed to: itself, or the nearest enclosing one.
    fn counts_for(&self, program: &Program, gid: DefRef) -> (DefRef, Option<&Symbol>) {
        let facts = &program.file(gid.file).facts;
        let mut at = gid;
        loop {
            let found = self.get(at);
            if found.is_some() || at.def == ROOT {
                return (at, found);
            }
            at.def = facts.def(at.def).parent;
        }
    }
}

fn symbols(program: &Program, file: FileId, namespace: Uuid) -> IdVec<DefId, Option<Symbol>> {
    let file = program.file(file);
    keys::keys(&file.path, &file.facts)
        .into_iter()
        .map(|key| {
            key.map(|(object_type, key)| Symbol { object_type, id: object_id(namespace, object_type, &key), key })
        })
        .collect()
}

/// What is known about a file besides its facts.
#[derive(Clone, Debug, Default)]
pub struct FileDetails {
    pub content_hash: String,
    pub bytes: u64,
    /// Summaries by a language model. They replace those made by rule.
    pub summaries: BTreeMap<DefId, Summary>,
}

/// A summary of a symbol by a language model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub text: Arc<str>,
    pub model: Arc<str>,
}

/// The object of a file that is not source code: path, hash and size only.
pub fn plain_file(path: &str, about: &FileDetails) -> PutObject {
    let mut put = PutObject::new(type_names::FILE, path);
    put.title = Some(path.rsplit('/').next().unwrap_or(path).to_owned());
    put.properties = properties(&[
        ("path", json!(path)),
        ("content_hash", json!(about.content_hash)),
        ("bytes", json!(about.bytes)),
    ]);
    put
}

/// Version of the extraction: increase it when the extraction changes, so that earlier digests no longer match.
const EXTRACTION_VERSION: u32 = 3;

/// A hash over everything that a file contributes. Objects depend on its content, relationships on what its names
/// resolve to. If a language model wrote summaries, a second hash follows: see `digest_parts`.
pub fn digest(program: &Program, names: &SymbolNames, links: &FileLinks, file: FileId, about: &FileDetails) -> String {
    let mut hasher = Hasher::default();
    let mut number = |n: u32| hasher.add(&n.to_le_bytes());
    number(EXTRACTION_VERSION);
    number(u32::from(links.is_test));
    for (owner, count) in &links.unresolved {
        number(owner.number());
        number(*count);
    }
    for (_, line) in &links.unresolved_names {
        number(*line);
    }
    for link in &links.calls {
        number(link.call.number());
        number(link.how as u32);
    }
    for used in &links.uses {
        number(used.owner.number());
        number(used.line);
        number(used.how as u32 * 2 + u32::from(used.runs));
    }
    for (def, _) in &links.receivers {
        number(def.number());
    }
    for base in &links.bases {
        number(base.class.number());
        number(base.how as u32);
    }
    links.unresolved_names.iter().for_each(|(name, _)| hasher.add(name.as_bytes()));
    hasher.add(about.content_hash.as_bytes());
    let mut target = |to: LinkTarget| match to {
        LinkTarget::Def(gid) => match names.get(gid) {
            Some(symbol) => hasher.add(symbol.id.as_bytes()),
            None => hasher.add(&gid.def.number().to_le_bytes()),
        },
        LinkTarget::External(path) => hasher.add(program.external_text(path).as_bytes()),
    };
    let _ = file;
    links.calls.iter().for_each(|l| target(l.to));
    links.receivers.iter().for_each(|(_, of)| target(LinkTarget::Def(*of)));
    links.imports.iter().for_each(|l| target(l.to));
    links.bases.iter().for_each(|l| target(l.to));
    links.uses.iter().for_each(|l| target(LinkTarget::Def(l.to)));
    let digest = short(hasher);
    if about.summaries.is_empty() {
        return digest;
    }
    let mut hasher = Hasher::default();
    for (def, summary) in &about.summaries {
        hasher.add(&def.number().to_le_bytes());
        // Each text is preceded by its length, so that different lists never produce the same bytes.
        for text in [&summary.text, &summary.model] {
            hasher.add(&to_u32(text.len()).to_le_bytes());
            hasher.add(text.as_bytes());
        }
    }
    format!("{digest}-{}", short(hasher))
}

/// The two parts of a digest: the hash of the code, and the hash of the summaries by a language model, if there are
/// any.
pub fn digest_parts(digest: &str) -> (&str, Option<&str>) {
    digest.split_once('-').map_or((digest, None), |(code, model)| (code, Some(model)))
}

fn short(hasher: Hasher) -> String {
    hasher.finish().0[..8].iter().fold(String::with_capacity(16), |mut text, byte| {
        use std::fmt::Write;
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The objects of a file: the file first, then its symbols.
pub fn objects(
    program: &Program,
    names: &SymbolNames,
    links: &FileLinks,
    file: FileId,
    about: &FileDetails,
    digest: &str,
) -> Vec<PutObject> {
    let mut maker = Maker::new(program, names, file);
    maker.objects(links, about);
    if let Some(own) = maker.objects.first_mut() {
        own.properties.insert("facts".into(), json!(digest));
    }
    maker.objects
}

/// The relationships that belong to a file.
pub fn relationships(program: &Program, names: &SymbolNames, links: &FileLinks, file: FileId) -> Vec<PutRelationship> {
    let mut maker = Maker::new(program, names, file);
    // An estimate: each symbol has CONTAINS and usually DEFINED_IN, and several calls may share one edge.
    maker.relationships.reserve(2 * maker.facts.defs.len() + links.calls.len() + links.uses.len());
    maker.containment(links);
    maker.imports(links);
    maker.bases(links);
    maker.calls_and_uses(links);
    maker.relationships
}

/// Objects outside the program, by type and key.
pub type OutsideObjects = BTreeMap<(&'static str, String), PutObject>;

/// The objects outside the program that a file's relationships refer to.
pub fn outside(program: &Program, names: &SymbolNames, links: &FileLinks, file: FileId) -> OutsideObjects {
    let mut maker = Maker::new(program, names, file);
    let mut seen = FxHashSet::default();
    let calls = links.calls.iter().map(|l| l.to).chain(links.bases.iter().map(|l| l.to));
    for to in calls {
        if let LinkTarget::External(path) = to
            && seen.insert(path)
        {
            maker.external(path);
        }
    }
    for link in &links.imports {
        if let LinkTarget::External(path) = link.to {
            maker.package(path);
        }
    }
    maker.outside
}

struct Maker<'p> {
    program: &'p Program,
    names: &'p SymbolNames,
    file: FileId,
    facts: &'p FileFacts,
    path: &'p str,
    objects: Vec<PutObject>,
    relationships: Vec<PutRelationship>,
    outside: OutsideObjects,
}

impl<'p> Maker<'p> {
    fn new(program: &'p Program, names: &'p SymbolNames, file: FileId) -> Maker<'p> {
        let (facts, path) = (&*program.file(file).facts, &*program.file(file).path);
        let (objects, relationships, outside) = (vec![], vec![], OutsideObjects::new());
        Maker { program, names, file, facts, path, objects, relationships, outside }
    }
}

impl Maker<'_> {
    fn objects(&mut self, links: &FileLinks, about: &FileDetails) {
        let mut unresolved: FxHashMap<DefId, u32> = FxHashMap::default();
        for (owner, count) in &links.unresolved {
            let (gid, _) = self.names.counts_for(self.program, DefRef { file: self.file, def: *owner });
            *unresolved.entry(gid.def).or_default() += count;
        }
        self.objects.reserve(self.facts.defs.len());
        for index in self.facts.defs.ids() {
            let Some(symbol) = self.names.get(DefRef { file: self.file, def: index }) else { continue };
            let def = self.facts.def(index);
            let mut put = PutObject::new(symbol.object_type, &symbol.key);
            put.title = Some(keys::clean(self.facts.name(def.name)).into_owned());
            put.properties = self.describe(index, def);
            if let Some(summary) = about.summaries.get(&index) {
                put.properties.insert("summary".into(), json!(&*summary.text));
                put.properties.insert("summary_by".into(), json!("model"));
                put.properties.insert("summary_model".into(), json!(&*summary.model));
            }
            if let Some(count) = unresolved.get(&index) {
                put.properties.insert("unresolved_calls".into(), json!(count));
            }
            put.subtype = subtype(def).map(str::to_owned);
            if (index == ROOT && links.is_test) || (index != ROOT && def.is(flag::TEST)) {
                put.labels.insert(type_names::TEST_CODE.into());
                put.properties.insert("test".into(), json!(true));
            }
            if index == ROOT {
                put.properties.insert("content_hash".into(), json!(about.content_hash));
                put.properties.insert("bytes".into(), json!(about.bytes));
                put.properties.insert("calls".into(), json!(links.counts.calls));
                let sites = links.unresolved_names.iter().take(UNRESOLVED_SITES);
                let sites: Vec<String> = sites.map(|(name, line)| format!("{name}:{line}")).collect();
                if !sites.is_empty() {
                    put.properties.insert("unresolved_sites".into(), json!(sites));
                }
                if let Some((line, what)) = self.facts.faults.first() {
                    put.properties.insert("fault".into(), json!(format!("line {line}: {what}")));
                }
            }
            self.objects.push(put);
        }
    }

    fn describe(&self, index: DefId, def: &Def) -> Map<String, Value> {
        let mut p = Map::new();
        let mut set = |name: &str, value: Value| {
            p.insert(name.to_owned(), value);
        };
        set("path", json!(self.path));
        set("language", json!(self.facts.language.name()));
        if index == ROOT {
            set("lines", json!(self.facts.lines));
            // The package name may differ from the folder name.
            if !self.facts.package.is_empty() {
                set("package", json!(self.facts.package));
            }
        } else {
            set("line", json!(def.span.line));
            set("end_line", json!(def.span.end_line));
            set("signature", json!(def.signature));
            set("hash", json!(format!("{:016x}", def.hash)));
            match def.visibility {
                Visibility::Public => {}
                Visibility::Protected => set("visibility", json!("protected")),
                Visibility::Package => set("visibility", json!("package")),
                Visibility::Private => set("visibility", json!("private")),
            }
        }
        if !def.summary.is_empty() {
            set("summary", json!(def.summary));
        }
        if let Some(doc) = &def.doc
            && **doc != *def.summary
        {
            set("doc", json!(doc));
        }
        for (flag, name) in [
            (flag::EXPORTED, "exported"),
            (flag::ASYNC, "async"),
            (flag::ABSTRACT, "abstract"),
            (flag::STATIC, "static"),
            (flag::ENTRY, "entry"),
        ] {
            if def.is(flag) {
                set(name, json!(true));
            }
        }
        p
    }

    fn containment(&mut self, links: &FileLinks) {
        let receivers: FxHashMap<DefId, DefRef> = links.receivers.iter().copied().collect();
        let file = self.names.get(DefRef { file: self.file, def: ROOT }).map(|s| s.id);
        let Some(file) = file else { return };
        for index in self.facts.defs.ids().skip(1) {
            let gid = DefRef { file: self.file, def: index };
            let Some(symbol) = self.names.get(gid) else { continue };
            let def = self.facts.def(index);
            // A method written outside its type is contained in the type, even if that is in another file.
            let within = match receivers.get(&index).and_then(|of| self.names.get(*of)) {
                Some(of) => Some(of),
                None => self.names.counts_for(self.program, DefRef { file: self.file, def: def.parent }).1,
            };
            let Some(within) = within else { continue };
            let within = within.id;
            let id = symbol.id;
            self.written(type_names::CONTAINS, within, id);
            // A field needs no DEFINED_IN: it is reached through its type.
            if within != file && symbol.object_type != type_names::VARIABLE {
                self.written(type_names::DEFINED_IN, id, file);
            }
        }
    }

    /// Adds a relationship that follows from the text alone, without resolving a name. It has no line: the symbol has
    /// one, and a line here would be a new version for every symbol below an inserted line.
    fn written(&mut self, type_name: &str, src: Uuid, dst: Uuid) {
        let put = self.edge(type_name, src, dst);
        put.confidence = Some(1.0);
        put.derivation = Some(Derivation::Exact.derivation().into());
    }

    fn edge(&mut self, type_name: &str, src: Uuid, dst: Uuid) -> &mut PutRelationship {
        let put = PutRelationship {
            type_name: type_name.to_owned(),
            src: Reference::Id(src),
            dst: Reference::Id(dst),
            ..PutRelationship::default()
        };
        self.relationships.push(put);
        self.relationships.last_mut().expect("one was just added")
    }

    fn imports(&mut self, links: &FileLinks) {
        let Some(own) = self.names.get(DefRef { file: self.file, def: ROOT }).map(|s| s.id) else { return };
        let mut targets: BTreeMap<Uuid, (u32, Vec<String>)> = BTreeMap::new();
        for link in &links.imports {
            let import = &self.facts.imports[link.import];
            let to = match link.to {
                LinkTarget::Def(gid) if gid.file == self.file => continue,
                LinkTarget::Def(gid) => match self.names.get(DefRef { file: gid.file, def: ROOT }) {
                    Some(symbol) => symbol.id,
                    None => continue,
                },
                LinkTarget::External(path) => match self.package(path) {
                    Some(package) => package,
                    None => continue,
                },
            };
            let entry = targets.entry(to).or_insert((import.line, vec![]));
            entry.0 = entry.0.min(import.line);
            if let ImportKind::Symbol(name) = import.what {
                entry.1.push(self.facts.name(name).to_owned());
            }
        }
        for (to, (line, mut names)) in targets {
            names.sort();
            names.dedup();
            names.truncate(IMPORTED_NAMES);
            let put = self.edge(type_names::IMPORTS, own, to);
            put.properties.insert("line".into(), json!(line));
            if !names.is_empty() {
                put.properties.insert("names".into(), json!(names));
            }
            put.confidence = Some(Derivation::Import.confidence());
            put.derivation = Some(Derivation::Import.derivation().into());
        }
    }

    fn bases(&mut self, links: &FileLinks) {
        // A class may name a base twice (`class A(str, str)`): an error of the program, and one relationship.
        let mut recorded: FxHashSet<(Uuid, Uuid, &str)> = FxHashSet::default();
        for link in &links.bases {
            let Some(class) = self.names.get(DefRef { file: self.file, def: link.class }).map(|s| s.id) else {
                continue;
            };
            let (to, interface) = match link.to {
                LinkTarget::Def(gid) => match self.names.get(gid) {
                    Some(symbol) => (symbol.id, self.program.def(gid).kind == DefKind::Interface),
                    None => continue,
                },
                LinkTarget::External(path) => match self.external(path) {
                    Some(external) => (external, false),
                    None => continue,
                },
            };
            let own_interface = self.facts.def(link.class).kind == DefKind::Interface;
            let type_name = match link.how {
                BaseKind::Implements => type_names::IMPLEMENTS,
                _ if interface && !own_interface => type_names::IMPLEMENTS,
                _ => type_names::EXTENDS,
            };
            if class == to || !recorded.insert((class, to, type_name)) {
                continue;
            }
            let how = if link.structural { Derivation::Type } else { Derivation::Import };
            let put = self.edge(type_name, class, to);
            if link.line > 0 {
                put.properties.insert("line".into(), json!(link.line));
            }
            put.confidence = Some(how.confidence());
            put.derivation = Some(how.derivation().into());
        }
    }

    fn calls_and_uses(&mut self, links: &FileLinks) {
        struct Site {
            lines: Vec<u32>,
            how: Derivation,
        }
        struct Tested {
            calls: u32,
            first_line: u32,
            how: Derivation,
        }
        let mut calls: BTreeMap<(Uuid, Uuid), Site> = BTreeMap::new();
        let mut tested: BTreeMap<FileId, Tested> = BTreeMap::new();
        let own = self.program.file(self.file);
        let add = |calls: &mut BTreeMap<(Uuid, Uuid), Site>, src: Uuid, dst: Uuid, line: u32, how: Derivation| {
            let site = calls.entry((src, dst)).or_insert(Site { lines: vec![], how });
            site.how = site.how.min(how);
            if !site.lines.contains(&line) {
                site.lines.push(line);
            }
        };
        for link in &links.calls {
            let call = &self.facts.calls[link.call];
            let owner = self.names.counts_for(self.program, DefRef { file: self.file, def: call.owner });
            let (from, Some(src)) = owner else { continue };
            let src = src.id;
            let dst = match link.to {
                LinkTarget::Def(gid) => {
                    // A call of a lambda stays within the definition that contains it, so it has no edge.
                    let Some(symbol) = self.names.get(gid) else { continue };
                    if links.is_test || own.is_in_test(from.def) {
                        let file = self.program.file(gid.file);
                        if gid.file != self.file && !file.facts.def(ROOT).is(flag::TEST) {
                            let first = Tested { calls: 0, first_line: call.line, how: link.how };
                            let entry = tested.entry(gid.file).or_insert(first);
                            entry.calls += 1;
                            entry.first_line = entry.first_line.min(call.line);
                            entry.how = entry.how.min(link.how);
                        }
                    }
                    symbol.id
                }
                LinkTarget::External(path) => {
                    if call.how == CallKind::Implicit {
                        continue;
                    }
                    match self.external(path) {
                        Some(external) => external,
                        None => continue,
                    }
                }
            };
            add(&mut calls, src, dst, call.line, link.how);
        }
        for used in links.uses.iter().filter(|u| u.runs) {
            let (_, src) = self.names.counts_for(self.program, DefRef { file: self.file, def: used.owner });
            if let (Some(src), Some(dst)) = (src, self.names.get(used.to)) {
                add(&mut calls, src.id, dst.id, used.line, used.how);
            }
        }
        let called: FxHashSet<(Uuid, Uuid)> = calls.keys().copied().collect();
        for ((src, dst), mut site) in calls {
            site.lines.sort_unstable();
            let put = self.edge(type_names::CALLS, src, dst);
            set_lines(&mut put.properties, &site.lines, site.lines.len());
            put.confidence = Some(site.how.confidence());
            put.derivation = Some(site.how.derivation().into());
        }
        let mut seen: FxHashSet<(Uuid, Uuid)> = FxHashSet::default();
        for used in links.uses.iter().filter(|u| !u.runs) {
            let (from, src) = self.names.counts_for(self.program, DefRef { file: self.file, def: used.owner });
            let (Some(src), Some(dst)) = (src, self.names.get(used.to)) else { continue };
            let (src, dst) = (src.id, dst.id);
            if from == used.to || called.contains(&(src, dst)) || !seen.insert((src, dst)) {
                continue;
            }
            let put = self.edge(type_names::REFERENCES, src, dst);
            put.properties.insert("line".into(), json!(used.line));
            put.confidence = Some(used.how.confidence());
            put.derivation = Some(used.how.derivation().into());
        }
        let Some(own) = self.names.get(DefRef { file: self.file, def: ROOT }).map(|s| s.id) else { return };
        for (file, tested) in tested {
            let Some(to) = self.names.get(DefRef { file, def: ROOT }).map(|s| s.id) else { continue };
            let put = self.edge(type_names::TESTS, own, to);
            put.properties.insert("line".into(), json!(tested.first_line));
            put.properties.insert("calls".into(), json!(tested.calls));
            put.confidence = Some(tested.how.confidence());
            put.derivation = Some(tested.how.derivation().into());
        }
    }

    // --- objects outside the program ---

    fn package(&mut self, path: ExternalId) -> Option<Uuid> {
        let (package, _) = self.program.external_path(path);
        let package = keys::clean(package).into_owned();
        (!package.is_empty()).then(|| self.outside_package(&package))
    }

    fn outside_package(&mut self, package: &str) -> Uuid {
        let ecosystem = ecosystem_of(self.facts.language, package);
        let key = format!("{ecosystem}:{package}");
        let id = object_id(self.names.namespace, type_names::PACKAGE, &key);
        self.outside.entry((type_names::PACKAGE, key)).or_insert_with(|| package_object(ecosystem, package));
        id
    }

    /// The object of a name in a package; `None` if the name is empty.
    fn external(&mut self, path: ExternalId) -> Option<Uuid> {
        let (package, names) = self.program.external_path(path);
        if names.is_empty() {
            return self.package(path);
        }
        let (package, name) = (keys::clean(package).into_owned(), names.join("."));
        let name = keys::clean(&name).into_owned();
        if package.is_empty() || name.is_empty() {
            return None;
        }
        let ecosystem = ecosystem_of(self.facts.language, &package);
        let key = format!("{ecosystem}:{package}::{name}");
        let id = object_id(self.names.namespace, type_names::EXTERNAL, &key);
        if !self.outside.contains_key(&(type_names::EXTERNAL, key.clone())) {
            self.outside_package(&package);
            self.outside.insert((type_names::EXTERNAL, key), external_object(ecosystem, &package, &name));
        }
        Some(id)
    }
}

/// Most names listed on one import. A module with more is used as a whole.
const IMPORTED_NAMES: usize = 50;
/// Most unresolved calls listed on one file. Only generated files have more.
const UNRESOLVED_SITES: usize = 2_000;
/// Most lines listed on one call edge.
const CALL_LINES: usize = 20;

/// Sets the lines of a call edge, ascending. `calls` is the number of calls, which may exceed the number of known
/// lines.
pub(crate) fn set_lines(properties: &mut Map<String, Value>, lines: &[u32], calls: usize) {
    let Some(first) = lines.first() else { return };
    properties.insert("line".into(), json!(first));
    if calls > 1 {
        properties.insert("calls".into(), json!(calls));
        properties.insert("lines".into(), json!(&lines[..lines.len().min(CALL_LINES)]));
    }
}

/// The object of a package outside the program.
pub(crate) fn package_object(ecosystem: &str, package: &str) -> PutObject {
    let mut put = PutObject::new(type_names::PACKAGE, &format!("{ecosystem}:{package}"));
    put.title = Some(package.to_owned());
    put.properties = properties(&[("ecosystem", json!(ecosystem))]);
    put
}

/// The object of a name in a package outside the program.
pub(crate) fn external_object(ecosystem: &str, package: &str, name: &str) -> PutObject {
    let mut put = PutObject::new(type_names::EXTERNAL, &format!("{ecosystem}:{package}::{name}"));
    put.title = Some(name.to_owned());
    put.properties = properties(&[("ecosystem", json!(ecosystem)), ("package", json!(package))]);
    put
}

/// The prefix of a package's key. The language's own library may have another one than packages that are installed.
fn ecosystem_of(language: LanguageId, package: &str) -> &'static str {
    let library = language.rules().library.filter(|library| library.package == package);
    library.and_then(|library| library.ecosystem).unwrap_or_else(|| language.get().ecosystem())
}

fn subtype(def: &Def) -> Option<&'static str> {
    Some(match def.kind {
        DefKind::Struct => "struct",
        DefKind::Enum => "enum",
        DefKind::Field => "field",
        DefKind::Variable if def.is(flag::CONSTANT) => "constant",
        DefKind::Method if def.is(flag::CONSTRUCTOR) => "constructor",
        DefKind::Function if def.is(flag::MACRO) => "macro",
        _ => return None,
    })
}

fn properties(pairs: &[(&str, Value)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}
