//! The `callgraph` suite: call edges compared with public micro-benchmarks. Each case is a small program.

mod gocg;
mod jcg;
mod jelly;
mod pycg;

use crate::print;
use lukasa_code::facts::{CallSite, DefKind, ROOT, flag};
use lukasa_code::ids::IdVec;
use lukasa_code::resolve::{DefRef, FileId, FileLinks, LinkTarget, Program, resolve};
use lukasa_code::{LanguageId, parse};
use serde_json::json;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

type Fault = Box<dyn Error>;

/// Caller and callee, named as the suite names them.
type Edge = (String, String);

/// One case: the true edges, and the edges that were found.
struct Case {
    name: String,
    truth: BTreeSet<Edge>,
    found: BTreeSet<Edge>,
}

pub fn run(suite: &str, data: &Path, least: f64, verbose: bool, json_only: bool) -> Result<(), Fault> {
    let mut cases = match suite {
        "pycg" => pycg::cases(data, least)?,
        "jcg" => jcg::cases(data, least)?,
        "jcg-python" => jcg::listed(data, "python", least)?,
        "jcg-js" => jcg::listed(data, "js", least)?,
        "jelly" => jelly::cases(data, least)?,
        "gocg" => gocg::cases(data, least)?,
        other => {
            return Err(format!("no suite `{other}`; there are pycg, jcg, jcg-python, jcg-js, jelly and gocg").into());
        }
    };
    if cases.is_empty() {
        return Err(format!("no cases of {suite} under {}", data.display()).into());
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    let (mut truth, mut found, mut right, mut exact) = (0, 0, 0, 0);
    for case in &cases {
        truth += case.truth.len();
        found += case.found.len();
        right += case.truth.intersection(&case.found).count();
        exact += usize::from(case.truth == case.found);
        if verbose && case.truth != case.found {
            eprintln!("{}", case.name);
            for (from, to) in case.found.difference(&case.truth) {
                eprintln!("  wrong   {from} -> {to}");
            }
            for (from, to) in case.truth.difference(&case.found) {
                eprintln!("  missing {from} -> {to}");
            }
        }
    }
    let share = |part: usize, whole: usize| {
        if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 1_000.0).round() / 1_000.0 }
    };
    print(
        &json!({"suite": "callgraph", "of": suite, "min_confidence": least, "cases": cases.len(), "truth_edges": truth,
            "found_edges": found, "true_positives": right, "precision": share(right, found),
            "recall": share(right, truth), "exact_cases": exact}),
        json_only,
    );
    Ok(())
}

/// The resolved program of a case.
struct Analysis {
    program: Program,
    links: IdVec<FileId, FileLinks>,
}

impl Analysis {
    fn of(files: &[(String, String)]) -> Analysis {
        let mut program = Program::default();
        for (path, text) in files {
            if lukasa_code::resolve::program::is_manifest(path) {
                program.manifests.insert(path.clone(), text.clone());
            }
            if let Some(language) = LanguageId::of(path, text) {
                let mut facts = parse(path, text, language);
                // A case is one program, including files with names of tests: calls into a test count.
                facts.defs.iter_mut().for_each(|def| def.flags &= !flag::TEST);
                program.set(path, Arc::new(facts));
            }
        }
        let links = resolve(&mut program);
        Analysis { program, links }
    }

    /// Calls of functions that have a body: caller, callee, line of the call.
    fn edges(&self, least: f64) -> Vec<(DefRef, DefRef, u32)> {
        let mut out = Vec::new();
        for file in self.program.ids() {
            let facts = &self.program.file(file).facts;
            let links = &self.links[file];
            for link in &links.calls {
                let call = &facts.calls[link.call];
                let LinkTarget::Def(to) = link.to else { continue };
                if link.how.confidence() >= least && self.runs(to) {
                    out.push((DefRef { file, def: call.owner }, to, call.line));
                }
            }
            for used in &links.uses {
                if used.runs && used.how.confidence() >= least {
                    out.push((DefRef { file, def: used.owner }, used.to, used.line));
                }
            }
        }
        out
    }

    /// All calls of definitions of the program, with or without a body: the definition that contains the call, the
    /// called definition, the call.
    fn calls(&self, least: f64) -> Vec<(DefRef, DefRef, &CallSite)> {
        let mut out = Vec::new();
        for file in self.program.ids() {
            let facts = &self.program.file(file).facts;
            for link in &self.links[file].calls {
                let call = &facts.calls[link.call];
                if let LinkTarget::Def(to) = link.to
                    && link.how.confidence() >= least
                {
                    out.push((DefRef { file, def: call.owner }, to, call));
                }
            }
        }
        out
    }

    fn runs(&self, gid: DefRef) -> bool {
        let def = self.program.def(gid);
        def.kind.callable() && !def.is(flag::ABSTRACT) && !def.is(flag::DECLARED)
    }

    /// The nearest callable or file around a definition.
    fn caller(&self, gid: DefRef) -> DefRef {
        let facts = &self.program.file(gid.file).facts;
        let mut at = gid.def;
        while at != ROOT && !facts.def(at).kind.callable() {
            at = facts.def(at).parent;
        }
        DefRef { file: gid.file, def: at }
    }

    fn kind(&self, gid: DefRef) -> DefKind {
        self.program.def(gid).kind
    }
}

/// The line of a position, from 1.
fn line_at(text: &str, at: usize) -> u32 {
    text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() as u32 + 1
}

/// All files below a folder, as (path with `/`, text); files that are not text are left out.
fn read_all(folder: &Path) -> Result<Vec<(String, String)>, Fault> {
    let mut out = Vec::new();
    let mut queue = vec![folder.to_path_buf()];
    while let Some(at) = queue.pop() {
        for entry in std::fs::read_dir(&at)? {
            let path = entry?.path();
            if path.is_dir() {
                queue.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let name = path.strip_prefix(folder)?.to_string_lossy().replace('\\', "/");
                out.push((name, text));
            }
        }
    }
    out.sort();
    Ok(out)
}

/// Folders that contain a file of this name.
fn folders_with(root: &Path, name: &str) -> Result<Vec<std::path::PathBuf>, Fault> {
    let mut out = Vec::new();
    let mut queue = vec![root.to_path_buf()];
    while let Some(at) = queue.pop() {
        if at.join(name).is_file() {
            out.push(at.clone());
        }
        for entry in std::fs::read_dir(&at)? {
            let path = entry?.path();
            if path.is_dir() {
                queue.push(path);
            }
        }
    }
    out.sort();
    Ok(out)
}
