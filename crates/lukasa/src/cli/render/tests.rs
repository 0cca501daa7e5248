//! Tests of how answers look on a terminal.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use super::*;
use lukasa_engine::registry::find;
use serde_json::json;

fn shown(operation: &str, response: &Value) -> String {
    let mut out = Vec::new();
    answer(&mut out, Style::default(), find(operation).unwrap(), response).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn reasons_why_search_is_not_ready_come_first() {
    let response = json!({
        "embedding": {
            "ready": false,
            "model": "new@2",
            "reads": "old@1",
            "required": {"objects": 1_000, "embedded": 989, "percent": 98.99},
            "optional": {"objects": 0, "embedded": 0, "percent": 100.0},
            "disabled": 3,
            "staleness": {"p50_seconds": 30.0, "p90_seconds": 86_400.0},
            "backlog": {"required": 501, "optional": 2, "leased": 4, "failing": 5, "mismatched": 6,
                        "oldest": "2026-01-31T10:00:00.123456Z", "alert": true},
            "breaker": {"state": "open", "since": "2026-01-31T11:00:00Z", "next_probe": "2026-01-31T11:02:00Z"},
            "models": [{"model": "old@1", "vectors": 989, "bytes": 1_500_000, "redactions": 7,
                        "newest": "2026-01-31T10:30:00Z"}],
            "redactions": 7,
        },
        "text": {"symbols": 12, "files": 3, "objects": 0, "without_source": 1, "bytes": 2_048},
    });
    let shown = shown("search_readiness", &response);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[..11],
        [
            "not ready: less than 99 % of what has to be embedded is",
            "warning: the model has been failing since 2026-01-31T11:00:00Z; it is tried again at 2026-01-31T11:02:00Z",
            "warning: more than 500 objects that have to be embedded wait",
            "  required    989 of 1000 embedded, 98.9 %",
            "  never       3 of types that are not embedded",
            "  waiting     503: 501 required, 4 being embedded, 5 failed before, 6 with a vector of another model, the \
             oldest since 2026-01-31T10:00:00Z",
            "  behind      half of all by up to 30 s, nine tenths by up to 24 h",
            "  secrets     7 taken out of what search reads",
            "  words       12 symbols, 3 files, 1 of them by names and comments only: the source is not at hand \
             (2.0 kB)",
            "  model       new@2; search still reads old@1",
            lines[10],
        ]
    );
    assert!(shown.contains("old@1") && shown.contains("1.5 MB"), "{shown}");
}

#[test]
fn failures_of_embedding_are_shown() {
    let response = json!({"embedded": 0, "known": 2, "failed": 5, "waiting": 9, "model": "m", "texts_per_s": 0.0,
                          "redacted": 1, "error": "no route\u{7}"});
    assert_eq!(
        shown("embed", &response),
        "  known       2 had a vector already\n  failed      5 failed, and are tried again later\n  \
         redacted    1 taken out of texts as secret\n  model       m\n  error       no route\\u{7}\n"
    );
}

fn rows() -> Value {
    let node = |key: &str| {
        json!({"id": key, "type": "Service", "labels": ["Service", "core"],
        "properties": {"key": key, "port": 1}})
    };
    let edge = json!({"id": "e", "type": "USES", "src": "Service:a", "dst": "Service:b", "properties": {}});
    json!({"summary": "1 row", "columns": ["p", "n", "l"], "truncated": true, "rows": [[
        {"nodes": [node("a"), node("b")], "relationships": [edge]}, node("a"), [1, null, "x\u{1b}"]]]})
}

#[test]
fn rows_are_shown_as_a_table() {
    let text = shown("cypher", &rows());
    for part in [
        "(:Service:core {key: 'a'})-[:USES]->(:Service:core {key: 'b'})",
        "(:Service:core {key: 'a', port: 1})",
        "[1, null, 'x\\u{1b}']",
        "and more",
    ] {
        assert!(text.replace('\n', " ").contains(part), "{part}: {text}");
    }
}

#[test]
fn rows_are_shown_as_trees() {
    let mut out = Vec::new();
    let shell = find("cypher").unwrap().meta.shell.unwrap();
    print(&mut out, Style::default(), &(shell.tree)(&rows())).unwrap();
    let text = String::from_utf8(out).unwrap();
    for line in [
        "row 1",
        "├─ p: path",
        "│  ├─ (:Service:core {key: 'a'})",
        "│  ├─ by: [:USES] Service:a → Service:b",
        "├─ n: (:Service:core {key: 'a'})",
        "│  └─ port: 1",
        "└─ l: [1, null, 'x\\u{1b}']",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}: {text}");
    }
}
