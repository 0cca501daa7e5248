//! Expressions.

use super::lex::{RustTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Lex, Operators, ParseResult, UnsupportedSyntax, ensure};

/// Precedence of operators.
const OR: u8 = 2;
const AND: u8 = 3;
const COMPARE: u8 = 4;
const CAST: u8 = 11;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> ParseResult<u32> {
        self.deeper(|parser| {
            let left = parser.range()?;
            parser.assigned(left)
        })
    }

    /// Continues an expression whose first operand was already read.
    pub(super) fn expression_from(&mut self, value: u32) -> ParseResult<u32> {
        let left = self.climb(value, OR)?;
        let left = self.range_from_value(left)?;
        self.assigned(left)
    }

    /// A value that binds tighter than `&&`.
    pub(super) fn comparison(&mut self) -> ParseResult<u32> {
        let left = self.unary()?;
        self.climb(left, COMPARE)
    }

    fn assigned(&mut self, left: u32) -> ParseResult<u32> {
        let (kind, sign) = match self.tok.kind {
            RustTokenKind::Assign => (kind::ASSIGNMENT_EXPRESSION, None),
            RustTokenKind::Augmented(sign) => (kind::COMPOUND_ASSIGNMENT_EXPR, Some((sign, 2))),
            RustTokenKind::Less | RustTokenKind::Greater | RustTokenKind::And | RustTokenKind::Bar => {
                match self.lex.split_operator(self.tok.start) {
                    (sign, len, true) => (kind::COMPOUND_ASSIGNMENT_EXPR, Some((sign, len))),
                    _ => return Ok(left),
                }
            }
            _ => return Ok(left),
        };
        let node = self.around(kind, left, field::LEFT);
        match sign {
            Some((sign, len)) => self.add_operator(node, sign, len)?,
            None => self.skip()?,
        }
        let right = self.range()?;
        ensure(!matches!(self.tok.kind, RustTokenKind::Assign | RustTokenKind::Augmented(_)))?;
        self.add(node, right, field::RIGHT);
        Ok(self.close(node))
    }

    /// Consumes an operator of the given length, of which only the first byte may have been read.
    pub(super) fn operator(&mut self, len: u32) -> ParseResult<()> {
        self.tok.end = self.tok.start + len;
        self.lex.jump(self.tok.end);
        self.skip()
    }

    fn add_operator(&mut self, node: u32, sign: u16, len: u32) -> ParseResult<()> {
        let sign = self.tree.push(sign, 0, self.tok.start, self.tok.start + len);
        self.add(node, sign, field::OPERATOR);
        self.operator(len)
    }

    fn range(&mut self) -> ParseResult<u32> {
        if matches!(self.tok.kind, RustTokenKind::Range | RustTokenKind::RangeClosed) {
            let node = self.begin(kind::RANGE_EXPRESSION)?;
            if self.begins_expression() {
                self.part(node, field::NO, |parser| parser.binary(OR))?;
            }
            return Ok(self.close(node));
        }
        let left = self.binary(OR)?;
        self.range_from_value(left)
    }

    fn range_from_value(&mut self, left: u32) -> ParseResult<u32> {
        if !matches!(self.tok.kind, RustTokenKind::Range | RustTokenKind::RangeClosed) {
            return Ok(left);
        }
        let node = self.begin_around(kind::RANGE_EXPRESSION, left, field::NO)?;
        if self.begins_expression() {
            self.part(node, field::NO, |parser| parser.binary(OR))?;
        }
        ensure(!matches!(self.tok.kind, RustTokenKind::Range | RustTokenKind::RangeClosed))?;
        Ok(self.close(node))
    }

    fn begins_expression(&self) -> bool {
        match self.tok.kind {
            RustTokenKind::Name
            | RustTokenKind::Blank
            | RustTokenKind::Int
            | RustTokenKind::Float
            | RustTokenKind::Str
            | RustTokenKind::RawStr
            | RustTokenKind::Char
            | RustTokenKind::Lifetime => true,
            RustTokenKind::Path
            | RustTokenKind::Less
            | RustTokenKind::Minus
            | RustTokenKind::Star
            | RustTokenKind::Bang
            | RustTokenKind::And
            | RustTokenKind::Bar => true,
            RustTokenKind::Open(b'(' | b'[') | RustTokenKind::Range | RustTokenKind::RangeClosed => true,
            RustTokenKind::Open(_) => !self.state.header,
            RustTokenKind::Word(word) => !matches!(word, Word::As | Word::Else | Word::In | Word::Where),
            _ => false,
        }
    }

    /// The kind and the length of the next operator.
    fn next_operator(&self) -> Option<(u16, u32)> {
        Some(match self.tok.kind {
            RustTokenKind::Plus => (kind::SIGN_PLUS, 1),
            RustTokenKind::Minus => (kind::SIGN_MINUS, 1),
            RustTokenKind::Star => (kind::SIGN_TIMES, 1),
            RustTokenKind::Operator(sign) => (sign, self.tok.end - self.tok.start),
            RustTokenKind::Less | RustTokenKind::Greater | RustTokenKind::And | RustTokenKind::Bar => {
                match self.lex.split_operator(self.tok.start) {
                    (_, _, true) => return None,
                    (sign, len, false) => (sign, len),
                }
            }
            _ => return None,
        })
    }

    fn binary(&mut self, least: u8) -> ParseResult<u32> {
        let left = self.unary()?;
        self.climb(left, least)
    }

    /// Whether `let` follows the next `&&`.
    fn lets_follow(&self) -> bool {
        let rest = self.lex.text().as_bytes().get(self.tok.start as usize + 2..).unwrap_or(&[]);
        rest.trim_ascii_start().starts_with(b"let ")
    }

    fn unary(&mut self) -> ParseResult<u32> {
        let sign = match self.tok.kind {
            RustTokenKind::Minus => kind::SIGN_MINUS,
            RustTokenKind::Star => kind::SIGN_TIMES,
            RustTokenKind::Bang => kind::SIGN_NOT,
            RustTokenKind::And => {
                let node = self.begin(kind::REFERENCE_EXPRESSION)?;
                if self.at_name("raw") && matches!(self.peek()?.kind, RustTokenKind::Word(Word::Const | Word::Mut)) {
                    self.advance()?;
                    self.advance()?;
                } else {
                    self.eat_word(Word::Mut)?;
                }
                return self.last(node, field::VALUE, |parser| parser.deeper(Self::unary));
            }
            _ => {
                let value = self.atom()?;
                return self.postfix(value);
            }
        };
        let node = self.open(kind::UNARY_EXPRESSION);
        self.mark(node, sign, field::NO)?;
        self.last(node, field::NO, |parser| parser.deeper(Self::unary))
    }

    /// Members, calls, indexes and `?` after a value.
    pub(super) fn postfix(&mut self, mut node: u32) -> ParseResult<u32> {
        // Nothing can follow an expression that extends to the end.
        if matches!(
            self.tree.kind(node),
            kind::CLOSURE_EXPRESSION
                | kind::RETURN_EXPRESSION
                | kind::BREAK_EXPRESSION
                | kind::CONTINUE_EXPRESSION
                | kind::YIELD_EXPRESSION
        ) {
            return Ok(node);
        }
        loop {
            node = match self.tok.kind {
                RustTokenKind::Dot => self.member(node)?,
                RustTokenKind::Question => {
                    let node = self.begin_around(kind::TRY_EXPRESSION, node, field::NO)?;
                    self.close(node)
                }
                RustTokenKind::Open(b'(') => {
                    let node = self.around(kind::CALL_EXPRESSION, node, field::FUNCTION);
                    let arguments = self.begin(kind::ARGUMENTS)?;
                    self.values(arguments, b')')?;
                    self.add(node, arguments, field::ARGUMENTS);
                    self.close(node)
                }
                RustTokenKind::Open(b'[') => {
                    let node = self.begin_around(kind::INDEX_EXPRESSION, node, field::NO)?;
                    self.part(node, field::NO, |parser| parser.inside(Self::expression))?;
                    self.expect(RustTokenKind::Close(b']'))?;
                    self.close(node)
                }
                _ => return Ok(node),
            };
        }
    }

    /// `.await`, `.name`, `.0`, `.name::<T>`.
    fn member(&mut self, of: u32) -> ParseResult<u32> {
        let node = self.begin_around(kind::FIELD_EXPRESSION, of, field::VALUE)?;
        let name = match self.tok.kind {
            RustTokenKind::Word(Word::Await) => {
                self.decide(node, kind::AWAIT_EXPRESSION)?;
                return Ok(self.close(node));
            }
            RustTokenKind::Name => self.leaf(kind::FIELD_IDENTIFIER)?,
            RustTokenKind::Int => self.leaf(kind::INTEGER_LITERAL)?,
            _ => return Err(UnsupportedSyntax),
        };
        self.add(node, name, field::FIELD);
        self.close(node);
        if self.at(RustTokenKind::Path) {
            self.advance()?;
            let generic = self.around(kind::GENERIC_FUNCTION, node, field::FUNCTION);
            return self.last(generic, field::TYPE_ARGUMENTS, Self::type_arguments);
        }
        Ok(node)
    }

    /// Expressions separated by commas up to a closing bracket, which ends the list.
    fn values(&mut self, list: u32, close: u8) -> ParseResult<()> {
        let close = RustTokenKind::Close(close);
        self.inside(|parser| {
            while !parser.at(close) {
                parser.attributes(list)?;
                parser.part(list, field::NO, Self::expression)?;
                parser.comma(close)?;
            }
            Ok(())
        })?;
        self.advance()?;
        self.close(list);
        Ok(())
    }

    fn atom(&mut self) -> ParseResult<u32> {
        if let Some(kind) = self.literal_kind() {
            return self.leaf(kind);
        }
        match self.tok.kind {
            RustTokenKind::Name
            | RustTokenKind::Path
            | RustTokenKind::Less
            | RustTokenKind::Word(Word::SelfValue | Word::Super | Word::Crate) => self.path_value(),
            RustTokenKind::Blank => self.leaf(kind::IDENTIFIER),
            RustTokenKind::Open(b'(') => self.parenthesized(),
            RustTokenKind::Open(b'[') => self.array(),
            RustTokenKind::Bar | RustTokenKind::Word(Word::Move | Word::Static) => self.closure(),
            RustTokenKind::Word(Word::Return) => self.leaving(kind::RETURN_EXPRESSION),
            RustTokenKind::Word(Word::Yield) => self.leaving(kind::YIELD_EXPRESSION),
            RustTokenKind::Word(Word::Break) => self.leaving(kind::BREAK_EXPRESSION),
            RustTokenKind::Word(Word::Continue) => self.leaving(kind::CONTINUE_EXPRESSION),
            _ => match self.block_expression()? {
                Some(block) => Ok(block),
                None if self.at_word(Word::Async) => self.closure(),
                None => Err(UnsupportedSyntax),
            },
        }
    }

    /// `return`, `break`, `continue` and `yield`.
    fn leaving(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        let labelled = matches!(kind, kind::BREAK_EXPRESSION | kind::CONTINUE_EXPRESSION);
        if labelled && self.at(RustTokenKind::Lifetime) {
            ensure(self.peek()?.kind != RustTokenKind::Colon)?;
            self.token(node, field::NO, kind::LABEL)?;
        }
        if kind != kind::CONTINUE_EXPRESSION && self.begins_expression() {
            self.part(node, field::NO, Self::expression)?;
        }
        Ok(self.close(node))
    }

    fn parenthesized(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::PARENTHESIZED_EXPRESSION)?;
        if self.at(RustTokenKind::Close(b')')) {
            self.decide(node, kind::UNIT_EXPRESSION)?;
            return Ok(self.close(node));
        }
        let attributes = self.at(RustTokenKind::Hash);
        self.attributes(node)?;
        self.part(node, field::NO, |parser| parser.inside(Self::expression))?;
        if self.at(RustTokenKind::Comma) {
            self.advance()?;
            self.tree.set_kind(node, kind::TUPLE_EXPRESSION);
            self.values(node, b')')?;
            return Ok(node);
        }
        ensure(!attributes)?;
        self.close_with(RustTokenKind::Close(b')'), node)
    }

    fn array(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::ARRAY_EXPRESSION)?;
        self.attributes(node)?;
        if self.at(RustTokenKind::Close(b']')) {
            return self.close_after(node);
        }
        self.part(node, field::NO, |parser| parser.inside(Self::expression))?;
        if self.eat(RustTokenKind::Semicolon)? {
            self.part(node, field::LENGTH, |parser| parser.inside(Self::expression))?;
            return self.close_with(RustTokenKind::Close(b']'), node);
        }
        self.comma(RustTokenKind::Close(b']'))?;
        self.values(node, b']')?;
        Ok(node)
    }

    fn closure(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::CLOSURE_EXPRESSION);
        self.eat_word(Word::Static)?;
        if self.at_word(Word::Async) {
            self.mark(node, kind::WORD_ASYNC, field::NO)?;
        }
        self.eat_word(Word::Move)?;
        let list = self.begin_with(RustTokenKind::Bar, kind::CLOSURE_PARAMETERS)?;
        self.elements(RustTokenKind::Bar, |parser| {
            ensure(!parser.at(RustTokenKind::Hash))?;
            parser.part(list, field::NO, Self::closure_parameter)
        })?;
        self.attach(node, list, field::PARAMETERS);
        let body = match self.eat(RustTokenKind::Arrow)? {
            true => {
                self.part(node, field::RETURN_TYPE, Self::ty)?;
                self.block()?
            }
            false => self.expression()?,
        };
        self.add(node, body, field::BODY);
        Ok(self.close(node))
    }

    fn closure_parameter(&mut self) -> ParseResult<u32> {
        let start = self.tok.start;
        let pattern = self.pattern_alone()?;
        if !self.at(RustTokenKind::Colon) {
            return Ok(pattern);
        }
        let node = self.open_at(kind::PARAMETER, start);
        self.add(node, pattern, field::PATTERN);
        self.advance()?;
        self.add_type(node)?;
        Ok(self.close(node))
    }

    // --- paths ---

    /// The path of a value: `a::b`, `A::<B>::c`, `<T as A>::b`; with arguments at its end, a generic function.
    pub(super) fn path(&mut self) -> ParseResult<u32> {
        let start = self.tok.start;
        let mut path = match self.tok.kind {
            RustTokenKind::Less => self.bracketed()?,
            RustTokenKind::Path => {
                self.advance()?;
                let name = self.segment()?;
                self.scoped(kind::SCOPED_IDENTIFIER, start, None, name)
            }
            _ => self.segment()?,
        };
        while self.at(RustTokenKind::Path) {
            if self.tree.kind(path) == kind::GENERIC_FUNCTION {
                path = self.generic_of(path)?;
            }
            self.advance()?;
            if self.at(RustTokenKind::Less) {
                ensure(matches!(self.tree.kind(path), kind::IDENTIFIER | kind::SCOPED_IDENTIFIER))?;
                let node = self.around(kind::GENERIC_FUNCTION, path, field::FUNCTION);
                self.part(node, field::TYPE_ARGUMENTS, Self::type_arguments)?;
                path = self.close(node);
                continue;
            }
            let name = self.segment()?;
            path = self.scoped(kind::SCOPED_IDENTIFIER, start, Some(path), name);
        }
        Ok(path)
    }

    /// Converts a generic function into the type it names.
    pub(super) fn generic_of(&mut self, function: u32) -> ParseResult<u32> {
        let start = self.tree.start(function);
        let (name, arguments) = self.tree.take_ends(function).ok_or(UnsupportedSyntax)?;
        if self.tree.kind(name) == kind::IDENTIFIER {
            self.tree.set_kind(name, kind::TYPE_IDENTIFIER);
        }
        let node = self.open_at(kind::GENERIC_TYPE, start);
        self.add(node, name, field::TYPE);
        self.add(node, arguments, field::TYPE_ARGUMENTS);
        Ok(self.close(node))
    }

    fn path_value(&mut self) -> ParseResult<u32> {
        let path = self.path()?;
        let kind = self.tree.kind(path);
        let plain = matches!(kind, kind::IDENTIFIER | kind::SCOPED_IDENTIFIER);
        match self.tok.kind {
            RustTokenKind::Bang if plain => self.macro_invocation(path),
            RustTokenKind::Open(b'{') if !self.state.header && (plain || kind == kind::GENERIC_FUNCTION) => {
                let ty = match plain {
                    true => self.as_type(path),
                    false => self.generic_of(path)?,
                };
                self.structure(ty)
            }
            _ => match kind {
                kind::SUPER | kind::CRATE | kind::BRACKETED_TYPE => Err(UnsupportedSyntax),
                _ => Ok(path),
            },
        }
    }

    fn structure(&mut self, ty: u32) -> ParseResult<u32> {
        let node = self.around(kind::STRUCT_EXPRESSION, ty, field::NAME);
        let list = self.begin(kind::FIELD_INITIALIZER_LIST)?;
        self.inside(|parser| {
            while !parser.at(RustTokenKind::Close(b'}')) {
                parser.part(list, field::NO, Self::field_initializer)?;
                parser.comma(RustTokenKind::Close(b'}'))?;
            }
            Ok(())
        })?;
        self.advance()?;
        Ok(self.attach_last(node, list, field::BODY))
    }

    fn field_initializer(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::FIELD_INITIALIZER);
        self.attributes(node)?;
        let first = self.tok.kind;
        match first {
            RustTokenKind::Range => {
                self.decide(node, kind::BASE_FIELD_INITIALIZER)?;
                self.part(node, field::NO, Self::expression)?;
            }
            RustTokenKind::Name if self.peek()?.kind != RustTokenKind::Colon => {
                self.tree.set_kind(node, kind::SHORTHAND_FIELD_INITIALIZER);
                self.token(node, field::NO, kind::IDENTIFIER)?;
            }
            RustTokenKind::Name | RustTokenKind::Int => {
                self.token(node, field::FIELD, kind::FIELD_IDENTIFIER)?;
                self.expect(RustTokenKind::Colon)?;
                self.part(node, field::VALUE, Self::expression)?;
            }
            _ => return Err(UnsupportedSyntax),
        }
        Ok(self.close(node))
    }
}

impl Operators for Parser<'_> {
    fn binds(&mut self) -> Option<u8> {
        if self.at_word(Word::As) {
            return Some(CAST);
        }
        Some(match self.next_operator()?.0 {
            kind::SIGN_OR => OR,
            // `a && let …` is read by the caller, as part of a condition.
            kind::SIGN_AND if self.lets_follow() => return None,
            kind::SIGN_AND => AND,
            kind::SIGN_BIT_OR => 5,
            kind::SIGN_BIT_XOR => 6,
            kind::SIGN_BIT_AND => 7,
            kind::SIGN_SHIFT_LEFT | kind::SIGN_SHIFT_RIGHT => 8,
            kind::SIGN_PLUS | kind::SIGN_MINUS => 9,
            kind::SIGN_TIMES | kind::SIGN_DIVIDE | kind::SIGN_REMAINDER => 10,
            _ => COMPARE,
        })
    }

    fn combine(&mut self, left: u32, precedence: u8) -> ParseResult<u32> {
        if precedence == CAST {
            return self.infix(kind::TYPE_CAST_EXPRESSION, (left, field::VALUE), field::TYPE, Self::type_alone);
        }
        let (sign, len) = self.next_operator().ok_or(UnsupportedSyntax)?;
        let node = self.around(kind::BINARY_EXPRESSION, left, field::LEFT);
        self.add_operator(node, sign, len)?;
        let right = self.deeper(|parser| parser.binary(precedence + 1))?;
        ensure(precedence != COMPARE || self.binds() != Some(COMPARE))?;
        self.add(node, right, field::RIGHT);
        Ok(self.close(node))
    }
}
