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
use crate::lang::descent::{Descent, ParseResult, UnsupportedSyntax};
use crate::tree::SyntaxTree;
use lex::{JavaLexer, JavaTokenKind, Word};

/// The tree of a text; `None` if it needs tree-sitter.
pub fn parse(text: &str) -> Option<SyntaxTree> {
    let lexer = JavaLexer::new(text).ok()?;
    Parser::whole_text(lexer, &NAMES, kind::PROGRAM, (), Parser::program)
}

type Parser<'t> = Descent<'t, JavaLexer<'t>>;

impl<'t> Parser<'t> {
    fn program(&mut self, root: u32) -> ParseResult<()> {
        while !self.at(JavaTokenKind::End) {
            if self.eat(JavaTokenKind::Semicolon)? {
                continue;
            }
            self.remarks(root, kind::COMMENT);
            self.part(root, field::NO, Self::top_level)?;
        }
        Ok(())
    }

    // --- tokens ---

    fn identifier(&mut self) -> ParseResult<u32> {
        self.name(kind::IDENTIFIER)
    }

    // --- files ---

    fn top_level(&mut self) -> ParseResult<u32> {
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
            return self.close_with(JavaTokenKind::Semicolon, node);
        }
        if self.begins_type_declaration()? { self.type_declaration(modifiers) } else { Err(UnsupportedSyntax) }
    }

    fn import(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::IMPORT_DECLARATION)?;
        self.eat_word(Word::Static)?;
        self.part(node, field::NO, Self::dotted)?;
        if self.eat(JavaTokenKind::Dot)? {
            self.require(JavaTokenKind::Star)?;
            self.token(node, field::NO, kind::ASTERISK)?;
        }
        self.close_with(JavaTokenKind::Semicolon, node)
    }

    // --- types ---

    fn begins_type_declaration(&mut self) -> ParseResult<bool> {
        Ok(match self.tok.kind {
            JavaTokenKind::Word(Word::Class | Word::Interface | Word::Enum) => true,
            JavaTokenKind::At => self.peek()?.kind == JavaTokenKind::Word(Word::Interface),
            JavaTokenKind::Name if self.text(self.tok) == "record" => self.peek()?.kind == JavaTokenKind::Name,
            _ => false,
        })
    }

    fn type_declaration(&mut self, modifiers: Option<u32>) -> ParseResult<u32> {
        let kind = match self.tok.kind {
            JavaTokenKind::Word(Word::Class) => kind::CLASS_DECLARATION,
            JavaTokenKind::Word(Word::Interface) => kind::INTERFACE_DECLARATION,
            JavaTokenKind::Word(Word::Enum) => kind::ENUM_DECLARATION,
            JavaTokenKind::At => kind::ANNOTATION_TYPE_DECLARATION,
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

    fn heritage(&mut self, node: u32, interface: bool) -> ParseResult<()> {
        if self.at_word(Word::Extends) && !interface {
            self.part(node, field::SUPERCLASS, |parser| parser.prefixed(kind::SUPERCLASS, field::NO, Self::ty))?;
        }
        match self.tok.kind {
            JavaTokenKind::Word(Word::Extends) => self.type_list(node, kind::EXTENDS_INTERFACES, field::NO)?,
            JavaTokenKind::Word(Word::Implements) => self.type_list(node, kind::SUPER_INTERFACES, field::INTERFACES)?,
            _ => {}
        }
        if self.at_name("permits") {
            self.type_list(node, kind::PERMITS, field::PERMITS)?;
        }
        Ok(())
    }

    fn type_list(&mut self, node: u32, kind: u16, field: u8) -> ParseResult<()> {
        let clause = self.begin(kind)?;
        let list = self.open(kind::TYPE_LIST);
        self.types(list, JavaTokenKind::Comma)?;
        self.attach(clause, list, field::NO);
        self.attach(node, clause, field);
        Ok(())
    }

    fn enum_body(&mut self) -> ParseResult<u32> {
        let body = self.begin_with(JavaTokenKind::Open(b'{'), kind::ENUM_BODY)?;
        while !matches!(self.tok.kind, JavaTokenKind::Semicolon | JavaTokenKind::Close(b'}')) {
            self.remarks(body, kind::COMMENT);
            self.part(body, field::NO, Self::enum_constant)?;
            if !self.eat(JavaTokenKind::Comma)?
                && !matches!(self.tok.kind, JavaTokenKind::Semicolon | JavaTokenKind::Close(b'}'))
            {
                return Err(UnsupportedSyntax);
            }
        }
        if self.at(JavaTokenKind::Semicolon) {
            let rest = self.begin(kind::ENUM_BODY_DECLARATIONS)?;
            self.class_members(rest)?;
            self.attach(body, rest, field::NO);
        }
        self.close_with(JavaTokenKind::Close(b'}'), body)
    }

    fn enum_constant(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::ENUM_CONSTANT);
        self.maybe(node, field::NO, Self::modifiers)?;
        self.part(node, field::NAME, Self::identifier)?;
        self.part_at(JavaTokenKind::Open(b'('), node, field::ARGUMENTS, Self::arguments)?;
        self.part_at(JavaTokenKind::Open(b'{'), node, field::BODY, Self::class_body)?;
        Ok(self.close(node))
    }

    fn class_body(&mut self) -> ParseResult<u32> {
        let body = self.begin_with(JavaTokenKind::Open(b'{'), kind::CLASS_BODY)?;
        self.class_members(body)?;
        self.close_with(JavaTokenKind::Close(b'}'), body)
    }

    fn class_members(&mut self, body: u32) -> ParseResult<()> {
        while !self.at(JavaTokenKind::Close(b'}')) {
            if self.eat(JavaTokenKind::Semicolon)? {
                continue;
            }
            self.remarks(body, kind::COMMENT);
            self.part(body, field::NO, Self::class_member)?;
        }
        Ok(())
    }

    fn class_member(&mut self) -> ParseResult<u32> {
        if self.at(JavaTokenKind::Open(b'{')) {
            return self.block();
        }
        if self.at_word(Word::Static) && self.peek()?.kind == JavaTokenKind::Open(b'{') {
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
        if self.at(JavaTokenKind::Name) {
            match self.peek()?.kind {
                JavaTokenKind::Open(b'(') => return self.constructor(node),
                JavaTokenKind::Open(b'{') => {
                    self.tree.set_kind(node, kind::COMPACT_CONSTRUCTOR_DECLARATION);
                    self.part(node, field::NAME, Self::identifier)?;
                    return self.last(node, field::BODY, Self::block);
                }
                _ => {}
            }
        }
        self.part(node, field::TYPE, Self::ty)?;
        if self.at(JavaTokenKind::Name) && self.peek()?.kind == JavaTokenKind::Open(b'(') {
            return self.method(node);
        }
        self.tree.set_kind(node, kind::FIELD_DECLARATION);
        self.variables(node)?;
        self.close_with(JavaTokenKind::Semicolon, node)
    }

    fn constructor(&mut self, node: u32) -> ParseResult<u32> {
        self.tree.set_kind(node, kind::CONSTRUCTOR_DECLARATION);
        self.part(node, field::NAME, Self::identifier)?;
        self.part(node, field::PARAMETERS, Self::parameters)?;
        self.throws(node)?;
        self.last(node, field::BODY, |parser| parser.block_of(kind::CONSTRUCTOR_BODY))
    }

    fn method(&mut self, node: u32) -> ParseResult<u32> {
        self.part(node, field::NAME, Self::identifier)?;
        self.part(node, field::PARAMETERS, Self::parameters)?;
        self.maybe(node, field::DIMENSIONS, Self::dimensions)?;
        self.throws(node)?;
        if self.at(JavaTokenKind::Open(b'{')) {
            return self.last(node, field::BODY, Self::block);
        }
        if self.at_word(Word::Default) {
            self.decide(node, kind::ANNOTATION_TYPE_ELEMENT_DECLARATION)?;
            self.part(node, field::VALUE, Self::element_value)?;
        }
        self.close_with(JavaTokenKind::Semicolon, node)
    }

    fn throws(&mut self, node: u32) -> ParseResult<()> {
        if self.at_word(Word::Throws) {
            let clause = self.begin(kind::THROWS)?;
            self.types(clause, JavaTokenKind::Comma)?;
            self.attach(node, clause, field::NO);
        }
        Ok(())
    }

    fn parameters(&mut self) -> ParseResult<u32> {
        let list = self.begin_with(JavaTokenKind::Open(b'('), kind::FORMAL_PARAMETERS)?;
        while !self.at(JavaTokenKind::Close(b')')) {
            self.part(list, field::NO, Self::parameter)?;
            if !self.eat(JavaTokenKind::Comma)? {
                break;
            }
        }
        self.close_with(JavaTokenKind::Close(b')'), list)
    }

    fn parameter(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::FORMAL_PARAMETER);
        self.maybe(node, field::NO, Self::modifiers)?;
        let ty = self.ty()?;
        // `T @A ... x`
        self.annotations(node)?;
        if self.eat(JavaTokenKind::Ellipsis)? {
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
