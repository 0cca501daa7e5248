//! An overview of a program: entry points, hubs, communities of files, and import cycles.

use crate::convert::to_u32;
use lukasa_code::facts::{DefId, DefKind, ROOT, flag};
use lukasa_code::ids::IdVec;
use lukasa_code::keys;
use lukasa_code::resolve::{DefRef, Derivation, FileId, FileLinks, LinkTarget, Program};
use lukasa_graph::community::{CommunityOptions, Undirected, detect};
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of entries of each list.
const LIST_LIMIT: usize = 8;

#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ProgramOverview {
    /// Where programs start: `main`, binaries, scripts.
    pub entry_points: Vec<String>,
    /// Functions and classes with the most call sites.
    pub hubs: Vec<CountedSymbol>,
    /// Files that most others import.
    pub most_imported: Vec<CountedSymbol>,
    /// Groups of files that call and import one another, largest first.
    pub communities: Vec<FileGroup>,
    /// Files that import one another in a cycle.
    pub cycles: Vec<Vec<String>>,
    pub cycles_total: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CountedSymbol {
    pub key: String,
    pub count: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileGroup {
    /// The folder that most of the files are in.
    pub name: String,
    pub files: usize,
    /// The files that the others depend on most.
    pub members: Vec<String>,
}

/// Computes the overview from resolved links.
pub fn program_overview(program: &Program, links: &IdVec<FileId, FileLinks>) -> ProgramOverview {
    let files: Vec<FileId> = program.ids().collect();
    let imports = between_files(program, links, &files);
    let (cycles, cycles_total) = cycles(program, &files, &imports);
    ProgramOverview {
        entry_points: entry_points(program, &files),
        hubs: hubs(program, links, &files),
        most_imported: most_imported(program, &imports),
        communities: communities(program, links, &files),
        cycles,
        cycles_total,
    }
}

fn is_test(program: &Program, file: FileId) -> bool {
    program.file(file).facts.def(ROOT).is(flag::TEST)
}

fn key_of(program: &Program, gid: DefRef) -> Option<String> {
    let file = program.file(gid.file);
    keys::keys(&file.path, &file.facts).into_iter().nth(gid.def.index())?.map(|(_, key)| key)
}

fn entry_points(program: &Program, files: &[FileId]) -> Vec<String> {
    let mut found = Vec::new();
    for id in files.iter().filter(|id| !is_test(program, **id)) {
        let file = program.file(*id);
        let entries = file.facts.defs.iter_ids().filter(|(_, d)| d.is(flag::ENTRY));
        for (def, _) in entries {
            found.extend(key_of(program, DefRef { file: *id, def }));
        }
    }
    // Programs nearest to the root are the most likely to be started by users.
    found.sort_by_key(|key| (key.matches('/').count(), key.clone()));
    found.truncate(LIST_LIMIT);
    found
}

fn hubs(program: &Program, links: &IdVec<FileId, FileLinks>, files: &[FileId]) -> Vec<CountedSymbol> {
    let mut callers: FxHashMap<DefRef, FxHashSet<(FileId, DefId)>> = FxHashMap::default();
    for id in files {
        let facts = &program.file(*id).facts;
        for link in &links[*id].calls {
            if let LinkTarget::Def(to) = link.to
                && link.how < Derivation::Possible
                && program.def(to).kind != DefKind::Lambda
                && !is_test(program, to.file)
            {
                callers.entry(to).or_default().insert((*id, facts.calls[link.call].owner));
            }
        }
    }
    let mut ranked: Vec<(usize, DefRef)> = callers.into_iter().map(|(gid, from)| (from.len(), gid)).collect();
    ranked.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    ranked
        .into_iter()
        .filter_map(|(count, gid)| Some(CountedSymbol { key: key_of(program, gid)?, count }))
        .take(LIST_LIMIT)
        .collect()
}

/// Files that import others: from, to, each pair once.
fn between_files(program: &Program, links: &IdVec<FileId, FileLinks>, files: &[FileId]) -> FxHashSet<(FileId, FileId)> {
    let mut pairs = FxHashSet::default();
    for id in files {
        for link in &links[*id].imports {
            let import = &program.file(*id).facts.imports[link.import];
            if let LinkTarget::Def(to) = link.to
                && to.file != *id
                && !import.type_only
                && import.owner == ROOT
            {
                pairs.insert((*id, to.file));
            }
        }
    }
    pairs
}

fn most_imported(program: &Program, imports: &FxHashSet<(FileId, FileId)>) -> Vec<CountedSymbol> {
    let mut counts: FxHashMap<FileId, usize> = FxHashMap::default();
    for (_, to) in imports {
        *counts.entry(*to).or_default() += 1;
    }
    let mut ranked: Vec<CountedSymbol> = counts
        .into_iter()
        .map(|(file, count)| CountedSymbol { key: program.file(file).path.to_string(), count })
        .collect();
    ranked.sort_by(|a, b| b.count.cmp(&a.count).then(a.key.cmp(&b.key)));
    ranked.truncate(LIST_LIMIT);
    ranked
}

fn communities(program: &Program, links: &IdVec<FileId, FileLinks>, files: &[FileId]) -> Vec<FileGroup> {
    let places: FxHashMap<FileId, u32> = files.iter().enumerate().map(|(at, id)| (*id, to_u32(at))).collect();
    let mut weights: FxHashMap<(u32, u32), f64> = FxHashMap::default();
    let mut lean: FxHashMap<u32, usize> = FxHashMap::default();
    for id in files {
        let own = places[id];
        let calls = links[*id].calls.iter().map(|l| (l.to, l.how.confidence()));
        let imports = links[*id].imports.iter().map(|l| (l.to, 1.0));
        for (to, weight) in calls.chain(imports) {
            let LinkTarget::Def(to) = to else { continue };
            let Some(other) = places.get(&to.file) else { continue };
            if *other != own {
                *weights.entry((own.min(*other), own.max(*other))).or_default() += weight;
                *lean.entry(*other).or_default() += 1;
            }
        }
    }
    let mut edges: Vec<(u32, u32, f64)> = weights.into_iter().map(|((a, b), w)| (a, b, w.ln_1p())).collect();
    edges.sort_by_key(|(a, b, _)| (*a, *b));
    let graph = Undirected::new(files.len(), edges.into_iter());
    let found = detect(&graph, &CommunityOptions::default());
    let mut groups: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for (at, community) in found.community.iter().enumerate() {
        groups.entry(*community).or_default().push(to_u32(at));
    }
    let mut groups: Vec<Vec<u32>> = groups.into_values().filter(|g| g.len() > 2).collect();
    groups.sort_by_key(|g| (std::cmp::Reverse(g.len()), g[0]));
    groups.truncate(LIST_LIMIT);
    groups
        .into_iter()
        .map(|mut members| {
            let folders = members.iter().map(|at| program.file(files[*at as usize]).folder.clone());
            let mut counts: FxHashMap<_, usize> = FxHashMap::default();
            for folder in folders {
                *counts.entry(folder).or_default() += 1;
            }
            let name = counts.into_iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0)));
            let name = name.map_or(String::new(), |(folder, _)| folder.to_string());
            members.sort_by_key(|at| (std::cmp::Reverse(lean.get(at).copied().unwrap_or(0)), *at));
            let shown = members.iter().take(3).map(|at| program.file(files[*at as usize]).path.to_string());
            FileGroup {
                name: if name.is_empty() { ".".into() } else { name },
                files: members.len(),
                members: shown.collect(),
            }
        })
        .collect()
}

/// Import cycles: strongly connected files, by Tarjan's algorithm without recursion.
fn cycles(program: &Program, files: &[FileId], imports: &FxHashSet<(FileId, FileId)>) -> (Vec<Vec<String>>, usize) {
    let mut out: FxHashMap<FileId, Vec<FileId>> = FxHashMap::default();
    for (from, to) in imports {
        out.entry(*from).or_default().push(*to);
    }
    out.values_mut().for_each(|v| v.sort_unstable());
    let none: Vec<FileId> = Vec::new();
    let (mut index, mut low): (FxHashMap<FileId, usize>, FxHashMap<FileId, usize>) = Default::default();
    let (mut stack, mut on): (Vec<FileId>, FxHashSet<FileId>) = Default::default();
    let mut found: Vec<Vec<FileId>> = Vec::new();
    for start in files {
        if index.contains_key(start) {
            continue;
        }
        let mut work: Vec<(FileId, usize)> = vec![(*start, 0)];
        while let Some((at, next)) = work.pop() {
            if next == 0 {
                let number = index.len();
                index.insert(at, number);
                low.insert(at, number);
                stack.push(at);
                on.insert(at);
            }
            let to = out.get(&at).unwrap_or(&none);
            if let Some(other) = to.get(next) {
                work.push((at, next + 1));
                if !index.contains_key(other) {
                    work.push((*other, 0));
                } else if on.contains(other) {
                    let least = low[&at].min(index[other]);
                    low.insert(at, least);
                }
                continue;
            }
            if low[&at] == index[&at] {
                let mut group = Vec::new();
                while let Some(member) = stack.pop() {
                    on.remove(&member);
                    group.push(member);
                    if member == at {
                        break;
                    }
                }
                if group.len() > 1 {
                    found.push(group);
                }
            }
            if let Some((above, _)) = work.last() {
                let least = low[above].min(low[&at]);
                low.insert(*above, least);
            }
        }
    }
    let total = found.len();
    let mut named: Vec<Vec<String>> = found
        .into_iter()
        .map(|group| {
            let mut paths: Vec<String> = group.iter().map(|id| program.file(*id).path.to_string()).collect();
            paths.sort();
            paths
        })
        .collect();
    named.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    named.truncate(LIST_LIMIT);
    (named, total)
}
