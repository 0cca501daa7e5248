//! Parses the messages of a SCIP index that Lukasa uses, borrowing from its bytes.

use super::wire::{PackedNumbers, WireFields, damaged};
use lukasa_model::Result;
use rustc_hash::FxHashMap;

/// A whole index. Documents are parsed one by one, on demand.
pub struct ScipIndex<'a> {
    /// The name of the indexer.
    pub tool: &'a str,
    pub tool_version: &'a str,
    /// The folder that paths are relative to, as a URL; it may be on another machine.
    pub root: &'a str,
    /// The undecoded documents (see [`ScipDocument::read`]).
    pub documents: Vec<&'a [u8]>,
    /// Kinds of symbols that are defined outside the index.
    pub outside: FxHashMap<&'a str, u64>,
}

/// The unit of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnEncoding {
    Utf8,
    Utf16,
    Utf32,
}

/// What an index contains about one source file.
pub struct ScipDocument<'a> {
    pub path: &'a str,
    /// The source text; most indexers omit it.
    pub text: Option<&'a str>,
    /// The unit of columns, if the document declares it.
    pub encoding: Option<ColumnEncoding>,
    pub occurrences: Vec<Occurrence<'a>>,
    pub symbols: Vec<SymbolInformation<'a>>,
}

/// A place in the text that names a symbol.
#[derive(Clone, Copy, Debug)]
pub struct Occurrence<'a> {
    pub symbol: &'a str,
    /// The bits of [`role`].
    pub roles: u64,
    pub range: ScipRange,
}

/// Lines and columns, 0-based, the end exclusive; columns are in units of the document's encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScipRange {
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
}

/// What an index contains about one symbol.
#[derive(Clone, Debug, Default)]
pub struct SymbolInformation<'a> {
    pub symbol: &'a str,
    pub kind: u64,
    /// Symbols that this one implements or overrides.
    pub implements: Vec<&'a str>,
}

/// Bits of `Occurrence::roles`.
pub mod role {
    pub const DEFINITION: u64 = 1;
    pub const IMPORT: u64 = 2;
    /// A declaration whose definition is elsewhere.
    pub const FORWARD_DEFINITION: u64 = 0x40;
}

/// Values of `SymbolInformation::kind`.
pub mod kind {
    /// Parameter, `self`, `this`, type parameter.
    pub const PARAMETERS: [u64; 4] = [37, 44, 52, 58];
    /// Interface, protocol, trait.
    pub const INTERFACES: [u64; 3] = [21, 42, 53];
    /// Abstract methods, and their equivalents in Go, Swift, C++, Rust and Haskell.
    pub const ABSTRACT_METHODS: [u64; 6] = [66, 67, 68, 69, 70, 71];
}

impl<'a> ScipIndex<'a> {
    /// Parses an index. Fails with `invalid_scip` if the bytes are damaged or not an index.
    pub fn read(bytes: &'a [u8]) -> Result<ScipIndex<'a>> {
        let mut index =
            ScipIndex { tool: "", tool_version: "", root: "", documents: vec![], outside: FxHashMap::default() };
        let mut described = false;
        let mut fields = WireFields::new(bytes);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => {
                    described = true;
                    index.metadata(value.message()?)?;
                }
                2 => index.documents.push(value.message()?),
                3 => {
                    let information = SymbolInformation::read(value.message()?)?;
                    index.outside.insert(information.symbol, information.kind);
                }
                _ => {}
            }
        }
        // Every indexer writes metadata first. Without this check, any bytes could pass for an empty index.
        if described { Ok(index) } else { Err(damaged("no metadata")) }
    }

    fn metadata(&mut self, bytes: &'a [u8]) -> Result<()> {
        let mut fields = WireFields::new(bytes);
        while let Some((field, value)) = fields.next()? {
            match field {
                2 => {
                    let mut tool = WireFields::new(value.message()?);
                    while let Some((field, value)) = tool.next()? {
                        match field {
                            1 => self.tool = value.text()?,
                            2 => self.tool_version = value.text()?,
                            _ => {}
                        }
                    }
                }
                3 => self.root = value.text()?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Name and version of the indexer.
    pub fn made_by(&self) -> String {
        let tool = if self.tool.is_empty() { "an unnamed indexer" } else { self.tool };
        format!("{tool} {}", self.tool_version).trim_end().to_owned()
    }

    /// The unit of columns where a document does not declare it: that of the language the indexer is written in.
    pub fn usual_encoding(&self) -> ColumnEncoding {
        match self.tool {
            "rust-analyzer" | "scip-go" | "scip-clang" | "scip-ruby" => ColumnEncoding::Utf8,
            _ => ColumnEncoding::Utf16,
        }
    }
}

impl<'a> ScipDocument<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<ScipDocument<'a>> {
        let mut document = ScipDocument { path: "", text: None, encoding: None, occurrences: vec![], symbols: vec![] };
        let mut fields = WireFields::new(bytes);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => document.path = value.text()?,
                2 => document.occurrences.extend(Occurrence::read(value.message()?)?),
                3 => document.symbols.push(SymbolInformation::read(value.message()?)?),
                5 => document.text = Some(value.text()?).filter(|text| !text.is_empty()),
                6 => {
                    document.encoding = match value.number()? {
                        1 => Some(ColumnEncoding::Utf8),
                        2 => Some(ColumnEncoding::Utf16),
                        3 => Some(ColumnEncoding::Utf32),
                        _ => None,
                    }
                }
                _ => {}
            }
        }
        Ok(document)
    }
}

impl<'a> Occurrence<'a> {
    /// `None` for occurrences that only highlight syntax.
    fn read(bytes: &'a [u8]) -> Result<Option<Occurrence<'a>>> {
        let (mut symbol, mut roles, mut old, mut typed) = ("", 0, PackedNumbers::<4>::default(), None);
        let mut fields = WireFields::new(bytes);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => value.numbers(&mut old)?,
                2 => symbol = value.text()?,
                3 => roles = value.number()?,
                8 => typed = Some(ScipRange::read::<3>(value.message()?)?),
                9 => typed = Some(ScipRange::read::<4>(value.message()?)?),
                _ => {}
            }
        }
        if symbol.is_empty() {
            return Ok(None);
        }
        let range = match typed {
            Some(range) => range,
            None => ScipRange::of(old.list())?,
        };
        Ok(Some(Occurrence { symbol, roles, range }))
    }
}

impl ScipRange {
    fn of(numbers: &[u32]) -> Result<ScipRange> {
        match *numbers {
            [line, column, end_column] => Ok(ScipRange { line, column, end_line: line, end_column }),
            [line, column, end_line, end_column] => Ok(ScipRange { line, column, end_line, end_column }),
            _ => Err(damaged(format!("a range of {} numbers", numbers.len()))),
        }
    }

    /// Reads a message whose fields are numbers; zeros are omitted from the message.
    fn read<const N: usize>(bytes: &[u8]) -> Result<ScipRange> {
        let mut numbers = [0u32; N];
        let mut fields = WireFields::new(bytes);
        while let Some((field, value)) = fields.next()? {
            let place = usize::try_from(field - 1).ok().and_then(|place| numbers.get_mut(place));
            if let Some(place) = place {
                let mut one = PackedNumbers::<1>::default();
                value.numbers(&mut one)?;
                *place = one.list().first().copied().unwrap_or(0);
            }
        }
        ScipRange::of(&numbers)
    }
}

impl<'a> SymbolInformation<'a> {
    fn read(bytes: &'a [u8]) -> Result<SymbolInformation<'a>> {
        let mut information = SymbolInformation::default();
        let mut fields = WireFields::new(bytes);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => information.symbol = value.text()?,
                4 => information.implements.extend(implemented(value.message()?)?),
                5 => information.kind = value.number()?,
                _ => {}
            }
        }
        Ok(information)
    }
}

/// The other symbol of a relationship, if this one implements it.
fn implemented(bytes: &[u8]) -> Result<Option<&str>> {
    let (mut symbol, mut implements) = ("", false);
    let mut fields = WireFields::new(bytes);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => symbol = value.text()?,
            3 => implements = value.number()? != 0,
            _ => {}
        }
    }
    Ok((implements && !symbol.is_empty()).then_some(symbol))
}
