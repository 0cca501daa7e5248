//! The A2A agent card: the server's address, its authentication and its skills.

use super::Site;
use crate::auth::AcceptedCredentials;
use crate::mcp::Toolsets;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::header;
use lukasa_engine::operations;
use serde_json::{Map, Value, json};

/// The protocol of the interface on the card. It is MCP, not a binding of A2A: the card only makes the server
/// discoverable.
const BINDING: &str = "https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http";

pub async fn card(State(site): State<Site>, request: Request) -> Json<Value> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    // A proxy that ends TLS sets this header.
    let scheme = if header("x-forwarded-proto") == Some("https") { "https" } else { "http" };
    let host = header(header::HOST.as_str()).unwrap_or("localhost");
    Json(described(&format!("{scheme}://{host}"), site.door.accepted_credentials()))
}

fn described(at: &str, opens: AcceptedCredentials) -> Value {
    let skills: Vec<Value> = Toolsets::all()
        .tools()
        .iter()
        .map(|tool| {
            json!({"id": tool.name, "name": tool.title, "description": tool.description, "tags": tags(&tool.name),
                "inputModes": ["application/json"], "outputModes": ["application/json"]})
        })
        .collect();
    let (mut schemes, mut required) = (Map::new(), Vec::new());
    let token = json!({"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT"}});
    let key = json!({"apiKeySecurityScheme": {"location": "header", "name": "x-api-key"}});
    for (name, scheme, is_known) in [("token", token, opens.tokens), ("key", key, opens.keys)] {
        if is_known {
            schemes.insert(name.into(), scheme);
            // Alternatives: one of them is enough.
            required.push(json!({"schemes": {name: {"list": []}}}));
        }
    }
    json!({
        "protocolVersion": "1.0",
        "a2aVersion": "1.0",
        "name": "Lukasa",
        "description": "Keeps code, services, documents, decisions and agent memory in one versioned graph, and gives each \
                        task the context that it needs.",
        "version": env!("CARGO_PKG_VERSION"),
        "provider": {"organization": "Lukasa", "url": format!("{at}/")},
        "documentationUrl": format!("{at}/"),
        "mcpEndpoint": "/mcp",
        "supportedInterfaces": [{"url": format!("{at}/mcp"), "protocolBinding": BINDING, "protocolVersion": "1.0"}],
        "capabilities": {"streaming": false, "pushNotifications": false},
        "securitySchemes": schemes,
        "securityRequirements": required,
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": skills
    })
}

/// The tags of a skill, among them its toolset.
fn tags(tool: &str) -> Vec<&'static str> {
    let own = operations().iter().find(|operation| operation.meta.name == tool);
    ["knowledge-graph"].into_iter().chain(own.map(|operation| operation.meta.toolset)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_have_the_tag_of_their_toolset() {
        for (tool, about) in [("episode_add", "memory"), ("agent_claim", "coordination"), ("get_callers", "code")] {
            assert_eq!(tags(tool), ["knowledge-graph", about]);
        }
    }
}
