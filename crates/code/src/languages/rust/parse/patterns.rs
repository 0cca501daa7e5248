//! Patterns.

use super::lex::{RustTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax, ensure};

impl Parser<'_> {
    /// A pattern with its alternatives: `A | B`.
    pub(super) fn pattern(&mut self) -> ParseResult<u32> {
        let mut node = match self.at(RustTokenKind::Bar) {
            true => {
                let or = self.begin(kind::OR_PATTERN)?;
                self.nested_pattern(or)?
            }
            false => self.pattern_alone()?,
        };
        while self.at(RustTokenKind::Bar) && !matches!(self.lex.byte(self.tok.end), b'|' | b'=') {
            let or = self.begin_around(kind::OR_PATTERN, node, field::NO)?;
            node = self.nested_pattern(or)?;
        }
        Ok(node)
    }

    pub(super) fn pattern_alone(&mut self) -> ParseResult<u32> {
        self.deeper(Self::pattern_inner)
    }

    fn pattern_inner(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            RustTokenKind::Blank => self.blank(),
            RustTokenKind::Range | RustTokenKind::RangeClosed => self.range_to(),
            RustTokenKind::And => {
                let node = self.begin(kind::REFERENCE_PATTERN)?;
                self.eat_word(Word::Mut)?;
                self.nested_pattern(node)
            }
            RustTokenKind::Word(Word::Ref) => {
                let node = self.begin(kind::REF_PATTERN)?;
                self.nested_pattern(node)
            }
            RustTokenKind::Word(Word::Mut) => {
                let node = self.begin(kind::MUT_PATTERN)?;
                self.nested_pattern(node)
            }
            RustTokenKind::Open(b'(') => {
                let node = self.begin(kind::TUPLE_PATTERN)?;
                self.patterns(node, RustTokenKind::Close(b')'))
            }
            RustTokenKind::Open(b'[') => {
                let node = self.begin(kind::SLICE_PATTERN)?;
                self.patterns(node, RustTokenKind::Close(b']'))
            }
            RustTokenKind::Name
            | RustTokenKind::Path
            | RustTokenKind::Less
            | RustTokenKind::Word(Word::SelfValue | Word::Super | Word::Crate) => self.path_pattern(),
            _ => {
                let literal = self.pattern_literal()?;
                self.range_from(literal)
            }
        }
    }

    fn nested_pattern(&mut self, node: u32) -> ParseResult<u32> {
        self.last(node, field::NO, Self::pattern_alone)
    }

    /// Patterns separated by commas up to a closing bracket.
    fn patterns(&mut self, node: u32, close: RustTokenKind) -> ParseResult<u32> {
        self.list(node, field::NO, close, Self::pattern)?;
        Ok(self.close(node))
    }

    fn pattern_literal(&mut self) -> ParseResult<u32> {
        if !self.at(RustTokenKind::Minus) {
            let kind = self.literal_kind().ok_or(UnsupportedSyntax)?;
            return self.leaf(kind);
        }
        let node = self.begin(kind::NEGATIVE_LITERAL)?;
        let number = match self.tok.kind {
            RustTokenKind::Int => self.leaf(kind::INTEGER_LITERAL)?,
            RustTokenKind::Float => self.leaf(kind::FLOAT_LITERAL)?,
            _ => return Err(UnsupportedSyntax),
        };
        self.add(node, number, field::NO);
        Ok(self.close(node))
    }

    /// `..`, or `..=5`.
    fn range_to(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::REMAINING_FIELD_PATTERN);
        let closed = self.at(RustTokenKind::RangeClosed);
        self.advance()?;
        match self.range_end()? {
            Some(end) => {
                self.tree.set_kind(node, kind::RANGE_PATTERN);
                self.add(node, end, field::RIGHT);
            }
            None if closed => return Err(UnsupportedSyntax),
            None => {}
        }
        Ok(self.close(node))
    }

    /// A literal or path, with the end of the range that it may begin.
    fn range_from(&mut self, left: u32) -> ParseResult<u32> {
        let half = match self.tok.kind {
            RustTokenKind::Range => true,
            RustTokenKind::RangeClosed | RustTokenKind::Ellipsis => false,
            _ => return Ok(left),
        };
        let node = self.begin_around(kind::RANGE_PATTERN, left, field::LEFT)?;
        match self.range_end()? {
            Some(end) => self.add(node, end, field::RIGHT),
            None if !half => return Err(UnsupportedSyntax),
            None => {}
        }
        Ok(self.close(node))
    }

    fn range_end(&mut self) -> ParseResult<Option<u32>> {
        match self.tok.kind {
            RustTokenKind::Name
            | RustTokenKind::Path
            | RustTokenKind::Word(Word::SelfValue | Word::Super | Word::Crate) => self.simple_path().map(Some),
            RustTokenKind::Minus => self.pattern_literal().map(Some),
            _ => match self.literal_kind() {
                Some(kind) => self.leaf(kind).map(Some),
                None => Ok(None),
            },
        }
    }

    fn path_pattern(&mut self) -> ParseResult<u32> {
        let path = self.path()?;
        let plain = matches!(self.tree.kind(path), kind::IDENTIFIER | kind::SCOPED_IDENTIFIER);
        match self.tok.kind {
            RustTokenKind::At if self.tree.kind(path) == kind::IDENTIFIER => {
                let node = self.begin_around(kind::CAPTURED_PATTERN, path, field::NO)?;
                self.nested_pattern(node)
            }
            RustTokenKind::Open(b'(') => {
                let ty = match self.tree.kind(path) {
                    kind::GENERIC_FUNCTION => self.generic_of(path)?,
                    _ if plain => path,
                    _ => return Err(UnsupportedSyntax),
                };
                let node = self.begin_around(kind::TUPLE_STRUCT_PATTERN, ty, field::TYPE)?;
                self.patterns(node, RustTokenKind::Close(b')'))
            }
            RustTokenKind::Open(b'{') if plain => {
                let ty = self.as_type(path);
                let node = self.begin_around(kind::STRUCT_PATTERN, ty, field::TYPE)?;
                self.field_patterns(node)
            }
            RustTokenKind::Bang if plain => self.macro_invocation(path),
            RustTokenKind::Range | RustTokenKind::RangeClosed | RustTokenKind::Ellipsis if plain => {
                self.range_from(path)
            }
            _ if plain => Ok(path),
            _ => Err(UnsupportedSyntax),
        }
    }

    fn field_patterns(&mut self, node: u32) -> ParseResult<u32> {
        self.elements(RustTokenKind::Close(b'}'), |parser| {
            ensure(!parser.at(RustTokenKind::Hash))?;
            if parser.at(RustTokenKind::Range) {
                parser.token(node, field::NO, kind::REMAINING_FIELD_PATTERN)?;
            } else {
                let part = parser.open(kind::FIELD_PATTERN);
                let marked = parser.eat_word(Word::Ref)? | parser.eat_word(Word::Mut)?;
                let name = match parser.tok.kind {
                    RustTokenKind::Name => parser.leaf(kind::SHORTHAND_FIELD_IDENTIFIER)?,
                    _ => return Err(UnsupportedSyntax),
                };
                parser.add(part, name, field::NAME);
                if parser.at(RustTokenKind::Colon) {
                    ensure(!marked)?;
                    parser.decide(name, kind::FIELD_IDENTIFIER)?;
                    parser.part(part, field::PATTERN, Self::pattern)?;
                }
                parser.attach(node, part, field::NO);
            }
            Ok(())
        })?;
        Ok(self.close(node))
    }
}
