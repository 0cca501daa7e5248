//! The front end for JavaScript, TypeScript and TSX.

mod builtins;
mod calls;
mod classes;
mod comments;
mod functions;
mod language;
mod modules;
mod packages;
mod parse;
mod patterns;
mod symbols;
mod syntax;
#[cfg(test)]
mod tests;
mod types;
mod values;

use crate::builder::{Builder, ScopeId};
use crate::facts::{
    BindTarget, DefId, DefKind, ExprId, FileFacts, ROOT, SourceExpr, SourceSpan, UNKNOWN, VarId, Visibility, flag,
};
use crate::languages::SourceFile;
use crate::tree::{SyntaxTree, TreeNode, one_line, span};
pub(crate) use language::{JavaScript, Tsx, TypeScript};
pub use parse::parse;
use patterns::PatternBinding;
use smallvec::SmallVec;

pub(crate) fn read(source: SourceFile<'_>, tree: &SyntaxTree) -> FileFacts {
    let declared = [".d.ts", ".d.mts", ".d.cts"].iter().any(|end| source.path.ends_with(end));
    let mut reader = Reader {
        b: Builder::new(source, is_test_file(source.path)),
        flags: if declared { flag::DECLARED } else { 0 },
        members: None,
        exports: None,
        reads_arguments: false,
    };
    let root = tree.root();
    let mut flags = reader.flags;
    if source.text.starts_with("#!") {
        flags |= flag::ENTRY;
    }
    let doc = reader.doc_of_file(root);
    reader.b.def(ROOT).flags |= flags;
    reader.b.def(ROOT).doc = doc;
    reader.block(root);
    let mut facts = reader.b.finish(root);
    modules::mark_exported(&mut facts);
    facts
}

/// By the conventions of Jest, Mocha and Vitest.
fn is_test_file(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    name.contains(".test.")
        || name.contains(".spec.")
        || parts.any(|folder| matches!(folder, "__tests__" | "test" | "tests"))
}

struct Reader<'t> {
    b: Builder<'t>,
    /// Flags of every definition in the file: `DECLARED` in a `.d.ts`.
    flags: u32,
    /// The class or type being read, with the scope of its members.
    members: Option<(DefId, ScopeId)>,
    /// The variable for `exports` and `module.exports`, once one of them occurs.
    exports: Option<VarId>,
    /// Whether the function being read, or an arrow function in it, reads `arguments`.
    reads_arguments: bool,
}

crate::lang::front_end!();

/// Name, kind and position of a definition, as given by the syntax around it.
#[derive(Clone, Copy)]
struct Site<'t> {
    /// The name given by the context; if empty, the definition's own name, if any.
    name: &'t str,
    kind: DefKind,
    flags: u32,
    visibility: Visibility,
    /// The statement, property or member that contains the definition.
    span: SourceSpan,
    /// Start of the signature: after the decorators.
    head: u32,
}

impl<'t> Site<'t> {
    fn new(name: &'t str, kind: DefKind, flags: u32, whole: TreeNode<'t>) -> Site<'t> {
        let span = span(whole);
        Site { name, kind, flags, visibility: Visibility::Public, span, head: span.start }
    }
}

/// The syntax around a declaration: `export`, `declare`, decorators.
struct Around<'t> {
    whole: TreeNode<'t>,
    flags: u32,
    export: Exported,
    decorators: Vec<TreeNode<'t>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Exported {
    No,
    ByName,
    AsDefault,
}

impl<'t> Reader<'t> {
    /// Named children including errors, which the parser marks as extras like comments.
    fn read_through(&mut self, node: TreeNode<'t>) -> SmallVec<[TreeNode<'t>; 8]> {
        let kids = self.children(node);
        kids.all().filter(|kid| kid.is_named() && (!kid.is_extra() || kid.is_error())).collect()
    }

    fn inside<R>(&mut self, def: DefId, read: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.b.enter_def(def, false);
        let result = read(self);
        self.b.leave_def(before);
        result
    }

    // --- statements ---

    fn block(&mut self, node: TreeNode<'t>) {
        for kid in self.read_through(node) {
            self.nested(kid);
        }
    }

    fn nested(&mut self, node: TreeNode<'t>) {
        self.deeper((), |reader| reader.statement(node));
    }

    fn statement(&mut self, node: TreeNode<'t>) {
        match node.kind() {
            "expression_statement" => {
                for kid in self.read_through(node) {
                    if kid.kind() == "assignment_expression" {
                        self.assignment(kid, node);
                    } else {
                        self.value(kid);
                    }
                }
            }
            "import_statement" => self.import(node),
            "export_statement" => self.export(node),
            "statement_block" | "for_statement" | "switch_statement" => {
                let before = self.b.open_scope();
                self.block(node);
                self.b.close_scope(before);
            }
            "return_statement" => {
                let kids = self.children(node);
                if let Some(value) = kids.named().next() {
                    let value = self.used(value);
                    self.b.returns(value, false);
                }
            }
            "if_statement" => self.conditional(node),
            "for_in_statement" => self.for_in(node),
            "catch_clause" => {
                let kids = self.children(node);
                let before = self.b.open_scope();
                if let Some(ty) = kids.field("type") {
                    self.ty(ty);
                }
                if let Some(parameter) = kids.field("parameter") {
                    let scope = self.b.scope;
                    self.assign(parameter, UNKNOWN, PatternBinding::Declared(scope));
                }
                if let Some(body) = kids.field("body") {
                    self.block(body);
                }
                self.b.close_scope(before);
            }
            "comment" | "hash_bang_line" | "empty_statement" | "debugger_statement" | "break_statement"
            | "continue_statement" => {}
            kind if is_declaration(kind) => {
                let around = Around { whole: node, flags: self.flags, export: Exported::No, decorators: vec![] };
                self.declaration(node, &around);
            }
            // All other kinds contain statements and expressions: while, try, switch bodies, labels, errors.
            kind if is_statement(kind) => self.block(node),
            _ => {
                self.used(node);
            }
        }
    }

    /// `if … else if … else`: follows the chain in a loop, because it may be longer than the allowed nesting.
    fn conditional(&mut self, node: TreeNode<'t>) {
        let mut at = node;
        loop {
            let kids = self.children(at);
            let mut next = None;
            for (field, kid) in kids.with_fields() {
                if field == Some("alternative") {
                    let inner = self.children(kid);
                    next = inner.named().next();
                } else if kid.is_named() && !kid.is_extra() {
                    self.nested(kid);
                }
            }
            match next {
                Some(again) if again.kind() == "if_statement" => at = again,
                Some(last) => return self.nested(last),
                None => return,
            }
        }
    }

    fn for_in(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let before = self.b.open_scope();
        let over = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
        let element = if over == UNKNOWN {
            UNKNOWN
        } else if kids.field("operator").is_some_and(|o| o.kind() == "in") {
            self.b.expr(SourceExpr::KeysOf(over))
        } else {
            self.b.expr(SourceExpr::Element(over))
        };
        if let Some(left) = kids.field("left") {
            let leaf = match kids.field("kind").map(|k| k.kind()) {
                None => PatternBinding::Assigned,
                Some("var") => PatternBinding::Declared(self.b.function_scope()),
                Some(_) => PatternBinding::Declared(self.b.scope),
            };
            self.assign(left, element, leaf);
        }
        if let Some(body) = kids.field("body") {
            self.nested(body);
        }
        self.b.close_scope(before);
    }

    // --- declarations ---

    fn declaration(&mut self, node: TreeNode<'t>, around: &Around<'t>) {
        match node.kind() {
            "function_declaration" | "generator_function_declaration" | "function_signature" => {
                let mut site = Site::new("", DefKind::Function, around.flags, around.whole);
                if node.kind() == "function_signature" {
                    site.flags |= flag::DECLARED;
                }
                let def = self.function(node, site);
                self.declare(def, around);
            }
            "class_declaration" | "abstract_class_declaration" => {
                let site = Site::new("", DefKind::Class, around.flags, around.whole);
                let def = self.class(node, site, &around.decorators);
                self.declare(def, around);
            }
            "interface_declaration" | "type_alias_declaration" | "enum_declaration" => {
                let def = self.type_declaration(node, around);
                self.declare(def, around);
            }
            "lexical_declaration" | "variable_declaration" | "using_declaration" => self.variables(node, around),
            "module" | "internal_module" => self.namespace(node, around),
            "import_alias" => self.import_alias(node, around),
            "ambient_declaration" => {
                let around = Around {
                    whole: around.whole,
                    flags: around.flags | flag::DECLARED,
                    export: around.export,
                    decorators: around.decorators.clone(),
                };
                let kids = self.children(node);
                for kid in kids.named() {
                    match kid.kind() {
                        // `declare global`: its declarations are visible everywhere, including here.
                        "statement_block" => self.with_flags(flag::DECLARED, |reader| reader.block(kid)),
                        kind if is_declaration(kind) => self.declaration(kid, &around),
                        "property_identifier" => {}
                        _ => {
                            self.ty(kid);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Reads syntax in which every definition has these flags.
    fn with_flags(&mut self, flags: u32, read: impl FnOnce(&mut Self)) {
        let before = self.flags;
        self.flags |= flags;
        read(self);
        self.flags = before;
    }

    fn declare(&mut self, def: DefId, around: &Around<'t>) {
        let scope = self.b.scope;
        self.b.declare_def(scope, def);
        self.give(def, around);
    }

    fn variables(&mut self, node: TreeNode<'t>, around: &Around<'t>) {
        let kids = self.children(node);
        let scope = if node.kind() == "variable_declaration" { self.b.function_scope() } else { self.b.scope };
        let mut flags = around.flags;
        if kids.has("const") {
            flags |= flag::CONSTANT;
        }
        let alone = kids.named().filter(|k| k.kind() == "variable_declarator").count() < 2;
        let mut first = true;
        for kid in kids.named() {
            if kid.kind() == "variable_declarator" {
                let whole = if alone || first { around.whole } else { kid };
                self.variable(kid, whole, alone, scope, flags);
                first = false;
            } else {
                self.nested(kid);
            }
        }
    }

    /// One `name = value`. The doc comment is above `whole`; `alone` is true if `whole` contains only this declarator.
    fn variable(&mut self, node: TreeNode<'t>, whole: TreeNode<'t>, alone: bool, scope: ScopeId, flags: u32) {
        let kids = self.children(node);
        let Some(name) = kids.field("name") else { return };
        let module = self.is_module_scope(scope);
        let value = kids.field("value");
        if name.kind() != "identifier" {
            let ty = kids.field("type").map_or(UNKNOWN, |ty| self.ty(ty));
            let value = value.map_or(UNKNOWN, |v| self.used(v));
            let typed = if ty == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::InstanceOf(ty)) };
            let symbols = module && !self.is_import(value);
            let value = self.b.either(&[value, typed]);
            let leaf = match symbols || flags & flag::EXPORTED != 0 {
                true => PatternBinding::Symbol(scope, flags),
                false => PatternBinding::Declared(scope),
            };
            self.assign(name, value, leaf);
            return;
        }
        let text = self.text(name);
        let mut site = Site::new(text, DefKind::Function, flags & !flag::CONSTANT, if alone { whole } else { node });
        let ty = kids.field("type").map(|ty| self.ty(ty)).filter(|ty| *ty != UNKNOWN);
        let read = value.map_or(UNKNOWN, |v| self.known(v, site));
        let called = self.b.name(text);
        let var = match self.b.facts.expr(read) {
            SourceExpr::Def(def) if self.b.facts.def(def).name == called => {
                if !alone && self.b.facts.def(def).doc.is_none() {
                    let doc = self.doc_above(whole.start_byte());
                    self.b.def(def).doc = doc;
                }
                self.b.declare_def(scope, def)
            }
            _ => {
                if module && !self.is_import(read) {
                    site.flags = flags;
                    let def = self.variable_symbol(site, value);
                    self.b.def(def).result = ty;
                    if !alone && self.b.facts.def(def).doc.is_none() {
                        let doc = self.doc_above(whole.start_byte());
                        self.b.def(def).doc = doc;
                    }
                }
                let var = self.b.variable_in(scope, called);
                self.b.bind(BindTarget::Var(var), read);
                var
            }
        };
        if ty.is_some() {
            self.b.facts.vars[var].ty = ty;
        }
        if flags & flag::EXPORTED != 0 && self.b.owner == ROOT {
            let value = self.b.expr(SourceExpr::Var(var));
            self.b.export(text, value);
        }
    }

    /// Defines a symbol for a variable or field. A long value is not part of the signature.
    fn variable_symbol(&mut self, site: Site<'t>, value: Option<TreeNode<'t>>) -> DefId {
        let def = self.b.add_def(site.name, site.kind_of_variable(), site.span);
        let mut end = site.span.end as usize;
        if let Some(value) = value
            && (value.end_position().row > value.start_position().row || value.end_byte() - value.start_byte() > 80)
        {
            end = value.start_byte();
        }
        let signature = self.signature(site.head, end);
        let doc = self.doc_above(site.span.start as usize);
        let d = self.b.def(def);
        d.signature = signature.into();
        d.doc = doc;
        d.flags |= site.flags;
        d.visibility = site.visibility;
        def
    }

    fn signature(&self, from: u32, to: usize) -> String {
        let text = self.b.text.get(from as usize..to).unwrap_or("").trim_end();
        let text = text.trim_end_matches([';', ',']).trim_end();
        let text = text.strip_suffix("=>").or_else(|| text.strip_suffix('=')).unwrap_or(text);
        one_line(text)
    }

    /// Whether variables declared in the scope belong to the file or to a namespace.
    fn is_module_scope(&self, scope: ScopeId) -> bool {
        let owner = self.b.facts.def(self.b.owner).kind;
        matches!(owner, DefKind::File | DefKind::Module) && scope == self.b.function_scope()
    }

    /// Whether the value is `require("x")` or a member of it, which acts as an import.
    fn is_import(&self, value: ExprId) -> bool {
        match self.b.facts.expr(value) {
            SourceExpr::Import(_) => true,
            SourceExpr::Member(of, _) | SourceExpr::Awaited(of) => self.is_import(of),
            _ => false,
        }
    }
}

impl Site<'_> {
    fn kind_of_variable(&self) -> DefKind {
        if self.kind == DefKind::Method { DefKind::Field } else { DefKind::Variable }
    }
}

fn is_declaration(kind: &str) -> bool {
    matches!(
        kind,
        "function_declaration"
            | "generator_function_declaration"
            | "function_signature"
            | "class_declaration"
            | "abstract_class_declaration"
            | "lexical_declaration"
            | "variable_declaration"
            | "using_declaration"
            | "interface_declaration"
            | "type_alias_declaration"
            | "enum_declaration"
            | "module"
            | "internal_module"
            | "import_alias"
            | "ambient_declaration"
    )
}

fn is_statement(kind: &str) -> bool {
    kind.ends_with("_statement")
        || kind.ends_with("_clause")
        || matches!(kind, "statement_block" | "switch_body" | "switch_case" | "switch_default" | "program" | "ERROR")
}
