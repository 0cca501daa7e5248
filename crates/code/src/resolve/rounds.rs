//! Resolves calls in rounds, and after changes only what the changes can be seen from.
//!
//! The first round knows what stands in the text. Each further one also knows what all files said in the one before:
//! who calls what with what, what is put where. Every answer remembers what it was found with, as far as rounds may find
//! it different, and files that change where that is wanted. So a round asks again only what the news of the round before
//! can alter; and when files change, each round asks again only what differs from the same round before the change.

use super::deps::{self, Atom, Changed};
use super::eval::{Eval, LEVELS, Memo, Question, Traced};
use super::file::File;
use super::flow::{Caller, Flows, Give, Passing};
use super::link::{Differences, Link};
use super::program::Program;
use super::value::{FileId, Gid, How, Value};
use super::{Linked, Links, links};
use crate::facts::{CallId, CallKind, DefId, Expr, Key, ROOT, Target, flag};
use crate::language::Language;
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// What is passed on through more functions than this is not followed.
const ROUNDS: usize = 4;

/// Up to so many changes are looked up one by one in what a whole file was found with.
const FEW_CHANGES: usize = 1_000;

/// One call as a round found it.
#[derive(Clone, PartialEq)]
pub struct Found {
    pub targets: Box<[(Value, How)]>,
    /// It may change when more is known.
    open: bool,
    /// The targets are not called here but handed to something that calls them.
    handed: bool,
    pub class: Class,
    deps: Arc<[Atom]>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Class {
    Resolved,
    Outside,
    Unresolved,
    /// A call the language makes: not counted.
    Silent,
}

/// What a round found in a file.
struct Answers {
    calls: Vec<Found>,
    puts: Puts,
    /// What others may want to know of it, sorted.
    gives: Arc<[Give]>,
    /// What all of them were found with, once somebody asks.
    deps: OnceLock<Box<[Atom]>>,
}

impl Answers {
    fn new(calls: Vec<Found>, puts: Puts, gives: Arc<[Give]>) -> Arc<Answers> {
        Arc::new(Answers { calls, puts, gives, deps: OnceLock::new() })
    }

    /// Whether any of them may have to be found again: of few changes nearly always none, which is told at once.
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
    /// What the round before let all know.
    flows: Flows,
    files: Vec<Option<Arc<Answers>>>,
}

/// Resolves a program again and again as it changes.
#[derive(Default)]
pub struct Resolver {
    /// The program that the links are of.
    of: Resolved,
    links: Vec<Links>,
    /// What is needed to resolve it again in part.
    kept: Option<Kept>,
}

#[derive(Default)]
struct Resolved {
    files: Vec<Option<Arc<File>>>,
    manifests: BTreeMap<String, String>,
}

struct Kept {
    link: Link,
    rounds: Vec<Round>,
    /// What each round but the first was told that the one before it was not, if not more than that.
    news: Vec<Changed>,
    linked: Vec<Linked>,
}

/// Resolves everything once. The result has an entry per file id.
pub fn resolve(program: &mut Program) -> Vec<Links> {
    let mut resolver = Resolver::default();
    resolver.resolve_once(program);
    resolver.links
}

impl Resolver {
    /// As of the last time; an entry per file id.
    pub fn links(&self) -> &[Links] {
        &self.links
    }

    /// Brings the links up to date with the program, and tells the files whose links were found again. Files have other
    /// numbers afterwards when some came or went.
    pub fn resolve(&mut self, program: &mut Program) -> FxHashSet<FileId> {
        let changed = self.of.changed_files(program);
        if changed.as_ref().is_some_and(FxHashSet::is_empty) && self.links.len() == program.slots() {
            return FxHashSet::default();
        }
        let again = self.kept.take().zip(changed).and_then(|(mut kept, files)| {
            let (link, Differences { changed, told }) = Link::again(&mut kept.link, program, &files, &self.of.files)?;
            kept.news.iter_mut().for_each(|news| news.extend(&told));
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

    /// The same when it is not known whether anything will ever change: faster, and nothing but the links is kept, so that
    /// after a change everything is resolved again.
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
                let mut told = Changed::default();
                for id in program.ids() {
                    let old = before.and_then(|r| r.files[id as usize].as_ref());
                    let new = last.files[id as usize].as_ref();
                    if let Some(new) = new
                        && old.is_none_or(|old| !Arc::ptr_eq(old, new))
                    {
                        flows.replace(old.map_or(&[], |a| &a.gives), &new.gives, &link, &mut told);
                    }
                }
                news.push(told);
            }
            let known = |id: FileId| match (rounds.last().and_then(|r| r.files[id as usize].as_ref()), news.last()) {
                (Some(known), Some(told)) => (Some(known), Redo::Seeing { changed: told, last: None }),
                _ => (None, Redo::Open),
            };
            let files = answer_all(program, &link, &flows, &news, &mut parts, known);
            rounds.push(Round { flows, files });
        }
        self.links = vec![Links::default(); program.slots()];
        let mut linked = vec![Linked::default(); program.slots()];
        for (id, (links, how)) in link_all(program, &link, rounds.last(), &news, parts, |_| Some(None)) {
            self.links[id as usize] = links;
            linked[id as usize] = how;
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
        let mut told_before = Changed::default();
        let mut quiet = true;
        let mut found_again: FxHashSet<FileId> = files.clone();
        for number in 0..ROUNDS {
            let mut flows = std::mem::take(&mut kept.rounds[number].flows);
            let mut told = Changed::default();
            if let Some(last) = rounds.last() {
                for id in program.ids() {
                    let old = kept.rounds[number - 1].files[id as usize].as_ref();
                    if let (Some(old), Some(new)) = (old, last.files[id as usize].as_ref())
                        && !Arc::ptr_eq(old, new)
                    {
                        flows.replace(&old.gives, &new.gives, &link, &mut told);
                    }
                }
                // It differs from the round before in what it differed in, and where either is another now.
                kept.news[number - 1].extend(&told_before);
                kept.news[number - 1].extend(&told);
            }
            seen = Changed::default();
            seen.extend(&changed);
            seen.extend(&told);
            told_before = told;
            let (last, old) = (rounds.last(), &kept.rounds[number].files);
            // Nobody was told anything else than before the change, in this round and in the one before.
            let no_news = seen.len() == changed.len();
            let before = number.checked_sub(1).filter(|_| no_news && quiet).map(|at| &kept.rounds[at].files);
            quiet = no_news;
            let told_since = number.checked_sub(1).map(|at| &kept.news[at]);
            let answers = answer_all(program, &link, &flows, &kept.news[..number], &mut parts, |id| {
                if files.contains(&id) {
                    // What it said before was another text.
                    (last.and_then(|r: &Round| r.files[id as usize].as_ref()), Redo::Open)
                } else {
                    let at = id as usize;
                    let old = old[at].as_ref();
                    let same = |a: Option<&Arc<Answers>>| matches!((a, old), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
                    // What held in the round before holds in this one, if it is the same answer.
                    let holds = before.is_some_and(|b| same(b[at].as_ref()))
                        && last.is_some_and(|r| same(r.files[at].as_ref()));
                    let last = last.and_then(|r| r.files[at].as_deref()).zip(told_since);
                    let last = last.map(|(answers, told_since)| Last { answers, told_since });
                    (old, if holds { Redo::Nothing } else { Redo::Seeing { changed: &seen, last } })
                }
            });
            rounds.push(Round { flows, files: answers });
        }
        let before = kept.rounds.last().map(|r| &r.files);
        let after = rounds.last().map(|r| &r.files);
        for id in program.ids() {
            let (old, new) =
                (before.and_then(|f| f[id as usize].as_ref()), after.and_then(|f| f[id as usize].as_ref()));
            let same = matches!((old, new), (Some(old), Some(new)) if Arc::ptr_eq(old, new));
            if !same || changed.has_file(id) || seen.hits(&kept.linked[id as usize].deps) {
                found_again.insert(id);
            }
        }
        let wanted = |id: FileId| {
            // A file that changed has other uses.
            let known = (!files.contains(&id)).then_some((&kept.linked[id as usize], &seen));
            found_again.contains(&id).then_some(known)
        };
        for (id, (links, how)) in link_all(program, &link, rounds.last(), &kept.news, parts, wanted) {
            if self.links[id as usize] == links && !files.contains(&id) {
                found_again.remove(&id);
            }
            self.links[id as usize] = links;
            kept.linked[id as usize] = how;
        }
        (Kept { link, rounds, ..kept }, found_again)
    }
}

impl Resolved {
    fn new(program: &Program) -> Resolved {
        let files = (0..program.slots()).map(|id| program.get(id as FileId).cloned()).collect();
        Resolved { files, manifests: program.manifests.clone() }
    }

    /// The files that say something else now; none when others came or went, or what says how they are found changed.
    fn changed_files(&self, program: &Program) -> Option<FxHashSet<FileId>> {
        if self.manifests != program.manifests || self.files.len() != program.slots() {
            return None;
        }
        let mut changed = FxHashSet::default();
        for (id, old) in self.files.iter().enumerate() {
            match (old, program.get(id as FileId)) {
                (None, None) => {}
                (Some(old), Some(new)) if Arc::ptr_eq(old, new) => {}
                (Some(old), Some(new)) if old.path == new.path => {
                    changed.insert(id as FileId);
                }
                _ => return None,
            }
        }
        Some(changed)
    }
}

/// What of a file's answers is to be found again.
#[derive(Clone, Copy)]
enum Redo<'a> {
    Nothing,
    /// Whatever may differ between rounds; without answers everything.
    Open,
    /// What was found with something that has changed. Where the round before has found it already, with nothing that this
    /// one was told and that one was not, it is taken from there.
    Seeing {
        changed: &'a Changed,
        last: Option<Last<'a>>,
    },
}

/// What the round before found, and what it was not told yet.
#[derive(Clone, Copy)]
struct Last<'a> {
    answers: &'a Answers,
    told_since: &'a Changed,
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
        (!last.told_since.hits(deps)).then(|| found.clone())
    }
}

/// Parts for each core.
const PARTS: usize = 4;

/// Files that share what is found on the way to their answers, in one round and the next.
struct Part {
    ids: Vec<FileId>,
    traced: Traced,
    /// What was found, unless it takes more memory than it saves time: after a change little is asked, and mostly the
    /// same in each round.
    memo: Option<Memo>,
}

/// The files in parts with about as many calls each: large enough that little is found twice, small enough that all
/// cores are busy.
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

/// Finds the answers of all files on all cores, starting from what is known of each.
fn answer_all<'a>(
    program: &Program,
    link: &Link,
    flows: &Flows,
    news: &[Changed],
    parts: &mut [Part],
    known: impl Fn(FileId) -> (Option<&'a Arc<Answers>>, Redo<'a>) + Sync,
) -> Vec<Option<Arc<Answers>>> {
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
    let mut all = vec![None; program.slots()];
    for (id, answers) in found.into_iter().flatten() {
        all[id as usize] = Some(answers);
    }
    all
}

/// Finds the links of the files that are wanted, by the answers of the last round; `wanted` tells how they were found before.
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
                let (known, answers) = (wanted(*id)?, last.files[*id as usize].as_ref()?);
                Some((*id, links(&mut eval, *id, &answers.calls, known)))
            });
            found.collect::<Vec<_>>()
        })
        .collect()
}

fn answer(eval: &mut Eval<'_>, id: FileId, known: Option<&Arc<Answers>>, redo: Redo<'_>) -> Arc<Answers> {
    let Some(known) = known else {
        let calls = eval.program.file(id).facts.calls.len() as CallId;
        let calls: Vec<Found> = (0..calls).map(|call| find(eval, id, call)).collect();
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
    let stale = known.calls.iter().enumerate().filter(|(_, found)| redo.hits(&found.deps, found.open));
    let again: Vec<CallId> = stale.map(|(call, _)| call as CallId).collect();
    let put_again = redo.hits(&known.puts.deps, true);
    if again.is_empty() && !put_again {
        return known.clone();
    }
    // Mostly the same is found again: then it is kept once.
    let again: Vec<(CallId, Found)> = again
        .into_iter()
        .map(|call| {
            let last = redo.found_before(|last| (&last.calls[call as usize], &last.calls[call as usize].deps));
            (call, last.unwrap_or_else(|| find(eval, id, call)))
        })
        .filter(|(call, found)| known.calls[*call as usize] != *found)
        .collect();
    let last_puts = || redo.found_before(|last| (&last.puts, &*last.puts.deps));
    let puts = put_again.then(|| last_puts().unwrap_or_else(|| puts(eval, id))).filter(|puts| known.puts != *puts);
    let same = again.is_empty() && puts.is_none();
    // What is told of a call also depends on what its target is like, be it the same target as before.
    if same && *gives(eval, id, &known.calls, &known.puts) == *known.gives {
        return known.clone();
    }
    let mut calls = known.calls.clone();
    for (call, found) in again {
        calls[call as usize] = found;
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
        let owner = eval.file(file).facts.calls[call as usize].owner;
        eval.keep_reachable(Gid { file, def: owner }, &mut targets);
        let (class, more_open) = classify(eval, file, call, &targets.values, targets.too_many);
        let handed = class == Class::Resolved && is_handed(eval, file, call, &targets.values);
        (targets, open || more_open, class, handed)
    });
    let targets = targets.values.iter().copied().collect();
    Found { targets, open, handed, class, deps }
}

/// Whether the functions found are not what stands before the parentheses.
fn is_handed(eval: &mut Eval<'_>, file: FileId, call: CallId, targets: &[(Value, How)]) -> bool {
    if !targets.iter().any(|(v, how)| matches!(v, Value::Func(_)) && *how >= How::Flow) {
        return false;
    }
    let facts = &eval.file(file).facts;
    let (callee, _) = eval.ask(|e| e.callee(file, &facts.calls[call as usize], LEVELS));
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
    let call = &facts.calls[call as usize];
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
            // Conversions of Go and calls of what came from outside.
            !callee.is_empty() && callee.values.iter().all(|(v, _)| e.is_outside(*v) || matches!(v, Value::Class(_)))
        }
    });
    (if outside { Class::Outside } else { Class::Unresolved }, open)
}

impl Eval<'_> {
    fn is_outside(&mut self, value: Value) -> bool {
        match value {
            // A macro of another package may write anything, calls of this program's methods too.
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
                // Every class has a parent, if only `object`.
                line.external || line.classes.len() == 1
            }
            None => false,
        }
    }
}

/// Something put into an object from outside.
#[derive(Clone, Copy, PartialEq)]
struct Put {
    into: Value,
    name: u32,
    file: FileId,
    value: u32,
    owner: DefId,
    function: Option<Gid>,
}

fn puts(eval: &mut Eval<'_>, file: FileId) -> Puts {
    let here = eval.file(file);
    let mut out = Vec::new();
    let mut deps: Vec<Arc<[Atom]>> = vec![[file].into()];
    let made = constructs(eval, file, &mut out, &mut deps);
    for index in &here.writes {
        let bind = here.facts.binds[*index as usize];
        let (of, name) = match bind.target {
            Target::Member(of, name) | Target::At(of, name) => (of, here.sym(name)),
            Target::Element(of) => (of, eval.link.words.element),
            _ => continue,
        };
        if name == eval.link.words.implements && here.facts.language == Language::Rust {
            continue;
        }
        let base = asked(eval, &mut deps, |e| e.expr(file, of, bind.owner, LEVELS));
        let script = here.facts.language.family() == Language::JavaScript;
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

/// `T{a: x}`: fields that are set as the object is made, and the types made so.
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

/// What a file lets others know, sorted.
fn gives(eval: &Eval<'_>, id: FileId, calls: &[Found], puts: &Puts) -> Vec<Give> {
    let (program, link) = (eval.program, eval.link);
    let file = program.file(id);
    let mut gives = Vec::new();
    for (call, found) in calls.iter().enumerate() {
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
                    let class = program.file(function.file).class_of[function.def as usize]?;
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
            let script = file.facts.language.family() == Language::JavaScript;
            let passing = match callee {
                Expr::Member(..) if found.handed => Passing::Held,
                _ if found.handed => Passing::Mapped,
                _ if receiver.is_some() && def.is(flag::TAKES_SELF) => Passing::Bound,
                Expr::Member(_, name) if script && file.sym(name) == link.words.call => Passing::Call,
                Expr::Member(_, name) if script && file.sym(name) == link.words.apply => Passing::Apply,
                _ => Passing::Straight,
            };
            gives.push(Give::Caller(function, Caller { file: id, call: call as CallId, passing, how: *how }));
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
