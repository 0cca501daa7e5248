//! Symbols of each indexer, and their keys in the graph.

use crate::languages::{LanguageId, language};
use crate::scip::symbol::{DescriptorSuffix, ScipSymbol, home, suffix};

fn key(symbol: &str, language: LanguageId) -> Option<String> {
    let outside = ScipSymbol::parse(symbol)?.outside(language)?;
    let end = if outside.name.is_empty() { String::new() } else { format!("::{}", outside.name) };
    Some(format!("{}:{}{end}", outside.ecosystem, outside.package))
}

#[test]
fn outside_names_equal_those_of_the_resolver() {
    let (python, type_script, go) = ("python", "typescript", "go");
    let (rust, java, csharp) = ("rust", "java", "csharp");
    for (name, symbol, expected) in [
        (type_script, "scip-typescript npm react 18.2.0 `index.d.ts`/useState().", "npm:react::useState"),
        (type_script, "scip-typescript npm @types/react 18.2 `index.d.ts`/React/useState().", "npm:react::useState"),
        (type_script, "scip-typescript npm @types/babel__core 7 `index.d.ts`/parse().", "npm:@babel/core::parse"),
        (type_script, "scip-typescript npm @scope/kit 1 src/`a.ts`/Kit#`<constructor>`().", "npm:@scope/kit::Kit"),
        (type_script, "scip-typescript npm kit 1 src/`a.ts`/ns/Kit#`<get>size`().", "npm:kit::ns.Kit.size"),
        (type_script, "scip-typescript npm kit 1 src/`a.ts`/", "npm:kit"),
        (python, "scip-python python requests 2.31 `requests.api`/get().", "python:requests::api.get"),
        (python, "scip-python python PyYAML 6.0 yaml/load().", "python:yaml::load"),
        (python, "scip-python python python-stdlib 3.11 os/path/join().", "python:os::path.join"),
        (python, "scip-python python numpy 1.0 numpy/__init__:", "python:numpy"),
        (
            rust,
            "rust-analyzer cargo serde 1.0.2 de/Deserialize#deserialize().",
            "cargo:serde::de.Deserialize.deserialize",
        ),
        (
            rust,
            "rust-analyzer cargo tokio-stream 0.1.0 impl#[`Iter<I>`][Stream]next().",
            "cargo:tokio_stream::Iter.next",
        ),
        (
            rust,
            "rust-analyzer cargo std https://github.com/rust-lang/rust/library/std macros/println!",
            "cargo:std::macros.println",
        ),
        (
            java,
            "semanticdb maven maven/org.slf4j/slf4j-api 1.7.30 org/slf4j/Logger#info(+2).",
            "java:org.slf4j::Logger.info",
        ),
        (java, "semanticdb maven jdk 11 java/util/ArrayList#`<init>`().", "java:java.util::ArrayList"),
        (java, "semanticdb maven . . java/lang/String#", "java:java.lang::String"),
        (
            go,
            "scip-go gomod github.com/pkg/errors v0.9.1 `github.com/pkg/errors`/New().",
            "go:github.com/pkg/errors::New",
        ),
        (go, "scip-go gomod github.com/golang/go/src go1.22 fmt/Println().", "go:fmt::Println"),
        (
            csharp,
            "scip-dotnet nuget Newtonsoft.Json 13.0 Json/JsonConvert#Parse().",
            "csharp:Newtonsoft.Json::Json.JsonConvert.Parse",
        ),
    ] {
        assert_eq!(key(symbol, language(name)).as_deref(), Some(expected), "{symbol}");
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
        assert_eq!(key(none, language("typescript")), None, "{none}");
    }
}

#[test]
fn spaces_and_backticks_are_escaped_by_doubling() {
    let symbol = ScipSymbol::parse("my  tool npm a  b 1.0 `x``y z`/`f`(+1).").unwrap();
    assert_eq!((&*symbol.manager, &*symbol.package), ("npm", "a b"));
    let names: Vec<_> = symbol.descriptors.iter().map(|d| (&*d.name, d.suffix)).collect();
    assert_eq!(names, [("x`y z", DescriptorSuffix::Namespace), ("f", DescriptorSuffix::Method)]);
}

#[test]
fn suffixes_determine_kinds() {
    for (symbol, expected) in [
        ("s m p v a/", Some(DescriptorSuffix::Namespace)),
        ("s m p v a#", Some(DescriptorSuffix::Type)),
        ("s m p v a.", Some(DescriptorSuffix::Term)),
        ("s m p v a(+1).", Some(DescriptorSuffix::Method)),
        ("s m p v a#[T]", Some(DescriptorSuffix::TypeParameter)),
        ("s m p v a().(x)", Some(DescriptorSuffix::Parameter)),
        ("s m p v a:", Some(DescriptorSuffix::Meta)),
        ("s m p v a!", Some(DescriptorSuffix::Macro)),
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
