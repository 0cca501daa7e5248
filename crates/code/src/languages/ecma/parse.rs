//! Parses JavaScript and TypeScript by recursive descent: statements.
//!
//! Modern code is parsed, including types and JSX elements. Flow, errors, legacy syntax and very deep nesting are left
//! to tree-sitter. The facts are the same with either parser, which a test checks.

mod classes;
mod declarations;
mod elements;
mod expressions;
mod functions;
mod lex;
mod modules;
mod patterns;
#[cfg(test)]
mod tests;
mod types;

use super::syntax::{NAMES, field, kind};
use crate::convert::to_u32;
use crate::lang::descent::{Descent, Lex, ParseResult, SourceToken, UnsupportedSyntax, ensure};
use crate::languages::LanguageId;
use crate::tree::{SyntaxTree, flag};
use lex::{EcmaLexer, EcmaTokenKind, Word};

/// The tree of a text; `None` if it needs tree-sitter.
pub fn parse(text: &str, language: LanguageId) -> Option<SyntaxTree> {
    Parser::program(text, language).ok()
}

type Parser<'t> = Descent<'t, EcmaLexer<'t>, Mode>;

#[derive(Clone, Copy)]
struct Mode {
    /// TypeScript, with or without JSX elements.
    typed: bool,
    elements: bool,
    /// In the head of `for`, where `in` is not an operator.
    no_in: bool,
    /// Between `?` and `:`, where a result type would consume the `:`.
    choosing: bool,
    /// After `extends` in a type, where a further `extends` belongs to an enclosing type.
    no_conditional: bool,
}

impl<'t> Parser<'t> {
    fn program(text: &'t str, language: LanguageId) -> ParseResult<SyntaxTree> {
        let typed = language.name() != "javascript";
        let elements = language.name() != "typescript";
        let mode = Mode { typed, elements, no_in: false, choosing: false, no_conditional: false };
        let mut tree = SyntaxTree::new(text, &NAMES);
        let program = tree.push(kind::PROGRAM, flag::NAMED, 0, to_u32(text.len()));
        let mut lex = EcmaLexer::new(text)?;
        if let Some((start, end)) = lex.hash_bang() {
            let line = tree.push(kind::HASH_BANG_LINE, flag::NAMED, start, end);
            tree.append(program, line, field::NO);
        }
        lex.skip(|start, end| {
            let comment = tree.push(kind::COMMENT, flag::NAMED | flag::EXTRA, start, end);
            tree.append(program, comment, field::NO);
        })?;
        let mut parser = Parser::new(lex, tree, mode)?;
        while !parser.at(EcmaTokenKind::End) {
            parser.statement(program)?;
        }
        Ok(parser.tree)
    }

    // --- tokens ---

    /// The token after the next one, and whether it is on another line.
    fn look(&mut self) -> ParseResult<(SourceToken<EcmaTokenKind>, bool)> {
        let place = self.lex.place();
        let token = self.lex.next()?;
        let fresh = self.lex.state.fresh;
        self.lex.back_to(place)?;
        Ok((token, fresh))
    }

    /// Whether the next token is followed by this one on the same line.
    fn before(&mut self, kind: EcmaTokenKind) -> ParseResult<bool> {
        let (next, fresh) = self.look()?;
        Ok(next.kind == kind && !fresh)
    }

    /// The end of a statement, explicit or implicit.
    fn end(&mut self) -> ParseResult<()> {
        if self.eat(EcmaTokenKind::Semicolon)? || self.ends() { Ok(()) } else { Err(UnsupportedSyntax) }
    }

    /// Whether a statement may end here without a semicolon.
    fn ends(&self) -> bool {
        self.lex.state.fresh || matches!(self.tok.kind, EcmaTokenKind::Close(b'}') | EcmaTokenKind::End)
    }

    // --- nodes ---

    fn identifier(&mut self) -> ParseResult<u32> {
        self.name(kind::IDENTIFIER)
    }

    /// Reads in a changed mode.
    fn with_mode<R>(
        &mut self,
        change: impl FnOnce(&mut Mode),
        read: impl FnOnce(&mut Self) -> ParseResult<R>,
    ) -> ParseResult<R> {
        let before = self.state;
        change(&mut self.state);
        let result = read(self);
        self.state = before;
        result
    }

    /// Reads the content of brackets or bodies, where the modes of the context do not apply.
    fn inside<R>(&mut self, read: impl FnOnce(&mut Self) -> ParseResult<R>) -> ParseResult<R> {
        self.with_mode(|mode| (mode.no_in, mode.choosing, mode.no_conditional) = (false, false, false), read)
    }

    // --- statements ---

    fn statement(&mut self, parent: u32) -> ParseResult<()> {
        self.body(parent, field::NO)
    }

    /// A statement that is part of another one.
    fn body(&mut self, parent: u32, field: u8) -> ParseResult<()> {
        let node = self.deeper(Self::any_statement)?;
        ensure(!self.is_nameless(node))?;
        self.add(parent, node, field);
        Ok(())
    }

    /// Whether the node is a function or class without a name, so not a declaration.
    fn is_nameless(&self, node: u32) -> bool {
        matches!(self.tree.kind(node), kind::FUNCTION_EXPRESSION | kind::GENERATOR_FUNCTION | kind::CLASS)
    }

    fn any_statement(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            EcmaTokenKind::Open(b'{') => self.block(),
            EcmaTokenKind::Semicolon => self.leaf(kind::EMPTY_STATEMENT),
            EcmaTokenKind::At => self.decorated(false),
            EcmaTokenKind::Word(word) => self.word_statement(word),
            EcmaTokenKind::Name => self.name_statement(),
            _ => self.expression_statement(),
        }
    }

    fn word_statement(&mut self, word: Word) -> ParseResult<u32> {
        match word {
            Word::Var => self.variables(kind::VARIABLE_DECLARATION),
            Word::Const if self.state.typed && self.before(EcmaTokenKind::Word(Word::Enum))? => self.enumeration(),
            Word::Const => self.variables(kind::LEXICAL_DECLARATION),
            Word::Enum if self.state.typed => self.enumeration(),
            Word::Function => self.function_declaration(self.tok.start, false),
            Word::Class => self.class_declaration(&[], false),
            Word::If => self.if_statement(),
            Word::For => self.for_statement(),
            Word::While => self.while_statement(),
            Word::Do => self.do_statement(),
            Word::Switch => self.switch_statement(),
            Word::Try => self.try_statement(),
            Word::Return => self.valued(kind::RETURN_STATEMENT),
            Word::Throw => self.valued(kind::THROW_STATEMENT),
            Word::Break => self.jump(kind::BREAK_STATEMENT),
            Word::Continue => self.jump(kind::CONTINUE_STATEMENT),
            Word::Debugger => self.jump(kind::DEBUGGER_STATEMENT),
            Word::Import => match self.peek()?.kind {
                EcmaTokenKind::Open(b'(') | EcmaTokenKind::Dot => self.expression_statement(),
                _ => self.import_statement(),
            },
            Word::Export => self.export_statement(&[]),
            Word::Await if self.before(EcmaTokenKind::Name)? => self.await_statement(),
            _ => self.expression_statement(),
        }
    }

    /// Statements that begin with a contextual keyword.
    fn name_statement(&mut self) -> ParseResult<u32> {
        let name = self.text(self.tok);
        let known = matches!(name, "let" | "async" | "using")
            || self.state.typed
                && matches!(name, "type" | "interface" | "namespace" | "module" | "declare" | "abstract" | "global");
        let (next, fresh) = if known || self.lex.byte(self.tok.end) == b':' || self.lex.byte(self.tok.end) == b' ' {
            self.look()?
        } else {
            return self.expression_statement();
        };
        if next.kind == EcmaTokenKind::Colon {
            let node = self.begin(kind::LABELED_STATEMENT)?;
            self.advance()?;
            self.statement(node)?;
            return Ok(self.close(node));
        }
        match name {
            "let" => match next.kind {
                EcmaTokenKind::Name | EcmaTokenKind::Open(b'[' | b'{') => self.variables(kind::LEXICAL_DECLARATION),
                _ => Err(UnsupportedSyntax),
            },
            "async" if next.kind == EcmaTokenKind::Word(Word::Function) && !fresh => {
                let start = self.advance()?.start;
                self.function_declaration(start, true)
            }
            _ if !known || fresh => self.expression_statement(),
            "using" if next.kind == EcmaTokenKind::Name => self.variables(kind::USING_DECLARATION),
            "type" if next.kind == EcmaTokenKind::Name => self.type_alias(),
            "interface" if next.kind == EcmaTokenKind::Name => self.interface(),
            "namespace" if next.kind == EcmaTokenKind::Name => {
                let module = self.namespace(kind::INTERNAL_MODULE)?;
                Ok(self.wrapped(kind::EXPRESSION_STATEMENT, module, field::NO))
            }
            "module" if matches!(next.kind, EcmaTokenKind::Name | EcmaTokenKind::Str) => self.namespace(kind::MODULE),
            "declare" => self.ambient(next.kind),
            "global" if next.kind == EcmaTokenKind::Open(b'{') => {
                let node = self.open(kind::AMBIENT_DECLARATION);
                self.global(node)
            }
            "abstract" if next.kind == EcmaTokenKind::Word(Word::Class) => self.class_declaration(&[], true),
            _ => self.expression_statement(),
        }
    }

    /// `await using a = …`, or an expression that begins with `await`.
    fn await_statement(&mut self) -> ParseResult<u32> {
        let guess = self.guess();
        let start = self.advance()?.start;
        if !self.at_name("using") || !self.before(EcmaTokenKind::Name)? {
            self.back_to(guess)?;
            return self.expression_statement();
        }
        let node = self.variables(kind::USING_DECLARATION)?;
        self.tree.set_start(node, start);
        Ok(node)
    }

    fn expression_statement(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::EXPRESSION_STATEMENT);
        self.part(node, field::NO, Self::expressions)?;
        self.end()?;
        Ok(self.close(node))
    }

    fn block(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(EcmaTokenKind::Open(b'{'), kind::STATEMENT_BLOCK)?;
        self.inside(|parser| {
            while !parser.at(EcmaTokenKind::Close(b'}')) {
                parser.statement(node)?;
            }
            parser.advance()
        })?;
        Ok(self.close(node))
    }

    /// `(…)` after `if` and similar keywords.
    fn condition(&mut self, parent: u32) -> ParseResult<()> {
        self.require(EcmaTokenKind::Open(b'('))?;
        self.part(parent, field::CONDITION, Self::parenthesized)
    }

    /// Reads a chain of `else if` in a loop, because it may be longer than the allowed nesting.
    fn if_statement(&mut self) -> ParseResult<u32> {
        let first = self.open(kind::IF_STATEMENT);
        let mut open = vec![first];
        let mut node = first;
        loop {
            self.advance()?;
            self.condition(node)?;
            self.body(node, field::CONSEQUENCE)?;
            if !self.at_word(Word::Else) {
                break;
            }
            let clause = self.begin(kind::ELSE_CLAUSE)?;
            self.add(node, clause, field::ALTERNATIVE);
            open.push(clause);
            if !self.at_word(Word::If) {
                self.body(clause, field::NO)?;
                break;
            }
            node = self.open(kind::IF_STATEMENT);
            self.add(clause, node, field::NO);
            open.push(node);
        }
        for node in open {
            self.close(node);
        }
        Ok(first)
    }

    fn while_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::WHILE_STATEMENT)?;
        self.condition(node)?;
        self.body(node, field::BODY)?;
        Ok(self.close(node))
    }

    fn do_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::DO_STATEMENT)?;
        self.body(node, field::BODY)?;
        self.expect(EcmaTokenKind::Word(Word::While))?;
        self.condition(node)?;
        self.eat(EcmaTokenKind::Semicolon)?;
        Ok(self.close(node))
    }

    fn for_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::FOR_STATEMENT)?;
        self.eat_word(Word::Await)?;
        self.expect(EcmaTokenKind::Open(b'('))?;
        if !self.for_head(node)? {
            self.for_parts(node)?;
        }
        self.expect(EcmaTokenKind::Close(b')'))?;
        self.body(node, field::BODY)?;
        Ok(self.close(node))
    }

    /// The first part of the head, and all of it for `… of …` or `… in …`.
    fn for_head(&mut self, node: u32) -> ParseResult<bool> {
        let declared = match self.tok.kind {
            EcmaTokenKind::Semicolon => {
                self.token(node, field::NO, kind::EMPTY_STATEMENT)?;
                return Ok(false);
            }
            EcmaTokenKind::Word(Word::Var) => Some((kind::WORD_VAR, kind::VARIABLE_DECLARATION)),
            EcmaTokenKind::Word(Word::Const) => Some((kind::WORD_CONST, kind::LEXICAL_DECLARATION)),
            EcmaTokenKind::Name if self.text(self.tok) == "let" => Some((kind::WORD_LET, kind::LEXICAL_DECLARATION)),
            _ => None,
        };
        let Some((word, declaration)) = declared else {
            let first = self.with_mode(|mode| mode.no_in = true, Self::expressions)?;
            if self.over().is_some() {
                self.for_in(node, first)?;
                return Ok(true);
            }
            self.add(node, first, field::NO);
            self.expect(EcmaTokenKind::Semicolon)?;
            return Ok(false);
        };
        let guess = self.guess();
        let mark = self.tree.push(word, 0, self.tok.start, self.tok.end);
        self.advance()?;
        let target = self.pattern()?;
        if self.over().is_some() {
            self.add(node, mark, field::KIND);
            self.for_in(node, target)?;
            return Ok(true);
        }
        self.back_to(guess)?;
        let first = self.with_mode(|mode| mode.no_in = true, |parser| parser.declarators(declaration))?;
        self.expect(EcmaTokenKind::Semicolon)?;
        self.attach(node, first, field::NO);
        Ok(false)
    }

    /// The keyword between the loop variable and the iterated value: `of` or `in`.
    fn over(&self) -> Option<u16> {
        match self.tok.kind {
            EcmaTokenKind::Word(Word::In) => Some(kind::WORD_IN),
            EcmaTokenKind::Name if self.text(self.tok) == "of" => Some(kind::WORD_OF),
            _ => None,
        }
    }

    fn for_in(&mut self, node: u32, target: u32) -> ParseResult<()> {
        self.tree.set_kind(node, kind::FOR_IN_STATEMENT);
        self.add(node, target, field::LEFT);
        let word = self.over().ok_or(UnsupportedSyntax)?;
        self.mark(node, word, field::OPERATOR)?;
        self.part(node, field::RIGHT, Self::expressions)
    }

    /// The condition and the update expression.
    fn for_parts(&mut self, node: u32) -> ParseResult<()> {
        if self.at(EcmaTokenKind::Semicolon) {
            self.token(node, field::CONDITION, kind::EMPTY_STATEMENT)?;
        } else {
            self.part(node, field::CONDITION, Self::expressions)?;
            self.expect(EcmaTokenKind::Semicolon)?;
        }
        if !self.at(EcmaTokenKind::Close(b')')) {
            self.part(node, field::NO, Self::expressions)?;
        }
        Ok(())
    }

    fn switch_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::SWITCH_STATEMENT)?;
        self.require(EcmaTokenKind::Open(b'('))?;
        self.part(node, field::VALUE, Self::parenthesized)?;
        let body = self.begin_with(EcmaTokenKind::Open(b'{'), kind::SWITCH_BODY)?;
        while !self.at(EcmaTokenKind::Close(b'}')) {
            let case = self.open(kind::SWITCH_CASE);
            if self.eat_word(Word::Default)? {
                self.tree.set_kind(case, kind::SWITCH_DEFAULT);
            } else {
                self.expect(EcmaTokenKind::Word(Word::Case))?;
                self.part(case, field::VALUE, Self::expressions)?;
            }
            self.expect(EcmaTokenKind::Colon)?;
            while !matches!(self.tok.kind, EcmaTokenKind::Close(b'}') | EcmaTokenKind::Word(Word::Case | Word::Default))
            {
                self.statement(case)?;
            }
            self.attach(body, case, field::NO);
        }
        self.advance()?;
        Ok(self.attach_last(node, body, field::BODY))
    }

    fn try_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::TRY_STATEMENT)?;
        self.part(node, field::BODY, Self::block)?;
        if self.at_word(Word::Catch) {
            let clause = self.begin(kind::CATCH_CLAUSE)?;
            if self.eat(EcmaTokenKind::Open(b'('))? {
                self.part(clause, field::PARAMETER, Self::pattern)?;
                self.annotation(clause)?;
                self.expect(EcmaTokenKind::Close(b')'))?;
            }
            self.part(clause, field::BODY, Self::block)?;
            self.attach(node, clause, field::NO);
        }
        self.part_at(EcmaTokenKind::Word(Word::Finally), node, field::NO, |parser| {
            parser.prefixed(kind::FINALLY_CLAUSE, field::BODY, Self::block)
        })?;
        Ok(self.close(node))
    }

    /// `return` or `throw` with its value.
    fn valued(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        if !self.at(EcmaTokenKind::Semicolon) && !self.ends() {
            self.part(node, field::NO, Self::expressions)?;
        }
        self.end()?;
        Ok(self.close(node))
    }

    /// A keyword with an optional label: `break`, `continue`.
    fn jump(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        if self.at(EcmaTokenKind::Name) && !self.lex.state.fresh {
            self.advance()?;
        }
        self.end()?;
        Ok(self.close(node))
    }

    fn variables(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.declarators(kind)?;
        self.end()?;
        Ok(self.close(node))
    }

    /// `let` and similar keywords with their declarators, without the end of the statement.
    fn declarators(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.open(kind);
        match self.tok.kind {
            EcmaTokenKind::Word(Word::Const) => self.mark(node, kind::WORD_CONST, field::KIND)?,
            _ => self.skip()?,
        }
        loop {
            let declarator = self.open(kind::VARIABLE_DECLARATOR);
            self.part(declarator, field::NAME, Self::pattern)?;
            if self.state.typed {
                self.eat(EcmaTokenKind::Bang)?;
                self.annotation(declarator)?;
            }
            self.part_after(EcmaTokenKind::Assign, declarator, field::VALUE, Self::expression)?;
            self.attach(node, declarator, field::NO);
            if !self.eat(EcmaTokenKind::Comma)? {
                return Ok(node);
            }
        }
    }
}
