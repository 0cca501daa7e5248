//! Parses symbols of an index: `scheme manager package version descriptors`, or `local 12`.

use crate::keys;
use crate::languages::{LanguageId, OutsideModule};
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScipSymbol<'a> {
    pub manager: Cow<'a, str>,
    pub package: Cow<'a, str>,
    pub descriptors: Vec<Descriptor<'a>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor<'a> {
    pub name: Cow<'a, str>,
    pub suffix: DescriptorSuffix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorSuffix {
    Namespace,
    Type,
    Term,
    Method,
    TypeParameter,
    Parameter,
    Meta,
    Macro,
}

/// A symbol of another package, named as the resolver names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideSymbol {
    pub ecosystem: &'static str,
    pub package: String,
    /// Empty if the symbol is the package itself.
    pub name: String,
    /// Part of the language, without an import. Such symbols are not objects of the graph.
    pub builtin: bool,
}

pub fn is_local(symbol: &str) -> bool {
    symbol.starts_with("local ")
}

/// The kind of a symbol, from its last characters. `None` if the symbol is malformed.
pub fn suffix(symbol: &str) -> Option<DescriptorSuffix> {
    let mut ends = symbol.chars().rev();
    Some(match (ends.next()?, ends.next()) {
        ('/', _) => DescriptorSuffix::Namespace,
        ('#', _) => DescriptorSuffix::Type,
        ('.', Some(')')) => DescriptorSuffix::Method,
        ('.', _) => DescriptorSuffix::Term,
        (':', _) => DescriptorSuffix::Meta,
        ('!', _) => DescriptorSuffix::Macro,
        (']', _) => DescriptorSuffix::TypeParameter,
        (')', _) => DescriptorSuffix::Parameter,
        _ => return None,
    })
}

/// The part of a symbol that identifies its package or, if that has no name, its namespaces.
pub fn home(symbol: &str) -> Option<&str> {
    let (_, after_scheme) = word(symbol)?;
    let (_, after_manager) = word(after_scheme)?;
    let (package, after_package) = word(after_manager)?;
    let (_, descriptors) = word(after_package)?;
    let end = match unescaped(package) {
        name if name.is_empty() => {
            let mut rest = descriptors;
            while let Some((Descriptor { suffix: DescriptorSuffix::Namespace, .. }, more)) = descriptor(rest) {
                rest = more;
            }
            symbol.len() - rest.len()
        }
        _ => symbol.len() - after_package.len(),
    };
    // Without the scheme, because two indexers of one language may contribute to one index.
    symbol.get(symbol.len() - after_scheme.len()..end)
}

impl<'a> ScipSymbol<'a> {
    pub fn parse(text: &'a str) -> Option<ScipSymbol<'a>> {
        let (_, rest) = word(text)?;
        let (manager, rest) = word(rest)?;
        let (package, rest) = word(rest)?;
        let (_, mut rest) = word(rest)?;
        let mut descriptors = Vec::new();
        while !rest.is_empty() {
            let (found, more) = descriptor(rest)?;
            descriptors.push(found);
            rest = more;
        }
        Some(ScipSymbol { manager: unescaped(manager), package: unescaped(package), descriptors })
    }

    /// The name that the resolver uses, so that both refer to one object. `None` for parameters and for symbols without
    /// a package.
    pub fn outside(&self, language: LanguageId) -> Option<OutsideSymbol> {
        let last = self.descriptors.last()?;
        if matches!(last.suffix, DescriptorSuffix::Parameter | DescriptorSuffix::TypeParameter) {
            return None;
        }
        let managed = LanguageId::all().find(|known| known.get().package_managers().contains(&&*self.manager));
        let language = managed.unwrap_or(language).get();
        let spaces = self.descriptors.iter().take_while(|d| d.suffix == DescriptorSuffix::Namespace).count();
        let (spaces, named) = self.descriptors.split_at(spaces);
        let spaces: Vec<&str> = spaces.iter().map(|d| &*d.name).collect();
        let OutsideModule { package, mut names, builtin } = language.outside_module(&self.package, &spaces);
        names.extend(inner_names(named));
        let package = keys::clean(&package).into_owned();
        let name = keys::clean(&names.join(".")).into_owned();
        (!package.is_empty()).then_some(OutsideSymbol { ecosystem: language.ecosystem(), package, name, builtin })
    }
}

fn inner_names(descriptors: &[Descriptor<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut implementing = false;
    for Descriptor { name, suffix } in descriptors {
        match suffix {
            // `impl#[Type][Trait]method().`: named after the type.
            DescriptorSuffix::Type if name == "impl" => implementing = true,
            DescriptorSuffix::TypeParameter if implementing => {
                implementing = false;
                let bare = name.split('<').next().unwrap_or(name);
                names.push(bare.trim_start_matches(['&', '*']).trim().to_owned());
            }
            DescriptorSuffix::TypeParameter | DescriptorSuffix::Parameter | DescriptorSuffix::Meta => {}
            // A constructor call is a call of the class.
            DescriptorSuffix::Method if matches!(&**name, "<constructor>" | "<init>" | "__init__") => {}
            _ => {
                let bare = name.strip_prefix("<get>").or_else(|| name.strip_prefix("<set>")).unwrap_or(name);
                names.push(bare.to_owned());
            }
        }
    }
    names
}

/// The text up to the next single space, and the rest; two spaces are an escaped space.
fn word(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|b| *b == b' ')?;
        if bytes.get(at + 1) != Some(&b' ') {
            return Some((&text[..at], &text[at + 1..]));
        }
        at += 2;
    }
}

fn unescaped(word: &str) -> Cow<'_, str> {
    match word {
        "." => "".into(),
        word if word.contains("  ") => word.replace("  ", " ").into(),
        word => word.into(),
    }
}

fn descriptor(text: &str) -> Option<(Descriptor<'_>, &str)> {
    if let Some(inside) = text.strip_prefix('(') {
        let (name, rest) = name(inside)?;
        return Some((Descriptor { name, suffix: DescriptorSuffix::Parameter }, rest.strip_prefix(')')?));
    }
    if let Some(inside) = text.strip_prefix('[') {
        let (name, rest) = name(inside)?;
        return Some((Descriptor { name, suffix: DescriptorSuffix::TypeParameter }, rest.strip_prefix(']')?));
    }
    let (name, rest) = name(text)?;
    let mut behind = rest.chars();
    let suffix = match behind.next()? {
        '/' => DescriptorSuffix::Namespace,
        '#' => DescriptorSuffix::Type,
        '.' => DescriptorSuffix::Term,
        ':' => DescriptorSuffix::Meta,
        '!' => DescriptorSuffix::Macro,
        '(' => {
            let rest = rest.split_once(").")?.1;
            return Some((Descriptor { name, suffix: DescriptorSuffix::Method }, rest));
        }
        _ => return None,
    };
    Some((Descriptor { name, suffix }, behind.as_str()))
}

fn name(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let Some(inside) = text.strip_prefix('`') else {
        let end = text.find(['/', '#', '.', ':', '!', '(', ')', '[', ']', '`'])?;
        return Some((text[..end].into(), &text[end..]));
    };
    let mut at = 0;
    loop {
        at += inside[at..].find('`')?;
        if !inside[at + 1..].starts_with('`') {
            let name = &inside[..at];
            let name = if name.contains("``") { name.replace("``", "`").into() } else { name.into() };
            return Some((name, &inside[at + 1..]));
        }
        at += 2;
    }
}
