//! Compares the hand-written parser with tree-sitter, and tests which texts it rejects.

use super::parse;
use crate::lang::descent::agreement::{MutationTest, left, of_windows, same};
use crate::languages::{LanguageId, SourceFile, ecma, language};

/// Syntax of both languages, tested statement by statement and all together.
const SCRIPT: &[&str] = &[
    "// a\rfoo()\r// b",
    "for (let i = 0, j = 1; i < 2; i++, j--) { x(i); }",
    "for (i = 0; ; ) y();",
    "for (;;) {}",
    "for (const a of b()) c(a);",
    "for (const [k, v] of Object.entries(x)) { f(k)(v) }",
    "async function f() { for await (var [a] of b) { await a() } }",
    "for (k in o) z(k);",
    "for (var x in a, b) ;",
    "for (const { a = 1 } of b) a();",
    "for (x.y of z) w();",
    "a, b(), c;",
    "if (a) b(); else if (c) d(); else { e() }",
    "if (a) if (b) c(); else d();",
    "do { x() } while (y())",
    "while (x()) y()",
    "switch (a()) { case 1: case f(): b(); break; default: c() }",
    "try { a() } catch { b() } finally { c() }",
    "try { a() } catch ({ m, n: [o] }) { m(o) }",
    "try { a() } catch (e) { throw new Error(`a${e.b()}c${`d${e}`}`) }",
    "lab: for (;;) { if (x) break lab; else continue lab; }",
    "const f = async (a, { b, c: d = 1, ...e }, [g, , h] = [], ...r) => a(b, d, e, g, h, r)",
    "const g = async x => { await x(); return await (y) }",
    "const h = x => y => ({ x, y }), i = () => {}, j = (a, b) => a || b",
    "x ? y() : z()",
    "const c = a ? (b) : (c, d)",
    "const t = a ? b => c : (d)",
    "var a = function* n() { yield* q(); yield; const x = yield r; }",
    "class A extends (B) { static #x = 1; y; 'z' = 2; [k]() {} get p() { return this.#x } static async *gen(a = 1) {} }",
    "class B extends mixin(C, D) { constructor() { super(); super.m(); this.x = () => this } set q(v) { v() } }",
    "class C extends a.b { static get r() { return 2 } async = 3; get; static; set() {} static { s() } static async() {} }",
    "const K = class L { m() { new L } }, M = class {}",
    "o = { a, b: 1, c() {}, get d() { return 1 }, async *e() {}, [f()]: 2, 'g': 3, 4: 5, ...h, async() {}, get: x, set, if: 1 }",
    "({ a, b: [c] = d, ...e } = f());",
    "[a, , b.c = 1, ...d] = e();",
    "a = b = c; a.b.c = function () { return this.d }; a['x'] = y => y;",
    "a ||= b; c += d(); e ??= f; g &&= h; i >>>= 1; j **= 2",
    "x = a ?? (b || c) && d | e ^ f & g == h < i << j + k * l ** m ** n in o instanceof p",
    "x = typeof a, void 0, !b(), delete c.d, -e, +f, ~g; i++; --j",
    "tag`a${b()}`; a.b`c`; `plain`; `\\`${'}'}\\${x}`",
    "a?.b?.[c]?.(d)?.e()",
    "new A; new A(); new a.b.C(d, ...e); new (x())(); new A().b(); new a[b]()",
    "const r = /re[/\\]]x\\//g.test(a) / b / c, s = a++ / 2, t = /=x/.exec(y)",
    "import('x').then(y => y.default()); import.meta.url; function F() { return new.target }",
    "import a from 'a'; import * as b from \"b\"; import c, { d, e as f, default as g } from 'c'; import 'd'",
    "import x from './x.json' with { type: 'json' };",
    "export * from 'a'; export * as b from 'b'; export { c, d as e, default as q } from 'c'",
    "export { f, g as default }; export const h = 1, i = () => h; export function j() {} export class K {}",
    "export default function () { a() }",
    "export default function named() { named() }",
    "export default class { m() {} }",
    "export default class Named extends B {}",
    "export default async (a) => a();",
    "export default { a() {}, b };",
    "export async function* k() {} export let [l, { m }] = n(), o",
    "const { a, b: { c = 2 } } = require('x'), d = require('y').e; d(a, c)",
    "module.exports = { f, g() {} }; exports.h = function i() {}; module.exports.j = () => {}",
    "Object.defineProperty(exports, 'k', { get: function () { return l } }); A.prototype.b = function () { this.c() }",
    "/** Says what f does. */\nfunction f(a /* first */, b) { // docs\n  return a(b) // more\n}\n\n// of g\n// and more\nconst g = 1;",
    "describe('a', () => { it.only(`b`, async function () { expect(c()).toBe(1) }); test.each([1])('d', d => d()) })",
    "(function () { 'use strict'; return arguments.length })();",
    "!function (a) { a() }(b), (() => {})()",
    "a\n  .b()\n  .c(d)\n  [e]\nf\n++g\nreturn_\n",
    "var let_ = 1, of = 2, from, as, get, set, async, type, declare; async(); type(of); get.set",
    "async\nfunction x() {}",
    "function f() { return\n a() }",
    "function f() { if (a) return; else return b\n}",
    "var a = b\n/c/d",
    "const größe = 'ä', $ = _ => _, 名 = 1; 名.$()",
    "x = 1_000 + .5 + 1e-3 + 0xFF + 0b1 + 10n + 1..toString() + 08",
    "debugger; ;;",
    "x = a\n? b()\n: c()",
    "x = function () {} + function g() {}",
    "if (a) { } else b\nc",
    "a = { 'b'() { return 1 }, 2() {}, async c() {}, *d() {}, get [e]() {}, async *[f]() {} }",
    "x = (a, b), y = (c)(d), z = (e => e)(f), w = ((g))",
    "x = [a, ...b, , c], y = [], z = [,]",
    "x = y.class.new.default.if()",
    "const a = () => ({}).b, c = () => [d], e = async () => await f",
    "f(a, function () { g() }, () => h, { i() {} }, ...j,)",
    "while (a) if (b) c(); else break",
    "new Map([[a, () => b]]).get(a)()",
];

/// Syntax of TypeScript only.
const TYPED: &[&str] = &[
    "function f<T extends A = B, U>(this: X, a: T, b?: string, c: number = g(), ...r: any[]): a is T { h(a) }",
    "function g(x: any): asserts x is Foo.Bar<T>;\nfunction g(x: unknown): asserts x {}",
    "function f2(this: X): this is Y { return this }",
    "declare function h(): void\nexport declare const z: unique symbol, w: typeof import('x').y;",
    "abstract class C<T> extends B<T> implements I, J<K> { private readonly a: T = 1; static b?: x; c!: y; declare d: z; abstract e(): void; protected abstract f: T; }",
    "class D { constructor(private readonly p: P, public q = 1, @Inject(T) r: R, readonly s?: S, ...t: U[]) { super() } }",
    "class E { @Dec() m<T>(): this { return this } @A @B.c(d) x: T; get y(): T { return 1 } set z(v: T) {} [k: string]: any; }",
    "class F { override g() {} ov(a: string): void; ov(a: any) {} static readonly [Symbol.iterator] = 1; private static async *h() {} }",
    "abstract class JJ { abstract get kk(): string; private abstract ll(): void; public abstract readonly mm: A }",
    "class G { constructor(); constructor(a?: A) {} private b = () => this.c(); public async c(): Promise<void> {} static = 1; readonly; private }",
    "interface I<T> extends J, K.L<M> { a: T; readonly b?: string; c(x: T): void; d?(): void; new (x: T): I; (x: T): N; [k: string]: O }",
    "interface K { get e(): T; set e(v: T); get: a; set(): b; readonly: c; 'd-e': f, 1: g; [Symbol.h](): i }",
    "type A = B & { a: C; d(): E } | D[] | [a: E, b?: F, ...c: G[]] | I['x'] | J['a'][number][];",
    "type M = { readonly [K in keyof T as U<K>]?: V[K] }; type M2 = { -readonly [K in T]-?: V }; type M3 = { [K in T]: () => void }",
    "type Co = A extends (infer B)[] ? C<B> : D extends E ? F : G;",
    "type T1 = `a${B}c` | 'x' | -1 | true | null | undefined | void | never | unknown | symbol | object | any;",
    "type T2 = import('a').B; type T3 = typeof a.b | typeof this.x | (A) | A.B.C<D> | this | keyof typeof e;",
    "type F1 = (a: A, ...b: B[]) => C; type F2 = new (a: A) => B; type F3 = abstract new () => O; type F4 = <T>(x: T) => T; type F5 = (a, b?: c) => void",
    "type F6 = ({ a, b }: C, [d]: E) => (f: F) => G; type F7 = (A | B)[]; type F8 = ((a: A) => B) | C; type F9 = () => asserts a is B",
    "type O1 = [A?, ...B[]]; type O2 = []; type O3 = readonly A[]; type U = | A | B;",
    "enum E1 { A, B = 1, 'c' = f(), D = A | B }\nconst enum F1 { A }\ndeclare enum G1 {}",
    "namespace N.M { export const a = 1; export function b() { a } }\nnamespace O { a() }",
    "declare module 'x' { export default y; export function z(): void }\ndeclare module CC.DD { }\nmodule Q { const a = 1 }",
    "declare global { interface Window { a: b } }",
    "declare let aa: any; declare class BB { a(): void; constructor(x: y); b: c } declare const enum FF { A = 'a' }",
    "declare var foo: { bar: string, baz(): void; (a): b; new(c): d };",
    "import type { A, B as C } from 'a'; import D, { type E, F } from 'b'; import type X1 from 'x'; import type * as X2 from 'y'",
    "import H = require('h'); import I = J.K; export import L = M.N; import type from 'type'; type()",
    "export type { X } from 'y'; export { type Y, Z }",
    "export = Z;",
    "export = { a: 1, b() {} }",
    "export default abstract class K2 { a() {} }",
    "export default interface Baz { a: B }",
    "@A @B.c() export class L1 { }\n@X() class L2 {}\nexport @Y class L3 {}\n@Z abstract class L4 {}",
    "export abstract class Bar {} export type Q2 = A; export interface R {} export enum S {} export namespace NN { a } export declare namespace OO {}",
    "const x = a as B as const, y = <T>z(), w = b!.c!(), u = a satisfies B, v = c as { a: b }[];",
    "x = f<T>(y), z = new Map<K, V>(), v = new Foo<T>, u = a.b<C<D>>(e)(g), t = f<{ a: B }>(c);",
    "t = async <T,>(a: T): Promise<T> => a(); s = (a: T, b?): R => ({}); r = <T>(x: T) => x; q = async <T>(x) => x",
    "let r2 = a ? (b) : c, r3 = a ? (b): c => d : e, r4 = a ? (b, c) => d : e, r5 = a ? { b } : (c) => d;",
    "let q2!: T, { a: b = 1, ...c }: X = d, [e]: F[] = g, h: (a: string) => void = i;",
    "(g as any) = 1; (a as B).c(); a!.b = d; for (const x of <any>y) x(); for (let i in x as any) i();",
    "let o = { async a<T>(x: T): Promise<void> {}, 'b'() {}, get c(): T { return 1 }, d: <U>(e: U) => e };",
    "let fn = function <T>(a: T) {}, cl = class X<T> extends Y<T> { z(): T { return this } };",
    "let z1 = a < b, z2 = a > b, z3 = a >> b, z4 = a >>> b, z5 = a >= b, z6 = f<A<B>>(c), z8 = a < (b > c);",
    "if (a < b && c > d) e(a < b, c); for (let i = 0; i < n; i++) f(i << 1 < 2);",
    "try { } catch (e: unknown) { f(e) }",
    "let a1: A.B<C>['d'], a2: typeof b[number], a3: (typeof f)[number], a4: string[][], a5: Map<string, Set<A>>;",
    "type Fn = { (a: A): B }; type Ctor = { new (): A }; let x1: { a?: B; readonly c: D }",
    "function over(a: string): void\nfunction over(a: any) {}\nexport function more(): void; export function more(a?) {}",
    "const enumLike = { A: 'a', B: 'b' } as const; type V2 = (typeof enumLike)[keyof typeof enumLike]",
    "var type = 1, declare = 2, module = 3, namespace = 4, abstract = 5, of = 6; type = declare; module.a()",
    "export const fn = ({ a, b }: { a: A; b?: B }, c = d): e is F => g(a, b, c)",
    "let a6: A extends B ? C : D = e, a7: unique symbol, a8: 'x' | 'y' = 'x'",
    "class H<T> extends I<T>(J) {}",
    "const f9 = (a: A) => (b: B): C => d(a, b), g9 = (): void => {}",
];

const ELEMENTS: &[&str] = &[
    "const a = <div className=\"x\" {...p} b={c()} d>text {e()} it's <F.G h /> <></> {/* c */} {...kids}</div>;",
    "const b = <F x={<a/>} y:z=\"1\" data-q='a\"b'>&nbsp; // no comment {f(`</F>`)} /* none */</F>;",
    "const e = <a.b.c>x</a.b.c>, f = <x-y aria-label=\"a\n b\"/>, h = cond && <Div/>",
    "function G({ a }) { return (\n  <A>\n    {a.map(b => <B key={b} on={() => { c(b) }}>{b}</B>)}\n    {d ? <E /> : null}\n  </A>\n) }",
    "x = a < b, y = <A>{b < c}</A>",
];

const TYPED_ELEMENTS: &[&str] =
    &["const c = <T,>(x: T) => x, d = <T extends U>(x: T) => x;", "const b = <F<T> x={y as Z}>{f<T>(g)}</F>;"];

/// All statements of a language.
fn statements(language: LanguageId) -> Vec<&'static str> {
    let parts: &[&[&str]] = match language.name() {
        "javascript" => &[SCRIPT, ELEMENTS],
        "typescript" => &[SCRIPT, TYPED],
        _ => &[SCRIPT, TYPED, ELEMENTS, TYPED_ELEMENTS],
    };
    // `<T>x` is an element where JSX is allowed.
    let fits =
        |text: &&str| language.name() != "tsx" || !["<T>z", "<any>y", "<T>(x"].iter().any(|part| text.contains(part));
    parts.concat().into_iter().filter(fits).collect()
}

fn languages() -> [LanguageId; 3] {
    [language("javascript"), language("typescript"), language("tsx")]
}

#[test]
fn facts_are_those_of_tree_sitter() {
    for language in languages() {
        let all = statements(language);
        same(&all, language);
        same(all.iter().map(|text| of_windows(format!("/** First. */\n\n{text}\n"))), language);
        same([all.join("\n;").as_str(), "", "\n\n/* nothing */ // at all\n"], language);
        same(["#!/usr/bin/env node\n/** Docs. */\n\n// more\nimport 'a'"], language);
    }
}

#[test]
fn uncommon_texts_are_rejected() {
    let deep = format!("x = {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    let arrows = format!("x = {}1", "a => ".repeat(5_000));
    let guesses = format!("x = {}1{}", "(a = ".repeat(100), ")".repeat(100));
    let not = format!("x = {}y", "!".repeat(5_000));
    let powers = format!("x = {}y", "y ** ".repeat(5_000));
    let chain = format!("{}y", "x = ".repeat(5_000));
    let blocks = "{".repeat(5_000);
    let elements = "<a>".repeat(5_000);
    let classes = "class extends ".repeat(100_000);
    let exports = "export @a ".repeat(100_000);
    let texts = [
        "x = (1,",
        "x = 'abc\n",
        "x = `abc",
        "x = `${",
        "x = `${a",
        "x = /abc",
        "x = /[/",
        "/* abc",
        "x = 1 +",
        "x = )",
        "a b",
        "if (a",
        "if a { }",
        "for (;;",
        "for (const a b) {}",
        "function",
        "function () {}",
        "class {}",
        "export class {}",
        "if (a) function () {}",
        "function f(",
        "function f() {",
        "function f(a b) {}",
        "class",
        "class A {",
        "class A { get x = 1 }",
        "class A { a b }",
        "export",
        "export a",
        "export default",
        "import",
        "import a",
        "import { a from 'a'",
        "import a from b",
        "x = { a b }",
        "x = [a b]",
        "f(a b)",
        "x = a ? b",
        "a ? b;",
        "new",
        "a.",
        "a?.",
        "a => ",
        "1 = 2",
        "a + b = c",
        "with (a) { b }",
        "let = 1",
        "x = 1a",
        "x = \\u0061",
        "a <!-- b",
        "@a b",
        "#a in b",
        "x = 3 @ 4",
        "x\0y",
        "\0",
        "type A = B",
        "interface A {}",
        "declare var a",
        "let a: b",
        "a as b",
        "f<T>(x)",
        "x = <a>",
        "x = <a></a",
        "x = <a b=></a>",
        "x = <a {b}/>{",
        &deep,
        &arrows,
        &guesses,
        &not,
        &powers,
        &chain,
        &blocks,
        &elements,
        &classes,
        &exports,
        "import type {X} from './x'",
        "import defer * as ns from 'x'",
        "// a\u{2028}b",
        "export @a export class X {}",
    ];
    // Without types, this is a comparison.
    left(texts.into_iter().filter(|text| *text != "f<T>(x)"), language("javascript"));
    let declared = "declare ".repeat(100_000);
    // Too deep for a type, but not too deep if it is read as a comparison.
    let compared = format!("x = {}f<T>(y){}", "[".repeat(116), "]".repeat(116));
    let typed = [
        &declared,
        &compared,
        "type K = keyof\n  T;",
        "type A =",
        "type A = B |",
        "type A = { a b }",
        "type A = [",
        "type A<",
        "type A<> = B<",
        "interface A",
        "interface A { a",
        "enum A",
        "enum A { a b }",
        "declare a",
        "namespace A {",
        "let a: = b",
        "x = a as",
        "x = a<b>;",
        "class A { private }}",
        "function f(a?: b c) {}",
        "abstract class A { abstract b() {} }",
        "x = <T>",
    ];
    left(typed, language("typescript"));
}

/// Common code that tree-sitter's grammars misread.
#[test]
fn some_texts_are_read_better_than_by_tree_sitter() {
    let calls = |text: &str, language| {
        let facts = ecma::read(SourceFile { path: "a.ts", text, language }, &parse(text, language).expect("plain"));
        let name = |expr| match facts.expr(expr) {
            crate::facts::SourceExpr::Free(name) => facts.name(name).to_owned(),
            other => format!("{other:?}"),
        };
        assert!(facts.faults.is_empty());
        facts.calls.iter().map(|call| name(call.callee)).collect::<Vec<_>>()
    };
    assert_eq!(calls("const a = await get<T>(b)", language("typescript")), ["get"]);
    assert_eq!(calls("x = a && !check!(b)", language("typescript")), ["check"]);
    assert_eq!(calls("await (async () => { f() })()", language("javascript")).len(), 2);
    assert_eq!(calls("type A<in out T> = import('a').B<T>; f()", language("typescript")), ["f"]);
    assert_eq!(calls("await using a = open(); using b = close()", language("typescript")), ["open", "close"]);
    assert_eq!(calls("export type * from 'q'; f()", language("typescript")), ["f"]);
}

#[test]
fn damage_is_noticed() {
    let all = languages().map(statements);
    let damage = MutationTest {
        turns: 12_000,
        pieces: &[
            "(", ")", "[", "]", "{", "}", ":", ",", "'", "`", "${", "/", "\\", "\n", ";", "=", "=>", "<", ">", "?",
            ".", "ä", "async ",
        ],
        least: 2_000,
        // Known mistakes of tree-sitter: line breaks after these words, and division before a comment.
        misread: |text| ["export\n", "new \n", "new\n", "/c//d"].iter().any(|part| text.contains(part)),
    };
    damage.is_noticed(|turn| (languages()[turn % 3], &all[turn % 3]));
}
