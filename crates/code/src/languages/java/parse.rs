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
            parser.part(program, field::NO, Self::top_level)?;
        }
        Ok(parser.tree)
    }

    // --- tokens ---

    fn identifier(&mut self) -> Read<u32> {
        self.name(kind::IDENTIFIER)
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
            self.part(node, field::NO, Self::dotted)?;
            return self.close_with(Tok::Semicolon, node);
        }
        if self.begins_type_declaration()? { self.type_declaration(modifiers) } else { Err(Unsure) }
    }

    fn import(&mut self) -> Read<u32> {
        let node = self.begin(kind::IMPORT_DECLARATION)?;
        self.eat_word(Word::Static)?;
        self.part(node, field::NO, Self::dotted)?;
        if self.eat(Tok::Dot)? {
            self.require(Tok::Star)?;
            self.token(node, field::NO, kind::ASTERISK)?;
        }
        self.close_with(Tok::Semicolon, node)
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
        self.add_all(node, modifiers, field::NO);
        self.mark(node, kind::WORD_CLASS, field::NO)?;
        if kind == kind::ANNOTATION_TYPE_DECLARATION {
            self.advance()?;
        }
        self.part(node, field::NAME, Self::identifier)?;
        self.type_parameters(node)?;
        if kind == kind::RECORD_DECLARATION {
            self.part(node, field::PARAMETERS, Self::parameters)?;
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
            self.part(node, field::SUPERCLASS, |parser| parser.prefixed(kind::SUPERCLASS, field::NO, Self::ty))?;
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
        let clause = self.begin(kind)?;
        let list = self.open(kind::TYPE_LIST);
        self.types(list, Tok::Comma)?;
        self.attach(clause, list, field::NO);
        self.attach(node, clause, field);
        Ok(())
    }

    fn enum_body(&mut self) -> Read<u32> {
        let body = self.begin_with(Tok::Open(b'{'), kind::ENUM_BODY)?;
        while !matches!(self.tok.kind, Tok::Semicolon | Tok::Close(b'}')) {
            self.remarks(body, kind::COMMENT);
            self.part(body, field::NO, Self::enum_constant)?;
            if !self.eat(Tok::Comma)? && !matches!(self.tok.kind, Tok::Semicolon | Tok::Close(b'}')) {
                return Err(Unsure);
            }
        }
        if self.at(Tok::Semicolon) {
            let rest = self.begin(kind::ENUM_BODY_DECLARATIONS)?;
            self.class_members(rest)?;
            self.attach(body, rest, field::NO);
        }
        self.close_with(Tok::Close(b'}'), body)
    }

    fn enum_constant(&mut self) -> Read<u32> {
        let node = self.open(kind::ENUM_CONSTANT);
        self.maybe(node, field::NO, Self::modifiers)?;
        self.part(node, field::NAME, Self::identifier)?;
        self.part_at(Tok::Open(b'('), node, field::ARGUMENTS, Self::arguments)?;
        self.part_at(Tok::Open(b'{'), node, field::BODY, Self::class_body)?;
        Ok(self.close(node))
    }

    fn class_body(&mut self) -> Read<u32> {
        let body = self.begin_with(Tok::Open(b'{'), kind::CLASS_BODY)?;
        self.class_members(body)?;
        self.close_with(Tok::Close(b'}'), body)
    }

    fn class_members(&mut self, body: u32) -> Read<()> {
        while !self.at(Tok::Close(b'}')) {
            if self.eat(Tok::Semicolon)? {
                continue;
            }
            self.remarks(body, kind::COMMENT);
            self.part(body, field::NO, Self::class_member)?;
        }
        Ok(())
    }

    fn class_member(&mut self) -> Read<u32> {
        if self.at(Tok::Open(b'{')) {
            return self.block();
        }
        if self.at_word(Word::Static) && self.peek()?.kind == Tok::Open(b'{') {
            return self.prefixed(kind::STATIC_INITIALIZER, field::NO, Self::block);
        }
        let start = self.tok.start;
        let modifiers = self.modifiers()?;
        if self.begins_type_declaration()? {
            return self.type_declaration(modifiers);
        }
        let node = self.open_at(kind::METHOD_DECLARATION, start);
        self.add_all(node, modifiers, field::NO);
        self.type_parameters(node)?;
        if self.at(Tok::Name) {
            match self.peek()?.kind {
                Tok::Open(b'(') => return self.constructor(node),
                Tok::Open(b'{') => {
                    self.tree.set_kind(node, kind::COMPACT_CONSTRUCTOR_DECLARATION);
                    self.part(node, field::NAME, Self::identifier)?;
                    return self.last(node, field::BODY, Self::block);
                }
                _ => {}
            }
        }
        self.part(node, field::TYPE, Self::ty)?;
        if self.at(Tok::Name) && self.peek()?.kind == Tok::Open(b'(') {
            return self.method(node);
        }
        self.tree.set_kind(node, kind::FIELD_DECLARATION);
        self.variables(node)?;
        self.close_with(Tok::Semicolon, node)
    }

    fn constructor(&mut self, node: u32) -> Read<u32> {
        self.tree.set_kind(node, kind::CONSTRUCTOR_DECLARATION);
        self.part(node, field::NAME, Self::identifier)?;
        self.part(node, field::PARAMETERS, Self::parameters)?;
        self.throws(node)?;
        self.last(node, field::BODY, |parser| parser.block_of(kind::CONSTRUCTOR_BODY))
    }

    fn method(&mut self, node: u32) -> Read<u32> {
        self.part(node, field::NAME, Self::identifier)?;
        self.part(node, field::PARAMETERS, Self::parameters)?;
        self.maybe(node, field::DIMENSIONS, Self::dimensions)?;
        self.throws(node)?;
        if self.at(Tok::Open(b'{')) {
            return self.last(node, field::BODY, Self::block);
        }
        if self.at_word(Word::Default) {
            self.decide(node, kind::ANNOTATION_TYPE_ELEMENT_DECLARATION)?;
            self.part(node, field::VALUE, Self::element_value)?;
        }
        self.close_with(Tok::Semicolon, node)
    }

    fn throws(&mut self, node: u32) -> Read<()> {
        if self.at_word(Word::Throws) {
            let clause = self.begin(kind::THROWS)?;
            self.types(clause, Tok::Comma)?;
            self.attach(node, clause, field::NO);
        }
        Ok(())
    }

    fn parameters(&mut self) -> Read<u32> {
        let list = self.begin_with(Tok::Open(b'('), kind::FORMAL_PARAMETERS)?;
        while !self.at(Tok::Close(b')')) {
            self.part(list, field::NO, Self::parameter)?;
            if !self.eat(Tok::Comma)? {
                break;
            }
        }
        self.close_with(Tok::Close(b')'), list)
    }

    fn parameter(&mut self) -> Read<u32> {
        let node = self.open(kind::FORMAL_PARAMETER);
        self.maybe(node, field::NO, Self::modifiers)?;
        let ty = self.ty()?;
        // `T @A ... x`
        self.annotations(node)?;
        if self.eat(Tok::Ellipsis)? {
            self.tree.set_kind(node, kind::SPREAD_PARAMETER);
            self.add(node, ty, field::NO);
            let name = self.identifier()?;
            let declarator = self.around(kind::VARIABLE_DECLARATOR, name, field::NAME);
            return Ok(self.attach_last(node, declarator, field::NO));
        }
        self.add(node, ty, field::TYPE);
        self.part(node, field::NAME, Self::identifier)?;
        self.maybe(node, field::DIMENSIONS, Self::dimensions)?;
        Ok(self.close(node))
    }
}
