//! The lexer for Rust, including the comments between tokens, and the finer tokens of macro calls.

use super::kind;
use crate::lang::descent::{self, Comments, Lex, Read, Remarks, Unsure};
use crate::lang::source::Source;

pub type Token = descent::Token<Tok>;

/// `<`, `>`, `&` and `|` are single tokens: only the parser knows the operator that they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tok {
    End,
    Name,
    Word(Word),
    /// `_`
    Blank,
    /// `'a`
    Lifetime,
    Int,
    Float,
    Str,
    RawStr,
    Char,
    Open(u8),
    Close(u8),
    Comma,
    Semicolon,
    Colon,
    Path,
    Dot,
    Range,
    RangeClosed,
    Ellipsis,
    Assign,
    Arrow,
    FatArrow,
    Hash,
    At,
    Question,
    Bang,
    Plus,
    Minus,
    Star,
    And,
    Bar,
    Less,
    Greater,
    /// Another binary operator, by its kind in the tree.
    Operator(u16),
    /// `+=` and similar operators, by their kind in the tree.
    Augmented(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    As,
    Async,
    Await,
    Break,
    Const,
    Continue,
    Crate,
    Dyn,
    Else,
    Enum,
    Extern,
    False,
    Fn,
    For,
    If,
    Impl,
    In,
    Let,
    Loop,
    Match,
    Mod,
    Move,
    Mut,
    Pub,
    Ref,
    Return,
    SelfValue,
    Static,
    Struct,
    Super,
    Trait,
    True,
    Try,
    Type,
    Unsafe,
    Use,
    Where,
    While,
    Yield,
}

/// A token in a macro call.
pub enum Piece {
    Open(u8),
    Close(u8),
    /// `$`
    Dollar,
    /// The kind in the tree, and whether the node is named.
    Node(u16, bool),
}

pub struct Lexer<'t> {
    source: Source<'t>,
    at: u32,
    /// After a dot, numbers are positions in a tuple: `x.0.1`.
    after_dot: bool,
    comments: Comments,
}

#[derive(Clone, Copy)]
pub struct Place {
    at: u32,
    after_dot: bool,
    comments: (usize, usize),
}

impl<'t> Lex<'t> for Lexer<'t> {
    type Kind = Tok;
    type Place = Place;

    fn next(&mut self) -> Read<Token> {
        let start = self.skip()?;
        let kind = match self.byte(start) {
            0 if self.source.ends_at(start) => Tok::End,
            b'0'..=b'9' => match self.number(start)? {
                kind::FLOAT_LITERAL => Tok::Float,
                _ => Tok::Int,
            },
            _ => match self.literal(start)? {
                Some(kind) => kind,
                None => self.sign(start)?,
            },
        };
        self.after_dot = kind == Tok::Dot;
        Ok(Token { kind, start, end: self.at })
    }

    fn place(&self) -> Place {
        Place { at: self.at, after_dot: self.after_dot, comments: self.comments.place() }
    }

    fn go_back(&mut self, place: Place) -> Read<()> {
        (self.at, self.after_dot) = (place.at, place.after_dot);
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
        Ok(Lexer { source, at, after_dot: false, comments: Comments::default() })
    }

    pub fn byte(&self, at: u32) -> u8 {
        self.source.byte(at)
    }

    /// The current offset of the lexer.
    pub fn place_at(&self) -> u32 {
        self.at
    }

    /// Continues after a token that turned out to be longer.
    pub fn go_on(&mut self, at: u32) {
        self.at = at;
    }

    /// Skips white space and comments; returns the start of the next token.
    fn skip(&mut self) -> Read<u32> {
        loop {
            let start = self.at;
            match self.byte(start) {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'/' if self.byte(start + 1) == b'/' => {
                    self.at = self.source.line_end(start);
                    self.comments.pass(start, self.at);
                }
                b'/' if self.byte(start + 1) == b'*' => {
                    self.at = self.block_comment_end(start)?;
                    self.comments.pass(start, self.at);
                }
                _ => return Ok(start),
            }
        }
    }

    /// The end of a block comment; these nest.
    fn block_comment_end(&self, start: u32) -> Read<u32> {
        let (mut at, mut depth) = (start + 2, 1);
        while depth > 0 {
            at += memchr::memchr2(b'*', b'/', self.source.rest(at)).ok_or(Unsure)? as u32;
            match (self.byte(at), self.byte(at + 1)) {
                (b'*', b'/') => depth -= 1,
                (b'/', b'*') => depth += 1,
                _ => {
                    at += 1;
                    continue;
                }
            }
            at += 2;
        }
        Ok(at)
    }

    /// Words and literals; moves `at` behind them.
    fn literal(&mut self, start: u32) -> Read<Option<Tok>> {
        Ok(Some(match self.byte(start) {
            b'"' => self.string(start)?,
            b'\'' => self.quoted(start)?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => {
                if let Some(text) = self.prefixed(start)? {
                    return Ok(Some(text));
                }
                self.at = self.source.name_end(start, false)?;
                match self.source.between(start, self.at) {
                    b"_" => Tok::Blank,
                    word => keyword(word).map_or(Tok::Name, Tok::Word),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// `b"…"`, `r#"…"#`, `b'x'`, and `r#name`.
    fn prefixed(&mut self, start: u32) -> Read<Option<Tok>> {
        let (first, second, third) = (self.byte(start), self.byte(start + 1), self.byte(start + 2));
        Ok(Some(match (first, second, third) {
            (b'b' | b'c', b'"', _) => self.string(start + 1)?,
            (b'b', b'\'', _) => match self.quoted(start + 1)? {
                Tok::Char => Tok::Char,
                _ => return Err(Unsure),
            },
            (b'r', b'"', _) | (b'r', b'#', b'"' | b'#') => self.raw_string(start + 1)?,
            (b'b' | b'c', b'r', b'"' | b'#') => self.raw_string(start + 2)?,
            (b'r', b'#', _) => {
                self.at = self.source.name_end(start + 2, false)?;
                if self.at == start + 2 || third.is_ascii_digit() {
                    return Err(Unsure);
                }
                Tok::Name
            }
            _ => return Ok(None),
        }))
    }

    fn string(&mut self, start: u32) -> Read<Tok> {
        let mut at = start + 1;
        loop {
            at += memchr::memchr2(b'"', b'\\', self.source.rest(at)).ok_or(Unsure)? as u32;
            match self.byte(at) {
                // Invalid escapes, such as in `\u{…}`, are left to tree-sitter.
                b'\\' if matches!(self.byte(at + 1), b'u' | b'x') && !self.escapes(at) => return Err(Unsure),
                b'\\' => at += 2,
                _ => break,
            }
        }
        self.at = at + 1;
        Ok(Tok::Str)
    }

    /// Whether `\x` or `\u` is followed by valid digits.
    fn escapes(&self, at: u32) -> bool {
        let digits = |from: u32, to: u32| (from..to).all(|at| self.byte(at).is_ascii_hexdigit());
        match (self.byte(at + 1), self.byte(at + 2)) {
            (b'x', _) => digits(at + 2, at + 4),
            (_, b'{') => {
                let len = self.source.rest(at + 3).iter().take(9).position(|byte| *byte == b'}');
                len.is_some_and(|len| len > 0 && digits(at + 3, at + 3 + len as u32))
            }
            _ => digits(at + 2, at + 6),
        }
    }

    /// A raw string, from its first `#` or `"`.
    fn raw_string(&mut self, start: u32) -> Read<Tok> {
        let hashes = self.source.rest(start).iter().take_while(|byte| **byte == b'#').count();
        let mut at = start + hashes as u32;
        if self.byte(at) != b'"' {
            return Err(Unsure);
        }
        loop {
            at += 1 + memchr::memchr(b'"', self.source.rest(at + 1)).ok_or(Unsure)? as u32;
            let closing = self.source.rest(at + 1).iter().take(hashes).take_while(|byte| **byte == b'#').count();
            if closing == hashes {
                self.at = at + 1 + hashes as u32;
                return Ok(Tok::RawStr);
            }
        }
    }

    /// A character, or a lifetime.
    fn quoted(&mut self, start: u32) -> Read<Tok> {
        if self.byte(start + 1) == b'\\' {
            let code = matches!(self.byte(start + 2), b'u' | b'x');
            if code && !self.escapes(start + 1) {
                return Err(Unsure);
            }
            let from = start + 3;
            let len = memchr::memchr(b'\'', &self.source.rest(from)[..self.source.rest(from).len().min(12)]);
            let len = len.ok_or(Unsure)? as u32;
            if !code && len > 0 {
                return Err(Unsure);
            }
            self.at = from + len + 1;
            return Ok(Tok::Char);
        }
        let rest = self.source.text.get(start as usize + 1..).ok_or(Unsure)?;
        let letter = rest.chars().next().ok_or(Unsure)?;
        let behind = start + 1 + letter.len_utf8() as u32;
        if letter != '\'' && self.byte(behind) == b'\'' {
            self.at = behind + 1;
            return Ok(Tok::Char);
        }
        self.at = self.source.name_end(start + 1, false)?;
        if self.at == start + 1 || self.byte(start + 1).is_ascii_digit() || self.byte(self.at) == b'#' {
            return Err(Unsure);
        }
        Ok(Tok::Lifetime)
    }

    fn number(&mut self, start: u32) -> Read<u16> {
        let digits = |at: u32, part: fn(&u8) -> bool| {
            at + self.source.rest(at).iter().take_while(|byte| part(byte)).count() as u32
        };
        let decimal = |byte: &u8| byte.is_ascii_digit() || *byte == b'_';
        if self.byte(start) == b'0' && matches!(self.byte(start + 1), b'x' | b'o' | b'b') {
            let hex = self.byte(start + 1) == b'x';
            let end = match hex {
                true => digits(start + 2, |byte| byte.is_ascii_hexdigit() || *byte == b'_'),
                false => digits(start + 2, |byte| byte.is_ascii_digit() || *byte == b'_'),
            };
            if end == start + 2 {
                return Err(Unsure);
            }
            return self.suffixed(end, kind::INTEGER_LITERAL);
        }
        let mut end = digits(start, decimal);
        let mut float = false;
        if self.after_dot {
            return self.suffixed(end, kind::INTEGER_LITERAL);
        }
        if self.byte(end) == b'.' {
            let next = self.byte(end + 1);
            if next == b'_' || next >= 0x80 {
                return Err(Unsure);
            }
            if next.is_ascii_digit() {
                (float, end) = (true, digits(end + 1, decimal));
            } else if next != b'.' && !next.is_ascii_alphabetic() {
                (float, end) = (true, end + 1);
            }
        }
        if matches!(self.byte(end), b'e' | b'E') {
            let sign = u32::from(matches!(self.byte(end + 1), b'+' | b'-'));
            let exponent = digits(end + 1 + sign, decimal);
            if exponent == end + 1 + sign {
                return Err(Unsure);
            }
            (float, end) = (true, exponent);
        }
        self.suffixed(end, if float { kind::FLOAT_LITERAL } else { kind::INTEGER_LITERAL })
    }

    /// The kind of a number with an optional type suffix.
    fn suffixed(&mut self, end: u32, kind: u16) -> Read<u16> {
        let after = self.source.name_end(end, false)?;
        let suffix = self.source.between(end, after);
        if !suffix.is_empty() && (!is_primitive(suffix) || matches!(suffix, b"bool" | b"str" | b"char")) {
            return Err(Unsure);
        }
        self.at = after;
        Ok(kind)
    }

    fn sign(&mut self, start: u32) -> Read<Tok> {
        let (first, second, third) = (self.byte(start), self.byte(start + 1), self.byte(start + 2));
        let (kind, len) = match (first, second, third) {
            (b'(' | b'[' | b'{', _, _) => (Tok::Open(first), 1),
            (b')' | b']' | b'}', _, _) => (Tok::Close(first), 1),
            (b'<', _, _) => (Tok::Less, 1),
            (b'>', _, _) => (Tok::Greater, 1),
            (b'&', _, _) => (Tok::And, 1),
            (b'|', _, _) => (Tok::Bar, 1),
            (b'.', b'.', b'=') => (Tok::RangeClosed, 3),
            (b'.', b'.', b'.') => (Tok::Ellipsis, 3),
            (b'.', b'.', _) => (Tok::Range, 2),
            (b'.', _, _) => (Tok::Dot, 1),
            (b':', b':', _) => (Tok::Path, 2),
            (b':', _, _) => (Tok::Colon, 1),
            (b'=', b'>', _) => (Tok::FatArrow, 2),
            (b'=', b'=', _) => (Tok::Operator(kind::SIGN_EQUAL), 2),
            (b'=', _, _) => (Tok::Assign, 1),
            (b'!', b'=', _) => (Tok::Operator(kind::SIGN_UNEQUAL), 2),
            (b'!', _, _) => (Tok::Bang, 1),
            (b'-', b'>', _) => (Tok::Arrow, 2),
            (b'+', b'=', _) => (Tok::Augmented(kind::SIGN_ADD), 2),
            (b'-', b'=', _) => (Tok::Augmented(kind::SIGN_SUBTRACT), 2),
            (b'*', b'=', _) => (Tok::Augmented(kind::SIGN_MULTIPLY), 2),
            (b'/', b'=', _) => (Tok::Augmented(kind::SIGN_DIVIDE_BY), 2),
            (b'%', b'=', _) => (Tok::Augmented(kind::SIGN_REDUCE), 2),
            (b'^', b'=', _) => (Tok::Augmented(kind::SIGN_XOR_WITH), 2),
            (b'+', _, _) => (Tok::Plus, 1),
            (b'-', _, _) => (Tok::Minus, 1),
            (b'*', _, _) => (Tok::Star, 1),
            (b'/', _, _) => (Tok::Operator(kind::SIGN_DIVIDE), 1),
            (b'%', _, _) => (Tok::Operator(kind::SIGN_REMAINDER), 1),
            (b'^', _, _) => (Tok::Operator(kind::SIGN_BIT_XOR), 1),
            (b',', _, _) => (Tok::Comma, 1),
            (b';', _, _) => (Tok::Semicolon, 1),
            (b'#', _, _) => (Tok::Hash, 1),
            (b'@', _, _) => (Tok::At, 1),
            (b'?', _, _) => (Tok::Question, 1),
            _ => return Err(Unsure),
        };
        self.at = start + len;
        Ok(kind)
    }

    /// The binary operator that the `<`, `>`, `&` or `|` at an offset begins: its kind, its length, and whether it
    /// assigns.
    pub fn operator(&self, at: u32) -> (u16, u32, bool) {
        match (self.byte(at), self.byte(at + 1), self.byte(at + 2)) {
            (b'<', b'<', b'=') => (kind::SIGN_SHIFT_LEFT_BY, 3, true),
            (b'<', b'<', _) => (kind::SIGN_SHIFT_LEFT, 2, false),
            (b'<', b'=', _) => (kind::SIGN_LESS_EQUAL, 2, false),
            (b'<', _, _) => (kind::SIGN_LESS, 1, false),
            (b'>', b'>', b'=') => (kind::SIGN_SHIFT_RIGHT_BY, 3, true),
            (b'>', b'>', _) => (kind::SIGN_SHIFT_RIGHT, 2, false),
            (b'>', b'=', _) => (kind::SIGN_GREATER_EQUAL, 2, false),
            (b'>', _, _) => (kind::SIGN_GREATER, 1, false),
            (b'&', b'&', _) => (kind::SIGN_AND, 2, false),
            (b'&', b'=', _) => (kind::SIGN_AND_WITH, 2, true),
            (b'&', _, _) => (kind::SIGN_BIT_AND, 1, false),
            (_, b'|', _) => (kind::SIGN_OR, 2, false),
            (_, b'=', _) => (kind::SIGN_OR_WITH, 2, true),
            _ => (kind::SIGN_BIT_OR, 1, false),
        }
    }

    // --- tokens in macro calls ---

    /// The next token in a macro call, with its start and end.
    pub fn piece(&mut self) -> Read<(Piece, u32, u32)> {
        self.after_dot = false;
        let start = self.skip()?;
        let node = |kind| Piece::Node(kind, true);
        let piece = match self.byte(start) {
            first @ (b'(' | b'[' | b'{') => {
                self.at = start + 1;
                Piece::Open(first)
            }
            first @ (b')' | b']' | b'}') => {
                self.at = start + 1;
                Piece::Close(first)
            }
            b'$' => {
                self.at = start + 1;
                Piece::Dollar
            }
            b'0'..=b'9' => node(self.number(start)?),
            _ => match self.literal(start)? {
                None => {
                    let (kind, len) = self.tree_sign(start)?;
                    self.at = start + len;
                    Piece::Node(kind, false)
                }
                Some(Tok::Lifetime) => {
                    self.at = start + 1;
                    Piece::Node(kind::SIGN_QUOTE, false)
                }
                Some(Tok::Str) => node(kind::STRING_LITERAL),
                Some(Tok::RawStr) => node(kind::RAW_STRING_LITERAL),
                Some(Tok::Char) => node(kind::CHAR_LITERAL),
                Some(Tok::Blank) => Piece::Node(kind::SIGN_BLANK, false),
                Some(_) => tree_word(self.source.between(start, self.at)),
            },
        };
        Ok((piece, start, self.at))
    }

    /// Reads the name of a macro variable after its `$`; `false` if there is none.
    pub fn variable(&mut self) -> Read<bool> {
        let first = self.byte(self.at);
        if !(first.is_ascii_alphabetic() || first == b'_') {
            return Ok(false);
        }
        let start = self.at;
        self.at = self.source.name_end(start, false)?;
        if self.source.between(start, self.at).is_ascii() { Ok(true) } else { Err(Unsure) }
    }

    /// Reads the separator and the sign of a repetition; returns the start of the sign.
    pub fn repeated(&mut self) -> Read<u32> {
        let start = self.skip()?;
        let rest = self.source.rest(start);
        let len = rest.iter().take(8).position(|byte| matches!(byte, b'+' | b'*' | b'?')).ok_or(Unsure)?;
        if rest[..len].iter().any(|byte| matches!(byte, b'\n' | b'/' | b'"' | b'\'' | b'$' | b'(' | b')' | b'[' | b']'))
        {
            return Err(Unsure);
        }
        self.at = start + len as u32 + 1;
        Ok(self.at - 1)
    }

    fn tree_sign(&self, start: u32) -> Read<(u16, u32)> {
        let (second, third) = (self.byte(start + 1), self.byte(start + 2));
        Ok(match (self.byte(start), second, third) {
            (b'<' | b'>' | b'&' | b'|', _, _) => {
                let (kind, len, _) = self.operator(start);
                (kind, len)
            }
            (b'+', b'=', _) => (kind::SIGN_ADD, 2),
            (b'+', _, _) => (kind::SIGN_PLUS, 1),
            (b'-', b'=', _) => (kind::SIGN_SUBTRACT, 2),
            (b'-', b'>', _) => (kind::SIGN_ARROW, 2),
            (b'-', _, _) => (kind::SIGN_MINUS, 1),
            (b'*', b'=', _) => (kind::SIGN_MULTIPLY, 2),
            (b'*', _, _) => (kind::SIGN_TIMES, 1),
            (b'/', b'=', _) => (kind::SIGN_DIVIDE_BY, 2),
            (b'/', _, _) => (kind::SIGN_DIVIDE, 1),
            (b'%', b'=', _) => (kind::SIGN_REDUCE, 2),
            (b'%', _, _) => (kind::SIGN_REMAINDER, 1),
            (b'^', b'=', _) => (kind::SIGN_XOR_WITH, 2),
            (b'^', _, _) => (kind::SIGN_BIT_XOR, 1),
            (b'!', b'=', _) => (kind::SIGN_UNEQUAL, 2),
            (b'!', _, _) => (kind::SIGN_NOT, 1),
            (b'=', b'=', _) => (kind::SIGN_EQUAL, 2),
            (b'=', b'>', _) => (kind::SIGN_FAT_ARROW, 2),
            (b'=', _, _) => (kind::SIGN_ASSIGN, 1),
            (b'.', b'.', b'=') => (kind::SIGN_RANGE_CLOSED, 3),
            (b'.', b'.', b'.') => (kind::SIGN_ELLIPSIS, 3),
            (b'.', b'.', _) => (kind::SIGN_RANGE, 2),
            (b'.', _, _) => (kind::SIGN_DOT, 1),
            (b':', b':', _) => (kind::SIGN_PATH, 2),
            (b':', _, _) => (kind::SIGN_COLON, 1),
            (b',', _, _) => (kind::SIGN_COMMA, 1),
            (b';', _, _) => (kind::SIGN_SEMICOLON, 1),
            (b'#', _, _) => (kind::SIGN_HASH, 1),
            (b'@', _, _) => (kind::SIGN_AT, 1),
            (b'?', _, _) => (kind::SIGN_QUESTION, 1),
            _ => return Err(Unsure),
        })
    }
}

/// The kind of a word in a macro call.
fn tree_word(word: &[u8]) -> Piece {
    let (kind, named) = match word {
        b"mut" => (kind::MUTABLE_SPECIFIER, true),
        b"self" => (kind::SELF, true),
        b"super" => (kind::SUPER, true),
        b"crate" => (kind::CRATE, true),
        b"true" | b"false" => (kind::BOOLEAN_LITERAL, true),
        b"as" => (kind::WORD_AS, false),
        b"async" => (kind::WORD_ASYNC, false),
        b"await" => (kind::WORD_AWAIT, false),
        b"const" => (kind::WORD_CONST, false),
        b"default" => (kind::WORD_DEFAULT, false),
        b"enum" => (kind::WORD_ENUM, false),
        b"fn" => (kind::WORD_FN, false),
        b"for" => (kind::WORD_FOR, false),
        b"gen" => (kind::WORD_GEN, false),
        b"if" => (kind::WORD_IF, false),
        b"impl" => (kind::WORD_IMPL, false),
        b"let" => (kind::WORD_LET, false),
        b"match" => (kind::WORD_MATCH, false),
        b"mod" => (kind::WORD_MOD, false),
        b"pub" => (kind::WORD_PUB, false),
        b"return" => (kind::WORD_RETURN, false),
        b"static" => (kind::WORD_STATIC, false),
        b"struct" => (kind::WORD_STRUCT, false),
        b"trait" => (kind::WORD_TRAIT, false),
        b"type" => (kind::WORD_TYPE, false),
        b"unsafe" => (kind::WORD_UNSAFE, false),
        b"use" => (kind::WORD_USE, false),
        b"while" => (kind::WORD_WHILE, false),
        b"break" | b"continue" | b"loop" | b"union" | b"where" => (kind::WORD_OTHER, false),
        _ if is_primitive(word) => (kind::PRIMITIVE_TYPE, true),
        _ => (kind::IDENTIFIER, true),
    };
    Piece::Node(kind, named)
}

pub fn is_primitive(word: &[u8]) -> bool {
    matches!(
        word,
        b"u8"
            | b"i8"
            | b"u16"
            | b"i16"
            | b"u32"
            | b"i32"
            | b"u64"
            | b"i64"
            | b"u128"
            | b"i128"
            | b"isize"
            | b"usize"
            | b"f32"
            | b"f64"
            | b"bool"
            | b"str"
            | b"char"
    )
}

fn keyword(word: &[u8]) -> Option<Word> {
    Some(match word {
        b"as" => Word::As,
        b"async" => Word::Async,
        b"await" => Word::Await,
        b"break" => Word::Break,
        b"const" => Word::Const,
        b"continue" => Word::Continue,
        b"crate" => Word::Crate,
        b"dyn" => Word::Dyn,
        b"else" => Word::Else,
        b"enum" => Word::Enum,
        b"extern" => Word::Extern,
        b"false" => Word::False,
        b"fn" => Word::Fn,
        b"for" => Word::For,
        b"if" => Word::If,
        b"impl" => Word::Impl,
        b"in" => Word::In,
        b"let" => Word::Let,
        b"loop" => Word::Loop,
        b"match" => Word::Match,
        b"mod" => Word::Mod,
        b"move" => Word::Move,
        b"mut" => Word::Mut,
        b"pub" => Word::Pub,
        b"ref" => Word::Ref,
        b"return" => Word::Return,
        b"self" => Word::SelfValue,
        b"static" => Word::Static,
        b"struct" => Word::Struct,
        b"super" => Word::Super,
        b"trait" => Word::Trait,
        b"true" => Word::True,
        b"try" => Word::Try,
        b"type" => Word::Type,
        b"unsafe" => Word::Unsafe,
        b"use" => Word::Use,
        b"where" => Word::Where,
        b"while" => Word::While,
        b"yield" => Word::Yield,
        _ => return None,
    })
}
