//! Snippets of Java and their facts, as text.

use crate::facts::{
    ArgKind, BindTarget, CallKind, DefId, ExprId, FileFacts, ImportKind, IndexRange, ItemKey, Literal, ROOT,
    SourceExpr, VarId, VarKind, Visibility, flag,
};
use crate::languages::language;
use std::fmt::Write;

fn parse(text: &str) -> FileFacts {
    crate::parse("src/main/java/A.java", text, language("java"))
}

fn path(f: &FileFacts, def: DefId) -> String {
    f.path_of(def).join(".")
}

fn var(f: &FileFacts, var: VarId) -> String {
    let var = &f.vars[var];
    let owner = path(f, var.owner);
    let kind = match var.what {
        VarKind::TypeParam => "'",
        VarKind::Import(_) => "import ",
        _ => "",
    };
    let dot = if owner.is_empty() { "" } else { "." };
    format!("<{kind}{owner}{dot}{}>", f.name(var.name))
}

fn list(f: &FileFacts, range: IndexRange) -> String {
    let items: Vec<String> = f
        .items(range)
        .iter()
        .map(|i| if i.key == ItemKey::Spread { format!("...{}", expr(f, i.value)) } else { expr(f, i.value) })
        .collect();
    items.join(", ")
}

fn args(f: &FileFacts, range: IndexRange) -> String {
    let args: Vec<String> = f
        .args(range)
        .iter()
        .map(|a| {
            assert_eq!(a.how, ArgKind::Place);
            expr(f, a.value)
        })
        .collect();
    args.join(", ")
}

fn expr(f: &FileFacts, e: ExprId) -> String {
    match f.expr(e) {
        SourceExpr::Unknown => "?".into(),
        SourceExpr::Literal(Literal::String(s)) => format!("\"{}\"", f.name(s)),
        SourceExpr::Literal(literal) => format!("{literal:?}").to_lowercase(),
        SourceExpr::Var(v) => var(f, v),
        SourceExpr::Free(name) => f.name(name).into(),
        SourceExpr::This => "this".into(),
        SourceExpr::Super => "super".into(),
        SourceExpr::Member(of, name) => format!("{}.{}", expr(f, of), f.name(name)),
        SourceExpr::Element(of) => format!("{}[]", expr(f, of)),
        SourceExpr::Call(call) => {
            let call = &f.calls[call];
            let new = if call.how == CallKind::New { "new " } else { "" };
            format!("{new}{}({})", expr(f, call.callee), args(f, call.args))
        }
        SourceExpr::Def(def) => format!("def {}", path(f, def)),
        SourceExpr::Collection(_, items) => format!("[{}]", list(f, items)),
        SourceExpr::Either(items) => format!("either({})", list(f, items)),
        SourceExpr::Generic(of, items) => format!("{}<{}>", expr(f, of), list(f, items)),
        SourceExpr::InstanceOf(of) => format!("a({})", expr(f, of)),
        SourceExpr::Bound(of) => format!("bound({})", expr(f, of)),
        other => format!("{other:?}"),
    }
}

fn flags(d: &crate::facts::Def) -> String {
    let names = [
        (flag::ABSTRACT, "abstract"),
        (flag::STATIC, "static"),
        (flag::EXPORTED, "exported"),
        (flag::TEST, "test"),
        (flag::CONSTRUCTOR, "constructor"),
        (flag::ARROW, "arrow"),
        (flag::CONSTANT, "constant"),
        (flag::ENTRY, "entry"),
        (flag::FINAL, "final"),
        (flag::VARIADIC, "variadic"),
    ];
    let mut text = String::new();
    for (flag, name) in names {
        if d.is(flag) {
            let _ = write!(text, " {name}");
        }
    }
    text
}

/// Definitions: path in the file, lines, visibility, flags, parameters, result, bases.
fn defs(f: &FileFacts) -> String {
    let mut text = String::new();
    for (id, d) in f.defs.iter_ids().skip(1) {
        let see = match d.visibility {
            Visibility::Public => "+",
            Visibility::Protected => "#",
            Visibility::Package => "~",
            Visibility::Private => "-",
        };
        let kind = format!("{:?}", d.kind).to_lowercase();
        let _ = write!(text, "{see}{kind} {} {}-{}", path(f, id), d.span.line, d.span.end_line);
        text.push_str(&flags(d));
        if !d.params.is_empty() {
            let params: Vec<String> = d
                .params
                .iter()
                .map(|p| {
                    let v = &f.vars[*p];
                    let rest = if matches!(v.what, VarKind::Rest(_)) { "..." } else { "" };
                    let ty = v.ty.map_or(String::new(), |ty| format!(": {}", expr(f, ty)));
                    format!("{rest}{}{ty}", f.name(v.name))
                })
                .collect();
            let _ = write!(text, " ({})", params.join(", "));
        }
        if let Some(result) = d.result {
            let _ = write!(text, " -> {}", expr(f, result));
        }
        for base in &d.bases {
            let _ = write!(text, " {} {}", format!("{:?}", base.how).to_lowercase(), expr(f, base.of));
        }
        text.push('\n');
    }
    text
}

/// Calls: caller, line, callee.
fn calls(f: &FileFacts) -> String {
    let mut text = String::new();
    for call in &f.calls {
        let how = match call.how {
            CallKind::New => "new ",
            CallKind::Implicit => "implicit ",
            _ => "",
        };
        let _ = writeln!(
            text,
            "{}:{} {how}{}({})",
            path(f, call.owner),
            call.line,
            expr(f, call.callee),
            args(f, call.args)
        );
    }
    text
}

fn binds(f: &FileFacts) -> String {
    let mut text = String::new();
    for bind in &f.binds {
        let target = match bind.target {
            BindTarget::Var(v) => var(f, v),
            BindTarget::Member(of, name) => format!("{}.{}", expr(f, of), f.name(name)),
            BindTarget::Element(of) => format!("{}[]", expr(f, of)),
            BindTarget::At(of, name) => format!("{}[{}]", expr(f, of), f.name(name)),
            BindTarget::Free(name) => f.name(name).into(),
        };
        let _ = writeln!(text, "{target} = {}", expr(f, bind.value));
    }
    for r in &f.returns {
        let _ = writeln!(text, "{} returns {}", path(f, r.owner), expr(f, r.value));
    }
    text
}

fn uses(f: &FileFacts) -> String {
    let mut text = String::new();
    for u in &f.uses {
        let _ = writeln!(text, "{}:{} {}", path(f, u.owner), u.line, expr(f, u.expr));
    }
    text
}

fn imports(f: &FileFacts) -> String {
    let mut text = String::new();
    for i in &f.imports {
        let what = match i.what {
            ImportKind::Symbol(name) => f.name(name),
            ImportKind::All => "*",
            _ => "?",
        };
        let called = i.var.map_or(String::new(), |v| format!(" as {}", var(f, v)));
        let _ = writeln!(text, "{} {}: {what}{called}", i.line, i.module);
    }
    text
}

#[track_caller]
fn same(read: &str, expected: &str) {
    let lines = |text: &str| text.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect::<Vec<_>>();
    let (got, wanted) = (lines(read), lines(expected));
    assert!(got == wanted, "read:\n{}\n\nexpected:\n{}", got.join("\n"), wanted.join("\n"));
}

#[test]
fn packages_and_imports() {
    let f = parse(
        "package a . b;
        import java.util.List;
        import java.util.*;
        import static a.b.C.m;
        import static a.b.C.*;
        class A { List<X> xs = m; }",
    );
    assert_eq!(&*f.package, "a.b");
    same(
        &imports(&f),
        "2 java.util: List as <import List>
        3 java.util: *
        4 a.b.C: m as <import m>
        5 a.b.C: *",
    );
    same(&binds(&f), "<A.xs> = <import m>");
    same(&uses(&f), "A:6 <import List>\nA:6 X\nA:6 <import m>");
}

#[test]
fn classes_with_all_members() {
    let f = parse(
        "/** Says what. */
        @Anno(value = K, types = Foo.class)
        public abstract class A extends Base<Foo> implements I, J {
            private static final int MAX = 5;
            List<? extends Foo> xs, ys[];
            A() {}
            protected A(int n) throws Ex {}
            /** Goes. */
            @Override public abstract void go();
            native void nat();
            private final Foo make(final String... rest) { return null; }
            static class Nested {}
            interface Face { int K = 1; void f(); default void g() {} static void h() {} private void i() {} class N {} }
            @interface Note { int value() default MAX; }
        }",
    );
    same(
        &defs(&f),
        "+class A 2-15 abstract exported extends Base<Foo> implements I implements J
        -field A.MAX 4-4 static constant final -> int
        ~field A.xs 5-5 -> List<Foo>
        ~field A.ys 5-5 -> []<List<Foo>>
        ~method A.A 6-6 constructor
        #method A.A 7-7 exported constructor (n: int)
        +method A.go 9-9 abstract exported
        ~method A.nat 10-10
        -method A.make 11-11 final variadic (...rest: []<String>) -> Foo
        ~class A.Nested 12-12 static
        ~interface A.Face 13-13 static
        +field A.Face.K 13-13 static exported constant final -> int
        +method A.Face.f 13-13 abstract exported
        +method A.Face.g 13-13 exported
        +method A.Face.h 13-13 static exported
        -method A.Face.i 13-13 final
        +class A.Face.N 13-13 static exported
        ~interface A.Note 14-14 static
        +method A.Note.value 14-14 abstract exported -> int",
    );
    let def = |name: &str| f.defs.iter().find(|d| f.name(d.name) == name).expect("it is defined");
    assert_eq!(def("A").doc.as_deref(), Some("Says what."));
    assert_eq!(&*def("A").signature, "public abstract class A extends Base<Foo> implements I, J");
    assert_eq!(def("go").doc.as_deref(), Some("Goes."));
    assert_eq!(&*def("go").signature, "public abstract void go()");
    assert_eq!(&*def("MAX").signature, "private static final int MAX = 5");
    assert_eq!(&*def("ys").signature, "List<? extends Foo> ys[]");
    same(
        &uses(&f),
        "A:2 Anno
        A:2 K
        A:2 Foo
        A:3 Foo
        A:5 List
        A:5 Foo
        A.A:7 Ex
        A.go:9 Override
        A.make:11 Foo
        A.make:11 String
        A.Note.value:14 <A.MAX>",
    );
}

#[test]
fn constructors_call_one_another() {
    let f = parse(
        "class A extends B {
            A() { this(1); }
            A(int n) { super(n); }
            A(String s) { setup(); }
            A make() { return new A(); }
            class Inner { Inner(A a) { a.super(); } }
        }
        class C { C() {} }",
    );
    same(
        &calls(&f),
        "A.A:2 this(number)
        A.A:3 super(<A.A.n>)
        A.A:4 implicit super()
        A.A:4 setup()
        A.make:5 new <A>()
        A.Inner.Inner:6 super()",
    );
    // The name refers to the class, not to its constructors, which share a variable of the class.
    same(&binds(&f), "<A.A> = def A.A\n<A.A> = def A.A\nA.make returns new <A>()");
}

#[test]
fn enums() {
    let f = parse(
        "public enum E implements I {
            /** First. */
            ONE,
            @Deprecated TWO(2),
            THREE { int f() { return g(); } };
            E() {} E(int n) {}
            int f() { return 0; }
        }
        enum P { A, B }",
    );
    same(
        &defs(&f),
        "+enum E 1-8 exported implements I
        +field E.ONE 3-3 static exported constant final -> <E>
        +field E.TWO 4-4 static exported constant final -> <E>
        +class E.THREE 5-5 static exported constant final extends <E>
        ~method E.THREE.f 5-5 -> int
        ~method E.E 6-6 constructor
        ~method E.E 6-6 constructor (n: int)
        ~method E.f 7-7 -> int
        ~enum P 9-9
        +field P.A 9-9 static exported constant final -> <P>
        +field P.B 9-9 static exported constant final -> <P>",
    );
    same(&calls(&f), "E:3 new <E>()\nE:4 new <E>(number)\nE.THREE.f:5 g()\nE:5 new def E.THREE()");
    assert_eq!(f.defs[DefId::new(2)].doc.as_deref(), Some("First."));
}

#[test]
fn records() {
    let f = parse(
        "record R<T>(int x, List<T> y, String... z) implements I {
            R { check(x); }
            static R of() { return new R(1, null); }
            int x() { return x; }
        }",
    );
    same(
        &defs(&f),
        "~class R 1-5 final (x: int, y: List<<'R.T>>, z: []<String>) implements I
        +field R.x 1-1 exported final -> int
        +field R.y 1-1 exported final -> List<<'R.T>>
        +field R.z 1-1 exported final -> []<String>
        ~method R.R 2-2 constructor (x: int, y: List<<'R.T>>, z: []<String>)
        ~method R.of 3-3 static -> <R>
        ~method R.x 4-4 -> int",
    );
    same(&calls(&f), "R.R:2 check(<R.R.x>)\nR.of:3 new <R>(number, nothing)");
    same(
        &binds(&f),
        "this.x = <R.R.x>
        this.y = <R.R.y>
        this.z = <R.R.z>
        <R.x> = def R.x
        R.of returns new <R>(number, nothing)
        R.x returns <R.x>",
    );
}

#[test]
fn nested_local_and_anonymous_classes() {
    let f = parse(
        "class A {
            Foo name;
            void f() {
                class L { void m() { n(); } }
                new L().m();
                Runnable r = new Runnable() {
                    Foo own;
                    public void run() { new L(); name.q(); own.p(); this.x(); A.this.y(); }
                };
            }
            class Inner { void g(A outer) { I.super.dflt(); super.s(); outer.new Inner(); new A.Inner(); } }
        }",
    );
    same(
        &defs(&f),
        "~class A 1-12
        ~field A.name 2-2 -> Foo
        ~method A.f 3-10
        -class A.f.L 4-4
        ~method A.f.L.m 4-4
        -class A.f.<anonymous Runnable> 6-9 extends Runnable
        ~field A.f.<anonymous Runnable>.own 7-7 -> Foo
        +method A.f.<anonymous Runnable>.run 8-8 exported
        ~class A.Inner 11-11
        ~method A.Inner.g 11-11 (outer: <A>)",
    );
    same(
        &calls(&f),
        "A.f.L.m:4 n()
        A.f:5 new <A.f.L>()
        A.f:5 new <A.f.L>().m()
        A.f.<anonymous Runnable>.run:8 new <A.f.L>()
        A.f.<anonymous Runnable>.run:8 <A.name>.q()
        A.f.<anonymous Runnable>.run:8 <A.f.<anonymous Runnable>.own>.p()
        A.f.<anonymous Runnable>.run:8 this.x()
        A.f.<anonymous Runnable>.run:8 a(<A>).y()
        A.f:6 new def A.f.<anonymous Runnable>()
        A.Inner.g:11 I.dflt()
        A.Inner.g:11 super.s()
        A.Inner.g:11 new either(<A.Inner>, <A.Inner.g.outer>.Inner)()
        A.Inner.g:11 new <A>.Inner()",
    );
}

#[test]
fn methods_are_not_values() {
    // Reading a name never finds a method; a field and a method of one name share a variable.
    let f = parse(
        "class A extends B {
            int size() { return size; }
            Foo item() { return item; }
            Foo item;
            Foo other;
            Foo other() { size(); return other; }
            void size(int n) { size = n; }
        }",
    );
    same(
        &binds(&f),
        "<A.item> = def A.item
        <A.other> = def A.other
        <A.size> = def A.size
        size = <A.size.n>
        A.size returns size
        A.item returns <A.item>
        A.other returns <A.other>",
    );
    same(&calls(&f), "A.other:6 size()");
    for name in ["item", "other", "size"] {
        let owned = f.vars.iter().filter(|v| f.name(v.name) == name && v.owner == DefId::new(1)).count();
        assert_eq!(owned, 1, "{name}");
    }
}

#[test]
fn shadowing_and_patterns() {
    let f = parse(
        "class A {
            Foo x;
            void f(Object o) {
                x.a();
                { Bar x = new Bar(); x.b(); }
                x.c();
                if (o instanceof Foo x && x.d()) { x.e(); } else if (o instanceof Bar x) { x.f(); }
                x.g();
                boolean b = o instanceof Foo x && x.h();
                x.i();
                if (!(o instanceof Baz z)) return;
                z.j();
                if (o instanceof Point(int p, Line(Foo q, var r))) { q.k(r); }
                q.l();
            }
        }",
    );
    same(
        &calls(&f),
        "A.f:4 <A.x>.a()
        A.f:5 new Bar()
        A.f:5 <A.f.x>.b()
        A.f:6 <A.x>.c()
        A.f:7 <A.f.x>.d()
        A.f:7 <A.f.x>.e()
        A.f:7 <A.f.x>.f()
        A.f:8 <A.x>.g()
        A.f:9 <A.f.x>.h()
        A.f:10 <A.x>.i()
        A.f:12 <A.f.z>.j()
        A.f:13 <A.f.q>.k(<A.f.r>)
        A.f:14 q.l()",
    );
    let types: Vec<String> = f
        .vars
        .iter()
        .filter(|v| f.name(v.name) == "x")
        .map(|v| v.ty.map_or("none".into(), |ty| expr(&f, ty)))
        .collect();
    assert_eq!(types, ["Foo", "Bar", "Foo", "Bar", "Foo"]);
    assert_eq!(calls_on_distinct(&f, 7), 2);
}

/// Number of distinct variables that the calls of a line have as receivers.
fn calls_on_distinct(f: &FileFacts, line: u32) -> usize {
    let mut vars: Vec<VarId> = f
        .calls
        .iter()
        .filter(|c| c.line == line)
        .filter_map(|c| match f.expr(c.callee) {
            SourceExpr::Member(of, _) => match f.expr(of) {
                SourceExpr::Var(v) => Some(v),
                _ => None,
            },
            _ => None,
        })
        .collect();
    vars.sort_unstable();
    vars.dedup();
    vars.len()
}

#[test]
fn lambdas_and_method_references() {
    let f = parse(
        "class A {
            Supplier<Foo> s = () -> new Foo();
            void f(List<Foo> xs) {
                xs.each(x -> x.go());
                xs.each((p, q) -> { return p.r(q); });
                Fn g = (A p, B... q) -> p;
                xs.map(Foo::go).map(Foo::new).map(this::f).map(super::g).map(int[]::new).map(List<Foo>::of);
                g.apply(xs).call();
            }
        }",
    );
    same(
        &defs(&f),
        "~class A 1-10
        ~field A.s 2-2 -> Supplier<Foo>
        +lambda A.<lambda> 2-2 arrow
        ~method A.f 3-9 (xs: List<Foo>)
        +lambda A.f.<lambda> 4-4 arrow (x)
        +lambda A.f.<lambda> 5-5 arrow (p, q)
        +lambda A.f.<lambda> 6-6 arrow variadic (p: <A>, ...q: []<B>)",
    );
    same(
        &calls(&f),
        "A.<lambda>:2 new Foo()
        A.f.<lambda>:4 <A.f.<lambda>.x>.go()
        A.f:4 <A.f.xs>.each(def A.f.<lambda>)
        A.f.<lambda>:5 <A.f.<lambda>.p>.r(<A.f.<lambda>.q>)
        A.f:5 <A.f.xs>.each(def A.f.<lambda>)
        A.f:7 <A.f.xs>.map(bound(Foo.go))
        A.f:7 <A.f.xs>.map(bound(Foo.go)).map(Foo)
        A.f:7 <A.f.xs>.map(bound(Foo.go)).map(Foo).map(bound(this.f))
        A.f:7 <A.f.xs>.map(bound(Foo.go)).map(Foo).map(bound(this.f)).map(bound(super.g))
        A.f:7 <A.f.xs>.map(bound(Foo.go)).map(Foo).map(bound(this.f)).map(bound(super.g)).map(?)
        A.f:7 <A.f.xs>.map(bound(Foo.go)).map(Foo).map(bound(this.f)).map(bound(super.g)).map(?).map(bound(List.of))
        A.f:8 <A.f.g>.apply(<A.f.xs>)
        A.f:8 <A.f.g>.apply(<A.f.xs>).call()",
    );
    same(
        &binds(&f),
        "<A.s> = def A.<lambda>
        <A.f.g> = def A.f.<lambda>
        A.<lambda> returns new Foo()
        A.f.<lambda> returns <A.f.<lambda>.x>.go()
        A.f.<lambda> returns <A.f.<lambda>.p>.r(<A.f.<lambda>.q>)
        A.f.<lambda> returns <A.f.<lambda>.p>",
    );
}

#[test]
fn loops_resources_and_catches() {
    let f = parse(
        "class A {
            void f(List<Foo> xs) {
                for (Foo x : xs) x.go();
                for (int i = 0, j = g(); i < n(); i++) h(i, j);
                try (In in = open(); other) { in.read(); } catch (E1 | E2 e) { e.p(); } finally { done(); }
                in.gone();
                label: while (t()) { continue label; }
                synchronized (lock) { w(); }
                do { v(); } while (u());
                assert ok() : msg();
                throw new Ex(\"x\");
            }
        }",
    );
    same(
        &calls(&f),
        "A.f:3 implicit <A.f.xs>.iterator()
        A.f:3 implicit <A.f.xs>.iterator().hasNext()
        A.f:3 implicit <A.f.xs>.iterator().next()
        A.f:3 <A.f.x>.go()
        A.f:4 g()
        A.f:4 n()
        A.f:4 h(<A.f.i>, <A.f.j>)
        A.f:5 open()
        A.f:5 implicit <A.f.in>.close()
        A.f:5 implicit other.close()
        A.f:5 <A.f.in>.read()
        A.f:5 <A.f.e>.p()
        A.f:5 done()
        A.f:6 in.gone()
        A.f:7 t()
        A.f:8 w()
        A.f:9 v()
        A.f:9 u()
        A.f:10 ok()
        A.f:10 msg()
        A.f:11 new Ex(\"x\")",
    );
    same(
        &binds(&f),
        "<A.f.x> = either(<A.f.xs>[], <A.f.xs>.iterator().next())
        <A.f.i> = number
        <A.f.j> = g()
        <A.f.in> = open()",
    );
    let caught = f.vars.iter().find(|v| f.name(v.name) == "e").and_then(|v| v.ty).expect("it has a type");
    assert_eq!(expr(&f, caught), "either(E1, E2)");
}

#[test]
fn switches() {
    let f = parse(
        "class A {
            int f(Object o, Color color) {
                int k = switch (o) {
                    case B v -> v.a();
                    case C v when v.ok() -> { yield v.b(); }
                    case Point(var x, Foo y) -> y.z();
                    case null, default -> other;
                };
                switch (color) { case RED: Foo v = red(); break; case Color.BLUE: default: v.blue(); }
                return k;
            }
        }",
    );
    same(
        &calls(&f),
        "A.f:4 <A.f.v>.a()
        A.f:5 <A.f.v>.ok()
        A.f:5 <A.f.v>.b()
        A.f:6 <A.f.y>.z()
        A.f:9 red()
        A.f:9 <A.f.v>.blue()",
    );
    same(
        &binds(&f),
        "<A.f.k> = either(<A.f.v>.a(), <A.f.v>.b(), <A.f.y>.z(), other)
        <A.f.v> = red()
        A.f returns <A.f.k>",
    );
    let used = uses(&f);
    for name in ["<A.f.color>.RED", "Color.BLUE", "A.f:6 Point"] {
        assert!(used.contains(name), "{name} in\n{used}");
    }
    assert!(!used.contains("default"));
}

#[test]
fn assignments_and_values() {
    let f = parse(
        "class A extends B {
            Foo own;
            void f(Object o, Foo[] a) {
                Foo q = (Foo) o;
                var r = o == null ? q : a[1];
                own = this.other = q;
                inherited = r;
                a[0] = q;
                q.next.last = r;
                Foo[][] z = {{q}, new Foo[] {r}};
                Object y = new Foo[3];
                xs.add(q); xs.add(0, q); map.put(k, r); xs.addAll(a);
                var typed = new ArrayList<Foo>(3);
                String s = \"a\" + q + 1;
                n += m();
            }
        }",
    );
    same(
        &binds(&f),
        "<A.f.q> = either(<A.f.o>, a(Foo))
        <A.f.r> = either(<A.f.q>, <A.f.a>[])
        this.other = <A.f.q>
        <A.own> = <A.f.q>
        inherited = <A.f.r>
        <A.f.a>[] = <A.f.q>
        <A.f.q>.next.last = <A.f.r>
        <A.f.z> = [[<A.f.q>], [<A.f.r>]]
        <A.f.y> = a([]<Foo>)
        xs[] = <A.f.q>
        xs[] = <A.f.q>
        map[] = <A.f.r>
        xs[] = <A.f.a>[]
        <A.f.typed> = either(new ArrayList(number), a(ArrayList<Foo>))
        <A.f.s> = template",
    );
}

#[test]
fn calls_and_their_positions() {
    let f = parse(
        "class A {
            static { setup(); }
            { init(); }
            Foo made = create(Color.RED);
            void f() {
                chain()
                    .of(a.b.C.make())
                    .calls();
                this.<Foo>gen(K); Util.run(); made.go(); \"text\".length();
            }
        }",
    );
    same(
        &calls(&f),
        "A:2 setup()
        A:3 init()
        A:4 create(Color.RED)
        A.f:6 chain()
        A.f:7 a.b.C.make()
        A.f:7 chain().of(a.b.C.make())
        A.f:8 chain().of(a.b.C.make()).calls()
        A.f:9 this.gen(K)
        A.f:9 Util.run()
        A.f:9 <A.made>.go()
        A.f:9 \"text\".length()",
    );
    same(
        &uses(&f),
        "A:4 Foo
        A:4 Color.RED
        A.f:7 a.b.C
        A.f:9 Foo
        A.f:9 K
        A.f:9 Util
        A.f:9 <A.made>",
    );
    let last = f.calls.iter().find(|c| c.line == 8).map(|c| c.column);
    assert_eq!(last, Some(21));
}

#[test]
fn generics() {
    let f = parse(
        "class A<T extends Foo & Bar, U> extends Base<T> {
            Map<String, List<? super T>> all;
            java.util.Map.Entry<U, int[]> one;
            Outer<U>.Inner in;
            <T extends Baz> T pick(T t, Class<?> c) { T other = t; return other; }
            T mine(@NonNull T t) { return t; }
        }",
    );
    same(
        &defs(&f),
        "~class A 1-7 extends Base<<'A.T>>
        ~field A.all 2-2 -> Map<String, List<<'A.T>>>
        ~field A.one 3-3 -> java.util.Map.Entry<<'A.U>, []<int>>
        ~field A.in 4-4 -> Outer.Inner
        ~method A.pick 5-5 (t: <'A.pick.T>, c: Class<?>) -> <'A.pick.T>
        ~method A.mine 6-6 (t: <'A.T>) -> <'A.T>",
    );
    let bounds: Vec<String> = f
        .vars
        .iter()
        .filter(|v| v.what == VarKind::TypeParam)
        .map(|v| format!("{}: {}", f.name(v.name), v.ty.map_or("none".into(), |ty| expr(&f, ty))))
        .collect();
    assert_eq!(bounds, ["T: either(Foo, Bar)", "U: none", "T: Baz"]);
}

#[test]
fn tests_and_entries() {
    let text = "class ThingTest {
            @Test void works() {}
            @org.junit.jupiter.api.ParameterizedTest @ValueSource(ints = {1}) void many(int n) {}
            public void testOld() {}
            private void testHelper() {}
            public void testWith(int n) {}
            void other() {}
            @RepeatedTest(3) void again() {}
        }
        class Old extends junit.framework.TestCase { public void testIt() {} }
        class Main {
            public static void main(String[] args) {}
            static void main(String... args) {}
            public static void main(int n) {}
        }
        class Rest { public static void main(String... args) {} void testNot() {} }";
    let marked = |f: &FileFacts, wanted: u32| {
        let names: Vec<String> = (f.defs.ids().skip(1))
            .filter(|d| f.def(*d).is(wanted))
            .map(|d| format!("{}:{}", path(f, d), f.def(d).span.line))
            .collect();
        names.join(" ")
    };
    let f = parse(text);
    assert_eq!(
        marked(&f, flag::TEST),
        "ThingTest.works:2 ThingTest.many:3 ThingTest.testOld:4 ThingTest.again:8 Old:10 Old.testIt:10"
    );
    assert_eq!(marked(&f, flag::ENTRY), "Main.main:12 Rest.main:16");
    assert!(!f.def(ROOT).is(flag::TEST));
    for path in ["src/test/java/A.java", "a/ThingTest.java", "a/ThingTests.java", "a/ThingIT.java", "test/A.java"] {
        let f = crate::parse(path, text, language("java"));
        assert!(f.def(ROOT).is(flag::TEST) && f.def(DefId::new(1)).is(flag::TEST), "{path}");
    }
}

#[test]
fn files_without_a_class() {
    let f = parse("/** Starts. */ void main() { hi(top); }\nint top = 3;");
    same(&defs(&f), "~function main 1-1 entry\n~variable top 2-2 -> int");
    same(&calls(&f), "main:1 hi(<top>)");
    let f = parse("open module a.b { requires java.base; uses x.Y; provides x.Y with z.W, z.V; }");
    same(&defs(&f), "+module a.b 1-1 exported");
    same(&uses(&f), "a.b:1 x.Y\na.b:1 x.Y\na.b:1 z.W\na.b:1 z.V");
    let f = crate::parse("p/package-info.java", "/** Of p. */\n@Anno\npackage p;", language("java"));
    assert_eq!((&*f.package, f.def(ROOT).doc.as_deref()), ("p", Some("Of p.")));
}

#[test]
fn broken_text() {
    let f = parse("class A { void f() { foo(; bar(); } void g() { x.y(); z. } int }");
    same(&defs(&f), "~class A 1-1\n~method A.f 1-1\n~method A.g 1-1");
    same(&calls(&f), "A.f:1 bar()\nA.g:1 x.y()");
    assert_eq!(f.faults.len(), 1);
    // The end is missing: the head determines the owner of the members.
    let f = parse(
        "import x.Y;
        @Anno public class A<T> extends B implements C {
            int x;
            void f() { g(x); }
            void h( { i(); }
            void j() { k(",
    );
    same(
        &defs(&f),
        "+class A 2-6 exported extends B implements C
        ~field A.x 3-3 -> int
        ~method A.f 4-4
        ~method A.h 5-5",
    );
    same(&calls(&f), "A.f:4 g(<A.x>)\nA.h:5 i()");
    for text in [
        "",
        "}",
        "class",
        "class {",
        "enum E { A(",
        "@",
        "import ;",
        "package",
        "x -> ->",
        "((((",
        "new",
        "\u{0}é class É {",
    ] {
        parse(text);
    }
}

#[test]
fn every_prefix_of_a_text_is_read() {
    let text = "package p; import static a.B.*; /** d */ @X(y = 1) public class A<T extends B> extends C<T> {
        enum E { ONE(1) { void f() {} }; } record R(int a, B... b) { R {} }
        int x = 1, y[] = {2}; A() { super(); } <U> U f(U u) throws Ex { for (var v : u) { v.g(() -> h(), A::new); }
        switch (u) { case B b when b.c() -> { yield 1; } default -> d(); } try (In i = o()) { } catch (E | F e) { }
        return (B) new C<>(1) { int z; }.a[0].b; } }";
    for end in 0..text.len() {
        parse(&text[..end]);
    }
}

#[test]
fn deep_nesting() {
    let deep = |open: &str, close: &str, n: usize| format!("{}{}{}", open.repeat(n), "x()", close.repeat(n));
    let in_method = |body: &str| format!("class A {{ void f() {{ {body}; last(); }} }}");
    for body in [
        deep("(", ")", 5_000),
        deep("f(", ")", 5_000),
        deep("{", "}", 5_000),
        deep("() -> ", "", 5_000),
        deep("if (a) ", "", 5_000),
        deep("new A() { int x = ", "; }", 2_000),
        format!("{}int>>", "List<".repeat(5_000)),
        format!("x{}", ".y()".repeat(5_000)),
        format!("o instanceof {}", deep("P(", ")", 3_000)),
    ] {
        parse(&in_method(&body));
    }
    // A long chain is not deeply nested.
    let sum = format!("s = first() + {} last()", "a + ".repeat(5_000));
    let f = parse(&in_method(&sum));
    assert_eq!(f.calls.len(), 3);
    let chain = format!("if (a) b(); {} else c()", "else if (a) b(); ".repeat(2_000));
    let f = parse(&in_method(&chain));
    assert_eq!((f.calls.len(), f.faults.len()), (2_003, 0));
}
