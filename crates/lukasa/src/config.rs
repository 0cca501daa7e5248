//! Finds the store and the project: flags first, then the environment, then the folder.

use crate::settings;
use clap::ArgMatches;
use lukasa_engine::features::code::files::ExcludedPaths;
use lukasa_engine::features::code::trees::TreeNames;
use lukasa_engine::telemetry::log;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result, Scope};
use lukasa_store::postgres::PostgresConfig;
use lukasa_store::private;
use lukasa_store::sqlite::Durability;
use lukasa_store::{Clock, GuardedClock, MemoryStore, PostgresStore, SqliteStore, Store, SystemClock};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of a project's store, beside `.git`.
const FOLDER: &str = ".lukasa";

/// An opened store, and the project of the command.
pub struct OpenedStore {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub scope: Scope,
    /// None: a database server, or memory.
    pub file: Option<PathBuf>,
    /// The folder the store belongs to.
    pub home: PathBuf,
    /// For derived data that is expensive to compute again. Created on first use.
    pub cache: PathBuf,
    /// Messages for the user.
    pub notes: Vec<String>,
    /// Runs the PostgreSQL client; must outlive the store.
    pub runtime: Option<tokio::runtime::Runtime>,
}

/// What an operation requires of a store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum StoreAccess {
    /// No store is opened: the operation uses its own.
    Nothing,
    Existing,
    MayCreate,
}

/// The chosen store, before it is opened.
pub struct ChosenStore {
    /// None: a database server.
    pub file: Option<PathBuf>,
    pub scope: Scope,
    /// The folder the store belongs to.
    pub home: PathBuf,
}

/// Finds the store. For a store in a file its folder is created, so that processes can agree on its owner.
pub fn chosen_store(matches: &ArgMatches) -> Result<ChosenStore> {
    let named = named_store(matches)?;
    let (file, home) = match named {
        Some(url) if is_postgres(&url) => (None, home(&start(None)?)),
        named => {
            let path =
                named.map_or_else(|| start(None).map(|start| find_store(&start)), |path| Ok(PathBuf::from(path)))?;
            create_folder(&path)?;
            let home = home_of(&path);
            (Some(path), home)
        }
    };
    Ok(ChosenStore { file, scope: scope(matches, &home)?, home })
}

/// The existing store file, if this process works in the tree that it belongs to. `near` as for [`open`].
pub fn existing_store(matches: &ArgMatches, near: Option<&Path>) -> Result<Option<ChosenStore>> {
    let named = text(matches, "store", "LUKASA_STORE");
    if named.as_deref().is_some_and(is_postgres) {
        return Ok(None);
    }
    let path = file_of(named, near)?;
    if path.metadata().map_or(0, |m| m.len()) == 0 {
        return Ok(None);
    }
    let home = home_of(&path);
    // Another process reads sources from the store's own tree. Only this process knows those of another worktree.
    let tree = here()?.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_path_buf);
    let same = |tree: PathBuf| tree.canonicalize().ok() == home.canonicalize().ok();
    if !tree.is_none_or(same) {
        return Ok(None);
    }
    Ok(Some(ChosenStore { file: Some(path), scope: scope(matches, &home)?, home }))
}

fn scope(matches: &ArgMatches, home: &Path) -> Result<Scope> {
    let tenant = text(matches, "tenant", "LUKASA_TENANT").unwrap_or_else(|| "local".into());
    let project = text(matches, "project", "LUKASA_PROJECT");
    Scope::new(tenant, project.unwrap_or_else(|| folder_name(home)))
}

/// Opens the store. `near`: the folder to search from, instead of the current one.
pub fn open(matches: &ArgMatches, need: StoreAccess, near: Option<&Path>) -> Result<OpenedStore> {
    let guarded = |store: Option<&Path>| -> Result<Arc<dyn Clock>> {
        let clock = GuardedClock::new(Arc::new(SystemClock), settings::allows_clock_jump()?, |jump| {
            log::event(log::LogLevel::Warn, "clock.jumped", &[("message", json!(jump.message))]);
        });
        Ok(Arc::new(match store {
            Some(store) => clock.beside(store),
            None => clock,
        }))
    };
    let mut clock = guarded(None)?;
    let named = named_store(matches)?;
    let mut notes = Vec::new();
    let mut file = None;
    let (store, runtime, home): (Arc<dyn Store>, _, _) = match (need, named) {
        (StoreAccess::Nothing, _) => (Arc::new(MemoryStore::new(Arc::clone(&clock))), None, PathBuf::from("demo")),
        (_, Some(url)) if is_postgres(&url) => {
            let runtime = runtime()?;
            let mut config = PostgresConfig::new(&url);
            config.strict = std::env::var("LUKASA_POLICY_STRICT").map_or(true, |v| v != "off");
            let store = PostgresStore::open(&config, runtime.handle().clone(), None)?;
            notes.extend(store.warnings().iter().map(|w| format!("warning: {w}")));
            (Arc::new(store), Some(runtime), home(&start(near)?))
        }
        (_, named) => {
            let path = file_of(named, near)?;
            let home = home_of(&path);
            if path.metadata().map_or(0, |m| m.len()) == 0 {
                if need == StoreAccess::Existing {
                    return Err(Error::not_found(
                        ErrorCode::NoStore,
                        format!("there is no store at `{}`", path.display()),
                    )
                    .hint(
                        "`lukasa index`, `put` or `import` makes one; --store names another; `lukasa demo` needs none",
                    ));
                }
                create_folder(&path)?;
                notes.push(format!("created {}", path.display()));
            }
            clock = guarded(Some(&path))?;
            let store = SqliteStore::open(&path, Arc::clone(&clock), Durability::Full)?;
            file = Some(path);
            (Arc::new(store), None, home)
        }
    };
    let scope = scope(matches, &home)?;
    let cache = home.join(FOLDER).join("cache");
    Ok(OpenedStore { store, clock, scope, file, home, cache, notes, runtime })
}

/// The current working tree: the git root, otherwise the folder of the store if we are inside it, otherwise the current
/// folder.
pub fn working_tree(home: &Path) -> Result<PathBuf> {
    let here = here()?;
    let around = here.canonicalize().unwrap_or_else(|_| here.clone());
    let of_git = around.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_path_buf);
    let of_store = || around.starts_with(home.canonicalize().unwrap_or_default()).then(|| home.to_path_buf());
    Ok(of_git.or_else(of_store).unwrap_or(around))
}

/// Identifies working trees of this machine. `LUKASA_TREE` names one that several machines share.
pub fn tree_names(store: Option<&Path>, home: &Path) -> TreeNames {
    let beside =
        store.and_then(Path::parent).is_some_and(|folder| folder.file_name().is_some_and(|name| name == FOLDER));
    TreeNames {
        machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        home: beside.then(|| home.to_path_buf()),
        name: std::env::var("LUKASA_TREE").ok().filter(|name| !name.is_empty()),
    }
}

/// Our own files that are never indexed: the store with its audit log and keys, and files with secrets. The folder of a
/// store is left out entirely, unless it is the root of the working tree.
pub fn kept_out(store: Option<&Path>, secrets: Vec<PathBuf>) -> ExcludedPaths {
    let real = |path: &Path| {
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        folder.zip(path.file_name()).map_or_else(|| path.to_path_buf(), |(folder, name)| folder.join(name))
    };
    let whole = |path: &Path| real(&std::path::absolute(path).unwrap_or_else(|_| path.into()));
    let mut kept = ExcludedPaths { exact: secrets.iter().map(|path| whole(path)).collect(), beginnings: vec![] };
    if let Some(store) = store.map(whole) {
        kept.exact.extend(store.parent().map(Path::to_path_buf));
        kept.beginnings.extend(["audit.", "clock"].map(|extension| store.with_extension(extension)));
        kept.beginnings.push(store);
    }
    kept
}

/// The store file, whether or not it exists. For stores other than PostgreSQL.
pub fn store_file(matches: &ArgMatches, near: Option<&Path>) -> Result<PathBuf> {
    file_of(named_store(matches)?, near)
}

/// The store named by flag or environment. URLs other than PostgreSQL ones are an error.
fn named_store(matches: &ArgMatches) -> Result<Option<String>> {
    let named = text(matches, "store", "LUKASA_STORE");
    match named {
        Some(url) if url.contains("://") && !is_postgres(&url) => {
            Err(Error::invalid(ErrorCode::InvalidUrl, format!("`{url}` is neither a file nor a PostgreSQL URL"))
                .hint("a store is a file, or looks like postgres://user:password@host:5432/database"))
        }
        named => Ok(named),
    }
}

fn file_of(named: Option<String>, near: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(path) => Ok(PathBuf::from(path)),
        None => Ok(find_store(&start(near)?)),
    }
}

/// Memory for graphs, in bytes.
pub fn graph_memory() -> Result<usize> {
    let Some(text) = std::env::var("LUKASA_GRAPH_MEMORY_MB").ok().filter(|v| !v.is_empty()) else {
        return Ok(lukasa_engine::GRAPH_MEMORY);
    };
    text.parse::<usize>().ok().and_then(|mb| mb.checked_mul(1 << 20)).ok_or_else(|| {
        Error::invalid(
            ErrorCode::InvalidArgument,
            format!("LUKASA_GRAPH_MEMORY_MB: `{text}` is not a number of megabytes"),
        )
    })
}

/// A runtime for surfaces and database clients.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::internal(format!("no runtime: {e}")))
}

pub fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// A flag, otherwise an environment variable.
pub fn text(matches: &ArgMatches, flag: &str, variable: &str) -> Option<String> {
    matches.get_one::<String>(flag).cloned().or_else(|| std::env::var(variable).ok()).filter(|v| !v.is_empty())
}

fn here() -> Result<PathBuf> {
    std::env::current_dir()
        .map_err(|e| Error::new(ErrorKind::Unavailable, ErrorCode::NoFolder, format!("no current folder: {e}")))
}

/// The folder to start searching from.
fn start(near: Option<&Path>) -> Result<PathBuf> {
    match near.and_then(|path| std::fs::canonicalize(path).ok()) {
        Some(folder) if folder.is_dir() => Ok(folder),
        Some(file) => Ok(file.parent().map(Path::to_path_buf).unwrap_or(file)),
        None => here(),
    }
}

/// The nearest store in the folder or its ancestors. Otherwise the path of a new one: at the root of the repository (of
/// the main one for a worktree), or here.
fn find_store(start: &Path) -> PathBuf {
    let file = |folder: &Path| folder.join(FOLDER).join("lukasa.db");
    start.ancestors().map(file).find(|path| path.exists()).unwrap_or_else(|| file(&home(start)))
}

/// The root of the repository that contains a folder; for a linked worktree, that of the main one. Otherwise the folder
/// itself.
fn home(start: &Path) -> PathBuf {
    for folder in start.ancestors() {
        let git = folder.join(".git");
        if git.is_dir() {
            return folder.to_path_buf();
        }
        if let Ok(text) = std::fs::read_to_string(&git)
            && let Some(target) = text.trim().strip_prefix("gitdir: ")
        {
            // …/main/.git/worktrees/name: all worktrees share one store.
            let target = folder.join(target);
            let shared = target.parent().filter(|p| p.ends_with("worktrees")).and_then(Path::parent);
            let Some(shared) = shared else { return folder.to_path_buf() };
            // A bare repository has no main working tree: the store is in `repo.git` itself, but for `repo/.bare` in
            // `repo`.
            let hidden = shared.file_name().and_then(|n| n.to_str()).is_some_and(|name| name.starts_with('.'));
            let main = if hidden { shared.parent() } else { None };
            return main.unwrap_or(shared).to_path_buf();
        }
    }
    // Without a repository, a folder below the current one belongs to the current one.
    match here() {
        Ok(here) if start.starts_with(&here) => here,
        _ => start.to_path_buf(),
    }
}

/// The folder a store belongs to: the parent of `.lukasa`, or the folder of the file.
fn home_of(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    match folder.file_name() {
        Some(name) if name == FOLDER => folder.parent().map(Path::to_path_buf).unwrap_or_default(),
        _ => folder,
    }
}

fn folder_name(folder: &Path) -> String {
    folder.file_name().and_then(|n| n.to_str()).filter(|n| !n.is_empty()).unwrap_or("project").to_string()
}

fn create_folder(path: &Path) -> Result<()> {
    let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) else { return Ok(()) };
    let fault = |e: std::io::Error| {
        Error::new(
            ErrorKind::Unavailable,
            ErrorCode::ReadOnlyStore,
            format!("`{}` cannot be made: {e}", folder.display()),
        )
        .hint("check the permissions of the folder, or name another place with --store")
    };
    private::create_dir_all(folder).map_err(fault)?;
    if folder.file_name().is_some_and(|n| n == FOLDER) {
        // Facts are not sources: keeps them out of commits.
        private::write(&folder.join(".gitignore"), "*\n").map_err(fault)?;
    }
    Ok(())
}
