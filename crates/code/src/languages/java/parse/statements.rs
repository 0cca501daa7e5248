//! Java's statements.

use super::lex::{JavaTokenKind, Word};
use super::types::{modifier, primitive};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax, ensure};

impl Parser<'_> {
    pub(super) fn block(&mut self) -> ParseResult<u32> {
        self.block_of(kind::BLOCK)
    }

    pub(super) fn block_of(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.begin_with(JavaTokenKind::Open(b'{'), kind)?;
        self.deeper(|parser| {
            while !parser.at(JavaTokenKind::Close(b'}')) {
                parser.statement(node, field::NO)?;
            }
            Ok(())
        })?;
        self.close_after(node)
    }

    /// A statement that is part of another one. Empty statements have no node.
    fn statement(&mut self, parent: u32, field: u8) -> ParseResult<()> {
        if self.eat(JavaTokenKind::Semicolon)? {
            return Ok(());
        }
        self.part(parent, field, |parser| parser.deeper(|parser| parser.any_statement(parent)))
    }

    fn any_statement(&mut self, parent: u32) -> ParseResult<u32> {
        let first = self.tok.kind;
        match first {
            JavaTokenKind::Open(b'{') => self.block(),
            JavaTokenKind::Name => self.name_statement(parent),
            JavaTokenKind::Word(word) => self.word_statement(word, parent),
            JavaTokenKind::At => self.declared(parent),
            JavaTokenKind::Less => self.constructor_call(),
            _ => self.expression_statement(),
        }
    }

    fn word_statement(&mut self, word: Word, parent: u32) -> ParseResult<u32> {
        match word {
            Word::If => self.if_statement(),
            Word::For => self.for_statement(),
            Word::While => {
                let node = self.begin(kind::WHILE_STATEMENT)?;
                self.condition(node)?;
                self.statement(node, field::BODY)?;
                Ok(self.close(node))
            }
            Word::Do => {
                let node = self.begin(kind::DO_STATEMENT)?;
                self.statement(node, field::BODY)?;
                self.expect(JavaTokenKind::Word(Word::While))?;
                self.condition(node)?;
                self.close_with(JavaTokenKind::Semicolon, node)
            }
            Word::Switch => {
                let node = self.switch()?;
                // As a statement, a switch is not part of a larger expression.
                match self.tok.kind {
                    JavaTokenKind::Dot | JavaTokenKind::Open(b'[') | JavaTokenKind::Reference => Err(UnsupportedSyntax),
                    _ => Ok(node),
                }
            }
            Word::Try => self.try_statement(),
            Word::Return => self.valued(kind::RETURN_STATEMENT),
            Word::Throw => self.valued(kind::THROW_STATEMENT),
            Word::Break => self.jump(kind::BREAK_STATEMENT),
            Word::Continue => self.jump(kind::CONTINUE_STATEMENT),
            Word::Assert => {
                let node = self.begin(kind::ASSERT_STATEMENT)?;
                self.part(node, field::NO, Self::expression)?;
                self.part_after(JavaTokenKind::Colon, node, field::NO, Self::expression)?;
                self.close_with(JavaTokenKind::Semicolon, node)
            }
            Word::Synchronized => {
                let node = self.begin(kind::SYNCHRONIZED_STATEMENT)?;
                self.part(node, field::NO, Self::parenthesized)?;
                self.last(node, field::BODY, Self::block)
            }
            Word::This | Word::Super if self.peek()?.kind == JavaTokenKind::Open(b'(') => self.constructor_call(),
            Word::Class | Word::Interface | Word::Enum => self.declared(parent),
            _ if modifier(word).is_some() => self.declared(parent),
            _ if primitive(word).is_some() && !matches!(self.peek()?.kind, JavaTokenKind::Dot) => self.local(None),
            _ => self.expression_statement(),
        }
    }

    fn name_statement(&mut self, parent: u32) -> ParseResult<u32> {
        let next = self.peek()?.kind;
        match next {
            JavaTokenKind::Colon => {
                let node = self.open(kind::LABELED_STATEMENT);
                self.token(node, field::NO, kind::IDENTIFIER)?;
                self.advance()?;
                self.statement(node, field::NO)?;
                return Ok(self.close(node));
            }
            JavaTokenKind::Name if self.at_name("record") => return self.declared(parent),
            JavaTokenKind::Word(Word::Class | Word::Interface) if self.at_name("sealed") => {
                return self.declared(parent);
            }
            _ => {}
        }
        if self.at_name("yield") {
            return match next {
                JavaTokenKind::Assign
                | JavaTokenKind::Augmented
                | JavaTokenKind::Dot
                | JavaTokenKind::Step
                | JavaTokenKind::Open(b'[')
                | JavaTokenKind::Semicolon => self.expression_statement(),
                JavaTokenKind::Open(b'(') => Err(UnsupportedSyntax),
                _ => self.valued(kind::YIELD_STATEMENT),
            };
        }
        if self.begins_local(next)? { self.local(None) } else { self.expression_statement() }
    }

    /// Whether a type and a name follow, as in a declaration.
    fn begins_local(&mut self, next: JavaTokenKind) -> ParseResult<bool> {
        match next {
            JavaTokenKind::Name => return Ok(true),
            JavaTokenKind::Dot | JavaTokenKind::Less | JavaTokenKind::Open(b'[') | JavaTokenKind::At => {}
            _ => return Ok(false),
        }
        self.ahead(|parser| {
            let begins = parser.ty().is_ok()
                && parser.at(JavaTokenKind::Name)
                && matches!(
                    parser.peek()?.kind,
                    JavaTokenKind::Assign
                        | JavaTokenKind::Semicolon
                        | JavaTokenKind::Comma
                        | JavaTokenKind::Colon
                        | JavaTokenKind::Open(b'[')
                        | JavaTokenKind::At
                );
            Ok(begins)
        })
    }

    /// A class, or a variable with modifiers.
    fn declared(&mut self, parent: u32) -> ParseResult<u32> {
        // The comment above a local class is its doc comment.
        self.remarks(parent, kind::COMMENT);
        let modifiers = self.modifiers()?;
        if self.begins_type_declaration()? {
            return self.type_declaration(modifiers);
        }
        self.local(modifiers)
    }

    fn local(&mut self, modifiers: Option<u32>) -> ParseResult<u32> {
        let node = self.declarators(kind::LOCAL_VARIABLE_DECLARATION, modifiers)?;
        self.close_with(JavaTokenKind::Semicolon, node)
    }

    /// A type with its variables, without the end of the statement.
    fn declarators(&mut self, kind: u16, modifiers: Option<u32>) -> ParseResult<u32> {
        let start = modifiers.map_or(self.tok.start, |modifiers| self.tree.start(modifiers));
        let node = self.open_at(kind, start);
        self.add_all(node, modifiers, field::NO);
        self.part(node, field::TYPE, Self::ty)?;
        self.variables(node)?;
        Ok(node)
    }

    /// `a = 1, b[], c`
    pub(super) fn variables(&mut self, node: u32) -> ParseResult<()> {
        loop {
            let name = self.identifier()?;
            let declarator = self.around(kind::VARIABLE_DECLARATOR, name, field::NAME);
            self.maybe(declarator, field::DIMENSIONS, Self::dimensions)?;
            self.part_after(JavaTokenKind::Assign, declarator, field::VALUE, Self::initializer)?;
            self.attach(node, declarator, field::DECLARATOR);
            if !self.eat(JavaTokenKind::Comma)? {
                return Ok(());
            }
        }
    }

    fn expression_statement(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::EXPRESSION_STATEMENT);
        self.part(node, field::NO, Self::expression)?;
        self.close_with(JavaTokenKind::Semicolon, node)
    }

    /// `this(…);` and `super(…);`
    fn constructor_call(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::EXPLICIT_CONSTRUCTOR_INVOCATION);
        self.part_at(JavaTokenKind::Less, node, field::TYPE_ARGUMENTS, Self::type_arguments)?;
        let which = match self.tok.kind {
            JavaTokenKind::Word(Word::This) => self.leaf(kind::THIS)?,
            JavaTokenKind::Word(Word::Super) => self.leaf(kind::SUPER)?,
            _ => return Err(UnsupportedSyntax),
        };
        self.add(node, which, field::CONSTRUCTOR);
        self.part(node, field::ARGUMENTS, Self::arguments)?;
        self.close_with(JavaTokenKind::Semicolon, node)
    }

    fn condition(&mut self, node: u32) -> ParseResult<()> {
        self.part(node, field::CONDITION, Self::parenthesized)
    }

    /// Reads a chain of `else if` in a loop, because it may be longer than the allowed nesting.
    fn if_statement(&mut self) -> ParseResult<u32> {
        let first = self.open(kind::IF_STATEMENT);
        let mut open = vec![first];
        let mut node = first;
        loop {
            self.advance()?;
            self.condition(node)?;
            self.statement(node, field::CONSEQUENCE)?;
            if !self.at_word(Word::Else) {
                break;
            }
            self.advance()?;
            if !self.at_word(Word::If) {
                self.statement(node, field::ALTERNATIVE)?;
                break;
            }
            let next = self.open(kind::IF_STATEMENT);
            self.add(node, next, field::ALTERNATIVE);
            open.push(next);
            node = next;
        }
        for node in open {
            self.close(node);
        }
        Ok(first)
    }

    fn for_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::FOR_STATEMENT)?;
        self.expect(JavaTokenKind::Open(b'('))?;
        if !self.at(JavaTokenKind::Semicolon) && self.for_head(node)? {
            self.expect(JavaTokenKind::Close(b')'))?;
            self.statement(node, field::BODY)?;
            return Ok(self.close(node));
        }
        self.expect(JavaTokenKind::Semicolon)?;
        if !self.at(JavaTokenKind::Semicolon) {
            self.part(node, field::CONDITION, Self::expression)?;
        }
        self.expect(JavaTokenKind::Semicolon)?;
        if !self.at(JavaTokenKind::Close(b')')) {
            self.values(node)?;
        }
        self.expect(JavaTokenKind::Close(b')'))?;
        self.statement(node, field::BODY)?;
        Ok(self.close(node))
    }

    fn values(&mut self, node: u32) -> ParseResult<()> {
        self.chain(node, field::NO, JavaTokenKind::Comma, Self::expression)
    }

    /// The initializer; the whole head for a loop over elements.
    fn for_head(&mut self, node: u32) -> ParseResult<bool> {
        let modifiers = self.modifiers()?;
        let declares = modifiers.is_some()
            || match self.tok.kind {
                JavaTokenKind::Word(word) => primitive(word).is_some(),
                JavaTokenKind::Name => {
                    let next = self.peek()?.kind;
                    self.begins_local(next)?
                }
                _ => false,
            };
        if !declares {
            self.values(node)?;
            return Ok(false);
        }
        let guess = self.guess();
        if let Ok(ty) = self.ty()
            && self.at(JavaTokenKind::Name)
        {
            let name = self.leaf(kind::IDENTIFIER)?;
            let dimensions = self.dimensions()?;
            if self.eat(JavaTokenKind::Colon)? {
                self.tree.set_kind(node, kind::ENHANCED_FOR_STATEMENT);
                self.add_all(node, modifiers, field::NO);
                self.add(node, ty, field::TYPE);
                self.add(node, name, field::NAME);
                self.add_all(node, dimensions, field::DIMENSIONS);
                self.part(node, field::VALUE, Self::expression)?;
                return Ok(true);
            }
        }
        self.back_to(guess)?;
        let variables = self.declarators(kind::LOCAL_VARIABLE_DECLARATION, modifiers)?;
        self.attach(node, variables, field::NO);
        Ok(false)
    }

    fn try_statement(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::TRY_STATEMENT)?;
        if self.at(JavaTokenKind::Open(b'(')) {
            self.tree.set_kind(node, kind::TRY_WITH_RESOURCES_STATEMENT);
            let list = self.begin(kind::RESOURCE_SPECIFICATION)?;
            while !self.at(JavaTokenKind::Close(b')')) {
                self.part(list, field::NO, Self::resource)?;
                if !self.eat(JavaTokenKind::Semicolon)? && !self.at(JavaTokenKind::Close(b')')) {
                    return Err(UnsupportedSyntax);
                }
            }
            self.advance()?;
            self.attach(node, list, field::NO);
        }
        self.part(node, field::BODY, Self::block)?;
        while self.at_word(Word::Catch) {
            let clause = self.begin(kind::CATCH_CLAUSE)?;
            self.expect(JavaTokenKind::Open(b'('))?;
            let parameter = self.open(kind::CATCH_FORMAL_PARAMETER);
            self.maybe(parameter, field::NO, Self::modifiers)?;
            let types = self.open(kind::CATCH_TYPE);
            self.types(types, JavaTokenKind::BitOr)?;
            self.attach(parameter, types, field::NO);
            self.part(parameter, field::NAME, Self::identifier)?;
            self.attach(clause, parameter, field::NO);
            self.expect(JavaTokenKind::Close(b')'))?;
            self.part(clause, field::BODY, Self::block)?;
            self.attach(node, clause, field::NO);
        }
        self.part_at(JavaTokenKind::Word(Word::Finally), node, field::NO, |parser| {
            parser.prefixed(kind::FINALLY_CLAUSE, field::NO, Self::block)
        })?;
        Ok(self.close(node))
    }

    /// `T x = …`, or an existing variable.
    fn resource(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::RESOURCE);
        let modifiers = self.modifiers()?;
        let next = self.peek()?.kind;
        if modifiers.is_none() && !(self.at(JavaTokenKind::Name) && self.begins_local(next)?) {
            return self.last(node, field::NO, Self::expression);
        }
        self.add_all(node, modifiers, field::NO);
        self.part(node, field::TYPE, Self::ty)?;
        self.part(node, field::NAME, Self::identifier)?;
        self.expect(JavaTokenKind::Assign)?;
        self.last(node, field::VALUE, Self::expression)
    }

    /// A keyword with its value.
    fn valued(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        if !self.at(JavaTokenKind::Semicolon) {
            self.part(node, field::NO, Self::expression)?;
        }
        self.close_with(JavaTokenKind::Semicolon, node)
    }

    fn jump(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.begin(kind)?;
        self.eat(JavaTokenKind::Name)?;
        self.close_with(JavaTokenKind::Semicolon, node)
    }

    // --- switch ---

    pub(super) fn switch(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::SWITCH_EXPRESSION)?;
        self.condition(node)?;
        let block = self.begin_with(JavaTokenKind::Open(b'{'), kind::SWITCH_BLOCK)?;
        while !self.at(JavaTokenKind::Close(b'}')) {
            self.part(block, field::NO, |parser| parser.deeper(Self::switch_part))?;
        }
        self.advance()?;
        Ok(self.attach_last(node, block, field::BODY))
    }

    fn switch_part(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::SWITCH_BLOCK_STATEMENT_GROUP);
        self.part(node, field::NO, Self::switch_label)?;
        if self.eat(JavaTokenKind::Arrow)? {
            self.tree.set_kind(node, kind::SWITCH_RULE);
            let body = match self.tok.kind {
                JavaTokenKind::Open(b'{') => self.block()?,
                JavaTokenKind::Word(Word::Throw) => self.valued(kind::THROW_STATEMENT)?,
                _ => self.expression_statement()?,
            };
            self.add(node, body, field::NO);
            return Ok(self.close(node));
        }
        self.expect(JavaTokenKind::Colon)?;
        while !matches!(self.tok.kind, JavaTokenKind::Close(b'}') | JavaTokenKind::Word(Word::Case | Word::Default)) {
            self.statement(node, field::NO)?;
        }
        Ok(self.close(node))
    }

    fn switch_label(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::SWITCH_LABEL);
        if self.at_word(Word::Default) {
            return self.close_after(node);
        }
        self.expect(JavaTokenKind::Word(Word::Case))?;
        loop {
            let value = match self.tok.kind {
                JavaTokenKind::Word(Word::Default) => self.leaf(kind::IDENTIFIER)?,
                _ => self.case()?,
            };
            self.add(node, value, field::NO);
            if !self.eat(JavaTokenKind::Comma)? {
                break;
            }
        }
        if self.at_name("when") {
            let guard = self.begin(kind::GUARD)?;
            // Not a lambda: the arrow belongs to the rule.
            self.part(guard, field::NO, |parser| parser.deeper(Self::conditional))?;
            self.attach(node, guard, field::NO);
        }
        Ok(self.close(node))
    }

    /// A constant or a pattern.
    fn case(&mut self) -> ParseResult<u32> {
        if self.opens_record_pattern()? {
            let record = self.record_pattern()?;
            return Ok(self.wrapped(kind::PATTERN, record, field::NO));
        }
        let guess = self.guess();
        let start = self.tok.start;
        if self.at(JavaTokenKind::Name)
            && let Ok(ty) = self.ty()
        {
            // A record with type arguments.
            ensure(!self.at(JavaTokenKind::Open(b'(')))?;
            if !self.at(JavaTokenKind::Name) || self.at_name("when") {
                self.back_to(guess)?;
                return self.conditional();
            }
            let pattern = self.open_at(kind::TYPE_PATTERN, start);
            self.add(pattern, ty, field::NO);
            self.token(pattern, field::NO, kind::IDENTIFIER)?;
            self.close(pattern);
            return Ok(self.wrapped(kind::PATTERN, pattern, field::NO));
        }
        self.back_to(guess)?;
        self.conditional()
    }

    /// Whether `R(…)` follows: a record pattern where a type is expected, not a call.
    pub(super) fn opens_record_pattern(&mut self) -> ParseResult<bool> {
        Ok(self.at(JavaTokenKind::Name) && self.peek()?.kind == JavaTokenKind::Open(b'('))
    }

    pub(super) fn record_pattern(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::RECORD_PATTERN);
        self.token(node, field::NO, kind::IDENTIFIER)?;
        let body = self.begin(kind::RECORD_PATTERN_BODY)?;
        self.elements(JavaTokenKind::Close(b')'), |parser| {
            let part = if parser.opens_record_pattern()? {
                parser.deeper(Self::record_pattern)?
            } else {
                let component = parser.open(kind::RECORD_PATTERN_COMPONENT);
                parser.part(component, field::NO, Self::ty)?;
                parser.part(component, field::NO, Self::identifier)?;
                parser.close(component)
            };
            parser.add(body, part, field::NO);
            Ok(())
        })?;
        Ok(self.attach_last(node, body, field::NO))
    }
}
