//! Types, their arguments, parameters and bounds.

use super::lex::{RustTokenKind, Word, is_primitive};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax, ensure};

impl Parser<'_> {
    /// A type with optional additional bounds.
    pub(super) fn ty(&mut self) -> ParseResult<u32> {
        let mut ty = match self.tok.kind {
            RustTokenKind::Lifetime => self.leaf(kind::LIFETIME)?,
            _ => self.type_alone()?,
        };
        while self.at(RustTokenKind::Plus) {
            let node = self.begin_around(kind::BOUNDED_TYPE, ty, field::NO)?;
            let more = match self.tok.kind {
                RustTokenKind::Lifetime => self.leaf(kind::LIFETIME)?,
                RustTokenKind::Word(Word::Use) => self.use_bounds()?,
                _ => self.type_alone()?,
            };
            self.add(node, more, field::NO);
            ty = self.close(node);
        }
        if self.tree.kind(ty) == kind::LIFETIME { Err(UnsupportedSyntax) } else { Ok(ty) }
    }

    pub(super) fn add_type(&mut self, node: u32) -> ParseResult<()> {
        self.part(node, field::TYPE, Self::ty)
    }

    /// `use<'a, T>`.
    fn use_bounds(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::USE_BOUNDS)?;
        self.expect(RustTokenKind::Less)?;
        self.elements(RustTokenKind::Greater, |parser| {
            ensure(matches!(parser.tok.kind, RustTokenKind::Lifetime | RustTokenKind::Name))?;
            parser.skip()
        })?;
        Ok(self.close(node))
    }

    /// A type without additional bounds.
    pub(super) fn type_alone(&mut self) -> ParseResult<u32> {
        self.deeper(Self::type_inner)
    }

    fn type_inner(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::REFERENCE_TYPE);
        match self.tok.kind {
            RustTokenKind::And => {
                self.advance()?;
                self.eat(RustTokenKind::Lifetime)?;
                self.eat_word(Word::Mut)?;
                self.part(node, field::TYPE, Self::type_alone)?;
            }
            RustTokenKind::Star => {
                self.decide(node, kind::POINTER_TYPE)?;
                if !self.eat_word(Word::Const)? && !self.eat_word(Word::Mut)? {
                    return Err(UnsupportedSyntax);
                }
                self.part(node, field::TYPE, Self::type_alone)?;
            }
            RustTokenKind::Bang => {
                self.decide(node, kind::NEVER_TYPE)?;
            }
            RustTokenKind::Open(b'(') => {
                self.advance()?;
                let unit = self.at(RustTokenKind::Close(b')'));
                self.tree.set_kind(node, if unit { kind::UNIT_TYPE } else { kind::TUPLE_TYPE });
                self.list(node, field::NO, RustTokenKind::Close(b')'), Self::ty)?;
            }
            RustTokenKind::Open(b'[') => {
                self.decide(node, kind::ARRAY_TYPE)?;
                self.part(node, field::ELEMENT, Self::ty)?;
                self.part_after(RustTokenKind::Semicolon, node, field::LENGTH, |parser| {
                    parser.inside(Self::expression)
                })?;
                self.expect(RustTokenKind::Close(b']'))?;
            }
            RustTokenKind::Question => {
                self.decide(node, kind::REMOVED_TRAIT_BOUND)?;
                self.part(node, field::NO, Self::type_alone)?;
            }
            RustTokenKind::Word(Word::Impl) => {
                self.decide(node, kind::ABSTRACT_TYPE)?;
                if self.eat_word(Word::For)? {
                    self.type_parameters_of(node, field::NO)?;
                }
                self.bound_of(node)?;
            }
            RustTokenKind::Word(Word::Dyn) => {
                self.decide(node, kind::DYNAMIC_TYPE)?;
                if self.at_word(Word::For) {
                    self.part(node, field::TRAIT, Self::higher_ranked)?;
                } else {
                    self.bound_of(node)?;
                }
            }
            RustTokenKind::Word(Word::Fn | Word::Unsafe | Word::Extern) => {
                self.tree.set_kind(node, kind::FUNCTION_TYPE);
                self.function_type(node)?;
            }
            RustTokenKind::Word(Word::For) => {
                // `for<'a> fn(&'a T)`; before a trait it is a bound.
                self.decide(node, kind::FUNCTION_TYPE)?;
                let nodes = self.tree.len();
                let given_up = self.open(kind::TYPE_PARAMETERS);
                self.type_parameters_of(given_up, field::NO)?;
                self.tree.truncate(nodes);
                ensure(matches!(self.tok.kind, RustTokenKind::Word(Word::Fn | Word::Unsafe | Word::Extern)))?;
                self.function_type(node)?;
            }
            _ => {
                self.tree.truncate(node);
                return self.path_type();
            }
        }
        Ok(self.close(node))
    }

    /// The trait after `impl` or `dyn`.
    fn bound_of(&mut self, node: u32) -> ParseResult<()> {
        let ty = match self.tok.kind {
            RustTokenKind::Name
            | RustTokenKind::Path
            | RustTokenKind::Word(Word::SelfValue | Word::Super | Word::Crate) => self.path_type()?,
            RustTokenKind::Open(b'(') | RustTokenKind::Question => self.type_alone()?,
            _ => return Err(UnsupportedSyntax),
        };
        ensure(self.tree.kind(ty) != kind::MACRO_INVOCATION)?;
        self.add(node, ty, field::TRAIT);
        Ok(())
    }

    /// `unsafe extern "C" fn(A, b: B) -> C`.
    fn function_type(&mut self, node: u32) -> ParseResult<()> {
        self.eat_word(Word::Unsafe)?;
        if self.eat_word(Word::Extern)? {
            self.eat(RustTokenKind::Str)?;
        }
        self.expect_word(Word::Fn)?;
        let list = self.begin_with(RustTokenKind::Open(b'('), kind::PARAMETERS)?;
        self.elements(RustTokenKind::Close(b')'), |parser| {
            parser.attributes(list)?;
            let named = matches!(parser.tok.kind, RustTokenKind::Name | RustTokenKind::Blank)
                && parser.peek()?.kind == RustTokenKind::Colon;
            let part = match parser.tok.kind {
                RustTokenKind::Ellipsis => parser.leaf(kind::VARIADIC_PARAMETER)?,
                _ if named => parser.parameter()?,
                _ => parser.ty()?,
            };
            parser.add(list, part, field::NO);
            Ok(())
        })?;
        self.attach(node, list, field::PARAMETERS);
        self.return_type_alone(node)
    }

    /// A result type without additional bounds, which belong to the whole type.
    fn return_type_alone(&mut self, node: u32) -> ParseResult<()> {
        self.part_after(RustTokenKind::Arrow, node, field::RETURN_TYPE, Self::type_alone)
    }

    /// `a::B<C>::D`, `Fn(A) -> B`, `<T as A>::B`, or a macro.
    fn path_type(&mut self) -> ParseResult<u32> {
        let start = self.tok.start;
        if self.at(RustTokenKind::Blank) {
            return self.leaf(kind::TYPE_IDENTIFIER);
        }
        let mut path = match self.tok.kind {
            RustTokenKind::Less => Some(self.bracketed()?),
            RustTokenKind::Path => None,
            _ => {
                let primitive = self.at(RustTokenKind::Name) && is_primitive(self.text(self.tok).as_bytes());
                let segment = self.segment()?;
                if primitive && !self.at(RustTokenKind::Path) {
                    self.tree.set_kind(segment, kind::PRIMITIVE_TYPE);
                    return Ok(segment);
                }
                Some(segment)
            }
        };
        loop {
            match self.tok.kind {
                RustTokenKind::Path => {
                    ensure(!matches!(self.peek()?.kind, RustTokenKind::Less | RustTokenKind::Open(_)))?;
                    self.advance()?;
                    let name = self.segment()?;
                    path = Some(self.scoped(kind::SCOPED_IDENTIFIER, start, path, name));
                }
                RustTokenKind::Less if path.is_some_and(|path| self.is_named_type(path)) => {
                    let of = self.as_type(path.ok_or(UnsupportedSyntax)?);
                    let node = self.around(kind::GENERIC_TYPE, of, field::TYPE);
                    self.part(node, field::TYPE_ARGUMENTS, Self::type_arguments)?;
                    path = Some(self.close(node));
                }
                _ => break,
            }
        }
        let path = path.ok_or(UnsupportedSyntax)?;
        match self.tok.kind {
            RustTokenKind::Open(b'(') if self.is_named_type(path) => {
                let of = self.as_type(path);
                let node = self.around(kind::FUNCTION_TYPE, of, field::TRAIT);
                self.part(node, field::PARAMETERS, |parser| {
                    parser.listed(kind::PARAMETERS, field::NO, RustTokenKind::Close(b')'), Self::ty)
                })?;
                self.return_type_alone(node)?;
                Ok(self.close(node))
            }
            RustTokenKind::Bang if self.is_named_type(path) => self.macro_invocation(path),
            _ => match self.tree.kind(path) {
                kind::IDENTIFIER | kind::SCOPED_IDENTIFIER => Ok(self.as_type(path)),
                kind::GENERIC_TYPE => Ok(path),
                _ => Err(UnsupportedSyntax),
            },
        }
    }

    fn is_named_type(&self, path: u32) -> bool {
        matches!(self.tree.kind(path), kind::IDENTIFIER | kind::SCOPED_IDENTIFIER)
    }

    /// Converts the path of a value into the path of a type.
    pub(super) fn as_type(&mut self, path: u32) -> u32 {
        match self.tree.kind(path) {
            kind::IDENTIFIER => self.tree.set_kind(path, kind::TYPE_IDENTIFIER),
            kind::SCOPED_IDENTIFIER => self.tree.set_kind(path, kind::SCOPED_TYPE_IDENTIFIER),
            _ => {}
        }
        path
    }

    /// `<T>` or `<T as Trait>`.
    pub(super) fn bracketed(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(RustTokenKind::Less, kind::BRACKETED_TYPE)?;
        let mut inner = self.ty()?;
        if self.eat_word(Word::As)? {
            let qualified = self.around(kind::QUALIFIED_TYPE, inner, field::TYPE);
            self.part(qualified, field::ALIAS, Self::ty)?;
            inner = self.close(qualified);
        }
        self.add(node, inner, field::NO);
        self.expect(RustTokenKind::Greater)?;
        self.require(RustTokenKind::Path)?;
        Ok(self.close(node))
    }

    pub(super) fn type_arguments(&mut self) -> ParseResult<u32> {
        let list = self.begin_with(RustTokenKind::Less, kind::TYPE_ARGUMENTS)?;
        ensure(!self.at(RustTokenKind::Greater))?;
        self.elements(RustTokenKind::Greater, |parser| {
            parser.part(list, field::NO, Self::type_argument)?;
            parser.part_at(RustTokenKind::Colon, list, field::NO, Self::bound_list)
        })?;
        Ok(self.close(list))
    }

    fn type_argument(&mut self) -> ParseResult<u32> {
        let first = self.tok.kind;
        match first {
            RustTokenKind::Lifetime if self.peek()?.kind != RustTokenKind::Plus => return self.leaf(kind::LIFETIME),
            RustTokenKind::Open(b'{') => return self.inside(Self::block),
            RustTokenKind::Name => {}
            _ => {
                return match self.literal_kind() {
                    Some(kind) => self.leaf(kind),
                    None => self.ty(),
                };
            }
        }
        let ty = self.ty()?;
        if self.at(RustTokenKind::Assign) { self.type_binding(ty) } else { Ok(ty) }
    }

    /// `Item = T`, after a name that was read as a type.
    fn type_binding(&mut self, of: u32) -> ParseResult<u32> {
        let start = self.tree.start(of);
        let (name, arguments) = match self.tree.kind(of) {
            kind::GENERIC_TYPE => {
                let (name, arguments) = self.tree.take_ends(of).ok_or(UnsupportedSyntax)?;
                (name, Some(arguments))
            }
            _ => (of, None),
        };
        ensure(self.tree.kind(name) == kind::TYPE_IDENTIFIER)?;
        let node = self.open_at(kind::TYPE_BINDING, start);
        self.add(node, name, field::NAME);
        self.add_all(node, arguments, field::TYPE_ARGUMENTS);
        self.advance()?;
        self.add_type(node)?;
        Ok(self.close(node))
    }

    // --- parameters and bounds ---

    pub(super) fn type_parameters(&mut self, node: u32) -> ParseResult<()> {
        if self.at(RustTokenKind::Less) { self.type_parameters_of(node, field::TYPE_PARAMETERS) } else { Ok(()) }
    }

    fn type_parameters_of(&mut self, node: u32, field: u8) -> ParseResult<()> {
        let list = self.begin_with(RustTokenKind::Less, kind::TYPE_PARAMETERS)?;
        self.elements(RustTokenKind::Greater, |parser| {
            parser.attributes(list)?;
            let parameter = parser.open(kind::TYPE_PARAMETER);
            match parser.tok.kind {
                RustTokenKind::Lifetime => {
                    parser.tree.set_kind(parameter, kind::LIFETIME_PARAMETER);
                    parser.token(parameter, field::NAME, kind::LIFETIME)?;
                    if parser.at(RustTokenKind::Colon) {
                        parser.bounds(parameter)?;
                    }
                }
                RustTokenKind::Word(Word::Const) => {
                    parser.decide(parameter, kind::CONST_PARAMETER)?;
                    parser.part_name(parameter, field::NAME, kind::IDENTIFIER)?;
                    parser.expect(RustTokenKind::Colon)?;
                    parser.add_type(parameter)?;
                    if parser.eat(RustTokenKind::Assign)? {
                        parser.parameter_value(parameter)?;
                    }
                }
                _ => {
                    parser.part_name(parameter, field::NAME, kind::TYPE_IDENTIFIER)?;
                    if parser.at(RustTokenKind::Colon) {
                        parser.bounds(parameter)?;
                    }
                    parser.part_after(RustTokenKind::Assign, parameter, field::DEFAULT_TYPE, Self::ty)?;
                }
            }
            parser.attach(list, parameter, field::NO);
            Ok(())
        })?;
        self.attach(node, list, field);
        Ok(())
    }

    /// The default of a constant parameter.
    fn parameter_value(&mut self, parameter: u32) -> ParseResult<()> {
        let value = match self.literal_kind() {
            Some(kind) => self.leaf(kind)?,
            None => match self.tok.kind {
                RustTokenKind::Name => self.leaf(kind::IDENTIFIER)?,
                RustTokenKind::Open(b'{') => self.inside(Self::block)?,
                _ => return Err(UnsupportedSyntax),
            },
        };
        self.add(parameter, value, field::VALUE);
        Ok(())
    }

    pub(super) fn bounds(&mut self, node: u32) -> ParseResult<()> {
        self.part(node, field::BOUNDS, Self::bound_list)
    }

    /// `: A + 'b + for<'c> D<'c>`.
    fn bound_list(&mut self) -> ParseResult<u32> {
        let list = self.begin_with(RustTokenKind::Colon, kind::TRAIT_BOUNDS)?;
        loop {
            let bound = match self.tok.kind {
                RustTokenKind::Lifetime => self.leaf(kind::LIFETIME)?,
                RustTokenKind::Word(Word::For) => self.higher_ranked()?,
                _ => self.type_alone()?,
            };
            self.add(list, bound, field::NO);
            if !self.eat(RustTokenKind::Plus)? {
                return Ok(self.close(list));
            }
        }
    }

    /// `for<'a> T`.
    fn higher_ranked(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::HIGHER_RANKED_TRAIT_BOUND);
        self.expect_word(Word::For)?;
        self.deeper(|parser| parser.type_parameters_of(node, field::TYPE_PARAMETERS))?;
        self.last(node, field::TYPE, Self::type_alone)
    }

    pub(super) fn where_clause(&mut self, node: u32) -> ParseResult<()> {
        if !self.at_word(Word::Where) {
            return Ok(());
        }
        let clause = self.begin(kind::WHERE_CLAUSE)?;
        while !matches!(self.tok.kind, RustTokenKind::Open(b'{') | RustTokenKind::Semicolon | RustTokenKind::Assign) {
            let predicate = self.open(kind::WHERE_PREDICATE);
            let left = match self.tok.kind {
                RustTokenKind::Lifetime => self.leaf(kind::LIFETIME)?,
                RustTokenKind::Word(Word::For) => self.higher_ranked()?,
                _ => self.type_alone()?,
            };
            self.add(predicate, left, field::LEFT);
            self.bounds(predicate)?;
            self.attach(clause, predicate, field::NO);
            if !self.eat(RustTokenKind::Comma)? {
                break;
            }
        }
        self.attach(node, clause, field::NO);
        Ok(())
    }

    /// The kind of a literal in the tree; `None` if the next token is not one.
    pub(super) fn literal_kind(&self) -> Option<u16> {
        Some(match self.tok.kind {
            RustTokenKind::Int => kind::INTEGER_LITERAL,
            RustTokenKind::Float => kind::FLOAT_LITERAL,
            RustTokenKind::Str => kind::STRING_LITERAL,
            RustTokenKind::RawStr => kind::RAW_STRING_LITERAL,
            RustTokenKind::Char => kind::CHAR_LITERAL,
            RustTokenKind::Word(Word::True | Word::False) => kind::BOOLEAN_LITERAL,
            _ => return None,
        })
    }

    /// A `_` that matches anything.
    pub(super) fn blank(&mut self) -> ParseResult<u32> {
        let node = self.tree.push(kind::SIGN_BLANK, 0, self.tok.start, self.tok.end);
        self.advance()?;
        Ok(node)
    }
}
