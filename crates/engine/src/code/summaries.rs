//! Summaries of symbols by a language model, where one is configured: what is known, and what is worth asking for.

pub mod ask;
pub mod cache;

use crate::model_endpoint::{Endpoint, EndpointConfig};
use crate::redact::redact;
use ask::{Asker, OF_COMMUNITY, Question};
use cache::{Cache, Unit};
use lukasa_code::facts::{DefId, ROOT};
use lukasa_code::resolve::{FileId, Gid, Links, Program, To};
use lukasa_code::statements::{Names, Summary};
use lukasa_code::summary;
use lukasa_code::type_names;
use lukasa_model::Result;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Asked for in one pass when nobody says otherwise.
pub const PER_PASS: usize = 200;

/// What was asked before, and the model to ask, if there is one. What is known is used also where none is configured, so
/// that two processes with different settings do not undo each other's work.
pub struct Summaries {
    pub(super) cache: Arc<Cache>,
    pub(super) asker: Option<Arc<Asker>>,
    pub(super) per_pass: usize,
}

impl Summaries {
    /// Keeps what is answered in `folder`; asks nobody.
    pub fn new(folder: PathBuf) -> Summaries {
        Summaries { cache: Arc::new(Cache::new(folder)), asker: None, per_pass: PER_PASS }
    }

    /// Asks a model, for at most so many summaries in one pass.
    pub fn with_model(self, endpoint: &EndpointConfig, per_pass: usize) -> Result<Summaries> {
        Ok(self.with_endpoint(Endpoint::new(endpoint)?, per_pass))
    }

    #[must_use]
    pub fn with_endpoint(mut self, endpoint: Endpoint, per_pass: usize) -> Summaries {
        self.asker = Some(Arc::new(Asker::new(endpoint)));
        self.per_pass = per_pass;
        self
    }

    /// What is known of groups of things, in their order.
    pub fn of_groups(&self, groups: &[Group]) -> Vec<Option<Summary>> {
        groups.iter().map(|group| self.cache.get(&group.unit, self.model())).collect()
    }

    /// Whether anything was said so far. What cannot be read now was never said.
    pub fn knows(&self) -> bool {
        self.cache.refresh().is_ok() && !self.cache.is_empty()
    }

    /// Whether there is somebody to ask.
    pub fn asks(&self) -> bool {
        self.asker.is_some()
    }

    /// Asks about the groups nobody was asked about yet, as far as one pass goes; how many answers came. Ends at the first
    /// failure: the groups are there all the same, summed up by rule.
    pub fn ask_of_groups(&self, groups: &[Group]) -> usize {
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

    fn model(&self) -> Option<&str> {
        self.asker.as_ref().map(|asker| &**asker.model())
    }

    /// What is known of a file's symbols.
    pub fn of(&self, program: &Program, names: &Names, file: FileId) -> BTreeMap<DefId, Summary> {
        if self.cache.is_empty() {
            return BTreeMap::new();
        }
        let known = |(def, unit): (DefId, Unit)| Some((def, self.cache.get(&unit, self.model())?));
        units(program, names, file).filter_map(known).collect()
    }
}

/// A group of things to be summed up.
pub struct Group {
    /// Its name, and a hash of who belongs to it: another company is asked about again.
    pub unit: Unit,
    /// What a model is told of it.
    pub about: String,
}

/// The symbols of a file that a model may be asked about: those of which nobody wrote what they are.
pub(super) fn units<'a>(
    program: &'a Program,
    names: &'a Names,
    file: FileId,
) -> impl Iterator<Item = (DefId, Unit)> + 'a {
    let defs = program.file(file).facts.defs.iter().enumerate();
    defs.filter(|(_, def)| summary::is_by_rule(def)).filter_map(move |(index, def)| {
        let index = index as DefId;
        let (object_type, key) = names.name_of(Gid { file, def: index })?;
        // A variable is what its name and type say; an empty file is nothing.
        let worth = object_type != type_names::VARIABLE && def.span.end > def.span.start;
        worth.then(|| (index, Unit { name: format!("{object_type}:{key}"), content: def.hash }))
    })
}

/// What a model was not asked about yet, most connected first.
pub(super) fn questions(
    program: &Program,
    names: &Names,
    links: &[Links],
    content_of: impl Fn(&str) -> Option<[u8; 20]>,
    was_asked: impl Fn(&Unit) -> bool,
) -> Vec<Question> {
    let degrees = degrees(program, links);
    let mut found: Vec<(u32, Question)> = Vec::new();
    for file in program.ids() {
        let (path, facts) = (&program.file(file).path, &program.file(file).facts);
        let Some(content) = content_of(path) else { continue };
        for (def, unit) in units(program, names, file) {
            if was_asked(&unit) {
                continue;
            }
            let span = facts.def(def).span;
            let question = Question {
                unit,
                path: path.to_string(),
                language: facts.language.name(),
                span: span.start as usize..span.end as usize,
                content,
            };
            found.push((degrees.get(&Gid { file, def }).copied().unwrap_or(0), question));
        }
    }
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.unit.name.cmp(&b.1.unit.name)));
    found.into_iter().map(|(_, question)| question).collect()
}

/// How many relationships lead to or from each symbol.
fn degrees(program: &Program, links: &[Links]) -> FxHashMap<Gid, u32> {
    let mut degrees: FxHashMap<Gid, u32> = FxHashMap::default();
    for file in program.ids() {
        let (facts, links) = (&program.file(file).facts, &links[file as usize]);
        let mut count = |from: DefId, to: Option<Gid>| {
            *degrees.entry(Gid { file, def: from }).or_default() += 1;
            if let Some(to) = to {
                *degrees.entry(to).or_default() += 1;
            }
        };
        let inside = |to: To| match to {
            To::Def(gid) => Some(gid),
            To::External(_) => None,
        };
        links.calls.iter().for_each(|l| count(facts.calls[l.call as usize].owner, inside(l.to)));
        links.bases.iter().for_each(|l| count(l.class, inside(l.to)));
        links.uses.iter().for_each(|l| count(l.owner, Some(l.to)));
        links.imports.iter().for_each(|l| count(ROOT, inside(l.to)));
    }
    degrees
}
