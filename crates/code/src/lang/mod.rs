//! The front ends: one module per language, each converts text into `Facts`.

/// The common part of all front ends, for a `Reader` with a builder `b`.
macro_rules! front_end {
    () => {
        impl<'t> Reader<'t> {
            fn kids(&self, node: crate::tree::Node<'t>) -> crate::tree::Kids<'t> {
                node.kids()
            }

            fn text(&self, node: crate::tree::Node<'_>) -> &'t str {
                crate::tree::text(node, self.b.text)
            }

            /// Reads one level deeper, on a larger stack if needed; returns `otherwise` if the nesting is too deep.
            fn deeper<R>(&mut self, otherwise: R, read: impl FnOnce(&mut Self) -> R) -> R {
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
use front_end;

#[cfg(test)]
mod compact;
#[cfg(test)]
mod damage;
mod descent;
mod ecma;
mod go;
mod java;
mod python;
mod rust;
mod source;
mod tags;

use crate::facts::{Facts, Kind, ROOT};
use crate::language::Language;
use crate::summary;
use crate::tree::Names;
use std::cell::RefCell;
use std::sync::OnceLock;
use tree_sitter::Parser;

thread_local! {
    static PARSERS: RefCell<[Option<Parser>; Language::ALL.len()]> = const { RefCell::new([const { None }; Language::ALL.len()]) };
}

/// Extracts the facts of a file. `path` is relative to the root of the repository, with `/`.
pub fn parse(path: &str, text: &str, language: Language) -> Facts {
    let grown = || crate::tree::grown(text, &tree(text, language), names(language), |_, _| ());
    let mut facts = match language {
        Language::Python => python::read(path, text, &python::parse(text).unwrap_or_else(grown)),
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            ecma::read(path, text, &ecma::parse(text, language).unwrap_or_else(grown), language)
        }
        Language::Go => go::read(path, text, &go::parse(text).unwrap_or_else(grown)),
        Language::Rust => rust::read(path, text, &rust::parse(text).unwrap_or_else(grown)),
        Language::Java => java::read(path, text, &java::parse(text).unwrap_or_else(grown)),
        _ => tags::read(path, text, &tree(text, language), language),
    };
    for index in 0..facts.defs.len() {
        let def = &facts.defs[index];
        if def.kind == Kind::Lambda {
            continue;
        }
        let summary = summary::of(def, facts.name(def.name), text);
        let unit = text.get(def.span.start as usize..def.span.end as usize).unwrap_or("");
        let hash = hash(unit.as_bytes());
        let def = &mut facts.defs[index];
        def.summary = summary.into();
        def.hash = hash;
    }
    if facts.defs[0].doc.is_none() {
        facts.defs[0].summary = what_is_in_it(&facts).into();
    }
    facts
}

/// A summary for a file without a doc comment: the definitions in it.
fn what_is_in_it(facts: &Facts) -> String {
    let top = |d: &&crate::facts::Def| d.parent == ROOT && d.kind != Kind::Lambda && d.kind != Kind::File;
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
pub fn tree(text: &str, language: Language) -> tree_sitter::Tree {
    PARSERS.with_borrow_mut(|parsers| {
        let parser = parsers[language as usize].get_or_insert_with(|| {
            let mut parser = Parser::new();
            parser.set_language(grammar(language)).expect("grammars fit the library they are built with");
            parser
        });
        parser.parse(text, None).expect("no timeout and a language are set")
    })
}

/// The names of the kinds and fields of a grammar.
fn names(language: Language) -> &'static Names {
    static ALL: [OnceLock<Names>; Language::ALL.len()] = [const { OnceLock::new() }; Language::ALL.len()];
    ALL[language as usize].get_or_init(|| {
        let grammar = grammar(language);
        assert!(grammar.field_count() < 256, "a node keeps its field in a byte");
        let kinds = (0..grammar.node_kind_count()).map(|kind| grammar.node_kind_for_id(kind as u16).unwrap_or(""));
        let fields = (0..=grammar.field_count()).map(|field| grammar.field_name_for_id(field as u16).unwrap_or(""));
        Names { kinds: kinds.collect(), fields: fields.collect() }
    })
}

pub(crate) fn grammar(language: Language) -> &'static tree_sitter::Language {
    static ALL: [OnceLock<tree_sitter::Language>; Language::ALL.len()] =
        [const { OnceLock::new() }; Language::ALL.len()];
    ALL[language as usize].get_or_init(|| match language {
        Language::Python => tree_sitter_python::LANGUAGE.into(),
        Language::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
        Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        Language::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
        Language::Go => tree_sitter_go::LANGUAGE.into(),
        Language::Rust => tree_sitter_rust::LANGUAGE.into(),
        Language::Java => tree_sitter_java::LANGUAGE.into(),
        Language::C => tree_sitter_c::LANGUAGE.into(),
        Language::Cpp => tree_sitter_cpp::LANGUAGE.into(),
        Language::CSharp => tree_sitter_c_sharp::LANGUAGE.into(),
        Language::Ruby => tree_sitter_ruby::LANGUAGE.into(),
        Language::Php => tree_sitter_php::LANGUAGE_PHP.into(),
        Language::Kotlin => tree_sitter_kotlin_ng::LANGUAGE.into(),
    })
}
