//! Members of classes and instances: inheritance, overriding, accessors, members from outside.

use crate::resolve::tests::check;
use expect_test::expect;

#[test]
fn an_inherited_method_is_that_of_the_nearest_ancestor() {
    check(
        "
        //- a.py
        class A:
            def go(self): pass
            def stop(self): pass
        class B(A):
            def go(self): pass
        class C(B): pass
        C().go()
        C().stop()
        ",
        expect![[r#"
            a.py:4 B is a A:1
            a.py:6 C is a B:4
            a.py:7 calls C:6 (exact 0.98)
            a.py:7 calls B.go:5 (type 0.9)
            a.py:8 calls C:6 (exact 0.98)
            a.py:8 calls A.stop:3 (type 0.9)
        "#]],
    );
    check(
        "
        //- a/Main.java
        package a;
        class Main {
          void run() { new C().go(); new C().stop(); }
        }
        class A { void go() {} void stop() {} }
        class B extends A { void go() {} }
        class C extends B {}
        ",
        expect![[r#"
            a/Main.java:6 B is a A:5
            a/Main.java:7 C is a B:6
            a/Main.java:3 calls C:7 (exact 0.98)
            a/Main.java:3 calls B.go:6 (type 0.9)
            a/Main.java:3 calls C:7 (exact 0.98)
            a/Main.java:3 calls A.stop:5 (type 0.9)
        "#]],
    );
}

#[test]
fn a_method_on_a_declared_type_may_be_that_of_a_derived_class() {
    check(
        "
        //- a.ts
        class A { go() {} keep() {} }
        class B extends A { go() {} }
        function run(x: A) { x.go(); x.keep(); }
        run(new B());
        ",
        expect![[r#"
            a.ts:2 B is a A:1
            a.ts:3 calls A.go:1 (type 0.45)
            a.ts:3 calls B.go:2 (type 0.8)
            a.ts:3 calls A.keep:1 (type 0.9)
            a.ts:3 calls A.keep:1 (type 0.8)
            a.ts:4 calls B:2 (exact 0.98)
            a.ts:4 calls run:3 (exact 0.98)
            a.ts:3 uses A:1 (exact 0.98)
        "#]],
    );
    check(
        "
        //- a.ts
        class A { go() {} }
        class B extends A { go() {} }
        function run(x: A) { x.go(); }
        run(new A());
        run(new B());
        ",
        expect![[r#"
            a.ts:2 B is a A:1
            a.ts:3 calls A.go:1 (type 0.9)
            a.ts:3 calls B.go:2 (type 0.8)
            a.ts:4 calls A:1 (exact 0.98)
            a.ts:4 calls run:3 (exact 0.98)
            a.ts:5 calls B:2 (exact 0.98)
            a.ts:5 calls run:3 (exact 0.98)
            a.ts:3 uses A:1 (exact 0.98)
        "#]],
    );
}

#[test]
fn a_final_method_has_no_overrides() {
    check(
        "
        //- a/Main.java
        package a;
        class Main {
          void run(A x) { x.fixed(); x.open(); }
        }
        class A { final void fixed() {} void open() {} }
        class B extends A { void fixed() {} void open() {} }
        ",
        expect![[r#"
            a/Main.java:6 B is a A:5
            a/Main.java:3 calls A.fixed:5 (type 0.9)
            a/Main.java:3 calls A.open:5 (type 0.9)
            a/Main.java:3 calls B.open:6 (type 0.6)
            a/Main.java:3 uses A:5 (exact 0.98)
        "#]],
    );
}

#[test]
fn super_is_the_next_class_in_the_resolution_order() {
    check(
        "
        //- a.py
        class Base:
            def go(self): pass
        class Left(Base):
            def go(self): super().go()
        class Right(Base):
            def go(self): super().go()
        class Both(Left, Right):
            def go(self): super().go()
        Both().go()
        ",
        expect![[r#"
            a.py:3 Left is a Base:1
            a.py:5 Right is a Base:1
            a.py:7 Both is a Left:3
            a.py:7 Both is a Right:5
            a.py:4 calls Right.go:6 (type 0.9)
            a.py:6 calls Base.go:2 (type 0.9)
            a.py:8 calls Left.go:4 (type 0.9)
            a.py:9 calls Both:7 (exact 0.98)
            a.py:9 calls Both.go:8 (type 0.9)
        "#]],
    );
    check(
        "
        //- a.js
        class A { go() {} }
        class B extends A { go() { super.go(); } }
        ",
        expect![[r#"
            a.js:2 B is a A:1
            a.js:2 calls A.go:1 (type 0.9)
        "#]],
    );
}

#[test]
fn classes_without_a_consistent_order_are_searched_depth_first() {
    check(
        "
        //- a.py
        class A:
            def go(self): pass
        class B(A):
            def go(self): pass
        class C(A, B): pass
        C().go()
        ",
        expect![[r#"
            a.py:3 B is a A:1
            a.py:5 C is a A:1
            a.py:5 C is a B:3
            a.py:6 calls C:5 (exact 0.98)
            a.py:6 calls A.go:2 (type 0.9)
        "#]],
    );
}

#[test]
fn reading_a_property_runs_its_getter() {
    check(
        "
        //- a.py
        class Inner:
            def go(self): pass
        class A:
            @property
            def inner(self): return Inner()
        A().inner.go()
        a = A()
        print(a.inner)
        //- b.ts
        class Inner { go() {} }
        class A { get inner() { return new Inner(); } set inner(x) {} }
        new A().inner.go();
        ",
        expect![[r#"
            a.py:5 calls Inner:1 (exact 0.98)
            a.py:6 calls A:3 (exact 0.98)
            a.py:6 calls Inner.go:2 (type 0.9)
            a.py:7 calls A:3 (exact 0.98)
            a.py:8 runs A.inner:4 (type 0.9)
            b.ts:2 calls Inner:1 (exact 0.98)
            b.ts:3 calls A:2 (exact 0.98)
            b.ts:3 calls Inner.go:1 (type 0.9)
        "#]],
    );
}

#[test]
fn static_and_class_methods_are_members_of_the_class() {
    check(
        "
        //- a.py
        class A:
            @staticmethod
            def plain(): pass
            @classmethod
            def make(cls): return cls()
            def go(self): pass
        class B(A): pass
        A.plain()
        B.make().go()
        //- a/Main.java
        package a;
        class Main { void run() { A.make().go(); } }
        class A { static A make() { return new A(); } void go() {} }
        ",
        expect![[r#"
            a.py:7 B is a A:1
            a.py:5 calls A:1 (exact 0.98)
            a.py:8 calls A.plain:2 (exact 0.98)
            a.py:9 calls A.make:4 (exact 0.98)
            a.py:9 calls A.go:6 (type 0.9)
            a/Main.java:2 calls A.make:3 (exact 0.98)
            a/Main.java:2 calls A.go:3 (type 0.9)
            a/Main.java:3 calls A:3 (exact 0.98)
            a/Main.java:2 uses A:3 (exact 0.98)
            a/Main.java:3 uses A:3 (exact 0.98)
        "#]],
    );
}

#[test]
fn methods_that_code_adds_to_a_prototype_belong_to_its_instances() {
    check(
        "
        //- a.js
        function Old() {}
        Old.prototype.draw = function () {};
        const old = new Old();
        old.draw();
        ",
        expect![[r#"
            a.js:3 calls Old:1 (exact 0.98)
            a.js:4 calls draw:2 (type 0.9)
        "#]],
    );
}

#[test]
fn methods_outside_their_type_belong_to_it() {
    check(
        "
        //- src/lib.rs
        pub struct A;
        mod more;
        pub fn run(a: &A) { a.go(); a.near(); }
        impl A { fn near(&self) {} }
        //- src/more.rs
        use crate::A;
        impl A { pub fn go(&self) {} }
        //- Cargo.toml
        [package]
        name = \"a\"
        ",
        expect![[r#"
            src/lib.rs:3 calls src/more.rs go:2 (type 0.9)
            src/lib.rs:3 calls near:4 (type 0.9)
            src/lib.rs:3 uses A:1 (exact 0.98)
            src/lib.rs:4 uses A:1 (exact 0.98)
            src/more.rs:2 uses src/lib.rs A:1 (import 0.95)
        "#]],
    );
    check(
        "
        //- a.go
        package a
        type A struct{}
        func run(a *A) { a.Go() }
        //- b.go
        package a
        func (a *A) Go() {}
        ",
        expect![[r#"
            a.go:3 calls b.go Go:2 (type 0.9)
            a.go:3 uses A:2 (exact 0.98)
        "#]],
    );
}

#[test]
fn a_field_that_a_method_sets_and_an_inherited_method_are_members() {
    check(
        "
        //- a.py
        class Tool:
            def go(self): pass
        class A:
            def run(self): pass
        class B(A):
            def __init__(self):
                self.tool = Tool()
            def use(self):
                self.tool.go()
                self.run()
        ",
        expect![[r#"
            a.py:5 B is a A:3
            a.py:7 calls Tool:1 (exact 0.98)
            a.py:9 calls Tool.go:2 (type 0.9)
            a.py:10 calls A.run:4 (exact 0.98)
        "#]],
    );
}

#[test]
fn more_overrides_than_are_listed_are_represented_by_the_declared_method() {
    let source = |classes: usize| {
        let mut text = "//- a.ts\nclass A { go() {} }\n".to_owned();
        for at in 0..classes {
            text += &format!("class B{at} extends A {{ go() {{}} }}\n");
        }
        text + "function run(x: A) { x.go(); }\n"
    };
    check(
        &source(2),
        expect![[r#"
            a.ts:2 B0 is a A:1
            a.ts:3 B1 is a A:1
            a.ts:4 calls A.go:1 (type 0.9)
            a.ts:4 calls B0.go:2 (type 0.45)
            a.ts:4 calls B1.go:3 (type 0.45)
            a.ts:4 uses A:1 (exact 0.98)
        "#]],
    );
    check(
        &source(20),
        expect![[r#"
            a.ts:2 B0 is a A:1
            a.ts:3 B1 is a A:1
            a.ts:4 B2 is a A:1
            a.ts:5 B3 is a A:1
            a.ts:6 B4 is a A:1
            a.ts:7 B5 is a A:1
            a.ts:8 B6 is a A:1
            a.ts:9 B7 is a A:1
            a.ts:10 B8 is a A:1
            a.ts:11 B9 is a A:1
            a.ts:12 B10 is a A:1
            a.ts:13 B11 is a A:1
            a.ts:14 B12 is a A:1
            a.ts:15 B13 is a A:1
            a.ts:16 B14 is a A:1
            a.ts:17 B15 is a A:1
            a.ts:18 B16 is a A:1
            a.ts:19 B17 is a A:1
            a.ts:20 B18 is a A:1
            a.ts:21 B19 is a A:1
            a.ts:22 calls A.go:1 (type 0.9)
            a.ts:22 uses A:1 (exact 0.98)
        "#]],
    );
}
