//! `symbol_lookup`: finds symbols by a name that may be incomplete or mistyped.

use crate::features::code::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::Limit;
use crate::responses::count;
use crate::view::symbols::{LocatedSymbol, MatchKind, NameQuery, Symbols, about, text};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Error, ErrorCode, Result};
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct SymbolLookup;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// A name, words of it, or the end of a key: `login`, `read html`, `Session.close`.
    pub query: String,
    /// Only symbols of these types: File, Class, Function, Method, ….
    #[serde(default)]
    pub types: Vec<String>,
    /// Only symbols in files whose path has this prefix.
    #[serde(default)]
    pub path: Option<String>,
    /// Maximum number of symbols, up to 1,000.
    #[serde(default)]
    pub limit: Limit<20>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Best first; at equal score, the one with more callers first.
    pub symbols: Vec<MatchedSymbolOut>,
    /// Number of symbols that match, listed or not.
    pub total: usize,
    pub truncated: bool,
    pub view: ViewEcho,
}

#[derive(Serialize, JsonSchema)]
pub struct MatchedSymbolOut {
    #[serde(flatten)]
    pub symbol: LocatedSymbol,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// One-sentence description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// How well it matches, 0 to 1.
    pub score: f64,
    #[serde(rename = "match")]
    pub by: MatchKind,
    /// Number of callers.
    pub callers: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
}

impl Op for SymbolLookup {
    const META: Meta = Meta {
        name: "symbol_lookup",
        shown: ResponseView::Cut(rendering::symbols),
        default_tool: &["query", "types", "path", "limit"],
        answer: &["symbols.key", "symbols.type", "symbols.line", "symbols.signature", "symbols.about"],
        summary: "Find symbols by name",
        description: "Finds files, classes, functions and other symbols by a name that may be incomplete or mistyped: the \
                      exact name first, then the same in other case, then names and paths with all words of the query \
                      (`readFile`, `read_file` and `read file` are equal), then names with wrong or missing letters. \
                      Each result has its kind and location.",
        verb: "symbol",
        toolset: "code",
        positional: &["query"],
        aliases: &[("name", "query")],
        examples: &["lukasa symbol login", "lukasa symbol \"parse config\" --types Function --path src/"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let query = NameQuery::new(&request.query);
        if query.is_empty() {
            return Err(Error::invalid(
                ErrorCode::InvalidRequest,
                format!("`{}` is no name to look for", request.query),
            )
            .hint("give a name or words of it"));
        }
        let look = engine.view_graph(context, &request.view)?;
        let symbols = Symbols::new(&look);
        let filter = look.filter(&[], &request.types, &[])?;
        let path = request.path.as_deref().map(|p| p.strip_prefix("./").unwrap_or(p));
        let s = &look.snapshot;
        let allowed = |node: Node| {
            filter.node(s, node) && path.is_none_or(|path| s.key(node).is_some_and(|key| key.starts_with(path)))
        };
        let mut found = symbols.like(&query, allowed);
        let total = found.len();
        found.truncate(request.limit.get());
        let contents = symbols.contents(&found.iter().map(|f| f.node).collect::<Vec<_>>())?;
        let rows: Vec<MatchedSymbolOut> = found
            .iter()
            .map(|f| {
                let content = contents.get(&f.node);
                let signature = content.and_then(|c| text(c, "signature"));
                MatchedSymbolOut {
                    symbol: symbols.placed(f.node, &contents),
                    about: content.and_then(|c| about(c, signature.as_deref(), &symbols.key(f.node))),
                    signature,
                    score: (f.score * 1e4).round() / 1e4,
                    by: f.by,
                    callers: f.callers,
                    test: symbols.is_test(f.node),
                }
            })
            .collect();
        let exact = found.iter().filter(|f| f.by == MatchKind::Exact).count();
        let mut summary = match (exact, total) {
            (_, 0) => format!("no symbol is like `{}`", request.query),
            (0, n) => format!("no symbol is named `{}`; {} near it", request.query, count(n, "name")),
            (1, 1) => format!("1 symbol is named `{}`", request.query),
            (1, n) => format!("1 symbol is named `{}`; {} near it", request.query, count(n - 1, "name")),
            (e, n) if e == n => format!("{e} symbols are named `{}`", request.query),
            (e, n) => format!("{e} symbols are named `{}`; {} near it", request.query, count(n - e, "name")),
        };
        if total > rows.len() {
            summary += &format!("; the best {} are shown", rows.len());
        }
        Ok(Response { summary, truncated: total > rows.len(), symbols: rows, total, view: look.view.echo() })
    }
}
