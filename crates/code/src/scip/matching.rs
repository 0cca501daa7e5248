//! Matches one document with its file: finds the definitions of its symbols and classifies its mentions.

use super::read::{ColumnEncoding, ScipDocument, ScipRange, kind, role};
use super::symbol::{DescriptorSuffix, is_local, suffix};
use crate::convert::to_u32;
use crate::facts::{BaseKind, CallId, DefId, DefKind, ExprId, FileFacts, ImportKind, ROOT, SourceExpr};
use crate::ids::IdVec;
use crate::keys;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// A document matched with the facts of its file.
pub struct MatchedDocument<'a> {
    pub facts: FileFacts,
    /// Object type and key of each definition.
    pub keys: IdVec<DefId, Option<(&'static str, String)>>,
    /// Symbols with a definition in the file, in the order of the text.
    pub defined: Vec<(&'a str, DefId)>,
    /// Symbols that the document defines, but that have no definition in the facts.
    pub unknown: Vec<&'a str>,
    pub mentions: Vec<Mention<'a>>,
    /// A definition and a symbol that it implements or overrides.
    pub implements: Vec<(DefId, &'a str)>,
}

/// An occurrence that is not a definition.
pub struct Mention<'a> {
    /// Usually one; a mention may name both a class and its constructor.
    pub symbols: SmallVec<[&'a str; 1]>,
    /// The definition that contains it.
    pub owner: DefId,
    pub line: u32,
    pub how: MentionKind,
}

/// How a mention uses its symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MentionKind {
    Call(CallId),
    Base(BaseKind),
    Use,
}

/// All global symbols that a document defines. Used for files that cannot be read, so that their symbols do not count
/// as outside.
pub fn defined_in<'a>(document: &ScipDocument<'a>) -> Vec<&'a str> {
    let defined = document.occurrences.iter().filter(|o| o.roles & role::DEFINITION != 0).map(|o| o.symbol);
    defined.filter(|symbol| !is_local(symbol)).collect()
}

/// Matches a document with its file. `path` is the path in the graph; `facts` were extracted from `text`.
pub fn match_document<'a>(
    document: &ScipDocument<'a>,
    encoding: ColumnEncoding,
    path: &str,
    text: &str,
    facts: FileFacts,
) -> MatchedDocument<'a> {
    let keys = keys::keys(path, &facts);
    let spots = spots(document, encoding, text);
    let spans = Spans::new(&facts);
    let mut out =
        MatchedDocument { facts, keys, defined: vec![], unknown: vec![], mentions: vec![], implements: vec![] };
    let again = definitions(&mut out, document, &spots, &spans, text);
    let defined: FxHashMap<&str, DefId> = out.defined.iter().rev().copied().collect();
    for information in &document.symbols {
        if let Some(def) = defined.get(information.symbol) {
            out.implements.extend(information.implements.iter().map(|of| (*def, *of)));
        }
    }
    let spots: Vec<Spot<'a>> = spots.into_iter().filter(|spot| !again.contains(&spot.start)).collect();
    mentions(&mut out, &spots, &spans, &defined, text);
    out
}

/// Occurrences with the same range.
struct Spot<'a> {
    start: usize,
    end: usize,
    /// 1-based, as in facts.
    line: u32,
    /// In bytes.
    column: u32,
    /// Symbols with their roles.
    symbols: SmallVec<[(&'a str, u64); 1]>,
}

fn spots<'a>(document: &ScipDocument<'a>, encoding: ColumnEncoding, text: &str) -> Vec<Spot<'a>> {
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut sorted: Vec<_> = document.occurrences.iter().collect();
    sorted.sort_by_key(|o| o.range);
    let mut spots: Vec<Spot<'a>> = Vec::with_capacity(sorted.len());
    let mut last = None;
    for found in sorted {
        if last == Some(found.range)
            && let Some(spot) = spots.last_mut()
        {
            spot.symbols.push((found.symbol, found.roles));
            continue;
        }
        // A range outside the text means that the index is of another version of the file.
        let Some((start, end)) = bytes(text, &starts, found.range, encoding) else { continue };
        last = Some(found.range);
        let (line, column) = (found.range.line + 1, to_u32(start - starts[found.range.line as usize]));
        spots.push(Spot { start, end, line, column, symbols: SmallVec::from_elem((found.symbol, found.roles), 1) });
    }
    spots
}

fn bytes(text: &str, starts: &[usize], range: ScipRange, encoding: ColumnEncoding) -> Option<(usize, usize)> {
    let place = |line: u32, column: u32| {
        let start = *starts.get(line as usize)?;
        let end = starts.get(line as usize + 1).copied().unwrap_or(text.len());
        Some(start + within(&text[start..end], column as usize, encoding)?)
    };
    let (start, end) = (place(range.line, range.column)?, place(range.end_line, range.end_column)?);
    (start <= end).then_some((start, end))
}

/// Number of bytes of a line before a column; `None` if the column is inside a character or beyond the line.
fn within(line: &str, column: usize, encoding: ColumnEncoding) -> Option<usize> {
    if encoding == ColumnEncoding::Utf8 {
        return line.is_char_boundary(column).then_some(column);
    }
    let mut units = 0;
    for (at, c) in line.char_indices() {
        if units >= column {
            return (units == column).then_some(at);
        }
        units += if encoding == ColumnEncoding::Utf16 { c.len_utf16() } else { 1 };
    }
    (units == column).then_some(line.len())
}

/// Definitions ordered by start, each with the enclosing one.
struct Spans {
    order: Vec<(usize, usize, DefId)>,
    around: Vec<Option<usize>>,
}

impl Spans {
    fn new(facts: &FileFacts) -> Spans {
        let mut order: Vec<(usize, usize, DefId)> = facts
            .defs
            .iter_ids()
            .skip(1)
            .map(|(id, def)| (def.span.start as usize, def.span.end as usize, id))
            .collect();
        order.sort_by_key(|(start, end, id)| (*start, std::cmp::Reverse(*end), *id));
        let mut around = Vec::with_capacity(order.len());
        let mut open: Vec<usize> = Vec::new();
        for (at, (start, _, _)) in order.iter().enumerate() {
            while open.last().is_some_and(|outer| order[*outer].1 <= *start) {
                open.pop();
            }
            around.push(open.last().copied());
            open.push(at);
        }
        Spans { order, around }
    }

    /// Definitions that contain a byte offset, innermost first, without the file.
    fn at(&self, place: usize) -> impl Iterator<Item = DefId> + '_ {
        let after = self.order.partition_point(|(start, _, _)| *start <= place);
        let around = std::iter::successors(after.checked_sub(1), |at| self.around[*at]);
        around.filter(move |at| place < self.order[*at].1).map(|at| self.order[at].2)
    }
}

/// Finds definitions. Returns the start offsets of names that are definitions although the index marks them as
/// mentions.
fn definitions<'a>(
    out: &mut MatchedDocument<'a>,
    document: &ScipDocument<'a>,
    spots: &[Spot<'a>],
    spans: &Spans,
    text: &str,
) -> FxHashSet<usize> {
    let parameters = document.symbols.iter().filter(|s| kind::PARAMETERS.contains(&s.kind));
    let passed: FxHashSet<&str> = parameters.map(|s| s.symbol).collect();
    // A definition's own name precedes everything inside it, so the first match is the name.
    let mut claimed: FxHashMap<DefId, usize> = FxHashMap::default();
    let named = |facts: &FileFacts, spot: &Spot<'_>| {
        let written = &text[spot.start..spot.end];
        let is_it = |def: &DefId| {
            let def = facts.def(*def);
            def.kind != DefKind::Lambda && !written.is_empty() && same_name(facts.name(def.name), written)
        };
        spans.at(spot.start).find(is_it)
    };
    for spot in spots {
        for (symbol, roles) in &spot.symbols {
            let suffix = suffix(symbol);
            let parameter = matches!(suffix, Some(DescriptorSuffix::Parameter | DescriptorSuffix::TypeParameter))
                && !is_local(symbol);
            if roles & role::DEFINITION == 0 || parameter || passed.contains(symbol) {
                continue;
            }
            // A file that is a module has an empty range at its beginning.
            let module = suffix == Some(DescriptorSuffix::Meta) && spot.start == spot.end;
            let space = (module || suffix == Some(DescriptorSuffix::Namespace)) && !is_local(symbol);
            let found = named(&out.facts, spot).filter(|def| !space || out.facts.def(*def).kind == DefKind::Module);
            let found = found.filter(|def| *claimed.entry(*def).or_insert(spot.start) == spot.start);
            match found.or((space && spot.start == 0).then_some(ROOT)) {
                Some(def) => out.defined.push((symbol, def)),
                None if is_local(symbol) => {}
                None => out.unknown.push(symbol),
            }
        }
    }
    // Some indexers mark only the first of several definitions of a name as a definition, and the others as mentions.
    let first: FxHashSet<&str> = out.defined.iter().map(|(symbol, _)| *symbol).collect();
    let mut seen: FxHashSet<DefId> = claimed.into_keys().collect();
    let mut again = FxHashSet::default();
    for spot in spots {
        if let Some(def) = named(&out.facts, spot)
            && seen.insert(def)
            && let Some((symbol, _)) = spot.symbols.iter().find(|(symbol, _)| first.contains(symbol))
        {
            out.defined.push((symbol, def));
            again.insert(spot.start);
        }
    }
    again
}

/// A name without the sigils and quotes of its language.
fn plain(name: &str) -> &str {
    let bare = name.strip_prefix("r#").unwrap_or(name).trim_matches(['"', '\'', '`', '#', '$', '@', ':', '!', '?']);
    if bare.is_empty() { name } else { bare }
}

fn same_name(name: &str, written: &str) -> bool {
    plain(name) == plain(written)
}

fn mentions<'a>(
    out: &mut MatchedDocument<'a>,
    spots: &[Spot<'a>],
    spans: &Spans,
    defined: &FxHashMap<&'a str, DefId>,
    text: &str,
) {
    let facts = &out.facts;
    let calls = calls(facts, spots, text);
    let mut imports = Imports::new(facts);
    for (at, spot) in spots.iter().enumerate() {
        let mentioned = |(symbol, roles): &&(&'a str, u64)| {
            roles & (role::DEFINITION | role::FORWARD_DEFINITION) == 0
                && (!is_local(symbol) || defined.contains_key(symbol))
        };
        let named: SmallVec<[(&str, u64); 1]> = spot.symbols.iter().filter(mentioned).copied().collect();
        if named.is_empty() {
            continue;
        }
        let symbols: SmallVec<[&'a str; 1]> = named.iter().map(|(symbol, _)| *symbol).collect();
        let written = &text[spot.start..spot.end];
        if let Some(call) = calls.get(&at) {
            let owner = facts.calls[*call].owner;
            out.mentions.push(Mention { symbols, owner, line: spot.line, how: MentionKind::Call(*call) });
            continue;
        }
        let around = spans.at(spot.start).next().unwrap_or(ROOT);
        let base = facts.def(around).bases.iter().find(|base| {
            base.line == spot.line && keys::type_name(facts, base.of).is_some_and(|name| same_name(name, written))
        });
        let (owner, how) = match base {
            Some(base) => (around, MentionKind::Base(base.how)),
            None => {
                // Uses are attributed to functions, types and modules, never to a variable or field.
                let owns = |def: &DefId| !matches!(facts.def(*def).kind, DefKind::Field | DefKind::Variable);
                (spans.at(spot.start).find(owns).unwrap_or(ROOT), MentionKind::Use)
            }
        };
        let imported = named.iter().all(|(_, roles)| roles & role::IMPORT != 0);
        if how == MentionKind::Use && (imported || imports.take(written, spot.line)) {
            continue;
        }
        out.mentions.push(Mention { symbols, owner, line: spot.line, how });
    }
}

/// Names that occur in import statements. They need no REFERENCES, because IMPORTS covers them.
struct Imports<'f> {
    lines: FxHashSet<u32>,
    names: FxHashMap<&'f str, u32>,
}

/// Longest import statement that is recognized, in lines.
const IMPORT_LINES: u32 = 200;

impl<'f> Imports<'f> {
    fn new(facts: &'f FileFacts) -> Imports<'f> {
        let mut imports = Imports { lines: FxHashSet::default(), names: FxHashMap::default() };
        for import in &facts.imports {
            imports.lines.insert(import.line);
            let own = import.var.map(|var| facts.vars[var].name);
            let other = if let ImportKind::Symbol(name) = import.what { Some(name) } else { None };
            for name in [own, other].into_iter().flatten() {
                imports.names.entry(facts.name(name)).or_insert(import.line);
            }
        }
        imports
    }

    /// Whether a mention is part of an import. If the statement has several lines, its first mention after the first
    /// line counts.
    fn take(&mut self, written: &str, line: u32) -> bool {
        match self.names.get(written) {
            Some(first) if (*first..first + IMPORT_LINES).contains(&line) => {
                self.names.remove(written);
                true
            }
            _ => self.lines.contains(&line),
        }
    }
}

/// Maps indices into `spots` to the calls that they name.
fn calls(facts: &FileFacts, spots: &[Spot<'_>], text: &str) -> FxHashMap<usize, CallId> {
    let mut by_line: FxHashMap<u32, Vec<CallId>> = FxHashMap::default();
    for (id, call) in facts.calls.iter_ids() {
        by_line.entry(call.line).or_default().push(id);
    }
    let mut found: FxHashMap<usize, CallId> = FxHashMap::default();
    for (line, mut calls) in by_line {
        let from = spots.partition_point(|spot| spot.line < line);
        let here = &spots[from..from + spots[from..].partition_point(|spot| spot.line == line)];
        let mut free = Free::default();
        for (at, spot) in here.iter().enumerate() {
            let (name, opens) = (plain(&text[spot.start..spot.end]), opens(&text[spot.end..]));
            free.named.entry((name, false)).or_default().insert(at);
            if opens {
                free.named.entry((name, true)).or_default().insert(at);
                free.open.insert(at);
            }
        }
        // Inner calls begin further to the right and choose first.
        calls.sort_by_key(|id| (std::cmp::Reverse(facts.calls[*id].column), *id));
        // First by name and parenthesis, then by name alone (decorators, calls without parentheses), then calls whose
        // callee has no name in the facts.
        for (by_name, parenthesis) in [(true, true), (true, false), (false, true)] {
            calls.retain(|id| {
                let call = &facts.calls[*id];
                let name = callee_name(facts, call.callee).map(plain);
                if name.is_some() != by_name {
                    return true;
                }
                let begin = here.partition_point(|spot| spot.column < call.column);
                let Some(at) = free.first(name, parenthesis, begin) else { return true };
                free.take(at, plain(&text[here[at].start..here[at].end]));
                found.insert(from + at, *id);
                false
            });
        }
    }
    found
}

/// Occurrences on one line that no call has taken yet. Sorted for fast lookup, because a generated file may be one
/// line.
#[derive(Default)]
struct Free<'t> {
    /// By name, and whether the text after the name makes it a call.
    named: FxHashMap<(&'t str, bool), BTreeSet<usize>>,
    /// All whose following text makes them calls.
    open: BTreeSet<usize>,
}

impl<'t> Free<'t> {
    fn first(&self, name: Option<&'t str>, parenthesis: bool, begin: usize) -> Option<usize> {
        let places = match name {
            Some(name) => self.named.get(&(name, parenthesis))?,
            None => &self.open,
        };
        places.range(begin..).next().copied()
    }

    fn take(&mut self, at: usize, name: &'t str) {
        self.open.remove(&at);
        for parenthesis in [true, false] {
            if let Some(places) = self.named.get_mut(&(name, parenthesis)) {
                places.remove(&at);
            }
        }
    }
}

/// Whether the text after a name makes it a call: an argument list, possibly after type arguments, or a macro's `!`.
fn opens(behind: &str) -> bool {
    let behind = behind.trim_start();
    ["(", "<", "::<", "!", "?.("].iter().any(|mark| behind.starts_with(mark)) && !behind.starts_with("!=")
}

/// The last name of the called expression, as written.
pub fn callee_name(facts: &FileFacts, callee: ExprId) -> Option<&str> {
    let mut at = callee;
    // Bounds the nesting; deeper expressions have no name.
    for _ in 0..16 {
        at = match facts.expr(at) {
            SourceExpr::Free(name) | SourceExpr::Member(_, name) | SourceExpr::At(_, name) => {
                return Some(facts.name(name));
            }
            SourceExpr::Var(var) => return Some(facts.name(facts.vars[var].name)),
            SourceExpr::Super => return Some("super"),
            SourceExpr::This => return Some("this"),
            SourceExpr::Generic(of, _)
            | SourceExpr::Bound(of)
            | SourceExpr::InstanceOf(of)
            | SourceExpr::Awaited(of) => of,
            _ => return None,
        };
    }
    None
}
