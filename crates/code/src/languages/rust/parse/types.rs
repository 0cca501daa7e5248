//! Types, their arguments, parameters and bounds.

use super::lex::{Tok, Word, is_primitive};
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure};

impl Parser<'_> {
    /// A type with optional additional bounds.
    pub(super) fn ty(&mut self) -> Read<u32> {
        let mut ty = match self.tok.kind {
            Tok::Lifetime => self.leaf(kind::LIFETIME)?,
            _ => self.type_alone()?,
        };
        while self.at(Tok::Plus) {
            let node = self.around(kind::BOUNDED_TYPE, ty, field::NO);
            self.advance()?;
            let more = match self.tok.kind {
                Tok::Lifetime => self.leaf(kind::LIFETIME)?,
                Tok::Word(Word::Use) => self.use_bounds()?,
                _ => self.type_alone()?,
            };
            self.add(node, more, field::NO);
            ty = self.close(node);
        }
        if self.tree.kind(ty) == kind::LIFETIME { Err(Unsure) } else { Ok(ty) }
    }

    pub(super) fn add_type(&mut self, node: u32) -> Read<()> {
        let ty = self.ty()?;
        self.add(node, ty, field::TYPE);
        Ok(())
    }

    /// `use<'a, T>`.
    fn use_bounds(&mut self) -> Read<u32> {
        let node = self.open(kind::USE_BOUNDS);
        self.advance()?;
        self.expect(Tok::Less)?;
        while !self.at(Tok::Greater) {
            if !matches!(self.tok.kind, Tok::Lifetime | Tok::Name) {
                return Err(Unsure);
            }
            self.advance()?;
            self.comma(Tok::Greater)?;
        }
        self.advance()?;
        Ok(self.close(node))
    }

    /// A type without additional bounds.
    pub(super) fn type_alone(&mut self) -> Read<u32> {
        self.deeper(Self::type_inner)
    }

    fn type_inner(&mut self) -> Read<u32> {
        let node = self.open(kind::REFERENCE_TYPE);
        match self.tok.kind {
            Tok::And => {
                self.advance()?;
                self.eat(Tok::Lifetime)?;
                self.eat_word(Word::Mut)?;
                let ty = self.type_alone()?;
                self.add(node, ty, field::TYPE);
            }
            Tok::Star => {
                self.tree.set_kind(node, kind::POINTER_TYPE);
                self.advance()?;
                if !self.eat_word(Word::Const)? && !self.eat_word(Word::Mut)? {
                    return Err(Unsure);
                }
                let ty = self.type_alone()?;
                self.add(node, ty, field::TYPE);
            }
            Tok::Bang => {
                self.tree.set_kind(node, kind::NEVER_TYPE);
                self.advance()?;
            }
            Tok::Open(b'(') => {
                self.advance()?;
                let unit = self.at(Tok::Close(b')'));
                self.tree.set_kind(node, if unit { kind::UNIT_TYPE } else { kind::TUPLE_TYPE });
                while !self.at(Tok::Close(b')')) {
                    let ty = self.ty()?;
                    self.add(node, ty, field::NO);
                    self.comma(Tok::Close(b')'))?;
                }
                self.advance()?;
            }
            Tok::Open(b'[') => {
                self.tree.set_kind(node, kind::ARRAY_TYPE);
                self.advance()?;
                let element = self.ty()?;
                self.add(node, element, field::ELEMENT);
                if self.eat(Tok::Semicolon)? {
                    let length = self.inside(Self::expression)?;
                    self.add(node, length, field::LENGTH);
                }
                self.expect(Tok::Close(b']'))?;
            }
            Tok::Question => {
                self.tree.set_kind(node, kind::REMOVED_TRAIT_BOUND);
                self.advance()?;
                let ty = self.type_alone()?;
                self.add(node, ty, field::NO);
            }
            Tok::Word(Word::Impl) => {
                self.tree.set_kind(node, kind::ABSTRACT_TYPE);
                self.advance()?;
                if self.eat_word(Word::For)? {
                    self.type_parameters_of(node, field::NO)?;
                }
                self.bound_of(node)?;
            }
            Tok::Word(Word::Dyn) => {
                self.tree.set_kind(node, kind::DYNAMIC_TYPE);
                self.advance()?;
                if self.at_word(Word::For) {
                    let ty = self.higher_ranked()?;
                    self.add(node, ty, field::TRAIT);
                } else {
                    self.bound_of(node)?;
                }
            }
            Tok::Word(Word::Fn | Word::Unsafe | Word::Extern) => {
                self.tree.set_kind(node, kind::FUNCTION_TYPE);
                self.function_type(node)?;
            }
            Tok::Word(Word::For) => {
                // `for<'a> fn(&'a T)`; before a trait it is a bound.
                self.tree.set_kind(node, kind::FUNCTION_TYPE);
                self.advance()?;
                let nodes = self.tree.len();
                let given_up = self.open(kind::TYPE_PARAMETERS);
                self.type_parameters_of(given_up, field::NO)?;
                self.tree.truncate(nodes);
                if !matches!(self.tok.kind, Tok::Word(Word::Fn | Word::Unsafe | Word::Extern)) {
                    return Err(Unsure);
                }
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
    fn bound_of(&mut self, node: u32) -> Read<()> {
        let ty = match self.tok.kind {
            Tok::Name | Tok::Path | Tok::Word(Word::SelfValue | Word::Super | Word::Crate) => self.path_type()?,
            Tok::Open(b'(') | Tok::Question => self.type_alone()?,
            _ => return Err(Unsure),
        };
        if self.tree.kind(ty) == kind::MACRO_INVOCATION {
            return Err(Unsure);
        }
        self.add(node, ty, field::TRAIT);
        Ok(())
    }

    /// `unsafe extern "C" fn(A, b: B) -> C`.
    fn function_type(&mut self, node: u32) -> Read<()> {
        self.eat_word(Word::Unsafe)?;
        if self.eat_word(Word::Extern)? {
            self.eat(Tok::Str)?;
        }
        self.expect_word(Word::Fn)?;
        let list = self.open(kind::PARAMETERS);
        self.expect(Tok::Open(b'('))?;
        while !self.at(Tok::Close(b')')) {
            self.attributes(list)?;
            let named = matches!(self.tok.kind, Tok::Name | Tok::Blank) && self.peek()?.kind == Tok::Colon;
            let part = match self.tok.kind {
                Tok::Ellipsis => self.leaf(kind::VARIADIC_PARAMETER)?,
                _ if named => self.parameter()?,
                _ => self.ty()?,
            };
            self.add(list, part, field::NO);
            self.comma(Tok::Close(b')'))?;
        }
        self.advance()?;
        self.close(list);
        self.add(node, list, field::PARAMETERS);
        self.return_type_alone(node)
    }

    /// A result type without additional bounds, which belong to the whole type.
    fn return_type_alone(&mut self, node: u32) -> Read<()> {
        if self.eat(Tok::Arrow)? {
            let ty = self.type_alone()?;
            self.add(node, ty, field::RETURN_TYPE);
        }
        Ok(())
    }

    /// `a::B<C>::D`, `Fn(A) -> B`, `<T as A>::B`, or a macro.
    fn path_type(&mut self) -> Read<u32> {
        let start = self.tok.start;
        if self.at(Tok::Blank) {
            return self.leaf(kind::TYPE_IDENTIFIER);
        }
        let mut path = match self.tok.kind {
            Tok::Less => Some(self.bracketed()?),
            Tok::Path => None,
            _ => {
                let primitive = self.at(Tok::Name) && is_primitive(self.text(self.tok).as_bytes());
                let segment = self.segment()?;
                if primitive && !self.at(Tok::Path) {
                    self.tree.set_kind(segment, kind::PRIMITIVE_TYPE);
                    return Ok(segment);
                }
                Some(segment)
            }
        };
        loop {
            match self.tok.kind {
                Tok::Path => {
                    if matches!(self.peek()?.kind, Tok::Less | Tok::Open(_)) {
                        return Err(Unsure);
                    }
                    self.advance()?;
                    let name = self.segment()?;
                    path = Some(self.scoped(kind::SCOPED_IDENTIFIER, start, path, name));
                }
                Tok::Less if path.is_some_and(|path| self.is_named_type(path)) => {
                    let of = self.as_type(path.ok_or(Unsure)?);
                    let node = self.around(kind::GENERIC_TYPE, of, field::TYPE);
                    let arguments = self.type_arguments()?;
                    self.add(node, arguments, field::TYPE_ARGUMENTS);
                    path = Some(self.close(node));
                }
                _ => break,
            }
        }
        let path = path.ok_or(Unsure)?;
        match self.tok.kind {
            Tok::Open(b'(') if self.is_named_type(path) => {
                let of = self.as_type(path);
                let node = self.around(kind::FUNCTION_TYPE, of, field::TRAIT);
                let list = self.open(kind::PARAMETERS);
                self.advance()?;
                while !self.at(Tok::Close(b')')) {
                    let ty = self.ty()?;
                    self.add(list, ty, field::NO);
                    self.comma(Tok::Close(b')'))?;
                }
                self.advance()?;
                self.close(list);
                self.add(node, list, field::PARAMETERS);
                self.return_type_alone(node)?;
                Ok(self.close(node))
            }
            Tok::Bang if self.is_named_type(path) => self.macro_invocation(path),
            _ => match self.tree.kind(path) {
                kind::IDENTIFIER | kind::SCOPED_IDENTIFIER => Ok(self.as_type(path)),
                kind::GENERIC_TYPE => Ok(path),
                _ => Err(Unsure),
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
    pub(super) fn bracketed(&mut self) -> Read<u32> {
        let node = self.open(kind::BRACKETED_TYPE);
        self.expect(Tok::Less)?;
        let mut inner = self.ty()?;
        if self.eat_word(Word::As)? {
            let qualified = self.around(kind::QUALIFIED_TYPE, inner, field::TYPE);
            let alias = self.ty()?;
            self.add(qualified, alias, field::ALIAS);
            inner = self.close(qualified);
        }
        self.add(node, inner, field::NO);
        self.expect(Tok::Greater)?;
        if !self.at(Tok::Path) {
            return Err(Unsure);
        }
        Ok(self.close(node))
    }

    pub(super) fn type_arguments(&mut self) -> Read<u32> {
        let list = self.open(kind::TYPE_ARGUMENTS);
        self.expect(Tok::Less)?;
        if self.at(Tok::Greater) {
            return Err(Unsure);
        }
        while !self.at(Tok::Greater) {
            let argument = self.type_argument()?;
            self.add(list, argument, field::NO);
            if self.at(Tok::Colon) {
                let bounds = self.bound_list()?;
                self.add(list, bounds, field::NO);
            }
            self.comma(Tok::Greater)?;
        }
        self.advance()?;
        Ok(self.close(list))
    }

    fn type_argument(&mut self) -> Read<u32> {
        let first = self.tok.kind;
        match first {
            Tok::Lifetime if self.peek()?.kind != Tok::Plus => return self.leaf(kind::LIFETIME),
            Tok::Open(b'{') => return self.inside(Self::block),
            Tok::Name => {}
            _ => {
                return match self.literal_kind() {
                    Some(kind) => self.leaf(kind),
                    None => self.ty(),
                };
            }
        }
        let ty = self.ty()?;
        if self.at(Tok::Assign) { self.type_binding(ty) } else { Ok(ty) }
    }

    /// `Item = T`, after a name that was read as a type.
    fn type_binding(&mut self, of: u32) -> Read<u32> {
        let start = self.tree.start(of);
        let (name, arguments) = match self.tree.kind(of) {
            kind::GENERIC_TYPE => {
                let (name, arguments) = self.tree.take_ends(of).ok_or(Unsure)?;
                (name, Some(arguments))
            }
            _ => (of, None),
        };
        if self.tree.kind(name) != kind::TYPE_IDENTIFIER {
            return Err(Unsure);
        }
        let node = self.open_at(kind::TYPE_BINDING, start);
        self.add(node, name, field::NAME);
        if let Some(arguments) = arguments {
            self.add(node, arguments, field::TYPE_ARGUMENTS);
        }
        self.advance()?;
        self.add_type(node)?;
        Ok(self.close(node))
    }

    // --- parameters and bounds ---

    pub(super) fn type_parameters(&mut self, node: u32) -> Read<()> {
        if self.at(Tok::Less) { self.type_parameters_of(node, field::TYPE_PARAMETERS) } else { Ok(()) }
    }

    fn type_parameters_of(&mut self, node: u32, field: u8) -> Read<()> {
        let list = self.open(kind::TYPE_PARAMETERS);
        self.expect(Tok::Less)?;
        while !self.at(Tok::Greater) {
            self.attributes(list)?;
            let parameter = self.open(kind::TYPE_PARAMETER);
            match self.tok.kind {
                Tok::Lifetime => {
                    self.tree.set_kind(parameter, kind::LIFETIME_PARAMETER);
                    let name = self.leaf(kind::LIFETIME)?;
                    self.add(parameter, name, field::NAME);
                    if self.at(Tok::Colon) {
                        self.bounds(parameter)?;
                    }
                }
                Tok::Word(Word::Const) => {
                    self.tree.set_kind(parameter, kind::CONST_PARAMETER);
                    self.advance()?;
                    self.add_name(parameter, kind::IDENTIFIER)?;
                    self.expect(Tok::Colon)?;
                    self.add_type(parameter)?;
                    if self.eat(Tok::Assign)? {
                        self.parameter_value(parameter)?;
                    }
                }
                _ => {
                    self.add_name(parameter, kind::TYPE_IDENTIFIER)?;
                    if self.at(Tok::Colon) {
                        self.bounds(parameter)?;
                    }
                    if self.eat(Tok::Assign)? {
                        let ty = self.ty()?;
                        self.add(parameter, ty, field::DEFAULT_TYPE);
                    }
                }
            }
            self.close(parameter);
            self.add(list, parameter, field::NO);
            self.comma(Tok::Greater)?;
        }
        self.advance()?;
        self.close(list);
        self.add(node, list, field);
        Ok(())
    }

    /// The default of a constant parameter.
    fn parameter_value(&mut self, parameter: u32) -> Read<()> {
        let value = match self.literal_kind() {
            Some(kind) => self.leaf(kind)?,
            None => match self.tok.kind {
                Tok::Name => self.leaf(kind::IDENTIFIER)?,
                Tok::Open(b'{') => self.inside(Self::block)?,
                _ => return Err(Unsure),
            },
        };
        self.add(parameter, value, field::VALUE);
        Ok(())
    }

    pub(super) fn bounds(&mut self, node: u32) -> Read<()> {
        let bounds = self.bound_list()?;
        self.add(node, bounds, field::BOUNDS);
        Ok(())
    }

    /// `: A + 'b + for<'c> D<'c>`.
    fn bound_list(&mut self) -> Read<u32> {
        let list = self.open(kind::TRAIT_BOUNDS);
        self.expect(Tok::Colon)?;
        loop {
            let bound = match self.tok.kind {
                Tok::Lifetime => self.leaf(kind::LIFETIME)?,
                Tok::Word(Word::For) => self.higher_ranked()?,
                _ => self.type_alone()?,
            };
            self.add(list, bound, field::NO);
            if !self.eat(Tok::Plus)? {
                return Ok(self.close(list));
            }
        }
    }

    /// `for<'a> T`.
    fn higher_ranked(&mut self) -> Read<u32> {
        let node = self.open(kind::HIGHER_RANKED_TRAIT_BOUND);
        self.expect_word(Word::For)?;
        self.deeper(|parser| parser.type_parameters_of(node, field::TYPE_PARAMETERS))?;
        let ty = self.type_alone()?;
        self.add(node, ty, field::TYPE);
        Ok(self.close(node))
    }

    pub(super) fn where_clause(&mut self, node: u32) -> Read<()> {
        if !self.at_word(Word::Where) {
            return Ok(());
        }
        let clause = self.open(kind::WHERE_CLAUSE);
        self.advance()?;
        while !matches!(self.tok.kind, Tok::Open(b'{') | Tok::Semicolon | Tok::Assign) {
            let predicate = self.open(kind::WHERE_PREDICATE);
            let left = match self.tok.kind {
                Tok::Lifetime => self.leaf(kind::LIFETIME)?,
                Tok::Word(Word::For) => self.higher_ranked()?,
                _ => self.type_alone()?,
            };
            self.add(predicate, left, field::LEFT);
            self.bounds(predicate)?;
            self.close(predicate);
            self.add(clause, predicate, field::NO);
            if !self.eat(Tok::Comma)? {
                break;
            }
        }
        self.close(clause);
        self.add(node, clause, field::NO);
        Ok(())
    }

    /// The kind of a literal in the tree; `None` if the next token is not one.
    pub(super) fn literal_kind(&self) -> Option<u16> {
        Some(match self.tok.kind {
            Tok::Int => kind::INTEGER_LITERAL,
            Tok::Float => kind::FLOAT_LITERAL,
            Tok::Str => kind::STRING_LITERAL,
            Tok::RawStr => kind::RAW_STRING_LITERAL,
            Tok::Char => kind::CHAR_LITERAL,
            Tok::Word(Word::True | Word::False) => kind::BOOLEAN_LITERAL,
            _ => return None,
        })
    }

    /// A `_` that matches anything.
    pub(super) fn blank(&mut self) -> Read<u32> {
        let node = self.tree.push(kind::SIGN_BLANK, 0, self.tok.start, self.tok.end);
        self.advance()?;
        Ok(node)
    }
}
