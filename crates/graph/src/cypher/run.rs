//! Runs a query: rows are pushed through its steps one at a time, within a deadline and a memory limit.

mod expand;
mod gather;
mod shortest_path;

use super::ast::Arrow;
use super::eval::{Row, fail, shallow};
use super::expr::{
    LabelTest, PlanExpr, PlanExprKind, QueryPart, QueryPlan, QueryStep, QueryStepKind, ScanSource, Slot,
};
use super::fault::{Fault, FaultClass};
use super::functions::{FunctionContext, LONGEST_TEXT};
use super::value::{GroupKey, Value};
use super::{ResolveNode, SearchNodes};
use crate::contents::{PropertyNo, PropertyReader};
use crate::convert::to_i64;
use crate::lookup::Column;
use crate::snapshot::{Edge, Node, Snapshot};
use gather::Gathering;
use lukasa_model::{Error, ErrorCode, ErrorKind, FactNo};
use lukasa_store::Ledger;
use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Why a query failed.
#[derive(Clone, Debug)]
pub enum QueryError {
    /// The query is wrong.
    Fault(Fault),
    /// It exceeded a limit, or the store failed.
    Other(Error),
}

pub(super) type QueryStop = Box<QueryError>;
/// Whether more rows are wanted. `false` stops the steps before.
pub(super) type RowResult = Result<bool, QueryStop>;
pub(super) type RowSink<'s> = &'s mut dyn FnMut(&mut Row) -> RowResult;

impl From<Fault> for QueryStop {
    fn from(fault: Fault) -> QueryStop {
        Box::new(QueryError::Fault(fault))
    }
}

impl From<Error> for QueryStop {
    fn from(error: Error) -> QueryStop {
        Box::new(QueryError::Other(error))
    }
}

/// The limits of a query.
#[derive(Clone, Copy, Debug)]
pub struct QueryLimits {
    /// The query fails when it still runs at this moment.
    pub deadline: Instant,
    /// The time limit behind `deadline`, for messages.
    pub timeout_ms: u64,
    /// The most rows of the answer.
    pub rows: usize,
    /// The most bytes of rows and lists in memory at once.
    pub memory: usize,
}

/// The longest list that a query may produce.
pub const LONGEST_LIST: usize = 2_000_000;

/// The most regular expressions that are kept while a query runs.
const PATTERNS: usize = 64;
/// A match may take long if the product of the lengths of text and expression is at least this.
const SLOW_MATCH: usize = 1 << 18;
/// How often a query checks its deadline while it waits for another thread.
const GLANCE: Duration = Duration::from_millis(5);

/// The state of a step between rows.
#[derive(Default)]
enum State {
    #[default]
    Nothing,
    /// Distinct rows so far, and the bytes charged for them.
    Seen(FxHashSet<Box<[GroupKey]>>, usize),
    Wanted {
        passed: u64,
        of: u64,
    },
    Marks(expand::NeighborMarks),
}

pub(super) struct Executor<'a> {
    pub snapshot: &'a Arc<Snapshot>,
    pub contents: PropertyReader<'a>,
    pub around: FunctionContext,
    pub silent_type: Option<&'a str>,
    pub search: Option<SearchNodes>,
    pub resolve: Option<ResolveNode>,
    /// Set when the caller no longer waits for the answer.
    pub stop: Option<Arc<AtomicBool>>,
    pub limits: QueryLimits,
    /// The number of output rows of each step, for PROFILE.
    pub counts: Option<Vec<Cell<u64>>>,
    ticks: Cell<u32>,
    used: Cell<usize>,
    /// The bytes charged for the value in each slot, to be released when it is replaced.
    held: Vec<Cell<usize>>,
    most_used: Cell<usize>,
    states: Vec<RefCell<State>>,
    random: Cell<u64>,
    patterns: RefCell<FxHashMap<Arc<str>, Arc<Regex>>>,
    /// By property number.
    columns: Vec<Option<Arc<Column>>>,
}

impl<'a> Executor<'a> {
    pub fn new(
        snapshot: &'a Arc<Snapshot>,
        ledger: &'a Ledger,
        around: FunctionContext,
        limits: QueryLimits,
        (steps, slots): (usize, usize),
        profile: bool,
    ) -> Executor<'a> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a seed needs only the low bits")]
        let seed = around.now as u64 | 1;
        Executor {
            snapshot,
            contents: PropertyReader::new(snapshot, ledger),
            around,
            silent_type: None,
            search: None,
            resolve: None,
            stop: None,
            limits,
            counts: profile.then(|| (0..steps).map(|_| Cell::new(0)).collect()),
            ticks: Cell::new(0),
            used: Cell::new(0),
            held: vec![Cell::new(0); slots],
            most_used: Cell::new(0),
            states: (0..steps).map(|_| RefCell::default()).collect(),
            random: Cell::new(seed),
            patterns: RefCell::default(),
            columns: Vec::new(),
        }
    }

    /// Loads columns of properties that the query reads from nodes.
    pub fn prepare(&mut self, properties: &[PropertyNo]) -> Result<(), QueryStop> {
        for number in properties {
            if let Some(column) = self.snapshot.column(&self.contents, *number, || self.tick())? {
                let place = number.index();
                if self.columns.len() <= place {
                    self.columns.resize(place + 1, None);
                }
                self.columns[place] = Some(column);
            }
        }
        Ok(())
    }

    #[inline]
    pub fn column(&self, property: PropertyNo) -> Option<&Column> {
        self.columns.get(property.index())?.as_deref()
    }

    /// Checks the limits now and then. Every loop must call it.
    #[inline]
    pub fn tick(&self) -> Result<(), QueryStop> {
        let ticks = self.ticks.get().wrapping_add(1);
        self.ticks.set(ticks);
        if ticks & 0xff == 0 { self.check_time() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    pub fn check_time(&self) -> Result<(), QueryStop> {
        if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            let message = "the caller no longer waits for an answer";
            return Err(Error::new(ErrorKind::Timeout, ErrorCode::Cancelled, message).into());
        }
        if Instant::now() < self.limits.deadline {
            return Ok(());
        }
        let message = format!("the query was stopped after {} ms", self.limits.timeout_ms);
        Err(Error::new(ErrorKind::Timeout, ErrorCode::QueryTimeout, message)
            .hint(
                "narrow the query: name labels and keys, shorten `*` patterns; or allow more with `timeout_ms` \
                 (--timeout-ms, :timeout in the shell)",
            )
            .into())
    }

    /// Adds to the memory in use, and fails beyond the limit. [`Executor::release`] subtracts it again.
    pub fn charge(&self, bytes: usize) -> Result<(), QueryStop> {
        let used = self.used.get() + bytes;
        self.used.set(used);
        self.most_used.set(self.most_used.get().max(used));
        if used <= self.limits.memory {
            return Ok(());
        }
        let message = format!("the query needs more than {} MB of memory", self.limits.memory >> 20);
        Err(Error::too_large(ErrorCode::QueryMemory, message)
            .hint("collect, order and group fewer rows, or return them with LIMIT")
            .into())
    }

    pub(super) fn release(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }

    /// The most bytes in use at once.
    pub fn most_used(&self) -> usize {
        self.most_used.get()
    }

    pub fn random(&self) -> f64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        (x >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn too_long(&self, at: usize) -> QueryStop {
        let message = format!("a list of more than {} elements or a text of more than 16 MB", self.around.longest_list);
        fail(FaultClass::Argument, "NumberOutOfRange", message, at)
    }

    /// Checks the size of a sum before it is computed.
    pub fn sum_fits(&self, a: &Value, b: &Value, at: usize) -> Result<(), QueryStop> {
        let fits = match (a, b) {
            (Value::Text(a), Value::Text(b)) => a.len() + b.len() <= LONGEST_TEXT,
            (Value::List(a), Value::List(b)) => a.len() + b.len() <= self.around.longest_list,
            _ => true,
        };
        if fits { Ok(()) } else { Err(self.too_long(at)) }
    }

    /// Nested lists share their parts, so a small value can have a huge expanded size. Such a value is refused.
    pub fn sized(&self, value: Value, at: usize) -> Result<Value, QueryStop> {
        fn count(value: &Value, left: &mut usize, depth: usize) -> bool {
            let mut take = |n: usize| {
                *left = left.saturating_sub(n);
                *left > 0
            };
            match value {
                Value::List(items) => {
                    take(items.len()) && depth < 100 && items.iter().all(|v| count(v, left, depth + 1))
                }
                Value::Map(entries) => {
                    take(entries.len()) && depth < 100 && entries.values().all(|v| count(v, left, depth + 1))
                }
                Value::Text(text) => text.len() <= LONGEST_TEXT && take(text.len() / size_of::<Value>()),
                _ => true,
            }
        }
        let nested = |v: &Value| matches!(v, Value::List(_) | Value::Map(_) | Value::Text(_));
        let plain = match &value {
            Value::List(items) => items.len() <= self.around.longest_list && !items.iter().any(nested),
            Value::Map(_) | Value::Text(_) => false,
            _ => true,
        };
        if plain {
            return Ok(value);
        }
        let mut left = self.around.longest_list + 1;
        if count(&value, &mut left, 0) { Ok(value) } else { Err(self.too_long(at)) }
    }

    /// Whether a regular expression matches the whole text. A match that may take long runs on another thread.
    pub fn matches(&self, pattern: &Arc<str>, text: &Arc<str>, at: usize) -> Result<bool, QueryStop> {
        let found = self.pattern(pattern, at)?;
        if text.len().saturating_mul(pattern.len()) < SLOW_MATCH {
            return Ok(found.is_match(text));
        }
        let text = Arc::clone(text);
        self.beside(move || found.is_match(&text))
    }

    /// Runs work that cannot be interrupted on another thread, while the query checks its deadline.
    pub fn beside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, QueryStop> {
        let (send, receive) = channel();
        std::thread::spawn(move || {
            // The query may have ended meanwhile, and its receiver with it.
            let _ = send.send(work());
        });
        loop {
            let left = self.limits.deadline.saturating_duration_since(Instant::now());
            match receive.recv_timeout(GLANCE.min(left)) {
                Ok(found) => return Ok(found),
                Err(RecvTimeoutError::Timeout) => self.check_time()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("a computation on another thread failed").into());
                }
            }
        }
    }

    fn pattern(&self, pattern: &Arc<str>, at: usize) -> Result<Arc<Regex>, QueryStop> {
        if let Some(found) = self.patterns.borrow().get(pattern) {
            return Ok(Arc::clone(found));
        }
        self.check_time()?;
        let whole = format!("^(?:{pattern})$");
        let made = regex::RegexBuilder::new(&whole).size_limit(1 << 20).build().map_err(|e| {
            let message = format!("`{pattern}` is not a regular expression: {e}");
            fail(FaultClass::Argument, "InvalidArgumentValue", message, at)
        })?;
        let made = Arc::new(made);
        let mut patterns = self.patterns.borrow_mut();
        if patterns.len() == PATTERNS {
            patterns.clear();
        }
        patterns.insert(Arc::clone(pattern), Arc::clone(&made));
        Ok(made)
    }

    /// The labels of a node: its type, and its other labels.
    pub fn labels(&self, node: Node) -> Vec<Arc<str>> {
        super::labels_of(self.snapshot, node, self.silent_type)
    }

    /// Runs all parts, and passes each row with its part to the sink.
    pub fn run_whole(
        &self,
        whole: &QueryPlan,
        row: &mut Row,
        sink: &mut dyn FnMut(&QueryPart, &mut Row) -> RowResult,
    ) -> RowResult {
        let mut seen: FxHashSet<Box<[GroupKey]>> = FxHashSet::default();
        let mut charged = 0;
        // A part may end early on its own. Only the sink ends all of them.
        let mut more = true;
        for part in &whole.parts {
            self.run_part(part, row, &mut |row| {
                if !whole.distinct || self.first(&mut seen, &part.output, row, &mut charged)? {
                    more = sink(part, row)?;
                }
                Ok(more)
            })?;
            if !more {
                break;
            }
        }
        self.release(charged);
        Ok(more)
    }

    /// Drops the state of a step and releases its memory.
    fn forget(&self, step: &QueryStep) {
        if let State::Seen(_, bytes) = std::mem::take(&mut *self.states[step.id].borrow_mut()) {
            self.release(bytes);
        }
    }

    fn first(
        &self,
        seen: &mut FxHashSet<Box<[GroupKey]>>,
        slots: &[Slot],
        row: &Row,
        charged: &mut usize,
    ) -> Result<bool, QueryStop> {
        let key: Box<[GroupKey]> = slots.iter().map(|s| GroupKey(row[*s].clone())).collect();
        let bytes: usize = key.iter().map(|k| size_of::<Value>() + k.0.heap()).sum();
        if !seen.insert(key) {
            return Ok(false);
        }
        self.charge(bytes + 24)?;
        *charged += bytes + 24;
        Ok(true)
    }

    /// Runs a part. Steps that need all rows before they return the first one gather them.
    pub fn run_part(&self, part: &QueryPart, row: &mut Row, sink: RowSink<'_>) -> RowResult {
        if !part.stateful {
            return self.run(&part.steps, row, sink);
        }
        let more = self.run_gathering(part, row, sink)?;
        part.steps.iter().for_each(|step| self.forget(step));
        Ok(more)
    }

    fn run_gathering(&self, part: &QueryPart, row: &mut Row, sink: RowSink<'_>) -> RowResult {
        for step in &part.steps {
            self.forget(step);
            if let QueryStepKind::Skip(ex) | QueryStepKind::Limit(ex) = &step.kind {
                // An invalid number is an error even if there are no rows.
                self.amount(step, ex, row)?;
            }
        }
        let mut steps = part.steps.as_slice();
        let mut waiting: Option<gather::GatheredRows> = None;
        loop {
            let breaker = steps.iter().position(QueryStep::is_breaker);
            let (here, rest) = match breaker {
                Some(place) => (&steps[..place], &steps[place + 1..]),
                None => (steps, &steps[steps.len()..]),
            };
            let Some(place) = breaker else {
                return match waiting {
                    Some(gathered) => self.pour(gathered, here, row, sink),
                    None => self.run(here, row, sink),
                };
            };
            let mut gathering = Gathering::new(self, &steps[place], row)?;
            let ordered = if waiting.is_none() { self.ordered(here, &steps[place]) } else { None };
            if ordered.is_some() {
                gathering.comes_in_order();
            }
            let mut take = |row: &mut Row| gathering.take(self, row);
            match (waiting, &ordered) {
                (Some(gathered), _) => self.pour(gathered, here, row, &mut take)?,
                (None, Some((nodes, back))) => self.scan(&here[0], Some((nodes, *back)), &here[1..], row, &mut take)?,
                (None, None) => self.run(here, row, &mut take)?,
            };
            let gathered = gathering.finish(self)?;
            self.count(&steps[place], gathered.rows as u64);
            waiting = Some(gathered);
            steps = rest;
        }
    }

    /// Passes gathered rows to the following steps.
    fn pour(&self, gathered: gather::GatheredRows, steps: &[QueryStep], row: &mut Row, sink: RowSink<'_>) -> RowResult {
        let gather::GatheredRows { slots, values, rows, bytes } = gathered;
        let mut more = true;
        let mut values = values.into_iter();
        for _ in 0..rows {
            self.tick()?;
            for (slot, value) in slots.iter().zip(values.by_ref()) {
                row[*slot] = value;
            }
            if !self.run(steps, row, sink)? {
                more = false;
                break;
            }
        }
        self.release(bytes);
        Ok(more)
    }

    #[inline]
    fn count(&self, step: &QueryStep, rows: u64) {
        if let Some(counts) = &self.counts {
            counts[step.id].set(counts[step.id].get() + rows);
        }
    }

    /// Passes one row through the steps. Output rows go to the sink.
    pub(super) fn run(&self, steps: &[QueryStep], row: &mut Row, sink: RowSink<'_>) -> RowResult {
        let Some((step, rest)) = steps.split_first() else { return sink(row) };
        match &step.kind {
            QueryStepKind::Filter(ex) => {
                if self.truth(ex, row)? != Some(true) {
                    return Ok(true);
                }
                self.count(step, 1);
                self.run(rest, row, sink)
            }
            QueryStepKind::Expand(expand) => self.expand(step, expand, rest, row, sink),
            QueryStepKind::Scan { .. } => self.scan(step, None, rest, row, sink),
            QueryStepKind::Stretch(stretch) => self.stretch(step, stretch, rest, row, sink),
            QueryStepKind::Known { .. } => self.known(step, rest, row, sink),
            QueryStepKind::Shortest(nearest) => self.nearest(step, nearest, rest, row, sink),
            QueryStepKind::Path { slot, start, edges } => {
                row[*slot] = self.path(&row[*start], edges, row);
                self.count(step, 1);
                self.run(rest, row, sink)
            }
            QueryStepKind::Optional { steps, nulls } => {
                let mut any = false;
                let more = self.run(steps, row, &mut |row| {
                    any = true;
                    self.count(step, 1);
                    self.run(rest, row, sink)
                })?;
                if any || !more {
                    return Ok(more);
                }
                nulls.iter().for_each(|slot| row[*slot] = Value::Null);
                self.count(step, 1);
                self.run(rest, row, sink)
            }
            QueryStepKind::Unwind { list, slot } => {
                let items = match self.eval(list, row)? {
                    Value::Null => return Ok(true),
                    Value::List(items) => items,
                    other => Arc::new(vec![other]),
                };
                for item in items.iter() {
                    self.tick()?;
                    row[*slot] = item.clone();
                    self.count(step, 1);
                    if !self.run(rest, row, sink)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            QueryStepKind::Project(items) => {
                // All values are computed before any is set, because a slot may be read and set by the same step.
                match items.as_slice() {
                    [(ex, slot)] => {
                        let value = self.eval(ex, row)?;
                        self.set(row, *slot, value)?;
                    }
                    _ => {
                        let mut values = Vec::with_capacity(items.len());
                        for (ex, _) in items {
                            let value = self.eval(ex, row)?;
                            self.charge(shallow(&value))?;
                            values.push(value);
                        }
                        for ((_, slot), value) in items.iter().zip(values) {
                            self.release(shallow(&value));
                            self.set(row, *slot, value)?;
                        }
                    }
                }
                self.count(step, 1);
                self.run(rest, row, sink)
            }
            QueryStepKind::Distinct(slots) => {
                let is_first = {
                    let mut state = self.states[step.id].borrow_mut();
                    if !matches!(*state, State::Seen(..)) {
                        *state = State::Seen(FxHashSet::default(), 0);
                    }
                    let State::Seen(seen, bytes) = &mut *state else { return Ok(true) };
                    self.first(seen, slots, row, bytes)?
                };
                if !is_first {
                    return Ok(true);
                }
                self.count(step, 1);
                self.run(rest, row, sink)
            }
            QueryStepKind::Skip(ex) => {
                let wanted = self.amount(step, ex, row)?;
                let passed = self.pass(step);
                if passed <= wanted {
                    return Ok(true);
                }
                self.count(step, 1);
                self.run(rest, row, sink)
            }
            QueryStepKind::Limit(ex) => {
                let wanted = self.amount(step, ex, row)?;
                if wanted == 0 {
                    return Ok(false);
                }
                let passed = self.pass(step);
                self.count(step, 1);
                let more = self.run(rest, row, sink)?;
                Ok(more && passed < wanted)
            }
            QueryStepKind::Call { procedure, arguments, yields } => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.eval(argument, row)?);
                }
                (procedure.run)(self, &values, &mut |columns: &[Value]| {
                    self.tick()?;
                    for (column, slot) in yields {
                        row[*slot] = columns[*column].clone();
                    }
                    self.count(step, 1);
                    self.run(rest, row, sink)
                })
            }
            // These steps gather rows before this point.
            QueryStepKind::Aggregate(_) | QueryStepKind::Sort { .. } => sink(row),
        }
    }

    /// Sets a value in a row and charges its memory.
    #[inline]
    fn set(&self, row: &mut Row, slot: Slot, value: Value) -> Result<(), QueryStop> {
        let new = shallow(&value);
        row[slot] = value;
        let old = self.held[slot].replace(new);
        if old > 0 {
            self.release(old);
        }
        if new > 0 { self.charge(new) } else { Ok(()) }
    }

    /// Counts a row that reached a step. Returns the count.
    fn pass(&self, step: &QueryStep) -> u64 {
        match &mut *self.states[step.id].borrow_mut() {
            State::Wanted { passed, .. } => {
                *passed += 1;
                *passed
            }
            // `amount` is called first and sets the state.
            State::Nothing | State::Seen(..) | State::Marks(_) => 1,
        }
    }

    /// The number of rows of SKIP or LIMIT. It is evaluated once.
    fn amount(&self, step: &QueryStep, ex: &PlanExpr, row: &mut Row) -> Result<u64, QueryStop> {
        if let State::Wanted { of, .. } = &*self.states[step.id].borrow() {
            return Ok(*of);
        }
        let of = self.number_of_rows(ex, row)?;
        *self.states[step.id].borrow_mut() = State::Wanted { passed: 0, of };
        Ok(of)
    }

    fn number_of_rows(&self, ex: &PlanExpr, row: &mut Row) -> Result<u64, QueryStop> {
        match self.eval(ex, row)? {
            Value::Integer(n) => u64::try_from(n).map_err(|_| {
                let message = "SKIP and LIMIT take no negative number";
                fail(FaultClass::Syntax, "NegativeIntegerArgument", message, ex.at)
            }),
            other => {
                let message = format!("SKIP and LIMIT take a whole number, not a {}", other.type_name());
                Err(fail(FaultClass::Syntax, "InvalidArgumentType", message, ex.at))
            }
        }
    }

    /// The nodes of a scan in the order of the sort after it, and whether to read them backwards. Only if the sort has
    /// a limit.
    fn ordered(&self, steps: &[QueryStep], sort: &QueryStep) -> Option<(Arc<Vec<Node>>, bool)> {
        let QueryStepKind::Sort { keys, most: Some(_), .. } = &sort.kind else { return None };
        let QueryStepKind::Scan { slot, source, ended: false, .. } = &steps.first()?.kind else { return None };
        let (PlanExprKind::Property(subject, _, property), descending) = (&keys[0].0.kind, keys[0].1) else {
            return None;
        };
        let own = matches!(subject.kind, PlanExprKind::Slot(of) if of == *slot);
        let s = self.snapshot;
        let name = match source {
            ScanSource::All => String::new(),
            ScanSource::Label(label) => format!("{}:{}", self.silent_type.unwrap_or_default(), label.name),
            ScanSource::Seek { .. } | ScanSource::Id(_) => return None,
        };
        let column = self.column(*property).filter(|_| own)?;
        let found = s.ordered(&name, *property, column, || match source {
            ScanSource::Label(label) => s.labelled(&name, |n| label.node(s, n)).to_vec(),
            _ => s.all_places().filter(|n| s.is_live(*n)).collect(),
        })?;
        Some((found, descending))
    }

    fn scan(
        &self,
        step: &QueryStep,
        only: Option<(&[Node], bool)>,
        rest: &[QueryStep],
        row: &mut Row,
        sink: RowSink<'_>,
    ) -> RowResult {
        let QueryStepKind::Scan { slot, source, labels, ended } = &step.kind else { return Ok(true) };
        let (slot, ended) = (*slot, *ended);
        let s = self.snapshot;
        // Nodes with a label exist, so only ended ones may have to be excluded.
        let sure = matches!(source, ScanSource::Label(_)) && (ended || !s.has_ended());
        let mut visit = |node: Node, row: &mut Row| -> RowResult {
            self.tick()?;
            let there = sure || if ended { !s.is_free(node) } else { s.is_live(node) };
            if !there || !labels.iter().all(|l| l.node(s, node)) {
                return Ok(true);
            }
            row[slot] = Value::Node(node);
            self.count(step, 1);
            self.run(rest, row, sink)
        };
        if let Some((nodes, back)) = only {
            for i in 0..nodes.len() {
                let node = nodes[if back { nodes.len() - 1 - i } else { i }];
                if !visit(node, row)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        match source {
            ScanSource::All => {
                for node in s.all_places() {
                    if !visit(node, row)? {
                        return Ok(false);
                    }
                }
            }
            ScanSource::Label(label) => {
                let silent = self.silent_type.unwrap_or_default();
                let nodes = s.labelled(&format!("{silent}:{}", label.name), |n| label.node(s, n));
                for node in nodes.iter() {
                    if !visit(*node, row)? {
                        return Ok(false);
                    }
                }
            }
            ScanSource::Id(ex) => {
                let node = match self.eval(ex, row)? {
                    Value::Integer(id) => u64::try_from(id).ok().and_then(|id| s.find(FactNo(id))),
                    Value::Float(f) if f.fract() == 0.0 && (0.0..1e15).contains(&f) => {
                        s.find(FactNo(to_i64(f).cast_unsigned()))
                    }
                    Value::Text(id) => match uuid::Uuid::try_parse(&id) {
                        Ok(wanted) => {
                            let mut found = None;
                            for node in s.all_places() {
                                self.tick()?;
                                if s.id(node) == wanted && !s.is_free(node) {
                                    found = Some(node);
                                    break;
                                }
                            }
                            found
                        }
                        Err(_) => None,
                    },
                    _ => None,
                };
                if let Some(node) = node {
                    return visit(node, row);
                }
            }
            ScanSource::Seek { property, value, any, .. } => {
                let wanted = match (self.eval(value, row)?, any) {
                    (Value::Null, _) => return Ok(true),
                    (Value::List(items), true) => {
                        let mut seen = FxHashSet::default();
                        items.iter().filter(|v| seen.insert(GroupKey((*v).clone()))).cloned().collect()
                    }
                    (other, _) => vec![other],
                };
                let index = s.index(&self.contents, *property, || self.tick())?;
                let mut seen: FxHashSet<Node> = FxHashSet::default();
                for value in wanted.iter().filter(|v| !v.is_null()) {
                    for node in s.candidates(&index, value) {
                        // A changed node can be a candidate for several values.
                        if *any && !seen.insert(node) {
                            continue;
                        }
                        if !visit(node, row)? {
                            return Ok(false);
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    fn known(&self, step: &QueryStep, rest: &[QueryStep], row: &mut Row, sink: RowSink<'_>) -> RowResult {
        let QueryStepKind::Known { edge, from, to, arrow, types, from_labels, to_labels, unlike } = &step.kind else {
            return Ok(true);
        };
        let Value::Edge(found) = row[*edge] else { return Ok(true) };
        let s = self.snapshot;
        if !types.fits(s.edge(found).type_no) || self.is_one_of(found, unlike, row) {
            return Ok(true);
        }
        let (src, dst) = s.ends(found);
        let ways: &[(Node, Node)] = match arrow {
            Arrow::Right => &[(src, dst)],
            Arrow::Left => &[(dst, src)],
            Arrow::Either if src == dst => &[(src, dst)],
            Arrow::Either => &[(src, dst), (dst, src)],
        };
        let at = |slot: Slot, node: Node, row: &Row| matches!(row[slot], Value::Node(n) if n == node);
        let labelled = |labels: &Option<Vec<LabelTest>>, node| labels.iter().flatten().all(|l| l.node(s, node));
        for (left, right) in ways {
            let fits = (from_labels.is_some() || at(*from, *left, row))
                && (to_labels.is_some() || at(*to, *right, row))
                && (from != to || left == right)
                && labelled(from_labels, *left)
                && labelled(to_labels, *right);
            if !fits {
                continue;
            }
            row[*from] = Value::Node(*left);
            row[*to] = Value::Node(*right);
            self.count(step, 1);
            if !self.run(rest, row, sink)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether an edge is in one of these slots already.
    #[inline]
    fn is_one_of(&self, edge: Edge, slots: &[Slot], row: &Row) -> bool {
        slots.iter().any(|slot| match &row[*slot] {
            Value::Edge(other) => *other == edge,
            Value::List(items) => items.iter().any(|v| matches!(v, Value::Edge(other) if *other == edge)),
            _ => false,
        })
    }
}
