//! References by the `git` program, for repositories that keep them as a reftable, which gix cannot read.

use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variables that may name another repository, for example in a hook; `git rev-parse --local-env-vars` lists them.
const VARIABLES: [&str; 14] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Exit codes of git for a name that does not exist, and for a repository that cannot be read.
const UNKNOWN: i32 = 1;
const FATAL: i32 = 128;

/// The references of one repository, read by the `git` program. It is only run to read them, with commands that start
/// no other program.
pub struct GitProgram {
    git_dir: PathBuf,
}

impl GitProgram {
    /// Fails where there is no `git` program, or where it cannot read the repository either.
    pub fn new(git_dir: &Path) -> Result<GitProgram> {
        let program = GitProgram { git_dir: git_dir.to_owned() };
        match program.run(&["rev-parse", "--git-dir"])? {
            Ok(_) => Ok(program),
            Err(why) => Err(unsupported(git_dir, &why)),
        }
    }

    /// The full name of the branch that is checked out. None when detached.
    pub fn checked_out(&self) -> Result<Option<String>> {
        self.optional(&["symbolic-ref", "--quiet", "HEAD"])
    }

    /// The id of the commit that HEAD points to. None before the first commit.
    pub fn head(&self) -> Result<Option<String>> {
        self.optional(&["rev-parse", "--quiet", "--verify", "HEAD"])
    }

    /// What a symbolic reference points to. None if there is no such reference.
    pub fn target(&self, name: &str) -> Result<Option<String>> {
        self.optional(&["symbolic-ref", "--quiet", name])
    }

    /// Whether a reference exists.
    pub fn exists(&self, name: &str) -> Result<bool> {
        Ok(self.run(&["show-ref", "--verify", "--quiet", name])?.is_ok())
    }

    /// The short names of up to two branches.
    pub fn branches(&self) -> Result<Vec<String>> {
        let listed = self.optional(&["for-each-ref", "--count=2", "--format=%(refname:lstrip=2)", "refs/heads"])?;
        Ok(listed.unwrap_or_default().lines().map(str::to_owned).collect())
    }

    /// The id of the object that a revision such as `main~3` names. None if there is none.
    pub fn resolve(&self, spec: &str) -> Result<Option<String>> {
        // An empty text would stand for nothing at all.
        if spec.is_empty() {
            return Ok(None);
        }
        let found = self.run(&["rev-parse", "--quiet", "--verify", "--end-of-options", spec])?;
        // A range has more than one line.
        Ok(found.ok().filter(|ids| !ids.contains('\n') && !ids.starts_with('^')))
    }

    /// What a command prints. None if it reports, by its exit code, that there is nothing.
    fn optional(&self, arguments: &[&str]) -> Result<Option<String>> {
        match self.run_for(arguments)? {
            (Some(0), printed, _) => Ok(Some(printed)),
            (Some(UNKNOWN), ..) => Ok(None),
            (_, _, why) => Err(self.unreadable(&why)),
        }
    }

    /// What a command prints, or what it reports where it fails.
    fn run(&self, arguments: &[&str]) -> Result<std::result::Result<String, String>> {
        match self.run_for(arguments)? {
            (Some(0), printed, _) => Ok(Ok(printed)),
            (Some(UNKNOWN | FATAL), _, why) => Ok(Err(why)),
            (_, _, why) => Err(self.unreadable(&why)),
        }
    }

    /// The exit code of a command, what it prints, and what it reports.
    fn run_for(&self, arguments: &[&str]) -> Result<(Option<i32>, String, String)> {
        let mut command = Command::new("git");
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        command.arg("--git-dir").arg(&self.git_dir).args(arguments).current_dir(&self.git_dir).stdin(Stdio::null());
        let out = command.output().map_err(|e| unsupported(&self.git_dir, &format!("`git` cannot be run: {e}")))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ok((out.status.code(), text(&out.stdout), text(&out.stderr)))
    }

    fn unreadable(&self, why: &str) -> Error {
        let message = format!("git cannot read the references of `{}`: {why}", self.git_dir.display());
        Error::new(ErrorKind::Unavailable, ErrorCode::UnreadableRepository, message)
            .hint("`git fsck` there says what is wrong")
    }
}

fn unsupported(git_dir: &Path, why: &str) -> Error {
    let message = format!("the repository at `{}` keeps its references as a reftable: {why}", git_dir.display());
    Error::new(ErrorKind::Unsupported, ErrorCode::UnsupportedRepository, message)
        .hint("install git 2.45 or later, or convert it with `git refs migrate --ref-format=files`")
}
