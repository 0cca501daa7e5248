//! Python's `match`, and the patterns of its cases.

use super::lex::{Tok, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure};

impl Parser<'_> {
    /// `match subject:` and its cases; `None` if `match` is an ordinary name here.
    pub(super) fn match_statement(&mut self) -> Read<Option<u32>> {
        let guess = self.guess();
        let node = self.open(kind::MATCH_STATEMENT);
        self.advance()?;
        let subject = self.list();
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
            let clause = self.case_clause()?;
            self.add(block, clause, field::ALTERNATIVE);
        }
        let end = self.lex.line_end;
        self.advance()?;
        self.last = end;
        self.close(block);
        self.add(node, block, field::BODY);
        Ok(Some(self.close(node)))
    }

    fn case_clause(&mut self) -> Read<u32> {
        let clause = self.open(kind::CASE_CLAUSE);
        self.advance()?;
        self.patterns(clause, Tok::Colon)?;
        if self.at_word(Word::If) {
            let guard = self.open(kind::IF_CLAUSE);
            self.advance()?;
            let condition = self.named()?;
            self.add(guard, condition, field::NO);
            self.close(guard);
            self.add(clause, guard, field::GUARD);
        }
        self.block(clause, field::CONSEQUENCE)?;
        Ok(self.close(clause))
    }

    fn patterns(&mut self, parent: u32, end: Tok) -> Read<()> {
        while !self.at(end) {
            let pattern = self.pattern()?;
            self.add(parent, pattern, field::NO);
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
            if parser.eat_word(Word::As)? {
                let name = parser.identifier()?;
                parser.add(node, name, field::NO);
            }
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
            Tok::Word(Word::None | Word::True | Word::False) => {
                self.advance()?;
            }
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
                    self.close(class);
                    self.add(parent, class, field::NO);
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
        while !self.at(Tok::Close(b')')) {
            let start = self.tok.start;
            let mut part = self.pattern()?;
            if self.eat(Tok::Assign)? {
                part = self.open_at(kind::KEYWORD_PATTERN, start);
                let value = self.pattern()?;
                self.add(part, value, field::NO);
                self.close(part);
            }
            self.add(class, part, field::NO);
            if !self.eat(Tok::Comma)? && !self.at(Tok::Close(b')')) {
                return Err(Unsure);
            }
        }
        self.advance()?;
        Ok(())
    }

    fn map_pattern(&mut self, parent: u32) -> Read<()> {
        self.advance()?;
        while !self.at(Tok::Close(b'}')) {
            let key = self.pattern()?;
            if self.eat(Tok::Colon)? {
                let value = self.pattern()?;
                self.add(parent, value, field::NO);
            } else {
                self.add(parent, key, field::NO);
            }
            if !self.eat(Tok::Comma)? && !self.at(Tok::Close(b'}')) {
                return Err(Unsure);
            }
        }
        self.advance()?;
        Ok(())
    }
}
