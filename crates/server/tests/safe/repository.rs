//! Small repositories, and the state of a project for comparison.

use crate::house::House;
use lukasa_model::{Scope, Tx};
use lukasa_testkit::git;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Two functions, one of which calls the other.
pub const SHOP: &str = "def price():\n    return 7\n\n\ndef total():\n    return price()\n";

pub fn scope(tenant: &str) -> Scope {
    Scope::new(tenant, "shop").unwrap()
}

/// A repository with these files, all committed on `main`.
pub fn repository(root: &Path, files: &[(&str, &str)]) {
    std::fs::create_dir_all(root).unwrap();
    for (name, text) in files {
        std::fs::write(root.join(name), text).unwrap();
    }
    git(root, &["init", "-q", "-b", "main"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "--allow-empty", "-m", "first"]);
}

/// Everything ever written to the project `shop` of a tenant.
pub fn dump(house: &House, tenant: &str) -> String {
    let mut bytes = Vec::new();
    house.fixture.project(tenant, "shop").dump(&mut bytes, &mut |_, _| ()).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The last transaction of the project `shop` of a tenant; None if it is empty.
pub fn head(house: &House, tenant: &str) -> Option<Tx> {
    house.fixture.project(tenant, "shop").head().ok().map(|head| head.tx)
}

/// Every file below a folder with its contents and modification time; links are not followed.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let (mut found, mut left) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let about = entry.metadata().unwrap();
            match about.is_dir() {
                true => left.push(entry.path()),
                false => {
                    let bytes = if about.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
                    found.insert(entry.path(), (bytes, about.modified().unwrap()));
                }
            }
        }
    }
    found
}
