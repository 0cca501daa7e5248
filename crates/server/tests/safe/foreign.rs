//! Folders belong to the project they were given to: other callers can neither read nor change them, whatever they
//! name.

#![cfg(unix)]

use crate::house::{Client, House, SURFACES, Surface};
use crate::repository::{SHOP, contents, dump, repository, scope};
use crate::requests::requests;
use lukasa_engine::{Operation, operations};
use lukasa_server::ProjectFolders;
use lukasa_testkit::{Fixture, fixtures, has_git};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Occurs in every file of the other tenant.
const MARK: &str = "quartzmarmot";
const SOURCE: &str = "def quartzmarmot():\n    return 'quartzmarmot'\n";
const WRITER: [&str; 4] = ["graph:read", "graph:write", "graph:search:read", "tests:run"];

/// Stores on disk. These tests send many requests about folders, so the memory store is left out.
fn lasting() -> impl Iterator<Item = Fixture> {
    fixtures().into_iter().filter(|fixture| fixture.name != "memory")
}

/// A machine with two tenants, each with a working tree and a data folder.
struct Machine {
    house: House,
    root: PathBuf,
    _folder: tempfile::TempDir,
}

impl Machine {
    /// `theirs` has both its folders and has indexed its tree. `given` adds further folders.
    fn new(fixture: Fixture, given: impl FnOnce(ProjectFolders, &Path) -> ProjectFolders) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [theirs, ours] = ["theirs", "ours"].map(|name| root.join(name));
        repository(&theirs.join("tree"), &[("secret.py", SOURCE), ("conftest.py", SOURCE)]);
        repository(&ours.join("tree"), &[("shop.py", SHOP)]);
        for place in [&theirs, &ours] {
            std::fs::create_dir(place.join("data")).unwrap();
            let line =
                json!({"object": {"type": "Service", "key": "web", "title": place.file_name().unwrap().to_str()}});
            std::fs::write(place.join("data/facts.jsonl"), format!("{line}\n")).unwrap();
        }
        // Beside the given folders, and inside them by a link.
        std::fs::write(
            theirs.join("data/secret.jsonl"),
            format!("{}\n", json!({"object": {"type": "Note", "key": MARK}})),
        )
        .unwrap();
        std::fs::write(ours.join("beside.py"), SOURCE).unwrap();
        symlink(&theirs, ours.join("tree/way")).unwrap();
        symlink(&theirs, ours.join("data/way")).unwrap();
        let all = ProjectFolders::default().with_tree(scope("theirs"), theirs.join("tree"));
        let all = all.with_folder(scope("theirs"), theirs.join("data"));
        let house = House::giving(fixture, given(all, &root));
        let ann = house.key("theirs", "ann", &["admin"]);
        house.ok(&ann, "index_directory", json!({}));
        house.ok(&ann, "import", json!({"file": "secret.jsonl"}));
        let slice = house.ok(&ann, "semantic_slice", json!({"symbol": "secret.py::quartzmarmot"}));
        assert!(slice["code"].as_str().is_some_and(|code| code.contains(MARK)), "{slice}");
        Machine { house, root, _folder: folder }
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    /// Paths that lead to the other tenant, or to no tenant.
    fn elsewhere(&self) -> Vec<String> {
        let inside =
            ["theirs/tree", "theirs/tree/secret.py", "theirs/tree/new.jsonl", "theirs/tree/.git", "theirs/data"];
        let data = ["theirs/data/secret.jsonl", "theirs/data/copy.db", "ours/beside.py", "ours", "ours/new.jsonl"];
        let named = inside.iter().chain(&data).map(|name| self.path(name));
        let ways = ["way/tree", "way/tree/secret.py", "way/data/secret.jsonl", "way/new.jsonl", "..", "../beside.py"];
        let ways = ways.into_iter().chain(["../../theirs/tree", "/etc/passwd", "/", "-"]);
        named.chain(ways.map(str::to_owned)).collect()
    }

    /// The code of the answer, after checking that it contains nothing of the other tenant.
    fn code(&self, client: &Client<'_>, surface: Surface, operation: &str, request: &Value) -> String {
        let answer = client.ask(surface, operation, request);
        let kind = self.house.fixture.name;
        assert!(!answer.text.contains(MARK), "{kind} {surface:?}: {operation} {request}\n{}", answer.text);
        answer.code
    }

    /// Calls every operation that takes a path with each of these. Returns the number of calls.
    fn refused(&self, client: &Client<'_>, paths: &[String]) -> usize {
        let mut asked = 0;
        for (operation, field) in places() {
            for (surface, path) in
                SURFACES.into_iter().flat_map(|surface| paths.iter().map(move |path| (surface, path)))
            {
                let request = with(operation, field, path);
                let code = self.code(client, surface, operation.meta.name, &request);
                let kind = self.house.fixture.name;
                assert_eq!(code, "forbidden_path", "{kind} {surface:?}: {} {request}", operation.meta.name);
                asked += 1;
            }
        }
        asked
    }
}

/// Every field of every operation that names a path.
fn places() -> Vec<(&'static Operation, &'static str)> {
    let fields = |operation: &'static Operation| {
        operation.meta.places.iter().chain(operation.meta.files).map(move |field| (operation, *field))
    };
    let all: Vec<_> = operations().iter().flat_map(fields).collect();
    assert!(all.len() >= 14, "{}", all.len());
    all
}

/// A request with this path that is otherwise valid.
fn with(operation: &Operation, field: &str, path: &str) -> Value {
    let mut request = without(operation);
    for required in operation.meta.places.iter().chain(operation.meta.files).filter(|field| operation.requires(field)) {
        request[*required] = json!("facts.jsonl");
    }
    request[field] = json!(path);
    request
}

fn without(operation: &Operation) -> Value {
    let mut request = requests(operation, &[]).remove(0);
    for field in operation.meta.places.iter().chain(operation.meta.files) {
        request.as_object_mut().unwrap().remove(*field);
    }
    if operation.fields().contains_key("no_watch") {
        request["no_watch"] = json!(true);
    }
    request
}

#[test]
fn a_project_without_folders_can_name_no_path() {
    if !has_git() {
        return;
    }
    for fixture in lasting() {
        let machine = Machine::new(fixture, |given, _| given);
        let (house, kind) = (&machine.house, machine.house.fixture.name);
        let (untouched, facts) = (contents(&machine.root), dump(house, "theirs"));
        for scopes in [&WRITER[..], &["admin"]] {
            let client = house.client(&house.key("ours", "eve", scopes));
            house.ok(&client.key, "put", json!({"type": "Service", "key": "web"}));
            let mut paths = machine.elsewhere();
            paths.extend([".", "shop.py", "facts.jsonl", "new.jsonl"].map(str::to_owned));
            paths.extend(["ours/tree", "ours/data/facts.jsonl"].map(|name| machine.path(name)));
            assert!(machine.refused(&client, &paths) > 500);
            // Without a path the operation fails or needs none.
            for (surface, (operation, _)) in
                SURFACES.into_iter().flat_map(|s| places().into_iter().map(move |p| (s, p)))
            {
                machine.code(&client, surface, operation.meta.name, &without(operation));
            }
        }
        assert_eq!(contents(&machine.root), untouched, "{kind}: something was written");
        assert!(dump(house, "theirs") == facts, "{kind}");
        assert!(!dump(house, "ours").contains("shop.py"), "{kind}: something was indexed");
    }
}

fn both(given: ProjectFolders, root: &Path) -> ProjectFolders {
    given.with_tree(scope("ours"), root.join("ours/tree")).with_folder(scope("ours"), root.join("ours/data"))
}

#[test]
fn a_project_with_folders_is_confined_to_them() {
    if !has_git() {
        return;
    }
    for fixture in lasting() {
        let machine = Machine::new(fixture, both);
        let (house, kind) = (&machine.house, machine.house.fixture.name);
        let (untouched, facts) = (contents(&machine.root.join("theirs")), dump(house, "theirs"));
        for scopes in [&WRITER[..], &["admin"]] {
            let client = house.client(&house.key("ours", "eve", scopes));
            house.ok(&client.key, "index_directory", json!({}));
            assert!(machine.refused(&client, &machine.elsewhere()) > 400);
            if scopes == WRITER {
                continue;
            }
            // The paths that the caller may name lead to nothing of the other tenant.
            for (surface, (operation, field)) in
                SURFACES.into_iter().flat_map(|s| places().into_iter().map(move |p| (s, p)))
            {
                machine.code(&client, surface, operation.meta.name, &without(operation));
                for path in [".", "./", &machine.path("ours/tree"), "shop.py", "facts.jsonl", ".git", "tree"] {
                    machine.code(&client, surface, operation.meta.name, &with(operation, field, path));
                }
            }
        }
        assert_eq!(contents(&machine.root.join("theirs")), untouched, "{kind}: something was written");
        assert!(dump(house, "theirs") == facts, "{kind}");
        let own = dump(house, "ours");
        assert!(own.contains("shop.py") && !own.contains(MARK), "{kind}: something beside the tree was indexed");
    }
}

#[test]
fn no_text_of_any_request_shows_the_files_of_another_tenant() {
    if !has_git() {
        return;
    }
    for fixture in lasting() {
        let machine = Machine::new(fixture, both);
        let house = &machine.house;
        let client = house.client(&house.key("ours", "eve", &["admin"]));
        house.ok(&client.key, "index_directory", json!({}));
        let untouched = contents(&machine.root.join("theirs"));
        let names = [machine.path("theirs/tree/secret.py"), "way/tree/secret.py".to_owned()];
        for operation in crate::requests::in_order() {
            for (at, request) in requests(operation, &names).into_iter().enumerate() {
                // Every field on both surfaces, each time with the other of the two names.
                let surface = SURFACES[at % 2];
                machine.code(&client, surface, operation.meta.name, &request);
            }
        }
        assert_eq!(contents(&machine.root.join("theirs")), untouched, "{}", house.fixture.name);
        assert!(!dump(house, "ours").contains(MARK), "{}", house.fixture.name);
    }
}

#[test]
fn a_folder_within_another_repository_gives_nothing_of_that_repository() {
    if !has_git() {
        return;
    }
    for fixture in lasting() {
        let machine = Machine::new(fixture, |given, root| {
            let lent = root.join("theirs/tree/lent");
            std::fs::create_dir(&lent).unwrap();
            std::fs::write(lent.join("own.py"), SHOP).unwrap();
            given.with_tree(scope("ours"), lent)
        });
        let (house, kind) = (&machine.house, machine.house.fixture.name);
        let client = house.client(&house.key("ours", "eve", &["admin"]));
        house.ok(&client.key, "put", json!({"type": "Service", "key": "web"}));
        for surface in SURFACES {
            for (operation, field) in places() {
                machine.code(&client, surface, operation.meta.name, &without(operation));
                for path in [".", "own.py", &machine.path("theirs/tree/lent")] {
                    machine.code(&client, surface, operation.meta.name, &with(operation, field, path));
                }
            }
            assert_eq!(client.ask(surface, "index_directory", &json!({})).code, "forbidden_path", "{kind} {surface:?}");
        }
        assert!(!dump(house, "ours").contains(MARK), "{kind}: the repository around the folder was indexed");
    }
}

#[test]
fn a_backup_of_one_tenant_contains_nothing_of_another() {
    if !has_git() {
        return;
    }
    for fixture in lasting() {
        let machine = Machine::new(fixture, both);
        let (house, kind) = (&machine.house, machine.house.fixture.name);
        let client = house.client(&house.key("ours", "eve", &["admin"]));
        house.ok(&client.key, "index_directory", json!({}));
        for (surface, name) in SURFACES.into_iter().zip(["rest", "mcp"]) {
            for path in [format!("{name}.db"), format!("{name}.jsonl"), name.to_owned()] {
                client.ask(surface, "backup", &json!({"path": path}));
                house.fixture.clock.advance(1);
            }
            client.ok(surface, "export", json!({"file": format!("{name}.all"), "history": true}));
            client.ok(surface, "audit_export", json!({"file": format!("{name}.audit")}));
            assert!(machine.root.join("ours/data").join(format!("{name}.jsonl")).exists(), "{kind} {surface:?}");
        }
        let mut made = 0;
        for (path, (bytes, _)) in contents(&machine.root.join("ours/data")) {
            let holds = bytes.windows(MARK.len()).any(|part| part == MARK.as_bytes());
            assert!(!holds, "{kind}: {} has facts of the other tenant", path.display());
            if path.ends_with("way") || path.ends_with("facts.jsonl") {
                continue;
            }
            let mode = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600, "{kind}: {}", path.display());
            let folder = path.parent().unwrap();
            assert!(folder.ends_with("data") || mode(folder) == 0o700, "{kind}: {}", folder.display());
            made += 1;
        }
        assert!(made >= 8, "{kind}: {made}");
        // A backup contains a whole store with all its projects, so remote callers can neither make nor restore one.
        std::fs::write(machine.root.join("ours/data/copy.db"), b"SQLite format 3\0").unwrap();
        for surface in SURFACES {
            for (operation, path) in [("backup", "new.db"), ("restore_backup", "copy.db")] {
                let refused = client.ask(surface, operation, &json!({"path": path}));
                assert_eq!(refused.code, "not_permitted", "{kind} {surface:?}: {operation}\n{}", refused.text);
            }
            let dump = client.ask(surface, "restore_backup", &json!({"path": "rest.jsonl"}));
            assert_eq!(dump.code, "project_not_empty", "{kind} {surface:?}: {}", dump.text);
        }
    }
}

#[test]
fn pipes_and_devices_are_not_opened() {
    for fixture in lasting() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(data.join("pipe")).status().unwrap().success());
        symlink("/dev/zero", data.join("zero")).unwrap();
        let house = House::giving(fixture, ProjectFolders::default().with_folder(scope("ours"), &data));
        let client = house.client(&house.key("ours", "eve", &["admin"]));
        for (operation, field) in places().into_iter().filter(|(operation, field)| operation.meta.files.contains(field))
        {
            for (surface, path) in SURFACES.into_iter().flat_map(|s| ["pipe", "zero"].map(move |path| (s, path))) {
                let code = client.ask(surface, operation.meta.name, &with(operation, field, path)).code;
                assert_eq!(code, "forbidden_path", "{} {surface:?} {path}", operation.meta.name);
            }
        }
    }
}
