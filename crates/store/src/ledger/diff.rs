//! Compares two views by id: added, removed and modified facts, with what changed.

use super::{Ledger, ViewRow, ViewStream, end_names};
use crate::VersionFields;
use lukasa_model::change::{ChangeSummary, summarise};
use lukasa_model::timeline::holding;
use lukasa_model::version::{Fact, Version};
use lukasa_model::{Result, Time, View};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeClass {
    Added,
    Removed,
    Modified,
}

/// A fact that differs between two views.
#[derive(Clone, Debug)]
pub struct FactChange {
    pub class: ChangeClass,
    pub thing: Fact,
    /// The visible version in the first view; `None` for added facts.
    pub before: Option<Version>,
    /// The visible version in the second view; `None` for removed facts.
    pub after: Option<Version>,
    /// Names of the ends of a relationship.
    pub between: Option<[String; 2]>,
    /// Only for modified facts.
    pub summary: Option<ChangeSummary>,
    /// Since when a removed fact is recorded as absent; `None` for a relationship that disappeared because one of its
    /// ends did.
    pub ended_at: Option<Time>,
}

/// Changes in order of fact numbers. The counts include changes beyond the limit.
#[derive(Clone, Debug, Default)]
pub struct ViewDifference {
    /// At most as many as were requested.
    pub changes: Vec<FactChange>,
    pub added: usize,
    pub removed: usize,
    pub modified: usize,
}

/// Options for comparing two views.
pub struct DiffOptions<'a> {
    /// Most changes to list; all are counted.
    pub limit: usize,
    /// Whether a fact is compared.
    pub wanted: &'a dyn Fn(&Fact) -> bool,
    /// JSON pointers to content that describes only where something is located: a version that differs only there does
    /// not count as modified.
    pub positions: &'a dyn Fn(&Fact) -> &'static [&'static str],
}

/// Changes processed per batch of reads.
const AT_ONCE: usize = 1_000;

impl Ledger {
    /// Returns what turns `before` into `after`. At most `limit` changes are listed, all are counted. System objects
    /// (branches, releases, tags, types) are not compared.
    pub fn diff(&self, before: &View, after: &View, limit: usize) -> Result<ViewDifference> {
        self.diff_of(before, after, &DiffOptions { limit, wanted: &|_| true, positions: &|_| &[] })
    }

    /// Like `diff`, restricted to some facts and ignoring changes of position.
    pub fn diff_of(&self, before: &View, after: &View, how: &DiffOptions<'_>) -> Result<ViewDifference> {
        let mut old = Peek::new(self.stream_view(before, VersionFields::Header)?)?;
        let mut new = Peek::new(self.stream_view(after, VersionFields::Header)?)?;
        let mut out = ViewDifference::default();
        let mut waiting: Vec<FactChange> = Vec::new();
        loop {
            let order = match (&old.row, &new.row) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => a.thing.no.cmp(&b.thing.no),
            };
            let a = if order.is_le() { old.take()? } else { None };
            let b = if order.is_ge() { new.take()? } else { None };
            let class = match (&a, &b) {
                (Some(a), Some(b)) if a.statement.hash == b.statement.hash => continue,
                (Some(_), Some(_)) => ChangeClass::Modified,
                (Some(_), None) => ChangeClass::Removed,
                (None, _) => ChangeClass::Added,
            };
            let Some(thing) = b.as_ref().or(a.as_ref()).map(|row| row.thing.clone()) else { continue };
            if !(how.wanted)(&thing) {
                continue;
            }
            let (before, after) = (a.map(|row| row.statement), b.map(|row| row.statement));
            waiting.push(FactChange { class, thing, before, after, between: None, summary: None, ended_at: None });
            if waiting.len() == AT_ONCE {
                self.count(std::mem::take(&mut waiting), how, &mut out)?;
            }
        }
        self.count(waiting, how, &mut out)?;
        self.explain(&mut out.changes, after, how)?;
        Ok(out)
    }

    /// Counts and lists changes, except those of position only.
    fn count(&self, mut changes: Vec<FactChange>, how: &DiffOptions<'_>, out: &mut ViewDifference) -> Result<()> {
        let may_have_moved = |c: &FactChange| c.class == ChangeClass::Modified && !(how.positions)(&c.thing).is_empty();
        let numbers: Vec<_> = changes.iter().filter(|c| may_have_moved(c)).map(|c| c.thing.no).collect();
        if !numbers.is_empty() {
            let mut reader = self.store.read(&self.scope)?;
            let statements = reader.versions(&numbers, VersionFields::Content)?;
            let contents: FxHashMap<_, _> = statements.into_iter().map(|s| (s.version, s.content)).collect();
            let text = |s: &Option<Version>| s.as_ref().and_then(|s| contents.get(&s.version)?.clone());
            changes.retain(|change| {
                let paths: Vec<String> = (how.positions)(&change.thing).iter().map(|path| (*path).to_owned()).collect();
                let differs = || {
                    let (before, after) = (text(&change.before), text(&change.after));
                    !summarise(before.as_deref(), after.as_deref(), &paths).paths.is_empty()
                };
                !may_have_moved(change) || differs()
            });
        }
        for change in changes {
            match change.class {
                ChangeClass::Added => out.added += 1,
                ChangeClass::Removed => out.removed += 1,
                ChangeClass::Modified => out.modified += 1,
            }
            if out.changes.len() < how.limit {
                out.changes.push(change);
            }
        }
        Ok(())
    }

    /// Fills in contents and summaries of modified facts, and when removed facts ended.
    fn explain(&self, changes: &mut [FactChange], after: &View, how: &DiffOptions<'_>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut reader = self.store.read(&self.scope)?;
        let head = reader.head()?;
        let registry = self.registry_in(&mut *reader, &head)?;
        for chunk in changes.chunks_mut(AT_ONCE) {
            let numbers: Vec<_> = chunk.iter().map(|c| c.thing.no).collect();
            let statements = reader.versions(&numbers, VersionFields::Content)?;
            let gone = |no| {
                let from = statements.partition_point(|s| s.thing < no);
                let to = statements.partition_point(|s| s.thing <= no);
                let absent = holding(&statements[from..to], &after.lineage, after.valid).filter(|s| s.absent)?;
                Some(absent.period.from)
            };
            for change in chunk.iter_mut().filter(|change| change.class == ChangeClass::Removed) {
                change.ended_at = gone(change.thing.no);
            }
            let contents: FxHashMap<_, _> = statements.into_iter().map(|s| (s.version, s.content)).collect();
            let fill = |statement: &mut Option<Version>| {
                if let Some(s) = statement {
                    s.content = contents.get(&s.version).cloned().flatten();
                }
            };
            let mut names = end_names(&mut *reader, chunk.iter().map(|c| &c.thing))?;
            for change in chunk {
                change.between = names.remove(&change.thing.no);
                fill(&mut change.before);
                fill(&mut change.after);
                if change.class == ChangeClass::Modified {
                    let text = |s: &Option<Version>| s.as_ref().and_then(|s| s.content.clone());
                    let ignored = registry.ignored_paths(&change.thing.type_name, change.thing.ends.is_some());
                    let positions = (how.positions)(&change.thing).iter().map(|path| (*path).to_owned());
                    let ignored: Vec<String> = ignored.iter().cloned().chain(positions).collect();
                    let (before, after) = (text(&change.before), text(&change.after));
                    change.summary = Some(summarise(before.as_deref(), after.as_deref(), &ignored));
                }
            }
        }
        Ok(())
    }
}

struct Peek {
    stream: ViewStream,
    row: Option<ViewRow>,
}

impl Peek {
    fn new(mut stream: ViewStream) -> Result<Peek> {
        let row = Peek::facts(&mut stream)?;
        Ok(Peek { stream, row })
    }

    fn take(&mut self) -> Result<Option<ViewRow>> {
        let next = Peek::facts(&mut self.stream)?;
        Ok(std::mem::replace(&mut self.row, next))
    }

    fn facts(stream: &mut ViewStream) -> Result<Option<ViewRow>> {
        let is_fact = |row: &Result<ViewRow>| row.as_ref().map_or(true, |row| !row.is_system());
        stream.find(is_fact).transpose()
    }
}
