//! Go's expressions, by precedence of their operators.

use super::lex::{GoTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Operators, ParseResult, UnsupportedSyntax, ensure};

impl Parser<'_> {
    /// Expressions separated by commas, as a list.
    pub(super) fn expressions(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::EXPRESSION_LIST);
        self.chain(node, field::NO, GoTokenKind::Comma, Self::expression)?;
        Ok(self.close(node))
    }

    pub(super) fn expression(&mut self) -> ParseResult<u32> {
        let value = self.value_or_type()?;
        if self.is_type(value) { Err(UnsupportedSyntax) } else { Ok(value) }
    }

    /// An expression, or a type where one is allowed.
    fn value_or_type(&mut self) -> ParseResult<u32> {
        self.deeper(|parser| parser.binary(1))
    }

    fn is_type(&self, node: u32) -> bool {
        matches!(
            self.tree.kind(node),
            kind::SLICE_TYPE
                | kind::ARRAY_TYPE
                | kind::MAP_TYPE
                | kind::CHANNEL_TYPE
                | kind::FUNCTION_TYPE
                | kind::STRUCT_TYPE
                | kind::INTERFACE_TYPE
                | kind::PARENTHESIZED_TYPE
                | kind::POINTER_TYPE
        )
    }

    fn binary(&mut self, least: u8) -> ParseResult<u32> {
        let left = self.unary()?;
        self.climb(left, least)
    }

    fn unary(&mut self) -> ParseResult<u32> {
        let first = self.tok.kind;
        let operator = match first {
            GoTokenKind::BitAnd => Some(kind::SIGN_ADDRESS),
            GoTokenKind::Star => Some(kind::SIGN_STAR),
            GoTokenKind::Arrow if self.peek()?.kind == GoTokenKind::Word(Word::Chan) => return self.typed_value(),
            GoTokenKind::Arrow => Some(kind::SIGN_ARROW),
            GoTokenKind::Bang | GoTokenKind::Plus | GoTokenKind::Minus | GoTokenKind::BitXor => None,
            _ => return self.primary(),
        };
        let node = self.open(kind::UNARY_EXPRESSION);
        match operator {
            Some(sign) => self.mark(node, sign, field::OPERATOR)?,
            None => self.skip()?,
        }
        let operand = self.deeper(Self::unary)?;
        if self.is_type(operand) {
            // `*[]T`: a pointer to a type.
            ensure(operator == Some(kind::SIGN_STAR))?;
            let pointer = self.open_at(kind::POINTER_TYPE, self.tree.start(node));
            self.add(pointer, operand, field::NO);
            return Ok(self.close(pointer));
        }
        self.add(node, operand, field::OPERAND);
        Ok(self.close(node))
    }

    /// A type followed by a literal or conversion, or the type alone.
    fn typed_value(&mut self) -> ParseResult<u32> {
        let ty = self.ty()?;
        match self.tok.kind {
            GoTokenKind::Open(b'{') => self.composite(ty),
            GoTokenKind::Open(b'(') => self.conversion(ty),
            _ => Ok(ty),
        }
    }

    fn conversion(&mut self, ty: u32) -> ParseResult<u32> {
        let node = self.begin_around(kind::TYPE_CONVERSION_EXPRESSION, ty, field::TYPE)?;
        self.part(node, field::OPERAND, |parser| parser.inside(Self::expression))?;
        self.eat(GoTokenKind::Comma)?;
        self.close_with(GoTokenKind::Close(b')'), node)
    }

    fn primary(&mut self) -> ParseResult<u32> {
        let mut node = self.atom()?;
        loop {
            node = match self.tok.kind {
                _ if self.is_type(node) => return Ok(node),
                GoTokenKind::Dot => self.selected(node)?,
                GoTokenKind::Open(b'(') => self.call(node, None)?,
                GoTokenKind::Open(b'[') => self.indexed(node)?,
                GoTokenKind::Open(b'{') if !self.state.header && self.is_type_name(node) => {
                    let ty = self.as_type(node);
                    self.composite(ty)?
                }
                _ => return Ok(node),
            };
        }
    }

    /// Whether an expression has the form of a type name.
    fn is_type_name(&self, node: u32) -> bool {
        match self.tree.kind(node) {
            kind::IDENTIFIER => true,
            kind::SELECTOR_EXPRESSION => {
                self.tree.node(node).children().field("operand").is_some_and(|operand| operand.kind() == "identifier")
            }
            _ => false,
        }
    }

    /// Converts an expression with the form of a type name into a type.
    fn as_type(&mut self, node: u32) -> u32 {
        match self.tree.kind(node) {
            kind::IDENTIFIER => self.tree.set_kind(node, kind::TYPE_IDENTIFIER),
            kind::SELECTOR_EXPRESSION => self.tree.set_kind(node, kind::QUALIFIED_TYPE),
            _ => {}
        }
        node
    }

    /// `.name` or `.(T)`.
    fn selected(&mut self, of: u32) -> ParseResult<u32> {
        let node = self.begin_around(kind::SELECTOR_EXPRESSION, of, field::OPERAND)?;
        if self.at(GoTokenKind::Name) {
            return self.last_token(node, field::FIELD, kind::FIELD_IDENTIFIER);
        }
        self.tree.set_kind(node, kind::TYPE_ASSERTION_EXPRESSION);
        self.expect(GoTokenKind::Open(b'('))?;
        if self.at(GoTokenKind::Word(Word::Type)) {
            // Part of a type switch, which checks it there.
            self.advance()?;
            return self.close_with(GoTokenKind::Close(b')'), node);
        }
        self.part(node, field::TYPE, Self::ty)?;
        self.close_with(GoTokenKind::Close(b')'), node)
    }

    fn call(&mut self, function: u32, types: Option<u32>) -> ParseResult<u32> {
        let node = self.around(kind::CALL_EXPRESSION, function, field::FUNCTION);
        self.add_all(node, types, field::TYPE_ARGUMENTS);
        let takes_type = self.takes_type(function);
        let list = self.begin(kind::ARGUMENT_LIST)?;
        self.inside(|parser| {
            let mut first = takes_type;
            parser.elements(GoTokenKind::Close(b')'), |parser| {
                let value = parser.value_or_type()?;
                if parser.is_type(value) && !first {
                    return Err(UnsupportedSyntax);
                }
                first = false;
                if parser.at(GoTokenKind::Ellipsis) {
                    let all = parser.begin_around(kind::VARIADIC_ARGUMENT, value, field::NO)?;
                    parser.attach(list, all, field::NO);
                } else {
                    parser.add(list, value, field::NO);
                }
                Ok(())
            })
        })?;
        Ok(self.attach_last(node, list, field::ARGUMENTS))
    }

    /// Whether the first argument of a function is a type: `new` and `make`.
    fn takes_type(&self, function: u32) -> bool {
        if self.tree.kind(function) != kind::IDENTIFIER {
            return false;
        }
        let name = self.tree.node(function);
        let name = crate::tree::text(name, self.source());
        matches!(name, "new" | "make")
    }

    /// `a[b]`, `a[b:c]`, `a[int, string]`.
    fn indexed(&mut self, of: u32) -> ParseResult<u32> {
        let guess = self.guess();
        let simple = self.is_type_name(of);
        // First tried as types; otherwise it is an index.
        if simple && let Ok(types) = self.type_arguments() {
            let count = self.tree.node(types).children().named().count();
            let only_types = count > 1 || self.reads_as_type(types);
            let next = self.tok.kind;
            match next {
                GoTokenKind::Open(b'{') if !self.state.header => {
                    let generic = self.generic_of(of, types);
                    return self.composite(generic);
                }
                GoTokenKind::Open(b'(') if self.takes_one()? => {
                    let generic = self.generic_of(of, types);
                    return self.conversion(generic);
                }
                GoTokenKind::Open(b'(') if only_types || self.first_is(types, "pointer_type") => {
                    return self.call(of, Some(types));
                }
                _ if only_types => {
                    let of = self.as_type(of);
                    let node = self.around(kind::TYPE_INSTANTIATION_EXPRESSION, of, field::TYPE);
                    self.tree.move_children(types, node);
                    return Ok(self.close(node));
                }
                _ => {}
            }
        }
        self.back_to(guess)?;
        self.index(of)
    }

    fn generic_of(&mut self, name: u32, types: u32) -> u32 {
        let name = self.as_type(name);
        let node = self.around(kind::GENERIC_TYPE, name, field::TYPE);
        self.add(node, types, field::TYPE_ARGUMENTS);
        self.close(node)
    }

    /// Whether the first type argument can only be a type.
    fn reads_as_type(&self, types: u32) -> bool {
        let names = ["type_identifier", "qualified_type", "generic_type", "pointer_type", "parenthesized_type"];
        !names.iter().any(|kind| self.first_is(types, kind))
    }

    fn first_is(&self, types: u32, kind: &str) -> bool {
        let first = self.tree.node(types).children().named().next().and_then(|elem| elem.children().named().next());
        first.is_some_and(|ty| ty.kind() == kind)
    }

    /// Whether exactly one argument follows, as in a conversion.
    fn takes_one(&mut self) -> ParseResult<bool> {
        self.ahead(|parser| {
            parser.advance()?;
            let one = !parser.at(GoTokenKind::Close(b')'))
                && parser.inside(Self::expression).is_ok()
                && (parser.at(GoTokenKind::Close(b')'))
                    || parser.at(GoTokenKind::Comma) && parser.peek()?.kind == GoTokenKind::Close(b')'));
            Ok(one)
        })
    }

    fn index(&mut self, of: u32) -> ParseResult<u32> {
        let node = self.begin_around(kind::INDEX_EXPRESSION, of, field::OPERAND)?;
        self.inside(|parser| {
            if !parser.at(GoTokenKind::Colon) {
                let index = parser.expression()?;
                if parser.at(GoTokenKind::Close(b']')) || parser.eat(GoTokenKind::Comma)? {
                    parser.add(node, index, field::INDEX);
                    return parser.expect(GoTokenKind::Close(b']'));
                }
                parser.add(node, index, field::START);
            }
            parser.tree.set_kind(node, kind::SLICE_EXPRESSION);
            for field in [field::END, field::CAPACITY] {
                if parser.at(GoTokenKind::Colon) {
                    parser.advance()?;
                    if !matches!(parser.tok.kind, GoTokenKind::Colon | GoTokenKind::Close(b']')) {
                        parser.part(node, field, Self::expression)?;
                    }
                }
            }
            parser.expect(GoTokenKind::Close(b']'))
        })?;
        Ok(self.close(node))
    }

    fn atom(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            GoTokenKind::Name => {
                let kind = match self.text(self.tok) {
                    "nil" => kind::NIL,
                    "true" => kind::TRUE,
                    "false" => kind::FALSE,
                    "iota" => kind::IOTA,
                    _ => kind::IDENTIFIER,
                };
                self.leaf(kind)
            }
            GoTokenKind::Int => self.leaf(kind::INT_LITERAL),
            GoTokenKind::Float => self.leaf(kind::FLOAT_LITERAL),
            GoTokenKind::Imaginary => self.leaf(kind::IMAGINARY_LITERAL),
            GoTokenKind::Rune => self.leaf(kind::RUNE_LITERAL),
            GoTokenKind::Str => self.leaf(kind::INTERPRETED_STRING_LITERAL),
            GoTokenKind::RawStr => self.leaf(kind::RAW_STRING_LITERAL),
            GoTokenKind::Open(b'(') => self.parenthesized(),
            GoTokenKind::Word(Word::Func) => self.function_value(),
            GoTokenKind::Open(b'[') | GoTokenKind::Word(Word::Map | Word::Chan | Word::Struct | Word::Interface) => {
                self.typed_value()
            }
            _ => Err(UnsupportedSyntax),
        }
    }

    fn parenthesized(&mut self) -> ParseResult<u32> {
        if let Some(conversion) = self.pointer_conversion()? {
            return Ok(conversion);
        }
        let node = self.begin(kind::PARENTHESIZED_EXPRESSION)?;
        let inner = self.inside(Self::value_or_type)?;
        self.add(node, inner, field::NO);
        self.expect(GoTokenKind::Close(b')'))?;
        self.close(node);
        if !self.is_type(inner) {
            return Ok(node);
        }
        self.tree.set_kind(node, kind::PARENTHESIZED_TYPE);
        if self.at(GoTokenKind::Open(b'(')) { self.conversion(node) } else { Ok(node) }
    }

    /// `(*T[A])(x)`, which would otherwise be read as a call of an element.
    fn pointer_conversion(&mut self) -> ParseResult<Option<u32>> {
        if self.peek()?.kind != GoTokenKind::Star {
            return Ok(None);
        }
        let guess = self.guess();
        if let Ok(ty) = self.ty()
            && self.at(GoTokenKind::Open(b'('))
            && self.is_generic_pointer(ty)
        {
            return self.conversion(ty).map(Some);
        }
        self.back_to(guess)?;
        Ok(None)
    }

    fn is_generic_pointer(&self, ty: u32) -> bool {
        let mut at = self.tree.node(ty);
        while matches!(at.kind(), "parenthesized_type" | "pointer_type") {
            let Some(inner) = at.children().named().next() else { return false };
            at = inner;
        }
        at.kind() == "generic_type"
    }

    /// `func(…) … { … }`, or the type alone.
    fn function_value(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::FUNCTION_TYPE)?;
        self.signature(node)?;
        self.close(node);
        if !self.at(GoTokenKind::Open(b'{')) {
            return Ok(node);
        }
        self.tree.set_kind(node, kind::FUNC_LITERAL);
        self.last(node, field::BODY, |parser| parser.inside(Self::block))
    }

    // --- composite literals ---

    fn composite(&mut self, ty: u32) -> ParseResult<u32> {
        let node = self.around(kind::COMPOSITE_LITERAL, ty, field::TYPE);
        self.last(node, field::BODY, |parser| parser.inside(Self::literal))
    }

    fn literal(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::LITERAL_VALUE)?;
        self.elements(GoTokenKind::Close(b'}'), |parser| {
            let first = parser.element()?;
            if parser.at(GoTokenKind::Colon) {
                let keyed = parser.begin_around(kind::KEYED_ELEMENT, first, field::KEY)?;
                parser.part(keyed, field::VALUE, Self::element)?;
                parser.attach(node, keyed, field::NO);
            } else {
                parser.add(node, first, field::NO);
            }
            Ok(())
        })?;
        Ok(self.close(node))
    }

    fn element(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::LITERAL_ELEMENT);
        let value = if self.at(GoTokenKind::Open(b'{')) { self.deeper(Self::literal)? } else { self.expression()? };
        self.add(node, value, field::NO);
        Ok(self.close(node))
    }
}

impl Operators for Parser<'_> {
    fn binds(&mut self) -> Option<u8> {
        Some(match self.tok.kind {
            GoTokenKind::Or => 1,
            GoTokenKind::And => 2,
            GoTokenKind::Compare => 3,
            GoTokenKind::Plus | GoTokenKind::Minus | GoTokenKind::BitOr | GoTokenKind::BitXor => 4,
            GoTokenKind::Star | GoTokenKind::Times | GoTokenKind::BitAnd => 5,
            _ => return None,
        })
    }

    fn combine(&mut self, left: u32, precedence: u8) -> ParseResult<u32> {
        ensure(!self.is_type(left))?;
        self.infix(kind::BINARY_EXPRESSION, (left, field::LEFT), field::RIGHT, |parser| {
            let right = parser.binary(precedence + 1)?;
            ensure(!parser.is_type(right))?;
            Ok(right)
        })
    }
}
