//! Parsed facts of source files, kept on disk by path and content, so that a new process parses only what changed.
//!
//! One file. Its first line contains the build that can read it and the size at which the file was last rewritten.
//! Entries follow, each with key, length, checksum and facts. Entries are appended until the file is several times that
//! size. A damaged entry and all entries after it are ignored. Losing the file costs time only.

use crate::convert::{to_u32, to_usize};
use lukasa_code::facts::FileFacts;
use lukasa_store::private;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHasher};
use std::fs::{self, File, OpenOptions};
use std::hash::Hasher;
use std::io::{self, Read, Seek, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of key, length and checksum.
const ENTRY_HEAD: usize = 8 + 4 + 8;
/// Sources serialized at a time: a few megabytes.
const AT_ONCE: usize = 200;
/// Below this size the file is not rewritten: removing old entries gains nothing.
const SMALL: u64 = 32 << 20;
/// Digits of the size in the first line.
const DIGITS: usize = 20;

/// The cache file.
#[derive(Clone, Debug)]
pub struct FactsCache {
    file: PathBuf,
}

/// One source: its path, the id of its content, its facts.
pub type CachedSource = (String, [u8; 20], Arc<FileFacts>);

impl FactsCache {
    /// The cache in a folder. Nothing is created until sources are added.
    pub fn in_folder(folder: &Path) -> FactsCache {
        FactsCache { file: folder.join("facts") }
    }

    /// Reads all entries. Empty if the file is missing or another build wrote it.
    pub fn read(&self) -> io::Result<CachedFacts> {
        let mut bytes = Vec::new();
        match File::open(&self.file) {
            Ok(mut file) => file.read_to_end(&mut bytes)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(CachedFacts::default()),
            Err(e) => return Err(e),
        };
        Ok(CachedFacts::of(bytes))
    }

    /// Appends sources. Rewrites the file with `all` once it has grown so much that many entries must be old.
    pub fn add(&self, new: &[CachedSource], all: impl FnOnce() -> Vec<CachedSource>) -> io::Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        let size = self.file.metadata().map_or(0, |m| m.len());
        let made_with = if size > 0 { self.made_with()? } else { None };
        if made_with.is_some_and(|made| size < SMALL.max(4 * made)) {
            let mut file = OpenOptions::new().append(true).open(&self.file)?;
            return write(&mut file, new);
        }
        self.replace(&all())
    }

    /// Replaces the file with these sources.
    pub fn replace(&self, sources: &[CachedSource]) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            make_folder(folder)?;
        }
        // Readers see the old file or the new one, never a part.
        let next = self.file.with_extension(format!("new-{}", std::process::id()));
        let mut file = private::create(&next)?;
        file.write_all(first_line(0).as_bytes())?;
        write(&mut file, sources)?;
        let size = file.stream_position()?;
        file.rewind()?;
        file.write_all(first_line(size).as_bytes())?;
        drop(file);
        fs::rename(&next, &self.file)
    }

    /// The size at which the file was last rewritten. None if another build wrote it.
    fn made_with(&self) -> io::Result<Option<u64>> {
        let mut begins = Vec::new();
        File::open(&self.file)?.take(first_line(0).len() as u64).read_to_end(&mut begins)?;
        Ok(size_in(&begins))
    }
}

/// Creates a folder for data that can be recomputed. Git ignores it.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    private::create_dir_all(folder)?;
    private::write(&folder.join(".gitignore"), "*\n")
}

fn first_line(size: u64) -> String {
    format!("lukasa facts {} {size:0DIGITS$}\n", lukasa_code::BUILD)
}

/// The size in the first line. None if another build wrote it.
fn size_in(bytes: &[u8]) -> Option<u64> {
    let line = bytes.get(..first_line(0).len())?;
    let size = std::str::from_utf8(&line[line.len() - 1 - DIGITS..line.len() - 1]).ok()?.parse().ok()?;
    (line == first_line(size).as_bytes()).then_some(size)
}

fn write(file: &mut File, sources: &[CachedSource]) -> io::Result<()> {
    for sources in sources.chunks(AT_ONCE) {
        let entries: Vec<Vec<u8>> =
            sources.par_iter().map(|(path, id, facts)| entry(path, id, facts)).collect::<io::Result<_>>()?;
        // One write per chunk, so that chunks of two processes do not interleave.
        file.write_all(&entries.concat())?;
    }
    Ok(())
}

fn entry(path: &str, id: &[u8; 20], facts: &FileFacts) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; ENTRY_HEAD];
    bytes = postcard::to_extend(&(path, id, facts), bytes).map_err(io::Error::other)?;
    let body = bytes.len() - ENTRY_HEAD;
    let sum = checksum(&bytes[ENTRY_HEAD..]);
    bytes[..8].copy_from_slice(&key(path, id).to_le_bytes());
    bytes[8..12].copy_from_slice(&to_u32(body).to_le_bytes());
    bytes[12..20].copy_from_slice(&sum.to_le_bytes());
    Ok(bytes)
}

fn key(path: &str, id: &[u8; 20]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(path.as_bytes());
    hasher.write(id);
    hasher.finish()
}

pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// The entries of a cache, each parsed on demand.
#[derive(Default)]
pub struct CachedFacts {
    bytes: Vec<u8>,
    entries: FxHashMap<u64, Range<usize>>,
}

impl CachedFacts {
    fn of(bytes: Vec<u8>) -> CachedFacts {
        let mut entries = FxHashMap::default();
        if size_in(&bytes).is_none() {
            return CachedFacts::default();
        }
        let mut at = first_line(0).len();
        while let Some(head) = bytes.get(at..at + ENTRY_HEAD) {
            let number = |range: Range<usize>| head[range].iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
            let end = at + ENTRY_HEAD + to_usize(number(8..12));
            if end > bytes.len() {
                break;
            }
            entries.insert(number(0..8), at..end);
            at = end;
        }
        CachedFacts { bytes, entries }
    }

    /// The facts of a source, if they are cached for this content.
    pub fn get(&self, path: &str, id: &[u8; 20]) -> Option<FileFacts> {
        let entry = &self.bytes[self.entries.get(&key(path, id))?.clone()];
        let body = &entry[ENTRY_HEAD..];
        if checksum(body).to_le_bytes() != entry[12..20] {
            return None;
        }
        let (kept_path, kept_id, facts): (&str, [u8; 20], FileFacts) = postcard::from_bytes(body).ok()?;
        (kept_path == path && kept_id == *id).then_some(facts)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failing test says where")]

    use super::*;
    use lukasa_code::LanguageId;
    use lukasa_code::facts::DefId;

    fn facts(text: &str) -> Arc<FileFacts> {
        Arc::new(lukasa_code::parse("a.py", text, LanguageId::named("python").unwrap()))
    }

    #[test]
    fn cached_facts_are_found_by_path_and_content() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FactsCache::in_folder(&folder.path().join("cache"));
        let (one, two) = (facts("def one(): pass\n"), facts("def two(): one()\n"));
        let nothing = || -> Vec<CachedSource> { vec![] };
        let source = |path: &str, id, facts: &Arc<FileFacts>| (path.to_owned(), [id; 20], Arc::clone(facts));
        assert!(cache.read().unwrap().get("a.py", &[1; 20]).is_none());
        cache.add(&[source("a.py", 1, &one)], || vec![source("a.py", 1, &one)]).unwrap();
        cache.add(&[source("a.py", 2, &two), source("b.py", 1, &one)], nothing).unwrap();
        let pack = cache.read().unwrap();
        let name = |facts: Option<FileFacts>| facts.map(|f| f.name(f.def(DefId::new(1)).name).to_owned());
        assert_eq!(name(pack.get("a.py", &[1; 20])).as_deref(), Some("one"));
        assert_eq!(name(pack.get("a.py", &[2; 20])).as_deref(), Some("two"));
        assert_eq!(name(pack.get("b.py", &[1; 20])).as_deref(), Some("one"));
        assert!(pack.get("b.py", &[2; 20]).is_none(), "facts depend on the path");
    }

    #[test]
    fn a_damaged_or_foreign_file_counts_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FactsCache::in_folder(folder.path());
        let (one, two) = (facts("def one(): pass\n"), facts("def two(): pass\n"));
        cache.replace(&[("a.py".into(), [1; 20], one.clone()), ("b.py".into(), [2; 20], two)]).unwrap();
        let whole = fs::read(&cache.file).unwrap();
        for cut in 0..whole.len() {
            fs::write(&cache.file, &whole[..cut]).unwrap();
            let pack = cache.read().unwrap();
            assert!(pack.get("b.py", &[2; 20]).is_none(), "cut at {cut}");
        }
        for at in first_line(0).len()..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            fs::write(&cache.file, &bytes).unwrap();
            let pack = cache.read().unwrap();
            let found = [pack.get("a.py", &[1; 20]), pack.get("b.py", &[2; 20])];
            assert!(found.iter().filter(|f| f.is_some()).count() < 2, "changed at {at}");
        }
        fs::write(&cache.file, "lukasa facts of another build\n").unwrap();
        assert!(cache.read().unwrap().get("a.py", &[1; 20]).is_none());
        let one: CachedSource = ("a.py".into(), [1; 20], one);
        cache.add(std::slice::from_ref(&one), || vec![one.clone()]).unwrap();
        assert!(cache.read().unwrap().get("a.py", &[1; 20]).is_some(), "written again");
    }

    #[test]
    fn many_old_entries_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FactsCache::in_folder(folder.path());
        let text: String = (0..4_000).map(|n| format!("def function_number_{n}():\n    return {n}\n\n")).collect();
        let large = facts(&text);
        let mut sizes = vec![];
        for turn in 0..200u8 {
            let id = [turn; 20];
            let one: CachedSource = ("a.py".into(), id, large.clone());
            cache.add(std::slice::from_ref(&one), || vec![one.clone()]).unwrap();
            assert!(cache.read().unwrap().get("a.py", &id).is_some(), "turn {turn}");
            sizes.push(fs::metadata(&cache.file).unwrap().len());
        }
        assert!(sizes.windows(2).any(|s| s[1] < s[0]), "it was rewritten");
        assert!(sizes.iter().all(|size| *size < SMALL + (2 << 20)), "{:?}", sizes.iter().max());
    }
}
