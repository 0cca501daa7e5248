//! Indexing working trees: recorded facts, changes of files, and bad input.

use crate::test_engine::TestEngine;
use lukasa_engine::Context;
use lukasa_model::{ErrorCode, View};
use lukasa_store::VersionFields;
use lukasa_store::ledger::ViewSpec;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn write(root: &Path, path: &str, text: &str) {
    let place = root.join(path);
    fs::create_dir_all(place.parent().expect("inside the root")).unwrap();
    fs::write(place, text).unwrap();
}

/// Everything visible on a branch: names and contents.
fn stated(test: &TestEngine, branch: &str) -> BTreeMap<String, String> {
    let ledger = &test.fixture.ledger;
    let view: View = ledger.view(&ViewSpec::on(branch)).unwrap();
    let mut names = BTreeMap::new();
    let mut out = BTreeMap::new();
    for row in ledger.stream_view(&view, VersionFields::Content).unwrap() {
        let row = row.unwrap();
        if row.is_system() {
            continue;
        }
        let content = row.statement.content.clone().unwrap_or_default().to_string();
        match &row.thing.ends {
            None => {
                let name = row.thing.name();
                names.insert(row.thing.no, name.clone());
                out.insert(name, content);
            }
            Some(ends) => {
                let name = |no| names.get(no).map_or("(ended)", String::as_str);
                let name = format!("{} -{}-> {}", name(&ends.src), row.thing.type_name, name(&ends.dst));
                out.insert(name, content);
            }
        }
    }
    out
}

fn small_program(root: &Path) {
    write(root, "app/main.py", "from app.shop import Shop\n\n\ndef main():\n    shop = Shop()\n    shop.open()\n");
    write(
        root,
        "app/shop.py",
        "\"\"\"Shops and what they do.\"\"\"\n\n\nclass Shop:\n    \"\"\"A shop. Sells.\"\"\"\n\n    def open(self):\n        self.greet()\n\n    def greet(self):\n        print('hello')\n",
    );
    write(root, "app/__init__.py", "");
    write(
        root,
        "web/index.ts",
        "import { add } from './sum';\nexport function total(): number { return add(1, 2); }\n",
    );
    write(root, "web/sum.ts", "/** Adds. */\nexport function add(a: number, b: number) { return a + b; }\n");
    write(root, "notes.txt", "not a program\n");
}

#[test]
fn a_base_that_is_named_twice_is_one_relationship() {
    for test in TestEngine::all() {
        let folder = TempDir::new().unwrap();
        write(
            folder.path(),
            "a.py",
            "class Base:\n    pass\n\n\nAlias = Base\n\n\nclass Both(Base, Alias, str, str):\n    pass\n",
        );
        write(folder.path(), "I.java", "interface I {}\nclass C extends Missing implements I, I, Other, Other {}\n");
        write(
            folder.path(),
            "i.ts",
            "import {Far} from 'far';\ninterface I extends Far, Far {}\nclass C implements I, I {}\n",
        );
        test.ok("index_directory", json!({"path": folder.path(), "branch": "main"}));
        let all = stated(&test, "main");
        let bases = |class: &str| {
            let of = |name: &&String| {
                name.starts_with(class) && (name.contains("-EXTENDS->") || name.contains("-IMPLEMENTS->"))
            };
            all.keys().filter(of).count()
        };
        assert_eq!(
            [bases("Class:a.py::Both"), bases("Class:I.java::C"), bases("Class:i.ts::C")],
            [2, 1, 1],
            "{all:#?}"
        );
    }
}

#[test]
fn a_new_process_parses_only_what_changed() {
    for mut test in TestEngine::all() {
        let folder = TempDir::new().unwrap();
        let cache = TempDir::new().unwrap();
        small_program(folder.path());
        for at in 0..28 {
            write(folder.path(), &format!("many/m{at}.py"), &format!("def f{at}():\n    return f{at}()\n"));
        }
        // The choice between two symbols of the same name must not depend on which was read first.
        for of in ["desktop", "mobile"] {
            let text =
                "package app;\npublic class Store { public void put() {} void twice() { new Store().put(); } }\n";
            write(folder.path(), &format!("{of}/Store.java"), text);
        }
        let path = json!({"path": folder.path()});
        let fresh = |test: &mut TestEngine, cache: &Path| {
            let clock = std::sync::Arc::clone(&test.fixture.clock) as std::sync::Arc<dyn lukasa_store::Clock>;
            let store = std::sync::Arc::clone(&test.fixture.store);
            test.engine = lukasa_engine::Engine::new(store, clock, std::env::temp_dir()).with_cache(cache.into());
        };
        fresh(&mut test, cache.path());
        assert_eq!(test.ok("index_directory", path.clone())["parsed"], 35);
        fresh(&mut test, cache.path());
        assert_eq!(test.ok("index_directory", path.clone())["parsed"], 0, "nothing changed");
        write(folder.path(), "many/m7.py", "from many.m8 import f8\n\n\ndef f7():\n    return f8()\n");
        fresh(&mut test, cache.path());
        let report = test.ok("index_directory", path.clone());
        assert_eq!((&report["parsed"], &report["changed"]), (&json!(1), &json!(1)), "{report}");
        for of in ["mobile", "desktop"] {
            let text = fs::read_to_string(folder.path().join(of).join("Store.java")).unwrap();
            write(folder.path(), &format!("{of}/Store.java"), &format!("{text}// {of}\n"));
            fresh(&mut test, cache.path());
            let report = test.ok("index_directory", path.clone());
            assert_eq!(
                (&report["written_files"], &report["relationships_written"]),
                (&json!(1), &json!(0)),
                "{report}"
            );
        }
        let kept = stated(&test, "main");
        assert!(kept.contains_key("Function:many/m7.py::f7 -CALLS-> Function:many/m8.py::f8"));
        // Cached facts equal facts parsed from the text.
        let again = test.ok("graph_rebuild", path.clone());
        assert_eq!(again["parsed"], 35, "a rebuild believes nothing that was kept");
        assert_eq!(stated(&test, "main"), kept);
    }
}

#[test]
fn a_new_process_reads_only_what_was_written_since() {
    for mut test in TestEngine::all() {
        let folder = TempDir::new().unwrap();
        let cache = TempDir::new().unwrap();
        small_program(folder.path());
        for at in 0..60 {
            write(folder.path(), &format!("many/m{at}.py"), &format!("def f{at}():\n    return f{at}()\n"));
        }
        fs::write(folder.path().join("logo.png"), b"\x89PNG\0\0").unwrap();
        fs::write(folder.path().join("odd.py"), b"x = 1\0").unwrap();
        let path = json!({"path": folder.path()});
        let restarted = |test: &mut TestEngine| {
            let clock = std::sync::Arc::clone(&test.fixture.clock) as std::sync::Arc<dyn lukasa_store::Clock>;
            let store = std::sync::Arc::clone(&test.fixture.store);
            let engine = lukasa_engine::Engine::new(store, clock, std::env::temp_dir());
            test.engine = engine.with_cache(cache.path().into());
        };
        let index = |test: &mut TestEngine| {
            restarted(test);
            test.ok("index_directory", path.clone())
        };
        let seconds = |ahead: u64| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
            lukasa_model::Time((now + ahead) as i64 * 1_000_000)
        };
        test.fixture.clock.set(seconds(0));
        let whole = index(&mut test)["bytes"].as_u64().unwrap();
        assert!(whole > 1_000);
        assert_eq!(index(&mut test)["bytes"], whole, "written a moment ago: it might be written again unseen");
        test.fixture.clock.set(seconds(60));
        assert_eq!(index(&mut test)["bytes"], whole);
        let report = index(&mut test);
        assert_eq!((&report["bytes"], &report["changed"]), (&json!(0), &json!(0)), "{report}");
        assert!(report["diagnostics"].to_string().contains("odd.py"), "faults are reported by every pass: {report}");
        // The saved state of the branch is valid only until another client writes.
        test.ok("delete", json!({"ref": "File:many/m9.py"}));
        let report = index(&mut test);
        assert_eq!((&report["changed"], &report["removed"]), (&json!(1), &json!(0)), "{report}");
        assert!(stated(&test, "main").contains_key("File:many/m9.py"));
        // The same length and the same modification time.
        let file = folder.path().join("many/m7.py");
        let before = fs::metadata(&file).unwrap().modified().unwrap();
        write(folder.path(), "many/m7.py", "def f7():\n    return f8()\n");
        fs::File::options().write(true).open(&file).unwrap().set_modified(before).unwrap();
        let report = index(&mut test);
        assert_eq!(report["changed"], 1, "{report}");
        assert_eq!(report["removed"], 0);
        fs::remove_file(folder.path().join("many/m8.py")).unwrap();
        assert_eq!(index(&mut test)["removed"], 1);
        fs::write(folder.path().join("logo.png"), "text now\n").unwrap();
        let report = index(&mut test);
        assert_eq!(report["changed"], 1, "{report}");
        assert!(stated(&test, "main").contains_key("File:logo.png"));
        restarted(&mut test);
        assert_eq!(
            test.ok("graph_health", path.clone())["pending_changes"],
            0,
            "the picture that became text counts once"
        );
    }
}

#[test]
fn a_folder_becomes_files_symbols_and_calls() {
    for test in TestEngine::all() {
        let folder = TempDir::new().unwrap();
        small_program(folder.path());
        let report = test.ok("index_directory", json!({"path": folder.path()}));
        assert_eq!(report["files"], 6, "{report}");
        let stated = stated(&test, "main");
        for name in [
            "File:app/main.py",
            "File:notes.txt",
            "Class:app/shop.py::Shop",
            "Method:app/shop.py::Shop::open",
            "Function:web/sum.ts::add",
            "Function:app/main.py::main -CALLS-> Method:app/shop.py::Shop::open",
            "Method:app/shop.py::Shop::open -CALLS-> Method:app/shop.py::Shop::greet",
            "Function:web/index.ts::total -CALLS-> Function:web/sum.ts::add",
            "File:app/main.py -IMPORTS-> File:app/shop.py",
            "File:web/index.ts -IMPORTS-> File:web/sum.ts",
            "Class:app/shop.py::Shop -CONTAINS-> Method:app/shop.py::Shop::open",
        ] {
            assert!(stated.contains_key(name), "{name} on {}: {:#?}", test.fixture.name, stated.keys());
        }
        let shop = &stated["Class:app/shop.py::Shop"];
        assert!(shop.contains("\"summary\":\"A shop.\""), "{shop}");
        let call = &stated["Function:web/index.ts::total -CALLS-> Function:web/sum.ts::add"];
        assert!(call.contains("\"derivation\":\"import\"") && call.contains("\"line\":2"), "{call}");
        // Nothing changed: nothing is written.
        let again = test.ok("index_directory", json!({"path": folder.path()}));
        assert_eq!((&again["tx"], &again["changed"]), (&Value::Null, &json!(0)), "{again}");
    }
}

#[test]
fn edits_removals_and_renames_end_facts_that_no_longer_apply() {
    for test in TestEngine::all() {
        let folder = TempDir::new().unwrap();
        small_program(folder.path());
        test.ok("index_directory", json!({"path": folder.path()}));
        test.fixture.clock.advance(10);
        write(folder.path(), "app/shop.py", "class Shop:\n    def open(self):\n        pass\n");
        fs::rename(folder.path().join("web/sum.ts"), folder.path().join("web/plus.ts")).unwrap();
        fs::remove_file(folder.path().join("notes.txt")).unwrap();
        let report = test.ok("index_directory", json!({"path": folder.path()}));
        assert_eq!((&report["changed"], &report["removed"]), (&json!(2), &json!(2)), "{report}");
        let stated = stated(&test, "main");
        for gone in ["Method:app/shop.py::Shop::greet", "File:notes.txt", "File:web/sum.ts", "Function:web/sum.ts::add"]
        {
            assert!(!stated.contains_key(gone), "{gone} on {}", test.fixture.name);
        }
        assert!(stated.contains_key("File:web/plus.ts"));
        assert!(
            !stated.keys().any(|k| k.starts_with("Function:web/index.ts::total -CALLS->")),
            "the import leads nowhere"
        );
        let found = test.ok("get", json!({"ref": "File:web/sum.ts"}));
        assert_eq!(found["thing"]["key"], "web/plus.ts", "the old name leads to the new: {found}");
        // A view of the past is unchanged.
        let before = test.ok("get", json!({"ref": "Method:app/shop.py::Shop::greet", "as_of": "tx:2"}));
        assert_eq!(before["thing"]["key"], "app/shop.py::Shop::greet");
    }
}

/// After any series of edits a branch has the same facts as a freshly indexed one.
#[test]
fn following_edits_gives_what_a_fresh_index_gives() {
    use lukasa_testkit::random_queries::SeededRandom;
    for (number, test) in TestEngine::all().into_iter().enumerate() {
        let rounds = if test.fixture.name == "memory" { 12 } else { 4 };
        let folder = TempDir::new().unwrap();
        small_program(folder.path());
        let mut dice = SeededRandom(7 + number as u64);
        for round in 0..rounds {
            random_edit(folder.path(), &mut dice);
            test.fixture.clock.advance(1);
            test.ok("index_directory", json!({"path": folder.path()}));
            let fresh = format!("fresh{round}");
            // A branch from before the first fact sees nothing of `main`.
            test.ok("branch_create", json!({"name": fresh, "pinned": true, "at": 0}));
            let report = test.ok("index_directory", json!({"path": folder.path(), "branch": fresh}));
            let (followed, again) = (stated(&test, "main"), stated(&test, &fresh));
            let outside = |name: &String| name.starts_with("Package:") || name.starts_with("External:");
            let ours = |all: BTreeMap<String, String>| -> BTreeMap<String, String> {
                all.into_iter().filter(|(n, _)| !outside(n) && !n.contains("RENAMED_FROM")).collect()
            };
            let (followed, again) = (ours(followed), ours(again));
            for (name, content) in &again {
                assert_eq!(
                    followed.get(name),
                    Some(content),
                    "{name}, round {round} on {}: {report}",
                    test.fixture.name
                );
            }
            for name in followed.keys() {
                assert!(again.contains_key(name), "{name} is left over, round {round} on {}", test.fixture.name);
            }
        }
    }
}

fn random_edit(root: &Path, dice: &mut lukasa_testkit::random_queries::SeededRandom) {
    let names = ["app/a.py", "app/b.py", "app/c.py", "app/shop.py", "app/main.py"];
    let path = names[dice.below(names.len() as u64) as usize];
    if dice.below(6) == 0 {
        let _ = fs::remove_file(root.join(path));
        return;
    }
    let mut text = String::new();
    for module in ["a", "b", "c", "shop"] {
        if dice.below(2) == 0 {
            text.push_str(&format!("from app.{module} import f{}, K{}\n", dice.below(3), dice.below(2)));
        }
    }
    for class in 0..2 {
        if dice.below(2) == 0 {
            let base = if dice.below(2) == 0 { format!("(K{})", dice.below(2)) } else { String::new() };
            text.push_str(&format!(
                "class K{class}{base}:\n    def m{}(self):\n        self.m{}()\n",
                dice.below(3),
                dice.below(3)
            ));
        }
    }
    for function in 0..3 {
        if dice.below(3) > 0 {
            text.push_str(&format!(
                "def f{function}(x=None):\n    k = K{}()\n    k.m{}()\n    f{}(f{})\n    if x: x()\n    return k\n",
                dice.below(2),
                dice.below(3),
                dice.below(3),
                dice.below(3)
            ));
        }
    }
    write(root, path, &text);
}

#[test]
fn bad_input_is_reported_and_never_fails_the_index() {
    let test = TestEngine::all().remove(0);
    let folder = TempDir::new().unwrap();
    let root = folder.path();
    small_program(root);
    fs::write(root.join("binary.py"), b"\x00\x01\x02def f(): pass").unwrap();
    fs::write(root.join("latin.py"), b"def caf\xe9(): pass\n").unwrap();
    write(root, "half.py", "def whole():\n    pass\n\ndef half(a, b\n");
    write(root, "deep.py", &format!("x = {}1{}\n", "(".repeat(20_000), ")".repeat(20_000)));
    write(root, "deep.js", &format!("x = {}1{}\n", "[".repeat(20_000), "]".repeat(20_000)));
    write(root, "long.ts", &"export const a = 1;\n".repeat(120_000));
    write(root, "empty.rs", "");
    fs::write(root.join("huge.bin"), vec![b'a'; 40 << 20]).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(root, root.join("loop")).unwrap();
        std::os::unix::fs::symlink(root.join("nowhere"), root.join("dangling.py")).unwrap();
    }
    let report = test.ok("index_directory", json!({"path": root}));
    let faults: Vec<String> =
        report["diagnostics"].as_array().unwrap().iter().map(|d| d["path"].as_str().unwrap().to_owned()).collect();
    for path in ["latin.py", "half.py", "deep.py", "deep.js", "long.ts", "huge.bin"] {
        assert!(faults.iter().any(|t| t == path), "{path} is not reported: {faults:?}");
    }
    let stated = stated(&test, "main");
    assert!(stated.contains_key("Function:half.py::whole"));
    assert!(!stated.contains_key("File:binary.py"));
    assert!(stated.contains_key("File:long.ts"));
    assert!(!stated.keys().any(|k| k.starts_with("File:loop/")), "links are not followed");
}

#[test]
fn ignore_rules_are_kept() {
    let test = TestEngine::all().remove(0);
    let folder = TempDir::new().unwrap();
    small_program(folder.path());
    write(folder.path(), ".gitignore", "/build\n*.log\n");
    write(folder.path(), ".lukasaignore", "web/\n");
    write(folder.path(), "build/out.py", "def made(): pass\n");
    write(folder.path(), "x.log", "log\n");
    test.ok("index_directory", json!({"path": folder.path()}));
    let stated = stated(&test, "main");
    for path in ["build/out.py", "x.log", "web/sum.ts"] {
        assert!(!stated.contains_key(&format!("File:{path}")), "{path}");
    }
    assert!(stated.contains_key("File:.lukasaignore"));
    // What becomes ignored is ended.
    write(folder.path(), ".gitignore", "/build\n*.log\nnotes.txt\n");
    test.ok("index_directory", json!({"path": folder.path()}));
    assert!(!self::stated(&test, "main").contains_key("File:notes.txt"));
}

#[test]
fn a_cancelled_pass_indexes_nothing_and_the_next_pass_begins_again() {
    for test in TestEngine::all() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        write(&root, "a.py", "def one():\n    return two()\n\n\ndef two():\n    return 2\n");
        let request = json!({"path": root});
        let mut progress = |_, _| ();
        let mut gone = Context::of(test.fixture.ledger.scope().clone(), &mut progress);
        gone.stop.stop();
        let refused = test.engine.call(&mut gone, "index_directory", request.clone()).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Cancelled);
        assert_eq!(test.call("list", json!({"type": "Function"})).map_or(0, |list| list["total"].as_u64().unwrap()), 0);
        test.ok("index_directory", request.clone());
        assert_eq!(test.ok("list", json!({"type": "Function"}))["total"], 2);
        // The same with an existing index.
        write(&root, "a.py", "def one():\n    return 1\n");
        assert_eq!(
            test.engine.call(&mut gone, "index_directory", request.clone()).unwrap_err().code,
            ErrorCode::Cancelled
        );
        assert_eq!(test.ok("list", json!({"type": "Function"}))["total"], 2);
        test.ok("index_directory", request);
        assert_eq!(test.ok("list", json!({"type": "Function"}))["total"], 1);
    }
}

#[test]
fn files_that_are_not_text_or_cannot_be_read_are_reported() {
    let test = TestEngine::all().remove(0);
    let folder = TempDir::new().unwrap();
    small_program(folder.path());
    fs::write(folder.path().join("app/odd.py"), b"x = 1\n\0\0").unwrap();
    fs::write(folder.path().join("logo.png"), b"\x89PNG\0\0").unwrap();
    fs::write(folder.path().join("data.bin"), b"\0\0\0\0").unwrap();
    let closed = folder.path().join("app/closed.py");
    fs::write(&closed, "y = 2\n").unwrap();
    let is_closed = shut(&closed);
    let report = test.ok("index_directory", json!({"path": folder.path()}));
    assert_eq!(report["not_text"], 3, "{report}");
    let reported = |path: &str| {
        let of = report["diagnostics"].as_array().unwrap().iter().find(|one| one["path"] == path);
        of.map(|one| one["what"].as_str().unwrap().to_owned())
    };
    assert!(reported("app/odd.py").unwrap().starts_with("not text"), "{report}");
    assert_eq!(reported("logo.png"), None, "a picture has no symbols");
    assert!(stated(&test, "main").keys().all(|name| !name.contains("odd.py") && !name.contains("logo.png")));
    assert!(stated(&test, "main").contains_key("Function:app/main.py::main"), "the rest is indexed all the same");
    // A privileged user can read every file.
    if is_closed {
        assert!(reported("app/closed.py").unwrap().starts_with("cannot be read"), "{report}");
    }
}

/// Whether a file can no longer be read.
#[cfg(unix)]
fn shut(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    fs::read(path).is_err()
}

#[cfg(not(unix))]
fn shut(_: &Path) -> bool {
    false
}
