//! Parses expressions, by precedence.

use super::super::ast::{
    ComparisonOperator, CypherExpr, CypherExprKind, CypherName, MapPart, Operator, Pattern, Quantifier, Subquery,
};
use super::super::deep;
use super::super::fault::{Fault, Result};
use super::super::token::{CypherToken, integer};
use super::Parser;

/// The precedence of operators, from the lowest.
const OR: u8 = 1;
const XOR: u8 = 2;
const AND: u8 = 3;
const NOT: u8 = 4;
const COMPARISON: u8 = 5;
const PREDICATE: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const POWER: u8 = 9;

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Result<CypherExpr> {
        self.deeper()?;
        let outer = std::mem::replace(&mut self.tallest, 0);
        let expr = deep(|| self.binary(OR))?;
        self.taller()?;
        self.tallest = self.tallest.max(outer);
        self.depth -= 1;
        Ok(expr)
    }

    /// Parses operators with at least the given precedence. Operators of equal precedence associate to the left.
    fn binary(&mut self, least: u8) -> Result<CypherExpr> {
        let mut left = if least <= NOT && self.is_word("NOT") { self.not()? } else { self.unary()? };
        loop {
            let at = left.at;
            self.taller()?;
            if least <= PREDICATE && self.words(&["IS", "NULL"]) {
                left = CypherExpr { kind: CypherExprKind::IsNull(Box::new(left)), at };
            } else if least <= PREDICATE && self.words(&["IS", "NOT", "NULL"]) {
                left = CypherExpr { kind: CypherExprKind::IsNotNull(Box::new(left)), at };
            } else if least <= COMPARISON && self.comparison().is_some() {
                left = self.compared(left)?;
            } else {
                let Some((operator, strength, words)) = self.operator().filter(|(_, s, _)| *s >= least) else {
                    self.tallest -= 1;
                    return Ok(left);
                };
                self.at += words;
                let right = self.binary(strength + 1)?;
                left = CypherExpr { kind: CypherExprKind::Binary(operator, Box::new(left), Box::new(right)), at };
            }
        }
    }

    fn not(&mut self) -> Result<CypherExpr> {
        let at = self.here();
        self.deeper()?;
        self.at += 1;
        let inner = self.binary(NOT)?;
        self.taller()?;
        self.depth -= 1;
        Ok(CypherExpr { kind: CypherExprKind::Not(Box::new(inner)), at })
    }

    /// The next operator, its precedence, and its number of tokens.
    fn operator(&self) -> Option<(Operator, u8, usize)> {
        let by_sign = |sign: &str| {
            Some(match sign {
                "+" => (Operator::Add, SUM, 1),
                "-" => (Operator::Subtract, SUM, 1),
                "*" => (Operator::Multiply, PRODUCT, 1),
                "/" => (Operator::Divide, PRODUCT, 1),
                "%" => (Operator::Modulo, PRODUCT, 1),
                "^" => (Operator::Power, POWER, 1),
                "=~" => (Operator::Matches, PREDICATE, 1),
                _ => return None,
            })
        };
        match self.peek() {
            CypherToken::Sign(sign) => by_sign(sign),
            CypherToken::Word(_) => match () {
                () if self.is_word("OR") => Some((Operator::Or, OR, 1)),
                () if self.is_word("XOR") => Some((Operator::Xor, XOR, 1)),
                () if self.is_word("AND") => Some((Operator::And, AND, 1)),
                () if self.is_word("IN") => Some((Operator::In, PREDICATE, 1)),
                () if self.is_word("CONTAINS") => Some((Operator::Contains, PREDICATE, 1)),
                () if self.is_word("STARTS") && self.is_word_at(1, "WITH") => {
                    Some((Operator::StartsWith, PREDICATE, 2))
                }
                () if self.is_word("ENDS") && self.is_word_at(1, "WITH") => Some((Operator::EndsWith, PREDICATE, 2)),
                () => None,
            },
            _ => None,
        }
    }

    fn comparison(&self) -> Option<ComparisonOperator> {
        Some(match self.peek() {
            CypherToken::Sign("=") => ComparisonOperator::Equal,
            CypherToken::Sign("<>") => ComparisonOperator::NotEqual,
            CypherToken::Sign("<") => ComparisonOperator::Less,
            CypherToken::Sign("<=") => ComparisonOperator::LessOrEqual,
            CypherToken::Sign(">") => ComparisonOperator::Greater,
            CypherToken::Sign(">=") => ComparisonOperator::GreaterOrEqual,
            _ => return None,
        })
    }

    /// A chain of comparisons is one expression.
    fn compared(&mut self, first: CypherExpr) -> Result<CypherExpr> {
        let mut rest = Vec::new();
        while let Some(comparison) = self.comparison() {
            self.at += 1;
            rest.push((comparison, self.binary(COMPARISON + 1)?));
        }
        let at = first.at;
        Ok(CypherExpr { kind: CypherExprKind::Compare(Box::new(first), rest), at })
    }

    fn unary(&mut self) -> Result<CypherExpr> {
        let at = self.here();
        if self.sign("-") {
            // The smallest integer has no positive counterpart, so its sign is parsed with it.
            if let CypherToken::Integer(text) = self.peek() {
                let value = integer(text, true, at)?;
                self.at += 1;
                return self.postfix(CypherExpr { kind: CypherExprKind::Integer(value), at });
            }
            self.deeper()?;
            let inner = self.unary()?;
            self.taller()?;
            self.depth -= 1;
            return Ok(CypherExpr { kind: CypherExprKind::Negate(Box::new(inner)), at });
        }
        if self.sign("+") {
            self.deeper()?;
            let inner = self.unary()?;
            self.taller()?;
            self.depth -= 1;
            return Ok(CypherExpr { kind: CypherExprKind::Plus(Box::new(inner)), at });
        }
        let atom = self.atom()?;
        self.postfix(atom)
    }

    /// Properties, labels, elements and slices.
    fn postfix(&mut self, mut subject: CypherExpr) -> Result<CypherExpr> {
        loop {
            let at = subject.at;
            self.taller()?;
            let kind = if self.sign(".") {
                CypherExprKind::Property(Box::new(subject), self.name("the name of a property")?)
            } else if self.is_sign(":") && matches!(self.ahead(1), CypherToken::Word(_) | CypherToken::Quoted(_)) {
                let mut labels = Vec::new();
                while self.sign(":") {
                    labels.push(self.name("a label")?);
                }
                CypherExprKind::HasLabels(Box::new(subject), labels)
            } else if self.sign("[") {
                self.element(subject)?
            } else {
                self.tallest -= 1;
                return Ok(subject);
            };
            subject = CypherExpr { kind, at };
        }
    }

    fn element(&mut self, subject: CypherExpr) -> Result<CypherExprKind> {
        let from = if self.is_sign("..") { None } else { Some(Box::new(self.expr()?)) };
        if self.sign("..") {
            let to = if self.is_sign("]") { None } else { Some(Box::new(self.expr()?)) };
            self.expect("]")?;
            return Ok(CypherExprKind::Slice(Box::new(subject), from, to));
        }
        self.expect("]")?;
        let index = from.ok_or_else(|| self.unexpected("an index"))?;
        Ok(CypherExprKind::Index(Box::new(subject), index))
    }

    pub(super) fn atom(&mut self) -> Result<CypherExpr> {
        let at = self.here();
        let kind = match self.peek().clone() {
            CypherToken::Integer(text) => {
                self.at += 1;
                CypherExprKind::Integer(integer(&text, false, at)?)
            }
            CypherToken::Float(number) => {
                self.at += 1;
                CypherExprKind::Float(number)
            }
            CypherToken::Text(text) => {
                self.at += 1;
                CypherExprKind::Text(text)
            }
            CypherToken::Parameter(name) => {
                self.at += 1;
                CypherExprKind::Parameter(name)
            }
            CypherToken::Sign("{") => self.map()?,
            CypherToken::Sign("[") => self.bracket()?,
            CypherToken::Sign("(") => return self.parenthesis(),
            CypherToken::Word(word) => return self.named(&word),
            CypherToken::Quoted(_) => self.variable_or_call()?,
            _ => return Err(self.unexpected("an expression")),
        };
        Ok(CypherExpr { kind, at })
    }

    fn map(&mut self) -> Result<CypherExprKind> {
        self.expect("{")?;
        let mut entries = Vec::new();
        if !self.is_sign("}") {
            entries = self.list(|p| {
                let key = p.name("the name of an entry")?;
                p.expect(":")?;
                Ok((key, p.expr()?))
            })?;
        }
        self.expect("}")?;
        Ok(CypherExprKind::Map(entries))
    }

    /// A list, or a comprehension over a list or a pattern.
    fn bracket(&mut self) -> Result<CypherExprKind> {
        self.expect("[")?;
        if self.is_name() && self.is_word_at(1, "IN") {
            let name = self.name("a name")?;
            self.at += 1;
            let list = Box::new(self.expr()?);
            let filter = self.filter()?.map(Box::new);
            let map = if self.sign("|") { Some(Box::new(self.expr()?)) } else { None };
            self.expect("]")?;
            return Ok(CypherExprKind::ListComprehension { name, list, filter, map });
        }
        if let Some((name, pattern)) = self.pattern_to_map()? {
            let filter = self.filter()?.map(Box::new);
            self.expect("|")?;
            let map = Box::new(self.expr()?);
            self.expect("]")?;
            return Ok(CypherExprKind::PatternComprehension { name, pattern: Box::new(pattern), filter, map });
        }
        let items = if self.is_sign("]") { vec![] } else { self.list(Self::expr)? };
        self.expect("]")?;
        Ok(CypherExprKind::List(items))
    }

    /// The pattern of a comprehension, optionally with a name for its paths.
    fn pattern_to_map(&mut self) -> Result<Option<(Option<CypherName>, Pattern)>> {
        let start = self.at;
        let named = self.is_name() && matches!(self.ahead(1), CypherToken::Sign("="));
        let name = if named { Some(self.name("a name")?) } else { None };
        self.at += usize::from(named);
        match self.try_pattern().filter(|_| self.is_sign("|") || self.is_word("WHERE")) {
            Some(pattern) => Ok(Some((name, pattern))),
            None => {
                self.at = start;
                Ok(None)
            }
        }
    }

    /// A pattern, or an expression in parentheses.
    fn parenthesis(&mut self) -> Result<CypherExpr> {
        let at = self.here();
        if let Some(pattern) = self.try_pattern() {
            return Ok(CypherExpr { kind: CypherExprKind::Pattern(Box::new(pattern)), at });
        }
        self.expect("(")?;
        let inner = self.expr()?;
        self.expect(")")?;
        Ok(inner)
    }

    /// An expression that begins with a word.
    fn named(&mut self, word: &str) -> Result<CypherExpr> {
        let at = self.here();
        let called = matches!(self.ahead(1), CypherToken::Sign("("));
        let braced = matches!(self.ahead(1), CypherToken::Sign("{"));
        let kind = match word.to_ascii_uppercase().as_str() {
            "NULL" if !called => self.literal(CypherExprKind::Null),
            "TRUE" if !called => self.literal(CypherExprKind::Bool(true)),
            "FALSE" if !called => self.literal(CypherExprKind::Bool(false)),
            "CASE" if !called => self.case()?,
            "EXISTS" if braced => CypherExprKind::Exists(Box::new(self.subquery()?)),
            "COLLECT" if braced => {
                let message = "lists are made of patterns with `[(a)--(b) | b]`";
                return Err(Fault::syntax("UnexpectedSyntax", message, at));
            }
            "COUNT" if braced => CypherExprKind::Count(Box::new(self.subquery()?)),
            "COUNT" if called && matches!(self.ahead(2), CypherToken::Sign("*")) => {
                self.at += 3;
                self.expect(")")?;
                CypherExprKind::CountStar
            }
            "ALL" | "ANY" | "NONE" | "SINGLE" if called && self.is_word_at(3, "IN") => self.quantifier(word)?,
            "REDUCE" if called => self.reduce()?,
            _ => match self.shortest_word() {
                Some(shortest) => {
                    self.at += 1;
                    self.expect("(")?;
                    let pattern = self.pattern()?;
                    self.expect(")")?;
                    CypherExprKind::ShortestPath(shortest, Box::new(pattern))
                }
                None => self.variable_or_call()?,
            },
        };
        Ok(CypherExpr { kind, at })
    }

    fn literal(&mut self, kind: CypherExprKind) -> CypherExprKind {
        self.at += 1;
        kind
    }

    fn variable_or_call(&mut self) -> Result<CypherExprKind> {
        let start = self.at;
        let name = self.name("a name")?;
        // A function name may contain dots. Without parentheses, the dots are properties.
        let mut function = name.clone();
        while self.is_sign(".") && matches!(self.ahead(1), CypherToken::Word(_) | CypherToken::Quoted(_)) {
            self.at += 1;
            function.text += &format!(".{}", self.name("a name")?.text);
        }
        if self.sign("(") {
            let distinct = self.word("DISTINCT");
            let arguments = if self.is_sign(")") { vec![] } else { self.list(Self::expr)? };
            self.expect(")")?;
            return Ok(CypherExprKind::Call { function, distinct, arguments });
        }
        self.at = start + 1;
        if self.is_sign("{") {
            return self.map_projection(name);
        }
        Ok(CypherExprKind::Variable(name.text))
    }

    fn map_projection(&mut self, subject: CypherName) -> Result<CypherExprKind> {
        self.expect("{")?;
        let mut parts = Vec::new();
        if !self.is_sign("}") {
            parts = self.list(|p| {
                if p.sign(".") {
                    return if p.sign("*") { Ok(MapPart::All) } else { p.name("a property").map(MapPart::Property) };
                }
                let name = p.name("an entry")?;
                if p.sign(":") { Ok(MapPart::Entry(name, p.expr()?)) } else { Ok(MapPart::Variable(name)) }
            })?;
        }
        self.expect("}")?;
        Ok(CypherExprKind::MapProjection { subject, parts })
    }

    fn case(&mut self) -> Result<CypherExprKind> {
        self.at += 1;
        let subject = if self.is_word("WHEN") { None } else { Some(Box::new(self.expr()?)) };
        let mut branches = Vec::new();
        while self.word("WHEN") {
            let when = self.expr()?;
            self.expect_word("THEN")?;
            branches.push((when, self.expr()?));
        }
        if branches.is_empty() {
            return Err(self.unexpected("WHEN"));
        }
        let otherwise = if self.word("ELSE") { Some(Box::new(self.expr()?)) } else { None };
        self.expect_word("END")?;
        Ok(CypherExprKind::Case { subject, branches, otherwise })
    }

    fn quantifier(&mut self, word: &str) -> Result<CypherExprKind> {
        let quantifier = match word.to_ascii_uppercase().as_str() {
            "ALL" => Quantifier::All,
            "ANY" => Quantifier::Any,
            "NONE" => Quantifier::None,
            _ => Quantifier::Single,
        };
        self.at += 2;
        let name = self.name("a name")?;
        self.expect_word("IN")?;
        let list = Box::new(self.expr()?);
        let filter = self.filter()?.map(Box::new);
        self.expect(")")?;
        Ok(CypherExprKind::Quantifier { quantifier, name, list, filter })
    }

    fn reduce(&mut self) -> Result<CypherExprKind> {
        self.at += 2;
        let sum = self.name("a name")?;
        self.expect("=")?;
        let start = Box::new(self.expr()?);
        self.expect(",")?;
        let name = self.name("a name")?;
        self.expect_word("IN")?;
        let list = Box::new(self.expr()?);
        self.expect("|")?;
        let step = Box::new(self.expr()?);
        self.expect(")")?;
        Ok(CypherExprKind::Reduce { sum, start, name, list, step })
    }

    fn subquery(&mut self) -> Result<Subquery> {
        self.deeper()?;
        self.at += 1;
        self.expect("{")?;
        let named = self.is_name() && matches!(self.ahead(1), CypherToken::Sign("="));
        let whole = !(self.is_sign("(") || named || self.shortest_word().is_some());
        let subquery = if whole {
            self.braces += 1;
            let query = self.query()?;
            self.braces -= 1;
            Subquery::Whole(query)
        } else {
            Subquery::Pattern { patterns: self.list(Self::pattern_part)?, filter: self.filter()? }
        };
        if !self.sign("}") {
            return Err(Fault::syntax("UnexpectedSyntax", "a subquery does not end with `}`", self.here()));
        }
        self.depth -= 1;
        Ok(subquery)
    }
}
