//! What a pass saves for the next process: facts of sources, and stamps of files.

use super::super::cache::{CachedFacts, CachedSource};
use super::super::stamps::{SavedStamps, StampPosition};
use super::{Diagnostic, PassReport, State, Workspace};
use lukasa_store::Ledger;
use std::sync::Arc;

/// Up to this many files the next process reads again: that is faster than writing all stamps.
const FEW_UNKEPT: usize = 50;

impl Workspace {
    /// The facts that an earlier process cached.
    pub(super) fn kept(&self, report: &mut PassReport) -> CachedFacts {
        let Some(cache) = &self.cache else { return CachedFacts::default() };
        cache.read().unwrap_or_else(|e| {
            report.diagnostics.push(Diagnostic::new(".", format!("facts kept earlier cannot be read: {e}")));
            CachedFacts::default()
        })
    }

    /// Caches the facts of parsed files for the next process. If every file was parsed, returns them instead, to be
    /// cached while a core is idle.
    pub(super) fn keep(&self, state: &State, parsed: &[String], report: &mut PassReport) -> Vec<CachedSource> {
        let source = |path: &String| {
            let facts = &state.program.get(state.program.find_file(path)?)?.facts;
            Some((path.clone(), *state.loaded.get(path)?, Arc::clone(facts)))
        };
        let Some(cache) = self.cache.as_ref().filter(|_| !parsed.is_empty()) else { return vec![] };
        let new: Vec<CachedSource> = parsed.iter().filter_map(source).collect();
        if new.len() == state.loaded.len() {
            return new;
        }
        let kept = cache.add(&new, || state.loaded.keys().filter_map(source).collect());
        not_kept(kept, report);
        vec![]
    }

    /// Replaces the cache, after everything was parsed.
    pub(super) fn keep_only(&self, sources: &[CachedSource]) -> std::io::Result<()> {
        match &self.cache {
            Some(cache) if !sources.is_empty() => cache.replace(sources),
            _ => Ok(()),
        }
    }

    /// Saves the stamps of files for the next process, if it would read many files again or report again that some are
    /// not text. It reads files again whose stamps are missing.
    pub(super) fn keep_stamps(&self, state: &mut State, ledger: &Ledger, report: &mut PassReport) {
        let is_due = state.unkept > FEW_UNKEPT || state.reported;
        let Some(stamps) = self.stamps.as_ref().filter(|_| is_due) else { return };
        (state.unkept, state.reported) = (0, false);
        // If another writer was faster, the next process reads the branch again.
        let head = ledger.head().ok().filter(|head| head.position() == state.at);
        let as_of = head.map(|head| StampPosition {
            branch: state.branch.clone(),
            tx: head.tx,
            hash: head.hash.0,
            last_valid: state.last_valid.0,
            exact: state.exact.clone(),
        });
        if let Err(e) = stamps.write(&SavedStamps { as_of, seen: state.seen() }) {
            report.diagnostics.push(Diagnostic::new(".", format!("stamps cannot be kept for next time: {e}")));
        }
    }
}

pub(super) fn not_kept(kept: std::io::Result<()>, report: &mut PassReport) {
    if let Err(e) = kept {
        report.diagnostics.push(Diagnostic::new(".", format!("facts cannot be kept for next time: {e}")));
    }
}
