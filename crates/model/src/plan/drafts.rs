//! A batch before it is planned: content checked and hashed, names turned into ids.

use super::{LoadedFacts, Side, ambiguous, at_write, dangling, limited_sides, lost_race, nothing_named};
use crate::ErrorCode;
use crate::batch::{Batch, End, Precondition, PutObject, PutRelationship, Reference, Write};
use crate::branch::Lineage;
use crate::claims::{self, ClaimTarget};
use crate::content::{ABSENT, Content};
use crate::error::{Error, Result};
use crate::id::{self, VersionId};
use crate::json::Hash;
use crate::limits;
use crate::merge::MergeWrite;
use crate::time::{Period, Time};
use crate::timeline::visible;
use crate::types::{Registry, system};
use crate::version::Fact;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use uuid::Uuid;

/// Writes with their content checked and hashed, and with their ids where those are derived from names.
pub struct Drafts {
    drafts: Vec<Draft>,
    preconditions: Vec<Precondition>,
    /// Targets that no other agent may have claimed, with their claim boards; and the writing agent.
    unclaimed: Vec<(ClaimTarget, Uuid)>,
    agent: Option<String>,
    namespace: Uuid,
    system: bool,
    /// Ids of the facts to load before `resolve`.
    pub ids: Vec<Uuid>,
    /// Keys that were given without a definite type, each with the id for its `Type:key` form.
    keys: Vec<(String, Option<Uuid>)>,
    /// For the client, for example types that are not declared.
    pub warnings: Vec<String>,
}

struct Draft {
    place: usize,
    subject: Subject,
    content: DraftContent,
    period: Period,
    /// Whether the write has no explicit time.
    defaulted: bool,
    /// Whether the fact is absent after the period, except where another write of the batch covers that time.
    then_absent: bool,
    expected_version: Option<u32>,
    merged: Option<MergeParents>,
}

enum Subject {
    Object { id: Uuid, type_name: Arc<str>, key: Option<Box<str>> },
    Relationship { type_name: Arc<str>, src: NamedReference, dst: NamedReference, discriminator: Box<str> },
    Named(NamedReference),
}

/// A reference, and the id for its `Type:key` form.
struct NamedReference {
    reference: Reference,
    typed: Option<Uuid>,
}

pub(super) enum DraftContent {
    Content { text: Box<str>, hash: Hash },
    Absent,
}

impl DraftContent {
    /// Moves the text out instead of copying it.
    pub(super) fn take(&mut self) -> DraftContent {
        match self {
            DraftContent::Content { text, hash } => DraftContent::Content { text: std::mem::take(text), hash: *hash },
            DraftContent::Absent => DraftContent::Absent,
        }
    }

    pub(super) fn hash(&self) -> Hash {
        match self {
            DraftContent::Content { hash, .. } => *hash,
            DraftContent::Absent => ABSENT,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            DraftContent::Content { text, .. } => Some(text),
            DraftContent::Absent => None,
        }
    }
}

pub(super) struct MergeParents {
    pub(super) source: VersionId,
    pub(super) target: Option<VersionId>,
    pub(super) bases: Vec<VersionId>,
}

impl Drafts {
    /// Performs all checks that need only the batch and the registry. `draw` generates ids for objects without a key.
    pub fn read(
        batch: &Batch,
        registry: &Registry,
        namespace: Uuid,
        now: Time,
        draw: &mut dyn FnMut() -> Uuid,
    ) -> Result<Drafts> {
        Drafts::take(batch.clone(), registry, namespace, now, draw)
    }

    /// Like `read`, but moves the contents out of the batch instead of copying them.
    pub fn take(
        mut batch: Batch,
        registry: &Registry,
        namespace: Uuid,
        now: Time,
        draw: &mut dyn FnMut() -> Uuid,
    ) -> Result<Drafts> {
        let mut writes = std::mem::take(&mut batch.writes);
        let number = writes.len();
        let writes = writes.iter_mut().map(|write| {
            let content = write.take_content();
            (&*write, content)
        });
        Drafts::of(&batch, writes, number, registry, namespace, now, draw)
    }

    fn of<'b>(
        batch: &Batch,
        writes: impl Iterator<Item = (&'b Write, Content)>,
        number: usize,
        registry: &Registry,
        namespace: Uuid,
        now: Time,
        draw: &mut dyn FnMut() -> Uuid,
    ) -> Result<Drafts> {
        if number > limits::BATCH_WRITES {
            return Err(Error::too_large(
                ErrorCode::BatchTooLarge,
                format!("{number} writes in one batch, {} are allowed", limits::BATCH_WRITES),
            )
            .hint("send several batches"));
        }
        let mut drafts = Drafts {
            drafts: Vec::with_capacity(number),
            preconditions: batch.preconditions.clone(),
            unclaimed: vec![],
            agent: batch.header.agent.clone(),
            namespace,
            system: batch.system,
            ids: vec![],
            keys: vec![],
            warnings: vec![],
        };
        let mut types = TypeNames::default();
        let default_from = batch.header.valid_at.unwrap_or(now);
        let mut reading = DraftContext { registry, types: &mut types, default_from, draw, text: String::new() };
        for (place, (write, content)) in writes.enumerate() {
            let draft = match write {
                Write::Object(put) => drafts.object(put, &content, batch.system, &mut reading),
                Write::Relationship(put) => drafts.relationship(put, &content, &mut reading),
                Write::End(end) => drafts.end(end, registry, default_from),
            };
            let mut draft = draft.map_err(|e| at_write(e, place))?;
            draft.place = place;
            drafts.drafts.push(draft);
        }
        for precondition in &batch.preconditions {
            match precondition {
                Precondition::Version { reference, .. } | Precondition::Absent { reference } => {
                    drafts.want(reference, registry);
                }
                Precondition::Unclaimed { reference } => drafts.want_unclaimed(reference)?,
            }
        }
        drafts.warnings = types.warnings;
        Ok(drafts)
    }

    fn object(
        &mut self,
        put: &PutObject,
        content: &Content,
        may_be_system: bool,
        reading: &mut DraftContext<'_>,
    ) -> Result<Draft> {
        let DraftContext { registry, types, default_from, draw, text } = reading;
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
                        ErrorCode::IdAndKey,
                        format!("the id of `{type_name}:{key}` is {id}, not the one given"),
                    )
                    .hint("leave out `id`: it follows from type and key"));
                }
                (id, Some(key.as_str().into()))
            }
            (None, Some(given)) if given.get_version_num() == 5 => {
                return Err(Error::invalid(ErrorCode::DerivedId, format!("{given} is an id that follows from a name"))
                    .hint("give type and key instead, or leave out `id`"));
            }
            (None, given) => (given.unwrap_or_else(draw), None),
        };
        let content = read_content(content, registry, &type_name, false, text)?;
        let (period, then_absent) = read_period(put.valid_from, put.valid_to, put.only_this_period, *default_from)?;
        let defaulted = put.valid_from.is_none() && put.valid_to.is_none();
        self.ids.push(id);
        let subject = Subject::Object { id, type_name, key };
        Ok(Draft {
            place: 0,
            subject,
            content,
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
        content: &Content,
        reading: &mut DraftContext<'_>,
    ) -> Result<Draft> {
        let DraftContext { registry, types, default_from, text, .. } = reading;
        let type_name = types.read(registry, &put.type_name, true)?;
        let content = read_content(content, registry, &type_name, true, text)?;
        if !put.discriminator.is_empty() {
            id::check_text("discriminator", &put.discriminator, limits::KEY_BYTES)?;
        }
        let (period, then_absent) = read_period(put.valid_from, put.valid_to, put.only_this_period, *default_from)?;
        let defaulted = put.valid_from.is_none() && put.valid_to.is_none();
        let (src, dst) = (self.want(&put.src, registry), self.want(&put.dst, registry));
        let subject = Subject::Relationship { type_name, src, dst, discriminator: put.discriminator.as_str().into() };
        Ok(Draft {
            place: 0,
            subject,
            content,
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
            content: DraftContent::Absent,
            period,
            defaulted: false,
            then_absent: false,
            expected_version,
            merged: None,
        })
    }

    /// Adds the claim board of this target to what must be loaded.
    fn want_unclaimed(&mut self, reference: &Reference) -> Result<()> {
        let target = ClaimTarget::read(&reference.to_string(), None)?.ok_or_else(|| {
            Error::invalid(
                ErrorCode::InvalidTarget,
                format!("`{reference}` is not the name of a file, function, task or feature"),
            )
            .hint("name it by its key, for example src/a.rs::login or task:12")
        })?;
        let board = id::object_id(self.namespace, claims::BOARD, &target.board());
        self.ids.push(board);
        self.unclaimed.push((target, board));
        Ok(())
    }

    /// Adds the ids and keys that a reference may stand for to what must be loaded. Returns the reference with the
    /// declared spelling of its type.
    fn want(&mut self, reference: &Reference, registry: &Registry) -> NamedReference {
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
        NamedReference { reference: reference.clone(), typed }
    }

    /// Returns the keys to look up once `ids` are loaded: those whose `Type:key` form names no fact.
    pub fn keys_to_find(&self, known: &LoadedFacts<'_>) -> Vec<String> {
        let local: FxHashSet<Uuid> = self
            .drafts
            .iter()
            .filter_map(|draft| if let Subject::Object { id, .. } = draft.subject { Some(id) } else { None })
            .collect();
        let sure = |id: &Uuid| local.contains(id) || known.fact(*id).is_some();
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

    /// Turns the writes of a merge into drafts.
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
                let content = match write.content {
                    Some(text) => DraftContent::Content { text, hash: write.hash },
                    None => DraftContent::Absent,
                };
                let subject = match (thing.ends, ends) {
                    (Some(named), Some((src, dst))) => Subject::Relationship {
                        type_name: thing.type_name,
                        src: NamedReference { reference: Reference::Id(src), typed: None },
                        dst: NamedReference { reference: Reference::Id(dst), typed: None },
                        discriminator: named.discriminator,
                    },
                    _ => Subject::Object { id: thing.id, type_name: thing.type_name, key: thing.key },
                };
                let merged = Some(MergeParents { source: write.source, target: write.target, bases: write.bases });
                Ok(Draft {
                    place,
                    subject,
                    content,
                    period: write.period,
                    defaulted: false,
                    then_absent: false,
                    expected_version: None,
                    merged,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Drafts {
            drafts,
            preconditions: vec![],
            unclaimed: vec![],
            agent: None,
            namespace,
            system: false,
            ids,
            keys: vec![],
            warnings: vec![],
        })
    }

    /// Turns every name into an id. `ResolvedBatch::ids` then contains the ids of the relationships to load.
    pub fn resolve(self, known: &LoadedFacts<'_>, lineage: &Lineage, now: Time) -> Result<ResolvedBatch> {
        let Drafts { drafts, preconditions: conditions, unclaimed, agent, namespace, system, keys, warnings, .. } =
            self;
        let mut local_ids = FxHashSet::default();
        let mut local_keys: FxHashMap<Box<str>, Vec<Uuid>> = FxHashMap::default();
        for draft in &drafts {
            if let Subject::Object { id, key, .. } = &draft.subject
                && local_ids.insert(*id)
                && let Some(key) = key
                && !keys.is_empty()
            {
                local_keys.entry(key.clone()).or_default().push(*id);
            }
        }
        let find = |NamedReference { reference, typed }: &NamedReference| -> Result<Uuid> {
            let exists = |id: &Uuid| local_ids.contains(id) || known.fact(*id).is_some();
            if let Reference::Id(id) = reference {
                return if exists(id) { Ok(*id) } else { Err(nothing_named(reference)) };
            }
            if let Some(id) = typed.filter(exists) {
                return Ok(id);
            }
            let Reference::Text(text) = reference else { return Err(nothing_named(reference)) };
            let seen = |id: &&Uuid| visible(known.versions_of(**id), lineage, now).is_some();
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
                    many => Err(ambiguous(text, many.iter().filter_map(|id| known.fact(*id)))),
                },
                many => Err(ambiguous(text, many.iter().filter_map(|id| known.fact(*id)))),
            }
        };
        let mut items = Vec::with_capacity(drafts.len());
        let mut ids = Vec::new();
        for draft in drafts {
            let named = matches!(draft.subject, Subject::Named(_));
            let (id, type_name, key, ends) = match draft.subject {
                Subject::Object { id, type_name, key } => (id, type_name, key, None),
                Subject::Relationship { type_name, src, dst, discriminator } => {
                    let place = draft.place;
                    let end = |named: &NamedReference, side: &str| {
                        find(named).map_err(|e| {
                            let e = if e.code == ErrorCode::NotFound {
                                dangling(side, &named.reference.to_string())
                            } else {
                                e
                            };
                            at_write(e, place)
                        })
                    };
                    let (src, dst) = (end(&src, "src")?, end(&dst, "dst")?);
                    let id = id::relationship_id(namespace, &type_name, src, dst, &discriminator);
                    ids.push(id);
                    (id, type_name, None, Some((src, dst, discriminator)))
                }
                Subject::Named(named) => {
                    let id = find(&named).map_err(|e| at_write(e, draft.place))?;
                    match known.fact(id) {
                        Some(thing) if system::is(&thing.type_name) && !system => {
                            return Err(at_write(kept_by_lukasa(&thing.type_name), draft.place));
                        }
                        Some(thing) => (id, Arc::clone(&thing.type_name), thing.key.clone(), None),
                        None => return Err(at_write(nothing_named(&named.reference), draft.place)),
                    }
                }
            };
            items.push(ResolvedWrite {
                id,
                type_name,
                key,
                ends,
                place: draft.place,
                content: draft.content,
                period: draft.period,
                defaulted: draft.defaulted,
                then_absent: draft.then_absent,
                expected_version: draft.expected_version,
                named,
                merged: draft.merged,
            });
        }
        let mut preconditions = Vec::new();
        for precondition in &conditions {
            let (reference, want) = match precondition {
                Precondition::Version { reference, expected_version } => (reference, *expected_version),
                Precondition::Absent { reference } => (reference, 0),
                Precondition::Unclaimed { .. } => continue,
            };
            let typed = reference.typed().map(|(type_name, key)| id::object_id(namespace, type_name, key));
            match find(&NamedReference { reference: reference.clone(), typed }) {
                Ok(id) => preconditions.push((reference.to_string(), id, want)),
                Err(e) if e.code == ErrorCode::NotFound && want == 0 => {}
                Err(e) if e.code == ErrorCode::NotFound => return Err(lost_race(&reference.to_string(), want, 0)),
                Err(e) => return Err(e),
            }
        }
        // Objects first: the number of a relationship must be above those of its ends.
        items.sort_by_key(|item| item.ends.is_some());
        Ok(ResolvedBatch { items, preconditions, unclaimed, agent, ids, warnings })
    }
}

/// A write that a merge decided on, with the ids of a relationship's ends.
pub struct DecidedWrite {
    pub thing: Fact,
    /// The ids of source and destination, for relationships.
    pub ends: Option<(Uuid, Uuid)>,
    pub write: MergeWrite,
}

/// A batch in which every name has been replaced by an id.
pub struct ResolvedBatch {
    pub(super) items: Vec<ResolvedWrite>,
    pub(super) preconditions: Vec<(String, Uuid, u32)>,
    pub(super) unclaimed: Vec<(ClaimTarget, Uuid)>,
    pub(super) agent: Option<String>,
    /// Relationships to load before `plan`.
    pub ids: Vec<Uuid>,
    pub(super) warnings: Vec<String>,
}

pub(super) struct ResolvedWrite {
    pub(super) place: usize,
    pub(super) id: Uuid,
    pub(super) type_name: Arc<str>,
    pub(super) key: Option<Box<str>>,
    pub(super) ends: Option<(Uuid, Uuid, Box<str>)>,
    pub(super) content: DraftContent,
    pub(super) period: Period,
    pub(super) defaulted: bool,
    pub(super) then_absent: bool,
    pub(super) expected_version: Option<u32>,
    /// The fact is named by an `end` write, so its stored identity and ends apply.
    pub(super) named: bool,
    pub(super) merged: Option<MergeParents>,
}

impl ResolvedBatch {
    /// Returns the ends whose relationships of one type must be loaded as rivals before `plan`.
    pub fn limited_ends(&self, registry: &Registry) -> Vec<(Arc<str>, Side, Uuid)> {
        let mut wanted = FxHashSet::default();
        for item in &self.items {
            let (Some((src, dst, _)), DraftContent::Content { .. }) = (&item.ends, &item.content) else { continue };
            for side in limited_sides(registry, &item.type_name) {
                wanted.insert((Arc::clone(&item.type_name), side, if side == Side::Src { *src } else { *dst }));
            }
        }
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.sort();
        wanted
    }

    /// Returns the facts whose stored content `plan` needs: those that are written, and the claim boards to check.
    pub fn targets(&self) -> impl Iterator<Item = Uuid> {
        self.items.iter().map(|item| item.id).chain(self.unclaimed.iter().map(|(_, board)| *board))
    }
}

/// The context in which all writes of a batch are read.
struct DraftContext<'a> {
    registry: &'a Registry,
    types: &'a mut TypeNames,
    default_from: Time,
    /// Generates ids for objects without a key.
    draw: &'a mut dyn FnMut() -> Uuid,
    /// Scratch buffer for contents, whose length is not known in advance.
    text: String,
}

/// Type names that occur in a batch: each is checked, normalised and admitted once.
#[derive(Default)]
struct TypeNames {
    /// Object types at index 0, relationship types at index 1.
    seen: [FxHashMap<String, Arc<str>>; 2],
    warnings: Vec<String>,
}

impl TypeNames {
    fn read(&mut self, registry: &Registry, name: &str, relationship: bool) -> Result<Arc<str>> {
        let seen = &mut self.seen[usize::from(relationship)];
        if let Some(seen) = seen.get(name) {
            return Ok(Arc::clone(seen));
        }
        id::check_type_name(name)?;
        self.warnings.extend(registry.admit(name, relationship)?);
        let spelled: Arc<str> = registry.spelling(name, relationship).into();
        seen.insert(name.to_string(), Arc::clone(&spelled));
        Ok(spelled)
    }
}

fn read_content(
    content: &Content,
    registry: &Registry,
    type_name: &str,
    relationship: bool,
    text: &mut String,
) -> Result<DraftContent> {
    text.clear();
    content.write_canonical(text);
    content.check(text.len())?;
    registry.validate(type_name, relationship, &content.properties)?;
    Ok(DraftContent::Content { text: text.as_str().into(), hash: Hash::of(text.as_bytes()) })
}

fn read_period(from: Option<Time>, to: Option<Time>, only: bool, default_from: Time) -> Result<(Period, bool)> {
    let period = Period::new(from.unwrap_or(default_from), to.unwrap_or(Time::MAX))?;
    Ok((period, to.is_some() && !only))
}

fn kept_by_lukasa(type_name: &str) -> Error {
    Error::new(
        crate::ErrorKind::Forbidden,
        ErrorCode::SystemType,
        format!("objects of type `{type_name}` are kept by Lukasa itself"),
    )
    .hint("use `lukasa branch`, `release`, `tag` or `type`")
}
