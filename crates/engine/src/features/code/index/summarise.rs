//! The part of a pass that uses a language model: requests summaries after everything is indexed, and records them.

use super::difference::FileToWrite;
use super::{PassReport, State, Workspace};
use crate::features::code::files::Diagnostic;
use crate::features::code::index::PassOptions;
use crate::features::code::summaries::{Summaries, cache, questions, requests, units};
use crate::group_summaries::SummaryUnit;
use crate::{Context, Engine};
use lukasa_code::facts::ROOT;
use lukasa_code::resolve::FileId;
use lukasa_code::statements::{self, FileDetails, Summary, SymbolNames};
use lukasa_code::type_names;
use lukasa_model::{Batch, Result, TransactionKind, Tx, View, Write};
use lukasa_store::{Ledger, VersionFields};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::atomic::Ordering;

/// What a model did in a pass.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct ModelReport {
    pub model: String,
    /// Summaries made in this pass.
    pub summaries: usize,
    /// Symbols left for the next passes.
    pub left: usize,
    /// The transaction that records them.
    pub tx: Option<Tx>,
}

/// Files whose new summaries make one transaction.
const FILES: usize = 200;

impl Workspace {
    /// Whether a model may have summaries to add although the files are unchanged.
    pub(super) fn may_ask(&self, summaries: Option<&Summaries>, state: &State) -> bool {
        summaries.is_some_and(|s| s.asker.is_some() && !s.cache.is_complete(&fingerprint(s, state)))
    }

    /// Requests the missing summaries, then records all that are known. Never fails: every symbol already has a
    /// rule-based summary.
    pub(super) fn summarise(
        &self,
        engine: &Engine,
        context: &mut Context<'_>,
        pass: &PassOptions,
        ledger: &Ledger,
        report: &mut PassReport,
    ) {
        let Some(summaries) = engine.summaries() else { return };
        let Some(asker) = &summaries.asker else { return };
        let mut done = ModelReport { model: asker.model().to_string(), ..ModelReport::default() };
        let fault = |what: String| Diagnostic::new("model", what);
        let mut waiting = {
            let mut state = self.state.lock();
            let names = self.resolved(&mut state, ledger);
            let loaded = |path: &str| state.loaded.get(path).copied();
            questions(&state.program, &names, state.resolver.links(), loaded, |unit| {
                summaries.cache.has(unit, asker.model())
            })
        };
        let all = waiting.len();
        waiting.truncate(summaries.per_pass);
        let stop = pass.interrupted.clone();
        let interrupted = || stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        // Without the lock: other requests may read or index the working tree during slow model requests.
        let asked = requests::ask(asker, &summaries.cache, &self.root, waiting, &interrupted, context.progress);
        done.summaries = asked.answered;
        done.left = all - asked.settled.min(all);
        for (error, count) in &asked.faults {
            let hint = error.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
            let times = if *count > 1 { format!(", {count} times") } else { String::new() };
            report.diagnostics.push(fault(format!("{error} ({}{times}){hint}", error.code)));
        }
        let mut state = self.state.lock();
        match self.state_summaries(&mut state, &summaries, context, ledger, &report.branch) {
            Ok(tx) => done.tx = tx,
            Err(e) => report.diagnostics.push(fault(format!("summaries could not be stated: {e}"))),
        }
        if done.left == 0
            && asked.faults.is_empty()
            && let Err(e) = summaries.cache.set_complete(&fingerprint(&summaries, &state))
        {
            report.diagnostics.push(fault(e.to_string()));
        }
        report.model = Some(done).filter(|done| done.summaries + done.left > 0 || done.tx.is_some());
    }

    /// Updates the links and returns the names of all definitions.
    fn resolved(&self, state: &mut State, ledger: &Ledger) -> SymbolNames {
        state.resolve();
        let namespace = ledger.head().map_or_else(|_| self.scope.namespace(), |head| head.namespace);
        SymbolNames::new(&state.program, namespace)
    }

    /// Writes the files again that have more summaries than the branch records.
    fn state_summaries(
        &self,
        state: &mut State,
        summaries: &Summaries,
        context: &Context<'_>,
        ledger: &Ledger,
        branch: &str,
    ) -> Result<Option<Tx>> {
        self.catch_up(state, ledger, branch)?;
        let names = self.resolved(state, ledger);
        let ids: Vec<FileId> = state.program.ids().collect();
        let now: &State = state;
        let made: Vec<FileToWrite> = ids
            .par_iter()
            .filter_map(|id| {
                let file = now.program.file(*id);
                let known = now.known.get(&*file.path)?;
                // A file that differs from the branch is left to the next pass.
                let same = now.loaded.get(&*file.path) == Some(&known.content);
                let about = FileDetails {
                    content_hash: crate::hex::hex(&known.content),
                    bytes: u64::from(file.facts.def(ROOT).span.end),
                    summaries: summaries.of(&now.program, &names, *id),
                };
                let digest = statements::digest(&now.program, &names, &now.resolver.links()[*id], *id, &about);
                let code = |digest: &str| statements::digest_parts(digest).0.to_owned();
                let more = digest != known.facts && code(&digest) == code(&known.facts);
                (same && more).then(|| FileToWrite { path: file.path.to_string(), source: Some(*id), about, digest })
            })
            .collect();
        let mut last = None;
        for made in made.chunks(FILES) {
            let model = summaries.asker.as_ref().map_or("", |asker| asker.model());
            let mut batch = Batch::on(branch);
            batch.header = context.header(Some(format!("summaries by {model}")));
            batch.header.kind = TransactionKind::IncrementalRebuild;
            for file in made {
                let Some(id) = file.source else { continue };
                let links = &state.resolver.links()[id];
                let objects = statements::objects(&state.program, &names, links, id, &file.about, &file.digest);
                // The file object has the new hash. Of the other objects only those with a model's summary may have
                // changed.
                let is_file = |(at, _): &(usize, _)| *at == 0;
                let by_model = |put: &lukasa_model::batch::PutObject| put.properties.contains_key("summary_by");
                let objects = objects.into_iter().enumerate().filter(|o| is_file(o) || by_model(&o.1));
                batch.writes.extend(objects.map(|(_, put)| Write::Object(put)));
            }
            let committed = ledger.commit(&batch)?;
            for file in made {
                if let Some(known) = state.known.get_mut(&file.path) {
                    known.facts.clone_from(&file.digest);
                }
            }
            state.wrote(&committed);
            state.last_valid = state.last_valid.max(committed.recorded_at);
            last = committed.tx.or(last);
        }
        Ok(last)
    }

    /// Adopts model summaries on the branch that the local cache does not have, because another machine requested them.
    pub(super) fn adopt(
        &self,
        state: &State,
        summaries: &Summaries,
        names: &SymbolNames,
        ledger: &Ledger,
        view: &View,
        made: &[FileToWrite],
    ) -> Result<bool> {
        let mut found = Vec::new();
        for file in made.iter() {
            let Some(id) = file.source else { continue };
            let Some(known) = state.known.get(&file.path) else { continue };
            let by_model = |digest| statements::digest_parts(digest).1;
            if by_model(&known.facts).is_none() || by_model(&known.facts) == by_model(&file.digest) {
                continue;
            }
            let wanted: FxHashMap<String, SummaryUnit> = units(&state.program, names, id)
                .filter(|(def, _)| !file.about.summaries.contains_key(def))
                .map(|(_, unit)| (unit.name.clone(), unit))
                .collect();
            let mut objects =
                ledger.states_with_prefix(view, None, &format!("{}::", file.path), VersionFields::Content)?;
            objects.extend(ledger.states_with_prefix(
                view,
                Some(type_names::FILE),
                &file.path,
                VersionFields::Content,
            )?);
            for object in objects {
                let name = object.thing.name();
                let (Some(unit), Some(statement)) = (wanted.get(&name), &object.statement) else { continue };
                let content = statement.parsed()?;
                let text = |name: &str| content.properties.get(name).and_then(Value::as_str).unwrap_or_default();
                let same = match text("hash") {
                    "" => text("content_hash") == file.about.content_hash,
                    hash => hash == format!("{:016x}", unit.content),
                };
                if same && text("summary_by") == "model" {
                    let summary = Summary { text: text("summary").into(), model: text("summary_model").into() };
                    found.push((unit.clone(), summary));
                }
            }
        }
        summaries.cache.add(&found)?;
        Ok(!found.is_empty())
    }
}

/// A hash of the working tree as the branch records it, the model and the prompt.
fn fingerprint(summaries: &Summaries, state: &State) -> String {
    let mut hasher = Sha256::new();
    let model = summaries.asker.as_ref().map_or("", |asker| asker.model());
    hasher.update(format!("{}\n{model}\n", cache::PROMPT));
    for (path, known) in &state.known {
        hasher.update(format!("{path}\n{}\n", known.facts));
        hasher.update(known.content);
    }
    crate::hex::hex(&hasher.finalize()[..16])
}
