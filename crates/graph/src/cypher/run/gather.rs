//! Rows that must all have come before the first can go on: groups, and rows to be ordered.

use super::super::aggregate::Total;
use super::super::eval::Row;
use super::super::expr::{Aggregation, Ex, Slot, Step, StepKind};
use super::super::value::{Key, Value, order};
use super::{Exec, Go, Stop};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// Rows sorted at once.
const RUN: usize = 16_384;

/// Rows that wait, as the values of some slots.
pub(super) struct Gathered {
    pub slots: Vec<Slot>,
    pub rows: Vec<Vec<Value>>,
    /// What they were charged with.
    pub bytes: usize,
}

impl Gathered {
    pub fn len(&self) -> usize {
        self.rows.len()
    }
}

pub(super) enum Gathering<'s> {
    Groups(Groups<'s>),
    Order(Order<'s>),
}

pub(super) struct Groups<'s> {
    aggregation: &'s Aggregation,
    places: Places,
    groups: Vec<(Vec<Value>, Vec<Total>)>,
    bytes: usize,
}

enum Places {
    /// There is one group, even of nothing.
    All,
    One(FxHashMap<Key, usize>),
    Many(FxHashMap<Box<[Key]>, usize>),
}

pub(super) struct Order<'s> {
    keys: &'s [(Ex, bool)],
    keep: &'s [Slot],
    most: Option<usize>,
    rows: Vec<Sortable>,
    /// Rows in order, so many at a time that no sort takes long.
    runs: Vec<Vec<Sortable>>,
    /// The last key that still counts, once there are enough rows.
    worst: Option<Vec<Value>>,
    bytes: usize,
    came: u64,
}

struct Sortable {
    keys: Vec<Value>,
    came: u64,
    values: Vec<Value>,
    bytes: usize,
}

impl<'s> Gathering<'s> {
    pub fn new(exec: &Exec<'_>, step: &'s Step, row: &mut Row) -> Result<Gathering<'s>, Stop> {
        Ok(match &step.kind {
            StepKind::Sort { keys, keep, most } => {
                let most = most.as_ref().map(|ex| exec.number_of_rows(ex, row)).transpose()?;
                let most = most.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
                Gathering::Order(Order { keys, keep, most, rows: vec![], runs: vec![], worst: None, bytes: 0, came: 0 })
            }
            StepKind::Aggregate(aggregation) => {
                let mut groups = Vec::new();
                let places = match aggregation.keys.len() {
                    0 => {
                        groups.push((vec![], aggregation.calls.iter().map(Total::new).collect()));
                        Places::All
                    }
                    1 => Places::One(FxHashMap::default()),
                    _ => Places::Many(FxHashMap::default()),
                };
                Gathering::Groups(Groups { aggregation, places, groups, bytes: 0 })
            }
            _ => {
                let message = "rows are gathered by a step that gathers none";
                return Err(lukasa_model::Error::internal(message).into());
            }
        })
    }

    #[inline]
    pub fn take(&mut self, exec: &Exec<'_>, row: &mut Row) -> Go {
        match self {
            Gathering::Groups(groups) => groups.take(exec, row),
            Gathering::Order(order) => order.take(exec, row),
        }
    }

    pub fn finish(self, exec: &Exec<'_>) -> Result<Gathered, Stop> {
        match self {
            Gathering::Groups(groups) => groups.finish(),
            Gathering::Order(order) => order.finish(exec),
        }
    }
}

impl Groups<'_> {
    fn take(&mut self, exec: &Exec<'_>, row: &mut Row) -> Go {
        let group = match &mut self.places {
            Places::All => 0,
            Places::One(places) => {
                let key = Key(exec.eval(&self.aggregation.keys[0].0, row)?);
                match places.get(&key) {
                    Some(place) => *place,
                    None => {
                        let bytes = 2 * (size_of::<Value>() + key.0.heap()) + 64 * self.aggregation.calls.len();
                        exec.charge(bytes)?;
                        self.bytes += bytes;
                        let totals = self.aggregation.calls.iter().map(Total::new).collect();
                        self.groups.push((vec![key.0.clone()], totals));
                        places.insert(key, self.groups.len() - 1);
                        self.groups.len() - 1
                    }
                }
            }
            Places::Many(places) => {
                let mut keys = Vec::with_capacity(self.aggregation.keys.len());
                for (ex, _) in &self.aggregation.keys {
                    keys.push(Key(exec.eval(ex, row)?));
                }
                match places.get(keys.as_slice()) {
                    Some(place) => *place,
                    None => {
                        let own: usize = keys.iter().map(|k| size_of::<Value>() + k.0.heap()).sum();
                        let bytes = 2 * own + 64 * self.aggregation.calls.len();
                        exec.charge(bytes)?;
                        self.bytes += bytes;
                        let totals = self.aggregation.calls.iter().map(Total::new).collect();
                        self.groups.push((keys.iter().map(|k| k.0.clone()).collect(), totals));
                        places.insert(keys.into(), self.groups.len() - 1);
                        self.groups.len() - 1
                    }
                }
            }
        };
        let totals = &mut self.groups[group].1;
        for (call, total) in self.aggregation.calls.iter().zip(totals) {
            let Some(argument) = &call.argument else {
                total.row();
                continue;
            };
            let value = exec.eval(argument, row)?;
            let second = call.second.as_ref().map(|ex| exec.eval(ex, row)).transpose()?;
            let bytes = total.add(value, second, call.at)?;
            if bytes > 0 {
                exec.charge(bytes)?;
                self.bytes += bytes;
            }
        }
        Ok(true)
    }

    fn finish(self) -> Result<Gathered, Stop> {
        let keys = self.aggregation.keys.iter().map(|(_, slot)| *slot);
        let slots = keys.chain(self.aggregation.calls.iter().map(|c| c.slot)).collect();
        let mut rows = Vec::with_capacity(self.groups.len());
        for (mut values, totals) in self.groups {
            for (call, total) in self.aggregation.calls.iter().zip(totals) {
                values.push(total.finish(call.at)?);
            }
            rows.push(values);
        }
        Ok(Gathered { slots, rows, bytes: self.bytes })
    }
}

impl Order<'_> {
    fn compare(keys: &[(Ex, bool)], a: &[Value], b: &[Value]) -> Ordering {
        for ((a, b), (_, descending)) in a.iter().zip(b).zip(keys) {
            let found = order(a, b);
            let found = if *descending { found.reverse() } else { found };
            if found.is_ne() {
                return found;
            }
        }
        Ordering::Equal
    }

    fn take(&mut self, exec: &Exec<'_>, row: &mut Row) -> Go {
        let mut keys = Vec::with_capacity(self.keys.len());
        for (ex, _) in self.keys {
            keys.push(exec.eval(ex, row)?);
        }
        self.came += 1;
        if let Some(worst) = &self.worst
            && Self::compare(self.keys, &keys, worst).is_ge()
        {
            return Ok(true);
        }
        if self.most == Some(0) {
            return Ok(false);
        }
        let values: Vec<Value> = self.keep.iter().map(|s| row[*s].clone()).collect();
        let own = |v: &Value| size_of::<Value>() + v.heap();
        let bytes = 64 + keys.iter().chain(&values).map(own).sum::<usize>();
        exec.charge(bytes)?;
        self.bytes += bytes;
        self.rows.push(Sortable { keys, came: self.came, values, bytes });
        match self.most {
            Some(most) if most <= RUN / 2 => {
                if self.rows.len() >= (most * 2).max(64) {
                    self.shorten(most, exec);
                }
            }
            _ => {
                if self.rows.len() == RUN {
                    self.sort();
                    self.runs.push(std::mem::take(&mut self.rows));
                }
            }
        }
        Ok(true)
    }

    fn sort(&mut self) {
        let keys = self.keys;
        self.rows.sort_unstable_by(|a, b| Self::compare(keys, &a.keys, &b.keys).then(a.came.cmp(&b.came)));
    }

    fn shorten(&mut self, most: usize, exec: &Exec<'_>) {
        self.sort();
        let dropped: usize = self.rows.get(most..).unwrap_or_default().iter().map(|r| r.bytes).sum();
        self.rows.truncate(most);
        exec.release(dropped);
        self.bytes -= dropped;
        if self.rows.len() == most {
            self.worst = self.rows.last().map(|r| r.keys.clone());
        }
    }

    fn finish(mut self, exec: &Exec<'_>) -> Result<Gathered, Stop> {
        self.sort();
        let last = std::mem::take(&mut self.rows);
        self.runs.push(last);
        while self.runs.len() > 1 {
            let mut merged = Vec::with_capacity(self.runs.len().div_ceil(2));
            let mut runs = std::mem::take(&mut self.runs).into_iter();
            while let Some(a) = runs.next() {
                merged.push(match runs.next() {
                    Some(b) => self.merge(a, b, exec)?,
                    None => a,
                });
            }
            self.runs = merged;
        }
        let mut rows: Vec<Vec<Value>> = self.runs.into_iter().flatten().map(|r| r.values).collect();
        rows.truncate(self.most.unwrap_or(usize::MAX));
        Ok(Gathered { slots: self.keep.to_vec(), rows, bytes: self.bytes })
    }

    fn merge(&self, a: Vec<Sortable>, b: Vec<Sortable>, exec: &Exec<'_>) -> Result<Vec<Sortable>, Stop> {
        let mut all = Vec::with_capacity(a.len() + b.len());
        let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
        loop {
            exec.tick()?;
            let first = match (a.peek(), b.peek()) {
                (Some(x), Some(y)) => Self::compare(self.keys, &x.keys, &y.keys).then(x.came.cmp(&y.came)).is_le(),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => return Ok(all),
            };
            all.extend(if first { a.next() } else { b.next() });
        }
    }
}
