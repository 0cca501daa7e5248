//! Classes with their members, and the members of object literals.

use super::lex::{Tok, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure};
use smallvec::SmallVec;

/// The parts of a member that were read before its kind is known.
#[derive(Default)]
struct Modifiers {
    nodes: SmallVec<[u32; 4]>,
    is_abstract: bool,
    /// `get`, `set`, `async` or `*`: a method follows.
    method: bool,
}

impl Parser<'_> {
    /// A class with its decorators, which may be before or after `export`.
    pub(super) fn decorated(&mut self, exported: bool) -> Read<u32> {
        let mut decorators = SmallVec::<[u32; 4]>::new();
        while self.at(Tok::At) {
            decorators.push(self.decorator()?);
        }
        match self.tok.kind {
            Tok::Word(Word::Export) if !exported => self.export_statement(&decorators),
            Tok::Word(Word::Class) => self.class_declaration(&decorators, false),
            Tok::Name if self.at_name("abstract") && self.state.typed => self.class_declaration(&decorators, true),
            _ => Err(Unsure),
        }
    }

    pub(super) fn class_declaration(&mut self, decorators: &[u32], is_abstract: bool) -> Read<u32> {
        let kind = if is_abstract { kind::ABSTRACT_CLASS_DECLARATION } else { kind::CLASS_DECLARATION };
        let start = decorators.first().map_or(self.tok.start, |first| self.tree.start(*first));
        let node = self.open_at(kind, start);
        for decorator in decorators {
            self.add(node, *decorator, field::DECORATOR);
        }
        if is_abstract {
            self.mark(node, kind::WORD_ABSTRACT, field::NO)?;
        }
        self.class_rest(node)?;
        if self.tree.node(node).kids().field("name").is_none() {
            self.tree.set_kind(node, kind::CLASS);
        }
        Ok(node)
    }

    pub(super) fn class_expression(&mut self) -> Read<u32> {
        let node = self.open(kind::CLASS);
        self.class_rest(node)
    }

    fn class_rest(&mut self, node: u32) -> Read<u32> {
        self.expect(Tok::Word(Word::Class))?;
        if self.at(Tok::Name) && !(self.state.typed && self.at_name("implements")) {
            let name = self.leaf(if self.state.typed { kind::TYPE_IDENTIFIER } else { kind::IDENTIFIER })?;
            self.add(node, name, field::NAME);
        }
        self.type_parameters(node)?;
        self.heritage(node)?;
        let body = self.deeper(|parser| parser.inside(Self::class_body))?;
        self.add(node, body, field::BODY);
        Ok(self.close(node))
    }

    fn heritage(&mut self, node: u32) -> Read<()> {
        let heritage = self.open(kind::CLASS_HERITAGE);
        let mut any = false;
        if self.at_word(Word::Extends) {
            any = true;
            let clause = self.open(kind::EXTENDS_CLAUSE);
            self.advance()?;
            let (base, types) = self.extended()?;
            if self.state.typed {
                self.add(clause, base, field::VALUE);
                if let Some(types) = types {
                    self.add(clause, types, field::TYPE_ARGUMENTS);
                }
                self.close(clause);
                self.add(heritage, clause, field::NO);
            } else {
                self.add(heritage, base, field::NO);
            }
        }
        if self.state.typed && self.at_name("implements") {
            any = true;
            let clause = self.open(kind::IMPLEMENTS_CLAUSE);
            self.advance()?;
            self.types(clause, field::NO)?;
            self.close(clause);
            self.add(heritage, clause, field::NO);
        }
        if any {
            self.close(heritage);
            self.add(node, heritage, field::NO);
        }
        Ok(())
    }

    fn class_body(&mut self) -> Read<u32> {
        let body = self.open(kind::CLASS_BODY);
        self.expect(Tok::Open(b'{'))?;
        while !self.at(Tok::Close(b'}')) {
            if !self.eat(Tok::Semicolon)? {
                self.class_member(body)?;
            }
        }
        self.advance()?;
        Ok(self.close(body))
    }

    fn class_member(&mut self, body: u32) -> Read<()> {
        if self.at_name("static") && self.peek()?.kind == Tok::Open(b'{') {
            let node = self.open(kind::CLASS_STATIC_BLOCK);
            self.advance()?;
            let block = self.block()?;
            self.add(node, block, field::BODY);
            self.close(node);
            self.add(body, node, field::NO);
            return Ok(());
        }
        let mut decorators = SmallVec::<[u32; 2]>::new();
        while self.at(Tok::At) {
            decorators.push(self.decorator()?);
        }
        let start = self.tok.start;
        let modifiers = self.class_modifiers()?;
        if self.state.typed && self.at(Tok::Open(b'[')) && self.opens_index_signature()? {
            let node = self.index_signature(start, &modifiers.nodes)?;
            self.add(body, node, field::NO);
            return self.member_end();
        }
        let name = self.property_name()?;
        if self.state.typed && !self.eat(Tok::Question)? {
            self.eat(Tok::Bang)?;
        }
        let method = matches!(self.tok.kind, Tok::Open(b'(') | Tok::Less);
        if modifiers.method && !method {
            return Err(Unsure);
        }
        // In TypeScript's grammar, the decorators of methods are siblings of the methods.
        let apart = method && self.state.typed;
        let from = decorators.first().filter(|_| !apart).map_or(start, |first| self.tree.start(*first));
        let node = self.open_at(kind::METHOD_DEFINITION, from);
        for decorator in decorators {
            self.add(if apart { body } else { node }, decorator, field::DECORATOR);
        }
        for modifier in &modifiers.nodes {
            self.add(node, *modifier, field::NO);
        }
        if method {
            self.add(node, name, field::NAME);
            self.method(node, modifiers.is_abstract)?;
        } else {
            self.field(node, name)?;
        }
        self.add(body, node, field::NO);
        Ok(())
    }

    fn class_modifiers(&mut self) -> Read<Modifiers> {
        let mut modifiers = Modifiers::default();
        while self.at(Tok::Name) {
            let word = self.text(self.tok);
            let typed = self.state.typed;
            let kind = match word {
                "static" => Some(kind::WORD_STATIC),
                "async" => Some(kind::WORD_ASYNC),
                "get" => Some(kind::WORD_GET),
                "set" => Some(kind::WORD_SET),
                "abstract" if typed => Some(kind::WORD_ABSTRACT),
                "readonly" if typed => Some(kind::WORD_READONLY),
                "override" if typed => Some(kind::OVERRIDE_MODIFIER),
                "public" | "private" | "protected" if typed => Some(kind::ACCESSIBILITY_MODIFIER),
                // These have no node, because the front end does not use them.
                "declare" | "accessor" if typed => None,
                _ => break,
            };
            if !self.at_modifier(word)? {
                break;
            }
            let token = self.advance()?;
            if let Some(kind) = kind {
                let named = matches!(kind, kind::OVERRIDE_MODIFIER | kind::ACCESSIBILITY_MODIFIER);
                modifiers.nodes.push(self.word_node(kind, named, token.start, token.end));
            }
            modifiers.is_abstract |= word == "abstract";
            modifiers.method |= matches!(word, "async" | "get" | "set");
        }
        if self.at(Tok::Star) {
            let token = self.advance()?;
            modifiers.nodes.push(self.word_node(kind::SIGN_STAR, false, token.start, token.end));
            modifiers.method = true;
        }
        Ok(modifiers)
    }

    fn method(&mut self, node: u32, is_abstract: bool) -> Read<()> {
        self.signature(node)?;
        if self.at(Tok::Open(b'{')) && !is_abstract {
            self.function_body(node)?;
            return Ok(());
        }
        if !self.state.typed {
            return Err(Unsure);
        }
        self.tree.set_kind(node, if is_abstract { kind::ABSTRACT_METHOD_SIGNATURE } else { kind::METHOD_SIGNATURE });
        self.close(node);
        self.member_end()
    }

    fn field(&mut self, node: u32, name: u32) -> Read<()> {
        if self.state.typed {
            self.tree.set_kind(node, kind::PUBLIC_FIELD_DEFINITION);
            self.add(node, name, field::NAME);
            self.annotation(node)?;
        } else {
            self.tree.set_kind(node, kind::FIELD_DEFINITION);
            self.add(node, name, field::PROPERTY);
        }
        if self.eat(Tok::Assign)? {
            let value = self.expression()?;
            self.add(node, value, field::VALUE);
        }
        self.close(node);
        self.member_end()
    }

    /// The end of a member without a body, which is not part of the member.
    fn member_end(&mut self) -> Read<()> {
        if self.at(Tok::Semicolon) || self.ends() { Ok(()) } else { Err(Unsure) }
    }

    // --- object literals ---

    pub(super) fn object(&mut self) -> Read<u32> {
        let node = self.open(kind::OBJECT);
        self.advance()?;
        self.inside(|parser| {
            while !parser.at(Tok::Close(b'}')) {
                let part = parser.property()?;
                parser.add(node, part, field::NO);
                if !parser.eat(Tok::Comma)? && !parser.at(Tok::Close(b'}')) {
                    return Err(Unsure);
                }
            }
            parser.advance()
        })?;
        Ok(self.close(node))
    }

    fn property(&mut self) -> Read<u32> {
        if self.at(Tok::Ellipsis) {
            return self.spread();
        }
        let start = self.tok.start;
        let mut words = SmallVec::<[u32; 2]>::new();
        for (word, kind) in [("async", kind::WORD_ASYNC), ("get", kind::WORD_GET), ("set", kind::WORD_SET)] {
            if self.at_modifier(word)? {
                let token = self.advance()?;
                words.push(self.word_node(kind, false, token.start, token.end));
            }
        }
        if self.at(Tok::Star) {
            let token = self.advance()?;
            words.push(self.word_node(kind::SIGN_STAR, false, token.start, token.end));
        }
        if words.is_empty() && self.at(Tok::Name) {
            let kind = match self.peek()?.kind {
                Tok::Comma | Tok::Close(b'}') => return self.leaf(kind::SHORTHAND_PROPERTY_IDENTIFIER),
                Tok::Assign => kind::SHORTHAND_PROPERTY_IDENTIFIER_PATTERN,
                _ => kind::PROPERTY_IDENTIFIER,
            };
            let name = self.leaf(kind)?;
            if kind == kind::PROPERTY_IDENTIFIER {
                return self.property_rest(start, name, &words);
            }
            // Valid only in destructuring.
            let node = self.around(kind::OBJECT_ASSIGNMENT_PATTERN, name, field::LEFT);
            self.advance()?;
            let default = self.expression()?;
            self.add(node, default, field::RIGHT);
            return Ok(self.close(node));
        }
        let name = self.property_name()?;
        self.property_rest(start, name, &words)
    }

    fn property_rest(&mut self, start: u32, name: u32, words: &[u32]) -> Read<u32> {
        if words.is_empty() && self.eat(Tok::Colon)? {
            let node = self.around(kind::PAIR, name, field::KEY);
            let value = self.expression()?;
            self.add(node, value, field::VALUE);
            return Ok(self.close(node));
        }
        if !matches!(self.tok.kind, Tok::Open(b'(') | Tok::Less) {
            return Err(Unsure);
        }
        let node = self.open_at(kind::METHOD_DEFINITION, start);
        for word in words {
            self.add(node, *word, field::NO);
        }
        self.add(node, name, field::NAME);
        self.signature(node)?;
        self.function_body(node)
    }
}
