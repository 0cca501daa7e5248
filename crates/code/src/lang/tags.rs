//! The front end for C, C++, C#, Ruby, PHP and Kotlin, which finds definitions and calls with tree-sitter tags queries.
//!
//! One pass of the query returns the relevant nodes in the order of the text. A definition opens a frame that closes
//! where its text ends, so the nodes in between are inside of it. Values are read on demand from the nodes themselves;
//! calls that were read that way are not recorded again.

mod define;
mod function;
mod query;
mod statement;
#[cfg(test)]
mod tests;
mod types;
mod value;
mod variable;

use crate::builder::{Builder, ScopeId};
use crate::facts::{DefId, Expr, ExprId, Facts, Kind, Name, ROOT, UNKNOWN, VarKind, Visibility, flag};
use crate::language::Language;
use crate::tree::{self, Node};
use query::Tag;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tree_sitter::{QueryCursor, StreamingIterator};

pub fn read(path: &str, text: &str, parsed: &tree_sitter::Tree, language: Language) -> Facts {
    let mut numbers: FxHashMap<usize, u32> = FxHashMap::default();
    let tree = &tree::grown(text, parsed, super::names(language), |node, at| {
        numbers.insert(node.id(), at);
    });
    let file = path.rsplit('/').next().unwrap_or(path);
    let mut reader = Reader {
        b: Builder::new(language, text, file),
        language,
        test_file: is_test_file(path, language),
        frames: vec![],
        made: FxHashMap::default(),
        elements: FxHashMap::default(),
        modules: FxHashMap::default(),
        bare: vec![],
        comments: SmallVec::new(),
        template: None,
        hidden: None,
        conditional: UNKNOWN,
    };
    if reader.test_file {
        reader.b.def(ROOT).flags |= flag::TEST;
    }
    let root = tree.root();
    let compiled = query::compiled(language);
    let mut cursor = QueryCursor::new();
    let mut found = cursor.matches(&compiled.query, parsed.root_node(), text.as_bytes());
    while let Some(found) = found.next() {
        for capture in found.captures() {
            if let Some(tag) = compiled.tags.get(capture.index as usize) {
                reader.visit(tree.node(numbers[&capture.node.id()]), *tag);
            }
        }
    }
    reader.leave_until(usize::MAX);
    reader.settle();
    if let Some((line, what)) = tree::first_fault(root) {
        reader.b.fault(line, &what);
    }
    reader.b.finish()
}

/// By the file name and folders that test runners look for.
fn is_test_file(path: &str, language: Language) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let by_name = match language {
        Language::Ruby => stem.ends_with("_test") || stem.ends_with("_spec") || stem.starts_with("test_"),
        Language::C | Language::Cpp => {
            matches!(stem, "test" | "tests")
                || stem.starts_with("test_")
                || ["_test", "_tests", "_unittest"].iter().any(|end| stem.ends_with(end))
        }
        _ => stem.ends_with("Test") || stem.ends_with("Tests"),
    };
    by_name
        || parts.any(|folder| {
            matches!(folder, "test" | "tests" | "spec" | "androidTest" | "commonTest" | "Tests")
                || (language == Language::CSharp && (folder.ends_with(".Tests") || folder.ends_with(".Test")))
        })
}

/// An open definition or scope around the current node.
struct Frame<'t> {
    /// End of its text.
    end: usize,
    before: (DefId, ScopeId),
    /// Visibility of members without an explicit one.
    visibility: Visibility,
    statics: bool,
    lambda: bool,
    /// Whether `return` in it returns from the lambda only.
    returns: bool,
    /// The result of the function: an expression body, Ruby's last statement.
    result: Option<Node<'t>>,
}

struct Reader<'t> {
    b: Builder<'t>,
    language: Language,
    test_file: bool,
    frames: Vec<Frame<'t>>,
    /// Calls and definitions that were read before the query reached them, by node.
    made: FxHashMap<u32, ExprId>,
    /// The values of the first parameter of a lambda, by node.
    elements: FxHashMap<u32, ExprId>,
    /// The scopes of modules: a module that is reopened sees its earlier names.
    modules: FxHashMap<(ScopeId, Name), ScopeId>,
    /// Called names without a receiver, with the scope and the definition that contain them.
    bare: Vec<(ExprId, ScopeId, DefId, Name)>,
    /// The comments directly above the next node.
    comments: SmallVec<[Node<'t>; 8]>,
    template: Option<Node<'t>>,
    /// Ruby's `private def …`: the end of its text, and the visibility of the method.
    hidden: Option<(usize, Visibility)>,
    /// The receiver of the current `?.`.
    conditional: ExprId,
}

super::front_end!();

impl<'t> Reader<'t> {
    fn visit(&mut self, node: Node<'t>, tag: Tag) {
        if tag == Tag::Comment {
            return self.comment(node);
        }
        self.leave_until(node.start_byte());
        match tag {
            Tag::Define(Kind::Module) => self.module(node),
            Tag::Define(Kind::Function) => self.function(node),
            Tag::Define(Kind::Field) => self.fields(node),
            Tag::Define(Kind::Type) => self.alias_type(node),
            Tag::Define(kind) => self.class(node, kind),
            Tag::Declaration => self.declaration(node),
            Tag::Template => self.template = Some(node),
            Tag::Package => self.package(node),
            Tag::Call => {
                self.call(node);
            }
            Tag::Name => {
                if !self.made.contains_key(&node.id()) && !self.is_local(self.text(node)) {
                    self.value(node);
                }
            }
            Tag::Import => self.import(node),
            Tag::Assign => {
                self.assignment(node);
            }
            Tag::Each => self.each(node),
            Tag::Caught => self.caught(node),
            Tag::Return => self.returned(node),
            Tag::Lambda => self.lambda(node),
            Tag::Statics => self.statics(node),
            Tag::Access => self.access(node),
            Tag::Use => self.mentioned(node),
            Tag::Alias => self.alias(node),
            Tag::Entry => self.b.def(ROOT).flags |= flag::ENTRY,
            Tag::Comment => {}
        }
    }

    fn first(&mut self, node: Node<'t>) -> Option<Node<'t>> {
        self.kids(node).named().next()
    }

    fn last(&mut self, node: Node<'t>) -> Option<Node<'t>> {
        self.kids(node).named().next_back()
    }

    fn owner(&self) -> Kind {
        self.b.facts.def(self.b.owner).kind
    }

    fn c_like(&self) -> bool {
        matches!(self.language, Language::C | Language::Cpp)
    }

    // --- frames ---

    fn open(&mut self, def: DefId, end: usize) -> &mut Frame<'t> {
        let before = self.b.enter_def(def, false);
        self.frame(end, before)
    }

    fn frame(&mut self, end: usize, before: (DefId, ScopeId)) -> &mut Frame<'t> {
        let at = self.frames.len();
        self.frames.push(Frame {
            end,
            before,
            visibility: Visibility::Public,
            statics: false,
            lambda: false,
            returns: false,
            result: None,
        });
        &mut self.frames[at]
    }

    /// A scope inside the current definition.
    fn open_scope(&mut self, end: usize) -> &mut Frame<'t> {
        let before = (self.b.owner, self.b.open_scope());
        self.frame(end, before)
    }

    fn leave_until(&mut self, at: usize) {
        while let Some(frame) = self.frames.last()
            && frame.end <= at
        {
            if let Some(result) = frame.result {
                let value = self.used(result);
                self.b.returns(value, false);
            }
            if let Some(frame) = self.frames.pop() {
                self.b.leave_def(frame.before);
            }
        }
    }

    // --- bare names ---

    /// A called name without a receiver. In languages with implicit receivers, `settle` and the resolver decide what it
    /// refers to.
    fn bare(&mut self, name: &str) -> ExprId {
        if self.c_like() || self.language == Language::Php {
            return self.b.read(name);
        }
        let name = self.b.name(name);
        let expr = self.b.expr(Expr::Free(name));
        self.bare.push((expr, self.b.scope, self.b.owner, name));
        expr
    }

    /// Resolves called names: to locals, imports, types and, outside of classes, functions of the file. A method may be
    /// inherited or overridden, so its name stays free.
    fn settle(&mut self) {
        for (expr, scope, written_in, name) in std::mem::take(&mut self.bare) {
            let Some(var) = self.b.find(scope, name) else { continue };
            let found = &self.b.facts.vars[var as usize];
            let owner = self.b.facts.def(found.owner).kind;
            let known = match found.what {
                VarKind::Def(def) => {
                    let kind = self.b.facts.def(def).kind;
                    kind.type_like() || owner.callable() || (owner == Kind::File && !self.in_type(written_in))
                }
                VarKind::Import(_) | VarKind::TypeParam => true,
                _ => owner.callable(),
            };
            if known {
                self.b.facts.exprs[expr as usize] = Expr::Var(var);
            }
        }
    }

    fn in_type(&self, def: DefId) -> bool {
        let mut at = def;
        while at != ROOT {
            let def = self.b.facts.def(at);
            if def.kind.type_like() || def.receiver.is_some() || def.kind == Kind::Module {
                return true;
            }
            at = def.parent;
        }
        false
    }

    /// Whether a name is a local or parameter here. In Ruby, any other bare name is a call.
    fn is_local(&mut self, name: &str) -> bool {
        let name = self.b.name(name);
        self.b.find(self.b.scope, name).is_some_and(|var| {
            let var = &self.b.facts.vars[var as usize];
            let owner = self.b.facts.def(var.owner).kind;
            !matches!(var.what, VarKind::Def(_)) && (owner.callable() || var.owner == self.b.owner)
        })
    }
}
