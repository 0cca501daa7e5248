//! Canonical JSON, its hash, RFC 6901 pointers and the checks that keep JSON storable.

use crate::error::{Error, Result};
use crate::limits;
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};
use std::fmt;

/// SHA-256, printed as `sha256:…`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(Sha256::digest(bytes).into())
    }

    pub fn parse(text: &str) -> Option<Hash> {
        let hex = text.strip_prefix("sha256:")?;
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        let mut bytes = [0u8; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Hash(bytes))
    }
}

impl Hash {
    /// Its first hex digits, at most 64: 24 of them are enough that no two are the same by chance.
    pub fn digits(&self, digits: usize) -> String {
        let all: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        all[..digits.min(all.len())].to_owned()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Hash::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not a sha256 hash")))
    }
}

/// A hash over what comes by, in order.
#[derive(Default)]
pub struct Hasher(Sha256);

impl Hasher {
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

/// Keys sorted by their bytes, no white space, whole numbers without fraction: equal values, equal text.
pub fn canonical(value: &Value) -> String {
    let mut out = String::with_capacity(64);
    write_canonical(value, &mut out);
    out
}

pub fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => write_map(map, out),
    }
}

pub fn write_map(map: &Map<String, Value>, out: &mut String) {
    // serde_json's map is sorted unless some crate in the build turns `preserve_order` on.
    let mut entries: Vec<_> = map.iter().collect();
    if !entries.is_sorted_by(|a, b| a.0 <= b.0) {
        entries.sort_by(|a, b| a.0.cmp(b.0));
    }
    out.push('{');
    for (i, (key, value)) in entries.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(key, out);
        out.push(':');
        write_canonical(value, out);
    }
    out.push('}');
}

fn write_number(number: &Number, out: &mut String) {
    use fmt::Write;
    let written = match number.as_f64() {
        _ if number.is_i64() || number.is_u64() => write!(out, "{number}"),
        // 2^53: below it every whole float is exactly that integer.
        Some(float) if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => {
            write!(out, "{}", float as i64)
        }
        _ => write!(out, "{number}"),
    };
    written.expect("writing to a String cannot fail");
}

pub fn write_f64(number: f64, out: &mut String) {
    match Number::from_f64(number) {
        Some(number) => write_number(&number, out),
        None => out.push_str("null"),
    }
}

pub fn write_string(text: &str, out: &mut String) {
    use fmt::Write;
    out.push('"');
    let mut rest = 0;
    for (i, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[rest..i]);
        rest = i + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            _ => write!(out, "\\u{byte:04x}").expect("writing to a String cannot fail"),
        }
    }
    out.push_str(&text[rest..]);
    out.push('"');
}

/// Appends one reference token to a JSON Pointer.
pub fn push_pointer(path: &str, token: &str) -> String {
    let mut out = String::with_capacity(path.len() + token.len() + 1);
    out.push_str(path);
    out.push('/');
    for c in token.chars() {
        match c {
            '~' => out.push_str("~0"),
            '/' => out.push_str("~1"),
            c => out.push(c),
        }
    }
    out
}

/// The tokens of a JSON Pointer, unescaped. The empty pointer has none.
pub fn pointer_tokens(path: &str) -> Result<Vec<String>> {
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = path.strip_prefix('/') else {
        return Err(Error::invalid("invalid_pointer", format!("`{path}` is not a JSON Pointer"))
            .hint("paths begin with `/`, for example /properties/owner"));
    };
    Ok(rest.split('/').map(|t| t.replace("~1", "/").replace("~0", "~")).collect())
}

/// Refuses what a store cannot keep faithfully: too deep, or with NUL.
pub fn check(value: &Value) -> Result<()> {
    check_depth(value, limits::JSON_DEPTH)
}

fn check_depth(value: &Value, left: usize) -> Result<()> {
    let nul = || Error::invalid("nul_byte", "the JSON contains a NUL character");
    let deeper = || {
        left.checked_sub(1).ok_or_else(|| {
            Error::too_large("json_too_deep", format!("the JSON is nested deeper than {} levels", limits::JSON_DEPTH))
        })
    };
    match value {
        Value::String(text) if text.contains('\0') => Err(nul()),
        Value::Array(items) => {
            let left = deeper()?;
            items.iter().try_for_each(|item| check_depth(item, left))
        }
        Value::Object(map) => {
            let left = deeper()?;
            map.iter().try_for_each(|(key, item)| {
                if key.contains('\0') {
                    return Err(nul());
                }
                check_depth(item, left)
            })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Any JSON that may be stored, small.
    pub fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-c~/\"\\\\é\n\u{1}]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c~/]{1,2}", inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn canonical_text_is_pinned() {
        let value = json!({"b": [1, 1.0, 1.5, -0.0, 1e300, "é\u{1}\n\"\\/"], "a": {"z": null, "A": true}});
        assert_eq!(
            canonical(&value),
            "{\"a\":{\"A\":true,\"z\":null},\"b\":[1,1,1.5,0,1e+300,\"é\\u0001\\n\\\"\\\\/\"]}"
        );
    }

    #[test]
    fn bombs_and_nul_are_refused() {
        let mut bomb = json!(1);
        for _ in 0..=limits::JSON_DEPTH {
            bomb = json!([bomb]);
        }
        assert_eq!(check(&bomb).unwrap_err().code, "json_too_deep");
        assert_eq!(check(&json!({"a\0": 1})).unwrap_err().code, "nul_byte");
        assert_eq!(check(&json!(["a\0"])).unwrap_err().code, "nul_byte");
    }

    proptest! {
        #[test]
        fn canonical_reads_back_and_is_a_fixed_point(value in any_json()) {
            let text = canonical(&value);
            let back: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(canonical(&back), text);
        }

        #[test]
        fn pointers_read_back(tokens in prop::collection::vec("[a~/01]{0,3}", 0..4)) {
            let path = tokens.iter().fold(String::new(), |p, t| push_pointer(&p, t));
            prop_assert_eq!(pointer_tokens(&path).unwrap(), tokens);
        }
    }
}
