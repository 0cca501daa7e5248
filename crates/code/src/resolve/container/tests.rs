//! Elements of lists, maps and objects.

use crate::resolve::tests::check;
use expect_test::expect;

#[test]
fn a_python_container_returns_what_was_put_into_it() {
    check(
        "
        //- a.py
        class A:
            def a(self): pass
        class B:
            def b(self): pass
        pair = (A(), B())
        pair[0].a()
        pair[1].b()
        first, second = pair
        second.b()
        named = {'a': A(), 'b': B()}
        named['a'].a()
        named['b'].b()
        later = []
        later.append(B())
        later[0].b()
        for one in [A()]:
            one.a()
        [x.b() for x in later]
        spread = [*later]
        spread[0].b()
        joined = [A()] + [A()]
        joined[1].a()
        ",
        expect![[r#"
            a.py:5 calls A:1 (exact 0.98)
            a.py:5 calls B:3 (exact 0.98)
            a.py:6 calls A.a:2 (type 0.9)
            a.py:7 calls B.b:4 (type 0.9)
            a.py:9 calls B.b:4 (type 0.9)
            a.py:10 calls A:1 (exact 0.98)
            a.py:10 calls B:3 (exact 0.98)
            a.py:11 calls A.a:2 (type 0.9)
            a.py:12 calls B.b:4 (type 0.9)
            a.py:14 calls B:3 (exact 0.98)
            a.py:15 calls B.b:4 (type 0.9)
            a.py:16 calls A:1 (exact 0.98)
            a.py:17 calls A.a:2 (type 0.9)
            a.py:18 calls B.b:4 (type 0.9)
            a.py:20 calls B.b:4 (type 0.9)
            a.py:21 calls A:1 (exact 0.98)
            a.py:21 calls A:1 (exact 0.98)
            a.py:22 calls A.a:2 (type 0.9)
            a.py:6 uses pair:5 (exact 0.98)
            a.py:11 uses named:10 (exact 0.98)
            a.py:15 uses later:13 (exact 0.98)
            a.py:20 uses spread:19 (exact 0.98)
            a.py:22 uses joined:21 (exact 0.98)
        "#]],
    );
}

#[test]
fn a_key_selects_one_value_and_an_unknown_key_any() {
    check(
        "
        //- a.py
        class A:
            def go(self): pass
        class B:
            def go(self): pass
        table = {'a': A(), 'b': B()}
        table['a'].go()
        def use(key):
            table[key].go()
        ",
        expect![[r#"
            a.py:5 calls A:1 (exact 0.98)
            a.py:5 calls B:3 (exact 0.98)
            a.py:6 calls A.go:2 (type 0.9)
            a.py:8 calls A.go:2 (type 0.9)
            a.py:8 calls B.go:4 (type 0.9)
            a.py:6 uses table:5 (exact 0.98)
            a.py:8 uses table:5 (exact 0.98)
        "#]],
    );
    check(
        "
        //- a.js
        class A { go() {} }
        class B { go() {} }
        const table = { a: new A(), b: new B() };
        table.a.go();
        table['b'].go();
        function use(key) { table[key].go(); }
        ",
        expect![[r#"
            a.js:3 calls A:1 (exact 0.98)
            a.js:3 calls B:2 (exact 0.98)
            a.js:4 calls A.go:1 (type 0.9)
            a.js:5 calls B.go:2 (type 0.9)
            a.js:6 calls A.go:1 (type 0.9)
            a.js:6 calls B.go:2 (type 0.9)
            a.js:5 uses table:3 (exact 0.98)
            a.js:6 uses table:3 (exact 0.98)
        "#]],
    );
}

#[test]
fn the_type_arguments_of_a_container_are_its_elements() {
    check(
        "
        //- a.ts
        class A { go() {} }
        function run(list: A[], map: Map<string, A>, later: Promise<A>) {
          list[0].go();
          for (const one of list) one.go();
          map.get('a').go();
          later.then((it) => it.go());
        }
        async function wait(later: Promise<A>) { (await later).go(); }
        //- b.py
        class A:
            def go(self): pass
        def run(xs: list[A], table: dict[str, A], pair: tuple[int, A]):
            xs[0].go()
            table['a'].go()
            pair[1].go()
            for x in xs: x.go()
        ",
        expect![[r#"
            a.ts:3 calls A.go:1 (type 0.9)
            a.ts:4 calls A.go:1 (type 0.9)
            a.ts:5 calls A.go:1 (type 0.9)
            a.ts:6 calls A.go:1 (type 0.8)
            a.ts:6 calls run.<anonymous>:6 (type 0.8)
            a.ts:8 calls A.go:1 (type 0.9)
            a.ts:2 uses A:1 (exact 0.98)
            a.ts:8 uses A:1 (exact 0.98)
            b.py:4 calls A.go:2 (type 0.9)
            b.py:5 calls A.go:2 (type 0.9)
            b.py:6 calls A.go:2 (type 0.9)
            b.py:7 calls A.go:2 (type 0.9)
            b.py:3 uses A:1 (exact 0.98)
        "#]],
    );
    check(
        "
        //- src/lib.rs
        use std::collections::HashMap;
        pub struct A;
        impl A { fn go(&self) {} }
        fn run(list: Vec<A>, map: HashMap<String, A>, maybe: Option<A>, result: Result<A, String>) -> Option<()> {
            list[0].go();
            for one in &list { one.go(); }
            for one in list.iter() { one.go(); }
            for one in map.values() { one.go(); }
            if let Some(one) = maybe { one.go(); }
            result.ok()?.go();
            None
        }
        //- a/Main.java
        package a;
        class Main {
          void run(java.util.List<A> list, java.util.Map<String, A> map) {
            list.get(0).go();
            for (A one : list) one.go();
            map.get(\"a\").go();
          }
        }
        class A { void go() {} }
        //- a.go
        package a
        type A struct{}
        func (a *A) Go() {}
        func run(list []*A, table map[string]*A) {
          list[0].Go()
          table[\"a\"].Go()
          for _, one := range list { one.Go() }
        }
        ",
        expect![[r#"
            a.go:5 calls Go:3 (type 0.9)
            a.go:6 calls Go:3 (type 0.9)
            a.go:7 calls Go:3 (type 0.9)
            a.go:4 uses A:2 (exact 0.98)
            a/Main.java:4 calls A.go:9 (type 0.9)
            a/Main.java:5 calls A.go:9 (type 0.9)
            a/Main.java:6 calls A.go:9 (type 0.9)
            a/Main.java:3 uses A:9 (exact 0.98)
            src/lib.rs:5 calls go:3 (type 0.9)
            src/lib.rs:6 calls go:3 (type 0.9)
            src/lib.rs:7 calls go:3 (type 0.9)
            src/lib.rs:8 calls go:3 (type 0.9)
            src/lib.rs:9 calls go:3 (type 0.9)
            src/lib.rs:10 calls go:3 (type 0.9)
            src/lib.rs:3 uses A:2 (exact 0.98)
            src/lib.rs:4 uses A:2 (exact 0.98)
        "#]],
    );
}

#[test]
fn an_iterator_of_the_program_yields_the_elements() {
    check(
        "
        //- a.py
        class A:
            def go(self): pass
        class Rows:
            def __iter__(self):
                yield A()
        class Table:
            def __getitem__(self, key): return A()
        for row in Rows():
            row.go()
        Table()['x'].go()
        def made():
            yield A()
        for one in made():
            one.go()
        ",
        expect![[r#"
            a.py:5 calls A:1 (exact 0.98)
            a.py:7 calls A:1 (exact 0.98)
            a.py:8 calls Rows:3 (exact 0.98)
            a.py:8 calls Rows.__iter__:4 (type 0.9)
            a.py:9 calls A.go:2 (type 0.9)
            a.py:10 calls Table:6 (exact 0.98)
            a.py:10 calls A.go:2 (type 0.9)
            a.py:12 calls A:1 (exact 0.98)
            a.py:13 calls made:11 (exact 0.98)
            a.py:14 calls A.go:2 (type 0.9)
        "#]],
    );
}

#[test]
fn variadic_parameters_hold_the_arguments_of_the_callers() {
    check(
        "
        //- a.py
        class A:
            def a(self): pass
        class B:
            def b(self): pass
        def run(*args, **named):
            args[0].a()
            args[1].b()
            named['last'].b()
        run(A(), B(), last=B())
        //- a.js
        class A { go() {} }
        function run(...args) { args[0].go(); }
        run(new A());
        ",
        expect![[r#"
            a.js:2 calls A.go:1 (type 0.8)
            a.js:3 calls A:1 (exact 0.98)
            a.js:3 calls run:2 (exact 0.98)
            a.py:6 calls A.a:2 (type 0.8)
            a.py:7 calls B.b:4 (type 0.8)
            a.py:8 calls B.b:4 (type 0.8)
            a.py:9 calls A:1 (exact 0.98)
            a.py:9 calls B:3 (exact 0.98)
            a.py:9 calls B:3 (exact 0.98)
            a.py:9 calls run:5 (exact 0.98)
        "#]],
    );
}

#[test]
fn fields_of_a_constructed_struct_hold_what_was_written() {
    check(
        "
        //- a.go
        package a
        type Tool interface { Use() }
        type Saw struct{}
        func (s *Saw) Use() {}
        type Box struct { tool Tool }
        func run() {
          box := Box{tool: &Saw{}}
          box.tool.Use()
        }
        //- src/lib.rs
        pub struct Saw;
        impl Saw { fn cut(&self) {} }
        pub struct Case { tool: Saw }
        fn run() {
            let case = Case { tool: Saw };
            case.tool.cut();
        }
        ",
        expect![[r#"
            a.go:8 calls Use:4 (type 0.9)
            a.go:8 calls Tool.Use:2 (type 0.6)
            a.go:5 uses Tool:2 (exact 0.98)
            a.go:7 uses Box:5 (exact 0.98)
            a.go:7 uses Saw:3 (exact 0.98)
            src/lib.rs:6 calls cut:2 (type 0.9)
            src/lib.rs:6 calls cut:2 (type 0.9)
            src/lib.rs:2 uses Saw:1 (exact 0.98)
            src/lib.rs:3 uses Saw:1 (exact 0.98)
            src/lib.rs:5 uses Case:3 (exact 0.98)
            src/lib.rs:5 uses Saw:1 (exact 0.98)
        "#]],
    );
}
