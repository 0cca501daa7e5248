//! Selects among overloads of a method, by the number and the types of the arguments.
//!
//! The first of a class's methods of one name represents all of them until a call selects one: only there the arguments
//! are known, and a class may have more overloads than a set of values can hold.

use crate::convert::to_u32;
use crate::facts::{
    ArgKind, CallId, CallKind, CallSite, DefId, DefKind, ExprId, FileFacts, ItemKey, Literal, SourceExpr, UNKNOWN,
    VarId, VarKind, flag,
};
use crate::keys::type_name;
use crate::resolve::eval::{Eval, EvalQuestion};
use crate::resolve::file::ProgramFile;
use crate::resolve::value::{DefRef, Derivation, FileId, InternedStr, PossibleValue, ValueSet};
use smallvec::SmallVec;

/// The static type of an argument or parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape<'p> {
    Unknown,
    Null,
    Text,
    Primitive(&'p str),
    Class(DefRef),
    /// A type of another package, by its last name.
    Other(&'p str),
    Array,
    /// A lambda or a method reference.
    Function,
    /// Any type: `Object`.
    Any,
    /// A type parameter without a bound.
    Parameter,
}

pub(in crate::resolve) type Methods = SmallVec<[DefRef; 4]>;

/// Methods of one name that a class itself declares.
pub(in crate::resolve) fn own(here: &ProgramFile, class: DefRef, name: InternedStr) -> Methods {
    let mut found = Methods::new();
    let Some(var) = here.member(class.def, name) else { return found };
    let mut add = |def: DefId| {
        if here.facts.def(def).kind == DefKind::Method {
            found.push(DefRef { file: class.file, def });
        }
    };
    if let VarKind::Def(def) = here.facts.vars[var].what {
        add(def);
    }
    for value in here.binds(var) {
        if let SourceExpr::Def(def) = here.facts.expr(value) {
            add(def);
        }
    }
    found
}

impl<'p> Eval<'p> {
    /// Methods of one name that a class itself declares.
    pub(in crate::resolve) fn own_overloads(&self, class: DefRef, name: InternedStr) -> Methods {
        own(self.file(class.file), class, name)
    }

    /// Keeps the values that the declared type allows, because casts and type parameters pass on values of other types.
    pub(in crate::resolve) fn allowed(&mut self, declared: &ValueSet, mut found: ValueSet) -> ValueSet {
        let classes: SmallVec<[DefRef; 4]> = declared
            .values
            .iter()
            .filter_map(|(v, _)| match v {
                PossibleValue::Instance(class, _) if self.file(class.file).rules.overloads() => Some(*class),
                _ => None,
            })
            .collect();
        if classes.is_empty() || classes.len() < declared.values.len() {
            return found;
        }
        found.values.retain(|(v, _)| match v {
            PossibleValue::Instance(class, _) => {
                self.resolution_order(*class).classes.iter().any(|of| classes.contains(of))
            }
            _ => true,
        });
        found
    }

    /// Whether a local variable holds only new objects: `T x = new Impl()`.
    pub(in crate::resolve) fn only_made(&self, file: FileId, var: VarId) -> bool {
        let here = self.file(file);
        let made = |value: ExprId| match here.facts.expr(value) {
            SourceExpr::Call(call) => here.facts.calls[call].how == CallKind::New,
            _ => false,
        };
        let first = |value: ExprId| match here.facts.expr(value) {
            SourceExpr::Either(range) => here.facts.items(range).first().map_or(value, |item| item.value),
            _ => value,
        };
        here.facts.vars[var].what == VarKind::Local
            && here.rules.overloads()
            && here.binds(var).count() > 0
            && here.binds(var).all(|value| made(first(value)))
    }

    /// Replaces each method by the overloads of its name that fit this call.
    pub(super) fn choose_by_types(&mut self, file: FileId, call: &CallSite, targets: &mut ValueSet, levels: u8) {
        let several =
            targets.values.iter().any(|(v, _)| matches!(v, PossibleValue::Func(_) | PossibleValue::Method(..)));
        if !several {
            return;
        }
        let mut shapes: Option<Vec<Shape<'p>>> = None;
        let before = std::mem::take(targets);
        targets.too_many = before.too_many;
        for (value, how) in before.values {
            let (method, receiver) = match value {
                PossibleValue::Func(method) => (method, None),
                PossibleValue::Method(method, receiver) => (method, Some(receiver)),
                _ => {
                    targets.add(value, how);
                    continue;
                }
            };
            let group = self.group(method, receiver, levels);
            if group.len() < 2 {
                targets.add(value, how);
                continue;
            }
            let shapes = shapes.get_or_insert_with(|| self.argument_shapes(file, call, levels));
            let chosen = self.fitting(&group, shapes, file, call, levels);
            for one in &chosen {
                let mut how = if chosen.len() > 1 { how.max(Derivation::Possible) } else { how };
                if one.file != method.file {
                    how = how.max(Derivation::Type);
                }
                let value = match receiver {
                    Some(receiver) if !self.def(*one).is(flag::STATIC) => PossibleValue::Method(*one, receiver),
                    _ => PossibleValue::Func(*one),
                };
                // A method that derived classes do not override is added only once.
                let same = |v: &PossibleValue| matches!((v, value), (PossibleValue::Method(m, _), PossibleValue::Method(n, _)) if *m == n);
                match targets.values.iter_mut().find(|(v, _)| same(v)) {
                    Some((_, known)) => *known = (*known).min(how),
                    None => targets.add(value, how),
                }
            }
        }
    }

    /// The methods of one name that an object has, nearest first, without overridden ones.
    fn group(&mut self, method: DefRef, receiver: Option<DefRef>, levels: u8) -> Methods {
        let here = self.file(method.file);
        let def = here.facts.def(method.def);
        if def.kind != DefKind::Method || !here.rules.overloads() {
            return SmallVec::from_elem(method, 1);
        }
        let name = here.sym(def.name);
        let class = DefRef { file: method.file, def: def.parent };
        let line = self.resolution_order(receiver.unwrap_or(class));
        let from = line.classes.iter().position(|c| *c == class);
        let line = if from.is_some() { line } else { self.resolution_order(class) };
        let mut found = Methods::new();
        let mut known: Vec<Vec<Shape<'p>>> = Vec::new();
        for of in &line.classes[from.unwrap_or(0)..] {
            let own = self.own_overloads(*of, name);
            if own.is_empty() || (found.len() + own.len() == 1) {
                known.extend(own.iter().map(|m| self.parameter_shapes(*m, levels)));
                found.extend(own);
                continue;
            }
            let above = found.len();
            for method in own {
                let shapes = self.parameter_shapes(method, levels);
                if !known[..above].iter().any(|below| overrides(below, &shapes)) {
                    found.push(method);
                    known.push(shapes);
                }
            }
        }
        if !found.contains(&method) && found.is_empty() {
            found.push(method);
        }
        found
    }

    fn fitting(&mut self, group: &[DefRef], given: &[Shape<'p>], file: FileId, call: &CallSite, levels: u8) -> Methods {
        let args = self.file(file).facts.args(call.args);
        if args.iter().any(|a| a.how != ArgKind::Place) {
            return SmallVec::from_slice(group);
        }
        let takes = |eval: &Self, method: DefRef| {
            let params = eval.def(method).params.len();
            if eval.takes_rest(method) { given.len() + 1 >= params } else { given.len() == params }
        };
        let by_number: Methods = group.iter().copied().filter(|m| takes(self, *m)).collect();
        if by_number.len() < 2 {
            return if by_number.is_empty() { SmallVec::from_slice(group) } else { by_number };
        }
        let mut scored: SmallVec<[(DefRef, u32); 8]> = SmallVec::new();
        // A variadic method applies only if no other fits.
        for rest in [false, true] {
            for method in &by_number {
                let fits = if rest && self.takes_rest(*method) {
                    self.fit_rest(*method, given, levels)
                } else {
                    self.fit(*method, given, levels)
                };
                if let Some(score) = fits {
                    scored.push((*method, score));
                }
            }
            if !scored.is_empty() {
                break;
            }
        }
        let best = scored.iter().map(|(_, score)| *score).max();
        match best {
            Some(best) => scored.iter().filter(|(_, score)| *score == best).map(|(m, _)| *m).collect(),
            None => by_number,
        }
    }

    fn takes_rest(&self, method: DefRef) -> bool {
        let facts = &self.file(method.file).facts;
        let last = facts.def(method.def).params.last();
        last.is_some_and(|v| matches!(facts.vars[*v].what, VarKind::Rest(_)))
    }

    /// How well the arguments fit the parameters; `None` if one of them cannot be passed.
    fn fit(&mut self, method: DefRef, given: &[Shape<'p>], levels: u8) -> Option<u32> {
        let wanted = self.parameter_shapes(method, levels);
        if wanted.len() != given.len() {
            return None;
        }
        let mut sum = 0;
        for (given, wanted) in given.iter().zip(wanted) {
            sum += self.passes(*given, wanted)?;
        }
        Some(sum)
    }

    fn fit_rest(&mut self, method: DefRef, given: &[Shape<'p>], levels: u8) -> Option<u32> {
        let here = self.file(method.file);
        let (last, first) = self.def(method).params.split_last()?;
        let rest = match here.facts.vars[*last].ty.map(|ty| here.facts.expr(ty)) {
            Some(SourceExpr::Generic(_, range)) => match here.facts.items(range) {
                [one] => self.type_shape(method.file, one.value, levels),
                _ => Shape::Unknown,
            },
            _ => Shape::Unknown,
        };
        let wanted = self.parameter_shapes(method, levels);
        let mut sum = 0;
        for (place, given) in given.iter().enumerate() {
            sum += self.passes(*given, if place < first.len() { wanted[place] } else { rest })?;
        }
        Some(sum)
    }

    fn parameter_shapes(&mut self, method: DefRef, levels: u8) -> Vec<Shape<'p>> {
        let here = self.file(method.file);
        let params = &here.facts.def(method.def).params;
        let shape = |var: &VarId| match here.facts.vars[*var].ty {
            Some(ty) => self.type_shape(method.file, ty, levels),
            None => Shape::Unknown,
        };
        params.iter().map(shape).collect()
    }

    fn argument_shapes(&mut self, file: FileId, call: &CallSite, levels: u8) -> Vec<Shape<'p>> {
        let args = self.file(file).facts.args(call.args);
        args.iter().map(|arg| self.shape(file, arg.value, call.owner, levels)).collect()
    }

    // --- static types ---

    fn type_shape(&mut self, file: FileId, ty: ExprId, levels: u8) -> Shape<'p> {
        let facts = &self.file(file).facts;
        let plain = |ty: ExprId| match facts.expr(ty) {
            SourceExpr::Generic(of, _) => of,
            _ => ty,
        };
        let mut plain_ty = plain(ty);
        // A type parameter has the type of its bound; in malformed code bounds may be cyclic.
        for _ in 0..MOST_BOUNDS {
            let SourceExpr::Var(var) = facts.expr(plain_ty) else { break };
            let found = &facts.vars[var];
            match found.ty {
                _ if found.what != VarKind::TypeParam => break,
                Some(bound) => plain_ty = plain(bound),
                None => return Shape::Parameter,
            }
        }
        let plain = plain_ty;
        let Some(name) = type_name(facts, plain) else { return Shape::Unknown };
        match (name, facts.expr(plain)) {
            ("[]", _) => return Shape::Array,
            (name, SourceExpr::Free(_)) if is_primitive(name) => return Shape::Primitive(name),
            ("bool", SourceExpr::Free(_)) => return Shape::Primitive("boolean"),
            ("String" | "string", SourceExpr::Free(_)) => return Shape::Text,
            ("Object" | "object" | "Any", SourceExpr::Free(_)) => return Shape::Any,
            _ => {}
        }
        let found = self.expr(file, plain, crate::facts::ROOT, levels);
        let class = found.values.iter().find_map(|(v, _)| match v {
            PossibleValue::Class(class) => Some(*class),
            _ => None,
        });
        class.map_or(Shape::Other(name), Shape::Class)
    }

    /// The static type of an argument.
    fn shape(&mut self, file: FileId, expr: ExprId, owner: DefId, levels: u8) -> Shape<'p> {
        if expr == UNKNOWN {
            return Shape::Unknown;
        }
        let here = self.file(file);
        match here.facts.expr(expr) {
            SourceExpr::Literal(Literal::String(_) | Literal::Template) => Shape::Text,
            SourceExpr::Literal(Literal::Bool) => Shape::Primitive("boolean"),
            SourceExpr::Literal(Literal::Number) => here.rules.number_type.map_or(Shape::Unknown, Shape::Primitive),
            SourceExpr::Literal(Literal::Nothing) => Shape::Null,
            SourceExpr::Literal(_) => Shape::Unknown,
            SourceExpr::InstanceOf(ty) => self.type_shape(file, ty, levels),
            SourceExpr::Collection(..) | SourceExpr::ListOf(_) => Shape::Array,
            SourceExpr::Bound(_) => Shape::Function,
            SourceExpr::Def(def) if here.facts.def(def).kind.callable() => Shape::Function,
            SourceExpr::Var(var) => match (here.facts.vars[var].ty, here.facts.vars[var].what) {
                (Some(ty), _) => self.type_shape(file, ty, levels),
                _ => match only_cast(here, var) {
                    Some(ty) => self.type_shape(file, ty, levels),
                    None => self.held_shape(file, expr, owner, levels),
                },
            },
            SourceExpr::Call(id) => self.result_shape(file, id, levels),
            SourceExpr::Member(of, name) => {
                // `Float.NaN`, `Integer.MAX_VALUE`.
                if let Some(primitive) = type_name(&here.facts, of).and_then(unboxed)
                    && here.facts.name(name).starts_with(char::is_uppercase)
                {
                    return Shape::Primitive(primitive);
                }
                let base = self.expr(file, of, owner, levels);
                self.field_shape(&base, here.sym(name), levels)
                    .unwrap_or_else(|| self.held_shape(file, expr, owner, levels))
            }
            SourceExpr::Free(name) => {
                let own = self.enclosing_type(file, owner, levels);
                let base = own
                    .map(|class| ValueSet::one(PossibleValue::Instance(class, false), Derivation::Exact))
                    .unwrap_or_default();
                self.field_shape(&base, here.sym(name), levels)
                    .unwrap_or_else(|| self.held_shape(file, expr, owner, levels))
            }
            SourceExpr::Either(range) => {
                if let Some(ty) = cast_to(&here.facts, expr) {
                    return self.type_shape(file, ty, levels);
                }
                let mut known: Vec<Shape<'p>> = Vec::new();
                for item in here.facts.items(range) {
                    known.push(self.shape(file, item.value, owner, levels));
                }
                known.retain(|shape| *shape != Shape::Null);
                match known.as_slice() {
                    // If one branch has any type, so has the conditional.
                    all if all.contains(&Shape::Any) || all.contains(&Shape::Parameter) => Shape::Any,
                    [first, rest @ ..] if rest.iter().all(|other| other == first) => *first,
                    _ => Shape::Unknown,
                }
            }
            _ => self.held_shape(file, expr, owner, levels),
        }
    }

    /// The type of the values that an expression may hold, if they agree.
    fn held_shape(&mut self, file: FileId, expr: ExprId, owner: DefId, levels: u8) -> Shape<'p> {
        let held = self.expr(file, expr, owner, levels);
        let mut shape = None;
        for (value, _) in &held.values {
            let one = match value {
                PossibleValue::Text => Shape::Text,
                PossibleValue::Instance(class, _) => Shape::Class(*class),
                PossibleValue::Typed(of, ty) => self.type_shape(*of, *ty, levels),
                PossibleValue::Func(_) | PossibleValue::Method(..) | PossibleValue::FunctionOf(..) => Shape::Function,
                PossibleValue::Nothing => continue,
                _ => return Shape::Unknown,
            };
            if shape.is_some_and(|known| known != one) {
                return Shape::Unknown;
            }
            shape = Some(one);
        }
        shape.unwrap_or(Shape::Unknown)
    }

    fn field_shape(&mut self, base: &ValueSet, name: InternedStr, levels: u8) -> Option<Shape<'p>> {
        let mut shape = None;
        for (value, _) in &base.values {
            let (PossibleValue::Instance(class, _) | PossibleValue::Class(class)) = value else { return None };
            let line = self.resolution_order(*class);
            let found = line.classes.iter().find_map(|of| {
                let here = self.file(of.file);
                let var = here.member(of.def, name)?;
                // A constant of an enum is an instance of it and has no declared type.
                here.facts.vars[var].ty.map(|ty| (of.file, ty))
            });
            let (file, ty) = found?;
            let one = self.type_shape(file, ty, levels);
            if shape.is_some_and(|known| known != one) {
                return None;
            }
            shape = Some(one);
        }
        shape
    }

    fn result_shape(&mut self, file: FileId, id: CallId, levels: u8) -> Shape<'p> {
        let here = self.file(file);
        let call = &here.facts.calls[id];
        let targets = self.solve(EvalQuestion::CallTargets(file, id), levels);
        let mut shape = None;
        for (value, _) in &targets.values {
            let one = match value {
                PossibleValue::Class(class) => Shape::Class(*class),
                PossibleValue::Method(method, class) if self.def(*method).is(flag::CONSTRUCTOR) => Shape::Class(*class),
                PossibleValue::Func(method) | PossibleValue::Method(method, _) => match self.def(*method).result {
                    Some(ty) => match self.type_shape(method.file, ty, levels) {
                        // A type parameter as a result depends on the call.
                        Shape::Any | Shape::Parameter => Shape::Unknown,
                        known => known,
                    },
                    None => Shape::Unknown,
                },
                _ => Shape::Unknown,
            };
            if shape.is_some_and(|known| known != one) {
                return Shape::Unknown;
            }
            shape = Some(one);
        }
        match (shape, here.facts.expr(call.callee)) {
            (Some(Shape::Unknown) | None, SourceExpr::Member(of, name)) => match here.facts.name(name) {
                "toString" | "toLowerCase" | "toUpperCase" | "substring" | "trim" => Shape::Text,
                "equals" | "isEmpty" | "startsWith" | "endsWith" => Shape::Primitive("boolean"),
                "hashCode" | "length" | "size" | "indexOf" => Shape::Primitive("int"),
                "valueOf" | "format" | "join" if type_name(&here.facts, of) == Some("String") => Shape::Text,
                _ => Shape::Unknown,
            },
            (shape, _) => shape.unwrap_or(Shape::Unknown),
        }
    }

    // --- conversions ---

    /// How well an argument fits a parameter; `None` if it cannot be passed.
    fn passes(&mut self, given: Shape<'p>, wanted: Shape<'p>) -> Option<u32> {
        use Shape::{Any, Array, Class, Function, Null, Other, Parameter, Primitive, Text, Unknown};
        Some(match (given, wanted) {
            (Unknown, _) | (_, Unknown) => 0,
            (Null, Primitive(_)) => return None,
            (Null, Any | Parameter) => 0,
            (Null, _) => 1,
            (Any | Parameter, Any | Parameter) => EXACT,
            (_, Any | Parameter) => 1,
            // A value of any type does not fit a specific type.
            (Any | Parameter, _) => return None,
            (Text, Text) | (Array, Array) => EXACT,
            (Text, Other("CharSequence")) => NEAR,
            (Text, Other("Comparable" | "Serializable")) => 2,
            (Text | Array, _) | (_, Text | Array) => return None,
            (Primitive(given), Primitive(wanted)) => return widened(given, wanted),
            (Primitive(given), Other(wanted)) => match wanted == boxed(given) {
                true => 4,
                false if matches!(wanted, "Number" | "Comparable" | "Serializable") => 2,
                false => return None,
            },
            (Other(given), Primitive(wanted)) if given == boxed(wanted) => 4,
            (Primitive(_), _) | (_, Primitive(_)) => return None,
            (Class(given), Class(wanted)) => {
                let line = self.resolution_order(given);
                let above = to_u32(line.classes.iter().position(|c| *c == wanted)?);
                EXACT - above.min(EXACT - 2)
            }
            (Class(given), Other(wanted)) => {
                let line = self.resolution_order(given);
                let said = line.classes.iter().any(|class| {
                    self.link.external_bases(*class).iter().any(|path| {
                        let (package, names) = self.program.external_path(*path);
                        names.last().copied().unwrap_or(package) == wanted
                    })
                });
                match said {
                    true => NEAR,
                    false if line.external || matches!(wanted, "Comparable" | "Enum" | "Record") => 1,
                    false => return None,
                }
            }
            // A type of another package is never derived from a class of this program.
            (Other(_), Class(_)) => return None,
            (Other(given), Other(wanted)) if given == wanted => EXACT,
            (Other(given), Other(wanted)) => match above(given) {
                Some(known) if known.contains(&wanted) => NEAR,
                Some(_) => return None,
                None => 1,
            },
            (Function, Class(wanted)) if self.def(wanted).kind == DefKind::Interface => 2,
            (Function, Class(_)) => return None,
            (Function, Other(wanted)) => match above(wanted) {
                Some(_) => return None,
                None => 2,
            },
            (Class(_) | Other(_), Null | Function) | (Function, Null | Function) => 0,
        })
    }
}

/// The target type of a cast, which is recorded together with the value.
fn cast_to(facts: &FileFacts, expr: ExprId) -> Option<ExprId> {
    let ty = |value: ExprId| match facts.expr(value) {
        SourceExpr::InstanceOf(ty) => Some(ty),
        _ => None,
    };
    match facts.expr(expr) {
        SourceExpr::Either(range) => {
            facts.items(range).iter().rev().filter(|item| item.key == ItemKey::Next).find_map(|item| ty(item.value))
        }
        _ => ty(expr),
    }
}

/// The type of `var x = (T) y;`: that of the cast, if nothing else is assigned.
fn only_cast(here: &ProgramFile, var: VarId) -> Option<ExprId> {
    let mut values = here.binds(var);
    let only = values.next().filter(|_| here.facts.vars[var].what == VarKind::Local)?;
    if values.next().is_some() { None } else { cast_to(&here.facts, only) }
}

/// Most bounds of type parameters by other type parameters that are followed.
const MOST_BOUNDS: usize = 4;
/// Score of an argument with exactly the type of the parameter.
const EXACT: u32 = 16;
/// Score of an argument whose type is derived from that of the parameter.
const NEAR: u32 = 10;

/// Whether a method with the parameters `below` overrides one with the parameters `above`.
fn overrides(below: &[Shape<'_>], above: &[Shape<'_>]) -> bool {
    below.len() == above.len() && below.iter().zip(above).all(|(b, a)| b == a || *a == Shape::Parameter)
}

fn is_primitive(name: &str) -> bool {
    matches!(name, "int" | "long" | "short" | "byte" | "char" | "float" | "double" | "boolean")
}

/// The score of a widening conversion between numbers; the nearest type scores highest.
fn widened(given: &str, wanted: &str) -> Option<u32> {
    const ORDER: [&str; 6] = ["byte", "short", "int", "long", "float", "double"];
    if given == wanted {
        return Some(EXACT);
    }
    let place = |name: &str| ORDER.iter().position(|n| *n == name);
    let from = if given == "char" { place("short") } else { place(given) }?;
    let to = place(wanted)?;
    (to > from).then(|| EXACT - 1 - to_u32(to - from))
}

fn boxed(primitive: &str) -> &'static str {
    match primitive {
        "int" => "Integer",
        "long" => "Long",
        "short" => "Short",
        "byte" => "Byte",
        "char" => "Character",
        "float" => "Float",
        "double" => "Double",
        _ => "Boolean",
    }
}

fn unboxed(name: &str) -> Option<&'static str> {
    ["int", "long", "short", "byte", "char", "float", "double"].into_iter().find(|p| boxed(p) == name)
}

/// Supertypes of common classes of Java's library.
fn above(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "Class" => &["Type", "AnnotatedElement", "GenericDeclaration", "Serializable"],
        "Integer" | "Long" | "Short" | "Byte" | "Float" | "Double" | "BigDecimal" | "BigInteger" => {
            &["Number", "Comparable", "Serializable"]
        }
        "Boolean" | "Character" => &["Comparable", "Serializable"],
        "StringBuilder" | "StringBuffer" => &["CharSequence", "Appendable", "Comparable", "Serializable"],
        "StringWriter" | "PrintWriter" | "FileWriter" | "BufferedWriter" | "OutputStreamWriter" => {
            &["Writer", "Appendable", "Closeable", "AutoCloseable", "Flushable"]
        }
        "StringReader" | "FileReader" | "BufferedReader" | "InputStreamReader" => {
            &["Reader", "Readable", "Closeable", "AutoCloseable"]
        }
        "FileInputStream" | "ByteArrayInputStream" | "BufferedInputStream" => {
            &["InputStream", "Closeable", "AutoCloseable"]
        }
        "FileOutputStream" | "ByteArrayOutputStream" | "BufferedOutputStream" | "PrintStream" => {
            &["OutputStream", "Closeable", "AutoCloseable", "Flushable", "Appendable"]
        }
        "List" | "Set" => &["Collection", "Iterable"],
        "ArrayList" | "LinkedList" => &["List", "Collection", "Iterable", "Deque", "Queue", "AbstractList"],
        "HashSet" | "LinkedHashSet" | "TreeSet" => &["Set", "Collection", "Iterable", "AbstractSet"],
        "HashMap" | "LinkedHashMap" | "TreeMap" | "ConcurrentHashMap" => &["Map", "AbstractMap", "ConcurrentMap"],
        "File" => &["Comparable", "Serializable"],
        "Date" => &["Comparable", "Serializable", "Cloneable"],
        "URL" | "URI" | "Path" | "Locale" | "Charset" => &["Comparable", "Serializable"],
        _ => return None,
    })
}
