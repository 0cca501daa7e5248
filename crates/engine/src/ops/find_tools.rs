//! `find_tools`: which operations there are for a purpose, with what they take.

use super::{META, count};
use crate::registry::{self, Effect, Meta, Op};
use crate::{Context, Engine, tool};
use lukasa_model::Result;
use lukasa_search::tokens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub struct FindTools;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// What you want to do, in words; left out, every tool is listed by name.
    #[serde(default)]
    pub query: Option<String>,
    /// Only tools of this set.
    #[serde(default)]
    pub toolset: Option<String>,
    /// Most tools, 1 to 100.
    #[serde(default = "few")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: usize,
}

fn few() -> usize {
    5
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Best first.
    pub tools: Vec<ToolOut>,
    /// Every toolset, for `--toolsets`.
    pub toolsets: Vec<&'static str>,
}

#[derive(Serialize, JsonSchema)]
pub struct ToolOut {
    pub name: &'static str,
    pub about: &'static str,
    pub toolset: &'static str,
    pub effect: Effect,
    /// What it takes, as JSON Schema; given with a question, where few tools are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

impl Op for FindTools {
    const META: Meta = Meta {
        name: "find_tools",
        answer: &["tools.name", "tools.about", "tools.arguments", "tools.effect"],
        summary: "Find tools for a purpose",
        description: "Lists operations by what they are for, with their arguments. Every one can be called by its name, \
                      whether or not it is listed to the agent.",
        verb: "find-tools",
        toolset: "admin",
        positional: &["query"],
        examples: &["lukasa find-tools \"compare two branches\"", "lukasa find-tools --toolset releases --limit 20"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(_: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        crate::graph::check_range("limit", request.limit, 1, 100)?;
        let asked = request.query.as_deref().map(tokens::list).unwrap_or_default();
        let mut found: Vec<(usize, &registry::Operation)> = registry::operations()
            .iter()
            .filter(|operation| context.grants.cover(operation.meta.scope))
            .filter(|operation| request.toolset.as_deref().is_none_or(|set| operation.meta.toolset == set))
            .map(|operation| (fitting(operation, &asked), operation))
            .filter(|(fit, _)| asked.is_empty() || *fit > 0)
            .collect();
        // Stable: equals stay in the order of the registry.
        found.sort_by_key(|(fit, _)| std::cmp::Reverse(*fit));
        let total = found.len();
        let with_arguments = !asked.is_empty();
        let tools: Vec<ToolOut> = found
            .into_iter()
            .take(request.limit)
            .map(|(_, operation)| ToolOut {
                name: operation.meta.name,
                about: operation.meta.summary,
                toolset: operation.meta.toolset,
                effect: operation.meta.effect,
                arguments: with_arguments.then(|| tool::arguments(operation)),
            })
            .collect();
        let mut toolsets: Vec<&'static str> = registry::operations().iter().map(|o| o.meta.toolset).collect();
        toolsets.sort_unstable();
        toolsets.dedup();
        let best =
            tools.first().map(|tool| format!("; the best: `{}` ({})", tool.name, tool.about)).unwrap_or_default();
        Ok(Response { summary: format!("{}{best}", count(total, "tool")), tools, toolsets })
    }
}

/// Words of the question in an operation's name count most, then in its line, then in its description.
fn fitting(operation: &registry::Operation, asked: &[String]) -> usize {
    let meta = &operation.meta;
    let texts = [(meta.name, 4), (meta.verb, 4), (meta.summary, 3), (meta.toolset, 2), (meta.description, 1)];
    let weigh = |(text, weight): (&str, usize)| {
        let words = tokens::list(text);
        asked.iter().filter(|word| words.contains(word)).count() * weight
    };
    texts.into_iter().map(weigh).sum()
}
