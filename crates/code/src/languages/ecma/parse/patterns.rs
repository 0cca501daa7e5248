//! Names and destructuring patterns.

use super::lex::{EcmaTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax, ensure};

impl Parser<'_> {
    /// The target of a declaration or a parameter.
    pub(super) fn pattern(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            EcmaTokenKind::Name => self.leaf(kind::IDENTIFIER),
            EcmaTokenKind::Open(b'{') => self.deeper(Self::object_pattern),
            EcmaTokenKind::Open(b'[') => self.deeper(Self::array_pattern),
            _ => Err(UnsupportedSyntax),
        }
    }

    /// A pattern with an optional default.
    pub(super) fn pattern_or_default(&mut self) -> ParseResult<u32> {
        let target = self.pattern()?;
        self.with_default(target, kind::ASSIGNMENT_PATTERN)
    }

    fn with_default(&mut self, target: u32, kind: u16) -> ParseResult<u32> {
        if !self.at(EcmaTokenKind::Assign) {
            return Ok(target);
        }
        self.infix(kind, (target, field::LEFT), field::RIGHT, |parser| parser.inside(Self::expression))
    }

    /// `...rest`
    pub(super) fn rest_pattern(&mut self) -> ParseResult<u32> {
        self.prefixed(kind::REST_PATTERN, field::NO, Self::pattern)
    }

    fn object_pattern(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::OBJECT_PATTERN)?;
        self.elements(EcmaTokenKind::Close(b'}'), |parser| {
            let first = parser.tok.kind;
            let part = match first {
                EcmaTokenKind::Ellipsis => parser.rest_pattern()?,
                EcmaTokenKind::Name if !parser.names_a_pair()? => {
                    let name = parser.leaf(kind::SHORTHAND_PROPERTY_IDENTIFIER_PATTERN)?;
                    parser.with_default(name, kind::OBJECT_ASSIGNMENT_PATTERN)?
                }
                _ => {
                    let key = parser.property_name()?;
                    let pair = parser.around(kind::PAIR_PATTERN, key, field::KEY);
                    parser.expect(EcmaTokenKind::Colon)?;
                    parser.part(pair, field::VALUE, Self::pattern_or_default)?;
                    parser.close(pair)
                }
            };
            parser.add(node, part, field::NO);
            Ok(())
        })?;
        Ok(self.close(node))
    }

    fn names_a_pair(&mut self) -> ParseResult<bool> {
        Ok(self.peek()?.kind == EcmaTokenKind::Colon)
    }

    fn array_pattern(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::ARRAY_PATTERN)?;
        loop {
            match self.tok.kind {
                EcmaTokenKind::Close(b']') => break,
                // Commas are recorded, because they count the positions.
                EcmaTokenKind::Comma => {
                    self.mark(node, kind::SIGN_COMMA, field::NO)?;
                    continue;
                }
                _ => {}
            }
            let part = if self.at(EcmaTokenKind::Ellipsis) { self.rest_pattern()? } else { self.pattern_or_default()? };
            self.add(node, part, field::NO);
            ensure(matches!(self.tok.kind, EcmaTokenKind::Comma | EcmaTokenKind::Close(b']')))?;
        }
        self.close_after(node)
    }

    /// The name of a property, a method or a field.
    pub(super) fn property_name(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            EcmaTokenKind::Name | EcmaTokenKind::Word(_) => self.leaf(kind::PROPERTY_IDENTIFIER),
            EcmaTokenKind::Private => self.leaf(kind::PRIVATE_PROPERTY_IDENTIFIER),
            EcmaTokenKind::Str => self.leaf(kind::STRING),
            EcmaTokenKind::Number => self.leaf(kind::NUMBER),
            EcmaTokenKind::Open(b'[') => {
                self.enclosed(kind::COMPUTED_PROPERTY_NAME, field::NO, EcmaTokenKind::Close(b']'), |parser| {
                    parser.inside(Self::expression)
                })
            }
            _ => Err(UnsupportedSyntax),
        }
    }

    /// Whether the next word is a modifier: without a following name it would be the name itself.
    pub(super) fn at_modifier(&mut self, word: &str) -> ParseResult<bool> {
        if !self.at_name(word) {
            return Ok(false);
        }
        let (next, fresh) = self.look()?;
        let follows = matches!(
            next.kind,
            EcmaTokenKind::Name
                | EcmaTokenKind::Private
                | EcmaTokenKind::Word(_)
                | EcmaTokenKind::Str
                | EcmaTokenKind::Number
                | EcmaTokenKind::Open(b'[' | b'{')
                | EcmaTokenKind::Star
        );
        if follows && fresh {
            return Err(UnsupportedSyntax);
        }
        Ok(follows && !matches!(next.kind, EcmaTokenKind::Word(Word::Extends | Word::In)))
    }
}
