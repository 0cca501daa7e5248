//! `verify`: recomputes everything and names the first thing that is wrong.

use super::META;
use crate::registry::{Effect, Meta, Op};
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
        let report = engine.ledger(&context.scope).verify(&mut |done, of| progress(done, Some(of)))?;
        let summary = format!(
            "all is well: {} transactions, {} things, {} statements, {} releases",
            report.transactions, report.things, report.statements, report.releases
        );
        Ok(Response { summary, report })
    }
}
