//! Blocks, statements and control flow.

use super::lex::{RustTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax};

impl Parser<'_> {
    pub(super) fn block(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::BLOCK);
        self.block_in(node)
    }

    fn block_in(&mut self, node: u32) -> ParseResult<u32> {
        self.expect(RustTokenKind::Open(b'{'))?;
        self.deeper(|parser| parser.inside(|parser| parser.statements(node)))?;
        self.close_with(RustTokenKind::Close(b'}'), node)
    }

    fn add_block(&mut self, node: u32, field: u8) -> ParseResult<()> {
        self.part(node, field, Self::block)
    }

    fn statements(&mut self, list: u32) -> ParseResult<()> {
        while !self.at(RustTokenKind::Close(b'}')) {
            self.remarks(list, kind::LINE_COMMENT);
            let statement = match self.outer()? {
                Some(node) => node,
                None => self.statement()?,
            };
            self.add(list, statement, field::NO);
        }
        self.remarks(list, kind::LINE_COMMENT);
        Ok(())
    }

    fn statement(&mut self) -> ParseResult<u32> {
        if self.at_word(Word::Let) {
            return self.let_declaration();
        }
        if let Some(item) = self.item()? {
            return Ok(item);
        }
        let first = match self.begins_macro() {
            true => {
                let path = self.simple_path()?;
                Some(self.macro_invocation(path)?)
            }
            false => self.block_expression()?,
        };
        let (value, ends_with_block) = match first {
            Some(first) if self.goes_on() => (self.whole(first)?, false),
            // A macro call in the position of statements.
            Some(first) if self.tree.kind(first) == kind::MACRO_INVOCATION => return Ok(first),
            Some(first) => (first, true),
            None => (self.expression()?, false),
        };
        // The value of the block.
        if !ends_with_block && self.at(RustTokenKind::Close(b'}')) {
            return Ok(value);
        }
        let node = self.around(kind::EXPRESSION_STATEMENT, value, field::NO);
        if !ends_with_block {
            self.require(RustTokenKind::Semicolon)?;
            self.mark(node, kind::SIGN_SEMICOLON, field::NO)?;
        }
        Ok(self.close(node))
    }

    /// Whether a block or macro call, which could end the statement or arm, continues with `.` or `?`.
    fn goes_on(&self) -> bool {
        matches!(self.tok.kind, RustTokenKind::Dot | RustTokenKind::Question)
    }

    /// The whole expression that begins with a block or macro call.
    fn whole(&mut self, first: u32) -> ParseResult<u32> {
        let value = self.postfix(first)?;
        self.expression_from(value)
    }

    /// Whether `path! {` comes next.
    fn begins_macro(&self) -> bool {
        if !matches!(
            self.tok.kind,
            RustTokenKind::Name
                | RustTokenKind::Path
                | RustTokenKind::Word(Word::Crate | Word::SelfValue | Word::Super)
        ) {
            return false;
        }
        let mut at = self.tok.start;
        while self.lex.byte(at).is_ascii_alphanumeric() || matches!(self.lex.byte(at), b'_' | b':' | b'#') {
            at += 1;
        }
        if self.lex.byte(at) != b'!' {
            return false;
        }
        at += 1;
        while self.lex.byte(at) == b' ' {
            at += 1;
        }
        self.lex.byte(at) == b'{'
    }

    fn let_declaration(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::LET_DECLARATION)?;
        self.eat_word(Word::Mut)?;
        self.part(node, field::PATTERN, Self::pattern)?;
        if self.eat(RustTokenKind::Colon)? {
            self.add_type(node)?;
        }
        self.part_after(RustTokenKind::Assign, node, field::VALUE, Self::expression)?;
        if self.eat_word(Word::Else)? {
            self.add_block(node, field::ALTERNATIVE)?;
        }
        self.close_with(RustTokenKind::Semicolon, node)
    }

    /// Whether an expression begins that ends with a block, so that it needs no terminator.
    fn begins_block(&mut self) -> ParseResult<bool> {
        Ok(match self.tok.kind {
            RustTokenKind::Open(b'{')
            | RustTokenKind::Word(Word::If | Word::Match | Word::While | Word::Loop | Word::For) => true,
            RustTokenKind::Lifetime => true,
            RustTokenKind::Word(Word::Unsafe | Word::Const) => self.peek()?.kind == RustTokenKind::Open(b'{'),
            RustTokenKind::Word(Word::Async) => self.begins_async_block()?,
            _ => false,
        })
    }

    fn begins_async_block(&mut self) -> ParseResult<bool> {
        if self.peek()?.kind != RustTokenKind::Word(Word::Move) {
            return Ok(self.peek()?.kind == RustTokenKind::Open(b'{'));
        }
        self.ahead(|parser| {
            parser.advance()?;
            parser.advance()?;
            Ok(parser.at(RustTokenKind::Open(b'{')))
        })
    }

    /// An expression that ends with a block, if one begins here.
    pub(super) fn block_expression(&mut self) -> ParseResult<Option<u32>> {
        if self.begins_block()? { self.block_like().map(Some) } else { Ok(None) }
    }

    fn block_like(&mut self) -> ParseResult<u32> {
        self.deeper(Self::block_like_inner)
    }

    fn block_like_inner(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::BLOCK);
        let wrapper = match self.tok.kind {
            RustTokenKind::Word(Word::If) => {
                self.tree.truncate(node);
                return self.if_expression();
            }
            RustTokenKind::Word(Word::Match) => {
                self.tree.truncate(node);
                return self.match_expression();
            }
            RustTokenKind::Word(Word::Unsafe) => Some(kind::UNSAFE_BLOCK),
            RustTokenKind::Word(Word::Async) => Some(kind::ASYNC_BLOCK),
            RustTokenKind::Word(Word::Const) => Some(kind::CONST_BLOCK),
            _ => None,
        };
        if let Some(wrapper) = wrapper {
            self.decide(node, wrapper)?;
            if wrapper == kind::ASYNC_BLOCK {
                self.eat_word(Word::Move)?;
            }
            self.add_block(node, if wrapper == kind::CONST_BLOCK { field::BODY } else { field::NO })?;
            return Ok(self.close(node));
        }
        if self.at(RustTokenKind::Lifetime) {
            self.token(node, field::NO, kind::LABEL)?;
            self.expect(RustTokenKind::Colon)?;
        }
        match self.tok.kind {
            RustTokenKind::Word(Word::Loop) => {
                self.decide(node, kind::LOOP_EXPRESSION)?;
            }
            RustTokenKind::Word(Word::While) => {
                self.decide(node, kind::WHILE_EXPRESSION)?;
                self.condition(node, true)?;
            }
            RustTokenKind::Word(Word::For) => {
                self.decide(node, kind::FOR_EXPRESSION)?;
                self.part(node, field::PATTERN, Self::pattern)?;
                self.expect_word(Word::In)?;
                self.part(node, field::VALUE, |parser| parser.in_header(true, Self::expression))?;
            }
            _ => return self.block_in(node),
        }
        self.add_block(node, field::BODY)?;
        Ok(self.close(node))
    }

    fn if_expression(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::IF_EXPRESSION)?;
        self.condition(node, true)?;
        self.add_block(node, field::CONSEQUENCE)?;
        if self.at_word(Word::Else) {
            let otherwise = self.begin(kind::ELSE_CLAUSE)?;
            let inner = match self.at_word(Word::If) {
                true => self.deeper(Self::if_expression)?,
                false => self.block()?,
            };
            self.add(otherwise, inner, field::NO);
            self.attach(node, otherwise, field::ALTERNATIVE);
        }
        Ok(self.close(node))
    }

    /// The condition of `if`, `while` or a guard: values and `let` patterns.
    fn condition(&mut self, node: u32, header: bool) -> ParseResult<()> {
        let condition = self.in_header(header, |parser| {
            let first = match parser.at_word(Word::Let) {
                true => parser.let_condition()?,
                false => parser.expression()?,
            };
            if !parser.at_and() {
                return Ok(first);
            }
            let chain = parser.around(kind::LET_CHAIN, first, field::NO);
            while parser.at_and() {
                parser.operator(2)?;
                let more = match parser.at_word(Word::Let) {
                    true => parser.let_condition()?,
                    false => parser.comparison()?,
                };
                parser.add(chain, more, field::NO);
            }
            Ok(parser.close(chain))
        })?;
        self.add(node, condition, field::CONDITION);
        Ok(())
    }

    /// Whether `&&` comes next.
    fn at_and(&self) -> bool {
        self.at(RustTokenKind::And) && self.lex.split_operator(self.tok.start).0 == kind::SIGN_AND
    }

    /// `let pattern = value`.
    fn let_condition(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::LET_CONDITION)?;
        self.part(node, field::PATTERN, Self::pattern)?;
        self.expect(RustTokenKind::Assign)?;
        self.last(node, field::VALUE, Self::comparison)
    }

    fn match_expression(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::MATCH_EXPRESSION)?;
        self.part(node, field::VALUE, |parser| parser.in_header(true, Self::expression))?;
        let body = self.begin_with(RustTokenKind::Open(b'{'), kind::MATCH_BLOCK)?;
        self.inside(|parser| {
            while !parser.at(RustTokenKind::Close(b'}')) {
                parser.part(body, field::NO, Self::arm)?;
            }
            Ok(())
        })?;
        self.advance()?;
        Ok(self.attach_last(node, body, field::BODY))
    }

    fn arm(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::MATCH_ARM);
        self.attributes(node)?;
        let pattern = self.open(kind::MATCH_PATTERN);
        self.part(pattern, field::NO, Self::pattern)?;
        if self.eat_word(Word::If)? {
            self.condition(pattern, false)?;
        }
        self.attach(node, pattern, field::PATTERN);
        self.expect(RustTokenKind::FatArrow)?;
        let (value, ends_with_block) = match self.block_expression()? {
            Some(block) if self.goes_on() => (self.whole(block)?, false),
            Some(block)
                if matches!(self.tok.kind, RustTokenKind::Comma | RustTokenKind::Close(b'}')) || self.begins_arm() =>
            {
                (block, true)
            }
            Some(_) => return Err(UnsupportedSyntax),
            None => (self.expression()?, false),
        };
        self.add(node, value, field::VALUE);
        if !self.eat(RustTokenKind::Comma)? && !ends_with_block && !self.at(RustTokenKind::Close(b'}')) {
            return Err(UnsupportedSyntax);
        }
        Ok(self.close(node))
    }

    /// Whether the next token can only begin another arm.
    fn begins_arm(&self) -> bool {
        match self.tok.kind {
            RustTokenKind::Name
            | RustTokenKind::Blank
            | RustTokenKind::Hash
            | RustTokenKind::Path
            | RustTokenKind::Open(b'(' | b'[')
            | RustTokenKind::And
            | RustTokenKind::Bar => true,
            RustTokenKind::Minus | RustTokenKind::Range | RustTokenKind::RangeClosed | RustTokenKind::Less => true,
            RustTokenKind::Word(word) => word != Word::As,
            _ => self.literal_kind().is_some(),
        }
    }
}
