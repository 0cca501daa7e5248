//! The weight of each field of a response: highest for requested fields, lowest for fields that only programs use.

use serde_json::{Map, Value};

/// The weight of a field. Fields with the lowest weight are removed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldWeight {
    /// Ids, hashes, times, scores: for programs and debugging.
    Detail,
    Ordinary,
    /// Declared as the operation's answer.
    Answer,
    /// Needed to use the rest: warnings, notices, counts of lists.
    Kept,
    /// The first declared field, and declared fields beside it or beside or within the paged field.
    First,
}

/// The field with the notice that texts are data. It is kept as long as the texts are.
const NOTICE: &str = "notice";
/// Fields that are kept wherever they are.
const KEPT: [&str; 6] = ["warnings", "warning", "hint", "truncated", "total", "next"];
const DETAILS: [&str; 37] = [
    "id",
    "view",
    "debug",
    "meta",
    "evidence",
    "recorded_at",
    "valid_from",
    "valid_to",
    "since",
    "at",
    "time",
    "timestamp",
    "last_seen",
    "change_summary",
    "truncated_fields",
    "discriminator",
    "role_src",
    "role_dst",
    "thing",
    "provenance",
    "timings",
    "costs",
    "next_steps",
    "token_estimate",
    "token_budget",
    "derivation",
    "hash",
    "digest",
    "score",
    "pagerank",
    "rank",
    "role",
    "version",
    "node_ids",
    "from_version",
    "to_version",
    "previous_cursor",
];
/// Suffixes of names of such fields.
const DETAIL_ENDS: [&str; 7] = ["_id", "_ids", "_hash", "_sha", "_score", "_scores", "_ms"];

/// The answer fields that an operation declares, as paths of field names through objects and lists.
pub struct AnswerFields {
    paths: Vec<Vec<&'static str>>,
    /// Index of the first path that this response has.
    lead: usize,
}

impl AnswerFields {
    pub fn new(answer: &'static [&'static str]) -> AnswerFields {
        AnswerFields { paths: answer.iter().map(|path| path.split('.').collect()).collect(), lead: 0 }
    }

    /// Applies the declaration to a response: the first declared field that it has is never removed.
    pub fn of(mut self, all: &Map<String, Value>) -> AnswerFields {
        self.lead = self.paths.iter().position(|path| is_there(path, all)).unwrap_or(0);
        self
    }

    pub fn paths(&self) -> impl Iterator<Item = &[&'static str]> {
        self.paths.iter().map(Vec::as_slice)
    }

    /// The index of the lead path, else of the first path, that equals the field's path, contains it, or lies within it.
    fn declares(&self, path: &[&str]) -> Option<usize> {
        let says = |own: &Vec<&str>| own.iter().zip(path).all(|(a, b)| a == b);
        let lead = self.paths.get(self.lead).filter(|own| says(own)).map(|_| self.lead);
        lead.or_else(|| self.paths.iter().position(says))
    }

    /// Whether the field leads to, or lies within, the first declared field that the response has.
    pub fn is_lead(&self, path: &[&str]) -> bool {
        self.paths.get(self.lead).is_some_and(|own| own.iter().zip(path).all(|(a, b)| a == b))
    }

    /// Whether the field belongs to the first `most` declared fields of the paged list's items. Fields elsewhere do.
    pub fn is_among(&self, path: &[&str], paged: &[&str], most: usize) -> bool {
        let is_of_items = |own: &[&str]| own.len() > paged.len() && own.starts_with(paged);
        if paged.is_empty() || !is_of_items(path) || self.is_lead(path) {
            return true;
        }
        let mut of_items = self.paths.iter().filter(|own| is_of_items(own)).take(most);
        of_items.any(|own| own.iter().zip(path).all(|(a, b)| a == b))
    }

    /// Whether the field lies within a declared field, where the names of fields have no meaning.
    pub fn covers(&self, path: &[&str]) -> bool {
        self.paths.iter().any(|own| own.len() <= path.len() && own.iter().zip(path).all(|(a, b)| a == b))
    }

    /// The weight of a field. `paged` is the path of the paged field; `above` is the weight of the containing field.
    pub fn weight(&self, path: &[&str], paged: &[&str], above: FieldWeight) -> FieldWeight {
        let name = path.last().copied().unwrap_or_default();
        if let Some(at) = self.declares(path) {
            let beside_lead = self.paths.get(self.lead).is_some_and(|lead| lead.first() == path.first());
            let first = at == self.lead || beside_lead || path.first() == paged.first();
            return if first { FieldWeight::First } else { FieldWeight::Answer };
        }
        if name == NOTICE {
            return FieldWeight::First;
        }
        if KEPT.contains(&name) {
            return FieldWeight::Kept;
        }
        let detail = DETAILS.contains(&name) || DETAIL_ENDS.iter().any(|end| name.ends_with(end));
        if detail || above == FieldWeight::Detail { FieldWeight::Detail } else { FieldWeight::Ordinary }
    }
}

/// Whether a path leads to a value that is not empty, through any item of lists.
fn is_there(path: &[&str], all: &Map<String, Value>) -> bool {
    let Some((name, rest)) = path.split_first() else { return false };
    let Some(value) = all.get(*name) else { return false };
    let things = match value {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    things.iter().any(|thing| match thing {
        Value::Object(map) if !rest.is_empty() => is_there(rest, map),
        Value::Object(map) => !map.is_empty(),
        Value::Null => false,
        Value::String(text) => rest.is_empty() && !text.is_empty(),
        _ => rest.is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_fields_weigh_most_and_fields_for_programs_least() {
        let declared = AnswerFields::new(&["nothing", "items.text", "about"]);
        let all = serde_json::json!({"nothing": [], "items": [{"text": "t"}], "about": "a"});
        let declared = declared.of(all.as_object().unwrap());
        let weight = |path: &[&str]| declared.weight(path, &["items"], FieldWeight::Ordinary);
        assert_eq!(weight(&["items"]), FieldWeight::First);
        assert_eq!(weight(&["items", "text", "id"]), FieldWeight::First);
        assert_eq!(weight(&["about"]), FieldWeight::Answer);
        assert_eq!(declared.weight(&["items", "text"], &["about"], FieldWeight::Ordinary), FieldWeight::First);
        assert_eq!(weight(&["items", "warnings"]), FieldWeight::Kept);
        assert_eq!(weight(&["items", "reasons"]), FieldWeight::Ordinary);
        assert_eq!(weight(&["items", "session_id"]), FieldWeight::Detail);
        assert_eq!(declared.weight(&["meta", "recipe"], &["items"], FieldWeight::Detail), FieldWeight::Detail);
        assert_eq!(declared.weight(&["meta", "warnings"], &["items"], FieldWeight::Detail), FieldWeight::Kept);
    }
}
