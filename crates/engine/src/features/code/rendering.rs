//! Answers about code: symbols, callers and callees, and explanations.

pub mod index;

use crate::convert::to_count;
use crate::rendering::Rendering;
use crate::rendering::locations::{RowDetails, in_line, kind, kind_unless_signed, places, print};
use crate::rendering::values::{at, calls_at, confidence, list, moment, plain, safe, small};
use crate::view::symbols::keys;
use serde_json::{Value, json};
use std::cmp::Reverse;

pub fn callers(out: &mut Rendering, response: &Value) {
    calls(out, list(response, "callers"));
    out.more(list(response, "callers").len(), &response["total"]);
    let sites: Vec<&str> =
        list(&response["unresolved_namesakes"], "sites").into_iter().filter_map(Value::as_str).collect();
    if !sites.is_empty() {
        out.line(format!("unresolved calls of that name: {}", sites.join(", ")));
    }
    through(out, response, "may reach it")
}

pub fn callees(out: &mut Rendering, response: &Value) {
    calls(out, list(response, "callees"));
    out.more(list(response, "callees").len(), &response["total"]);
    external(out, response);
    through(out, response, "may run others")
}

pub fn chains(out: &mut Rendering, response: &Value) {
    for chain in list(response, "chains") {
        steps(out, chain);
    }
    if response["truncated"] == true {
        out.line("… and more of this length: raise --limit");
    }
    for (field, title) in [("less_sure", "by calls less sure"), ("reverse", "in the other direction")] {
        if response[field].is_object() {
            out.line(format!("{title}:"));
            steps(out, &response[field]);
        }
    }
}

fn test(row: &Value) -> String {
    if row["test"] == true { "test".into() } else { String::new() }
}

fn calls(out: &mut Rendering, list: Vec<&Value>) {
    let deep = list.iter().any(|r| r["depth"].as_u64() > Some(1));
    let hops = |r: &Value| match r["depth"].as_u64().filter(|_| deep) {
        Some(1) => "1 hop".into(),
        Some(hops) => format!("{hops} hops"),
        None => String::new(),
    };
    let via = |r: &Value| {
        let via = at(r, "via");
        if via.is_empty() { via } else { format!("via {}", keys::local(&via)) }
    };
    places(out, list, &RowDetails { facts: &[&calls_at, &hops, &via, &confidence, &test], ..RowDetails::default() })
}

/// External callees have no path in the project, so each is shown at its first call site.
fn external(out: &mut Rendering, response: &Value) {
    let called = list(response, "external");
    if called.is_empty() {
        return;
    }
    out.line("outside of the project, by the first call:");
    let at_call = |row: &Value| {
        let caller = [at(row, "via"), at(&response["symbol"], "key")].into_iter().find(|key| !key.is_empty());
        let key = at(row, "key");
        let mut shown = row.clone();
        shown["path"] = json!(caller.as_deref().map(keys::path).unwrap_or_default());
        shown["line"] = row["call_lines"][0].clone();
        // The whole key is the name: the part before `::` is a package, not a file.
        shown["key"] = Value::Null;
        shown["title"] = json!(key);
        shown["ref"] = Value::Null;
        shown
    };
    let shown: Vec<Value> = called.iter().map(|row| at_call(row)).collect();
    let again = |r: &Value| if list(r, "call_lines").len() > 1 { calls_at(r) } else { String::new() };
    print(out, shown.iter().collect(), &RowDetails { facts: &[&again, &confidence], ..RowDetails::default() });
    out.more(called.len(), &response["total_external"])
}

fn through(out: &mut Rendering, response: &Value, says: &str) {
    for way in list(response, "through") {
        out.line(format!("calls of {} {says}:", in_line(&way["declared"])));
        calls(out, list(way, "symbols"));
        out.more(list(way, "symbols").len(), &way["total"]);
    }
}

/// The steps of a call chain in order, with the calls between them.
fn steps(out: &mut Rendering, chain: &Value) {
    print(out, list(chain, "steps"), &RowDetails { facts: &[&calls_at, &confidence], ..RowDetails::default() })
}

pub fn symbols(out: &mut Rendering, response: &Value) {
    let mut found = list(response, "symbols");
    // Among equal scores, production code comes first.
    let sure = |r: &Value| to_count(r["score"].as_f64().unwrap_or(0.0) * 1e6);
    found.sort_by_key(|r| (Reverse(sure(r)), r["test"] == true));
    let callers = |r: &Value| match r["callers"].as_u64() {
        None | Some(0) => String::new(),
        Some(1) => "1 caller".into(),
        Some(n) => format!("{n} callers"),
    };
    let about = |r: &Value| {
        let parts = [at(r, "signature"), at(r, "about")];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")
    };
    let listed = found.len();
    print(out, found, &RowDetails { facts: &[&kind_unless_signed, &callers, &test], about: Some(&about), below: None });
    out.more(listed, &response["total"])
}

pub fn explain(out: &mut Rendering, response: &Value) {
    let symbol = &response["symbol"];
    let history = &response["history"];
    let rank = &response["importance"];
    let community = &response["community"];
    let commit: String = at(history, "git_commit").chars().take(10).collect();
    let mut changed = format!("{}, transaction {}", moment(history, "recorded_at"), at(history, "tx"));
    if !commit.is_empty() {
        changed += &format!(", commit {commit}");
    }
    let group = if community.is_object() {
        format!("{} ({} objects)", at(community, "key"), at(community, "size"))
    } else {
        String::new()
    };
    print(out, vec![symbol], &RowDetails { facts: &[&kind], ..RowDetails::default() });
    let lines = match (at(symbol, "line"), at(symbol, "end_line")) {
        (first, last) if !first.is_empty() && !last.is_empty() && first != last => format!("{first}-{last}"),
        _ => at(symbol, "lines"),
    };
    for (field, value) in [
        ("signature", at(symbol, "signature")),
        ("visibility", at(symbol, "visibility")),
        ("also", at(symbol, "flags")),
        ("lines", lines),
        ("in", at(&response["container"], "key")),
        ("fault", at(symbol, "fault")),
        ("unresolved", at(symbol, "unresolved_calls")),
        ("importance", format!("{} of {} by PageRank", at(rank, "place"), at(rank, "of"))),
        ("community", group),
        ("changed", if history.is_object() { changed } else { String::new() }),
    ] {
        out.field(field, 10, value);
    }
    if let Some(doc) = symbol["doc"].as_str() {
        // Line by line: control characters are escaped, and line breaks stay.
        for line in doc.lines() {
            out.line(format!("  | {}", safe(line)));
        }
    }
    let members = list(response, "members");
    if !members.is_empty() {
        out.heading("members");
        let listed = members.len();
        print(
            out,
            members,
            &RowDetails { facts: &[&kind_unless_signed], about: Some(&|r| at(r, "signature")), below: None },
        );
        out.more(listed, &response["total_members"]);
    }
    // Tests are separate groups and come last.
    let groups = ["dependencies", "dependents"].into_iter().flat_map(|field| list(response, field));
    let (tests, others): (Vec<&Value>, Vec<&Value>) = groups.partition(|group| group["relation"] == "tested_by");
    for group in others.into_iter().chain(tests) {
        let symbols = list(group, "symbols");
        if symbols.is_empty() {
            continue;
        }
        out.heading(at(group, "relation").replace('_', " "));
        let listed = symbols.len();
        places(out, symbols, &RowDetails { facts: &[&kind, &confidence], ..RowDetails::default() });
        out.more(listed, &group["total"]);
    }
}

pub fn stats(out: &mut Rendering, response: &Value) {
    let counts = |field: &str| {
        let all = response[field].as_object().into_iter().flatten();
        all.map(|(name, n)| format!("{n} {}", safe(name))).collect::<Vec<_>>().join(", ")
    };
    let few = |listed: &Value| {
        let symbols: Vec<_> = list(listed, "symbols").into_iter().map(plain).collect();
        let left = listed["total"].as_u64().unwrap_or(0).saturating_sub(symbols.len() as u64);
        let more = if left > 0 { format!(" and {left} more (raise --limit)") } else { String::new() };
        match symbols.is_empty() {
            true => at(listed, "total"),
            false => format!("{}: {}{more}", at(listed, "total"), symbols.join(", ")),
        }
    };
    let cycles = &response["cycles"];
    let circles = match cycles["total"].as_u64() {
        Some(0) | None => "none".into(),
        Some(n) => format!("{n}; the largest has {}", few(&cycles["largest"])),
    };
    for (field, value) in [
        ("symbols", counts("symbols")),
        ("entry points", few(&response["entry_points"])),
        (
            "never called",
            format!("{}, of these {} exported", at(response, "never_called"), at(response, "never_called_exported")),
        ),
        ("circles", circles),
        ("recursive", few(&response["recursive"])),
    ] {
        out.field(field, 14, value);
    }
    let known: Vec<Value> = response["by_derivation"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, of)| json!({"name": name, "calls": of["calls"], "mean_confidence": of["mean_confidence"]}))
        .collect();
    out.table(
        known.iter().collect(),
        &[
            ("known by", &|r| at(r, "name")),
            ("calls", &|r| at(r, "calls")),
            ("mean confidence", &|r| small(&r["mean_confidence"])),
        ],
    );
    for (field, title, counted) in
        [("most_called", "most called", "callers"), ("most_calling", "most calling", "callees")]
    {
        let most = list(response, field);
        if !most.is_empty() {
            out.heading(title);
            let count = |r: &Value| format!("{} {counted}", at(r, "count"));
            print(out, most, &RowDetails { facts: &[&kind, &count], ..RowDetails::default() });
        }
    }
}
