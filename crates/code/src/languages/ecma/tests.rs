//! Snippets of JavaScript and TypeScript, and their facts.

mod shown;

use crate::facts::{DefId, ROOT, flag};
use crate::lang::parse;
use crate::languages::{LanguageId, language};
use shown::{expr, shown};

/// Compares the rendered facts with the expected text, whose common indentation does not matter.
#[track_caller]
fn check(path: &str, text: &str, expected: &str) {
    let language = LanguageId::of(path, "").expect("an extension of one of the languages");
    let shown = shown(&parse(path, text, language));
    let margin = expected.lines().filter(|l| !l.trim().is_empty()).map(|l| l.len() - l.trim_start().len()).min();
    let expected: Vec<&str> =
        expected.trim_end().lines().skip(1).map(|l| l.get(margin.unwrap_or(0)..).unwrap_or("")).collect();
    assert!(shown.lines().collect::<Vec<_>>() == expected, "read:\n{shown}");
}

#[test]
fn functions_are_identified_by_their_position() {
    check(
        "src/a.js",
        r#"/** Adds. */
function add(a, b = zero(), ...rest) { return a; }
// Known
// as f.
const f = async x => x.y(), g = function own() { own(); };
Foo.prototype.bar = function () { this.x(); };
obj.x = function* () { yield f; yield* g(); };
later = (function () {});
run(function named() {}, () => add(1));
const made = (() => add)();
"#,
        r#"
        Function add 2-2 variadic (add/a, add/b, ...add/rest) /Adds./
        Function f 5-5 async arrow (f/x) /Known|as f./
        Function g 5-5
        Function bar 6-6 on a ?Foo
        Function x 7-7 generator on ?obj
        Function later 8-8
        Function named 9-9
        Lambda <anonymous> 9-9 arrow
        Lambda <anonymous> 10-10 arrow
        Variable made 10-10 constant
        2 add: ?zero()
        5 f: f/x.y()
        5 g: g/own()
        6 bar: this.x()
        7 x: g()
        9 <anonymous>: add(number)
        9 a.js: ?run(<named>, <<anonymous>>)
        10 a.js: <<anonymous>>()
        add/b = ?zero()
        ?Foo.prototype.bar = <bar>
        ?obj.x = <x>
        ?later = <later>
        made = <<anonymous>>()
        return add/a of add
        return f/x.y() of f
        yield f of x
        yield g()[] of x
        return add() of <anonymous>
        return add of <anonymous>
"#,
    );
}

#[test]
fn blocks_shadow_names_and_var_belongs_to_the_function() {
    check(
        "src/a.js",
        r#"const f = 1;
function outer() {
  if (f) { const f = () => 2; f(); var late = f; }
  late();
  { function f() {} f(); }
  for (let i = 0, h = f; h(); i++) h(f);
  try { f(); } catch ({ e }) { e(); }
  return f;
}
"#,
        r#"
        Variable f 1-1 constant
        Function outer 2-9
          Function f 3-3 arrow
          Function f 5-5
        3 outer: outer/f()
        4 outer: outer/late()
        5 outer: outer/f()
        6 outer: outer/h()
        6 outer: outer/h(f)
        7 outer: f()
        7 outer: outer/e()
        f = number
        outer/late = outer/f
        outer/i = number
        outer/h = f
        return number of f
        return f of outer
"#,
    );
}

#[test]
fn this_refers_to_the_object_literal() {
    check(
        "src/a.js",
        r#"const o = { a, b: c.d, m() { this.b(); }, "q-r": function () {}, arrow: () => this, get v() { return a; }, set v(x) {}, [k()]: 1, ...rest };
o.m(); o["m"](); o[i](); o[0]();
"#,
        r#"
        Function m 1-1 on {a: ?a, b: ?c.d, m: <m>, q-r: <q-r>, arrow: <arrow>, v: <v>, v: <v>, [?]: number, ...?rest}
        Function q-r 1-1 on {a: ?a, b: ?c.d, m: <m>, q-r: <q-r>, arrow: <arrow>, v: <v>, v: <v>, [?]: number, ...?rest}
        Function arrow 1-1 arrow
        Function v 1-1 getter on {a: ?a, b: ?c.d, m: <m>, q-r: <q-r>, arrow: <arrow>, v: <v>, v: <v>, [?]: number, ...?rest}
        Function v 1-1 setter (v/x) on {a: ?a, b: ?c.d, m: <m>, q-r: <q-r>, arrow: <arrow>, v: <v>, v: <v>, [?]: number, ...?rest}
        Variable o 1-1 constant
        1 m: this.b()
        1 a.js: ?k()
        2 a.js: o.m()
        2 a.js: o["m"]()
        2 a.js: o[]()
        2 a.js: o[0]()
        o = {a: ?a, b: ?c.d, m: <m>, q-r: <q-r>, arrow: <arrow>, v: <v>, v: <v>, [?]: number, ...?rest}
        return this of arrow
        return ?a of v
"#,
    );
}

#[test]
fn destructuring() {
    check(
        "src/a.js",
        r#"function f({ a, b: [c, , d = g], ...e }, [x, ...ys]) { a(c, d, e, x, ys); }
let p, q;
[p, q.r] = f();
({ p, k: q["s"] } = f());
for (const [k, v] of Object.entries(q)) v();
for (p in q) p();
q.n ||= f;
"#,
        r#"
        Function f 1-1 (f/{}, f/[])
        Variable p 2-2
        Variable q 2-2
        1 f: f/a(f/c, f/d, f/e, f/x, f/ys)
        3 a.js: f()
        4 a.js: f()
        5 a.js: ?Object.entries(q)
        5 a.js: v()
        6 a.js: p()
        f/a = f/{}.a
        f/c = f/{}.b[0]
        f/d = (f/{}.b[2] | ?g)
        f/e = f/{}
        f/x = f/[][0]
        f/ys = list f/[][]
        p = f()[0]
        q.r = f()[1]
        p = f().p
        q["s"] = f().k
        k = ?Object.entries()[][0]
        v = ?Object.entries()[][1]
        p = keys q
        q.n = f
"#,
    );
}

#[test]
fn classes() {
    check(
        "src/a.js",
        r#"class A extends B.C {
  #p = 1; static s = add(); handler = () => { this.go(); };
  constructor(x) { super(x); this.q = new Map(); super.go(); }
  static async make() { return new this(); }
  get v() { return this.#p; }
  set v(x) { v(); }
  *gen() { yield 1; }
  static { init(); }
}
const D = class E extends A { again() { return E; } };
new (class {})();
function add() {}
"#,
        r#"
        Class A 1-9 Extends ?B.C
          Field #p 2-2 Private
          Field s 2-2 static
          Method handler 2-2 arrow
          Method constructor 3-3 constructor (constructor/x)
          Method make 4-4 async static
          Method v 5-5 getter
          Method v 6-6 setter (v/x)
          Method gen 7-7 generator
        Class D 10-10 Extends A
          Method again 10-10
        Class <anonymous> 11-11
        Function add 12-12
        2 A: add()
        2 handler: this.go()
        3 constructor: super(constructor/x)
        3 constructor: New ?Map()
        3 constructor: super.go()
        4 make: New this()
        6 v: ?v()
        8 A: ?init()
        11 a.js: New <<anonymous>>()
        this.#p = number
        A/s = add()
        this.q = ?Map()
        A/v = <v>
        return this() of make
        return this.#p of v
        yield number of gen
        return E of again
"#,
    );
}

#[test]
fn modules() {
    check(
        "src/a.ts",
        r#"import d, { a as b, type T, default as e } from "./m";
import * as ns from "./ns";
import type { U } from "u";
import "./side";
import eq = require("eq");
export { b as bb, late };
export * from "./all";
export * as star from "./star";
export { x as y, default } from "./z";
export type { V } from "./v";
function late() {}
/** Doc. */
export const f = () => late(), v = d;
export const { g, h: [i] } = ns;
export default async function () { await import("./dyn"); }
"#,
        r#"
        Function late 11-11 exported
        Function f 13-13 exported arrow /Doc./
        Variable v 13-13 exported constant
        Variable g 14-14 exported constant
        Variable i 14-14 exported constant
        Function default 15-15 async exported
        import "./m" default as d
        import "./m" a as b
        import "./m" T as T types
        import "./m" default as e
        import "./ns" Module as ns
        import "u" U as U types
        import "./side" Nothing
        import "eq" Module as eq
        import "./all" All gives *
        import "./star" Module gives star
        import "./z" x gives y
        import "./z" default gives default
        import "./v" V gives V types
        import "./dyn" Module
        export bb = b
        export late = late
        export f = f
        export v = v
        export g = g
        export i = i
        export default = <default>
        13 f: late()
        v = d
        g = ns.g
        i = ns.h[0]
        return late() of f
"#,
    );
}

#[test]
fn commonjs() {
    check(
        "src/a.js",
        r#"const fs = require("fs"), { join } = require(`path`);
const inner = () => {};
module.exports = { inner, other: helper, run() {} };
module.exports.more = function () { return exports.more(); };
exports["text"] = join;
Object.defineProperty(exports, "lazy", { enumerable: true, get: function () { return fs.x; } });
function helper() { require(name); }
(function (exports) { exports.not = 1; })({});
"#,
        r#"
        Function inner 2-2 exported arrow
        Function run 3-3 exported on {inner: inner, other: helper, run: <run>}
        Function more 4-4 exported on exports
        Function lazy 6-6 exported getter on exports
        Function helper 7-7 exported
        Lambda <anonymous> 8-8 (<anonymous>/exports)
        import "fs" Module
        import "path" Module
        export = = {inner: inner, other: helper, run: <run>}
        export inner = inner
        export other = helper
        export run = <run>
        export more = <more>
        export text = join
        export lazy = <lazy>
        1 a.js: ?require("fs")
        1 a.js: ?require(template)
        4 more: exports.more()
        6 a.js: ?Object.defineProperty(exports, "lazy", {enumerable: bool, get: <lazy>})
        7 helper: ?require(?name)
        8 a.js: <<anonymous>>({})
        fs = import "fs"
        join = import "path".join
        exports = {}
        exports = {inner: inner, other: helper, run: <run>}
        exports.more = <more>
        exports["text"] = join
        exports.lazy = <lazy>
        <anonymous>/exports.not = number
        return exports.more() of more
        return fs.x of lazy
"#,
    );
}

#[test]
fn whole_exports() {
    check(
        "src/a.js",
        r#"module.exports = exports = function () {};
"#,
        r#"
        Function exports 1-1 exported
        export = = <exports>
        exports = {}
        exports = <exports>
        exports = <exports>
"#,
    );
}

#[test]
fn export_equals() {
    check(
        "src/a.ts",
        r#"class K {}
export = { K, make: () => new K() };
"#,
        r#"
        Class K 1-1 exported
        Function make 2-2 exported arrow
        export = = {K: K, make: <make>}
        export K = K
        export make = <make>
        2 make: New K()
        return K() of make
"#,
    );
}

#[test]
fn interfaces_types_and_enums() {
    check(
        "src/a.ts",
        r#"export interface I<T> extends ns.K, L<string> { m(a: T): T; p: U | null; readonly q?: () => I<T>; (x: U): T; [k: string]: U }
export type Al<K> = { a: U; f(): K } & Z;
type Cond<X> = X extends infer Y ? Y : typeof b;
const enum E { A = 1, B = b(), "c-d" }
let x: [I<E>, ...U[]] | Map<string, Partial<U>> = y as unknown as Z;
let w: import("./types").Foo;
"#,
        r#"
        Interface I 1-1 exported -> => I/T<?U> Extends ?ns.K Extends ?L<_>
          Method m 1-1 abstract exported declared (m/a:I/T) -> I/T
          Field p 1-1 exported declared -> ?U
          Field q 1-1 exported declared constant -> => I<I/T>
        Type Al 2-2 exported -> ?Z
          Field a 2-2 exported declared -> ?U
          Method f 2-2 abstract exported declared -> Al/K
        Type Cond 3-3
        Enum E 4-4
          Field A 4-4 static constant
          Field B 4-4 static constant
          Field c-d 4-4 static constant
        Variable x 5-5 -> (?()<I<E> | ?[]<?U>> | ?{}<_ | ?U>)
        Variable w 6-6 -> import "./types".Foo
        import "./types" Module types
        export I = <I>
        export Al = <Al>
        4 E: ?b()
        E/A = number
        E/B = ?b()
        x:(?()<I<E> | ?[]<?U>> | ?{}<_ | ?U>) = (?y | a ?Z)
"#,
    );
}

#[test]
fn typed_classes() {
    check(
        "src/a.ts",
        r#"@Component({ a: d })
export abstract class Foo<T extends U> extends Base<T> implements I, J<T> {
  private readonly map = new Map<string, Foo<T>>();
  static count: number = b();
  @Input() name?: string;
  constructor(private http: ns.Http, @Inject(K) readonly t: T, plain?: U) { super(); }
  /** Over. */
  over(x: string): void;
  @deco() protected async over(x: any): Promise<T[]> { return this.map.get(x)!.over(<U>x); }
  abstract abs(): this;
  list(this: Foo<T>, f: (a: U) => T): Array<T> { return f(b); }
}
"#,
        r#"
        Class Foo 1-12 abstract exported Extends ?Base<Foo/T> Implements ?I Implements ?J<Foo/T>
          Field map 3-3 constant Private
          Field count 4-4 static exported
          Field name 5-5 exported
          Method constructor 6-6 exported constructor (constructor/http:?ns.Http, constructor/t:Foo/T, constructor/plain:?U)
          Field http 6-6 Private -> ?ns.Http
          Field t 6-6 exported -> Foo/T
          Method over 8-8 exported declared (over/x) /Over./
          Method over 9-9 async Protected (over/x) -> ?Promise<?[]<Foo/T>>
          Method abs 10-10 abstract exported declared -> This
          Method list 11-11 exported (list/f:=> Foo/T<?U>) -> ?[]<Foo/T> on a Foo<Foo/T>
        export Foo = <Foo>
        1 a.ts: ?Component({a: ?d})
        1 a.ts: Decorator ?Component()(<Foo>)
        3 Foo: New ?Map()
        4 Foo: ?b()
        5 Foo: ?Input()
        5 Foo: Decorator ?Input()(<name>)
        6 constructor: ?Inject(?K)
        6 constructor: Decorator ?Inject()(_)
        6 constructor: super()
        9 over: this.map.get(over/x)
        9 over: this.map.get().over((over/x | a ?U))
        9 Foo: ?deco()
        9 Foo: Decorator ?deco()(<over>)
        11 list: list/f(?b)
        this.map = (?Map() | a ?{}<_ | Foo<Foo/T>>)
        Foo/count = ?b()
        this.http = constructor/http
        this.t = constructor/t
        Foo/over = <over>
        return this.map.get().over() of over
        return list/f() of list
"#,
    );
}

#[test]
fn namespaces_and_declarations() {
    check(
        "src/a.ts",
        r#"export namespace N.M { export function inner(): void {} const z = inner(); }
namespace P { export const q = N.M.inner(); }
declare module "foo" { export function dm(): U; class C { m(): U } }
declare global { interface Window { w: U } }
export declare function decl(x: U): asserts x is U;
function ov(a: string): void;
function ov(a: any) {}
import Ali = N.M;
"#,
        r#"
        Module N 1-1 exported
          Module M 1-1 exported
            Function inner 1-1 exported
            Variable z 1-1 constant
        Module P 2-2
          Variable q 2-2 exported constant
        Module foo 3-3 declared
          Function dm 3-3 exported declared -> ?U
          Class C 3-3 declared
            Method m 3-3 declared -> ?U
        Interface Window 4-4 declared
          Field w 4-4 declared -> ?U
        Function decl 5-5 exported declared (decl/x:?U)
        Function ov 6-6 declared (ov/a)
        Function ov 7-7 (ov/a)
        export N = <N>
        export decl = <decl>
        1 M: M/inner()
        2 P: N.M.inner()
        M/z = M/inner()
        P/q = N.M.inner()
        ov = <ov>
        Ali = N.M
"#,
    );
}

#[test]
fn values() {
    check(
        "src/a.js",
        r#"const v = a || b ? c ?? d : (e, f);
const t = tag`x ${v} y`, s = `a ${v()}`;
const w = v?.x?.(1)["k"], z = await v(...w);
list.push(v, ...w); set.add(t); map.set(k, s);
const bound = v.bind(this);
x = "a" + f() + g();
function all() { return () => v.apply(this, arguments); }
"#,
        r#"
        Variable v 1-1 constant
        Variable t 2-2 constant
        Variable s 2-2 constant
        Variable w 3-3 constant
        Variable z 3-3 constant
        Variable bound 5-5 constant
        Function all 7-7 (...all/arguments)
          Lambda <anonymous> 7-7 arrow
        2 a.js: ?tag(template, v)
        2 a.js: v()
        3 a.js: v.x(number)
        3 a.js: v(...w)
        4 a.js: ?list.push(v, ...w)
        4 a.js: ?set.add(t)
        4 a.js: ?map.set(?k, s)
        5 a.js: v.bind(this)
        6 a.js: ?f()
        6 a.js: ?g()
        7 <anonymous>: v.apply(this, all/arguments)
        v = ((?c | ?d) | ?f)
        t = ?tag()
        s = template
        w = v.x()["k"]
        z = await v()
        ?list[] = v
        ?list[] = w[]
        ?set[] = t
        ?map[] = s
        bound = (v.bind() | bound v)
        return v.apply() of <anonymous>
        return <<anonymous>> of all
"#,
    );
}

#[test]
fn jsx() {
    check(
        "src/a.tsx",
        r#"const App = ({ go }: Props) => <ui.Box onClick={() => go()} {...rest} on><Item<string> key="a">{go}</Item><div title={go()} /></ui.Box>;
"#,
        r#"
        Function App 1-1 arrow (App/{}:?Props)
          Lambda <anonymous> 1-1 arrow
        1 <anonymous>: App/go()
        1 App: ?Item({key: "a", children: App/go})
        1 App: App/go()
        1 App: ?ui.Box({onClick: <<anonymous>>, ...?rest, on: bool})
        App/go = App/{}.go
        return App/go() of <anonymous>
"#,
    );
}

#[test]
fn tests() {
    check(
        "src/a.js",
        r#"describe("sums", () => {
  beforeEach(() => reset());
  it.only("adds", async function () { add(1); });
  it.each([1])(`takes ${n}`, (n) => add(n));
  test.skip("", () => {});
});
other("name", () => {});
"#,
        r#"
        Function sums 1-6 test arrow
          Lambda <anonymous> 2-2 arrow
          Function adds 3-3 async test
          Function takes ${n} 4-4 test arrow (takes ${n}/n)
          Function <anonymous> 5-5 test arrow
        Lambda <anonymous> 7-7 arrow
        2 <anonymous>: ?reset()
        2 sums: ?beforeEach(<<anonymous>>)
        3 adds: ?add(number)
        3 sums: ?it.only("adds", <adds>)
        4 sums: ?it.each([number])
        4 takes ${n}: ?add(takes ${n}/n)
        4 sums: ?it.each()(template, <takes ${n}>)
        5 sums: ?test.skip("", <<anonymous>>)
        1 a.js: ?describe("sums", <sums>)
        7 a.js: ?other("name", <<anonymous>>)
        return ?reset() of <anonymous>
        return ?add() of takes ${n}
"#,
    );
}

#[test]
fn broken_text_is_read_up_to_the_error() {
    check(
        "src/a.ts",
        r#"class A { m() { this.x(; } n() { ok(); }
function f( { g();
export const h = () => i();
"#,
        r#"
        Class A 1-3
          Method m 1-1
          Method n 1-1
          Field function 2-2
          Method export 3-3 arrow
        1 m: this.x()
        1 n: ?ok()
        3 export: ?i()
        return ?i() of export
        fault 1: `)` is missing
"#,
    );
}

#[test]
fn comments() {
    check(
        "src/a.ts",
        r#"/**
 * About the file.
 */

/* no doc */
function a() {}
/** Doc of b,
 *  with src/** in it. */
// eslint-disable-next-line
export async function b() {}
foo(); // trailing
function c() {}
// far

function d() {}
/** Of the first. */
const e = 1, g = 2;
"#,
        r#"
        Function a 6-6
        Function b 10-10 async exported /Doc of b,|with src/** in it./
        Function c 12-12
        Function d 15-15
        Variable e 17-17 constant /Of the first./
        Variable g 17-17 constant
        export b = <b>
        11 a.ts: ?foo()
        e = number
        g = number
"#,
    );
}

#[test]
fn names_that_are_read_but_not_called_are_uses() {
    let text = "let t: A.B<C>; class D extends E {}; f(g, h.i, { j, k: l }); m(); if (n && o.p) q = r[s];";
    let facts = parse("a.ts", text, language("typescript"));
    let used: Vec<String> = facts.uses.iter().map(|u| expr(&facts, u.expr)).collect();
    assert_eq!(used.join(" "), "?C ?A.B ?g ?h.i ?j ?l ?n ?o.p ?r ?s");
}

#[test]
fn signatures_are_one_line_without_the_body() {
    let text = "@dec() export class A<T>\n  extends B { @x() async m(a,\n    b: T): Promise<T> { } f = 1; }\n\
                export const g = async (x: number) => x, h = [\n1];\nit(\"t\", () => {});";
    let facts = parse("a.ts", text, language("typescript"));
    let shown: Vec<&str> = facts.defs.iter().skip(1).map(|d| &*d.signature).collect();
    let expected = [
        "export class A<T> extends B",
        "async m(a, b: T): Promise<T>",
        "f = 1",
        "g = async (x: number)",
        "h",
        "it(\"t\", ()",
    ];
    assert_eq!(shown, expected);
    let a = &facts.defs[DefId::new(1)].span;
    assert_eq!((a.start, a.line, a.end_line), (0, 1, 3));
    let m = &facts.defs[DefId::new(2)].span;
    assert_eq!(text.get(m.start as usize..m.end as usize).map(|t| t.starts_with("@x()")), Some(true));
}

#[test]
fn languages_of_files_are_detected_by_name_and_first_line() {
    let flags = |path: &str, text: &str| parse(path, text, language("typescript")).defs[ROOT].flags;
    assert_eq!(flags("src/a.test.ts", ""), flag::TEST);
    assert_eq!(flags("src/__tests__/a.ts", ""), flag::TEST);
    assert_eq!(flags("src/a.ts", "#!/usr/bin/env node\nrun();"), flag::ENTRY);
    assert_eq!(flags("src/a.d.ts", ""), flag::DECLARED);
    assert_eq!(flags("src/latest.ts", ""), 0);
    let facts = parse("a.js", "/** What it is for. */\n\nrun();", language("javascript"));
    assert_eq!(facts.defs[ROOT].doc.as_deref(), Some("What it is for."));
}

#[test]
fn deep_and_long_texts_do_not_crash() {
    let nested = |open: &str, inner: &str, close: &str| {
        let text = format!("{}{inner}{}", open.repeat(5_000), close.repeat(5_000));
        for language in [language("javascript"), language("typescript"), language("tsx")] {
            let facts = parse("a.ts", &text, language);
            assert!(!facts.faults.is_empty(), "{open}");
        }
    };
    nested("(", "a", ")");
    nested("[", "a", "]");
    nested("f(", "a", ")");
    nested("{", "a()", "}");
    nested("function f() {", "a()", "}");
    nested("() => ", "a", "");
    nested("class A { m() {", "a()", "}}");
    nested("<A>", "a", "</A>");
    nested("let [", "a", "] = b");
    nested("!", "a", "");
    // A long chain is not deeply nested.
    let sum = format!("x = f(){};", " + f()".repeat(5_000));
    let chain = format!("if (f()) g(); {}", "else if (f()) g();".repeat(2_000));
    let union = format!("let x: A{};", " | A".repeat(5_000));
    for (text, calls) in [(sum, 5_001), (chain, 4_002), (union, 0)] {
        let facts = parse("a.ts", &text, language("typescript"));
        assert_eq!((facts.calls.len(), facts.faults.len()), (calls, 0));
    }
}

#[test]
fn any_prefix_of_a_text_is_read() {
    let text = "import {a as b} from 'x'; export class A<T> extends B { #p = () => this.q(`${a}`); get x(): T[] { \
                return <T>a } } const {c, d: [e = 1]} = {f() {}, ...g}; for (const x of y) z?.[x]!(new Q); ü('ß')";
    for end in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        for language in [language("javascript"), language("typescript"), language("tsx")] {
            parse("a.ts", &text[..end], language);
            parse("a.ts", &text[end..], language);
        }
    }
}
