//! Removes parts of a response that exceeds its budget, step by step, and records what was removed.

use super::text::shorten;
use super::weight::{AnswerFields, FieldWeight};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// No limit.
pub const ALL: usize = usize::MAX;
/// Objects with more numbers than this are tables, which are shortened like lists.
const TABLE: usize = 16;
/// Maximum number of removed fields that are listed by name; the others are counted.
const NAMED: usize = 4;

/// Fields that name an item, so that its id can be removed.
const NAMES: [&str; 6] = ["key", "ref", "name", "symbol_name", "title", "other"];

/// Fields that lead to something, and lead nowhere unless they are whole.
const NAMES_WHOLE: [&str; 10] =
    ["key", "ref", "name", "symbol_name", "file", "path", "id", "from", "to", "entry_point"];

/// Which parts one step removes.
#[derive(Clone, Copy, Debug)]
pub struct CutStep {
    /// Fields with less weight than this are removed.
    pub least: FieldWeight,
    /// Number of declared fields of the paged list's items that are kept, in the order in which they are declared.
    pub fields: usize,
    /// Maximum characters of names and paths.
    pub names: usize,
    /// Maximum characters of texts and maximum length of lists outside of the answer fields.
    pub other: (usize, usize),
    /// The same within the answer fields.
    pub answer: (usize, usize),
    /// Number of items of the paged list that the first page must have for this step to suffice.
    pub wanted: usize,
}

impl CutStep {
    /// Whether it leaves out fields of items.
    pub fn is_narrow(&self) -> bool {
        self.fields < ALL
    }
}

const fn step(least: FieldWeight, other: (usize, usize), answer: (usize, usize), wanted: usize) -> CutStep {
    CutStep { least, fields: ALL, names: ALL, other, answer, wanted }
}

/// A step for little room: fewer fields for each item, so that there are several items.
const fn narrow(least: FieldWeight, fields: usize, names: usize, chars: usize, wanted: usize) -> CutStep {
    CutStep { least, fields, names, other: (chars, 1), answer: (chars, 1), wanted }
}

/// From removing nothing to the least that still answers.
pub const STEPS: [CutStep; 20] = [
    step(FieldWeight::Detail, (ALL, ALL), (ALL, ALL), ALL),
    step(FieldWeight::Ordinary, (ALL, ALL), (ALL, ALL), ALL),
    step(FieldWeight::Ordinary, (240, 10), (ALL, 10), ALL),
    step(FieldWeight::Ordinary, (160, 5), (ALL, 5), 5),
    step(FieldWeight::Ordinary, (120, 3), (480, 5), 5),
    step(FieldWeight::Answer, (160, 3), (480, 5), 5),
    step(FieldWeight::Answer, (120, 2), (320, 3), 4),
    step(FieldWeight::Answer, (80, 1), (200, 2), 3),
    step(FieldWeight::Answer, (80, 1), (120, 1), 3),
    narrow(FieldWeight::Answer, 5, ALL, 80, 3),
    narrow(FieldWeight::Answer, 4, ALL, 60, 3),
    narrow(FieldWeight::Answer, 3, ALL, 40, 3),
    narrow(FieldWeight::Kept, 4, ALL, 80, 3),
    narrow(FieldWeight::Kept, 3, ALL, 40, 3),
    narrow(FieldWeight::Answer, 4, ALL, 80, 1),
    narrow(FieldWeight::Answer, 3, 240, 40, 1),
    narrow(FieldWeight::Answer, 3, 40, 12, 1),
    narrow(FieldWeight::Kept, 3, 240, 40, 1),
    narrow(FieldWeight::First, 3, 40, 40, 1),
    narrow(FieldWeight::First, 3, 12, 12, 1),
];

/// What was removed, by the paths of fields.
#[derive(Clone, Debug, Default)]
pub struct CutRecord {
    details: bool,
    gone: BTreeSet<String>,
    shortened: BTreeSet<String>,
    /// Items returned, and items in total; lists within lists are added up.
    lists: BTreeMap<String, (usize, usize)>,
}

/// The note if only fields for programs were removed.
pub const DETAILS: &str = "without details";

impl CutRecord {
    pub fn shortened(&mut self, path: &str) {
        self.shortened.insert(path.to_owned());
    }

    fn list(&mut self, path: &[&str], given: usize, all: usize) {
        let entry = self.lists.entry(path.join(".")).or_default();
        *entry = (entry.0 + given, entry.1 + all);
    }

    pub fn add(&mut self, other: &CutRecord) {
        self.details |= other.details;
        self.gone.extend(other.gone.iter().cloned());
        self.shortened.extend(other.shortened.iter().cloned());
        for (path, (given, all)) in &other.lists {
            let entry = self.lists.entry(path.clone()).or_default();
            *entry = (entry.0 + given, entry.1 + all);
        }
    }

    /// Whether something was removed that a reader may miss.
    pub fn is_missed(&self) -> bool {
        !self.gone.is_empty() || !self.shortened.is_empty() || !self.lists.is_empty()
    }

    /// Describes what was removed, in as few words as possible.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.details {
            words.push(DETAILS.to_owned());
        }
        for (what, names) in [("without", &self.gone), ("shortened", &self.shortened)] {
            if !names.is_empty() {
                words.push(format!("{what} {}", listed(names)));
            }
        }
        let lists = self.lists.iter().take(NAMED);
        words.extend(lists.map(|(path, (given, all))| format!("{path}: {given} of {all}")));
        if self.lists.len() > NAMED {
            words.push(format!("{} more lists in part", self.lists.len() - NAMED));
        }
        words
    }
}

fn listed(names: &BTreeSet<String>) -> String {
    // Fields below a listed field need not be listed.
    let below = |name: &str| name.match_indices('.').any(|(at, _)| names.contains(&name[..at]));
    let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| !below(name)).collect();
    let more = names.len().saturating_sub(NAMED);
    let first = names[..names.len().min(NAMED)].join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

/// Applies one step to a response.
pub struct ResponseCutter<'a> {
    pub declared: &'a AnswerFields,
    /// The path of the paged field, which is not shortened here.
    pub paged: &'a [&'static str],
    pub step: CutStep,
    pub record: CutRecord,
    /// Names of the objects around the current field: depth, field and value.
    above: Vec<(usize, String, String)>,
}

impl<'a> ResponseCutter<'a> {
    pub fn new(declared: &'a AnswerFields, paged: &'a [&'static str], step: CutStep) -> ResponseCutter<'a> {
        ResponseCutter { declared, paged, step, record: CutRecord::default(), above: vec![] }
    }

    pub fn object(&mut self, path: &[&str], all: &Map<String, Value>, above: FieldWeight) -> Map<String, Value> {
        // Below a declared field, every field is data.
        let covered = !path.is_empty() && self.declared.covers(path);
        let table = if covered { self.items(path).max(4) } else { TABLE };
        let is_table = path != self.paged && all.len() > table && (covered || all.values().all(Value::is_number));
        let is_named = all.keys().any(|name| NAMES.contains(&name.as_str()));
        let most = if is_table { self.items(path) } else { ALL };
        let mut kept = Map::new();
        let mut of_fields = 0;
        let outer = self.above.len();
        let named = all.iter().filter(|(name, _)| NAMES_WHOLE.contains(&name.as_str()) || name.ends_with("_id"));
        self.above
            .extend(named.filter_map(|(name, value)| Some((path.len(), name.clone(), value.as_str()?.to_owned()))));
        for (name, value) in all {
            let mut below = path.to_vec();
            below.push(name);
            let mut weight = self.declared.weight(&below, self.paged, above);
            if name == "id" && !is_named && weight < above {
                weight = above.min(FieldWeight::Kept);
            }
            if weight == FieldWeight::First && !self.declared.is_among(&below, self.paged, self.step.fields) {
                weight = FieldWeight::Answer;
            }
            if self.repeats(path.len(), name, value) && !self.declared.is_lead(&below) {
                weight = FieldWeight::Detail;
            }
            // That a declared list has no items is an answer, and costs next to nothing.
            let is_answer = weight == FieldWeight::Answer && is_empty(value);
            if weight < self.step.least && !is_answer && !self.leads(value, &below, weight) {
                match weight {
                    FieldWeight::Detail => self.record.details = true,
                    _ => drop(self.record.gone.insert(below.join("."))),
                }
                continue;
            }
            of_fields += 1;
            if kept.len() >= most {
                continue;
            }
            let value = self.value(&below, value, weight);
            if !value.as_object().is_some_and(Map::is_empty) || all[name].as_object().is_some_and(Map::is_empty) {
                kept.insert(name.clone(), value);
            }
        }
        self.above.truncate(outer);
        if of_fields > most {
            self.record.list(path, most, of_fields);
        }
        kept
    }

    /// Whether a title or name is the end of another name of the same item: `f` beside `a.rs::f`.
    fn repeats(&self, depth: usize, name: &str, value: &Value) -> bool {
        let (Some(text), true) = (value.as_str(), ["title", "name"].contains(&name)) else { return false };
        self.above.iter().any(|(at, own, whole)| {
            let is_itself = *at == depth && own == name;
            // The name itself stays if only as long a name repeats it.
            !is_itself
                && whole.len() > text.len()
                && whole.ends_with(text)
                && whole[..whole.len() - text.len()].ends_with([':', '/'])
        })
    }

    /// Whether a field that could be removed contains one that must be kept, such as warnings.
    fn leads(&self, value: &Value, path: &[&str], above: FieldWeight) -> bool {
        let Value::Object(map) = value else { return false };
        map.iter().any(|(name, value)| {
            let mut below = path.to_vec();
            below.push(name);
            let weight = self.declared.weight(&below, self.paged, above);
            (weight >= self.step.least && !is_empty(value)) || self.leads(value, &below, weight)
        })
    }

    pub fn value(&mut self, path: &[&str], value: &Value, weight: FieldWeight) -> Value {
        match value {
            Value::Object(map) => Value::Object(self.object(path, map, weight)),
            Value::Array(all) => {
                let most = if path == self.paged { ALL } else { self.items(path) };
                if all.len() > most {
                    self.record.list(path, most, all.len());
                }
                Value::Array(all.iter().take(most).map(|value| self.value(path, value, weight)).collect())
            }
            Value::String(text) => match shorten(text, self.chars(path)) {
                Some(short) => {
                    self.record.shortened(&path.join("."));
                    Value::String(short)
                }
                None => value.clone(),
            },
            other => other.clone(),
        }
    }

    fn chars(&self, path: &[&str]) -> usize {
        let name = path.last().copied().unwrap_or_default();
        if NAMES_WHOLE.contains(&name) || name.ends_with("_id") {
            return self.step.names;
        }
        if self.declared.covers(path) { self.step.answer.0 } else { self.step.other.0 }
    }

    fn items(&self, path: &[&str]) -> usize {
        let weight = self.declared.weight(path, self.paged, FieldWeight::Ordinary);
        if matches!(weight, FieldWeight::Answer | FieldWeight::First) { self.step.answer.1 } else { self.step.other.1 }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
