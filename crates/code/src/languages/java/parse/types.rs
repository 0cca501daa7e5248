//! Java's types, annotations and modifiers.

use super::lex::{Tok, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure};

impl Parser<'_> {
    /// A type, with or without annotations.
    pub(super) fn ty(&mut self) -> Read<u32> {
        self.deeper(|parser| {
            if !parser.at(Tok::At) {
                return parser.plain_type();
            }
            let node = parser.open(kind::ANNOTATED_TYPE);
            parser.annotations(node)?;
            let ty = parser.plain_type()?;
            parser.add(node, ty, field::NO);
            Ok(parser.close(node))
        })
    }

    pub(super) fn annotations(&mut self, node: u32) -> Read<()> {
        while self.at(Tok::At) {
            let annotation = self.annotation()?;
            self.add(node, annotation, field::NO);
        }
        Ok(())
    }

    fn plain_type(&mut self) -> Read<u32> {
        let element = self.element_type()?;
        let Some(dimensions) = self.dimensions()? else { return Ok(element) };
        let node = self.around(kind::ARRAY_TYPE, element, field::ELEMENT);
        self.add(node, dimensions, field::DIMENSIONS);
        Ok(self.close(node))
    }

    /// `[][]`, each with optional annotations; `None` if there is none.
    pub(super) fn dimensions(&mut self) -> Read<Option<u32>> {
        if !self.opens_dimension()? {
            return Ok(None);
        }
        let node = self.open(kind::DIMENSIONS);
        while self.opens_dimension()? {
            self.annotations(node)?;
            self.mark(node, kind::SIGN_BRACKET, field::NO)?;
            self.expect(Tok::Close(b']'))?;
        }
        Ok(Some(self.close(node)))
    }

    fn opens_dimension(&mut self) -> Read<bool> {
        match self.tok.kind {
            Tok::Open(b'[') => Ok(self.peek()?.kind == Tok::Close(b']')),
            Tok::At => {
                let guess = self.guess();
                let node = self.open(kind::DIMENSIONS);
                let opens =
                    self.annotations(node).is_ok() && self.at(Tok::Open(b'[')) && self.peek()?.kind == Tok::Close(b']');
                self.go_back(guess)?;
                Ok(opens)
            }
            _ => Ok(false),
        }
    }

    /// A type without dimensions.
    pub(super) fn element_type(&mut self) -> Read<u32> {
        match self.tok.kind {
            Tok::Word(word) => match primitive(word) {
                Some(kind) => self.leaf(kind),
                None => Err(Unsure),
            },
            Tok::Name => self.class_type(),
            _ => Err(Unsure),
        }
    }

    /// `a.b.C<D>.E`
    pub(super) fn class_type(&mut self) -> Read<u32> {
        if !self.at(Tok::Name) {
            return Err(Unsure);
        }
        let mut ty = self.leaf(kind::TYPE_IDENTIFIER)?;
        loop {
            match self.tok.kind {
                Tok::Less => {
                    let node = self.around(kind::GENERIC_TYPE, ty, field::NO);
                    let arguments = self.type_arguments()?;
                    self.add(node, arguments, field::NO);
                    ty = self.close(node);
                }
                Tok::Dot => {
                    if !matches!(self.peek()?.kind, Tok::Name | Tok::At) {
                        return Ok(ty);
                    }
                    let node = self.around(kind::SCOPED_TYPE_IDENTIFIER, ty, field::NO);
                    self.advance()?;
                    self.annotations(node)?;
                    if !self.at(Tok::Name) {
                        return Err(Unsure);
                    }
                    let name = self.leaf(kind::TYPE_IDENTIFIER)?;
                    self.add(node, name, field::NO);
                    ty = self.close(node);
                }
                _ => return Ok(ty),
            }
        }
    }

    pub(super) fn type_arguments(&mut self) -> Read<u32> {
        let node = self.open(kind::TYPE_ARGUMENTS);
        self.expect(Tok::Less)?;
        while !self.at(Tok::Greater) {
            let argument = self.type_argument()?;
            self.add(node, argument, field::NO);
            if !self.eat(Tok::Comma)? && !self.at(Tok::Greater) {
                return Err(Unsure);
            }
        }
        self.advance()?;
        Ok(self.close(node))
    }

    fn type_argument(&mut self) -> Read<u32> {
        let guess = self.guess();
        let node = self.open(kind::WILDCARD);
        self.annotations(node)?;
        if !self.eat(Tok::Question)? {
            self.go_back(guess)?;
            return self.ty();
        }
        if matches!(self.tok.kind, Tok::Word(Word::Extends | Word::Super)) {
            self.advance()?;
            let bound = self.ty()?;
            self.add(node, bound, field::NO);
        }
        Ok(self.close(node))
    }

    pub(super) fn type_parameters(&mut self, node: u32) -> Read<()> {
        if !self.at(Tok::Less) {
            return Ok(());
        }
        let list = self.open(kind::TYPE_PARAMETERS);
        self.advance()?;
        loop {
            let parameter = self.open(kind::TYPE_PARAMETER);
            self.annotations(parameter)?;
            if !self.at(Tok::Name) {
                return Err(Unsure);
            }
            let name = self.leaf(kind::TYPE_IDENTIFIER)?;
            self.add(parameter, name, field::NO);
            if self.at_word(Word::Extends) {
                let bound = self.open(kind::TYPE_BOUND);
                self.advance()?;
                self.types(bound, Tok::BitAnd)?;
                self.close(bound);
                self.add(parameter, bound, field::NO);
            }
            self.close(parameter);
            self.add(list, parameter, field::NO);
            if !self.eat(Tok::Comma)? {
                break;
            }
        }
        self.expect(Tok::Greater)?;
        self.close(list);
        self.add(node, list, field::TYPE_PARAMETERS);
        Ok(())
    }

    /// Types separated by a token.
    pub(super) fn types(&mut self, node: u32, between: Tok) -> Read<()> {
        loop {
            let ty = self.ty()?;
            self.add(node, ty, field::NO);
            if !self.eat(between)? {
                return Ok(());
            }
        }
    }

    // --- annotations and modifiers ---

    /// Annotations and modifiers; `None` if there are none.
    pub(super) fn modifiers(&mut self) -> Read<Option<u32>> {
        let node = self.open(kind::MODIFIERS);
        let mut any = false;
        loop {
            let first = self.tok.kind;
            let kind = match first {
                Tok::At if self.peek()?.kind != Tok::Word(Word::Interface) => {
                    let annotation = self.annotation()?;
                    self.add(node, annotation, field::NO);
                    any = true;
                    continue;
                }
                Tok::Word(word) => match modifier(word) {
                    // A block, not a modifier.
                    Some(_) if matches!(self.peek()?.kind, Tok::Open(b'{' | b'(') | Tok::Colon | Tok::Arrow) => break,
                    Some(kind) => kind,
                    None => break,
                },
                Tok::Name if self.at_name("sealed") && self.before_declaration()? => kind::WORD_OTHER,
                Tok::Name if self.at_name("non") && self.peek()?.kind == Tok::Minus => return Err(Unsure),
                _ => break,
            };
            self.mark(node, kind, field::NO)?;
            any = true;
        }
        Ok(any.then(|| self.close(node)))
    }

    fn before_declaration(&mut self) -> Read<bool> {
        let next = self.peek()?;
        Ok(match next.kind {
            Tok::Word(Word::Class | Word::Interface) => true,
            Tok::Word(word) => modifier(word).is_some(),
            _ => false,
        })
    }

    pub(super) fn annotation(&mut self) -> Read<u32> {
        let node = self.open(kind::MARKER_ANNOTATION);
        self.expect(Tok::At)?;
        let name = self.dotted()?;
        self.add(node, name, field::NAME);
        if self.at(Tok::Open(b'(')) {
            self.tree.set_kind(node, kind::ANNOTATION);
            let list = self.open(kind::ANNOTATION_ARGUMENT_LIST);
            self.advance()?;
            while !self.at(Tok::Close(b')')) {
                let argument = if self.at(Tok::Name) && self.peek()?.kind == Tok::Assign {
                    let key = self.leaf(kind::IDENTIFIER)?;
                    let pair = self.around(kind::ELEMENT_VALUE_PAIR, key, field::KEY);
                    self.advance()?;
                    let value = self.element_value()?;
                    self.add(pair, value, field::VALUE);
                    self.close(pair)
                } else {
                    self.element_value()?
                };
                self.add(list, argument, field::NO);
                if !self.eat(Tok::Comma)? && !self.at(Tok::Close(b')')) {
                    return Err(Unsure);
                }
            }
            self.advance()?;
            self.close(list);
            self.add(node, list, field::ARGUMENTS);
        }
        Ok(self.close(node))
    }

    /// The value of an element of an annotation.
    pub(super) fn element_value(&mut self) -> Read<u32> {
        match self.tok.kind {
            Tok::At => self.deeper(Self::annotation),
            Tok::Open(b'{') => {
                let node = self.open(kind::ELEMENT_VALUE_ARRAY_INITIALIZER);
                self.advance()?;
                while !self.at(Tok::Close(b'}')) {
                    let value = self.deeper(Self::element_value)?;
                    self.add(node, value, field::NO);
                    if !self.eat(Tok::Comma)? && !self.at(Tok::Close(b'}')) {
                        return Err(Unsure);
                    }
                }
                self.advance()?;
                Ok(self.close(node))
            }
            _ => self.expression(),
        }
    }

    /// `a.b.c` as one node, because only its text is used.
    pub(super) fn dotted(&mut self) -> Read<u32> {
        let node = self.identifier()?;
        while self.at(Tok::Dot) && self.peek()?.kind == Tok::Name {
            self.advance()?;
            self.advance()?;
            self.tree.set_kind(node, kind::SCOPED_IDENTIFIER);
            self.close(node);
        }
        Ok(node)
    }
}

pub(super) fn primitive(word: Word) -> Option<u16> {
    Some(match word {
        Word::Byte | Word::Short | Word::Int | Word::Long | Word::Char => kind::INTEGRAL_TYPE,
        Word::Float | Word::Double => kind::FLOATING_POINT_TYPE,
        Word::Boolean => kind::BOOLEAN_TYPE,
        Word::Void => kind::VOID_TYPE,
        _ => return None,
    })
}

pub(super) fn modifier(word: Word) -> Option<u16> {
    Some(match word {
        Word::Public => kind::WORD_PUBLIC,
        Word::Protected => kind::WORD_PROTECTED,
        Word::Private => kind::WORD_PRIVATE,
        Word::Abstract => kind::WORD_ABSTRACT,
        Word::Static => kind::WORD_STATIC,
        Word::Final => kind::WORD_FINAL,
        Word::Default => kind::WORD_DEFAULT,
        Word::Native => kind::WORD_NATIVE,
        Word::Synchronized | Word::Transient | Word::Volatile | Word::Strictfp => kind::WORD_OTHER,
        _ => return None,
    })
}
