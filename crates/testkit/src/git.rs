//! Runs the `git` program without the configuration of the user who runs the tests.

use std::path::Path;
use std::process::Command;

/// Whether `git` is installed. If not, prints that tests are skipped; with `CI` set, panics instead.
pub fn has_git() -> bool {
    let there = Command::new("git").arg("--version").output().is_ok_and(|out| out.status.success());
    if !there {
        assert!(std::env::var_os("CI").is_none(), "CI must test with git: install it");
        eprintln!("SKIPPED: the `git` program is not installed");
    }
    there
}

/// Runs `git` in a folder and returns its standard output, trimmed. Panics if the command fails.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    let who = [("AUTHOR", "NAME", "Ann"), ("AUTHOR", "EMAIL", "ann@example.org")];
    for (role, what, value) in who.into_iter().chain(who.map(|(_, what, value)| ("COMMITTER", what, value))) {
        command.env(format!("GIT_{role}_{what}"), value);
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let out = command.args(arguments).current_dir(folder).output().expect("git is installed: see `has_git`");
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "git {arguments:?}: {errors}");
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}
