//! What is wrong with a fitted answer, found by comparing it with the whole one.

use serde_json::Value;

/// Items of the requested list that an answer must have at least, or all if there are fewer.
const ROWS: usize = 3;
/// Declared fields that each of them must have, in the order in which they are declared.
const FIELDS: usize = 3;
/// Marks where something was left out.
const MARK: char = '…';
/// Fields whose values lead nowhere unless they are complete.
const NAMES: [&str; 22] = [
    "ref",
    "key",
    "id",
    "file",
    "path",
    "name",
    "symbol_name",
    "entry_point",
    "task_id",
    "claim_id",
    "target_id",
    "node_id",
    "entity_id",
    "episode_id",
    "decision_id",
    "context_graph_id",
    "project",
    "branch",
    "tag",
    "tool",
    "from",
    "to",
];
/// Fields that an answer has whenever the whole answer has them.
const KEPT: [&str; 5] = ["warnings", "warning", "hint", "total", "next"];

/// The values at a declared path.
pub fn at<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut here = vec![value];
    for name in path.split('.') {
        let inside = |value: &'a Value| match value {
            Value::Array(list) => list.iter().collect(),
            one => vec![one],
        };
        here = here.into_iter().flat_map(inside).filter_map(|value| value.get(name)).collect();
    }
    here
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty() && text != "…",
        Value::Array(list) => list.iter().any(is_something),
        Value::Object(map) => map.values().any(is_something),
        Value::Bool(true) => true,
    }
}

fn has(value: &Value, path: &str) -> bool {
    at(value, path).into_iter().any(is_something)
}

/// Whether the whole answer has none of the declared fields.
pub fn is_vacuous(declared: &[&str], whole: &Value) -> bool {
    !declared.iter().any(|path| has(whole, path))
}

/// What is wrong with the first page of an answer, in words.
pub struct Faults<'a> {
    pub declared: &'a [&'static str],
    /// Whether a next page can be requested.
    pub pages: bool,
    /// The answer is the beginning of the whole answer; otherwise the operation has chosen itself what fits.
    pub is_beginning: bool,
}

impl Faults<'_> {
    pub fn of(&self, whole: &Value, shaped: &Value) -> Vec<String> {
        let data = &shaped["data"];
        let mut faults = Vec::new();
        if shaped["summary"].as_str().is_none_or(|summary| summary.trim().is_empty()) {
            faults.push("no summary".to_owned());
        }
        self.check_rows(whole, data, &mut faults);
        let mut comparing = Comparing { pages: self.pages, left_out: left_out(shaped), faults };
        if self.is_beginning {
            comparing.object("", whole, data);
        }
        comparing.kept("", whole, data);
        // An operation that chooses what fits counts what it left out; a larger profile has that.
        let is_counted = !self.is_beginning && data["left_out"].as_u64().is_some_and(|n| n > 0);
        let ends = has_cursor(shaped) || shaped["nextPage"].is_u64() || is_counted;
        if whole["next_cursor"].is_string() && !ends {
            comparing.faults.push("nothing leads to the rest".to_owned());
        }
        comparing.faults
    }

    /// The first declared field that the whole answer has, with the declared fields beside it, for as many items as an
    /// agent needs to choose from.
    fn check_rows(&self, whole: &Value, data: &Value, faults: &mut Vec<String>) {
        let Some(lead) = self.declared.iter().find(|path| has(whole, path)) else { return };
        if !has(data, lead) {
            faults.push(format!("`{lead}` is missing"));
            return;
        }
        let Some((list, rows)) = listed(whole, lead) else { return };
        let Some(given) = at(data, &list).first().and_then(|list| list.as_array()) else { return };
        // An operation that fits its answer itself reports how much it left out, and weighs its lists against each other.
        let least = if self.is_beginning { ROWS } else { 1 };
        if given.len() < rows.len().min(least) {
            faults.push(format!("`{list}` has {} of {} items", given.len(), rows.len()));
        }
        let beside = self.declared.iter().filter_map(|path| path.strip_prefix(&format!("{list}.")));
        for path in beside {
            let is_name = |path: &str| matches!(path.rsplit('.').next(), Some("title" | "name"));
            let missing = rows.iter().zip(given).position(|(whole, given)| {
                let repeated = is_name(path) && at(whole, path).iter().any(|text| is_end_of_name(text, given));
                has(whole, path) && !has(given, path) && !repeated
            });
            // An operation declares first what an agent needs to go on; the rest of an item may be left out.
            let is_first = self
                .declared
                .iter()
                .filter(|own| own.starts_with(&format!("{list}.")))
                .take(FIELDS)
                .any(|own| own.ends_with(path));
            if let Some(at) = missing.filter(|_| self.is_beginning && is_first) {
                faults.push(format!("`{path}` of item {at} of `{list}` is missing"));
            }
        }
    }
}

/// Whether a text is the end of a name that the item has.
fn is_end_of_name(text: &Value, item: &Value) -> bool {
    let ends =
        |value: &Value| matches!((value.as_str(), text.as_str()), (Some(name), Some(text)) if name.ends_with(text));
    item.as_object().is_some_and(|map| map.values().any(ends))
}

fn has_cursor(shaped: &Value) -> bool {
    shaped["nextCursor"].is_string()
}

/// What an answer reports as left out.
fn left_out(shaped: &Value) -> Vec<String> {
    shaped["truncated"].as_array().into_iter().flatten().filter_map(|words| words.as_str().map(str::to_owned)).collect()
}

/// The first list of several items on a path.
fn listed<'a>(whole: &'a Value, path: &str) -> Option<(String, &'a [Value])> {
    let names: Vec<&str> = path.split('.').collect();
    (1..=names.len()).find_map(|depth| {
        let list = names[..depth].join(".");
        match at(whole, &list)[..] {
            [Value::Array(rows)] if rows.len() > 1 => Some((list, rows.as_slice())),
            _ => None,
        }
    })
}

/// The comparison of all fields.
struct Comparing {
    pages: bool,
    left_out: Vec<String>,
    faults: Vec<String>,
}

impl Comparing {
    fn object(&mut self, path: &str, whole: &Value, given: &Value) {
        for (name, given) in given.as_object().into_iter().flatten() {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.value(&below, &whole[name], given);
        }
    }

    fn value(&mut self, path: &str, whole: &Value, given: &Value) {
        match (whole, given) {
            (Value::Object(_), Value::Object(_)) => self.object(path, whole, given),
            (Value::Array(all), Value::Array(some)) => {
                if some.len() < all.len() && !self.reports(path, all.len()) {
                    self.faults.push(format!("`{path}` has {} of {}, unreported", some.len(), all.len()));
                }
                if some.is_empty() && !all.is_empty() {
                    self.faults.push(format!("`{path}` is empty"));
                }
                all.iter().zip(some).for_each(|(whole, given)| self.value(path, whole, given));
            }
            (Value::String(whole), Value::String(given)) if whole != given => self.text(path, whole, given),
            _ if whole == given => {}
            _ => self.faults.push(format!("`{path}` is {given} instead of {whole}")),
        }
    }

    /// Whether it is reported that a list is in part, by its name or among others, and that there is a way to the rest.
    fn reports(&self, path: &str, all: usize) -> bool {
        let is_way = |words: &String| words.starts_with("profile ") || words.contains("another operation");
        let way = self.pages || self.left_out.iter().any(is_way);
        let total = format!(" of {all}");
        // Lists within the items of a list are added up.
        let names =
            |words: &String| words.starts_with(&format!("{path}: ")) && (path.contains('.') || words.ends_with(&total));
        way && self.left_out.iter().any(|words| names(words) || words.contains("more lists in part"))
    }

    /// A shortened text is the beginning of the whole one, up to a sentence, a line or at least a word, and ends with a
    /// mark.
    fn text(&mut self, path: &str, whole: &str, given: &str) {
        let Some(kept) = given.strip_suffix(MARK) else {
            self.faults.push(format!("`{path}` has no mark: {given:?}"));
            return;
        };
        let kept = kept.trim_end();
        let name = path.rsplit('.').next().unwrap_or_default();
        if NAMES.contains(&name) {
            self.faults.push(format!("`{path}` is cut: {given:?}"));
        }
        let Some(rest) = whole.strip_prefix(kept) else {
            self.faults.push(format!("`{path}` is not what it begins with: {given:?}"));
            return;
        };
        let is_word = rest.starts_with(char::is_whitespace);
        let is_sentence = kept.ends_with(['.', '!', '?', ':', ';', '"', '\'', ')', '`']) || rest.starts_with('\n');
        // Within the first sentence or line there is no better place than a word.
        let is_first = !kept.contains(". ") && !kept.contains('\n');
        // A first word that takes most of the text is cut itself.
        let is_long_word = kept.rfind(char::is_whitespace).is_none_or(|at| at <= kept.len() / 2);
        if !((is_word || is_long_word) && (is_sentence || is_first)) {
            self.faults.push(format!("`{path}` ends amid a sentence: {given:?}"));
        }
    }

    /// Warnings, hints and totals are never left out.
    fn kept(&mut self, path: &str, whole: &Value, given: &Value) {
        for (name, whole) in whole.as_object().into_iter().flatten() {
            if name == "summary" || name == "view" {
                continue;
            }
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if KEPT.contains(&name.as_str()) && is_something(whole) && !is_something(&given[name]) {
                self.faults.push(format!("`{below}` is missing"));
            }
            if whole.is_object() {
                self.kept(&below, whole, &given[name]);
            }
        }
    }
}

mod tests {
    use super::*;
    use serde_json::json;

    const DECLARED: &[&str] = &["items.ref", "items.why", "about"];

    fn faults(data: Value, truncated: Value) -> Vec<String> {
        let whole = json!({
            "items": (0..9).map(|n| json!({"ref": format!("f{n}"), "why": "It matches. It is near."})).collect::<Vec<_>>(),
            "about": "One sentence. Another one.", "meta": {"warnings": ["old"]}, "total": 9,
        });
        let shaped = json!({"summary": "s", "data": data, "truncated": truncated});
        Faults { declared: DECLARED, pages: true, is_beginning: true }.of(&whole, &shaped)
    }

    #[test]
    fn every_fault_is_found() {
        let item = |n: usize| json!({"ref": format!("f{n}"), "why": "It matches.…"});
        let good = || {
            let items: Vec<Value> = (0..3).map(item).collect();
            json!({"items": items, "about": "One sentence.…", "meta": {"warnings": ["old"]}, "total": 9})
        };
        let part = json!(["items: 1 to 3 of 9"]);
        assert_eq!(faults(good(), part.clone()), [""; 0]);
        let found = |change: &dyn Fn(&mut Value), truncated: &Value, fault: &str| {
            let mut data = good();
            change(&mut data);
            let found = faults(data, truncated.clone());
            assert!(found.iter().any(|found| found.contains(fault)), "{fault}: {found:?}");
        };
        found(&|data| data["items"].as_array_mut().unwrap().truncate(1), &part, "1 of 9 items");
        found(&|data| drop(data["items"][1].as_object_mut().unwrap().remove("why")), &part, "`why` of item 1");
        found(&|data| drop(data.as_object_mut().unwrap().remove("items")), &part, "`items.ref` is missing");
        found(&|_| (), &json!([]), "unreported");
        found(&|data| data["about"] = json!("One sentence."), &part, "no mark");
        found(&|data| data["about"] = json!("One sentence. Ano…"), &part, "amid a sentence");
        found(&|data| data["about"] = json!("Two.…"), &part, "begins with");
        found(&|data| data["items"][0]["ref"] = json!("f…"), &part, "is cut");
        found(&|data| drop(data.as_object_mut().unwrap().remove("meta")), &part, "`meta.warnings` is missing");
        found(&|data| data["total"] = json!(3), &part, "instead of 9");
    }
}
