//! The supported agents: how to detect each, where it stores its servers, and what the entry contains.

use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The name of the entry in every file.
pub const ENTRY: &str = "lukasa";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsFormat {
    /// With or without comments.
    Json,
    Toml,
}

/// A file or folder, relative to a base folder.
#[derive(Clone, Copy, Debug)]
pub enum SettingsPath {
    /// In the root of the repository.
    Project(&'static str),
    Home(&'static str),
    /// In the folder of Codex.
    Codex(&'static str),
    /// In the folder of Zed.
    Zed(&'static str),
}

/// A supported agent.
pub struct SupportedAgent {
    /// The name on the command line.
    pub name: &'static str,
    pub title: &'static str,
    programs: &'static [&'static str],
    /// Any of these exists if the agent is installed.
    traces: &'static [SettingsPath],
    /// The file to write: the project's own by convention, otherwise the user's.
    pub file: SettingsPath,
    pub format: SettingsFormat,
    /// The member that contains all servers.
    pub servers: &'static str,
    /// Whether an entry has the type `stdio`.
    says_stdio: bool,
    /// Files that the agent reads too and that are never written. An entry there is enough.
    pub also: &'static [SettingsPath],
}

/// As the vendors document it; docs/setup.md shows every entry.
pub const AGENTS: [SupportedAgent; 7] = [
    SupportedAgent {
        name: "claude",
        title: "Claude Code",
        programs: &["claude"],
        traces: &[SettingsPath::Home(".claude"), SettingsPath::Home(".claude.json"), SettingsPath::Project(".claude")],
        file: SettingsPath::Project(".mcp.json"),
        format: SettingsFormat::Json,
        servers: "mcpServers",
        says_stdio: true,
        also: &[SettingsPath::Home(".claude.json")],
    },
    SupportedAgent {
        name: "cursor",
        title: "Cursor",
        programs: &["cursor", "cursor-agent"],
        traces: &[SettingsPath::Home(".cursor"), SettingsPath::Project(".cursor")],
        file: SettingsPath::Project(".cursor/mcp.json"),
        format: SettingsFormat::Json,
        servers: "mcpServers",
        says_stdio: true,
        also: &[SettingsPath::Home(".cursor/mcp.json")],
    },
    SupportedAgent {
        name: "vscode",
        title: "VS Code",
        programs: &["code", "code-insiders", "codium"],
        traces: &[
            SettingsPath::Home(".vscode"),
            SettingsPath::Home(".config/Code"),
            SettingsPath::Home("Library/Application Support/Code"),
            SettingsPath::Project(".vscode"),
        ],
        file: SettingsPath::Project(".vscode/mcp.json"),
        format: SettingsFormat::Json,
        servers: "servers",
        says_stdio: true,
        also: &[],
    },
    SupportedAgent {
        name: "codex",
        title: "Codex",
        programs: &["codex"],
        traces: &[SettingsPath::Codex(""), SettingsPath::Project(".codex")],
        file: SettingsPath::Codex("config.toml"),
        format: SettingsFormat::Toml,
        servers: "mcp_servers",
        says_stdio: false,
        also: &[SettingsPath::Project(".codex/config.toml")],
    },
    SupportedAgent {
        name: "gemini",
        title: "Gemini CLI",
        programs: &["gemini"],
        traces: &[SettingsPath::Home(".gemini"), SettingsPath::Project(".gemini")],
        file: SettingsPath::Project(".gemini/settings.json"),
        format: SettingsFormat::Json,
        servers: "mcpServers",
        says_stdio: false,
        also: &[SettingsPath::Home(".gemini/settings.json")],
    },
    SupportedAgent {
        name: "zed",
        title: "Zed",
        programs: &["zed", "zeditor"],
        traces: &[SettingsPath::Zed(""), SettingsPath::Project(".zed")],
        file: SettingsPath::Zed("settings.json"),
        format: SettingsFormat::Json,
        servers: "context_servers",
        says_stdio: false,
        also: &[SettingsPath::Project(".zed/settings.json")],
    },
    SupportedAgent {
        name: "mcp",
        title: "any agent that reads .mcp.json",
        programs: &[],
        traces: &[SettingsPath::Project(".mcp.json")],
        file: SettingsPath::Project(".mcp.json"),
        format: SettingsFormat::Json,
        servers: "mcpServers",
        says_stdio: true,
        also: &[],
    },
];

impl SupportedAgent {
    pub fn named(name: &str) -> Option<&'static SupportedAgent> {
        AGENTS.iter().find(|agent| agent.name == name)
    }

    /// Whether its settings or its program exist.
    pub fn is_installed(&self, around: &AgentEnvironment) -> bool {
        let there = |place: &SettingsPath| around.path(*place).is_some_and(|path| path.exists());
        self.traces.iter().any(there) || self.programs.iter().any(|name| around.program(name).is_some())
    }

    /// The fields of the entry, in the order they are written.
    pub fn entry(&self, command: &str) -> Vec<(&'static str, Value)> {
        let kind = self.says_stdio.then(|| ("type", json!("stdio")));
        kind.into_iter().chain([("command", json!(command)), ("args", json!(["mcp"]))]).collect()
    }
}

/// Where agents and programs are searched for.
pub struct AgentEnvironment {
    pub project: PathBuf,
    home: Option<PathBuf>,
    codex: Option<PathBuf>,
    zed: Option<PathBuf>,
    /// The folders of `PATH`.
    folders: Vec<PathBuf>,
    /// The path of this program.
    pub binary: PathBuf,
}

impl AgentEnvironment {
    pub fn new(env: &dyn Fn(&str) -> Option<OsString>, here: &Path, binary: PathBuf) -> AgentEnvironment {
        let folder = |name: &str| env(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let home = folder("HOME").or_else(|| folder("USERPROFILE"));
        let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
        let zed = match cfg!(windows) {
            true => folder("APPDATA").map(|data| data.join("Zed")),
            false => folder("XDG_CONFIG_HOME").map(|config| config.join("zed")).or_else(|| in_home(".config/zed")),
        };
        AgentEnvironment {
            project: here.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(here).to_owned(),
            codex: folder("CODEX_HOME").or_else(|| in_home(".codex")),
            zed,
            folders: env("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default(),
            home,
            binary,
        }
    }

    /// None if the base folder, for example the home folder, is unknown.
    pub fn path(&self, place: SettingsPath) -> Option<PathBuf> {
        let (folder, name) = match place {
            SettingsPath::Project(name) => (Some(&self.project), name),
            SettingsPath::Home(name) => (self.home.as_ref(), name),
            SettingsPath::Codex(name) => (self.codex.as_ref(), name),
            SettingsPath::Zed(name) => (self.zed.as_ref(), name),
        };
        // Joining an empty name would add a slash.
        folder.map(|folder| if name.is_empty() { folder.clone() } else { folder.join(name) })
    }

    /// Finds a program by its name.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let names =
            if cfg!(windows) { vec![format!("{name}.exe"), format!("{name}.cmd")] } else { vec![name.to_owned()] };
        self.folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).find(|file| is_program(file))
    }

    /// The command that starts this program: its name if `PATH` finds it, otherwise its path.
    pub fn command(&self) -> String {
        if self.program(ENTRY).is_some_and(|found| self.is_binary(&found)) {
            return ENTRY.into();
        }
        self.binary.display().to_string()
    }

    /// Whether a path leads to this program.
    pub fn is_binary(&self, path: &Path) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        path == self.binary || real(path).is_some_and(|path| Some(path) == real(&self.binary))
    }
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}
