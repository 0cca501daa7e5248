//! The identity of a working tree: its root, its branch, and the commit that is checked out.

use super::git::{GitHead, Repository};
use crate::Context;
use crate::names::Origin;
use lukasa_model::transaction::Header;
use lukasa_model::{BranchMode, Error, ErrorCode, ErrorKind, Result, Time};
use lukasa_store::Ledger;
use lukasa_store::ledger::NewBranch;
use std::path::{Path, PathBuf};

pub struct WorkingTree {
    /// Root of the working tree, or the folder itself outside of git.
    pub root: PathBuf,
    pub branch: String,
    pub repository: Option<Repository>,
    pub commit: Option<CheckedOutCommit>,
    /// Whether HEAD is detached.
    pub detached: bool,
    /// Why the checked-out commit cannot be read.
    pub fault: Option<Error>,
}

/// The commit that is checked out.
#[derive(Clone, Debug)]
pub struct CheckedOutCommit {
    pub id: String,
    pub time: Time,
    pub summary: String,
    pub author: String,
}

impl WorkingTree {
    /// Reads the place of a folder. `branch` overrides the git branch.
    pub fn of(path: &Path, branch: Option<&str>) -> Result<WorkingTree> {
        let folder = path.canonicalize().map_err(|e| {
            Error::not_found(ErrorCode::NoFolder, format!("there is no folder `{}`: {e}", path.display()))
                .hint("name the root of a repository, or run this inside one")
        })?;
        if !folder.is_dir() {
            return Err(Error::invalid(ErrorCode::NotAFolder, format!("`{}` is not a folder", path.display()))
                .hint("`lukasa index` takes a folder; one file is indexed with its folder"));
        }
        let Some(repository) = Repository::discover(&folder)? else {
            let branch = branch.unwrap_or("main").to_owned();
            return Ok(WorkingTree {
                root: folder,
                branch,
                repository: None,
                commit: None,
                detached: false,
                fault: None,
            });
        };
        let (head, mut fault) = match (repository.head(), repository.checked_out()) {
            (Ok(head), _) => (head, None),
            // Files on a known branch can be indexed without the commit.
            (Err(e), Some(branch)) => (GitHead { branch: Some(branch), commit: None }, Some(e)),
            (Err(e), None) => return Err(e),
        };
        let Some(root) = repository.work_dir().map(Path::to_owned) else {
            return Err(Error::invalid(ErrorCode::BareRepository, format!("`{}` has no working tree", path.display()))
                .hint("check a branch out, and index that folder"));
        };
        let commit = match head.commit.as_deref().map(|id| repository.commit(id)) {
            Some(Ok(commit)) => Some(CheckedOutCommit {
                id: commit.id,
                time: Time(commit.time_ms * 1_000),
                summary: commit.summary,
                author: commit.author,
            }),
            Some(Err(e)) => {
                fault = Some(e);
                None
            }
            None => None,
        };
        let branch = match branch {
            Some(branch) => branch.to_owned(),
            None => branch_name(&repository, head.branch.as_deref(), head.commit.as_deref()),
        };
        Ok(WorkingTree { root, branch, repository: Some(repository), commit, detached: head.branch.is_none(), fault })
    }

    /// The folder that all worktrees of one clone share. A detached worktree, or a folder outside of git, has its own.
    pub fn clone_dir(&self) -> &Path {
        match &self.repository {
            Some(repository) if !self.detached => repository.common_dir(),
            _ => &self.root,
        }
    }
}

/// Lukasa's name for a git branch. The default branch is `main`, whatever git calls it; other branches keep their
/// names.
fn branch_name(repository: &Repository, branch: Option<&str>, commit: Option<&str>) -> String {
    match (branch, commit) {
        (Some(branch), _) if branch == repository.default_branch() => "main".into(),
        // A git branch named `main` that is not the default branch must not write to Lukasa's `main`.
        (Some("main"), _) => "git-main".into(),
        (Some(branch), _) => branch.to_owned(),
        (None, Some(commit)) => format!("git-{}", &commit[..12.min(commit.len())]),
        (None, None) => "main".into(),
    }
}

/// Creates the branch if it is missing, pinned, so that changes on its parent never alter it. Returns whether it was
/// created.
pub fn ensure_branch(ledger: &Ledger, name: &str, parent: &str, header: &Header) -> Result<bool> {
    if name == "main" {
        return Ok(false);
    }
    match ledger.registry() {
        Ok(registry) => {
            if registry.branch(name).is_ok() {
                return Ok(false);
            }
        }
        Err(e) if e.kind == ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let new = NewBranch {
        name: name.to_owned(),
        parent: parent.to_owned(),
        mode: BranchMode::Pinned,
        description: Some("a git branch".into()),
        ..NewBranch::default()
    };
    match ledger.create_branch(&new, header) {
        Ok(_) => Ok(true),
        // Another process was faster.
        Err(e) if e.code == ErrorCode::BranchExists => Ok(false),
        Err(e) => Err(e),
    }
}

/// The working tree that an agent works in.
#[derive(Clone, Debug, Default)]
pub struct AgentWorktree {
    /// The folder that the agent named, and the root of its working tree.
    folder: Option<PathBuf>,
    pub root: Option<PathBuf>,
    pub branch: Option<String>,
}

impl AgentWorktree {
    /// Reads the working tree of a folder; empty if none is named. A named branch takes precedence.
    pub fn of(path: Option<&str>, branch: Option<&str>) -> Result<AgentWorktree> {
        let Some(path) = path else {
            return Ok(AgentWorktree { branch: branch.map(str::to_owned), ..AgentWorktree::default() });
        };
        let place = WorkingTree::of(Path::new(path), branch)?;
        let folder = Path::new(path).canonicalize().ok();
        Ok(AgentWorktree { folder, root: Some(place.root), branch: Some(place.branch) })
    }

    /// The folder that paths of the caller are relative to.
    pub fn origin(&self, context: &Context<'_>) -> Origin {
        Origin::of(context).moved(self.root.as_deref(), self.folder.as_deref())
    }
}
