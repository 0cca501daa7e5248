//! Facts as resources: `lukasa://project/…`.

use crate::front::{Caller, Front};
use lukasa_engine::tool;
use lukasa_model::ErrorKind;
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

pub(super) const ROOT: &str = "lukasa://project/";
const JSON: &str = "application/json";
/// Most completions.
const COMPLETIONS: usize = 20;

/// Resources that are always there: path, name, what it is, and the operation that gives it.
const ALL: [(&str, &str, &str, &str); 9] = [
    ("overview", "Overview", "How large the graph is and how it hangs together", "graph_stats"),
    ("health", "Health", "What the index holds and how far it is behind", "graph_health"),
    ("readiness", "Readiness", "How ready search is", "search_readiness"),
    ("branches", "Branches", "Every branch", "branch_list"),
    ("releases", "Releases", "Every release", "release_list"),
    ("log", "Log", "The latest transactions", "log"),
    ("events", "Events", "What happened lately: claims, conflicts, tasks, episodes, transactions", "event_list"),
    ("claims", "Claims", "Who works on what", "coordination_overview"),
    ("tasks", "Tasks", "What is to be done, and how far it is", "progress_query"),
];

/// Resources by name: path, name, what it is, the operation and the field that the name goes into.
const TEMPLATES: [(&str, &str, &str, &str, &str); 3] = [
    ("object/{ref}", "Object", "An object by `Type:key`", "get", "ref"),
    ("symbol/{symbol}", "Symbol", "A symbol or file explained", "code_explain", "ref"),
    ("history/{ref}", "History", "Every version of a thing", "history", "ref"),
];

pub fn all() -> Vec<Resource> {
    let resource = |(path, name, about, _): &(&str, &str, &str, &str)| {
        Resource::new(format!("{ROOT}{path}"), *name).with_title(*name).with_description(*about).with_mime_type(JSON)
    };
    ALL.iter().map(resource).collect()
}

pub fn templates() -> Vec<ResourceTemplate> {
    let template = |(path, name, about, _, _): &(&str, &str, &str, &str, &str)| {
        ResourceTemplate::new(format!("{ROOT}{path}"), *name)
            .with_title(*name)
            .with_description(*about)
            .with_mime_type(JSON)
    };
    TEMPLATES.iter().map(template).collect()
}

/// The operation and request behind an address.
pub fn request(uri: &str) -> Option<(&'static str, Value)> {
    let path = uri.strip_prefix(ROOT)?;
    if let Some((_, _, _, operation)) = ALL.iter().find(|(own, _, _, _)| *own == path) {
        return Some((operation, json!({})));
    }
    TEMPLATES.iter().find_map(|(template, _, _, operation, field)| {
        let folder = template.split('{').next()?;
        let name = path.strip_prefix(folder).filter(|name| !name.is_empty())?;
        Some((*operation, json!({*field: decoded(name)?})))
    })
}

pub async fn read(front: &Front, caller: &Caller, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = || ErrorData::resource_not_found(format!("there is nothing at `{uri}`"), Some(json!({"uri": uri})));
    let (address, page) = paged(uri);
    let (operation, request) = request(address).ok_or_else(missing)?;
    let answer = front.call(caller, operation, request, None).await;
    match answer.and_then(|answer| tool::written(operation, &answer.value()?, page, "")) {
        Ok(text) => Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(JSON)])),
        Err(error) if error.kind == ErrorKind::NotFound => Err(missing()),
        Err(error) => {
            let data = Some(json!({"errorCode": error.code, "hint": error.hint}));
            Err(ErrorData::internal_error(error.message, data))
        }
    }
}

/// An address, and which page of a long answer is meant: `…?page=2`. Names have their question marks encoded.
fn paged(uri: &str) -> (&str, usize) {
    let page = uri.rsplit_once("?page=").and_then(|(address, page)| Some((address, page.parse().ok()?)));
    page.filter(|(_, page)| *page > 0).unwrap_or((uri, 1))
}

/// Symbols that begin so; nothing when they cannot be told.
pub async fn begin_with(front: &Front, caller: &Caller, begin: &str) -> Vec<String> {
    if begin.is_empty() {
        return vec![];
    }
    let request = json!({"query": begin, "limit": COMPLETIONS});
    let answer = front.call(caller, "symbol_lookup", request, None).await.and_then(|answer| answer.value());
    let Ok(answer) = answer else { return vec![] };
    let all = answer["symbols"].as_array().or(answer["items"].as_array()).cloned().unwrap_or_default();
    all.iter().filter_map(|symbol| symbol["key"].as_str().map(str::to_owned)).take(COMPLETIONS).collect()
}

/// Percent-encoding undone; none when that is no text.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let pair = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_to_operations() {
        assert_eq!(request("lukasa://project/branches"), Some(("branch_list", json!({}))));
        let object = request("lukasa://project/object/Function%3Asrc%2Fa.rs%3A%3Amain");
        assert_eq!(object, Some(("get", json!({"ref": "Function:src/a.rs::main"}))));
        for nothing in
            ["lukasa://project/", "lukasa://other/log", "lukasa://project/object/", "lukasa://project/object/%zz"]
        {
            assert_eq!(request(nothing), None, "{nothing}");
        }
        assert_eq!(paged("lukasa://project/log?page=3"), ("lukasa://project/log", 3));
        for whole in ["lukasa://project/log", "lukasa://project/log?page=", "lukasa://project/log?page=0"] {
            assert_eq!(paged(whole), (whole, 1));
        }
        for operation in ALL.iter().map(|a| a.3).chain(TEMPLATES.iter().map(|t| t.3)) {
            assert!(lukasa_engine::registry::find(operation).is_some(), "{operation}");
        }
        for (_, _, _, operation, field) in TEMPLATES {
            assert!(
                lukasa_engine::registry::find(operation).is_some_and(|o| o.fields().contains_key(field)),
                "{operation}"
            );
        }
    }
}
