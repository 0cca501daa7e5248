//! `graph_set_workspace`: indexes a working tree and watches it from now on.

use crate::features::code::PassReport;
use crate::features::code::index::PassOptions;
use crate::features::code::rendering::index;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::{Context, Engine};
use lukasa_model::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub struct GraphSetWorkspace;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The folder; the current folder when left out.
    #[serde(default = "here")]
    pub path: String,
    /// Index it once, without watching it.
    #[serde(default)]
    pub no_watch: bool,
}

fn here() -> String {
    ".".into()
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// Root of the working tree.
    pub root: String,
    pub watching: bool,
    #[serde(flatten)]
    pub report: PassReport,
}

impl Op for GraphSetWorkspace {
    const META: Meta = Meta {
        name: "graph_set_workspace",
        long: true,
        shown: ResponseView::By(index::pass),
        answer: &["root", "watching", "tx", "files", "symbols", "diagnostics"],
        places: &["path"],
        summary: "Index a working tree and keep it up to date",
        description: "Indexes the working tree around the folder and, as long as this process lives, indexes every \
                      change half a second after it was saved. `health` shows what the watcher is doing. On the command \
                      line, `watch` does this until it is stopped.",
        verb: "set-workspace",
        toolset: "code",
        positional: &["path"],
        examples: &["lukasa set-workspace . --no-watch"],
        lasts: true,
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let path = Path::new(&request.path);
        let workspace = engine.workspace(&context.scope, path)?;
        let report = workspace.index(engine, context, &PassOptions::default())?;
        if !request.no_watch {
            engine.watch(&context.scope, path)?;
        }
        let root = workspace.root().display().to_string();
        let how = if request.no_watch { "indexed" } else { "indexed and watched" };
        let summary = format!("{root}: {} files {how} on {}", report.files, report.branch);
        Ok(Response { summary, root, watching: !request.no_watch, report })
    }
}
