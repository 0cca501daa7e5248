//! Reads git repositories without writing to them, and without the `git` program unless references need it.

mod program;

use gix::bstr::{BStr, ByteSlice};
use gix::objs::tree::EntryMode;
use gix::open::{Options, Permissions, permissions};
use gix::prelude::ObjectIdExt;
use gix::revision::spec::parse::{Error as SpecError, ObjectKindHint, Options as SpecOptions};
use gix::sec::trust::{DefaultForLevel, Mapping};
use gix::sec::{Permission, Trust};
use gix::{ObjectId, ThreadSafeRepository};
use gix_diff::tree::recorder::Change as Difference;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use program::GitProgram;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The branch that a clone has as its default one.
const ORIGIN_HEAD: &str = "refs/remotes/origin/HEAD";

/// A repository open for reading, from any number of threads.
pub struct Repository {
    shared: ThreadSafeRepository,
    work_dir: Option<PathBuf>,
    common_dir: PathBuf,
    linked: bool,
    /// Reads the references, if they are not kept as files.
    program: Option<GitProgram>,
}

/// How a repository names its objects.
///
/// We name a content by twenty bytes: all of an id by SHA-1, and the first twenty of one by SHA-256, which leave as
/// little chance of two equal ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObjectFormat {
    #[default]
    Sha1,
    Sha256,
}

impl ObjectFormat {
    const ALL: [ObjectFormat; 2] = [ObjectFormat::Sha1, ObjectFormat::Sha256];

    /// The id of a blob with this content.
    pub fn blob_id(self, content: &[u8]) -> [u8; 20] {
        let kind = match self {
            ObjectFormat::Sha1 => gix::hash::Kind::Sha1,
            ObjectFormat::Sha256 => gix::hash::Kind::Sha256,
        };
        match gix::objs::compute_hash(kind, gix::objs::Kind::Blob, content) {
            Ok(id) => bytes(id),
            // A forged SHA-1 collision, which git refuses: any id will do, except the one that collides.
            Err(_) => {
                let mut id = [0; 20];
                id.copy_from_slice(&Sha256::digest(content)[..20]);
                id
            }
        }
    }
}

/// Whether the id is that of a blob with this content, in a repository of either format.
pub fn is_blob_id(id: &[u8; 20], content: &[u8]) -> bool {
    ObjectFormat::ALL.iter().any(|format| format.blob_id(content) == *id)
}

/// The checked-out branch and commit of a working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitHead {
    /// Short name; none when detached.
    pub branch: Option<String>,
    /// None before the first commit of the branch.
    pub commit: Option<String>,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitCommit {
    /// 40 hexadecimal digits, or 64 where objects are named by SHA-256.
    pub id: String,
    /// When it was committed.
    pub time_ms: i64,
    /// Empty where a shallow clone ends, as in git.
    pub parents: Vec<String>,
    /// The first paragraph of the message, on one line.
    pub summary: String,
    /// `Name <address>`
    pub author: String,
}

/// A file of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    pub id: [u8; 20],
    pub executable: bool,
    /// A symbolic link; its content is the target path.
    pub symlink: bool,
}

/// A file that differs. Both ids are equal if only the mode changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: String,
    pub before: Option<[u8; 20]>,
    pub after: Option<[u8; 20]>,
}

impl Repository {
    /// The repository that contains a folder, or that the folder is. None if there is none.
    pub fn discover(path: &Path) -> Result<Option<Repository>> {
        let start = gix::path::realpath(path).ok().filter(|p| p.is_dir()).ok_or_else(|| {
            Error::invalid(ErrorCode::NotAFolder, format!("`{}` is not a folder", path.display()))
                .hint("name a folder that exists and may be read")
        })?;
        let shared = match ThreadSafeRepository::discover_opts(&start, Default::default(), options()) {
            Ok(shared) => Some(shared),
            Err(e) if is_nowhere(&e) => None,
            Err(e) => return Err(cannot_open(&start, &e)),
        };
        let found = shared.as_ref().map(|r| r.work_dir().unwrap_or(r.git_dir()));
        if let Some(link) = dangling_link(&start, found) {
            let message = format!("`{}` leads to no repository", link.display());
            return Err(unreadable(message).hint("`git worktree repair` or `git submodule update --init` mends it"));
        }
        shared.map(Repository::new).transpose()
    }

    fn new(shared: ThreadSafeRepository) -> Result<Repository> {
        let local = shared.to_thread_local();
        let storage = local.config_snapshot().string("extensions.refStorage");
        let program = match storage.as_ref().map(|storage| storage.to_string()).as_deref() {
            None | Some("files") => None,
            Some("reftable") => Some(GitProgram::new(shared.git_dir())?),
            Some(_) => {
                return Err(unsupported(shared.git_dir(), "keeps its references in a way that is not supported")
                    .hint("`git refs migrate --ref-format=files` converts it"));
            }
        };
        // Resolved, because git writes resolved paths into linked worktrees: this way both have the same shared folder.
        let real = |path: &Path| gix::path::realpath(path).unwrap_or_else(|_| path.to_owned());
        let (git_dir, common_dir) = (real(local.git_dir()), real(local.common_dir()));
        let work_dir = local.workdir().map(real);
        Ok(Repository { linked: git_dir != common_dir, shared, work_dir, common_dir, program })
    }

    /// Root of the working tree; a bare repository has none.
    pub fn work_dir(&self) -> Option<&Path> {
        self.work_dir.as_deref()
    }

    /// The folder with the HEAD of this working tree.
    pub fn git_dir(&self) -> &Path {
        self.shared.git_dir()
    }

    /// Whether the working tree is a linked one, made by `git worktree add`.
    pub fn is_worktree(&self) -> bool {
        self.linked
    }

    /// The folder that all working trees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    pub fn object_format(&self) -> ObjectFormat {
        match self.shared.to_thread_local().object_hash() {
            gix::hash::Kind::Sha256 => ObjectFormat::Sha256,
            _ => ObjectFormat::Sha1,
        }
    }

    /// Reads HEAD.
    pub fn head(&self) -> Result<GitHead> {
        if let Some(program) = &self.program {
            let branch = program.checked_out()?.map(|name| short(&name).to_owned());
            return Ok(GitHead { branch, commit: program.head()? });
        }
        let repo = self.shared.to_thread_local();
        let mut head = repo.head().map_err(failed)?;
        let branch = head.referent_name().map(|name| text(name.shorten()));
        let commit = head.try_peel_to_id().map_err(failed)?.map(|id| id.to_string());
        Ok(GitHead { branch, commit })
    }

    /// The branch that is checked out, also when its commit cannot be read. None when detached.
    pub fn checked_out(&self) -> Option<String> {
        if let Some(program) = &self.program {
            return program.checked_out().ok()?.map(|name| short(&name).to_owned());
        }
        let repo = self.shared.to_thread_local();
        let head = repo.head().ok()?;
        head.referent_name().map(|name| text(name.shorten()))
    }

    /// The default branch: that of `origin` if it is known, else the most likely one.
    pub fn default_branch(&self) -> String {
        let repo = self.shared.to_thread_local();
        let exists = |name: &str| {
            let full = format!("refs/heads/{name}");
            match &self.program {
                Some(program) => program.exists(&full).unwrap_or(false),
                None => repo.try_find_reference(full.as_str()).is_ok_and(|found| found.is_some()),
            }
        };
        let origin = match &self.program {
            Some(program) => program.target(ORIGIN_HEAD).ok().flatten(),
            None => repo
                .try_find_reference(ORIGIN_HEAD)
                .ok()
                .flatten()
                .and_then(|reference| Some(text(reference.target().try_name()?.as_bstr()))),
        };
        let origin = origin.and_then(|name| Some(name.strip_prefix("refs/remotes/origin/")?.to_owned()));
        let configured = repo.config_snapshot().string("init.defaultBranch").map(|name| text(name.as_bstr()));
        let usual = configured.iter().map(String::as_str).chain(["main", "master"]).find(|name| exists(name));
        origin
            .or_else(|| usual.map(str::to_owned))
            .or_else(|| self.only_branch(&repo))
            .or_else(|| self.head().ok()?.branch)
            .or(configured)
            .unwrap_or_else(|| "main".to_owned())
    }

    /// Resolves a full or short id, a branch, a tag, or any other git revision such as `HEAD~3`.
    pub fn commit(&self, spec: &str) -> Result<GitCommit> {
        let repo = self.shared.to_thread_local();
        describe(&self.resolve(&repo, spec)?, &Boundary::of(&repo)?)
    }

    /// Up to `n` commits, newest first, from `from` along first parents.
    pub fn first_parents(&self, from: &str, n: usize) -> Result<Vec<GitCommit>> {
        let repo = self.shared.to_thread_local();
        let boundary = Boundary::of(&repo)?;
        let mut next = if n == 0 { None } else { Some(self.resolve(&repo, from)?) };
        let mut commits = Vec::new();
        while let Some(commit) = next {
            let described = describe(&commit, &boundary)?;
            next = match commit.parent_ids().next() {
                Some(parent) if !described.parents.is_empty() && commits.len() + 1 < n => {
                    Some(repo.find_commit(parent).map_err(failed)?)
                }
                _ => None,
            };
            commits.push(described);
        }
        Ok(commits)
    }

    /// Every file of a commit by its path, separated by `/`. Submodules are left out.
    pub fn tree(&self, commit: &str) -> Result<BTreeMap<String, TreeEntry>> {
        let repo = self.shared.to_thread_local();
        let tree = self.resolve(&repo, commit)?.tree().map_err(failed)?;
        let entries = tree.traverse().breadthfirst.files().map_err(failed)?;
        let files = entries.into_iter().filter(|entry| is_file(entry.mode));
        Ok(files.map(|e| (text(e.filepath.as_bstr()), entry(e.mode, e.oid))).collect())
    }

    /// Files that differ between two commits, by path. Equal folders are not read. A moved file is one removed and one
    /// added.
    pub fn changes(&self, a: &str, b: &str) -> Result<Vec<ChangedFile>> {
        let repo = self.shared.to_thread_local();
        let tree = |spec: &str| self.resolve(&repo, spec)?.tree().map_err(failed);
        let (a, b) = (tree(a)?, tree(b)?);
        let (a, b) = (raw(&a), raw(&b));
        let mut recorder = gix_diff::tree::Recorder::default();
        gix_diff::tree(a, b, gix_diff::tree::State::default(), &repo.objects, &mut recorder)
            .map_err(|e| failed(gix::Error::from_error(e)))?;
        let id = |mode, oid: ObjectId| is_file(mode).then(|| bytes(oid));
        let mut changes = BTreeMap::<String, (Option<[u8; 20]>, Option<[u8; 20]>)>::new();
        for difference in recorder.records {
            let (path, before, after) = match difference {
                Difference::Addition { entry_mode, oid, path, .. } => (path, None, id(entry_mode, oid)),
                Difference::Deletion { entry_mode, oid, path, .. } => (path, id(entry_mode, oid), None),
                Difference::Modification { previous_entry_mode, previous_oid, entry_mode, oid, path } => {
                    (path, id(previous_entry_mode, previous_oid), id(entry_mode, oid))
                }
            };
            if before.is_some() || after.is_some() {
                let change = changes.entry(text(path.as_bstr())).or_default();
                *change = (before.or(change.0), after.or(change.1));
            }
        }
        Ok(changes.into_iter().map(|(path, (before, after))| ChangedFile { path, before, after }).collect())
    }

    /// Reads a blob by its id. May be called from many threads at once.
    pub fn blob(&self, id: [u8; 20]) -> Result<Vec<u8>> {
        let repo = self.shared.to_thread_local();
        let mut blob = repo.find_blob(full_id(&repo, id)?).map_err(failed)?;
        Ok(blob.take_data())
    }

    /// The size of a blob in bytes, without reading it.
    pub fn blob_size(&self, id: [u8; 20]) -> Result<u64> {
        let repo = self.shared.to_thread_local();
        let header = repo.find_header(full_id(&repo, id)?).map_err(failed)?;
        Ok(header.size())
    }

    /// The best common ancestor of two commits. None if their histories are unrelated.
    pub fn merge_base(&self, a: &str, b: &str) -> Result<Option<String>> {
        let repo = self.shared.to_thread_local();
        let (a, b) = (self.resolve(&repo, a)?.id, self.resolve(&repo, b)?.id);
        Ok(repo.merge_base(a, b).map_err(failed)?.map(|id| id.to_string()))
    }

    fn only_branch(&self, repo: &gix::Repository) -> Option<String> {
        if let Some(program) = &self.program {
            let mut branches = program.branches().ok()?;
            return branches.pop().filter(|_| branches.is_empty());
        }
        let references = repo.references().ok()?;
        let mut branches = references.local_branches().ok()?.flatten();
        let first = branches.next()?;
        branches.next().is_none().then(|| text(first.name().shorten()))
    }

    fn resolve<'a>(&self, repo: &'a gix::Repository, spec: &str) -> Result<gix::Commit<'a>> {
        let Some(program) = self.program.as_ref().filter(|_| ObjectId::from_hex(spec.as_bytes()).is_err()) else {
            return resolve(repo, spec);
        };
        let id = program.resolve(spec)?.ok_or_else(|| unknown_commit(format!("no commit is `{spec}`")))?;
        resolve(repo, &id)
    }
}

/// The id of a blob with this content where objects are named by SHA-1, and outside of git.
pub fn blob_id(content: &[u8]) -> [u8; 20] {
    ObjectFormat::Sha1.blob_id(content)
}

/// The id as the repository has it, from the bytes that we keep.
fn full_id(repo: &gix::Repository, id: [u8; 20]) -> Result<ObjectId> {
    if repo.object_hash() != gix::hash::Kind::Sha256 {
        return Ok(ObjectId::Sha1(id));
    }
    let mut begins = [0; 32];
    begins[..20].copy_from_slice(&id);
    let begins = ObjectId::Sha256(begins);
    match lookup(repo, &begins, 40)? {
        Some(Ok(id)) => Ok(id),
        // Not there: the caller's search for it reports that.
        _ => Ok(begins),
    }
}

/// The id of a commit by SHA-256 from its first digits, which gix takes for the beginning of one by SHA-1. None if the
/// text is no such beginning, or of no object.
fn short_id(repo: &gix::Repository, spec: &str) -> Result<Option<ObjectId>> {
    let is_short = (4..64).contains(&spec.len()) && spec.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_short || repo.object_hash() != gix::hash::Kind::Sha256 {
        return Ok(None);
    }
    let Ok(begins) = ObjectId::from_hex(format!("{spec:0<64}").as_bytes()) else { return Ok(None) };
    match lookup(repo, &begins, spec.len())? {
        Some(Ok(id)) => Ok(Some(id)),
        Some(Err(())) => Err(ambiguous_commit(spec)),
        None => Ok(None),
    }
}

/// The object whose id begins with these digits: an error if there are several.
fn lookup(
    repo: &gix::Repository,
    begins: &ObjectId,
    digits: usize,
) -> Result<Option<std::result::Result<ObjectId, ()>>> {
    let prefix = gix::hash::Prefix::new(begins, digits).map_err(failed)?;
    repo.objects.lookup_prefix(prefix, None).map_err(failed)
}

/// The name of a branch without `refs/heads/`.
fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

/// Commits whose parents a shallow clone left out.
struct Boundary(Option<gix::shallow::Commits>);

impl Boundary {
    fn of(repo: &gix::Repository) -> Result<Boundary> {
        repo.shallow_commits().map(Boundary).map_err(failed)
    }

    fn has(&self, id: &ObjectId) -> bool {
        self.0.as_ref().is_some_and(|commits| commits.iter().any(|c| c == id))
    }
}

/// Options for opening a repository. System and user configuration apply, as for `init.defaultBranch`. `GIT_DIR` and
/// similar variables do not: in a hook they may name another repository.
fn options() -> Mapping<Options> {
    let allowed = Permissions {
        env: permissions::Environment {
            home: Permission::Allow,
            xdg_config_home: Permission::Allow,
            ..permissions::Environment::isolated()
        },
        config: permissions::Config { git_binary: false, env: false, ..permissions::Config::all() },
        attributes: permissions::Attributes::isolated(),
    };
    let of = |trust| Options::default_for_level(trust).permissions(allowed);
    Mapping { full: of(Trust::Full), reduced: of(Trust::Reduced) }
}

fn is_nowhere(error: &gix::Error) -> bool {
    use gix::discover::upwards::Error::{NoGitRepository, NoGitRepositoryWithinCeiling, NoGitRepositoryWithinFs};
    matches!(
        error.downcast_any_ref(),
        Some(NoGitRepository { .. } | NoGitRepositoryWithinCeiling { .. } | NoGitRepositoryWithinFs { .. })
    )
}

/// A `.git` file between a folder and the repository found above it. The repository it points to is gone, and the one
/// above does not track the folder.
fn dangling_link(start: &Path, found: Option<&Path>) -> Option<PathBuf> {
    // A working tree elsewhere was named by the repository itself, so no `.git` file was skipped on the way.
    if found.is_some_and(|found| !start.starts_with(found)) {
        return None;
    }
    let below = start.ancestors().take_while(|folder| Some(*folder) != found);
    below.map(|folder| folder.join(".git")).find(|link| link.is_file())
}

fn resolve<'a>(repo: &'a gix::Repository, spec: &str) -> Result<gix::Commit<'a>> {
    let unknown = unknown_commit;
    let options = SpecOptions { object_kind_hint: Some(ObjectKindHint::Committish), ..SpecOptions::default() };
    let id = match gix::revision::Spec::from_bstr(spec.as_bytes().as_bstr(), repo, options) {
        Ok(parsed) => parsed.single().ok_or_else(|| unknown(format!("`{spec}` is not one commit")))?,
        Err(e) if matches!(e.downcast_any_ref(), Some(SpecError::AmbiguousPrefix { .. })) => {
            return Err(ambiguous_commit(spec));
        }
        Err(e) if is_of_the_spec(&e) => match short_id(repo, spec)? {
            Some(id) => id.attach(repo),
            None => return Err(unknown(format!("no commit is `{spec}`"))),
        },
        Err(e) => return Err(failed(e)),
    };
    let object = match id.object() {
        Ok(object) => object,
        Err(e) if e.is_not_found() => return Err(unknown(format!("no commit is `{spec}`"))),
        Err(e) => return Err(failed(e)),
    };
    match object.peel_to_kind(gix::objs::Kind::Commit) {
        Ok(object) => Ok(object.into_commit()),
        Err(e) if e.is_corrupted() => Err(failed(e)),
        Err(_) => Err(unknown(format!("`{spec}` is not a commit"))),
    }
}

fn ambiguous_commit(spec: &str) -> Error {
    Error::invalid(ErrorCode::AmbiguousCommit, format!("more than one commit begins with `{spec}`"))
        .hint("give more digits of its id")
}

fn unknown_commit(message: String) -> Error {
    Error::not_found(ErrorCode::UnknownCommit, message).hint("give an id, branch or tag that `git log` knows here")
}

/// Whether the revision text is at fault and not the repository. Text that cannot be parsed has no error class.
fn is_of_the_spec(error: &gix::Error) -> bool {
    let unclassed = error.dominant_class().is_none() && error.downcast_any_ref::<std::io::Error>().is_none();
    unclassed || error.is_not_found() || error.is_validation()
}

fn describe(commit: &gix::Commit<'_>, boundary: &Boundary) -> Result<GitCommit> {
    let parents = if boundary.has(&commit.id) { None } else { Some(commit.parent_ids()) };
    let author = commit.author().map_err(failed)?;
    Ok(GitCommit {
        id: commit.id.to_string(),
        time_ms: commit.committer().map_err(failed)?.seconds().saturating_mul(1_000),
        parents: parents.into_iter().flatten().map(|id| id.to_string()).collect(),
        summary: text(commit.message().map_err(failed)?.summary().as_ref()),
        author: format!("{} <{}>", author.name, author.email),
    })
}

fn raw<'a>(tree: &'a gix::Tree<'_>) -> gix::objs::TreeRefIter<'a> {
    gix::objs::TreeRefIter::from_bytes(&tree.data, tree.id.kind())
}

/// Whether the entry has content, unlike folders and submodules.
fn is_file(mode: EntryMode) -> bool {
    mode.is_blob_or_symlink()
}

fn entry(mode: EntryMode, id: ObjectId) -> TreeEntry {
    TreeEntry { id: bytes(id), executable: mode.is_executable(), symlink: mode.is_link() }
}

fn bytes(id: ObjectId) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes.copy_from_slice(&id.as_slice()[..20]);
    bytes
}

/// Converts a name to UTF-8, replacing invalid bytes.
fn text(name: &BStr) -> String {
    name.to_str_lossy().into_owned()
}

fn unreadable(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, ErrorCode::UnreadableRepository, message)
}

fn unsupported(path: &Path, why: &str) -> Error {
    let message = format!("the repository at `{}` {why}", path.display());
    Error::new(ErrorKind::Unsupported, ErrorCode::UnsupportedRepository, message)
}

fn cannot_open(path: &Path, error: &gix::Error) -> Error {
    if error.is_unsupported() {
        return unsupported(path, &format!("has a format that is not supported: {}", error.probable_cause()))
            .hint("repositories with ids by SHA-1 and SHA-256 can be read");
    }
    unreadable(format!("the repository of `{}` cannot be opened: {}", path.display(), error.probable_cause()))
        .hint("`git status` there says what is wrong")
}

fn failed(error: gix::Error) -> Error {
    let cause = error.probable_cause();
    if error.is_not_found() {
        return Error::not_found(
            ErrorCode::MissingObject,
            format!("the git repository lacks what it should have: {cause}"),
        )
        .hint("a partial clone has it after `git fetch --refetch`; else `git fsck` says what is missing");
    }
    unreadable(format!("the git repository cannot be read: {cause}")).hint("`git fsck` there says what is wrong")
}
