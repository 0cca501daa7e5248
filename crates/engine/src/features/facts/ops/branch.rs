//! `branch …`: creates, lists, moves, closes and reopens branches.

use crate::features::facts::rendering;
use crate::registry::{META, NAMED, WRITE};
use crate::registry::{Meta, Op, OperationLink, Resource};
use crate::rendering::ResponseView;
use crate::{Context, Engine};
use lukasa_model::{Branch, BranchMode, Error, ErrorCode, Result, Tx};
use lukasa_store::ledger::NewBranch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, JsonSchema)]
pub struct BranchOut {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub mode: BranchMode,
    /// The transaction it was forked at, or last moved to.
    pub fork: Tx,
    pub closed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct BranchResponse {
    pub summary: String,
    pub branch: BranchOut,
}

fn one(engine: &Engine, context: &Context<'_>, branch: Branch, what: &str) -> Result<BranchResponse> {
    let registry = engine.ledger(&context.scope).registry()?;
    let summary = format!("{what} branch {}", branch.name);
    Ok(BranchResponse { summary, branch: out(&branch, &registry) })
}

fn out(branch: &Branch, registry: &lukasa_model::Registry) -> BranchOut {
    BranchOut {
        name: branch.name.clone(),
        parent: branch.parent.map(|number| registry.branch_name(number).into()),
        mode: branch.mode,
        fork: branch.fork,
        closed: branch.closed,
        description: branch.description.clone(),
    }
}

pub struct BranchCreate;

#[derive(Deserialize, JsonSchema)]
pub struct BranchCreateRequest {
    /// Name of the new branch.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The parent branch; `main` when left out.
    #[serde(default)]
    pub from: Option<String>,
    /// Keep the parent as it was at the fork instead of following its changes.
    #[serde(default)]
    pub pinned: bool,
    /// Transaction of the parent to fork at; its head when left out.
    #[serde(default)]
    pub at: Option<Tx>,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Reason, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Op for BranchCreate {
    const META: Meta = Meta {
        name: "branch_create",
        shown: ResponseView::Summary,
        answer: &["branch.name", "branch.parent", "branch.mode", "branch.closed"],
        rest: &["POST /graph/branches"],
        summary: "Make a branch",
        description: "A branch stores only what differs from its parent. It follows its parent live, or is pinned to \
                      it as it is at the fork.",
        verb: "branch create",
        positional: &["name"],
        toolset: "branches",
        examples: &["lukasa branch create feature/payments --pinned"],
        links: &[OperationLink { to: super::list::List::META.name, route: 1, with: &[("branch", NAMED)] }],
        ..WRITE
    };
    type Request = BranchCreateRequest;
    type Response = BranchResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: BranchCreateRequest) -> Result<BranchResponse> {
        if request.at.is_some() && !request.pinned {
            return Err(Error::invalid(
                ErrorCode::AtNeedsPinned,
                "a live branch follows its parent and has no place to fork at",
            )
            .hint("add `pinned`, or leave out `at`"));
        }
        let new = NewBranch {
            name: request.name,
            parent: request.from.unwrap_or_default(),
            mode: if request.pinned { BranchMode::Pinned } else { BranchMode::Live },
            at: request.at,
            description: request.description,
        };
        let header = context.header(request.reason);
        let branch = engine.ledger(&context.scope).create_branch(&new, &header)?;
        one(engine, context, branch, "made")
    }
}

pub struct BranchList;

#[derive(Deserialize, JsonSchema)]
pub struct BranchListRequest {
    /// Include closed branches.
    #[serde(default)]
    pub all: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct BranchListResponse {
    pub summary: String,
    pub branches: Vec<BranchOut>,
}

impl Op for BranchList {
    const META: Meta = Meta {
        name: "branch_list",
        shown: ResponseView::By(rendering::branches),
        answer: &["branches.name", "branches.parent", "branches.closed", "branches.mode"],
        rest: &["GET /graph/branches"],
        summary: "List branches",
        description: "Lists open branches with their parents; `all` adds closed ones.",
        verb: "branch list",
        toolset: "branches",
        examples: &["lukasa branch list --all"],
        resource: Some(Resource { path: "branches", title: "Branches", about: "Every branch", field: "" }),
        ..META
    };
    type Request = BranchListRequest;
    type Response = BranchListResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: BranchListRequest) -> Result<BranchListResponse> {
        let registry = engine.ledger(&context.scope).registry()?;
        let branches: Vec<_> =
            registry.branches().into_iter().filter(|b| request.all || !b.closed).map(|b| out(b, &registry)).collect();
        let summary = match branches.len() {
            1 => "1 branch".to_string(),
            n => format!("{n} branches"),
        };
        Ok(BranchListResponse { summary, branches })
    }
}

pub struct BranchMove;

#[derive(Deserialize, JsonSchema)]
pub struct BranchMoveRequest {
    /// The pinned branch to move.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The parent's transaction to pin to; its head when left out.
    #[serde(default)]
    pub to: Option<Tx>,
    /// Reason, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Op for BranchMove {
    const META: Meta = Meta {
        name: "branch_move",
        shown: ResponseView::Summary,
        answer: &["branch.name", "branch.parent", "branch.mode", "branch.closed"],
        summary: "Move the fork of a pinned branch",
        description: "From now on the branch sees its parent as of that transaction. Earlier views keep the old fork.",
        verb: "branch move",
        positional: &["name"],
        toolset: "branches",
        examples: &["lukasa branch move feature/payments"],
        ..WRITE
    };
    type Request = BranchMoveRequest;
    type Response = BranchResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: BranchMoveRequest) -> Result<BranchResponse> {
        let header = context.header(request.reason);
        let branch = engine.ledger(&context.scope).move_fork(&request.name, request.to, &header)?;
        let what = format!("moved to transaction {}:", branch.fork);
        one(engine, context, branch, &what)
    }
}

#[derive(Deserialize, JsonSchema)]
pub struct BranchNameRequest {
    /// Name of the branch.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Reason, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

pub struct BranchClose;

impl Op for BranchClose {
    const META: Meta = Meta {
        name: "branch_close",
        shown: ResponseView::Summary,
        answer: &["branch.name", "branch.parent", "branch.mode", "branch.closed"],
        summary: "Close a branch; it can still be read",
        description: "A closed branch takes no writes. Branches are never deleted.",
        verb: "branch close",
        positional: &["name"],
        toolset: "branches",
        examples: &["lukasa branch close feature/payments"],
        ..WRITE
    };
    type Request = BranchNameRequest;
    type Response = BranchResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: BranchNameRequest) -> Result<BranchResponse> {
        let header = context.header(request.reason);
        let branch = engine.ledger(&context.scope).set_closed(&request.name, true, &header)?;
        one(engine, context, branch, "closed")
    }
}

pub struct BranchOpen;

impl Op for BranchOpen {
    const META: Meta = Meta {
        name: "branch_open",
        shown: ResponseView::Summary,
        answer: &["branch.name", "branch.parent", "branch.mode", "branch.closed"],
        summary: "Open a closed branch again",
        description: "It takes writes again.",
        verb: "branch open",
        positional: &["name"],
        toolset: "branches",
        examples: &["lukasa branch open feature/payments"],
        ..WRITE
    };
    type Request = BranchNameRequest;
    type Response = BranchResponse;

    fn run(engine: &Engine, context: &mut Context<'_>, request: BranchNameRequest) -> Result<BranchResponse> {
        let header = context.header(request.reason);
        let branch = engine.ledger(&context.scope).set_closed(&request.name, false, &header)?;
        one(engine, context, branch, "opened")
    }
}
