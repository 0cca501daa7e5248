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
            parser.last(node, field::NO, Self::plain_type)
        })
    }

    pub(super) fn annotations(&mut self, node: u32) -> Read<()> {
        while self.at(Tok::At) {
            self.part(node, field::NO, Self::annotation)?;
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
        self.require(Tok::Name)?;
        let mut ty = self.leaf(kind::TYPE_IDENTIFIER)?;
        loop {
            match self.tok.kind {
                Tok::Less => {
                    let node = self.around(kind::GENERIC_TYPE, ty, field::NO);
                    self.part(node, field::NO, Self::type_arguments)?;
                    ty = self.close(node);
                }
                Tok::Dot => {
                    if !matches!(self.peek()?.kind, Tok::Name | Tok::At) {
                        return Ok(ty);
                    }
                    let node = self.begin_around(kind::SCOPED_TYPE_IDENTIFIER, ty, field::NO)?;
                    self.annotations(node)?;
                    self.part_name(node, field::NO, kind::TYPE_IDENTIFIER)?;
                    ty = self.close(node);
                }
                _ => return Ok(ty),
            }
        }
    }

    pub(super) fn type_arguments(&mut self) -> Read<u32> {
        let node = self.begin_with(Tok::Less, kind::TYPE_ARGUMENTS)?;
        self.list(node, field::NO, Tok::Greater, Self::type_argument)?;
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
            self.part(node, field::NO, Self::ty)?;
        }
        Ok(self.close(node))
    }

    pub(super) fn type_parameters(&mut self, node: u32) -> Read<()> {
        if !self.at(Tok::Less) {
            return Ok(());
        }
        let list = self.begin(kind::TYPE_PARAMETERS)?;
        loop {
            let parameter = self.open(kind::TYPE_PARAMETER);
            self.annotations(parameter)?;
            self.part_name(parameter, field::NO, kind::TYPE_IDENTIFIER)?;
            if self.at_word(Word::Extends) {
                let bound = self.begin(kind::TYPE_BOUND)?;
                self.types(bound, Tok::BitAnd)?;
                self.attach(parameter, bound, field::NO);
            }
            self.attach(list, parameter, field::NO);
            if !self.eat(Tok::Comma)? {
                break;
            }
        }
        self.expect(Tok::Greater)?;
        self.attach(node, list, field::TYPE_PARAMETERS);
        Ok(())
    }

    /// Types separated by a token.
    pub(super) fn types(&mut self, node: u32, between: Tok) -> Read<()> {
        self.chain(node, field::NO, between, Self::ty)
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
                    self.part(node, field::NO, Self::annotation)?;
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
        let node = self.begin_with(Tok::At, kind::MARKER_ANNOTATION)?;
        self.part(node, field::NAME, Self::dotted)?;
        if self.at(Tok::Open(b'(')) {
            self.tree.set_kind(node, kind::ANNOTATION);
            let list = self.begin(kind::ANNOTATION_ARGUMENT_LIST)?;
            self.elements(Tok::Close(b')'), |parser| {
                let argument = if parser.at(Tok::Name) && parser.peek()?.kind == Tok::Assign {
                    let key = parser.leaf(kind::IDENTIFIER)?;
                    parser.infix(kind::ELEMENT_VALUE_PAIR, (key, field::KEY), field::VALUE, Self::element_value)?
                } else {
                    parser.element_value()?
                };
                parser.add(list, argument, field::NO);
                Ok(())
            })?;
            self.attach(node, list, field::ARGUMENTS);
        }
        Ok(self.close(node))
    }

    /// The value of an element of an annotation.
    pub(super) fn element_value(&mut self) -> Read<u32> {
        match self.tok.kind {
            Tok::At => self.deeper(Self::annotation),
            Tok::Open(b'{') => {
                self.listed(kind::ELEMENT_VALUE_ARRAY_INITIALIZER, field::NO, Tok::Close(b'}'), |parser| {
                    parser.deeper(Self::element_value)
                })
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
