//! `semantic_slice`: the exact lines of a symbol, with what is around it, within a budget.

use crate::features::code::sources;
use crate::features::search::pack::walked;
use crate::features::search::rendering::questions;
use crate::features::search::{Recipe, SearchQuestion, find, round};
use crate::hex::unhex;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::response_budget::{NOTICE, Profile};
use crate::view::ViewGraph;
use crate::view::symbols::{
    CallWalk, LinkDirection, LocatedSymbol, ReachedSymbol, SymbolContents, SymbolKind, Symbols, about, keys, lines,
    local, number, text,
};
use crate::{Context, Engine};
use lukasa_graph::Node;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Content, Error, ErrorCode, ErrorKind, Result, Time, Tx, Version};
use lukasa_search::count::{count as tokens, count_within};
use lukasa_search::pipeline::fuse::Fusion;
use lukasa_search::pipeline::seeds::NearestNodes;
use lukasa_search::recipes::{PACK, POOLS};
use lukasa_store::VersionFields;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod knowledge;

use knowledge::{KnowledgeOut, known_about};

/// The operation `semantic_slice`.
pub struct SemanticSlice;

/// Maximum number of callers and of callees that are listed.
const LISTED: usize = 10;

/// How much of a symbol is returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Its declaration, without its body.
    Signature,
    /// Its lines.
    #[default]
    Body,
    /// Its lines, its callers and its callees.
    #[serde(alias = "with_deps")]
    WithDeps,
    /// The same, and the decisions and learnings about it.
    Full,
}

fn balanced() -> Profile {
    Profile::Balanced
}

/// Returns the token budget of an answer; the debug profile has none, because the response is paged.
fn budget(profile: Profile) -> Option<usize> {
    (profile != Profile::Debug).then(|| profile.tokens())
}

/// Returns the name of the profile to suggest when an answer does not fit.
fn next(profile: Profile) -> &'static str {
    profile.larger().map_or("debug", Profile::name)
}

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The symbol: its key, `Class::method`, `Class.method`, or a name.
    #[serde(default)]
    pub symbol: Option<String>,
    /// The file that the symbol is in: its path, or the end of its path. Without a symbol, the whole file is returned.
    #[serde(default)]
    pub file: Option<String>,
    /// A question to find the symbol by, if no name is given or none matches.
    #[serde(default)]
    pub query: Option<String>,
    /// How much of the symbol is returned.
    #[serde(default)]
    pub context: Extent,
    /// The score that `context_pack` returned for it, to be repeated in the answer.
    #[serde(default)]
    pub ppr_score: Option<f64>,
    /// How many tokens the answer may take: compact 300, balanced 1,200, debug any number.
    #[serde(default = "balanced")]
    pub profile: Profile,
    #[serde(flatten)]
    pub view: ViewSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub symbol_name: String,
    pub key: String,
    #[serde(rename = "type")]
    pub type_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// What it does, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Its lines as they were indexed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// key, file_and_name, name, file or question.
    pub found_by: &'static str,
    /// The most confident first, then by key; at most 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incoming_callers: Vec<SliceCallOut>,
    /// Number of callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_callers: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outgoing_calls: Vec<SliceCallOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_calls: Option<usize>,
    /// A notice for decisions and learnings, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// The newest 3.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relevant_decisions: Vec<KnowledgeOut>,
    /// The most confident 3.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relevant_learnings: Vec<KnowledgeOut>,
    /// Share of a random walk that visits this symbol. The walk starts at the matches of the question, or at the symbol itself.
    /// If the request has a score, that score.
    pub ppr_score: f64,
    /// When this version of the symbol became valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Time>,
    pub freshness: FreshnessOut,
    /// Something was left out to stay within the budget; the hint names it.
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Tokens of this answer.
    pub token_estimate: usize,
    pub view: ViewEcho,
}

/// A caller or callee.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SliceCallOut {
    pub key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Lines of the calls, in the caller's file; the first 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub call_lines: Vec<u64>,
    pub confidence: f64,
}

/// The version of the source that the lines are from.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FreshnessOut {
    /// The transaction that indexed this version of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<Tx>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_commit: Option<String>,
    /// Whether the file on disk differs from the indexed one; absent if it is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs_on_disk: Option<bool>,
    /// The same in words, with a recommendation.
    pub says: String,
}

impl Op for SemanticSlice {
    const META: Meta = Meta {
        name: "semantic_slice",
        shown: ResponseView::Cut(questions::slice),
        essential: true,
        default_tool: &["symbol", "file", "query", "context"],
        answer: &[
            "code",
            "signature",
            "file",
            "start_line",
            "end_line",
            "symbol_name",
            "about",
            "freshness.differs_on_disk",
            "incoming_callers.key",
            "incoming_callers.call_lines",
            "outgoing_calls.key",
            "outgoing_calls.call_lines",
            "relevant_decisions.content",
            "relevant_decisions.title",
            "relevant_learnings.content",
            "relevant_learnings.title",
        ],
        summary: "Show the exact lines of a symbol",
        description: "The source lines of a function, class or other symbol as they were indexed, with its signature, and \
                      on request who calls it, what it calls, and which decisions and learnings are about it. The symbol \
                      is found by key, by file and name, by name, else by a question. Where not all lines fit the \
                      profile's budget, the first of them are given, with a mark.",
        verb: "slice",
        toolset: "code",
        names: &["symbol", "file"],
        positional: &["symbol"],
        aliases: &[("ref", "symbol"), ("question", "query")],
        examples: &[
            "lukasa slice Session.close",
            "lukasa slice login --file src/auth.py --context with-deps",
            "lukasa slice --query \"where is the password checked\" --profile debug",
        ],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let look = engine.view_graph(context, &request.view)?;
        let symbols = Symbols::new(&look);
        let found = SymbolFinder { engine, symbols: &symbols, request: &request }.find(context)?;
        let (node, found_by) = (found.node, found.by);
        // The answer names the symbol itself, and counts its own tokens.
        drop(context.taken.take());
        let ppr_score = match request.ppr_score {
            Some(given) => given,
            None => walked(&look, &found.seeds).get(&node).copied().unwrap_or(0.0),
        };
        SliceBuilder { engine, symbols: &symbols, node, found_by, ppr_score: round(ppr_score), extent: request.context }
            .make(request.profile)
    }
}

/// Finds the symbol that a request names.
struct SymbolFinder<'a> {
    engine: &'a Engine,
    symbols: &'a Symbols<'a>,
    request: &'a Request,
}

/// The symbol, and how it was found.
struct FoundSymbol {
    node: Node,
    by: &'static str,
    /// The nodes at which the random walk starts.
    seeds: Vec<(Node, f64)>,
}

impl FoundSymbol {
    fn named(node: Node, by: &'static str) -> FoundSymbol {
        FoundSymbol { node, by, seeds: vec![(node, 1.0)] }
    }
}

fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

impl SymbolFinder<'_> {
    fn find(&self, context: &mut Context<'_>) -> Result<FoundSymbol> {
        let (symbol, query) = (given(&self.request.symbol), given(&self.request.query));
        let file = given(&self.request.file).map(|file| self.symbols.look.node(file)).transpose();
        let named = match (symbol, file) {
            (_, Err(e)) => Err(e),
            (Some(name), Ok(file)) => self.named(name, file),
            (None, Ok(Some(file))) if query.is_none() => Ok(FoundSymbol::named(file, "file")),
            (None, Ok(file)) => {
                let Some(query) = query else {
                    return Err(Error::invalid(ErrorCode::InvalidRequest, "nothing says which symbol is meant")
                        .hint("give `symbol`, `file` or `query`"));
                };
                return self.asked(context, query, file)?.ok_or_else(|| nothing(query));
            }
        };
        // A text with spaces is no name, so it may be a question.
        let asked = query.or(symbol.filter(|name| name.contains(char::is_whitespace)));
        match (named, asked) {
            (Err(e), Some(query)) if e.kind == ErrorKind::NotFound => self.asked(context, query, None)?.ok_or(e),
            (named, _) => named,
        }
    }

    fn named(&self, name: &str, file: Option<Node>) -> Result<FoundSymbol> {
        let look = self.symbols.look;
        let (node, by) = match file {
            Some(file) => match look.node_in(file, name) {
                Ok(node) => (node, "file_and_name"),
                // A complete key needs no file.
                Err(e) => (look.resolve(name).ok().filter(|found| found.exact).ok_or(e)?.node, "key"),
            },
            None => {
                let found = look.resolve(name)?;
                (found.node, if found.exact { "key" } else { "name" })
            }
        };
        if self.symbols.kind(node).is_none() {
            let message = format!("`{name}` is no symbol of the code index");
            return Err(Error::not_found(ErrorCode::NotASymbol, message).hint(format!("`lukasa get {name}` shows it")));
        }
        Ok(FoundSymbol::named(node, by))
    }

    /// Returns the best match of a question that has source lines.
    fn asked(&self, context: &mut Context<'_>, query: &str, file: Option<Node>) -> Result<Option<FoundSymbol>> {
        let look = self.symbols.look;
        let texts = self.engine.texts(context, look)?;
        let allowed = |node: Node| {
            self.symbols.kind(node).is_some_and(|kind| !kind.outside())
                && file.is_none_or(|file| self.symbols.file(node) == Some(file))
        };
        let ask = SearchQuestion {
            text: query,
            recipe: Recipe::Code,
            lexical: true,
            vector: false,
            intent: None,
            fusion: Fusion::WeightedSum,
            pool: POOLS.semantic_slice,
            nearest: NearestNodes::default(),
            allowed: &allowed,
        };
        let found = find(look, &texts, &ask).candidates;
        // A symbol locates the answer more exactly than its file.
        let symbol = found.iter().find(|candidate| !self.symbols.is(candidate.node, SymbolKind::File));
        let seeds = found.iter().take(PACK.seeds).map(|c| (c.node, c.score().max(0.0))).collect();
        Ok(symbol.or(found.first()).map(|best| FoundSymbol { node: best.node, by: "question", seeds }))
    }
}

fn nothing(query: &str) -> Error {
    Error::not_found(ErrorCode::NotFound, format!("nothing here answers `{query}`"))
        .hint("`lukasa symbol` searches by parts of names; `lukasa index` reads a folder")
}

/// The parameters of one answer.
struct SliceBuilder<'a> {
    engine: &'a Engine,
    symbols: &'a Symbols<'a>,
    node: Node,
    found_by: &'static str,
    ppr_score: f64,
    extent: Extent,
}

/// Maximum lengths of the lists that are tried before source lines are cut.
const TRIES: [usize; 4] = [LISTED, 5, 3, 1];

impl SliceBuilder<'_> {
    fn make(&self, profile: Profile) -> Result<Response> {
        let mut whole = self.whole()?;
        let Some(budget) = budget(profile) else {
            return estimated(whole);
        };
        let lists = SliceLists::of(&mut whole);
        whole.token_estimate = budget;
        for most in TRIES {
            lists.put(&mut whole, most);
            whole.truncated = lists.longest() > most;
            let next = next(profile);
            let hint = || format!("not all neighbours fit into {budget} tokens: ask with profile {next}");
            whole.hint = whole.truncated.then(hint);
            if count_within(&written(&whole)?, budget).is_some() {
                return estimated(whole);
            }
        }
        self.first_lines(&mut whole, profile, budget)?;
        estimated(whole)
    }

    /// Keeps as many lines from the beginning as fit, with a mark at the end.
    fn first_lines(&self, whole: &mut Response, profile: Profile, budget: usize) -> Result<()> {
        let Some(code) = whole.code.take() else { return Ok(()) };
        let ends: Vec<usize> = code.match_indices('\n').map(|(at, _)| at + 1).collect();
        whole.truncated = true;
        let first = whole.start_line.unwrap_or(1);
        // The largest number of lines that fits, by binary search.
        let (mut fit, mut over) = (0, ends.len() + 1);
        let cut = |lines: usize| lines.checked_sub(1).map(|at| format!("{}…", &code[..ends[at]]));
        let mut with = |lines: usize| -> Result<bool> {
            whole.code = cut(lines);
            whole.hint = Some(match lines {
                0 => format!("not one line fits into {budget} tokens: ask with profile {}", next(profile)),
                n => {
                    let last = first + n as u64 - 1;
                    format!("lines {first}-{last} fit into {budget} tokens: ask with profile {} for all", next(profile))
                }
            });
            Ok(count_within(&written(whole)?, budget).is_some())
        };
        while over - fit > 1 {
            let middle = fit.midpoint(over);
            if with(middle)? { fit = middle } else { over = middle }
        }
        with(fit)?;
        Ok(())
    }

    /// Builds the answer without a limit.
    fn whole(&self) -> Result<Response> {
        let (symbols, node, look) = (self.symbols, self.node, self.symbols.look);
        let file = symbols.file(node);
        let contents = symbols.contents(&std::iter::once(node).chain(file).collect::<Vec<_>>())?;
        let empty = Content::default();
        let content = contents.get(&node).unwrap_or(&empty);
        let placed = symbols.placed(node, &contents);
        let is_file = Some(node) == file;
        let (first, last) = if is_file {
            (Some(1), number(content, "lines"))
        } else {
            (number(content, "line"), number(content, "end_line").or(number(content, "line")))
        };
        let source = self.source(file, &contents);
        let cut = |source: &str| match (first, last) {
            _ if is_file => Some(source.to_owned()),
            (Some(first), Some(last)) => Some(sources::lines(source, first, last).to_owned()).filter(|t| !t.is_empty()),
            _ => None,
        };
        let lines = source.as_deref().and_then(cut);
        let declared = lines.as_deref().and_then(|lines| lines.lines().next()).map(|line| line.trim().to_owned());
        let callers = self.calls(LinkDirection::In)?;
        let callees = self.calls(LinkDirection::Out)?;
        let deps = self.extent >= Extent::WithDeps;
        let (decisions, learnings) =
            if self.extent == Extent::Full { known_about(symbols, node)? } else { (vec![], vec![]) };
        let own = visible(look, node)?;
        let freshness = self.freshness(file, &contents, lines.is_some())?;
        let signature = text(content, "signature").or(declared.filter(|_| !is_file));
        let mut response = Response {
            summary: self.in_words(&placed, first, last, callers.len())?,
            file: placed.path.clone(),
            symbol_name: placed.title.clone(),
            key: placed.key.clone(),
            type_name: placed.type_name.clone(),
            start_line: first,
            end_line: last,
            about: about(content, signature.as_deref(), &placed.key),
            signature,
            code: lines.filter(|_| self.extent != Extent::Signature),
            found_by: self.found_by,
            incoming_callers: vec![],
            total_callers: deps.then_some(callers.len()),
            outgoing_calls: vec![],
            total_calls: deps.then_some(callees.len()),
            notice: (!decisions.is_empty() || !learnings.is_empty()).then_some(NOTICE),
            relevant_decisions: decisions,
            relevant_learnings: learnings,
            ppr_score: self.ppr_score,
            valid_from: own.map(|statement| statement.period.from).filter(|from| *from != Time::MIN),
            freshness,
            truncated: false,
            hint: None,
            token_estimate: 0,
            view: look.view.echo(),
        };
        if deps {
            response.incoming_callers = self.calls_out(&callers)?;
            response.outgoing_calls = self.calls_out(&callees)?;
        }
        Ok(response)
    }

    /// Returns the text of the file as it was indexed.
    fn source(&self, file: Option<Node>, contents: &SymbolContents) -> Option<String> {
        let file = file?;
        let id = unhex(&text(contents.get(&file)?, "content_hash")?)?;
        let scope = self.symbols.look.ledger.scope();
        self.engine.sources().text(scope, &self.symbols.key(file), &id)
    }

    /// Returns direct calls; creating an object of a class calls its constructor.
    fn calls(&self, way: LinkDirection) -> Result<Vec<ReachedSymbol>> {
        let roots = match way {
            LinkDirection::In => self.symbols.with_constructors(self.node)?,
            LinkDirection::Out => vec![self.node],
        };
        let how = CallWalk { way, depth: 1, min_confidence: 0.0, include_tests: true };
        Ok(self.symbols.reach(&roots, &how).0)
    }

    fn calls_out(&self, calls: &[ReachedSymbol]) -> Result<Vec<SliceCallOut>> {
        let calls = &calls[..calls.len().min(LISTED)];
        let s = &self.symbols.look.snapshot;
        let contents = self.symbols.contents(&calls.iter().map(|call| call.node).collect::<Vec<_>>())?;
        let sites = self.symbols.look.contents(&calls.iter().map(|c| s.edge_thing(c.edge)).collect::<Vec<_>>())?;
        let row = |call: &ReachedSymbol| {
            let LocatedSymbol { key, path, line, .. } = self.symbols.placed(call.node, &contents);
            let call_lines = sites.get(&s.edge_thing(call.edge)).map(|site| lines(site).0).unwrap_or_default();
            SliceCallOut { key, path, line, call_lines, confidence: self.symbols.confidence(call.edge) }
        };
        Ok(calls.iter().map(row).collect())
    }

    fn in_words(
        &self,
        placed: &LocatedSymbol,
        first: Option<u64>,
        last: Option<u64>,
        callers: usize,
    ) -> Result<String> {
        let name = local(&placed.key).replace("::", ".");
        let mut text = format!("`{name}`");
        if let Some(path) = placed.path.as_deref().filter(|path| *path != name) {
            text += &format!(" in {path}");
        }
        match (first, last) {
            (Some(first), Some(last)) if first == last => text += &format!(", line {first}"),
            (Some(first), Some(last)) => text += &format!(", lines {first}-{last}"),
            _ => {}
        }
        let is_called = self.symbols.kind(self.node).is_some_and(|kind| kind.runs() || kind == SymbolKind::Class);
        match callers {
            0 if is_called && !self.symbols.is_test(self.node) => {
                text += ", no caller found in the index";
                if let Some(namesakes) = self.symbols.unresolved_namesakes(self.node)? {
                    text += &format!("; {}", namesakes.words(keys::name(&placed.key)));
                }
            }
            0 => {}
            n => text += &format!(", called by {n}"),
        }
        Ok(text)
    }

    /// Describes which version the lines are from, and whether the file on disk is still the same.
    fn freshness(&self, file: Option<Node>, contents: &SymbolContents, has_lines: bool) -> Result<FreshnessOut> {
        let look = self.symbols.look;
        let Some(file) = file else {
            let says = "it is known by name only: its source is no part of the project".into();
            return Ok(FreshnessOut { tx: None, git_commit: None, differs_on_disk: None, says });
        };
        let tx = visible(look, file)?.map(|statement| statement.version.tx());
        let header = match tx {
            Some(tx) => look.ledger.transactions(tx, tx, 1)?.pop().map(|t| t.header),
            None => None,
        };
        let git_commit = header.and_then(|header| header.git_commit);
        let content = contents.get(&file);
        let id = content.and_then(|content| unhex(&text(content, "content_hash")?));
        let path = self.symbols.key(file);
        let same =
            id.and_then(|id| self.engine.sources().is_same_on_disk(self.symbols.look.ledger.scope(), &path, &id));
        let mut says = match (tx, &git_commit) {
            (Some(tx), Some(commit)) => {
                format!("indexed in transaction {tx}, commit {}", &commit[..commit.len().min(10)])
            }
            (Some(tx), None) => format!("indexed in transaction {tx}"),
            (None, _) => "indexed".to_string(),
        };
        says += match (same, look.is_head) {
            (Some(true), _) => "; the file on disk is the same",
            (Some(false), true) if has_lines => "; the file on disk differs: run `lukasa index`",
            (Some(false), true) => "; the file on disk differs: run `lukasa index` to have its lines",
            (Some(false), false) => "; the file on disk is another version",
            (None, _) => "; the file is not on disk here",
        };
        if !has_lines && (same, look.is_head) != (Some(false), true) {
            says += "; the text that was indexed is not at hand: ask in the working tree that has it";
        }
        Ok(FreshnessOut { tx, git_commit, differs_on_disk: same.map(|same| !same), says })
    }
}

/// The visible version of a node.
fn visible(look: &ViewGraph, node: Node) -> Result<Option<Version>> {
    let states = look.ledger.states(&look.view, &[look.snapshot.thing(node)], VersionFields::Header)?;
    Ok(states.into_iter().next().and_then(|state| state.statement))
}

/// The lists of an answer that can be shortened.
struct SliceLists {
    callers: Vec<SliceCallOut>,
    calls: Vec<SliceCallOut>,
    decisions: Vec<KnowledgeOut>,
    learnings: Vec<KnowledgeOut>,
}

impl SliceLists {
    fn of(response: &mut Response) -> SliceLists {
        SliceLists {
            callers: std::mem::take(&mut response.incoming_callers),
            calls: std::mem::take(&mut response.outgoing_calls),
            decisions: std::mem::take(&mut response.relevant_decisions),
            learnings: std::mem::take(&mut response.relevant_learnings),
        }
    }

    fn put(&self, response: &mut Response, most: usize) {
        fn first<T: Clone>(list: &[T], most: usize) -> Vec<T> {
            list.iter().take(most).cloned().collect()
        }
        response.incoming_callers = first(&self.callers, most);
        response.outgoing_calls = first(&self.calls, most);
        response.relevant_decisions = first(&self.decisions, most);
        response.relevant_learnings = first(&self.learnings, most);
    }

    fn longest(&self) -> usize {
        let lengths = [self.callers.len(), self.calls.len(), self.decisions.len(), self.learnings.len()];
        lengths.into_iter().max().unwrap_or(0)
    }
}

fn written(response: &Response) -> Result<String> {
    serde_json::to_string(response).map_err(|e| Error::internal(format!("a slice cannot be written: {e}")))
}

/// Sets the token count, which includes the digits of the count itself.
fn estimated(mut response: Response) -> Result<Response> {
    response.token_estimate = tokens(&written(&response)?);
    response.token_estimate = tokens(&written(&response)?);
    Ok(response)
}
