//! Symbols of each indexer, and their keys in the graph.

use crate::Language;
use crate::scip::symbol::{Suffix, Symbol, home, suffix};

fn key(symbol: &str, language: Language) -> Option<String> {
    let outside = Symbol::parse(symbol)?.outside(language)?;
    let end = if outside.name.is_empty() { String::new() } else { format!("::{}", outside.name) };
    Some(format!("{}:{}{end}", outside.ecosystem, outside.package))
}

#[test]
fn names_outside_are_those_the_resolver_gives() {
    use Language::{CSharp, Go, Java, Python, Rust, TypeScript};
    for (language, symbol, expected) in [
        (TypeScript, "scip-typescript npm react 18.2.0 `index.d.ts`/useState().", "npm:react::useState"),
        (TypeScript, "scip-typescript npm @types/react 18.2 `index.d.ts`/React/useState().", "npm:react::useState"),
        (TypeScript, "scip-typescript npm @types/babel__core 7 `index.d.ts`/parse().", "npm:@babel/core::parse"),
        (TypeScript, "scip-typescript npm @scope/kit 1 src/`a.ts`/Kit#`<constructor>`().", "npm:@scope/kit::Kit"),
        (TypeScript, "scip-typescript npm kit 1 src/`a.ts`/ns/Kit#`<get>size`().", "npm:kit::ns.Kit.size"),
        (TypeScript, "scip-typescript npm kit 1 src/`a.ts`/", "npm:kit"),
        (Python, "scip-python python requests 2.31 `requests.api`/get().", "python:requests::api.get"),
        (Python, "scip-python python PyYAML 6.0 yaml/load().", "python:yaml::load"),
        (Python, "scip-python python python-stdlib 3.11 os/path/join().", "python:os::path.join"),
        (Python, "scip-python python numpy 1.0 numpy/__init__:", "python:numpy"),
        (
            Rust,
            "rust-analyzer cargo serde 1.0.2 de/Deserialize#deserialize().",
            "cargo:serde::de.Deserialize.deserialize",
        ),
        (
            Rust,
            "rust-analyzer cargo tokio-stream 0.1.0 impl#[`Iter<I>`][Stream]next().",
            "cargo:tokio_stream::Iter.next",
        ),
        (
            Rust,
            "rust-analyzer cargo std https://github.com/rust-lang/rust/library/std macros/println!",
            "cargo:std::macros.println",
        ),
        (
            Java,
            "semanticdb maven maven/org.slf4j/slf4j-api 1.7.30 org/slf4j/Logger#info(+2).",
            "java:org.slf4j::Logger.info",
        ),
        (Java, "semanticdb maven jdk 11 java/util/ArrayList#`<init>`().", "java:java.util::ArrayList"),
        (Java, "semanticdb maven . . java/lang/String#", "java:java.lang::String"),
        (
            Go,
            "scip-go gomod github.com/pkg/errors v0.9.1 `github.com/pkg/errors`/New().",
            "go:github.com/pkg/errors::New",
        ),
        (Go, "scip-go gomod github.com/golang/go/src go1.22 fmt/Println().", "go:fmt::Println"),
        (
            CSharp,
            "scip-dotnet nuget Newtonsoft.Json 13.0 Json/JsonConvert#Parse().",
            "csharp:Newtonsoft.Json::Json.JsonConvert.Parse",
        ),
    ] {
        assert_eq!(key(symbol, language).as_deref(), Some(expected), "{symbol}");
    }
    for none in [
        "scip-typescript npm react 18.2.0 `index.d.ts`/useState().(initial)",
        "scip-typescript npm react 18.2.0 `index.d.ts`/Component#[P]",
        "cxx . . $ std/vector#",
        "local 4",
        "scip-typescript npm react",
        "scip-typescript npm react 1 `unfinished",
        "scip-typescript npm react 1 f(",
        "scip-typescript npm react 1 ",
        "",
        " ",
    ] {
        assert_eq!(key(none, Language::TypeScript), None, "{none}");
    }
}

#[test]
fn spaces_and_backticks_are_escaped_by_doubling() {
    let symbol = Symbol::parse("my  tool npm a  b 1.0 `x``y z`/`f`(+1).").unwrap();
    assert_eq!((&*symbol.manager, &*symbol.package), ("npm", "a b"));
    let names: Vec<_> = symbol.descriptors.iter().map(|d| (&*d.name, d.suffix)).collect();
    assert_eq!(names, [("x`y z", Suffix::Namespace), ("f", Suffix::Method)]);
}

#[test]
fn suffixes_tell_kinds() {
    for (symbol, expected) in [
        ("s m p v a/", Some(Suffix::Namespace)),
        ("s m p v a#", Some(Suffix::Type)),
        ("s m p v a.", Some(Suffix::Term)),
        ("s m p v a(+1).", Some(Suffix::Method)),
        ("s m p v a#[T]", Some(Suffix::TypeParameter)),
        ("s m p v a().(x)", Some(Suffix::Parameter)),
        ("s m p v a:", Some(Suffix::Meta)),
        ("s m p v a!", Some(Suffix::Macro)),
        ("", None),
        ("local 1", None),
    ] {
        assert_eq!(suffix(symbol), expected, "{symbol}");
    }
}

#[test]
fn home_is_the_package_or_the_namespaces() {
    assert_eq!(home("scip-go gomod acme v1 `a/b`/F()."), home("other gomod acme v2 `c`/G#"));
    assert_ne!(home("scip-go gomod acme v1 `a`/F()."), home("scip-go gomod other v1 `a`/F()."));
    assert_eq!(home("semanticdb maven . . org/acme/A#f()."), home("semanticdb maven . . org/acme/B#"));
    assert_ne!(home("semanticdb maven . . org/acme/A#"), home("semanticdb maven . . java/lang/A#"));
    assert_eq!(home("local 3"), None);
}
