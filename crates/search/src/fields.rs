//! Selects which fields of an object are shown, and how much of each.

use crate::count::count;
use crate::recipes::FIELDS_SHOWN;
use crate::text::Term;
use crate::tokens;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The fields of an object that are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShownFields {
    /// The shown fields, with long texts shortened.
    pub fields: Map<String, Value>,
    /// Fields that were omitted or shortened.
    pub truncated: Vec<String>,
}

/// How informative a field is: whether it matches the query, and whether it is meant to be read.
pub fn salience(name: &str, value: &Value, question: &[Term]) -> f64 {
    let text = match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => return 0.0,
        other => Cow::Owned(other.to_string()),
    };
    let mut contained = vec![false; question.len()];
    tokens::tokens(&text, |word| {
        contained.iter_mut().zip(question).for_each(|(contained, term)| *contained |= term.word == word);
    });
    let covered: f32 =
        contained.iter().zip(question).filter(|(contained, _)| **contained).map(|(_, term)| term.weight).sum();
    let all: f32 = question.iter().map(|term| term.weight).sum();
    let mut named = false;
    tokens::tokens(name, |word| named |= question.iter().any(|term| term.word == word));
    let made_to_be_read = match name {
        "summary" | "title" | "name" => FIELDS_SHOWN.headline,
        "description" | "doc" | "content" | "text" | "signature" | "rationale" => FIELDS_SHOWN.prose,
        "path" | "line" | "end_line" | "language" => FIELDS_SHOWN.place,
        _ if is_technical(name) => FIELDS_SHOWN.technical,
        _ => FIELDS_SHOWN.other,
    };
    f64::from(covered / all.max(f32::MIN_POSITIVE)) + if named { FIELDS_SHOWN.named } else { 0.0 } + made_to_be_read
}

fn is_technical(name: &str) -> bool {
    ["hash", "_hash", "_id", "facts", "bytes"].iter().any(|end| name.ends_with(end))
}

/// Returns the requested fields and the most informative others; long texts are cut after whole sentences.
pub fn prune(properties: &Map<String, Value>, question: &[Term], include: &[String], most: usize) -> ShownFields {
    let mut ranked: Vec<(f64, &String, &Value)> =
        properties.iter().map(|(name, value)| (salience(name, value, question), name, value)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let mut shown = ShownFields::default();
    let mut taken = 0;
    for (salience, name, value) in ranked {
        let asked = include.contains(name);
        if !asked && (taken >= most || salience < 0.0) {
            shown.truncated.push(name.clone());
            continue;
        }
        taken += usize::from(!asked);
        let value = match value {
            Value::String(text) => match begin(text, FIELDS_SHOWN.longest) {
                Some(beginning) => {
                    shown.truncated.push(name.clone());
                    Value::String(beginning)
                }
                None => value.clone(),
            },
            other => other.clone(),
        };
        shown.fields.insert(name.clone(), value);
    }
    shown.truncated.sort();
    shown
}

/// Returns the first whole sentences of a text within `most` tokens, with an ellipsis; `None` if all of it fits.
pub fn begin(text: &str, most: usize) -> Option<String> {
    if text.len() <= most || count(text) <= most {
        return None;
    }
    let mut kept = String::new();
    for sentence in sentences(text) {
        let longer = format!("{kept}{sentence}");
        if count(&longer) > most {
            break;
        }
        kept = longer;
    }
    Some(format!("{}…", kept.trim_end()))
}

/// Splits a text into sentences and lines, each including the white space after it.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (sentence, after) = rest.split_at(sentence_end(rest));
        rest = after;
        Some(sentence)
    })
}

fn sentence_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let next = chars.peek().map(|(_, c)| *c);
        let stops = matches!(c, '.' | '!' | '?') && next.is_some_and(char::is_whitespace);
        if c == '\n' || stops {
            // Includes the spaces after it.
            let spaces = text[end..].len() - text[end..].trim_start_matches([' ', '\t', '\n', '\r']).len();
            return end + spaces;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn salient_fields_are_shown_and_the_others_are_listed() {
        let properties = json!({"summary": "A shop.", "content_hash": "00ff", "note": "opens at nine", "a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6});
        let question = [Term { word: "nine".into(), weight: 1.0 }];
        let shown = prune(properties.as_object().unwrap(), &question, &["f".into()], 3);
        let mut names: Vec<_> = shown.fields.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "f", "note", "summary"]);
        assert_eq!(shown.truncated, ["b", "c", "content_hash", "d", "e"]);
    }

    #[test]
    fn long_texts_are_cut_after_a_sentence() {
        let text = "One sentence. ".repeat(200);
        let short = begin(&text, 20).unwrap();
        assert!(short.ends_with("sentence.…") && count(&short) <= 22, "{short}");
        assert_eq!(begin("short", 20), None);
        assert_eq!(sentences("A b. C d!\nE").collect::<Vec<_>>(), ["A b. ", "C d!\n", "E"]);
    }
}
