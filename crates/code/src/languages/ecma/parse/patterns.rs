//! Names and destructuring patterns.

use super::lex::{Tok, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure, sure};

impl Parser<'_> {
    /// The target of a declaration or a parameter.
    pub(super) fn pattern(&mut self) -> Read<u32> {
        match self.tok.kind {
            Tok::Name => self.leaf(kind::IDENTIFIER),
            Tok::Open(b'{') => self.deeper(Self::object_pattern),
            Tok::Open(b'[') => self.deeper(Self::array_pattern),
            _ => Err(Unsure),
        }
    }

    /// A pattern with an optional default.
    pub(super) fn pattern_or_default(&mut self) -> Read<u32> {
        let target = self.pattern()?;
        self.with_default(target, kind::ASSIGNMENT_PATTERN)
    }

    fn with_default(&mut self, target: u32, kind: u16) -> Read<u32> {
        if !self.at(Tok::Assign) {
            return Ok(target);
        }
        self.infix(kind, (target, field::LEFT), field::RIGHT, |parser| parser.inside(Self::expression))
    }

    /// `...rest`
    pub(super) fn rest_pattern(&mut self) -> Read<u32> {
        self.prefixed(kind::REST_PATTERN, field::NO, Self::pattern)
    }

    fn object_pattern(&mut self) -> Read<u32> {
        let node = self.begin(kind::OBJECT_PATTERN)?;
        self.elements(Tok::Close(b'}'), |parser| {
            let first = parser.tok.kind;
            let part = match first {
                Tok::Ellipsis => parser.rest_pattern()?,
                Tok::Name if !parser.names_a_pair()? => {
                    let name = parser.leaf(kind::SHORTHAND_PROPERTY_IDENTIFIER_PATTERN)?;
                    parser.with_default(name, kind::OBJECT_ASSIGNMENT_PATTERN)?
                }
                _ => {
                    let key = parser.property_name()?;
                    let pair = parser.around(kind::PAIR_PATTERN, key, field::KEY);
                    parser.expect(Tok::Colon)?;
                    parser.part(pair, field::VALUE, Self::pattern_or_default)?;
                    parser.close(pair)
                }
            };
            parser.add(node, part, field::NO);
            Ok(())
        })?;
        Ok(self.close(node))
    }

    fn names_a_pair(&mut self) -> Read<bool> {
        Ok(self.peek()?.kind == Tok::Colon)
    }

    fn array_pattern(&mut self) -> Read<u32> {
        let node = self.begin(kind::ARRAY_PATTERN)?;
        loop {
            match self.tok.kind {
                Tok::Close(b']') => break,
                // Commas are recorded, because they count the positions.
                Tok::Comma => {
                    self.mark(node, kind::SIGN_COMMA, field::NO)?;
                    continue;
                }
                _ => {}
            }
            let part = if self.at(Tok::Ellipsis) { self.rest_pattern()? } else { self.pattern_or_default()? };
            self.add(node, part, field::NO);
            sure(matches!(self.tok.kind, Tok::Comma | Tok::Close(b']')))?;
        }
        self.close_after(node)
    }

    /// The name of a property, a method or a field.
    pub(super) fn property_name(&mut self) -> Read<u32> {
        match self.tok.kind {
            Tok::Name | Tok::Word(_) => self.leaf(kind::PROPERTY_IDENTIFIER),
            Tok::Private => self.leaf(kind::PRIVATE_PROPERTY_IDENTIFIER),
            Tok::Str => self.leaf(kind::STRING),
            Tok::Number => self.leaf(kind::NUMBER),
            Tok::Open(b'[') => self.enclosed(kind::COMPUTED_PROPERTY_NAME, field::NO, Tok::Close(b']'), |parser| {
                parser.inside(Self::expression)
            }),
            _ => Err(Unsure),
        }
    }

    /// Whether the next word is a modifier: without a following name it would be the name itself.
    pub(super) fn at_modifier(&mut self, word: &str) -> Read<bool> {
        if !self.at_name(word) {
            return Ok(false);
        }
        let (next, fresh) = self.look()?;
        let follows = matches!(
            next.kind,
            Tok::Name | Tok::Private | Tok::Word(_) | Tok::Str | Tok::Number | Tok::Open(b'[' | b'{') | Tok::Star
        );
        if follows && fresh {
            return Err(Unsure);
        }
        Ok(follows && !matches!(next.kind, Tok::Word(Word::Extends | Word::In)))
    }
}
