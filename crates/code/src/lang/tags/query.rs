//! The tags queries: per language, the nodes that define, refer, import or bind.
//!
//! They are the grammars' own `tags.scm`, extended to what those miss and reduced to the outer node: names are read
//! from the node's fields, because C and C++ nest them in declarators. With one step per pattern, matches arrive in the
//! order of the text, outer before inner; the reader depends on that order.

use crate::facts::Kind;
use crate::language::Language;
use std::sync::OnceLock;
use tree_sitter::Query;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tag {
    Define(Kind),
    /// A declaration that is a variable, a field, a local or a prototype, depending on its position.
    Declaration,
    /// `template<…>` around a definition.
    Template,
    Package,
    Call,
    /// A bare name that may be a call: Ruby.
    Name,
    Import,
    Assign,
    Each,
    Caught,
    Return,
    Lambda,
    /// A block whose members are static: Kotlin `companion object`, Ruby `class << self`.
    Statics,
    /// `public:` and similar labels.
    Access,
    Use,
    Alias,
    Comment,
    Entry,
}

const NAMES: &[(&str, Tag)] = &[
    ("definition.module", Tag::Define(Kind::Module)),
    ("definition.class", Tag::Define(Kind::Class)),
    ("definition.struct", Tag::Define(Kind::Struct)),
    ("definition.enum", Tag::Define(Kind::Enum)),
    ("definition.interface", Tag::Define(Kind::Interface)),
    ("definition.type", Tag::Define(Kind::Type)),
    ("definition.function", Tag::Define(Kind::Function)),
    ("definition.field", Tag::Define(Kind::Field)),
    ("definition.variable", Tag::Declaration),
    ("definition.template", Tag::Template),
    ("package", Tag::Package),
    ("reference.call", Tag::Call),
    ("reference.name", Tag::Name),
    ("reference.use", Tag::Use),
    ("import", Tag::Import),
    ("assign", Tag::Assign),
    ("each", Tag::Each),
    ("caught", Tag::Caught),
    ("return", Tag::Return),
    ("lambda", Tag::Lambda),
    ("statics", Tag::Statics),
    ("access", Tag::Access),
    ("alias", Tag::Alias),
    ("doc", Tag::Comment),
    ("entry", Tag::Entry),
];

const C: &str = "
(comment) @doc
(preproc_include) @import
[(preproc_def) (preproc_function_def)] @definition.field
[(struct_specifier) (union_specifier)] @definition.struct
(enum_specifier) @definition.enum
(enumerator) @definition.field
(type_definition) @definition.type
(function_definition) @definition.function
[(declaration) (field_declaration)] @definition.variable
(call_expression) @reference.call
(initializer_list) @reference.use
(assignment_expression) @assign
(return_statement) @return
";

const CPP: &str = "
(template_declaration) @definition.template
(namespace_definition) @definition.module
(class_specifier) @definition.class
[(alias_declaration) (concept_definition)] @definition.type
(access_specifier) @access
(using_declaration) @alias
[(new_expression) (compound_literal_expression) (field_initializer)] @reference.call
(lambda_expression) @lambda
(for_range_loop) @each
(catch_clause) @caught
";

const CSHARP: &str = "
(comment) @doc
(using_directive) @import
[(namespace_declaration) (file_scoped_namespace_declaration)] @package
(class_declaration) @definition.class
[(struct_declaration) (record_declaration)] @definition.struct
(enum_declaration) @definition.enum
(interface_declaration) @definition.interface
(delegate_declaration) @definition.type
[(method_declaration) (constructor_declaration) (destructor_declaration) (operator_declaration)
 (conversion_operator_declaration) (indexer_declaration) (local_function_statement)] @definition.function
[(field_declaration) (event_field_declaration) (property_declaration) (event_declaration)
 (enum_member_declaration)] @definition.field
[(variable_declaration) (declaration_pattern) (declaration_expression)] @definition.variable
[(invocation_expression) (object_creation_expression) (implicit_object_creation_expression)
 (constructor_initializer)] @reference.call
(initializer_expression) @reference.use
(assignment_expression) @assign
(foreach_statement) @each
(catch_declaration) @caught
[(return_statement) (yield_statement)] @return
[(lambda_expression) (anonymous_method_expression)] @lambda
(global_statement) @entry
";

const RUBY: &str = "
(comment) @doc
(module) @definition.module
(class) @definition.class
[(method) (singleton_method)] @definition.function
(singleton_class) @statics
(alias) @alias
(call) @reference.call
(super) @reference.call
[(assignment) (operator_assignment)] @assign
(for) @each
(rescue) @caught
(return) @return
[(block) (do_block) (lambda)] @lambda
(identifier) @reference.name
";

const PHP: &str = "
(comment) @doc
(namespace_definition) @package
[(namespace_use_declaration) (require_expression) (require_once_expression) (include_expression)
 (include_once_expression)] @import
[(class_declaration) (trait_declaration) (anonymous_class)] @definition.class
(enum_declaration) @definition.enum
(interface_declaration) @definition.interface
[(function_definition) (method_declaration)] @definition.function
[(property_declaration) (const_declaration) (enum_case)] @definition.field
(use_declaration) @alias
[(function_call_expression) (member_call_expression) (nullsafe_member_call_expression) (scoped_call_expression)
 (object_creation_expression)] @reference.call
(array_creation_expression) @reference.use
[(assignment_expression) (augmented_assignment_expression)] @assign
(foreach_statement) @each
(catch_clause) @caught
[(return_statement) (yield_expression)] @return
[(anonymous_function) (arrow_function)] @lambda
";

/// The Kotlin grammar has no tags query.
const KOTLIN: &str = "
[(line_comment) (block_comment)] @doc
(package_header) @package
(import) @import
[(class_declaration) (object_declaration) (object_literal)] @definition.class
(companion_object) @statics
(type_alias) @definition.type
[(function_declaration) (secondary_constructor)] @definition.function
[(class_parameter) (enum_entry)] @definition.field
(property_declaration) @definition.variable
[(call_expression) (constructor_delegation_call) (infix_expression)] @reference.call
(callable_reference) @reference.use
(assignment) @assign
(for_statement) @each
(catch_block) @caught
(return_expression) @return
[(lambda_literal) (anonymous_function) (anonymous_initializer)] @lambda
";

pub struct Compiled {
    pub query: Query,
    /// The tag of each capture, by index.
    pub tags: Vec<Tag>,
}

/// The query of a language, compiled once per process.
pub fn compiled(language: Language) -> &'static Compiled {
    static ALL: [OnceLock<Compiled>; Language::ALL.len()] = [const { OnceLock::new() }; Language::ALL.len()];
    ALL[language as usize].get_or_init(|| {
        let parts: &[&str] = match language {
            Language::C => &[C],
            Language::Cpp => &[C, CPP],
            Language::CSharp => &[CSHARP],
            Language::Ruby => &[RUBY],
            Language::Php => &[PHP],
            Language::Kotlin => &[KOTLIN],
            _ => &[],
        };
        let query = Query::new(crate::lang::grammar(language), &parts.concat());
        let query = query.expect("the queries fit the grammars they are built with");
        let tag = |name: &&str| NAMES.iter().find(|(n, _)| n == name).map_or(Tag::Comment, |(_, tag)| *tag);
        let tags = query.capture_names().iter().map(tag).collect();
        Compiled { query, tags }
    })
}
