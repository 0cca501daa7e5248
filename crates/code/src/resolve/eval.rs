//! Evaluates expressions over the whole program: the functions, classes and objects that each may hold.
//!
//! An answer is computed on demand and memoized. Every step through a variable, a result, a field or a parameter uses
//! one of a fixed number of levels, so cycles end. The answer is what can be reached within that many steps, so it does
//! not depend on the order of questions. More levels only add values.

use super::deps::{Atom, Changed, Entry, Trail};
use super::file::{File, constructor_function};
use super::flow::Flows;
use super::link::{LanguageWords, Link};
use super::member::{Line, Overriding};
use super::program::Program;
use super::value::{FileId, Gid, How, Set, Sym, Value};
use crate::facts::{
    ArgKind, CallId, DefId, Expr, ExprId, ImportId, Imported, Kind, Literal, ROOT, Range, UNKNOWN, VarId, VarKind, flag,
};
use crate::languages::rules::Modules;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Most steps that are followed. Real chains are shorter, and each step costs time.
pub const LEVELS: u8 = 12;

/// The key of a memoized answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Question {
    Var(FileId, VarId),
    /// The result of a call of a function.
    Result(Gid),
    /// Like `Result`, if it is known whether the call passes the parameter that the result depends on. If the last
    /// field is true, without parameters that are returned unchanged.
    ResultWhen(Gid, Option<bool>, bool),
    /// A field of an instance of a class.
    Field(Gid, Sym),
    /// A field written into a function, an object or a prototype by code outside of it.
    Write(Value, Sym),
    CallValue(FileId, CallId),
    CallTargets(FileId, CallId),
    ModuleMember(FileId, Sym),
    Free(FileId, DefId, Sym),
    /// The module that an import's path leads to, where paths walk from module to module.
    Path(FileId, ImportId),
    /// The items of a list, map or object literal; with a name, only those that can be under it.
    Held(FileId, ExprId, Option<Sym>),
    /// What callers pass by name, at a position, or from a position on, to a function with variadic parameters.
    /// Memoized, because such functions pass it to one another, and each would repeat the work for all of its callers.
    Keyword(Gid, Sym),
    Passed(Gid, u32),
    Rest(Gid, u32),
}

/// Memoized answers. They can be kept between rounds: an answer stays valid if none of its dependencies changed, which
/// is checked when it is requested.
#[derive(Default)]
pub(crate) struct Memo {
    known: FxHashMap<Question, Answer>,
    /// Incomplete answers, by the number of levels after which they were cut off.
    partly: FxHashMap<(Question, u8), Answer>,
    pub(super) lines: FxHashMap<Gid, Arc<Line>>,
    pub(super) overriding: FxHashMap<(Gid, Sym), Overriding>,
    trail: RefCell<Trail>,
}

struct Answer {
    set: Arc<Set>,
    /// Levels needed for the complete answer.
    height: u8,
    flows: bool,
    /// The last round in which the answer was computed or found valid.
    round: u8,
    deps: Arc<[Atom]>,
}

impl Answer {
    /// Whether none of its dependencies changed in later rounds.
    fn holds(&mut self, news: &[Changed]) -> bool {
        let holds = !news[usize::from(self.round)..].iter().any(|news| news.hits(&self.deps));
        if holds {
            self.round = news.len() as u8;
        }
        holds
    }
}

/// Which dependencies of answers are recorded.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Traced {
    /// Only those that may differ between rounds.
    Rounds,
    /// Also those that differ after files change.
    Everything,
}

#[derive(Default)]
struct Frame {
    height: u8,
    /// Levels ran out in a nested question.
    cut: bool,
    /// The answer used values that flow across calls.
    flows: bool,
}

/// Evaluates expressions of one program in one round, with the answers memoized so far.
pub(crate) struct Eval<'p> {
    pub program: &'p Program,
    pub link: &'p Link,
    pub flows: &'p Flows,
    /// For each earlier round, a superset of what the next one learned in addition.
    news: &'p [Changed],
    traced: Traced,
    pub(super) memo: Memo,
    frame: Frame,
    nothing: Arc<Set>,
    /// Whether instances of classes derived from one are made.
    pub(super) made_below: FxHashMap<Gid, bool>,
    /// The file recorded last, to skip repetitions.
    noted: Cell<FileId>,
}

impl<'p> Eval<'p> {
    /// An evaluation without memoized answers.
    pub fn new(program: &'p Program, link: &'p Link, flows: &'p Flows) -> Eval<'p> {
        Eval::from(program, link, flows, &[], Traced::Rounds, Memo::default())
    }

    /// Continues with the memoized answers of earlier rounds.
    pub fn from(
        program: &'p Program,
        link: &'p Link,
        flows: &'p Flows,
        news: &'p [Changed],
        traced: Traced,
        memo: Memo,
    ) -> Eval<'p> {
        Eval {
            program,
            link,
            flows,
            news,
            traced,
            memo,
            frame: Frame::default(),
            nothing: Arc::new(Set::default()),
            made_below: FxHashMap::default(),
            noted: Cell::new(FileId::MAX),
        }
    }

    /// A file of the program. The answer being computed depends on it.
    pub fn file(&self, file: FileId) -> &'p File {
        if self.is_traced() && self.noted.replace(file) != file {
            self.memo.trail.borrow_mut().push(file.into());
        }
        self.program.file(file)
    }

    /// Whether dependencies on files are recorded, so that answers can be checked after files change.
    pub fn is_traced(&self) -> bool {
        self.traced == Traced::Everything
    }

    /// Records that the answer being computed depends on an entry.
    pub(crate) fn note(&self, entry: Entry) {
        if self.is_traced() || entry.is_told() {
            self.memo.trail.borrow_mut().push(entry.atom());
        }
    }

    /// Runs a question at the outermost level; also returns whether the answer used values that flow across calls.
    pub fn ask<R>(&mut self, ask: impl FnOnce(&mut Self) -> R) -> (R, bool) {
        self.frame = Frame::default();
        let answer = ask(self);
        (answer, self.frame.flows)
    }

    /// Runs a question and returns its dependencies.
    pub fn traced<R>(&mut self, run: impl FnOnce(&mut Self) -> R) -> (R, Arc<[Atom]>) {
        self.memo.trail.get_mut().clear();
        self.noted.set(FileId::MAX);
        let answer = run(self);
        let deps = self.memo.trail.get_mut().end(0);
        (answer, deps)
    }

    /// Like `traced`, but adds the dependencies to a list.
    pub fn traced_in<R>(&mut self, with: &mut Vec<Arc<[Atom]>>, run: impl FnOnce(&mut Self) -> R) -> R {
        let (answer, deps) = self.traced(run);
        if with.last().is_none_or(|last| !Arc::ptr_eq(last, &deps)) {
            with.push(deps);
        }
        answer
    }

    /// The empty set, shared.
    pub(crate) fn nothing(&self) -> Arc<Set> {
        self.nothing.clone()
    }

    /// Records that the answer being computed uses values that flow across calls.
    pub(crate) fn touch_flows(&mut self) {
        self.frame.flows = true;
    }

    /// Answers a question within a number of levels, from memory if the known answer is still valid.
    pub(crate) fn solve(&mut self, question: Question, levels: u8) -> Arc<Set> {
        // Calls are part of the expression that contains them and use no level.
        let step = !matches!(question, Question::CallValue(..) | Question::CallTargets(..));
        if levels == 0 {
            self.frame.cut = true;
            return self.nothing.clone();
        }
        if let Some(known) = self.memo.known.get_mut(&question)
            && levels >= known.height
        {
            if known.holds(self.news) {
                self.frame.height = self.frame.height.max(known.height);
                self.frame.flows |= known.flows;
                self.memo.trail.get_mut().extend(&known.deps);
                return known.set.clone();
            }
            self.memo.known.remove(&question);
        }
        if let Some(known) = self.memo.partly.get_mut(&(question, levels))
            && known.holds(self.news)
        {
            self.frame.cut = true;
            self.frame.flows |= known.flows;
            self.memo.trail.get_mut().extend(&known.deps);
            return known.set.clone();
        }
        let outer = std::mem::take(&mut self.frame);
        let begun = self.memo.trail.get_mut().begin();
        self.noted.set(FileId::MAX);
        let left = if step { levels - 1 } else { levels };
        let set = stacker::maybe_grow(96 * 1024, 4 * 1024 * 1024, || self.compute(question, left));
        let set = if set.is_empty() && !set.too_many { self.nothing.clone() } else { Arc::new(set) };
        let inner = std::mem::replace(&mut self.frame, outer);
        let deps = self.memo.trail.get_mut().end(begun);
        self.noted.set(FileId::MAX);
        self.frame.flows |= inner.flows;
        let height = (inner.height + u8::from(step)).max(1);
        let answer = Answer { set: set.clone(), height, flows: inner.flows, round: self.news.len() as u8, deps };
        if inner.cut {
            self.frame.cut = true;
            self.memo.partly.insert((question, levels), answer);
        } else {
            self.frame.height = self.frame.height.max(height);
            self.memo.known.insert(question, answer);
        }
        set
    }

    /// Runs with one level less and accounts for it. Everything that uses levels outside of `solve` must go through
    /// here, or answers would depend on the order of questions.
    pub(crate) fn deeper(&mut self, levels: u8, run: impl FnOnce(&mut Self, u8) -> Set) -> Set {
        if levels == 0 {
            self.frame.cut = true;
            return Set::default();
        }
        let height = std::mem::take(&mut self.frame.height);
        let set = run(self, levels - 1);
        self.frame.height = height.max(self.frame.height + 1);
        set
    }

    fn compute(&mut self, question: Question, levels: u8) -> Set {
        match question {
            Question::Var(file, var) => self.variable(file, var, levels),
            Question::Result(def) => self.result(def, None, false, levels),
            Question::ResultWhen(def, given, apart) => self.result(def, given, apart, levels),
            Question::Field(class, name) => self.field(class, name, levels),
            Question::Write(of, name) => self.written(of, name, levels),
            Question::CallValue(file, call) => self.call_value(file, call, levels),
            Question::CallTargets(file, call) => self.call_targets(file, call, levels),
            Question::ModuleMember(file, name) => self.module_member(file, name, levels),
            Question::Free(file, owner, name) => self.free(file, owner, name, levels),
            Question::Path(file, import) => self.file(file).facts.language.get().walk_path(self, file, import, levels),
            Question::Held(file, expr, name) => self.items_at(file, expr, name, levels),
            Question::Keyword(function, name) => self.keyword(function, name, levels),
            Question::Passed(function, place) => self.passed_by_all(function, place as usize, levels),
            Question::Rest(function, place) => self.rest_elements(function, place as usize, levels),
        }
    }

    // --- expressions ---

    /// The values that an expression of a definition may hold.
    pub fn expr(&mut self, file: FileId, expr: ExprId, owner: DefId, levels: u8) -> Set {
        if expr == UNKNOWN {
            return Set::default();
        }
        let here = self.file(file);
        match here.facts.expr(expr) {
            Expr::Unknown => Set::default(),
            Expr::Literal(Literal::String(_) | Literal::Template) => Set::one(Value::Text, How::Exact),
            Expr::Literal(Literal::Number | Literal::Bool | Literal::Regex) => Set::one(Value::Number, How::Exact),
            Expr::Literal(Literal::Nothing) => Set::one(Value::Nothing, How::Exact),
            Expr::Var(var) => {
                let found = (*self.solve(Question::Var(file, var), levels)).clone();
                self.read(file, found, here.facts.vars[var].name)
            }
            Expr::Free(name) => {
                let found = self.called(file, expr, owner, levels);
                self.read(file, found, name)
            }
            Expr::This => self.this(file, owner, levels),
            Expr::ThisType => match self.enclosing_type(file, owner, levels) {
                Some(class) => Set::one(Value::Class(class), How::Exact),
                None => Set::default(),
            },
            Expr::Super => Set::default(),
            Expr::Member(_, name) => {
                let found = self.called(file, expr, owner, levels);
                self.read(file, found, name)
            }
            Expr::At(of, name) => {
                let base = self.expr(file, of, owner, levels);
                self.at(&base, here.sym(name), levels)
            }
            Expr::AtIndex(of, index) => {
                let base = self.expr(file, of, owner, levels);
                self.at_index(&base, index, levels)
            }
            Expr::Element(of) => {
                let base = self.expr(file, of, owner, levels);
                self.element(&base, levels)
            }
            Expr::KeysOf(_) => Set::one(Value::Text, How::Exact),
            Expr::Awaited(of) => {
                let base = self.expr(file, of, owner, levels);
                self.awaited(&base, levels)
            }
            Expr::Call(call) => (*self.solve(Question::CallValue(file, call), levels)).clone(),
            Expr::Def(def) => Set::one(self.def_value(Gid { file, def }), How::Exact),
            Expr::Collection(..) | Expr::ListOf(_) | Expr::Joined(_) => Set::one(Value::Object(file, expr), How::Exact),
            Expr::Construct(of, _) | Expr::InstanceOf(of) => {
                let ty = self.expr(file, of, owner, levels);
                let exact = matches!(here.facts.expr(expr), Expr::Construct(..));
                self.instances(&ty, exact, levels)
            }
            Expr::Either(range) => {
                let mut set = Set::default();
                for item in here.facts.items(range) {
                    set.join(&self.expr(file, item.value, owner, levels));
                }
                set
            }
            Expr::Generic(of, range) => self.generic(file, expr, of, range, owner, levels),
            Expr::FunctionType(_) => Set::one(Value::FunctionOf(file, expr), How::Type),
            Expr::Import(import) => match self.import_target(file, import, levels) {
                Some(module) => self.module_value(module, levels),
                None => Set::default(),
            },
            Expr::Bound(of) => self.called(file, of, owner, levels),
        }
    }

    /// A generic type of the program evaluates to that type; any other keeps its arguments.
    fn generic(&mut self, file: FileId, expr: ExprId, of: ExprId, range: Range, owner: DefId, levels: u8) -> Set {
        let base = self.expr(file, of, owner, levels);
        if base.values.iter().any(|(v, _)| matches!(v, Value::Class(_))) {
            let given_on =
                base.values.iter().any(|(v, _)| matches!(v, Value::Class(c) if self.is_open_alias(*c, levels)));
            return if given_on { Set::one(Value::Typed(file, expr), How::Type) } else { base };
        }
        if matches!(self.file(file).facts.expr(of), Expr::FunctionType(_)) {
            return Set::one(Value::FunctionOf(file, expr), How::Type);
        }
        let name = self.type_args(file, expr).0;
        // Transparent wrappers: they evaluate to their content.
        let wraps = matches!(
            name,
            "Optional"
                | "Union"
                | "Annotated"
                | "Final"
                | "ClassVar"
                | "Required"
                | "NotRequired"
                | "Readonly"
                | "Partial"
                | "Box"
                | "Rc"
                | "Arc"
                | "Cow"
                | "Pin"
                | "Type"
                | "type"
                | "Self"
        );
        if wraps && !self.is_type_of(file, expr) {
            let mut set = Set::default();
            for item in self.file(file).facts.items(range) {
                set.join(&self.expr(file, item.value, owner, levels));
            }
            return set;
        }
        Set::one(Value::Typed(file, expr), How::Type)
    }

    /// Converts types into instances of them.
    pub fn instances(&mut self, types: &Set, exact: bool, levels: u8) -> Set {
        let mut set = Set { too_many: types.too_many, ..Set::default() };
        for (value, how) in &types.values {
            let how = (*how).max(How::Type);
            match value {
                Value::Class(class) => {
                    let def = self.def(*class);
                    match (def.kind, def.result) {
                        (Kind::Type, Some(alias)) => {
                            // A distinct named type may have methods (Go).
                            if self.link.has_methods(*class) {
                                set.add(Value::Instance(*class, true), how);
                            }
                            let of = self.deeper(levels, |e, levels| {
                                let of = e.expr(class.file, alias, class.def, levels);
                                e.instances(&of, exact, levels)
                            });
                            set.join_as(&of, how);
                        }
                        _ => set.add(Value::Instance(*class, exact || self.never_derived(*class)), how),
                    }
                }
                Value::External(name) if self.program.external_is_any_type(*name) => {}
                Value::External(name) => set.add(Value::ExternalInstance(*name), how),
                Value::Typed(of, expr) if self.is_type_of(*of, *expr) => {
                    set.join_as(&self.classes_of(*of, *expr, levels), how);
                }
                Value::Typed(..) | Value::FunctionOf(..) | Value::Text | Value::Number => set.add(*value, how),
                Value::Builtin(name) => match self.program.text(*name) {
                    "str" | "string" | "String" | "bytes" | "&str" => set.add(Value::Text, how),
                    "int" | "float" | "bool" | "number" | "boolean" => set.add(Value::Number, how),
                    _ => {}
                },
                _ => {}
            }
        }
        set
    }

    fn never_derived(&self, class: Gid) -> bool {
        let file = self.file(class.file);
        file.rules.only_interfaces_inherit && file.facts.def(class.def).kind != Kind::Interface
    }

    /// Whether a type is an alias of a generic type outside the program, of which only the arguments are known.
    fn is_open_alias(&mut self, class: Gid, levels: u8) -> bool {
        self.file(class.file).facts.language.get().is_open_alias(self, class, levels)
    }

    /// The words with a meaning in the language of a class.
    pub(crate) fn words_of(&self, class: Gid) -> &'p LanguageWords {
        self.link.words.of(self.file(class.file).facts.language)
    }

    /// A definition of the program.
    pub fn def(&self, gid: Gid) -> &'p crate::facts::Def {
        self.file(gid.file).facts.def(gid.def)
    }

    /// A definition as a value.
    pub fn def_value(&self, gid: Gid) -> Value {
        match self.def(gid).kind {
            Kind::File => Value::Module(gid.file),
            Kind::Module => Value::Namespace(gid),
            kind if kind.type_like() => Value::Class(gid),
            _ => Value::Func(gid),
        }
    }

    // --- variables ---

    fn variable(&mut self, file: FileId, var: VarId, levels: u8) -> Set {
        let here = self.file(file);
        let found = &here.facts.vars[var];
        let mut set = Set::default();
        if let Some(ty) = found.ty {
            let types = self.expr(file, ty, found.owner, levels);
            set.join_as(&self.instances(&types, false, levels), How::Type);
        }
        let typed = set.clone();
        if self.only_made(file, var) {
            set = Set::default();
        }
        match found.what {
            VarKind::Def(def) => {
                let gid = Gid { file, def };
                match self.def(gid).kind {
                    Kind::Field | Kind::Variable => {}
                    _ => set.add(self.def_value(gid), How::Exact),
                }
            }
            VarKind::Import(import) => {
                let imported = self.imported(file, import, levels);
                set.join_as(&imported, How::Import);
            }
            VarKind::Param(_) | VarKind::Rest(_) | VarKind::Keywords => {
                self.parameter(file, var, &mut set, levels);
            }
            VarKind::Local | VarKind::TypeParam => {}
        }
        let declared = found.ty.is_some() && !set.is_empty() && !self.open_type(&set);
        // The first of several methods of one name represents all of them, see `overload`. A field may have the same
        // name.
        let groups = here.rules.overloads();
        let mut named = set.values.iter().any(|(v, _)| matches!(v, Value::Func(_)));
        for value in here.binds(var) {
            let method = groups && matches!(here.facts.expr(value), Expr::Def(_));
            if (method && named) || (!method && declared) {
                continue;
            }
            named |= method;
            set.join(&self.expr(file, value, found.owner, levels));
        }
        // If too many values are assigned to it, use the declared type.
        if (set.too_many || set.is_empty()) && !typed.is_empty() { typed } else { self.allowed(&typed, set) }
    }

    /// Whether classes derive from this one.
    fn is_derived(&self, class: Gid) -> bool {
        self.note(Entry::Derived(class));
        self.link.derived(class)
    }

    /// Whether instances of exactly this class are made.
    pub(crate) fn is_made(&self, class: Gid) -> bool {
        self.note(Entry::Made(class));
        self.flows.is_made(class)
    }

    /// Whether the declared type alone does not determine the class.
    fn open_type(&self, set: &Set) -> bool {
        set.values.iter().any(|(value, _)| match value {
            Value::Instance(class, exact) => !exact && self.is_derived(*class),
            Value::FunctionOf(..) | Value::Typed(..) => true,
            _ => false,
        })
    }

    /// The values that an import binds.
    pub fn imported(&mut self, file: FileId, import: ImportId, levels: u8) -> Set {
        let here = self.file(file);
        let entry = &here.facts.imports[import];
        let Some(module) = self.import_target(file, import, levels) else { return Set::default() };
        match entry.what {
            Imported::Module => self.module_value(module, levels),
            Imported::Root => {
                // `import a.b.c` binds `a`.
                match self.link.places().of(here.facts.language).root(self.program, file, entry) {
                    Some(root) => Set::one(root, How::Import),
                    None => Set::one(module, How::Import),
                }
            }
            Imported::Symbol(name) => {
                let name = here.sym(name);
                let found = self.member_of_value(module, How::Import, name, levels);
                if found.is_empty() && here.rules.modules == Modules::Exports {
                    // `import x from "cjs"`: the default export of a CommonJS module is what it exports.
                    if self.program.text(name) == "default" {
                        return self.module_value(module, levels);
                    }
                }
                found
            }
            Imported::All | Imported::Nothing => Set::default(),
        }
    }

    /// The module an import names.
    pub fn import_target(&mut self, file: FileId, import: ImportId, levels: u8) -> Option<Value> {
        let here = self.file(file);
        if here.rules.modules != Modules::Tree {
            return self.link.import(file, import);
        }
        let found = self.solve(Question::Path(file, import), levels);
        found.values.first().map(|(value, _)| *value)
    }

    /// The value of a module: a CommonJS module evaluates to what it assigns to `module.exports`.
    pub fn module_value(&mut self, module: Value, levels: u8) -> Set {
        let mut set = Set::default();
        if let Value::Module(file) = module {
            let exports = self.file(file).exports.get(&self.link.words.whole).cloned().unwrap_or_default();
            for value in exports {
                let found = self.deeper(levels, |e, levels| e.expr(file, value, ROOT, levels));
                set.join_as(&found, How::Import);
            }
        }
        set.add(module, How::Import);
        set
    }

    /// Adds the possible values of a parameter: its receiver, what callers pass.
    fn parameter(&mut self, file: FileId, var: VarId, set: &mut Set, levels: u8) {
        let here = self.file(file);
        let Some((function, place)) = here.param(var) else { return };
        let gid = Gid { file, def: function };
        let def = self.def(gid);
        let what = here.facts.vars[var].what;
        match what {
            VarKind::Rest(place) => {
                self.touch_flows();
                set.add(Value::Rest(gid, place), How::Type);
                return;
            }
            VarKind::Keywords => {
                self.touch_flows();
                set.add(Value::Keywords(gid), How::Type);
                return;
            }
            _ => {}
        }
        if place == 0 && def.is(flag::TAKES_SELF) && def.kind == Kind::Method {
            if def.is(flag::CLASS_METHOD) {
                if let Some(class) = self.enclosing_type(file, function, levels) {
                    set.add(Value::Class(class), How::Exact);
                }
            } else {
                let own = self.receiver_of(gid, levels);
                set.join(&own);
            }
            return;
        }
        if set.is_empty() {
            set.join(&self.expected(gid, place, levels));
        }
        if set.is_empty() || self.open_type(set) {
            self.flowing(gid, place, set, levels);
        }
    }

    /// The values of `this` in a definition.
    pub fn this(&mut self, file: FileId, owner: DefId, levels: u8) -> Set {
        let here = self.file(file);
        // Arrow functions and class bodies use the `this` of the enclosing scope.
        let mut at = owner;
        while at != ROOT {
            let def = here.facts.def(at);
            if def.kind.callable() && !def.is(flag::ARROW) {
                break;
            }
            if def.kind.type_like() {
                return Set::one(Value::Instance(Gid { file, def: at }, false), How::Exact);
            }
            at = def.parent;
        }
        if at == ROOT {
            return Set::default();
        }
        let gid = Gid { file, def: at };
        let def = here.facts.def(at);
        if let Some(object) = def.receiver
            && here.rules.open_objects
        {
            return self.expr(file, object, def.parent, levels);
        }
        if here.class_of[at].is_some() {
            if def.is(flag::STATIC) {
                return match here.class_of[at] {
                    Some(class) => Set::one(Value::Class(Gid { file, def: class }), How::Exact),
                    None => Set::default(),
                };
            }
            return self.receiver_of(gid, levels);
        }
        if constructor_function(&here.facts, at) == Some(at) {
            let mut set = Set::one(Value::Instance(gid, true), How::Exact);
            // A function that is assigned into a prototype or an object has that object as `this`.
            self.touch_flows();
            self.note(Entry::Owners(gid));
            for owner in self.flows.owners(gid).take(super::value::MOST) {
                set.add(owner, How::Flow);
            }
            return set;
        }
        Set::default()
    }

    /// The receiver of a method: its class, or the classes it is called on if they are known.
    fn receiver_of(&mut self, method: Gid, levels: u8) -> Set {
        let Some(class) = self.enclosing_type(method.file, method.def, levels) else { return Set::default() };
        let mut set = Set::default();
        if !self.is_derived(class) {
            set.add(Value::Instance(class, true), How::Exact);
            return set;
        }
        self.touch_flows();
        self.note(Entry::Receivers(method));
        let receivers = self.flows.receivers(method);
        if receivers.clone().count() <= MOST_RECEIVERS {
            for receiver in receivers {
                set.add(Value::Instance(receiver, true), How::Exact);
            }
            if !set.is_empty() && !self.is_made(class) && !self.runs_on_others(method, class, &set) {
                return set;
            }
        }
        set.add(Value::Instance(class, false), How::Exact);
        set
    }

    /// The type that a definition belongs to: the enclosing class, or the type of its receiver.
    pub fn enclosing_type(&mut self, file: FileId, owner: DefId, levels: u8) -> Option<Gid> {
        let here = self.file(file);
        let mut at = owner;
        while at != ROOT {
            let def = here.facts.def(at);
            if def.kind.type_like() && def.kind != Kind::Type {
                return Some(Gid { file, def: at });
            }
            if def.kind == Kind::Method
                && let Some(receiver) = def.receiver
            {
                return self.link.receiver(Gid { file, def: at }).or_else(|| {
                    let found = self.expr(file, receiver, def.parent, levels);
                    found.values.iter().find_map(|(v, _)| match v {
                        Value::Class(class) => Some(*class),
                        _ => None,
                    })
                });
            }
            at = def.parent;
        }
        None
    }

    // --- results ---

    fn result(&mut self, gid: Gid, given: Option<bool>, apart: bool, levels: u8) -> Set {
        let here = self.file(gid.file);
        let def = here.facts.def(gid.def);
        let mut set = Set::default();
        if def.is(flag::GENERATOR) {
            set.add(Value::Generator(gid), How::Exact);
            return set;
        }
        if let Some(ty) = def.result {
            let types = self.expr(gid.file, ty, gid.def, levels);
            set = self.instances(&types, false, levels);
            if !set.is_empty() && !self.open_type(&set) {
                return set;
            }
        }
        let handed_back: Vec<ExprId> = match apart {
            true => here.handed_back(gid.def).map(|(returned, ..)| returned.value).collect(),
            false => vec![],
        };
        let mut found = Set::default();
        for returned in here.returns(gid.def).filter(|returned| !returned.yields) {
            if here.reaches(gid.def, returned, given) && !handed_back.contains(&returned.value) {
                found.join(&self.expr(gid.file, returned.value, gid.def, levels));
            }
        }
        if found.is_empty() || found.too_many {
            return if found.too_many && !set.is_empty() { set } else { set_or(set, found) };
        }
        // The returned values are more precise than the declared type, which is used only if nothing is returned that
        // is known.
        let found = self.allowed(&set, found);
        let known = found.values.iter().any(|(v, _)| !matches!(v, Value::Nothing));
        if known { found } else { set_or(set, found) }
    }

    /// The values that a generator yields.
    pub fn yields(&mut self, gid: Gid, levels: u8) -> Set {
        self.deeper(levels, |e, levels| {
            let mut set = Set::default();
            for returned in e.file(gid.file).returns(gid.def).filter(|returned| returned.yields) {
                set.join(&e.expr(gid.file, returned.value, gid.def, levels));
            }
            set
        })
    }

    /// The values passed as this argument.
    pub fn argument(&mut self, file: FileId, call: CallId, place: usize, name: Option<Sym>, levels: u8) -> Set {
        let here = self.file(file);
        let call = &here.facts.calls[call];
        let mut set = Set::default();
        let mut at = 0usize;
        let mut spread = false;
        for arg in here.facts.args(call.args) {
            match arg.how {
                ArgKind::Place => {
                    // After a spread the position is unknown.
                    if (at == place && !spread) || (spread && place >= at) {
                        set.join(&self.expr(file, arg.value, call.owner, levels));
                    }
                    at += 1;
                }
                ArgKind::Named(given) => {
                    if Some(here.sym(given)) == name {
                        set.join(&self.expr(file, arg.value, call.owner, levels));
                    }
                }
                ArgKind::Spread => {
                    if place >= at {
                        let base = self.expr(file, arg.value, call.owner, levels);
                        let found = if spread {
                            self.element(&base, levels)
                        } else {
                            self.at_index(&base, (place - at) as u32, levels)
                        };
                        set.join(&found);
                    }
                    spread = true;
                }
                ArgKind::Keywords => {
                    if let Some(name) = name {
                        let base = self.expr(file, arg.value, call.owner, levels);
                        set.join(&self.at(&base, name, levels));
                    }
                }
            }
        }
        set
    }
}

/// Whether a path can continue from this value.
pub(crate) fn is_place(value: Value) -> bool {
    matches!(
        value,
        Value::Module(_)
            | Value::Namespace(_)
            | Value::Class(_)
            | Value::External(_)
            | Value::Folder(_)
            | Value::Package(_)
    )
}

/// A method called on more classes than this is evaluated with its own class as receiver.
const MOST_RECEIVERS: usize = 8;

fn set_or(declared: Set, found: Set) -> Set {
    if declared.is_empty() { found } else { declared }
}
