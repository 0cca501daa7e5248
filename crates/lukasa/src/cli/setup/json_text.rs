//! Edits JSON with comments as text: sets or removes one member and leaves every other byte alone.

mod parse;

use parse::{JsonDocument, JsonKind, JsonMember, JsonNode};
use serde_json::{Map, Value};
use std::ops::Range;

/// Why a text cannot be read or edited.
pub type EditFault = String;

/// A value to insert; unlike in a `Value`, members keep their order.
#[derive(Clone, Debug)]
pub enum NewValue<'a> {
    Object(Vec<(&'a str, NewValue<'a>)>),
    Plain(Value),
}

/// Parses the text. An empty text is an empty object.
pub fn read(text: &str) -> Result<Value, EditFault> {
    Ok(parse::document(text)?.root.map_or_else(|| Value::Object(Map::new()), |root| root.value()))
}

/// Whether the text contains only an empty object.
pub fn is_bare(text: &str) -> bool {
    parse::document(text).is_ok_and(|document| {
        let empty = document.root.as_ref().is_none_or(|root| matches!(&root.kind, JsonKind::Object(m) if m.is_empty()));
        empty && document.comments.is_empty()
    })
}

/// Sets the member at `path`, creating missing objects on the way.
pub fn set(text: &str, path: &[&str], piece: &NewValue<'_>) -> Result<String, EditFault> {
    let document = parse::document(text)?;
    let layout = Layout::of(text, &document);
    let Some(root) = &document.root else {
        if !document.comments.is_empty() {
            return Err("it contains only comments".into());
        }
        // A byte order mark stays at the start.
        let mark = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
        return Ok(format!("{mark}{}{}", layout.block(&nested(path, piece), ""), layout.line));
    };
    let mut at = root;
    let mut splices = Vec::new();
    for (place, key) in path.iter().enumerate() {
        match member(at, key)? {
            Some(found) if place + 1 == path.len() => {
                let new = layout.block(piece, indent_of(text, found.key_at));
                splices.push((found.value.span.clone(), new));
            }
            Some(found) => at = &found.value,
            None => {
                splices = layout.insert(text, &document, at, key, &nested(&path[place + 1..], piece));
                break;
            }
        }
    }
    let mut wanted = root.value();
    put(&mut wanted, path, value_of(piece));
    checked(apply(text, splices), &wanted)
}

/// Removes the member at `path`, and objects that become empty. None if it does not exist.
pub fn remove(text: &str, path: &[&str]) -> Result<Option<String>, EditFault> {
    let document = parse::document(text)?;
    let Some(root) = &document.root else { return Ok(None) };
    let mut chain: Vec<(&JsonNode, &JsonMember)> = Vec::new();
    let mut at = root;
    for key in path {
        let Some(found) = member(at, key)? else { return Ok(None) };
        chain.push((at, found));
        at = &found.value;
    }
    let alone = |object: &JsonNode| object.members().len() == 1 && document.comments_of(object).next().is_none();
    let mut level = chain.len() - 1;
    while level > 0 && alone(chain[level].0) {
        level -= 1;
    }
    let mut wanted = root.value();
    take(&mut wanted, &path[..=level]);
    let (object, gone) = chain[level];
    let splices = if alone(object) {
        vec![(object.span.start + 1..object.span.end - 1, String::new())]
    } else {
        cut(text, &document, object, gone)
    };
    checked(apply(text, splices), &wanted).map(Some)
}

/// The member of an object by its name. An error if there are two.
fn member<'a>(node: &'a JsonNode, key: &str) -> Result<Option<&'a JsonMember>, EditFault> {
    let JsonKind::Object(members) = &node.kind else {
        return Err(format!("the parent of `{key}` is not an object"));
    };
    let mut found = members.iter().filter(|m| m.key == key);
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(format!("`{key}` occurs twice")),
        (first, None) => Ok(first),
    }
}

type Splices = Vec<(Range<usize>, String)>;

/// What is removed with a member: its line if it is alone there, and a comma that is no longer needed.
fn cut(text: &str, document: &JsonDocument, object: &JsonNode, gone: &JsonMember) -> Splices {
    let members = object.members();
    let place = members.iter().position(|m| m.key_at == gone.key_at).unwrap_or(0);
    let last = place + 1 == members.len();
    let mut end = gone.comma.map_or(gone.value.span.end, |comma| comma + 1);
    let mut splices = Vec::new();
    if let (true, None, Some(before)) = (last, gone.comma, place.checked_sub(1).map(|p| &members[p]))
        && let Some(comma) = before.comma
    {
        splices.push((comma..comma + 1, String::new()));
    }
    let rest = text[end..].split('\n').next().unwrap_or_default();
    let line = text[..gone.key_at].rfind('\n');
    let first = line.filter(|line| text[line + 1..gone.key_at].trim().is_empty());
    // The rest of the line must not end up behind `//`.
    let behind = |line: usize| document.comments.iter().any(|c| c.end == line && text[c.clone()].starts_with("//"));
    let start = match first.map(|line| if text[..line].ends_with('\r') { line - 1 } else { line }) {
        Some(line) if rest.trim().is_empty() || (last && !behind(line)) => line,
        _ if last => text[..gone.key_at].trim_end_matches([' ', '\t']).len(),
        _ => {
            end += rest.len() - rest.trim_start_matches([' ', '\t']).len();
            gone.key_at
        }
    };
    splices.push((start..end, String::new()));
    splices
}

fn apply(text: &str, mut splices: Splices) -> String {
    splices.sort_by_key(|(range, _)| range.start);
    let mut edited = text.to_owned();
    for (range, new) in splices.into_iter().rev() {
        edited.replace_range(range, &new);
    }
    edited
}

/// Refuses an edit whose result is not the wanted value.
fn checked(edited: String, wanted: &Value) -> Result<String, EditFault> {
    match read(&edited) {
        Ok(reread) if reread == *wanted => Ok(edited),
        _ => Err("it is laid out in a way that cannot be edited safely".into()),
    }
}

fn nested<'a>(path: &[&'a str], piece: &NewValue<'a>) -> NewValue<'a> {
    path.iter().rev().fold(piece.clone(), |inner, key| NewValue::Object(vec![(key, inner)]))
}

fn value_of(piece: &NewValue<'_>) -> Value {
    match piece {
        NewValue::Object(members) => {
            Value::Object(members.iter().map(|(k, v)| ((*k).to_owned(), value_of(v))).collect())
        }
        NewValue::Plain(value) => value.clone(),
    }
}

fn put(at: &mut Value, path: &[&str], value: Value) {
    let Some((key, rest)) = path.split_first() else {
        *at = value;
        return;
    };
    if let Value::Object(map) = at {
        put(map.entry(*key).or_insert_with(|| Value::Object(Map::new())), rest, value);
    }
}

fn take(at: &mut Value, path: &[&str]) {
    match (at, path) {
        (Value::Object(map), [key]) => {
            map.remove(*key);
        }
        (Value::Object(map), [key, rest @ ..]) => {
            if let Some(inner) = map.get_mut(*key) {
                take(inner, rest);
            }
        }
        _ => {}
    }
}

/// The indentation of the line.
fn indent_of(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |line| line + 1)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The white space before a position, if nothing else precedes it on its line.
fn first_on_line(text: &str, at: usize) -> Option<&str> {
    let before = &text[text[..at].rfind('\n')? + 1..at];
    before.trim_matches([' ', '\t']).is_empty().then_some(before)
}

/// The formatting of a file.
struct Layout<'a> {
    /// The indentation of one level.
    unit: &'a str,
    /// The line ending.
    line: &'static str,
}

impl<'a> Layout<'a> {
    fn of(text: &'a str, document: &JsonDocument) -> Layout<'a> {
        let first = document.root.as_ref().and_then(|root| root.members().first());
        let unit = first.and_then(|member| first_on_line(text, member.key_at)).filter(|unit| !unit.is_empty());
        Layout { unit: unit.unwrap_or("  "), line: if text.contains("\r\n") { "\r\n" } else { "\n" } }
    }

    /// Inserts a new last member into an object.
    fn insert(
        &self,
        text: &str,
        document: &JsonDocument,
        object: &JsonNode,
        key: &str,
        piece: &NewValue<'_>,
    ) -> Splices {
        let (open, close) = (object.span.start + 1, object.span.end - 1);
        let key = Value::from(key).to_string();
        let base = indent_of(text, object.span.start);
        let on_own_line = |indent: &str| format!("{}{indent}{key}: {}", self.line, self.block(piece, indent));
        let Some(last) = object.members().last() else {
            let inner = format!("{base}{}", self.unit);
            return match document.comments_of(object).last() {
                None => vec![(open..close, format!("{}{}{base}", on_own_line(&inner), self.line))],
                Some(comment) if text[comment.end..close].contains('\n') => {
                    vec![(comment.end..comment.end, on_own_line(&inner))]
                }
                Some(comment) => vec![(comment.end..comment.end, format!(" {key}: {}", inline(piece)))],
            };
        };
        let end = last.value.span.end;
        let first = object.members().first().map_or(open, |member| member.key_at);
        if !text[open..first].contains('\n') {
            return match last.comma {
                Some(comma) => vec![(comma + 1..comma + 1, format!(" {key}: {},", inline(piece)))],
                None => vec![(end..end, format!(", {key}: {}", inline(piece)))],
            };
        }
        let indent = first_on_line(text, last.key_at).or_else(|| first_on_line(text, first)).unwrap_or(base);
        // A comment on the line of the last member stays there.
        let mut after = last.comma.map_or(end, |comma| comma + 1);
        for comment in document.comments_of(object) {
            if comment.start >= after && !text[after..comment.start].contains('\n') {
                after = comment.end;
            }
        }
        let new = on_own_line(indent);
        match last.comma {
            Some(_) => vec![(after..after, format!("{new},"))],
            None if after == end => vec![(end..end, format!(",{new}"))],
            None => vec![(end..end, ",".into()), (after..after, new)],
        }
    }

    /// Formats objects with one member per line.
    fn block(&self, piece: &NewValue<'_>, indent: &str) -> String {
        match piece {
            NewValue::Object(members) if !members.is_empty() => {
                let inner = format!("{indent}{}", self.unit);
                let lines: Vec<_> = members
                    .iter()
                    .map(|(key, piece)| format!("{inner}{}: {}", Value::from(*key), self.block(piece, &inner)))
                    .collect();
                let between = format!(",{}", self.line);
                format!("{{{}{}{}{indent}}}", self.line, lines.join(&between), self.line)
            }
            piece => inline(piece),
        }
    }
}

fn inline(piece: &NewValue<'_>) -> String {
    match piece {
        NewValue::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(key, piece)| format!("{}: {}", Value::from(*key), inline(piece))).collect();
            format!("{{{}}}", members.join(", "))
        }
        NewValue::Plain(Value::Array(values)) => {
            format!("[{}]", values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
        }
        NewValue::Plain(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests;
