//! Named patterns and the functions that find their matches, worst first.

use super::code::Code;
use super::{PatternMatch, Severity};
use crate::convert::to_usize;
use crate::responses::count;
use crate::view::symbols::{CallWalk, LinkDirection, SymbolKind, SymbolRelation, keys};
use lukasa_graph::measures::strong_components;
use lukasa_graph::{Csr, Node};
use lukasa_model::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// A file with more symbols, or linked to more files, is a god file.
const FILE_SYMBOLS: usize = 40;
const FILE_LINKS: usize = 40;
/// A class with more methods is a god class.
const CLASS_METHODS: usize = 20;
/// A function with more lines is long.
const FUNCTION_LINES: u64 = 80;
/// Inheritance depth that is reported, and the depth at which counting stops.
const DEEP: usize = 4;
const DEEPEST: usize = 64;
/// A file with fewer unresolved calls, or a smaller share of them, is not reported.
const UNRESOLVED: u64 = 5;
const UNRESOLVED_SHARE: f64 = 0.2;
/// Maximum number of calls between a test and the code it reaches.
const REACHED: u32 = 16;
/// Maximum number of names listed in one detail text.
const MOST_NAMES: usize = 8;

/// A named pattern with its search function.
pub struct NamedPattern {
    pub name: &'static str,
    pub title: &'static str,
    pub severity: Severity,
    pub suggestion: &'static str,
    pub find: fn(&Code<'_>) -> Result<Vec<PatternMatch>>,
}

/// All named patterns, in the order in which they are reported.
pub static NAMED: [NamedPattern; 10] = [
    NamedPattern {
        name: "circular_imports",
        title: "Files that import one another in a circle",
        severity: Severity::High,
        suggestion: "move what both sides need into a file of its own, or import where it is used",
        find: circular_imports,
    },
    NamedPattern {
        name: "unreferenced",
        title: "Functions without a reference in the indexed files",
        severity: Severity::Low,
        suggestion: "no call of them and no reference to them was found in the indexed files; calls by reflection, \
                     through macros, generated code, frameworks, by name at run time and from other repositories are \
                     not seen, so look for those before you rely on it",
        find: unreferenced,
    },
    NamedPattern {
        name: "unused_exports",
        title: "Exports without a use in another indexed file",
        severity: Severity::Low,
        suggestion: "look for uses by name at run time, in generated code and in other repositories, which are not seen; \
                     without any, they can be kept to their file",
        find: unused_exports,
    },
    NamedPattern {
        name: "god_files",
        title: "Files that do too much",
        severity: Severity::Medium,
        suggestion: "split them by what changes together; `lukasa communities --of` shows what belongs together",
        find: god_files,
    },
    NamedPattern {
        name: "god_classes",
        title: "Classes that do too much",
        severity: Severity::Medium,
        suggestion: "take groups of methods that use the same fields out into classes of their own",
        find: god_classes,
    },
    NamedPattern {
        name: "long_functions",
        title: "Long functions",
        severity: Severity::Low,
        suggestion: "give the steps names: each that can be described in a phrase becomes a function",
        find: long_functions,
    },
    NamedPattern {
        name: "deep_inheritance",
        title: "Classes deep in a hierarchy",
        severity: Severity::Medium,
        suggestion: "hold what is needed instead of inheriting it; join levels that add little",
        find: deep_inheritance,
    },
    NamedPattern {
        name: "untested",
        title: "Files that no test calls into",
        severity: Severity::Medium,
        suggestion: "begin with those that most others need; `lukasa impact` shows what a change reaches",
        find: untested,
    },
    NamedPattern {
        name: "duplicate_names",
        title: "Names that several files define",
        severity: Severity::Low,
        suggestion: "where bodies are the same keep one; else say in the name what differs",
        find: duplicate_names,
    },
    NamedPattern {
        name: "unresolved_hotspots",
        title: "Files with many calls that could not be resolved",
        severity: Severity::Info,
        suggestion: "type annotations help; `lukasa import-scip` takes what a compiler knows",
        find: unresolved_hotspots,
    },
];

/// Sorts by number, largest first, then by key.
fn worst_first(code: &Code<'_>, mut all: Vec<(usize, PatternMatch)>) -> Vec<PatternMatch> {
    all.sort_by_cached_key(|(n, item)| (Reverse(*n), code.key(item.node).into_owned()));
    all.into_iter().map(|(_, item)| item).collect()
}

fn few(names: Vec<String>) -> String {
    let left = names.len().saturating_sub(MOST_NAMES);
    let listed = names[..names.len() - left].join(", ");
    if left > 0 { format!("{listed} and {left} more") } else { listed }
}

fn circular_imports(code: &Code<'_>) -> Result<Vec<PatternMatch>> {
    let mut files: Vec<Node> =
        code.own.iter().filter(|(_, kind)| *kind == SymbolKind::File).map(|(node, _)| *node).collect();
    // Sorted by key, so that each cycle is always reported from the same file.
    files.sort_by_cached_key(|file| code.key(*file).into_owned());
    let dense: FxHashMap<Node, u32> = files.iter().copied().zip(0..).collect();
    let mut edges: Vec<(u32, u32, u16)> = Vec::new();
    for (file, from) in files.iter().zip(0..) {
        let mut to: Vec<u32> = code
            .others(*file, SymbolRelation::Imports, LinkDirection::Out)
            .filter_map(|to| dense.get(&to).copied())
            .collect();
        to.sort_unstable();
        to.dedup();
        edges.extend(to.into_iter().map(|to| (from, to, 0)));
    }
    let imports = Csr::new(files.len(), edges.iter().copied());
    let component = strong_components(&imports);
    let mut circles: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (at, component) in (0..).zip(&component) {
        circles.entry(*component).or_default().push(at);
    }
    let mut all = Vec::new();
    for members in circles.values().filter(|members| members.len() > 1) {
        if !members.iter().any(|at| code.is_asked(files[*at as usize])) {
            continue;
        }
        let way = shortest_circle(&imports, &component, members[0]);
        let mut names: Vec<String> = way.iter().map(|at| code.key(files[*at as usize]).into_owned()).collect();
        names.extend(names.first().cloned());
        let mut detail = names.join(" -> ");
        if members.len() > way.len() {
            detail += &format!("; {} reach one another", count(members.len(), "file"));
        }
        all.push((members.len(), PatternMatch { node: files[members[0] as usize], detail }));
    }
    Ok(worst_first(code, all))
}

/// Returns the shortest cycle through `start` within its strongly connected component.
fn shortest_circle(imports: &Csr, component: &[u32], start: u32) -> Vec<u32> {
    let mut before: FxHashMap<u32, u32> = FxHashMap::default();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for to in imports.of(at as usize).iter().filter(|to| component[**to as usize] == component[start as usize]) {
            if *to == start {
                let mut way = vec![at];
                while let Some(from) = way.last().filter(|last| **last != start).and_then(|last| before.get(last)) {
                    way.push(*from);
                }
                way.reverse();
                return way;
            }
            if !before.contains_key(to) {
                before.insert(*to, at);
                queue.push_back(*to);
            }
        }
    }
    vec![start]
}

fn unreferenced(code: &Code<'_>) -> Result<Vec<PatternMatch>> {
    let symbols = code.symbols;
    let unresolved = code.unresolved_names()?;
    let mut all = Vec::new();
    for (node, _) in code.asked(SymbolKind::runs) {
        let used = [SymbolRelation::Calls, SymbolRelation::References]
            .into_iter()
            .any(|rel| code.others(node, rel, LinkDirection::In).next().is_some());
        if used || may_run_unseen(code, node)? {
            continue;
        }
        let lines = code.number(node, "end_line")?.saturating_sub(code.number(node, "line")?) + 1;
        let again = symbols.linked(node, SymbolRelation::Calls, LinkDirection::In).next().is_some();
        let mut detail = count(lines, "line");
        if again {
            detail += "; only it calls itself";
        }
        if let Some(calls) = unresolved.get(&code.name(node)) {
            detail += &format!("; {} of that name could not be resolved", count(*calls, "call"));
        }
        all.push((to_usize(lines), PatternMatch { node, detail }));
    }
    Ok(worst_first(code, all))
}

/// Returns whether the symbol may be called from outside, by the language runtime, or through a method it overrides.
fn may_run_unseen(code: &Code<'_>, node: Node) -> Result<bool> {
    let symbols = code.symbols;
    let name = code.name(node);
    if (name.starts_with("__") && name.ends_with("__")) || name == "main" {
        return Ok(true);
    }
    for flag in ["entry", "exported", "abstract", "test"] {
        if code.holds(node, flag)? {
            return Ok(true);
        }
    }
    if code.text(node, "subtype")?.as_deref() == Some("constructor") {
        return Ok(true);
    }
    // An overriding method is called through the one it overrides.
    let mut bases = symbols.container(node).into_iter().flat_map(|class| {
        [SymbolRelation::Extends, SymbolRelation::Implements]
            .into_iter()
            .flat_map(move |rel| code.others(class, rel, LinkDirection::Out))
    });
    let from_outside =
        symbols.is(node, SymbolKind::Method) && bases.any(|b| symbols.kind(b).is_none_or(SymbolKind::outside));
    Ok(from_outside || !symbols.same_method(node, LinkDirection::Out).is_empty())
}

fn unused_exports(code: &Code<'_>) -> Result<Vec<PatternMatch>> {
    let symbols = code.symbols;
    let unresolved = code.unresolved_names()?;
    let mut names: FxHashMap<Node, FxHashSet<String>> = FxHashMap::default();
    let mut all = Vec::new();
    let is_export = |kind| !matches!(kind, SymbolKind::File | SymbolKind::Module | SymbolKind::Method);
    for (node, _) in code.asked(is_export) {
        let Some(file) = symbols.container(node).filter(|above| symbols.is(*above, SymbolKind::File)) else { continue };
        if !code.holds(node, "exported")? || code.holds(node, "entry")? || code.name(node) == "main" {
            continue;
        }
        let elsewhere = |node: Node| {
            [SymbolRelation::Calls, SymbolRelation::References, SymbolRelation::Extends, SymbolRelation::Implements]
                .into_iter()
                .any(|rel| code.others(node, rel, LinkDirection::In).any(|from| symbols.file(from) != Some(file)))
        };
        if symbols.whole(node, usize::MAX).0.into_iter().any(elsewhere) {
            continue;
        }
        let imported = match names.get(&file) {
            Some(imported) => imported,
            None => names.entry(file).or_insert(code.imported_names(file)?),
        };
        if imported.contains(&code.name(node)) {
            continue;
        }
        let here = symbols.callers(node) + code.others(node, SymbolRelation::References, LinkDirection::In).count();
        let mut detail = if here == 0 {
            "no use found".into()
        } else {
            format!("used {}, in its own file only", count(here, "time"))
        };
        if let Some(calls) = unresolved.get(&code.name(node)) {
            detail += &format!("; {} of that name could not be resolved", count(*calls, "call"));
        }
        // Symbols without any use come first.
        all.push((usize::from(here == 0), PatternMatch { node, detail }));
    }
    Ok(worst_first(code, all))
}

fn god_files(code: &Code<'_>) -> Result<Vec<PatternMatch>> {
    let mut all = Vec::new();
    for (file, _) in code.asked(|kind| kind == SymbolKind::File) {
        let inside = code.symbols.whole(file, usize::MAX).0;
        let defined =
            inside.iter().filter(|node| **node != file && !code.symbols.is(**node, SymbolKind::Variable)).count();
        let (importers, imports) =
            (code.files(file, LinkDirection::In).len(), code.files(file, LinkDirection::Out).len());
        if defined >= FILE_SYMBOLS || importers + imports >= FILE_LINKS {
            let lines = code.number(file, "lines")?;
            let detail = format!(
                "{}, {}, imports {}, imported by {importers}",
                count(defined, "symbol"),
                count(lines, "line"),
                count(imports, "file")
            );
            all.push((defined + importers + imports, PatternMatch { node: file, detail }));
        }
    }
    Ok(worst_first(code, all))
}

fn god_classes(code: &Code<'_>) -> Result<Vec<PatternMatch>> {
    let symbols = code.symbols;
    let mut all = Vec::new();
    for (class, _) in code.asked(|kind| kind == SymbolKind::Class) {
        let members = symbols.members(class);
        let methods: Vec<Node> = members.iter().copied().filter(|m| symbols.is(*m, SymbolKind::Method)).collect();
        if methods.len() < CLASS_METHODS {
            continue;
        }
        let inside: FxHashSet<Node> = members.iter().copied().chain([class]).collect();
        let callers: FxHashSet<Node> = methods
            .iter()
            .chain([&class])
            .flat_map(|node| code.others(*node, SymbolRelation::Calls, LinkDirection::In))
            .filter(|from| !inside.contains(from))
            .collect();
        let fields = members.len() - methods.len();
        let detail = format!(
            "{}, {}, called from {}",
            count(methods.len(), "method"),
            count(fields, "field"),
            count(callers.len(), "place")
        );
        all.push((methods.len() + callers.len(), PatternMatch { node: class, detail }));
    }
    Ok(worst_first(code, all))
}

fn long_functions(code: &Code<'_>) -> Result<Vec<PatternMatch>> {
    let mut all = Vec::new();
    for (node, _) in code.asked(SymbolKind::runs) {
        let (first, last) = (code.number(node, "line")?, code.number(node, "end_line")?);
        let lines = (last + 1).saturating_sub(first);
        if first > 0 && lines > FUNCTION_LINES {
            let calls = code.others(node, SymbolRelation::Calls, LinkDirection::Out).count();
            let detail = format!("{lines} lines ({first}-{last}), calls {}", count(calls, "symbol"));
            all.push((to_usize(lines), PatternMatch { node, detail }));
        }
    }
    Ok(worst_first(code, all))
}

fn deep_inheritance(code: &Code<'_>) -> Result<Vec<PatternMatch>> {
    let mut known: FxHashMap<Node, Vec<Node>> = FxHashMap::default();
    let mut all = Vec::new();
    for (class, _) in code.asked(|kind| matches!(kind, SymbolKind::Class | SymbolKind::Interface)) {
        // The lowest class reports the whole chain.
        if code.others(class, SymbolRelation::Extends, LinkDirection::In).next().is_some() {
            continue;
        }
        let chain = above(code, class, &mut vec![], &mut known);
        if chain.len() > DEEP {
            let names: Vec<String> = chain.iter().map(|node| code.name(*node)).collect();
            let detail = format!("{} levels: {}", chain.len() - 1, names.join(" -> "));
            all.push((chain.len(), PatternMatch { node: class, detail }));
        }
    }
    Ok(worst_first(code, all))
}

/// Returns a class and the longest chain of its ancestors; stops where a cycle closes.
fn above(code: &Code<'_>, class: Node, path: &mut Vec<Node>, known: &mut FxHashMap<Node, Vec<Node>>) -> Vec<Node> {
    if let Some(chain) = known.get(&class) {
        return chain.clone();
    }
    path.push(class);
    let mut bases: Vec<Node> = code.others(class, SymbolRelation::Extends, LinkDirection::Out).collect();
    bases.sort_by_cached_key(|base| code.key(*base).into_owned());
    let mut longest: Vec<Node> = Vec::new();
    let mut closes = false;
    for base in bases {
        if path.contains(&base) || path.len() >= DEEPEST {
            closes = true;
            continue;
        }
        let chain = above(code, base, path, known);
        if chain.len() > longest.len() {
            longest = chain;
        }
    }
    path.pop();
    longest.insert(0, class);
    // A chain found inside a cycle depends on its starting point, so it is not cached.
    if !closes {
        known.insert(class, longest.clone());
    }
    longest
}

fn untested(code: &Code<'_>) -> Result<Vec<PatternMatch>> {
    let symbols = code.symbols;
    let tests: Vec<Node> = code.own.iter().map(|(node, _)| *node).filter(|node| symbols.is_test(*node)).collect();
    let how = CallWalk { way: LinkDirection::Out, depth: REACHED, min_confidence: 0.0, include_tests: true };
    let reached: FxHashSet<Node> =
        symbols.reach(&tests, &how).0.into_iter().filter_map(|reached| symbols.file(reached.node)).collect();
    let mut all = Vec::new();
    for (file, _) in code.asked(|kind| kind == SymbolKind::File) {
        let inside = symbols.whole(file, usize::MAX).0;
        let runs = inside.iter().filter(|node| symbols.kind(**node).is_some_and(SymbolKind::runs));
        let functions = runs.filter(|node| !symbols.is_test(**node)).count();
        if functions == 0 || symbols.linked(file, SymbolRelation::Tests, LinkDirection::In).next().is_some() {
            continue;
        }
        let importers = code.files(file, LinkDirection::In).len();
        let by = if reached.contains(&file) { "tests reach it only through others" } else { "no test reaches it" };
        let detail = format!("{}, imported by {}; {by}", count(functions, "function"), count(importers, "file"));
        all.push((usize::from(!reached.contains(&file)), importers, functions, PatternMatch { node: file, detail }));
    }
    all.sort_by_cached_key(|(never, importers, functions, item)| {
        (Reverse(*never), Reverse(*importers), Reverse(*functions), code.key(item.node).into_owned())
    });
    Ok(all.into_iter().map(|(.., item)| item).collect())
}

fn duplicate_names(code: &Code<'_>) -> Result<Vec<PatternMatch>> {
    let symbols = code.symbols;
    let mut by_name: BTreeMap<(SymbolKind, String), Vec<Node>> = BTreeMap::new();
    let is_top =
        |kind| matches!(kind, SymbolKind::Class | SymbolKind::Interface | SymbolKind::Type | SymbolKind::Function);
    for (node, kind) in code.asked(is_top) {
        let top = symbols.container(node).is_some_and(|above| symbols.is(above, SymbolKind::File));
        let name = code.name(node);
        if top && name != "main" && !code.holds(node, "entry")? {
            by_name.entry((kind, name)).or_default().push(node);
        }
    }
    let mut all = Vec::new();
    for ((_, name), mut nodes) in by_name {
        nodes.sort_by_cached_key(|node| code.key(*node).into_owned());
        let files: Vec<String> = nodes.iter().map(|node| keys::path(&code.key(*node)).to_string()).collect();
        let mut different = files.clone();
        different.dedup();
        if different.len() < 2 {
            continue;
        }
        let mut bodies: BTreeMap<String, usize> = BTreeMap::new();
        for node in &nodes {
            if let Some(hash) = code.text(*node, "hash")? {
                *bodies.entry(hash).or_default() += 1;
            }
        }
        let same = bodies.values().copied().max().filter(|n| *n > 1).unwrap_or(0);
        let identical = if same > 0 { format!("; {same} are the same") } else { String::new() };
        let detail = format!("`{name}` in {}: {}{identical}", count(different.len(), "file"), few(different));
        all.push((same, nodes.len(), PatternMatch { node: nodes[0], detail }));
    }
    all.sort_by_cached_key(|(same, n, item)| (Reverse(*same), Reverse(*n), code.key(item.node).into_owned()));
    Ok(all.into_iter().map(|(.., item)| item).collect())
}

fn unresolved_hotspots(code: &Code<'_>) -> Result<Vec<PatternMatch>> {
    let mut all = Vec::new();
    for (file, _) in code.asked(|kind| kind == SymbolKind::File) {
        let calls = code.number(file, "calls")?;
        let mut unresolved = 0;
        for node in code.symbols.whole(file, usize::MAX).0 {
            unresolved += code.number(node, "unresolved_calls")?;
        }
        let share = unresolved as f64 / calls.max(1) as f64;
        if unresolved >= UNRESOLVED && share >= UNRESOLVED_SHARE {
            let detail = format!("{unresolved} of {} ({:.0} %)", count(calls, "call"), share * 100.0);
            all.push((to_usize(unresolved), PatternMatch { node: file, detail }));
        }
    }
    Ok(worst_first(code, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_cycle_is_reported() {
        // 0 -> 1 -> 2 -> 0, 2 -> 1, 0 -> 3.
        let edges = [(0, 1, 0), (1, 2, 0), (2, 0, 0), (2, 1, 0), (0, 3, 0)];
        let csr = Csr::new(4, edges.iter().copied());
        let component = strong_components(&csr);
        assert_eq!(shortest_circle(&csr, &component, 0), [0, 1, 2]);
        assert_eq!(shortest_circle(&csr, &component, 1), [1, 2]);
    }

    #[test]
    fn names_are_few() {
        let names = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        assert_eq!(few(names(2)), "0, 1");
        assert_eq!(few(names(10)), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}
