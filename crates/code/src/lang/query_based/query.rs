//! Tags queries: the nodes of a language that define, refer, import or bind.
//!
//! They are the grammars' own `tags.scm`, extended to what those miss and reduced to the outer node: names are read
//! from the node's fields, because C and C++ nest them in declarators. With one step per pattern, matches arrive in the
//! order of the text, outer before inner; the reader depends on that order.

use crate::facts::DefKind;
use crate::languages::LanguageId;
use std::sync::OnceLock;
use tree_sitter::Query;

/// The meaning of a node that a query captures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueryTag {
    Define(DefKind),
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

const NAMES: &[(&str, QueryTag)] = &[
    ("definition.module", QueryTag::Define(DefKind::Module)),
    ("definition.class", QueryTag::Define(DefKind::Class)),
    ("definition.struct", QueryTag::Define(DefKind::Struct)),
    ("definition.enum", QueryTag::Define(DefKind::Enum)),
    ("definition.interface", QueryTag::Define(DefKind::Interface)),
    ("definition.type", QueryTag::Define(DefKind::Type)),
    ("definition.function", QueryTag::Define(DefKind::Function)),
    ("definition.field", QueryTag::Define(DefKind::Field)),
    ("definition.variable", QueryTag::Declaration),
    ("definition.template", QueryTag::Template),
    ("package", QueryTag::Package),
    ("reference.call", QueryTag::Call),
    ("reference.name", QueryTag::Name),
    ("reference.use", QueryTag::Use),
    ("import", QueryTag::Import),
    ("assign", QueryTag::Assign),
    ("each", QueryTag::Each),
    ("caught", QueryTag::Caught),
    ("return", QueryTag::Return),
    ("lambda", QueryTag::Lambda),
    ("statics", QueryTag::Statics),
    ("access", QueryTag::Access),
    ("alias", QueryTag::Alias),
    ("doc", QueryTag::Comment),
    ("entry", QueryTag::Entry),
];

/// The query of a language, compiled once per process.
pub(crate) struct TagsQuery {
    parts: &'static [&'static str],
    compiled: OnceLock<CompiledTagsQuery>,
}

/// A compiled tags query.
pub(super) struct CompiledTagsQuery {
    pub query: Query,
    /// The tag of each capture, by index.
    pub tags: Vec<QueryTag>,
}

impl TagsQuery {
    pub(crate) const fn new(parts: &'static [&'static str]) -> TagsQuery {
        TagsQuery { parts, compiled: OnceLock::new() }
    }

    pub(super) fn compiled(&self, language: LanguageId) -> &CompiledTagsQuery {
        self.compiled.get_or_init(|| {
            let query = Query::new(crate::lang::grammar(language), &self.parts.concat());
            let query = query.expect("the queries fit the grammars they are built with");
            let tag = |name: &&str| NAMES.iter().find(|(n, _)| n == name).map_or(QueryTag::Comment, |(_, tag)| *tag);
            let tags = query.capture_names().iter().map(tag).collect();
            CompiledTagsQuery { query, tags }
        })
    }
}
