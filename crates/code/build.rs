//! Computes a hash of this crate's sources, so that facts cached by another build are not reused.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

fn main() {
    let mut hasher = DefaultHasher::new();
    add(Path::new("src"), &mut hasher);
    add(Path::new("Cargo.toml"), &mut hasher);
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rustc-env=LUKASA_CODE_BUILD={:016x}", hasher.finish());
}

fn add(path: &Path, hasher: &mut DefaultHasher) {
    if path.is_dir() {
        let mut inside: Vec<_> = std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        inside.sort();
        inside.iter().for_each(|path| add(path, hasher));
        return;
    }
    path.hash(hasher);
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).hash(hasher);
}
