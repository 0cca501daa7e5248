//! Names bound by imports, assignments, loops and lambdas, and labels that change the visibility of members.

use super::define::is_type;
use super::{QueryDialect, Reader};
use crate::facts::{BaseKind, BindTarget, DefKind, ExprId, ImportKind, SourceExpr, UNKNOWN, Visibility, flag};
use crate::tree::{TreeNode, line, span};
use smallvec::SmallVec;

impl<'t> Reader<'t> {
    /// Declares a variable of the current scope. A second declaration of the same name adds its value to the first.
    pub(super) fn local(&mut self, name: &str, ty: Option<ExprId>, value: ExprId) {
        if name.is_empty() {
            return;
        }
        let name = self.b.name(name);
        let scope = self.b.scope;
        let known = self.b.declared_in(scope, name).is_some();
        let var = self.b.variable_in(scope, name);
        match ty {
            Some(ty) if known => {
                let instance = self.b.expr(SourceExpr::InstanceOf(ty));
                self.b.bind(BindTarget::Var(var), instance);
            }
            Some(ty) => self.b.facts.vars[var].ty = Some(ty),
            None => {}
        }
        self.b.bind(BindTarget::Var(var), value);
    }

    // --- imports ---

    pub(super) fn import(&mut self, node: TreeNode<'t>) {
        self.comments.clear();
        let kids = self.children(node);
        match node.kind() {
            "preproc_include" => {
                let Some(path) = kids.field("path") else { return };
                let text = self.text(path);
                match text.strip_prefix('"') {
                    Some(rest) => self.b.import(rest.trim_end_matches('"'), ImportKind::All, None, line(node)),
                    None => self.b.import(text, ImportKind::Nothing, None, line(node)),
                };
            }
            "using_directive" => {
                let alias = kids.field("name");
                let Some(of) = kids.named().find(|k| Some(*k) != alias && k.kind() != "type_parameter_list") else {
                    return;
                };
                let text: String = self.text(of).trim_start_matches("global::").split_whitespace().collect();
                match alias {
                    Some(alias) => {
                        let (module, symbol) = text.rsplit_once('.').unwrap_or(("", &text));
                        let symbol = self.b.name(symbol);
                        self.b.import(module, ImportKind::Symbol(symbol), Some(self.text(alias)), line(node));
                    }
                    None => {
                        self.b.import(&text, ImportKind::All, None, line(node));
                    }
                }
            }
            "import" => {
                let Some(path) = kids.kind("qualified_identifier") else { return };
                let text: String = self.text(path).split_whitespace().collect();
                if kids.has("*") || self.text(node).trim_end().ends_with(".*") {
                    self.b.import(&text, ImportKind::All, None, line(node));
                } else {
                    let (module, symbol) = text.rsplit_once('.').unwrap_or(("", &text));
                    let called = kids.kind("identifier").map_or(symbol, |n| self.text(n));
                    let symbol = self.b.name(symbol);
                    self.b.import(module, ImportKind::Symbol(symbol), Some(called), line(node));
                }
            }
            "namespace_use_declaration" => {
                let prefix = kids.kind("namespace_name").map_or("", |n| self.text(n));
                let group = kids.field("body").map(|body| self.children(body));
                let clauses = group.as_ref().unwrap_or(&kids);
                for clause in clauses.named().filter(|k| k.kind() == "namespace_use_clause") {
                    self.php_use(clause, prefix);
                }
            }
            _ => self.php_require(node),
        }
    }

    fn php_use(&mut self, clause: TreeNode<'t>, prefix: &str) {
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
    fn php_require(&mut self, node: TreeNode<'t>) {
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

    // --- assignments ---

    pub(super) fn assignment(&mut self, node: TreeNode<'t>) -> ExprId {
        if let Some(made) = self.made.get(&node.id()) {
            return *made;
        }
        let kids = self.children(node);
        let (Some(left), Some(right)) = (kids.field("left"), kids.field("right")) else { return UNKNOWN };
        let value = self.used(right);
        self.made.insert(node.id(), value);
        // Ruby's constants are symbols.
        if left.kind() == "constant" && !self.owner().callable() && node.kind() == "assignment" {
            let name = self.text(left);
            self.variable(name, node, &kids, None, None, flag::CONSTANT);
            self.local(name, None, value);
        } else {
            self.assign(left, value);
        }
        value
    }

    pub(super) fn assign(&mut self, target: TreeNode<'t>, value: ExprId) {
        self.deeper((), |reader| reader.assign_inner(target, value));
    }

    fn assign_inner(&mut self, target: TreeNode<'t>, value: ExprId) {
        match target.kind() {
            "identifier" if self.language == QueryDialect::Ruby => {
                let name = self.text(target);
                if self.is_local(name) {
                    self.b.bind_name(name, value);
                } else {
                    self.local(name, None, value);
                }
            }
            "variable_name" => {
                let name = self.text(target);
                self.local(name, None, value);
            }
            "variable_declaration" => {
                let kids = self.children(target);
                let ty = kids.named().find(|k| is_type(k.kind())).and_then(|ty| self.ty(ty));
                if let Some(name) = kids.kind("identifier") {
                    self.local(self.text(name), ty, value);
                }
            }
            "identifier" | "name" | "global_variable" | "constant" => {
                let name = self.text(target);
                self.b.bind_name(name, value);
            }
            "instance_variable" | "class_variable" => {
                let this = self.this();
                let name = self.b.name(self.text(target));
                self.b.bind(BindTarget::Member(this, name), value);
            }
            "tuple_pattern"
            | "tuple_expression"
            | "left_assignment_list"
            | "list_literal"
            | "destructured_parameter"
            | "destructured_left_assignment"
            | "structured_binding_declarator"
            | "multi_variable_declaration" => {
                let kids = self.children(target);
                let declares = matches!(target.kind(), "tuple_pattern" | "structured_binding_declarator");
                for (index, part) in kids.named().enumerate() {
                    let at = match value {
                        UNKNOWN => UNKNOWN,
                        _ => self.b.expr(SourceExpr::AtIndex(value, index as u32)),
                    };
                    if declares && part.kind() == "identifier" {
                        self.local(self.text(part), None, at);
                    } else {
                        self.assign(part, at);
                    }
                }
            }
            "argument"
            | "array_element_initializer"
            | "pair"
            | "rest_assignment"
            | "parenthesized_expression"
            | "by_ref"
            | "pointer_expression" => {
                if let Some(inner) = self.last(target) {
                    self.assign(inner, value);
                }
            }
            // `x.y = v` in Ruby: calls the method that `attr_writer` defines.
            "call" => {
                let kids = self.children(target);
                let (Some(of), Some(name)) = (kids.field("receiver"), kids.field("method")) else { return };
                self.made.insert(target.id(), UNKNOWN);
                let of = self.value(of);
                let name = self.b.name(&format!("@{}", self.text(name)));
                self.b.bind(BindTarget::Member(of, name), value);
            }
            "subscript_expression" | "element_access_expression" | "index_expression" | "element_reference" => {
                if let Some(of) = self.first(target) {
                    let of = self.value(of);
                    self.b.bind(BindTarget::Element(of), value);
                }
            }
            _ => {
                let place = self.value(target);
                if let SourceExpr::Member(of, name) = self.b.facts.expr(place) {
                    self.b.bind(BindTarget::Member(of, name), value);
                }
            }
        }
    }

    // --- loops, exceptions, returns ---

    pub(super) fn each(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let (target, over) = match self.language {
            QueryDialect::Cpp => (kids.field("declarator"), kids.field("right")),
            QueryDialect::CSharp => (kids.field("left"), kids.field("right")),
            QueryDialect::Ruby => {
                let over = kids.field("value").and_then(|inside| self.first(inside));
                (kids.field("pattern"), over)
            }
            QueryDialect::Php => {
                let mut named = kids.named();
                let over = named.next();
                (named.next(), over)
            }
            _ => {
                let target = kids.named().find(|k| k.kind().ends_with("variable_declaration"));
                let over = kids.named().skip_while(|k| Some(*k) != target).nth(1);
                (target, over)
            }
        };
        let over = over.map_or(UNKNOWN, |over| self.used(over));
        let element = if over == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::Element(over)) };
        let Some(target) = target else { return };
        let ty = kids.field("type").and_then(|ty| self.ty(ty));
        if self.c_like() {
            let declared = self.declarator(target);
            match declared.parts {
                Some(parts) => self.assign(parts, element),
                None => self.local(declared.name, ty, element),
            }
        } else if target.kind() == "identifier" && self.language != QueryDialect::Ruby {
            self.local(self.text(target), ty, element);
        } else {
            self.assign(target, element);
        }
    }

    /// Declares a typed name inside a function: a caught exception, a match of a pattern, an `out` argument.
    pub(super) fn caught(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        match node.kind() {
            "catch_clause" if self.c_like() => {
                let Some(list) = kids.field("parameters") else { return };
                let Some(parameter) = self.first(list) else { return };
                let parts = self.children(parameter);
                let ty = parts.field("type").and_then(|ty| self.ty(ty));
                if let Some(declarator) = parts.field("declarator") {
                    let declared = self.declarator(declarator);
                    self.local(declared.name, ty, UNKNOWN);
                }
            }
            "rescue" => {
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
            _ => {
                let name = kids.field("name").or_else(|| kids.kind("identifier"));
                let ty = kids.field("type").or_else(|| kids.kind("user_type"));
                let ty = ty.and_then(|ty| self.ty(ty));
                if let Some(name) = name {
                    self.local(self.text(name), ty, UNKNOWN);
                }
            }
        }
    }

    pub(super) fn returned(&mut self, node: TreeNode<'t>) {
        if self.frames.iter().rev().take_while(|f| f.before.0 == self.b.owner).any(|f| f.returns) {
            return;
        }
        // `return@label` may return from a lambda only.
        if self.text(node).starts_with("return@") {
            return;
        }
        let Some(mut value) = self.last(node) else { return };
        if value.kind() == "argument_list" {
            let Some(inner) = self.first(value) else { return };
            value = inner;
        }
        if node.kind() == "yield_statement" || node.kind() == "yield_expression" {
            let owner = self.b.owner;
            self.b.def(owner).flags |= flag::GENERATOR;
        }
        let yields = node.kind().starts_with("yield");
        let ty = self.b.facts.def(self.b.owner).result.filter(|_| value.kind().starts_with("implicit_object"));
        let value = self.used_as(value, ty);
        self.b.returns(value, yields);
    }

    // --- lambdas and blocks ---

    /// Reads a lambda. Its calls are attributed to the enclosing definition; only its parameters are its own.
    pub(super) fn lambda(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let element = self.elements.get(&node.id()).copied().unwrap_or(UNKNOWN);
        // In Ruby and Kotlin, `return` returns from the enclosing function.
        let returns = self.language != QueryDialect::Ruby
            && (self.language != QueryDialect::Kotlin || node.kind() == "anonymous_function");
        let frame = self.open_scope(node.end_byte());
        frame.lambda = true;
        frame.returns = returns;
        let list = match node.kind() {
            "lambda_literal" => kids.kind("lambda_parameters"),
            "anonymous_function" if self.language == QueryDialect::Kotlin => kids.kind("function_value_parameters"),
            "lambda_expression" if self.language == QueryDialect::Cpp => {
                kids.field("declarator").and_then(|d| self.children(d).field("parameters"))
            }
            _ => kids.field("parameters"),
        };
        let Some(list) = list else {
            if node.kind() == "lambda_literal" {
                self.local("it", None, element);
            }
            return;
        };
        if matches!(list.kind(), "implicit_parameter" | "identifier") {
            return self.local(self.text(list), None, element);
        }
        let inner = self.children(list);
        for (index, parameter) in inner.named().enumerate() {
            let value = if index == 0 { element } else { UNKNOWN };
            if matches!(parameter.kind(), "identifier") {
                self.local(self.text(parameter), None, value);
                continue;
            }
            if matches!(
                parameter.kind(),
                "variable_declaration" | "multi_variable_declaration" | "destructured_parameter"
            ) {
                self.assign(parameter, value);
                continue;
            }
            let parts = self.children(parameter);
            let ty = parts.field("type").or_else(|| parts.named().find(|k| is_type(k.kind())));
            let ty = ty.and_then(|ty| self.ty(ty));
            if let Some(declarator) = parts.field("declarator") {
                let declared = self.declarator(declarator);
                self.local(declared.name, ty, value);
            } else if let Some(name) = parts.field("name").or_else(|| parts.kind("identifier")) {
                self.local(self.text(name), ty, value);
            }
        }
    }

    pub(super) fn statics(&mut self, node: TreeNode<'t>) {
        let before = (self.b.owner, self.b.scope);
        self.frame(node.end_byte(), before).statics = true;
    }

    /// `public:` in C++; without the colon it belongs to a base class.
    pub(super) fn access(&mut self, node: TreeNode<'t>) {
        let after = self.b.text.get(node.end_byte()..).unwrap_or("").trim_start();
        if !self.text(node).ends_with(':') && !after.starts_with(':') {
            return;
        }
        let visibility = match self.text(node).trim_end_matches(':').trim() {
            "private" => Visibility::Private,
            "protected" => Visibility::Protected,
            _ => Visibility::Public,
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.visibility = visibility;
        }
    }

    // --- other ---

    /// Records uses: values in lists and references to functions.
    pub(super) fn mentioned(&mut self, node: TreeNode<'t>) {
        if node.kind() == "callable_reference" {
            self.used(node);
            return;
        }
        let kids = self.children(node);
        for kid in kids.named() {
            let value = match kid.kind() {
                "initializer_pair" => self.children(kid).field("value"),
                "array_element_initializer" => self.last(kid),
                _ => Some(kid),
            };
            if let Some(value) = value
                && !matches!(value.kind(), "initializer_list" | "call_expression" | "assignment_expression")
            {
                self.used(value);
            }
        }
    }

    /// Ruby `alias a b`, PHP `use Trait`, C++ `using a::b`.
    pub(super) fn alias(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        match self.language {
            QueryDialect::Ruby => {
                if let (Some(name), Some(of)) = (kids.field("name"), kids.field("alias")) {
                    self.no_call(name);
                    self.no_call(of);
                    self.second_name(self.text(name), self.text(of), node);
                }
            }
            QueryDialect::Php => {
                for base in kids.named() {
                    if let Some(of) = self.ty(base).filter(|_| self.owner().type_like()) {
                        let owner = self.b.owner;
                        self.b.base(owner, BaseKind::Extends, of, line(base));
                    }
                }
            }
            _ => {
                if kids.has("namespace") {
                    return;
                }
                if let Some(path) = kids.kind("qualified_identifier") {
                    let name = self.last_name(path);
                    let value = self.path(path);
                    // A plain name would refer to itself.
                    if matches!(self.b.facts.expr(value), SourceExpr::Member(..)) {
                        self.local(name, None, value);
                    }
                }
            }
        }
    }

    /// Defines a method under a second name.
    pub(super) fn second_name(&mut self, name: &'t str, of: &'t str, node: TreeNode<'t>) {
        let kind = if self.owner() == DefKind::File { DefKind::Function } else { DefKind::Method };
        let def = self.b.add_def(name, kind, span(node));
        let signature = crate::tree::one_line(self.text(node));
        let d = self.b.def(def);
        d.signature = signature.into();
        d.flags |= flag::EXPORTED;
        let value = self.b.read(of);
        self.local(name, None, value);
    }
}
