//! Repositories made for tests, without the `git` program.

#![allow(dead_code, reason = "each test file uses a part")]

use gix::objs::tree::EntryKind;
use gix::{ObjectId, ThreadSafeRepository};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A repository under construction, in a folder that is removed with it.
pub struct Made {
    pub git: gix::Repository,
    /// Resolved, as repositories report their paths.
    pub root: PathBuf,
    _folder: TempDir,
}

impl Made {
    pub fn new() -> Made {
        Made::of(gix::create::Kind::WithWorktree, "work")
    }

    pub fn of(kind: gix::create::Kind, name: &str) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let root = gix::path::realpath(folder.path()).unwrap().join(name);
        fs::create_dir(&root).unwrap();
        let isolated = gix::open::Options::isolated();
        let git = ThreadSafeRepository::init_opts(&root, kind, gix::create::Options::default(), isolated).unwrap();
        Made { git: git.to_thread_local(), root, _folder: folder }
    }

    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.parent().unwrap().join(name)
    }

    pub fn file(&self, path: impl AsRef<Path>, content: impl AsRef<str>) {
        let path = self.git.git_dir().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.as_ref()).unwrap();
    }

    /// Adds a commit with these files to a branch; its time in seconds is the number in its message plus one.
    pub fn commit(&self, branch: &str, n: u32, parents: &[ObjectId], files: &[(&str, EntryKind, &str)]) -> ObjectId {
        let mut tree = self.git.edit_tree(ObjectId::empty_tree(gix::hash::Kind::Sha1)).unwrap();
        for (path, kind, content) in files {
            let id = match kind {
                EntryKind::Commit => ObjectId::from_hex(content.as_bytes()).unwrap(),
                _ => self.git.write_blob(content).unwrap().detach(),
            };
            tree.upsert(*path, *kind, id).unwrap();
        }
        let tree = tree.write().unwrap().detach();
        let author = gix::actor::SignatureRef { name: "Ann".into(), email: "ann@example.org".into(), time: "5 +0100" };
        let time = format!("{} +0000", n + 1);
        let committer = gix::actor::SignatureRef { name: "Bob".into(), email: "bob@example.org".into(), time: &time };
        let message = format!("commit\n{n}\n\nmore\n");
        let commit = self.git.new_commit_as(committer, author, message, tree, parents.iter().copied()).unwrap();
        self.file(format!("refs/heads/{branch}"), format!("{}\n", commit.id));
        commit.id
    }
}
