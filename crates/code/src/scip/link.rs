//! Links all documents: derives relationships from their mentions.

use super::matching::{MatchedDocument, Mention, MentionKind, callee_name};
use super::read::{ScipIndex, kind};
use super::symbol::{DescriptorSuffix, OutsideSymbol, ScipSymbol, home, is_local, suffix};
use super::{CompilerRelationship, CompilerRelationships, Line};
use crate::facts::{BaseKind, CallId, CallKind, Def, DefId, DefKind, FileFacts, ROOT, SourceExpr, flag};
use crate::ids::IdVec;
use crate::keys::type_name;
use crate::languages::rules::Constructs;
use crate::statements::{external_object, package_object};
use crate::type_names;
use lukasa_model::batch::PutObject;
use lukasa_model::id::object_id;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use uuid::Uuid;

/// A definition: the index of its document and its id there.
type DocumentDef = (usize, DefId);

/// The target of a symbol.
#[derive(Clone, Debug)]
enum To {
    Def(DocumentDef),
    Outside(OutsideSymbol),
    /// Part of the program but without a known definition, or not an object of the graph.
    Nothing,
}

/// Links all documents. `skipped` contains the symbols of documents whose files could not be read.
pub fn link<'a>(
    index: &ScipIndex<'a>,
    placed: &[MatchedDocument<'a>],
    skipped: &[&'a str],
    namespace: Uuid,
) -> CompilerRelationships {
    let table = Table::new(index, placed, skipped, namespace);
    let bases = table.bases();
    let parts: Vec<Part> = (0..placed.len()).into_par_iter().map(|at| table.part(at, &bases)).collect();
    let mut out = CompilerRelationships::default();
    (out.matched, out.unmatched) = table.counts();
    let mut edges: BTreeMap<(&'static str, Uuid, Uuid), Vec<u32>> = BTreeMap::new();
    for part in parts {
        for (between, lines) in part.edges {
            edges.entry(between).or_default().extend(lines);
        }
        for (caller, line) in part.lines {
            out.lines.entry(caller).or_default().join(line);
        }
        out.outside.extend(part.outside);
        out.outside_keys.extend(part.outside_keys);
        out.implementations.extend(part.implementations);
    }
    let pairs: FxHashSet<(Uuid, Uuid)> =
        edges.keys().filter(|(of, _, _)| *of != "REFERENCES").map(|(_, src, dst)| (*src, *dst)).collect();
    out.edges = edges
        .into_iter()
        // A REFERENCES edge adds nothing where another relationship has the same ends.
        .filter(|((of, src, dst), _)| *of != "REFERENCES" || !pairs.contains(&(*src, *dst)))
        .map(CompilerRelationship::of)
        .collect();
    out
}

#[derive(Default)]
struct Part {
    edges: BTreeMap<(&'static str, Uuid, Uuid), Vec<u32>>,
    lines: FxHashMap<(Uuid, u32), Line>,
    outside: BTreeMap<(&'static str, String), PutObject>,
    outside_keys: FxHashMap<Uuid, String>,
    implementations: FxHashSet<(Uuid, Uuid)>,
}

struct Table<'p, 'a> {
    placed: &'p [MatchedDocument<'a>],
    /// Kinds of symbols that are defined outside the index.
    kinds: &'p FxHashMap<&'a str, u64>,
    ids: Vec<IdVec<DefId, Option<Uuid>>>,
    /// Definitions by symbol; the key of a local symbol includes its document.
    symbols: FxHashMap<(Option<usize>, &'p str), DocumentDef>,
    /// Other definitions of the same symbol that can run in its place, for example one under a condition.
    variants: FxHashMap<DocumentDef, Vec<DocumentDef>>,
    /// Symbols that the index defines, but without a known definition.
    unknown: FxHashSet<&'p str>,
    homes: FxHashSet<&'p str>,
    namespace: Uuid,
}

impl<'p, 'a> Table<'p, 'a> {
    fn new(
        index: &'p ScipIndex<'a>,
        placed: &'p [MatchedDocument<'a>],
        skipped: &[&'p str],
        namespace: Uuid,
    ) -> Table<'p, 'a> {
        let id = |key: &Option<(&'static str, String)>| {
            key.as_ref().map(|(object_type, key)| object_id(namespace, object_type, key))
        };
        let ids = placed.iter().map(|p| p.keys.iter().map(id).collect()).collect();
        let mut table = Table {
            placed,
            kinds: &index.outside,
            ids,
            symbols: FxHashMap::default(),
            variants: FxHashMap::default(),
            unknown: skipped.iter().copied().collect(),
            homes: skipped.iter().filter_map(|symbol| home(symbol)).collect(),
            namespace,
        };
        for (at, document) in placed.iter().enumerate() {
            for (symbol, def) in &document.defined {
                let scope = is_local(symbol).then_some(at);
                table.homes.extend(home(symbol).filter(|_| scope.is_none()));
                let gid = (at, *def);
                match table.symbols.get(&(scope, *symbol)).copied() {
                    // Of several declarations of one symbol, prefer the one that runs when it is called; else the
                    // first.
                    Some(before) if table.runs(before) >= table.runs(gid) => table.also(before, gid),
                    before => {
                        table.symbols.insert((scope, *symbol), gid);
                        if let Some(before) = before {
                            table.also(gid, before);
                        }
                    }
                }
            }
            table.homes.extend(document.unknown.iter().filter_map(|symbol| home(symbol)));
            table.unknown.extend(&document.unknown);
        }
        table
    }

    /// 0 for a declaration without a body, 1 for a setter, 2 for all others.
    fn runs(&self, gid: DocumentDef) -> u8 {
        let (facts, def) = (&self.placed[gid.0].facts, self.def(gid));
        let overload = def.decorators.iter().any(|d| type_name(facts, *d) == Some("overload"));
        match def.is(flag::DECLARED) || overload {
            true => 0,
            false if def.is(flag::SETTER) => 1,
            false => 2,
        }
    }

    fn also(&mut self, gid: DocumentDef, other: DocumentDef) {
        if gid != other && self.runs(other) > 0 {
            let mut others = self.variants.remove(&other).unwrap_or_default();
            others.push(other);
            self.variants.entry(gid).or_default().extend(others);
        }
    }

    /// The number of global symbols with a known definition, and of those without.
    fn counts(&self) -> (usize, usize) {
        let counted = |symbol: &&str| !is_local(symbol) && !matches!(suffix(symbol), Some(DescriptorSuffix::Namespace));
        let matched = self.symbols.keys().filter(|(scope, symbol)| scope.is_none() && counted(symbol)).count();
        let missed: FxHashSet<&str> = self.placed.iter().flat_map(|p| p.unknown.iter().copied()).collect();
        let missed = missed.iter().filter(|s| counted(s) && !self.symbols.contains_key(&(None, **s))).count();
        (matched, missed)
    }

    fn def(&self, (at, def): DocumentDef) -> &'p Def {
        self.placed[at].facts.def(def)
    }

    fn id(&self, (at, def): DocumentDef) -> Option<Uuid> {
        self.ids[at][def]
    }

    /// The symbol that a definition is attributed to: itself, or the nearest enclosing one.
    fn owner(&self, (at, def): DocumentDef) -> Option<Uuid> {
        let mut def = def;
        loop {
            match self.ids[at][def] {
                Some(id) => return Some(id),
                None if def == ROOT => return None,
                None => def = self.placed[at].facts.def(def).parent,
            }
        }
    }

    fn resolve(&self, at: usize, symbol: &str) -> To {
        let local = is_local(symbol);
        match self.symbols.get(&(local.then_some(at), symbol)) {
            Some(gid) => To::Def(*gid),
            None if local || self.unknown.contains(symbol) => To::Nothing,
            // A symbol of the program's own package without a definition is generated or not indexed.
            None if home(symbol).is_none_or(|home| self.homes.contains(home)) => To::Nothing,
            None => ScipSymbol::parse(symbol)
                .and_then(|parsed| parsed.outside(self.placed[at].facts.language))
                .map_or(To::Nothing, To::Outside),
        }
    }

    /// Base classes of each class, as far as they are in the program.
    fn bases(&self) -> FxHashMap<DocumentDef, Vec<DocumentDef>> {
        let mut bases: FxHashMap<DocumentDef, Vec<DocumentDef>> = FxHashMap::default();
        for (at, document) in self.placed.iter().enumerate() {
            let named = document.mentions.iter().filter(|m| matches!(m.how, MentionKind::Base(_)));
            for mention in named {
                for symbol in &mention.symbols {
                    if let To::Def(gid) = self.resolve(at, symbol) {
                        bases.entry((at, mention.owner)).or_default().push(gid);
                    }
                }
            }
        }
        bases
    }

    fn part(&self, at: usize, bases: &FxHashMap<DocumentDef, Vec<DocumentDef>>) -> Part {
        let mut part = Part::default();
        let document = &self.placed[at];
        let mut known: FxHashMap<&str, To> = FxHashMap::default();
        let mut resolved: FxHashSet<CallId> = FxHashSet::default();
        for mention in &document.mentions {
            let Some(src) = self.owner((at, mention.owner)) else { continue };
            let targets: Vec<(&str, To)> = mention
                .symbols
                .iter()
                .map(|symbol| (*symbol, known.entry(symbol).or_insert_with(|| self.resolve(at, symbol)).clone()))
                .collect();
            match mention.how {
                MentionKind::Call(call) => {
                    if self.called(&mut part, at, src, mention, &targets, bases) {
                        resolved.insert(call);
                    }
                }
                MentionKind::Base(how) => {
                    for (symbol, to) in &targets {
                        let own = document.facts.def(mention.owner).kind;
                        let of = self.base_type(Some(how), own, symbol, to);
                        self.edge(&mut part, of, src, to, Some(mention.line));
                    }
                }
                MentionKind::Use => {
                    for (_, to) in &targets {
                        self.used(&mut part, src, to, mention.line);
                    }
                }
            }
        }
        self.implemented(&mut part, at);
        // Calls that the compiler did not resolve: their links from other derivations must not be refuted.
        for (id, call) in document.facts.calls.iter_ids() {
            let name = callee_name(&document.facts, call.callee);
            if !resolved.contains(&id)
                && let Some(src) = self.owner((at, call.owner))
                && let Some(line) = part.lines.get_mut(&(src, call.line))
                && let Some(name) = name.filter(|_| call.how != CallKind::Implicit)
            {
                line.open.insert(name.into());
            }
        }
        part
    }

    /// Adds the edges of a call; returns whether its target is known.
    fn called(
        &self,
        part: &mut Part,
        at: usize,
        src: Uuid,
        mention: &Mention<'_>,
        targets: &[(&str, To)],
        bases: &FxHashMap<DocumentDef, Vec<DocumentDef>>,
    ) -> bool {
        let callable = |to: &To| matches!(to, To::Def(gid) if self.def(*gid).kind.callable());
        // If a mention names a class and its constructor, the constructor is what runs.
        let precise = targets.iter().any(|(_, to)| callable(to));
        let mut is_known = false;
        for (symbol, to) in targets {
            let to = match to {
                To::Def(gid) if !callable(to) => match self.made(*gid, bases) {
                    _ if precise => continue,
                    Some(made) => &To::Def(made),
                    None => {
                        self.used(part, src, to, mention.line);
                        continue;
                    }
                },
                other => other,
            };
            let MentionKind::Call(call) = mention.how else { continue };
            if misnamed(&self.placed[at].facts, call, to) {
                continue;
            }
            let dst = self.edge(part, "CALLS", src, to, Some(mention.line));
            if dst.is_none() && !matches!(to, To::Outside(_)) {
                continue;
            }
            is_known = true;
            let line = part.lines.entry((src, mention.line)).or_default();
            line.targets.extend(dst);
            if let To::Def(gid) = to {
                line.targets.extend(self.variants.get(gid).into_iter().flatten().filter_map(|gid| self.id(*gid)));
            }
            let facts = &self.placed[at].facts;
            if let Some(name) = callee_name(facts, facts.calls[call].callee) {
                line.names.insert(name.into());
                if self.is_open(symbol, to) {
                    line.open.insert(name.into());
                }
            }
        }
        is_known
    }

    /// Whether an implementation may run in place of the called symbol.
    fn is_open(&self, symbol: &str, to: &To) -> bool {
        match to {
            To::Def((at, def)) => {
                let def = self.placed[*at].facts.def(*def);
                def.is(flag::ABSTRACT) || self.def((*at, def.parent)).kind == DefKind::Interface
            }
            To::Outside(_) => self.kinds.get(symbol).is_some_and(|of| kind::ABSTRACT_METHODS.contains(of)),
            To::Nothing => true,
        }
    }

    /// What runs when a class is called: its constructor, an inherited one where the language inherits them, else the
    /// class itself.
    fn made(&self, class: DocumentDef, bases: &FxHashMap<DocumentDef, Vec<DocumentDef>>) -> Option<DocumentDef> {
        let def = self.def(class);
        let rules = self.placed[class.0].facts.language.rules();
        let made = match def.kind {
            DefKind::Class | DefKind::Struct | DefKind::Enum => rules.constructs != Constructs::Nothing,
            DefKind::Type => rules.constructs == Constructs::TypesAndAliases,
            _ => false,
        };
        if !made {
            return None;
        }
        let (mut seen, mut next) = (FxHashSet::default(), vec![class]);
        while let Some(of) = next.pop() {
            if !seen.insert(of) {
                continue;
            }
            let own: Vec<DocumentDef> = self.constructors(of);
            match own.as_slice() {
                [one] => return Some(*one),
                // The class alone does not determine which constructor runs.
                [_, _, ..] => return None,
                [] if !rules.inherits_constructors => break,
                [] => next.extend(bases.get(&of).into_iter().flatten().rev()),
            }
        }
        Some(class)
    }

    fn constructors(&self, class: DocumentDef) -> Vec<DocumentDef> {
        let defs = self.placed[class.0].facts.defs.iter_ids();
        let own = defs.filter(|(_, d)| d.parent == class.1 && d.is(flag::CONSTRUCTOR));
        own.map(|(id, _)| (class.0, id)).filter(|gid| self.runs(*gid) > 0).collect()
    }

    fn used(&self, part: &mut Part, src: Uuid, to: &To, line: u32) {
        let of = match to {
            // Files and modules are only part of the path to a symbol.
            To::Def(gid) if matches!(self.def(*gid).kind, DefKind::File | DefKind::Module) => return,
            // Reading a property calls its getter.
            To::Def(gid) if self.def(*gid).is(flag::GETTER) => "CALLS",
            _ => "REFERENCES",
        };
        let own = matches!(to, To::Def(gid) if self.id(*gid) == Some(src));
        if !own {
            self.edge(part, of, src, to, Some(line));
        }
    }

    fn implemented(&self, part: &mut Part, at: usize) {
        let facts = &self.placed[at].facts;
        for (def, symbol) in &self.placed[at].implements {
            let (own, to) = (facts.def(*def), self.resolve(at, symbol));
            let Some(src) = self.id((at, *def)) else { continue };
            let name = match &to {
                To::Def(gid) => self.placed[gid.0].facts.name(self.def(*gid).name),
                To::Outside(outside) => outside.name.rsplit('.').next().unwrap_or_default(),
                To::Nothing => continue,
            };
            let other = match &to {
                To::Def(gid) => Some(self.def(*gid).kind),
                _ => None,
            };
            if own.kind.callable() && other.is_none_or(DefKind::callable) {
                if let Some(dst) = self.edge(part, "IMPLEMENTS", src, &to, None) {
                    part.implementations.insert((src, dst));
                }
            } else if own.kind.type_like() && other.is_none_or(DefKind::type_like) {
                // Indexers list all ancestors. Where the text names the direct bases, keep only those.
                let named = own.bases.iter().find(|base| type_name(facts, base.of) == Some(name));
                if named.is_some() || own.bases.is_empty() {
                    let of = self.base_type(named.map(|base| base.how), own.kind, symbol, &to);
                    self.edge(part, of, src, &to, named.map(|base| base.line));
                }
            }
        }
    }

    fn base_type(&self, how: Option<BaseKind>, own: DefKind, symbol: &str, to: &To) -> &'static str {
        let interface = match to {
            To::Def(gid) => self.def(*gid).kind == DefKind::Interface,
            _ => self.kinds.get(symbol).is_some_and(|of| kind::INTERFACES.contains(of)),
        };
        let implements = how == Some(BaseKind::Implements) || interface && own != DefKind::Interface;
        if implements { type_names::IMPLEMENTS } else { type_names::EXTENDS }
    }

    /// Adds a relationship; returns the id of its target if that is an object.
    fn edge(&self, part: &mut Part, of: &'static str, src: Uuid, to: &To, line: Option<u32>) -> Option<Uuid> {
        let dst = match to {
            To::Def(gid) => self.id(*gid)?,
            To::Outside(outside) if outside.builtin => return None,
            To::Outside(outside) => outside_id(part, outside, self.namespace),
            To::Nothing => return None,
        };
        if of != "CALLS" && src == dst {
            return None;
        }
        part.edges.entry((of, src, dst)).or_default().extend(line);
        Some(dst)
    }
}

/// Whether a call is resolved to a member of another name. Indexers make this mistake in packages that re-export what
/// others define. Imported names are not checked, because they may be renamed.
fn misnamed(facts: &FileFacts, call: CallId, to: &To) -> bool {
    match (facts.expr(facts.calls[call].callee), to) {
        (SourceExpr::Member(_, written), To::Outside(outside)) => {
            outside.name.rsplit('.').next().is_some_and(|name| name != facts.name(written))
        }
        _ => false,
    }
}

fn outside_id(part: &mut Part, outside: &OutsideSymbol, namespace: Uuid) -> Uuid {
    let OutsideSymbol { ecosystem, package, name, .. } = outside;
    let key = format!("{ecosystem}:{package}");
    let id = object_id(namespace, type_names::PACKAGE, &key);
    part.outside.entry((type_names::PACKAGE, key)).or_insert_with(|| package_object(ecosystem, package));
    if name.is_empty() {
        return id;
    }
    let key = format!("{ecosystem}:{package}::{name}");
    let id = object_id(namespace, type_names::EXTERNAL, &key);
    part.outside_keys.entry(id).or_insert_with(|| key.clone());
    part.outside.entry((type_names::EXTERNAL, key)).or_insert_with(|| external_object(ecosystem, package, name));
    id
}
