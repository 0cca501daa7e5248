//! Decides what to change in which file, before anything is written.

use super::agents::{AgentEnvironment, ENTRY, SettingsFormat, SupportedAgent};
use super::difference::unified;
use super::json_text::{self, EditFault, NewValue};
use super::toml_text;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use serde::Serialize;
use serde_json::Value;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Larger files are not settings that a person wrote.
const LARGEST: u64 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SetupAction {
    Add,
    /// The entry starts another program.
    Update,
    Remove,
    /// The entry is correct.
    Right,
    /// The entry is in another file that the agent reads too.
    Elsewhere,
    /// The entry connects to a running server.
    Remote,
    /// There is nothing to remove.
    Absent,
    /// The file cannot be read or edited.
    Broken,
}

/// One file and all agents that read it.
#[derive(Debug, Serialize)]
pub struct SetupStep {
    pub agents: Vec<&'static str>,
    pub file: PathBuf,
    pub action: SetupAction,
    /// Further explanation, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    pub written: bool,
    #[serde(skip)]
    before: Option<String>,
    /// None: the file is removed.
    #[serde(skip)]
    after: Option<String>,
}

impl SetupStep {
    /// Whether the file has to be written or removed.
    pub fn changes(&self) -> bool {
        self.diff.is_some()
    }

    /// The titles of the agents, separated by commas.
    pub fn titles(&self) -> String {
        let titles: Vec<_> =
            self.agents.iter().filter_map(|name| SupportedAgent::named(name)).map(|a| a.title).collect();
        titles.join(", ")
    }
}

/// The installed agents.
pub fn installed(around: &AgentEnvironment) -> Vec<&'static SupportedAgent> {
    super::agents::AGENTS.iter().filter(|agent| agent.is_installed(around)).collect()
}

/// One step per file, in the order of agents.
pub fn plan(agents: &[&'static SupportedAgent], around: &AgentEnvironment, removing: bool) -> Result<Vec<SetupStep>> {
    let mut steps: Vec<SetupStep> = Vec::new();
    for agent in agents {
        let file = around.path(agent.file).ok_or_else(|| {
            Error::invalid(
                ErrorCode::NoHome,
                format!("{} keeps its settings in the home folder, which is unknown", agent.title),
            )
            .hint("set HOME")
        })?;
        if let Some(step) = steps.iter_mut().find(|step| step.file == file) {
            step.agents.push(agent.name);
        } else {
            steps.push(step(agent, file, around, removing));
        }
    }
    Ok(steps)
}

fn step(agent: &'static SupportedAgent, file: PathBuf, around: &AgentEnvironment, removing: bool) -> SetupStep {
    let mut step = SetupStep {
        agents: vec![agent.name],
        file,
        action: SetupAction::Broken,
        note: None,
        diff: None,
        written: false,
        before: None,
        after: None,
    };
    let decided = read(&step.file).and_then(|before| {
        step.before = before;
        let text = step.before.as_deref().unwrap_or_default();
        if removing { without(agent, &step.file, text) } else { with(agent, text, around) }
    });
    match decided {
        Ok(Decision { action, note, after }) => {
            step.action = action;
            step.note = note;
            if let Some(after) = after {
                step.after = after;
                let shown = step.file.display().to_string();
                let shown = shown.trim_start_matches('/');
                step.diff = Some(unified(shown, step.before.as_deref(), step.after.as_deref()));
            }
        }
        Err(fault) => step.note = Some(fault),
    }
    if step.changes()
        && is_link(&step.file)
        && let Ok(real) = std::fs::canonicalize(&step.file)
    {
        // The user must know which file is changed before agreeing to it.
        let link = format!("it is a link to {}", real.display());
        step.note = Some(step.note.map_or_else(|| link.clone(), |note| format!("{link}; {note}")));
    }
    step
}

struct Decision {
    action: SetupAction,
    note: Option<String>,
    /// The new text, `Some(None)` to remove the file, None for no change.
    after: Option<Option<String>>,
}

impl Decision {
    fn nothing(action: SetupAction, note: Option<String>) -> Decision {
        Decision { action, note, after: None }
    }
}

fn with(agent: &SupportedAgent, text: &str, around: &AgentEnvironment) -> std::result::Result<Decision, EditFault> {
    let (command, path) = (around.command(), [agent.servers, ENTRY]);
    let entry = agent.entry(&command);
    let settings = agent.format.read(text)?;
    // On other machines the program may be at another path.
    let own_path = matches!(agent.file, super::agents::SettingsPath::Project(_)) && Path::new(&command).is_absolute();
    let note =
        own_path.then(|| "the path is one of this machine: with `lukasa` on PATH the file can be shared".to_owned());
    let Some(there) = settings.get(agent.servers).and_then(|servers| servers.get(ENTRY)) else {
        if let Some(other) = elsewhere(agent, around) {
            return Ok(Decision::nothing(SetupAction::Elsewhere, Some(format!("it is in {}", other.display()))));
        }
        let after = agent.format.add(text, &path, &entry)?;
        return Ok(Decision { action: SetupAction::Add, note, after: Some(Some(after)) });
    };
    let Some(members) = there.as_object() else {
        return Err(format!("`{}.{ENTRY}` is not an object", agent.servers));
    };
    if !members.contains_key("command") && ["url", "httpUrl", "serverUrl"].iter().any(|key| members.contains_key(*key))
    {
        let note = "it connects to a running server, and is left unchanged";
        return Ok(Decision::nothing(SetupAction::Remote, Some(note.into())));
    }
    let mut after = text.to_owned();
    for (key, value) in entry.iter().filter(|(key, value)| !is_right(key, members.get(*key), value, around)) {
        after = agent.format.change(&after, &path, key, value)?;
    }
    if after == text {
        return Ok(Decision::nothing(SetupAction::Right, None));
    }
    Ok(Decision { action: SetupAction::Update, note, after: Some(Some(after)) })
}

/// Whether a field of an entry is correct. Another path to the same program and further arguments are the user's
/// choice.
fn is_right(key: &str, there: Option<&Value>, wanted: &Value, around: &AgentEnvironment) -> bool {
    match (key, there) {
        (_, Some(there)) if there == wanted => true,
        ("command", Some(Value::String(there))) => around.is_binary(Path::new(there)),
        ("args", Some(Value::Array(there))) => there.iter().any(|arg| arg == "mcp"),
        // Agents assume `stdio`.
        ("type", None) => true,
        _ => false,
    }
}

fn without(agent: &SupportedAgent, file: &Path, text: &str) -> std::result::Result<Decision, EditFault> {
    let Some(after) = agent.format.remove(text, &[agent.servers, ENTRY])? else {
        return Ok(Decision::nothing(SetupAction::Absent, None));
    };
    let empty = match agent.format {
        SettingsFormat::Json => json_text::is_bare(&after),
        SettingsFormat::Toml => after.trim().is_empty(),
    };
    let after = if empty && !is_link(file) { None } else { Some(after) };
    Ok(Decision { action: SetupAction::Remove, note: None, after: Some(after) })
}

/// Another file of the agent that contains the entry.
fn elsewhere(agent: &SupportedAgent, around: &AgentEnvironment) -> Option<PathBuf> {
    agent.also.iter().filter_map(|place| around.path(*place)).find(|file| {
        let settings = read(file).ok().flatten().and_then(|text| agent.format.read(&text).ok());
        settings.is_some_and(|settings| settings.get(agent.servers).and_then(|servers| servers.get(ENTRY)).is_some())
    })
}

impl SettingsFormat {
    fn read(self, text: &str) -> std::result::Result<Value, EditFault> {
        match self {
            SettingsFormat::Json => json_text::read(text),
            SettingsFormat::Toml => toml_text::read(text),
        }
    }

    fn add(self, text: &str, path: &[&str], entry: &[(&str, Value)]) -> std::result::Result<String, EditFault> {
        match self {
            SettingsFormat::Json => {
                let members = entry.iter().map(|(key, value)| (*key, NewValue::Plain(value.clone()))).collect();
                json_text::set(text, path, &NewValue::Object(members))
            }
            SettingsFormat::Toml => toml_text::add(text, path, entry),
        }
    }

    fn change(self, text: &str, path: &[&str], key: &str, value: &Value) -> std::result::Result<String, EditFault> {
        match self {
            SettingsFormat::Json => {
                let path: Vec<&str> = path.iter().copied().chain([key]).collect();
                json_text::set(text, &path, &NewValue::Plain(value.clone()))
            }
            SettingsFormat::Toml => toml_text::change(text, path, key, value),
        }
    }

    fn remove(self, text: &str, path: &[&str]) -> std::result::Result<Option<String>, EditFault> {
        match self {
            SettingsFormat::Json => json_text::remove(text, path),
            SettingsFormat::Toml => toml_text::remove(text, path),
        }
    }
}

fn is_link(file: &Path) -> bool {
    file.symlink_metadata().is_ok_and(|m| m.is_symlink())
}

/// None if the file does not exist; a dangling link is an error.
fn read(file: &Path) -> std::result::Result<Option<String>, EditFault> {
    let open = match std::fs::File::open(file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && file.symlink_metadata().is_err() => return Ok(None),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err("the link leads nowhere".into()),
        opened => opened.map_err(|e| e.to_string())?,
    };
    if !open.metadata().map_err(|e| e.to_string())?.is_file() {
        return Err("it is not a file".into());
    }
    let mut bytes = Vec::new();
    open.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it has more than {} MB", LARGEST >> 20));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".into())
}

/// Makes the change atomically.
pub fn write(step: &mut SetupStep) -> Result<()> {
    let fault = |e: std::io::Error| {
        Error::new(ErrorKind::Unavailable, ErrorCode::FileFailure, format!("`{}`: {e}", step.file.display()))
    };
    if read(&step.file).ok().as_ref() != Some(&step.before) {
        return Err(Error::conflict(
            ErrorCode::FileChanged,
            format!("`{}` was changed meanwhile", step.file.display()),
        )
        .hint("run `lukasa setup` again"));
    }
    let Some(after) = &step.after else {
        std::fs::remove_file(&step.file).map_err(fault)?;
        step.written = true;
        return Ok(());
    };
    // Writes to the target of a link, so that the link stays.
    let target = match std::fs::canonicalize(&step.file) {
        Ok(target) => target,
        Err(_) => step.file.clone(),
    };
    let folder = target.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(fault)?;
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let part = folder.join(format!(".{name}.{}.part", std::process::id()));
    let written = fill(&part, &target, after).and_then(|()| std::fs::rename(&part, &target));
    if let Err(e) = written {
        // The temporary file is useless now; failing to remove it is harmless.
        let _ = std::fs::remove_file(&part);
        return Err(fault(e));
    }
    step.written = true;
    Ok(())
}

/// A new file with the permissions of the one it replaces.
fn fill(part: &Path, target: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(part)?;
    if let Ok(there) = target.metadata() {
        file.set_permissions(there.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
