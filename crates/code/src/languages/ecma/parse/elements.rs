//! JSX elements: tags, attributes and children.

use super::lex::{EcmaTokenKind, Word};
use super::{Parser, field, kind};
use crate::convert::to_u32;
use crate::lang::descent::{Lex, ParseResult, UnsupportedSyntax, ensure};

impl Parser<'_> {
    pub(super) fn jsx(&mut self) -> ParseResult<u32> {
        let (node, end) = self.deeper(Self::element_here)?;
        self.go_on(end)?;
        Ok(node)
    }

    /// The element at `<`, and its end. The caller decides whether a text or a token follows.
    fn element_here(&mut self) -> ParseResult<(u32, u32)> {
        let start = self.tok.start;
        let tag = self.begin(kind::JSX_OPENING_ELEMENT)?;
        if !self.at(EcmaTokenKind::Greater) {
            self.part(tag, field::NAME, Self::tag_name)?;
            if self.at(EcmaTokenKind::Less) && self.state.typed {
                self.part(tag, field::TYPE_ARGUMENTS, Self::type_arguments)?;
            }
            while !matches!(self.tok.kind, EcmaTokenKind::Greater | EcmaTokenKind::Slash) {
                self.part(tag, field::ATTRIBUTE, Self::attribute)?;
            }
            if self.at(EcmaTokenKind::Slash) {
                self.decide(tag, kind::JSX_SELF_CLOSING_ELEMENT)?;
                let end = self.greater()?;
                self.tree.set_end(tag, end);
                return Ok((tag, end));
            }
        }
        let mut at = self.greater()?;
        self.tree.set_end(tag, at);
        let node = self.open_at(kind::JSX_ELEMENT, start);
        self.add(node, tag, field::OPEN_TAG);
        loop {
            at += to_u32(memchr::memchr2(b'<', b'{', self.lex.rest(at)).ok_or(UnsupportedSyntax)?);
            self.lex.jump(at);
            self.tok = self.lex.next()?;
            if self.at(EcmaTokenKind::Open(b'{')) {
                let (inner, end) = self.braces()?;
                self.add(node, inner, field::NO);
                at = end;
            } else if self.peek()?.kind == EcmaTokenKind::Slash {
                self.advance()?;
                self.advance()?;
                if !self.at(EcmaTokenKind::Greater) {
                    self.tag_name()?;
                }
                let end = self.greater()?;
                self.tree.set_end(node, end);
                return Ok((node, end));
            } else {
                let (inner, end) = self.deeper(Self::element_here)?;
                self.add(node, inner, field::NO);
                at = end;
            }
        }
    }

    /// The end of `>`, without reading a token after it.
    fn greater(&mut self) -> ParseResult<u32> {
        if self.at(EcmaTokenKind::Greater) { Ok(self.tok.end) } else { Err(UnsupportedSyntax) }
    }

    fn tag_name(&mut self) -> ParseResult<u32> {
        let mut name = match self.tok.kind {
            EcmaTokenKind::Name => self.dashed(kind::IDENTIFIER)?,
            EcmaTokenKind::Word(Word::This) => self.leaf(kind::THIS)?,
            EcmaTokenKind::Word(_) => self.leaf(kind::IDENTIFIER)?,
            _ => return Err(UnsupportedSyntax),
        };
        while self.at(EcmaTokenKind::Dot) {
            name = self.member(name)?;
        }
        if self.at(EcmaTokenKind::Colon) {
            name = self.namespaced(name)?;
        }
        Ok(name)
    }

    /// A name that may contain `-`.
    fn dashed(&mut self, kind: u16) -> ParseResult<u32> {
        let (start, end) = (self.tok.start, self.lex.tag_name_end(self.tok.start));
        let node = self.word_node(kind, true, start, end.max(self.tok.end));
        self.go_on(end.max(self.tok.end))?;
        Ok(node)
    }

    fn namespaced(&mut self, first: u32) -> ParseResult<u32> {
        let node = self.begin_around(kind::JSX_NAMESPACE_NAME, first, field::NO)?;
        ensure(matches!(self.tok.kind, EcmaTokenKind::Name | EcmaTokenKind::Word(_)))?;
        self.last(node, field::NO, |parser| parser.dashed(kind::IDENTIFIER))
    }

    fn attribute(&mut self) -> ParseResult<u32> {
        if self.at(EcmaTokenKind::Open(b'{')) {
            let (spread, end) = self.braces()?;
            self.go_on(end)?;
            return Ok(spread);
        }
        let node = self.open(kind::JSX_ATTRIBUTE);
        ensure(matches!(self.tok.kind, EcmaTokenKind::Name | EcmaTokenKind::Word(_)))?;
        let mut name = self.dashed(kind::PROPERTY_IDENTIFIER)?;
        if self.at(EcmaTokenKind::Colon) {
            self.tree.set_kind(name, kind::IDENTIFIER);
            name = self.namespaced(name)?;
        }
        self.add(node, name, field::NO);
        self.part_at(EcmaTokenKind::Assign, node, field::NO, Self::attribute_value)?;
        Ok(self.close(node))
    }

    /// A quoted string without escapes, or an expression in braces.
    fn attribute_value(&mut self) -> ParseResult<u32> {
        let mut at = self.tok.end;
        while matches!(self.lex.byte(at), b' ' | b'\t' | b'\n' | b'\r') {
            at += 1;
        }
        let quote = self.lex.byte(at);
        if matches!(quote, b'"' | b'\'') {
            let len = to_u32(memchr::memchr(quote, self.lex.rest(at + 1)).ok_or(UnsupportedSyntax)?);
            let end = at + 1 + len + 1;
            let node = self.word_node(kind::STRING, true, at, end);
            self.go_on(end)?;
            return Ok(node);
        }
        self.advance()?;
        self.require(EcmaTokenKind::Open(b'{'))?;
        let (value, end) = self.braces()?;
        self.go_on(end)?;
        Ok(value)
    }

    /// `{…}` and its end, without reading a token after it.
    fn braces(&mut self) -> ParseResult<(u32, u32)> {
        let node = self.begin(kind::JSX_EXPRESSION)?;
        if !self.at(EcmaTokenKind::Close(b'}')) {
            let value = self.inside(|parser| match parser.tok.kind {
                EcmaTokenKind::Ellipsis => parser.spread(),
                _ => parser.expressions(),
            })?;
            self.add(node, value, field::NO);
        }
        self.require(EcmaTokenKind::Close(b'}'))?;
        let end = self.tok.end;
        self.tree.set_end(node, end);
        Ok((node, end))
    }
}
