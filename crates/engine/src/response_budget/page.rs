//! The paged field of a response: the requested list or long text.

use super::cut::{CutRecord, CutStep, ResponseCutter, STEPS};
use super::text::{MARK, parts};
use super::weight::{AnswerFields, FieldWeight};
use serde_json::{Map, Value, json};

/// Texts longer than this, in bytes, are paged.
const LONG: usize = 400;

/// The paged field, removed from its response.
pub struct PagedField {
    pub path: Vec<&'static str>,
    units: Units,
}

enum Units {
    Things(Vec<Value>),
    /// Lines or sentences.
    Parts(Vec<String>),
}

/// Some units of the paged field, ready to be put back.
pub struct PagePart {
    pub value: Value,
    pub record: CutRecord,
}

impl PagedField {
    /// Removes the first declared field that is a list of several items or a long text. Lists of one item are descended
    /// into.
    pub fn take(declared: &AnswerFields, all: &mut Map<String, Value>) -> Option<PagedField> {
        let path = declared.paths().find_map(|path| long(path, all))?;
        let units = match place(all, &path)?.take() {
            Value::Array(things) => Units::Things(things),
            Value::String(text) => Units::Parts(parts(&text).into_iter().flat_map(pieces).map(str::to_owned).collect()),
            _ => return None,
        };
        Some(PagedField { path, units })
    }

    pub fn len(&self) -> usize {
        match &self.units {
            Units::Things(things) => things.len(),
            Units::Parts(parts) => parts.len(),
        }
    }

    pub fn is_text(&self) -> bool {
        matches!(self.units, Units::Parts(_))
    }

    pub fn name(&self) -> String {
        self.path.join(".")
    }

    /// The noun for the units, for messages.
    pub fn units(&self) -> &'static str {
        match &self.units {
            Units::Things(_) => "",
            Units::Parts(parts) if parts[..parts.len() - 1].iter().all(|part| part.ends_with('\n')) => "lines ",
            Units::Parts(_) => "parts ",
        }
    }

    /// The units in `from..to`, after a step of cutting.
    pub fn part(&self, declared: &AnswerFields, step: CutStep, from: usize, to: usize) -> PagePart {
        let mut record = CutRecord::default();
        let value = match &self.units {
            Units::Things(things) => {
                let mut cutting = ResponseCutter::new(declared, &self.path, step);
                let cut = |thing| cutting.value(&self.path, thing, FieldWeight::First);
                let things = things[from..to].iter().map(cut).collect();
                record = cutting.record;
                Value::Array(things)
            }
            Units::Parts(parts) => {
                let mut text = parts[from..to].concat();
                if to < parts.len() {
                    let line = if text.ends_with('\n') { "\n" } else { "" };
                    text = format!("{}{line}{MARK}", text.trim_end());
                }
                Value::String(text)
            }
        };
        PagePart { value, record }
    }

    /// One unit, shortened until it fits.
    pub fn least(&self, declared: &AnswerFields, at: usize, fits: impl Fn(&PagePart) -> bool) -> PagePart {
        let forms = STEPS.iter().map(|step| self.part(declared, *step, at, at + 1));
        forms.into_iter().find(|part| fits(part)).unwrap_or_else(|| {
            let mut record = CutRecord::default();
            record.shortened(&self.name());
            PagePart { value: if self.is_text() { json!(MARK) } else { json!([MARK]) }, record }
        })
    }

    /// Puts a part back at the path of the field.
    pub fn put(&self, all: &mut Map<String, Value>, part: Value) {
        if let Some(place) = place(all, &self.path) {
            *place = part;
        }
    }
}

/// Splits a very long line or sentence into pieces that fit a page.
fn pieces(part: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = part;
    while rest.len() > LONG {
        let most = rest.floor_char_boundary(LONG);
        let word = || rest[..most].rfind(char::is_whitespace).filter(|at| *at > LONG / 2).map(|at| at + 1);
        let at = rest[..most].rfind(". ").filter(|at| *at > LONG / 4).map(|at| at + 2).or_else(word).unwrap_or(most);
        let at = rest.ceil_char_boundary(at);
        let (piece, after) = rest.split_at(at);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// The part of a declared path that leads to a field to be paged, if there is one.
fn long(path: &[&'static str], all: &Map<String, Value>) -> Option<Vec<&'static str>> {
    let mut at = all.get(path[0])?;
    for depth in 1.. {
        while let Value::Array(list) = at {
            match &list[..] {
                [] => return None,
                [only] => at = only,
                _ => return Some(path[..depth].to_vec()),
            }
        }
        match (path.get(depth), at) {
            (Some(name), Value::Object(map)) => at = map.get(*name)?,
            (None, Value::String(text)) if text.len() > LONG => return Some(path.to_vec()),
            _ => return None,
        }
    }
    None
}

fn place<'v>(all: &'v mut Map<String, Value>, path: &[&str]) -> Option<&'v mut Value> {
    let mut at = all.get_mut(path[0])?;
    for depth in 1..=path.len() {
        // A list of one item on the path, but not the paged field itself.
        while depth < path.len() && at.is_array() {
            at = at.as_array_mut()?.first_mut()?;
        }
        if let Some(name) = path.get(depth) {
            at = at.as_object_mut()?.get_mut(*name)?;
        }
    }
    Some(at)
}
