//! Elements of lists, maps and objects: by name, by position, or any of them.

use super::eval::{Eval, EvalQuestion};
use super::value::{DefRef, Derivation, FileId, InternedStr, PossibleValue, ValueSet};
use crate::facts::{ExprId, ItemKey, ListKind, ROOT, SourceExpr};

#[cfg(test)]
mod tests;

impl<'p> Eval<'p> {
    /// The values under a name: `e["name"]`.
    pub fn at(&mut self, base: &ValueSet, name: InternedStr, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        for (value, how) in &base.values {
            let found = match value {
                PossibleValue::Object(file, expr) => self.object_at(*file, *expr, Some(name), levels),
                PossibleValue::Typed(..) => self.element(&ValueSet::one(*value, *how), levels),
                PossibleValue::Keywords(gid) => (*self.solve(EvalQuestion::Keyword(*gid, name), levels)).clone(),
                PossibleValue::Module(_) | PossibleValue::Class(_) | PossibleValue::Func(_) => {
                    self.member_of_value(*value, *how, name, levels)
                }
                PossibleValue::Instance(class, _) => {
                    let method = match self.words_of(*class).item {
                        Some(item) => self.find_method(*class, item, levels),
                        None => None,
                    };
                    match method {
                        Some(method) => (*self.solve(EvalQuestion::Result(method), levels)).clone(),
                        None => self.member_of_value(*value, *how, name, levels),
                    }
                }
                _ => ValueSet::default(),
            };
            set.join_as(&found, *how);
        }
        set
    }

    /// The values at a position: `e[3]`.
    pub fn at_index(&mut self, base: &ValueSet, index: u32, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        for (value, how) in &base.values {
            let found = match value {
                PossibleValue::Object(file, expr) => self.object_index(*file, *expr, index, levels),
                PossibleValue::Rest(gid, place) => {
                    (*self.solve(EvalQuestion::Passed(*gid, u32::from(*place).saturating_add(index)), levels)).clone()
                }
                PossibleValue::Typed(file, expr) => self.typed_index(*file, *expr, index, levels),
                _ => self.element(&ValueSet::one(*value, *how), levels),
            };
            set.join_as(&found, *how);
        }
        set
    }

    /// The values of any element: `e[i]`, `for x in e`.
    pub fn element(&mut self, base: &ValueSet, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        for (value, how) in &base.values {
            let found = match value {
                PossibleValue::Object(file, expr) => self.object_at(*file, *expr, None, levels),
                PossibleValue::Generator(gid) => self.yields(*gid, levels),
                PossibleValue::Typed(file, expr) => self.typed_element(*file, *expr, levels),
                PossibleValue::Rest(gid, place) => {
                    (*self.solve(EvalQuestion::Rest(*gid, u32::from(*place)), levels)).clone()
                }
                PossibleValue::Keywords(gid) => (*self.solve(EvalQuestion::Rest(*gid, 0), levels)).clone(),
                PossibleValue::Instance(class, _) => self.iterate(*class, levels),
                PossibleValue::Text => ValueSet::one(PossibleValue::Text, Derivation::Exact),
                _ => ValueSet::default(),
            };
            set.join_as(&found, *how);
        }
        set
    }

    /// The elements of an iteration over an instance: the results of its iterator.
    pub(super) fn iterate(&mut self, class: DefRef, levels: u8) -> ValueSet {
        let words = self.words_of(class);
        let (Some(iterator), Some(next), Some(item)) = (words.iterator, words.next, words.item) else {
            return ValueSet::default();
        };
        if let Some(method) = self.find_method(class, iterator, levels) {
            let iterator = self.solve(EvalQuestion::Result(method), levels);
            let mut set = ValueSet::default();
            for (value, how) in &iterator.values {
                match value {
                    PossibleValue::Instance(of, _) => {
                        if let Some(next) = self.find_method(*of, next, levels) {
                            set.join_as(&self.solve(EvalQuestion::Result(next), levels).clone(), *how);
                        }
                    }
                    other => {
                        let other = ValueSet::one(*other, *how);
                        let found = self.deeper(levels, |e, levels| e.element(&other, levels));
                        set.join_as(&found, *how);
                    }
                }
            }
            return set;
        }
        match self.find_method(class, item, levels) {
            Some(method) => (*self.solve(EvalQuestion::Result(method), levels)).clone(),
            None => ValueSet::default(),
        }
    }

    /// Values in a list, map or object literal; with a name, only the values that can be under it. The items are
    /// memoized, because lists that are built from one another (`x = append(x, …)`, many times) refer to one another.
    pub fn object_at(&mut self, file: FileId, expr: ExprId, name: Option<InternedStr>, levels: u8) -> ValueSet {
        let mut set = (*self.solve(EvalQuestion::Held(file, expr, name), levels)).clone();
        let of = PossibleValue::Object(file, expr);
        if let Some(name) = name {
            set.join(&self.written_from_outside(of, name, levels).clone());
        }
        let any = self.link.words.element;
        set.join(&self.written_from_outside(of, any, levels).clone());
        if name.is_none() {
            set.join(&self.all_written(of, levels));
        }
        set
    }

    /// The items of the literal itself, without later writes.
    pub(super) fn items_at(&mut self, file: FileId, expr: ExprId, name: Option<InternedStr>, levels: u8) -> ValueSet {
        let here = self.file(file);
        let owner = ROOT;
        let mut set = ValueSet::default();
        match here.facts.expr(expr) {
            SourceExpr::Collection(_, range) => {
                for item in here.facts.items(range) {
                    match (item.key, name) {
                        (ItemKey::Name(key), Some(name)) if here.sym(key) != name => {}
                        (ItemKey::Spread, _) => {
                            let spread = self.expr(file, item.value, owner, levels);
                            set.join(&self.taken(&spread, name, levels));
                        }
                        _ => set.join(&self.expr(file, item.value, owner, levels)),
                    }
                }
            }
            SourceExpr::ListOf(of) => set.join(&self.expr(file, of, owner, levels)),
            SourceExpr::Joined(range) => {
                for item in here.facts.items(range) {
                    let value = self.expr(file, item.value, owner, levels);
                    if item.key == ItemKey::Spread {
                        set.join(&self.taken(&value, name, levels));
                    } else {
                        set.join(&value);
                    }
                }
            }
            _ => {}
        }
        set
    }

    /// The value under a name, or any element.
    pub(super) fn taken(&mut self, from: &ValueSet, name: Option<InternedStr>, levels: u8) -> ValueSet {
        match name {
            Some(name) => self.at(from, name, levels),
            None => self.element(from, levels),
        }
    }

    /// The values at a position of a list, tuple or map literal.
    pub(super) fn object_index(&mut self, file: FileId, expr: ExprId, index: u32, levels: u8) -> ValueSet {
        let here = self.file(file);
        if let SourceExpr::Collection(kind, range) = here.facts.expr(expr) {
            if kind == ListKind::Map {
                let numbered = self.program.find(&format!("#{index}"));
                // `InternedStr::MAX` is a name that no entry has.
                let name = numbered.or_else(|| self.program.find(&index.to_string())).unwrap_or(InternedStr::MAX);
                return self.object_at(file, expr, Some(name), levels);
            }
            let items = here.facts.items(range);
            if items.iter().take(index as usize + 1).all(|item| item.key == ItemKey::Next) {
                let mut set = match items.get(index as usize) {
                    Some(item) => self.deeper(levels, |e, levels| e.expr(file, item.value, ROOT, levels)),
                    None => ValueSet::default(),
                };
                let any = self.link.words.element;
                set.join(&self.written_from_outside(PossibleValue::Object(file, expr), any, levels).clone());
                return set;
            }
        }
        self.object_at(file, expr, None, levels)
    }

    /// The name and the arguments of a generic type expression; empty for any other expression.
    pub(super) fn type_args(&self, file: FileId, expr: ExprId) -> (&'p str, &'p [crate::facts::ExprItem]) {
        let here = self.file(file);
        let SourceExpr::Generic(of, range) = here.facts.expr(expr) else { return ("", &[]) };
        let name = match here.facts.expr(of) {
            SourceExpr::Free(name) | SourceExpr::Member(_, name) => here.facts.name(name),
            SourceExpr::Var(var) => here.facts.name(here.facts.vars[var].name),
            _ => "",
        };
        (name, here.facts.items(range))
    }

    /// Whether a type expression is one like `type[X]`, whose value is a class, not an instance.
    pub(super) fn is_type_of(&self, file: FileId, expr: ExprId) -> bool {
        let names = self.file(file).rules.types_of_classes;
        !names.is_empty() && names.contains(&self.type_args(file, expr).0)
    }

    /// The `X` of `type[X]`.
    pub(super) fn classes_of(&mut self, file: FileId, expr: ExprId, levels: u8) -> ValueSet {
        self.deeper(levels, |e, levels| {
            let mut set = ValueSet::default();
            for item in e.type_args(file, expr).1 {
                set.join(&e.expr(file, item.value, ROOT, levels));
            }
            set.values.retain(|(v, _)| matches!(v, PossibleValue::Class(_) | PossibleValue::External(_)));
            set
        })
    }

    /// Instances of a type argument.
    pub(super) fn type_arg(&mut self, file: FileId, item: crate::facts::ExprItem, levels: u8) -> ValueSet {
        self.deeper(levels, |e, levels| {
            let types = e.expr(file, item.value, ROOT, levels);
            e.instances(&types, false, levels)
        })
    }

    /// The element of a `List<T>`, the value of a `Map<K, V>`.
    pub fn typed_element(&mut self, file: FileId, expr: ExprId, levels: u8) -> ValueSet {
        let (name, args) = self.type_args(file, expr);
        match (name, args) {
            (_, []) => ValueSet::default(),
            ("Result", [first, ..]) => self.type_arg(file, *first, levels),
            ("()", _) => {
                let mut set = ValueSet::default();
                for arg in args {
                    set.join(&self.type_arg(file, *arg, levels));
                }
                set
            }
            (_, [.., last]) => self.type_arg(file, *last, levels),
        }
    }

    /// The element of a generic type at a position, which matters for tuples.
    pub(super) fn typed_index(&mut self, file: FileId, expr: ExprId, index: u32, levels: u8) -> ValueSet {
        let (name, args) = self.type_args(file, expr);
        if matches!(name, "()" | "tuple" | "Tuple") {
            return match args.get(index as usize) {
                Some(arg) => self.type_arg(file, *arg, levels),
                None => ValueSet::default(),
            };
        }
        self.typed_element(file, expr, levels)
    }

    /// The results of promises and similar types; other values are their own result.
    pub fn awaited(&mut self, base: &ValueSet, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        for (value, how) in &base.values {
            match value {
                PossibleValue::Typed(file, expr) => {
                    let found = self.typed_element(*file, *expr, levels);
                    set.join_as(&found, *how);
                }
                other => set.add(*other, *how),
            }
        }
        set
    }
}
