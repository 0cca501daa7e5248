//! Classes with their members, and the members of object literals.

use super::lex::{EcmaTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax, ensure};
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
    pub(super) fn decorated(&mut self, exported: bool) -> ParseResult<u32> {
        let mut decorators = SmallVec::<[u32; 4]>::new();
        while self.at(EcmaTokenKind::At) {
            decorators.push(self.decorator()?);
        }
        match self.tok.kind {
            EcmaTokenKind::Word(Word::Export) if !exported => self.export_statement(&decorators),
            EcmaTokenKind::Word(Word::Class) => self.class_declaration(&decorators, false),
            EcmaTokenKind::Name if self.at_name("abstract") && self.state.typed => {
                self.class_declaration(&decorators, true)
            }
            _ => Err(UnsupportedSyntax),
        }
    }

    pub(super) fn class_declaration(&mut self, decorators: &[u32], is_abstract: bool) -> ParseResult<u32> {
        let kind = if is_abstract { kind::ABSTRACT_CLASS_DECLARATION } else { kind::CLASS_DECLARATION };
        let start = decorators.first().map_or(self.tok.start, |first| self.tree.start(*first));
        let node = self.open_at(kind, start);
        self.add_all(node, decorators.iter().copied(), field::DECORATOR);
        if is_abstract {
            self.mark(node, kind::WORD_ABSTRACT, field::NO)?;
        }
        self.class_rest(node)?;
        if self.tree.node(node).children().field("name").is_none() {
            self.tree.set_kind(node, kind::CLASS);
        }
        Ok(node)
    }

    pub(super) fn class_expression(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::CLASS);
        self.class_rest(node)
    }

    fn class_rest(&mut self, node: u32) -> ParseResult<u32> {
        self.expect(EcmaTokenKind::Word(Word::Class))?;
        if self.at(EcmaTokenKind::Name) && !(self.state.typed && self.at_name("implements")) {
            let name = self.leaf(if self.state.typed { kind::TYPE_IDENTIFIER } else { kind::IDENTIFIER })?;
            self.add(node, name, field::NAME);
        }
        self.type_parameters(node)?;
        self.heritage(node)?;
        self.last(node, field::BODY, |parser| parser.deeper(|parser| parser.inside(Self::class_body)))
    }

    fn heritage(&mut self, node: u32) -> ParseResult<()> {
        let heritage = self.open(kind::CLASS_HERITAGE);
        let mut any = false;
        if self.at_word(Word::Extends) {
            any = true;
            let clause = self.begin(kind::EXTENDS_CLAUSE)?;
            let (base, types) = self.extended()?;
            if self.state.typed {
                self.add(clause, base, field::VALUE);
                self.add_all(clause, types, field::TYPE_ARGUMENTS);
                self.attach(heritage, clause, field::NO);
            } else {
                self.add(heritage, base, field::NO);
            }
        }
        if self.state.typed && self.at_name("implements") {
            any = true;
            let clause = self.begin(kind::IMPLEMENTS_CLAUSE)?;
            self.types(clause, field::NO)?;
            self.attach(heritage, clause, field::NO);
        }
        if any {
            self.attach(node, heritage, field::NO);
        }
        Ok(())
    }

    fn class_body(&mut self) -> ParseResult<u32> {
        let body = self.begin_with(EcmaTokenKind::Open(b'{'), kind::CLASS_BODY)?;
        while !self.at(EcmaTokenKind::Close(b'}')) {
            if !self.eat(EcmaTokenKind::Semicolon)? {
                self.class_member(body)?;
            }
        }
        self.close_after(body)
    }

    fn class_member(&mut self, body: u32) -> ParseResult<()> {
        if self.at_name("static") && self.peek()?.kind == EcmaTokenKind::Open(b'{') {
            return self
                .part(body, field::NO, |parser| parser.prefixed(kind::CLASS_STATIC_BLOCK, field::BODY, Self::block));
        }
        let mut decorators = SmallVec::<[u32; 2]>::new();
        while self.at(EcmaTokenKind::At) {
            decorators.push(self.decorator()?);
        }
        let start = self.tok.start;
        let modifiers = self.class_modifiers()?;
        if self.state.typed && self.at(EcmaTokenKind::Open(b'[')) && self.opens_index_signature()? {
            self.part(body, field::NO, |parser| parser.index_signature(start, &modifiers.nodes))?;
            return self.member_end();
        }
        let name = self.property_name()?;
        if self.state.typed && !self.eat(EcmaTokenKind::Question)? {
            self.eat(EcmaTokenKind::Bang)?;
        }
        let method = matches!(self.tok.kind, EcmaTokenKind::Open(b'(') | EcmaTokenKind::Less);
        if modifiers.method && !method {
            return Err(UnsupportedSyntax);
        }
        // In TypeScript's grammar, the decorators of methods are siblings of the methods.
        let apart = method && self.state.typed;
        let from = decorators.first().filter(|_| !apart).map_or(start, |first| self.tree.start(*first));
        let node = self.open_at(kind::METHOD_DEFINITION, from);
        for decorator in decorators {
            self.add(if apart { body } else { node }, decorator, field::DECORATOR);
        }
        self.add_all(node, modifiers.nodes.iter().copied(), field::NO);
        if method {
            self.add(node, name, field::NAME);
            self.method(node, modifiers.is_abstract)?;
        } else {
            self.field(node, name)?;
        }
        self.add(body, node, field::NO);
        Ok(())
    }

    fn class_modifiers(&mut self) -> ParseResult<Modifiers> {
        let mut modifiers = Modifiers::default();
        while self.at(EcmaTokenKind::Name) {
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
        if self.at(EcmaTokenKind::Star) {
            let token = self.advance()?;
            modifiers.nodes.push(self.word_node(kind::SIGN_STAR, false, token.start, token.end));
            modifiers.method = true;
        }
        Ok(modifiers)
    }

    fn method(&mut self, node: u32, is_abstract: bool) -> ParseResult<()> {
        self.signature(node)?;
        if self.at(EcmaTokenKind::Open(b'{')) && !is_abstract {
            self.function_body(node)?;
            return Ok(());
        }
        ensure(self.state.typed)?;
        self.tree.set_kind(node, if is_abstract { kind::ABSTRACT_METHOD_SIGNATURE } else { kind::METHOD_SIGNATURE });
        self.close(node);
        self.member_end()
    }

    fn field(&mut self, node: u32, name: u32) -> ParseResult<()> {
        if self.state.typed {
            self.tree.set_kind(node, kind::PUBLIC_FIELD_DEFINITION);
            self.add(node, name, field::NAME);
            self.annotation(node)?;
        } else {
            self.tree.set_kind(node, kind::FIELD_DEFINITION);
            self.add(node, name, field::PROPERTY);
        }
        self.part_after(EcmaTokenKind::Assign, node, field::VALUE, Self::expression)?;
        self.close(node);
        self.member_end()
    }

    /// The end of a member without a body, which is not part of the member.
    fn member_end(&mut self) -> ParseResult<()> {
        if self.at(EcmaTokenKind::Semicolon) || self.ends() { Ok(()) } else { Err(UnsupportedSyntax) }
    }

    // --- object literals ---

    pub(super) fn object(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::OBJECT)?;
        self.inside(|parser| {
            parser.elements(EcmaTokenKind::Close(b'}'), |parser| parser.part(node, field::NO, Self::property))
        })?;
        Ok(self.close(node))
    }

    fn property(&mut self) -> ParseResult<u32> {
        if self.at(EcmaTokenKind::Ellipsis) {
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
        if self.at(EcmaTokenKind::Star) {
            let token = self.advance()?;
            words.push(self.word_node(kind::SIGN_STAR, false, token.start, token.end));
        }
        if words.is_empty() && self.at(EcmaTokenKind::Name) {
            let kind = match self.peek()?.kind {
                EcmaTokenKind::Comma | EcmaTokenKind::Close(b'}') => {
                    return self.leaf(kind::SHORTHAND_PROPERTY_IDENTIFIER);
                }
                EcmaTokenKind::Assign => kind::SHORTHAND_PROPERTY_IDENTIFIER_PATTERN,
                _ => kind::PROPERTY_IDENTIFIER,
            };
            let name = self.leaf(kind)?;
            if kind == kind::PROPERTY_IDENTIFIER {
                return self.property_rest(start, name, &words);
            }
            // Valid only in destructuring.
            return self.infix(kind::OBJECT_ASSIGNMENT_PATTERN, (name, field::LEFT), field::RIGHT, Self::expression);
        }
        let name = self.property_name()?;
        self.property_rest(start, name, &words)
    }

    fn property_rest(&mut self, start: u32, name: u32, words: &[u32]) -> ParseResult<u32> {
        if words.is_empty() && self.eat(EcmaTokenKind::Colon)? {
            let node = self.around(kind::PAIR, name, field::KEY);
            return self.last(node, field::VALUE, Self::expression);
        }
        ensure(matches!(self.tok.kind, EcmaTokenKind::Open(b'(') | EcmaTokenKind::Less))?;
        let node = self.open_at(kind::METHOD_DEFINITION, start);
        self.add_all(node, words.iter().copied(), field::NO);
        self.add(node, name, field::NAME);
        self.signature(node)?;
        self.function_body(node)
    }
}
