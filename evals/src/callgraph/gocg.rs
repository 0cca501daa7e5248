//! The tests of `golang.org/x/tools/go/callgraph`: the calls that its analyses are expected to find in small programs.
//!
//! - `vta`: the files that list calls (`f: site -> g, h`), with all calls of each named function. Found are all our
//!   calls out of those functions. The list names the body of `for range f` as a separate function; its calls count
//!   for the function around it, and only calls of methods with the name of a listed one.
//! - `rta`: the archives with `edge f --kind--> g`. The lists are partial, so found are our calls out of functions
//!   that are callers there, to functions that are callees there or are listed as not reachable. A call through a
//!   function value reaches every function of that type whose address is taken, which is more than what can happen.
//! - `static`: the lists in `static_test.go`, which have no calls of values and interfaces. Found are our calls
//!   between callers and callees of the list.
//! - `cha`: only `iface.go`, `recv.go` and `issue23925.go`, where the possible targets follow from the types alone.
//!   Left out are `func.go` and `generics.go`: every function of a fitting type is a target there, used as a value or
//!   not.
//!
//! Instances of a generic function are the function. Functions that only the compiler adds are removed: `$bound` and
//! `$thunk` by calling what they call, wrappers (`(*T).m` of `(T).m`) by being the method itself. Functions without a
//! name are counted for the function around them, `init` for those of package variables. Functions declared without a
//! body are functions.

use super::{Analysis, Case, Fault};
use lukasa_code::facts::{DefId, DefKind, ExprId, FileFacts, ROOT, SourceExpr, flag};
use lukasa_code::resolve::DefRef;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

type Pair = (String, String);

pub fn cases(data: &Path, least: f64) -> Result<Vec<Case>, Fault> {
    let inside = data.join("go/callgraph");
    let base = if inside.is_dir() { inside } else { data.to_path_buf() };
    let mut cases = Vec::new();
    for path in files_of(&base.join("vta/testdata/src"), "go")? {
        let name = file_name(&path);
        if name.starts_with("callgraph_") || name == "arrays_generics.go" || name == "issue63146.go" {
            let text = std::fs::read_to_string(&path)?;
            let want = ExpectedCalls::vta(&wanted(&text));
            cases.push(compare(format!("vta/{name}"), vec![(name, text)], &want, least));
        }
    }
    for name in ["iface.go", "issue23925.go", "recv.go"] {
        if let Ok(text) = std::fs::read_to_string(base.join("cha/testdata").join(name)) {
            let want = ExpectedCalls::cha(&wanted(&text));
            cases.push(compare(format!("cha/{name}"), vec![(name.to_owned(), text)], &want, least));
        }
    }
    for path in files_of(&base.join("rta/testdata"), "txtar")? {
        let files = archive(&std::fs::read_to_string(&path)?);
        let want = ExpectedCalls::rta(&files.iter().flat_map(|(_, text)| wanted(text)).collect::<Vec<_>>());
        if !want.edges.is_empty() {
            cases.push(compare(format!("rta/{}", file_name(&path)), files, &want, least));
        }
    }
    if let Ok(text) = std::fs::read_to_string(base.join("static/static_test.go")) {
        for (name, input, edges) in static_tests(&text) {
            cases.push(compare(format!("static/{name}"), archive(&input), &ExpectedCalls::listed(edges), least));
        }
    }
    Ok(cases)
}

fn files_of(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, Fault> {
    if !folder.is_dir() {
        return Ok(vec![]);
    }
    let all = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, Fault>>()?;
    Ok(all.into_iter().filter(|path| path.extension().is_some_and(|e| e == ending)).collect())
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The files of a `txtar` archive.
fn archive(text: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("-- ").and_then(|l| l.strip_suffix(" --")) {
            out.push((name.trim().to_owned(), String::new()));
        } else if let Some((_, body)) = out.last_mut() {
            body.push_str(line);
            body.push('\n');
        }
    }
    out
}

/// The lines of the comment that begins with `WANT:`.
fn wanted(text: &str) -> Vec<String> {
    let mut lines = text.lines().skip_while(|line| line.trim() != "// WANT:");
    lines.next();
    lines.map_while(|line| Some(line.strip_prefix("//")?.trim().to_owned())).filter(|line| !line.is_empty()).collect()
}

/// The programs of `static_test.go`, each with its edges: constants, and lists that name them.
fn static_tests(text: &str) -> Vec<(String, String, Vec<Pair>)> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("const ") {
        rest = after;
        let Some((name, after)) = after.split_once(" = `") else { continue };
        let Some((input, _)) = after.split_once('`') else { continue };
        let Some((_, list)) = text.split_once(&format!("{{{name}, []string{{")) else { continue };
        let list = list.split_once('}').map_or(list, |(list, _)| list);
        let lines = list.split('"').skip(1).step_by(2);
        let edges = lines.filter_map(|line| line.split_once(" -> ")).map(|(a, b)| (a.to_owned(), b.to_owned()));
        out.push((name.to_owned(), input.to_owned(), edges.collect()));
    }
    out
}

/// The content of a list, with its names.
#[derive(Debug, Default, PartialEq)]
struct ExpectedCalls {
    edges: Vec<Pair>,
    /// The callees that a partial list covers.
    about: Option<BTreeSet<String>>,
}

impl ExpectedCalls {
    fn vta(lines: &[String]) -> ExpectedCalls {
        let mut edges = Vec::new();
        for line in lines {
            let Some((caller, sites)) = line.split_once(": ") else { continue };
            for callees in sites.split("; ").filter_map(|site| site.rsplit_once(" -> ")).map(|(_, callees)| callees) {
                for callee in without_arguments(callees).split(", ") {
                    // A method that only calls itself is a wrapper with the same name.
                    if !(callee.contains('.') && callee == caller) {
                        edges.push((caller.to_owned(), callee.to_owned()));
                    }
                }
            }
        }
        ExpectedCalls { edges, about: None }
    }

    fn cha(lines: &[String]) -> ExpectedCalls {
        let edges = lines.iter().filter_map(|line| line.split_once(" --> "));
        ExpectedCalls { edges: edges.map(|(a, b)| (a.to_owned(), b.to_owned())).collect(), about: None }
    }

    fn rta(lines: &[String]) -> ExpectedCalls {
        let mut edges = Vec::new();
        let mut denied = BTreeSet::new();
        let mut reached = BTreeSet::new();
        for line in lines {
            let (line, not) = line.strip_prefix('!').map_or((line.as_str(), false), |rest| (rest.trim(), true));
            if let Some(name) = line.strip_prefix("reachable ") {
                if not { &mut denied } else { &mut reached }.insert(plain(name));
            } else if let Some((caller, rest)) = line.strip_prefix("edge ").and_then(|l| l.split_once(" --"))
                && let Some((_, callee)) = rest.split_once("--> ")
            {
                if not {
                    denied.insert(plain(callee));
                } else {
                    edges.push((caller.trim().to_owned(), callee.trim().to_owned()));
                }
            }
        }
        let mut want = ExpectedCalls::listed(edges);
        want.about.get_or_insert_default().extend(denied.difference(&reached).cloned());
        want
    }

    fn listed(edges: Vec<Pair>) -> ExpectedCalls {
        let about = Some(real(&edges).iter().map(|(_, callee)| plain(callee)).collect());
        ExpectedCalls { edges, about }
    }
}

/// The edges without functions that only bind a receiver: their callers call what they call.
fn real(edges: &[Pair]) -> Vec<Pair> {
    let bound = |name: &str| name.ends_with("$bound") || name.ends_with("$thunk");
    let mut out = Vec::new();
    for (caller, callee) in edges.iter().filter(|(caller, _)| !bound(caller)) {
        if !bound(callee) {
            out.push((caller.clone(), callee.clone()));
            continue;
        }
        for (_, behind) in edges.iter().filter(|(from, _)| from == callee) {
            out.push((caller.clone(), behind.clone()));
        }
    }
    // A wrapper that is left calls itself by another name.
    out.retain(|(caller, callee)| caller == callee || plain(caller) != plain(callee));
    out
}

fn without_arguments(name: &str) -> String {
    let mut depth = 0_usize;
    let mut out = String::new();
    for c in name.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// `(*example.com/p.T[int]).m` as `p.T.m`, `f[int]$1` as `f$1`.
fn plain(name: &str) -> String {
    let name = without_arguments(name.trim());
    let name: String = name.chars().filter(|c| !matches!(c, '(' | ')' | '*')).collect();
    let name = name.rsplit('/').next().unwrap_or_default();
    // Functions without a name are named after the function around them, without its receiver.
    if name.contains('$') { name.rsplit('.').next().unwrap_or_default().to_owned() } else { name.to_owned() }
}

fn compare(name: String, files: Vec<(String, String)>, want: &ExpectedCalls, least: f64) -> Case {
    let analysis = Analysis::of(&files);
    let home = files.iter().find(|(_, text)| text.contains("// WANT:")).or(files.last());
    let home = home.map(|(_, text)| package(text)).unwrap_or_default();
    let mut own: BTreeSet<String> = files.iter().flat_map(|(_, text)| declared(text, &home)).collect();
    for file in analysis.program.ids() {
        let facts = &analysis.program.file(file).facts;
        let callable = facts.defs.ids().skip(1).filter(|def| facts.def(*def).kind.callable());
        own.extend(callable.map(|def| label(facts, def, &home)));
    }
    let mut truth = BTreeSet::new();
    let mut callers = BTreeSet::new();
    // Function, and the names of what its loops call.
    let mut loops: BTreeSet<Pair> = BTreeSet::new();
    for (caller, callee) in real(&want.edges) {
        let (mut caller, callee) = (plain(&caller), plain(&callee));
        if !own.contains(&caller)
            && let Some((around, _)) = caller.rsplit_once('$')
        {
            caller = around.to_owned();
            loops.insert((caller.clone(), last(&callee).to_owned()));
        } else {
            callers.insert(caller.clone());
        }
        if own.contains(&caller) && own.contains(&callee) {
            truth.insert((caller, callee));
        }
    }
    let mut found = BTreeSet::new();
    for (owner, to, _) in analysis.calls(least) {
        let to_facts = &analysis.program.file(to.file).facts;
        let def = to_facts.def(to.def);
        if !def.kind.callable() || def.is(flag::ABSTRACT) {
            continue;
        }
        let DefRef { file, def } = analysis.caller(owner);
        let caller = label(&analysis.program.file(file).facts, def, &home);
        let callee = label(to_facts, to.def, &home);
        let spoken = callers.contains(&caller) || loops.contains(&(caller.clone(), last(&callee).to_owned()));
        if spoken && want.about.as_ref().is_none_or(|about| about.contains(&callee)) {
            found.insert((caller, callee));
        }
    }
    Case { name, truth, found }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn package(text: &str) -> String {
    text.lines().find_map(|line| line.strip_prefix("package ")).unwrap_or("").trim().to_owned()
}

/// Functions and methods by the text alone, so that one that our reader misses is still expected.
fn declared(text: &str, home: &str) -> Vec<String> {
    let package = package(text);
    let prefix = if package == home { String::new() } else { format!("{package}.") };
    let mut out = Vec::new();
    for rest in text.lines().filter_map(|line| line.strip_prefix("func ")) {
        let (receiver, rest) = match rest.strip_prefix('(').and_then(|r| r.split_once(") ")) {
            Some((receiver, rest)) => (without_arguments(receiver), rest),
            None => (String::new(), rest),
        };
        let name = rest.split(['(', '[']).next().unwrap_or("").trim();
        match receiver.rsplit([' ', '*']).next().filter(|ty| !ty.is_empty()) {
            Some(ty) => out.push(format!("{prefix}{ty}.{name}")),
            None => out.push(format!("{prefix}{name}")),
        }
    }
    out
}

/// The name of one of our definitions, written as `plain` writes it.
fn label(facts: &FileFacts, def: DefId, home: &str) -> String {
    let prefix = if *facts.package == *home { String::new() } else { format!("{}.", facts.package) };
    let entry = facts.def(def);
    let name = facts.name(entry.name);
    if def == ROOT {
        return format!("{prefix}init");
    }
    if entry.kind != DefKind::Lambda {
        return match entry.receiver.and_then(|ty| type_name(facts, ty)) {
            Some(ty) => format!("{prefix}{ty}.{name}"),
            None => format!("{prefix}{name}"),
        };
    }
    let around = enclosing(facts, def);
    let before = facts.defs.ids().take(def.index()).skip(1);
    let before = before.filter(|d| facts.def(*d).kind == DefKind::Lambda && enclosing(facts, *d) == around).count();
    format!("{}${}", last(&label(facts, around, home)), before + 1)
}

fn enclosing(facts: &FileFacts, def: DefId) -> DefId {
    let mut at = facts.def(def).parent;
    while at != ROOT && !facts.def(at).kind.callable() {
        at = facts.def(at).parent;
    }
    at
}

fn type_name(facts: &FileFacts, ty: ExprId) -> Option<&str> {
    match facts.expr(ty) {
        SourceExpr::Var(var) => Some(facts.name(facts.vars[var].name)),
        SourceExpr::Free(name) => Some(facts.name(name)),
        SourceExpr::Generic(of, _) | SourceExpr::InstanceOf(of) => type_name(facts, of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> BTreeSet<Pair> {
        list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn names_are_made_plain() {
        assert_eq!(plain("(*example.com/p.T[example.com/p.U]).m"), "p.T.m");
        assert_eq!(plain("(T).run$1"), "run$1");
        assert_eq!(plain("make[map[string]int]"), "make");
        assert_eq!(declared("func (t *T[K]) Get() {}\nfunc New[K any]() {}\n", ""), ["T.Get", "New"]);
    }

    #[test]
    fn lists_are_read() {
        let text = "package p\n\n// WANT:\n// F: g[int](t0, 1:int) -> g[int]; invoke t1.M() -> A.M, B.M\n// A.M: (p.A).M(t1) -> A.M\n";
        let all = [("F", "g"), ("F", "A.M"), ("F", "B.M")];
        assert_eq!(ExpectedCalls::vta(&wanted(text)).edges.into_iter().collect::<BTreeSet<_>>(), pairs(&all));
        let text = "// WANT:\n//\n//  edge f --dynamic method call--> (*T).m\n//  edge (*T).m --static method call--> (T).m\n// !reachable g\n// !reachable h\n//  reachable h\n";
        let want = ExpectedCalls::rta(&wanted(text));
        assert_eq!(real(&want.edges).into_iter().collect::<BTreeSet<_>>(), pairs(&[("f", "(*T).m")]));
        assert_eq!(want.about, Some(BTreeSet::from(["T.m".to_owned(), "g".to_owned()])));
        let edges = ExpectedCalls::cha(&["f --> (J).m$bound".to_owned(), "(J).m$bound --> (*D).m".to_owned()]).edges;
        assert_eq!(real(&edges).into_iter().collect::<BTreeSet<_>>(), pairs(&[("f", "(*D).m")]));
    }

    #[test]
    fn programs_of_a_test_file_are_found() {
        let text =
            "const one = `\n-- a/a.go --\npackage a\n`\n\nvar x = []t{{one, []string{\n\"f -> g\",\n\"g -> h\",\n}}}\n";
        let found = static_tests(text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].2.len(), 2);
        assert_eq!(archive(&found[0].1), [("a/a.go".to_owned(), "package a\n".to_owned())]);
    }

    #[test]
    fn loops_and_functions_without_a_name_have_their_place() {
        let text = "package p\n\ntype T struct{}\n\nfunc (t T) M() {}\n\nfunc X(all func(func(T) bool)) {\n\tfor t := range all {\n\t\tt.M()\n\t}\n}\n\nfunc Y() {\n\tf := func() { T{}.M() }\n\tf()\n}\n";
        let list = ["X$1: (T).M(t0) -> T.M", "Y: t0() -> Y$1", "Y$1: (T).M(t0) -> T.M", "Z: all(t0) -> X$1"];
        let want = ExpectedCalls::vta(&list.map(str::to_owned));
        let case = compare("t".into(), vec![("a.go".into(), text.into())], &want, 0.5);
        assert_eq!(case.truth, pairs(&[("X", "T.M"), ("Y", "Y$1"), ("Y$1", "T.M")]));
        assert!(case.found.is_subset(&case.truth));
    }
}
