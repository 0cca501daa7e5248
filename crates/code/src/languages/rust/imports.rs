//! `use`, `mod x;` and `extern crate`: one import per bound name.

use super::Reader;
use crate::facts::{BindTarget, ImportId, ImportKind, SourceExpr};
use crate::tree::{TreeNode, line};

impl<'t> Reader<'t> {
    pub(super) fn use_declaration(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let public = kids.kind("visibility_modifier").is_some();
        if let Some(argument) = kids.field("argument") {
            self.use_tree(argument, "", public);
        }
    }

    fn use_tree(&mut self, node: TreeNode<'t>, prefix: &str, public: bool) {
        self.deeper((), |reader| reader.use_tree_inner(node, prefix, public));
    }

    fn use_tree_inner(&mut self, node: TreeNode<'t>, prefix: &str, public: bool) {
        match node.kind() {
            "use_list" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.use_tree(kid, prefix, public);
                }
            }
            "scoped_use_list" => {
                let kids = self.children(node);
                let path = kids.field("path").map_or("", |p| self.text(p));
                let path = joined(prefix, path);
                if let Some(list) = kids.field("list") {
                    self.use_tree(list, &path, public);
                }
            }
            "use_wildcard" => {
                let kids = self.children(node);
                let path = kids.named().next().map_or("", |p| self.text(p));
                self.use_all(&joined(prefix, path), line(node), public);
            }
            "use_as_clause" => {
                let kids = self.children(node);
                let path = kids.field("path").map_or("", |p| self.text(p));
                let alias = kids.field("alias").map_or("_", |a| self.word(a));
                self.use_leaf(line(node), prefix, path, Some(alias), public);
            }
            "ERROR" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.use_tree(kid, prefix, public);
                }
            }
            "identifier" | "scoped_identifier" | "self" | "crate" | "super" => {
                let path = self.text(node);
                self.use_leaf(line(node), prefix, path, None, public);
            }
            _ => {}
        }
    }

    /// A use tree that is available only as text.
    pub(super) fn use_text(&mut self, text: &str, prefix: &str, line: u32, public: bool) {
        self.deeper((), |reader| {
            let text = text.trim();
            if let Some((path, list)) = text.split_once('{') {
                let prefix = joined(prefix, path);
                let list = list.trim_end().strip_suffix('}').unwrap_or(list);
                let (mut depth, mut start) = (0u32, 0);
                for (at, byte) in list.bytes().enumerate() {
                    match byte {
                        b'{' => depth += 1,
                        b'}' => depth = depth.saturating_sub(1),
                        b',' if depth == 0 => {
                            reader.use_text(&list[start..at], &prefix, line, public);
                            start = at + 1;
                        }
                        _ => {}
                    }
                }
                if !list[start..].trim().is_empty() {
                    reader.use_text(&list[start..], &prefix, line, public);
                }
            } else if let Some(path) = text.strip_suffix('*') {
                reader.use_all(&joined(prefix, path), line, public);
            } else {
                let (path, alias) = match text.split_once(" as ") {
                    Some((path, alias)) => (path, Some(alias.trim())),
                    None => (text, None),
                };
                reader.use_leaf(line, prefix, path, alias, public);
            }
        });
    }

    fn use_all(&mut self, module: &str, line: u32, public: bool) {
        if module.is_empty() {
            return;
        }
        let import = self.b.import(module, ImportKind::All, None, line);
        if public {
            self.reexport(import, "*");
        }
    }

    fn use_leaf(&mut self, line: u32, prefix: &str, path: &str, alias: Option<&str>, public: bool) {
        let full = joined(prefix, path);
        let whole = full.strip_suffix("::self").unwrap_or(&full);
        let (module, what, name) = match whole.rsplit_once("::") {
            // `a::{self}` names the module itself; its name is the last part.
            _ if whole.len() < full.len() => (whole, ImportKind::Module, whole.rsplit("::").next().unwrap_or(whole)),
            Some((module, name)) => (module, ImportKind::Symbol(self.b.name(name)), name),
            None => (whole, ImportKind::Module, whole),
        };
        if module.is_empty() {
            return;
        }
        if alias == Some("_") {
            self.b.import(module, ImportKind::Nothing, None, line);
            // A trait imported as `_` has no name here, but is still a reference.
            let mut parts = whole.split("::");
            let first = self.free(parts.next().unwrap_or(whole));
            let used = parts.fold(first, |of, part| self.member(of, part));
            self.b.uses(used, line);
            return;
        }
        self.import(module, what, alias.unwrap_or(name), line, public);
    }

    pub(super) fn import(&mut self, module: &str, what: ImportKind, called: &str, line: u32, public: bool) {
        let name = self.b.name(called);
        let before = self.b.declared_in(self.b.scope, name);
        let import = self.b.import(module, what, Some(called), line);
        // `mod check; use check::check;`: one name for a module and a function.
        if let (Some(before), Some(var)) = (before, self.b.facts.imports[import].var) {
            let value = self.b.expr(SourceExpr::Var(before));
            self.b.bind(BindTarget::Var(var), value);
        }
        if public {
            self.reexport(import, called);
        }
    }

    fn reexport(&mut self, import: ImportId, name: &str) {
        let name = self.b.name(name);
        self.b.facts.imports[import].reexport = Some(name);
    }
}

/// Joins two parts of a path, without white space, `r#` and leading colons.
fn joined(prefix: &str, path: &str) -> String {
    let mut whole = String::with_capacity(prefix.len() + path.len() + 2);
    whole.push_str(prefix);
    for part in path.split("::") {
        let part = part.trim();
        let part = part.strip_prefix("r#").unwrap_or(part);
        if part.is_empty() {
            continue;
        }
        if !whole.is_empty() {
            whole.push_str("::");
        }
        whole.push_str(part);
    }
    whole
}
