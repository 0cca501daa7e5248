//! What an answer can lose: first what nobody misses, then long texts; never what names a thing.

use serde_json::{Map, Value};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    All,
    /// Without numbers and times that only programs and the curious want.
    Plain,
    /// Without long texts too.
    Brief,
}

/// Told where only what programs want went.
pub const DETAILS: &str = "without details";
/// Gone first.
const LOW: [&str; 36] = [
    "view",
    "debug",
    "meta",
    "evidence",
    "version_id",
    "from_version",
    "to_version",
    "recorded_at",
    "valid_from",
    "valid_to",
    "change_summary",
    "reasons",
    "explanation",
    "truncated_fields",
    "path_id",
    "object_id",
    "ppr_score",
    "discriminator",
    "role_src",
    "role_dst",
    "thing",
    "provenance",
    "timings",
    "trace_id",
    "latency_ms",
    "elapsed_ms",
    "took_ms",
    "execution_ms",
    "centrality_score",
    "costs",
    "next_steps",
    "token_estimate",
    "token_budget",
    "relationships_ids",
    "content_hash",
    "derivation",
];
/// Gone next.
const MEDIUM: [&str; 10] = [
    "code",
    "content",
    "text",
    "properties",
    "citations",
    "path_summaries",
    "description",
    "diagnostics",
    "labels",
    "doc",
];
/// What names a thing, by which its id can go.
const NAMES: [&str; 4] = ["key", "ref", "name", "symbol_name"];
/// Longest text of a field in brief, in characters.
const TEXT: usize = 160;

/// Keeps what the level keeps; `told` says in words what went.
pub fn prune(all: &Map<String, Value>, level: Level, told: &mut Vec<String>) -> Map<String, Value> {
    if level == Level::All {
        return all.clone();
    }
    let mut pruning = Pruning { level, details: false, gone: vec![], cut: vec![] };
    let kept = pruning.object(all);
    if pruning.details {
        told.push(DETAILS.into());
    }
    if !pruning.gone.is_empty() {
        told.push(format!("without {}", pruning.gone.join(", ")));
    }
    if !pruning.cut.is_empty() {
        told.push(format!("shortened {}", pruning.cut.join(", ")));
    }
    kept
}

struct Pruning {
    level: Level,
    /// Something went that only programs and the curious want.
    details: bool,
    gone: Vec<String>,
    cut: Vec<String>,
}

impl Pruning {
    fn object(&mut self, all: &Map<String, Value>) -> Map<String, Value> {
        let is_named = all.keys().any(|key| NAMES.contains(&key.as_str()));
        let mut kept = Map::new();
        for (name, value) in all {
            let low = LOW.contains(&name.as_str()) || (is_named && name == "id");
            let medium = self.level == Level::Brief && MEDIUM.contains(&name.as_str());
            if low || medium {
                self.details |= low;
                if medium && !self.gone.contains(name) {
                    self.gone.push(name.clone());
                }
                continue;
            }
            let value = self.value(name, value);
            kept.insert(name.clone(), value);
        }
        kept
    }

    fn value(&mut self, name: &str, value: &Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(self.object(map)),
            Value::Array(all) => Value::Array(all.iter().map(|value| self.value(name, value)).collect()),
            Value::String(text)
                if self.level == Level::Brief && !NAMES.contains(&name) && text.chars().count() > TEXT =>
            {
                if !self.cut.iter().any(|cut| cut == name) {
                    self.cut.push(name.to_owned());
                }
                Value::String(text.chars().take(TEXT).chain(['…']).collect())
            }
            other => other.clone(),
        }
    }
}

/// The field with the longest list, by what it takes to write it.
pub fn longest(all: &Map<String, Value>) -> Option<String> {
    let lists = all.iter().filter_map(|(name, value)| Some((name, value.as_array().filter(|list| !list.is_empty())?)));
    lists
        .map(|(name, list)| (list.iter().map(|item| item.to_string().len()).sum::<usize>(), name))
        .max()
        .map(|(_, n)| n.clone())
}

/// Cuts every list but the longest to so many entries.
pub fn cap(all: Map<String, Value>, most: usize, told: &mut Vec<String>) -> Map<String, Value> {
    let whole = longest(&all);
    let mut cut = Vec::new();
    let all = all
        .into_iter()
        .map(|(name, value)| {
            let value = match value {
                Value::Array(list) if Some(&name) == whole.as_ref() => {
                    Value::Array(list.into_iter().map(|item| capped(&name, item, most, &mut cut)).collect())
                }
                other => capped(&name, other, most, &mut cut),
            };
            (name, value)
        })
        .collect();
    if !cut.is_empty() {
        told.push(format!("at most {most} of {}", cut.join(", ")));
    }
    all
}

fn capped(name: &str, value: Value, most: usize, cut: &mut Vec<String>) -> Value {
    match value {
        Value::Array(list) => {
            if list.len() > most && !cut.iter().any(|own| own == name) {
                cut.push(name.to_owned());
            }
            Value::Array(list.into_iter().take(most).map(|item| capped(name, item, most, cut)).collect())
        }
        Value::Object(map) => Value::Object(
            map.into_iter().map(|(name, value)| (name.clone(), capped(&name, value, most, cut))).collect(),
        ),
        other => other,
    }
}
