//! Tables over all files: imports, packages, bases, structural interfaces, tests.

use super::ProgramTables;
use crate::resolve::tests::{check, name, program};
use crate::resolve::{DefRef, LinkTarget, Program};
use expect_test::expect;

/// The definition at a path such as `Class.method`.
fn find(program: &Program, path: &str, definition: &str) -> DefRef {
    let file = program.find_file(path).expect("a file of the program");
    let facts = &program.file(file).facts;
    let def = facts.defs.ids().find(|def| facts.path_of(*def).join(".") == definition);
    DefRef { file, def: def.expect("a definition of the file") }
}

fn names(program: &Program, from: DefRef, found: &[DefRef]) -> String {
    found.iter().map(|gid| name(program, from.file, LinkTarget::Def(*gid))).collect::<Vec<_>>().join(", ")
}

#[test]
fn derived_classes_are_listed_nearest_first() {
    let mut program = program(
        "
        //- a.py
        class A: pass
        class B(A): pass
        class C(B): pass
        class D(A): pass
        class E(D, C): pass
        ",
    );
    let link = ProgramTables::new(&mut program);
    let a = find(&program, "a.py", "A");
    assert_eq!(names(&program, a, &link.all_derived(a)), "B:2, D:4, C:3, E:5");
    let mut above = Vec::new();
    link.above(find(&program, "a.py", "E"), |gid| above.push(gid));
    assert_eq!(names(&program, a, &above), "E:5, D:4, C:3, A:1, B:2");
    assert!(link.derived(a) && !link.derived(find(&program, "a.py", "E")));
}

#[test]
fn classes_that_derive_from_each_other_have_a_finite_line() {
    let mut program = program(
        "
        //- a.py
        class A(B): pass
        class B(A): pass
        ",
    );
    let link = ProgramTables::new(&mut program);
    let (a, b) = (find(&program, "a.py", "A"), find(&program, "a.py", "B"));
    assert_eq!((link.bases(a), link.bases(b)), (&[b][..], &[a][..]));
    assert_eq!(names(&program, a, &link.all_derived(a)), "B:2, A:1");
}

#[test]
fn a_type_has_an_interface_if_it_has_all_its_methods() {
    check(
        "
        //- a.go
        package a
        type Store interface { Get(); Put() }
        type Both struct{}
        func (b *Both) Get() {}
        func (b *Both) Put() {}
        type Half struct{}
        func (h *Half) Get() {}
        type Outer struct { Both }
        func run(s Store) { s.Get() }
        ",
        expect![[r#"
            a.go:8 Outer is a Both:3
            a.go:9 calls Store.Get:2 (type 0.6)
            a.go:9 calls Get:4 (type 0.8)
            a.go:8 uses Both:3 (exact 0.98)
            a.go:9 uses Store:2 (exact 0.98)
        "#]],
    );
}

#[test]
fn bases_are_resolved_across_files_and_languages_keep_apart() {
    check(
        "
        //- kit/base.py
        class Base: pass
        //- a.py
        from kit.base import Base
        import kit.base as b
        class One(Base): pass
        class Two(b.Base): pass
        //- base.ts
        export class Base {}
        export interface Drawn {}
        //- a.ts
        import { Base, Drawn } from './base';
        import * as all from './base';
        class One extends Base implements Drawn {}
        class Two extends all.Base {}
        //- a/Base.java
        package a;
        public class Base {}
        //- b/One.java
        package b;
        import a.Base;
        class One extends Base {}
        class Two extends a.Base {}
        ",
        expect![[r#"
            a.py:3 One is a kit/base.py Base:1
            a.py:4 Two is a kit/base.py Base:1
            a.ts:3 One is a base.ts Base:1
            a.ts:3 One is a base.ts Drawn:2
            a.ts:4 Two is a base.ts Base:1
            a.ts:3 uses base.ts Drawn:2 (import 0.95)
            b/One.java:3 One is a a/Base.java Base:2
            b/One.java:4 Two is a a/Base.java Base:2
        "#]],
    );
}

#[test]
fn a_function_is_the_only_one_of_its_name_or_ambiguous() {
    let mut program = program(
        "
        //- a.c
        void once(void) {}
        void twice(void) {}
        static void hidden(void) {}
        //- b.c
        void twice(void) {}
        void use(void) { once(); twice(); }
        ",
    );
    let link = ProgramTables::new(&mut program);
    let language = program.file(find(&program, "a.c", "once").file).facts.language;
    let found = |name: &str| program.find(name).and_then(|name| link.only_function(language, name));
    assert_eq!(found("once"), Some(find(&program, "a.c", "once")));
    assert_eq!(found("twice"), None, "two files have it");
    let known = |name: &str| program.find(name).is_some_and(|name| link.has_function(language, name));
    assert!(known("twice") && !known("missing"));
}

#[test]
fn files_are_tests_by_their_name_or_by_the_module_that_declares_them() {
    let mut program = program(
        "
        //- src/lib.rs
        #[cfg(test)]
        mod checks;
        mod plain;
        //- src/checks.rs
        mod inner;
        //- src/checks/inner.rs
        fn a() {}
        //- src/plain.rs
        fn a() {}
        //- test_a.py
        def test_a(): pass
        //- a.py
        def a(): pass
        //- a.test.ts
        export {};
        //- a_test.go
        package a
        ",
    );
    let link = ProgramTables::new(&mut program);
    let mut tests: Vec<&str> =
        program.ids().filter(|id| link.is_test_file(*id)).map(|id| &*program.file(id).path).collect();
    tests.sort_unstable();
    assert_eq!(tests, ["a.test.ts", "a_test.go", "src/checks.rs", "src/checks/inner.rs", "test_a.py"]);
}

#[test]
fn packages_are_found_by_their_dotted_names() {
    let mut program = program(
        "
        //- x/A.java
        package org.shop.kit;
        public class A { public static class Inner {} }
        class Hidden {}
        ",
    );
    let link = ProgramTables::new(&mut program);
    let file = program.find_file("x/A.java").expect("just added");
    let package = link.package_of(file).expect("the file declares one");
    assert_eq!(program.text(package), "org.shop.kit");
    let within = |name: &str| link.in_package(package, program.find(name)?);
    assert_eq!(within("A"), Some(find(&program, "x/A.java", "A")));
    assert_eq!(within("Inner"), None, "only top-level types are names of the package");
    let root = |name: &str| link.subpackage_root(&program, program.find(name)?);
    assert_eq!(root("org").map(|package| program.text(package)), Some("org"), "it contains only packages");
    assert_eq!(root("A"), None);
}

#[test]
fn members_that_other_code_writes_are_known_by_name() {
    let mut program = program(
        "
        //- a.py
        class A:
            def __init__(self):
                self.own = 1
        def fill(a: A):
            a.foreign = 2
        ",
    );
    let link = ProgramTables::new(&mut program);
    let written = |name: &str| program.find(name).is_some_and(|name| link.is_written(name));
    assert!(written("foreign"));
    assert!(!written("own"), "a method writes it to its own object");
}
