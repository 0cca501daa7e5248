//! Parses the spellings of a name that callers may write for one object, and compares them with keys.

use crate::view::symbols::keys;

/// A parsed name: its text without prefixes, and the type that it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedName<'t> {
    /// As it was written, without blanks around it and the `()` of a call.
    pub text: &'t str,
    /// Only objects of this type, from `Type:name`; `symbol` is any symbol but a file.
    pub type_name: Option<&'t str>,
    /// The rest without the type and the prefixes `file::` and `symbol::`.
    pub rest: &'t str,
}

impl<'t> ParsedName<'t> {
    /// Parses a name. `is_type` returns whether a word is the name of an object type.
    pub fn read(text: &'t str, is_type: impl Fn(&str) -> bool) -> ParsedName<'t> {
        let text = text.trim().trim_matches('`');
        let text = text.strip_suffix("()").unwrap_or(text);
        let form = |type_name, rest| ParsedName { text, type_name, rest };
        for (prefix, type_name) in [("file::", "file"), ("symbol::", "symbol")] {
            if let Some(rest) = text.strip_prefix(prefix).filter(|rest| !rest.is_empty()) {
                return form(Some(type_name), rest);
            }
        }
        match text.split_once(':') {
            Some((before, after))
                if !after.is_empty()
                    && !after.starts_with(':')
                    && (is_type(before) || before.eq_ignore_ascii_case("symbol")) =>
            {
                form(Some(before), after)
            }
            _ => form(None, text),
        }
    }

    /// A file and a line of it: `context.go:1255`, `context.go:1255:3` with a column, `context.go#L1255`.
    pub fn line(&self) -> Option<(&'t str, u64)> {
        if let Some((path, line)) = self.rest.rsplit_once("#L") {
            let digits = line.split(['-', 'C']).next().unwrap_or(line);
            return Some((path, digits.parse().ok()?)).filter(|(path, _)| !path.is_empty());
        }
        let (before, last) = self.rest.rsplit_once(':')?;
        let last: u64 = last.parse().ok()?;
        let with_column = before.rsplit_once(':').and_then(|(path, line)| Some((path, line.parse().ok()?)));
        let (path, line) = with_column.unwrap_or((before, last));
        // `decision:42` is no file.
        (path.contains(['.', '/', '\\']) && !path.ends_with(':')).then_some((path, line))
    }

    /// The path that it begins with, and what follows it: `./a.rs::f` is `./a.rs` and `::f`. A path must be more than
    /// one word, because any name would be a path otherwise.
    pub fn path(&self) -> Option<(&'t str, &'t str)> {
        let at = self.rest.find("::").or_else(|| self.rest.rfind(':')).unwrap_or(self.rest.len());
        let (path, after) = self.rest.split_at(at);
        path.contains(['/', '\\', '.']).then_some((path, after))
    }
}

/// How well a key fits a name; the smaller the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameFit {
    /// The key ends with the name.
    Suffix,
    /// Every part matches, with any separators between the parts.
    Parts,
    /// Like `Parts`, except for the `#` of a private name, or for containers between a named file and the symbol.
    Loose,
}

/// A name to be compared with many keys.
pub struct NamePattern<'t> {
    text: &'t str,
    parts: Vec<String>,
    /// Every key that fits contains this text.
    last: String,
}

/// Path words that are relative to the place of a name in the source, and are part of no key.
const HERE: [&str; 4] = ["crate", "self", "super", "this"];

impl<'t> NamePattern<'t> {
    /// Parses the text of a name without its type.
    pub fn new(text: &'t str) -> NamePattern<'t> {
        let parts = parts(&bare(text));
        let last = parts.last().map(|last| without_mark(last).to_owned()).unwrap_or_default();
        NamePattern { text, last, parts }
    }

    /// How the key of a symbol or a file fits, if it does.
    pub fn code(&self, key: &str) -> Option<NameFit> {
        if self.last.is_empty() || !key.contains(self.last.as_str()) {
            return None;
        }
        if keys::ends_so(key, self.text) {
            return Some(NameFit::Suffix);
        }
        let (path, names) = keys::plain(key).split_once("::")?;
        self.names(path, names)
    }

    /// How the key of anything else fits: keys such as `decision:42` and `service::auth` end at a colon.
    pub fn other(&self, key: &str) -> Option<NameFit> {
        let before = key.strip_suffix(self.text).filter(|_| !self.text.is_empty())?;
        (before.is_empty() || before.ends_with(':')).then_some(NameFit::Suffix)
    }

    /// The last parts are names within the file; the parts before them name the file, its folders, or its package.
    fn names(&self, path: &str, names: &str) -> Option<NameFit> {
        let mut fit = NameFit::Parts;
        let mut left = &self.parts[..];
        let mut own = names.rsplit("::").peekable();
        while let (Some(wanted), Some(part)) = (left.last(), own.peek()) {
            if wanted != part {
                if without_mark(wanted) != without_mark(part) {
                    break;
                }
                fit = NameFit::Loose;
            }
            left = &left[..left.len() - 1];
            own.next();
        }
        if left.len() == self.parts.len() {
            return None;
        }
        if left.is_empty() {
            // An equal name would be a suffix and was matched before, so this one lacks its `#`.
            return (self.parts.len() > 1 || fit == NameFit::Loose).then_some(fit);
        }
        let inner = own.peek().is_some();
        match path_fits(path, left) {
            Some(PathFit::File) if inner => Some(NameFit::Loose),
            Some(_) if !inner => Some(fit),
            _ => None,
        }
    }

    /// The part of the name before the names in a top-level key: the package, for languages whose packages are not
    /// part of the path.
    pub fn package(&self, key: &str) -> Option<&str> {
        if self.parts.len() < 2 || !key.contains(self.last.as_str()) {
            return None;
        }
        let (_, names) = keys::plain(key).split_once("::")?;
        let named = names.split("::").count();
        let (package, rest) = self.parts.split_first()?;
        let same = |(wanted, part): (&String, &str)| without_mark(wanted) == without_mark(part);
        (rest.len() == named && rest.iter().zip(names.split("::")).all(same)).then_some(package)
    }
}

/// How completely a path was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathFit {
    /// By the file name with its extension.
    File,
    /// By the file name without its extension, or by folders only.
    Module,
}

fn path_fits(path: &str, wanted: &[String]) -> Option<PathFit> {
    let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
    let folders: Vec<&str> = folders.split('/').filter(|part| !part.is_empty()).collect();
    // Crates and packages leave the folder of their sources out of names.
    let without: Vec<&str> = folders.iter().copied().filter(|part| *part != "src").collect();
    let words: Vec<&str> = file.split('.').collect();
    let ends = |folders: &[&str], taken: usize| {
        let all = folders.iter().chain(&words[..taken]);
        wanted.len() <= folders.len() + taken && wanted.iter().rev().zip(all.rev()).all(|(wanted, own)| wanted == own)
    };
    for taken in (0..=words.len()).rev() {
        if ends(&folders, taken) || ends(&without, taken) {
            return Some(if taken == words.len() { PathFit::File } else { PathFit::Module });
        }
    }
    None
}

/// The parts of a name. A `#` after a separator is part of a private name; any other `#` separates two names.
fn parts(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for c in text.chars() {
        let fresh = all.last().is_none_or(String::is_empty);
        match (c, all.last_mut()) {
            ('#', Some(part)) if fresh => part.push('#'),
            ('.' | '#' | '/' | '\\' | ':', _) => all.push(String::new()),
            (c, Some(part)) => part.push(c),
            (_, None) => {}
        }
    }
    all.retain(|part| !without_mark(part).is_empty() && !HERE.contains(&part.as_str()));
    all
}

/// A private name without its `#`.
fn without_mark(name: &str) -> &str {
    name.strip_prefix('#').unwrap_or(name)
}

/// A name without what surrounds it in code: `(*Context).JSON` is `Context.JSON`, `Vec<T>::push` is `Vec::push`.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '<' | '[' => depth += 1,
            '>' | ']' => depth = depth.saturating_sub(1),
            '(' | ')' | '*' | '&' => {}
            _ if depth > 0 => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> ParsedName<'_> {
        ParsedName::read(text, |word| {
            ["file", "function", "method", "service"].contains(&word.to_ascii_lowercase().as_str())
        })
    }

    #[test]
    fn prefixes_name_the_type() {
        for (text, type_name, rest) in [
            ("login", None, "login"),
            (" `login()` ", None, "login"),
            ("Method:Session::close", Some("Method"), "Session::close"),
            ("file::src/a.ts", Some("file"), "src/a.ts"),
            ("symbol::src/a.ts::f", Some("symbol"), "src/a.ts::f"),
            ("file:/src/a.ts", Some("file"), "/src/a.ts"),
            ("function:src/a.ts:f", Some("function"), "src/a.ts:f"),
            ("Session::close", None, "Session::close"),
            ("context.go:JSON", None, "context.go:JSON"),
            ("service::auth", None, "service::auth"),
        ] {
            let read = form(text);
            assert_eq!((read.type_name, read.rest), (type_name, rest), "{text}");
        }
    }

    #[test]
    fn files_with_lines_are_parsed() {
        for (text, expected) in [
            ("context.go:1255", Some(("context.go", 1255))),
            ("src/a.ts:12:7", Some(("src/a.ts", 12))),
            ("File:src/a.ts:12", Some(("src/a.ts", 12))),
            ("src/a.ts#L12", Some(("src/a.ts", 12))),
            ("src/a.ts#L12-L20", Some(("src/a.ts", 12))),
            ("decision:42", None),
            ("context.go:JSON", None),
            ("a.ts::f", None),
        ] {
            assert_eq!(form(text).line(), expected, "{text}");
        }
    }

    #[test]
    fn keys_match_every_spelling_of_a_name() {
        use NameFit::{Loose, Parts, Suffix};
        for (text, key, fit) in [
            ("m", "src/a.py::C::m", Some(Suffix)),
            ("C::m", "src/a.py::C::m", Some(Suffix)),
            ("a.py::C::m", "src/a.py::C::m", Some(Suffix)),
            ("a.py", "src/a.py", Some(Suffix)),
            ("C.m", "src/a.py::C::m", Some(Parts)),
            ("C#m", "src/a.py::C::m", Some(Parts)),
            ("a.C.m", "src/a.py::C::m", Some(Parts)),
            ("src.a.C.m", "src/a.py::C::m", Some(Parts)),
            ("pkg.a.C.m", "src/pkg/a.py::C::m", Some(Parts)),
            ("pkg.C.m", "src/pkg/a.py::C::m", Some(Parts)),
            ("store.Get", "store/get.go::Get", Some(Parts)),
            ("(*Context).JSON", "context.go::Context::JSON", Some(Parts)),
            ("(*gin.Context).JSON", "gin/context.go::Context::JSON", Some(Parts)),
            ("context.go:JSON", "context.go::Context::JSON", Some(Loose)),
            ("context.go:Context.JSON", "context.go::Context::JSON", Some(Parts)),
            ("context.go::JSON", "context.go::Context::JSON", Some(Loose)),
            ("axum::routing::Router::new", "axum/src/routing/mod.rs::Router::new", Some(Parts)),
            ("crate::routing::Router", "axum/src/routing/mod.rs::Router", Some(Parts)),
            ("Vec<T>::push", "src/vec.rs::Vec::push", Some(Parts)),
            ("Hono.#dispatch", "src/hono.ts::Hono::#dispatch", Some(Parts)),
            ("Hono.#dispatch", "src/hono.ts::Hono::dispatch", Some(Loose)),
            ("Hono#dispatch", "src/hono.ts::Hono::#dispatch", Some(Loose)),
            ("Hono.dispatch", "src/hono.ts::Hono::#dispatch", Some(Loose)),
            ("#dispatch", "src/hono.ts::Hono::#dispatch", Some(Suffix)),
            ("dispatch", "src/hono.ts::Hono::#dispatch", Some(Loose)),
            ("hono-base.Hono", "src/hono-base.ts::Hono", Some(Parts)),
            ("A.m", "src/A.java::A::m~(int)", Some(Parts)),
            ("context.JSON", "context.go::Context::JSON", None),
            ("b.C.m", "src/a.py::C::m", None),
            ("C", "src/a.py::C::m", None),
            ("a.C", "src/a.py::C::m", None),
            ("CC.m", "src/a.py::C::m", None),
            ("", "src/a.py::C::m", None),
        ] {
            assert_eq!(NamePattern::new(text).code(key), fit, "{text} {key}");
        }
        for (text, key, fits) in [
            ("42", "decision:42", true),
            ("auth", "service::auth", true),
            ("a.ts", "note/a.ts", false),
            ("2", "decision:42", false),
        ] {
            assert_eq!(NamePattern::new(text).other(key).is_some(), fits, "{text} {key}");
        }
        assert_eq!(NamePattern::new("gin.Context.JSON").package("context.go::Context::JSON"), Some("gin"));
        assert_eq!(NamePattern::new("Context.JSON").package("context.go::Context::JSON"), None);
    }
}
