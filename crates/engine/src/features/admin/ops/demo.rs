//! `demo`: runs a one-minute example on a temporary store, using the regular operations.

use super::verify;
use crate::features::admin::rendering;
use crate::features::facts::ops::{branch, get, history, import, merge, patch, put, release, types};
use crate::features::graph::ops::impact;
use crate::registry::META;
use crate::registry::{Meta, Op, StoreNeed};
use crate::rendering::ResponseView;
use crate::{Context, Engine};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use lukasa_store::sqlite::Durability;
use lukasa_store::{SqliteStore, private};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

pub struct Demo;

#[derive(Deserialize, JsonSchema)]
pub struct Request {}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub steps: Vec<DemoStep>,
}

/// One step of the example with its result.
#[derive(Serialize, JsonSchema)]
pub struct DemoStep {
    pub says: String,
    /// The equivalent command line.
    pub command: String,
    pub operation: String,
    /// The request of that command.
    pub request: Value,
    /// The operation's response.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub response: Value,
    /// The error, if the operation refused.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub error: Value,
}

impl Op for Demo {
    const META: Meta = Meta {
        name: "demo",
        long: true,
        shown: ResponseView::Alone(rendering::demo),
        needs: StoreNeed::Nothing,
        essential: true,
        answer: &["steps.says", "steps.command"],
        summary: "A one-minute story on a temporary store",
        description: "Facts, a change, a look back in time, a branch, a conflict, a merge, a release diff. Touches \
                      nothing of yours.",
        verb: "demo",
        toolset: "admin",
        examples: &["lukasa demo"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, _: Request) -> Result<Response> {
        let folder = engine.temp_dir.join(format!("lukasa-demo-{}", engine.clock().new_id()));
        private::create_dir_all(&folder).map_err(|e| {
            Error::new(ErrorKind::Unavailable, ErrorCode::FileFailure, format!("`{}`: {e}", folder.display()))
        })?;
        let steps = SqliteStore::open(&folder.join("demo.db"), Arc::clone(engine.clock()), Durability::Rebuildable)
            .and_then(|store| {
                let engine = Engine::new(Arc::new(store), Arc::clone(engine.clock()), engine.temp_dir.clone());
                story(&engine, context)
            });
        let _ = std::fs::remove_dir_all(&folder);
        let steps = steps?;
        Ok(Response { summary: format!("{} steps, every answer computed just now", steps.len()), steps })
    }
}

fn story(engine: &Engine, context: &mut Context<'_>) -> Result<Vec<DemoStep>> {
    let mut story = Story { engine, context, steps: vec![] };
    for name in ["Team", "Service", "Decision"] {
        story.prepare::<types::TypeObject>(json!({"name": name}))?;
    }
    story.prepare::<types::TypeRelationship>(json!({"name": "CALLS"}))?;
    story.step::<types::TypeRelationship>(
        "Types say what may be connected: a service has one owner at a time.",
        "lukasa type relationship OWNS --src-type Team --dst-type Service --one-per-dst",
        json!({"name": "OWNS", "src_type": ["Team"], "dst_type": ["Service"], "one_per_dst": true}),
    )?;
    let facts = json!([
        {"object": {"type": "Team", "key": "payments", "title": "Payments team"}},
        {"object": {"type": "Team", "key": "platform", "title": "Platform team"}},
        {"object": {"type": "Service", "key": "checkout", "title": "Checkout", "properties": {"tier": 1, "port": 8080}}},
        {"object": {"type": "Service", "key": "billing", "title": "Billing", "properties": {"tier": 2, "port": 8081}}},
        {"object": {"type": "Decision", "key": "decision:7", "title": "Card data stays in billing"}},
        {"relationship": {"type": "CALLS", "src": "Service:checkout", "dst": "Service:billing", "confidence": 0.98, "derivation": "import"}},
        {"relationship": {"type": "OWNS", "src": "Team:platform", "dst": "Service:billing"}},
        {"relationship": {"type": "APPLIES_TO", "src": "Decision:decision:7", "dst": "Service:billing"}}
    ]);
    let lines: String = facts.as_array().into_iter().flatten().map(|fact| format!("{fact}\n")).collect();
    story.step_reading::<import::ImportOp>(
        "Facts go in as one batch: all of it or none of it.",
        "lukasa import shop.jsonl",
        json!({"file": "shop.jsonl"}),
        &lines,
    )?;
    story.step::<get::Get>(
        "Ask for one, and see its relationships.",
        "lukasa get billing",
        json!({"ref": "billing"}),
    )?;
    story.step::<impact::Impact>(
        "Before touching it: what would a change reach?",
        "lukasa impact billing",
        json!({"ref": "billing"}),
    )?;
    story.step::<release::ReleaseCreate>(
        "Freeze this moment under a name.",
        "lukasa release create 1.0",
        json!({"name": "1.0"}),
    )?;
    story.step::<patch::Patch>(
        "The world changes. Nothing is overwritten: this is version 2.",
        "lukasa patch billing --set tier=1 --status active",
        json!({"ref": "billing", "set": ["tier=1"], "status": "active"}),
    )?;
    story.step::<get::Get>(
        "Look back: the same question, as of then.",
        "lukasa get billing --as-of release:1.0",
        json!({"ref": "billing", "as_of": "release:1.0"}),
    )?;
    story.step::<history::History>(
        "And who changed what, when.",
        "lukasa history billing",
        json!({"ref": "billing"}),
    )?;
    story.step::<branch::BranchCreate>(
        "A branch stores only what differs; this one is pinned to today's main.",
        "lukasa branch create feature/ports --pinned",
        json!({"name": "feature/ports", "pinned": true}),
    )?;
    story.step::<patch::Patch>(
        "On the branch, billing moves to another port …",
        "lukasa patch billing --set port=9000 --branch feature/ports",
        json!({"ref": "billing", "set": ["port=9000"], "branch": "feature/ports"}),
    )?;
    story.step::<patch::Patch>(
        "… while another client changes the same port on main.",
        "lukasa patch billing --set port=7000",
        json!({"ref": "billing", "set": ["port=7000"]}),
    )?;
    story.step::<merge::Merge>(
        "A dry run shows the conflict, path by path, and writes nothing.",
        "lukasa merge feature/ports --dry-run",
        json!({"source": "feature/ports", "dry_run": true}),
    )?;
    story.step::<patch::Patch>(
        "They agree on 9000 …",
        "lukasa patch billing --set port=9000",
        json!({"ref": "billing", "set": ["port=9000"]}),
    )?;
    story.step::<put::Put>(
        "… the branch also gains a service …",
        "lukasa put Service ledger --title Ledger --branch feature/ports",
        json!({"type": "Service", "key": "ledger", "title": "Ledger", "branch": "feature/ports"}),
    )?;
    story.step::<merge::Merge>(
        "… and the merge goes through.",
        "lukasa merge feature/ports",
        json!({"source": "feature/ports"}),
    )?;
    story.step::<release::ReleaseCreate>(
        "Freeze again, and compare the two releases.",
        "lukasa release create 2.0 --base 1.0",
        json!({"name": "2.0", "base": "1.0"}),
    )?;
    story.step::<release::ReleaseDiff>("", "lukasa release diff 1.0 2.0", json!({"from": "1.0", "to": "2.0"}))?;
    story.step::<verify::Verify>("Every hash, chain and count, computed again.", "lukasa verify", json!({}))?;
    Ok(story.steps)
}

struct Story<'a, 'b> {
    engine: &'a Engine,
    context: &'a mut Context<'b>,
    steps: Vec<DemoStep>,
}

impl Story<'_, '_> {
    /// Runs an operation without showing it as a step.
    fn prepare<O: Op>(&mut self, request: Value) -> Result<()> {
        self.step::<O>("", "", request)?;
        self.steps.pop();
        Ok(())
    }

    fn step<O: Op>(&mut self, says: &str, command: &str, request: Value) -> Result<()> {
        self.step_reading::<O>(says, command, request, "")
    }

    /// `input` is the content of the file that the command names.
    fn step_reading<O: Op>(&mut self, says: &str, command: &str, request: Value, input: &str) -> Result<()> {
        let (mut input, mut progress) = (input.as_bytes(), |_, _| {});
        let mut context = Context {
            author: Some("demo".into()),
            agent: self.context.agent.clone(),
            input: Some(&mut input),
            ..Context::of(Scope::new("local", "demo")?, &mut progress)
        };
        let (response, error) = match self.engine.call(&mut context, O::META.name, request.clone()) {
            Ok(response) => (response, Value::Null),
            Err(e) => (Value::Null, serde_json::to_value(&e).unwrap_or_default()),
        };
        let (says, command, operation) = (says.into(), command.into(), O::META.name.into());
        self.steps.push(DemoStep { says, command, operation, request, response, error });
        Ok(())
    }
}
