//! `trace_decision_lineage`: the causes and consequences of a decision.

use crate::features::memory::lineage::{LineageDirection, LineageStep, trace};
use crate::features::memory::rendering;
use crate::features::search::is_code;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::response_budget::NOTICE;
use crate::responses::count;
use crate::sensitive::is_sensitive;
use crate::view::NodeContents;
use crate::view::ViewGraph;
use crate::view::memories as links;
use crate::view::symbols::Symbols;
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Result, Time};
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The operation `trace_decision_lineage`.
pub struct TraceDecisionLineage;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The decision, or any other fact: `Type:key`, a key alone, or an id.
    pub decision_id: String,
    /// upstream: what led to it; downstream: what came of it; both.
    #[serde(default)]
    pub direction: LineageDirection,
    /// Maximum number of steps, 1 to 8.
    #[serde(default = "depth")]
    #[schemars(range(min = 1, max = 8))]
    pub depth: u32,
    /// Maximum number of facts per direction, 1 to 500.
    #[serde(default)]
    pub limit: Limit<50, 500>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn depth() -> u32 {
    4
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// A notice for titles.
    pub notice: &'static str,
    /// The fact at which the trace begins.
    pub decision: LineageStepOut,
    /// Causes, nearest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Vec<LineageStepOut>>,
    /// Consequences, nearest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downstream: Option<Vec<LineageStepOut>>,
    pub truncated: bool,
    pub view: ViewEcho,
}

/// A cause or consequence.
#[derive(Serialize, JsonSchema)]
pub struct LineageStepOut {
    /// `Type:key`, or its id.
    #[serde(rename = "ref")]
    pub reference: String,
    pub id: Uuid,
    #[serde(rename = "type")]
    pub type_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it became valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Number of steps from the start.
    pub depth: u32,
    /// The relationship by which it was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The fact from which it was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// It has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// Its new name, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<String>,
}

impl Op for TraceDecisionLineage {
    const META: Meta = Meta {
        name: "trace_decision_lineage",
        shown: ResponseView::By(rendering::lineage),
        answer: &[
            "decision.title",
            "decision.ref",
            "upstream.title",
            "upstream.ref",
            "upstream.via",
            "downstream.title",
            "downstream.ref",
            "downstream.via",
        ],
        summary: "What led to a decision, and what came of it",
        description: "Follows relationships that say what comes of what: the session that made it, the episodes before it, \
                      what it was derived from and what it replaced; and the code it concerns, what was learned from it and \
                      what replaced it. Works for episodes, learnings and context graphs too.",
        verb: "lineage",
        toolset: "memory",
        names: &["decision_id"],
        positional: &["decision_id"],
        aliases: &[("ref", "decision_id")],
        examples: &["lukasa lineage decision:42", "lukasa lineage decision:42 --direction downstream"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let look = engine.view_graph(context, &request.view)?;
        let start = look.node(&request.decision_id)?;
        let symbols = Symbols::new(&look);
        let go = |upstream| {
            trace(&look.snapshot, start, upstream, request.depth, request.limit.get(), |node| is_code(&symbols, node))
        };
        let before = (request.direction != LineageDirection::Downstream).then(|| go(true));
        let after = (request.direction != LineageDirection::Upstream).then(|| go(false));
        let all = before.iter().chain(&after).flat_map(|(steps, _)| steps.iter().map(|step| step.node)).chain([start]);
        let read = NodeContents::of(&look, &all.collect::<Vec<Node>>())?;
        let out = |found: &(Vec<LineageStep>, bool)| {
            found.0.iter().map(|step| step_out(&look, &read, step)).collect::<Vec<_>>()
        };
        let truncated = before.iter().chain(&after).any(|(_, more)| *more);
        let (upstream, downstream) = (before.as_ref().map(out), after.as_ref().map(out));
        let mut parts = Vec::new();
        parts.extend(upstream.as_ref().map(|steps| format!("{} led to it", count(steps.len(), "thing"))));
        parts.extend(downstream.as_ref().map(|steps| format!("{} came of it", count(steps.len(), "thing"))));
        let mut summary = format!("{}: {}", look.snapshot.name(start), parts.join(", "));
        if truncated {
            summary += "; there is more than `limit`";
        }
        Ok(Response {
            summary,
            notice: NOTICE,
            decision: thing(&look, &read, start),
            upstream,
            downstream,
            truncated,
            view: look.view.echo(),
        })
    }
}

fn thing(look: &ViewGraph, read: &NodeContents, node: Node) -> LineageStepOut {
    let s = &look.snapshot;
    let content = read.content(node);
    LineageStepOut {
        reference: s.name(node),
        id: s.id(node),
        type_name: s.type_name(node).to_string(),
        subtype: content.and_then(|content| content.subtype.clone()),
        title: content.filter(|content| !is_sensitive(content)).and_then(|content| content.title.clone()),
        since: read.stated(node),
        depth: 0,
        via: None,
        from: None,
        ended: s.is_ended(node),
        renamed_to: links::renamed_to(s, node),
    }
}

fn step_out(look: &ViewGraph, read: &NodeContents, step: &LineageStep) -> LineageStepOut {
    LineageStepOut {
        depth: step.depth,
        via: Some(look.snapshot.edge_type(step.edge).to_string()),
        from: Some(look.snapshot.name(step.from)),
        ..thing(look, read, step.node)
    }
}
