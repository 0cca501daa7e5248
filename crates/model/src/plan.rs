//! Turns a batch into the statements to record, given what is known: every check of a commit, no I/O.
//!
//! A store drives it in three steps: [`Drafts::read`] says which ids and keys matter, [`Drafts::resolve`]
//! turns names into ids once those are loaded, [`plan`] decides once all statements are.

use crate::batch::{Batch, End, Precondition, PutObject, PutRelationship, Reference, Write};
use crate::branch::Lineage;
use crate::change::{self, summarise};
use crate::content::{ABSENT, Content};
use crate::error::{Error, Result};
use crate::id::{self, BranchNo, PROJECT_WIDE, ThingNo, Tx, VersionId};
use crate::json::Hash;
use crate::limits;
use crate::merge::MergeWrite;
use crate::statement::{Ends, Provenance, Role, Statement, Thing};
use crate::time::{Period, Time};
use crate::timeline::{last_number, timeline, visible};
use crate::types::{Count, Registry, system};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use uuid::Uuid;

/// What a store has loaded for a batch.
#[derive(Debug, Default)]
pub struct Known {
    pub things: FxHashMap<Uuid, Thing>,
    /// Objects under a key, of any type.
    pub by_key: FxHashMap<Box<str>, Vec<Uuid>>,
    /// All statements of the things above, ordered by branch and version.
    pub statements: FxHashMap<ThingNo, Vec<Statement>>,
    /// Relationships that share a limited end with one that is written.
    pub rivals: FxHashSet<Uuid>,
}

impl Known {
    fn statements_of(&self, id: Uuid) -> &[Statement] {
        self.things.get(&id).and_then(|thing| self.statements.get(&thing.no)).map_or(&[], Vec::as_slice)
    }
}

/// Where and when a batch is to be recorded.
pub struct Place<'a> {
    pub registry: &'a Registry,
    pub branch: BranchNo,
    pub lineage: &'a Lineage,
    pub tx: Tx,
    pub now: Time,
    pub next_thing: ThingNo,
}

/// Writes with their content checked and hashed, and their own ids where those follow from names.
pub struct Drafts {
    drafts: Vec<Draft>,
    preconditions: Vec<Precondition>,
    namespace: Uuid,
    system: bool,
    /// Things to load before `resolve`.
    pub ids: Vec<Uuid>,
    /// Keys given without a type that is sure, each with the id its `Type:key` reading has.
    keys: Vec<(String, Option<Uuid>)>,
    pub warnings: Vec<String>,
}

struct Draft {
    place: usize,
    subject: Subject,
    said: Said,
    period: Period,
    /// No time was given.
    defaulted: bool,
    /// Absent from the period's end on, as far as nothing else in the batch speaks of that time.
    then_absent: bool,
    expected_version: Option<u32>,
    merged: Option<Merged>,
}

enum Subject {
    Object { id: Uuid, type_name: Arc<str>, key: Option<Box<str>> },
    Relationship { type_name: Arc<str>, src: Named, dst: Named, discriminator: Box<str> },
    Named(Named),
}

/// A reference, and the id its `Type:key` reading has.
struct Named {
    reference: Reference,
    typed: Option<Uuid>,
}

#[derive(Clone)]
enum Said {
    /// Shared, for it is handed on from step to step.
    Content {
        text: Arc<str>,
        hash: Hash,
    },
    Absent,
}

impl Said {
    fn hash(&self) -> Hash {
        match self {
            Said::Content { hash, .. } => *hash,
            Said::Absent => ABSENT,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Said::Content { text, .. } => Some(text),
            Said::Absent => None,
        }
    }
}

struct Merged {
    source: VersionId,
    target: Option<VersionId>,
    bases: Vec<VersionId>,
}

impl Drafts {
    /// Checks everything that needs nothing but the batch and the registry. `draw` gives ids to objects
    /// without key.
    pub fn read(
        batch: &Batch,
        registry: &Registry,
        namespace: Uuid,
        now: Time,
        draw: &mut dyn FnMut() -> Uuid,
    ) -> Result<Drafts> {
        if batch.writes.len() > limits::BATCH_WRITES {
            return Err(Error::too_large(
                "batch_too_large",
                format!("{} writes in one batch, {} are allowed", batch.writes.len(), limits::BATCH_WRITES),
            )
            .hint("send several batches"));
        }
        let mut drafts = Drafts {
            drafts: Vec::with_capacity(batch.writes.len()),
            preconditions: batch.preconditions.clone(),
            namespace,
            system: batch.system,
            ids: vec![],
            keys: vec![],
            warnings: vec![],
        };
        let mut types = TypeNames::default();
        let default_from = batch.header.valid_at.unwrap_or(now);
        for (place, write) in batch.writes.iter().enumerate() {
            let draft = match write {
                Write::Object(put) => drafts.object(put, batch.system, registry, &mut types, default_from, draw),
                Write::Relationship(put) => drafts.relationship(put, registry, &mut types, default_from),
                Write::End(end) => drafts.end(end, registry, default_from),
            };
            let mut draft = draft.map_err(|e| at_write(e, place))?;
            draft.place = place;
            drafts.drafts.push(draft);
        }
        for precondition in &batch.preconditions {
            let (Precondition::Version { reference, .. } | Precondition::Absent { reference }) = precondition;
            drafts.want(reference, registry);
        }
        drafts.warnings = types.warnings;
        Ok(drafts)
    }

    fn object(
        &mut self,
        put: &PutObject,
        may_be_system: bool,
        registry: &Registry,
        types: &mut TypeNames,
        default_from: Time,
        draw: &mut dyn FnMut() -> Uuid,
    ) -> Result<Draft> {
        let type_name = types.read(registry, &put.type_name, false)?;
        if system::is(&type_name) && !may_be_system {
            return Err(kept_by_lukasa(&type_name));
        }
        let (id, key) = match (&put.key, put.id) {
            (Some(key), given) => {
                id::check_text("key", key, limits::KEY_BYTES)?;
                let id = id::object_id(self.namespace, &type_name, key);
                if given.is_some_and(|given| given != id) {
                    return Err(Error::invalid(
                        "id_and_key",
                        format!("the id of `{type_name}:{key}` is {id}, not the one given"),
                    )
                    .hint("leave out `id`: it follows from type and key"));
                }
                (id, Some(key.as_str().into()))
            }
            (None, Some(given)) if given.get_version_num() == 5 => {
                return Err(Error::invalid("derived_id", format!("{given} is an id that follows from a name"))
                    .hint("give type and key instead, or leave out `id`"));
            }
            (None, given) => (given.unwrap_or_else(draw), None),
        };
        let said = read_content(&put.content(), registry, &type_name, false)?;
        let (period, then_absent) = read_period(put.valid_from, put.valid_to, put.only_this_period, default_from)?;
        let defaulted = put.valid_from.is_none() && put.valid_to.is_none();
        self.ids.push(id);
        let subject = Subject::Object { id, type_name, key };
        Ok(Draft {
            place: 0,
            subject,
            said,
            period,
            defaulted,
            then_absent,
            expected_version: put.expected_version,
            merged: None,
        })
    }

    fn relationship(
        &mut self,
        put: &PutRelationship,
        registry: &Registry,
        types: &mut TypeNames,
        default_from: Time,
    ) -> Result<Draft> {
        let type_name = types.read(registry, &put.type_name, true)?;
        let said = read_content(&put.content(), registry, &type_name, true)?;
        if !put.discriminator.is_empty() {
            id::check_text("discriminator", &put.discriminator, limits::KEY_BYTES)?;
        }
        let (period, then_absent) = read_period(put.valid_from, put.valid_to, put.only_this_period, default_from)?;
        let defaulted = put.valid_from.is_none() && put.valid_to.is_none();
        let (src, dst) = (self.want(&put.src, registry), self.want(&put.dst, registry));
        let subject = Subject::Relationship { type_name, src, dst, discriminator: put.discriminator.as_str().into() };
        Ok(Draft {
            place: 0,
            subject,
            said,
            period,
            defaulted,
            then_absent,
            expected_version: put.expected_version,
            merged: None,
        })
    }

    fn end(&mut self, end: &End, registry: &Registry, default_from: Time) -> Result<Draft> {
        let named = self.want(&end.reference, registry);
        let period = Period::new(end.from.unwrap_or(default_from), end.to.unwrap_or(Time::MAX))?;
        let subject = Subject::Named(named);
        let expected_version = end.expected_version;
        Ok(Draft {
            place: 0,
            subject,
            said: Said::Absent,
            period,
            defaulted: false,
            then_absent: false,
            expected_version,
            merged: None,
        })
    }

    /// Notes what a reference may stand for, and gives it with the declared spelling of its type.
    fn want(&mut self, reference: &Reference, registry: &Registry) -> Named {
        let alias = reference.typed().filter(|(t, _)| !registry.spelling(t, false).eq_ignore_ascii_case(t));
        let reference = match alias {
            Some((alias, key)) => &Reference::exact(registry.spelling(alias, false), key),
            None => reference,
        };
        if let Reference::Id(id) = reference {
            self.ids.push(*id);
        }
        let typed = reference.typed().map(|(type_name, key)| id::object_id(self.namespace, type_name, key));
        self.ids.extend(typed);
        if let Reference::Text(text) = reference {
            self.keys.push((text.clone(), typed));
        }
        Named { reference: reference.clone(), typed }
    }

    /// Keys to look up once `ids` are loaded: those whose `Type:key` reading names nothing.
    pub fn keys_to_find(&self, known: &Known) -> Vec<String> {
        let local: FxHashSet<Uuid> = self
            .drafts
            .iter()
            .filter_map(|draft| if let Subject::Object { id, .. } = draft.subject { Some(id) } else { None })
            .collect();
        let sure = |id: &Uuid| local.contains(id) || known.things.contains_key(id);
        let mut keys: Vec<_> = self
            .keys
            .iter()
            .filter(|(_, typed)| !typed.as_ref().is_some_and(sure))
            .map(|(key, _)| key.clone())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// What a merge has decided, as drafts of the same kind.
    pub fn of_merge(namespace: Uuid, registry: &Registry, writes: Vec<DecidedWrite>) -> Result<Drafts> {
        let ids = writes.iter().flat_map(|DecidedWrite { thing, ends, .. }| {
            ends.iter().flat_map(|(src, dst)| [*src, *dst]).chain([thing.id]).collect::<Vec<_>>()
        });
        let ids = ids.collect();
        let drafts = writes
            .into_iter()
            .enumerate()
            .map(|(place, DecidedWrite { thing, ends, write })| {
                if let Some(text) = &write.content {
                    let relationship = thing.ends.is_some();
                    let content = Content::parse(text)?;
                    content.check(text.len())?;
                    registry.validate(&thing.type_name, relationship, &content.properties).map_err(|e| {
                        e.at(thing
                            .key
                            .as_deref()
                            .map_or_else(|| thing.id.to_string(), |k| format!("`{}:{k}`", thing.type_name)))
                    })?;
                }
                let said = match write.content {
                    Some(text) => Said::Content { text: text.into(), hash: write.hash },
                    None => Said::Absent,
                };
                let subject = match (thing.ends, ends) {
                    (Some(named), Some((src, dst))) => Subject::Relationship {
                        type_name: thing.type_name,
                        src: Named { reference: Reference::Id(src), typed: None },
                        dst: Named { reference: Reference::Id(dst), typed: None },
                        discriminator: named.discriminator,
                    },
                    _ => Subject::Object { id: thing.id, type_name: thing.type_name, key: thing.key },
                };
                let merged = Some(Merged { source: write.source, target: write.target, bases: write.bases });
                Ok(Draft {
                    place,
                    subject,
                    said,
                    period: write.period,
                    defaulted: false,
                    then_absent: false,
                    expected_version: None,
                    merged,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Drafts { drafts, preconditions: vec![], namespace, system: false, ids, keys: vec![], warnings: vec![] })
    }

    /// Turns every name into an id. Afterwards the ids of relationships are in `Resolved::ids` to be loaded.
    pub fn resolve(self, known: &Known, lineage: &Lineage, now: Time) -> Result<Resolved> {
        let mut local_ids = FxHashSet::default();
        let mut local_keys: FxHashMap<&str, Vec<Uuid>> = FxHashMap::default();
        for draft in &self.drafts {
            if let Subject::Object { id, key, .. } = &draft.subject
                && local_ids.insert(*id)
                && let Some(key) = key
            {
                local_keys.entry(key).or_default().push(*id);
            }
        }
        let find = |Named { reference, typed }: &Named| -> Result<Uuid> {
            let exists = |id: &Uuid| local_ids.contains(id) || known.things.contains_key(id);
            if let Reference::Id(id) = reference {
                return if exists(id) { Ok(*id) } else { Err(nothing_named(reference)) };
            }
            if let Some(id) = typed.filter(exists) {
                return Ok(id);
            }
            let Reference::Text(text) = reference else { return Err(nothing_named(reference)) };
            let seen = |id: &&Uuid| visible(known.statements_of(**id), lineage, now).is_some();
            let stored = known.by_key.get(text.as_str()).into_iter().flatten();
            let mut found: Vec<Uuid> = stored.clone().filter(seen).copied().collect();
            found.extend(local_keys.get(text.as_str()).into_iter().flatten());
            found.sort_unstable();
            found.dedup();
            match found.as_slice() {
                [one] => Ok(*one),
                [] => match known.by_key.get(text.as_str()).map_or(&[][..], Vec::as_slice) {
                    [] => Err(nothing_named(reference)),
                    [ended] => Ok(*ended),
                    many => Err(ambiguous(text, many.iter().filter_map(|id| known.things.get(id)))),
                },
                many => Err(ambiguous(text, many.iter().filter_map(|id| known.things.get(id)))),
            }
        };
        let mut items = Vec::with_capacity(self.drafts.len());
        let mut ids = Vec::new();
        for draft in &self.drafts {
            let (id, type_name, key, ends) = match &draft.subject {
                Subject::Object { id, type_name, key } => (*id, Arc::clone(type_name), key.clone(), None),
                Subject::Relationship { type_name, src, dst, discriminator } => {
                    let place = draft.place;
                    let end = |named: &Named, side: &str| {
                        find(named).map_err(|e| {
                            let e =
                                if e.code == "not_found" { dangling(side, &named.reference.to_string()) } else { e };
                            at_write(e, place)
                        })
                    };
                    let (src, dst) = (end(src, "src")?, end(dst, "dst")?);
                    let id = id::relationship_id(self.namespace, type_name, src, dst, discriminator);
                    ids.push(id);
                    (id, Arc::clone(type_name), None, Some((src, dst, discriminator.clone())))
                }
                Subject::Named(named) => {
                    let id = find(named).map_err(|e| at_write(e, draft.place))?;
                    match known.things.get(&id) {
                        Some(thing) if system::is(&thing.type_name) && !self.system => {
                            return Err(at_write(kept_by_lukasa(&thing.type_name), draft.place));
                        }
                        Some(thing) => (id, Arc::clone(&thing.type_name), thing.key.clone(), None),
                        None => return Err(at_write(nothing_named(&named.reference), draft.place)),
                    }
                }
            };
            items.push(Item {
                id,
                type_name,
                key,
                ends,
                place: draft.place,
                said: draft.said.clone(),
                period: draft.period,
                defaulted: draft.defaulted,
                then_absent: draft.then_absent,
                expected_version: draft.expected_version,
                named: matches!(draft.subject, Subject::Named(_)),
                merged: draft.merged.as_ref().map(|m| Merged { bases: m.bases.clone(), ..*m }),
            });
        }
        let mut preconditions = Vec::new();
        for precondition in &self.preconditions {
            let (reference, want) = match precondition {
                Precondition::Version { reference, expected_version } => (reference, *expected_version),
                Precondition::Absent { reference } => (reference, 0),
            };
            let typed = reference.typed().map(|(type_name, key)| id::object_id(self.namespace, type_name, key));
            match find(&Named { reference: reference.clone(), typed }) {
                Ok(id) => preconditions.push((reference.to_string(), id, want)),
                Err(e) if e.code == "not_found" && want == 0 => {}
                Err(e) if e.code == "not_found" => return Err(lost_race(&reference.to_string(), want, 0)),
                Err(e) => return Err(e),
            }
        }
        // Objects first: a relationship's number is above those of its ends.
        items.sort_by_key(|item| item.ends.is_some());
        Ok(Resolved { items, preconditions, ids, warnings: self.warnings })
    }
}

/// A write that a merge has decided on, with the ids of a relationship's ends.
pub struct DecidedWrite {
    pub thing: Thing,
    pub ends: Option<(Uuid, Uuid)>,
    pub write: MergeWrite,
}

/// A batch in which every name has become an id.
pub struct Resolved {
    items: Vec<Item>,
    preconditions: Vec<(String, Uuid, u32)>,
    /// Relationships to load before `plan`.
    pub ids: Vec<Uuid>,
    warnings: Vec<String>,
}

struct Item {
    place: usize,
    id: Uuid,
    type_name: Arc<str>,
    key: Option<Box<str>>,
    ends: Option<(Uuid, Uuid, Box<str>)>,
    said: Said,
    period: Period,
    defaulted: bool,
    then_absent: bool,
    expected_version: Option<u32>,
    /// Named by an `end`, so the thing is known and brings its own ends.
    named: bool,
    merged: Option<Merged>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    Src,
    Dst,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Side::Src => "src",
            Side::Dst => "dst",
        }
    }
}

impl Resolved {
    /// Ends whose relationships of one type must be loaded as rivals before `plan`.
    pub fn limited_ends(&self, registry: &Registry) -> Vec<(Arc<str>, Side, Uuid)> {
        let mut wanted = FxHashSet::default();
        for item in &self.items {
            let (Some((src, dst, _)), Said::Content { .. }) = (&item.ends, &item.said) else { continue };
            for side in limited_sides(registry, &item.type_name) {
                wanted.insert((Arc::clone(&item.type_name), side, if side == Side::Src { *src } else { *dst }));
            }
        }
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.sort();
        wanted
    }

    /// Things whose stored content is compared with what is written.
    pub fn targets(&self) -> impl Iterator<Item = Uuid> {
        self.items.iter().map(|item| item.id)
    }
}

fn limited_sides(registry: &Registry, type_name: &str) -> impl Iterator<Item = Side> + use<> {
    let multiplicity = registry.relationship_type(type_name).map(|t| t.multiplicity).unwrap_or_default();
    [(Side::Src, multiplicity.src), (Side::Dst, multiplicity.dst)]
        .into_iter()
        .filter(|(_, count)| *count == Count::One)
        .map(|(side, _)| side)
}

/// What to record.
#[derive(Debug, Default)]
pub struct Plan {
    pub things: Vec<Thing>,
    pub statements: Vec<Statement>,
    pub provenance: Vec<Provenance>,
    /// Statements about objects and about relationships.
    pub objects: u32,
    pub relationships: u32,
    /// Writes that said nothing new.
    pub unchanged: usize,
    pub warnings: Vec<String>,
    /// By place in the batch: the thing and the version number now visible to the writer.
    pub results: Vec<Written>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub id: Uuid,
    /// `None` when nothing new was said.
    pub version: Option<VersionId>,
    pub number: u32,
}

/// Decides what a batch records, or why it cannot.
pub fn plan(resolved: Resolved, known: &Known, at: &Place<'_>) -> Result<Plan> {
    let mut planner =
        Planner { known, at, plan: Plan::default(), fresh: FxHashMap::default(), numbers: FxHashMap::default() };
    planner.plan.warnings = resolved.warnings;
    planner.plan.results = vec![Written { id: Uuid::nil(), version: None, number: 0 }; resolved.items.len()];
    for (name, id, want) in &resolved.preconditions {
        planner.expect(name, *id, *want)?;
    }
    let mut silences = check_told(&resolved.items)?;
    for item in &resolved.items {
        let silence = if item.then_absent { silences.remove(&item.id).unwrap_or_default() } else { vec![] };
        planner.item(item, &silence).map_err(|e| at_write(e, item.place))?;
    }
    for item in resolved.items.iter().filter(|item| item.ends.is_some()) {
        planner.check_ends(item).map_err(|e| at_write(e, item.place))?;
    }
    planner.check_multiplicity(&resolved.items)?;
    if planner.plan.statements.len() > VersionId::PLACES {
        return Err(Error::too_large("batch_too_large", "the batch makes more statements than one transaction holds"));
    }
    Ok(planner.plan)
}

/// Refuses two writes about one thing for overlapping times, or under two identities. Gives, for things that
/// end within the batch, the periods after the first such end of which nothing is said.
fn check_told(items: &[Item]) -> Result<FxHashMap<Uuid, Vec<Period>>> {
    let mut told: Vec<&Item> = items.iter().collect();
    told.sort_unstable_by_key(|item| (item.id, item.period));
    let mut silences = FxHashMap::default();
    for items in told.chunk_by(|a, b| a.id == b.id) {
        let id = items[0].id;
        for pair in items.windows(2) {
            let later = if pair[0].place > pair[1].place { pair[0] } else { pair[1] };
            let name =
                || later.key.as_deref().map_or_else(|| id.to_string(), |key| format!("{}:{key}", later.type_name));
            if pair[0].period.to > pair[1].period.from {
                let error = Error::invalid(
                    "duplicate_in_batch",
                    format!("`{}` is written twice for the same time in one batch", name()),
                );
                let hint = "write each thing once, or for periods that do not overlap";
                return Err(at_write(error.hint(hint), later.place));
            }
            let identity = |item: &Item| (item.type_name.to_ascii_lowercase(), item.key.clone(), item.ends.is_some());
            if !pair[0].named && !pair[1].named && identity(pair[0]) != identity(pair[1]) {
                return Err(at_write(
                    Error::conflict("type_changed", format!("`{}` is written as two different things", name())),
                    later.place,
                ));
            }
        }
        let Some(first_end) = items.iter().filter(|i| i.then_absent).map(|i| i.period.to).min() else { continue };
        let (mut silent_from, mut silence) = (first_end, Vec::new());
        for item in items.iter().filter(|item| item.period.to > first_end) {
            if silent_from < item.period.from {
                silence.push(Period { from: silent_from, to: item.period.from });
            }
            silent_from = silent_from.max(item.period.to);
        }
        if silent_from < Time::MAX {
            silence.push(Period::since(silent_from));
        }
        silences.insert(id, silence);
    }
    Ok(silences)
}

/// Relationships of one type at one end, and the periods the batch states some of them for.
struct Group {
    place: usize,
    members: FxHashSet<Uuid>,
    written: Vec<Period>,
}

struct Planner<'a> {
    known: &'a Known,
    at: &'a Place<'a>,
    plan: Plan,
    /// Numbers of things the batch makes, and statements it adds, by thing.
    numbers: FxHashMap<Uuid, ThingNo>,
    fresh: FxHashMap<ThingNo, Vec<usize>>,
}

impl Planner<'_> {
    fn expect(&self, name: &str, id: Uuid, want: u32) -> Result<()> {
        let actual = visible(self.known.statements_of(id), self.at.lineage, self.at.now).map_or(0, |s| s.number);
        if actual == want { Ok(()) } else { Err(lost_race(name, want, actual)) }
    }

    fn item(&mut self, item: &Item, silence: &[Period]) -> Result<()> {
        let before = self.known.statements_of(item.id);
        let thing = self.known.things.get(&item.id);
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
        if item.merged.is_some() || !says_already(before, self.at.lineage, item, ignored) {
            last = Some(self.record(item, before, item.said.clone(), item.period, ignored)?);
        }
        for period in silence {
            let line = timeline(before, self.at.lineage, *period);
            if !(covers(&line, *period) && line.iter().all(|s| s.statement.absent)) {
                self.record(item, before, Said::Absent, *period, ignored)?;
            }
        }
        self.plan.unchanged += usize::from(last.is_none());
        let number = last.map_or_else(
            || visible(before, self.at.lineage, self.at.now).map_or(0, |s| s.number),
            |(_, number)| number,
        );
        self.plan.results[item.place] = Written { id: item.id, version: last.map(|(version, _)| version), number };
        Ok(())
    }

    fn record(
        &mut self,
        item: &Item,
        before: &[Statement],
        said: Said,
        period: Period,
        ignored: &[String],
    ) -> Result<(VersionId, u32)> {
        let thing = self.number_of(item)?;
        let overridden = timeline(before, self.at.lineage, period);
        let mut parents: Vec<_> = overridden.iter().map(|s| s.statement.version).collect();
        parents.sort_unstable();
        parents.dedup();
        let main = overridden.iter().find(|s| s.period.holds(self.at.now)).or(overridden.first()).map(|s| s.statement);
        let change = main.map(|old| {
            let summary = summarise(old.content.as_deref(), said.text(), ignored);
            serde_json::to_string(&summary).expect("a summary is plain data").into()
        });
        let earlier = self.fresh.entry(thing).or_default();
        let number = last_number(before, self.at.lineage).saturating_add(earlier.len() as u32 + 1);
        let version = VersionId::new(self.at.tx, self.plan.statements.len() as u32);
        earlier.push(self.plan.statements.len());
        if let Some(merged) = &item.merged {
            let row = |parent, role| Provenance { thing, child: version, parent, role };
            self.plan.provenance.push(row(merged.source, Role::Source));
            self.plan.provenance.extend(merged.target.map(|target| row(target, Role::Target)));
            self.plan.provenance.extend(merged.bases.iter().map(|base| row(*base, Role::Base)));
        }
        let relationship = self.known.things.get(&item.id).map_or(item.ends.is_some(), |t| t.ends.is_some());
        *(if relationship { &mut self.plan.relationships } else { &mut self.plan.objects }) += 1;
        let branchless = !relationship && self.at.registry.is_branchless(&item.type_name);
        self.plan.statements.push(Statement {
            thing,
            branch: if branchless { PROJECT_WIDE } else { self.at.branch },
            version,
            recorded_at: self.at.now,
            period,
            number,
            parents,
            hash: said.hash(),
            absent: matches!(said, Said::Absent),
            content: match said {
                Said::Content { text, .. } => Some((*text).into()),
                Said::Absent => None,
            },
            change,
        });
        Ok((version, number))
    }

    fn number_of(&mut self, item: &Item) -> Result<ThingNo> {
        if let Some(no) = self.number(item.id) {
            return Ok(no);
        }
        let ends = match &item.ends {
            None => None,
            Some((src, dst, discriminator)) => {
                let missing = || Error::internal("a relationship was planned before its ends");
                Some(Ends {
                    src: self.number(*src).ok_or_else(missing)?,
                    dst: self.number(*dst).ok_or_else(missing)?,
                    discriminator: discriminator.clone(),
                })
            }
        };
        let no = self.at.next_thing + self.plan.things.len() as ThingNo;
        self.numbers.insert(item.id, no);
        let (type_name, key) = (Arc::clone(&item.type_name), item.key.clone());
        self.plan.things.push(Thing { no, id: item.id, type_name, key, ends });
        Ok(no)
    }

    fn number(&self, id: Uuid) -> Option<ThingNo> {
        self.known.things.get(&id).map(|t| t.no).or_else(|| self.numbers.get(&id).copied())
    }

    /// All statements about a thing as they will be once the batch is recorded.
    fn after(&self, id: Uuid) -> Cow<'_, [Statement]> {
        let before = self.known.statements_of(id);
        let fresh = self.number(id).and_then(|no| self.fresh.get(&no)).map_or(&[][..], Vec::as_slice);
        if fresh.is_empty() {
            return Cow::Borrowed(before);
        }
        // Contents do not matter here, and may be large.
        let header = |s: &Statement| Statement {
            parents: vec![],
            content: None,
            change: None,
            thing: s.thing,
            branch: s.branch,
            version: s.version,
            recorded_at: s.recorded_at,
            period: s.period,
            number: s.number,
            hash: s.hash,
            absent: s.absent,
        };
        let mut all: Vec<_> = before.iter().map(header).collect();
        all.extend(fresh.iter().map(|i| header(&self.plan.statements[*i])));
        all.sort_by_key(|s| (s.branch, s.version));
        Cow::Owned(all)
    }

    fn lineage_after(&self) -> Lineage {
        let find = |number, tx| self.at.registry.branch_at(number, tx);
        Lineage::of(self.at.branch, self.at.tx, find).unwrap_or_else(|_| self.at.lineage.clone())
    }

    fn check_ends(&self, item: &Item) -> Result<()> {
        let (Some((src, dst, _)), Said::Content { .. }) = (&item.ends, &item.said) else { return Ok(()) };
        let declared = self.at.registry.relationship_type(&item.type_name);
        let lasting = self.at.registry.is_lasting(&item.type_name);
        for (side, id) in [(Side::Src, *src), (Side::Dst, *dst)] {
            let known_type = match (self.known.things.get(&id), self.numbers.get(&id)) {
                (Some(thing), _) if thing.ends.is_some() => {
                    return Err(Error::invalid(
                        "relationship_as_end",
                        format!("the {} is a relationship", side.name()),
                    )
                    .hint("relationships connect objects"));
                }
                (Some(thing), _) => Some(Arc::clone(&thing.type_name)),
                (None, Some(no)) => Some(Arc::clone(&self.plan.things[(no - self.at.next_thing) as usize].type_name)),
                (None, None) => None,
            };
            let allowed = declared.map_or(&[][..], |t| if side == Side::Src { &t.src_types } else { &t.dst_types });
            let type_name = known_type.ok_or_else(|| dangling(side.name(), &id.to_string()))?;
            if !allowed.is_empty() && !allowed.iter().any(|t| t.eq_ignore_ascii_case(&type_name)) {
                return Err(Error::new(
                    crate::ErrorKind::ValidationFailed,
                    "relationship_end_type",
                    format!("`{}` does not take a `{type_name}` as its {}", item.type_name, side.name()),
                )
                .hint(format!("allowed: {}", allowed.join(", "))));
            }
            let statements = self.after(id);
            let there = timeline(&statements, &self.lineage_after(), item.period).iter().any(|s| !s.statement.absent);
            if !there && (!lasting || statements.is_empty()) {
                return Err(dangling(side.name(), &self.name_of(id)));
            }
        }
        Ok(())
    }

    fn name_of(&self, id: Uuid) -> String {
        let new = || self.plan.things.iter().find(|t| t.id == id);
        self.known.things.get(&id).or_else(new).map_or_else(|| id.to_string(), Thing::name)
    }

    fn check_multiplicity(&self, items: &[Item]) -> Result<()> {
        let mut groups: FxHashMap<(String, Side, Uuid), Group> = FxHashMap::default();
        for item in items {
            let (Some((src, dst, _)), Said::Content { .. }) = (&item.ends, &item.said) else { continue };
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
        let by_number: FxHashMap<ThingNo, Uuid> = self.known.things.values().map(|t| (t.no, t.id)).collect();
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
        let lineage = self.lineage_after();
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| group.place);
        for ((type_name, side, end), Group { place, members, written }) in groups {
            let mut spans: Vec<(Period, Uuid)> = Vec::new();
            for member in members {
                let statements = self.after(member);
                let line = timeline(&statements, &lineage, Period::ALWAYS);
                // Only times the batch speaks of: an old quarrel elsewhere must not keep new facts out.
                for segment in line.iter().filter(|s| !s.statement.absent) {
                    spans.extend(written.iter().filter_map(|w| Some((segment.period.intersect(w)?, member))));
                }
            }
            spans.sort();
            let clash = spans.windows(2).find(|w| w[0].0.to > w[1].0.from && w[0].1 != w[1].1);
            if let Some(clash) = clash {
                let error = Error::new(
                    crate::ErrorKind::Conflict,
                    "relationship_multiplicity_violation",
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

fn same_identity(thing: &Thing, item: &Item) -> Result<()> {
    if item.named {
        return Ok(());
    }
    if thing.ends.is_some() != item.ends.is_some() {
        return Err(Error::invalid(
            "kind_changed",
            format!("{} is a {}", thing.id, if thing.ends.is_some() { "relationship" } else { "object" }),
        ));
    }
    if !thing.type_name.eq_ignore_ascii_case(&item.type_name) {
        return Err(Error::conflict(
            "type_changed",
            format!("{} is a `{}`; the type of an object never changes", thing.id, thing.type_name),
        )
        .hint("end it and make a new object"));
    }
    if thing.key != item.key {
        return Err(Error::conflict(
            "key_changed",
            format!("{} has another key; the key of an object never changes", thing.id),
        ));
    }
    Ok(())
}

/// Whether all of the period already holds what is said.
fn says_already(before: &[Statement], lineage: &Lineage, item: &Item, ignored: &[String]) -> bool {
    // Without a time, what counts is what is visible at that moment, whatever is planned for later.
    let window = if item.defaulted {
        Period { from: item.period.from, to: Time(item.period.from.0.saturating_add(1)) }
    } else {
        item.period
    };
    let line = timeline(before, lineage, window);
    let same = |s: &Statement| {
        s.hash == item.said.hash() || (!ignored.is_empty() && !s.absent && same_but_for(s, item.said.text(), ignored))
    };
    match item.said {
        // Silence is as good as absence.
        Said::Absent => line.iter().all(|s| s.statement.absent),
        Said::Content { .. } => covers(&line, window) && line.iter().all(|s| same(s.statement)),
    }
}

fn same_but_for(statement: &Statement, text: Option<&str>, ignored: &[String]) -> bool {
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

/// Type names met in a batch: each checked, spelled and admitted once.
#[derive(Default)]
struct TypeNames {
    seen: FxHashMap<(String, bool), Arc<str>>,
    warnings: Vec<String>,
}

impl TypeNames {
    fn read(&mut self, registry: &Registry, name: &str, relationship: bool) -> Result<Arc<str>> {
        if let Some(seen) = self.seen.get(&(name.to_string(), relationship)) {
            return Ok(Arc::clone(seen));
        }
        id::check_type_name(name)?;
        self.warnings.extend(registry.admit(name, relationship)?);
        let spelled: Arc<str> = registry.spelling(name, relationship).into();
        self.seen.insert((name.to_string(), relationship), Arc::clone(&spelled));
        Ok(spelled)
    }
}

fn read_content(content: &Content, registry: &Registry, type_name: &str, relationship: bool) -> Result<Said> {
    let text = content.canonical();
    content.check(text.len())?;
    registry.validate(type_name, relationship, &content.properties)?;
    let hash = Hash::of(text.as_bytes());
    Ok(Said::Content { text: text.into(), hash })
}

fn read_period(from: Option<Time>, to: Option<Time>, only: bool, default_from: Time) -> Result<(Period, bool)> {
    let period = Period::new(from.unwrap_or(default_from), to.unwrap_or(Time::MAX))?;
    Ok((period, to.is_some() && !only))
}

/// Adds which write of the batch an error is about.
fn at_write(error: Error, place: usize) -> Error {
    let mut details = match *error.details {
        Value::Object(ref map) => map.clone(),
        _ => serde_json::Map::new(),
    };
    details.entry("write").or_insert_with(|| place.into());
    error.details(Value::Object(details))
}

fn kept_by_lukasa(type_name: &str) -> Error {
    Error::new(
        crate::ErrorKind::Forbidden,
        "system_type",
        format!("objects of type `{type_name}` are kept by Lukasa itself"),
    )
    .hint("use `lukasa branch`, `release`, `tag` or `type`")
}

pub fn nothing_named(reference: &Reference) -> Error {
    Error::not_found("not_found", format!("nothing is named `{reference}`"))
        .hint("name things by `Type:key`, by key, or by id; `lukasa list` shows what there is")
}

fn dangling(side: &str, name: &str) -> Error {
    Error::new(
        crate::ErrorKind::ValidationFailed,
        "dangling_end",
        format!("the {side} `{name}` does not exist at that time"),
    )
    .hint("write both ends before, or in the same batch")
}

fn lost_race(name: &str, expected: u32, actual: u32) -> Error {
    Error::conflict("version_conflict", format!("`{name}` is at version {actual}, expected {expected}"))
        .hint("read it again and repeat the change on top")
        .details(json!({"expected": expected, "actual": actual}))
}

pub fn ambiguous<'a>(key: &str, readings: impl Iterator<Item = &'a Thing>) -> Error {
    let mut readings: Vec<_> =
        readings.map(|t| format!("{}:{}", t.type_name, t.key.as_deref().unwrap_or_default())).collect();
    readings.sort();
    Error::invalid("ambiguous_key", format!("`{key}` names more than one object"))
        .hint(format!("say which: {}", readings.join(", ")))
        .details(json!({"readings": readings}))
}
