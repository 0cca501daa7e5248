//! The lexer for JavaScript and TypeScript.
//!
//! The meaning of a token depends on its position. By default `/` is division and `>` is a single token; the parser
//! requests a regular expression, a shift, the rest of a template or the text of an element where the language allows
//! it.

use crate::lang::descent::{self, Lex, Read, Unsure};
use crate::lang::source::{Greater, Source};

pub type Token = descent::Token<Tok>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tok {
    End,
    Name,
    /// `#name`
    Private,
    Word(Word),
    Number,
    Str,
    /// The start of a template; the parser reads its parts.
    Template,
    Open(u8),
    Close(u8),
    Comma,
    Colon,
    Semicolon,
    Dot,
    Ellipsis,
    Question,
    /// `?.`
    Chain,
    Arrow,
    At,
    Assign,
    /// `+=` and similar operators.
    Augmented,
    /// `||=`, `&&=`, `??=`
    Otherwise,
    Bang,
    Tilde,
    /// `++` and `--`
    Step,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Power,
    Less,
    Greater,
    /// `<=`, `>=`
    Compare,
    /// `==`, `!=`, `===`, `!==`
    Equal,
    Shift,
    BitAnd,
    BitOr,
    BitXor,
    And,
    Or,
    Nullish,
}

/// Reserved words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Await,
    Break,
    Case,
    Catch,
    Class,
    Const,
    Continue,
    Debugger,
    Default,
    Delete,
    Do,
    Else,
    Enum,
    Export,
    Extends,
    False,
    Finally,
    For,
    Function,
    If,
    Import,
    In,
    Instanceof,
    New,
    Null,
    Return,
    Super,
    Switch,
    This,
    Throw,
    True,
    Try,
    Typeof,
    Var,
    Void,
    While,
    With,
    Yield,
}

pub struct Lexer<'t> {
    source: Source<'t>,
    at: u32,
    /// Whether there is a line break before the last token.
    pub fresh: bool,
}

#[derive(Clone, Copy)]
pub struct Place {
    at: u32,
    fresh: bool,
}

impl<'t> Lex<'t> for Lexer<'t> {
    type Kind = Tok;
    type Place = Place;

    fn next(&mut self) -> Read<Token> {
        self.fresh = false;
        self.skip(|_, _| ())?;
        self.token()
    }

    fn place(&self) -> Place {
        Place { at: self.at, fresh: self.fresh }
    }

    fn go_back(&mut self, place: Place) -> Read<()> {
        (self.at, self.fresh) = (place.at, place.fresh);
        Ok(())
    }

    fn text(&self) -> &'t str {
        self.source.text
    }
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Read<Lexer<'t>> {
        let (source, at) = Source::new(text)?;
        Ok(Lexer { source, at, fresh: true })
    }

    pub fn byte(&self, at: u32) -> u8 {
        self.source.byte(at)
    }

    pub fn rest(&self, at: u32) -> &'t [u8] {
        self.source.rest(at)
    }

    /// Continues at another offset.
    pub fn jump(&mut self, at: u32) {
        self.at = at;
    }

    /// The `#!` line, if there is one.
    pub fn hash_bang(&mut self) -> Option<(u32, u32)> {
        let start = self.at;
        if !self.rest(start).starts_with(b"#!") {
            return None;
        }
        self.at += self.to_line_end(start);
        Some((start, self.at))
    }

    fn to_line_end(&self, at: u32) -> u32 {
        let rest = self.rest(at);
        memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()) as u32
    }

    /// Whether U+2028 or U+2029 occurs in the text: they end lines too, but hardly any file has them.
    fn has_separator(&self, from: u32, to: u32) -> bool {
        let written = self.source.between(from, to);
        memchr::memchr_iter(0xe2, written).any(|at| matches!(written[at..], [0xe2, 0x80, 0xa8 | 0xa9, ..]))
    }

    /// Skips white space and comments; calls `comment` with the start and end of each comment.
    pub fn skip(&mut self, mut comment: impl FnMut(u32, u32)) -> Read<()> {
        loop {
            let start = self.at;
            match self.byte(start) {
                b' ' | b'\t' | 0x0b | 0x0c => self.at += 1,
                b'\n' | b'\r' => {
                    self.fresh = true;
                    self.at += 1;
                }
                b'/' if self.byte(start + 1) == b'/' => {
                    self.at += self.to_line_end(start);
                    if self.has_separator(start, self.at) {
                        return Err(Unsure);
                    }
                    comment(start, self.at);
                }
                b'/' if self.byte(start + 1) == b'*' => {
                    self.at = self.source.block_comment_end(start)?;
                    self.fresh |= memchr::memchr2(b'\n', b'\r', self.source.between(start, self.at)).is_some();
                    self.fresh |= self.has_separator(start, self.at);
                    comment(start, self.at);
                }
                _ => return Ok(()),
            }
        }
    }

    fn token(&mut self) -> Read<Token> {
        let start = self.at;
        let first = self.byte(start);
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => {
                self.at = self.source.name_end(start, true)?;
                let kind = keyword(self.source.between(start, self.at)).map_or(Tok::Name, Tok::Word);
                return Ok(self.token_of(kind, start));
            }
            b'#' => {
                self.at = self.source.name_end(start + 1, true)?;
                return if self.at == start + 1 { Err(Unsure) } else { Ok(self.token_of(Tok::Private, start)) };
            }
            b'0'..=b'9' => return self.number(start),
            b'.' if self.byte(start + 1).is_ascii_digit() => return self.number(start),
            b'"' | b'\'' => return self.string(start, first),
            0 if self.source.ends_at(start) => return Ok(self.token_of(Tok::End, start)),
            _ => {}
        }
        let (kind, len) = self.operator(first, start)?;
        self.at = start + len;
        Ok(self.token_of(kind, start))
    }

    fn token_of(&self, kind: Tok, start: u32) -> Token {
        Token { kind, start, end: self.at }
    }

    fn operator(&self, first: u8, start: u32) -> Read<(Tok, u32)> {
        let (second, third) = (self.byte(start + 1), self.byte(start + 2));
        Ok(match (first, second, third) {
            (b'(' | b'[' | b'{', _, _) => (Tok::Open(first), 1),
            (b')' | b']' | b'}', _, _) => (Tok::Close(first), 1),
            (b'.', b'.', b'.') => (Tok::Ellipsis, 3),
            (b'=', b'>', _) => (Tok::Arrow, 2),
            (b'=' | b'!', b'=', b'=') => (Tok::Equal, 3),
            (b'=' | b'!', b'=', _) => (Tok::Equal, 2),
            (b'?', b'?', b'=') | (b'|', b'|', b'=') | (b'&', b'&', b'=') => (Tok::Otherwise, 3),
            (b'?', b'?', _) => (Tok::Nullish, 2),
            (b'|', b'|', _) => (Tok::Or, 2),
            (b'&', b'&', _) => (Tok::And, 2),
            (b'?', b'.', b'0'..=b'9') => (Tok::Question, 1),
            (b'?', b'.', _) => (Tok::Chain, 2),
            (b'*', b'*', b'=') | (b'<', b'<', b'=') => (Tok::Augmented, 3),
            (b'*', b'*', _) => (Tok::Power, 2),
            (b'<', b'<', _) => (Tok::Shift, 2),
            (b'<', b'=', _) => (Tok::Compare, 2),
            // An HTML comment.
            (b'<', b'!', b'-') | (b'-', b'-', b'>') => return Err(Unsure),
            (b'+', b'+', _) | (b'-', b'-', _) => (Tok::Step, 2),
            (b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=', _) => (Tok::Augmented, 2),
            _ => {
                let kind = match first {
                    b',' => Tok::Comma,
                    b':' => Tok::Colon,
                    b';' => Tok::Semicolon,
                    b'.' => Tok::Dot,
                    b'?' => Tok::Question,
                    b'@' => Tok::At,
                    b'=' => Tok::Assign,
                    b'!' => Tok::Bang,
                    b'~' => Tok::Tilde,
                    b'+' => Tok::Plus,
                    b'-' => Tok::Minus,
                    b'*' => Tok::Star,
                    b'/' => Tok::Slash,
                    b'%' => Tok::Percent,
                    b'<' => Tok::Less,
                    b'>' => Tok::Greater,
                    b'&' => Tok::BitAnd,
                    b'|' => Tok::BitOr,
                    b'^' => Tok::BitXor,
                    b'`' => Tok::Template,
                    _ => return Err(Unsure),
                };
                (kind, 1)
            }
        })
    }

    /// The operator that `>` begins.
    pub fn greater(&mut self, token: Token) -> Token {
        let (greater, len) = self.source.greater(token.start);
        let kind = match greater {
            Greater::Alone => return token,
            Greater::Compare => Tok::Compare,
            Greater::Shift => Tok::Shift,
            Greater::Augmented => Tok::Augmented,
        };
        self.at = token.start + len;
        self.token_of(kind, token.start)
    }

    fn number(&mut self, start: u32) -> Read<Token> {
        let mut at = start;
        let digits = |mut at: u32| {
            while matches!(self.byte(at), b'0'..=b'9' | b'_') {
                at += 1;
            }
            at
        };
        if self.byte(start) == b'0' && matches!(self.byte(start + 1) | 0x20, b'x' | b'o' | b'b') {
            at += 2;
            while self.byte(at).is_ascii_hexdigit() || self.byte(at) == b'_' {
                at += 1;
            }
        } else {
            at = digits(at);
            if self.byte(at) == b'.' {
                at = digits(at + 1);
            }
            if self.byte(at) | 0x20 == b'e' {
                at += 1;
                if matches!(self.byte(at), b'+' | b'-') {
                    at += 1;
                }
                at = digits(at);
            }
        }
        if self.byte(at) == b'n' {
            at += 1;
        }
        if self.byte(at).is_ascii_alphanumeric() || self.byte(at) >= 0x80 {
            return Err(Unsure);
        }
        self.at = at;
        Ok(self.token_of(Tok::Number, start))
    }

    fn string(&mut self, start: u32, quote: u8) -> Read<Token> {
        self.at = self.source.string_end(start, quote)?;
        Ok(self.token_of(Tok::Str, start))
    }

    /// The end of the regular expression that begins here.
    pub fn regex_end(&self, start: u32) -> Read<u32> {
        let mut at = start + 1;
        let mut class = false;
        loop {
            match self.byte(at) {
                0 | b'\n' | b'\r' => return Err(Unsure),
                b'\\' if matches!(self.byte(at + 1), 0 | b'\n' | b'\r') => return Err(Unsure),
                b'\\' => at += 1,
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => break,
                _ => {}
            }
            at += 1;
        }
        at += 1;
        while self.byte(at).is_ascii_lowercase() {
            at += 1;
        }
        Ok(at)
    }

    /// The end of a name in a tag, which may contain `-`.
    pub fn tag_name_end(&self, mut at: u32) -> u32 {
        while self.byte(at).is_ascii_alphanumeric() || matches!(self.byte(at), b'_' | b'$' | b'-') {
            at += 1;
        }
        at
    }
}

fn keyword(word: &[u8]) -> Option<Word> {
    if !(2..=10).contains(&word.len()) || !word[0].is_ascii_lowercase() {
        return None;
    }
    Some(match word {
        b"await" => Word::Await,
        b"break" => Word::Break,
        b"case" => Word::Case,
        b"catch" => Word::Catch,
        b"class" => Word::Class,
        b"const" => Word::Const,
        b"continue" => Word::Continue,
        b"debugger" => Word::Debugger,
        b"default" => Word::Default,
        b"delete" => Word::Delete,
        b"do" => Word::Do,
        b"else" => Word::Else,
        b"enum" => Word::Enum,
        b"export" => Word::Export,
        b"extends" => Word::Extends,
        b"false" => Word::False,
        b"finally" => Word::Finally,
        b"for" => Word::For,
        b"function" => Word::Function,
        b"if" => Word::If,
        b"import" => Word::Import,
        b"in" => Word::In,
        b"instanceof" => Word::Instanceof,
        b"new" => Word::New,
        b"null" => Word::Null,
        b"return" => Word::Return,
        b"super" => Word::Super,
        b"switch" => Word::Switch,
        b"this" => Word::This,
        b"throw" => Word::Throw,
        b"true" => Word::True,
        b"try" => Word::Try,
        b"typeof" => Word::Typeof,
        b"var" => Word::Var,
        b"void" => Word::Void,
        b"while" => Word::While,
        b"with" => Word::With,
        b"yield" => Word::Yield,
        _ => return None,
    })
}
