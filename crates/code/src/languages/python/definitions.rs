//! Python: functions, classes, their parameters, decorators and docs; imports.

use super::Reader;
use crate::convert::to_place;
use crate::facts::{
    Arg, ArgKind, BaseKind, BindTarget, CallKind, DefId, DefKind, ExprId, ImportKind, Literal, ROOT, SourceExpr,
    UNKNOWN, VarKind, Visibility, flag,
};
use crate::tree::{self, NodeChildren, TreeNode, line, one_line, span};

impl<'t> Reader<'t> {
    // --- definitions ---

    pub(super) fn decorated(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let mut decorators: Vec<TreeNode<'t>> = Vec::new();
        for kid in kids.named() {
            match kid.kind() {
                "decorator" => {
                    let inner = self.children(kid);
                    decorators.extend(inner.named().next());
                }
                "function_definition" => {
                    self.function(kid, &decorators, node);
                }
                "class_definition" => {
                    self.class(kid, &decorators, node);
                }
                _ => {}
            }
        }
    }

    pub(super) fn function(&mut self, node: TreeNode<'t>, decorators: &[TreeNode<'t>], whole: TreeNode<'t>) -> DefId {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.text(n));
        let in_class = self.b.facts.def(self.b.owner).kind == DefKind::Class;
        let kind = if in_class { DefKind::Method } else { DefKind::Function };
        let def = self.b.add_def(name, kind, span(whole));
        let mut flags = 0;
        if kids.has("async") {
            flags |= flag::ASYNC;
        }
        let mut wrapping: Vec<TreeNode<'t>> = Vec::new();
        for decorator in decorators {
            match self.known_decorator(*decorator) {
                Some(known) => flags |= known,
                None => wrapping.push(*decorator),
            }
        }
        if in_class && flags & flag::STATIC == 0 {
            flags |= flag::TAKES_SELF;
            if matches!(name, "__new__" | "__init_subclass__" | "__class_getitem__") {
                flags |= flag::CLASS_METHOD;
            }
        }
        if in_class && name == "__init__" {
            flags |= flag::CONSTRUCTOR;
        }
        let visibility = visibility(name);
        if visibility == Visibility::Public && self.b.facts.def(self.b.owner).kind != DefKind::Function {
            flags |= flag::EXPORTED;
        }
        let test_class = self.b.facts.def(self.b.owner).is(flag::TEST);
        if name.starts_with("test") && (self.test_file || test_class) && (in_class || self.b.owner == ROOT) {
            flags |= flag::TEST;
        }
        let signature = self.signature(node, &kids);
        let doc = kids.field("body").and_then(|body| self.docstring(body));
        if in_class && kids.field("body").is_some_and(|body| self.is_left_to_others(body)) {
            flags |= flag::ABSTRACT;
        }
        // Decorators are evaluated outside the function.
        let mut decorated = self.b.expr(SourceExpr::Def(def));
        let mut calls = Vec::new();
        for decorator in wrapping.iter().rev() {
            let callee = self.value(*decorator);
            self.b.uses(callee, line(*decorator));
            let arg = Arg { how: ArgKind::Place, value: decorated };
            let at = span(*decorator);
            decorated = self.b.call(callee, CallKind::Decorator, &[arg], at);
            calls.push(decorated);
        }
        {
            let d = self.b.def(def);
            d.flags |= flags;
            d.visibility = visibility;
            d.signature = signature.into();
            d.doc = doc;
            d.decorators = calls;
        }
        let result = kids.field("return_type").map(|ty| self.ty(ty));
        self.b.def(def).result = result;
        // Defaults are evaluated outside too, and only once.
        let parameters = kids.field("parameters");
        let read = self.parameters_outside(parameters);
        let body = kids.field("body");
        self.inside(def, false, |reader| {
            reader.parameters(read);
            if let Some(body) = body {
                reader.block(body);
            }
        });
        self.declare(def, decorated, wrapping.is_empty());
        def
    }

    /// Binds the name of a definition: to the definition itself, or with decorators to their result.
    pub(super) fn declare(&mut self, def: DefId, value: ExprId, plain: bool) {
        let scope = self.b.scope;
        if plain {
            self.b.declare_def(scope, def);
        } else {
            let name = self.b.facts.def(def).name;
            let var = self.b.variable_in(scope, name);
            self.b.bind(BindTarget::Var(var), value);
        }
    }

    pub(super) fn inside<R>(&mut self, def: DefId, own_only: bool, read: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.b.enter_def(def, own_only);
        let (when, optional) = (std::mem::take(&mut self.b.when), std::mem::take(&mut self.optional));
        let result = read(self);
        (self.b.when, self.optional) = (when, optional);
        self.b.leave_def(before);
        result
    }

    /// The flags of a decorator of the language itself; `None` for an ordinary function.
    pub(super) fn known_decorator(&mut self, node: TreeNode<'t>) -> Option<u32> {
        let text = self.text(node);
        let name = text.split('(').next().unwrap_or(text).trim();
        let last = name.rsplit('.').next().unwrap_or(name);
        Some(match last {
            "property" | "cached_property" | "abstractproperty" => flag::GETTER,
            "staticmethod" => flag::STATIC,
            "classmethod" => flag::CLASS_METHOD,
            "abstractmethod" => flag::ABSTRACT,
            "setter" | "deleter" if name.contains('.') => flag::SETTER,
            "getter" if name.contains('.') => flag::GETTER,
            "overload" => flag::DECLARED,
            "wraps" => {
                self.value(node);
                flag::WRAPS
            }
            "lru_cache"
            | "cache"
            | "override"
            | "final"
            | "contextmanager"
            | "asynccontextmanager"
            | "total_ordering"
            | "dataclass"
            | "unique"
            | "runtime_checkable"
            | "fixture" => {
                let value = self.value(node);
                self.b.uses(value, line(node));
                0
            }
            _ => return None,
        })
    }

    pub(super) fn parameters_outside(&mut self, node: Option<TreeNode<'t>>) -> Vec<PythonParameter<'t>> {
        let Some(node) = node else { return vec![] };
        let kids = self.children(node);
        let mut read = Vec::new();
        for kid in kids.named() {
            let inner = self.children(kid);
            let name_node = match kid.kind() {
                "identifier" => Some(kid),
                "default_parameter" | "typed_default_parameter" => inner.field("name"),
                "typed_parameter" | "list_splat_pattern" | "dictionary_splat_pattern" => inner.named().next(),
                _ => None,
            };
            let Some(mut name_node) = name_node else { continue };
            let mut how = match kid.kind() {
                "list_splat_pattern" => RestParameter::List,
                "dictionary_splat_pattern" => RestParameter::Map,
                _ => RestParameter::No,
            };
            if matches!(name_node.kind(), "list_splat_pattern" | "dictionary_splat_pattern") {
                how = if name_node.kind() == "list_splat_pattern" { RestParameter::List } else { RestParameter::Map };
                let inner = self.children(name_node);
                let Some(inner) = inner.named().next() else { continue };
                name_node = inner;
            }
            let ty = inner.field("type").map(|ty| self.ty(ty));
            let default = inner.field("value").map_or(UNKNOWN, |v| self.value(v));
            read.push(PythonParameter { name: self.text(name_node), ty, default, how });
        }
        read
    }

    pub(super) fn parameters(&mut self, read: Vec<PythonParameter<'t>>) {
        for (place, parameter) in read.into_iter().enumerate() {
            let what = match parameter.how {
                RestParameter::No => None,
                RestParameter::List => Some(VarKind::Rest(to_place(place))),
                RestParameter::Map => Some(VarKind::Keywords),
            };
            if self.b.facts.expr(parameter.default) == SourceExpr::Literal(Literal::Nothing) {
                self.optional.push(parameter.name);
            }
            let var = self.b.param(parameter.name, what, parameter.ty);
            self.b.bind_default(var, parameter.default);
        }
    }

    pub(super) fn class(&mut self, node: TreeNode<'t>, decorators: &[TreeNode<'t>], whole: TreeNode<'t>) -> DefId {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.text(n));
        let def = self.b.add_def(name, DefKind::Class, span(whole));
        let signature = self.signature(node, &kids);
        let doc = kids.field("body").and_then(|body| self.docstring(body));
        let visibility = visibility(name);
        let mut test = self.test_file && name.starts_with("Test");
        // Outside of test files, a test case class without tests is a base for others.
        let tests = self.test_file || kids.field("body").is_some_and(|body| self.text(body).contains("def test"));
        if let Some(bases) = kids.field("superclasses") {
            let inner = self.children(bases);
            for base in inner.named() {
                match base.kind() {
                    "keyword_argument" => {
                        let inner = self.children(base);
                        if let Some(value) = inner.field("value") {
                            let value = self.value(value);
                            self.b.uses(value, line(base));
                        }
                    }
                    _ => {
                        test |= tests && self.text(base).ends_with("TestCase");
                        let mut of = if base.kind() == "subscript" { self.ty(base) } else { self.value(base) };
                        // `Base[T]` is treated as `Base`; the brackets contain types.
                        if let SourceExpr::Generic(named, _) = self.b.facts.expr(of) {
                            of = named;
                        }
                        self.b.base(def, BaseKind::Extends, of, line(base));
                    }
                }
            }
        }
        let outer = self.b.facts.def(self.b.owner).kind;
        {
            let d = self.b.def(def);
            d.signature = signature.into();
            d.doc = doc;
            d.visibility = visibility;
            if visibility == Visibility::Public && outer != DefKind::Function && outer != DefKind::Method {
                d.flags |= flag::EXPORTED;
            }
            if test {
                d.flags |= flag::TEST;
            }
        }
        let mut decorated = self.b.expr(SourceExpr::Def(def));
        let mut plain = true;
        for decorator in decorators.iter().rev() {
            if self.known_decorator(*decorator).is_some() {
                continue;
            }
            plain = false;
            let callee = self.value(*decorator);
            self.b.uses(callee, line(*decorator));
            let arg = Arg { how: ArgKind::Place, value: decorated };
            let at = span(*decorator);
            decorated = self.b.call(callee, CallKind::Decorator, &[arg], at);
        }
        let body = kids.field("body");
        self.inside(def, true, |reader| {
            if let Some(body) = body {
                reader.block(body);
            }
        });
        self.declare(def, decorated, plain);
        def
    }

    pub(super) fn signature(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> String {
        let end = kids.field("body").map_or(node.end_byte(), |body| body.start_byte());
        let text = self.b.text.get(node.start_byte()..end).unwrap_or("");
        // A comment between the colon and the body is part of neither.
        let text = text.split(" #").next().unwrap_or(text).trim_end();
        one_line(text.trim_end_matches(':').trim_end())
    }

    pub(super) fn docstring(&mut self, body: TreeNode<'t>) -> Option<Box<str>> {
        let kids = self.children(body);
        let first = kids.named().next()?;
        if first.kind() != "expression_statement" {
            return None;
        }
        let inner = self.children(first);
        let string = inner.named().next()?;
        if string.kind() != "string" {
            return None;
        }
        let text = self.string(string);
        let clean: Vec<&str> = text.lines().map(str::trim).collect();
        let clean = clean.join("\n");
        let clean = clean.trim();
        (!clean.is_empty()).then(|| tree::cut(clean, 2_000).into())
    }

    /// The text between the quotes.
    pub(super) fn string(&self, node: TreeNode<'_>) -> &'t str {
        let text = self.text(node);
        let text = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        for quote in ["\"\"\"", "'''", "\"", "'"] {
            if let Some(inner) = text.strip_prefix(quote) {
                return inner.strip_suffix(quote).unwrap_or(inner);
            }
        }
        text
    }

    // --- imports ---

    pub(super) fn import(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            match kid.kind() {
                "dotted_name" => {
                    let module = self.text(kid);
                    let root = module.split('.').next().unwrap_or(module);
                    let what = if root == module { ImportKind::Module } else { ImportKind::Root };
                    self.b.import(module, what, Some(root), line(kid));
                }
                "aliased_import" => {
                    let inner = self.children(kid);
                    let module = inner.field("name").map_or("", |n| self.text(n));
                    let alias = inner.field("alias").map(|n| self.text(n));
                    self.b.import(module, ImportKind::Module, alias, line(kid));
                }
                _ => {}
            }
        }
    }

    pub(super) fn import_from(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let module: String =
            kids.field("module_name").map_or("__future__", |n| self.text(n)).split_whitespace().collect();
        for name in kids.fields("name") {
            let (name, alias) = if name.kind() == "aliased_import" {
                let inner = self.children(name);
                let name = inner.field("name").map_or("", |n| self.text(n));
                (name, inner.field("alias").map_or(name, |n| self.text(n)))
            } else {
                (self.text(name), self.text(name))
            };
            let symbol = self.b.name(name);
            self.b.import(&module, ImportKind::Symbol(symbol), Some(alias), line(node));
        }
        if kids.kind("wildcard_import").is_some() {
            self.b.import(&module, ImportKind::All, None, line(node));
        }
    }
}

/// A parameter whose type and default were read, but that is not declared yet.
pub(super) struct PythonParameter<'t> {
    name: &'t str,
    ty: Option<ExprId>,
    default: ExprId,
    how: RestParameter,
}

/// Whether a parameter takes the remaining arguments: `*args` or `**kwargs`.
#[derive(PartialEq)]
pub(super) enum RestParameter {
    No,
    List,
    Map,
}

pub(super) fn visibility(name: &str) -> Visibility {
    if name.starts_with('_') && !(name.starts_with("__") && name.ends_with("__")) {
        Visibility::Private
    } else {
        Visibility::Public
    }
}
