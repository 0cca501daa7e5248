//! `diff`: compares two views.

use crate::features::facts::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::FactChangeOut;
use crate::responses::count;
use crate::sensitive::is_sensitive;
use crate::view::symbols::SymbolKind;
use crate::{Context, Engine};
use lukasa_code::type_names;
use lukasa_model::view::ViewEcho;
use lukasa_model::{Error, ErrorCode, Fact, Result, Version, View};
use lukasa_store::Ledger;
use lukasa_store::ledger::{DiffOptions, FactChange, ViewDifference, ViewSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct DiffOp;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// Starting point: tx:…, time:…, commit:…, release:…, tag:… or agent:….
    #[serde(default)]
    pub from: Option<String>,
    /// End point; now when left out.
    #[serde(default)]
    pub to: Option<String>,
    /// Branch of the starting point; when left out, the one checked out in the caller's working tree, else `main`.
    #[serde(default)]
    pub from_branch: Option<String>,
    /// Branch of the end point; the same when left out.
    #[serde(default)]
    pub to_branch: Option<String>,
    /// Only facts of these types, for example File, Function, Class; all when left out.
    #[serde(default)]
    pub types: Vec<String>,
    /// Include code that only moved within its file, and commits.
    #[serde(default)]
    pub all: bool,
    /// Maximum number of changes listed; all are counted.
    #[serde(default = "limit")]
    pub limit: usize,
}

pub fn limit() -> usize {
    100
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub added: usize,
    pub removed: usize,
    pub modified: usize,
    pub changes: Vec<FactChangeOut>,
    pub truncated: bool,
    pub from: ViewEcho,
    pub to: ViewEcho,
}

impl Op for DiffOp {
    const META: Meta = Meta {
        name: "diff",
        long: true,
        shown: ResponseView::By(rendering::difference),
        answer: &[
            "changes.change",
            "changes.key",
            "changes.type",
            "changes.between",
            "changes.title",
            "added",
            "removed",
            "modified",
        ],
        summary: "Compare two moments or two branches",
        description: "Lists what was added, removed and modified on the way from one view to the other, with the \
                      paths that changed. Each moment stands for the branch as it was known then. Code that has only \
                      moved within its file is not listed, nor are commits, unless `all` asks for them.",
        verb: "diff",
        positional: &["from", "to"],
        branch_field: "from_branch",
        instead_of_view: &["to_branch"],
        examples: &["lukasa diff tx:10 tx:20", "lukasa diff --from-branch main --to-branch feature/x"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let one_branch = request.to_branch.is_none() || request.to_branch == request.from_branch;
        if request.from.is_none() && request.to.is_none() && one_branch {
            return Err(Error::invalid(ErrorCode::NothingToCompare, "both sides are the same")
                .hint("name two moments, or two branches with --from-branch and --to-branch"));
        }
        let ledger = engine.ledger(&context.scope);
        let to_branch = request.to_branch.or_else(|| request.from_branch.clone());
        let from = view_at(&ledger, request.from_branch, request.from.as_deref())?;
        let to = view_at(&ledger, to_branch, request.to.as_deref())?;
        let meaning = ComparisonOptions::new(engine, context, &to, &request.types, request.all)?;
        compare(&ledger, &from, &to, &meaning, request.limit)
    }
}

/// Returns the view of a branch as it was known at `moment`, or the current view without one.
pub fn view_at(ledger: &Ledger, branch: Option<String>, moment: Option<&str>) -> Result<View> {
    match moment {
        Some(moment) => ledger.view_since(branch.as_deref(), moment),
        None => ledger.view(&ViewSpec { branch, ..ViewSpec::default() }),
    }
}

/// Compares two views and builds the response.
pub fn compare(ledger: &Ledger, from: &View, to: &View, meaning: &ComparisonOptions, limit: usize) -> Result<Response> {
    shaped(meaning.compare(ledger, from, to, limit)?, from, to)
}

/// Which differences count as changes.
pub struct ComparisonOptions {
    /// Type names in their declared spelling; empty for all.
    types: Vec<String>,
    all: bool,
}

impl ComparisonOptions {
    /// `types` may contain comma-separated names. Refuses a type that no object or relationship has.
    pub fn new(
        engine: &Engine,
        context: &mut Context<'_>,
        view: &View,
        types: &[String],
        all: bool,
    ) -> Result<ComparisonOptions> {
        let asked: Vec<&str> =
            types.iter().flat_map(|t| t.split(',')).map(str::trim).filter(|t| !t.is_empty()).collect();
        if asked.is_empty() {
            return Ok(ComparisonOptions { types: vec![], all });
        }
        let look = engine.look_at(context, view.clone(), false)?;
        let types = asked.into_iter().flat_map(|name| match look.spelled_types(name) {
            Ok(both) => both.into_iter().map(Ok).collect(),
            Err(e) => vec![Err(e)],
        });
        Ok(ComparisonOptions { types: types.collect::<Result<_>>()?, all })
    }

    /// The differences between two views that count as changes, up to `limit` of them listed.
    pub fn compare(&self, ledger: &Ledger, from: &View, to: &View, limit: usize) -> Result<ViewDifference> {
        let wanted = |thing: &Fact| {
            let of_type = |t: &String| t.eq_ignore_ascii_case(&thing.type_name);
            (self.all || !thing.type_name.eq_ignore_ascii_case(type_names::COMMIT))
                && (self.types.is_empty() || self.types.iter().any(of_type))
        };
        let positions = |thing: &Fact| if self.all { &[][..] } else { positions(thing) };
        ledger.diff_of(from, to, &DiffOptions { limit, wanted: &wanted, positions: &positions })
    }
}

/// Returns the paths whose values only describe a position in the source.
fn positions(thing: &Fact) -> &'static [&'static str] {
    let is_edge = type_names::relationship_type(&thing.type_name).is_some();
    match thing.ends.is_some() {
        true if is_edge => &["/properties/line", "/properties/lines"],
        false if SymbolKind::of_type(&thing.type_name).is_some_and(|kind| kind != SymbolKind::File) => {
            &["/properties/line", "/properties/end_line"]
        }
        // A digest of the facts read from the file, which changes with line numbers.
        false if thing.type_name.eq_ignore_ascii_case(type_names::FILE) => &["/properties/facts"],
        _ => &[],
    }
}

/// Describes the number of changes by kind.
pub fn in_words(added: usize, removed: usize, modified: usize) -> String {
    match added + removed + modified {
        0 => "no difference".to_string(),
        total => format!("{}: {added} added, {removed} removed, {modified} modified", count(total, "change")),
    }
}

fn shaped(difference: ViewDifference, from: &View, to: &View) -> Result<Response> {
    let (added, removed, modified) = (difference.added, difference.removed, difference.modified);
    let changes: Vec<_> = difference.changes.into_iter().map(change_out).collect::<Result<_>>()?;
    let summary = in_words(added, removed, modified);
    let truncated = added + removed + modified > changes.len();
    Ok(Response { summary, added, removed, modified, changes, truncated, from: from.echo(), to: to.echo() })
}

/// Converts a change for the response; title and summary of a sensitive fact are left out.
pub fn change_out(change: FactChange) -> Result<FactChangeOut> {
    let read = |statement: &Option<Version>| statement.as_ref().map(Version::parsed).transpose();
    let (before, after) = (read(&change.before)?, read(&change.after)?);
    let hidden = before.iter().chain(&after).any(is_sensitive);
    Ok(FactChangeOut {
        change: change.class,
        kind: change.thing.kind(),
        id: change.thing.id,
        type_name: change.thing.type_name.to_string(),
        key: change.thing.key.as_deref().map(Into::into),
        between: change.between,
        title: after.or(before).and_then(|content| content.title).filter(|_| !hidden),
        from_version: change.before.map(|s| s.version),
        to_version: change.after.map(|s| s.version),
        change_summary: change.summary.filter(|_| !hidden),
    })
}
