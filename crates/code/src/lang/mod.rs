//! The front ends: one file per language, each text to `Facts`.

/// What every front end does the same way, for its `Reader` with a builder `b` and a `cursor`.
macro_rules! front_end {
    () => {
        impl<'t> Reader<'t> {
            fn kids(&mut self, node: tree_sitter::Node<'t>) -> crate::tree::Kids<'t> {
                crate::tree::Kids::of(node, &mut self.cursor)
            }

            fn text(&self, node: tree_sitter::Node<'_>) -> &'t str {
                crate::tree::text(node, self.b.text)
            }

            /// Reads one level deeper, on a larger stack when needed; gives `otherwise` when nested too deeply.
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
mod ecma;
mod go;
mod java;
mod python;
mod rust;
mod tags;

use crate::facts::{Facts, Kind, ROOT};
use crate::language::Language;
use crate::summary;
use std::cell::RefCell;
use tree_sitter::Parser;

thread_local! {
    static PARSERS: RefCell<[Option<Parser>; Language::ALL.len()]> = const { RefCell::new([const { None }; Language::ALL.len()]) };
}

/// What a file says. `path` is relative to the root of the repository, with `/`.
pub fn parse(path: &str, text: &str, language: Language) -> Facts {
    let tree = tree(text, language);
    let mut facts = match language {
        Language::Python => python::read(path, text, &tree),
        Language::JavaScript | Language::TypeScript | Language::Tsx => ecma::read(path, text, &tree, language),
        Language::Go => go::read(path, text, &tree),
        Language::Rust => rust::read(path, text, &tree),
        Language::Java => java::read(path, text, &tree),
        _ => tags::read(path, text, &tree, language),
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

/// A file without a word about itself is told by what stands in it.
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

/// The syntax tree of a text; parsers are kept per thread.
pub fn tree(text: &str, language: Language) -> tree_sitter::Tree {
    PARSERS.with_borrow_mut(|parsers| {
        let parser = parsers[language as usize].get_or_insert_with(|| {
            let mut parser = Parser::new();
            parser.set_language(&grammar(language)).expect("grammars fit the library they are built with");
            parser
        });
        parser.parse(text, None).expect("no timeout and a language are set")
    })
}

pub(crate) fn grammar(language: Language) -> tree_sitter::Language {
    match language {
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
    }
}
