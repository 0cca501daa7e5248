//! Java's expressions, by precedence of their operators.

use super::lex::{Tok, Word};
use super::types::primitive;
use super::{Parser, field, kind};
use crate::lang::descent::{Operators, Read, Unsure, sure};

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
    pub(super) fn expression(&mut self) -> Read<u32> {
        self.deeper(Self::assignment)
    }

    fn assignment(&mut self) -> Read<u32> {
        if let Some(lambda) = self.lambda()? {
            return Ok(lambda);
        }
        let left = self.conditional()?;
        let sign = match self.tok.kind {
            Tok::Assign => kind::SIGN_ASSIGN,
            Tok::Augmented => kind::SIGN_AUGMENTED,
            _ => return Ok(left),
        };
        sure(matches!(self.tree.kind(left), kind::IDENTIFIER | kind::FIELD_ACCESS | kind::ARRAY_ACCESS))?;
        let node = self.around(kind::ASSIGNMENT_EXPRESSION, left, field::LEFT);
        self.mark(node, sign, field::OPERATOR)?;
        self.last(node, field::RIGHT, Self::expression)
    }

    pub(super) fn conditional(&mut self) -> Read<u32> {
        let condition = self.binary(bind::OR)?;
        if !self.at(Tok::Question) {
            return Ok(condition);
        }
        let node = self.begin_around(kind::TERNARY_EXPRESSION, condition, field::CONDITION)?;
        self.part(node, field::CONSEQUENCE, Self::expression)?;
        self.expect(Tok::Colon)?;
        let no = match self.deeper(Self::lambda)? {
            Some(lambda) => lambda,
            None => self.deeper(Self::conditional)?,
        };
        self.add(node, no, field::ALTERNATIVE);
        Ok(self.close(node))
    }

    fn binary(&mut self, least: u8) -> Read<u32> {
        let left = self.unary()?;
        self.climb(left, least)
    }

    fn instance_of(&mut self, left: u32) -> Read<u32> {
        let node = self.begin_around(kind::INSTANCEOF_EXPRESSION, left, field::LEFT)?;
        self.eat_word(Word::Final)?;
        if self.opens_record_pattern()? {
            return self.last(node, field::PATTERN, Self::record_pattern);
        }
        self.part(node, field::RIGHT, Self::ty)?;
        if self.at(Tok::Name) {
            self.token(node, field::NAME, kind::IDENTIFIER)?;
        }
        Ok(self.close(node))
    }

    fn unary(&mut self) -> Read<u32> {
        let kind = match self.tok.kind {
            Tok::Bang | Tok::Tilde | Tok::Plus | Tok::Minus => kind::UNARY_EXPRESSION,
            Tok::Step => kind::UPDATE_EXPRESSION,
            Tok::Open(b'(') => match self.cast()? {
                Some(cast) => return Ok(cast),
                None => return self.updated(),
            },
            _ => return self.updated(),
        };
        self.prefixed(kind, field::NO, |parser| parser.deeper(Self::unary))
    }

    fn updated(&mut self) -> Read<u32> {
        let mut value = self.primary()?;
        while self.at(Tok::Step) {
            let node = self.begin_around(kind::UPDATE_EXPRESSION, value, field::NO)?;
            value = self.close(node);
        }
        Ok(value)
    }

    /// `(T) x`, if it is one.
    fn cast(&mut self) -> Read<Option<u32>> {
        let first = self.peek()?.kind;
        let simple = matches!(first, Tok::Word(word) if primitive(word).is_some());
        if !simple && !matches!(first, Tok::Name | Tok::At) {
            return Ok(None);
        }
        let guess = self.guess();
        let node = self.begin(kind::CAST_EXPRESSION)?;
        if self.deeper(|parser| parser.cast_types(node)).is_ok() && self.at(Tok::Close(b')')) {
            let of_numbers =
                simple && self.tree.node(node).kids().field("type").is_some_and(|ty| ty.kind() != "array_type");
            self.advance()?;
            let casts = match self.tok.kind {
                Tok::Name | Tok::Int | Tok::Float | Tok::Char | Tok::Str => true,
                Tok::Open(b'(') | Tok::Bang | Tok::Tilde => true,
                Tok::Plus | Tok::Minus | Tok::Step => of_numbers,
                Tok::Word(word) => {
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
        self.go_back(guess)?;
        Ok(None)
    }

    fn cast_types(&mut self, node: u32) -> Read<()> {
        self.chain(node, field::TYPE, Tok::BitAnd, Self::ty)
    }

    // --- lambdas ---

    fn lambda(&mut self) -> Read<Option<u32>> {
        let first = self.tok.kind;
        let node = match first {
            Tok::Name if self.peek()?.kind == Tok::Arrow => {
                let node = self.open(kind::LAMBDA_EXPRESSION);
                self.token(node, field::PARAMETERS, kind::IDENTIFIER)?;
                node
            }
            Tok::Open(b'(') if self.arrow_behind()? => {
                let node = self.open(kind::LAMBDA_EXPRESSION);
                self.part(node, field::PARAMETERS, Self::lambda_parameters)?;
                node
            }
            _ => return Ok(None),
        };
        self.expect(Tok::Arrow)?;
        let body = if self.at(Tok::Open(b'{')) { self.block()? } else { self.expression()? };
        self.add(node, body, field::BODY);
        Ok(Some(self.close(node)))
    }

    /// Whether `->` follows the matching closing bracket. Only tokens that may be part of parameters are skipped.
    fn arrow_behind(&mut self) -> Read<bool> {
        let first = self.peek()?.kind;
        let may = match first {
            Tok::Close(b')') | Tok::Name | Tok::At | Tok::Word(Word::Final) => true,
            Tok::Word(word) => primitive(word).is_some(),
            _ => false,
        };
        if !may {
            return Ok(false);
        }
        self.ahead(|parser| {
            let mut open = 0;
            let behind = loop {
                match parser.tok.kind {
                    Tok::Open(b'(') => open += 1,
                    Tok::Close(b')') => open -= 1,
                    Tok::End | Tok::Semicolon | Tok::Open(b'{') | Tok::Assign => break false,
                    _ => {}
                }
                parser.advance()?;
                if open == 0 {
                    break parser.at(Tok::Arrow);
                }
            };
            Ok(behind)
        })
    }

    fn lambda_parameters(&mut self) -> Read<u32> {
        let guess = self.guess();
        let node = self.begin(kind::INFERRED_PARAMETERS)?;
        while self.at(Tok::Name) {
            self.token(node, field::NO, kind::IDENTIFIER)?;
            if !self.eat(Tok::Comma)? {
                break;
            }
        }
        let any = self.tree.node(node).kids().named().next().is_some();
        if any && self.at(Tok::Close(b')')) {
            return self.close_after(node);
        }
        self.go_back(guess)?;
        self.parameters()
    }

    // --- members, calls and elements ---

    fn primary(&mut self) -> Read<u32> {
        if let Some(of_type) = self.of_type()? {
            return self.behind(of_type);
        }
        let node = self.atom()?;
        self.behind(node)
    }

    /// `int[].class`, `List<T>::new`: expressions that begin with a type.
    fn of_type(&mut self) -> Read<Option<u32>> {
        match self.tok.kind {
            Tok::Name => {}
            Tok::Word(word) if primitive(word).is_some() => {}
            _ => return Ok(None),
        }
        let named = self.at(Tok::Name);
        if named && !self.type_behind()? {
            return Ok(None);
        }
        let guess = self.guess();
        if let Ok(ty) = self.ty() {
            let next = self.tok.kind;
            match next {
                Tok::Dot if self.peek()?.kind == Tok::Word(Word::Class) => {
                    let node = self.begin_around(kind::CLASS_LITERAL, ty, field::NO)?;
                    self.advance()?;
                    return Ok(Some(self.close(node)));
                }
                Tok::Reference => return self.reference(ty).map(Some),
                _ => {}
            }
        }
        sure(named)?;
        self.go_back(guess)?;
        Ok(None)
    }

    /// Looks ahead over dotted names: whether `<` or `[]` follows, as in a type.
    fn type_behind(&mut self) -> Read<bool> {
        self.ahead(|parser| {
            loop {
                parser.advance()?;
                if !parser.at(Tok::Dot) || parser.peek()?.kind != Tok::Name {
                    break;
                }
                parser.advance()?;
            }
            let may = match parser.tok.kind {
                Tok::Less => true,
                Tok::Open(b'[') => parser.peek()?.kind == Tok::Close(b']'),
                _ => false,
            };
            Ok(may)
        })
    }

    fn behind(&mut self, mut node: u32) -> Read<u32> {
        loop {
            node = match self.tok.kind {
                Tok::Dot => self.member(node)?,
                Tok::Open(b'[') => {
                    let access = self.begin_around(kind::ARRAY_ACCESS, node, field::ARRAY)?;
                    self.part(access, field::INDEX, Self::expression)?;
                    self.expect(Tok::Close(b']'))?;
                    self.close(access)
                }
                Tok::Reference => self.reference(node)?,
                _ => return Ok(node),
            };
        }
    }

    fn member(&mut self, of: u32) -> Read<u32> {
        let next = self.peek()?.kind;
        match next {
            Tok::Name => {
                let node = self.begin_around(kind::FIELD_ACCESS, of, field::OBJECT)?;
                let name = self.leaf(kind::IDENTIFIER)?;
                if self.at(Tok::Open(b'(')) {
                    self.tree.set_kind(node, kind::METHOD_INVOCATION);
                    self.add(node, name, field::NAME);
                    return self.invoked(node);
                }
                self.add(node, name, field::FIELD);
                Ok(self.close(node))
            }
            Tok::Less => {
                let node = self.begin_around(kind::METHOD_INVOCATION, of, field::OBJECT)?;
                self.part(node, field::TYPE_ARGUMENTS, Self::type_arguments)?;
                self.part(node, field::NAME, Self::identifier)?;
                self.invoked(node)
            }
            Tok::Word(Word::This) => {
                let node = self.begin_around(kind::FIELD_ACCESS, of, field::OBJECT)?;
                self.last_token(node, field::FIELD, kind::THIS)
            }
            Tok::Word(Word::Class) => {
                self.as_type(of)?;
                let node = self.begin_around(kind::CLASS_LITERAL, of, field::NO)?;
                self.close_after(node)
            }
            // `A.super.m()`
            Tok::Word(Word::Super) => {
                let node = self.begin_around(kind::METHOD_INVOCATION, of, field::OBJECT)?;
                self.token(node, field::NO, kind::SUPER)?;
                self.expect(Tok::Dot)?;
                self.part(node, field::NAME, Self::identifier)?;
                self.invoked(node)
            }
            Tok::Word(Word::New) => {
                let node = self.begin_around(kind::OBJECT_CREATION_EXPRESSION, of, field::NO)?;
                self.mark(node, kind::WORD_NEW, field::NO)?;
                self.created(node)
            }
            _ => Err(Unsure),
        }
    }

    fn invoked(&mut self, node: u32) -> Read<u32> {
        self.last(node, field::ARGUMENTS, Self::arguments)
    }

    /// Converts dotted names into the name of a type.
    fn as_type(&mut self, mut node: u32) -> Read<()> {
        while self.tree.kind(node) == kind::FIELD_ACCESS {
            self.tree.set_kind(node, kind::SCOPED_TYPE_IDENTIFIER);
            node = self.tree.node(node).kids().field("object").ok_or(Unsure)?.id();
        }
        sure(self.tree.kind(node) == kind::IDENTIFIER)?;
        self.tree.set_kind(node, kind::TYPE_IDENTIFIER);
        Ok(())
    }

    fn reference(&mut self, of: u32) -> Read<u32> {
        let node = self.around(kind::METHOD_REFERENCE, of, field::NO);
        self.mark(node, kind::SIGN_REFERENCE, field::NO)?;
        self.part_at(Tok::Less, node, field::NO, Self::type_arguments)?;
        match self.tok.kind {
            Tok::Word(Word::New) => self.mark(node, kind::WORD_NEW, field::NO)?,
            _ => {
                self.part(node, field::NO, Self::identifier)?;
            }
        }
        Ok(self.close(node))
    }

    pub(super) fn arguments(&mut self) -> Read<u32> {
        let node = self.begin_with(Tok::Open(b'('), kind::ARGUMENT_LIST)?;
        while !self.at(Tok::Close(b')')) {
            self.part(node, field::NO, Self::expression)?;
            if !self.eat(Tok::Comma)? {
                break;
            }
            sure(!self.at(Tok::Close(b')')))?;
        }
        self.close_with(Tok::Close(b')'), node)
    }

    fn atom(&mut self) -> Read<u32> {
        match self.tok.kind {
            Tok::Name => {
                let name = self.leaf(kind::IDENTIFIER)?;
                if !self.at(Tok::Open(b'(')) {
                    return Ok(name);
                }
                let node = self.around(kind::METHOD_INVOCATION, name, field::NAME);
                self.invoked(node)
            }
            Tok::Int => self.leaf(kind::DECIMAL_INTEGER_LITERAL),
            Tok::Float => self.leaf(kind::DECIMAL_FLOATING_POINT_LITERAL),
            Tok::Char => self.leaf(kind::CHARACTER_LITERAL),
            Tok::Str => self.leaf(kind::STRING_LITERAL),
            Tok::Open(b'(') => self.parenthesized(),
            Tok::Word(word) => match word {
                Word::This => self.leaf(kind::THIS),
                Word::Super => self.leaf(kind::SUPER),
                Word::True => self.leaf(kind::TRUE),
                Word::False => self.leaf(kind::FALSE),
                Word::Null => self.leaf(kind::NULL_LITERAL),
                Word::New => self.creation(),
                Word::Switch => self.switch(),
                _ => Err(Unsure),
            },
            _ => Err(Unsure),
        }
    }

    pub(super) fn parenthesized(&mut self) -> Read<u32> {
        let node = self.begin_with(Tok::Open(b'('), kind::PARENTHESIZED_EXPRESSION)?;
        self.part(node, field::NO, Self::expression)?;
        self.close_with(Tok::Close(b')'), node)
    }

    fn creation(&mut self) -> Read<u32> {
        let node = self.open(kind::OBJECT_CREATION_EXPRESSION);
        self.mark(node, kind::WORD_NEW, field::NO)?;
        self.created(node)
    }

    /// The expression after `new`.
    fn created(&mut self, node: u32) -> Read<u32> {
        self.part_at(Tok::Less, node, field::TYPE_ARGUMENTS, Self::type_arguments)?;
        self.annotations(node)?;
        self.part(node, field::TYPE, Self::element_type)?;
        if matches!(self.tok.kind, Tok::Open(b'[') | Tok::At) {
            return self.new_array(node);
        }
        self.part(node, field::ARGUMENTS, Self::arguments)?;
        self.part_at(Tok::Open(b'{'), node, field::NO, |parser| parser.deeper(Self::class_body))?;
        Ok(self.close(node))
    }

    fn new_array(&mut self, node: u32) -> Read<u32> {
        self.tree.set_kind(node, kind::ARRAY_CREATION_EXPRESSION);
        loop {
            if let Some(dimensions) = self.dimensions()? {
                self.add(node, dimensions, field::DIMENSIONS);
                break;
            }
            if !self.at(Tok::Open(b'[')) {
                break;
            }
            let dimension = self.begin(kind::DIMENSIONS_EXPR)?;
            self.part(dimension, field::NO, Self::expression)?;
            self.expect(Tok::Close(b']'))?;
            self.attach(node, dimension, field::DIMENSIONS);
        }
        self.part_at(Tok::Open(b'{'), node, field::VALUE, Self::array_initializer)?;
        Ok(self.close(node))
    }

    /// A value, or an array initializer in braces.
    pub(super) fn initializer(&mut self) -> Read<u32> {
        if self.at(Tok::Open(b'{')) { self.deeper(Self::array_initializer) } else { self.expression() }
    }

    fn array_initializer(&mut self) -> Read<u32> {
        self.listed(kind::ARRAY_INITIALIZER, field::NO, Tok::Close(b'}'), Self::initializer)
    }
}

impl Operators for Parser<'_> {
    fn binds(&mut self) -> Option<u8> {
        if self.at(Tok::Greater) {
            self.tok = self.lex.greater(self.tok, [Tok::Compare, Tok::Shift, Tok::Augmented]);
        }
        Some(match self.tok.kind {
            Tok::Or => bind::OR,
            Tok::And => bind::AND,
            Tok::BitOr => bind::BIT_OR,
            Tok::BitXor => bind::BIT_XOR,
            Tok::BitAnd => bind::BIT_AND,
            Tok::Equal | Tok::Unequal => bind::EQUAL,
            Tok::Less | Tok::Greater | Tok::Compare | Tok::Word(Word::Instanceof) => bind::COMPARE,
            Tok::Shift => bind::SHIFT,
            Tok::Plus | Tok::Minus => bind::SUM,
            Tok::Star | Tok::Times => bind::PRODUCT,
            _ => return None,
        })
    }

    fn combine(&mut self, left: u32, precedence: u8) -> Read<u32> {
        if self.at_word(Word::Instanceof) {
            return self.instance_of(left);
        }
        let node = self.around(kind::BINARY_EXPRESSION, left, field::LEFT);
        match self.tok.kind {
            Tok::Plus => self.mark(node, kind::SIGN_PLUS, field::OPERATOR)?,
            Tok::And => self.mark(node, kind::SIGN_AND, field::OPERATOR)?,
            Tok::Equal => self.mark(node, kind::SIGN_EQUAL, field::OPERATOR)?,
            _ => self.skip()?,
        }
        self.last(node, field::RIGHT, |parser| parser.binary(precedence + 1))
    }
}
