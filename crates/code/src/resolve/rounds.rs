//! Resolves calls in rounds and, after changes, only those that the changes can affect.
//!
//! The first round uses only the text. Each further one also uses the contributions of all files in the previous one:
//! calls with their arguments, writes into objects. Every answer records its dependencies that may differ between
//! rounds and, if requested, the files it depends on. So a round recomputes only what the additions of the previous
//! round can affect. After files change, each round recomputes only what differs from the same round before the change.

use super::deps::{self, Atom, Changed};
use super::eval::{Eval, LEVELS, Memo, Question, Traced};
use super::file::File;
use super::flow::{Caller, Flows, Give, Passing};
use super::link::{Differences, Link};
use super::program::Program;
use super::value::{FileId, Gid, How, Sym, Value};
use super::{Linked, Links, links};
use crate::facts::{CallId, CallKind, DefId, Expr, ExprId, Key, ROOT, Target, flag};
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
pub struct Found {
    pub targets: Box<[(Value, How)]>,
    /// Whether a later round may change it.
    open: bool,
    /// The targets are not called here but passed to code that calls them.
    handed: bool,
    pub class: Class,
    deps: Arc<[Atom]>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Class {
    Resolved,
    Outside,
    Unresolved,
    /// An implicit call: not counted.
    Silent,
}

/// The results of a round for one file.
struct Answers {
    calls: IdVec<CallId, Found>,
    puts: Puts,
    /// The file's contributions to the flows, sorted.
    gives: Arc<[Give]>,
    /// The union of all dependencies, computed on first use.
    deps: OnceLock<Box<[Atom]>>,
}

impl Answers {
    fn new(calls: IdVec<CallId, Found>, puts: Puts, gives: Arc<[Give]>) -> Arc<Answers> {
        Arc::new(Answers { calls, puts, gives, deps: OnceLock::new() })
    }

    /// Whether any result may have to be recomputed. Fast for few changes, which nearly always affect nothing.
    fn sees(&self, changed: &Changed) -> bool {
        if changed.len() > FEW_CHANGES {
            return true;
        }
        changed.hits_sorted(
            self.deps.get_or_init(|| deps::union(self.calls.iter().map(|c| &c.deps).chain([&self.puts.deps]))),
        )
    }
}

#[derive(Clone, Default, PartialEq)]
struct Puts {
    into: Arc<[Put]>,
    made: Arc<[Gid]>,
    deps: Arc<[Atom]>,
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
    links: IdVec<FileId, Links>,
    /// The state for incremental resolution.
    kept: Option<Kept>,
}

#[derive(Default)]
struct Resolved {
    files: IdVec<FileId, Option<Arc<File>>>,
    manifests: BTreeMap<String, String>,
}

struct Kept {
    link: Link,
    rounds: Vec<Round>,
    /// For each round but the first, a superset of what it learned in addition to the previous one.
    news: Vec<Changed>,
    linked: IdVec<FileId, Linked>,
}

/// Resolves everything once. The result has an entry per file id.
pub fn resolve(program: &mut Program) -> IdVec<FileId, Links> {
    let mut resolver = Resolver::default();
    resolver.resolve_once(program);
    resolver.links
}

impl Resolver {
    /// The links of the last resolution; one entry per file id.
    pub fn links(&self) -> &IdVec<FileId, Links> {
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
            let (link, Differences { changed, learned }) =
                Link::again(&mut kept.link, program, &files, &self.of.files)?;
            kept.news.iter_mut().for_each(|news| news.extend(&learned));
            Some((kept, link, changed, files))
        });
        let (kept, found_again) = match again {
            Some((kept, link, changed, files)) => self.resolve_again(program, kept, link, changed, &files),
            None => {
                let kept = self.resolve_all(program, Traced::Everything);
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
        self.resolve_all(program, Traced::Rounds);
        self.of = Resolved::new(program);
        program.ids().collect()
    }

    fn resolve_all(&mut self, program: &mut Program, traced: Traced) -> Kept {
        program.put_in_order();
        let link = Link::new(program);
        let program = &*program;
        let mut parts = parts(program, traced, false);
        let mut rounds: Vec<Round> = Vec::with_capacity(ROUNDS);
        let mut news: Vec<Changed> = Vec::new();
        for number in 0..ROUNDS {
            let mut flows = rounds.last().map(|r: &Round| r.flows.clone()).unwrap_or_default();
            let before = number.checked_sub(2).map(|at| &rounds[at]);
            if let Some(last) = rounds.last() {
                let mut learned = Changed::default();
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
        self.links = vec![Links::default(); program.slots()].into();
        let mut linked: IdVec<FileId, Linked> = vec![Linked::default(); program.slots()].into();
        for (id, (links, how)) in link_all(program, &link, rounds.last(), &news, parts, |_| Some(None)) {
            self.links[id] = links;
            linked[id] = how;
        }
        Kept { link, rounds, news, linked }
    }

    fn resolve_again(
        &mut self,
        program: &Program,
        mut kept: Kept,
        link: Link,
        changed: Changed,
        files: &FxHashSet<FileId>,
    ) -> (Kept, FxHashSet<FileId>) {
        let mut parts = parts(program, Traced::Everything, true);
        let mut rounds: Vec<Round> = Vec::with_capacity(ROUNDS);
        let mut seen = Changed::default();
        let mut learned_before = Changed::default();
        let mut quiet = true;
        let mut found_again: FxHashSet<FileId> = files.clone();
        for number in 0..ROUNDS {
            let mut flows = std::mem::take(&mut kept.rounds[number].flows);
            let mut learned = Changed::default();
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
            seen = Changed::default();
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
        (Kept { link, rounds, ..kept }, found_again)
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
        changed: &'a Changed,
        last: Option<Last<'a>>,
    },
}

/// The results of the previous round, and what this round learned in addition.
#[derive(Clone, Copy)]
struct Last<'a> {
    answers: &'a Answers,
    learned_since: &'a Changed,
}

impl Redo<'_> {
    fn hits(self, deps: &[Atom], open: bool) -> bool {
        match self {
            Redo::Nothing => false,
            Redo::Open => open,
            Redo::Seeing { changed, .. } => changed.hits(deps),
        }
    }

    fn found_before<T: Clone>(self, of: impl for<'f> Fn(&'f Answers) -> (&'f T, &'f [Atom])) -> Option<T> {
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
    traced: Traced,
    /// The memoized answers. `None` if they cost more memory than they save time.
    memo: Option<Memo>,
}

/// Divides the files into parts with about the same number of calls: large enough to share answers, small enough to
/// keep all cores busy.
fn parts(program: &Program, traced: Traced, remember: bool) -> Vec<Part> {
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
    link: &Link,
    flows: &Flows,
    news: &[Changed],
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
    link: &Link,
    last: Option<&Round>,
    news: &[Changed],
    parts: Vec<Part>,
    wanted: impl Fn(FileId) -> Option<Option<(&'a Linked, &'a Changed)>> + Sync,
) -> Vec<(FileId, (Links, Linked))> {
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
        let calls: IdVec<CallId, Found> = calls.map(|call| find(eval, id, call)).collect();
        let puts = puts(eval, id);
        let gives = gives(eval, id, &calls, &puts).into();
        return Answers::new(calls, puts, gives);
    };
    let holds = match redo {
        Redo::Nothing => true,
        Redo::Open => false,
        Redo::Seeing { changed, .. } => !known.sees(changed),
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
    let again: Vec<(CallId, Found)> = again
        .into_iter()
        .map(|call| {
            let last = redo.found_before(|last| (&last.calls[call], &last.calls[call].deps));
            (call, last.unwrap_or_else(|| find(eval, id, call)))
        })
        .filter(|(call, found)| known.calls[*call] != *found)
        .collect();
    let last_puts = || redo.found_before(|last| (&last.puts, &*last.puts.deps));
    let puts = put_again.then(|| last_puts().unwrap_or_else(|| puts(eval, id))).filter(|puts| known.puts != *puts);
    let same = again.is_empty() && puts.is_none();
    // The contributions also depend on properties of the targets, even if the targets are the same.
    if same && *gives(eval, id, &known.calls, &known.puts) == *known.gives {
        return known.clone();
    }
    let mut calls = known.calls.clone();
    for (call, found) in again {
        calls[call] = found;
    }
    let puts = puts.unwrap_or_else(|| known.puts.clone());
    let gives = gives(eval, id, &calls, &puts);
    let gives = if *gives == *known.gives { known.gives.clone() } else { gives.into() };
    Answers::new(calls, puts, gives)
}

fn find(eval: &mut Eval<'_>, file: FileId, call: CallId) -> Found {
    let ((targets, open, class, handed), deps) = eval.traced(|eval| {
        let (targets, open) = eval.ask(|e| e.solve(Question::CallTargets(file, call), LEVELS));
        let mut targets = (*targets).clone();
        let owner = eval.file(file).facts.calls[call].owner;
        eval.keep_reachable(Gid { file, def: owner }, &mut targets);
        let (class, more_open) = classify(eval, file, call, &targets.values, targets.too_many);
        let handed = class == Class::Resolved && is_handed(eval, file, call, &targets.values);
        (targets, open || more_open, class, handed)
    });
    let targets = targets.values.iter().copied().collect();
    Found { targets, open, handed, class, deps }
}

/// Whether the targets are arguments that the callee calls, not the callee itself.
fn is_handed(eval: &mut Eval<'_>, file: FileId, call: CallId, targets: &[(Value, How)]) -> bool {
    if !targets.iter().any(|(v, how)| matches!(v, Value::Func(_)) && *how >= How::Flow) {
        return false;
    }
    let facts = &eval.file(file).facts;
    let (callee, _) = eval.ask(|e| e.callee(file, &facts.calls[call], LEVELS));
    !callee
        .values
        .iter()
        .any(|(v, _)| matches!(v, Value::Func(_) | Value::Method(..) | Value::Class(_) | Value::Instance(..)))
}

fn classify(
    eval: &mut Eval<'_>,
    file: FileId,
    call: CallId,
    targets: &[(Value, How)],
    too_many: bool,
) -> (Class, bool) {
    let facts = &eval.file(file).facts;
    let call = &facts.calls[call];
    if targets.iter().any(|(v, _)| matches!(v, Value::Func(_) | Value::Method(..) | Value::Class(_))) {
        return (Class::Resolved, false);
    }
    if call.how == CallKind::Implicit {
        return (Class::Silent, false);
    }
    if !targets.is_empty() {
        return (Class::Outside, false);
    }
    if too_many {
        return (Class::Unresolved, false);
    }
    let (outside, open) = eval.ask(|e| match facts.expr(call.callee) {
        Expr::Member(of, _) if facts.expr(of) == Expr::Super => e.outside_super(file, call.owner),
        Expr::Super => e.outside_super(file, call.owner),
        Expr::Member(of, _) => {
            let base = e.expr(file, of, call.owner, LEVELS);
            !base.is_empty() && base.values.iter().all(|(v, _)| e.is_outside(*v))
        }
        _ => {
            let callee = e.expr(file, call.callee, call.owner, LEVELS);
            // Conversions in Go, and calls of values from outside.
            !callee.is_empty() && callee.values.iter().all(|(v, _)| e.is_outside(*v) || matches!(v, Value::Class(_)))
        }
    });
    (if outside { Class::Outside } else { Class::Unresolved }, open)
}

impl Eval<'_> {
    fn is_outside(&mut self, value: Value) -> bool {
        match value {
            // A macro of another package may expand to anything, including calls of this program's methods.
            Value::ExternalInstance(path) => !self.program.external_is_macro(path),
            Value::Text
            | Value::Number
            | Value::Nothing
            | Value::Object(..)
            | Value::Typed(..)
            | Value::External(_)
            | Value::Builtin(_)
            | Value::Generator(_)
            | Value::Rest(..)
            | Value::Keywords(_) => true,
            Value::Instance(class, _) | Value::Class(class) => self.line(class).external,
            _ => false,
        }
    }

    fn outside_super(&mut self, file: FileId, owner: DefId) -> bool {
        match self.enclosing_type(file, owner, LEVELS) {
            Some(class) => {
                let line = self.line(class);
                // Every class has a parent, at least `object`.
                line.external || line.classes.len() == 1
            }
            None => false,
        }
    }
}

/// A write into an object from outside.
#[derive(Clone, Copy, PartialEq)]
struct Put {
    into: Value,
    name: Sym,
    file: FileId,
    value: ExprId,
    owner: DefId,
    function: Option<Gid>,
}

fn puts(eval: &mut Eval<'_>, file: FileId) -> Puts {
    let here = eval.file(file);
    let mut out = Vec::new();
    let mut deps: Vec<Arc<[Atom]>> = vec![[file.into()].into()];
    let made = constructs(eval, file, &mut out, &mut deps);
    for index in &here.writes {
        let bind = here.facts.binds[*index];
        let (of, name) = match bind.target {
            Target::Member(of, name) | Target::At(of, name) => (of, here.sym(name)),
            Target::Element(of) => (of, eval.link.words.element),
            _ => continue,
        };
        // Such a bind states that a type implements a trait.
        if here.facts.impl_lines.binary_search_by_key(index, |(bind, _)| *bind).is_ok() {
            continue;
        }
        let base = asked(eval, &mut deps, |e| e.expr(file, of, bind.owner, LEVELS));
        let script = here.rules.open_objects;
        for (value, _) in &base.values {
            let into = match (value, bind.target) {
                (Value::Instance(class, _), Target::Member(..)) => Value::Instance(*class, true),
                (Value::Class(_) | Value::Func(_) | Value::Prototype(_), Target::Member(..)) => *value,
                (Value::Object(..), Target::At(..) | Target::Element(_)) => *value,
                (Value::Object(..), Target::Member(..)) if script => *value,
                _ => continue,
            };
            let mut function = None;
            if script {
                let values = asked(eval, &mut deps, |e| e.expr(file, bind.value, bind.owner, LEVELS));
                function = values.values.iter().find_map(|(v, _)| match v {
                    Value::Func(f) => Some(*f),
                    _ => None,
                });
            }
            out.push(Put { into, name, file, value: bind.value, owner: bind.owner, function });
        }
    }
    Puts { into: out.into(), made: made.into(), deps: deps::union(deps.iter()).into() }
}

fn asked<R>(eval: &mut Eval<'_>, deps: &mut Vec<Arc<[Atom]>>, ask: impl FnOnce(&mut Eval<'_>) -> R) -> R {
    eval.traced_in(deps, |e| e.ask(ask)).0
}

/// `T{a: x}`: the fields set by constructions, and the constructed types.
fn constructs(eval: &mut Eval<'_>, file: FileId, out: &mut Vec<Put>, deps: &mut Vec<Arc<[Atom]>>) -> Vec<Gid> {
    let here = eval.file(file);
    let mut made = Vec::new();
    for expr in &here.constructs {
        let Expr::Construct(of, range) = here.facts.expr(*expr) else { continue };
        let types = asked(eval, deps, |e| e.expr(file, of, ROOT, LEVELS));
        for (value, _) in &types.values {
            let Value::Class(class) = value else { continue };
            made.push(*class);
            for (place, item) in here.facts.items(range).iter().enumerate() {
                let name = match item.key {
                    Key::Name(name) => here.sym(name),
                    Key::Next => match eval.field_at(*class, place) {
                        Some(name) => name,
                        None => continue,
                    },
                    _ => continue,
                };
                let into = Value::Instance(*class, true);
                out.push(Put { into, name, file, value: item.value, owner: ROOT, function: None });
            }
        }
    }
    made
}

/// The contributions of a file to the flows, sorted.
fn gives(eval: &Eval<'_>, id: FileId, calls: &IdVec<CallId, Found>, puts: &Puts) -> Vec<Give> {
    let (program, link) = (eval.program, eval.link);
    let file = program.file(id);
    let mut gives = Vec::new();
    for (call, found) in calls.iter_ids() {
        for (value, how) in &*found.targets {
            let (function, receiver) = match value {
                Value::Func(function) => (*function, None),
                Value::Method(function, receiver) => (*function, Some(*receiver)),
                Value::Class(class) => {
                    gives.push(Give::Made(*class));
                    continue;
                }
                _ => continue,
            };
            let def = program.def(function);
            if let Some(receiver) = receiver {
                if def.is(flag::CONSTRUCTOR) {
                    gives.push(Give::Made(receiver));
                }
                let own = link.receiver(function).or_else(|| {
                    let class = program.file(function.file).class_of[function.def]?;
                    Some(Gid { file: function.file, def: class })
                });
                if own != Some(receiver) {
                    gives.push(Give::Receiver(function, receiver));
                }
            }
            if def.params.is_empty() {
                continue;
            }
            let callee = file.facts.expr(file.facts.calls[call].callee);
            let script = file.rules.open_objects;
            let passing = match callee {
                Expr::Member(..) if found.handed => Passing::Held,
                _ if found.handed => Passing::Mapped,
                _ if receiver.is_some() && def.is(flag::TAKES_SELF) => Passing::Bound,
                Expr::Member(_, name) if script && file.sym(name) == link.words.call => Passing::Call,
                Expr::Member(_, name) if script && file.sym(name) == link.words.apply => Passing::Apply,
                _ => Passing::Straight,
            };
            gives.push(Give::Caller(function, Caller { file: id, call, passing, how: *how }));
        }
    }
    for put in &*puts.into {
        gives.push(Give::Write(put.into, put.name, (put.file, put.value, put.owner)));
        if let Some(function) = put.function {
            let owner = match put.into {
                Value::Prototype(of) => Value::Instance(of, true),
                other => other,
            };
            gives.push(Give::Owner(function, owner));
        }
    }
    gives.extend(puts.made.iter().map(|class| Give::Made(*class)));
    gives.sort_unstable();
    gives
}
