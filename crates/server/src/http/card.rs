//! The agent card of A2A: what this server can do for other agents.

use super::Site;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::header;
use serde_json::{Value, json};

pub async fn card(State(site): State<Site>, request: Request) -> Json<Value> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let skills: Vec<Value> = site
        .toolsets
        .tools()
        .iter()
        .map(|tool| {
            json!({"id": tool.name, "name": tool.title, "description": tool.description, "tags": ["knowledge-graph"],
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
