//! `feature_status`: progress of a feature and test coverage of its code.

use super::progress_query::{TaskOut, held, is_part_of, percent};
use crate::claims::ClaimOut;
use crate::features::coordination::rendering;
use crate::features::coordination::tasks::{self, FEATURE, TRACK, Task};
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::view::ViewGraph;
use crate::view::symbols::{LinkDirection, SymbolRelation, Symbols};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::claims::own_key;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Error, ErrorCode, Reference, Result};
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The operation `feature_status`.
pub struct FeatureStatus;

/// Maximum number of symbols considered per file.
const MEMBERS: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The feature or track: `login` or `feature:login`.
    pub feature_id: String,
    #[serde(flatten)]
    pub view: ViewSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub feature_id: String,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Percentage of completed tasks, not counting cancelled ones.
    pub percent_complete: f64,
    pub by_status: BTreeMap<&'static str, usize>,
    pub tasks: Vec<TaskOut>,
    /// Keys of open tasks that depend on other open tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// Claims on the feature, its tasks and their code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub active_claims: Vec<ClaimOut>,
    pub code_coverage: TestCoverage,
    pub view: ViewEcho,
}

/// Share of the code of the feature's tasks that tests reach, according to the graph.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TestCoverage {
    /// Functions and methods in the code of its tasks.
    pub symbols: usize,
    /// Those that a test calls or references, or whose file has a test.
    pub tested: usize,
    /// In percent; null when the tasks name no known code.
    pub percent: Option<f64>,
    /// Examples that no test reaches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<String>,
    /// Code that tasks name but the graph does not contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// Maximum number of untested symbols listed.
const NAMED: usize = 20;

impl Op for FeatureStatus {
    const META: Meta = Meta {
        name: "feature_status",
        shown: ResponseView::By(rendering::feature),
        answer: &[
            "title",
            "status",
            "percent_complete",
            "by_status",
            "tasks.task_id",
            "tasks.title",
            "tasks.status",
            "blocked",
            "active_claims.agent_id",
            "active_claims.target_id",
            "code_coverage.percent",
        ],
        summary: "How far a feature is, and how much of its code is tested",
        description: "Shows the tasks of a feature or track with how far each is, what holds them up, who has claimed what, and \
                      which functions of the code they are about are reached by tests, as far as the graph knows.",
        verb: "feature",
        toolset: "coordination",
        positional: &["feature_id"],
        aliases: &[("feature", "feature_id"), ("track_id", "feature_id")],
        examples: &["lukasa feature login"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let look = engine.view_graph(context, &request.view)?;
        let (key, title, status) = feature(&look, &request.feature_id)?;
        let held = held(engine, &look)?;
        let own: Vec<Task> = tasks::read(&look)?.into_iter().filter(|task| is_part_of(task, &key)).collect();
        let mut by_status = BTreeMap::new();
        own.iter().for_each(|task| *by_status.entry(task.status.name()).or_default() += 1);
        let names: BTreeSet<String> = own.iter().map(|task| own_key("task", &task.key)).chain([key.clone()]).collect();
        let claims = held.iter().filter(|claim| {
            let of_task = claim.task_id.as_deref().is_some_and(|task| names.contains(&own_key("task", task)));
            let code = own.iter().flat_map(|task| &task.targets).any(|target| *target == claim.target);
            names.contains(&claim.target) || of_task || code
        });
        let active_claims: Vec<ClaimOut> = claims.map(|claim| ClaimOut::of(claim.clone(), &context.scope)).collect();
        let blocked: Vec<String> = own
            .iter()
            .filter(|task| task.is_open() && task.open_blockers().next().is_some())
            .map(|task| task.key.clone())
            .collect();
        let code_coverage = coverage(&look, &own)?;
        let percent_complete = percent(&own);
        let mut summary = format!("{key}: {percent_complete} % of {}", count(own.len(), "task"));
        if !blocked.is_empty() {
            summary += &format!(", {} waiting", blocked.len());
        }
        if let Some(percent) = code_coverage.percent {
            summary += &format!("; tests reach {percent} % of its {}", count(code_coverage.symbols, "function"));
        }
        Ok(Response {
            summary,
            feature_id: key,
            title,
            status,
            percent_complete,
            by_status,
            tasks: own.iter().map(|task| TaskOut::of(task, &held)).collect(),
            blocked,
            active_claims,
            code_coverage,
            view: look.view.echo(),
        })
    }
}

/// Returns key, title and status of a feature or track.
fn feature(look: &ViewGraph, id: &str) -> Result<(String, String, Option<String>)> {
    let readings = [(FEATURE, own_key("feature", id)), (TRACK, own_key("track", id)), (FEATURE, id.to_owned())];
    for (type_name, key) in readings {
        if let Ok(found) = look.ledger.find(&look.view, &Reference::exact(type_name, &key)) {
            let content = found.statement.parsed()?;
            let key = found.thing.key.as_deref().unwrap_or(&key).to_owned();
            return Ok((key.clone(), content.title.unwrap_or(key), content.status));
        }
    }
    Err(Error::not_found(ErrorCode::UnknownFeature, format!("there is no feature or track `{id}`"))
        .hint("`task_update` with `feature_id` makes one; `lukasa list Feature` shows what there is"))
}

fn coverage(look: &ViewGraph, tasks: &[Task]) -> Result<TestCoverage> {
    let symbols = Symbols::new(look);
    let named: BTreeSet<&String> = tasks.iter().flat_map(|task| &task.targets).collect();
    let mut found = TestCoverage::default();
    let mut nodes: BTreeSet<Node> = BTreeSet::new();
    for name in named {
        match look.node(name) {
            Ok(node) => nodes.extend(symbols.whole(node, MEMBERS).0.into_iter().chain([node])),
            Err(e) if e.code == ErrorCode::NotFound => found.unknown.push(name.clone()),
            Err(e) => return Err(e),
        }
    }
    for node in nodes {
        let runs = symbols.kind(node).is_some_and(|kind| kind.runs());
        if !runs || symbols.is_test(node) {
            continue;
        }
        found.symbols += 1;
        if is_tested(&symbols, node) {
            found.tested += 1;
        } else if found.untested.len() < NAMED {
            found.untested.push(symbols.key(node).into_owned());
        }
    }
    let share = found.tested as f64 / found.symbols.max(1) as f64;
    found.percent = (found.symbols > 0).then(|| (share * 1_000.0).round() / 10.0);
    Ok(found)
}

/// Returns whether a test calls the symbol, or tests it or its enclosing type.
fn is_tested(symbols: &Symbols<'_>, node: Node) -> bool {
    let tests = |node: Node| symbols.linked(node, SymbolRelation::Tests, LinkDirection::In).next().is_some();
    let called =
        symbols.linked(node, SymbolRelation::Calls, LinkDirection::In).any(|(caller, _)| symbols.is_test(caller));
    called || tests(node) || symbols.owner(node).is_some_and(tests)
}
