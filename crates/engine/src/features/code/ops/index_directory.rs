//! `index_directory`: brings a branch up to date with a working tree, and gives an overview of it.

use crate::features::code::PassReport;
use crate::features::code::index::PassOptions;
use crate::features::code::index::past::ImportedHistory;
use crate::features::code::rendering::index;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub struct IndexDirectory;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// A folder of the working tree; the current folder when left out.
    #[serde(default = "here")]
    pub path: String,
    /// The branch to write to; the git branch that is checked out when left out.
    #[serde(default)]
    pub branch: Option<String>,
    /// Number of commits before the one that is checked out to import too, along first parents, each for its own time;
    /// at most 1,000. Commits that were imported already are left as they are.
    #[serde(default)]
    pub history: Option<usize>,
    /// Index the branch from this working tree from now on, although it is indexed from another clone. Without this,
    /// such a working tree is indexed on a separate branch.
    #[serde(default)]
    pub take_over: bool,
    /// Reason, for the log.
    #[serde(default)]
    pub reason: Option<String>,
}

fn here() -> String {
    ".".into()
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    #[serde(flatten)]
    pub report: PassReport,
    /// The imported commits, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<ImportedHistory>,
}

impl Op for IndexDirectory {
    const META: Meta = Meta {
        name: "index_directory",
        long: true,
        shown: ResponseView::By(index::pass),
        essential: true,
        default_tool: &["path", "branch"],
        answer: &["tx", "files", "symbols", "changed", "removed", "calls", "diagnostics", "branch"],
        places: &["path"],
        summary: "Index the source code of a repository",
        description: "Reads every file that no ignore rule (.gitignore, .lukasaignore) excludes, and records files, \
                      symbols, imports, calls, inheritance and tests, with confidence and derivation. Only files that \
                      changed since the last pass are read, and only facts affected by that are written, in one \
                      transaction. The git branch that is checked out is indexed on a Lukasa branch of its own; the \
                      default branch is `main`. A clean tree records its commit, so that `--as-of commit:…` finds it. \
                      With `history`, commits before it are imported as well, one transaction each, for the time from \
                      one to the next: nothing visible now changes, and `as_of` such a commit or a date shows the code \
                      as it was then.",
        verb: "index",
        toolset: "code",
        positional: &["path"],
        examples: &["lukasa index", "lukasa index ../other --branch trial", "lukasa index --history 50"],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let workspace = engine.workspace(&context.scope, Path::new(&request.path))?;
        request.history.map_or(Ok(()), |commits| workspace.check_history(commits))?;
        let pass = PassOptions {
            branch: request.branch,
            reason: request.reason,
            take_over: request.take_over,
            ..PassOptions::default()
        };
        let report = workspace.index(engine, context, &pass)?;
        let mut response = respond(report);
        // A folder within a repository stands for the whole repository, which the summary then names.
        let (asked, root) = (std::fs::canonicalize(&request.path), std::fs::canonicalize(workspace.root()));
        if let (Ok(asked), Ok(root)) = (asked, root)
            && asked != root
        {
            response.summary = format!("the whole repository at {}: {}", root.display(), response.summary);
        }
        if let Some(commits) = request.history {
            let imported = workspace.import_history(engine, context, &pass, commits)?;
            response.summary = format!("{}; {}", response.summary, summary(&imported));
            response.history = Some(imported);
        }
        Ok(response)
    }
}

fn summary(imported: &ImportedHistory) -> String {
    let mut summary =
        format!("{} imported, {} already there", count(imported.commits, "commit"), imported.already_there);
    if imported.left_out > 0 {
        summary.push_str(&format!(", {} left out", imported.left_out));
    }
    summary
}

pub(super) fn respond(report: PassReport) -> Response {
    let seconds = report.took_ms as f64 / 1_000.0;
    let summary = if report.tx.is_none() {
        format!("{} on {}, nothing changed, in {seconds:.1} s", count(report.files, "file"), report.branch)
    } else {
        let share = 100.0 * report.calls_unresolved as f64 / (report.calls.max(1)) as f64;
        let edges: usize = report.relationships.values().sum();
        format!(
            "{} on {}: {} changed, {} removed; {} symbols and {edges} relationships stated, {share:.0} % of calls \
             unresolved, in {seconds:.1} s",
            count(report.files, "file"),
            report.branch,
            report.changed,
            report.removed,
            report.symbols
        )
    };
    let summary = match &report.apart {
        Some(apart) => format!("{summary}; {apart}"),
        None => summary,
    };
    let summary = match &report.model {
        Some(model) if model.left > 0 => {
            format!("{summary}; {} by {}, {} left for later", summaries(model.summaries), model.model, model.left)
        }
        Some(model) if model.summaries > 0 => format!("{summary}; {} by {}", summaries(model.summaries), model.model),
        _ => summary,
    };
    let summary = match left_out(&report) {
        Some(left_out) => format!("{summary}; not searched: {left_out}"),
        None => summary,
    };
    Response { summary, report, history: None }
}

/// Files whose text is not searched, of those that were read in this pass.
fn left_out(report: &PassReport) -> Option<String> {
    let binary = (report.not_text > 0).then(|| format!("{} binary", report.not_text));
    let others = report.left_out.iter().map(|(why, files)| format!("{files} {}", why.name()));
    let all: Vec<String> = binary.into_iter().chain(others).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn summaries(number: usize) -> String {
    format!("{number} {}", if number == 1 { "summary" } else { "summaries" })
}
