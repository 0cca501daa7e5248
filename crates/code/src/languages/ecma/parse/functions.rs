//! Functions with their parameters.

use super::lex::{Tok, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure};
use crate::tree::flag;

impl Parser<'_> {
    /// `function …` as a statement; `start` is the start of `async` if present. Without a name it is an expression.
    pub(super) fn function_declaration(&mut self, start: u32, is_async: bool) -> Read<u32> {
        let node = self.function_head(start, is_async)?;
        let declared = match self.tree.kind(node) {
            _ if self.tree.node(node).kids().field("name").is_none() => return self.function_body(node),
            kind::FUNCTION_EXPRESSION => kind::FUNCTION_DECLARATION,
            _ => kind::GENERATOR_FUNCTION_DECLARATION,
        };
        self.tree.set_kind(node, declared);
        if !self.at(Tok::Open(b'{')) {
            if !self.state.typed || declared != kind::FUNCTION_DECLARATION {
                return Err(Unsure);
            }
            self.tree.set_kind(node, kind::FUNCTION_SIGNATURE);
            self.end()?;
            return Ok(self.close(node));
        }
        self.function_body(node)
    }

    pub(super) fn function_expression(&mut self, start: u32, is_async: bool) -> Read<u32> {
        let node = self.function_head(start, is_async)?;
        self.function_body(node)
    }

    /// The function up to its body.
    fn function_head(&mut self, start: u32, is_async: bool) -> Read<u32> {
        let node = self.open_at(kind::FUNCTION_EXPRESSION, start);
        if is_async {
            self.async_mark(node, start);
        }
        self.expect(Tok::Word(Word::Function))?;
        if self.at(Tok::Star) {
            self.mark(node, kind::SIGN_STAR, field::NO)?;
            self.tree.set_kind(node, kind::GENERATOR_FUNCTION);
        }
        if self.at(Tok::Name) {
            self.token(node, field::NAME, kind::IDENTIFIER)?;
        }
        self.signature(node)?;
        Ok(node)
    }

    pub(super) fn async_mark(&mut self, node: u32, start: u32) {
        let word = self.tree.push(kind::WORD_ASYNC, 0, start, start + 5);
        self.add(node, word, field::NO);
    }

    pub(super) fn function_body(&mut self, node: u32) -> Read<u32> {
        self.last(node, field::BODY, |parser| parser.inside(Self::block))
    }

    /// Type parameters, parameters and the result type.
    pub(super) fn signature(&mut self, node: u32) -> Read<()> {
        self.type_parameters(node)?;
        self.parameters(node)?;
        self.result(node, field::RETURN_TYPE)
    }

    pub(super) fn parameters(&mut self, node: u32) -> Read<()> {
        let parameters = self.begin_with(Tok::Open(b'('), kind::FORMAL_PARAMETERS)?;
        self.inside(|parser| {
            parser.elements(Tok::Close(b')'), |parser| {
                let parameter = match parser.state.typed {
                    true => parser.typed_parameter()?,
                    false if parser.at(Tok::Ellipsis) => parser.rest_pattern()?,
                    false => parser.pattern_or_default()?,
                };
                parser.add(parameters, parameter, field::NO);
                Ok(())
            })
        })?;
        self.attach(node, parameters, field::PARAMETERS);
        Ok(())
    }

    fn typed_parameter(&mut self) -> Read<u32> {
        let node = self.open(kind::REQUIRED_PARAMETER);
        while self.at(Tok::At) {
            self.part(node, field::DECORATOR, Self::decorator)?;
        }
        self.parameter_modifiers(node)?;
        let pattern = match self.tok.kind {
            Tok::Ellipsis => self.rest_pattern()?,
            Tok::Word(Word::This) => self.leaf(kind::THIS)?,
            _ => self.pattern()?,
        };
        self.add(node, pattern, field::PATTERN);
        if self.eat(Tok::Question)? {
            self.tree.set_kind(node, kind::OPTIONAL_PARAMETER);
        }
        self.annotation(node)?;
        self.part_after(Tok::Assign, node, field::VALUE, Self::expression)?;
        Ok(self.close(node))
    }

    /// `private`, `override` and `readonly`, which make a parameter a field.
    fn parameter_modifiers(&mut self, node: u32) -> Read<()> {
        while self.at(Tok::Name) {
            let word = self.text(self.tok);
            if !matches!(word, "public" | "private" | "protected" | "override" | "readonly")
                || !self.at_modifier(word)?
            {
                return Ok(());
            }
            match word {
                "readonly" => self.mark(node, kind::WORD_READONLY, field::NO)?,
                _ => {
                    let is_override = word == "override";
                    let kind = if is_override { kind::OVERRIDE_MODIFIER } else { kind::ACCESSIBILITY_MODIFIER };
                    self.token(node, field::NO, kind)?;
                }
            }
        }
        Ok(())
    }

    // --- arrow functions ---

    /// An arrow function, if one begins here.
    pub(super) fn arrow(&mut self) -> Read<Option<u32>> {
        let first = self.tok.kind;
        match first {
            Tok::Name => {
                let (next, fresh) = self.look()?;
                if next.kind == Tok::Arrow && !fresh {
                    let node = self.open(kind::ARROW_FUNCTION);
                    return self.single_parameter(node).map(Some);
                }
                if self.text(self.tok) != "async" || fresh {
                    return Ok(None);
                }
                match next.kind {
                    Tok::Name => {
                        let node = self.open(kind::ARROW_FUNCTION);
                        let start = self.advance()?.start;
                        self.async_mark(node, start);
                        self.single_parameter(node).map(Some)
                    }
                    Tok::Open(b'(') => self.guess_arrow(true),
                    Tok::Less if self.state.typed => self.guess_arrow(true),
                    _ => Ok(None),
                }
            }
            Tok::Open(b'(') if self.may_open_parameters()? => self.guess_arrow(false),
            Tok::Less if self.state.typed && (!self.state.elements || self.opens_type_parameters()?) => {
                self.guess_arrow(false)
            }
            _ => Ok(None),
        }
    }

    fn single_parameter(&mut self, node: u32) -> Read<u32> {
        self.part(node, field::PARAMETER, Self::identifier)?;
        if !self.at(Tok::Arrow) || self.lex.state.fresh {
            return Err(Unsure);
        }
        self.arrow_body(node)
    }

    /// Looks behind `(`, because most of them do not open parameters.
    fn may_open_parameters(&mut self) -> Read<bool> {
        self.ahead(|parser| {
            parser.advance()?;
            let may = match parser.tok.kind {
                Tok::Close(b')') | Tok::Ellipsis | Tok::Open(b'{' | b'[') | Tok::At => true,
                Tok::Word(Word::This) => parser.state.typed && parser.peek()?.kind == Tok::Colon,
                Tok::Name => {
                    let next = parser.peek()?;
                    match next.kind {
                        Tok::Comma | Tok::Assign => true,
                        Tok::Close(b')') => {
                            parser.advance()?;
                            let behind = parser.peek()?.kind;
                            behind == Tok::Arrow || parser.state.typed && behind == Tok::Colon
                        }
                        Tok::Colon | Tok::Question | Tok::Name => parser.state.typed,
                        _ => false,
                    }
                }
                _ => false,
            };
            Ok(may)
        })
    }

    /// Where JSX is allowed, `<T,` and `<T extends` distinguish type parameters from elements.
    fn opens_type_parameters(&mut self) -> Read<bool> {
        self.ahead(|parser| {
            parser.advance()?;
            parser.eat_word(Word::Const)?;
            Ok(parser.at(Tok::Name) && matches!(parser.peek()?.kind, Tok::Comma | Tok::Word(Word::Extends)))
        })
    }

    /// Reads a possible head of an arrow function, and goes back if no arrow follows.
    fn guess_arrow(&mut self, is_async: bool) -> Read<Option<u32>> {
        let guess = self.guess();
        match self.arrow_head(is_async) {
            Ok(node) if self.at(Tok::Arrow) && !self.lex.state.fresh => {
                let typed = self.tree.node(node).kids().field("return_type").is_some();
                let node = self.arrow_body(node)?;
                // `a ? (b) : c => d`: the `:` belongs to the conditional.
                if !typed || !self.state.choosing || self.at(Tok::Colon) {
                    return Ok(Some(node));
                }
            }
            _ => {}
        }
        self.go_back(guess)?;
        Ok(None)
    }

    fn arrow_head(&mut self, is_async: bool) -> Read<u32> {
        let node = self.open(kind::ARROW_FUNCTION);
        if is_async {
            let start = self.advance()?.start;
            self.async_mark(node, start);
        }
        self.deeper(|parser| parser.signature(node))?;
        Ok(node)
    }

    fn arrow_body(&mut self, node: u32) -> Read<u32> {
        self.expect(Tok::Arrow)?;
        if self.at(Tok::Open(b'{')) {
            return self.function_body(node);
        }
        self.last(node, field::BODY, Self::expression)
    }

    // --- decorators ---

    pub(super) fn decorator(&mut self) -> Read<u32> {
        let node = self.begin_with(Tok::At, kind::DECORATOR)?;
        let called = match self.tok.kind {
            Tok::Open(b'(') => self.parenthesized()?,
            Tok::Name => self.decorating()?,
            _ => return Err(Unsure),
        };
        self.add(node, called, field::NO);
        Ok(self.close(node))
    }

    /// `a.b.c(…)`: members first, then a call.
    fn decorating(&mut self) -> Read<u32> {
        let mut node = self.identifier()?;
        while self.at(Tok::Dot) {
            node = self.member(node)?;
        }
        if self.at(Tok::Open(b'(')) {
            node = self.call(node, None)?;
        }
        Ok(node)
    }

    /// A node for a token that was already consumed.
    pub(super) fn word_node(&mut self, kind: u16, named: bool, start: u32, end: u32) -> u32 {
        self.tree.push(kind, if named { flag::NAMED } else { 0 }, start, end)
    }
}
