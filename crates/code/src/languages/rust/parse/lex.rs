//! The lexer for Rust, including the comments between tokens, and the finer tokens of macro calls.

use super::kind;
use crate::convert::to_u32;
use crate::lang::descent::lexer::{self, LexicalRules, signs, words};
use crate::lang::descent::{self, ParseResult, UnsupportedSyntax};

pub type RustLexer<'t> = lexer::Lexer<'t, RustLexicalRules>;
type Token = descent::SourceToken<RustTokenKind>;

/// `<`, `>`, `&` and `|` are single tokens: only the parser knows the operator that they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RustTokenKind {
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

words! {
    RustTokenKind:
    As b"as", Async b"async", Await b"await", Break b"break", Const b"const", Continue b"continue", Crate b"crate",
    Dyn b"dyn", Else b"else", Enum b"enum", Extern b"extern", False b"false", Fn b"fn", For b"for", If b"if",
    Impl b"impl", In b"in", Let b"let", Loop b"loop", Match b"match", Mod b"mod", Move b"move", Mut b"mut",
    Pub b"pub", Ref b"ref", Return b"return", SelfValue b"self", Static b"static", Struct b"struct", Super b"super",
    Trait b"trait", True b"true", Try b"try", Type b"type", Unsafe b"unsafe", Use b"use", Where b"where",
    While b"while", Yield b"yield",
}

/// A token in a macro call.
pub enum MacroToken {
    Open(u8),
    Close(u8),
    /// `$`
    Dollar,
    /// The kind in the tree, and whether the node is named.
    Node(u16, bool),
}

signs! {
    RustTokenKind:
    Less [b'<'], Greater [b'>'], And [b'&'], Bar [b'|'], RangeClosed [b'.', b'.', b'='], Ellipsis [b'.', b'.', b'.'],
    Range [b'.', b'.'], Dot [b'.'], Path [b':', b':'], Colon [b':'], FatArrow [b'=', b'>'],
    Operator(kind::SIGN_EQUAL) [b'=', b'='], Assign [b'='], Operator(kind::SIGN_UNEQUAL) [b'!', b'='], Bang [b'!'],
    Arrow [b'-', b'>'], Augmented(kind::SIGN_ADD) [b'+', b'='], Augmented(kind::SIGN_SUBTRACT) [b'-', b'='],
    Augmented(kind::SIGN_MULTIPLY) [b'*', b'='], Augmented(kind::SIGN_DIVIDE_BY) [b'/', b'='],
    Augmented(kind::SIGN_REDUCE) [b'%', b'='], Augmented(kind::SIGN_XOR_WITH) [b'^', b'='], Plus [b'+'], Minus [b'-'],
    Star [b'*'], Operator(kind::SIGN_DIVIDE) [b'/'], Operator(kind::SIGN_REMAINDER) [b'%'],
    Operator(kind::SIGN_BIT_XOR) [b'^'], Comma [b','], Semicolon [b';'], Hash [b'#'], At [b'@'], Question [b'?'],
}

#[derive(Clone, Copy, Default)]
pub struct RustLexicalRules {
    /// After a dot, numbers are positions in a tuple: `x.0.1`.
    after_dot: bool,
}

impl LexicalRules for RustLexicalRules {
    type Kind = RustTokenKind;

    fn next(lexer: &mut RustLexer<'_>) -> ParseResult<Token> {
        let start = lexer.skip()?;
        let kind = match lexer.byte(start) {
            0 if lexer.source.ends_at(start) => RustTokenKind::End,
            b'0'..=b'9' => match lexer.number(start)? {
                kind::FLOAT_LITERAL => RustTokenKind::Float,
                _ => RustTokenKind::Int,
            },
            _ => match lexer.literal(start)? {
                Some(kind) => kind,
                None => lexer.operator(start, sign)?,
            },
        };
        lexer.state.after_dot = kind == RustTokenKind::Dot;
        Ok(lexer.token(kind, start))
    }
}

impl RustLexer<'_> {
    /// Skips white space and comments; returns the start of the next token.
    fn skip(&mut self) -> ParseResult<u32> {
        loop {
            let start = self.at;
            match self.byte(start) {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                _ if !self.comment(true)? => return Ok(start),
                _ => {}
            }
        }
    }

    /// Words and literals; moves `at` behind them.
    fn literal(&mut self, start: u32) -> ParseResult<Option<RustTokenKind>> {
        Ok(Some(match self.byte(start) {
            b'"' => self.text_end(start)?,
            b'\'' => self.quoted(start)?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => {
                if let Some(text) = self.prefixed(start)? {
                    return Ok(Some(text));
                }
                self.at = self.source.name_end(start, false)?;
                match self.source.between(start, self.at) {
                    b"_" => RustTokenKind::Blank,
                    word => keyword(word).map_or(RustTokenKind::Name, RustTokenKind::Word),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// `b"…"`, `r#"…"#`, `b'x'`, and `r#name`.
    fn prefixed(&mut self, start: u32) -> ParseResult<Option<RustTokenKind>> {
        let (first, second, third) = (self.byte(start), self.byte(start + 1), self.byte(start + 2));
        Ok(Some(match (first, second, third) {
            (b'b' | b'c', b'"', _) => self.text_end(start + 1)?,
            (b'b', b'\'', _) => match self.quoted(start + 1)? {
                RustTokenKind::Char => RustTokenKind::Char,
                _ => return Err(UnsupportedSyntax),
            },
            (b'r', b'"', _) | (b'r', b'#', b'"' | b'#') => self.raw_string(start + 1)?,
            (b'b' | b'c', b'r', b'"' | b'#') => self.raw_string(start + 2)?,
            (b'r', b'#', _) => {
                self.at = self.source.name_end(start + 2, false)?;
                if self.at == start + 2 || third.is_ascii_digit() {
                    return Err(UnsupportedSyntax);
                }
                RustTokenKind::Name
            }
            _ => return Ok(None),
        }))
    }

    fn text_end(&mut self, start: u32) -> ParseResult<RustTokenKind> {
        let mut at = start + 1;
        loop {
            at += to_u32(memchr::memchr2(b'"', b'\\', self.source.rest(at)).ok_or(UnsupportedSyntax)?);
            match self.byte(at) {
                // Invalid escapes, such as in `\u{…}`, are left to tree-sitter.
                b'\\' if matches!(self.byte(at + 1), b'u' | b'x') && !self.escapes(at) => {
                    return Err(UnsupportedSyntax);
                }
                b'\\' => at += 2,
                _ => break,
            }
        }
        self.at = at + 1;
        Ok(RustTokenKind::Str)
    }

    /// Whether `\x` or `\u` is followed by valid digits.
    fn escapes(&self, at: u32) -> bool {
        let digits = |from: u32, to: u32| (from..to).all(|at| self.byte(at).is_ascii_hexdigit());
        match (self.byte(at + 1), self.byte(at + 2)) {
            (b'x', _) => digits(at + 2, at + 4),
            (_, b'{') => {
                let len = self.source.rest(at + 3).iter().take(9).position(|byte| *byte == b'}');
                len.is_some_and(|len| len > 0 && digits(at + 3, at + 3 + to_u32(len)))
            }
            _ => digits(at + 2, at + 6),
        }
    }

    /// A raw string, from its first `#` or `"`.
    fn raw_string(&mut self, start: u32) -> ParseResult<RustTokenKind> {
        let hashes = self.source.rest(start).iter().take_while(|byte| **byte == b'#').count();
        let mut at = start + to_u32(hashes);
        if self.byte(at) != b'"' {
            return Err(UnsupportedSyntax);
        }
        loop {
            at += 1 + to_u32(memchr::memchr(b'"', self.source.rest(at + 1)).ok_or(UnsupportedSyntax)?);
            let closing = self.source.rest(at + 1).iter().take(hashes).take_while(|byte| **byte == b'#').count();
            if closing == hashes {
                self.at = at + 1 + to_u32(hashes);
                return Ok(RustTokenKind::RawStr);
            }
        }
    }

    /// A character, or a lifetime.
    fn quoted(&mut self, start: u32) -> ParseResult<RustTokenKind> {
        if self.byte(start + 1) == b'\\' {
            let code = matches!(self.byte(start + 2), b'u' | b'x');
            if code && !self.escapes(start + 1) {
                return Err(UnsupportedSyntax);
            }
            let from = start + 3;
            let len = memchr::memchr(b'\'', &self.source.rest(from)[..self.source.rest(from).len().min(12)]);
            let len = to_u32(len.ok_or(UnsupportedSyntax)?);
            if !code && len > 0 {
                return Err(UnsupportedSyntax);
            }
            self.at = from + len + 1;
            return Ok(RustTokenKind::Char);
        }
        let rest = self.source.text.get(start as usize + 1..).ok_or(UnsupportedSyntax)?;
        let letter = rest.chars().next().ok_or(UnsupportedSyntax)?;
        let behind = start + 1 + to_u32(letter.len_utf8());
        if letter != '\'' && self.byte(behind) == b'\'' {
            self.at = behind + 1;
            return Ok(RustTokenKind::Char);
        }
        self.at = self.source.name_end(start + 1, false)?;
        if self.at == start + 1 || self.byte(start + 1).is_ascii_digit() || self.byte(self.at) == b'#' {
            return Err(UnsupportedSyntax);
        }
        Ok(RustTokenKind::Lifetime)
    }

    fn number(&mut self, start: u32) -> ParseResult<u16> {
        let digits = |at: u32, part: fn(&u8) -> bool| {
            at + to_u32(self.source.rest(at).iter().take_while(|byte| part(byte)).count())
        };
        let decimal = |byte: &u8| byte.is_ascii_digit() || *byte == b'_';
        if self.byte(start) == b'0' && matches!(self.byte(start + 1), b'x' | b'o' | b'b') {
            let hex = self.byte(start + 1) == b'x';
            let end = match hex {
                true => digits(start + 2, |byte| byte.is_ascii_hexdigit() || *byte == b'_'),
                false => digits(start + 2, |byte| byte.is_ascii_digit() || *byte == b'_'),
            };
            if end == start + 2 {
                return Err(UnsupportedSyntax);
            }
            return self.suffixed(end, kind::INTEGER_LITERAL);
        }
        let mut end = digits(start, decimal);
        let mut float = false;
        if self.state.after_dot {
            return self.suffixed(end, kind::INTEGER_LITERAL);
        }
        if self.byte(end) == b'.' {
            let next = self.byte(end + 1);
            if next == b'_' || next >= 0x80 {
                return Err(UnsupportedSyntax);
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
                return Err(UnsupportedSyntax);
            }
            (float, end) = (true, exponent);
        }
        self.suffixed(end, if float { kind::FLOAT_LITERAL } else { kind::INTEGER_LITERAL })
    }

    /// The kind of a number with an optional type suffix.
    fn suffixed(&mut self, end: u32, kind: u16) -> ParseResult<u16> {
        let after = self.source.name_end(end, false)?;
        let suffix = self.source.between(end, after);
        if !suffix.is_empty() && (!is_primitive(suffix) || matches!(suffix, b"bool" | b"str" | b"char")) {
            return Err(UnsupportedSyntax);
        }
        self.at = after;
        Ok(kind)
    }

    /// The binary operator that the `<`, `>`, `&` or `|` at an offset begins: its kind, its length, and whether it
    /// assigns.
    pub fn split_operator(&self, at: u32) -> (u16, u32, bool) {
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
    pub fn piece(&mut self) -> ParseResult<(MacroToken, u32, u32)> {
        self.state.after_dot = false;
        let start = self.skip()?;
        let node = |kind| MacroToken::Node(kind, true);
        let piece = match self.byte(start) {
            first @ (b'(' | b'[' | b'{') => {
                self.at = start + 1;
                MacroToken::Open(first)
            }
            first @ (b')' | b']' | b'}') => {
                self.at = start + 1;
                MacroToken::Close(first)
            }
            b'$' => {
                self.at = start + 1;
                MacroToken::Dollar
            }
            b'0'..=b'9' => node(self.number(start)?),
            _ => match self.literal(start)? {
                None => {
                    let (kind, len) = self.tree_sign(start)?;
                    self.at = start + len;
                    MacroToken::Node(kind, false)
                }
                Some(RustTokenKind::Lifetime) => {
                    self.at = start + 1;
                    MacroToken::Node(kind::SIGN_QUOTE, false)
                }
                Some(RustTokenKind::Str) => node(kind::STRING_LITERAL),
                Some(RustTokenKind::RawStr) => node(kind::RAW_STRING_LITERAL),
                Some(RustTokenKind::Char) => node(kind::CHAR_LITERAL),
                Some(RustTokenKind::Blank) => MacroToken::Node(kind::SIGN_BLANK, false),
                Some(_) => tree_word(self.source.between(start, self.at)),
            },
        };
        Ok((piece, start, self.at))
    }

    /// Reads the name of a macro variable after its `$`; `false` if there is none.
    pub fn variable(&mut self) -> ParseResult<bool> {
        let first = self.byte(self.at);
        if !(first.is_ascii_alphabetic() || first == b'_') {
            return Ok(false);
        }
        let start = self.at;
        self.at = self.source.name_end(start, false)?;
        if self.source.between(start, self.at).is_ascii() { Ok(true) } else { Err(UnsupportedSyntax) }
    }

    /// Reads the separator and the sign of a repetition; returns the start of the sign.
    pub fn repeated(&mut self) -> ParseResult<u32> {
        let start = self.skip()?;
        let rest = self.source.rest(start);
        let len = rest.iter().take(8).position(|byte| matches!(byte, b'+' | b'*' | b'?')).ok_or(UnsupportedSyntax)?;
        if rest[..len].iter().any(|byte| matches!(byte, b'\n' | b'/' | b'"' | b'\'' | b'$' | b'(' | b')' | b'[' | b']'))
        {
            return Err(UnsupportedSyntax);
        }
        self.at = start + to_u32(len) + 1;
        Ok(self.at - 1)
    }

    fn tree_sign(&self, start: u32) -> ParseResult<(u16, u32)> {
        let (second, third) = (self.byte(start + 1), self.byte(start + 2));
        Ok(match (self.byte(start), second, third) {
            (b'<' | b'>' | b'&' | b'|', _, _) => {
                let (kind, len, _) = self.split_operator(start);
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
            _ => return Err(UnsupportedSyntax),
        })
    }
}

/// The kind of a word in a macro call.
fn tree_word(word: &[u8]) -> MacroToken {
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
    MacroToken::Node(kind, named)
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
