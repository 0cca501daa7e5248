//! Turns a batch into the versions to record, given the stored facts: every check of a commit, without I/O.
//!
//! A store runs it in three steps: [`Drafts::read`] determines which ids and keys to load, [`Drafts::resolve`] turns
//! names into ids once those are loaded, and [`plan`] decides what to record once all versions are loaded.

mod created_objects;
mod drafts;

pub use created_objects::CreatedObjects;
pub use drafts::{DecidedWrite, Drafts, ResolvedBatch};

use crate::ErrorCode;
use crate::batch::Reference;
use crate::branch::Lineage;
use crate::change::{self, summarise};
use crate::claims::{self, ClaimTarget};
use crate::content::Content;
use crate::error::{Error, Result};
use crate::id::{BranchNo, FactNo, PROJECT_WIDE, Tx, VersionId};
use crate::time::{Period, Time};
use crate::timeline::{has_content, last_number, timeline, visible};
use crate::types::{Count, Registry};
use crate::version::{Fact, MergeRole, Provenance, RelationshipEnds, Version};
use drafts::{DraftContent, ResolvedWrite};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use uuid::Uuid;

/// What a store has loaded for a batch.
#[derive(Debug, Default)]
pub struct LoadedFacts<'m> {
    /// Facts by id.
    pub things: FxHashMap<Uuid, Fact>,
    /// Ids of the objects with a key, of any type.
    pub by_key: FxHashMap<Box<str>, Vec<Uuid>>,
    /// All versions of the facts above, ordered by branch and version.
    pub statements: FxHashMap<FactNo, Vec<Version>>,
    /// Relationships that share an end of limited multiplicity with one that is written.
    pub rivals: FxHashSet<Uuid>,
    /// Objects created by earlier parts of the same load; consulted after `things`.
    pub made: Option<&'m CreatedObjects>,
}

impl LoadedFacts<'_> {
    /// Returns a fact, stored before or created by an earlier part of the load.
    pub fn fact(&self, id: Uuid) -> Option<&Fact> {
        self.things.get(&id).or_else(|| self.made?.get(&id).map(|(thing, _)| thing))
    }

    fn versions_of(&self, id: Uuid) -> &[Version] {
        self.found(id).1
    }

    /// Returns a fact that was stored before this load, and all its versions.
    fn stored(&self, id: Uuid) -> (Option<&Fact>, &[Version]) {
        match self.things.get(&id) {
            Some(thing) => (Some(thing), self.statements.get(&thing.no).map_or(&[], Vec::as_slice)),
            None => (None, &[]),
        }
    }

    /// Like `stored`, and also finds objects that an earlier part of the load created.
    fn found(&self, id: Uuid) -> (Option<&Fact>, &[Version]) {
        if let found @ (Some(_), _) = self.stored(id) {
            return found;
        }
        match self.made.and_then(|made| made.get(&id)) {
            Some((thing, statement)) => (Some(thing), std::slice::from_ref(statement)),
            None => (None, &[]),
        }
    }
}

/// Where and when a batch is recorded.
pub struct PlanContext<'a> {
    /// What is declared before the batch.
    pub registry: &'a Registry,
    /// The branch that is written to.
    pub branch: BranchNo,
    /// The lineage of the branch before the batch.
    pub lineage: &'a Lineage,
    /// The transaction that records the batch.
    pub tx: Tx,
    /// The recording time.
    pub now: Time,
    /// The number of the next new fact.
    pub next_thing: FactNo,
    /// Index of the first version in the transaction; 0 unless a load is split into parts.
    pub first_place: u32,
}

/// One of the two ends of a relationship.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    Src,
    Dst,
}

impl Side {
    /// Returns the name of this end in requests and responses.
    pub fn name(self) -> &'static str {
        match self {
            Side::Src => "src",
            Side::Dst => "dst",
        }
    }
}

fn limited_sides(registry: &Registry, type_name: &str) -> impl Iterator<Item = Side> + use<> {
    let multiplicity = registry.relationship_type(type_name).map(|t| t.multiplicity).unwrap_or_default();
    [(Side::Src, multiplicity.src), (Side::Dst, multiplicity.dst)]
        .into_iter()
        .filter(|(_, count)| *count == Count::One)
        .map(|(side, _)| side)
}

/// What to record for a batch.
#[derive(Debug, Default)]
pub struct Plan {
    /// New facts, in order of their numbers.
    pub things: Vec<Fact>,
    /// In the order in which they are recorded.
    pub statements: Vec<Version>,
    /// Only of merges.
    pub provenance: Vec<Provenance>,
    /// The numbers of versions of objects and of relationships.
    pub objects: u32,
    pub relationships: u32,
    /// The number of writes that changed nothing.
    pub unchanged: usize,
    /// For the client, for example types that are not declared.
    pub warnings: Vec<String>,
    /// One result per write, in the order of the batch: the fact and its version number now visible to the writer.
    pub results: Vec<WriteResult>,
}

/// The result of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteResult {
    /// The fact that was written.
    pub id: Uuid,
    /// `None` when the write changed nothing.
    pub version: Option<VersionId>,
    /// The number of the version that is visible to the writer now; 0 if there is none.
    pub number: u32,
}

/// Decides what a batch records. Fails if a check of the batch fails.
pub fn plan(mut resolved: ResolvedBatch, known: &LoadedFacts<'_>, at: &PlanContext<'_>) -> Result<Plan> {
    let items = resolved.items.len();
    let mut planner = Planner {
        known,
        at,
        plan: Plan { things: Vec::with_capacity(items), statements: Vec::with_capacity(items), ..Plan::default() },
        fresh: FxHashMap::with_capacity_and_hasher(items, Default::default()),
        numbers: FxHashMap::with_capacity_and_hasher(items, Default::default()),
        lineage_after: lineage_after(at),
    };
    planner.plan.warnings = resolved.warnings;
    planner.plan.results = vec![WriteResult { id: Uuid::nil(), version: None, number: 0 }; items];
    for (name, id, want) in &resolved.preconditions {
        planner.expect(name, *id, *want)?;
    }
    for (target, board) in &resolved.unclaimed {
        planner.expect_unclaimed(target, *board, resolved.agent.as_deref())?;
    }
    let mut all_gaps = find_gaps(&resolved.items)?;
    for item in &mut resolved.items {
        let gaps = if item.then_absent { all_gaps.remove(&item.id).unwrap_or_default() } else { vec![] };
        planner.item(item, &gaps).map_err(|e| at_write(e, item.place))?;
    }
    for item in resolved.items.iter().filter(|item| item.ends.is_some()) {
        planner.check_ends(item).map_err(|e| at_write(e, item.place))?;
    }
    planner.check_multiplicity(&resolved.items)?;
    if planner.plan.statements.len() + at.first_place as usize > VersionId::PLACES {
        return Err(Error::too_large(
            ErrorCode::BatchTooLarge,
            "the batch makes more versions than one transaction can contain",
        ));
    }
    Ok(planner.plan)
}

/// Rejects two writes of one fact for overlapping periods, or under two identities. For facts that end within the
/// batch, returns the periods after the first end that no write covers.
fn find_gaps(items: &[ResolvedWrite]) -> Result<FxHashMap<Uuid, Vec<Period>>> {
    let mut seen = FxHashSet::with_capacity_and_hasher(items.len(), Default::default());
    if items.iter().all(|item| !item.then_absent && seen.insert(item.id)) {
        return Ok(FxHashMap::default());
    }
    let mut sorted: Vec<&ResolvedWrite> = items.iter().collect();
    sorted.sort_unstable_by_key(|item| (item.id, item.period));
    let mut all_gaps = FxHashMap::default();
    for items in sorted.chunk_by(|a, b| a.id == b.id) {
        let id = items[0].id;
        for pair in items.windows(2) {
            let later = if pair[0].place > pair[1].place { pair[0] } else { pair[1] };
            let name =
                || later.key.as_deref().map_or_else(|| id.to_string(), |key| format!("{}:{key}", later.type_name));
            if pair[0].period.to > pair[1].period.from {
                let error = Error::invalid(
                    ErrorCode::DuplicateInBatch,
                    format!("`{}` is written twice for the same time in one batch", name()),
                );
                let hint = "write each fact once, or for periods that do not overlap";
                return Err(at_write(error.hint(hint), later.place));
            }
            let identity =
                |item: &ResolvedWrite| (item.type_name.to_ascii_lowercase(), item.key.clone(), item.ends.is_some());
            if !pair[0].named && !pair[1].named && identity(pair[0]) != identity(pair[1]) {
                return Err(at_write(
                    Error::conflict(ErrorCode::TypeChanged, format!("`{}` is written as two different facts", name())),
                    later.place,
                ));
            }
        }
        let Some(first_end) = items.iter().filter(|i| i.then_absent).map(|i| i.period.to).min() else { continue };
        let (mut gap_from, mut gaps) = (first_end, Vec::new());
        for item in items.iter().filter(|item| item.period.to > first_end) {
            if gap_from < item.period.from {
                gaps.push(Period { from: gap_from, to: item.period.from });
            }
            gap_from = gap_from.max(item.period.to);
        }
        if gap_from < Time::MAX {
            gaps.push(Period::since(gap_from));
        }
        all_gaps.insert(id, gaps);
    }
    Ok(all_gaps)
}

/// Relationships of one type at one end, and the periods for which the batch writes some of them.
struct Group {
    place: usize,
    members: FxHashSet<Uuid>,
    written: Vec<Period>,
}

fn lineage_after(at: &PlanContext<'_>) -> Lineage {
    let find = |number, tx| at.registry.branch_at(number, tx);
    Lineage::of(at.branch, at.tx, find).unwrap_or_else(|_| at.lineage.clone())
}

struct Planner<'a> {
    known: &'a LoadedFacts<'a>,
    at: &'a PlanContext<'a>,
    plan: Plan,
    /// Numbers of the facts that the batch creates, and the versions it adds, by fact.
    numbers: FxHashMap<Uuid, FactNo>,
    fresh: FxHashMap<FactNo, Fresh>,
    /// The lineage once the batch is recorded.
    lineage_after: Lineage,
}

/// Indices of the versions that a batch adds to one fact: nearly always one.
struct Fresh {
    first: usize,
    more: Vec<usize>,
}

impl Planner<'_> {
    fn expect(&self, name: &str, id: Uuid, want: u32) -> Result<()> {
        let actual = visible(self.known.versions_of(id), self.at.lineage, self.at.now).map_or(0, |s| s.number);
        if actual == want { Ok(()) } else { Err(lost_race(name, want, actual)) }
    }

    /// Fails if the claim board lists a conflicting claim by another agent.
    fn expect_unclaimed(&self, target: &ClaimTarget, board: Uuid, agent: Option<&str>) -> Result<()> {
        let listed = visible(self.known.versions_of(board), self.at.lineage, self.at.now);
        let Some(text) = listed.and_then(|s| s.content.as_deref()) else { return Ok(()) };
        let held = claims::held_in(&Content::parse(text)?)?;
        match claims::conflicting_claim(&held, target, agent) {
            Some((held, relation)) => Err(claims::claim_conflict(target, held, relation)),
            None => Ok(()),
        }
    }

    fn item(&mut self, item: &mut ResolvedWrite, gaps: &[Period]) -> Result<()> {
        // Earlier parts of a load remember only objects, so relationships are looked up among stored facts only.
        let (thing, before) = if item.ends.is_some() { self.known.stored(item.id) } else { self.known.found(item.id) };
        if let Some(thing) = thing {
            same_identity(thing, item)?;
        }
        if let Some(want) = item.expected_version {
            let name = item.key.as_deref().map_or_else(|| item.id.to_string(), Into::into);
            self.expect(&name, item.id, want)?;
        }
        let relationship = thing.map_or(item.ends.is_some(), |t| t.ends.is_some());
        let ignored = self.at.registry.ignored_paths(&item.type_name, relationship);
        let mut last = None;
        if item.merged.is_some() || !is_recorded(before, self.at.lineage, item, ignored) {
            let content = item.content.take();
            last = Some(self.record(item, (thing, before), content, item.period, ignored)?);
        }
        for period in gaps {
            let line = timeline(before, self.at.lineage, *period);
            if !(covers(&line, *period) && line.iter().all(|s| s.statement.absent)) {
                self.record(item, (thing, before), DraftContent::Absent, *period, ignored)?;
            }
        }
        self.plan.unchanged += usize::from(last.is_none());
        let number = last.map_or_else(
            || visible(before, self.at.lineage, self.at.now).map_or(0, |s| s.number),
            |(_, number)| number,
        );
        self.plan.results[item.place] = WriteResult { id: item.id, version: last.map(|(version, _)| version), number };
        Ok(())
    }

    fn record(
        &mut self,
        item: &ResolvedWrite,
        (known, before): (Option<&Fact>, &[Version]),
        content: DraftContent,
        period: Period,
        ignored: &[String],
    ) -> Result<(VersionId, u32)> {
        let thing = match known {
            Some(thing) => thing.no,
            None => self.number_of(item)?,
        };
        let overridden = timeline(before, self.at.lineage, period);
        let mut parents: Vec<_> = overridden.iter().map(|s| s.statement.version).collect();
        parents.sort_unstable();
        parents.dedup();
        let main = overridden.iter().find(|s| s.period.holds(self.at.now)).or(overridden.first()).map(|s| s.statement);
        let change = main.map(|old| {
            let summary = summarise(old.content.as_deref(), content.text(), ignored);
            serde_json::to_string(&summary).expect("a summary is plain data").into()
        });
        let place = self.plan.statements.len();
        let earlier = match self.fresh.entry(thing) {
            Entry::Vacant(none) => {
                none.insert(Fresh { first: place, more: vec![] });
                0
            }
            Entry::Occupied(mut some) => {
                some.get_mut().more.push(place);
                some.get().more.len()
            }
        };
        let number =
            last_number(before, self.at.lineage).saturating_add(u32::try_from(earlier + 1).unwrap_or(u32::MAX));
        let version = VersionId::at(self.at.tx, self.at.first_place as usize + place);
        if let Some(merged) = &item.merged {
            let row = |parent, role| Provenance { thing, child: version, parent, role };
            self.plan.provenance.push(row(merged.source, MergeRole::Source));
            self.plan.provenance.extend(merged.target.map(|target| row(target, MergeRole::Target)));
            self.plan.provenance.extend(merged.bases.iter().map(|base| row(*base, MergeRole::Base)));
        }
        let relationship = known.map_or(item.ends.is_some(), |t| t.ends.is_some());
        *(if relationship { &mut self.plan.relationships } else { &mut self.plan.objects }) += 1;
        let branchless = self.at.registry.is_branchless(&item.type_name, relationship);
        self.plan.statements.push(Version {
            thing,
            branch: if branchless { PROJECT_WIDE } else { self.at.branch },
            version,
            recorded_at: self.at.now,
            period,
            number,
            parents,
            hash: content.hash(),
            absent: matches!(content, DraftContent::Absent),
            content: match content {
                DraftContent::Content { text, .. } => Some(text),
                DraftContent::Absent => None,
            },
            change,
        });
        Ok((version, number))
    }

    /// Returns the number of a fact that the batch creates.
    fn number_of(&mut self, item: &ResolvedWrite) -> Result<FactNo> {
        if let Some(no) = self.numbers.get(&item.id) {
            return Ok(*no);
        }
        let ends = match &item.ends {
            None => None,
            Some((src, dst, discriminator)) => {
                let missing = || Error::internal("a relationship was planned before its ends");
                Some(RelationshipEnds {
                    src: self.number(*src).ok_or_else(missing)?,
                    dst: self.number(*dst).ok_or_else(missing)?,
                    discriminator: discriminator.clone(),
                })
            }
        };
        let no = self.at.next_thing.plus(self.plan.things.len());
        self.numbers.insert(item.id, no);
        let (type_name, key) = (Arc::clone(&item.type_name), item.key.clone());
        self.plan.things.push(Fact { no, id: item.id, type_name, key, ends });
        Ok(no)
    }

    fn number(&self, id: Uuid) -> Option<FactNo> {
        self.known.fact(id).map(|t| t.no).or_else(|| self.numbers.get(&id).copied())
    }

    /// Returns all versions of a fact as they will be once the batch is recorded.
    fn after(&self, id: Uuid) -> Cow<'_, [Version]> {
        let (thing, before) = self.known.found(id);
        let number = thing.map(|thing| thing.no).or_else(|| self.numbers.get(&id).copied());
        self.with_fresh(number, before)
    }

    /// Combines the stored versions of a fact with those that the batch adds.
    fn with_fresh<'s>(&'s self, number: Option<FactNo>, before: &'s [Version]) -> Cow<'s, [Version]> {
        let Some(fresh) = number.and_then(|no| self.fresh.get(&no)) else { return Cow::Borrowed(before) };
        if before.is_empty() && fresh.more.is_empty() {
            return Cow::Borrowed(std::slice::from_ref(&self.plan.statements[fresh.first]));
        }
        // Contents are not needed here and may be large.
        let mut all: Vec<_> = before.iter().map(Version::header).collect();
        all.extend([fresh.first].iter().chain(&fresh.more).map(|place| self.plan.statements[*place].header()));
        all.sort_by_key(|s| (s.branch, s.version));
        Cow::Owned(all)
    }

    fn check_ends(&self, item: &ResolvedWrite) -> Result<()> {
        let (Some((src, dst, _)), DraftContent::Content { .. }) = (&item.ends, &item.content) else { return Ok(()) };
        let declared = self.at.registry.relationship_type(&item.type_name);
        let lasting = self.at.registry.is_lasting(&item.type_name);
        for (side, id) in [(Side::Src, *src), (Side::Dst, *dst)] {
            let (known, before) = self.known.found(id);
            let new = if known.is_none() { self.numbers.get(&id).copied() } else { None };
            let known_type = match (known, new) {
                (Some(thing), _) if thing.ends.is_some() => {
                    return Err(Error::invalid(
                        ErrorCode::RelationshipAsEnd,
                        format!("the {} is a relationship", side.name()),
                    )
                    .hint("relationships connect objects"));
                }
                (Some(thing), _) if crate::types::system::is(&thing.type_name) => {
                    return Err(Error::new(
                        crate::ErrorKind::Forbidden,
                        ErrorCode::SystemType,
                        format!("the {} is a {} that Lukasa keeps for itself", side.name(), thing.type_name),
                    )
                    .hint("name it in a property instead"));
                }
                (Some(thing), _) => Some(&thing.type_name),
                (None, Some(no)) => {
                    let place = no.index_from(self.at.next_thing).expect("a new fact is numbered after all others");
                    Some(&self.plan.things[place].type_name)
                }
                (None, None) => None,
            };
            let allowed = declared.map_or(&[][..], |t| if side == Side::Src { &t.src_types } else { &t.dst_types });
            let type_name = known_type.ok_or_else(|| dangling(side.name(), &id.to_string()))?;
            if !allowed.is_empty() && !allowed.iter().any(|t| t.eq_ignore_ascii_case(type_name)) {
                return Err(Error::new(
                    crate::ErrorKind::ValidationFailed,
                    ErrorCode::RelationshipEndType,
                    format!("`{}` does not take a `{type_name}` as its {}", item.type_name, side.name()),
                )
                .hint(format!("allowed: {}", allowed.join(", "))));
            }
            let statements = self.with_fresh(known.map(|thing| thing.no).or(new), before);
            if !has_content(&statements, &self.lineage_after, item.period) && (!lasting || statements.is_empty()) {
                return Err(dangling(side.name(), &self.name_of(id)));
            }
        }
        Ok(())
    }

    fn name_of(&self, id: Uuid) -> String {
        let new = || self.plan.things.iter().find(|t| t.id == id);
        self.known.fact(id).or_else(new).map_or_else(|| id.to_string(), Fact::name)
    }

    fn check_multiplicity(&self, items: &[ResolvedWrite]) -> Result<()> {
        let mut groups: FxHashMap<(String, Side, Uuid), Group> = FxHashMap::default();
        for item in items {
            let (Some((src, dst, _)), DraftContent::Content { .. }) = (&item.ends, &item.content) else { continue };
            for side in limited_sides(self.at.registry, &item.type_name) {
                let end = if side == Side::Src { *src } else { *dst };
                let key = (item.type_name.to_ascii_lowercase(), side, end);
                let group = groups.entry(key).or_insert_with(|| Group {
                    place: item.place,
                    members: FxHashSet::default(),
                    written: vec![],
                });
                group.members.insert(item.id);
                group.written.push(item.period);
            }
        }
        if groups.is_empty() {
            return Ok(());
        }
        let by_number: FxHashMap<FactNo, Uuid> = self.known.things.values().map(|t| (t.no, t.id)).collect();
        for rival in &self.known.rivals {
            let Some(thing) = self.known.things.get(rival) else { continue };
            let Some(ends) = &thing.ends else { continue };
            for (side, no) in [(Side::Src, ends.src), (Side::Dst, ends.dst)] {
                let Some(end) = by_number.get(&no) else { continue };
                if let Some(group) = groups.get_mut(&(thing.type_name.to_ascii_lowercase(), side, *end)) {
                    group.members.insert(*rival);
                }
            }
        }
        let lineage = &self.lineage_after;
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| group.place);
        for ((type_name, side, end), Group { place, members, written }) in groups {
            let mut spans: Vec<(Period, Uuid)> = Vec::new();
            for member in members {
                let statements = self.after(member);
                let line = timeline(&statements, lineage, Period::ALWAYS);
                // Checks only the periods that the batch writes: an existing violation elsewhere must not block new
                // facts.
                for segment in line.iter().filter(|s| !s.statement.absent) {
                    spans.extend(written.iter().filter_map(|w| Some((segment.period.intersect(w)?, member))));
                }
            }
            spans.sort();
            let clash = spans.windows(2).find(|w| w[0].0.to > w[1].0.from && w[0].1 != w[1].1);
            if let Some(clash) = clash {
                let error = Error::new(
                    crate::ErrorKind::Conflict,
                    ErrorCode::RelationshipMultiplicityViolation,
                    format!(
                        "`{}` allows one relationship per {}, and there would be two",
                        type_name.to_uppercase(),
                        side.name()
                    ),
                )
                .hint("end the other one in the same batch, or give them periods that do not overlap")
                .details(json!({"side": side.name(), "object": end, "relationships": [clash[0].1, clash[1].1]}));
                return Err(at_write(error, place));
            }
        }
        Ok(())
    }
}

fn same_identity(thing: &Fact, item: &ResolvedWrite) -> Result<()> {
    if item.named {
        return Ok(());
    }
    if thing.ends.is_some() != item.ends.is_some() {
        return Err(Error::invalid(
            ErrorCode::KindChanged,
            format!("{} is a {}", thing.id, if thing.ends.is_some() { "relationship" } else { "object" }),
        ));
    }
    if !thing.type_name.eq_ignore_ascii_case(&item.type_name) {
        return Err(Error::conflict(
            ErrorCode::TypeChanged,
            format!("{} is a `{}`; the type of an object never changes", thing.id, thing.type_name),
        )
        .hint("end it and make a new object"));
    }
    if thing.key != item.key {
        return Err(Error::conflict(
            ErrorCode::KeyChanged,
            format!("{} has another key; the key of an object never changes", thing.id),
        ));
    }
    Ok(())
}

/// Whether the stored versions already have this content for the whole period.
fn is_recorded(before: &[Version], lineage: &Lineage, item: &ResolvedWrite, ignored: &[String]) -> bool {
    // Without an explicit time, only the version visible at that moment counts, not later periods.
    let window = if item.defaulted {
        Period { from: item.period.from, to: Time(item.period.from.0.saturating_add(1)) }
    } else {
        item.period
    };
    let line = timeline(before, lineage, window);
    let same = |s: &Version| {
        let hash = item.content.hash();
        s.hash == hash
            || s.present_hash() == hash
            || (!ignored.is_empty() && !s.absent && same_but_for(s, item.content.text(), ignored))
    };
    match item.content {
        // A period without a version counts as absent.
        DraftContent::Absent => line.iter().all(|s| s.statement.absent),
        DraftContent::Content { .. } => covers(&line, window) && line.iter().all(|s| same(s.statement)),
    }
}

fn same_but_for(statement: &Version, text: Option<&str>, ignored: &[String]) -> bool {
    let parse = |text: Option<&str>| text.and_then(|t| serde_json::from_str::<Value>(t).ok());
    match (parse(statement.content.as_deref()), parse(text)) {
        (Some(a), Some(b)) => change::diff(&a, &b).ignoring(ignored).is_empty(),
        _ => false,
    }
}

fn covers(line: &[crate::timeline::Segment<'_>], window: Period) -> bool {
    let mut reached = window.from;
    for segment in line {
        if segment.period.from > reached {
            return false;
        }
        reached = segment.period.to;
    }
    !line.is_empty() && reached >= window.to
}

/// Adds to an error which write of the batch it is about.
fn at_write(error: Error, place: usize) -> Error {
    let mut details = match *error.details {
        Value::Object(ref map) => map.clone(),
        _ => serde_json::Map::new(),
    };
    details.entry("write").or_insert_with(|| place.into());
    error.details(Value::Object(details))
}

/// The error for a reference that names no fact.
pub fn nothing_named(reference: &Reference) -> Error {
    Error::not_found(ErrorCode::NotFound, format!("nothing is named `{reference}`"))
        .hint("name facts by `Type:key`, by key, or by id; `lukasa list` shows what there is")
}

fn dangling(side: &str, name: &str) -> Error {
    Error::new(
        crate::ErrorKind::ValidationFailed,
        ErrorCode::DanglingEnd,
        format!("the {side} `{name}` does not exist at that time"),
    )
    .hint("write both ends before, or in the same batch")
}

fn lost_race(name: &str, expected: u32, actual: u32) -> Error {
    Error::conflict(ErrorCode::VersionConflict, format!("`{name}` is at version {actual}, expected {expected}"))
        .hint("read it again and repeat the change on top")
        .details(json!({"expected": expected, "actual": actual}))
}

/// The error for a key that several objects have; lists their names.
pub fn ambiguous<'a>(key: &str, candidates: impl Iterator<Item = &'a Fact>) -> Error {
    let mut candidates: Vec<_> =
        candidates.map(|t| format!("{}:{}", t.type_name, t.key.as_deref().unwrap_or_default())).collect();
    candidates.sort();
    let listed: Vec<_> = candidates.iter().map(|name| json!({"ref": name})).collect();
    Error::invalid(ErrorCode::Ambiguous, format!("`{key}` fits {} objects", candidates.len()))
        .hint(format!("name one of: {}", candidates.join(", ")))
        .details(json!({"candidates": listed, "total": candidates.len()}))
}
