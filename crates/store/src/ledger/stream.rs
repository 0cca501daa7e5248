//! Everything visible in a view, in order of fact numbers, page by page.

use super::Ledger;
use crate::{Fields, Store, index};
use lukasa_model::statement::{Kind, Statement, Thing};
use lukasa_model::timeline::{next_border, visible};
use lukasa_model::types::{Registry, system};
use lukasa_model::{Result, Scope, ThingNo, Time, View};
use std::sync::Arc;

/// Fact numbers per page: large enough to hide the cost of a query, small enough for any memory.
const PAGE: ThingNo = 4_096;

/// A visible fact and its visible version.
#[derive(Clone, Debug)]
pub struct HeadRow {
    pub thing: Thing,
    pub statement: Statement,
    /// For lasting relationships: whether an end is no longer visible.
    pub src_ended: bool,
    pub dst_ended: bool,
}

impl HeadRow {
    /// Whether it is a system object: a branch, release, tag, type or setting.
    pub fn is_system(&self) -> bool {
        self.thing.ends.is_none() && system::is(&self.thing.type_name)
    }
}

/// An iterator over a view. A view is fixed, so pages are consistent whatever is written meanwhile, and no transaction
/// is held open between them.
pub struct HeadStream {
    store: Arc<dyn Store>,
    scope: Scope,
    view: View,
    registry: Arc<Registry>,
    fields: Fields,
    only: Option<Kind>,
    next: ThingNo,
    end: ThingNo,
    seen: Bits,
    page: std::vec::IntoIter<HeadRow>,
    upcoming: Vec<(Time, ThingNo)>,
}

impl Ledger {
    /// Streams every fact that is visible in a view, ordered by number.
    pub fn heads(&self, view: &View, fields: Fields) -> Result<HeadStream> {
        let (mut reader, head) = self.open()?;
        let registry = self.registry_at(&mut *reader, &head, view.known)?;
        Ok(HeadStream {
            store: Arc::clone(&self.store),
            scope: self.scope.clone(),
            view: view.clone(),
            registry,
            fields,
            only: None,
            next: 0,
            end: head.next_thing,
            seen: Bits::default(),
            page: Vec::new().into_iter(),
            upcoming: Vec::new(),
        })
    }
}

impl HeadStream {
    /// Restricts the stream to one kind.
    #[must_use]
    pub fn only(mut self, kind: Kind) -> HeadStream {
        self.only = Some(kind);
        self
    }

    /// Returns the visible facts of the next page of numbers; `None` at the end.
    pub fn next_page(&mut self) -> Result<Option<Vec<HeadRow>>> {
        if self.next >= self.end {
            return Ok(None);
        }
        let range = self.next..(self.next + PAGE).min(self.end);
        let mut reader = self.store.read(&self.scope)?;
        let things = reader.things_in(range.clone())?;
        let statements = reader.statements_in(range.clone(), self.fields)?;
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
    pub fn upcoming(&mut self) -> Vec<(Time, ThingNo)> {
        std::mem::take(&mut self.upcoming)
    }

    /// The upper bound of fact numbers in the view.
    pub fn things(&self) -> ThingNo {
        self.end
    }

    fn row(&mut self, thing: Thing, statement: Statement) -> Option<HeadRow> {
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
        (self.only.is_none_or(|kind| kind == thing.kind())).then_some(HeadRow {
            thing,
            statement,
            src_ended,
            dst_ended,
        })
    }
}

impl Iterator for HeadStream {
    type Item = Result<HeadRow>;

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
    fn add(&mut self, no: ThingNo) {
        let word = index(no / 64);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (no % 64);
    }

    fn has(&self, no: ThingNo) -> bool {
        self.0.get(index(no / 64)).is_some_and(|word| word >> (no % 64) & 1 == 1)
    }
}
