//! Values and calls, read on demand from their nodes.

use super::define::place;
use super::{QueryDialect, Reader};
use crate::facts::{
    Arg, ArgKind, BindTarget, CallKind, DefKind, ExprId, ExprItem, ImportKind, ItemKey, SourceExpr, UNKNOWN,
    Visibility, flag,
};
use crate::tree::{NodeChildren, TreeNode, line, span};
use smallvec::SmallVec;

type Args = SmallVec<[Arg; 6]>;

/// Methods that call a lambda with each element of their receiver.
fn per_element(name: &str) -> bool {
    matches!(
        name,
        "each"
            | "map"
            | "flat_map"
            | "select"
            | "reject"
            | "find"
            | "detect"
            | "any?"
            | "all?"
            | "none?"
            | "each_with_index"
            | "sort_by"
            | "group_by"
            | "filter_map"
            | "each_with_object"
            | "sum"
            | "min_by"
            | "max_by"
            | "forEach"
            | "mapNotNull"
            | "flatMap"
            | "filter"
            | "filterNot"
            | "firstOrNull"
            | "first"
            | "any"
            | "all"
            | "none"
            | "forEachIndexed"
            | "sortedBy"
            | "associateBy"
            | "groupBy"
            | "onEach"
            | "sumOf"
            | "partition"
            | "Select"
            | "Where"
            | "ForEach"
            | "Any"
            | "All"
            | "First"
            | "FirstOrDefault"
            | "Single"
            | "SingleOrDefault"
            | "SelectMany"
            | "OrderBy"
            | "OrderByDescending"
            | "GroupBy"
            | "ToDictionary"
            | "Sum"
            | "Count"
    )
}

/// Methods that call a lambda with their receiver.
fn per_object(name: &str) -> bool {
    matches!(name, "let" | "also" | "tap" | "then" | "takeIf" | "takeUnless")
}

impl<'t> Reader<'t> {
    /// An instance of the enclosing type; in a static member, the type itself.
    pub(super) fn this(&mut self) -> ExprId {
        let owner = self.b.facts.def(self.b.owner);
        let of_type = self.language == QueryDialect::Ruby && (owner.is(flag::STATIC) || !owner.kind.callable());
        self.b.expr(if of_type { SourceExpr::ThisType } else { SourceExpr::This })
    }

    pub(super) fn value(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.value_inner(node))
    }

    /// Reads a value and records a reference to the symbol it names.
    pub(super) fn used(&mut self, node: TreeNode<'t>) -> ExprId {
        let value = self.value(node);
        if matches!(self.b.facts.expr(value), SourceExpr::Free(_) | SourceExpr::Member(..)) {
            self.b.uses(value, line(node));
        }
        value
    }

    /// Reads the value of a variable with a declared type. Values without an explicit type take the declared one.
    pub(super) fn used_as(&mut self, node: TreeNode<'t>, ty: Option<ExprId>) -> ExprId {
        let Some(ty) = ty else { return self.used(node) };
        match node.kind() {
            "implicit_object_creation_expression" => {
                let arguments = self.children(node).kind("argument_list");
                let args = self.arguments(arguments);
                let value = self.b.call(ty, CallKind::New, &args, span(node));
                self.made.insert(node.id(), value);
                value
            }
            // `T x(a)` and `T x{a}` in C++.
            "argument_list" => {
                let args = self.arguments(Some(node));
                self.b.call(ty, CallKind::New, &args, span(node))
            }
            "initializer_list" => self.initialized(node, ty),
            _ => self.used(node),
        }
    }

    fn initialized(&mut self, node: TreeNode<'t>, ty: ExprId) -> ExprId {
        let kids = self.children(node);
        let mut items: SmallVec<[ExprItem; 8]> = SmallVec::new();
        let mut named = false;
        for kid in kids.named() {
            let parts = self.children(kid);
            let designator = parts.field("designator").filter(|d| d.kind() == "field_designator");
            let (key, value) = match (designator, parts.field("value")) {
                (Some(designator), Some(value)) => {
                    named = true;
                    let name = self.text(designator).trim_start_matches('.').trim();
                    (ItemKey::Name(self.b.name(name)), value)
                }
                _ => (ItemKey::Next, kid),
            };
            let value = match value.kind() {
                "initializer_list" | "initializer_pair" => UNKNOWN,
                _ => self.value(value),
            };
            items.push(ExprItem { key, value });
        }
        if self.language == QueryDialect::Cpp && !named {
            if matches!(self.b.facts.expr(ty), SourceExpr::Generic(..)) {
                return UNKNOWN;
            }
            let args: Args = items.iter().map(|item| place(item.value)).collect();
            return self.b.call(ty, CallKind::New, &args, span(node));
        }
        if !named {
            return UNKNOWN;
        }
        let items = self.b.items(&items);
        self.b.expr(SourceExpr::Construct(ty, items))
    }

    fn value_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "identifier" if self.language == QueryDialect::Ruby => self.ruby_name(node),
            "identifier"
            | "name"
            | "constant"
            | "type_identifier"
            | "namespace_identifier"
            | "field_identifier"
            | "global_variable" => match self.text(node) {
                "nullptr" | "NULL" | "null" | "true" | "false" => UNKNOWN,
                name => self.b.read(name),
            },
            "variable_name" => match self.text(node) {
                "$this" => self.b.expr(SourceExpr::This),
                name => self.b.read(name),
            },
            "this" | "this_expression" | "self" => self.this(),
            "base" | "super_expression" => self.b.expr(SourceExpr::Super),
            "relative_scope" => match self.text(node) {
                "parent" => self.b.expr(SourceExpr::Super),
                _ => self.b.expr(SourceExpr::ThisType),
            },
            "instance_variable" | "class_variable" => {
                let this = self.this();
                self.b.member(this, self.text(node))
            }
            "field_expression" => self.member_of(node, "argument", "field"),
            "member_access_expression" if self.language == QueryDialect::CSharp => {
                self.member_of(node, "expression", "name")
            }
            "member_access_expression" | "nullsafe_member_access_expression" => self.member_of(node, "object", "name"),
            "scoped_property_access_expression" => self.member_of(node, "scope", "name"),
            "conditional_access_expression" => {
                let kids = self.children(node);
                let of = kids.field("condition").map_or(UNKNOWN, |n| self.value(n));
                let before = std::mem::replace(&mut self.conditional, of);
                let value = kids.named().nth(1).map_or(UNKNOWN, |n| self.value(n));
                self.conditional = before;
                value
            }
            "member_binding_expression" => {
                let name = self.children(node).field("name").map_or("", |n| self.last_name(n));
                let of = self.conditional;
                if of == UNKNOWN { UNKNOWN } else { self.b.member(of, name) }
            }
            "navigation_expression" => {
                let kids = self.children(node);
                let mut named = kids.named();
                let (Some(of), Some(name)) = (named.next(), named.next_back()) else { return UNKNOWN };
                let of = self.without_sign(of);
                let of = self.value(of);
                self.b.member(of, self.text(name))
            }
            "class_constant_access_expression" => {
                let kids = self.children(node);
                let mut named = kids.named();
                let (Some(of), Some(name)) = (named.next(), named.next()) else { return UNKNOWN };
                let of = self.value(of);
                match self.text(name) {
                    "class" => of,
                    name => self.b.member(of, name),
                }
            }
            "qualified_identifier"
            | "qualified_name"
            | "scope_resolution"
            | "template_function"
            | "template_type"
            | "generic_name"
            | "alias_qualified_name"
            | "template_method" => self.path(node),
            "call_expression"
            | "invocation_expression"
            | "function_call_expression"
            | "member_call_expression"
            | "nullsafe_member_call_expression"
            | "scoped_call_expression"
            | "object_creation_expression"
            | "new_expression"
            | "call"
            | "super"
            | "compound_literal_expression"
            | "infix_expression" => self.call(node),
            "assignment_expression" | "assignment" | "operator_assignment" => self.assignment(node),
            "parenthesized_expression"
            | "parenthesized_statements"
            | "clone_expression"
            | "callable_reference"
            | "postfix_unary_expression"
            | "unary_expression"
            | "reference_assignment_expression"
            | "then" => {
                let kids = self.children(node);
                if kids.all().any(|k| matches!(k.kind(), "-" | "+" | "~" | "++" | "--"))
                    || (kids.has("!") && node.kind() == "unary_expression")
                {
                    return UNKNOWN;
                }
                kids.named().next_back().map_or(UNKNOWN, |n| self.value(n))
            }
            "await_expression" => self.last(node).map_or(UNKNOWN, |n| self.value(n)),
            "pointer_expression" => self.children(node).field("argument").map_or(UNKNOWN, |n| self.value(n)),
            "subscript_expression" | "element_access_expression" | "index_expression" | "element_reference" => {
                let of = self.first(node).map_or(UNKNOWN, |n| self.value(n));
                if of == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::Element(of)) }
            }
            "cast_expression" => {
                let ty = self.children(node).field("type").and_then(|ty| self.ty(ty));
                self.instance(ty)
            }
            "as_expression" => {
                let ty = self.children(node).field("right").and_then(|ty| self.ty(ty));
                self.instance(ty)
            }
            "conditional_expression" | "conditional" => {
                let kids = self.children(node);
                let yes = kids.field("consequence").or_else(|| kids.field("body"));
                let yes = yes.map_or(UNKNOWN, |n| self.used(n));
                let no = kids.field("alternative").map_or(UNKNOWN, |n| self.used(n));
                self.b.either(&[yes, no])
            }
            "binary_expression" | "binary" => {
                let kids = self.children(node);
                if !kids.all().any(|k| matches!(k.kind(), "??" | "?:" | "||" | "or")) {
                    return UNKNOWN;
                }
                let left = kids.field("left").map_or(UNKNOWN, |n| self.used(n));
                let right = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
                self.b.either(&[left, right])
            }
            "array_creation_expression" => self.php_callable(node),
            "object_literal" => {
                let class = self.nameless(node);
                self.b.expr(SourceExpr::InstanceOf(class))
            }
            _ => UNKNOWN,
        }
    }

    /// An anonymous class, which is defined when the query reaches it.
    fn nameless(&mut self, node: TreeNode<'t>) -> ExprId {
        let name = self.b.name("<anonymous>");
        let class = self.b.expr(SourceExpr::Free(name));
        self.elements.insert(node.id(), class);
        class
    }

    fn instance(&mut self, ty: Option<ExprId>) -> ExprId {
        ty.map_or(UNKNOWN, |ty| self.b.expr(SourceExpr::InstanceOf(ty)))
    }

    fn member_of(&mut self, node: TreeNode<'t>, of: &str, name: &str) -> ExprId {
        let kids = self.children(node);
        let (Some(of), Some(name)) = (kids.field(of), kids.field(name)) else { return UNKNOWN };
        let of = self.value(of);
        // Computed names are unknown.
        if self.language == QueryDialect::Php
            && name.kind() != "name"
            && node.kind() != "scoped_property_access_expression"
        {
            return UNKNOWN;
        }
        let name = self.last_name(name).trim_start_matches('$');
        self.b.member(of, name)
    }

    /// `[$this, 'name']` is a method as a value.
    fn php_callable(&mut self, node: TreeNode<'t>) -> ExprId {
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

    /// In Ruby, a bare name that is not a local is a call.
    fn ruby_name(&mut self, node: TreeNode<'t>) -> ExprId {
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
                _ => return self.ruby_call_of(node, name),
            };
            if let Some(frame) = self.frames.last_mut() {
                match visibility {
                    Some(visibility) => frame.visibility = visibility,
                    None => frame.statics = true,
                }
            }
            return UNKNOWN;
        }
        self.ruby_call_of(node, name)
    }

    fn ruby_call_of(&mut self, node: TreeNode<'t>, name: &str) -> ExprId {
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

    // --- calls ---

    pub(super) fn call(&mut self, node: TreeNode<'t>) -> ExprId {
        if let Some(made) = self.made.get(&node.id()) {
            return *made;
        }
        // If the nesting is too deep now, it is read again when the query reaches it.
        let Some(value) = self.deeper(None, |reader| Some(reader.call_inner(node))) else { return UNKNOWN };
        self.made.insert(node.id(), value);
        value
    }

    fn call_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        match node.kind() {
            "call_expression" if self.language == QueryDialect::Kotlin => self.kotlin_call(node, &kids),
            "call_expression" => self.c_call(node, &kids),
            "invocation_expression" => {
                let Some(function) = kids.field("function") else { return UNKNOWN };
                if function.kind() == "identifier" && self.text(function) == "nameof" {
                    return UNKNOWN;
                }
                let callee = self.callee(function);
                // The value of `task.ConfigureAwait(false)` is the task.
                if let SourceExpr::Member(of, name) = self.b.facts.expr(callee)
                    && self.b.facts.name(name) == "ConfigureAwait"
                {
                    return of;
                }
                self.made_call(node, function, callee, kids.field("arguments"))
            }
            "function_call_expression" => {
                let Some(function) = kids.field("function") else { return UNKNOWN };
                let callee = self.callee(function);
                self.made_call(node, function, callee, kids.field("arguments"))
            }
            "member_call_expression" | "nullsafe_member_call_expression" | "scoped_call_expression" => {
                let of = kids.field("object").or_else(|| kids.field("scope"));
                let (Some(of), Some(name)) = (of, kids.field("name")) else { return UNKNOWN };
                let of = self.value(of);
                let callee = if name.kind() == "name" { self.b.member(of, self.text(name)) } else { UNKNOWN };
                self.made_call(node, name, callee, kids.field("arguments"))
            }
            "object_creation_expression" | "new_expression" => self.creation(node, &kids),
            "compound_literal_expression" => {
                let ty = kids.field("type").and_then(|ty| self.ty(ty));
                match (ty, kids.field("value")) {
                    (Some(ty), Some(value)) => self.initialized(value, ty),
                    _ => UNKNOWN,
                }
            }
            "constructor_initializer" | "constructor_delegation_call" => {
                let callee = self.b.expr(if kids.has("this") { SourceExpr::This } else { SourceExpr::Super });
                let arguments = kids.kind("argument_list").or_else(|| kids.kind("value_arguments"));
                let args = self.arguments(arguments);
                self.b.call(callee, CallKind::Plain, &args, span(node))
            }
            "field_initializer" => self.field_initializer(node, &kids),
            "infix_expression" => {
                let mut named = kids.named();
                let (Some(of), Some(name), Some(arg)) = (named.next(), named.next(), named.next()) else {
                    return UNKNOWN;
                };
                let (of, arg) = (self.used(of), self.used(arg));
                self.b.implicit(of, self.text(name), &[arg], span(node))
            }
            "super" => self.ruby_super(node, None),
            "call" => self.ruby_call(node, &kids),
            _ => UNKNOWN,
        }
    }

    /// The called expression. A name without a receiver may be a member of an enclosing class.
    fn callee(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "identifier" | "name" => self.bare(self.text(node)),
            "generic_name" => match self.first(node) {
                Some(name) => self.bare(self.text(name)),
                None => UNKNOWN,
            },
            _ => self.value(node),
        }
    }

    /// Records a call at the line of its last name, so that calls in a chain over several lines have different lines.
    fn made_call(
        &mut self,
        node: TreeNode<'t>,
        function: TreeNode<'t>,
        callee: ExprId,
        arguments: Option<TreeNode<'t>>,
    ) -> ExprId {
        if let Some(list) = arguments.filter(|_| self.language == QueryDialect::Php)
            && self.first(list).is_some_and(|first| first.kind() == "variadic_placeholder")
        {
            // `f(...)` is the function itself.
            self.b.uses(callee, line(node));
            return callee;
        }
        let args = self.arguments(arguments);
        self.lambdas(callee, arguments);
        let mut at = span(node);
        at.line = function.end_position().row + 1;
        self.b.call(callee, CallKind::Plain, &args, at)
    }

    /// Records the values that the called method passes to lambdas among the arguments.
    fn lambdas(&mut self, callee: ExprId, arguments: Option<TreeNode<'t>>) {
        if !matches!(self.language, QueryDialect::CSharp | QueryDialect::Kotlin | QueryDialect::Ruby) {
            return;
        }
        let (Some(arguments), SourceExpr::Member(of, name)) = (arguments, self.b.facts.expr(callee)) else { return };
        if of == UNKNOWN {
            return;
        }
        let name = self.b.facts.name(name);
        let each = per_element(name);
        if !each && !per_object(name) {
            return;
        }
        let lambda = match arguments.kind() {
            "block" | "do_block" | "lambda_literal" => Some(arguments),
            _ => {
                let first = self.first(arguments);
                first.and_then(|first| self.first(first)).filter(|n| n.kind().starts_with("lambda"))
            }
        };
        if let Some(lambda) = lambda {
            let element = if each { self.b.expr(SourceExpr::Element(of)) } else { of };
            self.elements.insert(lambda.id(), element);
        }
    }

    fn creation(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> ExprId {
        let arguments = kids.field("arguments").or_else(|| kids.kind("arguments"));
        let class = kids.field("type").or_else(|| kids.named().next());
        let Some(class) = class else { return UNKNOWN };
        let ty = match class.kind() {
            "anonymous_class" => self.nameless(class),
            // `new $class`: the class that the variable holds.
            "variable_name" | "member_access_expression" | "parenthesized_expression" => self.value(class),
            _ => self.ty(class).unwrap_or(UNKNOWN),
        };
        // A wrapper of a builtin type has no relevant type, but its constructor is still called.
        let ty = if ty == UNKNOWN && class.kind() == "generic_name" { self.path(class) } else { ty };
        if ty == UNKNOWN && class.kind().ends_with("_type") {
            return UNKNOWN;
        }
        let args = self.arguments(arguments);
        self.b.call(ty, CallKind::New, &args, span(node))
    }

    fn c_call(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> ExprId {
        let Some(function) = kids.field("function") else { return UNKNOWN };
        let arguments = kids.field("arguments");
        // `make_unique<T>(…)` creates a T, a cast returns one, `move` returns its argument.
        let named = match function.kind() {
            "qualified_identifier" => self.children(function).field("name"),
            _ => Some(function),
        };
        if let Some(named) = named.filter(|n| n.kind() == "template_function") {
            let parts = self.children(named);
            let name = parts.field("name").map_or("", |n| self.text(n));
            let held = matches!(name, "make_unique" | "make_shared" | "make_optional");
            if held || name.ends_with("_cast") {
                let list = parts.field("arguments");
                let ty = list.and_then(|list| self.first(list)).and_then(|ty| self.ty(ty));
                if !held {
                    return self.instance(ty);
                }
                let args = self.arguments(arguments);
                return self.b.call(ty.unwrap_or(UNKNOWN), CallKind::New, &args, span(node));
            }
        } else if matches!(self.text(function), "std::move" | "std::forward") {
            let moved = arguments.and_then(|list| self.first(list));
            return moved.map_or(UNKNOWN, |n| self.used(n));
        }
        // `int(x)` is a conversion.
        if function.kind() == "primitive_type" {
            return UNKNOWN;
        }
        let callee = self.callee(function);
        self.made_call(node, function, callee, arguments)
    }

    /// `: Base(x), field_(y)` before a C++ constructor's body.
    fn field_initializer(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> ExprId {
        let Some(name) = kids.named().next() else { return UNKNOWN };
        let arguments = kids.named().nth(1);
        let args = self.arguments(arguments);
        let text = self.last_name(name);
        if name.kind() != "field_identifier" || text.starts_with(|c: char| c.is_ascii_uppercase()) {
            let callee = if name.kind() == "field_identifier" { self.b.read(text) } else { self.path(name) };
            return self.b.call(callee, CallKind::Implicit, &args, span(node));
        }
        if let [one] = args.as_slice() {
            let this = self.b.expr(SourceExpr::This);
            let field = self.b.name(text);
            self.b.bind(BindTarget::Member(this, field), one.value);
        }
        UNKNOWN
    }

    fn kotlin_call(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> ExprId {
        let Some(function) = kids.named().next() else { return UNKNOWN };
        let function = self.without_sign(function);
        let arguments = kids.kind("value_arguments");
        let lambda = kids.kind("annotated_lambda").and_then(|lambda| self.children(lambda).kind("lambda_literal"));
        // `f(x) { … }` is one call with the lambda as its last argument.
        if arguments.is_none() && function.kind() == "call_expression" {
            let value = self.call(function);
            if let (SourceExpr::Call(call), Some(lambda)) = (self.b.facts.expr(value), lambda) {
                let callee = self.b.facts.calls[call].callee;
                self.lambdas(callee, Some(lambda));
            }
            return value;
        }
        let callee = self.callee(function);
        let value = self.made_call(node, function, callee, arguments);
        self.lambdas(callee, lambda);
        value
    }

    /// The Kotlin grammar reads `!f(x)` as `(!f)(x)` and `!x.y` as `(!x).y`.
    fn without_sign(&mut self, mut node: TreeNode<'t>) -> TreeNode<'t> {
        while node.kind() == "unary_expression"
            && let Some(inner) = self.children(node).field("argument")
        {
            node = inner;
        }
        node
    }

    // --- Ruby ---

    fn ruby_super(&mut self, node: TreeNode<'t>, arguments: Option<TreeNode<'t>>) -> ExprId {
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

    fn ruby_call(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> ExprId {
        let arguments = kids.field("arguments");
        let Some(method) = kids.field("method") else {
            // `f.(x)` calls the value of `f`.
            let callee = kids.field("receiver").map_or(UNKNOWN, |n| self.value(n));
            let callee = if callee == UNKNOWN { UNKNOWN } else { self.b.member(callee, "call") };
            return self.made_call(node, node, callee, arguments);
        };
        self.made.insert(method.id(), UNKNOWN);
        if method.kind() == "super" {
            return self.ruby_super(node, arguments);
        }
        let name = self.text(method);
        let Some(receiver) = kids.field("receiver") else {
            if self.ruby_word(name, node, arguments) {
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
    fn ruby_word(&mut self, name: &str, node: TreeNode<'t>, arguments: Option<TreeNode<'t>>) -> bool {
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
                        self.b.base(owner, crate::facts::BaseKind::Extends, of, line(base));
                    }
                }
                true
            }
            "attr_reader" | "attr_accessor" | "attr_writer" | "attr" => {
                self.ruby_attributes(name, node, arguments);
                true
            }
            "private" | "protected" | "public" | "private_class_method" | "module_function" | "private_constant" => {
                self.ruby_shown(name, arguments);
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

    /// `attr_reader :name` defines a method that returns `@name`.
    fn ruby_attributes(&mut self, word: &str, node: TreeNode<'t>, arguments: TreeNode<'t>) {
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
    fn ruby_shown(&mut self, word: &str, arguments: TreeNode<'t>) {
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

    // --- arguments ---

    pub(super) fn arguments(&mut self, list: Option<TreeNode<'t>>) -> Args {
        let mut args = Args::new();
        let Some(list) = list else { return args };
        let kids = self.children(list);
        for kid in kids.named() {
            let arg = match kid.kind() {
                "argument" | "value_argument" => self.wrapped_argument(kid),
                "pair" => {
                    let parts = self.children(kid);
                    let key = parts.field("key").map_or("", |n| self.text(n)).trim_matches(':');
                    let how = ArgKind::Named(self.b.name(key));
                    Arg { how, value: parts.field("value").map_or(UNKNOWN, |n| self.used(n)) }
                }
                "splat_argument" => self.spread(kid, ArgKind::Spread),
                "hash_splat_argument" => self.spread(kid, ArgKind::Keywords),
                "block_argument" => continue,
                _ => place(self.used(kid)),
            };
            args.push(arg);
        }
        args
    }

    /// C#, PHP and Kotlin: `value`, `name: value`, `name = value`, `...values`.
    fn wrapped_argument(&mut self, node: TreeNode<'t>) -> Arg {
        let parts = self.children(node);
        let mut name = parts.field("name");
        let Some(value) = parts.named().next_back() else { return place(UNKNOWN) };
        if self.language == QueryDialect::Kotlin && parts.has("=") {
            name = parts.named().next();
        }
        if matches!(value.kind(), "variadic_unpacking" | "spread_expression") {
            return self.spread(value, ArgKind::Spread);
        }
        let how = match name {
            Some(name) if name != value => {
                // PHP's variables include `$`, its argument names do not.
                let mark = if self.language == QueryDialect::Php { "$" } else { "" };
                ArgKind::Named(self.b.name(&format!("{mark}{}", self.text(name))))
            }
            _ => ArgKind::Place,
        };
        Arg { how, value: self.used(value) }
    }

    fn spread(&mut self, node: TreeNode<'t>, how: ArgKind) -> Arg {
        Arg { how, value: self.last(node).map_or(UNKNOWN, |n| self.used(n)) }
    }
}
