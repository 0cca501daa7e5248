//! Calls and bare names: many of Ruby's declarations are calls.

use crate::facts::{BaseKind, CallKind, DefKind, ExprId, ImportKind, SourceExpr, UNKNOWN, Visibility, flag};
use crate::lang::query_based::QueryReader;
use crate::tree::{NodeChildren, TreeNode, line, one_line, span};

impl<'t> QueryReader<'t> {
    /// A bare name that is not a local is a call.
    pub(super) fn bare_name(&mut self, node: TreeNode<'t>) -> ExprId {
        let name = self.text(node);
        if self.is_local(name) {
            return self.b.read(name);
        }
        if let Some(made) = self.made.get(&node.id()) {
            return *made;
        }
        if matches!(name, "__method__" | "__FILE__" | "__LINE__" | "__dir__" | "block_given?" | "lambda" | "proc") {
            return UNKNOWN;
        }
        if !self.owner().callable() {
            let visibility = match name {
                "private" | "private_class_method" => Some(Visibility::Private),
                "protected" => Some(Visibility::Protected),
                "public" => Some(Visibility::Public),
                "module_function" => None,
                _ => return self.call_of_name(node, name),
            };
            if let Some(frame) = self.frames.last_mut() {
                match visibility {
                    Some(visibility) => frame.visibility = visibility,
                    None => frame.statics = true,
                }
            }
            return UNKNOWN;
        }
        self.call_of_name(node, name)
    }

    fn call_of_name(&mut self, node: TreeNode<'t>, name: &str) -> ExprId {
        let value = if name == "new" {
            let callee = self.b.expr(SourceExpr::ThisType);
            self.b.call(callee, CallKind::New, &[], span(node))
        } else {
            let callee = self.bare(name);
            self.b.call(callee, CallKind::Plain, &[], span(node))
        };
        self.made.insert(node.id(), value);
        value
    }

    pub(super) fn call_of_super(&mut self, node: TreeNode<'t>, arguments: Option<TreeNode<'t>>) -> ExprId {
        let owner = self.b.facts.def(self.b.owner);
        if !owner.kind.callable() {
            return UNKNOWN;
        }
        // `super` calls the method of the same name.
        let name = owner.name;
        let of = self.b.expr(SourceExpr::Super);
        let callee = self.b.expr(SourceExpr::Member(of, name));
        let args = self.arguments(arguments);
        self.b.call(callee, CallKind::Plain, &args, span(node))
    }

    pub(super) fn method_call(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> ExprId {
        let arguments = kids.field("arguments");
        let Some(method) = kids.field("method") else {
            // `f.(x)` calls the value of `f`.
            let callee = kids.field("receiver").map_or(UNKNOWN, |n| self.value(n));
            let callee = if callee == UNKNOWN { UNKNOWN } else { self.b.member(callee, "call") };
            return self.made_call(node, node, callee, arguments);
        };
        self.made.insert(method.id(), UNKNOWN);
        if method.kind() == "super" {
            return self.call_of_super(node, arguments);
        }
        let name = self.text(method);
        let Some(receiver) = kids.field("receiver") else {
            if self.declaring_call(name, node, arguments) {
                return UNKNOWN;
            }
            if name == "new" {
                let args = self.arguments(arguments);
                let callee = self.b.expr(SourceExpr::ThisType);
                return self.b.call(callee, CallKind::New, &args, span(node));
            }
            let callee = if method.kind() == "constant" { self.b.read(name) } else { self.bare(name) };
            return self.made_call(node, method, callee, arguments);
        };
        if receiver.kind() == "self" && name == "class" {
            return self.b.expr(SourceExpr::ThisType);
        }
        let of = self.value(receiver);
        if name == "new" {
            let args = self.arguments(arguments);
            let of =
                if matches!(self.b.facts.expr(of), SourceExpr::This) { self.b.expr(SourceExpr::ThisType) } else { of };
            let mut at = span(node);
            at.line = line(method);
            return self.b.call(of, CallKind::New, &args, at);
        }
        let callee = self.b.member(of, name);
        if let Some(block) = kids.field("block") {
            self.lambdas(callee, Some(block));
        }
        self.made_call(node, method, callee, arguments)
    }

    /// Handles methods that declare; returns whether the name is one of them here.
    fn declaring_call(&mut self, name: &str, node: TreeNode<'t>, arguments: Option<TreeNode<'t>>) -> bool {
        let Some(arguments) = arguments else { return false };
        match name {
            "require" | "require_relative" | "load" => {
                let Some(path) = self.first(arguments).filter(|n| n.kind() == "string") else { return false };
                let path = self.text(path).trim_matches(['"', '\'']);
                let module = if name == "require_relative" && !path.starts_with('.') {
                    format!("./{path}")
                } else {
                    path.to_owned()
                };
                self.b.import(&module, ImportKind::All, None, line(node));
                true
            }
            "autoload" => {
                let path = self.last(arguments).map_or("", |n| self.text(n)).trim_matches(['"', '\'']);
                self.b.import(path, ImportKind::All, None, line(node));
                true
            }
            _ if self.owner().callable() => false,
            "include" | "extend" | "prepend" if self.owner() != DefKind::File => {
                let inner = self.children(arguments);
                for base in inner.named().filter(|k| matches!(k.kind(), "constant" | "scope_resolution")) {
                    if let Some(of) = self.ty(base) {
                        let owner = self.b.owner;
                        self.b.base(owner, BaseKind::Extends, of, line(base));
                    }
                }
                true
            }
            "attr_reader" | "attr_accessor" | "attr_writer" | "attr" => {
                self.attributes(name, node, arguments);
                true
            }
            "private" | "protected" | "public" | "private_class_method" | "module_function" | "private_constant" => {
                self.visibility_of(name, arguments);
                true
            }
            "alias_method" => {
                let (Some(name), Some(of)) = (self.first(arguments), self.last(arguments)) else { return true };
                let (name, of) = (self.text(name), self.text(of));
                self.second_name(name.trim_start_matches(':'), of.trim_start_matches(':'), node);
                true
            }
            _ => {
                // `before_action :name`: the symbol names a method of the class.
                let inner = self.children(arguments);
                for symbol in inner.named().filter(|k| k.kind() == "simple_symbol") {
                    let used = self.bare(self.text(symbol).trim_start_matches(':'));
                    self.b.uses(used, line(symbol));
                }
                false
            }
        }
    }

    /// Defines a method under a second name.
    pub(super) fn second_name(&mut self, name: &'t str, of: &'t str, node: TreeNode<'t>) {
        let kind = if self.owner() == DefKind::File { DefKind::Function } else { DefKind::Method };
        let def = self.b.add_def(name, kind, span(node));
        let signature = one_line(self.text(node));
        let d = self.b.def(def);
        d.signature = signature.into();
        d.flags |= flag::EXPORTED;
        let value = self.b.read(of);
        self.local(name, None, value);
    }

    /// `attr_reader :name` defines a method that returns `@name`.
    fn attributes(&mut self, word: &str, node: TreeNode<'t>, arguments: TreeNode<'t>) {
        let inner = self.children(arguments);
        for symbol in inner.named().filter(|k| k.kind() == "simple_symbol") {
            let name = self.text(symbol).trim_start_matches(':');
            let own_name = if word == "attr_writer" { format!("{name}=") } else { name.to_owned() };
            let kids = self.children(symbol);
            let def = self.define(&own_name, DefKind::Method, node, &kids);
            self.b.def(def).signature = format!("{word} :{name}").into();
            let scope = self.b.scope;
            self.b.declare_def(scope, def);
            if word != "attr_writer" {
                let before = self.b.enter_def(def, false);
                let this = self.b.expr(SourceExpr::This);
                let value = self.b.member(this, &format!("@{name}"));
                self.b.returns(value, false);
                self.b.leave_def(before);
            }
        }
    }

    /// `private def …`, `private :a, :b`.
    fn visibility_of(&mut self, word: &str, arguments: TreeNode<'t>) {
        let visibility = match word {
            "public" | "module_function" => Visibility::Public,
            "protected" => Visibility::Protected,
            _ => Visibility::Private,
        };
        let inner = self.children(arguments);
        for argument in inner.named() {
            if argument.kind() != "simple_symbol" {
                self.hidden = Some((argument.end_byte(), visibility));
                continue;
            }
            let name = self.text(argument).trim_start_matches(':');
            let name = self.b.name(name);
            let owner = self.b.owner;
            for def in self.b.facts.defs.iter_mut().filter(|d| d.parent == owner && d.name == name) {
                def.visibility = visibility;
                if visibility != Visibility::Public {
                    def.flags &= !flag::EXPORTED;
                }
            }
        }
    }
}
