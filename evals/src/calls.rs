//! The `calls` suite: relationships of a repository that no correct call graph has, and small programs with the
//! relationships that they have.

mod case_text;
pub mod cases;

use crate::print;
use lukasa_code::ids::IdVec;
use lukasa_code::resolve::{DefRef, FileId, FileLinks, LinkTarget, Program, resolve};
use lukasa_code::{LanguageId, parse};
use lukasa_engine::features::code::files;
use rayon::prelude::*;
use serde_json::json;
use std::collections::HashSet;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

type Fault = Box<dyn Error>;

pub fn run(repo: &Path, verbose: bool, as_json: bool) -> Result<(), Fault> {
    let repo = repo.canonicalize()?;
    let mut program = read(&repo)?;
    let links = resolve(&mut program);
    let mut figures = Figures::new(&program, &links, verbose);
    for file in program.ids() {
        figures.add(file, &links[file]);
    }
    let name = repo.file_name().map(|name| name.to_string_lossy().into_owned());
    print(&figures.line(name.unwrap_or_default()), as_json);
    Ok(())
}

/// All sources that an index would read.
fn read(repo: &Path) -> Result<Program, Fault> {
    let listed = files::list(repo, &Default::default())?.files;
    let texts: Vec<(String, String)> = listed
        .into_par_iter()
        .filter(|file| file.stamp.size <= files::SOURCE_BYTES)
        .filter_map(|file| Some((std::fs::read_to_string(repo.join(&file.path)).ok()?, file.path)))
        .map(|(text, path)| (path, text))
        .collect();
    let mut program = Program::default();
    for (path, text) in &texts {
        if lukasa_code::resolve::program::is_manifest(path) {
            program.manifests.insert(path.clone(), text.clone());
        }
    }
    let sources = texts
        .into_par_iter()
        .filter_map(|(path, text)| {
            let language = LanguageId::of(&path, &text)?;
            let facts = Arc::new(parse(&path, &text, language));
            Some((path, facts))
        })
        .collect();
    program.set_all(sources);
    Ok(program)
}

struct Figures<'p> {
    program: &'p Program,
    links: &'p IdVec<FileId, FileLinks>,
    verbose: bool,
    /// Names that files of the default build define, by folder.
    usual: HashSet<(&'p str, &'p str)>,
    calls: u32,
    unresolved: u32,
    edges: usize,
    calls_to_tests: usize,
    references_to_tests: usize,
    imports_of_tests: usize,
    bases_in_tests: usize,
    to_other_builds: usize,
    bases_written: usize,
    bases_inside: usize,
    bases_external: usize,
}

impl<'p> Figures<'p> {
    fn new(program: &'p Program, links: &'p IdVec<FileId, FileLinks>, verbose: bool) -> Figures<'p> {
        let mut usual = HashSet::new();
        for id in program.ids().filter(|id| in_usual_build(program, *id)) {
            let file = program.file(id);
            usual.extend(file.facts.defs.iter().map(|def| (&*file.folder, file.facts.name(def.name))));
        }
        Figures {
            program,
            links,
            verbose,
            usual,
            calls: 0,
            unresolved: 0,
            edges: 0,
            calls_to_tests: 0,
            references_to_tests: 0,
            imports_of_tests: 0,
            bases_in_tests: 0,
            to_other_builds: 0,
            bases_written: 0,
            bases_inside: 0,
            bases_external: 0,
        }
    }

    fn add(&mut self, file: FileId, links: &FileLinks) {
        let facts = &self.program.file(file).facts;
        self.calls += links.counts.calls;
        self.unresolved += links.counts.unresolved;
        self.bases_written += facts.defs.iter().map(|def| def.bases.len()).sum::<usize>();
        for link in &links.calls {
            let LinkTarget::Def(to) = link.to else { continue };
            let call = &facts.calls[link.call];
            let from = DefRef { file, def: call.owner };
            self.edges += 1;
            self.calls_to_tests += self.leads_to_test("calls", from, to, call.line);
            self.to_other_builds += self.leads_to_other_build(from, to, call.line);
        }
        for used in &links.uses {
            let from = DefRef { file, def: used.owner };
            self.references_to_tests += self.leads_to_test("references", from, used.to, used.line);
        }
        for link in &links.imports {
            let import = &facts.imports[link.import];
            if let LinkTarget::Def(to) = link.to {
                let from = DefRef { file, def: import.owner };
                self.imports_of_tests += self.leads_to_test("imports", from, to, import.line);
            }
        }
        for base in &links.bases {
            match base.to {
                LinkTarget::Def(to) => {
                    self.bases_inside += 1;
                    self.bases_in_tests +=
                        self.leads_to_test("is based on", DefRef { file, def: base.class }, to, base.line);
                }
                LinkTarget::External(_) => self.bases_external += 1,
            }
        }
    }

    /// 1 for a relationship from production code to a test.
    fn leads_to_test(&self, what: &str, from: DefRef, to: DefRef, line: u32) -> usize {
        let is_test = |gid: DefRef| self.links[gid.file].is_test || self.program.file(gid.file).is_in_test(gid.def);
        self.count(!is_test(from) && is_test(to), what, from, to, line)
    }

    /// 1 for a call in the default build of a definition that only other builds have, if the default build defines that
    /// name.
    fn leads_to_other_build(&self, from: DefRef, to: DefRef, line: u32) -> usize {
        let file = self.program.file(to.file);
        let name = file.facts.name(file.facts.def(to.def).name);
        let wrong = in_usual_build(self.program, from.file)
            && !in_usual_build(self.program, to.file)
            && self.usual.contains(&(&*file.folder, name));
        self.count(wrong, "calls in another build", from, to, line)
    }

    fn count(&self, wrong: bool, what: &str, from: DefRef, to: DefRef, line: u32) -> usize {
        if wrong && self.verbose {
            let (here, there) = (self.program.file(from.file), self.program.file(to.file));
            let name = there.facts.path_of(to.def).join("::");
            eprintln!("{}:{line} {what} {}::{name}", here.path, there.path);
        }
        usize::from(wrong)
    }

    fn line(&self, repo: String) -> serde_json::Value {
        let to_tests = self.calls_to_tests + self.references_to_tests + self.imports_of_tests + self.bases_in_tests;
        json!({"suite": "calls", "repo": repo, "files": self.program.ids().count(), "calls": self.calls,
            "unresolved": self.unresolved, "call_edges": self.edges, "production_to_test_edges": to_tests,
            "calls_to_tests": self.calls_to_tests, "references_to_tests": self.references_to_tests,
            "imports_of_tests": self.imports_of_tests, "bases_in_tests": self.bases_in_tests,
            "edges_into_other_builds": self.to_other_builds, "bases_written": self.bases_written,
            "bases_inside": self.bases_inside, "bases_external": self.bases_external})
    }
}

fn in_usual_build(program: &Program, file: FileId) -> bool {
    program.file(file).is_in_usual_build()
}
