//! `lukasa setup`: registers Lukasa in the settings of each agent.

mod agents;
mod difference;
mod json_text;
mod plan;
mod toml_text;

pub use agents::{AgentEnvironment, SupportedAgent};
pub use plan::{SetupAction, SetupStep, installed, plan};

use super::{print, render};
use agents::AGENTS;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

/// The command `setup`.
pub fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    Command::new("setup")
        .about("Register Lukasa in the settings of the agents on this machine")
        .long_about(
            "Register Lukasa in the settings of the agents on this machine.\n\nFinds the agents that are installed and adds one entry, \
             `lukasa`, to the settings of each: the project's own file where the agent has one, else yours. Every change \
             is shown and confirmed first; every other byte of a file stays as it is. Without a terminal nothing is \
             written unless --yes is given.",
        )
        .after_help("Examples:\n  lukasa setup\n  lukasa setup --dry-run\n  lukasa setup --agent claude --yes\n  lukasa setup --remove")
        .arg(flag("dry-run", "Show what would change, and write nothing").conflicts_with("yes"))
        .arg(flag("yes", "Write without asking").short('y'))
        .arg(flag("remove", "Remove the entries"))
        .arg(
            Arg::new("agent")
                .long("agent")
                .value_name("NAME")
                .action(ArgAction::Append)
                .value_parser(PossibleValuesParser::new(AGENTS.map(|agent| agent.name)))
                .help("Only this agent, installed or not; repeatable"),
        )
}

#[derive(Serialize)]
struct Answer {
    summary: String,
    files: Vec<SetupStep>,
}

/// Plans the changes, shows them, and writes those that the user agrees to.
pub fn run(matches: &ArgMatches, as_json: bool) -> Result<()> {
    let removing = matches.get_flag("remove");
    let around = surroundings()?;
    let chosen: Vec<&'static SupportedAgent> = match matches.get_many::<String>("agent") {
        Some(names) => AGENTS.iter().filter(|agent| names.clone().any(|name| name == agent.name)).collect(),
        None => installed(&around),
    };
    let mut steps = plan(&chosen, &around, removing)?;
    let may_ask = !as_json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let (yes, dry_run) = (matches.get_flag("yes"), matches.get_flag("dry-run"));
    let mut failed = Vec::new();
    for step in &mut steps {
        if !as_json {
            print(&described(step))?;
        }
        let agreed = step.changes() && !dry_run && (yes || (may_ask && agrees(step)?));
        if agreed && let Err(e) = plan::write(step) {
            if !as_json {
                print(&format!("  not written: {}\n", e.message))?;
            }
            step.note = Some(e.message.clone());
            failed.push(e);
        }
    }
    let open = steps.iter().filter(|step| step.changes() && !step.written).count();
    let summary = match (steps.len(), open) {
        (0, _) => format!("no agent was found; name one with --agent: {}", AGENTS.map(|agent| agent.name).join(", ")),
        (_, 0) => outcome(&steps),
        _ if dry_run => format!("{}; nothing was written (--dry-run)", outcome(&steps)),
        _ if !yes && !may_ask => {
            format!("{}; nothing was written: no terminal to ask on, and no --yes", outcome(&steps))
        }
        _ => outcome(&steps),
    };
    let broken = steps.iter().filter(|step| step.action == SetupAction::Broken).count() + failed.len();
    if as_json {
        let answer = Answer { summary, files: steps };
        let text = serde_json::to_string(&answer).map_err(|e| Error::internal(e.to_string()))?;
        print(&format!("{text}\n"))?;
    } else {
        print(&format!("{summary}\n"))?;
    }
    if broken > 0 {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            ErrorCode::SetupIncomplete,
            format!("{} left alone", files(broken)),
        )
        .hint("mend them and run `lukasa setup` again, or write the entry by hand: docs/setup.md shows it"));
    }
    Ok(())
}

/// The folders and programs of this process's environment.
pub fn surroundings() -> Result<AgentEnvironment> {
    let fault =
        |what: &str, e: std::io::Error| Error::new(ErrorKind::Unavailable, ErrorCode::NoFolder, format!("{what}: {e}"));
    let here = std::env::current_dir().map_err(|e| fault("no current folder", e))?;
    let binary = std::env::current_exe().map_err(|e| fault("the path of this program is unknown", e))?;
    Ok(AgentEnvironment::new(&|name| std::env::var_os(name), &here, binary))
}

fn described(step: &SetupStep) -> String {
    let what = match step.action {
        SetupAction::Add => "add",
        SetupAction::Update => "change",
        SetupAction::Remove => "remove",
        SetupAction::Right | SetupAction::Elsewhere | SetupAction::Remote => "already set up",
        SetupAction::Absent => "nothing to remove",
        SetupAction::Broken => "left alone",
    };
    let mut text = format!("{}: {what}: {}\n", step.titles(), render::safe(&step.file.display().to_string()));
    if let Some(note) = &step.note {
        let _ = writeln!(text, "  {}", render::safe(note));
    }
    for line in step.diff.iter().flat_map(|diff| diff.lines()) {
        // Tabs are harmless to a terminal.
        let _ = writeln!(text, "  {}", line.split('\t').map(render::safe).collect::<Vec<_>>().join("\t"));
    }
    text
}

fn agrees(step: &SetupStep) -> Result<bool> {
    let fault =
        |e: std::io::Error| Error::new(ErrorKind::Unavailable, ErrorCode::NoTerminal, format!("no answer: {e}"));
    print(&format!("write {}? [y/N] ", render::safe(&step.file.display().to_string())))?;
    std::io::stdout().flush().map_err(fault)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(fault)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// `2 written, 1 already set up`
fn outcome(steps: &[SetupStep]) -> String {
    let count = |of: &dyn Fn(&SetupStep) -> bool| steps.iter().filter(|step| of(step)).count();
    let parts = [
        (count(&|s| s.written), "written"),
        (count(&|s| s.changes() && !s.written), "to change"),
        (
            count(&|s| matches!(s.action, SetupAction::Right | SetupAction::Elsewhere | SetupAction::Remote)),
            "already set up",
        ),
        (count(&|s| s.action == SetupAction::Absent), "without an entry"),
        (count(&|s| s.action == SetupAction::Broken), "left alone"),
    ];
    let parts: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    format!("{}: {}", files(steps.len()), parts.join(", "))
}

fn files(number: usize) -> String {
    if number == 1 { "1 file".into() } else { format!("{number} files") }
}
