//! Resolves members of classes, instances, modules and objects, including inherited ones.

use super::call::overload;
use super::deps::TableEntry;
use super::eval::{Eval, EvalQuestion};
use super::value::{DefRef, Derivation, DirId, FileId, InternedStr, MOST, PossibleValue, ValueSet};
use crate::facts::{DefId, DefKind, ExprId, ImportKind, ROOT, SourceExpr, VarKind, flag};
use crate::languages::rules::Modules;
use smallvec::SmallVec;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// A class and its ancestors, in method resolution order.
#[derive(Default)]
pub struct ResolutionOrder {
    pub classes: Vec<DefRef>,
    /// Whether an ancestor is outside the program.
    pub external: bool,
    /// The files of the classes.
    files: SmallVec<[FileId; 4]>,
}

/// Methods, each with a class that has it.
pub type OverridingMethods = Arc<Vec<(DefRef, DefRef)>>;

/// More implementations of a method than this are not reported one by one: the declared method represents them.
const MOST_OVERRIDES: usize = 8;

impl<'p> Eval<'p> {
    /// The values of `of.name`.
    pub(super) fn member_of(
        &mut self,
        file: FileId,
        of: ExprId,
        name: InternedStr,
        owner: DefId,
        levels: u8,
    ) -> ValueSet {
        if self.file(file).facts.expr(of) == SourceExpr::Super {
            return self.member_of_super(file, name, owner, levels);
        }
        let base = self.expr(file, of, owner, levels);
        let mut set = ValueSet { too_many: base.too_many, ..ValueSet::default() };
        for (value, how) in &base.values {
            set.join(&self.member_of_value(*value, *how, name, levels));
        }
        set
    }

    fn member_of_super(&mut self, file: FileId, name: InternedStr, owner: DefId, levels: u8) -> ValueSet {
        let Some(class) = self.enclosing_type(file, owner, levels) else { return ValueSet::default() };
        // Where the classes of the receiver are known and decide, the next class in their resolution order applies.
        let mut set = ValueSet::default();
        let mut seen = false;
        if self.file(file).rules.cooperative_super {
            let this = self.this_in(file, owner, levels);
            for (value, _) in this.values {
                if let PossibleValue::Instance(of, _) | PossibleValue::Class(of) = value {
                    let line = self.resolution_order(of);
                    if let Some(at) = line.classes.iter().position(|c| *c == class) {
                        seen = true;
                        let rest: Vec<DefRef> = line.classes[at + 1..].to_vec();
                        set.join(&self.first_in(&rest, of, name, levels));
                    }
                }
            }
        }
        if !seen {
            let line = self.resolution_order(class);
            let rest: Vec<DefRef> = line.classes.iter().skip(1).copied().collect();
            set = self.first_in(&rest, class, name, levels);
        }
        set
    }

    /// The receiver of the enclosing method, also if it is an ordinary parameter.
    fn this_in(&mut self, file: FileId, owner: DefId, levels: u8) -> ValueSet {
        let here = self.file(file);
        let mut at = owner;
        while at != ROOT {
            let def = here.facts.def(at);
            if def.kind == DefKind::Method && def.is(flag::TAKES_SELF) {
                if let Some(first) = def.params.first() {
                    return (*self.solve(EvalQuestion::Var(file, *first), levels)).clone();
                }
                break;
            }
            at = def.parent;
        }
        ValueSet::default()
    }

    fn first_in(&mut self, classes: &[DefRef], receiver: DefRef, name: InternedStr, levels: u8) -> ValueSet {
        for class in classes {
            let found = self.declared_in(*class, name, levels);
            if !found.is_empty() {
                return self.bind_receiver(&found, receiver, Derivation::Type);
            }
        }
        ValueSet::default()
    }

    /// The values of a member of one value.
    pub(crate) fn member_of_value(
        &mut self,
        value: PossibleValue,
        how: Derivation,
        name: InternedStr,
        levels: u8,
    ) -> ValueSet {
        let found = match value {
            PossibleValue::Module(file) => (*self.solve(EvalQuestion::ModuleMember(file, name), levels)).clone(),
            PossibleValue::Folder(folder) => self.folder_member(folder, name, levels),
            PossibleValue::Package(package) => self.package_member(package, name),
            PossibleValue::Namespace(space) => {
                let here = self.file(space.file);
                match here.member(space.def, name) {
                    Some(var) => (*self.solve(EvalQuestion::Var(space.file, var), levels)).clone(),
                    None => self.reexported(space.file, space.def, name, levels),
                }
            }
            PossibleValue::Class(class) => self.class_member(class, name, levels),
            PossibleValue::Instance(class, exact) => return self.instance_member(class, exact, how, name, levels),
            PossibleValue::Object(file, expr) => {
                let keyed =
                    matches!(self.file(file).facts.expr(expr), SourceExpr::Collection(crate::facts::ListKind::Map, _));
                if keyed && self.file(file).rules.open_objects {
                    let found = self.object_at(file, expr, Some(name), levels);
                    self.through_accessors(found, levels)
                } else {
                    ValueSet::default()
                }
            }
            PossibleValue::Prototype(function) => {
                (*self.written_from_outside(PossibleValue::Prototype(function), name, levels)).clone()
            }
            PossibleValue::Func(function) | PossibleValue::Method(function, _) => {
                self.function_member(value, function, name, levels)
            }
            PossibleValue::External(path) => {
                ValueSet::one(PossibleValue::External(self.program.external(path, name)), how)
            }
            PossibleValue::ExternalInstance(path) => {
                if self.program.external_is_type(path) {
                    ValueSet::one(PossibleValue::External(self.program.external(path, name)), how.max(Derivation::Type))
                } else {
                    ValueSet::default()
                }
            }
            _ => ValueSet::default(),
        };
        let mut set = ValueSet::default();
        set.join_as(&found, how);
        set
    }

    /// Replaces getters with their results.
    fn through_accessors(&mut self, found: ValueSet, levels: u8) -> ValueSet {
        let mut set = ValueSet { too_many: found.too_many, ..ValueSet::default() };
        for (value, how) in &found.values {
            match value {
                PossibleValue::Func(f) if self.def(*f).is(flag::GETTER) => {
                    set.join_as(&self.solve(EvalQuestion::Result(*f), levels).clone(), *how);
                }
                PossibleValue::Func(f) if self.def(*f).is(flag::SETTER) => {}
                _ => set.add(*value, *how),
            }
        }
        set
    }

    fn function_member(&mut self, value: PossibleValue, function: DefRef, name: InternedStr, levels: u8) -> ValueSet {
        let words = &self.link.words;
        let rules = self.file(function.file).rules;
        if rules.open_objects {
            if name == words.prototype {
                return ValueSet::one(PossibleValue::Prototype(function), Derivation::Exact);
            }
            if name == words.call || name == words.apply || name == words.bind {
                return ValueSet::one(value, Derivation::Exact);
            }
            return (*self.written_from_outside(PossibleValue::Func(function), name, levels)).clone();
        }
        // A lambda or a method reference implements the one method of its interface.
        if rules.functional_interfaces {
            return ValueSet::one(value, Derivation::Flow);
        }
        ValueSet::default()
    }

    /// A member of a class itself, including inherited ones.
    pub(super) fn class_member(&mut self, class: DefRef, name: InternedStr, levels: u8) -> ValueSet {
        let line = self.resolution_order(class);
        for of in &line.classes {
            let mut found = self.declared_in(*of, name, levels);
            found.join(&self.written_from_outside(PossibleValue::Class(*of), name, levels).clone());
            if !found.is_empty() {
                let mut set = ValueSet::default();
                for (value, how) in &found.values {
                    match value {
                        PossibleValue::Func(method) if self.def(*method).is(flag::CLASS_METHOD) => {
                            set.add(PossibleValue::Method(*method, class), *how);
                        }
                        _ => set.add(*value, *how),
                    }
                }
                return set;
            }
        }
        let rules = self.file(class.file).rules;
        if rules.open_objects && self.link.words.prototype == name {
            return ValueSet::one(PossibleValue::Prototype(class), Derivation::Exact);
        }
        // `T::new` implements the one method of its interface.
        let functional = rules.constructor_references.contains(&self.program.text(name));
        // A declared member exists; it only needs more levels than are left here.
        let own = || line.classes.iter().any(|of| self.file(of.file).member(of.def, name).is_some());
        if functional && !line.external && !own() {
            return ValueSet::one(PossibleValue::Class(class), Derivation::Flow);
        }
        ValueSet::default()
    }

    fn instance_member(
        &mut self,
        class: DefRef,
        exact: bool,
        how: Derivation,
        name: InternedStr,
        levels: u8,
    ) -> ValueSet {
        let found = self.solve(EvalQuestion::Field(class, name), levels);
        let mut set = self.bind_receiver(&found, class, how);
        set.values.retain(|(v, _)| !matches!(v, PossibleValue::Method(m, _) if self.def(*m).is(flag::SETTER)));
        let getters: Vec<DefRef> = set
            .values
            .iter()
            .filter_map(|(v, _)| match v {
                PossibleValue::Method(m, _) if self.def(*m).is(flag::GETTER) => Some(*m),
                _ => None,
            })
            .collect();
        if !getters.is_empty() {
            set.values.retain(|(v, _)| !matches!(v, PossibleValue::Method(m, _) if getters.contains(m)));
            for getter in getters {
                let result = self.solve(EvalQuestion::Result(getter), levels);
                set.join_as(&result, how.max(Derivation::Type));
            }
        }
        if !exact {
            self.overrides(class, how, name, &mut set);
        }
        set
    }

    /// Adds methods of derived classes, if the class is only the declared type of the receiver.
    fn overrides(&mut self, class: DefRef, how: Derivation, name: InternedStr, set: &mut ValueSet) {
        let declared: Vec<DefRef> = set
            .values
            .iter()
            .filter_map(|(v, _)| match v {
                PossibleValue::Method(m, _) => Some(*m),
                _ => None,
            })
            .flat_map(|m| self.with_overloads(m, name))
            .collect();
        let is_abstract = declared.iter().all(|m| self.def(*m).is(flag::ABSTRACT));
        // `this.m()` calls the method of the own class, unless that is abstract.
        if (how == Derivation::Exact && !is_abstract) || (declared.is_empty() && !set.is_empty()) {
            return;
        }
        // In languages with declared types, only a declared member can be called, unless an ancestor is outside the
        // program.
        let rules = self.file(class.file).rules;
        if declared.is_empty() && rules.overloads() {
            let of_every_object = rules.methods_of_every_object.contains(&self.program.text(name));
            let line = self.resolution_order(class);
            let whole = line.classes.iter().all(|c| self.def(*c).bases.len() == self.link.bases(*c).len());
            if whole && !of_every_object {
                return;
            }
        }
        if declared.iter().any(|m| self.def(*m).is(flag::FINAL) && !self.def(*m).is(flag::ABSTRACT)) {
            return;
        }
        self.note(TableEntry::Below(class));
        let found: Vec<(DefRef, DefRef)> =
            self.overriding(class, name).iter().filter(|(method, _)| !declared.contains(method)).copied().collect();
        // Without overrides, the declared method runs, whichever classes have instances. If there are too many
        // overrides, the declared method represents them.
        if found.is_empty() || found.len() > MOST_OVERRIDES || set.values.len() + found.len() > MOST {
            return;
        }
        self.touch_flows();
        // One entry covers all checks below: whether anything derived from the class is made.
        for entry in [TableEntry::AnyMade, TableEntry::Made(class), TableEntry::MadeBelow(class)] {
            self.note(entry);
        }
        let known = self.flows.any_made();
        // No instance of the class itself is made, and the derived classes with instances override the method: one of
        // those runs.
        let only_below = !self.flows.is_made(class) && self.has_made_below(class);
        if only_below && !is_abstract && how != Derivation::Exact && !self.is_inherited(class, name, &declared) {
            for (value, how) in &mut set.values {
                if matches!(value, PossibleValue::Method(m, _) if declared.contains(m)) {
                    *how = (*how).max(Derivation::Possible);
                }
            }
        }
        let found: Vec<(DefRef, DefRef, bool)> = found
            .into_iter()
            .map(|(method, of)| (method, of, !known || self.flows.is_made(of) || self.has_made_below(of)))
            .collect();
        let several = found.iter().filter(|(_, _, made)| *made).count() > 1
            || self.link.is_for_others(class)
            || (!is_abstract && !declared.is_empty() && self.flows.is_made(class));
        let sure = if several {
            Derivation::Possible
        } else if is_abstract && !declared.is_empty() {
            Derivation::Flow
        } else {
            Derivation::Dispatch
        };
        for (method, derived, made) in found {
            let sure = if made { sure } else { Derivation::Possible };
            set.add(PossibleValue::Method(method, derived), how.max(sure));
        }
    }

    /// Whether a derived class with instances inherits one of these methods without overriding it.
    fn is_inherited(&mut self, class: DefRef, name: InternedStr, declared: &[DefRef]) -> bool {
        let made = self.link.all_derived(class).into_iter().filter(|below| self.flows.is_made(*below));
        made.collect::<Vec<DefRef>>().into_iter().any(|below| {
            let method = self.resolution_order_untraced(below).classes.iter().find_map(|of| self.method_in(*of, name));
            method.is_some_and(|method| declared.contains(&method))
        })
    }

    /// Whether a derived class that is not among the `seen` receivers inherits this method. A call of `super().m()`
    /// makes one such receiver known, but not the classes that do not override the method.
    pub(super) fn runs_on_others(&mut self, method: DefRef, class: DefRef, seen: &ValueSet) -> bool {
        self.note(TableEntry::Below(class));
        let here = self.file(method.file);
        let name = here.sym(here.facts.def(method.def).name);
        self.link.all_derived(class).into_iter().any(|below| {
            let is_seen =
                seen.values.iter().any(|(value, _)| matches!(value, PossibleValue::Instance(of, _) if *of == below));
            !is_seen
                && self.resolution_order_untraced(below).classes.iter().find_map(|of| self.method_in(*of, name))
                    == Some(method)
        })
    }

    /// A method and its overloads.
    fn with_overloads(&self, method: DefRef, name: InternedStr) -> SmallVec<[DefRef; 4]> {
        let class = DefRef { file: method.file, def: self.def(method).parent };
        let all = match self.file(method.file).rules.overloads() {
            true => self.own_overloads(class, name),
            false => SmallVec::new(),
        };
        if all.is_empty() { SmallVec::from_elem(method, 1) } else { all }
    }

    fn has_made_below(&mut self, class: DefRef) -> bool {
        let (link, flows) = (self.link, self.flows);
        let made = || link.all_derived(class).iter().any(|c| flows.is_made(*c));
        *self.made_below.entry(class).or_insert_with(made)
    }

    /// Methods of that name in derived classes, own or inherited, each with the first class that has it. Found by
    /// syntax only, so that the result depends only on the methods of that name and on the inheritance.
    fn overriding(&mut self, class: DefRef, name: InternedStr) -> OverridingMethods {
        let family = self.program.file(class.file).facts.language.family();
        self.note(TableEntry::Methods(family, name));
        if let Some(known) = self.memo.overriding.get(&(class, name)) {
            return known.clone();
        }
        let mut found: Vec<(DefRef, DefRef)> = Vec::new();
        if self.link.methods_named.contains_key(&(family, name)) {
            for derived in self.link.all_derived(class) {
                let line = self.resolution_order_untraced(derived);
                let method = line.classes.iter().find_map(|of| self.method_in(*of, name));
                if let Some(method) = method
                    && !self.program.def(method).is(flag::ABSTRACT)
                    && !self.program.def(method).is(flag::CONSTRUCTOR)
                    && !found.iter().any(|(known, _)| *known == method)
                {
                    found.push((method, derived));
                }
                // More than can be reported, even without the declared ones.
                if found.len() > 2 * MOST_OVERRIDES {
                    break;
                }
            }
        }
        let found = Arc::new(found);
        self.memo.overriding.insert((class, name), found.clone());
        found
    }

    /// Whether a method that a class only declares has a body somewhere in the program.
    pub(super) fn is_written_below(&mut self, class: DefRef, name: InternedStr) -> bool {
        self.note(TableEntry::Below(class));
        self.link.is_for_others(class) || !self.overriding(class, name).is_empty()
    }

    /// A method in the body of a class or attached to it.
    fn method_in(&self, class: DefRef, name: InternedStr) -> Option<DefRef> {
        let here = self.program.file(class.file);
        let own = here.member(class.def, name).and_then(|var| match here.facts.vars[var].what {
            VarKind::Def(def) if here.facts.def(def).kind == DefKind::Method => Some(DefRef { file: class.file, def }),
            // A field of the same name hides the method.
            _ if here.rules.overloads() => overload::own(here, class, name).first().copied(),
            _ => None,
        });
        own.or_else(|| self.link.attached(class, name).first().copied())
    }

    /// The field of a type at a position.
    pub(super) fn field_at(&self, class: DefRef, place: usize) -> Option<InternedStr> {
        let here = self.file(class.file);
        let own = |v: &&crate::facts::Var| v.owner == class.def && v.what != VarKind::TypeParam;
        here.facts.vars.iter().filter(own).nth(place).map(|v| here.sym(v.name))
    }

    fn bind_receiver(&self, found: &ValueSet, class: DefRef, how: Derivation) -> ValueSet {
        let mut set = ValueSet { too_many: found.too_many, ..ValueSet::default() };
        for (value, known) in &found.values {
            match value {
                PossibleValue::Func(method) if self.def(*method).kind == DefKind::Method => {
                    let def = self.def(*method);
                    let least = if method.file == class.file { how } else { how.max(Derivation::Type) };
                    let value = if def.is(flag::STATIC) { *value } else { PossibleValue::Method(*method, class) };
                    set.add(value, (*known).max(least));
                }
                _ => set.add(*value, (*known).max(how)),
            }
        }
        set
    }

    /// A field or method of an instance, including inherited ones.
    pub(super) fn field(&mut self, class: DefRef, name: InternedStr, levels: u8) -> ValueSet {
        let line = self.resolution_order(class);
        let mut set = ValueSet::default();
        let mut declared = ValueSet::default();
        for of in &line.classes {
            let here = self.file(of.file);
            for (owner, value) in here.own_field(of.def, name) {
                set.join(&self.expr(of.file, *value, *owner, levels));
            }
            let put = self.written_from_outside(PossibleValue::Instance(*of, true), name, levels);
            // A member that replaces a method is set on some instances only.
            let over = !put.is_empty() && line.classes.iter().any(|c| self.method_in(*c, name).is_some());
            set.join_as(&put, if over { Derivation::Candidate } else { Derivation::Compiler });
            set.join(&self.written_from_outside(PossibleValue::Prototype(*of), name, levels).clone());
            if here.rules.open_objects {
                let prototype = self.link.words.prototype;
                let whole = self.written_from_outside(PossibleValue::Func(*of), prototype, levels);
                for (value, how) in &whole.values {
                    if let PossibleValue::Object(file, expr) = value {
                        set.join_as(&self.object_at(*file, *expr, Some(name), levels), *how);
                    }
                }
            }
            if declared.is_empty() {
                declared = self.declared_in(*of, name, levels);
                set.join(&declared);
            }
        }
        // If too many values are assigned to it, use the declared type.
        if set.too_many && !declared.is_empty() { declared } else { set }
    }

    /// The declaration of a name in a class itself: a variable of its body, or a method attached to it.
    pub(super) fn declared_in(&mut self, class: DefRef, name: InternedStr, levels: u8) -> ValueSet {
        let here = self.file(class.file);
        let mut set = ValueSet::default();
        if let Some(var) = here.member(class.def, name) {
            set.join(&self.solve(EvalQuestion::Var(class.file, var), levels).clone());
        }
        let attached = self.link.attached(class, name);
        // Methods of the type itself take precedence over those of its traits. Of several traits, or of several bodies
        // for different instances of a type, only one applies.
        let own = attached.iter().any(|method| self.def(*method).through.is_none());
        let several = match own {
            true => here.facts.language.get().has_several_bodies(self, class, attached),
            false => attached.len() > 1,
        };
        let usual = attached.first().is_some_and(|method| self.file(method.file).is_in_usual_build());
        for method in attached {
            let of_other_build = usual && !self.file(method.file).is_in_usual_build();
            if of_other_build || own && self.def(*method).through.is_some() {
                continue;
            }
            let how = if method.file == class.file { Derivation::Exact } else { Derivation::Import };
            set.add(PossibleValue::Func(*method), if several { Derivation::Possible } else { how });
        }
        set
    }

    /// The method of that name that an instance of a class runs.
    pub(super) fn find_method(&mut self, class: DefRef, name: InternedStr, levels: u8) -> Option<DefRef> {
        let line = self.resolution_order(class);
        for of in &line.classes {
            let found = self.declared_in(*of, name, levels);
            let method = found.values.iter().find_map(|(v, _)| match v {
                PossibleValue::Func(method) => Some(*method),
                _ => None,
            });
            if method.is_some() {
                return method;
            }
        }
        None
    }

    /// The class and its ancestors: in C3 order if that is consistent, as in Python; else depth first.
    pub(super) fn resolution_order(&mut self, class: DefRef) -> Arc<ResolutionOrder> {
        let line = self.resolution_order_untraced(class);
        // The inheritance depends on the files of the classes.
        for file in &line.files {
            self.file(*file);
        }
        line
    }

    fn resolution_order_untraced(&mut self, class: DefRef) -> Arc<ResolutionOrder> {
        if let Some(line) = self.memo.lines.get(&class) {
            return line.clone();
        }
        let line = Arc::new(self.compute_resolution_order(class, &mut vec![class]));
        self.memo.lines.insert(class, line.clone());
        line
    }

    fn compute_resolution_order(&mut self, class: DefRef, above: &mut Vec<DefRef>) -> ResolutionOrder {
        let bases = self.link.bases(class);
        let mut external = self.link.external_base(class);
        let mut lines: Vec<Vec<DefRef>> = Vec::new();
        let mut direct = Vec::new();
        for base in bases {
            if above.contains(base) || above.len() > 60 {
                continue;
            }
            above.push(*base);
            let line = match self.memo.lines.get(base) {
                Some(known) => known.clone(),
                None => Arc::new(self.compute_resolution_order(*base, above)),
            };
            above.pop();
            external |= line.external;
            direct.push(*base);
            lines.push(line.classes.clone());
        }
        lines.push(direct);
        let mut classes = vec![class];
        loop {
            lines.retain(|line| !line.is_empty());
            if lines.is_empty() {
                break;
            }
            let next = lines.iter().map(|line| line[0]).find(|head| !lines.iter().any(|l| l[1..].contains(head)));
            // No consistent order: take the first, as in depth first.
            let next = next.unwrap_or(lines[0][0]);
            if !classes.contains(&next) {
                classes.push(next);
            }
            for line in &mut lines {
                line.retain(|c| *c != next);
            }
        }
        let mut files: SmallVec<[FileId; 4]> = classes.iter().map(|c| c.file).collect();
        files.sort_unstable();
        files.dedup();
        ResolutionOrder { classes, external, files }
    }

    // --- writes into objects from outside ---

    /// The values that code outside an object writes into it under a name, memoized.
    pub(super) fn written_from_outside(&mut self, of: PossibleValue, name: InternedStr, levels: u8) -> Arc<ValueSet> {
        self.note(TableEntry::Written(name));
        if self.link.is_written(name) { self.solve(EvalQuestion::Write(of, name), levels) } else { self.nothing() }
    }

    /// The values that code outside an object writes into it under a name.
    pub(super) fn written(&mut self, of: PossibleValue, name: InternedStr, levels: u8) -> ValueSet {
        self.touch_flows();
        let mut set = ValueSet::default();
        self.note(TableEntry::Write(of, name));
        for (file, value, owner) in self.flows.writes(of, name) {
            set.join_as(&self.expr(*file, *value, *owner, levels), Derivation::Type);
        }
        set
    }

    /// All values that code outside an object writes into it.
    pub(super) fn all_written(&mut self, of: PossibleValue, levels: u8) -> ValueSet {
        self.touch_flows();
        let mut set = ValueSet::default();
        self.note(TableEntry::WrittenNames(of));
        // The numbers of symbols depend on the order in which files were read, so sort by text.
        let mut names: SmallVec<[InternedStr; 4]> = self.flows.written_names(of).collect();
        names.sort_unstable_by_key(|name| self.program.text(*name));
        for name in names {
            set.join(&self.solve(EvalQuestion::Write(of, name), levels).clone());
        }
        set
    }

    // --- modules, folders, packages ---

    /// A name of a module as other modules see it.
    pub(super) fn module_member(&mut self, file: FileId, name: InternedStr, levels: u8) -> ValueSet {
        let here = self.file(file);
        let mut set = ValueSet::default();
        if here.rules.modules == Modules::Exports {
            if let Some(values) = here.exports.get(&name) {
                for value in values {
                    set.join(&self.expr(file, *value, ROOT, levels));
                }
            }
            if set.is_empty() {
                set = self.reexported(file, ROOT, name, levels);
            }
            if set.is_empty()
                && let Some(whole) = here.exports.get(&self.link.words.whole)
            {
                for value in whole {
                    let base = self.expr(file, *value, ROOT, levels);
                    for (value, how) in &base.values {
                        set.join(&self.member_of_value(*value, *how, name, levels));
                    }
                }
            }
            return set;
        }
        if here.rules.modules == Modules::Tree
            && let Some(module) = here.facts.language.get().module_beside(self.program, self.link, file, name)
        {
            return ValueSet::one(module, Derivation::Import);
        }
        if let Some(var) = here.member(ROOT, name) {
            set.join(&self.solve(EvalQuestion::Var(file, var), levels).clone());
        }
        if set.is_empty() {
            set = self.reexported(file, ROOT, name, levels);
        }
        if set.is_empty()
            && let Some(module) = self.link.places().of(here.facts.language).beside(self.program, here, name)
        {
            set.add(module, Derivation::Import);
        }
        set
    }

    /// Names that a module re-exports: `export … from`, `pub use`, `from x import *`.
    pub(super) fn reexported(&mut self, file: FileId, owner: DefId, name: InternedStr, levels: u8) -> ValueSet {
        self.deeper(levels, |e, levels| e.reexported_within(file, owner, name, levels))
    }

    fn reexported_within(&mut self, file: FileId, owner: DefId, name: InternedStr, levels: u8) -> ValueSet {
        let here = self.file(file);
        let mut set = ValueSet::default();
        let script = owner == ROOT && here.rules.modules == Modules::Exports;
        if script {
            self.note(TableEntry::Star(file, name));
        }
        for (index, import) in here.facts.imports.iter_ids() {
            if import.owner != owner {
                continue;
            }
            let all = import.what == ImportKind::All;
            let given = import.reexport.map(|n| here.sym(n));
            let gives_all = all && (given.is_some() || here.rules.wildcards_are_given_on);
            if given == Some(name) && !all {
                set.join(&self.imported(file, index, levels));
            } else if gives_all
                && (!script || self.link.star_may_export(file, index, name))
                && let Some(module) = self.import_target(file, index, levels)
                && module != PossibleValue::Module(file)
            {
                set.join(&self.member_of_value(module, Derivation::Import, name, levels));
            }
        }
        set
    }

    fn folder_member(&mut self, folder: DirId, name: InternedStr, levels: u8) -> ValueSet {
        if let Some((file, var)) = self.folder_name(folder, name) {
            let found = self.solve(EvalQuestion::Var(file, var), levels);
            let mut set = ValueSet::default();
            set.join_as(&found, Derivation::Import);
            return set;
        }
        let path = self.program.folder(folder);
        match self.link.places().inside(self.program, &path, name) {
            Some(module) => ValueSet::one(module, Derivation::Import),
            None => ValueSet::default(),
        }
    }

    fn package_member(&mut self, package: InternedStr, name: InternedStr) -> ValueSet {
        self.note(TableEntry::Package(package, name));
        match self.link.in_package(package, name) {
            Some(found) => ValueSet::one(self.def_value(found), Derivation::Import),
            None => match self.link.subpackage(self.program, package, name) {
                Some(inner) => ValueSet::one(PossibleValue::Package(inner), Derivation::Import),
                None => ValueSet::default(),
            },
        }
    }

    /// A name that its file does not declare.
    pub(super) fn free(&mut self, file: FileId, owner: DefId, name: InternedStr, levels: u8) -> ValueSet {
        let here = self.file(file);
        let (language, rules) = (here.facts.language, here.rules);
        let mut set = match rules.modules {
            Modules::Folders => self.folder_free(file, name, levels),
            Modules::Tree => language.get().undeclared(self, file, owner, name, levels),
            _ if rules.implicit_receiver => self.implicit(file, owner, name, levels),
            _ => ValueSet::default(),
        };
        if set.is_empty() {
            set = self.in_wildcards(file, name, levels);
        }
        if rules.global_functions {
            self.note(TableEntry::Function(language.family(), name));
            if set.is_empty()
                && let Some(found) = self.link.only_function(language, name)
            {
                set.add(self.def_value(found), Derivation::Dispatch);
            }
        }
        if set.is_empty()
            && rules.package_paths
            && let Some(package) = self.link.subpackage_root(self.program, name)
        {
            set.add(PossibleValue::Package(package), Derivation::Import);
        }
        if set.is_empty() && language.get().is_builtin(self.program.text(name)) {
            set.add(PossibleValue::Builtin(name), Derivation::Exact);
        }
        set
    }

    /// A name that another file of the folder declares.
    fn folder_free(&mut self, file: FileId, name: InternedStr, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        if let Some((of, var)) = self.folder_sibling(file, name)
            && of != file
        {
            set.join_as(&self.solve(EvalQuestion::Var(of, var), levels).clone(), Derivation::Import);
        }
        set
    }

    /// A name without a receiver where enclosing types may provide one: a member, a name of the file, of the package.
    fn implicit(&mut self, file: FileId, owner: DefId, name: InternedStr, levels: u8) -> ValueSet {
        let mut set = self.enclosing_member(file, owner, name, levels);
        if set.is_empty()
            && let Some(var) = self.file(file).member(ROOT, name)
        {
            set.join(&self.solve(EvalQuestion::Var(file, var), levels).clone());
        }
        if set.is_empty()
            && let Some(package) = self.link.package_of(file)
        {
            self.note(TableEntry::Package(package, name));
            if let Some(found) = self.link.in_package(package, name) {
                set.add(self.def_value(found), Derivation::Import);
            }
        }
        set
    }

    /// A name that an import of everything binds: `from x import *`.
    pub(crate) fn in_wildcards(&mut self, file: FileId, name: InternedStr, levels: u8) -> ValueSet {
        self.deeper(levels, |e, levels| e.in_wildcards_within(file, name, levels))
    }

    fn in_wildcards_within(&mut self, file: FileId, name: InternedStr, levels: u8) -> ValueSet {
        let here = self.file(file);
        let mut set = ValueSet::default();
        if here.rules.modules == Modules::Exports {
            // `export *` re-exports names without binding them here.
            return set;
        }
        for (index, import) in here.facts.imports.iter_ids() {
            if import.what == ImportKind::All
                && let Some(module) = self.import_target(file, index, levels)
                && module != PossibleValue::Module(file)
                && !matches!(module, PossibleValue::External(_))
            {
                let found = self.member_of_value(module, Derivation::Import, name, levels);
                set.join(&found);
            }
        }
        set
    }

    /// A bare name inside classes: a member of the innermost class that has it, including inherited ones.
    fn enclosing_member(&mut self, file: FileId, owner: DefId, name: InternedStr, levels: u8) -> ValueSet {
        let here = self.file(file);
        let mut at = owner;
        let mut is_static = false;
        while at != ROOT {
            let def = here.facts.def(at);
            if def.kind == DefKind::Method && def.is(flag::STATIC) {
                is_static = true;
            }
            let class = if def.kind.type_like() {
                Some(DefRef { file, def: at })
            } else if def.kind == DefKind::Method && def.receiver.is_some() {
                self.enclosing_type(file, at, levels)
            } else {
                None
            };
            if let Some(class) = class {
                let found = self.instance_member(class, is_static, Derivation::Exact, name, levels);
                if !found.is_empty() {
                    return found;
                }
                let found = self.class_member(class, name, levels);
                if !found.is_empty() {
                    return found;
                }
            }
            at = def.parent;
        }
        ValueSet::default()
    }

    /// Whether an expression is a variable that an import binds.
    pub(super) fn is_import(&self, file: FileId, expr: ExprId) -> bool {
        let facts = &self.file(file).facts;
        matches!(facts.expr(expr), SourceExpr::Var(v) if matches!(facts.vars[v].what, VarKind::Import(_)))
    }
}
