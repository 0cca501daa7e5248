//! Non-test code has no calls, references, imports or bases in tests; tests do.

use crate::facts::DefId;
use crate::languages::LanguageId;
use crate::resolve::{DefRef, LinkTarget, Program, resolve};
use std::sync::Arc;

/// Every relationship of the files with a definition of another file or with a test, as `from kind to`.
fn links(files: &[(&str, &str)]) -> Vec<String> {
    let mut program = Program::default();
    for (path, text) in files {
        match LanguageId::of(path, text) {
            Some(language) => drop(program.set(path, Arc::new(crate::parse(path, text, language)))),
            None => drop(program.manifests.insert((*path).to_owned(), (*text).to_owned())),
        }
    }
    let all = resolve(&mut program);
    let name = |gid: DefRef| {
        let file = program.file(gid.file);
        [&[&*file.path][..], &file.facts.path_of(gid.def)].concat().join("::")
    };
    let mut found = Vec::new();
    for file in program.ids() {
        let (facts, links) = (&program.file(file).facts, &all[file]);
        let mut add = |def: DefId, what: &str, to: LinkTarget| {
            if let LinkTarget::Def(to) = to {
                found.push(format!("{} {what} {}", name(DefRef { file, def }), name(to)));
            }
        };
        links.calls.iter().for_each(|l| add(facts.calls[l.call].owner, "calls", l.to));
        links.uses.iter().for_each(|l| add(l.owner, "uses", LinkTarget::Def(l.to)));
        links.imports.iter().for_each(|l| add(facts.imports[l.import].owner, "imports", l.to));
        links.bases.iter().for_each(|l| add(l.class, "extends", l.to));
    }
    found.sort();
    found.dedup();
    found
}

#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(links(files), expected);
}

#[test]
fn a_name_that_only_a_test_has_is_not_guessed() {
    check(
        &[
            ("app.py", "def run(thing):\n    thing.close_all()\n"),
            (
                "tests/test_app.py",
                "class Fake:\n    def close_all(self): pass\n\ndef test_it(thing):\n    thing.close_all()\n",
            ),
        ],
        &["tests/test_app.py::test_it calls tests/test_app.py::Fake::close_all"],
    );
}

#[test]
fn what_tests_pass_and_implement_is_not_called_by_production_code() {
    // Likewise for an interface that a test implements.
    check(
        &[
            (
                "p/p.go",
                "package p\n\ntype Store interface{ Get() }\ntype disk struct{}\n\nfunc (d disk) Get() {}\n\
                        func Use(s Store) { s.Get() }\nfunc main() { Use(disk{}) }\n",
            ),
            (
                "p/p_test.go",
                "package p\n\ntype fake struct{}\n\nfunc (f fake) Get() {}\n\
                             func TestUse() { Use(fake{}) }\n",
            ),
        ],
        &[
            "p/p.go::Use calls p/p.go::Get",
            "p/p.go::Use calls p/p.go::Store::Get",
            "p/p.go::Use uses p/p.go::Store",
            "p/p.go::main calls p/p.go::Use",
            "p/p.go::main uses p/p.go::disk",
            "p/p_test.go::TestUse calls p/p.go::Use",
            "p/p_test.go::TestUse uses p/p_test.go::fake",
        ],
    );
    // A function that a test passes.
    check(
        &[
            ("src/each.ts", "export function each(f: () => void) { f() }\n"),
            ("src/each.test.ts", "import { each } from './each'\nfunction mine() {}\neach(mine)\n"),
        ],
        &[
            "src/each.test.ts calls src/each.ts::each",
            "src/each.test.ts imports src/each.ts",
            "src/each.test.ts uses src/each.test.ts::mine",
        ],
    );
}

#[test]
fn a_method_that_only_tests_call_on_their_own_class_still_calls_its_own() {
    check(
        &[
            ("store.py", "class Store:\n    def get(self):\n        self.load()\n    def load(self): pass\n"),
            (
                "test_store.py",
                "from store import Store\nclass Fake(Store):\n    def load(self): pass\ndef test_get():\n    Fake().get()\n",
            ),
        ],
        &[
            "store.py::Store::get calls store.py::Store::load",
            "test_store.py imports store.py",
            "test_store.py::Fake extends store.py::Store",
            "test_store.py::test_get calls store.py::Store::get",
            "test_store.py::test_get calls test_store.py::Fake",
        ],
    );
}

#[test]
fn rust_modules_of_tests_are_tests_whatever_their_files_are_called() {
    check(
        &[
            ("Cargo.toml", "[package]\nname = \"a\"\n"),
            (
                "src/lib.rs",
                "mod case_test;\n#[cfg(test)]\nmod fixtures;\n#[cfg(test)]\nfn seed() {}\n\
                 pub fn run(x: impl Fn()) { case_test::expand(); x.seed_all(); }\n\
                 #[cfg(test)]\nmod tests {\n    #[test]\n    fn runs() { super::seed(); crate::fixtures::make(); }\n}\n",
            ),
            ("src/case_test.rs", "pub fn expand() {}\n"),
            (
                "src/fixtures.rs",
                "pub struct F;\nimpl F { pub fn seed_all(&self) {} }\npub fn make() { crate::run(|| ()); }\n",
            ),
        ],
        &[
            "src/fixtures.rs uses src/fixtures.rs::F",
            "src/fixtures.rs::make calls src/lib.rs::run",
            "src/lib.rs imports src/case_test.rs",
            "src/lib.rs::run calls src/case_test.rs::expand",
            "src/lib.rs::tests::runs calls src/fixtures.rs::make",
            "src/lib.rs::tests::runs calls src/lib.rs::seed",
        ],
    );
}

#[test]
fn a_package_that_gives_tools_for_tests_is_production_code() {
    check(
        &[
            ("web/__init__.py", ""),
            ("web/run.py", "from web.test.client import Client\n\ndef run():\n    Client()\n"),
            ("web/test/__init__.py", ""),
            ("web/test/client.py", "class Client:\n    def __init__(self): pass\n"),
        ],
        &["web/run.py imports web/test/client.py", "web/run.py::run calls web/test/client.py::Client::__init__"],
    );
    // Files below `tests` are tests, and nothing in them is imported.
    check(
        &[
            ("web/__init__.py", ""),
            ("web/run.py", "from web.tests.client import Client\n\ndef run():\n    Client()\n"),
            ("web/tests/__init__.py", ""),
            ("web/tests/client.py", "class Client:\n    def __init__(self): pass\n"),
        ],
        &[],
    );
}
