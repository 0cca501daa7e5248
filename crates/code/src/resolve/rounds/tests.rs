//! What each round adds, and that reuse of earlier results returns what a full resolution does.

use super::{CallClass, ROUNDS, Resolver};
use crate::resolve::tests::{check, files, name, program, put};
use crate::resolve::{LinkTarget, PossibleValue, Program, resolve};
use expect_test::{Expect, expect};
use std::fmt::Write;

/// The targets of each call after each round in which they differ: `line: round 1: …; round 2: …`.
fn by_round(source: &str) -> String {
    let mut program = program(source);
    let mut resolver = Resolver::default();
    resolver.resolve(&mut program);
    let kept = resolver.kept.as_ref().expect("`resolve` keeps the rounds");
    assert_eq!(kept.rounds.len(), ROUNDS);
    let mut out = String::new();
    for id in program.ids() {
        let file = program.file(id);
        for (call, entry) in file.facts.calls.iter_ids() {
            let mut before = String::new();
            let _ = write!(out, "{}:{}", file.path, entry.line);
            for (number, round) in kept.rounds.iter().enumerate() {
                let answers = round.files[id].as_ref().expect("every round answers every file");
                let targets = answers.calls[call].targets.iter().map(|(value, _)| match value {
                    PossibleValue::Func(gid) | PossibleValue::Method(gid, _) | PossibleValue::Class(gid) => {
                        name(&program, id, LinkTarget::Def(*gid))
                    }
                    other => format!("{other:?}"),
                });
                let targets = targets.collect::<Vec<_>>().join(", ");
                let targets = if targets.is_empty() { "nothing".to_owned() } else { targets };
                if targets != before {
                    let _ = write!(out, " | round {}: {targets}", number + 1);
                }
                before = targets;
            }
            out.push('\n');
        }
    }
    out
}

#[track_caller]
fn check_rounds(source: &str, expected: Expect) {
    expected.assert_eq(&by_round(source));
}

#[test]
fn the_argument_of_a_parameter_is_known_in_the_second_round() {
    check_rounds(
        "
        //- a.py
        class A:
            def go(self): pass
        def run(x):
            x.go()
        run(A())
        ",
        expect![[r#"
            a.py:4 | round 1: nothing | round 2: A.go:2
            a.py:5 | round 1: A:1
            a.py:5 | round 1: run:3
        "#]],
    );
    check_rounds(
        "
        //- a.js
        class A { go() {} }
        function run(x) { x.go(); }
        run(new A());
        ",
        expect![[r#"
            a.js:2 | round 1: nothing | round 2: A.go:1
            a.js:3 | round 1: A:1
            a.js:3 | round 1: run:2
        "#]],
    );
}

#[test]
fn a_value_passes_through_several_functions_in_one_round() {
    check_rounds(
        "
        //- a.py
        class A:
            def go(self): pass
        def first(x): second(x)
        def second(x): third(x)
        def third(x): x.go()
        first(A())
        ",
        expect![[r#"
            a.py:3 | round 1: second:4
            a.py:4 | round 1: third:5
            a.py:5 | round 1: nothing | round 2: A.go:2
            a.py:6 | round 1: A:1
            a.py:6 | round 1: first:3
        "#]],
    );
}

#[test]
fn each_function_that_is_itself_passed_takes_one_more_round() {
    check_rounds(
        "
        //- a.py
        class A:
            def go(self): pass
        def apply(f, x): f(x)
        def twice(f, x): f(apply, x)
        def run(f, x): f(last, x)
        def last(x): x.go()
        twice(run, A())
        ",
        expect![[r#"
            a.py:3 | round 1: nothing | round 4: last:6
            a.py:4 | round 1: nothing | round 2: run:5
            a.py:5 | round 1: nothing | round 3: apply:3
            a.py:6 | round 1: nothing
            a.py:7 | round 1: A:1
            a.py:7 | round 1: twice:4
        "#]],
    );
}

#[test]
fn functions_beyond_the_last_round_stay_unresolved() {
    check_rounds(
        "
        //- a.py
        def a(f): f(b)
        def b(f): f(c)
        def c(f): f(d)
        def d(f): f(e)
        def e(f): f(g)
        def g(f): f(h)
        def h(f): pass
        def start(f): f(a)
        start(a)
        ",
        expect![[r#"
            a.py:1 | round 1: nothing | round 3: a:1 | round 4: b:2, a:1
            a.py:2 | round 1: nothing
            a.py:3 | round 1: nothing
            a.py:4 | round 1: nothing
            a.py:5 | round 1: nothing
            a.py:6 | round 1: nothing
            a.py:8 | round 1: nothing | round 2: a:1
            a.py:9 | round 1: start:8
        "#]],
    );
}

#[test]
fn a_field_that_other_code_writes_is_known_in_the_second_round() {
    check_rounds(
        "
        //- a.py
        class A:
            def go(self): pass
        class Box: pass
        def fill(box: Box):
            box.inner = A()
        def use(box: Box):
            box.inner.go()
        ",
        expect![[r#"
            a.py:5 | round 1: A:1
            a.py:7 | round 1: nothing | round 2: A.go:2
        "#]],
    );
}

#[test]
fn an_override_is_certain_only_once_its_class_is_known_to_be_made() {
    check(
        "
        //- a.py
        from abc import ABC, abstractmethod
        class Base(ABC):
            @abstractmethod
            def go(self): pass
        class Made(Base):
            def go(self): pass
        class Unused(Base):
            def go(self): pass
        def run(x: Base):
            x.go()
        Made()
        ",
        expect![[r#"
            a.py:2 Base is a outside abc.ABC
            a.py:5 Made is a Base:2
            a.py:7 Unused is a Base:2
            a.py:10 calls Base.go:3 (type 0.6)
            a.py:10 calls Made.go:6 (type 0.8)
            a.py:10 calls Unused.go:8 (type 0.45)
            a.py:11 calls Made:5 (exact 0.98)
            a.py:9 uses Base:2 (exact 0.98)
        "#]],
    );
}

#[test]
fn calls_are_counted_by_their_class() {
    let mut program = program(
        "
        //- a.py
        import os
        def known(): pass
        def run(x):
            known()
            os.getcwd()
            len('text')
            x.unknown()
            x + 1
        ",
    );
    let mut resolver = Resolver::default();
    resolver.resolve(&mut program);
    let id = program.find_file("a.py").expect("just added");
    let kept = resolver.kept.as_ref().expect("`resolve` keeps the rounds");
    let last = kept.rounds[ROUNDS - 1].files[id].as_ref().expect("every round answers every file");
    let classes = last.calls.iter().filter(|found| found.class != CallClass::Silent).map(|found| match found.class {
        CallClass::Resolved => "resolved",
        CallClass::Outside => "outside",
        CallClass::Unresolved => "unresolved",
        CallClass::Silent => unreachable!("filtered out above"),
    });
    assert_eq!(classes.collect::<Vec<_>>(), ["resolved", "outside", "outside", "unresolved"]);
    let counts = resolver.links()[id].counts;
    assert_eq!((counts.calls, counts.resolved, counts.outside, counts.unresolved), (4, 1, 2, 1));
}

const SHOP: &str = "
    //- base.py
    class Base:
        def save(self): self.check()
        def check(self): pass
    def apply(f, x): return f(x)
    //- order.py
    from base import Base, apply
    class Order(Base):
        def check(self): pass
    def make(): return Order()
    //- main.py
    from base import apply
    from order import make
    def use(x): x.save()
    apply(use, make())
    //- far.py
    def far(): near()
    def near(): pass
    //- web/a.ts
    export * from './b';
    //- web/b.ts
    export function draw(x: Drawn) { x.go(); }
    export interface Drawn { go(): void }
    //- web/c.ts
    import { draw, Drawn } from './a';
    class Page implements Drawn { go() {} }
    draw(new Page());
    //- go/a.go
    package shop
    type Runner interface { Run() }
    func Start(r Runner) { r.Run() }
    //- go/b.go
    package shop
    type Job struct{}
    func (j *Job) Run() {}
    func Main() { Start(&Job{}) }
";

/// A change of one file: the path, the text to replace and its replacement.
const CHANGES: &[(&str, &str, &str, &str)] = &[
    ("a body", "far.py", "near()\n", "near(); near()\n"),
    ("a method that overrides another is renamed", "order.py", "def check", "def verify"),
    ("a base is dropped", "order.py", "Order(Base)", "Order"),
    ("a result differs", "order.py", "return Order()", "return 1"),
    ("an argument differs", "main.py", "apply(use, make())", "apply(make, use)"),
    (
        "a base gets a method",
        "base.py",
        "def check(self): pass",
        "def check(self): pass\n    def more(self): self.save()",
    ),
    ("a star export is dropped", "web/a.ts", "export * from './b';", "export {};"),
    ("a Go interface gets a method", "go/a.go", "{ Run() }", "{ Run(); Stop() }"),
    ("a class no longer implements", "web/c.ts", " implements Drawn", ""),
    ("a Go method is renamed", "go/b.go", ") Run()", ") Stop()"),
    ("a Go type is no longer made", "go/b.go", "Start(&Job{})", "Start(nil)"),
    ("a syntax error", "base.py", "def apply(f, x): return f(x)", "def apply(f, x: return f(x"),
];

#[test]
fn after_each_change_the_links_are_those_of_a_full_resolution() {
    for (what, path, old, new) in CHANGES {
        let mut program = program(SHOP);
        let mut resolver = Resolver::default();
        resolver.resolve(&mut program);
        let before = resolver.links().clone();
        let (_, text) = files(SHOP).into_iter().find(|(known, _)| known == path).expect("a file of the shop");
        assert!(text.contains(old), "{what}: {path} contains {old:?}");
        put(&mut program, path, &text.replace(old, new));
        resolver.resolve(&mut program);
        assert!(*resolver.links() != before, "{what} changes links");
        assert_eq!(*resolver.links(), resolve(&mut program), "{what}");
        // Back again: nothing of the state in between remains.
        put(&mut program, path, &text);
        resolver.resolve(&mut program);
        assert_eq!(*resolver.links(), before, "{what}, undone");
    }
}

#[test]
fn a_change_recomputes_only_the_files_that_it_affects() {
    let again = |path: &str, old: &str, new: &str| {
        let mut program = program(SHOP);
        let mut resolver = Resolver::default();
        resolver.resolve(&mut program);
        let (_, text) = files(SHOP).into_iter().find(|(known, _)| known == path).expect("a file of the shop");
        put(&mut program, path, &text.replace(old, new));
        let mut paths: Vec<String> =
            resolver.resolve(&mut program).into_iter().map(|id| program.file(id).path.to_string()).collect();
        paths.sort();
        paths.join(" ")
    };
    assert_eq!(again("far.py", "near()\n", "near(); near()\n"), "far.py");
    assert_eq!(again("order.py", "return Order()", "return 1"), "base.py main.py order.py");
    assert_eq!(again("web/a.ts", "export * from './b';", "export {};"), "web/a.ts web/b.ts web/c.ts");
    assert_eq!(again("go/b.go", "Start(&Job{})", "Start(nil)"), "go/a.go go/b.go");
}

#[test]
fn without_a_change_nothing_is_recomputed() {
    let mut program = program(SHOP);
    let mut resolver = Resolver::default();
    assert_eq!(resolver.resolve(&mut program).len(), program.ids().count());
    assert!(resolver.resolve(&mut program).is_empty());
}

#[test]
fn added_and_removed_files_are_resolved_with_all_others() {
    let mut program = program(SHOP);
    let mut resolver = Resolver::default();
    resolver.resolve(&mut program);
    let before = resolver.links().clone();
    put(&mut program, "aaa.py", "from order import make\nmake().save()\n");
    resolver.resolve(&mut program);
    assert_eq!(*resolver.links(), resolve(&mut program));
    assert_eq!(program.find_file("aaa.py").map(|id| resolver.links()[id].calls.len()), Some(2));
    program.remove("aaa.py");
    resolver.resolve(&mut program);
    assert_eq!(*resolver.links(), before);
}

#[test]
fn resolving_once_returns_the_same_links_and_keeps_nothing() {
    let (mut program, mut other): (Program, Program) = (program(SHOP), program(SHOP));
    let (mut once, mut again) = (Resolver::default(), Resolver::default());
    once.resolve_once(&mut program);
    again.resolve(&mut other);
    assert_eq!(once.links(), again.links());
    assert!(once.kept.is_none());
}
