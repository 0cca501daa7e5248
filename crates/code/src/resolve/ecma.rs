//! JavaScript and TypeScript modules: relative paths, `package.json` and `tsconfig.json`.

use super::imports::normalise;
use super::program::{Program, join};
use super::value::FileId;

#[derive(Default)]
pub struct Packages {}

/// Tried in this order after a path without an extension, and for a folder's `index`.
const EXTENSIONS: [&str; 9] = ["ts", "tsx", "d.ts", "js", "jsx", "mjs", "cjs", "mts", "cts"];

impl Packages {
    pub fn read(_program: &Program, _manifests: &[(String, String)]) -> Packages {
        Packages {}
    }

    pub fn resolve(&self, program: &Program, file: FileId, module: &str) -> Option<FileId> {
        let here = program.file(file);
        if module.starts_with("./") || module.starts_with("../") || module == "." || module == ".." {
            return at(program, &normalise(&join(&here.folder, module)));
        }
        None
    }
}

/// The file a path means: itself, with an extension, or its `index`.
fn at(program: &Program, path: &str) -> Option<FileId> {
    if let Some(file) = program.find_file(path) {
        return Some(file);
    }
    for extension in EXTENSIONS {
        if let Some(file) = program.find_file(&format!("{path}.{extension}")) {
            return Some(file);
        }
    }
    // TypeScript is imported by the name of what it is compiled to.
    for (written, meant) in
        [(".js", [".ts", ".tsx", ".d.ts"]), (".mjs", [".mts", ".d.mts", ""]), (".jsx", [".tsx", "", ""])]
    {
        if let Some(stem) = path.strip_suffix(written) {
            for extension in meant.iter().filter(|e| !e.is_empty()) {
                if let Some(file) = program.find_file(&format!("{stem}{extension}")) {
                    return Some(file);
                }
            }
        }
    }
    EXTENSIONS.iter().find_map(|extension| program.find_file(&join(path, &format!("index.{extension}"))))
}
