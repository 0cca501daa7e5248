//! Answers about code: symbols, who calls whom, and what something is.

use super::graph::small;
use super::{Column, at, list, moment, plain, rows};
use serde_json::Value;
use std::io::{Result, Write};

pub const OPERATIONS: [&str; 6] =
    ["symbol_lookup", "code_explain", "get_callers", "get_callees", "call_chain", "call_graph_stats"];

pub fn answer(out: &mut dyn Write, operation: &str, response: &Value) -> Result<()> {
    match operation {
        "symbol_lookup" => symbols(out, response),
        "code_explain" => explain(out, response),
        "get_callers" => {
            calls(out, list(response, "callers"), "caller")?;
            more(out, list(response, "callers").len(), &response["total"])?;
            let sites: Vec<&str> =
                list(&response["unresolved_namesakes"], "sites").into_iter().filter_map(Value::as_str).collect();
            if !sites.is_empty() {
                writeln!(out, "unresolved calls of that name: {}", sites.join(", "))?;
            }
            through(out, response, "may reach it", "caller")
        }
        "get_callees" => {
            calls(out, list(response, "callees"), "callee")?;
            more(out, list(response, "callees").len(), &response["total"])?;
            calls(out, list(response, "external"), "outside of the project")?;
            more(out, list(response, "external").len(), &response["total_external"])?;
            through(out, response, "may run others", "in its place")
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

/// `path:line`, as editors take it.
fn place(row: &Value) -> String {
    let span = match (at(row, "line"), at(row, "end_line")) {
        (line, _) if line.is_empty() => String::new(),
        (line, end) if end.is_empty() || end == line => format!(":{line}"),
        (line, end) => format!(":{line}-{end}"),
    };
    format!("{}{span}", at(row, "path"))
}

fn kind(row: &Value) -> String {
    let subtype = at(row, "subtype");
    if subtype.is_empty() { at(row, "type").to_lowercase() } else { subtype }
}

/// Numbers with commas; how many more there are behind them.
fn call_lines(row: &Value) -> String {
    let lines: Vec<String> = list(row, "call_lines").into_iter().map(plain).collect();
    let more = row["calls"].as_u64().map(|n| n.saturating_sub(lines.len() as u64)).filter(|n| *n > 0);
    format!("{}{}", lines.join(", "), more.map(|n| format!(" and {n} more")).unwrap_or_default())
}

fn more(out: &mut dyn Write, told: usize, total: &Value) -> Result<()> {
    match total.as_u64() {
        Some(total) if total > told as u64 => writeln!(out, "… {told} of {total}: raise --limit"),
        _ => Ok(()),
    }
}

fn calls(out: &mut dyn Write, list: Vec<&Value>, title: &str) -> Result<()> {
    let deep = list.iter().any(|r| r["depth"].as_u64() > Some(1));
    let columns: [Column<'_>; 9] = [
        (title, &|r| at(r, "key")),
        ("kind", &kind),
        ("line", &|r| at(r, "line")),
        ("calls at line", &call_lines),
        ("hops", &|r| if deep { at(r, "depth") } else { String::new() }),
        ("via", &|r| at(r, "via")),
        ("confidence", &|r| small(&r["confidence"])),
        ("known by", &|r| at(r, "derivation")),
        ("test", &|r| at(r, "test")),
    ];
    rows(out, list, &columns)
}

fn through(out: &mut dyn Write, response: &Value, says: &str, title: &str) -> Result<()> {
    for way in list(response, "through") {
        writeln!(out, "calls of {} {says}:", at(&way["declared"], "key"))?;
        calls(out, list(way, "symbols"), title)?;
        more(out, list(way, "symbols").len(), &way["total"])?;
    }
    Ok(())
}

/// A chain, one symbol below the other, with the calls between them.
fn steps(out: &mut dyn Write, chain: &Value) -> Result<()> {
    let list = list(chain, "steps");
    for (i, step) in list.iter().enumerate() {
        let arrow = if i == 0 { "  " } else { "→ " };
        writeln!(out, "  {}{arrow}{}  ({})", "  ".repeat(i), at(step, "key"), place(step))?;
        if i + 1 < list.len() {
            let facts: Vec<String> = [
                ("line", call_lines(step)),
                ("confidence", small(&step["confidence"])),
                ("known by", at(step, "derivation")),
            ]
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
            writeln!(out, "  {}  calls at {}", "  ".repeat(i), facts.join(", "))?;
        }
    }
    Ok(())
}

fn symbols(out: &mut dyn Write, response: &Value) -> Result<()> {
    rows(
        out,
        list(response, "symbols"),
        &[
            ("symbol", &|r| at(r, "key")),
            ("kind", &kind),
            ("line", &|r| at(r, "line")),
            ("signature", &|r| at(r, "signature")),
            ("about", &|r| at(r, "about")),
            ("callers", &|r| if r["callers"] == 0 { String::new() } else { at(r, "callers") }),
            ("score", &|r| small(&r["score"])),
        ],
    )?;
    more(out, list(response, "symbols").len(), &response["total"])
}

fn explain(out: &mut dyn Write, response: &Value) -> Result<()> {
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
    for (field, value) in [
        ("where", place(symbol)),
        ("signature", at(symbol, "signature")),
        ("visibility", at(symbol, "visibility")),
        ("also", at(symbol, "flags")),
        ("lines", at(symbol, "lines")),
        ("in", at(&response["container"], "key")),
        ("fault", at(symbol, "fault")),
        ("unresolved", at(symbol, "unresolved_calls")),
        ("importance", format!("{} of {} by PageRank", at(rank, "place"), at(rank, "of"))),
        ("community", group),
        ("changed", if history.is_object() { changed } else { String::new() }),
    ] {
        if !value.is_empty() {
            writeln!(out, "  {field:<10}  {value}")?;
        }
    }
    if let Some(doc) = symbol["doc"].as_str() {
        // Each line by itself: what steers a terminal must not get through, line breaks may.
        for line in doc.lines() {
            writeln!(out, "  | {}", super::safe(line))?;
        }
    }
    rows(
        out,
        list(response, "members"),
        &[
            ("member", &|r| at(r, "title")),
            ("kind", &kind),
            ("line", &|r| at(r, "line")),
            ("signature", &|r| at(r, "signature")),
        ],
    )?;
    more(out, list(response, "members").len(), &response["total_members"])?;
    for field in ["dependencies", "dependents"] {
        for group in list(response, field) {
            let relation = at(group, "relation").replace('_', " ");
            let symbols = list(group, "symbols");
            let told = symbols.len();
            rows(
                out,
                symbols,
                &[
                    (relation.as_str(), &|r| at(r, "key")),
                    ("kind", &kind),
                    ("line", &|r| at(r, "line")),
                    ("confidence", &|r| small(&r["confidence"])),
                ],
            )?;
            more(out, told, &group["total"])?;
        }
    }
    Ok(())
}

fn stats(out: &mut dyn Write, response: &Value) -> Result<()> {
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
        writeln!(out, "  {field:<14}  {value}")?;
    }
    let known: Vec<Value> = response["by_derivation"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, of)| {
            serde_json::json!({"name": name, "calls": of["calls"], "mean_confidence": of["mean_confidence"]})
        })
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
        rows(
            out,
            list(response, field),
            &[(title, &|r| at(r, "key")), ("kind", &kind), (counted, &|r| at(r, "count"))],
        )?;
    }
    Ok(())
}
