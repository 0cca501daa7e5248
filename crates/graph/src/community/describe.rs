//! Names and summaries of communities, by rule, from the names of their members and from their edges.

use super::DetectedCommunities;
use crate::convert::to_u32;
use crate::flat::FlatGraph;
use crate::snapshot::{Node, Snapshot};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A group of closely connected nodes. It is computed from the graph and never written to the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Community {
    /// Unique among the communities of one result.
    pub key: String,
    pub label: String,
    pub summary: String,
    /// In order of PageRank, the highest first.
    pub members: Vec<Node>,
    /// The member with the most edges to other members.
    pub central: Node,
    /// Edges between members, and from members to others.
    pub inside: usize,
    pub outside: usize,
}

/// Parts of paths that do not describe what is in them.
const GENERIC: [&str; 12] =
    ["src", "lib", "dist", "build", "node_modules", "main", "index", "mod", "crates", "packages", "app", "pkg"];

/// Communities of at least two nodes, the largest first. Nodes in no community of that size are left out.
pub fn describe(snapshot: &Snapshot, flat: &FlatGraph, found: &DetectedCommunities) -> Vec<Community> {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); found.count];
    for (v, c) in found.community.iter().enumerate() {
        members[*c as usize].push(to_u32(v));
    }
    let ranks = snapshot.ranks();
    let mut all: Vec<Community> = Vec::new();
    let mut towards: Vec<FxHashMap<u32, usize>> = Vec::new();
    for (number, mut own) in members.into_iter().enumerate().filter(|(_, m)| m.len() > 1) {
        let (mut inside, mut outside) = (0, 0);
        let mut others: FxHashMap<u32, usize> = FxHashMap::default();
        let mut central = (0, Reverse(u32::MAX));
        for &v in &own {
            let mut company = 0;
            for (csr, out) in [(&flat.out, true), (&flat.into, false)] {
                for u in csr.of(v as usize) {
                    let there = found.community[*u as usize];
                    if there as usize == number {
                        company += 1;
                        inside += usize::from(out);
                    } else {
                        outside += 1;
                        *others.entry(there).or_default() += 1;
                    }
                }
            }
            central = central.max((company, Reverse(v)));
        }
        own.sort_by(|a, b| ranks[*b as usize].total_cmp(&ranks[*a as usize]).then(a.cmp(b)));
        let central = flat.nodes[central.1.0 as usize];
        let nodes: Vec<Node> = own.iter().map(|v| flat.nodes[*v as usize]).collect();
        let label = label(snapshot, &nodes, central);
        all.push(Community {
            key: String::new(),
            label,
            summary: String::new(),
            members: nodes,
            central,
            inside,
            outside,
        });
        towards.push(others);
    }
    name_apart(snapshot, &mut all);
    let labels: Vec<String> = all.iter().map(|c| c.label.clone()).collect();
    for (community, others) in all.iter_mut().zip(towards) {
        community.summary = summary(snapshot, community, &others, &labels);
    }
    all
}

/// The parts of the path of a key, without its symbol.
fn segments(key: &str) -> impl Iterator<Item = &str> {
    let path = key.split("::").next().unwrap_or(key);
    path.split('/').filter(|s| !s.is_empty() && !GENERIC.contains(s))
}

/// How often each part of a path occurs among members, the most frequent first.
fn common(snapshot: &Snapshot, members: &[Node]) -> Vec<(usize, String)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for key in members.iter().filter_map(|m| snapshot.key(*m)).filter(|key| key.contains('/')) {
        for part in segments(key) {
            *counts.entry(part).or_default() += 1;
        }
    }
    let mut all: Vec<_> = counts.into_iter().map(|(part, count)| (count, part.to_string())).collect();
    all.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    all
}

/// The part of paths that most members share; without paths, the name of the central member.
fn label(snapshot: &Snapshot, members: &[Node], central: Node) -> String {
    let shared = common(snapshot, members);
    match shared.first() {
        // A part that few members share does not describe the community.
        Some((count, part)) if *count * 3 >= members.len() => part.clone(),
        _ => match snapshot.key(central) {
            Some(key) => short(key).to_string(),
            None => "misc".into(),
        },
    }
}

/// The last part of a key.
fn short(key: &str) -> &str {
    key.rsplit(['/', ':']).find(|part| !part.is_empty()).unwrap_or(key)
}

/// Makes equal labels unique: first by the central member, then by a number.
fn name_apart(snapshot: &Snapshot, all: &mut [Community]) {
    let mut uses: FxHashMap<String, usize> = FxHashMap::default();
    all.iter().for_each(|c| *uses.entry(c.label.clone()).or_default() += 1);
    let mut taken: FxHashMap<String, usize> = FxHashMap::default();
    for community in all.iter_mut() {
        if uses[&community.label] > 1
            && let Some(key) = snapshot.key(community.central)
            && short(key) != community.label
        {
            community.label = format!("{}: {}", community.label, short(key));
        }
        let again = taken.entry(community.label.clone()).or_default();
        *again += 1;
        if *again > 1 {
            community.label = format!("{} {again}", community.label);
        }
        community.key = community.label.replace(": ", "/").replace(' ', "-");
    }
    // A suffix may produce a key that exists already. A number makes it unique.
    let mut seen: FxHashMap<String, usize> = FxHashMap::default();
    for community in all.iter_mut() {
        let again = seen.entry(community.key.clone()).or_default();
        *again += 1;
        if *again > 1 {
            community.key = format!("{}~{again}", community.key);
        }
    }
}

fn summary(snapshot: &Snapshot, community: &Community, others: &FxHashMap<u32, usize>, labels: &[String]) -> String {
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    community.members.iter().for_each(|m| *types.entry(snapshot.type_name(*m)).or_default() += 1);
    let mut types: Vec<_> = types.into_iter().collect();
    types.sort_by_key(|(name, count)| (Reverse(*count), *name));
    let mut kinds: Vec<_> = types.iter().take(3).map(|(name, count)| format!("{count} {name}")).collect();
    let more: usize = types.iter().skip(3).map(|(_, count)| count).sum();
    if more > 0 {
        kinds.push(format!("{more} other"));
    }
    let mut text = format!("{} around {}", kinds.join(", "), snapshot.name(community.central));
    let shared: Vec<_> = common(snapshot, &community.members);
    let places: Vec<_> =
        shared.iter().take(2).filter(|(n, _)| n * 3 >= community.members.len()).map(|(_, p)| p.as_str()).collect();
    if !places.is_empty() {
        text += &format!(", mostly in {}", places.join(", "));
    }
    let inside =
        if community.inside == 1 { "1 relationship".into() } else { format!("{} relationships", community.inside) };
    text += &format!("; {inside} inside, {} to others", community.outside);
    let mut others: Vec<_> = others.iter().filter(|(c, _)| (**c as usize) < labels.len()).collect();
    others.sort_by_key(|(c, count)| (Reverse(**count), **c));
    let near: Vec<_> = others.iter().take(2).map(|(c, _)| labels[**c as usize].as_str()).collect();
    if !near.is_empty() {
        text += &format!(", most to {}", near.join(", "));
    }
    text
}
