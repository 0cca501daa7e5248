//! Parses a query: clauses, patterns and, in `expr`, expressions.

mod expr;

use super::ast::{
    Arrow, CallClause, Clause, CypherExpr, CypherExprKind, CypherName, CypherQuery, EdgePattern, Length, NodePattern,
    Pattern, PatternPart, ProjectionBody, ProjectionItem, QueryMode, Shortest, Sort, Yields,
};
use super::fault::{Fault, FaultClass, Result};
use super::token::{CypherToken, PositionedToken, integer, tokens};
use rustc_hash::FxHashMap;

/// Parses a query. Clauses that write are refused.
pub fn parse(query: &str) -> Result<CypherQuery> {
    let tokens = tokens(query)?;
    let mut parser =
        Parser { query, tokens: &tokens, at: 0, depth: 0, tallest: 0, braces: 0, tried: FxHashMap::default() };
    let parsed = parser.query()?;
    parser.sign(";");
    match parser.peek() {
        CypherToken::End => Ok(parsed),
        _ => Err(parser.unexpected("the end of the query")),
    }
}

/// The deepest nesting of expressions: more than people write, and less than the stack allows.
const DEEPEST: usize = 100;

/// The most operators in a row, as in a long sum.
const TALLEST: usize = 250;

pub(super) struct Parser<'a> {
    query: &'a str,
    tokens: &'a [PositionedToken],
    at: usize,
    depth: usize,
    /// The height of the tallest expression parsed inside the current one.
    tallest: usize,
    /// The number of enclosing inner queries.
    braces: usize,
    /// Patterns that were tried in the place of expressions, by the index of their first token, with the index after
    /// them. `None` if there is no pattern. This avoids exponential time in nested queries.
    tried: FxHashMap<usize, Option<(Pattern, usize)>>,
}

const WRITES: [&str; 9] = ["CREATE", "MERGE", "DELETE", "DETACH", "SET", "REMOVE", "FOREACH", "LOAD", "DROP"];

impl Parser<'_> {
    fn placed(&self) -> &PositionedToken {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> &CypherToken {
        &self.placed().token
    }

    fn ahead(&self, by: usize) -> &CypherToken {
        &self.tokens[(self.at + by).min(self.tokens.len() - 1)].token
    }

    /// The position of the next token.
    fn here(&self) -> usize {
        self.placed().at
    }

    /// The position where the last token ended.
    fn last_end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |i| self.tokens[i].to)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), CypherToken::Sign(s) if *s == sign)
    }

    /// Consumes a sign if it is next.
    fn sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.sign(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn is_word_at(&self, by: usize, word: &str) -> bool {
        matches!(self.ahead(by), CypherToken::Word(w) if w.eq_ignore_ascii_case(word))
    }

    fn is_word(&self, word: &str) -> bool {
        self.is_word_at(0, word)
    }

    /// Consumes a keyword if it is next.
    fn word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    /// Consumes several keywords if all of them are next, or none.
    fn words(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(i, word)| self.is_word_at(i, word));
        self.at += if found { words.len() } else { 0 };
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.word(word) { Ok(()) } else { Err(self.unexpected(word)) }
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let found = match self.peek() {
            CypherToken::End => "the end of the query".to_string(),
            _ => format!("`{}`", &self.query[self.placed().at..self.placed().to]),
        };
        Fault::syntax("UnexpectedSyntax", format!("expected {wanted}, found {found}"), self.here())
    }

    fn is_name(&self) -> bool {
        matches!(self.peek(), CypherToken::Word(_) | CypherToken::Quoted(_))
    }

    fn name(&mut self, what: &str) -> Result<CypherName> {
        let at = self.here();
        let text = match self.peek() {
            CypherToken::Word(text) | CypherToken::Quoted(text) => text.clone(),
            _ => return Err(self.unexpected(what)),
        };
        self.at += 1;
        Ok(CypherName { text, at })
    }

    /// Parses a pattern with at least one relationship. If there is none, nothing is consumed.
    fn try_pattern(&mut self) -> Option<Pattern> {
        let (at, depth) = (self.at, self.depth);
        if !self.tried.contains_key(&at) {
            let found = self.pattern().ok().filter(|p| !p.steps.is_empty()).map(|p| (p, self.at));
            self.tried.insert(at, found);
        }
        self.depth = depth;
        match self.tried.get(&at) {
            Some(Some((pattern, after))) => {
                self.at = *after;
                Some(pattern.clone())
            }
            _ => {
                self.at = at;
                None
            }
        }
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.sign(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }

    fn query(&mut self) -> Result<CypherQuery> {
        let mode = match () {
            () if self.word("EXPLAIN") => QueryMode::Explain,
            () if self.word("PROFILE") => QueryMode::Profile,
            () => QueryMode::Run,
        };
        let first = self.clauses()?;
        let mut unions: Vec<(bool, Vec<Clause>)> = Vec::new();
        loop {
            let at = self.here();
            if !self.word("UNION") {
                return Ok(CypherQuery { mode, first, unions });
            }
            let all = self.word("ALL");
            if unions.first().is_some_and(|(first, _)| *first != all) {
                return Err(Fault::syntax("InvalidClauseComposition", "UNION and UNION ALL cannot be mixed", at));
            }
            unions.push((all, self.clauses()?));
        }
    }

    fn clauses(&mut self) -> Result<Vec<Clause>> {
        let mut all = Vec::new();
        while let Some(clause) = self.clause()? {
            all.push(clause);
        }
        if all.is_empty() { Err(self.unexpected("MATCH, UNWIND, WITH, CALL or RETURN")) } else { Ok(all) }
    }

    fn clause(&mut self) -> Result<Option<Clause>> {
        let at = self.here();
        if let Some(write) = WRITES.iter().find(|w| self.is_word(w)) {
            if self.braces > 0 {
                let message = format!("{write} cannot stand in an inner query");
                return Err(Fault::syntax("InvalidClauseComposition", message, at));
            }
            let message = format!("{write} writes, and queries only read");
            return Err(Fault { class: FaultClass::ReadOnly, detail: "ReadOnly", message, at });
        }
        let optional = self.words(&["OPTIONAL", "MATCH"]);
        if optional || self.word("MATCH") {
            let patterns = self.list(Self::pattern_part)?;
            let filter = self.filter()?;
            return Ok(Some(Clause::Match { optional, patterns, filter, at }));
        }
        if self.word("UNWIND") {
            let list = self.expr()?;
            self.expect_word("AS")?;
            return Ok(Some(Clause::Unwind { list, name: self.name("a name for the elements")? }));
        }
        if self.word("WITH") {
            let projection = self.projection(at)?;
            return Ok(Some(Clause::With { projection, filter: self.filter()? }));
        }
        if self.word("RETURN") {
            return Ok(Some(Clause::Return(self.projection(at)?)));
        }
        if self.word("CALL") { Ok(Some(Clause::Call(self.call()?))) } else { Ok(None) }
    }

    fn filter(&mut self) -> Result<Option<CypherExpr>> {
        if self.word("WHERE") { self.expr().map(Some) } else { Ok(None) }
    }

    fn projection(&mut self, at: usize) -> Result<ProjectionBody> {
        let distinct = self.word("DISTINCT");
        let star = self.sign("*");
        let items = if !star || self.sign(",") { self.list(Self::item)? } else { vec![] };
        let order = if self.words(&["ORDER", "BY"]) { self.list(Self::sort)? } else { vec![] };
        let skip = if self.word("SKIP") || self.word("OFFSET") { Some(self.expr()?) } else { None };
        let limit = if self.word("LIMIT") { Some(self.expr()?) } else { None };
        Ok(ProjectionBody { distinct, star, items, order, skip, limit, at })
    }

    fn item(&mut self) -> Result<ProjectionItem> {
        let start = self.here();
        let expr = self.expr()?;
        let text = self.query[start..self.last_end()].to_string();
        let alias = if self.word("AS") { Some(self.name("a name")?) } else { None };
        Ok(ProjectionItem { expr, alias, text })
    }

    fn sort(&mut self) -> Result<Sort> {
        let expr = self.expr()?;
        let descending = self.word("DESC") || self.word("DESCENDING");
        if !descending {
            let _ = self.word("ASC") || self.word("ASCENDING");
        }
        Ok(Sort { expr, descending })
    }

    fn call(&mut self) -> Result<CallClause> {
        if self.is_sign("{") {
            let message = "CALL calls procedures; for inner queries there are exists { … }, count { … } and WITH";
            return Err(Fault::syntax("UnexpectedSyntax", message, self.here()));
        }
        let mut procedure = self.name("the name of a procedure")?;
        while self.sign(".") {
            procedure.text += &format!(".{}", self.name("the name of a procedure")?.text);
        }
        let arguments = if self.sign("(") {
            let all = if self.is_sign(")") { vec![] } else { self.list(Self::expr)? };
            self.expect(")")?;
            Some(all)
        } else {
            None
        };
        let yields = match () {
            () if !self.word("YIELD") => Yields::Unspecified,
            () if self.sign("*") => Yields::All,
            () if self.sign("-") => Yields::These(vec![]),
            () => Yields::These(self.list(|p| {
                let column = p.name("a column")?;
                let alias = if p.word("AS") { p.name("a name")? } else { column.clone() };
                Ok((column, alias))
            })?),
        };
        let filter = if yields == Yields::Unspecified { None } else { self.filter()? };
        Ok(CallClause { procedure, arguments, yields, filter })
    }

    pub(super) fn pattern_part(&mut self) -> Result<PatternPart> {
        let named = self.is_name() && matches!(self.ahead(1), CypherToken::Sign("="));
        let name = if named { Some(self.name("a name")?) } else { None };
        if named {
            self.at += 1;
        }
        if let Some(shortest) = self.shortest_word() {
            self.at += 1;
            self.expect("(")?;
            let pattern = self.pattern()?;
            self.expect(")")?;
            return Ok(PatternPart { name, shortest: Some(shortest), pattern });
        }
        let pattern = self.pattern()?;
        Ok(PatternPart { name, shortest: None, pattern })
    }

    /// Whether `shortestPath(` or `allShortestPaths(` is next.
    fn shortest_word(&self) -> Option<Shortest> {
        let called = matches!(self.ahead(1), CypherToken::Sign("("));
        match () {
            () if called && self.is_word("shortestPath") => Some(Shortest::One),
            () if called && self.is_word("allShortestPaths") => Some(Shortest::All),
            () => None,
        }
    }

    pub(super) fn pattern(&mut self) -> Result<Pattern> {
        let at = self.here();
        // A pattern may be enclosed in parentheses.
        if self.is_sign("(") && matches!(self.ahead(1), CypherToken::Sign("(")) {
            self.deeper()?;
            self.at += 1;
            let inner = self.pattern()?;
            self.expect(")")?;
            self.depth -= 1;
            return Ok(inner);
        }
        self.deeper()?;
        let start = self.node()?;
        let mut steps = Vec::new();
        while self.is_sign("-") || self.is_sign("<") && matches!(self.ahead(1), CypherToken::Sign("-")) {
            let edge = self.edge()?;
            steps.push((edge, self.node()?));
        }
        self.depth -= 1;
        Ok(Pattern { start, steps, at })
    }

    fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Fault::syntax("UnexpectedSyntax", "the query is nested too deeply", self.here()));
        }
        Ok(())
    }

    /// Counts one more level of the current expression.
    fn taller(&mut self) -> Result<()> {
        self.tallest += 1;
        if self.tallest > TALLEST {
            let message = "the expression has too many operators in a row; try a list and IN";
            return Err(Fault::syntax("UnexpectedSyntax", message, self.here()));
        }
        Ok(())
    }

    fn node(&mut self) -> Result<NodePattern> {
        let at = self.here();
        self.expect("(")?;
        let name = if self.is_name() { Some(self.name("a name")?) } else { None };
        let mut labels = Vec::new();
        while self.sign(":") {
            labels.push(self.name("a label")?);
        }
        let properties = self.properties()?;
        let instead = match () {
            () if !labels.is_empty() && self.is_sign("|") => {
                Some("one of several labels is written `WHERE n:A OR n:B`")
            }
            () if self.is_word("WHERE") => Some("WHERE stands after the patterns of a MATCH"),
            () => None,
        };
        if let Some(message) = instead {
            return Err(Fault::syntax("UnexpectedSyntax", message, self.here()));
        }
        self.expect(")")?;
        Ok(NodePattern { name, labels, properties, at })
    }

    /// A map, or a parameter in place of one.
    fn properties(&mut self) -> Result<Option<CypherExpr>> {
        let at = self.here();
        match self.peek() {
            CypherToken::Sign("{") => self.atom().map(Some),
            CypherToken::Parameter(name) => {
                let kind = CypherExprKind::Parameter(name.clone());
                self.at += 1;
                Ok(Some(CypherExpr { kind, at }))
            }
            _ => Ok(None),
        }
    }

    fn edge(&mut self) -> Result<EdgePattern> {
        let at = self.here();
        let left = self.sign("<");
        self.expect("-")?;
        let (mut name, mut types, mut length, mut properties) = (None, vec![], None, None);
        if self.sign("[") {
            if self.is_name() {
                name = Some(self.name("a name")?);
            }
            if self.sign(":") {
                types.push(self.name("a type")?);
                while self.sign("|") {
                    self.sign(":");
                    types.push(self.name("a type")?);
                }
            }
            if self.sign("*") {
                length = Some(self.length()?);
            }
            if self.is_sign("..") || length.is_some() && self.is_sign("-") {
                let message = "a length is written `*`, `*2`, `*1..3`, with numbers of 0 or more";
                return Err(Fault::syntax("InvalidRelationshipPattern", message, self.here()));
            }
            properties = self.properties()?;
            self.expect("]")?;
        }
        self.expect("-")?;
        let right = self.sign(">");
        let arrow = match (left, right) {
            (true, false) => Arrow::Left,
            (false, true) => Arrow::Right,
            _ => Arrow::Either,
        };
        Ok(EdgePattern { name, types, arrow, length, properties, at })
    }

    fn length(&mut self) -> Result<Length> {
        let least = self.bound()?;
        if self.sign("..") {
            return Ok(Length { least, most: self.bound()? });
        }
        Ok(Length { least, most: least })
    }

    fn bound(&mut self) -> Result<Option<u64>> {
        let at = self.here();
        let CypherToken::Integer(text) = self.peek() else { return Ok(None) };
        let value = integer(text, false, at)?;
        self.at += 1;
        Ok(u64::try_from(value).ok())
    }
}

#[cfg(test)]
mod tests;
