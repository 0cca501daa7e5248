//! `verify`: recomputes everything and reports the first error.

use crate::registry::META;
use crate::registry::{Effect, Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::Result;
use lukasa_store::ledger::VerifyReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct Verify;

#[derive(Deserialize, JsonSchema)]
pub struct Request {}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    #[serde(flatten)]
    pub report: VerifyReport,
}

impl Op for Verify {
    const META: Meta = Meta {
        name: "verify",
        long: true,
        shown: ResponseView::Summary,
        answer: &["transactions", "things", "statements", "releases", "head_hash"],
        summary: "Check that nothing was lost or changed",
        description: "Recomputes content hashes, the chain of transactions, ids, counts and release digests. Exits \
                      with an error that names the first thing that is wrong.",
        verb: "verify",
        effect: Effect::Admin,
        scope: "admin",
        toolset: "admin",
        examples: &["lukasa verify"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, _: Request) -> Result<Response> {
        let progress = &mut *context.progress;
        let report = engine.ledger(&context.scope).verify(&mut |done, of| progress(done.0, Some(of.0)))?;
        let verdict =
            if report.warnings.is_empty() { "all is well" } else { "nothing is damaged, but there are warnings" };
        let counts = [
            count(report.transactions, "transaction"),
            count(report.things, "thing"),
            count(report.statements, "statement"),
            count(report.releases, "release"),
        ];
        let summary = format!("{verdict}: {}", counts.join(", "));
        Ok(Response { summary, report })
    }
}
