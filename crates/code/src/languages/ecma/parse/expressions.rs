//! Expressions, by precedence of their operators.

use super::lex::{EcmaTokenKind, Word};
use super::{Parser, field, kind};
use crate::convert::to_u32;
use crate::lang::descent::{Lex, Operators, ParseResult, UnsupportedSyntax, ensure};

/// Precedence of operators; a larger number binds tighter.
mod bind {
    pub const NULLISH: u8 = 1;
    pub const OR: u8 = 2;
    pub const AND: u8 = 3;
    pub const BIT_OR: u8 = 4;
    pub const BIT_XOR: u8 = 5;
    pub const BIT_AND: u8 = 6;
    pub const EQUAL: u8 = 7;
    pub const COMPARE: u8 = 8;
    pub const SHIFT: u8 = 9;
    pub const SUM: u8 = 10;
    pub const PRODUCT: u8 = 11;
    pub const POWER: u8 = 12;
}

impl Parser<'_> {
    /// One expression, or several separated by commas.
    pub(super) fn expressions(&mut self) -> ParseResult<u32> {
        let first = self.expression()?;
        if !self.at(EcmaTokenKind::Comma) {
            return Ok(first);
        }
        let node = self.around(kind::SEQUENCE_EXPRESSION, first, field::NO);
        while self.eat(EcmaTokenKind::Comma)? {
            self.part(node, field::NO, Self::expression)?;
        }
        Ok(self.close(node))
    }

    pub(super) fn expression(&mut self) -> ParseResult<u32> {
        self.deeper(Self::assignment)
    }

    fn assignment(&mut self) -> ParseResult<u32> {
        if let Some(arrow) = self.arrow()? {
            return Ok(arrow);
        }
        if self.at_word(Word::Yield) {
            return self.yielded();
        }
        let left = self.conditional()?;
        match self.tok.kind {
            EcmaTokenKind::Assign => {
                self.assignable(left)?;
                self.infix(kind::ASSIGNMENT_EXPRESSION, (left, field::LEFT), field::RIGHT, Self::expression)
            }
            EcmaTokenKind::Augmented | EcmaTokenKind::Otherwise => {
                self.assignable(left)?;
                let node = self.around(kind::AUGMENTED_ASSIGNMENT_EXPRESSION, left, field::LEFT);
                let operator = match self.lex.byte(self.tok.start) {
                    b'|' => kind::SIGN_OR_ASSIGN,
                    b'&' => kind::SIGN_AND_ASSIGN,
                    _ => kind::SIGN_NULLISH_ASSIGN,
                };
                match self.tok.kind {
                    EcmaTokenKind::Otherwise => self.mark(node, operator, field::OPERATOR)?,
                    _ => self.skip()?,
                }
                self.last(node, field::RIGHT, Self::expression)
            }
            _ => Ok(left),
        }
    }

    fn assignable(&self, node: u32) -> ParseResult<()> {
        match self.tree.kind(node) {
            kind::IDENTIFIER
            | kind::MEMBER_EXPRESSION
            | kind::SUBSCRIPT_EXPRESSION
            | kind::OBJECT
            | kind::ARRAY
            | kind::PARENTHESIZED_EXPRESSION
            | kind::NON_NULL_EXPRESSION => Ok(()),
            _ => Err(UnsupportedSyntax),
        }
    }

    fn yielded(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::YIELD_EXPRESSION)?;
        if self.at(EcmaTokenKind::Star) {
            self.mark(node, kind::SIGN_STAR, field::NO)?;
        } else if self.lex.state.fresh || !self.begins_expression() {
            return Ok(self.close(node));
        }
        self.last(node, field::NO, Self::expression)
    }

    /// Whether an expression begins here, such as the operand of `yield`.
    fn begins_expression(&self) -> bool {
        !matches!(
            self.tok.kind,
            EcmaTokenKind::End
                | EcmaTokenKind::Close(_)
                | EcmaTokenKind::Comma
                | EcmaTokenKind::Semicolon
                | EcmaTokenKind::Colon
                | EcmaTokenKind::Word(Word::In | Word::Instanceof)
        )
    }

    fn conditional(&mut self) -> ParseResult<u32> {
        let condition = self.binary(bind::NULLISH)?;
        if !self.at(EcmaTokenKind::Question) {
            return Ok(condition);
        }
        let node = self.begin_around(kind::TERNARY_EXPRESSION, condition, field::CONDITION)?;
        self.part(node, field::CONSEQUENCE, |parser| {
            parser.with_mode(|mode| (mode.no_in, mode.choosing) = (false, true), Self::expression)
        })?;
        self.expect(EcmaTokenKind::Colon)?;
        self.last(node, field::ALTERNATIVE, Self::expression)
    }

    fn at_cast(&self) -> bool {
        matches!(self.text(self.tok), "as" | "satisfies")
    }

    /// An expression of operators with at least the precedence `least`.
    fn binary(&mut self, least: u8) -> ParseResult<u32> {
        let left = self.unary()?;
        self.climb(left, least)
    }

    /// `… as T` and `… satisfies T`.
    fn cast(&mut self, value: u32) -> ParseResult<u32> {
        let is_as = self.at_name("as");
        let kind = if is_as { kind::AS_EXPRESSION } else { kind::SATISFIES_EXPRESSION };
        let node = self.begin_around(kind, value, field::NO)?;
        if is_as && self.at_word(Word::Const) {
            self.mark(node, kind::WORD_CONST, field::NO)?;
        } else {
            self.part(node, field::NO, Self::ty)?;
        }
        Ok(self.close(node))
    }

    fn unary(&mut self) -> ParseResult<u32> {
        let kind = match self.tok.kind {
            EcmaTokenKind::Bang | EcmaTokenKind::Tilde | EcmaTokenKind::Plus | EcmaTokenKind::Minus => {
                kind::UNARY_EXPRESSION
            }
            EcmaTokenKind::Word(Word::Typeof | Word::Void | Word::Delete) => kind::UNARY_EXPRESSION,
            EcmaTokenKind::Word(Word::Await) => kind::AWAIT_EXPRESSION,
            EcmaTokenKind::Step => kind::UPDATE_EXPRESSION,
            EcmaTokenKind::Less if self.state.typed && !self.state.elements => return self.assertion(),
            _ => return self.updated(),
        };
        self.prefixed(kind, field::NO, |parser| parser.deeper(Self::unary))
    }

    /// `<T>…`
    fn assertion(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::TYPE_ASSERTION);
        self.part(node, field::NO, Self::type_arguments)?;
        self.last(node, field::NO, |parser| parser.deeper(Self::unary))
    }

    /// `…++`, or the operand alone.
    fn updated(&mut self) -> ParseResult<u32> {
        let value = self.primary()?;
        if !self.at(EcmaTokenKind::Step) || self.lex.state.fresh {
            return Ok(value);
        }
        let node = self.begin_around(kind::UPDATE_EXPRESSION, value, field::NO)?;
        Ok(self.close(node))
    }

    /// An atom followed by members, calls and subscripts.
    fn primary(&mut self) -> ParseResult<u32> {
        let node = self.atom()?;
        self.behind(node, true)
    }

    /// The base of a class, with type arguments that do not belong to a call.
    pub(super) fn extended(&mut self) -> ParseResult<(u32, Option<u32>)> {
        let mut node = self.deeper(Self::atom)?;
        loop {
            node = match self.tok.kind {
                EcmaTokenKind::Dot => self.member(node)?,
                EcmaTokenKind::Open(b'(') => self.call(node, None)?,
                EcmaTokenKind::Open(b'[') => self.subscript(node)?,
                EcmaTokenKind::Less if self.state.typed => {
                    let types = self.type_arguments()?;
                    if !self.at(EcmaTokenKind::Open(b'(')) {
                        return Ok((node, Some(types)));
                    }
                    self.call(node, Some(types))?
                }
                EcmaTokenKind::Chain | EcmaTokenKind::Template => return Err(UnsupportedSyntax),
                _ => return Ok((node, None)),
            };
        }
    }

    fn behind(&mut self, mut node: u32, calls: bool) -> ParseResult<u32> {
        loop {
            node = match self.tok.kind {
                EcmaTokenKind::Dot => self.member(node)?,
                EcmaTokenKind::Open(b'[') => self.subscript(node)?,
                EcmaTokenKind::Open(b'(') if calls => self.call(node, None)?,
                EcmaTokenKind::Chain if calls => match self.peek()?.kind {
                    EcmaTokenKind::Open(b'[') => {
                        self.advance()?;
                        self.subscript(node)?
                    }
                    EcmaTokenKind::Open(b'(') => {
                        self.advance()?;
                        self.call(node, None)?
                    }
                    EcmaTokenKind::Name | EcmaTokenKind::Word(_) | EcmaTokenKind::Private => self.member(node)?,
                    _ => return Err(UnsupportedSyntax),
                },
                EcmaTokenKind::Template => {
                    ensure(calls)?;
                    let call = self.around(kind::CALL_EXPRESSION, node, field::FUNCTION);
                    let template = self.template()?;
                    self.add(call, template, field::ARGUMENTS);
                    self.close(call)
                }
                EcmaTokenKind::Bang if self.state.typed && !self.lex.state.fresh => {
                    let sure = self.begin_around(kind::NON_NULL_EXPRESSION, node, field::NO)?;
                    self.close(sure)
                }
                EcmaTokenKind::Less if self.state.typed && calls => match self.guess_type_arguments()? {
                    Some(types) if self.at(EcmaTokenKind::Open(b'(')) => self.call(node, Some(types))?,
                    // Type arguments of a template or of nothing: ambiguous.
                    Some(_) => return Err(UnsupportedSyntax),
                    None => return Ok(node),
                },
                _ => return Ok(node),
            };
        }
    }

    /// `.name` or `?.name` after an object.
    pub(super) fn member(&mut self, object: u32) -> ParseResult<u32> {
        let node = self.begin_around(kind::MEMBER_EXPRESSION, object, field::OBJECT)?;
        let name = match self.tok.kind {
            EcmaTokenKind::Name | EcmaTokenKind::Word(_) => self.leaf(kind::PROPERTY_IDENTIFIER)?,
            EcmaTokenKind::Private => self.leaf(kind::PRIVATE_PROPERTY_IDENTIFIER)?,
            _ => return Err(UnsupportedSyntax),
        };
        self.add(node, name, field::PROPERTY);
        Ok(self.close(node))
    }

    fn subscript(&mut self, object: u32) -> ParseResult<u32> {
        let node = self.begin_around(kind::SUBSCRIPT_EXPRESSION, object, field::OBJECT)?;
        self.part(node, field::INDEX, |parser| parser.inside(Self::expressions))?;
        self.close_with(EcmaTokenKind::Close(b']'), node)
    }

    pub(super) fn call(&mut self, function: u32, types: Option<u32>) -> ParseResult<u32> {
        let node = self.around(kind::CALL_EXPRESSION, function, field::FUNCTION);
        self.add_all(node, types, field::TYPE_ARGUMENTS);
        self.last(node, field::ARGUMENTS, Self::arguments)
    }

    pub(super) fn arguments(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(EcmaTokenKind::Open(b'('), kind::ARGUMENTS)?;
        self.inside(|parser| {
            parser.elements(EcmaTokenKind::Close(b')'), |parser| parser.part(node, field::NO, Self::element))
        })?;
        Ok(self.close(node))
    }

    /// An expression, spread or not.
    fn element(&mut self) -> ParseResult<u32> {
        if self.at(EcmaTokenKind::Ellipsis) { self.spread() } else { self.expression() }
    }

    pub(super) fn spread(&mut self) -> ParseResult<u32> {
        self.prefixed(kind::SPREAD_ELEMENT, field::NO, Self::expression)
    }

    fn atom(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            EcmaTokenKind::Name => match self.text(self.tok) {
                "undefined" => self.leaf(kind::UNDEFINED),
                "async" if self.before(EcmaTokenKind::Word(Word::Function))? => {
                    let start = self.advance()?.start;
                    self.function_expression(start, true)
                }
                _ => self.leaf(kind::IDENTIFIER),
            },
            EcmaTokenKind::Number => self.leaf(kind::NUMBER),
            EcmaTokenKind::Str => self.leaf(kind::STRING),
            EcmaTokenKind::Template => self.template(),
            EcmaTokenKind::Open(b'(') => self.parenthesized(),
            EcmaTokenKind::Open(b'[') => self.array(),
            EcmaTokenKind::Open(b'{') => self.object(),
            EcmaTokenKind::Slash | EcmaTokenKind::Augmented => self.regex(),
            EcmaTokenKind::Less if self.state.elements => self.jsx(),
            EcmaTokenKind::Word(word) => match word {
                Word::This => self.leaf(kind::THIS),
                Word::Super => self.leaf(kind::SUPER),
                Word::True => self.leaf(kind::TRUE),
                Word::False => self.leaf(kind::FALSE),
                Word::Null => self.leaf(kind::NULL),
                Word::Function => self.function_expression(self.tok.start, false),
                Word::Class => self.class_expression(),
                Word::New => self.new_expression(),
                Word::Import => self.import_expression(),
                _ => Err(UnsupportedSyntax),
            },
            _ => Err(UnsupportedSyntax),
        }
    }

    fn regex(&mut self) -> ParseResult<u32> {
        let start = self.tok.start;
        ensure(self.lex.byte(start) == b'/')?;
        let end = self.lex.regex_end(start)?;
        let node = self.word_node(kind::REGEX, true, start, end);
        self.go_on(end)?;
        Ok(node)
    }

    /// Continues after text that was read without tokens.
    pub(super) fn go_on(&mut self, end: u32) -> ParseResult<()> {
        self.lex.jump(end);
        self.tok = self.lex.next()?;
        self.last = end;
        Ok(())
    }

    pub(super) fn parenthesized(&mut self) -> ParseResult<u32> {
        self.enclosed(kind::PARENTHESIZED_EXPRESSION, field::NO, EcmaTokenKind::Close(b')'), |parser| {
            parser.inside(Self::expressions)
        })
    }

    fn array(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::ARRAY)?;
        self.inside(|parser| {
            loop {
                match parser.tok.kind {
                    EcmaTokenKind::Close(b']') => return parser.advance(),
                    // Commas are recorded, because they count the positions in a destructuring assignment.
                    EcmaTokenKind::Comma => {
                        parser.mark(node, kind::SIGN_COMMA, field::NO)?;
                        continue;
                    }
                    _ => {}
                }
                parser.part(node, field::NO, Self::element)?;
                ensure(matches!(parser.tok.kind, EcmaTokenKind::Comma | EcmaTokenKind::Close(b']')))?;
            }
        })?;
        Ok(self.close(node))
    }

    fn new_expression(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::NEW_EXPRESSION)?;
        if self.eat(EcmaTokenKind::Dot)? {
            self.tree.set_kind(node, kind::META_PROPERTY);
            return if self.eat_name("target")? { Ok(self.close(node)) } else { Err(UnsupportedSyntax) };
        }
        let class = self.deeper(Self::atom)?;
        self.part(node, field::CONSTRUCTOR, |parser| parser.behind(class, false))?;
        if self.at(EcmaTokenKind::Less)
            && self.state.typed
            && let Some(types) = self.guess_type_arguments()?
        {
            self.add(node, types, field::TYPE_ARGUMENTS);
        }
        self.part_at(EcmaTokenKind::Open(b'('), node, field::ARGUMENTS, Self::arguments)?;
        Ok(self.close(node))
    }

    /// `import(…)` and `import.meta`.
    pub(super) fn import_expression(&mut self) -> ParseResult<u32> {
        let import = self.leaf(kind::IMPORT)?;
        if self.at(EcmaTokenKind::Open(b'(')) {
            return self.call(import, None);
        }
        self.expect(EcmaTokenKind::Dot)?;
        self.tree.set_kind(import, kind::META_PROPERTY);
        if self.eat_name("meta")? { Ok(self.close(import)) } else { Err(UnsupportedSyntax) }
    }

    // --- templates ---

    fn template(&mut self) -> ParseResult<u32> {
        self.template_of(kind::TEMPLATE_STRING, kind::TEMPLATE_SUBSTITUTION, Self::expressions)
    }

    /// Strings with substitutions.
    pub(super) fn template_of(
        &mut self,
        kind: u16,
        part: u16,
        read: impl Fn(&mut Self) -> ParseResult<u32>,
    ) -> ParseResult<u32> {
        let node = self.open(kind);
        let mut at = self.tok.end;
        loop {
            at += to_u32(memchr::memchr3(b'`', b'\\', b'$', self.lex.rest(at)).ok_or(UnsupportedSyntax)?);
            match (self.lex.byte(at), self.lex.byte(at + 1)) {
                (b'`', _) => break,
                (b'\\', _) => at += 2,
                (_, b'{') => {
                    let between = self.open_at(part, at);
                    self.lex.jump(at + 2);
                    self.tok = self.lex.next()?;
                    self.part(between, field::NO, |parser| parser.deeper(|parser| parser.inside(&read)))?;
                    self.require(EcmaTokenKind::Close(b'}'))?;
                    at = self.tok.end;
                    self.tree.set_end(between, at);
                    self.add(node, between, field::NO);
                }
                _ => at += 1,
            }
        }
        self.go_on(at + 1)?;
        Ok(self.close(node))
    }
}

impl Operators for Parser<'_> {
    fn binds(&mut self) -> Option<u8> {
        if self.at(EcmaTokenKind::Greater) {
            self.tok =
                self.lex.greater(self.tok, [EcmaTokenKind::Compare, EcmaTokenKind::Shift, EcmaTokenKind::Augmented]);
        }
        Some(match self.tok.kind {
            EcmaTokenKind::Nullish => bind::NULLISH,
            EcmaTokenKind::Or => bind::OR,
            EcmaTokenKind::And => bind::AND,
            EcmaTokenKind::BitOr => bind::BIT_OR,
            EcmaTokenKind::BitXor => bind::BIT_XOR,
            EcmaTokenKind::BitAnd => bind::BIT_AND,
            EcmaTokenKind::Equal => bind::EQUAL,
            EcmaTokenKind::Less
            | EcmaTokenKind::Greater
            | EcmaTokenKind::Compare
            | EcmaTokenKind::Word(Word::Instanceof) => bind::COMPARE,
            EcmaTokenKind::Word(Word::In) if !self.state.no_in => bind::COMPARE,
            EcmaTokenKind::Name if self.state.typed && !self.lex.state.fresh && self.at_cast() => bind::COMPARE,
            EcmaTokenKind::Shift => bind::SHIFT,
            EcmaTokenKind::Plus | EcmaTokenKind::Minus => bind::SUM,
            EcmaTokenKind::Star | EcmaTokenKind::Slash | EcmaTokenKind::Percent => bind::PRODUCT,
            EcmaTokenKind::Power => bind::POWER,
            _ => return None,
        })
    }

    fn combine(&mut self, left: u32, precedence: u8) -> ParseResult<u32> {
        if self.at(EcmaTokenKind::Name) {
            return self.cast(left);
        }
        let node = self.around(kind::BINARY_EXPRESSION, left, field::LEFT);
        match self.tok.kind {
            EcmaTokenKind::Or => self.mark(node, kind::SIGN_OR, field::OPERATOR)?,
            EcmaTokenKind::And => self.mark(node, kind::SIGN_AND, field::OPERATOR)?,
            EcmaTokenKind::Nullish => self.mark(node, kind::SIGN_NULLISH, field::OPERATOR)?,
            _ => self.skip()?,
        }
        self.last(node, field::RIGHT, |parser| match precedence {
            bind::POWER => parser.deeper(|parser| parser.binary(bind::POWER)),
            _ => parser.binary(precedence + 1),
        })
    }
}
