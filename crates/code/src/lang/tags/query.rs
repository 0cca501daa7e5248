//! Tags queries: the nodes of a language that define, refer, import or bind.
//!
//! They are the grammars' own `tags.scm`, extended to what those miss and reduced to the outer node: names are read
//! from the node's fields, because C and C++ nest them in declarators. With one step per pattern, matches arrive in the
//! order of the text, outer before inner; the reader depends on that order.

use crate::facts::Kind;
use crate::languages::LanguageId;
use std::sync::OnceLock;
use tree_sitter::Query;

/// The meaning of a node that a query captures.
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

/// The query of a language, compiled once per process.
pub(crate) struct Tags {
    parts: &'static [&'static str],
    compiled: OnceLock<Compiled>,
}

/// A compiled tags query.
pub(super) struct Compiled {
    pub query: Query,
    /// The tag of each capture, by index.
    pub tags: Vec<Tag>,
}

impl Tags {
    pub(crate) const fn new(parts: &'static [&'static str]) -> Tags {
        Tags { parts, compiled: OnceLock::new() }
    }

    pub(super) fn compiled(&self, language: LanguageId) -> &Compiled {
        self.compiled.get_or_init(|| {
            let query = Query::new(crate::lang::grammar(language), &self.parts.concat());
            let query = query.expect("the queries fit the grammars they are built with");
            let tag = |name: &&str| NAMES.iter().find(|(n, _)| n == name).map_or(Tag::Comment, |(_, tag)| *tag);
            let tags = query.capture_names().iter().map(tag).collect();
            Compiled { query, tags }
        })
    }
}
