//! One working tree of a repository that is not ours, moved from commit to commit; nothing is written into it.

use crate::Fault;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Tree {
    git_dir: PathBuf,
    index: PathBuf,
    pub work: PathBuf,
}

impl Tree {
    /// A tree in `folder` of the repository `name` (`owner+name`) below `repos`.
    pub fn new(repos: &Path, name: &str, folder: &Path) -> Result<Tree, Fault> {
        let places = [name.to_owned(), format!("{name}/repo"), format!("{name}.git"), format!("{name}/.git")];
        let is_repository = |place: &PathBuf| place.join("objects").is_dir() && place.join("HEAD").exists();
        let found = places.iter().map(|place| repos.join(place)).find(is_repository);
        let git_dir =
            found.ok_or_else(|| format!("no repository `{name}` in `{}`", repos.display()))?.canonicalize()?;
        let work = folder.join("work");
        std::fs::create_dir_all(&work)?;
        Ok(Tree { git_dir, index: folder.join("index"), work })
    }

    /// Makes the tree that of a commit; only files that differ are written.
    pub fn check_out(&self, commit: &str) -> Result<(), Fault> {
        self.git(&["read-tree", "--reset", "-u", commit]).map(drop)
    }

    /// Files of a commit with the ids of their contents.
    pub fn files(&self, commit: &str) -> Result<FxHashMap<String, String>, Fault> {
        let listed = self.git(&["ls-tree", "-r", "-z", commit])?;
        let of_line = |line: &str| {
            let (about, path) = line.split_once('\t')?;
            let mut about = about.split(' ').skip(1);
            let is_file = about.next() == Some("blob");
            is_file.then_some((path.to_owned(), about.next()?.to_owned()))
        };
        Ok(listed.split('\0').filter_map(of_line).collect())
    }

    /// When each commit was made; those that the repository lacks are left out.
    pub fn times(&self, commits: &[&str]) -> FxHashMap<String, i64> {
        let time = |commit: &str| -> Option<i64> {
            let shown = self.git(&["show", "-s", "--format=%ct", commit]).ok()?;
            shown.trim().parse().ok()
        };
        commits.iter().filter_map(|commit| Some(((*commit).to_owned(), time(commit)?))).collect()
    }

    fn git(&self, args: &[&str]) -> Result<String, Fault> {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(&self.git_dir).arg("--work-tree").arg(&self.work).args(args);
        let out = command.env("GIT_INDEX_FILE", &self.index).env("GIT_OPTIONAL_LOCKS", "0").current_dir(&self.work);
        let out = out.output()?;
        if !out.status.success() {
            return Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim()).into());
        }
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }
}
