//! Values and calls, read on demand from their nodes.

use super::QueryReader;
use super::define::place;
use crate::facts::{Arg, ArgKind, CallKind, ExprId, ExprItem, ItemKey, SourceExpr, UNKNOWN};
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

impl<'t> QueryReader<'t> {
    /// An instance of the enclosing type; in a static member, the type itself.
    pub fn this(&mut self) -> ExprId {
        let owner = self.b.facts.def(self.b.owner);
        let of_type = self.dialect.receiver_is_the_type(owner);
        self.b.expr(if of_type { SourceExpr::ThisType } else { SourceExpr::This })
    }

    pub fn value(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.dialect.value(reader, node).unwrap_or_else(|| reader.value_inner(node)))
    }

    /// Reads a value and records a reference to the symbol it names.
    pub fn used(&mut self, node: TreeNode<'t>) -> ExprId {
        let value = self.value(node);
        if matches!(self.b.facts.expr(value), SourceExpr::Free(_) | SourceExpr::Member(..)) {
            self.b.uses(value, line(node));
        }
        value
    }

    /// Reads the value of a variable with a declared type. Values without an explicit type take the declared one.
    pub fn used_as(&mut self, node: TreeNode<'t>, ty: Option<ExprId>) -> ExprId {
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

    pub fn initialized(&mut self, node: TreeNode<'t>, ty: ExprId) -> ExprId {
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
        if self.dialect.lists_construct() && !named {
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
            "this" | "this_expression" | "self" => self.this(),
            "base" | "super_expression" => self.b.expr(SourceExpr::Super),
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
            "object_literal" => {
                let class = self.nameless(node);
                self.b.expr(SourceExpr::InstanceOf(class))
            }
            _ => UNKNOWN,
        }
    }

    /// An anonymous class, which is defined when the query reaches it.
    pub fn nameless(&mut self, node: TreeNode<'t>) -> ExprId {
        let name = self.b.name("<anonymous>");
        let class = self.b.expr(SourceExpr::Free(name));
        self.elements.insert(node.id(), class);
        class
    }

    pub fn instance(&mut self, ty: Option<ExprId>) -> ExprId {
        ty.map_or(UNKNOWN, |ty| self.b.expr(SourceExpr::InstanceOf(ty)))
    }

    pub fn member_of(&mut self, node: TreeNode<'t>, of: &str, name: &str) -> ExprId {
        let kids = self.children(node);
        let (Some(of), Some(name)) = (kids.field(of), kids.field(name)) else { return UNKNOWN };
        let of = self.value(of);
        let name = self.last_name(name).trim_start_matches('$');
        self.b.member(of, name)
    }

    // --- calls ---

    pub fn call(&mut self, node: TreeNode<'t>) -> ExprId {
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
        if let Some(value) = self.dialect.call(self, node, &kids) {
            return value;
        }
        match node.kind() {
            "object_creation_expression" | "new_expression" => self.creation(node, &kids),
            "constructor_initializer" | "constructor_delegation_call" => {
                let callee = self.b.expr(if kids.has("this") { SourceExpr::This } else { SourceExpr::Super });
                let arguments = kids.kind("argument_list").or_else(|| kids.kind("value_arguments"));
                let args = self.arguments(arguments);
                self.b.call(callee, CallKind::Plain, &args, span(node))
            }
            _ => UNKNOWN,
        }
    }

    /// The called expression. A name without a receiver may be a member of an enclosing class.
    pub fn callee(&mut self, node: TreeNode<'t>) -> ExprId {
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
    pub fn made_call(
        &mut self,
        node: TreeNode<'t>,
        function: TreeNode<'t>,
        callee: ExprId,
        arguments: Option<TreeNode<'t>>,
    ) -> ExprId {
        let args = self.arguments(arguments);
        self.lambdas(callee, arguments);
        let mut at = span(node);
        at.line = function.end_position().row + 1;
        self.b.call(callee, CallKind::Plain, &args, at)
    }

    /// Records the values that the called method passes to lambdas among the arguments.
    pub fn lambdas(&mut self, callee: ExprId, arguments: Option<TreeNode<'t>>) {
        if !self.dialect.containers_call_lambdas() {
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

    // --- arguments ---

    pub fn arguments(&mut self, list: Option<TreeNode<'t>>) -> Args {
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

    /// `value`, `name: value`, `name = value`, `...values`.
    fn wrapped_argument(&mut self, node: TreeNode<'t>) -> Arg {
        let parts = self.children(node);
        let mut name = parts.field("name");
        let Some(value) = parts.named().next_back() else { return place(UNKNOWN) };
        if node.kind() == "value_argument" && parts.has("=") {
            name = parts.named().next();
        }
        if matches!(value.kind(), "variadic_unpacking" | "spread_expression") {
            return self.spread(value, ArgKind::Spread);
        }
        let how = match name {
            Some(name) if name != value => {
                let start = self.dialect.start_of_parameter_names();
                ArgKind::Named(self.b.name(&format!("{start}{}", self.text(name))))
            }
            _ => ArgKind::Place,
        };
        Arg { how, value: self.used(value) }
    }

    fn spread(&mut self, node: TreeNode<'t>, how: ArgKind) -> Arg {
        Arg { how, value: self.last(node).map_or(UNKNOWN, |n| self.used(n)) }
    }
}
