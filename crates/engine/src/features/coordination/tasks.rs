//! Tasks of a view: what each waits for, which are ready, and cycles of tasks that wait for each other.

use super::board::TARGETS;
use crate::blocked_tasks::BlockedTask;
use crate::view::ViewGraph;
use crate::view::memories;
use crate::view::symbols::{Symbols, text};
use lukasa_graph::Node;
use lukasa_model::claims::{ClaimTarget, HeldClaim, conflicting_claim, own_key};
use lukasa_model::{Content, Error, ErrorCode, FactNo, Result, Time, Version};
use lukasa_store::VersionFields;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeSet;

pub const TASK: &str = "Task";
pub const FEATURE: &str = "Feature";
pub const TRACK: &str = "Track";
pub const BLOCKED_BY: &str = "BLOCKED_BY";
pub const BELONGS_TO: &str = "BELONGS_TO";

/// The status of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    InProgress,
    #[default]
    Pending,
    /// Set explicitly; that a task waits for others follows from its blockers.
    Blocked,
    Completed,
    Failed,
    Cancelled,
}

impl TaskStatus {
    pub const ALL: [TaskStatus; 6] = [
        TaskStatus::Pending,
        TaskStatus::InProgress,
        TaskStatus::Blocked,
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
    ];

    pub fn name(self) -> &'static str {
        match self {
            TaskStatus::Pending => "pending",
            TaskStatus::InProgress => "in_progress",
            TaskStatus::Blocked => "blocked",
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Cancelled => "cancelled",
        }
    }

    /// Parses a status by any of its usual names.
    pub fn read(word: &str) -> Result<TaskStatus> {
        let plain = word.trim().to_ascii_lowercase().replace([' ', '-'], "_");
        Ok(match plain.as_str() {
            "pending" | "open" | "todo" | "new" | "planned" | "ready" => TaskStatus::Pending,
            "in_progress" | "inprogress" | "active" | "started" | "doing" => TaskStatus::InProgress,
            "blocked" | "waiting" => TaskStatus::Blocked,
            "completed" | "complete" | "done" | "closed" | "success" => TaskStatus::Completed,
            "failed" | "failure" => TaskStatus::Failed,
            "cancelled" | "canceled" | "dropped" => TaskStatus::Cancelled,
            _ => {
                let known: Vec<&str> = TaskStatus::ALL.iter().map(|status| status.name()).collect();
                return Err(Error::invalid(ErrorCode::InvalidStatus, format!("`{word}` is no status of a task"))
                    .hint(format!("one of {}", known.join(", "))));
            }
        })
    }

    /// Whether the task is finished.
    pub fn is_over(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

/// A task with its relationships, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    pub key: String,
    pub title: String,
    pub status: TaskStatus,
    /// The most urgent has the highest number.
    pub priority: i64,
    pub assignee: Option<String>,
    pub description: Option<String>,
    /// The task's number, by which the order of recording is known.
    pub age: FactNo,
    pub updated: Option<Time>,
    pub version: u32,
    pub belongs_to: Vec<String>,
    pub blocked_by: Vec<Blocker>,
    /// Code it is about, by key.
    pub targets: Vec<String>,
}

/// A task or other fact that a task waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Blocker {
    /// Its key.
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// It is not completed, so what waits for it cannot start.
    pub open: bool,
}

impl Task {
    pub fn is_open(&self) -> bool {
        !self.status.is_over()
    }

    pub fn open_blockers(&self) -> impl Iterator<Item = &Blocker> {
        self.blocked_by.iter().filter(|blocker| blocker.open)
    }
}

/// Returns every task of the view, in the order in which they were recorded.
pub fn read(look: &ViewGraph) -> Result<Vec<Task>> {
    let s = &look.snapshot;
    let is = |node: Node, name: &str| s.type_name(node).eq_ignore_ascii_case(name);
    let mut nodes: Vec<Node> = s.nodes().into_iter().filter(|node| is(*node, TASK) && !s.is_ended(*node)).collect();
    nodes.sort_by_key(|node| s.thing(*node));
    of_nodes(look, &nodes)
}

/// The tasks of these nodes, in the same order.
fn of_nodes(look: &ViewGraph, nodes: &[Node]) -> Result<Vec<Task>> {
    let s = &look.snapshot;
    let tied = |node: Node, name: &str| -> Vec<Node> {
        let out = s.outgoing(node).iter().filter(|(_, edge, _)| s.edge_type(*edge).eq_ignore_ascii_case(name));
        let mut ends: Vec<Node> = out.map(|(other, _, _)| other).collect();
        ends.sort_by_key(|other| s.thing(*other));
        ends.dedup();
        ends
    };
    let mut wanted = nodes.to_vec();
    nodes.iter().for_each(|node| wanted.extend(tied(*node, BLOCKED_BY)));
    let mut numbers: Vec<FactNo> = wanted.iter().map(|node| s.thing(*node)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut versions: FxHashMap<FactNo, (Content, Version)> = FxHashMap::default();
    for state in look.ledger.states(&look.view, &numbers, VersionFields::Content)? {
        if let Some(statement) = state.statement {
            versions.insert(state.thing.no, (statement.parsed()?, statement));
        }
    }
    let content = |node: Node| versions.get(&s.thing(node)).map(|(content, _)| content);
    let statement = |node: Node| versions.get(&s.thing(node)).map(|(_, statement)| statement);
    let key_of = |node: Node| s.key(node).map_or_else(|| s.id(node).to_string(), str::to_owned);
    let blocker = |node: Node| {
        let content = content(node);
        let status = content.and_then(|content| content.status.clone());
        let over = status.as_deref().is_some_and(|status| TaskStatus::read(status).is_ok_and(TaskStatus::is_over));
        Blocker {
            id: key_of(node),
            title: content.and_then(|content| content.title.clone()),
            status,
            open: !s.is_ended(node) && !over,
        }
    };
    let task = |node: &Node| {
        let empty = Content::default();
        let content = content(*node).unwrap_or(&empty);
        let status = content.status.as_deref().and_then(|word| TaskStatus::read(word).ok()).unwrap_or_default();
        let key = key_of(*node);
        Task {
            title: content.title.clone().unwrap_or_else(|| key.clone()),
            status,
            priority: content.properties.get("priority").and_then(priority).unwrap_or(PRIORITY),
            assignee: text(content, "assignee").or_else(|| text(content, "agent_id")),
            description: text(content, "description"),
            age: s.thing(*node),
            updated: statement(*node).map(|statement| statement.recorded_at),
            version: statement(*node).map_or(0, |statement| statement.number),
            belongs_to: tied(*node, BELONGS_TO).into_iter().map(&key_of).collect(),
            blocked_by: tied(*node, BLOCKED_BY).into_iter().filter(|other| other != node).map(blocker).collect(),
            targets: content
                .properties
                .get("targets")
                .and_then(serde_json::Value::as_array)
                .map(|all| all.iter().filter_map(|t| t.as_str().map(str::to_owned)).collect())
                .unwrap_or_default(),
            key,
        }
    };
    Ok(nodes.iter().map(task).collect())
}

/// The default priority.
pub const PRIORITY: i64 = 2;

/// Parses a number, or one of the usual words.
pub fn priority(value: &serde_json::Value) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let word = value.as_str()?.trim().to_ascii_lowercase();
    Some(match word.as_str() {
        "low" => 1,
        "medium" | "normal" => 2,
        "high" => 3,
        "critical" | "urgent" => 4,
        number => return number.parse().ok(),
    })
}

/// A task that can be started, with the values it is ranked by.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadyTask<'a> {
    pub task: &'a Task,
    /// Number of open tasks that wait for it, directly or indirectly.
    pub unblocks: usize,
    /// The agent has claimed it.
    pub yours: bool,
}

/// Returns the tasks that an agent can work on now: open, waiting for nothing, and neither they nor their code claimed by
/// others. Those in progress come first, then those that unblock most, then by priority, then the oldest.
pub fn ready<'a>(tasks: &'a [Task], held: &[HeldClaim], agent: Option<&str>) -> Vec<ReadyTask<'a>> {
    let waiting = waiting_for(tasks);
    let mut all: Vec<ReadyTask<'a>> = tasks
        .iter()
        .filter(|task| task.is_open() && task.status != TaskStatus::Blocked && task.open_blockers().next().is_none())
        .filter(|task| obstacles(task, held, agent).is_empty())
        .map(|task| {
            let target = ClaimTarget::task(&task.key);
            let yours = held.iter().any(|held| held.target == target.name && Some(held.agent_id.as_str()) == agent);
            ReadyTask { task, unblocks: behind(&task.key, &waiting), yours }
        })
        .collect();
    all.sort_by_key(|ready| {
        let under_way = ready.yours && ready.task.status == TaskStatus::InProgress;
        (!under_way, Reverse(ready.unblocks), Reverse(ready.task.priority), ready.task.age)
    });
    all
}

/// Returns the claims of others that block a task: on itself, or on the code it is about.
pub fn obstacles<'a>(task: &Task, held: &'a [HeldClaim], agent: Option<&str>) -> Vec<&'a HeldClaim> {
    let own = ClaimTarget::task(&task.key);
    let code = task.targets.iter().filter_map(|key| ClaimTarget::read(key, None).ok().flatten());
    // The claims of the agent that works on the task do not block it.
    let worker = held.iter().find(|held| held.target == own.name).map(|held| held.agent_id.as_str());
    let who = agent.or(worker).or(task.assignee.as_deref());
    let mut found: Vec<&HeldClaim> = std::iter::once(own)
        .chain(code)
        .filter_map(|target| Some(conflicting_claim(held, &target, who)?.0))
        // A claim made for the task belongs to the task.
        .filter(|held| held.task_id.as_deref() != Some(&own_key("task", &task.key)) || agent.is_some())
        .collect();
    if agent.is_none() {
        found.retain(|held| Some(held.agent_id.as_str()) != worker);
    }
    found.sort_by(|a, b| a.target.cmp(&b.target));
    found.dedup_by(|a, b| a.claim_id == b.claim_id);
    found
}

/// Why an open task cannot proceed.
pub struct Obstruction<'a> {
    /// Open tasks or other facts that it waits for.
    pub blocked_by: Vec<&'a Blocker>,
    /// Claims of others on the task or on its code.
    pub claims: Vec<&'a HeldClaim>,
}

impl<'a> Obstruction<'a> {
    /// None if the task can proceed, or is over.
    pub fn of(task: &'a Task, held: &'a [HeldClaim], agent: Option<&str>) -> Option<Obstruction<'a>> {
        let found = Obstruction { blocked_by: task.open_blockers().collect(), claims: obstacles(task, held, agent) };
        let is_free = found.blocked_by.is_empty() && found.claims.is_empty() && task.status != TaskStatus::Blocked;
        (task.is_open() && !is_free).then_some(found)
    }

    pub fn reason(&self) -> String {
        let mut reasons = Vec::new();
        if !self.blocked_by.is_empty() {
            let names: Vec<&str> = self.blocked_by.iter().map(|blocker| blocker.id.as_str()).collect();
            reasons.push(format!("waits for {}", names.join(", ")));
        }
        let claimed = |claim: &&HeldClaim| format!("{} has claimed {}: {}", claim.agent_id, claim.target, claim.intent);
        reasons.extend(self.claims.iter().map(claimed));
        if reasons.is_empty() { "marked as blocked".into() } else { reasons.join("; ") }
    }
}

/// Maximum number of nodes within a shown file or class whose tasks are found.
const CONTENTS: usize = 500;

/// The blocked tasks about these nodes, their containers or their contents, or among them.
pub fn blocked_about(
    look: &ViewGraph,
    nodes: &[Node],
    held: &[HeldClaim],
    agent: Option<&str>,
) -> Result<Vec<BlockedTask>> {
    let s = &look.snapshot;
    let symbols = Symbols::new(look);
    let is_task = |node: Node| s.type_name(node).eq_ignore_ascii_case(TASK) && !s.is_ended(node);
    let mut about: Vec<(Node, Vec<Node>)> = Vec::new();
    let mut places: FxHashMap<Node, usize> = FxHashMap::default();
    let mut add = |task: Node, node: Node| {
        let at = *places.entry(task).or_insert_with(|| {
            about.push((task, vec![]));
            about.len() - 1
        });
        if !about[at].1.contains(&node) {
            about[at].1.push(node);
        }
    };
    for node in nodes {
        if is_task(*node) {
            add(*node, *node);
            continue;
        }
        let (within, _) = symbols.whole(*node, CONTENTS);
        for code in within.into_iter().chain(symbols.above(*node)).flat_map(|code| memories::of(s, code)) {
            for (task, edge, _) in s.incoming(code).iter() {
                if is_task(task) && s.edge_type(edge).eq_ignore_ascii_case(TARGETS) {
                    add(task, *node);
                }
            }
        }
    }
    let tasks = of_nodes(look, &about.iter().map(|(task, _)| *task).collect::<Vec<_>>())?;
    let blocked = tasks.iter().zip(about).filter_map(|(task, (node, about))| {
        let obstruction = Obstruction::of(task, held, agent)?;
        Some(BlockedTask {
            node,
            title: task.title.clone(),
            status: task.status.name(),
            assignee: task.assignee.clone(),
            reason: obstruction.reason(),
            claims: obstruction.claims.iter().map(|claim| claim.claim_id.clone()).collect(),
            only_claims: obstruction.blocked_by.is_empty() && task.status != TaskStatus::Blocked,
            about,
        })
    });
    Ok(blocked.collect())
}

/// Maps open tasks to the tasks they wait for.
pub fn waiting_for(tasks: &[Task]) -> FxHashMap<&str, Vec<&str>> {
    let mut waiting: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    for task in tasks.iter().filter(|task| task.is_open()) {
        for blocker in task.open_blockers() {
            waiting.entry(&blocker.id).or_default().push(&task.key);
        }
    }
    waiting
}

/// Counts the tasks that wait for one, directly or indirectly.
pub fn behind(key: &str, waiting: &FxHashMap<&str, Vec<&str>>) -> usize {
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let mut next: Vec<&str> = waiting.get(key).cloned().unwrap_or_default();
    while let Some(one) = next.pop() {
        if one != key && seen.insert(one) {
            next.extend(waiting.get(one).into_iter().flatten());
        }
    }
    seen.len()
}

/// Returns cycles of open tasks that wait for each other, each beginning with its smallest key.
pub fn circles(tasks: &[Task]) -> Vec<Vec<String>> {
    let open: FxHashMap<&str, Vec<&str>> = tasks
        .iter()
        .filter(|task| task.is_open())
        .map(|task| (task.key.as_str(), task.open_blockers().map(|blocker| blocker.id.as_str()).collect()))
        .collect();
    let mut left: BTreeSet<&str> = open.keys().copied().collect();
    // A task that waits for no remaining task is in no cycle.
    loop {
        let free: Vec<&str> =
            left.iter().filter(|key| !open[**key].iter().any(|blocker| left.contains(blocker))).copied().collect();
        if free.is_empty() {
            break;
        }
        left.retain(|key| !free.contains(key));
    }
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    let mut done: FxHashSet<&str> = FxHashSet::default();
    for start in &left {
        let (mut way, mut at) = (Vec::new(), *start);
        while !done.contains(at) && !way.contains(&at) {
            way.push(at);
            match open[at].iter().find(|blocker| left.contains(**blocker)) {
                Some(blocker) => at = blocker,
                None => break,
            }
        }
        if let Some(begin) = way.iter().position(|key| *key == at) {
            let circle = &way[begin..];
            let least = circle.iter().enumerate().min_by_key(|(_, key)| **key).map_or(0, |(place, _)| place);
            let turned = circle[least..].iter().chain(&circle[..least]).map(|key| (*key).to_owned()).collect();
            found.insert(turned);
        }
        done.extend(way);
    }
    found.into_iter().collect()
}

/// Describes a cycle in words.
pub fn circle_words(circle: &[String]) -> String {
    let first = circle.first().cloned().unwrap_or_default();
    format!("{} waits for {first}", circle.join(" waits for "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(key: &str, age: u64, blocked_by: &[(&str, bool)]) -> Task {
        let blocker = |(id, open): &(&str, bool)| Blocker { id: (*id).into(), open: *open, ..Blocker::default() };
        Task {
            key: key.into(),
            age: FactNo(age),
            priority: PRIORITY,
            blocked_by: blocked_by.iter().map(blocker).collect(),
            ..Task::default()
        }
    }

    fn held(target: &str, agent: &str) -> HeldClaim {
        let target = ClaimTarget::read(target, None).expect("a target").expect("sure");
        serde_json::from_value(serde_json::json!({
            "claim_id": format!("claim:{target}:{agent}"), "claim_type": target.kind, "target": target.name,
            "agent_id": agent, "intent": "x", "since": "2026-01-01",
        }))
        .expect("a claim")
    }

    #[test]
    fn what_unblocks_most_comes_first_and_what_waits_does_not_come() {
        let mut tasks = vec![
            task("task:1", 1, &[]),
            task("task:2", 2, &[("task:1", true)]),
            task("task:3", 3, &[("task:2", true)]),
            task("task:4", 4, &[]),
            task("task:5", 5, &[("task:0", false)]),
        ];
        tasks[4].priority = 3;
        let order = |tasks: &[Task], held: &[HeldClaim]| {
            let all = ready(tasks, held, Some("ada"));
            all.iter().map(|r| format!("{} {}", r.task.key, r.unblocks)).collect::<Vec<_>>()
        };
        assert_eq!(order(&tasks, &[]), ["task:1 2", "task:5 0", "task:4 0"]);
        assert_eq!(order(&tasks, &[held("task:1", "bob")]), ["task:5 0", "task:4 0"], "another agent does it");
        tasks[3].targets = vec!["src/a.rs".into()];
        assert_eq!(order(&tasks, &[held("src/a.rs::f", "bob")]), ["task:1 2", "task:5 0"], "its code is taken");
        assert_eq!(order(&tasks, &[held("src/a.rs::f", "ada")]).len(), 3, "by herself");
        tasks[3].status = TaskStatus::InProgress;
        assert_eq!(order(&tasks, &[held("task:4", "ada")])[0], "task:4 0", "what is under way is finished first");
    }

    #[test]
    fn circles_are_found_once_and_end() {
        let tasks = [
            task("task:b", 1, &[("task:c", true)]),
            task("task:c", 2, &[("task:a", true)]),
            task("task:a", 3, &[("task:b", true), ("task:x", true)]),
            task("task:d", 4, &[("task:a", true)]),
            task("task:x", 5, &[]),
            task("task:s", 6, &[("task:s", true)]),
        ];
        let found = circles(&tasks);
        assert_eq!(found, [vec!["task:a", "task:b", "task:c"], vec!["task:s"]]);
        assert_eq!(circle_words(&found[0]), "task:a waits for task:b waits for task:c waits for task:a");
        assert_eq!(behind("task:a", &waiting_for(&tasks)), 3, "it ends although they wait for each other");
        assert!(circles(&tasks[3..5]).is_empty());
    }

    #[test]
    fn words_people_use_are_understood() {
        assert_eq!(TaskStatus::read("In Progress").expect("known"), TaskStatus::InProgress);
        assert_eq!(TaskStatus::read("done").expect("known"), TaskStatus::Completed);
        assert_eq!(TaskStatus::read("maybe").expect_err("unknown").code, ErrorCode::InvalidStatus);
        let value = |v: serde_json::Value| priority(&v);
        assert_eq!((value("high".into()), value(7.into()), value("x".into())), (Some(3), Some(7), None));
    }
}
