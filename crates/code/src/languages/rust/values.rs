//! Expressions.

use super::{Reader, is_capital, is_comment};
use crate::convert::to_u32;
use crate::facts::{
    Arg, ArgKind, BindTarget, CallKind, DefKind, ExprId, ExprItem, ItemKey, ListKind, Literal, SourceExpr, SourceSpan,
    UNKNOWN, flag,
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
        if matches!(node.kind(), "identifier" | "scoped_identifier" | "field_expression" | "generic_function") {
            self.b.uses(value, line(node));
        }
        value
    }

    /// The only expression inside a node, or the first.
    fn inner(&mut self, node: TreeNode<'t>) -> Option<TreeNode<'t>> {
        let kids = self.children(node);
        kids.named().find(|k| !matches!(k.kind(), "mutable_specifier" | "label" | "attribute_item"))
    }

    fn value_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "identifier" | "type_identifier" => self.named(self.word(node)),
            "self" => self.b.read("self"),
            "scoped_identifier" | "scoped_type_identifier" => self.path(node),
            "generic_function" => {
                let kids = self.children(node);
                self.type_arguments_used(&kids);
                kids.field("function").map_or(UNKNOWN, |f| self.value(f))
            }
            "field_expression" => self.field_value(node),
            "call_expression" => self.call(node),
            "macro_invocation" => self.macro_invocation(node),
            "struct_expression" => self.structure_value(node),
            "closure_expression" => self.closure(node),
            "block" => self.block(node),
            "unsafe_block" | "async_block" | "const_block" | "try_block" | "gen_block" => {
                let kids = self.children(node);
                kids.kind("block").map_or(UNKNOWN, |block| self.value(block))
            }
            "parenthesized_expression" => self.inner(node).map_or(UNKNOWN, |inner| self.value(inner)),
            "reference_expression" => {
                let kids = self.children(node);
                kids.field("value").map_or(UNKNOWN, |inner| self.used(inner))
            }
            "try_expression" | "await_expression" => {
                let inner = self.inner(node).map_or(UNKNOWN, |inner| self.used(inner));
                self.awaited(inner)
            }
            "type_cast_expression" => {
                let kids = self.children(node);
                if let Some(value) = kids.field("value") {
                    self.used(value);
                }
                let ty = kids.field("type").map_or(UNKNOWN, |ty| self.ty(ty));
                self.instance(ty)
            }
            "if_expression" => self.conditional(node),
            "match_expression" => self.matching(node),
            "while_expression" | "loop_expression" | "for_expression" => self.looping(node),
            "let_condition" => {
                self.condition(node);
                UNKNOWN
            }
            "return_expression" => {
                if let Some(inner) = self.inner(node) {
                    let value = self.used(inner);
                    self.b.returns(value, false);
                }
                UNKNOWN
            }
            "yield_expression" => {
                if let Some(inner) = self.inner(node) {
                    let value = self.used(inner);
                    self.b.returns(value, true);
                }
                UNKNOWN
            }
            "break_expression" => {
                let kids = self.children(node);
                let label = kids.kind("label").map(|l| self.text(l));
                if let Some(inner) = self.inner(node) {
                    let value = self.used(inner);
                    let target = self.loops.iter_mut().rev().find(|(known, _)| label.is_none() || *known == label);
                    if let Some((_, values)) = target {
                        values.push(value);
                    }
                }
                UNKNOWN
            }
            "assignment_expression" => {
                let kids = self.children(node);
                let value = kids.field("right").map_or(UNKNOWN, |right| self.used(right));
                if let Some(left) = kids.field("left") {
                    self.assign(left, value);
                }
                UNKNOWN
            }
            "compound_assignment_expr" => {
                let kids = self.children(node);
                let left = kids.field("left").map_or(UNKNOWN, |n| self.used(n));
                let right = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
                if let Some(operator) = kids.field("operator") {
                    self.operator(operator.kind(), left, &[right], span(node));
                }
                UNKNOWN
            }
            "binary_expression" => self.binary(node),
            "unary_expression" => {
                let kids = self.children(node);
                let inner = self.inner(node).map_or(UNKNOWN, |inner| self.used(inner));
                match kids.all().next().map(|k| k.kind()) {
                    Some("*") => inner,
                    Some("-") => self.operator("neg", inner, &[], span(node)),
                    _ => self.operator("not", inner, &[], span(node)),
                }
            }
            "index_expression" => {
                let kids = self.children(node);
                let mut named = kids.named();
                let (Some(of), Some(key)) = (named.next(), named.next()) else { return UNKNOWN };
                let of = self.used(of);
                let index = self.used(key);
                if key.kind() == "range_expression" {
                    return of;
                }
                self.operator("index", of, &[index], span(node));
                self.element(of)
            }
            "array_expression" => {
                let kids = self.children(node);
                let repeated = kids.field("length").is_some();
                let mut items: SmallVec<[ExprItem; 8]> = SmallVec::new();
                for kid in kids.named().filter(|k| k.kind() != "attribute_item") {
                    items.push(ExprItem { key: ItemKey::Next, value: self.used(kid) });
                }
                match items.first() {
                    Some(first) if repeated && first.value != UNKNOWN => self.b.expr(SourceExpr::ListOf(first.value)),
                    _ => self.b.collection(ListKind::List, &items),
                }
            }
            "tuple_expression" => {
                let kids = self.children(node);
                let mut items: SmallVec<[ExprItem; 8]> = SmallVec::new();
                for kid in kids.named().filter(|k| k.kind() != "attribute_item") {
                    items.push(ExprItem { key: ItemKey::Next, value: self.used(kid) });
                }
                self.b.collection(ListKind::Tuple, &items)
            }
            "string_literal" | "raw_string_literal" => self.string(node),
            "integer_literal" | "float_literal" => self.b.expr(SourceExpr::Literal(Literal::Number)),
            "boolean_literal" => self.b.expr(SourceExpr::Literal(Literal::Bool)),
            "char_literal"
            | "unit_expression"
            | "line_comment"
            | "block_comment"
            | "attribute_item"
            | "metavariable"
            | "label"
            | "continue_expression" => UNKNOWN,
            "ERROR" | "source_file" | "declaration_list" => {
                let kids = self.children(node);
                self.statements(&kids, super::Place::Free);
                UNKNOWN
            }
            // Ranges and all other kinds: the parts are read, the result is unknown.
            _ => {
                let kids = self.children(node);
                for kid in kids.all().filter(|k| k.is_named() && !is_comment(*k)) {
                    self.used(kid);
                }
                UNKNOWN
            }
        }
    }

    pub(super) fn string(&mut self, node: TreeNode<'t>) -> ExprId {
        let text = self.text(node).trim_start_matches(['b', 'c', 'r', '#']).trim_end_matches('#').trim_matches('"');
        let name = self.b.name(tree::cut(text, 120));
        self.b.expr(SourceExpr::Literal(Literal::String(name)))
    }

    // --- members, calls ---

    fn field_value(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let (Some(value), Some(field)) = (kids.field("value"), kids.field("field")) else { return UNKNOWN };
        let of = self.value(value);
        self.field_of(of, self.word(field))
    }

    /// `x.0` is an element of a tuple or a field of a struct: only the resolver can decide.
    pub(super) fn field_of(&mut self, of: ExprId, field: &str) -> ExprId {
        if of == UNKNOWN {
            return UNKNOWN;
        }
        let member = self.b.member(of, field);
        match field.parse::<u32>() {
            Ok(index) => {
                let place = self.b.expr(SourceExpr::AtIndex(of, index));
                self.b.either(&[member, place])
            }
            Err(_) => member,
        }
    }

    fn call(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(mut function) = kids.field("function") else { return UNKNOWN };
        if function.kind() == "generic_function" {
            let inner = self.children(function);
            if let Some(called) = inner.field("function").filter(|f| f.kind() == "field_expression") {
                self.type_arguments_used(&inner);
                function = called;
            }
        }
        let mut at = span(node);
        let callee = if function.kind() == "field_expression" {
            let inner = self.children(function);
            let (Some(receiver), Some(field)) = (inner.field("value"), inner.field("field")) else { return UNKNOWN };
            let of = self.receiver(receiver);
            // In a chain over several lines, the position of a call is that of its name.
            at = span(field);
            let name = self.word(field);
            self.b.member(of, name)
        } else {
            self.value(function)
        };
        let mut args: SmallVec<[Arg; 4]> = SmallVec::new();
        if let Some(arguments) = kids.field("arguments") {
            let inner = self.children(arguments);
            for kid in inner.all() {
                if kid.is_named() && !is_comment(kid) && kid.kind() != "attribute_item" {
                    args.push(Arg { how: ArgKind::Place, value: self.used(kid) });
                }
            }
        }
        self.container_writes(callee, &args);
        self.b.call(callee, CallKind::Plain, &args, at)
    }

    /// The receiver of a method call: constants and fields are recorded as references, local variables are not.
    fn receiver(&mut self, node: TreeNode<'t>) -> ExprId {
        let used = match node.kind() {
            "identifier" => is_capital(self.text(node)),
            "scoped_identifier" | "field_expression" => true,
            _ => false,
        };
        if used { self.used(node) } else { self.value(node) }
    }

    /// Records elements that methods add to lists, sets and maps.
    pub(super) fn container_writes(&mut self, callee: ExprId, args: &[Arg]) {
        let SourceExpr::Member(mut object, name) = self.b.facts.expr(callee) else { return };
        let element = match (self.b.facts.name(name), args) {
            ("push" | "push_back" | "push_front" | "insert", [one]) => one.value,
            ("insert", [_, two]) => two.value,
            ("extend" | "append" | "extend_from_slice", [one]) => self.element(one.value),
            ("or_insert", [one]) => {
                // `map.entry(key).or_insert(value)` writes to the map.
                if let SourceExpr::Call(call) = self.b.facts.expr(object)
                    && let SourceExpr::Member(map, _) = self.b.facts.expr(self.b.facts.calls[call].callee)
                {
                    object = map;
                }
                one.value
            }
            _ => return,
        };
        if object != UNKNOWN {
            self.b.bind(BindTarget::Element(object), element);
        }
    }

    fn structure_value(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(name) = kids.field("name") else { return UNKNOWN };
        let ty = self.path(name);
        if !matches!(self.b.facts.expr(ty), SourceExpr::ThisType) {
            self.b.uses(ty, line(name));
        }
        let mut items: SmallVec<[ExprItem; 8]> = SmallVec::new();
        if let Some(body) = kids.field("body") {
            let inner = self.children(body);
            for kid in inner.all().filter(|k| k.is_named() && !is_comment(*k)) {
                let parts = self.children(kid);
                match kid.kind() {
                    "field_initializer" => {
                        let key = parts.field("field").map_or("", |f| self.word(f));
                        let key = ItemKey::Name(self.b.name(key));
                        let value = parts.field("value").map_or(UNKNOWN, |v| self.used(v));
                        items.push(ExprItem { key, value });
                    }
                    "shorthand_field_initializer" => {
                        let Some(name) = parts.kind("identifier") else { continue };
                        let key = ItemKey::Name(self.b.name(self.word(name)));
                        items.push(ExprItem { key, value: self.used(name) });
                    }
                    "base_field_initializer" => {
                        let Some(base) = parts.named().next() else { continue };
                        items.push(ExprItem { key: ItemKey::Spread, value: self.used(base) });
                    }
                    _ => {
                        self.used(kid);
                    }
                }
            }
        }
        let items = self.b.items(&items);
        self.b.expr(SourceExpr::Construct(ty, items))
    }

    fn closure(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let def = self.b.add_def("<closure>", DefKind::Lambda, span(node));
        self.b.def(def).flags |= flag::ARROW | if kids.has("async") { flag::ASYNC } else { 0 };
        self.inside(def, |reader| {
            if let Some(parameters) = kids.field("parameters") {
                reader.parameters(parameters);
            }
            let result = kids.field("return_type").map(|ty| reader.ty(ty)).filter(|ty| *ty != UNKNOWN);
            reader.b.def(def).result = result;
            if let Some(body) = kids.field("body") {
                let value = reader.used(body);
                reader.b.returns(value, false);
            }
        });
        self.b.expr(SourceExpr::Def(def))
    }

    // --- assignments, operators ---

    fn assign(&mut self, target: TreeNode<'t>, value: ExprId) {
        self.deeper((), |reader| match target.kind() {
            "identifier" => {
                let name = reader.word(target);
                if name != "_" {
                    reader.b.bind_name(name, value);
                }
            }
            "field_expression" => {
                let kids = reader.children(target);
                let (Some(object), Some(field)) = (kids.field("value"), kids.field("field")) else { return };
                let object = reader.receiver(object);
                let name = reader.b.name(reader.word(field));
                if object != UNKNOWN {
                    reader.b.bind(BindTarget::Member(object, name), value);
                }
            }
            "index_expression" => {
                let kids = reader.children(target);
                let mut named = kids.named();
                let (Some(object), Some(key)) = (named.next(), named.next()) else { return };
                let object = reader.receiver(object);
                let key = reader.used(key);
                reader.operator("index_mut", object, &[key], span(target));
                if object != UNKNOWN {
                    reader.b.bind(BindTarget::Element(object), value);
                }
            }
            "unary_expression" | "parenthesized_expression" | "reference_expression" => {
                if let Some(inner) = reader.inner(target) {
                    reader.assign(inner, value);
                }
            }
            "tuple_expression" => {
                let kids = reader.children(target);
                for (index, kid) in kids.named().enumerate() {
                    let known = value != UNKNOWN;
                    let part = if known { reader.b.expr(SourceExpr::AtIndex(value, to_u32(index))) } else { UNKNOWN };
                    reader.assign(kid, part);
                }
            }
            _ => {
                reader.value(target);
            }
        });
    }

    /// An operator calls a method that a type may define.
    fn operator(&mut self, operator: &str, left: ExprId, right: &[ExprId], at: SourceSpan) -> ExprId {
        if left == UNKNOWN || matches!(self.b.facts.expr(left), SourceExpr::Literal(_)) {
            return UNKNOWN;
        }
        let method = match operator {
            "+" => "add",
            "-" => "sub",
            "*" => "mul",
            "/" => "div",
            "%" => "rem",
            "&" => "bitand",
            "|" => "bitor",
            "^" => "bitxor",
            "<<" => "shl",
            ">>" => "shr",
            "+=" => "add_assign",
            "-=" => "sub_assign",
            "*=" => "mul_assign",
            "/=" => "div_assign",
            "%=" => "rem_assign",
            "&=" => "bitand_assign",
            "|=" => "bitor_assign",
            "^=" => "bitxor_assign",
            "<<=" => "shl_assign",
            ">>=" => "shr_assign",
            "==" | "!=" => "eq",
            "<" | "<=" | ">" | ">=" => "partial_cmp",
            "neg" | "not" | "index" | "index_mut" => operator,
            _ => return UNKNOWN,
        };
        let result = self.b.implicit(left, method, right, at);
        if matches!(method, "eq" | "partial_cmp") { UNKNOWN } else { result }
    }

    /// `a + b + c …` nests to the left, as deep as it is long: followed in a loop.
    fn binary(&mut self, node: TreeNode<'t>) -> ExprId {
        let mut parts: SmallVec<[(TreeNode<'t>, &'t str, Option<TreeNode<'t>>); 8]> = SmallVec::new();
        let mut at = node;
        while at.kind() == "binary_expression" {
            let kids = self.children(at);
            parts.push((at, kids.field("operator").map_or("", |o| o.kind()), kids.field("right")));
            match kids.field("left") {
                Some(left) => at = left,
                None => break,
            }
        }
        let mut left = if at.kind() == "binary_expression" { UNKNOWN } else { self.used(at) };
        for (whole, operator, right) in parts.into_iter().rev() {
            let right = right.map_or(UNKNOWN, |right| self.used(right));
            left = self.operator(operator, left, &[right], span(whole));
        }
        left
    }

    // --- control flow ---

    /// The condition of `if`, `while` or a guard; bindings of `let` in it are visible until the caller closes the
    /// scope.
    fn condition(&mut self, node: TreeNode<'t>) {
        match node.kind() {
            "let_condition" => {
                let kids = self.children(node);
                let value = kids.field("value").map_or(UNKNOWN, |value| self.used(value));
                self.open();
                if let Some(pattern) = kids.field("pattern") {
                    self.pattern(pattern, value);
                }
            }
            "let_chain" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.deeper((), |reader| reader.condition(kid));
                }
            }
            _ => {
                self.used(node);
            }
        }
    }

    fn conditional(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let before = self.open();
        if let Some(condition) = kids.field("condition") {
            self.condition(condition);
        }
        let yes = kids.field("consequence").map_or(UNKNOWN, |block| self.value(block));
        self.b.close_scope(before);
        let no = match kids.field("alternative") {
            Some(alternative) => self.inner(alternative).map_or(UNKNOWN, |inner| self.value(inner)),
            None => UNKNOWN,
        };
        self.b.either(&[yes, no])
    }

    fn matching(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let value = kids.field("value").map_or(UNKNOWN, |value| self.used(value));
        let Some(body) = kids.field("body") else { return UNKNOWN };
        let arms = self.children(body);
        let mut values: SmallVec<[ExprId; 8]> = SmallVec::new();
        for arm in arms.all().filter(|k| k.is_named() && !is_comment(*k)) {
            if arm.kind() != "match_arm" {
                self.value(arm);
                continue;
            }
            let parts = self.children(arm);
            let before = self.open();
            if let Some(pattern) = parts.field("pattern") {
                self.pattern(pattern, value);
                let inner = self.children(pattern);
                if let Some(condition) = inner.field("condition") {
                    self.condition(condition);
                }
            }
            if let Some(result) = parts.field("value") {
                values.push(self.used(result));
            }
            self.b.close_scope(before);
        }
        self.b.either(&values)
    }

    fn looping(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let label = kids.kind("label").map(|l| self.text(l));
        let before = self.open();
        match node.kind() {
            "while_expression" => {
                if let Some(condition) = kids.field("condition") {
                    self.condition(condition);
                }
            }
            "for_expression" => {
                let over = kids.field("value").map_or(UNKNOWN, |value| self.used(value));
                let element = self.iterate(over, span(node));
                self.open();
                if let Some(pattern) = kids.field("pattern") {
                    self.pattern(pattern, element);
                }
            }
            _ => {}
        }
        self.loops.push((label, vec![]));
        if let Some(body) = kids.field("body") {
            self.value(body);
        }
        self.b.close_scope(before);
        let (_, values) = self.loops.pop().unwrap_or_default();
        self.b.either(&values)
    }

    /// `for` calls methods for an iterator and its next element, which a type may define.
    pub(super) fn iterate(&mut self, over: ExprId, at: SourceSpan) -> ExprId {
        if over == UNKNOWN {
            return UNKNOWN;
        }
        let iterator = self.b.implicit(over, "into_iter", &[], at);
        self.b.implicit(iterator, "next", &[], at);
        let next = self.b.implicit(over, "next", &[], at);
        let given = self.b.expr(SourceExpr::Awaited(next));
        let element = self.b.expr(SourceExpr::Element(over));
        self.b.either(&[element, given])
    }
}
