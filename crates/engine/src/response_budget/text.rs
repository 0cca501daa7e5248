//! Shortens texts between lines, sentences or words, and marks where something was left out.

use lukasa_search::fields::sentences;

/// Marks where something was left out.
pub const MARK: &str = "…";

/// The units of a text: its lines if it has several, else its sentences.
pub fn parts(text: &str) -> Vec<&str> {
    match text.trim_end().contains('\n') {
        true => text.split_inclusive('\n').collect(),
        false => sentences(text).collect(),
    }
}

/// The beginning of a text, of at most `most` characters and a mark. None if the text is not longer than that.
pub fn shorten(text: &str, most: usize) -> Option<String> {
    if text.len() <= most || text.chars().nth(most).is_none() {
        return None;
    }
    let mut end = 0;
    let mut chars = 0;
    for part in parts(text) {
        chars += part.trim_end().chars().count();
        if chars > most {
            break;
        }
        chars += part.chars().count() - part.trim_end().chars().count();
        end += part.len();
    }
    let kept = text[..end].trim_end();
    if kept.is_empty() {
        return Some(format!("{}{MARK}", words(text, most)));
    }
    let line = if text[..end].ends_with('\n') { "\n" } else { "" };
    Some(format!("{kept}{line}{MARK}"))
}

/// Whole words from the beginning; a part of the first word if that alone is too long.
fn words(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    let cut = &text[..end];
    if text[end..].starts_with(char::is_whitespace) {
        return cut.trim_end();
    }
    match cut.rfind(char::is_whitespace).filter(|at| *at > end / 2) {
        Some(at) => cut[..at].trim_end(),
        None => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_where_a_reader_would_stop() {
        for (text, most, expected) in [
            ("Short.", 10, None),
            ("One is done. Two is not. Three.", 14, Some("One is done.…")),
            ("fn a() {\n    b();\n    c();\n}", 20, Some("fn a() {\n    b();\n…")),
            ("one long sentence without an end", 12, Some("one long…")),
            ("unbroken_name_that_goes_on", 8, Some("unbroken…")),
            ("éééé éééé éééé", 9, Some("éééé éééé…")),
            ("éééé éééé éééé", 7, Some("éééé…")),
            ("\n\n\nfirst line\nsecond", 12, Some("first…")),
        ] {
            let short = shorten(text, most);
            assert_eq!(short.as_deref().map(str::trim_start), expected, "{text}");
        }
    }
}
