//! Small programs with the relationships that they have and those that they must not have, grouped by what they are about.

use super::case_text::{Case, ExpectedStatement, Statement, cases};
use crate::retrieval::Project;
use crate::{Fault, print};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

/// The groups of cases: name and text, in the form of `case_text.rs`.
const GROUPS: [(&str, &str); 8] = [
    ("go build tags", include_str!("../../cases/calls/go-build-tags.txt")),
    ("production to test", include_str!("../../cases/calls/production-to-test.txt")),
    ("contextual typing", include_str!("../../cases/calls/contextual-typing.txt")),
    ("casts", include_str!("../../cases/calls/casts.txt")),
    ("rust macros", include_str!("../../cases/calls/rust-macros.txt")),
    ("nested functions", include_str!("../../cases/calls/nested-functions.txt")),
    ("external bases", include_str!("../../cases/calls/external-bases.txt")),
    ("unreferenced", include_str!("../../cases/calls/unreferenced.txt")),
];
/// Calls with less confidence do not count as found, as in the suite `callgraph`.
const CONFIDENCE: f64 = 0.5;

/// Prints the figures of each group, and what differs from the expectation.
pub fn run(as_json: bool) -> Result<(), Fault> {
    for (name, text) in GROUPS {
        let outcome = check(name, text)?;
        outcome.differences.iter().for_each(|line| eprintln!("{line}"));
        print(&outcome.figures.line(name), as_json);
    }
    Ok(())
}

/// How many expectations of a group hold.
#[derive(Debug, Default, PartialEq, Eq)]
struct GroupFigures {
    cases: usize,
    /// What should be there, and how much of it is.
    expected: usize,
    found: usize,
    /// What must not be there, and how much of it is.
    excluded: usize,
    wrong: usize,
}

impl GroupFigures {
    fn line(&self, name: &str) -> Value {
        json!({"suite": "calls", "cases_about": name, "cases": self.cases, "expected": self.expected, "found": self.found,
            "excluded": self.excluded, "wrong": self.wrong})
    }
}

/// The figures of a group, and every expectation that does not hold. `surprises` has those that are not listed as gaps, and
/// gaps that are closed.
#[derive(Default)]
struct GroupOutcome {
    figures: GroupFigures,
    differences: Vec<String>,
    surprises: Vec<String>,
}

fn check(name: &str, text: &str) -> Result<GroupOutcome, Fault> {
    let mut outcome = GroupOutcome::default();
    let figures = &mut outcome.figures;
    for case in cases(text).map_err(|e| format!("{name}: {e}"))? {
        figures.cases += 1;
        let program = IndexedCase::new(&case)?;
        for ExpectedStatement { line, statement, is_gap } in &case.statements {
            let holds = program.holds(statement).map_err(|e| format!("{name}: {}: {line}: {e}", case.title))?;
            match statement.excludes() {
                false => (figures.expected, figures.found) = (figures.expected + 1, figures.found + usize::from(holds)),
                true => (figures.excluded, figures.wrong) = (figures.excluded + 1, figures.wrong + usize::from(!holds)),
            }
            let states = if holds { "holds" } else { "does not hold" };
            let found = format!("{name}: {}: {states}: {line}", case.title);
            if holds == *is_gap {
                outcome.surprises.push(found.clone());
            }
            if !holds {
                outcome.differences.push(found);
            }
        }
    }
    Ok(outcome)
}

/// A relationship of the index.
struct Edge {
    from: String,
    type_name: String,
    to: String,
    confidence: f64,
}

/// The program of a case in an index of its own.
struct IndexedCase {
    project: Project,
    keys: BTreeSet<String>,
    edges: Vec<Edge>,
}

impl IndexedCase {
    fn new(case: &Case) -> Result<IndexedCase, Fault> {
        let project = Project::new()?;
        let root = project.folder().join("tree");
        for (path, text) in &case.files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&root))?;
            fs::write(path, text)?;
        }
        project.call("index_directory", json!({"path": root, "branch": "main"}))?;
        let rows = |query: &str| -> Result<Vec<Value>, Fault> {
            let answer = project.call("cypher", json!({"query": query, "limit": 1_000}))?;
            Ok(answer["rows"].as_array().cloned().unwrap_or_default())
        };
        let text = |row: &Value, column: usize| row[column].as_str().unwrap_or_default().to_owned();
        let keys = rows("MATCH (n) RETURN n.key")?.iter().map(|row| text(row, 0)).collect();
        let edges = rows("MATCH (a)-[r]->(b) RETURN a.key, type(r), b.key, r.confidence")?;
        let edges = edges.iter().map(|row| Edge {
            from: text(row, 0),
            type_name: text(row, 1),
            to: text(row, 2),
            confidence: row[3].as_f64().unwrap_or(1.0),
        });
        Ok(IndexedCase { edges: edges.collect(), keys, project })
    }

    /// Whether a statement holds. A symbol of the program that the index does not have is an error: nothing is said of it.
    fn holds(&self, statement: &Statement) -> Result<bool, Fault> {
        Ok(match statement {
            Statement::Related { from, type_name, to } => {
                self.known(from)?;
                let is_it = |e: &Edge| e.from == *from && e.to == *to && e.type_name == *type_name;
                self.edges.iter().any(|e| is_it(e) && e.confidence >= CONFIDENCE)
            }
            Statement::NotCalled { from, to } => {
                self.known(from)?;
                self.known(to)?;
                !self.edges.iter().any(|e| e.from == *from && e.to == *to && e.type_name == "CALLS")
            }
            Statement::NotRelated { from, to } => {
                self.known(from)?;
                self.known(to)?;
                !self.edges.iter().any(|e| e.from == *from && e.to == *to)
            }
            Statement::Unresolved { name, path, line } => {
                let query = format!("MATCH (f:File {{key: '{path}'}}) RETURN f.unresolved_sites");
                let answer = self.project.call("cypher", json!({"query": query}))?;
                let sites = answer["rows"][0][0].as_array().cloned().unwrap_or_default();
                sites.iter().any(|site| site.as_str() == Some(&format!("{name}:{line}")))
            }
            Statement::Callees { of, callees } => {
                let answer = self.project.call("get_callees", json!({"ref": of, "min_confidence": CONFIDENCE}))?;
                let listed = answer["callees"].as_array().cloned().unwrap_or_default();
                let listed: BTreeSet<&str> = listed.iter().filter_map(|callee| callee["key"].as_str()).collect();
                listed == callees.iter().map(String::as_str).collect()
            }
            Statement::Summary { operation, of, words } => {
                let answer = self.project.call(operation, json!({"ref": of}))?;
                answer["summary"].as_str().unwrap_or_default().contains(words)
            }
            Statement::Listed { symbol, is_listed } => {
                self.known(symbol)?;
                self.unreferenced(symbol)?.is_some() == *is_listed
            }
            Statement::ListedWith { symbol, words } => {
                self.unreferenced(symbol)?.is_some_and(|detail| detail.contains(words))
            }
            Statement::Unreferenced { words, mentions } => {
                self.project.call("find_pattern", json!({"pattern": "unreferenced"}))?.to_string().contains(words)
                    == *mentions
            }
        })
    }

    fn known(&self, key: &str) -> Result<(), Fault> {
        match self.keys.contains(key) {
            true => Ok(()),
            false => Err(format!("the index has no `{key}`; it has {:?}", self.keys).into()),
        }
    }

    /// What the pattern `unreferenced` reports about a symbol, if it lists it.
    fn unreferenced(&self, symbol: &str) -> Result<Option<String>, Fault> {
        let answer = self.project.call("find_pattern", json!({"pattern": "unreferenced", "limit": 1_000}))?;
        let items = answer["groups"][0]["items"].as_array().cloned().unwrap_or_default();
        let is_it =
            |item: &&Value| item["ref"].as_str().and_then(|name| name.split_once(':')).map(|r| r.1) == Some(symbol);
        Ok(items.iter().find(is_it).map(|item| item["detail"].as_str().unwrap_or_default().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_hold_except_for_known_gaps() {
        for (name, text) in GROUPS {
            let GroupOutcome { figures, surprises, .. } = check(name, text).unwrap();
            assert_eq!(surprises, [""; 0]);
            assert!(figures.cases > 1 && figures.expected + figures.excluded > figures.cases, "{name}: {figures:?}");
        }
    }

    #[test]
    fn what_does_not_hold_is_counted() {
        let text = "== a\n//- a.py\ndef f():\n    g()\ndef g(): pass\n//- expect\na.py::f calls a.py::g\ngap: a.py::g calls a.py::f\n\
                    a.py::f does not call a.py::g\na.py::g does not call a.py::f\nunreferenced lists a.py::g\n";
        let GroupOutcome { figures, differences, surprises } = check("a", text).unwrap();
        assert_eq!(figures, GroupFigures { cases: 1, expected: 3, found: 1, excluded: 2, wrong: 1 });
        assert_eq!((differences.len(), surprises.len()), (3, 2), "{differences:?}");
        let closed = check("a", &text.replace("a.py::f calls", "gap: a.py::f calls")).unwrap();
        assert_eq!(closed.surprises[0], "a: a: holds: a.py::f calls a.py::g");
        let unknown = check("a", &text.replace("does not call a.py::f", "does not call a.py::h")).err().unwrap();
        assert!(unknown.to_string().contains("no `a.py::h`"), "{unknown}");
    }
}
