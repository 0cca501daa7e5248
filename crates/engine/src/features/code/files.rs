//! Lists the files of a working tree that are worth indexing, and reads them.

use super::confined_files::{self, FileNotRead};
use super::encoding::{Decoded, decode};
use super::served;
use super::unsearched;
use ignore::gitignore::Gitignore;
use ignore::{WalkBuilder, WalkState};
use lukasa_code::LanguageId;
use lukasa_model::{Error, ErrorCode, Result};
use parking_lot::Mutex;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Patterns of what is not indexed, besides `.gitignore`; same syntax.
pub const IGNORE_FILE: &str = ".lukasaignore";
/// Maximum bytes of a source that is parsed. Larger ones are usually generated.
pub const SOURCE_BYTES: u64 = 2 << 20;
/// Maximum bytes of a file that is read.
pub const FILE_BYTES: u64 = 32 << 20;
/// Bytes at the start of a text that show whether a program wrote it.
pub const HEAD_BYTES: usize = 8_000;
/// Bytes at the start of a text that may name the language of a script.
const SCRIPT_BYTES: usize = 2_000;
/// Maximum number of diagnostics reported one by one; the rest are counted.
pub const DIAGNOSTICS: usize = 100;

/// A file as the folder listing reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Relative to the root, with `/`.
    pub path: String,
    pub stamp: Stamp,
    /// On a file system that another machine or program serves, which may not answer.
    pub is_served: bool,
}

/// Changes when a file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub size: u64,
    pub modified_ns: i128,
    /// When contents or metadata last changed, which users cannot set back. 0 where the system does not report it.
    pub changed_ns: i128,
}

/// A problem with indexing a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub struct Diagnostic {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    pub what: String,
}

impl Diagnostic {
    pub fn new(path: &str, what: impl Into<String>) -> Diagnostic {
        Diagnostic { path: path.to_owned(), line: None, what: what.into() }
    }
}

/// Lukasa's own files, such as stores, keys and settings within a working tree. No ignore rule can include them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExcludedPaths {
    /// Files and whole folders.
    pub exact: Vec<PathBuf>,
    /// Path prefixes: all files in the same folder whose name begins so.
    pub beginnings: Vec<PathBuf>,
}

impl ExcludedPaths {
    fn holds(&self, path: &Path) -> bool {
        let begins = |with: &PathBuf| {
            let names = path.file_name().and_then(|n| n.to_str()).zip(with.file_name().and_then(|n| n.to_str()));
            path.parent() == with.parent() && names.is_some_and(|(name, beginning)| name.starts_with(beginning))
        };
        self.exact.iter().any(|kept| path == kept) || self.beginnings.iter().any(begins)
    }
}

/// The files below a root.
#[derive(Debug, Default)]
pub struct FileListing {
    /// Sorted.
    pub files: Vec<ListedFile>,
    pub faults: Vec<Diagnostic>,
    /// Folders of third-party or generated code that are left out although no ignore rule excludes them, sorted.
    pub left_out: Vec<String>,
}

/// Lists everything below the root that no ignore rule excludes. Links are not followed.
pub fn list(root: &Path, kept_out: &Arc<ExcludedPaths>) -> Result<FileListing> {
    if !root.is_dir() {
        return Err(Error::not_found(ErrorCode::NoFolder, format!("there is no folder `{}`", root.display()))
            .hint("name the root of a repository, or run this inside one"));
    }
    let found: Mutex<Vec<ListedFile>> = Mutex::default();
    let faults: Mutex<Vec<Diagnostic>> = Mutex::default();
    let left_out: Arc<Mutex<Vec<String>>> = Arc::default();
    walker(root, kept_out, Arc::clone(&left_out)).build_parallel().run(|| {
        let mut own = Gather { found: &found, listed: Vec::new(), device: None };
        let faults = &faults;
        Box::new(move |entry| {
            match entry {
                Ok(entry) => {
                    if entry.file_type().is_some_and(|t| t.is_file())
                        && let Some(path) = relative(root, entry.path())
                    {
                        match entry.metadata() {
                            Ok(metadata) => {
                                let is_served = own.is_served(entry.path(), &metadata);
                                own.listed.push(ListedFile { path, stamp: stamp(&metadata), is_served });
                            }
                            Err(e) => faults.lock().push(Diagnostic::new(&path, format!("cannot be read: {e}"))),
                        }
                    }
                }
                Err(e) => {
                    let path = fault_path(&e).and_then(|p| relative(root, &p)).unwrap_or_default();
                    faults.lock().push(Diagnostic::new(&path, format!("cannot be read: {e}")));
                }
            }
            WalkState::Continue
        })
    });
    let mut found = found.into_inner();
    found.par_sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut faults = faults.into_inner();
    faults.sort();
    let mut left_out = std::mem::take(&mut *left_out.lock());
    left_out.sort();
    Ok(FileListing { files: found, faults, left_out })
}

/// The files that one thread has listed; merged into `found` when the thread ends.
struct Gather<'a> {
    found: &'a Mutex<Vec<ListedFile>>,
    listed: Vec<ListedFile>,
    /// The device of the last file, and whether it is served.
    device: Option<(u64, bool)>,
}

impl Gather<'_> {
    /// Whether a file is on a file system that may not answer.
    fn is_served(&mut self, path: &Path, metadata: &std::fs::Metadata) -> bool {
        let device = device(metadata);
        match self.device {
            Some((last, is_served)) if last == device => is_served,
            _ => self.device.insert((device, served::is_served(path))).1,
        }
    }
}

impl Drop for Gather<'_> {
    fn drop(&mut self) {
        self.found.lock().append(&mut self.listed);
    }
}

/// `left_out` receives the folders that are left out although no ignore rule excludes them.
fn walker(root: &Path, kept_out: &Arc<ExcludedPaths>, left_out: Arc<Mutex<Vec<String>>>) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    let kept_out = Arc::clone(kept_out);
    let (at, taken_in) = (root.to_owned(), TakenIn::below(root));
    builder.hidden(false).follow_links(false).require_git(false).add_custom_ignore_filename(IGNORE_FILE).filter_entry(
        move |entry| {
            let Some(name) = entry.file_name().to_str() else { return true };
            let (depth, path) = (entry.depth(), entry.path());
            // The root itself is always indexed: the user chose it.
            if is_kept_out(name) || (depth > 0 && kept_out.holds(path)) {
                return false;
            }
            let is_beside = |file: &str| path.with_file_name(file).is_file();
            let is_folder = depth > 0 && entry.file_type().is_some_and(|t| t.is_dir());
            if !is_folder || !unsearched::folder(name, depth == 1, is_beside) || taken_in.has(path) {
                return true;
            }
            left_out.lock().extend(relative(&at, path));
            false
        },
    );
    builder
}

/// Folders that `.lukasaignore` at the root includes although they are left out by name.
struct TakenIn(Option<Gitignore>);

impl TakenIn {
    fn below(root: &Path) -> TakenIn {
        let file = root.join(IGNORE_FILE);
        // An invalid pattern is ignored.
        TakenIn(file.is_file().then(|| Gitignore::new(&file).0))
    }

    fn has(&self, folder: &Path) -> bool {
        self.0.as_ref().is_some_and(|rules| rules.matched(folder, true).is_whitelist())
    }
}

/// Whether a folder belongs to a version control system or to Lukasa. These are never indexed, whatever the rules are.
pub fn is_kept_out(name: &str) -> bool {
    matches!(name, ".git" | ".lukasa" | ".hg" | ".svn")
}

fn fault_path(error: &ignore::Error) -> Option<PathBuf> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path.clone()),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => fault_path(err),
        _ => None,
    }
}

/// The key of a file: its path relative to the root, separated by `/`. None if it is not below the root or not UTF-8.
pub fn relative(root: &Path, path: &Path) -> Option<String> {
    // Fast path for the paths of a walk below the root: no need to split and join them.
    #[cfg(unix)]
    if let (Some(root), Some(path)) = (root.to_str(), path.to_str())
        && let Some(inside) = path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'))
        && inside.split('/').all(|part| !matches!(part, "" | "." | ".."))
    {
        return Some(inside.to_owned());
    }
    let inside = path.strip_prefix(root).ok()?;
    let mut text = String::new();
    for part in inside.components() {
        if !text.is_empty() {
            text.push('/');
        }
        text.push_str(part.as_os_str().to_str()?);
    }
    (!text.is_empty()).then_some(text)
}

/// The stamp in the metadata of a file.
pub fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    let modified = metadata.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    Stamp {
        size: metadata.len(),
        modified_ns: modified.and_then(|d| i128::try_from(d.as_nanos()).ok()).unwrap_or(0),
        changed_ns: changed_ns(metadata),
    }
}

#[cfg(unix)]
fn changed_ns(metadata: &std::fs::Metadata) -> i128 {
    use std::os::unix::fs::MetadataExt;
    i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn changed_ns(_: &std::fs::Metadata) -> i128 {
    0
}

#[cfg(unix)]
fn device(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::dev(metadata)
}

#[cfg(not(unix))]
fn device(_: &std::fs::Metadata) -> u64 {
    0
}

/// The text of a file. None if it is not text, with a diagnostic if its name is that of a source.
pub fn text(path: &str, bytes: Vec<u8>, faults: &mut Vec<Diagnostic>) -> Option<Decoded> {
    let decoded = decode(bytes);
    if decoded.is_none() && LanguageId::of(path, "").is_some() {
        faults.push(Diagnostic::new(path, "not text, though its name is that of a source: left out"));
    }
    decoded
}

/// A source to parse. None if its language is unknown, or if it is too large to parse, with a diagnostic.
pub fn source(path: &str, decoded: Decoded, faults: &mut Vec<Diagnostic>) -> Option<(String, LanguageId)> {
    let Decoded { text, fault } = decoded;
    let language = LanguageId::of(path, head(&text, SCRIPT_BYTES))?;
    if text.len() as u64 > SOURCE_BYTES {
        faults.push(Diagnostic::new(path, format!("{} bytes: too large to take apart", text.len())));
        return None;
    }
    faults.extend(fault.map(|fault| Diagnostic::new(path, fault)));
    Some((text, language))
}

/// The beginning of a text.
pub fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Reads a file from disk. A file that cannot be read becomes a diagnostic, not an error.
pub fn load(root: &Path, path: &str, faults: &mut Vec<Diagnostic>) -> Option<Vec<u8>> {
    read(confined_files::read(root, path, FILE_BYTES), path, faults)
}

/// The bytes that were read; otherwise a diagnostic.
pub fn read(
    read: std::result::Result<Vec<u8>, FileNotRead>,
    path: &str,
    faults: &mut Vec<Diagnostic>,
) -> Option<Vec<u8>> {
    read.map_err(|unread| faults.push(Diagnostic::new(path, unread.to_string()))).ok()
}
