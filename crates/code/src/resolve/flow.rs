//! Values that flow across calls: the callers of each function with their arguments, and writes into objects from
//! outside.

use super::deps::{ChangedDependencies, TableEntry};
use super::eval::Eval;
use super::link::ProgramTables;
use super::value::{DefRef, Derivation, FileId, InternedStr, PossibleValue, ValueSet};
use crate::convert::to_u32;
use crate::facts::{CallId, DefId, ExprId, IndexRange, SourceExpr, UNKNOWN};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// One call of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallingSite {
    pub file: FileId,
    pub call: CallId,
    pub passing: ArgumentPassing,
    pub how: Derivation,
}

/// How the arguments of a call map to the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArgumentPassing {
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
pub type WrittenValue = (FileId, ExprId, DefId);

/// One contribution of a file to the flows of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowContribution {
    Caller(DefRef, CallingSite),
    /// A method is called on an instance of this class.
    Receiver(DefRef, DefRef),
    /// An instance of the class is made.
    Made(DefRef),
    Write(PossibleValue, InternedStr, WrittenValue),
    /// JavaScript: a function is assigned into a prototype or object.
    Owner(DefRef, PossibleValue),
}

/// The contributions of all files, from the previous round.
#[derive(Clone, Default)]
pub struct Flows {
    callers: FxHashMap<DefRef, SmallVec<[CallingSite; 1]>>,
    receivers: FxHashMap<DefRef, SmallVec<[(DefRef, u32); 2]>>,
    made: FxHashMap<DefRef, u32>,
    writes: FxHashMap<(PossibleValue, InternedStr), SmallVec<[WrittenValue; 1]>>,
    written_names: FxHashMap<PossibleValue, SmallVec<[(InternedStr, u32); 2]>>,
    owners: FxHashMap<DefRef, SmallVec<[(PossibleValue, u32); 1]>>,
}

impl Flows {
    /// The callers of a function, or none if they are too many to be informative.
    fn callers(&self, function: DefRef) -> &[CallingSite] {
        let callers = self.callers.get(&function).map_or(&[][..], |found| found.as_slice());
        if callers.len() > MOST_CALLERS { &[] } else { callers }
    }

    /// The classes that a method is called on, other than its own.
    pub fn receivers(&self, method: DefRef) -> impl Iterator<Item = DefRef> + Clone + '_ {
        self.receivers.get(&method).into_iter().flatten().map(|(class, _)| *class)
    }

    /// Whether instances of exactly this class are made.
    pub fn is_made(&self, class: DefRef) -> bool {
        self.made.contains_key(&class)
    }

    /// Whether instances of any class are made.
    pub fn any_made(&self) -> bool {
        !self.made.is_empty()
    }

    /// The values that are written into an object under a name.
    pub fn writes(&self, into: PossibleValue, name: InternedStr) -> &[WrittenValue] {
        self.writes.get(&(into, name)).map_or(&[], |found| found.as_slice())
    }

    /// The names under which values are written into an object.
    pub fn written_names(&self, into: PossibleValue) -> impl Iterator<Item = InternedStr> + '_ {
        self.written_names.get(&into).into_iter().flatten().map(|(name, _)| *name)
    }

    /// The objects and prototypes that a function is assigned into.
    pub fn owners(&self, function: DefRef) -> impl Iterator<Item = PossibleValue> + '_ {
        self.owners.get(&function).into_iter().flatten().map(|(value, _)| *value)
    }

    /// Replaces the contributions of a file and records the differences. Both slices are sorted.
    pub fn replace(
        &mut self,
        old: &[FlowContribution],
        new: &[FlowContribution],
        link: &ProgramTables,
        changed: &mut ChangedDependencies,
    ) {
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

    fn change(&mut self, give: FlowContribution, add: bool, link: &ProgramTables, changed: &mut ChangedDependencies) {
        match give {
            FlowContribution::Caller(function, caller) => {
                let known = self.callers.entry(function).or_default();
                let before = known.len();
                put(known, caller, add);
                if before.min(known.len()) <= MOST_CALLERS {
                    changed.entry(TableEntry::Callers(function));
                }
            }
            FlowContribution::Receiver(method, class) => {
                if count(self.receivers.entry(method).or_default(), class, add) {
                    changed.entry(TableEntry::Receivers(method));
                }
            }
            FlowContribution::Made(class) => {
                let any = self.any_made();
                let known = self.made.entry(class).or_default();
                let before = *known;
                *known = if add { before + 1 } else { before.saturating_sub(1) };
                if *known == 0 {
                    self.made.remove(&class);
                }
                if (before == 0) == add {
                    changed.entry(TableEntry::Made(class));
                    link.above(class, |of| changed.entry(TableEntry::MadeBelow(of)));
                }
                if any != self.any_made() {
                    changed.entry(TableEntry::AnyMade);
                }
            }
            FlowContribution::Write(into, name, written) => {
                put(self.writes.entry((into, name)).or_default(), written, add);
                changed.entry(TableEntry::Write(into, name));
                if count(self.written_names.entry(into).or_default(), name, add) {
                    changed.entry(TableEntry::WrittenNames(into));
                }
            }
            FlowContribution::Owner(function, value) => {
                if count(self.owners.entry(function).or_default(), value, add) {
                    changed.entry(TableEntry::Owners(function));
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
    fn callers(&mut self, function: DefRef) -> &'p [CallingSite] {
        self.touch_flows();
        self.note(TableEntry::Callers(function));
        let flows = self.flows;
        flows.callers(function)
    }

    /// Adds what callers pass to a parameter.
    pub(super) fn flowing(&mut self, function: DefRef, place: usize, set: &mut ValueSet, levels: u8) {
        let passed = self.deeper(levels, |e, levels| e.passed_by_all(function, place, levels));
        set.join(&passed);
    }

    /// The values that callers pass at a position.
    pub(super) fn passed_by_all(&mut self, function: DefRef, place: usize, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        let callers = self.callers(function);
        let here = self.file(function.file);
        let name = here.facts.def(function.def).params.get(place).map(|var| here.sym(here.facts.vars[*var].name));
        for caller in callers {
            let passed = self.passed(caller, place, name, levels);
            set.join_as(&passed, Derivation::Flow.max(caller.how));
            if set.too_many {
                break;
            }
        }
        set
    }

    /// The result of a function type, and its parameter types.
    pub(super) fn function_type(&self, file: FileId, expr: ExprId) -> (ExprId, IndexRange) {
        let facts = &self.file(file).facts;
        let (expr, takes) = match facts.expr(expr) {
            SourceExpr::Generic(function, takes) => (function, takes),
            _ => (expr, IndexRange::default()),
        };
        match facts.expr(expr) {
            SourceExpr::FunctionType(result) => (result, takes),
            _ => (UNKNOWN, takes),
        }
    }

    /// The values that one call passes to the parameter at a position.
    fn passed(&mut self, caller: &CallingSite, place: usize, name: Option<InternedStr>, levels: u8) -> ValueSet {
        let (file, call) = (caller.file, caller.call);
        match caller.passing {
            ArgumentPassing::Straight => self.argument(file, call, place, name, levels),
            ArgumentPassing::Bound => match place.checked_sub(1) {
                Some(place) => self.argument(file, call, place, name, levels),
                None => ValueSet::default(),
            },
            ArgumentPassing::Call => self.argument(file, call, place + 1, name, levels),
            ArgumentPassing::Apply => {
                let list = self.argument(file, call, 1, None, levels);
                self.at_index(&list, to_u32(place), levels)
            }
            ArgumentPassing::Held => {
                let facts = &self.file(file).facts;
                let entry = &facts.calls[call];
                let SourceExpr::Member(of, method) = facts.expr(entry.callee) else { return ValueSet::default() };
                let method = facts.name(method);
                // `reduce` passes the accumulator first.
                let element = usize::from(matches!(method, "reduce" | "reduceRight" | "fold"));
                if place != element {
                    return ValueSet::default();
                }
                let held = self.expr(file, of, entry.owner, levels);
                if matches!(method, "then" | "thenApply" | "thenAccept" | "thenCompose" | "and_then" | "map_or") {
                    return self.awaited(&held, levels);
                }
                self.element(&held, levels)
            }
            ArgumentPassing::Mapped => {
                if place != 0 {
                    return ValueSet::default();
                }
                let mut set = ValueSet::default();
                for at in 0..2 {
                    let list = self.argument(file, call, at, None, levels);
                    set.join(&self.element(&list, levels));
                }
                set
            }
        }
    }

    /// The values of a keyword argument that no parameter takes.
    pub(super) fn keyword(&mut self, function: DefRef, name: InternedStr, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        let callers = self.callers(function);
        for caller in callers {
            let (file, call) = (caller.file, caller.call);
            set.join_as(&self.argument(file, call, usize::MAX, Some(name), levels), Derivation::Flow);
            if set.too_many {
                break;
            }
        }
        set
    }

    /// All values passed from a position on.
    pub(super) fn rest_elements(&mut self, function: DefRef, place: usize, levels: u8) -> ValueSet {
        let mut set = ValueSet::default();
        let callers = self.callers(function);
        for caller in callers {
            let args = self.file(caller.file).facts.calls[caller.call].args.len as usize;
            let from = match caller.passing {
                ArgumentPassing::Straight => place,
                ArgumentPassing::Bound => place.saturating_sub(1),
                ArgumentPassing::Call => place + 1,
                _ => continue,
            };
            for at in from..args.max(from) {
                set.join_as(&self.argument(caller.file, caller.call, at, None, levels), Derivation::Flow);
            }
            if set.too_many {
                break;
            }
        }
        set
    }
}
