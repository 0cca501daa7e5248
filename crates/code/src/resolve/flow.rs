//! Values that flow across calls: the callers of each function with their arguments, and writes into objects from
//! outside.

use super::deps::{Changed, Entry};
use super::eval::Eval;
use super::link::Link;
use super::value::{FileId, Gid, How, Set, Sym, Value};
use crate::facts::{CallId, DefId, Expr, ExprId, Range, UNKNOWN};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// One call of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    pub file: FileId,
    pub call: CallId,
    pub passing: Passing,
    pub how: How,
}

/// How the arguments of a call map to the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Passing {
    /// In order.
    Straight,
    /// The first parameter is the receiver.
    Bound,
    /// `f.call(this, a, b)`: the first argument is the receiver.
    Call,
    /// `f.apply(this, list)`.
    Apply,
    /// `xs.forEach(f)`, `promise.then(f)`: the function receives the elements of the object.
    Held,
    /// `map(f, xs)`: the function receives the elements of the other argument.
    Mapped,
}

/// A value that is written somewhere: its file, the expression, and the definition that contains it.
pub type Written = (FileId, ExprId, DefId);

/// One contribution of a file to the flows of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Give {
    Caller(Gid, Caller),
    /// A method is called on an instance of this class.
    Receiver(Gid, Gid),
    /// An instance of the class is made.
    Made(Gid),
    Write(Value, Sym, Written),
    /// JavaScript: a function is assigned into a prototype or object.
    Owner(Gid, Value),
}

/// The contributions of all files, from the previous round.
#[derive(Clone, Default)]
pub struct Flows {
    callers: FxHashMap<Gid, SmallVec<[Caller; 1]>>,
    receivers: FxHashMap<Gid, SmallVec<[(Gid, u32); 2]>>,
    made: FxHashMap<Gid, u32>,
    writes: FxHashMap<(Value, Sym), SmallVec<[Written; 1]>>,
    written_names: FxHashMap<Value, SmallVec<[(Sym, u32); 2]>>,
    owners: FxHashMap<Gid, SmallVec<[(Value, u32); 1]>>,
}

impl Flows {
    /// The callers of a function, or none if they are too many to be informative.
    fn callers(&self, function: Gid) -> &[Caller] {
        let callers = self.callers.get(&function).map_or(&[][..], |found| found.as_slice());
        if callers.len() > MOST_CALLERS { &[] } else { callers }
    }

    /// The classes that a method is called on, other than its own.
    pub fn receivers(&self, method: Gid) -> impl Iterator<Item = Gid> + Clone + '_ {
        self.receivers.get(&method).into_iter().flatten().map(|(class, _)| *class)
    }

    /// Whether instances of exactly this class are made.
    pub fn is_made(&self, class: Gid) -> bool {
        self.made.contains_key(&class)
    }

    /// Whether instances of any class are made.
    pub fn any_made(&self) -> bool {
        !self.made.is_empty()
    }

    /// The values that are written into an object under a name.
    pub fn writes(&self, into: Value, name: Sym) -> &[Written] {
        self.writes.get(&(into, name)).map_or(&[], |found| found.as_slice())
    }

    /// The names under which values are written into an object.
    pub fn written_names(&self, into: Value) -> impl Iterator<Item = Sym> + '_ {
        self.written_names.get(&into).into_iter().flatten().map(|(name, _)| *name)
    }

    /// The objects and prototypes that a function is assigned into.
    pub fn owners(&self, function: Gid) -> impl Iterator<Item = Value> + '_ {
        self.owners.get(&function).into_iter().flatten().map(|(value, _)| *value)
    }

    /// Replaces the contributions of a file and records the differences. Both slices are sorted.
    pub fn replace(&mut self, old: &[Give], new: &[Give], link: &Link, changed: &mut Changed) {
        let (mut i, mut j) = (0, 0);
        loop {
            match (old.get(i), new.get(j)) {
                (None, None) => return,
                (Some(a), Some(b)) if a == b => (i, j) = (i + 1, j + 1),
                (Some(a), b) if b.is_none_or(|b| a < b) => {
                    self.change(*a, false, link, changed);
                    i += 1;
                }
                (_, Some(b)) => {
                    self.change(*b, true, link, changed);
                    j += 1;
                }
                (Some(_), None) => unreachable!("taken by the guard above"),
            }
        }
    }

    fn change(&mut self, give: Give, add: bool, link: &Link, changed: &mut Changed) {
        match give {
            Give::Caller(function, caller) => {
                let known = self.callers.entry(function).or_default();
                let before = known.len();
                put(known, caller, add);
                if before.min(known.len()) <= MOST_CALLERS {
                    changed.entry(Entry::Callers(function));
                }
            }
            Give::Receiver(method, class) => {
                if count(self.receivers.entry(method).or_default(), class, add) {
                    changed.entry(Entry::Receivers(method));
                }
            }
            Give::Made(class) => {
                let any = self.any_made();
                let known = self.made.entry(class).or_default();
                let before = *known;
                *known = if add { before + 1 } else { before.saturating_sub(1) };
                if *known == 0 {
                    self.made.remove(&class);
                }
                if (before == 0) == add {
                    changed.entry(Entry::Made(class));
                    link.above(class, |of| changed.entry(Entry::MadeBelow(of)));
                }
                if any != self.any_made() {
                    changed.entry(Entry::AnyMade);
                }
            }
            Give::Write(into, name, written) => {
                put(self.writes.entry((into, name)).or_default(), written, add);
                changed.entry(Entry::Write(into, name));
                if count(self.written_names.entry(into).or_default(), name, add) {
                    changed.entry(Entry::WrittenNames(into));
                }
            }
            Give::Owner(function, value) => {
                if count(self.owners.entry(function).or_default(), value, add) {
                    changed.entry(Entry::Owners(function));
                }
            }
        }
    }
}

/// Inserts into or removes from a sorted list.
fn put<T: Ord, A: smallvec::Array<Item = T>>(list: &mut SmallVec<A>, item: T, add: bool) {
    match (list.binary_search(&item), add) {
        (Ok(at) | Err(at), true) => list.insert(at, item),
        (Ok(at), false) => drop(list.remove(at)),
        (Err(_), false) => {}
    }
}

/// Counts occurrences in a sorted list; returns whether the item was added or removed.
fn count<T: Ord + Copy, A: smallvec::Array<Item = (T, u32)>>(list: &mut SmallVec<A>, item: T, add: bool) -> bool {
    match (list.binary_search_by(|(known, _)| known.cmp(&item)), add) {
        (Ok(at), true) => {
            list[at].1 += 1;
            false
        }
        (Err(at), true) => {
            list.insert(at, (item, 1));
            true
        }
        (Ok(at), false) => {
            list[at].1 -= 1;
            let gone = list[at].1 == 0;
            if gone {
                list.remove(at);
            }
            gone
        }
        (Err(_), false) => false,
    }
}

/// Arguments of a function with more callers than this are not followed: it takes anything.
const MOST_CALLERS: usize = 24;

impl<'p> Eval<'p> {
    fn callers(&mut self, function: Gid) -> &'p [Caller] {
        self.touch_flows();
        self.note(Entry::Callers(function));
        let flows = self.flows;
        flows.callers(function)
    }

    /// Adds what callers pass to a parameter.
    pub(super) fn flowing(&mut self, function: Gid, place: usize, set: &mut Set, levels: u8) {
        let passed = self.deeper(levels, |e, levels| e.passed_by_all(function, place, levels));
        set.join(&passed);
    }

    /// The values that callers pass at a position.
    pub(super) fn passed_by_all(&mut self, function: Gid, place: usize, levels: u8) -> Set {
        let mut set = Set::default();
        let callers = self.callers(function);
        let here = self.file(function.file);
        let name = here.facts.def(function.def).params.get(place).map(|var| here.sym(here.facts.vars[*var].name));
        for caller in callers {
            let passed = self.passed(caller, place, name, levels);
            set.join_as(&passed, How::Flow.max(caller.how));
            if set.too_many {
                break;
            }
        }
        set
    }

    /// The result of a function type, and its parameter types.
    pub(super) fn function_type(&self, file: FileId, expr: ExprId) -> (ExprId, Range) {
        let facts = &self.file(file).facts;
        let (expr, takes) = match facts.expr(expr) {
            Expr::Generic(function, takes) => (function, takes),
            _ => (expr, Range::default()),
        };
        match facts.expr(expr) {
            Expr::FunctionType(result) => (result, takes),
            _ => (UNKNOWN, takes),
        }
    }

    /// The values that one call passes to the parameter at a position.
    fn passed(&mut self, caller: &Caller, place: usize, name: Option<Sym>, levels: u8) -> Set {
        let (file, call) = (caller.file, caller.call);
        match caller.passing {
            Passing::Straight => self.argument(file, call, place, name, levels),
            Passing::Bound => match place.checked_sub(1) {
                Some(place) => self.argument(file, call, place, name, levels),
                None => Set::default(),
            },
            Passing::Call => self.argument(file, call, place + 1, name, levels),
            Passing::Apply => {
                let list = self.argument(file, call, 1, None, levels);
                self.at_index(&list, place as u32, levels)
            }
            Passing::Held => {
                let facts = &self.file(file).facts;
                let entry = &facts.calls[call];
                let Expr::Member(of, method) = facts.expr(entry.callee) else { return Set::default() };
                let method = facts.name(method);
                // `reduce` passes the accumulator first.
                let element = usize::from(matches!(method, "reduce" | "reduceRight" | "fold"));
                if place != element {
                    return Set::default();
                }
                let held = self.expr(file, of, entry.owner, levels);
                if matches!(method, "then" | "thenApply" | "thenAccept" | "thenCompose" | "and_then" | "map_or") {
                    return self.awaited(&held, levels);
                }
                self.element(&held, levels)
            }
            Passing::Mapped => {
                if place != 0 {
                    return Set::default();
                }
                let mut set = Set::default();
                for at in 0..2 {
                    let list = self.argument(file, call, at, None, levels);
                    set.join(&self.element(&list, levels));
                }
                set
            }
        }
    }

    /// The values of a keyword argument that no parameter takes.
    pub(super) fn keyword(&mut self, function: Gid, name: Sym, levels: u8) -> Set {
        let mut set = Set::default();
        let callers = self.callers(function);
        for caller in callers {
            let (file, call) = (caller.file, caller.call);
            set.join_as(&self.argument(file, call, usize::MAX, Some(name), levels), How::Flow);
            if set.too_many {
                break;
            }
        }
        set
    }

    /// All values passed from a position on.
    pub(super) fn rest_elements(&mut self, function: Gid, place: usize, levels: u8) -> Set {
        let mut set = Set::default();
        let callers = self.callers(function);
        for caller in callers {
            let args = self.file(caller.file).facts.calls[caller.call].args.len as usize;
            let from = match caller.passing {
                Passing::Straight => place,
                Passing::Bound => place.saturating_sub(1),
                Passing::Call => place + 1,
                _ => continue,
            };
            for at in from..args.max(from) {
                set.join_as(&self.argument(caller.file, caller.call, at, None, levels), How::Flow);
            }
            if set.too_many {
                break;
            }
        }
        set
    }
}
