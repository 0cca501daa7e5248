//! Python's `match`, and the patterns of its cases.

use super::lex::{Tok, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure};

impl Parser<'_> {
    /// `match subject:` and its cases; `None` if `match` is an ordinary name here.
    pub(super) fn match_statement(&mut self) -> Read<Option<u32>> {
        let guess = self.guess();
        let node = self.begin(kind::MATCH_STATEMENT)?;
        let subject = self.values();
        if subject.is_err() || !self.at(Tok::Colon) || !self.lex.ends_line() {
            self.go_back(guess)?;
            return Ok(None);
        }
        self.add(node, subject?, field::NO);
        self.advance()?;
        self.expect(Tok::Newline)?;
        self.expect(Tok::Indent)?;
        let block = self.open(kind::BLOCK);
        while !self.at(Tok::Dedent) {
            if !self.at(Tok::Name) || self.text(self.tok) != "case" {
                return Err(Unsure);
            }
            self.part(block, field::ALTERNATIVE, Self::case_clause)?;
        }
        let end = self.lex.line_end;
        self.advance()?;
        self.last = end;
        self.attach(node, block, field::BODY);
        Ok(Some(self.close(node)))
    }

    fn case_clause(&mut self) -> Read<u32> {
        let clause = self.begin(kind::CASE_CLAUSE)?;
        self.patterns(clause, Tok::Colon)?;
        self.part_at(Tok::Word(Word::If), clause, field::GUARD, |parser| {
            parser.prefixed(kind::IF_CLAUSE, field::NO, Self::named)
        })?;
        self.block(clause, field::CONSEQUENCE)?;
        Ok(self.close(clause))
    }

    fn patterns(&mut self, parent: u32, end: Tok) -> Read<()> {
        while !self.at(end) {
            self.part(parent, field::NO, Self::pattern)?;
            if !self.eat(Tok::Comma)? {
                break;
            }
        }
        Ok(())
    }

    /// Alternatives, with an optional name for the whole.
    fn pattern(&mut self) -> Read<u32> {
        self.deeper(|parser| {
            let node = parser.open(kind::CASE_PATTERN);
            loop {
                parser.closed_pattern(node)?;
                if !parser.eat(Tok::Or)? {
                    break;
                }
            }
            parser.part_after(Tok::Word(Word::As), node, field::NO, Self::identifier)?;
            Ok(parser.close(node))
        })
    }

    fn closed_pattern(&mut self, parent: u32) -> Read<()> {
        match self.tok.kind {
            Tok::Star | Tok::Power => {
                self.advance()?;
                self.identifier()?;
            }
            Tok::Minus | Tok::Number => {
                self.eat(Tok::Minus)?;
                self.expect(Tok::Number)?;
                if matches!(self.tok.kind, Tok::Plus | Tok::Minus) {
                    self.advance()?;
                    self.expect(Tok::Number)?;
                }
            }
            Tok::Str | Tok::Formatted => {
                self.strings()?;
            }
            Tok::Word(Word::None | Word::True | Word::False) => self.skip()?,
            Tok::Open(b'(') => self.in_brackets(parent, Tok::Close(b')'))?,
            Tok::Open(b'[') => self.in_brackets(parent, Tok::Close(b']'))?,
            Tok::Open(b'{') => self.map_pattern(parent)?,
            Tok::Name => {
                let start = self.tok.start;
                let name = self.dotted()?;
                if self.at(Tok::Open(b'(')) {
                    let class = self.open_at(kind::CLASS_PATTERN, start);
                    self.add(class, name, field::NO);
                    self.class_parts(class)?;
                    self.attach(parent, class, field::NO);
                }
            }
            _ => return Err(Unsure),
        }
        Ok(())
    }

    fn in_brackets(&mut self, parent: u32, end: Tok) -> Read<()> {
        self.advance()?;
        self.patterns(parent, end)?;
        self.expect(end)?;
        Ok(())
    }

    fn class_parts(&mut self, class: u32) -> Read<()> {
        self.advance()?;
        self.elements(Tok::Close(b')'), |parser| {
            let start = parser.tok.start;
            let mut part = parser.pattern()?;
            if parser.eat(Tok::Assign)? {
                part = parser.open_at(kind::KEYWORD_PATTERN, start);
                parser.part(part, field::NO, Self::pattern)?;
                parser.close(part);
            }
            parser.add(class, part, field::NO);
            Ok(())
        })?;
        Ok(())
    }

    fn map_pattern(&mut self, parent: u32) -> Read<()> {
        self.advance()?;
        self.elements(Tok::Close(b'}'), |parser| {
            let key = parser.pattern()?;
            if parser.eat(Tok::Colon)? {
                parser.part(parent, field::NO, Self::pattern)?;
            } else {
                parser.add(parent, key, field::NO);
            }
            Ok(())
        })?;
        Ok(())
    }
}
