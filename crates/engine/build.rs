//! Names this build by the sources that decide what kept indexes hold, so that those of another build are not read.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

fn main() {
    let mut hasher = DefaultHasher::new();
    for folder in ["../search/src", "../graph/src", "src/features/search", "src/features/code/unsearched.rs"] {
        add(Path::new(folder), &mut hasher);
        println!("cargo:rerun-if-changed={folder}");
    }
    println!("cargo:rustc-env=LUKASA_INDEX_BUILD={:016x}", hasher.finish());
}

fn add(path: &Path, hasher: &mut DefaultHasher) {
    if path.is_dir() {
        let mut inside: Vec<_> = std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        inside.sort();
        inside.iter().for_each(|path| add(path, hasher));
        return;
    }
    path.hash(hasher);
    // Cargo would run this again, and build everything above, each time it is asked for a file that is not there.
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.hash(hasher);
}
