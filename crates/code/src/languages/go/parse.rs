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
use crate::lang::descent::{Descent, HeaderMode, Lex, ParseResult, UnsupportedSyntax, ensure};
use crate::tree::SyntaxTree;
use lex::{GoLexer, GoTokenKind, Word};

/// The tree of a text; `None` if it needs tree-sitter.
pub fn parse(text: &str) -> Option<SyntaxTree> {
    let lexer = GoLexer::new(text).ok()?;
    Parser::whole_text(lexer, &NAMES, kind::SOURCE_FILE, HeaderMode::default(), Parser::source_file)
}

type Parser<'t> = Descent<'t, GoLexer<'t>, HeaderMode>;

impl<'t> Parser<'t> {
    fn source_file(&mut self, root: u32) -> ParseResult<()> {
        while !self.at(GoTokenKind::End) {
            self.remarks(root, kind::COMMENT);
            self.part(root, field::NO, Self::declaration)?;
            self.expect(GoTokenKind::Semicolon)?;
        }
        self.remarks(root, kind::COMMENT);
        Ok(())
    }

    // --- tokens ---

    fn source(&self) -> &'t str {
        self.lex.text()
    }

    // --- nodes ---

    fn identifier(&mut self) -> ParseResult<u32> {
        self.name(kind::IDENTIFIER)
    }

    // --- declarations ---

    fn declaration(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            GoTokenKind::Word(Word::Package) => {
                let node = self.begin(kind::PACKAGE_CLAUSE)?;
                self.last_name(node, field::NO, kind::PACKAGE_IDENTIFIER)
            }
            GoTokenKind::Word(Word::Import) => self.import(),
            GoTokenKind::Word(Word::Func) => self.function(),
            GoTokenKind::Word(Word::Type | Word::Var | Word::Const) => self.definitions(),
            _ => Err(UnsupportedSyntax),
        }
    }

    fn import(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::IMPORT_DECLARATION)?;
        if !self.at(GoTokenKind::Open(b'(')) {
            return self.last(node, field::NO, Self::import_spec);
        }
        let list = self.begin(kind::IMPORT_SPEC_LIST)?;
        while !self.at(GoTokenKind::Close(b')')) {
            self.part(list, field::NO, Self::import_spec)?;
            self.item_end()?;
        }
        self.advance()?;
        Ok(self.attach_last(node, list, field::NO))
    }

    fn import_spec(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::IMPORT_SPEC);
        let name = match self.tok.kind {
            GoTokenKind::Dot => Some(kind::DOT),
            GoTokenKind::Name if self.text(self.tok) == "_" => Some(kind::BLANK_IDENTIFIER),
            GoTokenKind::Name => Some(kind::PACKAGE_IDENTIFIER),
            _ => None,
        };
        if let Some(name) = name {
            self.token(node, field::NAME, name)?;
        }
        let path = match self.tok.kind {
            GoTokenKind::Str => self.leaf(kind::INTERPRETED_STRING_LITERAL)?,
            GoTokenKind::RawStr => self.leaf(kind::RAW_STRING_LITERAL)?,
            _ => return Err(UnsupportedSyntax),
        };
        self.add(node, path, field::PATH);
        Ok(self.close(node))
    }

    fn function(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::FUNCTION_DECLARATION)?;
        let method = self.at(GoTokenKind::Open(b'('));
        if method {
            self.tree.set_kind(node, kind::METHOD_DECLARATION);
            self.part(node, field::RECEIVER, Self::parameters)?;
        }
        self.require(GoTokenKind::Name)?;
        self.part(node, field::NAME, |parser| {
            parser.leaf(if method { kind::FIELD_IDENTIFIER } else { kind::IDENTIFIER })
        })?;
        if self.at(GoTokenKind::Open(b'[')) {
            self.type_parameters(node)?;
        }
        self.signature(node)?;
        self.part_at(GoTokenKind::Open(b'{'), node, field::BODY, Self::block)?;
        Ok(self.close(node))
    }

    /// `type`, `var` or `const`, with one definition or several in parentheses.
    fn definitions(&mut self) -> ParseResult<u32> {
        let (kind, spec): (u16, fn(&mut Self) -> ParseResult<u32>) = match self.tok.kind {
            GoTokenKind::Word(Word::Type) => (kind::TYPE_DECLARATION, Self::type_spec),
            GoTokenKind::Word(Word::Var) => (kind::VAR_DECLARATION, |parser| parser.value_spec(kind::VAR_SPEC)),
            _ => (kind::CONST_DECLARATION, |parser| parser.value_spec(kind::CONST_SPEC)),
        };
        let node = self.begin(kind)?;
        if !self.at(GoTokenKind::Open(b'(')) {
            let one = spec(self)?;
            self.add(node, one, field::NO);
            return Ok(self.close(node));
        }
        let list = if kind == kind::VAR_DECLARATION { self.open(kind::VAR_SPEC_LIST) } else { node };
        self.mark(list, kind::SIGN_OPEN, field::NO)?;
        while !self.at(GoTokenKind::Close(b')')) {
            self.remarks(list, kind::COMMENT);
            let one = spec(self)?;
            self.add(list, one, field::NO);
            self.item_end()?;
        }
        self.advance()?;
        if list != node {
            self.attach(node, list, field::NO);
        }
        Ok(self.close(node))
    }

    fn type_spec(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::TYPE_SPEC);
        self.part_name(node, field::NAME, kind::TYPE_IDENTIFIER)?;
        if self.at(GoTokenKind::Open(b'[')) && self.opens_type_parameters()? {
            self.type_parameters(node)?;
        }
        if self.eat(GoTokenKind::Assign)? {
            self.tree.set_kind(node, kind::TYPE_ALIAS);
        }
        self.last(node, field::TYPE, Self::ty)
    }

    /// `type A[T any] …`, not `type A [N]int`.
    fn opens_type_parameters(&mut self) -> ParseResult<bool> {
        self.ahead(|parser| {
            parser.advance()?;
            let mut opens = false;
            if parser.at(GoTokenKind::Name) {
                parser.advance()?;
                opens =
                    !matches!(parser.tok.kind, GoTokenKind::Close(b']') | GoTokenKind::Dot) && parser.binds_nothing();
            }
            Ok(opens)
        })
    }

    /// Whether the next token is not an operator between numbers, with which an array length would continue.
    fn binds_nothing(&self) -> bool {
        !matches!(
            self.tok.kind,
            GoTokenKind::Plus
                | GoTokenKind::Minus
                | GoTokenKind::Times
                | GoTokenKind::Compare
                | GoTokenKind::And
                | GoTokenKind::Or
        )
    }

    fn value_spec(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.open(kind);
        self.chain(node, field::NAME, GoTokenKind::Comma, Self::identifier)?;
        let typed = self.begins_type();
        if typed {
            self.part(node, field::TYPE, Self::ty)?;
        }
        if self.eat(GoTokenKind::Assign)? {
            self.part(node, field::VALUE, Self::expressions)?;
        } else if kind == kind::VAR_SPEC && !typed {
            return Err(UnsupportedSyntax);
        }
        Ok(self.close(node))
    }

    // --- statements ---

    fn block(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(GoTokenKind::Open(b'{'), kind::BLOCK)?;
        self.deeper(|parser| parser.inside(|parser| parser.statements(node)))?;
        self.close_with(GoTokenKind::Close(b'}'), node)
    }

    /// Statements up to a closing brace or the next case.
    fn statements(&mut self, parent: u32) -> ParseResult<()> {
        let list = self.open(kind::STATEMENT_LIST);
        let mut any = false;
        while !matches!(self.tok.kind, GoTokenKind::Close(b'}') | GoTokenKind::Word(Word::Case | Word::Default)) {
            any = true;
            if self.at_word(Word::Type) {
                // The comment above a type declaration is its doc comment.
                self.remarks(list, kind::COMMENT);
            }
            let statement = self.statement()?;
            self.add_all(list, statement, field::NO);
            if !self.eat(GoTokenKind::Semicolon)? && !matches!(self.tok.kind, GoTokenKind::Close(b'}')) {
                return Err(UnsupportedSyntax);
            }
        }
        if any {
            self.attach(parent, list, field::NO);
        }
        Ok(())
    }

    /// A statement; `None` if it is empty.
    fn statement(&mut self) -> ParseResult<Option<u32>> {
        let first = self.tok.kind;
        let word = match first {
            GoTokenKind::Word(word) => word,
            GoTokenKind::Semicolon => return Ok(None),
            GoTokenKind::Open(b'{') => return self.block().map(Some),
            GoTokenKind::Name if self.peek()?.kind == GoTokenKind::Colon => return self.labeled().map(Some),
            _ => return self.simple().map(Some),
        };
        let node = match word {
            Word::Var | Word::Const | Word::Type => self.definitions()?,
            Word::Return => {
                let node = self.begin(kind::RETURN_STATEMENT)?;
                if !matches!(self.tok.kind, GoTokenKind::Semicolon | GoTokenKind::Close(b'}')) {
                    self.part(node, field::NO, Self::expressions)?;
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
            _ => return Err(UnsupportedSyntax),
        };
        Ok(Some(node))
    }

    fn labeled(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::LABELED_STATEMENT);
        self.token(node, field::NO, kind::LABEL_NAME)?;
        self.advance()?;
        self.eat(GoTokenKind::Semicolon)?;
        if !self.at(GoTokenKind::Close(b'}'))
            && let Some(statement) = self.deeper(Self::statement)?
        {
            self.add(node, statement, field::NO);
        }
        Ok(self.close(node))
    }

    /// `go …` and `defer …`.
    fn started(&mut self, kind: u16) -> ParseResult<u32> {
        self.prefixed(kind, field::NO, Self::expression)
    }

    fn jump(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        self.eat(GoTokenKind::Name)?;
        Ok(self.close(node))
    }

    /// Assignments, short variable declarations, sends, increments, and single expressions.
    fn simple(&mut self) -> ParseResult<u32> {
        let left = self.expressions()?;
        self.simple_with(left)
    }

    fn simple_with(&mut self, left: u32) -> ParseResult<u32> {
        match self.tok.kind {
            GoTokenKind::Define => {
                let node = self.around(kind::SHORT_VAR_DECLARATION, left, field::LEFT);
                self.mark(node, kind::SIGN_DEFINE, field::NO)?;
                self.right(node)
            }
            GoTokenKind::Assign => {
                let node = self.around(kind::ASSIGNMENT_STATEMENT, left, field::LEFT);
                self.mark(node, kind::SIGN_ASSIGN, field::OPERATOR)?;
                self.right(node)
            }
            GoTokenKind::Augmented => {
                let node = self.around(kind::ASSIGNMENT_STATEMENT, left, field::LEFT);
                self.mark(node, kind::SIGN_AUGMENTED, field::OPERATOR)?;
                self.right(node)
            }
            kind => {
                let value = self.only(left)?;
                let node = match kind {
                    GoTokenKind::Step => kind::INC_STATEMENT,
                    GoTokenKind::Arrow => kind::SEND_STATEMENT,
                    _ => kind::EXPRESSION_STATEMENT,
                };
                let sends = node == kind::SEND_STATEMENT;
                let node = self.around(node, value, if sends { field::CHANNEL } else { field::NO });
                if kind == GoTokenKind::Step {
                    self.advance()?;
                } else if sends {
                    self.advance()?;
                    self.part(node, field::VALUE, Self::expression)?;
                }
                Ok(self.close(node))
            }
        }
    }

    fn right(&mut self, node: u32) -> ParseResult<u32> {
        self.last(node, field::RIGHT, Self::expressions)
    }

    /// The single expression of a list, without the list.
    fn only(&mut self, list: u32) -> ParseResult<u32> {
        self.tree.take_only_child(list).ok_or(UnsupportedSyntax)
    }

    fn if_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::IF_STATEMENT)?;
        self.in_header(true, |parser| {
            if !parser.at(GoTokenKind::Semicolon) {
                let first = parser.simple()?;
                if !parser.at(GoTokenKind::Semicolon) {
                    return parser.part(node, field::CONDITION, |parser| parser.value_of(first));
                }
                parser.add(node, first, field::INITIALIZER);
            }
            parser.advance()?;
            parser.part(node, field::CONDITION, Self::expression)
        })?;
        self.part(node, field::CONSEQUENCE, Self::block)?;
        if self.at_word(Word::Else) {
            self.advance()?;
            let other = match self.tok.kind {
                GoTokenKind::Word(Word::If) => self.deeper(Self::if_statement)?,
                _ => self.block()?,
            };
            self.add(node, other, field::ALTERNATIVE);
        }
        Ok(self.close(node))
    }

    /// The expression of an expression statement: a condition is first read as a statement.
    fn value_of(&mut self, statement: u32) -> ParseResult<u32> {
        ensure(self.tree.kind(statement) == kind::EXPRESSION_STATEMENT)?;
        self.only(statement)
    }

    fn for_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::FOR_STATEMENT)?;
        self.in_header(true, |parser| parser.for_header(node))?;
        self.last(node, field::BODY, Self::block)
    }

    fn for_header(&mut self, node: u32) -> ParseResult<()> {
        if self.at(GoTokenKind::Open(b'{')) {
            return Ok(());
        }
        let clause = self.open(kind::FOR_CLAUSE);
        if self.at_word(Word::Range) {
            return self.range(node, clause);
        }
        if !self.at(GoTokenKind::Semicolon) {
            let left = self.expressions()?;
            if matches!(self.tok.kind, GoTokenKind::Define | GoTokenKind::Assign)
                && self.peek()?.kind == GoTokenKind::Word(Word::Range)
            {
                self.add(clause, left, field::LEFT);
                let sign = if self.at(GoTokenKind::Define) { kind::SIGN_DEFINE } else { kind::SIGN_ASSIGN };
                self.mark(clause, sign, field::NO)?;
                return self.range(node, clause);
            }
            let first = self.simple_with(left)?;
            if self.at(GoTokenKind::Open(b'{')) {
                return self.part(node, field::NO, |parser| parser.value_of(first));
            }
            self.add(clause, first, field::INITIALIZER);
        }
        self.expect(GoTokenKind::Semicolon)?;
        if !self.at(GoTokenKind::Semicolon) {
            self.part(clause, field::CONDITION, Self::expression)?;
        }
        self.expect(GoTokenKind::Semicolon)?;
        if !self.at(GoTokenKind::Open(b'{')) {
            self.part(clause, field::NO, Self::simple)?;
        }
        self.attach(node, clause, field::NO);
        Ok(())
    }

    fn range(&mut self, node: u32, clause: u32) -> ParseResult<()> {
        self.decide(clause, kind::RANGE_CLAUSE)?;
        self.part(clause, field::RIGHT, Self::expression)?;
        self.attach(node, clause, field::NO);
        Ok(())
    }

    fn switch_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::EXPRESSION_SWITCH_STATEMENT)?;
        self.in_header(true, |parser| {
            if parser.at(GoTokenKind::Open(b'{')) {
                return Ok(());
            }
            let mut first = if parser.at(GoTokenKind::Semicolon) { None } else { Some(parser.simple()?) };
            if parser.at(GoTokenKind::Semicolon) {
                parser.advance()?;
                if let Some(first) = first.take() {
                    parser.add(node, first, field::INITIALIZER);
                }
                if !parser.at(GoTokenKind::Open(b'{')) {
                    first = Some(parser.simple()?);
                }
            }
            match first {
                Some(first) => parser.switched(node, first),
                None => Ok(()),
            }
        })?;
        self.expect(GoTokenKind::Open(b'{'))?;
        let by_type = self.tree.kind(node) == kind::TYPE_SWITCH_STATEMENT;
        while !self.at(GoTokenKind::Close(b'}')) {
            let case = self.open(if by_type { kind::TYPE_CASE } else { kind::EXPRESSION_CASE });
            if self.at_word(Word::Default) {
                self.advance()?;
                self.tree.set_kind(case, kind::DEFAULT_CASE);
            } else {
                self.expect(GoTokenKind::Word(Word::Case))?;
                self.inside(|parser| parser.cases(case, by_type))?;
            }
            self.expect(GoTokenKind::Colon)?;
            self.deeper(|parser| parser.inside(|parser| parser.statements(case)))?;
            self.attach(node, case, field::NO);
        }
        self.close_after(node)
    }

    fn cases(&mut self, case: u32, by_type: bool) -> ParseResult<()> {
        if !by_type {
            return self.part(case, field::VALUE, Self::expressions);
        }
        self.chain(case, field::TYPE, GoTokenKind::Comma, Self::ty)
    }

    /// The operand of a switch: a value, or `x := y.(type)`.
    fn switched(&mut self, node: u32, first: u32) -> ParseResult<()> {
        let (alias, value) = match self.tree.kind(first) {
            kind::EXPRESSION_STATEMENT => (None, self.only(first)?),
            kind::SHORT_VAR_DECLARATION => {
                let (alias, values) = self.tree.take_ends(first).ok_or(UnsupportedSyntax)?;
                (Some(alias), self.only(values)?)
            }
            _ => return Err(UnsupportedSyntax),
        };
        let of = self.tree.node(value);
        let by_type = of.kind() == "type_assertion_expression" && of.children().field("type").is_none();
        if by_type {
            self.tree.set_kind(node, kind::TYPE_SWITCH_STATEMENT);
            self.add_all(node, alias, field::ALIAS);
            return self.part(node, field::VALUE, |parser| parser.only(value));
        }
        ensure(alias.is_none())?;
        self.add(node, value, field::VALUE);
        Ok(())
    }

    fn select_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::SELECT_STATEMENT)?;
        self.expect(GoTokenKind::Open(b'{'))?;
        while !self.at(GoTokenKind::Close(b'}')) {
            let case = self.open(kind::COMMUNICATION_CASE);
            if self.at_word(Word::Default) {
                self.advance()?;
                self.tree.set_kind(case, kind::DEFAULT_CASE);
            } else {
                self.expect(GoTokenKind::Word(Word::Case))?;
                self.part(case, field::COMMUNICATION, |parser| parser.inside(Self::communication))?;
            }
            self.expect(GoTokenKind::Colon)?;
            self.deeper(|parser| parser.inside(|parser| parser.statements(case)))?;
            self.attach(node, case, field::NO);
        }
        self.close_after(node)
    }

    /// A send, or a receive with optional targets.
    fn communication(&mut self) -> ParseResult<u32> {
        let left = self.expressions()?;
        match self.tok.kind {
            GoTokenKind::Define | GoTokenKind::Assign => {
                let node = self.around(kind::RECEIVE_STATEMENT, left, field::LEFT);
                let sign = if self.at(GoTokenKind::Define) { kind::SIGN_DEFINE } else { kind::SIGN_ASSIGN };
                self.mark(node, sign, field::NO)?;
                self.last(node, field::RIGHT, Self::expression)
            }
            GoTokenKind::Arrow => self.simple_with(left),
            _ => {
                let value = self.only(left)?;
                Ok(self.wrapped(kind::RECEIVE_STATEMENT, value, field::RIGHT))
            }
        }
    }
}
