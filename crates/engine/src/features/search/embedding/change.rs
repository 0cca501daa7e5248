//! Whether a change of an object can change its meaning.

use lukasa_model::change::{ChangeSummary, covers};
use lukasa_model::content::TEXTS;

/// A larger change in size is always significant.
const SIZE_BYTES: usize = 256;
/// Fields of a content besides its texts; a path that begins with anything else names a property.
const FIELDS: [&str; 3] = ["labels", "properties", "evidence"];

/// Converts a path of a type's `relevant_paths` to a path in the content: `/summary` becomes `/properties/summary`.
pub fn in_content(path: &str) -> String {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    if TEXTS.contains(&first) || FIELDS.contains(&first) { path.to_owned() } else { format!("/properties{path}") }
}

/// Whether the title, a label or one of the relevant paths changed (any property, if there are none), or the size changed by
/// more than 256 bytes. A first version has no summary and is significant.
pub fn significant(change: Option<&ChangeSummary>, relevant: &[String]) -> bool {
    let Some(change) = change else { return true };
    if change.meta.bytes_before.abs_diff(change.meta.bytes_after) > SIZE_BYTES {
        return true;
    }
    let mut watched = vec!["/title".to_owned(), "/labels".to_owned()];
    match relevant {
        [] => watched.push("/properties".into()),
        paths => watched.extend(paths.iter().map(|path| in_content(path))),
    }
    // A change above a path changes the value at the path.
    change.paths.iter().any(|changed| watched.iter().any(|path| covers(path, changed) || covers(changed, path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lukasa_model::change::summarise;
    use serde_json::{Value, json};

    #[test]
    fn what_counts_and_what_does_not() {
        let base = json!({"labels": ["a"], "properties": {"deep": {"x": 1}, "line": 1, "summary": "s"}, "title": "T"});
        let with = |path: &str, value: Value| {
            let mut changed = base.clone();
            *changed.pointer_mut(path).unwrap() = value;
            changed
        };
        let cases = [
            (with("/title", json!("U")), true, true),
            (with("/labels", json!(["a", "b"])), true, true),
            (with("/properties/summary", json!("t")), true, true),
            (with("/properties/line", json!(2)), false, true),
            (with("/properties/deep/x", json!(2)), true, true),
            (with("/properties/deep", json!(3)), true, true),
            (json!({"labels": ["a"], "status": "open", "properties": base["properties"], "title": "T"}), false, false),
            (json!({"labels": ["a"], "title": "T"}), true, true),
            (with("/properties/line", json!("x".repeat(255))), false, true),
            (with("/properties/line", json!("x".repeat(256))), true, true),
        ];
        let relevant = ["/summary".to_owned(), "/properties/deep/x".to_owned()];
        for (after, with_paths, without) in cases {
            let change = summarise(Some(&base.to_string()), Some(&after.to_string()), &[]);
            let got = (significant(Some(&change), &relevant), significant(Some(&change), &[]));
            assert_eq!(got, (with_paths, without), "{after}");
        }
        assert!(significant(None, &relevant), "a first version");
    }
}
