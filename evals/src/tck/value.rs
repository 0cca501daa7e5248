//! Values in the notation of the TCK, and values of Lukasa in the same form.

use lukasa_graph::cypher::QueryResultReader;
use lukasa_graph::cypher::functions::{FunctionContext, find, float_text};
use lukasa_graph::cypher::value::Value;
use lukasa_graph::{Edge, Node, Snapshot};
use lukasa_model::Result as ModelResult;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Expected>),
    Map(BTreeMap<String, Expected>),
    Node(Vec<String>, BTreeMap<String, Expected>),
    Edge(String, BTreeMap<String, Expected>),
    /// Nodes and edges in turn; an edge with whether it points forward.
    Path(Vec<(Expected, bool)>),
}

impl Expected {
    /// Sorts labels, and, if `loose`, elements of lists, so that equal values have equal texts.
    pub fn settle(&mut self, loose: bool) {
        match self {
            Expected::List(items) => {
                items.iter_mut().for_each(|i| i.settle(loose));
                if loose {
                    items.sort_by_key(ToString::to_string);
                }
            }
            Expected::Map(entries) | Expected::Edge(_, entries) => entries.values_mut().for_each(|v| v.settle(loose)),
            Expected::Node(labels, entries) => {
                labels.sort();
                entries.values_mut().for_each(|v| v.settle(loose));
            }
            Expected::Path(parts) => parts.iter_mut().for_each(|(p, _)| p.settle(loose)),
            _ => {}
        }
    }

    pub fn to_value(&self) -> Option<Value> {
        Some(match self {
            Expected::Null => Value::Null,
            Expected::Bool(b) => Value::Bool(*b),
            Expected::Integer(n) => Value::Integer(*n),
            Expected::Float(f) => Value::Float(*f),
            Expected::Text(t) => Value::text(t),
            Expected::List(items) => Value::list(items.iter().map(Expected::to_value).collect::<Option<_>>()?),
            Expected::Map(entries) => {
                let entries = entries.iter().map(|(k, v)| Some((k.clone(), v.to_value()?)));
                Value::Map(Arc::new(entries.collect::<Option<_>>()?))
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = |entries: &BTreeMap<String, Expected>| {
            let all: Vec<_> = entries.iter().map(|(k, v)| format!("{k}: {v}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        match self {
            Expected::Null => f.write_str("null"),
            Expected::Bool(b) => write!(f, "{b}"),
            Expected::Integer(n) => write!(f, "{n}"),
            Expected::Float(x) => f.write_str(&float_text(if *x == 0.0 { 0.0 } else { *x })),
            Expected::Text(t) => write!(f, "'{t}'"),
            Expected::List(items) => {
                let all: Vec<_> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", all.join(", "))
            }
            Expected::Map(map) => f.write_str(&entries(map)),
            Expected::Node(labels, map) => {
                let labels: String = labels.iter().map(|l| format!(":{l}")).collect();
                write!(f, "({labels} {})", entries(map))
            }
            Expected::Edge(name, map) => write!(f, "[:{name} {}]", entries(map)),
            Expected::Path(parts) => {
                f.write_str("<")?;
                for (part, forward) in parts {
                    match part {
                        Expected::Edge(..) if *forward => write!(f, "-{part}->")?,
                        Expected::Edge(..) => write!(f, "<-{part}-")?,
                        _ => write!(f, "{part}")?,
                    }
                }
                f.write_str(">")
            }
        }
    }
}

pub fn from_value(value: &Value, snapshot: &Snapshot, reader: &QueryResultReader<'_>) -> ModelResult<Expected> {
    let named = |all: Vec<(Arc<str>, Value)>| -> ModelResult<BTreeMap<String, Expected>> {
        all.into_iter().map(|(k, v)| Ok((k.to_string(), from_value(&v, snapshot, reader)?))).collect()
    };
    let node = |n: Node| -> ModelResult<Expected> {
        let labels = reader.labels(n).iter().map(ToString::to_string).collect();
        Ok(Expected::Node(labels, named(reader.node(n)?)?))
    };
    let edge = |e: Edge| -> ModelResult<Expected> {
        Ok(Expected::Edge(snapshot.edge_type(e).to_string(), named(reader.edge(e)?)?))
    };
    Ok(match value {
        Value::Null => Expected::Null,
        Value::Bool(b) => Expected::Bool(*b),
        Value::Integer(n) => Expected::Integer(*n),
        Value::Float(x) => Expected::Float(*x),
        Value::Text(t) => Expected::Text(t.to_string()),
        Value::List(items) => {
            Expected::List(items.iter().map(|v| from_value(v, snapshot, reader)).collect::<ModelResult<_>>()?)
        }
        Value::Map(entries) => {
            let entries = entries.iter().map(|(k, v)| Ok((k.clone(), from_value(v, snapshot, reader)?)));
            Expected::Map(entries.collect::<ModelResult<_>>()?)
        }
        Value::Node(n) => node(*n)?,
        Value::Edge(e) => edge(*e)?,
        Value::Path(path) => {
            let mut parts = vec![(node(path.nodes[0])?, true)];
            for (i, e) in path.edges.iter().enumerate() {
                parts.push((edge(*e)?, snapshot.ends(*e).0 == path.nodes[i]));
                parts.push((node(path.nodes[i + 1])?, true));
            }
            Expected::Path(parts)
        }
        // Dates and times are written as texts.
        other => {
            let around = FunctionContext { now: 0, longest_list: 1 };
            let text = find("toString").and_then(|f| (f.run)(std::slice::from_ref(other), &around).ok());
            match text {
                Some(Value::Text(t)) => Expected::Text(t.to_string()),
                _ => Expected::Null,
            }
        }
    })
}

/// Reads a value of a table.
pub fn read(text: &str) -> Result<Expected, String> {
    let mut reader = ValueParser { chars: text.chars().collect(), at: 0 };
    let value = reader.value()?;
    reader.space();
    if reader.at == reader.chars.len() { Ok(value) } else { Err(format!("`{text}` is no value of the TCK")) }
}

struct ValueParser {
    chars: Vec<char>,
    at: usize,
}

impl ValueParser {
    fn peek(&self) -> char {
        self.chars.get(self.at).copied().unwrap_or('\0')
    }

    fn space(&mut self) {
        while self.peek().is_whitespace() {
            self.at += 1;
        }
    }

    fn sign(&mut self, sign: &str) -> bool {
        self.space();
        let wanted: Vec<char> = sign.chars().collect();
        let found = self.chars[self.at.min(self.chars.len())..].starts_with(&wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.sign(sign) { Ok(()) } else { Err(format!("expected `{sign}` at {} of a value", self.at)) }
    }

    fn word(&mut self) -> String {
        self.space();
        if self.peek() == '`' {
            self.at += 1;
            let start = self.at;
            while self.peek() != '`' && self.peek() != '\0' {
                self.at += 1;
            }
            let word = self.chars[start..self.at].iter().collect();
            self.at += 1;
            return word;
        }
        let start = self.at;
        while self.peek().is_alphanumeric() || self.peek() == '_' {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn value(&mut self) -> Result<Expected, String> {
        self.space();
        match self.peek() {
            '\'' => self.text(),
            '{' => Ok(Expected::Map(self.map()?)),
            '<' => self.path(),
            '(' => self.node(),
            '[' => {
                if self.chars.get(self.at + 1) == Some(&':') {
                    return self.edge();
                }
                self.at += 1;
                let mut items = Vec::new();
                if self.sign("]") {
                    return Ok(Expected::List(items));
                }
                loop {
                    items.push(self.value()?);
                    if !self.sign(",") {
                        break;
                    }
                }
                self.expect("]")?;
                Ok(Expected::List(items))
            }
            _ => self.plain(),
        }
    }

    fn plain(&mut self) -> Result<Expected, String> {
        let start = self.at;
        while !matches!(self.peek(), ',' | ']' | '}' | ')' | '\0') && !self.peek().is_whitespace() {
            self.at += 1;
        }
        let word: String = self.chars[start..self.at].iter().collect();
        Ok(match word.as_str() {
            "null" => Expected::Null,
            "true" => Expected::Bool(true),
            "false" => Expected::Bool(false),
            "NaN" => Expected::Float(f64::NAN),
            "Inf" | "Infinity" => Expected::Float(f64::INFINITY),
            "-Inf" | "-Infinity" => Expected::Float(f64::NEG_INFINITY),
            word => match word.parse::<i64>() {
                Ok(n) => Expected::Integer(n),
                Err(_) => Expected::Float(word.parse().map_err(|_| format!("`{word}` is no value of the TCK"))?),
            },
        })
    }

    fn text(&mut self) -> Result<Expected, String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                '\0' => return Err("a text does not end".into()),
                '\'' => {
                    self.at += 1;
                    return Ok(Expected::Text(text));
                }
                '\\' if self.chars.get(self.at + 1).is_some_and(|c| "\\'\"".contains(*c)) => {
                    text.push(self.chars[self.at + 1]);
                    self.at += 2;
                }
                c => {
                    text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    fn map(&mut self) -> Result<BTreeMap<String, Expected>, String> {
        self.expect("{")?;
        let mut entries = BTreeMap::new();
        if self.sign("}") {
            return Ok(entries);
        }
        loop {
            let name = self.word();
            self.expect(":")?;
            entries.insert(name, self.value()?);
            if !self.sign(",") {
                break;
            }
        }
        self.expect("}")?;
        Ok(entries)
    }

    fn perhaps_map(&mut self) -> Result<BTreeMap<String, Expected>, String> {
        self.space();
        if self.peek() == '{' { self.map() } else { Ok(BTreeMap::new()) }
    }

    fn node(&mut self) -> Result<Expected, String> {
        self.expect("(")?;
        let mut labels = Vec::new();
        while self.sign(":") {
            labels.push(self.word());
        }
        let map = self.perhaps_map()?;
        self.expect(")")?;
        Ok(Expected::Node(labels, map))
    }

    fn edge(&mut self) -> Result<Expected, String> {
        self.expect("[")?;
        self.expect(":")?;
        let name = self.word();
        let map = self.perhaps_map()?;
        self.expect("]")?;
        Ok(Expected::Edge(name, map))
    }

    fn path(&mut self) -> Result<Expected, String> {
        self.expect("<")?;
        let mut parts = vec![(self.node()?, true)];
        while !self.sign(">") {
            let back = self.sign("<");
            self.expect("-")?;
            let edge = self.edge()?;
            self.expect("-")?;
            let forth = self.sign(">");
            parts.push((edge, forth && !back));
            parts.push((self.node()?, true));
        }
        Ok(Expected::Path(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        for (text, want) in [
            ("null", "null"),
            ("-1", "-1"),
            ("1.0", "1.0"),
            ("'it\\'s'", "'it's'"),
            ("[1, 'a', [null]]", "[1, 'a', [null]]"),
            ("{b: 1, a: []}", "{a: [], b: 1}"),
            ("(:B:A {n: 1})", "(:A:B {n: 1})"),
            ("[:T]", "[:T {}]"),
            ("<(:A)<-[:T {x: 1}]-()-[:U]->()>", "<(:A {})<-[:T {x: 1}]-( {})-[:U {}]->( {})>"),
        ] {
            let mut value = read(text).unwrap();
            value.settle(false);
            assert_eq!(value.to_string(), want);
        }
        for text in ["", "(", "[1", "1 2", "'a"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
