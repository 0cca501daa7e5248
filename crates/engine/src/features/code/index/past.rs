//! Imports past commits: each is compared with the branch at the commit's time, and the difference is written for that
//! time only, in one transaction.

use super::difference::{FEW_FILES, FileToWrite, Parts, affected, no_longer_recorded, renames, unused_outside};
use super::{Changes, KnownFile, PassOptions, State, Workspace, commit_object};
use crate::convert::to_ms;
use crate::features::code::files::{self, DIAGNOSTICS, Diagnostic, FILE_BYTES};
use crate::features::code::git::{self, Repository, TreeEntry};
use crate::features::code::history::{CommitWindow, HistoryCommit, assign_windows};
use crate::features::code::ignore_rules::{IgnoreRules, is_rules};
use crate::features::code::trees;
use crate::features::code::working_tree::{self, WorkingTree};
use crate::hex::{hex, unhex};
use crate::{Context, Engine};
use lukasa_code::facts::FileFacts;
use lukasa_code::resolve::program::is_manifest;
use lukasa_code::statements::{FileDetails, SymbolNames};
use lukasa_code::type_names;
use lukasa_model::batch::{End, PutRelationship};
use lukasa_model::types::RENAMED_FROM;
use lukasa_model::{Batch, Error, ErrorCode, Reference, Result, Time, TransactionKind, Tx, View, Write};
use lukasa_store::ledger::{Committed, ViewSpec};
use lukasa_store::{Ledger, VersionFields};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// Maximum number of commits in one request: each is resolved as a whole.
pub const COMMITS: usize = 1_000;
/// Log entries read at a time.
const PAGE: usize = 10_000;
/// Bytes of sources whose facts are kept after they changed, because they may change back.
const REMEMBERED_BYTES: u64 = 64 << 20;

/// The result of importing commits.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct ImportedHistory {
    /// Commits that were imported.
    pub commits: usize,
    /// Requested commits that the branch had already.
    pub already_there: usize,
    /// Commits that cannot be imported; `diagnostics` has the reasons.
    pub left_out: usize,
    /// Files that were parsed, each content once.
    pub parsed: usize,
    pub objects: u64,
    pub relationships: u64,
    /// By path of the file, or by commit.
    pub diagnostics: Vec<Diagnostic>,
    pub diagnostics_left_out: usize,
    pub took_ms: u64,
}

impl Workspace {
    /// Checks whether this many commits can be imported, before anything is written.
    pub fn check_history(&self, commits: usize) -> Result<()> {
        if commits > COMMITS {
            return Err(Error::invalid(
                ErrorCode::TooManyCommits,
                format!("{commits} commits are asked for, {COMMITS} at most"),
            )
            .hint("ask for fewer; what lies further back can be imported from an older commit that is checked out"));
        }
        let place = WorkingTree::of(&self.root, None)?;
        place.repository.map(drop).ok_or_else(|| self.no_repository())
    }

    fn no_repository(&self) -> Error {
        Error::invalid(ErrorCode::NoRepository, format!("`{}` is in no git repository", self.root.display()))
            .hint("leave out `history`: without git there are no commits to import")
    }

    /// Imports up to `commits` commits before the one that is checked out, along first parents. Imports that one too if
    /// the working tree has uncommitted changes. The current state of the branch does not change.
    pub fn import_history(
        &self,
        engine: &Engine,
        context: &mut Context<'_>,
        pass: &PassOptions,
        commits: usize,
    ) -> Result<ImportedHistory> {
        let began = Instant::now();
        let mut current = self.state.lock();
        let ledger = engine.ledger(&self.scope);
        let mut place = WorkingTree::of(&self.root, pass.branch.as_deref())?;
        place.branch = trees::branch_of_tree(engine, &self.scope, &place, pass.take_over)?.branch;
        let repository = place.repository.as_ref().ok_or_else(|| self.no_repository())?;
        let mut report = ImportedHistory::default();
        let Some(head) = &place.commit else { return Ok(report) };
        let mut line = repository.first_parents(&head.id, commits + 1)?;
        line.reverse();
        let view = ledger.view(&ViewSpec::on(&place.branch))?;
        let placed = placed(&ledger, &view, &line, &mut report)?;

        let mut past = ProgramAtCommit::new(repository);
        let mut until = None;
        for (done, at) in placed.iter().enumerate() {
            context.stop.check()?;
            (context.progress)(done as u64, Some(placed.len() as u64));
            let commit = &line[at.at];
            if let Err(e) = past.move_to(&commit.id, &current) {
                report.left_out += 1;
                report.diagnostics.push(about(commit, format!("left out: {e}")));
                continue;
            }
            let known = ledger.head()?.tx;
            let view = ledger.view_fixed(view.branch, known, at.from)?;
            if until != Some(at.until) {
                past.stand_on(&ledger, &view)?;
            }
            let header = context.header(pass.reason.clone());
            let mut batch = Batch { header, ..Batch::on(&place.branch) };
            batch.header.kind = TransactionKind::Import;
            batch.header.git_commit = Some(commit.id.clone());
            batch.header.valid_at = Some(at.from);
            let committed = self
                .state_commit(&mut past, &CommitContext { ledger: &ledger, view: &view, commit, at }, batch)
                .map_err(|e| e.at(format!("commit {}", short(commit))))?;
            until = Some(at.until);
            report.commits += 1;
            report.objects += u64::from(committed.objects);
            report.relationships += u64::from(committed.relationships);
            // The current state of the branch has not changed, so the known files stay valid.
            current.wrote(&committed);
        }
        report.parsed = past.parsed;
        report.diagnostics.extend(past.faults);
        report.diagnostics_left_out = report.diagnostics.len().saturating_sub(DIAGNOSTICS);
        report.diagnostics.truncate(DIAGNOSTICS);
        report.took_ms = to_ms(began.elapsed());
        Ok(report)
    }

    /// Writes the differences between a commit and the view at its time, for its window.
    fn state_commit(
        &self,
        past: &mut ProgramAtCommit<'_>,
        on: &CommitContext<'_>,
        mut batch: Batch,
    ) -> Result<Committed> {
        let CommitContext { ledger, view, commit, at } = *on;
        let changes = past.changes();
        let state = &mut past.state;
        let stated = std::mem::take(&mut state.stated);
        state.resolve();
        let links = state.resolver.links();
        let namespace = ledger.head()?.namespace;
        let names = SymbolNames::new(&state.program, namespace);
        let affected = match stated {
            true => affected(state, links, &changes),
            false => state.program.ids().collect(),
        };
        let same = |file: &FileToWrite| {
            let known = state.known.get(&file.path);
            known.is_some_and(|k| k.facts == file.digest && !changes.changed.contains_key(&file.path))
        };
        let made = self.made(state, &names, links, &affected, &changes, None);
        let made: Vec<FileToWrite> = made.into_iter().filter(|file| !same(file)).collect();
        let mut ends: Vec<Uuid> = unused_outside(&state.program, &names, links, ledger, view)?;
        ends.extend(no_longer_recorded(state, &names, &made, &changes, ledger, view)?);
        ends.sort_unstable();
        ends.dedup();
        let mut last = vec![Write::Object(commit_object(&working_tree::CheckedOutCommit {
            id: commit.id.clone(),
            time: own_time(commit),
            summary: commit.summary.clone(),
            author: commit.author.clone(),
        }))];
        for (old, new) in renames(state, &changes) {
            let (new, old) = (Reference::exact(type_names::FILE, &new), Reference::exact(type_names::FILE, &old));
            last.push(PutRelationship::new(RENAMED_FROM, new, old).into());
        }
        last.extend(ends.into_iter().map(|id| Write::End(End::new(id))));
        let parts = Parts::new(&state.program, &names, links, &made, last);
        let parts = parts.map(|part| part.into_iter().map(|write| within(write, at)).collect::<Vec<_>>());
        let committed = if made.len() <= FEW_FILES {
            batch.writes = parts.flatten().collect();
            ledger.commit(&batch)?
        } else {
            ledger.load(&batch.branch, &batch.header, parts.map(Ok))?
        };
        state.stated = true;
        state.again.clear();
        state.known.retain(|path, _| !changes.removed.contains(path));
        for file in made {
            let content = unhex(&file.about.content_hash).unwrap_or_default();
            state.known.insert(file.path, KnownFile { content, facts: file.digest, stamp: None });
        }
        Ok(committed)
    }
}

/// The context in which a commit is written.
struct CommitContext<'a> {
    ledger: &'a Ledger,
    view: &'a View,
    commit: &'a git::GitCommit,
    at: &'a CommitWindow,
}

/// Assigns windows to the commits that the branch does not have.
fn placed(
    ledger: &Ledger,
    view: &View,
    line: &[git::GitCommit],
    report: &mut ImportedHistory,
) -> Result<Vec<CommitWindow>> {
    let (times, claimed) = recorded_times(ledger, view, Tx::FIRST)?;
    let step =
        |commit: &git::GitCommit| HistoryCommit { own: own_time(commit), claimed: claimed.get(&*commit.id).copied() };
    let steps: Vec<HistoryCommit> = line.iter().map(step).collect();
    let placed = assign_windows(&steps, &times, view.valid);
    for at in &placed {
        let commit = &line[at.at];
        if at.from != own_time(commit) {
            let what = format!(
                "says it was made at {}: counts from {}, for times grow along a branch",
                own_time(commit),
                at.from
            );
            report.diagnostics.push(about(commit, what));
        }
    }
    let room: FxHashSet<usize> = placed.iter().map(|at| at.at).collect();
    for (at, commit) in line.iter().enumerate() {
        if steps[at].claimed.is_none() && !room.contains(&at) {
            report.left_out += 1;
            report
                .diagnostics
                .push(about(commit, "left out: what the branch has leaves no time between its neighbours"));
        }
    }
    // The last one is checked out, and was not requested.
    report.already_there = steps.iter().rev().skip(1).filter(|step| step.claimed.is_some()).count();
    Ok(placed)
}

/// Whether nothing about the code is recorded in the history of a view for `time` or later. Imported commits may lie
/// after everything that is visible now.
pub(super) fn is_after_all_recorded(ledger: &Ledger, view: Option<&View>, time: Time) -> Result<bool> {
    let Some(view) = view.filter(|view| view.known > Tx::START) else { return Ok(true) };
    // Nothing is recorded ahead of its time, so earlier transactions are about earlier times.
    let before = ledger.view_since(None, &format!("time:{}", time.max(Time(0))))?.known;
    let (times, _) = recorded_times(ledger, view, before.max(Tx::FIRST))?;
    Ok(times.last().is_none_or(|last| *last < time))
}

/// From transaction `from` on: the times from which something about the code is recorded in the history of a view, and
/// the time of each recorded commit.
fn recorded_times(ledger: &Ledger, view: &View, from: Tx) -> Result<(BTreeSet<Time>, FxHashMap<String, Time>)> {
    let (mut times, mut claimed) = (BTreeSet::new(), FxHashMap::default());
    let mut next = from;
    loop {
        let page = ledger.transactions(next, view.known, PAGE)?;
        let Some(last) = page.last() else { return Ok((times, claimed)) };
        next = last.tx.next();
        for transaction in page {
            if view.lineage.cap(transaction.branch).is_none_or(|cap| transaction.tx > cap) {
                continue;
            }
            use TransactionKind::{FileChange, FullRebuild, IncrementalRebuild, Merge};
            let of_code = matches!(transaction.header.kind, FullRebuild | IncrementalRebuild | FileChange | Merge);
            let at = transaction.valid_at();
            if of_code || transaction.header.git_commit.is_some() {
                times.insert(at);
            }
            if let Some(commit) = transaction.header.git_commit {
                claimed.insert(commit, at);
            }
        }
    }
}

/// The same write, limited to a window.
fn within(mut write: Write, at: &CommitWindow) -> Write {
    let (from, to) = (Some(at.from), Some(at.until));
    match &mut write {
        Write::Object(put) => (put.valid_from, put.valid_to, put.only_this_period) = (from, to, true),
        Write::Relationship(put) => (put.valid_from, put.valid_to, put.only_this_period) = (from, to, true),
        Write::End(end) => (end.from, end.to) = (from, to),
    }
    write
}

fn own_time(commit: &git::GitCommit) -> Time {
    Time(commit.time_ms.saturating_mul(1_000))
}

fn short(commit: &git::GitCommit) -> &str {
    &commit.id[..12.min(commit.id.len())]
}

fn about(commit: &git::GitCommit, what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(short(commit), what)
}

/// The program at a commit, and the files that the branch records at that time.
struct ProgramAtCommit<'a> {
    repository: &'a Repository,
    state: State,
    /// Files of the commit that no ignore rule excludes.
    files: BTreeMap<String, File>,
    rules: IgnoreRules,
    rule_files: BTreeMap<String, [u8; 20]>,
    remembered: FxHashMap<(String, [u8; 20]), Arc<FileFacts>>,
    remembered_bytes: u64,
    parsed: usize,
    faults: BTreeSet<Diagnostic>,
}

#[derive(Clone, Copy)]
struct File {
    content: [u8; 20],
    bytes: u64,
    /// Not text, or too large to be read.
    skipped: bool,
}

/// The result of reading one content.
#[derive(Default)]
struct Read {
    bytes: u64,
    skipped: bool,
    facts: Option<Arc<FileFacts>>,
    parsed: bool,
    manifest: Option<String>,
    faults: Vec<Diagnostic>,
}

impl<'a> ProgramAtCommit<'a> {
    fn new(repository: &'a Repository) -> ProgramAtCommit<'a> {
        ProgramAtCommit {
            repository,
            state: State::default(),
            files: BTreeMap::new(),
            rules: IgnoreRules::default(),
            rule_files: BTreeMap::new(),
            remembered: FxHashMap::default(),
            remembered_bytes: 0,
            parsed: 0,
            faults: BTreeSet::new(),
        }
    }

    /// Changes the program to that of a commit. If a part of it cannot be read, nothing changes.
    fn move_to(&mut self, commit: &str, current: &State) -> Result<()> {
        let mut tree = self.repository.tree(commit)?;
        // Links are not followed, and names that are not UTF-8 are skipped, as on disk.
        tree.retain(|path, entry| !entry.symlink && !path.contains(char::REPLACEMENT_CHARACTER));
        let rule_files: BTreeMap<String, [u8; 20]> =
            tree.iter().filter(|(path, _)| is_rules(path)).map(|(path, entry)| (path.clone(), entry.id)).collect();
        if rule_files != self.rule_files {
            let mut texts = Vec::with_capacity(rule_files.len());
            for (path, id) in &rule_files {
                texts.push((path.as_str(), String::from_utf8_lossy(&self.repository.blob(*id)?).into_owned()));
            }
            self.rules = IgnoreRules::new(texts.iter().map(|(path, text)| (*path, text.as_str())));
            self.rule_files = rule_files;
        }
        let listed: BTreeMap<&String, &TreeEntry> = self.rules.listed(tree.iter()).into_iter().collect();
        let differs =
            |path: &String, entry: &TreeEntry| self.files.get(path).is_none_or(|file| file.content != entry.id);
        let fresh: Vec<(&String, [u8; 20])> =
            listed.iter().filter(|(path, entry)| differs(path, entry)).map(|(path, entry)| (*path, entry.id)).collect();
        let read: Vec<Read> =
            fresh.par_iter().map(|(path, id)| self.read(path, *id, current)).collect::<Result<_>>()?;
        let gone: Vec<String> = self.files.keys().filter(|path| !listed.contains_key(path)).cloned().collect();
        for path in &gone {
            self.forget(path);
            self.state.program.remove(path);
        }
        for ((path, content), read) in fresh.into_iter().zip(read) {
            self.forget(path);
            self.parsed += usize::from(read.parsed);
            self.faults.extend(read.faults);
            match read.facts {
                Some(facts) => drop(self.state.program.set(path, facts)),
                None => drop(self.state.program.remove(path)),
            }
            if let Some(manifest) = read.manifest {
                self.state.program.manifests.insert(path.clone(), manifest);
            }
            self.files.insert(path.clone(), File { content, bytes: read.bytes, skipped: read.skipped });
        }
        Ok(())
    }

    fn read(&self, path: &str, content: [u8; 20], current: &State) -> Result<Read> {
        let mut read = Read { bytes: self.repository.blob_size(content)?, ..Read::default() };
        if read.bytes > FILE_BYTES {
            read.faults.push(Diagnostic::new(path, format!("{} bytes: too large to read", read.bytes)));
            read.skipped = true;
            return Ok(read);
        }
        read.facts = self.remembered.get(&(path.to_owned(), content)).cloned().or_else(|| {
            let loaded = current.loaded.get(path).is_some_and(|loaded| *loaded == content);
            let id = current.program.find_file(path).filter(|_| loaded)?;
            Some(Arc::clone(&current.program.file(id).facts))
        });
        if read.facts.is_some() {
            return Ok(read);
        }
        let bytes = self.repository.blob(content)?;
        // Problems within a file are reported for the working tree, and recorded on the file.
        let Some(decoded) = files::text(path, bytes, &mut vec![]) else {
            read.skipped = true;
            return Ok(read);
        };
        read.manifest = is_manifest(path).then(|| decoded.text.clone());
        if let Some((text, language)) = files::source(path, decoded, &mut vec![]) {
            read.facts = Some(Arc::new(lukasa_code::parse(path, &text, language)));
            read.parsed = true;
        }
        Ok(read)
    }

    /// Removes a file that is gone or has changed. Its facts are remembered, because the content may come back.
    fn forget(&mut self, path: &str) {
        let Some(file) = self.files.remove(path) else { return };
        self.state.program.manifests.remove(path);
        let Some(id) = self.state.program.find_file(path) else { return };
        let facts = Arc::clone(&self.state.program.file(id).facts);
        self.remembered_bytes += file.bytes;
        if self.remembered_bytes > REMEMBERED_BYTES {
            self.remembered.clear();
            self.remembered_bytes = file.bytes;
        }
        self.remembered.insert((path.to_owned(), file.content), facts);
    }

    /// Compares what follows with the files that the branch records in this view.
    fn stand_on(&mut self, ledger: &Ledger, view: &View) -> Result<()> {
        self.state.stated = false;
        self.state.known.clear();
        for found in ledger.states_with_prefix(view, Some(type_names::FILE), "", VersionFields::Content)? {
            let (Some(path), Some(statement)) = (found.thing.key.as_deref(), &found.statement) else { continue };
            let content = statement.parsed()?;
            let text = |name: &str| content.properties.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
            // As in a pass: a file object written by a client is left alone.
            let Some(id) = unhex(&text("content_hash")) else { continue };
            self.state.known.insert(path.to_owned(), KnownFile { content: id, facts: text("facts"), stamp: None });
        }
        Ok(())
    }

    fn changes(&self) -> Changes {
        let mut changes = Changes::default();
        for (path, file) in self.files.iter().filter(|(_, file)| !file.skipped) {
            if self.state.known.get(path).is_none_or(|known| known.content != file.content) {
                let about =
                    FileDetails { content_hash: hex(&file.content), bytes: file.bytes, summaries: Default::default() };
                changes.changed.insert(path.clone(), about);
            }
        }
        let there = |path: &String| self.files.get(path).is_some_and(|file| !file.skipped);
        changes.removed = self.state.known.keys().filter(|path| !there(path)).cloned().collect();
        changes
    }
}
