//! The syntax of C#, for the reader that it shares with other languages.

use crate::facts::{DefKind, ExprId, ImportKind, SourceExpr, UNKNOWN, Visibility, flag};
use crate::lang::query_based::{FunctionHead, QueryDialect, QueryReader, QueryTag};
use crate::tree::{NodeChildren, TreeNode, line};

pub(super) struct CSharpDialect;

impl QueryDialect for CSharpDialect {
    fn visit<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, tag: QueryTag) -> bool {
        match tag {
            QueryTag::Import => reader.using_directive(node),
            QueryTag::Define(DefKind::Field) => reader.member_without_parameters(node),
            QueryTag::Define(DefKind::Function) => reader.function_or_operator(node),
            QueryTag::Declaration => match node.kind() {
                "variable_declaration" if reader.made.contains_key(&node.id()) => {}
                "variable_declaration" => reader.variables(node, None),
                _ => reader.caught(node),
            },
            QueryTag::Each => reader.foreach_statement(node),
            _ => return false,
        }
        true
    }

    fn value<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>) -> Option<ExprId> {
        Some(match node.kind() {
            "member_access_expression" => reader.member_of(node, "expression", "name"),
            "conditional_access_expression" => {
                let kids = reader.children(node);
                let of = kids.field("condition").map_or(UNKNOWN, |n| reader.value(n));
                let before = std::mem::replace(&mut reader.conditional, of);
                let value = kids.named().nth(1).map_or(UNKNOWN, |n| reader.value(n));
                reader.conditional = before;
                value
            }
            "member_binding_expression" => {
                let name = reader.children(node).field("name").map_or("", |n| reader.last_name(n));
                let of = reader.conditional;
                if of == UNKNOWN { UNKNOWN } else { reader.b.member(of, name) }
            }
            _ => return None,
        })
    }

    fn call<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> Option<ExprId> {
        if node.kind() != "invocation_expression" {
            return None;
        }
        let Some(function) = kids.field("function") else { return Some(UNKNOWN) };
        if function.kind() == "identifier" && reader.text(function) == "nameof" {
            return Some(UNKNOWN);
        }
        let callee = reader.callee(function);
        // The value of `task.ConfigureAwait(false)` is the task.
        if let SourceExpr::Member(of, name) = reader.b.facts.expr(callee)
            && reader.b.facts.name(name) == "ConfigureAwait"
        {
            return Some(of);
        }
        Some(reader.made_call(node, function, callee, kids.field("arguments")))
    }

    fn is_doc(&self, comment: &str) -> bool {
        comment.starts_with("///") || comment.starts_with("/**")
    }

    fn doc_text(&self, doc: Box<str>) -> Option<Box<str>> {
        without_tags(&doc)
    }

    fn usual_visibility(&self, outer: DefKind, _given: Visibility, _flags: &mut u32) -> Visibility {
        match outer {
            DefKind::Interface | DefKind::Enum => Visibility::Public,
            DefKind::File | DefKind::Module => Visibility::Package,
            _ => Visibility::Private,
        }
    }

    fn kind_of_type<'t>(&self, node: TreeNode<'t>, kids: &NodeChildren<'t>, by_node: DefKind) -> DefKind {
        if node.kind() == "record_declaration" && !kids.has("struct") { DefKind::Class } else { by_node }
    }

    /// The parameters of a record are its properties.
    fn parameters_of_type<'t>(&self, reader: &mut QueryReader<'t>, node: TreeNode<'t>, kids: &NodeChildren<'t>) {
        let Some(list) = kids.kind("parameter_list") else { return };
        let inner = reader.children(list);
        for parameter in inner.named().filter(|p| p.kind() == "parameter") {
            let parts = reader.children(parameter);
            let Some(name) = parts.field("name").map(|n| reader.text(n)) else { continue };
            let ty = parts.field("type").and_then(|ty| reader.ty(ty));
            if node.kind() == "record_declaration" {
                let field = reader.variable(name, parameter, &parts, ty, None, 0);
                reader.b.def(field).visibility = Visibility::Public;
                reader.b.def(field).flags |= flag::EXPORTED;
            } else {
                reader.local(name, ty, UNKNOWN);
            }
        }
    }

    fn is_entry(&self, name: &str, outer: DefKind) -> bool {
        name == "Main" && outer.type_like()
    }

    fn result_of<'t>(&self, reader: &mut QueryReader<'t>, body: TreeNode<'t>) -> Option<TreeNode<'t>> {
        if body.kind() == "arrow_expression_clause" { reader.last(body) } else { None }
    }

    fn containers_call_lambdas(&self) -> bool {
        true
    }
}

impl<'t> QueryReader<'t> {
    fn using_directive(&mut self, node: TreeNode<'t>) {
        self.comments.clear();
        let kids = self.children(node);
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

    /// Fields, events, properties and constants of enumerations.
    fn member_without_parameters(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        match node.kind() {
            "enum_member_declaration" => self.enum_constant(node),
            "field_declaration" | "event_field_declaration" => {
                if let Some(declaration) = kids.kind("variable_declaration") {
                    self.made.insert(declaration.id(), UNKNOWN);
                    self.variables(declaration, Some((node, &kids)));
                }
            }
            _ => self.property_or_event(node, &kids),
        }
    }

    fn variables(&mut self, node: TreeNode<'t>, field: Option<(TreeNode<'t>, &NodeChildren<'t>)>) {
        let kids = self.children(node);
        let ty = kids.field("type").and_then(|ty| self.ty(ty));
        for declarator in kids.named().filter(|k| k.kind() == "variable_declarator") {
            let parts = self.children(declarator);
            let pattern = parts.kind("tuple_pattern");
            let name = parts.field("name");
            let value = parts.named().next_back().filter(|v| Some(*v) != name && Some(*v) != pattern);
            match (name, field) {
                (Some(name), Some((node, kids))) => {
                    self.variable(self.text(name), node, kids, ty, value, 0);
                }
                (Some(name), None) => {
                    let value = value.map_or(UNKNOWN, |value| self.used_as(value, ty));
                    self.local(self.text(name), ty, value);
                }
                _ => {
                    let value = value.map_or(UNKNOWN, |value| self.used(value));
                    if let Some(pattern) = pattern {
                        self.assign(pattern, value);
                    }
                }
            }
        }
    }

    /// A property with code is a getter; one without is a field.
    fn property_or_event(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>) {
        let name = kids.field("name").map_or("", |n| self.text(n));
        let value = kids.field("value");
        let arrow = value.filter(|v| v.kind() == "arrow_expression_clause");
        let code = arrow.is_some() || kids.field("accessors").is_some_and(|list| self.has_code(list));
        if code {
            let head = FunctionHead {
                name: name.to_owned(),
                receiver: None,
                parameters: None,
                result: kids.field("type"),
                body: arrow.or(Some(node)),
                flags: flag::GETTER,
                parameters_are_names: false,
            };
            self.function_of(node, kids, head);
        } else {
            let ty = kids.field("type").and_then(|ty| self.ty(ty));
            self.variable(name, node, kids, ty, value, 0);
        }
    }

    fn has_code(&mut self, accessors: TreeNode<'t>) -> bool {
        let inner = self.children(accessors);
        inner.named().any(|accessor| self.children(accessor).field("body").is_some())
    }

    fn function_or_operator(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let mut flags = 0;
        let name = kids.field("name").map_or("", |n| self.text(n));
        let name = match node.kind() {
            "constructor_declaration" => {
                flags |= flag::CONSTRUCTOR;
                name.to_owned()
            }
            "destructor_declaration" => format!("~{name}"),
            "operator_declaration" => format!("operator {}", kids.field("operator").map_or("", |n| self.text(n))),
            "conversion_operator_declaration" => {
                format!("operator {}", kids.field("type").map_or("", |n| self.text(n)))
            }
            "indexer_declaration" => "this[]".to_owned(),
            _ => name.to_owned(),
        };
        let parameters = kids.field("parameters");
        // `static T Name(this Type x)` is a method of Type.
        let mut receiver = None;
        if let Some(list) = parameters.filter(|list| self.text(*list).trim_start_matches('(').starts_with("this ")) {
            let first = self.first(list);
            let ty = first.and_then(|first| self.children(first).field("type"));
            receiver = ty.and_then(|ty| self.ty(ty));
            flags |= flag::TAKES_SELF;
        }
        let body = kids.field("body").or_else(|| kids.field("value"));
        let result = kids.field("returns").or_else(|| kids.field("type"));
        let head = FunctionHead { name, receiver, parameters, result, body, flags, parameters_are_names: false };
        self.function_of(node, &kids, head);
    }

    fn foreach_statement(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let element = self.element_of(kids.field("right"));
        let Some(target) = kids.field("left") else { return };
        let ty = kids.field("type").and_then(|ty| self.ty(ty));
        if target.kind() == "identifier" {
            self.local(self.text(target), ty, element);
        } else {
            self.assign(target, element);
        }
    }
}

/// An XML documentation comment without its tags.
fn without_tags(doc: &str) -> Option<Box<str>> {
    let mut text = String::with_capacity(doc.len());
    let mut rest = doc;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        text.push_str(before);
        let named = tag[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        match tag.find('>') {
            Some(end) if named => {
                // `<see cref="Name"/>` contains a name.
                if let Some(quoted) = tag[..end].split('"').nth(1).filter(|_| tag[..end].ends_with('/')) {
                    text.push_str(quoted);
                }
                rest = &tag[end + 1..];
            }
            _ => {
                text.push('<');
                rest = &tag[1..];
            }
        }
    }
    text.push_str(rest);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    (!lines.is_empty()).then(|| lines.join("\n").into())
}
