//! Encodes small SCIP indexes for tests, message by message; the engine's tests use it too.

/// A message under construction.
#[derive(Clone, Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn raw(mut self, mut number: u64) -> Message {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    pub fn number(self, field: u64, number: u64) -> Message {
        self.raw(field << 3).raw(number)
    }

    pub fn bytes(self, field: u64, bytes: &[u8]) -> Message {
        let mut message = self.raw(field << 3 | 2).raw(bytes.len() as u64);
        message.0.extend_from_slice(bytes);
        message
    }

    pub fn text(self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    pub fn message(self, field: u64, message: &Message) -> Message {
        self.bytes(field, &message.0)
    }

    /// Numbers as one packed field, which is how indexers write ranges.
    pub fn packed(self, field: u64, numbers: &[u32]) -> Message {
        let packed = numbers.iter().fold(Message::default(), |list, number| list.raw(u64::from(*number)));
        self.bytes(field, &packed.0)
    }
}

/// The unit of columns that a document declares.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Units {
    Unsaid = 0,
    Utf8 = 1,
    Utf16 = 2,
    Utf32 = 3,
}

/// A document about a text. Positions are given by line (1-based), the word at the position, and its number on that
/// line.
#[derive(Clone)]
pub struct Doc {
    text: String,
    units: Units,
    pub message: Message,
}

impl Doc {
    pub fn new(path: &str, text: &str, units: Units) -> Doc {
        let mut message = Message::default().text(1, path).text(4, "Whatever");
        if units != Units::Unsaid {
            message = message.number(6, units as u64);
        }
        Doc { text: text.to_owned(), units, message }
    }

    /// Line, column and end column, 0-based, in the document's units.
    pub fn range(&self, line: usize, what: &str, nth: usize) -> [u32; 3] {
        let text = self.text.lines().nth(line - 1).unwrap_or_else(|| panic!("no line {line}"));
        let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let mut words = text.match_indices(what).filter(|(at, _)| {
            !inside(text[..*at].chars().next_back()) && !inside(text[at + what.len()..].chars().next())
        });
        let found = words.nth(nth).unwrap_or_else(|| panic!("no {what} in line {line}: {text}"));
        let count = |text: &str| match self.units {
            Units::Utf8 => text.len(),
            Units::Utf32 => text.chars().count(),
            Units::Utf16 | Units::Unsaid => text.encode_utf16().count(),
        };
        let start = count(&text[..found.0]);
        [line as u32 - 1, start as u32, (start + count(what)) as u32]
    }

    fn occurrence(mut self, range: &[u32], symbol: &str, roles: u64) -> Doc {
        let mut occurrence = Message::default().packed(1, range).text(2, symbol);
        if roles != 0 {
            occurrence = occurrence.number(3, roles);
        }
        self.message = self.message.message(2, &occurrence);
        self
    }

    /// The file itself as a symbol: indexers define it with an empty range at the beginning.
    pub fn file(self, symbol: &str) -> Doc {
        self.occurrence(&[0, 0, 0], symbol, 1)
    }

    pub fn define(self, line: usize, what: &str, symbol: &str) -> Doc {
        let range = self.range(line, what, 0);
        self.occurrence(&range, symbol, 1)
    }

    pub fn define_nth(self, line: usize, what: &str, nth: usize, symbol: &str) -> Doc {
        let range = self.range(line, what, nth);
        self.occurrence(&range, symbol, 1)
    }

    pub fn mention(self, line: usize, what: &str, symbol: &str) -> Doc {
        self.mention_nth(line, what, 0, symbol)
    }

    pub fn mention_nth(self, line: usize, what: &str, nth: usize, symbol: &str) -> Doc {
        let range = self.range(line, what, nth);
        self.occurrence(&range, symbol, 0)
    }

    /// The kind of a symbol, and the symbols that it implements.
    pub fn about(mut self, symbol: &str, kind: u64, implements: &[&str]) -> Doc {
        let information = information(symbol, kind, implements);
        self.message = self.message.message(3, &information);
        self
    }

    /// Adds the source text, which indexers may include.
    pub fn with_text(mut self) -> Doc {
        let text = self.text.clone();
        self.message = self.message.text(5, &text);
        self
    }
}

pub fn information(symbol: &str, kind: u64, implements: &[&str]) -> Message {
    let mut message = Message::default().text(1, symbol).text(3, "what it is for");
    for of in implements {
        message = message.message(4, &Message::default().text(1, of).number(2, 1).number(3, 1));
    }
    if kind != 0 { message.number(5, kind) } else { message }
}

/// A whole index of a tool.
pub fn index(tool: &str, root: &str, documents: &[Doc], outside: &[Message]) -> Vec<u8> {
    let tool = Message::default().text(1, tool).text(2, "1.2.3").text(3, "--verbose");
    let metadata = Message::default().message(2, &tool).text(3, root).number(4, 1);
    let index =
        documents.iter().fold(Message::default().message(1, &metadata), |index, d| index.message(2, &d.message));
    outside.iter().fold(index, |index, information| index.message(3, information)).0
}
