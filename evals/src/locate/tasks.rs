//! Reads tasks with the files that were changed for them: issues of many repositories, or commits of one.

use super::functions::annotated;
use crate::Fault;
use crate::retrieval::score::{Gold, Pool, names_gold_file};
use crate::retrieval::{rows, text, texts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub struct Task {
    pub id: String,
    /// The commit before the change.
    pub commit: String,
    pub text: String,
    pub gold: Gold,
    /// The edited functions, if the data lists them; else they are read from the diff.
    pub annotated: Option<Gold>,
    pub pool: Pool,
    /// Whether the text names a gold file; `None` for issues.
    pub is_given_away: Option<bool>,
}

/// Tasks by the repository they are about, as `owner+name`; the first `limit` of each file.
pub fn read(data: &Path, limit: Option<usize>) -> Result<BTreeMap<String, Vec<Task>>, Fault> {
    let mut all: BTreeMap<String, Vec<Task>> = BTreeMap::new();
    for file in files(data)? {
        let stem = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for row in rows(&file)?.iter().take(limit.unwrap_or(usize::MAX)) {
            let changed = texts(row, "files");
            if changed.is_empty() {
                continue;
            }
            let (repo, task) = if row["instance_id"].is_string() {
                let task = Task {
                    id: text(row, "instance_id")?.to_owned(),
                    commit: text(row, "base_commit")?.to_owned(),
                    text: text(row, "problem_statement")?.to_owned(),
                    gold: changed.into_iter().collect(),
                    annotated: Some(annotated(row)),
                    pool: Pool::Issues,
                    is_given_away: None,
                };
                (text(row, "repo")?.replace('/', "+"), task)
            } else {
                let message = text(row, "message")?;
                let task = Task {
                    id: text(row, "sha")?.to_owned(),
                    commit: text(row, "parent")?.to_owned(),
                    text: message.to_owned(),
                    pool: Pool::of_commit(&changed),
                    is_given_away: Some(names_gold_file(message, &changed)),
                    gold: changed.into_iter().collect(),
                    annotated: None,
                };
                (stem.clone(), task)
            };
            all.entry(repo).or_default().push(task);
        }
    }
    Ok(all)
}

/// The file itself, or the files of a folder.
fn files(data: &Path) -> Result<Vec<PathBuf>, Fault> {
    if !data.is_dir() {
        return Ok(vec![data.to_owned()]);
    }
    let entries = std::fs::read_dir(data)?.map(|entry| Ok(entry?.path()));
    let mut files = entries.collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    Ok(files)
}
