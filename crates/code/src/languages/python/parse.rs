//! Parses Python by recursive descent: statements.
//!
//! Common Python 3 is parsed; errors, Python 2 and very deep nesting are left to tree-sitter. The facts are the same
//! with either parser, which a test checks.

mod expressions;
mod lex;
mod patterns;
#[cfg(test)]
mod tests;

use super::syntax::{NAMES, field, kind};
use crate::convert::to_u32;
use crate::lang::descent::{Descent, ParseResult, UnsupportedSyntax, ensure};
use crate::tree::SyntaxTree;
use lex::{PythonLexer, PythonTokenKind, Word};

/// The tree of a text; `None` if it needs tree-sitter.
pub fn parse(text: &str) -> Option<SyntaxTree> {
    Parser::module(text).ok()
}

/// Reads a part of a node.
type Part<'t> = fn(&mut Parser<'t>, u32) -> ParseResult<()>;

type Parser<'t> = Descent<'t, PythonLexer<'t>>;

impl<'t> Parser<'t> {
    fn module(text: &'t str) -> ParseResult<SyntaxTree> {
        let mut parser = Parser::new(PythonLexer::new(text)?, SyntaxTree::new(text, &NAMES), ())?;
        let module = parser.open(kind::MODULE);
        while parser.tok.kind != PythonTokenKind::End {
            parser.statement(module)?;
        }
        parser.tree.set_end(module, to_u32(text.len()));
        Ok(parser.tree)
    }

    fn identifier(&mut self) -> ParseResult<u32> {
        self.name(kind::IDENTIFIER)
    }

    // --- statements ---

    fn statement(&mut self, parent: u32) -> ParseResult<()> {
        let node = match self.tok.kind {
            PythonTokenKind::Word(Word::Def) => self.function(self.tok.start, false)?,
            PythonTokenKind::Word(Word::Class) => self.class()?,
            PythonTokenKind::Word(Word::If) => self.if_statement()?,
            PythonTokenKind::Word(Word::For) => self.for_statement(self.tok.start)?,
            PythonTokenKind::Word(Word::While) => self.while_statement()?,
            PythonTokenKind::Word(Word::Try) => self.try_statement()?,
            PythonTokenKind::Word(Word::With) => self.with_statement(self.tok.start)?,
            PythonTokenKind::Word(Word::Async) => self.async_statement()?,
            PythonTokenKind::At => self.decorated()?,
            PythonTokenKind::Name if self.text(self.tok) == "match" => match self.match_statement()? {
                Some(node) => node,
                None => return self.line(parent),
            },
            _ => return self.line(parent),
        };
        self.add(parent, node, field::NO);
        Ok(())
    }

    /// Simple statements up to the end of the line, including a comment.
    fn line(&mut self, parent: u32) -> ParseResult<()> {
        loop {
            self.part(parent, field::NO, Self::simple)?;
            if !self.eat(PythonTokenKind::Semicolon)? || self.at(PythonTokenKind::Newline) {
                break;
            }
        }
        let end = self.lex.line_end;
        self.expect(PythonTokenKind::Newline)?;
        self.last = end;
        Ok(())
    }

    /// `: …`, on the same line or indented below.
    fn block(&mut self, parent: u32, field: u8) -> ParseResult<()> {
        self.expect(PythonTokenKind::Colon)?;
        self.deeper(|parser| {
            let block;
            if parser.eat(PythonTokenKind::Newline)? {
                parser.expect(PythonTokenKind::Indent)?;
                block = parser.open(kind::BLOCK);
                while !parser.at(PythonTokenKind::Dedent) {
                    parser.statement(block)?;
                }
                let end = parser.lex.line_end;
                parser.advance()?;
                parser.last = end;
            } else {
                block = parser.open(kind::BLOCK);
                parser.line(block)?;
            }
            parser.attach(parent, block, field);
            Ok(())
        })
    }

    fn async_statement(&mut self) -> ParseResult<u32> {
        let start = self.advance()?.start;
        match self.tok.kind {
            PythonTokenKind::Word(Word::Def) => self.function(start, true),
            PythonTokenKind::Word(Word::For) => self.for_statement(start),
            PythonTokenKind::Word(Word::With) => self.with_statement(start),
            _ => Err(UnsupportedSyntax),
        }
    }

    fn decorated(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::DECORATED_DEFINITION);
        while self.at(PythonTokenKind::At) {
            self.part(node, field::NO, |parser| parser.prefixed(kind::DECORATOR, field::NO, Self::named))?;
            self.expect(PythonTokenKind::Newline)?;
        }
        let definition = match self.tok.kind {
            PythonTokenKind::Word(Word::Def) => self.function(self.tok.start, false)?,
            PythonTokenKind::Word(Word::Class) => self.class()?,
            PythonTokenKind::Word(Word::Async) => self.async_statement()?,
            _ => return Err(UnsupportedSyntax),
        };
        self.add(node, definition, field::NO);
        Ok(self.close(node))
    }

    fn function(&mut self, start: u32, is_async: bool) -> ParseResult<u32> {
        let node = self.open_at(kind::FUNCTION_DEFINITION, start);
        if is_async {
            let word = self.tree.push(kind::ASYNC, 0, start, start + 5);
            self.add(node, word, field::NO);
        }
        self.advance()?;
        self.part(node, field::NAME, Self::identifier)?;
        self.type_parameters()?;
        let parameters = self.begin_with(PythonTokenKind::Open(b'('), kind::PARAMETERS)?;
        self.parameters(parameters, PythonTokenKind::Close(b')'), true)?;
        self.advance()?;
        self.attach(node, parameters, field::PARAMETERS);
        self.part_after(PythonTokenKind::Arrow, node, field::RETURN_TYPE, Self::expression)?;
        self.block(node, field::BODY)?;
        Ok(self.close(node))
    }

    /// `[T, *Ts]` after a name: skipped, because the front end does not use them.
    fn type_parameters(&mut self) -> ParseResult<()> {
        if !self.at(PythonTokenKind::Open(b'[')) {
            return Ok(());
        }
        let open = self.lex.open;
        while self.lex.open >= open {
            self.advance()?;
        }
        self.skip()
    }

    fn parameters(&mut self, parent: u32, end: PythonTokenKind, typed: bool) -> ParseResult<()> {
        while !self.at(end) {
            let start = self.tok.start;
            let splat = match self.tok.kind {
                PythonTokenKind::Star => Some(kind::LIST_SPLAT_PATTERN),
                PythonTokenKind::Power => Some(kind::DICTIONARY_SPLAT_PATTERN),
                _ => None,
            };
            // A single `/` or `*` only separates parameters.
            let mut parts = self.eat(PythonTokenKind::Slash)?;
            if splat.is_some() {
                self.advance()?;
                parts = self.at(PythonTokenKind::Comma);
            }
            if !parts {
                let mut node = self.identifier()?;
                if let Some(splat) = splat {
                    let around = self.open_at(splat, start);
                    self.add(around, node, field::NO);
                    node = self.close(around);
                }
                let ty = if typed && self.eat(PythonTokenKind::Colon)? { Some(self.starred(false)?) } else { None };
                let value = if self.eat(PythonTokenKind::Assign)? { Some(self.expression()?) } else { None };
                let how = match (ty, value) {
                    (None, None) => None,
                    (Some(_), None) => Some((kind::TYPED_PARAMETER, field::NO)),
                    (None, Some(_)) => Some((kind::DEFAULT_PARAMETER, field::NAME)),
                    (Some(_), Some(_)) => Some((kind::TYPED_DEFAULT_PARAMETER, field::NAME)),
                };
                if let Some((kind, name)) = how {
                    node = self.around(kind, node, name);
                    self.add_all(node, ty, field::TYPE);
                    self.add_all(node, value, field::VALUE);
                    self.close(node);
                }
                self.add(parent, node, field::NO);
            }
            self.comma(end)?;
        }
        Ok(())
    }

    fn class(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::CLASS_DEFINITION)?;
        self.part(node, field::NAME, Self::identifier)?;
        self.type_parameters()?;
        self.part_at(PythonTokenKind::Open(b'('), node, field::SUPERCLASSES, Self::arguments)?;
        self.block(node, field::BODY)?;
        Ok(self.close(node))
    }

    fn if_statement(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::IF_STATEMENT);
        self.condition(node, field::CONSEQUENCE)?;
        while self.at_word(Word::Elif) {
            let clause = self.open(kind::ELIF_CLAUSE);
            self.condition(clause, field::CONSEQUENCE)?;
            self.attach(node, clause, field::ALTERNATIVE);
        }
        self.otherwise(node)?;
        Ok(self.close(node))
    }

    /// A keyword, a condition and the block after it.
    fn condition(&mut self, node: u32, block: u8) -> ParseResult<()> {
        self.advance()?;
        self.part(node, field::CONDITION, Self::named)?;
        self.block(node, block)
    }

    fn otherwise(&mut self, node: u32) -> ParseResult<()> {
        if self.at_word(Word::Else) {
            let clause = self.begin(kind::ELSE_CLAUSE)?;
            self.block(clause, field::BODY)?;
            self.attach(node, clause, field::ALTERNATIVE);
        }
        Ok(())
    }

    fn for_statement(&mut self, start: u32) -> ParseResult<u32> {
        let node = self.open_at(kind::FOR_STATEMENT, start);
        self.advance()?;
        self.part(node, field::LEFT, Self::targets)?;
        self.expect(PythonTokenKind::Word(Word::In))?;
        self.part(node, field::RIGHT, Self::values)?;
        self.block(node, field::BODY)?;
        self.otherwise(node)?;
        Ok(self.close(node))
    }

    fn while_statement(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::WHILE_STATEMENT);
        self.condition(node, field::BODY)?;
        self.otherwise(node)?;
        Ok(self.close(node))
    }

    fn try_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::TRY_STATEMENT)?;
        self.block(node, field::BODY)?;
        while self.at_word(Word::Except) {
            let clause = self.begin(kind::EXCEPT_CLAUSE)?;
            self.eat(PythonTokenKind::Star)?;
            if !self.at(PythonTokenKind::Colon) {
                let caught = self.expression()?;
                self.part(clause, field::VALUE, |parser| parser.named_as(caught))?;
            }
            self.block(clause, field::NO)?;
            self.attach(node, clause, field::NO);
        }
        self.otherwise(node)?;
        if self.at_word(Word::Finally) {
            let clause = self.begin(kind::FINALLY_CLAUSE)?;
            self.block(clause, field::NO)?;
            self.attach(node, clause, field::NO);
        }
        Ok(self.close(node))
    }

    /// `… as target`, or the value alone.
    fn named_as(&mut self, value: u32) -> ParseResult<u32> {
        if !self.eat_word(Word::As)? {
            return Ok(value);
        }
        let node = self.around(kind::AS_PATTERN, value, field::NO);
        let target = self.open(kind::AS_PATTERN_TARGET);
        self.part(target, field::NO, Self::target)?;
        Ok(self.attach_last(node, target, field::ALIAS))
    }

    fn with_statement(&mut self, start: u32) -> ParseResult<u32> {
        let node = self.open_at(kind::WITH_STATEMENT, start);
        self.advance()?;
        let guess = self.guess();
        // Parentheses may enclose all items, or belong to the first expression.
        let clause = match self.with_items(PythonTokenKind::Colon) {
            Ok((clause, false)) => clause,
            _ => {
                self.back_to(guess)?;
                self.expect(PythonTokenKind::Open(b'('))?;
                ensure(!self.at(PythonTokenKind::Close(b')')))?;
                let (clause, _) = self.with_items(PythonTokenKind::Close(b')'))?;
                self.advance()?;
                clause
            }
        };
        self.add(node, clause, field::NO);
        self.block(node, field::BODY)?;
        Ok(self.close(node))
    }

    /// The context managers, and whether they are a tuple: then they are several in parentheses.
    fn with_items(&mut self, end: PythonTokenKind) -> ParseResult<(u32, bool)> {
        let clause = self.open(kind::WITH_CLAUSE);
        let mut tuple = false;
        while !self.at(end) {
            let item = self.open(kind::WITH_ITEM);
            let value = self.expression()?;
            let value = self.named_as(value)?;
            tuple = self.tree.kind(value) == kind::TUPLE;
            self.add(item, value, field::VALUE);
            self.attach(clause, item, field::NO);
            self.comma(end)?;
        }
        Ok((self.close(clause), tuple))
    }

    fn simple(&mut self) -> ParseResult<u32> {
        let word = match self.tok.kind {
            PythonTokenKind::Word(word) => word,
            PythonTokenKind::Name if self.text(self.tok) == "type" => return self.type_alias(),
            _ => return self.expression_statement(),
        };
        let (kind, what): (u16, Part<'t>) = match word {
            Word::Return => (kind::RETURN_STATEMENT, Self::maybe_list),
            Word::Pass => (kind::PASS_STATEMENT, |_, _| Ok(())),
            Word::Break => (kind::BREAK_STATEMENT, |_, _| Ok(())),
            Word::Continue => (kind::CONTINUE_STATEMENT, |_, _| Ok(())),
            Word::Raise => (kind::RAISE_STATEMENT, Self::raised),
            Word::Del => (kind::DELETE_STATEMENT, Self::deleted),
            Word::Assert => (kind::ASSERT_STATEMENT, Self::asserted),
            Word::Global => (kind::GLOBAL_STATEMENT, Self::identifiers),
            Word::Nonlocal => (kind::NONLOCAL_STATEMENT, Self::identifiers),
            Word::Import => (kind::IMPORT_STATEMENT, |parser, node| parser.imported(node, PythonTokenKind::Newline)),
            Word::From => (kind::IMPORT_FROM_STATEMENT, Self::from),
            _ => return self.expression_statement(),
        };
        let node = self.begin(kind)?;
        what(self, node)?;
        Ok(self.close(node))
    }

    fn maybe_list(&mut self, node: u32) -> ParseResult<()> {
        if !matches!(self.tok.kind, PythonTokenKind::Newline | PythonTokenKind::Semicolon) {
            self.part(node, field::NO, Self::values)?;
        }
        Ok(())
    }

    fn deleted(&mut self, node: u32) -> ParseResult<()> {
        self.part(node, field::NO, Self::values)
    }

    fn raised(&mut self, node: u32) -> ParseResult<()> {
        if matches!(self.tok.kind, PythonTokenKind::Newline | PythonTokenKind::Semicolon) {
            return Ok(());
        }
        self.part(node, field::NO, Self::expression)?;
        self.part_after(PythonTokenKind::Word(Word::From), node, field::NO, Self::expression)
    }

    fn asserted(&mut self, node: u32) -> ParseResult<()> {
        self.part(node, field::NO, Self::expression)?;
        self.part_after(PythonTokenKind::Comma, node, field::NO, Self::expression)
    }

    fn identifiers(&mut self, node: u32) -> ParseResult<()> {
        self.chain(node, field::NO, PythonTokenKind::Comma, Self::identifier)
    }

    fn dotted(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::DOTTED_NAME);
        self.chain(node, field::NO, PythonTokenKind::Dot, Self::identifier)?;
        Ok(self.close(node))
    }

    /// Imported names with their aliases.
    fn imported(&mut self, node: u32, end: PythonTokenKind) -> ParseResult<()> {
        loop {
            let mut name = self.dotted()?;
            if self.eat_word(Word::As)? {
                name = self.around(kind::ALIASED_IMPORT, name, field::NAME);
                self.part(name, field::ALIAS, Self::identifier)?;
                self.close(name);
            }
            self.add(node, name, field::NAME);
            if !self.eat(PythonTokenKind::Comma)? || self.at(end) {
                return Ok(());
            }
        }
    }

    fn from(&mut self, node: u32) -> ParseResult<()> {
        let module = self.open(kind::DOTTED_NAME);
        let start = self.tok.start;
        while matches!(self.tok.kind, PythonTokenKind::Dot | PythonTokenKind::Ellipsis) {
            self.advance()?;
        }
        if self.tok.start == start || self.at(PythonTokenKind::Name) {
            self.dotted()?;
        }
        self.attach(node, module, field::MODULE_NAME);
        self.expect(PythonTokenKind::Word(Word::Import))?;
        if self.at(PythonTokenKind::Star) {
            return self.token(node, field::NO, kind::WILDCARD_IMPORT);
        }
        if self.eat(PythonTokenKind::Open(b'('))? {
            self.imported(node, PythonTokenKind::Close(b')'))?;
            self.expect(PythonTokenKind::Close(b')'))?;
            return Ok(());
        }
        self.imported(node, PythonTokenKind::Newline)
    }

    /// `type Name[…] = …`; `type` may also be an ordinary name.
    fn type_alias(&mut self) -> ParseResult<u32> {
        let guess = self.guess();
        let node = self.begin(kind::TYPE_ALIAS_STATEMENT)?;
        if !self.at(PythonTokenKind::Name) {
            self.back_to(guess)?;
            return self.expression_statement();
        }
        let name = self.leaf(kind::IDENTIFIER)?;
        self.type_parameters()?;
        self.attach(node, name, field::LEFT);
        self.expect(PythonTokenKind::Assign)?;
        self.last(node, field::RIGHT, Self::expression)
    }

    fn expression_statement(&mut self) -> ParseResult<u32> {
        let statement = self.open(kind::EXPRESSION_STATEMENT);
        if self.at(PythonTokenKind::Name) && self.text(self.tok) == "print" && self.lex.before_shift() {
            return Err(UnsupportedSyntax);
        }
        let first = self.values()?;
        let several = self.tree.kind(first) == kind::EXPRESSION_LIST;
        match self.tok.kind {
            PythonTokenKind::Augmented | PythonTokenKind::Colon if several => return Err(UnsupportedSyntax),
            PythonTokenKind::Assign => {
                self.part(statement, field::NO, |parser| parser.assignment(first))?;
            }
            PythonTokenKind::Augmented => {
                let node = self.begin_around(kind::AUGMENTED_ASSIGNMENT, first, field::LEFT)?;
                self.part(node, field::RIGHT, Self::values)?;
                self.attach(statement, node, field::NO);
            }
            PythonTokenKind::Colon => {
                let node = self.begin_around(kind::ASSIGNMENT, first, field::LEFT)?;
                self.part(node, field::TYPE, Self::expression)?;
                self.part_after(PythonTokenKind::Assign, node, field::RIGHT, Self::values)?;
                self.attach(statement, node, field::NO);
            }
            _ if several => self.tree.move_children(first, statement),
            _ => self.add(statement, first, field::NO),
        }
        Ok(self.close(statement))
    }

    /// `left = …`, whose right side may be an assignment again.
    fn assignment(&mut self, left: u32) -> ParseResult<u32> {
        if self.tree.kind(left) == kind::EXPRESSION_LIST {
            self.tree.set_kind(left, kind::PATTERN_LIST);
        }
        let node = self.begin_around(kind::ASSIGNMENT, left, field::LEFT)?;
        let mut right = self.values()?;
        if self.at(PythonTokenKind::Assign) {
            right = self.deeper(|parser| parser.assignment(right))?;
        }
        self.add(node, right, field::RIGHT);
        Ok(self.close(node))
    }
}
