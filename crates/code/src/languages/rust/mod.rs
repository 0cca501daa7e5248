//! The front end for Rust.

mod attributes;
mod builtins;
mod imports;
mod items;
mod language;
mod macro_items;
mod modules;
mod parse;
mod patterns;
mod resolve;
mod syntax;
#[cfg(test)]
mod tests;
mod tokens;
mod types;
mod values;

use crate::builder::{Builder, FILE_SCOPE, ScopeId};
use crate::facts::{BindTarget, DefId, ExprId, FileFacts, NameId, ROOT, SourceExpr, UNKNOWN, VarId, VarKind};
use crate::ids::IdVec;
use crate::languages::SourceFile;
use crate::tree::{NodeChildren, SyntaxTree, TreeNode};
use attributes::PrecedingAttributes;
pub(crate) use language::Rust;
pub use parse::parse;
use rustc_hash::FxHashMap;

pub(crate) fn read(source: SourceFile<'_>, tree: &SyntaxTree) -> FileFacts {
    let path = source.path;
    let mut reader = Reader {
        b: Builder::new(source, is_test_file(path)),
        outer: vec![FILE_SCOPE].into(),
        items: FILE_SCOPE,
        heads: vec![],
        payloads: FxHashMap::default(),
        taken: vec![],
        this: None,
        this_type: UNKNOWN,
        loops: vec![],
        program: is_program(path),
        templates: 0,
    };
    let root = tree.root();
    let kids = reader.children(root);
    let doc = reader.doc_inside(&kids);
    reader.b.def(ROOT).doc = doc;
    reader.statements(&kids, Place::Free);
    reader.resolve_heads();
    reader.resolve_payloads();
    reader.b.finish(root)
}

/// By the folders where Cargo looks for tests, and by the usual names of `#[cfg(test)] mod tests;` files.
fn is_test_file(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    matches!(stem, "tests" | "test")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || parts.any(|folder| folder == "tests")
}

/// Whether `main` of this file is the entry point of a program.
fn is_program(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    matches!(name, "main.rs" | "build.rs") || parts.any(|folder| matches!(folder, "bin" | "examples" | "benches"))
}

/// The context of an item.
#[derive(Clone, Copy)]
enum Place {
    /// A file, a module or a block.
    Free,
    /// A trait, with the scope its members are declared in.
    Trait(ScopeId),
    Impl {
        receiver: ExprId,
        through: Option<ExprId>,
    },
    /// `extern "C" { … }`.
    Foreign,
}

/// A field of a variant of an enum: (enum, variant, field).
type Payload = (NameId, NameId, NameId);

struct Reader<'t> {
    b: Builder<'t>,
    /// The parent of every scope.
    outer: IdVec<ScopeId, ScopeId>,
    /// The scope in which items are declared: that of the block, not of the last `let` in it.
    items: ScopeId,
    /// Names that refer to a type, a module or a crate, never to a local variable: `store` in `store::open(store)`.
    heads: Vec<(ExprId, ScopeId)>,
    /// Types of the fields of variants of this file's enums.
    payloads: FxHashMap<Payload, ExprId>,
    /// Fields of variants that patterns bind; resolved at the end if the enum is in this file.
    taken: Vec<(ExprId, Payload)>,
    /// The name of the `Self` type.
    this: Option<NameId>,
    /// The type that `Self` refers to, in an `impl`.
    this_type: ExprId,
    /// The enclosing loops and labelled blocks, with the values of `break`.
    loops: Vec<(Option<&'t str>, Vec<ExprId>)>,
    program: bool,
    /// Nesting in bodies of `macro_rules!`: syntax there that looks like a definition is not one.
    templates: u32,
}

crate::lang::front_end!();

impl<'t> Reader<'t> {
    /// The text of a name; `r#type` is `type`.
    fn word(&self, node: TreeNode<'_>) -> &'t str {
        let text = self.text(node);
        text.strip_prefix("r#").unwrap_or(text)
    }

    // --- scopes ---

    fn open(&mut self) -> ScopeId {
        let before = self.b.open_scope();
        self.outer.push(before);
        before
    }

    fn inside<R>(&mut self, def: DefId, read: impl FnOnce(&mut Self) -> R) -> R {
        self.outer.push(self.b.scope);
        let before = self.b.enter_def(def, false);
        let items = std::mem::replace(&mut self.items, self.b.scope);
        let loops = std::mem::take(&mut self.loops);
        let result = read(self);
        self.loops = loops;
        self.items = items;
        self.b.leave_def(before);
        result
    }

    /// Reads items in the scope of the block: they are visible in all of it, also before a preceding `let`.
    fn at_items<R>(&mut self, read: impl FnOnce(&mut Self) -> R) -> R {
        let scope = std::mem::replace(&mut self.b.scope, self.items);
        let result = read(self);
        self.b.scope = scope;
        result
    }

    fn declare_def(&mut self, def: DefId) {
        let scope = self.b.scope;
        self.b.declare_def(scope, def);
    }

    /// A local variable of the innermost scope; both `x` in `A(x) | B(x)` are the same.
    fn local(&mut self, name: &str) -> VarId {
        let name = self.b.name(name);
        let scope = self.b.scope;
        self.b.variable_in(scope, name)
    }

    // --- names ---

    fn free(&mut self, name: &str) -> ExprId {
        let name = self.b.name(name);
        self.b.expr(SourceExpr::Free(name))
    }

    /// A name in the position of a type, a module or a crate.
    fn head(&mut self, name: &str) -> ExprId {
        match name {
            "Self" => return self.b.expr(SourceExpr::ThisType),
            "_" => return UNKNOWN,
            _ => {}
        }
        let expr = self.free(name);
        self.heads.push((expr, self.b.scope));
        expr
    }

    /// A name in the position of a value.
    fn named(&mut self, name: &str) -> ExprId {
        match name {
            "Self" => self.b.expr(SourceExpr::ThisType),
            "_" => UNKNOWN,
            _ => self.b.read(name),
        }
    }

    fn member(&mut self, of: ExprId, name: &str) -> ExprId {
        if of == UNKNOWN { UNKNOWN } else { self.b.member(of, name) }
    }

    fn awaited(&mut self, value: ExprId) -> ExprId {
        if value == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::Awaited(value)) }
    }

    fn element(&mut self, of: ExprId) -> ExprId {
        if of == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::Element(of)) }
    }

    fn instance(&mut self, ty: ExprId) -> ExprId {
        if ty == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::InstanceOf(ty)) }
    }

    fn resolve_heads(&mut self) {
        for (expr, scope) in std::mem::take(&mut self.heads) {
            let SourceExpr::Free(name) = self.b.facts.expr(expr) else { continue };
            let mut at = scope;
            loop {
                if let Some(var) = self.b.declared_in(at, name)
                    && let VarKind::Def(_) | VarKind::Import(_) | VarKind::TypeParam = self.b.facts.vars[var].what
                {
                    self.b.facts.exprs[expr] = SourceExpr::Var(var);
                    break;
                }
                if at == FILE_SCOPE {
                    break;
                }
                at = self.outer[at];
            }
        }
    }

    fn resolve_payloads(&mut self) {
        for (expr, payload) in std::mem::take(&mut self.taken) {
            if let Some(ty) = self.payloads.get(&payload) {
                self.b.facts.exprs[expr] = SourceExpr::InstanceOf(*ty);
            }
        }
    }

    // --- statements ---

    /// Reads the content of a file, module, block or impl; returns the last expression, if it is the value of the
    /// block.
    fn statements(&mut self, kids: &NodeChildren<'t>, place: Place) -> ExprId {
        let mut above = PrecedingAttributes::default();
        let mut tail = UNKNOWN;
        for kid in kids.all() {
            match kid.kind() {
                "line_comment" | "block_comment" => above.comment(self.text(kid)),
                "attribute_item" => above.attributes.push(kid),
                _ if !kid.is_named() => {}
                "inner_attribute_item" | "shebang" | "label" => above.clear(),
                _ => {
                    tail = self.deeper(UNKNOWN, |reader| reader.statement(kid, &above, place));
                    above.clear();
                }
            }
        }
        tail
    }

    fn statement(&mut self, node: TreeNode<'t>, above: &PrecedingAttributes<'t>, place: Place) -> ExprId {
        match node.kind() {
            "expression_statement" => {
                let kids = self.children(node);
                let Some(inner) = kids.all().find(|k| k.is_named() && !is_comment(*k)) else { return UNKNOWN };
                if kids.has(";") {
                    self.value(inner);
                    UNKNOWN
                } else {
                    self.used(inner)
                }
            }
            "let_declaration" => {
                self.let_declaration(node);
                UNKNOWN
            }
            "empty_statement" => UNKNOWN,
            "ERROR" => {
                let kids = self.children(node);
                self.statements(&kids, place);
                UNKNOWN
            }
            _ => {
                if self.at_items(|reader| reader.item(node, above, place)) {
                    UNKNOWN
                } else {
                    self.used(node)
                }
            }
        }
    }

    fn let_declaration(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let ty = kids.field("type").map(|ty| self.ty(ty)).filter(|ty| *ty != UNKNOWN);
        let value = kids.field("value").map_or(UNKNOWN, |value| self.used(value));
        if let Some(alternative) = kids.field("alternative") {
            self.value(alternative);
        }
        // Opens a scope that ends with the block: the variable is visible only after its `let`.
        self.open();
        let Some(pattern) = kids.field("pattern") else { return };
        match (pattern.kind(), ty) {
            ("identifier", Some(ty)) => {
                let name = self.word(pattern);
                let var = self.local(name);
                self.b.facts.vars[var].ty = Some(ty);
                self.b.bind(BindTarget::Var(var), value);
            }
            (_, Some(ty)) => {
                let declared = self.instance(ty);
                let value = self.b.either(&[value, declared]);
                self.pattern(pattern, value);
            }
            (_, None) => self.pattern(pattern, value),
        }
    }

    /// Reads a block in a new scope; returns the value of its last expression.
    fn block(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let label = kids.kind("label").map(|l| self.text(l));
        let before = self.open();
        let items = std::mem::replace(&mut self.items, self.b.scope);
        if label.is_some() {
            self.loops.push((label, vec![]));
        }
        let mut value = self.statements(&kids, Place::Free);
        if label.is_some()
            && let Some((_, mut values)) = self.loops.pop()
        {
            values.push(value);
            value = self.b.either(&values);
        }
        self.items = items;
        self.b.close_scope(before);
        value
    }
}

fn is_comment(node: TreeNode<'_>) -> bool {
    matches!(node.kind(), "line_comment" | "block_comment")
}

/// Types, variants and constants begin with a capital; variables and functions do not.
fn is_capital(name: &str) -> bool {
    name.starts_with(|c: char| c.is_uppercase())
}
