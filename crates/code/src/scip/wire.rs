//! Reads the part of Protobuf's wire format that an index uses, without copying.

use lukasa_model::{Error, ErrorCode, Result};

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireValue<'a> {
    Number(u64),
    /// A string, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// Four or eight bytes; an index has no such fields.
    Fixed,
}

/// The fields of a message, in the order of its bytes.
#[derive(Clone)]
pub struct WireFields<'a> {
    rest: &'a [u8],
}

impl<'a> WireFields<'a> {
    pub fn new(message: &'a [u8]) -> WireFields<'a> {
        WireFields { rest: message }
    }

    pub fn next(&mut self) -> Result<Option<(u64, WireValue<'a>)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => WireValue::Number(self.number()?),
            1 => self.take(8).map(|_| WireValue::Fixed)?,
            2 => {
                let length = self.number()?;
                WireValue::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| WireValue::Fixed)?,
            other => return Err(damaged(format!("a field of kind {other}, which does not exist"))),
        };
        match tag >> 3 {
            0 => Err(damaged("a field without a number")),
            field => Ok(Some((field, value))),
        }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        let found = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) = found.ok_or_else(|| {
            damaged(format!("a field of {length} bytes where {} are left: it was cut off", self.rest.len()))
        })?;
        self.rest = rest;
        Ok(taken)
    }

    /// A varint: groups of seven bits, lowest first.
    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for place in 0..10 {
            let (byte, rest) = self.rest.split_first().ok_or_else(|| damaged("a number that was cut off"))?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << (place * 7);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(damaged("a number of more than ten bytes"))
    }
}

impl<'a> WireValue<'a> {
    pub fn number(self) -> Result<u64> {
        match self {
            WireValue::Number(number) => Ok(number),
            _ => Err(damaged("something else where a number belongs")),
        }
    }

    pub fn message(self) -> Result<&'a [u8]> {
        match self {
            WireValue::Bytes(bytes) => Ok(bytes),
            _ => Err(damaged("something else where a message belongs")),
        }
    }

    pub fn text(self) -> Result<&'a str> {
        std::str::from_utf8(self.message()?).map_err(|_| damaged("a text that is not UTF-8"))
    }

    /// Appends numbers that are written one by one or packed; more than `N` are an error.
    pub fn numbers<const N: usize>(self, into: &mut PackedNumbers<N>) -> Result<()> {
        match self {
            WireValue::Number(number) => into.add(number),
            WireValue::Bytes(bytes) => {
                let mut packed = WireFields::new(bytes);
                while !packed.rest.is_empty() {
                    into.add(packed.number()?)?;
                }
                Ok(())
            }
            WireValue::Fixed => Err(damaged("something else where numbers belong")),
        }
    }
}

/// At most `N` numbers.
#[derive(Clone, Copy, Debug)]
pub struct PackedNumbers<const N: usize> {
    list: [u32; N],
    len: usize,
}

impl<const N: usize> Default for PackedNumbers<N> {
    fn default() -> Self {
        PackedNumbers { list: [0; N], len: 0 }
    }
}

impl<const N: usize> PackedNumbers<N> {
    fn add(&mut self, number: u64) -> Result<()> {
        let place = self.list.get_mut(self.len).ok_or_else(|| damaged(format!("a range of more than {N} numbers")))?;
        // Negative numbers are encoded as very large ones.
        *place = u32::try_from(number)
            .ok()
            .filter(|n| *n <= i32::MAX as u32)
            .ok_or_else(|| damaged("a range with a number below zero"))?;
        self.len += 1;
        Ok(())
    }

    pub fn list(&self) -> &[u32] {
        &self.list[..self.len]
    }
}

pub fn damaged(what: impl std::fmt::Display) -> Error {
    Error::invalid(ErrorCode::InvalidScip, format!("this is no readable SCIP index: it has {what}"))
        .hint("make the index again; it must be a .scip file as indexers write it, not compressed and not JSON")
}
