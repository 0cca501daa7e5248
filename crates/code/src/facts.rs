//! What one source file says: the small language every front end writes and the resolver reads.
//!
//! A file is a list of definitions (`defs`, the first is the file itself), of variables (`vars`), and of what
//! happens: bindings (`x = e`, `e.f = e`, `e[k] = e`), returns, calls and uses. Expressions keep only what can
//! carry a function, a class or an object to a call; everything else is `Expr::Unknown`. Order does not matter:
//! a variable may hold whatever was ever bound to it.

use crate::build::Constraint;
use crate::language::Language;
use serde::{Deserialize, Serialize};

/// Index into `Facts::names`.
pub type Name = u32;
/// Index into `Facts::defs`. `ROOT` is the file itself.
pub type DefId = u32;
/// Index into `Facts::vars`.
pub type VarId = u32;
/// Index into `Facts::exprs`. `UNKNOWN` is always there.
pub type ExprId = u32;
/// Index into `Facts::calls`.
pub type CallId = u32;
/// Index into `Facts::imports`.
pub type ImportId = u32;

pub const ROOT: DefId = 0;
pub const UNKNOWN: ExprId = 0;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facts {
    pub language: Language,
    pub names: Vec<Box<str>>,
    pub defs: Vec<Def>,
    pub vars: Vec<Var>,
    pub exprs: Vec<Expr>,
    pub items: Vec<Item>,
    pub args: Vec<Arg>,
    pub calls: Vec<Call>,
    pub binds: Vec<Bind>,
    /// Lines of Rust's `impl Trait for Type`, by the number of the bind that stands for it, ascending.
    pub impl_lines: Vec<(u32, u32)>,
    pub returns: Vec<Return>,
    pub uses: Vec<Use>,
    pub imports: Vec<Import>,
    pub exports: Vec<Export>,
    /// The package the file says it belongs to (Go, Java, Kotlin, C#, PHP), else empty.
    pub package: Box<str>,
    /// The builds it is part of (Go); none: of every build.
    pub build: Option<Constraint>,
    pub lines: u32,
    /// Where the text could not be understood: (line, what is wrong).
    pub faults: Vec<(u32, Box<str>)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Bytes, end exclusive.
    pub start: u32,
    pub end: u32,
    /// Lines, 1-based, both inclusive.
    pub line: u32,
    pub end_line: u32,
    /// Bytes from the beginning of their lines, 0-based.
    pub column: u32,
    pub end_column: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    File,
    /// A namespace inside a file: Rust `mod`, TypeScript `namespace`, C++ `namespace`.
    Module,
    Class,
    Struct,
    Enum,
    /// Java and TypeScript `interface`, Go interface, Rust `trait`, Python `Protocol` is a class.
    Interface,
    /// An alias or a named type that is none of the above.
    Type,
    Function,
    /// A function that belongs to a class or type, constructors included.
    Method,
    /// A function without a name of its own. Calls in it count for what encloses it.
    Lambda,
    /// A field, property or attribute of a class or type.
    Field,
    /// A variable or constant of a module.
    Variable,
}

impl Kind {
    pub fn callable(self) -> bool {
        matches!(self, Kind::Function | Kind::Method | Kind::Lambda)
    }

    pub fn type_like(self) -> bool {
        matches!(self, Kind::Class | Kind::Struct | Kind::Enum | Kind::Interface | Kind::Type)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visibility {
    #[default]
    Public,
    Protected,
    /// Seen in its package, crate or module tree only.
    Package,
    Private,
}

/// Sets of `Def::flags`.
pub mod flag {
    pub const ASYNC: u32 = 1;
    pub const ABSTRACT: u32 = 1 << 1;
    pub const STATIC: u32 = 1 << 2;
    /// Can be named from outside its file.
    pub const EXPORTED: u32 = 1 << 3;
    pub const GENERATOR: u32 = 1 << 4;
    /// A test case, by the conventions of its ecosystem; a type, module or file of tests.
    pub const TEST: u32 = 1 << 5;
    /// Reading it as a member calls it: Python `@property`, JavaScript `get`.
    pub const GETTER: u32 = 1 << 6;
    /// Its first parameter is the class: Python `@classmethod`.
    pub const CLASS_METHOD: u32 = 1 << 7;
    pub const CONSTRUCTOR: u32 = 1 << 8;
    /// Takes `this` from where it is written: JavaScript arrow functions, lambdas everywhere.
    pub const ARROW: u32 = 1 << 9;
    /// Written by a macro or for the compiler only; a declaration without a body (overloads, `.d.ts`).
    pub const DECLARED: u32 = 1 << 10;
    pub const CONSTANT: u32 = 1 << 11;
    /// The first entry of `params` is the receiver (`self` in Python and Rust, the receiver in Go).
    pub const TAKES_SELF: u32 = 1 << 12;
    pub const SETTER: u32 = 1 << 13;
    /// Where a program begins: `main`, a `bin`, `if __name__ == "__main__"`.
    pub const ENTRY: u32 = 1 << 14;
    /// Called through a macro: Rust `macro_rules!`.
    pub const MACRO: u32 = 1 << 15;
    /// Overridden by nobody: Java `final`, Rust inherent methods.
    pub const FINAL: u32 = 1 << 16;
    /// The last parameter takes the rest (`*args`, `...xs`).
    pub const VARIADIC: u32 = 1 << 17;
    /// Stands for the function it wraps: Python `@functools.wraps`.
    pub const WRAPS: u32 = 1 << 18;
    /// Part of the tests, and no test case itself: a Rust item under `#[cfg(test)]`.
    pub const ONLY_IN_TESTS: u32 = 1 << 19;
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Def {
    pub name: Name,
    pub kind: Kind,
    pub parent: DefId,
    pub visibility: Visibility,
    pub flags: u32,
    /// The whole unit, decorators and attributes included, doc comment not.
    pub span: Span,
    pub doc: Option<Box<str>>,
    /// One sentence, see `summary`.
    pub summary: Box<str>,
    /// Of the text of the whole unit.
    pub hash: u64,
    /// One line, as written, without the body.
    pub signature: Box<str>,
    pub params: Vec<VarId>,
    /// Declared type: what a function returns, what a variable or field is, what an alias stands for.
    pub result: Option<ExprId>,
    /// What a class or type is made from.
    pub bases: Vec<Base>,
    /// For methods written outside their type (Go, Rust): the type. Else the parent says it.
    pub receiver: Option<ExprId>,
    /// For methods of a Rust `impl Trait for Type`: the trait.
    pub through: Option<ExprId>,
    /// Innermost first.
    pub decorators: Vec<ExprId>,
}

impl Def {
    pub fn is(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Base {
    pub how: BaseKind,
    pub of: ExprId,
    pub line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BaseKind {
    Extends,
    Implements,
    /// Go struct or interface embedding: members are promoted.
    Embeds,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Var {
    pub name: Name,
    /// The function, class or file whose variable it is.
    pub owner: DefId,
    pub what: VarKind,
    /// Declared type.
    pub ty: Option<ExprId>,
    /// Something is assigned to it, followed or not; the default of a parameter does not count.
    pub assigned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VarKind {
    Local,
    /// Parameter at this place; the receiver, where `TAKES_SELF`, is place 0.
    Param(u16),
    /// `*args`, `...rest`: a list of the arguments from this place on.
    Rest(u16),
    /// `**kwargs`.
    Keywords,
    /// Stands for a definition. Other bindings of the same variable count too.
    Def(DefId),
    Import(ImportId),
    /// A type parameter; `ty` is its bound.
    TypeParam,
}

/// What an expression may be, as far as calls are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// Nothing that is followed: arithmetic, comparisons, whatever a front end has no word for.
    Unknown,
    Literal(Literal),
    Var(VarId),
    /// A name that nothing in this file declares: a builtin, something of the same package, of a wildcard import.
    Free(Name),
    /// `this`, `self`, Rust's `Self` value: an instance of the enclosing type.
    This,
    /// `super`, `super()`, `base`: the enclosing type's parent, seen from an instance.
    Super,
    /// Rust's `Self`, PHP's `static`, Python's `cls` is a parameter: the enclosing type itself.
    ThisType,
    /// `e.name`, `e::name`, `e->name`.
    Member(ExprId, Name),
    /// `e["name"]`.
    At(ExprId, Name),
    /// `e[3]`; also the places of a tuple.
    AtIndex(ExprId, u32),
    /// Any element of a list, any value of a map: `e[i]`, `for x in e`.
    Element(ExprId),
    /// What a coroutine, promise or generator gives: `await e`, `yield from e`, `e?` in Rust.
    Awaited(ExprId),
    /// The result of a call.
    Call(CallId),
    /// A function or class written here.
    Def(DefId),
    /// A list, tuple, map or object literal: its `items`.
    Collection(ListKind, Range),
    /// `T{…}`: an instance of a type with fields set (`items`); no constructor is called.
    Construct(ExprId, Range),
    /// One of several (`items`): conditionals, `a or b`, `match`.
    Either(Range),
    /// A generic type with its arguments (`items`): `List[T]`, `Vec<T>`, `map[K]V` as `map<K, V>`, `[]T` as `list<T>`.
    Generic(ExprId, Range),
    /// An instance of this type: a cast, a conversion, a declared variable without a value.
    InstanceOf(ExprId),
    /// A type that is a function giving this type; what it takes, where that is kept, is around it: `Generic` of it.
    FunctionType(ExprId),
    /// A generator expression, comprehension or list of this.
    ListOf(ExprId),
    /// A list of several such (`items`), spread into one: `[...a, ...b]`, `a + b`.
    Joined(Range),
    /// A module named by a constant: `require("x")`, `import("x")`, `importlib.import_module("x")`.
    Import(ImportId),
    /// The keys of a map or object: `for k in d`.
    KeysOf(ExprId),
    /// `e.call`/`functools.partial(e)`/method value: the same function, possibly bound.
    Bound(ExprId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Literal {
    String(Name),
    Number,
    Bool,
    Nothing,
    Regex,
    Template,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListKind {
    List,
    Tuple,
    Set,
    /// Map or object literal: items have keys.
    Map,
}

/// A run of `items`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    pub start: u32,
    pub len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    pub key: Key,
    pub value: ExprId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Key {
    /// The next place.
    Next,
    Name(Name),
    /// A key that is not a constant.
    Any,
    /// `*e`, `...e`, `**e`: the elements of `e`.
    Spread,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The function, lambda, class body or file the call is written in.
    pub owner: DefId,
    pub callee: ExprId,
    pub how: CallKind,
    /// Run of `Facts::args`.
    pub args: Range,
    pub line: u32,
    pub column: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallKind {
    Plain,
    /// `new T(…)`, Java `super(…)`/`this(…)` are plain calls of `Super`/`This`.
    New,
    /// `name!(…)`.
    Macro,
    /// A decorator applied to a definition: the argument is the function.
    Decorator,
    /// A method the language calls: an operator, `for`, `with`, a property read. The callee names it as a member.
    /// Nothing is counted as unresolved when it is not found.
    Implicit,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Arg {
    pub how: ArgKind,
    pub value: ExprId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArgKind {
    Place,
    Named(Name),
    /// `*e`, `...e`.
    Spread,
    /// `**e`.
    Keywords,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Bind {
    /// The function, class body or file it is written in.
    pub owner: DefId,
    pub target: Target,
    pub value: ExprId,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Target {
    Var(VarId),
    /// `e.name = value`.
    Member(ExprId, Name),
    /// `e["name"] = value`.
    At(ExprId, Name),
    /// `e[i] = value`, `e.append(value)`, `e.push(value)`.
    Element(ExprId),
    /// A free name assigned to: a global of another file, an implicit global.
    Free(Name),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Return {
    pub owner: DefId,
    pub value: ExprId,
    /// `yield`: an element of what the call gives.
    pub yields: bool,
    pub when: When,
}

/// When a return is reached, as far as that hangs on a parameter that may be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    #[default]
    Always,
    /// Only when that parameter was given.
    Given(Name),
    /// Only when it was not.
    Missing(Name),
}

/// A name used other than by calling it: becomes REFERENCES when it turns out to be a symbol.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Use {
    pub owner: DefId,
    pub expr: ExprId,
    pub line: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Import {
    pub owner: DefId,
    pub line: u32,
    /// As written: `./x`, `a.b.c`, `..pkg` with its dots, `crate::a::b`, `github.com/x/y`, `java.util`.
    pub module: Box<str>,
    pub what: Imported,
    /// What it is called here.
    pub var: Option<VarId>,
    /// For types only: nothing is run.
    pub type_only: bool,
    /// Made in tests only: Rust's `#[cfg(test)] mod x;`.
    pub only_in_tests: bool,
    /// Gives it on to those who import this file (JavaScript `export … from`, Rust `pub use`).
    pub reexport: Option<Name>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Imported {
    /// The module itself: `import x`, `import * as x`, `require("x")`.
    Module,
    /// `import a.b.c` in Python: binds `a`, of which `b.c` is reached by members.
    Root,
    /// One thing of the module. JavaScript's default export is named `default`.
    Symbol(Name),
    /// Everything: `from x import *`, `use x::*`, `import x.*`.
    All,
    /// Only run: `import "./side-effect"`.
    Nothing,
}

/// What a JavaScript or TypeScript file gives by name. `default` is the default export, `=` is `module.exports = e`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Export {
    pub name: Name,
    pub value: ExprId,
}

impl Facts {
    pub fn name(&self, name: Name) -> &str {
        &self.names[name as usize]
    }

    pub fn def(&self, def: DefId) -> &Def {
        &self.defs[def as usize]
    }

    pub fn expr(&self, expr: ExprId) -> Expr {
        self.exprs[expr as usize]
    }

    pub fn items(&self, range: Range) -> &[Item] {
        &self.items[range.start as usize..(range.start + range.len) as usize]
    }

    pub fn args(&self, range: Range) -> &[Arg] {
        &self.args[range.start as usize..(range.start + range.len) as usize]
    }

    /// The names from the file down to the definition, the file left out.
    pub fn path_of(&self, def: DefId) -> Vec<&str> {
        let mut path = Vec::new();
        let mut at = def;
        while at != ROOT {
            path.push(self.name(self.def(at).name));
            at = self.def(at).parent;
        }
        path.reverse();
        path
    }
}
