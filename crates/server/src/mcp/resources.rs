//! Facts as resources: `lukasa://project/…`.

use crate::request_gate::{Caller, RequestGate};
use lukasa_engine::features::code::ops::symbol_lookup::SymbolLookup;
use lukasa_engine::registry::{self, Op, operations};
use lukasa_engine::{Operation, response_budget};
use lukasa_model::ErrorKind;
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

pub(super) const ROOT: &str = "lukasa://project/";
const JSON: &str = "application/json";
/// Most completions returned.
const COMPLETIONS: usize = 20;

/// The operations that are resources.
fn resources(is_template: bool) -> impl Iterator<Item = (&'static Operation, registry::Resource)> {
    let resource = |operation: &'static Operation| Some((operation, operation.meta.resource?));
    operations().iter().filter_map(resource).filter(move |(_, resource)| resource.field.is_empty() != is_template)
}

pub fn all() -> Vec<Resource> {
    let resource = |(_, own): (&Operation, registry::Resource)| {
        let resource = Resource::new(format!("{ROOT}{}", own.path), own.title);
        resource.with_title(own.title).with_description(own.about).with_mime_type(JSON)
    };
    resources(false).map(resource).collect()
}

pub fn templates() -> Vec<ResourceTemplate> {
    let template = |(_, own): (&Operation, registry::Resource)| {
        let template = ResourceTemplate::new(format!("{ROOT}{}", own.path), own.title);
        template.with_title(own.title).with_description(own.about).with_mime_type(JSON)
    };
    resources(true).map(template).collect()
}

/// The operation and request of a resource URI.
pub fn request(uri: &str) -> Option<(&'static str, Value)> {
    let path = uri.strip_prefix(ROOT)?;
    if let Some((operation, _)) = resources(false).find(|(_, resource)| resource.path == path) {
        return Some((operation.meta.name, json!({})));
    }
    resources(true).find_map(|(operation, resource)| {
        let folder = resource.path.split('{').next()?;
        let name = path.strip_prefix(folder).filter(|name| !name.is_empty())?;
        Some((operation.meta.name, json!({resource.field: decoded(name)?})))
    })
}

pub async fn read(front: &RequestGate, caller: &Caller, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = || ErrorData::resource_not_found(format!("there is nothing at `{uri}`"), Some(json!({"uri": uri})));
    let (address, page) = paged(uri);
    let (operation, request) = request(address).ok_or_else(missing)?;
    let answer = front.call(caller, operation, request, None).await;
    match answer.and_then(|answer| response_budget::written(operation, &answer.value()?, page, "")) {
        Ok(text) => Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(JSON)])),
        Err(error) if error.kind == ErrorKind::NotFound => Err(missing()),
        Err(error) => {
            let data = Some(json!({"errorCode": error.code, "hint": error.hint}));
            Err(ErrorData::internal_error(error.message, data))
        }
    }
}

/// Splits the page number off a URI: `…?page=2`. Question marks in names are percent-encoded.
fn paged(uri: &str) -> (&str, usize) {
    let page = uri.rsplit_once("?page=").and_then(|(address, page)| Some((address, page.parse().ok()?)));
    page.filter(|(_, page)| *page > 0).unwrap_or((uri, 1))
}

/// Symbols that start with the text; none if the lookup fails.
pub async fn begin_with(front: &RequestGate, caller: &Caller, begin: &str) -> Vec<String> {
    if begin.is_empty() {
        return vec![];
    }
    let request = json!({"query": begin, "limit": COMPLETIONS});
    let answer = front.call(caller, SymbolLookup::META.name, request, None).await.and_then(|answer| answer.value());
    let Ok(answer) = answer else { return vec![] };
    let all = answer["symbols"].as_array().or(answer["items"].as_array()).cloned().unwrap_or_default();
    all.iter().filter_map(|symbol| symbol["key"].as_str().map(str::to_owned)).take(COMPLETIONS).collect()
}

/// Decodes percent-encoding. None if the result is not UTF-8.
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
    fn uris_resolve_to_operations() {
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
        assert_eq!((all().len(), templates().len()), (9, 3));
        for (operation, resource) in resources(true) {
            assert!(operation.fields().contains_key(resource.field), "{}", resource.path);
        }
    }
}
