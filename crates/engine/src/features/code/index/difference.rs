//! The writes of a pass: the facts of its files, in parts, and the end of facts that no longer apply.

use super::{Changes, State};
use crate::hex::hex;
use crate::view::symbols::SymbolKind;
use lukasa_code::ids::IdVec;
use lukasa_code::resolve::{FileId, FileLinks, LinkTarget, Program};
use lukasa_code::statements::{self, FileDetails, SymbolNames};
use lukasa_code::type_names;
use lukasa_model::{FactNo, Reference, Result, View, Write};
use lukasa_store::{Ledger, VersionFields};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Up to this many files are written as one batch, which log followers need not read back.
pub(super) const FEW_FILES: usize = 200;
/// Definitions, calls and references per part of a load: few enough for a part to stay in the processor's caches while
/// it is planned and written.
const PART: usize = 4_000;

/// The facts of files, in parts: objects, external names, relationships, and at the end all other writes.
pub(super) struct Parts<'a> {
    program: &'a Program,
    names: &'a SymbolNames,
    links: &'a IdVec<FileId, FileLinks>,
    files: Vec<&'a [FileToWrite]>,
    at: usize,
    last: Vec<Write>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(
        program: &'a Program,
        names: &'a SymbolNames,
        links: &'a IdVec<FileId, FileLinks>,
        files: &'a [FileToWrite],
        last: Vec<Write>,
    ) -> Parts<'a> {
        let size = |file: &FileToWrite| match file.source {
            Some(id) => {
                let links = &links[id];
                program.file(id).facts.defs.len() + links.calls.len() + links.uses.len()
            }
            None => 1,
        };
        let (mut parts, mut begun, mut filled) = (Vec::new(), 0, 0);
        for (at, file) in files.iter().enumerate() {
            filled += size(file);
            if filled >= PART {
                parts.push(&files[begun..=at]);
                (begun, filled) = (at + 1, 0);
            }
        }
        if begun < files.len() {
            parts.push(&files[begun..]);
        }
        Parts { program, names, links, files: parts, at: 0, last }
    }

    fn objects(&self, file: &FileToWrite) -> Vec<Write> {
        let objects = match file.source {
            Some(id) => {
                let links = &self.links[id];
                statements::objects(self.program, self.names, links, id, &file.about, &file.digest)
            }
            None => vec![statements::plain_file(&file.path, &file.about)],
        };
        objects.into_iter().map(Write::Object).collect()
    }

    fn relationships(&self, file: &FileToWrite) -> Vec<Write> {
        let Some(id) = file.source else { return vec![] };
        let made = statements::relationships(self.program, self.names, &self.links[id], id);
        made.into_iter().map(Write::Relationship).collect()
    }

    fn outside(&self) -> Vec<Write> {
        let files: Vec<FileId> = self.files.iter().copied().flatten().filter_map(|file| file.source).collect();
        let all = files.par_chunks(64).map(|files| {
            let of = |id: &FileId| statements::outside(self.program, self.names, &self.links[*id], *id);
            files.iter().flat_map(of).collect::<statements::OutsideObjects>()
        });
        let all = all.reduce(statements::OutsideObjects::new, |mut all, more| {
            all.extend(more);
            all
        });
        all.into_values().map(Write::Object).collect()
    }
}

impl Iterator for Parts<'_> {
    type Item = Vec<Write>;

    fn next(&mut self) -> Option<Vec<Write>> {
        let (at, parts) = (self.at, self.files.len());
        self.at += 1;
        let made = |part: usize, make: fn(&Self, &FileToWrite) -> Vec<Write>| {
            let files: Vec<Vec<Write>> = self.files[part].par_iter().map(|file| make(self, file)).collect();
            let mut all = Vec::with_capacity(files.iter().map(Vec::len).sum());
            files.into_iter().for_each(|mut file| all.append(&mut file));
            all
        };
        if at < parts {
            return Some(made(at, Parts::objects));
        }
        if at == parts {
            return Some(self.outside());
        }
        let part = at - parts - 1;
        if part < parts {
            return Some(made(part, Parts::relationships));
        }
        (part == parts).then(|| std::mem::take(&mut self.last))
    }
}

/// A file to be written.
pub(super) struct FileToWrite {
    pub(super) path: String,
    /// None for a file that is not a source.
    pub(super) source: Option<FileId>,
    pub(super) about: FileDetails,
    pub(super) digest: String,
}

impl FileToWrite {
    /// The ids of all facts of the file.
    pub(super) fn ids(
        &self,
        program: &Program,
        names: &SymbolNames,
        links: &IdVec<FileId, FileLinks>,
        namespace: Uuid,
    ) -> FxHashSet<Uuid> {
        let Some(id) = self.source else {
            return FxHashSet::from_iter([lukasa_model::id::object_id(namespace, type_names::FILE, &self.path)]);
        };
        let links = &links[id];
        let mut ids: FxHashSet<Uuid> = names.ids_of(id).collect();
        for r in statements::relationships(program, names, links, id) {
            if let (Reference::Id(src), Reference::Id(dst)) = (&r.src, &r.dst) {
                let id = lukasa_model::id::relationship_id(namespace, &r.type_name, *src, *dst, &r.discriminator);
                ids.insert(id);
            }
        }
        ids
    }
}

/// Files whose facts may differ: changed files, files whose names resolve differently, and files that refer to a
/// changed file.
pub(super) fn affected(state: &State, links: &IdVec<FileId, FileLinks>, changes: &Changes) -> FxHashSet<FileId> {
    let changed: FxHashSet<FileId> = changes.changed.keys().filter_map(|path| state.program.find_file(path)).collect();
    let into_changed = |to: &LinkTarget| matches!(to, LinkTarget::Def(gid) if changed.contains(&gid.file));
    state
        .program
        .ids()
        .filter(|id| {
            let now = &links[*id];
            changed.contains(id)
                || state.again.contains(id)
                || now.calls.iter().any(|l| into_changed(&l.to))
                || now.imports.iter().any(|l| into_changed(&l.to))
                || now.bases.iter().any(|l| into_changed(&l.to))
                || now.uses.iter().any(|l| changed.contains(&l.to.file))
                || now.receivers.iter().any(|(_, of)| changed.contains(&of.file))
        })
        .collect()
}

/// Facts on the branch that no longer apply, of files that are written again or are gone.
pub(super) fn no_longer_recorded(
    state: &State,
    names: &SymbolNames,
    made: &[FileToWrite],
    changes: &Changes,
    ledger: &Ledger,
    view: &View,
) -> Result<Vec<Uuid>> {
    let namespace = ledger.head()?.namespace;
    let mut ends = Vec::new();
    for file in made.iter().filter(|file| state.known.contains_key(&file.path)) {
        let keep = file.ids(&state.program, names, state.resolver.links(), namespace);
        ends.extend(stale(ledger, view, &file.path, &keep)?);
    }
    for path in &changes.removed {
        ends.extend(stale(ledger, view, path, &FxHashSet::default())?);
    }
    ends.sort_unstable();
    ends.dedup();
    Ok(ends)
}

/// Facts of a file that the branch still has and that are not in `keep`.
pub(super) fn stale(ledger: &Ledger, view: &View, path: &str, keep: &FxHashSet<Uuid>) -> Result<Vec<Uuid>> {
    let mut objects = ledger.states_with_prefix(view, None, &format!("{path}::"), VersionFields::Header)?;
    objects.extend(
        ledger
            .states_with_prefix(view, Some(type_names::FILE), path, VersionFields::Header)?
            .into_iter()
            .filter(|s| s.thing.key.as_deref() == Some(path)),
    );
    let numbers: Vec<FactNo> = objects.iter().map(|s| s.thing.no).collect();
    let own: FxHashSet<FactNo> = numbers.iter().copied().collect();
    let related: Vec<FactNo> = ledger
        .relationships_at(&numbers)?
        .into_iter()
        .filter(|t| {
            let Some(ends) = &t.ends else { return false };
            let belongs = match type_names::relationship_type(&t.type_name) {
                None => false,
                Some(type_names::CONTAINS) => own.contains(&ends.dst),
                Some(_) => own.contains(&ends.src),
            };
            belongs && !keep.contains(&t.id)
        })
        .map(|t| t.no)
        .collect();
    let mut ends: Vec<Uuid> = objects.iter().map(|s| s.thing.id).filter(|id| !keep.contains(id)).collect();
    for state in ledger.states(view, &related, VersionFields::Header)? {
        if state.statement.as_ref().is_some_and(|s| !s.absent) {
            ends.push(state.thing.id);
        }
    }
    Ok(ends)
}

/// Packages and their names that are no longer used.
pub(super) fn unused_outside(
    program: &Program,
    names: &SymbolNames,
    links: &IdVec<FileId, FileLinks>,
    ledger: &Ledger,
    view: &View,
) -> Result<Vec<Uuid>> {
    let mut used = statements::OutsideObjects::new();
    for id in program.ids() {
        used.extend(statements::outside(program, names, &links[id], id));
    }
    let mut unused = Vec::new();
    for object_type in [type_names::PACKAGE, type_names::EXTERNAL] {
        for found in ledger.states_with_prefix(view, Some(object_type), "", VersionFields::Header)? {
            let key = found.thing.key.as_deref().unwrap_or_default().to_owned();
            if !used.contains_key(&(object_type, key)) {
                unused.push(found.thing.id);
            }
        }
    }
    Ok(unused)
}

/// Files that disappeared and came back under another path with the same content: old path, new path.
pub(super) fn renames(state: &State, changes: &Changes) -> Vec<(String, String)> {
    let mut gone: FxHashMap<String, &String> = FxHashMap::default();
    for path in &changes.removed {
        if let Some(known) = state.known.get(path) {
            gone.insert(hex(&known.content), path);
        }
    }
    let mut found = Vec::new();
    for (path, about) in &changes.changed {
        // All empty files have the same content.
        if about.bytes > 0
            && !state.known.contains_key(path)
            && let Some(old) = gone.remove(&about.content_hash)
        {
            found.push((old.clone(), path.clone()));
        }
    }
    found
}

#[derive(Default)]
pub(super) struct WriteCounts {
    pub(super) symbols: usize,
    pub(super) relationships: BTreeMap<String, usize>,
    pub(super) derivations: BTreeMap<String, usize>,
}

impl WriteCounts {
    pub(super) fn add(&mut self, write: &Write) {
        let more = |counts: &mut BTreeMap<String, usize>, name: &str| match counts.get_mut(name) {
            Some(count) => *count += 1,
            None => {
                counts.insert(name.to_owned(), 1);
            }
        };
        match write {
            Write::Object(put) => {
                let symbol =
                    SymbolKind::of_type(&put.type_name).is_some_and(|kind| kind != SymbolKind::File && !kind.outside());
                self.symbols += usize::from(symbol);
            }
            Write::Relationship(put) => {
                more(&mut self.relationships, &put.type_name);
                if let (true, Some(derivation)) = (put.type_name == type_names::CALLS, &put.derivation) {
                    more(&mut self.derivations, derivation);
                }
            }
            Write::End(_) => {}
        }
    }
}
