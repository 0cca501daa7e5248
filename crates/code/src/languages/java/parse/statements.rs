//! Java's statements.

use super::lex::{Tok, Word};
use super::types::{modifier, primitive};
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure, sure};

impl Parser<'_> {
    pub(super) fn block(&mut self) -> Read<u32> {
        self.block_of(kind::BLOCK)
    }

    pub(super) fn block_of(&mut self, kind: u16) -> Read<u32> {
        let node = self.begin_with(Tok::Open(b'{'), kind)?;
        self.deeper(|parser| {
            while !parser.at(Tok::Close(b'}')) {
                parser.statement(node, field::NO)?;
            }
            Ok(())
        })?;
        self.close_after(node)
    }

    /// A statement that is part of another one. Empty statements have no node.
    fn statement(&mut self, parent: u32, field: u8) -> Read<()> {
        if self.eat(Tok::Semicolon)? {
            return Ok(());
        }
        self.part(parent, field, |parser| parser.deeper(|parser| parser.any_statement(parent)))
    }

    fn any_statement(&mut self, parent: u32) -> Read<u32> {
        let first = self.tok.kind;
        match first {
            Tok::Open(b'{') => self.block(),
            Tok::Name => self.name_statement(parent),
            Tok::Word(word) => self.word_statement(word, parent),
            Tok::At => self.declared(parent),
            Tok::Less => self.constructor_call(),
            _ => self.expression_statement(),
        }
    }

    fn word_statement(&mut self, word: Word, parent: u32) -> Read<u32> {
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
                self.expect(Tok::Word(Word::While))?;
                self.condition(node)?;
                self.close_with(Tok::Semicolon, node)
            }
            Word::Switch => {
                let node = self.switch()?;
                // As a statement, a switch is not part of a larger expression.
                match self.tok.kind {
                    Tok::Dot | Tok::Open(b'[') | Tok::Reference => Err(Unsure),
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
                self.part_after(Tok::Colon, node, field::NO, Self::expression)?;
                self.close_with(Tok::Semicolon, node)
            }
            Word::Synchronized => {
                let node = self.begin(kind::SYNCHRONIZED_STATEMENT)?;
                self.part(node, field::NO, Self::parenthesized)?;
                self.last(node, field::BODY, Self::block)
            }
            Word::This | Word::Super if self.peek()?.kind == Tok::Open(b'(') => self.constructor_call(),
            Word::Class | Word::Interface | Word::Enum => self.declared(parent),
            _ if modifier(word).is_some() => self.declared(parent),
            _ if primitive(word).is_some() && !matches!(self.peek()?.kind, Tok::Dot) => self.local(None),
            _ => self.expression_statement(),
        }
    }

    fn name_statement(&mut self, parent: u32) -> Read<u32> {
        let next = self.peek()?.kind;
        match next {
            Tok::Colon => {
                let node = self.open(kind::LABELED_STATEMENT);
                self.token(node, field::NO, kind::IDENTIFIER)?;
                self.advance()?;
                self.statement(node, field::NO)?;
                return Ok(self.close(node));
            }
            Tok::Name if self.at_name("record") => return self.declared(parent),
            Tok::Word(Word::Class | Word::Interface) if self.at_name("sealed") => return self.declared(parent),
            _ => {}
        }
        if self.at_name("yield") {
            return match next {
                Tok::Assign | Tok::Augmented | Tok::Dot | Tok::Step | Tok::Open(b'[') | Tok::Semicolon => {
                    self.expression_statement()
                }
                Tok::Open(b'(') => Err(Unsure),
                _ => self.valued(kind::YIELD_STATEMENT),
            };
        }
        if self.begins_local(next)? { self.local(None) } else { self.expression_statement() }
    }

    /// Whether a type and a name follow, as in a declaration.
    fn begins_local(&mut self, next: Tok) -> Read<bool> {
        match next {
            Tok::Name => return Ok(true),
            Tok::Dot | Tok::Less | Tok::Open(b'[') | Tok::At => {}
            _ => return Ok(false),
        }
        self.ahead(|parser| {
            let begins = parser.ty().is_ok()
                && parser.at(Tok::Name)
                && matches!(
                    parser.peek()?.kind,
                    Tok::Assign | Tok::Semicolon | Tok::Comma | Tok::Colon | Tok::Open(b'[') | Tok::At
                );
            Ok(begins)
        })
    }

    /// A class, or a variable with modifiers.
    fn declared(&mut self, parent: u32) -> Read<u32> {
        // The comment above a local class is its doc comment.
        self.remarks(parent, kind::COMMENT);
        let modifiers = self.modifiers()?;
        if self.begins_type_declaration()? {
            return self.type_declaration(modifiers);
        }
        self.local(modifiers)
    }

    fn local(&mut self, modifiers: Option<u32>) -> Read<u32> {
        let node = self.declarators(kind::LOCAL_VARIABLE_DECLARATION, modifiers)?;
        self.close_with(Tok::Semicolon, node)
    }

    /// A type with its variables, without the end of the statement.
    fn declarators(&mut self, kind: u16, modifiers: Option<u32>) -> Read<u32> {
        let start = modifiers.map_or(self.tok.start, |modifiers| self.tree.start(modifiers));
        let node = self.open_at(kind, start);
        self.add_all(node, modifiers, field::NO);
        self.part(node, field::TYPE, Self::ty)?;
        self.variables(node)?;
        Ok(node)
    }

    /// `a = 1, b[], c`
    pub(super) fn variables(&mut self, node: u32) -> Read<()> {
        loop {
            let name = self.identifier()?;
            let declarator = self.around(kind::VARIABLE_DECLARATOR, name, field::NAME);
            self.maybe(declarator, field::DIMENSIONS, Self::dimensions)?;
            self.part_after(Tok::Assign, declarator, field::VALUE, Self::initializer)?;
            self.attach(node, declarator, field::DECLARATOR);
            if !self.eat(Tok::Comma)? {
                return Ok(());
            }
        }
    }

    fn expression_statement(&mut self) -> Read<u32> {
        let node = self.open(kind::EXPRESSION_STATEMENT);
        self.part(node, field::NO, Self::expression)?;
        self.close_with(Tok::Semicolon, node)
    }

    /// `this(…);` and `super(…);`
    fn constructor_call(&mut self) -> Read<u32> {
        let node = self.open(kind::EXPLICIT_CONSTRUCTOR_INVOCATION);
        self.part_at(Tok::Less, node, field::TYPE_ARGUMENTS, Self::type_arguments)?;
        let which = match self.tok.kind {
            Tok::Word(Word::This) => self.leaf(kind::THIS)?,
            Tok::Word(Word::Super) => self.leaf(kind::SUPER)?,
            _ => return Err(Unsure),
        };
        self.add(node, which, field::CONSTRUCTOR);
        self.part(node, field::ARGUMENTS, Self::arguments)?;
        self.close_with(Tok::Semicolon, node)
    }

    fn condition(&mut self, node: u32) -> Read<()> {
        self.part(node, field::CONDITION, Self::parenthesized)
    }

    /// Reads a chain of `else if` in a loop, because it may be longer than the allowed nesting.
    fn if_statement(&mut self) -> Read<u32> {
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

    fn for_statement(&mut self) -> Read<u32> {
        let node = self.begin(kind::FOR_STATEMENT)?;
        self.expect(Tok::Open(b'('))?;
        if !self.at(Tok::Semicolon) && self.for_head(node)? {
            self.expect(Tok::Close(b')'))?;
            self.statement(node, field::BODY)?;
            return Ok(self.close(node));
        }
        self.expect(Tok::Semicolon)?;
        if !self.at(Tok::Semicolon) {
            self.part(node, field::CONDITION, Self::expression)?;
        }
        self.expect(Tok::Semicolon)?;
        if !self.at(Tok::Close(b')')) {
            self.values(node)?;
        }
        self.expect(Tok::Close(b')'))?;
        self.statement(node, field::BODY)?;
        Ok(self.close(node))
    }

    fn values(&mut self, node: u32) -> Read<()> {
        self.chain(node, field::NO, Tok::Comma, Self::expression)
    }

    /// The initializer; the whole head for a loop over elements.
    fn for_head(&mut self, node: u32) -> Read<bool> {
        let modifiers = self.modifiers()?;
        let declares = modifiers.is_some()
            || match self.tok.kind {
                Tok::Word(word) => primitive(word).is_some(),
                Tok::Name => {
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
            && self.at(Tok::Name)
        {
            let name = self.leaf(kind::IDENTIFIER)?;
            let dimensions = self.dimensions()?;
            if self.eat(Tok::Colon)? {
                self.tree.set_kind(node, kind::ENHANCED_FOR_STATEMENT);
                self.add_all(node, modifiers, field::NO);
                self.add(node, ty, field::TYPE);
                self.add(node, name, field::NAME);
                self.add_all(node, dimensions, field::DIMENSIONS);
                self.part(node, field::VALUE, Self::expression)?;
                return Ok(true);
            }
        }
        self.go_back(guess)?;
        let variables = self.declarators(kind::LOCAL_VARIABLE_DECLARATION, modifiers)?;
        self.attach(node, variables, field::NO);
        Ok(false)
    }

    fn try_statement(&mut self) -> Read<u32> {
        let node = self.begin(kind::TRY_STATEMENT)?;
        if self.at(Tok::Open(b'(')) {
            self.tree.set_kind(node, kind::TRY_WITH_RESOURCES_STATEMENT);
            let list = self.begin(kind::RESOURCE_SPECIFICATION)?;
            while !self.at(Tok::Close(b')')) {
                self.part(list, field::NO, Self::resource)?;
                if !self.eat(Tok::Semicolon)? && !self.at(Tok::Close(b')')) {
                    return Err(Unsure);
                }
            }
            self.advance()?;
            self.attach(node, list, field::NO);
        }
        self.part(node, field::BODY, Self::block)?;
        while self.at_word(Word::Catch) {
            let clause = self.begin(kind::CATCH_CLAUSE)?;
            self.expect(Tok::Open(b'('))?;
            let parameter = self.open(kind::CATCH_FORMAL_PARAMETER);
            self.maybe(parameter, field::NO, Self::modifiers)?;
            let types = self.open(kind::CATCH_TYPE);
            self.types(types, Tok::BitOr)?;
            self.attach(parameter, types, field::NO);
            self.part(parameter, field::NAME, Self::identifier)?;
            self.attach(clause, parameter, field::NO);
            self.expect(Tok::Close(b')'))?;
            self.part(clause, field::BODY, Self::block)?;
            self.attach(node, clause, field::NO);
        }
        self.part_at(Tok::Word(Word::Finally), node, field::NO, |parser| {
            parser.prefixed(kind::FINALLY_CLAUSE, field::NO, Self::block)
        })?;
        Ok(self.close(node))
    }

    /// `T x = …`, or an existing variable.
    fn resource(&mut self) -> Read<u32> {
        let node = self.open(kind::RESOURCE);
        let modifiers = self.modifiers()?;
        let next = self.peek()?.kind;
        if modifiers.is_none() && !(self.at(Tok::Name) && self.begins_local(next)?) {
            return self.last(node, field::NO, Self::expression);
        }
        self.add_all(node, modifiers, field::NO);
        self.part(node, field::TYPE, Self::ty)?;
        self.part(node, field::NAME, Self::identifier)?;
        self.expect(Tok::Assign)?;
        self.last(node, field::VALUE, Self::expression)
    }

    /// A keyword with its value.
    fn valued(&mut self, kind: u16) -> Read<u32> {
        let node = self.begin(kind)?;
        if !self.at(Tok::Semicolon) {
            self.part(node, field::NO, Self::expression)?;
        }
        self.close_with(Tok::Semicolon, node)
    }

    fn jump(&mut self, kind: u16) -> Read<u32> {
        let node = self.begin(kind)?;
        self.eat(Tok::Name)?;
        self.close_with(Tok::Semicolon, node)
    }

    // --- switch ---

    pub(super) fn switch(&mut self) -> Read<u32> {
        let node = self.begin(kind::SWITCH_EXPRESSION)?;
        self.condition(node)?;
        let block = self.begin_with(Tok::Open(b'{'), kind::SWITCH_BLOCK)?;
        while !self.at(Tok::Close(b'}')) {
            self.part(block, field::NO, |parser| parser.deeper(Self::switch_part))?;
        }
        self.advance()?;
        Ok(self.attach_last(node, block, field::BODY))
    }

    fn switch_part(&mut self) -> Read<u32> {
        let node = self.open(kind::SWITCH_BLOCK_STATEMENT_GROUP);
        self.part(node, field::NO, Self::switch_label)?;
        if self.eat(Tok::Arrow)? {
            self.tree.set_kind(node, kind::SWITCH_RULE);
            let body = match self.tok.kind {
                Tok::Open(b'{') => self.block()?,
                Tok::Word(Word::Throw) => self.valued(kind::THROW_STATEMENT)?,
                _ => self.expression_statement()?,
            };
            self.add(node, body, field::NO);
            return Ok(self.close(node));
        }
        self.expect(Tok::Colon)?;
        while !matches!(self.tok.kind, Tok::Close(b'}') | Tok::Word(Word::Case | Word::Default)) {
            self.statement(node, field::NO)?;
        }
        Ok(self.close(node))
    }

    fn switch_label(&mut self) -> Read<u32> {
        let node = self.open(kind::SWITCH_LABEL);
        if self.at_word(Word::Default) {
            return self.close_after(node);
        }
        self.expect(Tok::Word(Word::Case))?;
        loop {
            let value = match self.tok.kind {
                Tok::Word(Word::Default) => self.leaf(kind::IDENTIFIER)?,
                _ => self.case()?,
            };
            self.add(node, value, field::NO);
            if !self.eat(Tok::Comma)? {
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
    fn case(&mut self) -> Read<u32> {
        if self.opens_record_pattern()? {
            let record = self.record_pattern()?;
            return Ok(self.wrapped(kind::PATTERN, record, field::NO));
        }
        let guess = self.guess();
        let start = self.tok.start;
        if self.at(Tok::Name)
            && let Ok(ty) = self.ty()
        {
            // A record with type arguments.
            sure(!self.at(Tok::Open(b'(')))?;
            if !self.at(Tok::Name) || self.at_name("when") {
                self.go_back(guess)?;
                return self.conditional();
            }
            let pattern = self.open_at(kind::TYPE_PATTERN, start);
            self.add(pattern, ty, field::NO);
            self.token(pattern, field::NO, kind::IDENTIFIER)?;
            self.close(pattern);
            return Ok(self.wrapped(kind::PATTERN, pattern, field::NO));
        }
        self.go_back(guess)?;
        self.conditional()
    }

    /// Whether `R(…)` follows: a record pattern where a type is expected, not a call.
    pub(super) fn opens_record_pattern(&mut self) -> Read<bool> {
        Ok(self.at(Tok::Name) && self.peek()?.kind == Tok::Open(b'('))
    }

    pub(super) fn record_pattern(&mut self) -> Read<u32> {
        let node = self.open(kind::RECORD_PATTERN);
        self.token(node, field::NO, kind::IDENTIFIER)?;
        let body = self.begin(kind::RECORD_PATTERN_BODY)?;
        self.elements(Tok::Close(b')'), |parser| {
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
