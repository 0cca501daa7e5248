//! `graph_query`: answers a question in words or in openCypher, with single facts, communities, or both.

use crate::features::graph::communities::ComputedCommunities;
use crate::features::graph::ops::cypher;
use crate::features::search::rendering::questions;
use crate::features::search::{Recipe, SearchQuestion, find};
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::ViewGraph;
use crate::view::symbols::{Symbols, keys, number, text};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_graph::community::CommunityOptions;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Content, Error, ErrorCode, Result, Tx};
use lukasa_search::pipeline::fuse::{Candidate, Fusion, best};
use lukasa_search::pipeline::seeds::{NearestNodes, by_words};
use lukasa_search::question;
use lukasa_search::recipes::{ANY_FIELD, GRAPH_QUERY};
use lukasa_search::text::{Doc, DocumentBatch, Term, TextField, TextIndex};
use lukasa_search::tokens::stemmed;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operation `graph_query`.
pub struct GraphQuery;

/// Properties that summarize an object, the most informative first.
const SUMMARIES: [&str; 6] = ["summary", "description", "content", "text", "doc", "body"];
/// Maximum length of a row's summary, in characters.
const LONGEST: usize = 240;
/// Words of questions about the whole project, which name nothing in particular.
const OPEN: [&str; 26] = [
    "overview",
    "codebase",
    "code",
    "base",
    "repository",
    "repo",
    "project",
    "system",
    "architecture",
    "structure",
    "summary",
    "summarize",
    "describe",
    "explain",
    "show",
    "tell",
    "theme",
    "main",
    "major",
    "whole",
    "everything",
    "component",
    "part",
    "area",
    "module",
    "general",
];

/// Language of the question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionLanguage {
    /// In words.
    #[default]
    Natural,
    /// In openCypher.
    Cypher,
}

/// What a question in words is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionMode {
    /// Single objects.
    #[default]
    Local,
    /// Communities, by their summaries.
    Global,
    /// Both.
    Hybrid,
}

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The question.
    pub query: String,
    /// Language of the question.
    #[serde(default)]
    pub language: QuestionLanguage,
    /// What a question in words is about: local (single objects), global (communities) or hybrid (both).
    #[serde(default)]
    pub mode: QuestionMode,
    /// Maximum number of rows per section, up to 1,000.
    #[serde(default)]
    pub limit: Limit<10>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub language: QuestionLanguage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<QuestionMode>,
    /// Objects, best first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalOut>,
    /// Communities, best first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global: Option<GlobalOut>,
    /// The result of a query in openCypher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cypher: Option<cypher::Response>,
    /// A section has more rows than are listed.
    pub truncated: bool,
    pub view: ViewEcho,
}

/// The objects that match the question.
#[derive(Serialize, JsonSchema)]
pub struct LocalOut {
    /// The recipe that ranked the rows: objects, code or recall.
    pub recipe: &'static str,
    pub rows: Vec<RowOut>,
    /// Number of matches.
    pub total: usize,
}

/// An object that matches the question.
#[derive(Serialize, JsonSchema)]
pub struct RowOut {
    /// `Type:key`, or its id.
    #[serde(rename = "ref")]
    pub reference: String,
    #[serde(rename = "type")]
    pub type_name: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    pub score: f64,
    /// The components of the score.
    pub why: Vec<WhyOut>,
}

/// A component of a score.
#[derive(Serialize, JsonSchema)]
pub struct WhyOut {
    pub channel: &'static str,
    pub score: f64,
}

/// The communities that match the question.
#[derive(Serialize, JsonSchema)]
pub struct GlobalOut {
    /// The question names nothing in particular, so all communities are listed, largest first.
    pub open_ended: bool,
    pub rows: Vec<AreaOut>,
    /// Number of communities that match the question.
    pub total: usize,
    /// Number of all communities.
    pub communities: usize,
    /// The transaction for which they were computed.
    pub computed_at: Tx,
    /// Number of transactions since then.
    pub transactions_since: u64,
}

/// A community that matches the question.
#[derive(Serialize, JsonSchema)]
pub struct AreaOut {
    /// `COMMUNITY:key`, which other commands accept.
    #[serde(rename = "ref")]
    pub reference: String,
    pub label: String,
    pub summary: String,
    pub size: usize,
    pub central_node: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Words of the question that match, with what each adds to the score.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<WordOut>,
}

/// A matching word and its share of the score.
#[derive(Serialize, JsonSchema)]
pub struct WordOut {
    pub word: String,
    pub score: f64,
}

impl Op for GraphQuery {
    const META: Meta = Meta {
        name: "graph_query",
        long: true,
        shown: ResponseView::Cut(questions::query),
        default_tool: &["query", "language", "mode", "limit"],
        answer: &[
            "local.rows.ref",
            "local.rows.path",
            "local.rows.line",
            "local.rows.summary",
            "local.total",
            "global.rows.label",
            "global.rows.summary",
            "global.rows.central_node",
            "global.rows.ref",
            "global.total",
            "cypher.rows",
            "cypher.columns",
            "cypher.warnings",
        ],
        summary: "Ask the graph a question in words or in openCypher",
        description: "In words, local mode finds the things that answer the question, whatever they are; global mode \
                      ranks communities by their names, summaries and members, and lists all of them when the question \
                      is about the whole; hybrid mode does both. Each row says what its score is made of. In openCypher \
                      it is what `cypher` does.",
        verb: "ask",
        toolset: "search",
        positional: &["query"],
        aliases: &[("question", "query")],
        examples: &[
            "lukasa ask \"where are passwords checked\"",
            "lukasa ask \"overview of the codebase\" --mode global",
            "lukasa ask \"MATCH (f:File) RETURN count(f)\" --language cypher",
        ],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        if request.query.trim().is_empty() {
            return Err(Error::invalid(ErrorCode::InvalidRequest, "there is no question").hint("give `query`"));
        }
        if request.language == QuestionLanguage::Cypher {
            return in_cypher(engine, context, request);
        }
        let look = engine.view_graph(context, &request.view)?;
        let local = match request.mode {
            QuestionMode::Global => None,
            QuestionMode::Local | QuestionMode::Hybrid => Some(local(engine, context, &look, &request)?),
        };
        let global = match request.mode {
            QuestionMode::Local => None,
            QuestionMode::Global | QuestionMode::Hybrid => {
                let kept = engine.communities(&look, &CommunityOptions::default())?;
                Some(global(&look, &kept, &request))
            }
        };
        let cut = |listed: usize, total: usize| listed < total;
        Ok(Response {
            summary: in_words(local.as_ref(), global.as_ref()),
            language: QuestionLanguage::Natural,
            mode: Some(request.mode),
            truncated: local.as_ref().is_some_and(|l| cut(l.rows.len(), l.total))
                || global.as_ref().is_some_and(|g| cut(g.rows.len(), g.total)),
            local,
            global,
            cypher: None,
            view: look.view.echo(),
        })
    }
}

fn in_cypher(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
    let asked = cypher::Request {
        limit: Limit::of(request.limit.get()),
        view: request.view,
        ..cypher::Request::of(request.query)
    };
    let answer = cypher::Cypher::run(engine, context, asked)?;
    Ok(Response {
        summary: answer.summary.clone(),
        language: QuestionLanguage::Cypher,
        mode: None,
        local: None,
        global: None,
        truncated: answer.truncated,
        view: answer.view.clone(),
        cypher: Some(answer),
    })
}

fn in_words(local: Option<&LocalOut>, global: Option<&GlobalOut>) -> String {
    let mut parts = Vec::new();
    if let Some(local) = local {
        parts.push(match local.rows.first() {
            None => "nothing here has the words of the question".to_string(),
            Some(best) => format!("{} found, best `{}`", count(local.total, "thing"), best.reference),
        });
    }
    if let Some(global) = global {
        let all = count(global.communities, "community").replace("communitys", "communities");
        parts.push(match (global.open_ended, global.rows.first()) {
            (_, None) if global.communities == 0 => "there are no communities: nothing is related".into(),
            (_, None) => format!("none of {all} has the words of the question"),
            (true, Some(_)) => format!("{all}, largest first"),
            (false, Some(best)) => format!("{} of {all} answer, best {}", global.total, best.label),
        });
    }
    parts.join("; ")
}

fn local(engine: &Engine, context: &mut Context<'_>, look: &ViewGraph, request: &Request) -> Result<LocalOut> {
    let texts = engine.texts(context, look)?;
    let ask = SearchQuestion {
        text: &request.query,
        recipe: Recipe::Auto,
        lexical: true,
        vector: false,
        intent: None,
        fusion: Fusion::WeightedSum,
        pool: GRAPH_QUERY.pool.max(request.limit.get()),
        nearest: NearestNodes::default(),
        allowed: &|_| true,
    };
    let answered = find(look, &texts, &ask);
    let total = answered.candidates.len();
    let best = &answered.candidates[..total.min(request.limit.get())];
    Ok(LocalOut { recipe: answered.recipe.name(), rows: rows(look, best)?, total })
}

/// Converts candidates to rows.
fn rows(look: &ViewGraph, found: &[Candidate]) -> Result<Vec<RowOut>> {
    let s = &look.snapshot;
    let symbols = Symbols::new(look);
    let contents = symbols.contents(&found.iter().map(|candidate| candidate.node).collect::<Vec<_>>())?;
    let empty = Content::default();
    let row = |candidate: &Candidate| {
        let node: Node = candidate.node;
        let content = contents.get(&node).unwrap_or(&empty);
        let in_code = symbols.kind(node).is_some_and(|kind| !kind.outside());
        let path = text(content, "path").or_else(|| s.key(node).filter(|_| in_code).map(|key| keys::path(key).into()));
        RowOut {
            reference: s.name(node),
            type_name: s.type_name(node).to_string(),
            name: crate::features::search::title(content).unwrap_or_else(|| keys::name(&symbols.key(node)).to_string()),
            path,
            line: number(content, "line"),
            summary: SUMMARIES.iter().find_map(|name| text(content, name)).map(|text| shortened(&text)),
            score: rounded(candidate.score()),
            why: candidate
                .reasons
                .iter()
                .map(|reason| WhyOut { channel: reason.channel, score: rounded(reason.score) })
                .collect(),
        }
    };
    Ok(found.iter().map(row).collect())
}

fn rounded(score: f64) -> f64 {
    (score * 1e4).round() / 1e4
}

/// Returns the first line, cut between words if it is long.
fn shortened(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(LONGEST) {
        None => line.to_owned(),
        Some((end, _)) => {
            let words = line[..end].rfind(char::is_whitespace).unwrap_or(end);
            format!("{} …", line[..words].trim_end())
        }
    }
}

/// Returns communities by how well they match the question.
fn global(look: &ViewGraph, kept: &ComputedCommunities, request: &Request) -> GlobalOut {
    let terms = question::terms(&request.query);
    let index = areas(look, kept);
    let scores = if is_open(&terms) { vec![] } else { by_words(&index, &terms, &ANY_FIELD) };
    // Communities are stored largest first; of equal scores, the larger comes first.
    let mut scores = best(scores, usize::MAX, |at| u64::from(at.0));
    let open_ended = scores.is_empty();
    if open_ended {
        scores = (0..kept.communities.len()).map(|at| (Doc::at(at), 0.0)).collect();
    }
    let total = scores.len();
    scores.truncate(request.limit.get());
    let row = |(at, score): (Doc, f64)| {
        let area = &kept.communities[at.index()];
        let mut words = if open_ended { vec![] } else { index.explain(at, &terms, &ANY_FIELD) };
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let why = words.into_iter().map(|(word, score)| WordOut { word, score: rounded(f64::from(score)) });
        AreaOut {
            reference: format!("{}:{}", area.type_name, area.key),
            label: area.label.clone(),
            summary: area.summary.clone(),
            size: area.size,
            central_node: area.central_node.clone(),
            score: (!open_ended).then(|| rounded(score)),
            why: why.collect(),
        }
    };
    GlobalOut {
        open_ended,
        rows: scores.into_iter().map(row).collect(),
        total,
        communities: kept.communities.len(),
        computed_at: kept.at.tx,
        transactions_since: look.view.known.since(kept.at.tx),
    }
}

/// Whether no word of the question names anything in particular.
fn is_open(terms: &[Term]) -> bool {
    terms.iter().all(|term| OPEN.iter().any(|word| *word == term.word || stemmed(word) == term.word))
}

/// Scores communities by their names, summaries and members.
fn areas(look: &ViewGraph, kept: &ComputedCommunities) -> TextIndex {
    let s = &look.snapshot;
    let mut all = DocumentBatch::default();
    for (at, area) in kept.communities.iter().enumerate() {
        all.begin(Doc::at(at));
        all.add(TextField::Name, &area.label);
        all.add(TextField::Text, &area.summary);
        for node in kept.members(at).iter().take(GRAPH_QUERY.members).filter_map(|thing| s.find(*thing)) {
            if let Some(key) = s.key(node) {
                all.add(TextField::Body, keys::name(key));
            }
        }
    }
    TextIndex::build(vec![all])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_the_whole_are_open() {
        for (question, open) in [
            ("overview of the codebase", true),
            ("What are the main components of this project?", true),
            ("summarize the architecture", true),
            ("how are passwords checked", false),
            ("overview of billing", false),
        ] {
            assert_eq!(is_open(&question::terms(question)), open, "{question}");
        }
    }

    #[test]
    fn summaries_end_between_words() {
        assert_eq!(shortened("  one line\nand more"), "one line");
        let long = "wörd ".repeat(100);
        let short = shortened(&long);
        assert!(short.ends_with("wörd …") && short.chars().count() <= LONGEST + 2, "{short}");
    }
}
