//! The front end for Go.
//!
//! A local name is visible only after its declaration, so each name is looked up where it is read. A name that is not
//! found then can only be at package level, which is known after the whole file has been read.

mod build;
mod builtins;
mod declarations;
mod docs;
mod language;
mod parse;
mod syntax;
#[cfg(test)]
mod tests;
mod types;
mod values;

use crate::builder::{Builder, FILE_SCOPE};
use crate::convert::to_u32;
use crate::facts::{
    BindTarget, DefId, ExprId, ExprItem, FileFacts, ItemKey, ListKind, Literal, NameId, ROOT, SourceExpr, UNKNOWN,
    VarId, VarKind, Visibility, flag,
};
use crate::languages::SourceFile;
use crate::tree::{self, SyntaxTree, TreeNode, line};
use docs::PrecedingComments;
pub(crate) use language::Go;
pub use parse::parse;
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

pub(crate) fn read(source: SourceFile<'_>, tree: &SyntaxTree) -> FileFacts {
    let SourceFile { path, text, .. } = source;
    let test_file = path.ends_with("_test.go");
    let mut b = Builder::new(source, test_file);
    let words = Words::new(&mut b);
    let mut reader = Reader {
        b,
        test_file,
        broken: tree.root().has_error(),
        results: SmallVec::new(),
        words,
        channels: Channels::default(),
    };
    reader.b.facts.build = build::constraint(path, text);
    let root = tree.root();
    reader.top(root);
    reader.b.finish(root)
}

struct Reader<'t> {
    b: Builder<'t>,
    test_file: bool,
    broken: bool,
    /// The named results of the function being read: the values of a bare `return`.
    results: SmallVec<[VarId; 2]>,
    words: Words,
    channels: Channels,
}

crate::lang::front_end!();

/// Expressions that occur often, created once per file.
struct Words {
    list: ExprId,
    map: ExprId,
    tuple: ExprId,
    number: ExprId,
    truth: ExprId,
    nothing: ExprId,
}

impl Words {
    fn new(b: &mut Builder<'_>) -> Words {
        let mut free = |name| {
            let name = b.name(name);
            b.expr(SourceExpr::Free(name))
        };
        let (list, map, tuple) = (free("[]"), free("{}"), free("()"));
        Words {
            list,
            map,
            tuple,
            number: b.expr(SourceExpr::Literal(Literal::Number)),
            truth: b.expr(SourceExpr::Literal(Literal::Bool)),
            nothing: b.expr(SourceExpr::Literal(Literal::Nothing)),
        }
    }
}

/// Known channels: `for x := range` yields the elements of a channel, and the keys of anything else.
#[derive(Default)]
struct Channels {
    types: FxHashSet<ExprId>,
    vars: FxHashSet<VarId>,
    fields: FxHashSet<NameId>,
}

type Values = SmallVec<[ExprId; 4]>;

impl<'t> Reader<'t> {
    fn inside<R>(&mut self, def: DefId, read: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.b.enter_def(def, false);
        let result = read(self);
        self.b.leave_def(before);
        result
    }

    fn scoped(&mut self, read: impl FnOnce(&mut Self)) {
        let before = self.b.open_scope();
        read(self);
        self.b.close_scope(before);
    }

    /// Whether a node in broken text is misplaced: after an unclosed brace, declarations at the margin appear to be
    /// inside a function.
    fn misplaced(&self, node: TreeNode<'t>) -> bool {
        self.broken && !self.at_top() && node.start_position().column == 0
    }

    fn outside(&mut self, read: impl FnOnce(&mut Self)) {
        let before = (self.b.owner, self.b.scope);
        (self.b.owner, self.b.scope) = (ROOT, FILE_SCOPE);
        read(self);
        self.b.leave_def(before);
    }

    /// Whether the current scope is the package level, where declarations are symbols.
    fn at_top(&self) -> bool {
        self.b.scope == FILE_SCOPE
    }

    // --- names ---

    fn read_name(&mut self, text: &str) -> ExprId {
        let name = self.b.name(text);
        if let Some(var) = self.b.find(self.b.scope, name) {
            return self.b.expr(SourceExpr::Var(var));
        }
        let here = std::mem::replace(&mut self.b.scope, FILE_SCOPE);
        let expr = self.b.read(text);
        self.b.scope = here;
        expr
    }

    fn bind_name(&mut self, text: &str, value: ExprId) {
        let name = self.b.name(text);
        if let Some(var) = self.b.find(self.b.scope, name) {
            self.bind_var(var, value);
            return;
        }
        let here = std::mem::replace(&mut self.b.scope, FILE_SCOPE);
        self.b.bind_name(text, value);
        self.b.scope = here;
    }

    fn bind_var(&mut self, var: VarId, value: ExprId) {
        if let SourceExpr::InstanceOf(ty) = self.b.facts.expr(value)
            && self.channels.types.contains(&ty)
        {
            self.channels.vars.insert(var);
        }
        if !self.plain(value) {
            self.b.bind(BindTarget::Var(var), value);
        }
    }

    /// Declares a local variable that is visible from here on.
    fn declare_local(&mut self, text: &str, ty: Option<ExprId>, value: ExprId) {
        if text == "_" {
            return;
        }
        let name = self.b.name(text);
        let var = self.b.declare(name, VarKind::Local, ty);
        self.bind_var(var, value);
    }

    /// Records a use of a name other than a call. Local variables are not symbols.
    fn note(&mut self, expr: ExprId, at: TreeNode<'_>) {
        if let SourceExpr::Var(var) = self.b.facts.expr(expr) {
            let var = &self.b.facts.vars[var];
            let symbol = matches!(var.what, VarKind::Def(_) | VarKind::Import(_));
            if var.owner != ROOT && !symbol {
                return;
            }
        }
        self.b.uses(expr, line(at));
    }

    /// Sets the visibility of a definition, from its first letter and its position.
    fn access(&mut self, def: DefId, name: &str) {
        let owner = self.b.facts.def(self.b.owner);
        let local = owner.kind.callable() || (owner.kind.type_like() && owner.visibility == Visibility::Private);
        let d = self.b.def(def);
        if local {
            d.visibility = Visibility::Private;
        } else if name.starts_with(char::is_uppercase) {
            d.visibility = Visibility::Public;
            d.flags |= flag::EXPORTED;
        } else {
            d.visibility = Visibility::Package;
        }
    }

    // --- statements ---

    /// Reads the declarations of the file, each with the comment above it.
    fn top(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let mut above = PrecedingComments::new();
        for kid in kids.all() {
            if !above.pass(kid) || !kid.is_named() {
                continue;
            }
            let doc = above.doc(kid, self.b.text);
            match kid.kind() {
                "package_clause" => {
                    let inner = self.children(kid);
                    if let Some(name) = inner.named().next() {
                        self.b.facts.package = self.text(name).into();
                    }
                    self.b.def(ROOT).doc = doc;
                }
                "import_declaration" => self.imports(kid),
                "function_declaration" => self.function(kid, doc),
                "method_declaration" => self.method(kid, doc),
                "type_declaration" => self.type_declaration(kid, doc),
                "var_declaration" | "const_declaration" => self.variables(kid, doc),
                "ERROR" => self.deeper((), |reader| reader.top(kid)),
                _ => self.statement(kid),
            }
        }
    }

    fn nested(&mut self, node: TreeNode<'t>) {
        self.deeper((), |reader| reader.statement(node));
    }

    fn each(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            self.nested(kid);
        }
    }

    fn statement(&mut self, node: TreeNode<'t>) {
        match node.kind() {
            "expression_statement" | "go_statement" | "defer_statement" => {
                let kids = self.children(node);
                for kid in kids.named() {
                    self.value(kid);
                }
            }
            "short_var_declaration" | "assignment_statement" | "receive_statement" => self.assignment(node),
            "return_statement" => self.returned(node),
            "block"
            | "if_statement"
            | "for_statement"
            | "expression_switch_statement"
            | "select_statement"
            | "expression_case"
            | "default_case"
            | "communication_case"
            | "type_case" => self.scoped(|reader| reader.each(node)),
            "statement_list" | "for_clause" | "labeled_statement" | "ERROR" | "inc_statement" | "dec_statement" => {
                self.each(node);
            }
            "range_clause" => self.range(node),
            "type_switch_statement" => self.scoped(|reader| reader.type_switch(node)),
            "send_statement" => {
                let kids = self.children(node);
                let channel = kids.field("channel").map_or(UNKNOWN, |n| self.used(n));
                let value = kids.field("value").map_or(UNKNOWN, |n| self.used(n));
                if channel != UNKNOWN {
                    self.b.bind(BindTarget::Element(channel), value);
                }
            }
            "var_declaration" | "const_declaration" | "type_declaration" if self.misplaced(node) => {
                self.outside(|reader| reader.statement(node));
            }
            "var_declaration" | "const_declaration" => self.variables(node, None),
            "type_declaration" => {
                let doc = tree::doc_above(node, self.b.text, |_| true);
                self.type_declaration(node, doc);
            }
            "function_declaration" => self.function(node, None),
            "method_declaration" => self.method(node, None),
            "import_declaration" => self.imports(node),
            "comment"
            | "label_name"
            | "break_statement"
            | "continue_statement"
            | "goto_statement"
            | "fallthrough_statement"
            | "empty_statement"
            | "package_clause" => {}
            _ => {
                self.used(node);
            }
        }
    }

    fn returned(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let value = match kids.named().next() {
            Some(list) if list.kind() == "expression_list" => {
                let inner = self.children(list);
                let values: Values = inner.named().map(|n| self.used(n)).collect();
                self.together(&values)
            }
            Some(other) => self.used(other),
            None => {
                // Only once: every further bare `return` has the same variables.
                let results = std::mem::take(&mut self.results);
                let values: Values = results.iter().map(|var| self.b.expr(SourceExpr::Var(*var))).collect();
                self.together(&values)
            }
        };
        self.b.returns(value, false);
    }

    /// One value as it is, several as a tuple.
    fn together(&mut self, values: &[ExprId]) -> ExprId {
        match values {
            [] => UNKNOWN,
            [one] => *one,
            several if several.iter().all(|v| *v == UNKNOWN) => UNKNOWN,
            several => {
                let items: SmallVec<[ExprItem; 4]> =
                    several.iter().map(|value| ExprItem { key: ItemKey::Next, value: *value }).collect();
                self.b.collection(ListKind::Tuple, &items)
            }
        }
    }

    fn assignment(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let declares = kids.has(":=");
        let right = kids.field("right");
        let Some(left) = kids.field("left") else {
            if let Some(right) = right {
                self.used(right);
            }
            return;
        };
        let targets = self.listed(left);
        let operator = kids.field("operator").map_or("", |o| o.kind());
        if !matches!(operator, "" | "=") {
            // `+=` and similar operators: arithmetic and strings, whose result is not tracked.
            for node in targets.into_iter().chain(right) {
                self.used(node);
            }
            return;
        }
        let values = self.values(right, targets.len());
        for (target, value) in targets.into_iter().zip(values) {
            self.store(target, value, declares);
        }
    }

    /// The expressions of a list, or the single expression.
    fn listed(&mut self, node: TreeNode<'t>) -> SmallVec<[TreeNode<'t>; 4]> {
        if node.kind() == "expression_list" {
            let kids = self.children(node);
            return kids.named().collect();
        }
        smallvec![node]
    }

    /// The values for a number of targets.
    fn values(&mut self, right: Option<TreeNode<'t>>, places: usize) -> Values {
        let sources = match right {
            Some(right) => self.listed(right),
            None => SmallVec::new(),
        };
        let mut values: Values = sources.iter().map(|n| self.used(*n)).collect();
        if let ([source], true) = (sources.as_slice(), places > 1) {
            let whole = values[0];
            // `v, ok := …`: the second value only reports whether the first exists.
            let with_ok = match self.bare(*source).kind() {
                "index_expression" | "type_assertion_expression" | "unary_expression" => true,
                _ => whole == UNKNOWN,
            };
            if !with_ok {
                values = (0..places).map(|place| self.b.expr(SourceExpr::AtIndex(whole, to_u32(place)))).collect();
            }
        }
        values.resize(places, UNKNOWN);
        values
    }

    /// The node without its parentheses.
    fn bare(&mut self, mut node: TreeNode<'t>) -> TreeNode<'t> {
        while matches!(node.kind(), "parenthesized_expression" | "parenthesized_type") {
            let kids = self.children(node);
            let Some(inner) = kids.named().next() else { break };
            node = inner;
        }
        node
    }

    fn store(&mut self, target: TreeNode<'t>, value: ExprId, declares: bool) {
        match target.kind() {
            "identifier" => {
                let text = self.text(target);
                if text == "_" {
                    return;
                }
                if declares {
                    let name = self.b.name(text);
                    match self.b.declared_in(self.b.scope, name) {
                        Some(var) => self.bind_var(var, value),
                        None => self.declare_local(text, None, value),
                    }
                } else {
                    self.bind_name(text, value);
                }
            }
            "selector_expression" => {
                let kids = self.children(target);
                let (Some(operand), Some(field)) = (kids.field("operand"), kids.field("field")) else { return };
                let object = self.value(operand);
                let name = self.text(field);
                let name = self.b.name(name);
                self.b.bind(BindTarget::Member(object, name), value);
            }
            "index_expression" => {
                let kids = self.children(target);
                let Some(operand) = kids.field("operand") else { return };
                let object = self.value(operand);
                let Some(index) = kids.field("index") else { return };
                let place = match self.string(index) {
                    Some(text) => BindTarget::At(object, self.b.name(text)),
                    None => {
                        self.used(index);
                        BindTarget::Element(object)
                    }
                };
                self.b.bind(place, value);
            }
            "unary_expression" | "parenthesized_expression" => {
                let kids = self.children(target);
                if let Some(inner) = kids.named().next() {
                    self.deeper((), |reader| reader.store(inner, value, declares));
                }
            }
            _ => {
                self.used(target);
            }
        }
    }

    fn range(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let over = kids.field("right").map_or(UNKNOWN, |n| self.used(n));
        let Some(left) = kids.field("left") else { return };
        let declares = kids.has(":=");
        let targets = self.listed(left);
        let elements_only = targets.len() == 1 && self.gives_elements(over);
        for (place, target) in targets.into_iter().enumerate() {
            let value = match (over, place) {
                (UNKNOWN, _) => UNKNOWN,
                (_, 0) if !elements_only => self.b.expr(SourceExpr::KeysOf(over)),
                _ => self.b.expr(SourceExpr::Element(over)),
            };
            self.store(target, value, declares);
        }
    }

    /// Whether `range` with one variable yields elements, as for channels and iterators, not keys, as for slices and
    /// maps. Calls are assumed to return iterators.
    fn gives_elements(&self, over: ExprId) -> bool {
        match self.b.facts.expr(over) {
            SourceExpr::Call(_) => true,
            SourceExpr::Var(var) => {
                self.channels.vars.contains(&var)
                    || self.b.facts.vars[var].ty.is_some_and(|ty| self.channels.types.contains(&ty))
            }
            SourceExpr::Member(_, name) => self.channels.fields.contains(&name),
            _ => false,
        }
    }

    /// `switch x := y.(type)`: each case has its own `x`.
    fn type_switch(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        if let Some(first) = kids.field("initializer") {
            self.nested(first);
        }
        let switched = kids.field("value").map_or(UNKNOWN, |n| self.used(n));
        let alias = match kids.field("alias") {
            Some(alias) => self.listed(alias).first().map(|n| self.text(*n)),
            None => None,
        };
        for case in kids.named() {
            if !matches!(case.kind(), "type_case" | "default_case" | "ERROR") {
                continue;
            }
            let inner = self.children(case);
            self.scoped(|reader| {
                let mut types = Values::new();
                for ty in inner.fields("type").filter(|n| n.is_named()) {
                    if reader.text(ty) == "nil" {
                        continue;
                    }
                    let asserted = reader.asserted(ty, switched);
                    types.push(asserted);
                }
                if let Some(alias) = alias {
                    let value = if types.is_empty() { switched } else { reader.b.either(&types) };
                    reader.declare_local(alias, None, value);
                }
                for body in inner.named().filter(|n| n.kind() == "statement_list") {
                    reader.nested(body);
                }
            });
        }
    }
}
