//! What earlier parts of a load made: found by id, kept one after the other.

use crate::statement::{Statement, Thing};
use rustc_hash::FxHashMap;
use uuid::Uuid;

/// Objects that earlier parts of a load made, each with its last statement.
#[derive(Debug, Default)]
pub struct Made {
    places: FxHashMap<Uuid, u32>,
    /// Apart from the table, whose empty places would take as much again.
    all: Vec<(Thing, Statement)>,
}

impl Made {
    pub fn get(&self, id: &Uuid) -> Option<&(Thing, Statement)> {
        self.places.get(id).map(|place| &self.all[*place as usize])
    }

    pub fn insert(&mut self, thing: Thing, statement: Statement) {
        match self.places.get(&thing.id) {
            Some(place) => self.all[*place as usize] = (thing, statement),
            None => {
                self.places.insert(thing.id, self.all.len() as u32);
                self.all.push((thing, statement));
            }
        }
    }

    pub fn things(&self) -> impl Iterator<Item = &Thing> {
        self.all.iter().map(|(thing, _)| thing)
    }
}
