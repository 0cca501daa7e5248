//! The progress of embedding: whether semantic search can be relied on, and if not, why.

use crate::rendering::Rendering;
use crate::rendering::values::{at, list, moment};
use serde_json::Value;

pub fn embed(out: &mut Rendering, response: &Value) {
    let number = |name: &str| response[name].as_u64().unwrap_or(0);
    let mut listed = Vec::new();
    if number("embedded") > 0 {
        listed.push(("speed", format!("{} texts a second", at(response, "texts_per_s"))));
    }
    for (field, says) in [
        ("known", "had a vector already"),
        ("failed", "failed, and are tried again later"),
        ("redacted", "taken out of texts as secret"),
    ] {
        if number(field) > 0 {
            listed.push((field, format!("{} {says}", number(field))));
        }
    }
    listed.push(("model", at(response, "model")));
    listed.push(("error", at(response, "error")));
    pairs(out, &listed)
}

pub fn readiness(out: &mut Rendering, response: &Value) {
    let embedding = &response["embedding"];
    let verdict = match (embedding["ready"] == true, coverage(&embedding["required"])) {
        (true, None) => "ready: no object is of a type that has to be embedded",
        (true, Some(_)) => "ready: at least 99 % of what has to be embedded is",
        (false, _) => "not ready: less than 99 % of what has to be embedded is",
    };
    out.line(verdict);
    let (backlog, breaker) = (&embedding["backlog"], &embedding["breaker"]);
    if breaker["state"] == "open" {
        let (since, then) = (moment(breaker, "since"), moment(breaker, "next_probe"));
        out.warning(&format!("the model has been failing since {since}; it is tried again at {then}"));
    }
    if backlog["alert"] == true {
        out.warning("more than 500 objects that have to be embedded wait");
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
    );
    out.table(
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
fn pairs(out: &mut Rendering, listed: &[(&str, String)]) {
    listed.iter().for_each(|(name, value)| out.field(name, 10, value))
}
