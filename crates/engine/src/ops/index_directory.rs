//! `index_directory`: brings a branch up to date with a working tree.

use super::{WRITE, count};
use crate::code::Report;
use crate::code::index::Pass;
use crate::registry::{Meta, Op};
use crate::{Context, Engine};
use lukasa_model::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub struct IndexDirectory;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The folder; where you are when left out.
    #[serde(default = "here")]
    pub path: String,
    /// The branch to write to; the git branch that is checked out when left out.
    #[serde(default)]
    pub branch: Option<String>,
}

fn here() -> String {
    ".".into()
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    #[serde(flatten)]
    pub report: Report,
}

impl Op for IndexDirectory {
    const META: Meta = Meta {
        name: "index_directory",
        summary: "Index a folder of source code",
        description: "Reads every file that no ignore rule keeps out, and states files, symbols, imports, calls, \
                      inheritance and tests on a branch, with how sure each is.",
        verb: "index",
        toolset: "code",
        positional: &["path"],
        examples: &["lukasa index", "lukasa index ../other --branch trial"],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let workspace = engine.workspace(&context.scope, Path::new(&request.path))?;
        let pass = Pass { branch: request.branch, ..Pass::default() };
        let report = workspace.index(engine, context, &pass)?;
        let summary =
            format!("indexed {}: {} changed, {} removed", count(report.files, "file"), report.changed, report.removed);
        Ok(Response { summary, report })
    }
}
