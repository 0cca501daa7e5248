//! Detects the intent of a query from its words.

use crate::recipes::{IntentWeights, OBJECTS};
use crate::tokens;
use serde::{Deserialize, Serialize};

/// Kinds of queries that need different weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    Explain,
    LocateConfig,
    DebugError,
    Roadmap,
}

impl Intent {
    pub const ALL: [Intent; 4] = [Intent::Explain, Intent::LocateConfig, Intent::DebugError, Intent::Roadmap];

    /// The name in requests and answers.
    pub fn name(self) -> &'static str {
        match self {
            Intent::Explain => "explain",
            Intent::LocateConfig => "locate_config",
            Intent::DebugError => "debug_error",
            Intent::Roadmap => "roadmap",
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Intent::Explain => &["explain", "how", "why", "understand", "overview", "describe", "purpose", "meaning"],
            Intent::LocateConfig => {
                &["config", "configuration", "setting", "option", "flag", "environment", "env", "default", "parameter"]
            }
            Intent::DebugError => &[
                "error",
                "bug",
                "crash",
                "fail",
                "failure",
                "exception",
                "traceback",
                "panic",
                "fix",
                "broken",
                "wrong",
                "regression",
                "stacktrace",
            ],
            Intent::Roadmap => {
                &["roadmap", "plan", "milestone", "future", "next", "upcoming", "priority", "backlog", "quarter"]
            }
        }
    }
}

/// The weights for an intent, or for none.
pub fn template(intent: Option<Intent>) -> IntentWeights {
    match intent {
        None => OBJECTS.plain,
        Some(Intent::Explain) => OBJECTS.explain,
        Some(Intent::LocateConfig) => OBJECTS.locate_config,
        Some(Intent::DebugError) => OBJECTS.debug_error,
        Some(Intent::Roadmap) => OBJECTS.roadmap,
    }
}

/// Returns the intent with the most matching words; `None` if there is none, or on a tie.
pub fn detect(question: &str) -> Option<Intent> {
    let words: Vec<String> = tokens::list(question);
    let votes = |intent: Intent| intent.words().iter().filter(|w| words.contains(&tokens::stemmed(w))).count();
    let mut best: Option<(usize, Intent)> = None;
    let mut level = false;
    for intent in Intent::ALL {
        let count = votes(intent);
        match best {
            _ if count == 0 => {}
            Some((most, _)) if count < most => {}
            Some((most, _)) if count == most => level = true,
            _ => (best, level) = (Some((count, intent)), false),
        }
    }
    best.filter(|_| !level).map(|(_, intent)| intent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_intent_is_detected_by_words() {
        for (question, intent) in [
            ("explain how merging works", Some(Intent::Explain)),
            ("which setting changes the default timeout", Some(Intent::LocateConfig)),
            ("TypeError: crash when the list is empty", Some(Intent::DebugError)),
            ("what is planned for the next milestone", Some(Intent::Roadmap)),
            ("feature flag rollout decision", Some(Intent::LocateConfig)),
            ("parse tree", None),
            ("how is the error handled", None),
            ("", None),
        ] {
            assert_eq!(detect(question), intent, "{question}");
        }
    }
}
