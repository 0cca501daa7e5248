//! The shape of an answer to an agent: what matters first, within the tokens of a profile, and nothing cut unseen.
//!
//! An answer that has no room loses what nobody misses first, then long texts, then the end of its longest list; each
//! of these is told. What names a thing is never dropped: when that alone has no room, the answer is an error that names
//! the next profile.

mod prune;

use crate::pack::Profile;
use crate::registry::Operation;
use lukasa_model::{Error, ErrorKind, Result};
use lukasa_search::count::count;
use prune::{DETAILS, Level, cap, longest, prune};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What stands around the data of an answer takes about so many tokens.
const FRAME: usize = 48;
/// Most entries of lists beside the longest, as room gets scarce; an empty list would say that there is nothing.
const LISTED: [usize; 4] = [10, 5, 3, 1];
/// Never more than this in one answer, whatever the profile.
pub const MOST: usize = 25_000;

/// What an agent may say to every tool beside the operation's own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub profile: Profile,
    /// Which page of a long answer, from 1.
    pub page: usize,
}

impl Default for Wish {
    fn default() -> Wish {
        Wish { profile: Profile::Compact, page: 1 }
    }
}

/// Takes out of a tool's arguments what is meant for the shape of the answer, and tells operations with budgets of their own
/// what room they have.
pub fn wish(operation: &Operation, arguments: &mut Map<String, Value>) -> Result<Wish> {
    let fields = operation.fields();
    let profile = match arguments.get("profile") {
        None => Profile::default(),
        Some(value) => serde_json::from_value(value.clone()).map_err(|_| {
            Error::invalid("invalid_request", format!("profile: {value} is not compact, balanced or debug"))
        })?,
    };
    if !fields.contains_key("profile") {
        arguments.remove("profile");
    } else {
        arguments.insert("profile".into(), json!(profile.name()));
    }
    let page = match arguments.remove("page") {
        None => 1,
        Some(value) => value
            .as_u64()
            .filter(|page| (1..=100_000).contains(page))
            .ok_or_else(|| Error::invalid("out_of_range", format!("page: {value} is not a number from 1 on")))?
            as usize,
    };
    if profile != Profile::Debug && fields.contains_key("budget") && !arguments.contains_key("budget") {
        arguments.insert("budget".into(), json!(profile.tokens() - FRAME));
    }
    Ok(Wish { profile, page })
}

/// The arguments of a tool: those of the operation, and what all tools take.
pub fn arguments(operation: &Operation) -> Value {
    let mut schema = operation.request.as_value().clone();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.insert("type".into(), json!("object"));
        object.insert("additionalProperties".into(), json!(false));
        let properties = object.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.entry("profile").or_insert_with(|| {
                json!({"type": "string", "enum": ["compact", "balanced", "debug"], "default": "compact",
                    "description": "How much to give: compact (300 tokens), balanced (1,200) or debug (all, in pages)."})
            });
            properties.insert(
                "page".into(),
                json!({"type": "integer", "minimum": 1, "default": 1, "description": "Which page of a long answer."}),
            );
        }
    }
    schema
}

/// The shape of every answer, with the fields of the operation's own in `data`, each with its type only: agents are handed
/// this with every tool, and the OpenAPI document has the rest.
pub fn answers(operation: &Operation) -> Value {
    let fields =
        operation.response.as_value().get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let typed = |field: &Value| field.get("type").map_or_else(|| json!({}), |kind| json!({"type": kind}));
    let data: Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| !["summary", "next_cursor"].contains(&name.as_str()))
        .map(|(name, field)| (name.clone(), typed(field)))
        .collect();
    json!({
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "summary": {"type": "string"},
            "profile": {"type": "string"},
            "_tokenEstimate": {"type": "integer"},
            "data": {"type": "object", "properties": data},
            "truncated": {"type": "array", "items": {"type": "string"}},
            "nextPage": {"type": "integer"},
            "nextCursor": {"type": "string"},
            "freshness": {"type": "string"},
            "errorCode": {"type": "string"},
            "hint": {"type": "string"},
            "details": {},
            "requestId": {"type": "string"}
        },
        "required": ["ok", "summary", "profile", "_tokenEstimate"]
    })
}

/// Puts an answer into its shape.
pub fn shape(answer: Value, wish: Wish) -> Result<Value> {
    let Value::Object(mut all) = answer else {
        return Err(Error::internal("an answer is an object"));
    };
    let summary = all.shift_remove("summary").and_then(|s| s.as_str().map(str::to_owned)).unwrap_or_default();
    let budget = wish.profile.tokens().min(MOST);
    let frame = Frame {
        summary,
        profile: wish.profile,
        cursor: all.get("next_cursor").and_then(Value::as_str).map(str::to_owned),
        freshness: all.get("view").and_then(fresh),
    };
    all.shift_remove("next_cursor");
    let levels: &[Level] = match wish.profile {
        Profile::Debug => &[Level::All],
        _ => &[Level::All, Level::Plain, Level::Brief],
    };
    for level in levels {
        let mut told = Vec::new();
        let data = prune(&all, *level, &mut told);
        let whole = frame.with(data, told, None);
        if tokens(&whole) <= budget && wish.page == 1 {
            return Ok(counted(whole));
        }
    }
    // Lists beside the longest, and within it, are cut as far as need be; then the longest comes in pages.
    let last = levels[levels.len() - 1];
    let mut refused = frame.too_small();
    for most in LISTED {
        let mut told = Vec::new();
        let data = cap(prune(&all, last, &mut told), most, &mut told);
        match frame.paged(data, told, wish.page, budget) {
            Err(error) if error.code == refused.code => refused = error,
            other => return other,
        }
    }
    Err(refused)
}

/// Whether an answer has room in a profile with all its texts: at most what only programs want goes.
pub fn keeps_texts(answer: &impl Serialize, profile: Profile) -> Result<bool> {
    let answer =
        serde_json::to_value(answer).map_err(|e| Error::internal(format!("an answer cannot be written: {e}")))?;
    Ok(shape(answer, Wish { profile, page: 1 }).is_ok_and(|shaped| {
        let told = shaped["truncated"].as_array().into_iter().flatten();
        told.filter_map(Value::as_str).all(|told| told == DETAILS)
    }))
}

/// An answer as text for who cannot name a profile: the most that has room beside the words around it, never more than
/// `MOST` in all.
pub fn told(answer: &Value, page: usize, around: &str) -> Result<String> {
    let room = MOST.saturating_sub(count(around));
    let mut refused =
        Error::new(ErrorKind::TooLarge, "budget_too_small", "there is no room for what the answer must have")
            .hint("ask a shorter question");
    for profile in [Profile::Debug, Profile::Balanced, Profile::Compact] {
        match shape(answer.clone(), Wish { profile, page }) {
            Ok(shaped) if tokens(&shaped) <= room => return Ok(shaped.to_string()),
            Ok(_) => {}
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// An error as agents read it.
pub fn failure(error: &Error, request_id: Option<&str>, profile: Profile) -> Value {
    let mut map = Map::new();
    map.insert("ok".into(), json!(false));
    map.insert("summary".into(), json!(error.message));
    map.insert("profile".into(), json!(profile.name()));
    map.insert("errorCode".into(), json!(error.code));
    let hint = error.hint.clone().unwrap_or_else(|| "see docs/errors.md for this code".into());
    map.insert("hint".into(), json!(hint));
    if !error.details.is_null() && count(&error.details.to_string()) <= profile.tokens() {
        map.insert("details".into(), (*error.details).clone());
    }
    if let Some(id) = request_id {
        map.insert("requestId".into(), json!(id));
    }
    counted(Value::Object(map))
}

fn fresh(view: &Value) -> Option<String> {
    let branch = view.get("branch")?.as_str()?;
    let known = ["known", "tx", "as_of_tx"].iter().find_map(|name| view.get(*name)).and_then(Value::as_u64);
    Some(known.map_or_else(|| branch.to_owned(), |tx| format!("{branch} at tx {tx}")))
}

struct Frame {
    summary: String,
    profile: Profile,
    cursor: Option<String>,
    freshness: Option<String>,
}

impl Frame {
    fn with(&self, data: Map<String, Value>, truncated: Vec<String>, next_page: Option<usize>) -> Value {
        let mut map = Map::new();
        map.insert("ok".into(), json!(true));
        map.insert("summary".into(), json!(self.summary));
        map.insert("profile".into(), json!(self.profile.name()));
        map.insert("_tokenEstimate".into(), json!(MOST));
        map.insert("data".into(), Value::Object(data));
        if !truncated.is_empty() {
            map.insert("truncated".into(), json!(truncated));
        }
        if let Some(page) = next_page {
            map.insert("nextPage".into(), json!(page));
        }
        if let Some(cursor) = &self.cursor {
            map.insert("nextCursor".into(), json!(cursor));
        }
        if let Some(freshness) = &self.freshness {
            map.insert("freshness".into(), json!(freshness));
        }
        Value::Object(map)
    }

    /// Gives as much of the longest list as there is room for, page by page.
    fn paged(&self, mut data: Map<String, Value>, told: Vec<String>, page: usize, budget: usize) -> Result<Value> {
        let Some(name) = longest(&data) else {
            let whole = self.with(data, told, None);
            return if tokens(&whole) <= budget && page == 1 { Ok(counted(whole)) } else { Err(self.too_small()) };
        };
        let list = match data.insert(name.clone(), json!([])) {
            Some(Value::Array(list)) => list,
            _ => vec![],
        };
        let all = list.len();
        let mut note = told.clone();
        note.push(format!("{name}: {all} to {all} of {all}"));
        let around = tokens(&self.with(data.clone(), note, Some(all)));
        let room = budget.checked_sub(around).ok_or_else(|| self.too_small())?;
        let (mut at, mut ends) = (0, Vec::new());
        while at < all {
            let (mut used, from) = (0, at);
            while at < all {
                let cost = tokens(&list[at]) + 1;
                if used + cost > room {
                    break;
                }
                used += cost;
                at += 1;
            }
            if at == from {
                return Err(self.too_small());
            }
            ends.push((from, at));
            if ends.len() == page {
                break;
            }
        }
        let Some((from, to)) = ends.get(page - 1).copied() else {
            return Err(Error::invalid("out_of_range", format!("page: there are only {} pages", ends.len())));
        };
        data.insert(name.clone(), Value::Array(list[from..to].to_vec()));
        let mut told = told;
        if from > 0 || to < all {
            told.push(format!("{name}: {} to {to} of {all}", from + 1));
        }
        let next = (to < all).then_some(page + 1);
        Ok(counted(self.with(data, told, next)))
    }

    fn too_small(&self) -> Error {
        let hint = match self.profile.larger() {
            Some(next) => format!("ask with profile: {}", next.name()),
            None => "ask for fewer things: a limit, a filter or another operation".into(),
        };
        let message = format!("{} tokens do not hold even what the answer must have", self.profile.tokens());
        Error::new(ErrorKind::TooLarge, "budget_too_small", message).hint(hint)
    }
}

/// Fills in what the answer costs, itself included.
fn counted(mut answer: Value) -> Value {
    answer["_tokenEstimate"] = json!(0);
    loop {
        let now = tokens(&answer);
        if answer["_tokenEstimate"].as_u64().is_some_and(|told| told as usize >= now) {
            return answer;
        }
        answer["_tokenEstimate"] = json!(now);
    }
}

fn tokens(value: &Value) -> usize {
    count(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items(n: usize, long: usize) -> Value {
        let item = |at: usize| {
            json!({"ref": format!("FUNCTION:src/a.rs::f{at}"), "id": "0190-…", "code": "let x = 1; ".repeat(long),
                "evidence": {"lines": [1, 2, 3]}, "score": 0.5})
        };
        json!({"summary": format!("{n} found"), "items": (0..n).map(item).collect::<Vec<_>>(),
            "view": {"branch": "main", "known": 7}})
    }

    #[test]
    fn what_has_room_is_given_whole() {
        let shaped = shape(items(1, 1), Wish::default()).unwrap();
        assert_eq!(
            (&shaped["ok"], &shaped["summary"], &shaped["freshness"]),
            (&json!(true), &json!("1 found"), &json!("main at tx 7"))
        );
        assert_eq!(shaped["data"]["items"][0]["evidence"]["lines"], json!([1, 2, 3]));
        assert!(shaped.get("truncated").is_none());
    }

    #[test]
    fn all_pages_together_are_the_whole_list() {
        let (mut seen, mut page) = (Vec::new(), 1);
        loop {
            let shaped = shape(items(40, 20), Wish { profile: Profile::Compact, page }).unwrap();
            assert!(count(&shaped.to_string()) <= 300);
            seen.extend(shaped["data"]["items"].as_array().unwrap().iter().map(|item| item["ref"].clone()));
            match shaped["nextPage"].as_u64() {
                Some(next) => page = next as usize,
                None => break,
            }
        }
        assert_eq!(seen.len(), 40);
        assert_eq!(seen[39], "FUNCTION:src/a.rs::f39");
        assert_eq!(shape(items(2, 1), Wish { profile: Profile::Compact, page: 9 }).unwrap_err().code, "out_of_range");
    }

    #[test]
    fn no_list_that_has_something_is_given_empty() {
        let names = |word: &str| (0..30).map(|at| json!({"key": format!("{word}::{at}")})).collect::<Vec<_>>();
        let answer = json!({"summary": "much", "items": names("src/a/rather/long/path.rs"), "callers": names("src/b.rs"),
            "tests": names("src/c.rs")});
        let shaped = shape(answer, Wish::default()).unwrap();
        for list in ["items", "callers", "tests"] {
            assert!(shaped["data"][list].as_array().is_some_and(|list| !list.is_empty()), "{list}: {shaped}");
        }
        assert!(shaped["truncated"].to_string().contains("callers"), "{shaped}");
    }

    #[test]
    fn what_is_told_has_room_beside_the_words_around_it() {
        let around = "word ".repeat(20_000);
        let told = told(&items(2_000, 3), 1, &around).unwrap();
        assert!(count(&told) + count(&around) <= MOST);
        let alone = super::told(&items(2_000, 3), 1, "").unwrap();
        assert!(count(&alone) > 20_000 && count(&alone) <= MOST, "{}", count(&alone));
        assert_eq!(super::told(&items(1, 1), 1, &"word ".repeat(30_000)).unwrap_err().code, "budget_too_small");
    }

    #[test]
    fn what_must_be_there_and_has_no_room_names_the_next_profile() {
        let long = json!({"summary": "x", "key": "k ".repeat(2_000)});
        let error = shape(long, Wish::default()).unwrap_err();
        assert_eq!((error.code, error.hint.as_deref()), ("budget_too_small", Some("ask with profile: balanced")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_answer_exceeds_its_profile(n in 0usize..60, long in 0usize..60, pick in 0usize..3) {
            let profile = [Profile::Compact, Profile::Balanced, Profile::Debug][pick];
            match shape(items(n, long), Wish { profile, page: 1 }) {
                Ok(shaped) => {
                    let cost = count(&shaped.to_string());
                    prop_assert!(cost <= profile.tokens(), "{cost}");
                    prop_assert!(shaped["_tokenEstimate"].as_u64().unwrap() as usize >= cost);
                    let given = shaped["data"]["items"].as_array().unwrap();
                    prop_assert!(given.len() == n || shaped["nextPage"].is_u64(), "what is missing is told");
                    prop_assert!(given.iter().all(|item| item["ref"].is_string()), "what names a thing stays");
                }
                Err(error) => prop_assert_eq!(error.code, "budget_too_small"),
            }
        }
    }
}
