//! Compares the hand-written parser with tree-sitter, and tests which texts it rejects.

use crate::lang::descent::agreement::{MutationTest, both, left, of_windows, same};
use crate::lang::descent::compare;
use crate::languages::language;

const FILES: &[&str] = &[
    "package a.b;\nimport java.util.*;\nimport static a.B.c;\nimport d;\n/** Docs. */\nclass A {}",
    "@Ann(x = 1, y = {2, 3}, z = @Other) @Mark @a.b.C(\"s\")\npublic abstract class A<T extends B & C, U> extends p.D<T> implements I, J<K> permits X { }",
    "enum E implements I { /** a */ A(1) { void f() {} }, @D B, C; /** b */ E(int x) {} void g() {} }\nenum F { A, B, }\nenum G {}\nenum H { ; int x; }",
    "interface I<T> extends J, K { int X = 1; void a(); default void b() {} static void c() {} private void d() {} }",
    "@interface Q { int v() default 1; String[] w() default {\"a\"}; Class<?> x(); int Y = 1; class Z {} }",
    "record R<T>(int a, @N String b, T... c) implements I { R { check(); } static int x; R(int y) { this(y, null); } }",
    "public sealed interface S permits T, U {}\nfinal class V {}",
    "/* not docs */\n@A package a;\n",
    "// nothing\n",
    "",
];

const MEMBERS: &[&str] = &[
    "private static final int a = 1, b[] = {2, {3}}, c;",
    "/** Docs. */ @N static volatile String s = \"x\" + y; // behind",
    "static { s(); }\n{ t(); }",
    "A(int x, final String... y) throws E, F { super(x); this.a = 1; }",
    "<V> A(V v) { <V>this(v); b(); }",
    "public <V> List<? super V> m(@N T[] x, int y[], V v, List<? extends @N K> z) throws G { return null; }",
    "abstract void n(); native int o(); synchronized void p() {} protected int h()[] { return null; }",
    "/** Inner. */ static final class Inner<T> extends A.B<T>.C { } interface J {} enum K { L } record M(int a) {} @interface N {}",
    "List<@Nullable String> a; Map<? extends @N K, ?> b; @Nullable Object @Nullable [] c; java.util.@N List<T> e; int[][] f;",
    "@Test void testIt() { assertEquals(a, b()); }\npublic static void main(String[] args) { new A().run(); }",
    "private final Map<String, List<? super T>> m = new HashMap<>(), n;",
    ";",
    "Runnable r = () -> a(), s = x -> b, t = (x, y) -> { return c; }, u = (int x, final T y) -> d;",
];

const STATEMENTS: &[&str] = &[
    "int i = 0, j[] = new int[3];",
    "final var v = new ArrayList<>();",
    "List<String>[] ls = null; a.b.C<D>.E x; Foo.Bar b = c; a[] d; @N int w = 1;",
    "if (a) b(); else if (c) { d(); } else e();",
    "if (!(o instanceof T t)) return; t.u();",
    "if (x instanceof T && y.getClass() == U.class) x.z();",
    "if (a) ; else b();",
    "for (int i = 0, k = 1; i < 3; i++, k--) f();",
    "for (i = 0, j = 1; ; ) ;",
    "for (;;) {}",
    "for (final String s : list) g(s);",
    "for (@N Map.Entry<K, V> q : r()) {}",
    "while (a) b();",
    "do { c(); } while (d());",
    "switch (x) { case 1: case A, B: a(); break; default: b(); }",
    "int y = switch (x) { case 1, 2 -> a(); case String s when s.isEmpty() -> { yield 3; } case R(int a, var b) -> throw new E(); case null, default -> 4; };",
    "try (X a = b(); c; this.d) { e(); } catch (E | F g) { h(); } finally { i(); }",
    "try { } catch (final E e) { }",
    "try (final var x = y()) { }",
    "switch (x) { case T t when ok -> f(); case U u when (a && b) -> g(); default -> h(); }",
    "synchronized (a) { b(); }",
    "throw new E(\"x\", y) ;",
    "return a + b;",
    "return;",
    "assert a : b(); assert c;",
    "L: for (;;) { if (a) break L; else continue L; }",
    "/** Local. */ class Local { void f() {} }",
    "final class Other {} abstract class K {} record Z(int a) {} enum E { A } interface I {}",
    "a.b().c.d(e, f)[1].<T>g().h = i;",
    "this.<T>x(); super.y(); A.super.z(); A.this.w(); B.<T>s(); a.b.c(); String.format(\"x\");",
    "new A<T>(b) { int c; void d() {} };",
    "outer.new Inner(x);",
    "x = new int[2][]; y = new String[]{\"a\"}; z = new a.b.C[0]; w = new <T>B<U>(c); v = new A.B();",
    "z = A::b; z = A::new; z = int[]::new; z = this::c; z = super::d; z = a.b::c; z = List<String>::new; z = String[]::new; z = a()::b;",
    "c = (T) x; c = (int) y; c = (A & B) z; c = (a) + b; c = (T[]) w; c = (List<T>) v; c = (int) -x; c = (a.B) (c); c = (T) () -> d;",
    "b = x instanceof T; b = x instanceof T t && t.u(); b = x instanceof final T t; b = x instanceof R(int a, T(var b)); b = x instanceof List<?> l;",
    "d = a + b - c * d / e % f << g >> h >>> i & j | k ^ l && m || n == o != p < q > r <= s >= t;",
    "e = a ? b() : c ? d : () -> f; e = -a + ~b + !c; ++i; i--; i += 2; i >>>= 3; i >>= 1; a[0] = b; a = b = c; x.y = z;",
    "f = int.class; f = A.class; f = a.B[].class; f = String[].class; f = a.b.C.class; f = void.class;",
    "g = 1L + 0x1F + 1.5f + 'a' + \"s\\\"\" + \"\"\"\n    te\"xt\"\"\" + true + null + 1e3 + 0b1 + 017 + 1d + .5 + 0xFFL + '\\'';",
    "var q = a < b; h(a < b, c > d); Foo<Bar> y = z; int k = a.length; boolean l = a < b && c > d;",
    "foo(x -> y, (z) -> { }, () -> 1, A::b, (a, b) -> c, (int d) -> e);",
    "a.b(c)\n  .d()\n  .e(f);",
    "größe = 1; $a = _b;",
    "yield = 1; record = 2; var = 3; sealed(); permits.a();",
    "int x = (a) - 1, y = (b) * (c);",
    ";;",
];

fn in_class(member: &str) -> String {
    format!("package p;\n\n/** Docs. */\npublic class A {{\n  {member}\n}}\n")
}

fn in_method(statement: &str) -> String {
    in_class(&format!("void f() {{\n    {statement}\n  }}"))
}

fn texts() -> Vec<String> {
    let mut all: Vec<String> = FILES.iter().map(|text| (*text).to_owned()).collect();
    all.extend(MEMBERS.iter().map(|member| in_class(member)));
    all.extend(STATEMENTS.iter().map(|statement| in_method(statement)));
    all
}

#[test]
fn facts_are_those_of_tree_sitter() {
    let all = texts();
    same(&all, language("java"));
    let without_blocks = all.iter().filter(|text| !text.contains("\"\"\""));
    same(without_blocks.map(of_windows), language("java"));
    same([in_method(&STATEMENTS.join("\n    ")).as_str(), in_class(&MEMBERS.join("\n  ")).as_str()], language("java"));
}

#[test]
fn uncommon_texts_are_rejected() {
    let deep = in_method(&format!("x = {}1{};", "(".repeat(5_000), ")".repeat(5_000)));
    let not = in_method(&format!("x = {}y;", "!".repeat(5_000)));
    let casts = in_method(&format!("x = {}y;", "(T) ".repeat(5_000)));
    let blocks = in_method(&"{".repeat(5_000));
    let types = in_class(&format!("{}T{} x;", "A<".repeat(5_000), ">".repeat(5_000)));
    // Too deep for a type, but not too deep if it is read as a comparison.
    let compared = in_method(&format!("{}Foo<A> x;{}", "{".repeat(57), "}".repeat(57)));
    let compared_too = in_method(&format!("{}Foo<A> x;{}", "{".repeat(58), "}".repeat(58)));
    let lambdas = in_method(&format!("x = {}1;", "(a) -> ".repeat(5_000)));
    let texts = [
        "class",
        "class A",
        "class A {",
        "class A { void f( {} }",
        "class A { int x }",
        "class A { void f() { a b } }",
        "class A { void f() { int = 1; } }",
        "class A { void f() { if a; } }",
        "class A { void f() { x = ; } }",
        "class A { void f() { f(a,); } }",
        "class A { void f() { switch (x) } }",
        "class A { String s = \"a",
        "class A { String s = \"\"\"a",
        "class A { /* }",
        "class A { int x = 1a; }",
        "class A { void f() { 1 = 2; } }",
        "class A { void f() { a.; } }",
        "class A { void f() { yield (x); } }",
        "import a.b",
        "import a.*.b;",
        "package;",
        "module a.b { }",
        "enum E { A B }",
        "class A { char c = '\\u0027' + \\u0061; }",
        "x = 1;",
        "x\0y",
        "\0",
        &deep,
        &not,
        &casts,
        &blocks,
        &types,
        &lambdas,
        "class A { void f() { switch (o) { case Box<String>(_) -> f(); default -> g(); } } }",
    ];
    left(texts, language("java"));
    for text in [compared, compared_too] {
        if compare::own(&text, language("java")).is_some() {
            same([text.as_str()], language("java"));
        }
    }
    // A long chain is not deeply nested.
    let long = in_class(&format!("Object o = a{}.class;", ".a".repeat(100_000)));
    assert!(compare::own(&long, language("java")).is_some());
}

/// Code that tree-sitter's grammar misreads.
#[test]
fn some_texts_are_read_better_than_by_tree_sitter() {
    for member in ["void f(Object @N ... x) { g(); }", "Object a = new @N Object[3];"] {
        let (_, ours) = both(&in_class(member), language("java"));
        assert!(ours.expect("plain").contains("\"faults\":[]"), "{member}");
    }
}

#[test]
fn damage_is_noticed() {
    let all = texts();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let damage = MutationTest {
        turns: 8_000,
        pieces: &[
            "(", ")", "[", "]", "{", "}", ":", ",", "\"", "'", "\\", "\n", ";", "=", "->", "::", "<", ">", "?", ".",
            "@", "ä", "//",
        ],
        least: 1_000,
        misread: |_| false,
    };
    damage.is_noticed(|_| (language("java"), &all));
}
