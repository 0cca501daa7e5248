//! The text of files as they were when they were indexed: from the working tree, or from git.

use super::confined_files;
use super::encoding::decode;
use super::files::FILE_BYTES;
use super::git::{self, Repository};
use super::timed_read::{PendingReads, READ_LIMIT};
use crate::convert::to_usize;
use lukasa_model::{Result, Scope};
use parking_lot::RwLock;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Working trees that files may be read from, by project.
#[derive(Default)]
pub struct Sources {
    roots: RwLock<Vec<(Scope, Arc<Root>)>>,
}

struct Root {
    path: PathBuf,
    repository: Option<Repository>,
    reads: PendingReads,
}

impl Root {
    /// Reads a file. Its key comes from a fact, which any client with write access can record, so only regular files of
    /// this folder, of a size that would be indexed, are read, and only as long as the file system answers.
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let (root, key) = (self.path.clone(), path.to_owned());
        self.reads.within(READ_LIMIT, move || confined_files::read(&root, &key, FILE_BYTES).ok())?
    }
}

impl Sources {
    /// Allows a project to read from this folder, and from its repository.
    pub fn add(&self, scope: &Scope, path: &Path) -> Result<()> {
        if self.roots.read().iter().any(|(of, root)| of == scope && root.path == path) {
            return Ok(());
        }
        let repository = Repository::discover(path)?;
        self.roots.write().push((
            scope.clone(),
            Arc::new(Root { path: path.to_owned(), repository, reads: PendingReads::default() }),
        ));
        Ok(())
    }

    fn of(&self, scope: &Scope) -> Vec<Arc<Root>> {
        self.roots.read().iter().filter(|(of, _)| of == scope).map(|(_, root)| Arc::clone(root)).collect()
    }

    /// Whether the file on disk has the content with this id. None if no root has a file of this name that may be read.
    pub fn is_same_on_disk(&self, scope: &Scope, path: &str, id: &[u8; 20]) -> Option<bool> {
        let roots = self.of(scope);
        let on_disk = roots.iter().filter_map(|root| root.read(path));
        on_disk.map(|bytes| git::is_blob_id(id, &bytes)).reduce(|one, other| one || other)
    }

    /// The content with this git blob id. None if no root has it any more: another text than the one that was indexed
    /// would put wrong lines into answers.
    pub fn text(&self, scope: &Scope, path: &str, id: &[u8; 20]) -> Option<String> {
        if !confined_files::is_beneath(path) {
            return None;
        }
        let roots = self.of(scope);
        let on_disk = roots.iter().filter_map(|root| root.read(path));
        let in_git = roots.iter().filter_map(|root| {
            let repository = root.repository.as_ref()?;
            repository.blob_size(*id).is_ok_and(|bytes| bytes <= FILE_BYTES).then(|| repository.blob(*id).ok())?
        });
        let bytes = on_disk.filter(|bytes| git::is_blob_id(id, bytes)).chain(in_git).next()?;
        Some(decode(bytes)?.text)
    }
}

/// The lines from `first` to `last`, counted from 1, unchanged.
pub fn lines(text: &str, first: u64, last: u64) -> &str {
    let start_of = |line: u64| {
        let before = to_usize(line.saturating_sub(1));
        if before == 0 { Some(0) } else { text.match_indices('\n').nth(before - 1).map(|(at, _)| at + 1) }
    };
    let Some(from) = start_of(first) else { return "" };
    let to = start_of(last + 1).unwrap_or(text.len());
    text.get(from..to.max(from)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_exactly() {
        let text = "a\nb\n\nd";
        for (first, last, expected) in
            [(1, 1, "a\n"), (2, 3, "b\n\n"), (4, 4, "d"), (1, 9, text), (5, 9, ""), (0, 1, "a\n"), (3, 2, "")]
        {
            assert_eq!(lines(text, first, last), expected, "{first}..{last}");
        }
        assert_eq!(lines("", 1, 1), "");
    }

    #[test]
    fn only_the_text_that_was_indexed_is_returned() {
        let folder = tempfile::tempdir().expect("a folder");
        let sources = Sources::default();
        let [scope, other] = ["shop", "other"].map(|project| Scope::new("ours", project).expect("a scope"));
        sources.add(&scope, folder.path()).expect("added");
        std::fs::write(folder.path().join("a.py"), "one\n").expect("written");
        let id = git::blob_id(b"one\n");
        assert_eq!(sources.text(&scope, "a.py", &id).as_deref(), Some("one\n"));
        assert_eq!(
            (sources.is_same_on_disk(&scope, "a.py", &id), sources.is_same_on_disk(&scope, "b.py", &id)),
            (Some(true), None)
        );
        std::fs::write(folder.path().join("a.py"), "two\n").expect("written");
        assert_eq!(
            (sources.text(&scope, "a.py", &id), sources.is_same_on_disk(&scope, "a.py", &id)),
            (None, Some(false))
        );
        assert_eq!(sources.text(&scope, "b.py", &id), None);
        let two = git::blob_id(b"two\n");
        assert_eq!(sources.text(&scope, "a.py", &two).as_deref(), Some("two\n"));
        assert_eq!((sources.text(&other, "a.py", &two), sources.is_same_on_disk(&other, "a.py", &two)), (None, None));
    }

    #[cfg(unix)]
    #[test]
    fn a_key_outside_of_the_root_names_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        std::fs::create_dir(&root).expect("made");
        let outside = folder.path().join("outside.py");
        std::fs::write(&outside, "one\n").expect("written");
        std::os::unix::fs::symlink(&outside, root.join("link.py")).expect("linked");
        let sources = Sources::default();
        let scope = Scope::new("ours", "shop").expect("a scope");
        sources.add(&scope, &root).expect("added");
        let id = git::blob_id(b"one\n");
        for key in ["../outside.py", outside.to_str().expect("text"), "link.py", "", "/dev/zero", "/dev/ptmx"] {
            assert_eq!(
                (sources.text(&scope, key, &id), sources.is_same_on_disk(&scope, key, &id)),
                (None, None),
                "{key}"
            );
        }
    }
}
