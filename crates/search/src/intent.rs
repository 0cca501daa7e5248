//! Detects the intent of a query from its words.

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

/// Channel weights for an intent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Template {
    pub lexical: f64,
    pub vector: f64,
    pub neighbor: f64,
    /// The share of a score that decays with age.
    pub recency: f64,
}

impl Intent {
    pub const ALL: [Intent; 4] = [Intent::Explain, Intent::LocateConfig, Intent::DebugError, Intent::Roadmap];

    pub fn name(self) -> &'static str {
        match self {
            Intent::Explain => "explain",
            Intent::LocateConfig => "locate_config",
            Intent::DebugError => "debug_error",
            Intent::Roadmap => "roadmap",
        }
    }

    pub fn template(self) -> Template {
        match self {
            Intent::Explain => Template { lexical: 0.4, vector: 0.5, neighbor: 0.1, recency: 0.05 },
            Intent::LocateConfig => Template { lexical: 0.7, vector: 0.3, neighbor: 0.0, recency: 0.15 },
            Intent::DebugError => Template { lexical: 0.5, vector: 0.3, neighbor: 0.2, recency: 0.4 },
            Intent::Roadmap => Template { lexical: 0.3, vector: 0.5, neighbor: 0.2, recency: 0.05 },
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

/// Returns the intent with the most matching words; `None` if there is none, or on a tie.
pub fn detect(question: &str) -> Option<Intent> {
    let said: Vec<String> = tokens::list(question);
    let votes = |intent: Intent| intent.words().iter().filter(|w| said.contains(&tokens::stemmed(w))).count();
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
    fn questions_are_told_by_their_words() {
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
