//! Merging an index with known relationships: adopted, refuted, or left unchanged.

use super::encode::{Doc, Units};
use super::{NAMESPACE, case, ts};
use crate::scip::{CompilerRelationship, KnownCall};
use crate::statements::set_lines;
use lukasa_model::Content;
use lukasa_model::id::object_id;
use serde_json::json;
use uuid::Uuid;

#[test]
fn an_edge_keeps_what_was_said_of_it() {
    let edge = CompilerRelationship { type_name: "CALLS", src: NAMESPACE, dst: NAMESPACE, lines: vec![9] };
    let mut before = Content { derivation: Some("unique_name".into()), confidence: Some(0.4), ..Content::default() };
    set_lines(&mut before.properties, &[3, 12], 2);
    before.labels.insert("hot".into());
    let after = edge.content(Some(&before));
    assert_eq!((after.derivation.as_deref(), after.confidence), (Some("compiler"), Some(1.0)));
    assert_eq!((&after.properties["line"], &after.properties["lines"]), (&json!(3), &json!([3, 9, 12])));
    assert!(after.labels.contains("hot"));
    assert_eq!(edge.content(Some(&after)), after, "saying it again changes nothing");
    let reference = CompilerRelationship { type_name: "REFERENCES", ..edge };
    assert_eq!(reference.content(None).properties["line"], json!(9));
}

#[test]
fn outside_names_keep_the_form_of_the_import() {
    let text = "import warnings\nfrom typing import Any\n\ndef f(x: Any):\n    warnings.warn(x)\n    x.get()\n\ndef g():\n    warn(1)\n";
    let py = |rest: &str| format!("scip-python python shop 0.1 shop/{rest}");
    let (warn, get) =
        ("scip-python python python-stdlib 3.11 _warnings/warn().", "scip-python python x 1 deep/D#get().");
    let doc = Doc::new("shop.py", text, Units::Utf16)
        .define(4, "f", &py("f()."))
        .mention(5, "warnings", "scip-python python python-stdlib 3.11 warnings/__init__:")
        .mention(5, "warn", warn)
        .mention(6, "get", get)
        .define(8, "g", &py("g()."))
        .mention(9, "warn", warn);
    let case = case("scip-python", &[("shop.py", text)], &[doc], &[]);
    let mut compiled = case.compiled;
    let f = *case.names.iter().find(|(_, name)| *name == "shop.py::f").unwrap().0;
    let known = |key: &str, line: u32, derivation: &str| {
        let mut content = Content { derivation: Some(derivation.into()), ..Content::default() };
        set_lines(&mut content.properties, &[line], 1);
        (key.to_owned(), object_id(NAMESPACE, "EXTERNAL", key), content)
    };
    let (imported, typed) = ("python:warnings::warn", "python:typing::Any.get");
    for derivation in ["import", "compiler"] {
        let calls = [known(imported, 5, derivation), known(typed, 6, "type")];
        let calls =
            || calls.iter().map(|(key, id, content)| KnownCall { caller: f, called: *id, called_key: key, content });
        compiled.adopt(calls());
        let called: Vec<Uuid> = compiled.edges.iter().filter(|e| e.type_name == "CALLS").map(|e| e.dst).collect();
        let warn = object_id(NAMESPACE, "EXTERNAL", imported);
        assert_eq!(called.iter().filter(|id| **id == warn).count(), 2, "wherever it is called");
        assert_eq!(called.len(), 3);
        let refuted: Vec<bool> = calls().map(|call| compiled.refutes(&call)).collect();
        assert_eq!(refuted, [false, true], "what came through a type that says nothing was a guess");
    }
}

#[test]
fn builtins_refute_other_links_and_are_no_objects() {
    let text = "class Rope {\n  split() {}\n}\nfunction f(x) {\n  x.split();\n}\n";
    let doc = Doc::new("a.ts", text, Units::Utf16)
        .define(1, "Rope", &ts("`a.ts`/Rope#"))
        .define(2, "split", &ts("`a.ts`/Rope#split()."))
        .define(4, "f", &ts("`a.ts`/f()."))
        .mention(5, "split", "scip-typescript npm typescript 5.3.0 lib/`lib.es5.d.ts`/String#split().");
    let case = case("scip-typescript", &[("a.ts", text)], &[doc], &[]);
    assert!(case.edges().is_empty() && case.compiled.outside.is_empty());
    assert!(case.refutes("a.ts::f", "a.ts::Rope::split", &[5]));
}

#[test]
fn variants_of_one_symbol_are_not_refuted_but_overloads_are() {
    let text = "from typing import overload

@overload
def f(x: int): ...
def f(x): return x

if f:
    def g(): pass
else:
    def g(): pass

def main():
    f(1)
    g()
";
    let py = |rest: &str| format!("scip-python python shop 0.1 shop/{rest}");
    let doc = Doc::new("shop.py", text, Units::Utf16)
        .define(4, "f", &py("f()."))
        .define(5, "f", &py("f()."))
        .define(8, "g", &py("g()."))
        .define(10, "g", &py("g()."))
        .define(12, "main", &py("main()."))
        .mention(13, "f", &py("f()."))
        .mention(14, "g", &py("g()."));
    let case = case("scip-python", &[("shop.py", text)], &[doc], &[]);
    let calls: Vec<String> = case.edges().into_iter().filter(|t| t.contains("CALLS")).collect();
    assert_eq!(calls, ["shop.py::main CALLS shop.py::f~(x) 13", "shop.py::main CALLS shop.py::g 14"]);
    assert!(case.refutes("shop.py::main", "shop.py::f", &[13]), "it has no body");
    let other = case.names.values().find(|name| name.starts_with("shop.py::g~")).unwrap();
    assert!(!case.refutes("shop.py::main", other, &[14]), "which of them it is shows only when it runs");
}

#[test]
fn later_definitions_may_be_marked_as_mentions() {
    let text = "from typing import overload
import os

@overload
def f(x: int): ...
@overload
def f(x: str): ...
def f(x): return f(x)

def main():
    f(os.path.exists('x'))
";
    let py = |rest: &str| format!("scip-python python shop 0.1 shop/{rest}");
    let doc = Doc::new("shop.py", text, Units::Utf16)
        .define(5, "f", &py("f()."))
        .mention(7, "f", &py("f()."))
        .mention(8, "f", &py("f()."))
        .mention_nth(8, "f", 1, &py("f()."))
        .define(10, "main", &py("main()."))
        .mention(11, "f", &py("f()."))
        // As in scip-python: the symbol is another member than the one in the text.
        .mention(11, "exists", "scip-python python python-stdlib 3.11 genericpath/isdir().");
    let case = case("scip-python", &[("shop.py", text)], &[doc], &[]);
    let own = "shop.py::f~(x)";
    assert_eq!(case.edges(), [format!("{own} CALLS {own} 8"), format!("shop.py::main CALLS {own} 11")]);
}
