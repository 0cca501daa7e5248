//! Indexes as each indexer writes them, with small programs, and malformed indexes.

mod damaged;
#[allow(dead_code, reason = "shared with engine's tests")]
mod encode;
mod known;
mod official;
mod symbols;

use super::*;
use crate::languages::{LanguageId, language};
use encode::{Doc, Message, Units, index, information};
use lukasa_model::id::object_id;

/// A program and its index, linked.
struct Case {
    compiled: CompilerRelationships,
    names: FxHashMap<Uuid, String>,
}

const NAMESPACE: Uuid = Uuid::from_u128(7);

fn case(tool: &str, files: &[(&str, &str)], documents: &[Doc], outside: &[Message]) -> Case {
    let bytes = index(tool, "file:///w", documents, outside);
    let index = ScipIndex::read(&bytes).unwrap();
    let (mut placed, mut skipped) = (vec![], vec![]);
    for document in &index.documents {
        let document = ScipDocument::read(document).unwrap();
        let Some((path, text)) = files.iter().find(|(path, _)| *path == document.path) else {
            skipped.extend(defined_in(&document));
            continue;
        };
        let facts = crate::parse(path, text, LanguageId::of(path, text).unwrap());
        let encoding = document.encoding.unwrap_or(index.usual_encoding());
        placed.push(match_document(&document, encoding, path, text, facts));
    }
    let compiled = link(&index, &placed, &skipped, NAMESPACE);
    let own = placed.iter().flat_map(|p| p.keys.iter().flatten());
    let names = own.map(|(of, key)| (*of, key)).chain(compiled.outside.keys().map(|(of, key)| (*of, key)));
    let names = names.map(|(of, key)| (object_id(NAMESPACE, of, key), key.clone())).collect();
    Case { compiled, names }
}

impl Case {
    /// The relationships as text, sorted: `a.ts::f CALLS b.ts::g 3,4`.
    fn edges(&self) -> Vec<String> {
        let mut edges: Vec<String> = self
            .compiled
            .edges
            .iter()
            .map(|edge| {
                let lines: Vec<String> = edge.lines.iter().map(u32::to_string).collect();
                let (src, dst) = (&self.names[&edge.src], &self.names[&edge.dst]);
                format!("{src} {} {dst} {}", edge.type_name, lines.join(",")).trim_end().to_owned()
            })
            .collect();
        edges.sort();
        edges
    }

    fn id(&self, key: &str) -> Uuid {
        *self.names.iter().find(|(_, name)| *name == key).unwrap_or_else(|| panic!("no {key}")).0
    }

    fn refutes(&self, caller: &str, called: &str, lines: &[u32]) -> bool {
        let mut content = Content::default();
        set_lines(&mut content.properties, lines, lines.len());
        let (caller, called_key, content) = (self.id(caller), called, &content);
        self.compiled.refutes(&KnownCall { caller, called: self.id(called), called_key, content })
    }
}

fn ts(rest: &str) -> String {
    format!("scip-typescript npm shop 1.0.0 {rest}")
}

const ANIMALS: &str = "export interface Animal {
  sound(): string;
}
export class Dog implements Animal {
  constructor(public name: string) {}
  sound(): string { return bark(this.name); }
}
function bark(text: string): string { return text; }
export function make(): Animal {
  const d = new Dog('x');
  return d;
}
";

fn animals() -> Doc {
    Doc::new("src/animals.ts", ANIMALS, Units::Utf16)
        .file(&ts("src/`animals.ts`/"))
        .define(1, "Animal", &ts("src/`animals.ts`/Animal#"))
        .define(2, "sound", &ts("src/`animals.ts`/Animal#sound()."))
        .define(4, "Dog", &ts("src/`animals.ts`/Dog#"))
        .mention(4, "Animal", &ts("src/`animals.ts`/Animal#"))
        .define(5, "constructor", &ts("src/`animals.ts`/Dog#`<constructor>`()."))
        .define(5, "name", &ts("src/`animals.ts`/Dog#`<constructor>`().(name)"))
        .define(6, "sound", &ts("src/`animals.ts`/Dog#sound()."))
        .mention(6, "bark", &ts("src/`animals.ts`/bark()."))
        .mention(6, "name", &ts("src/`animals.ts`/Dog#name."))
        .define(8, "bark", &ts("src/`animals.ts`/bark()."))
        .define(8, "text", &ts("src/`animals.ts`/bark().(text)"))
        .mention_nth(8, "text", 1, &ts("src/`animals.ts`/bark().(text)"))
        .define(9, "make", &ts("src/`animals.ts`/make()."))
        .mention(9, "Animal", &ts("src/`animals.ts`/Animal#"))
        .define(10, "d", "local 2")
        .mention(10, "Dog", &ts("src/`animals.ts`/Dog#`<constructor>`()."))
        .mention(11, "d", "local 2")
        .about(&ts("src/`animals.ts`/Dog#"), 7, &[&ts("src/`animals.ts`/Animal#")])
        .about(&ts("src/`animals.ts`/Dog#sound()."), 26, &[&ts("src/`animals.ts`/Animal#sound().")])
}

#[test]
fn typescript_calls_references_and_bases() {
    let case = case("scip-typescript", &[("src/animals.ts", ANIMALS)], &[animals()], &[]);
    assert_eq!(
        case.edges(),
        [
            "src/animals.ts::Dog IMPLEMENTS src/animals.ts::Animal 4",
            "src/animals.ts::Dog::sound CALLS src/animals.ts::bark 6",
            "src/animals.ts::Dog::sound IMPLEMENTS src/animals.ts::Animal::sound",
            "src/animals.ts::make CALLS src/animals.ts::Dog::constructor 10",
            "src/animals.ts::make REFERENCES src/animals.ts::Animal 9",
        ]
    );
    assert!(case.compiled.matched >= 7 && case.compiled.unmatched == 0, "{} matched", case.compiled.matched);
}

#[test]
fn calls_that_may_run_instead_are_not_refuted() {
    let text = "import { Animal, Dog } from './animals';
class Cat { sound(): string { return ''; } }
export function hear(a: Animal, d: Dog): string {
  a.sound();
  return d.sound();
}
";
    let doc = Doc::new("src/hear.ts", text, Units::Utf16)
        .mention(1, "Animal", &ts("src/`animals.ts`/Animal#"))
        .mention(1, "Dog", &ts("src/`animals.ts`/Dog#"))
        .define(2, "Cat", &ts("src/`hear.ts`/Cat#"))
        .define(2, "sound", &ts("src/`hear.ts`/Cat#sound()."))
        .define(3, "hear", &ts("src/`hear.ts`/hear()."))
        .mention(3, "Animal", &ts("src/`animals.ts`/Animal#"))
        .mention(3, "Dog", &ts("src/`animals.ts`/Dog#"))
        .mention(4, "sound", &ts("src/`animals.ts`/Animal#sound()."))
        .mention(5, "sound", &ts("src/`animals.ts`/Dog#sound()."));
    let case = case("scip-typescript", &[("src/animals.ts", ANIMALS), ("src/hear.ts", text)], &[animals(), doc], &[]);
    let edges = case.edges();
    assert!(edges.contains(&"src/hear.ts::hear CALLS src/animals.ts::Animal::sound 4".into()), "{edges:#?}");
    assert!(edges.contains(&"src/hear.ts::hear CALLS src/animals.ts::Dog::sound 5".into()));
    assert!(!edges.iter().any(|t| t.starts_with("src/hear.ts REFERENCES")), "imports have IMPORTS instead");
    let (hear, dog, cat) = ("src/hear.ts::hear", "src/animals.ts::Dog::sound", "src/hear.ts::Cat::sound");
    assert!(!case.refutes(hear, dog, &[4]), "an Animal may be a Dog");
    assert!(case.refutes(hear, cat, &[5]), "a Dog is no Cat");
    assert!(!case.refutes(hear, cat, &[5, 6]), "another line is not spoken of");
    assert!(!case.refutes(hear, "src/animals.ts::bark", &[5]), "something of another name on that line");
    assert!(!case.refutes(hear, cat, &[2]) && !case.refutes(cat, dog, &[5]));
}

#[test]
fn columns_are_in_the_unit_of_the_document() {
    let text = "function f() {}\nfunction g() { return ['😀é', f(), '😀', f]; }\n";
    for units in [Units::Unsaid, Units::Utf8, Units::Utf16, Units::Utf32] {
        let doc = Doc::new("a.ts", text, units)
            .define(1, "f", &ts("`a.ts`/f()."))
            .define(2, "g", &ts("`a.ts`/g()."))
            .mention(2, "f", &ts("`a.ts`/f()."));
        // The name is found only if columns are read in the right unit.
        assert_eq!(doc.range(2, "f", 0)[1], [30, 33, 30, 29][units as usize]);
        let case = case("scip-typescript", &[("a.ts", text)], &[doc], &[]);
        assert_eq!(case.edges(), ["a.ts::g CALLS a.ts::f 2"]);
    }
    // Ranges beyond the line or inside a character: the index is of another version of the text.
    let doc = Doc::new("a.ts", text, Units::Utf8).define(1, "f", &ts("`a.ts`/f()."));
    for range in [[1, 24, 25], [1, 500, 501], [70, 0, 1], [1, 20, 10]] {
        let mut doc = doc.clone();
        let occurrence = Message::default().packed(1, &range).text(2, &ts("`a.ts`/f()."));
        doc.message = doc.message.message(2, &occurrence);
        assert!(case("scip-typescript", &[("a.ts", text)], &[doc], &[]).edges().is_empty());
    }
}

#[test]
fn ranges_may_be_typed_or_unpacked() {
    let text = "function f() {}\nf();\n";
    let plain = Doc::new("a.ts", text, Units::Utf8).define(1, "f", &ts("`a.ts`/f()."));
    let single = Message::default().number(1, 1).number(3, 1);
    let multi = Message::default().number(1, 1).number(3, 1).number(4, 1);
    let name = ts("`a.ts`/f().");
    for occurrence in [
        Message::default().message(8, &single).text(2, &name),
        Message::default().message(9, &multi).text(2, &name),
        Message::default().number(1, 1).number(1, 0).number(1, 1).text(2, &name),
        Message::default().packed(1, &[1, 0, 1, 1]).text(2, &name).number(99, 5).bytes(98, b"from the future"),
    ] {
        let mut doc = plain.clone();
        doc.message = doc.message.message(2, &occurrence);
        let edges = case("scip-typescript", &[("a.ts", text)], &[doc], &[]).edges();
        assert_eq!(edges, ["a.ts CALLS a.ts::f 2"]);
    }
}

#[test]
fn overloads_are_distinguished() {
    let text = "class Box {
  void put(int n) {}
  void put(String s) {}
  void fill() { put(1); put(\"x\"); }
}
";
    let java = |rest: &str| format!("semanticdb maven maven/org.acme/box 1.0 org/acme/Box#{rest}");
    let doc = Doc::new("Box.java", text, Units::Utf16)
        .define(1, "Box", &java(""))
        .define(2, "put", &java("put()."))
        .define(3, "put", &java("put(+1)."))
        .define(4, "fill", &java("fill()."))
        .mention_nth(4, "put", 1, &java("put(+1)."));
    let case = case("scip-java", &[("Box.java", text)], &[doc], &[]);
    assert_eq!(case.edges(), ["Box.java::Box::fill CALLS Box.java::Box::put~(Strings) 4"]);
    // One call of that name is unresolved, so nothing is refuted.
    assert!(!case.refutes("Box.java::Box::fill", "Box.java::Box::put", &[4]));

    // Of several declarations of one symbol, the one with a body is called.
    let text = "function f(a: string): void;\nfunction f(a: number): void;\nfunction f(a: any): void {}\nf(1);\n";
    let name = ts("`a.ts`/f().");
    let doc = Doc::new("a.ts", text, Units::Utf16)
        .define(1, "f", &name)
        .define(2, "f", &name)
        .define(3, "f", &name)
        .mention(4, "f", &name);
    let case = self::case("scip-typescript", &[("a.ts", text)], &[doc], &[]);
    let edges = case.edges();
    assert_eq!(edges.len(), 1, "{edges:?}");
    let facts = crate::parse("a.ts", text, language("typescript"));
    let with_body = facts.defs.iter().position(|d| facts.name(d.name) == "f" && !d.is(crate::facts::flag::DECLARED));
    let key = crate::keys::keys("a.ts", &facts)[crate::facts::DefId::new(with_body.unwrap())].clone().unwrap().1;
    assert_eq!(edges[0], format!("a.ts CALLS {key} 4"));
}

#[test]
fn python_classes_properties_and_packages() {
    let text = "import requests
from base import Base

class Shop(Base):
    def __init__(self, f):
        self.f = f

    @property
    def price(self):
        return 1

    def buy(self, buy):
        return requests.get(self.price)

def open_shop():
    shop = Shop(print)
    return shop.buy(open_shop)
";
    let base = "class Base:\n    pass\n";
    let py = |rest: &str| format!("scip-python python shop 0.1 {rest}");
    let doc = Doc::new("shop.py", text, Units::Utf32)
        .file(&py("shop/__init__:"))
        .mention(1, "requests", "scip-python python requests 2.31 requests/__init__:")
        .mention(2, "Base", &py("base/Base#"))
        .define(4, "Shop", &py("shop/Shop#"))
        .mention(4, "Base", &py("base/Base#"))
        .define(5, "__init__", &py("shop/Shop#__init__()."))
        .define(5, "f", &py("shop/Shop#__init__().(f)"))
        .define(6, "f", &py("shop/Shop#f."))
        .define(9, "price", &py("shop/Shop#price()."))
        .define(12, "buy", &py("shop/Shop#buy()."))
        .define_nth(12, "buy", 1, "local 0")
        .mention(13, "requests", "scip-python python requests 2.31 requests/__init__:")
        .mention(13, "get", "scip-python python requests 2.31 `requests.api`/get().")
        .mention(13, "price", &py("shop/Shop#price()."))
        .define(15, "open_shop", &py("shop/open_shop()."))
        .mention(16, "Shop", &py("shop/Shop#"))
        .mention(16, "print", "scip-python python python-stdlib 3.11 builtins/print().")
        .mention(17, "buy", &py("shop/Shop#buy()."))
        .mention(17, "open_shop", &py("shop/open_shop()."))
        .about(&py("shop/Shop#"), 7, &[&py("base/Base#"), "scip-python python python-stdlib 3.11 builtins/object#"]);
    let other =
        Doc::new("base.py", base, Units::Utf32).file(&py("base/__init__:")).define(1, "Base", &py("base/Base#"));
    let case = case("scip-python", &[("shop.py", text), ("base.py", base)], &[doc, other], &[]);
    assert_eq!(
        case.edges(),
        [
            "shop.py::Shop EXTENDS base.py::Base 4",
            "shop.py::Shop::buy CALLS python:requests::api.get 13",
            "shop.py::Shop::buy CALLS shop.py::Shop::price 13",
            "shop.py::Shop::buy REFERENCES python:requests 13",
            "shop.py::open_shop CALLS shop.py::Shop::__init__ 16",
            "shop.py::open_shop CALLS shop.py::Shop::buy 17",
        ]
    );
    let outside: Vec<_> = case.compiled.outside.keys().map(|(of, key)| format!("{of} {key}")).collect();
    assert_eq!(outside, ["External python:requests::api.get", "Package python:requests"]);
}

#[test]
fn rust_methods_macros_and_crates() {
    let text = "macro_rules! twice { ($e:expr) => { ($e, $e) } }
pub struct Shop { open: bool }
impl Shop {
    pub fn new() -> Self { Self { open: true } }
    fn sell(&self) { std::mem::drop(twice!(helper::run())); }
}
mod helper { pub fn run() {} }
pub trait Close { fn close(&self); }
impl Close for Shop { fn close(&self) { self.sell(); } }
fn main() { let shop = Shop::new(); shop.close(); let f = helper::run; f(); }
";
    let own = |rest: &str| format!("rust-analyzer cargo shop 0.1.0 {rest}");
    let doc = Doc::new("src/main.rs", text, Units::Unsaid)
        .define(1, "twice", &own("twice!"))
        .define(2, "Shop", &own("Shop#"))
        .define(2, "open", &own("Shop#open."))
        .mention(3, "Shop", &own("Shop#"))
        .define(4, "new", &own("impl#[Shop]new()."))
        .mention(4, "open", &own("Shop#open."))
        .define(5, "sell", &own("impl#[Shop]sell()."))
        .mention(5, "std", "rust-analyzer cargo std https://x/library/std crate/")
        .mention(5, "drop", "rust-analyzer cargo core https://x/library/core mem/drop().")
        .mention(5, "twice", &own("twice!"))
        .mention(5, "run", &own("helper/run()."))
        .define(7, "helper", &own("helper/"))
        .define(7, "run", &own("helper/run()."))
        .define(8, "Close", &own("Close#"))
        .define(8, "close", &own("Close#close()."))
        .mention(9, "Close", &own("Close#"))
        .define(9, "close", &own("impl#[Shop][Close]close()."))
        .mention(9, "sell", &own("impl#[Shop]sell()."))
        .define(10, "main", &own("main()."))
        .define(10, "shop", "local 1")
        .mention(10, "new", &own("impl#[Shop]new()."))
        .mention(10, "Shop", &own("Shop#"))
        .mention_nth(10, "shop", 1, "local 1")
        .mention(10, "close", &own("impl#[Shop][Close]close()."))
        .mention(10, "helper", &own("helper/"))
        .mention(10, "run", &own("helper/run()."));
    let edges = case("rust-analyzer", &[("src/main.rs", text)], &[doc], &[]).edges();
    for expected in [
        "src/main.rs::Shop::sell CALLS cargo:core::mem.drop 5",
        "src/main.rs::Shop::sell CALLS src/main.rs::twice 5",
        "src/main.rs::Shop::sell CALLS src/main.rs::helper::run 5",
        "src/main.rs::Shop::close CALLS src/main.rs::Shop::sell 9",
        "src/main.rs::main CALLS src/main.rs::Shop::new 10",
        "src/main.rs::main CALLS src/main.rs::Shop::close 10",
        "src/main.rs::main REFERENCES src/main.rs::helper::run 10",
        "src/main.rs::main REFERENCES src/main.rs::Shop 10",
    ] {
        assert!(edges.contains(&expected.to_owned()), "{expected} is not in {edges:#?}");
    }
    assert!(!edges.iter().any(|t| t.ends_with("src/main.rs::helper 10")), "modules are only on the way: {edges:#?}");
}

#[test]
fn local_symbols_count_only_as_definitions() {
    let text = "function outer() {\n  function inner() {}\n  const x = 1;\n  inner();\n  return x;\n}\n";
    let doc = Doc::new("a.ts", text, Units::Utf16)
        .define(1, "outer", &ts("`a.ts`/outer()."))
        .define(2, "inner", "local 0")
        .define(3, "x", "local 1")
        .mention(4, "inner", "local 0")
        .mention(5, "x", "local 1");
    // The same number in another document is another symbol.
    let other = "function far() {}\nfar();\n";
    let far = Doc::new("b.ts", other, Units::Utf16).define(1, "far", "local 0").mention(2, "far", "local 0");
    let files = [("a.ts", text), ("b.ts", other)];
    let edges = case("scip-typescript", &files, &[doc, far], &[]).edges();
    assert_eq!(edges, ["a.ts::outer CALLS a.ts::outer::inner 4", "b.ts CALLS b.ts::far 2"]);
}

#[test]
fn symbols_without_a_definition_are_outside() {
    let text = "import { useState, Component } from 'react';
import { other } from './gone';
export class Page extends Component {
  draw() { useState(other()); generated(); return new Map(); }
}
";
    let react = |rest: &str| format!("scip-typescript npm @types/react 18.2.0 `index.d.ts`/React/{rest}");
    let lib = "scip-typescript npm typescript 5.3.0 lib/`lib.es2015.collection.d.ts`/Map#";
    let doc = Doc::new("page.tsx", text, Units::Utf16)
        .define(3, "Page", &ts("`page.tsx`/Page#"))
        .mention(3, "Component", &react("Component#"))
        .define(4, "draw", &ts("`page.tsx`/Page#draw()."))
        .mention(4, "useState", &react("useState()."))
        .mention(4, "other", &ts("`gone.ts`/other()."))
        .mention(4, "generated", &ts("`made.ts`/generated()."))
        .mention(4, "Map", lib);
    // Its file is missing, but the symbol still belongs to the program.
    let gone = Doc::new("gone.ts", "function other() {}", Units::Utf16).define(1, "other", &ts("`gone.ts`/other()."));
    let outside = [information(&react("Component#"), 21, &[])];
    let case = case("scip-typescript", &[("page.tsx", text)], &[doc, gone], &outside);
    assert_eq!(
        case.edges(),
        ["page.tsx::Page IMPLEMENTS npm:react::Component 3", "page.tsx::Page::draw CALLS npm:react::useState 4",]
    );
    let put = &case.compiled.outside[&("External", "npm:react::useState".to_owned())];
    assert_eq!((put.title.as_deref(), &put.properties["package"]), (Some("useState"), &json!("react")));
}
