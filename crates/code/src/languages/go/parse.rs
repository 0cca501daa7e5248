//! Parses Go by recursive descent: declarations and statements.
//!
//! Errors and very deep nesting are left to tree-sitter. The facts are the same with either parser, which a test
//! checks.

mod expressions;
mod lex;
#[cfg(test)]
mod tests;
mod types;

use super::syntax::{NAMES, field, kind};
use crate::lang::descent::{Descent, Lex, Read, Unsure};
use crate::tree::{Tree, flag};
use lex::{Lexer, Tok, Word};

/// The tree of a text; `None` if it needs tree-sitter.
pub fn parse(text: &str) -> Option<Tree> {
    Parser::source_file(text).ok()
}

type Parser<'t> = Descent<'t, Lexer<'t>, Mode>;

#[derive(Clone, Copy)]
struct Mode {
    /// Between `if`, `for` or `switch` and its block: `{` begins that block, not a literal.
    header: bool,
}

impl<'t> Parser<'t> {
    fn source_file(text: &'t str) -> Read<Tree> {
        let mut tree = Tree::new(text, &NAMES);
        let root = tree.push(kind::SOURCE_FILE, flag::NAMED, 0, text.len() as u32);
        let mut parser = Parser::new(Lexer::new(text)?, tree, Mode { header: false })?;
        while !parser.at(Tok::End) {
            parser.remarks(root, kind::COMMENT);
            let node = parser.declaration()?;
            parser.add(root, node, field::NO);
            parser.expect(Tok::Semicolon)?;
        }
        parser.remarks(root, kind::COMMENT);
        Ok(parser.tree)
    }

    // --- tokens ---

    fn at_word(&self, word: Word) -> bool {
        self.at(Tok::Word(word))
    }

    fn source(&self) -> &'t str {
        self.lex.text()
    }

    // --- nodes ---

    fn identifier(&mut self) -> Read<u32> {
        if self.at(Tok::Name) { self.leaf(kind::IDENTIFIER) } else { Err(Unsure) }
    }

    /// Reads the content of brackets or bodies, where the header mode does not apply.
    fn inside<R>(&mut self, read: impl FnOnce(&mut Self) -> Read<R>) -> Read<R> {
        self.in_header(false, read)
    }

    fn in_header<R>(&mut self, header: bool, read: impl FnOnce(&mut Self) -> Read<R>) -> Read<R> {
        let before = std::mem::replace(&mut self.state.header, header);
        let result = read(self);
        self.state.header = before;
        result
    }

    // --- declarations ---

    fn declaration(&mut self) -> Read<u32> {
        match self.tok.kind {
            Tok::Word(Word::Package) => {
                let node = self.open(kind::PACKAGE_CLAUSE);
                self.advance()?;
                if !self.at(Tok::Name) {
                    return Err(Unsure);
                }
                let name = self.leaf(kind::PACKAGE_IDENTIFIER)?;
                self.add(node, name, field::NO);
                Ok(self.close(node))
            }
            Tok::Word(Word::Import) => self.import(),
            Tok::Word(Word::Func) => self.function(),
            Tok::Word(Word::Type | Word::Var | Word::Const) => self.definitions(),
            _ => Err(Unsure),
        }
    }

    fn import(&mut self) -> Read<u32> {
        let node = self.open(kind::IMPORT_DECLARATION);
        self.advance()?;
        if !self.at(Tok::Open(b'(')) {
            let spec = self.import_spec()?;
            self.add(node, spec, field::NO);
            return Ok(self.close(node));
        }
        let list = self.open(kind::IMPORT_SPEC_LIST);
        self.advance()?;
        while !self.at(Tok::Close(b')')) {
            let spec = self.import_spec()?;
            self.add(list, spec, field::NO);
            self.item_end()?;
        }
        self.advance()?;
        self.close(list);
        self.add(node, list, field::NO);
        Ok(self.close(node))
    }

    fn import_spec(&mut self) -> Read<u32> {
        let node = self.open(kind::IMPORT_SPEC);
        let name = match self.tok.kind {
            Tok::Dot => Some(kind::DOT),
            Tok::Name if self.text(self.tok) == "_" => Some(kind::BLANK_IDENTIFIER),
            Tok::Name => Some(kind::PACKAGE_IDENTIFIER),
            _ => None,
        };
        if let Some(name) = name {
            let name = self.leaf(name)?;
            self.add(node, name, field::NAME);
        }
        let path = match self.tok.kind {
            Tok::Str => self.leaf(kind::INTERPRETED_STRING_LITERAL)?,
            Tok::RawStr => self.leaf(kind::RAW_STRING_LITERAL)?,
            _ => return Err(Unsure),
        };
        self.add(node, path, field::PATH);
        Ok(self.close(node))
    }

    fn function(&mut self) -> Read<u32> {
        let node = self.open(kind::FUNCTION_DECLARATION);
        self.advance()?;
        let method = self.at(Tok::Open(b'('));
        if method {
            self.tree.set_kind(node, kind::METHOD_DECLARATION);
            let receiver = self.parameters()?;
            self.add(node, receiver, field::RECEIVER);
        }
        if !self.at(Tok::Name) {
            return Err(Unsure);
        }
        let name = self.leaf(if method { kind::FIELD_IDENTIFIER } else { kind::IDENTIFIER })?;
        self.add(node, name, field::NAME);
        if self.at(Tok::Open(b'[')) {
            self.type_parameters(node)?;
        }
        self.signature(node)?;
        if self.at(Tok::Open(b'{')) {
            let body = self.block()?;
            self.add(node, body, field::BODY);
        }
        Ok(self.close(node))
    }

    /// `type`, `var` or `const`, with one definition or several in parentheses.
    fn definitions(&mut self) -> Read<u32> {
        let (kind, spec): (u16, fn(&mut Self) -> Read<u32>) = match self.tok.kind {
            Tok::Word(Word::Type) => (kind::TYPE_DECLARATION, Self::type_spec),
            Tok::Word(Word::Var) => (kind::VAR_DECLARATION, |parser| parser.value_spec(kind::VAR_SPEC)),
            _ => (kind::CONST_DECLARATION, |parser| parser.value_spec(kind::CONST_SPEC)),
        };
        let node = self.open(kind);
        self.advance()?;
        if !self.at(Tok::Open(b'(')) {
            let one = spec(self)?;
            self.add(node, one, field::NO);
            return Ok(self.close(node));
        }
        let list = if kind == kind::VAR_DECLARATION { self.open(kind::VAR_SPEC_LIST) } else { node };
        self.mark(list, kind::SIGN_OPEN, field::NO)?;
        while !self.at(Tok::Close(b')')) {
            self.remarks(list, kind::COMMENT);
            let one = spec(self)?;
            self.add(list, one, field::NO);
            self.item_end()?;
        }
        self.advance()?;
        if list != node {
            self.close(list);
            self.add(node, list, field::NO);
        }
        Ok(self.close(node))
    }

    fn type_spec(&mut self) -> Read<u32> {
        let node = self.open(kind::TYPE_SPEC);
        if !self.at(Tok::Name) {
            return Err(Unsure);
        }
        let name = self.leaf(kind::TYPE_IDENTIFIER)?;
        self.add(node, name, field::NAME);
        if self.at(Tok::Open(b'[')) && self.opens_type_parameters()? {
            self.type_parameters(node)?;
        }
        if self.eat(Tok::Assign)? {
            self.tree.set_kind(node, kind::TYPE_ALIAS);
        }
        let ty = self.ty()?;
        self.add(node, ty, field::TYPE);
        Ok(self.close(node))
    }

    /// `type A[T any] …`, not `type A [N]int`.
    fn opens_type_parameters(&mut self) -> Read<bool> {
        let guess = self.guess();
        self.advance()?;
        let mut opens = false;
        if self.at(Tok::Name) {
            self.advance()?;
            opens = !matches!(self.tok.kind, Tok::Close(b']') | Tok::Dot) && self.binds_nothing();
        }
        self.go_back(guess)?;
        Ok(opens)
    }

    /// Whether the next token is not an operator between numbers, with which an array length would continue.
    fn binds_nothing(&self) -> bool {
        !matches!(self.tok.kind, Tok::Plus | Tok::Minus | Tok::Times | Tok::Compare | Tok::And | Tok::Or)
    }

    fn value_spec(&mut self, kind: u16) -> Read<u32> {
        let node = self.open(kind);
        loop {
            let name = self.identifier()?;
            self.add(node, name, field::NAME);
            if !self.eat(Tok::Comma)? {
                break;
            }
        }
        let typed = self.begins_type();
        if typed {
            let ty = self.ty()?;
            self.add(node, ty, field::TYPE);
        }
        if self.eat(Tok::Assign)? {
            let values = self.expressions()?;
            self.add(node, values, field::VALUE);
        } else if kind == kind::VAR_SPEC && !typed {
            return Err(Unsure);
        }
        Ok(self.close(node))
    }

    // --- statements ---

    fn block(&mut self) -> Read<u32> {
        let node = self.open(kind::BLOCK);
        self.expect(Tok::Open(b'{'))?;
        self.deeper(|parser| parser.inside(|parser| parser.statements(node)))?;
        self.expect(Tok::Close(b'}'))?;
        Ok(self.close(node))
    }

    /// Statements up to a closing brace or the next case.
    fn statements(&mut self, parent: u32) -> Read<()> {
        let list = self.open(kind::STATEMENT_LIST);
        let mut any = false;
        while !matches!(self.tok.kind, Tok::Close(b'}') | Tok::Word(Word::Case | Word::Default)) {
            any = true;
            if self.at_word(Word::Type) {
                // The comment above a type declaration is its doc comment.
                self.remarks(list, kind::COMMENT);
            }
            let statement = self.statement()?;
            if let Some(statement) = statement {
                self.add(list, statement, field::NO);
            }
            if !self.eat(Tok::Semicolon)? && !matches!(self.tok.kind, Tok::Close(b'}')) {
                return Err(Unsure);
            }
        }
        if any {
            self.close(list);
            self.add(parent, list, field::NO);
        }
        Ok(())
    }

    /// A statement; `None` if it is empty.
    fn statement(&mut self) -> Read<Option<u32>> {
        let first = self.tok.kind;
        let word = match first {
            Tok::Word(word) => word,
            Tok::Semicolon => return Ok(None),
            Tok::Open(b'{') => return self.block().map(Some),
            Tok::Name if self.peek()?.kind == Tok::Colon => return self.labeled().map(Some),
            _ => return self.simple().map(Some),
        };
        let node = match word {
            Word::Var | Word::Const | Word::Type => self.definitions()?,
            Word::Return => {
                let node = self.open(kind::RETURN_STATEMENT);
                self.advance()?;
                if !matches!(self.tok.kind, Tok::Semicolon | Tok::Close(b'}')) {
                    let values = self.expressions()?;
                    self.add(node, values, field::NO);
                }
                self.close(node)
            }
            Word::If => self.deeper(Self::if_statement)?,
            Word::For => self.for_statement()?,
            Word::Switch => self.switch_statement()?,
            Word::Select => self.select_statement()?,
            Word::Go => self.started(kind::GO_STATEMENT)?,
            Word::Defer => self.started(kind::DEFER_STATEMENT)?,
            Word::Break => self.jump(kind::BREAK_STATEMENT)?,
            Word::Continue => self.jump(kind::CONTINUE_STATEMENT)?,
            Word::Goto => self.jump(kind::GOTO_STATEMENT)?,
            Word::Fallthrough => self.jump(kind::FALLTHROUGH_STATEMENT)?,
            Word::Func | Word::Map | Word::Chan | Word::Struct | Word::Interface => self.simple()?,
            _ => return Err(Unsure),
        };
        Ok(Some(node))
    }

    fn labeled(&mut self) -> Read<u32> {
        let node = self.open(kind::LABELED_STATEMENT);
        let label = self.leaf(kind::LABEL_NAME)?;
        self.add(node, label, field::NO);
        self.advance()?;
        self.eat(Tok::Semicolon)?;
        if !self.at(Tok::Close(b'}'))
            && let Some(statement) = self.deeper(Self::statement)?
        {
            self.add(node, statement, field::NO);
        }
        Ok(self.close(node))
    }

    /// `go …` and `defer …`.
    fn started(&mut self, kind: u16) -> Read<u32> {
        let node = self.open(kind);
        self.advance()?;
        let call = self.expression()?;
        self.add(node, call, field::NO);
        Ok(self.close(node))
    }

    fn jump(&mut self, kind: u16) -> Read<u32> {
        let node = self.open(kind);
        self.advance()?;
        if self.at(Tok::Name) {
            self.advance()?;
        }
        Ok(self.close(node))
    }

    /// Assignments, short variable declarations, sends, increments, and single expressions.
    fn simple(&mut self) -> Read<u32> {
        let left = self.expressions()?;
        self.simple_with(left)
    }

    fn simple_with(&mut self, left: u32) -> Read<u32> {
        match self.tok.kind {
            Tok::Define => {
                let node = self.around(kind::SHORT_VAR_DECLARATION, left, field::LEFT);
                self.mark(node, kind::SIGN_DEFINE, field::NO)?;
                self.right(node)
            }
            Tok::Assign => {
                let node = self.around(kind::ASSIGNMENT_STATEMENT, left, field::LEFT);
                self.mark(node, kind::SIGN_ASSIGN, field::OPERATOR)?;
                self.right(node)
            }
            Tok::Augmented => {
                let node = self.around(kind::ASSIGNMENT_STATEMENT, left, field::LEFT);
                self.mark(node, kind::SIGN_AUGMENTED, field::OPERATOR)?;
                self.right(node)
            }
            kind => {
                let value = self.only(left)?;
                let node = match kind {
                    Tok::Step => kind::INC_STATEMENT,
                    Tok::Arrow => kind::SEND_STATEMENT,
                    _ => kind::EXPRESSION_STATEMENT,
                };
                let sends = node == kind::SEND_STATEMENT;
                let node = self.around(node, value, if sends { field::CHANNEL } else { field::NO });
                if kind == Tok::Step {
                    self.advance()?;
                } else if sends {
                    self.advance()?;
                    let value = self.expression()?;
                    self.add(node, value, field::VALUE);
                }
                Ok(self.close(node))
            }
        }
    }

    fn right(&mut self, node: u32) -> Read<u32> {
        let values = self.expressions()?;
        self.add(node, values, field::RIGHT);
        Ok(self.close(node))
    }

    /// The single expression of a list, without the list.
    fn only(&mut self, list: u32) -> Read<u32> {
        self.tree.take_only_child(list).ok_or(Unsure)
    }

    fn if_statement(&mut self) -> Read<u32> {
        let node = self.open(kind::IF_STATEMENT);
        self.advance()?;
        self.in_header(true, |parser| {
            if !parser.at(Tok::Semicolon) {
                let first = parser.simple()?;
                if !parser.at(Tok::Semicolon) {
                    let condition = parser.value_of(first)?;
                    parser.add(node, condition, field::CONDITION);
                    return Ok(());
                }
                parser.add(node, first, field::INITIALIZER);
            }
            parser.advance()?;
            let condition = parser.expression()?;
            parser.add(node, condition, field::CONDITION);
            Ok(())
        })?;
        let block = self.block()?;
        self.add(node, block, field::CONSEQUENCE);
        if self.at_word(Word::Else) {
            self.advance()?;
            let other = match self.tok.kind {
                Tok::Word(Word::If) => self.deeper(Self::if_statement)?,
                _ => self.block()?,
            };
            self.add(node, other, field::ALTERNATIVE);
        }
        Ok(self.close(node))
    }

    /// The expression of an expression statement: a condition is first read as a statement.
    fn value_of(&mut self, statement: u32) -> Read<u32> {
        if self.tree.kind(statement) != kind::EXPRESSION_STATEMENT {
            return Err(Unsure);
        }
        self.only(statement)
    }

    fn for_statement(&mut self) -> Read<u32> {
        let node = self.open(kind::FOR_STATEMENT);
        self.advance()?;
        self.in_header(true, |parser| parser.for_header(node))?;
        let block = self.block()?;
        self.add(node, block, field::BODY);
        Ok(self.close(node))
    }

    fn for_header(&mut self, node: u32) -> Read<()> {
        if self.at(Tok::Open(b'{')) {
            return Ok(());
        }
        let clause = self.open(kind::FOR_CLAUSE);
        if self.at_word(Word::Range) {
            return self.range(node, clause);
        }
        if !self.at(Tok::Semicolon) {
            let left = self.expressions()?;
            if matches!(self.tok.kind, Tok::Define | Tok::Assign) && self.peek()?.kind == Tok::Word(Word::Range) {
                self.add(clause, left, field::LEFT);
                let sign = if self.at(Tok::Define) { kind::SIGN_DEFINE } else { kind::SIGN_ASSIGN };
                self.mark(clause, sign, field::NO)?;
                return self.range(node, clause);
            }
            let first = self.simple_with(left)?;
            if self.at(Tok::Open(b'{')) {
                let condition = self.value_of(first)?;
                self.add(node, condition, field::NO);
                return Ok(());
            }
            self.add(clause, first, field::INITIALIZER);
        }
        self.expect(Tok::Semicolon)?;
        if !self.at(Tok::Semicolon) {
            let condition = self.expression()?;
            self.add(clause, condition, field::CONDITION);
        }
        self.expect(Tok::Semicolon)?;
        if !self.at(Tok::Open(b'{')) {
            let update = self.simple()?;
            self.add(clause, update, field::NO);
        }
        self.close(clause);
        self.add(node, clause, field::NO);
        Ok(())
    }

    fn range(&mut self, node: u32, clause: u32) -> Read<()> {
        self.tree.set_kind(clause, kind::RANGE_CLAUSE);
        self.advance()?;
        let over = self.expression()?;
        self.add(clause, over, field::RIGHT);
        self.close(clause);
        self.add(node, clause, field::NO);
        Ok(())
    }

    fn switch_statement(&mut self) -> Read<u32> {
        let node = self.open(kind::EXPRESSION_SWITCH_STATEMENT);
        self.advance()?;
        self.in_header(true, |parser| {
            if parser.at(Tok::Open(b'{')) {
                return Ok(());
            }
            let mut first = if parser.at(Tok::Semicolon) { None } else { Some(parser.simple()?) };
            if parser.at(Tok::Semicolon) {
                parser.advance()?;
                if let Some(first) = first.take() {
                    parser.add(node, first, field::INITIALIZER);
                }
                if !parser.at(Tok::Open(b'{')) {
                    first = Some(parser.simple()?);
                }
            }
            match first {
                Some(first) => parser.switched(node, first),
                None => Ok(()),
            }
        })?;
        self.expect(Tok::Open(b'{'))?;
        let by_type = self.tree.kind(node) == kind::TYPE_SWITCH_STATEMENT;
        while !self.at(Tok::Close(b'}')) {
            let case = self.open(if by_type { kind::TYPE_CASE } else { kind::EXPRESSION_CASE });
            if self.at_word(Word::Default) {
                self.advance()?;
                self.tree.set_kind(case, kind::DEFAULT_CASE);
            } else {
                self.expect(Tok::Word(Word::Case))?;
                self.inside(|parser| parser.cases(case, by_type))?;
            }
            self.expect(Tok::Colon)?;
            self.deeper(|parser| parser.inside(|parser| parser.statements(case)))?;
            self.close(case);
            self.add(node, case, field::NO);
        }
        self.advance()?;
        Ok(self.close(node))
    }

    fn cases(&mut self, case: u32, by_type: bool) -> Read<()> {
        if !by_type {
            let values = self.expressions()?;
            self.add(case, values, field::VALUE);
            return Ok(());
        }
        loop {
            let ty = self.ty()?;
            self.add(case, ty, field::TYPE);
            if !self.eat(Tok::Comma)? {
                return Ok(());
            }
        }
    }

    /// The operand of a switch: a value, or `x := y.(type)`.
    fn switched(&mut self, node: u32, first: u32) -> Read<()> {
        let (alias, value) = match self.tree.kind(first) {
            kind::EXPRESSION_STATEMENT => (None, self.only(first)?),
            kind::SHORT_VAR_DECLARATION => {
                let (alias, values) = self.tree.take_ends(first).ok_or(Unsure)?;
                (Some(alias), self.only(values)?)
            }
            _ => return Err(Unsure),
        };
        let of = self.tree.node(value);
        let by_type = of.kind() == "type_assertion_expression" && of.kids().field("type").is_none();
        if by_type {
            self.tree.set_kind(node, kind::TYPE_SWITCH_STATEMENT);
            if let Some(alias) = alias {
                self.add(node, alias, field::ALIAS);
            }
            let of = self.only(value)?;
            self.add(node, of, field::VALUE);
            return Ok(());
        }
        if alias.is_some() {
            return Err(Unsure);
        }
        self.add(node, value, field::VALUE);
        Ok(())
    }

    fn select_statement(&mut self) -> Read<u32> {
        let node = self.open(kind::SELECT_STATEMENT);
        self.advance()?;
        self.expect(Tok::Open(b'{'))?;
        while !self.at(Tok::Close(b'}')) {
            let case = self.open(kind::COMMUNICATION_CASE);
            if self.at_word(Word::Default) {
                self.advance()?;
                self.tree.set_kind(case, kind::DEFAULT_CASE);
            } else {
                self.expect(Tok::Word(Word::Case))?;
                let communication = self.inside(Self::communication)?;
                self.add(case, communication, field::COMMUNICATION);
            }
            self.expect(Tok::Colon)?;
            self.deeper(|parser| parser.inside(|parser| parser.statements(case)))?;
            self.close(case);
            self.add(node, case, field::NO);
        }
        self.advance()?;
        Ok(self.close(node))
    }

    /// A send, or a receive with optional targets.
    fn communication(&mut self) -> Read<u32> {
        let left = self.expressions()?;
        match self.tok.kind {
            Tok::Define | Tok::Assign => {
                let node = self.around(kind::RECEIVE_STATEMENT, left, field::LEFT);
                let sign = if self.at(Tok::Define) { kind::SIGN_DEFINE } else { kind::SIGN_ASSIGN };
                self.mark(node, sign, field::NO)?;
                let right = self.expression()?;
                self.add(node, right, field::RIGHT);
                Ok(self.close(node))
            }
            Tok::Arrow => self.simple_with(left),
            _ => {
                let value = self.only(left)?;
                let node = self.around(kind::RECEIVE_STATEMENT, value, field::RIGHT);
                Ok(self.close(node))
            }
        }
    }
}
