//! `batch`: commits many writes in one transaction, all or none.

use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::request_parts::WriteTarget;
use crate::responses::count;
use crate::writes::{WriteOut, commit};
use crate::{Context, Engine};
use lukasa_model::transaction::Header;
use lukasa_model::{Batch, Error, ErrorCode, Precondition, Result, Time, TransactionKind, Write};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct BatchOp;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Objects, relationships and ends, as in an import: `[{"object": {"type": "Service", "key": "auth"}}]`.
    pub writes: Vec<Write>,
    /// Conditions that must hold, or nothing is committed.
    #[serde(default)]
    pub preconditions: Vec<Precondition>,
    #[serde(flatten)]
    pub target: WriteTarget,
    /// Idempotency key: a batch sent again with the same id is committed once.
    #[serde(default)]
    pub client_id: Option<String>,
    /// The git commit whose tree the batch represents exactly.
    #[serde(default)]
    pub git_commit: Option<String>,
    /// Kind of the transaction, for the log; a `full_rebuild` also recomputes communities.
    #[serde(default)]
    pub kind: Option<TransactionKind>,
    /// Start of validity for writes without a time; now when left out.
    #[serde(default)]
    pub valid_at: Option<Time>,
}

impl Op for BatchOp {
    const META: Meta = Meta {
        name: "batch",
        shown: ResponseView::Summary,
        answer: &["tx", "written", "unchanged"],
        summary: "Write many facts in one transaction, all or nothing",
        description: "Commits whole or not at all. With `expected_version` on a write, or with `preconditions`, it fails \
                      without writing if another client was faster. For files of any size, use `import`.",
        verb: "batch",
        positional: &[],
        examples: &["lukasa batch --writes '[{\"object\": {\"type\": \"Service\", \"key\": \"auth\"}}]'"],
        ..WRITE
    };
    type Request = Request;
    type Response = WriteOut;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<WriteOut> {
        use TransactionKind::{Branch, Merge, Release, Tag, Type};
        if matches!(request.kind, Some(Branch | Merge | Release | Tag | Type)) {
            return Err(Error::invalid(ErrorCode::InvalidKind, "this kind is kept for operations of their own")
                .hint("use full_rebuild, incremental_rebuild, file_change, agent_edit, api or import"));
        }
        let what = count(request.writes.len(), "write");
        let kind = request.kind.unwrap_or(TransactionKind::Api);
        let batch = request.target.batch(context);
        let header = Header {
            kind,
            client_id: request.client_id,
            git_commit: request.git_commit,
            valid_at: request.valid_at,
            ..batch.header
        };
        let batch = Batch { header, writes: request.writes, preconditions: request.preconditions, ..batch };
        let done = commit(engine, context, batch, &what)?;
        if kind == TransactionKind::FullRebuild {
            engine.rebuilt(&context.scope, request.target.branch());
        }
        Ok(done)
    }
}
