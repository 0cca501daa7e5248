//! For any file: the new member is added, everything else stays, and removing the member restores the file.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use super::*;
use proptest::prelude::*;
use serde_json::json;

const PATH: [&str; 2] = ["servers", "lukasa"];

fn entry() -> NewValue<'static> {
    NewValue::Object(vec![("command", NewValue::Plain(json!("lukasa"))), ("args", NewValue::Plain(json!(["mcp"])))])
}

/// Sets the entry, compares, removes it again, compares.
fn check(before: &str, after: &str) {
    let set = set(before, &PATH, &entry()).unwrap();
    assert_eq!(set, after);
    assert_eq!(remove(&set, &PATH).unwrap().unwrap(), before);
}

#[test]
fn a_file_keeps_its_layout() {
    check(
        "{}",
        "{\n  \"servers\": {\n    \"lukasa\": {\n      \"command\": \"lukasa\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}",
    );
    check(
        "{\n\t\"servers\": {\n\t\t\"x\": {} // mine\n\t},\n\t\"y\": 1\n}\n",
        "{\n\t\"servers\": {\n\t\t\"x\": {}, // mine\n\t\t\"lukasa\": {\n\t\t\t\"command\": \"lukasa\",\n\t\t\t\"args\": \
         [\"mcp\"]\n\t\t}\n\t},\n\t\"y\": 1\n}\n",
    );
    check(r#"{"servers":{"x":{}}}"#, r#"{"servers":{"x":{}, "lukasa": {"command": "lukasa", "args": ["mcp"]}}}"#);
    check(
        "// settings\r\n{\r\n    \"theme\": \"dark\", /* really\r\n dark */\r\n}",
        "// settings\r\n{\r\n    \"theme\": \"dark\", /* really\r\n dark */\r\n    \"servers\": {\r\n        \"lukasa\": {\r\n\
         \x20           \"command\": \"lukasa\",\r\n            \"args\": [\"mcp\"]\r\n        }\r\n    },\r\n}",
    );
}

#[test]
fn a_member_is_replaced_in_place() {
    let before = "{\"servers\": {\"lukasa\": {\"command\": \"old\", /* why */ \"env\": {}}}}";
    let after = set(before, &["servers", "lukasa", "command"], &NewValue::Plain(json!("new"))).unwrap();
    assert_eq!(after, before.replace("old", "new"));
}

#[test]
fn other_comments_stay_when_the_entry_is_removed() {
    let text = "{\n  \"servers\": {\n    // above\n    \"lukasa\": {}, // beside\n    // below\n    \"x\": 1\n  }\n}";
    let left = remove(text, &PATH).unwrap().unwrap();
    for kept in ["// above", "// beside", "// below", "\"x\": 1"] {
        assert!(left.contains(kept), "{left}");
    }
    assert_eq!(read(&left).unwrap(), json!({"servers": {"x": 1}}));
    // The rest of the line does not end up in a comment.
    let text = "{\"servers\": {\n  \"x\": 1, // one\n  \"lukasa\": {} }}";
    assert_eq!(remove(text, &PATH).unwrap().unwrap(), "{\"servers\": {\n  \"x\": 1 // one\n }}");
    assert_eq!(remove("{\"servers\": {}}", &PATH).unwrap(), None);
    assert_eq!(remove("", &PATH).unwrap(), None);
}

#[test]
fn faults_name_the_line() {
    for (text, fault) in [
        ("{\"a\": 1", "line 1: unterminated object"),
        ("{\n\"a\": 1 \"b\": 2}", "line 2: expected comma"),
        ("{\n\n\"a\" 1}", "line 3: expected colon after the string or word in object property"),
        ("{\"a\": }", "line 1: unexpected close brace"),
        ("{\"a\": [1 2]}", "line 1: expected comma"),
        ("{\"a\": [1", "line 1: unterminated array"),
        ("{\"a\": 'b'}", "line 1: single-quoted strings are not allowed"),
        ("{\"a\": \"b\n\"}", "line 1: a value contains something that JSON does not allow"),
        ("{} /* ", "line 1: unterminated comment block"),
        ("{} /*/ ", "line 1: unterminated comment block"),
        ("{}\n{}", "line 2: text cannot contain more than one JSON value"),
        ("{\"servers\": {}, \"servers\": {}}", "`servers` occurs twice"),
        ("{\"servers\": []}", "the parent of `lukasa` is not an object"),
        ("[]", "the parent of `servers` is not an object"),
        ("// only words", "it contains only comments"),
    ] {
        assert_eq!(set(text, &PATH, &entry()).unwrap_err(), fault, "{text}");
    }
    assert!(read(&"[".repeat(100_000)).unwrap_err().contains("nesting depth"));
}

#[test]
fn bare_is_an_empty_object_and_nothing_else() {
    assert!(is_bare("") && is_bare(" {\n} \n"));
    assert!(!is_bare("{} // kept") && !is_bare("{\"a\": 1}") && !is_bare("[]") && !is_bare("{"));
}

/// White space and comments, some of which look like JSON.
fn trivia() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        4 => Just(""),
        3 => Just(" "),
        3 => Just("\n"),
        2 => Just("\n    "),
        1 => Just("\t"),
        1 => Just(" // it's \"{\n"),
        1 => Just("/* }, */"),
        1 => Just("/* ü\n */ "),
    ];
    prop::collection::vec(one, 0..3).prop_map(|parts| parts.concat())
}

fn leaf() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        Just("-1.5e3".to_owned()),
        Just("true".to_owned()),
        Just("\"a\\\"}//ß\"".into())
    ]
}

fn json_text() -> impl Strategy<Value = String> {
    leaf().prop_recursive(3, 24, 4, |inner| prop_oneof![object(&["a", "b", "c"], inner.clone()), list(inner)])
}

fn list(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let part = (trivia(), inner, trivia()).prop_map(|(a, value, b)| format!("{a}{value}{b}"));
    prop::collection::vec(part, 0..3).prop_map(|parts| format!("[{}]", parts.join(",")))
}

/// An object with some of the keys in any order, with or without a trailing comma.
fn object(keys: &[&'static str], inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let some = prop::sample::subsequence(keys.to_vec(), 0..=keys.len()).prop_shuffle();
    let parts = prop::collection::vec((trivia(), trivia(), trivia(), inner, trivia()), keys.len());
    (some, parts, trivia(), any::<bool>()).prop_map(|(keys, parts, end, comma)| {
        let members: Vec<_> =
            keys.iter().zip(parts).map(|(key, (a, b, c, value, d))| format!("{a}\"{key}\"{b}:{c}{value}{d}")).collect();
        let comma = if comma && !members.is_empty() { "," } else { "" };
        format!("{{{}{comma}{end}}}", members.join(","))
    })
}

fn document() -> impl Strategy<Value = String> {
    let servers = prop_oneof![3 => object(&["x", "y"], json_text()), 1 => leaf()];
    let root = (object(&["a", "b"], json_text()), trivia(), servers, any::<bool>(), any::<bool>());
    let root = root.prop_map(|(object, space, servers, has, first)| {
        let member = format!("\"servers\":{space}{servers}");
        let inside = &object[1..object.len() - 1];
        let inside = match (has, inside.contains('"'), first) {
            (false, ..) => inside.to_owned(),
            (true, _, true) => format!("{member},{inside}"),
            (true, false, false) => format!("{inside}{member}"),
            (true, true, false) => format!("{member} ,{inside}"),
        };
        format!("{{{inside}}}")
    });
    (trivia(), root, trivia(), any::<bool>()).prop_map(|(a, root, b, crlf)| {
        let text = format!("{a}{root}{b}");
        if crlf { text.replace('\n', "\r\n") } else { text }
    })
}

/// Whether `text` is a subsequence of `longer`.
fn is_within(text: &str, longer: &str) -> bool {
    let mut all = longer.chars();
    text.chars().all(|c| all.any(|other| other == c))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn removing_undoes_setting(text in document()) {
        let before = parse::document(&text).unwrap();
        let root = before.root.as_ref().unwrap();
        let servers = member(root, "servers").unwrap();
        if servers.is_some_and(|servers| !matches!(servers.value.kind, JsonKind::Object(_))) {
            prop_assert!(set(&text, &PATH, &entry()).is_err());
            return Ok(());
        }
        let after = set(&text, &PATH, &entry()).unwrap();
        let mut wanted = root.value();
        put(&mut wanted, &PATH, value_of(&entry()));
        prop_assert_eq!(read(&after).unwrap(), wanted);
        let undone = remove(&after, &PATH).unwrap().unwrap();
        let bare = |node: &JsonNode| node.members().is_empty() && before.comments_of(node).next().is_none();
        if bare(root) || servers.is_some_and(|servers| bare(&servers.value)) {
            // An object that was empty is removed, or has lost the space inside.
            let (kept, mut wanted) = (read(&undone).unwrap(), root.value());
            take(&mut wanted, &["servers"]);
            prop_assert_eq!(kept, wanted);
        } else {
            prop_assert!(is_within(&text, &after), "{}", after);
            prop_assert_eq!(undone, text);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[{}\\[\\]\",:/* \n\r\\\\a1ü]{0,40}") {
        if let Ok(after) = set(&text, &PATH, &entry()) {
            prop_assert_eq!(&read(&after).unwrap()["servers"]["lukasa"]["args"], &json!(["mcp"]));
            prop_assert!(remove(&after, &PATH).is_ok());
        }
    }
}
