//! Importing past commits: every commit and every date shows the code as it was then, and the head stays the same.

use crate::made::Made;
use crate::test_engine::TestEngine;
use gix::ObjectId;
use gix::objs::tree::EntryKind;
use lukasa_engine::Engine;
use lukasa_model::ErrorCode;
use lukasa_store::ledger::ViewSpec;
use lukasa_store::{Clock, VersionFields};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Files of a commit, by path.
type Files = BTreeMap<&'static str, String>;

const CALLER: &str = "from lib.shop import Shop, sell\n\n\ndef main():\n    Shop().open()\n    sell()\n";
const SHOP: &str = "import requests\n\n\nclass Shop:\n    def open(self):\n        requests.get('x')\n\n\ndef sell():\n    helper()\n\n\ndef helper():\n    pass\n";

/// The files of a program, commit by commit.
fn story() -> Vec<Files> {
    let mut files = Files::new();
    let mut story = Vec::new();
    let mut then = |files: &Files| story.push(files.clone());
    files.insert("app.py", CALLER.into());
    files.insert("lib/__init__.py", String::new());
    files.insert("lib/shop.py", SHOP.into());
    files.insert("web/sum.ts", "export function add(a: number, b: number) { return a + b; }\n".into());
    files.insert("web/index.ts", "import { add } from './sum';\nexport const total = () => add(1, 2);\n".into());
    files.insert("README.md", "# Shop\n".into());
    then(&files);
    // Names in an unchanged file are resolved differently.
    files.insert(
        "lib/shop.py",
        SHOP.replace("def sell", "def sell_all").replace("import requests", "import urllib3 as requests"),
    );
    then(&files);
    // Deleted, with text beside it.
    files.remove("web/index.ts");
    files.insert("README.md", "# The shop\n".into());
    then(&files);
    // Renamed.
    let sum = files.remove("web/sum.ts").unwrap();
    files.insert("web/plus.ts", sum);
    then(&files);
    // Ignored from now on; changed back; and a manifest.
    files.insert(".lukasaignore", "web/\n".into());
    files.insert("lib/shop.py", SHOP.into());
    files.insert("package.json", "{\"name\": \"shop\"}\n".into());
    then(&files);
    // Added again.
    files.remove(".lukasaignore");
    files.insert("web/index.ts", "import { add } from './plus';\nexport const total = () => add(2, 2);\n".into());
    files.insert("data.bin", "\0\0".into());
    then(&files);
    // Only files that are not indexed.
    files.insert("data.bin", "\0\0\0".into());
    then(&files);
    files.insert("app.py", format!("{CALLER}\n\ndef again():\n    main()\n"));
    files.remove("package.json");
    then(&files);
    story
}

fn commit_at(made: &Made, branch: &str, n: u32, parents: &[ObjectId], files: &Files) -> ObjectId {
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, EntryKind::Blob, text.as_str())).collect();
    made.commit(branch, n, parents, &files)
}

/// Commits the story on a branch, at the given times.
fn commit_all(made: &Made, story: &[Files], times: impl Iterator<Item = u32>) -> Vec<ObjectId> {
    let mut commits: Vec<ObjectId> = Vec::new();
    for (files, time) in story.iter().zip(times) {
        let parents: Vec<ObjectId> = commits.last().copied().into_iter().collect();
        commits.push(commit_at(made, "main", time, &parents, files));
    }
    commits
}

fn check_out(root: &Path, files: &Files) {
    for entry in fs::read_dir(root).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_name() == ".git" {
        } else if entry.path().is_dir() {
            fs::remove_dir_all(entry.path()).unwrap();
        } else {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    for (path, text) in files {
        let place = root.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
}

fn on_main(made: &Made, files: &Files) {
    check_out(&made.root, files);
    made.file("HEAD", "ref: refs/heads/main\n");
}

fn index(test: &TestEngine, root: &Path, history: Option<usize>) -> Value {
    test.fixture.clock.advance(1);
    test.ok("index_directory", json!({"path": root, "history": history}))
}

/// Everything visible at a moment, by name, except commits and renames, which are not part of the code.
fn stated(test: &TestEngine, spec: &ViewSpec) -> BTreeMap<String, String> {
    everything(test, spec)
        .into_iter()
        .filter(|(name, _)| !name.starts_with("Commit:") && !name.contains("RENAMED_FROM"))
        .collect()
}

fn everything(test: &TestEngine, spec: &ViewSpec) -> BTreeMap<String, String> {
    let ledger = &test.fixture.ledger;
    let view = ledger.view(spec).unwrap();
    let (mut names, mut out) = (BTreeMap::new(), BTreeMap::new());
    for row in ledger.stream_view(&view, VersionFields::Content).unwrap() {
        let row = row.unwrap();
        if row.is_system() {
            continue;
        }
        let name = match &row.thing.ends {
            None => row.thing.name(),
            Some(ends) => {
                let name = |no| names.get(no).map_or("(ended)", String::as_str);
                format!("{} -{}-> {}", name(&ends.src), row.thing.type_name, name(&ends.dst))
            }
        };
        names.insert(row.thing.no, name.clone());
        out.insert(name, row.statement.content.clone().unwrap_or_default().to_string());
    }
    out
}

/// The facts of a fresh index of these files.
fn fresh(files: &Files) -> BTreeMap<String, String> {
    let test = TestEngine::all().remove(0);
    let folder = tempfile::tempdir().unwrap();
    check_out(folder.path(), files);
    index(&test, folder.path(), None);
    stated(&test, &ViewSpec::on("main"))
}

fn at_commit(commit: &ObjectId) -> ViewSpec {
    ViewSpec::on("main").as_of(&format!("commit:{commit}"))
}

fn at_second(second: u32) -> ViewSpec {
    ViewSpec::on("main").as_of(&format!("time:{}", lukasa_model::Time(i64::from(second) * 1_000_000 + 500_000)))
}

/// Removes packages without relationships: passes over a working tree keep those until everything is rebuilt.
fn used(stated: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let outside = |name: &str| ["Package:", "External:"].iter().any(|kind| name.starts_with(kind));
    let leads_to = |name: &str| stated.keys().any(|edge| edge.ends_with(&format!("-> {name}")));
    stated.iter().filter(|(name, _)| !outside(name) || leads_to(name)).map(|(n, c)| (n.clone(), c.clone())).collect()
}

#[track_caller]
fn same(what: &str, found: &BTreeMap<String, String>, want: &BTreeMap<String, String>) {
    let missing: Vec<_> = want.iter().filter(|(name, _)| !found.contains_key(*name)).collect();
    let extra: Vec<_> = found.iter().filter(|(name, _)| !want.contains_key(*name)).collect();
    assert!(missing.is_empty() && extra.is_empty(), "{what}: missing {missing:#?}, extra {extra:#?}");
    for (name, content) in want {
        assert_eq!(&found[name], content, "{what}: {name}");
    }
}

/// The view of every commit, by its id and by a date right after it, equals a fresh index of it.
fn check(test: &TestEngine, commits: &[ObjectId], story: &[Files], times: &[u32]) {
    for (n, (commit, files)) in commits.iter().zip(story).enumerate() {
        let want = fresh(files);
        let name = format!("commit {n} on {}", test.fixture.name);
        let imported = n + 1 < commits.len();
        let exactly = |stated: &BTreeMap<String, String>| if imported { stated.clone() } else { used(stated) };
        same(&name, &exactly(&stated(test, &at_commit(commit))), &exactly(&want));
        same(&format!("{name}, by date"), &exactly(&stated(test, &at_second(times[n] + 1))), &exactly(&want));
        let own = everything(test, &at_commit(commit));
        assert!(own.contains_key(&format!("Commit:{commit}")), "{name} is an object");
    }
}

#[test]
fn every_commit_shows_its_own_code_and_the_head_stays() {
    let story = story();
    let times: Vec<u32> = (1..=story.len() as u32).map(|n| n * 10).collect();
    let at_once = TestEngine::all().into_iter().map(|test| (test, true));
    for (test, at_once) in at_once.chain(TestEngine::all().into_iter().map(|test| (test, false))) {
        let made = Made::new();
        let commits = commit_all(&made, &story, times.iter().copied());
        on_main(&made, story.last().unwrap());
        let (before, report) = if at_once {
            let report = index(&test, &made.root, Some(100));
            assert_eq!(report["commit"], json!(commits.last().unwrap().to_string()), "{report}");
            (None, report)
        } else {
            index(&test, &made.root, None);
            (Some(everything(&test, &ViewSpec::on("main"))), index(&test, &made.root, Some(100)))
        };
        assert_eq!(report["history"]["commits"], story.len() - 1, "{report}");
        check(&test, &commits, &story, &times);
        let head = everything(&test, &ViewSpec::on("main"));
        assert_eq!(head.keys().filter(|name| name.starts_with("Commit:")).count(), 1, "the one that was indexed");
        if let Some(before) = before {
            assert_eq!(before, head);
        }
        // Importing again writes nothing, in this process and in a new one.
        let last = test.fixture.ledger.head().unwrap().tx;
        let report = index(&test, &made.root, Some(100));
        let counts = (&report["history"]["commits"], &report["history"]["already_there"]);
        assert_eq!(counts, (&json!(0), &json!(story.len() - 1)), "{report}");
        assert_eq!(test.fixture.ledger.head().unwrap().tx, last);
        let clock = Arc::clone(&test.fixture.clock) as Arc<dyn Clock>;
        let engine = Engine::new(Arc::clone(&test.fixture.store), clock, std::env::temp_dir());
        let test = TestEngine { engine, ..test };
        assert_eq!(index(&test, &made.root, Some(100))["tx"], Value::Null);
        assert_eq!(test.fixture.ledger.head().unwrap().tx, last);
        test.ok("verify", json!({}));
    }
}

#[test]
fn questions_take_a_commit_and_so_do_differences() {
    let story = story();
    for test in TestEngine::all() {
        let made = Made::new();
        let commits = commit_all(&made, &story, (1..).map(|n| n * 10));
        on_main(&made, story.last().unwrap());
        index(&test, &made.root, Some(100));
        let callers = |name: &str, commit: usize| {
            let as_of = format!("commit:{}", &commits[commit].to_string()[..12]);
            let answer = test.ok("get_callers", json!({"ref": name, "as_of": as_of}));
            let keys = answer["callers"].as_array().unwrap().iter().map(|c| c["key"].as_str().unwrap().to_owned());
            keys.collect::<Vec<_>>()
        };
        assert_eq!(callers("Function:lib/shop.py::sell", 0), ["app.py::main"]);
        assert!(callers("Function:lib/shop.py::sell_all", 1).is_empty());
        assert_eq!(callers("Function:app.py::main", 7), ["app.py::again"]);
        let renamed = test.ok("get", json!({"ref": "File:web/sum.ts", "as_of": commits[3].to_string()}));
        assert!(renamed.to_string().contains("web/plus.ts"), "the old name leads to the new one: {renamed}");
        let since = |commit: usize| test.ok("diff_since", json!({"since": format!("commit:{}", commits[commit])}));
        let added = since(6).to_string();
        assert!(added.contains("app.py::again") && !added.contains("sell_all"), "{added}");
        assert!(since(1).to_string().contains("sell_all"));
    }
}

#[test]
fn more_can_be_imported_later_before_and_between() {
    let story = story();
    let times: Vec<u32> = (1..=story.len() as u32).map(|n| n * 10).collect();
    for test in TestEngine::all() {
        let made = Made::new();
        let commits = commit_all(&made, &story[..4], times.iter().copied());
        on_main(&made, &story[3]);
        let report = index(&test, &made.root, Some(1));
        assert_eq!(report["history"]["commits"], 1, "{report}");
        assert!(test.call("get", json!({"ref": "File:app.py", "as_of": format!("commit:{}", commits[1])})).is_err());
        // The repository moves on, and only its last commit is indexed.
        let mut commits = commits;
        for n in 4..story.len() {
            commits.push(commit_at(&made, "main", times[n], &[commits[n - 1]], &story[n]));
        }
        on_main(&made, story.last().unwrap());
        index(&test, &made.root, None);
        let head = everything(&test, &ViewSpec::on("main"));
        let report = index(&test, &made.root, Some(100));
        assert_eq!(report["history"]["commits"], story.len() - 3, "{report}");
        assert_eq!(report["history"]["already_there"], 2, "{report}");
        check(&test, &commits, &story, &times);
        assert_eq!(everything(&test, &ViewSpec::on("main")), head);
        test.ok("verify", json!({}));
    }
}

#[test]
fn the_commit_under_a_changed_tree_is_imported_and_the_tree_stays() {
    let story = story();
    let times: Vec<u32> = (1..=story.len() as u32).map(|n| n * 10).collect();
    for test in TestEngine::all() {
        let made = Made::new();
        let commits = commit_all(&made, &story, times.iter().copied());
        let mut changed = story.last().unwrap().clone();
        changed.insert("app.py", "def mine():\n    pass\n".into());
        on_main(&made, &changed);
        assert_eq!(index(&test, &made.root, None)["commit"], Value::Null);
        let before = everything(&test, &ViewSpec::on("main"));
        let report = index(&test, &made.root, Some(2));
        assert_eq!(report["history"]["commits"], 3, "{report}");
        let shown = story.len() - 3;
        check(&test, &commits[shown..], &story[shown..], &times[shown..]);
        assert_eq!(everything(&test, &ViewSpec::on("main")), before);
        // Part of it is committed: the files stay, and so does what is visible.
        let part = commit_at(&made, "main", 1_800_000_000, &[*commits.last().unwrap()], &story[0]);
        let report = index(&test, &made.root, Some(1));
        assert_eq!((&report["tx"], &report["history"]["commits"]), (&Value::Null, &json!(1)), "{report}");
        assert_eq!(report["history"]["diagnostics"].as_array().unwrap().len(), 1, "it lies in the future: {report}");
        same("the part", &stated(&test, &at_commit(&part)), &fresh(&story[0]));
        assert_eq!(everything(&test, &ViewSpec::on("main")), before);
        check(&test, &commits[shown..], &story[shown..], &times[shown..]);
    }
}

#[test]
fn commit_times_that_decrease_are_adjusted() {
    let story = story();
    let test = TestEngine::all().remove(0);
    let made = Made::new();
    let commits = commit_all(&made, &story, [50, 20, 20, 70, 60, 65, 80, 90].into_iter());
    on_main(&made, story.last().unwrap());
    let report = index(&test, &made.root, Some(100));
    assert_eq!(report["history"]["commits"], story.len() - 1, "{report}");
    let diagnostics = report["history"]["diagnostics"].as_array().unwrap();
    assert_eq!(diagnostics.len(), 4, "{diagnostics:?}");
    for (commit, files) in commits.iter().zip(&story) {
        same(&commit.to_string(), &stated(&test, &at_commit(commit)), &fresh(files));
    }
    same("between", &stated(&test, &at_second(75)), &fresh(&story[5]));
}

#[test]
fn a_merge_counts_as_its_first_parent_line() {
    let story = story();
    let test = TestEngine::all().remove(0);
    let made = Made::new();
    let root = commit_at(&made, "main", 10, &[], &story[0]);
    let side = commit_at(&made, "side", 20, &[root], &story[2]);
    let own = commit_at(&made, "main", 30, &[root], &story[1]);
    let merge = commit_at(&made, "main", 40, &[own, side], &story[3]);
    let last = commit_at(&made, "main", 50, &[merge], &story[4]);
    on_main(&made, &story[4]);
    assert_eq!(index(&test, &made.root, Some(100))["history"]["commits"], 3);
    let commits = [root, own, merge, last];
    let stories = [&story[0], &story[1], &story[3], &story[4]].map(Clone::clone);
    check(&test, &commits, &stories, &[10, 30, 40, 50]);
    assert!(test.call("get", json!({"ref": "File:app.py", "as_of": format!("commit:{side}")})).is_err());
}

#[test]
fn a_branch_imports_what_its_own_line_lacks() {
    let story = story();
    for test in TestEngine::all() {
        let made = Made::new();
        let commits = commit_all(&made, &story[..3], (1..).map(|n| n * 10));
        on_main(&made, &story[2]);
        index(&test, &made.root, Some(1));
        let on_main_before = everything(&test, &ViewSpec::on("main"));
        let first = commit_at(&made, "side", 50, &[commits[2]], &story[4]);
        let second = commit_at(&made, "side", 60, &[first], &story[5]);
        check_out(&made.root, &story[5]);
        made.file("HEAD", "ref: refs/heads/side\n");
        let report = index(&test, &made.root, Some(100));
        let counts = (&report["history"]["commits"], &report["history"]["already_there"]);
        assert_eq!(counts, (&json!(2), &json!(2)), "{report}");
        for (commit, n) in [(commits[0], 0), (commits[1], 1), (commits[2], 2), (first, 4), (second, 5)] {
            let spec = ViewSpec::on("side").as_of(&format!("commit:{commit}"));
            same(&format!("{n} on {}", test.fixture.name), &used(&stated(&test, &spec)), &used(&fresh(&story[n])));
        }
        assert_eq!(everything(&test, &ViewSpec::on("main")), on_main_before);
    }
}

#[test]
fn too_many_commits_and_folders_without_git_are_refused() {
    let test = TestEngine::all().remove(0);
    let folder = tempfile::tempdir().unwrap();
    let call = |history: u32| test.call("index_directory", json!({"path": folder.path(), "history": history}));
    assert_eq!(call(1_001).unwrap_err().code, ErrorCode::TooManyCommits);
    assert_eq!(call(1).unwrap_err().code, ErrorCode::NoRepository);
    assert!(test.fixture.ledger.head().is_err(), "nothing was written");
}

/// More files than one batch takes, so that the commit comes in parts.
#[test]
fn a_large_commit_is_imported_in_parts() {
    for test in TestEngine::all() {
        let made = Made::new();
        let names: Vec<&'static str> = (0..230).map(|n| &*Box::leak(format!("pkg/m{n}.py").into_boxed_str())).collect();
        let text = |n: usize, extra: &str| {
            let before = if n == 0 { String::new() } else { format!("from pkg.m{} import f{}\n\n\n", n - 1, n - 1) };
            let call = if n == 0 { "pass".into() } else { format!("f{}()", n - 1) };
            format!("{before}def f{n}():\n    {call}\n{extra}")
        };
        let first: Files = names.iter().enumerate().map(|(n, name)| (*name, text(n, ""))).collect();
        let second: Files =
            names.iter().enumerate().map(|(n, name)| (*name, text(n, "\n\ndef more():\n    pass\n"))).collect();
        let story = [first, second];
        let commits = commit_all(&made, &story, [10, 20].into_iter());
        on_main(&made, &story[1]);
        assert_eq!(index(&test, &made.root, Some(5))["history"]["commits"], 1);
        check(&test, &commits, &story, &[10, 20]);
        test.ok("verify", json!({}));
    }
}

/// After any order of commits, edits, passes and imports, every commit shows its own files.
#[test]
fn any_order_of_commits_edits_and_imports_ends_the_same() {
    const PATHS: [&str; 5] = ["a.py", "b.py", "c.py", "p/__init__.py", "p/d.py"];
    const TEXTS: [&str; 5] = [
        "def f():\n    g()\n\n\ndef g():\n    pass\n",
        "from a import f\nimport requests\n\n\ndef h():\n    f()\n    requests.get('x')\n",
        "import b\n\n\nclass K:\n    def m(self):\n        b.h()\n",
        "from p.d import g, K\n\n\ndef z():\n    K().m()\n    g()\n",
        "from c import K\n\n\nclass L(K):\n    def n(self):\n        self.m()\n",
    ];
    for seed in 1..=8_u64 {
        let test = TestEngine::all().remove((seed % 2) as usize);
        let made = Made::new();
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut draw = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % below as u64) as usize
        };
        let (mut commits, mut story) = (Vec::<ObjectId>::new(), Vec::<Files>::new());
        let mut files = Files::new();
        files.insert("a.py", TEXTS[0].into());
        made.file("HEAD", "ref: refs/heads/main\n");
        for step in 0..30 {
            let now = test.fixture.clock.advance(1 + draw(50) as i64);
            match if step == 0 { 0 } else { draw(8) } {
                0..=2 => {
                    // Sometimes the committer's clock is wrong.
                    let time = (now.0 / 1_000_000) as u32 + if draw(6) == 0 { draw(200) as u32 } else { 0 } - 100;
                    let parents: Vec<ObjectId> = commits.last().copied().into_iter().collect();
                    commits.push(commit_at(&made, "main", time, &parents, &files));
                    story.push(files.clone());
                }
                3..=5 => {
                    let path = PATHS[draw(PATHS.len())];
                    if draw(3) == 0 && files.len() > 1 {
                        files.remove(path);
                    } else {
                        files.insert(path, TEXTS[draw(TEXTS.len())].into());
                    }
                }
                6 => {
                    check_out(&made.root, &files);
                    index(&test, &made.root, None);
                }
                _ => {
                    check_out(&made.root, &files);
                    index(&test, &made.root, Some(draw(4)));
                }
            }
        }
        check_out(&made.root, &files);
        index(&test, &made.root, None);
        let head = everything(&test, &ViewSpec::on("main"));
        let report = index(&test, &made.root, Some(1_000));
        assert_eq!(report["history"]["left_out"], 0, "seed {seed}: {report}");
        assert_eq!(everything(&test, &ViewSpec::on("main")), head, "seed {seed}");
        for (n, (commit, files)) in commits.iter().zip(&story).enumerate() {
            let name = format!("commit {n} of seed {seed}");
            same(&name, &used(&stated(&test, &at_commit(commit))), &used(&fresh(files)));
        }
        test.ok("verify", json!({}));
    }
}
