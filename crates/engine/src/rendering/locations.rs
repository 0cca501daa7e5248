//! Results as locations in code: `path:line  name`, production code before tests.

use super::values::{at, safe};
use super::{Rendering, ResultRow};
use crate::view::symbols::{SymbolKind, keys};
use serde_json::Value;

/// A column of short facts beside place and name.
pub type DetailColumn<'a> = &'a dyn Fn(&Value) -> String;

/// The contents of a row beside place and name.
#[derive(Default)]
pub struct RowDetails<'a> {
    pub facts: &'a [DetailColumn<'a>],
    /// Text that may be shortened.
    pub about: Option<DetailColumn<'a>>,
    /// A separate line below.
    pub below: Option<DetailColumn<'a>>,
}

/// Prints results in order, but production code before tests.
pub fn places(out: &mut Rendering, results: Vec<&Value>, beside: &RowDetails<'_>) {
    print(out, production_first(results), beside)
}

/// Prints results in order.
pub fn print(out: &mut Rendering, results: Vec<&Value>, beside: &RowDetails<'_>) {
    let text = |of: Option<DetailColumn<'_>>, result: &Value| of.map(|of| of(result)).unwrap_or_default();
    let rows: Vec<ResultRow> = results
        .into_iter()
        .map(|result| {
            let ResultLocation { place, name } = ResultLocation::of(result);
            let facts = beside.facts.iter().map(|fact| fact(result)).collect();
            ResultRow { place, name, facts, about: text(beside.about, result), below: text(beside.below, result) }
        })
        .collect();
    out.rows(rows)
}

/// Moves tests to the end; the order stays otherwise the same.
pub fn production_first(mut results: Vec<&Value>) -> Vec<&Value> {
    results.sort_by_key(|result| is_test(result));
    results
}

/// The location and name of a result.
#[derive(Debug, PartialEq, Eq)]
pub struct ResultLocation {
    /// `path:line`; only the path if the line is unknown; `Type:key` for anything but code.
    pub place: String,
    pub name: String,
}

impl ResultLocation {
    /// From a result with a key, or with a reference `Type:key`. Path and line come from the result or its properties.
    pub fn of(result: &Value) -> ResultLocation {
        let Named { kind, key, reference } = Named::of(result);
        let own = |field: &str| {
            let all = [result, &result["properties"], &result["fields"]].into_iter().map(|of| at(of, field));
            all.into_iter().find(|text| !text.is_empty())
        };
        let title = || ["title", "name"].iter().find_map(|field| own(field)).unwrap_or_default();
        let in_code = kind.is_some_and(|kind| !kind.outside());
        let path = own("path").filter(|_| in_code || own("line").is_some());
        let Some(path) = path.or_else(|| in_code.then(|| keys::path(&key).to_owned())) else {
            let title = title();
            return match kind {
                // Only the name is known.
                Some(_) => ResultLocation { place: String::new(), name: key },
                None if title.is_empty() || title == reference => {
                    ResultLocation { place: String::new(), name: reference }
                }
                None => ResultLocation { place: reference, name: title },
            };
        };
        let line = own("line").map(|line| format!(":{line}")).unwrap_or_default();
        let name = match key.strip_prefix(&path) {
            // A file: its path is its name.
            Some("") => "(file)".into(),
            Some(rest) => rest.trim_start_matches(':').to_owned(),
            None if key.is_empty() => title(),
            None => keys::local(&key).to_owned(),
        };
        ResultLocation { place: format!("{path}{line}"), name }
    }
}

/// A result by its type and key.
struct Named {
    kind: Option<SymbolKind>,
    key: String,
    reference: String,
}

impl Named {
    fn of(result: &Value) -> Named {
        // A result without a key has a reference.
        let reference = ["ref", "name", "key"].iter().map(|field| at(result, field)).find(|text| !text.is_empty());
        let reference = reference.unwrap_or_default();
        let (type_name, key) = match (at(result, "type"), at(result, "key")) {
            (type_name, key) if !key.is_empty() => (type_name, key),
            (type_name, _) => match reference.split_once(':') {
                Some((prefix, rest)) if SymbolKind::of_type(prefix).is_some() || prefix == type_name => {
                    (prefix.to_owned(), rest.to_owned())
                }
                _ => (type_name, String::new()),
            },
        };
        let kind = SymbolKind::of_type(&type_name);
        // A key without a type is a symbol: answers about code leave the type out.
        let kind = kind.or_else(|| (type_name.is_empty() && key.contains("::")).then_some(SymbolKind::Function));
        Named { kind, key, reference }
    }
}

/// The kind of symbol, in one word.
pub fn kind(result: &Value) -> String {
    let subtype = at(result, "subtype");
    if !subtype.is_empty() {
        return subtype;
    }
    let own = [at(result, "type"), at(&result["fields"], "type")].into_iter().find(|name| !name.is_empty());
    // For a file, the name shows it.
    own.filter(|name| SymbolKind::of_type(name) != Some(SymbolKind::File)).unwrap_or_default().to_lowercase()
}

/// As [`kind`], but empty if a signature beside it shows the kind.
pub fn kind_unless_signed(result: &Value) -> String {
    let is_signed = |of: &Value| of["signature"].as_str().is_some_and(|signature| !signature.is_empty());
    if is_signed(result) || is_signed(&result["fields"]) { String::new() } else { kind(result) }
}

/// Whether it is a test or belongs to tests: by the answer's own field, or by its path and name.
pub fn is_test(result: &Value) -> bool {
    if let Some(test) = result["test"].as_bool() {
        return test;
    }
    let Named { kind, key, .. } = Named::of(result);
    if kind == Some(SymbolKind::Test) {
        return true;
    }
    let code = kind.is_some_and(|kind| !kind.outside()) || result["path"].is_string();
    let path = if result["path"].is_string() { at(result, "path") } else { keys::path(&key).to_owned() };
    code && (is_test_path(&path) || keys::local(&key).split("::").any(|part| matches!(part, "test" | "tests")))
}

fn is_test_path(path: &str) -> bool {
    let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    let is_folder = |name: &str| matches!(name, "test" | "tests" | "__tests__" | "spec" | "testdata");
    folders.split('/').any(is_folder)
        || stem.starts_with("test_")
        || ["_test", "_tests", "_spec", "Test", "Tests"].iter().any(|end| stem.ends_with(end))
        || matches!(stem, "tests" | "conftest")
        || [".test.", ".spec."].iter().any(|mark| file.contains(mark))
}

/// `path:line` and `name` of a result in one text, for use within a sentence.
pub fn in_line(result: &Value) -> String {
    let ResultLocation { place, name } = ResultLocation::of(result);
    safe(&[place, name].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_are_path_and_line_and_names_are_without_the_path() {
        for (result, place, name) in [
            (json!({"key": "a/b.py::C::m", "type": "Method", "path": "a/b.py", "line": 7}), "a/b.py:7", "C::m"),
            (json!({"key": "a/b.py", "type": "FILE", "path": "a/b.py"}), "a/b.py", "(file)"),
            (json!({"key": "a/b.py::f", "type": "Function", "line": 3}), "a/b.py:3", "f"),
            (json!({"ref": "Function:a.py::f", "fields": {"line": 4, "path": "a.py"}}), "a.py:4", "f"),
            (json!({"ref": "Function:a.py::f", "detail": "long"}), "a.py", "f"),
            (json!({"name": "Function:a.py::f", "distance": 1}), "a.py", "f"),
            (json!({"name": "Function:a.py::f", "path": "a.py", "line": 9, "distance": 1}), "a.py:9", "f"),
            (json!({"key": "python:os::getcwd", "type": "external"}), "", "python:os::getcwd"),
            (json!({"ref": "Service:auth", "type": "Service", "name": "Auth"}), "Service:auth", "Auth"),
            (json!({"ref": "Service:auth", "fields": {"title": "Auth", "type": "Service"}}), "Service:auth", "Auth"),
            (json!({"name": "Service:auth", "distance": 1}), "", "Service:auth"),
            (json!({"type": "Function", "key": "a.rs::f", "properties": {"path": "a.rs", "line": 2}}), "a.rs:2", "f"),
        ] {
            assert_eq!(
                ResultLocation::of(&result),
                ResultLocation { place: place.into(), name: name.into() },
                "{result}"
            );
        }
    }

    #[test]
    fn tests_are_recognized_by_the_answer_or_by_their_path() {
        for path in [
            "tests/cli.rs",
            "crates/a/tests/b/c.rs",
            "test_login.py",
            "src/login_test.go",
            "web/login.test.ts",
            "web/login.spec.tsx",
            "src/test/java/LoginTest.java",
            "conftest.py",
        ] {
            assert!(is_test(&json!({"key": format!("{path}::f"), "type": "Function", "path": path})), "{path}");
        }
        for path in ["src/contest.py", "src/latest.rs", "src/attestation.go", "testing.rs"] {
            assert!(!is_test(&json!({"key": format!("{path}::f"), "type": "Function", "path": path})), "{path}");
        }
        assert!(is_test(&json!({"key": "src/a.rs::tests::works", "type": "Function"})));
        assert!(is_test(&json!({"key": "src/a.rs::works", "type": "Function", "test": true})));
        assert!(!is_test(&json!({"ref": "Service:tests", "type": "Service"})), "no code");
    }
}
