//! Errors for people: the message with its code, details, and the hint.

use super::values::{at, list, name, plain};
use super::{Rendering, TextRole};
use lukasa_model::Error;
use serde_json::Value;

impl Rendering {
    /// An error, the fields or conflicts it lists, and what to do next.
    pub fn of_error(error: &Error) -> Rendering {
        let mut out = Rendering::default();
        out.marked(TextRole::Error, "error", &format!("{} ({})", error.message, error.code));
        for field in list(&error.details, "fields") {
            out.line(format!("  {}: {}", at(field, "path"), at(field, "message")));
        }
        out.conflicts(list(&error.details, "conflicts"));
        if let Some(hint) = &error.hint {
            out.marked(TextRole::Place, "hint", hint);
        }
        out
    }

    /// The conflicts of a merge.
    pub fn conflicts(&mut self, conflicts: Vec<&Value>) {
        let path = |r: &Value| if at(r, "path").is_empty() { "(the whole)".into() } else { at(r, "path") };
        let side = |field: &'static str| {
            move |r: &Value| if r[field].is_null() { "(absent)".into() } else { plain(&r[field]) }
        };
        self.table(
            conflicts,
            &[
                ("conflict in", &name),
                ("path", &path),
                ("base", &side("base")),
                ("ours", &side("ours")),
                ("theirs", &side("theirs")),
            ],
        );
    }
}
