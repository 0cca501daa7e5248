//! The lexer for Java, including the comments between tokens.

use crate::lang::descent::{self, Comments, Lex, Read, Remarks, Unsure};
use crate::lang::source::{Greater, Source};

pub type Token = descent::Token<Tok>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tok {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Abstract,
    Assert,
    Boolean,
    Break,
    Byte,
    Case,
    Catch,
    Char,
    Class,
    Continue,
    Default,
    Do,
    Double,
    Else,
    Enum,
    Extends,
    False,
    Final,
    Finally,
    Float,
    For,
    If,
    Implements,
    Import,
    Instanceof,
    Int,
    Interface,
    Long,
    Native,
    New,
    Null,
    Package,
    Private,
    Protected,
    Public,
    Return,
    Short,
    Static,
    Strictfp,
    Super,
    Switch,
    Synchronized,
    This,
    Throw,
    Throws,
    Transient,
    True,
    Try,
    Void,
    Volatile,
    While,
}

pub struct Lexer<'t> {
    source: Source<'t>,
    at: u32,
    comments: Comments,
}

#[derive(Clone, Copy)]
pub struct Place {
    at: u32,
    comments: (usize, usize),
}

impl<'t> Lex<'t> for Lexer<'t> {
    type Kind = Tok;
    type Place = Place;

    fn next(&mut self) -> Read<Token> {
        self.skip()?;
        self.token()
    }

    fn place(&self) -> Place {
        Place { at: self.at, comments: self.comments.place() }
    }

    fn go_back(&mut self, place: Place) -> Read<()> {
        self.at = place.at;
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
        Ok(Lexer { source, at, comments: Comments::default() })
    }

    fn byte(&self, at: u32) -> u8 {
        self.source.byte(at)
    }

    fn rest(&self, at: u32) -> &'t [u8] {
        self.source.rest(at)
    }

    fn skip(&mut self) -> Read<()> {
        loop {
            let start = self.at;
            match self.byte(start) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0c => self.at += 1,
                b'/' if self.byte(start + 1) == b'/' => {
                    self.at = self.source.line_end(start);
                    self.comments.pass(start, self.at);
                }
                b'/' if self.byte(start + 1) == b'*' => {
                    self.at = self.source.block_comment_end(start)?;
                    self.comments.pass(start, self.at);
                }
                _ => return Ok(()),
            }
        }
    }

    fn token(&mut self) -> Read<Token> {
        let start = self.at;
        let kind = match self.byte(start) {
            0 if self.source.ends_at(start) => Tok::End,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => self.word(start)?,
            b'0'..=b'9' => self.number(start)?,
            b'.' if self.byte(start + 1).is_ascii_digit() => self.number(start)?,
            b'"' if self.rest(start).starts_with(b"\"\"\"") => self.text_block(start)?,
            b'"' => self.string(start, b'"', Tok::Str)?,
            b'\'' => self.string(start, b'\'', Tok::Char)?,
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
            (b':', b':', _) => (Tok::Reference, 2),
            (b'-', b'>', _) => (Tok::Arrow, 2),
            (b'=', b'=', _) => (Tok::Equal, 2),
            (b'!', b'=', _) => (Tok::Unequal, 2),
            (b'<', b'<', b'=') => (Tok::Augmented, 3),
            (b'<', b'<', _) => (Tok::Shift, 2),
            (b'<', b'=', _) => (Tok::Compare, 2),
            (b'&', b'&', _) => (Tok::And, 2),
            (b'|', b'|', _) => (Tok::Or, 2),
            (b'+', b'+', _) | (b'-', b'-', _) => (Tok::Step, 2),
            (b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=', _) => (Tok::Augmented, 2),
            _ => {
                let kind = match first {
                    b',' => Tok::Comma,
                    b';' => Tok::Semicolon,
                    b'.' => Tok::Dot,
                    b'@' => Tok::At,
                    b'?' => Tok::Question,
                    b':' => Tok::Colon,
                    b'=' => Tok::Assign,
                    b'!' => Tok::Bang,
                    b'~' => Tok::Tilde,
                    b'+' => Tok::Plus,
                    b'-' => Tok::Minus,
                    b'*' => Tok::Star,
                    b'/' | b'%' => Tok::Times,
                    b'<' => Tok::Less,
                    b'>' => Tok::Greater,
                    b'&' => Tok::BitAnd,
                    b'|' => Tok::BitOr,
                    b'^' => Tok::BitXor,
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
        Token { kind, start: token.start, end: self.at }
    }

    fn word(&mut self, start: u32) -> Read<Tok> {
        self.at = self.source.name_end(start, true)?;
        Ok(keyword(self.source.between(start, self.at)).map_or(Tok::Name, Tok::Word))
    }

    fn number(&mut self, start: u32) -> Read<Tok> {
        let mut at = start;
        let prefix = if self.byte(start) == b'0' { self.byte(start + 1) | 0x20 } else { 0 };
        let (hex, bits) = (prefix == b'x', prefix == b'b');
        if hex || bits {
            at += 2;
        }
        let mut kind = Tok::Int;
        loop {
            match self.byte(at) {
                b'0'..=b'9' | b'_' => {}
                b'a'..=b'f' | b'A'..=b'F' if hex => {}
                b'.' if !bits => kind = Tok::Float,
                b'e' | b'E' if !bits => kind = Tok::Float,
                b'p' | b'P' if hex => kind = Tok::Float,
                b'+' | b'-' if matches!((self.byte(at - 1) | 0x20, hex), (b'e', false) | (b'p', true)) => {}
                b'f' | b'F' | b'd' | b'D' => {
                    kind = Tok::Float;
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
            return Err(Unsure);
        }
        self.at = at;
        Ok(kind)
    }

    fn string(&mut self, start: u32, quote: u8, kind: Tok) -> Read<Tok> {
        self.at = self.source.string_end(start, quote)?;
        Ok(kind)
    }

    fn text_block(&mut self, start: u32) -> Read<Tok> {
        let mut at = start + 3;
        loop {
            at += memchr::memchr2(b'"', b'\\', self.rest(at)).ok_or(Unsure)? as u32;
            match self.byte(at) {
                b'\\' => at += 2,
                _ if self.rest(at).starts_with(b"\"\"\"") => break,
                _ => at += 1,
            }
        }
        self.at = at + 3;
        Ok(Tok::Str)
    }
}

fn keyword(word: &[u8]) -> Option<Word> {
    if !(2..=12).contains(&word.len()) || !word[0].is_ascii_lowercase() {
        return None;
    }
    Some(match word {
        b"abstract" => Word::Abstract,
        b"assert" => Word::Assert,
        b"boolean" => Word::Boolean,
        b"break" => Word::Break,
        b"byte" => Word::Byte,
        b"case" => Word::Case,
        b"catch" => Word::Catch,
        b"char" => Word::Char,
        b"class" => Word::Class,
        b"continue" => Word::Continue,
        b"default" => Word::Default,
        b"do" => Word::Do,
        b"double" => Word::Double,
        b"else" => Word::Else,
        b"enum" => Word::Enum,
        b"extends" => Word::Extends,
        b"false" => Word::False,
        b"final" => Word::Final,
        b"finally" => Word::Finally,
        b"float" => Word::Float,
        b"for" => Word::For,
        b"if" => Word::If,
        b"implements" => Word::Implements,
        b"import" => Word::Import,
        b"instanceof" => Word::Instanceof,
        b"int" => Word::Int,
        b"interface" => Word::Interface,
        b"long" => Word::Long,
        b"native" => Word::Native,
        b"new" => Word::New,
        b"null" => Word::Null,
        b"package" => Word::Package,
        b"private" => Word::Private,
        b"protected" => Word::Protected,
        b"public" => Word::Public,
        b"return" => Word::Return,
        b"short" => Word::Short,
        b"static" => Word::Static,
        b"strictfp" => Word::Strictfp,
        b"super" => Word::Super,
        b"switch" => Word::Switch,
        b"synchronized" => Word::Synchronized,
        b"this" => Word::This,
        b"throw" => Word::Throw,
        b"throws" => Word::Throws,
        b"transient" => Word::Transient,
        b"true" => Word::True,
        b"try" => Word::Try,
        b"void" => Word::Void,
        b"volatile" => Word::Volatile,
        b"while" => Word::While,
        _ => return None,
    })
}
