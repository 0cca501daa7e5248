//! Declarations of TypeScript: types, interfaces, enums, namespaces, ambient declarations.

use super::lex::{EcmaTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax};

impl Parser<'_> {
    /// A keyword and the name of a type after it.
    fn named_declaration(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        self.part_name(node, field::NAME, kind::TYPE_IDENTIFIER)?;
        self.type_parameters(node)?;
        Ok(node)
    }

    pub(super) fn type_alias(&mut self) -> ParseResult<u32> {
        let node = self.named_declaration(kind::TYPE_ALIAS_DECLARATION)?;
        self.expect(EcmaTokenKind::Assign)?;
        self.part(node, field::VALUE, Self::ty)?;
        self.end()?;
        Ok(self.close(node))
    }

    pub(super) fn interface(&mut self) -> ParseResult<u32> {
        let node = self.named_declaration(kind::INTERFACE_DECLARATION)?;
        if self.at_word(Word::Extends) {
            let clause = self.begin(kind::EXTENDS_TYPE_CLAUSE)?;
            self.types(clause, field::TYPE)?;
            self.attach(node, clause, field::NO);
        }
        self.last(node, field::BODY, |parser| parser.members(kind::INTERFACE_BODY))
    }

    pub(super) fn enumeration(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::ENUM_DECLARATION);
        self.eat_word(Word::Const)?;
        self.expect(EcmaTokenKind::Word(Word::Enum))?;
        self.part(node, field::NAME, Self::identifier)?;
        let body = self.begin_with(EcmaTokenKind::Open(b'{'), kind::ENUM_BODY)?;
        self.elements(EcmaTokenKind::Close(b'}'), |parser| {
            let name = parser.property_name()?;
            if parser.at(EcmaTokenKind::Assign) {
                let member = parser.begin_around(kind::ENUM_ASSIGNMENT, name, field::NAME)?;
                parser.part(member, field::VALUE, |parser| parser.inside(Self::expression))?;
                parser.attach(body, member, field::NO);
            } else {
                parser.add(body, name, field::NAME);
            }
            Ok(())
        })?;
        Ok(self.attach_last(node, body, field::BODY))
    }

    /// `namespace A.B { … }`, `module "a" { … }`.
    pub(super) fn namespace(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        let name = if self.at(EcmaTokenKind::Str) { self.leaf(kind::STRING)? } else { self.dotted()? };
        self.add(node, name, field::NAME);
        self.part_at(EcmaTokenKind::Open(b'{'), node, field::BODY, Self::block)?;
        Ok(self.close(node))
    }

    /// `a.b.c` as one node, because only its text is used.
    pub(super) fn dotted(&mut self) -> ParseResult<u32> {
        let node = self.identifier()?;
        while self.eat(EcmaTokenKind::Dot)? {
            self.tree.set_kind(node, kind::NESTED_IDENTIFIER);
            self.require(EcmaTokenKind::Name)?;
            self.advance()?;
            self.close(node);
        }
        Ok(node)
    }

    /// `declare …`; `next` is the token after the keyword.
    pub(super) fn ambient(&mut self, next: EcmaTokenKind) -> ParseResult<u32> {
        if !matches!(next, EcmaTokenKind::Name | EcmaTokenKind::Word(_)) {
            return self.expression_statement();
        }
        let node = self.begin(kind::AMBIENT_DECLARATION)?;
        if self.at_name("global") {
            return self.global(node);
        }
        self.last(node, field::NO, |parser| parser.deeper(Self::declaration))
    }

    /// `global { … }`: declarations that are visible everywhere.
    pub(super) fn global(&mut self, node: u32) -> ParseResult<u32> {
        self.advance()?;
        self.last(node, field::NO, Self::block)
    }

    /// A declaration that may follow `export` or `declare`, possibly without a name.
    pub(super) fn declaration(&mut self) -> ParseResult<u32> {
        let declaration = match self.tok.kind {
            EcmaTokenKind::Name => match self.text(self.tok) {
                "namespace" => return self.namespace(kind::INTERNAL_MODULE),
                "let" | "async" | "type" | "interface" | "module" | "declare" | "abstract" => self.name_statement()?,
                _ => return Err(UnsupportedSyntax),
            },
            EcmaTokenKind::Word(Word::Var | Word::Const | Word::Enum | Word::Function | Word::Class) => {
                self.any_statement()?
            }
            _ => return Err(UnsupportedSyntax),
        };
        let statement = matches!(self.tree.kind(declaration), kind::EXPRESSION_STATEMENT | kind::LABELED_STATEMENT);
        if statement { Err(UnsupportedSyntax) } else { Ok(declaration) }
    }
}
