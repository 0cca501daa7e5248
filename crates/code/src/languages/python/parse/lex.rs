//! The lexer for Python, including lines and indentation.

use crate::convert::to_u32;
use crate::lang::descent::lexer::{signs, words};
use crate::lang::descent::source::SourceBytes;
use crate::lang::descent::{self, Lex, ParseResult, UnsupportedSyntax};

pub type PythonToken = descent::SourceToken<PythonTokenKind>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonTokenKind {
    End,
    Newline,
    Indent,
    Dedent,
    Name,
    Number,
    /// A whole string.
    Str,
    /// The start of a string with expressions in it; the parser reads its parts.
    Formatted,
    Open(u8),
    Close(u8),
    Comma,
    Colon,
    Semicolon,
    Dot,
    Ellipsis,
    Arrow,
    At,
    Assign,
    Walrus,
    /// `+=` and similar operators.
    Augmented,
    Bang,
    Plus,
    Minus,
    Tilde,
    Star,
    Power,
    /// `/ // %`
    Times,
    Slash,
    Shift,
    And,
    Or,
    Xor,
    /// `== != < <= > >=`
    Compare,
    Word(Word),
}

words! {
    PythonTokenKind:
    And b"and", As b"as", Assert b"assert", Async b"async", Await b"await", Break b"break", Class b"class",
    Continue b"continue", Def b"def", Del b"del", Elif b"elif", Else b"else", Except b"except", False b"False",
    Finally b"finally", For b"for", From b"from", Global b"global", If b"if", Import b"import", In b"in", Is b"is",
    Lambda b"lambda", None b"None", Nonlocal b"nonlocal", Not b"not", Or b"or", Pass b"pass", Raise b"raise",
    Return b"return", True b"True", Try b"try", While b"while", With b"with", Yield b"yield",
}

signs! {
    PythonTokenKind:
    Ellipsis [b'.', b'.', b'.'], Augmented [b'*', b'*', b'='], Augmented [b'/', b'/', b'='],
    Augmented [b'>', b'>', b'='], Augmented [b'<', b'<', b'='], Power [b'*', b'*'], Times [b'/', b'/'],
    Shift [b'>', b'>'], Shift [b'<', b'<'], Arrow [b'-', b'>'], Walrus [b':', b'='],
    Compare [b'=' | b'!' | b'<' | b'>', b'='],
    Augmented [b'+' | b'-' | b'*' | b'/' | b'%' | b'@' | b'&' | b'|' | b'^', b'='], Comma [b','], Colon [b':'],
    Semicolon [b';'], Dot [b'.'], At [b'@'], Assign [b'='], Bang [b'!'], Plus [b'+'], Minus [b'-'], Tilde [b'~'],
    Star [b'*'], Slash [b'/'], Times [b'%'], And [b'&'], Or [b'|'], Xor [b'^'], Compare [b'<' | b'>'],
}

/// A comment on a separate line.
#[derive(Clone, Copy)]
struct Remark {
    indent: u32,
    end: u32,
}

/// A lexer for Python, which also returns line ends and changes of indentation.
pub struct PythonLexer<'t> {
    source: SourceBytes<'t>,
    bytes: &'t [u8],
    pub at: u32,
    /// Number of open brackets: lines do not end inside of them.
    pub open: u32,
    indents: Vec<u32>,
    /// End of the last line or block, including comments that belong to it.
    pub line_end: u32,
    /// The end of the last token of the line.
    before: u32,
    /// No token of the line has been returned yet.
    fresh: bool,
    state: State,
    remarks: Vec<Remark>,
    /// How many of `remarks` belong to a block that has ended.
    taken: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// In the middle of a line.
    Line,
    /// Before a line with this indentation.
    Between(u32),
}

/// A position of the lexer in a line.
#[derive(Clone, Copy)]
pub struct PythonLexerPosition {
    indents: usize,
    at: u32,
    open: u32,
    before: u32,
    fresh: bool,
    line_end: u32,
}

impl<'t> Lex<'t> for PythonLexer<'t> {
    type Kind = PythonTokenKind;
    /// Valid as long as no block is entered or left.
    type Place = PythonLexerPosition;

    fn next(&mut self) -> ParseResult<PythonToken> {
        if let State::Between(indent) = self.state {
            let current = *self.indents.last().expect("the outermost is never left");
            if indent > current {
                self.indents.push(indent);
                self.state = State::Line;
                return Ok(PythonToken { kind: PythonTokenKind::Indent, start: self.at, end: self.at });
            }
            if indent < current {
                // Comments with the indentation of a block belong to it, up to the first one with less.
                while let Some(remark) = self.remarks.get(self.taken).filter(|remark| remark.indent >= current) {
                    self.line_end = remark.end;
                    self.taken += 1;
                }
                self.indents.pop();
                if self.indents.last().is_none_or(|outer| *outer < indent) {
                    return Err(UnsupportedSyntax);
                }
                return Ok(PythonToken { kind: PythonTokenKind::Dedent, start: self.at, end: self.at });
            }
            self.state = State::Line;
        }
        let token = self.token()?;
        self.fresh = token.kind == PythonTokenKind::Newline;
        self.before = token.end;
        Ok(token)
    }

    fn place(&self) -> PythonLexerPosition {
        PythonLexerPosition {
            indents: self.indents.len(),
            at: self.at,
            open: self.open,
            before: self.before,
            fresh: self.fresh,
            line_end: self.line_end,
        }
    }

    fn back_to(&mut self, place: PythonLexerPosition) -> ParseResult<()> {
        if self.indents.len() != place.indents {
            return Err(UnsupportedSyntax);
        }
        self.state = State::Line;
        (self.at, self.open, self.before) = (place.at, place.open, place.before);
        (self.fresh, self.line_end) = (place.fresh, place.line_end);
        Ok(())
    }

    fn text(&self) -> &'t str {
        self.source.text
    }
}

impl<'t> PythonLexer<'t> {
    pub fn new(text: &'t str) -> ParseResult<PythonLexer<'t>> {
        let (source, at) = SourceBytes::new(text)?;
        let bytes = text.as_bytes();
        let mut lexer = PythonLexer {
            source,
            bytes,
            at,
            open: 0,
            indents: vec![0],
            line_end: 0,
            before: 0,
            fresh: true,
            state: State::Line,
            remarks: vec![],
            taken: 0,
        };
        let indent = lexer.next_line();
        if indent != 0 {
            return Err(UnsupportedSyntax);
        }
        Ok(lexer)
    }

    pub fn byte(&self, at: u32) -> u8 {
        self.source.byte(at)
    }

    /// Continues at another offset on the same line.
    pub fn jump(&mut self, at: u32) {
        (self.at, self.before, self.fresh) = (at, at, false);
    }

    /// Whether only a comment follows on the line.
    pub fn ends_line(&self) -> bool {
        let rest = self.bytes[self.at as usize..].iter().find(|b| !matches!(b, b' ' | b'\t' | b'\r'));
        matches!(rest, None | Some(b'\n' | b'#'))
    }

    /// Whether `>>` follows: then `print` is a statement of Python 2.
    pub fn before_shift(&self) -> bool {
        let rest = &self.bytes[self.at as usize..];
        let spaces = rest.iter().take_while(|b| **b == b' ').count();
        rest[spaces..].starts_with(b">>")
    }

    /// Skips empty lines and comment lines; returns the indentation of the next other line.
    fn next_line(&mut self) -> u32 {
        self.remarks.clear();
        self.taken = 0;
        let mut indent = 0;
        loop {
            match self.byte(self.at) {
                b' ' => indent += 1,
                b'\t' => indent = (indent / 8 + 1) * 8,
                b'\r' | b'\n' | 0x0c => indent = 0,
                b'#' => {
                    let start = self.at as usize;
                    let len = memchr::memchr(b'\n', &self.bytes[start..]).unwrap_or(self.bytes.len() - start);
                    self.at += to_u32(len);
                    self.remarks.push(Remark { indent, end: self.at });
                    indent = 0;
                    continue;
                }
                _ => break,
            }
            self.at += 1;
        }
        if self.at as usize >= self.bytes.len() { 0 } else { indent }
    }

    fn token(&mut self) -> ParseResult<PythonToken> {
        let mut ended = 0;
        loop {
            match self.byte(self.at) {
                b' ' | b'\t' | 0x0c | b'\r' => self.at += 1,
                b'\\' => {
                    self.at += 1;
                    if self.byte(self.at) == b'\r' {
                        self.at += 1;
                    }
                    if self.byte(self.at) != b'\n' {
                        return Err(UnsupportedSyntax);
                    }
                    self.at += 1;
                }
                b'#' => {
                    let rest = &self.bytes[self.at as usize..];
                    let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                    self.at += to_u32(len);
                    ended = self.at;
                }
                b'\n' if self.open > 0 => self.at += 1,
                _ => break,
            }
        }
        let start = self.at;
        let first = self.byte(start);
        if first == b'\n' || start as usize >= self.bytes.len() {
            if self.open > 0 {
                return Err(UnsupportedSyntax);
            }
            if self.fresh {
                return match first {
                    b'\n' => Err(UnsupportedSyntax),
                    _ => Ok(PythonToken { kind: PythonTokenKind::End, start, end: start }),
                };
            }
            self.line_end = self.before.max(ended);
            let indent = self.next_line();
            self.state = State::Between(indent);
            return Ok(PythonToken { kind: PythonTokenKind::Newline, start: self.before, end: self.before });
        }
        let kind = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => return self.word(start),
            b'0'..=b'9' => return self.number(start),
            b'.' if self.byte(start + 1).is_ascii_digit() => return self.number(start),
            b'"' | b'\'' => return self.string(start, start, false),
            b'(' | b'[' | b'{' => {
                self.open += 1;
                self.at += 1;
                return Ok(PythonToken { kind: PythonTokenKind::Open(first), start, end: self.at });
            }
            b')' | b']' | b'}' => {
                self.open = self.open.checked_sub(1).ok_or(UnsupportedSyntax)?;
                self.at += 1;
                return Ok(PythonToken { kind: PythonTokenKind::Close(first), start, end: self.at });
            }
            b'<' if self.byte(start + 1) == b'>' => return Err(UnsupportedSyntax),
            _ => {
                let (kind, len) = sign(self.source.rest(start)).ok_or(UnsupportedSyntax)?;
                self.at = start + len;
                kind
            }
        };
        Ok(PythonToken { kind, start, end: self.at })
    }

    fn word(&mut self, start: u32) -> ParseResult<PythonToken> {
        let at = self.source.name_end(start, false)? as usize;
        let word = &self.bytes[start as usize..at];
        if let Some(b'"' | b'\'') = self.bytes.get(at)
            && word.len() <= 2
        {
            let has = |letter: u8| word.iter().any(|w| w.eq_ignore_ascii_case(&letter));
            if word.iter().all(|w| b"rbuftRBUFT".contains(w)) {
                return self.string(start, to_u32(at), has(b'f') || has(b't'));
            }
        }
        self.at = to_u32(at);
        let kind = keyword(word).map_or(PythonTokenKind::Name, PythonTokenKind::Word);
        Ok(PythonToken { kind, start, end: self.at })
    }

    fn number(&mut self, start: u32) -> ParseResult<PythonToken> {
        let mut at = start;
        let hex = self.byte(start) == b'0' && matches!(self.byte(start + 1) | 0x20, b'x' | b'o' | b'b');
        loop {
            match self.byte(at) {
                b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => {}
                b'.' if !hex => {}
                b'+' | b'-' if !hex && at > start && self.byte(at - 1) | 0x20 == b'e' => {}
                0x80.. => return Err(UnsupportedSyntax),
                _ => break,
            }
            at += 1;
        }
        let digits = &self.bytes[start as usize..at as usize];
        // `1if x else y` is valid Python but rare.
        let plain = |b: &u8| {
            b.is_ascii_digit() || matches!(b | 0x20, b'e' | b'j' | b'l') || matches!(b, b'.' | b'_' | b'+' | b'-')
        };
        if !hex && !digits.iter().all(plain) {
            return Err(UnsupportedSyntax);
        }
        self.at = at;
        Ok(PythonToken { kind: PythonTokenKind::Number, start, end: at })
    }

    /// The quotes at `at`: the byte and their number.
    pub fn quotes(&self, at: u32) -> (u8, u32) {
        let quote = self.byte(at);
        let three = self.byte(at + 1) == quote && self.byte(at + 2) == quote;
        (quote, if three { 3 } else { 1 })
    }

    pub fn closes(&self, at: u32, (quote, count): (u8, u32)) -> bool {
        (0..count).all(|more| self.byte(at + more) == quote)
    }

    fn string(&mut self, start: u32, opening: u32, formatted: bool) -> ParseResult<PythonToken> {
        let quotes = self.quotes(opening);
        let mut at = opening + quotes.1;
        if formatted {
            self.at = at;
            return Ok(PythonToken { kind: PythonTokenKind::Formatted, start, end: at });
        }
        loop {
            let rest = self.bytes.get(at as usize..).ok_or(UnsupportedSyntax)?;
            let ahead = match quotes.1 {
                1 => memchr::memchr3(quotes.0, b'\\', b'\n', rest),
                _ => memchr::memchr2(quotes.0, b'\\', rest),
            };
            at += to_u32(ahead.ok_or(UnsupportedSyntax)?);
            match self.byte(at) {
                b'\\' if self.byte(at + 1) == b'\r' && self.byte(at + 2) == b'\n' => at += 3,
                b'\\' => at += 2,
                b'\n' => return Err(UnsupportedSyntax),
                _ if self.closes(at, quotes) => break,
                _ => at += 1,
            }
        }
        self.at = at + quotes.1;
        Ok(PythonToken { kind: PythonTokenKind::Str, start, end: self.at })
    }
}
