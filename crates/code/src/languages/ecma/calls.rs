//! Calls: of functions, with `new`, of test frameworks, of methods that fill containers.

use super::{Reader, Site};
use crate::facts::{
    Arg, ArgKind, BindTarget, CallKind, DefKind, ExprId, NameId, SourceExpr, SourceSpan, UNKNOWN, flag,
};
use crate::tree::{TreeNode, span};

/// Longest name of a test, in characters.
const TITLE_CHARS: usize = 80;

impl<'t> Reader<'t> {
    pub(super) fn call(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(function) = kids.field("function") else { return UNKNOWN };
        let arguments = kids.field("arguments");
        let first = arguments.and_then(|a| self.children(a).named().next());
        let module = first.and_then(|n| self.constant(n));
        if function.kind() == "import" {
            if let Some(arguments) = arguments {
                self.arguments(arguments, None);
            }
            return module.map_or(UNKNOWN, |module| self.import_by_call(module, node));
        }
        let title = match first {
            Some(first) if matches!(first.kind(), "string" | "template_string") && self.is_test_word(function) => {
                Some((self.inner_text(first), node))
            }
            _ => None,
        };
        let callee = self.value(function);
        if let Some(types) = kids.field("type_arguments") {
            self.types(types);
        }
        let args = arguments.map_or(vec![], |a| self.arguments(a, title));
        let result = self.b.call(callee, CallKind::Plain, &args, call_site(node, function));
        match (self.text(function), module) {
            ("require", Some(module)) => return self.import_by_call(module, node),
            ("Object.defineProperty", _) => {
                if let (Some(object), [of, name, descriptor]) = (first, args.as_slice()) {
                    self.defined_property(object, [of.value, name.value, descriptor.value]);
                }
            }
            _ => {}
        }
        if let SourceExpr::Member(object, name) = self.b.facts.expr(callee) {
            if self.b.facts.name(name) == "bind" {
                let bound = self.b.expr(SourceExpr::Bound(object));
                return self.b.either(&[result, bound]);
            }
            self.container_writes(object, name, &args);
        }
        result
    }

    pub(super) fn new_call(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(class) = kids.field("constructor") else { return UNKNOWN };
        let callee = self.value(class);
        let types = kids.field("type_arguments").map(|types| self.types(types));
        let args = kids.field("arguments").map_or(vec![], |a| self.arguments(a, None));
        let made = self.b.call(callee, CallKind::New, &args, span(node));
        match types {
            Some(types) if class.kind() == "identifier" && types.iter().any(|ty| *ty != UNKNOWN) => {
                let ty = self.generic_type(class, &types);
                let instance = self.b.expr(SourceExpr::InstanceOf(ty));
                self.b.either(&[made, instance])
            }
            _ => made,
        }
    }

    pub(super) fn component_call(&mut self, component: ExprId, properties: ExprId, at: TreeNode<'t>) {
        let arg = Arg { how: ArgKind::Place, value: properties };
        self.b.call(component, CallKind::Plain, &[arg], span(at));
    }

    /// Reads arguments; functions among the arguments of a test get its title as their name.
    fn arguments(&mut self, node: TreeNode<'t>, test: Option<(&'t str, TreeNode<'t>)>) -> Vec<Arg> {
        if node.kind() == "template_string" {
            return self.template_arguments(node);
        }
        let mut args = Vec::new();
        for kid in self.read_through(node) {
            match (kid.kind(), test) {
                ("spread_element", _) => {
                    let inner = self.children(kid);
                    let value = inner.named().next().map_or(UNKNOWN, |n| self.used(n));
                    args.push(Arg { how: ArgKind::Spread, value });
                }
                ("arrow_function" | "function_expression" | "generator_function", Some((title, call))) => {
                    let end = title.char_indices().nth(TITLE_CHARS).map_or(title.len(), |(at, _)| at);
                    let title = if end == 0 { "<anonymous>" } else { &title[..end] };
                    let value = self.known(kid, Site::new(title, DefKind::Function, flag::TEST, call));
                    args.push(Arg { how: ArgKind::Place, value });
                }
                _ => args.push(Arg { how: ArgKind::Place, value: self.used(kid) }),
            }
        }
        args
    }

    /// A tagged template calls its tag with the strings and then with the values between them.
    fn template_arguments(&mut self, node: TreeNode<'t>) -> Vec<Arg> {
        let texts = self.b.expr(SourceExpr::Literal(crate::facts::Literal::Template));
        let mut args = vec![Arg { how: ArgKind::Place, value: texts }];
        let kids = self.children(node);
        for kid in kids.named().filter(|k| k.kind() == "template_substitution") {
            let inner = self.children(kid);
            let value = inner.named().next().map_or(UNKNOWN, |n| self.used(n));
            args.push(Arg { how: ArgKind::Place, value });
        }
        args
    }

    /// Whether a callee is `it`, `it.only`, `it.each(table)` or similar.
    fn is_test_word(&mut self, node: TreeNode<'t>) -> bool {
        match node.kind() {
            "identifier" => {
                matches!(self.text(node), "describe" | "suite" | "context" | "it" | "test" | "specify")
            }
            "member_expression" => {
                let kids = self.children(node);
                let how = kids.field("property").map_or("", |p| self.text(p));
                matches!(how, "only" | "skip" | "each" | "concurrent" | "sequential" | "failing" | "todo" | "fails")
                    && kids.field("object").is_some_and(|object| self.deeper(false, |r| r.is_test_word(object)))
            }
            "call_expression" => {
                let kids = self.children(node);
                kids.field("function").is_some_and(|function| {
                    function.kind() == "member_expression" && self.deeper(false, |r| r.is_test_word(function))
                })
            }
            _ => false,
        }
    }

    /// Records elements that methods add to arrays, sets and maps.
    fn container_writes(&mut self, object: ExprId, name: NameId, args: &[Arg]) {
        // `this.set(…)` is a method of the own class, not of a container.
        if self.b.facts.expr(object) == SourceExpr::This {
            return;
        }
        let elements = match (self.b.facts.name(name), args) {
            ("push" | "unshift", args) => args,
            ("add", [_]) => args,
            ("set", [_, value]) => std::slice::from_ref(value),
            _ => return,
        };
        for arg in elements {
            if arg.value == UNKNOWN {
                continue;
            }
            let value = match arg.how {
                ArgKind::Spread => self.b.expr(SourceExpr::Element(arg.value)),
                _ => arg.value,
            };
            self.b.bind(BindTarget::Element(object), value);
        }
    }
}

/// The position of a call is that of its last name, so that calls in a chain over several lines have different lines.
fn call_site(node: TreeNode<'_>, function: TreeNode<'_>) -> SourceSpan {
    let mut at = span(node);
    if function.kind() == "member_expression" {
        at.line = function.end_position().row + 1;
    }
    at
}
