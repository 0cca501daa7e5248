//! Checks of the environment: program, settings, endpoints, git, watcher limits and agents.

use super::{Check, State};
use crate::cli::setup::{self, SetupAction};
use crate::settings;
use lukasa_engine::features::code::Summaries;
use lukasa_engine::features::code::files;
use lukasa_engine::features::code::working_tree::WorkingTree;
use lukasa_engine::redact::redact;
use lukasa_model::Result;
use std::collections::BTreeSet;
use std::path::Path;

pub fn checks() -> Vec<Check> {
    let mut checks = vec![Check::ok("version", format!("lukasa {}", env!("CARGO_PKG_VERSION"))), program()];
    checks.extend(settings());
    checks.extend(repository());
    checks
}

fn program() -> Check {
    let around = match setup::surroundings() {
        Ok(around) => around,
        Err(e) => return Check::of("program", State::Fail, e),
    };
    let own = around.binary.display();
    match around.program("lukasa") {
        Some(found) if around.is_binary(&found) => Check::ok("program", format!("{} is on PATH", found.display())),
        Some(other) => Check::warn(
            "program",
            format!("`lukasa` on PATH is {}, this is {own}", other.display()),
            "put the folder of the one you mean first in PATH",
        ),
        None => Check::warn(
            "program",
            format!("{own} is not on PATH"),
            "add its folder to PATH; until then agents are given its full path",
        ),
    }
}

/// Checks the settings file, and the models that it and the environment configure.
fn settings() -> Vec<Check> {
    let file = settings::file();
    let shown = file.as_ref().map_or_else(|| "nowhere".to_owned(), |file| file.display().to_string());
    let model = settings::model().and_then(|model| match model {
        None => Ok("no language model is configured".to_owned()),
        Some(model) => {
            let found = format!("`{}` at {} is configured", model.endpoint.name, redact(&model.endpoint.url));
            Summaries::new(std::env::temp_dir()).with_model(&model.endpoint, model.per_pass).map(|_| found)
        }
    });
    let embedding = settings::embedding().and_then(|embedding| {
        let found = match &embedding.endpoint {
            None => "the built-in model".to_owned(),
            Some(endpoint) => format!("`{}` at {}", endpoint.model, redact(&endpoint.base_url)),
        };
        crate::cli::embedding().map(|_| found)
    });
    // An unreadable file is reported once, not once per setting.
    if let Some(e) = [model.as_ref().err(), embedding.as_ref().err()]
        .into_iter()
        .flatten()
        .find(|e| ["invalid_settings", "file_failure"].contains(&e.code.name()))
    {
        return vec![Check::of("settings", State::Fail, e.clone())];
    }
    let there = file.is_some_and(|file| file.exists());
    let check = |what, found: Result<String>| match found {
        Ok(found) => Check::ok(what, found),
        Err(e) => Check::of(what, State::Fail, e),
    };
    vec![
        Check::ok(
            "settings",
            if there { format!("{shown} is valid") } else { format!("none, and none needed ({shown})") },
        ),
        check("model", model),
        check("vectors", embedding),
    ]
}

/// Checks the current working tree and whether it can be watched.
fn repository() -> Vec<Check> {
    let place = match WorkingTree::of(Path::new("."), None) {
        Ok(place) => place,
        Err(e) => return vec![Check::of("git", State::Fail, e)],
    };
    let program = setup::surroundings().is_ok_and(|around| around.program("git").is_some());
    let program = if program { "" } else { "; the git program is not on PATH, and not needed" };
    let git = match (&place.repository, &place.fault, &place.commit) {
        (None, ..) => Check::warn(
            "git",
            format!("{} is in no repository: facts have no branch or commit{program}", place.root.display()),
            "`git init` makes one",
        ),
        (Some(_), Some(fault), _) => Check::of("git", State::Fail, fault.clone()),
        (Some(_), None, Some(commit)) => {
            let short: String = commit.id.chars().take(12).collect();
            Check::ok("git", format!("{} on {} at {short}{program}", place.root.display(), place.branch))
        }
        (Some(_), None, None) => {
            Check::ok("git", format!("{} on {}, without a commit{program}", place.root.display(), place.branch))
        }
    };
    std::iter::once(git).chain(watching(&place.root)).collect()
}

/// The Linux limit on watched folders per user.
const WATCHES: &str = "/proc/sys/fs/inotify/max_user_watches";

/// Compares the watcher limit with the number of folders. None if there is no such limit.
fn watching(root: &Path) -> Option<Check> {
    let limit: usize = std::fs::read_to_string(WATCHES).ok()?.trim().parse().ok()?;
    let listed = match files::list(root, &Default::default()) {
        Ok(listing) => listing.files,
        Err(e) => return Some(Check::of("watcher", State::Fail, e)),
    };
    let folders: BTreeSet<&Path> = listed.iter().flat_map(|file| Path::new(&file.path).ancestors().skip(1)).collect();
    let found = format!("{} folders to watch, {limit} allowed", folders.len());
    let mend = "raise it (`sysctl fs.inotify.max_user_watches=524288`), or keep folders out with .lukasaignore";
    Some(match folders.len() {
        many if many > limit => Check::fail("watcher", found, mend),
        // Editors and other watchers need some, too.
        many if many > limit / 2 => Check::warn("watcher", found, mend),
        _ => Check::ok("watcher", found),
    })
}

/// One check per installed agent.
pub fn agents() -> Vec<Check> {
    let steps = setup::surroundings().and_then(|around| setup::plan(&setup::installed(&around), &around, false));
    let steps = match steps {
        Ok(steps) if steps.is_empty() => {
            return vec![Check::ok("agents", "none is installed that `lukasa setup` knows")];
        }
        Ok(steps) => steps,
        Err(e) => return vec![Check::of("agents", State::Fail, e)],
    };
    let check = |step: setup::SetupStep| {
        let (title, file) = (step.titles(), step.file.display());
        let note = step.note.clone().unwrap_or_default();
        match step.action {
            SetupAction::Broken => Check::fail("agent", format!("{title}: {file}: {note}"), "mend the file by hand"),
            SetupAction::Add | SetupAction::Update => {
                let what = if step.action == SetupAction::Add { "is not set up" } else { "starts another program" };
                let names: Vec<_> = step.agents.iter().map(|name| format!("--agent {name}")).collect();
                Check::warn("agent", format!("{title} {what}: {file}"), format!("lukasa setup {}", names.join(" ")))
            }
            _ if note.is_empty() => Check::ok("agent", format!("{title}: {file}")),
            _ => Check::ok("agent", format!("{title}: {note}")),
        }
    };
    steps.into_iter().map(check).collect()
}
