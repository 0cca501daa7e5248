//! What ranking code needs to know of a view: files and their roles, calls, and the symbols that a task names.

use super::TextIndexes;
use crate::names::NamePattern;
use crate::view::ViewGraph;
use crate::view::symbols::{LinkDirection, SymbolKind, SymbolRelation, Symbols, keys};
use lukasa_code::LanguageId;
use lukasa_code::file_role::FileRole;
use lukasa_graph::Node;
use lukasa_search::pipeline::CodeGraph;
use lukasa_search::question::{QualifiedName, TaskText};
use lukasa_search::recipes::SYMBOLS;
use lukasa_search::tokens;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;

/// Maximum number of files that are searched for a symbol with a name; a name in more files distinguishes nothing.
const FILES_WITH_NAME: usize = 64;

/// The code of a view, as a task sees it.
pub struct TaskCode<'a> {
    symbols: Symbols<'a>,
    texts: &'a TextIndexes,
    /// In the order of nodes.
    named: Vec<(Node, f64)>,
    /// Endings of paths that the task mentions.
    paths: Vec<String>,
    /// The roles that the task is about.
    wanted: FxHashSet<FileRole>,
    roles: RefCell<FxHashMap<Node, FileRole>>,
}

impl<'a> TaskCode<'a> {
    pub fn new(look: &'a ViewGraph, texts: &'a TextIndexes, task: &TaskText) -> TaskCode<'a> {
        let symbols = Symbols::new(look);
        let qualified = task.qualified();
        let named = named(&symbols, texts, task, &qualified);
        let paths =
            qualified.into_iter().filter(|name| name.is_path).map(|name| name.text.replace('\\', "/")).collect();
        TaskCode { symbols, texts, named, paths, wanted: wanted(task), roles: RefCell::default() }
    }

    /// What the file of a symbol is for.
    fn role_of(&self, node: Node) -> FileRole {
        let Some(file) = self.texts.file(node) else { return FileRole::Source };
        *self.roles.borrow_mut().entry(file).or_insert_with(|| {
            let path = self.symbols.key(file);
            match FileRole::of(&path, LanguageId::of(&path, "").is_some()) {
                FileRole::Source if self.symbols.is_test(file) => FileRole::Test,
                role => role,
            }
        })
    }

    fn neighbours(&self, node: Node, way: LinkDirection, each: &mut dyn FnMut(Node)) {
        let linked = self.symbols.linked(node, SymbolRelation::Calls, way);
        linked.take(SYMBOLS.most_calls).for_each(|(other, _)| each(other));
    }
}

impl CodeGraph for TaskCode<'_> {
    fn file(&self, node: Node) -> Option<Node> {
        self.texts.file(node)
    }

    fn callers(&self, node: Node, each: &mut dyn FnMut(Node)) {
        self.neighbours(node, LinkDirection::In, each);
    }

    fn callees(&self, node: Node, each: &mut dyn FnMut(Node)) {
        self.neighbours(node, LinkDirection::Out, each);
    }

    fn named(&self) -> &[(Node, f64)] {
        &self.named
    }

    fn in_path(&self, file: Node) -> f64 {
        if self.paths.is_empty() {
            return 0.0;
        }
        let key = self.symbols.key(file);
        let ends = |path: &str, end: &str| {
            path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        // A stack frame names a file by its absolute path, which ends with the path in the repository.
        let is_meant = |path: &String| ends(&key, path) || (key.contains('/') && ends(path, &key));
        if self.paths.iter().any(is_meant) { SYMBOLS.in_path } else { 0.0 }
    }

    fn role(&self, node: Node) -> f64 {
        let role = match self.role_of(node) {
            FileRole::Source if self.symbols.is_test(node) => FileRole::Test,
            role => role,
        };
        if self.wanted.contains(&role) {
            return 0.0;
        }
        match role {
            FileRole::Source => 0.0,
            FileRole::Test => SYMBOLS.test,
            FileRole::Example => SYMBOLS.example,
            FileRole::Documentation => SYMBOLS.documentation,
            FileRole::Configuration | FileRole::Translation | FileRole::Generated | FileRole::Data => {
                SYMBOLS.other_role
            }
        }
    }

    fn likely(&self, node: Node) -> f64 {
        match self.symbols.kind(node) {
            Some(SymbolKind::Variable) => SYMBOLS.variable,
            Some(SymbolKind::File) => SYMBOLS.outside,
            Some(SymbolKind::Class | SymbolKind::Interface | SymbolKind::Type | SymbolKind::Module)
                if self.named.binary_search_by_key(&node, |(named, _)| *named).is_err() =>
            {
                SYMBOLS.unnamed_type
            }
            _ => 1.0,
        }
    }
}

/// Words of a title that show which roles a task is about.
const ABOUT: &[(FileRole, &[&str])] = &[
    (FileRole::Test, &["test"]),
    (FileRole::Documentation, &["doc", "document", "documentation", "readme", "changelog", "typo"]),
    (FileRole::Example, &["example", "sample", "demo", "benchmark", "tutorial"]),
    (FileRole::Configuration, &["config", "configuration", "workflow", "makefile", "dockerfile", "yaml", "toml", "ci"]),
    (FileRole::Translation, &["translation", "translat", "locale", "i18n", "l10n"]),
];

/// The roles that a task is about, by the words of its title.
fn wanted(task: &TaskText) -> FxHashSet<FileRole> {
    let words = tokens::list(&task.title);
    let is_about = |about: &&[&str]| words.iter().any(|word| about.contains(&word.as_str()));
    ABOUT.iter().filter(|(_, about)| is_about(about)).map(|(role, _)| *role).collect()
}

/// The symbols whose names a task mentions, with the weight of that, in the order of nodes.
fn named(symbols: &Symbols<'_>, texts: &TextIndexes, task: &TaskText, qualified: &[QualifiedName]) -> Vec<(Node, f64)> {
    let mut found: FxHashMap<Node, f64> = FxHashMap::default();
    let patterns: Vec<NamePattern<'_>> =
        qualified.iter().filter(|name| !name.is_path).map(|name| NamePattern::new(&name.text)).collect();
    let called = task.called();
    let mut names: Vec<String> = task.names().into_iter().map(|(name, _)| name).collect();
    names.extend(called.iter().cloned());
    names.sort();
    names.dedup();
    for name in names {
        let namesakes = namesakes(symbols, texts, &name);
        let mut each = SYMBOLS.named * (SYMBOLS.namesakes / namesakes.len().max(1) as f64).ln_1p();
        if called.binary_search(&name).is_ok() {
            each += SYMBOLS.called;
        }
        for node in namesakes {
            let key = symbols.key(node);
            let is_qualified = patterns.iter().any(|pattern| pattern.code(&key).is_some());
            let weight = each + if is_qualified { SYMBOLS.qualified } else { 0.0 };
            let best = found.entry(node).or_default();
            *best = best.max(weight);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(node, _)| *node);
    found
}

/// The functions and types of a name; none if too many files define it.
fn namesakes(symbols: &Symbols<'_>, texts: &TextIndexes, name: &str) -> Vec<Node> {
    let files = texts.defined.having(name);
    if files.len() > FILES_WITH_NAME {
        return vec![];
    }
    let mut all = Vec::new();
    for file in files {
        for member in symbols.whole(file, usize::MAX).0 {
            let is_data = matches!(symbols.kind(member), None | Some(SymbolKind::Variable | SymbolKind::File));
            let is_meant = || {
                let key = symbols.key(member);
                let own = keys::name(&key).trim_matches(['_', '$', '#']);
                if own.is_ascii() { own.eq_ignore_ascii_case(name) } else { tokens::folded(own) == name }
            };
            if !is_data && is_meant() {
                all.push(member);
            }
        }
    }
    all
}
