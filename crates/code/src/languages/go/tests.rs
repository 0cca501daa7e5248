//! Small Go texts and their facts.

use crate::facts::{FileFacts, ROOT, flag};
use crate::lang::compact::compact;
use crate::languages::language;

fn parse(path: &str, text: &str) -> FileFacts {
    crate::parse(path, text, language("go"))
}

/// Compares the lines of the compact form that begin with one of these words.
fn check(text: &str, words: &str, expected: &str) {
    let all = compact(&parse("x.go", text));
    let found: Vec<&str> = all.lines().filter(|l| words.split(' ').any(|w| l.split(' ').next() == Some(w))).collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    assert_eq!(found.join("\n"), expected.join("\n"));
}

#[test]
fn functions_and_methods() {
    check(
        r#"package shop

// Open begins.
//
//go:noinline
func Open(name string, sizes ...int) (*Shop, error) { return nil, nil }

/* Shop sells. */
type Shop struct{}

func (s *Shop) Sell(a, b Item, _ int) Item { return a }
func (Shop) close() {}
func asm(x int) int
func _() {}
func init() {}
func init() { asm(1) }
"#,
        "def doc sig",
        r#"
        def File  1-16
        def Function Open exported variadic 6-6 (name: string, ...sizes: []<int>) -> ()<<Shop>, error>
        sig func Open(name string, sizes ...int) (*Shop, error)
        doc Open "Open begins."
        def Struct Shop exported 9-9
        sig type Shop struct
        doc Shop "Shop sells."
        def Method Sell exported self 11-11 of <Shop> (s: <Shop>, a: Item, b: Item, _: int) -> Item
        sig func (s *Shop) Sell(a, b Item, _ int) Item
        def Method close self 12-12 of <Shop> (_: <Shop>)
        sig func (Shop) close()
        def Function asm declared 13-13 (x: int) -> int
        sig func asm(x int) int
        def Function _ 14-14
        sig func _()
        def Function init entry 15-15
        sig func init()
        def Function init entry 16-16
        sig func init()
        "#,
    );
}

#[test]
fn package_and_its_doc() {
    let facts = parse("a/x.go", "// Copyright.\n\n// Package a does it.\npackage a\n");
    assert_eq!(&*facts.package, "a");
    assert_eq!(facts.defs[ROOT].doc.as_deref(), Some("Package a does it."));
}

#[test]
fn imports_in_all_forms() {
    check(
        r#"package a
import "fmt"
import (
	"github.com/x/y/v2"
	"gopkg.in/yaml.v3"
	"github.com/x/go-foo"
	. "testing"
	_ "embed"
	str `strings`
	"C"
)
"#,
        "import",
        r#"
        import fmt Module fmt 2
        import github.com/x/y/v2 Module y 4
        import gopkg.in/yaml.v3 Module yaml 5
        import github.com/x/go-foo Module go-foo 6
        import testing All - 7
        import embed Nothing - 8
        import strings Module str 9
        import C Module C 10
        "#,
    );
}

#[test]
fn structs_and_embedding() {
    check(
        r#"package a
type (
	// Base is below.
	Base struct { ID int }
	T struct { // not a doc
		*Base
		pkg.Other
		List[int]
		// Name is a name.
		Name, Nick string `json:"name"` // nor this
		run func(int) (T, error)
		In struct { deep Base }
	}
)
"#,
        "def doc sig",
        r#"
        def File  1-14
        def Struct Base exported 4-4
        sig type Base struct
        doc Base "Base is below."
        def Field Base/ID exported 4-4 -> int
        sig ID int
        def Struct T exported 5-13 < Embeds <Base> < Embeds pkg.Other < Embeds List<int>
        sig type T struct
        def Field T/Base exported 6-6 -> <Base>
        sig *Base
        def Field T/Other exported 7-7 -> pkg.Other
        sig pkg.Other
        def Field T/List exported 8-8 -> List<int>
        sig List[int]
        def Field T/Name exported 10-10 -> string
        sig Name, Nick string
        doc Name "Name is a name."
        def Field T/Nick exported 10-10 -> string
        sig Name, Nick string
        doc Nick "Name is a name."
        def Field T/run 11-11 -> fn ()<<T>, error>
        sig run func(int) (T, error)
        def Struct T/<struct> 12-12
        sig struct
        def Field T/In exported 12-12 -> def <struct>
        sig In struct { deep Base }
        "#,
    );
}

#[test]
fn fields_do_not_hide_types() {
    check(
        "package a\ntype Kind int\ntype Node struct { Kind Kind; other Kind }\n",
        "var",
        "
        var x.go.Kind Def(1): -
        var x.go.Node Def(2): -
        var Node.Kind Local: <Kind>
        var Node.other Local: <Kind>
        ",
    );
}

#[test]
fn interfaces() {
    check(
        r#"package a
type Shape interface {
	fmt.Stringer
	error
	// Area measures.
	Area(unit Unit) (n float64)
	scale(...int)
}
type Number interface { ~int | ~float64 }
type Empty interface{}
"#,
        "def doc",
        r#"
        def File  1-10
        def Interface Shape exported 2-8 < Embeds fmt.Stringer < Embeds error
        def Method Shape/Area abstract exported 6-6 (unit: Unit) -> float64
        doc Area "Area measures."
        def Method Shape/scale abstract variadic 7-7 (..._: []<int>)
        def Interface Number exported 9-9
        def Interface Empty exported 10-10
        "#,
    );
}

#[test]
fn named_types_aliases_and_generics() {
    check(
        r#"package a
type A = B
type Handler func(*Context) error
type Chain []Handler
type Index map[string]*Node
type Pipe chan<- Node
type Set[K comparable, V Stringer | Other] struct { m map[K]V }
func (s *Set[K, V]) Get(k K) V { return s.m[k] }
func Map[T, U any](xs []T, f func(T) U) []U { return nil }
"#,
        "def var",
        "
        def File  1-9
        def Type A exported 2-2 -> B
        def Type Handler exported 3-3 -> fn error
        def Type Chain exported 4-4 -> []<<Handler>>
        def Type Index exported 5-5 -> {}<string, Node>
        def Type Pipe exported 6-6 -> []<Node>
        def Struct Set exported 7-7
        def Field Set/m 7-7 -> {}<<K>, <V>>
        def Method Get exported self 8-8 of <Set> (s: <Set><<K2>, <V2>>, k: <K2>) -> <V2>
        def Function Map exported 9-9 (xs: []<<T>>, f: fn <U>) -> []<<U>>
        var x.go.A Def(1): -
        var x.go.Handler Def(2): -
        var x.go.Chain Def(3): -
        var x.go.Index Def(4): -
        var x.go.Pipe Def(5): -
        var x.go.Set Def(6): -
        var Set.K TypeParam: comparable
        var Set.V TypeParam: either(Stringer, Other)
        var Set.m Local: {}<<K>, <V>>
        var Get.K TypeParam: -
        var Get.V TypeParam: -
        var Get.s Param(0): <Set><<K2>, <V2>>
        var Get.k Param(1): <K2>
        var x.go.Map Def(9): -
        var Map.T TypeParam: any
        var Map.U TypeParam: any
        var Map.xs Param(0): []<<T>>
        var Map.f Param(1): fn <U>
        ",
    );
}

#[test]
fn package_variables_and_constants() {
    check(
        r#"package a
var Default = New()
var a, b = pair()
var _ Shape = (*Circle)(nil)
const (
	// Red is first.
	Red Color = iota // trailing
	Green
	Blue, cyan = 1, 2
)
var (
	table = map[string]func(){
		"x": run,
	}
	lazy *T
)
"#,
        "def doc sig bind call use",
        r#"
        def File  1-16
        def Variable Default exported 2-2
        sig var Default = New()
        def Variable a 3-3
        sig var a, b = pair()
        def Variable b 3-3
        sig var a, b = pair()
        def Variable Red exported constant 7-7 -> Color
        sig const Red Color = iota
        doc Red "Red is first."
        def Variable Green exported constant 8-8 -> Color
        sig const Green
        def Variable Blue exported constant 9-9
        sig const Blue, cyan = 1, 2
        def Variable cyan constant 9-9
        sig const Blue, cyan = 1, 2
        def Variable table 12-14
        sig var table = map[string]func(){ …
        def Variable lazy 15-15 -> T
        sig var lazy *T
        call x.go: New() 2:14
        call x.go: pair() 3:11
        call x.go: Circle(Nothing) 4:14
        bind <Default> = New()
        bind <a> = pair()#0
        bind <b> = pair()#1
        bind <table> = Map[x: run]
        use x.go: Shape 4
        use x.go: Circle 4
        use x.go: Color 7
        use x.go: run 13
        use x.go: T 15
        "#,
    );
}

#[test]
fn names_are_visible_from_their_declaration_on() {
    check(
        r#"package a
func f(x T, err error) {
	x.before()
	if x := x.next(); x.ok() {
		x.inner()
	} else if y := x.other(); y != nil {
		y.run()
	}
	{
		later()
		later := x.last
		later()
	}
	z, err := g(err)
	z.end(err)
	later()
}
func later() {}
"#,
        "call bind",
        "
        call f: <x>.before() 3:1
        call f: <x>.next() 4:9
        call f: <x2>.ok() 4:19
        call f: <x2>.inner() 5:2
        call f: <x2>.other() 6:16
        call f: <y>.run() 7:2
        call f: <later2>() 10:2
        call f: <later>() 12:2
        call f: g(<err>) 14:11
        call f: <z>.end(<err>) 15:1
        call f: <later2>() 16:1
        bind <x2> = <x>.next()
        bind <y> = <x2>.other()
        bind <later> = <x>.last
        bind <z> = g()#0
        bind <err> = g()#1
        ",
    );
}

#[test]
fn two_values() {
    check(
        r#"package a
func f(m map[string]T, x any, ch chan T) {
	a, err := g()
	b, ok := m[k]
	c, ok := x.(*T)
	d, ok := (<-ch)
	e, h := a, b
	i := m["k"]
	j := x.(func() T)
	_, _ = c, d
	_, _, _, _, _ = e, h, i, j, err
}
"#,
        "bind",
        r#"
        bind <a> = g()#0
        bind <err> = g()#1
        bind <b> = <m>[]
        bind <c> = a T
        bind <d> = <ch>[]
        bind <e> = <a>
        bind <h> = <b>
        bind <i> = <m>["k"]
        bind <j> = either(<x>, a fn T)
        "#,
    );
}

#[test]
fn assignments_reach_fields_elements_and_pointers() {
    check(
        r#"package a
func f(s *S, p *func(), ch chan func()) {
	s.run = g
	s.all["k"] = g
	s.all[i] = g
	(*s).run = g
	*p = g
	ch <- g
	Elsewhere = g
	Here = g
	s.n += 1
	s.list = append(s.list, g, h)
	s.list = append(s.list[:1], more...)
}
var Here func()
"#,
        "bind call",
        r#"
        bind <s>.run = g
        bind <s>.all["k"] = g
        bind <s>.all[] = g
        bind <s>.run = g
        bind <p> = g
        bind <ch>[] = g
        bind free Elsewhere = g
        bind <Here> = g
        bind <s>.list = joined(...<s>.list, g, h)
        bind <s>.list = joined(...<s>.list, ...more)
        "#,
    );
}

#[test]
fn loops() {
    check(
        r#"package a
type W struct { jobs chan J }
func f(xs []T, ch <-chan T, w *W) {
	for i := 0; i < n(); i++ { use(i) }
	for k, v := range xs { v.run(k) }
	for i := range xs { use(i) }
	for x := range ch { x.run() }
	for j := range w.jobs { j.run() }
	done := make(chan T)
	for d := range done { d.run() }
	for s := range seq() { s.run() }
	var x T
	for _, x = range xs { x.run() }
	for range xs { tick() }
}
"#,
        "bind call",
        "
        call f: n() 4:17
        call f: use(<i>) 4:28
        call f: <v>.run(<k>) 5:24
        call f: use(<i2>) 6:21
        call f: <x>.run() 7:21
        call f: <j>.run() 8:25
        call f: <d>.run() 10:23
        call f: seq() 11:16
        call f: <s>.run() 11:24
        call f: <x2>.run() 13:23
        call f: tick() 14:16
        bind <k> = keys(<xs>)
        bind <v> = <xs>[]
        bind <i2> = keys(<xs>)
        bind <x> = <ch>[]
        bind <j> = <w>.jobs[]
        bind <done> = a []<T>
        bind <d> = <done>[]
        bind <s> = seq()[]
        bind <x2> = <xs>[]
        ",
    );
}

#[test]
fn switches_and_selects() {
    check(
        r#"package a
func f(y any, in chan T) {
	switch x := y.(type) {
	case *A:
		x.a()
	case B, pkg.C:
		x.b()
	case nil:
		x.c()
	default:
		x.d()
	}
	switch z := g(); z.kind() {
	case One, two():
		z := z.sub()
		z.run()
	}
	select {
	case v, ok := <-in:
		v.run(ok)
	case in <- make1():
	case <-done():
	}
outer:
	for {
		break outer
	}
}
"#,
        "bind call",
        "
        call f: <x>.a() 5:2
        call f: <x2>.b() 7:2
        call f: <x3>.c() 9:2
        call f: <x4>.d() 11:2
        call f: g() 13:13
        call f: <z>.kind() 13:18
        call f: two() 14:11
        call f: <z>.sub() 15:7
        call f: <z2>.run() 16:2
        call f: <v>.run(<ok>) 20:2
        call f: make1() 21:12
        call f: done() 22:8
        bind <x> = a A
        bind <x2> = either(a B, a pkg.C)
        bind <x3> = <y>
        bind <x4> = <y>
        bind <z> = g()
        bind <z2> = <z>.sub()
        bind <v> = <in>[]
        bind <in>[] = make1()
        ",
    );
}

#[test]
fn literals() {
    check(
        r#"package a
func f() {
	a := T{Run: g, n: 1}
	b := &pkg.T{g, h}
	c := []func(){g, h}
	d := map[string]*T{"x": {Run: g}, key: {h}}
	e := [][]T{{{Run: g}}}
	h := Set[int]{Run: g}
	i := []T{}
	j := []int{1, 2, 3}
	k := Cases{{Run: g}}
	l := []struct{ run func() }{{g}, {run: h}}
	m := new(T)
	n := make(map[string]T, size())
	o := [...]T{2: {Run: g}}
	p := struct{}{}
}
"#,
        "bind call",
        "
        call f: size() 14:25
        bind <a> = T{Run: g, n: Number}
        bind <b> = pkg.T{g, h}
        bind <c> = List[g, h]
        bind <d> = Map[x: T{Run: g}, ?: T{h}]
        bind <e> = List[List[T{Run: g}]]
        bind <h> = Set<int>{Run: g}
        bind <i> = a []<T>
        bind <j> = a []<int>
        bind <k> = Cases{either(a Cases[], Map[Run: g])}
        bind <l> = List[def <struct>{g}, def <struct>{run: <h>}]
        bind <m> = a T
        bind <n> = a {}<string, T>
        bind <o> = List[?: T{Run: g}]
        ",
    );
}

#[test]
fn calls_of_all_kinds() {
    check(
        r#"package a
import "x/pkg"
func run[T any](hs []func(int), s S, i int) {
	f[int](1)
	f[int, string]()
	pkg.F[pkg.T](x)
	pkg.F[T]()
	table[key](3)
	table[i](3)
	hs[i](4)
	s.hs[s.i](5, 6)
	s.hs[0]()
	run[T](nil, s, 1)
	go s.work(xs...)
	defer func() { recover() }()
	(*pkg.T).Method(t)
	pkg.New().
		With(g).
		Run(T.Name)
	[]byte(x)
	b := f[int]
}
"#,
        "call bind use",
        "
        call run: f(Number) 4:1
        call run: f() 5:1
        call run: either(<pkg>.F, <pkg>.F[])(x) 6:1
        call run: <pkg>.F() 7:1
        call run: either(table, table[])(Number) 8:1
        call run: table[](Number) 9:1
        call run: <hs>[](Number) 10:1
        call run: <s>.hs[](Number, Number) 11:1
        call run: <s>.hs#0() 12:1
        call run: <run>(Nothing, <s>, Number) 13:1
        call run: <s>.work(...xs) 14:4
        call <lambda>: recover() 15:16
        call run: def <lambda>() 15:7
        call run: <pkg>.T.Method(t) 16:1
        call run: <pkg>.New() 17:1
        call run: <pkg>.New().With(g) 18:2
        call run: <pkg>.New().With().Run(<T>.Name) 19:2
        bind <b> = f
        use run: S 3
        use run: <pkg>.T 6
        use run: x 6
        use run: key 8
        use run: <s>.i 11
        use run: <s>.hs 12
        use run: xs 14
        use run: <pkg>.T 16
        use run: t 16
        use run: g 18
        use run: <T>.Name 19
        use run: x 20
        use run: f 21
        ",
    );
}

#[test]
fn lambdas_and_named_results() {
    check(
        r#"package a
func f(cb func(int) T) (n T, err error) {
	n = cb(1)
	g := func(x T) (r T) {
		r = x.sub()
		return
	}
	if n == nil { return }
	h(func() T { return g(n) })
	return
}
func two() (A, B) { return a(), b() }
func both() (A, B) { return two() }
"#,
        "def call bind return",
        "
        def File  1-13
        def Function f 2-11 (cb: fn T) -> ()<T, error>
        def Lambda f/<lambda> arrow 4-7 (x: T) -> T
        def Lambda f/<lambda> arrow 9-9 -> T
        def Function two 12-12 -> ()<A, B>
        def Function both 13-13 -> ()<A, B>
        call f: <cb>(Number) 3:5
        call <lambda>: <x>.sub() 5:6
        call <lambda>: <g>(<n>) 9:21
        call f: h(def <lambda>) 9:1
        call two: a() 12:27
        call two: b() 12:32
        call both: <two>() 13:28
        bind <n> = <cb>()
        bind <r> = <x>.sub()
        bind <g> = def <lambda>
        return <lambda>: <r>
        return f: Tuple[<n>, <err>]
        return <lambda>: <g>()
        return two: Tuple[a(), b()]
        return both: <two>()
        ",
    );
}

#[test]
fn types_inside_functions() {
    check(
        r#"package a
func f() {
	type Pair struct { A, b T }
	type call func() Pair
	const n, m = 1, g
	var p Pair
	var q, r = p.A, m
	p.A.run(q, r)
	var w interface{ Close() error } = p
	w.Close()
}
"#,
        "def call bind",
        "
        def File  1-11
        def Function f 2-11
        def Struct f/Pair 3-3
        def Field f/Pair/A 3-3 -> T
        def Field f/Pair/b 3-3 -> T
        def Type f/call 4-4 -> fn <Pair>
        def Interface f/<interface> 9-9
        def Method f/<interface>/Close abstract 9-9 -> error
        call f: <p>.A.run(<q>, <r>) 8:1
        call f: <w>.Close() 10:1
        bind <m> = g
        bind <q> = <p>.A
        bind <r> = <m>
        bind <w> = <p>
        ",
    );
}

#[test]
fn tests_and_entries() {
    let text = r#"package main
func TestA(t *testing.T) {}
func Testing() {}
func Test_b(t *testing.T) {}
func BenchmarkC(b *testing.B) {}
func FuzzD(f *testing.F) {}
func Example() {}
func (s *Suite) TestE() {}
func (s *Suite) SetupTest() {}
func main() {}
"#;
    let flagged = |path: &str| {
        let facts = parse(path, text);
        let names = |bit| {
            let found = facts.defs.iter().filter(|d| d.is(bit)).map(|d| facts.name(d.name));
            found.collect::<Vec<_>>().join(" ")
        };
        (names(flag::TEST), names(flag::ENTRY))
    };
    let (tests, entries) = flagged("a/x_test.go");
    assert_eq!(tests, "x_test.go TestA Test_b BenchmarkC FuzzD Example TestE");
    assert_eq!(entries, "main");
    assert_eq!(flagged("a/x.go").0, "");
}

#[test]
fn visibility_is_by_the_first_letter() {
    let facts = parse("x.go", "package a\nfunc Ärger() {}\nfunc b() {}\ntype c struct { D, e int }\n");
    let seen: Vec<String> =
        facts.defs.iter().skip(1).map(|d| format!("{} {:?}", facts.name(d.name), d.visibility)).collect();
    assert_eq!(seen.join(", "), "Ärger Public, b Package, c Package, D Public, e Package");
}

#[test]
fn broken_text_is_read_in_part() {
    check(
        r#"package a
func ok() { one() }
func broken() {
	if x { two()
}
func after(t T) { t.three(x.) }
type T struct { a int; b }
func last() { four(; five() }
"#,
        "def call fault",
        "
        def File  1-8
        def Function ok 2-2
        def Function broken 3-9
        def Function after 6-6 (t: <T>)
        def Struct T exported 7-7 < Embeds b
        def Field T/a 7-7 -> int
        def Field T/b 7-7 -> b
        def Function last 8-8
        call ok: one() 2:12
        call broken: two() 4:8
        call after: <t>.three(x, ?) 6:18
        call last: five() 8:21
        fault 6 cannot be understood
        ",
    );
    for text in [
        "",
        "package",
        "func",
        "func (",
        "type T struct {",
        "}{",
        "x := y[",
        "package a\nfunc f() { a.",
        "\u{feff}package a",
    ] {
        parse("x.go", text);
    }
}

#[test]
fn every_prefix_of_a_text_is_read() {
    let text = r#"package a
import "x"
type T[K any] struct { *B; f func(K) }
func (t *T[K]) M(a ...K) (r K, err error) {
	switch v := t.(type) { case A: v.f() }
	for k, v := range m { m[k], _ = v.(T) }
	select { case x := <-c: x() }
	return []T{{f: func(K) {}}}[0].f, nil
}
"#;
    for end in 0..text.len() {
        parse("x.go", &text[..end]);
        parse("x.go", &text[end..]);
    }
}

#[test]
fn deep_nesting_does_not_crash() {
    let deep = |open: &str, close: &str| {
        let text = format!("package a\nvar x = {}1{}\nfunc f() {{ g() }}\n", open.repeat(5_000), close.repeat(5_000));
        let facts = parse("x.go", &text);
        assert!(!facts.faults.is_empty(), "{open}");
        facts
    };
    assert_eq!(deep("(", ")").calls.len(), 1);
    deep("f(", ")");
    deep("[]T{", "}");
    deep("func() {", "}");
    let sum = format!("package a\nvar x = a(){}\n", " + b()".repeat(5_000));
    let facts = parse("x.go", &sum);
    assert_eq!((facts.calls.len(), facts.faults.len()), (5_001, 0));
}
