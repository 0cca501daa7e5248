//! Expressions: calls, literals, members, and their possible values.

use super::Reader;
use super::types::is_predeclared;
use crate::facts::{
    Arg, ArgKind, CallKind, DefKind, ExprId, ExprItem, ItemKey, ListKind, Literal, SourceExpr, SourceSpan, UNKNOWN,
    VarKind,
};
use crate::tree::{self, NodeChildren, TreeNode, span};
use smallvec::SmallVec;

type Args = SmallVec<[Arg; 4]>;
type Items = SmallVec<[ExprItem; 8]>;

/// The type of a composite literal; elements may omit their type.
enum Shape {
    List(Box<Shape>),
    Map(Box<Shape>, Box<Shape>),
    Of(ExprId),
    /// The type of this value: an element of a named list or map.
    Like(ExprId),
}

impl<'t> Reader<'t> {
    pub(super) fn value(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.value_inner(node))
    }

    /// Reads a value and records a reference to the symbol it names.
    pub(super) fn used(&mut self, node: TreeNode<'t>) -> ExprId {
        let value = self.value(node);
        if matches!(node.kind(), "identifier" | "selector_expression") {
            self.note(value, node);
        }
        value
    }

    fn value_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "identifier" => match self.text(node) {
                "_" => UNKNOWN,
                name => self.read_name(name),
            },
            "selector_expression" => {
                let kids = self.children(node);
                let Some(operand) = kids.field("operand") else { return UNKNOWN };
                let object = self.value(operand);
                let Some(field) = kids.field("field") else { return object };
                let name = self.text(field);
                self.b.member(object, name)
            }
            "call_expression" => self.call(node),
            "interpreted_string_literal" | "raw_string_literal" => {
                let text = tree::cut(self.string(node).unwrap_or(""), 120);
                let name = self.b.name(text);
                self.b.expr(SourceExpr::Literal(Literal::String(name)))
            }
            "int_literal" | "float_literal" | "rune_literal" | "imaginary_literal" | "iota" => self.words.number,
            "true" | "false" => self.words.truth,
            "nil" => self.words.nothing,
            "composite_literal" => self.composite(node),
            "func_literal" => self.lambda(node),
            "unary_expression" => {
                let kids = self.children(node);
                let operand = kids.field("operand").map_or(UNKNOWN, |n| self.used(n));
                match kids.field("operator").map(|o| o.kind()) {
                    Some("&" | "*") => operand,
                    Some("<-") if operand != UNKNOWN => self.b.expr(SourceExpr::Element(operand)),
                    _ => UNKNOWN,
                }
            }
            "binary_expression" => {
                // Long sums nest to the left: follow the left operands in a loop.
                let mut operands: SmallVec<[TreeNode<'t>; 8]> = SmallVec::new();
                let mut at = node;
                while at.kind() == "binary_expression" {
                    let kids = self.children(at);
                    operands.extend(kids.field("right"));
                    let Some(left) = kids.field("left") else { break };
                    at = left;
                }
                operands.push(at);
                for operand in operands.into_iter().rev().filter(|o| *o != node) {
                    self.used(operand);
                }
                UNKNOWN
            }
            "parenthesized_expression" => {
                let kids = self.children(node);
                kids.named().next().map_or(UNKNOWN, |inner| self.used(inner))
            }
            "index_expression" => self.index(node),
            "slice_expression" => {
                let kids = self.children(node);
                let object = kids.field("operand").map_or(UNKNOWN, |n| self.used(n));
                for (field, kid) in kids.with_fields() {
                    if matches!(field, Some("start" | "end" | "capacity")) && kid.is_named() {
                        self.used(kid);
                    }
                }
                object
            }
            "type_assertion_expression" => {
                let kids = self.children(node);
                let operand = kids.field("operand").map_or(UNKNOWN, |n| self.used(n));
                kids.field("type").map_or(UNKNOWN, |ty| self.asserted(ty, operand))
            }
            "type_conversion_expression" => self.conversion(node),
            "type_instantiation_expression" => {
                let kids = self.children(node);
                let mut named = kids.named();
                let function = named.next().map_or(UNKNOWN, |n| self.ty(n));
                for argument in named {
                    self.ty(argument);
                }
                function
            }
            "type_identifier" | "qualified_type" | "generic_type" | "pointer_type" | "slice_type" | "map_type"
            | "channel_type" | "function_type" | "struct_type" | "interface_type" | "array_type" => self.ty(node),
            "comment" => UNKNOWN,
            "ERROR" => {
                self.each(node);
                UNKNOWN
            }
            _ => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.used(kid);
                }
                UNKNOWN
            }
        }
    }

    /// The text between the quotes, if the node is a string.
    pub(super) fn string(&self, node: TreeNode<'_>) -> Option<&'t str> {
        let quote = match node.kind() {
            "interpreted_string_literal" => '"',
            "raw_string_literal" => '`',
            _ => return None,
        };
        let text = self.text(node);
        let text = text.strip_prefix(quote).unwrap_or(text);
        Some(text.strip_suffix(quote).unwrap_or(text))
    }

    /// `x.(T)`. A function type does not identify the function, so then the value itself is kept.
    pub(super) fn asserted(&mut self, ty: TreeNode<'t>, value: ExprId) -> ExprId {
        let function = self.bare(ty).kind() == "function_type";
        let ty = self.ty(ty);
        if ty == UNKNOWN {
            return value;
        }
        let instance = self.b.expr(SourceExpr::InstanceOf(ty));
        if function { self.b.either(&[value, instance]) } else { instance }
    }

    /// `[]T(x)`, `(func())(x)`; also `f[a](x)`, which is parsed as a conversion to a generic type.
    fn conversion(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(type_node) = kids.field("type") else { return UNKNOWN };
        if matches!(type_node.kind(), "type_identifier" | "qualified_type" | "generic_type") {
            let inner = self.children(type_node);
            let arguments = inner.field("type_arguments");
            let function = match arguments {
                Some(_) => inner.field("type").unwrap_or(type_node),
                None => type_node,
            };
            let path = self.text(function).split('.').map(str::trim);
            let mut callee = UNKNOWN;
            for (place, name) in path.enumerate() {
                callee = if place == 0 { self.read_name(name) } else { self.b.member(callee, name) };
            }
            if let Some(arguments) = arguments {
                callee = self.instantiated(callee, arguments);
            }
            let value = kids.field("operand").map_or(UNKNOWN, |n| self.used(n));
            return self.b.call(callee, CallKind::Plain, &[Arg { how: ArgKind::Place, value }], span(node));
        }
        let ty = self.ty(type_node);
        let operand = kids.field("operand").map_or(UNKNOWN, |n| self.used(n));
        if ty == UNKNOWN {
            return operand;
        }
        let instance = self.b.expr(SourceExpr::InstanceOf(ty));
        match (self.b.facts.expr(operand), type_node.children().field("element")) {
            (SourceExpr::Unknown | SourceExpr::Literal(_), _) => instance,
            // `[]byte(x)`, `[]rune(x)`: converted from strings only.
            (_, Some(element)) if is_predeclared(self.text(element)) => instance,
            _ => self.b.either(&[operand, instance]),
        }
    }

    fn index(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(operand) = kids.field("operand") else { return UNKNOWN };
        let object = self.used(operand);
        let Some(index) = kids.field("index") else { return object };
        if object == UNKNOWN {
            self.used(index);
            return UNKNOWN;
        }
        if let Some(text) = self.string(index) {
            let name = self.b.name(tree::cut(text, 120));
            return self.b.expr(SourceExpr::At(object, name));
        }
        if index.kind() == "int_literal" {
            return match self.text(index).parse() {
                Ok(place) => self.b.expr(SourceExpr::AtIndex(object, place)),
                Err(_) => self.b.expr(SourceExpr::Element(object)),
            };
        }
        if self.instantiates(object, &[index]) == Some(true) {
            self.ty(index);
            return object;
        }
        self.used(index);
        self.b.expr(SourceExpr::Element(object))
    }

    /// Whether `f[a]` instantiates a generic function (`true`) or is an element (`false`). The syntax is the same.
    fn instantiates(&mut self, object: ExprId, arguments: &[TreeNode<'t>]) -> Option<bool> {
        match self.b.facts.expr(object) {
            SourceExpr::Var(var) => match self.b.facts.vars[var].what {
                VarKind::Def(def) if self.b.facts.def(def).kind != DefKind::Variable => return Some(true),
                VarKind::TypeParam => return Some(true),
                VarKind::Local | VarKind::Param(_) | VarKind::Rest(_) => return Some(false),
                _ => {}
            },
            SourceExpr::Member(of, _) => match self.b.facts.expr(of) {
                SourceExpr::Var(var) if matches!(self.b.facts.vars[var].what, VarKind::Import(_)) => {}
                SourceExpr::Free(_) => {}
                _ => return Some(false),
            },
            SourceExpr::Free(_) => {}
            _ => return Some(false),
        }
        if arguments.len() > 1 {
            return Some(true);
        }
        let mut argument = *arguments.first()?;
        if argument.kind() == "type_elem" {
            argument = argument.children().named().next()?;
        }
        match argument.kind() {
            "identifier" | "type_identifier" => {
                let text = self.text(argument);
                let name = self.b.name(text);
                match self.b.find(self.b.scope, name) {
                    Some(var) => {
                        let what = self.b.facts.vars[var].what;
                        Some(matches!(what, VarKind::Def(_) | VarKind::TypeParam))
                    }
                    None => is_predeclared(text).then_some(true),
                }
            }
            "qualified_type" | "selector_expression" => {
                let text = self.text(argument.children().named().next()?);
                let name = self.b.name(text);
                let var = self.b.find(self.b.scope, name)?;
                let what = self.b.facts.vars[var].what;
                (!matches!(what, VarKind::Import(_))).then_some(false)
            }
            kind => Some(kind.ends_with("_type")),
        }
    }

    // --- calls ---

    fn call(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(function) = kids.field("function") else { return UNKNOWN };
        let arguments = kids.field("arguments");
        if function.kind() == "identifier"
            && let Some(arguments) = arguments
            && let Some(made) = self.builtin(function, arguments)
        {
            return made;
        }
        let callee = self.callee(function, &kids);
        let args = match arguments {
            Some(arguments) => self.arguments(arguments),
            None => Args::new(),
        };
        let at = self.call_site(node, function);
        self.b.call(callee, CallKind::Plain, &args, at)
    }

    fn callee(&mut self, function: TreeNode<'t>, kids: &NodeChildren<'t>) -> ExprId {
        if let Some(list) = kids.field("type_arguments") {
            let object = self.value(function);
            return self.instantiated(object, list);
        }
        if function.kind() == "index_expression" {
            let inner = self.children(function);
            if let (Some(operand), Some(index)) = (inner.field("operand"), inner.field("index"))
                && self.string(index).is_none()
                && index.kind() != "int_literal"
            {
                let object = self.value(operand);
                let how = self.instantiates(object, &[index]);
                self.used(index);
                return self.taken(object, how);
            }
        }
        self.value(function)
    }

    /// `f[a]` where the brackets were parsed as type arguments.
    fn instantiated(&mut self, object: ExprId, list: TreeNode<'t>) -> ExprId {
        let kids = self.children(list);
        let types: SmallVec<[TreeNode<'t>; 4]> = kids.named().collect();
        let how = self.instantiates(object, &types);
        for ty in types {
            self.ty(ty);
        }
        self.taken(object, how)
    }

    fn taken(&mut self, object: ExprId, instantiates: Option<bool>) -> ExprId {
        if object == UNKNOWN || instantiates == Some(true) {
            return object;
        }
        let element = self.b.expr(SourceExpr::Element(object));
        match instantiates {
            Some(_) => element,
            // A function has no elements and a list cannot be called, so only one of the two has a value.
            None => self.b.either(&[object, element]),
        }
    }

    /// The result of `new`, `make` and `append`, which are not recorded as calls.
    fn builtin(&mut self, function: TreeNode<'t>, arguments: TreeNode<'t>) -> Option<ExprId> {
        let called = self.text(function);
        if !matches!(called, "new" | "make" | "append") {
            return None;
        }
        let name = self.b.name(called);
        if self.b.find(self.b.scope, name).is_some() {
            return None;
        }
        if called == "append" {
            let args = self.arguments(arguments);
            let items: Items = args
                .iter()
                .enumerate()
                .map(|(place, arg)| ExprItem {
                    key: if place == 0 || arg.how == ArgKind::Spread { ItemKey::Spread } else { ItemKey::Next },
                    value: arg.value,
                })
                .filter(|item| item.value != UNKNOWN)
                .collect();
            if items.is_empty() {
                return Some(UNKNOWN);
            }
            let items = self.b.items(&items);
            return Some(self.b.expr(SourceExpr::Joined(items)));
        }
        let kids = self.children(arguments);
        let mut named = kids.named();
        let ty = named.next().map_or(UNKNOWN, |n| self.ty(n));
        for size in named {
            self.used(size);
        }
        Some(if ty == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::InstanceOf(ty)) })
    }

    fn arguments(&mut self, node: TreeNode<'t>) -> Args {
        let kids = self.children(node);
        let mut args = Args::new();
        for kid in kids.named() {
            if kid.kind() == "variadic_argument" {
                let inner = self.children(kid);
                let value = inner.named().next().map_or(UNKNOWN, |n| self.used(n));
                args.push(Arg { how: ArgKind::Spread, value });
            } else {
                args.push(Arg { how: ArgKind::Place, value: self.used(kid) });
            }
        }
        args
    }

    /// The position of a call is that of its name, so that calls in a chain over several lines have different lines.
    fn call_site(&self, node: TreeNode<'t>, function: TreeNode<'t>) -> SourceSpan {
        let mut at = span(node);
        if function.kind() == "selector_expression"
            && let end = function.end_position()
            && end.row + 1 != at.line
            && let Some(field) = function.children().field("field")
        {
            let field = field.start_position();
            at.line = field.row + 1;
            at.column = field.column;
        }
        at
    }

    // --- composite literals ---

    fn composite(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let Some(ty) = kids.field("type") else { return UNKNOWN };
        let shape = self.shape(ty);
        match kids.field("body") {
            Some(body) => self.literal(body, &shape),
            None => UNKNOWN,
        }
    }

    fn shape(&mut self, node: TreeNode<'t>) -> Shape {
        match node.kind() {
            "slice_type" | "array_type" | "implicit_length_array_type" => {
                let kids = self.children(node);
                if let Some(length) = kids.field("length") {
                    self.used(length);
                }
                Shape::List(Box::new(self.part_shape(kids.field("element"))))
            }
            "map_type" => {
                let kids = self.children(node);
                let key = self.part_shape(kids.field("key"));
                let value = self.part_shape(kids.field("value"));
                Shape::Map(Box::new(key), Box::new(value))
            }
            // In a literal, an element `{…}` is short for `&T{…}` as well as `T{…}`.
            "pointer_type" | "parenthesized_type" => {
                let kids = self.children(node);
                self.part_shape(kids.named().next())
            }
            _ => Shape::Of(self.ty(node)),
        }
    }

    fn part_shape(&mut self, node: Option<TreeNode<'t>>) -> Shape {
        match node {
            Some(node) => self.deeper(Shape::Of(UNKNOWN), |reader| reader.shape(node)),
            None => Shape::Of(UNKNOWN),
        }
    }

    fn type_of(&mut self, shape: &Shape) -> ExprId {
        match shape {
            Shape::List(element) => {
                let element = self.type_of(element);
                self.list_of(element)
            }
            Shape::Map(key, value) => {
                let (key, value) = (self.type_of(key), self.type_of(value));
                self.b.generic(self.words.map, &[key, value])
            }
            Shape::Of(ty) => *ty,
            Shape::Like(_) => UNKNOWN,
        }
    }

    fn literal(&mut self, body: TreeNode<'t>, shape: &Shape) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.literal_inner(body, shape))
    }

    fn literal_inner(&mut self, body: TreeNode<'t>, shape: &Shape) -> ExprId {
        let unknown = Shape::Of(UNKNOWN);
        let inside;
        let (key_shape, value_shape) = match shape {
            Shape::List(element) => (&unknown, &**element),
            Shape::Map(key, value) => (&**key, &**value),
            Shape::Of(UNKNOWN) => (&unknown, &unknown),
            Shape::Of(_) | Shape::Like(_) => {
                inside = Shape::Like(UNKNOWN);
                (&unknown, &inside)
            }
        };
        let kids = self.children(body);
        let mut items = Items::new();
        // Computed for the first element that omits its type.
        let mut like: Option<Shape> = None;
        let mut keyed = false;
        for kid in kids.named() {
            let (key, value) = match kid.kind() {
                "keyed_element" => {
                    keyed = true;
                    let inner = self.children(kid);
                    let key = inner.field("key").map_or(ItemKey::Any, |n| self.key(n, shape, key_shape));
                    (key, inner.field("value"))
                }
                _ => (ItemKey::Next, Some(kid)),
            };
            let Some(value) =
                value.and_then(|n| if n.kind() == "literal_element" { n.children().named().next() } else { Some(n) })
            else {
                continue;
            };
            let value = if value.kind() == "literal_value" {
                let shape = match value_shape {
                    Shape::Like(_) => &*like.get_or_insert_with(|| self.like(shape)),
                    known => known,
                };
                self.literal(value, shape)
            } else {
                self.used(value)
            };
            items.push(ExprItem { key, value });
        }
        // Tables of plain values are dropped, because they cannot carry functions and may be long.
        if items.iter().all(|item| self.plain(item.value)) {
            items.clear();
        }
        match shape {
            Shape::List(_) | Shape::Map(..) if items.is_empty() => {
                let ty = self.type_of(shape);
                self.b.expr(SourceExpr::InstanceOf(ty))
            }
            Shape::List(_) | Shape::Map(..) => {
                let kind = if matches!(shape, Shape::List(_)) { ListKind::List } else { ListKind::Map };
                self.b.collection(kind, &items)
            }
            Shape::Of(ty) if *ty != UNKNOWN => {
                let items = self.b.items(&items);
                self.b.expr(SourceExpr::Construct(*ty, items))
            }
            Shape::Of(_) | Shape::Like(_) => {
                let kind = if keyed { ListKind::Map } else { ListKind::List };
                let written = if items.is_empty() { UNKNOWN } else { self.b.collection(kind, &items) };
                match shape {
                    Shape::Like(value) => self.b.either(&[*value, written]),
                    _ => written,
                }
            }
        }
    }

    /// Whether a value can neither be called nor have members.
    pub(super) fn plain(&self, value: ExprId) -> bool {
        value == UNKNOWN || value == self.words.number || value == self.words.truth
    }

    /// The type of the elements of a named list or map, of which only the position is known.
    fn like(&mut self, shape: &Shape) -> Shape {
        let whole = match shape {
            Shape::Of(ty) => self.b.expr(SourceExpr::InstanceOf(*ty)),
            Shape::Like(value) => *value,
            Shape::List(_) | Shape::Map(..) => UNKNOWN,
        };
        Shape::Like(if whole == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::Element(whole)) })
    }

    fn key(&mut self, node: TreeNode<'t>, shape: &Shape, key_shape: &Shape) -> ItemKey {
        let node = if node.kind() == "literal_element" { node.children().named().next().unwrap_or(node) } else { node };
        match node.kind() {
            // Most likely a field of a struct: a key of a named map would be a constant.
            "identifier" if matches!(shape, Shape::Of(_) | Shape::Like(_)) => {
                let name = self.text(node);
                ItemKey::Name(self.b.name(name))
            }
            "literal_value" => {
                self.literal(node, key_shape);
                ItemKey::Any
            }
            "int_literal" if matches!(shape, Shape::Map(..)) => {
                let name = self.text(node);
                ItemKey::Name(self.b.name(name))
            }
            _ => match self.string(node) {
                Some(text) => ItemKey::Name(self.b.name(tree::cut(text, 120))),
                None => {
                    self.used(node);
                    ItemKey::Any
                }
            },
        }
    }
}
