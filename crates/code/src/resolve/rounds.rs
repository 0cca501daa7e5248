//! Resolves calls in rounds and, after changes, only those that the changes can affect.
//!
//! The first round uses only the text. Each further one also uses the contributions of all files in the previous one:
//! calls with their arguments, writes into objects. Every answer records its dependencies that may differ between
//! rounds and, if requested, the files it depends on. So a round recomputes only what the additions of the previous
//! round can affect. After files change, each round recomputes only what differs from the same round before the change.

use super::deps::{self, ChangedDependencies, DependencyId};
use super::eval::{Eval, EvalQuestion, LEVELS, Memo, RecordedDependencies};
use super::file::ProgramFile;
use super::flow::{ArgumentPassing, CallingSite, FlowContribution, Flows};
use super::link::{ProgramTables, TableDifferences};
use super::program::Program;
use super::value::{DefRef, Derivation, FileId, InternedStr, PossibleValue};
use super::{FileLinks, Linked, links};
use crate::facts::{BindTarget, CallId, CallKind, DefId, ExprId, ItemKey, ROOT, SourceExpr, flag};
use crate::ids::IdVec;
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

#[cfg(test)]
mod tests;

/// Number of rounds: values passed on through more functions than this are not followed.
const ROUNDS: usize = 4;

/// Up to this many changes are looked up in the dependencies of a whole file.
const FEW_CHANGES: usize = 1_000;

/// The result of one call in a round.
#[derive(Clone, PartialEq)]
pub struct CallResult {
    pub targets: Box<[(PossibleValue, Derivation)]>,
    /// Whether a later round may change it.
    open: bool,
    /// The targets are not called here but passed to code that calls them.
    handed: bool,
    pub class: CallClass,
    deps: Arc<[DependencyId]>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum CallClass {
    Resolved,
    Outside,
    Unresolved,
    /// An implicit call: not counted.
    Silent,
}

/// The results of a round for one file.
struct Answers {
    calls: IdVec<CallId, CallResult>,
    puts: ObjectWrites,
    /// The file's contributions to the flows, sorted.
    gives: Arc<[FlowContribution]>,
    /// The union of all dependencies, computed on first use.
    deps: OnceLock<Box<[DependencyId]>>,
}

impl Answers {
    fn new(calls: IdVec<CallId, CallResult>, puts: ObjectWrites, gives: Arc<[FlowContribution]>) -> Arc<Answers> {
        Arc::new(Answers { calls, puts, gives, deps: OnceLock::new() })
    }

    /// Whether any result may have to be recomputed. Fast for few changes, which nearly always affect nothing.
    fn is_affected_by(&self, changed: &ChangedDependencies) -> bool {
        if changed.len() > FEW_CHANGES {
            return true;
        }
        changed.hits_sorted(
            self.deps.get_or_init(|| deps::union(self.calls.iter().map(|c| &c.deps).chain([&self.puts.deps]))),
        )
    }
}

#[derive(Clone, Default, PartialEq)]
struct ObjectWrites {
    into: Arc<[ObjectWrite]>,
    made: Arc<[DefRef]>,
    deps: Arc<[DependencyId]>,
}

#[derive(Default)]
struct Round {
    /// The contributions of all files in the previous round.
    flows: Flows,
    files: IdVec<FileId, Option<Arc<Answers>>>,
}

/// Resolves a program repeatedly as it changes.
#[derive(Default)]
pub struct Resolver {
    /// The version of the program that the links belong to.
    of: Resolved,
    links: IdVec<FileId, FileLinks>,
    /// The state for incremental resolution.
    kept: Option<ResolverState>,
}

#[derive(Default)]
struct Resolved {
    files: IdVec<FileId, Option<Arc<ProgramFile>>>,
    manifests: BTreeMap<String, String>,
}

struct ResolverState {
    link: ProgramTables,
    rounds: Vec<Round>,
    /// For each round but the first, a superset of what it learned in addition to the previous one.
    news: Vec<ChangedDependencies>,
    linked: IdVec<FileId, Linked>,
}

/// Resolves everything once. The result has an entry per file id.
pub fn resolve(program: &mut Program) -> IdVec<FileId, FileLinks> {
    let mut resolver = Resolver::default();
    resolver.resolve_once(program);
    resolver.links
}

impl Resolver {
    /// The links of the last resolution; one entry per file id.
    pub fn links(&self) -> &IdVec<FileId, FileLinks> {
        &self.links
    }

    /// Updates the links and returns the files whose links were recomputed. If files were added or removed, files are
    /// renumbered.
    pub fn resolve(&mut self, program: &mut Program) -> FxHashSet<FileId> {
        let changed = self.of.changed_files(program);
        if changed.as_ref().is_some_and(FxHashSet::is_empty) && self.links.len() == program.slots() {
            return FxHashSet::default();
        }
        let again = self.kept.take().zip(changed).and_then(|(mut kept, files)| {
            let (link, TableDifferences { changed, learned }) =
                ProgramTables::updated(&mut kept.link, program, &files, &self.of.files)?;
            kept.news.iter_mut().for_each(|news| news.extend(&learned));
            Some((kept, link, changed, files))
        });
        let (kept, found_again) = match again {
            Some((kept, link, changed, files)) => self.resolve_again(program, kept, link, changed, &files),
            None => {
                let kept = self.resolve_all(program, RecordedDependencies::Everything);
                (kept, program.ids().collect())
            }
        };
        self.kept = Some(kept);
        self.of = Resolved::new(program);
        found_again
    }

    /// Like `resolve`, without preparing for changes: faster, and only the links are kept, so that a change resolves
    /// everything again.
    pub fn resolve_once(&mut self, program: &mut Program) -> FxHashSet<FileId> {
        self.kept = None;
        self.resolve_all(program, RecordedDependencies::Rounds);
        self.of = Resolved::new(program);
        program.ids().collect()
    }

    fn resolve_all(&mut self, program: &mut Program, traced: RecordedDependencies) -> ResolverState {
        program.put_in_order();
        let link = ProgramTables::new(program);
        let program = &*program;
        let mut parts = parts(program, traced, false);
        let mut rounds: Vec<Round> = Vec::with_capacity(ROUNDS);
        let mut news: Vec<ChangedDependencies> = Vec::new();
        for number in 0..ROUNDS {
            let mut flows = rounds.last().map(|r: &Round| r.flows.clone()).unwrap_or_default();
            let before = number.checked_sub(2).map(|at| &rounds[at]);
            if let Some(last) = rounds.last() {
                let mut learned = ChangedDependencies::default();
                for id in program.ids() {
                    let old = before.and_then(|r| r.files[id].as_ref());
                    let new = last.files[id].as_ref();
                    if let Some(new) = new
                        && old.is_none_or(|old| !Arc::ptr_eq(old, new))
                    {
                        flows.replace(old.map_or(&[], |a| &a.gives), &new.gives, &link, &mut learned);
                    }
                }
                news.push(learned);
            }
            let known = |id: FileId| match (rounds.last().and_then(|r| r.files[id].as_ref()), news.last()) {
                (Some(known), Some(learned)) => (Some(known), Redo::Seeing { changed: learned, last: None }),
                _ => (None, Redo::Open),
            };
            let files = answer_all(program, &link, &flows, &news, &mut parts, known);
            rounds.push(Round { flows, files });
        }
        self.links = vec![FileLinks::default(); program.slots()].into();
        let mut linked: IdVec<FileId, Linked> = vec![Linked::default(); program.slots()].into();
        for (id, (links, how)) in link_all(program, &link, rounds.last(), &news, parts, |_| Some(None)) {
            self.links[id] = links;
            linked[id] = how;
        }
        ResolverState { link, rounds, news, linked }
    }

    fn resolve_again(
        &mut self,
        program: &Program,
        mut kept: ResolverState,
        link: ProgramTables,
        changed: ChangedDependencies,
        files: &FxHashSet<FileId>,
    ) -> (ResolverState, FxHashSet<FileId>) {
        let mut parts = parts(program, RecordedDependencies::Everything, true);
        let mut rounds: Vec<Round> = Vec::with_capacity(ROUNDS);
        let mut seen = ChangedDependencies::default();
        let mut learned_before = ChangedDependencies::default();
        let mut quiet = true;
        let mut found_again: FxHashSet<FileId> = files.clone();
        for number in 0..ROUNDS {
            let mut flows = std::mem::take(&mut kept.rounds[number].flows);
            let mut learned = ChangedDependencies::default();
            if let Some(last) = rounds.last() {
                for id in program.ids() {
                    let old = kept.rounds[number - 1].files[id].as_ref();
                    if let (Some(old), Some(new)) = (old, last.files[id].as_ref())
                        && !Arc::ptr_eq(old, new)
                    {
                        flows.replace(&old.gives, &new.gives, &link, &mut learned);
                    }
                }
                // Add what differs between this round and the previous one, because either of them changed.
                kept.news[number - 1].extend(&learned_before);
                kept.news[number - 1].extend(&learned);
            }
            seen = ChangedDependencies::default();
            seen.extend(&changed);
            seen.extend(&learned);
            learned_before = learned;
            let (last, old) = (rounds.last(), &kept.rounds[number].files);
            // Neither this round nor the previous one has contributions that differ from those before the change.
            let no_news = seen.len() == changed.len();
            let before = number.checked_sub(1).filter(|_| no_news && quiet).map(|at| &kept.rounds[at].files);
            quiet = no_news;
            let learned_since = number.checked_sub(1).map(|at| &kept.news[at]);
            let answers = answer_all(program, &link, &flows, &kept.news[..number], &mut parts, |id| {
                if files.contains(&id) {
                    // Its previous results are of another text.
                    (last.and_then(|r: &Round| r.files[id].as_ref()), Redo::Open)
                } else {
                    let old = old[id].as_ref();
                    let same = |a: Option<&Arc<Answers>>| matches!((a, old), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
                    // An answer that is valid in the previous round and equal in this one is valid here too.
                    let holds = before.is_some_and(|b| same(b[id].as_ref()))
                        && last.is_some_and(|r| same(r.files[id].as_ref()));
                    let last = last.and_then(|r| r.files[id].as_deref()).zip(learned_since);
                    let last = last.map(|(answers, learned_since)| Last { answers, learned_since });
                    (old, if holds { Redo::Nothing } else { Redo::Seeing { changed: &seen, last } })
                }
            });
            rounds.push(Round { flows, files: answers });
        }
        let before = kept.rounds.last().map(|r| &r.files);
        let after = rounds.last().map(|r| &r.files);
        for id in program.ids() {
            let (old, new) = (before.and_then(|f| f[id].as_ref()), after.and_then(|f| f[id].as_ref()));
            let same = matches!((old, new), (Some(old), Some(new)) if Arc::ptr_eq(old, new));
            if !same || changed.has_file(id) || seen.hits(&kept.linked[id].deps) {
                found_again.insert(id);
            }
        }
        let wanted = |id: FileId| {
            // The uses of a changed file are recomputed.
            let known = (!files.contains(&id)).then_some((&kept.linked[id], &seen));
            found_again.contains(&id).then_some(known)
        };
        for (id, (links, how)) in link_all(program, &link, rounds.last(), &kept.news, parts, wanted) {
            if self.links[id] == links && !files.contains(&id) {
                found_again.remove(&id);
            }
            self.links[id] = links;
            kept.linked[id] = how;
        }
        (ResolverState { link, rounds, ..kept }, found_again)
    }
}

impl Resolved {
    fn new(program: &Program) -> Resolved {
        let files = (0..program.slots()).map(|id| program.get(FileId::new(id)).cloned()).collect();
        Resolved { files, manifests: program.manifests.clone() }
    }

    /// The files whose facts changed; `None` if files were added, removed or renamed, or if a manifest changed.
    fn changed_files(&self, program: &Program) -> Option<FxHashSet<FileId>> {
        if self.manifests != program.manifests || self.files.len() != program.slots() {
            return None;
        }
        let mut changed = FxHashSet::default();
        for (id, old) in self.files.iter_ids() {
            match (old, program.get(id)) {
                (None, None) => {}
                (Some(old), Some(new)) if Arc::ptr_eq(old, new) => {}
                (Some(old), Some(new)) if old.path == new.path => {
                    changed.insert(id);
                }
                _ => return None,
            }
        }
        Some(changed)
    }
}

/// Which results of a file are recomputed.
#[derive(Clone, Copy)]
enum Redo<'a> {
    Nothing,
    /// All that may differ between rounds; without previous results, everything.
    Open,
    /// Those whose dependencies changed. A result of the previous round is reused if nothing that this round learned in
    /// addition affects it.
    Seeing {
        changed: &'a ChangedDependencies,
        last: Option<Last<'a>>,
    },
}

/// The results of the previous round, and what this round learned in addition.
#[derive(Clone, Copy)]
struct Last<'a> {
    answers: &'a Answers,
    learned_since: &'a ChangedDependencies,
}

impl Redo<'_> {
    fn hits(self, deps: &[DependencyId], open: bool) -> bool {
        match self {
            Redo::Nothing => false,
            Redo::Open => open,
            Redo::Seeing { changed, .. } => changed.hits(deps),
        }
    }

    fn found_before<T: Clone>(self, of: impl for<'f> Fn(&'f Answers) -> (&'f T, &'f [DependencyId])) -> Option<T> {
        let Redo::Seeing { last: Some(last), .. } = self else { return None };
        let (found, deps) = of(last.answers);
        (!last.learned_since.hits(deps)).then(|| found.clone())
    }
}

/// Number of parts per core.
const PARTS: usize = 4;

/// Files that share memoized answers, in one round and the next.
struct Part {
    ids: Vec<FileId>,
    traced: RecordedDependencies,
    /// The memoized answers. `None` if they cost more memory than they save time.
    memo: Option<Memo>,
}

/// Divides the files into parts with about the same number of calls: large enough to share answers, small enough to
/// keep all cores busy.
fn parts(program: &Program, traced: RecordedDependencies, remember: bool) -> Vec<Part> {
    let weight = |id: FileId| 8 + program.file(id).facts.calls.len();
    let all: usize = program.ids().map(weight).sum();
    let full = all.div_ceil(rayon::current_num_threads() * PARTS);
    let (mut parts, mut filled) = (Vec::<Part>::new(), usize::MAX);
    for id in program.ids() {
        if filled >= full {
            parts.push(Part { ids: vec![], traced, memo: remember.then(Memo::default) });
            filled = 0;
        }
        filled += weight(id);
        parts.last_mut().expect("one was begun").ids.push(id);
    }
    parts
}

/// Computes the results of all files on all cores, starting from what is known of each.
fn answer_all<'a>(
    program: &Program,
    link: &ProgramTables,
    flows: &Flows,
    news: &[ChangedDependencies],
    parts: &mut [Part],
    known: impl Fn(FileId) -> (Option<&'a Arc<Answers>>, Redo<'a>) + Sync,
) -> IdVec<FileId, Option<Arc<Answers>>> {
    let found: Vec<Vec<(FileId, Arc<Answers>)>> = parts
        .par_iter_mut()
        .with_max_len(1)
        .map(|part| {
            let remember = part.memo.is_some();
            let mut eval = Eval::from(program, link, flows, news, part.traced, part.memo.take().unwrap_or_default());
            let answers = part.ids.iter().map(|id| {
                let (known, redo) = known(*id);
                (*id, answer(&mut eval, *id, known, redo))
            });
            let answers = answers.collect();
            part.memo = remember.then_some(eval.memo);
            answers
        })
        .collect();
    let mut all: IdVec<FileId, Option<Arc<Answers>>> = vec![None; program.slots()].into();
    for (id, answers) in found.into_iter().flatten() {
        all[id] = Some(answers);
    }
    all
}

/// Computes the links of the files that `wanted` selects, from the results of the last round. `wanted` also returns
/// their previous dependencies.
fn link_all<'a>(
    program: &Program,
    link: &ProgramTables,
    last: Option<&Round>,
    news: &[ChangedDependencies],
    parts: Vec<Part>,
    wanted: impl Fn(FileId) -> Option<Option<(&'a Linked, &'a ChangedDependencies)>> + Sync,
) -> Vec<(FileId, (FileLinks, Linked))> {
    let Some(last) = last else { return vec![] };
    parts
        .into_par_iter()
        .with_max_len(1)
        .flat_map_iter(|part| {
            let memo = part.memo.unwrap_or_default();
            let mut eval = Eval::from(program, link, &last.flows, news, part.traced, memo);
            let found = part.ids.iter().filter_map(|id| {
                let (known, answers) = (wanted(*id)?, last.files[*id].as_ref()?);
                Some((*id, links(&mut eval, *id, &answers.calls, known)))
            });
            found.collect::<Vec<_>>()
        })
        .collect()
}

fn answer(eval: &mut Eval<'_>, id: FileId, known: Option<&Arc<Answers>>, redo: Redo<'_>) -> Arc<Answers> {
    let Some(known) = known else {
        let calls = eval.program.file(id).facts.calls.ids();
        let calls: IdVec<CallId, CallResult> = calls.map(|call| find(eval, id, call)).collect();
        let puts = object_writes(eval, id);
        let gives = contributions(eval, id, &calls, &puts).into();
        return Answers::new(calls, puts, gives);
    };
    let holds = match redo {
        Redo::Nothing => true,
        Redo::Open => false,
        Redo::Seeing { changed, .. } => !known.is_affected_by(changed),
    };
    if holds {
        return known.clone();
    }
    let stale = known.calls.iter_ids().filter(|(_, found)| redo.hits(&found.deps, found.open));
    let again: Vec<CallId> = stale.map(|(call, _)| call).collect();
    let put_again = redo.hits(&known.puts.deps, true);
    if again.is_empty() && !put_again {
        return known.clone();
    }
    // Most results are unchanged; those are shared, not stored again.
    let again: Vec<(CallId, CallResult)> = again
        .into_iter()
        .map(|call| {
            let last = redo.found_before(|last| (&last.calls[call], &last.calls[call].deps));
            (call, last.unwrap_or_else(|| find(eval, id, call)))
        })
        .filter(|(call, found)| known.calls[*call] != *found)
        .collect();
    let last_puts = || redo.found_before(|last| (&last.puts, &*last.puts.deps));
    let puts =
        put_again.then(|| last_puts().unwrap_or_else(|| object_writes(eval, id))).filter(|puts| known.puts != *puts);
    let same = again.is_empty() && puts.is_none();
    // The contributions also depend on properties of the targets, even if the targets are the same.
    if same && *contributions(eval, id, &known.calls, &known.puts) == *known.gives {
        return known.clone();
    }
    let mut calls = known.calls.clone();
    for (call, found) in again {
        calls[call] = found;
    }
    let puts = puts.unwrap_or_else(|| known.puts.clone());
    let gives = contributions(eval, id, &calls, &puts);
    let gives = if *gives == *known.gives { known.gives.clone() } else { gives.into() };
    Answers::new(calls, puts, gives)
}

fn find(eval: &mut Eval<'_>, file: FileId, call: CallId) -> CallResult {
    let ((targets, open, class, handed), deps) = eval.traced(|eval| {
        let (targets, open) = eval.ask(|e| e.solve(EvalQuestion::CallTargets(file, call), LEVELS));
        let mut targets = (*targets).clone();
        let owner = eval.file(file).facts.calls[call].owner;
        eval.keep_reachable(DefRef { file, def: owner }, &mut targets);
        let (class, more_open) = classify(eval, file, call, &targets.values, targets.too_many);
        let handed = class == CallClass::Resolved && is_passed_on(eval, file, call, &targets.values);
        (targets, open || more_open, class, handed)
    });
    let targets = targets.values.iter().copied().collect();
    CallResult { targets, open, handed, class, deps }
}

/// Whether the targets are arguments that the callee calls, not the callee itself.
fn is_passed_on(eval: &mut Eval<'_>, file: FileId, call: CallId, targets: &[(PossibleValue, Derivation)]) -> bool {
    if !targets.iter().any(|(v, how)| matches!(v, PossibleValue::Func(_)) && *how >= Derivation::Flow) {
        return false;
    }
    let facts = &eval.file(file).facts;
    let (callee, _) = eval.ask(|e| e.callee(file, &facts.calls[call], LEVELS));
    !callee.values.iter().any(|(v, _)| {
        matches!(
            v,
            PossibleValue::Func(_) | PossibleValue::Method(..) | PossibleValue::Class(_) | PossibleValue::Instance(..)
        )
    })
}

fn classify(
    eval: &mut Eval<'_>,
    file: FileId,
    call: CallId,
    targets: &[(PossibleValue, Derivation)],
    too_many: bool,
) -> (CallClass, bool) {
    let facts = &eval.file(file).facts;
    let call = &facts.calls[call];
    if targets
        .iter()
        .any(|(v, _)| matches!(v, PossibleValue::Func(_) | PossibleValue::Method(..) | PossibleValue::Class(_)))
    {
        return (CallClass::Resolved, false);
    }
    if call.how == CallKind::Implicit {
        return (CallClass::Silent, false);
    }
    if !targets.is_empty() {
        return (CallClass::Outside, false);
    }
    if too_many {
        return (CallClass::Unresolved, false);
    }
    let (outside, open) = eval.ask(|e| match facts.expr(call.callee) {
        SourceExpr::Member(of, _) if facts.expr(of) == SourceExpr::Super => e.outside_super(file, call.owner),
        SourceExpr::Super => e.outside_super(file, call.owner),
        SourceExpr::Member(of, _) => {
            let base = e.expr(file, of, call.owner, LEVELS);
            !base.is_empty() && base.values.iter().all(|(v, _)| e.is_outside(*v))
        }
        _ => {
            let callee = e.expr(file, call.callee, call.owner, LEVELS);
            // Conversions in Go, and calls of values from outside.
            !callee.is_empty()
                && callee.values.iter().all(|(v, _)| e.is_outside(*v) || matches!(v, PossibleValue::Class(_)))
        }
    });
    (if outside { CallClass::Outside } else { CallClass::Unresolved }, open)
}

impl Eval<'_> {
    fn is_outside(&mut self, value: PossibleValue) -> bool {
        match value {
            // A macro of another package may expand to anything, including calls of this program's methods.
            PossibleValue::ExternalInstance(path) => !self.program.external_is_macro(path),
            PossibleValue::Text
            | PossibleValue::Number
            | PossibleValue::Nothing
            | PossibleValue::Object(..)
            | PossibleValue::Typed(..)
            | PossibleValue::External(_)
            | PossibleValue::Builtin(_)
            | PossibleValue::Generator(_)
            | PossibleValue::Rest(..)
            | PossibleValue::Keywords(_) => true,
            PossibleValue::Instance(class, _) | PossibleValue::Class(class) => self.resolution_order(class).external,
            _ => false,
        }
    }

    fn outside_super(&mut self, file: FileId, owner: DefId) -> bool {
        match self.enclosing_type(file, owner, LEVELS) {
            Some(class) => {
                let line = self.resolution_order(class);
                // Every class has a parent, at least `object`.
                line.external || line.classes.len() == 1
            }
            None => false,
        }
    }
}

/// A write into an object from outside.
#[derive(Clone, Copy, PartialEq)]
struct ObjectWrite {
    into: PossibleValue,
    name: InternedStr,
    file: FileId,
    value: ExprId,
    owner: DefId,
    function: Option<DefRef>,
}

fn object_writes(eval: &mut Eval<'_>, file: FileId) -> ObjectWrites {
    let here = eval.file(file);
    let mut out = Vec::new();
    let mut deps: Vec<Arc<[DependencyId]>> = vec![[file.into()].into()];
    let made = constructs(eval, file, &mut out, &mut deps);
    for index in &here.writes {
        let bind = here.facts.binds[*index];
        let (of, name) = match bind.target {
            BindTarget::Member(of, name) | BindTarget::At(of, name) => (of, here.sym(name)),
            BindTarget::Element(of) => (of, eval.link.words.element),
            _ => continue,
        };
        // Such a bind states that a type implements a trait.
        if here.facts.impl_lines.binary_search_by_key(index, |(bind, _)| *bind).is_ok() {
            continue;
        }
        let base = ask_traced(eval, &mut deps, |e| e.expr(file, of, bind.owner, LEVELS));
        let script = here.rules.open_objects;
        for (value, _) in &base.values {
            let into = match (value, bind.target) {
                (PossibleValue::Instance(class, _), BindTarget::Member(..)) => PossibleValue::Instance(*class, true),
                (
                    PossibleValue::Class(_) | PossibleValue::Func(_) | PossibleValue::Prototype(_),
                    BindTarget::Member(..),
                ) => *value,
                (PossibleValue::Object(..), BindTarget::At(..) | BindTarget::Element(_)) => *value,
                (PossibleValue::Object(..), BindTarget::Member(..)) if script => *value,
                _ => continue,
            };
            let mut function = None;
            if script {
                let values = ask_traced(eval, &mut deps, |e| e.expr(file, bind.value, bind.owner, LEVELS));
                function = values.values.iter().find_map(|(v, _)| match v {
                    PossibleValue::Func(f) => Some(*f),
                    _ => None,
                });
            }
            out.push(ObjectWrite { into, name, file, value: bind.value, owner: bind.owner, function });
        }
    }
    ObjectWrites { into: out.into(), made: made.into(), deps: deps::union(deps.iter()).into() }
}

fn ask_traced<R>(eval: &mut Eval<'_>, deps: &mut Vec<Arc<[DependencyId]>>, ask: impl FnOnce(&mut Eval<'_>) -> R) -> R {
    eval.traced_in(deps, |e| e.ask(ask)).0
}

/// `T{a: x}`: the fields set by constructions, and the constructed types.
fn constructs(
    eval: &mut Eval<'_>,
    file: FileId,
    out: &mut Vec<ObjectWrite>,
    deps: &mut Vec<Arc<[DependencyId]>>,
) -> Vec<DefRef> {
    let here = eval.file(file);
    let mut made = Vec::new();
    for expr in &here.constructs {
        let SourceExpr::Construct(of, range) = here.facts.expr(*expr) else { continue };
        let types = ask_traced(eval, deps, |e| e.expr(file, of, ROOT, LEVELS));
        for (value, _) in &types.values {
            let PossibleValue::Class(class) = value else { continue };
            made.push(*class);
            for (place, item) in here.facts.items(range).iter().enumerate() {
                let name = match item.key {
                    ItemKey::Name(name) => here.sym(name),
                    ItemKey::Next => match eval.field_at(*class, place) {
                        Some(name) => name,
                        None => continue,
                    },
                    _ => continue,
                };
                let into = PossibleValue::Instance(*class, true);
                out.push(ObjectWrite { into, name, file, value: item.value, owner: ROOT, function: None });
            }
        }
    }
    made
}

/// The contributions of a file to the flows, sorted.
fn contributions(
    eval: &Eval<'_>,
    id: FileId,
    calls: &IdVec<CallId, CallResult>,
    puts: &ObjectWrites,
) -> Vec<FlowContribution> {
    let (program, link) = (eval.program, eval.link);
    let file = program.file(id);
    let mut gives = Vec::new();
    for (call, found) in calls.iter_ids() {
        for (value, how) in &*found.targets {
            let (function, receiver) = match value {
                PossibleValue::Func(function) => (*function, None),
                PossibleValue::Method(function, receiver) => (*function, Some(*receiver)),
                PossibleValue::Class(class) => {
                    gives.push(FlowContribution::Made(*class));
                    continue;
                }
                _ => continue,
            };
            let def = program.def(function);
            if let Some(receiver) = receiver {
                if def.is(flag::CONSTRUCTOR) {
                    gives.push(FlowContribution::Made(receiver));
                }
                let own = link.receiver(function).or_else(|| {
                    let class = program.file(function.file).class_of[function.def]?;
                    Some(DefRef { file: function.file, def: class })
                });
                if own != Some(receiver) {
                    gives.push(FlowContribution::Receiver(function, receiver));
                }
            }
            if def.params.is_empty() {
                continue;
            }
            let callee = file.facts.expr(file.facts.calls[call].callee);
            let script = file.rules.open_objects;
            let passing = match callee {
                SourceExpr::Member(..) if found.handed => ArgumentPassing::Held,
                _ if found.handed => ArgumentPassing::Mapped,
                _ if receiver.is_some() && def.is(flag::TAKES_SELF) => ArgumentPassing::Bound,
                SourceExpr::Member(_, name) if script && file.sym(name) == link.words.call => ArgumentPassing::Call,
                SourceExpr::Member(_, name) if script && file.sym(name) == link.words.apply => ArgumentPassing::Apply,
                _ => ArgumentPassing::Straight,
            };
            gives.push(FlowContribution::Caller(function, CallingSite { file: id, call, passing, how: *how }));
        }
    }
    for put in &*puts.into {
        gives.push(FlowContribution::Write(put.into, put.name, (put.file, put.value, put.owner)));
        if let Some(function) = put.function {
            let owner = match put.into {
                PossibleValue::Prototype(of) => PossibleValue::Instance(of, true),
                other => other,
            };
            gives.push(FlowContribution::Owner(function, owner));
        }
    }
    gives.extend(puts.made.iter().map(|class| FlowContribution::Made(*class)));
    gives.sort_unstable();
    gives
}
