//! Functions, arrow functions and methods with their parameters.

use super::patterns::PatternBinding;
use super::{Reader, Site};
use crate::convert::to_place;
use crate::facts::{
    Arg, ArgKind, BindTarget, CallKind, DefId, DefKind, ExprId, SourceExpr, SourceSpan, UNKNOWN, VarKind, Visibility,
    flag,
};
use crate::tree::{NodeChildren, TreeNode, span};

impl<'t> Reader<'t> {
    /// Reads a value that has a name by its position, which becomes the name of a function or class.
    pub(super) fn known(&mut self, node: TreeNode<'t>, site: Site<'t>) -> ExprId {
        match node.kind() {
            "arrow_function" | "function_expression" | "generator_function" => self.deeper(UNKNOWN, |reader| {
                let def = reader.function(node, site);
                reader.b.expr(SourceExpr::Def(def))
            }),
            "class" => self.deeper(UNKNOWN, |reader| {
                let def = reader.class(node, site, &[]);
                reader.b.expr(SourceExpr::Def(def))
            }),
            "parenthesized_expression" => {
                let kids = self.children(node);
                match kids.named().next() {
                    Some(inner) => self.deeper(UNKNOWN, |reader| reader.known(inner, site)),
                    None => UNKNOWN,
                }
            }
            "as_expression" | "satisfies_expression" => self.deeper(UNKNOWN, |reader| reader.cast(node, Some(site))),
            _ => self.used(node),
        }
    }

    pub(super) fn function(&mut self, node: TreeNode<'t>, site: Site<'t>) -> DefId {
        let kids = self.children(node);
        let own = kids.field("name").map_or("", |n| self.text(n));
        let (name, kind) = match (site.name, site.kind) {
            ("", _) if own.is_empty() => ("<anonymous>", DefKind::Lambda),
            ("", DefKind::Lambda) => (own, DefKind::Function),
            ("", kind) => (own, kind),
            (name, kind) => (name, kind),
        };
        let def = self.b.add_def(name, kind, site.span);
        let body = kids.field("body");
        let signature = self.signature(site.head, body.map_or(node.end_byte(), |b| b.start_byte()));
        let doc = if kind == DefKind::Lambda { None } else { self.doc_above(site.span.start as usize) };
        {
            let d = self.b.def(def);
            d.flags |= site.flags | self.flags | function_flags(node, &kids);
            d.visibility = site.visibility;
            d.signature = signature.into();
            d.doc = doc;
        }
        let expression = matches!(node.kind(), "function_expression" | "generator_function");
        let arrow = node.kind() == "arrow_function";
        let outer = self.reads_arguments;
        self.reads_arguments = arrow && outer;
        self.inside(def, |reader| {
            if expression && !own.is_empty() {
                let own = reader.b.name(own);
                reader.b.declare(own, VarKind::Def(def), None);
            }
            reader.type_parameters(kids.field("type_parameters"));
            if let Some(one) = kids.field("parameter") {
                reader.parameter(one, None, None);
            }
            if let Some(several) = kids.field("parameters") {
                reader.parameters(several);
            }
            let result = kids.field("return_type").map(|ty| reader.ty(ty)).filter(|ty| *ty != UNKNOWN);
            reader.b.def(def).result = result;
            match body {
                Some(body) if body.kind() == "statement_block" => reader.block(body),
                Some(body) => {
                    let value = reader.used(body);
                    reader.b.returns(value, false);
                }
                None => {}
            }
            // All parameters are declared by now, so this one does not shift their positions.
            if reader.reads_arguments && !arrow {
                reader.b.param("arguments", Some(VarKind::Rest(0)), None);
            }
        });
        self.reads_arguments = outer || (arrow && self.reads_arguments);
        def
    }

    fn parameters(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            match kid.kind() {
                "required_parameter" | "optional_parameter" => self.typed_parameter(kid),
                "assignment_pattern" => {
                    let inner = self.children(kid);
                    if let Some(left) = inner.field("left") {
                        self.parameter(left, None, inner.field("right"));
                    }
                }
                "ERROR" | "decorator" => {
                    self.value(kid);
                }
                _ => {
                    self.parameter(kid, None, None);
                }
            }
        }
    }

    fn typed_parameter(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for decorator in kids.fields("decorator") {
            let inner = self.children(decorator);
            if let Some(called) = inner.named().next() {
                let callee = self.used(called);
                let arg = Arg { how: ArgKind::Place, value: UNKNOWN };
                self.b.call(callee, CallKind::Decorator, &[arg], span(decorator));
            }
        }
        let Some(pattern) = kids.field("pattern") else { return };
        let ty = kids.field("type").map(|ty| self.ty(ty)).filter(|ty| *ty != UNKNOWN);
        if pattern.kind() == "this" {
            if let Some(ty) = ty {
                let this = self.b.expr(SourceExpr::InstanceOf(ty));
                let owner = self.b.owner;
                self.b.def(owner).receiver = Some(this);
            }
            return;
        }
        let value = self.parameter(pattern, ty, kids.field("value"));
        let modifier = kids.kind("accessibility_modifier");
        if modifier.is_some() || kids.has("readonly") || kids.has("override_modifier") {
            let visibility = modifier.map_or(Visibility::Public, |m| self.visibility(m));
            self.parameter_property(pattern, ty, value, visibility, span(node));
        }
    }

    /// Reads one parameter at the next position; returns its value.
    fn parameter(&mut self, pattern: TreeNode<'t>, ty: Option<ExprId>, default: Option<TreeNode<'t>>) -> ExprId {
        let (pattern, rest) = if pattern.kind() == "rest_pattern" {
            let inner = self.children(pattern);
            match inner.named().next() {
                Some(inner) => (inner, true),
                None => return UNKNOWN,
            }
        } else {
            (pattern, false)
        };
        let owner = self.b.owner;
        let place = to_place(self.b.facts.def(owner).params.len());
        let what = rest.then_some(VarKind::Rest(place));
        if rest {
            self.b.def(owner).flags |= flag::VARIADIC;
        }
        let simple = pattern.kind() == "identifier";
        let var = match pattern.kind() {
            "object_pattern" => self.b.param("{}", what, ty),
            "array_pattern" => self.b.param("[]", what, ty),
            _ => self.b.param(self.text(pattern), what, ty),
        };
        let default = default.map_or(UNKNOWN, |d| self.used(d));
        self.b.bind_default(var, default);
        let value = self.b.expr(SourceExpr::Var(var));
        if !simple {
            let scope = self.b.scope;
            self.assign(pattern, value, PatternBinding::Declared(scope));
        }
        value
    }

    /// `constructor(private x: T)`: a field with the value of the parameter.
    fn parameter_property(
        &mut self,
        pattern: TreeNode<'t>,
        ty: Option<ExprId>,
        value: ExprId,
        visibility: Visibility,
        at: SourceSpan,
    ) {
        let Some((class, members)) = self.members else { return };
        if pattern.kind() != "identifier" {
            return;
        }
        let text = self.text(pattern);
        let owner = std::mem::replace(&mut self.b.owner, class);
        let def = self.b.add_def(text, DefKind::Field, at);
        self.b.owner = owner;
        let signature = self.signature(at.start, at.end as usize);
        let flags = self.flags;
        let d = self.b.def(def);
        d.signature = signature.into();
        d.visibility = visibility;
        d.result = ty;
        d.flags |= flags;
        let name = self.b.name(text);
        let var = self.b.variable_in(members, name);
        self.b.facts.vars[var].ty = ty;
        let this = self.b.expr(SourceExpr::This);
        self.b.bind(BindTarget::Member(this, name), value);
    }

    pub(super) fn visibility(&self, modifier: TreeNode<'t>) -> Visibility {
        match self.text(modifier) {
            "private" => Visibility::Private,
            "protected" => Visibility::Protected,
            _ => Visibility::Public,
        }
    }

    /// Sets the receiver of a function that is assigned to a member: `this` in it is the object, or an instance if that
    /// is a prototype.
    pub(super) fn received_by(&mut self, value: ExprId, object: ExprId) {
        let SourceExpr::Def(def) = self.b.facts.expr(value) else { return };
        let d = self.b.facts.def(def);
        if object == UNKNOWN || !d.kind.callable() || d.is(flag::ARROW) || d.receiver.is_some() {
            return;
        }
        let mut root = object;
        loop {
            match self.b.facts.expr(root) {
                SourceExpr::Member(of, _)
                | SourceExpr::At(of, _)
                | SourceExpr::AtIndex(of, _)
                | SourceExpr::Element(of) => root = of,
                // `this` belongs to the enclosing function and has another meaning inside.
                SourceExpr::This | SourceExpr::Super => return,
                _ => break,
            }
        }
        let receiver = match self.b.facts.expr(object) {
            SourceExpr::Member(class, name) if self.b.facts.name(name) == "prototype" => {
                self.b.expr(SourceExpr::InstanceOf(class))
            }
            _ => object,
        };
        self.b.def(def).receiver = Some(receiver);
    }
}

fn function_flags(node: TreeNode<'_>, kids: &NodeChildren<'_>) -> u32 {
    let mut flags = 0;
    if node.kind() == "arrow_function" {
        flags |= flag::ARROW;
    }
    for kid in kids.all() {
        flags |= match kid.kind() {
            "async" => flag::ASYNC,
            "*" => flag::GENERATOR,
            "get" => flag::GETTER,
            "set" => flag::SETTER,
            "static" => flag::STATIC,
            "static get" => flag::STATIC | flag::GETTER,
            "abstract" => flag::ABSTRACT,
            // There are no modifiers after these.
            "formal_parameters" | "=>" => break,
            _ => 0,
        };
    }
    flags
}
