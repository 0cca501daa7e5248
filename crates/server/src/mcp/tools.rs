//! Operations as tools: which are listed, how they are described, and how their answers are formatted.

use super::listing;
use crate::request_gate::{Caller, RequestGate, unknown};
use lukasa_engine::registry::{self, Operation};
use lukasa_engine::{Effect, operations, response_budget};
use lukasa_model::{Error, ErrorCode, Result};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, ProgressNotificationParam, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, OnceLock};
use tokio::sync::mpsc;

/// The selection of tools to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolsets {
    /// Toolsets to list beside the default tools; `all` selects every tool.
    chosen: BTreeSet<String>,
}

impl Toolsets {
    /// Every tool.
    pub fn all() -> Toolsets {
        Toolsets { chosen: BTreeSet::from(["all".into()]) }
    }

    /// Parses names of toolsets. Unknown names are an error.
    pub fn read<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Toolsets> {
        let mut known: BTreeSet<&str> = operations().iter().map(|operation| operation.meta.toolset).collect();
        known.extend(["all", "default"]);
        let chosen: BTreeSet<String> =
            names.into_iter().map(str::trim).filter(|n| !n.is_empty()).map(Into::into).collect();
        match chosen.iter().find(|name| !known.contains(name.as_str())) {
            Some(name) => {
                let known: Vec<&str> = known.into_iter().collect();
                Err(Error::invalid(ErrorCode::UnknownToolset, format!("there is no toolset `{name}`"))
                    .hint(format!("toolsets: {}", known.join(", "))))
            }
            None => Ok(Toolsets { chosen }),
        }
    }

    /// The tools in registry order: those of chosen toolsets in full, the default ones in brief, and `call_tool` for
    /// the rest.
    pub fn tools(&self) -> Vec<Tool> {
        let has = |name: &str| self.chosen.contains(name);
        let mut tools: Vec<Tool> = Vec::new();
        for described in &*TOOLS {
            if has("all") || has(described.operation.meta.toolset) {
                tools.push(described.whole().clone());
            } else if listing::is_listed(described.operation) {
                tools.push(described.brief().clone());
            }
        }
        if !has("all") {
            tools.push(listing::call_tool());
        }
        tools
    }
}

/// An operation as a tool. Both forms are made on first use: few processes list them all.
struct DescribedTool {
    operation: &'static Operation,
    whole: OnceLock<Tool>,
    brief: OnceLock<Tool>,
}

impl DescribedTool {
    fn whole(&self) -> &Tool {
        self.whole.get_or_init(|| described(self.operation))
    }

    fn brief(&self) -> &Tool {
        self.brief.get_or_init(|| listing::brief(self.operation))
    }
}

static TOOLS: LazyLock<Vec<DescribedTool>> = LazyLock::new(|| {
    let tool = |operation| DescribedTool { operation, whole: OnceLock::new(), brief: OnceLock::new() };
    operations().iter().map(tool).collect()
});

pub fn tool(name: &str) -> Option<Tool> {
    if name == listing::CALL {
        return Some(listing::call_tool());
    }
    TOOLS.iter().find(|tool| tool.operation.meta.name == name).map(|tool| tool.whole().clone())
}

/// The annotations that describe to hosts what a tool does to the graph.
pub fn annotations(operation: &Operation) -> ToolAnnotations {
    let meta = &operation.meta;
    ToolAnnotations::with_title(meta.summary)
        .read_only(meta.effect == Effect::Read)
        .destructive(meta.destructive)
        .idempotent(meta.effect == Effect::Read)
        .open_world(false)
}

fn described(operation: &Operation) -> Tool {
    let meta = &operation.meta;
    Tool::new(
        meta.name,
        format!("{}. {}", meta.summary, meta.description),
        object(response_budget::arguments(operation)),
    )
    .with_title(meta.summary)
    .with_raw_output_schema(object(response_budget::answers(operation)))
    .with_annotations(annotations(operation))
}

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(map) => Arc::new(map),
        _ => Arc::default(),
    }
}

/// Calls a tool. Errors that an agent can correct are returned as results; only an unknown tool is a protocol error.
pub async fn call(
    front: &RequestGate,
    caller: &Caller,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> std::result::Result<CallToolResponse, ErrorData> {
    let (operation, mut arguments) = if request.name == listing::CALL {
        match called(request.arguments.unwrap_or_default()) {
            Ok(called) => called,
            Err(error) => return Ok(failed(&error, caller, response_budget::ResponseOptions::default())),
        }
    } else {
        let operation = registry::find(&request.name);
        let missing = || ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None);
        (operation.ok_or_else(missing)?, request.arguments.unwrap_or_default())
    };
    let options = match response_budget::take_response_options(operation, &mut arguments) {
        Ok(options) => options,
        Err(error) => return Ok(failed(&error, caller, response_budget::ResponseOptions::default())),
    };
    let (send, receive) = mpsc::unbounded_channel();
    let working = front.call(caller, operation.meta.name, Value::Object(arguments), Some(send));
    let answer = tokio::select! {
        answer = working => answer,
        () = report(receive, context) => Err(Error::internal("progress ended before the work")),
        () = context.ct.cancelled() => {
            return Err(ErrorData::invalid_request("the request was cancelled", None));
        }
    };
    let shaped = answer.and_then(|answer| response_budget::fit_response(operation, answer.value()?, options));
    Ok(match shaped {
        Ok(value) => CallToolResult::structured(value).into(),
        Err(error) => failed(&error, caller, options),
    })
}

/// Resolves `call_tool` to the tool that it names. Permissions, effects and the audit record are those of that tool.
fn called(mut given: JsonObject) -> Result<(&'static Operation, JsonObject)> {
    let wrong = |message: String| {
        Error::invalid(ErrorCode::InvalidRequest, message)
            .hint("give `name` and `arguments`, as `find_tools` shows them")
    };
    let name = match given.shift_remove("name") {
        Some(Value::String(name)) => name,
        _ => return Err(wrong("`name` must name the tool to call".into())),
    };
    let arguments = match given.shift_remove("arguments") {
        None | Some(Value::Null) => JsonObject::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(wrong("`arguments` must be an object".into())),
    };
    if let Some(other) = given.keys().next() {
        return Err(wrong(format!(
            "`{}` has no argument `{other}`; those of `{name}` go into `arguments`",
            listing::CALL
        )));
    }
    if name == listing::CALL {
        return Err(wrong(format!("`{}` does not call itself", listing::CALL)));
    }
    let operation = registry::find(&name).ok_or_else(|| unknown(&name))?;
    Ok((operation, arguments))
}

fn failed(error: &Error, caller: &Caller, options: response_budget::ResponseOptions) -> CallToolResponse {
    CallToolResult::structured_error(response_budget::failure(error, caller.request_id.as_deref(), options.profile))
        .into()
}

/// Sends progress notifications if the client asked for them. Never ends on its own.
async fn report(
    mut receive: mpsc::UnboundedReceiver<crate::request_gate::WorkProgress>,
    context: &RequestContext<RoleServer>,
) {
    let token = context.meta.get_progress_token();
    let mut last = None;
    while let Some(progress) = receive.recv().await {
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
