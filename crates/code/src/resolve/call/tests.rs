//! Small programs and the calls in them.

mod bases;
mod builds;
mod contexts;
mod tests_apart;
mod typed;
mod unresolved;

use crate::languages::LanguageId;
use crate::resolve::{LinkTarget, Program, resolve};
use std::sync::Arc;

#[track_caller]
pub(crate) fn check(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(calls(files), expected);
}

/// Every call of the files: its position, its targets and their confidence.
fn calls(files: &[(&str, &str)]) -> Vec<String> {
    let mut program = Program::default();
    for (path, text) in files {
        match LanguageId::of(path, text) {
            Some(language) => drop(program.set(path, Arc::new(crate::parse(path, text, language)))),
            None => drop(program.manifests.insert((*path).to_owned(), (*text).to_owned())),
        }
    }
    let links = resolve(&mut program);
    let mut found = Vec::new();
    for id in program.ids() {
        let file = program.file(id);
        for link in &links[id].calls {
            let call = &file.facts.calls[link.call];
            let to = match link.to {
                LinkTarget::Def(gid) => {
                    let to = program.file(gid.file);
                    let place = if gid.file == id { String::new() } else { format!("{} ", to.path) };
                    format!("{place}{}:{}", to.facts.path_of(gid.def).join("."), program.def(gid).span.line)
                }
                LinkTarget::External(path) => program.external_text(path),
            };
            found.push(format!("{}:{} -> {to} {}", file.path, call.line, link.how.confidence()));
        }
    }
    found
}

#[test]
fn an_overload_is_the_function_with_a_body() {
    check(
        &[(
            "a.py",
            "from typing import overload\n\
             class C:\n\
             \x20   @overload\n\
             \x20   def get(self, a: int) -> int: ...\n\
             \x20   @overload\n\
             \x20   def get(self, a: str) -> str: ...\n\
             \x20   def get(self, a): return a\n\
             def use(c: C): c.get(1)\n",
        )],
        &["a.py:8 -> C.get:7 0.9"],
    );
    check(
        &[(
            "a.ts",
            "export function from(a: string): string;\n\
             export function from(a: string, b: number): string;\n\
             export function from(a: any, b?: any, c?: any): any { return a; }\n\
             class C { f(a: number): void; f(a: any, b?: any): void {} }\n\
             export function use() { from('x'); from('x', 1); new C().f(1); }\n",
        )],
        &["a.ts:5 -> from:3 0.98", "a.ts:5 -> from:3 0.98", "a.ts:5 -> C:4 0.98", "a.ts:5 -> C.f:4 0.9"],
    );
    // Without a body, the declaration is the only target.
    check(
        &[
            ("a.d.ts", "export function from(a: string): string;\n"),
            ("b.ts", "import { from } from './a';\nfrom('x');\n"),
        ],
        &["b.ts:2 -> a.d.ts from:1 0.95"],
    );
}

#[test]
fn a_decorated_class_is_the_class() {
    check(
        &[
            (
                "deco.py",
                "from functools import partial\n\
                 def auto(cls=None, *, angular=None):\n\
                 \x20   def replace(cls, angular=None):\n\
                 \x20       return cls\n\
                 \x20   if cls is None:\n\
                 \x20       return partial(replace, angular=angular)\n\
                 \x20   return replace(cls, angular=angular)\n",
            ),
            (
                "a.py",
                "from deco import auto\n\
                 @auto\n\
                 class Style:\n\
                 \x20   def __init__(self): pass\n\
                 \x20   @classmethod\n\
                 \x20   def null(cls): return Style()\n\
                 @auto(angular=True)\n\
                 class Other:\n\
                 \x20   def __init__(self): pass\n\
                 Style.null()\n\
                 Other()\n",
            ),
        ],
        &[
            "a.py:2 -> deco.py auto:2 0.95",
            "a.py:6 -> Style.__init__:4 0.98",
            "a.py:7 -> deco.py auto:2 0.95",
            "a.py:7 -> deco.py auto.replace:3 0.95",
            "a.py:10 -> Style.null:5 0.98",
            "a.py:11 -> Other.__init__:9 0.98",
            "deco.py:6 -> functools.partial 0.95",
            "deco.py:7 -> auto.replace:3 0.98",
        ],
    );
}

#[test]
fn what_a_callback_gets_is_declared_where_it_is_taken() {
    check(
        &[
            (
                "a.ts",
                "export class Sub<T> { next(v: T) {} }\n\
                 export class Source { on(s: Sub<any>) {} }\n\
                 type Init = (source: Source, sub: Sub<any>) => void;\n\
                 export class Obs { constructor(run?: ((this: Obs, s: Sub<any>) => void) | null) {} }\n\
                 export function operate(init: Init): void {}\n",
            ),
            (
                "b.ts",
                "import { Obs, operate } from './a';\n\
                 new Obs((sub) => { sub.next(1); });\n\
                 operate((source, sub) => { source.on(sub); sub.next(2); });\n",
            ),
        ],
        &[
            "b.ts:2 -> a.ts Sub.next:1 0.9",
            "b.ts:2 -> a.ts Obs.constructor:4 0.95",
            "b.ts:3 -> a.ts Source.on:2 0.9",
            "b.ts:3 -> a.ts Sub.next:1 0.9",
            "b.ts:3 -> a.ts operate:5 0.95",
        ],
    );
}

#[test]
fn any_says_nothing_of_a_value() {
    check(
        &[(
            "a.py",
            "import typing as t\n\
             class C:\n\
             \x20   def run_it(self): pass\n\
             \x20   def walk_it(self): pass\n\
             class D:\n\
             \x20   def walk_it(self): pass\n\
             def use(c: t.Any): c.walk_it()\n\
             use(C())\n\
             def other(v: t.Any): v.items()\n",
        )],
        &["a.py:7 -> C.walk_it:4 0.8", "a.py:8 -> C:2 0.98", "a.py:8 -> use:7 0.98"],
    );
}

#[test]
fn names_of_builtin_methods_are_nobodys_alone() {
    check(
        &[("a.js", "class Result { slice(a) {} collected(a) {} }\nfunction use(x) { x.slice(1); x.collected(1); }\n")],
        &["a.js:2 -> Result.collected:1 0.4"],
    );
}

#[test]
fn an_objects_own_set_puts_nothing_into_it() {
    check(
        &[(
            "a.js",
            "var app = module.exports = {};\n\
             function one() {}\n\
             app.init = function init() { this.set('a', one); this.start(); };\n\
             app.set = function set(name, value) {};\n\
             app.start = function start() { this.missing(); };\n",
        )],
        &["a.js:3 -> set:4 0.9", "a.js:3 -> start:5 0.9"],
    );
}

#[test]
fn what_is_known_does_not_depend_on_what_was_asked_before() {
    // Evaluating `v0`, however far it is from the class, must not affect the answers for nearer variables.
    for far in 1..14 {
        let mut text = String::from("import { Foo } from './index';\n");
        for at in 0..far {
            text += &format!("const v{at} = v{};\n", at + 1);
        }
        text += &format!("const v{far} = Foo;\nnew v0();\nnew Foo();\n");
        let near = format!("a.ts:{} -> foo.ts Foo.constructor:1 0.95", far + 4);
        let files = [
            ("foo.ts", "export class Foo { constructor() {} }\n"),
            ("inner.ts", "export * from './foo';\n"),
            ("index.ts", "export { Foo } from './inner';\n"),
            ("a.ts", text.as_str()),
        ];
        let found = calls(&files);
        assert_eq!(found.last(), Some(&near), "{far} steps away");
    }
}

#[test]
fn stars_give_what_the_modules_behind_them_give() {
    let files = [
        ("index.ts", "export * from './one';\nexport * from './deep';\nexport * from 'elsewhere';\n"),
        ("one.ts", "export function one() {}\nexport * from './index';\nfunction hidden() {}\n"),
        ("deep/index.ts", "export * from './two';\nexport { two as second } from './two';\n"),
        ("deep/two.js", "module.exports = { two() {} };\n"),
        // `export *` does not bind names locally.
        ("own.ts", "export * from './one';\none();\n"),
        ("a.ts", "import { one, two, second, hidden } from '.';\none();\ntwo();\nsecond();\nhidden();\n"),
    ];
    let found = calls(&files);
    for call in ["a.ts:2 -> one.ts one:1", "a.ts:3 -> deep/two.js two:1", "a.ts:4 -> deep/two.js two:1"] {
        assert!(found.iter().any(|line| line.starts_with(call)), "{call}: {found:#?}");
    }
    assert!(!found.iter().any(|line| line.starts_with("own.ts") || line.contains("hidden:")), "{found:#?}");
}

#[test]
fn a_base_with_type_arguments_is_the_base() {
    check(
        &[(
            "a.py",
            "import typing as t\n\
             import weakref\n\
             T = t.TypeVar('T')\n\
             class Base(t.Generic[T]):\n\
             \x20   def fail(self): pass\n\
             class Date(Base[int]):\n\
             \x20   def convert(self): self.fail()\n\
             class Holder:\n\
             \x20   def __init__(self, date: Date):\n\
             \x20       self.date = weakref.proxy(date)\n\
             \x20   def use(self): self.date.convert()\n",
        )],
        &[
            "a.py:3 -> typing.TypeVar 0.95",
            "a.py:7 -> Base.fail:5 0.98",
            "a.py:10 -> weakref.proxy 0.95",
            "a.py:11 -> Date.convert:7 0.9",
        ],
    );
}

#[test]
fn what_is_put_over_a_method_is_a_candidate() {
    check(
        &[(
            "a.py",
            "class Graph:\n\
             \x20   def add(self): pass\n\
             def frozen(): raise TypeError()\n\
             def freeze(graph):\n\
             \x20   graph.add = frozen\n\
             freeze(Graph())\n\
             Graph().add()\n",
        )],
        &[
            "a.py:6 -> Graph:1 0.98",
            "a.py:6 -> freeze:4 0.98",
            "a.py:7 -> Graph:1 0.98",
            "a.py:7 -> frozen:3 0.6",
            "a.py:7 -> Graph.add:2 0.9",
        ],
    );
}

#[test]
fn a_decorator_that_gives_back_itself_is_not_what_it_decorates() {
    let found = calls(&[(
        "a.py",
        "from functools import partial\n\
         def dispatch(func=None, **options):\n\
         \x20   if func is None:\n\
         \x20       return partial(dispatch, **options)\n\
         \x20   return func\n\
         @dispatch(name='x')\n\
         def run(): pass\n\
         run()\n",
    )]);
    let runs: Vec<&String> = found.iter().filter(|line| line.starts_with("a.py:8")).collect();
    assert_eq!(runs, ["a.py:8 -> run:6 0.98"], "{found:?}");
}

#[test]
fn a_python_type_of_a_class_is_the_class() {
    check(
        &[(
            "a.py",
            "class Fault:\n\
             \x20   def __init__(self): pass\n\
             \x20   def __call__(self): pass\n\
             def make(kind: type[Fault], all: dict[int, type[Fault]]):\n\
             \x20   kind()\n\
             \x20   all[1]()\n\
             \x20   kind()()\n",
        )],
        &[
            "a.py:5 -> Fault.__init__:2 0.9",
            "a.py:6 -> Fault.__init__:2 0.9",
            "a.py:7 -> Fault.__init__:2 0.9",
            "a.py:7 -> Fault.__call__:3 0.9",
        ],
    );
}

/// Without memoizing what callers pass, each step would ask twenty times as many questions as the previous one.
#[test]
fn whatever_comes_is_handed_on_by_many_to_many() {
    let handed_on = |steps: usize| {
        let mut text = String::from("def work(): pass\n\n");
        for step in 0..steps {
            let call = format!("    f{}(*args, **options)\n", step + 1).repeat(20);
            text += &format!("def f{step}(*args, **options):\n{call}\n");
        }
        text += &format!("def f{steps}(first, *args, run=None, **options):\n");
        text += "    first()\n    run()\n    options['go']()\n\nf0(work, run=work, go=work)\n";
        let found = calls(&[("a.py", &text)]);
        found.iter().filter(|call| call.contains("-> work:")).count()
    };
    assert_eq!(handed_on(2), 3);
    // More steps than values are followed, but it terminates.
    assert!(handed_on(12) <= 3);
}

/// As in gin: the engine embeds a group of routes.
#[test]
fn methods_of_embedded_structs_are_called_through_what_embeds_them() {
    let mut found = calls(&[
        ("go.mod", "module example.com/web\n"),
        (
            "group.go",
            "package web\n\n\
                 type RouterGroup struct{ base string }\n\
                 func (g *RouterGroup) GET(path string) { g.handle(path) }\n\
                 func (g *RouterGroup) handle(path string) {}\n",
        ),
        (
            "engine.go",
            "package web\n\n\
                 type Engine struct {\n\
                 \tRouterGroup\n\
                 \tname string\n\
                 }\n\
                 func New() *Engine { return &Engine{} }\n\
                 func (e *Engine) Run() { e.GET(\"/\") }\n",
        ),
        (
            "use/main.go",
            "package main\n\n\
                 import \"example.com/web\"\n\n\
                 type App struct{ *web.Engine }\n\
                 func main() {\n\
                 \te := web.New()\n\
                 \te.GET(\"/a\")\n\
                 \tapp := App{e}\n\
                 \tapp.GET(\"/b\")\n\
                 \tapp.Run()\n\
                 }\n",
        ),
    ]);
    // A method is reported once for each struct it runs on.
    found.dedup();
    assert_eq!(
        found,
        [
            "engine.go:8 -> group.go GET:4 0.9",
            "group.go:4 -> handle:5 0.9",
            "use/main.go:7 -> engine.go New:7 0.95",
            "use/main.go:8 -> group.go GET:4 0.9",
            "use/main.go:10 -> group.go GET:4 0.9",
            "use/main.go:11 -> engine.go Run:8 0.9",
        ],
    );
}

/// A function of the standard library does not resolve to one of the program with the same name.
#[test]
fn a_function_of_another_package_is_not_taken_for_ours() {
    check(
        &[
            ("go.mod", "module example.com/web\n"),
            ("web.go", "package web\n\ntype Engine struct{}\nfunc New() *Engine { return &Engine{} }\n"),
            (
                "fail.go",
                "package web\n\n\
                 import \"errors\"\n\n\
                 var ErrClosed = errors.New(\"closed\")\n\
                 func fail() error { return errors.New(\"failed\") }\n\
                 func start() *Engine { return New() }\n",
            ),
        ],
        &["fail.go:5 -> errors.New 0.95", "fail.go:6 -> errors.New 0.95", "fail.go:7 -> web.go New:4 0.95"],
    );
}

/// Decorators that work with and without arguments.
#[test]
fn what_hangs_on_a_parameter_that_was_not_given_is_not_returned() {
    let program = |branches: &str| {
        format!(
            "def deco(func=None, *, often=1):\n\
             \x20   def inner(function):\n\
             \x20       def wrapper(): return function()\n\
             \x20       return wrapper\n\
             {branches}\n\
             def caller():\n\
             \x20   @deco(often=2)\n\
             \x20   def one(): pass\n\
             \x20   @deco\n\
             \x20   def two(): pass\n\
             \x20   two()\n"
        )
    };
    let forms = [
        "    if func is not None:\n        return inner(func)\n    else:\n        return inner",
        "    if func is None:\n        return inner\n    return inner(func)",
        "    if callable(func):\n        return inner(func)\n    return inner",
        "    if not func:\n        return inner\n    return inner(func)",
    ];
    for form in forms {
        let text = program(form);
        let line = |text_of: &str| text.lines().position(|l| l.trim() == text_of).unwrap() + 1;
        let found = calls(&[("a.py", &text)]);
        let of = |at: usize| -> Vec<&str> {
            let here = format!("a.py:{at} -> ");
            found.iter().filter_map(|call| call.strip_prefix(&here)).collect()
        };
        let with_arguments = of(line("@deco(often=2)"));
        assert!(with_arguments.iter().any(|to| to.starts_with("deco.inner:2")), "{form}: {found:?}");
        assert!(!with_arguments.iter().any(|to| to.starts_with("deco.inner.wrapper")), "{form}: {found:?}");
        assert!(of(line("two()")).iter().any(|to| to.starts_with("deco.inner.wrapper:3")), "{form}: {found:?}");
    }
    // A parameter that is assigned a default counts as given afterwards.
    let filled = "def pick(maker=None):\n\
                  \x20   if maker is None: maker = first\n\
                  \x20   if maker: return maker\n\
                  \x20   return second\n\
                  def first(): pass\n\
                  def second(): pass\n\
                  pick()()\n";
    let found = calls(&[("a.py", filled)]);
    assert!(found.iter().any(|call| call.starts_with("a.py:7 -> first")), "{found:?}");
}

#[test]
fn a_method_that_only_says_it_is_left_to_others_is_abstract() {
    let text = "class Base:\n\
                \x20   def run(self):\n\
                \x20       \"\"\"Runs it.\"\"\"\n\
                \x20       raise NotImplementedError(\"later\")\n\
                \x20   def go(self):\n\
                \x20       raise NotImplementedError\n\
                \x20   def check(self):\n\
                \x20       if self.x: raise NotImplementedError()\n\
                class Real(Base):\n\
                \x20   def run(self): return 1\n\
                def use(loop: Base): loop.run()\n\
                def make():\n\
                \x20   Real()\n\
                \x20   return Base()\n";
    let found = calls(&[("a.py", text)]);
    let of = |to: &str| -> Option<f32> {
        found.iter().find_map(|call| call.strip_prefix(&format!("a.py:11 -> {to} "))?.parse().ok())
    };
    let (real, left) = (of("Real.run:10"), of("Base.run:2"));
    assert!(real > left && left.is_none_or(|sure| sure < 0.8) && real >= Some(0.8), "{found:?}");
}

#[test]
fn what_is_handed_back_is_what_the_call_passed() {
    check(
        &[(
            "a.py",
            "def same(func, other=None): return func\n\
             def first(): pass\n\
             def picked(func=first): return func\n\
             @same\n\
             def a(): pass\n\
             @same\n\
             def b(): pass\n\
             a()\n\
             same(other=a, func=b)()\n\
             picked()()\n\
             picked(b)()\n",
        )],
        &[
            "a.py:4 -> same:1 0.98",
            "a.py:6 -> same:1 0.98",
            "a.py:8 -> a:4 0.98",
            "a.py:9 -> same:1 0.98",
            "a.py:9 -> b:6 0.98",
            "a.py:10 -> picked:3 0.98",
            "a.py:10 -> first:2 0.98",
            "a.py:11 -> picked:3 0.98",
            "a.py:11 -> b:6 0.98",
        ],
    );
    // A reassigned parameter is not returned unchanged.
    check(
        &[(
            "a.py",
            "def other(): pass\n\
             def swapped(func):\n\
             \x20   func = other\n\
             \x20   return func\n\
             def made(func):\n\
             \x20   func = 1 + 2\n\
             \x20   return func\n\
             def a(): pass\n\
             swapped(a)()\n\
             made(a)()\n",
        )],
        &[
            "a.py:9 -> swapped:2 0.98",
            "a.py:9 -> a:8 0.8",
            "a.py:9 -> other:1 0.98",
            "a.py:10 -> made:5 0.98",
            "a.py:10 -> a:8 0.8",
        ],
    );
    check(
        &[(
            "a.js",
            "function same(f) { return f }\n\
             function a() {}\n\
             function b() {}\n\
             same(a)();\n\
             same(b)();\n",
        )],
        &["a.js:4 -> same:1 0.98", "a.js:4 -> a:2 0.98", "a.js:5 -> same:1 0.98", "a.js:5 -> b:3 0.98"],
    );
}

#[test]
fn a_declared_method_stands_for_as_many_as_are_too_many_to_list() {
    let called = |implementations: usize| {
        let mut text = "package a\ntype I interface{ Do() }\nfunc Use(i I) { i.Do() }\n".to_owned();
        for n in 0..implementations {
            text += &format!("type T{n} struct{{}}\nfunc (t T{n}) Do() {{}}\n");
        }
        calls(&[("a.go", &text)]).len()
    };
    // The declared method and its overrides, as long as there are at most eight.
    assert_eq!((called(1), called(7), called(8), called(9)), (2, 8, 1, 1));
}
