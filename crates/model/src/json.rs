//! Canonical JSON (RFC 8785), its hash, RFC 6901 pointers and the checks that keep JSON storable.

pub mod rule;

use crate::ErrorCode;
use crate::error::{Error, Result};
use crate::limits;
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use std::fmt;

/// SHA-256, printed as `sha256:…`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Hashes bytes.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(Sha256::digest(bytes).into())
    }

    /// Parses the printed form; `None` if the text has another form.
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
    /// Returns the first hex digits, at most 64. 24 digits are enough to avoid accidental collisions.
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

/// Computes a hash incrementally.
#[derive(Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Hashes further bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash of all bytes added.
    pub fn finish(self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

/// Canonical JSON as in RFC 8785: keys sorted by their UTF-16 units, no white space, numbers as ECMAScript prints them.
/// Equal values have equal text. Unlike RFC 8785, integers that fit 64 bits keep all digits, also beyond 2^53.
pub fn canonical(value: &Value) -> String {
    let mut out = String::with_capacity(64);
    write_canonical(value, &mut out);
    out
}

/// Appends the text that [`canonical`] returns.
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

/// Like `write_canonical`, for the properties of an object.
pub fn write_map(map: &Map<String, Value>, out: &mut String) {
    let mut entries: Vec<_> = map.iter().collect();
    if !entries.is_sorted_by(|a, b| key_order(a.0, b.0).is_le()) {
        entries.sort_by(|a, b| key_order(a.0, b.0));
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

/// Compares texts by their UTF-16 units. This equals the order of their bytes, except that characters from U+10000 on
/// are encoded as surrogates below U+E000 and therefore sort before U+E000 to U+FFFF.
pub fn key_order(a: &str, b: &str) -> Ordering {
    let place = |byte: u8| if matches!(byte, 0xee | 0xef) { 0x100 + u16::from(byte) } else { u16::from(byte) };
    match a.bytes().zip(b.bytes()).find(|(x, y)| x != y) {
        Some((x, y)) => place(x).cmp(&place(y)),
        None => a.len().cmp(&b.len()),
    }
}

fn write_number(number: &Number, out: &mut String) {
    use fmt::Write;
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => write_f64(float, out),
        None => write!(out, "{number}").expect("writing to a String cannot fail"),
    }
}

/// Appends a float as ECMAScript prints it; `null` if it is not finite.
pub fn write_f64(number: f64, out: &mut String) {
    if number.is_finite() {
        out.push_str(ryu_js::Buffer::new().format_finite(number));
    } else {
        out.push_str("null");
    }
}

/// Formats JSON like serde_json, with floats as release 1.0.154 prints them. Needed for hashes that were stored before
/// canonical text had its own float format.
pub struct FrozenFloats;

impl serde_json::ser::Formatter for FrozenFloats {
    fn write_f64<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, value: f64) -> std::io::Result<()> {
        let mut text = String::new();
        rule::write_f64_first(value, true, &mut text);
        writer.write_all(text.as_bytes())
    }
}

/// Appends a JSON string, escaped as RFC 8785 requires.
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

/// Returns the unescaped tokens of a JSON Pointer. The empty pointer has none.
pub fn pointer_tokens(path: &str) -> Result<Vec<String>> {
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = path.strip_prefix('/') else {
        return Err(Error::invalid(ErrorCode::InvalidPointer, format!("`{path}` is not a JSON Pointer"))
            .hint("paths begin with `/`, for example /properties/owner"));
    };
    Ok(rest.split('/').map(|t| t.replace("~1", "/").replace("~0", "~")).collect())
}

/// Rejects values that a store cannot keep: nested too deeply, or with NUL characters.
pub fn check(value: &Value) -> Result<()> {
    check_depth(value, limits::JSON_DEPTH)
}

/// Rejects text with NUL characters. PostgreSQL cannot store them, and all stores accept the same text.
pub fn check_text(text: &str) -> Result<()> {
    match text.contains('\0') {
        true => Err(Error::invalid(ErrorCode::NulByte, "the text contains a NUL character").hint("leave it out")),
        false => Ok(()),
    }
}

/// Applies `check_text` to every string in a value, including keys. Does not check the depth.
pub fn check_texts(value: &Value) -> Result<()> {
    match value {
        Value::String(text) => check_text(text),
        Value::Array(items) => items.iter().try_for_each(check_texts),
        Value::Object(map) => map.iter().try_for_each(|(name, item)| check_text(name).and_then(|()| check_texts(item))),
        _ => Ok(()),
    }
}

fn check_depth(value: &Value, left: usize) -> Result<()> {
    let deeper = || {
        left.checked_sub(1).ok_or_else(|| {
            Error::too_large(
                ErrorCode::JsonTooDeep,
                format!("the JSON is nested deeper than {} levels", limits::JSON_DEPTH),
            )
        })
    };
    match value {
        Value::String(text) => check_text(text),
        Value::Array(items) => {
            let left = deeper()?;
            items.iter().try_for_each(|item| check_depth(item, left))
        }
        Value::Object(map) => {
            let left = deeper()?;
            map.iter().try_for_each(|(key, item)| {
                check_text(key)?;
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

    /// Generates small JSON values that can be stored.
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

    /// The values of RFC 8785, appendix B, except NaN and infinity.
    #[test]
    fn floats_are_those_of_rfc_8785() {
        for (bits, text) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(canonical(&json!(f64::from_bits(bits))), text, "{bits:#018x}");
        }
        assert_eq!(canonical(&json!(f64::NAN)), "null", "not a number becomes null");
    }

    /// The examples of RFC 8785, sections 3.2.2 and 3.2.3.
    #[test]
    fn values_match_rfc_8785() {
        let given = r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#;
        let want = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
                    \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
        assert_eq!(canonical(&serde_json::from_str(given).unwrap()), want);
        let given = json!({"\u{20ac}": "Euro Sign", "\r": "Carriage Return", "\u{fb33}": "Hebrew Letter Dalet With Dagesh",
            "1": "One", "\u{1f600}": "Emoji: Grinning Face", "\u{80}": "Control", "\u{f6}": "Latin Small Letter O With Diaeresis"});
        let text = canonical(&given);
        let sorted = ["Carriage Return", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"];
        let places: Vec<_> = sorted.iter().map(|name| text.find(name).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
    }

    #[test]
    fn integers_keep_their_digits() {
        for text in ["9007199254740993", "-9223372036854775808", "18446744073709551615"] {
            assert_eq!(canonical(&serde_json::from_str(text).unwrap()), text);
        }
    }

    #[test]
    fn deep_nesting_and_nul_are_rejected() {
        let mut bomb = json!(1);
        for _ in 0..=limits::JSON_DEPTH {
            bomb = json!([bomb]);
        }
        assert_eq!(check(&bomb).unwrap_err().code, ErrorCode::JsonTooDeep);
        assert_eq!(check(&json!({"a\0": 1})).unwrap_err().code, ErrorCode::NulByte);
        assert_eq!(check(&json!(["a\0"])).unwrap_err().code, ErrorCode::NulByte);
    }

    proptest! {
        #[test]
        fn canonical_text_parses_to_the_same_text(value in any_json()) {
            let text = canonical(&value);
            let back: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(canonical(&back), text);
        }

        #[test]
        fn keys_are_in_the_order_of_their_utf16_units(a in "[a-z\u{e000}-\u{10ffff}é]{0,3}", b in "[a-z\u{e000}-\u{10ffff}é]{0,3}") {
            prop_assert_eq!(key_order(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        }

        #[test]
        fn pointers_round_trip(tokens in prop::collection::vec("[a~/01]{0,3}", 0..4)) {
            let path = tokens.iter().fold(String::new(), |p, t| push_pointer(&p, t));
            prop_assert_eq!(pointer_tokens(&path).unwrap(), tokens);
        }
    }
}
