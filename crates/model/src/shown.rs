//! Makes external text safe to display: no terminal control characters, and no credentials in URLs.

use std::borrow::Cow;
use std::fmt::Write;

/// Replaces credentials.
pub const REDACTED: &str = "[redacted]";

/// The placeholder credentials in hints, which are not redacted.
const EXAMPLE: &str = "user:password";

/// Parameters in URLs and connection strings whose values are credentials.
const SECRET_PARAMETERS: [&str; 2] = ["password=", "sslpassword="];

/// Whether a character controls a terminal or changes how the surrounding text is read: control characters, line
/// separators, marks and overrides of the writing direction, and other invisible characters.
pub fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Escapes every misleading character as `\u{…}`.
pub fn safe(text: &str) -> Cow<'_, str> {
    if !text.contains(misleads) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match misleads(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Like `safe`, for JSON text: the result is JSON for the same value. Line breaks and tabs between values stay.
pub fn safe_json(text: &str) -> Cow<'_, str> {
    let escaped = |c: char| misleads(c) && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if !escaped(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}").expect("writing to a String cannot fail");
        }
    }
    Cow::Owned(out)
}

/// Removes users and passwords from URLs, and passwords from connection strings.
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    let has_parameter = || SECRET_PARAMETERS.iter().any(|name| text.contains(name));
    if !text.contains("://") && !has_parameter() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(ends_url).unwrap_or(after.len());
        let (url, beyond) = after.split_at(end);
        out.push_str(&without_user(url, is_database(before)));
        rest = beyond;
    }
    out.push_str(rest);
    Cow::Owned(without_parameters(&out))
}

/// Whether a character ends a URL in running text.
fn ends_url(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '`' | '<' | '>')
}

fn is_database(before: &str) -> bool {
    before.ends_with("postgres://") || before.ends_with("postgresql://")
}

/// Removes the user and password from `url`, which starts after the scheme. Passwords in database URLs are often not
/// escaped, so there everything up to the last `@` is removed.
fn without_user(url: &str, database: bool) -> Cow<'_, str> {
    let authority = url.find(['/', '?', '#']).unwrap_or(url.len());
    let at = if database { url.rfind('@') } else { url[..authority].rfind('@') };
    match at {
        Some(at) if url[..at] != *EXAMPLE => Cow::Owned(format!("{REDACTED}{}", &url[at..])),
        _ => Cow::Borrowed(url),
    }
}

fn without_parameters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // `sslpassword=` ends with `password=`, so searching for the latter finds both.
    while let Some(at) = rest.find(SECRET_PARAMETERS[0]) {
        let (before, after) = rest.split_at(at + SECRET_PARAMETERS[0].len());
        out.push_str(before);
        let end = match after.strip_prefix('\'') {
            Some(quoted) => quoted.find('\'').map_or(after.len(), |end| end + 2),
            None => {
                after.find(|c: char| ends_url(c) || matches!(c, '&' | '#' | '\'' | ',' | ';')).unwrap_or(after.len())
            }
        };
        if end > 0 {
            out.push_str(REDACTED);
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misleading_characters_are_escaped() {
        assert_eq!(safe("if admin\u{202e} // check \u{2066}"), "if admin\\u{202e} // check \\u{2066}");
        assert_eq!(safe("a\u{1b}[31mb\u{200f}\u{9b}2J"), "a\\u{1b}[31mb\\u{200f}\\u{9b}2J");
        for c in ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}').chain(['\u{200e}', '\u{200f}', '\u{61c}']) {
            assert!(misleads(c), "{c:?}");
        }
        for text in ["Grüße, 世界 שלום مرحبا", "👩\u{200d}💻", "a b", ""] {
            assert_eq!(safe(text), text, "letters of every script stay");
        }
    }

    #[test]
    fn json_stays_json_for_the_same_value() {
        let value = serde_json::json!({"a\u{202e}": ["\u{9b}2J", "\u{e0041}x", "plain"]});
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let shown = safe_json(&text);
            assert!(!shown.replace('\n', "").contains(misleads), "{shown}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }

    #[test]
    fn urls_lose_their_credentials() {
        for (text, shown) in [
            ("postgres://ann:HIDDEN@db:5432/shop", "postgres://[redacted]@db:5432/shop"),
            (
                "`postgresql://ann:p@ss/HIDDEN@db/shop` is not a number",
                "`postgresql://[redacted]@db/shop` is not a number",
            ),
            (
                "--store: postgres://HIDDEN@db/x, then https://u:HIDDEN@h/p",
                "--store: postgres://[redacted]@db/x, then https://[redacted]@h/p",
            ),
            (
                "postgres:///shop?host=/tmp&user=ann&password=HIDDEN&x=1",
                "postgres:///shop?host=/tmp&user=ann&password=[redacted]&x=1",
            ),
            ("host=db password='HID DEN' user=ann", "host=db password=[redacted] user=ann"),
            ("host=db sslpassword=HIDDEN user=ann", "host=db sslpassword=[redacted] user=ann"),
            (
                "git clone https://x-token:HIDDEN@example.org/a.git failed",
                "git clone https://[redacted]@example.org/a.git failed",
            ),
        ] {
            assert_eq!(without_credentials(text), shown);
        }
        for text in [
            "it looks like postgres://user:password@host:5432/database",
            "https://example.org/@user/a?b=c@d",
            "no address: a@b",
            "://",
            "postgres://db/shop",
            "",
        ] {
            assert_eq!(without_credentials(text), text);
        }
    }
}
