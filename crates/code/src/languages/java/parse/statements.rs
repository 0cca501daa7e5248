//! Java's statements.

use super::lex::{Tok, Word};
use super::types::{modifier, primitive};
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure};

impl Parser<'_> {
    pub(super) fn block(&mut self) -> Read<u32> {
        self.block_of(kind::BLOCK)
    }

    pub(super) fn block_of(&mut self, kind: u16) -> Read<u32> {
        let node = self.open(kind);
        self.expect(Tok::Open(b'{'))?;
        self.deeper(|parser| {
            while !parser.at(Tok::Close(b'}')) {
                parser.statement(node, field::NO)?;
            }
            Ok(())
        })?;
        self.advance()?;
        Ok(self.close(node))
    }

    /// A statement that is part of another one. Empty statements have no node.
    fn statement(&mut self, parent: u32, field: u8) -> Read<()> {
        if self.eat(Tok::Semicolon)? {
            return Ok(());
        }
        let node = self.deeper(|parser| parser.any_statement(parent))?;
        self.add(parent, node, field);
        Ok(())
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
                let node = self.open(kind::WHILE_STATEMENT);
                self.advance()?;
                self.condition(node)?;
                self.statement(node, field::BODY)?;
                Ok(self.close(node))
            }
            Word::Do => {
                let node = self.open(kind::DO_STATEMENT);
                self.advance()?;
                self.statement(node, field::BODY)?;
                self.expect(Tok::Word(Word::While))?;
                self.condition(node)?;
                self.expect(Tok::Semicolon)?;
                Ok(self.close(node))
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
                let node = self.open(kind::ASSERT_STATEMENT);
                self.advance()?;
                let condition = self.expression()?;
                self.add(node, condition, field::NO);
                if self.eat(Tok::Colon)? {
                    let told = self.expression()?;
                    self.add(node, told, field::NO);
                }
                self.expect(Tok::Semicolon)?;
                Ok(self.close(node))
            }
            Word::Synchronized => {
                let node = self.open(kind::SYNCHRONIZED_STATEMENT);
                self.advance()?;
                let on = self.parenthesized()?;
                self.add(node, on, field::NO);
                let body = self.block()?;
                self.add(node, body, field::BODY);
                Ok(self.close(node))
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
                let label = self.leaf(kind::IDENTIFIER)?;
                self.add(node, label, field::NO);
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
        let guess = self.guess();
        let begins = self.ty().is_ok()
            && self.at(Tok::Name)
            && matches!(
                self.peek()?.kind,
                Tok::Assign | Tok::Semicolon | Tok::Comma | Tok::Colon | Tok::Open(b'[') | Tok::At
            );
        self.go_back(guess)?;
        Ok(begins)
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
        self.expect(Tok::Semicolon)?;
        Ok(self.close(node))
    }

    /// A type with its variables, without the end of the statement.
    fn declarators(&mut self, kind: u16, modifiers: Option<u32>) -> Read<u32> {
        let start = modifiers.map_or(self.tok.start, |modifiers| self.tree.start(modifiers));
        let node = self.open_at(kind, start);
        if let Some(modifiers) = modifiers {
            self.add(node, modifiers, field::NO);
        }
        let ty = self.ty()?;
        self.add(node, ty, field::TYPE);
        self.variables(node)?;
        Ok(node)
    }

    /// `a = 1, b[], c`
    pub(super) fn variables(&mut self, node: u32) -> Read<()> {
        loop {
            let name = self.identifier()?;
            let declarator = self.around(kind::VARIABLE_DECLARATOR, name, field::NAME);
            if let Some(dimensions) = self.dimensions()? {
                self.add(declarator, dimensions, field::DIMENSIONS);
            }
            if self.eat(Tok::Assign)? {
                let value = self.initializer()?;
                self.add(declarator, value, field::VALUE);
            }
            self.close(declarator);
            self.add(node, declarator, field::DECLARATOR);
            if !self.eat(Tok::Comma)? {
                return Ok(());
            }
        }
    }

    fn expression_statement(&mut self) -> Read<u32> {
        let node = self.open(kind::EXPRESSION_STATEMENT);
        let value = self.expression()?;
        self.add(node, value, field::NO);
        self.expect(Tok::Semicolon)?;
        Ok(self.close(node))
    }

    /// `this(…);` and `super(…);`
    fn constructor_call(&mut self) -> Read<u32> {
        let node = self.open(kind::EXPLICIT_CONSTRUCTOR_INVOCATION);
        if self.at(Tok::Less) {
            let types = self.type_arguments()?;
            self.add(node, types, field::TYPE_ARGUMENTS);
        }
        let which = match self.tok.kind {
            Tok::Word(Word::This) => self.leaf(kind::THIS)?,
            Tok::Word(Word::Super) => self.leaf(kind::SUPER)?,
            _ => return Err(Unsure),
        };
        self.add(node, which, field::CONSTRUCTOR);
        let arguments = self.arguments()?;
        self.add(node, arguments, field::ARGUMENTS);
        self.expect(Tok::Semicolon)?;
        Ok(self.close(node))
    }

    fn condition(&mut self, node: u32) -> Read<()> {
        let condition = self.parenthesized()?;
        self.add(node, condition, field::CONDITION);
        Ok(())
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
        let node = self.open(kind::FOR_STATEMENT);
        self.advance()?;
        self.expect(Tok::Open(b'('))?;
        if !self.at(Tok::Semicolon) && self.for_head(node)? {
            self.expect(Tok::Close(b')'))?;
            self.statement(node, field::BODY)?;
            return Ok(self.close(node));
        }
        self.expect(Tok::Semicolon)?;
        if !self.at(Tok::Semicolon) {
            let condition = self.expression()?;
            self.add(node, condition, field::CONDITION);
        }
        self.expect(Tok::Semicolon)?;
        if !self.at(Tok::Close(b')')) {
            self.listed(node)?;
        }
        self.expect(Tok::Close(b')'))?;
        self.statement(node, field::BODY)?;
        Ok(self.close(node))
    }

    fn listed(&mut self, node: u32) -> Read<()> {
        loop {
            let value = self.expression()?;
            self.add(node, value, field::NO);
            if !self.eat(Tok::Comma)? {
                return Ok(());
            }
        }
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
            self.listed(node)?;
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
                if let Some(modifiers) = modifiers {
                    self.add(node, modifiers, field::NO);
                }
                self.add(node, ty, field::TYPE);
                self.add(node, name, field::NAME);
                if let Some(dimensions) = dimensions {
                    self.add(node, dimensions, field::DIMENSIONS);
                }
                let over = self.expression()?;
                self.add(node, over, field::VALUE);
                return Ok(true);
            }
        }
        self.go_back(guess)?;
        let variables = self.declarators(kind::LOCAL_VARIABLE_DECLARATION, modifiers)?;
        self.close(variables);
        self.add(node, variables, field::NO);
        Ok(false)
    }

    fn try_statement(&mut self) -> Read<u32> {
        let node = self.open(kind::TRY_STATEMENT);
        self.advance()?;
        if self.at(Tok::Open(b'(')) {
            self.tree.set_kind(node, kind::TRY_WITH_RESOURCES_STATEMENT);
            let list = self.open(kind::RESOURCE_SPECIFICATION);
            self.advance()?;
            while !self.at(Tok::Close(b')')) {
                let resource = self.resource()?;
                self.add(list, resource, field::NO);
                if !self.eat(Tok::Semicolon)? && !self.at(Tok::Close(b')')) {
                    return Err(Unsure);
                }
            }
            self.advance()?;
            self.close(list);
            self.add(node, list, field::NO);
        }
        let body = self.block()?;
        self.add(node, body, field::BODY);
        while self.at_word(Word::Catch) {
            let clause = self.open(kind::CATCH_CLAUSE);
            self.advance()?;
            self.expect(Tok::Open(b'('))?;
            let parameter = self.open(kind::CATCH_FORMAL_PARAMETER);
            if let Some(modifiers) = self.modifiers()? {
                self.add(parameter, modifiers, field::NO);
            }
            let types = self.open(kind::CATCH_TYPE);
            self.types(types, Tok::BitOr)?;
            self.close(types);
            self.add(parameter, types, field::NO);
            let name = self.identifier()?;
            self.add(parameter, name, field::NAME);
            self.close(parameter);
            self.add(clause, parameter, field::NO);
            self.expect(Tok::Close(b')'))?;
            let body = self.block()?;
            self.add(clause, body, field::BODY);
            self.close(clause);
            self.add(node, clause, field::NO);
        }
        if self.at_word(Word::Finally) {
            let clause = self.open(kind::FINALLY_CLAUSE);
            self.advance()?;
            let body = self.block()?;
            self.add(clause, body, field::NO);
            self.close(clause);
            self.add(node, clause, field::NO);
        }
        Ok(self.close(node))
    }

    /// `T x = …`, or an existing variable.
    fn resource(&mut self) -> Read<u32> {
        let node = self.open(kind::RESOURCE);
        let modifiers = self.modifiers()?;
        let next = self.peek()?.kind;
        if modifiers.is_none() && !(self.at(Tok::Name) && self.begins_local(next)?) {
            let value = self.expression()?;
            self.add(node, value, field::NO);
            return Ok(self.close(node));
        }
        if let Some(modifiers) = modifiers {
            self.add(node, modifiers, field::NO);
        }
        let ty = self.ty()?;
        self.add(node, ty, field::TYPE);
        let name = self.identifier()?;
        self.add(node, name, field::NAME);
        self.expect(Tok::Assign)?;
        let value = self.expression()?;
        self.add(node, value, field::VALUE);
        Ok(self.close(node))
    }

    /// A keyword with its value.
    fn valued(&mut self, kind: u16) -> Read<u32> {
        let node = self.open(kind);
        self.advance()?;
        if !self.at(Tok::Semicolon) {
            let value = self.expression()?;
            self.add(node, value, field::NO);
        }
        self.expect(Tok::Semicolon)?;
        Ok(self.close(node))
    }

    fn jump(&mut self, kind: u16) -> Read<u32> {
        let node = self.open(kind);
        self.advance()?;
        if self.at(Tok::Name) {
            self.advance()?;
        }
        self.expect(Tok::Semicolon)?;
        Ok(self.close(node))
    }

    // --- switch ---

    pub(super) fn switch(&mut self) -> Read<u32> {
        let node = self.open(kind::SWITCH_EXPRESSION);
        self.advance()?;
        self.condition(node)?;
        let block = self.open(kind::SWITCH_BLOCK);
        self.expect(Tok::Open(b'{'))?;
        while !self.at(Tok::Close(b'}')) {
            let part = self.deeper(Self::switch_part)?;
            self.add(block, part, field::NO);
        }
        self.advance()?;
        self.close(block);
        self.add(node, block, field::BODY);
        Ok(self.close(node))
    }

    fn switch_part(&mut self) -> Read<u32> {
        let node = self.open(kind::SWITCH_BLOCK_STATEMENT_GROUP);
        let label = self.switch_label()?;
        self.add(node, label, field::NO);
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
            self.advance()?;
            return Ok(self.close(node));
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
            let guard = self.open(kind::GUARD);
            self.advance()?;
            // Not a lambda: the arrow belongs to the rule.
            let condition = self.deeper(Self::conditional)?;
            self.add(guard, condition, field::NO);
            self.close(guard);
            self.add(node, guard, field::NO);
        }
        Ok(self.close(node))
    }

    /// A constant or a pattern.
    fn case(&mut self) -> Read<u32> {
        if self.opens_record_pattern()? {
            let record = self.record_pattern()?;
            let node = self.around(kind::PATTERN, record, field::NO);
            return Ok(self.close(node));
        }
        let guess = self.guess();
        let start = self.tok.start;
        if self.at(Tok::Name)
            && let Ok(ty) = self.ty()
        {
            // A record with type arguments.
            if self.at(Tok::Open(b'(')) {
                return Err(Unsure);
            }
            if !self.at(Tok::Name) || self.at_name("when") {
                self.go_back(guess)?;
                return self.conditional();
            }
            let pattern = self.open_at(kind::TYPE_PATTERN, start);
            self.add(pattern, ty, field::NO);
            let name = self.leaf(kind::IDENTIFIER)?;
            self.add(pattern, name, field::NO);
            self.close(pattern);
            let node = self.around(kind::PATTERN, pattern, field::NO);
            return Ok(self.close(node));
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
        let name = self.leaf(kind::IDENTIFIER)?;
        self.add(node, name, field::NO);
        let body = self.open(kind::RECORD_PATTERN_BODY);
        self.advance()?;
        while !self.at(Tok::Close(b')')) {
            let part = if self.opens_record_pattern()? {
                self.deeper(Self::record_pattern)?
            } else {
                let component = self.open(kind::RECORD_PATTERN_COMPONENT);
                let ty = self.ty()?;
                self.add(component, ty, field::NO);
                let name = self.identifier()?;
                self.add(component, name, field::NO);
                self.close(component)
            };
            self.add(body, part, field::NO);
            if !self.eat(Tok::Comma)? && !self.at(Tok::Close(b')')) {
                return Err(Unsure);
            }
        }
        self.advance()?;
        self.close(body);
        self.add(node, body, field::NO);
        Ok(self.close(node))
    }
}
