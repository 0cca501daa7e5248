//! `lukasa doctor`: checks everything Lukasa depends on and reports how to fix what is wrong, without changing
//! anything.

mod environment;
mod store;

use super::print;
use super::render::page::Page;
use super::style::{Colours, Style};
use clap::{ArgMatches, Command};
use lukasa_engine::rendering::TextRole;
use lukasa_model::shown::{safe_json, without_credentials};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use serde::Serialize;
use std::io::Write;

/// The command `doctor`.
pub fn command() -> Command {
    Command::new("doctor").about("Check the store, the index, settings and agents, and report how to fix them").long_about(
        "Check the store, the index, settings and agents, and report how to fix them.\n\nOne line per check: ok, warn or fail, \
         the subject and the finding; below it how to fix it. Nothing is changed. The exit code is 1 when something \
         fails.",
    )
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    /// It works, but not as well as it could.
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct Check {
    what: &'static str,
    state: State,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

impl Check {
    fn ok(what: &'static str, found: impl Into<String>) -> Check {
        Check { what, state: State::Ok, found: found.into(), mend: None }
    }

    fn warn(what: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Check {
        Check { what, state: State::Warn, found: found.into(), mend: Some(mend.into()) }
    }

    fn fail(what: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Check {
        Check { what, state: State::Fail, found: found.into(), mend: Some(mend.into()) }
    }

    /// The hint of the error becomes the suggested fix.
    fn of(what: &'static str, state: State, error: Error) -> Check {
        Check { what, state, found: error.message, mend: error.hint }
    }
}

#[derive(Serialize)]
struct Answer {
    summary: String,
    checks: Vec<Check>,
}

/// Runs all checks and prints them. An error if one fails.
pub fn run(matches: &ArgMatches, as_json: bool) -> Result<()> {
    let mut checks = environment::checks();
    checks.extend(store::checks(matches));
    checks.extend(environment::agents());
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let (warned, failed) = (count(State::Warn), count(State::Fail));
    let summary = format!("{} checks: {} ok, {warned} to look at, {failed} failed", checks.len(), count(State::Ok));
    if as_json {
        let text = serde_json::to_string(&Answer { summary, checks }).map_err(|e| Error::internal(e.to_string()))?;
        print(&format!("{}\n", safe_json(&without_credentials(&text))))?;
    } else {
        let style = Colours::of(matches).stdout();
        super::wrote(shown(&mut std::io::stdout().lock(), style, &checks, &summary))?;
    }
    if failed > 0 {
        return Err(Error::new(ErrorKind::Unavailable, ErrorCode::ChecksFailed, format!("{failed} checks failed")));
    }
    Ok(())
}

/// A line for each check, followed by its fix.
fn shown(out: &mut dyn Write, style: Style, checks: &[Check], summary: &str) -> std::io::Result<()> {
    let mut page = Page::new(out, style);
    for Check { what, state, found, mend } in checks {
        let (word, role) = match state {
            State::Ok => ("ok", TextRole::Good),
            State::Warn => ("warn", TextRole::Warning),
            State::Fail => ("fail", TextRole::Error),
        };
        page.role(role, word);
        writeln!(page, "{:<width$}  {what:<9}  {}", "", without_credentials(found), width = 4 - word.len())?;
        if let Some(mend) = mend {
            writeln!(page, "      mend: {}", without_credentials(mend))?;
        }
    }
    writeln!(page, "{summary}")?;
    page.flush()
}
