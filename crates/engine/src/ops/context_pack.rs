//! `context_pack`: one call gives a task everything it needs, within its tokens.

use super::{META, WRITE, count};
use crate::code::index::Pass;
use crate::coordination::{Claimed, Wish, Worktree, asking};
use crate::cursor::Cursor;
use crate::graph::{Look, check_range};
use crate::pack::{self, Budget, ClaimNote, Core, Pack, Profile, fit, gather};
use crate::registry::{Meta, Op};
use crate::search::{Ask, Recipe, find};
use crate::{Context, Engine};
use lukasa_model::claims::{Target, own_key};
use lukasa_model::json::{self, Hash};
use lukasa_model::{Error, ErrorKind, Result};
use lukasa_search::fuse::Fusion;
use lukasa_store::ledger::ViewSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub struct ContextPack;

/// Longest task, in bytes: a whole issue with its stack trace.
const LONGEST: usize = 32 << 10;
const LEAST_BUDGET: usize = 120;
const MOST_BUDGET: usize = 25_000;
/// Files named whose source cannot be vouched for.
const STALE: usize = 2;
/// Candidates of each channel.
const POOL: usize = 120;

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
pub struct Request {
    /// What is to be done: a sentence, or a whole issue of up to 32 KB.
    pub task: String,
    /// A folder of another working tree than the one you work in; it is brought up to date first.
    #[serde(default)]
    pub path: Option<String>,
    /// How much to give: compact (300 tokens), balanced (1,200) or debug (everything, in pages).
    #[serde(default)]
    pub profile: Profile,
    /// Most tokens, 120 to 25,000, instead of the profile's.
    #[serde(default)]
    #[schemars(range(min = LEAST_BUDGET, max = MOST_BUDGET))]
    pub budget: Option<usize>,
    /// The task as it is kept in the graph, for its plan.
    #[serde(default)]
    pub task_id: Option<String>,
    /// Who asks: their own claims do not count as blockers.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Claim what is handed out, the entry point first, for the agent that asks.
    #[serde(default)]
    pub claim: bool,
    /// Give decisions; on by default.
    #[serde(default = "yes")]
    pub include_decisions: bool,
    /// Give learnings; on by default.
    #[serde(default = "yes")]
    pub include_learnings: bool,
    /// Give episodes; on by default.
    #[serde(default = "yes")]
    pub include_episodes: bool,
    /// Say of everything why it is there.
    #[serde(default)]
    pub explain: bool,
    /// Go on from here: `next_cursor` of an answer to the same request.
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
            "low_confidence",
            "files",
            "left_out",
        ],
        places: &["path"],
        fits_itself: true,
        indexes_first: true,
        summary: "Everything a task needs, in a few hundred tokens",
        description: "Reads a task, from a sentence to a whole issue with its stack trace, and hands out where to begin, the \
                      code that matters whole or by its signature, what calls it and what it calls, decisions, learnings and \
                      what others are working on, within a budget of tokens that is never exceeded. With a path, that \
                      working tree is brought up to date first. With `claim`, what is handed out is claimed for the agent \
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
        ..META
    };
    type Request = Request;
    type Response = Pack;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Pack> {
        let tokens = check(&request)?;
        if request.claim {
            context.grants.check(Self::META.name, WRITE.scope)?;
            asking(request.agent_id.as_deref(), context)?;
            if request.view.as_of.is_some() || request.view.known_at.is_some() {
                return Err(Error::invalid("cannot_claim", "what was is not to be claimed")
                    .hint("leave out `as_of` and `known_at`, or `claim`"));
            }
        }
        let mut indexed = None;
        if let Some(path) = &request.path {
            // Who may only read cannot have anything indexed.
            context.grants.check(Self::META.name, WRITE.scope)?;
            let workspace = engine.workspace(&context.scope, Path::new(path))?;
            let report = workspace.index(engine, context, &Pass { bystander: true, ..Pass::default() })?;
            indexed = Some(report.branch.clone());
        }
        let mut view = request.view.clone();
        if view.branch.is_none() {
            view.branch = indexed;
        }
        let hash = request_hash(&request);
        let (look, skip) = match &request.cursor {
            None => (engine.look(context, &view)?, 0),
            Some(text) => {
                let ledger = engine.ledger(&context.scope);
                let cursor = Cursor::open(text, &engine.graphs().cursor_key(&ledger)?)?;
                cursor.check(&hash)?;
                (engine.look_from(context, &view, &cursor)?, cursor.place as usize)
            }
        };
        let texts = engine.texts(context, &look)?;
        let recipe = if texts.files.is_empty() { Recipe::Auto } else { Recipe::Code };
        let found = find(
            &look,
            &texts,
            &Ask {
                text: &request.task,
                recipe,
                lexical: true,
                vector: false,
                intent: None,
                fusion: Fusion::WeightedSum,
                pool: POOL,
                nearest: Default::default(),
                allowed: &|_| true,
            },
        );
        let sources = &engine.searching().sources;
        let core = gather(&look, &texts, sources, &found, &request.task, request.profile.breadth())?;
        let agent = request.agent_id.as_deref().or(context.agent.as_deref());
        let (task, breadth) = (request.task_id.as_deref(), request.profile.breadth());
        let mut notes = pack::notes(&look, &texts, &found.terms, &core, task, agent, breadth)?;
        if look.is_head {
            notes.block(&look, &core.nodes, &engine.claims_held(&look.ledger)?, agent);
        }
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
        let frame = Pack {
            summary: summary(&core, &request.task, doubt.is_some(), notes.are_empty() || tokens >= ROOMY)
                + &claimed(notes.claims, None),
            low_confidence: doubt,
            entry_point: core.slices.first().map(|slice| slice.key.clone()),
            files: core.files.clone(),
            notice: (!notes.are_empty()).then_some(pack::NOTICE),
            freshness: freshness(&look, &core, texts.without_source.len()),
            ..Pack::default()
        };
        // Room for what was claimed, and where to go on.
        let for_claims = if request.claim { CLAIM_TOKENS * claims_within(tokens) } else { 0 };
        let reserved = for_claims + if request.profile == Profile::Debug { CURSOR_TOKENS } else { 0 };
        let budget = Budget { profile: request.profile, tokens: tokens.saturating_sub(reserved), skip };
        let Some((mut pack, given)) = fit(frame, &core, &notes, budget, request.explain) else {
            return Err(too_small(&request, tokens));
        };
        pack.token_budget = tokens;
        let (all, shown) = (notes.claims, pack.active_blockers.len());
        if shown < all && skip == 0 {
            pack.summary = pack.summary.replace(&claimed(all, None), &claimed(all, Some(shown)));
        }
        if request.claim {
            let place = Worktree::of(request.path.as_deref(), request.view.branch.as_deref())?;
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

/// Tokens from which on the summary says what the entry point does even where there are notes to give.
const ROOMY: usize = 600;
/// Tokens that a cursor takes at most: it has no more letters.
const CURSOR_TOKENS: usize = 80;
/// Tokens that telling of one claim takes at most, but for very long names.
const CLAIM_TOKENS: usize = 80;

/// How much is claimed of what is handed out: others have to work too.
fn claims_within(tokens: usize) -> usize {
    if tokens < 600 { 1 } else { 5 }
}

/// Claims the symbols that are handed out whole, the entry point first, as far as there is room to tell of it.
fn claim(
    engine: &Engine,
    context: &mut Context<'_>,
    request: &Request,
    core: &Core,
    place: &Worktree,
    pack: &mut Pack,
) -> Result<()> {
    let agent = asking(request.agent_id.as_deref(), context)?;
    let of = |out: &pack::SliceOut| {
        let same = |slice: &&pack::Slice| {
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
        let wish = Wish {
            target: Target::code(&key)?,
            agent: agent.clone(),
            session: context.session.clone(),
            intent: request.task.split_whitespace().take(40).collect::<Vec<_>>().join(" ").chars().take(400).collect(),
            task: request.task_id.as_deref().map(|id| own_key("task", id)),
            connection: context.connection.clone(),
            worktree: place.root.as_ref().map(|root| root.display().to_string()),
            branch: place.branch.clone(),
        };
        let target_id = wish.target.name.clone();
        pack.claims.push(match engine.claim(context, &wish)? {
            Claimed::Granted(held) | Claimed::Yours(held) => {
                ClaimNote { target_id, status: "ok", claim_id: Some(held.claim_id), held_by: None }
            }
            Claimed::Conflict(held, _) => {
                ClaimNote { target_id, status: "CONFLICT", claim_id: None, held_by: Some(held.agent_id) }
            }
        });
        pack.count_again();
    }
    Ok(())
}

/// The tokens that may be used.
fn check(request: &Request) -> Result<usize> {
    if request.task.trim().is_empty() {
        return Err(Error::invalid("invalid_query", "task: nothing is said").hint("say what is to be done"));
    }
    if request.task.len() > LONGEST {
        return Err(Error::new(
            ErrorKind::TooLarge,
            "task_too_long",
            format!("task: {} bytes are more than {LONGEST}", request.task.len()),
        )
        .hint("leave out logs beyond the first error"));
    }
    if let Some(budget) = request.budget {
        if budget > MOST_BUDGET {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "token_budget_exceeded",
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
    Error::new(ErrorKind::TooLarge, "budget_too_small", format!("{tokens} tokens do not even hold where to begin"))
        .hint(format!("ask for more with `budget`, or for the profile {next}"))
}

fn request_hash(request: &Request) -> Hash {
    let plain = Request { cursor: None, ..request.clone() };
    let value = serde_json::to_value(plain).expect("a request is plain data");
    Hash::of(format!("context_pack {}", json::canonical(&value)).as_bytes())
}

/// Where to begin and what that does, and whether it is only the nearest there is.
fn summary(core: &Core, task: &str, in_doubt: bool, with_about: bool) -> String {
    let Some(first) = core.slices.first() else {
        let words: String = task.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
        return match core.files.first() {
            Some(file) => format!("Begin at {file}: its source is not at hand."),
            None => format!("nothing here speaks of `{words}`; is the repository indexed?"),
        };
    };
    let begin = if in_doubt { "Nothing here fits the task well. The nearest is" } else { "Begin at" };
    let mut text = format!("{begin} `{}` in {}:{}", first.name, first.file, first.start_line);
    // A sentence of its author's, not a line of code that stands for one.
    if let Some(about) =
        first.summary.as_deref().filter(|about| with_about && about.len() <= 120 && about.ends_with('.'))
    {
        text.push_str(&format!(" ({})", about.trim_end_matches('.')));
    }
    text.push('.');
    text
}

/// What is said of the claims of others: where they are, or how many of them are there.
fn claimed(all: usize, shown: Option<usize>) -> String {
    match (all, shown) {
        (0, _) => String::new(),
        (n, None) => format!(" {} by others: see active_blockers.", count(n, "claim")),
        (n, Some(0)) => format!(" {} by others around it.", count(n, "claim")),
        (n, Some(shown)) => format!(" {} by others, {shown} shown.", count(n, "claim")),
    }
}

/// In one line: branch, transaction, and what cannot be vouched for.
fn freshness(look: &Look, core: &Core, without_source: usize) -> String {
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
