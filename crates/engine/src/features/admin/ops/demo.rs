//! `demo`: runs a one-minute example on a temporary store, using the regular operations.

use super::verify;
use crate::features::admin::rendering;
use crate::features::facts::ops::{branch, get, history, import, merge, patch, put, release, types};
use crate::features::graph::ops::impact;
use crate::registry::META;
use crate::registry::{Meta, Op, StoreNeed};
use crate::rendering::Shown;
use crate::{Context, Engine};
use lukasa_model::{Error, ErrorKind, Result, Scope};
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
    pub steps: Vec<Step>,
}

/// One step of the example with its result.
#[derive(Serialize, JsonSchema)]
pub struct Step {
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
        shown: Shown::Alone(rendering::demo),
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
        private::create_dir_all(&folder)
            .map_err(|e| Error::new(ErrorKind::Unavailable, "file_failure", format!("`{}`: {e}", folder.display())))?;
        let told = SqliteStore::open(&folder.join("demo.db"), Arc::clone(engine.clock()), Durability::Rebuildable)
            .and_then(|store| {
                let engine = Engine::new(Arc::new(store), Arc::clone(engine.clock()), engine.temp_dir.clone());
                story(&engine, context)
            });
        let _ = std::fs::remove_dir_all(&folder);
        let steps = told?;
        Ok(Response { summary: format!("{} steps, every answer computed just now", steps.len()), steps })
    }
}

fn story(engine: &Engine, context: &mut Context<'_>) -> Result<Vec<Step>> {
    let mut teller = Teller { engine, context, steps: vec![] };
    for name in ["Team", "Service", "Decision"] {
        teller.prepare::<types::Object>(json!({"name": name}))?;
    }
    teller.prepare::<types::Relationship>(json!({"name": "CALLS"}))?;
    teller.tell::<types::Relationship>(
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
    teller.tell_reading::<import::Import>(
        "Facts go in as one batch: all of it or none of it.",
        "lukasa import shop.jsonl",
        json!({"file": "shop.jsonl"}),
        &lines,
    )?;
    teller.tell::<get::Get>(
        "Ask for one, and see what it hangs together with.",
        "lukasa get billing",
        json!({"ref": "billing"}),
    )?;
    teller.tell::<impact::Impact>(
        "Before touching it: what would a change reach?",
        "lukasa impact billing",
        json!({"ref": "billing"}),
    )?;
    teller.tell::<release::Create>(
        "Freeze this moment under a name.",
        "lukasa release create 1.0",
        json!({"name": "1.0"}),
    )?;
    teller.tell::<patch::Patch>(
        "The world changes. Nothing is overwritten: this is version 2.",
        "lukasa patch billing --set tier=1 --status active",
        json!({"ref": "billing", "set": ["tier=1"], "status": "active"}),
    )?;
    teller.tell::<get::Get>(
        "Look back: the same question, as of then.",
        "lukasa get billing --as-of release:1.0",
        json!({"ref": "billing", "as_of": "release:1.0"}),
    )?;
    teller.tell::<history::History>(
        "And who changed what, when.",
        "lukasa history billing",
        json!({"ref": "billing"}),
    )?;
    teller.tell::<branch::Create>(
        "A branch stores only what differs; this one is pinned to today's main.",
        "lukasa branch create feature/ports --pinned",
        json!({"name": "feature/ports", "pinned": true}),
    )?;
    teller.tell::<patch::Patch>(
        "On the branch, billing moves to another port …",
        "lukasa patch billing --set port=9000 --branch feature/ports",
        json!({"ref": "billing", "set": ["port=9000"], "branch": "feature/ports"}),
    )?;
    teller.tell::<patch::Patch>(
        "… while somebody changes the same port on main.",
        "lukasa patch billing --set port=7000",
        json!({"ref": "billing", "set": ["port=7000"]}),
    )?;
    teller.tell::<merge::Merge>(
        "A dry run shows the conflict, path by path, and writes nothing.",
        "lukasa merge feature/ports --dry-run",
        json!({"source": "feature/ports", "dry_run": true}),
    )?;
    teller.tell::<patch::Patch>(
        "They agree on 9000 …",
        "lukasa patch billing --set port=9000",
        json!({"ref": "billing", "set": ["port=9000"]}),
    )?;
    teller.tell::<put::Put>(
        "… the branch also gains a service …",
        "lukasa put Service ledger --title Ledger --branch feature/ports",
        json!({"type": "Service", "key": "ledger", "title": "Ledger", "branch": "feature/ports"}),
    )?;
    teller.tell::<merge::Merge>(
        "… and the merge goes through.",
        "lukasa merge feature/ports",
        json!({"source": "feature/ports"}),
    )?;
    teller.tell::<release::Create>(
        "Freeze again, and compare the two releases.",
        "lukasa release create 2.0 --base 1.0",
        json!({"name": "2.0", "base": "1.0"}),
    )?;
    teller.tell::<release::Diff>("", "lukasa release diff 1.0 2.0", json!({"from": "1.0", "to": "2.0"}))?;
    teller.tell::<verify::Verify>("Every hash, chain and count, computed again.", "lukasa verify", json!({}))?;
    Ok(teller.steps)
}

struct Teller<'a, 'b> {
    engine: &'a Engine,
    context: &'a mut Context<'b>,
    steps: Vec<Step>,
}

impl Teller<'_, '_> {
    /// Runs an operation without showing it as a step.
    fn prepare<O: Op>(&mut self, request: Value) -> Result<()> {
        self.tell::<O>("", "", request)?;
        self.steps.pop();
        Ok(())
    }

    fn tell<O: Op>(&mut self, says: &str, command: &str, request: Value) -> Result<()> {
        self.tell_reading::<O>(says, command, request, "")
    }

    /// `input` is the content of the file that the command names.
    fn tell_reading<O: Op>(&mut self, says: &str, command: &str, request: Value, input: &str) -> Result<()> {
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
        self.steps.push(Step { says, command, operation, request, response, error });
        Ok(())
    }
}
