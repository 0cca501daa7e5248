//! Python: text to facts.

use crate::builder::Builder;
use crate::facts::{
    Arg, ArgKind, BaseKind, CallKind, DefId, Expr, ExprId, Facts, Imported, Item, Key, Kind, ListKind, Literal, ROOT,
    Target, UNKNOWN, VarKind, Visibility, flag,
};
use crate::language::Language;
use crate::tree::{self, Kids, line, one_line, span};
use tree_sitter::{Node, Tree, TreeCursor};

pub fn read(path: &str, text: &str, tree: &Tree) -> Facts {
    let mut reader = Reader {
        b: Builder::new(Language::Python, text, path.rsplit('/').next().unwrap_or(path)),
        cursor: tree.walk(),
        test_file: is_test_file(path),
    };
    let root = tree.root_node();
    let doc = reader.docstring(root);
    reader.b.def(ROOT).doc = doc;
    if reader.test_file {
        reader.b.def(ROOT).flags |= flag::TEST;
    }
    reader.block(root);
    if let Some((line, what)) = tree::first_fault(root) {
        reader.b.fault(line, &what);
    }
    reader.b.finish()
}

/// By the conventions of pytest, unittest and Django.
fn is_test_file(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    name.starts_with("test_")
        || name.ends_with("_test.py")
        || name == "tests.py"
        || name == "conftest.py"
        || parts.any(|folder| folder == "tests" || folder == "test")
}

struct Reader<'t> {
    b: Builder<'t>,
    cursor: TreeCursor<'t>,
    test_file: bool,
}

impl<'t> Reader<'t> {
    fn kids(&mut self, node: Node<'t>) -> Kids<'t> {
        Kids::of(node, &mut self.cursor)
    }

    fn text(&self, node: Node<'_>) -> &'t str {
        tree::text(node, self.b.text)
    }

    // --- statements ---

    fn block(&mut self, node: Node<'t>) {
        let kids = self.kids(node);
        for kid in kids.named() {
            self.statement(kid);
        }
    }

    fn statement(&mut self, node: Node<'t>) {
        match node.kind() {
            "expression_statement" => {
                let kids = self.kids(node);
                for kid in kids.named() {
                    self.evaluate(kid);
                }
            }
            "function_definition" => {
                self.function(node, &[], node);
            }
            "class_definition" => {
                self.class(node, &[], node);
            }
            "decorated_definition" => self.decorated(node),
            "import_statement" => self.import(node),
            "import_from_statement" | "future_import_statement" => self.import_from(node),
            "return_statement" => {
                let kids = self.kids(node);
                if let Some(value) = kids.named().next() {
                    let value = self.value(value);
                    self.b.returns(value, false);
                }
            }
            "for_statement" => {
                let kids = self.kids(node);
                self.for_in(&kids, node);
                for part in ["body", "alternative"] {
                    if let Some(block) = kids.field(part) {
                        self.nested(block);
                    }
                }
            }
            "with_statement" => {
                let kids = self.kids(node);
                for kid in kids.named() {
                    self.nested(kid);
                }
            }
            "with_item" => {
                let kids = self.kids(node);
                if let Some(value) = kids.field("value") {
                    self.with_item(value);
                }
            }
            "raise_statement" => {
                let kids = self.kids(node);
                for kid in kids.named() {
                    let raised = self.value(kid);
                    // `raise Error` calls the class as `raise Error()` does.
                    if matches!(kid.kind(), "identifier" | "attribute") {
                        let at = span(kid);
                        self.b.call(raised, CallKind::Implicit, &[], at);
                    }
                }
            }
            "global_statement" | "nonlocal_statement" => {
                let global = node.kind() == "global_statement";
                let kids = self.kids(node);
                for kid in kids.named() {
                    let name = self.b.name(tree::text(kid, self.b.text));
                    let var = if global {
                        self.b.variable_in(0, name)
                    } else {
                        match self.b.find(self.b.scope, name) {
                            Some(var) => var,
                            None => continue,
                        }
                    };
                    self.b.alias(name, var);
                }
            }
            "if_statement" => {
                let kids = self.kids(node);
                if self.b.owner == ROOT && kids.field("condition").is_some_and(|c| self.text(c).starts_with("__name__"))
                {
                    self.b.def(ROOT).flags |= flag::ENTRY;
                }
                for kid in kids.named() {
                    self.nested(kid);
                }
            }
            "delete_statement" | "assert_statement" => {
                let kids = self.kids(node);
                for kid in kids.named() {
                    self.value(kid);
                }
            }
            "except_clause" | "except_group_clause" => self.except(node),
            "type_alias_statement" => {
                let kids = self.kids(node);
                let mut named = kids.named();
                if let (Some(left), Some(right)) = (named.next(), named.next()) {
                    let ty = self.ty(right);
                    let name = self.text(left).to_owned();
                    let def = self.b.add_def(&name, Kind::Type, span(node));
                    self.b.def(def).result = Some(ty);
                    let scope = self.b.scope;
                    self.b.declare_def(scope, def);
                }
            }
            "case_clause" => {
                let kids = self.kids(node);
                for (field, kid) in kids.with_fields() {
                    match field {
                        Some("consequence") => self.nested(kid),
                        Some("guard") => {
                            self.value(kid);
                        }
                        _ if kid.is_named() => self.pattern_names(kid),
                        _ => {}
                    }
                }
            }
            "comment" | "pass_statement" | "break_statement" | "continue_statement" => {}
            // Anything else is a block of statements or holds some: while, try, match, else, finally, with_clause.
            _ if statement_like(node.kind()) => {
                let kids = self.kids(node);
                for kid in kids.named() {
                    self.nested(kid);
                }
            }
            _ => {
                self.value(node);
            }
        }
    }

    fn nested(&mut self, node: Node<'t>) {
        self.deeper((), |reader| reader.statement(node));
    }

    fn deeper<R>(&mut self, otherwise: R, read: impl FnOnce(&mut Self) -> R) -> R {
        if !self.b.enter() {
            return otherwise;
        }
        let result = stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || read(self));
        self.b.leave();
        result
    }

    fn for_in(&mut self, kids: &Kids<'t>, node: Node<'t>) {
        let Some(right) = kids.field("right") else { return };
        let over = self.value(right);
        let element = self.iterate(over, node);
        if let Some(left) = kids.field("left") {
            self.assign(left, element);
        }
    }

    /// `for` asks for an iterator and then for the next element, by methods that a class may define.
    fn iterate(&mut self, over: ExprId, node: Node<'t>) -> ExprId {
        if over == UNKNOWN {
            return UNKNOWN;
        }
        let at = span(node);
        let iterator = self.b.implicit(over, "__iter__", &[], at);
        self.b.implicit(iterator, "__next__", &[], at);
        self.b.expr(Expr::Element(over))
    }

    fn with_item(&mut self, node: Node<'t>) {
        let (value, name) = if node.kind() == "as_pattern" {
            let kids = self.kids(node);
            let mut named = kids.named();
            (named.next(), named.next())
        } else {
            (Some(node), None)
        };
        let Some(value) = value else { return };
        let at = span(value);
        let manager = self.value(value);
        let entered = self.b.implicit(manager, "__enter__", &[], at);
        self.b.implicit(manager, "__exit__", &[], at);
        if let Some(target) = name {
            let kids = self.kids(target);
            if let Some(target) = kids.named().next() {
                self.assign(target, entered);
            } else {
                self.assign(target, entered);
            }
        }
    }

    fn except(&mut self, node: Node<'t>) {
        let kids = self.kids(node);
        for (index, kid) in kids.named().enumerate() {
            match kid.kind() {
                "block" => self.nested(kid),
                "as_pattern" if index == 0 => {
                    let inner = self.kids(kid);
                    let mut named = inner.named();
                    let ty = named.next().map_or(UNKNOWN, |n| self.value(n));
                    let caught = if ty == UNKNOWN { UNKNOWN } else { self.b.expr(Expr::InstanceOf(ty)) };
                    if let Some(target) = named.next() {
                        let target_kids = self.kids(target);
                        let target = target_kids.named().next().unwrap_or(target);
                        self.assign(target, caught);
                    }
                }
                _ => {
                    self.value(kid);
                }
            }
        }
    }

    fn pattern_names(&mut self, node: Node<'t>) {
        self.deeper((), |reader| {
            if node.kind() == "class_pattern" {
                let kids = reader.kids(node);
                if let Some(class) = kids.named().next() {
                    let class = reader.value(class);
                    reader.b.uses(class, line(node));
                }
            }
            if node.kind() == "case_pattern" || node.kind().ends_with("_pattern") {
                let kids = reader.kids(node);
                for kid in kids.named() {
                    reader.pattern_names(kid);
                }
            }
        });
    }

    // --- definitions ---

    fn decorated(&mut self, node: Node<'t>) {
        let kids = self.kids(node);
        let mut decorators: Vec<Node<'t>> = Vec::new();
        for kid in kids.named() {
            match kid.kind() {
                "decorator" => {
                    let inner = self.kids(kid);
                    decorators.extend(inner.named().next());
                }
                "function_definition" => {
                    self.function(kid, &decorators, node);
                }
                "class_definition" => {
                    self.class(kid, &decorators, node);
                }
                _ => {}
            }
        }
    }

    fn function(&mut self, node: Node<'t>, decorators: &[Node<'t>], whole: Node<'t>) -> DefId {
        let kids = self.kids(node);
        let name = kids.field("name").map_or("", |n| self.text(n));
        let in_class = self.b.facts.def(self.b.owner).kind == Kind::Class;
        let kind = if in_class { Kind::Method } else { Kind::Function };
        let def = self.b.add_def(name, kind, span(whole));
        let mut flags = 0;
        if kids.has("async") {
            flags |= flag::ASYNC;
        }
        let mut wrapping: Vec<Node<'t>> = Vec::new();
        for decorator in decorators {
            match self.known_decorator(*decorator) {
                Some(known) => flags |= known,
                None => wrapping.push(*decorator),
            }
        }
        if in_class && flags & flag::STATIC == 0 {
            flags |= flag::TAKES_SELF;
            if matches!(name, "__new__" | "__init_subclass__" | "__class_getitem__") {
                flags |= flag::CLASS_METHOD;
            }
        }
        if in_class && name == "__init__" {
            flags |= flag::CONSTRUCTOR;
        }
        let visibility = visibility(name);
        if visibility == Visibility::Public && self.b.facts.def(self.b.owner).kind != Kind::Function {
            flags |= flag::EXPORTED;
        }
        let test_class = self.b.facts.def(self.b.owner).is(flag::TEST);
        if name.starts_with("test") && (self.test_file || test_class) && (in_class || self.b.owner == ROOT) {
            flags |= flag::TEST;
        }
        let signature = self.signature(node, &kids);
        let doc = kids.field("body").and_then(|body| self.docstring(body));
        // Decorators are evaluated outside the function.
        let mut decorated = self.b.expr(Expr::Def(def));
        let mut calls = Vec::new();
        for decorator in wrapping.iter().rev() {
            let callee = self.value(*decorator);
            self.b.uses(callee, line(*decorator));
            let arg = Arg { how: ArgKind::Place, value: decorated };
            let at = span(*decorator);
            decorated = self.b.call(callee, CallKind::Decorator, &[arg], at);
            calls.push(decorated);
        }
        {
            let d = self.b.def(def);
            d.flags |= flags;
            d.visibility = visibility;
            d.signature = signature.into();
            d.doc = doc;
            d.decorators = calls;
        }
        let result = kids.field("return_type").map(|ty| self.ty(ty));
        self.b.def(def).result = result;
        // Defaults are evaluated outside too, once.
        let parameters = kids.field("parameters");
        let read = self.parameters_outside(parameters);
        let body = kids.field("body");
        self.inside(def, false, |reader| {
            reader.parameters(read);
            if let Some(body) = body {
                reader.block(body);
            }
        });
        self.declare(def, decorated, wrapping.is_empty());
        def
    }

    /// A definition without decorators is what its name means; with some, the name means what they made of it.
    fn declare(&mut self, def: DefId, value: ExprId, plain: bool) {
        let scope = self.b.scope;
        if plain {
            self.b.declare_def(scope, def);
        } else {
            let name = self.b.facts.def(def).name;
            let var = self.b.variable_in(scope, name);
            self.b.bind(Target::Var(var), value);
        }
    }

    fn inside<R>(&mut self, def: DefId, own_only: bool, read: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.b.enter_def(def, own_only);
        let result = read(self);
        self.b.leave_def(before);
        result
    }

    /// What a decorator of the language itself means; `None` when it is an ordinary function.
    fn known_decorator(&mut self, node: Node<'t>) -> Option<u32> {
        let text = self.text(node);
        let name = text.split('(').next().unwrap_or(text).trim();
        let last = name.rsplit('.').next().unwrap_or(name);
        Some(match last {
            "property" | "cached_property" | "abstractproperty" => flag::GETTER,
            "staticmethod" => flag::STATIC,
            "classmethod" => flag::CLASS_METHOD,
            "abstractmethod" => flag::ABSTRACT,
            "setter" | "deleter" if name.contains('.') => flag::SETTER,
            "getter" if name.contains('.') => flag::GETTER,
            "overload" => flag::DECLARED,
            "wraps" => {
                self.value(node);
                flag::WRAPS
            }
            "lru_cache"
            | "cache"
            | "override"
            | "final"
            | "contextmanager"
            | "asynccontextmanager"
            | "total_ordering"
            | "dataclass"
            | "unique"
            | "runtime_checkable"
            | "fixture" => {
                let value = self.value(node);
                self.b.uses(value, line(node));
                0
            }
            _ => return None,
        })
    }

    fn parameters_outside(&mut self, node: Option<Node<'t>>) -> Vec<Parameter<'t>> {
        let Some(node) = node else { return vec![] };
        let kids = self.kids(node);
        let mut read = Vec::new();
        for kid in kids.named() {
            let inner = self.kids(kid);
            let name_node = match kid.kind() {
                "identifier" => Some(kid),
                "default_parameter" | "typed_default_parameter" => inner.field("name"),
                "typed_parameter" | "list_splat_pattern" | "dictionary_splat_pattern" => inner.named().next(),
                _ => None,
            };
            let Some(mut name_node) = name_node else { continue };
            let mut how = match kid.kind() {
                "list_splat_pattern" => Rest::List,
                "dictionary_splat_pattern" => Rest::Map,
                _ => Rest::No,
            };
            if matches!(name_node.kind(), "list_splat_pattern" | "dictionary_splat_pattern") {
                how = if name_node.kind() == "list_splat_pattern" { Rest::List } else { Rest::Map };
                let inner = self.kids(name_node);
                let Some(inner) = inner.named().next() else { continue };
                name_node = inner;
            }
            let ty = inner.field("type").map(|ty| self.ty(ty));
            let default = inner.field("value").map_or(UNKNOWN, |v| self.value(v));
            read.push(Parameter { name: self.text(name_node), ty, default, how });
        }
        read
    }

    fn parameters(&mut self, read: Vec<Parameter<'t>>) {
        for (place, parameter) in read.into_iter().enumerate() {
            let what = match parameter.how {
                Rest::No => None,
                Rest::List => Some(VarKind::Rest(place as u16)),
                Rest::Map => Some(VarKind::Keywords),
            };
            let var = self.b.param(parameter.name, what, parameter.ty);
            self.b.bind(Target::Var(var), parameter.default);
        }
    }

    fn class(&mut self, node: Node<'t>, decorators: &[Node<'t>], whole: Node<'t>) -> DefId {
        let kids = self.kids(node);
        let name = kids.field("name").map_or("", |n| self.text(n));
        let def = self.b.add_def(name, Kind::Class, span(whole));
        let signature = self.signature(node, &kids);
        let doc = kids.field("body").and_then(|body| self.docstring(body));
        let visibility = visibility(name);
        let mut test = self.test_file && name.starts_with("Test");
        if let Some(bases) = kids.field("superclasses") {
            let inner = self.kids(bases);
            for base in inner.named() {
                match base.kind() {
                    "keyword_argument" => {
                        let inner = self.kids(base);
                        if let Some(value) = inner.field("value") {
                            let value = self.value(value);
                            self.b.uses(value, line(base));
                        }
                    }
                    _ => {
                        test |= self.text(base).ends_with("TestCase");
                        let of = self.value(base);
                        self.b.base(def, BaseKind::Extends, of, line(base));
                    }
                }
            }
        }
        let outer = self.b.facts.def(self.b.owner).kind;
        {
            let d = self.b.def(def);
            d.signature = signature.into();
            d.doc = doc;
            d.visibility = visibility;
            if visibility == Visibility::Public && outer != Kind::Function && outer != Kind::Method {
                d.flags |= flag::EXPORTED;
            }
            if test {
                d.flags |= flag::TEST;
            }
        }
        let mut decorated = self.b.expr(Expr::Def(def));
        let mut plain = true;
        for decorator in decorators.iter().rev() {
            if self.known_decorator(*decorator).is_some() {
                continue;
            }
            plain = false;
            let callee = self.value(*decorator);
            self.b.uses(callee, line(*decorator));
            let arg = Arg { how: ArgKind::Place, value: decorated };
            let at = span(*decorator);
            decorated = self.b.call(callee, CallKind::Decorator, &[arg], at);
        }
        let body = kids.field("body");
        self.inside(def, true, |reader| {
            if let Some(body) = body {
                reader.block(body);
            }
        });
        self.declare(def, decorated, plain);
        def
    }

    fn signature(&mut self, node: Node<'t>, kids: &Kids<'t>) -> String {
        let end = kids.field("body").map_or(node.end_byte(), |body| body.start_byte());
        let text = self.b.text.get(node.start_byte()..end).unwrap_or("");
        // A comment between the colon and the body belongs to neither.
        let text = text.split(" #").next().unwrap_or(text).trim_end();
        one_line(text.trim_end_matches(':').trim_end())
    }

    fn docstring(&mut self, body: Node<'t>) -> Option<Box<str>> {
        let kids = self.kids(body);
        let first = kids.named().next()?;
        if first.kind() != "expression_statement" {
            return None;
        }
        let inner = self.kids(first);
        let string = inner.named().next()?;
        if string.kind() != "string" {
            return None;
        }
        let text = self.string(string);
        let clean: Vec<&str> = text.lines().map(str::trim).collect();
        let clean = clean.join("\n");
        let clean = clean.trim();
        (!clean.is_empty()).then(|| tree::cut(clean, 2_000).into())
    }

    /// The text between the quotes.
    fn string(&self, node: Node<'_>) -> &'t str {
        let text = self.text(node);
        let text = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        for quote in ["\"\"\"", "'''", "\"", "'"] {
            if let Some(inner) = text.strip_prefix(quote) {
                return inner.strip_suffix(quote).unwrap_or(inner);
            }
        }
        text
    }

    // --- imports ---

    fn import(&mut self, node: Node<'t>) {
        let kids = self.kids(node);
        for kid in kids.named() {
            match kid.kind() {
                "dotted_name" => {
                    let module = self.text(kid);
                    let root = module.split('.').next().unwrap_or(module);
                    let what = if root == module { Imported::Module } else { Imported::Root };
                    self.b.import(module, what, Some(root), line(kid));
                }
                "aliased_import" => {
                    let inner = self.kids(kid);
                    let module = inner.field("name").map_or("", |n| self.text(n));
                    let alias = inner.field("alias").map(|n| self.text(n));
                    self.b.import(module, Imported::Module, alias, line(kid));
                }
                _ => {}
            }
        }
    }

    fn import_from(&mut self, node: Node<'t>) {
        let kids = self.kids(node);
        let module: String =
            kids.field("module_name").map_or("__future__", |n| self.text(n)).split_whitespace().collect();
        for name in kids.fields("name") {
            let (name, alias) = if name.kind() == "aliased_import" {
                let inner = self.kids(name);
                let name = inner.field("name").map_or("", |n| self.text(n));
                (name, inner.field("alias").map_or(name, |n| self.text(n)))
            } else {
                (self.text(name), self.text(name))
            };
            let symbol = self.b.name(name);
            self.b.import(&module, Imported::Symbol(symbol), Some(alias), line(node));
        }
        if kids.kind("wildcard_import").is_some() {
            self.b.import(&module, Imported::All, None, line(node));
        }
    }

    // --- expressions ---

    /// An expression as a statement: assignments bind.
    fn evaluate(&mut self, node: Node<'t>) {
        match node.kind() {
            "assignment" | "augmented_assignment" => {
                self.assignment(node);
            }
            _ => {
                self.value(node);
            }
        }
    }

    fn assignment(&mut self, node: Node<'t>) -> ExprId {
        let kids = self.kids(node);
        let Some(left) = kids.field("left") else { return UNKNOWN };
        let ty = kids.field("type").map(|ty| self.ty(ty));
        let value = match kids.field("right") {
            Some(right) if right.kind() == "assignment" => self.deeper(UNKNOWN, |reader| reader.assignment(right)),
            Some(right) => self.value(right),
            None => UNKNOWN,
        };
        if node.kind() == "augmented_assignment" {
            let items = self.b.items(&[Item { key: Key::Spread, value }]);
            let joined = self.b.expr(Expr::Joined(items));
            self.assign(left, joined);
            return UNKNOWN;
        }
        if let Some(ty) = ty {
            self.annotate(left, ty);
        }
        self.symbol(left, node, ty);
        self.assign(left, value);
        value
    }

    /// A variable of a module or class is a symbol of its own.
    fn symbol(&mut self, left: Node<'t>, node: Node<'t>, ty: Option<ExprId>) {
        let owner = self.b.facts.def(self.b.owner).kind;
        if left.kind() != "identifier" || !matches!(owner, Kind::File | Kind::Class) {
            return;
        }
        let text = self.text(left);
        let name = self.b.name(text);
        if self.b.declared_in(self.b.scope, name).is_some_and(|v| self.b.facts.vars[v as usize].what != VarKind::Local)
            || (text.starts_with("__") && text != "__all__")
        {
            return;
        }
        let known = self
            .b
            .facts
            .defs
            .iter()
            .rev()
            .take(64)
            .any(|d| d.name == name && d.parent == self.b.owner && matches!(d.kind, Kind::Variable | Kind::Field));
        if known {
            return;
        }
        let kind = if owner == Kind::File { Kind::Variable } else { Kind::Field };
        let def = self.b.add_def(text, kind, span(node));
        let signature = one_line(self.text(node));
        let visibility = visibility(text);
        let d = self.b.def(def);
        d.signature = signature.into();
        d.visibility = visibility;
        d.result = ty;
        if visibility == Visibility::Public {
            d.flags |= flag::EXPORTED;
        }
        if text.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit()) {
            d.flags |= flag::CONSTANT;
        }
    }

    fn annotate(&mut self, left: Node<'t>, ty: ExprId) {
        match left.kind() {
            "identifier" => {
                let name = self.text(left);
                let name = self.b.name(name);
                let scope = self.b.scope;
                let var = self.b.variable_in(scope, name);
                self.b.facts.vars[var as usize].ty = Some(ty);
            }
            _ => {
                let instance = self.b.expr(Expr::InstanceOf(ty));
                self.assign(left, instance);
            }
        }
    }

    fn assign(&mut self, target: Node<'t>, value: ExprId) {
        match target.kind() {
            "identifier" => {
                let name = self.text(target);
                let name = self.b.name(name);
                let scope = self.b.scope;
                let var = self.b.variable_in(scope, name);
                self.b.bind(Target::Var(var), value);
            }
            "attribute" => {
                let kids = self.kids(target);
                if let (Some(object), Some(attribute)) = (kids.field("object"), kids.field("attribute")) {
                    let object = self.value(object);
                    let name = self.text(attribute);
                    let name = self.b.name(name);
                    self.b.bind(Target::Member(object, name), value);
                }
            }
            "subscript" => {
                let kids = self.kids(target);
                let Some(object) = kids.field("value").map(|n| self.value(n)) else { return };
                let Some(key) = kids.field("subscript") else { return };
                let target = if key.kind() == "string" {
                    let name = self.string(key);
                    Target::At(object, self.b.name(name))
                } else {
                    self.value(key);
                    Target::Element(object)
                };
                self.b.bind(target, value);
            }
            "pattern_list" | "tuple_pattern" | "list_pattern" | "tuple" | "list" => {
                let kids = self.kids(target);
                let targets: Vec<Node<'t>> = kids.named().collect();
                let starred = targets.iter().position(|t| matches!(t.kind(), "list_splat_pattern" | "list_splat"));
                for (index, target) in targets.iter().enumerate() {
                    if value == UNKNOWN {
                        self.deeper((), |reader| reader.assign(*target, UNKNOWN));
                        continue;
                    }
                    let part = match starred {
                        Some(star) if index >= star => self.b.expr(Expr::Element(value)),
                        _ => self.b.expr(Expr::AtIndex(value, index as u32)),
                    };
                    if Some(index) == starred {
                        let inner = self.kids(*target);
                        let list = self.b.expr(Expr::ListOf(part));
                        if let Some(inner) = inner.named().next() {
                            self.assign(inner, list);
                        }
                    } else {
                        self.deeper((), |reader| reader.assign(*target, part));
                    }
                }
            }
            "parenthesized_expression" | "as_pattern_target" => {
                let kids = self.kids(target);
                if let Some(inner) = kids.named().next() {
                    self.assign(inner, value);
                }
            }
            _ => {
                self.value(target);
            }
        }
    }

    fn value(&mut self, node: Node<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.value_inner(node))
    }

    /// A value that is used as it is: what it names counts as referenced.
    fn used(&mut self, node: Node<'t>) -> ExprId {
        let value = self.value(node);
        if matches!(node.kind(), "identifier" | "attribute") {
            self.b.uses(value, line(node));
        }
        value
    }

    fn value_inner(&mut self, node: Node<'t>) -> ExprId {
        match node.kind() {
            "identifier" => {
                let name = self.text(node);
                self.b.read(name)
            }
            "attribute" => {
                let kids = self.kids(node);
                let (Some(object), Some(attribute)) = (kids.field("object"), kids.field("attribute")) else {
                    return UNKNOWN;
                };
                let object = self.value(object);
                let name = self.text(attribute);
                self.b.member(object, name)
            }
            "call" => self.call(node),
            "string" => {
                let kids = self.kids(node);
                for kid in kids.named().filter(|k| k.kind() == "interpolation") {
                    let inner = self.kids(kid);
                    if let Some(value) = inner.named().next() {
                        self.used(value);
                    }
                }
                let text = tree::cut(self.string(node), 120);
                let name = self.b.name(text);
                self.b.expr(Expr::Literal(Literal::String(name)))
            }
            "integer" | "float" => self.b.expr(Expr::Literal(Literal::Number)),
            "true" | "false" => self.b.expr(Expr::Literal(Literal::Bool)),
            "none" => self.b.expr(Expr::Literal(Literal::Nothing)),
            "lambda" => self.lambda(node),
            "conditional_expression" => {
                let kids = self.kids(node);
                let parts: Vec<Node<'t>> = kids.named().collect();
                let values: Vec<ExprId> = parts.iter().map(|p| self.used(*p)).collect();
                match values.as_slice() {
                    [yes, _, no] => {
                        let (yes, no) = (*yes, *no);
                        self.b.either(&[yes, no])
                    }
                    _ => UNKNOWN,
                }
            }
            "boolean_operator" => {
                let kids = self.kids(node);
                let left = kids.field("left").map_or(UNKNOWN, |n| self.used(n));
                let right = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
                self.b.either(&[left, right])
            }
            "parenthesized_expression" => {
                let kids = self.kids(node);
                match kids.named().next() {
                    Some(inner) => self.value(inner),
                    None => UNKNOWN,
                }
            }
            "list" | "tuple" | "set" | "expression_list" => {
                let kind = match node.kind() {
                    "list" => ListKind::List,
                    "set" => ListKind::Set,
                    _ => ListKind::Tuple,
                };
                let kids = self.kids(node);
                let mut items = Vec::new();
                for kid in kids.named() {
                    if kid.kind() == "list_splat" {
                        let inner = self.kids(kid);
                        if let Some(inner) = inner.named().next() {
                            items.push(Item { key: Key::Spread, value: self.used(inner) });
                        }
                    } else {
                        items.push(Item { key: Key::Next, value: self.used(kid) });
                    }
                }
                self.b.collection(kind, &items)
            }
            "dictionary" => {
                let kids = self.kids(node);
                let mut items = Vec::new();
                for kid in kids.named() {
                    let inner = self.kids(kid);
                    if kid.kind() == "pair" {
                        let key = match inner.field("key") {
                            Some(key) if key.kind() == "string" => {
                                let text = self.string(key);
                                Key::Name(self.b.name(text))
                            }
                            Some(key) if key.kind() == "integer" => {
                                // Told apart from the text of the same digits.
                                let text = format!("#{}", self.text(key));
                                Key::Name(self.b.name(&text))
                            }
                            Some(key) => {
                                self.used(key);
                                Key::Any
                            }
                            None => Key::Any,
                        };
                        let value = inner.field("value").map_or(UNKNOWN, |v| self.used(v));
                        items.push(Item { key, value });
                    } else if let Some(spread) = inner.named().next() {
                        items.push(Item { key: Key::Spread, value: self.used(spread) });
                    }
                }
                self.b.collection(ListKind::Map, &items)
            }
            "subscript" => self.subscript(node),
            "list_comprehension" | "set_comprehension" | "generator_expression" | "dictionary_comprehension" => {
                self.comprehension(node)
            }
            "await" => {
                let kids = self.kids(node);
                let inner = kids.named().next().map_or(UNKNOWN, |n| self.value(n));
                if inner == UNKNOWN { UNKNOWN } else { self.b.expr(Expr::Awaited(inner)) }
            }
            "yield" => {
                let kids = self.kids(node);
                let from = kids.has("from");
                if let Some(inner) = kids.named().next() {
                    let mut value = self.used(inner);
                    if from && value != UNKNOWN {
                        value = self.b.expr(Expr::Element(value));
                    }
                    self.b.returns(value, true);
                }
                let owner = self.b.owner;
                self.b.def(owner).flags |= flag::GENERATOR;
                UNKNOWN
            }
            "named_expression" => {
                let kids = self.kids(node);
                let value = kids.field("value").map_or(UNKNOWN, |n| self.used(n));
                if let Some(name) = kids.field("name") {
                    self.assign(name, value);
                }
                value
            }
            "assignment" | "augmented_assignment" => self.assignment(node),
            "binary_operator" => {
                let kids = self.kids(node);
                let left = kids.field("left").map_or(UNKNOWN, |n| self.used(n));
                let right = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
                match kids.field("operator").map(|o| o.kind()) {
                    Some("+") if left != UNKNOWN || right != UNKNOWN => {
                        let items = self
                            .b
                            .items(&[Item { key: Key::Spread, value: left }, Item { key: Key::Spread, value: right }]);
                        self.b.expr(Expr::Joined(items))
                    }
                    _ => UNKNOWN,
                }
            }
            "comment" => UNKNOWN,
            // Comparisons, f-string parts, slices, errors: what is inside is read, the whole is nothing.
            _ => {
                let kids = self.kids(node);
                for kid in kids.named() {
                    self.used(kid);
                }
                UNKNOWN
            }
        }
    }

    fn subscript(&mut self, node: Node<'t>) -> ExprId {
        let kids = self.kids(node);
        let Some(object) = kids.field("value").map(|n| self.used(n)) else { return UNKNOWN };
        let Some(key) = kids.field("subscript") else { return UNKNOWN };
        match key.kind() {
            "string" => {
                let text = self.string(key);
                let name = self.b.name(text);
                self.b.expr(Expr::At(object, name))
            }
            "integer" => match self.text(key).parse::<u32>() {
                Ok(index) => self.b.expr(Expr::AtIndex(object, index)),
                Err(_) => self.b.expr(Expr::Element(object)),
            },
            "slice" => {
                self.value(key);
                object
            }
            _ => {
                self.used(key);
                self.b.expr(Expr::Element(object))
            }
        }
    }

    fn comprehension(&mut self, node: Node<'t>) -> ExprId {
        let kids = self.kids(node);
        let before = self.b.open_scope();
        // The clauses stand after the body but come first.
        for kid in kids.named().skip(1) {
            let inner = self.kids(kid);
            if kid.kind() == "for_in_clause" {
                self.for_in(&inner, kid);
            } else {
                for part in inner.named() {
                    self.used(part);
                }
            }
        }
        let body = match kids.field("body") {
            Some(pair) if pair.kind() == "pair" => {
                let inner = self.kids(pair);
                if let Some(key) = inner.field("key") {
                    self.used(key);
                }
                inner.field("value").map_or(UNKNOWN, |n| self.used(n))
            }
            Some(body) => self.used(body),
            None => UNKNOWN,
        };
        self.b.close_scope(before);
        if body == UNKNOWN { UNKNOWN } else { self.b.expr(Expr::ListOf(body)) }
    }

    fn lambda(&mut self, node: Node<'t>) -> ExprId {
        let kids = self.kids(node);
        let def = self.b.add_def("<lambda>", Kind::Lambda, span(node));
        self.b.def(def).flags |= flag::ARROW;
        let read = self.parameters_outside(kids.field("parameters"));
        let body = kids.field("body");
        self.inside(def, false, |reader| {
            reader.parameters(read);
            if let Some(body) = body {
                let value = reader.used(body);
                reader.b.returns(value, false);
            }
        });
        self.b.expr(Expr::Def(def))
    }

    fn call(&mut self, node: Node<'t>) -> ExprId {
        let kids = self.kids(node);
        let Some(function) = kids.field("function") else { return UNKNOWN };
        let called = if function.kind() == "identifier" { self.text(function) } else { "" };
        let arguments = kids.field("arguments");
        if called == "super" {
            if let Some(arguments) = arguments {
                let inner = self.kids(arguments);
                for kid in inner.named() {
                    self.value(kid);
                }
            }
            return self.b.expr(Expr::Super);
        }
        let callee = self.value(function);
        let mut args = Vec::new();
        let mut first_string: Option<&'t str> = None;
        if let Some(arguments) = arguments {
            if arguments.kind() == "generator_expression" {
                args.push(Arg { how: ArgKind::Place, value: self.value(arguments) });
            } else {
                let inner = self.kids(arguments);
                for kid in inner.named() {
                    match kid.kind() {
                        "keyword_argument" => {
                            let inner = self.kids(kid);
                            let value = inner.field("value").map_or(UNKNOWN, |n| self.used(n));
                            let name = inner.field("name").map_or("", |n| self.text(n));
                            args.push(Arg { how: ArgKind::Named(self.b.name(name)), value });
                        }
                        "list_splat" | "dictionary_splat" => {
                            let how = if kid.kind() == "list_splat" { ArgKind::Spread } else { ArgKind::Keywords };
                            let inner = self.kids(kid);
                            let value = inner.named().next().map_or(UNKNOWN, |n| self.used(n));
                            args.push(Arg { how, value });
                        }
                        _ => {
                            if kid.kind() == "string" && args.is_empty() {
                                first_string = Some(self.string(kid));
                            }
                            args.push(Arg { how: ArgKind::Place, value: self.used(kid) });
                        }
                    }
                }
            }
        }
        let text = self.text(function);
        if let (Some(module), true) = (first_string, text == "import_module" || text == "importlib.import_module") {
            let import = self.b.import(module, Imported::Module, None, line(node));
            self.b.call(callee, CallKind::Plain, &args, span(node));
            return self.b.expr(Expr::Import(import));
        }
        self.container_writes(callee, &args);
        self.b.call(callee, CallKind::Plain, &args, call_site(node, function))
    }

    /// Methods by which lists, sets and maps get their elements.
    fn container_writes(&mut self, callee: ExprId, args: &[Arg]) {
        let Expr::Member(object, name) = self.b.facts.expr(callee) else { return };
        let element = match (self.b.facts.name(name), args) {
            ("append" | "add" | "appendleft", [one]) => one.value,
            ("insert" | "setdefault", [_, two]) => two.value,
            ("extend" | "update", [one]) if one.value != UNKNOWN => {
                let items = self.b.items(&[Item { key: Key::Spread, value: one.value }]);
                let joined = self.b.expr(Expr::Joined(items));
                self.b.expr(Expr::Element(joined))
            }
            _ => return,
        };
        self.b.bind(Target::Element(object), element);
    }

    // --- types ---

    fn ty(&mut self, node: Node<'t>) -> ExprId {
        self.deeper(UNKNOWN, |reader| reader.ty_inner(node))
    }

    fn ty_inner(&mut self, node: Node<'t>) -> ExprId {
        match node.kind() {
            "type" | "parenthesized_expression" => {
                let kids = self.kids(node);
                kids.named().next().map_or(UNKNOWN, |n| self.ty(n))
            }
            "identifier" | "attribute" => {
                let value = self.value(node);
                self.b.uses(value, line(node));
                value
            }
            "string" => {
                // A forward reference: only plain dotted names are followed.
                let text = self.string(node).trim();
                if !text.is_empty() && text.split('.').all(is_identifier) {
                    let value = self.b.read_path(text.split('.'));
                    self.b.uses(value, line(node));
                    value
                } else {
                    UNKNOWN
                }
            }
            "none" => self.b.expr(Expr::Literal(Literal::Nothing)),
            "binary_operator" | "union_type" => {
                let kids = self.kids(node);
                let parts: Vec<Node<'t>> = kids.named().collect();
                let parts: Vec<ExprId> = parts.iter().map(|p| self.ty(*p)).collect();
                self.b.either(&parts)
            }
            "subscript" | "generic_type" => {
                let kids = self.kids(node);
                let mut named = kids.named();
                let Some(base) = named.next() else { return UNKNOWN };
                let mut args = Vec::new();
                for arg in named {
                    if arg.kind() == "type_parameter" {
                        let inner = self.kids(arg);
                        for arg in inner.named() {
                            args.push(self.ty(arg));
                        }
                    } else {
                        args.push(self.ty(arg));
                    }
                }
                let base = self.ty(base);
                self.b.generic(base, &args)
            }
            "list" | "tuple" => {
                let kids = self.kids(node);
                for kid in kids.named() {
                    self.ty(kid);
                }
                UNKNOWN
            }
            _ => UNKNOWN,
        }
    }
}

struct Parameter<'t> {
    name: &'t str,
    ty: Option<ExprId>,
    default: ExprId,
    how: Rest,
}

#[derive(PartialEq)]
enum Rest {
    No,
    List,
    Map,
}

/// The call is told by the line of its last name: in a chain over several lines, that is where it stands.
fn call_site(node: Node<'_>, function: Node<'_>) -> crate::facts::Span {
    let mut at = span(node);
    if function.kind() == "attribute" {
        at.line = function.end_position().row as u32 + 1;
    }
    at
}

fn statement_like(kind: &str) -> bool {
    kind.ends_with("_statement") || kind.ends_with("_clause") || matches!(kind, "block" | "ERROR" | "module")
}

fn visibility(name: &str) -> Visibility {
    if name.starts_with('_') && !(name.starts_with("__") && name.ends_with("__")) {
        Visibility::Private
    } else {
        Visibility::Public
    }
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
