//! Java's expressions, by precedence of their operators.

use super::lex::{JavaTokenKind, Word};
use super::types::primitive;
use super::{Parser, field, kind};
use crate::lang::descent::{Operators, ParseResult, UnsupportedSyntax, ensure};

mod bind {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const BIT_OR: u8 = 3;
    pub const BIT_XOR: u8 = 4;
    pub const BIT_AND: u8 = 5;
    pub const EQUAL: u8 = 6;
    pub const COMPARE: u8 = 7;
    pub const SHIFT: u8 = 8;
    pub const SUM: u8 = 9;
    pub const PRODUCT: u8 = 10;
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> ParseResult<u32> {
        self.deeper(Self::assignment)
    }

    fn assignment(&mut self) -> ParseResult<u32> {
        if let Some(lambda) = self.lambda()? {
            return Ok(lambda);
        }
        let left = self.conditional()?;
        let sign = match self.tok.kind {
            JavaTokenKind::Assign => kind::SIGN_ASSIGN,
            JavaTokenKind::Augmented => kind::SIGN_AUGMENTED,
            _ => return Ok(left),
        };
        ensure(matches!(self.tree.kind(left), kind::IDENTIFIER | kind::FIELD_ACCESS | kind::ARRAY_ACCESS))?;
        let node = self.around(kind::ASSIGNMENT_EXPRESSION, left, field::LEFT);
        self.mark(node, sign, field::OPERATOR)?;
        self.last(node, field::RIGHT, Self::expression)
    }

    pub(super) fn conditional(&mut self) -> ParseResult<u32> {
        let condition = self.binary(bind::OR)?;
        if !self.at(JavaTokenKind::Question) {
            return Ok(condition);
        }
        let node = self.begin_around(kind::TERNARY_EXPRESSION, condition, field::CONDITION)?;
        self.part(node, field::CONSEQUENCE, Self::expression)?;
        self.expect(JavaTokenKind::Colon)?;
        let no = match self.deeper(Self::lambda)? {
            Some(lambda) => lambda,
            None => self.deeper(Self::conditional)?,
        };
        self.add(node, no, field::ALTERNATIVE);
        Ok(self.close(node))
    }

    fn binary(&mut self, least: u8) -> ParseResult<u32> {
        let left = self.unary()?;
        self.climb(left, least)
    }

    fn instance_of(&mut self, left: u32) -> ParseResult<u32> {
        let node = self.begin_around(kind::INSTANCEOF_EXPRESSION, left, field::LEFT)?;
        self.eat_word(Word::Final)?;
        if self.opens_record_pattern()? {
            return self.last(node, field::PATTERN, Self::record_pattern);
        }
        self.part(node, field::RIGHT, Self::ty)?;
        if self.at(JavaTokenKind::Name) {
            self.token(node, field::NAME, kind::IDENTIFIER)?;
        }
        Ok(self.close(node))
    }

    fn unary(&mut self) -> ParseResult<u32> {
        let kind = match self.tok.kind {
            JavaTokenKind::Bang | JavaTokenKind::Tilde | JavaTokenKind::Plus | JavaTokenKind::Minus => {
                kind::UNARY_EXPRESSION
            }
            JavaTokenKind::Step => kind::UPDATE_EXPRESSION,
            JavaTokenKind::Open(b'(') => match self.cast()? {
                Some(cast) => return Ok(cast),
                None => return self.updated(),
            },
            _ => return self.updated(),
        };
        self.prefixed(kind, field::NO, |parser| parser.deeper(Self::unary))
    }

    fn updated(&mut self) -> ParseResult<u32> {
        let mut value = self.primary()?;
        while self.at(JavaTokenKind::Step) {
            let node = self.begin_around(kind::UPDATE_EXPRESSION, value, field::NO)?;
            value = self.close(node);
        }
        Ok(value)
    }

    /// `(T) x`, if it is one.
    fn cast(&mut self) -> ParseResult<Option<u32>> {
        let first = self.peek()?.kind;
        let simple = matches!(first, JavaTokenKind::Word(word) if primitive(word).is_some());
        if !simple && !matches!(first, JavaTokenKind::Name | JavaTokenKind::At) {
            return Ok(None);
        }
        let guess = self.guess();
        let node = self.begin(kind::CAST_EXPRESSION)?;
        if self.deeper(|parser| parser.cast_types(node)).is_ok() && self.at(JavaTokenKind::Close(b')')) {
            let of_numbers =
                simple && self.tree.node(node).children().field("type").is_some_and(|ty| ty.kind() != "array_type");
            self.advance()?;
            let casts = match self.tok.kind {
                JavaTokenKind::Name
                | JavaTokenKind::Int
                | JavaTokenKind::Float
                | JavaTokenKind::Char
                | JavaTokenKind::Str => true,
                JavaTokenKind::Open(b'(') | JavaTokenKind::Bang | JavaTokenKind::Tilde => true,
                JavaTokenKind::Plus | JavaTokenKind::Minus | JavaTokenKind::Step => of_numbers,
                JavaTokenKind::Word(word) => {
                    primitive(word).is_some()
                        || matches!(
                            word,
                            Word::This | Word::Super | Word::New | Word::True | Word::False | Word::Null | Word::Switch
                        )
                }
                _ => false,
            };
            if casts {
                let value = match self.deeper(Self::lambda)? {
                    Some(lambda) => lambda,
                    None => self.deeper(Self::unary)?,
                };
                self.add(node, value, field::VALUE);
                return Ok(Some(self.close(node)));
            }
        }
        self.back_to(guess)?;
        Ok(None)
    }

    fn cast_types(&mut self, node: u32) -> ParseResult<()> {
        self.chain(node, field::TYPE, JavaTokenKind::BitAnd, Self::ty)
    }

    // --- lambdas ---

    fn lambda(&mut self) -> ParseResult<Option<u32>> {
        let first = self.tok.kind;
        let node = match first {
            JavaTokenKind::Name if self.peek()?.kind == JavaTokenKind::Arrow => {
                let node = self.open(kind::LAMBDA_EXPRESSION);
                self.token(node, field::PARAMETERS, kind::IDENTIFIER)?;
                node
            }
            JavaTokenKind::Open(b'(') if self.arrow_behind()? => {
                let node = self.open(kind::LAMBDA_EXPRESSION);
                self.part(node, field::PARAMETERS, Self::lambda_parameters)?;
                node
            }
            _ => return Ok(None),
        };
        self.expect(JavaTokenKind::Arrow)?;
        let body = if self.at(JavaTokenKind::Open(b'{')) { self.block()? } else { self.expression()? };
        self.add(node, body, field::BODY);
        Ok(Some(self.close(node)))
    }

    /// Whether `->` follows the matching closing bracket. Only tokens that may be part of parameters are skipped.
    fn arrow_behind(&mut self) -> ParseResult<bool> {
        let first = self.peek()?.kind;
        let may = match first {
            JavaTokenKind::Close(b')') | JavaTokenKind::Name | JavaTokenKind::At | JavaTokenKind::Word(Word::Final) => {
                true
            }
            JavaTokenKind::Word(word) => primitive(word).is_some(),
            _ => false,
        };
        if !may {
            return Ok(false);
        }
        self.ahead(|parser| {
            let mut open = 0;
            let behind = loop {
                match parser.tok.kind {
                    JavaTokenKind::Open(b'(') => open += 1,
                    JavaTokenKind::Close(b')') => open -= 1,
                    JavaTokenKind::End
                    | JavaTokenKind::Semicolon
                    | JavaTokenKind::Open(b'{')
                    | JavaTokenKind::Assign => break false,
                    _ => {}
                }
                parser.advance()?;
                if open == 0 {
                    break parser.at(JavaTokenKind::Arrow);
                }
            };
            Ok(behind)
        })
    }

    fn lambda_parameters(&mut self) -> ParseResult<u32> {
        let guess = self.guess();
        let node = self.begin(kind::INFERRED_PARAMETERS)?;
        while self.at(JavaTokenKind::Name) {
            self.token(node, field::NO, kind::IDENTIFIER)?;
            if !self.eat(JavaTokenKind::Comma)? {
                break;
            }
        }
        let any = self.tree.node(node).children().named().next().is_some();
        if any && self.at(JavaTokenKind::Close(b')')) {
            return self.close_after(node);
        }
        self.back_to(guess)?;
        self.parameters()
    }

    // --- members, calls and elements ---

    fn primary(&mut self) -> ParseResult<u32> {
        if let Some(of_type) = self.of_type()? {
            return self.behind(of_type);
        }
        let node = self.atom()?;
        self.behind(node)
    }

    /// `int[].class`, `List<T>::new`: expressions that begin with a type.
    fn of_type(&mut self) -> ParseResult<Option<u32>> {
        match self.tok.kind {
            JavaTokenKind::Name => {}
            JavaTokenKind::Word(word) if primitive(word).is_some() => {}
            _ => return Ok(None),
        }
        let named = self.at(JavaTokenKind::Name);
        if named && !self.type_behind()? {
            return Ok(None);
        }
        let guess = self.guess();
        if let Ok(ty) = self.ty() {
            let next = self.tok.kind;
            match next {
                JavaTokenKind::Dot if self.peek()?.kind == JavaTokenKind::Word(Word::Class) => {
                    let node = self.begin_around(kind::CLASS_LITERAL, ty, field::NO)?;
                    self.advance()?;
                    return Ok(Some(self.close(node)));
                }
                JavaTokenKind::Reference => return self.reference(ty).map(Some),
                _ => {}
            }
        }
        ensure(named)?;
        self.back_to(guess)?;
        Ok(None)
    }

    /// Looks ahead over dotted names: whether `<` or `[]` follows, as in a type.
    fn type_behind(&mut self) -> ParseResult<bool> {
        self.ahead(|parser| {
            loop {
                parser.advance()?;
                if !parser.at(JavaTokenKind::Dot) || parser.peek()?.kind != JavaTokenKind::Name {
                    break;
                }
                parser.advance()?;
            }
            let may = match parser.tok.kind {
                JavaTokenKind::Less => true,
                JavaTokenKind::Open(b'[') => parser.peek()?.kind == JavaTokenKind::Close(b']'),
                _ => false,
            };
            Ok(may)
        })
    }

    fn behind(&mut self, mut node: u32) -> ParseResult<u32> {
        loop {
            node = match self.tok.kind {
                JavaTokenKind::Dot => self.member(node)?,
                JavaTokenKind::Open(b'[') => {
                    let access = self.begin_around(kind::ARRAY_ACCESS, node, field::ARRAY)?;
                    self.part(access, field::INDEX, Self::expression)?;
                    self.expect(JavaTokenKind::Close(b']'))?;
                    self.close(access)
                }
                JavaTokenKind::Reference => self.reference(node)?,
                _ => return Ok(node),
            };
        }
    }

    fn member(&mut self, of: u32) -> ParseResult<u32> {
        let next = self.peek()?.kind;
        match next {
            JavaTokenKind::Name => {
                let node = self.begin_around(kind::FIELD_ACCESS, of, field::OBJECT)?;
                let name = self.leaf(kind::IDENTIFIER)?;
                if self.at(JavaTokenKind::Open(b'(')) {
                    self.tree.set_kind(node, kind::METHOD_INVOCATION);
                    self.add(node, name, field::NAME);
                    return self.invoked(node);
                }
                self.add(node, name, field::FIELD);
                Ok(self.close(node))
            }
            JavaTokenKind::Less => {
                let node = self.begin_around(kind::METHOD_INVOCATION, of, field::OBJECT)?;
                self.part(node, field::TYPE_ARGUMENTS, Self::type_arguments)?;
                self.part(node, field::NAME, Self::identifier)?;
                self.invoked(node)
            }
            JavaTokenKind::Word(Word::This) => {
                let node = self.begin_around(kind::FIELD_ACCESS, of, field::OBJECT)?;
                self.last_token(node, field::FIELD, kind::THIS)
            }
            JavaTokenKind::Word(Word::Class) => {
                self.as_type(of)?;
                let node = self.begin_around(kind::CLASS_LITERAL, of, field::NO)?;
                self.close_after(node)
            }
            // `A.super.m()`
            JavaTokenKind::Word(Word::Super) => {
                let node = self.begin_around(kind::METHOD_INVOCATION, of, field::OBJECT)?;
                self.token(node, field::NO, kind::SUPER)?;
                self.expect(JavaTokenKind::Dot)?;
                self.part(node, field::NAME, Self::identifier)?;
                self.invoked(node)
            }
            JavaTokenKind::Word(Word::New) => {
                let node = self.begin_around(kind::OBJECT_CREATION_EXPRESSION, of, field::NO)?;
                self.mark(node, kind::WORD_NEW, field::NO)?;
                self.created(node)
            }
            _ => Err(UnsupportedSyntax),
        }
    }

    fn invoked(&mut self, node: u32) -> ParseResult<u32> {
        self.last(node, field::ARGUMENTS, Self::arguments)
    }

    /// Converts dotted names into the name of a type.
    fn as_type(&mut self, mut node: u32) -> ParseResult<()> {
        while self.tree.kind(node) == kind::FIELD_ACCESS {
            self.tree.set_kind(node, kind::SCOPED_TYPE_IDENTIFIER);
            node = self.tree.node(node).children().field("object").ok_or(UnsupportedSyntax)?.id();
        }
        ensure(self.tree.kind(node) == kind::IDENTIFIER)?;
        self.tree.set_kind(node, kind::TYPE_IDENTIFIER);
        Ok(())
    }

    fn reference(&mut self, of: u32) -> ParseResult<u32> {
        let node = self.around(kind::METHOD_REFERENCE, of, field::NO);
        self.mark(node, kind::SIGN_REFERENCE, field::NO)?;
        self.part_at(JavaTokenKind::Less, node, field::NO, Self::type_arguments)?;
        match self.tok.kind {
            JavaTokenKind::Word(Word::New) => self.mark(node, kind::WORD_NEW, field::NO)?,
            _ => {
                self.part(node, field::NO, Self::identifier)?;
            }
        }
        Ok(self.close(node))
    }

    pub(super) fn arguments(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(JavaTokenKind::Open(b'('), kind::ARGUMENT_LIST)?;
        while !self.at(JavaTokenKind::Close(b')')) {
            self.part(node, field::NO, Self::expression)?;
            if !self.eat(JavaTokenKind::Comma)? {
                break;
            }
            ensure(!self.at(JavaTokenKind::Close(b')')))?;
        }
        self.close_with(JavaTokenKind::Close(b')'), node)
    }

    fn atom(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            JavaTokenKind::Name => {
                let name = self.leaf(kind::IDENTIFIER)?;
                if !self.at(JavaTokenKind::Open(b'(')) {
                    return Ok(name);
                }
                let node = self.around(kind::METHOD_INVOCATION, name, field::NAME);
                self.invoked(node)
            }
            JavaTokenKind::Int => self.leaf(kind::DECIMAL_INTEGER_LITERAL),
            JavaTokenKind::Float => self.leaf(kind::DECIMAL_FLOATING_POINT_LITERAL),
            JavaTokenKind::Char => self.leaf(kind::CHARACTER_LITERAL),
            JavaTokenKind::Str => self.leaf(kind::STRING_LITERAL),
            JavaTokenKind::Open(b'(') => self.parenthesized(),
            JavaTokenKind::Word(word) => match word {
                Word::This => self.leaf(kind::THIS),
                Word::Super => self.leaf(kind::SUPER),
                Word::True => self.leaf(kind::TRUE),
                Word::False => self.leaf(kind::FALSE),
                Word::Null => self.leaf(kind::NULL_LITERAL),
                Word::New => self.creation(),
                Word::Switch => self.switch(),
                _ => Err(UnsupportedSyntax),
            },
            _ => Err(UnsupportedSyntax),
        }
    }

    pub(super) fn parenthesized(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(JavaTokenKind::Open(b'('), kind::PARENTHESIZED_EXPRESSION)?;
        self.part(node, field::NO, Self::expression)?;
        self.close_with(JavaTokenKind::Close(b')'), node)
    }

    fn creation(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::OBJECT_CREATION_EXPRESSION);
        self.mark(node, kind::WORD_NEW, field::NO)?;
        self.created(node)
    }

    /// The expression after `new`.
    fn created(&mut self, node: u32) -> ParseResult<u32> {
        self.part_at(JavaTokenKind::Less, node, field::TYPE_ARGUMENTS, Self::type_arguments)?;
        self.annotations(node)?;
        self.part(node, field::TYPE, Self::element_type)?;
        if matches!(self.tok.kind, JavaTokenKind::Open(b'[') | JavaTokenKind::At) {
            return self.new_array(node);
        }
        self.part(node, field::ARGUMENTS, Self::arguments)?;
        self.part_at(JavaTokenKind::Open(b'{'), node, field::NO, |parser| parser.deeper(Self::class_body))?;
        Ok(self.close(node))
    }

    fn new_array(&mut self, node: u32) -> ParseResult<u32> {
        self.tree.set_kind(node, kind::ARRAY_CREATION_EXPRESSION);
        loop {
            if let Some(dimensions) = self.dimensions()? {
                self.add(node, dimensions, field::DIMENSIONS);
                break;
            }
            if !self.at(JavaTokenKind::Open(b'[')) {
                break;
            }
            let dimension = self.begin(kind::DIMENSIONS_EXPR)?;
            self.part(dimension, field::NO, Self::expression)?;
            self.expect(JavaTokenKind::Close(b']'))?;
            self.attach(node, dimension, field::DIMENSIONS);
        }
        self.part_at(JavaTokenKind::Open(b'{'), node, field::VALUE, Self::array_initializer)?;
        Ok(self.close(node))
    }

    /// A value, or an array initializer in braces.
    pub(super) fn initializer(&mut self) -> ParseResult<u32> {
        if self.at(JavaTokenKind::Open(b'{')) { self.deeper(Self::array_initializer) } else { self.expression() }
    }

    fn array_initializer(&mut self) -> ParseResult<u32> {
        self.listed(kind::ARRAY_INITIALIZER, field::NO, JavaTokenKind::Close(b'}'), Self::initializer)
    }
}

impl Operators for Parser<'_> {
    fn binds(&mut self) -> Option<u8> {
        if self.at(JavaTokenKind::Greater) {
            self.tok =
                self.lex.greater(self.tok, [JavaTokenKind::Compare, JavaTokenKind::Shift, JavaTokenKind::Augmented]);
        }
        Some(match self.tok.kind {
            JavaTokenKind::Or => bind::OR,
            JavaTokenKind::And => bind::AND,
            JavaTokenKind::BitOr => bind::BIT_OR,
            JavaTokenKind::BitXor => bind::BIT_XOR,
            JavaTokenKind::BitAnd => bind::BIT_AND,
            JavaTokenKind::Equal | JavaTokenKind::Unequal => bind::EQUAL,
            JavaTokenKind::Less
            | JavaTokenKind::Greater
            | JavaTokenKind::Compare
            | JavaTokenKind::Word(Word::Instanceof) => bind::COMPARE,
            JavaTokenKind::Shift => bind::SHIFT,
            JavaTokenKind::Plus | JavaTokenKind::Minus => bind::SUM,
            JavaTokenKind::Star | JavaTokenKind::Times => bind::PRODUCT,
            _ => return None,
        })
    }

    fn combine(&mut self, left: u32, precedence: u8) -> ParseResult<u32> {
        if self.at_word(Word::Instanceof) {
            return self.instance_of(left);
        }
        let node = self.around(kind::BINARY_EXPRESSION, left, field::LEFT);
        match self.tok.kind {
            JavaTokenKind::Plus => self.mark(node, kind::SIGN_PLUS, field::OPERATOR)?,
            JavaTokenKind::And => self.mark(node, kind::SIGN_AND, field::OPERATOR)?,
            JavaTokenKind::Equal => self.mark(node, kind::SIGN_EQUAL, field::OPERATOR)?,
            _ => self.skip()?,
        }
        self.last(node, field::RIGHT, |parser| parser.binary(precedence + 1))
    }
}
