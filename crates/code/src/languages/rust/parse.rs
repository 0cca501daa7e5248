//! Parses Rust by recursive descent: items and their parts.
//!
//! Errors, nightly-only syntax and very deep nesting are left to tree-sitter. The facts are the same with either
//! parser, which a test checks.

mod expressions;
mod lex;
mod macros;
mod patterns;
mod statements;
#[cfg(test)]
mod tests;
mod types;

use super::syntax::{NAMES, field, kind};
use crate::lang::descent::{Descent, HeaderMode, ParseResult, UnsupportedSyntax, ensure};
use crate::tree::SyntaxTree;
use lex::{RustLexer, RustTokenKind, Word};

/// The tree of a text; `None` if it needs tree-sitter.
pub fn parse(text: &str) -> Option<SyntaxTree> {
    let lexer = RustLexer::new(text).ok()?;
    Parser::whole_text(lexer, &NAMES, kind::SOURCE_FILE, HeaderMode::default(), |parser, root| {
        parser.items(root, RustTokenKind::End)
    })
}

type Parser<'t> = Descent<'t, RustLexer<'t>, HeaderMode>;

impl<'t> Parser<'t> {
    // --- items ---

    /// The content of a file, a module, a trait or an impl, up to its end.
    fn items(&mut self, list: u32, end: RustTokenKind) -> ParseResult<()> {
        while !self.at(end) {
            self.remarks(list, kind::LINE_COMMENT);
            let item = match self.outer()? {
                Some(node) => node,
                None => match self.item()? {
                    Some(item) => item,
                    None => self.macro_item()?,
                },
            };
            self.add(list, item, field::NO);
        }
        self.remarks(list, kind::LINE_COMMENT);
        Ok(())
    }

    /// An attribute, or a stray semicolon.
    fn outer(&mut self) -> ParseResult<Option<u32>> {
        match self.tok.kind {
            RustTokenKind::Hash => self.attribute_item().map(Some),
            RustTokenKind::Semicolon => self.leaf(kind::EMPTY_STATEMENT).map(Some),
            _ => Ok(None),
        }
    }

    fn attribute_item(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(RustTokenKind::Hash, kind::ATTRIBUTE_ITEM)?;
        if self.eat(RustTokenKind::Bang)? {
            self.tree.set_kind(node, kind::INNER_ATTRIBUTE_ITEM);
        }
        self.expect(RustTokenKind::Open(b'['))?;
        // `#[unsafe(no_mangle)]`.
        let vouched = self.eat_word(Word::Unsafe)?;
        if vouched {
            self.expect(RustTokenKind::Open(b'('))?;
        }
        let attribute = self.open(kind::ATTRIBUTE);
        self.part(attribute, field::NO, Self::simple_path)?;
        if self.eat(RustTokenKind::Assign)? {
            self.part(attribute, field::VALUE, |parser| parser.inside(Self::expression))?;
        } else if matches!(self.tok.kind, RustTokenKind::Open(_)) {
            self.part(attribute, field::ARGUMENTS, Self::token_tree)?;
        }
        self.attach(node, attribute, field::NO);
        if vouched {
            self.expect(RustTokenKind::Close(b')'))?;
        }
        self.close_with(RustTokenKind::Close(b']'), node)
    }

    fn attributes(&mut self, list: u32) -> ParseResult<()> {
        while self.at(RustTokenKind::Hash) {
            self.part(list, field::NO, Self::attribute_item)?;
        }
        Ok(())
    }

    /// `foo! { … }` or `foo!(…);` in the position of an item.
    fn macro_item(&mut self) -> ParseResult<u32> {
        let path = self.simple_path()?;
        let node = self.macro_invocation(path)?;
        let braces = self.lex.byte(self.last - 1) == b'}';
        if !braces && !self.at(RustTokenKind::Semicolon) {
            return Err(UnsupportedSyntax);
        }
        Ok(node)
    }

    /// An item; `None` if none begins here.
    fn item(&mut self) -> ParseResult<Option<u32>> {
        let start = self.tok.start;
        let word = match self.tok.kind {
            RustTokenKind::Word(word) => word,
            RustTokenKind::Name => return self.named_item(),
            _ => return Ok(None),
        };
        let begins = match word {
            Word::Pub | Word::Mod | Word::Struct | Word::Enum | Word::Type | Word::Fn | Word::Trait => true,
            Word::Impl | Word::Use | Word::Extern => true,
            Word::Static => matches!(self.peek()?.kind, RustTokenKind::Name | RustTokenKind::Word(Word::Mut)),
            Word::Const => !matches!(
                self.peek()?.kind,
                RustTokenKind::Open(_) | RustTokenKind::Bar | RustTokenKind::Word(Word::Move)
            ),
            Word::Async => matches!(self.peek()?.kind, RustTokenKind::Word(Word::Fn | Word::Unsafe | Word::Extern)),
            Word::Unsafe => !matches!(self.peek()?.kind, RustTokenKind::Open(_)),
            _ => false,
        };
        if !begins {
            return Ok(None);
        }
        let visibility = self.visibility()?;
        self.item_at(start, visibility).map(Some)
    }

    /// Items that begin with a contextual keyword.
    fn named_item(&mut self) -> ParseResult<Option<u32>> {
        let start = self.tok.start;
        match self.text(self.tok) {
            "macro_rules" if self.lex.byte(self.tok.end) == b'!' => self.macro_definition().map(Some),
            "union" if self.peek()?.kind == RustTokenKind::Name => self.item_at(start, None).map(Some),
            "default" if matches!(self.peek()?.kind, RustTokenKind::Word(_)) => self.item_at(start, None).map(Some),
            "auto" if matches!(self.peek()?.kind, RustTokenKind::Word(_)) => Err(UnsupportedSyntax),
            _ => Ok(None),
        }
    }

    fn visibility(&mut self) -> ParseResult<Option<u32>> {
        if !self.at_word(Word::Pub) {
            return Ok(None);
        }
        let node = self.begin(kind::VISIBILITY_MODIFIER)?;
        let limit = if self.at(RustTokenKind::Open(b'(')) { self.peek()?.kind } else { RustTokenKind::End };
        if matches!(limit, RustTokenKind::Word(Word::In | Word::Crate | Word::SelfValue | Word::Super)) {
            let guess = self.guess();
            self.advance()?;
            if self.eat_word(Word::In)? {
                self.simple_path()?;
            } else {
                self.advance()?;
            }
            match self.at(RustTokenKind::Close(b')')) {
                true => self.skip()?,
                // `struct A(pub (crate::B, C))`.
                false => self.back_to(guess)?,
            }
        }
        Ok(Some(self.close(node)))
    }

    /// The item after its visibility.
    fn item_at(&mut self, start: u32, visibility: Option<u32>) -> ParseResult<u32> {
        let node = self.open_at(kind::FUNCTION_ITEM, start);
        self.add_all(node, visibility, field::NO);
        let first = self.tok.kind;
        match first {
            RustTokenKind::Word(Word::Mod) => self.mod_item(node)?,
            RustTokenKind::Word(Word::Struct) => self.struct_item(node)?,
            RustTokenKind::Word(Word::Enum) => self.enum_item(node)?,
            RustTokenKind::Word(Word::Type) => self.type_item(node)?,
            RustTokenKind::Word(Word::Static) => self.static_item(node)?,
            RustTokenKind::Word(Word::Trait) => self.trait_item(node)?,
            RustTokenKind::Word(Word::Impl) if visibility.is_none() => self.impl_item(node)?,
            RustTokenKind::Word(Word::Use) => self.use_declaration(node)?,
            RustTokenKind::Word(Word::Const) if !matches!(self.peek()?.kind, RustTokenKind::Word(_)) => {
                self.const_item(node)?
            }
            RustTokenKind::Word(Word::Unsafe) => match self.peek()?.kind {
                RustTokenKind::Word(Word::Trait) => {
                    self.advance()?;
                    self.trait_item(node)?;
                }
                RustTokenKind::Word(Word::Impl) if visibility.is_none() => {
                    self.advance()?;
                    self.impl_item(node)?;
                }
                _ => self.function_or_foreign(node)?,
            },
            RustTokenKind::Word(Word::Fn | Word::Const | Word::Async | Word::Extern) => {
                self.function_or_foreign(node)?
            }
            RustTokenKind::Name if self.at_name("default") => {
                self.advance()?;
                self.function_or_foreign(node)?;
            }
            RustTokenKind::Name if self.at_name("union") => {
                self.struct_item(node)?;
                self.tree.set_kind(node, kind::UNION_ITEM);
            }
            _ => return Err(UnsupportedSyntax),
        }
        Ok(self.close(node))
    }

    fn mod_item(&mut self, node: u32) -> ParseResult<()> {
        self.decide(node, kind::MOD_ITEM)?;
        self.part_name(node, field::NAME, kind::IDENTIFIER)?;
        if self.eat(RustTokenKind::Semicolon)? {
            return Ok(());
        }
        self.declaration_list(node)
    }

    fn declaration_list(&mut self, node: u32) -> ParseResult<()> {
        let list = self.begin_with(RustTokenKind::Open(b'{'), kind::DECLARATION_LIST)?;
        self.deeper(|parser| parser.inside(|parser| parser.items(list, RustTokenKind::Close(b'}'))))?;
        self.expect(RustTokenKind::Close(b'}'))?;
        self.attach(node, list, field::BODY);
        Ok(())
    }

    fn struct_item(&mut self, node: u32) -> ParseResult<()> {
        self.decide(node, kind::STRUCT_ITEM)?;
        self.part_name(node, field::NAME, kind::TYPE_IDENTIFIER)?;
        self.type_parameters(node)?;
        match self.tok.kind {
            RustTokenKind::Open(b'(') => {
                self.part(node, field::BODY, Self::ordered_fields)?;
                self.where_clause(node)?;
                self.expect(RustTokenKind::Semicolon)?;
            }
            RustTokenKind::Semicolon => self.skip()?,
            _ => {
                self.where_clause(node)?;
                self.part(node, field::BODY, Self::fields)?;
            }
        }
        Ok(())
    }

    fn fields(&mut self) -> ParseResult<u32> {
        let list = self.begin_with(RustTokenKind::Open(b'{'), kind::FIELD_DECLARATION_LIST)?;
        self.documented(list, RustTokenKind::Close(b'}'), |parser| {
            let node = parser.open(kind::FIELD_DECLARATION);
            parser.maybe(node, field::NO, Self::visibility)?;
            parser.part_name(node, field::NAME, kind::FIELD_IDENTIFIER)?;
            parser.expect(RustTokenKind::Colon)?;
            parser.add_type(node)?;
            parser.attach(list, node, field::NO);
            Ok(())
        })
    }

    fn ordered_fields(&mut self) -> ParseResult<u32> {
        let list = self.begin(kind::ORDERED_FIELD_DECLARATION_LIST)?;
        self.documented(list, RustTokenKind::Close(b')'), |parser| {
            parser.maybe(list, field::NO, Self::visibility)?;
            parser.add_type(list)
        })
    }

    /// A list whose elements have comments and attributes before them and commas between.
    fn documented(
        &mut self,
        list: u32,
        end: RustTokenKind,
        mut part: impl FnMut(&mut Self) -> ParseResult<()>,
    ) -> ParseResult<u32> {
        while !self.at(end) {
            self.remarks(list, kind::LINE_COMMENT);
            if self.at(RustTokenKind::Hash) {
                self.part(list, field::NO, Self::attribute_item)?;
                continue;
            }
            part(self)?;
            self.comma(end)?;
        }
        self.close_after(list)
    }

    fn enum_item(&mut self, node: u32) -> ParseResult<()> {
        self.decide(node, kind::ENUM_ITEM)?;
        self.part_name(node, field::NAME, kind::TYPE_IDENTIFIER)?;
        self.type_parameters(node)?;
        self.where_clause(node)?;
        let list = self.begin_with(RustTokenKind::Open(b'{'), kind::ENUM_VARIANT_LIST)?;
        self.documented(list, RustTokenKind::Close(b'}'), |parser| parser.part(list, field::NO, Self::variant))?;
        self.add(node, list, field::BODY);
        Ok(())
    }

    fn variant(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::ENUM_VARIANT);
        self.maybe(node, field::NO, Self::visibility)?;
        self.part_name(node, field::NAME, kind::IDENTIFIER)?;
        let body = match self.tok.kind {
            RustTokenKind::Open(b'{') => Some(self.fields()?),
            RustTokenKind::Open(b'(') => Some(self.ordered_fields()?),
            _ => None,
        };
        self.add_all(node, body, field::BODY);
        self.part_after(RustTokenKind::Assign, node, field::VALUE, |parser| parser.inside(Self::expression))?;
        Ok(self.close(node))
    }

    /// `type A = B;`, or `type A: B;` in a trait.
    fn type_item(&mut self, node: u32) -> ParseResult<()> {
        self.decide(node, kind::ASSOCIATED_TYPE)?;
        self.part_name(node, field::NAME, kind::TYPE_IDENTIFIER)?;
        self.type_parameters(node)?;
        let bounded = self.at(RustTokenKind::Colon);
        if bounded {
            self.bounds(node)?;
        }
        self.where_clause(node)?;
        if !bounded && self.eat(RustTokenKind::Assign)? {
            self.tree.set_kind(node, kind::TYPE_ITEM);
            self.add_type(node)?;
            self.where_clause(node)?;
        }
        self.expect(RustTokenKind::Semicolon).map(|_| ())
    }

    fn const_item(&mut self, node: u32) -> ParseResult<()> {
        self.decide(node, kind::CONST_ITEM)?;
        let name = match self.tok.kind {
            RustTokenKind::Name | RustTokenKind::Blank => self.leaf(kind::IDENTIFIER)?,
            _ => return Err(UnsupportedSyntax),
        };
        self.add(node, name, field::NAME);
        self.typed_value_of(node)
    }

    fn static_item(&mut self, node: u32) -> ParseResult<()> {
        self.decide(node, kind::STATIC_ITEM)?;
        self.eat_word(Word::Mut)?;
        self.part_name(node, field::NAME, kind::IDENTIFIER)?;
        self.typed_value_of(node)
    }

    /// `: T = value;`
    fn typed_value_of(&mut self, node: u32) -> ParseResult<()> {
        self.expect(RustTokenKind::Colon)?;
        self.add_type(node)?;
        self.part_after(RustTokenKind::Assign, node, field::VALUE, |parser| parser.inside(Self::expression))?;
        self.expect(RustTokenKind::Semicolon).map(|_| ())
    }

    /// A function, `extern "C" { … }`, or `extern crate …;`.
    fn function_or_foreign(&mut self, node: u32) -> ParseResult<()> {
        let modifiers = self.open(kind::FUNCTION_MODIFIERS);
        let mut any = false;
        loop {
            match self.tok.kind {
                RustTokenKind::Word(Word::Async) => self.mark(modifiers, kind::WORD_ASYNC, field::NO)?,
                RustTokenKind::Word(Word::Const | Word::Unsafe) => self.skip()?,
                RustTokenKind::Word(Word::Extern) => {
                    self.advance()?;
                    if !any && self.at_word(Word::Crate) {
                        return self.extern_crate(node);
                    }
                    if matches!(self.tok.kind, RustTokenKind::Str) {
                        self.advance()?;
                    }
                    if matches!(self.tok.kind, RustTokenKind::Open(b'{')) {
                        self.tree.set_kind(node, kind::FOREIGN_MOD_ITEM);
                        return self.declaration_list(node);
                    }
                }
                _ => break,
            }
            any = true;
        }
        if any {
            self.attach(node, modifiers, field::NO);
        }
        self.expect_word(Word::Fn)?;
        self.part_name(node, field::NAME, kind::IDENTIFIER)?;
        self.type_parameters(node)?;
        self.part(node, field::PARAMETERS, Self::parameters)?;
        self.return_type(node)?;
        self.where_clause(node)?;
        if self.eat(RustTokenKind::Semicolon)? {
            self.tree.set_kind(node, kind::FUNCTION_SIGNATURE_ITEM);
            return Ok(());
        }
        self.part(node, field::BODY, |parser| parser.inside(Self::block))
    }

    fn extern_crate(&mut self, node: u32) -> ParseResult<()> {
        self.decide(node, kind::EXTERN_CRATE_DECLARATION)?;
        self.part_name(node, field::NAME, kind::IDENTIFIER)?;
        if self.eat_word(Word::As)? {
            let alias = match self.tok.kind {
                RustTokenKind::Name | RustTokenKind::Blank => self.leaf(kind::IDENTIFIER)?,
                _ => return Err(UnsupportedSyntax),
            };
            self.add(node, alias, field::ALIAS);
        }
        self.expect(RustTokenKind::Semicolon).map(|_| ())
    }

    fn parameters(&mut self) -> ParseResult<u32> {
        let list = self.begin_with(RustTokenKind::Open(b'('), kind::PARAMETERS)?;
        let mut first = true;
        self.elements(RustTokenKind::Close(b')'), |parser| {
            parser.attributes(list)?;
            let own = if first { parser.self_parameter()? } else { None };
            let parameter = match own {
                Some(own) => own,
                None => parser.parameter()?,
            };
            first = false;
            parser.add(list, parameter, field::NO);
            Ok(())
        })?;
        Ok(self.close(list))
    }

    /// `&'a mut self` and similar forms; `None` for anything else.
    fn self_parameter(&mut self) -> ParseResult<Option<u32>> {
        if !matches!(self.tok.kind, RustTokenKind::And | RustTokenKind::Word(Word::Mut | Word::SelfValue)) {
            return Ok(None);
        }
        let guess = self.guess();
        let node = self.open(kind::SELF_PARAMETER);
        if self.eat(RustTokenKind::And)? {
            self.eat(RustTokenKind::Lifetime)?;
        }
        self.eat_word(Word::Mut)?;
        if self.eat_word(Word::SelfValue)? && !matches!(self.tok.kind, RustTokenKind::Path) {
            if !self.at(RustTokenKind::Colon) {
                return Ok(Some(self.close(node)));
            }
            // `mut self: Box<Self>`.
            self.back_to(guess)?;
            let node = self.open(kind::PARAMETER);
            self.eat_word(Word::Mut)?;
            ensure(self.at_word(Word::SelfValue))?;
            self.token(node, field::PATTERN, kind::SELF)?;
            self.expect(RustTokenKind::Colon)?;
            self.add_type(node)?;
            return Ok(Some(self.close(node)));
        }
        self.back_to(guess)?;
        Ok(None)
    }

    fn parameter(&mut self) -> ParseResult<u32> {
        if self.at(RustTokenKind::Ellipsis) {
            return self.leaf(kind::VARIADIC_PARAMETER);
        }
        let node = self.open(kind::PARAMETER);
        self.eat_word(Word::Mut)?;
        self.part(node, field::PATTERN, Self::pattern_alone)?;
        self.expect(RustTokenKind::Colon)?;
        ensure(!self.at(RustTokenKind::Ellipsis))?;
        self.add_type(node)?;
        Ok(self.close(node))
    }

    fn return_type(&mut self, node: u32) -> ParseResult<()> {
        self.part_after(RustTokenKind::Arrow, node, field::RETURN_TYPE, Self::ty)
    }

    fn impl_item(&mut self, node: u32) -> ParseResult<()> {
        self.decide(node, kind::IMPL_ITEM)?;
        self.type_parameters(node)?;
        let negative = self.at(RustTokenKind::Bang);
        if negative {
            self.mark(node, kind::SIGN_NOT, field::NO)?;
        }
        let first = self.ty()?;
        if self.eat_word(Word::For)? {
            let is_trait = matches!(
                self.tree.kind(first),
                kind::TYPE_IDENTIFIER | kind::SCOPED_TYPE_IDENTIFIER | kind::GENERIC_TYPE
            );
            ensure(is_trait)?;
            self.add(node, first, field::TRAIT);
            self.add_type(node)?;
        } else if negative {
            return Err(UnsupportedSyntax);
        } else {
            self.add(node, first, field::TYPE);
        }
        self.where_clause(node)?;
        self.declaration_list(node)
    }

    fn trait_item(&mut self, node: u32) -> ParseResult<()> {
        self.decide(node, kind::TRAIT_ITEM)?;
        self.part_name(node, field::NAME, kind::TYPE_IDENTIFIER)?;
        self.type_parameters(node)?;
        if self.at(RustTokenKind::Colon) {
            self.bounds(node)?;
        }
        self.where_clause(node)?;
        self.declaration_list(node)
    }

    // --- use ---

    fn use_declaration(&mut self, node: u32) -> ParseResult<()> {
        self.decide(node, kind::USE_DECLARATION)?;
        self.part(node, field::ARGUMENT, Self::use_clause)?;
        self.expect(RustTokenKind::Semicolon).map(|_| ())
    }

    fn use_clause(&mut self) -> ParseResult<u32> {
        self.deeper(Self::use_clause_inner)
    }

    fn use_clause_inner(&mut self) -> ParseResult<u32> {
        let start = self.tok.start;
        match self.tok.kind {
            RustTokenKind::Open(b'{') => return self.use_list(),
            RustTokenKind::Star => return self.leaf(kind::USE_WILDCARD),
            _ => {}
        }
        let mut path = None;
        loop {
            let rooted = path.is_none() && self.eat(RustTokenKind::Path)?;
            match self.tok.kind {
                RustTokenKind::Open(b'{') if rooted || path.is_some() => {
                    let node = self.open_at(kind::SCOPED_USE_LIST, start);
                    self.add_all(node, path, field::PATH);
                    return self.last(node, field::LIST, Self::use_list);
                }
                RustTokenKind::Star if rooted || path.is_some() => {
                    let node = self.open_at(kind::USE_WILDCARD, start);
                    self.add_all(node, path, field::NO);
                    return self.close_after(node);
                }
                _ => {}
            }
            let segment = self.segment()?;
            path = Some(match path {
                None if !rooted => segment,
                of => self.scoped(kind::SCOPED_IDENTIFIER, start, of, segment),
            });
            if !self.eat(RustTokenKind::Path)? {
                break;
            }
        }
        let path = path.ok_or(UnsupportedSyntax)?;
        if !self.eat_word(Word::As)? {
            return Ok(path);
        }
        let node = self.around(kind::USE_AS_CLAUSE, path, field::PATH);
        let alias = match self.tok.kind {
            RustTokenKind::Name | RustTokenKind::Blank => self.leaf(kind::IDENTIFIER)?,
            _ => return Err(UnsupportedSyntax),
        };
        self.add(node, alias, field::ALIAS);
        Ok(self.close(node))
    }

    fn use_list(&mut self) -> ParseResult<u32> {
        self.listed(kind::USE_LIST, field::NO, RustTokenKind::Close(b'}'), Self::use_clause)
    }

    // --- paths ---

    /// A name or `self`, `super`, `crate`, as part of a path.
    fn segment(&mut self) -> ParseResult<u32> {
        let kind = match self.tok.kind {
            RustTokenKind::Name => kind::IDENTIFIER,
            RustTokenKind::Word(Word::SelfValue) => kind::SELF,
            RustTokenKind::Word(Word::Super) => kind::SUPER,
            RustTokenKind::Word(Word::Crate) => kind::CRATE,
            _ => return Err(UnsupportedSyntax),
        };
        self.leaf(kind)
    }

    fn scoped(&mut self, kind: u16, start: u32, of: Option<u32>, name: u32) -> u32 {
        let node = self.open_at(kind, start);
        self.add_all(node, of, field::PATH);
        self.add(node, name, field::NAME);
        self.close(node)
    }

    /// A path without generic arguments.
    fn simple_path(&mut self) -> ParseResult<u32> {
        let start = self.tok.start;
        let rooted = self.eat(RustTokenKind::Path)?;
        let mut path = self.segment()?;
        if rooted {
            path = self.scoped(kind::SCOPED_IDENTIFIER, start, None, path);
        }
        while self.eat(RustTokenKind::Path)? {
            let name = self.segment()?;
            path = self.scoped(kind::SCOPED_IDENTIFIER, start, Some(path), name);
        }
        Ok(path)
    }
}
