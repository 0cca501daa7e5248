//! Summary of a request or response without its contents, for the audit record and metrics: flags, numbers, short texts
//! and lengths of lists. Takes microseconds, where serializing the response takes milliseconds.

use crate::convert::to_count;
use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum depth of nested maps that are summarised.
const DEPTH: u8 = 3;
/// Maximum bytes of a text that is kept. Longer texts are contents.
const TEXT_BYTES: usize = 64;
/// Maximum number of texts of a list that are kept.
const TEXTS: usize = 16;
/// Number fields that count items of a response. Other number fields do not count anything.
const COUNTS: [&str; 12] = [
    "total",
    "total_entities",
    "nodes_explored",
    "nodes_returned",
    "edges_returned",
    "objects",
    "relationships",
    "unchanged",
    "indexed",
    "embedded",
    "entries",
    "tx",
];

/// Maximum number of counts of one response that are kept.
const MOST_COUNTS: usize = 16;

/// The summary of one value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RedactedSummary {
    /// The field is missing.
    #[default]
    Absent,
    /// The field is present, but its value is not kept: a long text, or null.
    Omitted,
    Flag(bool),
    Number(f64),
    Text(String),
    /// The length of a list, and the short texts among its first items.
    List(usize, Vec<String>),
    Map(Vec<(String, RedactedSummary)>),
}

impl RedactedSummary {
    /// Summarises a value.
    pub fn of(value: &impl Serialize) -> RedactedSummary {
        // A value that cannot be serialized is reported by the code that serializes it for the client.
        value.serialize(SummaryBuilder { depth: DEPTH }).unwrap_or_default()
    }

    /// The part at a path of field names separated by dots.
    pub fn at(&self, path: &str) -> &RedactedSummary {
        path.split('.').fold(self, |outline, name| match outline {
            RedactedSummary::Map(fields) => {
                fields.iter().find(|(own, _)| own == name).map_or(&ABSENT, |(_, value)| value)
            }
            _ => &ABSENT,
        })
    }

    /// The number at a path; the length if it is a list.
    pub fn number(&self, path: &str) -> Option<f64> {
        match self.at(path) {
            RedactedSummary::Number(number) => Some(*number),
            RedactedSummary::List(length, _) => Some(*length as f64),
            _ => None,
        }
    }

    /// The number at a path, if it is not negative; the length if it is a list.
    pub fn count(&self, path: &str) -> Option<u64> {
        self.number(path).filter(|number| *number >= 0.0).map(to_count)
    }

    pub fn flag(&self, path: &str) -> Option<bool> {
        match self.at(path) {
            RedactedSummary::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        match self.at(path) {
            RedactedSummary::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn texts(&self, path: &str) -> &[String] {
        match self.at(path) {
            RedactedSummary::List(_, texts) => texts,
            _ => &[],
        }
    }

    /// Numbers of items by field: lengths of lists, and number fields that count.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (fields, lists) in [(self, true), (self.at("meta"), false)] {
            let RedactedSummary::Map(fields) = fields else { continue };
            for (name, value) in fields {
                // Some responses have property names beside field names.
                let is_name = name.len() <= 40 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                let count = match value {
                    _ if !is_name || counts.len() == MOST_COUNTS => continue,
                    RedactedSummary::List(length, _) if lists => *length as u64,
                    RedactedSummary::Number(number) if *number >= 0.0 && COUNTS.contains(&name.as_str()) => {
                        to_count(*number)
                    }
                    _ => continue,
                };
                counts.insert(name.clone(), count);
            }
        }
        counts
    }

    /// Whether the response reports that something was left out.
    pub fn truncated(&self) -> bool {
        ["truncated", "meta.truncated", "truncation_notice", "meta.truncation_notice"]
            .iter()
            .any(|path| self.flag(path) == Some(true))
    }
}

static ABSENT: RedactedSummary = RedactedSummary::Absent;

/// A value that cannot be serialized.
#[derive(Debug)]
pub struct SerializeError;

impl fmt::Display for SerializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value cannot be written")
    }
}

impl std::error::Error for SerializeError {}

impl serde::ser::Error for SerializeError {
    fn custom<T: fmt::Display>(_: T) -> SerializeError {
        SerializeError
    }
}

type Seen<T = RedactedSummary> = Result<T, SerializeError>;

/// Builds the summary of a value. At depth 0, maps are summarised as empty.
#[derive(Clone, Copy)]
struct SummaryBuilder {
    depth: u8,
}

struct ListSummary {
    length: usize,
    texts: Vec<String>,
}

struct MapSummary {
    depth: u8,
    fields: Vec<(String, RedactedSummary)>,
    key: String,
}

impl MapSummary {
    fn add<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Seen<()> {
        if self.depth > 0 {
            let value = value.serialize(SummaryBuilder { depth: self.depth - 1 })?;
            self.fields.push((name.to_string(), value));
        }
        Ok(())
    }

    fn done(self) -> RedactedSummary {
        RedactedSummary::Map(self.fields)
    }
}

impl SummaryBuilder {
    fn map(self) -> MapSummary {
        MapSummary { depth: self.depth, fields: Vec::new(), key: String::new() }
    }

    fn list() -> ListSummary {
        ListSummary { length: 0, texts: Vec::new() }
    }
}

impl Serializer for SummaryBuilder {
    type Ok = RedactedSummary;
    type Error = SerializeError;
    type SerializeSeq = ListSummary;
    type SerializeTuple = ListSummary;
    type SerializeTupleStruct = ListSummary;
    type SerializeTupleVariant = ListSummary;
    type SerializeMap = MapSummary;
    type SerializeStruct = MapSummary;
    type SerializeStructVariant = MapSummary;

    fn serialize_bool(self, v: bool) -> Seen {
        Ok(RedactedSummary::Flag(v))
    }
    fn serialize_i8(self, v: i8) -> Seen {
        Ok(RedactedSummary::Number(v.into()))
    }
    fn serialize_i16(self, v: i16) -> Seen {
        Ok(RedactedSummary::Number(v.into()))
    }
    fn serialize_i32(self, v: i32) -> Seen {
        Ok(RedactedSummary::Number(v.into()))
    }
    fn serialize_i64(self, v: i64) -> Seen {
        Ok(RedactedSummary::Number(v as f64))
    }
    fn serialize_u8(self, v: u8) -> Seen {
        Ok(RedactedSummary::Number(v.into()))
    }
    fn serialize_u16(self, v: u16) -> Seen {
        Ok(RedactedSummary::Number(v.into()))
    }
    fn serialize_u32(self, v: u32) -> Seen {
        Ok(RedactedSummary::Number(v.into()))
    }
    fn serialize_u64(self, v: u64) -> Seen {
        Ok(RedactedSummary::Number(v as f64))
    }
    fn serialize_f32(self, v: f32) -> Seen {
        Ok(RedactedSummary::Number(v.into()))
    }
    fn serialize_f64(self, v: f64) -> Seen {
        Ok(RedactedSummary::Number(v))
    }
    fn serialize_char(self, _: char) -> Seen {
        Ok(RedactedSummary::Omitted)
    }
    fn serialize_str(self, v: &str) -> Seen {
        Ok(if v.len() <= TEXT_BYTES { RedactedSummary::Text(v.into()) } else { RedactedSummary::Omitted })
    }
    fn serialize_bytes(self, _: &[u8]) -> Seen {
        Ok(RedactedSummary::Omitted)
    }
    fn serialize_none(self) -> Seen {
        Ok(RedactedSummary::Absent)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Seen {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Seen {
        Ok(RedactedSummary::Absent)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Seen {
        Ok(RedactedSummary::Omitted)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Seen {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Seen {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Seen {
        let mut map = self.map();
        map.add(variant, value)?;
        Ok(map.done())
    }
    fn serialize_seq(self, _: Option<usize>) -> Seen<ListSummary> {
        Ok(SummaryBuilder::list())
    }
    fn serialize_tuple(self, _: usize) -> Seen<ListSummary> {
        Ok(SummaryBuilder::list())
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Seen<ListSummary> {
        Ok(SummaryBuilder::list())
    }
    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Seen<ListSummary> {
        Ok(SummaryBuilder::list())
    }
    fn serialize_map(self, _: Option<usize>) -> Seen<MapSummary> {
        Ok(self.map())
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Seen<MapSummary> {
        Ok(self.map())
    }
    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Seen<MapSummary> {
        Ok(self.map())
    }
}

impl ListSummary {
    fn add<T: Serialize + ?Sized>(&mut self, value: &T) -> Seen<()> {
        // If the first item is not a text, the items are not read.
        if self.length == self.texts.len()
            && self.length < TEXTS
            && let RedactedSummary::Text(text) = value.serialize(SummaryBuilder { depth: 0 })?
        {
            self.texts.push(text);
        }
        self.length += 1;
        Ok(())
    }

    fn done(self) -> RedactedSummary {
        RedactedSummary::List(self.length, self.texts)
    }
}

macro_rules! lists {
    ($($name:ident :: $add:ident),*) => { $(impl $name for ListSummary {
        type Ok = RedactedSummary;
        type Error = SerializeError;
        fn $add<T: Serialize + ?Sized>(&mut self, value: &T) -> Seen<()> {
            self.add(value)
        }
        fn end(self) -> Seen {
            Ok(self.done())
        }
    })* };
}

lists!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

macro_rules! structs {
    ($($name:ident),*) => { $(impl $name for MapSummary {
        type Ok = RedactedSummary;
        type Error = SerializeError;
        fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Seen<()> {
            self.add(key, value)
        }
        fn end(self) -> Seen {
            Ok(self.done())
        }
    })* };
}

structs!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for MapSummary {
    type Ok = RedactedSummary;
    type Error = SerializeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Seen<()> {
        self.key = match key.serialize(SummaryBuilder { depth: 0 })? {
            RedactedSummary::Text(text) => text,
            _ => String::new(),
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Seen<()> {
        let key = std::mem::take(&mut self.key);
        self.add(&key, value)
    }

    fn end(self) -> Seen {
        Ok(self.done())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use serde_json::json;

    #[test]
    fn an_outline_has_counts_flags_and_short_texts_and_no_contents() {
        let answer = json!({
            "summary": "3 hits of something that is described at some length here, so that it cannot be a short name",
            "items": [{"text": "secret"}, {"text": "secret"}],
            "none": [],
            "total": 7,
            "score": 3.5,
            "meta": {"truncated": true, "channels": ["lexical", "vector"], "nodes_returned": 2,
                     "deep": {"deeper": {"deepest": "secret"}}},
        });
        let outline = RedactedSummary::of(&answer);
        let counts: Vec<_> = outline.counts().into_iter().collect();
        let want = [("items", 2), ("nodes_returned", 2), ("none", 0), ("total", 7)];
        assert_eq!(counts, want.map(|(name, count)| (name.to_string(), count)));
        assert!(outline.truncated());
        assert_eq!(outline.texts("meta.channels"), ["lexical", "vector"]);
        assert_eq!((outline.number("score"), outline.text("summary")), (Some(3.5), None));
        assert_eq!(outline.at("meta.nothing.here"), &RedactedSummary::Absent);
        assert!(!format!("{outline:?}").contains("secret"), "{outline:?}");
    }

    #[test]
    fn every_kind_of_value_is_summarised() {
        #[derive(serde::Serialize)]
        enum Any {
            Unit,
            One(u8),
            Two(u8, u8),
            Named { list: (u8, u8, u8) },
        }
        #[derive(serde::Serialize)]
        struct All {
            #[serde(flatten)]
            more: BTreeMap<String, bool>,
            some: Option<i64>,
            none: Option<i64>,
            any: [Any; 1],
            unit: Any,
            one: Any,
            two: Any,
            named: Any,
        }
        let outline = RedactedSummary::of(&All {
            more: [("truncated".to_string(), true)].into(),
            some: Some(-1),
            none: None,
            any: [Any::Unit],
            unit: Any::Unit,
            one: Any::One(4),
            two: Any::Two(1, 2),
            named: Any::Named { list: (1, 2, 3) },
        });
        assert!(outline.truncated());
        assert_eq!((outline.number("some"), outline.number("none")), (Some(-1.0), None));
        assert_eq!((outline.count("some"), outline.count("any"), outline.count("two")), (None, Some(1), Some(2)));
        assert_eq!((outline.text("unit"), outline.number("one.One")), (Some("Unit"), Some(4.0)));
        assert_eq!(outline.number("named.list"), Some(3.0));
    }
}
