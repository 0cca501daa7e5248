//! Recording episodes: checked against the contract of their kind, linked to the code they involve, chained per session.

use super::facts::{self, FactOut, NewFact};
use super::{EpisodeKind, EpisodeOutcome, episode_kinds, session_chain};
use crate::names::Origin;
use crate::registry::snake_case;
use crate::request_parts::AgentRef;
use crate::view::memories::CODE_HASH;
use crate::view::memories::MemoryEntityOut;
use crate::view::memories::names::{
    AGENT, APPLIES_TO, CREATED_BY, DERIVED_FROM, INVOLVES, LEARNING, NEXT_EPISODE, PRODUCES, RECORDED_IN, SENSITIVE,
    SESSION, SUPERSEDES, agent_key, prefixed, session_key,
};
use crate::{Context, Engine};
use lukasa_model::batch::{PutObject, PutRelationship};
use lukasa_model::claims::{ClaimTarget, claim_conflict, conflicting_claim};
use lukasa_model::id::check_text;
use lukasa_model::limits::{KEY_BYTES, NAME_BYTES, TITLE_BYTES};
use lukasa_model::{
    Batch, Content, Error, ErrorCode, ErrorKind, Fact, Precondition, Reference, Result, Time, Tx, View, Write,
};
use lukasa_store::Ledger;
use lukasa_store::ledger::ViewSpec;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Maximum length of the content, in bytes: text that is worth reading again. Logs and dumps belong in files.
pub const CONTENT_BYTES: usize = 256 << 10;
/// How far a caller's clock may be ahead, in microseconds, before its times are refused.
pub const SKEW: i64 = 5 * 60 * 1_000_000;
/// Maximum number of episodes per call.
pub const AT_ONCE: usize = 1_000;
/// Metadata fields that list files.
const AFFECTED_FILES: &str = "affected_files";
const TEST_FILES: &str = "test_files";
/// The property that lists the names that matched nothing when the episode was recorded.
const UNLINKED: &str = "unlinked";
/// Hint for names that do not exist.
const MAKE: &str = "set `new` (--new) to name what does not exist yet";
/// Maximum number of entities per episode.
pub const ENTITIES: usize = 200;

/// An episode to record.
#[derive(Clone, Debug, Default)]
pub struct NewEpisode {
    pub kind: EpisodeKind,
    /// What happened, in words.
    pub content: String,
    /// The caller's own id; generated when left out.
    pub id: Option<String>,
    pub title: Option<String>,
    pub status: Option<String>,
    /// Keys of the facts it involves.
    pub entities: Vec<String>,
    pub outcome: Option<EpisodeOutcome>,
    /// The fields that its kind requires, and any others.
    pub metadata: Map<String, Value>,
    /// Visible to its agent only.
    pub sensitive: bool,
    pub agent: AgentRef,
    pub task_id: Option<String>,
    /// When it happened; now when left out.
    pub time: Option<Time>,
    /// Names that its content mentions; linked if they exist.
    pub mentions: Vec<String>,
    /// Names of the episodes it was concluded from.
    pub derived_from: Vec<String>,
    /// Names of the decisions it replaces.
    pub supersedes: Vec<String>,
    /// Facts that it establishes.
    pub facts: Vec<NewFact>,
    /// The task that it resulted from, for kinds that do not belong to a task.
    pub came_of: Option<String>,
    /// Accept names that do not exist yet; they are recorded without links.
    pub new: bool,
    /// Replace the episode with the same id, instead of refusing.
    pub replace: bool,
    /// It belongs to no session, because it is a conclusion and not an event.
    pub apart: bool,
}

impl NewEpisode {
    /// Creates an episode with only its kind and content.
    pub fn new(kind: EpisodeKind, content: impl Into<String>) -> NewEpisode {
        NewEpisode { kind, content: content.into(), ..NewEpisode::default() }
    }
}

/// A recorded episode.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AddedEpisode {
    /// Its key, for example `episode:…` or `decision:…`.
    pub episode_id: String,
    /// `Type:key`.
    #[serde(rename = "ref")]
    pub reference: String,
    #[serde(rename = "type")]
    pub kind: EpisodeKind,
    /// When it happened.
    pub time: Time,
    /// The facts it is linked to.
    pub entities: Vec<MemoryEntityOut>,
    /// The facts it established, and how they relate to earlier ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactOut>,
    /// Its content is encrypted with the key of its agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub encrypted: bool,
    /// It was recorded before with the same content; nothing was written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The transaction; null if nothing was written.
    pub tx: Option<Tx>,
}

/// Records an episode on a branch.
pub fn add(engine: &Engine, context: &mut Context<'_>, branch: &str, new: NewEpisode) -> Result<AddedEpisode> {
    let added = add_all(engine, context, branch, vec![new])?;
    added.into_iter().next().ok_or_else(|| Error::internal("an episode was recorded but not returned"))
}

/// Records episodes in one transaction, all or none, in their order.
pub fn add_all(
    engine: &Engine,
    context: &mut Context<'_>,
    branch: &str,
    episodes: Vec<NewEpisode>,
) -> Result<Vec<AddedEpisode>> {
    engine.declare_agent_types(context)?;
    let ledger = engine.ledger(&context.scope);
    let branch = if branch.is_empty() { "main" } else { branch };
    let view = ledger.view(&ViewSpec::on(branch))?;
    let many = episodes.len() > 1;
    let mut episodes = episodes;
    let mut near = FxHashMap::default();
    for episode in &mut episodes {
        by_key(engine, context, branch, episode, &mut near)?;
    }
    let origin = Origin::of(context);
    let recording = EpisodeRecorder { engine, context, ledger: &ledger, view: &view, origin, near };
    let mut prepared: Vec<PreparedEpisode> = Vec::with_capacity(episodes.len());
    for (at, new) in episodes.into_iter().enumerate() {
        let one = recording.prepare(new);
        prepared.push(one.map_err(|e| if many { e.at(format!("episodes[{at}]")) } else { e })?);
    }
    check_ids(&prepared)?;
    check_facts(&prepared)?;
    recording.commit(branch, prepared)
}

/// One call that records episodes.
struct EpisodeRecorder<'a, 'c> {
    engine: &'a Engine,
    context: &'a Context<'c>,
    ledger: &'a Ledger,
    view: &'a View,
    origin: Origin,
    /// Suggestions for names that match nothing.
    near: FxHashMap<String, String>,
}

/// Replaces the names in an episode by exact names. Names that match nothing are unchanged and are checked when they are
/// linked; `near` receives suggestions for them.
fn by_key(
    engine: &Engine,
    context: &mut Context<'_>,
    branch: &str,
    new: &mut NewEpisode,
    near: &mut FxHashMap<String, String>,
) -> Result<()> {
    let spec = ViewSpec::on(branch);
    let mut exact = |name: &str| match engine.reference(context, &spec, name) {
        Ok(Reference::Id(id)) => Ok(Some(id)),
        Ok(_) => Ok(None),
        Err(e) if e.kind == ErrorKind::NotFound => {
            let names = e.hint.as_deref().and_then(|hint| hint.strip_prefix("closest: "));
            near.extend(names.map(|names| (name.to_owned(), names.to_owned())));
            Ok(None)
        }
        Err(e) => Err(e),
    };
    for name in new.entities.iter_mut().chain(&mut new.derived_from).chain(&mut new.supersedes) {
        if let Some(id) = exact(name)? {
            *name = id.to_string();
        }
    }
    let ledger = engine.ledger(&context.scope);
    let view = ledger.view(&spec)?;
    for file in files_in(&mut new.metadata) {
        let Some(name) = file.as_str() else { continue };
        if let Ok(Reference::Id(id)) = engine.reference(context, &spec, name)
            && let Some(key) = ledger.find(&view, &Reference::Id(id))?.thing.key
        {
            *file = key.to_string().into();
        }
    }
    Ok(())
}

/// The fact that a name refers to.
struct EpisodeEntity {
    thing: Fact,
    ended: bool,
    renamed_from: Option<String>,
    /// Hash of the code, to detect later changes.
    code_hash: Option<String>,
}

/// A relationship to write from an episode.
struct EpisodeLink {
    type_name: &'static str,
    id: Uuid,
    code_hash: Option<String>,
}

/// An episode that has been checked and can be written.
struct PreparedEpisode {
    put: PutObject,
    key: String,
    kind: EpisodeKind,
    time: Option<Time>,
    agent: Option<String>,
    session: Option<String>,
    apart: bool,
    links: Vec<EpisodeLink>,
    /// The task that it resulted from.
    task: Option<Uuid>,
    entities: Vec<MemoryEntityOut>,
    facts: Vec<FactOut>,
    fact_writes: Vec<Write>,
    encrypted: bool,
    repeated: bool,
    warnings: Vec<String>,
    /// Preconditions against claims of other agents on the edited code, if the policy requires it.
    preconditions: Vec<Precondition>,
}

impl PreparedEpisode {
    fn reference(&self) -> Reference {
        Reference::exact(self.kind.type_name(), &self.key)
    }
}

impl EpisodeRecorder<'_, '_> {
    fn prepare(&self, new: NewEpisode) -> Result<PreparedEpisode> {
        let kind = new.kind;
        let metadata = episode_kinds::checked(kind, new.metadata.clone())?;
        check_content(&new.content)?;
        let agent = new.agent.agent_id.clone().or_else(|| self.context.agent.clone());
        // A persistent connection counts as a session if the agent names none.
        let session = new.agent.session_id.clone().or_else(|| self.context.session.clone());
        let session = session.or_else(|| self.context.connection.clone()).filter(|_| !new.apart);
        let task = new.task_id.clone();
        for (what, name) in [("agent_id", &agent), ("session_id", &session), ("task_id", &task)] {
            if let Some(name) = name {
                check_text(what, name, NAME_BYTES)?;
            }
        }
        let mut warnings = Vec::new();
        let preconditions = self.heed_claims(kind, &metadata, agent.as_deref(), &mut warnings)?;
        let time = self.time(new.time, &mut warnings)?;
        let key = match &new.id {
            Some(id) => {
                check_text("id", id, KEY_BYTES - kind.prefix().len())?;
                prefixed(kind.prefix(), id)
            }
            None => format!("{}{}", kind.prefix(), self.engine.clock().new_id()),
        };
        let mut links = Vec::new();
        let (entities, unlinked) = self.entities(&new, &metadata, &mut links, &mut warnings)?;
        let came_of = new.task_id.as_ref().or(new.came_of.as_ref()).filter(|_| kind.lasts());
        let task_node = came_of.and_then(|task| self.task(task));
        let named = [(DERIVED_FROM, &new.derived_from), (SUPERSEDES, &new.supersedes)];
        for (type_name, name) in named.iter().flat_map(|(type_name, names)| names.iter().map(|name| (*type_name, name)))
        {
            let thing = self.ledger.find(self.view, &Reference::from(name.as_str()))?.thing;
            links.push(EpisodeLink { type_name, id: thing.id, code_hash: None });
        }
        let mut content = plain(&new, &metadata, [("agent_id", &agent), ("session_id", &session), ("task_id", &task)])?;
        if !unlinked.is_empty() {
            content.properties.insert(UNLINKED.into(), json!(unlinked));
        }
        let repeated = new.id.is_some() && !new.replace && self.is_repeated(kind, &key, &content)?;
        let (content, encrypted) = match agent.as_deref().filter(|_| new.sensitive) {
            Some(agent) if self.engine.memory().vault.has(agent) => (self.seal(agent, &key, content)?, true),
            _ => (content, false),
        };
        if new.sensitive && !encrypted {
            let whose = agent.as_deref().map_or("episodes without an agent".into(), |agent| format!("agent `{agent}`"));
            warnings.push(format!("no key is configured for {whose}: it is left out of searches, but not encrypted"));
        }
        let mut put = PutObject::new(kind.type_name(), &key).with_content(content);
        put.valid_from = time;
        if new.id.is_some() && !new.replace {
            put.expected_version = Some(0);
        }
        let (mut facts, mut fact_writes) = (Vec::new(), Vec::new());
        if new.sensitive && !new.facts.is_empty() {
            return Err(Error::invalid(
                ErrorCode::SensitiveFacts,
                "facts are visible to all agents; a sensitive episode cannot have any",
            )
            .hint("leave out `facts`, or `sensitive`"));
        }
        let own = Reference::exact(kind.type_name(), &key);
        for fact in new.facts.iter().filter(|_| !repeated) {
            facts::check(fact)?;
            let at = time.unwrap_or_else(|| self.engine.clock().now());
            let (writes, out) = facts::writes(self.ledger, self.view, fact, &own, at)?;
            fact_writes.extend(writes);
            facts.push(out);
        }
        let apart = new.apart;
        Ok(PreparedEpisode {
            put,
            key,
            kind,
            time,
            agent,
            session,
            apart,
            links,
            task: task_node.map(|entity| entity.thing.id),
            entities,
            facts,
            fact_writes,
            encrypted,
            repeated,
            warnings,
            preconditions,
        })
    }

    /// An edit of code that another agent has claimed is reported or refused, depending on the policy.
    fn heed_claims(
        &self,
        kind: EpisodeKind,
        metadata: &Map<String, Value>,
        agent: Option<&str>,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Precondition>> {
        let file = metadata.get("file").and_then(Value::as_str).filter(|_| kind == EpisodeKind::Edit);
        let (Some(file), Some(agent)) = (file, agent) else { return Ok(vec![]) };
        let Ok(target) = ClaimTarget::code(file) else { return Ok(vec![]) };
        let guarded = self.engine.claims().guard_targets(self.engine, self.ledger, agent, vec![target.clone()])?;
        warnings.extend(guarded.warnings);
        if guarded.preconditions.is_empty() || self.context.agent.as_deref() == Some(agent) {
            return Ok(guarded.preconditions);
        }
        // The episode is recorded for another agent than the writer, so the commit would check the wrong agent.
        match conflicting_claim(&self.engine.claims_held(self.ledger)?, &target, Some(agent)) {
            Some((held, relation)) => Err(claim_conflict(&target, held, relation)),
            None => Ok(vec![]),
        }
    }

    /// Returns when it happened. A time slightly ahead of the clock is replaced by now; one that is far ahead is refused.
    fn time(&self, given: Option<Time>, warnings: &mut Vec<String>) -> Result<Option<Time>> {
        let now = self.engine.clock().now();
        match given {
            Some(time) if time.0 > now.0.saturating_add(SKEW) => {
                Err(Error::invalid(ErrorCode::TimeInFuture, format!("{time} has not come yet; it is {now}"))
                    .hint("episodes have happened; check the clock, or leave out `time`"))
            }
            Some(time) if time > now => {
                let ahead = (time.0 - now.0) / 1_000_000;
                warnings.push(format!("the given time is {ahead} s ahead of the server's clock: taken as now"));
                Ok(None)
            }
            given => Ok(given),
        }
    }

    /// Returns the facts it involves, and the names that match nothing if that is allowed. Explicit names must exist; files
    /// that a decision affects must exist in the graph or in the working tree; files that other metadata names are linked if
    /// they exist.
    fn entities(
        &self,
        new: &NewEpisode,
        metadata: &Map<String, Value>,
        links: &mut Vec<EpisodeLink>,
        warnings: &mut Vec<String>,
    ) -> Result<(Vec<MemoryEntityOut>, Vec<String>)> {
        if new.entities.len() > ENTITIES {
            let message = format!("{} entities, {ENTITIES} are allowed", new.entities.len());
            return Err(Error::too_large(ErrorCode::TooManyEntities, message));
        }
        let link = if new.kind.type_name() == LEARNING { APPLIES_TO } else { INVOLVES };
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        let mut take = |entity: EpisodeEntity| {
            if !links.iter().any(|known| known.type_name == link && known.id == entity.thing.id) {
                links.push(EpisodeLink { type_name: link, id: entity.thing.id, code_hash: entity.code_hash });
                let (reference, ended) = (entity.thing.name(), entity.ended);
                found.push(MemoryEntityOut { reference, ended, renamed_from: entity.renamed_from });
            }
        };
        for name in &new.entities {
            match self.entity(name) {
                Ok(entity) => take(entity),
                Err(error) if error.code == ErrorCode::NotFound => unknown.push((name.clone(), error)),
                Err(error) => return Err(error),
            }
        }
        let unlinked = |name: &str| format!("`{name}` is not in the graph, so nothing is linked to it");
        let decides = new.kind == EpisodeKind::Decision;
        for (name, affected) in spoken_of(metadata) {
            match self.entity(name) {
                Ok(entity) => take(entity),
                Err(error) if decides && affected && !new.new && !self.origin.has_file(name) => {
                    unknown.push((name.to_owned(), error));
                }
                Err(_) => warnings.push(unlinked(name)),
            }
        }
        if !unknown.is_empty() && !new.new {
            return Err(no_such_entities(&unknown, &self.near));
        }
        let unknown: Vec<String> = unknown.into_iter().map(|(name, _)| name).collect();
        warnings.extend(unknown.iter().map(|name| unlinked(name)));
        new.mentions.iter().filter_map(|name| self.entity(name).ok()).for_each(&mut take);
        if let Some(entity) = new.task_id.as_ref().and_then(|task| self.task(task)) {
            take(entity);
        }
        Ok((found, unknown))
    }

    /// Resolves the name of a task, if it is recorded.
    fn task(&self, name: &str) -> Option<EpisodeEntity> {
        [name.to_owned(), prefixed("task:", name)].iter().find_map(|key| self.entity(&format!("Task:{key}")).ok())
    }

    /// Resolves a name to a fact, current or ended; a renamed fact is returned under its new name.
    fn entity(&self, name: &str) -> Result<EpisodeEntity> {
        let reference = Reference::from(name);
        let error = match self.ledger.find(self.view, &reference) {
            Ok(found) if found.thing.ends.is_some() => {
                return Err(Error::invalid(ErrorCode::NotAnObject, format!("`{name}` is a relationship"))
                    .hint("name one of its ends"));
            }
            Ok(found) => {
                let code_hash = crate::view::memories::code_hash(&found.statement.parsed()?).map(str::to_owned);
                let (thing, renamed_from) = (found.thing, found.renamed_from);
                return Ok(EpisodeEntity { thing, ended: false, renamed_from, code_hash });
            }
            Err(error) => error,
        };
        if error.code != ErrorCode::NotFound {
            return Err(error);
        }
        match self.ledger.history(self.view, &reference, false) {
            Ok((thing, versions)) if thing.ends.is_none() && !versions.is_empty() => {
                Ok(EpisodeEntity { thing, ended: true, renamed_from: None, code_hash: None })
            }
            _ => Err(error),
        }
    }

    /// Whether the same episode was recorded under its id before. Another episode under the same id is a conflict.
    fn is_repeated(&self, kind: EpisodeKind, key: &str, content: &Content) -> Result<bool> {
        let found = match self.ledger.find(self.view, &Reference::exact(kind.type_name(), key)) {
            Ok(found) => found,
            Err(error) if error.code == ErrorCode::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let kept = self.unsealed(key, found.statement.parsed()?)?;
        if kept.canonical() == content.canonical() {
            return Ok(true);
        }
        Err(Error::conflict(ErrorCode::EpisodeExists, format!("`{key}` is recorded already, and says something else"))
            .hint("episodes never change: leave out `id`, or give another"))
    }

    /// Encrypts the content of a sensitive episode with the key of its agent.
    fn seal(&self, agent: &str, key: &str, mut content: Content) -> Result<Content> {
        let mut sealed = json!({"title": content.title.take(), "properties": {}});
        let open = ["agent_id", "session_id", "task_id", "sensitive"];
        let hidden: Map<String, Value> =
            content.properties.iter().filter(|(name, _)| !open.contains(&name.as_str())).map(pair).collect();
        content.properties.retain(|name, _| open.contains(&name.as_str()));
        sealed["properties"] = Value::Object(hidden);
        content.properties.insert("sealed".into(), self.engine.memory().vault.seal(agent, key, &sealed)?);
        Ok(content)
    }

    fn unsealed(&self, key: &str, content: Content) -> Result<Content> {
        unseal(self.engine, key, content)
    }

    fn commit(&self, branch: &str, episodes: Vec<PreparedEpisode>) -> Result<Vec<AddedEpisode>> {
        let chains = &self.engine.memory().chains;
        let mut sessions: Vec<&String> =
            episodes.iter().filter(|e| e.chained()).filter_map(|e| e.session.as_ref()).collect();
        // Sorted, so that all writers lock in the same order and cannot deadlock.
        sessions.sort();
        sessions.dedup();
        let slots: Vec<_> = sessions.iter().map(|session| chains.of(self.ledger, branch, session)).collect();
        let mut held: Vec<_> = slots.iter().map(|slot| slot.lock()).collect();
        let mut last: FxHashMap<&str, Option<Reference>> = FxHashMap::default();
        for (session, slot) in sessions.iter().zip(&mut held) {
            let known = match **slot {
                Some(known) => known,
                None => session_chain::last(self.ledger, self.view, session)?,
            };
            last.insert(session, known.map(Reference::Id));
        }
        let mut batch = Batch { header: self.context.header(None), ..Batch::on(branch) };
        for episode in episodes.iter().filter(|episode| !episode.repeated) {
            self.write(episode, &mut batch.writes, &mut last);
            batch.preconditions.extend(episode.preconditions.iter().cloned());
        }
        let people: Vec<PutObject> = people(&episodes)
            .into_iter()
            .filter(|put| !self.engine.memory().people.are_known(self.ledger, put.key.as_deref().unwrap_or("")))
            .collect();
        batch.writes.extend(people.iter().cloned().map(Write::from));
        let done = if batch.writes.is_empty() { None } else { Some(self.ledger.commit(&batch)?) };
        self.engine.memory().people.know(self.ledger, people.into_iter().filter_map(|put| put.key));
        if let Some(done) = &done {
            // The last episode of each session, as currently known.
            for (session, slot) in sessions.iter().zip(&mut held) {
                let newest = episodes.iter().rfind(|e| e.chained() && e.session.as_ref() == Some(*session));
                let place = newest.and_then(|newest| place_of(&batch.writes, newest));
                **slot = match place.and_then(|place| done.written.get(place)) {
                    Some(written) => Some(Some(written.id)),
                    None => **slot,
                };
            }
        }
        let (tx, at) = (done.as_ref().and_then(|done| done.tx), done.as_ref().map(|done| done.recorded_at));
        let now = at.unwrap_or_else(|| self.engine.clock().now());
        Ok(episodes.into_iter().map(|episode| episode.added(tx, now)).collect())
    }

    fn write<'e>(
        &self,
        episode: &'e PreparedEpisode,
        writes: &mut Vec<Write>,
        last: &mut FxHashMap<&'e str, Option<Reference>>,
    ) {
        let own = episode.reference();
        writes.push(episode.put.clone().into());
        let link = |type_name: &str, src: Reference, dst: Reference| PutRelationship {
            valid_from: episode.time,
            ..PutRelationship::new(type_name, src, dst)
        };
        writes.extend(episode.fact_writes.iter().cloned());
        // Facts that outlive the session record what they resulted from.
        if episode.kind.lasts() {
            let session = episode.session.as_ref().map(|session| Reference::exact(SESSION, &session_key(session)));
            let from = session.into_iter().chain(episode.task.map(Reference::Id));
            writes.extend(from.map(|from| link(PRODUCES, from, own.clone()).into()));
        }
        for EpisodeLink { type_name, id, code_hash } in &episode.links {
            let mut link = link(type_name, own.clone(), Reference::Id(*id));
            if let Some(hash) = code_hash {
                link.properties.insert(CODE_HASH.into(), hash.clone().into());
            }
            writes.push(link.into());
        }
        if let Some(agent) = &episode.agent {
            writes.push(link(CREATED_BY, own.clone(), Reference::exact(AGENT, &agent_key(agent))).into());
        }
        if let Some(session) = &episode.session {
            writes.push(link(RECORDED_IN, own.clone(), Reference::exact(SESSION, &session_key(session))).into());
            if episode.chained()
                && let Some(Some(previous)) = last.insert(session, Some(own.clone()))
            {
                writes.push(link(NEXT_EPISODE, previous, own).into());
            }
        }
    }
}

impl PreparedEpisode {
    fn chained(&self) -> bool {
        // The same conclusion may be recorded on several branches, after different episodes.
        !self.apart && !self.repeated && self.session.is_some() && self.kind != EpisodeKind::Reflection
    }

    fn added(self, tx: Option<Tx>, now: Time) -> AddedEpisode {
        AddedEpisode {
            reference: format!("{}:{}", self.kind.type_name(), self.key),
            episode_id: self.key,
            kind: self.kind,
            time: self.time.unwrap_or(now),
            entities: self.entities,
            facts: self.facts,
            encrypted: self.encrypted,
            warnings: self.warnings,
            tx: if self.repeated { None } else { tx },
            repeated: self.repeated,
        }
    }
}

/// Returns the content of an episode, decrypted if it is encrypted and the key of its agent is configured.
pub fn unseal(engine: &Engine, key: &str, mut content: Content) -> Result<Content> {
    let Some(sealed) = content.properties.get("sealed").cloned() else { return Ok(content) };
    let agent = content.properties.get("agent_id").and_then(Value::as_str).unwrap_or_default();
    let mut opened = engine.memory().vault.open(agent, key, &sealed)?;
    content.properties.shift_remove("sealed");
    content.title = opened["title"].take().as_str().map(str::to_owned);
    if let Value::Object(properties) = opened["properties"].take() {
        content.properties.extend(properties);
    }
    Ok(content)
}

/// Builds the content of an episode, before anything is encrypted.
fn plain(new: &NewEpisode, metadata: &Map<String, Value>, names: [(&str, &Option<String>); 3]) -> Result<Content> {
    let mut properties = Map::new();
    properties.insert("content".into(), new.content.clone().into());
    for (name, value) in names {
        if let Some(value) = value {
            properties.insert(name.into(), value.clone().into());
        }
    }
    if let Some(outcome) = new.outcome {
        properties.insert("outcome".into(), outcome.name().into());
    }
    let mut labels = BTreeSet::new();
    if new.sensitive {
        properties.insert("sensitive".into(), true.into());
        labels.insert(SENSITIVE.to_owned());
    }
    let title = new.title.clone().or_else(|| metadata.get("title").and_then(Value::as_str).map(str::to_owned));
    if let Some(title) = &title {
        check_text("title", title, TITLE_BYTES)?;
    }
    // The title is a field of its own, not a property.
    properties.extend(metadata.iter().filter(|(name, value)| *name != "title" && !value.is_null()).map(pair));
    let subtype = (new.kind.type_name() == crate::view::memories::names::EPISODE).then(|| new.kind.name().to_owned());
    Ok(Content { title, subtype, status: new.status.clone(), labels, properties, ..Content::default() })
}

fn pair((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn check_content(content: &str) -> Result<()> {
    if content.trim().is_empty() {
        return Err(
            Error::invalid(ErrorCode::EmptyContent, "`content` says nothing").hint("say in words what happened")
        );
    }
    if content.len() > CONTENT_BYTES {
        let message = format!("`content` has {} bytes, {CONTENT_BYTES} are allowed", content.len());
        return Err(Error::too_large(ErrorCode::ContentTooLarge, message)
            .hint("say what matters of it, and name the file that has the rest"));
    }
    Ok(())
}

/// Returns the files that metadata names, and whether they are listed as affected.
fn spoken_of(metadata: &Map<String, Value>) -> impl Iterator<Item = (&str, bool)> {
    let one = metadata.get("file").and_then(Value::as_str).map(|file| (file, false));
    let lists = [(AFFECTED_FILES, true), (TEST_FILES, false)].into_iter();
    let lists = lists.filter_map(|(name, affected)| Some((metadata.get(name)?.as_array()?, affected)));
    let listed =
        lists.flat_map(|(list, affected)| list.iter().filter_map(move |file| Some((file.as_str()?, affected))));
    one.into_iter().chain(listed)
}

/// Rewrites the names of files in metadata, whose fields callers may write in camel case.
fn files_in(metadata: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    let own = |name: &str| [AFFECTED_FILES, TEST_FILES, "file"].contains(&snake_case(name).as_str());
    metadata.iter_mut().filter(move |(name, _)| own(name)).flat_map(|(_, value)| match value {
        Value::Array(list) => list.iter_mut().collect::<Vec<_>>(),
        other => vec![other],
    })
}

fn no_such_entities(unknown: &[(String, Error)], near: &FxHashMap<String, String>) -> Error {
    let names: Vec<String> = unknown.iter().map(|(name, _)| format!("`{name}`")).collect();
    let near: Vec<String> = unknown
        .iter()
        .filter_map(|(name, error)| {
            let listed = error.hint.as_deref().and_then(|hint| hint.strip_prefix("closest: "));
            Some(format!("for `{name}`: {}", near.get(name).map(String::as_str).or(listed)?))
        })
        .collect();
    let error = Error::not_found(ErrorCode::UnknownEntity, format!("nothing is named {}", names.join(", ")));
    let error = error.details(json!({"unknown": unknown.iter().map(|(name, _)| name).collect::<Vec<_>>()}));
    match near.is_empty() {
        true => error.hint(format!("name entities by key, for example `src/auth.ts::login`; {MAKE}")),
        false => error.hint(format!("closest {}; {MAKE}", near.join("; "))),
    }
}

/// Refuses the same id twice in one call.
fn check_ids(episodes: &[PreparedEpisode]) -> Result<()> {
    let mut seen: FxHashMap<(&str, &str), usize> = FxHashMap::default();
    for (at, episode) in episodes.iter().enumerate() {
        if let Some(first) = seen.insert((episode.kind.type_name(), &episode.key), at) {
            let message = format!("`{}` stands for two episodes of this call, {first} and {at}", episode.key);
            return Err(
                Error::new(ErrorKind::Conflict, ErrorCode::EpisodeExists, message).hint("give each an id of its own")
            );
        }
    }
    Ok(())
}

/// Refuses two facts about the same attribute in one call, because each is compared only with facts from before the call.
fn check_facts(episodes: &[PreparedEpisode]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for fact in episodes.iter().flat_map(|episode| &episode.facts) {
        if !seen.insert((facts::normal(&fact.subject), facts::normal(&fact.attribute))) {
            let message = format!("two facts about `{}` of `{}` in one call", fact.attribute, fact.subject);
            return Err(Error::invalid(ErrorCode::DuplicateFact, message).hint("record them one after the other"));
        }
    }
    Ok(())
}

/// Returns the agents and sessions of the episodes; writing them again has no effect.
fn people(episodes: &[PreparedEpisode]) -> Vec<PutObject> {
    let fresh = || episodes.iter().filter(|episode| !episode.repeated);
    let agents: BTreeSet<&String> = fresh().filter_map(|episode| episode.agent.as_ref()).collect();
    let sessions: BTreeSet<&String> = fresh().filter_map(|episode| episode.session.as_ref()).collect();
    let agents = agents.into_iter().map(|agent| PutObject::new(AGENT, &agent_key(agent)).title(agent));
    let sessions = sessions.into_iter().map(|session| PutObject::new(SESSION, &session_key(session)).title(session));
    agents.chain(sessions).collect()
}

fn place_of(writes: &[Write], episode: &PreparedEpisode) -> Option<usize> {
    writes.iter().position(|write| {
        matches!(write, Write::Object(put) if put.key.as_deref() == Some(&episode.key)
            && put.type_name == episode.kind.type_name())
    })
}
