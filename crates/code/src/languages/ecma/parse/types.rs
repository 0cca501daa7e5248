//! The types of TypeScript.

use super::lex::{EcmaTokenKind, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{ParseResult, UnsupportedSyntax, ensure};

impl Parser<'_> {
    /// `: T`, if present.
    pub(super) fn annotation(&mut self, node: u32) -> ParseResult<()> {
        if !self.state.typed || !self.at(EcmaTokenKind::Colon) {
            return Ok(());
        }
        self.part(node, field::TYPE, |parser| parser.prefixed(kind::TYPE_ANNOTATION, field::NO, Self::ty))
    }

    /// `: T` after parameters, which may also be a type predicate.
    pub(super) fn result(&mut self, node: u32, field: u8) -> ParseResult<()> {
        if !self.state.typed || !self.at(EcmaTokenKind::Colon) {
            return Ok(());
        }
        let annotation = self.begin(kind::TYPE_ANNOTATION)?;
        let ty = self.result_type()?;
        match self.tree.kind(ty) {
            kind::ASSERTS => self.tree.set_kind(annotation, kind::ASSERTS_ANNOTATION),
            kind::TYPE_PREDICATE => self.tree.set_kind(annotation, kind::TYPE_PREDICATE_ANNOTATION),
            _ => {}
        }
        self.add(annotation, ty, field::NO);
        self.attach(node, annotation, field);
        Ok(())
    }

    fn result_type(&mut self) -> ParseResult<u32> {
        if self.at_name("asserts") && matches!(self.peek()?.kind, EcmaTokenKind::Name | EcmaTokenKind::Word(Word::This))
        {
            return self.prefixed(kind::ASSERTS, field::NO, Self::predicate);
        }
        if matches!(self.tok.kind, EcmaTokenKind::Name | EcmaTokenKind::Word(Word::This)) {
            let (next, fresh) = self.look()?;
            if next.kind == EcmaTokenKind::Name && !fresh && self.text(next) == "is" {
                return self.predicate();
            }
        }
        self.ty()
    }

    /// `name is T`, or the name alone.
    fn predicate(&mut self) -> ParseResult<u32> {
        let name = match self.tok.kind {
            EcmaTokenKind::Name => self.leaf(kind::IDENTIFIER)?,
            _ => self.leaf(kind::THIS)?,
        };
        if !self.at_name("is") || self.lex.state.fresh {
            return Ok(name);
        }
        self.infix(kind::TYPE_PREDICATE, (name, field::NAME), field::TYPE, Self::ty)
    }

    pub(super) fn type_parameters(&mut self, node: u32) -> ParseResult<()> {
        if !self.state.typed || !self.at(EcmaTokenKind::Less) {
            return Ok(());
        }
        let parameters = self.begin(kind::TYPE_PARAMETERS)?;
        self.inside(|parser| {
            parser.elements(EcmaTokenKind::Greater, |parser| parser.part(parameters, field::NO, Self::type_parameter))
        })?;
        self.attach(node, parameters, field::TYPE_PARAMETERS);
        Ok(())
    }

    fn type_parameter(&mut self) -> ParseResult<u32> {
        let node = self.open(kind::TYPE_PARAMETER);
        // `const`, `in` and `out` are skipped: they do not affect the type.
        self.eat_word(Word::Const)?;
        self.eat_word(Word::In)?;
        if self.at_modifier("out")? {
            self.advance()?;
        }
        self.part_name(node, field::NAME, kind::TYPE_IDENTIFIER)?;
        for (sign, kind, field) in [
            (EcmaTokenKind::Word(Word::Extends), kind::CONSTRAINT, field::CONSTRAINT),
            (EcmaTokenKind::Assign, kind::DEFAULT_TYPE, field::VALUE),
        ] {
            self.part_at(sign, node, field, |parser| parser.prefixed(kind, field::NO, Self::ty))?;
        }
        Ok(self.close(node))
    }

    pub(super) fn type_arguments(&mut self) -> ParseResult<u32> {
        let node = self.begin_with(EcmaTokenKind::Less, kind::TYPE_ARGUMENTS)?;
        self.inside(|parser| parser.types(node, field::NO))?;
        self.close_with(EcmaTokenKind::Greater, node)
    }

    /// `<…>` after a value, if it contains types: `<` may also be a comparison.
    pub(super) fn guess_type_arguments(&mut self) -> ParseResult<Option<u32>> {
        let guess = self.guess();
        if let Ok(types) = self.deeper(Self::type_arguments) {
            let compares = matches!(
                self.tok.kind,
                EcmaTokenKind::Name
                    | EcmaTokenKind::Private
                    | EcmaTokenKind::Number
                    | EcmaTokenKind::Str
                    | EcmaTokenKind::Word(_)
                    | EcmaTokenKind::Plus
                    | EcmaTokenKind::Minus
                    | EcmaTokenKind::Open(b'[')
            );
            if !compares || self.lex.state.fresh {
                return Ok(Some(types));
            }
        }
        self.back_to(guess)?;
        Ok(None)
    }

    /// Types separated by commas, with an optional trailing comma.
    pub(super) fn types(&mut self, node: u32, field: u8) -> ParseResult<()> {
        loop {
            self.part(node, field, Self::ty)?;
            if !self.eat(EcmaTokenKind::Comma)? || self.at(EcmaTokenKind::Greater) {
                return Ok(());
            }
        }
    }

    pub(super) fn ty(&mut self) -> ParseResult<u32> {
        self.deeper(Self::whole_type)
    }

    fn whole_type(&mut self) -> ParseResult<u32> {
        if let Some(function) = self.function_type()? {
            return Ok(function);
        }
        let left = self.union()?;
        if !self.at_word(Word::Extends) || self.lex.state.fresh || self.state.no_conditional {
            return Ok(left);
        }
        let node = self.begin_around(kind::CONDITIONAL_TYPE, left, field::LEFT)?;
        self.part(node, field::RIGHT, |parser| parser.with_mode(|mode| mode.no_conditional = true, Self::ty))?;
        self.expect(EcmaTokenKind::Question)?;
        self.part(node, field::CONSEQUENCE, |parser| parser.with_mode(|mode| mode.no_conditional = false, Self::ty))?;
        self.expect(EcmaTokenKind::Colon)?;
        self.last(node, field::ALTERNATIVE, |parser| parser.with_mode(|mode| mode.no_conditional = false, Self::ty))
    }

    /// `(…) => T`, `<T>(…) => U`, `new (…) => T`; `None` for anything else.
    fn function_type(&mut self) -> ParseResult<Option<u32>> {
        let first = self.tok.kind;
        let node = match first {
            EcmaTokenKind::Open(b'(') => {
                if !self.opens_parameters()? {
                    return Ok(None);
                }
                self.open(kind::FUNCTION_TYPE)
            }
            EcmaTokenKind::Less => self.open(kind::FUNCTION_TYPE),
            EcmaTokenKind::Word(Word::New) => self.open(kind::CONSTRUCTOR_TYPE),
            EcmaTokenKind::Name if self.at_name("abstract") && self.before(EcmaTokenKind::Word(Word::New))? => {
                self.begin(kind::CONSTRUCTOR_TYPE)?
            }
            _ => return Ok(None),
        };
        let constructs = self.tree.kind(node) == kind::CONSTRUCTOR_TYPE;
        if constructs {
            self.advance()?;
        }
        self.type_parameters(node)?;
        self.parameters(node)?;
        self.expect(EcmaTokenKind::Arrow)?;
        let result = if constructs { self.ty()? } else { self.result_type()? };
        self.add(node, result, if constructs { field::TYPE } else { field::RETURN_TYPE });
        Ok(Some(self.close(node)))
    }

    /// Whether `(` opens parameters, not a type in parentheses: decided by the following tokens, as in compilers.
    fn opens_parameters(&mut self) -> ParseResult<bool> {
        self.ahead(|parser| {
            parser.advance()?;
            let opens = match parser.tok.kind {
                EcmaTokenKind::Close(b')') | EcmaTokenKind::Ellipsis => true,
                EcmaTokenKind::Word(Word::This) => {
                    parser.advance()?;
                    parser.was_parameter()?
                }
                EcmaTokenKind::Name | EcmaTokenKind::Open(b'{' | b'[') => {
                    parser.pattern().is_ok() && parser.was_parameter()?
                }
                _ => false,
            };
            Ok(opens)
        })
    }

    /// Whether the next token can follow a parameter but not a type.
    fn was_parameter(&mut self) -> ParseResult<bool> {
        Ok(match self.tok.kind {
            EcmaTokenKind::Colon | EcmaTokenKind::Comma | EcmaTokenKind::Question | EcmaTokenKind::Assign => true,
            EcmaTokenKind::Close(b')') => self.peek()?.kind == EcmaTokenKind::Arrow,
            _ => false,
        })
    }

    fn union(&mut self) -> ParseResult<u32> {
        self.combined(EcmaTokenKind::BitOr, kind::UNION_TYPE, Self::intersection)
    }

    fn intersection(&mut self) -> ParseResult<u32> {
        self.combined(EcmaTokenKind::BitAnd, kind::INTERSECTION_TYPE, Self::operator_type)
    }

    /// Types separated by an operator, with an optional one before the first.
    fn combined(
        &mut self,
        sign: EcmaTokenKind,
        kind: u16,
        part: fn(&mut Self) -> ParseResult<u32>,
    ) -> ParseResult<u32> {
        let start = self.tok.start;
        self.eat(sign)?;
        let first = part(self)?;
        if !self.at(sign) {
            return Ok(first);
        }
        let node = self.open_at(kind, start);
        self.add(node, first, field::NO);
        while self.eat(sign)? {
            let next = match self.function_type()? {
                Some(function) => function,
                None => part(self)?,
            };
            self.add(node, next, field::NO);
        }
        Ok(self.close(node))
    }

    fn operator_type(&mut self) -> ParseResult<u32> {
        let kind = match self.tok.kind {
            EcmaTokenKind::Name => match self.text(self.tok) {
                "keyof" => kind::INDEX_TYPE_QUERY,
                "readonly" => kind::READONLY_TYPE,
                "infer" => kind::INFER_TYPE,
                "unique" => kind::PREDEFINED_TYPE,
                _ => return self.postfix_type(),
            },
            _ => return self.postfix_type(),
        };
        let (next, fresh) = self.look()?;
        let follows = matches!(
            next.kind,
            EcmaTokenKind::Name
                | EcmaTokenKind::Word(_)
                | EcmaTokenKind::Open(_)
                | EcmaTokenKind::Str
                | EcmaTokenKind::Template
        );
        if !follows {
            return self.postfix_type();
        }
        ensure(!fresh)?;
        let node = self.begin(kind)?;
        match kind {
            kind::PREDEFINED_TYPE => {
                ensure(self.eat_name("symbol")?)?;
            }
            kind::INFER_TYPE => {
                self.part_name(node, field::NO, kind::TYPE_IDENTIFIER)?;
                self.infer_constraint(node)?;
            }
            _ => {
                self.part(node, field::NO, |parser| parser.deeper(Self::operator_type))?;
            }
        }
        Ok(self.close(node))
    }

    /// `extends T` after an inferred type, unless it begins a conditional type.
    fn infer_constraint(&mut self, node: u32) -> ParseResult<()> {
        if !self.at_word(Word::Extends) {
            return Ok(());
        }
        let guess = self.guess();
        self.advance()?;
        let constraint = self.with_mode(|mode| mode.no_conditional = true, Self::ty);
        match constraint {
            Ok(constraint) if self.state.no_conditional || !self.at(EcmaTokenKind::Question) => {
                self.add(node, constraint, field::NO);
                Ok(())
            }
            _ => self.back_to(guess),
        }
    }

    /// A type followed by `[]` or `[K]`.
    fn postfix_type(&mut self) -> ParseResult<u32> {
        let mut ty = self.simple_type()?;
        while self.at(EcmaTokenKind::Open(b'[')) && !self.lex.state.fresh {
            let node = self.begin_around(kind::ARRAY_TYPE, ty, field::NO)?;
            if !self.at(EcmaTokenKind::Close(b']')) {
                self.tree.set_kind(node, kind::LOOKUP_TYPE);
                self.part(node, field::NO, |parser| parser.inside(Self::ty))?;
            }
            self.expect(EcmaTokenKind::Close(b']'))?;
            ty = self.close(node);
        }
        Ok(ty)
    }

    fn simple_type(&mut self) -> ParseResult<u32> {
        match self.tok.kind {
            EcmaTokenKind::Name => self.named_type(),
            EcmaTokenKind::Str | EcmaTokenKind::Number | EcmaTokenKind::Word(Word::True | Word::False | Word::Null) => {
                self.leaf(kind::LITERAL_TYPE)
            }
            EcmaTokenKind::Minus => {
                let node = self.begin(kind::LITERAL_TYPE)?;
                self.close_with(EcmaTokenKind::Number, node)
            }
            EcmaTokenKind::Template => self.template_of(kind::TEMPLATE_LITERAL_TYPE, kind::TEMPLATE_TYPE, Self::ty),
            EcmaTokenKind::Word(Word::Void) => self.leaf(kind::PREDEFINED_TYPE),
            EcmaTokenKind::Word(Word::This) => self.leaf(kind::THIS_TYPE),
            EcmaTokenKind::Word(Word::Typeof) => self.type_query(),
            EcmaTokenKind::Word(Word::Import) => {
                let mut node = self.import_expression()?;
                while self.at(EcmaTokenKind::Dot) {
                    node = self.member(node)?;
                }
                self.with_arguments(node)
            }
            EcmaTokenKind::Open(b'(') => {
                self.enclosed(kind::PARENTHESIZED_TYPE, field::NO, EcmaTokenKind::Close(b')'), |parser| {
                    parser.inside(Self::ty)
                })
            }
            EcmaTokenKind::Open(b'[') => self.tuple(),
            EcmaTokenKind::Open(b'{') => self.members(kind::OBJECT_TYPE),
            _ => Err(UnsupportedSyntax),
        }
    }

    fn named_type(&mut self) -> ParseResult<u32> {
        let name = self.text(self.tok);
        let known = match name {
            "any" | "number" | "boolean" | "string" | "symbol" | "object" | "unknown" | "never" => {
                Some(kind::PREDEFINED_TYPE)
            }
            "undefined" => Some(kind::LITERAL_TYPE),
            _ => None,
        };
        let node = self.leaf(known.unwrap_or(kind::TYPE_IDENTIFIER))?;
        if self.at(EcmaTokenKind::Dot) {
            self.tree.set_kind(node, kind::NESTED_TYPE_IDENTIFIER);
            while self.eat(EcmaTokenKind::Dot)? {
                ensure(matches!(self.tok.kind, EcmaTokenKind::Name | EcmaTokenKind::Word(_)))?;
                self.advance()?;
            }
            self.close(node);
        } else if known.is_some() {
            return Ok(node);
        }
        self.with_arguments(node)
    }

    /// A named type with its type arguments.
    fn with_arguments(&mut self, name: u32) -> ParseResult<u32> {
        if !self.at(EcmaTokenKind::Less) || self.lex.state.fresh {
            return Ok(name);
        }
        let generic = self.around(kind::GENERIC_TYPE, name, field::NAME);
        self.last(generic, field::TYPE_ARGUMENTS, Self::type_arguments)
    }

    /// `typeof a.b`
    fn type_query(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::TYPE_QUERY)?;
        let mut value = match self.tok.kind {
            EcmaTokenKind::Name => self.leaf(kind::IDENTIFIER)?,
            EcmaTokenKind::Word(Word::This) => self.leaf(kind::THIS)?,
            EcmaTokenKind::Word(Word::Import) => self.import_expression()?,
            _ => return Err(UnsupportedSyntax),
        };
        while self.at(EcmaTokenKind::Dot) {
            value = self.member(value)?;
        }
        if self.at(EcmaTokenKind::Less) && !self.lex.state.fresh {
            let with = self.around(kind::INSTANTIATION_EXPRESSION, value, field::NO);
            self.part(with, field::TYPE_ARGUMENTS, Self::type_arguments)?;
            value = self.close(with);
        }
        self.add(node, value, field::NO);
        Ok(self.close(node))
    }

    fn tuple(&mut self) -> ParseResult<u32> {
        let node = self.begin(kind::TUPLE_TYPE)?;
        self.inside(|parser| {
            parser.elements(EcmaTokenKind::Close(b']'), |parser| parser.part(node, field::NO, Self::tuple_part))
        })?;
        Ok(self.close(node))
    }

    /// An element of a tuple: a type, optionally named, optional or rest.
    fn tuple_part(&mut self) -> ParseResult<u32> {
        let guess = self.guess();
        let node = self.open(kind::REQUIRED_PARAMETER);
        let rest = self.eat(EcmaTokenKind::Ellipsis)?;
        if self.at(EcmaTokenKind::Name) && matches!(self.peek()?.kind, EcmaTokenKind::Colon | EcmaTokenKind::Question) {
            self.token(node, field::NAME, kind::IDENTIFIER)?;
            if self.eat(EcmaTokenKind::Question)? {
                self.tree.set_kind(node, kind::OPTIONAL_PARAMETER);
            }
            if self.at(EcmaTokenKind::Colon) {
                self.annotation(node)?;
                return Ok(self.close(node));
            }
        }
        self.back_to(guess)?;
        let start = self.tok.start;
        if rest {
            self.advance()?;
        }
        let ty = self.ty()?;
        let kind = if rest { kind::REST_TYPE } else { kind::OPTIONAL_TYPE };
        if !self.eat(EcmaTokenKind::Question)? && !rest {
            return Ok(ty);
        }
        let node = self.open_at(kind, start);
        self.add(node, ty, field::NO);
        Ok(self.close(node))
    }

    // --- members of types ---

    /// The members of an interface or an object type.
    pub(super) fn members(&mut self, kind: u16) -> ParseResult<u32> {
        let node = self.begin_with(EcmaTokenKind::Open(b'{'), kind)?;
        self.inside(|parser| {
            while !parser.at(EcmaTokenKind::Close(b'}')) {
                if matches!(parser.tok.kind, EcmaTokenKind::Semicolon | EcmaTokenKind::Comma) {
                    parser.advance()?;
                    continue;
                }
                parser.part(node, field::NO, |parser| parser.deeper(Self::member_of_type))?;
                if !matches!(parser.tok.kind, EcmaTokenKind::Semicolon | EcmaTokenKind::Comma) && !parser.ends() {
                    return Err(UnsupportedSyntax);
                }
            }
            parser.advance()
        })?;
        Ok(self.close(node))
    }

    fn member_of_type(&mut self) -> ParseResult<u32> {
        let (start, first) = (self.tok.start, self.tok.kind);
        match first {
            EcmaTokenKind::Open(b'(') | EcmaTokenKind::Less => {
                let node = self.open(kind::CALL_SIGNATURE);
                self.signature(node)?;
                return Ok(self.close(node));
            }
            EcmaTokenKind::Word(Word::New)
                if matches!(self.peek()?.kind, EcmaTokenKind::Open(b'(') | EcmaTokenKind::Less) =>
            {
                let node = self.begin(kind::CONSTRUCT_SIGNATURE)?;
                self.type_parameters(node)?;
                self.parameters(node)?;
                self.annotation(node)?;
                return Ok(self.close(node));
            }
            EcmaTokenKind::Plus | EcmaTokenKind::Minus => {
                self.advance()?;
                if !self.eat_name("readonly")? || !self.at(EcmaTokenKind::Open(b'[')) {
                    return Err(UnsupportedSyntax);
                }
                return self.index_signature(start, &[]);
            }
            _ => {}
        }
        let mut words = smallvec::SmallVec::<[u32; 2]>::new();
        for (word, kind) in [("readonly", kind::WORD_READONLY), ("get", kind::WORD_GET), ("set", kind::WORD_SET)] {
            if self.at_modifier(word)? {
                let token = self.advance()?;
                words.push(self.word_node(kind, false, token.start, token.end));
            }
        }
        if self.at(EcmaTokenKind::Open(b'[')) && self.opens_index_signature()? {
            return self.index_signature(start, &words);
        }
        let name = self.property_name()?;
        let node = self.open_at(kind::PROPERTY_SIGNATURE, start);
        self.add_all(node, words, field::NO);
        self.add(node, name, field::NAME);
        self.eat(EcmaTokenKind::Question)?;
        if matches!(self.tok.kind, EcmaTokenKind::Open(b'(') | EcmaTokenKind::Less) {
            self.tree.set_kind(node, kind::METHOD_SIGNATURE);
            self.signature(node)?;
        } else {
            self.annotation(node)?;
        }
        Ok(self.close(node))
    }

    /// `[key: K]` or `[K in Keys]`, not the name of a property.
    pub(super) fn opens_index_signature(&mut self) -> ParseResult<bool> {
        self.ahead(|parser| {
            parser.advance()?;
            Ok(parser.at(EcmaTokenKind::Name)
                && matches!(parser.peek()?.kind, EcmaTokenKind::Colon | EcmaTokenKind::Word(Word::In)))
        })
    }

    pub(super) fn index_signature(&mut self, start: u32, words: &[u32]) -> ParseResult<u32> {
        let node = self.open_at(kind::INDEX_SIGNATURE, start);
        self.add_all(node, words.iter().copied(), field::NO);
        self.expect(EcmaTokenKind::Open(b'['))?;
        let clause = self.open(kind::MAPPED_TYPE_CLAUSE);
        let name = self.name(kind::TYPE_IDENTIFIER)?;
        if self.eat_word(Word::In)? {
            self.add(clause, name, field::NAME);
            self.part(clause, field::TYPE, Self::ty)?;
            if self.eat_name("as")? {
                self.part(clause, field::ALIAS, Self::ty)?;
            }
            self.attach(node, clause, field::NO);
        } else {
            self.tree.set_kind(name, kind::IDENTIFIER);
            self.add(node, name, field::NAME);
            self.expect(EcmaTokenKind::Colon)?;
            self.part(node, field::INDEX_TYPE, Self::ty)?;
        }
        self.expect(EcmaTokenKind::Close(b']'))?;
        let annotation = self.open(kind::TYPE_ANNOTATION);
        let how = match self.tok.kind {
            EcmaTokenKind::Question => kind::OPTING_TYPE_ANNOTATION,
            EcmaTokenKind::Minus => kind::OMITTING_TYPE_ANNOTATION,
            EcmaTokenKind::Plus => kind::ADDING_TYPE_ANNOTATION,
            _ => kind::TYPE_ANNOTATION,
        };
        if how != kind::TYPE_ANNOTATION {
            self.tree.set_kind(annotation, how);
            if !self.eat(EcmaTokenKind::Question)? {
                self.advance()?;
                self.expect(EcmaTokenKind::Question)?;
            }
        }
        if self.eat(EcmaTokenKind::Colon)? {
            self.part(annotation, field::NO, Self::ty)?;
            self.attach(node, annotation, field::TYPE);
        }
        Ok(self.close(node))
    }
}
