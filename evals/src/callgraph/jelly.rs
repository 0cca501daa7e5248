//! Jelly's dynamic call graphs: the calls that Node.js was observed to make, compared with ours.
//!
//! Functions are compared with functions, as in Jelly's `compare.ts`. Functions are identified by their position: the
//! same range, else the same end, else the same beginning, else within a statement of ours that is on the same lines
//! (`x = function () {};`); what spans a whole file is the module. A constructor has the position of its class, written
//! or not; a class without one has the constructor of its nearest base that has one. Field initialisers and static
//! blocks, which Node.js runs as functions, count for the function or module around the class.
//!
//! The true edges are `fun2fun` without the functions of `ignore`. Found are our calls out of functions that ran,
//! without those the recorder (`dyn.ts`) does not record: `super(…)`, getters, setters and conversions, and callbacks
//! run by the engine (`xs.map(f)`, `promise.then(f)`, timers). A call in a branch that was not taken counts as wrong
//! though it may be right, so precision is a lower bound.

use super::{Analysis, Case, Fault};
use lukasa_code::facts::{CallKind, CallSite, DefId, ROOT, SourceExpr, SourceSpan, flag};
use lukasa_code::resolve::program::is_manifest;
use lukasa_code::resolve::{DefRef, LinkTarget};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub fn cases(data: &Path, least: f64) -> Result<Vec<Case>, Fault> {
    let mut cases = Vec::new();
    for path in graphs(data)? {
        let folder = path.parent().unwrap_or(data);
        let Some(graph) = Graph::read(&std::fs::read_to_string(&path)?) else { continue };
        let Some(files) = sources(folder, &graph.files) else { continue };
        let name = path.strip_prefix(data)?.with_extension("").display().to_string();
        cases.push(compare(name, &graph, &files, least));
    }
    Ok(cases)
}

/// All `.json` files except those of packages.
fn graphs(data: &Path) -> Result<Vec<PathBuf>, Fault> {
    let mut out = Vec::new();
    let mut queue = vec![data.to_path_buf()];
    while let Some(at) = queue.pop() {
        for entry in std::fs::read_dir(&at)? {
            let path = entry?.path();
            if path.is_dir() {
                if !path.ends_with("node_modules") && !path.ends_with(".git") {
                    queue.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "json") {
                out.push(path);
            }
        }
    }
    Ok(out)
}

/// The files of a graph and the manifests in their folders; nothing if one of the files is not there.
fn sources(folder: &Path, files: &[String]) -> Option<Vec<(String, String)>> {
    let mut out = BTreeMap::new();
    for file in files {
        let path = folder.join(file);
        out.insert(file.clone(), std::fs::read_to_string(&path).ok()?);
        let beside = file.rsplit_once('/').map_or("", |(above, _)| above);
        for entry in std::fs::read_dir(path.parent()?).ok()?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_manifest(&name)
                && let Ok(text) = std::fs::read_to_string(entry.path())
            {
                out.insert(if beside.is_empty() { name } else { format!("{beside}/{name}") }, text);
            }
        }
    }
    Some(out.into_iter().collect())
}

/// A place as Jelly writes it: lines and columns from 1, columns in UTF-16 units, the end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SourceRange {
    file: usize,
    start: (u32, u32),
    end: (u32, u32),
}

impl SourceRange {
    fn read(text: &str) -> Option<SourceRange> {
        let mut parts = text.split(':');
        let file = parts.next()?.parse().ok()?;
        let mut next = || parts.next()?.parse::<u32>().ok();
        Some(SourceRange { file, start: (next()?, next()?), end: (next()?, next()?) })
    }
}

#[derive(Debug, PartialEq)]
struct Graph {
    files: Vec<String>,
    functions: BTreeMap<u64, SourceRange>,
    edges: Vec<(u64, u64)>,
}

impl Graph {
    /// Nothing if the text is JSON of another kind.
    fn read(text: &str) -> Option<Graph> {
        let json: Value = serde_json::from_str(text).ok()?;
        let files =
            json.get("files")?.as_array()?.iter().map(|f| Some(f.as_str()?.to_owned())).collect::<Option<_>>()?;
        let ignored: BTreeSet<(usize, (u32, u32))> = json
            .get("ignore")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|v| SourceRange::read(v.as_str()?))
            .map(|place| (place.file, place.start))
            .collect();
        let places: Vec<(u64, &Value)> = match json.get("functions")? {
            Value::Array(list) => list.iter().enumerate().map(|(i, v)| (i as u64, v)).collect(),
            Value::Object(map) => map.iter().filter_map(|(k, v)| Some((k.parse().ok()?, v))).collect(),
            _ => return None,
        };
        let functions = places
            .into_iter()
            .filter_map(|(id, v)| Some((id, SourceRange::read(v.as_str()?)?)))
            .filter(|(_, place)| !ignored.contains(&(place.file, place.start)))
            .collect();
        let edges = json.get("fun2fun")?.as_array()?.iter();
        let edges = edges.filter_map(|e| Some((e.get(0)?.as_u64()?, e.get(1)?.as_u64()?))).collect();
        Some(Graph { files, functions, edges })
    }
}

fn compare(name: String, graph: &Graph, files: &[(String, String)], least: f64) -> Case {
    let analysis = Analysis::of(files);
    let matched = matches(&analysis, graph, files);
    let show = |gid: DefRef| {
        let file = analysis.program.file(gid.file);
        let def = file.facts.def(gid.def);
        match gid.def {
            ROOT => format!("{}:module", file.path),
            _ => format!("{}:{}:{} {}", file.path, def.span.line, def.span.column + 1, file.facts.name(def.name)),
        }
    };
    let label = |id: &u64| match (matched.get(id), graph.functions.get(id)) {
        (Some(gid), _) => Some(show(*gid)),
        (None, Some(p)) => {
            let file = graph.files.get(p.file).map_or("?", String::as_str);
            Some(format!("{file}:{}:{}-{}:{} (no function of ours)", p.start.0, p.start.1, p.end.0, p.end.1))
        }
        (None, None) => None,
    };
    let truth = graph.edges.iter().filter_map(|(from, to)| Some((label(from)?, label(to)?))).collect();
    let ran: BTreeSet<DefRef> = matched.values().copied().collect();
    let mut found = BTreeSet::new();
    for (owner, to, call) in analysis.calls(least) {
        let from = construct(&analysis, analysis.caller(owner));
        let class = analysis.kind(to).type_like();
        if ran.contains(&from) && (class || analysis.runs(to)) && is_seen(&analysis, owner, to, call) {
            found.insert((show(from), show(construct(&analysis, to))));
        }
    }
    Case { name, truth, found }
}

/// Functions of the JavaScript engine that call their arguments.
const CALL_BACK: &[&str] = &[
    "forEach",
    "map",
    "filter",
    "reduce",
    "reduceRight",
    "some",
    "every",
    "find",
    "findIndex",
    "findLast",
    "flatMap",
    "sort",
    "from",
    "then",
    "catch",
    "finally",
    "Promise",
    "setTimeout",
    "setInterval",
    "setImmediate",
    "nextTick",
    "queueMicrotask",
    "replace",
    "replaceAll",
    "defineProperty",
    "on",
    "once",
    "addListener",
    "Proxy",
];

/// Whether the recorder records such calls.
fn is_seen(analysis: &Analysis, owner: DefRef, to: DefRef, call: &CallSite) -> bool {
    let facts = &analysis.program.file(owner.file).facts;
    let name = match facts.expr(call.callee) {
        SourceExpr::Super => return false,
        SourceExpr::Member(_, name) | SourceExpr::Free(name) => facts.name(name),
        _ => "",
    };
    let target = analysis.program.file(to.file).facts.name(analysis.program.def(to).name);
    call.how != CallKind::Implicit && (!CALL_BACK.contains(&name) || target == name)
}

/// For a class, the constructor that runs when it is instantiated; other definitions unchanged.
fn construct(analysis: &Analysis, gid: DefRef) -> DefRef {
    let mut at = gid;
    for _ in 0..16 {
        if !analysis.kind(at).type_like() {
            return at;
        }
        let facts = &analysis.program.file(at.file).facts;
        let own =
            facts.defs.iter_ids().find(|(_, d)| d.parent == at.def && d.is(flag::CONSTRUCTOR) && !d.is(flag::DECLARED));
        if let Some((own, _)) = own {
            return DefRef { file: at.file, def: own };
        }
        let mut bases = analysis.links[at.file].bases.iter();
        match bases.find(|b| b.class == at.def).map(|b| b.to) {
            Some(LinkTarget::Def(base)) => at = base,
            _ => return gid,
        }
    }
    gid
}

/// Our definition of each function of the graph.
fn matches(analysis: &Analysis, graph: &Graph, files: &[(String, String)]) -> BTreeMap<u64, DefRef> {
    let texts: BTreeMap<&str, &str> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut out = BTreeMap::new();
    for (index, path) in graph.files.iter().enumerate() {
        let Some(file) = analysis.program.find_file(path) else { continue };
        let text = texts.get(path.as_str()).copied().unwrap_or("");
        let lines: Vec<&str> = text.split('\n').collect();
        let defs: Vec<(DefId, SourceRange)> = analysis
            .program
            .file(file)
            .facts
            .defs
            .iter_ids()
            .skip(1)
            .filter(|(_, d)| (d.kind.callable() && !d.is(flag::CONSTRUCTOR)) || d.kind.type_like())
            .map(|(id, d)| (id, place(index, d.span, &lines)))
            .collect();
        let mut open: BTreeMap<u64, SourceRange> =
            graph.functions.iter().filter(|(_, p)| p.file == index).map(|(id, p)| (*id, *p)).collect();
        let mut free: BTreeSet<DefId> = defs.iter().map(|(id, _)| *id).collect();
        let same: [fn(&SourceRange, &SourceRange) -> bool; 4] = [
            |ours, want| ours == want,
            |ours, want| ours.end == want.end,
            |ours, want| ours.start == want.start,
            // For `x = function () {};` our definition is the whole statement.
            |ours, want| {
                (ours.start.0, ours.end.0) == (want.start.0, want.end.0)
                    && ours.start <= want.start
                    && want.end <= ours.end
            },
        ];
        for (pass, fits) in same.iter().enumerate() {
            // Inner ones first: of several that end at the same place, the one with the nearest beginning is meant.
            let mut ids: Vec<u64> = open.keys().copied().collect();
            ids.sort_by_key(|id| std::cmp::Reverse(open[id].start));
            for id in ids {
                let want = open[&id];
                if pass > 0 && is_module(&want, &lines) {
                    out.insert(id, DefRef { file, def: ROOT });
                    open.remove(&id);
                    continue;
                }
                let best = defs
                    .iter()
                    .filter(|(def, p)| free.contains(def) && fits(p, &want))
                    // The recorded end of a field's initialiser may be the end of its class.
                    .filter(|(def, p)| {
                        !analysis.kind(DefRef { file, def: *def }).type_like() || p.start.0 == want.start.0
                    })
                    .min_by_key(|(_, p)| (p.start.0.abs_diff(want.start.0), p.start.1.abs_diff(want.start.1)));
                if let Some((def, _)) = best {
                    free.remove(def);
                    open.remove(&id);
                    out.insert(id, construct(analysis, DefRef { file, def: *def }));
                }
            }
        }
        for (id, want) in open {
            let around = defs.iter().filter(|(_, p)| p.start <= want.start && want.end <= p.end);
            if let Some((def, _)) = around.max_by_key(|(_, p)| p.start)
                && analysis.kind(DefRef { file, def: *def }).type_like()
            {
                out.insert(id, analysis.caller(DefRef { file, def: *def }));
            }
        }
    }
    out
}

/// From the first character to the end of the text, where the recorder puts it.
fn is_module(place: &SourceRange, lines: &[&str]) -> bool {
    place.start == (1, 1) && place.end.0 as usize >= lines.len()
}

fn place(file: usize, span: SourceSpan, lines: &[&str]) -> SourceRange {
    let column = |line: u32, bytes: u32| {
        let before = lines.get(line as usize - 1).and_then(|text| text.get(..bytes as usize));
        before.map_or(bytes, |text| text.encode_utf16().count() as u32) + 1
    };
    SourceRange {
        file,
        start: (span.line, column(span.line, span.column)),
        end: (span.end_line, column(span.end_line, span.end_column)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_of_a_graph() {
        let list = r#"{"files":["a.js"],"functions":["0:1:1:4:1","0:1:1:1:9","0:2:1:2:9"],"calls":[],
            "fun2fun":[[0,1],[0,2]],"call2fun":[],"ignore":["0:2:1:2:9"]}"#;
        let graph = Graph::read(list).unwrap();
        assert_eq!(graph.edges, [(0, 1), (0, 2)]);
        assert_eq!(graph.functions.keys().copied().collect::<Vec<_>>(), [0, 1]);
        let map = r#"{"files":["a.js"],"functions":{"7":"0:1:1:4:1","9":"0:?:?:?:?"},"fun2fun":[[7,9]]}"#;
        let graph = Graph::read(map).unwrap();
        assert_eq!(graph.functions[&7], SourceRange { file: 0, start: (1, 1), end: (4, 1) });
        assert_eq!(graph.functions.len(), 1);
        assert_eq!(Graph::read(r#"{"name":"a package"}"#), None);
    }

    #[test]
    fn a_class_is_its_constructor_and_columns_are_utf16() {
        let text = "class A {\n    constructor() {}\n    x = g();\n}\nfunction g() {}\n/* ü */ function f() { g(); }\nnew A();\nf();\n";
        let graph = Graph::read(
            r#"{"files":["a.js"],"functions":["0:1:1:9:1","0:1:1:4:2","0:6:9:6:30","0:5:1:5:16","0:3:5:4:2"],
                "fun2fun":[[0,1],[0,2],[2,3],[4,3]]}"#,
        )
        .unwrap();
        let case = compare("t".into(), &graph, &[("a.js".into(), text.into())], 0.5);
        let edge = |from: &str, to: &str| (format!("a.js:{from}"), format!("a.js:{to}"));
        let all = BTreeSet::from([
            edge("module", "2:5 constructor"),
            edge("module", "6:10 f"),
            edge("6:10 f", "5:1 g"),
            edge("module", "5:1 g"),
        ]);
        assert_eq!(case.truth, all);
        assert_eq!(case.found, all);
    }
}
