//! Versions of the rule that turns a value into canonical text, and a writer for the first version.
//!
//! Content is stored as its canonical text and identified by the hash of that text, so the rule must never change for
//! stored content. Each transaction records the rule it was written under. Contents are compared under the current
//! rule, whichever rule they were written under, so that a new rule alone creates no new versions.

use super::{Hash, canonical, write_string};
use crate::ErrorCode;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::fmt::Write;

/// The rule under which canonical text was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum CanonicalRule {
    /// Keys sorted by bytes. Floats as serde_json printed them: with an exponent from 1e16 on and below 1e-5. Depending
    /// on its release, positive exponents have a plus sign or not.
    #[default]
    First,
    /// RFC 8785: keys sorted by UTF-16 units, floats as ECMAScript prints them. Integers keep all their digits.
    Second,
}

impl CanonicalRule {
    /// The rule for new transactions.
    pub const PRESENT: CanonicalRule = CanonicalRule::Second;

    /// Whether this is the first rule, which is not stored explicitly.
    pub fn is_first(&self) -> bool {
        *self == CanonicalRule::First
    }

    /// Whether the text is canonical under this rule.
    pub fn holds(self, text: &str) -> bool {
        if !depends_on_rule(text) {
            return true;
        }
        let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
        match self {
            CanonicalRule::First => {
                [Plus::Written, Plus::Omitted].iter().any(|plus| canonical_first(&value, *plus) == text)
            }
            CanonicalRule::Second => canonical(&value) == text,
        }
    }
}

impl From<CanonicalRule> for u8 {
    fn from(rule: CanonicalRule) -> u8 {
        match rule {
            CanonicalRule::First => 1,
            CanonicalRule::Second => 2,
        }
    }
}

impl TryFrom<u8> for CanonicalRule {
    type Error = Error;

    fn try_from(number: u8) -> Result<CanonicalRule> {
        match number {
            1 => Ok(CanonicalRule::First),
            2 => Ok(CanonicalRule::Second),
            _ => Err(Error::new(
                crate::ErrorKind::Unsupported,
                ErrorCode::NewerFormat,
                format!("canonical text of rule {number} is not known here"),
            )
            .hint("use the newer Lukasa that wrote it")),
        }
    }
}

/// Converts canonical text of any rule to the current rule.
pub fn present(text: &str) -> Cow<'_, str> {
    match depends_on_rule(text).then(|| serde_json::from_str::<Value>(text)) {
        Some(Ok(value)) => Cow::Owned(canonical(&value)),
        _ => Cow::Borrowed(text),
    }
}

/// Returns the hash of a content under the current rule, from its text and hash under any rule.
pub fn present_hash(text: Option<&str>, hash: Hash) -> Hash {
    match text.map(present) {
        Some(Cow::Owned(text)) => Hash::of(text.as_bytes()),
        _ => hash,
    }
}

/// Whether the rules may write this value differently. A cheap scan of the text for floats with an exponent or a
/// trailing `.0`, and for keys with characters that UTF-8 and UTF-16 sort differently.
fn depends_on_rule(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut late, mut beyond) = (false, false);
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    match bytes[at] {
                        b'\\' => at += 1,
                        0xee | 0xef => late = true,
                        0xf0.. => beyond = true,
                        _ => {}
                    }
                    at += 1;
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let end =
                    bytes[at..].iter().position(|b| matches!(b, b',' | b']' | b'}')).map_or(bytes.len(), |n| at + n);
                let number = &bytes[at..end];
                if number.contains(&b'e') || number.ends_with(b".0") {
                    return true;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    late && beyond
}

/// Whether positive exponents have a plus sign.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plus {
    Written,
    Omitted,
}

fn canonical_first(value: &Value, plus: Plus) -> String {
    let mut out = String::with_capacity(64);
    write_first(value, plus, &mut out);
    out
}

fn write_first(value: &Value, plus: Plus, out: &mut String) {
    match value {
        Value::Number(number) => write_number_first(number, plus, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_first(item, plus, out);
            }
            out.push(']');
        }
        Value::Object(map) => write_map_first(map, plus, out),
        Value::String(text) => write_string(text, out),
        Value::Null | Value::Bool(_) => super::write_canonical(value, out),
    }
}

fn write_map_first(map: &Map<String, Value>, plus: Plus, out: &mut String) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by(|a, b| a.0.cmp(b.0));
    out.push('{');
    for (i, (key, value)) in entries.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(key, out);
        out.push(':');
        write_first(value, plus, out);
    }
    out.push('}');
}

fn write_number_first(number: &Number, plus: Plus, out: &mut String) {
    match number.as_f64().filter(|_| number.is_f64()) {
        // Below 2^53, the first rule wrote every whole float as an integer.
        Some(float) if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => {
            #[allow(clippy::cast_possible_truncation, reason = "a whole float below 2^53 is an integer")]
            let whole = float as i64;
            write!(out, "{whole}").expect("writing to a String cannot fail");
        }
        Some(float) => write_f64_first(float, plus == Plus::Written, out),
        None => write!(out, "{number}").expect("writing to a String cannot fail"),
    }
}

/// Writes a finite float as serde_json 1.0.154 prints it: the shortest digits that parse to the same float, without an
/// exponent from 1e-5 up to 1e16.
pub(super) fn write_f64_first(float: f64, plus: bool, out: &mut String) {
    let mut buffer = ryu_js::Buffer::new();
    let shortest = buffer.format_finite(float);
    // ECMAScript prints negative zero without its sign.
    let sign = if float.is_sign_negative() { "-" } else { "" };
    let text = shortest.strip_prefix('-').unwrap_or(shortest);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let leading = all.bytes().take_while(|b| *b == b'0').count();
    let digits = all.trim_start_matches('0').trim_end_matches('0');
    let count = |digits: usize| i32::try_from(digits).expect("a float has few digits");
    // The exponent of the first nonzero digit.
    let exponent = if digits.is_empty() { 0 } else { count(whole.len()) - 1 - count(leading) + exponent };
    let digits = if digits.is_empty() { "0" } else { digits };
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    out.push_str(sign);
    let written = match exponent {
        0..=15 if count(digits.len()) <= exponent + 1 => {
            write!(out, "{digits}{}.0", zeros(exponent + 1 - count(digits.len())))
        }
        0..=15 => {
            let (before, after) = digits.split_at(exponent.unsigned_abs() as usize + 1);
            write!(out, "{before}.{after}")
        }
        -5..=-1 => write!(out, "0.{}{digits}", zeros(-exponent - 1)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let plus = if exponent > 0 && plus { "+" } else { "" };
            write!(out, "{first}{point}{rest}e{plus}{exponent}")
        }
    };
    written.expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::tests::any_json;
    use proptest::prelude::*;
    use serde_json::json;

    fn first(float: f64) -> String {
        let mut out = String::new();
        write_f64_first(float, true, &mut out);
        out
    }

    #[test]
    fn floats_of_the_first_rule_are_pinned() {
        for (bits, text) in [
            (0x0000_0000_0000_0000_u64, "0.0"),
            (0x8000_0000_0000_0000, "-0.0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992.0"),
            (0x4341_c379_37e0_8000, "1e+16"),
            (0x4415_af1d_78b5_8c40, "1e+20"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x3eb0_c6f7_a0b5_ed8d, "1e-6"),
            (0x3e7a_d7f2_9abc_af48, "1e-7"),
            (0x3ee4_f8b5_88e3_68f1, "0.00001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0xbecb_f647_612f_3696, "-3.3333333333333333e-6"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
            (0x3ff8_0000_0000_0000, "1.5"),
        ] {
            assert_eq!(first(f64::from_bits(bits)), text, "{bits:#018x}");
        }
    }

    #[test]
    fn contents_of_the_first_rule_are_pinned() {
        let value = json!({"\u{10000}": 1, "\u{e000}": [1, 1.0, 1.5, -0.0, 1e300, 1e16, 1e-6], "a": 18_446_744_073_709_551_615_u64});
        let text = canonical_first(&value, Plus::Written);
        assert_eq!(text, "{\"a\":18446744073709551615,\"\u{e000}\":[1,1,1.5,0,1e+300,1e+16,1e-6],\"\u{10000}\":1}");
        assert!(CanonicalRule::First.holds(&text) && !CanonicalRule::Second.holds(&text));
        assert!(CanonicalRule::First.holds(&text.replace("e+", "e")), "exponents as earlier releases printed them");
        assert!(!CanonicalRule::First.holds(&text.replace("1e+16", "10000000000000000.0")));
        let now = present(&text);
        assert_eq!(
            now,
            "{\"a\":18446744073709551615,\"\u{10000}\":1,\"\u{e000}\":[1,1,1.5,0,1e+300,10000000000000000,0.000001]}"
        );
        assert!(CanonicalRule::Second.holds(&now) && matches!(present(&now), Cow::Owned(ref again) if *again == now));
    }

    #[test]
    fn most_texts_are_the_same_under_every_rule() {
        for text in [
            "{}",
            "null",
            r#"{"a":"1e16, \"2.0\"","b":[true,false,null,-12,0.25]}"#,
            "{\"é\u{e000}\":1}",
            "{\"x\":\"\u{1f600}\"}",
        ] {
            assert!(matches!(present(text), Cow::Borrowed(_)), "{text}");
        }
        for text in ["[1e16]", "[1e+16]", "[9007199254740992.0]", "[1e-7,2]", "1e300"] {
            assert!(depends_on_rule(text), "{text}");
        }
    }

    #[test]
    fn an_unknown_rule_is_rejected() {
        assert_eq!(serde_json::to_string(&[CanonicalRule::First, CanonicalRule::Second]).unwrap(), "[1,2]");
        assert!(serde_json::from_str::<CanonicalRule>("3").unwrap_err().to_string().contains("rule 3"));
    }

    proptest! {
        #[test]
        fn contents_of_the_first_rule_convert_to_the_current_rule(value in any_json()) {
            let value: Value = serde_json::from_str(&canonical(&value)).unwrap();
            let old = canonical_first(&value, Plus::Written);
            prop_assert_eq!(present(&old), canonical(&value));
            prop_assert!(CanonicalRule::First.holds(&old));
            prop_assert!(CanonicalRule::Second.holds(&canonical(&value)));
        }

        #[test]
        fn printed_floats_parse_to_the_same_float(bits in any::<u64>()) {
            let float = f64::from_bits(bits);
            prop_assume!(float.is_finite());
            prop_assert_eq!(first(float).parse::<f64>().unwrap().to_bits(), float.to_bits());
        }
    }
}
