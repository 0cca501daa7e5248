//! `find_tools`: finds operations for a purpose, with their arguments.

use crate::registry::META;
use crate::registry::fields::{RequestField, fields};
use crate::registry::{self, Effect, Meta, Op};
use crate::request_parts::Limit;
use crate::response_budget::Profile;
use crate::responses::count;
use crate::{Context, Engine, response_budget};
use lukasa_model::{Error, Result};
use lukasa_search::tokens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub struct FindTools;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// What you want to do; when left out, all tools are listed by name.
    #[serde(default)]
    pub query: Option<String>,
    /// Only tools of this toolset.
    #[serde(default)]
    pub toolset: Option<String>,
    /// Maximum number of tools, 1 to 100.
    #[serde(default)]
    pub limit: Limit<5, 100>,
    /// Size of the answer: compact (300 tokens), balanced (1,200) or debug (everything).
    #[serde(default = "everything")]
    pub profile: Profile,
}

fn everything() -> Profile {
    Profile::Debug
}

#[derive(Clone, Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Best first.
    pub tools: Vec<ToolOut>,
    /// All toolsets, for `--toolsets`; only without a query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub toolsets: Vec<&'static str>,
    /// How to get what did not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Clone, Serialize, JsonSchema)]
pub struct ToolOut {
    pub name: &'static str,
    pub about: &'static str,
    pub toolset: &'static str,
    pub effect: Effect,
    /// Its arguments as JSON Schema; only with a query, as far as the budget allows, best tool first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

impl Op for FindTools {
    const META: Meta = Meta {
        name: "find_tools",
        default_tool: &["query", "toolset", "limit"],
        fits_itself: true,
        answer: &["tools.name", "tools.about", "tools.arguments", "tools.effect"],
        summary: "Find tools for a purpose",
        description: "Lists operations by what they are for, with all of their arguments. Every one can be called by its \
                      name, or with `call_tool` where a host calls only what is listed.",
        verb: "find-tools",
        toolset: "admin",
        positional: &["query"],
        examples: &["lukasa find-tools \"compare two branches\"", "lukasa find-tools --toolset releases --limit 20"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(_: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let asked = request.query.as_deref().map(tokens::list).unwrap_or_default();
        let mut found: Vec<(usize, &registry::Operation)> = registry::operations()
            .iter()
            .filter(|operation| context.grants.cover(operation.meta.scope))
            .filter(|operation| request.toolset.as_deref().is_none_or(|set| operation.meta.toolset == set))
            .map(|operation| (fitting(operation, &asked), operation))
            .filter(|(fit, _)| asked.is_empty() || *fit > 0)
            .collect();
        // The sort is stable, so equal scores keep the order of the registry.
        found.sort_by_key(|(fit, _)| std::cmp::Reverse(*fit));
        let total = found.len();
        let found: Vec<&registry::Operation> =
            found.into_iter().take(request.limit.get()).map(|(_, operation)| operation).collect();
        let best = found.first().map(|best| format!("; the best: `{}` ({})", best.meta.name, best.meta.summary));
        let mut answer = Response {
            summary: format!("{}{}", count(total, "tool"), best.unwrap_or_default()),
            tools: found.iter().map(|operation| named(operation)).collect(),
            toolsets: vec![],
            hint: None,
        };
        if asked.is_empty() {
            answer.toolsets = registry::operations().iter().map(|o| o.meta.toolset).collect();
            answer.toolsets.sort_unstable();
            answer.toolsets.dedup();
            return Ok(answer);
        }
        with_arguments(answer, &found, request.profile)
    }
}

fn named(operation: &registry::Operation) -> ToolOut {
    let meta = &operation.meta;
    ToolOut { name: meta.name, about: meta.summary, toolset: meta.toolset, effect: meta.effect, arguments: None }
}

/// Level of detail of a tool's arguments.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Whole,
    /// Names and types.
    Typed,
    /// Names, and which are required.
    Names,
}

fn arguments(operation: &registry::Operation, detail: Detail) -> Value {
    if detail == Detail::Whole {
        return response_budget::arguments(operation);
    }
    let fields = fields(operation);
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
    let schema = |field: &RequestField| if detail == Detail::Typed { field.schema() } else { json!({}) };
    let properties: Map<String, Value> = fields.iter().map(|field| (field.name.clone(), schema(field))).collect();
    json!({"properties": properties, "required": required})
}

/// Number of tools listed after the best one before its arguments are shortened.
const BESIDE: usize = 2;

/// Adds arguments as far as the profile has room. The best tool always gets its arguments, shortened if necessary; then
/// more tools are listed; then those get their arguments.
fn with_arguments(answer: Response, found: &[&registry::Operation], profile: Profile) -> Result<Response> {
    let Some(best) = found.first() else { return Ok(answer) };
    if profile == Profile::Debug {
        let mut all = answer;
        all.tools.iter_mut().zip(found).for_each(|(tool, own)| tool.arguments = Some(response_budget::arguments(own)));
        return Ok(all);
    }
    let hint =
        profile.larger().map(|larger| format!("profile {} gives more tools and all of their arguments", larger.name()));
    let cut = Response { hint, ..answer.clone() };
    let enough = BESIDE.min(found.len() - 1);
    let tries =
        [(Detail::Whole, enough), (Detail::Typed, enough), (Detail::Whole, 0), (Detail::Typed, 0), (Detail::Names, 0)];
    let mut chosen = None;
    'tries: for (detail, least) in tries {
        for beside in (least..found.len()).rev() {
            let whole = detail == Detail::Whole && beside + 1 == found.len();
            let mut one = if whole { answer.clone() } else { cut.clone() };
            one.tools.truncate(beside + 1);
            one.tools[0].arguments = Some(arguments(best, detail));
            if has_room(&one, profile)? {
                chosen = Some(one);
                break 'tries;
            }
        }
    }
    // Not even the shortest form fits: leave it to the general response budget.
    let Some(mut chosen) = chosen else { return Ok(answer) };
    for (at, operation) in found.iter().enumerate().take(chosen.tools.len()).skip(1) {
        for detail in [Detail::Whole, Detail::Typed] {
            let mut more = chosen.clone();
            more.tools[at].arguments = Some(arguments(operation, detail));
            if has_room(&more, profile)? {
                chosen = more;
                break;
            }
        }
    }
    let all_whole = chosen.tools.len() == found.len()
        && chosen.tools.iter().zip(found).all(|(tool, own)| tool.arguments == Some(response_budget::arguments(own)));
    if !all_whole && chosen.hint.is_none() {
        let hinted = Response { hint: cut.hint, ..chosen.clone() };
        if has_room(&hinted, profile)? {
            chosen = hinted;
        }
    }
    Ok(chosen)
}

/// Returns whether the answer fits the profile completely.
fn has_room(answer: &Response, profile: Profile) -> Result<bool> {
    let answer =
        serde_json::to_value(answer).map_err(|e| Error::internal(format!("an answer cannot be written: {e}")))?;
    let operation = registry::find(FindTools::META.name).ok_or_else(|| Error::internal("an operation finds itself"))?;
    let shaped =
        response_budget::fit_response(operation, answer, response_budget::ResponseOptions { profile, page: 1 });
    Ok(shaped.is_ok_and(|shaped| shaped.get("truncated").is_none() && shaped.get("nextPage").is_none()))
}

/// Scores an operation: words of the query count most in its name and verb, then in its summary, toolset and
/// description.
fn fitting(operation: &registry::Operation, asked: &[String]) -> usize {
    let meta = &operation.meta;
    let texts = [(meta.name, 4), (meta.verb, 4), (meta.summary, 3), (meta.toolset, 2), (meta.description, 1)];
    let weigh = |(text, weight): (&str, usize)| {
        let words = tokens::list(text);
        asked.iter().filter(|word| words.contains(word)).count() * weight
    };
    texts.into_iter().map(weigh).sum()
}
