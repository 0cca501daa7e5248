//! Python: expressions, assignments, calls and types.

use super::Reader;
use super::definitions::visibility;
use crate::convert::to_u32;
use crate::facts::{
    Arg, ArgKind, BindTarget, CallKind, DefKind, ExprId, ExprItem, ImportKind, ItemKey, ListKind, Literal, SourceExpr,
    UNKNOWN, VarKind, Visibility, flag,
};
use crate::tree::{self, TreeNode, line, one_line, span};

impl<'t> Reader<'t> {
    // --- expressions ---

    /// An expression as a statement: assignments bind.
    pub(super) fn evaluate(&mut self, node: TreeNode<'t>) {
        match node.kind() {
            "assignment" | "augmented_assignment" => {
                self.assignment(node);
            }
            _ => {
                self.value(node);
            }
        }
    }

    pub(super) fn assignment(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(left) = kids.field("left") else { return UNKNOWN };
        let ty = kids.field("type").map(|ty| self.ty(ty));
        let value = match kids.field("right") {
            Some(right) if right.kind() == "assignment" => self.deeper(UNKNOWN, |reader| reader.assignment(right)),
            Some(right) => self.used(right),
            None => UNKNOWN,
        };
        if node.kind() == "augmented_assignment" {
            let items = self.b.items(&[ExprItem { key: ItemKey::Spread, value }]);
            let joined = self.b.expr(SourceExpr::Joined(items));
            self.assign(left, joined);
            return UNKNOWN;
        }
        if let Some(ty) = ty {
            self.annotate(left, ty);
        }
        self.symbol(left, node, ty);
        self.assign(left, value);
        value
    }

    /// Defines a symbol for a variable of a module or class.
    pub(super) fn symbol(&mut self, left: TreeNode<'t>, node: TreeNode<'t>, ty: Option<ExprId>) {
        let owner = self.b.facts.def(self.b.owner).kind;
        if left.kind() != "identifier" || !matches!(owner, DefKind::File | DefKind::Class) {
            return;
        }
        let text = self.text(left);
        let name = self.b.name(text);
        if self.b.declared_in(self.b.scope, name).is_some_and(|v| self.b.facts.vars[v].what != VarKind::Local)
            || (text.starts_with("__") && text != "__all__")
        {
            return;
        }
        let known = self.b.facts.defs.iter().rev().take(64).any(|d| {
            d.name == name && d.parent == self.b.owner && matches!(d.kind, DefKind::Variable | DefKind::Field)
        });
        if known {
            return;
        }
        let kind = if owner == DefKind::File { DefKind::Variable } else { DefKind::Field };
        let def = self.b.add_def(text, kind, span(node));
        let signature = one_line(self.text(node));
        let visibility = visibility(text);
        let d = self.b.def(def);
        d.signature = signature.into();
        d.visibility = visibility;
        d.result = ty;
        if visibility == Visibility::Public {
            d.flags |= flag::EXPORTED;
        }
        if text.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit()) {
            d.flags |= flag::CONSTANT;
        }
    }

    pub(super) fn annotate(&mut self, left: TreeNode<'t>, ty: ExprId) {
        match left.kind() {
            "identifier" => {
                let name = self.text(left);
                let name = self.b.name(name);
                let scope = self.b.scope;
                let var = self.b.variable_in(scope, name);
                self.b.facts.vars[var].ty = Some(ty);
            }
            _ => {
                let instance = self.b.expr(SourceExpr::InstanceOf(ty));
                self.assign(left, instance);
            }
        }
    }

    pub(super) fn assign(&mut self, target: TreeNode<'t>, value: ExprId) {
        match target.kind() {
            "identifier" => {
                let name = self.text(target);
                self.optional.retain(|optional| *optional != name);
                let name = self.b.name(name);
                let scope = self.b.scope;
                let var = self.b.variable_in(scope, name);
                self.b.bind(BindTarget::Var(var), value);
            }
            "attribute" => {
                let kids = self.children(target);
                if let (Some(object), Some(attribute)) = (kids.field("object"), kids.field("attribute")) {
                    let object = self.value(object);
                    let name = self.text(attribute);
                    let name = self.b.name(name);
                    self.b.bind(BindTarget::Member(object, name), value);
                }
            }
            "subscript" => {
                let kids = self.children(target);
                let Some(object) = kids.field("value").map(|n| self.value(n)) else { return };
                let Some(key) = kids.field("subscript") else { return };
                let target = if key.kind() == "string" {
                    let name = self.string(key);
                    BindTarget::At(object, self.b.name(name))
                } else {
                    self.value(key);
                    BindTarget::Element(object)
                };
                self.b.bind(target, value);
            }
            // `(a) = …`: without a comma it is not a tuple.
            "tuple_pattern" if !self.children(target).has(",") => {
                for inner in self.children(target).named() {
                    self.assign(inner, value);
                }
            }
            "pattern_list" | "tuple_pattern" | "list_pattern" | "tuple" | "list" => {
                let kids = self.children(target);
                let targets: Vec<TreeNode<'t>> = kids.named().collect();
                let starred = targets.iter().position(|t| matches!(t.kind(), "list_splat_pattern" | "list_splat"));
                for (index, target) in targets.iter().enumerate() {
                    if value == UNKNOWN {
                        self.deeper((), |reader| reader.assign(*target, UNKNOWN));
                        continue;
                    }
                    let part = match starred {
                        Some(star) if index >= star => self.b.expr(SourceExpr::Element(value)),
                        _ => self.b.expr(SourceExpr::AtIndex(value, to_u32(index))),
                    };
                    if Some(index) == starred {
                        let inner = self.children(*target);
                        let list = self.b.expr(SourceExpr::ListOf(part));
                        if let Some(inner) = inner.named().next() {
                            self.assign(inner, list);
                        }
                    } else {
                        self.deeper((), |reader| reader.assign(*target, part));
                    }
                }
            }
            "parenthesized_expression" | "as_pattern_target" => {
                let kids = self.children(target);
                if let Some(inner) = kids.named().next() {
                    self.assign(inner, value);
                }
            }
            _ => {
                self.value(target);
            }
        }
    }

    pub(super) fn value(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.value_inner(node))
    }

    /// Reads a value and records a reference to the symbol it names.
    pub(super) fn used(&mut self, node: TreeNode<'t>) -> ExprId {
        let value = self.value(node);
        if matches!(node.kind(), "identifier" | "attribute") {
            self.b.uses(value, line(node));
        }
        value
    }

    pub(super) fn value_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "identifier" => {
                let name = self.text(node);
                self.b.read(name)
            }
            "attribute" => {
                let kids = self.children(node);
                let (Some(object), Some(attribute)) = (kids.field("object"), kids.field("attribute")) else {
                    return UNKNOWN;
                };
                let object = self.value(object);
                let name = self.text(attribute);
                self.b.member(object, name)
            }
            "call" => self.call(node),
            "string" => {
                let kids = self.children(node);
                for kid in kids.named().filter(|k| k.kind() == "interpolation") {
                    let inner = self.children(kid);
                    if let Some(value) = inner.named().next() {
                        self.used(value);
                    }
                }
                let text = tree::cut(self.string(node), 120);
                let name = self.b.name(text);
                self.b.expr(SourceExpr::Literal(Literal::String(name)))
            }
            "integer" | "float" => self.b.expr(SourceExpr::Literal(Literal::Number)),
            "true" | "false" => self.b.expr(SourceExpr::Literal(Literal::Bool)),
            "none" => self.b.expr(SourceExpr::Literal(Literal::Nothing)),
            "lambda" => self.lambda(node),
            "conditional_expression" => {
                let kids = self.children(node);
                let parts: Vec<TreeNode<'t>> = kids.named().collect();
                let values: Vec<ExprId> = parts.iter().map(|p| self.used(*p)).collect();
                match values.as_slice() {
                    [yes, _, no] => {
                        let (yes, no) = (*yes, *no);
                        self.b.either(&[yes, no])
                    }
                    _ => UNKNOWN,
                }
            }
            "boolean_operator" => {
                let kids = self.children(node);
                let left = kids.field("left").map_or(UNKNOWN, |n| self.used(n));
                let right = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
                self.b.either(&[left, right])
            }
            "parenthesized_expression" => {
                let kids = self.children(node);
                match kids.named().next() {
                    Some(inner) => self.value(inner),
                    None => UNKNOWN,
                }
            }
            "list" | "tuple" | "set" | "expression_list" => {
                let kind = match node.kind() {
                    "list" => ListKind::List,
                    "set" => ListKind::Set,
                    _ => ListKind::Tuple,
                };
                let kids = self.children(node);
                let mut items = Vec::new();
                for kid in kids.named() {
                    if kid.kind() == "list_splat" {
                        let inner = self.children(kid);
                        if let Some(inner) = inner.named().next() {
                            items.push(ExprItem { key: ItemKey::Spread, value: self.used(inner) });
                        }
                    } else {
                        items.push(ExprItem { key: ItemKey::Next, value: self.used(kid) });
                    }
                }
                self.b.collection(kind, &items)
            }
            "dictionary" => {
                let kids = self.children(node);
                let mut items = Vec::new();
                for kid in kids.named() {
                    let inner = self.children(kid);
                    if kid.kind() == "pair" {
                        let key = match inner.field("key") {
                            Some(key) if key.kind() == "string" => {
                                let text = self.string(key);
                                ItemKey::Name(self.b.name(text))
                            }
                            Some(key) if key.kind() == "integer" => {
                                // The prefix distinguishes a number from a string with the same digits.
                                let text = format!("#{}", self.text(key));
                                ItemKey::Name(self.b.name(&text))
                            }
                            Some(key) => {
                                self.used(key);
                                ItemKey::Any
                            }
                            None => ItemKey::Any,
                        };
                        let value = inner.field("value").map_or(UNKNOWN, |v| self.used(v));
                        items.push(ExprItem { key, value });
                    } else if let Some(spread) = inner.named().next() {
                        items.push(ExprItem { key: ItemKey::Spread, value: self.used(spread) });
                    }
                }
                self.b.collection(ListKind::Map, &items)
            }
            "subscript" => self.subscript(node),
            "list_comprehension" | "set_comprehension" | "generator_expression" | "dictionary_comprehension" => {
                self.comprehension(node)
            }
            "await" => {
                let kids = self.children(node);
                let inner = kids.named().next().map_or(UNKNOWN, |n| self.value(n));
                if inner == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::Awaited(inner)) }
            }
            "yield" => {
                let kids = self.children(node);
                let from = kids.has("from");
                if let Some(inner) = kids.named().next() {
                    let mut value = self.used(inner);
                    if from && value != UNKNOWN {
                        value = self.b.expr(SourceExpr::Element(value));
                    }
                    self.b.returns(value, true);
                }
                let owner = self.b.owner;
                self.b.def(owner).flags |= flag::GENERATOR;
                UNKNOWN
            }
            "named_expression" => {
                let kids = self.children(node);
                let value = kids.field("value").map_or(UNKNOWN, |n| self.used(n));
                if let Some(name) = kids.field("name") {
                    self.assign(name, value);
                }
                value
            }
            "assignment" | "augmented_assignment" => self.assignment(node),
            "binary_operator" => {
                let kids = self.children(node);
                let left = kids.field("left").map_or(UNKNOWN, |n| self.used(n));
                let right = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
                match kids.field("operator").map(|o| o.kind()) {
                    Some("+") if left != UNKNOWN || right != UNKNOWN => {
                        let items = self.b.items(&[
                            ExprItem { key: ItemKey::Spread, value: left },
                            ExprItem { key: ItemKey::Spread, value: right },
                        ]);
                        self.b.expr(SourceExpr::Joined(items))
                    }
                    _ => UNKNOWN,
                }
            }
            "comment" => UNKNOWN,
            // Comparisons, f-string parts, slices, errors: the parts are read, the result is unknown.
            _ => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.used(kid);
                }
                UNKNOWN
            }
        }
    }

    pub(super) fn subscript(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(object) = kids.field("value").map(|n| self.used(n)) else { return UNKNOWN };
        let Some(key) = kids.field("subscript") else { return UNKNOWN };
        match key.kind() {
            "string" => {
                let text = self.string(key);
                let name = self.b.name(text);
                self.b.expr(SourceExpr::At(object, name))
            }
            "integer" => match self.text(key).parse::<u32>() {
                Ok(index) => self.b.expr(SourceExpr::AtIndex(object, index)),
                Err(_) => self.b.expr(SourceExpr::Element(object)),
            },
            "slice" => {
                self.value(key);
                object
            }
            _ => {
                self.used(key);
                self.b.expr(SourceExpr::Element(object))
            }
        }
    }

    pub(super) fn comprehension(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let before = self.b.open_scope();
        // The clauses follow the body in the text but are evaluated first.
        for kid in kids.named().skip(1) {
            let inner = self.children(kid);
            if kid.kind() == "for_in_clause" {
                self.for_in(&inner, kid);
            } else {
                for part in inner.named() {
                    self.used(part);
                }
            }
        }
        let body = match kids.field("body") {
            Some(pair) if pair.kind() == "pair" => {
                let inner = self.children(pair);
                if let Some(key) = inner.field("key") {
                    self.used(key);
                }
                inner.field("value").map_or(UNKNOWN, |n| self.used(n))
            }
            Some(body) => self.used(body),
            None => UNKNOWN,
        };
        self.b.close_scope(before);
        if body == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::ListOf(body)) }
    }

    pub(super) fn lambda(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let def = self.b.add_def("<lambda>", DefKind::Lambda, span(node));
        self.b.def(def).flags |= flag::ARROW;
        let read = self.parameters_outside(kids.field("parameters"));
        let body = kids.field("body");
        self.inside(def, false, |reader| {
            reader.parameters(read);
            if let Some(body) = body {
                let value = reader.used(body);
                reader.b.returns(value, false);
            }
        });
        self.b.expr(SourceExpr::Def(def))
    }

    pub(super) fn call(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(function) = kids.field("function") else { return UNKNOWN };
        let called = if function.kind() == "identifier" { self.text(function) } else { "" };
        let arguments = kids.field("arguments");
        if called == "super" {
            if let Some(arguments) = arguments {
                let inner = self.children(arguments);
                for kid in inner.named() {
                    self.value(kid);
                }
            }
            return self.b.expr(SourceExpr::Super);
        }
        let callee = self.value(function);
        let mut args = Vec::new();
        let mut first_string: Option<&'t str> = None;
        if let Some(arguments) = arguments {
            if arguments.kind() == "generator_expression" {
                args.push(Arg { how: ArgKind::Place, value: self.value(arguments) });
            } else {
                let inner = self.children(arguments);
                for kid in inner.named() {
                    match kid.kind() {
                        "keyword_argument" => {
                            let inner = self.children(kid);
                            let value = inner.field("value").map_or(UNKNOWN, |n| self.used(n));
                            let name = inner.field("name").map_or("", |n| self.text(n));
                            args.push(Arg { how: ArgKind::Named(self.b.name(name)), value });
                        }
                        "list_splat" | "dictionary_splat" => {
                            let how = if kid.kind() == "list_splat" { ArgKind::Spread } else { ArgKind::Keywords };
                            let inner = self.children(kid);
                            let value = inner.named().next().map_or(UNKNOWN, |n| self.used(n));
                            args.push(Arg { how, value });
                        }
                        _ => {
                            if kid.kind() == "string" && args.is_empty() {
                                first_string = Some(self.string(kid));
                            }
                            args.push(Arg { how: ArgKind::Place, value: self.used(kid) });
                        }
                    }
                }
            }
        }
        let text = self.text(function);
        if let (Some(module), true) = (first_string, text == "import_module" || text == "importlib.import_module") {
            let import = self.b.import(module, ImportKind::Module, None, line(node));
            self.b.call(callee, CallKind::Plain, &args, span(node));
            return self.b.expr(SourceExpr::Import(import));
        }
        self.container_writes(callee, &args);
        self.b.call(callee, CallKind::Plain, &args, call_site(node, function))
    }

    /// Records elements that methods add to lists, sets and maps.
    pub(super) fn container_writes(&mut self, callee: ExprId, args: &[Arg]) {
        let SourceExpr::Member(object, name) = self.b.facts.expr(callee) else { return };
        let element = match (self.b.facts.name(name), args) {
            ("append" | "add" | "appendleft", [one]) => one.value,
            ("insert" | "setdefault", [_, two]) => two.value,
            ("extend" | "update", [one]) if one.value != UNKNOWN => {
                let items = self.b.items(&[ExprItem { key: ItemKey::Spread, value: one.value }]);
                let joined = self.b.expr(SourceExpr::Joined(items));
                self.b.expr(SourceExpr::Element(joined))
            }
            _ => return,
        };
        self.b.bind(BindTarget::Element(object), element);
    }

    // --- types ---

    pub(super) fn ty(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.ty_inner(node))
    }

    pub(super) fn ty_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "type" | "parenthesized_expression" => {
                let kids = self.children(node);
                kids.named().next().map_or(UNKNOWN, |n| self.ty(n))
            }
            "identifier" | "attribute" => {
                let value = self.value(node);
                self.b.uses(value, line(node));
                value
            }
            "string" => {
                // A forward reference: only plain dotted names are resolved.
                let text = self.string(node).trim();
                if !text.is_empty() && text.split('.').all(is_identifier) {
                    let value = self.b.read_path(text.split('.'));
                    self.b.uses(value, line(node));
                    value
                } else {
                    UNKNOWN
                }
            }
            "none" => self.b.expr(SourceExpr::Literal(Literal::Nothing)),
            "binary_operator" | "union_type" => {
                let mut parts = Vec::new();
                self.union(node, &mut parts);
                self.b.either(&parts)
            }
            "subscript" | "generic_type" => {
                let kids = self.children(node);
                let mut named = kids.named();
                let Some(base) = named.next() else { return UNKNOWN };
                let mut args = Vec::new();
                for arg in named {
                    if arg.kind() == "type_parameter" {
                        let inner = self.children(arg);
                        for arg in inner.named() {
                            args.push(self.ty(arg));
                        }
                    } else {
                        args.push(self.ty(arg));
                    }
                }
                let base = self.ty(base);
                self.b.generic(base, &args)
            }
            "list" | "tuple" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.ty(kid);
                }
                UNKNOWN
            }
            _ => UNKNOWN,
        }
    }
}

impl<'t> Reader<'t> {
    /// Flattens `A | B | C` into one choice, however it is nested.
    fn union(&mut self, node: TreeNode<'t>, parts: &mut Vec<ExprId>) {
        for part in self.children(node).named() {
            let inner = if part.kind() == "type" { self.children(part).named().next().unwrap_or(part) } else { part };
            if matches!(inner.kind(), "binary_operator" | "union_type") {
                self.deeper((), |reader| reader.union(inner, parts));
            } else {
                parts.push(self.ty(inner));
            }
        }
    }
}

/// The position of a call is that of its last name, so that calls in a chain over several lines have different lines.
fn call_site(node: TreeNode<'_>, function: TreeNode<'_>) -> crate::facts::SourceSpan {
    let mut at = span(node);
    if function.kind() == "attribute" {
        at.line = function.end_position().row + 1;
    }
    at
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
