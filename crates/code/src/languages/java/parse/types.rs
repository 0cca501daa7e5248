//! Java's types, annotations and modifiers.

use super::lex::{JavaTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax};

impl Parser<'_> {
    /// A type, with or without annotations.
    pub(super) fn ty(&mut self) -> ParseResult<u32> {
        self.deeper(|parser| {
            if !parser.at(JavaTokenKind::At) {
                return parser.plain_type();
            }
            let node = parser.open(kind::ANNOTATED_TYPE);
            parser.annotations(node)?;
            parser.last(node, field::NO, Self::plain_type)
        })
    }

    pub(super) fn annotations(&mut self, node: u32) -> ParseResult<()> {
        while self.at(JavaTokenKind::At) {
            self.part(node, field::NO, Self::annotation)?;
        }
        Ok(())
    }

    fn plain_type(&mut self) -> ParseResult<u32> {
        let element = self.element_type()?;
        let Some(dimensions) = self.dimensions()? else { return Ok(element) };
        let node = self.around(kind::ARRAY_TYPE, element, field::ELEMENT);
        self.add(node, dimensions, field::DIMENSIONS);
        Ok(self.close(node))
    }

    /// `[][]`, each with optional annotations; `None` if there is none.
    pub(super) fn dimensions(&mut self) -> ParseResult<Option<u32>> {
        if !self.opens_dimension()? {
            return Ok(None);
        }
        let node = self.open(kind::DIMENSIONS);
        while self.opens_dimension()? {
            self.annotations(node)?;
            self.mark(node, kind::SIGN_BRACKET, field::NO)?;
            self.expect(JavaTokenKind::Close(b']'))?;
        }
        Ok(Some(self.close(node)))
    }

    fn opens_dimension(&mut self) -> ParseResult<bool> {
        match self.tok.kind {
            JavaTokenKind::Open(b'[') => Ok(self.peek()?.kind == JavaTokenKind::Close(b']')),
            JavaTokenKind::At => {
                let guess = self.guess();
                let node = self.open(kind::DIMENSIONS);
                let opens = self.annotations(node).is_ok()
                    && self.at(JavaTokenKind::Open(b'['))
                    && self.peek()?.kind == JavaTokenKind::Close(b']');
                self.back_to(guess)?;
                Ok(opens)
            }
            _ => Ok(false),
        }
    }

    /// A type without dimensions.
    pub(super) fn element_type(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            JavaTokenKind::Word(word) => match primitive(word) {
                Some(kind) => self.leaf(kind),
                None => Err(UnsupportedSyntax),
            },
            JavaTokenKind::Name => self.class_type(),
            _ => Err(UnsupportedSyntax),
        }
    }

    /// `a.b.C<D>.E`
    pub(super) fn class_type(&mut self) -> ParseResult<u32> {
        self.require(JavaTokenKind::Name)?;
        let mut ty = self.leaf(kind::TYPE_IDENTIFIER)?;
        loop {
            match self.tok.kind {
                JavaTokenKind::Less => {
                    let node = self.around(kind::GENERIC_TYPE, ty, field::NO);
                    self.part(node, field::NO, Self::type_arguments)?;
                    ty = self.close(node);
                }
                JavaTokenKind::Dot => {
                    if !matches!(self.peek()?.kind, JavaTokenKind::Name | JavaTokenKind::At) {
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

    pub(super) fn type_arguments(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(JavaTokenKind::Less, kind::TYPE_ARGUMENTS)?;
        self.list(node, field::NO, JavaTokenKind::Greater, Self::type_argument)?;
        Ok(self.close(node))
    }

    fn type_argument(&mut self) -> ParseResult<u32> {
        let guess = self.guess();
        let node = self.open(kind::WILDCARD);
        self.annotations(node)?;
        if !self.eat(JavaTokenKind::Question)? {
            self.back_to(guess)?;
            return self.ty();
        }
        if matches!(self.tok.kind, JavaTokenKind::Word(Word::Extends | Word::Super)) {
            self.advance()?;
            self.part(node, field::NO, Self::ty)?;
        }
        Ok(self.close(node))
    }

    pub(super) fn type_parameters(&mut self, node: u32) -> ParseResult<()> {
        if !self.at(JavaTokenKind::Less) {
            return Ok(());
        }
        let list = self.begin(kind::TYPE_PARAMETERS)?;
        loop {
            let parameter = self.open(kind::TYPE_PARAMETER);
            self.annotations(parameter)?;
            self.part_name(parameter, field::NO, kind::TYPE_IDENTIFIER)?;
            if self.at_word(Word::Extends) {
                let bound = self.begin(kind::TYPE_BOUND)?;
                self.types(bound, JavaTokenKind::BitAnd)?;
                self.attach(parameter, bound, field::NO);
            }
            self.attach(list, parameter, field::NO);
            if !self.eat(JavaTokenKind::Comma)? {
                break;
            }
        }
        self.expect(JavaTokenKind::Greater)?;
        self.attach(node, list, field::TYPE_PARAMETERS);
        Ok(())
    }

    /// Types separated by a token.
    pub(super) fn types(&mut self, node: u32, between: JavaTokenKind) -> ParseResult<()> {
        self.chain(node, field::NO, between, Self::ty)
    }

    // --- annotations and modifiers ---

    /// Annotations and modifiers; `None` if there are none.
    pub(super) fn modifiers(&mut self) -> ParseResult<Option<u32>> {
        let node = self.open(kind::MODIFIERS);
        let mut any = false;
        loop {
            let first = self.tok.kind;
            let kind = match first {
                JavaTokenKind::At if self.peek()?.kind != JavaTokenKind::Word(Word::Interface) => {
                    self.part(node, field::NO, Self::annotation)?;
                    any = true;
                    continue;
                }
                JavaTokenKind::Word(word) => match modifier(word) {
                    // A block, not a modifier.
                    Some(_)
                        if matches!(
                            self.peek()?.kind,
                            JavaTokenKind::Open(b'{' | b'(') | JavaTokenKind::Colon | JavaTokenKind::Arrow
                        ) =>
                    {
                        break;
                    }
                    Some(kind) => kind,
                    None => break,
                },
                JavaTokenKind::Name if self.at_name("sealed") && self.before_declaration()? => kind::WORD_OTHER,
                JavaTokenKind::Name if self.at_name("non") && self.peek()?.kind == JavaTokenKind::Minus => {
                    return Err(UnsupportedSyntax);
                }
                _ => break,
            };
            self.mark(node, kind, field::NO)?;
            any = true;
        }
        Ok(any.then(|| self.close(node)))
    }

    fn before_declaration(&mut self) -> ParseResult<bool> {
        let next = self.peek()?;
        Ok(match next.kind {
            JavaTokenKind::Word(Word::Class | Word::Interface) => true,
            JavaTokenKind::Word(word) => modifier(word).is_some(),
            _ => false,
        })
    }

    pub(super) fn annotation(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(JavaTokenKind::At, kind::MARKER_ANNOTATION)?;
        self.part(node, field::NAME, Self::dotted)?;
        if self.at(JavaTokenKind::Open(b'(')) {
            self.tree.set_kind(node, kind::ANNOTATION);
            let list = self.begin(kind::ANNOTATION_ARGUMENT_LIST)?;
            self.elements(JavaTokenKind::Close(b')'), |parser| {
                let argument = if parser.at(JavaTokenKind::Name) && parser.peek()?.kind == JavaTokenKind::Assign {
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
    pub(super) fn element_value(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            JavaTokenKind::At => self.deeper(Self::annotation),
            JavaTokenKind::Open(b'{') => {
                self.listed(kind::ELEMENT_VALUE_ARRAY_INITIALIZER, field::NO, JavaTokenKind::Close(b'}'), |parser| {
                    parser.deeper(Self::element_value)
                })
            }
            _ => self.expression(),
        }
    }

    /// `a.b.c` as one node, because only its text is used.
    pub(super) fn dotted(&mut self) -> ParseResult<u32> {
        let node = self.identifier()?;
        while self.at(JavaTokenKind::Dot) && self.peek()?.kind == JavaTokenKind::Name {
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
