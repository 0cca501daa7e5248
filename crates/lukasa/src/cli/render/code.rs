//! Answers about code: symbols, callers and callees, and explanations.

use super::graph::small;
use super::page::Page;
use super::places::{Beside, in_line, kind, kind_unless_signed, places, print};
use super::{at, list, moment, plain, rows};
use lukasa_engine::view::symbols::keys;
use serde_json::{Value, json};
use std::io::{Result, Write};

pub const OPERATIONS: [&str; 6] =
    ["symbol_lookup", "code_explain", "get_callers", "get_callees", "call_chain", "call_graph_stats"];

pub fn answer(out: &mut Page<'_>, operation: &str, response: &Value) -> Result<()> {
    match operation {
        "symbol_lookup" => symbols(out, response),
        "code_explain" => explain(out, response),
        "get_callers" => {
            calls(out, list(response, "callers"))?;
            more(out, list(response, "callers").len(), &response["total"])?;
            let sites: Vec<&str> =
                list(&response["unresolved_namesakes"], "sites").into_iter().filter_map(Value::as_str).collect();
            if !sites.is_empty() {
                writeln!(out, "unresolved calls of that name: {}", sites.join(", "))?;
            }
            through(out, response, "may reach it")
        }
        "get_callees" => {
            calls(out, list(response, "callees"))?;
            more(out, list(response, "callees").len(), &response["total"])?;
            external(out, response)?;
            through(out, response, "may run others")
        }
        "call_chain" => {
            for chain in list(response, "chains") {
                steps(out, chain)?;
            }
            if response["truncated"] == true {
                writeln!(out, "… and more of this length: raise --limit")?;
            }
            for (field, title) in [("less_sure", "by calls less sure"), ("reverse", "in the other direction")] {
                if response[field].is_object() {
                    writeln!(out, "{title}:")?;
                    steps(out, &response[field])?;
                }
            }
            Ok(())
        }
        _ => stats(out, response),
    }
}

/// The line numbers of calls, and how many more there are.
fn call_lines(row: &Value) -> String {
    let lines: Vec<String> = list(row, "call_lines").into_iter().map(plain).collect();
    let more = row["calls"].as_u64().map(|n| n.saturating_sub(lines.len() as u64)).filter(|n| *n > 0);
    format!("{}{}", lines.join(", "), more.map(|n| format!(" and {n} more")).unwrap_or_default())
}

/// The lines of calls, with a label.
pub(super) fn calls_at(row: &Value) -> String {
    match call_lines(row) {
        lines if lines.is_empty() => lines,
        lines => format!("calls at {lines}"),
    }
}

/// The confidence of an uncertain link, and its derivation.
pub(super) fn confidence(row: &Value) -> String {
    match row["confidence"].as_f64() {
        Some(sure) if sure < 1.0 => {
            let by = at(row, "derivation").replace('_', " ");
            let sure = small(&row["confidence"]);
            if by.is_empty() { format!("{sure} sure") } else { format!("{sure} {by}") }
        }
        _ => String::new(),
    }
}

fn test(row: &Value) -> String {
    if row["test"] == true { "test".into() } else { String::new() }
}

pub(super) fn more(out: &mut Page<'_>, told: usize, total: &Value) -> Result<()> {
    match total.as_u64() {
        Some(total) if total > told as u64 => writeln!(out, "… {told} of {total}: raise --limit"),
        _ => Ok(()),
    }
}

fn calls(out: &mut Page<'_>, list: Vec<&Value>) -> Result<()> {
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
    places(out, list, &Beside { facts: &[&calls_at, &hops, &via, &confidence, &test], ..Beside::default() })
}

/// External callees have no path in the project, so each is shown at its first call site.
fn external(out: &mut Page<'_>, response: &Value) -> Result<()> {
    let called = list(response, "external");
    if called.is_empty() {
        return Ok(());
    }
    writeln!(out, "outside of the project, by the first call:")?;
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
    print(out, shown.iter().collect(), &Beside { facts: &[&again, &confidence], ..Beside::default() })?;
    more(out, called.len(), &response["total_external"])
}

fn through(out: &mut Page<'_>, response: &Value, says: &str) -> Result<()> {
    for way in list(response, "through") {
        writeln!(out, "calls of {} {says}:", in_line(&way["declared"]))?;
        calls(out, list(way, "symbols"))?;
        more(out, list(way, "symbols").len(), &way["total"])?;
    }
    Ok(())
}

/// The steps of a call chain in order, with the calls between them.
fn steps(out: &mut Page<'_>, chain: &Value) -> Result<()> {
    print(out, list(chain, "steps"), &Beside { facts: &[&calls_at, &confidence], ..Beside::default() })
}

fn symbols(out: &mut Page<'_>, response: &Value) -> Result<()> {
    let mut found = list(response, "symbols");
    // Among equal scores, production code comes first.
    let sure = |r: &Value| (r["score"].as_f64().unwrap_or(0.0) * 1e6) as i64;
    found.sort_by_key(|r| (-sure(r), r["test"] == true));
    let callers = |r: &Value| match r["callers"].as_u64() {
        None | Some(0) => String::new(),
        Some(1) => "1 caller".into(),
        Some(n) => format!("{n} callers"),
    };
    let about = |r: &Value| {
        let parts = [at(r, "signature"), at(r, "about")];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")
    };
    let told = found.len();
    print(out, found, &Beside { facts: &[&kind_unless_signed, &callers, &test], about: Some(&about), below: None })?;
    more(out, told, &response["total"])
}

fn explain(out: &mut Page<'_>, response: &Value) -> Result<()> {
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
    print(out, vec![symbol], &Beside { facts: &[&kind], ..Beside::default() })?;
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
        out.field(field, 10, &value)?;
    }
    if let Some(doc) = symbol["doc"].as_str() {
        // Line by line: control characters are escaped, and line breaks stay.
        for line in doc.lines() {
            writeln!(out, "  | {}", super::safe(line))?;
        }
    }
    let members = list(response, "members");
    if !members.is_empty() {
        writeln!(out, "\nmembers")?;
        let told = members.len();
        print(
            out,
            members,
            &Beside { facts: &[&kind_unless_signed], about: Some(&|r| at(r, "signature")), below: None },
        )?;
        more(out, told, &response["total_members"])?;
    }
    // Tests are separate groups and come last.
    let groups = ["dependencies", "dependents"].into_iter().flat_map(|field| list(response, field));
    let (tests, others): (Vec<&Value>, Vec<&Value>) = groups.partition(|group| group["relation"] == "tested_by");
    for group in others.into_iter().chain(tests) {
        let symbols = list(group, "symbols");
        if symbols.is_empty() {
            continue;
        }
        writeln!(out, "\n{}", at(group, "relation").replace('_', " "))?;
        let told = symbols.len();
        places(out, symbols, &Beside { facts: &[&kind, &confidence], ..Beside::default() })?;
        more(out, told, &group["total"])?;
    }
    Ok(())
}

fn stats(out: &mut Page<'_>, response: &Value) -> Result<()> {
    let counts = |field: &str| {
        let all = response[field].as_object().into_iter().flatten();
        all.map(|(name, n)| format!("{n} {}", super::safe(name))).collect::<Vec<_>>().join(", ")
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
        out.field(field, 14, &value)?;
    }
    let known: Vec<Value> = response["by_derivation"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, of)| json!({"name": name, "calls": of["calls"], "mean_confidence": of["mean_confidence"]}))
        .collect();
    rows(
        out,
        known.iter().collect(),
        &[
            ("known by", &|r| at(r, "name")),
            ("calls", &|r| at(r, "calls")),
            ("mean confidence", &|r| small(&r["mean_confidence"])),
        ],
    )?;
    for (field, title, counted) in
        [("most_called", "most called", "callers"), ("most_calling", "most calling", "callees")]
    {
        let most = list(response, field);
        if !most.is_empty() {
            writeln!(out, "\n{title}")?;
            let count = |r: &Value| format!("{} {counted}", at(r, "count"));
            print(out, most, &Beside { facts: &[&kind, &count], ..Beside::default() })?;
        }
    }
    Ok(())
}
