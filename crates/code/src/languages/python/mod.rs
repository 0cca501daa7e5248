//! The front end for Python: statements; the modules below read their parts.

mod builtins;
mod conditions;
mod definitions;
mod expressions;
mod imports;
mod language;
mod parse;
mod syntax;
#[cfg(test)]
mod tests;

pub(crate) use language::Python;
pub use parse::parse;

use crate::builder::{Builder, FILE_SCOPE};
use crate::facts::{CallKind, DefKind, ExprId, FileFacts, ROOT, SourceExpr, UNKNOWN, flag};
use crate::languages::SourceFile;
use crate::tree::{self, NodeChildren, SyntaxTree, TreeNode, line, span};

pub(crate) fn read(source: SourceFile<'_>, tree: &SyntaxTree) -> FileFacts {
    let test_file = is_test_file(source.path);
    let mut reader = Reader { b: Builder::new(source, test_file), test_file, optional: vec![] };
    let root = tree.root();
    let doc = reader.docstring(root);
    reader.b.def(ROOT).doc = doc;
    reader.block(root);
    reader.b.finish(root)
}

/// By the conventions of pytest, unittest and Django.
fn is_test_file(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    name.starts_with("test_")
        || name.ends_with("_test.py")
        || name == "tests.py"
        || name == "conftest.py"
        || in_test_folder(path)
}

/// Tests are in `tests`. A package named `test` further down may contain tools for tests, such as `django.test`.
fn in_test_folder(path: &str) -> bool {
    path.starts_with("test/") || path.rsplit('/').skip(1).any(|folder| folder == "tests")
}

struct Reader<'t> {
    b: Builder<'t>,
    test_file: bool,
    /// Optional parameters of the function being read that have not been assigned to.
    optional: Vec<&'t str>,
}

crate::lang::front_end!();

impl<'t> Reader<'t> {
    // --- statements ---

    fn block(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let before = self.b.when;
        for kid in kids.named() {
            self.statement(kid);
        }
        self.b.when = before;
    }

    fn statement(&mut self, node: TreeNode<'t>) {
        match node.kind() {
            "expression_statement" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.evaluate(kid);
                }
            }
            "function_definition" => {
                self.function(node, &[], node);
            }
            "class_definition" => {
                self.class(node, &[], node);
            }
            "decorated_definition" => self.decorated(node),
            "import_statement" => self.import(node),
            "import_from_statement" | "future_import_statement" => self.import_from(node),
            "return_statement" => {
                let kids = self.children(node);
                if let Some(value) = kids.named().next() {
                    let value = self.used(value);
                    self.b.returns(value, false);
                }
            }
            "for_statement" => {
                let kids = self.children(node);
                self.for_in(&kids, node);
                for part in ["body", "alternative"] {
                    if let Some(block) = kids.field(part) {
                        self.nested(block);
                    }
                }
            }
            "with_statement" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.nested(kid);
                }
            }
            "with_item" => {
                let kids = self.children(node);
                if let Some(value) = kids.field("value") {
                    self.with_item(value);
                }
            }
            "raise_statement" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    let raised = self.value(kid);
                    // `raise Error` calls the class as `raise Error()` does.
                    if matches!(kid.kind(), "identifier" | "attribute") {
                        let at = span(kid);
                        self.b.call(raised, CallKind::Implicit, &[], at);
                    }
                }
            }
            "global_statement" | "nonlocal_statement" => {
                let global = node.kind() == "global_statement";
                let kids = self.children(node);
                for kid in kids.named() {
                    let name = self.b.name(tree::text(kid, self.b.text));
                    let var = if global {
                        self.b.variable_in(FILE_SCOPE, name)
                    } else {
                        match self.b.find(self.b.scope, name) {
                            Some(var) => var,
                            None => continue,
                        }
                    };
                    self.b.alias(name, var);
                }
            }
            "if_statement" => {
                let kids = self.children(node);
                if self.b.owner == ROOT && kids.field("condition").is_some_and(|c| self.text(c).starts_with("__name__"))
                {
                    self.b.def(ROOT).flags |= flag::ENTRY;
                }
                self.branches(&kids);
            }
            "delete_statement" | "assert_statement" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.value(kid);
                }
            }
            "except_clause" | "except_group_clause" => self.except(node),
            "type_alias_statement" => {
                let kids = self.children(node);
                let mut named = kids.named();
                if let (Some(left), Some(right)) = (named.next(), named.next()) {
                    let ty = self.ty(right);
                    let name = self.text(left).to_owned();
                    let def = self.b.add_def(&name, DefKind::Type, span(node));
                    self.b.def(def).result = Some(ty);
                    let scope = self.b.scope;
                    self.b.declare_def(scope, def);
                }
            }
            "case_clause" => {
                let kids = self.children(node);
                for (field, kid) in kids.with_fields() {
                    match field {
                        Some("consequence") => self.nested(kid),
                        Some("guard") => {
                            self.value(kid);
                        }
                        _ if kid.is_named() => self.pattern_names(kid),
                        _ => {}
                    }
                }
            }
            "comment" | "pass_statement" | "break_statement" | "continue_statement" => {}
            // All other kinds are or contain blocks of statements: while, try, match, else, finally, with_clause.
            _ if statement_like(node.kind()) => {
                let kids = self.children(node);
                let before = self.b.when;
                for kid in kids.named() {
                    self.nested(kid);
                }
                self.b.when = before;
            }
            _ => {
                self.value(node);
            }
        }
    }

    fn nested(&mut self, node: TreeNode<'t>) {
        self.deeper((), |reader| reader.statement(node));
    }

    fn for_in(&mut self, kids: &NodeChildren<'t>, node: TreeNode<'t>) {
        let Some(right) = kids.field("right") else { return };
        let over = self.value(right);
        let element = self.iterate(over, node);
        if let Some(left) = kids.field("left") {
            self.assign(left, element);
        }
    }

    /// `for` calls methods for an iterator and its next element, which a class may define.
    fn iterate(&mut self, over: ExprId, node: TreeNode<'t>) -> ExprId {
        if over == UNKNOWN {
            return UNKNOWN;
        }
        let at = span(node);
        let iterator = self.b.implicit(over, "__iter__", &[], at);
        self.b.implicit(iterator, "__next__", &[], at);
        self.b.expr(SourceExpr::Element(over))
    }

    fn with_item(&mut self, node: TreeNode<'t>) {
        let (value, name) = if node.kind() == "as_pattern" {
            let kids = self.children(node);
            let mut named = kids.named();
            (named.next(), named.next())
        } else {
            (Some(node), None)
        };
        let Some(value) = value else { return };
        let at = span(value);
        let manager = self.value(value);
        let entered = self.b.implicit(manager, "__enter__", &[], at);
        self.b.implicit(manager, "__exit__", &[], at);
        if let Some(target) = name {
            let kids = self.children(target);
            if let Some(target) = kids.named().next() {
                self.assign(target, entered);
            } else {
                self.assign(target, entered);
            }
        }
    }

    fn except(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for (index, kid) in kids.named().enumerate() {
            match kid.kind() {
                "block" => self.nested(kid),
                "as_pattern" if index == 0 => {
                    let inner = self.children(kid);
                    let mut named = inner.named();
                    let ty = named.next().map_or(UNKNOWN, |n| self.value(n));
                    let caught = if ty == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::InstanceOf(ty)) };
                    if let Some(target) = named.next() {
                        let target_kids = self.children(target);
                        let target = target_kids.named().next().unwrap_or(target);
                        self.assign(target, caught);
                    }
                }
                _ => {
                    self.value(kid);
                }
            }
        }
    }

    fn pattern_names(&mut self, node: TreeNode<'t>) {
        self.deeper((), |reader| {
            if node.kind() == "class_pattern" {
                let kids = reader.children(node);
                if let Some(class) = kids.named().next() {
                    let class = reader.value(class);
                    reader.b.uses(class, line(node));
                }
            }
            if node.kind() == "case_pattern" || node.kind().ends_with("_pattern") {
                let kids = reader.children(node);
                for kid in kids.named() {
                    reader.pattern_names(kid);
                }
            }
        });
    }
}

fn statement_like(kind: &str) -> bool {
    kind.ends_with("_statement") || kind.ends_with("_clause") || matches!(kind, "block" | "ERROR" | "module")
}
