//! Builds the facts of one file: the part that all front ends share, mainly the resolution of names to variables.
//!
//! Names are resolved after the whole file has been read, so a use may precede its declaration. Languages where a
//! declaration is visible only after it (Rust, Go) open a scope per declaration.

use crate::convert::{to_place, to_u32};
use crate::facts::{
    Arg, ArgKind, BaseType, Bind, BindTarget, CallKind, CallSite, Def, DefId, DefKind, ExprId, ExprItem, FileFacts,
    ImportId, ImportKind, IndexRange, ItemKey, ListKind, NameId, NameReference, ROOT, Return, ReturnCondition,
    SourceExport, SourceExpr, SourceImport, SourceSpan, UNKNOWN, Var, VarId, VarKind, Visibility, flag,
};
use crate::ids::{BindId, IdVec};
use crate::languages::SourceFile;
use crate::tree::{self, TreeNode};
use rustc_hash::FxHashMap;

pub use crate::ids::ScopeId;

/// The scope of the file itself.
pub const FILE_SCOPE: ScopeId = ScopeId::new(0);

/// Deepest nesting that is followed. People do not write deeper, and generated text must not overflow the stack.
const DEPTH: u32 = 600;

/// The facts of a file while its syntax is read, with the scopes that names are resolved in.
pub struct Builder<'t> {
    pub text: &'t str,
    pub facts: FileFacts,
    /// The definition that contains the syntax being read.
    pub owner: DefId,
    pub scope: ScopeId,
    /// The condition under which the syntax being read is reached.
    pub when: ReturnCondition,
    scopes: IdVec<ScopeId, Scope>,
    declared: FxHashMap<(ScopeId, NameId), VarId>,
    known: FxHashMap<Box<str>, NameId>,
    /// Names to resolve at the end, with the scope they were read in.
    names_read: Vec<(ExprId, ScopeId)>,
    names_bound: Vec<(BindId, ScopeId)>,
    names_assigned: Vec<(NameId, ScopeId)>,
    depth: u32,
    too_deep: bool,
}

struct Scope {
    parent: ScopeId,
    /// Its names are visible to code directly in it, but not to functions inside: Python classes.
    own_only: bool,
    /// The function, class or file that the scope belongs to; a block has the owner of the enclosing scope.
    owner: DefId,
}

impl<'t> Builder<'t> {
    /// Begins a file; its first definition is the file itself, which may be one of tests.
    pub(crate) fn new(source: SourceFile<'t>, test_file: bool) -> Builder<'t> {
        let SourceFile { path, text, language } = source;
        let facts = FileFacts {
            language,
            names: IdVec::new(),
            defs: IdVec::new(),
            vars: IdVec::new(),
            exprs: vec![SourceExpr::Unknown].into(),
            items: vec![],
            args: vec![],
            calls: IdVec::new(),
            binds: IdVec::new(),
            impl_lines: vec![],
            returns: vec![],
            uses: vec![],
            imports: IdVec::new(),
            exports: vec![],
            package: "".into(),
            build: None,
            lines: to_u32(text.lines().count()),
            faults: vec![],
        };
        let mut builder = Builder {
            text,
            facts,
            owner: ROOT,
            scope: FILE_SCOPE,
            when: ReturnCondition::Always,
            scopes: vec![Scope { parent: FILE_SCOPE, own_only: false, owner: ROOT }].into(),
            declared: FxHashMap::default(),
            known: FxHashMap::default(),
            names_read: vec![],
            names_bound: vec![],
            names_assigned: vec![],
            depth: 0,
            too_deep: false,
        };
        let name = builder.name(path.rsplit('/').next().unwrap_or(path));
        let lines = builder.facts.lines.max(1);
        let mut root = blank(name, DefKind::File);
        root.flags = if test_file { flag::TEST } else { 0 };
        root.span = SourceSpan { end: to_u32(text.len()), line: 1, end_line: lines, ..SourceSpan::default() };
        builder.facts.defs.push(root);
        builder
    }

    /// The id of a name, which is added if it is new.
    pub fn name(&mut self, text: &str) -> NameId {
        if let Some(name) = self.known.get(text) {
            return *name;
        }
        let name = self.facts.names.push(text.into());
        self.known.insert(text.into(), name);
        name
    }

    // --- scopes and variables ---

    /// Opens a scope inside the current one and returns the current one, for `close_scope`.
    pub fn open_scope(&mut self) -> ScopeId {
        let before = self.scope;
        self.scope = self.scopes.push(Scope { parent: self.scope, own_only: false, owner: self.owner });
        before
    }

    /// Returns to the scope that `open_scope` returned.
    pub fn close_scope(&mut self, before: ScopeId) {
        self.scope = before;
    }

    /// The innermost scope that belongs to the current function, class or file: where `var` declares.
    pub fn function_scope(&self) -> ScopeId {
        let mut scope = self.scope;
        while scope != FILE_SCOPE && self.scopes[self.scopes[scope].parent].owner == self.owner {
            scope = self.scopes[scope].parent;
        }
        scope
    }

    /// The variable of this name that the scope itself declares.
    pub fn declared_in(&self, scope: ScopeId, name: NameId) -> Option<VarId> {
        self.declared.get(&(scope, name)).copied()
    }

    /// Declares a variable of the current owner. It hides an earlier one of the same name in the same scope.
    pub fn declare(&mut self, name: NameId, what: VarKind, ty: Option<ExprId>) -> VarId {
        self.declare_in(self.scope, name, what, ty)
    }

    /// Like `declare`, in a given scope.
    pub fn declare_in(&mut self, scope: ScopeId, name: NameId, what: VarKind, ty: Option<ExprId>) -> VarId {
        let owner = self.scopes[scope].owner;
        let var = self.facts.vars.push(Var { name, owner, what, ty, assigned: false });
        self.declared.insert((scope, name), var);
        var
    }

    /// The variable of this name in the scope, declared if it is missing.
    pub fn variable_in(&mut self, scope: ScopeId, name: NameId) -> VarId {
        match self.declared_in(scope, name) {
            Some(var) => var,
            None => self.declare_in(scope, name, VarKind::Local, None),
        }
    }

    /// Makes a name of the current scope refer to a variable of another: Python's `global` and `nonlocal`.
    pub fn alias(&mut self, name: NameId, var: VarId) {
        self.declared.insert((self.scope, name), var);
    }

    /// Binds a definition to its name in a scope. If the name is already declared, the variable may hold both.
    pub fn declare_def(&mut self, scope: ScopeId, def: DefId) -> VarId {
        let name = self.facts.defs[def].name;
        if let Some(var) = self.declared_in(scope, name) {
            let value = self.expr(SourceExpr::Def(def));
            self.bind(BindTarget::Var(var), value);
            return var;
        }
        self.declare_in(scope, name, VarKind::Def(def), None)
    }

    // --- definitions ---

    /// Adds a definition whose parent is the current owner.
    pub fn add_def(&mut self, name: &str, kind: DefKind, span: SourceSpan) -> DefId {
        let name = self.name(name);
        let mut def = blank(name, kind);
        def.parent = self.owner;
        def.span = span;
        self.facts.defs.push(def)
    }

    /// A definition that was added before.
    pub fn def(&mut self, def: DefId) -> &mut Def {
        &mut self.facts.defs[def]
    }

    /// Makes a definition the owner, with a new scope. `leave_def` restores the previous owner and scope.
    pub fn enter_def(&mut self, def: DefId, own_only: bool) -> (DefId, ScopeId) {
        let before = (self.owner, self.scope);
        self.owner = def;
        self.scope = self.scopes.push(Scope { parent: self.scope, own_only, owner: def });
        before
    }

    /// Restores the owner and the scope that `enter_def` returned.
    pub fn leave_def(&mut self, before: (DefId, ScopeId)) {
        (self.owner, self.scope) = before;
    }

    /// Adds a parameter to the current owner, at the next position.
    pub fn param(&mut self, name: &str, what: Option<VarKind>, ty: Option<ExprId>) -> VarId {
        let name = self.name(name);
        let place = to_place(self.facts.defs[self.owner].params.len());
        let var = self.declare(name, what.unwrap_or(VarKind::Param(place)), ty);
        let owner = self.owner;
        self.def(owner).params.push(var);
        var
    }

    /// Adds a base to a type.
    pub fn base(&mut self, def: DefId, how: crate::facts::BaseKind, of: ExprId, line: u32) {
        self.def(def).bases.push(BaseType { how, of, line });
    }

    // --- expressions ---

    /// Adds an expression.
    pub fn expr(&mut self, expr: SourceExpr) -> ExprId {
        if matches!(expr, SourceExpr::Unknown) {
            return UNKNOWN;
        }
        self.facts.exprs.push(expr)
    }

    /// Reads a name in the current scope; `finish` resolves it.
    pub fn read(&mut self, name: &str) -> ExprId {
        let name = self.name(name);
        let expr = self.expr(SourceExpr::Free(name));
        self.names_read.push((expr, self.scope));
        expr
    }

    /// Adds `of.name`.
    pub fn member(&mut self, of: ExprId, name: &str) -> ExprId {
        let name = self.name(name);
        self.expr(SourceExpr::Member(of, name))
    }

    /// Reads `a.b.c` or `a::b::c` in the current scope.
    pub fn read_path<'p>(&mut self, path: impl IntoIterator<Item = &'p str>) -> ExprId {
        let mut parts = path.into_iter();
        let Some(first) = parts.next() else { return UNKNOWN };
        let first = self.read(first);
        parts.fold(first, |of, name| self.member(of, name))
    }

    /// Adds items and returns their range.
    pub fn items(&mut self, items: &[ExprItem]) -> IndexRange {
        let start = to_u32(self.facts.items.len());
        self.facts.items.extend_from_slice(items);
        IndexRange { start, len: to_u32(items.len()) }
    }

    /// One of these values; unknown ones are dropped.
    pub fn either(&mut self, values: &[ExprId]) -> ExprId {
        let items: Vec<ExprItem> =
            values.iter().filter(|v| **v != UNKNOWN).map(|v| ExprItem { key: ItemKey::Next, value: *v }).collect();
        match items.as_slice() {
            [] => UNKNOWN,
            [one] => one.value,
            _ => {
                let range = self.items(&items);
                self.expr(SourceExpr::Either(range))
            }
        }
    }

    /// Adds a generic type with its arguments.
    pub fn generic(&mut self, of: ExprId, args: &[ExprId]) -> ExprId {
        let items: Vec<ExprItem> = args.iter().map(|v| ExprItem { key: ItemKey::Next, value: *v }).collect();
        let range = self.items(&items);
        self.expr(SourceExpr::Generic(of, range))
    }

    /// Adds a list, tuple, set or map literal.
    pub fn collection(&mut self, kind: ListKind, items: &[ExprItem]) -> ExprId {
        let range = self.items(items);
        self.expr(SourceExpr::Collection(kind, range))
    }

    // --- statements ---

    /// Adds a call by the current owner and returns its result as an expression.
    pub fn call(&mut self, callee: ExprId, how: CallKind, args: &[Arg], at: SourceSpan) -> ExprId {
        let start = to_u32(self.facts.args.len());
        self.facts.args.extend_from_slice(args);
        let args = IndexRange { start, len: to_u32(args.len()) };
        let call = CallSite { owner: self.owner, callee, how, args, line: at.line, column: at.column };
        let call = self.facts.calls.push(call);
        self.expr(SourceExpr::Call(call))
    }

    /// A call of a member that the language makes implicitly: `of.name(args)`.
    pub fn implicit(&mut self, of: ExprId, name: &str, args: &[ExprId], at: SourceSpan) -> ExprId {
        let callee = self.member(of, name);
        let args: Vec<Arg> = args.iter().map(|value| Arg { how: ArgKind::Place, value: *value }).collect();
        self.call(callee, CallKind::Implicit, &args, at)
    }

    /// Records the default of a parameter.
    pub fn bind_default(&mut self, param: VarId, value: ExprId) {
        if value != UNKNOWN {
            self.facts.binds.push(Bind { owner: self.owner, target: BindTarget::Var(param), value });
        }
    }

    /// Assigns a value to a target.
    pub fn bind(&mut self, target: BindTarget, value: ExprId) {
        if let BindTarget::Var(var) = target {
            self.facts.vars[var].assigned = true;
        }
        if value != UNKNOWN {
            self.facts.binds.push(Bind { owner: self.owner, target, value });
        }
    }

    /// Assigns to a name in the scope that declares it; `finish` resolves the name.
    pub fn bind_name(&mut self, name: &str, value: ExprId) {
        let name = self.name(name);
        self.names_assigned.push((name, self.scope));
        if value == UNKNOWN {
            return;
        }
        let bind = self.facts.binds.push(Bind { owner: self.owner, target: BindTarget::Free(name), value });
        self.names_bound.push((bind, self.scope));
    }

    /// Records a value that the current owner returns or yields.
    pub fn returns(&mut self, value: ExprId, yields: bool) {
        if value != UNKNOWN {
            self.facts.returns.push(Return { owner: self.owner, value, yields, when: self.when });
        }
    }

    /// Records a name that is used without a call.
    pub fn uses(&mut self, expr: ExprId, line: u32) {
        if expr != UNKNOWN {
            self.facts.uses.push(NameReference { owner: self.owner, expr, line });
        }
    }

    /// An import; with a name it declares a variable in the current scope.
    pub fn import(&mut self, module: &str, what: ImportKind, called: Option<&str>, line: u32) -> ImportId {
        let import = self.facts.imports.next_id();
        let var = called.map(|name| {
            let name = self.name(name);
            self.declare(name, VarKind::Import(import), None)
        });
        let owner = self.owner;
        self.facts.imports.push(SourceImport {
            owner,
            line,
            module: module.into(),
            what,
            var,
            type_only: false,
            only_in_tests: false,
            reexport: None,
        });
        import
    }

    /// Records a named export.
    pub fn export(&mut self, name: &str, value: ExprId) {
        let name = self.name(name);
        self.facts.exports.push(SourceExport { name, value });
    }

    /// Records a syntax error.
    fn fault(&mut self, line: u32, what: &str) {
        self.facts.faults.push((line, what.into()));
    }

    /// Goes one level deeper; `false` when the nesting is too deep to continue. `leave` goes back.
    #[must_use]
    pub fn enter(&mut self) -> bool {
        if self.depth >= DEPTH {
            self.too_deep = true;
            return false;
        }
        self.depth += 1;
        true
    }

    /// Goes back one level.
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Records the first syntax error below `root`, resolves names and returns the facts.
    pub(crate) fn finish(mut self, root: TreeNode<'_>) -> FileFacts {
        if let Some((line, what)) = tree::first_fault(root) {
            self.fault(line, &what);
        }
        if self.too_deep {
            self.fault(1, "nested too deeply: the innermost parts were left out");
        }
        for (expr, scope) in std::mem::take(&mut self.names_read) {
            if let SourceExpr::Free(name) = self.facts.exprs[expr]
                && let Some(var) = self.find(scope, name)
            {
                self.facts.exprs[expr] = SourceExpr::Var(var);
            }
        }
        for (name, scope) in std::mem::take(&mut self.names_assigned) {
            if let Some(var) = self.find(scope, name) {
                self.facts.vars[var].assigned = true;
            }
        }
        for (bind, scope) in std::mem::take(&mut self.names_bound) {
            if let BindTarget::Free(name) = self.facts.binds[bind].target
                && let Some(var) = self.find(scope, name)
            {
                self.facts.binds[bind].target = BindTarget::Var(var);
            }
        }
        self.facts
    }

    /// The variable that a name refers to in a scope: that of the nearest enclosing scope.
    pub fn find(&self, scope: ScopeId, name: NameId) -> Option<VarId> {
        let owner = self.scopes[scope].owner;
        let mut at = scope;
        loop {
            let here = &self.scopes[at];
            if (!here.own_only || here.owner == owner)
                && let Some(var) = self.declared.get(&(at, name))
            {
                return Some(*var);
            }
            if at == FILE_SCOPE {
                return None;
            }
            at = here.parent;
        }
    }
}

fn blank(name: NameId, kind: DefKind) -> Def {
    Def {
        name,
        kind,
        parent: ROOT,
        visibility: Visibility::Public,
        flags: 0,
        span: SourceSpan::default(),
        doc: None,
        summary: "".into(),
        hash: 0,
        signature: "".into(),
        params: vec![],
        result: None,
        bases: vec![],
        receiver: None,
        through: None,
        decorators: vec![],
    }
}
