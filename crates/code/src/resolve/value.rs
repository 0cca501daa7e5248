//! The values that an expression may hold, and the derivation of each.

use crate::facts::{DefId, ExprId};
pub use crate::ids::{DirId, ExternalId, FileId, Sym};
use smallvec::SmallVec;

/// A definition of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gid {
    pub file: FileId,
    pub def: DefId,
}

/// A value that an expression may hold, as far as it matters for calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// A function or lambda without a receiver.
    Func(Gid),
    /// A method bound to a receiver; the second field is the class of the receiver.
    Method(Gid, Gid),
    /// The type itself.
    Class(Gid),
    /// An instance. `true`: of exactly this class; `false`: of this class or a derived one.
    Instance(Gid, bool),
    Module(FileId),
    /// A folder that is a package: Python without `__init__`, Go, Java.
    Folder(DirId),
    /// A package known by its dotted name (Java, C#, Kotlin, PHP).
    Package(Sym),
    /// A namespace inside a file.
    Namespace(Gid),
    /// A list, map or object literal at this expression.
    Object(FileId, ExprId),
    /// `F.prototype`.
    Prototype(Gid),
    /// The result of a call of a generator.
    Generator(Gid),
    /// A name of a package outside the program: `os.path.join`.
    External(ExternalId),
    /// An instance or a result of something outside the program.
    ExternalInstance(ExternalId),
    /// An instance of a generic type outside the program; the type expression contains its arguments.
    Typed(FileId, ExprId),
    /// A function of which only the result type is known.
    FunctionOf(FileId, ExprId),
    /// `*args` of a function: the arguments of its callers from this position on.
    Rest(Gid, u16),
    /// `**kwargs` of a function.
    Keywords(Gid),
    /// A builtin of the language, by name.
    Builtin(Sym),
    Text,
    Number,
    Nothing,
}

/// The derivation of a value, the most certain first. A value derived in several steps has the least certain of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
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

impl How {
    /// The name of the derivation, as recorded on relationships.
    pub fn derivation(self) -> &'static str {
        match self {
            How::Compiler => "compiler",
            How::Exact => "exact",
            How::Import => "import",
            How::Type | How::Flow | How::Candidate | How::Dispatch | How::Possible => "type",
            How::UniqueName => "unique_name",
        }
    }

    /// How likely a link with this derivation is right, from 0 to 1.
    pub fn confidence(self) -> f64 {
        match self {
            How::Compiler => 1.0,
            How::Exact => 0.98,
            How::Import => 0.95,
            How::Type => 0.9,
            How::Flow => 0.8,
            How::Candidate | How::Dispatch => 0.6,
            How::Possible => 0.45,
            How::UniqueName => 0.4,
        }
    }
}

/// A set of more values than this is not informative and is dropped.
pub const MOST: usize = 8;

/// A small set of values, each with its most certain derivation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    pub values: SmallVec<[(Value, How); 2]>,
    /// There were too many values, so nothing is known.
    pub too_many: bool,
}

impl Set {
    /// A set of one value.
    pub fn one(value: Value, how: How) -> Set {
        let mut set = Set::default();
        set.add(value, how);
        set
    }

    /// Adds a value. If the set is full, it loses all of them.
    pub fn add(&mut self, value: Value, how: How) {
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
    pub fn join(&mut self, other: &Set) {
        self.join_as(other, How::Compiler);
    }

    /// Adds all values, none with a more certain derivation than `least`.
    pub fn join_as(&mut self, other: &Set, least: How) {
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
