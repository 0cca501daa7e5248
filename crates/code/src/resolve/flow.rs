//! What is followed across calls: who calls a function with what, and what is put into objects from outside.

use super::eval::Eval;
use super::value::{FileId, Gid, How, Set, Sym, Value};
use crate::facts::{CallId, DefId, Expr, ExprId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// One call of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    pub file: FileId,
    pub call: CallId,
    pub passing: Passing,
    pub how: How,
}

/// How a call's arguments come to the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Passing {
    /// One by one.
    Straight,
    /// The first parameter is the receiver.
    Bound,
    /// `f.call(this, a, b)`: the first argument is the receiver.
    Call,
    /// `f.apply(this, list)`.
    Apply,
    /// `xs.forEach(f)`, `promise.then(f)`: the function gets what the object holds.
    Held,
    /// `map(f, xs)`: the function gets the elements of the other argument.
    Mapped,
}

/// A value that is put somewhere: its file, the expression, and the definition it stands in.
pub type Written = (FileId, ExprId, DefId);

/// As found by the round before.
#[derive(Default)]
pub struct Flows {
    pub callers: FxHashMap<Gid, Vec<Caller>>,
    /// Methods, and the classes they were called on.
    pub receivers: FxHashMap<Gid, SmallVec<[Gid; 2]>>,
    /// Classes of which instances are made.
    pub made: FxHashSet<Gid>,
    pub writes: FxHashMap<(Value, Sym), Vec<Written>>,
    pub written_names: FxHashMap<Value, SmallVec<[Sym; 2]>>,
    /// JavaScript functions put into a prototype or object: what they belong to.
    pub owners: FxHashMap<Gid, SmallVec<[Value; 1]>>,
}

/// A function called from more places than this takes anything: what is passed to it says nothing.
const MOST_CALLERS: usize = 24;

impl Eval<'_> {
    /// Adds what callers pass to a parameter.
    pub(super) fn flowing(&mut self, function: Gid, place: usize, set: &mut Set, levels: u8) {
        self.wanted.insert(function);
        self.touch_flows();
        let flows = self.flows;
        let Some(callers) = flows.callers.get(&function) else { return };
        if callers.len() > MOST_CALLERS || levels == 0 {
            return;
        }
        let here = self.file(function.file);
        let name =
            here.facts.def(function.def).params.get(place).map(|var| here.sym(here.facts.vars[*var as usize].name));
        for caller in callers {
            let passed = self.passed(caller, place, name, levels - 1);
            set.join_as(&passed, How::Flow.max(caller.how));
            if set.too_many {
                return;
            }
        }
    }

    /// What one call passes to the parameter at a place.
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
                let entry = &facts.calls[call as usize];
                let Expr::Member(of, method) = facts.expr(entry.callee) else { return Set::default() };
                let method = facts.name(method);
                // `reduce` hands over what it has so far first.
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

    /// A keyword argument that no parameter takes.
    pub(super) fn keyword(&mut self, function: Gid, name: Sym, levels: u8) -> Set {
        self.wanted.insert(function);
        self.touch_flows();
        let mut set = Set::default();
        let flows = self.flows;
        let Some(callers) = flows.callers.get(&function) else { return set };
        if callers.len() > MOST_CALLERS || levels == 0 {
            return set;
        }
        for caller in callers {
            let passed = self.argument(caller.file, caller.call, usize::MAX, Some(name), levels - 1);
            set.join_as(&passed, How::Flow);
        }
        set
    }

    /// Everything passed from a place on.
    pub(super) fn rest_elements(&mut self, function: Gid, place: usize, levels: u8) -> Set {
        self.wanted.insert(function);
        self.touch_flows();
        let mut set = Set::default();
        let flows = self.flows;
        let Some(callers) = flows.callers.get(&function) else { return set };
        if callers.len() > MOST_CALLERS || levels == 0 {
            return set;
        }
        for caller in callers {
            let args = self.file(caller.file).facts.calls[caller.call as usize].args.len as usize;
            let from = match caller.passing {
                Passing::Straight => place,
                Passing::Bound => place.saturating_sub(1),
                Passing::Call => place + 1,
                _ => continue,
            };
            for at in from..args.max(from) {
                let passed = self.argument(caller.file, caller.call, at, None, levels - 1);
                set.join_as(&passed, How::Flow);
            }
        }
        set
    }
}
