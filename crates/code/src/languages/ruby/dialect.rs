//! The syntax of Ruby, for the reader that it shares with other languages.

use crate::facts::{BindTarget, Def, DefId, DefKind, ExprId, SourceExpr, UNKNOWN, VarKind, flag};
use crate::lang::query_based::{LambdaHead, QueryDialect, QueryReader, QueryTag};
use crate::tree::{NodeChildren, TreeNode};
use smallvec::SmallVec;

pub(super) struct RubyDialect;

impl QueryDialect for RubyDialect {
    fn visit<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, tag: QueryTag) -> bool {
        match tag {
            QueryTag::Define(DefKind::Function) => reader.method(node),
            QueryTag::Each => reader.for_loop(node),
            QueryTag::Caught => reader.rescue(node),
            QueryTag::Alias => reader.alias(node),
            _ => return false,
        }
        true
    }

    fn value<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>) -> Option<ExprId> {
        match node.kind() {
            "identifier" => Some(reader.bare_name(node)),
            "instance_variable" | "class_variable" => {
                let this = reader.this();
                let name = reader.text(node);
                Some(reader.b.member(this, name))
            }
            _ => None,
        }
    }

    fn call<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> Option<ExprId> {
        match node.kind() {
            "super" => Some(reader.call_of_super(node, None)),
            "call" => Some(reader.method_call(node, kids)),
            _ => None,
        }
    }

    fn assign<'t>(&self, reader: &mut QueryReader<'t>, target: TreeNode<'t>, value: ExprId) -> bool {
        match target.kind() {
            "identifier" => {
                let name = reader.text(target);
                if reader.is_local(name) {
                    reader.b.bind_name(name, value);
                } else {
                    reader.local(name, None, value);
                }
            }
            "instance_variable" | "class_variable" => {
                let this = reader.this();
                let name = reader.text(target);
                let name = reader.b.name(name);
                reader.b.bind(BindTarget::Member(this, name), value);
            }
            // `x.y = v` calls the method that `attr_writer` defines.
            "call" => {
                let kids = reader.children(target);
                let (Some(of), Some(name)) = (kids.field("receiver"), kids.field("method")) else { return true };
                reader.made.insert(target.id(), UNKNOWN);
                let of = reader.value(of);
                let name = format!("@{}", reader.text(name));
                let name = reader.b.name(&name);
                reader.b.bind(BindTarget::Member(of, name), value);
            }
            _ => return false,
        }
        true
    }

    fn parameter<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, _place: u16) -> bool {
        match node.kind() {
            "hash_splat_parameter" => _ = reader.named_parameter(node, Some(VarKind::Keywords)),
            "block_parameter" => {
                let (name, ty) = reader.name_and_type(node);
                reader.local(name, ty, UNKNOWN);
            }
            "destructured_parameter" => {
                let var = reader.b.param("", None, None);
                let whole = reader.b.expr(SourceExpr::Var(var));
                reader.assign(node, whole);
            }
            _ => return false,
        }
        true
    }

    fn receiver_is_the_type(&self, inside: &Def) -> bool {
        inside.is(flag::STATIC) || !inside.kind.callable()
    }

    fn is_doc(&self, comment: &str) -> bool {
        !comment.starts_with("#!") && !comment.contains("frozen_string_literal:")
    }

    fn signature_end<'t>(&self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> Option<usize> {
        let heads = ["name", "parameters", "superclass"].into_iter().filter_map(|field| kids.field(field));
        Some(heads.map(|n| n.end_byte()).max().unwrap_or(node.end_byte()))
    }

    fn modules_have_methods(&self) -> bool {
        true
    }

    fn is_constructor(&self, name: &str, _outer: DefKind, _name_of_outer: &str) -> bool {
        name == "initialize"
    }

    fn is_test_case(&self, reader: &QueryReader<'_>, name: &str, _def: DefId, _name_of_outer: &str) -> bool {
        reader.test_file && name.starts_with("test_")
    }

    /// The last statement.
    fn result_of<'t>(&self, reader: &mut QueryReader<'t>, body: TreeNode<'t>) -> Option<TreeNode<'t>> {
        match body.kind() {
            "body_statement" => reader.last(body).filter(|n| !matches!(n.kind(), "rescue" | "ensure" | "else")),
            _ => Some(body),
        }
    }

    fn lambda<'t>(&self, _node: TreeNode<'t>, kids: &NodeChildren<'t>) -> LambdaHead<'t> {
        LambdaHead { parameters: kids.field("parameters"), implicit: None, returns: false }
    }

    fn containers_call_lambdas(&self) -> bool {
        true
    }
}

impl<'t> QueryReader<'t> {
    fn method(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let head = self.head(&kids, if node.kind() == "singleton_method" { flag::STATIC } else { 0 });
        self.function_of(node, &kids, head);
        if let Some(name) = kids.field("name") {
            self.no_call(name);
        }
    }

    /// Marks a name as not a call, because it only names something.
    fn no_call(&mut self, node: TreeNode<'t>) {
        self.made.insert(node.id(), UNKNOWN);
        if node.kind() == "setter"
            && let Some(name) = self.first(node)
        {
            self.made.insert(name.id(), UNKNOWN);
        }
    }

    fn for_loop(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let over = kids.field("value").and_then(|inside| self.first(inside));
        let element = self.element_of(over);
        if let Some(target) = kids.field("pattern") {
            self.assign(target, element);
        }
    }

    fn rescue(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let classes = kids.field("exceptions").map(|list| self.children(list));
        let types: SmallVec<[ExprId; 4]> =
            classes.iter().flat_map(|list| list.named()).filter_map(|class| self.ty(class)).collect();
        let ty = self.b.either(&types);
        let variable = kids.field("variable").and_then(|variable| self.first(variable));
        if let Some(variable) = variable {
            let value = if ty == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::InstanceOf(ty)) };
            self.assign(variable, value);
        }
    }

    fn alias(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        if let (Some(name), Some(of)) = (kids.field("name"), kids.field("alias")) {
            self.no_call(name);
            self.no_call(of);
            self.second_name(self.text(name), self.text(of), node);
        }
    }
}
