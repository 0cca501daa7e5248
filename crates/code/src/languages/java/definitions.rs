//! Classes of all kinds, methods, fields and their modifiers.

use super::{Class, Reader, is_doc, is_read};
use crate::builder::ScopeId;
use crate::convert::to_place;
use crate::facts::{
    Arg, ArgKind, BaseKind, BindTarget, CallKind, DefId, DefKind, ExprId, NameId, SourceExpr, UNKNOWN, VarId, VarKind,
    Visibility, flag,
};
use crate::tree::{self, NodeChildren, TreeNode, line, one_line, span};
use smallvec::SmallVec;

/// The modifiers of a declaration.
struct Modifiers<'t> {
    flags: u32,
    visibility: Option<Visibility>,
    annotations: SmallVec<[TreeNode<'t>; 4]>,
    /// The first word that is not an annotation.
    first_word: Option<usize>,
    /// Not abstract, even without a body: `default`, `native`.
    concrete: bool,
}

impl<'t> Reader<'t> {
    fn modifiers(&mut self, node: Option<TreeNode<'t>>) -> Modifiers<'t> {
        let mut modifiers =
            Modifiers { flags: 0, visibility: None, annotations: SmallVec::new(), first_word: None, concrete: false };
        let Some(node) = node else { return modifiers };
        let inner = self.children(node);
        for kid in inner.all() {
            match kid.kind() {
                "marker_annotation" | "annotation" => {
                    modifiers.annotations.push(kid);
                    continue;
                }
                "line_comment" | "block_comment" => continue,
                "public" => modifiers.visibility = Some(Visibility::Public),
                "protected" => modifiers.visibility = Some(Visibility::Protected),
                "private" => modifiers.visibility = Some(Visibility::Private),
                "abstract" => modifiers.flags |= flag::ABSTRACT,
                "static" => modifiers.flags |= flag::STATIC,
                "final" => modifiers.flags |= flag::FINAL,
                "default" | "native" => modifiers.concrete = true,
                _ => {}
            }
            modifiers.first_word.get_or_insert(kid.start_byte());
        }
        modifiers
    }

    fn annotations(&mut self, modifiers: &Modifiers<'t>) {
        for annotation in &modifiers.annotations {
            self.value(*annotation);
        }
    }

    /// The last part of an annotation's name.
    fn annotation_name(&self, annotation: TreeNode<'t>) -> &'t str {
        let text = self.text(annotation).trim_start_matches('@');
        let text = text.split('(').next().unwrap_or(text);
        text.rsplit('.').next().unwrap_or(text).trim()
    }

    /// From the first word that is not an annotation up to the body.
    fn signature(&self, kids: &NodeChildren<'t>, modifiers: &Modifiers<'t>, end: usize) -> Box<str> {
        let start = modifiers.first_word.or_else(|| {
            kids.all()
                .find(|k| !k.is_extra() && !matches!(k.kind(), "modifiers" | "marker_annotation" | "annotation"))
                .map(|k| k.start_byte())
        });
        let text = start.and_then(|start| self.b.text.get(start..end)).unwrap_or("");
        one_line(text.trim_end().trim_end_matches(';')).into()
    }

    /// The class whose body directly contains the current node.
    fn own_class(&self) -> Option<&Class<'t>> {
        self.class.as_ref().filter(|class| class.def == self.b.owner)
    }

    // --- classes ---

    pub(super) fn type_declaration(&mut self, node: TreeNode<'t>) -> DefId {
        let kids = self.children(node);
        let name = kids.field("name").map_or("", |n| self.text(n));
        let kind = match node.kind() {
            "enum_declaration" => DefKind::Enum,
            "interface_declaration" | "annotation_type_declaration" => DefKind::Interface,
            _ => DefKind::Class,
        };
        let record = node.kind() == "record_declaration";
        let modifiers = self.modifiers(kids.kind("modifiers"));
        let owner = self.b.facts.def(self.b.owner).kind;
        let visibility = modifiers.visibility.unwrap_or(match self.own_class() {
            Some(class) if class.interface => Visibility::Public,
            _ if owner.callable() => Visibility::Private,
            _ => Visibility::Package,
        });
        let mut flags = modifiers.flags | exported(visibility);
        if record {
            flags |= flag::FINAL;
        }
        if owner.type_like() && (record || kind != DefKind::Class || self.own_class().is_some_and(|c| c.interface)) {
            flags |= flag::STATIC;
        }
        let body = kids.field("body");
        let superclass = kids.field("superclass");
        let test_case = superclass.is_some_and(|s| {
            let text = self.text(s);
            text.split('<').next().unwrap_or(text).trim_end().ends_with("TestCase")
        });
        let test_name = ["Test", "Tests", "TestCase"].iter().any(|end| name.ends_with(end));
        if test_case || (test_name && self.test_file) {
            flags |= flag::TEST;
        }
        let def = self.b.add_def(name, kind, span(node));
        let signature = self.signature(&kids, &modifiers, body.map_or(node.end_byte(), |b| b.start_byte()));
        let doc = tree::doc_above(node, self.b.text, is_doc);
        let d = self.b.def(def);
        d.visibility = visibility;
        d.flags = flags;
        d.signature = signature;
        d.doc = doc;
        let scope = self.b.scope;
        self.b.declare_def(scope, def);
        self.inside(def, |reader| {
            reader.annotations(&modifiers);
            reader.type_parameters(kids.field("type_parameters"));
            if let Some(superclass) = superclass {
                reader.bases(def, BaseKind::Extends, superclass);
            }
            if let Some(interfaces) = kids.field("interfaces") {
                reader.bases(def, BaseKind::Implements, interfaces);
            }
            if let Some(interfaces) = kids.kind("extends_interfaces") {
                reader.bases(def, BaseKind::Extends, interfaces);
            }
            if let Some(permits) = kids.field("permits") {
                reader.types_in(permits);
            }
            let mut class = Class::new(def, name);
            class.interface = kind == DefKind::Interface;
            class.test = test_case || test_name;
            class.extends = superclass.is_some();
            reader.members(class, |reader| {
                if let Some(components) = kids.field("parameters") {
                    reader.components(def, components);
                }
                if let Some(body) = body {
                    reader.body(body);
                }
            });
            reader.faulty_kids(&kids);
        });
        def
    }

    fn bases(&mut self, def: DefId, how: BaseKind, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            if kid.kind() == "type_list" {
                let inner = self.children(kid);
                for base in inner.named() {
                    self.base(def, how, base);
                }
            } else {
                self.base(def, how, kid);
            }
        }
    }

    fn base(&mut self, def: DefId, how: BaseKind, node: TreeNode<'t>) {
        let of = self.named_type(node);
        if of != UNKNOWN {
            self.b.base(def, how, of, line(node));
        }
    }

    fn types_in(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            if kid.kind() == "type_list" {
                self.types_in(kid);
            } else {
                self.ty(kid);
            }
        }
    }

    fn members(&mut self, mut class: Class<'t>, read: impl FnOnce(&mut Self)) {
        let before = self.b.open_scope();
        class.methods = self.b.scope;
        self.b.close_scope(before);
        let before = self.b.open_scope();
        class.fields = self.b.scope;
        let outer = self.class.replace(class);
        read(self);
        self.class = outer;
        self.b.close_scope(before);
    }

    fn body(&mut self, body: TreeNode<'t>) {
        let kids = self.children(body);
        if let Some(rest) = kids.kind("enum_body_declarations") {
            let inner = self.children(rest);
            if let Some(class) = &mut self.class {
                class.constructs = inner.has("constructor_declaration");
            }
        }
        for kid in kids.all().filter(is_read) {
            self.visit(kid);
        }
    }

    /// The components of a record become fields, and parameters of the record, because its constructor is implicit.
    fn components(&mut self, record: DefId, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            let Some(parameter) = self.parameter(kid) else { continue };
            let def = self.b.add_def(parameter.name, DefKind::Field, span(kid));
            let signature = one_line(self.text(kid));
            let d = self.b.def(def);
            d.signature = signature.into();
            d.flags |= flag::EXPORTED | flag::FINAL;
            d.result = parameter.ty;
            let var = self.declare_field(parameter.name, parameter.ty);
            self.b.def(record).params.push(var);
        }
    }

    /// `new T(…) { … }`: a class extending `T`.
    pub(super) fn anonymous(
        &mut self,
        node: TreeNode<'t>,
        ty: TreeNode<'t>,
        base: ExprId,
        body: TreeNode<'t>,
    ) -> DefId {
        let written = self.text(ty);
        let written = written.split('<').next().unwrap_or(written).trim();
        let name = format!("<anonymous {written}>");
        let def = self.b.add_def(&name, DefKind::Class, span(node));
        let signature = one_line(self.b.text.get(node.start_byte()..body.start_byte()).unwrap_or(""));
        let d = self.b.def(def);
        d.visibility = Visibility::Private;
        d.signature = signature.into();
        if base != UNKNOWN {
            self.b.base(def, BaseKind::Extends, base, line(ty));
        }
        self.unnamed_body(def, body);
        def
    }

    fn unnamed_body(&mut self, def: DefId, body: TreeNode<'t>) {
        self.inside(def, |reader| reader.members(Class::new(def, ""), |reader| reader.body(body)));
    }

    /// A constant of an enum: a field whose value is a call of the enum's constructor; with a body, an anonymous class.
    pub(super) fn constant(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(name_node) = kids.field("name") else { return };
        let name = self.text(name_node);
        let modifiers = self.modifiers(kids.kind("modifiers"));
        self.annotations(&modifiers);
        let (of, constructs) = match self.own_class() {
            Some(class) => (class.name, class.constructs),
            None => ("", false),
        };
        let of = if of.is_empty() { UNKNOWN } else { self.b.read(of) };
        let arguments = kids.field("arguments");
        let args = arguments.map(|a| self.arguments(a)).unwrap_or_default();
        let body = kids.field("body");
        let kind = if body.is_some() { DefKind::Class } else { DefKind::Field };
        let def = self.b.add_def(name, kind, span(node));
        let signature = self.signature(&kids, &modifiers, body.map_or(node.end_byte(), |b| b.start_byte()));
        let doc = tree::doc_above(node, self.b.text, is_doc);
        let d = self.b.def(def);
        d.flags |= flag::CONSTANT | flag::STATIC | flag::FINAL | flag::EXPORTED;
        d.signature = signature;
        d.doc = doc;
        let ty = super::known(of);
        if body.is_none() {
            d.result = ty;
        }
        let var = self.declare_field(name, ty);
        let mut callee = of;
        if let Some(body) = body {
            if of != UNKNOWN {
                self.b.base(def, BaseKind::Extends, of, line(node));
            }
            self.unnamed_body(def, body);
            callee = self.b.expr(SourceExpr::Def(def));
        }
        if callee != UNKNOWN && (constructs || body.is_some() || arguments.is_some()) {
            let made = self.b.call(callee, CallKind::New, &args, span(node));
            self.b.bind(BindTarget::Var(var), made);
        }
    }

    // --- methods ---

    pub(super) fn method(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let Some(name_node) = kids.field("name") else { return };
        let name = self.text(name_node);
        let body = kids.field("body");
        let modifiers = self.modifiers(kids.kind("modifiers"));
        // In broken text, a method without a result type looks like a constructor.
        let constructor = matches!(node.kind(), "constructor_declaration" | "compact_constructor_declaration")
            && self.own_class().is_none_or(|class| class.name == name);
        let in_class = self.b.facts.def(self.b.owner).kind.type_like();
        let (interface, test_class, extends) =
            self.own_class().map_or((false, false, false), |c| (c.interface, c.test, c.extends));
        let visibility = modifiers.visibility.unwrap_or(match interface {
            true => Visibility::Public,
            false => Visibility::Package,
        });
        let mut flags = modifiers.flags | exported(visibility);
        if interface && body.is_none() && !modifiers.concrete && flags & flag::STATIC == 0 {
            flags |= flag::ABSTRACT;
        }
        if constructor {
            flags |= flag::CONSTRUCTOR;
        }
        if visibility == Visibility::Private {
            flags |= flag::FINAL;
        }
        let parameters = kids.field("parameters");
        let without_parameters = match parameters {
            Some(parameters) => parameters.children().named().next().is_none(),
            None => true,
        };
        let annotated = modifiers.annotations.iter().any(|a| {
            matches!(
                self.annotation_name(*a),
                "Test" | "ParameterizedTest" | "RepeatedTest" | "TestFactory" | "TestTemplate"
            )
        });
        let named = test_class
            && name.starts_with("test")
            && without_parameters
            && flags & flag::STATIC == 0
            && visibility != Visibility::Private;
        if annotated || (named && !constructor) {
            flags |= flag::TEST;
        }
        let kind = if in_class { DefKind::Method } else { DefKind::Function };
        let def = self.b.add_def(name, kind, span(node));
        let signature = self.signature(&kids, &modifiers, body.map_or(node.end_byte(), |b| b.start_byte()));
        let doc = tree::doc_above(node, self.b.text, is_doc);
        let d = self.b.def(def);
        d.flags = flags;
        d.visibility = visibility;
        d.signature = signature;
        d.doc = doc;
        self.declare_method(def);
        self.inside(def, |reader| {
            reader.annotations(&modifiers);
            reader.type_parameters(kids.field("type_parameters"));
            let result = reader.declared_type(kids.field("type"), kids.field("dimensions"));
            reader.b.def(def).result = result;
            if let Some(parameters) = parameters {
                reader.parameters(parameters);
            }
            if node.kind() == "compact_constructor_declaration" {
                reader.compact_parameters();
            }
            if let Some(throws) = kids.kind("throws") {
                reader.types_in(throws);
            }
            if let Some(value) = kids.field("value") {
                reader.used(value);
            }
            if let Some(body) = body {
                if constructor && extends {
                    reader.implicit_super(body, name_node);
                }
                reader.block(body);
            }
            reader.faulty_kids(&kids);
        });
        if self.begins_program(def, name, in_class, kids.field("type")) {
            self.b.def(def).flags |= flag::ENTRY;
        }
    }

    /// Whether a method is an entry point: `public static void main(String[] args)`, or a `main` outside of any class.
    fn begins_program(&mut self, def: DefId, name: &str, in_class: bool, ty: Option<TreeNode<'t>>) -> bool {
        if name != "main" || ty.is_none_or(|t| t.kind() != "void_type") {
            return false;
        }
        if !in_class {
            return true;
        }
        let d = self.b.facts.def(def);
        let [arguments] = d.params.as_slice() else { return false };
        let Some(ty) = self.b.facts.vars[*arguments].ty else { return false };
        d.is(flag::STATIC)
            && d.visibility == Visibility::Public
            && matches!(self.b.facts.expr(ty), SourceExpr::Generic(..))
    }

    /// Records the call of `super()` in a constructor that calls neither `this(…)` nor `super(…)`.
    fn implicit_super(&mut self, body: TreeNode<'t>, name: TreeNode<'t>) {
        let kids = self.children(body);
        if !kids.has("explicit_constructor_invocation") {
            let above = self.b.expr(SourceExpr::Super);
            self.b.call(above, CallKind::Implicit, &[], span(name));
        }
    }

    /// The parameters of a compact constructor: the components, which are assigned to the fields at the end.
    fn compact_parameters(&mut self) {
        let Some(record) = self.class.as_ref().map(|c| c.def) else { return };
        let components = self.b.facts.def(record).params.clone();
        for component in components {
            let component = &self.b.facts.vars[component];
            let (name, ty) = (component.name, component.ty);
            let owner = self.b.owner;
            let place = to_place(self.b.facts.def(owner).params.len());
            let var = self.b.declare(name, VarKind::Param(place), ty);
            self.b.def(owner).params.push(var);
            let this = self.b.expr(SourceExpr::This);
            let given = self.b.expr(SourceExpr::Var(var));
            self.b.bind(BindTarget::Member(this, name), given);
        }
    }

    /// Constructor calls written as `this(…)` and `super(…)`.
    pub(super) fn constructor_call(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        if let Some(object) = kids.field("object") {
            self.used(object);
        }
        if let Some(types) = kids.field("type_arguments") {
            self.type_arguments(types);
        }
        let callee = match kids.field("constructor").map(|c| c.kind()) {
            Some("this") => SourceExpr::This,
            _ => SourceExpr::Super,
        };
        let callee = self.b.expr(callee);
        let args = kids.field("arguments").map(|a| self.arguments(a)).unwrap_or_default();
        self.b.call(callee, CallKind::Plain, &args, span(node));
    }

    pub(super) fn parameters(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        for kid in kids.named() {
            let Some(parameter) = self.parameter(kid) else { continue };
            let owner = self.b.owner;
            let what = parameter.rest.then(|| {
                self.b.def(owner).flags |= flag::VARIADIC;
                VarKind::Rest(to_place(self.b.facts.def(owner).params.len()))
            });
            self.b.param(parameter.name, what, parameter.ty);
        }
    }

    fn parameter(&mut self, node: TreeNode<'t>) -> Option<Parameter<'t>> {
        match node.kind() {
            "identifier" => Some(Parameter { name: self.text(node), ty: None, rest: false }),
            "formal_parameter" => {
                let kids = self.children(node);
                if let Some(modifiers) = kids.kind("modifiers") {
                    self.value(modifiers);
                }
                let ty = self.declared_type(kids.field("type"), kids.field("dimensions"));
                let name = kids.field("name")?;
                Some(Parameter { name: self.text(name), ty, rest: false })
            }
            "spread_parameter" => {
                let kids = self.children(node);
                let mut ty = UNKNOWN;
                let mut name = None;
                for kid in kids.named() {
                    match kid.kind() {
                        "modifiers" | "marker_annotation" | "annotation" => {
                            self.value(kid);
                        }
                        "variable_declarator" => {
                            let inner = self.children(kid);
                            name = inner.field("name");
                        }
                        _ => ty = self.ty(kid),
                    }
                }
                let ty = self.array_of(ty);
                Some(Parameter { name: self.text(name?), ty: Some(ty), rest: true })
            }
            "receiver_parameter" => None,
            _ => {
                self.visit(node);
                None
            }
        }
    }

    // --- members and their variables ---

    pub(super) fn field(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let modifiers = self.modifiers(kids.kind("modifiers"));
        self.annotations(&modifiers);
        let interface = self.own_class().is_some_and(|c| c.interface);
        let visibility = modifiers.visibility.unwrap_or(match interface {
            true => Visibility::Public,
            false => Visibility::Package,
        });
        let mut flags = modifiers.flags | exported(visibility);
        if interface {
            flags |= flag::STATIC | flag::FINAL;
        }
        if flags & (flag::STATIC | flag::FINAL) == flag::STATIC | flag::FINAL {
            flags |= flag::CONSTANT;
        }
        let kind = if self.b.facts.def(self.b.owner).kind.type_like() { DefKind::Field } else { DefKind::Variable };
        let ty = self.declared_type(kids.field("type"), None);
        let doc = tree::doc_above(node, self.b.text, is_doc);
        let alone = kids.fields("declarator").count() == 1;
        for declarator in kids.fields("declarator") {
            let inner = self.children(declarator);
            let Some(name) = inner.field("name") else { continue };
            let ty = self.arrays(ty, inner.field("dimensions"));
            let value = inner.field("value");
            let end = match value {
                Some(value) if !(alone && short(value)) => {
                    inner.field("dimensions").map_or(name.end_byte(), |d| d.end_byte())
                }
                _ => declarator.end_byte(),
            };
            let signature = if alone {
                self.signature(&kids, &modifiers, end)
            } else {
                let before = kids.field("type").map_or(end, |t| t.end_byte());
                let written = self.b.text.get(declarator.start_byte()..end).unwrap_or("");
                format!("{} {}", self.signature(&kids, &modifiers, before), one_line(written)).into()
            };
            let text = self.text(name);
            let def = self.b.add_def(text, kind, span(if alone { node } else { declarator }));
            let d = self.b.def(def);
            d.flags = flags;
            d.visibility = visibility;
            d.signature = signature;
            d.doc.clone_from(&doc);
            d.result = ty;
            let var = self.declare_field(text, ty);
            if let Some(value) = value {
                // Variables declared by a pattern in it are not visible elsewhere.
                let value = self.scoped(|reader| reader.used(value));
                self.b.bind(BindTarget::Var(var), value);
            }
        }
        self.faulty_kids(&kids);
    }

    /// A field and the methods of the same name share one variable, because members are looked up by name alone.
    fn declare_field(&mut self, name: &str, ty: Option<ExprId>) -> VarId {
        let name = self.b.name(name);
        let Some((fields, methods)) = self.own_class().map(|c| (c.fields, c.methods)) else {
            return self.b.declare(name, VarKind::Local, ty);
        };
        if self.b.declared_in(fields, name).is_none()
            && let Some(var) = self.b.declared_in(methods, name)
        {
            if let VarKind::Def(method) = self.b.facts.vars[var].what {
                let value = self.b.expr(SourceExpr::Def(method));
                self.b.bind(BindTarget::Var(var), value);
            }
            let shared = &mut self.b.facts.vars[var];
            shared.what = VarKind::Local;
            shared.ty = ty;
            self.alias_in(fields, name, var);
            return var;
        }
        self.b.declare_in(fields, name, VarKind::Local, ty)
    }

    fn declare_method(&mut self, def: DefId) {
        let Some((fields, methods)) = self.own_class().map(|c| (c.fields, c.methods)) else {
            let scope = self.b.scope;
            self.b.declare_def(scope, def);
            return;
        };
        let name = self.b.facts.def(def).name;
        if self.b.declared_in(methods, name).is_none()
            && let Some(var) = self.b.declared_in(fields, name)
        {
            self.alias_in(methods, name, var);
        }
        self.b.declare_def(methods, def);
    }

    fn alias_in(&mut self, scope: ScopeId, name: NameId, var: VarId) {
        let before = std::mem::replace(&mut self.b.scope, scope);
        self.b.alias(name, var);
        self.b.scope = before;
    }

    pub(super) fn arguments(&mut self, node: TreeNode<'t>) -> SmallVec<[Arg; 4]> {
        let kids = self.children(node);
        let mut args = SmallVec::new();
        for kid in kids.all().filter(is_read) {
            if kid.is_error() {
                self.nested(kid);
            } else {
                args.push(Arg { how: ArgKind::Place, value: self.used(kid) });
            }
        }
        args
    }

    // --- broken text ---

    /// Reads an error node. The head of a class whose end is missing still determines the owner of the following
    /// members.
    pub(super) fn broken(&mut self, node: TreeNode<'t>) {
        let kids = self.children(node);
        let all: Vec<TreeNode<'t>> = kids.all().filter(|k| !k.is_extra() || k.is_error()).collect();
        let head = all.windows(2).position(|pair| {
            matches!(pair[0].kind(), "class" | "interface" | "enum") && pair[1].kind() == "identifier"
        });
        let open = head.and_then(|head| all[head..].iter().position(|k| k.kind() == "{").map(|open| head + open));
        let (Some(head), Some(open)) = (head, open) else {
            for kid in all.into_iter().filter(|k| k.is_named()) {
                self.visit(kid);
            }
            return;
        };
        let mut before = &all[..head];
        let mut written = None;
        if let [rest @ .., last] = before
            && last.kind() == "modifiers"
        {
            (before, written) = (rest, Some(*last));
        }
        let start = written.unwrap_or(all[head]);
        let modifiers = self.modifiers(written);
        for kid in before.iter().filter(|k| k.is_named()) {
            self.visit(*kid);
        }
        let name = self.text(all[head + 1]);
        let kind = match all[head].kind() {
            "interface" => DefKind::Interface,
            "enum" => DefKind::Enum,
            _ => DefKind::Class,
        };
        let mut whole = span(start);
        let to = span(node);
        (whole.end, whole.end_line, whole.end_column) = (to.end, to.end_line, to.end_column);
        let def = self.b.add_def(name, kind, whole);
        let visibility = modifiers.visibility.unwrap_or(Visibility::Package);
        let signature = one_line(self.b.text.get(start.start_byte()..all[open].start_byte()).unwrap_or(""));
        let d = self.b.def(def);
        d.visibility = visibility;
        d.flags = modifiers.flags | exported(visibility);
        d.signature = signature.into();
        let scope = self.b.scope;
        self.b.declare_def(scope, def);
        self.inside(def, |reader| {
            reader.annotations(&modifiers);
            let mut extends = false;
            for kid in &all[head + 2..open] {
                match kid.kind() {
                    "type_parameters" => reader.type_parameters(Some(*kid)),
                    "superclass" => {
                        extends = true;
                        reader.bases(def, BaseKind::Extends, *kid);
                    }
                    "super_interfaces" => reader.bases(def, BaseKind::Implements, *kid),
                    "extends_interfaces" => reader.bases(def, BaseKind::Extends, *kid),
                    _ if kid.is_named() => reader.visit(*kid),
                    _ => {}
                }
            }
            let mut class = Class::new(def, name);
            class.interface = kind == DefKind::Interface;
            class.extends = extends;
            reader.members(class, |reader| {
                for kid in all[open + 1..].iter().filter(|k| k.is_named()) {
                    reader.visit(*kid);
                }
            });
        });
    }
}

struct Parameter<'t> {
    name: &'t str,
    ty: Option<ExprId>,
    rest: bool,
}

fn exported(visibility: Visibility) -> u32 {
    match visibility {
        Visibility::Public | Visibility::Protected => flag::EXPORTED,
        Visibility::Package | Visibility::Private => 0,
    }
}

/// Whether a value is short enough for the signature: on one line, without a body.
fn short(value: TreeNode<'_>) -> bool {
    value.end_byte() - value.start_byte() <= 60 && value.start_position().row == value.end_position().row
}
