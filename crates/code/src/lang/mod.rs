//! The common part of all front ends, which convert text into `FileFacts` (`Language::read`).

/// The common part of all front ends, for a type with a builder `b`, which most call `Reader`.
macro_rules! front_end {
    () => {
        $crate::lang::front_end!(Reader);
    };
    ($reader:ident) => {
        impl<'t> $reader<'t> {
            pub(crate) fn children(&self, node: crate::tree::TreeNode<'t>) -> crate::tree::NodeChildren<'t> {
                node.children()
            }

            pub(crate) fn text(&self, node: crate::tree::TreeNode<'_>) -> &'t str {
                crate::tree::text(node, self.b.text)
            }

            /// Reads one level deeper, on a larger stack if needed; returns `otherwise` if the nesting is too deep.
            pub(crate) fn deeper<R>(&mut self, otherwise: R, read: impl FnOnce(&mut Self) -> R) -> R {
                if !self.b.enter() {
                    return otherwise;
                }
                let result = stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || read(self));
                self.b.leave();
                result
            }
        }
    };
}
pub(crate) use front_end;

pub(crate) mod bare_names;
pub(crate) mod compact;
pub mod descent;
#[cfg(test)]
pub(crate) mod mutations;
pub(crate) mod query_based;

use crate::convert::to_place;
use crate::facts::{DefKind, FileFacts, ROOT};
use crate::languages::{LanguageId, SourceFile};
use crate::summary;
use crate::tree::{GrammarNames, SyntaxTree};
use std::cell::RefCell;
use std::sync::{LazyLock, OnceLock};
use tree_sitter::Parser;

thread_local! {
    static PARSERS: RefCell<Vec<Option<Parser>>> = const { RefCell::new(vec![]) };
}

/// Extracts the facts of a file. `path` is relative to the root of the repository, with `/`.
pub fn parse(path: &str, text: &str, language: LanguageId) -> FileFacts {
    let mut facts = language.get().read(SourceFile { path, text, language });
    for index in facts.defs.ids() {
        let def = &facts.defs[index];
        if def.kind == DefKind::Lambda {
            continue;
        }
        let summary = summary::of(def, facts.name(def.name), text);
        let unit = text.get(def.span.start as usize..def.span.end as usize).unwrap_or("");
        let hash = hash(unit.as_bytes());
        let def = &mut facts.defs[index];
        def.summary = summary.into();
        def.hash = hash;
    }
    if facts.defs[ROOT].doc.is_none() {
        facts.defs[ROOT].summary = what_is_in_it(&facts).into();
    }
    facts
}

/// A summary for a file without a doc comment: the definitions in it.
fn what_is_in_it(facts: &FileFacts) -> String {
    let top = |d: &&crate::facts::Def| d.parent == ROOT && d.kind != DefKind::Lambda && d.kind != DefKind::File;
    let names: Vec<&str> = facts.defs.iter().skip(1).filter(top).map(|d| facts.name(d.name)).collect();
    let mut shown: Vec<&str> = Vec::new();
    for name in &names {
        if shown.len() < 6 && !shown.contains(name) && !name.starts_with('<') {
            shown.push(name);
        }
    }
    let more = if names.len() > shown.len() { ", …" } else { "" };
    match shown.is_empty() {
        true => format!("{} file", facts.language.name()),
        false => format!("{} file with {}{more}", facts.language.name(), shown.join(", ")),
    }
}

fn hash(bytes: &[u8]) -> u64 {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(bytes);
    u64::from_be_bytes(digest[..8].try_into().expect("a digest is longer than that"))
}

/// The syntax tree of a text by tree-sitter; parsers are kept per thread.
pub fn tree(text: &str, language: LanguageId) -> tree_sitter::Tree {
    PARSERS.with_borrow_mut(|parsers| {
        if parsers.len() <= language.index() {
            parsers.resize_with(LanguageId::all().len(), || None);
        }
        let parser = parsers[language.index()].get_or_insert_with(|| {
            let mut parser = Parser::new();
            parser.set_language(grammar(language)).expect("grammars fit the library they are built with");
            parser
        });
        parser.parse(text, None).expect("no timeout and a language are set")
    })
}

/// The tree that front ends read, made by tree-sitter.
pub(crate) fn patient_tree(source: SourceFile<'_>) -> SyntaxTree {
    crate::tree::from_tree_sitter(source.text, &tree(source.text, source.language), names(source.language), |_, _| ())
}

/// The names of the kinds and fields of a grammar.
pub(crate) fn names(language: LanguageId) -> &'static GrammarNames {
    static ALL: LazyLock<Vec<OnceLock<GrammarNames>>> = LazyLock::new(one_per_language);
    ALL[language.index()].get_or_init(|| {
        let grammar = grammar(language);
        assert!(grammar.field_count() < 256, "a node keeps its field in a byte");
        let kinds = (0..to_place(grammar.node_kind_count())).map(|kind| grammar.node_kind_for_id(kind).unwrap_or(""));
        let fields = (0..=to_place(grammar.field_count())).map(|field| grammar.field_name_for_id(field).unwrap_or(""));
        GrammarNames { kinds: kinds.collect(), fields: fields.collect() }
    })
}

pub(crate) fn grammar(language: LanguageId) -> &'static tree_sitter::Language {
    static ALL: LazyLock<Vec<OnceLock<tree_sitter::Language>>> = LazyLock::new(one_per_language);
    ALL[language.index()].get_or_init(|| language.get().grammar())
}

fn one_per_language<T>() -> Vec<OnceLock<T>> {
    LanguageId::all().map(|_| OnceLock::new()).collect()
}
