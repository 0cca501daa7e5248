//! Objects that earlier parts of a load created, found by id.

use crate::version::{Fact, Version};
use rustc_hash::FxHashMap;
use uuid::Uuid;

/// Objects that earlier parts of a load created, each with its last version.
#[derive(Debug, Default)]
pub struct CreatedObjects {
    places: FxHashMap<Uuid, u32>,
    /// Kept outside the hash table, whose empty slots would double the memory.
    all: Vec<(Fact, Version)>,
}

impl CreatedObjects {
    /// Returns an object and its last version.
    pub fn get(&self, id: &Uuid) -> Option<&(Fact, Version)> {
        self.places.get(id).map(|place| &self.all[*place as usize])
    }

    /// Adds an object, or replaces its version.
    pub fn insert(&mut self, thing: Fact, statement: Version) {
        match self.places.get(&thing.id) {
            Some(place) => self.all[*place as usize] = (thing, statement),
            None => {
                self.places.insert(thing.id, u32::try_from(self.all.len()).expect("a batch is limited"));
                self.all.push((thing, statement));
            }
        }
    }

    /// Returns all objects, in order of creation.
    pub fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.all.iter().map(|(thing, _)| thing)
    }
}
