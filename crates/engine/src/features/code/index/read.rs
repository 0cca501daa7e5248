//! Reads files on all cores, and parses those with new content.

use super::super::cache::CachedFacts;
use super::super::files::{self, Diagnostic, ListedFile, Stamp};
use super::super::served::TreeRead;
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
    /// Its file system did not answer in time.
    pub(super) unanswered: bool,
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
            unanswered: false,
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
        let read = match self.reads.read(listed) {
            TreeRead::Ended(read) => read,
            TreeRead::Unanswered => {
                fresh.faults.push(Diagnostic::new(path, "not read: its file system does not answer"));
                fresh.unanswered = true;
                return fresh;
            }
        };
        let Some(bytes) = files::read(read, path, &mut fresh.faults) else {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::super::{Changes, PassReport, TreeReads};
    use super::*;
    use crate::features::code::confined_files::{self, FileNotRead};
    use lukasa_model::Scope;
    use std::path::Path;
    use std::time::{Duration, Instant};

    /// Reads like a file system that never answers for some files.
    fn read_or_hang(root: &Path, key: &str, most: u64) -> Result<Vec<u8>, FileNotRead> {
        while key.starts_with("stuck") {
            std::thread::park();
        }
        confined_files::read(root, key, most)
    }

    /// Reads 40 files in a pass, the first of which are not answered. Returns the state and the report after it.
    fn pass(stuck: usize, limit: Duration) -> (State, PassReport, Vec<ListedFile>) {
        let folder = tempfile::tempdir().unwrap();
        let scope = Scope::new("ours", "shop").unwrap();
        for n in 0..40 {
            let name = if n < stuck { format!("stuck{n}.py") } else { format!("read{n}.py") };
            std::fs::write(folder.path().join(name), "def f(): pass\n").unwrap();
        }
        let mut workspace = Workspace::new(folder.path(), scope.clone(), None, Arc::default());
        workspace.reads = TreeReads::below(folder.path()).with(read_or_hang, limit);
        let listing = files::list(folder.path(), &Arc::default()).unwrap();
        let listed: Vec<ListedFile> = listing.files.into_iter().map(|l| ListedFile { is_served: true, ..l }).collect();
        let mut progress = |_, _| {};
        let mut context = Context::of(scope, &mut progress);
        let (mut state, mut report) = (State::default(), PassReport::default());
        let all: Vec<&ListedFile> = listed.iter().collect();
        let fresh = workspace.read(&all, &state, Some(&CachedFacts::default()), &mut context);
        workspace.take_in(&mut state, fresh, false, &mut Changes::default(), &mut report);
        (state, report, listed)
    }

    #[test]
    fn files_that_are_not_answered_are_named_and_the_others_are_read() {
        let (state, report, listed) = pass(3, Duration::from_millis(200));
        let mut named: Vec<&str> = report.diagnostics.iter().map(|diagnostic| diagnostic.path.as_str()).collect();
        named.sort_unstable();
        assert_eq!(named, ["stuck0.py", "stuck1.py", "stuck2.py"], "{report:?}");
        assert_eq!(report.diagnostics[0].what, "not read: its file system does not answer");
        assert_eq!((state.loaded.len(), state.unanswered.len()), (37, 3));
        // They are neither taken for files that are no text, which would end what is recorded, nor read again in the pass.
        assert!(state.skipped.is_empty() && listed.iter().all(|listed| !state.is_needed(listed)));
        assert_eq!(state.touched(&listed).len(), 40, "the next pass tries again");
    }

    #[test]
    fn a_file_system_that_never_answers_does_not_hold_a_pass() {
        let limit = Duration::from_millis(300);
        let began = Instant::now();
        let (state, report, _) = pass(40, limit);
        assert_eq!((state.unanswered.len(), report.diagnostics.len(), state.loaded.len()), (40, 40, 0));
        // As many as may be given up, some of them at the same time.
        assert!(began.elapsed() < limit * 15, "{:?}", began.elapsed());
    }
}
