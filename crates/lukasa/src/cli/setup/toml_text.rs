//! Edits TOML as text: adds, changes or removes one table and leaves every other byte alone.

use super::json_text::EditFault;
use serde_json::{Map, Value};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Parses the text.
pub fn read(text: &str) -> Result<Value, EditFault> {
    let table: toml::Table = toml::from_str(mark(text).1).map_err(|e| fault(text, &e))?;
    serde_json::to_value(table).map_err(|e| e.to_string())
}

/// Adds a new table at the end.
pub fn add(text: &str, path: &[&str], entry: &[(&str, Value)]) -> Result<String, EditFault> {
    let mut wanted = read(text)?;
    let line = line_end(text);
    let mut block = format!("[{}]", path.join("."));
    for (key, value) in entry {
        block += &format!("{line}{key} = {}", written(value));
    }
    // If the last line has no line ending, the new last line has none either, so that removing the table restores the
    // file exactly.
    let (before, after) = match text {
        _ if mark(text).1.is_empty() => (String::new(), line),
        _ if text.ends_with('\n') => (line.to_owned(), line),
        _ => (format!("{line}{line}"), ""),
    };
    let content = Value::Object(entry.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect());
    place(&mut wanted, path, content);
    checked(format!("{text}{before}{block}{after}"), &wanted)
}

/// Sets one value of an existing table.
pub fn change(text: &str, path: &[&str], key: &str, value: &Value) -> Result<String, EditFault> {
    let mut wanted = read(text)?;
    let root = parse(text)?;
    let found = find(&root, path).ok_or("the table is not there")?;
    let Some(table) = found.value.as_table() else { return Err(format!("`{}` is not a table", path.join("."))) };
    let offset = mark(text).0;
    let (at, new) = match table.iter().find(|(name, _)| name.get_ref() == key) {
        Some((_, there)) => (there.span(), written(value)),
        None => {
            // After its last plain value, otherwise after its header.
            let ends = table.values().filter(|v| v.get_ref().as_table().is_none()).map(|v| v.span().end).max();
            let end = line_of(mark(text).1, ends.unwrap_or(found.key.end)).end;
            (end..end, format!("{}{key} = {}", line_end(text), written(value)))
        }
    };
    let mut edited = text.to_owned();
    edited.replace_range(at.start + offset..at.end + offset, &new);
    let full: Vec<&str> = path.iter().copied().chain([key]).collect();
    place(&mut wanted, &full, value.clone());
    checked(edited, &wanted)
}

/// Removes a table with its lines. None if it does not exist. Comments around it stay.
pub fn remove(text: &str, path: &[&str]) -> Result<Option<String>, EditFault> {
    let mut wanted = read(text)?;
    let root = parse(text)?;
    let Some(found) = find(&root, path) else { return Ok(None) };
    let (offset, body) = mark(text);
    let start = line_of(body, found.key.start).start;
    let end = line_of(body, end_of(found.value).max(found.key.end)).end;
    let newline = |rest: &str| if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
    let back = |to: &str| if to.ends_with("\r\n") { 2 } else { usize::from(to.ends_with('\n')) };
    let after = newline(&body[end..]);
    let (mut from, mut to) = (start, end + after);
    // Also removes one empty line beside it: the one before, otherwise the one after. If the file has no final line
    // ending, the one of the previous line is removed, too.
    let before = &body[..start];
    let blank = back(before) > 0 && before[..start - back(before)].ends_with(['\n']);
    if blank {
        from -= back(before);
        if after == 0 {
            from -= back(&body[..from]);
        }
    } else if start == 0 {
        to += newline(&body[to..]);
    }
    let mut edited = text.to_owned();
    edited.replace_range(from + offset..to + offset, "");
    take(&mut wanted, path);
    let mut reread = read(&edited)?;
    // A parent table that only existed because of this one may disappear with it.
    for level in (1..path.len()).rev() {
        prune(&mut wanted, &path[..level]);
        prune(&mut reread, &path[..level]);
    }
    if reread == wanted { Ok(Some(edited)) } else { Err(unsafe_layout()) }
}

/// A table and the position of its key.
struct Found<'a, 'i> {
    key: Range<usize>,
    value: &'a DeValue<'i>,
}

fn find<'a, 'i>(root: &'a DeTable<'i>, path: &[&str]) -> Option<Found<'a, 'i>> {
    let (last, first) = path.split_last()?;
    let mut table = root;
    for key in first {
        table = table.iter().find(|(name, _)| name.get_ref() == key)?.1.get_ref().as_table()?;
    }
    let (name, value) = table.iter().find(|(name, _)| name.get_ref() == last)?;
    Some(Found { key: name.span(), value: value.get_ref() })
}

/// Where the last key or value in it ends.
fn end_of(value: &DeValue<'_>) -> usize {
    let inner = value.as_table().into_iter().flat_map(|table| table.iter());
    inner.map(|(key, value)| key.span().end.max(value.span().end).max(end_of(value.get_ref()))).max().unwrap_or(0)
}

fn parse(text: &str) -> Result<DeTable<'_>, EditFault> {
    DeTable::parse(mark(text).1).map(toml::Spanned::into_inner).map_err(|e| fault(text, &e))
}

/// The length of the byte order mark, which is not TOML, and the text after it.
fn mark(text: &str) -> (usize, &str) {
    text.strip_prefix('\u{feff}').map_or((0, text), |rest| (text.len() - rest.len(), rest))
}

fn fault(text: &str, error: &toml::de::Error) -> EditFault {
    let line = error.span().map_or(1, |span| mark(text).1[..span.start].matches('\n').count() + 1);
    format!("line {line}: {}", error.message())
}

/// The range of the line at a position, without its line ending.
fn line_of(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |line| line + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    start..start + text[start..end].trim_end_matches('\r').len()
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Strings are escaped as in JSON, which TOML accepts.
fn written(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(written).collect::<Vec<_>>().join(", ")),
        value => value.to_string(),
    }
}

fn checked(edited: String, wanted: &Value) -> Result<String, EditFault> {
    match read(&edited) {
        Ok(reread) if reread == *wanted => Ok(edited),
        _ => Err(unsafe_layout()),
    }
}

fn unsafe_layout() -> EditFault {
    "it is laid out in a way that cannot be edited safely".into()
}

fn place(at: &mut Value, path: &[&str], content: Value) {
    let Some((key, rest)) = path.split_first() else {
        *at = content;
        return;
    };
    if let Value::Object(map) = at {
        place(map.entry(*key).or_insert_with(|| Value::Object(Map::new())), rest, content);
    }
}

fn take(at: &mut Value, path: &[&str]) {
    let Some((last, first)) = path.split_last() else { return };
    let inner = first.iter().try_fold(at, |at, key| at.get_mut(*key));
    if let Some(Value::Object(map)) = inner {
        map.remove(*last);
    }
}

fn prune(at: &mut Value, path: &[&str]) {
    let there = path.iter().try_fold(&*at, |at, key| at.get(*key));
    if there.and_then(Value::as_object).is_some_and(Map::is_empty) {
        take(at, path);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const PATH: [&str; 2] = ["mcp_servers", "lukasa"];
    const BLOCK: &str = "[mcp_servers.lukasa]\ncommand = \"lukasa\"\nargs = [\"mcp\"]\n";

    fn entry() -> [(&'static str, Value); 2] {
        [("command", json!("lukasa")), ("args", json!(["mcp"]))]
    }

    #[test]
    fn a_table_is_added_last_and_can_be_removed() {
        for (before, after) in [
            ("", BLOCK.to_owned()),
            ("# mine\nmodel = \"x\"\n", format!("# mine\nmodel = \"x\"\n\n{BLOCK}")),
            ("a = 1", format!("a = 1\n\n{}", BLOCK.trim_end())),
            ("a = 1\r\n", format!("a = 1\n\n{BLOCK}").replace('\n', "\r\n")),
            ("\u{feff}a = 1\n", format!("\u{feff}a = 1\n\n{BLOCK}")),
            ("[mcp_servers.x]\ncommand = \"x\"\n", format!("[mcp_servers.x]\ncommand = \"x\"\n\n{BLOCK}")),
            ("mcp_servers.x.command = \"x\"\n", format!("mcp_servers.x.command = \"x\"\n\n{BLOCK}")),
        ] {
            let added = add(before, &PATH, &entry()).unwrap();
            assert_eq!(added, after);
            assert_eq!(remove(&added, &PATH).unwrap().unwrap(), before);
        }
    }

    #[test]
    fn a_value_is_changed_in_place() {
        let text = "[mcp_servers.lukasa] # here\ncommand = \"old\" # why\nenv = { A = \"1\" }\n\n[tui]\n";
        let changed = change(text, &PATH, "command", &json!("new")).unwrap();
        assert_eq!(changed, text.replace("old", "new"));
        let changed = change(&changed, &PATH, "args", &json!(["mcp"])).unwrap();
        assert!(changed.contains("# why\nargs = [\"mcp\"]\nenv = { A = \"1\" }\n\n[tui]"), "{changed}");
        let inline = "[mcp_servers]\nlukasa = { command = \"old\" }\n";
        assert_eq!(change(inline, &PATH, "command", &json!("new")).unwrap(), inline.replace("old", "new"));
        assert!(change(inline, &PATH, "args", &json!(["mcp"])).is_err());
        assert!(change("mcp_servers.lukasa = 1", &PATH, "args", &json!([])).is_err());
    }

    #[test]
    fn removing_a_table_removes_its_subtables_and_nothing_else() {
        let text = "# top\n[a]\nb = 1\n\n# about lukasa\n[mcp_servers.lukasa]\ncommand = \"\"\"\n[x]\n\"\"\"\n\
                    # inside\n[mcp_servers.lukasa.env]\nA = \"1\" # kept out\n\n# about c\n[c]\n";
        assert_eq!(remove(text, &PATH).unwrap().unwrap(), "# top\n[a]\nb = 1\n\n# about lukasa\n\n# about c\n[c]\n");
        let first = format!("{BLOCK}\n[c]\n");
        assert_eq!(remove(&first, &PATH).unwrap().unwrap(), "[c]\n");
        let inline = "[mcp_servers]\nlukasa = { command = \"old\" }\nx = {}\n";
        assert_eq!(remove(inline, &PATH).unwrap().unwrap(), "[mcp_servers]\nx = {}\n");
        assert_eq!(remove("[mcp_servers]\n", &PATH).unwrap(), None);
        // Inline tables and split tables cannot be removed without touching others.
        for text in [
            "mcp_servers = { lukasa = { command = \"x\" }, y = {} }\n",
            "[mcp_servers.lukasa]\na = 1\n[b]\n[mcp_servers.lukasa.env]\n",
        ] {
            assert!(remove(text, &PATH).unwrap_err().contains("safely"), "{text}");
        }
        assert!(add("mcp_servers = { y = {} }\n", &PATH, &entry()).unwrap_err().contains("safely"));
        assert!(add("a = 1\nb = \n", &PATH, &entry()).unwrap_err().starts_with("line 2: "));
    }

    fn line() -> impl Strategy<Value = &'static str> {
        prop_oneof![
            Just(""),
            Just("# a comment = [x]"),
            Just("\t  # and another"),
            Just("text = '''\n[mcp_servers.lukasa]\n'''"),
            Just("list = [\n  1, # one\n]"),
            Just("\"odd key\" = 2.5 # half"),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn removing_undoes_adding(
            tables in prop::collection::vec(prop::collection::vec(line(), 0..4), 0..4),
            ends in any::<bool>(),
            crlf in any::<bool>(),
        ) {
            let mut text = String::new();
            for (number, mut lines) in tables.into_iter().enumerate() {
                lines.sort_unstable();
                lines.dedup();
                text += &format!("[t{number}]\n{}\n", lines.join("\n"));
            }
            if !ends && text.ends_with('\n') {
                text.pop();
            }
            if crlf {
                text = text.replace('\n', "\r\n");
            }
            let before = read(&text).unwrap();
            let added = add(&text, &PATH, &entry()).unwrap();
            prop_assert!(added.starts_with(&text));
            let mut wanted = before.clone();
            place(&mut wanted, &PATH, json!({"command": "lukasa", "args": ["mcp"]}));
            prop_assert_eq!(read(&added).unwrap(), wanted);
            prop_assert_eq!(remove(&added, &PATH).unwrap().unwrap(), text);
        }
    }
}
