//! Imports and exports: ECMAScript modules, CommonJS, and TypeScript's additions.

use super::{Around, Exported, Reader, Site, is_declaration};
use crate::builder::FILE_SCOPE;
use crate::facts::{
    BindTarget, CallKind, DefId, DefKind, ExprId, FileFacts, ImportId, ImportKind, ItemKey, ListKind, NameId, ROOT,
    SourceExpr, UNKNOWN, VarId, VarKind, Visibility, flag,
};
use crate::tree::{TreeNode, line, span};
use rustc_hash::FxHashSet;

impl<'t> Reader<'t> {
    // --- imports ---

    pub(super) fn import(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let types = kids.has("type") || kids.has("typeof");
        if let Some(clause) = kids.kind("import_require_clause") {
            let inner = self.children(clause);
            let module = inner.field("source").map_or("", |s| self.inner_text(s));
            let name = inner.kind("identifier").map(|n| self.text(n));
            let import = self.b.import(module, ImportKind::Module, name, line(node));
            self.mark_types(import, types);
            return;
        }
        let Some(source) = kids.field("source") else { return };
        let module = self.inner_text(source);
        let Some(clause) = kids.kind("import_clause") else {
            self.b.import(module, ImportKind::Nothing, None, line(node));
            return;
        };
        let inner = self.children(clause);
        for kid in inner.named() {
            match kid.kind() {
                "identifier" => {
                    let default = self.b.name("default");
                    let called = self.text(kid);
                    let import = self.b.import(module, ImportKind::Symbol(default), Some(called), line(kid));
                    self.mark_types(import, types);
                }
                "namespace_import" => {
                    let star = self.children(kid);
                    let called = star.named().next().map(|n| self.text(n));
                    let import = self.b.import(module, ImportKind::Module, called, line(kid));
                    self.mark_types(import, types);
                }
                "named_imports" => {
                    let specifiers = self.children(kid);
                    for specifier in specifiers.named() {
                        let parts = self.children(specifier);
                        let Some(name) = parts.field("name").map(|n| self.inner_text(n)) else { continue };
                        let called = parts.field("alias").map_or(name, |n| self.text(n));
                        let symbol = self.b.name(name);
                        let import = self.b.import(module, ImportKind::Symbol(symbol), Some(called), line(specifier));
                        self.mark_types(import, types || parts.has("type") || parts.has("typeof"));
                    }
                }
                _ => {}
            }
        }
    }

    fn mark_types(&mut self, import: ImportId, types: bool) {
        self.b.facts.imports[import].type_only = types;
    }

    /// `import A = B.C`: an alias of a member of a namespace.
    pub(super) fn import_alias(&mut self, node: TreeNode<'t>, around: &Around<'t>) {
        let kids = self.children(node);
        let mut named = kids.named();
        let (Some(name), Some(path)) = (named.next(), named.next()) else { return };
        let value = self.b.read_path(self.text(path).split('.').map(str::trim));
        self.b.uses(value, line(path));
        let text = self.text(name);
        let called = self.b.name(text);
        let scope = self.b.scope;
        let var = self.b.variable_in(scope, called);
        self.b.bind(BindTarget::Var(var), value);
        if around.export != Exported::No && self.b.owner == ROOT {
            self.b.export(text, value);
        }
    }

    /// `require("x")` and `import("x")` with a constant.
    pub(super) fn import_by_call(&mut self, module: &str, at: TreeNode<'t>) -> ExprId {
        let import = self.b.import(module, ImportKind::Module, None, line(at));
        self.b.expr(SourceExpr::Import(import))
    }

    // --- exports ---

    pub(super) fn export(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let default = kids.has("default");
        let clause = kids.kind("export_clause");
        if let Some(source) = kids.field("source") {
            let module = self.inner_text(source);
            let types = kids.has("type");
            if let Some(clause) = clause {
                let inner = self.children(clause);
                for specifier in inner.named() {
                    let parts = self.children(specifier);
                    let Some(name) = parts.field("name").map(|n| self.inner_text(n)) else { continue };
                    let given = parts.field("alias").map_or(name, |n| self.inner_text(n));
                    let symbol = self.b.name(name);
                    let types = types || parts.has("type");
                    self.reexport(module, ImportKind::Symbol(symbol), given, types, specifier);
                }
            } else if let Some(star) = kids.kind("namespace_export") {
                let inner = self.children(star);
                let given = inner.all().next_back().map_or("", |n| self.inner_text(n));
                self.reexport(module, ImportKind::Module, given, types, node);
            } else {
                self.reexport(module, ImportKind::All, "*", types, node);
            }
            return;
        }
        if let Some(clause) = clause {
            let inner = self.children(clause);
            for specifier in inner.named() {
                let parts = self.children(specifier);
                let Some(name) = parts.field("name").map(|n| self.inner_text(n)) else { continue };
                let given = parts.field("alias").map_or(name, |n| self.inner_text(n));
                let value = self.b.read(name);
                if self.b.owner == ROOT {
                    self.b.export(given, value);
                }
            }
            return;
        }
        let around = Around {
            whole: node,
            flags: self.flags | flag::EXPORTED,
            export: if default { Exported::AsDefault } else { Exported::ByName },
            decorators: kids.fields("decorator").collect(),
        };
        if let Some(declaration) = kids.field("declaration") {
            return self.deeper((), |reader| reader.declaration(declaration, &around));
        }
        let whole = kids.has("=");
        for kid in kids.named() {
            match kid.kind() {
                "decorator" => {}
                kind if is_declaration(kind) => self.declaration(kid, &around),
                _ if default || whole => {
                    let given = if default { "default" } else { "=" };
                    let named = if default { "default" } else { "exports" };
                    let value = self.known(kid, self.own_or(kid, named, node));
                    if self.b.owner == ROOT {
                        self.b.export(given, value);
                    }
                    if let (SourceExpr::Def(def), Some(_)) = (self.b.facts.expr(value), around.decorators.first()) {
                        self.decorate(def, &around.decorators);
                    }
                    if whole {
                        self.export_properties(value);
                    }
                }
                _ => self.nested(kid),
            }
        }
    }

    /// The site of an exported value, which keeps its own name if it has one.
    fn own_or(&self, node: TreeNode<'t>, name: &'t str, whole: TreeNode<'t>) -> Site<'t> {
        let own = match node.kind() {
            "function_expression" | "generator_function" | "class" => node.children().field("name"),
            _ => None,
        };
        Site::new(own.map_or(name, |n| self.text(n)), DefKind::Function, self.flags | flag::EXPORTED, whole)
    }

    fn reexport(&mut self, module: &str, what: ImportKind, given: &str, types: bool, at: TreeNode<'t>) {
        let import = self.b.import(module, what, None, line(at));
        let given = self.b.name(given);
        let import = &mut self.b.facts.imports[import];
        import.reexport = Some(given);
        import.type_only = types;
    }

    /// Records the export of a declaration, if it is exported.
    pub(super) fn give(&mut self, def: DefId, around: &Around<'t>) {
        if around.export == Exported::No || self.b.owner != ROOT {
            return;
        }
        let value = self.b.expr(SourceExpr::Def(def));
        let name = match around.export {
            Exported::AsDefault => self.b.name("default"),
            _ => self.b.facts.def(def).name,
        };
        self.export_name(name, value);
    }

    fn export_name(&mut self, name: NameId, value: ExprId) {
        self.b.facts.exports.push(crate::facts::SourceExport { name, value });
    }

    fn export_properties(&mut self, value: ExprId) {
        let SourceExpr::Collection(ListKind::Map, range) = self.b.facts.expr(value) else { return };
        for at in range.start..range.start + range.len {
            let item = self.b.facts.items[at as usize];
            if let ItemKey::Name(name) = item.key {
                self.export_name(name, item.value);
            }
        }
    }

    // --- CommonJS ---

    /// Whether this is `module.exports` and the file declares no variable `module`.
    pub(super) fn is_module_exports(&mut self, node: TreeNode<'t>) -> bool {
        self.text(node) == "module.exports" && {
            let module = self.b.name("module");
            self.b.find(self.b.scope, module).is_none()
        }
    }

    /// Whether this expression is the exports object of the file.
    pub(super) fn is_exports(&mut self, node: TreeNode<'t>) -> bool {
        match node.kind() {
            "identifier" if self.text(node) == "exports" => {
                let exports = self.b.name("exports");
                let found = self.b.find(self.b.scope, exports);
                found.is_none() || found == self.exports
            }
            "member_expression" => self.is_module_exports(node),
            _ => false,
        }
    }

    /// Declares `exports` as a variable of the file, unless the file does, so that members set on it are found in the
    /// file.
    pub(super) fn notice_exports(&mut self, name: &str) {
        if name == "exports" && self.exports.is_none() {
            let exports = self.b.name(name);
            if self.b.find(self.b.scope, exports).is_none() {
                self.exports_variable();
            }
        }
    }

    pub(super) fn exports_variable(&mut self) -> VarId {
        if let Some(var) = self.exports {
            return var;
        }
        let name = self.b.name("exports");
        let var = self.b.declare_in(FILE_SCOPE, name, VarKind::Local, None);
        let object = self.b.collection(ListKind::Map, &[]);
        let owner = std::mem::replace(&mut self.b.owner, ROOT);
        self.b.bind(BindTarget::Var(var), object);
        self.b.owner = owner;
        self.exports = Some(var);
        var
    }

    /// Records exports by `module.exports = e`, `exports.a = e`, `module.exports.a = e`.
    pub(super) fn given_by_assignment(&mut self, left: TreeNode<'t>, value: ExprId) {
        match left.kind() {
            "member_expression" => {
                if self.is_module_exports(left) {
                    self.b.export("=", value);
                    self.export_properties(value);
                    return;
                }
                let kids = self.children(left);
                if let (Some(object), Some(property)) = (kids.field("object"), kids.field("property"))
                    && self.is_exports(object)
                {
                    self.b.export(self.text(property), value);
                }
            }
            "subscript_expression" => {
                let kids = self.children(left);
                if let (Some(object), Some(index)) = (kids.field("object"), kids.field("index"))
                    && self.is_exports(object)
                    && let Some(name) = self.constant(index)
                {
                    self.b.export(name, value);
                }
            }
            _ => {}
        }
    }

    /// `Object.defineProperty(o, "name", { value })`, also with `get` and `set`.
    pub(super) fn defined_property(&mut self, object: TreeNode<'t>, values: [ExprId; 3]) {
        let [of, name, descriptor] = values;
        let SourceExpr::Literal(crate::facts::Literal::String(name)) = self.b.facts.expr(name) else { return };
        let SourceExpr::Collection(ListKind::Map, range) = self.b.facts.expr(descriptor) else { return };
        let at = span(object);
        for place in range.start..range.start + range.len {
            let item = self.b.facts.items[place as usize];
            let ItemKey::Name(key) = item.key else { continue };
            let flags = match self.b.facts.name(key) {
                "value" => 0,
                "get" => flag::GETTER,
                "set" => flag::SETTER,
                _ => continue,
            };
            let value = match self.b.facts.expr(item.value) {
                SourceExpr::Def(def) if flags != 0 => {
                    let d = self.b.def(def);
                    d.name = name;
                    d.flags |= flags;
                    d.receiver = Some(of);
                    item.value
                }
                // A function that is defined elsewhere may have other uses than as a getter: only its result becomes
                // the property.
                _ if flags == flag::GETTER => self.b.call(item.value, CallKind::Implicit, &[], at),
                _ if flags == flag::SETTER => continue,
                _ => item.value,
            };
            if of != UNKNOWN {
                self.b.bind(BindTarget::Member(of, name), value);
            }
            if flags != flag::SETTER && self.b.facts.name(name) != "__esModule" && self.is_exports(object) {
                self.export_name(name, value);
            }
        }
    }
}

/// Flags exported definitions, wherever their export is written, and the public members of exported types.
pub(super) fn mark_exported(facts: &mut FileFacts) {
    let mut names: FxHashSet<NameId> = FxHashSet::default();
    for at in 0..facts.exports.len() {
        match facts.expr(facts.exports[at].value) {
            SourceExpr::Def(def) => facts.defs[def].flags |= flag::EXPORTED,
            SourceExpr::Var(var) if facts.vars[var].owner == ROOT => {
                names.insert(facts.vars[var].name);
            }
            _ => {}
        }
    }
    for at in facts.defs.ids().skip(1) {
        let def = &facts.defs[at];
        let parent = facts.def(def.parent);
        let given = match def.kind {
            DefKind::Lambda => false,
            DefKind::Method | DefKind::Field => {
                parent.is(flag::EXPORTED) && parent.kind.type_like() && def.visibility == Visibility::Public
            }
            _ => def.parent == ROOT && names.contains(&def.name),
        };
        if given {
            facts.defs[at].flags |= flag::EXPORTED;
        }
    }
}
