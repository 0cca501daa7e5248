//! The types of TypeScript.

use super::lex::{Tok, Word};
use super::{Parser, field, kind};
use crate::lang::descent::{Read, Unsure};

impl Parser<'_> {
    /// `: T`, if present.
    pub(super) fn annotation(&mut self, node: u32) -> Read<()> {
        if !self.state.typed || !self.at(Tok::Colon) {
            return Ok(());
        }
        let annotation = self.open(kind::TYPE_ANNOTATION);
        self.advance()?;
        let ty = self.ty()?;
        self.add(annotation, ty, field::NO);
        self.close(annotation);
        self.add(node, annotation, field::TYPE);
        Ok(())
    }

    /// `: T` after parameters, which may also be a type predicate.
    pub(super) fn result(&mut self, node: u32, field: u8) -> Read<()> {
        if !self.state.typed || !self.at(Tok::Colon) {
            return Ok(());
        }
        let annotation = self.open(kind::TYPE_ANNOTATION);
        self.advance()?;
        let ty = self.result_type()?;
        match self.tree.kind(ty) {
            kind::ASSERTS => self.tree.set_kind(annotation, kind::ASSERTS_ANNOTATION),
            kind::TYPE_PREDICATE => self.tree.set_kind(annotation, kind::TYPE_PREDICATE_ANNOTATION),
            _ => {}
        }
        self.add(annotation, ty, field::NO);
        self.close(annotation);
        self.add(node, annotation, field);
        Ok(())
    }

    fn result_type(&mut self) -> Read<u32> {
        if self.at_name("asserts") && matches!(self.peek()?.kind, Tok::Name | Tok::Word(Word::This)) {
            let node = self.open(kind::ASSERTS);
            self.advance()?;
            let what = self.predicate()?;
            self.add(node, what, field::NO);
            return Ok(self.close(node));
        }
        if matches!(self.tok.kind, Tok::Name | Tok::Word(Word::This)) {
            let (next, fresh) = self.look()?;
            if next.kind == Tok::Name && !fresh && self.text(next) == "is" {
                return self.predicate();
            }
        }
        self.ty()
    }

    /// `name is T`, or the name alone.
    fn predicate(&mut self) -> Read<u32> {
        let name = match self.tok.kind {
            Tok::Name => self.leaf(kind::IDENTIFIER)?,
            _ => self.leaf(kind::THIS)?,
        };
        if !self.at_name("is") || self.lex.fresh {
            return Ok(name);
        }
        let node = self.around(kind::TYPE_PREDICATE, name, field::NAME);
        self.advance()?;
        let ty = self.ty()?;
        self.add(node, ty, field::TYPE);
        Ok(self.close(node))
    }

    pub(super) fn type_parameters(&mut self, node: u32) -> Read<()> {
        if !self.state.typed || !self.at(Tok::Less) {
            return Ok(());
        }
        let parameters = self.open(kind::TYPE_PARAMETERS);
        self.advance()?;
        self.inside(|parser| {
            while !parser.at(Tok::Greater) {
                let parameter = parser.type_parameter()?;
                parser.add(parameters, parameter, field::NO);
                if !parser.eat(Tok::Comma)? && !parser.at(Tok::Greater) {
                    return Err(Unsure);
                }
            }
            parser.advance()
        })?;
        self.close(parameters);
        self.add(node, parameters, field::TYPE_PARAMETERS);
        Ok(())
    }

    fn type_parameter(&mut self) -> Read<u32> {
        let node = self.open(kind::TYPE_PARAMETER);
        // `const`, `in` and `out` are skipped: they do not affect the type.
        self.eat_word(Word::Const)?;
        self.eat_word(Word::In)?;
        if self.at_modifier("out")? {
            self.advance()?;
        }
        if !self.at(Tok::Name) {
            return Err(Unsure);
        }
        let name = self.leaf(kind::TYPE_IDENTIFIER)?;
        self.add(node, name, field::NAME);
        for (sign, kind, field) in [
            (Tok::Word(Word::Extends), kind::CONSTRAINT, field::CONSTRAINT),
            (Tok::Assign, kind::DEFAULT_TYPE, field::VALUE),
        ] {
            if self.at(sign) {
                let part = self.open(kind);
                self.advance()?;
                let ty = self.ty()?;
                self.add(part, ty, field::NO);
                self.close(part);
                self.add(node, part, field);
            }
        }
        Ok(self.close(node))
    }

    pub(super) fn type_arguments(&mut self) -> Read<u32> {
        let node = self.open(kind::TYPE_ARGUMENTS);
        self.expect(Tok::Less)?;
        self.inside(|parser| parser.types(node, field::NO))?;
        self.expect(Tok::Greater)?;
        Ok(self.close(node))
    }

    /// `<…>` after a value, if it contains types: `<` may also be a comparison.
    pub(super) fn guess_type_arguments(&mut self) -> Read<Option<u32>> {
        let guess = self.guess();
        if let Ok(types) = self.deeper(Self::type_arguments) {
            let compares = matches!(
                self.tok.kind,
                Tok::Name
                    | Tok::Private
                    | Tok::Number
                    | Tok::Str
                    | Tok::Word(_)
                    | Tok::Plus
                    | Tok::Minus
                    | Tok::Open(b'[')
            );
            if !compares || self.lex.fresh {
                return Ok(Some(types));
            }
        }
        self.go_back(guess)?;
        Ok(None)
    }

    /// Types separated by commas, with an optional trailing comma.
    pub(super) fn types(&mut self, node: u32, field: u8) -> Read<()> {
        loop {
            let ty = self.ty()?;
            self.add(node, ty, field);
            if !self.eat(Tok::Comma)? || self.at(Tok::Greater) {
                return Ok(());
            }
        }
    }

    pub(super) fn ty(&mut self) -> Read<u32> {
        self.deeper(Self::whole_type)
    }

    fn whole_type(&mut self) -> Read<u32> {
        if let Some(function) = self.function_type()? {
            return Ok(function);
        }
        let left = self.union()?;
        if !self.at_word(Word::Extends) || self.lex.fresh || self.state.no_conditional {
            return Ok(left);
        }
        let node = self.around(kind::CONDITIONAL_TYPE, left, field::LEFT);
        self.advance()?;
        let right = self.with_mode(|mode| mode.no_conditional = true, Self::ty)?;
        self.add(node, right, field::RIGHT);
        self.expect(Tok::Question)?;
        let yes = self.with_mode(|mode| mode.no_conditional = false, Self::ty)?;
        self.add(node, yes, field::CONSEQUENCE);
        self.expect(Tok::Colon)?;
        let no = self.with_mode(|mode| mode.no_conditional = false, Self::ty)?;
        self.add(node, no, field::ALTERNATIVE);
        Ok(self.close(node))
    }

    /// `(…) => T`, `<T>(…) => U`, `new (…) => T`; `None` for anything else.
    fn function_type(&mut self) -> Read<Option<u32>> {
        let first = self.tok.kind;
        let node = match first {
            Tok::Open(b'(') => {
                if !self.opens_parameters()? {
                    return Ok(None);
                }
                self.open(kind::FUNCTION_TYPE)
            }
            Tok::Less => self.open(kind::FUNCTION_TYPE),
            Tok::Word(Word::New) => self.open(kind::CONSTRUCTOR_TYPE),
            Tok::Name if self.at_name("abstract") && self.before(Tok::Word(Word::New))? => {
                let node = self.open(kind::CONSTRUCTOR_TYPE);
                self.advance()?;
                node
            }
            _ => return Ok(None),
        };
        let constructs = self.tree.kind(node) == kind::CONSTRUCTOR_TYPE;
        if constructs {
            self.advance()?;
        }
        self.type_parameters(node)?;
        self.parameters(node)?;
        self.expect(Tok::Arrow)?;
        let result = if constructs { self.ty()? } else { self.result_type()? };
        self.add(node, result, if constructs { field::TYPE } else { field::RETURN_TYPE });
        Ok(Some(self.close(node)))
    }

    /// Whether `(` opens parameters, not a type in parentheses: decided by the following tokens, as in compilers.
    fn opens_parameters(&mut self) -> Read<bool> {
        let guess = self.guess();
        self.advance()?;
        let opens = match self.tok.kind {
            Tok::Close(b')') | Tok::Ellipsis => true,
            Tok::Word(Word::This) => {
                self.advance()?;
                self.was_parameter()?
            }
            Tok::Name | Tok::Open(b'{' | b'[') => self.pattern().is_ok() && self.was_parameter()?,
            _ => false,
        };
        self.go_back(guess)?;
        Ok(opens)
    }

    /// Whether the next token can follow a parameter but not a type.
    fn was_parameter(&mut self) -> Read<bool> {
        Ok(match self.tok.kind {
            Tok::Colon | Tok::Comma | Tok::Question | Tok::Assign => true,
            Tok::Close(b')') => self.peek()?.kind == Tok::Arrow,
            _ => false,
        })
    }

    fn union(&mut self) -> Read<u32> {
        self.combined(Tok::BitOr, kind::UNION_TYPE, Self::intersection)
    }

    fn intersection(&mut self) -> Read<u32> {
        self.combined(Tok::BitAnd, kind::INTERSECTION_TYPE, Self::operator_type)
    }

    /// Types separated by an operator, with an optional one before the first.
    fn combined(&mut self, sign: Tok, kind: u16, part: fn(&mut Self) -> Read<u32>) -> Read<u32> {
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

    fn operator_type(&mut self) -> Read<u32> {
        let kind = match self.tok.kind {
            Tok::Name => match self.text(self.tok) {
                "keyof" => kind::INDEX_TYPE_QUERY,
                "readonly" => kind::READONLY_TYPE,
                "infer" => kind::INFER_TYPE,
                "unique" => kind::PREDEFINED_TYPE,
                _ => return self.postfix_type(),
            },
            _ => return self.postfix_type(),
        };
        let (next, fresh) = self.look()?;
        let follows = matches!(next.kind, Tok::Name | Tok::Word(_) | Tok::Open(_) | Tok::Str | Tok::Template);
        if !follows {
            return self.postfix_type();
        }
        if fresh {
            return Err(Unsure);
        }
        let node = self.open(kind);
        self.advance()?;
        match kind {
            kind::PREDEFINED_TYPE => {
                if !self.eat_name("symbol")? {
                    return Err(Unsure);
                }
            }
            kind::INFER_TYPE => {
                if !self.at(Tok::Name) {
                    return Err(Unsure);
                }
                let name = self.leaf(kind::TYPE_IDENTIFIER)?;
                self.add(node, name, field::NO);
                self.infer_constraint(node)?;
            }
            _ => {
                let of = self.deeper(Self::operator_type)?;
                self.add(node, of, field::NO);
            }
        }
        Ok(self.close(node))
    }

    /// `extends T` after an inferred type, unless it begins a conditional type.
    fn infer_constraint(&mut self, node: u32) -> Read<()> {
        if !self.at_word(Word::Extends) {
            return Ok(());
        }
        let guess = self.guess();
        self.advance()?;
        let constraint = self.with_mode(|mode| mode.no_conditional = true, Self::ty);
        match constraint {
            Ok(constraint) if self.state.no_conditional || !self.at(Tok::Question) => {
                self.add(node, constraint, field::NO);
                Ok(())
            }
            _ => self.go_back(guess),
        }
    }

    /// A type followed by `[]` or `[K]`.
    fn postfix_type(&mut self) -> Read<u32> {
        let mut ty = self.simple_type()?;
        while self.at(Tok::Open(b'[')) && !self.lex.fresh {
            let node = self.around(kind::ARRAY_TYPE, ty, field::NO);
            self.advance()?;
            if !self.at(Tok::Close(b']')) {
                self.tree.set_kind(node, kind::LOOKUP_TYPE);
                let key = self.inside(Self::ty)?;
                self.add(node, key, field::NO);
            }
            self.expect(Tok::Close(b']'))?;
            ty = self.close(node);
        }
        Ok(ty)
    }

    fn simple_type(&mut self) -> Read<u32> {
        match self.tok.kind {
            Tok::Name => self.named_type(),
            Tok::Str | Tok::Number | Tok::Word(Word::True | Word::False | Word::Null) => self.leaf(kind::LITERAL_TYPE),
            Tok::Minus => {
                let node = self.open(kind::LITERAL_TYPE);
                self.advance()?;
                self.expect(Tok::Number)?;
                Ok(self.close(node))
            }
            Tok::Template => self.template_of(kind::TEMPLATE_LITERAL_TYPE, kind::TEMPLATE_TYPE, Self::ty),
            Tok::Word(Word::Void) => self.leaf(kind::PREDEFINED_TYPE),
            Tok::Word(Word::This) => self.leaf(kind::THIS_TYPE),
            Tok::Word(Word::Typeof) => self.type_query(),
            Tok::Word(Word::Import) => {
                let mut node = self.import_expression()?;
                while self.at(Tok::Dot) {
                    node = self.member(node)?;
                }
                self.with_arguments(node)
            }
            Tok::Open(b'(') => {
                let node = self.open(kind::PARENTHESIZED_TYPE);
                self.advance()?;
                let inner = self.inside(Self::ty)?;
                self.add(node, inner, field::NO);
                self.expect(Tok::Close(b')'))?;
                Ok(self.close(node))
            }
            Tok::Open(b'[') => self.tuple(),
            Tok::Open(b'{') => self.members(kind::OBJECT_TYPE),
            _ => Err(Unsure),
        }
    }

    fn named_type(&mut self) -> Read<u32> {
        let name = self.text(self.tok);
        let known = match name {
            "any" | "number" | "boolean" | "string" | "symbol" | "object" | "unknown" | "never" => {
                Some(kind::PREDEFINED_TYPE)
            }
            "undefined" => Some(kind::LITERAL_TYPE),
            _ => None,
        };
        let node = self.leaf(known.unwrap_or(kind::TYPE_IDENTIFIER))?;
        if self.at(Tok::Dot) {
            self.tree.set_kind(node, kind::NESTED_TYPE_IDENTIFIER);
            while self.eat(Tok::Dot)? {
                if !matches!(self.tok.kind, Tok::Name | Tok::Word(_)) {
                    return Err(Unsure);
                }
                self.advance()?;
            }
            self.close(node);
        } else if known.is_some() {
            return Ok(node);
        }
        self.with_arguments(node)
    }

    /// A named type with its type arguments.
    fn with_arguments(&mut self, name: u32) -> Read<u32> {
        if !self.at(Tok::Less) || self.lex.fresh {
            return Ok(name);
        }
        let generic = self.around(kind::GENERIC_TYPE, name, field::NAME);
        let arguments = self.type_arguments()?;
        self.add(generic, arguments, field::TYPE_ARGUMENTS);
        Ok(self.close(generic))
    }

    /// `typeof a.b`
    fn type_query(&mut self) -> Read<u32> {
        let node = self.open(kind::TYPE_QUERY);
        self.advance()?;
        let mut value = match self.tok.kind {
            Tok::Name => self.leaf(kind::IDENTIFIER)?,
            Tok::Word(Word::This) => self.leaf(kind::THIS)?,
            Tok::Word(Word::Import) => self.import_expression()?,
            _ => return Err(Unsure),
        };
        while self.at(Tok::Dot) {
            value = self.member(value)?;
        }
        if self.at(Tok::Less) && !self.lex.fresh {
            let with = self.around(kind::INSTANTIATION_EXPRESSION, value, field::NO);
            let arguments = self.type_arguments()?;
            self.add(with, arguments, field::TYPE_ARGUMENTS);
            value = self.close(with);
        }
        self.add(node, value, field::NO);
        Ok(self.close(node))
    }

    fn tuple(&mut self) -> Read<u32> {
        let node = self.open(kind::TUPLE_TYPE);
        self.advance()?;
        self.inside(|parser| {
            while !parser.at(Tok::Close(b']')) {
                let part = parser.tuple_part()?;
                parser.add(node, part, field::NO);
                if !parser.eat(Tok::Comma)? && !parser.at(Tok::Close(b']')) {
                    return Err(Unsure);
                }
            }
            parser.advance()
        })?;
        Ok(self.close(node))
    }

    /// An element of a tuple: a type, optionally named, optional or rest.
    fn tuple_part(&mut self) -> Read<u32> {
        let guess = self.guess();
        let node = self.open(kind::REQUIRED_PARAMETER);
        let rest = self.eat(Tok::Ellipsis)?;
        if self.at(Tok::Name) && matches!(self.peek()?.kind, Tok::Colon | Tok::Question) {
            let name = self.leaf(kind::IDENTIFIER)?;
            self.add(node, name, field::NAME);
            if self.eat(Tok::Question)? {
                self.tree.set_kind(node, kind::OPTIONAL_PARAMETER);
            }
            if self.at(Tok::Colon) {
                self.annotation(node)?;
                return Ok(self.close(node));
            }
        }
        self.go_back(guess)?;
        let start = self.tok.start;
        if rest {
            self.advance()?;
        }
        let ty = self.ty()?;
        let kind = if rest { kind::REST_TYPE } else { kind::OPTIONAL_TYPE };
        if !self.eat(Tok::Question)? && !rest {
            return Ok(ty);
        }
        let node = self.open_at(kind, start);
        self.add(node, ty, field::NO);
        Ok(self.close(node))
    }

    // --- members of types ---

    /// The members of an interface or an object type.
    pub(super) fn members(&mut self, kind: u16) -> Read<u32> {
        let node = self.open(kind);
        self.expect(Tok::Open(b'{'))?;
        self.inside(|parser| {
            while !parser.at(Tok::Close(b'}')) {
                if matches!(parser.tok.kind, Tok::Semicolon | Tok::Comma) {
                    parser.advance()?;
                    continue;
                }
                let member = parser.deeper(Self::member_of_type)?;
                parser.add(node, member, field::NO);
                if !matches!(parser.tok.kind, Tok::Semicolon | Tok::Comma) && !parser.ends() {
                    return Err(Unsure);
                }
            }
            parser.advance()
        })?;
        Ok(self.close(node))
    }

    fn member_of_type(&mut self) -> Read<u32> {
        let (start, first) = (self.tok.start, self.tok.kind);
        match first {
            Tok::Open(b'(') | Tok::Less => {
                let node = self.open(kind::CALL_SIGNATURE);
                self.signature(node)?;
                return Ok(self.close(node));
            }
            Tok::Word(Word::New) if matches!(self.peek()?.kind, Tok::Open(b'(') | Tok::Less) => {
                let node = self.open(kind::CONSTRUCT_SIGNATURE);
                self.advance()?;
                self.type_parameters(node)?;
                self.parameters(node)?;
                self.annotation(node)?;
                return Ok(self.close(node));
            }
            Tok::Plus | Tok::Minus => {
                self.advance()?;
                if !self.eat_name("readonly")? || !self.at(Tok::Open(b'[')) {
                    return Err(Unsure);
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
        if self.at(Tok::Open(b'[')) && self.opens_index_signature()? {
            return self.index_signature(start, &words);
        }
        let name = self.property_name()?;
        let node = self.open_at(kind::PROPERTY_SIGNATURE, start);
        for word in words {
            self.add(node, word, field::NO);
        }
        self.add(node, name, field::NAME);
        self.eat(Tok::Question)?;
        if matches!(self.tok.kind, Tok::Open(b'(') | Tok::Less) {
            self.tree.set_kind(node, kind::METHOD_SIGNATURE);
            self.signature(node)?;
        } else {
            self.annotation(node)?;
        }
        Ok(self.close(node))
    }

    /// `[key: K]` or `[K in Keys]`, not the name of a property.
    pub(super) fn opens_index_signature(&mut self) -> Read<bool> {
        let guess = self.guess();
        self.advance()?;
        let opens = self.at(Tok::Name) && matches!(self.peek()?.kind, Tok::Colon | Tok::Word(Word::In));
        self.go_back(guess)?;
        Ok(opens)
    }

    pub(super) fn index_signature(&mut self, start: u32, words: &[u32]) -> Read<u32> {
        let node = self.open_at(kind::INDEX_SIGNATURE, start);
        for word in words {
            self.add(node, *word, field::NO);
        }
        self.expect(Tok::Open(b'['))?;
        let clause = self.open(kind::MAPPED_TYPE_CLAUSE);
        if !self.at(Tok::Name) {
            return Err(Unsure);
        }
        let name = self.leaf(kind::TYPE_IDENTIFIER)?;
        if self.eat_word(Word::In)? {
            self.add(clause, name, field::NAME);
            let over = self.ty()?;
            self.add(clause, over, field::TYPE);
            if self.eat_name("as")? {
                let alias = self.ty()?;
                self.add(clause, alias, field::ALIAS);
            }
            self.close(clause);
            self.add(node, clause, field::NO);
        } else {
            self.tree.set_kind(name, kind::IDENTIFIER);
            self.add(node, name, field::NAME);
            self.expect(Tok::Colon)?;
            let over = self.ty()?;
            self.add(node, over, field::INDEX_TYPE);
        }
        self.expect(Tok::Close(b']'))?;
        let annotation = self.open(kind::TYPE_ANNOTATION);
        let how = match self.tok.kind {
            Tok::Question => kind::OPTING_TYPE_ANNOTATION,
            Tok::Minus => kind::OMITTING_TYPE_ANNOTATION,
            Tok::Plus => kind::ADDING_TYPE_ANNOTATION,
            _ => kind::TYPE_ANNOTATION,
        };
        if how != kind::TYPE_ANNOTATION {
            self.tree.set_kind(annotation, how);
            if !self.eat(Tok::Question)? {
                self.advance()?;
                self.expect(Tok::Question)?;
            }
        }
        if self.eat(Tok::Colon)? {
            let ty = self.ty()?;
            self.add(annotation, ty, field::NO);
            self.close(annotation);
            self.add(node, annotation, field::TYPE);
        }
        Ok(self.close(node))
    }
}
