//! The agent card of A2A: what this server can do for other agents.

use super::Site;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::header;
use lukasa_engine::operations;
use serde_json::{Value, json};

pub async fn card(State(site): State<Site>, request: Request) -> Json<Value> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let skills: Vec<Value> = site
        .toolsets
        .tools()
        .iter()
        .map(|tool| {
            json!({"id": tool.name, "name": tool.title, "description": tool.description, "tags": tags(&tool.name),
                "inputModes": ["application/json"], "outputModes": ["application/json"]})
        })
        .collect();
    Json(json!({
        "protocolVersion": "1.0",
        "name": "Lukasa",
        "description": "Keeps code, services, documents, decisions and agents' doings in one versioned graph, and hands each \
                        task the context it needs.",
        "version": env!("CARGO_PKG_VERSION"),
        "provider": {"organization": "Lukasa", "url": format!("http://{host}/")},
        "url": format!("http://{host}/mcp"),
        "preferredTransport": "HTTP+JSON",
        "supportedInterfaces": [{"url": format!("http://{host}/v1"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": false, "pushNotifications": false},
        "securitySchemes": {"token": {"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT"}}},
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": skills
    }))
}

/// What a skill is about: the set of tools it belongs to.
fn tags(tool: &str) -> Vec<&'static str> {
    let own = operations().iter().find(|operation| operation.meta.name == tool);
    ["knowledge-graph"].into_iter().chain(own.map(|operation| operation.meta.toolset)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_say_what_they_are_about() {
        for (tool, about) in [("episode_add", "memory"), ("agent_claim", "coordination"), ("get_callers", "code")] {
            assert_eq!(tags(tool), ["knowledge-graph", about]);
        }
    }
}
