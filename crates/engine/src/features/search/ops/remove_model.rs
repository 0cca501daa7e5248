//! `remove_model`: removes the vectors of an embedding model.

use crate::features::search::embedding;
use crate::registry::WRITE;
use crate::registry::{Meta, Op};
use crate::rendering::ResponseView;
use crate::responses::count;
use crate::{Context, Engine};
use lukasa_model::{Error, ErrorCode, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The operation `remove_model`.
pub struct RemoveModel;

#[derive(Deserialize, JsonSchema)]
pub struct Request {
    /// The id of the model as `search_readiness` lists it, or its beginning if no other id begins with it.
    pub model: String,
    /// Remove the vectors even if the model is in use; they are then made again.
    #[serde(default)]
    pub force: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Response {
    pub summary: String,
    /// The id of the model.
    pub model: String,
    /// Number of vectors that were removed.
    pub removed: u64,
    /// The models that still have vectors.
    pub models: Vec<String>,
}

impl Op for RemoveModel {
    const META: Meta = Meta {
        name: "remove_model",
        shown: ResponseView::Summary,
        answer: &["model", "removed", "models"],
        destructive: true,
        long: true,
        summary: "Remove the vectors of an embedding model",
        description: "When the model changes, vectors of the new one are made beside the old ones, so that going back loses \
                      nothing. This removes those of one model, with its queue, once they are not needed any more. The model \
                      that makes vectors, and the one whose vectors search reads, are only removed with `force`.",
        verb: "remove-model",
        positional: &["model"],
        toolset: "search",
        examples: &["lukasa remove-model all-MiniLM-L6-v2"],
        ..WRITE
    };
    type Request = Request;
    type Response = Response;

    fn run(engine: &Engine, context: &mut Context<'_>, request: Request) -> Result<Response> {
        let ledger = engine.ledger(&context.scope);
        let models = || ledger.store().derived().vector_models(ledger.scope());
        let model = named(&models()?, &request.model)?;
        let using = engine.embedding();
        let (makes, reads) = (using.embedder().model().id(), using.reads());
        let in_use: &[&str] = if request.force { &[] } else { &[&makes, &reads] };
        let removed = embedding::remove_model(&ledger, &model, in_use)?;
        engine.searching().vectors_changed();
        let mut models = models()?;
        models.retain(|other| *other != model);
        let summary = format!("{} of {model} removed", count(removed, "vector"));
        Ok(Response { summary, model, removed, models })
    }
}

/// Returns the model with this id, or the only one whose id begins like this.
fn named(models: &[String], name: &str) -> Result<String> {
    let begins: Vec<&String> = models.iter().filter(|model| model.starts_with(name) && !name.is_empty()).collect();
    match (models.iter().find(|model| *model == name), &begins[..]) {
        (Some(model), _) => Ok(model.clone()),
        (None, [model]) => Ok((*model).clone()),
        (None, []) => Err(Error::not_found(ErrorCode::ModelNotFound, format!("no model `{name}` has vectors"))
            .hint("`lukasa readiness` lists the models that have vectors")),
        (None, several) => Err(Error::invalid(
            ErrorCode::Ambiguous,
            format!("the ids of {} begin with `{name}`", count(several.len(), "model")),
        )
        .hint("give the whole id, as `lukasa readiness` lists it")
        .details(json!({"candidates": several}))),
    }
}
