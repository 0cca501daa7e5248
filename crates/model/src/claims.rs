//! Claims: what can be claimed, which targets contain each other, and whether a claim conflicts with those held.

use crate::ErrorCode;
use crate::content::Content;
use crate::error::{Error, Result};
use crate::id::{check_text, check_type_name};
use crate::limits;
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// The type of claim boards: objects that list the claims held on one file and its symbols, on one task or on one
/// feature.
pub const BOARD: &str = "ClaimBoard";
/// The property of a claim board that lists the claims.
pub const HELD: &str = "held";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimType {
    Task,
    File,
    /// A function, or any other symbol in a file: a class, a method, a type.
    Function,
    Feature,
}

impl ClaimType {
    /// Returns the name in requests and responses, for example `file`.
    pub fn name(self) -> &'static str {
        match self {
            ClaimType::Task => "task",
            ClaimType::File => "file",
            ClaimType::Function => "function",
            ClaimType::Feature => "feature",
        }
    }

    /// Returns the claim type for objects of a type, or `None` if they cannot be claimed.
    fn of_type(type_name: &str) -> Option<ClaimType> {
        Some(match type_name.to_ascii_lowercase().as_str() {
            "task" => ClaimType::Task,
            "feature" => ClaimType::Feature,
            "file" => ClaimType::File,
            "function" | "method" | "class" | "interface" | "type" | "variable" | "module" | "test" => {
                ClaimType::Function
            }
            _ => return None,
        })
    }
}

/// Something that can be claimed, by its normalised name: `task:12`, `feature:login`, `src/a.rs`, `src/a.rs::A::b`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimTarget {
    pub kind: ClaimType,
    pub name: String,
}

/// How a wanted target relates to a held one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetRelation {
    Same,
    /// The held target contains the wanted one.
    Within,
    /// The wanted target contains the held one.
    Contains,
}

impl ClaimTarget {
    /// Parses a target in any accepted spelling. Returns `None` for a bare word, which may be the name of a symbol.
    pub fn read(text: &str, kind: Option<ClaimType>) -> Result<Option<ClaimTarget>> {
        let text = text.trim();
        check_text("target", text, limits::KEY_BYTES)?;
        if let Some((type_name, rest)) = typed(text) {
            if let Some(named) = ClaimType::of_type(type_name) {
                return ClaimTarget::read(
                    rest,
                    Some(kind.filter(|kind| is_code(*kind) && is_code(named)).unwrap_or(named)),
                );
            }
            if kind.is_none_or(is_code) {
                return Err(Error::invalid(
                    ErrorCode::InvalidTarget,
                    format!("`{text}` is nothing that can be claimed"),
                )
                .hint("claims are on files, functions and other symbols of files, tasks and features"));
            }
        }
        Ok(match kind {
            Some(ClaimType::Task) => Some(ClaimTarget { kind: ClaimType::Task, name: format!("task:{text}") }),
            Some(ClaimType::Feature) => Some(ClaimTarget { kind: ClaimType::Feature, name: format!("feature:{text}") }),
            Some(ClaimType::Function) if !text.contains("::") => None,
            Some(ClaimType::File) if !text.contains("::") => Some(ClaimTarget::code(text)?),
            _ if text.contains("::") && text.contains(['/', '.', '\\']) => Some(ClaimTarget::code(text)?),
            _ if text.contains("::") => None,
            _ if text.contains(['/', '.', '\\']) => Some(ClaimTarget::code(text)?),
            _ => None,
        })
    }

    /// The target for a file path, or for the key of a symbol.
    pub fn code(key: &str) -> Result<ClaimTarget> {
        let (path, symbol) = key.split_once("::").map_or((key, None), |(path, symbol)| (path, Some(symbol)));
        let path = plain_path(path)?;
        let symbol = symbol.map(str::trim).filter(|symbol| !symbol.is_empty());
        Ok(match symbol {
            Some(symbol) => ClaimTarget { kind: ClaimType::Function, name: format!("{path}::{symbol}") },
            None => ClaimTarget { kind: ClaimType::File, name: path },
        })
    }

    /// Returns the target for a task, from its id with or without the prefix `task:`.
    pub fn task(id: &str) -> ClaimTarget {
        ClaimTarget { kind: ClaimType::Task, name: own_key("task", id) }
    }

    /// Returns the target for a feature, from its id with or without the prefix `feature:`.
    pub fn feature(id: &str) -> ClaimTarget {
        ClaimTarget { kind: ClaimType::Feature, name: own_key("feature", id) }
    }

    /// Returns the target that an object stands for, or `None` if it cannot be claimed.
    pub fn of_object(type_name: &str, key: &str) -> Option<ClaimTarget> {
        match ClaimType::of_type(type_name)? {
            ClaimType::Task => Some(ClaimTarget::task(key)),
            ClaimType::Feature => Some(ClaimTarget::feature(key)),
            // A symbol that is not defined in the project, such as an external name, is not a valid target.
            _ => ClaimTarget::code(key).ok(),
        }
    }

    /// Returns the key of the claim board for this target. It has a prefix, because the target itself already uses its
    /// key.
    pub fn board(&self) -> String {
        match self.kind {
            ClaimType::Task | ClaimType::Feature => format!("board:{}", self.name),
            ClaimType::File | ClaimType::Function => format!("board:{}", self.file().unwrap_or_default()),
        }
    }

    /// Returns the file that the target is, or that contains it.
    pub fn file(&self) -> Option<&str> {
        match self.kind {
            ClaimType::File => Some(&self.name),
            ClaimType::Function => self.name.split_once("::").map(|(path, _)| path),
            _ => None,
        }
    }

    /// Returns how this target relates to a held one, or `None` if neither contains the other.
    pub fn relation(&self, held: &ClaimTarget) -> Option<TargetRelation> {
        if self.name == held.name {
            return Some(TargetRelation::Same);
        }
        if !is_code(self.kind) || !is_code(held.kind) {
            return None;
        }
        let within = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with("::"));
        if within(&self.name, &held.name) {
            return Some(TargetRelation::Within);
        }
        within(&held.name, &self.name).then_some(TargetRelation::Contains)
    }
}

impl fmt::Display for ClaimTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn is_code(kind: ClaimType) -> bool {
    matches!(kind, ClaimType::File | ClaimType::Function)
}

/// Splits `Type:rest`; `None` if the text does not have that form.
fn typed(text: &str) -> Option<(&str, &str)> {
    let (type_name, rest) = text.split_once(':')?;
    let fine = !rest.is_empty() && !rest.starts_with(':') && check_type_name(type_name).is_ok();
    fine.then_some((type_name, rest))
}

/// Returns `task:12` for each of `12`, `task:12` and `Task:task:12`.
pub fn own_key(word: &str, id: &str) -> String {
    let mut bare = id.trim();
    while let Some((first, rest)) = bare.split_once(':')
        && first.eq_ignore_ascii_case(word)
        && !rest.is_empty()
    {
        bare = rest;
    }
    format!("{word}:{bare}")
}

/// Normalises a path relative to the root of the project.
fn plain_path(path: &str) -> Result<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.trim().split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err(Error::invalid(ErrorCode::InvalidTarget, format!("`{path}` leads out of the project"))
                        .hint("name files by their path from the root of the repository"));
                }
            }
            part => parts.push(part),
        }
    }
    if parts.is_empty() {
        return Err(Error::invalid(ErrorCode::InvalidTarget, format!("`{path}` is no file"))
            .hint("claims are on single files, not on folders"));
    }
    Ok(parts.join("/"))
}

/// A claim as recorded on its claim board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldClaim {
    pub claim_id: String,
    pub claim_type: ClaimType,
    pub target: String,
    pub agent_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What the agent intends to do.
    pub intent: String,
    pub since: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The version of the target at the time of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_version_sha: Option<String>,
    /// The connection that made the claim; the claim ends with it. Without one, the claim ends only when released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// The holder's worktree: changes saved there are attributed to the holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl HeldClaim {
    /// Returns the target that is claimed.
    pub fn at(&self) -> ClaimTarget {
        ClaimTarget { kind: self.claim_type, name: self.target.clone() }
    }
}

/// The outcome of a request to claim a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimDecision<'a> {
    Grant,
    /// The requesting agent already holds it.
    Yours(&'a HeldClaim),
    Conflict(&'a HeldClaim, TargetRelation),
}

/// Decides from the claims on the target's board. Claims for which `own` returns true never conflict.
pub fn decide<'a>(held: &'a [HeldClaim], wanted: &ClaimTarget, own: &dyn Fn(&HeldClaim) -> bool) -> ClaimDecision<'a> {
    if let Some((held, relation)) = nearest(held.iter().filter(|held| !own(held)), wanted) {
        return ClaimDecision::Conflict(held, relation);
    }
    match held.iter().find(|held| held.target == wanted.name) {
        Some(own) => ClaimDecision::Yours(own),
        None => ClaimDecision::Grant,
    }
}

/// Returns a claim by another agent on the target, on what contains it or on what it contains; one on the same target
/// is preferred.
pub fn conflicting_claim<'a>(
    held: &'a [HeldClaim],
    wanted: &ClaimTarget,
    agent: Option<&str>,
) -> Option<(&'a HeldClaim, TargetRelation)> {
    nearest(held.iter().filter(|held| Some(held.agent_id.as_str()) != agent), wanted)
}

/// Returns all claims by other agents that conflict with the target: the same target first, then by age.
pub fn conflicting_claims<'a>(held: &'a [HeldClaim], wanted: &ClaimTarget, agent: Option<&str>) -> Vec<&'a HeldClaim> {
    let others = held.iter().filter(|held| Some(held.agent_id.as_str()) != agent);
    let mut all: Vec<_> = others.filter_map(|held| Some((wanted.relation(&held.at())?, held))).collect();
    all.sort_by_key(|(relation, held)| (*relation as u8, held.since));
    all.into_iter().map(|(_, held)| held).collect()
}

fn nearest<'a>(
    others: impl Iterator<Item = &'a HeldClaim>,
    wanted: &ClaimTarget,
) -> Option<(&'a HeldClaim, TargetRelation)> {
    let related = others.filter_map(|held| Some((held, wanted.relation(&held.at())?)));
    related.min_by_key(|(held, relation)| (*relation as u8, held.since))
}

/// Parses the claims that a claim board lists.
pub fn held_in(content: &Content) -> Result<Vec<HeldClaim>> {
    let list = content.properties.get(HELD).cloned().unwrap_or_else(|| Value::Array(vec![]));
    serde_json::from_value(list).map_err(|e| Error::internal(format!("a board of claims cannot be read: {e}")))
}

/// The error for a write that a claim prevents: holder, target, intent, and since when.
pub fn claim_conflict(wanted: &ClaimTarget, held: &HeldClaim, relation: TargetRelation) -> Error {
    let how = match relation {
        TargetRelation::Same => String::new(),
        TargetRelation::Within => format!(" by a claim on `{}`", held.target),
        TargetRelation::Contains => format!(" in part, `{}`,", held.target),
    };
    Error::conflict(
        ErrorCode::Claimed,
        format!("`{wanted}` is claimed{how} by {} since {}: {}", held.agent_id, held.since, held.intent),
    )
    .hint("wait until it is released, or have it released with `agent_release`, `force` and a reason")
    .details(json!({
        "target": wanted.name, "relation": relation, "claim_id": held.claim_id, "claimed": held.target,
        "agent_id": held.agent_id, "intent": held.intent, "since": held.since,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str, kind: Option<ClaimType>) -> String {
        match ClaimTarget::read(text, kind) {
            Ok(Some(target)) => format!("{} {}", target.kind.name(), target.name),
            Ok(None) => "?".into(),
            Err(e) => e.code.to_string(),
        }
    }

    #[test]
    fn spellings_of_one_target_are_one_name() {
        use ClaimType::{Feature, File, Function, Task};
        for (text, kind, expected) in [
            ("task:12", None, "task task:12"),
            ("Task:task:12", None, "task task:12"),
            ("12", Some(Task), "task task:12"),
            ("feature:login", None, "feature feature:login"),
            ("login", Some(Feature), "feature feature:login"),
            ("src/a.rs", None, "file src/a.rs"),
            ("./src//x/../a.rs", None, "file src/a.rs"),
            ("src\\a.rs", None, "file src/a.rs"),
            ("File:src/a.rs", None, "file src/a.rs"),
            ("Makefile", Some(File), "file Makefile"),
            ("Makefile", None, "?"),
            ("login", Some(Function), "?"),
            ("Shop::pay", None, "?"),
            ("src/a.rs::A::b", None, "function src/a.rs::A::b"),
            ("Method:./src/a.rs::A::b", None, "function src/a.rs::A::b"),
            ("src/a.rs::A", Some(File), "function src/a.rs::A"),
            ("../a.rs", None, "invalid_target"),
            ("Service:auth", None, "invalid_target"),
            ("", None, "empty_name"),
        ] {
            assert_eq!(name(text, kind), expected, "{text}");
        }
        assert_eq!(ClaimTarget::of_object("Task", "12").map(|t| t.board()).as_deref(), Some("board:task:12"));
        assert_eq!(ClaimTarget::of_object("Method", "a.py::A::b").map(|t| t.board()).as_deref(), Some("board:a.py"));
        assert_eq!(ClaimTarget::of_object("Service", "auth"), None);
    }

    fn held(target: &str, agent: &str) -> HeldClaim {
        let target = ClaimTarget::read(target, None).expect("a target").expect("not a bare word");
        HeldClaim {
            claim_id: format!("claim:{target}"),
            claim_type: target.kind,
            target: target.name,
            agent_id: agent.into(),
            session_id: None,
            intent: "mend it".into(),
            since: Time(0),
            task_id: None,
            target_version_sha: None,
            connection: None,
            worktree: None,
            branch: None,
        }
    }

    #[test]
    fn claims_conflict_when_one_target_contains_the_other() {
        let board = [held("a.py::A", "ada"), held("a.py::f", "bob")];
        let wanted = |text: &str| ClaimTarget::read(text, None).expect("a target").expect("not a bare word");
        let decided = |text: &str, agent: &str| match decide(&board, &wanted(text), &|held| held.agent_id == agent) {
            ClaimDecision::Grant => "grant".to_string(),
            ClaimDecision::Yours(held) => format!("yours {}", held.target),
            ClaimDecision::Conflict(held, relation) => format!("{} {relation:?}", held.agent_id),
        };
        assert_eq!(decided("a.py::A", "bob"), "ada Same");
        assert_eq!(decided("a.py::A::run", "bob"), "ada Within");
        assert_eq!(decided("a.py", "ada"), "bob Contains");
        assert_eq!(decided("a.py::A", "ada"), "yours a.py::A");
        assert_eq!(decided("a.py::A::run", "ada"), "grant", "within a target that the agent holds");
        assert_eq!(decided("a.py::AB", "bob"), "grant", "a common prefix alone is no containment");
    }
}
