//! Macro calls: reads their token trees for calls and names, as far as the order of the tokens allows.

use super::macro_items::MacroItemAttributes;
use super::{Reader, is_capital, is_comment};
use crate::facts::{
    Arg, ArgKind, CallKind, ExprId, ExprItem, ItemKey, ListKind, Literal, SourceExpr, SourceSpan, UNKNOWN, Visibility,
};
use crate::tree::{TreeNode, line, span};
use smallvec::SmallVec;

type Tokens<'t> = SmallVec<[TreeNode<'t>; 16]>;

/// Macros whose tokens become code elsewhere.
const QUOTING: [&str; 5] = ["quote", "quote_spanned", "parse_quote", "parse_quote_spanned", "stringify"];

/// The kind of the parts of a token tree.
#[derive(Clone, Copy, PartialEq)]
enum Parts {
    /// Expressions or statements.
    Plain,
    /// `pattern => expression`, as in `match`.
    Arms,
    /// `name = future => expression`, as in `select!`.
    Selected,
    /// `name: expression`, `name`, `..base`, as in a struct.
    Fields,
}

impl<'t> Reader<'t> {
    pub(super) fn macro_invocation(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        let (Some(path), Some(tree)) = (kids.field("macro"), kids.kind("token_tree")) else { return UNKNOWN };
        let (of, name) = if path.kind() == "scoped_identifier" {
            let inner = self.children(path);
            let of = inner.field("path").map(|of| self.path(of));
            (of, inner.field("name").map_or("", |n| self.word(n)))
        } else {
            (None, self.word(path))
        };
        self.macro_call(of, name, tree, span(node))
    }

    fn macro_call(&mut self, of: Option<ExprId>, name: &str, tree: TreeNode<'t>, at: SourceSpan) -> ExprId {
        let called = format!("{name}!");
        let callee = match of {
            Some(of) => self.member(of, &called),
            None => self.b.read(&called),
        };
        if QUOTING.contains(&name) {
            self.b.call(callee, CallKind::Macro, &[], at);
            return UNKNOWN;
        }
        let before = self.open();
        let (items, repeated) = match name {
            "matches" | "assert_matches" | "debug_assert_matches" => (self.token_matches(tree), false),
            "select" | "select_biased" => self.token_items(tree, Parts::Selected),
            _ => self.token_items(tree, Parts::Plain),
        };
        self.b.close_scope(before);
        let args: SmallVec<[Arg; 4]> =
            items.iter().map(|item| Arg { how: ArgKind::Place, value: item.value }).collect();
        let call = self.b.call(callee, CallKind::Macro, &args, at);
        let first = items.first().map_or(UNKNOWN, |item| item.value);
        match name {
            "vec" | "smallvec" | "arrayvec" | "array_vec" | "tiny_vec" => {
                if repeated && first != UNKNOWN {
                    self.b.expr(SourceExpr::ListOf(first))
                } else {
                    self.b.collection(ListKind::List, &items)
                }
            }
            "dbg" => first,
            "try" | "ready" => self.awaited(first),
            "join" | "try_join" => {
                let given: Vec<ExprItem> =
                    items.iter().map(|item| ExprItem { key: ItemKey::Next, value: self.awaited(item.value) }).collect();
                self.b.collection(ListKind::Tuple, &given)
            }
            "format" | "concat" | "env" | "include_str" => self.b.expr(SourceExpr::Literal(Literal::Template)),
            "matches" | "panic" | "todo" | "unimplemented" | "unreachable" | "cfg" => UNKNOWN,
            _ => call,
        }
    }

    /// The tokens of a tree without its brackets.
    pub(super) fn tokens_of(&mut self, tree: TreeNode<'t>) -> Tokens<'t> {
        let kids = self.children(tree);
        let mut tokens: Tokens<'t> = kids.all().filter(|k| !is_comment(*k)).collect();
        if tokens.last().is_some_and(|t| matches!(t.kind(), ")" | "]" | "}")) {
            tokens.pop();
        }
        if tokens.first().is_some_and(|t| matches!(t.kind(), "(" | "[" | "{")) {
            tokens.remove(0);
        }
        tokens
    }

    /// The opening bracket of a token tree.
    pub(super) fn bracket(&self, node: TreeNode<'_>) -> u8 {
        if node.kind() != "token_tree" {
            return 0;
        }
        self.b.text.as_bytes().get(node.start_byte()).copied().unwrap_or(0)
    }

    pub(super) fn bracket_at(&self, tokens: &[TreeNode<'t>], at: usize) -> u8 {
        tokens.get(at).map_or(0, |t| self.bracket(*t))
    }

    /// Reads a tree in braces in a new scope; returns its last value.
    pub(super) fn token_block(&mut self, tree: TreeNode<'t>) -> ExprId {
        let before = self.open();
        let items = std::mem::replace(&mut self.items, self.b.scope);
        let tail = self.token_tail(tree, Parts::Plain);
        self.items = items;
        self.b.close_scope(before);
        tail
    }

    fn token_tail(&mut self, tree: TreeNode<'t>, parts: Parts) -> ExprId {
        let (items, _) = self.token_items(tree, parts);
        // `json!({"a": b})`.
        if parts == Parts::Plain && items.first().is_some_and(|item| matches!(item.key, ItemKey::Name(_))) {
            return self.b.collection(ListKind::Map, &items);
        }
        items.last().map_or(UNKNOWN, |item| item.value)
    }

    /// The values between the commas and semicolons of a tree, and whether there was a semicolon.
    fn token_items(&mut self, tree: TreeNode<'t>, parts: Parts) -> (SmallVec<[ExprItem; 8]>, bool) {
        self.deeper((SmallVec::new(), false), |reader| {
            let tokens = reader.tokens_of(tree);
            let mut items: SmallVec<[ExprItem; 8]> = SmallVec::new();
            let mut at = 0;
            let mut semicolon = false;
            while at < tokens.len() {
                let item = match parts {
                    Parts::Plain => reader.token_item(&tokens, &mut at),
                    Parts::Fields => reader.token_field(&tokens, &mut at),
                    Parts::Arms | Parts::Selected => reader.token_arm(&tokens, &mut at, parts),
                };
                items.push(item);
                if tokens.get(at.wrapping_sub(1)).is_some_and(|t| t.kind() == ";") {
                    semicolon = true;
                    // A block that ends with `;` has no value.
                    if at == tokens.len() {
                        items.push(ExprItem { key: ItemKey::Next, value: UNKNOWN });
                    }
                }
            }
            (items, semicolon)
        })
    }

    /// `matches!(value, pattern if guard)`.
    fn token_matches(&mut self, tree: TreeNode<'t>) -> SmallVec<[ExprItem; 8]> {
        self.deeper(SmallVec::new(), |reader| {
            let tokens = reader.tokens_of(tree);
            let mut at = 0;
            let first = reader.token_item(&tokens, &mut at);
            let rest = &tokens[at.min(tokens.len())..];
            let guard = rest.iter().position(|t| t.kind() == "if");
            reader.token_pattern(&rest[..guard.unwrap_or(rest.len())], first.value);
            let mut at = guard.map_or(rest.len(), |g| g + 1);
            while at < rest.len() {
                reader.token_item(rest, &mut at);
            }
            SmallVec::from_slice(&[first])
        })
    }

    /// `pattern if guard => expression`, or `pattern = expression => expression`.
    fn token_arm(&mut self, tokens: &[TreeNode<'t>], at: &mut usize, parts: Parts) -> ExprItem {
        let rest = &tokens[*at..];
        let Some(arrow) = rest.iter().position(|t| t.kind() == "=>") else {
            return self.token_item(tokens, at);
        };
        let before = self.open();
        let left = &rest[..arrow];
        if parts == Parts::Selected {
            let equals = left.iter().position(|t| t.kind() == "=");
            let mut inner = equals.map_or(0, |e| e + 1);
            let value = self.token_expression(left, &mut inner, false);
            while inner < left.len() {
                self.token_item(left, &mut inner);
            }
            let given = self.awaited(value);
            self.token_pattern(&left[..equals.unwrap_or(0)], given);
        } else {
            let guard = left.iter().position(|t| t.kind() == "if").unwrap_or(left.len());
            self.token_pattern(&left[..guard], UNKNOWN);
            let mut inner = guard + 1;
            while inner < left.len() {
                self.token_item(left, &mut inner);
            }
        }
        *at += arrow + 1;
        // An arm in braces needs no comma after it.
        let item = if self.bracket_at(tokens, *at) == b'{' {
            let value = self.token_block(tokens[*at]);
            *at += 1;
            if tokens.get(*at).is_some_and(|t| t.kind() == ",") {
                *at += 1;
            }
            ExprItem { key: ItemKey::Next, value }
        } else {
            self.token_item(tokens, at)
        };
        self.b.close_scope(before);
        item
    }

    fn token_field(&mut self, tokens: &[TreeNode<'t>], at: &mut usize) -> ExprItem {
        let first = tokens[*at];
        let short = first.kind() == "identifier" && tokens.get(*at + 1).is_none_or(|t| t.kind() == ",");
        let mut item = self.token_item(tokens, at);
        if short {
            item.key = ItemKey::Name(self.b.name(self.word(first)));
        } else if first.kind() == ".." {
            item.key = ItemKey::Spread;
        }
        item
    }

    /// One expression or statement, up to the next comma or semicolon. Its value is known if it is a single expression.
    pub(super) fn token_item(&mut self, tokens: &[TreeNode<'t>], at: &mut usize) -> ExprItem {
        let start = *at;
        let nothing = ExprItem { key: ItemKey::Next, value: UNKNOWN };
        let item = self.deeper(nothing, |reader| reader.token_item_inner(tokens, at));
        // The nesting is too deep: skip the rest.
        if *at == start {
            *at = tokens.len().max(start);
        }
        item
    }

    fn token_item_inner(&mut self, tokens: &[TreeNode<'t>], at: &mut usize) -> ExprItem {
        let mut key = ItemKey::Next;
        let mut value = UNKNOWN;
        let mut read = 0;
        let mut simple = true;
        // After `if`, `match` and similar keywords, a brace begins a block, not the fields of a struct.
        let mut heading = false;
        let mut matching = false;
        let mut marks = MacroItemAttributes::default();
        while let Some(token) = tokens.get(*at) {
            let kind = token.kind();
            match kind {
                "," | ";" => {
                    *at += 1;
                    break;
                }
                "=>" => {
                    simple = false;
                    *at += 1;
                    read = 0;
                }
                "=" => {
                    // `name = value`: a named argument, or an assignment in a block.
                    *at += 1;
                    (value, read, simple) = (UNKNOWN, 0, true);
                }
                "identifier" | "string_literal"
                    if read == 0 && tokens.get(*at + 1).is_some_and(|t| t.kind() == ":") =>
                {
                    let name = self.word(*token).trim_matches('"');
                    key = ItemKey::Name(self.b.name(name));
                    *at += 2;
                }
                // The name of an argument, or the target of an assignment in a block.
                "identifier" if read == 0 && tokens.get(*at + 1).is_some_and(|t| t.kind() == "=") => *at += 2,
                "&" | "&&" | "*" | "mutable_specifier" | ".." if read == 0 => {
                    simple &= kind != ".." || *at == 0 || tokens[*at - 1].kind() == ",";
                    *at += 1;
                }
                "|" | "||" if read == 0 => {
                    value = self.token_closure(tokens, at);
                    read += 1;
                }
                "#" if tokens.get(*at + 1).is_some_and(|t| t.kind() == "!")
                    && self.bracket_at(tokens, *at + 2) == b'[' =>
                {
                    *at += 3;
                }
                "#" if self.bracket_at(tokens, *at + 1) == b'[' => {
                    let text = self.text(tokens[*at + 1]);
                    marks.test |= text.trim_end_matches(']').ends_with("test");
                    marks.start.get_or_insert(span(*token));
                    *at += 2;
                }
                "pub" => {
                    marks.start.get_or_insert(span(*token));
                    marks.visibility = Visibility::Public;
                    *at += 1;
                    if self.bracket_at(tokens, *at) == b'(' {
                        marks.visibility = Visibility::Package;
                        *at += 1;
                    }
                }
                "let" => {
                    let condition = *at > 0 && matches!(tokens[*at - 1].kind(), "if" | "while" | "&&");
                    self.token_let(tokens, at, condition);
                    if !condition {
                        break;
                    }
                    (read, simple) = (2, false);
                }
                "for" => self.token_for(tokens, at),
                "fn" => {
                    self.token_function(tokens, at, std::mem::take(&mut marks));
                    break;
                }
                "static" | "const" => {
                    if self.token_static(tokens, at, std::mem::take(&mut marks)) {
                        break;
                    }
                }
                "struct" | "enum" => {
                    self.token_structure(tokens, at, std::mem::take(&mut marks));
                    break;
                }
                "mod" | "use" => {
                    self.token_import(tokens, at, std::mem::take(&mut marks));
                    simple = false;
                }
                // The following name is declared, not used.
                "trait" | "type" => {
                    *at += 1;
                    if tokens.get(*at).is_some_and(|t| t.kind() == "identifier") {
                        *at += 1;
                    }
                    simple = false;
                }
                "if" | "while" | "match" => {
                    heading = true;
                    matching = kind == "match";
                    simple = false;
                    *at += 1;
                }
                "return" => {
                    *at += 1;
                    let returned = self.token_item(tokens, at);
                    if self.templates == 0 {
                        self.b.returns(returned.value, false);
                    }
                    break;
                }
                "as" => {
                    *at += 1;
                    simple = false;
                    self.token_type(tokens, at);
                }
                "token_tree" if self.bracket(*token) == b'{' => {
                    let before = self.open();
                    let parts = if matching { Parts::Arms } else { Parts::Plain };
                    let tail = self.token_tail(*token, parts);
                    self.b.close_scope(before);
                    *at += 1;
                    (heading, matching) = (false, false);
                    value = tail;
                    read += 1;
                }
                "token_repetition" => {
                    let before = self.open();
                    self.token_items(*token, Parts::Plain);
                    self.b.close_scope(before);
                    *at += 1;
                    simple = false;
                }
                _ if begins_expression(*token) || (kind == "<" && read == 0) => {
                    let text = self.text(*token);
                    if matches!(text, "else" | "move" | "ref" | "in" | "dyn" | "box") {
                        *at += 1;
                        simple &= text == "move";
                        continue;
                    }
                    value = self.token_expression(tokens, at, !heading);
                    read += 1;
                }
                _ => {
                    simple &= matches!(kind, "async" | "unsafe");
                    *at += 1;
                }
            }
        }
        let value = if simple && read == 1 { value } else { UNKNOWN };
        ExprItem { key, value }
    }

    /// One expression without operators: a name, literal or tree, with the following calls and members.
    pub(super) fn token_expression(&mut self, tokens: &[TreeNode<'t>], at: &mut usize, structs: bool) -> ExprId {
        let start = *at;
        let value = self.deeper(UNKNOWN, |reader| reader.token_expression_inner(tokens, at, structs));
        if *at == start {
            *at = tokens.len().max(start);
        }
        value
    }

    fn token_expression_inner(&mut self, tokens: &[TreeNode<'t>], at: &mut usize, structs: bool) -> ExprId {
        while tokens.get(*at).is_some_and(|t| matches!(t.kind(), "&" | "&&" | "*" | "mutable_specifier")) {
            *at += 1;
        }
        let Some(first) = tokens.get(*at).copied() else { return UNKNOWN };
        // Whether the value is a name that is not called: it counts as a use.
        let mut bare = false;
        let mut value = match first.kind() {
            "string_literal" | "raw_string_literal" => {
                *at += 1;
                self.string(first)
            }
            "integer_literal" | "float_literal" => {
                *at += 1;
                self.b.expr(SourceExpr::Literal(Literal::Number))
            }
            "boolean_literal" => {
                *at += 1;
                self.b.expr(SourceExpr::Literal(Literal::Bool))
            }
            "char_literal" => {
                *at += 1;
                UNKNOWN
            }
            "metavariable" if self.text(first) != "$crate" => {
                *at += 1;
                UNKNOWN
            }
            "token_tree" => {
                *at += 1;
                self.token_group(first)
            }
            _ if begins_expression(first) || first.kind() == "<" => {
                let path = self.token_path(tokens, at);
                if tokens.get(*at).is_some_and(|t| t.kind() == "!")
                    && tokens.get(*at + 1).is_some_and(|t| t.kind() == "token_tree")
                {
                    let tree = tokens[*at + 1];
                    *at += 2;
                    self.macro_call(path.of, path.last, tree, span(first))
                } else if structs && is_capital(path.last) && self.bracket_at(tokens, *at) == b'{' {
                    let ty = self.token_named(&path, true);
                    self.b.uses(ty, line(first));
                    let (items, _) = self.token_items(tokens[*at], Parts::Fields);
                    *at += 1;
                    let items = self.b.items(&items);
                    self.b.expr(SourceExpr::Construct(ty, items))
                } else {
                    bare = true;
                    self.token_named(&path, false)
                }
            }
            _ => {
                *at += 1;
                return UNKNOWN;
            }
        };
        let mut name = first;
        while let Some(token) = tokens.get(*at).copied() {
            match token.kind() {
                "." => {
                    let Some(member) = tokens.get(*at + 1).copied() else { break };
                    match member.kind() {
                        "await" => {
                            value = self.awaited(value);
                            bare = false;
                        }
                        "integer_literal" | "float_literal" => {
                            for part in self.text(member).split('.') {
                                value = self.field_of(value, part);
                            }
                            bare = true;
                        }
                        _ if is_word(self.text(member)) => {
                            name = member;
                            value = self.b.member(value, self.word(member));
                            bare = true;
                        }
                        _ => break,
                    }
                    *at += 2;
                }
                "?" => {
                    *at += 1;
                    value = self.awaited(value);
                    bare = false;
                }
                "::" if tokens.get(*at + 1).is_some_and(|t| t.kind() == "<") => {
                    *at += 1;
                    self.token_generics(tokens, at);
                }
                "token_tree" if self.bracket(token) == b'(' => {
                    *at += 1;
                    value = self.token_call(value, token, span(name));
                    bare = false;
                }
                "token_tree" if self.bracket(token) == b'[' => {
                    *at += 1;
                    self.token_items(token, Parts::Plain);
                    value = self.element(value);
                    bare = false;
                }
                _ => break,
            }
        }
        if bare {
            self.b.uses(value, line(first));
        }
        value
    }

    fn token_call(&mut self, callee: ExprId, tree: TreeNode<'t>, at: SourceSpan) -> ExprId {
        let (items, _) = self.token_items(tree, Parts::Plain);
        if callee == UNKNOWN {
            return UNKNOWN;
        }
        let args: SmallVec<[Arg; 4]> =
            items.iter().map(|item| Arg { how: ArgKind::Place, value: item.value }).collect();
        self.container_writes(callee, &args);
        self.b.call(callee, CallKind::Plain, &args, at)
    }

    /// A tree in the position of a value: parentheses, a tuple, a list, a block.
    fn token_group(&mut self, tree: TreeNode<'t>) -> ExprId {
        match self.bracket(tree) {
            b'(' => {
                let (items, _) = self.token_items(tree, Parts::Plain);
                match items.as_slice() {
                    [] => UNKNOWN,
                    [one] => one.value,
                    _ => self.b.collection(ListKind::Tuple, &items),
                }
            }
            b'[' => {
                let (items, repeated) = self.token_items(tree, Parts::Plain);
                match items.first() {
                    Some(first) if repeated && first.value != UNKNOWN => self.b.expr(SourceExpr::ListOf(first.value)),
                    _ => self.b.collection(ListKind::List, &items),
                }
            }
            _ => self.token_block(tree),
        }
    }

    // --- paths ---

    /// `a::b::<T>::c`, `<T as Trait>::f`; moves `at` behind the path.
    pub(super) fn token_path(&mut self, tokens: &[TreeNode<'t>], at: &mut usize) -> TokenPath<'t> {
        let mut of: Option<ExprId> = None;
        let mut before = None;
        let mut last = "";
        if tokens[*at].kind() == "<" {
            let mut inner = *at + 1;
            of = Some(self.token_type(tokens, &mut inner));
            self.token_generics(tokens, at);
        } else if tokens[*at].kind() == "::" {
            // A path from the crate roots: never a variable.
            *at += 1;
            last = tokens.get(*at).map_or("", |t| self.word(*t));
            of = Some(self.free(last));
            *at += 1;
            match tokens.get(*at + 1) {
                Some(next) if tokens[*at].kind() == "::" && is_word(self.text(*next)) => {
                    last = self.word(*next);
                    *at += 2;
                }
                _ => return TokenPath { of: None, before: None, last },
            }
        } else {
            last = self.path_word(tokens[*at]);
            *at += 1;
        }
        while tokens.get(*at).is_some_and(|t| t.kind() == "::") {
            let Some(next) = tokens.get(*at + 1) else { break };
            if next.kind() == "<" {
                *at += 1;
                self.token_generics(tokens, at);
            } else if is_word(self.text(*next)) {
                if !last.is_empty() {
                    of = Some(match of {
                        Some(of) => self.member(of, last),
                        None => self.token_head(last),
                    });
                    before = Some(last);
                }
                last = self.word(*next);
                *at += 2;
            } else {
                break;
            }
        }
        TokenPath { of, before, last }
    }

    fn path_word(&self, token: TreeNode<'_>) -> &'t str {
        let word = self.word(token);
        if word == "$crate" { "crate" } else { word }
    }

    fn token_head(&mut self, name: &str) -> ExprId {
        match name {
            "crate" | "self" | "super" => self.free(name),
            _ => self.head(name),
        }
    }

    pub(super) fn token_named(&mut self, path: &TokenPath<'t>, ty: bool) -> ExprId {
        match path.of {
            Some(of) => self.member(of, path.last),
            None if ty => self.token_head(path.last),
            None => self.named(path.last),
        }
    }

    /// Skips `<…>` and records references to the names in it.
    pub(super) fn token_generics(&mut self, tokens: &[TreeNode<'t>], at: &mut usize) {
        let mut depth = 0i32;
        while let Some(token) = tokens.get(*at) {
            match token.kind() {
                "<" => depth += 1,
                "<<" => depth += 2,
                ">" => depth -= 1,
                ">>" => depth -= 2,
                ";" => return,
                "identifier" => {
                    let path = self.token_path_plain(tokens, at);
                    self.b.uses(path, line(*token));
                    continue;
                }
                _ => {}
            }
            *at += 1;
            if depth <= 0 {
                return;
            }
        }
    }

    /// A path without generics and calls.
    fn token_path_plain(&mut self, tokens: &[TreeNode<'t>], at: &mut usize) -> ExprId {
        let mut path = self.token_head(self.path_word(tokens[*at]));
        *at += 1;
        while tokens.get(*at).is_some_and(|t| t.kind() == "::")
            && let Some(next) = tokens.get(*at + 1)
            && is_word(self.text(*next))
        {
            path = self.member(path, self.word(*next));
            *at += 2;
        }
        path
    }

    /// A type as far as it is a path; references and arguments are skipped.
    pub(super) fn token_type(&mut self, tokens: &[TreeNode<'t>], at: &mut usize) -> ExprId {
        while let Some(token) = tokens.get(*at) {
            match token.kind() {
                "&" | "*" | "mutable_specifier" | "const" | "impl" | "::" => *at += 1,
                "'" => *at += 2,
                "identifier" if self.text(*token) == "dyn" => *at += 1,
                "primitive_type" => {
                    *at += 1;
                    return self.free(self.text(*token));
                }
                "identifier" | "crate" | "self" | "super" | "metavariable" => {
                    let path = self.token_path_plain(tokens, at);
                    self.b.uses(path, line(*token));
                    if tokens.get(*at).is_some_and(|t| t.kind() == "<") {
                        self.token_generics(tokens, at);
                    }
                    return path;
                }
                _ => return UNKNOWN,
            }
        }
        UNKNOWN
    }
}

pub(super) struct TokenPath<'t> {
    /// The path before the last name.
    pub of: Option<ExprId>,
    /// The name before the last.
    pub before: Option<&'t str>,
    pub last: &'t str,
}

fn begins_expression(token: TreeNode<'_>) -> bool {
    matches!(
        token.kind(),
        "identifier"
            | "self"
            | "super"
            | "crate"
            | "primitive_type"
            | "metavariable"
            | "default"
            | "gen"
            | "::"
            | "string_literal"
            | "raw_string_literal"
            | "integer_literal"
            | "float_literal"
            | "boolean_literal"
            | "char_literal"
            | "token_tree"
    )
}

pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
