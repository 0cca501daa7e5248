//! Properties of a language on which the decisions of the resolver depend.

/// How the names of a language resolve. The comment on a field describes a language that sets it. The default is a
/// language of which only the syntax is known.
pub(crate) struct LanguageRules {
    // --- modules and names ---
    pub modules: Modules,
    /// Names that a wildcard import brings in are names of the importing module for others too.
    pub wildcards_are_given_on: bool,
    /// A name without a receiver may be a member of an enclosing type.
    pub implicit_receiver: bool,
    /// Functions of all files share one namespace; a name that only one function has means it.
    pub global_functions: bool,
    /// A dotted path of packages may be written in an expression.
    pub package_paths: bool,
    /// Names without a declaration that are part of the language.
    pub builtins: &'static [&'static str],
    /// The package that builtins belong to.
    pub library: Option<StandardLibrary>,

    // --- types and members ---
    /// Methods may be written outside the body of their type (`Def::receiver`).
    pub methods_outside_types: bool,
    /// A type implements every interface whose methods it has, without a declaration.
    pub structural_interfaces: bool,
    /// Only interfaces can be derived from.
    pub only_interfaces_inherit: bool,
    /// `super` means the next class in the resolution order of the receiver's class, not of the enclosing class.
    pub cooperative_super: bool,
    /// Objects, functions and prototypes get members by assignment, every function can be called with `new`, and
    /// `f.call(…)`, `f.apply(…)` and `f.bind(…)` run `f`.
    pub open_objects: bool,
    /// A function implements an interface that has one method.
    pub functional_interfaces: bool,
    /// Names of methods by which a constructor that is passed as a function (`T::new`) is called.
    pub constructor_references: &'static [&'static str],
    /// Methods that every object has without a declaration.
    pub methods_of_every_object: &'static [&'static str],
    pub overloading: Overloading,
    /// `x.name(…)` calls the method, never the value of a field of that name.
    pub calls_methods_only: bool,
    /// A name that is read is a field or variable, never a method of the same name.
    pub reads_fields_only: bool,
    /// Generic types whose value is the class that is their argument, not an instance of it.
    pub types_of_classes: &'static [&'static str],
    /// The type of a number without a suffix.
    pub number_type: Option<&'static str>,
    /// A declared result type is less precise than the argument that the function returns.
    pub vague_results: bool,
    /// The object that `for` requests from a container is not the container itself.
    pub iterators_are_apart: bool,
    /// Methods that the compiler generates on request, without a definition in the program.
    pub derived_methods: &'static [(&'static str, DerivedMethod)],

    // --- construction ---
    pub constructs: Constructs,
    /// The name of constructors; `None` if they have the name of their type.
    pub constructor: Option<&'static str>,
    /// A type without a constructor has that of its base.
    pub inherits_constructors: bool,
    /// An anonymous type is constructed by the constructor of its base.
    pub anonymous_types_inherit_constructors: bool,
    /// Calling a variant of an enum constructs it.
    pub variants_construct: bool,

    // --- names with a meaning ---
    /// The method by which an instance is called like a function.
    pub call_method: Option<&'static str>,
    pub iteration: Option<Iteration>,

    // --- functions that call their arguments ---
    /// Builtin functions that call functions passed to them.
    pub functions_that_call: &'static [&'static str],
    /// Methods of builtin types that call functions passed to them.
    pub methods_that_call: &'static [&'static str],
}

impl LanguageRules {
    pub const DEFAULT: LanguageRules = LanguageRules {
        modules: Modules::Program,
        wildcards_are_given_on: false,
        implicit_receiver: false,
        global_functions: false,
        package_paths: false,
        builtins: &[],
        library: None,
        methods_outside_types: false,
        structural_interfaces: false,
        only_interfaces_inherit: false,
        cooperative_super: false,
        open_objects: false,
        functional_interfaces: false,
        constructor_references: &[],
        methods_of_every_object: &[],
        overloading: Overloading::None,
        calls_methods_only: false,
        reads_fields_only: false,
        types_of_classes: &[],
        number_type: None,
        vague_results: false,
        iterators_are_apart: false,
        derived_methods: &[],
        constructs: Constructs::Types,
        constructor: None,
        inherits_constructors: false,
        anonymous_types_inherit_constructors: false,
        variants_construct: false,
        call_method: None,
        iteration: None,
        functions_that_call: &[],
        methods_that_call: &[],
    };

    /// Whether methods of one name are distinguished by the types of their parameters, and each has a body.
    pub fn overloads(&self) -> bool {
        self.overloading == Overloading::ByTypes
    }
}

/// How files share names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modules {
    /// Each file is a module, and all of its names can be imported.
    Files,
    /// Each file is a module, and other files can import what it exports (`FileFacts::exports`, `SourceImport::reexport`).
    Exports,
    /// The files of a folder with the same package clause share all names.
    Folders,
    /// The files of a package, wherever they are, share their types and functions (`FileFacts::package`).
    Packages,
    /// Files are modules that other files declare; paths walk from module to module.
    Tree,
    /// Files are included, or all names are global.
    Program,
}

/// How functions of one name in one type are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overloading {
    None,
    /// By the number of arguments, then by their types; several may be declarations of one body.
    ByCount,
    /// By the types of the parameters; each has a body.
    ByTypes,
}

/// What constructs an object when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constructs {
    /// Types; an alias is not called.
    Types,
    TypesAndAliases,
    /// Calling a type converts a value to it.
    Nothing,
}

/// The package of a language's own library, which needs no import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StandardLibrary {
    pub package: &'static str,
    /// The prefix of its key, where that differs from the packages that programs install.
    pub ecosystem: Option<&'static str>,
}

/// What a builtin returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltinCall {
    /// Its first argument, or a container of the same elements.
    Argument,
    /// An element of its first argument.
    Element,
    /// The member of its first argument that the second one names.
    Member,
    /// The type of its first argument.
    Type,
    Text,
    Number,
}

/// What a method that the compiler generates returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DerivedMethod {
    /// Called on a type: a new instance of it.
    New,
    /// Called on an instance: an instance of the same type.
    Copy,
}

/// The methods by which an object is iterated over and indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Iteration {
    /// Returns the iterator.
    pub iterator: &'static str,
    /// Returns the next element from an iterator.
    pub next: &'static str,
    /// Returns the element at a position or under a key.
    pub item: &'static str,
}
