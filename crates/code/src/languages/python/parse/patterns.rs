//! Python's `match`, and the patterns of its cases.

use super::lex::{PythonTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax};

impl Parser<'_> {
    /// `match subject:` and its cases; `None` if `match` is an ordinary name here.
    pub(super) fn match_statement(&mut self) -> ParseResult<Option<u32>> {
        let guess = self.guess();
        let node = self.begin(kind::MATCH_STATEMENT)?;
        let subject = self.values();
        if subject.is_err() || !self.at(PythonTokenKind::Colon) || !self.lex.ends_line() {
            self.back_to(guess)?;
            return Ok(None);
        }
        self.add(node, subject?, field::NO);
        self.advance()?;
        self.expect(PythonTokenKind::Newline)?;
        self.expect(PythonTokenKind::Indent)?;
        let block = self.open(kind::BLOCK);
        while !self.at(PythonTokenKind::Dedent) {
            if !self.at(PythonTokenKind::Name) || self.text(self.tok) != "case" {
                return Err(UnsupportedSyntax);
            }
            self.part(block, field::ALTERNATIVE, Self::case_clause)?;
        }
        let end = self.lex.line_end;
        self.advance()?;
        self.last = end;
        self.attach(node, block, field::BODY);
        Ok(Some(self.close(node)))
    }

    fn case_clause(&mut self) -> ParseResult<u32> {
        let clause = self.begin(kind::CASE_CLAUSE)?;
        self.patterns(clause, PythonTokenKind::Colon)?;
        self.part_at(PythonTokenKind::Word(Word::If), clause, field::GUARD, |parser| {
            parser.prefixed(kind::IF_CLAUSE, field::NO, Self::named)
        })?;
        self.block(clause, field::CONSEQUENCE)?;
        Ok(self.close(clause))
    }

    fn patterns(&mut self, parent: u32, end: PythonTokenKind) -> ParseResult<()> {
        while !self.at(end) {
            self.part(parent, field::NO, Self::pattern)?;
            if !self.eat(PythonTokenKind::Comma)? {
                break;
            }
        }
        Ok(())
    }

    /// Alternatives, with an optional name for the whole.
    fn pattern(&mut self) -> ParseResult<u32> {
        self.deeper(|parser| {
            let node = parser.open(kind::CASE_PATTERN);
            loop {
                parser.closed_pattern(node)?;
                if !parser.eat(PythonTokenKind::Or)? {
                    break;
                }
            }
            parser.part_after(PythonTokenKind::Word(Word::As), node, field::NO, Self::identifier)?;
            Ok(parser.close(node))
        })
    }

    fn closed_pattern(&mut self, parent: u32) -> ParseResult<()> {
        match self.tok.kind {
            PythonTokenKind::Star | PythonTokenKind::Power => {
                self.advance()?;
                self.identifier()?;
            }
            PythonTokenKind::Minus | PythonTokenKind::Number => {
                self.eat(PythonTokenKind::Minus)?;
                self.expect(PythonTokenKind::Number)?;
                if matches!(self.tok.kind, PythonTokenKind::Plus | PythonTokenKind::Minus) {
                    self.advance()?;
                    self.expect(PythonTokenKind::Number)?;
                }
            }
            PythonTokenKind::Str | PythonTokenKind::Formatted => {
                self.strings()?;
            }
            PythonTokenKind::Word(Word::None | Word::True | Word::False) => self.skip()?,
            PythonTokenKind::Open(b'(') => self.in_brackets(parent, PythonTokenKind::Close(b')'))?,
            PythonTokenKind::Open(b'[') => self.in_brackets(parent, PythonTokenKind::Close(b']'))?,
            PythonTokenKind::Open(b'{') => self.map_pattern(parent)?,
            PythonTokenKind::Name => {
                let start = self.tok.start;
                let name = self.dotted()?;
                if self.at(PythonTokenKind::Open(b'(')) {
                    let class = self.open_at(kind::CLASS_PATTERN, start);
                    self.add(class, name, field::NO);
                    self.class_parts(class)?;
                    self.attach(parent, class, field::NO);
                }
            }
            _ => return Err(UnsupportedSyntax),
        }
        Ok(())
    }

    fn in_brackets(&mut self, parent: u32, end: PythonTokenKind) -> ParseResult<()> {
        self.advance()?;
        self.patterns(parent, end)?;
        self.expect(end)?;
        Ok(())
    }

    fn class_parts(&mut self, class: u32) -> ParseResult<()> {
        self.advance()?;
        self.elements(PythonTokenKind::Close(b')'), |parser| {
            let start = parser.tok.start;
            let mut part = parser.pattern()?;
            if parser.eat(PythonTokenKind::Assign)? {
                part = parser.open_at(kind::KEYWORD_PATTERN, start);
                parser.part(part, field::NO, Self::pattern)?;
                parser.close(part);
            }
            parser.add(class, part, field::NO);
            Ok(())
        })?;
        Ok(())
    }

    fn map_pattern(&mut self, parent: u32) -> ParseResult<()> {
        self.advance()?;
        self.elements(PythonTokenKind::Close(b'}'), |parser| {
            let key = parser.pattern()?;
            if parser.eat(PythonTokenKind::Colon)? {
                parser.part(parent, field::NO, Self::pattern)?;
            } else {
                parser.add(parent, key, field::NO);
            }
            Ok(())
        })?;
        Ok(())
    }
}
