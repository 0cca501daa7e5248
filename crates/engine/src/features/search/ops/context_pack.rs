//! `context_pack`: returns the context of a task in one answer, within a token budget.

use crate::caller::acting_agent;
use crate::claims::{ClaimIntent, ClaimOutcome};
use crate::cursor::Cursor;
use crate::features::code::index::PassOptions;
use crate::features::code::working_tree::AgentWorktree;
use crate::features::search::pack::{
    self, Budget, ClaimNote, ContextPackOut, PackCode, PackConfidence, PackNotes, fit, gather,
};
use crate::features::search::rendering;
use crate::features::search::{Recipe, SearchQuestion, find};
use crate::ranges::check_range;
use crate::registry::{META, WRITE};
use crate::registry::{Meta, Op, Prompt, StoreNeed};
use crate::rendering::ResponseView;
use crate::response_budget::NOTICE;
use crate::response_budget::Profile;
use crate::responses::count;
use crate::view::ViewGraph;
use crate::{Context, Engine};
use lukasa_model::claims::{ClaimTarget, own_key};
use lukasa_model::json::{self, Hash};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use lukasa_search::pipeline::fuse::Fusion;
use lukasa_search::recipes::PACK;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The operation `context_pack`.
pub struct ContextPack;

/// Longest task, in bytes: enough for an issue with its stack trace.
const LONGEST: usize = 32 << 10;
const LEAST_BUDGET: usize = 120;
const MOST_BUDGET: usize = 25_000;
/// Maximum number of stale files that `freshness` names.
const STALE: usize = 2;

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// The task: a sentence, or an issue of up to 32 KB.
    pub task: String,
    /// A folder in another working tree than the caller's; it is indexed first.
    #[serde(default)]
    pub path: Option<String>,
    /// Size of the pack: compact (300 tokens), balanced (1,200) or debug (everything, paged).
    #[serde(default)]
    pub profile: Profile,
    /// Token budget, 120 to 25,000; the profile's when left out.
    #[serde(default)]
    #[schemars(range(min = LEAST_BUDGET, max = MOST_BUDGET))]
    pub budget: Option<usize>,
    /// The recorded task, to include its plan.
    #[serde(default)]
    pub task_id: Option<String>,
    /// The agent whose own claims do not count as blockers.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Claim the returned symbols for the caller's agent, the entry point first.
    #[serde(default)]
    pub claim: bool,
    /// Include decisions; on by default.
    #[serde(default = "yes")]
    pub include_decisions: bool,
    /// Include learnings; on by default.
    #[serde(default = "yes")]
    pub include_learnings: bool,
    /// Include episodes; on by default.
    #[serde(default = "yes")]
    pub include_episodes: bool,
    /// Explain why each entry was chosen.
    #[serde(default)]
    pub explain: bool,
    /// Continue from `next_cursor` of an answer to the same request.
    #[serde(default)]
    pub cursor: Option<String>,
    #[serde(flatten)]
    pub view: ViewSpec,
}

fn yes() -> bool {
    true
}

impl Op for ContextPack {
    const META: Meta = Meta {
        name: "context_pack",
        own_ranges: &["budget"],
        shown: ResponseView::Cut(rendering::pack),
        needs: StoreNeed::MayCreate,
        essential: true,
        default_tool: &["task", "path", "task_id", "claim", "cursor"],
        answer: &[
            "core_symbols.symbol_name",
            "core_symbols.file",
            "core_symbols.start_line",
            "core_symbols.end_line",
            "core_symbols.code",
            "core_symbols.signature",
            "core_symbols.summary",
            "active_blockers.content",
            "active_blockers.agent",
            "decisions.ref",
            "decisions.content",
            "learnings.ref",
            "learnings.content",
            "claims",
            "plan.content",
            "entry_point",
            "confidence",
            "low_confidence",
            "files",
            "left_out",
        ],
        places: &["path"],
        fits_itself: true,
        indexes_first: true,
        summary: "Everything a task needs, in a few hundred tokens",
        description: "Reads a task, from a sentence to a whole issue with its stack trace, and returns where to begin, the \
                      code that matters whole or by its signature, what calls it and what it calls, decisions, learnings and \
                      what others are working on, within a budget of tokens that is never exceeded. With a path, that \
                      working tree is brought up to date first. With `claim`, what is returned is claimed for the agent \
                      that asks. No language model is asked.",
        scope: "graph:search:read",
        verb: "pack",
        toolset: "search",
        positional: &["task", "path"],
        aliases: &[("query", "task"), ("token_budget", "budget")],
        examples: &[
            "lukasa pack \"branches merge twice when the base moved\"",
            "lukasa pack \"add a timeout to the HTTP client\" ../service --profile balanced",
            "lukasa pack \"why is the index rebuilt\" --budget 600 --explain",
        ],
        prompt: Some(Prompt {
            name: "brief_me",
            title: "Brief me on a task",
            about: "Everything a task needs: where to begin, the code, what is around it, decisions",
            argument: ("task", "What is to be done"),
            field: "task",
            with: &[("profile", "balanced")],
            asks: "Plan this task with the briefing below. Begin at its entry point; name the files you will change and why.",
        }),
        ended: Some(|_, ended| ended.search_took()),
        ..META
    };
    type Request = Request;
    type Response = ContextPackOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<ContextPackOut> {
        let tokens = check(&request)?;
        if request.claim {
            context.grants.check(Self::META.name, WRITE.scope)?;
            acting_agent(request.agent_id.as_deref(), context)?;
            if request.view.as_of.is_some() || request.view.known_at.is_some() {
                return Err(Error::invalid(ErrorCode::CannotClaim, "what was is not to be claimed")
                    .hint("leave out `as_of` and `known_at`, or `claim`"));
            }
        }
        let mut indexed = None;
        if let Some(path) = &request.path {
            // Indexing writes, so the caller needs the write scope.
            context.grants.check(Self::META.name, WRITE.scope)?;
            let workspace = engine.workspace(&context.scope, Path::new(path))?;
            let report =
                workspace.index(engine, context, &PassOptions { bystander: true, ..PassOptions::default() })?;
            indexed = Some(report.branch.clone());
        }
        let mut view = request.view.clone();
        if view.branch.is_none() {
            view.branch = indexed;
        }
        let hash = request_hash(&request);
        let (look, skip) = match &request.cursor {
            None => (engine.view_graph(context, &view)?, 0),
            Some(text) => {
                let ledger = engine.ledger(&context.scope);
                let cursor = Cursor::open(text, &engine.graphs().cursor_key(&ledger)?)?;
                cursor.check(&hash)?;
                (engine.view_graph_at(context, &view, &cursor)?, cursor.place as usize)
            }
        };
        let texts = engine.texts(context, &look)?;
        let recipe = if texts.files.is_empty() { Recipe::Auto } else { Recipe::Code };
        let found = find(
            &look,
            &texts,
            &SearchQuestion {
                text: &request.task,
                recipe,
                lexical: true,
                vector: false,
                intent: None,
                fusion: Fusion::WeightedSum,
                pool: PACK.pool,
                nearest: Default::default(),
                allowed: &|_| true,
            },
        );
        let sources = engine.sources();
        let core = gather(&look, &texts, sources, &found, &request.task, request.profile.breadth())?;
        let agent = request.agent_id.as_deref().or(context.agent.as_deref());
        let (task, breadth) = (request.task_id.as_deref(), request.profile.breadth());
        let mut notes = pack::notes(&look, &texts, &found.terms, &core, task, agent, breadth)?;
        let held = if look.is_head { engine.claims_held(&look.ledger)? } else { vec![] };
        if look.is_head {
            notes.block(&look, &core.nodes, &held, agent);
        }
        let blocked = engine.blocked_tasks(&look, &notes.concerned(&core), &held, agent)?;
        notes.add_blocked(&look, &core, blocked);
        for (wanted, list) in [
            (request.include_decisions, &mut notes.decisions),
            (request.include_learnings, &mut notes.learnings),
            (request.include_episodes, &mut notes.episodes),
        ] {
            if !wanted {
                list.clear();
            }
        }
        let doubt = pack::doubt(&texts, &found, &core, &request.task);
        let confidence = match &doubt {
            Some(_) => Some(PackConfidence::Low),
            None => pack::confidence(&core, &request.task),
        };
        let is_low = confidence == Some(PackConfidence::Low);
        let frame = ContextPackOut {
            confidence,
            summary: summary(&core, &request.task, doubt.is_some(), tokens >= ROOMY) + &blockers(&notes, None),
            low_confidence: doubt.or_else(|| is_low.then(|| pack::WOULD_HELP.to_owned())),
            entry_point: core.slices.first().map(|slice| slice.key.clone()),
            files: core.files.clone(),
            notice: (!notes.are_empty()).then_some(NOTICE),
            freshness: freshness(&look, &core, texts.without_source.len()),
            ..ContextPackOut::default()
        };
        // Reserve room for the claims and the cursor.
        let for_claims = if request.claim { CLAIM_TOKENS * claims_within(tokens) } else { 0 };
        let reserved = for_claims + if request.profile == Profile::Debug { CURSOR_TOKENS } else { 0 };
        let budget = Budget { profile: request.profile, tokens: tokens.saturating_sub(reserved), skip };
        let Some((mut pack, given)) = fit(frame, &core, &notes, budget, request.explain) else {
            return Err(too_small(&request, tokens));
        };
        pack.token_budget = tokens;
        let (all, shown) = (notes.claims + notes.blocked.len(), pack.active_blockers.len());
        if shown < all && skip == 0 {
            pack.summary = pack.summary.replace(&blockers(&notes, None), &blockers(&notes, Some(shown)));
        }
        if request.claim {
            let place = AgentWorktree::of(request.path.as_deref(), request.view.branch.as_deref())?;
            claim(engine, context, &request, &core, &place, &mut pack)?;
        }
        if request.profile == Profile::Debug && given > 0 && pack.left_out > 0 {
            let key = engine.graphs().cursor_key(&look.ledger)?;
            pack.next_cursor = Some(Cursor::new(&look.view, &hash, skip + given, false).seal(&key));
        }
        pack.count_again();
        Ok(pack)
    }
}

/// From this budget on, the summary describes the entry point; below, its code is worth more.
const ROOMY: usize = 600;
/// Upper bound of a cursor's tokens.
const CURSOR_TOKENS: usize = 80;
/// Upper bound of the tokens that report one claim, except with very long names.
const CLAIM_TOKENS: usize = 80;

/// Maximum number of claims per pack; kept small so that other agents are not blocked.
fn claims_within(tokens: usize) -> usize {
    if tokens < 600 { 1 } else { 5 }
}

/// Claims the symbols returned in full, the entry point first, as far as the budget has room to report them.
fn claim(
    engine: &Engine,
    context: &mut Context<'_>,
    request: &Request,
    core: &PackCode,
    place: &AgentWorktree,
    pack: &mut ContextPackOut,
) -> Result<()> {
    let agent = acting_agent(request.agent_id.as_deref(), context)?;
    let of = |out: &pack::SliceOut| {
        let same = |slice: &&pack::CodeSlice| {
            (&slice.file, &slice.name, slice.start_line) == (&out.file, &out.symbol_name, out.start_line)
        };
        let key = core.slices.iter().find(same)?.key.clone();
        (out.code.is_some() || pack.entry_point.as_ref() == Some(&key)).then_some(key)
    };
    let keys: Vec<String> = pack.core_symbols.iter().filter_map(of).collect();
    for key in keys.into_iter().take(claims_within(pack.token_budget)) {
        if pack.token_estimate + CLAIM_TOKENS + lukasa_search::count::count(&key) > pack.token_budget {
            break;
        }
        let wanted = ClaimIntent {
            target: ClaimTarget::code(&key)?,
            agent: agent.clone(),
            session: context.session.clone(),
            intent: request.task.split_whitespace().take(40).collect::<Vec<_>>().join(" ").chars().take(400).collect(),
            task: request.task_id.as_deref().map(|id| own_key("task", id)),
            connection: context.connection.clone(),
            worktree: place.root.as_ref().map(|root| root.display().to_string()),
            branch: place.branch.clone(),
        };
        let target_id = wanted.target.name.clone();
        pack.claims.push(match engine.claim(context, &wanted)? {
            ClaimOutcome::Granted(held) | ClaimOutcome::Yours(held) => {
                ClaimNote { target_id, status: "ok", claim_id: Some(held.claim_id), held_by: None }
            }
            ClaimOutcome::Conflict(held, _) => {
                ClaimNote { target_id, status: "CONFLICT", claim_id: None, held_by: Some(held.agent_id) }
            }
        });
        pack.count_again();
    }
    Ok(())
}

/// Checks the request and returns its token budget.
fn check(request: &Request) -> Result<usize> {
    if request.task.trim().is_empty() {
        return Err(Error::invalid(ErrorCode::InvalidQuery, "task: it is empty").hint("describe what is to be done"));
    }
    if request.task.len() > LONGEST {
        return Err(Error::new(
            ErrorKind::TooLarge,
            ErrorCode::TaskTooLong,
            format!("task: {} bytes are more than {LONGEST}", request.task.len()),
        )
        .hint("leave out logs beyond the first error"));
    }
    if let Some(budget) = request.budget {
        if budget > MOST_BUDGET {
            return Err(Error::new(
                ErrorKind::TooLarge,
                ErrorCode::TokenBudgetExceeded,
                format!("budget: {budget} is more than {MOST_BUDGET}"),
            )
            .hint("the debug profile gives everything, in pages"));
        }
        check_range("budget", budget, LEAST_BUDGET, MOST_BUDGET)?;
    }
    Ok(request.budget.unwrap_or(request.profile.tokens()))
}

fn too_small(request: &Request, tokens: usize) -> Error {
    let next = request.profile.larger().map_or("debug", Profile::name);
    Error::new(
        ErrorKind::TooLarge,
        ErrorCode::BudgetTooSmall,
        format!("{tokens} tokens do not even hold where to begin"),
    )
    .hint(format!("ask for more with `budget`, or for the profile {next}"))
}

fn request_hash(request: &Request) -> Hash {
    let plain = Request { cursor: None, ..request.clone() };
    let value = serde_json::to_value(plain).expect("a request is plain data");
    Hash::of(format!("context_pack {}", json::canonical(&value)).as_bytes())
}

/// Returns the summary: where to start, what that symbol does, and whether the match is uncertain.
fn summary(core: &PackCode, task: &str, in_doubt: bool, with_about: bool) -> String {
    let Some(first) = core.slices.first() else {
        let words: String = task.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
        return match core.files.first() {
            Some(file) => format!("Begin at {file}: its source is not at hand."),
            None => format!("nothing here speaks of `{words}`; is the repository indexed?"),
        };
    };
    let begin = if in_doubt { "Nothing here fits the task well. The nearest is" } else { "Begin at" };
    let mut text = format!("{begin} `{}` in {}:{}", first.name, first.file, first.start_line);
    // Only a sentence from a doc comment, not a line of code used in its place.
    if let Some(about) =
        first.summary.as_deref().filter(|about| with_about && about.len() <= 120 && about.ends_with('.'))
    {
        text.push_str(&format!(" ({})", about.trim_end_matches('.')));
    }
    text.push('.');
    text
}

/// Describes the claims of other agents and the blocked tasks: where they are listed, or their number.
fn blockers(notes: &PackNotes, shown: Option<usize>) -> String {
    let claims = (notes.claims > 0).then(|| format!("{} by others", count(notes.claims, "claim")));
    let tasks = (!notes.blocked.is_empty()).then(|| count(notes.blocked.len(), "blocked task"));
    let all = claims.into_iter().chain(tasks).collect::<Vec<_>>().join(" and ");
    match (all.is_empty(), shown) {
        (true, _) => String::new(),
        (_, None) => format!(" {all}: see active_blockers."),
        (_, Some(0)) => format!(" {all} around it."),
        (_, Some(shown)) => format!(" {all}, {shown} shown."),
    }
}

/// Returns branch, transaction and the files that may be out of date, in one line.
fn freshness(look: &ViewGraph, core: &PackCode, without_source: usize) -> String {
    let mut text = format!("{} at tx {}", look.view.branch_name, look.view.known);
    if !look.is_head {
        text.push_str(&format!(", as of {}", look.view.valid));
    }
    match (&core.stale[..], without_source) {
        ([], 0) => {}
        ([], n) => text.push_str(&format!("; {} without source at hand", count(n, "file"))),
        (stale, _) => {
            let named = stale.iter().take(STALE).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = stale.len().saturating_sub(STALE);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            text.push_str(&format!("; changed since indexed, or not at hand: {named}{more}"));
        }
    }
    text
}
