//! Parses Java by recursive descent: packages, classes and their members.
//!
//! Errors, modules and very deep nesting are left to tree-sitter. The facts are the same with either parser, which a
//! test checks.

mod expressions;
mod lex;
mod statements;
#[cfg(test)]
mod tests;
mod types;

use super::syntax::{NAMES, field, kind};
use crate::lang::descent::{Descent, Read, Unsure};
use crate::tree::{Tree, flag};
use lex::{Lexer, Tok, Word};

/// The tree of a text; `None` if it needs tree-sitter.
pub fn parse(text: &str) -> Option<Tree> {
    Parser::program(text).ok()
}

type Parser<'t> = Descent<'t, Lexer<'t>>;

impl<'t> Parser<'t> {
    fn program(text: &'t str) -> Read<Tree> {
        let mut tree = Tree::new(text, &NAMES);
        let program = tree.push(kind::PROGRAM, flag::NAMED, 0, text.len() as u32);
        let mut parser = Parser::new(Lexer::new(text)?, tree, ())?;
        while !parser.at(Tok::End) {
            if parser.eat(Tok::Semicolon)? {
                continue;
            }
            parser.remarks(program, kind::COMMENT);
            let node = parser.top_level()?;
            parser.add(program, node, field::NO);
        }
        Ok(parser.tree)
    }

    // --- tokens ---

    fn at_word(&self, word: Word) -> bool {
        self.at(Tok::Word(word))
    }

    fn at_name(&self, name: &str) -> bool {
        self.at(Tok::Name) && self.text(self.tok) == name
    }

    fn identifier(&mut self) -> Read<u32> {
        if self.at(Tok::Name) { self.leaf(kind::IDENTIFIER) } else { Err(Unsure) }
    }

    // --- files ---

    fn top_level(&mut self) -> Read<u32> {
        if self.at_word(Word::Import) {
            return self.import();
        }
        let modifiers = self.modifiers()?;
        if self.at_word(Word::Package) {
            let start = modifiers.map_or(self.tok.start, |modifiers| self.tree.start(modifiers));
            let node = self.open_at(kind::PACKAGE_DECLARATION, start);
            if let Some(modifiers) = modifiers {
                // The annotations of a package are direct children of the declaration.
                self.tree.move_children(modifiers, node);
            }
            self.advance()?;
            let name = self.dotted()?;
            self.add(node, name, field::NO);
            self.expect(Tok::Semicolon)?;
            return Ok(self.close(node));
        }
        if self.begins_type_declaration()? { self.type_declaration(modifiers) } else { Err(Unsure) }
    }

    fn import(&mut self) -> Read<u32> {
        let node = self.open(kind::IMPORT_DECLARATION);
        self.advance()?;
        if self.at_word(Word::Static) {
            self.advance()?;
        }
        let name = self.dotted()?;
        self.add(node, name, field::NO);
        if self.eat(Tok::Dot)? {
            if !self.at(Tok::Star) {
                return Err(Unsure);
            }
            let all = self.leaf(kind::ASTERISK)?;
            self.add(node, all, field::NO);
        }
        self.expect(Tok::Semicolon)?;
        Ok(self.close(node))
    }

    // --- types ---

    fn begins_type_declaration(&mut self) -> Read<bool> {
        Ok(match self.tok.kind {
            Tok::Word(Word::Class | Word::Interface | Word::Enum) => true,
            Tok::At => self.peek()?.kind == Tok::Word(Word::Interface),
            Tok::Name if self.text(self.tok) == "record" => self.peek()?.kind == Tok::Name,
            _ => false,
        })
    }

    fn type_declaration(&mut self, modifiers: Option<u32>) -> Read<u32> {
        let kind = match self.tok.kind {
            Tok::Word(Word::Class) => kind::CLASS_DECLARATION,
            Tok::Word(Word::Interface) => kind::INTERFACE_DECLARATION,
            Tok::Word(Word::Enum) => kind::ENUM_DECLARATION,
            Tok::At => kind::ANNOTATION_TYPE_DECLARATION,
            _ => kind::RECORD_DECLARATION,
        };
        let start = modifiers.map_or(self.tok.start, |modifiers| self.tree.start(modifiers));
        let node = self.open_at(kind, start);
        if let Some(modifiers) = modifiers {
            self.add(node, modifiers, field::NO);
        }
        self.mark(node, kind::WORD_CLASS, field::NO)?;
        if kind == kind::ANNOTATION_TYPE_DECLARATION {
            self.advance()?;
        }
        let name = self.identifier()?;
        self.add(node, name, field::NAME);
        self.type_parameters(node)?;
        if kind == kind::RECORD_DECLARATION {
            let components = self.parameters()?;
            self.add(node, components, field::PARAMETERS);
        }
        self.heritage(node, kind == kind::INTERFACE_DECLARATION)?;
        let body = self.deeper(|parser| match kind {
            kind::ENUM_DECLARATION => parser.enum_body(),
            _ => parser.class_body(),
        })?;
        self.add(node, body, field::BODY);
        Ok(self.close(node))
    }

    fn heritage(&mut self, node: u32, interface: bool) -> Read<()> {
        if self.at_word(Word::Extends) && !interface {
            let clause = self.open(kind::SUPERCLASS);
            self.advance()?;
            let ty = self.ty()?;
            self.add(clause, ty, field::NO);
            self.close(clause);
            self.add(node, clause, field::SUPERCLASS);
        }
        match self.tok.kind {
            Tok::Word(Word::Extends) => self.type_list(node, kind::EXTENDS_INTERFACES, field::NO)?,
            Tok::Word(Word::Implements) => self.type_list(node, kind::SUPER_INTERFACES, field::INTERFACES)?,
            _ => {}
        }
        if self.at_name("permits") {
            self.type_list(node, kind::PERMITS, field::PERMITS)?;
        }
        Ok(())
    }

    fn type_list(&mut self, node: u32, kind: u16, field: u8) -> Read<()> {
        let clause = self.open(kind);
        self.advance()?;
        let list = self.open(kind::TYPE_LIST);
        self.types(list, Tok::Comma)?;
        self.close(list);
        self.add(clause, list, field::NO);
        self.close(clause);
        self.add(node, clause, field);
        Ok(())
    }

    fn enum_body(&mut self) -> Read<u32> {
        let body = self.open(kind::ENUM_BODY);
        self.expect(Tok::Open(b'{'))?;
        while !matches!(self.tok.kind, Tok::Semicolon | Tok::Close(b'}')) {
            self.remarks(body, kind::COMMENT);
            let constant = self.enum_constant()?;
            self.add(body, constant, field::NO);
            if !self.eat(Tok::Comma)? && !matches!(self.tok.kind, Tok::Semicolon | Tok::Close(b'}')) {
                return Err(Unsure);
            }
        }
        if self.at(Tok::Semicolon) {
            let rest = self.open(kind::ENUM_BODY_DECLARATIONS);
            self.advance()?;
            self.class_members(rest)?;
            self.close(rest);
            self.add(body, rest, field::NO);
        }
        self.expect(Tok::Close(b'}'))?;
        Ok(self.close(body))
    }

    fn enum_constant(&mut self) -> Read<u32> {
        let node = self.open(kind::ENUM_CONSTANT);
        if let Some(modifiers) = self.modifiers()? {
            self.add(node, modifiers, field::NO);
        }
        let name = self.identifier()?;
        self.add(node, name, field::NAME);
        if self.at(Tok::Open(b'(')) {
            let arguments = self.arguments()?;
            self.add(node, arguments, field::ARGUMENTS);
        }
        if self.at(Tok::Open(b'{')) {
            let body = self.class_body()?;
            self.add(node, body, field::BODY);
        }
        Ok(self.close(node))
    }

    fn class_body(&mut self) -> Read<u32> {
        let body = self.open(kind::CLASS_BODY);
        self.expect(Tok::Open(b'{'))?;
        self.class_members(body)?;
        self.expect(Tok::Close(b'}'))?;
        Ok(self.close(body))
    }

    fn class_members(&mut self, body: u32) -> Read<()> {
        while !self.at(Tok::Close(b'}')) {
            if self.eat(Tok::Semicolon)? {
                continue;
            }
            self.remarks(body, kind::COMMENT);
            let member = self.class_member()?;
            self.add(body, member, field::NO);
        }
        Ok(())
    }

    fn class_member(&mut self) -> Read<u32> {
        if self.at(Tok::Open(b'{')) {
            return self.block();
        }
        if self.at_word(Word::Static) && self.peek()?.kind == Tok::Open(b'{') {
            let node = self.open(kind::STATIC_INITIALIZER);
            self.advance()?;
            let block = self.block()?;
            self.add(node, block, field::NO);
            return Ok(self.close(node));
        }
        let start = self.tok.start;
        let modifiers = self.modifiers()?;
        if self.begins_type_declaration()? {
            return self.type_declaration(modifiers);
        }
        let node = self.open_at(kind::METHOD_DECLARATION, start);
        if let Some(modifiers) = modifiers {
            self.add(node, modifiers, field::NO);
        }
        self.type_parameters(node)?;
        if self.at(Tok::Name) {
            match self.peek()?.kind {
                Tok::Open(b'(') => return self.constructor(node),
                Tok::Open(b'{') => {
                    self.tree.set_kind(node, kind::COMPACT_CONSTRUCTOR_DECLARATION);
                    let name = self.identifier()?;
                    self.add(node, name, field::NAME);
                    let body = self.block()?;
                    self.add(node, body, field::BODY);
                    return Ok(self.close(node));
                }
                _ => {}
            }
        }
        let ty = self.ty()?;
        self.add(node, ty, field::TYPE);
        if self.at(Tok::Name) && self.peek()?.kind == Tok::Open(b'(') {
            return self.method(node);
        }
        self.tree.set_kind(node, kind::FIELD_DECLARATION);
        self.variables(node)?;
        self.expect(Tok::Semicolon)?;
        Ok(self.close(node))
    }

    fn constructor(&mut self, node: u32) -> Read<u32> {
        self.tree.set_kind(node, kind::CONSTRUCTOR_DECLARATION);
        let name = self.identifier()?;
        self.add(node, name, field::NAME);
        let parameters = self.parameters()?;
        self.add(node, parameters, field::PARAMETERS);
        self.throws(node)?;
        let body = self.block_of(kind::CONSTRUCTOR_BODY)?;
        self.add(node, body, field::BODY);
        Ok(self.close(node))
    }

    fn method(&mut self, node: u32) -> Read<u32> {
        let name = self.identifier()?;
        self.add(node, name, field::NAME);
        let parameters = self.parameters()?;
        self.add(node, parameters, field::PARAMETERS);
        if let Some(dimensions) = self.dimensions()? {
            self.add(node, dimensions, field::DIMENSIONS);
        }
        self.throws(node)?;
        if self.at(Tok::Open(b'{')) {
            let body = self.block()?;
            self.add(node, body, field::BODY);
            return Ok(self.close(node));
        }
        if self.at_word(Word::Default) {
            self.tree.set_kind(node, kind::ANNOTATION_TYPE_ELEMENT_DECLARATION);
            self.advance()?;
            let value = self.element_value()?;
            self.add(node, value, field::VALUE);
        }
        self.expect(Tok::Semicolon)?;
        Ok(self.close(node))
    }

    fn throws(&mut self, node: u32) -> Read<()> {
        if self.at_word(Word::Throws) {
            let clause = self.open(kind::THROWS);
            self.advance()?;
            self.types(clause, Tok::Comma)?;
            self.close(clause);
            self.add(node, clause, field::NO);
        }
        Ok(())
    }

    fn parameters(&mut self) -> Read<u32> {
        let list = self.open(kind::FORMAL_PARAMETERS);
        self.expect(Tok::Open(b'('))?;
        while !self.at(Tok::Close(b')')) {
            let parameter = self.parameter()?;
            self.add(list, parameter, field::NO);
            if !self.eat(Tok::Comma)? {
                break;
            }
        }
        self.expect(Tok::Close(b')'))?;
        Ok(self.close(list))
    }

    fn parameter(&mut self) -> Read<u32> {
        let node = self.open(kind::FORMAL_PARAMETER);
        if let Some(modifiers) = self.modifiers()? {
            self.add(node, modifiers, field::NO);
        }
        let ty = self.ty()?;
        // `T @A ... x`
        self.annotations(node)?;
        if self.eat(Tok::Ellipsis)? {
            self.tree.set_kind(node, kind::SPREAD_PARAMETER);
            self.add(node, ty, field::NO);
            let name = self.identifier()?;
            let declarator = self.around(kind::VARIABLE_DECLARATOR, name, field::NAME);
            self.close(declarator);
            self.add(node, declarator, field::NO);
            return Ok(self.close(node));
        }
        self.add(node, ty, field::TYPE);
        let name = self.identifier()?;
        self.add(node, name, field::NAME);
        if let Some(dimensions) = self.dimensions()? {
            self.add(node, dimensions, field::DIMENSIONS);
        }
        Ok(self.close(node))
    }
}
