//! Parses JSON with comments into a tree of byte ranges.

use super::Fault;
use serde_json::Value;
use std::ops::Range;

/// Deeper nesting does not occur in settings files.
const DEPTH: usize = 100;

pub struct Document {
    /// None if there is no value at all.
    pub root: Option<Node>,
    /// All comments, in order.
    pub comments: Vec<Range<usize>>,
}

pub struct Node {
    pub span: Range<usize>,
    pub kind: Kind,
}

pub enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Leaf(Value),
}

pub struct Member {
    pub key: String,
    /// The position of its opening quote.
    pub key_at: usize,
    pub value: Node,
    /// The position of the comma after it.
    pub comma: Option<usize>,
}

impl Node {
    pub fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) => members,
            _ => &[],
        }
    }

    pub fn value(&self) -> Value {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|m| (m.key.clone(), m.value.value())).collect(),
            Kind::Array(nodes) => nodes.iter().map(Node::value).collect(),
            Kind::Leaf(value) => value.clone(),
        }
    }
}

impl Document {
    /// Comments in an object, but not inside its members.
    pub fn comments_of<'a>(&'a self, object: &'a Node) -> impl Iterator<Item = &'a Range<usize>> {
        let holds = |outer: &Range<usize>, inner: &Range<usize>| outer.start < inner.start && inner.end < outer.end;
        self.comments
            .iter()
            .filter(move |c| holds(&object.span, c) && !object.members().iter().any(|m| holds(&m.value.span, c)))
    }
}

pub fn document(text: &str) -> Result<Document, Fault> {
    let mut parser = Parser { text, at: 0, comments: Vec::new() };
    if text.starts_with('\u{feff}') {
        parser.at = '\u{feff}'.len_utf8();
    }
    parser.skip()?;
    let root = if parser.at == text.len() { None } else { Some(parser.value(0)?) };
    parser.skip()?;
    if parser.at < text.len() {
        return Err(parser.fault("there is more after the end"));
    }
    Ok(Document { root, comments: parser.comments })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    comments: Vec<Range<usize>>,
}

impl Parser<'_> {
    fn fault(&self, what: &str) -> Fault {
        format!("line {}: {what}", self.text[..self.at].matches('\n').count() + 1)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), Fault> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            self.at += blank;
            let rest = &rest[blank..];
            let length = if rest.starts_with("//") {
                // The line ending is not part of the comment.
                rest.find('\n').map_or(rest.len(), |end| rest[..end].trim_end_matches('\r').len())
            } else if let Some(inside) = rest.strip_prefix("/*") {
                inside.find("*/").ok_or_else(|| self.fault("a comment does not end"))? + 4
            } else {
                return Ok(());
            };
            self.comments.push(self.at..self.at + length);
            self.at += length;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        if depth > DEPTH {
            return Err(self.fault("it is nested too deeply"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.object(depth)?),
            Some(b'[') => Kind::Array(self.array(depth)?),
            Some(b'"') => Kind::Leaf(Value::String(self.string()?)),
            _ => Kind::Leaf(self.word()?),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<Member>, Fault> {
        self.at += 1;
        let mut members: Vec<Member> = Vec::new();
        loop {
            self.skip()?;
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Ok(members);
                }
                Some(b'"') if members.last().is_none_or(|m| m.comma.is_some()) => {}
                Some(b'"') => return Err(self.fault("there is no comma before this")),
                _ => return Err(self.fault("a name in quotes or `}` is missing")),
            }
            let key_at = self.at;
            let key = self.string()?;
            self.skip()?;
            if self.peek() != Some(b':') {
                return Err(self.fault("there is no colon after a name"));
            }
            self.at += 1;
            self.skip()?;
            let value = self.value(depth + 1)?;
            self.skip()?;
            let comma = self.comma();
            members.push(Member { key, key_at, value, comma });
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Node>, Fault> {
        self.at += 1;
        let (mut nodes, mut more) = (Vec::new(), true);
        loop {
            self.skip()?;
            match self.peek() {
                Some(b']') => {
                    self.at += 1;
                    return Ok(nodes);
                }
                None => return Err(self.fault("a list does not end")),
                _ if !more => return Err(self.fault("there is no comma before this")),
                _ => nodes.push(self.value(depth + 1)?),
            }
            self.skip()?;
            more = self.comma().is_some();
        }
    }

    fn comma(&mut self) -> Option<usize> {
        let comma = (self.peek() == Some(b',')).then_some(self.at);
        self.at += usize::from(comma.is_some());
        comma
    }

    fn string(&mut self) -> Result<String, Fault> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(b'\n') | None => return Err(self.fault("a text does not end")),
                Some(_) => end += 1,
            }
        }
        let string = serde_json::from_str(&self.text[self.at..=end]);
        let string = string.map_err(|_| self.fault("a text has something in it that JSON does not allow"))?;
        self.at = end + 1;
        Ok(string)
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<Value, Fault> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
        let value =
            serde_json::from_str(&rest[..length]).map_err(|_| self.fault("a value is missing or is not JSON"))?;
        self.at += length;
        Ok(value)
    }
}
