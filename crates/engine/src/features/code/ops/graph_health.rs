//! `graph_health`: reports the contents of the index, its faults, and how far it is behind the files.

use crate::features::code::rendering::index;
use crate::features::code::trees;
use crate::features::code::watch::{WatchState, WatcherHealth};
use crate::features::code::working_tree::WorkingTree;
use crate::registry::META;
use crate::registry::{Meta, Op, Resource};
use crate::rendering::ResponseView;
use crate::{Context, Engine};
use lukasa_code::type_names;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Result, Time, TransactionKind, Tx};
use lukasa_store::VersionFields;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

pub struct GraphHealth;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The working tree to compare with; the current folder when left out.
    #[serde(default = "here")]
    pub path: String,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn here() -> String {
    ".".into()
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Indexed files.
    pub files: usize,
    /// Files by language.
    pub languages: BTreeMap<String, usize>,
    /// Calls written in those files.
    pub calls: u64,
    /// Files that could not be parsed completely.
    pub faults: Vec<String>,
    /// Files that were changed, added or removed since they were indexed; null without a working tree.
    pub pending_changes: Option<usize>,
    /// The last indexing transaction.
    pub last_index: Option<LastIndex>,
    /// Watchers of this project in this process.
    pub watcher_state: WatchState,
    pub watchers: Vec<WatcherOut>,
    pub view: ViewEcho,
}

#[derive(Serialize, JsonSchema)]
pub struct LastIndex {
    pub tx: Tx,
    pub at: Time,
    pub kind: TransactionKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct WatcherOut {
    pub root: String,
    #[serde(flatten)]
    pub health: WatcherHealth,
}

/// Maximum number of transactions searched for the last indexing one.
const RECENT: usize = 1_000;
/// Maximum number of files with faults that are listed.
const FAULTS: usize = 20;

impl Op for GraphHealth {
    const META: Meta = Meta {
        name: "graph_health",
        shown: ResponseView::By(index::health),
        answer: &["files", "pending_changes", "faults", "last_index.at", "watcher_state", "languages"],
        places: &["path"],
        summary: "Show what the index contains and how far it is behind",
        description: "Counts of files and languages, files that could not be parsed completely, how many files on \
                      disk differ from the index, the last indexing transaction with its commit, and the state of the \
                      watchers.",
        verb: "health",
        toolset: "code",
        positional: &["path"],
        examples: &["lukasa health"],
        resource: Some(Resource {
            path: "health",
            title: "Health",
            about: "What the index contains and how far it is behind",
            field: "",
        }),
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let place = WorkingTree::of(Path::new(&request.path), request.view.branch.as_deref()).ok();
        let mut spec = request.view;
        if spec.branch.is_none()
            && spec.as_of.is_none()
            && let Some(place) = &place
        {
            let branch = trees::branch_of_tree(engine, &context.scope, place, false)?.branch;
            spec.branch = ledger.registry()?.branch(&branch).is_ok().then_some(branch);
        }
        let view = ledger.view(&spec)?;
        let (mut languages, mut calls, mut faults, mut files) = (BTreeMap::new(), 0, Vec::new(), 0);
        let mut known = ledger.states_with_prefix(&view, Some(type_names::FILE), "", VersionFields::Content)?;
        ledger.hide(&mut known)?;
        for found in known {
            let Some(statement) = &found.statement else { continue };
            let content = statement.parsed()?;
            files += 1;
            let language = content.properties.get("language").and_then(Value::as_str).unwrap_or("other");
            *languages.entry(language.to_owned()).or_insert(0) += 1;
            calls += content.properties.get("calls").and_then(Value::as_u64).unwrap_or(0);
            if let (Some(fault), true) =
                (content.properties.get("fault").and_then(Value::as_str), faults.len() < FAULTS)
            {
                faults.push(format!("{}: {fault}", found.thing.key.as_deref().unwrap_or_default()));
            }
        }
        let pending_changes = match &place {
            Some(place) => Some(engine.workspace(&context.scope, &place.root)?.pending(&ledger, &view)?),
            None => None,
        };
        let head = view.known;
        let last_index = ledger
            .transactions(head.back(RECENT).next(), head, RECENT)?
            .into_iter()
            .rev()
            .find(|t| {
                t.branch == view.branch
                    && matches!(
                        t.header.kind,
                        TransactionKind::FullRebuild
                            | TransactionKind::IncrementalRebuild
                            | TransactionKind::FileChange
                    )
            })
            .map(|t| LastIndex { tx: t.tx, at: t.recorded_at, kind: t.header.kind, commit: t.header.git_commit });
        let watchers: Vec<WatcherOut> = engine
            .watch_health(&context.scope)
            .into_iter()
            .map(|(root, health)| WatcherOut { root: root.display().to_string(), health })
            .collect();
        let behind = match pending_changes {
            Some(0) => "up to date".to_owned(),
            Some(n) => format!("{n} files behind; run `lukasa index`"),
            None => "no working tree here to compare with".to_owned(),
        };
        Ok(Response {
            summary: format!("{files} files indexed on {}: {behind}", view.branch_name),
            files,
            languages,
            calls,
            faults,
            pending_changes,
            last_index,
            watcher_state: watchers.first().map_or(WatchState::NotStarted, |w| w.health.state),
            watchers,
            view: view.echo(),
        })
    }
}
