//! A working tree of another repository, moved from commit to commit. The repository itself is only read.

use crate::Fault;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Files by path, with the ids of their contents.
pub type BlobIds = FxHashMap<String, String>;

pub struct Tree {
    git_dir: PathBuf,
    pub work: PathBuf,
    /// The files in the working tree.
    there: BlobIds,
    contents: GitBlobs,
    /// Contents that the repository lacks.
    missing: FxHashSet<String>,
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
        Ok(Tree {
            contents: GitBlobs::new(&git_dir)?,
            git_dir,
            work,
            there: BlobIds::default(),
            missing: FxHashSet::default(),
        })
    }

    /// Checks out a commit and returns its files; writes only what differs. Links are left out, and so are contents
    /// that the repository lacks because it is a partial clone.
    pub fn check_out(&mut self, commit: &str) -> Result<&BlobIds, Fault> {
        let mut wanted = self.files(commit)?;
        for path in self.there.keys().filter(|path| !wanted.contains_key(*path)) {
            std::fs::remove_file(self.work.join(path))?;
            // Removes folders that are empty now; others cannot be removed.
            let folders = Path::new(path).ancestors().skip(1).filter(|folder| *folder != Path::new(""));
            folders
                .map(|folder| self.work.join(folder))
                .take_while(|folder| std::fs::remove_dir(folder).is_ok())
                .for_each(drop);
        }
        let mut lacking = Vec::new();
        for (path, id) in wanted.iter().filter(|(path, id)| self.there.get(*path) != Some(*id)) {
            let place = self.work.join(path);
            let bytes = if self.missing.contains(id) { None } else { self.contents.read(id)? };
            if let Some(bytes) = bytes {
                place.parent().map_or(Ok(()), std::fs::create_dir_all)?;
                std::fs::write(place, bytes)?;
                continue;
            }
            if self.missing.insert(id.clone()) {
                eprintln!("the repository lacks the content of {path} ({id})");
            }
            if self.there.contains_key(path) {
                std::fs::remove_file(place)?;
            }
            lacking.push(path.clone());
        }
        for path in lacking {
            wanted.remove(&path);
        }
        self.there = wanted;
        Ok(&self.there)
    }

    fn files(&self, commit: &str) -> Result<BlobIds, Fault> {
        let listed = self.git(&["ls-tree", "-r", "-z", commit])?;
        let of_line = |line: &str| {
            let (about, path) = line.split_once('\t')?;
            let mut about = about.split(' ');
            let is_file = about.next().is_some_and(|mode| mode.starts_with("100")) && about.next() == Some("blob");
            is_file.then_some((path.to_owned(), about.next()?.to_owned()))
        };
        Ok(listed.split('\0').filter_map(of_line).collect())
    }

    /// The time of each commit; commits that the repository lacks are left out.
    pub fn times(&self, commits: &[&str]) -> FxHashMap<String, i64> {
        let time = |commit: &str| -> Option<i64> {
            let shown = self.git(&["show", "-s", "--format=%ct", commit]).ok()?;
            shown.trim().parse().ok()
        };
        commits.iter().filter_map(|commit| Some(((*commit).to_owned(), time(commit)?))).collect()
    }

    /// The diff of some files between two commits, without context.
    pub fn diff(&self, before: &str, after: &str, paths: &BTreeSet<String>) -> Result<String, Fault> {
        let how = ["diff", "--no-color", "--no-ext-diff", "--no-renames", "-U0", before, after, "--"];
        let args: Vec<&str> = how.into_iter().chain(paths.iter().map(String::as_str)).collect();
        self.git(&args)
    }

    fn git(&self, args: &[&str]) -> Result<String, Fault> {
        let out = Command::new("git").arg("--git-dir").arg(&self.git_dir).args(args).output()?;
        if !out.status.success() {
            return Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim()).into());
        }
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }
}

/// `git cat-file --batch`, for one content at a time.
struct GitBlobs {
    child: Child,
    ask: Option<ChildStdin>,
    answer: BufReader<ChildStdout>,
}

impl GitBlobs {
    fn new(git_dir: &Path) -> Result<GitBlobs, Fault> {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(git_dir).args(["cat-file", "--batch"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let answer = BufReader::new(child.stdout.take().ok_or("git has no output")?);
        Ok(GitBlobs { ask: child.stdin.take(), answer, child })
    }

    /// `None` if the repository lacks it.
    fn read(&mut self, id: &str) -> Result<Option<Vec<u8>>, Fault> {
        writeln!(self.ask.as_mut().ok_or("git has no input")?, "{id}")?;
        let mut header = String::new();
        self.answer.read_line(&mut header)?;
        let Some(size) = header.trim_end().strip_prefix(&format!("{id} blob ")) else {
            return if header.contains("missing") { Ok(None) } else { Err(format!("git answered `{header}`").into()) };
        };
        let mut bytes = vec![0; size.parse::<usize>()? + 1];
        self.answer.read_exact(&mut bytes)?;
        bytes.pop();
        Ok(Some(bytes))
    }
}

impl Drop for GitBlobs {
    fn drop(&mut self) {
        // The process ends when its input is closed.
        self.ask = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_goes_from_commit_to_commit() {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().join("a+b.git");
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            let who = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
            command.arg("--git-dir").arg(&repo).arg("--work-tree").arg(folder.path().join("from")).args(who).args(args);
            let out = command.output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8_lossy(&out.stdout).trim().to_owned()
        };
        let from = folder.path().join("from");
        std::fs::create_dir_all(from.join("deep/er")).unwrap();
        git(&["init", "-q"]);
        let commit = |files: &[(&str, Option<&str>)]| {
            for (path, text) in files {
                match text {
                    Some(text) => std::fs::write(from.join(path), text).unwrap(),
                    None => std::fs::remove_file(from.join(path)).unwrap(),
                }
            }
            git(&["add", "-A"]);
            git(&["commit", "-qm", "x"]);
            git(&["rev-parse", "HEAD"])
        };
        let first = commit(&[("a", Some("one")), ("deep/er/b", Some("two\r\n"))]);
        let second = commit(&[("a", Some("other")), ("deep/er/b", None), ("c", Some(""))]);
        let mut tree = Tree::new(folder.path(), "a+b", folder.path()).unwrap();
        let read = |path: &str| std::fs::read_to_string(folder.path().join("work").join(path)).ok();
        for _ in 0..2 {
            assert_eq!(tree.check_out(&first).unwrap().len(), 2);
            assert_eq!([read("a"), read("deep/er/b"), read("c")], [Some("one".into()), Some("two\r\n".into()), None]);
            assert_eq!(tree.check_out(&second).unwrap().len(), 2);
            assert_eq!([read("a"), read("c"), read("deep/er/b")], [Some("other".into()), Some(String::new()), None]);
            assert!(!folder.path().join("work/deep").exists());
        }
        // A partial clone lacks a content.
        let id = git(&["rev-parse", &format!("{first}:a")]);
        std::fs::remove_file(repo.join("objects").join(&id[..2]).join(&id[2..])).unwrap();
        let mut tree = Tree::new(folder.path(), "a+b", &folder.path().join("again")).unwrap();
        assert_eq!(tree.check_out(&first).unwrap().keys().collect::<Vec<_>>(), ["deep/er/b"]);
        assert_eq!(tree.times(&[&first, "0000000000000000000000000000000000000000"]).len(), 1);
    }
}
