//! Values: names, calls, lambdas, method references, switches.

use super::{Reader, is_read, path};
use crate::facts::{
    Arg, BindTarget, CallKind, DefKind, ExprId, ExprItem, ItemKey, ListKind, Literal, SourceExpr, SourceSpan, UNKNOWN,
    flag,
};
use crate::tree::{self, TreeNode, line, span};
use smallvec::SmallVec;

impl<'t> Reader<'t> {
    pub(super) fn value(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.value_inner(node))
    }

    /// Reads a value and records a reference to the symbol it names.
    pub(super) fn used(&mut self, node: TreeNode<'t>) -> ExprId {
        let value = self.value(node);
        if matches!(node.kind(), "identifier" | "field_access")
            && matches!(self.b.facts.expr(value), SourceExpr::Free(_) | SourceExpr::Var(_) | SourceExpr::Member(..))
        {
            self.b.uses(value, line(node));
        }
        value
    }

    fn value_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "identifier" => {
                let name = self.text(node);
                if name.is_empty() { UNKNOWN } else { self.b.read(name) }
            }
            "this" => self.b.expr(SourceExpr::This),
            "super" => self.b.expr(SourceExpr::Super),
            "field_access" => self.field_access(node),
            "method_invocation" => self.invocation(node),
            "object_creation_expression" => self.creation(node),
            "method_reference" => self.method_reference(node),
            "lambda_expression" => self.lambda(node),
            "assignment_expression" => self.assignment(node),
            "parenthesized_expression" => {
                let kids = self.children(node);
                let mut value = UNKNOWN;
                for kid in kids.named() {
                    value = self.used(kid);
                }
                value
            }
            "string_literal" => {
                let kids = self.children(node);
                for kid in kids.named().filter(|k| k.kind() == "string_interpolation") {
                    self.value(kid);
                }
                let text = self.text(node);
                let text = text.strip_prefix("\"\"\"").and_then(|t| t.strip_suffix("\"\"\"")).unwrap_or(text);
                let text = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
                let name = self.b.name(tree::cut(text, 120));
                self.b.expr(SourceExpr::Literal(Literal::String(name)))
            }
            "decimal_integer_literal" | "hex_integer_literal" | "octal_integer_literal" | "binary_integer_literal" => {
                match self.text(node).ends_with(['l', 'L']) {
                    true => self.instance_of("long"),
                    false => self.b.expr(SourceExpr::Literal(Literal::Number)),
                }
            }
            "decimal_floating_point_literal" | "hex_floating_point_literal" => {
                let float = self.text(node).ends_with(['f', 'F']);
                self.instance_of(if float { "float" } else { "double" })
            }
            "character_literal" => self.instance_of("char"),
            "true" | "false" => self.b.expr(SourceExpr::Literal(Literal::Bool)),
            "null_literal" => self.b.expr(SourceExpr::Literal(Literal::Nothing)),
            "binary_expression" => self.binary(node),
            "ternary_expression" => {
                let kids = self.children(node);
                if let Some(condition) = kids.field("condition") {
                    self.used(condition);
                }
                let yes = kids.field("consequence").map_or(UNKNOWN, |n| self.used(n));
                let no = kids.field("alternative").map_or(UNKNOWN, |n| self.used(n));
                self.b.either(&[yes, no])
            }
            "cast_expression" => {
                let kids = self.children(node);
                let types: SmallVec<[ExprId; 2]> = kids.fields("type").map(|ty| self.ty(ty)).collect();
                let value = kids.field("value").map_or(UNKNOWN, |n| self.used(n));
                let mut either: SmallVec<[ExprId; 2]> = SmallVec::from_elem(value, 1);
                for ty in types {
                    if ty != UNKNOWN {
                        either.push(self.b.expr(SourceExpr::InstanceOf(ty)));
                    }
                }
                self.b.either(&either)
            }
            "instanceof_expression" => {
                let kids = self.children(node);
                if let Some(left) = kids.field("left") {
                    self.used(left);
                }
                if let Some(pattern) = kids.field("pattern") {
                    self.pattern(pattern);
                }
                if let Some(right) = kids.field("right") {
                    let ty = self.declared_type(Some(right), None);
                    if let Some(name) = kids.field("name") {
                        let name = self.text(name);
                        self.local(name, ty);
                    }
                }
                UNKNOWN
            }
            "switch_expression" => self.switch(node),
            "array_access" => {
                let kids = self.children(node);
                let array = kids.field("array").map_or(UNKNOWN, |n| self.used(n));
                if let Some(index) = kids.field("index") {
                    self.used(index);
                }
                if array == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::Element(array)) }
            }
            "array_initializer" | "element_value_array_initializer" => {
                let kids = self.children(node);
                let mut items: SmallVec<[ExprItem; 8]> = SmallVec::new();
                for kid in kids.named() {
                    items.push(ExprItem { key: ItemKey::Next, value: self.used(kid) });
                }
                self.b.collection(ListKind::List, &items)
            }
            "array_creation_expression" => self.array_creation(node),
            "class_literal" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.ty(kid);
                }
                self.instance_of("Class")
            }
            "marker_annotation" | "annotation" => {
                self.annotation(node);
                UNKNOWN
            }
            "type_identifier" | "scoped_type_identifier" | "generic_type" | "array_type" | "annotated_type" => {
                self.ty(node)
            }
            "scoped_identifier" => {
                let named = path(self.text(node));
                let named = self.b.read_path(named.split('.'));
                self.b.uses(named, line(node));
                named
            }
            "line_comment" | "block_comment" => UNKNOWN,
            // Comparisons, loops, bodies, errors: the parts are read, the result is unknown.
            _ => {
                self.block(node);
                UNKNOWN
            }
        }
    }

    /// An instance of a type of the language itself, which is needed to select overloads.
    fn instance_of(&mut self, name: &str) -> ExprId {
        let name = self.b.name(name);
        let ty = self.b.expr(SourceExpr::Free(name));
        self.b.expr(SourceExpr::InstanceOf(ty))
    }

    /// Long sums nest to the left: reads them in a loop, in the order of the text.
    fn binary(&mut self, node: TreeNode<'t>) -> ExprId {
        let mut operands: SmallVec<[TreeNode<'t>; 8]> = SmallVec::new();
        let mut at = node;
        let mut sum = false;
        loop {
            let kids = self.children(at);
            if at == node {
                sum = kids.has("+");
            }
            operands.extend(kids.all().filter(|k| k.is_error()));
            operands.extend(kids.field("right"));
            match kids.field("left") {
                Some(left) if left.kind() == "binary_expression" => at = left,
                Some(left) => {
                    operands.push(left);
                    break;
                }
                None => break,
            }
        }
        let mut text = false;
        for operand in operands.iter().rev() {
            let value = self.used(*operand);
            text |= matches!(self.b.facts.expr(value), SourceExpr::Literal(Literal::String(_) | Literal::Template));
        }
        if sum && text { self.b.expr(SourceExpr::Literal(Literal::Template)) } else { UNKNOWN }
    }

    fn field_access(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let (Some(object), Some(field)) = (kids.field("object"), kids.field("field")) else {
            self.faulty_kids(&kids);
            return UNKNOWN;
        };
        let of = self.value(object);
        if of == UNKNOWN {
            return UNKNOWN;
        }
        if field.kind() == "this" {
            return self.b.expr(SourceExpr::InstanceOf(of));
        }
        let name = self.text(field);
        self.b.member(of, name)
    }

    /// The value of an assignment is the assigned value.
    fn assignment(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(left) = kids.field("left") else { return UNKNOWN };
        let plain = kids.field("operator").is_some_and(|o| o.kind() == "=");
        if !plain {
            self.used(left);
            if let Some(right) = kids.field("right") {
                self.used(right);
            }
            return UNKNOWN;
        }
        let target = self.used(left);
        let value = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
        match self.b.facts.expr(target) {
            SourceExpr::Member(of, name) => self.b.bind(BindTarget::Member(of, name), value),
            SourceExpr::Element(of) => self.b.bind(BindTarget::Element(of), value),
            _ if left.kind() == "identifier" => {
                let name = self.text(left);
                self.b.bind_name(name, value);
            }
            _ => {}
        }
        value
    }

    fn array_creation(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let ty = kids.field("type").map_or(UNKNOWN, |n| self.ty(n));
        let mut depth = 0;
        for dimensions in kids.fields("dimensions") {
            if dimensions.kind() == "dimensions_expr" {
                depth += 1;
                let inner = self.children(dimensions);
                for kid in inner.named() {
                    self.used(kid);
                }
            } else {
                depth += self.depth(dimensions);
            }
        }
        if let Some(value) = kids.field("value") {
            return self.value(value);
        }
        let array = (0..depth).fold(ty, |of, _| self.array_of(of));
        if array == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::InstanceOf(array)) }
    }

    fn annotation(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        if let Some(name) = kids.field("name") {
            let written = path(self.text(name));
            let named = self.b.read_path(written.split('.'));
            self.b.uses(named, line(name));
        }
        if let Some(arguments) = kids.field("arguments") {
            let inner = self.children(arguments);
            for kid in inner.named() {
                if kid.kind() == "element_value_pair" {
                    let pair = self.children(kid);
                    if let Some(value) = pair.field("value") {
                        self.used(value);
                    }
                } else {
                    self.used(kid);
                }
            }
        }
    }

    // --- calls ---

    fn invocation(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(name_node) = kids.field("name") else {
            self.block(node);
            return UNKNOWN;
        };
        let name = self.text(name_node);
        let callee = match kids.field("object") {
            None => {
                let name = self.b.name(name);
                self.b.expr(SourceExpr::Free(name))
            }
            Some(object) => {
                // `Type.super.name()` calls the method of that type, even if it is overridden: a member of the type
                // itself.
                let exact = kids.with_fields().any(|(field, kid)| field.is_none() && kid.kind() == "super");
                let of = if exact { self.value(object) } else { self.used(object) };
                // A member of an unknown value is unknown, but the call is still recorded.
                self.b.member(of, name)
            }
        };
        if let Some(types) = kids.field("type_arguments") {
            self.type_arguments(types);
        }
        let args = kids.field("arguments").map(|a| self.arguments(a)).unwrap_or_default();
        self.faulty_kids(&kids);
        self.container_writes(callee, &args);
        self.b.call(callee, CallKind::Plain, &args, call_site(node, name_node))
    }

    /// Records elements that methods add to lists, sets, queues and maps.
    fn container_writes(&mut self, callee: ExprId, args: &[Arg]) {
        let SourceExpr::Member(object, name) = self.b.facts.expr(callee) else { return };
        if object == UNKNOWN {
            return;
        }
        let element = match (self.b.facts.name(name), args) {
            ("add" | "addFirst" | "addLast" | "addElement" | "push" | "offer" | "offerFirst" | "offerLast", [one]) => {
                one.value
            }
            ("add" | "set" | "put" | "putIfAbsent" | "replace", [_, two]) => two.value,
            ("addAll" | "putAll", [one]) | ("addAll", [_, one]) if one.value != UNKNOWN => {
                self.b.expr(SourceExpr::Element(one.value))
            }
            _ => return,
        };
        self.b.bind(BindTarget::Element(object), element);
    }

    fn creation(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(ty) = kids.field("type") else {
            self.block(node);
            return UNKNOWN;
        };
        let mut outer = UNKNOWN;
        let mut made = false;
        for (field, kid) in kids.with_fields() {
            match kid.kind() {
                "new" => made = true,
                _ if !is_read(&kid) || field.is_some() => {}
                _ if !made => outer = self.used(kid),
                "marker_annotation" | "annotation" => {
                    self.value(kid);
                }
                "ERROR" => self.nested(kid),
                _ => {}
            }
        }
        if let Some(types) = kids.field("type_arguments") {
            self.type_arguments(types);
        }
        let whole = self.named_type(ty);
        let mut callee = self.without_arguments(whole);
        if outer != UNKNOWN && ty.kind() != "scoped_type_identifier" {
            // `outer.new Inner()`: a class of `outer`'s type, usually not visible by its bare name here.
            let name = self.text(ty);
            let name = name.split('<').next().unwrap_or(name).trim();
            let inner = self.b.member(outer, name);
            callee = self.b.either(&[callee, inner]);
        }
        let args = kids.field("arguments").map(|a| self.arguments(a)).unwrap_or_default();
        if let Some(body) = kids.kind("class_body") {
            let def = self.anonymous(node, ty, whole, body);
            let callee = self.b.expr(SourceExpr::Def(def));
            return self.b.call(callee, CallKind::New, &args, span(node));
        }
        let call = self.b.call(callee, CallKind::New, &args, span(node));
        if matches!(self.b.facts.expr(whole), SourceExpr::Generic(..)) {
            // The call determines the class, the instance adds its type arguments.
            let typed = self.b.expr(SourceExpr::InstanceOf(whole));
            return self.b.either(&[call, typed]);
        }
        call
    }

    fn method_reference(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let mut of = UNKNOWN;
        let mut after = false;
        for kid in kids.all().filter(|k| !k.is_extra()) {
            match kid.kind() {
                "::" => after = true,
                _ if !after => {
                    of = match kid.kind() {
                        // Constructors and methods of arrays have no definition.
                        "array_type" => {
                            self.ty(kid);
                            UNKNOWN
                        }
                        "type_identifier" | "scoped_type_identifier" | "generic_type" | "annotated_type" => {
                            let ty = self.named_type(kid);
                            self.without_arguments(ty)
                        }
                        _ => self.value(kid),
                    };
                }
                "type_arguments" => {
                    self.type_arguments(kid);
                }
                "new" => {
                    self.b.uses(of, line(node));
                    return of;
                }
                "identifier" if of != UNKNOWN => {
                    let name = self.text(kid);
                    let method = self.b.member(of, name);
                    self.b.uses(method, line(kid));
                    return self.b.expr(SourceExpr::Bound(method));
                }
                _ => {}
            }
        }
        UNKNOWN
    }

    fn lambda(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let def = self.b.add_def("<lambda>", DefKind::Lambda, span(node));
        self.b.def(def).flags |= flag::ARROW;
        self.inside(def, |reader| {
            match kids.field("parameters") {
                Some(one) if one.kind() == "identifier" => {
                    let name = reader.text(one);
                    reader.b.param(name, None, None);
                }
                Some(parameters) => reader.parameters(parameters),
                None => {}
            }
            match kids.field("body") {
                Some(body) if body.kind() == "block" => reader.block(body),
                Some(body) => {
                    let value = reader.used(body);
                    reader.b.returns(value, false);
                }
                None => {}
            }
            reader.faulty_kids(&kids);
        });
        self.b.expr(SourceExpr::Def(def))
    }

    // --- switch ---

    fn switch(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let over = kids.field("condition").map_or(UNKNOWN, |n| self.value(n));
        let Some(body) = kids.field("body") else { return UNKNOWN };
        self.yields.push(vec![]);
        self.scoped(|reader| {
            let kids = reader.children(body);
            for kid in kids.all().filter(is_read) {
                match kid.kind() {
                    "switch_rule" => reader.scoped(|reader| reader.switch_part(kid, over, true)),
                    "switch_block_statement_group" => reader.switch_part(kid, over, false),
                    _ => reader.visit(kid),
                }
            }
        });
        let values = self.yields.pop().unwrap_or_default();
        self.b.either(&values)
    }

    fn switch_part(&mut self, node: TreeNode<'t>, over: ExprId, gives: bool) {
        let kids = self.children(node);
        for kid in kids.all().filter(is_read) {
            match kid.kind() {
                "switch_label" => self.switch_label(kid, over),
                "expression_statement" if gives => {
                    let inner = self.children(kid);
                    for value in inner.named() {
                        let value = self.used(value);
                        if let Some(yields) = self.yields.last_mut() {
                            yields.push(value);
                        }
                    }
                }
                _ => self.visit(kid),
            }
        }
    }

    fn switch_label(&mut self, node: TreeNode<'t>, over: ExprId) {
        let kids = self.children(node);
        for kid in kids.named() {
            match kid.kind() {
                "pattern" | "type_pattern" | "record_pattern" => self.pattern(kid),
                "identifier" if self.text(kid) == "default" => {}
                "identifier" => {
                    // A constant of the enum that is switched over, or any constant.
                    self.used(kid);
                    if over != UNKNOWN {
                        let name = self.text(kid);
                        let constant = self.b.member(over, name);
                        self.b.uses(constant, line(kid));
                    }
                }
                _ => self.visit(kid),
            }
        }
    }
}

/// The position of a call is that of its name, so that calls in a chain over several lines have different lines.
fn call_site(node: TreeNode<'_>, name: TreeNode<'_>) -> SourceSpan {
    let mut at = span(node);
    let place = name.start_position();
    if place.row + 1 != at.line {
        at.line = place.row + 1;
        at.column = place.column;
    }
    at
}
