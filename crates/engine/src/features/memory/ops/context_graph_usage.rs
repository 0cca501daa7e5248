//! `context_graph_usage`: records which tool call used a context graph, and which of its nodes.

use super::build_context_graph::CONTEXT_GRAPH;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::writes::{WriteOut, commit};
use crate::{Context, Engine};
use lukasa_model::batch::{PutObject, PutRelationship, Reference};
use lukasa_model::{Batch, Error, ErrorCode, Result};
use lukasa_store::VersionFields;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The operation `context_graph_usage`.
pub struct ContextGraphUsage;

const TOOL_CALL: &str = "ToolCall";
const INFLUENCED: &str = "INFLUENCED";

/// Purpose of the use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageType {
    /// Its text was part of a prompt.
    #[default]
    PromptInjection,
    /// It restricted the callable tools.
    ToolFilter,
    /// An action was checked against it.
    Validation,
}

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The context graph's id, as returned by `build_context_graph`.
    pub context_graph_id: String,
    /// The client's id of the tool call; generated when left out.
    #[serde(default)]
    pub tool_call_id: Option<String>,
    /// The tool that was called.
    #[serde(default)]
    pub tool: Option<String>,
    /// prompt_injection, tool_filter or validation.
    #[serde(default)]
    pub usage_type: UsageType,
    /// Nodes that were referred to, by their names in the graph.
    #[serde(default)]
    pub nodes_used: Vec<String>,
    /// A decision or episode that resulted, on any branch.
    #[serde(default)]
    pub result: Option<String>,
}

impl Op for ContextGraphUsage {
    const META: Meta = Meta {
        name: "context_graph_usage",
        answer: &["tx", "written", "unchanged"],
        summary: "Record which call a context graph had a part in",
        description: "Links a context graph to a tool call with the nodes that were used, and to the decision or episode that \
                      came of it, so that `trace_decision_lineage` shows what was known when it was made.",
        verb: "context-graph-usage",
        toolset: "memory",
        names: &["context_graph_id", "result"],
        positional: &["context_graph_id", "tool_call_id"],
        examples: &["lukasa context-graph-usage context:0198… call-7 --nodes-used decision:42"],
        ..WRITE
    };
    type Request = Request;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<WriteOut> {
        engine.declare_agent_types(context)?;
        let ledger = engine.ledger(&context.scope);
        let view = ledger.view(&ViewSpec::default())?;
        let graph = ledger.find(&view, &engine.reference(context, &ViewSpec::default(), &request.context_graph_id)?)?;
        if !graph.thing.type_name.eq_ignore_ascii_case(CONTEXT_GRAPH) {
            let message = format!("`{}` is not a context graph that was kept", request.context_graph_id);
            return Err(Error::invalid(ErrorCode::NotAContextGraph, message));
        }
        let kept =
            ledger.states(&view, &[graph.thing.no], VersionFields::Content)?.pop().and_then(|state| state.statement);
        let content = kept.map(|statement| statement.parsed()).transpose()?.unwrap_or_default();
        let shown: Vec<&str> = content
            .properties
            .get("graph")
            .and_then(|graph| graph["nodes"].as_array())
            .map(|nodes| nodes.iter().filter_map(|node| node["node_id"].as_str()).collect())
            .unwrap_or_default();
        if let Some(other) = request.nodes_used.iter().find(|node| !shown.contains(&node.as_str())) {
            return Err(Error::invalid(ErrorCode::NotInTheContextGraph, format!("`{other}` is not a node of it"))
                .hint(format!("it has: {}", shown.iter().take(10).copied().collect::<Vec<_>>().join(", "))));
        }
        let call = request.tool_call_id.unwrap_or_else(|| engine.clock().new_id().to_string());
        let mut put = PutObject::new(TOOL_CALL, &format!("call:{call}")).property("tool_call_id", call.as_str());
        for (name, value) in
            [("tool", request.tool), ("agent_id", context.agent.clone()), ("session_id", context.session.clone())]
        {
            if let Some(value) = value {
                put = put.property(name, value);
            }
        }
        let from = Reference::from(graph.thing.id.to_string().as_str());
        let usage: Value = serde_json::to_value(request.usage_type).map_err(|e| Error::internal(e.to_string()))?;
        let link = |to: Reference| {
            let mut link = PutRelationship::new(INFLUENCED, from.clone(), to);
            link.properties.insert("usage_type".into(), usage.clone());
            link.properties.insert("nodes_used".into(), json!(request.nodes_used));
            link
        };
        let to_call = link(Reference::exact(TOOL_CALL, &format!("call:{call}")));
        let mut batch = Batch { header: context.header(Some("context graph used".into())), ..Batch::on("") }
            .write(put)
            .write(to_call);
        if let Some(result) = &request.result {
            batch = batch.write(link(engine.reference(context, &ViewSpec::default(), result)?));
        }
        commit(engine, context, batch, &format!("{} had a part in call {call}", request.context_graph_id))
    }
}
