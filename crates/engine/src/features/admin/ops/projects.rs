//! `projects`: lists the projects of a tenant.

use crate::features::admin::rendering;
use crate::registry::META;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::{Result, Scope, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct Projects;

#[derive(Deserialize, JsonSchema)]
pub struct Request {}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    pub store: String,
    pub projects: Vec<ProjectOut>,
}

#[derive(Serialize, JsonSchema)]
pub struct ProjectOut {
    pub project: String,
    pub transactions: Tx,
}

impl Op for Projects {
    const META: Meta = Meta {
        name: "projects",
        shown: ResponseView::By(rendering::projects),
        answer: &["projects.project", "projects.transactions", "store"],
        summary: "List the projects in the store",
        description: "The projects of the tenant, with the number of transactions of each.",
        verb: "projects",
        toolset: "admin",
        examples: &["lukasa projects"],
        ..META
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, _: Request) -> Result<Response> {
        let mut projects = Vec::new();
        for project in engine.store().projects(&context.scope.tenant)? {
            let scope = Scope { tenant: context.scope.tenant.clone(), project: project.clone() };
            projects.push(ProjectOut { project, transactions: engine.ledger(&scope).head()?.tx });
        }
        Ok(Response { summary: count(projects.len(), "project"), store: engine.store().describe(), projects })
    }
}
