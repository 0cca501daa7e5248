//! What is followed across calls: who calls a function with what, and what is put into objects from outside.

use super::eval::Eval;
use super::value::{FileId, Gid, How, Set, Sym, Value};
use crate::facts::{CallId, DefId, ExprId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// One call of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    pub file: FileId,
    pub call: CallId,
    /// Parameters that are filled by something else than arguments: 1 when the receiver is one.
    pub shift: u8,
    pub how: How,
}

/// As found by the round before.
#[derive(Default)]
pub struct Flows {
    pub callers: FxHashMap<Gid, Vec<Caller>>,
    /// Methods, and the classes they were called on.
    pub receivers: FxHashMap<Gid, SmallVec<[Gid; 2]>>,
    /// Classes of which instances are made.
    pub made: FxHashSet<Gid>,
    pub writes: FxHashMap<(Value, Sym), Vec<(FileId, ExprId, DefId)>>,
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
            let Some(place) = place.checked_sub(caller.shift as usize) else { continue };
            let passed = self.argument(caller.file, caller.call, place, name, levels - 1);
            set.join_as(&passed, How::Flow.max(caller.how));
            if set.too_many {
                return;
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
            let from = place.saturating_sub(caller.shift as usize);
            for at in from..args.max(from) {
                let passed = self.argument(caller.file, caller.call, at, None, levels - 1);
                set.join_as(&passed, How::Flow);
            }
        }
        set
    }
}
