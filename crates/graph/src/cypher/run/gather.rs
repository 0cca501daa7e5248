//! Steps that need all rows before they return the first one: grouping and sorting.

use super::super::aggregate::Total;
use super::super::eval::Row;
use super::super::expr::{Aggregation, PlanExpr, PlanExprKind, QueryStep, QueryStepKind, Slot};
use super::super::value::{GroupKey, Value, order};
use super::{Executor, QueryStop, RowResult};
use crate::convert::to_u32;
use rustc_hash::{FxHashMap, FxHasher};
use std::cmp::Ordering;
use std::hash::Hasher;

/// The most rows that are sorted at once.
const RUN: usize = 16_384;

/// Gathered rows: the values of some slots, row after row.
pub(super) struct GatheredRows {
    pub slots: Vec<Slot>,
    pub values: Vec<Value>,
    pub rows: usize,
    /// The bytes charged for them.
    pub bytes: usize,
}

pub(super) enum Gathering<'s> {
    Groups(Groups<'s>),
    Order(Order<'s>),
}

pub(super) struct Groups<'s> {
    aggregation: &'s Aggregation,
    table: Table,
    /// The keys and the totals of each group, group after group.
    keys: Vec<Value>,
    totals: Vec<Total>,
    /// Used in place of totals if the only aggregate counts rows.
    counts: Option<Vec<i64>>,
    count: usize,
    bytes: usize,
    /// If the only key depends on a node: its slot, and the group of every node seen so far.
    by_node: Option<(Slot, Vec<u32>)>,
    came: usize,
}

/// Groups by the hash of their keys. Groups with the same hash form a linked list.
#[derive(Default)]
struct Table {
    first: FxHashMap<u64, u32>,
    next: Vec<u32>,
}

impl Table {
    fn find(&self, hash: u64, mut is: impl FnMut(usize) -> bool) -> Option<usize> {
        let mut group = *self.first.get(&hash)?;
        while group != NO_GROUP {
            if is(group as usize) {
                return Some(group as usize);
            }
            group = self.next[group as usize];
        }
        None
    }

    /// Assigns a hash to the next group.
    fn add(&mut self, hash: u64) {
        let group = to_u32(self.next.len());
        let before = self.first.insert(hash, group).unwrap_or(NO_GROUP);
        self.next.push(before);
    }
}

/// The number of rows after which groups are remembered by node.
const MANY: usize = 256;
const NO_GROUP: u32 = u32::MAX;

pub(super) struct Order<'s> {
    keys: &'s [(PlanExpr, bool)],
    keep: &'s [Slot],
    most: Option<usize>,
    rows: Vec<Sortable>,
    /// Sorted runs of rows, each short enough to sort quickly.
    runs: Vec<Vec<Sortable>>,
    /// The last key that can be in the result, once there are enough rows.
    worst: Option<Vec<Value>>,
    bytes: usize,
    came: u64,
    /// Rows arrive in the order of the first key, so none is in the result after the first that is too late.
    in_order: bool,
}

struct Sortable {
    keys: Vec<Value>,
    came: u64,
    values: Vec<Value>,
    bytes: usize,
}

impl<'s> Gathering<'s> {
    pub fn new(exec: &Executor<'_>, step: &'s QueryStep, row: &mut Row) -> Result<Gathering<'s>, QueryStop> {
        Ok(match &step.kind {
            QueryStepKind::Sort { keys, keep, most } => {
                let most = most.as_ref().map(|ex| exec.number_of_rows(ex, row)).transpose()?;
                let most = most.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
                Gathering::Order(Order {
                    keys,
                    keep,
                    most,
                    rows: vec![],
                    runs: vec![],
                    worst: None,
                    bytes: 0,
                    came: 0,
                    in_order: false,
                })
            }
            QueryStepKind::Aggregate(aggregation) => {
                let by_node = match aggregation.keys.as_slice() {
                    [(ex, _)] => match &ex.kind {
                        PlanExprKind::Slot(slot) => Some((*slot, vec![])),
                        PlanExprKind::Property(subject, ..) => match subject.kind {
                            PlanExprKind::Slot(slot) => Some((slot, vec![])),
                            _ => None,
                        },
                        _ => None,
                    },
                    _ => None,
                };
                let mut groups = Groups {
                    aggregation,
                    table: Table::default(),
                    keys: vec![],
                    totals: vec![],
                    counts: aggregation.calls.iter().all(|c| c.argument.is_none()).then(Vec::new),
                    count: 0,
                    bytes: 0,
                    by_node,
                    came: 0,
                };
                if aggregation.keys.is_empty() {
                    // Without keys there is one group, even without rows.
                    groups.add();
                }
                Gathering::Groups(groups)
            }
            _ => {
                let message = "this step does not gather rows";
                return Err(lukasa_model::Error::internal(message).into());
            }
        })
    }

    /// Declares that rows will arrive in the order of the first key.
    pub fn comes_in_order(&mut self) {
        if let Gathering::Order(order) = self {
            order.in_order = true;
        }
    }

    #[inline]
    pub fn take(&mut self, exec: &Executor<'_>, row: &mut Row) -> RowResult {
        match self {
            Gathering::Groups(groups) => groups.take(exec, row),
            Gathering::Order(order) => order.take(exec, row),
        }
    }

    pub fn finish(self, exec: &Executor<'_>) -> Result<GatheredRows, QueryStop> {
        match self {
            Gathering::Groups(groups) => groups.finish(),
            Gathering::Order(order) => order.finish(exec),
        }
    }
}

impl Groups<'_> {
    fn take(&mut self, exec: &Executor<'_>, row: &mut Row) -> RowResult {
        let group = if self.aggregation.keys.is_empty() { 0 } else { self.place(exec, row)? };
        if let Some(counts) = &mut self.counts {
            counts[group] += 1;
            return Ok(true);
        }
        let calls = &self.aggregation.calls;
        let totals = &mut self.totals[group * calls.len()..(group + 1) * calls.len()];
        for (call, total) in calls.iter().zip(totals) {
            let Some(argument) = &call.argument else {
                total.row();
                continue;
            };
            let second = call.second.as_ref().map(|ex| exec.eval(ex, row)).transpose()?;
            let bytes = match exec.peek(argument, row)? {
                Some(value) => total.add(value, second, call.at)?,
                None => total.add(&exec.eval(argument, row)?, second, call.at)?,
            };
            if bytes > 0 {
                exec.charge(bytes)?;
                self.bytes += bytes;
            }
        }
        Ok(true)
    }

    /// The index of the group of a row.
    fn place(&mut self, exec: &Executor<'_>, row: &mut Row) -> Result<usize, QueryStop> {
        self.came += 1;
        let node = match &mut self.by_node {
            Some((slot, seen)) if self.came > MANY => match row[*slot] {
                Value::Node(node) => {
                    if seen.is_empty() {
                        seen.resize(exec.snapshot.node_places(), NO_GROUP);
                    }
                    if seen[node.index()] != NO_GROUP {
                        return Ok(seen[node.index()] as usize);
                    }
                    Some(node)
                }
                _ => None,
            },
            _ => None,
        };
        let group = self.find_or_add(exec, row)?;
        if let (Some(node), Some((_, seen))) = (node, &mut self.by_node) {
            seen[node.index()] = to_u32(group);
        }
        Ok(group)
    }

    fn find_or_add(&mut self, exec: &Executor<'_>, row: &mut Row) -> Result<usize, QueryStop> {
        let wanted = &self.aggregation.keys;
        let width = wanted.len();
        // Keys that exist as values are not cloned to find their group.
        let mut made: Vec<Value> = Vec::new();
        if width > 1 || exec.peek(&wanted[0].0, row)?.is_none() {
            for (ex, _) in wanted {
                made.push(exec.eval(ex, row)?);
            }
        }
        let given: &[Value] = match made.is_empty() {
            true => exec.peek(&wanted[0].0, row)?.map(std::slice::from_ref).unwrap_or_default(),
            false => &made,
        };
        let mut hasher = FxHasher::default();
        given.iter().for_each(|value| GroupKey::hash_of(value, &mut hasher));
        let hash = hasher.finish();
        let keys = &self.keys;
        let same =
            |group: usize| keys[group * width..(group + 1) * width].iter().zip(given).all(|(a, b)| order(a, b).is_eq());
        if let Some(group) = self.table.find(hash, same) {
            return Ok(group);
        }
        let own: usize = given.iter().map(|v| size_of::<Value>() + v.heap()).sum();
        let bytes = own + 32 + size_of::<Total>() * self.aggregation.calls.len();
        self.keys.extend_from_slice(given);
        self.table.add(hash);
        self.add();
        self.bytes += bytes;
        exec.charge(bytes)?;
        Ok(self.count - 1)
    }

    /// Adds a group.
    fn add(&mut self) {
        self.count += 1;
        match &mut self.counts {
            Some(counts) => counts.push(0),
            None => self.totals.extend(self.aggregation.calls.iter().map(Total::new)),
        }
    }

    fn finish(self) -> Result<GatheredRows, QueryStop> {
        let keys = self.aggregation.keys.iter().map(|(_, slot)| *slot);
        let slots: Vec<Slot> = keys.chain(self.aggregation.calls.iter().map(|c| c.slot)).collect();
        let mut values = Vec::with_capacity(slots.len() * self.count);
        let (mut keys, mut totals) = (self.keys.into_iter(), self.totals.into_iter());
        for group in 0..self.count {
            values.extend(keys.by_ref().take(self.aggregation.keys.len()));
            if let Some(counts) = &self.counts {
                values.extend(self.aggregation.calls.iter().map(|_| Value::Integer(counts[group])));
                continue;
            }
            for (call, total) in self.aggregation.calls.iter().zip(totals.by_ref()) {
                values.push(total.finish(call.at)?);
            }
        }
        Ok(GatheredRows { slots, values, rows: self.count, bytes: self.bytes })
    }
}

impl Order<'_> {
    fn compare(keys: &[(PlanExpr, bool)], a: &[Value], b: &[Value]) -> Ordering {
        for ((a, b), (_, descending)) in a.iter().zip(b).zip(keys) {
            let found = order(a, b);
            let found = if *descending { found.reverse() } else { found };
            if found.is_ne() {
                return found;
            }
        }
        Ordering::Equal
    }

    fn take(&mut self, exec: &Executor<'_>, row: &mut Row) -> RowResult {
        if let Some(worst) = &self.worst
            && let Some(key) = exec.peek(&self.keys[0].0, row)?
        {
            let found = order(key, &worst[0]);
            if (if self.keys[0].1 { found.reverse() } else { found }).is_gt() {
                return Ok(!self.in_order);
            }
        }
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
            Some(most) if most <= RUN => {
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

    fn shorten(&mut self, most: usize, exec: &Executor<'_>) {
        self.sort();
        let dropped: usize = self.rows.get(most..).unwrap_or_default().iter().map(|r| r.bytes).sum();
        self.rows.truncate(most);
        exec.release(dropped);
        self.bytes -= dropped;
        if self.rows.len() == most {
            self.worst = self.rows.last().map(|r| r.keys.clone());
        }
    }

    fn finish(mut self, exec: &Executor<'_>) -> Result<GatheredRows, QueryStop> {
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
        let most = self.most.unwrap_or(usize::MAX);
        let mut rows = 0;
        let mut values = Vec::new();
        for row in self.runs.into_iter().flatten().take(most) {
            rows += 1;
            values.extend(row.values);
        }
        Ok(GatheredRows { slots: self.keep.to_vec(), values, rows, bytes: self.bytes })
    }

    fn merge(&self, a: Vec<Sortable>, b: Vec<Sortable>, exec: &Executor<'_>) -> Result<Vec<Sortable>, QueryStop> {
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
