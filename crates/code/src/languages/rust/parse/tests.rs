//! Compares the hand-written parser with tree-sitter, and tests which texts it rejects.

use crate::lang::descent::agreement::{MutationTest, both, left, of_windows, same};
use crate::languages::language;

/// Syntax at the level of a file or a module.
const ITEMS: &[&str] = &[
    "//! The file.\n//! More.\n\n// Not docs.\n\n#![allow(dead_code)]\nuse a::b;",
    "use a::{self, b as c, d::*, e::{f, g::h}, i as _};\npub(crate) use super::x;\nuse crate::y::{z,};\nuse ::w::v;\nuse *;\nuse self::q::r#type;",
    "extern crate serde;\npub extern crate a as b;\n#[macro_use]\nextern crate c as _;",
    "/// F does.\n#[inline]\n#[cfg_attr(test, derive(X))]\npub const unsafe extern \"C\" fn f<'a, T: A<'a> + ?Sized, const N: usize>(a: &'a mut T, mut b: [u8; N], (c, d): (i32, E), _: F) -> Result<G, H> where T: Clone, I<T>: J + 'static { b }",
    "async fn g(self: Box<Self>, mut self_: X) {}\nfn h() -> impl Fn(&str) -> i32 + 'static { |x| 1 }\nextern \"C\" fn i() {}",
    "/** Docs. */\n/* not */\nfn documented() {}\n/// Behind.\n#[test]\n// between\n#[ignore = \"why\"]\nfn tested() {}",
    "pub struct A<T = u8> { /// a has doc\n pub a: Vec<T>, // behind\n pub(in crate::x) b: Box<dyn Fn(A, &mut B) -> C + Send + 'static>,\n #[serde(default = \"d::e\", with = \"w\")]\n c: Option<[u8; 4]>, r#type: (A, B) }",
    "struct B(pub A, pub(crate) Vec<u8>, #[doc = \"x\"] (C, D), pub (E, F), );\nstruct C;\nstruct D<T>(T) where T: X;\nstruct E<'a, T: 'a> where T: Y, { a: &'a T }\nunion U { a: u32, b: f32 }",
    "#[derive(Debug, a::Clone)]\npub enum E { /// A has doc.\n A, B(u8, String), #[x] C { d: E, e: F } = 3, D = 1 << 2, }\nenum Empty {}",
    "pub(super) type A<T> = Result<T, Box<dyn Error>>;\ntype B = fn(a: A, B) -> C;\ntype C = unsafe extern \"C\" fn(*const u8, ...);\ntype D = for<'a> fn(&'a str) -> &'a u8;\ntype F = *mut [u8; N];\ntype G = <A as B>::C;\ntype H = A<B>::C;\ntype I = (A,);\ntype J = ();\ntype K = !;",
    "const A: usize = 1 + B::C;\nconst _: () = assert!(A > 1);\npub static mut B: &'static str = \"x\";\nstatic C: Lazy<D> = Lazy::new(|| D::new());",
    "/// T has doc.\npub unsafe trait T<A>: B + C<D> + 'static where A: E { /// f has doc.\n fn f(&self, a: A) -> Self; fn g(&mut self) where Self: Sized { self.f(1) } type H: I + ?Sized; type J; type K<'a>: L where Self: 'a; const M: u8; const N: u8 = 2; mac! { x } mac2!(y); }",
    "impl<T: A> B<T> where T: C { /// new has doc\n pub fn new(a: T) -> Self { Self { a, b: 1, ..Default::default() } } const X: u8 = 1; type Y = Z; fn x(self) {} fn y(&'a self) {} fn z(mut self) {} }",
    "impl<'a> a::B<'a> for &'a [C] { fn d() {} }\nunsafe impl Send for A {}\nimpl !Sync for B {}\nimpl<T> C<T> for D where for<'a> &'a T: E<'a> {}\nimpl A for () {}\nimpl B for fn(X) -> Y {}\nimpl dyn Any {}\nimpl A { default fn f() {} }",
    "mod a;\npub mod b { //! b has doc.\n //! More.\n use super::*; fn c() {} }\n/// Docs.\n#[cfg(test)]\nmod tests { #[test] fn d() { e() } }\n#[cfg(all(test, unix))]\nmod more {}",
    "extern \"C\" { fn a(b: *const c_char, ...) -> i32; static B: u8; fn c(_: i32); }\nunsafe extern \"C\" { pub fn d(); }\nextern { fn e(); }",
    "macro_rules! m { ($a:expr, $($b:ident),* $(,)?) => { $a.f($($b),*); $crate::g!($a) }; [] => (h::i()); }\nmacro_rules! n ( () => { fn x() { y() } } );\n#[macro_export]\nmacro_rules! o { ($($x:tt)*) => { $( let z = $x; )+ if $x { w($x)? } else { v } } }",
    "thread_local! { static A: RefCell<B> = RefCell::new(c()); }\nlazy_static::lazy_static! { pub static ref D: E = f(); }\nbitflags! { pub struct G: u32 { const H = 1; } }\nmac!(a, b);\nproptest! { #[test] fn p(a in 0..10, b: u8) { q(a)?; } }",
    "#[tokio::main]\nasync fn main() -> Result<()> { run().await?; Ok(()) }\n#[test_case(1, f(2); \"x\")]\nfn t(a: u8) {}",
    "fn where_less<T>() where T: A, {}\nfn bounds<F>(f: F) where F: for<'a> FnOnce(&'a A) -> B + Send + 'static, Vec<F>: C {}\nfn r<'a>(x: impl Iterator<Item = &'a A> + 'a) -> Box<dyn for<'b> Fn(&'b A)> {}\nfn u() -> impl A + use<'_, T> {}",
    "fn generics(a: HashMap<String, Vec<Option<A>>>, b: A<{ N + 1 }, 3, true, 'x'>, c: B<'a, 'static, T>, d: C<Item: D>, e: &&str, f: Vec<<A as B>::C>, g: E<_>, h: F<Item = G, H<'a> = I>) {}",
];

/// Syntax inside functions.
const STATEMENTS: &[&str] = &[
    "let x = 1;",
    "let mut y: Vec<_> = f();",
    "let (a, mut b, ref c, _): (A, B, C, D);",
    "let Some(x) = y else { return };",
    "let A { b, c: Some(d), ref e, mut f, .. } = g;",
    "let a::B::<C>(d, ..) = e;",
    "let [a, .., b] = c; let [x @ .., y] = z; let &(ref a, &mut b) = c;",
    "let x @ (A | B) = c;",
    "let x: &dyn A = &b as &dyn A;",
    "x = 1; x.y = z; x[1] = y; *x += 1; (a, b) = (b, a); x <<= 1; y >>= 2; z &= 3; w |= 4; v ^= 5; _ = u;",
    "a + b * c - d / e % f;",
    "a && b || !c == d; a < b; a > b; a <= b; a >= b; a != b; a & b | c ^ d << e >> f;",
    "-a.b() + *c.d - !e;",
    "&a; &mut b.c; &&d; &raw const e; &raw mut f;",
    "a as u8 as usize + 1; b as *const T; c as A<B> == d; x as usize < y;",
    "f(a, b.c(), |d| d + 1, &[1, 2], (1, 2), (3,), ());",
    "a.b.c(d)?.e()?.await?.f.0.1;",
    "a.b::<C, D>(e); f::<A>(b); A::<B>::c(); a::b::<C>::d(e); <A as B>::c(d); <A>::b(); Vec::<u8>::new;",
    "x[0][a..b][..][c..][..d]; y[1..=2]; 0..10; ..; ..5;",
    "A { b, c: d, 0: e, #[x] f: g, ..h }; a::B { }; A::<B> { c }; Self { a };",
    "[1, 2, 3,]; [0; N]; []; [a(), #[x] b()];",
    "if a { b } else if let Some(c) = d { e } else { f }",
    "if let A = b && c && let D(e) = f && g == h { }",
    "if a && b && let Some(c) = d { }",
    "if x == (A { b: 1 }) { } if a.iter().any(|b| b == C { d: 1 }) { }",
    "if a { } *b = 1; if c { } (d, e) = f; match g { } &h; loop { } [1][0]; { } -1;",
    "while let Some(x) = y.next() { continue; } 'a: while b { break 'a; }",
    "'outer: for (i, x) in y.iter().enumerate() { if z { break 'outer } continue 'outer }",
    "let x = loop { break 1; }; let y = 'b: { break 'b 2 }; 'c: loop { }",
    "for i in 0..n { } for _ in a { } for &x in &y[..] { } for A { b } in c { }",
    "match a { B => 1, C(d) | D(d) if e(d) => { f } E { g, .. } => h(), 1..=5 => i, -1 => j, 'a'..='z' => k, \"s\" => l, A::B::C => m, &n => o, ref p => q, [r, s @ ..] => t, (u, _) => v, _ if let W = x => y, _ => unreachable!(), }",
    "match x { | A | B => (), ..=5 => {} 6.. => {} ..7 => {} C::D..=C::E => {}, mac!(a) => {} }",
    "match x { A => {} &B => {} (C, D) => 1, -1 => {} [a] => {} b => c }",
    "match x { #[cfg(a)] A => b, C => match d { E => f, _ => g }, H => if i { j } else { k }, L => unsafe { m } N => loop { } _ => o.p(|q| r) }",
    "match x { A => { b }.c(), D => {}, _ => return e, }",
    "let f = |a, (b, c): (D, E), &g, mut h, _| -> I { j }; let k = || l(); let m = move |n: O| async move { p }; let q = async |r| s;",
    "return; return a + b; break; yield c;",
    "async { a.await }; async move { b }; unsafe { c }.d(); const { e() }; unsafe { f } g();",
    "{ a; b } { c }",
    "struct A { b: C } impl A { fn d() {} } fn e() {} use f::g; const H: I = 1; enum J { K } /// docs\n fn l() {} type M = N; static O: u8 = 1; trait P {} mod q {}",
    "macro_rules! m { () => { f() } } m!(); m! { a } m![b].c(); m!(d)? + e; m! { f }.g(); a::m! { h }? + i; m! { j };",
    "println!(\"{} {x}\", a.b(), c = d(e)); vec![1, 2]; vec![A::new(); 3]; matches!(x, Some(y) if y > 1); assert_eq!(a, b, \"c {}\", d);",
    "tokio::select! { a = b() => { c(a) } Some(d) = e => f, else => g } join!(h, i.j()); dbg!(k); write!(l, \"m\")?; json!({\"a\": b, \"c\": [d(), null]});",
    "m!(if a { b() } else { c }); m!(match d { E::F(g) => h(g), _ => i }); m!(let j = k; l(j)); m!(for x in y { z }); m!(|a| b(a), move || c); m!(&'static str, 'a, 'b', <A as B>::c()); m!($x $crate);",
    "m!(a.0.1.b(), 1.5, 2..3, 4..=5, x?.y, A { b: c, d, ..e }, fn f() -> G { h() }, async move { i.await }, return j, k as L, #[m] n, pub struct O { } );",
    "m!(\"a\\\"b\", r#\"c\"d\"#, b\"e\", b'f', '\\'', '\\\\', '\\u{1F600}', 0xff_u8, 1e5, 1_000u64, c\"g\", br\"h\", true, _, a::<B>::c, a << b, c >>= d, e ... f);",
    "let s = (\"a\\\n b\", r\"\\\", b\"x\", c\"y\", 'z', '\\n', b'\\0', '\\x41', 1u8, 1.5f32, 1e-3, 0b1, 0o7, 0xF, 1_f64, 2.);",
    "1.max(2); 1.0.sqrt(); 2..a.len(); x.0.f(); (1..2).g(); x.0 .1;",
    "#[allow(x)] let a = 1; #[cfg(y)] { b } #[z] c();",
    "a(); ; b();",
    "let x = if a { b } else { c } + 1; let y = match d { _ => 1 } * 2; let z = { e }.f;",
    "let v = a.b(|c| { d })\n    // why\n    .e()\n    /* and */ .f();",
    "let union = 1; let default = union + raw; auto.x; macro_rules::y();",
    "a = b.c; let d = e = f;",
    "let x = <[u8]>::len; <Vec<A>>::new(); <&A as B>::c(d); let y: <A as B>::C = z;",
    "let x = (|| -> A { b })(); (|a| b)(c); x()()[0]();",
    "let x = &mut *a; let y = **b; let z = !-c; let w = - -d;",
    "if !a.b() && c { d } else { e };",
    "let x = a..; f(..b); let y = ..;",
    "x.await; y.await.z; r#type.r#fn(r#match); self.x; Self::y(); super::z(); crate::w::v();",
];

fn in_function(statements: &str) -> String {
    format!("fn f() {{\n    {statements}\n}}\n")
}

fn texts() -> Vec<String> {
    let items = ITEMS.iter().map(|item| format!("{item}\n"));
    items.chain(STATEMENTS.iter().map(|statement| in_function(statement))).collect()
}

#[test]
fn facts_are_those_of_tree_sitter() {
    let all = texts();
    same(&all, language("rust"));
    same(all.iter().map(of_windows), language("rust"));
    same(["", "// Only docs.\n", "//! Docs.", "/* a /* b */ c */ fn f() {}", "fn ä() { ö.ü() }"], language("rust"));
}

#[test]
fn uncommon_texts_are_rejected() {
    let deep = in_function(&format!("x = {}1{};", "(".repeat(5_000), ")".repeat(5_000)));
    let not = in_function(&format!("x = {}y;", "!".repeat(5_000)));
    let blocks = in_function(&"{".repeat(5_000));
    let types = format!("type A = {}u8;", "&".repeat(5_000));
    let elses = in_function(&format!("if a {{ }}{}", " else if a { }".repeat(5_000)));
    let patterns = in_function(&format!("let {}x = y;", "&".repeat(5_000)));
    let uses = format!("use {}a{};", "a::{".repeat(5_000), "}".repeat(5_000));
    let ranked = format!("fn f() where {}A{}: B {{}}", "for<T: ".repeat(5_000), "> C".repeat(5_000));
    let closures = in_function(&format!("x = {}y;", "|| ".repeat(5_000)));
    let texts = [
        "fn",
        "fn f( {}",
        "fn f() {",
        "fn f() { a b }",
        "fn f() { let x = ; }",
        "fn f() { if x }",
        "fn f() { a < b < c }",
        "fn f() { a = b = c }",
        "fn f() { x(]; }",
        "fn f() { m!(]); }",
        "fn f() { m!(a }",
        "fn f() { \"a }",
        "fn f() { 'a }",
        "fn f() { r#\"a\" }",
        "fn f() { /* }",
        "fn f() { 1x }",
        "fn f() { $x }",
        "struct A { b c }",
        "enum A { b: c }",
        "impl A for { }",
        "use a::{b;",
        "let x = 1;",
        "a();",
        "#!/usr/bin/env run\nfn f() {}",
        "#[a",
        "macro_rules! m { () = {} }",
        "fn f() { match a { b c } }",
        "x\0y",
        "\0",
        &deep,
        &not,
        &blocks,
        &types,
        &elses,
        &patterns,
        &uses,
        &ranked,
        &closures,
    ];
    left(texts, language("rust"));
}

/// Code that tree-sitter's grammar misreads.
#[test]
fn some_texts_are_read_better_than_by_tree_sitter() {
    for (statement, what) in [
        // The value of `break`, not a call or a product with it.
        ("let x = loop { break (a, b); };", "a tuple"),
        ("let x = loop { break *a; };", "what a points to"),
        ("x[a..*b];", "up to what b points to"),
        ("x[..=a];", "up to and with a"),
        ("f(|| _ = g());", "an assignment in a closure"),
        ("if a { return b |= c; }", "an assignment that is given back"),
        ("m! { a } *x = y.z();", "a macro that is a statement, and an assignment"),
    ] {
        let (theirs, ours) = both(&in_function(statement), language("rust"));
        assert_ne!(ours.expect("plain"), theirs, "{what}: mended, this test can go");
    }
    let (_, ours) = both("extern \"C\" { pub type A; }\n#[unsafe(no_mangle)]\nfn f() { 1; }", language("rust"));
    assert!(ours.is_some_and(|facts| facts.contains("\"faults\":[]")));
}

/// Whether tree-sitter reads the beginning of a value after `..` or `break` as an operator.
fn misread(text: &str) -> bool {
    let behind = |mark: &str| {
        let begins = |(at, _): (usize, &str)| {
            text[at + mark.len()..].trim_start().starts_with(['-', '*', '&', '|', '(', '[', '<', '='])
        };
        text.match_indices(mark).any(begins)
    };
    behind("..") || behind("break 'b") || behind("m! { a }")
}

#[test]
fn damage_is_noticed() {
    let all = texts();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let damage = MutationTest {
        turns: 12_000,
        pieces: &[
            "(", ")", "[", "]", "{", "}", ":", "::", ",", "\"", "'", "\\", "\n", ";", "=", "=>", "->", "..", ".", "*",
            "&", "|", "<", ">", "!", "?", "#", "$", "ä", "//", "/*", "as ", "mut ", "let ", "fn ", "r#", "0", "_",
        ],
        least: 1_000,
        misread,
    };
    damage.is_noticed(|_| (language("rust"), &all));
}
