//! Reads the part of Protobuf's wire format that an index uses, without copying.

use lukasa_model::{Error, ErrorCode, Result};

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Number(u64),
    /// A string, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// Four or eight bytes; an index has no such fields.
    Fixed,
}

/// The fields of a message, in the order of its bytes.
#[derive(Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    pub fn next(&mut self) -> Result<Option<(u64, Value<'a>)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.number()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
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

impl<'a> Value<'a> {
    pub fn number(self) -> Result<u64> {
        match self {
            Value::Number(number) => Ok(number),
            _ => Err(damaged("something else where a number belongs")),
        }
    }

    pub fn message(self) -> Result<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(damaged("something else where a message belongs")),
        }
    }

    pub fn text(self) -> Result<&'a str> {
        std::str::from_utf8(self.message()?).map_err(|_| damaged("a text that is not UTF-8"))
    }

    /// Appends numbers that are written one by one or packed; more than `N` are an error.
    pub fn numbers<const N: usize>(self, into: &mut Numbers<N>) -> Result<()> {
        match self {
            Value::Number(number) => into.add(number),
            Value::Bytes(bytes) => {
                let mut packed = Fields::new(bytes);
                while !packed.rest.is_empty() {
                    into.add(packed.number()?)?;
                }
                Ok(())
            }
            Value::Fixed => Err(damaged("something else where numbers belong")),
        }
    }
}

/// At most `N` numbers.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<const N: usize> {
    list: [u32; N],
    len: usize,
}

impl<const N: usize> Default for Numbers<N> {
    fn default() -> Self {
        Numbers { list: [0; N], len: 0 }
    }
}

impl<const N: usize> Numbers<N> {
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
