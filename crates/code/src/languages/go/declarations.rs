//! Functions, methods, variables, constants and imports.

use super::docs::PrecedingComments;
use super::{Reader, Values};
use crate::builder::FILE_SCOPE;
use crate::convert::to_place;
use crate::facts::{DefId, DefKind, ExprId, ImportKind, ROOT, SourceExpr, UNKNOWN, VarId, VarKind, flag};
use crate::tree::{NodeChildren, TreeNode, line, one_line, span};
use smallvec::SmallVec;

/// A parameter whose type was read, but that is not declared yet.
pub(super) struct GoParameter<'t> {
    name: &'t str,
    ty: ExprId,
    rest: bool,
}

pub(super) type GoParameters<'t> = SmallVec<[GoParameter<'t>; 4]>;

impl<'t> Reader<'t> {
    // --- functions ---

    pub(super) fn function(&mut self, node: TreeNode<'t>, doc: Option<Box<str>>) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.text(n));
        self.named_function(node, &kids, name, doc);
    }

    fn named_function(&mut self, node: TreeNode<'t>, kids: &NodeChildren<'t>, name: &str, doc: Option<Box<str>>) {
        let def = self.b.add_def(name, DefKind::Function, span(node));
        self.access(def, name);
        let signature = self.head(node, kids);
        let test = self.test_file && is_test(name);
        let entry = name == "init" || (name == "main" && &*self.b.facts.package == "main");
        let d = self.b.def(def);
        d.doc = doc;
        d.signature = signature.into();
        if test {
            d.flags |= flag::TEST;
        }
        if entry {
            d.flags |= flag::ENTRY;
        }
        if kids.field("body").is_none() {
            d.flags |= flag::DECLARED;
        }
        if name != "_" {
            let scope = self.b.scope;
            self.b.declare_def(scope, def);
        }
        self.callable(def, kids);
    }

    pub(super) fn method(&mut self, node: TreeNode<'t>, doc: Option<Box<str>>) {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.text(n));
        let def = self.b.add_def(name, DefKind::Method, span(node));
        self.access(def, name);
        let signature = self.head(node, &kids);
        // Test suites (testify, gocheck) run the methods with the names of tests.
        let test = self.test_file && name.starts_with("Test") && is_test(name);
        let d = self.b.def(def);
        d.parent = ROOT;
        d.doc = doc;
        d.signature = signature.into();
        d.flags |= flag::TAKES_SELF;
        if test {
            d.flags |= flag::TEST;
        }
        if kids.field("body").is_none() {
            d.flags |= flag::DECLARED;
        }
        self.callable(def, &kids);
    }

    pub(super) fn lambda(&mut self, node: TreeNode<'t>) -> ExprId {
        let kids = self.children(node);
        if self.misplaced(node)
            && let Some(name) = kids.kind("ERROR")
            && name.children().named().next().is_some_and(|n| n.kind() == "identifier")
        {
            let name = self.text(name);
            self.outside(|reader| reader.named_function(node, &kids, name, None));
            return UNKNOWN;
        }
        let def = self.b.add_def("<lambda>", DefKind::Lambda, span(node));
        self.b.def(def).flags |= flag::ARROW;
        self.callable(def, &kids);
        self.b.expr(SourceExpr::Def(def))
    }

    /// The text up to the body.
    fn head(&self, node: TreeNode<'t>, kids: &NodeChildren<'t>) -> String {
        let end = kids.field("body").map_or(node.end_byte(), |body| body.start_byte());
        one_line(self.b.text.get(node.start_byte()..end).unwrap_or(""))
    }

    /// Reads parameters, results and body of a function, method or literal.
    pub(super) fn callable(&mut self, def: DefId, kids: &NodeChildren<'t>) {
        let outer = std::mem::take(&mut self.results);
        self.inside(def, |reader| {
            if let Some(list) = kids.field("type_parameters") {
                reader.type_parameters(list);
            }
            // The types of parameters do not see the parameters, so all types are read before any is declared.
            let receiver = kids.field("receiver").map(|list| reader.receiver(def, list));
            let parameters = kids.field("parameters").map(|list| reader.parameters(list)).unwrap_or_default();
            let (result, named) = match kids.field("result") {
                Some(node) => reader.result(node),
                None => (None, GoParameters::new()),
            };
            reader.b.def(def).result = result;
            if let Some((name, ty)) = receiver {
                reader.b.param(name, None, Some(ty));
            }
            for parameter in parameters {
                let place = to_place(reader.b.facts.def(def).params.len());
                let what = parameter.rest.then_some(VarKind::Rest(place));
                if parameter.rest {
                    reader.b.def(def).flags |= flag::VARIADIC;
                }
                reader.b.param(parameter.name, what, Some(parameter.ty));
            }
            for result in named {
                let name = reader.b.name(result.name);
                let var = reader.b.declare(name, VarKind::Local, Some(result.ty));
                reader.results.push(var);
            }
            // The parameters are in the same scope as the body.
            if let Some(body) = kids.field("body") {
                reader.deeper((), |reader| reader.each(body));
            }
        });
        self.results = outer;
    }

    /// `(c *Context)`: the name and type of the receiver, without pointer and type arguments.
    fn receiver(&mut self, def: DefId, list: TreeNode<'t>) -> (&'t str, ExprId) {
        let kids = self.children(list);
        let Some(declaration) = kids.named().next() else { return ("_", UNKNOWN) };
        let inner = self.children(declaration);
        let name = inner.field("name").map_or("_", |n| self.text(n));
        let Some(mut ty) = inner.field("type") else { return (name, UNKNOWN) };
        while matches!(ty.kind(), "pointer_type" | "parenthesized_type") {
            let kids = self.children(ty);
            let Some(pointed) = kids.named().next() else { break };
            ty = pointed;
        }
        let mut arguments = Values::new();
        if ty.kind() == "generic_type" {
            let generic = self.children(ty);
            if let Some(list) = generic.field("type_arguments") {
                let parameters = self.children(list);
                for parameter in parameters.named() {
                    let name = self.text(parameter);
                    let name = self.b.name(name);
                    let var = self.b.declare(name, VarKind::TypeParam, None);
                    arguments.push(self.b.expr(SourceExpr::Var(var)));
                }
            }
            if let Some(base) = generic.field("type") {
                ty = base;
            }
        }
        // Looked up at package level: a type parameter must not hide the receiver, and the receiver is not a reference.
        let text = self.text(ty);
        let here = std::mem::replace(&mut self.b.scope, FILE_SCOPE);
        let of = self.b.read_path(text.split('.').map(str::trim));
        self.b.scope = here;
        self.b.def(def).receiver = Some(of);
        let ty = if arguments.is_empty() { of } else { self.b.generic(of, &arguments) };
        (name, ty)
    }

    pub(super) fn parameters(&mut self, list: TreeNode<'t>) -> GoParameters<'t> {
        let kids = self.children(list);
        let mut read = GoParameters::new();
        for kid in kids.named() {
            let rest = match kid.kind() {
                "parameter_declaration" => false,
                "variadic_parameter_declaration" => true,
                _ => continue,
            };
            let inner = self.children(kid);
            let mut ty = inner.field("type").map_or(UNKNOWN, |n| self.ty(n));
            if rest {
                ty = self.list_of(ty);
            }
            let before = read.len();
            for name in inner.fields("name") {
                read.push(GoParameter { name: self.text(name), ty, rest });
            }
            if read.len() == before {
                read.push(GoParameter { name: "_", ty, rest });
            }
        }
        read
    }

    /// The result type of a function, and the named results if there are any.
    pub(super) fn result(&mut self, node: TreeNode<'t>) -> (Option<ExprId>, GoParameters<'t>) {
        if node.kind() != "parameter_list" {
            return (Some(self.ty(node)), GoParameters::new());
        }
        let mut results = self.parameters(node);
        let result = match results.as_slice() {
            [] => None,
            [one] => Some(one.ty),
            several => {
                let types: Values = several.iter().map(|r| r.ty).collect();
                Some(self.b.generic(self.words.tuple, &types))
            }
        };
        let kids = self.children(node);
        let named = kids.named().next().is_some_and(|first| {
            let inner = self.children(first);
            inner.field("name").is_some()
        });
        if !named {
            results.clear();
        }
        (result, results)
    }

    pub(super) fn type_parameters(&mut self, list: TreeNode<'t>) {
        let kids = self.children(list);
        // Bounds may refer to later type parameters.
        let mut bounded: SmallVec<[(VarId, TreeNode<'t>); 4]> = SmallVec::new();
        for kid in kids.named() {
            let inner = self.children(kid);
            let Some(bound) = inner.field("type") else { continue };
            for name in inner.fields("name") {
                let name = self.text(name);
                let name = self.b.name(name);
                let var = self.b.declare(name, VarKind::TypeParam, None);
                bounded.push((var, bound));
            }
        }
        let mut last: Option<(TreeNode<'t>, ExprId)> = None;
        for (var, bound) in bounded {
            let ty = match last {
                Some((node, ty)) if node == bound => ty,
                _ => self.ty(bound),
            };
            last = Some((bound, ty));
            self.b.facts.vars[var].ty = (ty != UNKNOWN).then_some(ty);
        }
    }

    // --- variables ---

    pub(super) fn variables(&mut self, node: TreeNode<'t>, doc: Option<Box<str>>) {
        let mut group = Group { constant: node.kind() == "const_declaration", ty: None };
        let kids = self.children(node);
        let list = kids.kind("var_spec_list");
        if list.is_none() && !kids.has("(") {
            let mut doc = doc;
            for kid in kids.named() {
                self.specification(kid, node, doc.take(), &mut group);
            }
            return;
        }
        let kids = match list {
            Some(list) => self.children(list),
            None => kids,
        };
        let mut above = PrecedingComments::new();
        for kid in kids.all() {
            if above.pass(kid) && kid.is_named() {
                let doc = above.doc(kid, self.b.text);
                self.specification(kid, kid, doc, &mut group);
            }
        }
    }

    fn specification(&mut self, node: TreeNode<'t>, whole: TreeNode<'t>, doc: Option<Box<str>>, group: &mut Group) {
        if !matches!(node.kind(), "var_spec" | "const_spec") {
            self.nested(node);
            return;
        }
        let kids = self.children(node);
        let mut ty = kids.field("type").map(|n| self.ty(n));
        let value = kids.field("value");
        if group.constant {
            // A constant without a value repeats the previous one, including its type.
            if value.is_none() && ty.is_none() {
                ty = group.ty;
            }
            group.ty = ty;
        }
        let names: SmallVec<[TreeNode<'t>; 4]> = kids.fields("name").filter(|n| n.kind() == "identifier").collect();
        let values = self.values(value, names.len());
        for (name, value) in names.into_iter().zip(values) {
            let text = self.text(name);
            if text == "_" {
                continue;
            }
            if self.at_top() {
                let def = self.b.add_def(text, DefKind::Variable, span(whole));
                self.access(def, text);
                let word = if group.constant { "const " } else { "var " };
                let written = self.text(node);
                // The first line is enough for a table or a function.
                let (written, more) = match written.split_once('\n') {
                    Some((first, _)) => (first, " …"),
                    None => (written, ""),
                };
                let written = one_line(written);
                let d = self.b.def(def);
                d.signature = [word, &written, more].concat().into();
                d.doc = doc.clone();
                d.result = ty;
                if group.constant {
                    d.flags |= flag::CONSTANT;
                }
            }
            self.declare_local(text, ty, value);
        }
    }

    // --- imports ---

    pub(super) fn imports(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            match kid.kind() {
                "import_spec" => self.import(kid),
                "import_spec_list" | "ERROR" => self.deeper((), |reader| reader.imports(kid)),
                _ => {}
            }
        }
    }

    fn import(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(path) = kids.field("path") else { return };
        let module = self.string(path).unwrap_or("");
        let (what, called) = match kids.field("name").map(|n| (n.kind(), self.text(n))) {
            Some(("dot", _)) => (ImportKind::All, None),
            Some(("blank_identifier", _)) | Some((_, "_")) => (ImportKind::Nothing, None),
            Some((_, alias)) => (ImportKind::Module, Some(alias)),
            None => (ImportKind::Module, Some(usual_name(module))),
        };
        self.b.import(module, what, called, line(node));
    }
}

/// State shared by the specifications of one `const (…)`.
struct Group {
    constant: bool,
    ty: Option<ExprId>,
}

/// The likely name of a package; its path does not determine it.
fn usual_name(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    let name = match parts.next() {
        Some(before) if is_version(last) => before,
        _ => last,
    };
    match name.rsplit_once('.') {
        Some((name, version)) if is_version(version) => name,
        _ => name,
    }
}

fn is_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// As in `go test`: the prefix is not followed by a lower case letter.
fn is_test(name: &str) -> bool {
    ["Test", "Benchmark", "Fuzz", "Example"]
        .iter()
        .any(|word| name.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_lowercase)))
}
