//! Declarations inside macro calls: variables of patterns, closures, functions, statics, imports.

use super::patterns::known_variant;
use super::tokens::is_word;
use super::{Reader, is_capital};
use crate::convert::to_u32;
use crate::facts::{
    BindTarget, DefId, DefKind, ExprId, ImportKind, SourceExpr, SourceSpan, UNKNOWN, VarKind, Visibility, flag,
};
use crate::tree::{TreeNode, line, one_line, span};
use smallvec::SmallVec;

/// Attributes and visibility before an item inside a macro call.
pub(super) struct MacroItemAttributes {
    pub start: Option<SourceSpan>,
    pub visibility: Visibility,
    pub test: bool,
}

impl Default for MacroItemAttributes {
    fn default() -> MacroItemAttributes {
        MacroItemAttributes { start: None, visibility: Visibility::Private, test: false }
    }
}

impl<'t> Reader<'t> {
    /// Declares the variables of a pattern. Only a plain name, `Some(name)` and similar patterns are bound to a value.
    pub(super) fn token_pattern(&mut self, tokens: &[TreeNode<'t>], value: ExprId) {
        self.deeper((), |reader| {
            let mut at = 0;
            while let Some(token) = tokens.get(at) {
                match token.kind() {
                    "identifier" | "crate" | "self" | "super" => {
                        let text = reader.word(*token);
                        let path = tokens.get(at + 1).is_some_and(|t| t.kind() == "::");
                        if !path && matches!(text, "ref" | "in" | "box") {
                            at += 1;
                            continue;
                        }
                        if !path && !is_capital(text) {
                            // `field: pattern`: the name is a field.
                            if tokens.get(at + 1).is_none_or(|t| t.kind() != ":") {
                                let var = reader.local(text);
                                reader.b.bind(BindTarget::Var(var), value);
                            }
                            at += 1;
                            continue;
                        }
                        let path = reader.token_path(tokens, &mut at);
                        let opened = known_variant(path.last);
                        let named = reader.token_named(&path, false);
                        reader.b.uses(named, line(*token));
                        let Some(tree) = tokens.get(at).filter(|t| t.kind() == "token_tree") else { continue };
                        at += 1;
                        let opened = opened.unwrap_or_else(|| reader.opened_path(named, path.last, path.before, value));
                        let inner = reader.tokens_of(*tree);
                        if reader.bracket(*tree) == b'(' {
                            for (place, part) in inner.split(|t| t.kind() == ",").enumerate() {
                                let taken = reader.taken(opened, value, &place.to_string());
                                reader.token_pattern(part, taken);
                            }
                        } else {
                            for part in inner.split(|t| t.kind() == ",") {
                                match part {
                                    [name] if name.kind() == "identifier" => {
                                        let name = reader.word(*name);
                                        let taken = reader.taken(opened, value, name);
                                        let var = reader.local(name);
                                        reader.b.bind(BindTarget::Var(var), taken);
                                    }
                                    [name, colon, rest @ ..] if colon.kind() == ":" => {
                                        let taken = reader.taken(opened, value, reader.word(*name));
                                        reader.token_pattern(rest, taken);
                                    }
                                    _ => reader.token_pattern(part, UNKNOWN),
                                }
                            }
                        }
                        continue;
                    }
                    "token_tree" => {
                        let inner = reader.tokens_of(*token);
                        for (index, part) in inner.split(|t| t.kind() == ",").enumerate() {
                            let known = value != UNKNOWN && reader.bracket(*token) == b'(';
                            let part_value =
                                if known { reader.b.expr(SourceExpr::AtIndex(value, to_u32(index))) } else { UNKNOWN };
                            reader.token_pattern(part, part_value);
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
        });
    }

    /// `let pattern: Type = value;`, or in a condition `let pattern = value`.
    pub(super) fn token_let(&mut self, tokens: &[TreeNode<'t>], at: &mut usize, condition: bool) {
        *at += 1;
        let start = *at;
        while tokens.get(*at).is_some_and(|t| !matches!(t.kind(), "=" | ";")) {
            *at += 1;
        }
        let pattern = &tokens[start.min(tokens.len())..*at];
        let mut value = UNKNOWN;
        if tokens.get(*at).is_some_and(|t| t.kind() == "=") {
            *at += 1;
            value =
                if condition { self.token_expression(tokens, at, false) } else { self.token_item(tokens, at).value };
        }
        let colon = pattern.iter().position(|t| t.kind() == ":");
        if let Some(colon) = colon {
            let mut inner = colon + 1;
            let ty = self.token_type(pattern, &mut inner);
            let declared = self.instance(ty);
            value = self.b.either(&[value, declared]);
        }
        self.open();
        self.token_pattern(&pattern[..colon.unwrap_or(pattern.len())], value);
    }

    /// `for pattern in values`; `impl Trait for Type` has no `in`.
    pub(super) fn token_for(&mut self, tokens: &[TreeNode<'t>], at: &mut usize) {
        *at += 1;
        let start = *at;
        let Some(place) =
            tokens[start..].iter().take_while(|t| self.bracket(**t) != b'{').position(|t| self.text(*t) == "in")
        else {
            return;
        };
        *at = start + place + 1;
        let over = self.token_expression(tokens, at, false);
        let element = self.element(over);
        self.open();
        self.token_pattern(&tokens[start..start + place], element);
    }

    /// A closure; its body extends to the next comma.
    pub(super) fn token_closure(&mut self, tokens: &[TreeNode<'t>], at: &mut usize) -> ExprId {
        let start = *at;
        *at += 1;
        if tokens[start].kind() == "|" {
            while tokens.get(*at).is_some_and(|t| t.kind() != "|") {
                *at += 1;
            }
            *at += 1;
        }
        let last = tokens.get((*at).min(tokens.len()) - 1).copied().unwrap_or(tokens[start]);
        let whole = SourceSpan { end: to_u32(last.end_byte()), ..span(tokens[start]) };
        let def = self.b.add_def("<closure>", DefKind::Lambda, whole);
        self.b.def(def).flags |= flag::ARROW;
        let end = (*at).saturating_sub(1);
        let parameters = tokens.get(start + 1..end).unwrap_or(&[]);
        self.inside(def, |reader| {
            reader.token_parameters(parameters);
            let body = reader.token_item(tokens, at);
            reader.b.returns(body.value, false);
        });
        // The terminating comma or semicolon belongs to the caller.
        if tokens.get(at.wrapping_sub(1)).is_some_and(|t| matches!(t.kind(), "," | ";")) {
            *at -= 1;
        }
        let end = tokens.get(at.wrapping_sub(1)).map(|t| span(*t));
        if let Some(end) = end {
            let d = self.b.def(def);
            (d.span.end, d.span.end_line, d.span.end_column) = (end.end, end.end_line, end.end_column);
        }
        self.b.expr(SourceExpr::Def(def))
    }

    pub(super) fn token_parameters(&mut self, tokens: &[TreeNode<'t>]) {
        for part in tokens.split(|t| t.kind() == ",") {
            if part.is_empty() {
                continue;
            }
            // `name: Type`, and `name in strategy` in property tests.
            let colon = part.iter().position(|t| t.kind() == ":" || self.text(*t) == "in");
            let (pattern, rest) = part.split_at(colon.unwrap_or(part.len()));
            let mut ty = UNKNOWN;
            if let Some(mark) = rest.first() {
                let mut at = 1;
                if mark.kind() == ":" {
                    ty = self.token_type(rest, &mut at);
                } else {
                    self.token_item(rest, &mut at);
                }
            }
            let ty = Some(ty).filter(|ty| *ty != UNKNOWN);
            let names: SmallVec<[TreeNode<'t>; 4]> =
                pattern.iter().filter(|t| !matches!(t.kind(), "&" | "mutable_specifier")).copied().collect();
            match names.as_slice() {
                [one] if matches!(one.kind(), "identifier" | "self") => {
                    let name = self.word(*one);
                    let ty = if name == "self" { Some(self.b.expr(SourceExpr::ThisType)) } else { ty };
                    self.b.param(name, None, ty);
                }
                _ => {
                    let var = self.b.param("_", None, ty);
                    let value = self.b.expr(SourceExpr::Var(var));
                    self.token_pattern(pattern, value);
                }
            }
        }
    }

    /// `fn name(…) -> T { … }` inside a macro call, as in `proptest!`.
    pub(super) fn token_function(&mut self, tokens: &[TreeNode<'t>], at: &mut usize, marks: MacroItemAttributes) {
        let start = *at;
        *at += 1;
        let Some(name) = tokens.get(*at).filter(|t| t.kind() == "identifier") else { return };
        *at += 1;
        if tokens.get(*at).is_some_and(|t| t.kind() == "<") {
            self.token_generics(tokens, at);
        }
        if self.bracket_at(tokens, *at) != b'(' {
            return;
        }
        let parameters = tokens[*at];
        *at += 1;
        let mut end = *at;
        while end < tokens.len() && self.bracket(tokens[end]) != b'{' && tokens[end].kind() != ";" {
            end += 1;
        }
        let Some(last) = tokens.get(end).copied() else {
            *at = end;
            return;
        };
        let result = if tokens[*at].kind() == "->" {
            let mut inner = *at + 1;
            self.token_type(tokens, &mut inner)
        } else {
            UNKNOWN
        };
        *at = end + 1;
        let body = (last.kind() == "token_tree").then_some(last);
        let inner = self.tokens_of(parameters);
        let read = |reader: &mut Self| {
            reader.token_parameters(&inner);
            if let Some(body) = body {
                let value = reader.token_block(body);
                if reader.templates == 0 {
                    reader.b.returns(value, false);
                }
            }
        };
        if self.templates > 0 {
            let before = self.open();
            for part in inner.split(|t| t.kind() == ",") {
                self.token_pattern(part, UNKNOWN);
            }
            if let Some(body) = body {
                self.token_block(body);
            }
            self.b.close_scope(before);
            return;
        }
        let signature = self.b.text.get(tokens[start].start_byte()..last.start_byte()).unwrap_or("");
        let signature = one_line(signature);
        let def = self.token_def(self.word(*name), DefKind::Function, tokens[start], last, marks);
        let d = self.b.def(def);
        d.signature = signature.into();
        d.result = Some(result).filter(|r| *r != UNKNOWN);
        self.at_items(|reader| reader.declare_def(def));
        self.inside(def, read);
    }

    /// `static NAME: T = value;` inside a macro call, as in `thread_local!` and `lazy_static!`.
    pub(super) fn token_static(&mut self, tokens: &[TreeNode<'t>], at: &mut usize, marks: MacroItemAttributes) -> bool {
        let start = *at;
        *at += 1;
        while tokens.get(*at).is_some_and(|t| t.kind() == "mutable_specifier" || self.text(*t) == "ref") {
            *at += 1;
        }
        let Some(name) = tokens.get(*at).filter(|t| t.kind() == "identifier") else { return false };
        if tokens.get(*at + 1).is_none_or(|t| t.kind() != ":") {
            return false;
        }
        let name = self.word(*name);
        *at += 2;
        let ty = Some(self.token_type(tokens, at)).filter(|ty| *ty != UNKNOWN);
        while tokens.get(*at).is_some_and(|t| !matches!(t.kind(), "=" | ";")) {
            *at += 1;
        }
        let mut value = UNKNOWN;
        if tokens.get(*at).is_some_and(|t| t.kind() == "=") {
            *at += 1;
            value = self.token_item(tokens, at).value;
        }
        if self.templates > 0 {
            return true;
        }
        let last = tokens.get((*at).min(tokens.len()) - 1).copied().unwrap_or(tokens[start]);
        if matches!(self.b.facts.def(self.b.owner).kind, DefKind::File | DefKind::Module) {
            let signature = self.b.text.get(tokens[start].start_byte()..last.end_byte()).unwrap_or("");
            let signature = one_line(signature.split('=').next().unwrap_or(signature));
            let def = self.token_def(name, DefKind::Variable, tokens[start], last, marks);
            let d = self.b.def(def);
            d.signature = signature.into();
            d.flags |= flag::CONSTANT;
            d.result = ty;
        }
        let symbol = self.b.name(name);
        let var = self.at_items(|reader| reader.b.declare(symbol, VarKind::Local, ty));
        self.b.bind(BindTarget::Var(var), value);
        true
    }

    /// `struct Name …` inside a macro call, as in `bitflags!`: only its existence is recorded.
    pub(super) fn token_structure(&mut self, tokens: &[TreeNode<'t>], at: &mut usize, marks: MacroItemAttributes) {
        let start = tokens[*at];
        *at += 1;
        let Some(name) = tokens.get(*at).filter(|t| t.kind() == "identifier").copied() else { return };
        *at += 1;
        let mut last = name;
        while let Some(token) = tokens.get(*at) {
            *at += 1;
            last = *token;
            if token.kind() == ";" || self.bracket(*token) == b'{' {
                break;
            }
        }
        let module = matches!(self.b.facts.def(self.b.owner).kind, DefKind::File | DefKind::Module);
        if self.templates > 0 || !module {
            return;
        }
        let kind = if start.kind() == "enum" { DefKind::Enum } else { DefKind::Struct };
        let signature = self.b.text.get(start.start_byte()..name.end_byte()).unwrap_or("");
        let signature = one_line(signature);
        let def = self.token_def(self.word(name), kind, start, last, marks);
        self.b.def(def).signature = signature.into();
        self.at_items(|reader| reader.declare_def(def));
    }

    /// `mod x;` and `use x::y;` inside a macro call, as in `cfg_if!`.
    pub(super) fn token_import(&mut self, tokens: &[TreeNode<'t>], at: &mut usize, marks: MacroItemAttributes) {
        let start = tokens[*at];
        *at += 1;
        let first = *at;
        while tokens.get(*at).is_some_and(|t| t.kind() != ";" && !(start.kind() == "mod" && t.kind() == "token_tree")) {
            *at += 1;
        }
        let public = marks.visibility != Visibility::Private;
        if self.templates > 0 || *at == first {
            return;
        }
        let text = self.b.text.get(tokens[first].start_byte()..tokens[*at - 1].end_byte()).unwrap_or("");
        if start.kind() == "use" {
            self.at_items(|reader| reader.use_text(text, "", line(start), public));
        } else if tokens.get(*at).is_some_and(|t| t.kind() == ";") && is_word(text) {
            self.at_items(|reader| {
                reader.import(&format!("self::{text}"), ImportKind::Module, text, line(start), public);
            });
        }
    }

    pub(super) fn token_def(
        &mut self,
        name: &str,
        kind: DefKind,
        first: TreeNode<'t>,
        last: TreeNode<'t>,
        marks: MacroItemAttributes,
    ) -> DefId {
        let end = span(last);
        let start = marks.start.unwrap_or(span(first));
        let whole = SourceSpan { end: end.end, end_line: end.end_line, end_column: end.end_column, ..start };
        let def = self.b.add_def(name, kind, whole);
        let d = self.b.def(def);
        d.visibility = marks.visibility;
        if marks.visibility == Visibility::Public {
            d.flags |= flag::EXPORTED;
        }
        if marks.test {
            d.flags |= flag::TEST;
        }
        def
    }
}
