//! The Model Context Protocol: operations as tools, facts as resources, common questions as prompts.

mod listing;
mod prompts;
mod resources;
mod subscriptions;
mod tools;

pub use listing::is_listed;
pub(crate) use resources::decoded;
pub use tools::Toolsets;

use crate::http::SESSION;
use crate::owner::Connection;
use crate::request_gate::{Caller, RequestGate};
use crate::trace::TraceParent;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::sync::{Arc, OnceLock};
use subscriptions::Subscriptions;

const INSTRUCTIONS: &str = "Lukasa keeps this project's code, documents, decisions and agent memory in one versioned graph. \
Begin a task with `context_pack`; look for anything with `search`; read exact lines with `semantic_slice`. Claim what you \
change (`agent_claim`), record what you learn (`episode_add`) and decide (`decision_add`), and recall it \
(`episode_recall`). Answers begin with a summary and come in three sizes: profile compact, balanced or debug. \
`find_tools` gives all arguments of a tool and finds further tools; `call_tool` calls those that are not listed.";

/// The MCP server for one client.
#[derive(Clone)]
pub struct McpServer {
    front: RequestGate,
    /// The caller, if the requests do not carry one.
    caller: Option<Caller>,
    toolsets: Toolsets,
    subscriptions: Arc<Subscriptions>,
    /// The client's connection, opened by its first request. Its claims end with it.
    connection: Arc<OnceLock<Connection>>,
}

impl McpServer {
    /// For the client that started this process.
    pub fn of_owner(front: RequestGate, caller: Caller, toolsets: Toolsets) -> McpServer {
        McpServer { front, caller: Some(caller), toolsets, subscriptions: Arc::default(), connection: Arc::default() }
    }

    /// For clients that are authenticated with each request.
    pub fn of_anyone(front: RequestGate, toolsets: Toolsets) -> McpServer {
        McpServer { front, caller: None, toolsets, subscriptions: Arc::default(), connection: Arc::default() }
    }

    /// The caller of a request, with the client's name as its agent if it has none.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let request = context.extensions.get::<axum::http::request::Parts>();
        // A single HTTP request without session is not a connection: its end does not mean that the client has gone.
        let stays = request.is_none_or(|parts| parts.headers.contains_key(SESSION));
        let authenticated = request.and_then(|parts| parts.extensions.get::<Caller>()).cloned();
        let mut caller = authenticated
            .or_else(|| self.caller.clone())
            .ok_or_else(|| ErrorData::internal_error("the caller is unknown", None))?;
        if caller.agent.is_none() {
            let called = context.peer.peer_info().map(|info| info.client_info.name.clone());
            caller.agent = caller.agents.known_as(called.as_deref());
        }
        caller.connection =
            stays.then(|| self.connection.get_or_init(|| self.front.engine_handle().connect()).id().to_owned());
        // A request in a session may belong to another trace than the HTTP request that carries it.
        let own = context.meta.get("traceparent").and_then(|value| TraceParent::parse(value.as_str()?));
        caller.trace = own.or(caller.trace);
        // Created here, so that even a failed request reports its id.
        caller.request_id.get_or_insert_with(crate::request_gate::new_id);
        Ok(caller)
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .build();
        let about = Implementation::new("lukasa", env!("CARGO_PKG_VERSION")).with_title("Lukasa");
        ServerConfig::new(capabilities).with_server_info(about).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.toolsets.tools()))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        tools::tool(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        tools::call(&self.front, &caller, request, &context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::all()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        resources::read(&self.front, &caller, &request.uri).await.map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        self.subscriptions.begin(&self.front, caller, request.uri, context.peer).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.end(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let uris = requested.resource_subscriptions.iter().flatten();
        let accepted: Vec<String> = uris.filter(|uri| subscriptions::can_subscribe(uri)).cloned().collect();
        let mut filter = SubscriptionFilter::new();
        filter.resource_subscriptions = (!accepted.is_empty()).then_some(accepted);
        Some(filter)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = self.caller(context.request_context())?;
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        tokio::select! {
            ended = subscriptions::listen(&self.front, &caller, &uris, context.sink()) => ended,
            () = context.cancelled() => Ok(()),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let caller = self.caller(&context)?;
        prompts::get(&self.front, &caller, request).await.map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let caller = self.caller(&context)?;
        let names = resources::begin_with(&self.front, &caller, &request.argument.value).await;
        let completion = CompletionInfo::new(names).map_err(|e| ErrorData::internal_error(e, None))?;
        Ok(CompleteResult::new(completion))
    }
}
