//! Imports and exports.

use super::lex::{EcmaTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax, ensure};

impl Parser<'_> {
    // --- imports ---

    pub(super) fn import_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::IMPORT_STATEMENT)?;
        if self.at(EcmaTokenKind::Str) {
            return self.from(node);
        }
        self.type_mark(node)?;
        if self.at(EcmaTokenKind::Name) && self.state.typed && self.peek()?.kind == EcmaTokenKind::Assign {
            return self.import_equals(node);
        }
        let clause = self.open(kind::IMPORT_CLAUSE);
        if self.at(EcmaTokenKind::Name) {
            self.part(clause, field::NO, Self::identifier)?;
            let more = self.eat(EcmaTokenKind::Comma)?;
            ensure(more == matches!(self.tok.kind, EcmaTokenKind::Star | EcmaTokenKind::Open(b'{')))?;
        }
        match self.tok.kind {
            EcmaTokenKind::Star => {
                let all = self.begin(kind::NAMESPACE_IMPORT)?;
                ensure(self.eat_name("as")?)?;
                self.part(all, field::NO, Self::identifier)?;
                self.attach(clause, all, field::NO);
            }
            EcmaTokenKind::Open(b'{') => {
                self.part(clause, field::NO, |parser| parser.specifiers(kind::NAMED_IMPORTS, kind::IMPORT_SPECIFIER))?;
            }
            _ => {}
        }
        self.attach(node, clause, field::NO);
        ensure(self.eat_name("from")?)?;
        self.from(node)
    }

    /// `type` or `typeof` before an imported or exported name, unless it is the name itself.
    fn type_mark(&mut self, node: u32) -> ParseResult<()> {
        if !self.state.typed {
            return Ok(());
        }
        if self.at_word(Word::Typeof) {
            return self.mark(node, kind::WORD_TYPEOF, field::NO);
        }
        if !self.at_name("type") {
            return Ok(());
        }
        let next = self.peek()?;
        let named = match next.kind {
            EcmaTokenKind::Open(b'{') | EcmaTokenKind::Star => true,
            EcmaTokenKind::Name => self.text(next) != "from",
            _ => false,
        };
        if named { self.mark(node, kind::WORD_TYPE, field::NO) } else { Ok(()) }
    }

    /// `{ a, b as c }`
    fn specifiers(&mut self, kind: u16, each: u16) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        self.elements(EcmaTokenKind::Close(b'}'), |parser| {
            let specifier = parser.open(each);
            if parser.at_name("type") && parser.state.typed {
                match parser.peek()? {
                    next if matches!(next.kind, EcmaTokenKind::Comma | EcmaTokenKind::Close(b'}')) => {}
                    next if parser.text(next) == "as" => return Err(UnsupportedSyntax),
                    _ => parser.mark(specifier, kind::WORD_TYPE, field::NO)?,
                }
            }
            parser.part(specifier, field::NAME, Self::exported_name)?;
            if parser.eat_name("as")? {
                parser.part(specifier, field::ALIAS, Self::exported_name)?;
            }
            parser.attach(node, specifier, field::NO);
            Ok(())
        })?;
        Ok(self.close(node))
    }

    /// An exported name: any word or string.
    fn exported_name(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            EcmaTokenKind::Name | EcmaTokenKind::Word(_) => self.leaf(kind::IDENTIFIER),
            EcmaTokenKind::Str => self.leaf(kind::STRING),
            _ => Err(UnsupportedSyntax),
        }
    }

    /// The module, its import attributes, and the end of the statement.
    fn from(&mut self, node: u32) -> ParseResult<u32> {
        self.require(EcmaTokenKind::Str)?;
        self.token(node, field::SOURCE, kind::STRING)?;
        if (self.at_word(Word::With) || self.at_name("assert")) && self.before(EcmaTokenKind::Open(b'{'))? {
            self.advance()?;
            self.object()?;
        }
        self.end()?;
        Ok(self.close(node))
    }

    /// `import a = require("b")` and `import a = b.c`.
    fn import_equals(&mut self, node: u32) -> ParseResult<u32> {
        let clause = self.open(kind::IMPORT_REQUIRE_CLAUSE);
        let name = self.identifier()?;
        self.advance()?;
        if self.at_name("require") && self.before(EcmaTokenKind::Open(b'('))? {
            self.add(clause, name, field::NO);
            self.advance()?;
            self.advance()?;
            self.require(EcmaTokenKind::Str)?;
            self.token(clause, field::SOURCE, kind::STRING)?;
            self.expect(EcmaTokenKind::Close(b')'))?;
            self.attach(node, clause, field::NO);
        } else {
            self.tree.set_kind(node, kind::IMPORT_ALIAS);
            self.add(node, name, field::NO);
            self.part(node, field::NO, Self::dotted)?;
        }
        self.end()?;
        Ok(self.close(node))
    }

    // --- exports ---

    pub(super) fn export_statement(&mut self, decorators: &[u32]) -> ParseResult<u32> {
        let start = decorators.first().map_or(self.tok.start, |first| self.tree.start(*first));
        let node = self.open_at(kind::EXPORT_STATEMENT, start);
        self.add_all(node, decorators.iter().copied(), field::DECORATOR);
        self.advance()?;
        let with_types =
            self.at_name("type") && matches!(self.peek()?.kind, EcmaTokenKind::Open(b'{') | EcmaTokenKind::Star);
        if with_types {
            self.type_mark(node)?;
        }
        match self.tok.kind {
            EcmaTokenKind::Star => self.export_all(node),
            EcmaTokenKind::Open(b'{') => {
                self.part(node, field::NO, |parser| parser.specifiers(kind::EXPORT_CLAUSE, kind::EXPORT_SPECIFIER))?;
                if self.eat_name("from")? {
                    return self.from(node);
                }
                self.end()?;
                Ok(self.close(node))
            }
            EcmaTokenKind::Word(Word::Default) => self.export_default(node),
            EcmaTokenKind::Assign if self.state.typed => {
                self.mark(node, kind::SIGN_ASSIGN, field::NO)?;
                self.part(node, field::NO, Self::expression)?;
                self.end()?;
                Ok(self.close(node))
            }
            EcmaTokenKind::Name if self.at_name("as") && self.state.typed => Err(UnsupportedSyntax),
            EcmaTokenKind::Word(Word::Import) if self.state.typed => {
                self.last(node, field::DECLARATION, Self::import_statement)
            }
            EcmaTokenKind::At => {
                let class = self.decorated(true)?;
                ensure(!self.is_nameless(class))?;
                self.add(node, class, field::DECLARATION);
                Ok(self.close(node))
            }
            _ => {
                let declaration = self.declaration()?;
                ensure(!self.is_nameless(declaration))?;
                self.add(node, declaration, field::DECLARATION);
                Ok(self.close(node))
            }
        }
    }

    fn export_all(&mut self, node: u32) -> ParseResult<u32> {
        let all = self.begin(kind::NAMESPACE_EXPORT)?;
        if self.eat_name("as")? {
            self.part(all, field::NO, Self::exported_name)?;
            self.attach(node, all, field::NO);
        }
        ensure(self.eat_name("from")?)?;
        self.from(node)
    }

    fn export_default(&mut self, node: u32) -> ParseResult<u32> {
        self.mark(node, kind::WORD_DEFAULT, field::NO)?;
        let declared = match self.tok.kind {
            EcmaTokenKind::Word(Word::Function | Word::Class) => true,
            EcmaTokenKind::Name => match self.text(self.tok) {
                "async" => self.before(EcmaTokenKind::Word(Word::Function))?,
                "abstract" => self.state.typed && self.before(EcmaTokenKind::Word(Word::Class))?,
                "interface" => self.state.typed && self.before(EcmaTokenKind::Name)?,
                _ => false,
            },
            _ => false,
        };
        if !declared {
            let value = self.expression()?;
            self.add(node, value, field::VALUE);
            self.end()?;
            return Ok(self.close(node));
        }
        let declaration = self.declaration()?;
        // A declaration without a name is a value.
        let named = !self.is_nameless(declaration);
        if !named {
            self.eat(EcmaTokenKind::Semicolon)?;
        }
        self.add(node, declaration, if named { field::DECLARATION } else { field::VALUE });
        Ok(self.close(node))
    }
}
