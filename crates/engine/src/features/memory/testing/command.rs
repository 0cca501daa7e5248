//! The command that runs a project's tests, derived from the files in its root.

use lukasa_model::{Error, ErrorCode, Result};
use serde_json::Value;
use std::path::Path;

/// Maximum number of tests that can be selected.
const TESTS: usize = 500;

/// A test program and its arguments, which are passed one by one and never to a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCommand {
    pub program: String,
    pub arguments: Vec<String>,
}

impl TestCommand {
    /// As a person would type it, for the record.
    pub fn shown(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        words
            .map(|word| if word.contains(' ') { format!("'{word}'") } else { word.clone() })
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Returns the command of a project, for these tests or for all.
pub fn detect(root: &Path, tests: &[String]) -> Result<TestCommand> {
    check(tests)?;
    let has = |name: &str| root.join(name).exists();
    let all = |program: &str, first: &[&str]| TestCommand {
        program: program.into(),
        arguments: first.iter().map(|word| (*word).to_owned()).chain(tests.iter().cloned()).collect(),
    };
    if has("Cargo.toml") {
        // Nextest accepts names directly; cargo test accepts several only after two dashes.
        let nextest = has(".config/nextest.toml");
        return Ok(match (nextest, tests.is_empty()) {
            (true, _) => all("cargo", &["nextest", "run", "--no-fail-fast"]),
            (false, true) => all("cargo", &["test", "--no-fail-fast"]),
            (false, false) => all("cargo", &["test", "--no-fail-fast", "--"]),
        });
    }
    if has("package.json") && npm_has_test(root) {
        return Ok(if tests.is_empty() { all("npm", &["test"]) } else { all("npm", &["test", "--"]) });
    }
    if has("go.mod") {
        let mut command =
            TestCommand { program: "go".into(), arguments: vec!["test".into(), "-v".into(), "./...".into()] };
        if !tests.is_empty() {
            let names: Vec<String> = tests.iter().map(|test| regex::escape(test)).collect();
            command.arguments.extend(["-run".into(), format!("^({})$", names.join("|"))]);
        }
        return Ok(command);
    }
    if ["pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini", "conftest.py", "setup.py"].iter().any(|name| has(name))
    {
        return Ok(all("python3", &["-m", "pytest", "-rA", "-q"]));
    }
    Err(Error::not_found(
        ErrorCode::NoTestCommand,
        format!("no file in `{}` shows how its tests are run", root.display()),
    )
    .hint("give `command` as a list of words, for example [\"make\", \"check\"]"))
}

/// The given command, followed by the selected tests.
pub fn given(command: &[String], tests: &[String]) -> Result<TestCommand> {
    check(tests)?;
    let [program, rest @ ..] = command else {
        return Err(Error::invalid(ErrorCode::InvalidCommand, "`command` is empty"));
    };
    if program.is_empty() || command.iter().any(|word| word.contains('\0')) {
        return Err(Error::invalid(ErrorCode::InvalidCommand, "`command` is not a program with its arguments")
            .hint("give it word by word, for example [\"make\", \"check\"]"));
    }
    Ok(TestCommand { program: program.clone(), arguments: rest.iter().chain(tests).cloned().collect() })
}

/// Names of tests must not be parsed as options.
fn check(tests: &[String]) -> Result<()> {
    if tests.len() > TESTS {
        return Err(Error::too_large(
            ErrorCode::TooManyTests,
            format!("{} tests, {TESTS} can be selected", tests.len()),
        )
        .hint("leave out `tests` to run all"));
    }
    match tests.iter().find(|test| test.is_empty() || test.starts_with('-') || test.chars().any(char::is_control)) {
        Some(test) => Err(Error::invalid(ErrorCode::InvalidTest, format!("`{test}` is not the name of a test"))),
        None => Ok(()),
    }
}

fn npm_has_test(root: &Path) -> bool {
    let text = std::fs::read_to_string(root.join("package.json")).unwrap_or_default();
    let package: Value = serde_json::from_str(&text).unwrap_or_default();
    package.pointer("/scripts/test").is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_the_root_determine_the_command() {
        for (files, tests, expected) in [
            (&[("Cargo.toml", "")][..], &[][..], Some("cargo test --no-fail-fast")),
            (&[("Cargo.toml", "")], &["a::b"], Some("cargo test --no-fail-fast -- a::b")),
            (&[("Cargo.toml", ""), (".config/nextest.toml", "")], &["a"], Some("cargo nextest run --no-fail-fast a")),
            (&[("package.json", r#"{"scripts": {"test": "jest"}}"#)], &["x"], Some("npm test -- x")),
            (&[("package.json", "{}")], &[], None),
            (&[("go.mod", "")], &["TestA", "Test.B"], Some(r"go test -v ./... -run ^(TestA|Test\.B)$")),
            (&[("pyproject.toml", "")], &["t/a.py::test_x"], Some("python3 -m pytest -rA -q t/a.py::test_x")),
            (&[], &[], None),
        ] {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            let tests: Vec<String> = tests.iter().map(|test| (*test).to_owned()).collect();
            let found = detect(folder.path(), &tests).ok().map(|command| command.shown());
            assert_eq!(found.as_deref(), expected, "{files:?}");
        }
    }

    #[test]
    fn names_are_never_options_and_commands_never_empty() {
        for test in ["--config=evil", "-x", "", "a\nb"] {
            let error = given(&["make".into()], &[test.to_owned()]).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidTest, "{test:?}");
        }
        assert_eq!(given(&[], &[]).unwrap_err().code, ErrorCode::InvalidCommand);
        let odd = given(&["make".into(), "; rm -rf".into()], &["$(id)".into()]).unwrap();
        assert_eq!(odd.arguments, ["; rm -rf", "$(id)"], "handed over as they are");
    }
}
