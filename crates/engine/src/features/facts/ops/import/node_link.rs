//! Reads node-link JSON as a stream of any size: nodes first, then links.

use lukasa_model::batch::{PutObject, PutRelationship, Reference};
use lukasa_model::content::TEXTS;
use lukasa_model::{Content, Error, ErrorCode, Result, Write};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::io::BufRead;

type Take<'a> = dyn FnMut(String, Write) -> Result<()> + 'a;

/// Calls `take` with every node and link and its place in the input.
pub fn read(input: &mut dyn BufRead, take: &mut Take<'_>) -> Result<()> {
    let mut failed = None;
    let mut reader = serde_json::Deserializer::from_reader(input);
    let parsed = reader.deserialize_map(Graph { take, failed: &mut failed });
    if let Some(error) = failed {
        return Err(error);
    }
    parsed.and_then(|()| reader.end()).map_err(|e| {
        Error::invalid(ErrorCode::MalformedGraph, format!("not node-link JSON: {e}"))
            .hint("it looks like {\"nodes\": [{\"id\": …}], \"links\": [{\"source\": …, \"target\": …}]}")
    })
}

struct Graph<'a, 'b> {
    take: &'a mut Take<'b>,
    failed: &'a mut Option<Error>,
}

impl<'de> Visitor<'de> for Graph<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node-link graph")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let write: fn(Map<String, Value>) -> Result<Write> = match name.as_str() {
                "nodes" => node,
                "links" | "edges" => link,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            map.next_value_seed(List { name: &name, write, take: self.take, failed: self.failed })?;
        }
        Ok(())
    }
}

struct List<'a, 'b> {
    name: &'a str,
    write: fn(Map<String, Value>) -> Result<Write>,
    take: &'a mut Take<'b>,
    failed: &'a mut Option<Error>,
}

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(item) = seq.next_element::<Map<String, Value>>()? {
            let place = format!("{}[{index}]", self.name);
            let done = (self.write)(item).map_err(|e| e.at(&place)).and_then(|write| (self.take)(place.clone(), write));
            if let Err(error) = done {
                *self.failed = Some(error);
                return Err(serde::de::Error::custom("stopped"));
            }
            index += 1;
        }
        Ok(())
    }
}

/// Removes and returns a text field. Numbers become text, because networkx may number its nodes.
fn text(item: &mut Map<String, Value>, name: &str) -> Option<String> {
    match item.remove(name)? {
        Value::String(text) => Some(text),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

fn number(item: &mut Map<String, Value>, name: &str) -> Option<f64> {
    let number = item.get(name).and_then(Value::as_f64)?;
    item.remove(name);
    Some(number)
}

/// Fields that Lukasa does not have become properties.
fn properties(mut item: Map<String, Value>) -> Map<String, Value> {
    match item.remove("properties") {
        Some(Value::Object(own)) => item.extend(own),
        Some(other) => drop(item.insert("properties".into(), other)),
        None => {}
    }
    item
}

fn labels(item: &mut Map<String, Value>) -> std::collections::BTreeSet<String> {
    match item.remove("labels") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Default::default(),
    }
}

/// Everything that is left of an item after its identity.
fn content(mut item: Map<String, Value>, relationship: bool) -> Content {
    let mut content = Content {
        labels: labels(&mut item),
        evidence: item.remove("evidence").unwrap_or_default(),
        ..Content::default()
    };
    // For an object, the fields of relationships are properties.
    let own = content.texts_mut().filter(|(name, _)| relationship || TEXTS.contains(name));
    own.for_each(|(name, field)| *field = text(&mut item, name));
    if relationship {
        content.weight = number(&mut item, "weight");
        content.confidence = number(&mut item, "confidence");
    }
    content.properties = properties(item);
    content
}

fn node(mut item: Map<String, Value>) -> Result<Write> {
    let (id, key) = (text(&mut item, "id"), text(&mut item, "key"));
    let type_name = text(&mut item, "type").unwrap_or_else(|| "Node".into());
    let id =
        id.or_else(|| key.clone()).ok_or_else(|| Error::invalid(ErrorCode::MalformedGraph, "a node without `id`"))?;
    // An object without a key is identified by its UUID.
    let uuid = uuid::Uuid::try_parse(&id).ok().filter(|_| key.is_none());
    let key = if uuid.is_some() { None } else { Some(key.unwrap_or(id)) };
    Ok(PutObject { type_name, key, id: uuid, ..PutObject::default() }.with_content(content(item, false)).into())
}

fn link(mut item: Map<String, Value>) -> Result<Write> {
    let mut end = |name: &str| {
        let text = text(&mut item, name);
        text.ok_or_else(|| Error::invalid(ErrorCode::MalformedGraph, format!("a link without `{name}`")))
    };
    let (src, dst) = (end("source")?, end("target")?);
    Ok(PutRelationship {
        type_name: text(&mut item, "type").unwrap_or_else(|| "RELATES_TO".into()),
        src: Reference::from(src.as_str()),
        dst: Reference::from(dst.as_str()),
        discriminator: text(&mut item, "discriminator").or_else(|| text(&mut item, "key")).unwrap_or_default(),
        ..PutRelationship::default()
    }
    .with_content(content(item, true))
    .into())
}
