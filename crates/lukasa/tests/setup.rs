//! `setup`, `doctor`, completions and manual pages, with a temporary home and project.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_testkit::{TestDatabase, git, has_git};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// An empty home and an empty project.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        let desk = Desk { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(desk.home("")).unwrap();
        std::fs::create_dir_all(desk.project(".git")).unwrap();
        std::fs::create_dir_all(desk.folder.path().join("bin")).unwrap();
        desk
    }

    fn home(&self, name: &str) -> PathBuf {
        self.folder.path().join("home").join(name)
    }

    fn project(&self, name: &str) -> PathBuf {
        self.folder.path().join("shop").join(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
        command.env_clear().env("HOME", self.home("")).env("PATH", self.folder.path().join("bin"));
        command.current_dir(self.project("")).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command().args(args).output().unwrap()
    }

    fn ok(&self, args: &[&str]) -> Value {
        let out = self.run(&[args, &["--json"]].concat());
        assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    }

    /// Puts this program on the PATH.
    fn install(&self) {
        #[cfg(unix)]
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_lukasa"), self.folder.path().join("bin/lukasa")).unwrap();
    }

    fn write(&self, path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Every file with its contents.
    fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn collect(folder: &Path, all: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap()) {
                match entry.file_type().unwrap().is_dir() {
                    true => collect(&entry.path(), all),
                    false => all.push((entry.path(), std::fs::read(entry.path()).unwrap_or_default())),
                }
            }
        }
        let mut all = Vec::new();
        collect(self.folder.path(), &mut all);
        all.sort();
        all
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// For each agent: its name, its settings file, an existing content, and the same after `setup`.
fn agents(desk: &Desk) -> Vec<(&'static str, PathBuf, &'static str, String)> {
    let stdio = "{\n      \"type\": \"stdio\",\n      \"command\": \"lukasa\",\n      \"args\": [\"mcp\"]\n    }";
    let plain = "{\n      \"command\": \"lukasa\",\n      \"args\": [\"mcp\"]\n    }";
    let servers = "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n";
    let with =
        |text: &str, after: &str, entry: &str| text.replace(after, &format!("{after},\n    \"lukasa\": {entry}"));
    let other = "\"other\": {\"command\": \"x\"}";
    let vscode = "{\n  // Asked for once\n  \"inputs\": [],\n  \"servers\": {\n    \"other\": {\"command\": \"x\"}, // keep\n  },\n}\n";
    let zed = "// Zed settings\n{\n  \"theme\": \"One Dark\", /* dark */\n  \"context_servers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n";
    let codex = "# mine\nmodel = \"o4\"   # fast\n\n[mcp_servers.other]\ncommand = 'x'\n";
    vec![
        ("claude", desk.project(".mcp.json"), servers, with(servers, other, stdio)),
        ("cursor", desk.project(".cursor/mcp.json"), servers, with(servers, other, stdio)),
        (
            "vscode",
            desk.project(".vscode/mcp.json"),
            vscode,
            vscode.replace("// keep\n", &format!("// keep\n    \"lukasa\": {stdio},\n")),
        ),
        (
            "codex",
            desk.home(".codex/config.toml"),
            codex,
            format!("{codex}\n[mcp_servers.lukasa]\ncommand = \"lukasa\"\nargs = [\"mcp\"]\n"),
        ),
        ("gemini", desk.project(".gemini/settings.json"), servers, with(servers, other, plain)),
        ("zed", desk.home(".config/zed/settings.json"), zed, with(zed, other, plain)),
        ("mcp", desk.project(".mcp.json"), servers, with(servers, other, stdio)),
    ]
}

#[cfg(unix)]
#[test]
fn every_agent_gets_its_entry_and_loses_it_again() {
    for number in 0..7 {
        let desk = Desk::new();
        desk.install();
        let (name, file, before, after) = agents(&desk).swap_remove(number);
        desk.write(&file, before);
        let all_before = desk.everything();
        // Shows the change without making it.
        for args in [&["setup", "--agent", name][..], &["setup", "--agent", name, "--dry-run"]] {
            let out = desk.run(args);
            assert!(out.status.success() && text(&out.stdout).contains("nothing was written"), "{}", text(&out.stdout));
            assert!(text(&out.stdout).contains("+++ b/"), "{}", text(&out.stdout));
            assert_eq!(desk.everything(), all_before);
        }
        let done = desk.ok(&["setup", "--agent", name, "--yes"]);
        assert_eq!(
            (&done["files"][0]["action"], &done["files"][0]["written"]),
            (&json!("add"), &json!(true)),
            "{name}"
        );
        assert_eq!(read(&file), after, "{name}");
        let again = desk.ok(&["setup", "--agent", name, "--yes"]);
        assert_eq!((&again["files"][0]["action"], &again["files"][0]["written"]), (&json!("right"), &json!(false)));
        let gone = desk.ok(&["setup", "--agent", name, "--yes", "--remove"]);
        assert_eq!(gone["files"][0]["action"], "remove", "{name}");
        assert_eq!(desk.everything(), all_before, "{name}: nothing else was touched, and nothing is left");
        assert_eq!(desk.ok(&["setup", "--agent", name, "--yes", "--remove"])["files"][0]["action"], "absent");
    }
}

#[test]
fn missing_files_are_created_and_removed_again() {
    for number in 0..7 {
        let desk = Desk::new();
        let (name, file, ..) = agents(&desk).swap_remove(number);
        let before = desk.everything();
        let done = desk.ok(&["setup", "--agent", name, "-y"]);
        assert_eq!(done["files"][0]["file"], json!(file), "{name}");
        let made = read(&file);
        // The program is not on PATH here, so the entry contains the whole path.
        assert!(made.contains(env!("CARGO_BIN_EXE_lukasa")) && made.contains("[\"mcp\"]"), "{made}");
        let in_project = file.starts_with(desk.project(""));
        assert_eq!(done["files"][0]["note"].as_str().is_some_and(|n| n.contains("this machine")), in_project, "{name}");
        desk.ok(&["setup", "--agent", name, "-y", "--remove"]);
        assert_eq!(desk.everything(), before, "{name}");
    }
}

#[test]
fn agents_are_found_by_their_settings_or_their_program() {
    let desk = Desk::new();
    let found = |desk: &Desk| -> Vec<String> {
        let files = desk.ok(&["setup"])["files"].as_array().unwrap().clone();
        files.iter().flat_map(|f| f["agents"].as_array().unwrap()).map(|a| a.as_str().unwrap().to_owned()).collect()
    };
    assert!(found(&desk).is_empty());
    let out = desk.run(&["setup"]);
    assert!(out.status.success() && text(&out.stdout).contains("no agent was found"), "{}", text(&out.stdout));
    std::fs::create_dir_all(desk.home(".claude")).unwrap();
    std::fs::create_dir_all(desk.project(".vscode")).unwrap();
    std::fs::create_dir_all(desk.home(".config/zed")).unwrap();
    assert_eq!(found(&desk), ["claude", "vscode", "zed"]);
    // Two agents that read the same file cause one change.
    desk.write(&desk.project(".mcp.json"), "{}");
    assert_eq!(desk.ok(&["setup", "--agent", "claude", "--agent", "mcp"])["files"].as_array().unwrap().len(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let program = desk.folder.path().join("bin/codex");
        desk.write(&program, "");
        assert!(!found(&desk).contains(&"codex".to_owned()), "a file that cannot be run is no program");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(found(&desk).contains(&"codex".to_owned()));
    }
    // `CODEX_HOME` names the settings folder of Codex.
    let elsewhere = desk.folder.path().join("codex");
    let out =
        desk.command().env("CODEX_HOME", &elsewhere).args(["setup", "--agent", "codex", "--yes"]).output().unwrap();
    assert!(out.status.success() && elsewhere.join("config.toml").exists() && !desk.home(".codex").exists());
}

#[test]
fn choices_of_the_user_are_kept() {
    let desk = Desk::new();
    // The user's arguments and environment stay; the path of another build is corrected.
    let file = desk.project(".cursor/mcp.json");
    let own = r#"{"mcpServers": {"lukasa": {"command": "/old/lukasa", "args": ["--project", "x", "mcp"], "env": {"A": "1"}}}}"#;
    desk.write(&file, own);
    let done = desk.ok(&["setup", "--agent", "cursor", "--yes"]);
    assert_eq!(done["files"][0]["action"], "update");
    assert_eq!(read(&file), own.replace("/old/lukasa", env!("CARGO_BIN_EXE_lukasa")));
    assert_eq!(desk.ok(&["setup", "--agent", "cursor", "--yes"])["files"][0]["action"], "right");
    // An entry for a running server.
    let remote = r#"{"servers": {"lukasa": {"url": "http://127.0.0.1:7411/mcp"}}}"#;
    desk.write(&desk.project(".vscode/mcp.json"), remote);
    assert_eq!(desk.ok(&["setup", "--agent", "vscode", "--yes"])["files"][0]["action"], "remote");
    // An entry in the user's own file.
    desk.write(&desk.home(".gemini/settings.json"), r#"{"mcpServers": {"lukasa": {"command": "lukasa"}}}"#);
    let done = desk.ok(&["setup", "--agent", "gemini", "--yes"]);
    assert_eq!(done["files"][0]["action"], "elsewhere");
    assert!(!desk.project(".gemini").exists());
}

#[test]
fn broken_files_are_reported_and_left_alone() {
    let desk = Desk::new();
    desk.write(&desk.project(".cursor/mcp.json"), "{\"mcpServers\": {\n");
    desk.write(&desk.project(".vscode/mcp.json"), "{\"servers\": []}");
    desk.write(&desk.home(".codex/config.toml"), "a = 1\nb = \n");
    std::fs::create_dir_all(desk.home(".config/zed/settings.json")).unwrap();
    desk.write(&desk.project(".gemini/settings.json"), "{}");
    std::fs::write(desk.project(".mcp.json"), b"{\"\xff\": 1}").unwrap();
    let before = desk.everything();
    let out = desk.run(&["setup", "--yes", "--json"]);
    assert_eq!(out.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&out.stderr).unwrap();
    assert_eq!(error["error"]["code"], "setup_incomplete");
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let notes: Vec<_> =
        report["files"].as_array().unwrap().iter().map(|f| (&f["action"], f["note"].as_str())).collect();
    let broken = json!("broken");
    assert_eq!(notes[0], (&broken, Some("line 1: unterminated object")));
    assert_eq!(notes[1], (&broken, Some("the parent of `lukasa` is not an object")));
    assert!(notes[2].0 == "broken" && notes[2].1.unwrap().starts_with("line 2: "), "{notes:?}");
    assert_eq!((notes[3].0, notes[4]), (&json!("add"), (&broken, Some("it is not a file"))));
    assert_eq!(notes[5], (&broken, Some("it is not UTF-8")));
    // The other agents are still set up.
    let after: Vec<_> = desk.everything();
    assert_eq!(after.len(), before.len());
    let changed = before.iter().zip(&after).filter(|(a, b)| a != b).count();
    assert_eq!(changed, 1);
}

#[cfg(unix)]
#[test]
fn links_are_written_through_and_rights_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let desk = Desk::new();
    let real = desk.folder.path().join("dotfiles/config.toml");
    desk.write(&real, "model = \"o4\"\n");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::create_dir_all(desk.home(".codex")).unwrap();
    symlink(&real, desk.home(".codex/config.toml")).unwrap();
    let done = desk.ok(&["setup", "--yes"]);
    assert!(done["files"][0]["note"].as_str().unwrap().contains("dotfiles/config.toml"), "{done:#}");
    assert!(desk.home(".codex/config.toml").symlink_metadata().unwrap().is_symlink());
    assert!(read(&real).starts_with("model = \"o4\"\n\n[mcp_servers.lukasa]"));
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    desk.ok(&["setup", "--yes", "--remove"]);
    assert_eq!(read(&real), "model = \"o4\"\n");
    // A dangling link is not written to.
    std::fs::remove_file(&real).unwrap();
    let out = desk.run(&["setup", "--yes"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stdout).contains("the link leads nowhere") && !real.exists());
}

#[test]
fn keys_in_settings_are_not_printed() {
    let desk = Desk::new();
    let secret = "{\n  \"mcpServers\": {\n    \"other\": {\"env\": {\"API_KEY\": \"hunter2hunter2\"}}\n  }\n}\n";
    desk.write(&desk.project(".mcp.json"), secret);
    let out = desk.run(&["setup", "--yes"]);
    let report = text(&out.stdout);
    assert!(out.status.success() && !report.contains("hunter2") && report.contains("+    \"lukasa\""), "{report}");
    assert!(read(&desk.project(".mcp.json")).contains("hunter2hunter2"));
}

fn check<'a>(report: &'a Value, what: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|c| c["what"] == what).unwrap_or_else(|| panic!("no check `{what}`: {report:#}"))
}

#[test]
fn doctor_reports_findings_and_fixes() {
    if !has_git() {
        return;
    }
    let desk = Desk::new();
    std::fs::remove_dir(desk.project(".git")).unwrap();
    git(&desk.project(""), &["init", "-q", "-b", "main"]);
    let report = desk.ok(&["doctor"]);
    assert_eq!(
        (&check(&report, "store")["state"], &check(&report, "program")["state"]),
        (&json!("warn"), &json!("warn"))
    );
    assert!(check(&report, "store")["mend"].as_str().unwrap().contains("lukasa index"));
    assert_eq!(check(&report, "agents")["state"], "ok");
    assert!(!desk.project(".lukasa").exists(), "looking makes nothing");

    desk.write(&desk.project("a.py"), "def a():\n    return b()\n\ndef b():\n    return 1\n");
    git(&desk.project(""), &["add", "-A"]);
    git(&desk.project(""), &["commit", "-q", "-m", "first"]);
    assert!(desk.run(&["index"]).status.success());
    std::fs::create_dir_all(desk.home(".claude")).unwrap();
    let report = desk.ok(&["doctor"]);
    for what in ["version", "settings", "model", "vectors", "git", "store", "schema", "index", "sources", "engine"] {
        assert_eq!(check(&report, what)["state"], "ok", "{report:#}");
    }
    #[cfg(unix)]
    assert!(check(&report, "disk")["found"].as_str().unwrap().contains("MB free"));
    assert!(check(&report, "engine")["found"].as_str().unwrap().starts_with("no process"), "{report:#}");
    #[cfg(target_os = "linux")]
    assert!(check(&report, "watcher")["found"].as_str().unwrap().starts_with("1 folders to watch"));
    assert!(check(&report, "index")["found"].as_str().unwrap().contains("up to date"), "{report:#}");
    assert_eq!(
        (&check(&report, "embedding")["state"], &check(&report, "embedding")["mend"]),
        (&json!("warn"), &json!("`lukasa embed`"))
    );
    assert_eq!(check(&report, "agent")["mend"], "lukasa setup --agent claude");
    desk.ok(&["setup", "--yes"]);
    assert_eq!(check(&desk.ok(&["doctor"]), "agent")["state"], "ok");

    // The written file is new; then a commit without changes, then a changed file.
    assert!(check(&desk.ok(&["doctor"]), "index")["found"].as_str().unwrap().contains("1 files behind"));
    assert!(desk.run(&["index"]).status.success());
    git(&desk.project(""), &["commit", "-q", "--allow-empty", "-m", "second"]);
    let report = desk.ok(&["doctor"]);
    let found = check(&report, "index")["found"].as_str().unwrap();
    assert!(check(&report, "index")["state"] == "ok" && found.contains("no file differs"), "{found}");
    desk.write(&desk.project("a.py"), "def a():\n    return 2\n");
    let report = desk.ok(&["doctor"]);
    assert_eq!(
        (&check(&report, "index")["state"], &check(&report, "index")["mend"]),
        (&json!("warn"), &json!("lukasa index"))
    );

    let out = desk.run(&["doctor"]);
    let shown = text(&out.stdout);
    assert!(
        out.status.success() && shown.contains("warn  index") && shown.contains("      mend: lukasa index\n"),
        "{shown}"
    );
    assert!(shown.ends_with("0 failed\n"), "{shown}");
    let other = desk.ok(&["doctor", "--project", "another"]);
    assert!(check(&other, "index")["mend"].as_str().unwrap().contains("shop"), "{other:#}");
}

#[test]
fn doctor_fails_if_a_check_fails() {
    let desk = Desk::new();
    let fails = |args: &[&str], variables: &[(&str, &str)], what: &str| -> Value {
        let out = desk.command().envs(variables.iter().copied()).args(args).arg("--json").output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{what}");
        assert_eq!(serde_json::from_slice::<Value>(&out.stderr).unwrap()["error"]["code"], "checks_failed");
        let report: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(check(&report, what)["state"], "fail", "{report:#}");
        check(&report, what).clone()
    };
    // Wrong settings, and a missing key.
    desk.write(
        &desk.home(".config/lukasa/config.toml"),
        "[model]\nurl = \"http://127.0.0.1:9/v1\"\nname = \"m\"\nkey_env = \"K\"\n",
    );
    assert!(fails(&["doctor"], &[], "model")["found"].as_str().unwrap().contains("`K`"));
    desk.write(&desk.home(".config/lukasa/config.toml"), "[nothing]\n");
    assert!(fails(&["doctor"], &[], "settings")["found"].as_str().unwrap().contains("line 1"));
    std::fs::remove_file(desk.home(".config/lukasa/config.toml")).unwrap();
    // Stores that are no database, unreachable or damaged.
    desk.write(
        &desk.project("words.db"),
        "these are words and no database, and there are enough of them to be sure of that",
    );
    assert!(fails(&["doctor", "--store", "words.db"], &[], "store")["mend"].is_string());
    let url = ("LUKASA_STORE", "postgres://absent@127.0.0.1:9/nothing");
    assert!(fails(&["doctor"], &[url], "store")["mend"].as_str().unwrap().contains("server"));
    assert!(desk.run(&["put", "Service", "auth", "--store", "s.db"]).status.success());
    let file = desk.project("s.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let whole = bytes.len();
    // The first pages stay, so that the file opens.
    bytes[8192..].fill(0xff);
    assert!(whole > 2 * 8192);
    std::fs::write(&file, bytes).unwrap();
    assert!(fails(&["doctor", "--store", "s.db"], &[], "store")["mend"].as_str().unwrap().contains("restore"));
    // The settings of an agent.
    desk.write(&desk.project(".cursor/mcp.json"), "{");
    assert!(fails(&["doctor"], &[], "agent")["found"].as_str().unwrap().starts_with("Cursor: "));
}

#[test]
fn doctor_checks_postgresql() {
    let Some(database) = TestDatabase::new() else { return };
    let desk = Desk::new();
    let run = |args: &[&str]| {
        let out = desk.command().env("LUKASA_STORE", &database.app_url).args(args).arg("--json").output().unwrap();
        (out.status.success(), serde_json::from_slice::<Value>(&out.stdout).unwrap_or_default())
    };
    assert!(run(&["put", "Service", "auth"]).0);
    let (well, report) = run(&["doctor"]);
    assert!(well, "{report:#}");
    assert_eq!((&check(&report, "store")["state"], &check(&report, "policies")["state"]), (&json!("ok"), &json!("ok")));
    assert!(!check(&report, "store")["found"].as_str().unwrap().contains('@'), "no password is shown");
}

/// The words of every command: operations and others.
fn verbs() -> Vec<&'static str> {
    let verbs = lukasa_engine::operations().iter().flat_map(|operation| operation.meta.verb.split(' '));
    verbs.chain(["setup", "doctor", "completions", "man", "watch"]).collect()
}

#[test]
fn shells_complete_every_command() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let out = desk.run(&["completions", shell]);
        assert!(out.status.success());
        let script = text(&out.stdout);
        let words: std::collections::BTreeSet<&str> =
            script.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).collect();
        for verb in verbs() {
            assert!(words.contains(verb), "{shell} does not know `{verb}`");
        }
        assert!(script.contains("dry-run"));
    }
    assert_eq!(desk.run(&["completions", "cobol"]).status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page() {
    let desk = Desk::new();
    let out = desk.run(&["man"]);
    assert!(out.status.success() && text(&out.stdout).contains(".TH lukasa 1"), "{}", text(&out.stdout));
    assert!(desk.run(&["man", "--out", "pages"]).status.success());
    for operation in lukasa_engine::operations() {
        let page = desk.project(&format!("pages/lukasa-{}.1", operation.meta.verb.replace(' ', "-")));
        let page = std::fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(page.contains(".SH OPTIONS"), "{}", operation.meta.name);
    }
    assert!(desk.project("pages/lukasa.1").exists() && desk.project("pages/lukasa-doctor.1").exists());
}
