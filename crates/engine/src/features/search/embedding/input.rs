//! The text that is embedded for an object: title, type and its most meaningful properties, without secrets, cut to a limit.

use super::change::in_content;
use crate::convert::to_u32;
use crate::redact::{GONE, looks_random, redact_counted};
use lukasa_model::change::covers;
use lukasa_model::content::Content;
use lukasa_model::json::{Hash, pointer_tokens, push_pointer};
use lukasa_model::{Error, ErrorCode, Result};
use regex::Regex;
use serde_json::Value;

/// Default token limit of one input: what common models accept without truncation.
pub const MAX_TOKENS: usize = 800;
/// Maximum number of properties of an object whose type declares no relevant paths.
const FIELDS: usize = 24;
/// Characters of one value that are read per allowed token; the rest would be cut off anyway.
const LOOK: usize = 16;
/// Minimum length of a cut value; shorter ones have no meaning.
const WORTH_TOKENS: usize = 8;

/// Which values must not be embedded, and the size limit.
#[derive(Clone, Debug)]
pub struct InputRules {
    pub max_tokens: usize,
    secret_names: Regex,
    patterns: Vec<Regex>,
}

impl Default for InputRules {
    fn default() -> Self {
        let names = r"(?i)passw(or)?d|passphrase|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|credential|token$";
        let secret_names = Regex::new(names).expect("the rule is written here");
        InputRules { max_tokens: MAX_TOKENS, secret_names, patterns: vec![] }
    }
}

impl InputRules {
    /// Also redacts what matches these patterns, in property names and values.
    pub fn with_patterns(mut self, patterns: &[String]) -> Result<InputRules> {
        for pattern in patterns {
            let rule = Regex::new(pattern)
                .map_err(|e| Error::invalid(ErrorCode::InvalidPattern, format!("`{pattern}` is not a pattern: {e}")))?;
            self.patterns.push(rule);
        }
        Ok(self)
    }
}

/// The text that is sent to a model for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingInput {
    pub text: String,
    /// Hash of the text; the vector is stored under it.
    pub hash: Hash,
    /// Number of redacted secrets.
    pub redacted: u32,
    /// Number of properties that did not fit.
    pub dropped: usize,
}

/// Builds the input of an object from the relevant paths of its type, otherwise from the properties that usually carry the
/// meaning.
///
/// Numbers, times, hashes and ids are left out unless a relevant path names them: they change with every edit and carry no
/// meaning.
///
/// The text resembles prose, as models were trained on it: the title, then one line per property, with its name unless the
/// property is a text.
pub fn build(key: Option<&str>, content: &Content, relevant: &[String], rules: &InputRules) -> EmbeddingInput {
    let mut redacted = 0;
    let mut fields = Vec::new();
    if !content.labels.is_empty() {
        let labels: Vec<&str> = content.labels.iter().map(String::as_str).collect();
        fields.push(("/labels".to_owned(), labels.join(", ")));
    }
    match relevant {
        [] => fields.extend(salient(content)),
        paths => fields.extend(named(content, paths)),
    }
    let mut left = rules.max_tokens;
    let mut text = String::new();
    // The key is used only when there is no other text.
    let title = content.title.as_deref().or(key.filter(|_| fields.is_empty())).unwrap_or_default();
    let title = plain(title, rules, &mut redacted);
    if !title.is_empty() {
        left = left.saturating_sub(push_line(&mut text, "", cut(&title, left / 2)));
    }
    let mut dropped = 0;
    for (path, value) in fields {
        let value = field(&path, &value, rules, &mut redacted);
        let last = path.rsplit('/').find(|token| token.parse::<usize>().is_err()).unwrap_or_default();
        let is_text = rank(last) < TELLING.len();
        let name = if is_text { String::new() } else { format!("{last}: ") };
        let room = left.saturating_sub(tokens(&name));
        let shown = cut(&value, room);
        // After the first property that does not fit, the rest is less meaningful.
        if dropped > 0 || value.is_empty() || (shown.len() < value.len() && room < WORTH_TOKENS) {
            dropped += usize::from(!value.is_empty());
            continue;
        }
        left = left.saturating_sub(push_line(&mut text, &name, shown));
        dropped += usize::from(shown.len() < value.len());
    }
    EmbeddingInput { hash: Hash::of(text.as_bytes()), text, redacted: to_u32(redacted), dropped }
}

fn push_line(text: &mut String, name: &str, value: &str) -> usize {
    let before = text.len();
    text.push_str(name);
    text.push_str(value);
    text.push('\n');
    tokens(&text[before..])
}

/// Returns the values at the relevant paths of a type, in their order.
fn named(content: &Content, paths: &[String]) -> Vec<(String, String)> {
    let Ok(whole) = serde_json::to_value(content) else { return vec![] };
    let mut found = Vec::new();
    for path in paths.iter().map(|path| in_content(path)) {
        // Title and labels always come first, in whatever order paths are declared.
        if covers("/title", &path) || covers("/labels", &path) {
            continue;
        }
        if let Some(value) = whole.pointer(&path) {
            leaves(value, &path, &mut |path, value| {
                if !value.is_null() {
                    found.push((path.to_owned(), shown(value)));
                }
            });
        }
    }
    found
}

/// Returns the properties that usually carry the meaning, for types without relevant paths.
fn salient(content: &Content) -> Vec<(String, String)> {
    let mut ranked = Vec::new();
    for (name, value) in &content.properties {
        leaves(value, &push_pointer("/properties", name), &mut |path, value| {
            let Value::String(text) = value else { return };
            let last = path.rsplit('/').find(|token| token.parse::<usize>().is_err()).unwrap_or_default();
            if !text.trim().is_empty() && !is_mere_reference(last, text) {
                ranked.push((rank(last) + 16 * path.matches('/').count(), path.to_owned(), text.clone()));
            }
        });
    }
    ranked.sort();
    ranked.truncate(FIELDS);
    ranked.into_iter().map(|(_, path, value)| (path, value)).collect()
}

/// Property names that carry meaning, the most meaningful first.
const TELLING: [&str; 14] = [
    "name",
    "summary",
    "signature",
    "description",
    "doc",
    "docstring",
    "comment",
    "decision",
    "rationale",
    "text",
    "body",
    "content",
    "note",
    "message",
];

fn rank(name: &str) -> usize {
    TELLING.iter().position(|known| known.eq_ignore_ascii_case(name)).unwrap_or(TELLING.len())
}

/// Whether a value is only a reference: an id, a hash, a time.
fn is_mere_reference(name: &str, text: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "id"
        || ["_id", "_hash", "hash", "_at", "uuid", "digest", "checksum"].iter().any(|end| name.ends_with(end))
        || (!text.contains(char::is_whitespace) && looks_random(text))
        || uuid::Uuid::parse_str(text).is_ok()
}

/// Visits every leaf value with its path; a list of texts is one value.
fn leaves(value: &Value, path: &str, each: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(map) => {
            let mut sorted: Vec<_> = map.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            sorted.into_iter().for_each(|(name, inner)| leaves(inner, &push_pointer(path, name), each));
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            each(path, &Value::String(texts.join(", ")));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, inner)| leaves(inner, &format!("{path}/{i}"), each));
        }
        leaf => each(path, leaf),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the value of a property on one line, without secrets.
fn field(path: &str, value: &str, rules: &InputRules, redacted: &mut usize) -> String {
    let names = pointer_tokens(path).unwrap_or_default();
    let secret = |name: &String| rules.secret_names.is_match(name) || rules.patterns.iter().any(|p| p.is_match(name));
    if !value.is_empty() && names.iter().any(secret) {
        *redacted += 1;
        return GONE.to_owned();
    }
    plain(value, rules, redacted)
}

fn plain(text: &str, rules: &InputRules, redacted: &mut usize) -> String {
    let looked_at = beginning(text, rules.max_tokens * LOOK);
    let (without, gone) = redact_counted(looked_at);
    *redacted += gone;
    let mut without = without.into_owned();
    for pattern in &rules.patterns {
        let found = pattern.find_iter(&without).filter(|found| !found.is_empty()).count();
        if found > 0 {
            *redacted += found;
            without = pattern.replace_all(&without, GONE).into_owned();
        }
    }
    without.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cuts a text at the end of a word: a secret that is cut in half is not recognized.
fn beginning(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let end = text.floor_char_boundary(bytes);
    text[..end].rfind(char::is_whitespace).map_or("", |end| &text[..end])
}

/// Estimates how many tokens a model makes of a text: pieces of five letters or digits, every other character by itself.
pub fn tokens(text: &str) -> usize {
    let (mut count, mut run) = (0, 0);
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            count += usize::from(run % 5 == 0);
            run += 1;
        } else {
            run = 0;
            count += usize::from(!c.is_whitespace());
        }
    }
    count
}

/// Returns the longest prefix of a text with at most this many tokens, in whole words if possible.
fn cut(text: &str, most: usize) -> &str {
    let (mut count, mut run, mut word) = (0, 0, 0);
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            word = at;
        }
        if c.is_ascii_alphanumeric() {
            count += usize::from(run % 5 == 0);
            run += 1;
        } else {
            run = 0;
            count += usize::from(!c.is_whitespace());
        }
        if count > most {
            return if word > 0 { text[..word].trim_end() } else { &text[..at] };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn content(value: Value) -> Content {
        serde_json::from_value(value).unwrap()
    }

    fn text(value: Value, relevant: &[&str]) -> String {
        let relevant: Vec<String> = relevant.iter().map(ToString::to_string).collect();
        build(Some("auth"), &content(value), &relevant, &InputRules::default()).text
    }

    #[test]
    fn relevant_paths_in_their_order() {
        let object = json!({"title": "Login", "labels": ["web", "api"], "status": "open",
            "properties": {"owner": "Ann", "size": 3, "deep": {"b": ["x", "y"], "a": 1}, "gone": null}});
        assert_eq!(
            text(object, &["/properties/size", "/deep", "/status", "/title", "/none", "/gone"]),
            "Login\nlabels: api, web\nsize: 3\na: 1\nb: x, y\nstatus: open\n"
        );
    }

    #[test]
    fn without_paths_what_says_most_comes_first() {
        let object = json!({"title": "Login", "status": "open", "properties": {
            "zeta": "last", "summary": "Lets people\n in", "line": 12, "content_hash": "abc", "x_id": "k",
            "commit": "0123456789abcdef0123456789abcdef", "deep": {"doc": "d"}, "name": "login", "empty": " ",
            "ref": "f47ac10b-58cc-4372-a567-0e02b2c3d479"}});
        assert_eq!(text(object, &[]), "Login\nlogin\nLets people in\nzeta: last\nd\n");
        assert_eq!(text(json!({}), &[]), "auth\n", "a key stands for a title");
    }

    #[test]
    fn a_change_that_is_not_significant_leaves_the_input_alone() {
        use crate::features::search::embedding::change::significant;
        use lukasa_model::change::summarise;
        let before = json!({"title": "T", "labels": ["l"], "properties": {"a": "x", "b": "y", "line": 1}});
        for (path, value) in [
            ("/properties/b", json!("z")),
            ("/properties/line", json!(2)),
            ("/properties/a", json!("w")),
            ("/title", json!("U")),
        ] {
            let mut after = before.clone();
            *after.pointer_mut(path).unwrap() = value;
            for relevant in [vec![], vec!["/a".to_owned()]] {
                let change = summarise(Some(&before.to_string()), Some(&after.to_string()), &[]);
                let of = |value: &Value| build(None, &content(value.clone()), &relevant, &InputRules::default()).hash;
                let same = of(&before) == of(&after);
                assert!(same || significant(Some(&change), &relevant), "{path} {relevant:?}");
            }
        }
    }

    #[test]
    fn long_objects_are_cut_from_the_least_salient_on() {
        let long = "word ".repeat(300);
        let object = json!({"title": "T", "properties": {"summary": "short", "doc": long, "name": "n", "zeta": long, "yak": "y"}});
        let input = build(None, &content(object), &[], &InputRules::default());
        assert!(input.text.contains("word") && input.text.contains("short"), "{}", input.text);
        assert!(input.text.contains("yak: y"), "more salient than zeta by name");
        assert!(!input.text.contains("zeta") || tokens(&input.text) <= MAX_TOKENS);
        let huge = json!({"title": "x".repeat(4_000), "properties": {"summary": "word ".repeat(100_000), "zeta": "z"}});
        let input = build(None, &content(huge), &[], &InputRules::default());
        let count = tokens(&input.text);
        assert!((700..=MAX_TOKENS).contains(&count), "{count}");
        assert!(input.text.ends_with("word\n") && input.dropped == 2, "{} {}", input.dropped, input.text);
        let small = InputRules { max_tokens: 12, ..InputRules::default() };
        assert!(tokens(&build(Some("k"), &content(json!({"title": "a b c d e f g"})), &[], &small).text) <= 12);
    }

    #[test]
    fn secrets_are_taken_out_and_counted() {
        let object = json!({"title": "Deploy with AKIAHIDDENHIDDEN0000", "properties": {
            "summary": "run with API_TOKEN=HIDDEN and\npassword = \"HIDDEN\"", "apiKey": "HIDDEN", "db": {"password": "HIDDEN"},
            "text": "a codeword: HIDDEN-7"}});
        let rules = InputRules::default().with_patterns(&["(?i)hidden-[0-9]".into()]).unwrap();
        for relevant in [vec![], vec!["/properties".to_owned()]] {
            let input = build(None, &content(object.clone()), &relevant, &rules);
            assert!(!input.text.contains("HIDDEN"), "{}", input.text);
            assert_eq!((input.redacted, input.text.matches("[redacted]").count()), (6, 6), "{}", input.text);
        }
        // A secret that is cut in the middle is not recognized.
        let far = format!("{}ghp_HIDDENHIDDENHIDDENHIDDEN", " ".repeat(MAX_TOKENS * LOOK - 10));
        let object = json!({"properties": {"summary": far}});
        let input = build(None, &content(object), &[], &InputRules::default());
        assert!(!input.text.contains("ghp_"), "{}", input.text);
        assert_eq!(InputRules::default().with_patterns(&["(".into()]).unwrap_err().code, ErrorCode::InvalidPattern);
    }
}
