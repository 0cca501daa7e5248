//! The values that an expression may hold, and the derivation of each.

use crate::facts::{DefId, ExprId};
pub use crate::ids::{DirId, ExternalId, FileId, InternedStr};
use smallvec::SmallVec;

/// A definition of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefRef {
    pub file: FileId,
    pub def: DefId,
}

/// A value that an expression may hold, as far as it matters for calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PossibleValue {
    /// A function or lambda without a receiver.
    Func(DefRef),
    /// A method bound to a receiver; the second field is the class of the receiver.
    Method(DefRef, DefRef),
    /// The type itself.
    Class(DefRef),
    /// An instance. `true`: of exactly this class; `false`: of this class or a derived one.
    Instance(DefRef, bool),
    Module(FileId),
    /// A folder that is a package: Python without `__init__`, Go, Java.
    Folder(DirId),
    /// A package known by its dotted name (Java, C#, Kotlin, PHP).
    Package(InternedStr),
    /// A namespace inside a file.
    Namespace(DefRef),
    /// A list, map or object literal at this expression.
    Object(FileId, ExprId),
    /// `F.prototype`.
    Prototype(DefRef),
    /// The result of a call of a generator.
    Generator(DefRef),
    /// A name of a package outside the program: `os.path.join`.
    External(ExternalId),
    /// An instance or a result of something outside the program.
    ExternalInstance(ExternalId),
    /// An instance of a generic type outside the program; the type expression contains its arguments.
    Typed(FileId, ExprId),
    /// A function of which only the result type is known.
    FunctionOf(FileId, ExprId),
    /// `*args` of a function: the arguments of its callers from this position on.
    Rest(DefRef, u16),
    /// `**kwargs` of a function.
    Keywords(DefRef),
    /// A builtin of the language, by name.
    Builtin(InternedStr),
    Text,
    Number,
    Nothing,
}

/// The derivation of a value, the most certain first. A value derived in several steps has the least certain of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Derivation {
    /// Reported by a compiler (SCIP).
    Compiler,
    /// In the same file, resolved by scope.
    Exact,
    /// Resolved through an import or the package.
    Import,
    /// Through the type of a receiver: a constructor, an annotation, a field.
    Type,
    /// Through values that flow across calls.
    Flow,
    /// Reported together with targets that are at least as likely: a method without a body with those that have one, or
    /// one of several classes where their common base is declared.
    Candidate,
    /// The only class with instances that implements or overrides the method.
    Dispatch,
    /// One of several that the declaration allows, or one for which no instance is known to be made.
    Possible,
    /// The only definition of that name.
    UniqueName,
}

impl Derivation {
    /// The name of the derivation, as recorded on relationships.
    pub fn derivation(self) -> &'static str {
        match self {
            Derivation::Compiler => "compiler",
            Derivation::Exact => "exact",
            Derivation::Import => "import",
            Derivation::Type
            | Derivation::Flow
            | Derivation::Candidate
            | Derivation::Dispatch
            | Derivation::Possible => "type",
            Derivation::UniqueName => "unique_name",
        }
    }

    /// How likely a link with this derivation is right, from 0 to 1.
    pub fn confidence(self) -> f64 {
        match self {
            Derivation::Compiler => 1.0,
            Derivation::Exact => 0.98,
            Derivation::Import => 0.95,
            Derivation::Type => 0.9,
            Derivation::Flow => 0.8,
            Derivation::Candidate | Derivation::Dispatch => 0.6,
            Derivation::Possible => 0.45,
            Derivation::UniqueName => 0.4,
        }
    }
}

/// A set of more values than this is not informative and is dropped.
pub const MOST: usize = 8;

/// A small set of values, each with its most certain derivation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueSet {
    pub values: SmallVec<[(PossibleValue, Derivation); 2]>,
    /// There were too many values, so nothing is known.
    pub too_many: bool,
}

impl ValueSet {
    /// A set of one value.
    pub fn one(value: PossibleValue, how: Derivation) -> ValueSet {
        let mut set = ValueSet::default();
        set.add(value, how);
        set
    }

    /// Adds a value. If the set is full, it loses all of them.
    pub fn add(&mut self, value: PossibleValue, how: Derivation) {
        if self.too_many {
            return;
        }
        if let Some((_, known)) = self.values.iter_mut().find(|(v, _)| *v == value) {
            *known = (*known).min(how);
        } else if self.values.len() == MOST {
            self.values.clear();
            self.too_many = true;
        } else {
            self.values.push((value, how));
        }
    }

    /// Adds all values of another set.
    pub fn join(&mut self, other: &ValueSet) {
        self.join_as(other, Derivation::Compiler);
    }

    /// Adds all values, none with a more certain derivation than `least`.
    pub fn join_as(&mut self, other: &ValueSet, least: Derivation) {
        if other.too_many {
            self.values.clear();
            self.too_many = true;
        }
        for (value, how) in &other.values {
            self.add(*value, (*how).max(least));
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
