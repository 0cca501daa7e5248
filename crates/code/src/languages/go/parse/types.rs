//! Go's types, parameters and type parameters.

use super::lex::{GoTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax, ensure};
use smallvec::SmallVec;

impl Parser<'_> {
    pub(super) fn begins_type(&self) -> bool {
        matches!(
            self.tok.kind,
            GoTokenKind::Name
                | GoTokenKind::Star
                | GoTokenKind::Arrow
                | GoTokenKind::Open(b'(' | b'[')
                | GoTokenKind::Word(Word::Func | Word::Map | Word::Chan | Word::Struct | Word::Interface)
        )
    }

    pub(super) fn ty(&mut self) -> ParseResult<u32> {
        self.deeper(Self::any_type)
    }

    fn any_type(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            GoTokenKind::Name => {
                let name = self.type_name()?;
                if self.at(GoTokenKind::Open(b'[')) { self.generic(name) } else { Ok(name) }
            }
            GoTokenKind::Star => self.prefixed(kind::POINTER_TYPE, field::NO, Self::ty),
            GoTokenKind::Open(b'(') => {
                self.enclosed(kind::PARENTHESIZED_TYPE, field::NO, GoTokenKind::Close(b')'), Self::ty)
            }
            GoTokenKind::Open(b'[') => self.list_type(),
            GoTokenKind::Word(Word::Map) => {
                let node = self.begin(kind::MAP_TYPE)?;
                self.expect(GoTokenKind::Open(b'['))?;
                self.part(node, field::KEY, Self::ty)?;
                self.expect(GoTokenKind::Close(b']'))?;
                self.last(node, field::VALUE, Self::ty)
            }
            GoTokenKind::Word(Word::Chan) | GoTokenKind::Arrow => {
                let node = self.open(kind::CHANNEL_TYPE);
                self.eat(GoTokenKind::Arrow)?;
                self.expect(GoTokenKind::Word(Word::Chan))?;
                self.eat(GoTokenKind::Arrow)?;
                self.last(node, field::VALUE, Self::ty)
            }
            GoTokenKind::Word(Word::Func) => {
                let node = self.begin(kind::FUNCTION_TYPE)?;
                self.signature(node)?;
                Ok(self.close(node))
            }
            GoTokenKind::Word(Word::Struct) => self.struct_type(),
            GoTokenKind::Word(Word::Interface) => self.interface_type(),
            _ => Err(UnsupportedSyntax),
        }
    }

    /// `T` or `p.T`.
    pub(super) fn type_name(&mut self) -> ParseResult<u32> {
        let name = self.leaf(kind::TYPE_IDENTIFIER)?;
        if !self.at(GoTokenKind::Dot) {
            return Ok(name);
        }
        self.tree.set_kind(name, kind::PACKAGE_IDENTIFIER);
        let node = self.begin_around(kind::QUALIFIED_TYPE, name, field::NO)?;
        self.last_name(node, field::NAME, kind::TYPE_IDENTIFIER)
    }

    /// A named type with its type arguments.
    pub(super) fn generic(&mut self, name: u32) -> ParseResult<u32> {
        let node = self.around(kind::GENERIC_TYPE, name, field::TYPE);
        self.last(node, field::TYPE_ARGUMENTS, Self::type_arguments)
    }

    pub(super) fn type_arguments(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(GoTokenKind::Open(b'['), kind::TYPE_ARGUMENTS)?;
        self.elements(GoTokenKind::Close(b']'), |parser| {
            let elem = parser.open(kind::TYPE_ELEM);
            parser.part(elem, field::NO, Self::ty)?;
            parser.attach(node, elem, field::NO);
            Ok(())
        })?;
        Ok(self.close(node))
    }

    fn list_type(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::SLICE_TYPE)?;
        if self.eat(GoTokenKind::Ellipsis)? {
            self.tree.set_kind(node, kind::IMPLICIT_LENGTH_ARRAY_TYPE);
        } else if !self.at(GoTokenKind::Close(b']')) {
            self.tree.set_kind(node, kind::ARRAY_TYPE);
            self.part(node, field::LENGTH, |parser| parser.inside(Self::expression))?;
        }
        self.expect(GoTokenKind::Close(b']'))?;
        self.last(node, field::ELEMENT, Self::ty)
    }

    fn struct_type(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::STRUCT_TYPE);
        self.mark(node, kind::WORD_STRUCT, field::NO)?;
        let list = self.open(kind::FIELD_DECLARATION_LIST);
        self.require(GoTokenKind::Open(b'{'))?;
        self.mark(list, kind::SIGN_BRACE, field::NO)?;
        while !self.at(GoTokenKind::Close(b'}')) {
            self.remarks(list, kind::COMMENT);
            let field = self.field()?;
            self.add(list, field, field::NO);
            self.item_end()?;
        }
        self.advance()?;
        Ok(self.attach_last(node, list, field::NO))
    }

    /// The end of a declaration in a group, before the next one or the closing bracket.
    pub(super) fn item_end(&mut self) -> ParseResult<()> {
        if self.eat(GoTokenKind::Semicolon)? || matches!(self.tok.kind, GoTokenKind::Close(_)) {
            Ok(())
        } else {
            Err(UnsupportedSyntax)
        }
    }

    fn field(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::FIELD_DECLARATION);
        if !self.eat(GoTokenKind::Star)? && !self.embeds()? {
            loop {
                self.part_name(node, field::NAME, kind::FIELD_IDENTIFIER)?;
                if !self.eat(GoTokenKind::Comma)? {
                    break;
                }
            }
        }
        self.part(node, field::TYPE, Self::ty)?;
        let tag = match self.tok.kind {
            GoTokenKind::Str => self.leaf(kind::INTERPRETED_STRING_LITERAL)?,
            GoTokenKind::RawStr => self.leaf(kind::RAW_STRING_LITERAL)?,
            _ => return Ok(self.close(node)),
        };
        self.add(node, tag, field::TAG);
        Ok(self.close(node))
    }

    /// Whether a name is that of an embedded type, not of a field.
    fn embeds(&mut self) -> ParseResult<bool> {
        if !self.at(GoTokenKind::Name) {
            return Ok(false);
        }
        self.ahead(|parser| {
            parser.advance()?;
            let embeds = match parser.tok.kind {
                GoTokenKind::Dot
                | GoTokenKind::Semicolon
                | GoTokenKind::Close(_)
                | GoTokenKind::Str
                | GoTokenKind::RawStr => true,
                GoTokenKind::Open(b'[') => parser.type_arguments().is_ok() && !parser.begins_type(),
                _ => false,
            };
            Ok(embeds)
        })
    }

    fn interface_type(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::INTERFACE_TYPE);
        self.mark(node, kind::WORD_INTERFACE, field::NO)?;
        self.require(GoTokenKind::Open(b'{'))?;
        self.mark(node, kind::SIGN_BRACE, field::NO)?;
        while !self.at(GoTokenKind::Close(b'}')) {
            self.remarks(node, kind::COMMENT);
            let elem = if self.at(GoTokenKind::Name) && self.peek()?.kind == GoTokenKind::Open(b'(') {
                let method = self.open(kind::METHOD_ELEM);
                self.token(method, field::NAME, kind::FIELD_IDENTIFIER)?;
                self.signature(method)?;
                self.close(method)
            } else {
                self.type_union(kind::TYPE_ELEM)?
            };
            self.add(node, elem, field::NO);
            self.item_end()?;
        }
        self.close_after(node)
    }

    /// `~int | string`
    fn type_union(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.open(kind);
        loop {
            let part = if self.at(GoTokenKind::Tilde) {
                self.prefixed(kind::NEGATED_TYPE, field::NO, Self::ty)?
            } else {
                self.ty()?
            };
            self.add(node, part, field::NO);
            if !self.eat(GoTokenKind::BitOr)? {
                return Ok(self.close(node));
            }
        }
    }

    pub(super) fn type_parameters(&mut self, node: u32) -> ParseResult<()> {
        let list = self.begin_with(GoTokenKind::Open(b'['), kind::TYPE_PARAMETER_LIST)?;
        self.elements(GoTokenKind::Close(b']'), |parser| {
            let declaration = parser.open(kind::TYPE_PARAMETER_DECLARATION);
            parser.chain(declaration, field::NAME, GoTokenKind::Comma, Self::identifier)?;
            // `[a * b]` and `[a (b)]` may also be array lengths.
            ensure(!matches!(parser.tok.kind, GoTokenKind::Star | GoTokenKind::Open(b'(')))?;
            parser.part(declaration, field::TYPE, |parser| parser.type_union(kind::TYPE_CONSTRAINT))?;
            parser.attach(list, declaration, field::NO);
            Ok(())
        })?;
        self.attach(node, list, field::TYPE_PARAMETERS);
        Ok(())
    }

    /// Parameters and results.
    pub(super) fn signature(&mut self, node: u32) -> ParseResult<()> {
        self.part(node, field::PARAMETERS, Self::parameters)?;
        let result = match self.tok.kind {
            GoTokenKind::Open(b'(') => self.parameters()?,
            _ if self.begins_type() => self.ty()?,
            _ => return Ok(()),
        };
        self.add(node, result, field::RESULT);
        Ok(())
    }

    /// `(a, b int, c ...string)` or `(int, string)`: which form it is, is known at the end.
    pub(super) fn parameters(&mut self) -> ParseResult<u32> {
        let list = self.begin_with(GoTokenKind::Open(b'('), kind::PARAMETER_LIST)?;
        let mut read: SmallVec<[Parameter; 4]> = SmallVec::new();
        self.inside(|parser| {
            while !parser.at(GoTokenKind::Close(b')')) {
                read.push(parser.deeper(Self::parameter)?);
                parser.comma(GoTokenKind::Close(b')'))?;
            }
            Ok(())
        })?;
        let named = read.iter().any(|parameter| parameter.name.is_some());
        let mut names: SmallVec<[u32; 4]> = SmallVec::new();
        for parameter in read {
            let Parameter { start, name, ty, rest, end } = parameter;
            if named && name.is_none() {
                // It has the type of the next parameter.
                if rest || self.tree.kind(ty) != kind::TYPE_IDENTIFIER {
                    return Err(UnsupportedSyntax);
                }
                names.push(ty);
                continue;
            }
            if rest && !names.is_empty() {
                return Err(UnsupportedSyntax);
            }
            names.extend(name);
            let start = names.first().map_or(start, |first| self.tree.start(*first));
            let kind = if rest { kind::VARIADIC_PARAMETER_DECLARATION } else { kind::PARAMETER_DECLARATION };
            let node = self.open_at(kind, start);
            for name in names.drain(..) {
                self.tree.set_kind(name, kind::IDENTIFIER);
                self.add(node, name, field::NAME);
            }
            self.add(node, ty, field::TYPE);
            self.tree.set_end(node, end);
            self.add(list, node, field::NO);
        }
        ensure(names.is_empty())?;
        self.close_after(list)
    }

    fn parameter(&mut self) -> ParseResult<Parameter> {
        let start = self.tok.start;
        let named = self.at(GoTokenKind::Name) && self.names_a_parameter()?;
        let name = if named { Some(self.leaf(kind::IDENTIFIER)?) } else { None };
        let rest = self.eat(GoTokenKind::Ellipsis)?;
        let ty = self.ty()?;
        Ok(Parameter { start, name, ty, rest, end: self.last })
    }

    /// Whether the next name is followed by a type, so that it is the name of a parameter.
    fn names_a_parameter(&mut self) -> ParseResult<bool> {
        let next = self.peek()?.kind;
        match next {
            GoTokenKind::Comma | GoTokenKind::Close(_) | GoTokenKind::Dot => return Ok(false),
            GoTokenKind::Open(b'[') => {}
            _ => return Ok(true),
        }
        // `a []T` and `a [3]T`, or `A[T]`.
        self.ahead(|parser| {
            parser.advance()?;
            let generic = parser.peek()?.kind != GoTokenKind::Close(b']') && parser.type_arguments().is_ok();
            let generic = generic && matches!(parser.tok.kind, GoTokenKind::Comma | GoTokenKind::Close(b')'));
            Ok(!generic)
        })
    }
}

struct Parameter {
    start: u32,
    name: Option<u32>,
    ty: u32,
    rest: bool,
    end: u32,
}
