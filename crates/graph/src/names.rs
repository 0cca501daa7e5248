//! Names of types, labels and derivations. Each is kept once; the graph stores their numbers.

use crate::convert::to_u32;
use crate::projection::{ByteReader, ByteWriter};
use crate::snapshot::TypeNo;
use lukasa_model::types::Registry;
use lukasa_model::{Error, ErrorCode, Result};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A number keeps its meaning as long as the projection lives, so snapshots share this table.
#[derive(Clone, Default)]
pub struct NameTable {
    types: Interner,
    labels: Vec<Arc<[Arc<str>]>>,
    label_sets: FxHashMap<Arc<[Arc<str>]>, u32>,
    derivations: Vec<Arc<str>>,
    derivation_numbers: FxHashMap<Arc<str>, u32>,
}

#[derive(Clone, Default)]
struct Interner {
    names: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, TypeNo>,
}

impl Interner {
    fn find(&self, name: &str) -> Option<TypeNo> {
        self.numbers.get(name).copied()
    }

    fn add(&mut self, name: &str) -> Result<TypeNo> {
        let number = u16::try_from(self.names.len()).ok().filter(|n| *n < u16::MAX).map(TypeNo).ok_or_else(|| {
            Error::too_large(ErrorCode::TooManyTypes, format!("more than {} different names in one graph", u16::MAX))
        })?;
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        Ok(number)
    }
}

impl NameTable {
    /// The number of a type. The table is copied only for a new name.
    pub(crate) fn type_no(names: &mut Arc<NameTable>, name: &str) -> Result<TypeNo> {
        match names.types.find(name) {
            Some(number) => Ok(number),
            None => Arc::make_mut(names).types.add(name),
        }
    }

    /// 0 if there is no derivation.
    pub(crate) fn derivation_no(names: &mut Arc<NameTable>, name: Option<&str>) -> u32 {
        let Some(name) = name else { return 0 };
        if let Some(number) = names.derivation_numbers.get(name) {
            return *number;
        }
        let names = Arc::make_mut(names);
        let name: Arc<str> = name.into();
        names.derivations.push(Arc::clone(&name));
        let number = to_u32(names.derivations.len());
        names.derivation_numbers.insert(name, number);
        number
    }

    /// Whether so many names have become unused that a newly built graph would be much smaller.
    pub(crate) fn outgrow(&self, nodes: usize) -> bool {
        self.labels.len() + self.derivations.len() > 2 * nodes + 10_000
    }

    /// `labels` must be sorted and without duplicates.
    pub(crate) fn label_set_no(names: &mut Arc<NameTable>, labels: &[impl AsRef<str>]) -> u32 {
        if labels.is_empty() {
            return 0;
        }
        let set: Arc<[Arc<str>]> = labels.iter().map(|l| Arc::from(l.as_ref())).collect();
        if let Some(number) = names.label_sets.get(&set) {
            return *number;
        }
        let names = Arc::make_mut(names);
        names.labels.push(Arc::clone(&set));
        let number = to_u32(names.labels.len());
        names.label_sets.insert(set, number);
        number
    }

    pub(crate) fn write(&self, out: &mut ByteWriter) {
        out.u32(to_u32(self.types.names.len()));
        self.types.names.iter().for_each(|name| out.text(Some(name)));
        out.u32(to_u32(self.labels.len()));
        for set in &self.labels {
            out.u32(to_u32(set.len()));
            set.iter().for_each(|label| out.text(Some(label)));
        }
        out.u32(to_u32(self.derivations.len()));
        self.derivations.iter().for_each(|name| out.text(Some(name)));
    }

    /// Decodes names with the numbers they were encoded with. `None` if the bytes are damaged.
    pub(crate) fn read(from: &mut ByteReader<'_>) -> Option<NameTable> {
        let mut names = Arc::new(NameTable::default());
        for number in 0..from.u32()? {
            let read = NameTable::type_no(&mut names, from.text()??).ok()?;
            (u32::from(read.0) == number).then_some(())?;
        }
        for number in 0..from.u32()? {
            let mut labels = Vec::new();
            for _ in 0..from.u32()? {
                labels.push(from.text()??);
            }
            (NameTable::label_set_no(&mut names, &labels) == number + 1).then_some(())?;
        }
        for number in 0..from.u32()? {
            (NameTable::derivation_no(&mut names, Some(from.text()??)) == number + 1).then_some(())?;
        }
        Arc::into_inner(names)
    }

    /// Whether these numbers are assigned.
    pub(crate) fn has(&self, type_no: TypeNo, labels: u32, derivation: u32) -> bool {
        type_no.index() < self.types.names.len()
            && labels as usize <= self.labels.len()
            && derivation as usize <= self.derivations.len()
    }

    /// The name of a type.
    pub fn type_name(&self, number: TypeNo) -> &Arc<str> {
        &self.types.names[number.index()]
    }

    /// Every type name of nodes and edges so far, by number.
    pub fn types(&self) -> &[Arc<str>] {
        &self.types.names
    }

    /// The labels of a set, sorted.
    pub fn labels(&self, set: u32) -> &[Arc<str>] {
        match set {
            0 => &[],
            set => &self.labels[set as usize - 1],
        }
    }

    /// The number of different sets of labels, including the empty one.
    pub fn label_sets(&self) -> usize {
        self.labels.len() + 1
    }

    /// The derivation with this number. `None` for 0.
    pub fn derivation(&self, number: u32) -> Option<&Arc<str>> {
        number.checked_sub(1).map(|n| &self.derivations[n as usize])
    }

    /// A table by type number of the types that these names mean, in any spelling that the registry knows.
    pub fn chosen(&self, names: &[String], registry: &Registry, relationships: bool) -> Vec<bool> {
        let meant = |known: &Arc<str>| names.iter().any(|name| registry.is_same_type(name, known, relationships));
        self.types.names.iter().map(meant).collect()
    }
}
