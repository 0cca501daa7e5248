//! Compares two views by id: added, removed, modified, with what changed.

use super::{HeadRow, HeadStream, Ledger, end_names};
use crate::Fields;
use lukasa_model::change::{ChangeSummary, summarise};
use lukasa_model::statement::{Statement, Thing};
use lukasa_model::timeline::holding;
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

#[derive(Clone, Debug)]
pub struct Change {
    pub class: ChangeClass,
    pub thing: Thing,
    pub before: Option<Statement>,
    pub after: Option<Statement>,
    /// Names of the ends, of a relationship.
    pub between: Option<[String; 2]>,
    /// Only for modified things.
    pub summary: Option<ChangeSummary>,
    /// Since when a removed thing is said to be absent; none of a relationship that went with one of its ends.
    pub ended_at: Option<Time>,
}

/// Changes in order of thing numbers. Counts are of all, also when `changes` was cut.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    pub changes: Vec<Change>,
    pub added: usize,
    pub removed: usize,
    pub modified: usize,
}

impl Ledger {
    /// What turns `before` into `after`; at most `limit` changes are listed, all are counted. What Lukasa keeps
    /// for itself (branches, releases, tags, types) is not compared.
    pub fn diff(&self, before: &View, after: &View, limit: usize) -> Result<Difference> {
        self.diff_of(before, after, limit, &|_| true)
    }

    /// The same of some things only.
    pub fn diff_of(
        &self,
        before: &View,
        after: &View,
        limit: usize,
        wanted: &dyn Fn(&Thing) -> bool,
    ) -> Result<Difference> {
        let mut old = Peek::new(self.heads(before, Fields::Header)?)?;
        let mut new = Peek::new(self.heads(after, Fields::Header)?)?;
        let mut out = Difference::default();
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
            let thing = b.as_ref().or(a.as_ref()).map(|row| row.thing.clone());
            if thing.as_ref().is_none_or(|thing| !wanted(thing)) {
                continue;
            }
            match class {
                ChangeClass::Added => out.added += 1,
                ChangeClass::Removed => out.removed += 1,
                ChangeClass::Modified => out.modified += 1,
            }
            if let (Some(thing), true) = (thing, out.changes.len() < limit) {
                let (before, after) = (a.map(|row| row.statement), b.map(|row| row.statement));
                out.changes.push(Change { class, thing, before, after, between: None, summary: None, ended_at: None });
            }
        }
        self.explain(&mut out.changes, after)?;
        Ok(out)
    }

    /// Loads the contents of what was modified and tells the change, and when what was removed ended.
    fn explain(&self, changes: &mut [Change], after: &View) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut reader = self.store.read(&self.scope)?;
        let head = reader.head()?;
        let registry = self.registry_in(&mut *reader, &head)?;
        for chunk in changes.chunks_mut(1_000) {
            let numbers: Vec<_> = chunk.iter().map(|c| c.thing.no).collect();
            let statements = reader.statements(&numbers, Fields::Content)?;
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
            let fill = |statement: &mut Option<Statement>| {
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
                    let text = |s: &Option<Statement>| s.as_ref().and_then(|s| s.content.clone());
                    let ignored = registry.ignored_paths(&change.thing.type_name, change.thing.ends.is_some());
                    let (before, after) = (text(&change.before), text(&change.after));
                    change.summary = Some(summarise(before.as_deref(), after.as_deref(), ignored));
                }
            }
        }
        Ok(())
    }
}

struct Peek {
    stream: HeadStream,
    row: Option<HeadRow>,
}

impl Peek {
    fn new(mut stream: HeadStream) -> Result<Peek> {
        let row = Peek::facts(&mut stream)?;
        Ok(Peek { stream, row })
    }

    fn take(&mut self) -> Result<Option<HeadRow>> {
        let next = Peek::facts(&mut self.stream)?;
        Ok(std::mem::replace(&mut self.row, next))
    }

    fn facts(stream: &mut HeadStream) -> Result<Option<HeadRow>> {
        let is_fact = |row: &Result<HeadRow>| row.as_ref().map_or(true, |row| !row.is_system());
        stream.find(is_fact).transpose()
    }
}
