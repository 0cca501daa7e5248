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
use crate::lang::descent::{Descent, Read, Unsure};
use crate::tree::Tree;
use lex::{Lexer, Tok, Word};

/// The tree of a text; `None` if it needs tree-sitter.
pub fn parse(text: &str) -> Option<Tree> {
    Parser::module(text).ok()
}

/// Reads a part of a node.
type Part<'t> = fn(&mut Parser<'t>, u32) -> Read<()>;

type Parser<'t> = Descent<'t, Lexer<'t>>;

impl<'t> Parser<'t> {
    fn module(text: &'t str) -> Read<Tree> {
        let mut parser = Parser::new(Lexer::new(text)?, Tree::new(text, &NAMES), ())?;
        let module = parser.open(kind::MODULE);
        while parser.tok.kind != Tok::End {
            parser.statement(module)?;
        }
        parser.tree.set_end(module, text.len() as u32);
        Ok(parser.tree)
    }

    fn at_word(&self, word: Word) -> bool {
        self.at(Tok::Word(word))
    }

    fn eat_word(&mut self, word: Word) -> Read<bool> {
        self.eat(Tok::Word(word))
    }

    fn identifier(&mut self) -> Read<u32> {
        if self.at(Tok::Name) { self.leaf(kind::IDENTIFIER) } else { Err(Unsure) }
    }

    // --- statements ---

    fn statement(&mut self, parent: u32) -> Read<()> {
        let node = match self.tok.kind {
            Tok::Word(Word::Def) => self.function(self.tok.start, false)?,
            Tok::Word(Word::Class) => self.class()?,
            Tok::Word(Word::If) => self.if_statement()?,
            Tok::Word(Word::For) => self.for_statement(self.tok.start)?,
            Tok::Word(Word::While) => self.while_statement()?,
            Tok::Word(Word::Try) => self.try_statement()?,
            Tok::Word(Word::With) => self.with_statement(self.tok.start)?,
            Tok::Word(Word::Async) => self.async_statement()?,
            Tok::At => self.decorated()?,
            Tok::Name if self.text(self.tok) == "match" => match self.match_statement()? {
                Some(node) => node,
                None => return self.line(parent),
            },
            _ => return self.line(parent),
        };
        self.add(parent, node, field::NO);
        Ok(())
    }

    /// Simple statements up to the end of the line, including a comment.
    fn line(&mut self, parent: u32) -> Read<()> {
        loop {
            let node = self.simple()?;
            self.add(parent, node, field::NO);
            if !self.eat(Tok::Semicolon)? || self.at(Tok::Newline) {
                break;
            }
        }
        let end = self.lex.line_end;
        self.expect(Tok::Newline)?;
        self.last = end;
        Ok(())
    }

    /// `: …`, on the same line or indented below.
    fn block(&mut self, parent: u32, field: u8) -> Read<()> {
        self.expect(Tok::Colon)?;
        self.deeper(|parser| {
            let block;
            if parser.eat(Tok::Newline)? {
                parser.expect(Tok::Indent)?;
                block = parser.open(kind::BLOCK);
                while !parser.at(Tok::Dedent) {
                    parser.statement(block)?;
                }
                let end = parser.lex.line_end;
                parser.advance()?;
                parser.last = end;
            } else {
                block = parser.open(kind::BLOCK);
                parser.line(block)?;
            }
            parser.close(block);
            parser.add(parent, block, field);
            Ok(())
        })
    }

    fn async_statement(&mut self) -> Read<u32> {
        let start = self.advance()?.start;
        match self.tok.kind {
            Tok::Word(Word::Def) => self.function(start, true),
            Tok::Word(Word::For) => self.for_statement(start),
            Tok::Word(Word::With) => self.with_statement(start),
            _ => Err(Unsure),
        }
    }

    fn decorated(&mut self) -> Read<u32> {
        let node = self.open(kind::DECORATED_DEFINITION);
        while self.at(Tok::At) {
            let decorator = self.open(kind::DECORATOR);
            self.advance()?;
            let made = self.named()?;
            self.add(decorator, made, field::NO);
            self.close(decorator);
            self.add(node, decorator, field::NO);
            self.expect(Tok::Newline)?;
        }
        let definition = match self.tok.kind {
            Tok::Word(Word::Def) => self.function(self.tok.start, false)?,
            Tok::Word(Word::Class) => self.class()?,
            Tok::Word(Word::Async) => self.async_statement()?,
            _ => return Err(Unsure),
        };
        self.add(node, definition, field::NO);
        Ok(self.close(node))
    }

    fn function(&mut self, start: u32, is_async: bool) -> Read<u32> {
        let node = self.open_at(kind::FUNCTION_DEFINITION, start);
        if is_async {
            let word = self.tree.push(kind::ASYNC, 0, start, start + 5);
            self.add(node, word, field::NO);
        }
        self.advance()?;
        let name = self.identifier()?;
        self.add(node, name, field::NAME);
        self.type_parameters()?;
        let parameters = self.open(kind::PARAMETERS);
        self.expect(Tok::Open(b'('))?;
        self.parameters(parameters, Tok::Close(b')'), true)?;
        self.advance()?;
        self.close(parameters);
        self.add(node, parameters, field::PARAMETERS);
        if self.eat(Tok::Arrow)? {
            let result = self.expression()?;
            self.add(node, result, field::RETURN_TYPE);
        }
        self.block(node, field::BODY)?;
        Ok(self.close(node))
    }

    /// `[T, *Ts]` after a name: skipped, because the front end does not use them.
    fn type_parameters(&mut self) -> Read<()> {
        if !self.at(Tok::Open(b'[')) {
            return Ok(());
        }
        let open = self.lex.open;
        while self.lex.open >= open {
            self.advance()?;
        }
        self.advance()?;
        Ok(())
    }

    fn parameters(&mut self, parent: u32, end: Tok, typed: bool) -> Read<()> {
        while !self.at(end) {
            let start = self.tok.start;
            let splat = match self.tok.kind {
                Tok::Star => Some(kind::LIST_SPLAT_PATTERN),
                Tok::Power => Some(kind::DICTIONARY_SPLAT_PATTERN),
                _ => None,
            };
            // A single `/` or `*` only separates parameters.
            let mut parts = self.eat(Tok::Slash)?;
            if splat.is_some() {
                self.advance()?;
                parts = self.at(Tok::Comma);
            }
            if !parts {
                let mut node = self.identifier()?;
                if let Some(splat) = splat {
                    let around = self.open_at(splat, start);
                    self.add(around, node, field::NO);
                    node = self.close(around);
                }
                let ty = if typed && self.eat(Tok::Colon)? { Some(self.starred(false)?) } else { None };
                let value = if self.eat(Tok::Assign)? { Some(self.expression()?) } else { None };
                let how = match (ty, value) {
                    (None, None) => None,
                    (Some(_), None) => Some((kind::TYPED_PARAMETER, field::NO)),
                    (None, Some(_)) => Some((kind::DEFAULT_PARAMETER, field::NAME)),
                    (Some(_), Some(_)) => Some((kind::TYPED_DEFAULT_PARAMETER, field::NAME)),
                };
                if let Some((kind, name)) = how {
                    node = self.around(kind, node, name);
                    if let Some(ty) = ty {
                        self.add(node, ty, field::TYPE);
                    }
                    if let Some(value) = value {
                        self.add(node, value, field::VALUE);
                    }
                    self.close(node);
                }
                self.add(parent, node, field::NO);
            }
            if !self.eat(Tok::Comma)? && !self.at(end) {
                return Err(Unsure);
            }
        }
        Ok(())
    }

    fn class(&mut self) -> Read<u32> {
        let node = self.open(kind::CLASS_DEFINITION);
        self.advance()?;
        let name = self.identifier()?;
        self.add(node, name, field::NAME);
        self.type_parameters()?;
        if self.at(Tok::Open(b'(')) {
            let bases = self.arguments()?;
            self.add(node, bases, field::SUPERCLASSES);
        }
        self.block(node, field::BODY)?;
        Ok(self.close(node))
    }

    fn if_statement(&mut self) -> Read<u32> {
        let node = self.open(kind::IF_STATEMENT);
        self.condition(node, field::CONSEQUENCE)?;
        while self.at_word(Word::Elif) {
            let clause = self.open(kind::ELIF_CLAUSE);
            self.condition(clause, field::CONSEQUENCE)?;
            self.close(clause);
            self.add(node, clause, field::ALTERNATIVE);
        }
        self.otherwise(node)?;
        Ok(self.close(node))
    }

    /// A keyword, a condition and the block after it.
    fn condition(&mut self, node: u32, block: u8) -> Read<()> {
        self.advance()?;
        let condition = self.named()?;
        self.add(node, condition, field::CONDITION);
        self.block(node, block)
    }

    fn otherwise(&mut self, node: u32) -> Read<()> {
        if self.at_word(Word::Else) {
            let clause = self.open(kind::ELSE_CLAUSE);
            self.advance()?;
            self.block(clause, field::BODY)?;
            self.close(clause);
            self.add(node, clause, field::ALTERNATIVE);
        }
        Ok(())
    }

    fn for_statement(&mut self, start: u32) -> Read<u32> {
        let node = self.open_at(kind::FOR_STATEMENT, start);
        self.advance()?;
        let left = self.targets()?;
        self.add(node, left, field::LEFT);
        self.expect(Tok::Word(Word::In))?;
        let right = self.list()?;
        self.add(node, right, field::RIGHT);
        self.block(node, field::BODY)?;
        self.otherwise(node)?;
        Ok(self.close(node))
    }

    fn while_statement(&mut self) -> Read<u32> {
        let node = self.open(kind::WHILE_STATEMENT);
        self.condition(node, field::BODY)?;
        self.otherwise(node)?;
        Ok(self.close(node))
    }

    fn try_statement(&mut self) -> Read<u32> {
        let node = self.open(kind::TRY_STATEMENT);
        self.advance()?;
        self.block(node, field::BODY)?;
        while self.at_word(Word::Except) {
            let clause = self.open(kind::EXCEPT_CLAUSE);
            self.advance()?;
            self.eat(Tok::Star)?;
            if !self.at(Tok::Colon) {
                let caught = self.expression()?;
                let caught = self.named_as(caught)?;
                self.add(clause, caught, field::VALUE);
            }
            self.block(clause, field::NO)?;
            self.close(clause);
            self.add(node, clause, field::NO);
        }
        self.otherwise(node)?;
        if self.at_word(Word::Finally) {
            let clause = self.open(kind::FINALLY_CLAUSE);
            self.advance()?;
            self.block(clause, field::NO)?;
            self.close(clause);
            self.add(node, clause, field::NO);
        }
        Ok(self.close(node))
    }

    /// `… as target`, or the value alone.
    fn named_as(&mut self, value: u32) -> Read<u32> {
        if !self.eat_word(Word::As)? {
            return Ok(value);
        }
        let node = self.around(kind::AS_PATTERN, value, field::NO);
        let target = self.open(kind::AS_PATTERN_TARGET);
        let to = self.target()?;
        self.add(target, to, field::NO);
        self.close(target);
        self.add(node, target, field::ALIAS);
        Ok(self.close(node))
    }

    fn with_statement(&mut self, start: u32) -> Read<u32> {
        let node = self.open_at(kind::WITH_STATEMENT, start);
        self.advance()?;
        let guess = self.guess();
        // Parentheses may enclose all items, or belong to the first expression.
        let clause = match self.with_items(Tok::Colon) {
            Ok((clause, false)) => clause,
            _ => {
                self.go_back(guess)?;
                self.expect(Tok::Open(b'('))?;
                if self.at(Tok::Close(b')')) {
                    return Err(Unsure);
                }
                let (clause, _) = self.with_items(Tok::Close(b')'))?;
                self.advance()?;
                clause
            }
        };
        self.add(node, clause, field::NO);
        self.block(node, field::BODY)?;
        Ok(self.close(node))
    }

    /// The context managers, and whether they are a tuple: then they are several in parentheses.
    fn with_items(&mut self, end: Tok) -> Read<(u32, bool)> {
        let clause = self.open(kind::WITH_CLAUSE);
        let mut tuple = false;
        while !self.at(end) {
            let item = self.open(kind::WITH_ITEM);
            let value = self.expression()?;
            let value = self.named_as(value)?;
            tuple = self.tree.kind(value) == kind::TUPLE;
            self.add(item, value, field::VALUE);
            self.close(item);
            self.add(clause, item, field::NO);
            if !self.eat(Tok::Comma)? && !self.at(end) {
                return Err(Unsure);
            }
        }
        Ok((self.close(clause), tuple))
    }

    fn simple(&mut self) -> Read<u32> {
        let word = match self.tok.kind {
            Tok::Word(word) => word,
            Tok::Name if self.text(self.tok) == "type" => return self.type_alias(),
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
            Word::Import => (kind::IMPORT_STATEMENT, |parser, node| parser.imported(node, Tok::Newline)),
            Word::From => (kind::IMPORT_FROM_STATEMENT, Self::from),
            _ => return self.expression_statement(),
        };
        let node = self.open(kind);
        self.advance()?;
        what(self, node)?;
        Ok(self.close(node))
    }

    fn maybe_list(&mut self, node: u32) -> Read<()> {
        if !matches!(self.tok.kind, Tok::Newline | Tok::Semicolon) {
            let value = self.list()?;
            self.add(node, value, field::NO);
        }
        Ok(())
    }

    fn deleted(&mut self, node: u32) -> Read<()> {
        let what = self.list()?;
        self.add(node, what, field::NO);
        Ok(())
    }

    fn raised(&mut self, node: u32) -> Read<()> {
        if matches!(self.tok.kind, Tok::Newline | Tok::Semicolon) {
            return Ok(());
        }
        let raised = self.expression()?;
        self.add(node, raised, field::NO);
        if self.eat_word(Word::From)? {
            let cause = self.expression()?;
            self.add(node, cause, field::NO);
        }
        Ok(())
    }

    fn asserted(&mut self, node: u32) -> Read<()> {
        let condition = self.expression()?;
        self.add(node, condition, field::NO);
        if self.eat(Tok::Comma)? {
            let told = self.expression()?;
            self.add(node, told, field::NO);
        }
        Ok(())
    }

    fn identifiers(&mut self, node: u32) -> Read<()> {
        loop {
            let name = self.identifier()?;
            self.add(node, name, field::NO);
            if !self.eat(Tok::Comma)? {
                return Ok(());
            }
        }
    }

    fn dotted(&mut self) -> Read<u32> {
        let node = self.open(kind::DOTTED_NAME);
        loop {
            let name = self.identifier()?;
            self.add(node, name, field::NO);
            if !self.eat(Tok::Dot)? {
                return Ok(self.close(node));
            }
        }
    }

    /// Imported names with their aliases.
    fn imported(&mut self, node: u32, end: Tok) -> Read<()> {
        loop {
            let mut name = self.dotted()?;
            if self.eat_word(Word::As)? {
                name = self.around(kind::ALIASED_IMPORT, name, field::NAME);
                let alias = self.identifier()?;
                self.add(name, alias, field::ALIAS);
                self.close(name);
            }
            self.add(node, name, field::NAME);
            if !self.eat(Tok::Comma)? || self.at(end) {
                return Ok(());
            }
        }
    }

    fn from(&mut self, node: u32) -> Read<()> {
        let module = self.open(kind::DOTTED_NAME);
        let start = self.tok.start;
        while matches!(self.tok.kind, Tok::Dot | Tok::Ellipsis) {
            self.advance()?;
        }
        if self.tok.start == start || self.at(Tok::Name) {
            self.dotted()?;
        }
        self.close(module);
        self.add(node, module, field::MODULE_NAME);
        self.expect(Tok::Word(Word::Import))?;
        if self.at(Tok::Star) {
            let all = self.leaf(kind::WILDCARD_IMPORT)?;
            self.add(node, all, field::NO);
            return Ok(());
        }
        if self.eat(Tok::Open(b'('))? {
            self.imported(node, Tok::Close(b')'))?;
            self.expect(Tok::Close(b')'))?;
            return Ok(());
        }
        self.imported(node, Tok::Newline)
    }

    /// `type Name[…] = …`; `type` may also be an ordinary name.
    fn type_alias(&mut self) -> Read<u32> {
        let guess = self.guess();
        let node = self.open(kind::TYPE_ALIAS_STATEMENT);
        self.advance()?;
        if !self.at(Tok::Name) {
            self.go_back(guess)?;
            return self.expression_statement();
        }
        let name = self.leaf(kind::IDENTIFIER)?;
        self.type_parameters()?;
        self.close(name);
        self.add(node, name, field::LEFT);
        self.expect(Tok::Assign)?;
        let ty = self.expression()?;
        self.add(node, ty, field::RIGHT);
        Ok(self.close(node))
    }

    fn expression_statement(&mut self) -> Read<u32> {
        let statement = self.open(kind::EXPRESSION_STATEMENT);
        if self.at(Tok::Name) && self.text(self.tok) == "print" && self.lex.before_shift() {
            return Err(Unsure);
        }
        let first = self.list()?;
        let several = self.tree.kind(first) == kind::EXPRESSION_LIST;
        match self.tok.kind {
            Tok::Augmented | Tok::Colon if several => return Err(Unsure),
            Tok::Assign => {
                let node = self.assignment(first)?;
                self.add(statement, node, field::NO);
            }
            Tok::Augmented => {
                let node = self.around(kind::AUGMENTED_ASSIGNMENT, first, field::LEFT);
                self.advance()?;
                let value = self.list()?;
                self.add(node, value, field::RIGHT);
                self.close(node);
                self.add(statement, node, field::NO);
            }
            Tok::Colon => {
                let node = self.around(kind::ASSIGNMENT, first, field::LEFT);
                self.advance()?;
                let ty = self.expression()?;
                self.add(node, ty, field::TYPE);
                if self.eat(Tok::Assign)? {
                    let value = self.list()?;
                    self.add(node, value, field::RIGHT);
                }
                self.close(node);
                self.add(statement, node, field::NO);
            }
            _ if several => self.tree.move_children(first, statement),
            _ => self.add(statement, first, field::NO),
        }
        Ok(self.close(statement))
    }

    /// `left = …`, whose right side may be an assignment again.
    fn assignment(&mut self, left: u32) -> Read<u32> {
        if self.tree.kind(left) == kind::EXPRESSION_LIST {
            self.tree.set_kind(left, kind::PATTERN_LIST);
        }
        let node = self.around(kind::ASSIGNMENT, left, field::LEFT);
        self.advance()?;
        let mut right = self.list()?;
        if self.at(Tok::Assign) {
            right = self.deeper(|parser| parser.assignment(right))?;
        }
        self.add(node, right, field::RIGHT);
        Ok(self.close(node))
    }
}
