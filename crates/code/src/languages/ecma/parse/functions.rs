//! Functions with their parameters.

use super::lex::{EcmaTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax};
use crate::tree::flag;

impl Parser<'_> {
    /// `function …` as a statement; `start` is the start of `async` if present. Without a name it is an expression.
    pub(super) fn function_declaration(&mut self, start: u32, is_async: bool) -> ParseResult<u32> {
        let node = self.function_head(start, is_async)?;
        let declared = match self.tree.kind(node) {
            _ if self.tree.node(node).children().field("name").is_none() => return self.function_body(node),
            kind::FUNCTION_EXPRESSION => kind::FUNCTION_DECLARATION,
            _ => kind::GENERATOR_FUNCTION_DECLARATION,
        };
        self.tree.set_kind(node, declared);
        if !self.at(EcmaTokenKind::Open(b'{')) {
            if !self.state.typed || declared != kind::FUNCTION_DECLARATION {
                return Err(UnsupportedSyntax);
            }
            self.tree.set_kind(node, kind::FUNCTION_SIGNATURE);
            self.end()?;
            return Ok(self.close(node));
        }
        self.function_body(node)
    }

    pub(super) fn function_expression(&mut self, start: u32, is_async: bool) -> ParseResult<u32> {
        let node = self.function_head(start, is_async)?;
        self.function_body(node)
    }

    /// The function up to its body.
    fn function_head(&mut self, start: u32, is_async: bool) -> ParseResult<u32> {
        let node = self.open_at(kind::FUNCTION_EXPRESSION, start);
        if is_async {
            self.async_mark(node, start);
        }
        self.expect(EcmaTokenKind::Word(Word::Function))?;
        if self.at(EcmaTokenKind::Star) {
            self.mark(node, kind::SIGN_STAR, field::NO)?;
            self.tree.set_kind(node, kind::GENERATOR_FUNCTION);
        }
        if self.at(EcmaTokenKind::Name) {
            self.token(node, field::NAME, kind::IDENTIFIER)?;
        }
        self.signature(node)?;
        Ok(node)
    }

    pub(super) fn async_mark(&mut self, node: u32, start: u32) {
        let word = self.tree.push(kind::WORD_ASYNC, 0, start, start + 5);
        self.add(node, word, field::NO);
    }

    pub(super) fn function_body(&mut self, node: u32) -> ParseResult<u32> {
        self.last(node, field::BODY, |parser| parser.inside(Self::block))
    }

    /// Type parameters, parameters and the result type.
    pub(super) fn signature(&mut self, node: u32) -> ParseResult<()> {
        self.type_parameters(node)?;
        self.parameters(node)?;
        self.result(node, field::RETURN_TYPE)
    }

    pub(super) fn parameters(&mut self, node: u32) -> ParseResult<()> {
        let parameters = self.begin_with(EcmaTokenKind::Open(b'('), kind::FORMAL_PARAMETERS)?;
        self.inside(|parser| {
            parser.elements(EcmaTokenKind::Close(b')'), |parser| {
                let parameter = match parser.state.typed {
                    true => parser.typed_parameter()?,
                    false if parser.at(EcmaTokenKind::Ellipsis) => parser.rest_pattern()?,
                    false => parser.pattern_or_default()?,
                };
                parser.add(parameters, parameter, field::NO);
                Ok(())
            })
        })?;
        self.attach(node, parameters, field::PARAMETERS);
        Ok(())
    }

    fn typed_parameter(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::REQUIRED_PARAMETER);
        while self.at(EcmaTokenKind::At) {
            self.part(node, field::DECORATOR, Self::decorator)?;
        }
        self.parameter_modifiers(node)?;
        let pattern = match self.tok.kind {
            EcmaTokenKind::Ellipsis => self.rest_pattern()?,
            EcmaTokenKind::Word(Word::This) => self.leaf(kind::THIS)?,
            _ => self.pattern()?,
        };
        self.add(node, pattern, field::PATTERN);
        if self.eat(EcmaTokenKind::Question)? {
            self.tree.set_kind(node, kind::OPTIONAL_PARAMETER);
        }
        self.annotation(node)?;
        self.part_after(EcmaTokenKind::Assign, node, field::VALUE, Self::expression)?;
        Ok(self.close(node))
    }

    /// `private`, `override` and `readonly`, which make a parameter a field.
    fn parameter_modifiers(&mut self, node: u32) -> ParseResult<()> {
        while self.at(EcmaTokenKind::Name) {
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
    pub(super) fn arrow(&mut self) -> ParseResult<Option<u32>> {
        let first = self.tok.kind;
        match first {
            EcmaTokenKind::Name => {
                let (next, fresh) = self.look()?;
                if next.kind == EcmaTokenKind::Arrow && !fresh {
                    let node = self.open(kind::ARROW_FUNCTION);
                    return self.single_parameter(node).map(Some);
                }
                if self.text(self.tok) != "async" || fresh {
                    return Ok(None);
                }
                match next.kind {
                    EcmaTokenKind::Name => {
                        let node = self.open(kind::ARROW_FUNCTION);
                        let start = self.advance()?.start;
                        self.async_mark(node, start);
                        self.single_parameter(node).map(Some)
                    }
                    EcmaTokenKind::Open(b'(') => self.guess_arrow(true),
                    EcmaTokenKind::Less if self.state.typed => self.guess_arrow(true),
                    _ => Ok(None),
                }
            }
            EcmaTokenKind::Open(b'(') if self.may_open_parameters()? => self.guess_arrow(false),
            EcmaTokenKind::Less if self.state.typed && (!self.state.elements || self.opens_type_parameters()?) => {
                self.guess_arrow(false)
            }
            _ => Ok(None),
        }
    }

    fn single_parameter(&mut self, node: u32) -> ParseResult<u32> {
        self.part(node, field::PARAMETER, Self::identifier)?;
        if !self.at(EcmaTokenKind::Arrow) || self.lex.state.fresh {
            return Err(UnsupportedSyntax);
        }
        self.arrow_body(node)
    }

    /// Looks behind `(`, because most of them do not open parameters.
    fn may_open_parameters(&mut self) -> ParseResult<bool> {
        self.ahead(|parser| {
            parser.advance()?;
            let may = match parser.tok.kind {
                EcmaTokenKind::Close(b')')
                | EcmaTokenKind::Ellipsis
                | EcmaTokenKind::Open(b'{' | b'[')
                | EcmaTokenKind::At => true,
                EcmaTokenKind::Word(Word::This) => parser.state.typed && parser.peek()?.kind == EcmaTokenKind::Colon,
                EcmaTokenKind::Name => {
                    let next = parser.peek()?;
                    match next.kind {
                        EcmaTokenKind::Comma | EcmaTokenKind::Assign => true,
                        EcmaTokenKind::Close(b')') => {
                            parser.advance()?;
                            let behind = parser.peek()?.kind;
                            behind == EcmaTokenKind::Arrow || parser.state.typed && behind == EcmaTokenKind::Colon
                        }
                        EcmaTokenKind::Colon | EcmaTokenKind::Question | EcmaTokenKind::Name => parser.state.typed,
                        _ => false,
                    }
                }
                _ => false,
            };
            Ok(may)
        })
    }

    /// Where JSX is allowed, `<T,` and `<T extends` distinguish type parameters from elements.
    fn opens_type_parameters(&mut self) -> ParseResult<bool> {
        self.ahead(|parser| {
            parser.advance()?;
            parser.eat_word(Word::Const)?;
            Ok(parser.at(EcmaTokenKind::Name)
                && matches!(parser.peek()?.kind, EcmaTokenKind::Comma | EcmaTokenKind::Word(Word::Extends)))
        })
    }

    /// Reads a possible head of an arrow function, and goes back if no arrow follows.
    fn guess_arrow(&mut self, is_async: bool) -> ParseResult<Option<u32>> {
        let guess = self.guess();
        match self.arrow_head(is_async) {
            Ok(node) if self.at(EcmaTokenKind::Arrow) && !self.lex.state.fresh => {
                let typed = self.tree.node(node).children().field("return_type").is_some();
                let node = self.arrow_body(node)?;
                // `a ? (b) : c => d`: the `:` belongs to the conditional.
                if !typed || !self.state.choosing || self.at(EcmaTokenKind::Colon) {
                    return Ok(Some(node));
                }
            }
            _ => {}
        }
        self.back_to(guess)?;
        Ok(None)
    }

    fn arrow_head(&mut self, is_async: bool) -> ParseResult<u32> {
        let node = self.open(kind::ARROW_FUNCTION);
        if is_async {
            let start = self.advance()?.start;
            self.async_mark(node, start);
        }
        self.deeper(|parser| parser.signature(node))?;
        Ok(node)
    }

    fn arrow_body(&mut self, node: u32) -> ParseResult<u32> {
        self.expect(EcmaTokenKind::Arrow)?;
        if self.at(EcmaTokenKind::Open(b'{')) {
            return self.function_body(node);
        }
        self.last(node, field::BODY, Self::expression)
    }

    // --- decorators ---

    pub(super) fn decorator(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(EcmaTokenKind::At, kind::DECORATOR)?;
        let called = match self.tok.kind {
            EcmaTokenKind::Open(b'(') => self.parenthesized()?,
            EcmaTokenKind::Name => self.decorating()?,
            _ => return Err(UnsupportedSyntax),
        };
        self.add(node, called, field::NO);
        Ok(self.close(node))
    }

    /// `a.b.c(…)`: members first, then a call.
    fn decorating(&mut self) -> ParseResult<u32> {
        let mut node = self.identifier()?;
        while self.at(EcmaTokenKind::Dot) {
            node = self.member(node)?;
        }
        if self.at(EcmaTokenKind::Open(b'(')) {
            node = self.call(node, None)?;
        }
        Ok(node)
    }

    /// A node for a token that was already consumed.
    pub(super) fn word_node(&mut self, kind: u16, named: bool, start: u32, end: u32) -> u32 {
        self.tree.push(kind, if named { flag::NAMED } else { 0 }, start, end)
    }
}
