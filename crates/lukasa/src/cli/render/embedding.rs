//! The progress of embedding: whether semantic search can be relied on, and if not, why.

use super::page::Page;
use super::{at, list, moment, rows, warning};
use serde_json::Value;
use std::io::{Result, Write};

pub const OPERATIONS: [&str; 2] = ["search_readiness", "embed"];

pub fn answer(out: &mut Page<'_>, operation: &str, response: &Value) -> Result<()> {
    match operation {
        "embed" => embed(out, response),
        _ => readiness(out, response),
    }
}

fn embed(out: &mut Page<'_>, response: &Value) -> Result<()> {
    let number = |name: &str| response[name].as_u64().unwrap_or(0);
    let mut told = Vec::new();
    if number("embedded") > 0 {
        told.push(("speed", format!("{} texts a second", at(response, "texts_per_s"))));
    }
    for (field, says) in [
        ("known", "had a vector already"),
        ("failed", "failed, and are tried again later"),
        ("redacted", "taken out of texts as secret"),
    ] {
        if number(field) > 0 {
            told.push((field, format!("{} {says}", number(field))));
        }
    }
    told.push(("model", at(response, "model")));
    told.push(("error", at(response, "error")));
    pairs(out, &told)
}

fn readiness(out: &mut Page<'_>, response: &Value) -> Result<()> {
    let embedding = &response["embedding"];
    let verdict = match (embedding["ready"] == true, coverage(&embedding["required"])) {
        (true, None) => "ready: no object is of a type that has to be embedded",
        (true, Some(_)) => "ready: at least 99 % of what has to be embedded is",
        (false, _) => "not ready: less than 99 % of what has to be embedded is",
    };
    writeln!(out, "{verdict}")?;
    let (backlog, breaker) = (&embedding["backlog"], &embedding["breaker"]);
    if breaker["state"] == "open" {
        let (since, then) = (moment(breaker, "since"), moment(breaker, "next_probe"));
        warning(out, &format!("the model has been failing since {since}; it is tried again at {then}"))?;
    }
    if backlog["alert"] == true {
        warning(out, "more than 500 objects that have to be embedded wait")?;
    }
    let reads = at(embedding, "reads");
    let model = match at(embedding, "model") {
        model if model == reads => model,
        model => format!("{model}; search still reads {reads}"),
    };
    pairs(
        out,
        &[
            ("required", coverage(&embedding["required"]).unwrap_or_default()),
            ("optional", coverage(&embedding["optional"]).unwrap_or_default()),
            ("never", some(embedding, "disabled", "of types that are not embedded").unwrap_or_default()),
            ("waiting", waiting(backlog)),
            ("behind", behind(&embedding["staleness"])),
            ("secrets", some(embedding, "redactions", "taken out of what search reads").unwrap_or_default()),
            ("words", words(&response["text"])),
            ("model", model),
        ],
    )?;
    rows(
        out,
        list(embedding, "models"),
        &[
            ("vectors of", &|r| at(r, "model")),
            ("vectors", &|r| at(r, "vectors")),
            ("size", &|r| size(&r["bytes"])),
            ("newest", &|r| moment(r, "newest")),
        ],
    )
}

/// None if there are no objects of the kind.
fn coverage(of: &Value) -> Option<String> {
    let objects = of["objects"].as_u64().filter(|objects| *objects > 0)?;
    // Rounded down, so that 100 % means all of them.
    let percent = (of["percent"].as_f64().unwrap_or(0.0) * 10.0).floor() / 10.0;
    Some(format!("{} of {objects} embedded, {percent} %", at(of, "embedded")))
}

fn waiting(backlog: &Value) -> String {
    let (required, optional) = (backlog["required"].as_u64().unwrap_or(0), backlog["optional"].as_u64().unwrap_or(0));
    if required + optional == 0 {
        return "nothing in the queue".into();
    }
    let parts = [
        some(backlog, "required", "required"),
        some(backlog, "leased", "being embedded"),
        some(backlog, "failing", "failed before"),
        some(backlog, "mismatched", "with a vector of another model"),
        Some(format!("the oldest since {}", moment(backlog, "oldest"))).filter(|_| backlog["oldest"].is_string()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => (required + optional).to_string(),
        false => format!("{}: {}", required + optional, parts.join(", ")),
    }
}

/// How far vectors lag behind their objects.
fn behind(staleness: &Value) -> String {
    let of = |field: &str| staleness[field].as_f64().map(duration);
    match (of("p50_seconds"), of("p90_seconds")) {
        (Some(half), Some(most)) => format!("half of all by up to {half}, nine tenths by up to {most}"),
        _ => String::new(),
    }
}

fn words(text: &Value) -> String {
    let found = [("symbols", "symbol"), ("files", "file"), ("objects", "other object")];
    let several = |says: &str, field: &str| format!("{says}{}", if text[field] == 1 { "" } else { "s" });
    let mut parts: Vec<String> =
        found.iter().filter_map(|(field, says)| some(text, field, &several(says, field))).collect();
    if parts.is_empty() {
        parts.push("nothing to be found".into());
    }
    let without = some(text, "without_source", "of them by names and comments only: the source is not at hand");
    parts.extend(without);
    format!("{} ({})", parts.join(", "), size(&text["bytes"]))
}

/// A count with its label, unless it is 0.
fn some(of: &Value, field: &str, says: &str) -> Option<String> {
    of[field].as_u64().filter(|number| *number > 0).map(|number| format!("{number} {says}"))
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

fn size(bytes: &Value) -> String {
    match bytes.as_f64().unwrap_or(0.0) {
        b if b < 1e3 => format!("{b:.0} bytes"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b => format!("{:.1} MB", b / 1e6),
    }
}

/// Prints labelled values; empty ones are left out.
fn pairs(out: &mut Page<'_>, told: &[(&str, String)]) -> Result<()> {
    told.iter().try_for_each(|(name, value)| out.field(name, 10, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::style::Style;
    use serde_json::json;

    fn shown(operation: &str, response: &Value) -> String {
        let mut out = Vec::new();
        answer(&mut Page::new(&mut out, Style::default()), operation, response).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_keeps_search_from_being_ready_comes_first() {
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
    fn what_embedding_ran_into_is_told() {
        let response = json!({"embedded": 0, "known": 2, "failed": 5, "waiting": 9, "model": "m", "texts_per_s": 0.0,
                              "redacted": 1, "error": "no route\u{7}"});
        assert_eq!(
            shown("embed", &response),
            "  known       2 had a vector already\n  failed      5 failed, and are tried again later\n  \
             redacted    1 taken out of texts as secret\n  model       m\n  error       no route\\u{7}\n"
        );
    }
}
