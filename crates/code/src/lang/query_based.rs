//! A front end that several languages share: it finds definitions and calls with tree-sitter tags queries.
//!
//! One pass of the query returns the relevant nodes in the order of the text. A definition opens a frame that closes
//! where its text ends, so the nodes in between are inside of it. Values are read on demand from the nodes themselves;
//! calls that were read that way are not recorded again.

mod define;
mod dialect;
mod function;
mod query;
mod statement;
#[cfg(test)]
mod tests;
mod types;
mod value;
mod variable;

use crate::builder::{Builder, ScopeId};
use crate::facts::{DefId, DefKind, ExprId, FileFacts, NameId, ROOT, UNKNOWN, VarKind, Visibility, flag};
use crate::lang::bare_names::BareNames;
use crate::languages::SourceFile;
use crate::tree::{self, TreeNode};
pub(crate) use define::{is_type, place};
pub(crate) use dialect::QueryDialect;
pub(crate) use function::FunctionHead;
pub(crate) use query::{QueryTag, TagsQuery};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tree_sitter::{QueryCursor, StreamingIterator};

/// The facts of a file: `dialect` is its syntax, `tags` finds the nodes in it.
pub(crate) fn read(
    source: SourceFile<'_>,
    dialect: &'static dyn QueryDialect,
    tags: &'static TagsQuery,
    test_file: bool,
) -> FileFacts {
    let SourceFile { text, language, .. } = source;
    let parsed = &super::tree(text, language);
    let mut numbers: FxHashMap<usize, u32> = FxHashMap::default();
    let tree = &tree::from_tree_sitter(text, parsed, super::names(language), |node, at| {
        numbers.insert(node.id(), at);
    });
    let mut reader = QueryReader {
        b: Builder::new(source, test_file),
        dialect,
        test_file,
        frames: vec![],
        made: FxHashMap::default(),
        elements: FxHashMap::default(),
        modules: FxHashMap::default(),
        bare: BareNames::default(),
        comments: SmallVec::new(),
        template: None,
        hidden: None,
        conditional: UNKNOWN,
    };
    let compiled = tags.compiled(language);
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
    std::mem::take(&mut reader.bare).settle(&mut reader.b);
    reader.b.finish(tree.root())
}

/// Whether a file is one of tests, by its name without the extension and by the folders that test runners look for.
pub(crate) fn is_test_file(path: &str, is_test_name: impl Fn(&str) -> bool) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    is_test_name(name.split_once('.').map_or(name, |(stem, _)| stem))
        || parts.any(|folder| matches!(folder, "test" | "tests" | "spec" | "androidTest" | "commonTest" | "Tests"))
}

/// Whether a file is one of tests, in languages where each class has a file: `ShopTest`.
pub(crate) fn is_test_class(stem: &str) -> bool {
    stem.ends_with("Test") || stem.ends_with("Tests")
}

/// An open definition or scope around the current node.
pub(crate) struct Frame<'t> {
    /// End of its text.
    end: usize,
    pub before: (DefId, ScopeId),
    /// Visibility of members without an explicit one.
    pub visibility: Visibility,
    pub statics: bool,
    pub lambda: bool,
    /// Whether `return` in it returns from the lambda only.
    pub returns: bool,
    /// The result of the function: an expression body, the last statement.
    pub result: Option<TreeNode<'t>>,
}

pub(crate) struct QueryReader<'t> {
    pub b: Builder<'t>,
    pub dialect: &'static dyn QueryDialect,
    pub test_file: bool,
    pub frames: Vec<Frame<'t>>,
    /// Calls and definitions that were read before the query reached them, by node.
    pub made: FxHashMap<u32, ExprId>,
    /// The values of the first parameter of a lambda, by node.
    elements: FxHashMap<u32, ExprId>,
    /// The scopes of modules: a module that is reopened sees its earlier names.
    modules: FxHashMap<(ScopeId, NameId), ScopeId>,
    /// Called names without a receiver.
    bare: BareNames,
    /// The comments directly above the next node.
    pub comments: SmallVec<[TreeNode<'t>; 8]>,
    template: Option<TreeNode<'t>>,
    /// A definition whose visibility is written around it: the end of its text, and the visibility.
    pub hidden: Option<(usize, Visibility)>,
    /// The receiver of the current `?.`.
    pub conditional: ExprId,
}

/// The parts of a lambda.
pub(crate) struct LambdaHead<'t> {
    pub parameters: Option<TreeNode<'t>>,
    /// The name of the parameter of a lambda without a list of them.
    pub implicit: Option<&'static str>,
    /// Whether `return` in it returns from the lambda, not from the enclosing function.
    pub returns: bool,
}

crate::lang::front_end!(QueryReader);

impl<'t> QueryReader<'t> {
    fn visit(&mut self, node: TreeNode<'t>, tag: QueryTag) {
        if tag == QueryTag::Comment {
            return self.comment(node);
        }
        self.leave_until(node.start_byte());
        if self.dialect.visit(self, node, tag) {
            return;
        }
        match tag {
            QueryTag::Define(DefKind::Module) => self.module(node),
            QueryTag::Define(DefKind::Function) => self.function(node),
            QueryTag::Define(DefKind::Type) => self.alias_type(node),
            QueryTag::Define(DefKind::Field) => {}
            QueryTag::Define(kind) => self.class(node, kind),
            QueryTag::Template => self.template = Some(node),
            QueryTag::Package => self.package(node),
            QueryTag::Call => {
                self.call(node);
            }
            QueryTag::Name => {
                if !self.made.contains_key(&node.id()) && !self.is_local(self.text(node)) {
                    self.value(node);
                }
            }
            QueryTag::Assign => {
                self.assignment(node);
            }
            QueryTag::Caught => self.caught(node),
            QueryTag::Return => self.returned(node),
            QueryTag::Lambda => self.lambda(node),
            QueryTag::Statics => self.statics(node),
            QueryTag::Access => self.access(node),
            QueryTag::Use => self.mentioned(node),
            QueryTag::Entry => self.b.def(ROOT).flags |= flag::ENTRY,
            // Each language reads its own.
            QueryTag::Declaration | QueryTag::Import | QueryTag::Each | QueryTag::Alias | QueryTag::Comment => {}
        }
    }

    pub fn first(&mut self, node: TreeNode<'t>) -> Option<TreeNode<'t>> {
        self.children(node).named().next()
    }

    pub fn last(&mut self, node: TreeNode<'t>) -> Option<TreeNode<'t>> {
        self.children(node).named().next_back()
    }

    pub fn owner(&self) -> DefKind {
        self.b.facts.def(self.b.owner).kind
    }

    // --- frames ---

    pub fn open(&mut self, def: DefId, end: usize) -> &mut Frame<'t> {
        let before = self.b.enter_def(def, false);
        self.frame(end, before)
    }

    pub fn frame(&mut self, end: usize, before: (DefId, ScopeId)) -> &mut Frame<'t> {
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
    pub fn open_scope(&mut self, end: usize) -> &mut Frame<'t> {
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

    /// A called name without a receiver. If it may be a member of an enclosing type, the resolver decides what it refers
    /// to.
    pub fn bare(&mut self, name: &str) -> ExprId {
        if self.dialect.calls_what_is_declared() {
            return self.b.read(name);
        }
        self.bare.read(&mut self.b, name)
    }

    /// Whether a name is a local or parameter here.
    pub fn is_local(&mut self, name: &str) -> bool {
        let name = self.b.name(name);
        self.b.find(self.b.scope, name).is_some_and(|var| {
            let var = &self.b.facts.vars[var];
            let owner = self.b.facts.def(var.owner).kind;
            !matches!(var.what, VarKind::Def(_)) && (owner.callable() || var.owner == self.b.owner)
        })
    }
}
