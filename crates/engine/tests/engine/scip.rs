//! Importing relationships from a compiler over those found without one, on every store.

#[path = "../../../code/src/scip/tests/encode.rs"]
#[allow(dead_code, reason = "shared with the tests of the crate that reads indexes")]
pub mod encode;

use crate::test_engine::TestEngine;
use encode::{Doc, Units, index};
use lukasa_model::ErrorCode;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const ROCKET: &str = "export class Rocket {
  launch() { return fuel(); }
}
export function fuel() { return 1; }
";
const MAIN: &str = "import { fuel } from './rocket';
export function start(x: any, y: any) {
  fuel();
  x.launch();
  y.unheard();
}
";

struct Shop {
    folder: TempDir,
    file: PathBuf,
}

impl Shop {
    fn new() -> Shop {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("index.scip");
        fs::create_dir(folder.path().join("tree")).unwrap();
        let shop = Shop { folder, file };
        shop.source("rocket.ts", ROCKET);
        shop.source("main.ts", MAIN);
        shop
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    fn source(&self, path: &str, text: &str) {
        let place = self.root().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, text).unwrap();
        // The files are older than any index of them.
        touch(&place, SystemTime::now() - Duration::from_secs(100));
    }

    fn index(&self, documents: &[Doc]) {
        fs::write(&self.file, index("scip-typescript", "file:///elsewhere", documents, &[])).unwrap();
    }

    fn indexed(&self, test: &TestEngine) {
        test.ok("index_directory", json!({"path": self.root()}));
        test.fixture.clock.advance(1);
    }

    fn import(&self, test: &TestEngine) -> Value {
        test.ok("import_scip", json!({"file": self.file, "path": self.root()}))
    }
}

fn touch(place: &Path, when: SystemTime) {
    File::options().write(true).open(place).unwrap().set_modified(when).unwrap();
}

fn own(rest: &str) -> String {
    format!("scip-typescript npm shop 1.0.0 {rest}")
}

const SHIP: &str = "scip-typescript npm ships 2.0.0 `index.d.ts`/Ship#launch().";

fn rocket() -> Doc {
    Doc::new("rocket.ts", ROCKET, Units::Utf16)
        .define(1, "Rocket", &own("`rocket.ts`/Rocket#"))
        .define(2, "launch", &own("`rocket.ts`/Rocket#launch()."))
        .mention(2, "fuel", &own("`rocket.ts`/fuel()."))
        .define(4, "fuel", &own("`rocket.ts`/fuel()."))
}

fn main() -> Doc {
    Doc::new("main.ts", MAIN, Units::Utf16)
        .mention(1, "fuel", &own("`rocket.ts`/fuel()."))
        .define(2, "start", &own("`main.ts`/start()."))
        .mention(3, "fuel", &own("`rocket.ts`/fuel()."))
        .mention(4, "launch", SHIP)
}

/// What something calls: key, derivation, confidence.
fn calls(test: &TestEngine, key: &str, as_of: Option<&str>) -> Vec<String> {
    let got = test.ok("get", json!({"ref": key, "as_of": as_of}));
    let links = got["links"].as_array().unwrap().iter();
    let mut calls: Vec<String> = links
        .filter(|l| l["type"] == "CALLS" && l["direction"] == "out")
        .map(|l| {
            format!("{} {} {}", l["other"]["key"].as_str().unwrap(), l["derivation"].as_str().unwrap(), l["confidence"])
        })
        .collect();
    calls.sort();
    calls
}

fn why(done: &Value) -> Vec<String> {
    let diagnostics = done["diagnostics"].as_array().unwrap().iter();
    diagnostics.map(|d| format!("{}: {}", d["path"].as_str().unwrap(), d["what"].as_str().unwrap())).collect()
}

#[test]
fn the_compiler_knows_better() {
    for test in TestEngine::all() {
        let shop = Shop::new();
        shop.indexed(&test);
        let start = "main.ts::start";
        let before = ["rocket.ts::Rocket::launch unique_name 0.4", "rocket.ts::fuel import 0.95"];
        assert_eq!(calls(&test, start, None), before);
        let tx = test.ok("log", json!({}))["transactions"][0]["tx"].as_u64().unwrap();
        shop.index(&[rocket(), main()]);
        let done = shop.import(&test);
        assert_eq!(calls(&test, start, None), ["npm:ships::Ship.launch compiler 1.0", "rocket.ts::fuel compiler 1.0"]);
        assert_eq!(calls(&test, start, Some(&format!("tx:{tx}"))), before, "what was known before stays known");
        assert_eq!(calls(&test, "rocket.ts::Rocket::launch", None), ["rocket.ts::fuel compiler 1.0"]);
        assert_eq!((&done["upgraded"], &done["added"], &done["ended"]), (&json!(2), &json!(1), &json!(1)));
        assert_eq!((&done["documents"], &done["skipped_documents"]), (&json!(2), &json!(0)));
        assert_eq!((&done["matched_definitions"], &done["unmatched_definitions"]), (&json!(4), &json!(0)));
        assert_eq!(done["relationships"], json!({"CALLS": 3}));
        let last = &test.ok("log", json!({}))["transactions"][0];
        assert_eq!((&last["kind"], &last["reason"]), (&json!("import"), &json!("SCIP index by scip-typescript 1.2.3")));
        assert_eq!(last["tx"], done["tx"]);
        assert_eq!(test.ok("get", json!({"ref": "Package:npm:ships"}))["thing"]["title"], "ships");

        test.fixture.clock.advance(1);
        let again = shop.import(&test);
        assert_eq!((&again["tx"], &again["unchanged"], &again["ended"]), (&Value::Null, &json!(3), &json!(0)));
        let index = test.ok("index_directory", json!({"path": shop.root()}));
        assert_eq!(index["tx"], Value::Null, "nothing changed, so the facts of the compiler stay");
        assert_eq!(calls(&test, start, None).len(), 2);
        test.ok("verify", json!({}));
    }
}

#[test]
fn another_branch_keeps_its_own() {
    for test in TestEngine::all() {
        let shop = Shop::new();
        shop.indexed(&test);
        test.ok("branch_create", json!({"name": "trial"}));
        test.fixture.clock.advance(1);
        shop.index(&[rocket(), main()]);
        test.ok("import_scip", json!({"file": shop.file, "path": shop.root(), "branch": "trial"}));
        assert!(calls(&test, "main.ts::start", None)[1].contains("import"), "main is as it was");
        let got = test.ok("get", json!({"ref": "main.ts::start", "branch": "trial"}));
        let derived = got["links"].as_array().unwrap().iter().filter(|l| l["derivation"] == "compiler").count();
        assert_eq!(derived, 2);
        let missing = json!({"file": shop.file, "path": shop.root(), "branch": "nowhere"});
        assert_eq!(test.call("import_scip", missing).unwrap_err().code, ErrorCode::UnknownBranch);
    }
}

#[test]
fn documents_that_do_not_fit_are_left_out_and_reported() {
    for test in TestEngine::all() {
        let shop = Shop::new();
        shop.indexed(&test);
        shop.source("new.ts", "export function late() {}\n");
        shop.source("notes.txt", "no source\n");
        let late = Doc::new("new.ts", "export function late() {}\n", Units::Utf16);
        let strange = [
            Doc::new("gone.ts", "function gone() {}", Units::Utf16).define(1, "gone", &own("`gone.ts`/gone().")),
            Doc::new("../outside.ts", "", Units::Utf16),
            Doc::new("/etc/passwd", "", Units::Utf16),
            Doc::new("", "", Units::Utf16),
        ];
        // Written again after the index was made.
        let main = main().mention(5, "unheard", &own("`gone.ts`/gone()."));
        shop.index(&[&[rocket(), main.clone(), late], strange.as_slice()].concat());
        touch(&shop.root().join("rocket.ts"), SystemTime::now() + Duration::from_secs(100));
        let done = shop.import(&test);
        assert_eq!(
            why(&done),
            [
                ": not a path below the root",
                "../outside.ts: not a path below the root",
                "/etc/passwd: not a path below the root",
                "gone.ts: missing: the index was made of another working tree, or the file is gone",
                "new.ts: not on the branch: run `lukasa index` first",
                "rocket.ts: changed since the index was made",
            ]
        );
        // Symbols that these define belong to the program, so they do not become names of packages.
        assert_eq!((&done["skipped_documents"], &done["relationships"]), (&json!(6), &json!({"CALLS": 1})));
        assert_eq!(test.ok("list", json!({"type": "External"}))["objects"].as_array().unwrap().len(), 1);

        // If the index contains the text, the text is compared instead of the time.
        test.fixture.clock.advance(1);
        shop.index(&[rocket().with_text(), main.with_text()]);
        touch(&shop.root().join("rocket.ts"), SystemTime::now() + Duration::from_secs(100));
        assert_eq!(shop.import(&test)["skipped_documents"], 0);
        shop.source("rocket.ts", &ROCKET.replace("return 1", "return 2"));
        assert_eq!(why(&shop.import(&test)), ["rocket.ts: changed since the index was made"]);
        shop.index(&[rocket()]);
        assert_eq!(
            why(&shop.import(&test)),
            ["rocket.ts: the branch has another content of it: run `lukasa index` first"]
        );
    }
}

#[test]
fn an_index_of_a_part_is_put_where_it_belongs() {
    for test in TestEngine::all() {
        let shop = Shop::new();
        for (path, text) in [("packages/my web/rocket.ts", ROCKET), ("packages/my web/main.ts", MAIN)] {
            shop.source(path, text);
        }
        shop.indexed(&test);
        let root = fs::canonicalize(shop.root()).unwrap();
        let url = format!("file://{}/packages/my%20web", root.display());
        fs::write(&shop.file, index("scip-typescript", &url, &[rocket(), main()], &[])).unwrap();
        shop.import(&test);
        let web = calls(&test, "packages/my web/main.ts::start", None);
        assert!(web.contains(&"packages/my web/rocket.ts::fuel compiler 1.0".to_owned()), "{web:?}");
        assert!(calls(&test, "main.ts::start", None).iter().all(|call| !call.contains("compiler")));
    }
}

#[test]
fn files_that_are_no_index_change_nothing() {
    for test in TestEngine::all() {
        let shop = Shop::new();
        shop.indexed(&test);
        let code = |request: Value| test.call("import_scip", request).unwrap_err().code;
        let request = json!({"file": shop.file, "path": shop.root()});
        assert_eq!(code(request.clone()), ErrorCode::FileFailure);
        fs::write(&shop.file, "{\"metadata\": {}}").unwrap();
        let error = test.call("import_scip", request.clone()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidScip);
        assert!(error.hint.is_some());
        let whole = index("scip-typescript", "file:///w", &[rocket(), main()], &[]);
        fs::write(&shop.file, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(code(request.clone()), ErrorCode::InvalidScip);
        // Holes cost nothing on disk.
        File::create(&shop.file).unwrap().set_len((1 << 30) + 1).unwrap();
        assert_eq!(code(request), ErrorCode::ScipTooLarge);
        fs::write(&shop.file, &whole).unwrap();
        assert_eq!(code(json!({"file": shop.file, "path": shop.root().join("nowhere")})), ErrorCode::NoFolder);
        // The types of code, and the index.
        assert_eq!(test.ok("log", json!({}))["transactions"].as_array().unwrap().len(), 2);
    }
}
