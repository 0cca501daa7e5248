//! Everything visible in a view, in order of fact numbers, page by page.

use super::Ledger;
use crate::{Store, VersionFields};
use lukasa_model::timeline::{next_border, visible};
use lukasa_model::types::{Registry, system};
use lukasa_model::version::{Fact, FactKind, Version};
use lukasa_model::{FactNo, Result, Scope, Time, View};
use std::sync::Arc;

/// Fact numbers per page: large enough to hide the cost of a query, small enough for any memory.
const PAGE: usize = 4_096;

/// A visible fact and its visible version.
#[derive(Clone, Debug)]
pub struct ViewRow {
    pub thing: Fact,
    pub statement: Version,
    /// For lasting relationships: whether an end is no longer visible.
    pub src_ended: bool,
    pub dst_ended: bool,
}

impl ViewRow {
    /// Whether it is a system object: a branch, release, tag, type or setting.
    pub fn is_system(&self) -> bool {
        self.thing.ends.is_none() && system::is(&self.thing.type_name)
    }
}

/// An iterator over a view. A view is fixed, so pages are consistent whatever is written meanwhile, and no transaction
/// is held open between them.
pub struct ViewStream {
    store: Arc<dyn Store>,
    scope: Scope,
    view: View,
    registry: Arc<Registry>,
    fields: VersionFields,
    only: Option<FactKind>,
    next: FactNo,
    end: FactNo,
    seen: Bits,
    page: std::vec::IntoIter<ViewRow>,
    upcoming: Vec<(Time, FactNo)>,
}

impl Ledger {
    /// Streams every fact that is visible in a view, ordered by number.
    pub fn stream_view(&self, view: &View, fields: VersionFields) -> Result<ViewStream> {
        let (mut reader, head) = self.open()?;
        let registry = self.registry_at(&mut *reader, &head, view.known)?;
        Ok(ViewStream {
            store: Arc::clone(&self.store),
            scope: self.scope.clone(),
            view: view.clone(),
            registry,
            fields,
            only: None,
            next: FactNo(0),
            end: head.next_thing,
            seen: Bits::default(),
            page: Vec::new().into_iter(),
            upcoming: Vec::new(),
        })
    }
}

impl ViewStream {
    /// Restricts the stream to one kind.
    #[must_use]
    pub fn only(mut self, kind: FactKind) -> ViewStream {
        self.only = Some(kind);
        self
    }

    /// Returns the visible facts of the next page of numbers; `None` at the end.
    pub fn next_page(&mut self) -> Result<Option<Vec<ViewRow>>> {
        if self.next >= self.end {
            return Ok(None);
        }
        let range = self.next..self.next.plus(PAGE).min(self.end);
        let mut reader = self.store.read(&self.scope)?;
        let things = reader.facts_in(range.clone())?;
        let statements = reader.versions_in(range.clone(), self.fields)?;
        drop(reader);
        self.next = range.end;
        let mut rows = Vec::with_capacity(things.len());
        let mut rest = statements.into_iter().peekable();
        let mut own = Vec::new();
        for thing in things {
            own.clear();
            while let Some(statement) = rest.next_if(|s| s.thing <= thing.no) {
                own.push(statement);
            }
            let border = next_border(&own, &self.view.lineage, self.view.valid);
            if border < Time::MAX {
                self.upcoming.push((border, thing.no));
            }
            let Some(at) = visible(&own, &self.view.lineage, self.view.valid).map(|s| s.version) else { continue };
            let Some(place) = own.iter().position(|s| s.version == at) else { continue };
            let statement = own.swap_remove(place);
            rows.extend(self.row(thing, statement));
        }
        Ok(Some(rows))
    }

    /// Returns which facts passed so far, visible or not, may change with valid time alone, and when.
    pub fn upcoming(&mut self) -> Vec<(Time, FactNo)> {
        std::mem::take(&mut self.upcoming)
    }

    /// The upper bound of fact numbers in the view.
    pub fn fact_bound(&self) -> FactNo {
        self.end
    }

    fn row(&mut self, thing: Fact, statement: Version) -> Option<ViewRow> {
        let (mut src_ended, mut dst_ended) = (false, false);
        match &thing.ends {
            // Ends have lower numbers than their relationships, so they have been visited.
            Some(ends) => {
                (src_ended, dst_ended) = (!self.seen.has(ends.src), !self.seen.has(ends.dst));
                if (src_ended || dst_ended) && !self.registry.is_lasting(&thing.type_name) {
                    return None;
                }
            }
            None => self.seen.add(thing.no),
        }
        (self.only.is_none_or(|kind| kind == thing.kind())).then_some(ViewRow {
            thing,
            statement,
            src_ended,
            dst_ended,
        })
    }
}

impl Iterator for ViewStream {
    type Item = Result<ViewRow>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.page.next() {
                return Some(Ok(row));
            }
            match self.next_page() {
                Ok(Some(rows)) => self.page = rows.into_iter(),
                Ok(None) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }
}

/// Numbers of visible objects as a bit set.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn add(&mut self, no: FactNo) {
        let word = no.index() / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (no.0 % 64);
    }

    fn has(&self, no: FactNo) -> bool {
        self.0.get(no.index() / 64).is_some_and(|word| word >> (no.0 % 64) & 1 == 1)
    }
}
