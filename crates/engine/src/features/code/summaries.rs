//! Summaries of symbols by a language model, if one is configured: which are known, and which are worth requesting.

pub mod cache;
pub mod requests;

use crate::group_summaries::{GroupSummaries, ObjectGroup, SummaryUnit};
use crate::model_endpoint::{Endpoint, EndpointConfig};
use crate::redact::redact;
use cache::SummaryCache;
use lukasa_code::facts::{DefId, ROOT};
use lukasa_code::ids::IdVec;
use lukasa_code::resolve::{DefRef, FileId, FileLinks, LinkTarget, Program};
use lukasa_code::statements::{Summary, SymbolNames};
use lukasa_code::summary;
use lukasa_code::type_names;
use lukasa_model::Result;
use requests::{OF_COMMUNITY, SummaryClient, SummaryQuestion};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Default number of summaries requested in one pass.
pub const PER_PASS: usize = 200;

/// The cache of summaries, and the model, if one is configured. Known summaries are used also without a model, so that
/// two processes with different settings do not undo each other's work.
pub struct Summaries {
    pub(super) cache: Arc<SummaryCache>,
    pub(super) asker: Option<Arc<SummaryClient>>,
    pub(super) per_pass: usize,
}

impl Summaries {
    /// Caches summaries in `folder`; requests none.
    pub fn new(folder: PathBuf) -> Summaries {
        Summaries { cache: Arc::new(SummaryCache::new(folder)), asker: None, per_pass: PER_PASS }
    }

    /// Requests summaries from a model, at most `per_pass` in one pass.
    pub fn with_model(self, endpoint: &EndpointConfig, per_pass: usize) -> Result<Summaries> {
        Ok(self.with_endpoint(Endpoint::new(endpoint)?, per_pass))
    }

    /// Requests summaries from an endpoint, at most `per_pass` in one pass.
    #[must_use]
    pub fn with_endpoint(mut self, endpoint: Endpoint, per_pass: usize) -> Summaries {
        self.asker = Some(Arc::new(SummaryClient::new(endpoint)));
        self.per_pass = per_pass;
        self
    }

    fn model(&self) -> Option<&str> {
        self.asker.as_ref().map(|asker| &**asker.model())
    }

    /// The known summaries of a file's symbols.
    pub fn of(&self, program: &Program, names: &SymbolNames, file: FileId) -> BTreeMap<DefId, Summary> {
        if self.cache.is_empty() {
            return BTreeMap::new();
        }
        let known = |(def, unit): (DefId, SummaryUnit)| Some((def, self.cache.get(&unit, self.model())?));
        units(program, names, file).filter_map(known).collect()
    }
}

impl GroupSummaries for Summaries {
    fn of_groups(&self, groups: &[ObjectGroup]) -> Vec<Option<Summary>> {
        groups.iter().map(|group| self.cache.get(&group.unit, self.model())).collect()
    }

    fn knows(&self) -> bool {
        self.cache.refresh().is_ok() && !self.cache.is_empty()
    }

    fn asks(&self) -> bool {
        self.asker.is_some()
    }

    fn ask_of_groups(&self, groups: &[ObjectGroup]) -> usize {
        let Some(asker) = &self.asker else { return 0 };
        let model = asker.model();
        let unknown = groups.iter().filter(|group| !self.cache.has(&group.unit, model));
        let mut answered = 0;
        for group in unknown.take(self.per_pass) {
            let Ok(sentence) = asker.sentence(OF_COMMUNITY, &redact(&group.about)) else { break };
            let summary = Summary { text: sentence.unwrap_or_default().into(), model: Arc::clone(model) };
            answered += usize::from(!summary.text.is_empty());
            if self.cache.add(&[(group.unit.clone(), summary)]).is_err() {
                break;
            }
        }
        answered
    }
}

/// The symbols of a file that are worth summarising: those without a sentence in a doc comment.
pub(super) fn units<'a>(
    program: &'a Program,
    names: &'a SymbolNames,
    file: FileId,
) -> impl Iterator<Item = (DefId, SummaryUnit)> + 'a {
    let defs = program.file(file).facts.defs.iter_ids();
    defs.filter(|(_, def)| summary::is_by_rule(def)).filter_map(move |(index, def)| {
        let (object_type, key) = names.name_of(DefRef { file, def: index })?;
        // The name and type of a variable suffice; an empty file has nothing to summarise.
        let worth = object_type != type_names::VARIABLE && def.span.end > def.span.start;
        worth.then(|| (index, SummaryUnit { name: format!("{object_type}:{key}"), content: def.hash }))
    })
}

/// Symbols that the model was not asked about yet, most connected first.
pub(super) fn questions(
    program: &Program,
    names: &SymbolNames,
    links: &IdVec<FileId, FileLinks>,
    content_of: impl Fn(&str) -> Option<[u8; 20]>,
    was_asked: impl Fn(&SummaryUnit) -> bool,
) -> Vec<SummaryQuestion> {
    let degrees = degrees(program, links);
    let mut found: Vec<(u32, SummaryQuestion)> = Vec::new();
    for file in program.ids() {
        let (path, facts) = (&program.file(file).path, &program.file(file).facts);
        let Some(content) = content_of(path) else { continue };
        for (def, unit) in units(program, names, file) {
            if was_asked(&unit) {
                continue;
            }
            let span = facts.def(def).span;
            let question = SummaryQuestion {
                unit,
                path: path.to_string(),
                language: facts.language.name(),
                span: span.start as usize..span.end as usize,
                content,
            };
            found.push((degrees.get(&DefRef { file, def }).copied().unwrap_or(0), question));
        }
    }
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.unit.name.cmp(&b.1.unit.name)));
    found.into_iter().map(|(_, question)| question).collect()
}

/// The number of relationships to or from each symbol.
fn degrees(program: &Program, links: &IdVec<FileId, FileLinks>) -> FxHashMap<DefRef, u32> {
    let mut degrees: FxHashMap<DefRef, u32> = FxHashMap::default();
    for file in program.ids() {
        let (facts, links) = (&program.file(file).facts, &links[file]);
        let mut count = |from: DefId, to: Option<DefRef>| {
            *degrees.entry(DefRef { file, def: from }).or_default() += 1;
            if let Some(to) = to {
                *degrees.entry(to).or_default() += 1;
            }
        };
        let inside = |to: LinkTarget| match to {
            LinkTarget::Def(gid) => Some(gid),
            LinkTarget::External(_) => None,
        };
        links.calls.iter().for_each(|l| count(facts.calls[l.call].owner, inside(l.to)));
        links.bases.iter().for_each(|l| count(l.class, inside(l.to)));
        links.uses.iter().for_each(|l| count(l.owner, Some(l.to)));
        links.imports.iter().for_each(|l| count(ROOT, inside(l.to)));
    }
    degrees
}
