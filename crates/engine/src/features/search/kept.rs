//! Graphs and text indexes kept beside the store, so that a new process need not make them again.
//!
//! Two files for each branch, a graph and its text indexes, with one number that says they belong together. Each begins
//! with a line that names the build that can read it, and a checksum. Whatever is in doubt counts as not there: losing
//! the files loses time, nothing else.

use super::Texts;
use crate::features::code::cache::{checksum, make_folder};
use crate::telemetry::log;
use crate::view::Look;
use lukasa_graph::Snapshot;
use lukasa_graph::cache::Shelf;
use lukasa_model::json::Hash;
use lukasa_model::{BranchNo, Result, Scope};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FIRST_LINE: &str = concat!("lukasa index 1 ", env!("LUKASA_INDEX_BUILD"), "\n");
/// Graphs of fewer nodes are made sooner than files are written.
const WORTH: usize = 500;
/// Nodes that changed since the files were written; with more of them they are made anew.
const FOLLOWED: u64 = 4_096;

/// Where they are kept.
#[derive(Clone, Debug)]
pub struct KeptIndexes {
    folder: PathBuf,
}

impl Shelf for KeptIndexes {
    fn graph(&self, scope: &Scope, branch: BranchNo) -> Option<Vec<u8>> {
        self.read("graph", scope, branch)
    }
}

impl KeptIndexes {
    pub fn in_folder(folder: &Path) -> KeptIndexes {
        KeptIndexes { folder: folder.to_owned() }
    }

    /// The text indexes that were kept with the graph this snapshot was read from, to be followed from there.
    pub fn texts(&self, look: &Look) -> Option<Texts> {
        let origin = look.snapshot.origin()?;
        let bytes = self.read("texts", look.ledger.scope(), look.view.branch)?;
        let (head, body) = bytes.split_first_chunk::<{ 8 + 32 }>()?;
        if head[..8] != origin.to_le_bytes() || head[8..] != rules(look).ok()?.0 {
            return None;
        }
        Texts::read_from(body, look.snapshot.node_places())
    }

    /// Keeps a graph and its text indexes, made whole in this process. What cannot be kept is made again by the next.
    pub fn keep(&self, look: &Look, texts: &Texts, bytes: impl FnOnce(u64) -> Result<Option<Vec<u8>>>, origin: u64) {
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
            log::event(log::Level::Debug, "index.not_kept", &[("error", e.to_string().into())]);
        }
    }

    /// Has the next process make them anew where too much has changed since they were written.
    pub fn followed(&self, look: &Look, kept_at: u64) {
        if look.snapshot.touches().saturating_sub(kept_at) > FOLLOWED {
            self.forget(look.ledger.scope(), look.view.branch);
        }
    }

    fn forget(&self, scope: &Scope, branch: BranchNo) {
        // What is not there need not go, and what cannot go is looked into before it is used.
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

    /// Readers have the old file or the new one, never a part.
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

/// What decides which words are in the indexes, beside what is stated: sensitive properties, and types that are not read.
/// As it is now: what has become sensitive since must not be found any more.
fn rules(look: &Look) -> Result<Hash> {
    let registry = look.ledger.latest_registry()?;
    let mut unread: Vec<&str> =
        registry.object_types().iter().filter(|t| !t.embedding.fts).map(|t| t.name.as_str()).collect();
    unread.sort_unstable();
    Ok(Hash::of(format!("{:?} {unread:?}", registry.all_sensitive()).as_bytes()))
}

/// A number that no other pair of files has.
pub fn origin(id: uuid::Uuid) -> u64 {
    id.as_u64_pair().1
}

/// The snapshot's text indexes as they were kept, with what was touched since.
pub fn shelved(kept: Option<&Arc<KeptIndexes>>, look: &Look, snapshot: &Snapshot) -> Option<Arc<Texts>> {
    let kept = kept?;
    let texts = Arc::new(kept.texts(look)?);
    kept.followed(look, texts.touches());
    snapshot.keep(Arc::clone(&texts));
    Some(texts)
}
