//! The lexer for JavaScript and TypeScript.
//!
//! The meaning of a token depends on its position. By default `/` is division and `>` is a single token; the parser
//! requests a regular expression, a shift, the rest of a template or the text of an element where the language allows
//! it.

use crate::convert::to_u32;
use crate::lang::descent::lexer::{self, LexicalRules, signs, words};
use crate::lang::descent::{self, ParseResult, UnsupportedSyntax};

pub type EcmaLexer<'t> = lexer::Lexer<'t, EcmaLexicalRules>;
type Token = descent::SourceToken<EcmaTokenKind>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcmaTokenKind {
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

// Reserved words.
words! {
    EcmaTokenKind:
    Await b"await", Break b"break", Case b"case", Catch b"catch", Class b"class", Const b"const",
    Continue b"continue", Debugger b"debugger", Default b"default", Delete b"delete", Do b"do", Else b"else",
    Enum b"enum", Export b"export", Extends b"extends", False b"false", Finally b"finally", For b"for",
    Function b"function", If b"if", Import b"import", In b"in", Instanceof b"instanceof", New b"new", Null b"null",
    Return b"return", Super b"super", Switch b"switch", This b"this", Throw b"throw", True b"true", Try b"try",
    Typeof b"typeof", Var b"var", Void b"void", While b"while", With b"with", Yield b"yield",
}

signs! {
    EcmaTokenKind:
    Ellipsis [b'.', b'.', b'.'], Arrow [b'=', b'>'], Equal [b'=' | b'!', b'=', b'='], Equal [b'=' | b'!', b'='],
    Otherwise [b'?', b'?', b'='], Otherwise [b'|', b'|', b'='], Otherwise [b'&', b'&', b'='], Nullish [b'?', b'?'],
    Or [b'|', b'|'], And [b'&', b'&'], Chain [b'?', b'.'], Augmented [b'*', b'*', b'='], Augmented [b'<', b'<', b'='],
    Power [b'*', b'*'], Shift [b'<', b'<'], Compare [b'<', b'='], Step [b'+', b'+'], Step [b'-', b'-'],
    Augmented [b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'='], Comma [b','], Colon [b':'],
    Semicolon [b';'], Dot [b'.'], Question [b'?'], At [b'@'], Assign [b'='], Bang [b'!'], Tilde [b'~'], Plus [b'+'],
    Minus [b'-'], Star [b'*'], Slash [b'/'], Percent [b'%'], Less [b'<'], Greater [b'>'], BitAnd [b'&'], BitOr [b'|'],
    BitXor [b'^'], Template [b'`'],
}

#[derive(Clone, Copy)]
pub struct EcmaLexicalRules {
    /// Whether there is a line break before the last token.
    pub fresh: bool,
}

impl Default for EcmaLexicalRules {
    fn default() -> EcmaLexicalRules {
        EcmaLexicalRules { fresh: true }
    }
}

impl LexicalRules for EcmaLexicalRules {
    type Kind = EcmaTokenKind;

    fn next(lexer: &mut EcmaLexer<'_>) -> ParseResult<Token> {
        lexer.state.fresh = false;
        lexer.skip(|_, _| ())?;
        lexer.any_token()
    }
}

impl EcmaLexer<'_> {
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
        to_u32(memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()))
    }

    /// Whether U+2028 or U+2029 occurs in the text: they end lines too, but hardly any file has them.
    fn has_separator(&self, from: u32, to: u32) -> bool {
        let written = self.source.between(from, to);
        memchr::memchr_iter(0xe2, written).any(|at| matches!(written[at..], [0xe2, 0x80, 0xa8 | 0xa9, ..]))
    }

    /// Skips white space and comments; calls `comment` with the start and end of each comment.
    pub fn skip(&mut self, mut comment: impl FnMut(u32, u32)) -> ParseResult<()> {
        loop {
            let start = self.at;
            match self.byte(start) {
                b' ' | b'\t' | 0x0b | 0x0c => self.at += 1,
                b'\n' | b'\r' => {
                    self.state.fresh = true;
                    self.at += 1;
                }
                b'/' if self.byte(start + 1) == b'/' => {
                    self.at += self.to_line_end(start);
                    if self.has_separator(start, self.at) {
                        return Err(UnsupportedSyntax);
                    }
                    comment(start, self.at);
                }
                b'/' if self.byte(start + 1) == b'*' => {
                    self.at = self.source.block_comment_end(start)?;
                    self.state.fresh |= memchr::memchr2(b'\n', b'\r', self.source.between(start, self.at)).is_some();
                    self.state.fresh |= self.has_separator(start, self.at);
                    comment(start, self.at);
                }
                _ => return Ok(()),
            }
        }
    }

    fn any_token(&mut self) -> ParseResult<Token> {
        let start = self.at;
        let first = self.byte(start);
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => {
                let kind = self.word(start, true, word)?;
                return Ok(self.token(kind, start));
            }
            b'#' => {
                self.at = self.source.name_end(start + 1, true)?;
                return if self.at == start + 1 {
                    Err(UnsupportedSyntax)
                } else {
                    Ok(self.token(EcmaTokenKind::Private, start))
                };
            }
            b'0'..=b'9' => return self.number(start),
            b'.' if self.byte(start + 1).is_ascii_digit() => return self.number(start),
            b'"' | b'\'' => {
                let kind = self.string(start, first, EcmaTokenKind::Str)?;
                return Ok(self.token(kind, start));
            }
            0 if self.source.ends_at(start) => return Ok(self.token(EcmaTokenKind::End, start)),
            _ => {}
        }
        let kind = match (first, self.byte(start + 1), self.byte(start + 2)) {
            // An HTML comment.
            (b'<', b'!', b'-') | (b'-', b'-', b'>') => return Err(UnsupportedSyntax),
            (b'?', b'.', b'0'..=b'9') => {
                self.at = start + 1;
                EcmaTokenKind::Question
            }
            _ => self.operator(start, sign)?,
        };
        Ok(self.token(kind, start))
    }

    fn number(&mut self, start: u32) -> ParseResult<Token> {
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
            return Err(UnsupportedSyntax);
        }
        self.at = at;
        Ok(self.token(EcmaTokenKind::Number, start))
    }

    /// The end of the regular expression that begins here.
    pub fn regex_end(&self, start: u32) -> ParseResult<u32> {
        let mut at = start + 1;
        let mut class = false;
        loop {
            match self.byte(at) {
                0 | b'\n' | b'\r' => return Err(UnsupportedSyntax),
                b'\\' if matches!(self.byte(at + 1), 0 | b'\n' | b'\r') => return Err(UnsupportedSyntax),
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

fn word(word: &[u8]) -> Option<Word> {
    // Most names are longer, or begin with a capital letter.
    if (2..=10).contains(&word.len()) && word[0].is_ascii_lowercase() { keyword(word) } else { None }
}
