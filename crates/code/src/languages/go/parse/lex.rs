//! The lexer for Go, including implicit semicolons at line ends and the comments between tokens.

use crate::lang::descent::{self, Comments, Lex, Read, Remarks, Unsure};
use crate::lang::source::Source;

pub type Token = descent::Token<Tok>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tok {
    End,
    /// The end of a statement: explicit, or implied by the end of a line.
    Semicolon,
    Name,
    Word(Word),
    Int,
    Float,
    Imaginary,
    Rune,
    Str,
    RawStr,
    Open(u8),
    Close(u8),
    Comma,
    Colon,
    Dot,
    Ellipsis,
    Define,
    Assign,
    /// `+=` and similar operators.
    Augmented,
    /// `++` and `--`
    Step,
    Arrow,
    Bang,
    Tilde,
    Plus,
    Minus,
    Star,
    /// `/ % << >> &^`
    Times,
    BitAnd,
    BitOr,
    BitXor,
    Compare,
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Break,
    Case,
    Chan,
    Const,
    Continue,
    Default,
    Defer,
    Else,
    Fallthrough,
    For,
    Func,
    Go,
    Goto,
    If,
    Import,
    Interface,
    Map,
    Package,
    Range,
    Return,
    Select,
    Struct,
    Switch,
    Type,
    Var,
}

pub struct Lexer<'t> {
    source: Source<'t>,
    at: u32,
    /// End of the last token, if a line break after it ends the statement.
    ends: Option<u32>,
    comments: Comments,
}

#[derive(Clone, Copy)]
pub struct Place {
    at: u32,
    ends: Option<u32>,
    comments: (usize, usize),
}

impl<'t> Lex<'t> for Lexer<'t> {
    type Kind = Tok;
    type Place = Place;

    fn next(&mut self) -> Read<Token> {
        let token = self.token()?;
        self.ends = match token.kind {
            Tok::Name | Tok::Int | Tok::Float | Tok::Imaginary | Tok::Rune | Tok::Str | Tok::RawStr => Some(token.end),
            Tok::Close(_) | Tok::Step => Some(token.end),
            Tok::Word(Word::Break | Word::Continue | Word::Fallthrough | Word::Return) => Some(token.end),
            _ => None,
        };
        Ok(token)
    }

    fn place(&self) -> Place {
        Place { at: self.at, ends: self.ends, comments: self.comments.place() }
    }

    fn go_back(&mut self, place: Place) -> Read<()> {
        (self.at, self.ends) = (place.at, place.ends);
        self.comments.go_back(place.comments);
        Ok(())
    }

    fn text(&self) -> &'t str {
        self.source.text
    }
}

impl<'t> Remarks<'t> for Lexer<'t> {
    fn comments(&mut self) -> &mut Comments {
        &mut self.comments
    }
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Read<Lexer<'t>> {
        let (source, at) = Source::new(text)?;
        Ok(Lexer { source, at, ends: None, comments: Comments::default() })
    }

    pub fn byte(&self, at: u32) -> u8 {
        self.source.byte(at)
    }

    fn rest(&self, at: u32) -> &'t [u8] {
        self.source.rest(at)
    }

    fn token(&mut self) -> Read<Token> {
        loop {
            let start = self.at;
            match self.byte(start) {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    if let Some(end) = self.ends {
                        return Ok(Token { kind: Tok::Semicolon, start: end, end });
                    }
                }
                b'/' if self.byte(start + 1) == b'/' => {
                    self.at = self.source.line_end(start);
                    self.comments.pass(start, self.at);
                }
                b'/' if self.byte(start + 1) == b'*' => {
                    self.at = self.source.block_comment_end(start)?;
                    self.comments.pass(start, self.at);
                    if let Some(end) = self.ends
                        && memchr::memchr(b'\n', self.source.between(start, self.at)).is_some()
                    {
                        return Ok(Token { kind: Tok::Semicolon, start: end, end });
                    }
                }
                _ => break,
            }
        }
        let start = self.at;
        let kind = match self.byte(start) {
            0 if self.source.ends_at(start) => match self.ends {
                Some(end) => return Ok(Token { kind: Tok::Semicolon, start: end, end }),
                None => Tok::End,
            },
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word(start)?,
            b'0'..=b'9' => self.number(start)?,
            b'.' if self.byte(start + 1).is_ascii_digit() => self.number(start)?,
            b'"' => self.string(start, b'"', Tok::Str)?,
            b'\'' => self.string(start, b'\'', Tok::Rune)?,
            b'`' => {
                let len = memchr::memchr(b'`', self.rest(start + 1)).ok_or(Unsure)?;
                self.at = start + 1 + len as u32 + 1;
                Tok::RawStr
            }
            first => {
                let (kind, len) = self.operator(first, start)?;
                self.at = start + len;
                kind
            }
        };
        Ok(Token { kind, start, end: self.at })
    }

    fn operator(&self, first: u8, start: u32) -> Read<(Tok, u32)> {
        let (second, third) = (self.byte(start + 1), self.byte(start + 2));
        Ok(match (first, second, third) {
            (b'(' | b'[' | b'{', _, _) => (Tok::Open(first), 1),
            (b')' | b']' | b'}', _, _) => (Tok::Close(first), 1),
            (b'.', b'.', b'.') => (Tok::Ellipsis, 3),
            (b':', b'=', _) => (Tok::Define, 2),
            (b'<', b'<', b'=') | (b'>', b'>', b'=') | (b'&', b'^', b'=') => (Tok::Augmented, 3),
            (b'<', b'<', _) | (b'>', b'>', _) | (b'&', b'^', _) => (Tok::Times, 2),
            (b'<', b'-', _) => (Tok::Arrow, 2),
            (b'=' | b'!' | b'<' | b'>', b'=', _) => (Tok::Compare, 2),
            (b'&', b'&', _) => (Tok::And, 2),
            (b'|', b'|', _) => (Tok::Or, 2),
            (b'+', b'+', _) | (b'-', b'-', _) => (Tok::Step, 2),
            (b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=', _) => (Tok::Augmented, 2),
            _ => {
                let kind = match first {
                    b';' => Tok::Semicolon,
                    b',' => Tok::Comma,
                    b':' => Tok::Colon,
                    b'.' => Tok::Dot,
                    b'=' => Tok::Assign,
                    b'!' => Tok::Bang,
                    b'~' => Tok::Tilde,
                    b'+' => Tok::Plus,
                    b'-' => Tok::Minus,
                    b'*' => Tok::Star,
                    b'/' | b'%' => Tok::Times,
                    b'<' | b'>' => Tok::Compare,
                    b'&' => Tok::BitAnd,
                    b'|' => Tok::BitOr,
                    b'^' => Tok::BitXor,
                    _ => return Err(Unsure),
                };
                (kind, 1)
            }
        })
    }

    fn word(&mut self, start: u32) -> Read<Tok> {
        self.at = self.source.name_end(start, false)?;
        Ok(keyword(self.source.between(start, self.at)).map_or(Tok::Name, Tok::Word))
    }

    fn number(&mut self, start: u32) -> Read<Tok> {
        let mut at = start;
        let hex = self.byte(start) == b'0' && self.byte(start + 1) | 0x20 == b'x';
        let mut kind = Tok::Int;
        loop {
            match self.byte(at) {
                b'.' => kind = Tok::Float,
                b'p' | b'P' if hex => kind = Tok::Float,
                b'e' | b'E' if !hex => kind = Tok::Float,
                b'+' | b'-'
                    if at > start && matches!((self.byte(at - 1) | 0x20, hex), (b'p', true) | (b'e', false)) => {}
                b'i' => {
                    kind = Tok::Imaginary;
                    at += 1;
                    break;
                }
                b'0'..=b'9' | b'_' => {}
                b'a'..=b'f' | b'A'..=b'F' if hex => {}
                b'x' | b'X' | b'o' | b'O' | b'b' | b'B' if at == start + 1 => {}
                _ => break,
            }
            at += 1;
        }
        if self.byte(at).is_ascii_alphanumeric() || self.byte(at) >= 0x80 {
            return Err(Unsure);
        }
        self.at = at;
        Ok(kind)
    }

    fn string(&mut self, start: u32, quote: u8, kind: Tok) -> Read<Tok> {
        self.at = self.source.string_end(start, quote)?;
        Ok(kind)
    }
}

fn keyword(word: &[u8]) -> Option<Word> {
    Some(match word {
        b"break" => Word::Break,
        b"case" => Word::Case,
        b"chan" => Word::Chan,
        b"const" => Word::Const,
        b"continue" => Word::Continue,
        b"default" => Word::Default,
        b"defer" => Word::Defer,
        b"else" => Word::Else,
        b"fallthrough" => Word::Fallthrough,
        b"for" => Word::For,
        b"func" => Word::Func,
        b"go" => Word::Go,
        b"goto" => Word::Goto,
        b"if" => Word::If,
        b"import" => Word::Import,
        b"interface" => Word::Interface,
        b"map" => Word::Map,
        b"package" => Word::Package,
        b"range" => Word::Range,
        b"return" => Word::Return,
        b"select" => Word::Select,
        b"struct" => Word::Struct,
        b"switch" => Word::Switch,
        b"type" => Word::Type,
        b"var" => Word::Var,
        _ => return None,
    })
}
