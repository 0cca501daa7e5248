//! `graph_rebuild`: indexes a whole working tree again.

use super::index_directory::{Response, respond};
use crate::features::code::index::PassOptions;
use crate::features::code::rendering::index;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::{Context, Engine};
use lukasa_model::Result;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;

pub struct GraphRebuild;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The folder; the current folder when left out.
    #[serde(default = "here")]
    pub path: String,
    /// The branch to write to; the git branch that is checked out when left out.
    #[serde(default)]
    pub branch: Option<String>,
    /// Reason, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

fn here() -> String {
    ".".into()
}

impl Op for GraphRebuild {
    const META: Meta = Meta {
        name: "graph_rebuild",
        long: true,
        shown: ResponseView::By(index::pass),
        answer: &["tx", "files", "symbols", "changed", "removed", "calls", "diagnostics", "branch"],
        places: &["path"],
        summary: "Index the whole working tree again",
        description: "Reads and resolves every file and compares all facts with those on the branch, in one \
                      transaction. Equal facts are not written again; facts that no longer apply are ended, including \
                      packages that are no longer used. `index` does the same for changed files, and is enough unless \
                      facts were written or ended by hand.",
        verb: "rebuild",
        toolset: "code",
        positional: &["path"],
        examples: &["lukasa rebuild"],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let workspace = engine.workspace(&context.scope, Path::new(&request.path))?;
        let pass =
            PassOptions { branch: request.branch, rebuild: true, reason: request.reason, ..PassOptions::default() };
        let report = workspace.index(engine, context, &pass)?;
        Ok(respond(report))
    }
}
