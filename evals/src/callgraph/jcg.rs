//! JCG's test cases: sections of Markdown files that contain a program and the targets of some of its calls.
//!
//! Java (`jcg`): the true edges are the targets of `@DirectCall` and `@IndirectCall` that the case defines itself, for
//! each annotated method, line and name; lines are those of a block without its first, which names the file. Found for
//! a direct call are all our edges out of that method on that line under that name. For an indirect one, as in JCG's
//! matcher, the annotated targets (prohibited ones too) that our edges lead to over any number of calls, and every
//! method of that name called directly on that line.
//!
//! Python and JavaScript (`jcg-python`, `jcg-js`): the true edges are `directLinks` within the case, and
//! `indirectLinks`, which any function may call (`*`). Listed calls of a builtin count for the caller of the builtin.
//! The lists are partial, so found are only our edges to listed callees, and those of listed callers to others of the
//! same name. A line that is one too high or too low, as some are, means the function of that name next to it.

use super::{Analysis, Case, Edge, Fault, line_at, read_all};
use lukasa_code::facts::{CallKind, CallSite, DefId, DefKind, FileFacts, ROOT, SourceExpr, flag};
use lukasa_code::resolve::DefRef;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

pub fn cases(data: &Path, least: f64) -> Result<Vec<Case>, Fault> {
    let mut cases = Vec::new();
    for (name, section) in sections(data, "java")? {
        let files: Vec<(String, String)> = section.blocks.into_iter().filter_map(|b| b.file("java", "//")).collect();
        if !files.is_empty() {
            cases.push(java(name, &files, least));
        }
    }
    Ok(cases)
}

pub fn listed(data: &Path, language: &str, least: f64) -> Result<Vec<Case>, Fault> {
    let comment = if language == "python" { "#" } else { "//" };
    let mut cases = Vec::new();
    for (name, section) in sections(data, language)? {
        let Some(list) = section.blocks.iter().find(|b| b.language == "json") else { continue };
        let links = Links::read(&list.text)?;
        let files: Vec<(String, String)> =
            section.blocks.into_iter().filter_map(|b| b.file(language, comment)).collect();
        if !files.is_empty() {
            cases.push(links.compare(name, &files, least));
        }
    }
    Ok(cases)
}

struct Block {
    language: String,
    text: String,
}

impl Block {
    /// Path and text of a block that begins with its path in a comment.
    fn file(self, language: &str, comment: &str) -> Option<(String, String)> {
        let (first, rest) = self.text.split_once('\n')?;
        let path = first.strip_prefix(comment)?.trim();
        (self.language == language && !path.is_empty()).then(|| (path.to_owned(), rest.to_owned()))
    }
}

#[derive(Default)]
struct Section {
    blocks: Vec<Block>,
}

/// All sections of a checkout, or of a folder of Markdown files, by name.
fn sections(data: &Path, language: &str) -> Result<Vec<(String, Section)>, Fault> {
    let inside = data.join("jcg_testcases/src/main/resources").join(language);
    let folder = if inside.is_dir() { inside } else { data.to_path_buf() };
    let mut out = Vec::new();
    for (path, text) in read_all(&folder)? {
        if let Some(stem) = path.strip_suffix(".md") {
            out.extend(split(&text).into_iter().map(|(name, section)| (format!("{stem}/{name}"), section)));
        }
    }
    Ok(out)
}

fn split(text: &str) -> Vec<(String, Section)> {
    let mut out: Vec<(String, Section)> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let fence = line.trim_end().strip_prefix("```");
        if let (None, Some(name), false) = (fence, line.strip_prefix("## "), open) {
            out.push((name.trim().to_owned(), Section::default()));
            continue;
        }
        let Some((_, section)) = out.last_mut() else { continue };
        match fence {
            Some("") if open => open = false,
            // Prose may begin with code as well.
            Some(language) if !open && ["java", "js", "python", "json"].contains(&language) => {
                open = true;
                section.blocks.push(Block { language: language.to_owned(), text: String::new() });
            }
            _ => {
                if let Some(block) = section.blocks.last_mut().filter(|_| open) {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            }
        }
    }
    out
}

// --- Java ---

#[derive(Debug, Default, PartialEq)]
struct Annotation {
    at: usize,
    direct: bool,
    name: String,
    line: Option<u32>,
    resolved: Vec<String>,
    prohibited: Vec<String>,
}

/// The annotations of a text, each on its own; annotations that only group others are read for their members.
fn annotations(text: &str) -> Vec<Annotation> {
    let mut out = Vec::new();
    for (word, direct) in [("@DirectCall", true), ("@IndirectCall", false)] {
        for (at, _) in text.match_indices(word) {
            let Some(rest) = text[at + word.len()..].trim_start().strip_prefix('(') else { continue };
            let fields = fields(rest);
            let value = |name: &str| fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value);
            let classes = |name: &str| quoted(value(name)).into_iter().map(class_of_descriptor).collect();
            out.push(Annotation {
                at,
                direct,
                name: quoted(value("name")).into_iter().next().unwrap_or_default().to_owned(),
                line: value("line").trim().parse().ok(),
                resolved: classes("resolvedTargets"),
                prohibited: classes("prohibitedTargets"),
            });
        }
    }
    out
}

/// `key = value` pairs up to the closing parenthesis.
fn fields(text: &str) -> Vec<(String, String)> {
    let mut parts = vec![String::new()];
    let (mut depth, mut string) = (0_usize, false);
    for c in text.chars() {
        match c {
            '"' => string = !string,
            '(' | '{' if !string => depth += 1,
            ')' if !string && depth == 0 => break,
            ')' | '}' if !string => depth = depth.saturating_sub(1),
            ',' if !string && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    let pairs = parts.iter().filter_map(|part| part.split_once('='));
    pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
}

fn quoted(text: &str) -> Vec<&str> {
    text.split('"').skip(1).step_by(2).collect()
}

/// `La/b/C;` as `a/b/C`.
fn class_of_descriptor(text: &str) -> String {
    text.strip_prefix('L').and_then(|t| t.strip_suffix(';')).unwrap_or(text).to_owned()
}

fn java(name: String, files: &[(String, String)], least: f64) -> Case {
    let analysis = Analysis::of(files);
    let calls: Vec<(DefRef, DefRef, &CallSite)> = analysis
        .calls(least)
        .into_iter()
        .filter(|(_, to, _)| analysis.runs(*to))
        .map(|(owner, to, call)| (analysis.caller(owner), to, call))
        .collect();
    let defined: BTreeSet<String> = analysis
        .program
        .ids()
        .flat_map(|file| analysis.program.file(file).facts.defs.ids().skip(1).map(move |def| DefRef { file, def }))
        .filter(|gid| analysis.kind(*gid).callable())
        .map(|gid| method(&analysis.program.file(gid.file).facts, gid.def))
        .collect();
    let (mut truth, mut found) = (BTreeSet::new(), BTreeSet::new());
    for (path, text) in files {
        let Some(file) = analysis.program.find_file(path) else { continue };
        let facts = &analysis.program.file(file).facts;
        for note in annotations(text) {
            let at = note.at as u32;
            let around = facts.defs.iter_ids().filter(|(_, d)| d.span.start <= at && at < d.span.end);
            let Some((def, _)) = around.filter(|(_, d)| d.kind.callable()).max_by_key(|(_, d)| d.span.start) else {
                let place = format!("{path}:{} (no method of ours)", line_at(text, note.at));
                truth.extend(note.resolved.iter().map(|class| (place.clone(), format!("{class}.{}", note.name))));
                continue;
            };
            let caller = DefRef { file, def };
            let line = note.line.unwrap_or_default();
            let site = format!("{}:{line} {}", method(facts, caller.def), note.name);
            let target = |class: &String| format!("{class}.{}", note.name);
            for to in note.resolved.iter().map(target).filter(|to| defined.contains(to)) {
                truth.insert((site.clone(), to));
            }
            let mut reached = BTreeSet::new();
            for (_, to, call) in calls.iter().filter(|(from, _, call)| *from == caller && call.line == line) {
                let to = method(&analysis.program.file(to.file).facts, to.def);
                let by_name = if note.direct {
                    called(facts, call) == note.name
                } else {
                    to.ends_with(&format!(".{}", note.name))
                };
                if by_name {
                    reached.insert(to);
                }
            }
            if !note.direct {
                let all = reachable(&calls, caller);
                let all: BTreeSet<String> =
                    all.iter().map(|to| method(&analysis.program.file(to.file).facts, to.def)).collect();
                reached.extend(note.resolved.iter().chain(&note.prohibited).map(target).filter(|to| all.contains(to)));
            }
            found.extend(reached.into_iter().map(|to| (site.clone(), to)));
        }
    }
    Case { name, truth, found }
}

fn reachable(calls: &[(DefRef, DefRef, &CallSite)], from: DefRef) -> BTreeSet<DefRef> {
    let mut seen = BTreeSet::new();
    let mut queue = vec![from];
    while let Some(at) = queue.pop() {
        for (_, to, _) in calls.iter().filter(|(from, _, _)| *from == at) {
            if seen.insert(*to) {
                queue.push(*to);
            }
        }
    }
    seen
}

/// The name by which a call is written.
fn called<'f>(facts: &'f FileFacts, call: &CallSite) -> &'f str {
    match facts.expr(call.callee) {
        _ if call.how == CallKind::New => "<init>",
        SourceExpr::Super | SourceExpr::This => "<init>",
        SourceExpr::Member(_, name) | SourceExpr::Free(name) => facts.name(name),
        SourceExpr::Var(var) => facts.name(facts.vars[var].name),
        _ => "",
    }
}

/// `a/b/Outer$Inner.method`.
fn method(facts: &FileFacts, def: DefId) -> String {
    let entry = facts.def(def);
    let mut classes = Vec::new();
    let mut at = entry.parent;
    while at != ROOT {
        classes.push(facts.name(facts.def(at).name));
        at = facts.def(at).parent;
    }
    classes.reverse();
    let name = if entry.is(flag::CONSTRUCTOR) { "<init>" } else { facts.name(entry.name) };
    let package = facts.package.replace('.', "/");
    let slash = if package.is_empty() { "" } else { "/" };
    format!("{package}{slash}{}.{name}", classes.join("$"))
}

// --- Python and JavaScript ---

const ANYONE: &str = "*";
const GLOBAL: &str = "<global>";

#[derive(Debug, Default, PartialEq)]
struct Links {
    direct: Vec<Edge>,
    indirect: Vec<String>,
}

impl Links {
    fn read(text: &str) -> Result<Links, Fault> {
        let json: Value = serde_json::from_str(&without_trailing_commas(text))?;
        let list = |name: &str| json.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let word = |v: &Value, place: usize| Some(v.get(place)?.as_str()?.trim().to_owned());
        let all: Vec<Edge> = list("directLinks").iter().filter_map(|v| Some((word(v, 0)?, word(v, 1)?))).collect();
        let mut direct = Vec::new();
        for (from, to) in &all {
            if is_native(from) {
                let callers = all.iter().filter(|(_, native)| native == from);
                direct.extend(callers.map(|(caller, _)| (caller.clone(), to.clone())));
            } else if !is_native(to) {
                direct.push((from.clone(), to.clone()));
            }
        }
        let indirect = list("indirectLinks");
        let indirect = indirect.iter().filter_map(|v| v.as_str().map(str::to_owned).or_else(|| word(v, 0))).collect();
        Ok(Links { direct, indirect })
    }

    fn compare(&self, name: String, files: &[(String, String)], least: f64) -> Case {
        let analysis = Analysis::of(files);
        let places = places(&analysis);
        let mut truth: BTreeSet<Edge> =
            self.direct.iter().map(|(from, to)| (placed(from, &places), placed(to, &places))).collect();
        truth.extend(self.indirect.iter().map(|to| (ANYONE.to_owned(), to.clone())));
        let named: BTreeSet<&str> = truth.iter().flat_map(|(from, to)| [from.as_str(), to.as_str()]).collect();
        let callees: BTreeSet<&str> = truth.iter().map(|(_, to)| to.as_str()).collect();
        let about: BTreeSet<(&str, String)> = truth.iter().map(|(from, to)| (from.as_str(), simple(to))).collect();
        let mut found = BTreeSet::new();
        for (from, to, _) in analysis.edges(least) {
            let from = label(&analysis, analysis.caller(from), &named);
            let to = label(&analysis, to, &named);
            if self.indirect.contains(&to) {
                found.insert((ANYONE.to_owned(), to));
            } else if callees.contains(to.as_str()) || about.contains(&(from.as_str(), simple(&to))) {
                found.insert((from, to));
            }
        }
        Case { name, truth, found }
    }
}

/// Removes trailing commas, which some of the lists have.
fn without_trailing_commas(text: &str) -> String {
    let mut out = String::new();
    for (at, c) in text.char_indices() {
        if c != ',' || !text[at + 1..].trim_start().starts_with([']', '}']) {
            out.push(c);
        }
    }
    out
}

fn is_native(name: &str) -> bool {
    name.starts_with("Native.")
}

/// File and name, without class and line.
fn simple(name: &str) -> String {
    if let Some((before, _)) = name.split_once("<anonymous") {
        return format!("{before}<anonymous>");
    }
    let name = name.split(':').next().unwrap_or(name);
    match (name.split_once('.'), name.rsplit_once('.')) {
        (Some((file, _)), Some((_, last))) => format!("{file}.{last}"),
        _ => name.to_owned(),
    }
}

/// Where functions begin: `file.name:line`.
fn places(analysis: &Analysis) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for file in analysis.program.ids() {
        let defs = analysis.program.file(file).facts.defs.ids().skip(1);
        out.extend(defs.map(|def| label(analysis, DefRef { file, def }, &BTreeSet::new())));
    }
    out
}

/// A name with its line corrected, if the line is one too high or too low.
fn placed(name: &str, places: &BTreeSet<String>) -> String {
    if !places.contains(name)
        && let Some((before, line)) = name.trim_end_matches('>').rsplit_once(':')
        && let Ok(line) = line.parse::<u32>()
    {
        let end = if name.ends_with('>') { ">" } else { "" };
        let near = [line.saturating_sub(1), line + 1].map(|line| format!("{before}:{line}{end}"));
        if let Some(near) = near.into_iter().find(|near| places.contains(near)) {
            return near;
        }
    }
    name.to_owned()
}

/// The name of a function as the list writes it: with its line or class where the list has them.
fn label(analysis: &Analysis, gid: DefRef, named: &BTreeSet<&str>) -> String {
    if gid.def == ROOT {
        return GLOBAL.to_owned();
    }
    let file = analysis.program.file(gid.file);
    let stem = file.path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or("");
    let def = file.facts.def(gid.def);
    let (name, line) = (file.facts.name(def.name), def.span.line);
    if def.kind == DefKind::Lambda {
        return format!("{stem}.<anonymous:{line}>");
    }
    let class = file.facts.name(file.facts.def(def.parent).name);
    let full = format!("{stem}.{name}:{line}");
    let others = [full.clone(), format!("{stem}.{class}.{name}"), format!("{stem}.{name}")];
    others.into_iter().find(|n| named.contains(n.as_str())).unwrap_or(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(list: &[(&str, &str)]) -> BTreeSet<Edge> {
        list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn sections_have_their_blocks() {
        let text = "# All\n## One\nSays\n```what``` it is.\n```java\n// p/A.java\npackage p;\n```\n## Two\n```json\n{}\n```\n```python\n# q/b.py\nx = 1\n```\n";
        let mut found = split(text);
        assert_eq!(
            found.iter().map(|(name, s)| (name.as_str(), s.blocks.len())).collect::<Vec<_>>(),
            [("One", 1), ("Two", 2)]
        );
        let block = found.remove(0).1.blocks.remove(0);
        assert_eq!(block.file("java", "//"), Some(("p/A.java".to_owned(), "package p;\n".to_owned())));
    }

    #[test]
    fn annotations_are_read() {
        let text = "@DirectCalls({\n  @DirectCall(name = \"m\", line = 7, resolvedTargets = {\"Lp/A;\", \"Lp/B$C;\"}),\n})\n@IndirectCall(name=\"n\", parameterTypes = {int.class},\n resolvedTargets=\"Lp/A;\", prohibitedTargets = \"Lp/D;\")";
        let found = annotations(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].name.as_str(), found[0].line, found[0].direct), ("m", Some(7), true));
        assert_eq!(found[0].resolved, ["p/A", "p/B$C"]);
        assert_eq!((found[1].name.as_str(), found[1].line, found[1].direct), ("n", None, false));
        assert_eq!(found[1].prohibited, ["p/D"]);
    }

    #[test]
    fn only_annotated_sites_count() {
        let text = "package p;\n\nclass A {\n    static void t() {}\n    static void u() { t(); }\n    @DirectCall(name = \"t\", line = 8, resolvedTargets = \"Lp/A;\")\n    static void main() {\n        t();\n        u();\n    }\n}\n";
        let case = java("x".into(), &[("p/A.java".into(), text.into())], 0.5);
        assert_eq!(case.truth, edges(&[("p/A.main:8 t", "p/A.t")]));
        assert_eq!(case.found, case.truth);
    }

    #[test]
    fn lists_are_compared_by_name_and_line() {
        let list = r#"{"directLinks": [["<global>", "a.f"], ["<global>", "Native.map"], ["Native.map", "a.g:4"]],
            "indirectLinks": ["a.h"]}"#;
        let links = Links::read(list).unwrap();
        let text = "def f():\n    pass\n\ndef g(x):\n    pass\n\ndef h():\n    pass\n\nf()\nmap(g, [1])\nh()\n";
        let case = links.compare("x".into(), &[("d/a.py".into(), text.into())], 0.5);
        assert_eq!(case.truth, edges(&[("<global>", "a.f"), ("<global>", "a.g:4"), ("*", "a.h")]));
        assert_eq!(case.found, case.truth);
    }
}
