//! One pass over a working tree: reads what changed, resolves what that affects, and writes the difference to the
//! branch in one transaction.

mod difference;
pub mod past;
mod read;
mod saved_state;
mod summarise;

pub use summarise::ModelReport;

use self::difference::{
    FEW_FILES, FileToWrite, Parts, WriteCounts, affected, no_longer_recorded, renames, unused_outside,
};
use self::read::ReadFile;
use self::saved_state::not_kept;
use super::cache::{CachedFacts, CachedSource, FactsCache};
use super::encoding::decode;
use super::files::{self, DIAGNOSTICS, Diagnostic, ExcludedPaths, ListedFile, Stamp};
use super::git::{self, ObjectFormat, Repository, is_blob_id};
use super::overview::{ProgramOverview, program_overview};
use super::served::{TreeRead, TreeReads};
use super::stamps::{self, ExactCommit, SavedStamps, StampPosition, StampedFile, Stamps};
use super::summaries::Summaries;
use super::trees;
use super::unsearched::UnsearchedReason;
use super::working_tree::{self, WorkingTree};
use crate::claims::{ClaimOut, CodeChange};
use crate::convert::to_ms;
use crate::hex::{hex, unhex};
use crate::{Context, Engine};
use lukasa_code::LanguageId;
use lukasa_code::facts::ROOT;
use lukasa_code::ids::IdVec;
use lukasa_code::resolve::program::is_manifest;
use lukasa_code::resolve::{FileId, FileLinks, Program, Resolver};
use lukasa_code::statements::{self, FileDetails, SymbolNames};
use lukasa_code::type_names;
use lukasa_model::batch::{End, PutObject, PutRelationship};
use lukasa_model::types::RENAMED_FROM;
use lukasa_model::{Batch, ErrorKind, Position, Reference, Result, Scope, Time, TransactionKind, Tx, View, Write};
use lukasa_store::ledger::{Committed, ViewSpec};
use lukasa_store::{Ledger, VersionFields};
use parking_lot::Mutex;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Instant;

/// A working tree that is indexed on a branch. Passes run one after another.
pub struct Workspace {
    root: PathBuf,
    scope: Scope,
    kept_out: Arc<ExcludedPaths>,
    reads: TreeReads,
    cache: Option<FactsCache>,
    stamps: Option<Stamps>,
    state: Mutex<State>,
}

/// State kept between passes. All of it can be read again.
struct State {
    /// The branch and log position that `known` is valid for.
    branch: String,
    at: Position,
    known: BTreeMap<String, KnownFile>,
    program: Program,
    /// Files that are not text or cannot be read.
    skipped: FxHashMap<String, Skipped>,
    /// Files whose file system did not answer in this pass. What is recorded of them stays, and the next pass tries again.
    unanswered: FxHashSet<String>,
    /// Sources whose facts are in `program`. Nothing can be resolved while some are missing.
    loaded: FxHashMap<String, [u8; 20]>,
    resolver: Resolver,
    names: SymbolNames,
    /// How contents are named: as the repository of the working tree names them.
    format: ObjectFormat,
    /// The files of the commit that is checked out.
    tree: Option<(String, BTreeMap<String, git::TreeEntry>)>,
    /// Files whose links were resolved again since they were written.
    again: FxHashSet<FileId>,
    /// Whether the branch has the links and `program` as they are.
    stated: bool,
    /// The commit that was recorded last.
    claimed: Option<String>,
    /// The commit that the known files are equal to.
    exact: Option<ExactCommit>,
    /// The latest start of a version of a file.
    last_valid: Time,
    /// When the files were listed.
    listed_at: Time,
    /// Files that were read since the stamps were last saved.
    unkept: usize,
    /// Files that are not text were reported since then.
    reported: bool,
}

/// Maximum number of retries of a pass because another clone was faster.
const OVERTAKEN: usize = 3;

/// A file that is left out.
#[derive(Clone, Copy, Debug)]
struct Skipped {
    /// None if the file was written only just before it was read.
    stamp: Option<Stamp>,
    /// It is not text, and nothing else is wrong with it.
    not_text: bool,
}

impl Default for State {
    fn default() -> State {
        State {
            branch: String::new(),
            at: Position::START,
            known: BTreeMap::new(),
            program: Program::default(),
            skipped: FxHashMap::default(),
            unanswered: FxHashSet::default(),
            loaded: FxHashMap::default(),
            resolver: Resolver::default(),
            names: SymbolNames::default(),
            format: ObjectFormat::default(),
            tree: None,
            again: FxHashSet::default(),
            stated: false,
            claimed: None,
            exact: None,
            last_valid: Time::MIN,
            listed_at: Time::MIN,
            unkept: 0,
            reported: false,
        }
    }
}

/// A file as the branch records it.
#[derive(Clone, Debug)]
struct KnownFile {
    content: [u8; 20],
    /// Hash of everything recorded for the file.
    facts: String,
    /// The stamp of the file on disk with this content. None if it was written only just before it was read.
    stamp: Option<Stamp>,
}

/// The properties of a file on a branch that a pass needs. Others are not parsed, because there are many files.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RecordedFile<'a> {
    #[serde(borrow)]
    content_hash: Cow<'a, str>,
    #[serde(borrow)]
    facts: Cow<'a, str>,
}

impl RecordedFile<'_> {
    fn of(content: &str) -> Option<RecordedFile<'_>> {
        #[derive(Deserialize)]
        struct Whole<'a> {
            #[serde(borrow)]
            properties: RecordedFile<'a>,
        }
        serde_json::from_str::<Whole<'_>>(content).ok().map(|whole| whole.properties)
    }
}

/// The options of a pass.
#[derive(Clone, Debug, Default)]
pub struct PassOptions {
    /// The branch to index on, instead of the git branch that is checked out.
    pub branch: Option<String>,
    /// Write everything again, also what seems unchanged, and end facts that no longer apply.
    pub rebuild: bool,
    pub reason: Option<String>,
    /// Index the branch from this working tree from now on, whichever tree it was indexed from before.
    pub take_over: bool,
    /// The caller only reads: changes that the pass finds are not attributed to it.
    pub bystander: bool,
    /// When this becomes true, no more summaries are requested from the language model; everything else is finished.
    pub interrupted: Option<Arc<AtomicBool>>,
}

/// The result of a pass.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct PassReport {
    pub branch: String,
    /// Why the branch is not the one that is checked out: that one is indexed from another clone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
    /// The commit that the tree is equal to. None if it has uncommitted changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Files of the working tree that are not ignored.
    pub files: usize,
    /// Files in a language that is parsed.
    pub sources: usize,
    /// Files skipped because they are not text, without those that an earlier pass reported; `diagnostics` lists those
    /// named like a source.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_text: usize,
    /// New and changed files whose text is not searched because it is not handwritten, by reason; their facts count.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<UnsearchedReason, usize>,
    pub lines: u64,
    pub bytes: u64,
    pub changed: usize,
    pub removed: usize,
    /// Files parsed in this pass.
    pub parsed: usize,
    /// Files whose facts were written.
    pub written_files: usize,
    pub symbols: usize,
    /// Relationships by type.
    pub relationships: BTreeMap<String, usize>,
    /// Calls by derivation.
    pub derivations: BTreeMap<String, usize>,
    pub calls: u64,
    pub calls_outside: u64,
    pub calls_unresolved: u64,
    pub tx: Option<Tx>,
    pub objects: u32,
    pub relationships_written: u32,
    /// An overview, after the first pass or a rebuild.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<ProgramOverview>,
    /// What a language model added, if one is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelReport>,
    /// Claims of other agents that the change ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims_ended: Vec<ClaimOut>,
    pub diagnostics: Vec<Diagnostic>,
    pub diagnostics_left_out: usize,
    pub took_ms: u64,
    /// Milliseconds by step.
    pub steps: BTreeMap<String, u64>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Up to this many files are parsed faster than the cached facts are read.
const FEW_NEEDED: usize = 20;

impl Workspace {
    pub fn new(root: &Path, scope: Scope, cache: Option<&Path>, kept_out: Arc<ExcludedPaths>) -> Workspace {
        let stamps = cache.map(|folder| Stamps::in_folder(folder, root));
        let cache = cache.map(FactsCache::in_folder);
        let reads = TreeReads::below(root);
        Workspace { root: root.to_owned(), scope, kept_out, reads, cache, stamps, state: Mutex::default() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Brings the branch up to date with the working tree.
    pub fn index(&self, engine: &Engine, context: &mut Context<'_>, pass: &PassOptions) -> Result<PassReport> {
        let mut tried = 0;
        loop {
            match self.index_once(engine, context, pass) {
                Err(e) if tried < OVERTAKEN && trees::is_overtaken(&e) => tried += 1,
                done => return done,
            }
        }
    }

    fn index_once(&self, engine: &Engine, context: &mut Context<'_>, pass: &PassOptions) -> Result<PassReport> {
        let began = Instant::now();
        let mut steps = Steps { last: began, taken: BTreeMap::new() };
        let mut state = self.state.lock();
        let ledger = engine.ledger(&self.scope);
        let mut place = WorkingTree::of(&self.root, pass.branch.as_deref())?;
        // Creates the project if needed: the tree that a branch is indexed from is recorded in it.
        engine.declare_code_types(&self.scope, context)?;
        let kept = trees::branch_of_tree(engine, &self.scope, &place, pass.take_over)?;
        let is_new = working_tree::ensure_branch(&ledger, &kept.branch, kept.parent(), &context.header(None))?;
        place.branch = kept.branch.clone();
        state.listed_at = ledger.clock().now();
        state.format = place.repository.as_ref().map(Repository::object_format).unwrap_or_default();
        let (listed, view) = std::thread::scope(|scope| {
            let listing = scope.spawn(|| files::list(&self.root, &self.kept_out));
            let view = self.catch_up(&mut state, &ledger, &place.branch);
            steps.done("known");
            (listing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), view)
        });
        let (listing, view) = (listed?, view?);
        if pass.bystander && !is_new && !state.known.is_empty() {
            trees::check_own(engine, &self.scope, &kept)?;
        }
        let listed = listing.files;
        steps.done("list");
        let mut report = PassReport { branch: place.branch.clone(), files: listed.len(), ..PassReport::default() };
        report.diagnostics = listing.faults;
        let first = state.known.is_empty();
        if first || pass.rebuild {
            report.diagnostics.extend(listing.left_out.iter().map(|folder| folder_left_out(folder)));
        }

        let touched = if pass.rebuild { listed.iter().collect() } else { state.touched(&listed) };
        state.unkept += touched.len();
        state.unanswered.clear();
        let mut pack = CachedFacts::default();
        if pass.rebuild {
            // Nothing remembered is reused.
            state.loaded.clear();
            state.skipped.clear();
            (state.program, state.resolver) = (Program::default(), Resolver::default());
        }
        if first && !pass.rebuild {
            pack = self.kept(&mut report);
        }
        let fresh = self.read(&touched, &state, (first || pass.rebuild).then_some(&pack), context);
        context.stop.check()?;
        let summaries = engine.summaries();
        if let Some(Err(e)) = summaries.as_ref().map(|s| s.cache.refresh()) {
            report.diagnostics.push(Diagnostic::new("model", e.to_string()));
        }
        let mut changes = Changes::default();
        let mut parsed = self.take_in(&mut state, fresh, pass.rebuild, &mut changes, &mut report);
        changes.removed = state.missing(&listed);
        let asks = summaries.as_ref().is_some_and(|s| s.asker.is_some())
            && (!changes.is_empty() || pass.rebuild || self.may_ask(summaries.as_deref(), &state));
        if !changes.is_empty() || pass.rebuild || asks {
            // Changed files can only be resolved together with all others.
            let needed: Vec<&ListedFile> = listed.iter().filter(|l| state.is_needed(l)).collect();
            if needed.len() > FEW_NEEDED && !first && !pass.rebuild {
                pack = self.kept(&mut report);
            }
            let fresh = self.read(&needed, &state, Some(&pack), context);
            context.stop.check()?;
            parsed.extend(self.take_in(&mut state, fresh, pass.rebuild, &mut changes, &mut report));
            state.forget(&listed);
        }
        drop(pack);
        let to_keep = self.keep(&state, &parsed, &mut report);
        steps.done("read");
        report.changed = changes.changed.len();
        report.removed = changes.removed.len();
        let exact = exactly(&mut state, &changes, &place, &self.root);
        // The repository holds large git files in memory and is no longer needed.
        place.repository = None;
        steps.done("git");
        if let Some(e) = place.fault.as_ref().or(exact.as_ref().err()) {
            report.diagnostics.push(Diagnostic::new(".git", format!("the commit cannot be read: {e}")));
        }
        let exact = exact.unwrap_or_default();
        let commit = place.commit.as_ref().filter(|_| exact.is_some());
        report.commit = commit.map(|c| c.id.clone());
        let claimed = commit.is_none_or(|c| self.is_claimed(&state, &ledger, view.as_ref(), &c.id));
        if !changes.changed.is_empty() || !changes.removed.is_empty() || pass.rebuild || !claimed {
            let kind = match (first || pass.rebuild, changes.changed.len() + changes.removed.len()) {
                (true, _) => TransactionKind::FullRebuild,
                (false, 1) => TransactionKind::FileChange,
                (false, _) => TransactionKind::IncrementalRebuild,
            };
            let mut batch = Batch { header: context.header(pass.reason.clone()), ..Batch::on(&place.branch) };
            batch.header.kind = kind;
            if let Some(commit) = commit {
                // Times along a branch only increase: a commit older than what is known there counts from now.
                let now = ledger.clock().now();
                let fits = commit.time > state.last_valid && commit.time <= now;
                let fits = fits && past::is_after_all_recorded(&ledger, view.as_ref(), commit.time)?;
                batch.header.valid_at = fits.then_some(commit.time);
                batch.header.git_commit = Some(commit.id.clone());
                batch.writes.push(Write::Object(commit_object(commit)));
            }
            // Last chance to stop: from here on everything is recorded.
            if let Err(stopped) = context.stop.check() {
                not_kept(self.keep_only(&to_keep), &mut report);
                return Err(stopped);
            }
            let taken = !pass.take_over && trees::take_branch(engine, &self.scope, &kept)?;
            let (view, to_keep) = (view.as_ref(), to_keep.as_slice());
            let job = Job { ledger: &ledger, view, changes: &changes, rebuild: pass.rebuild, to_keep };
            // Facts that are recorded for the first time are not changes.
            let before = if first { BTreeSet::new() } else { changes.files() };
            let written = self.write(engine, &mut state, &job, batch, &mut report, &mut steps);
            if taken && (written.is_err() || state.known.is_empty()) {
                let given_back = trees::release_branch(engine, &self.scope, &kept);
                written.and(given_back)?;
            } else {
                written?;
            }
            let agent = context.agent.as_deref().filter(|_| !pass.bystander);
            self.end_claims(engine, &ledger, agent, &before, &mut report);
        } else {
            not_kept(self.keep_only(&to_keep), &mut report);
        }
        if !state.known.is_empty() {
            trees::record(engine, &self.scope, &kept)?;
        }
        report.apart = kept.explanation();
        // Only now does the branch have these files.
        state.exact = exact;
        self.keep_stamps(&mut state, &ledger, &mut report);
        if asks {
            drop(state);
            self.summarise(engine, context, pass, &ledger, &mut report);
            steps.done("model");
        }
        let more = report.diagnostics.len().saturating_sub(DIAGNOSTICS);
        report.diagnostics.truncate(DIAGNOSTICS);
        report.diagnostics_left_out = more;
        report.took_ms = to_ms(began.elapsed());
        crate::telemetry::metrics().extraction_latency.record_of(&["code"], began.elapsed().as_secs_f64());
        report.steps = steps.taken;
        Ok(report)
    }

    /// Ends claims on files that others have changed. A failure is reported and does not affect the index.
    fn end_claims(
        &self,
        engine: &Engine,
        ledger: &Ledger,
        agent: Option<&str>,
        files: &BTreeSet<&str>,
        report: &mut PassReport,
    ) {
        let Some(tx) = report.tx.filter(|_| !files.is_empty()) else { return };
        let branch = report.branch.clone();
        let change = CodeChange { agent, branch: &branch, worktree: Some(&self.root), tx, files: files.clone() };
        match engine.code_changed(ledger, &change) {
            Ok(ended) => {
                let (scope, at) = (ledger.scope(), engine.clock().now());
                let out = |claim| ClaimOut::of(claim, scope).ended("code_changed", at);
                report.claims_ended = ended.into_iter().map(out).collect();
            }
            Err(e) => report.diagnostics.push(Diagnostic::new(".", format!("claims on what changed still stand: {e}"))),
        }
    }

    /// Reads the files that the branch records, unless nothing was written since the last pass.
    fn catch_up(&self, state: &mut State, ledger: &Ledger, branch: &str) -> Result<Option<View>> {
        let head = match ledger.head() {
            Ok(head) => head,
            Err(e) if e.kind == ErrorKind::NotFound => {
                *state = State { branch: branch.to_owned(), exact: None, ..std::mem::take(state) };
                state.known.clear();
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        let view = ledger.view(&ViewSpec::on(branch))?;
        if state.at == head.position() && state.branch == branch && head.tx > Tx::START {
            return Ok(Some(view));
        }
        // First pass of this process: start from what an earlier process saved.
        let kept = match (&self.stamps, state.branch.is_empty()) {
            (Some(stamps), true) => stamps.read(),
            _ => SavedStamps { as_of: None, seen: state.seen() },
        };
        let not_text = kept.seen.iter().filter(|seen| seen.content.is_none());
        state.skipped.extend(not_text.map(|s| (s.path.clone(), Skipped { stamp: s.stamp, not_text: true })));
        state.known.clear();
        state.claimed = None;
        state.exact = None;
        let here = |as_of: &StampPosition| as_of.branch == branch && as_of.tx == head.tx && as_of.hash == head.hash.0;
        match kept.as_of.filter(here) {
            Some(as_of) => {
                state.last_valid = Time(as_of.last_valid);
                state.exact = as_of.exact;
                let known = kept.seen.into_iter().filter_map(|StampedFile { path, content, stamp }| {
                    let content = content?;
                    Some((path, KnownFile { content: content.id, facts: content.facts, stamp }))
                });
                state.known.extend(known);
            }
            None => ask_known(state, ledger, &view, &stamps::contents(&kept.seen))?,
        }
        if state.branch != branch || state.at != head.position() {
            state.stated = false;
        }
        state.branch = branch.to_owned();
        state.at = head.position();
        Ok(Some(view))
    }

    /// Stores what was read in the state, and notes what differs from the branch. With `all`, reports also what earlier
    /// passes reported. Returns the paths that were parsed.
    fn take_in(
        &self,
        state: &mut State,
        fresh: Vec<ReadFile>,
        all: bool,
        changes: &mut Changes,
        report: &mut PassReport,
    ) -> Vec<String> {
        let mut parsed = Vec::new();
        let mut sources = Vec::new();
        for file in fresh {
            if file.unanswered {
                report.diagnostics.extend(file.faults);
                state.unanswered.insert(file.path);
                continue;
            }
            let stamp = Some(file.stamp).filter(|stamp| stamps::is_settled(stamp, state.listed_at));
            if file.skipped {
                let not_text = file.not_text && file.faults.is_empty();
                if file.not_text && !state.skipped.contains_key(&file.path) {
                    report.not_text += 1;
                    state.reported |= not_text;
                }
                report.diagnostics.extend(file.faults);
                state.skipped.insert(file.path, Skipped { stamp, not_text });
                continue;
            }
            report.diagnostics.extend(file.faults);
            state.skipped.remove(&file.path);
            report.bytes += file.bytes;
            match file.manifest {
                Some(manifest) => drop(state.program.manifests.insert(file.path.clone(), manifest)),
                None => drop(state.program.manifests.remove(&file.path)),
            }
            // Facts remembered for another content, from another branch or an earlier state, must not be used for
            // resolving.
            if file.facts.is_none() && state.loaded.get(&file.path).is_some_and(|content| *content != file.content) {
                state.loaded.remove(&file.path);
                state.program.remove(&file.path);
            }
            if let Some(facts) = file.facts {
                if file.parsed {
                    report.parsed += 1;
                    parsed.push(file.path.clone());
                }
                sources.push((file.path.clone(), facts));
                state.loaded.insert(file.path.clone(), file.content);
            }
            let same = state.known.get(&file.path).is_some_and(|known| known.content == file.content);
            if let Some(why) = file.left_out.filter(|_| !same || all) {
                *report.left_out.entry(why).or_default() += 1;
            }
            match state.known.get_mut(&file.path) {
                Some(known) if same => known.stamp = stamp,
                _ => {
                    let about =
                        FileDetails { content_hash: hex(&file.content), bytes: file.bytes, ..FileDetails::default() };
                    changes.stamps.insert(file.path.clone(), (file.content, stamp));
                    changes.changed.insert(file.path, about);
                }
            }
        }
        state.program.set_all(sources);
        parsed
    }

    /// Number of files that differ from the branch: changed, added or removed.
    pub fn pending(&self, ledger: &Ledger, view: &View) -> Result<usize> {
        let listed = files::list(&self.root, &self.kept_out)?.files;
        let mut state = self.state.lock();
        self.catch_up(&mut state, ledger, &view.branch_name)?;
        let touched = state.touched(&listed);
        let changed = touched.par_iter().filter(|l| {
            let TreeRead::Ended(Ok(bytes)) = self.reads.read(l) else { return false };
            let differs = state.known.get(&l.path).is_none_or(|known| !is_blob_id(&known.content, &bytes));
            differs && decode(bytes).is_some()
        });
        Ok(changed.count() + state.missing(&listed).len())
    }

    /// Whether the branch has the commit already.
    fn is_claimed(&self, state: &State, ledger: &Ledger, view: Option<&View>, commit: &str) -> bool {
        if state.claimed.as_deref() == Some(commit) {
            return true;
        }
        view.is_some_and(|view| ledger.find(view, &Reference::exact(type_names::COMMIT, commit)).is_ok())
    }

    fn write(
        &self,
        engine: &Engine,
        state: &mut State,
        job: &Job<'_>,
        mut batch: Batch,
        report: &mut PassReport,
        steps: &mut Steps,
    ) -> Result<()> {
        let Job { ledger, view, changes, rebuild, to_keep } = *job;
        if changes.is_empty() && !rebuild {
            not_kept(self.keep_only(to_keep), report);
            let committed = ledger.commit(&batch)?;
            report.tx = committed.tx;
            state.wrote(&committed);
            state.claimed = batch.header.git_commit;
            return Ok(());
        }
        // Until the write succeeds, it is unknown what the branch has.
        let stated = std::mem::take(&mut state.stated) && !rebuild;
        match rebuild || state.known.is_empty() {
            true => state.resolve_first(),
            false => state.resolve(),
        }
        let links = state.resolver.links();
        steps.done("resolve");
        let namespace = ledger.head().map_or_else(|_| self.scope.namespace(), |head| head.namespace);
        let mut names = std::mem::take(&mut state.names);
        names.update(&state.program, namespace);
        let affected = match stated {
            true => affected(state, links, changes),
            false => state.program.ids().collect(),
        };
        let summaries = engine.summaries();
        let mut made = self.made(state, &names, links, &affected, changes, summaries.as_deref());
        if let (Some(summaries), Some(view)) = (&summaries, view) {
            match self.adopt(state, summaries, &names, ledger, view, &made) {
                Ok(true) => made = self.made(state, &names, links, &affected, changes, Some(summaries)),
                Ok(false) => {}
                Err(e) => report.diagnostics.push(Diagnostic::new("model", format!("summaries are made by rule: {e}"))),
            }
        }
        let made: Vec<FileToWrite> = made
            .into_iter()
            .filter(|file| {
                let known = state.known.get(&file.path);
                let same = known.is_some_and(|k| k.facts == file.digest && !changes.changed.contains_key(&file.path));
                rebuild || !same
            })
            .collect();
        report.written_files = made.len();
        let made_whole = state.known.is_empty();
        steps.done("statements");
        let mut ends = match view {
            Some(view) => no_longer_recorded(state, &names, &made, changes, ledger, view)?,
            None => vec![],
        };
        if let (true, Some(view)) = (rebuild, view) {
            ends.extend(unused_outside(&state.program, &names, links, ledger, view)?);
        }
        let mut last: Vec<Write> = std::mem::take(&mut batch.writes);
        for (old, new) in renames(state, changes) {
            let (new, old) = (Reference::exact(type_names::FILE, &new), Reference::exact(type_names::FILE, &old));
            last.push(PutRelationship::new(RENAMED_FROM, new, old).into());
        }
        last.extend(ends.into_iter().map(|id| Write::End(End::new(id))));
        steps.done("differences");
        let parts = Parts::new(&state.program, &names, links, &made, last);
        let counted = Mutex::new(WriteCounts::default());
        let parts = parts.inspect(|part| part.iter().for_each(|write| counted.lock().add(write)));
        let wants_look = rebuild || made_whole;
        let beside = || (self.keep_only(to_keep), wants_look.then(|| program_overview(&state.program, links)));
        let (committed, (kept, look)) = if made.len() <= FEW_FILES {
            batch.writes = parts.flatten().collect();
            (ledger.commit(&batch)?, beside())
        } else {
            // Once all parts are made, one core is idle until they are written.
            let (making, made_all) = channel::<()>();
            let parts = parts.map(move |part| {
                // Dropped with the iterator, when the last part is made or the load has failed.
                let _made_until = &making;
                Ok(part)
            });
            let (committed, done) = std::thread::scope(|scope| {
                let doing = scope.spawn(move || {
                    // Nothing is ever sent: this returns when the sender is dropped.
                    let _ = made_all.recv();
                    beside()
                });
                let committed = ledger.load(&batch.branch, &batch.header, parts);
                (committed, doing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            });
            (committed?, done)
        };
        not_kept(kept, report);
        report.look = look;
        steps.done("commit");
        let counted = counted.into_inner();
        (report.symbols, report.relationships, report.derivations) =
            (counted.symbols, counted.relationships, counted.derivations);
        let stated: Vec<(String, String)> = made.into_iter().map(|file| (file.path, file.digest)).collect();
        report.tx = committed.tx;
        report.objects = committed.objects;
        report.relationships_written = committed.relationships;
        for link in links {
            report.calls += u64::from(link.counts.calls);
            report.calls_outside += u64::from(link.counts.outside);
            report.calls_unresolved += u64::from(link.counts.unresolved);
        }
        for id in state.program.ids() {
            let facts = &state.program.file(id).facts;
            report.sources += 1;
            report.lines += u64::from(facts.lines);
        }
        state.stated = true;
        state.again.clear();
        state.names = names;
        for path in &changes.removed {
            state.known.remove(path);
        }
        for (path, digest) in stated {
            let stamp = changes.stamps.get(&path);
            let before = state.known.get(&path);
            let content = stamp.map(|(c, _)| *c).or(before.map(|k| k.content)).unwrap_or_default();
            let stamp = stamp.map_or(before.and_then(|k| k.stamp), |(_, s)| *s);
            state.known.insert(path, KnownFile { content, facts: digest, stamp });
        }
        state.wrote(&committed);
        state.claimed = batch.header.git_commit;
        state.last_valid = state.last_valid.max(batch.header.valid_at.unwrap_or(committed.recorded_at));
        Ok(())
    }

    /// The files that may have changed, each with a hash of everything to record for it.
    fn made(
        &self,
        state: &State,
        names: &SymbolNames,
        links: &IdVec<FileId, FileLinks>,
        affected: &FxHashSet<FileId>,
        changes: &Changes,
        summaries: Option<&Summaries>,
    ) -> Vec<FileToWrite> {
        let ids: Vec<FileId> = state.program.ids().filter(|id| affected.contains(id)).collect();
        let mut made: Vec<FileToWrite> = ids
            .par_iter()
            .map(|id| {
                let path = state.program.file(*id).path.to_string();
                let mut about = match changes.changed.get(&path) {
                    Some(about) => about.clone(),
                    None => {
                        let known = state.known.get(&path);
                        let bytes = state.program.file(*id).facts.def(ROOT).span.end;
                        let content_hash = known.map(|k| hex(&k.content)).unwrap_or_default();
                        FileDetails { content_hash, bytes: u64::from(bytes), ..FileDetails::default() }
                    }
                };
                if let Some(summaries) = summaries {
                    about.summaries = summaries.of(&state.program, names, *id);
                }
                let digest = statements::digest(&state.program, names, &links[*id], *id, &about);
                FileToWrite { path, source: Some(*id), about, digest }
            })
            .collect();
        for (path, about) in &changes.changed {
            if state.program.find_file(path).is_none() {
                made.push(FileToWrite {
                    path: path.clone(),
                    source: None,
                    about: about.clone(),
                    digest: String::new(),
                });
            }
        }
        made.sort_by(|a, b| a.path.cmp(&b.path));
        made
    }
}

/// Reads the files that the branch records. `stamps` has the last stamp and content id of each path.
fn ask_known(
    state: &mut State,
    ledger: &Ledger,
    view: &View,
    stamps: &FxHashMap<&str, ([u8; 20], Stamp)>,
) -> Result<()> {
    state.last_valid = Time::MIN;
    for found in ledger.states_with_prefix(view, Some(type_names::FILE), "", VersionFields::Content)? {
        let (Some(path), Some(statement)) = (found.thing.key.as_deref(), &found.statement) else { continue };
        let Some(recorded) = statement.content.as_deref().and_then(RecordedFile::of) else { continue };
        // A file object written by a client has no content hash of the indexer: it is left alone.
        let Some(id) = unhex(&recorded.content_hash) else { continue };
        state.last_valid = state.last_valid.max(statement.period.from);
        let stamp = stamps.get(path).filter(|(known, _)| *known == id).map(|(_, stamp)| *stamp);
        state.known.insert(path.to_owned(), KnownFile { content: id, facts: recorded.facts.into_owned(), stamp });
    }
    Ok(())
}

impl State {
    /// Advances to the transaction just written. If another writer was in between, the branch is read again in the next
    /// pass.
    fn wrote(&mut self, committed: &Committed) {
        if let Some(after) = committed.after.filter(|_| committed.before == self.at) {
            self.at = after;
        }
    }

    /// The known files with their stamps on disk, and those that are not text.
    fn seen(&self) -> Vec<StampedFile> {
        let known = self.known.iter().map(|(path, known)| {
            let content = stamps::StampedContent { id: known.content, facts: known.facts.clone() };
            StampedFile { path: path.clone(), content: Some(content), stamp: known.stamp }
        });
        let skipped = self.skipped.iter().filter(|(_, skipped)| skipped.not_text);
        let skipped = skipped.map(|(path, s)| StampedFile { path: path.clone(), content: None, stamp: s.stamp });
        known.chain(skipped).collect()
    }

    /// Updates the links to the current program.
    fn resolve(&mut self) {
        self.again.extend(self.resolver.resolve(&mut self.program));
    }

    /// Like `resolve`, but keeps no state for later changes: most processes that read everything end before anything
    /// changes.
    fn resolve_first(&mut self) {
        self.again.extend(self.resolver.resolve_once(&mut self.program));
    }

    /// The files whose content may differ from the branch. `known` and `listed` are both sorted by path.
    fn touched<'l>(&self, listed: &'l [ListedFile]) -> Vec<&'l ListedFile> {
        let mut known = self.known.iter().peekable();
        let touched = listed.iter().filter(|listed| {
            while known.next_if(|(path, _)| **path < listed.path).is_some() {}
            let known = known.next_if(|(path, _)| **path == listed.path);
            let skipped = || self.skipped.get(&listed.path).is_some_and(|s| s.stamp == Some(listed.stamp));
            known.is_none_or(|(_, known)| known.stamp != Some(listed.stamp)) && !skipped()
        });
        touched.collect()
    }

    /// Whether a file must be read before anything can be resolved.
    fn is_needed(&self, listed: &ListedFile) -> bool {
        if self.skipped.contains_key(&listed.path) || self.unanswered.contains(&listed.path) {
            return false;
        }
        // Scripts without an extension are recognized by their first line.
        let name = listed.path.rsplit('/').next().unwrap_or(&listed.path);
        let likely = LanguageId::of(&listed.path, "").is_some() || !name.contains('.');
        let source = likely && !self.loaded.contains_key(&listed.path);
        source || (is_manifest(&listed.path) && !self.program.manifests.contains_key(&listed.path))
    }

    /// Whether a listed file is text. A file that an earlier process skipped may have changed since.
    fn is_text(&self, listed: &ListedFile) -> bool {
        let skipped = self.skipped.get(&listed.path);
        skipped.is_none_or(|skipped| skipped.stamp.is_some_and(|stamp| stamp != listed.stamp))
    }

    /// Whether a file exists and is text.
    fn is_there(&self, listed: &[ListedFile], path: &str) -> bool {
        let at = listed.binary_search_by(|l| l.path.as_str().cmp(path));
        at.is_ok_and(|at| self.is_text(&listed[at]))
    }

    /// Files of the branch that no longer exist or are no longer text.
    fn missing(&self, listed: &[ListedFile]) -> BTreeSet<String> {
        let mut there = listed.iter().peekable();
        let missing = self.known.keys().filter(|path| {
            while there.next_if(|listed| listed.path < **path).is_some() {}
            !there.peek().is_some_and(|listed| listed.path == **path && self.is_text(listed))
        });
        missing.cloned().collect()
    }

    /// Drops what was read from files that no longer exist, also of those that only another branch has.
    fn forget(&mut self, listed: &[ListedFile]) {
        let read = self.loaded.keys().chain(self.program.manifests.keys());
        let gone: Vec<String> = read.filter(|path| !self.is_there(listed, path)).cloned().collect();
        for path in &gone {
            self.loaded.remove(path);
            self.program.remove(path);
            self.program.manifests.remove(path);
        }
    }
}

#[derive(Default)]
struct Changes {
    changed: BTreeMap<String, FileDetails>,
    stamps: FxHashMap<String, ([u8; 20], Option<Stamp>)>,
    removed: BTreeSet<String>,
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }

    fn files(&self) -> BTreeSet<&str> {
        self.changed.keys().chain(&self.removed).map(String::as_str).collect()
    }
}

/// The input of `write`.
#[derive(Clone, Copy)]
struct Job<'a> {
    ledger: &'a Ledger,
    view: Option<&'a View>,
    changes: &'a Changes,
    rebuild: bool,
    /// Facts to cache for the next process.
    to_keep: &'a [CachedSource],
}

/// The commit, if the files are equal to it. Files that are not text or not indexed only have to exist.
fn exactly(state: &mut State, changes: &Changes, place: &WorkingTree, root: &Path) -> Result<Option<ExactCommit>> {
    let before = state.exact.take();
    if !state.unanswered.is_empty() {
        return Ok(None);
    }
    let (Some(repository), Some(commit)) = (&place.repository, &place.commit) else { return Ok(None) };
    let is_there = |path: &String| root.join(path).symlink_metadata().is_ok();
    // If nothing has changed, the files are still equal to the commit.
    if let Some(before) = before.filter(|before| changes.is_empty() && before.commit == commit.id) {
        return Ok(before.others.iter().all(is_there).then_some(before));
    }
    let tree = match state.tree.take() {
        Some((id, tree)) if id == commit.id => tree,
        _ => repository.tree(&commit.id)?,
    };
    let tree = &state.tree.insert((commit.id.clone(), tree)).1;
    let now = |path: &str| {
        if changes.removed.contains(path) {
            return None;
        }
        changes.stamps.get(path).map(|(content, _)| *content).or(state.known.get(path).map(|k| k.content))
    };
    // Checked first: usually it is the latest change that is not in the commit.
    let as_committed =
        |(path, (content, _)): (&String, &([u8; 20], Option<Stamp>))| tree.get(path).is_some_and(|e| e.id == *content);
    if !changes.stamps.iter().all(as_committed) {
        return Ok(None);
    }
    let (mut seen, mut others) = (0, Vec::new());
    for (path, entry) in tree {
        match now(path) {
            Some(content) if content == entry.id => seen += 1,
            Some(_) => return Ok(None),
            None if entry.symlink => {}
            None if is_there(path) => others.push(path.clone()),
            None => return Ok(None),
        }
    }
    let new = changes.changed.keys().filter(|p| !state.known.contains_key(*p)).count();
    // Any other file is not in the commit.
    let exact = seen == state.known.len() + new - changes.removed.len();
    Ok(exact.then(|| ExactCommit { commit: commit.id.clone(), others }))
}

/// A diagnostic for a folder that no ignore rule excludes and that is not indexed.
fn folder_left_out(folder: &str) -> Diagnostic {
    let what = "a folder of dependencies or of what a build made: left out";
    Diagnostic::new(folder, format!("{what}; `!{folder}/` in .lukasaignore takes it in"))
}

fn commit_object(commit: &working_tree::CheckedOutCommit) -> PutObject {
    let mut put = PutObject::new(type_names::COMMIT, &commit.id);
    let summary = commit.summary.trim();
    put.title = Some(if summary.is_empty() { commit.id[..12].to_owned() } else { cut(summary, 200).to_owned() });
    put.properties.insert("author".into(), json!(commit.author));
    put.properties.insert("time".into(), json!(commit.time));
    put
}

fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

struct Steps {
    last: Instant,
    taken: BTreeMap<String, u64>,
}

impl Steps {
    fn done(&mut self, step: &str) {
        let now = Instant::now();
        self.taken.insert(step.to_owned(), to_ms(now - self.last));
        self.last = now;
    }
}
