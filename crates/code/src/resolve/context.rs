//! Types that the context expects: `c` in `const h: Handler = (c) => …` is the parameter of a `Handler`.

use super::eval::{Eval, EvalQuestion};
use super::file::SyntacticContext;
use super::value::{DefRef, Derivation, FileId, InternedStr, PossibleValue, ValueSet};
use crate::facts::{CallId, DefId, ExprId, ROOT, VarKind, flag};

impl Eval<'_> {
    /// The type of a parameter according to the type that the context of its function expects.
    pub(super) fn expected(&mut self, function: DefRef, place: usize, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        let Some(context) = self.file(function.file).context_of(function.def) else { return set };
        for (value, how) in self.expected_types(function.file, context, levels).values {
            set.join_as(&self.taken_by(value, place, levels), how);
        }
        set
    }

    /// The type of a parameter of a function type or functional interface.
    fn taken_by(&mut self, of: PossibleValue, place: usize, levels: u8) -> ValueSet {
        match of {
            PossibleValue::FunctionOf(file, expr) => {
                let (_, takes) = self.function_type(file, expr);
                match self.file(file).facts.items(takes).get(place).map(|item| item.value) {
                    Some(ty) => self.instances_of(file, ty, ROOT, levels),
                    None => ValueSet::default(),
                }
            }
            // A method declared in an interface.
            PossibleValue::Func(method) => {
                let here = self.file(method.file);
                let param = here.facts.def(method.def).params.get(place);
                match param.and_then(|var| here.facts.vars[*var].ty) {
                    Some(ty) => self.instances_of(method.file, ty, method.def, levels),
                    None => ValueSet::default(),
                }
            }
            _ => ValueSet::default(),
        }
    }

    /// The types that the declarations around an expression expect. Only the file of the expression is considered.
    fn expected_types(&mut self, file: FileId, context: SyntacticContext, levels: u8) -> ValueSet {
        let here = self.file(file);
        match context {
            SyntacticContext::Argument(call, place) => self.expected_argument(file, call, place, levels),
            SyntacticContext::Returned(function) => self.expected_result(file, function, levels),
            SyntacticContext::Assigned(var) => {
                let found = &here.facts.vars[var];
                found.ty.map_or_else(ValueSet::default, |ty| self.instances_of(file, ty, found.owner, levels))
            }
            SyntacticContext::Item(object, name) => {
                let mut set = ValueSet::default();
                let Some(around) = here.context_of_object(object) else { return set };
                for (value, how) in self.expected_types(file, around, levels).values {
                    if let PossibleValue::Instance(class, _) = value {
                        set.join_as(&self.declared_member(class, here.sym(name), levels), how);
                    }
                }
                set
            }
        }
    }

    fn expected_argument(&mut self, file: FileId, call: CallId, place: usize, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        let targets = self.solve(EvalQuestion::CallTargets(file, call), levels);
        for (value, how) in &targets.values {
            let (PossibleValue::Func(called) | PossibleValue::Method(called, _)) = *value else { continue };
            let here = self.file(called.file);
            let def = here.facts.def(called.def);
            let place = place + usize::from(def.is(flag::TAKES_SELF) && matches!(value, PossibleValue::Method(..)));
            let Some(var) = def.params.get(place).or_else(|| def.params.last()).copied() else { continue };
            let rest = match here.facts.vars[var].what {
                VarKind::Rest(from) => place >= usize::from(from),
                _ => false,
            };
            let Some(ty) = here.facts.vars[var].ty.filter(|_| rest || place < def.params.len()) else {
                continue;
            };
            let mut types = self.instances_of(called.file, ty, called.def, levels);
            if rest {
                types = self.element(&types, levels);
            }
            set.join_as(&types, *how);
        }
        set
    }

    /// The types that a function must return: its declared result, or what the context of the function expects.
    fn expected_result(&mut self, file: FileId, function: DefId, levels: u8) -> ValueSet {
        let here = self.file(file);
        let def = here.facts.def(function);
        let mut set = ValueSet::default();
        match (def.result, here.context_of(function)) {
            (Some(ty), _) => set = self.instances_of(file, ty, function, levels),
            (None, Some(around)) => {
                for (value, how) in self.expected_types(file, around, levels).values {
                    if let PossibleValue::FunctionOf(of, expr) = value {
                        let (result, _) = self.function_type(of, expr);
                        set.join_as(&self.instances_of(of, result, ROOT, levels), how);
                    }
                }
            }
            (None, None) => {}
        }
        if def.is(flag::ASYNC) { self.awaited(&set, levels) } else { set }
    }

    /// A member of an interface or class, by its declared type; a method is its own value.
    fn declared_member(&mut self, class: DefRef, name: InternedStr, levels: u8) -> ValueSet {
        let line = self.resolution_order(class);
        for of in &line.classes {
            let here = self.file(of.file);
            let Some(var) = here.member(of.def, name) else { continue };
            let found = &here.facts.vars[var];
            return match (found.ty, found.what) {
                (Some(ty), _) => self.instances_of(of.file, ty, of.def, levels),
                (None, VarKind::Def(method)) if here.facts.def(method).kind.callable() => {
                    ValueSet::one(PossibleValue::Func(DefRef { file: of.file, def: method }), Derivation::Type)
                }
                _ => ValueSet::default(),
            };
        }
        ValueSet::default()
    }

    /// Instances of the types that a type expression names.
    fn instances_of(&mut self, file: FileId, ty: ExprId, owner: DefId, levels: u8) -> ValueSet {
        let types = self.expr(file, ty, owner, levels);
        let mut set = ValueSet::default();
        set.join_as(&self.instances(&types, false, levels), Derivation::Type);
        set
    }
}
