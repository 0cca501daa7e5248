//! `task_update`: creates or changes a task; completing it ends the claims made for it.

use crate::claims::ClaimOut;
use crate::features::code::working_tree::AgentWorktree;
use crate::features::coordination::tasks::{
    self, BELONGS_TO, BLOCKED_BY, FEATURE, TASK, TRACK, TaskStatus, circle_words, circles, priority,
};
use crate::features::coordination::{ClaimEnding, claim_target};
use crate::features::memory::reflect::{self, Reflection};
use crate::features::memory::{EpisodeKind, EpisodeOutcome, NewEpisode, add};
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::batch::{End, PutObject, PutRelationship};
use lukasa_model::claims::{ClaimTarget, own_key};
use lukasa_model::id::{check_text, relationship_id};
use lukasa_model::limits::{NAME_BYTES, TITLE_BYTES};
use lukasa_model::transaction::Header;
use lukasa_model::{Batch, Content, Error, ErrorCode, Reference, Result, Tx, Write};
use lukasa_store::ledger::{FactState, ViewSpec};
use lukasa_store::{Ledger, VersionFields};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The operation `task_update`.
pub struct TaskUpdate;

/// Maximum number of retries because another writer changed the task first.
const TRIES: usize = 16;

#[derive(Clone, Default, Deserialize, JsonSchema)]
pub struct Request {
    /// The task: `12` or `task:12`. Created if it does not exist.
    pub task_id: String,
    /// pending, in_progress, blocked, completed, failed or cancelled.
    #[serde(default)]
    pub status: Option<String>,
    /// What is to be done, in one line.
    #[serde(default)]
    pub title: Option<String>,
    /// The same in detail.
    #[serde(default)]
    pub description: Option<String>,
    /// A number, the most urgent highest, or low (1), medium (2), high (3), critical (4).
    #[serde(default)]
    pub priority: Option<Value>,
    /// The agent or person who is to do it.
    #[serde(default)]
    pub assignee: Option<String>,
    /// The feature it is part of; created if it does not exist.
    #[serde(default)]
    pub feature_id: Option<String>,
    /// The line of work it belongs to; created if it does not exist.
    #[serde(default)]
    pub track_id: Option<String>,
    /// Tasks that must be completed before; added to the recorded ones.
    #[serde(default)]
    pub blocked_by: Vec<String>,
    /// Tasks that it no longer waits for.
    #[serde(default)]
    pub unblock: Vec<String>,
    /// Files and functions it is about; added to the recorded ones.
    #[serde(default)]
    pub targets: Vec<String>,
    /// The outcome, in words; recorded with the decision that completing the task adds.
    #[serde(default)]
    pub outcome: Option<String>,
    /// Refuse unless the task is at this version; 0: unless it does not exist.
    #[serde(default)]
    pub expected_version: Option<u32>,
    /// The agent that makes the change; the caller's when left out.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// The branch of the episodes and the decision about the task.
    #[serde(default)]
    pub branch: Option<String>,
    /// Why, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub task_id: String,
    pub status: TaskStatus,
    /// The number of its current version.
    pub version: u32,
    /// It did not exist before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// The transaction; null if nothing changed.
    pub tx: Option<Tx>,
    /// Claims that its completion ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims_released: Vec<ClaimOut>,
    /// The reflection on the episodes of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reflection: Option<Reflection>,
    /// The decision that its completion recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Op for TaskUpdate {
    const META: Meta = Meta {
        name: "task_update",
        answer: &[
            "task_id",
            "status",
            "version",
            "created",
            "tx",
            "claims_released.target_id",
            "reflection.insight",
            "decision_id",
        ],
        summary: "Create or change a task",
        description: "Changes the given fields and keeps the rest; a task that does not exist yet is created. It can belong to a \
                      feature or a track, wait for other tasks and be about code. Completing it (or saying that it failed) \
                      ends every claim made for it, reflects on its episodes, and records a decision with the outcome. A \
                      circle of tasks that wait for each other is refused.",
        verb: "task update",
        toolset: "coordination",
        names: &["targets"],
        positional: &["task_id"],
        aliases: &[("id", "task_id"), ("feature", "feature_id"), ("track", "track_id"), ("notes", "description")],
        examples: &[
            "lukasa task update 12 --title \"Add a timeout\" --feature-id login --targets src/auth.ts --blocked-by 11",
            "lukasa task update 12 --status completed --outcome \"requests end after 5 s\"",
        ],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let key = own_key("task", &request.task_id);
        check_text("task_id", &key, NAME_BYTES)?;
        let agent = request.agent_id.clone().or_else(|| context.agent.clone());
        let status = request.status.as_deref().map(TaskStatus::read).transpose()?;
        for (what, text) in [("title", &request.title), ("outcome", &request.outcome)] {
            if let Some(text) = text {
                check_text(what, text, TITLE_BYTES)?;
            }
        }
        engine.declare_agent_types(context)?;
        let mut targets = Vec::new();
        let place = AgentWorktree::of(None, request.branch.as_deref())?;
        for name in &request.targets {
            targets.push(claim_target(engine, context, name, None, true, &place)?);
        }
        check_circle(engine, context, &key, &request)?;
        let mut response = written(engine, context, &key, status, &targets, &request, agent.as_deref())?;
        // Also if nothing changed: the writer that changed it may have stopped before the claims were ended.
        if status.is_some_and(|status| matches!(status, TaskStatus::Completed | TaskStatus::Failed)) {
            completed(engine, context, &request, agent, &mut response)?;
        } else if status == Some(TaskStatus::Cancelled) {
            response.claims_released = released(engine, context, &key, agent.as_deref())?;
        }
        Ok(response)
    }
}

/// Writes the task and its relationships, on top of the current version.
fn written(
    engine: &Engine,
    context: &Context<'_>,
    key: &str,
    status: Option<TaskStatus>,
    targets: &[ClaimTarget],
    request: &Request,
    agent: Option<&str>,
) -> Result<Response> {
    let ledger = engine.ledger(&context.scope);
    let header = Header { agent: agent.map(str::to_owned), ..context.header(request.reason.clone()) };
    let mut tries = TRIES;
    loop {
        let view = ledger.view(&ViewSpec::default())?;
        let found = ledger.states_keyed(&view, TASK, &[key.to_owned()], VersionFields::Content)?.pop();
        let before = found.and_then(|state| state.statement);
        let version = before.as_ref().map_or(0, |statement| statement.number);
        let mut content = before.map(|statement| statement.parsed()).transpose()?.unwrap_or_default();
        if let Some(expected) = request.expected_version.filter(|expected| *expected != version) {
            return Err(Error::conflict(
                ErrorCode::VersionConflict,
                format!("`{key}` is at version {version}, expected {expected}"),
            )
            .hint("read it again and repeat the change on top")
            .details(json!({"expected": expected, "actual": version})));
        }
        let created = version == 0;
        let status = status.unwrap_or_else(|| was(&content));
        apply(&mut content, key, status, targets, request)?;
        let put = PutObject { expected_version: Some(version), ..PutObject::new(TASK, key) }.with_content(content);
        let mut batch = Batch { header: header.clone(), ..Batch::on("") }.write(put);
        tie(engine, &ledger, &view, key, targets, request, &mut batch)?;
        let guarded = engine.claims().guard(engine, context, &mut batch)?;
        match ledger.commit(&batch) {
            Err(e) if e.code == ErrorCode::VersionConflict && request.expected_version.is_none() && tries > 0 => {
                tries -= 1
            }
            Err(e) => return Err(e),
            Ok(done) => {
                let what = if created { "made" } else { "updated" };
                let nothing = if done.tx.is_none() { ": nothing new" } else { "" };
                return Ok(Response {
                    summary: format!("{what} {key}: {}{nothing}", status.name()),
                    task_id: key.to_owned(),
                    status,
                    version: done.written.first().map_or(version, |written| written.number),
                    created,
                    tx: done.tx,
                    claims_released: vec![],
                    reflection: None,
                    decision_id: None,
                    warnings: done.warnings.into_iter().chain(guarded.warnings).collect(),
                });
            }
        }
    }
}

fn was(content: &Content) -> TaskStatus {
    content.status.as_deref().and_then(|word| TaskStatus::read(word).ok()).unwrap_or_default()
}

/// Changes the fields of the request and keeps the others.
fn apply(
    content: &mut Content,
    key: &str,
    status: TaskStatus,
    targets: &[ClaimTarget],
    request: &Request,
) -> Result<()> {
    if let Some(title) = request.title.clone().or_else(|| content.title.clone()) {
        content.title = Some(title);
    } else {
        content.title = Some(key.to_owned());
    }
    content.status = Some(status.name().into());
    let texts = [("description", &request.description), ("assignee", &request.assignee), ("outcome", &request.outcome)];
    for (name, value) in texts {
        if let Some(value) = value {
            content.properties.insert(name.into(), json!(value));
        }
    }
    if let Some(given) = &request.priority {
        let number = priority(given).ok_or_else(|| {
            Error::invalid(ErrorCode::InvalidPriority, format!("`{given}` is no priority"))
                .hint("a number, or one of low, medium, high, critical")
        })?;
        content.properties.insert("priority".into(), json!(number));
    }
    if !targets.is_empty() {
        let known = content.properties.get("targets").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut all: BTreeSet<String> = known.iter().filter_map(|t| t.as_str().map(str::to_owned)).collect();
        all.extend(targets.iter().map(|target| target.name.clone()));
        content.properties.insert("targets".into(), json!(all));
    }
    Ok(())
}

/// Adds relationships to features, tracks, blockers and code; creates missing features and tracks.
fn tie(
    engine: &Engine,
    ledger: &Ledger,
    view: &lukasa_model::View,
    key: &str,
    targets: &[ClaimTarget],
    request: &Request,
    batch: &mut Batch,
) -> Result<()> {
    let task = || Reference::exact(TASK, key);
    let is_there = |type_name: &str, key: &str| -> Result<Option<FactState>> {
        Ok(ledger.states_keyed(view, type_name, &[key.to_owned()], VersionFields::Header)?.pop())
    };
    for (type_name, word, id) in [(FEATURE, "feature", &request.feature_id), (TRACK, "track", &request.track_id)] {
        let Some(id) = id else { continue };
        let other = own_key(word, id);
        if is_there(type_name, &other)?.is_none() {
            batch.writes.push(PutObject::new(type_name, &other).title(id).into());
        }
        batch.writes.push(PutRelationship::new(BELONGS_TO, task(), Reference::exact(type_name, &other)).into());
    }
    for id in &request.blocked_by {
        let other = own_key("task", id);
        if is_there(TASK, &other)?.is_none() {
            return Err(Error::not_found(ErrorCode::UnknownTask, format!("there is no task `{other}` to wait for"))
                .hint("make it first with `task_update`"));
        }
        batch.writes.push(PutRelationship::new(BLOCKED_BY, task(), Reference::exact(TASK, &other)).into());
    }
    for id in &request.unblock {
        let other = own_key("task", id);
        if let (Some(own), Some(other)) = (is_there(TASK, key)?, is_there(TASK, &other)?) {
            let namespace = ledger.head()?.namespace;
            let id = relationship_id(namespace, BLOCKED_BY, own.thing.id, other.thing.id, "");
            if ledger.find(view, &Reference::Id(id)).is_ok() {
                batch.writes.push(Write::End(End::new(id)));
            }
        }
    }
    for target in targets {
        if let Some(id) = engine.object_of(ledger, target, request.branch.as_deref())? {
            batch.writes.push(PutRelationship::new("TARGETS", task(), id).into());
        }
    }
    Ok(())
}

/// Refuses cycles of tasks that wait for each other.
fn check_circle(engine: &Engine, context: &mut Context<'_>, key: &str, request: &Request) -> Result<()> {
    if request.blocked_by.is_empty() {
        return Ok(());
    }
    let look = engine.view_graph(context, &ViewSpec::default())?;
    let mut all = tasks::read(&look)?;
    let blocker = |id: &String| tasks::Blocker { id: own_key("task", id), open: true, ..Default::default() };
    let added = request.blocked_by.iter().map(blocker);
    match all.iter_mut().find(|task| task.key == key) {
        Some(task) => task.blocked_by.extend(added),
        None => all.push(tasks::Task { key: key.to_owned(), blocked_by: added.collect(), ..Default::default() }),
    }
    match circles(&all).into_iter().find(|circle| circle.iter().any(|one| one == key)) {
        Some(circle) => Err(Error::conflict(
            ErrorCode::DependencyCycle,
            format!("none of these tasks could start: {}", circle_words(&circle)),
        )
        .hint("leave one of them out of `blocked_by`, or take it out with `unblock`")
        .details(json!({"cycle": circle}))),
        None => Ok(()),
    }
}

fn released(engine: &Engine, context: &Context<'_>, key: &str, agent: Option<&str>) -> Result<Vec<ClaimOut>> {
    let header = Header { agent: agent.map(str::to_owned), ..context.header(Some(format!("{key} is over"))) };
    let ending = ClaimEnding { reason: "task_completed", by: agent.map(str::to_owned), ..ClaimEnding::default() };
    let of_task = |claim: &lukasa_model::claims::HeldClaim| {
        claim.target == key || claim.task_id.as_deref().is_some_and(|task| own_key("task", task) == key)
    };
    let ended = engine.end_claims(&engine.ledger(&context.scope), &header, &ending, &of_task)?;
    let at = engine.clock().now();
    Ok(ended.into_iter().map(|claim| ClaimOut::of(claim, &context.scope).ended(ending.reason, at)).collect())
}

/// Handles the consequences of a finished task: ends claims, reflects on its episodes, and records a decision with its outcome.
/// If one of these fails, the task is finished anyway, and a warning is returned.
fn completed(
    engine: &Engine,
    context: &mut Context<'_>,
    request: &Request,
    agent: Option<String>,
    response: &mut Response,
) -> Result<()> {
    let key = response.task_id.clone();
    response.claims_released = released(engine, context, &key, agent.as_deref())?;
    let branch = request.branch.clone().unwrap_or_default();
    let ask = reflect::ReflectionScope {
        task_id: Some(request.task_id.clone()),
        branch: branch.clone(),
        ..reflect::ReflectionScope::default()
    };
    // The decision is about the task and not one of its episodes: it is recorded once, after the reflection.
    let id = decision_id(&key, response.version);
    if matches!(is_decided(engine, context, &id, &branch), Ok(true)) {
        response.decision_id = Some(id);
        return Ok(());
    }
    match reflect::reflect(engine, context, &ask) {
        Ok(reflected) => response.reflection = Some(reflected),
        Err(e) => response.warnings.push(format!("its episodes could not be reflected on: {e}")),
    }
    match decision(engine, context, request, agent, response, &branch) {
        Ok(id) => response.decision_id = Some(id),
        Err(e) => response.warnings.push(format!("the decision could not be recorded: {e}")),
    }
    response.summary += &format!("; {} ended", count(response.claims_released.len(), "claim"));
    if let Some(reflection) = response.reflection.as_ref().filter(|reflection| reflection.learnings_created > 0) {
        response.summary += &format!(", {} learned", count(reflection.learnings_created, "thing"));
    }
    Ok(())
}

/// The key of the decision that records the end of a version of a task.
fn decision_id(key: &str, version: u32) -> String {
    format!("{}{key}-v{version}", EpisodeKind::Decision.prefix())
}

fn is_decided(engine: &Engine, context: &Context<'_>, id: &str, branch: &str) -> Result<bool> {
    let ledger = engine.ledger(&context.scope);
    let branch = Some(branch.to_owned()).filter(|branch| !branch.is_empty());
    let view = ledger.view(&ViewSpec { branch, ..ViewSpec::default() })?;
    match ledger.find(&view, &Reference::exact(EpisodeKind::Decision.type_name(), id)) {
        Ok(_) => Ok(true),
        Err(error) if error.code == ErrorCode::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn decision(
    engine: &Engine,
    context: &mut Context<'_>,
    request: &Request,
    agent: Option<String>,
    response: &Response,
    branch: &str,
) -> Result<String> {
    let key = &response.task_id;
    let ledger = engine.ledger(&context.scope);
    let view = ledger.view(&ViewSpec::default())?;
    let task = ledger.states_keyed(&view, TASK, std::slice::from_ref(key), VersionFields::Content)?.pop();
    let content = task.and_then(|task| task.statement).map(|s| s.parsed()).transpose()?.unwrap_or_default();
    let title = content.title.clone().unwrap_or_else(|| key.clone());
    let outcome =
        if response.status == TaskStatus::Completed { EpisodeOutcome::Success } else { EpisodeOutcome::Failure };
    let how = if outcome == EpisodeOutcome::Success { "completed" } else { "failed" };
    let words = request.outcome.clone().unwrap_or_else(|| format!("{key} {how}"));
    let targets = content.properties.get("targets").and_then(Value::as_array).cloned().unwrap_or_default();
    let files: BTreeSet<String> = targets
        .iter()
        .filter_map(|target| ClaimTarget::read(target.as_str()?, None).ok().flatten()?.file().map(str::to_owned))
        .collect();
    let mut new = NewEpisode::new(EpisodeKind::Decision, format!("{title}: {words}"));
    new.id = Some(decision_id(key, response.version));
    new.title = Some(title.clone());
    new.outcome = Some(outcome);
    // Its files may have been deleted, or never created.
    new.new = true;
    new.agent.agent_id = agent;
    new.task_id = Some(request.task_id.clone());
    new.mentions = targets.iter().filter_map(|target| target.as_str().map(str::to_owned)).collect();
    for (name, value) in [
        ("title", json!(title)),
        ("rationale", json!(words)),
        ("tradeoffs", json!([])),
        ("affected_files", json!(files)),
    ] {
        new.metadata.insert(name.into(), value);
    }
    Ok(add(engine, context, branch, new)?.episode_id)
}
