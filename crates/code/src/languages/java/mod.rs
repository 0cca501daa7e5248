//! The front end for Java.
//!
//! Methods are not values in Java: their variables are in a separate scope from fields and nested types, so that
//! reading a name never finds a method and a constructor never hides its class.

mod builtins;
mod definitions;
mod expressions;
mod language;
mod parse;
mod syntax;
#[cfg(test)]
mod tests;
mod types;

use crate::builder::{Builder, FILE_SCOPE, ScopeId};
use crate::facts::{
    BindTarget, DefId, DefKind, ExprId, FileFacts, ImportKind, ROOT, SourceExpr, UNKNOWN, VarId, VarKind, flag,
};
use crate::languages::SourceFile;
use crate::tree::{self, NodeChildren, SyntaxTree, TreeNode, line, span};
pub(crate) use language::{Java, PLATFORM, builtin_call, outside_module};
pub use parse::parse;

pub(crate) fn read(source: SourceFile<'_>, tree: &SyntaxTree) -> FileFacts {
    let test_file = is_test_file(source.path);
    let mut reader = Reader { b: Builder::new(source, test_file), test_file, class: None, yields: vec![] };
    let root = tree.root();
    reader.block(root);
    reader.b.finish(root)
}

/// By the conventions of Maven, Gradle, JUnit and Failsafe.
fn is_test_file(path: &str) -> bool {
    let in_test_folder = path.starts_with("test/") || path.contains("/test/");
    // Below `src/main`, `test` is the name of a package.
    (in_test_folder && !format!("/{path}").contains("/src/main/"))
        || ["Test.java", "Tests.java", "IT.java"].iter().any(|end| path.ends_with(end))
}

struct Reader<'t> {
    b: Builder<'t>,
    test_file: bool,
    /// The innermost class being read.
    class: Option<Class<'t>>,
    /// The values of `yield`, for each switch being read.
    yields: Vec<Vec<ExprId>>,
}

crate::lang::front_end!();

struct Class<'t> {
    def: DefId,
    name: &'t str,
    /// Fields and nested types.
    fields: ScopeId,
    methods: ScopeId,
    interface: bool,
    test: bool,
    /// Has an explicit superclass, whose constructor its constructors call.
    extends: bool,
    /// An enum with an explicit constructor, which every constant calls.
    constructs: bool,
}

impl<'t> Class<'t> {
    fn new(def: DefId, name: &'t str) -> Class<'t> {
        Class {
            def,
            name,
            fields: FILE_SCOPE,
            methods: FILE_SCOPE,
            interface: false,
            test: false,
            extends: false,
            constructs: false,
        }
    }
}

impl<'t> Reader<'t> {
    fn inside<R>(&mut self, def: DefId, read: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.b.enter_def(def, false);
        let result = read(self);
        self.b.leave_def(before);
        result
    }

    fn scoped<R>(&mut self, read: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.b.open_scope();
        let result = read(self);
        self.b.close_scope(before);
        result
    }

    // --- statements ---

    fn block(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.all().filter(is_read) {
            self.visit(kid);
        }
    }

    /// Reads any node: a statement, a declaration, an expression, a type.
    fn visit(&mut self, node: TreeNode<'t>) {
        if statement_like(node.kind()) {
            self.nested(node);
        } else {
            self.used(node);
        }
    }

    fn nested(&mut self, node: TreeNode<'t>) {
        self.deeper((), |reader| reader.statement(node));
    }

    fn statement(&mut self, node: TreeNode<'t>) {
        match node.kind() {
            // Variables that a pattern declares in these are not visible after them.
            "expression_statement"
            | "block"
            | "for_statement"
            | "while_statement"
            | "try_with_resources_statement"
            | "catch_clause" => self.scoped(|reader| reader.block(node)),
            "local_variable_declaration" if self.b.scope == FILE_SCOPE => self.field(node),
            "local_variable_declaration" => self.locals(node),
            "return_statement" => {
                let kids = self.children(node);
                if let Some(value) = kids.named().next() {
                    let value = self.used(value);
                    self.b.returns(value, false);
                }
            }
            "yield_statement" => {
                let kids = self.children(node);
                if let Some(value) = kids.named().next() {
                    let value = self.used(value);
                    if let Some(yields) = self.yields.last_mut() {
                        yields.push(value);
                    }
                }
            }
            "if_statement" => self.branches(node),
            "enhanced_for_statement" => self.scoped(|reader| reader.for_each(node)),
            "resource" => self.resource(node),
            "catch_formal_parameter" => self.caught(node),
            "labeled_statement" => {
                let kids = self.children(node);
                for kid in kids.named().skip(1) {
                    self.visit(kid);
                }
            }
            "break_statement" | "continue_statement" => {}
            "class_declaration"
            | "record_declaration"
            | "enum_declaration"
            | "interface_declaration"
            | "annotation_type_declaration" => {
                self.type_declaration(node);
            }
            "method_declaration"
            | "constructor_declaration"
            | "compact_constructor_declaration"
            | "annotation_type_element_declaration" => self.method(node),
            "field_declaration" | "constant_declaration" => self.field(node),
            "enum_constant" => self.constant(node),
            "explicit_constructor_invocation" => self.constructor_call(node),
            "package_declaration" => self.package(node),
            "import_declaration" => self.import(node),
            "module_declaration" => self.module(node),
            "ERROR" => self.broken(node),
            _ => {
                self.value(node);
            }
        }
    }

    /// Reads chains of `else if` in a loop, because they may be longer than the allowed nesting.
    fn branches(&mut self, node: TreeNode<'t>) {
        let before = self.b.open_scope();
        let mut at = node;
        let mut leaves = false;
        loop {
            let kids = self.children(at);
            let mut next = None;
            // `if (!(o instanceof T t)) return;` declares `t` for the following statements.
            leaves |= kids.field("condition").is_some_and(|c| self.text(c).contains("!("));
            for (field, kid) in kids.with_fields() {
                if field == Some("alternative") && kid.kind() == "if_statement" {
                    next = Some(kid);
                } else if field == Some("consequence") {
                    self.known_to_be(kids.field("condition"), kid);
                } else if is_read(&kid) {
                    self.visit(kid);
                }
            }
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        if !leaves {
            self.b.close_scope(before);
        }
    }

    /// Reads a body that runs only if a type check succeeds: in it, the checked variables have that type.
    fn known_to_be(&mut self, condition: Option<TreeNode<'t>>, body: TreeNode<'t>) {
        let mut known = Vec::new();
        if let Some(condition) = condition {
            self.type_checks(condition, &mut known);
        }
        let before = self.b.open_scope();
        for (name, ty) in known {
            let ty = self.b.read_path(ty.split('.'));
            let name = self.b.name(&name);
            self.b.declare(name, VarKind::Local, Some(ty));
        }
        self.visit(body);
        self.b.close_scope(before);
    }

    /// `x instanceof T`, `x.getClass() == T.class`, `T.class.isInstance(x)`, and several joined by `&&`.
    fn type_checks(&mut self, node: TreeNode<'t>, known: &mut Vec<(String, String)>) {
        let mut check = |name: &str, ty: &str| {
            let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_.$".contains(c));
            if plain(name) && !name.contains('.') && name != "this" && plain(ty) {
                known.push((name.to_owned(), ty.to_owned()));
            }
        };
        let kids = self.children(node);
        match node.kind() {
            "parenthesized_expression" => {
                let inner: Vec<TreeNode<'t>> = kids.named().collect();
                inner.into_iter().for_each(|kid| self.type_checks(kid, known));
            }
            "binary_expression" if kids.has("&&") => {
                let inner: Vec<TreeNode<'t>> = kids.named().collect();
                if self.b.enter() {
                    inner.into_iter().for_each(|kid| self.type_checks(kid, known));
                    self.b.leave();
                }
            }
            "instanceof_expression" if kids.field("name").is_none() && kids.field("pattern").is_none() => {
                if let (Some(left), Some(right)) = (kids.field("left"), kids.field("right")) {
                    check(self.text(left), self.text(right));
                }
            }
            "binary_expression" if kids.has("==") => {
                let sides: Vec<&str> = kids.named().map(|kid| self.text(kid)).collect();
                if let [left, right] = sides[..]
                    && let (Some(name), Some(ty)) = (left.strip_suffix(".getClass()"), right.strip_suffix(".class"))
                {
                    check(name, ty);
                }
            }
            "method_invocation" => {
                let object = kids.field("object").map_or("", |n| self.text(n)).strip_suffix(".class");
                let argument = kids.field("arguments").map_or("", |n| self.text(n));
                let argument = argument.trim_start_matches('(').trim_end_matches(')');
                match (kids.field("name").map_or("", |n| self.text(n)), object) {
                    ("isInstance", Some(ty)) => check(argument, ty),
                    ("isAssignableFrom", Some(ty)) => check(argument.trim_end_matches(".getClass("), ty),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// `for` calls methods for an iterator and its next element, which a class may define.
    fn for_each(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        if let Some(modifiers) = kids.kind("modifiers") {
            self.value(modifiers);
        }
        let over = kids.field("value").map_or(UNKNOWN, |n| self.used(n));
        let mut element = UNKNOWN;
        if over != UNKNOWN {
            let at = span(node);
            let iterator = self.b.implicit(over, "iterator", &[], at);
            self.b.implicit(iterator, "hasNext", &[], at);
            let next = self.b.implicit(iterator, "next", &[], at);
            let any = self.b.expr(SourceExpr::Element(over));
            element = self.b.either(&[any, next]);
        }
        let ty = self.declared_type(kids.field("type"), kids.field("dimensions"));
        if let Some(name) = kids.field("name") {
            let name = self.text(name);
            let var = self.local(name, ty);
            self.b.bind(BindTarget::Var(var), element);
        }
        if let Some(body) = kids.field("body") {
            self.visit(body);
        }
    }

    /// Reads a resource of `try`, which is closed at the end.
    fn resource(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(name) = kids.field("name") else {
            for kid in kids.named() {
                let value = self.used(kid);
                if value != UNKNOWN {
                    self.b.implicit(value, "close", &[], span(kid));
                }
            }
            return;
        };
        if let Some(modifiers) = kids.kind("modifiers") {
            self.value(modifiers);
        }
        let ty = self.declared_type(kids.field("type"), kids.field("dimensions"));
        let value = kids.field("value").map_or(UNKNOWN, |n| self.used(n));
        let called = self.text(name);
        let var = self.local(called, ty);
        self.b.bind(BindTarget::Var(var), value);
        let opened = self.b.expr(SourceExpr::Var(var));
        self.b.implicit(opened, "close", &[], span(node));
    }

    fn caught(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let mut types = Vec::new();
        if let Some(caught) = kids.kind("catch_type") {
            let inner = self.children(caught);
            for kid in inner.named() {
                types.push(self.ty(kid));
            }
        }
        let ty = self.b.either(&types);
        if let Some(name) = kids.field("name") {
            let name = self.text(name);
            self.local(name, known(ty));
        }
    }

    fn locals(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        if let Some(modifiers) = kids.kind("modifiers") {
            self.value(modifiers);
        }
        let ty = self.declared_type(kids.field("type"), None);
        for declarator in kids.fields("declarator") {
            let inner = self.children(declarator);
            let value = inner.field("value").map_or(UNKNOWN, |n| self.scoped(|reader| reader.used(n)));
            let Some(name) = inner.field("name") else { continue };
            let ty = self.arrays(ty, inner.field("dimensions"));
            let name = self.text(name);
            let var = self.local(name, ty);
            self.b.bind(BindTarget::Var(var), value);
        }
        self.faulty_kids(&kids);
    }

    /// Declares a local variable. A second one of the same name in a block (patterns of several `if`s) is a new
    /// variable from here on.
    fn local(&mut self, name: &str, ty: Option<ExprId>) -> VarId {
        let name = self.b.name(name);
        if self.b.declared_in(self.b.scope, name).is_some() {
            self.b.open_scope();
        }
        self.b.declare(name, VarKind::Local, ty)
    }

    fn faulty_kids(&mut self, kids: &NodeChildren<'t>) {
        for kid in kids.all().filter(|k| k.is_error()) {
            self.nested(kid);
        }
    }

    // --- packages, imports, modules ---

    fn package(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            match kid.kind() {
                "identifier" | "scoped_identifier" => self.b.facts.package = path(self.text(kid)).into(),
                _ => {
                    self.value(kid);
                }
            }
        }
        let file = self.b.facts.def(ROOT).name;
        if self.b.facts.name(file) == "package-info.java" {
            self.b.def(ROOT).doc = tree::doc_above(node, self.b.text, is_doc);
        }
    }

    fn import(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(name) = kids.named().find(|k| matches!(k.kind(), "identifier" | "scoped_identifier")) else {
            return;
        };
        let whole = path(self.text(name));
        if kids.has("asterisk") {
            self.b.import(&whole, ImportKind::All, None, line(node));
            return;
        }
        let (module, symbol) = whole.rsplit_once('.').unwrap_or(("", &whole));
        let imported = self.b.name(symbol);
        self.b.import(module, ImportKind::Symbol(imported), Some(symbol), line(node));
    }

    /// `module-info.java`: only the types that it names are read.
    fn module(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.text(n));
        let def = self.b.add_def(name, DefKind::Module, span(node));
        let doc = tree::doc_above(node, self.b.text, is_doc);
        let d = self.b.def(def);
        d.doc = doc;
        d.signature = format!("module {name}").into();
        d.flags |= flag::EXPORTED;
        let Some(body) = kids.field("body") else { return };
        self.inside(def, |reader| {
            let kids = reader.children(body);
            for directive in kids.named() {
                if !matches!(directive.kind(), "uses_module_directive" | "provides_module_directive") {
                    continue;
                }
                let inner = reader.children(directive);
                for kid in inner.named() {
                    let named = path(reader.text(kid));
                    let named = reader.b.read_path(named.split('.'));
                    reader.b.uses(named, line(kid));
                }
            }
        });
    }
}

/// Whether a node is read: all named nodes except comments. Errors may be marked as extras too.
fn is_read(node: &TreeNode<'_>) -> bool {
    node.is_named() && (!node.is_extra() || node.is_error())
}

fn statement_like(kind: &str) -> bool {
    kind.ends_with("_statement")
        || kind.ends_with("_declaration")
        || matches!(
            kind,
            "block"
                | "ERROR"
                | "catch_clause"
                | "catch_formal_parameter"
                | "resource"
                | "enum_constant"
                | "explicit_constructor_invocation"
        )
}

/// A dotted name without white space and comments.
fn path(written: &str) -> String {
    let mut path = String::with_capacity(written.len());
    for part in written.split('.') {
        let part = part.split("/*").next().unwrap_or(part).trim();
        if !path.is_empty() && !part.is_empty() {
            path.push('.');
        }
        path.push_str(part);
    }
    path
}

fn is_doc(comment: &str) -> bool {
    comment.starts_with("/**") && comment.len() > 4
}

fn known(expr: ExprId) -> Option<ExprId> {
    (expr != UNKNOWN).then_some(expr)
}
