//! Python's expressions, by precedence of their operators.

use super::lex::{PythonTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Lex, Operators, ParseResult, UnsupportedSyntax, ensure};
use crate::tree::flag;

/// Precedence of operators; a larger number binds tighter.
mod bind {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const COMPARE: u8 = 4;
    pub const BIT_OR: u8 = 5;
    pub const BIT_XOR: u8 = 6;
    pub const BIT_AND: u8 = 7;
    pub const SHIFT: u8 = 8;
    pub const SUM: u8 = 9;
    pub const PRODUCT: u8 = 10;
}

impl Parser<'_> {
    /// One expression, or several as a list; `yield` counts as one.
    pub(super) fn values(&mut self) -> ParseResult<u32> {
        if self.at_word(Word::Yield) {
            return self.yielded();
        }
        let first = self.starred(false)?;
        if !self.at(PythonTokenKind::Comma) {
            return Ok(first);
        }
        let node = self.around(kind::EXPRESSION_LIST, first, field::NO);
        while self.eat(PythonTokenKind::Comma)? {
            if !self.begins_expression() {
                break;
            }
            self.part(node, field::NO, |parser| parser.starred(false))?;
        }
        Ok(self.close(node))
    }

    fn begins_expression(&self) -> bool {
        match self.tok.kind {
            PythonTokenKind::Name
            | PythonTokenKind::Number
            | PythonTokenKind::Str
            | PythonTokenKind::Formatted
            | PythonTokenKind::Open(_)
            | PythonTokenKind::Ellipsis => true,
            PythonTokenKind::Minus | PythonTokenKind::Plus | PythonTokenKind::Tilde | PythonTokenKind::Star => true,
            PythonTokenKind::Word(word) => {
                matches!(word, Word::Not | Word::Lambda | Word::Await | Word::True | Word::False | Word::None)
            }
            _ => false,
        }
    }

    /// The targets of `for` and similar statements.
    pub(super) fn targets(&mut self) -> ParseResult<u32> {
        let first = self.target()?;
        if !self.at(PythonTokenKind::Comma) {
            return Ok(first);
        }
        let node = self.around(kind::PATTERN_LIST, first, field::NO);
        while self.eat(PythonTokenKind::Comma)? {
            if !self.begins_expression() {
                break;
            }
            self.part(node, field::NO, Self::target)?;
        }
        Ok(self.close(node))
    }

    pub(super) fn target(&mut self) -> ParseResult<u32> {
        if self.at(PythonTokenKind::Star) {
            return self.prefixed(kind::LIST_SPLAT_PATTERN, field::NO, |parser| parser.binary(bind::BIT_OR));
        }
        self.binary(bind::BIT_OR)
    }

    /// `*…` or an expression; with `named`, also `name := …`.
    pub(super) fn starred(&mut self, named: bool) -> ParseResult<u32> {
        if self.at(PythonTokenKind::Star) {
            return self.prefixed(kind::LIST_SPLAT, field::NO, Self::expression);
        }
        if named { self.named() } else { self.expression() }
    }

    /// An expression, or `name := …`.
    pub(super) fn named(&mut self) -> ParseResult<u32> {
        let first = self.expression()?;
        if !self.at(PythonTokenKind::Walrus) {
            return Ok(first);
        }
        ensure(self.tree.kind(first) == kind::IDENTIFIER)?;
        self.infix(kind::NAMED_EXPRESSION, (first, field::NAME), field::VALUE, Self::expression)
    }

    pub(super) fn expression(&mut self) -> ParseResult<u32> {
        self.deeper(|parser| {
            if parser.at_word(Word::Lambda) {
                return parser.lambda();
            }
            let first = parser.binary(bind::OR)?;
            if !parser.at_word(Word::If) {
                return Ok(first);
            }
            let node = parser.begin_around(kind::CONDITIONAL_EXPRESSION, first, field::NO)?;
            parser.part(node, field::NO, |parser| parser.binary(bind::OR))?;
            parser.expect(PythonTokenKind::Word(Word::Else))?;
            parser.last(node, field::NO, Self::expression)
        })
    }

    fn lambda(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::LAMBDA)?;
        if !self.at(PythonTokenKind::Colon) {
            let parameters = self.open(kind::PARAMETERS);
            self.parameters(parameters, PythonTokenKind::Colon, false)?;
            self.attach(node, parameters, field::PARAMETERS);
        }
        self.expect(PythonTokenKind::Colon)?;
        self.last(node, field::BODY, Self::expression)
    }

    fn yielded(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::YIELD)?;
        if self.at_word(Word::From) {
            self.mark(node, kind::FROM, field::NO)?;
            self.part(node, field::NO, Self::expression)?;
        } else if self.begins_expression() {
            self.part(node, field::NO, Self::values)?;
        }
        Ok(self.close(node))
    }

    /// An expression of operators with at least the precedence `least`.
    fn binary(&mut self, least: u8) -> ParseResult<u32> {
        let left = if self.at_word(Word::Not) && least <= bind::NOT {
            self.prefixed(kind::NOT_OPERATOR, field::NO, |parser| parser.deeper(|parser| parser.binary(bind::NOT)))?
        } else {
            self.unary()?
        };
        self.climb(left, least)
    }

    fn comparison(&mut self, left: u32) -> ParseResult<u32> {
        let node = self.around(kind::COMPARISON_OPERATOR, left, field::NO);
        while self.binds() == Some(bind::COMPARE) {
            match self.advance()?.kind {
                PythonTokenKind::Word(Word::Not) => {
                    self.expect(PythonTokenKind::Word(Word::In))?;
                }
                PythonTokenKind::Word(Word::Is) => {
                    self.eat_word(Word::Not)?;
                }
                _ => {}
            }
            self.part(node, field::NO, |parser| parser.binary(bind::BIT_OR))?;
        }
        Ok(self.close(node))
    }

    fn unary(&mut self) -> ParseResult<u32> {
        if matches!(self.tok.kind, PythonTokenKind::Minus | PythonTokenKind::Plus | PythonTokenKind::Tilde) {
            return self.prefixed(kind::UNARY_OPERATOR, field::NO, |parser| parser.deeper(Self::unary));
        }
        let base = self.awaited()?;
        if !self.at(PythonTokenKind::Power) {
            return Ok(base);
        }
        self.infix(kind::BINARY_OPERATOR, (base, field::LEFT), field::RIGHT, |parser| parser.deeper(Self::unary))
    }

    fn awaited(&mut self) -> ParseResult<u32> {
        if !self.at_word(Word::Await) {
            return self.primary();
        }
        self.prefixed(kind::AWAIT, field::NO, |parser| parser.deeper(Self::awaited))
    }

    /// An atom followed by members, calls and subscripts.
    fn primary(&mut self) -> ParseResult<u32> {
        let mut node = self.atom()?;
        loop {
            node = match self.tok.kind {
                PythonTokenKind::Dot => {
                    self.infix(kind::ATTRIBUTE, (node, field::OBJECT), field::ATTRIBUTE, Self::identifier)?
                }
                PythonTokenKind::Open(b'(') => {
                    let call = self.around(kind::CALL, node, field::FUNCTION);
                    self.part(call, field::ARGUMENTS, Self::arguments)?;
                    self.close(call)
                }
                PythonTokenKind::Open(b'[') => self.subscript(node)?,
                _ => return Ok(node),
            };
        }
    }

    /// `( … )` after a callee. A single generator expression needs no parentheses of its own.
    pub(super) fn arguments(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::ARGUMENT_LIST)?;
        let mut count = 0;
        while !self.at(PythonTokenKind::Close(b')')) {
            let start = self.tok.start;
            let argument = if self.eat(PythonTokenKind::Power)? {
                let splat = self.open_at(kind::DICTIONARY_SPLAT, start);
                self.part(splat, field::NO, Self::expression)?;
                self.close(splat)
            } else {
                self.starred(true)?
            };
            match self.tok.kind {
                PythonTokenKind::Assign if self.tree.kind(argument) == kind::IDENTIFIER => {
                    let keyword = self.begin_around(kind::KEYWORD_ARGUMENT, argument, field::NAME)?;
                    self.part(keyword, field::VALUE, Self::expression)?;
                    self.attach(node, keyword, field::NO);
                }
                PythonTokenKind::Word(Word::For | Word::Async) if count == 0 => {
                    self.tree.set_kind(node, kind::GENERATOR_EXPRESSION);
                    self.add(node, argument, field::BODY);
                    self.clauses(node)?;
                    return self.close_with(PythonTokenKind::Close(b')'), node);
                }
                _ => self.add(node, argument, field::NO),
            }
            count += 1;
            self.comma(PythonTokenKind::Close(b')'))?;
        }
        self.close_after(node)
    }

    fn subscript(&mut self, of: u32) -> ParseResult<u32> {
        let node = self.begin_around(kind::SUBSCRIPT, of, field::VALUE)?;
        self.elements(PythonTokenKind::Close(b']'), |parser| {
            let start = parser.tok.start;
            let mut key = if parser.at(PythonTokenKind::Colon) { None } else { Some(parser.starred(true)?) };
            if parser.at(PythonTokenKind::Colon) {
                let slice = parser.open_at(kind::SLICE, start);
                if let Some(from) = key {
                    parser.add(slice, from, field::NO);
                }
                while parser.eat(PythonTokenKind::Colon)? {
                    if parser.begins_expression() {
                        parser.part(slice, field::NO, Self::expression)?;
                    }
                }
                key = Some(parser.close(slice));
            }
            parser.add_all(node, key, field::SUBSCRIPT);
            Ok(())
        })?;
        Ok(self.close(node))
    }

    fn atom(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            PythonTokenKind::Name => self.leaf(kind::IDENTIFIER),
            PythonTokenKind::Number => {
                let text = self.text(self.tok).as_bytes();
                let hex = text.len() > 1 && text[0] == b'0' && text[1].is_ascii_alphabetic();
                let float = !hex && text.iter().any(|b| matches!(b, b'.' | b'e' | b'E'));
                self.leaf(if float { kind::FLOAT } else { kind::INTEGER })
            }
            PythonTokenKind::Str | PythonTokenKind::Formatted => self.strings(),
            PythonTokenKind::Open(b'(') => self.round(),
            PythonTokenKind::Open(b'[') => self.square(),
            PythonTokenKind::Open(b'{') => self.curly(),
            PythonTokenKind::Ellipsis => self.leaf(kind::ELLIPSIS),
            PythonTokenKind::Word(Word::True) => self.leaf(kind::TRUE),
            PythonTokenKind::Word(Word::False) => self.leaf(kind::FALSE),
            PythonTokenKind::Word(Word::None) => self.leaf(kind::NONE),
            _ => Err(UnsupportedSyntax),
        }
    }

    fn round(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::TUPLE)?;
        if self.at_word(Word::Yield) {
            self.tree.set_kind(node, kind::PARENTHESIZED_EXPRESSION);
            self.part(node, field::NO, Self::yielded)?;
        } else {
            self.contents(node, b')', kind::GENERATOR_EXPRESSION, kind::PARENTHESIZED_EXPRESSION)?;
        }
        self.close_with(PythonTokenKind::Close(b')'), node)
    }

    fn square(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::LIST)?;
        self.contents(node, b']', kind::LIST_COMPREHENSION, kind::LIST)?;
        self.close_with(PythonTokenKind::Close(b']'), node)
    }

    /// The content of brackets: nothing, several elements, a comprehension, or a single element, whose node kind is
    /// `single`.
    fn contents(&mut self, node: u32, end: u8, comprehension: u16, single: u16) -> ParseResult<()> {
        if self.at(PythonTokenKind::Close(end)) {
            return Ok(());
        }
        let first = self.starred(true)?;
        match self.tok.kind {
            PythonTokenKind::Comma => self.items(node, first),
            _ => self.comprehension(node, first, comprehension, single),
        }
    }

    fn curly(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::DICTIONARY)?;
        if !self.at(PythonTokenKind::Close(b'}')) {
            let first = self.pair()?;
            let map = matches!(self.tree.kind(first), kind::PAIR | kind::DICTIONARY_SPLAT);
            if self.at(PythonTokenKind::Comma) {
                if !map {
                    self.tree.set_kind(node, kind::SET);
                }
                self.add(node, first, field::NO);
                while self.eat(PythonTokenKind::Comma)? && !self.at(PythonTokenKind::Close(b'}')) {
                    self.part(node, field::NO, Self::pair)?;
                }
            } else if map {
                self.comprehension(node, first, kind::DICTIONARY_COMPREHENSION, kind::DICTIONARY)?;
            } else {
                self.comprehension(node, first, kind::SET_COMPREHENSION, kind::SET)?;
            }
        }
        self.close_with(PythonTokenKind::Close(b'}'), node)
    }

    /// `key: value`, `**…`, or an element of a set.
    fn pair(&mut self) -> ParseResult<u32> {
        let start = self.tok.start;
        if self.eat(PythonTokenKind::Power)? {
            let splat = self.open_at(kind::DICTIONARY_SPLAT, start);
            return self.last(splat, field::NO, Self::expression);
        }
        let key = self.starred(true)?;
        if !self.at(PythonTokenKind::Colon) {
            return Ok(key);
        }
        self.infix(kind::PAIR, (key, field::KEY), field::VALUE, Self::expression)
    }

    /// The first element and the following ones.
    fn items(&mut self, node: u32, first: u32) -> ParseResult<()> {
        self.add(node, first, field::NO);
        while self.eat(PythonTokenKind::Comma)? && self.begins_expression() {
            self.part(node, field::NO, |parser| parser.starred(true))?;
        }
        Ok(())
    }

    /// Turns a collection of one element into a comprehension if `for` follows.
    fn comprehension(&mut self, node: u32, first: u32, comprehension: u16, otherwise: u16) -> ParseResult<()> {
        if !matches!(self.tok.kind, PythonTokenKind::Word(Word::For | Word::Async)) {
            self.tree.set_kind(node, otherwise);
            self.add(node, first, field::NO);
            return Ok(());
        }
        self.tree.set_kind(node, comprehension);
        self.add(node, first, field::BODY);
        self.clauses(node)
    }

    fn clauses(&mut self, node: u32) -> ParseResult<()> {
        loop {
            let clause = match self.tok.kind {
                PythonTokenKind::Word(Word::For | Word::Async) => {
                    let clause = self.open(kind::FOR_IN_CLAUSE);
                    self.eat_word(Word::Async)?;
                    self.expect(PythonTokenKind::Word(Word::For))?;
                    self.part(clause, field::LEFT, Self::targets)?;
                    self.expect(PythonTokenKind::Word(Word::In))?;
                    self.part(clause, field::RIGHT, |parser| parser.binary(bind::OR))?;
                    clause
                }
                PythonTokenKind::Word(Word::If) => {
                    let clause = self.begin(kind::IF_CLAUSE)?;
                    self.part(clause, field::NO, |parser| parser.binary(bind::OR))?;
                    clause
                }
                _ => return Ok(()),
            };
            self.attach(node, clause, field::NO);
        }
    }

    // --- strings ---

    pub(super) fn strings(&mut self) -> ParseResult<u32> {
        let first = self.string()?;
        if !matches!(self.tok.kind, PythonTokenKind::Str | PythonTokenKind::Formatted) {
            return Ok(first);
        }
        let node = self.around(kind::CONCATENATED_STRING, first, field::NO);
        while matches!(self.tok.kind, PythonTokenKind::Str | PythonTokenKind::Formatted) {
            self.part(node, field::NO, Self::string)?;
        }
        Ok(self.close(node))
    }

    fn string(&mut self) -> ParseResult<u32> {
        if self.at(PythonTokenKind::Str) {
            return self.leaf(kind::STRING);
        }
        let node = self.open(kind::STRING);
        let prefix = self.text(self.tok).bytes().take_while(u8::is_ascii_alphabetic);
        let (mut opening, mut raw) = (self.tok.start, false);
        for letter in prefix {
            opening += 1;
            raw |= letter.eq_ignore_ascii_case(&b'r');
        }
        let quotes = self.lex.quotes(opening);
        let mut at = self.tok.end;
        loop {
            match (self.lex.byte(at), self.lex.byte(at + 1)) {
                _ if self.lex.closes(at, quotes) => break,
                (0, _) => return Err(UnsupportedSyntax),
                (b'\n', _) if quotes.1 == 1 => return Err(UnsupportedSyntax),
                (b'\\', b'N') if !raw && self.lex.byte(at + 2) == b'{' => {
                    while self.lex.byte(at) != b'}' {
                        ensure(!matches!(self.lex.byte(at), 0 | b'\n'))?;
                        at += 1;
                    }
                    at += 1;
                }
                (b'\\', b'{' | b'}') => at += 1,
                (b'\\', _) => at += 2,
                (b'{', b'{') => at += 2,
                (b'{', _) => at = self.interpolation(node, at, quotes.1 == 1)?,
                _ => at += 1,
            }
        }
        let end = at + quotes.1;
        self.lex.jump(end);
        self.tok = self.lex.next()?;
        self.last = end;
        Ok(self.close(node))
    }

    /// `{…}` in a string; returns its end.
    fn interpolation(&mut self, string: u32, start: u32, one_line: bool) -> ParseResult<u32> {
        let node = self.tree.push(kind::INTERPOLATION, flag::NAMED, start, start);
        self.lex.at = start + 1;
        self.lex.open += 1;
        self.tok = self.lex.next()?;
        self.part(node, field::NO, |parser| parser.deeper(Self::values))?;
        let mut at = self.tok.start;
        if self.at(PythonTokenKind::Close(b'}')) {
            at += 1;
        } else {
            ensure(!matches!(self.tok.kind, PythonTokenKind::Open(_) | PythonTokenKind::Close(_)))?;
            self.lex.open -= 1;
            if self.lex.byte(at) == b'=' {
                at += 1;
                while self.lex.byte(at) == b' ' {
                    at += 1;
                }
            }
            if self.lex.byte(at) == b'!' {
                at += 1;
                while self.lex.byte(at).is_ascii_alphabetic() {
                    at += 1;
                }
            }
            if self.lex.byte(at) == b':' {
                at = self.format(at, one_line)?;
            }
            ensure(self.lex.byte(at) == b'}')?;
            at += 1;
        }
        self.tree.set_end(node, at);
        self.add(string, node, field::NO);
        Ok(at)
    }

    /// Skips a format specification, up to the closing brace.
    fn format(&self, mut at: u32, one_line: bool) -> ParseResult<u32> {
        let mut open = 0;
        loop {
            match self.lex.byte(at) {
                b'{' => open += 1,
                b'}' if open == 0 => return Ok(at),
                b'}' => open -= 1,
                b'\n' if one_line => return Err(UnsupportedSyntax),
                0 | b'\'' | b'"' | b'\\' => return Err(UnsupportedSyntax),
                _ => {}
            }
            at += 1;
        }
    }
}

impl Operators for Parser<'_> {
    fn binds(&mut self) -> Option<u8> {
        Some(match self.tok.kind {
            PythonTokenKind::Word(Word::Or) => bind::OR,
            PythonTokenKind::Word(Word::And) => bind::AND,
            PythonTokenKind::Compare | PythonTokenKind::Word(Word::In | Word::Is | Word::Not) => bind::COMPARE,
            PythonTokenKind::Or => bind::BIT_OR,
            PythonTokenKind::Xor => bind::BIT_XOR,
            PythonTokenKind::And => bind::BIT_AND,
            PythonTokenKind::Shift => bind::SHIFT,
            PythonTokenKind::Plus | PythonTokenKind::Minus => bind::SUM,
            PythonTokenKind::Star | PythonTokenKind::Slash | PythonTokenKind::Times | PythonTokenKind::At => {
                bind::PRODUCT
            }
            _ => return None,
        })
    }

    fn combine(&mut self, left: u32, precedence: u8) -> ParseResult<u32> {
        let kind = match precedence {
            bind::COMPARE => return self.comparison(left),
            bind::OR | bind::AND => kind::BOOLEAN_OPERATOR,
            _ => kind::BINARY_OPERATOR,
        };
        let node = self.around(kind, left, field::LEFT);
        match self.tok.kind {
            PythonTokenKind::Plus => self.mark(node, kind::PLUS, field::OPERATOR)?,
            _ => self.skip()?,
        }
        self.last(node, field::RIGHT, |parser| parser.binary(precedence + 1))
    }
}
