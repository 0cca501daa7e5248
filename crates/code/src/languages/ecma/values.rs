//! Expressions: their possible values, as far as they matter for resolving calls.

use super::{Reader, Site, is_declaration, is_statement};
use crate::facts::{DefId, DefKind, ExprId, ExprItem, ItemKey, ListKind, Literal, SourceExpr, UNKNOWN, flag};
use crate::tree::{self, TreeNode, line};

impl<'t> Reader<'t> {
    pub(super) fn value(&mut self, node: TreeNode<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.value_inner(node))
    }

    /// Reads a value and records a reference to the symbol it names.
    pub(super) fn used(&mut self, node: TreeNode<'t>) -> ExprId {
        let value = self.value(node);
        if matches!(node.kind(), "identifier" | "member_expression" | "shorthand_property_identifier") {
            self.b.uses(value, line(node));
        }
        value
    }

    fn value_inner(&mut self, node: TreeNode<'t>) -> ExprId {
        match node.kind() {
            "identifier" | "shorthand_property_identifier" => {
                let name = self.text(node);
                self.notice_exports(name);
                self.reads_arguments |= name == "arguments";
                self.b.read(name)
            }
            "member_expression" => self.member(node),
            "call_expression" => self.call(node),
            "new_expression" => self.new_call(node),
            "this" => self.b.expr(SourceExpr::This),
            "super" => self.b.expr(SourceExpr::Super),
            "string" => {
                let text = tree::cut(self.inner_text(node), 120);
                let name = self.b.name(text);
                self.b.expr(SourceExpr::Literal(Literal::String(name)))
            }
            "template_string" => {
                self.parts(node);
                self.b.expr(SourceExpr::Literal(Literal::Template))
            }
            "number" => self.b.expr(SourceExpr::Literal(Literal::Number)),
            "true" | "false" => self.b.expr(SourceExpr::Literal(Literal::Bool)),
            "null" | "undefined" => self.b.expr(SourceExpr::Literal(Literal::Nothing)),
            "regex" => self.b.expr(SourceExpr::Literal(Literal::Regex)),
            "arrow_function" | "function_expression" | "generator_function" => {
                let def = self.function(node, Site::new("", DefKind::Lambda, 0, node));
                self.b.expr(SourceExpr::Def(def))
            }
            "class" => {
                let def = self.class(node, Site::new("", DefKind::Class, 0, node), &[]);
                self.b.expr(SourceExpr::Def(def))
            }
            "object" => self.object(node),
            "array" => self.array(node),
            "subscript_expression" => self.subscript(node),
            "parenthesized_expression" => {
                let kids = self.children(node);
                let mut named = kids.named();
                let inner = named.next().map_or(UNKNOWN, |n| self.used(n));
                for rest in named {
                    self.value(rest);
                }
                inner
            }
            "assignment_expression" => self.assignment(node, node),
            "augmented_assignment_expression" => self.augmented_assignment(node),
            "await_expression" => {
                let kids = self.children(node);
                let inner = kids.named().next().map_or(UNKNOWN, |n| self.used(n));
                if inner == UNKNOWN { UNKNOWN } else { self.b.expr(SourceExpr::Awaited(inner)) }
            }
            "yield_expression" => {
                let kids = self.children(node);
                if let Some(inner) = kids.named().next() {
                    let mut value = self.used(inner);
                    if kids.has("*") && value != UNKNOWN {
                        value = self.b.expr(SourceExpr::Element(value));
                    }
                    self.b.returns(value, true);
                }
                UNKNOWN
            }
            "ternary_expression" => {
                let kids = self.children(node);
                if let Some(condition) = kids.field("condition") {
                    self.used(condition);
                }
                let yes = kids.field("consequence").map_or(UNKNOWN, |n| self.used(n));
                let no = kids.field("alternative").map_or(UNKNOWN, |n| self.used(n));
                self.b.either(&[yes, no])
            }
            "binary_expression" => self.binary(node),
            "sequence_expression" => {
                let kids = self.children(node);
                kids.named().map(|kid| self.used(kid)).last().unwrap_or(UNKNOWN)
            }
            "as_expression" | "satisfies_expression" | "type_assertion" => self.cast(node, None),
            "non_null_expression" | "instantiation_expression" => {
                let kids = self.children(node);
                let mut named = kids.named();
                let inner = named.next().map_or(UNKNOWN, |n| self.used(n));
                for types in named {
                    self.value(types);
                }
                inner
            }
            "jsx_element" | "jsx_self_closing_element" => self.element(node),
            "type_annotation" | "type_arguments" | "type_parameters" => {
                self.types(node);
                UNKNOWN
            }
            "import" | "meta_property" | "comment" => UNKNOWN,
            kind if is_declaration(kind) || is_statement(kind) => {
                self.statement(node);
                UNKNOWN
            }
            // Arithmetic, comparisons, errors: the parts are read, the result is unknown.
            _ => {
                self.parts(node);
                UNKNOWN
            }
        }
    }

    fn parts(&mut self, node: TreeNode<'t>) {
        for kid in self.read_through(node) {
            self.used(kid);
        }
    }

    fn member(&mut self, node: TreeNode<'t>) -> ExprId {
        if self.is_module_exports(node) {
            let var = self.exports_variable();
            return self.b.expr(SourceExpr::Var(var));
        }
        let kids = self.children(node);
        let (Some(object), Some(property)) = (kids.field("object"), kids.field("property")) else {
            return UNKNOWN;
        };
        let object = self.value(object);
        self.b.member(object, self.text(property))
    }

    fn subscript(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let object = kids.field("object").map_or(UNKNOWN, |n| self.used(n));
        let Some(index) = kids.field("index") else { return UNKNOWN };
        if object == UNKNOWN {
            self.used(index);
            return UNKNOWN;
        }
        if let Some(key) = self.constant(index) {
            let name = self.b.name(key);
            return self.b.expr(SourceExpr::At(object, name));
        }
        if index.kind() == "number"
            && let Ok(place) = self.text(index).parse::<u32>()
        {
            return self.b.expr(SourceExpr::AtIndex(object, place));
        }
        self.used(index);
        self.b.expr(SourceExpr::Element(object))
    }

    /// Long sums nest to the left: follows the left operands in a loop.
    fn binary(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        if matches!(kids.field("operator").map(|o| o.kind()), Some("||" | "&&" | "??")) {
            let left = kids.field("left").map_or(UNKNOWN, |n| self.used(n));
            let right = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
            return self.b.either(&[left, right]);
        }
        let mut rights = Vec::new();
        let mut spine = node;
        loop {
            let kids = self.children(spine);
            rights.extend(kids.field("right"));
            match kids.field("left") {
                Some(left) if left.kind() == "binary_expression" && !self.is_logical(left) => spine = left,
                Some(left) => {
                    self.used(left);
                    break;
                }
                None => break,
            }
        }
        while let Some(right) = rights.pop() {
            self.used(right);
        }
        UNKNOWN
    }

    fn is_logical(&mut self, node: TreeNode<'t>) -> bool {
        let kids = self.children(node);
        matches!(kids.field("operator").map(|o| o.kind()), Some("||" | "&&" | "??"))
    }

    /// `e as T`, `e satisfies T`, `<T>e`: the value, or an instance of the given type.
    pub(super) fn cast(&mut self, node: TreeNode<'t>, site: Option<Site<'t>>) -> ExprId {
        let kids = self.children(node);
        let mut named = kids.named();
        let (Some(first), second) = (named.next(), named.next()) else { return UNKNOWN };
        let (inner, ty) = if node.kind() == "type_assertion" { (second, Some(first)) } else { (Some(first), second) };
        let value = match (inner, site) {
            (Some(inner), Some(site)) => self.known(inner, site),
            (Some(inner), None) => self.used(inner),
            (None, _) => UNKNOWN,
        };
        let ty = match ty {
            Some(ty) if ty.kind() == "type_arguments" => self.types(ty).first().copied().unwrap_or(UNKNOWN),
            Some(ty) => self.ty(ty),
            None => UNKNOWN,
        };
        // A function or class keeps its own type.
        if ty == UNKNOWN || matches!(self.b.facts.expr(value), SourceExpr::Def(_)) {
            return value;
        }
        let asserted = self.b.expr(SourceExpr::InstanceOf(ty));
        self.b.either(&[value, asserted])
    }

    fn array(&mut self, node: TreeNode<'t>) -> ExprId {
        let mut items = Vec::new();
        for kid in self.read_through(node) {
            items.push(self.item(kid));
        }
        self.b.collection(ListKind::List, &items)
    }

    /// An element of a list, spread or not.
    fn item(&mut self, node: TreeNode<'t>) -> ExprItem {
        if node.kind() == "spread_element" {
            let kids = self.children(node);
            let value = kids.named().next().map_or(UNKNOWN, |n| self.used(n));
            return ExprItem { key: ItemKey::Spread, value };
        }
        ExprItem { key: ItemKey::Next, value: self.used(node) }
    }

    fn object(&mut self, node: TreeNode<'t>) -> ExprId {
        let mut items = Vec::new();
        let mut functions: Vec<DefId> = Vec::new();
        for kid in self.read_through(node) {
            match kid.kind() {
                "pair" | "method_definition" => {
                    let inner = self.children(kid);
                    let Some(named) = inner.field("key").or_else(|| inner.field("name")) else { continue };
                    let constant = self.property_name(named);
                    let site = Site::new(constant.unwrap_or_else(|| self.text(named)), DefKind::Function, 0, kid);
                    let value = if kid.kind() == "pair" {
                        inner.field("value").map_or(UNKNOWN, |v| self.known(v, site))
                    } else {
                        self.deeper(UNKNOWN, |reader| {
                            let def = reader.function(kid, site);
                            reader.b.expr(SourceExpr::Def(def))
                        })
                    };
                    if let SourceExpr::Def(def) = self.b.facts.expr(value)
                        && self.b.facts.def(def).kind.callable()
                        && !self.b.facts.def(def).is(flag::ARROW)
                        && self.b.facts.def(def).receiver.is_none()
                    {
                        functions.push(def);
                    }
                    let key = constant.map_or(ItemKey::Any, |name| ItemKey::Name(self.b.name(name)));
                    items.push(ExprItem { key, value });
                }
                "shorthand_property_identifier" => {
                    let key = ItemKey::Name(self.b.name(self.text(kid)));
                    items.push(ExprItem { key, value: self.used(kid) });
                }
                "spread_element" => items.push(self.item(kid)),
                _ => {
                    self.value(kid);
                }
            }
        }
        let object = self.b.collection(ListKind::Map, &items);
        for function in functions {
            self.b.def(function).receiver = Some(object);
        }
        object
    }

    /// The name of a property if it is a constant; a computed name is evaluated.
    pub(super) fn property_name(&mut self, node: TreeNode<'t>) -> Option<&'t str> {
        match node.kind() {
            "string" => Some(self.inner_text(node)),
            "computed_property_name" => {
                let kids = self.children(node);
                let inner = kids.named().next()?;
                let constant = self.constant(inner);
                if constant.is_none() {
                    self.used(inner);
                }
                constant
            }
            _ => Some(self.text(node)),
        }
    }

    /// The text of a string without substitutions.
    pub(super) fn constant(&mut self, node: TreeNode<'t>) -> Option<&'t str> {
        match node.kind() {
            "string" => Some(self.inner_text(node)),
            "template_string" => {
                let kids = self.children(node);
                let text = self.text(node);
                kids.kind("template_substitution").is_none().then(|| text.trim_matches('`'))
            }
            _ => None,
        }
    }

    /// The text between the quotes, or the whole text if there are none.
    pub(super) fn inner_text(&self, node: TreeNode<'_>) -> &'t str {
        let text = self.text(node);
        for quote in ['"', '\'', '`'] {
            if let Some(inner) = text.strip_prefix(quote) {
                return inner.strip_suffix(quote).unwrap_or(inner);
            }
        }
        text
    }

    // --- JSX ---

    /// `<Foo a={b}>…</Foo>`: calls the component with its properties. HTML tags are not calls.
    fn element(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let open = if node.kind() == "jsx_element" { kids.field("open_tag") } else { Some(node) };
        let mut component = UNKNOWN;
        let mut items = Vec::new();
        if let Some(open) = open {
            let inner = self.children(open);
            if let Some(name) = inner.field("name")
                && (name.kind() == "member_expression" || self.text(name).starts_with(char::is_uppercase))
            {
                component = self.value(name);
            }
            if let Some(types) = inner.field("type_arguments") {
                self.types(types);
            }
            for attribute in inner.fields("attribute") {
                items.extend(self.attribute(attribute));
            }
        }
        let mut children = Vec::new();
        if node.kind() == "jsx_element" {
            for kid in self.read_through(node) {
                match kid.kind() {
                    "jsx_expression" => children.push(self.braces(kid).value),
                    "jsx_element" | "jsx_self_closing_element" => {
                        self.value(kid);
                    }
                    "ERROR" => self.parts(kid),
                    _ => {}
                }
            }
        }
        if component != UNKNOWN {
            let value = self.b.either(&children);
            if value != UNKNOWN {
                items.push(ExprItem { key: ItemKey::Name(self.b.name("children")), value });
            }
            let properties = self.b.collection(ListKind::Map, &items);
            self.component_call(component, properties, open.unwrap_or(node));
        }
        UNKNOWN
    }

    fn attribute(&mut self, node: TreeNode<'t>) -> Option<ExprItem> {
        if node.kind() == "jsx_expression" {
            return Some(self.braces(node));
        }
        let kids = self.children(node);
        let mut named = kids.named();
        let name = named.next()?;
        let value = match named.next() {
            Some(value) if value.kind() == "jsx_expression" => self.braces(value).value,
            Some(value) => self.value(value),
            None => self.b.expr(SourceExpr::Literal(Literal::Bool)),
        };
        Some(ExprItem { key: ItemKey::Name(self.b.name(self.text(name))), value })
    }

    /// `{e}` or `{...e}`.
    fn braces(&mut self, node: TreeNode<'t>) -> ExprItem {
        let kids = self.children(node);
        match kids.named().next() {
            Some(inner) => self.item(inner),
            None => ExprItem { key: ItemKey::Next, value: UNKNOWN },
        }
    }
}
