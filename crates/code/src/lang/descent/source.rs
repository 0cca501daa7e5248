//! A source text as bytes, with helpers for names, strings, comments and lines that most lexers share.

use super::{ParseResult, UnsupportedSyntax};
use crate::convert::to_u32;

#[derive(Clone, Copy)]
pub struct SourceBytes<'t> {
    pub text: &'t str,
    bytes: &'t [u8],
}

/// The operators that begin with `>`.
pub enum GreaterOperator {
    Alone,
    /// `>=`
    Compare,
    /// `>>`, `>>>`
    Shift,
    /// `>>=`, `>>>=`
    Augmented,
}

impl<'t> SourceBytes<'t> {
    /// The source, and the offset of its first byte after a byte order mark.
    pub fn new(text: &'t str) -> ParseResult<(SourceBytes<'t>, u32)> {
        let bytes = text.as_bytes();
        if bytes.len() >= u32::MAX as usize {
            return Err(UnsupportedSyntax);
        }
        let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Ok((SourceBytes { text, bytes }, start))
    }

    /// The byte at an offset; zero after the end.
    pub fn byte(self, at: u32) -> u8 {
        self.bytes.get(at as usize).copied().unwrap_or(0)
    }

    pub fn rest(self, at: u32) -> &'t [u8] {
        self.bytes.get(at as usize..).unwrap_or(&[])
    }

    pub fn between(self, from: u32, to: u32) -> &'t [u8] {
        &self.bytes[from as usize..to as usize]
    }

    pub fn ends_at(self, at: u32) -> bool {
        at as usize >= self.bytes.len()
    }

    /// The end of a name: letters and digits of all alphabets, `_`, and `$` if `dollar`.
    pub fn name_end(self, start: u32, dollar: bool) -> ParseResult<u32> {
        let mut at = start as usize;
        while let Some(byte) = self.bytes.get(at) {
            if byte.is_ascii_alphanumeric() || *byte == b'_' || dollar && *byte == b'$' {
                at += 1;
            } else if byte.is_ascii() {
                break;
            } else {
                let letter = self.text.get(at..).and_then(|rest| rest.chars().next()).ok_or(UnsupportedSyntax)?;
                if !letter.is_alphanumeric() {
                    return Err(UnsupportedSyntax);
                }
                at += letter.len_utf8();
            }
        }
        Ok(to_u32(at))
    }

    /// The end of a string on one line with `\` as the escape character.
    pub fn string_end(self, start: u32, quote: u8) -> ParseResult<u32> {
        let mut at = start + 1;
        loop {
            at += to_u32(memchr::memchr3(quote, b'\\', b'\n', self.rest(at)).ok_or(UnsupportedSyntax)?);
            match self.byte(at) {
                b'\\' if self.byte(at + 1) == b'\r' && self.byte(at + 2) == b'\n' => at += 3,
                b'\\' => at += 2,
                b'\n' => return Err(UnsupportedSyntax),
                _ => return Ok(at + 1),
            }
        }
    }

    /// The end of the line that contains this offset, without its line break.
    pub fn line_end(self, at: u32) -> u32 {
        let rest = self.rest(at);
        let mut len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        if rest[..len].ends_with(b"\r") {
            len -= 1;
        }
        at + to_u32(len)
    }

    /// The end of `/* … */`.
    pub fn block_comment_end(self, start: u32) -> ParseResult<u32> {
        let len = memchr::memmem::find(self.rest(start + 2), b"*/").ok_or(UnsupportedSyntax)?;
        Ok(start + 2 + to_u32(len) + 2)
    }

    /// The end of a comment `/* … */` that may contain others.
    pub fn nested_comment_end(self, start: u32) -> ParseResult<u32> {
        let (mut at, mut depth) = (start + 2, 1);
        while depth > 0 {
            at += to_u32(memchr::memchr2(b'*', b'/', self.rest(at)).ok_or(UnsupportedSyntax)?);
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

    /// The operator that the `>` at an offset begins, and its length.
    pub fn greater(self, at: u32) -> (GreaterOperator, u32) {
        match (self.byte(at + 1), self.byte(at + 2), self.byte(at + 3)) {
            (b'>', b'>', b'=') => (GreaterOperator::Augmented, 4),
            (b'>', b'>', _) => (GreaterOperator::Shift, 3),
            (b'>', b'=', _) => (GreaterOperator::Augmented, 3),
            (b'>', _, _) => (GreaterOperator::Shift, 2),
            (b'=', _, _) => (GreaterOperator::Compare, 2),
            _ => (GreaterOperator::Alone, 1),
        }
    }
}
