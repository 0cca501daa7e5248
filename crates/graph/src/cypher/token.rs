//! Splits a query into words, numbers, texts and signs, each with its position.

use super::fault::{Fault, Result};

#[derive(Clone, Debug, PartialEq)]
pub enum CypherToken {
    /// A word as written, which may be a keyword.
    Word(String),
    /// A name in backticks, which is never a keyword.
    Quoted(String),
    Text(String),
    /// As written. Whether it fits into 64 bits depends on the sign before it.
    Integer(String),
    Float(f64),
    /// Without its `$`.
    Parameter(String),
    Sign(&'static str),
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PositionedToken {
    pub token: CypherToken,
    pub at: usize,
    /// The position after its last character.
    pub to: usize,
}

/// Longer signs first, so that the longest one matches. The parser combines arrows, because `a <-1` is a comparison.
const SIGNS: [&str; 25] = [
    "<=", ">=", "<>", "=~", "..", "(", ")", "[", "]", "{", "}", ",", ":", ";", ".", "=", "<", ">", "+", "-", "*", "/",
    "%", "^", "|",
];

/// The longest query, in bytes: far more than people and agents write.
pub const LONGEST: usize = 256 * 1024;

pub fn tokens(query: &str) -> Result<Vec<PositionedToken>> {
    if query.len() > LONGEST {
        return Err(Fault::syntax("UnexpectedSyntax", format!("the query is longer than {LONGEST} bytes"), 0));
    }
    let mut lexer = Lexer { query, at: 0 };
    let mut all = Vec::new();
    loop {
        lexer.skip()?;
        let at = lexer.at;
        let token = lexer.next()?;
        let last = token == CypherToken::End;
        all.push(PositionedToken { token, at, to: lexer.at });
        if last {
            return Ok(all);
        }
    }
}

struct Lexer<'a> {
    query: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.query[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Consumes characters as long as they fit.
    fn take(&mut self, fits: impl Fn(char) -> bool) -> String {
        let taken: String = self.rest().chars().take_while(|c| fits(*c)).collect();
        self.at += taken.len();
        taken
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<()> {
        loop {
            self.take(|c| c.is_whitespace() || c == '\u{feff}');
            if self.rest().starts_with("//") {
                self.take(|c| c != '\n' && c != '\r');
            } else if self.rest().starts_with("/*") {
                let Some(end) = self.rest().find("*/") else {
                    return Err(Fault::syntax("UnexpectedSyntax", "a comment does not end", self.at));
                };
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<CypherToken> {
        let at = self.at;
        let Some(c) = self.peek() else { return Ok(CypherToken::End) };
        if is_first(c) {
            return Ok(CypherToken::Word(self.take(is_further)));
        }
        if c == '`' {
            return self.quoted();
        }
        if c == '\'' || c == '"' {
            return self.text(c);
        }
        let second = self.rest().chars().nth(1);
        if c.is_ascii_digit() || c == '.' && second.is_some_and(|d| d.is_ascii_digit()) {
            return self.number();
        }
        if c == '$' {
            self.at += 1;
            return match self.peek() {
                Some('`') => match self.quoted()? {
                    CypherToken::Quoted(name) => Ok(CypherToken::Parameter(name)),
                    other => Ok(other),
                },
                Some(c) if is_further(c) => Ok(CypherToken::Parameter(self.take(is_further))),
                _ => Err(Fault::syntax("UnexpectedSyntax", "a parameter has no name", at)),
            };
        }
        match SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) {
            Some(sign) => {
                self.at += sign.len();
                Ok(CypherToken::Sign(sign))
            }
            None => {
                // Unicode dashes and arrows are not part of the language.
                let detail = if c.is_ascii() { "UnexpectedSyntax" } else { "InvalidUnicodeCharacter" };
                let message = match self.rest() {
                    rest if rest.starts_with("!=") => "`!=` is written `<>`".into(),
                    rest if rest.starts_with("&&") || rest.starts_with('!') => {
                        "AND, OR and NOT are written as words".into()
                    }
                    _ => format!("`{}` is not part of the language", c.escape_debug()),
                };
                Err(Fault::syntax(detail, message, at))
            }
        }
    }

    fn quoted(&mut self) -> Result<CypherToken> {
        let start = self.at;
        self.at += 1;
        let mut name = String::new();
        loop {
            name += &self.take(|c| c != '`');
            if self.peek().is_none() {
                return Err(Fault::syntax("UnexpectedSyntax", "a name in backticks does not end", start));
            }
            self.at += 1;
            // Two backticks are an escaped one.
            if self.peek() != Some('`') {
                return Ok(CypherToken::Quoted(name));
            }
            self.at += 1;
            name.push('`');
        }
    }

    fn text(&mut self, quote: char) -> Result<CypherToken> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            text += &self.take(|c| c != quote && c != '\\');
            let Some(c) = self.peek() else {
                return Err(Fault::syntax("UnexpectedSyntax", "a text does not end", start));
            };
            self.at += 1;
            if c == quote {
                return Ok(CypherToken::Text(text));
            }
            let at = self.at;
            let Some(escaped) = self.peek() else {
                return Err(Fault::syntax("UnexpectedSyntax", "a text does not end", start));
            };
            self.at += escaped.len_utf8();
            text.push(match escaped {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '\\' | '\'' | '"' | '`' => escaped,
                'u' | 'U' => self.unicode(if escaped == 'u' { 4 } else { 8 }, at)?,
                other => {
                    return Err(Fault::syntax(
                        "UnexpectedSyntax",
                        format!("`\\{other}` is not an escape sequence"),
                        at,
                    ));
                }
            });
        }
    }

    fn unicode(&mut self, digits: usize, at: usize) -> Result<char> {
        let code: String = self.rest().chars().take(digits).collect();
        let fault = || Fault::syntax("InvalidUnicodeLiteral", format!("`\\u{code}` is not a character"), at);
        if code.len() != digits || !code.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(fault());
        }
        self.at += digits;
        let first = u32::from_str_radix(&code, 16).map_err(|_| fault())?;
        // Characters beyond U+FFFF are written as two surrogates.
        let full = if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
            let low = self.rest().get(2..6).and_then(|low| u32::from_str_radix(low, 16).ok()).unwrap_or(0);
            if (0xdc00..0xe000).contains(&low) {
                self.at += 6;
                0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00)
            } else {
                first
            }
        } else {
            first
        };
        char::from_u32(full).ok_or_else(fault)
    }

    fn number(&mut self) -> Result<CypherToken> {
        let at = self.at;
        let rest = self.rest();
        let second = rest.as_bytes().get(1).copied();
        if rest.starts_with('0') && second.is_some_and(|c| matches!(c, b'x' | b'X' | b'o' | b'O')) {
            return Ok(CypherToken::Integer(self.take(is_further)));
        }
        let mut digits = self.take(|c| c.is_ascii_digit());
        let mut is_float = false;
        // `1..3` is a range, and `1.x` a property.
        let mut ahead = self.rest().chars();
        if ahead.next() == Some('.') && ahead.next().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
            digits += &format!(".{}", self.take(|c| c.is_ascii_digit()));
            is_float = true;
        }
        let mut ahead = self.rest().chars();
        if ahead.next().is_some_and(|c| c == 'e' || c == 'E') {
            let mut power = ahead.next();
            let sign = power.filter(|c| *c == '-' || *c == '+');
            if sign.is_some() {
                power = ahead.next();
            }
            if power.is_some_and(|c| c.is_ascii_digit()) {
                self.at += 1 + usize::from(sign.is_some());
                digits +=
                    &format!("e{}{}", sign.map(String::from).unwrap_or_default(), self.take(|c| c.is_ascii_digit()));
                is_float = true;
            }
        }
        if self.peek().is_some_and(is_further) {
            // The parser reports a number that is not valid when it uses it.
            return Ok(CypherToken::Integer(format!("{digits}{}", self.take(is_further))));
        }
        if !is_float {
            return Ok(CypherToken::Integer(digits));
        }
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(CypherToken::Float(number)),
            _ => Err(Fault::syntax("FloatingPointOverflow", format!("`{digits}` is too large"), at)),
        }
    }
}

fn is_first(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn is_further(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The value of an integer as written, with the sign before it.
pub fn integer(text: &str, negative: bool, at: usize) -> Result<i64> {
    let (digits, radix) = match text.get(..2) {
        Some("0x" | "0X") => (&text[2..], 16),
        Some("0o" | "0O") => (&text[2..], 8),
        _ => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(Fault::syntax("InvalidNumberLiteral", format!("`{text}` is not a number"), at));
    }
    let value = i128::from_str_radix(digits, radix).ok().map(|n| if negative { -n } else { n });
    let fits = value.and_then(|n| i64::try_from(n).ok());
    fits.ok_or_else(|| Fault::syntax("IntegerOverflow", format!("`{text}` does not fit into 64 bits"), at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(query: &str) -> Vec<CypherToken> {
        tokens(query).unwrap().into_iter().map(|p| p.token).collect()
    }

    #[test]
    fn a_query_is_split_into_tokens() {
        use CypherToken::{End, Float, Integer, Parameter, Quoted, Sign, Text, Word};
        let query = "MATCH (n:`a``b`) // end\n WHERE n.x >= 1.5e3 /* … */ AND 'it\\'s' <> $p RETURN [1..2]";
        let want = [
            Word("MATCH".into()),
            Sign("("),
            Word("n".into()),
            Sign(":"),
            Quoted("a`b".into()),
            Sign(")"),
            Word("WHERE".into()),
            Word("n".into()),
            Sign("."),
            Word("x".into()),
            Sign(">="),
            Float(1500.0),
            Word("AND".into()),
            Text("it's".into()),
            Sign("<>"),
            Parameter("p".into()),
            Word("RETURN".into()),
            Sign("["),
            Integer("1".into()),
            Sign(".."),
            Integer("2".into()),
            Sign("]"),
            End,
        ];
        assert_eq!(all(query), want);
        assert_eq!(
            all(".5 0x1F \"\\u0041\\uD83D\\uDE00\""),
            [Float(0.5), Integer("0x1F".into()), Text("A😀".into()), End]
        );
    }

    #[test]
    fn faults_are_reported_with_their_position() {
        for (query, detail, at) in [
            ("RETURN 9e999", "FloatingPointOverflow", 7),
            ("RETURN 'a", "UnexpectedSyntax", 7),
            ("RETURN '\\uH'", "InvalidUnicodeLiteral", 9),
            ("RETURN a — b", "InvalidUnicodeCharacter", 9),
            ("RETURN `a", "UnexpectedSyntax", 7),
            ("RETURN /* a", "UnexpectedSyntax", 7),
        ] {
            let fault = tokens(query).unwrap_err();
            assert_eq!((fault.detail, fault.at), (detail, at), "{query}");
        }
        assert_eq!(integer("9223372036854775808", true, 0), Ok(i64::MIN));
        assert_eq!(integer("9223372036854775808", false, 0).unwrap_err().detail, "IntegerOverflow");
        assert_eq!(integer("0x8000000000000000", true, 0), Ok(i64::MIN));
        assert_eq!(integer("0o17", false, 0), Ok(15));
        assert_eq!(integer("12abc", false, 0).unwrap_err().detail, "InvalidNumberLiteral");
        assert_eq!(integer("0x", false, 0).unwrap_err().detail, "InvalidNumberLiteral");
        assert_eq!(tokens("a\nbc €").unwrap_err().place("a\nbc €"), (2, 4));
    }
}
