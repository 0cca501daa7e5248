//! The Rust front end on small texts.

use crate::facts::{
    ArgKind, BaseKind, BindTarget, CallKind, Def, DefId, ExprId, FileFacts, ImportKind, ItemKey, ListKind, Literal,
    ROOT, SourceExpr, VarId, Visibility, flag,
};
use crate::lang::parse;
use crate::languages::language;
use std::fmt::Write;

fn read(text: &str) -> FileFacts {
    parse("src/lib.rs", text, language("rust"))
}

/// Variables of the same name are distinguished by a number: `x`, `x'2`; free names begin with `$`.
fn var(facts: &FileFacts, id: VarId) -> String {
    let name = facts.vars[id].name;
    let before = facts.vars.iter().take(id.index()).filter(|v| v.name == name).count();
    let name = facts.name(name);
    if before == 0 { name.to_owned() } else { format!("{name}'{}", before + 1) }
}

fn expr(facts: &FileFacts, id: ExprId) -> String {
    let list = |range| {
        let mut parts = Vec::new();
        for item in facts.items(range) {
            let value = expr(facts, item.value);
            parts.push(match item.key {
                ItemKey::Name(name) => format!("{}: {value}", facts.name(name)),
                ItemKey::Spread => format!("..{value}"),
                ItemKey::Next | ItemKey::Any => value,
            });
        }
        parts
    };
    match facts.expr(id) {
        SourceExpr::Unknown => "?".into(),
        SourceExpr::Literal(Literal::String(name)) => format!("{:?}", facts.name(name)),
        SourceExpr::Literal(Literal::Nothing) => "()".into(),
        SourceExpr::Literal(Literal::Template) => "text".into(),
        SourceExpr::Literal(_) => "0".into(),
        SourceExpr::Var(id) => var(facts, id),
        SourceExpr::Free(name) => format!("${}", facts.name(name)),
        SourceExpr::ThisType => "Self".into(),
        SourceExpr::Member(of, name) => format!("{}.{}", expr(facts, of), facts.name(name)),
        SourceExpr::AtIndex(of, index) => format!("{}[{index}]", expr(facts, of)),
        SourceExpr::Element(of) => format!("{}[]", expr(facts, of)),
        SourceExpr::Awaited(of) => format!("{}?", expr(facts, of)),
        SourceExpr::Call(call) => {
            let call = facts.calls[call];
            format!("{}()", expr(facts, call.callee))
        }
        SourceExpr::Def(def) => format!("<{}>", facts.name(facts.def(def).name)),
        SourceExpr::Collection(ListKind::Tuple, range) => format!("({})", list(range).join(", ")),
        SourceExpr::Collection(_, range) => format!("[{}]", list(range).join(", ")),
        SourceExpr::Construct(of, range) => format!("{} {{{}}}", expr(facts, of), list(range).join(", ")),
        SourceExpr::Either(range) => format!("({})", list(range).join(" | ")),
        SourceExpr::Generic(of, range) => format!("{}<{}>", expr(facts, of), list(range).join(", ")),
        SourceExpr::InstanceOf(of) => format!("a {}", expr(facts, of)),
        SourceExpr::FunctionType(of) => format!("fn -> {}", expr(facts, of)),
        SourceExpr::ListOf(of) => format!("[{}; n]", expr(facts, of)),
        other => format!("{other:?}"),
    }
}

fn path(facts: &FileFacts, def: DefId) -> String {
    let path = facts.path_of(def);
    if path.is_empty() { "file".into() } else { path.join("/") }
}

fn flags(def: &Def) -> String {
    const NAMES: [(u32, &str); 13] = [
        (flag::ASYNC, "async"),
        (flag::ABSTRACT, "abstract"),
        (flag::STATIC, "static"),
        (flag::EXPORTED, "exported"),
        (flag::TEST, "test"),
        (flag::ARROW, "arrow"),
        (flag::DECLARED, "declared"),
        (flag::CONSTANT, "constant"),
        (flag::TAKES_SELF, "self"),
        (flag::ENTRY, "entry"),
        (flag::MACRO, "macro"),
        (flag::FINAL, "final"),
        (flag::VARIADIC, "variadic"),
    ];
    NAMES.iter().filter(|(bit, _)| def.is(*bit)).map(|(_, name)| format!(" {name}")).collect()
}

fn defs(facts: &FileFacts) -> String {
    let mut text = String::new();
    for (id, def) in facts.defs.iter_ids().skip(1) {
        let _ = write!(text, "{}-{} {:?} {}", def.span.line, def.span.end_line, def.kind, path(facts, id));
        match def.visibility {
            Visibility::Public => text.push_str(" pub"),
            Visibility::Package => text.push_str(" package"),
            Visibility::Protected | Visibility::Private => {}
        }
        text.push_str(&flags(def));
        let params: Vec<String> = def
            .params
            .iter()
            .map(|p| {
                let ty = facts.vars[*p].ty.map_or("_".into(), |ty| expr(facts, ty));
                format!("{}: {ty}", var(facts, *p))
            })
            .collect();
        if !params.is_empty() {
            let _ = write!(text, " ({})", params.join(", "));
        }
        if let Some(result) = def.result {
            let _ = write!(text, " -> {}", expr(facts, result));
        }
        for base in &def.bases {
            let how = if base.how == BaseKind::Extends { "extends" } else { "implements" };
            let _ = write!(text, " {how} {}", expr(facts, base.of));
        }
        if let Some(receiver) = def.receiver {
            let _ = write!(text, " of {}", expr(facts, receiver));
        }
        if let Some(through) = def.through {
            let _ = write!(text, " through {}", expr(facts, through));
        }
        text.push('\n');
    }
    text
}

fn calls_of(facts: &FileFacts, wanted: impl Fn(CallKind) -> bool) -> String {
    let mut text = String::new();
    for call in facts.calls.iter().filter(|c| wanted(c.how)) {
        let args: Vec<String> = facts
            .args(call.args)
            .iter()
            .map(|arg| {
                assert_eq!(arg.how, ArgKind::Place);
                expr(facts, arg.value)
            })
            .collect();
        let callee = expr(facts, call.callee);
        let _ = writeln!(text, "{} {}: {callee}({})", call.line, path(facts, call.owner), args.join(", "));
    }
    text
}

fn calls(facts: &FileFacts) -> String {
    calls_of(facts, |how| how != CallKind::Implicit)
}

fn binds(facts: &FileFacts) -> String {
    let mut text = String::new();
    for bind in &facts.binds {
        let target = match bind.target {
            BindTarget::Var(id) => var(facts, id),
            BindTarget::Member(of, name) => format!("{}.{}", expr(facts, of), facts.name(name)),
            BindTarget::Element(of) => format!("{}[]", expr(facts, of)),
            BindTarget::Free(name) => format!("${}", facts.name(name)),
            BindTarget::At(..) => "at".into(),
        };
        let _ = writeln!(text, "{target} = {}", expr(facts, bind.value));
    }
    text
}

fn returns(facts: &FileFacts) -> String {
    let mut text = String::new();
    for given in &facts.returns {
        let _ = writeln!(text, "{}: {}", path(facts, given.owner), expr(facts, given.value));
    }
    text
}

fn imports(facts: &FileFacts) -> String {
    let mut text = String::new();
    for import in &facts.imports {
        let what = match import.what {
            ImportKind::Module => "module".into(),
            ImportKind::Root => "root".into(),
            ImportKind::Symbol(name) => facts.name(name).to_owned(),
            ImportKind::All => "*".into(),
            ImportKind::Nothing => "nothing".into(),
        };
        let _ = write!(text, "{} {what}", import.module);
        if let Some(id) = import.var {
            let _ = write!(text, " as {}", var(facts, id));
        }
        if let Some(name) = import.reexport {
            let _ = write!(text, " gives {}", facts.name(name));
        }
        text.push('\n');
    }
    text
}

fn uses(facts: &FileFacts) -> String {
    let mut text = String::new();
    for used in &facts.uses {
        let _ = writeln!(text, "{}: {}", path(facts, used.owner), expr(facts, used.expr));
    }
    text
}

#[track_caller]
fn same(is: &str, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let is: Vec<&str> = is.lines().collect();
    assert!(is == expected, "is\n{}\nexpected\n{}", is.join("\n"), expected.join("\n"));
}

#[test]
fn uses_of_other_modules_are_flattened() {
    let facts = read(
        "mod a; pub mod b; pub(crate) mod r#type;
use x;
use std::fmt::Write as _;
use a::b::c as d;
pub use a::{self, one, two::{Three as Four, self}, deep::*};
pub(crate) use super::super::up;
use ::ext::{item, r#raw};
use crate::all::*;
extern crate core as c0;
fn f() { use inner::g; g(); }",
    );
    same(
        &imports(&facts),
        "self::a module as a
        self::b module as b gives b
        self::type module as type gives type
        x module as x
        std::fmt nothing
        a::b c as d
        a module as a'2 gives a
        a one as one gives one
        a::two Three as Four gives Four
        a::two module as two gives two
        a::deep * gives *
        super::super up as up gives up
        ext item as item
        ext raw as raw
        crate::all *
        core module as c0
        inner g as g",
    );
    same(&binds(&facts), "a'2 = a");
    same(&calls(&facts), "10 f: g()");
}

#[test]
fn types_have_fields_docs_and_visibility() {
    let facts = read(
        "//! What the file
//! is for.

/// A point.
#[derive(Clone, serde::Serialize)]
/// Of two.
pub struct Point<T: Send + Store> where T: Other {
    /// Across.
    #[serde(default = \"crate::zero\")]
    pub x: Arc<T>,
    pub(crate) config: config::Config,
}
struct Pair(pub u32, Box<dyn Fn(u32) -> Point>);
pub enum Shape { Circle(Point), Line { from: Point }, Nothing = start() }
pub type Both<'a> = (&'a Point, [Shape; 2]);",
    );
    same(
        &defs(&facts),
        "5-12 Struct Point pub exported
        9-10 Field Point/x pub exported -> $Arc<T>
        11-11 Field Point/config package -> $config.Config
        13-13 Struct Pair
        13-13 Field Pair/0 pub exported -> $u32
        13-13 Field Pair/1 -> $Box<fn -> Point>
        14-14 Enum Shape pub exported
        14-14 Field Shape/Circle pub exported constant -> Self
        14-14 Field Shape/Line pub exported constant -> Self
        14-14 Field Shape/Line/from pub exported -> Point
        14-14 Field Shape/Nothing pub exported constant -> Self
        15-15 Type Both pub exported -> $()<Point, $[]<Shape>>",
    );
    assert_eq!(facts.defs[ROOT].doc.as_deref(), Some("What the file\nis for."));
    assert_eq!(facts.defs[DefId::new(1)].doc.as_deref(), Some("A point.\nOf two."));
    assert_eq!(facts.defs[DefId::new(2)].doc.as_deref(), Some("Across."));
    assert_eq!(&*facts.defs[DefId::new(1)].signature, "pub struct Point<T: Send + Store> where T: Other");
    assert_eq!(&*facts.defs[DefId::new(4)].signature, "struct Pair(pub u32, Box<dyn Fn(u32) -> Point>)");
    assert_eq!(
        facts.vars.iter().find(|v| facts.name(v.name) == "T").and_then(|v| v.ty).map(|t| expr(&facts, t)),
        Some("($Store | $Other)".into())
    );
    let used = uses(&facts);
    for line in ["Point: $Clone", "Point: $serde.Serialize", "Point/x: $crate.zero"] {
        assert!(used.lines().any(|l| l == line), "{line} in\n{used}");
    }
}

#[test]
fn methods_belong_to_the_type_of_their_impl() {
    let facts = read(
        "struct Point;
pub trait Store: Base + 'static {
    type Item: Thing;
    const N: usize = limit();
    fn get(&self, key: &str) -> Option<Self::Item>;
    fn make() -> Self where Self: Sized { other() }
}
impl<T> Store for Wrap<T> where T: Store {
    type Item = T;
    fn get(&self, key: &str) -> Option<T> { self.inner.get(key) }
}
impl Point {
    pub const ZERO: Point = Point;
    pub(crate) async fn new(self: Arc<Self>) -> Result<Self, Error> { Self::build(Self {}) }
    fn hidden() {}
}
impl store::Store for &Point {}
impl !Send for Point {}",
    );
    same(
        &defs(&facts),
        "1-1 Struct Point
        2-7 Interface Store pub exported extends $Base
        3-3 Type Store/Item pub exported -> $Thing
        4-4 Field Store/N pub exported constant -> $usize
        5-5 Method Store/get pub abstract exported self (self: Self, key: $str) -> $Option<Self.Item>
        6-6 Method Store/make pub static exported -> Self
        9-9 Type Item pub exported -> T of $Wrap through Store
        10-10 Method get pub exported self (self'2: Self, key'2: $str) -> $Option<T> of $Wrap through Store
        13-13 Field ZERO pub exported constant -> Point of Point
        14-14 Method new package async self final (self'3: $Arc<Point>) -> $Result<Point, $Error> of Point
        15-15 Method hidden static final of Point",
    );
    same(
        &binds(&facts),
        "N = $limit()
        $Wrap.impl = Store
        Point.ZERO = Point
        Point.impl = $store.Store",
    );
    same(
        &calls(&facts),
        "4 Store: $limit()
        6 Store/make: $other()
        10 get: self'2.inner.get(key'2)
        14 new: Self.build(Self {})",
    );
}

#[test]
fn a_let_shadows_earlier_variables() {
    let facts = read(
        "fn f(x: u8) {
    let x = one(x);
    { let x = two(x); late(); x.in_block(); }
    let y: Config = three(x);
    let (a, Pair { left, right: r, .. }, [first, rest @ ..]) = y.parts();
    a.go(left, r, first, rest);
    fn late() { x.not_this(); }
}",
    );
    same(
        &calls(&facts),
        "2 f: $one(x)
        3 f: $two(x'2)
        3 f: late()
        3 f: x'3.in_block()
        4 f: $three(x'2)
        5 f: y.parts()
        6 f: a.go(left, r, first, rest)
        7 f/late: x.not_this()",
    );
    same(
        &binds(&facts),
        "x'2 = $one()
        x'3 = $two()
        y = $three()
        a = y.parts()[0]
        left = (y.parts()[1] | a $Pair).left
        r = (y.parts()[1] | a $Pair).right
        first = y.parts()[2][]
        rest = y.parts()[2]",
    );
}

#[test]
fn the_first_name_of_a_path_is_no_variable() {
    let facts = read(
        "use crate::config;
fn f(config: &config::Config, store: u8) { config::load(config); store::open(store); self::g(); super::super::h(); }
fn g() { Vec::<u8>::new(); <T as Trait>::f(); size_of::<Config>(); ::std::mem::drop(1); x.parse::<u8>(); }",
    );
    same(
        &calls(&facts),
        "2 f: config.load(config'2)
        2 f: $store.open(store)
        2 f: $self.g()
        2 f: $super.super.h()
        3 g: $Vec.new()
        3 g: $T.f()
        3 g: $size_of()
        3 g: $std.mem.drop(0)
        3 g: $x.parse()",
    );
    let ty = facts.vars[facts.defs[DefId::new(1)].params[0]].ty.expect("the parameter has a type");
    assert_eq!(expr(&facts, ty), "config.Config");
}

#[test]
fn patterns_bind_parts_of_the_value() {
    let facts = read(
        "enum Tree { Leaf(Item), Node { left: Box<Tree> }, Empty }
impl Tree {
    fn f(&self, o: Option<u8>) {
        match self {
            Self::Leaf(i) | Tree::Leaf(i) if i.ok() => i.go(),
            Tree::Node { left } => left.go(),
            far::Tree2::Leaf(x) => x.go(),
            Tree::Empty | NOTHING => {}
            all @ _ => all.go(),
        }
        if let Some(o) = o && let Ok(p) = o.get() { p.go() } else { o.none() }
        while let Some(Wrapper(w)) = o.next() { w.go(); }
        let Some(q) = o else { return fail(o) };
        for (i, e) in q.list() { e.go(i); }
    }
}",
    );
    same(
        &calls(&facts),
        "5 f: i.ok()
        5 f: i.go()
        6 f: left'2.go()
        7 f: x.go()
        9 f: all.go()
        11 f: o'2.get()
        11 f: p.go()
        11 f: o.none()
        12 f: o.next()
        12 f: w.go()
        13 f: $fail(o)
        14 f: q.list()
        14 f: e.go(i'2)",
    );
    same(
        &binds(&facts),
        "i = a $Item
        i = a $Item
        left'2 = a $Box<Tree>
        x = $far.Tree2.Leaf.0
        all = self
        o'2 = o?
        p = o'2.get()?
        w = (o.next()? | a $Wrapper).0
        q = o?
        i'2 = (q.list()[] | q.list().next()?)[0]
        e = (q.list()[] | q.list().next()?)[1]",
    );
}

#[test]
fn blocks_have_the_value_of_their_last_expression() {
    let facts = read(
        "fn a() -> T { one(); if x { two() } else if y { three() } else { return four(); } }
fn b() -> T { match z { 1 => A, _ => { let q = five()?; q.await } } }
fn c() -> T { let v = 'l: loop { loop { break 'l six(); } }; v; }
fn d() -> T { unsafe { &*seven() as &Other } }
fn e() -> T { vec![eight(), nine()] }",
    );
    same(
        &returns(&facts),
        "a: $four()
        a: ($two() | $three())
        b: ($A | q)
        d: a $Other
        e: [$eight(), $nine()]"
            .replace("| q)", "| q?)")
            .as_str(),
    );
    same(&binds(&facts), "q = $five()?\nv = $six()");
}

#[test]
fn values_are_built_and_written() {
    let facts = read(
        "fn f(mut v: Vec<T>, m: &mut Map) {
    v.push(a());
    m.insert(1, b());
    m.entry(2).or_insert(c());
    v[0] = d();
    v[1..].sort();
    self.field.inner = e();
    *m = g();
    (v, m) = h();
    let p = Point { x: i(), v, ..Default::default() };
    p.0.go();
    let l = [[j(); 4]];
    fp(f, Self::k);
}",
    );
    same(
        &binds(&facts),
        "v[] = $a()
        m[] = $b()
        m[] = $c()
        v[] = $d()
        $self.field.inner = $e()
        m = $g()
        v = $h()[0]
        m = $h()[1]
        p = $Point {x: $i(), v: v, ..$Default.default()}
        l = [[$j(); n]]",
    );
    let calls = calls(&facts);
    for line in ["6 f: v.sort()", "11 f: (p.0 | p[0]).go()", "13 f: $fp(f, Self.k)"] {
        assert!(calls.lines().any(|l| l == line), "{line} in\n{calls}");
    }
}

#[test]
fn closures_own_their_calls() {
    let facts = read(
        "fn f(xs: &[T]) {
    let g = |q: u32, (r, _)| -> T { q.call(r) };
    xs.iter()
        .map(|x| x.go())
        .for_each(async move |&y| y.run());
}",
    );
    same(
        &defs(&facts),
        "1-6 Function f (xs: $[]<$T>)
        2-2 Lambda f/<closure> pub arrow (q: $u32, _: _) -> $T
        4-4 Lambda f/<closure> pub arrow (x: _)
        5-5 Lambda f/<closure> pub async arrow (y: _)",
    );
    same(
        &calls(&facts),
        "2 f/<closure>: q.call(r)
        3 f: xs.iter()
        4 f/<closure>: x.go()
        4 f: xs.iter().map(<<closure>>)
        5 f/<closure>: y.run()
        5 f: xs.iter().map().for_each(<<closure>>)",
    );
    same(&binds(&facts), "r = _[0]\ng = <<closure>>");
}

#[test]
fn operators_call_methods() {
    let facts = read("fn f(a: V, b: V) -> V { a += -b; a[0] == b; 1 + 2; a + b * a }");
    same(
        &calls_of(&facts, |how| how == CallKind::Implicit),
        "1 f: b.neg()
        1 f: a.add_assign(b.neg())
        1 f: a.index(0)
        1 f: a[].eq(b)
        1 f: b.mul(a)
        1 f: a.add(b.mul())",
    );
    same(&returns(&facts), "f: a.add()");
}

#[test]
fn macros_are_defined_and_called() {
    let facts = read(
        "/// Makes one.
#[macro_export]
macro_rules! make { ($x:expr $(, $y:expr)*) => { $crate::build($x, helper(1)$(, wrap($y))*) }; }
fn f() { make!(one(1), two); log::info!(\"{}\", three()); }",
    );
    same(&defs(&facts), "2-3 Function make pub exported macro\n4-4 Function f");
    same(
        &calls(&facts),
        "3 make: $helper(0)
        3 make: $wrap(?)
        3 make: $crate.build(?, ?)
        4 f: $one(0)
        4 f: make!($one(), $two)
        4 f: $three()
        4 f: $log.info!(\"{}\", $three())",
    );
    assert_eq!(facts.defs[DefId::new(1)].doc.as_deref(), Some("Makes one."));
}

#[test]
fn calls_in_macro_arguments_are_read() {
    let facts = read(
        "fn t(x: X, config: C) {
    assert_eq!(foo(x.a(1)?, &[bar(2)]).b::<T>().c, S::<T>::new(config::load()), \"{}\", n = d(|u| u.e(x)));
    assert!(!x.f.g().await && matches!(x.kind(), Kind::A(p) if p.h()) || x.0.1.i());
    println!(\"{}\", Point { x, y: j(), ..k() }.l());
    outer!(inner![m()], { let q = n(x); q.o(); if let Some(r) = q.p() { r.r() } });
    each!(match x { Some(s) => s.s(), _ => t(x) });
    quote! { not_called(#x) };
    json!({\"a\": u(), \"b\": [v()]});
}",
    );
    same(
        &calls(&facts),
        "2 t: x.a(0)
        2 t: $bar(0)
        2 t: $foo(x.a()?, [$bar()])
        2 t: $foo().b()
        2 t: $config.load()
        2 t: $S.new($config.load())
        2 t/<closure>: u.e(x)
        2 t: $d(<<closure>>)
        2 t: $assert_eq!($foo().b().c, $S.new(), \"{}\", $d())
        3 t: x.f.g()
        3 t: x.kind()
        3 t: p.h()
        3 t: $matches!(x.kind())
        3 t: ((x.0 | x[0]).1 | (x.0 | x[0])[1]).i()
        3 t: $assert!(?)
        4 t: $j()
        4 t: $k()
        4 t: $Point {x: x, y: $j(), ..$k()}.l()
        4 t: $println!(\"{}\", $Point {x: x, y: $j(), ..$k()}.l())
        5 t: $m()
        5 t: $inner!($m())
        5 t: $n(x)
        5 t: q.o()
        5 t: q.p()
        5 t: r.r()
        5 t: $outer!($inner!(), ?)
        6 t: s.s()
        6 t: t(x)
        6 t: $each!(?)
        7 t: $quote!()
        8 t: $u()
        8 t: $v()
        8 t: $json!([a: $u(), b: [$v()]])",
    );
    same(&binds(&facts), "p = $Kind.A.0\nq = $n()\nr = q.p()?");
}

#[test]
fn macros_may_contain_items() {
    let facts = read(
        "proptest! {
    #![proptest_config(with(1))]
    #[test]
    fn holds(a in any::<u8>(), mut b: Vec<T>) { let c = check(a); prop_assert!(c.ok(b)); }
}
thread_local! { pub static CACHE: RefCell<Map> = const { RefCell::new(Map::new()) }; }
cfg_if! { if #[cfg(unix)] { mod unix; pub use unix::{self as os, *}; } else { use other::thing; } }
bitflags! { pub struct Flags: u32 { const A = 1; } }
fn f(x: Flags) { CACHE.with(|c| c.get()) }",
    );
    same(
        &defs(&facts),
        "3-4 Function holds test (a: _, b: $Vec)
        6-6 Variable CACHE pub exported constant -> $RefCell
        8-8 Struct Flags pub exported
        9-9 Function f (x: Flags)
        9-9 Lambda f/<closure> pub arrow (c'2: _)",
    );
    same(
        &imports(&facts),
        "self::unix module as unix
        unix module as os gives os
        unix * gives *
        other thing as thing",
    );
    let calls = calls(&facts);
    for line in ["4 holds: $any()", "4 holds: c.ok(b)", "6 file: $RefCell.new($Map.new())"] {
        assert!(calls.lines().any(|l| l == line), "{line} in\n{calls}");
    }
}

#[test]
fn tests_and_programs_are_detected() {
    let text = "fn main() { run() }
#[cfg(test)]
mod tests {
    //! Of this file.
    use super::*;
    #[tokio::test]
    async fn one() { run().await }
    #[rstest] #[case(1)]
    fn two() {}
    fn helper() {}
}
#[cfg(not(test))] mod real {}";
    let facts = parse("crates/x/src/main.rs", text, language("rust"));
    same(
        &defs(&facts),
        "1-1 Function main entry
        2-11 Module tests test
        6-7 Function tests/one async test
        8-9 Function tests/two test
        10-10 Function tests/helper
        12-12 Module real",
    );
    assert_eq!(facts.defs[DefId::new(2)].doc.as_deref(), Some("Of this file."));
    assert!(!facts.defs[ROOT].is(flag::TEST));
    assert!(parse("crates/x/tests/a.rs", "", language("rust")).defs[ROOT].is(flag::TEST));
    assert!(!parse("src/lib.rs", "fn main() {}", language("rust")).defs[DefId::new(1)].is(flag::ENTRY));
    assert!(parse("build.rs", "fn main() {}", language("rust")).defs[DefId::new(1)].is(flag::ENTRY));
}

#[test]
fn constants_and_foreign_items() {
    let facts = read(
        "pub static ALL: LazyLock<Map> = LazyLock::new(|| build());
const _: () = check();
extern \"C\" { pub fn abs(x: c_int, ...) -> c_int; static errno: c_int; }
mod inner { pub(super) const N: usize = ALL.len(); }",
    );
    same(
        &defs(&facts),
        "1-1 Variable ALL pub exported constant -> $LazyLock<$Map>
        1-1 Lambda <closure> pub arrow
        3-3 Function abs pub exported declared variadic (x: $c_int, ...: _) -> $c_int
        3-3 Variable errno constant -> $c_int
        4-4 Module inner
        4-4 Variable inner/N package constant -> $usize",
    );
    same(&binds(&facts), "ALL = $LazyLock.new()\nN = ALL.len()");
    same(
        &calls(&facts),
        "1 <closure>: $build()
        1 file: $LazyLock.new(<<closure>>)
        2 file: $check()
        4 inner: ALL.len()",
    );
}

#[test]
fn type_parameters_have_bounds() {
    let facts = read(
        "fn f<T: Clone + Store, F, const N: usize>(x: T, g: F, h: &mut impl Iterator<Item = T>, d: Box<dyn a::B + Send>)
where F: Fn(T) -> Out, { x.get(); g(x); }",
    );
    same(&defs(&facts), "1-2 Function f (x: T, g: F, h: $Iterator<T>, d: $Box<$a.B>)");
    let bound = |name: &str| {
        let var = facts.vars.iter().find(|v| facts.name(v.name) == name);
        var.and_then(|v| v.ty).map_or("none".into(), |ty| expr(&facts, ty))
    };
    assert_eq!(bound("T"), "$Store");
    assert_eq!(bound("F"), "fn -> $Out");
    assert_eq!(bound("N"), "$usize");
}

#[test]
fn broken_text_is_read_in_part() {
    let facts = read(
        "pub fn good() { one(); }
struct { x: ; }
impl T { fn m(&self) { two( } }
fn after() { three(); let = ; four() }",
    );
    assert_eq!(facts.faults.len(), 1);
    let calls = calls(&facts);
    for callee in ["$one()", "$three()", "$four()"] {
        assert!(calls.contains(callee), "{callee} in\n{calls}");
    }
    let whole = "#[a(b = c)] pub(in x) fn f<'a, T: A<B = C>>(&self, x: T) -> Box<dyn Fn(u8) -> T> where T: X { let S { a, ref b } = m!{ |x| y => <T as U>::v::<W>(1)[2]?.z }; 'l: for x in 0..3 { break 'l x } }";
    for end in 0..whole.len() {
        read(&whole[..end]);
        read(&whole[end..]);
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let many = 5_000;
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("{", "1", "}"),
        ("m!(", "1", ")"),
        ("f(", "x", ")"),
        ("|x| ", "1", ""),
        ("-", "1", ""),
        ("if a {} else ", "{}", ""),
        ("[", "", "]"),
        ("match x { A(x) => ", "1", "}"),
    ] {
        let text = format!("fn f() {{ let x = {}{middle}{}; }}", open.repeat(many), close.repeat(many));
        read(&text);
        read(&format!("fn f() {{ m!({}{middle}{}) }}", open.repeat(many), close.repeat(many)));
        // Only the first half.
        read(&text[..text.len() / 2]);
    }
    read(&format!("type A = {}u8{};", "Box<".repeat(many), ">".repeat(many)));
    read(&format!("use {}a{};", "a::{".repeat(many), "}".repeat(many)));
    read(&format!("fn f() {{ let {}x{} = 1; }}", "Some(".repeat(many), ")".repeat(many)));
    read(&format!("{}{}", "mod m {".repeat(many), "}".repeat(many)));
    read(&format!("fn f() {{ m!(cfg_if {{ use {}a{}; }}) }}", "a::{".repeat(many), "}".repeat(many)));
    let either = read(&format!("fn f() {{ match x {{ 'a'{} => b() }} }}", " | 'a'".repeat(many)));
    assert!(either.faults.is_empty());
    let sum = read(&format!("fn f() {{ a(){} }}", " + b()".repeat(many)));
    assert_eq!(sum.calls.iter().filter(|c| c.how == CallKind::Plain).count(), many + 1);
    assert!(sum.faults.is_empty());
}
