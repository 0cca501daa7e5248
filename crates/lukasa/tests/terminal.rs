//! The binary on a terminal: rows that fit its width and colours, and the output to a pipe.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

/// A project with paths and names that do not fit beside each other in a narrow terminal.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        let deep = "services/authentication/internal/sessions";
        desk.write(
            &format!("{deep}/refresh_tokens.py"),
            "def check_password_of_user(word):\n    \"\"\"Checks a password against the one that was kept of the user, \
             slowly.\"\"\"\n    return word\n\n\ndef open_session_for_user(user, word, remember_me=False):\n    return \
             check_password_of_user(word)\n",
        );
        desk.write(
            "web/page.py",
            "import os\nfrom services.authentication.internal.sessions.refresh_tokens import open_session_for_user, \
             check_password_of_user\n\n\ndef page(user):\n    os.getcwd()\n    check_password_of_user(user)\n    return \
             open_session_for_user(user, user)\n",
        );
        desk.write(
            "aa_tests/test_page.py",
            "from web.page import page\nfrom services.authentication.internal.sessions.refresh_tokens import \
             check_password_of_user\n\n\ndef test_page():\n    check_password_of_user('x')\n    assert page('ada')\n",
        );
        desk.piped(&["index"]);
        desk.piped(&["put", "Service", "billing", "--title", "Takes money from customers and sends it on, once a day"]);
        desk.piped(&["put", "Service", "web", "--title", "What customers see", "--set", "port=8080"]);
        desk.piped(&["link", "web", "CALLS", "billing", "--confidence", "0.8", "--derivation", "import"]);
        desk.piped(&[
            "patch",
            "Service:web",
            "--set",
            "port=9090",
            "--reason",
            "the old port was taken by another program",
        ]);
        desk.piped(&[
            "branch",
            "create",
            "feature/with-a-rather-long-name",
            "--description",
            "where things are tried out",
        ]);
        desk.piped(&["type", "object", "Service", "--description", "something that runs by itself and can be asked"]);
        desk.piped(&[
            "decide",
            "Tokens last an hour",
            "--rationale",
            "stolen ones must end soon, no matter who has them",
        ]);
        desk.piped(&[
            "claim",
            "web/page.py",
            "--intent",
            "show the page in two columns on wide screens",
            "--agent",
            "ada",
        ]);
        desk.piped(&["task", "update", "12", "--title", "Add a timeout to every request that leaves the machine"]);
        desk.piped(&[
            "release",
            "create",
            "v1.0-the-first-one-for-customers",
            "--description",
            "what was delivered in the first week of the year, with the new page",
        ]);
        desk
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lukasa"));
        command.current_dir(self.0.path()).args(args).stdin(Stdio::null());
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("LUKASA_") {
                command.env_remove(variable);
            }
        }
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
            command.env_remove(variable);
        }
        command.env("USER", "tester").env("LUKASA_PROJECT", "shop").env("LUKASA_MODEL_URL", "off");
        command.env("TERM", "xterm-256color");
        command
    }

    fn piped(&self, args: &[&str]) -> String {
        let out = self.command(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    /// The output on a terminal with so many columns.
    fn on_terminal(&self, columns: u16, args: &[&str]) -> String {
        let mut command = self.command(args);
        // Without the progress bar.
        command.stderr(Stdio::null());
        shown(columns, command)
    }
}

/// Runs a command with its standard output on a new terminal.
fn shown(columns: u16, command: Command) -> String {
    on_new_terminal(columns, command, |command, theirs| {
        command.stdout(theirs);
    })
}

/// As [`shown`], with standard error, too.
fn both_shown(command: Command) -> String {
    on_new_terminal(80, command, |command, theirs| {
        command.stdout(theirs.try_clone().unwrap()).stderr(theirs);
    })
}

fn on_new_terminal(columns: u16, mut command: Command, connect: impl Fn(&mut Command, OwnedFd)) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    tcsetwinsize(&theirs, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    connect(&mut command, theirs);
    let mut child = command.spawn().unwrap();
    // The command keeps the other end open.
    drop(command);
    let (mut bytes, mut buffer, mut ours) = (Vec::new(), [0; 4096], File::from(ours));
    // Linux reports an error when the other end is closed.
    while let Ok(n @ 1..) = ours.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..n]);
    }
    child.wait().unwrap();
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

/// The text without colours.
fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.map(|part| part.split_once('m').map_or("", |(_, rest)| rest)).collect::<String>()
}

/// Whether the text has colours. The sequence that erases a progress line is not one.
fn is_coloured(text: &str) -> bool {
    let codes =
        text.split("\u{1b}[").skip(1).map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
    codes.into_iter().any(|end| end.starts_with('m'))
}

/// Commands that list places or print a table.
const COMMANDS: &[&[&str]] = &[
    &["callers", "check_password_of_user", "--depth", "2"],
    &["callees", "page", "--depth", "2"],
    &["call-chain", "test_page", "check_password_of_user"],
    &["call-stats"],
    &["symbol", "page"],
    &["explain", "check_password_of_user"],
    &["explain", "services/authentication/internal/sessions/refresh_tokens.py"],
    &["slice", "open_session_for_user", "--context", "with-deps"],
    &["search", "check the password of a user"],
    &["ask", "check the password of a user"],
    &["impact", "check_password_of_user"],
    &["pattern", "all"],
    &["list"],
    &["list", "Function"],
    &["get", "Service:web"],
    &["neighbors", "Service:web"],
    &["history", "Service:web", "--changes"],
    &["log"],
    &["diff", "tx:1"],
    &["diff-since", "tx:1"],
    &["branch", "list"],
    &["type", "list"],
    &["who"],
    &["tasks"],
    &["decisions", "tokens"],
    &["recall", "how long do tokens last"],
    &["cypher", "MATCH (a)-[r]->(b) RETURN a.key, type(r), b.key"],
    &["graph-stats"],
    &["rank"],
    &["health"],
    &["pack", "check the password of a user", "--profile", "balanced"],
    &["release", "list"],
    // Only what is in the log before this test adds to it.
    &["audit", "list", "--operation", "put"],
    &["events"],
    &["paths", "test_page", "check_password_of_user"],
    &["doctor"],
];

#[test]
fn every_line_fits_the_terminal_and_no_word_is_broken() {
    let desk = Desk::new();
    for args in COMMANDS {
        let whole = desk.piped(args);
        let words: BTreeSet<&str> = whole.split_whitespace().collect();
        for columns in [40, 60, 80, 120] {
            let text = plain(&desk.on_terminal(columns, args));
            for line in text.lines() {
                // Code is printed unchanged, and a single word is never broken.
                let is_code = line.trim_start().split_once(" | ").is_some_and(|(n, _)| n.parse::<u64>().is_ok());
                let fits = line.chars().count() <= usize::from(columns);
                assert!(
                    fits || is_code || line.split_whitespace().count() == 1,
                    "{args:?} at {columns}: {line:?}\n{text}"
                );
            }
            // Times differ from run to run.
            let is_own = |word: &&str| word.parse::<f64>().is_err() && !word.contains(['…', '─']) && *word != "ms";
            for word in text.split_whitespace().filter(is_own) {
                let is_shown = words.contains(word) || whole.contains(&format!(" {word}\n")) || is_moment(word);
                assert!(is_shown, "{args:?} at {columns}: {word:?} is no word of\n{whole}\n{text}");
            }
        }
    }
}

fn is_moment(word: &str) -> bool {
    word.starts_with("20") && word.contains('T')
}

/// Rows that begin with `path:line`, as (place, name).
fn places(text: &str) -> Vec<(String, String)> {
    let is_place = |word: &str| {
        word.rsplit_once(':').is_some_and(|(path, line)| path.ends_with(".py") && line.parse::<u32>().is_ok())
    };
    let row = |line: &str| {
        let mut words = line.split("  ").filter(|word| !word.is_empty());
        let (place, name) = (words.next()?, words.next().unwrap_or_default());
        (!line.starts_with(' ') && is_place(place)).then(|| (place.to_owned(), name.trim().to_owned()))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn results_are_rows_of_path_and_line_and_name() {
    let desk = Desk::new();
    let tokens = "services/authentication/internal/sessions/refresh_tokens.py";
    for args in [
        &["callers", "open_session_for_user"][..],
        &["callees", "page"],
        &["call-chain", "page", "check_password_of_user"],
        &["symbol", "page"],
        &["explain", "page"],
        &["slice", "page"],
        &["search", "page of a user"],
        &["ask", "page of a user"],
        &["list", "Function"],
    ] {
        let found = places(&desk.piped(args));
        let known = [("web/page.py:5", "page"), (&format!("{tokens}:6"), "open_session_for_user")];
        let has = |(place, name): &(&str, &str)| found.iter().any(|(p, n)| (p.as_str(), n.as_str()) == (*place, *name));
        assert!(known.iter().any(has), "{args:?}: {found:?}\n{}", desk.piped(args));
    }
    // In a pipe each result is one line, however long.
    let searched = desk.piped(&["search", "check the password of a user"]);
    assert!(places(&searched).contains(&(format!("{tokens}:1"), "check_password_of_user".into())), "{searched}");
    let row = searched.lines().find(|line| line.contains("check_password_of_user  ")).unwrap();
    assert!(row.len() > 100, "{row}");
}

#[test]
fn events_are_rows_for_people_and_json_for_programs() {
    let desk = Desk::new();
    let shown = desk.piped(&["events"]);
    assert!(!shown.contains(['{', '[']), "{shown}");
    let row = |event: &str, words: &[&str]| {
        let is_it = |line: &&str| line.contains(event) && words.iter().all(|word| line.contains(word));
        assert!(shown.lines().any(|line| is_it(&line)), "{event} {words:?}: {shown}");
    };
    row("claim active", &["web/page.py", "ada", "show the page in two columns"]);
    row("task ", &["Add a timeout to every request"]);
    row("transaction ", &["full_rebuild", " versions"]);
    row("transaction ", &["the old port was taken by another program"]);
    let events: serde_json::Value = serde_json::from_str(&desk.piped(&["events", "--json"])).unwrap();
    let cursor = events["cursor"].as_str().unwrap();
    assert_eq!(shown.lines().last(), Some(format!("what happens next: --after {cursor}").as_str()));
    // What follows, also if not all of it is shown.
    desk.piped(&["put", "Service", "mail"]);
    desk.piped(&["put", "Service", "chat"]);
    let more = desk.piped(&["events", "--after", cursor, "--limit", "1"]);
    assert!(more.contains("api, 1 version") && more.contains("… and more: --after "), "{more}");
}

#[test]
fn production_code_comes_before_tests() {
    let desk = Desk::new();
    for args in [
        &["callers", "check_password_of_user"][..],
        &["callers", "check_password_of_user", "--depth", "3"],
        &["search", "page of a user"],
        &["impact", "check_password_of_user"],
        &["list", "File"],
        &["slice", "check_password_of_user", "--context", "with-deps"],
        &["explain", "check_password_of_user"],
        &["pack", "check the password of a user on a page", "--profile", "balanced"],
    ] {
        let shown = desk.piped(args);
        let rows: Vec<&str> =
            shown.lines().filter(|line| line.contains(".py") && !line.starts_with(' ')).skip(1).collect();
        let first_test = rows.iter().position(|row| row.starts_with("aa_tests/"));
        let last_other = rows.iter().rposition(|row| row.starts_with("web/"));
        assert!(first_test.is_some() && last_other.is_some() && first_test > last_other, "{args:?}: {shown}");
    }
    // Tests are cut off first.
    let one = desk.piped(&["callers", "check_password_of_user", "--limit", "2"]);
    assert!(!one.contains("test_page"), "{one}");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let desk = Desk::new();
    let args = ["callers", "page"];
    let coloured = desk.on_terminal(80, &args);
    assert!(coloured.contains("\u{1b}[36maa_tests/test_page.py:5\u{1b}[0m"), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[1mtest_page\u{1b}[0m"), "{coloured:?}");
    assert_eq!(plain(&coloured), desk.piped(&args), "the same text as in a pipe, where there is room");
    let error = both_shown(desk.command(&["get", "Service:nothing"]));
    assert!(error.contains("\u{1b}[31merror\u{1b}[0m: "), "{error:?}");
    for (variable, value) in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
        for args in [&args[..], &["get", "Service:nothing"], &["frobnicate"], &["--help"]] {
            let mut command = desk.command(args);
            command.env(variable, value).env("CI", "true");
            let text = both_shown(command);
            assert!(!text.is_empty() && !is_coloured(&text), "{variable}={value} {args:?}: {text:?}");
        }
    }
    for args in [&["callers", "page", "--color", "never"][..], &["frobnicate", "--color", "never"]] {
        assert!(!is_coloured(&both_shown(desk.command(args))), "{args:?}");
    }
    assert!(!desk.piped(&args).contains('\u{1b}'));
    assert!(desk.piped(&["--color", "always", "callers", "page"]).contains("\u{1b}[36m"));
    assert!(!desk.piped(&["--color", "always", "callers", "page", "--json"]).contains('\u{1b}'), "JSON has none");
}
