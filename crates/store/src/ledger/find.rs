//! Looks up one fact: by name in a view, its history, and its relationships.

use super::{Ledger, by_fact, unique};
use crate::{Reader, VersionFields};
use lukasa_model::branch::Lineage;
use lukasa_model::id::object_id;
use lukasa_model::plan::{Side, ambiguous, nothing_named};
use lukasa_model::timeline::{superseded_at, timeline, visible};
use lukasa_model::types::{RENAMED_FROM, Registry};
use lukasa_model::version::{Fact, Provenance, Version};
use lukasa_model::{Error, ErrorCode, FactNo, Period, Reference, Result, Time, View};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use strsim::levenshtein;

/// A visible fact.
#[derive(Clone, Debug)]
pub struct VisibleFact {
    pub thing: Fact,
    /// The version that is visible.
    pub statement: Version,
    /// For relationships: both ends, and whether they have ended.
    pub ends: Option<Box<[(Fact, bool); 2]>>,
    /// The requested name, if the fact was renamed from it.
    pub renamed_from: Option<String>,
}

/// What an exact name (`Type:key`, a key or an id) refers to in a view.
#[derive(Clone, Debug)]
pub enum NamedFact {
    /// The fact is visible.
    Visible(Box<VisibleFact>),
    /// The object exists in the project, but is not visible in this view.
    Ended,
    /// No fact has this name.
    Unknown,
}

/// A relationship of an object, seen from that object.
#[derive(Clone, Debug)]
pub struct ObjectRelationship {
    /// The relationship.
    pub thing: Fact,
    /// The version of the relationship that is visible.
    pub statement: Version,
    /// The end at which the object is.
    pub side: Side,
    /// The object at the other end.
    pub other: Fact,
    /// Whether the other end is no longer visible.
    pub other_ended: bool,
    /// The current identity of the other end, if it was renamed.
    pub other_renamed_to: Option<Fact>,
}

/// One version in the history of a fact.
#[derive(Clone, Debug)]
pub struct HistoryEntry {
    pub statement: Version,
    /// The name of the branch it was recorded on; `project` if it is project-wide.
    pub branch: String,
    /// When later versions of the branch had replaced this one for its whole period.
    pub superseded_at: Option<Time>,
    /// If a merge created it: the versions it was created from.
    pub provenance: Vec<Provenance>,
}

/// Most renames followed from one name; more would be a cycle.
const RENAMES: usize = 16;
/// Most similar names to suggest when nothing is found.
const OFFERED: usize = 3;

impl Ledger {
    /// Returns the visible fact with this name. Follows renames. If there is none, the error suggests similar names.
    pub fn find(&self, view: &View, reference: &Reference) -> Result<VisibleFact> {
        let mut reader = self.store.read(&self.scope)?;
        let mut lookup = self.lookup(&mut *reader, view)?;
        lookup.find(reference)
    }

    /// Like `find`, but a missing fact is not an error. An ambiguous key still is.
    pub fn named(&self, view: &View, reference: &Reference) -> Result<NamedFact> {
        let mut reader = self.store.read(&self.scope)?;
        let mut lookup = self.lookup(&mut *reader, view)?;
        lookup.named(reference)
    }

    /// Returns `Type:key` of visible objects with names similar to a text, most similar first.
    pub fn near(&self, view: &View, text: &str) -> Result<Vec<String>> {
        let mut reader = self.store.read(&self.scope)?;
        let mut lookup = self.lookup(&mut *reader, view)?;
        lookup.near(text)
    }

    /// Returns until when the visible version of a fact holds in this view; `Time::MAX` if it does not end.
    pub fn holds_until(&self, view: &View, thing: &Fact) -> Result<Time> {
        let own = self.store.read(&self.scope)?.versions(&[thing.no], VersionFields::Header)?;
        let line = timeline(&own, &view.lineage, Period::since(view.valid));
        Ok(line.first().map_or(Time::MAX, |segment| segment.period.to))
    }

    /// Returns all versions of a fact along the view's lineage, oldest first; `all_branches` adds those of other
    /// branches.
    pub fn history(&self, view: &View, reference: &Reference, all_branches: bool) -> Result<(Fact, Vec<HistoryEntry>)> {
        let mut reader = self.store.read(&self.scope)?;
        let mut lookup = self.lookup(&mut *reader, view)?;
        let thing = lookup.any(reference)?;
        let registry = Arc::clone(&lookup.registry);
        let all = reader.versions(&[thing.no], VersionFields::All)?;
        let provenance = reader.provenance(&[thing.no])?;
        let on_line = |s: &Version| {
            all_branches && s.version.tx() <= view.known
                || view.lineage.cap(s.branch).is_some_and(|cap| s.version.tx() <= cap)
        };
        let known: Vec<_> = all.iter().filter(|s| s.version.tx() <= view.known).cloned().collect();
        let mut entries: Vec<_> = all
            .iter()
            .filter(|s| on_line(s))
            .map(|s| HistoryEntry {
                branch: registry.branch_name(s.branch).to_string(),
                superseded_at: superseded_at(&known, s.version),
                provenance: provenance.iter().filter(|p| p.child == s.version).copied().collect(),
                statement: s.clone(),
            })
            .collect();
        entries.sort_by_key(|e| e.statement.version);
        Ok((thing, entries))
    }

    /// Returns the visible relationships of an object, ordered by type and number, at most `limit`, and their total
    /// number.
    pub fn links(&self, view: &View, object: &Fact, limit: usize) -> Result<(Vec<ObjectRelationship>, usize)> {
        let mut reader = self.store.read(&self.scope)?;
        let mut lookup = self.lookup(&mut *reader, view)?;
        lookup.links(object, limit)
    }

    pub(super) fn lookup<'a>(&self, reader: &'a mut dyn Reader, view: &'a View) -> Result<FactLookup<'a>> {
        let head = reader.head()?;
        let registry = self.registry_at(reader, &head, view.known)?;
        Ok(FactLookup { namespace: head.namespace, reader, registry, lineage: &view.lineage, at: view.valid })
    }
}

pub(super) struct FactLookup<'a> {
    reader: &'a mut dyn Reader,
    registry: Arc<Registry>,
    lineage: &'a Lineage,
    at: Time,
    namespace: uuid::Uuid,
}

impl FactLookup<'_> {
    fn find(&mut self, reference: &Reference) -> Result<VisibleFact> {
        match self.named(reference)? {
            NamedFact::Visible(found) => Ok(*found),
            NamedFact::Ended => {
                Err(Error::not_found(ErrorCode::NotFound, format!("`{reference}` is not there in this view"))
                    .hint(format!("`lukasa history {reference}` shows when it existed")))
            }
            NamedFact::Unknown => Err(self.unknown_name(reference)),
        }
    }

    fn named(&mut self, reference: &Reference) -> Result<NamedFact> {
        let candidates = self.candidates(reference)?;
        let mut seen = self.seen(candidates.clone(), VersionFields::All)?;
        if seen.len() > 1 {
            return Err(ambiguous(&reference.to_string(), seen.iter().map(|(thing, _)| thing)));
        }
        if let Some((thing, statement)) = seen.pop() {
            let found = self.with_ends(thing, statement, None)?;
            return Ok(found.map_or(NamedFact::Unknown, |found| NamedFact::Visible(Box::new(found))));
        }
        for thing in &candidates {
            if let Some(new) = self.renamed(thing.no)?
                && let Some((thing, statement)) = self.seen(vec![new], VersionFields::All)?.pop()
            {
                let found = self.with_ends(thing, statement, Some(reference.to_string()))?;
                return Ok(found.map_or(NamedFact::Unknown, |found| NamedFact::Visible(Box::new(found))));
            }
        }
        Ok(if candidates.is_empty() { NamedFact::Unknown } else { NamedFact::Ended })
    }

    /// Returns a fact by name, visible or not.
    pub(super) fn any(&mut self, reference: &Reference) -> Result<Fact> {
        let mut candidates = self.candidates(reference)?;
        if candidates.len() > 1 {
            let seen = self.seen(candidates.clone(), VersionFields::Header)?;
            if seen.len() != 1 {
                return Err(ambiguous(&reference.to_string(), candidates.iter()));
            }
            candidates = seen.into_iter().map(|(thing, _)| thing).collect();
        }
        candidates.pop().ok_or_else(|| self.unknown_name(reference))
    }

    /// Returns the facts that a name may refer to: the one for `Type:key` if it exists, else all with that key.
    fn candidates(&mut self, reference: &Reference) -> Result<Vec<Fact>> {
        if let Reference::Id(id) = reference {
            return self.reader.facts(&[*id]);
        }
        if let Some((type_name, key)) = reference.typed() {
            let spelled = self.registry.spelling(type_name, false).to_string();
            let mut found = self.reader.facts(&[object_id(self.namespace, &spelled, key)])?;
            if found.is_empty() {
                // Facts written before this name became an alias have an id derived from it.
                found = self.reader.facts(&[object_id(self.namespace, type_name, key)])?;
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
        match reference {
            Reference::Text(text) => {
                let mut found = self.reader.objects_keyed(std::slice::from_ref(text))?;
                found.sort_by_key(|t| t.no);
                Ok(found)
            }
            _ => Ok(vec![]),
        }
    }

    /// Keeps the facts that have a visible version, regardless of their ends.
    fn seen(&mut self, things: Vec<Fact>, fields: VersionFields) -> Result<Vec<(Fact, Version)>> {
        let numbers: Vec<_> = things.iter().map(|t| t.no).collect();
        let statements = by_fact(self.reader.versions(&numbers, fields)?);
        let found = things.into_iter().filter_map(|thing| {
            let own = statements.get(&thing.no)?;
            visible(own, self.lineage, self.at).cloned().map(|s| (thing, s))
        });
        Ok(found.collect())
    }

    fn with_ends(
        &mut self,
        thing: Fact,
        statement: Version,
        renamed_from: Option<String>,
    ) -> Result<Option<VisibleFact>> {
        let Some(ends) = thing.ends.clone() else {
            return Ok(Some(VisibleFact { thing, statement, ends: None, renamed_from }));
        };
        let both = self.reader.facts_numbered(&[ends.src, ends.dst])?;
        let there: FxHashSet<_> =
            self.seen(both.clone(), VersionFields::Header)?.into_iter().map(|(thing, _)| thing.no).collect();
        let end = |no| both.iter().find(|t| t.no == no).map(|t| (t.clone(), !there.contains(&no)));
        let (Some(src), Some(dst)) = (end(ends.src), end(ends.dst)) else {
            return Err(Error::internal("a relationship without its ends").hint("run `lukasa verify`"));
        };
        if (src.1 || dst.1) && !self.registry.is_lasting(&thing.type_name) {
            return Ok(None);
        }
        Ok(Some(VisibleFact { thing, statement, ends: Some(Box::new([src, dst])), renamed_from }))
    }

    /// Returns the current identity of a fact that ended by being renamed.
    fn renamed(&mut self, mut number: FactNo) -> Result<Option<Fact>> {
        let mut last = None;
        for _ in 0..RENAMES {
            let mut edges = self.reader.relationships(&[(number, Side::Dst)])?;
            edges.retain(|t| t.type_name.eq_ignore_ascii_case(RENAMED_FROM));
            let Some((edge, _)) = self.seen(edges, VersionFields::Header)?.pop() else { break };
            let Some(ends) = edge.ends else { break };
            number = ends.src;
            let new = self.reader.facts_numbered(&[number])?;
            last = new.first().cloned();
            // After renames back and forth, the first visible one counts.
            if !self.seen(new, VersionFields::Header)?.is_empty() {
                break;
            }
        }
        Ok(last)
    }

    fn links(&mut self, object: &Fact, limit: usize) -> Result<(Vec<ObjectRelationship>, usize)> {
        let edges = self.reader.relationships(&[(object.no, Side::Src), (object.no, Side::Dst)])?;
        let mut edges = self.seen(edges, VersionFields::Content)?;
        edges.sort_by(|(a, _), (b, _)| a.type_name.cmp(&b.type_name).then(a.no.cmp(&b.no)));
        let far = |thing: &Fact| {
            let ends = thing.ends.as_ref()?;
            Some(if ends.src == object.no { (Side::Src, ends.dst) } else { (Side::Dst, ends.src) })
        };
        let others = unique(edges.iter().filter_map(|(thing, _)| far(thing)).map(|(_, no)| no).collect());
        let others = self.reader.facts_numbered(&others)?;
        let there: FxHashSet<_> =
            self.seen(others.clone(), VersionFields::Header)?.into_iter().map(|(thing, _)| thing.no).collect();
        let others: FxHashMap<_, _> = others.into_iter().map(|t| (t.no, t)).collect();
        let mut links = Vec::new();
        let mut total = 0;
        for (thing, statement) in edges {
            let Some((side, no)) = far(&thing) else { continue };
            let Some(other) = others.get(&no) else { continue };
            let other_ended = !there.contains(&no);
            if other_ended && !self.registry.is_lasting(&thing.type_name) {
                continue;
            }
            total += 1;
            if links.len() < limit {
                let renames = other_ended && !thing.type_name.eq_ignore_ascii_case(RENAMED_FROM);
                let other_renamed_to = if renames { self.renamed(no)? } else { None };
                links.push(ObjectRelationship {
                    thing,
                    statement,
                    side,
                    other: other.clone(),
                    other_ended,
                    other_renamed_to,
                });
            }
        }
        Ok((links, total))
    }

    /// The error for an unknown name, with suggestions.
    fn unknown_name(&mut self, reference: &Reference) -> Error {
        let error = nothing_named(reference);
        match self.near(&reference.to_string()) {
            Ok(near) if !near.is_empty() => {
                let names: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
                error.hint(format!("closest: {}", names.join(", ")))
            }
            _ => error,
        }
    }

    fn near(&mut self, asked: &str) -> Result<Vec<String>> {
        let tail = asked.rsplit([':', '/', '.']).find(|part| !part.is_empty()).unwrap_or(asked);
        let stem: String = tail.chars().take(tail.chars().count().div_ceil(2).max(3)).collect();
        let near = self.reader.objects_like(&stem, 200)?;
        let near = self.seen(near, VersionFields::Header)?;
        let mut near: Vec<_> = near
            .into_iter()
            .filter_map(|(thing, _)| thing.key.map(|key| (thing.type_name, key)))
            .map(|(type_name, key)| {
                (levenshtein(asked, &key).min(levenshtein(asked, &format!("{type_name}:{key}"))), type_name, key)
            })
            .collect();
        near.sort();
        Ok(near.iter().take(OFFERED).map(|(_, type_name, key)| format!("{type_name}:{key}")).collect())
    }
}
