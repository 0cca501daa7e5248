//! Links the facts of all files: resolves imports, calls, bases and references, each with its derivation.
//!
//! Calls are resolved in rounds. The first uses only the text: scopes, imports, declared types, constructors. Each
//! further one also uses the results of the previous one: the arguments that reach a parameter, the classes that a
//! method runs on, the values written into objects. The number of rounds is fixed.

mod builtin;
pub(crate) mod call;
mod container;
mod context;
pub(crate) mod deps;
pub(crate) mod eval;
mod file;
mod flow;
mod folders;
pub(crate) mod imports;
pub(crate) mod link;
mod member;
pub mod program;
mod reachable;
mod rounds;
mod stars;
#[cfg(test)]
pub(crate) mod tests;
pub mod value;

use crate::facts::{
    BaseKind, CallId, CallKind, DefId, DefKind, ExprId, ImportId, ImportKind, NameId, ROOT, SourceExpr, flag,
};
use deps::{ChangedDependencies, DependencyId, TableEntry};
use eval::{Eval, LEVELS};
pub use file::ProgramFile;
pub use program::Program;
use rounds::{CallClass, CallResult};
pub use rounds::{Resolver, resolve};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;
use value::InternedStr;
pub use value::{DefRef, Derivation, ExternalId, FileId, PossibleValue};

/// The resolved links of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLinks {
    pub calls: Vec<CallLink>,
    pub imports: Vec<ImportLink>,
    pub bases: Vec<BaseLink>,
    pub uses: Vec<UseLink>,
    /// Methods written outside their types, with the types.
    pub receivers: Vec<(DefId, DefRef)>,
    /// Number of calls with an unknown target, by the definition that contains them.
    pub unresolved: Vec<(DefId, u32)>,
    /// The same by called name and line, if the program has a function or method of that name.
    pub unresolved_names: Vec<(Box<str>, u32)>,
    pub counts: CallCounts,
    /// The file is part of the tests.
    pub is_test: bool,
}

/// The number of calls of a file, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls in the text of the file, without implicit ones.
    pub calls: u32,
    pub resolved: u32,
    /// Calls of builtins, of methods of containers and strings, of symbols outside the program.
    pub outside: u32,
    pub unresolved: u32,
}

/// The target of a link: a definition of the program, or a name outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkTarget {
    Def(DefRef),
    /// See `Program::external_path`.
    External(ExternalId),
}

/// A call with one of its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLink {
    pub call: CallId,
    pub to: LinkTarget,
    pub how: Derivation,
}

/// An import with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportLink {
    pub import: ImportId,
    pub to: LinkTarget,
}

/// A type with one of its bases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseLink {
    pub class: DefId,
    pub to: LinkTarget,
    pub how: BaseKind,
    pub line: u32,
    /// Derived from its methods, not declared (Go).
    pub structural: bool,
}

/// A name that is used without a call, with the symbol that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UseLink {
    pub owner: DefId,
    pub to: DefRef,
    pub line: u32,
    pub how: Derivation,
    /// Reading it calls it: a property.
    pub runs: bool,
}

// --- the result ---

/// The targets of a use, with the dependencies of that result.
type Used = (SmallVec<[(DefRef, Derivation, bool); 1]>, Arc<[DependencyId]>);

/// The dependencies of a file's links.
#[derive(Clone, Default)]
struct Linked {
    /// Dependencies of everything except the calls.
    deps: Box<[DependencyId]>,
    uses: Box<[Used]>,
}

/// Computes the links of a file. `known` contains the previous dependencies and the changes since.
fn links(
    eval: &mut Eval<'_>,
    id: FileId,
    found: &[CallResult],
    known: Option<(&Linked, &ChangedDependencies)>,
) -> (FileLinks, Linked) {
    let file = eval.file(id);
    let mut with: Vec<Arc<[DependencyId]>> = vec![[id.into()].into()];
    let mut links = FileLinks { is_test: eval.link.is_test_file(id), ..FileLinks::default() };
    let mut unresolved: FxHashMap<DefId, u32> = FxHashMap::default();
    for ((index, call), found) in file.facts.calls.iter_ids().zip(found) {
        if call.how != CallKind::Implicit {
            links.counts.calls += 1;
        }
        match found.class {
            CallClass::Resolved => links.counts.resolved += u32::from(call.how != CallKind::Implicit),
            CallClass::Outside => links.counts.outside += 1,
            CallClass::Silent => {}
            CallClass::Unresolved => {
                if let Some(only) = eval.traced_in(&mut with, |e| unique_name(e, id, index)) {
                    links.calls.push(CallLink { call: index, to: LinkTarget::Def(only), how: Derivation::UniqueName });
                }
                links.counts.unresolved += 1;
                *unresolved.entry(call.owner).or_default() += 1;
                if let Some(name) = eval.traced_in(&mut with, |e| called_name(e, id, index)) {
                    links.unresolved_names.push((name.into(), call.line));
                }
            }
        }
        let derivations = eval.traced_in(&mut with, |e| e.reported_derivations(&found.targets));
        for ((value, _), how) in found.targets.iter().zip(derivations) {
            let to = match value {
                PossibleValue::Func(gid) | PossibleValue::Method(gid, _) | PossibleValue::Class(gid) => {
                    LinkTarget::Def(*gid)
                }
                PossibleValue::External(path) => LinkTarget::External(*path),
                _ => continue,
            };
            links.calls.push(CallLink { call: index, to, how });
        }
    }
    links.unresolved = unresolved.into_iter().collect();
    links.unresolved.sort_unstable();
    links.unresolved_names.sort_unstable();
    links.unresolved_names.dedup();
    for (index, import) in file.facts.imports.iter_ids() {
        let owner = DefRef { file: id, def: import.owner };
        let to = eval.traced_in(&mut with, |e| {
            import_link(e, id, index).filter(|to| !matches!(to, LinkTarget::Def(to) if !e.can_depend(owner, *to)))
        });
        if let Some(to) = to {
            links.imports.push(ImportLink { import: index, to });
        }
    }
    for class in file.facts.defs.ids() {
        let gid = DefRef { file: id, def: class };
        if let Some(of) = eval.link.receiver(gid) {
            links.receivers.push((class, of));
        }
        for base in eval.link.bases(gid).iter().filter(|base| eval.can_depend(gid, **base)) {
            let (how, line) = eval.link.base_kinds.get(&(gid, *base)).copied().unwrap_or((BaseKind::Extends, 0));
            links.bases.push(BaseLink { class, to: LinkTarget::Def(*base), how, line, structural: false });
        }
        for base in eval.link.outside_bases(gid) {
            let to = LinkTarget::External(base.path);
            links.bases.push(BaseLink { class, to, how: base.how, line: base.line, structural: false });
        }
    }
    let mut seen: FxHashSet<(DefId, DefRef)> = FxHashSet::default();
    let mut uses: Vec<Used> = Vec::new();
    for (at, used) in file.facts.uses.iter().enumerate() {
        let before = known.and_then(|(linked, changed)| linked.uses.get(at).filter(|(_, deps)| !changed.hits(deps)));
        let (values, deps) = match before {
            Some(known) => known.clone(),
            None => eval.traced(|e| {
                let mut values = e.ask(|e| e.used(id, used.expr, used.owner)).0;
                values.retain(|(to, ..)| e.can_depend(DefRef { file: id, def: used.owner }, *to));
                values
            }),
        };
        for (to, how, runs) in &values {
            if seen.insert((used.owner, *to)) || *runs {
                links.uses.push(UseLink { owner: used.owner, to: *to, line: used.line, how: *how, runs: *runs });
            }
        }
        if eval.is_traced() {
            uses.push((values, deps));
        }
    }
    let deps = deps::union(with.iter().chain(uses.iter().map(|(_, deps)| deps)));
    (links, Linked { deps, uses: uses.into() })
}

/// The called name, if the program has a function or method of that name.
fn called_name<'p>(eval: &Eval<'p>, file: FileId, call: CallId) -> Option<&'p str> {
    let here = eval.file(file);
    let facts = &here.facts;
    let (SourceExpr::Member(_, name) | SourceExpr::Free(name)) = facts.expr(facts.calls[call].callee) else {
        return None;
    };
    let (family, sym) = (facts.language.family(), here.sym(name));
    eval.note(TableEntry::Methods(family, sym));
    eval.note(TableEntry::Function(family, sym));
    let known = eval.link.methods_named.contains_key(&(family, sym)) || eval.link.has_function(family, sym);
    known.then(|| facts.name(name))
}

/// The target of a call of a method that only one type of the program has and that no builtin type is likely to have.
fn unique_name(eval: &Eval<'_>, file: FileId, call: CallId) -> Option<DefRef> {
    let facts = &eval.file(file).facts;
    let call = &facts.calls[call];
    let SourceExpr::Member(of, name) = facts.expr(call.callee) else { return None };
    if facts.expr(of) == SourceExpr::Super || builtin::is_common_method(facts.name(name)) {
        return None;
    }
    let sym = eval.file(file).sym(name);
    eval.note(TableEntry::Methods(facts.language.family(), sym));
    let methods = eval.link.methods_named.get(&(facts.language.family(), sym))?;
    let from = DefRef { file, def: call.owner };
    let mut written = methods
        .iter()
        .filter(|(gid, flags)| flags & flag::DECLARED == 0 && eval.can_depend(from, *gid))
        .map(|(gid, _)| *gid);
    let (Some(only), None) = (written.next(), written.next()) else { return None };
    let def = eval.def(only);
    let own = usize::from(def.is(flag::TAKES_SELF));
    let args = call.args.len as usize;
    let fits = args <= def.params.len().saturating_sub(own) || def.is(flag::VARIADIC);
    fits.then_some(only)
}

fn import_link(eval: &mut Eval<'_>, file: FileId, import: ImportId) -> Option<LinkTarget> {
    let (target, _) = eval.ask(|e| e.import_target(file, import, LEVELS));
    let entry = &eval.file(file).facts.imports[import];
    match target? {
        PossibleValue::Module(of) => {
            // If the imported symbol of a package or folder is a module of it, the import is of that module.
            if let ImportKind::Symbol(_) = entry.what {
                let (found, _) = eval.ask(|e| e.imported(file, import, LEVELS));
                for (value, _) in &found.values {
                    if let PossibleValue::Module(inner) = value {
                        return Some(LinkTarget::Def(DefRef { file: *inner, def: ROOT }));
                    }
                }
            }
            Some(LinkTarget::Def(DefRef { file: of, def: ROOT }))
        }
        PossibleValue::Class(gid) | PossibleValue::Namespace(gid) | PossibleValue::Func(gid) => {
            Some(LinkTarget::Def(DefRef { file: gid.file, def: ROOT }))
        }
        PossibleValue::External(path) => Some(LinkTarget::External(path)),
        PossibleValue::Folder(_) | PossibleValue::Package(_) => {
            let (found, _) = eval.ask(|e| e.imported(file, import, LEVELS));
            found.values.iter().find_map(|(value, _)| match value {
                PossibleValue::Module(inner) => Some(LinkTarget::Def(DefRef { file: *inner, def: ROOT })),
                PossibleValue::Class(gid) | PossibleValue::Func(gid) => {
                    Some(LinkTarget::Def(DefRef { file: gid.file, def: ROOT }))
                }
                _ => None,
            })
        }
        _ => None,
    }
}

impl Eval<'_> {
    /// The symbols that an expression names, without following values: for references.
    fn used(&mut self, file: FileId, expr: ExprId, owner: DefId) -> SmallVec<[(DefRef, Derivation, bool); 1]> {
        let here = self.file(file);
        let mut out = SmallVec::new();
        let (of, var) = match here.facts.expr(expr) {
            SourceExpr::Var(var) => (None, Some(var)),
            SourceExpr::Member(of, name) => (Some((of, here.sym(name))), None),
            SourceExpr::Free(_) => (None, None),
            _ => return out,
        };
        if let Some(var) = var {
            // Locals and parameters are not symbols.
            let found = &here.facts.vars[var];
            if here.facts.def(found.owner).kind.callable()
                && !matches!(found.what, crate::facts::VarKind::Def(_) | crate::facts::VarKind::Import(_))
            {
                return out;
            }
            if let Some(def) = self.symbol_of(file, found.owner, found.name) {
                out.push((def, Derivation::Exact, false));
                return out;
            }
        }
        let values = match of {
            Some((base, name)) => {
                let base = self.expr(file, base, owner, LEVELS);
                for (value, how) in &base.values {
                    match value {
                        PossibleValue::Instance(class, _) => {
                            if let Some(method) = self.find_method(*class, name, LEVELS)
                                && self.def(method).is(flag::GETTER)
                            {
                                out.push((method, (*how).max(Derivation::Type), true));
                            }
                        }
                        PossibleValue::Module(of) => {
                            if let Some(def) = self.symbol_named(*of, ROOT, name) {
                                out.push((def, Derivation::Import, false));
                            }
                        }
                        PossibleValue::Class(class) => {
                            if let Some(def) = self.symbol_named(class.file, class.def, name) {
                                out.push((def, (*how).max(Derivation::Import), false));
                            }
                        }
                        _ => {}
                    }
                }
                if !out.is_empty() {
                    return out;
                }
                let mut set = value::ValueSet::default();
                for (value, how) in &base.values {
                    if !matches!(value, PossibleValue::Instance(..) | PossibleValue::Object(..)) {
                        set.join(&self.member_of_value(*value, *how, name, LEVELS));
                    }
                }
                set
            }
            None => self.expr(file, expr, owner, LEVELS),
        };
        for (value, how) in &values.values {
            if let PossibleValue::Func(gid) | PossibleValue::Class(gid) = value
                && self.def(*gid).kind != DefKind::Lambda
            {
                out.push((*gid, *how, false));
            }
        }
        if out.len() > 3 {
            out.clear();
        }
        out
    }

    /// The module variable or field that a name refers to.
    fn symbol_of(&self, file: FileId, owner: DefId, name: NameId) -> Option<DefRef> {
        let here = self.file(file);
        self.symbol_named(file, owner, here.sym(name))
    }

    fn symbol_named(&self, file: FileId, owner: DefId, name: InternedStr) -> Option<DefRef> {
        let here = self.file(file);
        here.children.of(owner).iter().find_map(|child| {
            let def = here.facts.def(*child);
            (here.sym(def.name) == name && matches!(def.kind, DefKind::Variable | DefKind::Field))
                .then_some(DefRef { file, def: *child })
        })
    }
}
