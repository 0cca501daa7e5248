//! Reads files on all cores, and parses those with new content.

use super::super::cache::CachedFacts;
use super::super::files::{self, Diagnostic, ListedFile, Stamp};
use super::super::unsearched::{self, UnsearchedReason};
use super::{State, Workspace};
use crate::Context;
use lukasa_code::facts::FileFacts;
use lukasa_code::resolve::program::is_manifest;
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The interval of progress reports.
const PROGRESS: std::time::Duration = std::time::Duration::from_millis(20);

/// Bytes from which a file takes long to read and parse.
const LARGE_FILE: u64 = 96 << 10;
/// Files that one job reads one after another.
const NEIGHBOURS: usize = 32;

/// A file that was read in this pass.
pub(super) struct ReadFile {
    pub(super) path: String,
    pub(super) stamp: Stamp,
    pub(super) content: [u8; 20],
    pub(super) bytes: u64,
    pub(super) facts: Option<Arc<FileFacts>>,
    /// The facts were parsed from the text and not taken from the cache.
    pub(super) parsed: bool,
    pub(super) manifest: Option<String>,
    /// Not text, or cannot be read.
    pub(super) skipped: bool,
    pub(super) not_text: bool,
    /// Why its text is not searched.
    pub(super) left_out: Option<UnsearchedReason>,
    pub(super) faults: Vec<Diagnostic>,
}

impl ReadFile {
    /// A file that is not read yet.
    fn of(listed: &ListedFile) -> ReadFile {
        ReadFile {
            path: listed.path.clone(),
            stamp: listed.stamp,
            content: [0; 20],
            bytes: listed.stamp.size,
            facts: None,
            parsed: false,
            manifest: None,
            skipped: false,
            not_text: false,
            left_out: None,
            faults: vec![],
        }
    }

    fn found(&mut self, facts: FileFacts) {
        if let Some((line, what)) = facts.faults.first() {
            self.faults.push(Diagnostic { line: Some(*line), ..Diagnostic::new(&self.path, what.to_string()) });
        }
        self.facts = Some(Arc::new(facts));
    }
}

impl Workspace {
    /// Reads files on all cores, and parses those with new content. With `all`, returns facts of unchanged files too,
    /// from that cache if it has them. Stops reading when the caller no longer waits.
    pub(super) fn read(
        &self,
        files: &[&ListedFile],
        state: &State,
        all: Option<&CachedFacts>,
        context: &mut Context<'_>,
    ) -> Vec<ReadFile> {
        let stop = context.stop.clone();
        let read = |listed: &&ListedFile| match stop.is_stopped() {
            true => ReadFile::of(listed),
            false => self.read_one(listed, state, all),
        };
        if files.len() <= 200 {
            return files.par_iter().map(read).collect();
        }
        let (done, teller) = (AtomicU64::new(0), std::thread::current());
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let (next, jobs) = (AtomicUsize::new(0), jobs(files));
                let read_some = |_| {
                    let taken = || jobs.get(next.fetch_add(1, Ordering::Relaxed));
                    let some = std::iter::from_fn(taken).flatten().map(|at| {
                        let fresh = read(&files[*at]);
                        done.fetch_add(1, Ordering::Relaxed);
                        (*at, fresh)
                    });
                    some.collect::<Vec<_>>()
                };
                let threads = (0..rayon::current_num_threads()).into_par_iter().with_max_len(1);
                let mut fresh: Vec<(usize, ReadFile)> = threads.flat_map_iter(read_some).collect();
                teller.unpark();
                fresh.sort_unstable_by_key(|(at, _)| *at);
                fresh.into_iter().map(|(_, fresh)| fresh).collect()
            });
            // Progress is reported from this thread, because the callback need not be thread-safe.
            while done.load(Ordering::Relaxed) < files.len() as u64 && !reading.is_finished() {
                (context.progress)(done.load(Ordering::Relaxed), Some(files.len() as u64));
                std::thread::park_timeout(PROGRESS);
            }
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn read_one(&self, listed: &ListedFile, state: &State, all: Option<&CachedFacts>) -> ReadFile {
        let path = &listed.path;
        let mut fresh = ReadFile::of(listed);
        let Some(bytes) = files::load(&self.root, path, &mut fresh.faults) else {
            fresh.skipped = true;
            return fresh;
        };
        fresh.content = state.format.blob_id(&bytes);
        fresh.bytes = bytes.len() as u64;
        let same = state.known.get(path).is_some_and(|known| known.content == fresh.content);
        if same && all.is_none() {
            return fresh;
        }
        let Some(decoded) = files::text(path, bytes, &mut fresh.faults) else {
            (fresh.skipped, fresh.not_text) = (true, true);
            return fresh;
        };
        fresh.left_out = unsearched::file(path, Some(files::head(&decoded.text, files::HEAD_BYTES)));
        if is_manifest(path) {
            fresh.manifest = Some(decoded.text.clone());
        }
        if state.loaded.get(path) != Some(&fresh.content) {
            if let Some(facts) = all.and_then(|pack| pack.get(path, &fresh.content)) {
                fresh.found(facts);
                return fresh;
            }
            if let Some((text, language)) = files::source(path, decoded, &mut fresh.faults) {
                fresh.found(lukasa_code::parse(path, &text, language));
                fresh.parsed = true;
            }
        }
        fresh
    }
}

/// The order in which many files are read: large ones first, so that none is started last; then neighbours together,
/// because they are used together.
fn jobs(files: &[&ListedFile]) -> Vec<Vec<usize>> {
    let size = |at: &usize| files[*at].stamp.size;
    let (mut large, small): (Vec<usize>, Vec<usize>) = (0..files.len()).partition(|at| size(at) > LARGE_FILE);
    large.sort_by_key(|at| std::cmp::Reverse(size(at)));
    let large = large.into_iter().map(|at| vec![at]);
    large.chain(small.chunks(NEIGHBOURS).map(<[usize]>::to_vec)).collect()
}
