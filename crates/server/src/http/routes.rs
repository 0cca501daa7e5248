//! Routes of operations: `POST /v1/{name}` for each, and the further paths that an operation declares.

use super::{RequestId, Site, body, legacy_requests, refusal};
use crate::request_gate::Caller;
use axum::Extension;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter};
use lukasa_engine::registry::fields::{FieldSyntax, fields};
use lukasa_engine::{Operation, OperationAnswer, operations};
use lukasa_model::json::Hash;
use lukasa_model::{Error, ErrorCode, Result};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A method and path of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// In capitals, for example `GET`.
    pub method: &'static str,
    /// With parameters in braces, for example `/tags/{name}`.
    pub path: &'static str,
}

/// The paths that an operation declares, beside `/v1/{name}`.
pub fn named(operation: &Operation) -> Vec<Route> {
    let route = |text: &&'static str| text.split_once(' ').map(|(method, path)| Route { method, path });
    operation.meta.rest.iter().filter_map(route).collect()
}

/// The path that every operation has: `/v1/{name}`.
pub fn own_path(operation: &Operation) -> String {
    format!("/v1/{}", operation.meta.name)
}

/// The parameters in a path.
pub fn parameters(path: &str) -> Vec<&str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect()
}

pub fn all() -> Router<Site> {
    let mut by_path: BTreeMap<String, MethodRouter<Site>> = BTreeMap::new();
    let mut add = |path: String, method: &str, operation: &'static Operation| {
        let filter = match method {
            "GET" => MethodFilter::GET,
            "PUT" => MethodFilter::PUT,
            "PATCH" => MethodFilter::PATCH,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::POST,
        };
        let answer = move |State(site): State<Site>,
                           Extension(caller): Extension<Caller>,
                           Extension(id): Extension<RequestId>,
                           Path(parts): Path<BTreeMap<String, String>>,
                           RawQuery(query): RawQuery,
                           headers: HeaderMap,
                           body: Body| async move {
            let answer = async {
                let body = body::whole(body, site.front.limits().bytes, site.patience.body).await?;
                let tenant = &caller.scope.tenant;
                let asked = Asked { parts, query, body: &body, headers: &headers, tenant };
                answered(&site, &caller, operation, asked).await
            };
            let mut response = match answer.await {
                Ok(response) => response,
                Err(error) => refusal(&error, &id),
            };
            for (name, value) in operation.meta.headers {
                response.headers_mut().insert(*name, HeaderValue::from_static(value));
            }
            response
        };
        let route = by_path.remove(&path).unwrap_or_default();
        by_path.insert(path, route.on(filter, answer));
    };
    for operation in operations() {
        add(own_path(operation), "POST", operation);
        for route in named(operation) {
            add(route.path.to_owned(), route.method, operation);
        }
    }
    by_path.into_iter().fold(Router::new(), |router, (path, route)| router.route(&path, route))
}

/// The parts of an HTTP request that form the request of an operation.
struct Asked<'a> {
    parts: BTreeMap<String, String>,
    query: Option<String>,
    body: &'a [u8],
    headers: &'a HeaderMap,
    /// The caller's tenant.
    tenant: &'a str,
}

async fn answered(site: &Site, caller: &Caller, operation: &'static Operation, asked: Asked<'_>) -> Result<Response> {
    // A request that names another tenant is recorded.
    let request = read(operation, &asked).map_err(|error| site.front.record_denied(caller, operation, error))?;
    let answer = site.front.call(caller, operation.meta.name, request, None).await?;
    let text = answer.text()?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if operation.meta.toolset == "releases" && operation.meta.effect == lukasa_engine::Effect::Read {
        // A release never changes, so a client that has it gets 304.
        let tag = format!("\"{}\"", Hash::of(text.as_bytes()));
        let known = asked.headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        let is_known = known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag || one.trim() == "*"));
        if let Ok(value) = HeaderValue::from_str(&tag) {
            headers.insert(header::ETAG, value);
        }
        if is_known {
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
    }
    Ok((headers, text).into_response())
}

/// The request of an operation from query parameters alone.
pub fn fields_of_query(operation: &Operation, query: Option<&str>) -> Result<Map<String, Value>> {
    let (parts, query) = (BTreeMap::new(), query.map(str::to_owned));
    let asked = Asked { parts, query, body: &[], headers: &HeaderMap::new(), tenant: "" };
    match read(operation, &asked)? {
        Value::Object(request) => Ok(request),
        _ => Ok(Map::new()),
    }
}

/// The response of an answer.
pub fn reading(answer: &OperationAnswer) -> Result<Response> {
    let kind = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, kind)], answer.text()?).into_response())
}

/// The request of an operation from body, query and path. The path takes precedence.
fn read(operation: &Operation, asked: &Asked<'_>) -> Result<Value> {
    let mut request = match asked.body {
        body if body.iter().all(u8::is_ascii_whitespace) => Map::new(),
        body => match serde_json::from_slice::<Value>(body) {
            Ok(Value::Object(map)) => legacy_requests::from_legacy(operation, asked.tenant, map)?,
            Ok(_) => return Err(Error::invalid(ErrorCode::InvalidRequest, "a request is a JSON object")),
            Err(e) => return Err(Error::invalid(ErrorCode::InvalidJson, format!("the body is not JSON: {e}"))),
        },
    };
    let fields = fields(operation);
    let put = |name: &str, text: &str, request: &mut Map<String, Value>| -> Result<()> {
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            return Err(Error::invalid(
                ErrorCode::UnknownField,
                format!("`{}` has no field `{name}`", operation.meta.name),
            )
            .hint(format!("fields: {}", known.join(", "))));
        };
        let value = field.shape.read(name, text)?;
        match (&field.shape, request.get_mut(name)) {
            // A list is given as a repeated parameter.
            (FieldSyntax::Texts, Some(Value::Array(all))) => all.extend(value.as_array().cloned().unwrap_or_default()),
            _ => {
                request.insert(name.to_owned(), value);
            }
        }
        Ok(())
    };
    for pair in asked.query.iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty()) {
        let (name, text) = pair.split_once('=').unwrap_or((pair, "true"));
        let decoded = |text: &str| {
            crate::mcp::decoded(&text.replace('+', " "))
                .ok_or_else(|| Error::invalid(ErrorCode::InvalidArgument, format!("`{text}` is not text")))
        };
        put(&decoded(name)?, &decoded(text)?, &mut request)?;
    }
    for (name, text) in &asked.parts {
        request.remove(name);
        put(name, text, &mut request)?;
    }
    Ok(Value::Object(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_paths_are_fields_of_the_operation() {
        for operation in operations() {
            let fields = operation.fields();
            assert_eq!(named(operation).len(), operation.meta.rest.len(), "{}", operation.meta.name);
            for route in named(operation) {
                for name in parameters(route.path) {
                    assert!(fields.contains_key(name), "{}: {} in {}", operation.meta.name, name, route.path);
                }
            }
        }
        // No two operations share a path and method; axum would panic otherwise.
        let _ = all();
    }
}
