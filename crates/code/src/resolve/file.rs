//! A file as the resolver uses it: its facts with precomputed lookup tables.

use super::value::InternedStr;
use crate::build::Build;
use crate::facts::{
    ArgKind, BindId, BindTarget, CallId, DefId, DefKind, ExprId, FileFacts, ItemKey, ListKind, NameId, ROOT, Return,
    ReturnCondition, SourceExpr, VarId, VarKind, flag,
};
use crate::ids::{Id, IdVec};
use crate::languages::rules::LanguageRules;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::sync::Arc;

/// The facts of a file, with lookup tables.
pub struct ProgramFile {
    pub path: Arc<str>,
    /// Folder of the path, without a trailing slash; empty at the root.
    pub folder: Arc<str>,
    pub facts: Arc<FileFacts>,
    /// The rules of its language.
    pub(crate) rules: &'static LanguageRules,
    /// The program's symbols for the names of the file.
    pub syms: IdVec<NameId, InternedStr>,
    binds: ListsById<VarId, BindId>,
    returns: ListsById<DefId, usize>,
    /// Variables of the file, its classes and namespaces.
    members: FxHashMap<(DefId, InternedStr), VarId>,
    /// Writes of methods to fields of their own object: class, field, value.
    own_fields: OwnFields,
    /// Binds that write into an object other than `self`.
    pub writes: Vec<BindId>,
    /// Expressions that construct an object and set its fields.
    pub constructs: Vec<ExprId>,
    /// The innermost class that contains a definition, or the class itself.
    pub class_of: IdVec<DefId, Option<DefId>>,
    /// Definitions by parent.
    pub children: ListsById<DefId, DefId>,
    pub exports: FxHashMap<InternedStr, SmallVec<[ExprId; 1]>>,
    /// Contexts of functions and object literals.
    contexts: FxHashMap<Written, SyntacticContext>,
    /// The build in which the file is analyzed, unless it is the usual one: the nearest that includes it.
    build: Option<Box<dyn Build>>,
}

/// A function or an object literal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Written {
    Function(DefId),
    Object(ExprId),
}

/// The syntactic position of a function or an object literal, as far as it determines an expected type.
#[derive(Clone, Copy)]
pub enum SyntacticContext {
    /// An argument of a call, by position.
    Argument(CallId, usize),
    /// A return value of a function.
    Returned(DefId),
    /// A value assigned to a variable with a declared type.
    Assigned(VarId),
    /// The value under a name in an object literal.
    Item(ExprId, NameId),
}

/// Writes to fields, by class and name: each with the writing method.
type OwnFields = FxHashMap<(DefId, InternedStr), SmallVec<[(DefId, ExprId); 2]>>;

/// Lists of values by id, stored in two arrays.
pub struct ListsById<I, T> {
    starts: Vec<u32>,
    values: Vec<T>,
    id: PhantomData<fn(I)>,
}

impl<I: Id, T: Copy> ListsById<I, T> {
    fn new(rows: usize, pairs: impl Iterator<Item = (I, T)> + Clone) -> ListsById<I, T> {
        let mut starts = vec![0u32; rows + 1];
        for (row, _) in pairs.clone() {
            starts[row.index() + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let any = pairs.clone().next();
        let mut values = any.map_or_else(Vec::new, |(_, value)| vec![value; starts[rows] as usize]);
        for (row, value) in pairs {
            let next = &mut next[row.index()];
            values[*next as usize] = value;
            *next += 1;
        }
        ListsById { starts, values, id: PhantomData }
    }

    /// The values of one list, in the order in which they were added.
    pub fn of(&self, row: I) -> &[T] {
        &self.values[self.starts[row.index()] as usize..self.starts[row.index() + 1] as usize]
    }
}

impl ProgramFile {
    /// Computes the lookup tables. `syms` contains the program's symbol for each name of the facts.
    pub fn new(path: &str, facts: Arc<FileFacts>, syms: IdVec<NameId, InternedStr>) -> ProgramFile {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let class_of = class_of(&facts);
        let binds = ListsById::new(
            facts.vars.len(),
            facts.binds.iter_ids().filter_map(|(bind, b)| match b.target {
                BindTarget::Var(var) => Some((var, bind)),
                _ => None,
            }),
        );
        let returns = ListsById::new(facts.defs.len(), facts.returns.iter().enumerate().map(|(i, r)| (r.owner, i)));
        let children = ListsById::new(facts.defs.len(), facts.defs.iter_ids().skip(1).map(|(def, d)| (d.parent, def)));
        let mut members = FxHashMap::default();
        for (id, var) in facts.vars.iter_ids() {
            let owner = facts.def(var.owner).kind;
            if !owner.callable() && var.what != VarKind::TypeParam {
                members.insert((var.owner, syms[var.name]), id);
            }
        }
        let mut own_fields = OwnFields::default();
        let mut writes = Vec::new();
        for (index, bind) in facts.binds.iter_ids() {
            match bind.target {
                BindTarget::Member(of, name) => {
                    let class = class_of[bind.owner].or_else(|| constructor_function(&facts, bind.owner));
                    if let Some(class) = class
                        && is_self(&facts, of, bind.owner)
                    {
                        own_fields.entry((class, syms[name])).or_default().push((bind.owner, bind.value));
                    } else {
                        writes.push(index);
                    }
                }
                BindTarget::At(..) | BindTarget::Element(_) => writes.push(index),
                BindTarget::Var(_) | BindTarget::Free(_) => {}
            }
        }
        let mut exports: FxHashMap<InternedStr, SmallVec<[ExprId; 1]>> = FxHashMap::default();
        for export in &facts.exports {
            exports.entry(syms[export.name]).or_default().push(export.value);
        }
        let constructs = facts.exprs.iter_ids().filter(|(_, e)| matches!(e, SourceExpr::Construct(..)));
        let constructs = constructs.map(|(expr, _)| expr).collect();
        let contexts = contexts(&facts);
        let build = other_build(&facts);
        ProgramFile {
            path: path.into(),
            folder: folder.into(),
            rules: facts.language.rules(),
            facts,
            syms,
            binds,
            returns,
            members,
            own_fields,
            writes,
            constructs,
            class_of,
            children,
            exports,
            contexts,
            build,
        }
    }

    /// Whether the file is part of the build in which another one is analyzed.
    pub fn is_built_with(&self, other: &ProgramFile) -> bool {
        match &self.facts.build {
            Some(constraint) => {
                constraint.holds(other.build.as_deref().unwrap_or(self.facts.language.get().usual_build()))
            }
            None => true,
        }
    }

    /// Whether the file is part of the usual build.
    pub fn is_in_usual_build(&self) -> bool {
        let usual = self.facts.language.get().usual_build();
        self.facts.build.as_ref().is_none_or(|constraint| constraint.holds(usual))
    }

    /// Whether a definition is a test or is inside one; whether the whole file is a test file does not matter.
    pub fn is_in_test(&self, def: DefId) -> bool {
        let mut at = def;
        while at != ROOT && !self.facts.def(at).is(flag::TEST) {
            at = self.facts.def(at).parent;
        }
        at != ROOT
    }

    /// The program's symbol for a name of the file.
    pub fn sym(&self, name: NameId) -> InternedStr {
        self.syms[name]
    }

    /// The values that are assigned to a variable.
    pub fn binds(&self, var: VarId) -> impl Iterator<Item = ExprId> + '_ {
        self.binds.of(var).iter().map(|bind| self.facts.binds[*bind].value)
    }

    /// What a function returns and yields.
    pub fn returns(&self, def: DefId) -> impl Iterator<Item = &Return> + '_ {
        self.returns.of(def).iter().map(|at| &self.facts.returns[*at])
    }

    /// Parameters that a function returns unchanged, by position and variable.
    pub fn returned_parameters(&self, def: DefId) -> impl Iterator<Item = (&Return, usize, VarId)> + '_ {
        self.returns(def).filter(|returned| !returned.yields).filter_map(move |returned| {
            let SourceExpr::Var(var) = self.facts.expr(returned.value) else { return None };
            let found = &self.facts.vars[var];
            match found.what {
                VarKind::Param(place) if found.owner == def && !found.assigned => {
                    Some((returned, usize::from(place), var))
                }
                _ => None,
            }
        })
    }

    /// The parameter that decides which of a function's returns is reached.
    pub fn deciding_parameter(&self, def: DefId) -> Option<NameId> {
        self.returns(def).find_map(|found| match found.when {
            ReturnCondition::Given(name) | ReturnCondition::Missing(name) => Some(name),
            ReturnCondition::Always => None,
        })
    }

    /// Whether a return is reached, given whether the call passes the parameter of `deciding_parameter`, if known.
    pub fn reaches(&self, def: DefId, returned: &Return, given: Option<bool>) -> bool {
        let Some((on, given)) = given.and_then(|given| Some((self.deciding_parameter(def)?, given))) else {
            return true;
        };
        match returned.when {
            ReturnCondition::Given(name) => name != on || given,
            ReturnCondition::Missing(name) => name != on || !given,
            ReturnCondition::Always => true,
        }
    }

    /// A variable of the file (`ROOT`), of a class or of a namespace.
    pub fn member(&self, owner: DefId, name: InternedStr) -> Option<VarId> {
        self.members.get(&(owner, name)).copied()
    }

    /// The values that methods of a class write to a field of their own object.
    pub fn own_field(&self, class: DefId, name: InternedStr) -> &[(DefId, ExprId)] {
        self.own_fields.get(&(class, name)).map_or(&[], |found| found.as_slice())
    }

    /// The context of a function.
    pub fn context_of(&self, function: DefId) -> Option<SyntacticContext> {
        self.contexts.get(&Written::Function(function)).copied()
    }

    /// The context of an object literal.
    pub fn context_of_object(&self, object: ExprId) -> Option<SyntacticContext> {
        self.contexts.get(&Written::Object(object)).copied()
    }

    /// The variables of the file itself, by name.
    pub fn top_members(&self) -> impl Iterator<Item = (InternedStr, VarId)> + '_ {
        self.members.iter().filter(|((owner, _), _)| *owner == ROOT).map(|((_, name), var)| (*name, *var))
    }

    /// The function that a parameter belongs to, with its position.
    pub fn param(&self, var: VarId) -> Option<(DefId, usize)> {
        let found = &self.facts.vars[var];
        match found.what {
            VarKind::Param(place) | VarKind::Rest(place) => Some((found.owner, place as usize)),
            VarKind::Keywords => {
                let place = self.facts.def(found.owner).params.iter().position(|p| *p == var)?;
                Some((found.owner, place))
            }
            _ => None,
        }
    }
}

fn other_build(facts: &FileFacts) -> Option<Box<dyn Build>> {
    let language = facts.language.get();
    let constraint = facts.build.as_ref().filter(|constraint| !constraint.holds(language.usual_build()))?;
    language.nearest_build(constraint)
}

fn contexts(facts: &FileFacts) -> FxHashMap<Written, SyntacticContext> {
    let mut found = FxHashMap::default();
    for (call, entry) in facts.calls.iter_ids() {
        for (place, arg) in facts.args(entry.args).iter().enumerate() {
            match arg.how {
                ArgKind::Place => put_context(facts, arg.value, SyntacticContext::Argument(call, place), &mut found),
                // Positions after a spread are unknown.
                ArgKind::Spread => break,
                _ => {}
            }
        }
    }
    for returned in facts.returns.iter().filter(|returned| !returned.yields) {
        put_context(facts, returned.value, SyntacticContext::Returned(returned.owner), &mut found);
    }
    let typed = |var: VarId| facts.vars[var].ty.is_some();
    for bind in &facts.binds {
        if let BindTarget::Var(var) = bind.target
            && typed(var)
        {
            put_context(facts, bind.value, SyntacticContext::Assigned(var), &mut found);
        }
    }
    for (var, entry) in facts.vars.iter_ids() {
        if let VarKind::Def(def) = entry.what
            && entry.ty.is_some()
        {
            found.insert(Written::Function(def), SyntacticContext::Assigned(var));
        }
    }
    found
}

/// Records the context of the functions and object literals in a value.
fn put_context(
    facts: &FileFacts,
    value: ExprId,
    context: SyntacticContext,
    found: &mut FxHashMap<Written, SyntacticContext>,
) {
    match facts.expr(value) {
        SourceExpr::Def(def) if facts.def(def).kind.callable() => {
            found.insert(Written::Function(def), context);
        }
        SourceExpr::Collection(ListKind::Map, range) => {
            found.insert(Written::Object(value), context);
            for item in facts.items(range) {
                if let ItemKey::Name(name) = item.key {
                    put_context(facts, item.value, SyntacticContext::Item(value, name), found);
                }
            }
        }
        SourceExpr::Either(range) => {
            facts.items(range).iter().for_each(|item| put_context(facts, item.value, context, found))
        }
        _ => {}
    }
}

/// Whether an expression is the receiver of the enclosing method.
pub fn is_self(facts: &FileFacts, expr: ExprId, owner: DefId) -> bool {
    match facts.expr(expr) {
        SourceExpr::This => true,
        SourceExpr::Var(var) => {
            let found = &facts.vars[var];
            if found.what != VarKind::Param(0) {
                return false;
            }
            let method = facts.def(found.owner);
            // In a function nested in the method, it is still the same object.
            let _ = owner;
            method.kind == DefKind::Method && method.is(flag::TAKES_SELF) && !method.is(flag::CLASS_METHOD)
        }
        _ => false,
    }
}

/// The function that acts as a constructor when called with `new`, in languages where every function may.
pub fn constructor_function(facts: &FileFacts, owner: DefId) -> Option<DefId> {
    if !facts.language.rules().open_objects {
        return None;
    }
    let mut at = owner;
    while at != ROOT {
        let def = facts.def(at);
        if def.kind.callable() && !def.is(flag::ARROW) {
            return def.receiver.is_none().then_some(at);
        }
        at = def.parent;
    }
    None
}

/// The innermost type around each definition, itself included.
fn class_of(facts: &FileFacts) -> IdVec<DefId, Option<DefId>> {
    let mut found: IdVec<DefId, Option<DefId>> = vec![None; facts.defs.len()].into();
    for (index, def) in facts.defs.iter_ids().skip(1) {
        let own = matches!(def.kind, DefKind::Class | DefKind::Struct | DefKind::Enum | DefKind::Interface);
        // A parent precedes its children.
        found[index] = if own { Some(index) } else { found[def.parent] };
    }
    found
}
