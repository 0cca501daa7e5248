//! Links the facts of all files: who imports, calls, extends and uses what, and how sure that is.
//!
//! Calls are resolved in rounds. The first knows only what stands in the text: scopes, imports, declared types,
//! constructors. Each further one also knows what the one before found out: which arguments reach a parameter, which
//! classes a method runs on, what is put into objects. It ends when a round finds nothing new.

mod builtin;
mod call;
mod ecma;
mod eval;
mod file;
mod flow;
mod imports;
mod link;
mod member;
pub mod program;
pub mod value;

use crate::facts::{BaseKind, CallId, CallKind, DefId, Expr, Imported, Kind, ROOT, Target, flag};
use crate::language::Language;
use eval::{Eval, LEVELS, Question};
pub use file::File;
use flow::{Caller, Flows, Passing};
use link::Link;
pub use program::Program;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
pub use value::{FileId, Gid, How, Value};

/// Rounds at most: what is passed on through more functions than this is not followed.
const ROUNDS: usize = 4;

/// What one file's names turned out to mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    pub calls: Vec<CallLink>,
    pub imports: Vec<ImportLink>,
    pub bases: Vec<BaseLink>,
    pub uses: Vec<UseLink>,
    /// Methods written outside their types, with the types.
    pub receivers: Vec<(DefId, Gid)>,
    /// Calls whose target is not known, by the definition they stand in.
    pub unresolved: Vec<(DefId, u32)>,
    pub counts: Counts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls written in the file, those the language makes by itself left out.
    pub calls: u32,
    pub resolved: u32,
    /// Calls of builtins, of containers and texts, of what is outside the program.
    pub outside: u32,
    pub unresolved: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum To {
    Def(Gid),
    /// See `Program::external_path`.
    External(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLink {
    pub call: CallId,
    pub to: To,
    pub how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportLink {
    pub import: u32,
    pub to: To,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseLink {
    pub class: DefId,
    pub to: To,
    pub how: BaseKind,
    pub line: u32,
    /// Found by its methods, not said (Go).
    pub structural: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UseLink {
    pub owner: DefId,
    pub to: Gid,
    pub line: u32,
    pub how: How,
    /// Reading it runs it: a property.
    pub runs: bool,
}

/// One call as found by the last round.
#[derive(Clone, PartialEq)]
struct Found {
    targets: SmallVec<[(Value, How); 1]>,
    /// It may change when more is known.
    open: bool,
    /// The targets are not called here but handed to something that calls them.
    handed: bool,
    class: Class,
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Resolved,
    Outside,
    Unresolved,
    /// A call the language makes: not counted.
    Silent,
}

/// Resolves everything. The result has an entry per file id.
pub fn resolve(program: &mut Program) -> Vec<Links> {
    let link = Link::new(program);
    let program = &*program;
    let ids: Vec<FileId> = program.ids().collect();
    let chunk = ids.len().div_ceil(rayon::current_num_threads() * 4).max(8);
    let mut found: Vec<Vec<Found>> = vec![vec![]; program.slots()];
    let mut flows = Flows::default();
    let mut wanted: FxHashSet<Gid> = FxHashSet::default();
    for round in 0..ROUNDS {
        type Part = (Vec<(FileId, Vec<(CallId, Found)>, (Vec<Put>, Vec<Gid>))>, FxHashSet<Gid>);
        let parts: Vec<Part> = ids
            .par_chunks(chunk)
            .map(|files| {
                let mut eval = Eval::new(program, &link, &flows);
                let files = files.iter().map(|id| {
                    let calls = round_of_calls(&mut eval, *id, &found[*id as usize]);
                    let puts = puts(&mut eval, *id);
                    (*id, calls, puts)
                });
                let files = files.collect();
                (files, eval.wanted)
            })
            .collect();
        let mut changed = false;
        let mut puts = Vec::new();
        let mut made = Vec::new();
        for (files, more) in parts {
            let before = wanted.len();
            wanted.extend(more);
            changed |= wanted.len() != before;
            for (id, calls, put) in files {
                let known = &mut found[id as usize];
                if known.is_empty() && round == 0 {
                    *known = calls.into_iter().map(|(_, found)| found).collect();
                    changed = true;
                } else {
                    for (call, now) in calls {
                        if known[call as usize] != now {
                            changed = true;
                            known[call as usize] = now;
                        }
                    }
                }
                puts.extend(put.0);
                made.extend(put.1);
            }
        }
        if !changed {
            break;
        }
        if round + 1 < ROUNDS {
            flows = next_flows(program, &link, &ids, &found, &wanted, puts);
            flows.made.extend(made);
        }
    }
    let linked: Vec<(FileId, Links)> = ids
        .par_chunks(chunk)
        .flat_map_iter(|files| {
            let mut eval = Eval::new(program, &link, &flows);
            files.iter().map(|id| (*id, links(&mut eval, *id, &found[*id as usize]))).collect::<Vec<_>>()
        })
        .collect();
    let mut all = vec![Links::default(); program.slots()];
    for (id, links) in linked {
        all[id as usize] = links;
    }
    all
}

/// All calls of a file in the first round, those that may have changed in later ones.
fn round_of_calls(eval: &mut Eval<'_>, file: FileId, known: &[Found]) -> Vec<(CallId, Found)> {
    let calls = eval.file(file).facts.calls.len();
    let mut out = Vec::with_capacity(if known.is_empty() { calls } else { 0 });
    for call in 0..calls as CallId {
        if known.get(call as usize).is_some_and(|found| !found.open) {
            continue;
        }
        let (targets, open) = eval.ask(|e| e.solve(Question::CallTargets(file, call), LEVELS));
        let class = classify(eval, file, call, &targets.values, targets.too_many);
        let handed = class == Class::Resolved && is_handed(eval, file, call, &targets.values);
        let targets = targets.values.iter().copied().collect();
        out.push((call, Found { targets, open, handed, class }));
    }
    out
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

fn classify(eval: &mut Eval<'_>, file: FileId, call: CallId, targets: &[(Value, How)], too_many: bool) -> Class {
    let facts = &eval.file(file).facts;
    let call = &facts.calls[call as usize];
    if targets.iter().any(|(v, _)| matches!(v, Value::Func(_) | Value::Method(..) | Value::Class(_))) {
        return Class::Resolved;
    }
    if call.how == CallKind::Implicit {
        return Class::Silent;
    }
    if !targets.is_empty() {
        return Class::Outside;
    }
    if too_many {
        return Class::Unresolved;
    }
    let (outside, _) = eval.ask(|e| match facts.expr(call.callee) {
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
    if outside { Class::Outside } else { Class::Unresolved }
}

impl Eval<'_> {
    fn is_outside(&mut self, value: Value) -> bool {
        match value {
            Value::Text
            | Value::Number
            | Value::Nothing
            | Value::Object(..)
            | Value::Typed(..)
            | Value::External(_)
            | Value::ExternalInstance(_)
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
#[derive(Clone, Copy)]
struct Put {
    into: Value,
    name: u32,
    file: FileId,
    value: u32,
    owner: DefId,
    function: Option<Gid>,
}

fn puts(eval: &mut Eval<'_>, file: FileId) -> (Vec<Put>, Vec<Gid>) {
    let here = eval.file(file);
    let mut out = Vec::new();
    let made = constructs(eval, file, &mut out);
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
        let (base, _) = eval.ask(|e| e.expr(file, of, bind.owner, LEVELS));
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
                let (values, _) = eval.ask(|e| e.expr(file, bind.value, bind.owner, LEVELS));
                function = values.values.iter().find_map(|(v, _)| match v {
                    Value::Func(f) => Some(*f),
                    _ => None,
                });
            }
            out.push(Put { into, name, file, value: bind.value, owner: bind.owner, function });
        }
    }
    (out, made)
}

/// `T{a: x}`: fields that are set as the object is made, and the types made so.
fn constructs(eval: &mut Eval<'_>, file: FileId, out: &mut Vec<Put>) -> Vec<Gid> {
    let here = eval.file(file);
    let mut made = Vec::new();
    for expr in &here.facts.exprs {
        let Expr::Construct(of, range) = *expr else { continue };
        let (types, _) = eval.ask(|e| e.expr(file, of, ROOT, LEVELS));
        for (value, _) in &types.values {
            let Value::Class(class) = value else { continue };
            made.push(*class);
            for (place, item) in here.facts.items(range).iter().enumerate() {
                let name = match item.key {
                    crate::facts::Key::Name(name) => here.sym(name),
                    crate::facts::Key::Next => match eval.field_at(*class, place) {
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

fn next_flows(
    program: &Program,
    link: &Link,
    ids: &[FileId],
    found: &[Vec<Found>],
    wanted: &FxHashSet<Gid>,
    puts: Vec<Put>,
) -> Flows {
    let mut flows = Flows::default();
    for id in ids {
        let file = program.file(*id);
        for (call, found) in found[*id as usize].iter().enumerate() {
            for (value, how) in &found.targets {
                let (function, receiver) = match value {
                    Value::Func(function) => (*function, None),
                    Value::Method(function, receiver) => (*function, Some(*receiver)),
                    Value::Class(class) => {
                        flows.made.insert(*class);
                        continue;
                    }
                    _ => continue,
                };
                let def = program.def(function);
                if let Some(receiver) = receiver {
                    if def.is(flag::CONSTRUCTOR) {
                        flows.made.insert(receiver);
                    }
                    let own = link.receiver(function).or_else(|| {
                        let class = program.file(function.file).class_of[function.def as usize]?;
                        Some(Gid { file: function.file, def: class })
                    });
                    if own != Some(receiver) {
                        let known = flows.receivers.entry(function).or_default();
                        if !known.contains(&receiver) {
                            known.push(receiver);
                        }
                    }
                }
                if wanted.contains(&function) {
                    let bound = receiver.is_some() && def.is(flag::TAKES_SELF);
                    let passing = if found.handed {
                        match file.facts.expr(file.facts.calls[call].callee) {
                            Expr::Member(..) => Passing::Held,
                            _ => Passing::Mapped,
                        }
                    } else if bound {
                        Passing::Bound
                    } else {
                        match file.facts.expr(file.facts.calls[call].callee) {
                            Expr::Member(_, name) if script(file) && file.sym(name) == link.words.call => Passing::Call,
                            Expr::Member(_, name) if script(file) && file.sym(name) == link.words.apply => {
                                Passing::Apply
                            }
                            _ => Passing::Straight,
                        }
                    };
                    let caller = Caller { file: *id, call: call as CallId, passing, how: *how };
                    flows.callers.entry(function).or_default().push(caller);
                }
            }
        }
    }
    for put in puts {
        flows.writes.entry((put.into, put.name)).or_default().push((put.file, put.value, put.owner));
        let names = flows.written_names.entry(put.into).or_default();
        if !names.contains(&put.name) {
            names.push(put.name);
        }
        if let Some(function) = put.function {
            let owner = match put.into {
                Value::Prototype(of) => Value::Instance(of, true),
                other => other,
            };
            let owners = flows.owners.entry(function).or_default();
            if !owners.contains(&owner) {
                owners.push(owner);
            }
        }
    }
    for receivers in flows.receivers.values_mut() {
        receivers.sort_unstable();
    }
    flows
}

fn script(file: &File) -> bool {
    file.facts.language.family() == Language::JavaScript
}

// --- the result ---

fn links(eval: &mut Eval<'_>, id: FileId, found: &[Found]) -> Links {
    let file = eval.file(id);
    let mut links = Links::default();
    let mut unresolved: FxHashMap<DefId, u32> = FxHashMap::default();
    for (index, found) in found.iter().enumerate() {
        let call = &file.facts.calls[index];
        if call.how != CallKind::Implicit {
            links.counts.calls += 1;
        }
        match found.class {
            Class::Resolved => links.counts.resolved += u32::from(call.how != CallKind::Implicit),
            Class::Outside => links.counts.outside += 1,
            Class::Silent => {}
            Class::Unresolved => {
                if let Some(only) = unique_name(eval, id, index as CallId) {
                    links.calls.push(CallLink { call: index as CallId, to: To::Def(only), how: How::UniqueName });
                }
                links.counts.unresolved += 1;
                *unresolved.entry(call.owner).or_default() += 1;
            }
        }
        for (value, how) in &found.targets {
            let to = match value {
                Value::Func(gid) | Value::Method(gid, _) | Value::Class(gid) => To::Def(*gid),
                Value::External(path) => To::External(*path),
                _ => continue,
            };
            links.calls.push(CallLink { call: index as CallId, to, how: *how });
        }
    }
    links.unresolved = unresolved.into_iter().collect();
    links.unresolved.sort_unstable();
    for index in 0..file.facts.imports.len() as u32 {
        if let Some(to) = import_link(eval, id, index) {
            links.imports.push(ImportLink { import: index, to });
        }
    }
    for class in 0..file.facts.defs.len() as DefId {
        let gid = Gid { file: id, def: class };
        if let Some(of) = eval.link.receiver(gid) {
            links.receivers.push((class, of));
        }
        for base in eval.link.bases(gid) {
            let (how, line) = eval.link.base_kinds.get(&(gid, *base)).copied().unwrap_or((BaseKind::Extends, 0));
            links.bases.push(BaseLink { class, to: To::Def(*base), how, line, structural: false });
        }
        for path in eval.link.external_bases(gid) {
            let line = file.facts.def(class).bases.first().map_or(0, |b| b.line);
            let how = BaseKind::Extends;
            links.bases.push(BaseLink { class, to: To::External(*path), how, line, structural: false });
        }
    }
    let mut seen: FxHashSet<(DefId, Gid)> = FxHashSet::default();
    for used in &file.facts.uses {
        let (values, _) = eval.ask(|e| e.used(id, used.expr, used.owner));
        for (to, how, runs) in values {
            if seen.insert((used.owner, to)) || runs {
                links.uses.push(UseLink { owner: used.owner, to, line: used.line, how, runs });
            }
        }
    }
    links
}

/// A call of a method that only one type of the program has, and that no builtin type is likely to have.
fn unique_name(eval: &Eval<'_>, file: FileId, call: CallId) -> Option<Gid> {
    let facts = &eval.file(file).facts;
    let call = &facts.calls[call as usize];
    let Expr::Member(of, name) = facts.expr(call.callee) else { return None };
    if facts.expr(of) == Expr::Super || builtin::is_common_method(facts.name(name)) {
        return None;
    }
    let sym = eval.file(file).sym(name);
    match eval.link.methods_named.get(&(facts.language.family(), sym))?.as_slice() {
        [only] => {
            let def = eval.def(*only);
            let own = usize::from(def.is(flag::TAKES_SELF));
            let args = call.args.len as usize;
            let fits = args <= def.params.len().saturating_sub(own) || def.is(flag::VARIADIC);
            fits.then_some(*only)
        }
        _ => None,
    }
}

fn import_link(eval: &mut Eval<'_>, file: FileId, import: u32) -> Option<To> {
    let (target, _) = eval.ask(|e| e.import_target(file, import, LEVELS));
    let entry = &eval.file(file).facts.imports[import as usize];
    match target? {
        Value::Module(of) => {
            // A package's `__init__` or a folder is asked for a module of it: that module is what is imported.
            if let Imported::Symbol(_) = entry.what {
                let (found, _) = eval.ask(|e| e.imported(file, import, LEVELS));
                for (value, _) in &found.values {
                    if let Value::Module(inner) = value {
                        return Some(To::Def(Gid { file: *inner, def: ROOT }));
                    }
                }
            }
            Some(To::Def(Gid { file: of, def: ROOT }))
        }
        Value::Class(gid) | Value::Namespace(gid) | Value::Func(gid) => {
            Some(To::Def(Gid { file: gid.file, def: ROOT }))
        }
        Value::External(path) => Some(To::External(path)),
        Value::Folder(_) | Value::Package(_) => {
            let (found, _) = eval.ask(|e| e.imported(file, import, LEVELS));
            found.values.iter().find_map(|(value, _)| match value {
                Value::Module(inner) => Some(To::Def(Gid { file: *inner, def: ROOT })),
                Value::Class(gid) | Value::Func(gid) => Some(To::Def(Gid { file: gid.file, def: ROOT })),
                _ => None,
            })
        }
        _ => None,
    }
}

impl Eval<'_> {
    /// The symbol an expression names, without following values: for references.
    fn used(&mut self, file: FileId, expr: u32, owner: DefId) -> SmallVec<[(Gid, How, bool); 1]> {
        let here = self.file(file);
        let mut out = SmallVec::new();
        let (of, var) = match here.facts.expr(expr) {
            Expr::Var(var) => (None, Some(var)),
            Expr::Member(of, name) => (Some((of, here.sym(name))), None),
            Expr::Free(_) => (None, None),
            _ => return out,
        };
        if let Some(var) = var {
            // Locals and parameters are nobody's symbols.
            let found = &here.facts.vars[var as usize];
            if here.facts.def(found.owner).kind.callable()
                && !matches!(found.what, crate::facts::VarKind::Def(_) | crate::facts::VarKind::Import(_))
            {
                return out;
            }
            if let Some(def) = self.symbol_of(file, found.owner, found.name) {
                out.push((def, How::Exact, false));
                return out;
            }
        }
        let values = match of {
            Some((base, name)) => {
                let base = self.expr(file, base, owner, LEVELS);
                for (value, how) in &base.values {
                    match value {
                        Value::Instance(class, _) => {
                            if let Some(method) = self.find_method(*class, name, LEVELS)
                                && self.def(method).is(flag::GETTER)
                            {
                                out.push((method, (*how).max(How::Type), true));
                            }
                        }
                        Value::Module(of) => {
                            if let Some(def) = self.symbol_named(*of, ROOT, name) {
                                out.push((def, How::Import, false));
                            }
                        }
                        Value::Class(class) => {
                            if let Some(def) = self.symbol_named(class.file, class.def, name) {
                                out.push((def, (*how).max(How::Import), false));
                            }
                        }
                        _ => {}
                    }
                }
                if !out.is_empty() {
                    return out;
                }
                let mut set = value::Set::default();
                for (value, how) in &base.values {
                    if !matches!(value, Value::Instance(..) | Value::Object(..)) {
                        set.join(&self.member_of_value(*value, *how, name, LEVELS));
                    }
                }
                set
            }
            None => self.expr(file, expr, owner, LEVELS),
        };
        for (value, how) in &values.values {
            if let Value::Func(gid) | Value::Class(gid) = value
                && self.def(*gid).kind != Kind::Lambda
            {
                out.push((*gid, *how, false));
            }
        }
        if out.len() > 3 {
            out.clear();
        }
        out
    }

    /// The module variable or field a name stands for.
    fn symbol_of(&self, file: FileId, owner: DefId, name: u32) -> Option<Gid> {
        let here = self.file(file);
        self.symbol_named(file, owner, here.sym(name))
    }

    fn symbol_named(&self, file: FileId, owner: DefId, name: u32) -> Option<Gid> {
        let here = self.file(file);
        here.children.of(owner).iter().find_map(|child| {
            let def = here.facts.def(*child);
            (here.sym(def.name) == name && matches!(def.kind, Kind::Variable | Kind::Field))
                .then_some(Gid { file, def: *child })
        })
    }
}
