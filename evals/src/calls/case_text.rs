//! The text of cases: `== title`, files after `//- path`, and statements after `//- expect`. A statement after `gap: ` is
//! right but known not to hold yet.

/// A small program, and what holds of it.
#[derive(Debug, Default)]
pub struct Case {
    pub title: String,
    /// Path and text of each file.
    pub files: Vec<(String, String)>,
    pub statements: Vec<ExpectedStatement>,
}

/// A statement with the line that it was read from.
#[derive(Debug)]
pub struct ExpectedStatement {
    pub line: String,
    pub statement: Statement,
    /// It is known not to hold yet.
    pub is_gap: bool,
}

/// Something that holds of a program. Symbols are named by their keys.
#[derive(Debug)]
pub enum Statement {
    /// There is a relationship of this type, at a confidence that counts.
    Related { from: String, type_name: &'static str, to: String },
    /// There is no call, at any confidence.
    NotCalled { from: String, to: String },
    /// There is no relationship of any type.
    NotRelated { from: String, to: String },
    /// A call of this name in this line is counted as unresolved.
    Unresolved { name: String, path: String, line: u32 },
    /// These are all the callees.
    Callees { of: String, callees: Vec<String> },
    /// The summary of an operation about a symbol contains these words.
    Summary { operation: &'static str, of: String, words: String },
    /// The pattern `unreferenced` lists a symbol, or does not.
    Listed { symbol: String, is_listed: bool },
    /// The pattern `unreferenced` lists a symbol with these words.
    ListedWith { symbol: String, words: String },
    /// The answer of the pattern `unreferenced` contains these words, or does not.
    Unreferenced { words: String, mentions: bool },
}

impl Statement {
    /// Whether it states that something is not there.
    pub fn excludes(&self) -> bool {
        matches!(
            self,
            Statement::NotCalled { .. }
                | Statement::NotRelated { .. }
                | Statement::Listed { is_listed: false, .. }
                | Statement::Unreferenced { mentions: false, .. }
        )
    }

    /// Reads one line; `None` if it is none of the forms.
    fn read(line: &str) -> Option<Statement> {
        let pair = |between: &str| line.split_once(between).map(|(from, to)| (from.to_owned(), to.to_owned()));
        let quoted = |words: &str| words.strip_prefix('"')?.strip_suffix('"').map(str::to_owned);
        if let Some(rest) = line.strip_prefix("unreferenced ") {
            if let Some(words) = rest.strip_prefix("mentions ") {
                return Some(Statement::Unreferenced { words: quoted(words)?, mentions: true });
            }
            if let Some(words) = rest.strip_prefix("does not mention ") {
                return Some(Statement::Unreferenced { words: quoted(words)?, mentions: false });
            }
            if let Some(symbol) = rest.strip_prefix("lists ") {
                return Some(Statement::Listed { symbol: symbol.to_owned(), is_listed: true });
            }
            if let Some(symbol) = rest.strip_prefix("does not list ") {
                return Some(Statement::Listed { symbol: symbol.to_owned(), is_listed: false });
            }
            let (symbol, words) = rest.split_once(" mentions ")?;
            return Some(Statement::ListedWith { symbol: symbol.to_owned(), words: quoted(words)? });
        }
        if let Some(rest) = line.strip_prefix("unresolved ") {
            let (name, place) = rest.split_once(" at ")?;
            let (path, line) = place.rsplit_once(':')?;
            return Some(Statement::Unresolved { name: name.into(), path: path.into(), line: line.parse().ok()? });
        }
        if let Some((of, callees)) = line.strip_prefix("callees of ").and_then(|rest| rest.split_once(" are ")) {
            let callees = callees.split(" and ").map(str::to_owned).collect();
            return Some(Statement::Callees { of: of.to_owned(), callees });
        }
        for (prefix, operation) in [("callers of ", "get_callers"), ("impact of ", "impact")] {
            if let Some((of, words)) = line.strip_prefix(prefix).and_then(|rest| rest.split_once(" mention ")) {
                return Some(Statement::Summary { operation, of: of.to_owned(), words: quoted(words)? });
            }
        }
        if let Some((from, to)) = pair(" does not call ") {
            return Some(Statement::NotCalled { from, to });
        }
        if let Some((from, to)) = pair(" is not related to ") {
            return Some(Statement::NotRelated { from, to });
        }
        for (word, type_name) in [(" calls ", "CALLS"), (" extends ", "EXTENDS"), (" implements ", "IMPLEMENTS")] {
            if let Some((from, to)) = pair(word) {
                return Some(Statement::Related { from, type_name, to });
            }
        }
        None
    }
}

/// The cases of a group. Lines before the first case are about the group.
pub fn cases(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = vec![];
    let mut expects = false;
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("== ") {
            cases.push(Case { title: title.to_owned(), ..Case::default() });
            expects = false;
            continue;
        }
        let Some(case) = cases.last_mut() else { continue };
        if line == "//- expect" {
            expects = true;
        } else if let Some(path) = line.strip_prefix("//- ") {
            case.files.push((path.to_owned(), String::new()));
        } else if !expects {
            let (_, text) = case.files.last_mut().ok_or_else(|| format!("`{line}` is in no file"))?;
            *text += line;
            text.push('\n');
        } else if !line.is_empty() {
            let (text, is_gap) = line.strip_prefix("gap: ").map_or((line, false), |text| (text, true));
            let statement = Statement::read(text).ok_or_else(|| format!("`{line}` is no statement"))?;
            case.statements.push(ExpectedStatement { line: text.to_owned(), statement, is_gap });
        }
    }
    match cases.iter().find(|case| case.statements.is_empty()) {
        Some(case) => Err(format!("nothing is expected of `{}`", case.title)),
        None => Ok(cases),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_statements_are_read() {
        let read = cases("# about\n\n== one\n//- a.go\npackage a\n\n//- b.go\n//- expect\na.go::f calls b.go::g\n\n== two\n//- c.py\n//- expect\ngap: unresolved f at c.py:3\n").unwrap();
        assert_eq!(read[0].files, [("a.go".into(), "package a\n\n".into()), ("b.go".into(), String::new())]);
        assert_eq!(
            format!("{:?}", read[0].statements[0].statement),
            r#"Related { from: "a.go::f", type_name: "CALLS", to: "b.go::g" }"#
        );
        assert_eq!((&*read[1].title, read[1].statements[0].is_gap), ("two", true));
        for (wrong, why) in [
            ("== one\ntext\n", "in no file"),
            ("== one\n", "nothing is expected"),
            ("== one\n//- expect\nhm\n", "no statement"),
        ] {
            assert!(cases(wrong).unwrap_err().contains(why), "{wrong}");
        }
    }
}
