//! The lexer for Go, including implicit semicolons at line ends and the comments between tokens.

use crate::convert::to_u32;
use crate::lang::descent::lexer::{self, LexicalRules, signs, words};
use crate::lang::descent::{self, ParseResult, UnsupportedSyntax};

pub type GoLexer<'t> = lexer::Lexer<'t, GoLexicalRules>;
type Token = descent::SourceToken<GoTokenKind>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoTokenKind {
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

words! {
    GoTokenKind:
    Break b"break", Case b"case", Chan b"chan", Const b"const", Continue b"continue", Default b"default",
    Defer b"defer", Else b"else", Fallthrough b"fallthrough", For b"for", Func b"func", Go b"go", Goto b"goto",
    If b"if", Import b"import", Interface b"interface", Map b"map", Package b"package", Range b"range",
    Return b"return", Select b"select", Struct b"struct", Switch b"switch", Type b"type", Var b"var",
}

signs! {
    GoTokenKind:
    Ellipsis [b'.', b'.', b'.'], Define [b':', b'='], Augmented [b'<', b'<', b'='], Augmented [b'>', b'>', b'='],
    Augmented [b'&', b'^', b'='], Times [b'<', b'<'], Times [b'>', b'>'], Times [b'&', b'^'], Arrow [b'<', b'-'],
    Compare [b'=' | b'!' | b'<' | b'>', b'='], And [b'&', b'&'], Or [b'|', b'|'], Step [b'+', b'+'],
    Step [b'-', b'-'], Augmented [b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'='], Semicolon [b';'],
    Comma [b','], Colon [b':'], Dot [b'.'], Assign [b'='], Bang [b'!'], Tilde [b'~'], Plus [b'+'], Minus [b'-'],
    Star [b'*'], Times [b'/' | b'%'], Compare [b'<' | b'>'], BitAnd [b'&'], BitOr [b'|'], BitXor [b'^'],
}

#[derive(Clone, Copy, Default)]
pub struct GoLexicalRules {
    /// End of the last token, if a line break after it ends the statement.
    ends: Option<u32>,
}

impl LexicalRules for GoLexicalRules {
    type Kind = GoTokenKind;

    fn next(lexer: &mut GoLexer<'_>) -> ParseResult<Token> {
        let token = lexer.any_token()?;
        lexer.state.ends = match token.kind {
            GoTokenKind::Name
            | GoTokenKind::Int
            | GoTokenKind::Float
            | GoTokenKind::Imaginary
            | GoTokenKind::Rune
            | GoTokenKind::Str
            | GoTokenKind::RawStr => Some(token.end),
            GoTokenKind::Close(_) | GoTokenKind::Step => Some(token.end),
            GoTokenKind::Word(Word::Break | Word::Continue | Word::Fallthrough | Word::Return) => Some(token.end),
            _ => None,
        };
        Ok(token)
    }
}

impl GoLexer<'_> {
    fn any_token(&mut self) -> ParseResult<Token> {
        loop {
            let start = self.at;
            match self.byte(start) {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    if let Some(end) = self.state.ends {
                        return Ok(Token { kind: GoTokenKind::Semicolon, start: end, end });
                    }
                }
                _ if !self.comment(false)? => break,
                _ => {
                    if let Some(end) = self.state.ends
                        && memchr::memchr(b'\n', self.source.between(start, self.at)).is_some()
                    {
                        return Ok(Token { kind: GoTokenKind::Semicolon, start: end, end });
                    }
                }
            }
        }
        let start = self.at;
        let kind = match self.byte(start) {
            0 if self.source.ends_at(start) => match self.state.ends {
                Some(end) => return Ok(Token { kind: GoTokenKind::Semicolon, start: end, end }),
                None => GoTokenKind::End,
            },
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word(start, false, keyword)?,
            b'0'..=b'9' => self.number(start)?,
            b'.' if self.byte(start + 1).is_ascii_digit() => self.number(start)?,
            b'"' => self.string(start, b'"', GoTokenKind::Str)?,
            b'\'' => self.string(start, b'\'', GoTokenKind::Rune)?,
            b'`' => {
                let len = memchr::memchr(b'`', self.rest(start + 1)).ok_or(UnsupportedSyntax)?;
                self.at = start + 1 + to_u32(len) + 1;
                GoTokenKind::RawStr
            }
            _ => self.operator(start, sign)?,
        };
        Ok(self.token(kind, start))
    }

    fn number(&mut self, start: u32) -> ParseResult<GoTokenKind> {
        let mut at = start;
        let hex = self.byte(start) == b'0' && self.byte(start + 1) | 0x20 == b'x';
        let mut kind = GoTokenKind::Int;
        loop {
            match self.byte(at) {
                b'.' => kind = GoTokenKind::Float,
                b'p' | b'P' if hex => kind = GoTokenKind::Float,
                b'e' | b'E' if !hex => kind = GoTokenKind::Float,
                b'+' | b'-'
                    if at > start && matches!((self.byte(at - 1) | 0x20, hex), (b'p', true) | (b'e', false)) => {}
                b'i' => {
                    kind = GoTokenKind::Imaginary;
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
            return Err(UnsupportedSyntax);
        }
        self.at = at;
        Ok(kind)
    }
}
