//! Names that modules re-export with `export * from …`.

use crate::resolve::tests::check;
use expect_test::expect;

#[test]
fn a_name_is_found_through_several_star_exports() {
    check(
        "
        //- index.ts
        export * from './one';
        export * from './two';
        //- one.ts
        export * from './far';
        export function first() {}
        //- two.ts
        export function second() {}
        //- far.ts
        export function far() {}
        //- main.ts
        import { first, second, far } from './index';
        first();
        second();
        far();
        ",
        expect![[r#"
            main.ts:2 calls one.ts first:2 (import 0.95)
            main.ts:3 calls two.ts second:1 (import 0.95)
            main.ts:4 calls far.ts far:1 (import 0.95)
        "#]],
    );
}

#[test]
fn modules_that_star_export_each_other_give_the_names_of_both() {
    check(
        "
        //- a.ts
        export * from './b';
        export function a() {}
        //- b.ts
        export * from './a';
        export function b() {}
        //- main.ts
        import { a, b } from './a';
        import { a as also } from './b';
        a();
        b();
        also();
        ",
        expect![[r#"
            main.ts:3 calls a.ts a:2 (import 0.95)
            main.ts:4 calls b.ts b:2 (import 0.95)
            main.ts:5 calls a.ts a:2 (import 0.95)
        "#]],
    );
}

#[test]
fn an_export_of_the_module_itself_hides_that_of_a_star() {
    check(
        "
        //- index.ts
        export * from './other';
        export function go() {}
        //- other.ts
        export function go() {}
        //- main.ts
        import { go } from './index';
        go();
        ",
        expect![[r#"
            main.ts:2 calls index.ts go:2 (import 0.95)
        "#]],
    );
}

#[test]
fn a_default_export_is_imported_under_any_name() {
    check(
        "
        //- index.ts
        export * from './other';
        //- other.ts
        export default function go() {}
        export function named() {}
        //- main.ts
        import other, { named } from './other';
        import { named as also } from './index';
        other();
        named();
        also();
        ",
        expect![[r#"
            main.ts:3 calls other.ts go:1 (import 0.95)
            main.ts:4 calls other.ts named:2 (import 0.95)
            main.ts:5 calls other.ts named:2 (import 0.95)
        "#]],
    );
}

#[test]
fn a_star_under_a_name_is_an_object_of_all_exports() {
    check(
        "
        //- index.ts
        export * as tools from './other';
        //- other.ts
        export function go() {}
        //- main.ts
        import { tools } from './index';
        tools.go();
        ",
        expect![[r#"
            main.ts:2 calls other.ts go:1 (import 0.95)
        "#]],
    );
}

#[test]
fn python_and_rust_wildcards_are_given_on() {
    check(
        "
        //- kit/__init__.py
        from .inner import *
        //- kit/inner.py
        def go(): pass
        //- main.py
        from kit import go
        go()
        //- src/lib.rs
        mod inner;
        pub use inner::*;
        mod user;
        //- src/inner.rs
        pub fn run() {}
        //- src/user.rs
        use crate::run;
        fn use_it() { run(); }
        ",
        expect![[r#"
            main.py:2 calls kit/inner.py go:1 (import 0.95)
            src/user.rs:2 calls src/inner.rs run:1 (import 0.95)
        "#]],
    );
}
