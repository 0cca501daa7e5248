//! A cache of graphs and text indexes beside the store, so that a new process need not rebuild them.
//!
//! Each branch has two files, a graph and its text indexes, with a common number that pairs them. Each file begins with a line
//! that names the build that can read it, and a checksum. A file that cannot be verified is ignored: it only saves time.

use super::TextIndexes;
use crate::features::code::cache::{checksum, make_folder};
use crate::telemetry::log;
use crate::view::ViewGraph;
use lukasa_graph::Snapshot;
use lukasa_graph::cache::GraphArchive;
use lukasa_model::json::Hash;
use lukasa_model::{BranchNo, Result, Scope};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FIRST_LINE: &str = concat!("lukasa index 1 ", env!("LUKASA_INDEX_BUILD"), "\n");
/// Graphs with fewer nodes are rebuilt faster than files are written.
const WORTH: usize = 500;
/// When more nodes changed since the files were written, the files are written again.
const FOLLOWED: u64 = 4_096;

/// The folder of the cache.
#[derive(Clone, Debug)]
pub struct IndexCache {
    folder: PathBuf,
}

impl GraphArchive for IndexCache {
    fn graph(&self, scope: &Scope, branch: BranchNo) -> Option<Vec<u8>> {
        self.read("graph", scope, branch)
    }
}

impl IndexCache {
    /// Creates a cache in this folder, which need not exist yet.
    pub fn in_folder(folder: &Path) -> IndexCache {
        IndexCache { folder: folder.to_owned() }
    }

    /// Returns the text indexes that were stored with the graph of this snapshot, to be brought up to date from there.
    pub fn texts(&self, look: &ViewGraph) -> Option<TextIndexes> {
        let origin = look.snapshot.origin()?;
        let bytes = self.read("texts", look.ledger.scope(), look.view.branch)?;
        let (head, body) = bytes.split_first_chunk::<{ 8 + 32 }>()?;
        if head[..8] != origin.to_le_bytes() || head[8..] != rules(look).ok()?.0 {
            return None;
        }
        TextIndexes::read_from(body, look.snapshot.node_places())
    }

    /// Stores a graph and its text indexes that this process built completely. If this fails, the next process builds them
    /// again.
    pub fn keep(
        &self,
        look: &ViewGraph,
        texts: &TextIndexes,
        bytes: impl FnOnce(u64) -> Result<Option<Vec<u8>>>,
        origin: u64,
    ) {
        if look.snapshot.node_count() < WORTH || !texts.can_be_kept() {
            return;
        }
        let (scope, branch) = (look.ledger.scope(), look.view.branch);
        let kept = bytes(origin).and_then(|graph| Ok((graph, rules(look)?)));
        let written = match kept {
            Ok((Some(graph), rules)) => {
                let mut body = origin.to_le_bytes().to_vec();
                body.extend(rules.0);
                texts.write_to(&mut body);
                self.write("texts", scope, branch, &body).and_then(|()| self.write("graph", scope, branch, &graph))
            }
            Ok((None, _)) => return self.forget(scope, branch),
            Err(e) => Err(io::Error::other(e.to_string())),
        };
        if let Err(e) = written {
            log::event(log::LogLevel::Debug, "index.not_kept", &[("error", e.to_string().into())]);
        }
    }

    /// Deletes the files if too much changed since they were written, so that the next process rebuilds them.
    pub fn followed(&self, look: &ViewGraph, kept_at: u64) {
        if look.snapshot.touches().saturating_sub(kept_at) > FOLLOWED {
            self.forget(look.ledger.scope(), look.view.branch);
        }
    }

    fn forget(&self, scope: &Scope, branch: BranchNo) {
        // Errors are ignored: files that remain are verified before they are used.
        ["graph", "texts"].iter().for_each(|kind| drop(fs::remove_file(self.file(kind, scope, branch))));
    }

    fn file(&self, kind: &str, scope: &Scope, branch: BranchNo) -> PathBuf {
        let Scope { tenant, project } = scope;
        let named = Hash::of(format!("{tenant}\0{project}\0{branch}").as_bytes());
        let number = named.0.iter().take(8).fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        self.folder.join(format!("{kind}-{number:016x}"))
    }

    fn read(&self, kind: &str, scope: &Scope, branch: BranchNo) -> Option<Vec<u8>> {
        let mut bytes = fs::read(self.file(kind, scope, branch)).ok()?;
        let (sum, body) = bytes.strip_prefix(FIRST_LINE.as_bytes())?.split_first_chunk::<8>()?;
        if checksum(body).to_le_bytes() != *sum {
            return None;
        }
        bytes.drain(..FIRST_LINE.len() + 8);
        Some(bytes)
    }

    /// Writes through a rename: readers see the old file or the new one, never a part.
    fn write(&self, kind: &str, scope: &Scope, branch: BranchNo, body: &[u8]) -> io::Result<()> {
        make_folder(&self.folder)?;
        let file = self.file(kind, scope, branch);
        let next = file.with_extension(format!("new-{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut out = options.open(&next)?;
        let written = out
            .write_all(FIRST_LINE.as_bytes())
            .and_then(|()| out.write_all(&checksum(body).to_le_bytes()))
            .and_then(|()| out.write_all(body))
            .and_then(|()| fs::rename(&next, &file));
        if written.is_err() {
            let _ = fs::remove_file(&next);
        }
        written
    }
}

/// Hash of what determines the indexed words besides the facts: sensitive properties, and types that are excluded. Computed
/// from the current declarations, because what has become sensitive must not be found any more.
fn rules(look: &ViewGraph) -> Result<Hash> {
    let registry = look.ledger.latest_registry()?;
    let mut unread: Vec<&str> =
        registry.object_types().iter().filter(|t| !t.embedding.fts).map(|t| t.name.as_str()).collect();
    unread.sort_unstable();
    Ok(Hash::of(format!("{:?} {unread:?}", registry.all_sensitive()).as_bytes()))
}

/// A number that identifies a pair of files.
pub fn origin(id: uuid::Uuid) -> u64 {
    id.as_u64_pair().1
}

/// Restores the stored text indexes of the snapshot, brought up to date.
pub fn shelved(kept: Option<&Arc<IndexCache>>, look: &ViewGraph, snapshot: &Snapshot) -> Option<Arc<TextIndexes>> {
    let kept = kept?;
    let texts = Arc::new(kept.texts(look)?);
    kept.followed(look, texts.touches());
    snapshot.keep(Arc::clone(&texts));
    Some(texts)
}
