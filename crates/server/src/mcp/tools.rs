//! Operations as tools: which are listed, what they say of themselves, and how their answers look.

use crate::front::{Caller, Front};
use lukasa_engine::registry::{self, Operation};
use lukasa_engine::{Effect, operations, tool};
use lukasa_model::{Error, Result};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, ProgressNotificationParam, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use tokio::sync::mpsc;

/// Listed when nobody says otherwise; everything else can be found and called by name.
pub const DEFAULT: [&str; 14] = [
    "context_pack",
    "search",
    "semantic_slice",
    "symbol_lookup",
    "code_explain",
    "get_callers",
    "get_callees",
    "impact",
    "graph_query",
    "find_pattern",
    "diff_since",
    "index_directory",
    "put",
    "find_tools",
];

/// Which tools are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolsets {
    /// Beside the default ones, those of these sets; `all` means every one.
    chosen: BTreeSet<String>,
}

impl Toolsets {
    /// Every tool there is.
    pub fn all() -> Toolsets {
        Toolsets { chosen: BTreeSet::from(["all".into()]) }
    }

    /// Reads names of toolsets; refuses those that do not exist.
    pub fn read<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Toolsets> {
        let mut known: BTreeSet<&str> = operations().iter().map(|operation| operation.meta.toolset).collect();
        known.extend(["all", "default"]);
        let chosen: BTreeSet<String> =
            names.into_iter().map(str::trim).filter(|n| !n.is_empty()).map(Into::into).collect();
        match chosen.iter().find(|name| !known.contains(name.as_str())) {
            Some(name) => {
                let known: Vec<&str> = known.into_iter().collect();
                Err(Error::invalid("unknown_toolset", format!("there is no toolset `{name}`"))
                    .hint(format!("toolsets: {}", known.join(", "))))
            }
            None => Ok(Toolsets { chosen }),
        }
    }

    fn lists(&self, operation: &Operation) -> bool {
        let has = |name: &str| self.chosen.contains(name);
        has("all") || has(operation.meta.toolset) || DEFAULT.contains(&operation.meta.name)
    }

    /// In the order of the registry.
    pub fn tools(&self) -> Vec<Tool> {
        TOOLS.iter().filter(|(operation, _)| self.lists(operation)).map(|(_, tool)| tool.clone()).collect()
    }
}

static TOOLS: LazyLock<Vec<(&'static Operation, Tool)>> =
    LazyLock::new(|| operations().iter().map(|operation| (operation, described(operation))).collect());

pub fn tool(name: &str) -> Option<Tool> {
    TOOLS.iter().find(|(operation, _)| operation.meta.name == name).map(|(_, tool)| tool.clone())
}

fn described(operation: &Operation) -> Tool {
    let meta = &operation.meta;
    let annotations = ToolAnnotations::with_title(meta.summary)
        .read_only(meta.effect == Effect::Read)
        .destructive(meta.destructive)
        .idempotent(meta.effect == Effect::Read)
        .open_world(false);
    Tool::new(meta.name, format!("{}. {}", meta.summary, meta.description), object(tool::arguments(operation)))
        .with_title(meta.summary)
        .with_raw_output_schema(object(tool::answers(operation)))
        .with_annotations(annotations)
}

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(map) => Arc::new(map),
        _ => Arc::default(),
    }
}

/// Calls a tool. What an agent can mend is an answer that says so; only tools that do not exist are refused outright.
pub async fn call(
    front: &Front,
    caller: &Caller,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> std::result::Result<CallToolResponse, ErrorData> {
    let Some(operation) = registry::find(&request.name) else {
        return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
    };
    let mut arguments = request.arguments.unwrap_or_default();
    let wish = match tool::wish(operation, &mut arguments) {
        Ok(wish) => wish,
        Err(error) => return Ok(failed(&error, caller, tool::Wish::default())),
    };
    let (tell, told) = mpsc::unbounded_channel();
    let working = front.call(caller, operation.meta.name, Value::Object(arguments), Some(tell));
    let answer = tokio::select! {
        answer = working => answer,
        () = report(told, context) => Err(Error::internal("progress ended before the work")),
        () = context.ct.cancelled() => {
            return Err(ErrorData::invalid_request("the request was cancelled", None));
        }
    };
    let shaped = answer.and_then(|answer| tool::shape(operation, answer.value()?, wish));
    Ok(match shaped {
        Ok(value) => CallToolResult::structured(value).into(),
        Err(error) => failed(&error, caller, wish),
    })
}

fn failed(error: &Error, caller: &Caller, wish: tool::Wish) -> CallToolResponse {
    CallToolResult::structured_error(tool::failure(error, caller.request_id.as_deref(), wish.profile)).into()
}

/// Tells the client how far the work has come, if it asked for that; never ends by itself.
async fn report(mut told: mpsc::UnboundedReceiver<crate::front::Progress>, context: &RequestContext<RoleServer>) {
    let token = context.meta.get_progress_token();
    let mut last = None;
    while let Some(progress) = told.recv().await {
        let Some(token) = token.clone().filter(|_| last != Some(progress.done)) else { continue };
        last = Some(progress.done);
        let mut note = ProgressNotificationParam::new(token, progress.done as f64);
        note.total = progress.of.map(|of| of as f64);
        if context.peer.notify_progress(note).await.is_err() {
            break;
        }
    }
    std::future::pending().await
}
