//! `demo`: a one-minute story on a temporary store, told with the operations themselves.

use super::META;
use crate::registry::{Meta, Op};
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

/// One thing done and what came of it.
#[derive(Serialize, JsonSchema)]
pub struct Step {
    pub says: String,
    /// As one would type it.
    pub command: String,
    pub operation: String,
    /// What that command asks of the operation.
    pub request: Value,
    /// What the operation answered.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub response: Value,
    /// Or why it refused.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub error: Value,
}

impl Op for Demo {
    const META: Meta = Meta {
        name: "demo",
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
        teller.prepare("type_object", json!({"name": name}))?;
    }
    teller.prepare("type_relationship", json!({"name": "CALLS"}))?;
    teller.tell(
        "Types say what may be connected: a service has one owner at a time.",
        "lukasa type relationship OWNS --src-type Team --dst-type Service --one-per-dst",
        "type_relationship",
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
    teller.tell_reading(
        "Facts go in as one batch: all of it or none of it.",
        "lukasa import shop.jsonl",
        "import",
        json!({"file": "shop.jsonl"}),
        &lines,
    )?;
    teller.tell(
        "Ask for one, and see what it hangs together with.",
        "lukasa get billing",
        "get",
        json!({"ref": "billing"}),
    )?;
    teller.tell(
        "Before touching it: what would a change reach?",
        "lukasa impact billing",
        "impact",
        json!({"ref": "billing"}),
    )?;
    teller.tell(
        "Freeze this moment under a name.",
        "lukasa release create 1.0",
        "release_create",
        json!({"name": "1.0"}),
    )?;
    teller.tell(
        "The world changes. Nothing is overwritten: this is version 2.",
        "lukasa patch billing --set tier=1 --status active",
        "patch",
        json!({"ref": "billing", "set": ["tier=1"], "status": "active"}),
    )?;
    teller.tell(
        "Look back: the same question, as of then.",
        "lukasa get billing --as-of release:1.0",
        "get",
        json!({"ref": "billing", "as_of": "release:1.0"}),
    )?;
    teller.tell("And who changed what, when.", "lukasa history billing", "history", json!({"ref": "billing"}))?;
    teller.tell(
        "A branch stores only what differs; this one is pinned to today's main.",
        "lukasa branch create feature/ports --pinned",
        "branch_create",
        json!({"name": "feature/ports", "pinned": true}),
    )?;
    teller.tell(
        "On the branch, billing moves to another port …",
        "lukasa patch billing --set port=9000 --branch feature/ports",
        "patch",
        json!({"ref": "billing", "set": ["port=9000"], "branch": "feature/ports"}),
    )?;
    teller.tell(
        "… while somebody changes the same port on main.",
        "lukasa patch billing --set port=7000",
        "patch",
        json!({"ref": "billing", "set": ["port=7000"]}),
    )?;
    teller.tell(
        "A dry run shows the conflict, path by path, and writes nothing.",
        "lukasa merge feature/ports --dry-run",
        "merge",
        json!({"source": "feature/ports", "dry_run": true}),
    )?;
    teller.tell(
        "They agree on 9000 …",
        "lukasa patch billing --set port=9000",
        "patch",
        json!({"ref": "billing", "set": ["port=9000"]}),
    )?;
    teller.tell(
        "… the branch also gains a service …",
        "lukasa put Service ledger --title Ledger --branch feature/ports",
        "put",
        json!({"type": "Service", "key": "ledger", "title": "Ledger", "branch": "feature/ports"}),
    )?;
    teller.tell(
        "… and the merge goes through.",
        "lukasa merge feature/ports",
        "merge",
        json!({"source": "feature/ports"}),
    )?;
    teller.tell(
        "Freeze again, and compare the two releases.",
        "lukasa release create 2.0 --base 1.0",
        "release_create",
        json!({"name": "2.0", "base": "1.0"}),
    )?;
    teller.tell("", "lukasa release diff 1.0 2.0", "release_diff", json!({"from": "1.0", "to": "2.0"}))?;
    teller.tell("Every hash, chain and count, computed again.", "lukasa verify", "verify", json!({}))?;
    Ok(teller.steps)
}

struct Teller<'a, 'b> {
    engine: &'a Engine,
    context: &'a mut Context<'b>,
    steps: Vec<Step>,
}

impl Teller<'_, '_> {
    /// What need not be told.
    fn prepare(&mut self, operation: &str, request: Value) -> Result<()> {
        self.tell("", "", operation, request)?;
        self.steps.pop();
        Ok(())
    }

    fn tell(&mut self, says: &str, command: &str, operation: &str, request: Value) -> Result<()> {
        self.tell_reading(says, command, operation, request, "")
    }

    /// `input` is what the file holds that the command names.
    fn tell_reading(&mut self, says: &str, command: &str, operation: &str, request: Value, input: &str) -> Result<()> {
        let (mut input, mut progress) = (input.as_bytes(), |_, _| {});
        let mut context = Context {
            author: Some("demo".into()),
            agent: self.context.agent.clone(),
            input: Some(&mut input),
            ..Context::of(Scope::new("local", "demo")?, &mut progress)
        };
        let (response, error) = match self.engine.call(&mut context, operation, request.clone()) {
            Ok(response) => (response, Value::Null),
            Err(e) => (Value::Null, serde_json::to_value(&e).unwrap_or_default()),
        };
        let (says, command, operation) = (says.into(), command.into(), operation.into());
        self.steps.push(Step { says, command, operation, request, response, error });
        Ok(())
    }
}
