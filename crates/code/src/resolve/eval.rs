//! Evaluates expressions over the whole program: the functions, classes and objects that each may hold.
//!
//! An answer is computed on demand and memoized. Every step through a variable, a result, a field or a parameter uses
//! one of a fixed number of levels, so cycles end. The answer is what can be reached within that many steps, so it does
//! not depend on the order of questions. More levels only add values.

use super::deps::{ChangedDependencies, DependencyId, DependencyTrail, TableEntry};
use super::file::{ProgramFile, constructor_function};
use super::flow::Flows;
use super::link::{LanguageSymbols, ProgramTables};
use super::member::{OverridingMethods, ResolutionOrder};
use super::program::Program;
use super::value::{DefRef, Derivation, FileId, InternedStr, PossibleValue, ValueSet};
use crate::facts::{
    ArgKind, CallId, DefId, DefKind, ExprId, ImportId, ImportKind, IndexRange, Literal, ROOT, SourceExpr, UNKNOWN,
    VarId, VarKind, flag,
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
pub(crate) enum EvalQuestion {
    Var(FileId, VarId),
    /// The result of a call of a function.
    Result(DefRef),
    /// Like `Result`, if it is known whether the call passes the parameter that the result depends on. If the last
    /// field is true, without parameters that are returned unchanged.
    ResultWhen(DefRef, Option<bool>, bool),
    /// A field of an instance of a class.
    Field(DefRef, InternedStr),
    /// A field written into a function, an object or a prototype by code outside of it.
    Write(PossibleValue, InternedStr),
    CallValue(FileId, CallId),
    CallTargets(FileId, CallId),
    ModuleMember(FileId, InternedStr),
    Free(FileId, DefId, InternedStr),
    /// The module that an import's path leads to, where paths walk from module to module.
    Path(FileId, ImportId),
    /// The items of a list, map or object literal; with a name, only those that can be under it.
    Held(FileId, ExprId, Option<InternedStr>),
    /// What callers pass by name, at a position, or from a position on, to a function with variadic parameters.
    /// Memoized, because such functions pass it to one another, and each would repeat the work for all of its callers.
    Keyword(DefRef, InternedStr),
    Passed(DefRef, u32),
    Rest(DefRef, u32),
}

/// Memoized answers. They can be kept between rounds: an answer stays valid if none of its dependencies changed, which
/// is checked when it is requested.
#[derive(Default)]
pub(crate) struct Memo {
    known: FxHashMap<EvalQuestion, Answer>,
    /// Incomplete answers, by the number of levels after which they were cut off.
    partly: FxHashMap<(EvalQuestion, u8), Answer>,
    pub(super) lines: FxHashMap<DefRef, Arc<ResolutionOrder>>,
    pub(super) overriding: FxHashMap<(DefRef, InternedStr), OverridingMethods>,
    trail: RefCell<DependencyTrail>,
}

struct Answer {
    set: Arc<ValueSet>,
    /// Levels needed for the complete answer.
    height: u8,
    flows: bool,
    /// The last round in which the answer was computed or found valid.
    round: u8,
    deps: Arc<[DependencyId]>,
}

impl Answer {
    /// Whether none of its dependencies changed in later rounds.
    fn holds(&mut self, news: &[ChangedDependencies]) -> bool {
        let holds = !news[usize::from(self.round)..].iter().any(|news| news.hits(&self.deps));
        if holds {
            self.round = round(news);
        }
        holds
    }
}

/// The number of the round that follows these.
fn round(news: &[ChangedDependencies]) -> u8 {
    u8::try_from(news.len()).expect("there are few rounds")
}

/// Which dependencies of answers are recorded.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum RecordedDependencies {
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
    pub link: &'p ProgramTables,
    pub flows: &'p Flows,
    /// For each earlier round, a superset of what the next one learned in addition.
    news: &'p [ChangedDependencies],
    traced: RecordedDependencies,
    pub(super) memo: Memo,
    frame: Frame,
    nothing: Arc<ValueSet>,
    /// Whether instances of classes derived from one are made.
    pub(super) made_below: FxHashMap<DefRef, bool>,
    /// The file recorded last, to skip repetitions.
    noted: Cell<FileId>,
}

impl<'p> Eval<'p> {
    /// An evaluation without memoized answers.
    pub fn new(program: &'p Program, link: &'p ProgramTables, flows: &'p Flows) -> Eval<'p> {
        Eval::from(program, link, flows, &[], RecordedDependencies::Rounds, Memo::default())
    }

    /// Continues with the memoized answers of earlier rounds.
    pub fn from(
        program: &'p Program,
        link: &'p ProgramTables,
        flows: &'p Flows,
        news: &'p [ChangedDependencies],
        traced: RecordedDependencies,
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
            nothing: Arc::new(ValueSet::default()),
            made_below: FxHashMap::default(),
            noted: Cell::new(FileId::MAX),
        }
    }

    /// A file of the program. The answer being computed depends on it.
    pub fn file(&self, file: FileId) -> &'p ProgramFile {
        if self.is_traced() && self.noted.replace(file) != file {
            self.memo.trail.borrow_mut().push(file.into());
        }
        self.program.file(file)
    }

    /// Whether dependencies on files are recorded, so that answers can be checked after files change.
    pub fn is_traced(&self) -> bool {
        self.traced == RecordedDependencies::Everything
    }

    /// Records that the answer being computed depends on an entry.
    pub(crate) fn note(&self, entry: TableEntry) {
        if self.is_traced() || entry.differs_between_rounds() {
            self.memo.trail.borrow_mut().push(entry.id());
        }
    }

    /// Runs a question at the outermost level; also returns whether the answer used values that flow across calls.
    pub fn ask<R>(&mut self, ask: impl FnOnce(&mut Self) -> R) -> (R, bool) {
        self.frame = Frame::default();
        let answer = ask(self);
        (answer, self.frame.flows)
    }

    /// Runs a question and returns its dependencies.
    pub fn traced<R>(&mut self, run: impl FnOnce(&mut Self) -> R) -> (R, Arc<[DependencyId]>) {
        self.memo.trail.get_mut().clear();
        self.noted.set(FileId::MAX);
        let answer = run(self);
        let deps = self.memo.trail.get_mut().end(0);
        (answer, deps)
    }

    /// Like `traced`, but adds the dependencies to a list.
    pub fn traced_in<R>(&mut self, with: &mut Vec<Arc<[DependencyId]>>, run: impl FnOnce(&mut Self) -> R) -> R {
        let (answer, deps) = self.traced(run);
        if with.last().is_none_or(|last| !Arc::ptr_eq(last, &deps)) {
            with.push(deps);
        }
        answer
    }

    /// The empty set, shared.
    pub(crate) fn nothing(&self) -> Arc<ValueSet> {
        self.nothing.clone()
    }

    /// Records that the answer being computed uses values that flow across calls.
    pub(crate) fn touch_flows(&mut self) {
        self.frame.flows = true;
    }

    /// Answers a question within a number of levels, from memory if the known answer is still valid.
    pub(crate) fn solve(&mut self, question: EvalQuestion, levels: u8) -> Arc<ValueSet> {
        // Calls are part of the expression that contains them and use no level.
        let step = !matches!(question, EvalQuestion::CallValue(..) | EvalQuestion::CallTargets(..));
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
        let answer = Answer { set: set.clone(), height, flows: inner.flows, round: round(self.news), deps };
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
    pub(crate) fn deeper(&mut self, levels: u8, run: impl FnOnce(&mut Self, u8) -> ValueSet) -> ValueSet {
        if levels == 0 {
            self.frame.cut = true;
            return ValueSet::default();
        }
        let height = std::mem::take(&mut self.frame.height);
        let set = run(self, levels - 1);
        self.frame.height = height.max(self.frame.height + 1);
        set
    }

    fn compute(&mut self, question: EvalQuestion, levels: u8) -> ValueSet {
        match question {
            EvalQuestion::Var(file, var) => self.variable(file, var, levels),
            EvalQuestion::Result(def) => self.result(def, None, false, levels),
            EvalQuestion::ResultWhen(def, given, apart) => self.result(def, given, apart, levels),
            EvalQuestion::Field(class, name) => self.field(class, name, levels),
            EvalQuestion::Write(of, name) => self.written(of, name, levels),
            EvalQuestion::CallValue(file, call) => self.call_value(file, call, levels),
            EvalQuestion::CallTargets(file, call) => self.call_targets(file, call, levels),
            EvalQuestion::ModuleMember(file, name) => self.module_member(file, name, levels),
            EvalQuestion::Free(file, owner, name) => self.free(file, owner, name, levels),
            EvalQuestion::Path(file, import) => {
                self.file(file).facts.language.get().walk_path(self, file, import, levels)
            }
            EvalQuestion::Held(file, expr, name) => self.items_at(file, expr, name, levels),
            EvalQuestion::Keyword(function, name) => self.keyword(function, name, levels),
            EvalQuestion::Passed(function, place) => self.passed_by_all(function, place as usize, levels),
            EvalQuestion::Rest(function, place) => self.rest_elements(function, place as usize, levels),
        }
    }

    // --- expressions ---

    /// The values that an expression of a definition may hold.
    pub fn expr(&mut self, file: FileId, expr: ExprId, owner: DefId, levels: u8) -> ValueSet {
        if expr == UNKNOWN {
            return ValueSet::default();
        }
        let here = self.file(file);
        match here.facts.expr(expr) {
            SourceExpr::Unknown => ValueSet::default(),
            SourceExpr::Literal(Literal::String(_) | Literal::Template) => {
                ValueSet::one(PossibleValue::Text, Derivation::Exact)
            }
            SourceExpr::Literal(Literal::Number | Literal::Bool | Literal::Regex) => {
                ValueSet::one(PossibleValue::Number, Derivation::Exact)
            }
            SourceExpr::Literal(Literal::Nothing) => ValueSet::one(PossibleValue::Nothing, Derivation::Exact),
            SourceExpr::Var(var) => {
                let found = (*self.solve(EvalQuestion::Var(file, var), levels)).clone();
                self.read(file, found, here.facts.vars[var].name)
            }
            SourceExpr::Free(name) => {
                let found = self.called(file, expr, owner, levels);
                self.read(file, found, name)
            }
            SourceExpr::This => self.this(file, owner, levels),
            SourceExpr::ThisType => match self.enclosing_type(file, owner, levels) {
                Some(class) => ValueSet::one(PossibleValue::Class(class), Derivation::Exact),
                None => ValueSet::default(),
            },
            SourceExpr::Super => ValueSet::default(),
            SourceExpr::Member(_, name) => {
                let found = self.called(file, expr, owner, levels);
                self.read(file, found, name)
            }
            SourceExpr::At(of, name) => {
                let base = self.expr(file, of, owner, levels);
                self.at(&base, here.sym(name), levels)
            }
            SourceExpr::AtIndex(of, index) => {
                let base = self.expr(file, of, owner, levels);
                self.at_index(&base, index, levels)
            }
            SourceExpr::Element(of) => {
                let base = self.expr(file, of, owner, levels);
                self.element(&base, levels)
            }
            SourceExpr::KeysOf(_) => ValueSet::one(PossibleValue::Text, Derivation::Exact),
            SourceExpr::Awaited(of) => {
                let base = self.expr(file, of, owner, levels);
                self.awaited(&base, levels)
            }
            SourceExpr::Call(call) => (*self.solve(EvalQuestion::CallValue(file, call), levels)).clone(),
            SourceExpr::Def(def) => ValueSet::one(self.def_value(DefRef { file, def }), Derivation::Exact),
            SourceExpr::Collection(..) | SourceExpr::ListOf(_) | SourceExpr::Joined(_) => {
                ValueSet::one(PossibleValue::Object(file, expr), Derivation::Exact)
            }
            SourceExpr::Construct(of, _) | SourceExpr::InstanceOf(of) => {
                let ty = self.expr(file, of, owner, levels);
                let exact = matches!(here.facts.expr(expr), SourceExpr::Construct(..));
                self.instances(&ty, exact, levels)
            }
            SourceExpr::Either(range) => {
                let mut set = ValueSet::default();
                for item in here.facts.items(range) {
                    set.join(&self.expr(file, item.value, owner, levels));
                }
                set
            }
            SourceExpr::Generic(of, range) => self.generic(file, expr, of, range, owner, levels),
            SourceExpr::FunctionType(_) => ValueSet::one(PossibleValue::FunctionOf(file, expr), Derivation::Type),
            SourceExpr::Import(import) => match self.import_target(file, import, levels) {
                Some(module) => self.module_value(module, levels),
                None => ValueSet::default(),
            },
            SourceExpr::Bound(of) => self.called(file, of, owner, levels),
        }
    }

    /// A generic type of the program evaluates to that type; any other keeps its arguments.
    fn generic(
        &mut self,
        file: FileId,
        expr: ExprId,
        of: ExprId,
        range: IndexRange,
        owner: DefId,
        levels: u8,
    ) -> ValueSet {
        let base = self.expr(file, of, owner, levels);
        if base.values.iter().any(|(v, _)| matches!(v, PossibleValue::Class(_))) {
            let given_on =
                base.values.iter().any(|(v, _)| matches!(v, PossibleValue::Class(c) if self.is_open_alias(*c, levels)));
            return if given_on { ValueSet::one(PossibleValue::Typed(file, expr), Derivation::Type) } else { base };
        }
        if matches!(self.file(file).facts.expr(of), SourceExpr::FunctionType(_)) {
            return ValueSet::one(PossibleValue::FunctionOf(file, expr), Derivation::Type);
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
            let mut set = ValueSet::default();
            for item in self.file(file).facts.items(range) {
                set.join(&self.expr(file, item.value, owner, levels));
            }
            return set;
        }
        ValueSet::one(PossibleValue::Typed(file, expr), Derivation::Type)
    }

    /// Converts types into instances of them.
    pub fn instances(&mut self, types: &ValueSet, exact: bool, levels: u8) -> ValueSet {
        let mut set = ValueSet { too_many: types.too_many, ..ValueSet::default() };
        for (value, how) in &types.values {
            let how = (*how).max(Derivation::Type);
            match value {
                PossibleValue::Class(class) => {
                    let def = self.def(*class);
                    match (def.kind, def.result) {
                        (DefKind::Type, Some(alias)) => {
                            // A distinct named type may have methods (Go).
                            if self.link.has_methods(*class) {
                                set.add(PossibleValue::Instance(*class, true), how);
                            }
                            let of = self.deeper(levels, |e, levels| {
                                let of = e.expr(class.file, alias, class.def, levels);
                                e.instances(&of, exact, levels)
                            });
                            set.join_as(&of, how);
                        }
                        _ => set.add(PossibleValue::Instance(*class, exact || self.never_derived(*class)), how),
                    }
                }
                PossibleValue::External(name) if self.program.external_is_any_type(*name) => {}
                PossibleValue::External(name) => set.add(PossibleValue::ExternalInstance(*name), how),
                PossibleValue::Typed(of, expr) if self.is_type_of(*of, *expr) => {
                    set.join_as(&self.classes_of(*of, *expr, levels), how);
                }
                PossibleValue::Typed(..)
                | PossibleValue::FunctionOf(..)
                | PossibleValue::Text
                | PossibleValue::Number => set.add(*value, how),
                PossibleValue::Builtin(name) => match self.program.text(*name) {
                    "str" | "string" | "String" | "bytes" | "&str" => set.add(PossibleValue::Text, how),
                    "int" | "float" | "bool" | "number" | "boolean" => set.add(PossibleValue::Number, how),
                    _ => {}
                },
                _ => {}
            }
        }
        set
    }

    fn never_derived(&self, class: DefRef) -> bool {
        let file = self.file(class.file);
        file.rules.only_interfaces_inherit && file.facts.def(class.def).kind != DefKind::Interface
    }

    /// Whether a type is an alias of a generic type outside the program, of which only the arguments are known.
    fn is_open_alias(&mut self, class: DefRef, levels: u8) -> bool {
        self.file(class.file).facts.language.get().is_open_alias(self, class, levels)
    }

    /// The words with a meaning in the language of a class.
    pub(crate) fn words_of(&self, class: DefRef) -> &'p LanguageSymbols {
        self.link.words.of(self.file(class.file).facts.language)
    }

    /// A definition of the program.
    pub fn def(&self, gid: DefRef) -> &'p crate::facts::Def {
        self.file(gid.file).facts.def(gid.def)
    }

    /// A definition as a value.
    pub fn def_value(&self, gid: DefRef) -> PossibleValue {
        match self.def(gid).kind {
            DefKind::File => PossibleValue::Module(gid.file),
            DefKind::Module => PossibleValue::Namespace(gid),
            kind if kind.type_like() => PossibleValue::Class(gid),
            _ => PossibleValue::Func(gid),
        }
    }

    // --- variables ---

    fn variable(&mut self, file: FileId, var: VarId, levels: u8) -> ValueSet {
        let here = self.file(file);
        let found = &here.facts.vars[var];
        let mut set = ValueSet::default();
        if let Some(ty) = found.ty {
            let types = self.expr(file, ty, found.owner, levels);
            set.join_as(&self.instances(&types, false, levels), Derivation::Type);
        }
        let typed = set.clone();
        if self.only_made(file, var) {
            set = ValueSet::default();
        }
        match found.what {
            VarKind::Def(def) => {
                let gid = DefRef { file, def };
                match self.def(gid).kind {
                    DefKind::Field | DefKind::Variable => {}
                    _ => set.add(self.def_value(gid), Derivation::Exact),
                }
            }
            VarKind::Import(import) => {
                let imported = self.imported(file, import, levels);
                set.join_as(&imported, Derivation::Import);
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
        let mut named = set.values.iter().any(|(v, _)| matches!(v, PossibleValue::Func(_)));
        for value in here.binds(var) {
            let method = groups && matches!(here.facts.expr(value), SourceExpr::Def(_));
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
    fn is_derived(&self, class: DefRef) -> bool {
        self.note(TableEntry::Derived(class));
        self.link.derived(class)
    }

    /// Whether instances of exactly this class are made.
    pub(crate) fn is_made(&self, class: DefRef) -> bool {
        self.note(TableEntry::Made(class));
        self.flows.is_made(class)
    }

    /// Whether the declared type alone does not determine the class.
    fn open_type(&self, set: &ValueSet) -> bool {
        set.values.iter().any(|(value, _)| match value {
            PossibleValue::Instance(class, exact) => !exact && self.is_derived(*class),
            PossibleValue::FunctionOf(..) | PossibleValue::Typed(..) => true,
            _ => false,
        })
    }

    /// The values that an import binds.
    pub fn imported(&mut self, file: FileId, import: ImportId, levels: u8) -> ValueSet {
        let here = self.file(file);
        let entry = &here.facts.imports[import];
        let Some(module) = self.import_target(file, import, levels) else { return ValueSet::default() };
        match entry.what {
            ImportKind::Module => self.module_value(module, levels),
            ImportKind::Root => {
                // `import a.b.c` binds `a`.
                match self.link.places().of(here.facts.language).root(self.program, file, entry) {
                    Some(root) => ValueSet::one(root, Derivation::Import),
                    None => ValueSet::one(module, Derivation::Import),
                }
            }
            ImportKind::Symbol(name) => {
                let name = here.sym(name);
                let found = self.member_of_value(module, Derivation::Import, name, levels);
                if found.is_empty() && here.rules.modules == Modules::Exports {
                    // `import x from "cjs"`: the default export of a CommonJS module is what it exports.
                    if self.program.text(name) == "default" {
                        return self.module_value(module, levels);
                    }
                }
                found
            }
            ImportKind::All | ImportKind::Nothing => ValueSet::default(),
        }
    }

    /// The module an import names.
    pub fn import_target(&mut self, file: FileId, import: ImportId, levels: u8) -> Option<PossibleValue> {
        let here = self.file(file);
        if here.rules.modules != Modules::Tree {
            return self.link.import(file, import);
        }
        let found = self.solve(EvalQuestion::Path(file, import), levels);
        found.values.first().map(|(value, _)| *value)
    }

    /// The value of a module: a CommonJS module evaluates to what it assigns to `module.exports`.
    pub fn module_value(&mut self, module: PossibleValue, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        if let PossibleValue::Module(file) = module {
            let exports = self.file(file).exports.get(&self.link.words.whole).cloned().unwrap_or_default();
            for value in exports {
                let found = self.deeper(levels, |e, levels| e.expr(file, value, ROOT, levels));
                set.join_as(&found, Derivation::Import);
            }
        }
        set.add(module, Derivation::Import);
        set
    }

    /// Adds the possible values of a parameter: its receiver, what callers pass.
    fn parameter(&mut self, file: FileId, var: VarId, set: &mut ValueSet, levels: u8) {
        let here = self.file(file);
        let Some((function, place)) = here.param(var) else { return };
        let gid = DefRef { file, def: function };
        let def = self.def(gid);
        let what = here.facts.vars[var].what;
        match what {
            VarKind::Rest(place) => {
                self.touch_flows();
                set.add(PossibleValue::Rest(gid, place), Derivation::Type);
                return;
            }
            VarKind::Keywords => {
                self.touch_flows();
                set.add(PossibleValue::Keywords(gid), Derivation::Type);
                return;
            }
            _ => {}
        }
        if place == 0 && def.is(flag::TAKES_SELF) && def.kind == DefKind::Method {
            if def.is(flag::CLASS_METHOD) {
                if let Some(class) = self.enclosing_type(file, function, levels) {
                    set.add(PossibleValue::Class(class), Derivation::Exact);
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
    pub fn this(&mut self, file: FileId, owner: DefId, levels: u8) -> ValueSet {
        let here = self.file(file);
        // Arrow functions and class bodies use the `this` of the enclosing scope.
        let mut at = owner;
        while at != ROOT {
            let def = here.facts.def(at);
            if def.kind.callable() && !def.is(flag::ARROW) {
                break;
            }
            if def.kind.type_like() {
                return ValueSet::one(PossibleValue::Instance(DefRef { file, def: at }, false), Derivation::Exact);
            }
            at = def.parent;
        }
        if at == ROOT {
            return ValueSet::default();
        }
        let gid = DefRef { file, def: at };
        let def = here.facts.def(at);
        if let Some(object) = def.receiver
            && here.rules.open_objects
        {
            return self.expr(file, object, def.parent, levels);
        }
        if here.class_of[at].is_some() {
            if def.is(flag::STATIC) {
                return match here.class_of[at] {
                    Some(class) => ValueSet::one(PossibleValue::Class(DefRef { file, def: class }), Derivation::Exact),
                    None => ValueSet::default(),
                };
            }
            return self.receiver_of(gid, levels);
        }
        if constructor_function(&here.facts, at) == Some(at) {
            let mut set = ValueSet::one(PossibleValue::Instance(gid, true), Derivation::Exact);
            // A function that is assigned into a prototype or an object has that object as `this`.
            self.touch_flows();
            self.note(TableEntry::Owners(gid));
            for owner in self.flows.owners(gid).take(super::value::MOST) {
                set.add(owner, Derivation::Flow);
            }
            return set;
        }
        ValueSet::default()
    }

    /// The receiver of a method: its class, or the classes it is called on if they are known.
    fn receiver_of(&mut self, method: DefRef, levels: u8) -> ValueSet {
        let Some(class) = self.enclosing_type(method.file, method.def, levels) else { return ValueSet::default() };
        let mut set = ValueSet::default();
        if !self.is_derived(class) {
            set.add(PossibleValue::Instance(class, true), Derivation::Exact);
            return set;
        }
        self.touch_flows();
        self.note(TableEntry::Receivers(method));
        let receivers = self.flows.receivers(method);
        if receivers.clone().count() <= MOST_RECEIVERS {
            // That a test calls it on a class of its own says nothing of other callers.
            for receiver in receivers.filter(|receiver| self.can_depend(method, *receiver)) {
                set.add(PossibleValue::Instance(receiver, true), Derivation::Exact);
            }
            if !set.is_empty() && !self.is_made(class) && !self.runs_on_others(method, class, &set) {
                return set;
            }
        }
        set.add(PossibleValue::Instance(class, false), Derivation::Exact);
        set
    }

    /// The type that a definition belongs to: the enclosing class, or the type of its receiver.
    pub fn enclosing_type(&mut self, file: FileId, owner: DefId, levels: u8) -> Option<DefRef> {
        let here = self.file(file);
        let mut at = owner;
        while at != ROOT {
            let def = here.facts.def(at);
            if def.kind.type_like() && def.kind != DefKind::Type {
                return Some(DefRef { file, def: at });
            }
            if def.kind == DefKind::Method
                && let Some(receiver) = def.receiver
            {
                return self.link.receiver(DefRef { file, def: at }).or_else(|| {
                    let found = self.expr(file, receiver, def.parent, levels);
                    found.values.iter().find_map(|(v, _)| match v {
                        PossibleValue::Class(class) => Some(*class),
                        _ => None,
                    })
                });
            }
            at = def.parent;
        }
        None
    }

    // --- results ---

    fn result(&mut self, gid: DefRef, given: Option<bool>, apart: bool, levels: u8) -> ValueSet {
        let here = self.file(gid.file);
        let def = here.facts.def(gid.def);
        let mut set = ValueSet::default();
        if def.is(flag::GENERATOR) {
            set.add(PossibleValue::Generator(gid), Derivation::Exact);
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
            true => here.returned_parameters(gid.def).map(|(returned, ..)| returned.value).collect(),
            false => vec![],
        };
        let mut found = ValueSet::default();
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
        let known = found.values.iter().any(|(v, _)| !matches!(v, PossibleValue::Nothing));
        if known { found } else { set_or(set, found) }
    }

    /// The values that a generator yields.
    pub fn yields(&mut self, gid: DefRef, levels: u8) -> ValueSet {
        self.deeper(levels, |e, levels| {
            let mut set = ValueSet::default();
            for returned in e.file(gid.file).returns(gid.def).filter(|returned| returned.yields) {
                set.join(&e.expr(gid.file, returned.value, gid.def, levels));
            }
            set
        })
    }

    /// The values passed as this argument.
    pub fn argument(
        &mut self,
        file: FileId,
        call: CallId,
        place: usize,
        name: Option<InternedStr>,
        levels: u8,
    ) -> ValueSet {
        let here = self.file(file);
        let call = &here.facts.calls[call];
        let mut set = ValueSet::default();
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
                            self.at_index(&base, u32::try_from(place - at).unwrap_or(u32::MAX), levels)
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
pub(crate) fn is_place(value: PossibleValue) -> bool {
    matches!(
        value,
        PossibleValue::Module(_)
            | PossibleValue::Namespace(_)
            | PossibleValue::Class(_)
            | PossibleValue::External(_)
            | PossibleValue::Folder(_)
            | PossibleValue::Package(_)
    )
}

/// A method called on more classes than this is evaluated with its own class as receiver.
const MOST_RECEIVERS: usize = 8;

fn set_or(declared: ValueSet, found: ValueSet) -> ValueSet {
    if declared.is_empty() { found } else { declared }
}
