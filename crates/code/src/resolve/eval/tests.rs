//! Evaluation of expressions: limits, cycles, and how certain an answer is.

use super::{Eval, EvalQuestion, LEVELS};
use crate::facts::VarKind;
use crate::resolve::flow::Flows;
use crate::resolve::link::ProgramTables;
use crate::resolve::tests::{check, program};
use crate::resolve::value::{Derivation, MOST, PossibleValue, ValueSet};
use crate::resolve::{LinkTarget, resolve};
use expect_test::expect;

/// A chain of functions that return the result of the next; the last returns an instance of `A`.
fn chain(calls: usize) -> String {
    let mut text = "//- a.py\nclass A:\n    def go(self): pass\n".to_owned();
    for at in 0..calls {
        text += &format!("def f{at}(): return f{}()\n", at + 1);
    }
    text + &format!("def f{calls}(): return A()\nf0().go()\n")
}

/// Whether the call of the method after a chain of that many calls is resolved through the chain.
fn follows(calls: usize) -> bool {
    let mut program = program(&chain(calls));
    let links = resolve(&mut program);
    let id = program.find_file("a.py").expect("just added");
    let facts = &program.file(id).facts;
    let is_method = |to: LinkTarget| matches!(to, LinkTarget::Def(to) if facts.path_of(to.def) == ["A", "go"]);
    links[id].calls.iter().any(|link| is_method(link.to) && link.how < Derivation::UniqueName)
}

#[test]
fn a_chain_longer_than_the_levels_is_not_followed() {
    let followed: Vec<usize> = (0..2 * usize::from(LEVELS)).filter(|calls| follows(*calls)).collect();
    expect!["[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] calls with 12 levels"]
        .assert_eq(&format!("{followed:?} calls with {LEVELS} levels"));
}

#[test]
fn cycles_of_variables_functions_and_classes_end() {
    check(
        "
        //- a.py
        class A:
            def go(self): pass
        x = y
        y = x
        x.go()
        def f(): return g()
        def g(): return f()
        f().stop()
        def h(n): return h(n - 1) if n else A()
        h(3).go()
        class B(C):
            def stop(self): pass
        class C(B):
            def stop(self): pass
        B().stop()
        ",
        expect![[r#"
            a.py:11 B is a C:13
            a.py:13 C is a B:11
            a.py:6 calls g:7 (exact 0.98)
            a.py:7 calls f:6 (exact 0.98)
            a.py:8 calls f:6 (exact 0.98)
            a.py:9 calls h:9 (exact 0.98)
            a.py:9 calls A:1 (exact 0.98)
            a.py:10 calls h:9 (exact 0.98)
            a.py:10 calls A.go:2 (type 0.9)
            a.py:15 calls B:11 (exact 0.98)
            a.py:15 calls B.stop:12 (type 0.9)
            a.py:3 uses y:4 (exact 0.98)
            a.py:4 uses x:3 (exact 0.98)
            a.py:5 unresolved go
            a.py:8 unresolved stop
        "#]],
    );
}

#[test]
fn modules_that_import_each_other_are_followed_once() {
    check(
        "
        //- a.ts
        import { b } from './b';
        export function a() { b(); }
        export { again } from './b';
        //- b.ts
        import { a } from './a';
        export function b() { a(); }
        export { again } from './a';
        //- c.ts
        import { again } from './a';
        again();
        ",
        expect![[r#"
            a.ts:2 calls b.ts b:2 (import 0.95)
            b.ts:2 calls a.ts a:2 (import 0.95)
        "#]],
    );
}

#[test]
fn an_answer_does_not_depend_on_what_was_asked_before() {
    let mut program = program(&chain(3));
    program.put_in_order();
    let link = ProgramTables::new(&mut program);
    let flows = Flows::default();
    let id = program.find_file("a.py").expect("just added");
    let questions: Vec<EvalQuestion> =
        program
            .file(id)
            .facts
            .calls
            .ids()
            .flat_map(|call| [EvalQuestion::CallValue(id, call), EvalQuestion::CallTargets(id, call)])
            .chain(
                program.file(id).facts.vars.iter_ids().filter_map(|(var, entry)| {
                    matches!(entry.what, VarKind::Def(_)).then_some(EvalQuestion::Var(id, var))
                }),
            )
            .collect();
    for levels in 1..=LEVELS {
        let alone = |question: EvalQuestion| (*Eval::new(&program, &link, &flows).solve(question, levels)).clone();
        let mut forwards = Eval::new(&program, &link, &flows);
        let mut backwards = Eval::new(&program, &link, &flows);
        // The same evaluation after all questions were asked with every other number of levels.
        for other in 1..=LEVELS {
            questions.iter().for_each(|question| drop(forwards.solve(*question, other)));
            questions.iter().rev().for_each(|question| drop(backwards.solve(*question, LEVELS + 1 - other)));
        }
        for question in &questions {
            let expected = alone(*question);
            assert_eq!(*forwards.solve(*question, levels), expected, "{levels} levels, forwards");
            assert_eq!(*backwards.solve(*question, levels), expected, "{levels} levels, backwards");
        }
    }
}

#[test]
fn more_levels_only_add_values() {
    let mut program = program(&chain(4));
    program.put_in_order();
    let link = ProgramTables::new(&mut program);
    let flows = Flows::default();
    let id = program.find_file("a.py").expect("just added");
    for call in program.file(id).facts.calls.ids() {
        let mut before = ValueSet::default();
        for levels in 0..=LEVELS {
            let found = Eval::new(&program, &link, &flows).solve(EvalQuestion::CallTargets(id, call), levels);
            assert!(before.values.iter().all(|value| found.values.contains(value)), "{call:?} with {levels} levels");
            before = (*found).clone();
        }
    }
}

#[test]
fn confidence_is_that_of_the_least_certain_step() {
    check(
        "
        //- lib.py
        class A:
            def near(self): self.last()
            def last(self): pass
        def make(): return A()
        def typed() -> A: pass
        a = A()
        //- main.py
        from lib import A, make, typed, a
        def same(): pass
        same()
        make()
        A().last()
        a.last()
        make().last()
        typed().last()
        def passed(x): x.last()
        passed(a)
        def only(x): x.nearly_unique()
        class Other:
            def nearly_unique(self): pass
        ",
        expect![[r#"
            lib.py:2 calls A.last:3 (exact 0.98)
            lib.py:4 calls A:1 (exact 0.98)
            lib.py:6 calls A:1 (exact 0.98)
            lib.py:5 uses A:1 (exact 0.98)
            main.py:3 calls same:2 (exact 0.98)
            main.py:4 calls lib.py make:4 (import 0.95)
            main.py:5 calls lib.py A:1 (import 0.95)
            main.py:5 calls lib.py A.last:3 (type 0.9)
            main.py:6 calls lib.py A.last:3 (type 0.9)
            main.py:7 calls lib.py make:4 (import 0.95)
            main.py:7 calls lib.py A.last:3 (type 0.9)
            main.py:8 calls lib.py typed:5 (import 0.95)
            main.py:8 calls lib.py A.last:3 (type 0.9)
            main.py:9 calls lib.py A.last:3 (type 0.8)
            main.py:10 calls passed:9 (exact 0.98)
            main.py:11 calls Other.nearly_unique:13 (unique_name 0.4)
            main.py:11 unresolved nearly_unique
        "#]],
    );
    check(
        "
        //- lib.ts
        export class A { last() {} }
        export const a = new A();
        //- main.ts
        import { A, a } from './lib';
        function same() {}
        same();
        a.last();
        new A().last();
        const list = [a];
        list[0].last();
        function passed(x) { x.last(); }
        passed(a);
        ",
        expect![[r#"
            lib.ts:2 calls A:1 (exact 0.98)
            main.ts:3 calls same:2 (exact 0.98)
            main.ts:4 calls lib.ts A.last:1 (type 0.9)
            main.ts:5 calls lib.ts A:1 (import 0.95)
            main.ts:5 calls lib.ts A.last:1 (type 0.9)
            main.ts:7 calls lib.ts A.last:1 (type 0.9)
            main.ts:8 calls lib.ts A.last:1 (type 0.8)
            main.ts:9 calls passed:8 (exact 0.98)
            main.ts:7 uses list:6 (exact 0.98)
        "#]],
    );
}

#[test]
fn more_values_than_a_set_holds_are_no_answer() {
    let source = |classes: usize| {
        let mut text = "//- a.py\n".to_owned();
        for at in 0..classes {
            text += &format!("class C{at}:\n    def go(self): pass\n");
        }
        for at in 0..classes {
            text += &format!("x = C{at}()\n");
        }
        text + "x.go()\n"
    };
    let targets = |classes: usize| {
        let mut program = program(&source(classes));
        let links = resolve(&mut program);
        let id = program.find_file("a.py").expect("just added");
        let facts = &program.file(id).facts;
        let to_method = |to| matches!(to, LinkTarget::Def(to) if facts.path_of(to.def).len() == 2);
        links[id].calls.iter().filter(|link| to_method(link.to)).count()
    };
    assert_eq!((targets(MOST), targets(MOST + 1)), (MOST, 0));
}

#[test]
fn a_set_keeps_the_most_certain_derivation_of_each_value() {
    let mut set = ValueSet::one(PossibleValue::Text, Derivation::Flow);
    set.add(PossibleValue::Text, Derivation::Exact);
    set.add(PossibleValue::Text, Derivation::Possible);
    assert_eq!(set.values.as_slice(), [(PossibleValue::Text, Derivation::Exact)]);
    let mut joined = ValueSet::one(PossibleValue::Number, Derivation::Exact);
    joined.join_as(&set, Derivation::Type);
    assert_eq!(
        joined.values.as_slice(),
        [(PossibleValue::Number, Derivation::Exact), (PossibleValue::Text, Derivation::Type)]
    );
    let too_many = ValueSet { too_many: true, ..ValueSet::default() };
    joined.join(&too_many);
    assert!(joined.is_empty() && joined.too_many);
    joined.add(PossibleValue::Text, Derivation::Exact);
    assert!(joined.is_empty(), "a set with too many values takes no further ones");
}

#[test]
fn derivations_are_ordered_by_confidence() {
    let all = [
        Derivation::Compiler,
        Derivation::Exact,
        Derivation::Import,
        Derivation::Type,
        Derivation::Flow,
        Derivation::Candidate,
        Derivation::Dispatch,
        Derivation::Possible,
        Derivation::UniqueName,
    ];
    assert!(all.is_sorted());
    assert!(all.is_sorted_by(|a, b| a.confidence() >= b.confidence()));
}

#[test]
fn a_module_that_assigns_its_exports_is_what_it_assigns() {
    check(
        "
        //- package.json
        {}
        //- tool.js
        function tool() {}
        tool.more = function more() {};
        module.exports = tool;
        //- named.js
        exports.one = function one() {};
        //- main.js
        const tool = require('./tool');
        const { one } = require('./named');
        tool();
        tool.more();
        one();
        ",
        expect![[r#"
            main.js:3 calls tool.js tool:1 (import 0.95)
            main.js:4 calls tool.js more:2 (type 0.9)
            main.js:5 calls named.js one:1 (import 0.95)
            tool.js:3 uses tool:1 (exact 0.98)
        "#]],
    );
}
