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

use crate::facts::{BaseKind, CallId, CallKind, DefId, Expr, ExprId, ImportId, Imported, Kind, Name, ROOT, flag};
use deps::{Atom, Changed, Entry};
use eval::{Eval, LEVELS};
pub use file::File;
pub use program::Program;
use rounds::{Class, Found};
pub use rounds::{Resolver, resolve};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;
use value::Sym;
pub use value::{ExternalId, FileId, Gid, How, Value};

/// The resolved links of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    pub calls: Vec<CallLink>,
    pub imports: Vec<ImportLink>,
    pub bases: Vec<BaseLink>,
    pub uses: Vec<UseLink>,
    /// Methods written outside their types, with the types.
    pub receivers: Vec<(DefId, Gid)>,
    /// Number of calls with an unknown target, by the definition that contains them.
    pub unresolved: Vec<(DefId, u32)>,
    /// The same by called name and line, if the program has a function or method of that name.
    pub unresolved_names: Vec<(Box<str>, u32)>,
    pub counts: Counts,
    /// The file is part of the tests.
    pub is_test: bool,
}

/// The number of calls of a file, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls in the text of the file, without implicit ones.
    pub calls: u32,
    pub resolved: u32,
    /// Calls of builtins, of methods of containers and strings, of symbols outside the program.
    pub outside: u32,
    pub unresolved: u32,
}

/// The target of a link: a definition of the program, or a name outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum To {
    Def(Gid),
    /// See `Program::external_path`.
    External(ExternalId),
}

/// A call with one of its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLink {
    pub call: CallId,
    pub to: To,
    pub how: How,
}

/// An import with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportLink {
    pub import: ImportId,
    pub to: To,
}

/// A type with one of its bases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseLink {
    pub class: DefId,
    pub to: To,
    pub how: BaseKind,
    pub line: u32,
    /// Derived from its methods, not declared (Go).
    pub structural: bool,
}

/// A name that is used without a call, with the symbol that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UseLink {
    pub owner: DefId,
    pub to: Gid,
    pub line: u32,
    pub how: How,
    /// Reading it calls it: a property.
    pub runs: bool,
}

// --- the result ---

/// The targets of a use, with the dependencies of that result.
type Used = (SmallVec<[(Gid, How, bool); 1]>, Arc<[Atom]>);

/// The dependencies of a file's links.
#[derive(Clone, Default)]
struct Linked {
    /// Dependencies of everything except the calls.
    deps: Box<[Atom]>,
    uses: Box<[Used]>,
}

/// Computes the links of a file. `known` contains the previous dependencies and the changes since.
fn links(eval: &mut Eval<'_>, id: FileId, found: &[Found], known: Option<(&Linked, &Changed)>) -> (Links, Linked) {
    let file = eval.file(id);
    let mut with: Vec<Arc<[Atom]>> = vec![[id.into()].into()];
    let mut links = Links { is_test: eval.link.is_test_file(id), ..Links::default() };
    let mut unresolved: FxHashMap<DefId, u32> = FxHashMap::default();
    for ((index, call), found) in file.facts.calls.iter_ids().zip(found) {
        if call.how != CallKind::Implicit {
            links.counts.calls += 1;
        }
        match found.class {
            Class::Resolved => links.counts.resolved += u32::from(call.how != CallKind::Implicit),
            Class::Outside => links.counts.outside += 1,
            Class::Silent => {}
            Class::Unresolved => {
                if let Some(only) = eval.traced_in(&mut with, |e| unique_name(e, id, index)) {
                    links.calls.push(CallLink { call: index, to: To::Def(only), how: How::UniqueName });
                }
                links.counts.unresolved += 1;
                *unresolved.entry(call.owner).or_default() += 1;
                if let Some(name) = eval.traced_in(&mut with, |e| called_name(e, id, index)) {
                    links.unresolved_names.push((name.into(), call.line));
                }
            }
        }
        let derivations = eval.traced_in(&mut with, |e| e.told(&found.targets));
        for ((value, _), how) in found.targets.iter().zip(derivations) {
            let to = match value {
                Value::Func(gid) | Value::Method(gid, _) | Value::Class(gid) => To::Def(*gid),
                Value::External(path) => To::External(*path),
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
        let owner = Gid { file: id, def: import.owner };
        let to = eval.traced_in(&mut with, |e| {
            import_link(e, id, index).filter(|to| !matches!(to, To::Def(to) if !e.can_depend(owner, *to)))
        });
        if let Some(to) = to {
            links.imports.push(ImportLink { import: index, to });
        }
    }
    for class in file.facts.defs.ids() {
        let gid = Gid { file: id, def: class };
        if let Some(of) = eval.link.receiver(gid) {
            links.receivers.push((class, of));
        }
        for base in eval.link.bases(gid).iter().filter(|base| eval.can_depend(gid, **base)) {
            let (how, line) = eval.link.base_kinds.get(&(gid, *base)).copied().unwrap_or((BaseKind::Extends, 0));
            links.bases.push(BaseLink { class, to: To::Def(*base), how, line, structural: false });
        }
        for base in eval.link.outside_bases(gid) {
            let to = To::External(base.path);
            links.bases.push(BaseLink { class, to, how: base.how, line: base.line, structural: false });
        }
    }
    let mut seen: FxHashSet<(DefId, Gid)> = FxHashSet::default();
    let mut uses: Vec<Used> = Vec::new();
    for (at, used) in file.facts.uses.iter().enumerate() {
        let before = known.and_then(|(linked, changed)| linked.uses.get(at).filter(|(_, deps)| !changed.hits(deps)));
        let (values, deps) = match before {
            Some(known) => known.clone(),
            None => eval.traced(|e| {
                let mut values = e.ask(|e| e.used(id, used.expr, used.owner)).0;
                values.retain(|(to, ..)| e.can_depend(Gid { file: id, def: used.owner }, *to));
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
    let (Expr::Member(_, name) | Expr::Free(name)) = facts.expr(facts.calls[call].callee) else { return None };
    let (family, sym) = (facts.language.family(), here.sym(name));
    eval.note(Entry::Methods(family, sym));
    eval.note(Entry::Function(family, sym));
    let known = eval.link.methods_named.contains_key(&(family, sym)) || eval.link.has_function(family, sym);
    known.then(|| facts.name(name))
}

/// The target of a call of a method that only one type of the program has and that no builtin type is likely to have.
fn unique_name(eval: &Eval<'_>, file: FileId, call: CallId) -> Option<Gid> {
    let facts = &eval.file(file).facts;
    let call = &facts.calls[call];
    let Expr::Member(of, name) = facts.expr(call.callee) else { return None };
    if facts.expr(of) == Expr::Super || builtin::is_common_method(facts.name(name)) {
        return None;
    }
    let sym = eval.file(file).sym(name);
    eval.note(Entry::Methods(facts.language.family(), sym));
    let methods = eval.link.methods_named.get(&(facts.language.family(), sym))?;
    let from = Gid { file, def: call.owner };
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

fn import_link(eval: &mut Eval<'_>, file: FileId, import: ImportId) -> Option<To> {
    let (target, _) = eval.ask(|e| e.import_target(file, import, LEVELS));
    let entry = &eval.file(file).facts.imports[import];
    match target? {
        Value::Module(of) => {
            // If the imported symbol of a package or folder is a module of it, the import is of that module.
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
    /// The symbols that an expression names, without following values: for references.
    fn used(&mut self, file: FileId, expr: ExprId, owner: DefId) -> SmallVec<[(Gid, How, bool); 1]> {
        let here = self.file(file);
        let mut out = SmallVec::new();
        let (of, var) = match here.facts.expr(expr) {
            Expr::Var(var) => (None, Some(var)),
            Expr::Member(of, name) => (Some((of, here.sym(name))), None),
            Expr::Free(_) => (None, None),
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

    /// The module variable or field that a name refers to.
    fn symbol_of(&self, file: FileId, owner: DefId, name: Name) -> Option<Gid> {
        let here = self.file(file);
        self.symbol_named(file, owner, here.sym(name))
    }

    fn symbol_named(&self, file: FileId, owner: DefId, name: Sym) -> Option<Gid> {
        let here = self.file(file);
        here.children.of(owner).iter().find_map(|child| {
            let def = here.facts.def(*child);
            (here.sym(def.name) == name && matches!(def.kind, Kind::Variable | Kind::Field))
                .then_some(Gid { file, def: *child })
        })
    }
}
