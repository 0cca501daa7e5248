//! Declarations of TypeScript: types, interfaces, enums, namespaces, ambient declarations.

use super::lex::{Tok, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure};

impl Parser<'_> {
    /// A keyword and the name of a type after it.
    fn named_declaration(&mut self, kind: u16) -> Read<u32> {
        let node = self.open(kind);
        self.advance()?;
        if !self.at(Tok::Name) {
            return Err(Unsure);
        }
        let name = self.leaf(kind::TYPE_IDENTIFIER)?;
        self.add(node, name, field::NAME);
        self.type_parameters(node)?;
        Ok(node)
    }

    pub(super) fn type_alias(&mut self) -> Read<u32> {
        let node = self.named_declaration(kind::TYPE_ALIAS_DECLARATION)?;
        self.expect(Tok::Assign)?;
        let value = self.ty()?;
        self.add(node, value, field::VALUE);
        self.end()?;
        Ok(self.close(node))
    }

    pub(super) fn interface(&mut self) -> Read<u32> {
        let node = self.named_declaration(kind::INTERFACE_DECLARATION)?;
        if self.at_word(Word::Extends) {
            let clause = self.open(kind::EXTENDS_TYPE_CLAUSE);
            self.advance()?;
            self.types(clause, field::TYPE)?;
            self.close(clause);
            self.add(node, clause, field::NO);
        }
        let body = self.members(kind::INTERFACE_BODY)?;
        self.add(node, body, field::BODY);
        Ok(self.close(node))
    }

    pub(super) fn enumeration(&mut self) -> Read<u32> {
        let node = self.open(kind::ENUM_DECLARATION);
        self.eat_word(Word::Const)?;
        self.expect(Tok::Word(Word::Enum))?;
        let name = self.identifier()?;
        self.add(node, name, field::NAME);
        let body = self.open(kind::ENUM_BODY);
        self.expect(Tok::Open(b'{'))?;
        while !self.at(Tok::Close(b'}')) {
            let name = self.property_name()?;
            if self.at(Tok::Assign) {
                let member = self.around(kind::ENUM_ASSIGNMENT, name, field::NAME);
                self.advance()?;
                let value = self.inside(Self::expression)?;
                self.add(member, value, field::VALUE);
                self.close(member);
                self.add(body, member, field::NO);
            } else {
                self.add(body, name, field::NAME);
            }
            if !self.eat(Tok::Comma)? && !self.at(Tok::Close(b'}')) {
                return Err(Unsure);
            }
        }
        self.advance()?;
        self.close(body);
        self.add(node, body, field::BODY);
        Ok(self.close(node))
    }

    /// `namespace A.B { … }`, `module "a" { … }`.
    pub(super) fn namespace(&mut self, kind: u16) -> Read<u32> {
        let node = self.open(kind);
        self.advance()?;
        let name = if self.at(Tok::Str) { self.leaf(kind::STRING)? } else { self.dotted()? };
        self.add(node, name, field::NAME);
        if self.at(Tok::Open(b'{')) {
            let body = self.block()?;
            self.add(node, body, field::BODY);
        }
        Ok(self.close(node))
    }

    /// `a.b.c` as one node, because only its text is used.
    pub(super) fn dotted(&mut self) -> Read<u32> {
        let node = self.identifier()?;
        while self.eat(Tok::Dot)? {
            self.tree.set_kind(node, kind::NESTED_IDENTIFIER);
            if !self.at(Tok::Name) {
                return Err(Unsure);
            }
            self.advance()?;
            self.close(node);
        }
        Ok(node)
    }

    /// `declare …`; `next` is the token after the keyword.
    pub(super) fn ambient(&mut self, next: Tok) -> Read<u32> {
        if !matches!(next, Tok::Name | Tok::Word(_)) {
            return self.expression_statement();
        }
        let node = self.open(kind::AMBIENT_DECLARATION);
        self.advance()?;
        if self.at_name("global") {
            return self.global(node);
        }
        let declaration = self.deeper(Self::declaration)?;
        self.add(node, declaration, field::NO);
        Ok(self.close(node))
    }

    /// `global { … }`: declarations that are visible everywhere.
    pub(super) fn global(&mut self, node: u32) -> Read<u32> {
        self.advance()?;
        let block = self.block()?;
        self.add(node, block, field::NO);
        Ok(self.close(node))
    }

    /// A declaration that may follow `export` or `declare`, possibly without a name.
    pub(super) fn declaration(&mut self) -> Read<u32> {
        let declaration = match self.tok.kind {
            Tok::Name => match self.text(self.tok) {
                "namespace" => return self.namespace(kind::INTERNAL_MODULE),
                "let" | "async" | "type" | "interface" | "module" | "declare" | "abstract" => self.name_statement()?,
                _ => return Err(Unsure),
            },
            Tok::Word(Word::Var | Word::Const | Word::Enum | Word::Function | Word::Class) => self.any_statement()?,
            _ => return Err(Unsure),
        };
        let statement = matches!(self.tree.kind(declaration), kind::EXPRESSION_STATEMENT | kind::LABELED_STATEMENT);
        if statement { Err(Unsure) } else { Ok(declaration) }
    }
}
