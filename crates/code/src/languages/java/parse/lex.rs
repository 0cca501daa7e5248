//! The lexer for Java, including the comments between tokens.

use crate::convert::to_u32;
use crate::lang::descent::lexer::{self, LexicalRules, signs, words};
use crate::lang::descent::{self, ParseResult, UnsupportedSyntax};

pub type JavaLexer<'t> = lexer::Lexer<'t, JavaLexicalRules>;
type Token = descent::SourceToken<JavaTokenKind>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JavaTokenKind {
    End,
    Name,
    Word(Word),
    Int,
    Float,
    Char,
    Str,
    Open(u8),
    Close(u8),
    Comma,
    Semicolon,
    Dot,
    Ellipsis,
    At,
    Question,
    Colon,
    /// `::`
    Reference,
    Arrow,
    Assign,
    /// `+=` and similar operators.
    Augmented,
    /// `++` and `--`
    Step,
    Bang,
    Tilde,
    Plus,
    Minus,
    Star,
    /// `/ %`
    Times,
    Less,
    /// A single `>`: the parser requests the operator that it begins.
    Greater,
    /// `<= >=`
    Compare,
    Equal,
    Unequal,
    Shift,
    BitAnd,
    BitOr,
    BitXor,
    And,
    Or,
}

words! {
    JavaTokenKind:
    Abstract b"abstract", Assert b"assert", Boolean b"boolean", Break b"break", Byte b"byte", Case b"case",
    Catch b"catch", Char b"char", Class b"class", Continue b"continue", Default b"default", Do b"do",
    Double b"double", Else b"else", Enum b"enum", Extends b"extends", False b"false", Final b"final",
    Finally b"finally", Float b"float", For b"for", If b"if", Implements b"implements", Import b"import",
    Instanceof b"instanceof", Int b"int", Interface b"interface", Long b"long", Native b"native", New b"new",
    Null b"null", Package b"package", Private b"private", Protected b"protected", Public b"public", Return b"return",
    Short b"short", Static b"static", Strictfp b"strictfp", Super b"super", Switch b"switch",
    Synchronized b"synchronized", This b"this", Throw b"throw", Throws b"throws", Transient b"transient",
    True b"true", Try b"try", Void b"void", Volatile b"volatile", While b"while",
}

signs! {
    JavaTokenKind:
    Ellipsis [b'.', b'.', b'.'], Reference [b':', b':'], Arrow [b'-', b'>'], Equal [b'=', b'='], Unequal [b'!', b'='],
    Augmented [b'<', b'<', b'='], Shift [b'<', b'<'], Compare [b'<', b'='], And [b'&', b'&'], Or [b'|', b'|'],
    Step [b'+', b'+'], Step [b'-', b'-'], Augmented [b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'='],
    Comma [b','], Semicolon [b';'], Dot [b'.'], At [b'@'], Question [b'?'], Colon [b':'], Assign [b'='], Bang [b'!'],
    Tilde [b'~'], Plus [b'+'], Minus [b'-'], Star [b'*'], Times [b'/' | b'%'], Less [b'<'], Greater [b'>'],
    BitAnd [b'&'], BitOr [b'|'], BitXor [b'^'],
}

#[derive(Clone, Copy, Default)]
pub struct JavaLexicalRules;

impl LexicalRules for JavaLexicalRules {
    type Kind = JavaTokenKind;

    fn next(lexer: &mut JavaLexer<'_>) -> ParseResult<Token> {
        loop {
            match lexer.byte(lexer.at) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0c => lexer.at += 1,
                _ if !lexer.comment(false)? => return lexer.any_token(),
                _ => {}
            }
        }
    }
}

impl JavaLexer<'_> {
    fn any_token(&mut self) -> ParseResult<Token> {
        let start = self.at;
        let kind = match self.byte(start) {
            0 if self.source.ends_at(start) => JavaTokenKind::End,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => self.word(start, true, word)?,
            b'0'..=b'9' => self.number(start)?,
            b'.' if self.byte(start + 1).is_ascii_digit() => self.number(start)?,
            b'"' if self.rest(start).starts_with(b"\"\"\"") => self.text_block(start)?,
            b'"' => self.string(start, b'"', JavaTokenKind::Str)?,
            b'\'' => self.string(start, b'\'', JavaTokenKind::Char)?,
            _ => self.operator(start, sign)?,
        };
        Ok(self.token(kind, start))
    }

    fn number(&mut self, start: u32) -> ParseResult<JavaTokenKind> {
        let mut at = start;
        let prefix = if self.byte(start) == b'0' { self.byte(start + 1) | 0x20 } else { 0 };
        let (hex, bits) = (prefix == b'x', prefix == b'b');
        if hex || bits {
            at += 2;
        }
        let mut kind = JavaTokenKind::Int;
        loop {
            match self.byte(at) {
                b'0'..=b'9' | b'_' => {}
                b'a'..=b'f' | b'A'..=b'F' if hex => {}
                b'.' if !bits => kind = JavaTokenKind::Float,
                b'e' | b'E' if !bits => kind = JavaTokenKind::Float,
                b'p' | b'P' if hex => kind = JavaTokenKind::Float,
                b'+' | b'-' if matches!((self.byte(at - 1) | 0x20, hex), (b'e', false) | (b'p', true)) => {}
                b'f' | b'F' | b'd' | b'D' => {
                    kind = JavaTokenKind::Float;
                    at += 1;
                    break;
                }
                b'l' | b'L' => {
                    at += 1;
                    break;
                }
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

    fn text_block(&mut self, start: u32) -> ParseResult<JavaTokenKind> {
        let mut at = start + 3;
        loop {
            at += to_u32(memchr::memchr2(b'"', b'\\', self.rest(at)).ok_or(UnsupportedSyntax)?);
            match self.byte(at) {
                b'\\' => at += 2,
                _ if self.rest(at).starts_with(b"\"\"\"") => break,
                _ => at += 1,
            }
        }
        self.at = at + 3;
        Ok(JavaTokenKind::Str)
    }
}

fn word(word: &[u8]) -> Option<Word> {
    // Most names are longer, or begin with a capital letter.
    if (2..=12).contains(&word.len()) && word[0].is_ascii_lowercase() { keyword(word) } else { None }
}
