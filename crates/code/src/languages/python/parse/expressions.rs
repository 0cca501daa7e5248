//! Python's expressions, by precedence of their operators.

use super::lex::{Tok, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Lex, Read, Unsure};
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
    pub(super) fn list(&mut self) -> Read<u32> {
        if self.at_word(Word::Yield) {
            return self.yielded();
        }
        let first = self.starred(false)?;
        if !self.at(Tok::Comma) {
            return Ok(first);
        }
        let node = self.around(kind::EXPRESSION_LIST, first, field::NO);
        while self.eat(Tok::Comma)? {
            if !self.begins_expression() {
                break;
            }
            let next = self.starred(false)?;
            self.add(node, next, field::NO);
        }
        Ok(self.close(node))
    }

    fn begins_expression(&self) -> bool {
        match self.tok.kind {
            Tok::Name | Tok::Number | Tok::Str | Tok::Formatted | Tok::Open(_) | Tok::Ellipsis => true,
            Tok::Minus | Tok::Plus | Tok::Tilde | Tok::Star => true,
            Tok::Word(word) => {
                matches!(word, Word::Not | Word::Lambda | Word::Await | Word::True | Word::False | Word::None)
            }
            _ => false,
        }
    }

    /// The targets of `for` and similar statements.
    pub(super) fn targets(&mut self) -> Read<u32> {
        let first = self.target()?;
        if !self.at(Tok::Comma) {
            return Ok(first);
        }
        let node = self.around(kind::PATTERN_LIST, first, field::NO);
        while self.eat(Tok::Comma)? {
            if !self.begins_expression() {
                break;
            }
            let next = self.target()?;
            self.add(node, next, field::NO);
        }
        Ok(self.close(node))
    }

    pub(super) fn target(&mut self) -> Read<u32> {
        if self.at(Tok::Star) {
            let node = self.open(kind::LIST_SPLAT_PATTERN);
            self.advance()?;
            let inner = self.binary(bind::BIT_OR)?;
            self.add(node, inner, field::NO);
            return Ok(self.close(node));
        }
        self.binary(bind::BIT_OR)
    }

    /// `*…` or an expression; with `named`, also `name := …`.
    pub(super) fn starred(&mut self, named: bool) -> Read<u32> {
        if self.at(Tok::Star) {
            let node = self.open(kind::LIST_SPLAT);
            self.advance()?;
            let inner = self.expression()?;
            self.add(node, inner, field::NO);
            return Ok(self.close(node));
        }
        if named { self.named() } else { self.expression() }
    }

    /// An expression, or `name := …`.
    pub(super) fn named(&mut self) -> Read<u32> {
        let first = self.expression()?;
        if !self.at(Tok::Walrus) {
            return Ok(first);
        }
        if self.tree.kind(first) != kind::IDENTIFIER {
            return Err(Unsure);
        }
        let node = self.around(kind::NAMED_EXPRESSION, first, field::NAME);
        self.advance()?;
        let value = self.expression()?;
        self.add(node, value, field::VALUE);
        Ok(self.close(node))
    }

    pub(super) fn expression(&mut self) -> Read<u32> {
        self.deeper(|parser| {
            if parser.at_word(Word::Lambda) {
                return parser.lambda();
            }
            let first = parser.binary(bind::OR)?;
            if !parser.at_word(Word::If) {
                return Ok(first);
            }
            let node = parser.around(kind::CONDITIONAL_EXPRESSION, first, field::NO);
            parser.advance()?;
            let condition = parser.binary(bind::OR)?;
            parser.add(node, condition, field::NO);
            parser.expect(Tok::Word(Word::Else))?;
            let other = parser.expression()?;
            parser.add(node, other, field::NO);
            Ok(parser.close(node))
        })
    }

    fn lambda(&mut self) -> Read<u32> {
        let node = self.open(kind::LAMBDA);
        self.advance()?;
        if !self.at(Tok::Colon) {
            let parameters = self.open(kind::PARAMETERS);
            self.parameters(parameters, Tok::Colon, false)?;
            self.close(parameters);
            self.add(node, parameters, field::PARAMETERS);
        }
        self.expect(Tok::Colon)?;
        let body = self.expression()?;
        self.add(node, body, field::BODY);
        Ok(self.close(node))
    }

    fn yielded(&mut self) -> Read<u32> {
        let node = self.open(kind::YIELD);
        self.advance()?;
        if self.at_word(Word::From) {
            self.mark(node, kind::FROM, field::NO)?;
            let of = self.expression()?;
            self.add(node, of, field::NO);
        } else if self.begins_expression() {
            let value = self.list()?;
            self.add(node, value, field::NO);
        }
        Ok(self.close(node))
    }

    /// The precedence of the next operator.
    fn binds(&self) -> Option<u8> {
        Some(match self.tok.kind {
            Tok::Word(Word::Or) => bind::OR,
            Tok::Word(Word::And) => bind::AND,
            Tok::Compare | Tok::Word(Word::In | Word::Is | Word::Not) => bind::COMPARE,
            Tok::Or => bind::BIT_OR,
            Tok::Xor => bind::BIT_XOR,
            Tok::And => bind::BIT_AND,
            Tok::Shift => bind::SHIFT,
            Tok::Plus | Tok::Minus => bind::SUM,
            Tok::Star | Tok::Slash | Tok::Times | Tok::At => bind::PRODUCT,
            _ => return None,
        })
    }

    /// An expression of operators with at least the precedence `least`.
    fn binary(&mut self, least: u8) -> Read<u32> {
        let mut left = if self.at_word(Word::Not) && least <= bind::NOT {
            let node = self.open(kind::NOT_OPERATOR);
            self.advance()?;
            let of = self.deeper(|parser| parser.binary(bind::NOT))?;
            self.add(node, of, field::NO);
            self.close(node)
        } else {
            self.unary()?
        };
        while let Some(binds) = self.binds().filter(|binds| *binds >= least) {
            left = match binds {
                bind::COMPARE => self.comparison(left)?,
                bind::OR | bind::AND => {
                    let node = self.around(kind::BOOLEAN_OPERATOR, left, field::LEFT);
                    self.advance()?;
                    let right = self.binary(binds + 1)?;
                    self.add(node, right, field::RIGHT);
                    self.close(node)
                }
                _ => {
                    let node = self.around(kind::BINARY_OPERATOR, left, field::LEFT);
                    let operator = self.advance()?;
                    if operator.kind == Tok::Plus {
                        let plus = self.tree.push(kind::PLUS, 0, operator.start, operator.end);
                        self.add(node, plus, field::OPERATOR);
                    }
                    let right = self.binary(binds + 1)?;
                    self.add(node, right, field::RIGHT);
                    self.close(node)
                }
            };
        }
        Ok(left)
    }

    fn comparison(&mut self, left: u32) -> Read<u32> {
        let node = self.around(kind::COMPARISON_OPERATOR, left, field::NO);
        while self.binds() == Some(bind::COMPARE) {
            match self.advance()?.kind {
                Tok::Word(Word::Not) => {
                    self.expect(Tok::Word(Word::In))?;
                }
                Tok::Word(Word::Is) => {
                    self.eat_word(Word::Not)?;
                }
                _ => {}
            }
            let right = self.binary(bind::BIT_OR)?;
            self.add(node, right, field::NO);
        }
        Ok(self.close(node))
    }

    fn unary(&mut self) -> Read<u32> {
        if matches!(self.tok.kind, Tok::Minus | Tok::Plus | Tok::Tilde) {
            let node = self.open(kind::UNARY_OPERATOR);
            self.advance()?;
            let of = self.deeper(Self::unary)?;
            self.add(node, of, field::NO);
            return Ok(self.close(node));
        }
        let base = self.awaited()?;
        if !self.at(Tok::Power) {
            return Ok(base);
        }
        let node = self.around(kind::BINARY_OPERATOR, base, field::LEFT);
        self.advance()?;
        let exponent = self.deeper(Self::unary)?;
        self.add(node, exponent, field::RIGHT);
        Ok(self.close(node))
    }

    fn awaited(&mut self) -> Read<u32> {
        if !self.at_word(Word::Await) {
            return self.primary();
        }
        let node = self.open(kind::AWAIT);
        self.advance()?;
        let of = self.deeper(Self::awaited)?;
        self.add(node, of, field::NO);
        Ok(self.close(node))
    }

    /// An atom followed by members, calls and subscripts.
    fn primary(&mut self) -> Read<u32> {
        let mut node = self.atom()?;
        loop {
            node = match self.tok.kind {
                Tok::Dot => {
                    let member = self.around(kind::ATTRIBUTE, node, field::OBJECT);
                    self.advance()?;
                    let name = self.identifier()?;
                    self.add(member, name, field::ATTRIBUTE);
                    self.close(member)
                }
                Tok::Open(b'(') => {
                    let call = self.around(kind::CALL, node, field::FUNCTION);
                    let arguments = self.arguments()?;
                    self.add(call, arguments, field::ARGUMENTS);
                    self.close(call)
                }
                Tok::Open(b'[') => self.subscript(node)?,
                _ => return Ok(node),
            };
        }
    }

    /// `( … )` after a callee. A single generator expression needs no parentheses of its own.
    pub(super) fn arguments(&mut self) -> Read<u32> {
        let node = self.open(kind::ARGUMENT_LIST);
        self.advance()?;
        let mut count = 0;
        while !self.at(Tok::Close(b')')) {
            let start = self.tok.start;
            let argument = if self.eat(Tok::Power)? {
                let splat = self.open_at(kind::DICTIONARY_SPLAT, start);
                let of = self.expression()?;
                self.add(splat, of, field::NO);
                self.close(splat)
            } else {
                self.starred(true)?
            };
            match self.tok.kind {
                Tok::Assign if self.tree.kind(argument) == kind::IDENTIFIER => {
                    let keyword = self.around(kind::KEYWORD_ARGUMENT, argument, field::NAME);
                    self.advance()?;
                    let value = self.expression()?;
                    self.add(keyword, value, field::VALUE);
                    self.close(keyword);
                    self.add(node, keyword, field::NO);
                }
                Tok::Word(Word::For | Word::Async) if count == 0 => {
                    self.tree.set_kind(node, kind::GENERATOR_EXPRESSION);
                    self.add(node, argument, field::BODY);
                    self.clauses(node)?;
                    self.expect(Tok::Close(b')'))?;
                    return Ok(self.close(node));
                }
                _ => self.add(node, argument, field::NO),
            }
            count += 1;
            if !self.eat(Tok::Comma)? && !self.at(Tok::Close(b')')) {
                return Err(Unsure);
            }
        }
        self.advance()?;
        Ok(self.close(node))
    }

    fn subscript(&mut self, of: u32) -> Read<u32> {
        let node = self.around(kind::SUBSCRIPT, of, field::VALUE);
        self.advance()?;
        while !self.at(Tok::Close(b']')) {
            let start = self.tok.start;
            let mut key = if self.at(Tok::Colon) { None } else { Some(self.starred(true)?) };
            if self.at(Tok::Colon) {
                let slice = self.open_at(kind::SLICE, start);
                if let Some(from) = key {
                    self.add(slice, from, field::NO);
                }
                while self.eat(Tok::Colon)? {
                    if self.begins_expression() {
                        let part = self.expression()?;
                        self.add(slice, part, field::NO);
                    }
                }
                key = Some(self.close(slice));
            }
            if let Some(key) = key {
                self.add(node, key, field::SUBSCRIPT);
            }
            if !self.eat(Tok::Comma)? && !self.at(Tok::Close(b']')) {
                return Err(Unsure);
            }
        }
        self.advance()?;
        Ok(self.close(node))
    }

    fn atom(&mut self) -> Read<u32> {
        match self.tok.kind {
            Tok::Name => self.leaf(kind::IDENTIFIER),
            Tok::Number => {
                let text = self.text(self.tok).as_bytes();
                let hex = text.len() > 1 && text[0] == b'0' && text[1].is_ascii_alphabetic();
                let float = !hex && text.iter().any(|b| matches!(b, b'.' | b'e' | b'E'));
                self.leaf(if float { kind::FLOAT } else { kind::INTEGER })
            }
            Tok::Str | Tok::Formatted => self.strings(),
            Tok::Open(b'(') => self.round(),
            Tok::Open(b'[') => self.square(),
            Tok::Open(b'{') => self.curly(),
            Tok::Ellipsis => self.leaf(kind::ELLIPSIS),
            Tok::Word(Word::True) => self.leaf(kind::TRUE),
            Tok::Word(Word::False) => self.leaf(kind::FALSE),
            Tok::Word(Word::None) => self.leaf(kind::NONE),
            _ => Err(Unsure),
        }
    }

    fn round(&mut self) -> Read<u32> {
        let node = self.open(kind::TUPLE);
        self.advance()?;
        if self.at_word(Word::Yield) {
            self.tree.set_kind(node, kind::PARENTHESIZED_EXPRESSION);
            let value = self.yielded()?;
            self.add(node, value, field::NO);
        } else {
            self.elements(node, b')', kind::GENERATOR_EXPRESSION, kind::PARENTHESIZED_EXPRESSION)?;
        }
        self.expect(Tok::Close(b')'))?;
        Ok(self.close(node))
    }

    fn square(&mut self) -> Read<u32> {
        let node = self.open(kind::LIST);
        self.advance()?;
        self.elements(node, b']', kind::LIST_COMPREHENSION, kind::LIST)?;
        self.expect(Tok::Close(b']'))?;
        Ok(self.close(node))
    }

    /// The content of brackets: nothing, several elements, a comprehension, or a single element, whose node kind is
    /// `single`.
    fn elements(&mut self, node: u32, end: u8, comprehension: u16, single: u16) -> Read<()> {
        if self.at(Tok::Close(end)) {
            return Ok(());
        }
        let first = self.starred(true)?;
        match self.tok.kind {
            Tok::Comma => self.items(node, first),
            _ => self.comprehension(node, first, comprehension, single),
        }
    }

    fn curly(&mut self) -> Read<u32> {
        let node = self.open(kind::DICTIONARY);
        self.advance()?;
        if !self.at(Tok::Close(b'}')) {
            let first = self.pair()?;
            let map = matches!(self.tree.kind(first), kind::PAIR | kind::DICTIONARY_SPLAT);
            if self.at(Tok::Comma) {
                if !map {
                    self.tree.set_kind(node, kind::SET);
                }
                self.add(node, first, field::NO);
                while self.eat(Tok::Comma)? && !self.at(Tok::Close(b'}')) {
                    let next = self.pair()?;
                    self.add(node, next, field::NO);
                }
            } else if map {
                self.comprehension(node, first, kind::DICTIONARY_COMPREHENSION, kind::DICTIONARY)?;
            } else {
                self.comprehension(node, first, kind::SET_COMPREHENSION, kind::SET)?;
            }
        }
        self.expect(Tok::Close(b'}'))?;
        Ok(self.close(node))
    }

    /// `key: value`, `**…`, or an element of a set.
    fn pair(&mut self) -> Read<u32> {
        let start = self.tok.start;
        if self.eat(Tok::Power)? {
            let splat = self.open_at(kind::DICTIONARY_SPLAT, start);
            let of = self.expression()?;
            self.add(splat, of, field::NO);
            return Ok(self.close(splat));
        }
        let key = self.starred(true)?;
        if !self.at(Tok::Colon) {
            return Ok(key);
        }
        let pair = self.around(kind::PAIR, key, field::KEY);
        self.advance()?;
        let value = self.expression()?;
        self.add(pair, value, field::VALUE);
        Ok(self.close(pair))
    }

    /// The first element and the following ones.
    fn items(&mut self, node: u32, first: u32) -> Read<()> {
        self.add(node, first, field::NO);
        while self.eat(Tok::Comma)? && self.begins_expression() {
            let next = self.starred(true)?;
            self.add(node, next, field::NO);
        }
        Ok(())
    }

    /// Turns a collection of one element into a comprehension if `for` follows.
    fn comprehension(&mut self, node: u32, first: u32, comprehension: u16, otherwise: u16) -> Read<()> {
        if !matches!(self.tok.kind, Tok::Word(Word::For | Word::Async)) {
            self.tree.set_kind(node, otherwise);
            self.add(node, first, field::NO);
            return Ok(());
        }
        self.tree.set_kind(node, comprehension);
        self.add(node, first, field::BODY);
        self.clauses(node)
    }

    fn clauses(&mut self, node: u32) -> Read<()> {
        loop {
            let clause = match self.tok.kind {
                Tok::Word(Word::For | Word::Async) => {
                    let clause = self.open(kind::FOR_IN_CLAUSE);
                    self.eat_word(Word::Async)?;
                    self.expect(Tok::Word(Word::For))?;
                    let left = self.targets()?;
                    self.add(clause, left, field::LEFT);
                    self.expect(Tok::Word(Word::In))?;
                    let right = self.binary(bind::OR)?;
                    self.add(clause, right, field::RIGHT);
                    clause
                }
                Tok::Word(Word::If) => {
                    let clause = self.open(kind::IF_CLAUSE);
                    self.advance()?;
                    let condition = self.binary(bind::OR)?;
                    self.add(clause, condition, field::NO);
                    clause
                }
                _ => return Ok(()),
            };
            self.close(clause);
            self.add(node, clause, field::NO);
        }
    }

    // --- strings ---

    pub(super) fn strings(&mut self) -> Read<u32> {
        let first = self.string()?;
        if !matches!(self.tok.kind, Tok::Str | Tok::Formatted) {
            return Ok(first);
        }
        let node = self.around(kind::CONCATENATED_STRING, first, field::NO);
        while matches!(self.tok.kind, Tok::Str | Tok::Formatted) {
            let next = self.string()?;
            self.add(node, next, field::NO);
        }
        Ok(self.close(node))
    }

    fn string(&mut self) -> Read<u32> {
        if self.at(Tok::Str) {
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
                (0, _) => return Err(Unsure),
                (b'\n', _) if quotes.1 == 1 => return Err(Unsure),
                (b'\\', b'N') if !raw && self.lex.byte(at + 2) == b'{' => {
                    while self.lex.byte(at) != b'}' {
                        if matches!(self.lex.byte(at), 0 | b'\n') {
                            return Err(Unsure);
                        }
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
    fn interpolation(&mut self, string: u32, start: u32, one_line: bool) -> Read<u32> {
        let node = self.tree.push(kind::INTERPOLATION, flag::NAMED, start, start);
        self.lex.at = start + 1;
        self.lex.open += 1;
        self.tok = self.lex.next()?;
        let value = self.deeper(Self::list)?;
        self.add(node, value, field::NO);
        let mut at = self.tok.start;
        if self.at(Tok::Close(b'}')) {
            at += 1;
        } else {
            if matches!(self.tok.kind, Tok::Open(_) | Tok::Close(_)) {
                return Err(Unsure);
            }
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
            if self.lex.byte(at) != b'}' {
                return Err(Unsure);
            }
            at += 1;
        }
        self.tree.set_end(node, at);
        self.add(string, node, field::NO);
        Ok(at)
    }

    /// Skips a format specification, up to the closing brace.
    fn format(&self, mut at: u32, one_line: bool) -> Read<u32> {
        let mut open = 0;
        loop {
            match self.lex.byte(at) {
                b'{' => open += 1,
                b'}' if open == 0 => return Ok(at),
                b'}' => open -= 1,
                b'\n' if one_line => return Err(Unsure),
                0 | b'\'' | b'"' | b'\\' => return Err(Unsure),
                _ => {}
            }
            at += 1;
        }
    }
}
