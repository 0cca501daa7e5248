//! Java's expressions, by precedence of their operators.

use super::lex::{Tok, Word};
use super::types::primitive;
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure};

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
        if !matches!(self.tree.kind(left), kind::IDENTIFIER | kind::FIELD_ACCESS | kind::ARRAY_ACCESS) {
            return Err(Unsure);
        }
        let node = self.around(kind::ASSIGNMENT_EXPRESSION, left, field::LEFT);
        self.mark(node, sign, field::OPERATOR)?;
        let right = self.expression()?;
        self.add(node, right, field::RIGHT);
        Ok(self.close(node))
    }

    pub(super) fn conditional(&mut self) -> Read<u32> {
        let condition = self.binary(bind::OR)?;
        if !self.at(Tok::Question) {
            return Ok(condition);
        }
        let node = self.around(kind::TERNARY_EXPRESSION, condition, field::CONDITION);
        self.advance()?;
        let yes = self.expression()?;
        self.add(node, yes, field::CONSEQUENCE);
        self.expect(Tok::Colon)?;
        let no = match self.deeper(Self::lambda)? {
            Some(lambda) => lambda,
            None => self.deeper(Self::conditional)?,
        };
        self.add(node, no, field::ALTERNATIVE);
        Ok(self.close(node))
    }

    fn binds(&mut self) -> Option<u8> {
        if self.at(Tok::Greater) {
            self.tok = self.lex.greater(self.tok);
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

    fn binary(&mut self, least: u8) -> Read<u32> {
        let mut left = self.unary()?;
        while let Some(binds) = self.binds().filter(|binds| *binds >= least) {
            if self.at_word(Word::Instanceof) {
                left = self.instance_of(left)?;
                continue;
            }
            let node = self.around(kind::BINARY_EXPRESSION, left, field::LEFT);
            match self.tok.kind {
                Tok::Plus => self.mark(node, kind::SIGN_PLUS, field::OPERATOR)?,
                Tok::And => self.mark(node, kind::SIGN_AND, field::OPERATOR)?,
                Tok::Equal => self.mark(node, kind::SIGN_EQUAL, field::OPERATOR)?,
                _ => {
                    self.advance()?;
                }
            }
            let right = self.binary(binds + 1)?;
            self.add(node, right, field::RIGHT);
            left = self.close(node);
        }
        Ok(left)
    }

    fn instance_of(&mut self, left: u32) -> Read<u32> {
        let node = self.around(kind::INSTANCEOF_EXPRESSION, left, field::LEFT);
        self.advance()?;
        if self.at_word(Word::Final) {
            self.advance()?;
        }
        if self.opens_record_pattern()? {
            let pattern = self.record_pattern()?;
            self.add(node, pattern, field::PATTERN);
            return Ok(self.close(node));
        }
        let ty = self.ty()?;
        self.add(node, ty, field::RIGHT);
        if self.at(Tok::Name) {
            let name = self.leaf(kind::IDENTIFIER)?;
            self.add(node, name, field::NAME);
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
        let node = self.open(kind);
        self.advance()?;
        let of = self.deeper(Self::unary)?;
        self.add(node, of, field::NO);
        Ok(self.close(node))
    }

    fn updated(&mut self) -> Read<u32> {
        let mut value = self.primary()?;
        while self.at(Tok::Step) {
            let node = self.around(kind::UPDATE_EXPRESSION, value, field::NO);
            self.advance()?;
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
        let node = self.open(kind::CAST_EXPRESSION);
        self.advance()?;
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
        loop {
            let ty = self.ty()?;
            self.add(node, ty, field::TYPE);
            if !self.eat(Tok::BitAnd)? {
                return Ok(());
            }
        }
    }

    // --- lambdas ---

    fn lambda(&mut self) -> Read<Option<u32>> {
        let first = self.tok.kind;
        let node = match first {
            Tok::Name if self.peek()?.kind == Tok::Arrow => {
                let node = self.open(kind::LAMBDA_EXPRESSION);
                let parameter = self.leaf(kind::IDENTIFIER)?;
                self.add(node, parameter, field::PARAMETERS);
                node
            }
            Tok::Open(b'(') if self.arrow_behind()? => {
                let node = self.open(kind::LAMBDA_EXPRESSION);
                let parameters = self.lambda_parameters()?;
                self.add(node, parameters, field::PARAMETERS);
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
        let guess = self.guess();
        let mut open = 0;
        let behind = loop {
            match self.tok.kind {
                Tok::Open(b'(') => open += 1,
                Tok::Close(b')') => open -= 1,
                Tok::End | Tok::Semicolon | Tok::Open(b'{') | Tok::Assign => break false,
                _ => {}
            }
            self.advance()?;
            if open == 0 {
                break self.at(Tok::Arrow);
            }
        };
        self.go_back(guess)?;
        Ok(behind)
    }

    fn lambda_parameters(&mut self) -> Read<u32> {
        let guess = self.guess();
        let node = self.open(kind::INFERRED_PARAMETERS);
        self.advance()?;
        while self.at(Tok::Name) {
            let name = self.leaf(kind::IDENTIFIER)?;
            self.add(node, name, field::NO);
            if !self.eat(Tok::Comma)? {
                break;
            }
        }
        let any = self.tree.node(node).kids().named().next().is_some();
        if any && self.at(Tok::Close(b')')) {
            self.advance()?;
            return Ok(self.close(node));
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
                    let node = self.around(kind::CLASS_LITERAL, ty, field::NO);
                    self.advance()?;
                    self.advance()?;
                    return Ok(Some(self.close(node)));
                }
                Tok::Reference => return self.reference(ty).map(Some),
                _ => {}
            }
        }
        if !named {
            return Err(Unsure);
        }
        self.go_back(guess)?;
        Ok(None)
    }

    /// Looks ahead over dotted names: whether `<` or `[]` follows, as in a type.
    fn type_behind(&mut self) -> Read<bool> {
        let guess = self.guess();
        loop {
            self.advance()?;
            if !self.at(Tok::Dot) || self.peek()?.kind != Tok::Name {
                break;
            }
            self.advance()?;
        }
        let may = match self.tok.kind {
            Tok::Less => true,
            Tok::Open(b'[') => self.peek()?.kind == Tok::Close(b']'),
            _ => false,
        };
        self.go_back(guess)?;
        Ok(may)
    }

    fn behind(&mut self, mut node: u32) -> Read<u32> {
        loop {
            node = match self.tok.kind {
                Tok::Dot => self.member(node)?,
                Tok::Open(b'[') => {
                    let access = self.around(kind::ARRAY_ACCESS, node, field::ARRAY);
                    self.advance()?;
                    let index = self.expression()?;
                    self.add(access, index, field::INDEX);
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
                let node = self.around(kind::FIELD_ACCESS, of, field::OBJECT);
                self.advance()?;
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
                let node = self.around(kind::METHOD_INVOCATION, of, field::OBJECT);
                self.advance()?;
                let types = self.type_arguments()?;
                self.add(node, types, field::TYPE_ARGUMENTS);
                let name = self.identifier()?;
                self.add(node, name, field::NAME);
                self.invoked(node)
            }
            Tok::Word(Word::This) => {
                let node = self.around(kind::FIELD_ACCESS, of, field::OBJECT);
                self.advance()?;
                let this = self.leaf(kind::THIS)?;
                self.add(node, this, field::FIELD);
                Ok(self.close(node))
            }
            Tok::Word(Word::Class) => {
                self.as_type(of)?;
                let node = self.around(kind::CLASS_LITERAL, of, field::NO);
                self.advance()?;
                self.advance()?;
                Ok(self.close(node))
            }
            // `A.super.m()`
            Tok::Word(Word::Super) => {
                let node = self.around(kind::METHOD_INVOCATION, of, field::OBJECT);
                self.advance()?;
                let above = self.leaf(kind::SUPER)?;
                self.add(node, above, field::NO);
                self.expect(Tok::Dot)?;
                let name = self.identifier()?;
                self.add(node, name, field::NAME);
                self.invoked(node)
            }
            Tok::Word(Word::New) => {
                let node = self.around(kind::OBJECT_CREATION_EXPRESSION, of, field::NO);
                self.advance()?;
                self.mark(node, kind::WORD_NEW, field::NO)?;
                self.created(node)
            }
            _ => Err(Unsure),
        }
    }

    fn invoked(&mut self, node: u32) -> Read<u32> {
        let arguments = self.arguments()?;
        self.add(node, arguments, field::ARGUMENTS);
        Ok(self.close(node))
    }

    /// Converts dotted names into the name of a type.
    fn as_type(&mut self, mut node: u32) -> Read<()> {
        while self.tree.kind(node) == kind::FIELD_ACCESS {
            self.tree.set_kind(node, kind::SCOPED_TYPE_IDENTIFIER);
            node = self.tree.node(node).kids().field("object").ok_or(Unsure)?.id();
        }
        if self.tree.kind(node) != kind::IDENTIFIER {
            return Err(Unsure);
        }
        self.tree.set_kind(node, kind::TYPE_IDENTIFIER);
        Ok(())
    }

    fn reference(&mut self, of: u32) -> Read<u32> {
        let node = self.around(kind::METHOD_REFERENCE, of, field::NO);
        self.mark(node, kind::SIGN_REFERENCE, field::NO)?;
        if self.at(Tok::Less) {
            let types = self.type_arguments()?;
            self.add(node, types, field::NO);
        }
        match self.tok.kind {
            Tok::Word(Word::New) => self.mark(node, kind::WORD_NEW, field::NO)?,
            _ => {
                let name = self.identifier()?;
                self.add(node, name, field::NO);
            }
        }
        Ok(self.close(node))
    }

    pub(super) fn arguments(&mut self) -> Read<u32> {
        let node = self.open(kind::ARGUMENT_LIST);
        self.expect(Tok::Open(b'('))?;
        while !self.at(Tok::Close(b')')) {
            let argument = self.expression()?;
            self.add(node, argument, field::NO);
            if !self.eat(Tok::Comma)? {
                break;
            }
            if self.at(Tok::Close(b')')) {
                return Err(Unsure);
            }
        }
        self.expect(Tok::Close(b')'))?;
        Ok(self.close(node))
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
        let node = self.open(kind::PARENTHESIZED_EXPRESSION);
        self.expect(Tok::Open(b'('))?;
        let inner = self.expression()?;
        self.add(node, inner, field::NO);
        self.expect(Tok::Close(b')'))?;
        Ok(self.close(node))
    }

    fn creation(&mut self) -> Read<u32> {
        let node = self.open(kind::OBJECT_CREATION_EXPRESSION);
        self.mark(node, kind::WORD_NEW, field::NO)?;
        self.created(node)
    }

    /// The expression after `new`.
    fn created(&mut self, node: u32) -> Read<u32> {
        if self.at(Tok::Less) {
            let types = self.type_arguments()?;
            self.add(node, types, field::TYPE_ARGUMENTS);
        }
        self.annotations(node)?;
        let ty = self.element_type()?;
        self.add(node, ty, field::TYPE);
        if matches!(self.tok.kind, Tok::Open(b'[') | Tok::At) {
            return self.new_array(node);
        }
        let arguments = self.arguments()?;
        self.add(node, arguments, field::ARGUMENTS);
        if self.at(Tok::Open(b'{')) {
            let body = self.deeper(Self::class_body)?;
            self.add(node, body, field::NO);
        }
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
            let dimension = self.open(kind::DIMENSIONS_EXPR);
            self.advance()?;
            let size = self.expression()?;
            self.add(dimension, size, field::NO);
            self.expect(Tok::Close(b']'))?;
            self.close(dimension);
            self.add(node, dimension, field::DIMENSIONS);
        }
        if self.at(Tok::Open(b'{')) {
            let values = self.array_initializer()?;
            self.add(node, values, field::VALUE);
        }
        Ok(self.close(node))
    }

    /// A value, or an array initializer in braces.
    pub(super) fn initializer(&mut self) -> Read<u32> {
        if self.at(Tok::Open(b'{')) { self.deeper(Self::array_initializer) } else { self.expression() }
    }

    fn array_initializer(&mut self) -> Read<u32> {
        let node = self.open(kind::ARRAY_INITIALIZER);
        self.advance()?;
        while !self.at(Tok::Close(b'}')) {
            let value = self.initializer()?;
            self.add(node, value, field::NO);
            if !self.eat(Tok::Comma)? && !self.at(Tok::Close(b'}')) {
                return Err(Unsure);
            }
        }
        self.advance()?;
        Ok(self.close(node))
    }
}
