//! One sentence about a definition, by rule: the first sentence of its doc comment, else the first meaningful line of
//! its body, else its signature in words.

use crate::facts::{Def, DefKind};
use crate::tree::{cut, one_line};

/// Longest summary: one sentence.
const BYTES: usize = 200;

pub fn of(def: &Def, name: &str, text: &str) -> String {
    if let Some(doc) = &def.doc
        && let Some(sentence) = first_sentence(doc)
    {
        return sentence;
    }
    if def.kind.callable()
        && let Some(line) = first_line(def, text)
    {
        return line;
    }
    in_words(def, name)
}

/// Whether the summary of a definition is derived by rule, because its doc comment has no sentence.
pub fn is_by_rule(def: &Def) -> bool {
    def.doc.as_deref().and_then(first_sentence).is_none()
}

/// The text up to the first full stop that ends a sentence, across line breaks, without markup and tags at the
/// beginning.
pub fn first_sentence(doc: &str) -> Option<String> {
    let paragraph: Vec<&str> = doc
        .lines()
        .map(str::trim)
        .skip_while(|line| !says_something(line))
        .take_while(|line| !line.is_empty() && !line.starts_with('@') && !line.starts_with(":param"))
        .collect();
    let paragraph = one_line(&paragraph.join(" "));
    let paragraph = paragraph.trim_start_matches(['#', '*', '-', '=', ' ']);
    let mut end = paragraph.len();
    let mut from = 0;
    while let Some(at) = paragraph[from..].find(['.', '!', '?']) {
        let at = from + at;
        let after = paragraph[at + 1..].chars().next();
        let before = paragraph[..at].rsplit(' ').next().unwrap_or("");
        // A stop after `e.g`, `i.e` or a single letter does not end a sentence.
        let abbreviation = before.len() <= 1 || matches!(before, "e.g" | "i.e" | "etc" | "cf" | "vs");
        if after.is_none_or(char::is_whitespace) && !abbreviation {
            end = at + 1;
            break;
        }
        from = at + 1;
    }
    let sentence = cut(paragraph[..end].trim(), BYTES);
    (!sentence.is_empty()).then(|| sentence.to_owned())
}

fn says_something(line: &str) -> bool {
    line.chars().filter(|c| c.is_alphabetic()).count() > 2 && !line.starts_with('@') && !line.starts_with("<!--")
}

/// The first meaningful line of the body.
fn first_line(def: &Def, text: &str) -> Option<String> {
    let body = text.get(def.span.start as usize..def.span.end as usize)?;
    let mut lines = body.lines().map(str::trim);
    // The head may span several lines: it ends where the signature ends.
    let last_of_head = def.signature.split_whitespace().last().unwrap_or("");
    if body.contains('\n') {
        lines.by_ref().find(|line| !line.starts_with('@') && !line.starts_with("#[") && line.contains(last_of_head));
    } else {
        return None;
    }
    lines
        .find(|line| {
            line.chars().filter(|c| c.is_alphanumeric()).count() > 2
                && !["//", "#", "/*", "*", "\"\"\"", "'''", "--"].iter().any(|mark| line.starts_with(mark))
        })
        .map(|line| cut(&one_line(line), BYTES).to_owned())
}

/// Turns `fn read_file(path)` into "function read file (path)", so that a search by words finds it.
fn in_words(def: &Def, name: &str) -> String {
    let kind = match def.kind {
        DefKind::File => "file",
        DefKind::Module => "module",
        DefKind::Class => "class",
        DefKind::Struct => "struct",
        DefKind::Enum => "enum",
        DefKind::Interface => "interface",
        DefKind::Type => "type",
        DefKind::Function | DefKind::Lambda => "function",
        DefKind::Method => "method",
        DefKind::Field => "field",
        DefKind::Variable => "variable",
    };
    let words = words(name).join(" ");
    let signature = def.signature.trim();
    if signature.is_empty() {
        return format!("{kind} {words}");
    }
    cut(&format!("{kind} {words}: {signature}"), BYTES).to_owned()
}

/// The words of an identifier: `readHTMLFile`, `read_html_file` and `read-html-file` are read, html, file.
pub fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let chars: Vec<char> = name.chars().collect();
    let mut word = String::new();
    for (at, c) in chars.iter().enumerate() {
        if !c.is_alphanumeric() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            continue;
        }
        let before = at.checked_sub(1).map(|b| chars[b]);
        let after = chars.get(at + 1);
        let begins = c.is_uppercase()
            && (before.is_some_and(|b| b.is_lowercase() || b.is_numeric())
                || (before.is_some_and(char::is_uppercase) && after.is_some_and(|a| a.is_lowercase())));
        if begins && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.extend(c.to_lowercase());
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{first_sentence, words};

    #[test]
    fn sentences_end_where_they_end() {
        for (doc, expected) in [
            ("Reads a file. Then more.", Some("Reads a file.")),
            ("Reads e.g. a file\nand gives it back.\n\nDetails.", Some("Reads e.g. a file and gives it back.")),
            ("@param x the thing", None),
            ("# Title\n\nText", Some("Title")),
            ("Returns v1.2 of it", Some("Returns v1.2 of it")),
            ("---\n", None),
        ] {
            assert_eq!(first_sentence(doc).as_deref(), expected, "{doc:?}");
        }
    }

    #[test]
    fn identifiers_have_words() {
        for (name, expected) in [
            ("readHTMLFile", "read html file"),
            ("read_html_file", "read html file"),
            ("HTTPServer2Run", "http server2 run"),
            ("__init__", "init"),
            ("", ""),
        ] {
            assert_eq!(words(name).join(" "), expected, "{name}");
        }
    }
}
