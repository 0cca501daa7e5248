//! What an expression may hold, and by which rule that is known.

use crate::facts::{DefId, ExprId};
use smallvec::SmallVec;

/// Index of a file in the program.
pub type FileId = u32;
/// A string known to the whole program.
pub type Sym = u32;
/// Index of a folder in the program.
pub type DirId = u32;

/// A definition of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gid {
    pub file: FileId,
    pub def: DefId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// A function or lambda, called as it stands.
    Func(Gid),
    /// A method with its receiver; the second is the class the receiver is of.
    Method(Gid, Gid),
    /// The type itself.
    Class(Gid),
    /// An instance. `true`: of exactly this class, made by its constructor; `false`: or of one derived from it.
    Instance(Gid, bool),
    Module(FileId),
    /// A folder that is a package: Python without `__init__`, Go, Java by its name.
    Folder(DirId),
    /// A package known by its dotted name (Java, C#, Kotlin, PHP).
    Package(Sym),
    /// A namespace inside a file.
    Namespace(Gid),
    /// A list, map or object written down at this expression.
    Object(FileId, ExprId),
    /// `F.prototype`.
    Prototype(Gid),
    /// What a call of a generator gives.
    Generator(Gid),
    /// Something of a package that is not part of the program: `os.path.join`.
    External(Sym),
    /// An instance of, or what came out of, something external.
    ExternalInstance(Sym),
    /// An instance of a generic type that is not of the program, with its arguments at this type expression.
    Typed(FileId, ExprId),
    /// A function of which only the result type is known.
    FunctionOf(FileId, ExprId),
    /// `*args` of a function: what its callers pass from this place on.
    Rest(Gid, u16),
    /// `**kwargs` of a function.
    Keywords(Gid),
    /// A builtin of the language, by name.
    Builtin(Sym),
    Text,
    Number,
    Nothing,
}

/// How a value is known, surest first. What is known through several steps is as sure as the weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// The compiler said so (SCIP).
    Compiler,
    /// Written in the same file, found by scope.
    Exact,
    /// Found through an import or the package.
    Import,
    /// Through the type of a receiver: a constructor, an annotation, a field.
    Type,
    /// Through values followed across calls.
    Flow,
    /// Told beside others that are more likely, or as likely: a method without a body beside those that have one, one
    /// of several classes that come where their common base is declared.
    Candidate,
    /// The one class that implements or overrides, of which objects are made.
    Dispatch,
    /// One of several that could be meant by their declaration, or of which nothing shows that it is ever made.
    Possible,
    /// The only one of that name.
    UniqueName,
}

impl How {
    pub fn derivation(self) -> &'static str {
        match self {
            How::Compiler => "compiler",
            How::Exact => "exact",
            How::Import => "import",
            How::Type | How::Flow | How::Candidate | How::Dispatch | How::Possible => "type",
            How::UniqueName => "unique_name",
        }
    }

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

/// More values than this say nothing any more: such a set is given up.
pub const MOST: usize = 8;

/// A small set of values, each with the surest way it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    pub values: SmallVec<[(Value, How); 2]>,
    /// There were too many: nothing is known.
    pub too_many: bool,
}

impl Set {
    pub fn one(value: Value, how: How) -> Set {
        let mut set = Set::default();
        set.add(value, how);
        set
    }

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

    pub fn join(&mut self, other: &Set) {
        self.join_as(other, How::Compiler);
    }

    /// Adds all, none surer than `least`.
    pub fn join_as(&mut self, other: &Set, least: How) {
        if other.too_many {
            self.values.clear();
            self.too_many = true;
        }
        for (value, how) in &other.values {
            self.add(*value, (*how).max(least));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
