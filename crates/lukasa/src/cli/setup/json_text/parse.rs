//! Parses JSON with comments into a tree of byte ranges.

use super::EditFault;
use jsonc_parser::ast::{ObjectPropName, Value as Parsed};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseError;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde_json::Value;
use std::ops::Range;

/// JSON with comments and trailing commas, as editors write it, and nothing else of JSON5.
const JSON: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// A parsed text.
pub struct JsonDocument {
    /// None if there is no value at all.
    pub root: Option<JsonNode>,
    /// All comments, in order.
    pub comments: Vec<Range<usize>>,
}

/// A value and its range in the text.
pub struct JsonNode {
    pub span: Range<usize>,
    pub kind: JsonKind,
}

pub enum JsonKind {
    Object(Vec<JsonMember>),
    Array(Vec<JsonNode>),
    Leaf(Value),
}

/// A member of an object, with the positions that an edit needs.
pub struct JsonMember {
    pub key: String,
    /// The position of its opening quote.
    pub key_at: usize,
    pub value: JsonNode,
    /// The position of the comma after it.
    pub comma: Option<usize>,
}

impl JsonNode {
    pub fn members(&self) -> &[JsonMember] {
        match &self.kind {
            JsonKind::Object(members) => members,
            _ => &[],
        }
    }

    pub fn value(&self) -> Value {
        match &self.kind {
            JsonKind::Object(members) => members.iter().map(|m| (m.key.clone(), m.value.value())).collect(),
            JsonKind::Array(nodes) => nodes.iter().map(JsonNode::value).collect(),
            JsonKind::Leaf(value) => value.clone(),
        }
    }
}

impl JsonDocument {
    /// Comments in an object, but not inside its members.
    pub fn comments_of<'a>(&'a self, object: &'a JsonNode) -> impl Iterator<Item = &'a Range<usize>> {
        let holds = |outer: &Range<usize>, inner: &Range<usize>| outer.start < inner.start && inner.end < outer.end;
        self.comments
            .iter()
            .filter(move |c| holds(&object.span, c) && !object.members().iter().any(|m| holds(&m.value.span, c)))
    }
}

pub fn document(text: &str) -> Result<JsonDocument, EditFault> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
    let parsed = parse_to_ast(body, &collect, &JSON).map_err(|e| fault(&e))?;
    let (comments, tokens) = parsed.tokens.unwrap_or_default().into_iter().partition(is_comment);
    let reader = Reader { body, before: text.len() - body.len(), tokens };
    Ok(JsonDocument {
        root: parsed.value.map(|root| reader.node(&root)).transpose()?,
        comments: comments.iter().map(|comment: &TokenAndRange<'_>| reader.span(comment)).collect(),
    })
}

fn is_comment(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}

fn fault(error: &ParseError) -> EditFault {
    let message = error.kind().to_string();
    let (first, rest) = message.split_at(message.chars().next().map_or(0, char::len_utf8));
    format!("line {}: {}{rest}", error.line_display(), first.to_lowercase())
}

struct Reader<'a> {
    body: &'a str,
    /// Bytes of the text before the body: a byte order mark.
    before: usize,
    /// All but comments, in order.
    tokens: Vec<TokenAndRange<'a>>,
}

impl Reader<'_> {
    fn span(&self, ranged: &impl Ranged) -> Range<usize> {
        let range = ranged.range();
        range.start + self.before..range.end + self.before
    }

    fn node(&self, parsed: &Parsed<'_>) -> Result<JsonNode, EditFault> {
        let kind = match parsed {
            Parsed::Object(object) => {
                let member = |prop: &jsonc_parser::ast::ObjectProp<'_>| {
                    let name = match &prop.name {
                        ObjectPropName::String(name) => name.range,
                        ObjectPropName::Word(name) => name.range,
                    };
                    let value = self.node(&prop.value)?;
                    let comma = self.comma_after(value.span.end);
                    Ok(JsonMember { key: self.leaf(&name)?, key_at: self.span(&name).start, value, comma })
                };
                JsonKind::Object(object.properties.iter().map(member).collect::<Result<_, EditFault>>()?)
            }
            Parsed::Array(array) => JsonKind::Array(
                array.elements.iter().map(|element| self.node(element)).collect::<Result<_, EditFault>>()?,
            ),
            leaf => JsonKind::Leaf(self.leaf(leaf)?),
        };
        Ok(JsonNode { span: self.span(parsed), kind })
    }

    /// A text, number or word. The parser accepts control characters in texts and zeros before numbers; agents do not.
    fn leaf<T: serde::de::DeserializeOwned>(&self, ranged: &impl Ranged) -> Result<T, EditFault> {
        let range = ranged.range();
        serde_json::from_str(&self.body[range.start..range.end]).map_err(|_| {
            let line = self.body[..range.start].matches('\n').count() + 1;
            format!("line {line}: a value contains something that JSON does not allow")
        })
    }

    /// The position of the comma after a value that ends here.
    fn comma_after(&self, end: usize) -> Option<usize> {
        let next = self.tokens.partition_point(|token| self.span(token).start < end);
        let next = self.tokens.get(next)?;
        (next.token == Token::Comma).then(|| self.span(next).start)
    }
}
