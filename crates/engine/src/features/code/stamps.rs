//! Stamps and content ids of the files of a working tree, saved on disk with what a branch recorded of them, so that a
//! new process reads only changed files and need not query the branch for each.
//!
//! Losing the file costs time only.

use super::cache::{checksum, make_folder};
use super::files::Stamp;
use lukasa_model::{Time, Tx};
use lukasa_store::private;
use rustc_hash::{FxHashMap, FxHasher};
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// How long a file must have been unchanged: the coarsest clocks of file systems tick every two seconds.
const SETTLED_NS: i128 = 3_000_000_000;
const FIRST_LINE: &[u8] = b"lukasa stamps 4\n";
const PREFIX: &str = "stamps-";

/// A file as it was read: its content, none if it is not text, and its stamp, none if it was written only just before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampedFile {
    pub path: String,
    pub content: Option<StampedContent>,
    pub stamp: Option<Stamp>,
}

/// The id of a file's content, and a hash of what the branch records of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampedContent {
    pub id: [u8; 20],
    pub facts: String,
}

/// The log position at which a branch recorded exactly these files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampPosition {
    pub branch: String,
    pub tx: Tx,
    /// The hash of the whole log, which identifies it.
    pub hash: [u8; 32],
    /// The latest start of a version of a file.
    pub last_valid: i64,
    pub exact: Option<ExactCommit>,
}

/// The commit that the files were equal to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactCommit {
    pub commit: String,
    /// Files of the commit that only have to exist: they are not text, or not indexed.
    pub others: Vec<String>,
}

/// The contents of the stamp file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedStamps {
    /// None if the branch may have changed since.
    pub as_of: Option<StampPosition>,
    pub seen: Vec<StampedFile>,
}

/// The stamp file of one working tree.
#[derive(Clone, Debug)]
pub struct Stamps {
    file: PathBuf,
    root: PathBuf,
}

impl Stamps {
    /// Worktrees share a cache folder, so each has its own file in it.
    pub fn in_folder(folder: &Path, root: &Path) -> Stamps {
        let mut hasher = FxHasher::default();
        root.hash(&mut hasher);
        Stamps { file: folder.join(format!("{PREFIX}{:016x}", hasher.finish())), root: root.to_owned() }
    }

    /// Reads the stamps. Empty if the file is missing or damaged.
    pub fn read(&self) -> SavedStamps {
        let found = fs::read(&self.file).ok().and_then(|bytes| take_apart(&bytes));
        found.filter(|(root, _)| Path::new(root) == self.root).map(|(_, kept)| kept).unwrap_or_default()
    }

    /// Replaces the stamp file.
    pub fn write(&self, kept: &SavedStamps) -> io::Result<()> {
        // A root that is not UTF-8 has no stamps: its files are read every time.
        let Some(root) = self.root.to_str() else { return Ok(()) };
        let body = postcard::to_allocvec(&(root, kept)).map_err(io::Error::other)?;
        let folder = self.file.parent().unwrap_or(Path::new("."));
        make_folder(folder)?;
        let next = self.file.with_extension(format!("new-{}", std::process::id()));
        private::write(&next, [FIRST_LINE, &checksum(&body).to_le_bytes(), &body].concat())?;
        fs::rename(&next, &self.file)?;
        self.forget_gone(folder);
        Ok(())
    }

    /// Removes the stamps of working trees that no longer exist. Failures are ignored: another process may do the same
    /// at the same time, and the next one removes what is left.
    fn forget_gone(&self, folder: &Path) {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // A name with a dot is a file that is being written.
            if !name.starts_with(PREFIX) || name.contains('.') || path == self.file {
                continue;
            }
            let root = fs::read(&path).ok().and_then(|bytes| take_apart(&bytes)).map(|(root, _)| root);
            if root.is_none_or(|root| !Path::new(&root).exists()) {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

/// Whether a file listed at `time` had been unchanged for a while. If not, it could be written again without a new
/// stamp, and has to be read again.
pub fn is_settled(stamp: &Stamp, time: Time) -> bool {
    stamp.modified_ns.max(stamp.changed_ns) < i128::from(time.0) * 1_000 - SETTLED_NS
}

fn take_apart(bytes: &[u8]) -> Option<(String, SavedStamps)> {
    let (sum, body) = bytes.strip_prefix(FIRST_LINE)?.split_first_chunk::<8>()?;
    (checksum(body).to_le_bytes() == *sum).then(|| postcard::from_bytes(body).ok())?
}

/// Stamps and content ids of text files, by path.
pub fn contents(seen: &[StampedFile]) -> FxHashMap<&str, ([u8; 20], Stamp)> {
    seen.iter().filter_map(|seen| Some((seen.path.as_str(), (seen.content.as_ref()?.id, seen.stamp?)))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failing test says where")]

    use super::*;

    fn seen(path: &str, seconds: u64) -> StampedFile {
        let at = i128::from(seconds) * 1_000_000_000;
        let content = Some(StampedContent { id: [7; 20], facts: "f".into() });
        StampedFile { path: path.into(), content, stamp: Some(Stamp { size: 1, modified_ns: 5, changed_ns: at }) }
    }

    fn kept(seen: &[StampedFile]) -> SavedStamps {
        let exact = Some(ExactCommit { commit: "c1".into(), others: vec!["logo.png".into()] });
        let as_of = StampPosition { branch: "main".into(), tx: Tx(3), hash: [1; 32], last_valid: 5, exact };
        SavedStamps { as_of: Some(as_of), seen: seen.to_vec() }
    }

    #[test]
    fn stamps_are_kept_for_their_own_tree() {
        let (folder, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let stamps = Stamps::in_folder(folder.path(), root.path());
        assert_eq!(stamps.read(), SavedStamps::default());
        let both = kept(&[seen("a", 10), seen("b", 20)]);
        stamps.write(&both).unwrap();
        assert_eq!(stamps.read(), both);
        assert_eq!(Stamps::in_folder(folder.path(), Path::new("/elsewhere")).read(), SavedStamps::default());
    }

    #[test]
    fn stamps_of_format_4_open_and_are_what_this_build_writes() {
        let (folder, root) = (tempfile::tempdir().unwrap(), Path::new("/work tree"));
        let stamps = Stamps::in_folder(folder.path(), root);
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stamps-4");
        let none = StampedFile { path: "logo.png".into(), content: None, stamp: None };
        let whole = kept(&[seen("a", 10), none]);
        fs::copy(&fixture, &stamps.file).unwrap();
        assert_eq!(stamps.read(), whole);
        stamps.write(&whole).unwrap();
        assert_eq!(fs::read(&stamps.file).unwrap(), fs::read(&fixture).unwrap());
        let mut older = fs::read(&fixture).unwrap();
        older[b"lukasa stamps ".len()] = b'3';
        fs::write(&stamps.file, older).unwrap();
        assert_eq!(stamps.read(), SavedStamps::default(), "another format is none");
    }

    #[test]
    fn files_written_just_before_are_not_settled() {
        let now = Time(1_000_000_000);
        let settled = |seconds| is_settled(&seen("a", seconds).stamp.unwrap(), now);
        assert!(settled(10) && settled(996));
        assert!(!settled(997) && !settled(999) && !settled(2_000));
    }

    #[test]
    fn a_damaged_file_counts_as_empty() {
        let (folder, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let stamps = Stamps::in_folder(folder.path(), root.path());
        stamps.write(&kept(&[seen("a", 10)])).unwrap();
        let whole = fs::read(&stamps.file).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            fs::write(&stamps.file, &bytes).unwrap();
            assert_eq!(stamps.read(), SavedStamps::default(), "changed at {at}");
            fs::write(&stamps.file, &whole[..at]).unwrap();
            assert_eq!(stamps.read(), SavedStamps::default(), "cut at {at}");
        }
    }

    #[test]
    fn trees_that_are_gone_are_forgotten() {
        let (folder, root, gone) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let other = Stamps::in_folder(folder.path(), gone.path());
        other.write(&kept(&[seen("a", 10)])).unwrap();
        let stamps = Stamps::in_folder(folder.path(), root.path());
        stamps.write(&kept(&[seen("a", 10)])).unwrap();
        assert!(other.file.exists());
        drop(gone);
        stamps.write(&kept(&[seen("a", 10)])).unwrap();
        assert!(!other.file.exists() && stamps.file.exists());
    }
}
