//! What a pass leaves for the next process: facts of sources, and when files were written.

use super::super::cache::{Pack, Source};
use super::super::stamps::{AsOf, Kept};
use super::{Diagnostic, Report, State, Workspace};
use lukasa_store::Ledger;
use std::sync::Arc;

/// So many files are read again by the next process sooner than all stamps are written.
const FEW_UNKEPT: usize = 50;

impl Workspace {
    /// The facts an earlier process kept.
    pub(super) fn kept(&self, report: &mut Report) -> Pack {
        let Some(cache) = &self.cache else { return Pack::default() };
        cache.read().unwrap_or_else(|e| {
            report.diagnostics.push(Diagnostic::new(".", format!("facts kept earlier cannot be read: {e}")));
            Pack::default()
        })
    }

    /// Keeps the facts of files that were parsed, for the next process. If that is all of them, gives them back instead, to
    /// be kept when there is less to do.
    pub(super) fn keep(&self, state: &State, parsed: &[String], report: &mut Report) -> Vec<Source> {
        let source = |path: &String| {
            let facts = &state.program.get(state.program.find_file(path)?)?.facts;
            Some((path.clone(), *state.loaded.get(path)?, Arc::clone(facts)))
        };
        let Some(cache) = self.cache.as_ref().filter(|_| !parsed.is_empty()) else { return vec![] };
        let new: Vec<Source> = parsed.iter().filter_map(source).collect();
        if new.len() == state.loaded.len() {
            return new;
        }
        let kept = cache.add(&new, || state.loaded.keys().filter_map(source).collect());
        not_kept(kept, report);
        vec![]
    }

    /// After everything was parsed, whatever was kept before says nothing more.
    pub(super) fn keep_only(&self, sources: &[Source]) -> std::io::Result<()> {
        match &self.cache {
            Some(cache) if !sources.is_empty() => cache.replace(sources),
            _ => Ok(()),
        }
    }

    /// Keeps when files were written, for the next process; a few that are missing there are read again.
    pub(super) fn keep_stamps(&self, state: &mut State, ledger: &Ledger, report: &mut Report) {
        let Some(stamps) = self.stamps.as_ref().filter(|_| state.unkept > FEW_UNKEPT) else { return };
        state.unkept = 0;
        // Somebody else may have written meanwhile: then the branch is asked again.
        let head = ledger.head().ok().filter(|head| head.position() == state.at);
        let as_of = head.map(|head| AsOf {
            branch: state.branch.clone(),
            tx: head.tx,
            hash: head.hash.0,
            last_valid: state.last_valid.0,
            exact: state.exact.clone(),
        });
        if let Err(e) = stamps.write(&Kept { as_of, seen: state.seen() }) {
            report.diagnostics.push(Diagnostic::new(".", format!("stamps cannot be kept for next time: {e}")));
        }
    }
}

pub(super) fn not_kept(kept: std::io::Result<()>, report: &mut Report) {
    if let Err(e) = kept {
        report.diagnostics.push(Diagnostic::new(".", format!("facts cannot be kept for next time: {e}")));
    }
}
