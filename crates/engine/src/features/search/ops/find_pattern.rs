//! `find_pattern`: finds code that matches a named pattern or a shape, grouped, with suggestions.

use crate::features::search::rendering::questions;
use crate::features::search::{Recipe, SearchQuestion, find};
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::symbols::{Symbols, keys, number};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Error, ErrorCode, Result};
use lukasa_search::pipeline::fuse::Fusion;
use lukasa_search::pipeline::seeds::NearestNodes;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod code;
mod named;
mod shape;

use code::Code;
use named::{NAMED, NamedPattern};
use shape::GraphShape;

/// The operation `find_pattern`.
pub struct FindPattern;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// A named pattern (circular_imports, unreferenced, unused_exports, god_files, god_classes, long_functions,
    /// deep_inheritance, untested, duplicate_names, unresolved_hotspots), `all` of them, a shape such as `Class
    /// -EXTENDS-> Class -IMPLEMENTS-> Interface`, or words to search for.
    pub pattern: String,
    /// Only files whose path has this prefix.
    #[serde(default)]
    pub path: Option<String>,
    /// Maximum number of items per group, up to 1,000.
    #[serde(default)]
    pub limit: Limit<20>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// One group per pattern with matches.
    pub groups: Vec<PatternGroupOut>,
    /// A group was cut off at `limit`.
    pub truncated: bool,
    pub view: ViewEcho,
}

/// Severity of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    High,
    Medium,
    Low,
    Info,
}

/// The matches of one pattern.
#[derive(Serialize, JsonSchema)]
pub struct PatternGroupOut {
    pub pattern: String,
    pub title: String,
    /// Number of matches before the limit.
    pub count: usize,
    pub severity: Severity,
    /// Meaning of the pattern, and how to fix it.
    pub suggestion: String,
    /// Worst first.
    pub items: Vec<PatternItemOut>,
    pub truncated: bool,
}

/// A match of a pattern.
#[derive(Serialize, JsonSchema)]
pub struct PatternItemOut {
    /// `Type:key`, or the id of an object without a key.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Line of its definition, for a symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub detail: String,
}

/// A match, before it is converted for the response.
struct PatternMatch {
    node: Node,
    detail: String,
}

impl Op for FindPattern {
    const META: Meta = Meta {
        name: "find_pattern",
        long: true,
        shown: ResponseView::Cut(questions::patterns),
        default_tool: &["pattern", "path", "limit"],
        answer: &["groups.items.ref", "groups.items.detail", "groups.pattern", "groups.count", "groups.severity"],
        summary: "Find patterns in the code, with what to do about them",
        description: "Looks for circles of imports, functions without a reference, exports that no file imports, files and \
                      classes that do too much, long functions, deep inheritance, files without tests, names used twice \
                      and calls that could not be resolved; or for a shape of types and relationships; or for words. \
                      Answers are grouped by pattern, the worst first, each with a suggestion. All are hints: what is \
                      called by reflection or from elsewhere looks unused.",
        verb: "pattern",
        toolset: "code",
        positional: &["pattern"],
        examples: &[
            "lukasa pattern circular_imports",
            "lukasa pattern all --path src/ --limit 5",
            "lukasa pattern \"Class -EXTENDS-> Class -IMPLEMENTS-> Interface\"",
        ],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let asked = request.pattern.trim();
        if asked.is_empty() {
            return Err(Error::invalid(ErrorCode::InvalidRequest, "no pattern is named").hint(known()));
        }
        let look = engine.view_graph(context, &request.view)?;
        let symbols = Symbols::new(&look);
        let path = request.path.as_deref().map(|path| path.strip_prefix("./").unwrap_or(path));
        let groups_of = GroupBuilder { symbols: &symbols, limit: request.limit.get() };
        let mut groups = Vec::new();
        let what = match RequestedPattern::read(asked) {
            RequestedPattern::Named(patterns) => {
                let code = Code::new(&symbols, path);
                for pattern in &patterns {
                    groups.push(groups_of.group(pattern, (pattern.find)(&code)?)?);
                }
                match &patterns[..] {
                    [one] => one.title.to_lowercase(),
                    _ => count(patterns.len(), "pattern"),
                }
            }
            RequestedPattern::Shape => {
                let shape = GraphShape::read(asked, &look)?;
                groups.push(groups_of.shape(asked, shape.find(&symbols, path))?);
                "the shape".into()
            }
            RequestedPattern::Words => {
                groups.push(words(engine, context, &groups_of, asked, path)?);
                "these words (no pattern of that name)".into()
            }
        };
        groups.retain(|group| group.count > 0);
        let total: usize = groups.iter().map(|group| group.count).sum();
        let places = if total == 0 { "nothing".into() } else { count(total, "place") };
        let mut summary = format!("{what}: {places} found");
        if groups.len() > 1 {
            let parts: Vec<String> = groups.iter().map(|group| format!("{} {}", group.count, group.pattern)).collect();
            summary += &format!(" ({})", parts.join(", "));
        }
        if let Some(path) = path {
            summary += &format!(" under `{path}`");
        }
        let truncated = groups.iter().any(|group| group.truncated);
        Ok(Response { summary, groups, truncated, view: look.view.echo() })
    }
}

/// How the `pattern` field is interpreted.
enum RequestedPattern {
    Named(Vec<&'static NamedPattern>),
    Shape,
    Words,
}

impl RequestedPattern {
    fn read(text: &str) -> RequestedPattern {
        let name = text.to_lowercase().replace(['-', ' '], "_");
        if name == "all" {
            return RequestedPattern::Named(NAMED.iter().collect());
        }
        match NAMED.iter().find(|pattern| pattern.name == name) {
            Some(pattern) => RequestedPattern::Named(vec![pattern]),
            None if text.contains("->") || text.contains("<-") => RequestedPattern::Shape,
            None => RequestedPattern::Words,
        }
    }
}

fn known() -> String {
    let names: Vec<&str> = NAMED.iter().map(|pattern| pattern.name).collect();
    format!("named patterns: {}, all; or a shape such as `Class -EXTENDS-> Class`", names.join(", "))
}

/// Converts matches for the response.
struct GroupBuilder<'a> {
    symbols: &'a Symbols<'a>,
    limit: usize,
}

impl GroupBuilder<'_> {
    fn items(&self, found: &[PatternMatch]) -> Result<Vec<PatternItemOut>> {
        let found = &found[..found.len().min(self.limit)];
        let contents = self.symbols.contents(&found.iter().map(|item| item.node).collect::<Vec<_>>())?;
        let items = found.iter().map(|item| PatternItemOut {
            reference: self.symbols.look.snapshot.name(item.node),
            line: contents.get(&item.node).and_then(|content| number(content, "line")),
            detail: item.detail.clone(),
        });
        Ok(items.collect())
    }

    fn group(&self, pattern: &NamedPattern, found: Vec<PatternMatch>) -> Result<PatternGroupOut> {
        Ok(PatternGroupOut {
            pattern: pattern.name.into(),
            title: pattern.title.into(),
            count: found.len(),
            severity: pattern.severity,
            suggestion: pattern.suggestion.into(),
            truncated: found.len() > self.limit,
            items: self.items(&found)?,
        })
    }

    fn shape(&self, asked: &str, (found, complete): (Vec<PatternMatch>, bool)) -> Result<PatternGroupOut> {
        Ok(PatternGroupOut {
            pattern: asked.into(),
            title: "Places of this shape".into(),
            count: found.len(),
            severity: Severity::Info,
            suggestion: match complete {
                true => "`lukasa cypher` takes conditions on properties, too".into(),
                false => "there are more than could be counted: name more types, or give `path`".into(),
            },
            truncated: !complete || found.len() > self.limit,
            items: self.items(&found)?,
        })
    }
}

fn words(
    engine: &Engine,
    context: &mut Context<'_>,
    groups_of: &GroupBuilder<'_>,
    asked: &str,
    path: Option<&str>,
) -> Result<PatternGroupOut> {
    let look = groups_of.symbols.look;
    let s = &look.snapshot;
    let texts = engine.texts(context, look)?;
    let allowed = |node: Node| path.is_none_or(|path| s.key(node).is_some_and(|key| keys::path(key).starts_with(path)));
    let ask = SearchQuestion {
        text: asked,
        recipe: Recipe::Auto,
        lexical: true,
        vector: false,
        intent: None,
        fusion: Fusion::WeightedSum,
        pool: groups_of.limit,
        nearest: NearestNodes::default(),
        allowed: &allowed,
    };
    let found: Vec<PatternMatch> = find(look, &texts, &ask)
        .candidates
        .iter()
        .map(|candidate| PatternMatch { node: candidate.node, detail: format!("score {:.3}", candidate.score()) })
        .collect();
    Ok(PatternGroupOut {
        pattern: asked.into(),
        title: "Found by words".into(),
        count: found.len(),
        severity: Severity::Info,
        suggestion: known(),
        truncated: found.len() > groups_of.limit,
        items: groups_of.items(&found)?,
    })
}
