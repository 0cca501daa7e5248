//! One pass over a working tree: what changed is read, what that affects is resolved again, and the difference to
//! what the branch says is written in one transaction.

use super::files::{self, Content, DIAGNOSTICS, Diagnostic, Listed, Stamp};
use crate::{Context, Engine};
use lukasa_code::facts::Facts;
use lukasa_code::resolve::program::is_manifest;
use lukasa_code::resolve::{Links, Program, To, resolve};
use lukasa_code::statements::{self, About, Names, Statements};
use lukasa_model::batch::{End, PutObject, PutRelationship};
use lukasa_model::json::Hasher;
use lukasa_model::types::RENAMED_FROM;
use lukasa_model::{Batch, ErrorKind, Reference, Result, Scope, ThingNo, TransactionKind, Tx, View, Write};
use lukasa_store::ledger::ViewSpec;
use lukasa_store::{Fields, Ledger};
use parking_lot::Mutex;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// A working tree that is kept on a branch. Passes over it come one after another.
pub struct Workspace {
    root: PathBuf,
    scope: Scope,
    state: Mutex<State>,
}

/// What is remembered between passes. All of it can be read anew.
#[derive(Default)]
struct State {
    /// The branch and transaction `known` is true for.
    branch: String,
    tx: Tx,
    known: BTreeMap<String, Known>,
    program: Program,
    /// Sources whose facts are in `program`; as long as some are missing, nothing can be resolved.
    loaded: FxHashMap<String, [u8; 20]>,
    links: Vec<Links>,
    /// What `links` and `program` were stated as.
    stated: bool,
}

/// A file as the branch has it.
#[derive(Clone, Debug)]
struct Known {
    content: [u8; 20],
    /// Hash over everything stated for the file.
    facts: String,
    /// The file on disk that had this content.
    stamp: Option<Stamp>,
}

/// What a pass is about.
pub struct Pass {
    pub branch: String,
    pub kind: TransactionKind,
    pub reason: Option<String>,
    /// The commit the tree may turn out to be, with its time.
    pub commit: Option<lukasa_model::Time>,
}

/// What a pass found and did.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// Files of the working tree that are not ignored.
    pub files: usize,
    /// Those of them in a language that is taken apart.
    pub sources: usize,
    pub lines: u64,
    pub bytes: u64,
    pub changed: usize,
    pub removed: usize,
    /// Files that were taken apart in this pass.
    pub parsed: usize,
    /// Files whose facts were written.
    pub written_files: usize,
    pub symbols: usize,
    /// Relationships by type.
    pub relationships: BTreeMap<String, usize>,
    /// Calls by how they were derived.
    pub derivations: BTreeMap<String, usize>,
    pub calls: u64,
    pub calls_outside: u64,
    pub calls_unresolved: u64,
    pub tx: Option<Tx>,
    pub objects: u32,
    pub relationships_written: u32,
    pub diagnostics: Vec<Diagnostic>,
    pub diagnostics_left_out: usize,
    pub took_ms: u64,
    /// Milliseconds by step.
    pub steps: BTreeMap<String, u64>,
}

/// A file that was read in this pass.
struct Fresh {
    path: String,
    stamp: Stamp,
    content: [u8; 20],
    bytes: u64,
    facts: Option<Arc<Facts>>,
    manifest: Option<String>,
    binary: bool,
    faults: Vec<Diagnostic>,
}

impl Workspace {
    pub fn new(root: &Path, scope: Scope) -> Workspace {
        Workspace { root: root.to_owned(), scope, state: Mutex::default() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Brings the branch up to date with the working tree.
    pub fn index(&self, engine: &Engine, context: &mut Context<'_>, pass: &Pass) -> Result<Report> {
        let began = Instant::now();
        let mut steps = Steps { began, last: began, taken: BTreeMap::new() };
        let mut state = self.state.lock();
        let ledger = engine.ledger(&self.scope);
        let (listed, faults) = files::list(&self.root)?;
        steps.done("list");
        let view = self.catch_up(&mut state, &ledger, &pass.branch)?;
        steps.done("known");
        let mut report = Report { files: listed.len(), ..Report::default() };
        report.diagnostics = faults;

        let plan = look(&state, &listed);
        let fresh = self.read(&plan, &state, context);
        steps.done("read");
        let changes = self.take_in(&mut state, fresh, &listed, &mut report);
        report.changed = changes.changed.len();
        report.removed = changes.removed.len();
        for (path, known) in &mut state.known {
            if known.stamp.is_none()
                && let Ok(at) = listed.binary_search_by(|l| l.path.as_str().cmp(path))
            {
                known.stamp = Some(listed[at].stamp);
            }
        }
        if !changes.changed.is_empty() || !changes.removed.is_empty() || pass.kind == TransactionKind::FullRebuild {
            self.write(&mut state, engine, context, &ledger, view.as_ref(), pass, &changes, &mut report, &mut steps)?;
        }
        let more = report.diagnostics.len().saturating_sub(DIAGNOSTICS);
        report.diagnostics.truncate(DIAGNOSTICS);
        report.diagnostics_left_out = more;
        report.took_ms = began.elapsed().as_millis() as u64;
        report.steps = steps.taken;
        Ok(report)
    }

    /// Reads what the branch says of files, unless nothing was written since the last pass.
    fn catch_up(&self, state: &mut State, ledger: &Ledger, branch: &str) -> Result<Option<View>> {
        let head = match ledger.head() {
            Ok(head) => head,
            Err(e) if e.kind == ErrorKind::NotFound => {
                *state = State { branch: branch.to_owned(), ..std::mem::take(state) };
                state.known.clear();
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        let view = ledger.view(&ViewSpec::on(branch))?;
        if state.tx == head.tx && state.branch == branch && head.tx > 0 {
            return Ok(Some(view));
        }
        let stamps: FxHashMap<String, ([u8; 20], Stamp)> = std::mem::take(&mut state.known)
            .into_iter()
            .filter_map(|(path, known)| Some((path, (known.content, known.stamp?))))
            .collect();
        for found in ledger.beginning(&view, Some("FILE"), "", Fields::Content)? {
            let (Some(path), Some(statement)) = (found.thing.key.as_deref(), &found.statement) else { continue };
            let content = statement.parsed()?;
            let text = |name: &str| content.properties.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
            // A file somebody stated by hand has no content of ours: it is left alone.
            let Some(id) = unhex(&text("content_hash")) else { continue };
            let stamp = stamps.get(path).filter(|(known, _)| *known == id).map(|(_, stamp)| *stamp);
            state.known.insert(path.to_owned(), Known { content: id, facts: text("facts"), stamp });
        }
        if state.branch != branch || state.tx != head.tx {
            state.stated = false;
        }
        state.branch = branch.to_owned();
        state.tx = head.tx;
        Ok(Some(view))
    }

    /// Reads and takes apart what has to be, on all cores.
    fn read(&self, plan: &Look<'_>, state: &State, context: &mut Context<'_>) -> Vec<Fresh> {
        let total = plan.read.len() as u64;
        let mut out: Vec<Fresh> = Vec::with_capacity(plan.read.len());
        // In parts, so that progress can be told.
        let part = if total > 2_000 { 1_000 } else { usize::MAX };
        for files in plan.read.chunks(part.min(plan.read.len().max(1))) {
            let fresh: Vec<Option<Fresh>> = files.par_iter().map(|listed| self.read_one(listed, state)).collect();
            out.extend(fresh.into_iter().flatten());
            (context.progress)(out.len() as u64, Some(total));
        }
        out
    }

    fn read_one(&self, listed: &Listed, state: &State) -> Option<Fresh> {
        let path = &listed.path;
        let mut faults = Vec::new();
        let Some(bytes) = files::load(&self.root, path, &mut faults) else {
            return Some(Fresh {
                path: path.clone(),
                stamp: listed.stamp,
                content: [0; 20],
                bytes: listed.stamp.size,
                facts: None,
                manifest: None,
                binary: true,
                faults,
            });
        };
        let content = files::content_id(&bytes);
        let mut fresh = Fresh {
            path: path.clone(),
            stamp: listed.stamp,
            content,
            bytes: bytes.len() as u64,
            facts: None,
            manifest: None,
            binary: false,
            faults: vec![],
        };
        if is_manifest(path) {
            fresh.manifest = Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        if state.loaded.get(path) != Some(&content) {
            match files::read(path, bytes, &mut faults) {
                Content::Source { text, language } => {
                    let facts = lukasa_code::parse(path, &text, language);
                    if let Some((line, what)) = facts.faults.first() {
                        faults.push(Diagnostic { line: Some(*line), ..Diagnostic::new(path, what.to_string()) });
                    }
                    fresh.facts = Some(Arc::new(facts));
                }
                Content::Text => {}
                Content::Binary => fresh.binary = true,
            }
        }
        fresh.faults = faults;
        Some(fresh)
    }

    /// Puts what was read where it belongs, and tells what differs from the branch.
    fn take_in(&self, state: &mut State, fresh: Vec<Fresh>, listed: &[Listed], report: &mut Report) -> Changes {
        let mut changes = Changes::default();
        let mut unreadable: FxHashSet<String> = FxHashSet::default();
        for file in fresh {
            report.diagnostics.extend(file.faults);
            if file.binary {
                unreadable.insert(file.path);
                continue;
            }
            if let Some(manifest) = file.manifest {
                state.program.manifests.insert(file.path.clone(), manifest);
            }
            if let Some(facts) = file.facts {
                report.parsed += 1;
                state.program.set(&file.path, facts);
                state.loaded.insert(file.path.clone(), file.content);
            }
            let about = About { content_hash: hex(&file.content), bytes: file.bytes };
            match state.known.get_mut(&file.path) {
                Some(known) if known.content == file.content => known.stamp = Some(file.stamp),
                _ => {
                    changes.stamps.insert(file.path.clone(), (file.content, file.stamp));
                    changes.changed.insert(file.path.clone(), about);
                }
            }
        }
        let there: FxHashSet<&str> =
            listed.iter().map(|l| l.path.as_str()).filter(|p| !unreadable.contains(*p)).collect();
        for path in state.known.keys() {
            if !there.contains(path.as_str()) {
                changes.removed.insert(path.clone());
            }
        }
        let gone: Vec<String> = state.loaded.keys().filter(|p| !there.contains(p.as_str())).cloned().collect();
        for path in gone {
            state.loaded.remove(&path);
            state.program.remove(&path);
        }
        state.program.manifests.retain(|path, _| there.contains(path.as_str()));
        changes
    }

    #[allow(clippy::too_many_arguments)]
    fn write(
        &self,
        state: &mut State,
        engine: &Engine,
        context: &mut Context<'_>,
        ledger: &Ledger,
        view: Option<&View>,
        pass: &Pass,
        changes: &Changes,
        report: &mut Report,
        steps: &mut Steps,
    ) -> Result<()> {
        let _ = engine;
        let links = resolve(&mut state.program);
        steps.done("resolve");
        let namespace = ledger.head().map_or_else(|_| self.scope.namespace(), |head| head.namespace);
        let names = Names::new(&state.program, namespace);
        let affected = affected(state, &links, changes);
        let made = self.statements(state, &names, &links, &affected, changes);
        steps.done("statements");
        let mut batch = Batch { header: context.header(pass.reason.clone()), ..Batch::on(&pass.branch) };
        batch.header.kind = pass.kind;
        batch.header.valid_at = pass.commit;
        let mut outside: BTreeMap<(&'static str, String), PutObject> = BTreeMap::new();
        let mut relationships: Vec<PutRelationship> = Vec::new();
        let mut stated: Vec<(String, String)> = Vec::new();
        let mut ends: Vec<Uuid> = Vec::new();
        let renamed = renames(state, changes);
        for file in made {
            let known = state.known.get(&file.path);
            if known.is_some_and(|k| k.facts == file.digest && !changes.changed.contains_key(&file.path)) {
                continue;
            }
            report.written_files += 1;
            if let Some(view) = view.filter(|_| known.is_some()) {
                let keep = file.ids(namespace);
                ends.extend(stale(ledger, view, &file.path, &keep)?);
            }
            stated.push((file.path.clone(), file.digest.clone()));
            let Statements { objects, relationships: own, outside: more } = file.made;
            batch.writes.extend(objects.into_iter().map(Write::Object));
            relationships.extend(own);
            outside.extend(more);
        }
        for path in &changes.removed {
            if let Some(view) = view {
                ends.extend(stale(ledger, view, path, &FxHashSet::default())?);
            }
        }
        batch.writes.extend(outside.into_values().map(Write::Object));
        batch.writes.extend(relationships.into_iter().map(Write::Relationship));
        for (old, new) in &renamed {
            batch.writes.push(
                PutRelationship::new(RENAMED_FROM, Reference::exact("FILE", new), Reference::exact("FILE", old)).into(),
            );
        }
        ends.sort_unstable();
        ends.dedup();
        batch.writes.extend(ends.into_iter().map(|id| Write::End(End::new(id))));
        steps.done("differences");
        count(&batch, report);
        let committed = ledger.commit(&batch)?;
        steps.done("commit");
        report.tx = committed.tx;
        report.objects = committed.objects;
        report.relationships_written = committed.relationships;
        for link in &links {
            report.calls += u64::from(link.counts.calls);
            report.calls_outside += u64::from(link.counts.outside);
            report.calls_unresolved += u64::from(link.counts.unresolved);
        }
        for id in state.program.ids() {
            let facts = &state.program.file(id).facts;
            report.sources += 1;
            report.lines += u64::from(facts.lines);
        }
        state.links = links;
        state.stated = true;
        for path in &changes.removed {
            state.known.remove(path);
        }
        for (path, digest) in stated {
            let stamp = changes.stamps.get(&path);
            let before = state.known.get(&path);
            let content = stamp.map(|(c, _)| *c).or(before.map(|k| k.content)).unwrap_or_default();
            let stamp = stamp.map(|(_, s)| *s).or(before.and_then(|k| k.stamp));
            state.known.insert(path, Known { content, facts: digest, stamp });
        }
        state.tx = committed.tx.unwrap_or(state.tx);
        Ok(())
    }

    /// What the files that may have changed say now, with a hash over all of it.
    fn statements(
        &self,
        state: &State,
        names: &Names,
        links: &[Links],
        affected: &FxHashSet<u32>,
        changes: &Changes,
    ) -> Vec<Made> {
        let ids: Vec<u32> = state.program.ids().filter(|id| affected.contains(id)).collect();
        let mut made: Vec<Made> = ids
            .par_iter()
            .map(|id| {
                let path = state.program.file(*id).path.to_string();
                let about = match changes.changed.get(&path) {
                    Some(about) => about.clone(),
                    None => {
                        let known = state.known.get(&path);
                        let bytes = state.program.file(*id).facts.def(0).span.end;
                        let content_hash = known.map(|k| hex(&k.content)).unwrap_or_default();
                        About { content_hash, bytes: u64::from(bytes) }
                    }
                };
                let made = statements::of_file(&state.program, names, &links[*id as usize], *id, &about);
                Made::new(path, made)
            })
            .collect();
        for (path, about) in &changes.changed {
            if state.program.find_file(path).is_none() {
                let objects = vec![statements::plain_file(path, about)];
                made.push(Made::new(path.clone(), Statements { objects, ..Statements::default() }));
            }
        }
        made.sort_by(|a, b| a.path.cmp(&b.path));
        made
    }
}

/// What to read: everything new or touched, and every source whose facts are needed and not at hand.
struct Look<'a> {
    read: Vec<&'a Listed>,
}

fn look<'a>(state: &State, listed: &'a [Listed]) -> Look<'a> {
    let touched: Vec<&Listed> =
        listed.iter().filter(|l| state.known.get(&l.path).is_none_or(|known| known.stamp != Some(l.stamp))).collect();
    let gone = state.known.len() + touched.len() != listed.len()
        || state.known.keys().any(|p| listed.binary_search_by(|l| l.path.as_str().cmp(p)).is_err());
    if touched.is_empty() && !gone {
        return Look { read: vec![] };
    }
    let read = listed
        .iter()
        .filter(|l| {
            let known = state.known.get(&l.path);
            known.is_none_or(|known| known.stamp != Some(l.stamp))
                || (!state.loaded.contains_key(&l.path)
                    && (lukasa_code::Language::of(&l.path, "").is_some() || is_manifest(&l.path)))
        })
        .collect();
    Look { read }
}

#[derive(Default)]
struct Changes {
    changed: BTreeMap<String, About>,
    stamps: FxHashMap<String, ([u8; 20], Stamp)>,
    removed: BTreeSet<String>,
}

/// What a file says now.
struct Made {
    path: String,
    made: Statements,
    digest: String,
}

impl Made {
    fn new(path: String, mut made: Statements) -> Made {
        let mut hasher = Hasher::default();
        for object in &made.objects {
            hasher.add(&serde_json::to_vec(object).unwrap_or_default());
        }
        for relationship in &made.relationships {
            hasher.add(&serde_json::to_vec(relationship).unwrap_or_default());
        }
        let digest = hex(&hasher.finish().0[..8]);
        if let Some(file) = made.objects.first_mut() {
            file.properties.insert("facts".into(), json!(digest));
        }
        Made { path, made, digest }
    }

    /// Everything the file states, by id.
    fn ids(&self, namespace: Uuid) -> FxHashSet<Uuid> {
        let mut ids = FxHashSet::default();
        for object in &self.made.objects {
            let key = object.key.as_deref().unwrap_or_default();
            ids.insert(lukasa_model::id::object_id(namespace, &object.type_name, key));
        }
        for r in &self.made.relationships {
            if let (Reference::Id(src), Reference::Id(dst)) = (&r.src, &r.dst) {
                let id = lukasa_model::id::relationship_id(namespace, &r.type_name, *src, *dst, &r.discriminator);
                ids.insert(id);
            }
        }
        ids
    }
}

/// Files that may say something else than before: those that changed, those whose names mean something else, and those
/// that name something in a file that changed.
fn affected(state: &State, links: &[Links], changes: &Changes) -> FxHashSet<u32> {
    if !state.stated {
        return state.program.ids().collect();
    }
    let changed: FxHashSet<u32> = changes.changed.keys().filter_map(|path| state.program.find_file(path)).collect();
    let into_changed = |to: &To| matches!(to, To::Def(gid) if changed.contains(&gid.file));
    state
        .program
        .ids()
        .filter(|id| {
            let now = &links[*id as usize];
            changed.contains(id)
                || state.links.get(*id as usize) != Some(now)
                || now.calls.iter().any(|l| into_changed(&l.to))
                || now.imports.iter().any(|l| into_changed(&l.to))
                || now.bases.iter().any(|l| into_changed(&l.to))
                || now.uses.iter().any(|l| changed.contains(&l.to.file))
        })
        .collect()
}

/// Things of a file that the branch still has and that are said no more.
fn stale(ledger: &Ledger, view: &View, path: &str, keep: &FxHashSet<Uuid>) -> Result<Vec<Uuid>> {
    let mut objects = ledger.beginning(view, None, &format!("{path}::"), Fields::Header)?;
    objects.extend(
        ledger
            .beginning(view, Some("FILE"), path, Fields::Header)?
            .into_iter()
            .filter(|s| s.thing.key.as_deref() == Some(path)),
    );
    let numbers: Vec<ThingNo> = objects.iter().map(|s| s.thing.no).collect();
    let own: FxHashSet<ThingNo> = numbers.iter().copied().collect();
    let related: Vec<ThingNo> = ledger
        .relationships_at(&numbers)?
        .into_iter()
        .filter(|t| {
            let Some(ends) = &t.ends else { return false };
            let ours = statements::RELATIONSHIP_TYPES.contains(&&*t.type_name);
            let belongs = if &*t.type_name == "CONTAINS" { own.contains(&ends.dst) } else { own.contains(&ends.src) };
            ours && belongs && !keep.contains(&t.id)
        })
        .map(|t| t.no)
        .collect();
    let mut ends: Vec<Uuid> = objects.iter().map(|s| s.thing.id).filter(|id| !keep.contains(id)).collect();
    for state in ledger.states(view, &related, Fields::Header)? {
        if state.statement.as_ref().is_some_and(|s| !s.absent) {
            ends.push(state.thing.id);
        }
    }
    Ok(ends)
}

/// Files that went away and came back under another name with the same content: old path, new path.
fn renames(state: &State, changes: &Changes) -> Vec<(String, String)> {
    let mut gone: FxHashMap<String, &String> = FxHashMap::default();
    for path in &changes.removed {
        if let Some(known) = state.known.get(path) {
            gone.insert(hex(&known.content), path);
        }
    }
    let mut found = Vec::new();
    for (path, about) in &changes.changed {
        // Empty files are all alike.
        if about.bytes > 0
            && !state.known.contains_key(path)
            && let Some(old) = gone.remove(&about.content_hash)
        {
            found.push((old.clone(), path.clone()));
        }
    }
    found
}

fn count(batch: &Batch, report: &mut Report) {
    for write in &batch.writes {
        match write {
            Write::Object(put) => {
                if put.type_name != "FILE" && put.type_name != "PACKAGE" && put.type_name != "EXTERNAL" {
                    report.symbols += 1;
                }
            }
            Write::Relationship(put) => {
                *report.relationships.entry(put.type_name.clone()).or_default() += 1;
                if put.type_name == "CALLS"
                    && let Some(derivation) = &put.derivation
                {
                    *report.derivations.entry(derivation.clone()).or_default() += 1;
                }
            }
            Write::End(_) => {}
        }
    }
}

struct Steps {
    began: Instant,
    last: Instant,
    taken: BTreeMap<String, u64>,
}

impl Steps {
    fn done(&mut self, step: &str) {
        let now = Instant::now();
        let _ = self.began;
        self.taken.insert(step.to_owned(), (now - self.last).as_millis() as u64);
        self.last = now;
    }
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<[u8; 20]> {
    if text.len() != 40 || !text.is_ascii() {
        return None;
    }
    let mut out = [0u8; 20];
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(out)
}
