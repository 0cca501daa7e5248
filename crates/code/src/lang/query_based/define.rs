//! Definitions: the common part of all kinds, modules and types.

use super::QueryReader;
use crate::convert::to_u32;
use crate::facts::{
    Arg, BaseKind, CallKind, DefId, DefKind, ExprId, SourceExpr, SourceSpan, VarKind, Visibility, flag,
};
use crate::tree::{self, NodeChildren, TreeNode, line, one_line, span};
use smallvec::SmallVec;

/// Kinds of children that are bodies: a signature ends before the first.
fn is_body(name: &str) -> bool {
    matches!(
        name,
        "compound_statement"
            | "block"
            | "function_body"
            | "class_body"
            | "enum_class_body"
            | "declaration_list"
            | "enum_declaration_list"
            | "field_declaration_list"
            | "field_initializer_list"
            | "enumerator_list"
            | "enum_member_declaration_list"
            | "accessor_list"
            | "arrow_expression_clause"
            | "initializer_list"
            | "getter"
            | "setter"
    )
}

/// Modifiers and their flags. `static` has another meaning in C.
const WORDS: &[(&str, u32)] = &[
    ("abstract", flag::ABSTRACT),
    ("static", flag::STATIC),
    ("async", flag::ASYNC),
    ("suspend", flag::ASYNC),
    ("final", flag::FINAL),
    ("sealed", flag::FINAL),
    ("const", flag::CONSTANT),
    ("constexpr", flag::CONSTANT),
    ("readonly", flag::CONSTANT),
    ("extern", flag::DECLARED),
];

const SHOWN: &[(&str, Visibility)] = &[
    ("public", Visibility::Public),
    ("private", Visibility::Private),
    ("protected", Visibility::Protected),
    ("internal", Visibility::Package),
    ("file", Visibility::Private),
];

/// Attributes by which test runners find test cases.
fn is_test_name(name: &str) -> bool {
    matches!(
        name,
        "Test"
            | "Fact"
            | "Theory"
            | "TestMethod"
            | "DataTestMethod"
            | "TestCase"
            | "TestCaseSource"
            | "ParameterizedTest"
            | "RepeatedTest"
            | "SkippableFact"
    )
}

/// The combined modifiers of a definition.
#[derive(Default)]
pub(super) struct DefinitionModifiers {
    visibility: Option<Visibility>,
    flags: u32,
}

impl<'t> QueryReader<'t> {
    // --- the common part of definitions ---

    pub fn define(&mut self, name: &str, kind: DefKind, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> DefId {
        let whole = match self.template.take() {
            Some(template) if template.end_byte() >= node.end_byte() => template,
            _ => node,
        };
        let words = self.words(kids);
        let doc = self.doc(whole.start_position().row);
        let signature = self.signature(whole.start_byte(), node, kids);
        let outer = self.owner();
        let (mut visibility, flags) = self.shown(kind, outer, &words);
        if let Some((end, hidden)) = self.hidden.take()
            && node.end_byte() <= end
        {
            visibility = hidden;
        }
        let def = self.b.add_def(name, kind, self.span_of(whole));
        let d = self.b.def(def);
        d.doc = doc;
        d.signature = signature.into();
        d.visibility = visibility;
        d.flags |= flags;
        if matches!(visibility, Visibility::Public | Visibility::Package) && !outer.callable() {
            d.flags |= flag::EXPORTED;
        }
        def
    }

    /// The span of a node. Directives of the C preprocessor include their line break, which is removed.
    fn span_of(&self, node: TreeNode<'t>) -> SourceSpan {
        let mut at = span(node);
        let text = self.text(node);
        if text.ends_with('\n') {
            let text = text.trim_end();
            let (breaks, last) = (text.matches('\n').count(), text.rsplit('\n').next().unwrap_or(text));
            at.end = at.start + to_u32(text.len());
            at.end_line = at.line + to_u32(breaks);
            at.end_column = to_u32(last.len()) + if breaks == 0 { at.column } else { 0 };
        }
        at
    }

    fn shown(&mut self, kind: DefKind, outer: DefKind, words: &DefinitionModifiers) -> (Visibility, u32) {
        let frame = self.frames.last();
        let given = frame.map_or(Visibility::Public, |f| f.visibility);
        let mut flags = words.flags;
        if frame.is_some_and(|f| f.statics) && kind != DefKind::Class {
            flags |= flag::STATIC;
        }
        let usual = self.dialect.usual_visibility(outer, given, &mut flags);
        if outer.callable() {
            return (Visibility::Private, flags);
        }
        (words.visibility.unwrap_or(usual), flags)
    }

    fn words(&mut self, kids: &NodeChildren<'t>) -> DefinitionModifiers {
        let mut words = DefinitionModifiers::default();
        for kid in kids.all() {
            match kid.kind() {
                "modifiers" => {
                    let inner = self.children(kid);
                    for kid in inner.named() {
                        self.word(kid, &mut words);
                    }
                }
                "modifier"
                | "storage_class_specifier"
                | "type_qualifier"
                | "virtual_specifier"
                | "attribute_list"
                | "virtual"
                | "static" => self.word(kid, &mut words),
                kind if kind.ends_with("_modifier") => self.word(kid, &mut words),
                _ => {}
            }
        }
        words
    }

    fn word(&mut self, node: TreeNode<'t>, words: &mut DefinitionModifiers) {
        if matches!(node.kind(), "attribute_list" | "annotation") {
            if self.is_test_attribute(node) {
                words.flags |= flag::TEST;
            }
            return;
        }
        let text = self.text(node);
        if let Some((_, visibility)) = SHOWN.iter().find(|(word, _)| *word == text) {
            // `private protected`, `protected internal`: the first one is enough.
            words.visibility.get_or_insert(*visibility);
        } else if let Some((_, flags)) = WORDS.iter().find(|(word, _)| *word == text) {
            words.flags |= *flags;
        }
    }

    /// `[Fact]`, `[Test, Category("x")]`, `@Test`, `#[Test]`.
    fn is_test_attribute(&self, node: TreeNode<'t>) -> bool {
        let text = self.text(node).trim_matches(|c| matches!(c, '[' | ']' | '@' | '#' | ' '));
        text.split([',', '[', ' ']).any(|part| {
            let name = part.split('(').next().unwrap_or(part).trim_end_matches(']');
            let name = name.rsplit(['.', '\\', ':']).next().unwrap_or(name);
            is_test_name(name)
        })
    }

    /// Collects comments on separate lines, directly above one another.
    pub fn comment(&mut self, node: TreeNode<'t>) {
        let start = node.start_byte();
        let before = self.b.text.get(..start).unwrap_or("");
        let own_line = before.rsplit('\n').next().is_some_and(|head| head.trim().is_empty());
        let below = self.comments.last().is_some_and(|last| self.last_row(*last) + 1 >= node.start_position().row);
        if !below || !own_line {
            self.comments.clear();
        }
        if own_line {
            self.comments.push(node);
        }
    }

    fn last_row(&self, comment: TreeNode<'t>) -> u32 {
        let row = comment.end_position().row;
        if self.text(comment).ends_with('\n') { row.saturating_sub(1) } else { row }
    }

    fn doc(&mut self, row: u32) -> Option<Box<str>> {
        let comments = std::mem::take(&mut self.comments);
        if self.last_row(*comments.last()?) + 1 < row {
            return None;
        }
        let texts: Vec<&str> =
            comments.iter().map(|c| self.text(*c)).filter(|text| self.dialect.is_doc(text)).collect();
        if texts.is_empty() {
            return None;
        }
        self.dialect.doc_text(tree::clean_doc(&texts.join("\n"))?)
    }

    /// The text from the first word that is not an attribute to the body, on one line.
    fn signature(&mut self, whole_start: usize, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> String {
        let mut start = if whole_start < node.start_byte() { whole_start } else { node.end_byte() };
        for kid in kids.all() {
            if kid.start_byte() >= start {
                break;
            }
            match kid.kind() {
                "attribute_list" | "annotation" | "comment" | "line_comment" | "block_comment" => continue,
                "modifiers" => {
                    let inner = self.children(kid);
                    if let Some(word) = inner.named().find(|k| k.kind() != "annotation") {
                        start = word.start_byte();
                    }
                }
                _ => start = kid.start_byte(),
            }
        }
        let end = self.dialect.signature_end(node, kids).unwrap_or_else(|| {
            let body = kids.with_fields().find(|(field, kid)| *field == Some("body") || is_body(kid.kind()));
            body.map_or(node.end_byte(), |(_, kid)| kid.start_byte())
        });
        let text = self.b.text.get(start..end.max(start)).unwrap_or("");
        let text = text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '=' | ','));
        one_line(text)
    }

    // --- modules and types ---

    pub fn module(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(name) = kids.field("name") else {
            // Names in an anonymous namespace are private to the file.
            self.open_scope_of_owner(node.end_byte()).visibility = Visibility::Private;
            return;
        };
        let parts: SmallVec<[&'t str; 4]> =
            self.text(name).split("::").map(str::trim).filter(|part| !part.is_empty()).collect();
        for part in parts {
            let def = self.define(part, DefKind::Module, node, &kids);
            let scope = self.b.scope;
            self.b.declare_def(scope, def);
            let name = self.b.facts.def(def).name;
            self.open(def, node.end_byte());
            // A module that is reopened sees its earlier names.
            let inner = self.b.scope;
            self.b.scope = *self.modules.entry((scope, name)).or_insert(inner);
        }
    }

    /// Opens a frame that only changes the visibility of members.
    fn open_scope_of_owner(&mut self, end: usize) -> &mut super::Frame<'t> {
        let before = (self.b.owner, self.b.scope);
        self.frame(end, before)
    }

    /// The first namespace is the package of the file; others in the same file are modules.
    pub fn package(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(name) = kids.field("name").or_else(|| kids.named().next()) else { return };
        let package: String = self.text(name).split_whitespace().collect();
        self.comments.clear();
        if self.b.facts.package.is_empty() {
            self.b.facts.package = package.into();
        } else if *self.b.facts.package != *package && kids.field("body").is_some() {
            let def = self.define(&package, DefKind::Module, node, &kids);
            let scope = self.b.scope;
            self.b.declare_def(scope, def);
            self.open(def, node.end_byte());
        }
    }

    pub fn class(&mut self, node: TreeNode<'t>, kind: DefKind) {
        if self.made.contains_key(&node.id()) {
            return;
        }
        let kids = self.children(node);
        // `struct S` without a body refers to a type.
        if node.kind().ends_with("_specifier") && kids.field("body").is_none() {
            return;
        }
        let name = match (node.kind(), kids.field("name")) {
            ("object_literal" | "anonymous_class", _) => "<anonymous>",
            (_, Some(name)) => self.last_name(name),
            // Fields of an anonymous struct or union are fields of the enclosing type.
            _ => return,
        };
        let kind = self.dialect.kind_of_type(node, &kids, kind);
        let def = self.define(name, kind, node, &kids);
        let calls = self.bases(def, kind, &kids);
        if name == "<anonymous>" {
            if let Some(class) = self.elements.get(&node.id()) {
                self.b.facts.exprs[*class] = SourceExpr::Def(def);
            }
            let d = self.b.def(def);
            d.visibility = Visibility::Private;
            d.flags &= !flag::EXPORTED;
        } else {
            let scope = self.b.scope;
            self.b.declare_def(scope, def);
        }
        self.open_type(def, node, &kids);
        // `class A(x) : B(x)`: the class calls the constructor of its base.
        for arguments in calls {
            let args = self.arguments(Some(arguments));
            let callee = self.b.expr(SourceExpr::Super);
            self.b.call(callee, CallKind::Plain, &args, span(arguments));
        }
    }

    pub fn open_type(&mut self, def: DefId, node: TreeNode<'t>, kids: &NodeChildren<'t>) {
        let hidden = node.kind() == "class_specifier";
        let single = matches!(node.kind(), "object_declaration");
        let frame = self.open(def, node.end_byte());
        frame.statics = single;
        if hidden {
            frame.visibility = Visibility::Private;
        }
        self.type_parameters(kids);
        self.dialect.parameters_of_type(self, node, kids);
    }

    /// Reads the bases of a type; returns the argument lists that it passes to their constructors.
    fn bases(&mut self, def: DefId, kind: DefKind, kids: &NodeChildren<'t>) -> SmallVec<[TreeNode<'t>; 1]> {
        let mut calls = SmallVec::new();
        for kid in kids.named() {
            match kid.kind() {
                "base_class_clause"
                | "base_list"
                | "base_clause"
                | "superclass"
                | "class_interface_clause"
                | "delegation_specifiers" => {}
                _ => continue,
            }
            let inner = self.children(kid);
            for base in inner.named() {
                let (how, of) = match (kid.kind(), base.kind()) {
                    (_, "access_specifier") => continue,
                    (_, "argument_list") => {
                        calls.push(base);
                        continue;
                    }
                    ("class_interface_clause", _) => (BaseKind::Implements, base),
                    ("base_list", "primary_constructor_base_type") => {
                        let parts = self.children(base);
                        calls.extend(parts.kind("argument_list"));
                        (BaseKind::Extends, parts.named().next().unwrap_or(base))
                    }
                    ("base_list", _) if kind != DefKind::Interface && is_interface_name(self.text(base)) => {
                        (BaseKind::Implements, base)
                    }
                    ("delegation_specifiers", _) => {
                        let inside = self.first(base).unwrap_or(base);
                        match inside.kind() {
                            "constructor_invocation" => {
                                let parts = self.children(inside);
                                calls.extend(parts.kind("value_arguments"));
                                (BaseKind::Extends, parts.named().next().unwrap_or(inside))
                            }
                            "explicit_delegation" => (BaseKind::Implements, self.first(inside).unwrap_or(inside)),
                            _ if kind == DefKind::Interface => (BaseKind::Extends, inside),
                            _ => (BaseKind::Implements, inside),
                        }
                    }
                    _ => (BaseKind::Extends, base),
                };
                if let Some(ty) = self.ty(of) {
                    self.b.base(def, how, ty, line(of));
                }
            }
        }
        calls
    }

    pub fn type_parameters(&mut self, kids: &NodeChildren<'t>) {
        let Some(list) = kids.kind("type_parameters").or_else(|| kids.kind("type_parameter_list")) else { return };
        let inner = self.children(list);
        for parameter in inner.named().filter(|p| p.kind() == "type_parameter") {
            let parts = self.children(parameter);
            let name = parts.field("name").or_else(|| parts.kind("identifier"));
            let Some(name) = name.map(|n| self.text(n)) else { continue };
            let bound = parts.kind("user_type").and_then(|ty| self.ty(ty));
            let name = self.b.name(name);
            self.b.declare(name, VarKind::TypeParam, bound);
        }
    }

    /// A second name of a type, a name of a function type, or a constraint on types.
    pub fn alias_type(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let ty = match node.kind() {
            "type_alias" => kids.named().last(),
            "concept_definition" => None,
            _ => kids.field("type"),
        };
        let name = kids.field("name").or_else(|| kids.field("type")).map_or("", |n| self.text(n));
        let def = self.define(name, DefKind::Type, node, &kids);
        let mut result = ty.and_then(|ty| self.ty(ty));
        if node.kind() == "delegate_declaration" {
            result = result.map(|ty| self.b.expr(SourceExpr::FunctionType(ty)));
        }
        self.b.def(def).result = result;
        let scope = self.b.scope;
        self.b.declare_def(scope, def);
    }
}

pub fn is_type(kind: &str) -> bool {
    matches!(kind, "user_type" | "nullable_type" | "function_type" | "non_nullable_type" | "parenthesized_type")
}

/// Whether a name follows the convention for interfaces: `IName`.
fn is_interface_name(text: &str) -> bool {
    let last = text.split('<').next().unwrap_or(text).rsplit('.').next().unwrap_or(text);
    let mut letters = last.chars();
    letters.next() == Some('I') && letters.next().is_some_and(char::is_uppercase)
}

/// A positional argument.
pub fn place(value: ExprId) -> Arg {
    Arg { how: crate::facts::ArgKind::Place, value }
}
