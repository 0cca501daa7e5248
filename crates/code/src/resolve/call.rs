//! Resolves calls: their targets and their results.

pub(super) mod overload;

use super::builtin;
use super::eval::{Eval, EvalQuestion};
use super::value::{DefRef, Derivation, FileId, InternedStr, PossibleValue, ValueSet};
use crate::facts::{
    Arg, ArgKind, CallId, CallKind, CallSite, DefId, DefKind, ExprId, Literal, NameId, SourceExpr, VarKind, flag,
};
use crate::languages::rules::{BuiltinCall, Constructs, DerivedMethod, Overloading};
use smallvec::SmallVec;

#[cfg(test)]
pub(crate) mod tests;

impl<'p> Eval<'p> {
    /// The values of the called expression.
    pub(super) fn callee(&mut self, file: FileId, call: &CallSite, levels: u8) -> ValueSet {
        let here = self.file(file);
        match here.facts.expr(call.callee) {
            SourceExpr::Super => {
                let Some(class) = self.enclosing_type(file, call.owner, levels) else { return ValueSet::default() };
                let line = self.resolution_order(class);
                match line.classes.get(1) {
                    Some(parent) => ValueSet::one(PossibleValue::Class(*parent), Derivation::Type),
                    None => ValueSet::default(),
                }
            }
            SourceExpr::This => match self.enclosing_type(file, call.owner, levels) {
                Some(class) => ValueSet::one(PossibleValue::Class(class), Derivation::Exact),
                None => ValueSet::default(),
            },
            SourceExpr::Member(..) if here.rules.calls_methods_only => {
                let mut found = self.called(file, call.callee, call.owner, levels);
                // `x.name()` calls the method, never a field of the same name.
                if found.values.iter().any(|(v, _)| matches!(v, PossibleValue::Method(..))) {
                    found.values.retain(|(v, _)| !matches!(v, PossibleValue::Instance(..)));
                }
                found
            }
            _ => self.called(file, call.callee, call.owner, levels),
        }
    }

    /// The values of an expression in the position of a callee.
    pub(super) fn called(&mut self, file: FileId, expr: ExprId, owner: DefId, levels: u8) -> ValueSet {
        let here = self.file(file);
        match here.facts.expr(expr) {
            SourceExpr::Free(name) => (*self.solve(EvalQuestion::Free(file, owner, here.sym(name)), levels)).clone(),
            SourceExpr::Member(of, name) => self.member_of(file, of, here.sym(name), owner, levels),
            _ => self.expr(file, expr, owner, levels),
        }
    }

    /// The values of a name that is read, not called: in some languages the field, never a method of the same name.
    pub(super) fn read(&self, file: FileId, mut found: ValueSet, name: NameId) -> ValueSet {
        let here = self.file(file);
        if here.rules.reads_fields_only {
            let name = here.sym(name);
            let method = |gid: DefRef| {
                self.def(gid).kind == DefKind::Method && self.file(gid.file).sym(self.def(gid).name) == name
            };
            found
                .values
                .retain(|(v, _)| !matches!(v, PossibleValue::Func(m) | PossibleValue::Method(m, _) if method(*m)));
        }
        found
    }

    /// The functions that a call runs; a class without a constructor is its own target.
    pub(super) fn call_targets(&mut self, file: FileId, id: CallId, levels: u8) -> ValueSet {
        let call = &self.file(file).facts.calls[id];
        let callee = self.callee(file, call, levels);
        let mut targets = ValueSet { too_many: callee.too_many, ..ValueSet::default() };
        let returns_function = self.returns_function(file, call, &callee);
        for (value, how) in &callee.values {
            match value {
                PossibleValue::Instance(..) if returns_function && *how >= Derivation::Type => {}
                PossibleValue::Func(_)
                | PossibleValue::Method(..)
                | PossibleValue::External(_)
                | PossibleValue::Builtin(_) => targets.add(*value, *how),
                // The flow of values mixes in the classes that other calls of the decorator returned; those are not
                // decorators.
                PossibleValue::Class(_) if call.how == CallKind::Decorator && *how >= Derivation::Flow => {}
                PossibleValue::Class(class) => self.constructor(*class, *how, &mut targets, levels),
                PossibleValue::Instance(class, exact) => {
                    let Some(call) = self.words_of(*class).call_method else { continue };
                    let found = self.member_of_value(PossibleValue::Instance(*class, *exact), *how, call, levels);
                    for (value, how) in &found.values {
                        if matches!(value, PossibleValue::Func(_) | PossibleValue::Method(..)) {
                            targets.add(*value, *how);
                        }
                    }
                }
                _ => {}
            }
        }
        self.prefer_written_out(&mut targets);
        self.choose_overload(file, call, &mut targets, levels);
        if !targets
            .values
            .iter()
            .any(|(v, _)| matches!(v, PossibleValue::Func(_) | PossibleValue::Method(..) | PossibleValue::Class(_)))
        {
            for function in self.passed_to_builtin(file, call, &targets, levels) {
                targets.add(PossibleValue::Func(function.0), function.1.max(Derivation::Flow));
            }
        }
        targets
    }

    /// Whether the callee is a call that returns a function. Functions that work as decorators with and without
    /// arguments declare `Command | Callable[..., Command]`; then the returned function is called, not
    /// `Command.__call__`.
    fn returns_function(&self, file: FileId, call: &CallSite, callee: &ValueSet) -> bool {
        matches!(self.file(file).facts.expr(call.callee), SourceExpr::Call(_))
            && callee
                .values
                .iter()
                .any(|(value, how)| matches!(value, PossibleValue::Func(_)) && *how < Derivation::Type)
    }

    fn constructor(&mut self, class: DefRef, how: Derivation, targets: &mut ValueSet, levels: u8) {
        let def = self.def(class);
        let rules = self.file(class.file).rules;
        let constructs = match rules.constructs {
            Constructs::Types => def.kind != DefKind::Type,
            Constructs::TypesAndAliases => true,
            Constructs::Nothing => false,
        };
        if !constructs {
            return;
        }
        let line = self.resolution_order(class);
        // An anonymous class has no constructor: that of its base runs.
        let nameless =
            rules.anonymous_types_inherit_constructors && self.file(class.file).facts.name(def.name).starts_with('<');
        let name_of_all = self.words_of(class).constructor;
        for of in &line.classes[usize::from(nameless)..] {
            let name = name_of_all.unwrap_or_else(|| {
                let here = self.file(of.file);
                here.sym(here.facts.def(of.def).name)
            });
            let found = self.declared_in(*of, name, levels);
            let mut any = false;
            for (value, known) in &found.values {
                if let PossibleValue::Func(method) = value
                    && self.def(*method).kind == DefKind::Method
                {
                    any = true;
                    targets.add(PossibleValue::Method(*method, class), how.max(*known));
                }
            }
            if any || !rules.inherits_constructors {
                if !any || nameless {
                    break;
                }
                return;
            }
        }
        targets.add(PossibleValue::Class(class), how);
    }

    /// Drops overload declarations: only the function of that name with a body runs.
    fn prefer_written_out(&self, targets: &mut ValueSet) {
        let function = |value: &PossibleValue| match value {
            PossibleValue::Func(gid) | PossibleValue::Method(gid, _) => Some(*gid),
            _ => None,
        };
        let same = |a: DefRef, b: DefRef| {
            let (one, other) = (self.def(a), self.def(b));
            a.file == b.file && one.parent == other.parent && one.name == other.name
        };
        let written: Vec<DefRef> = targets
            .values
            .iter()
            .filter_map(|(value, _)| function(value))
            .filter(|gid| !self.def(*gid).is(flag::DECLARED))
            .collect();
        targets.values.retain(|(value, _)| match function(value) {
            Some(gid) => !self.def(gid).is(flag::DECLARED) || !written.iter().any(|other| same(gid, *other)),
            None => true,
        });
    }

    /// The arguments of this call that the function returns unchanged. `None` if it returns none unchanged, or if the
    /// mapping of arguments to parameters is unknown.
    fn returned_arguments(
        &mut self,
        file: FileId,
        id: CallId,
        function: &PossibleValue,
        given: Option<bool>,
        levels: u8,
    ) -> Option<ValueSet> {
        let (PossibleValue::Func(gid) | PossibleValue::Method(gid, _)) = function else { return None };
        let there = self.file(gid.file);
        let mut handed_back = there.returned_parameters(gid.def).peekable();
        handed_back.peek()?;
        // A declared result type is enough, unless it is less precise than the argument.
        if there.facts.def(gid.def).result.is_some() && !there.rules.vague_results {
            return None;
        }
        let here = self.file(file);
        let call = &here.facts.calls[id];
        let args = here.facts.args(call.args);
        if args.iter().any(|arg| matches!(arg.how, ArgKind::Spread | ArgKind::Keywords)) {
            return None;
        }
        let bound = matches!(function, PossibleValue::Method(..)) && there.facts.def(gid.def).is(flag::TAKES_SELF);
        let mut set = ValueSet::default();
        for (_, place, var) in handed_back.filter(|(returned, ..)| there.reaches(gid.def, returned, given)) {
            let name = there.sym(there.facts.vars[var].name);
            // The receiver of a method is not among the arguments.
            let place = place.checked_sub(usize::from(bound))?;
            let by_place = args.iter().filter(|arg| arg.how == ArgKind::Place).nth(place).is_some();
            let by_name = args.iter().any(|arg| matches!(arg.how, ArgKind::Named(given) if here.sym(given) == name));
            if by_place || by_name {
                set.join(&self.argument(file, id, place, Some(name), levels));
            } else {
                for default in there.binds(var) {
                    set.join(&self.expr(gid.file, default, gid.def, levels));
                }
            }
        }
        Some(set)
    }

    /// Whether a call passes the parameter that the function's result depends on. `None` if the result depends on none,
    /// or if that is unknown.
    fn passes_deciding_parameter(&self, file: FileId, call: &CallSite, function: &PossibleValue) -> Option<bool> {
        let (PossibleValue::Func(gid) | PossibleValue::Method(gid, _)) = function else { return None };
        let (here, there) = (self.file(file), self.file(gid.file));
        let name = there.deciding_parameter(gid.def)?;
        let def = there.facts.def(gid.def);
        let place = def.params.iter().position(|var| there.facts.vars[*var].name == name)?;
        // The receiver of a method is not among the arguments.
        let bound = matches!(function, PossibleValue::Method(..)) && def.is(flag::TAKES_SELF);
        let place = place.checked_sub(usize::from(bound))?;
        let args = here.facts.args(call.args);
        if args.iter().any(|arg| matches!(arg.how, ArgKind::Spread | ArgKind::Keywords)) {
            return None;
        }
        let by_place = args.iter().filter(|arg| arg.how == ArgKind::Place).nth(place);
        let by_name = |arg: &&Arg| matches!(arg.how, ArgKind::Named(given) if here.sym(given) == there.sym(name));
        let Some(given) = by_place.or_else(|| args.iter().find(by_name)) else { return Some(false) };
        match here.facts.expr(given.value) {
            SourceExpr::Literal(Literal::Nothing) => Some(false),
            // Any other argument may evaluate to nothing at run time.
            SourceExpr::Def(_) => Some(true),
            _ if call.how == CallKind::Decorator => Some(true),
            _ => None,
        }
    }

    /// The derivation of each target, given the other targets of the same call. It affects the reported links only, not
    /// the value of the call.
    pub(super) fn reported_derivations(
        &mut self,
        targets: &[(PossibleValue, Derivation)],
    ) -> SmallVec<[Derivation; 2]> {
        let mut derivations: SmallVec<[Derivation; 2]> = targets.iter().map(|(_, how)| *how).collect();
        for (place, (value, how)) in targets.iter().enumerate() {
            let PossibleValue::Method(method, _) = value else { continue };
            let def = self.def(*method);
            let here = self.file(method.file);
            let (name, of) = (here.sym(def.name), DefRef { file: method.file, def: def.parent });
            let typed = here.rules.overloads();
            let others = targets.iter().filter_map(|(other, how)| match other {
                PossibleValue::Method(other, receiver) if other != method => Some((*other, *receiver, *how)),
                _ => None,
            });
            let mut beside = others
                .filter(|(other, ..)| self.file(other.file).sym(self.def(*other).name) == name)
                .filter(|(other, ..)| !self.def(*other).is(flag::ABSTRACT))
                .collect::<SmallVec<[(DefRef, DefRef, Derivation); 4]>>()
                .into_iter();
            let candidate = if def.is(flag::ABSTRACT) {
                beside.any(|(_, receiver, _)| self.same_line(receiver, of)) || self.is_written_below(of, name)
            } else {
                typed && *how == Derivation::Flow && beside.any(|(.., other)| other == Derivation::Flow)
            };
            if candidate {
                derivations[place] = (*how).max(Derivation::Candidate);
            }
        }
        derivations
    }

    /// Among several functions of one name, keeps those that take as many arguments; then those whose parameter types
    /// fit.
    fn choose_overload(&mut self, file: FileId, call: &CallSite, targets: &mut ValueSet, levels: u8) {
        let functions = targets
            .values
            .iter()
            .filter(|(v, _)| matches!(v, PossibleValue::Func(_) | PossibleValue::Method(..)))
            .count();
        match self.file(file).rules.overloading {
            Overloading::ByTypes => return self.choose_by_types(file, call, targets, levels),
            Overloading::ByCount if functions > 1 => {}
            _ => return,
        }
        let args = self.file(file).facts.args(call.args);
        if args.iter().any(|a| a.how != ArgKind::Place) {
            return;
        }
        let fits = |eval: &Eval<'_>, gid: DefRef| {
            let def = eval.def(gid);
            let facts = &eval.file(gid.file).facts;
            let rest = def.params.last().is_some_and(|v| matches!(facts.vars[*v].what, VarKind::Rest(_)));
            if rest { args.len() + 1 >= def.params.len() } else { args.len() == def.params.len() }
        };
        let group = |eval: &Eval<'_>, gid: DefRef| (gid.file, eval.def(gid).parent, eval.def(gid).name);
        let all: Vec<(DefRef, bool)> = targets
            .values
            .iter()
            .filter_map(|(v, _)| match v {
                PossibleValue::Func(g) | PossibleValue::Method(g, _) => Some((*g, fits(self, *g))),
                _ => None,
            })
            .collect();
        let mut keep: Vec<DefRef> = Vec::new();
        for (gid, fit) in &all {
            let same: Vec<&(DefRef, bool)> = all.iter().filter(|(g, _)| group(self, *g) == group(self, *gid)).collect();
            if same.len() == 1 || *fit || !same.iter().any(|(_, f)| *f) {
                keep.push(*gid);
            }
        }
        // Several are left in one group: compare the types of the arguments.
        let mut best: Vec<DefRef> = Vec::new();
        for gid in &keep {
            let same: Vec<DefRef> = keep.iter().copied().filter(|g| group(self, *g) == group(self, *gid)).collect();
            if same.len() < 2 {
                best.push(*gid);
                continue;
            }
            let score = self.type_fit(file, call, *gid, levels);
            let top = same.iter().map(|g| self.type_fit(file, call, *g, levels)).max().unwrap_or(0);
            if score == top {
                best.push(*gid);
            }
        }
        targets.values.retain(|(v, _)| match v {
            PossibleValue::Func(g) | PossibleValue::Method(g, _) => best.contains(g),
            _ => true,
        });
    }

    /// The number of arguments that have the type of their parameter.
    fn type_fit(&mut self, file: FileId, call: &CallSite, gid: DefRef, levels: u8) -> usize {
        let here = self.file(gid.file);
        let params = here.facts.def(gid.def).params.clone();
        let args: Vec<ExprId> = self.file(file).facts.args(call.args).iter().map(|a| a.value).collect();
        let mut fit = 0;
        for (param, arg) in params.iter().zip(args) {
            let Some(ty) = here.facts.vars[*param].ty else { continue };
            let types = self.expr(gid.file, ty, gid.def, levels);
            let wanted = self.instances(&types, false, levels);
            let name = match here.facts.expr(ty) {
                SourceExpr::Free(name) => here.facts.name(name),
                _ => "",
            };
            let given = self.expr(file, arg, call.owner, levels);
            let matches = given.values.iter().any(|(value, _)| match value {
                PossibleValue::Text => name == "String" || name == "string" || name == "CharSequence",
                PossibleValue::Number => {
                    matches!(name, "int" | "long" | "double" | "float" | "boolean" | "number" | "short")
                }
                PossibleValue::Instance(class, _) => {
                    let line = self.resolution_order(*class);
                    wanted
                        .values
                        .iter()
                        .any(|(w, _)| matches!(w, PossibleValue::Instance(c, _) if line.classes.contains(c)))
                }
                other => wanted.values.iter().any(|(w, _)| w == other),
            });
            fit += usize::from(matches);
        }
        fit
    }

    /// Functions that are passed to a builtin that calls them: `map(f, xs)`, `xs.forEach(f)`, `promise.then(f)`.
    fn passed_to_builtin(
        &mut self,
        file: FileId,
        call: &CallSite,
        targets: &ValueSet,
        levels: u8,
    ) -> Vec<(DefRef, Derivation)> {
        let here = self.file(file);
        let rules = here.rules;
        let known = match here.facts.expr(call.callee) {
            SourceExpr::Member(of, name) => {
                let text = here.facts.name(name);
                rules.methods_that_call.contains(&text) && !self.is_import(file, of)
            }
            SourceExpr::Free(name) => {
                targets.values.iter().any(|(v, _)| matches!(v, PossibleValue::Builtin(_)))
                    && rules.functions_that_call.contains(&here.facts.name(name))
            }
            SourceExpr::Call(_) | SourceExpr::Var(_) => false,
            _ => false,
        };
        if !known {
            return vec![];
        }
        let args: Vec<ExprId> = here.facts.args(call.args).iter().map(|a| a.value).collect();
        let mut found = Vec::new();
        for arg in args {
            let values = self.expr(file, arg, call.owner, levels);
            for (value, how) in &values.values {
                if let PossibleValue::Func(function) | PossibleValue::Method(function, _) = value {
                    found.push((*function, *how));
                }
            }
        }
        found
    }

    /// The values that a call may return.
    pub(super) fn call_value(&mut self, file: FileId, id: CallId, levels: u8) -> ValueSet {
        let here = self.file(file);
        let call = &here.facts.calls[id];
        let mut callee = self.callee(file, call, levels);
        if here.rules.overloads() && call.how != CallKind::New {
            let function = |value: &PossibleValue| matches!(value, PossibleValue::Func(_) | PossibleValue::Method(..));
            if callee.values.iter().any(|(v, _)| function(v)) {
                let targets = self.solve(EvalQuestion::CallTargets(file, id), levels);
                callee.values.retain(|(v, _)| !function(v));
                callee.values.extend(targets.values.iter().filter(|(v, _)| function(v)).copied());
            }
        }
        let mut set = ValueSet { too_many: callee.too_many, ..ValueSet::default() };
        let mut outside = callee.is_empty();
        for (value, how) in &callee.values {
            match value {
                PossibleValue::Class(class) => {
                    let constructs = self.file(class.file).rules.constructs;
                    let types = ValueSet::one(PossibleValue::Class(*class), *how);
                    let exact = constructs != Constructs::Nothing && self.def(*class).kind != DefKind::Interface;
                    set.join_as(&self.instances(&types, exact, levels), (*how).max(Derivation::Type));
                }
                PossibleValue::Func(gid) if call.how == CallKind::New => {
                    set.add(PossibleValue::Instance(*gid, true), (*how).max(Derivation::Type));
                }
                PossibleValue::Func(gid) | PossibleValue::Method(gid, _) => {
                    let bound = self.link.words.bind;
                    if let SourceExpr::Member(_, name) = here.facts.expr(call.callee)
                        && here.sym(name) == bound
                        && here.rules.open_objects
                    {
                        set.add(*value, *how);
                        continue;
                    }
                    let given = self.passes_deciding_parameter(file, call, value);
                    let handed_back = self.returned_arguments(file, id, value, given, levels);
                    let result = match (&handed_back, given) {
                        (None, None) => self.solve(EvalQuestion::Result(*gid), levels),
                        _ => self.solve(EvalQuestion::ResultWhen(*gid, given, handed_back.is_some()), levels),
                    };
                    if let Some(handed_back) = handed_back {
                        set.join_as(&handed_back, *how);
                    }
                    // A method that returns its own object returns the receiver of the call.
                    if let PossibleValue::Method(_, receiver) = value {
                        for (found, known) in &result.values {
                            match found {
                                PossibleValue::Instance(class, false) if self.same_line(*receiver, *class) => {
                                    set.add(PossibleValue::Instance(*receiver, false), (*how).max(*known));
                                }
                                other => set.add(*other, (*how).max(*known)),
                            }
                        }
                        set.too_many |= result.too_many;
                    } else {
                        set.join_as(&result, *how);
                    }
                }
                PossibleValue::Instance(class, _) => {
                    let method = match self.words_of(*class).call_method {
                        Some(name) => self.find_method(*class, name, levels),
                        None => None,
                    };
                    match method {
                        Some(method) => set.join_as(&self.solve(EvalQuestion::Result(method), levels).clone(), *how),
                        None if self.file(class.file).rules.variants_construct => set.add(*value, *how),
                        None => {}
                    }
                }
                PossibleValue::FunctionOf(of, expr) => {
                    let (result, _) = self.function_type(*of, *expr);
                    let found = self.deeper(levels, |e, levels| {
                        let types = e.expr(*of, result, crate::facts::ROOT, levels);
                        e.instances(&types, false, levels)
                    });
                    set.join_as(&found, Derivation::Type);
                }
                PossibleValue::External(path) => {
                    outside = true;
                    if here.facts.language.get().returns_its_argument(&self.program.external_text(*path)) {
                        set.join(&self.argument(file, id, 0, None, levels));
                    } else {
                        set.add(PossibleValue::ExternalInstance(*path), *how);
                    }
                }
                PossibleValue::Builtin(name) => {
                    outside = true;
                    set.join(&self.builtin_value(file, id, *name, levels));
                }
                _ => {}
            }
        }
        if let SourceExpr::Member(of, name) = here.facts.expr(call.callee)
            && callee.values.iter().all(|(v, _)| matches!(v, PossibleValue::Nothing))
        {
            let base = self.expr(file, of, call.owner, levels);
            let found = self.container_method(&base, here.sym(name), levels);
            set.join(&found);
            let name = here.facts.name(name);
            if let Some((_, gives)) = here.rules.derived_methods.iter().find(|(derived, _)| *derived == name) {
                set.join(&self.derived_method(&base, *gives, levels));
            }
            if call.how == CallKind::Implicit && set.is_empty() {
                // The iterator that `for` requests from an object of another package's class is not the object itself.
                let mut held = base;
                if here.rules.iterators_are_apart {
                    held.values.retain(|(v, _)| !matches!(v, PossibleValue::Instance(..)));
                }
                set.join(&held);
            }
        }
        if call.how == CallKind::Decorator {
            let own = self.argument(file, id, 0, None, levels);
            // A decorator that returns itself, to be called again with the decorated definition, is not the result.
            set.values.retain(|(v, _)| !callee.values.iter().any(|(decorator, _)| decorator == v));
            // Decorators of classes register or complete the class and return it.
            if own.values.iter().any(|(v, _)| matches!(v, PossibleValue::Class(_))) {
                return own;
            }
            let wraps = set
                .values
                .iter()
                .any(|(v, _)| matches!(v, PossibleValue::Func(g) | PossibleValue::Method(g, _) if self.def(*g).is(flag::WRAPS)));
            let callable = set.values.iter().any(|(v, _)| {
                matches!(
                    v,
                    PossibleValue::Func(_)
                        | PossibleValue::Method(..)
                        | PossibleValue::Class(_)
                        | PossibleValue::Instance(..)
                )
            });
            if outside || wraps || !callable {
                set.join(&own);
                set.values.retain(|(v, _)| !matches!(v, PossibleValue::ExternalInstance(_)));
            }
        }
        set
    }

    fn same_line(&mut self, derived: DefRef, class: DefRef) -> bool {
        derived == class || self.resolution_order(derived).classes.contains(&class)
    }

    /// Results of methods that the compiler writes: the program has no definition of them.
    fn derived_method(&mut self, base: &ValueSet, gives: DerivedMethod, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        for (value, how) in &base.values {
            match (value, gives) {
                (PossibleValue::Class(_), DerivedMethod::New) => {
                    set.join_as(&self.instances(&ValueSet::one(*value, *how), true, levels), *how);
                }
                (PossibleValue::Instance(..), DerivedMethod::Copy) => set.add(*value, (*how).max(Derivation::Type)),
                _ => {}
            }
        }
        set
    }

    /// Results of builtin functions that pass values on.
    fn builtin_value(&mut self, file: FileId, call: CallId, name: InternedStr, levels: u8) -> ValueSet {
        let here = self.file(file);
        match here.facts.language.get().builtin_call(self.program.text(name)) {
            Some(BuiltinCall::Argument) => self.argument(file, call, 0, None, levels),
            Some(BuiltinCall::Element) => {
                let list = self.argument(file, call, 0, None, levels);
                self.element(&list, levels)
            }
            Some(BuiltinCall::Text) => ValueSet::one(PossibleValue::Text, Derivation::Exact),
            Some(BuiltinCall::Number) => ValueSet::one(PossibleValue::Number, Derivation::Exact),
            Some(BuiltinCall::Member) => {
                let args = here.facts.args(here.facts.calls[call].args);
                let Some(SourceExpr::Literal(crate::facts::Literal::String(text))) =
                    args.get(1).map(|a| here.facts.expr(a.value))
                else {
                    return ValueSet::default();
                };
                let base = self.argument(file, call, 0, None, levels);
                let mut set = ValueSet::default();
                for (value, how) in &base.values {
                    set.join(&self.member_of_value(*value, *how, here.sym(text), levels));
                }
                set
            }
            Some(BuiltinCall::Type) => {
                let of = self.argument(file, call, 0, None, levels);
                let mut set = ValueSet::default();
                for (value, how) in &of.values {
                    if let PossibleValue::Instance(class, _) = value {
                        set.add(PossibleValue::Class(*class), *how);
                    }
                }
                set
            }
            None => ValueSet::default(),
        }
    }

    /// Methods of lists, maps, options and similar types that return their elements or themselves.
    fn container_method(&mut self, base: &ValueSet, name: InternedStr, levels: u8) -> ValueSet {
        let mut containers = ValueSet::default();
        for (value, how) in &base.values {
            if matches!(
                value,
                PossibleValue::Object(..)
                    | PossibleValue::Typed(..)
                    | PossibleValue::Generator(_)
                    | PossibleValue::Rest(..)
            ) {
                containers.add(*value, *how);
            }
        }
        if containers.is_empty() {
            return containers;
        }
        match builtin::container_method(self.program.text(name)) {
            builtin::ContainerResult::Element => self.element(&containers, levels),
            builtin::ContainerResult::Itself => containers,
            builtin::ContainerResult::Nothing => ValueSet::default(),
        }
    }
}
