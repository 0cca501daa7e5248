//! Resolving incrementally after changes returns the same links as resolving everything.

#![allow(clippy::unwrap_used, reason = "a failing test says where")]

use lukasa_code::LanguageId;
use lukasa_code::resolve::{LinkTarget, Program, Resolver, resolve};
use std::sync::Arc;

const FILES: &[(&str, &str)] = &[
    ("shop/__init__.py", "from .base import *\nfrom .base import Base as Root\n"),
    (
        "shop/base.py",
        "class Base:
    registry = {}
    def __init__(self, store):
        self.store = store
        self.hooks = []
    def save(self):
        self.check()
        return self.store.put(self)
    def check(self):
        pass
    @classmethod
    def make(cls, store):
        return cls(store)
    @property
    def first(self):
        return self.hooks[0]
def apply(function, value):
    return function(value)
def hook(function):
    Base.registry['x'] = function
    return function
",
    ),
    (
        "shop/store.py",
        "from shop.base import apply, Base
class Store:
    def __init__(self):
        self.rows = []
    def put(self, row):
        self.rows.append(row)
        return row.check()
class Fast(Store):
    def put(self, row):
        return super().put(row)
def twice(x):
    return apply(once, x)
def once(x):
    x.save()
    return x
",
    ),
    (
        "shop/order.py",
        "from shop import Base, Root
from shop.store import Store, Fast, twice
import shop.base as b
class Order(Base):
    def check(self):
        self.total()
    def total(self):
        return sum(line.price() for line in self.lines)
class Line:
    def price(self):
        return 1
def main():
    order = Order.make(Fast())
    order.lines = [Line()]
    order.save()
    twice(order)
    b.hook(main)
    b.Base.registry['x']()
    order.first()
if __name__ == '__main__':
    main()
",
    ),
    ("package.json", "{\"name\": \"web\"}"),
    (
        "web/view.js",
        "import { render, Page } from './page.js';
import helper from './helper';
export function show(model) {
  model.on('x', () => render(model));
  return helper.wrap(model).draw();
}
function Old() { this.n = 1; }
Old.prototype.draw = function () { return this.paint(); };
Old.prototype.paint = function () { return show(this); };
export const made = new Old();
made.draw();
",
    ),
    (
        "web/page.js",
        "export class Page { constructor(x) { this.x = x; } draw() { return this.x.run(); } }
export class Big extends Page { draw() { return super.draw(); } }
export function render(x) { return new Page(x).draw(); }
export * from './helper';
",
    ),
    (
        "web/helper.ts",
        "import { Big } from './page.js';
export interface Drawn { draw(): number; }
const table = { a: (n: number) => n, b: twice };
function twice(n: number) { return table.a(n) + 1; }
function wrap(x: unknown): Drawn { table.b(2); return new Big(x); }
export default { wrap };
",
    ),
    (
        "web/index.ts",
        "export * from './page.js';
export * from './more';
export * from './deep/index';
export { show as shown } from './view.js';
",
    ),
    (
        "web/more.ts",
        "export function count(n: number) { return n; }
export const list = [count];
export * from './index';
",
    ),
    ("web/deep/index.ts", "export * from './far';\nexport * from '../more';\n"),
    ("web/deep/far.ts", "import { count } from '..';\nexport function far() { return count(1); }\n"),
    (
        "web/app.ts",
        "import { render, Big, count, far, shown } from '.';
import * as all from './index';
export function start() { shown(new Big(count)); return far() + all.list[0](2); }
function draw() { render(count); all.far(); }
draw();
",
    ),
    ("go.mod", "module example.com/app\n"),
    (
        "main.go",
        "package main
import \"example.com/app/kit\"
func main() {
\ts := kit.New(helper)
\ts.Run()
\tvar r kit.Runner = s
\tr.Run()
}
func helper() int { return other() }
",
    ),
    ("other.go", "package main\nfunc other() int { return 1 }\n"),
    (
        "kit/kit.go",
        "package kit
type Runner interface { Run() int }
type inner struct { f func() int }
type Set struct { inner; name string }
func New(f func() int) *Set { return &Set{inner: inner{f: f}} }
func (i *inner) Run() int { return i.f() + size() }
",
    ),
    ("kit/size.go", "package kit\nfunc size() int { return limit() }\nfunc limit() int { return 2 }\n"),
    ("Cargo.toml", "[package]\nname = \"bits\"\n"),
    (
        "src/lib.rs",
        "mod shape;
pub use shape::{Shape, Round};
macro_rules! twice { ($e:expr) => { $e; $e } }
pub fn area(s: &dyn Shape) -> u32 { s.area() + extra() }
fn extra() -> u32 { shape::helper(Round { r: 2 }) }
pub fn run() { let r = Round::new(3); area(&r); r.grow(); twice!(extra()); }
",
    ),
    (
        "src/shape.rs",
        "use crate::area;
pub trait Shape { fn area(&self) -> u32; fn double(&self) -> u32 { self.area() * 2 } }
pub struct Round { pub r: u32 }
impl Round { pub fn new(r: u32) -> Round { Round { r } } pub fn grow(&self) -> u32 { self.double() } }
impl Shape for Round { fn area(&self) -> u32 { self.r } }
pub fn helper(r: Round) -> u32 { area(&r) }
",
    ),
    (
        "java/app/Main.java",
        "package app;
import app.kit.*;
import app.kit.Maker;
public class Main {
  private final Store store = Maker.store();
  void run() { store.put(this); new Other().go(store); Helper.help(() -> store.size()); }
  public static void main(String[] a) { new Main().run(); }
}
",
    ),
    ("java/app/Other.java", "package app;\nimport app.kit.Store;\nclass Other { void go(Store s) { s.put(this); } }\n"),
    ("java/app/kit/Store.java", "package app.kit;\npublic interface Store { void put(Object o); int size(); }\n"),
    (
        "java/app/kit/Maker.java",
        "package app.kit;
public class Maker { public static Store store() { return new Memory(); } }
class Memory implements Store { public void put(Object o) { grow(); } public int size() { return 1; } private void grow() {} }
",
    ),
    (
        "java/app/Helper.java",
        "package app;\nimport java.util.function.Supplier;\nclass Helper { static int help(Supplier<Integer> s) { return s.get(); } }\n",
    ),
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides.max(1)
    }
}

fn put(program: &mut Program, path: &str, text: &str) {
    match LanguageId::of(path, text) {
        Some(language) => drop(program.set(path, Arc::new(lukasa_code::parse(path, text, language)))),
        None => drop(program.manifests.insert(path.to_owned(), text.to_owned())),
    }
}

/// Lines are removed, restored, duplicated or moved; sometimes a whole file is removed or restored.
#[test]
fn after_any_change_links_equal_those_of_resolving_everything() {
    let mut resolved_in_part = 0;
    for seed in 1..=6u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut program = Program::default();
        let mut resolver = Resolver::default();
        let mut texts: Vec<Option<String>> = FILES.iter().map(|(_, text)| Some((*text).to_owned())).collect();
        for (path, text) in FILES {
            put(&mut program, path, text);
        }
        resolver.resolve(&mut program);
        for step in 0..120 {
            for _ in 0..=dice.roll(2) {
                let at = dice.roll(FILES.len());
                let (path, original) = FILES[at];
                if LanguageId::of(path, original).is_none() {
                    continue;
                }
                if dice.roll(12) == 0 && texts[at].is_some() {
                    texts[at] = None;
                    program.remove(path);
                    continue;
                }
                let text = texts[at].get_or_insert_with(|| original.to_owned());
                let mut lines: Vec<&str> = text.lines().collect();
                match dice.roll(5) {
                    0 => drop((!lines.is_empty()).then(|| lines.remove(dice.roll(lines.len())))),
                    1 => lines.insert(dice.roll(lines.len() + 1), original.lines().nth(dice.roll(20)).unwrap_or("")),
                    2 if lines.len() > 1 => {
                        let (a, b) = (dice.roll(lines.len()), dice.roll(lines.len()));
                        lines.swap(a, b);
                    }
                    3 => lines = original.lines().collect(),
                    _ => lines.insert(0, ""),
                }
                let changed = lines.join("\n");
                put(&mut program, path, &changed);
                texts[at] = Some(changed);
            }
            let again = resolver.resolve(&mut program);
            resolved_in_part += usize::from(again.len() < program.ids().count() / 2);
            let whole = resolve(&mut program);
            for id in program.ids() {
                let path = &program.file(id).path;
                assert_eq!(resolver.links()[id], whole[id], "seed {seed}, step {step}: {path}");
            }
        }
    }
    assert!(resolved_in_part > 200, "most changes resolve only a part of the files: {resolved_in_part}");
}

/// A target can get a new parameter: its caller then passes an argument to it, although it still calls the same target.
#[test]
fn a_new_parameter_gets_the_arguments_of_callers() {
    let caller = "from b import f\n\n\nclass T:\n    def go(self):\n        pass\n\n\nf(T())\n";
    let mut program = Program::default();
    let mut resolver = Resolver::default();
    put(&mut program, "a.py", caller);
    put(&mut program, "b.py", "def f():\n    pass\n");
    resolver.resolve(&mut program);
    put(&mut program, "b.py", "def f(x):\n    x.go()\n");
    resolver.resolve(&mut program);
    let b = program.find_file("b.py").unwrap();
    assert_eq!(resolver.links()[b].calls.len(), 1, "x.go() is T.go");
    assert_eq!(*resolver.links(), resolve(&mut program));
}

/// A class that gets a base counts as an instantiated subclass of it, in whichever round its instances become known.
#[test]
fn a_class_that_gets_a_base_is_an_instantiated_subclass_of_it_at_once() {
    let base = "class B:\n    def go(self): pass\nclass Other: pass\ndef use(b: B):\n    b.go()\nOther()\n";
    let derived = |of: &str| format!("from base import B\nclass D{of}:\n    def go(self): pass\n");
    let mut program = Program::default();
    let mut resolver = Resolver::default();
    put(&mut program, "base.py", base);
    put(&mut program, "make.py", "from d import D\ndef make(cls):\n    return cls()\nmake(D)\n");
    for of in ["", "(B)", "", "(B)"] {
        put(&mut program, "d.py", &derived(of));
        resolver.resolve(&mut program);
        assert_eq!(*resolver.links(), resolve(&mut program), "class D{of}");
    }
}

/// Two files may declare the same name for the same package: the result must not depend on the order of reading.
#[test]
fn the_order_of_files_does_not_matter() {
    let twice = [
        ("mobile/kit/Store.java", "package app.kit;\npublic class Store { public void put(Object o) {} }\n"),
        ("desktop/kit/Store.java", "package app.kit;\npublic class Store { public void put(Object o) {} }\n"),
        ("mobile/Use.java", "package app;\nimport app.kit.Store;\nclass Use { void go(Store s) { s.put(this); } }\n"),
    ];
    let found = |files: &[(&str, &str)]| {
        let mut program = Program::default();
        files.iter().for_each(|(path, text)| put(&mut program, path, text));
        let links = resolve(&mut program);
        let mut found: Vec<String> = Vec::new();
        for id in program.ids() {
            for link in &links[id].calls {
                let LinkTarget::Def(to) = link.to else { continue };
                let (from, to) = (&program.file(id).path, (&program.file(to.file).path, to.def));
                found.push(format!("{from} {} -> {to:?} {:?}", link.call.index(), link.how));
            }
        }
        found.sort();
        found
    };
    let mut files: Vec<(&str, &str)> = FILES.iter().copied().chain(twice).collect();
    let expected = found(&files);
    assert!(expected.iter().any(|line| line.starts_with("mobile/Use.java")), "{expected:?}");
    let mut dice = Dice(7);
    for _ in 0..20 {
        for at in (1..files.len()).rev() {
            files.swap(at, dice.roll(at + 1));
        }
        assert_eq!(found(&files), expected, "{:?}", files.iter().map(|(path, _)| path).collect::<Vec<_>>());
    }
}
