//! Small programs for the tests of the resolver, and their links as text.

use crate::languages::LanguageId;
use crate::resolve::{FileId, FileLinks, LinkTarget, Program, resolve};
use expect_test::Expect;
use std::fmt::Write;
use std::sync::Arc;

/// The files of a source: each begins after a line `//- path`. Indentation that all lines share is dropped.
pub(crate) fn files(source: &str) -> Vec<(String, String)> {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let common = source.lines().filter(|line| !line.trim().is_empty()).map(indentation).min().unwrap_or(0);
    let mut files: Vec<(String, String)> = Vec::new();
    for line in source.lines() {
        let line = line.get(common..).unwrap_or("");
        match (line.strip_prefix("//- "), files.last_mut()) {
            (Some(path), _) => files.push((path.to_owned(), String::new())),
            (None, Some((_, text))) => *text += &format!("{line}\n"),
            (None, None) => assert_eq!(line, "", "the first line of a source is `//- path`"),
        }
    }
    files
}

/// Adds a file to a program, or replaces it. A file of no known language is a manifest.
pub(crate) fn put(program: &mut Program, path: &str, text: &str) {
    match LanguageId::of(path, text) {
        Some(language) => drop(program.set(path, Arc::new(crate::parse(path, text, language)))),
        None => drop(program.manifests.insert(path.to_owned(), text.to_owned())),
    }
}

pub(crate) fn program(source: &str) -> Program {
    let mut program = Program::default();
    files(source).iter().for_each(|(path, text)| put(&mut program, path, text));
    program
}

/// A definition or a name outside the program: `path Class.method:line`, without the path within the file `from`.
pub(crate) fn name(program: &Program, from: FileId, to: LinkTarget) -> String {
    let to = match to {
        LinkTarget::Def(to) => to,
        LinkTarget::External(path) => return format!("outside {}", program.external_text(path)),
    };
    let file = program.file(to.file);
    let path = if to.file == from { String::new() } else { format!("{} ", file.path) };
    let (inside, line) = (file.facts.path_of(to.def).join("."), program.def(to).span.line);
    format!("{path}{inside}:{line}")
}

/// The calls, bases and uses of a program, one per line, with derivation and confidence. Calls that no definition of
/// the program was found for are listed as unresolved, if the program has one of that name.
pub(crate) fn shown(program: &Program, links: impl Fn(FileId) -> FileLinks) -> String {
    let mut out = String::new();
    for id in program.ids() {
        let (file, links) = (program.file(id), links(id));
        let at = |line: u32| format!("{}:{line}", file.path);
        for link in &links.bases {
            let class = file.facts.path_of(link.class).join(".");
            let how = if link.structural { "has the methods of" } else { "is a" };
            let _ = writeln!(out, "{} {class} {how} {}", at(link.line), name(program, id, link.to));
        }
        for link in &links.calls {
            let (line, how) = (file.facts.calls[link.call].line, link.how);
            let to = name(program, id, link.to);
            let _ = writeln!(out, "{} calls {to} ({} {})", at(line), how.derivation(), how.confidence());
        }
        for link in &links.uses {
            let (to, how) = (name(program, id, LinkTarget::Def(link.to)), link.how);
            let verb = if link.runs { "runs" } else { "uses" };
            let _ = writeln!(out, "{} {verb} {to} ({} {})", at(link.line), how.derivation(), how.confidence());
        }
        for (name, line) in &links.unresolved_names {
            let _ = writeln!(out, "{} unresolved {name}", at(*line));
        }
    }
    out
}

/// Checks all links of a program.
#[track_caller]
pub(crate) fn check(source: &str, expected: Expect) {
    let mut program = program(source);
    let links = resolve(&mut program);
    expected.assert_eq(&shown(&program, |id| links[id].clone()));
}
