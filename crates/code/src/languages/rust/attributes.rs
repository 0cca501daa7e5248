//! Documentation and attributes above an item.

use super::Reader;
use crate::facts::DefId;
use crate::tree::{self, NodeChildren, TreeNode, line};
use smallvec::SmallVec;

/// The doc comments and attributes read since the last item.
#[derive(Default)]
pub(super) struct PrecedingAttributes<'t> {
    pub attributes: SmallVec<[TreeNode<'t>; 4]>,
    doc: SmallVec<[&'t str; 4]>,
}

/// The effects of attributes on an item.
#[derive(Default)]
pub(super) struct AttributeEffects {
    pub test: bool,
    pub only_in_tests: bool,
    pub macro_export: bool,
}

impl<'t> PrecedingAttributes<'t> {
    pub fn comment(&mut self, text: &'t str) {
        if is_outer_doc(text) {
            self.doc.push(text);
        }
    }

    pub fn clear(&mut self) {
        self.attributes.clear();
        self.doc.clear();
    }

    pub fn doc(&self) -> Option<Box<str>> {
        match self.doc.as_slice() {
            [] => None,
            [one] => tree::clean_doc(one),
            several => tree::clean_doc(&several.iter().map(|l| l.trim_end()).collect::<Vec<_>>().join("\n")),
        }
    }
}

fn is_outer_doc(text: &str) -> bool {
    (text.starts_with("///") && !text.starts_with("////"))
        || (text.starts_with("/**") && !text.starts_with("/***") && !text.starts_with("/**/"))
}

/// Attributes of the language, which are not references.
const BUILT_IN: [&str; 33] = [
    "allow",
    "automatically_derived",
    "cfg",
    "cfg_attr",
    "cold",
    "default",
    "deny",
    "deprecated",
    "derive",
    "diagnostic",
    "doc",
    "expect",
    "export_name",
    "feature",
    "forbid",
    "global_allocator",
    "ignore",
    "inline",
    "link",
    "link_name",
    "macro_export",
    "macro_use",
    "must_use",
    "no_mangle",
    "non_exhaustive",
    "panic_handler",
    "path",
    "repr",
    "should_panic",
    "target_feature",
    "test",
    "track_caller",
    "warn",
];

/// Keys whose string values name a function or module, as in serde.
const NAMING: [&str; 7] =
    ["default", "with", "serialize_with", "deserialize_with", "skip_serializing_if", "getter", "schema_with"];

impl<'t> Reader<'t> {
    /// `//!` comments at the beginning of a file or module.
    pub(super) fn doc_inside(&mut self, kids: &NodeChildren<'t>) -> Option<Box<str>> {
        let mut lines: Vec<&str> = Vec::new();
        for kid in kids.all() {
            match kid.kind() {
                "line_comment" | "block_comment" => {
                    let text = self.text(kid);
                    if text.starts_with("//!") || text.starts_with("/*!") {
                        lines.push(text.trim_end());
                    } else if !lines.is_empty() {
                        break;
                    }
                }
                "{" | "shebang" | "inner_attribute_item" => {}
                _ => break,
            }
        }
        if lines.is_empty() { None } else { tree::clean_doc(&lines.join("\n")) }
    }

    /// Reads the attributes of a definition and records references to the names in them.
    pub(super) fn attributes(&mut self, def: DefId, above: &PrecedingAttributes<'t>) -> AttributeEffects {
        let mut marks = AttributeEffects::default();
        if above.attributes.is_empty() {
            return marks;
        }
        let owner = std::mem::replace(&mut self.b.owner, def);
        for item in &above.attributes {
            let kids = self.children(*item);
            if let Some(attribute) = kids.kind("attribute") {
                self.attribute(attribute, &mut marks);
            }
        }
        self.b.owner = owner;
        marks
    }

    fn attribute(&mut self, node: TreeNode<'t>, marks: &mut AttributeEffects) {
        let kids = self.children(node);
        let Some(path) = kids.named().next() else { return };
        let name = self.text(path);
        let last = name.rsplit("::").next().unwrap_or(name);
        let arguments = kids.field("arguments");
        match last {
            "cfg" => {
                marks.only_in_tests |= arguments.is_some_and(|a| says_test(self.text(a)));
                return;
            }
            "macro_export" => marks.macro_export = true,
            "derive" | "cfg_attr" => {
                if let Some(arguments) = arguments {
                    self.attribute_tokens(arguments, last == "derive");
                }
                return;
            }
            "test_case" | "quickcheck" | "bench" => marks.test = true,
            _ => marks.test |= last.ends_with("test"),
        }
        if BUILT_IN.binary_search(&name).is_ok() {
            return;
        }
        // On types and fields, single names belong to a derive: `#[serde(…)]`, `#[error(…)]`.
        if last.len() < name.len() || self.b.facts.def(self.b.owner).kind.callable() {
            let used = self.path(path);
            self.b.uses(used, line(path));
        }
        if let Some(arguments) = arguments {
            self.attribute_tokens(arguments, false);
        }
    }

    /// Names in an attribute: all of them in `derive(…)`, else those after `=`.
    fn attribute_tokens(&mut self, tree: TreeNode<'t>, derive: bool) {
        self.deeper((), |reader| {
            let tokens = reader.tokens_of(tree);
            let mut at = 0;
            while let Some(token) = tokens.get(at) {
                match token.kind() {
                    "identifier" if derive => {
                        reader.token_expression(&tokens, &mut at, false);
                        continue;
                    }
                    "=" => {
                        at += 1;
                        match tokens.get(at) {
                            Some(string) if string.kind() == "string_literal" => {
                                let key = at.checked_sub(2).and_then(|k| tokens.get(k)).map_or("", |k| reader.text(*k));
                                if NAMING.contains(&key) {
                                    reader.named_by_string(*string);
                                }
                                at += 1;
                            }
                            Some(_) => {
                                reader.token_expression(&tokens, &mut at, false);
                            }
                            None => {}
                        }
                        continue;
                    }
                    "token_tree" => {
                        let derive = at > 0 && reader.text(tokens[at - 1]) == "derive";
                        reader.attribute_tokens(*token, derive);
                    }
                    _ => {}
                }
                at += 1;
            }
        });
    }

    fn named_by_string(&mut self, node: TreeNode<'t>) {
        let text = self.text(node).trim_matches('"');
        if text.is_empty() || !text.split("::").all(is_identifier) {
            return;
        }
        let mut parts = text.split("::");
        let first = parts.next().unwrap_or(text);
        let many = text.len() > first.len();
        let first = match first {
            "crate" | "self" | "super" => self.free(first),
            _ if many => self.head(first),
            _ => self.named(first),
        };
        let named = parts.fold(first, |of, part| self.member(of, part));
        self.b.uses(named, line(node));
    }
}

/// Whether a `cfg(…)` holds only in tests.
fn says_test(text: &str) -> bool {
    let inner = text.trim_start_matches('(').trim_end_matches(')').trim();
    inner == "test"
        || (inner.starts_with("all")
            && !inner.contains("not")
            && inner.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "test"))
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
