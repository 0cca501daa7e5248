//! Compares the hand-written parser with tree-sitter, and tests which texts it rejects.

use crate::lang::descent::agreement::{MutationTest, both, left, of_windows, same};
use crate::languages::language;

/// Syntax at package level.
const DECLARATIONS: &[&str] = &[
    "import \"fmt\"",
    "import (\n\ta \"x/y\"\n\t. \"z\"\n\t_ \"w\" // why\n\n\t`raw/v2`\n)",
    "import ()",
    "// F does.\nfunc F[T any, U ~int | string](a, b int, c ...string) (x int, err error) {\n\treturn\n}",
    "/* G\ndoes */\nfunc G(int, p.T, ...string) *X { return nil }",
    "func (r *R[T]) M(a func(b int, c ...string) error, d, e map[string]int) func() { return r.n() }",
    "func (T) m() (int, error) { return 1, nil }",
    "func ext()",
    "func generic[K comparable, V int | float64](m map[K]V) V { return m[0] }",
    "func arrays(a [3]int, b []T, c [N]p.Q, d List[T], Map[K, V]) {}",
    "func arrays(a [3]int, b []T, c [N]p.Q, d List[T], e Map[K, V]) {}",
    "func TestIt(t *testing.T) { t.Run(\"a\", func(t *testing.T) {}) }\nfunc init() {}\nfunc main() {}",
    "type S struct {\n\t// A has doc.\n\tA int // behind\n\tB, C string `json:\"x\"`\n\tsync.Mutex\n\t*bytes.Buffer\n\n\t// away\n\n\tD struct{ e int }\n\tList[T]\n\tF func(a int) (b string, err error)\n\t_ int\n\tG [2]int; H chan<- T \"tag\"\n}",
    "type X interface {\n\tY\n\t// M has doc.\n\tM(context.Context, ...string) (a int, err error) // behind\n\tinterface{ Z() }\n\t~int | string\n\tp.Q[int]\n}",
    "// All of them.\ntype (\n\t// I has doc.\n\tI interface{}\n\tA = B\n\tG[T any] []map[string]chan<- func(int) (a, b int)\n\n\t// none\n)",
    "type T [3]int\ntype U [N]int\ntype V *T\ntype W func(x int) bool\ntype Y <-chan int\ntype Z [N + 1]int\ntype ZZ [p.N]int",
    "type N[T any] struct{ next *N[T] }\ntype P[T interface{ ~int }, Q []T] map[T]Q\ntype E = p.F",
    "// docs\nvar x, y int = 1, f()\nvar z = []int{1, 2}[0:1:2]",
    "var (\n\t// a has doc\n\ta = 1\n\tb, c T // behind\n\td func() = nil\n)",
    "const (\n\tA Kind = iota // first\n\tB\n\t_\n\tC, D = 1 << iota, \"x\"\n)\nconst e = 'x'",
    "var h = map[string][]T{\"a\": {{1}, {b: 2}}, \"b\": nil, c: {}}",
    "var i interface{} = struct{ x int }{1}.x",
    "var j = [...]string{0: \"a\", 1: `b`}",
    "var k = func(a int) int { return -a + b*c }",
    "var l, m = (*T)(nil), (func(int) string)(z)",
    "var _ I = (*T[any])(nil)",
];

/// Syntax inside functions.
const STATEMENTS: &[&str] = &[
    "x := 1",
    "y, z := f(), g[int](3)",
    "for i := 0; i < 3; i++ { continue }",
    "for { break }",
    "for x < 1 { x++ }",
    "for k, v := range m { f(k)(v) }",
    "for range c { }",
    "for k = range T.x { }",
    "for i := range 10 { f(i) }",
    "for ; ; { }",
    "for ;; i++ { }",
    "for i = 0; i < 3; { }",
    "for _, x := range []T{{1}} { x.f() }",
    "if x := f(); x > 0 { a() } else if y { b() } else { c() }",
    "if v, ok := m[k]; ok { v() }",
    "if x == (T{}) && f(T{1}) { a() }",
    "if f(func() bool { return T{}.x }) { }",
    "if x { } else { y() }",
    "switch x := f(); x { case 1, g(): a(); default: b(); fallthrough }",
    "switch { case x > 1: a()\ncase y: }",
    "switch v := x.(type) { case int, *T: v(); case nil: default: b() }",
    "switch f(x).(type) { case []int, func(a int) error, map[string]T, p.Q, *p.Q[int], interface{ M() }, chan int: a() }",
    "switch a := b(); c := a.(type) { case T: c.d() }",
    "switch f := x.y; { case f > 1: }",
    "switch (x) { case a: }",
    "select { case v := <-c: a(v); case c <- 1: ; case <-d: default: }",
    "select { case x, ok := <-c: case x = <-c: case y[0] = <-f(): }",
    "go f(x)",
    "defer func() { recover() }()",
    "c <- x",
    "x += 1; y &^= 2; z <<= 3",
    "a.b, c[0], d[\"k\"], *e, (f) = 1, 2, g(), h, i",
    "x--",
    "goto L\nL:\n\treturn a, b",
    "L: for { continue L }",
    "{ x() }",
    "var q, r int = 1, 2",
    "const (\n\tA = iota\n\tB\n)",
    "x()\n// docs\ntype T struct{ a, b int }",
    "a[b]()",
    "a[b](x, y)",
    "a[b](x...)",
    "a.b[c](x)",
    "a.b.c[d](x)",
    "f(x)[i](y)",
    "a[0](x)",
    "a[\"k\"](x)",
    "a[b.c](x)",
    "a[b+1](x)",
    "a[b][c](x)",
    "a[int, string](x, y)",
    "a[[]int](x)",
    "a[*b.c]()",
    "x = a[int, string]",
    "x = a[[]int]",
    "x = a.b[int]{}",
    "x = a[b.c]{1}",
    "x, y = make([]int, 3), new(T)",
    "x, y = make(map[string]int), make(chan T, 1)",
    "x = append(a, b, c...)",
    "x = f([]int(x), func() {}, struct{}{}, interface{}(x), *p, len([]int{1}))",
    "x, y, z = ([]int)(w), (<-chan int)(v), (p.T)(q)",
    "x, y = &[]T{{a: 1}}, &p.T{}",
    "x.y.z(a)(b).c[d] = e",
    "(*p).x = 2",
    "a, b := <-c, -d ^ e &^ f | g &h",
    "x = a == b && c != d || !e && f <= g",
    "x = a.(T).b.(*p.Q)(c)",
    "x = s[1:] + s[:2] + s[:] + s[a:b] + s[a:b:c]",
    "x = 1.5 + .5 + 2i + 0x1F + 0b1 + 1_000 + 1e-3 + 'a' + '\\''",
    "x = a.\n\tb().\n\tc(d)",
    "var err error; _ = err",
    "if err := f(\n\ta,\n\tb,\n); err != nil { return err }",
    "größe := 1; _ = größe",
    ";;",
];

fn in_function(statement: &str) -> String {
    format!("package p\n\nfunc f() {{\n\tfirst()\n\t{statement}\n}}\n")
}

fn in_package(declaration: &str) -> String {
    format!("// Package p has doc.\npackage p // behind\n\n{declaration}\n")
}

fn texts() -> Vec<String> {
    let mut all: Vec<String> = STATEMENTS.iter().map(|statement| in_function(statement)).collect();
    all.extend(DECLARATIONS.iter().filter(|text| !text.contains("List[T], Map")).map(|text| in_package(text)));
    all
}

#[test]
fn facts_are_those_of_tree_sitter() {
    let all = texts();
    same(&all, language("go"));
    same(all.iter().map(of_windows), language("go"));
    same([in_function(&STATEMENTS.join("\n\t")).as_str(), "package p", "package main; func main() {}"], language("go"));
    same(["// Only docs.\n\n// More.\npackage p\n// end\n"], language("go"));
}

#[test]
fn uncommon_texts_are_rejected() {
    let deep = in_function(&format!("x = {}1{}", "(".repeat(5_000), ")".repeat(5_000)));
    let not = in_function(&format!("x = {}y", "!".repeat(5_000)));
    let blocks = in_function(&"{".repeat(5_000));
    let types = format!("package p\nvar x {}int", "[]".repeat(5_000));
    let elses = in_function(&format!("if a {{ }}{}", " else if a { }".repeat(5_000)));
    let texts = [
        "package",
        "package p\nfunc f( {}",
        "package p\nfunc f() {",
        "package p\nfunc f() { a b }",
        "package p\nfunc f() { x := }",
        "package p\nfunc f() { if x }",
        "package p\nfunc f() { for a, b, c }",
        "package p\nfunc f() { switch x }",
        "package p\nfunc f() { f([]T) }",
        "package p\nfunc f() { x = `a",
        "package p\nfunc f() { x = \"a\n\" }",
        "package p\nfunc f() { /* }",
        "package p\nfunc f(a, b int, string) {}",
        "package p\nfunc arrays(a [3]int, Map[K, V]) {}",
        "package p\nimport x",
        "package p\nimport (\n\"a\"",
        "package p\ntype T",
        "package p\ntype T struct { a b c }",
        "package p\ntype T interface { M( }",
        "package p\nvar 1",
        "package p\nvar x = 1 = 2",
        "package p\nx := 1",
        "package p\nfunc f() { a ? b : c }",
        "package p\nfunc f() { x = 1a }",
        "x\0y",
        "\0",
        &deep,
        &not,
        &blocks,
        &types,
        &elses,
    ];
    left(texts, language("go"));
}

/// Code that tree-sitter's grammar misreads.
#[test]
fn some_texts_are_read_better_than_by_tree_sitter() {
    // An element of an element, not a type with arguments.
    let (theirs, ours) = both(&in_function("x := a.b[c.d][e.f]"), language("go"));
    let ours = ours.expect("plain");
    assert!(ours.contains("Element") && !ours.contains("Generic"), "{ours}");
    assert!(theirs.contains("Generic"), "mended: this test can go");
}

#[test]
fn damage_is_noticed() {
    let all = texts();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let damage = MutationTest {
        turns: 8_000,
        pieces: &[
            "(", ")", "[", "]", "{", "}", ":", ",", "\"", "`", "\\", "\n", ";", "=", ":=", "<-", "...", ".", "*", "ä",
            "//",
        ],
        least: 1_000,
        // Known mistakes of tree-sitter: `(*T[A])(x)` at the very end, and after another `*`.
        misread: |text| text.ends_with("(nil)") || text.contains("*a[[]int]"),
    };
    damage.is_noticed(|_| (language("go"), &all));
}
