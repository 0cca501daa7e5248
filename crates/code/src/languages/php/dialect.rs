//! The syntax of PHP, for the reader that it shares with other languages.

use crate::facts::{BaseKind, BindTarget, DefId, DefKind, ExprId, ImportKind, SourceExpr, UNKNOWN, VarId, flag};
use crate::lang::query_based::{QueryDialect, QueryReader, QueryTag};
use crate::tree::{NodeChildren, TreeNode, line};
use smallvec::SmallVec;

pub(super) struct PhpDialect;

impl QueryDialect for PhpDialect {
    fn visit<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, tag: QueryTag) -> bool {
        match tag {
            QueryTag::Import => reader.imported(node),
            QueryTag::Define(DefKind::Field) => reader.property_or_constant(node),
            QueryTag::Each => reader.foreach(node),
            QueryTag::Alias => reader.traits(node),
            _ => return false,
        }
        true
    }

    fn value<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>) -> Option<ExprId> {
        Some(match node.kind() {
            "variable_name" => match reader.text(node) {
                "$this" => reader.b.expr(SourceExpr::This),
                name => reader.b.read(name),
            },
            "relative_scope" => match reader.text(node) {
                "parent" => reader.b.expr(SourceExpr::Super),
                _ => reader.b.expr(SourceExpr::ThisType),
            },
            "member_access_expression" | "nullsafe_member_access_expression" => reader.property(node),
            "scoped_property_access_expression" => reader.member_of(node, "scope", "name"),
            "class_constant_access_expression" => {
                let kids = reader.children(node);
                let mut named = kids.named();
                let (Some(of), Some(name)) = (named.next(), named.next()) else { return Some(UNKNOWN) };
                let of = reader.value(of);
                match reader.text(name) {
                    "class" => of,
                    name => reader.b.member(of, name),
                }
            }
            "array_creation_expression" => reader.pair_of_method(node),
            _ => return None,
        })
    }

    fn call<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> Option<ExprId> {
        match node.kind() {
            "function_call_expression" => {
                let Some(function) = kids.field("function") else { return Some(UNKNOWN) };
                let callee = reader.callee(function);
                Some(reader.called_or_referred(node, function, callee, kids))
            }
            "member_call_expression" | "nullsafe_member_call_expression" | "scoped_call_expression" => {
                let of = kids.field("object").or_else(|| kids.field("scope"));
                let (Some(of), Some(name)) = (of, kids.field("name")) else { return Some(UNKNOWN) };
                let of = reader.value(of);
                let text = reader.text(name);
                let callee = if name.kind() == "name" { reader.b.member(of, text) } else { UNKNOWN };
                Some(reader.called_or_referred(node, name, callee, kids))
            }
            _ => None,
        }
    }

    fn assign<'t>(&self, reader: &mut QueryReader<'t>, target: TreeNode<'t>, value: ExprId) -> bool {
        let variable = target.kind() == "variable_name";
        if variable {
            let name = reader.text(target);
            reader.local(name, None, value);
        }
        variable
    }

    fn parameter<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, _place: u16) -> bool {
        let promoted = node.kind() == "property_promotion_parameter";
        if promoted {
            let (name, ty) = reader.name_and_type(node);
            let var = reader.b.param(name, None, ty);
            let kids = reader.children(node);
            reader.promoted(name, node, &kids, ty, var);
        }
        promoted
    }

    fn calls_what_is_declared(&self) -> bool {
        true
    }

    /// Variables include `$`, names of arguments do not.
    fn start_of_parameter_names(&self) -> &'static str {
        "$"
    }

    fn is_doc(&self, comment: &str) -> bool {
        comment.starts_with("/**")
    }

    fn is_constructor(&self, name: &str, _outer: DefKind, _name_of_outer: &str) -> bool {
        name == "__construct"
    }

    fn is_test_case(&self, reader: &QueryReader<'_>, name: &str, def: DefId, name_of_outer: &str) -> bool {
        let d = reader.b.facts.def(def);
        let marked = name.starts_with("test") || d.doc.as_deref().is_some_and(|doc| doc.contains("@test"));
        d.kind == DefKind::Method && name_of_outer.ends_with("Test") && marked
    }
}

impl<'t> QueryReader<'t> {
    /// `use A\B` and `require`.
    fn imported(&mut self, node: TreeNode<'t>) {
        self.comments.clear();
        if node.kind() != "namespace_use_declaration" {
            return self.require(node);
        }
        let kids = self.children(node);
        let prefix = kids.kind("namespace_name").map_or("", |n| self.text(n));
        let group = kids.field("body").map(|body| self.children(body));
        let clauses = group.as_ref().unwrap_or(&kids);
        for clause in clauses.named().filter(|k| k.kind() == "namespace_use_clause") {
            self.use_clause(clause, prefix);
        }
    }

    fn use_clause(&mut self, clause: TreeNode<'t>, prefix: &str) {
        let parts = self.children(clause);
        let alias = parts.field("alias");
        let Some(name) = parts.named().find(|k| Some(*k) != alias) else { return };
        let name = self.text(name).trim_start_matches('\\');
        let (module, symbol) = name.rsplit_once('\\').unwrap_or(("", name));
        let module = match (prefix.trim_matches('\\'), module) {
            ("", module) => module.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, module) => format!("{prefix}\\{module}"),
        };
        let called = alias.map_or(symbol, |n| self.text(n));
        let symbol = self.b.name(symbol);
        self.b.import(&module, ImportKind::Symbol(symbol), Some(called), line(clause));
    }

    /// `require 'x.php'`, `require __DIR__ . '/x.php'`.
    fn require(&mut self, node: TreeNode<'t>) {
        let text = self.text(node);
        let Some(start) = text.find(['\'', '"']) else { return };
        let quoted = &text[start + 1..];
        let Some(end) = quoted.find(['\'', '"']) else { return };
        let path = &quoted[..end];
        let here = text[..start].contains("__DIR__") || text[..start].contains("dirname(__FILE__)");
        if path.contains('$') || path.is_empty() {
            return;
        }
        let module = if here { format!("./{}", path.trim_start_matches('/')) } else { path.to_owned() };
        self.b.import(&module, ImportKind::All, None, line(node));
    }

    fn property_or_constant(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        match node.kind() {
            "enum_case" => self.enum_constant(node),
            "property_declaration" => {
                let ty = kids.field("type").and_then(|ty| self.ty(ty));
                for element in kids.named().filter(|k| k.kind() == "property_element") {
                    let parts = self.children(element);
                    let name = parts.field("name").map_or("", |n| self.text(n)).trim_start_matches('$');
                    self.variable(name, node, &kids, ty, parts.field("default_value"), 0);
                }
            }
            "const_declaration" => {
                for element in kids.named().filter(|k| k.kind() == "const_element") {
                    let parts = self.children(element);
                    let name = parts.named().next().map_or("", |n| self.text(n));
                    let flags = if self.owner().type_like() { flag::CONSTANT | flag::STATIC } else { flag::CONSTANT };
                    self.variable(name, node, &kids, None, parts.named().nth(1), flags);
                }
            }
            _ => {}
        }
    }

    /// A constructor parameter that is also a property.
    fn promoted(&mut self, name: &str, node: TreeNode<'t>, kids: &NodeChildren<'t>, ty: Option<ExprId>, var: VarId) {
        let Some(frame) = self.frames.last() else { return };
        let inside = (self.b.owner, self.b.scope);
        (self.b.owner, self.b.scope) = frame.before;
        let name = name.trim_start_matches('$');
        self.variable(name, node, kids, ty, None, 0);
        (self.b.owner, self.b.scope) = inside;
        let this = self.b.expr(SourceExpr::This);
        let name = self.b.name(name);
        let value = self.b.expr(SourceExpr::Var(var));
        self.b.bind(BindTarget::Member(this, name), value);
    }

    fn foreach(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let mut named = kids.named();
        let element = self.element_of(named.next());
        if let Some(target) = named.next() {
            self.assign(target, element);
        }
    }

    /// `use Trait` in a class.
    fn traits(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for base in kids.named() {
            if let Some(of) = self.ty(base).filter(|_| self.owner().type_like()) {
                let owner = self.b.owner;
                self.b.base(owner, BaseKind::Extends, of, line(base));
            }
        }
    }

    fn property(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let (Some(of), Some(name)) = (kids.field("object"), kids.field("name")) else { return UNKNOWN };
        if name.kind() != "name" {
            // Computed names are unknown.
            self.value(of);
            return UNKNOWN;
        }
        self.member_of(node, "object", "name")
    }

    /// `f(...)` is the function itself.
    fn called_or_referred(
        &mut self,
        node: TreeNode<'t>,
        function: TreeNode<'t>,
        callee: ExprId,
        kids: &NodeChildren<'t>,
    ) -> ExprId {
        let arguments = kids.field("arguments");
        if let Some(list) = arguments
            && self.first(list).is_some_and(|first| first.kind() == "variadic_placeholder")
        {
            self.b.uses(callee, line(node));
            return callee;
        }
        self.made_call(node, function, callee, arguments)
    }

    /// `[$this, 'name']` is a method as a value.
    fn pair_of_method(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let parts: SmallVec<[TreeNode<'t>; 2]> = kids.named().take(3).collect();
        let [of, name] = parts.as_slice() else { return UNKNOWN };
        let (Some(of), Some(name)) = (self.first(*of), self.first(*name)) else { return UNKNOWN };
        if !matches!(of.kind(), "variable_name" | "class_constant_access_expression") || name.kind() != "string" {
            return UNKNOWN;
        }
        let of = self.value(of);
        self.b.member(of, self.text(name).trim_matches('\''))
    }
}
