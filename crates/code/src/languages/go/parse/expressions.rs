//! Go's expressions, by precedence of their operators.

use super::lex::{Tok, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Operators, Read, Unsure, sure};

impl Parser<'_> {
    /// Expressions separated by commas, as a list.
    pub(super) fn expressions(&mut self) -> Read<u32> {
        let node = self.open(kind::EXPRESSION_LIST);
        self.chain(node, field::NO, Tok::Comma, Self::expression)?;
        Ok(self.close(node))
    }

    pub(super) fn expression(&mut self) -> Read<u32> {
        let value = self.value_or_type()?;
        if self.is_type(value) { Err(Unsure) } else { Ok(value) }
    }

    /// An expression, or a type where one is allowed.
    fn value_or_type(&mut self) -> Read<u32> {
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

    fn binary(&mut self, least: u8) -> Read<u32> {
        let left = self.unary()?;
        self.climb(left, least)
    }

    fn unary(&mut self) -> Read<u32> {
        let first = self.tok.kind;
        let operator = match first {
            Tok::BitAnd => Some(kind::SIGN_ADDRESS),
            Tok::Star => Some(kind::SIGN_STAR),
            Tok::Arrow if self.peek()?.kind == Tok::Word(Word::Chan) => return self.typed_value(),
            Tok::Arrow => Some(kind::SIGN_ARROW),
            Tok::Bang | Tok::Plus | Tok::Minus | Tok::BitXor => None,
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
            sure(operator == Some(kind::SIGN_STAR))?;
            let pointer = self.open_at(kind::POINTER_TYPE, self.tree.start(node));
            self.add(pointer, operand, field::NO);
            return Ok(self.close(pointer));
        }
        self.add(node, operand, field::OPERAND);
        Ok(self.close(node))
    }

    /// A type followed by a literal or conversion, or the type alone.
    fn typed_value(&mut self) -> Read<u32> {
        let ty = self.ty()?;
        match self.tok.kind {
            Tok::Open(b'{') => self.composite(ty),
            Tok::Open(b'(') => self.conversion(ty),
            _ => Ok(ty),
        }
    }

    fn conversion(&mut self, ty: u32) -> Read<u32> {
        let node = self.begin_around(kind::TYPE_CONVERSION_EXPRESSION, ty, field::TYPE)?;
        self.part(node, field::OPERAND, |parser| parser.inside(Self::expression))?;
        self.eat(Tok::Comma)?;
        self.close_with(Tok::Close(b')'), node)
    }

    fn primary(&mut self) -> Read<u32> {
        let mut node = self.atom()?;
        loop {
            node = match self.tok.kind {
                _ if self.is_type(node) => return Ok(node),
                Tok::Dot => self.selected(node)?,
                Tok::Open(b'(') => self.call(node, None)?,
                Tok::Open(b'[') => self.indexed(node)?,
                Tok::Open(b'{') if !self.state.header && self.is_type_name(node) => {
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
                self.tree.node(node).kids().field("operand").is_some_and(|operand| operand.kind() == "identifier")
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
    fn selected(&mut self, of: u32) -> Read<u32> {
        let node = self.begin_around(kind::SELECTOR_EXPRESSION, of, field::OPERAND)?;
        if self.at(Tok::Name) {
            return self.last_token(node, field::FIELD, kind::FIELD_IDENTIFIER);
        }
        self.tree.set_kind(node, kind::TYPE_ASSERTION_EXPRESSION);
        self.expect(Tok::Open(b'('))?;
        if self.at(Tok::Word(Word::Type)) {
            // Part of a type switch, which checks it there.
            self.advance()?;
            return self.close_with(Tok::Close(b')'), node);
        }
        self.part(node, field::TYPE, Self::ty)?;
        self.close_with(Tok::Close(b')'), node)
    }

    fn call(&mut self, function: u32, types: Option<u32>) -> Read<u32> {
        let node = self.around(kind::CALL_EXPRESSION, function, field::FUNCTION);
        self.add_all(node, types, field::TYPE_ARGUMENTS);
        let takes_type = self.takes_type(function);
        let list = self.begin(kind::ARGUMENT_LIST)?;
        self.inside(|parser| {
            let mut first = takes_type;
            parser.elements(Tok::Close(b')'), |parser| {
                let value = parser.value_or_type()?;
                if parser.is_type(value) && !first {
                    return Err(Unsure);
                }
                first = false;
                if parser.at(Tok::Ellipsis) {
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
    fn indexed(&mut self, of: u32) -> Read<u32> {
        let guess = self.guess();
        let simple = self.is_type_name(of);
        // First tried as types; otherwise it is an index.
        if simple && let Ok(types) = self.type_arguments() {
            let count = self.tree.node(types).kids().named().count();
            let only_types = count > 1 || self.reads_as_type(types);
            let next = self.tok.kind;
            match next {
                Tok::Open(b'{') if !self.state.header => {
                    let generic = self.generic_of(of, types);
                    return self.composite(generic);
                }
                Tok::Open(b'(') if self.takes_one()? => {
                    let generic = self.generic_of(of, types);
                    return self.conversion(generic);
                }
                Tok::Open(b'(') if only_types || self.first_is(types, "pointer_type") => {
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
        self.go_back(guess)?;
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
        let first = self.tree.node(types).kids().named().next().and_then(|elem| elem.kids().named().next());
        first.is_some_and(|ty| ty.kind() == kind)
    }

    /// Whether exactly one argument follows, as in a conversion.
    fn takes_one(&mut self) -> Read<bool> {
        self.ahead(|parser| {
            parser.advance()?;
            let one = !parser.at(Tok::Close(b')'))
                && parser.inside(Self::expression).is_ok()
                && (parser.at(Tok::Close(b')')) || parser.at(Tok::Comma) && parser.peek()?.kind == Tok::Close(b')'));
            Ok(one)
        })
    }

    fn index(&mut self, of: u32) -> Read<u32> {
        let node = self.begin_around(kind::INDEX_EXPRESSION, of, field::OPERAND)?;
        self.inside(|parser| {
            if !parser.at(Tok::Colon) {
                let index = parser.expression()?;
                if parser.at(Tok::Close(b']')) || parser.eat(Tok::Comma)? {
                    parser.add(node, index, field::INDEX);
                    return parser.expect(Tok::Close(b']'));
                }
                parser.add(node, index, field::START);
            }
            parser.tree.set_kind(node, kind::SLICE_EXPRESSION);
            for field in [field::END, field::CAPACITY] {
                if parser.at(Tok::Colon) {
                    parser.advance()?;
                    if !matches!(parser.tok.kind, Tok::Colon | Tok::Close(b']')) {
                        parser.part(node, field, Self::expression)?;
                    }
                }
            }
            parser.expect(Tok::Close(b']'))
        })?;
        Ok(self.close(node))
    }

    fn atom(&mut self) -> Read<u32> {
        match self.tok.kind {
            Tok::Name => {
                let kind = match self.text(self.tok) {
                    "nil" => kind::NIL,
                    "true" => kind::TRUE,
                    "false" => kind::FALSE,
                    "iota" => kind::IOTA,
                    _ => kind::IDENTIFIER,
                };
                self.leaf(kind)
            }
            Tok::Int => self.leaf(kind::INT_LITERAL),
            Tok::Float => self.leaf(kind::FLOAT_LITERAL),
            Tok::Imaginary => self.leaf(kind::IMAGINARY_LITERAL),
            Tok::Rune => self.leaf(kind::RUNE_LITERAL),
            Tok::Str => self.leaf(kind::INTERPRETED_STRING_LITERAL),
            Tok::RawStr => self.leaf(kind::RAW_STRING_LITERAL),
            Tok::Open(b'(') => self.parenthesized(),
            Tok::Word(Word::Func) => self.function_value(),
            Tok::Open(b'[') | Tok::Word(Word::Map | Word::Chan | Word::Struct | Word::Interface) => self.typed_value(),
            _ => Err(Unsure),
        }
    }

    fn parenthesized(&mut self) -> Read<u32> {
        if let Some(conversion) = self.pointer_conversion()? {
            return Ok(conversion);
        }
        let node = self.begin(kind::PARENTHESIZED_EXPRESSION)?;
        let inner = self.inside(Self::value_or_type)?;
        self.add(node, inner, field::NO);
        self.expect(Tok::Close(b')'))?;
        self.close(node);
        if !self.is_type(inner) {
            return Ok(node);
        }
        self.tree.set_kind(node, kind::PARENTHESIZED_TYPE);
        if self.at(Tok::Open(b'(')) { self.conversion(node) } else { Ok(node) }
    }

    /// `(*T[A])(x)`, which would otherwise be read as a call of an element.
    fn pointer_conversion(&mut self) -> Read<Option<u32>> {
        if self.peek()?.kind != Tok::Star {
            return Ok(None);
        }
        let guess = self.guess();
        if let Ok(ty) = self.ty()
            && self.at(Tok::Open(b'('))
            && self.is_generic_pointer(ty)
        {
            return self.conversion(ty).map(Some);
        }
        self.go_back(guess)?;
        Ok(None)
    }

    fn is_generic_pointer(&self, ty: u32) -> bool {
        let mut at = self.tree.node(ty);
        while matches!(at.kind(), "parenthesized_type" | "pointer_type") {
            let Some(inner) = at.kids().named().next() else { return false };
            at = inner;
        }
        at.kind() == "generic_type"
    }

    /// `func(…) … { … }`, or the type alone.
    fn function_value(&mut self) -> Read<u32> {
        let node = self.begin(kind::FUNCTION_TYPE)?;
        self.signature(node)?;
        self.close(node);
        if !self.at(Tok::Open(b'{')) {
            return Ok(node);
        }
        self.tree.set_kind(node, kind::FUNC_LITERAL);
        self.last(node, field::BODY, |parser| parser.inside(Self::block))
    }

    // --- composite literals ---

    fn composite(&mut self, ty: u32) -> Read<u32> {
        let node = self.around(kind::COMPOSITE_LITERAL, ty, field::TYPE);
        self.last(node, field::BODY, |parser| parser.inside(Self::literal))
    }

    fn literal(&mut self) -> Read<u32> {
        let node = self.begin(kind::LITERAL_VALUE)?;
        self.elements(Tok::Close(b'}'), |parser| {
            let first = parser.element()?;
            if parser.at(Tok::Colon) {
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

    fn element(&mut self) -> Read<u32> {
        let node = self.open(kind::LITERAL_ELEMENT);
        let value = if self.at(Tok::Open(b'{')) { self.deeper(Self::literal)? } else { self.expression()? };
        self.add(node, value, field::NO);
        Ok(self.close(node))
    }
}

impl Operators for Parser<'_> {
    fn binds(&mut self) -> Option<u8> {
        Some(match self.tok.kind {
            Tok::Or => 1,
            Tok::And => 2,
            Tok::Compare => 3,
            Tok::Plus | Tok::Minus | Tok::BitOr | Tok::BitXor => 4,
            Tok::Star | Tok::Times | Tok::BitAnd => 5,
            _ => return None,
        })
    }

    fn combine(&mut self, left: u32, precedence: u8) -> Read<u32> {
        sure(!self.is_type(left))?;
        self.infix(kind::BINARY_EXPRESSION, (left, field::LEFT), field::RIGHT, |parser| {
            let right = parser.binary(precedence + 1)?;
            sure(!parser.is_type(right))?;
            Ok(right)
        })
    }
}
