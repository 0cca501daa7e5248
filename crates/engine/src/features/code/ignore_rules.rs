//! Ignore rules of a tree that is not on disk: which of its files would be listed in a working tree.

use super::files::{IGNORE_FILE, is_kept_out};
use super::unsearched;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::{Path, PathBuf};

/// Files with ignore rules. The first that has a rule for a path decides, as on disk.
const KINDS: [&str; 3] = [IGNORE_FILE, ".ignore", ".gitignore"];

/// Whether a path is that of a file with ignore rules.
pub fn is_rules(path: &str) -> bool {
    KINDS.contains(&path.rsplit('/').next().unwrap_or(path))
}

/// The rules of all folders of a tree.
#[derive(Default)]
pub struct IgnoreRules {
    /// By folder, then by kind.
    folders: FxHashMap<String, [Option<Gitignore>; KINDS.len()]>,
}

impl IgnoreRules {
    /// From the texts of the files for which `is_rules` is true. An invalid pattern is ignored, as on disk.
    pub fn new<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> IgnoreRules {
        let mut rules = IgnoreRules::default();
        for (path, text) in texts {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            let Some(kind) = KINDS.iter().position(|kind| *kind == name) else { continue };
            let mut builder = GitignoreBuilder::new(rooted(folder));
            for line in text.trim_start_matches('\u{feff}').lines() {
                let _ = builder.add_line(None, line);
            }
            if let Ok(patterns) = builder.build() {
                rules.folders.entry(folder.to_owned()).or_default()[kind] = Some(patterns);
            }
        }
        rules
    }

    /// The files, in order, that no rule excludes, neither themselves nor a folder above them.
    pub fn listed<'a, T>(&self, files: impl Iterator<Item = (&'a String, T)>) -> Vec<(&'a String, T)> {
        let mut kept_out: FxHashMap<&str, bool> = FxHashMap::default();
        let files: Vec<(&'a String, T)> = files.collect();
        let all: FxHashSet<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        files.into_iter().filter(|(path, _)| !self.is_out(path, false, &all, &mut kept_out)).collect()
    }

    fn is_out<'a>(
        &self,
        path: &'a str,
        is_dir: bool,
        all: &FxHashSet<&str>,
        known: &mut FxHashMap<&'a str, bool>,
    ) -> bool {
        if let Some(out) = known.get(path).filter(|_| is_dir) {
            return *out;
        }
        let (above, name) = path.rsplit_once('/').map_or((None, path), |(above, name)| (Some(above), name));
        let is_beside = |file: &str| match above {
            Some(above) => all.contains(format!("{above}/{file}").as_str()),
            None => all.contains(file),
        };
        let out = above.is_some_and(|above| self.is_out(above, true, all, known))
            || is_kept_out(name)
            || self.is_ignored(path, is_dir)
            || (is_dir && unsearched::folder(name, above.is_none(), is_beside) && !self.is_taken_in(path));
        if is_dir {
            known.insert(path, out);
        }
        out
    }

    /// Whether the rules at the root include a folder that is left out by its name.
    fn is_taken_in(&self, path: &str) -> bool {
        let rules = self.folders.get("").and_then(|kinds| kinds[0].as_ref());
        rules.is_some_and(|rules| rules.matched(rooted(path), true).is_whitelist())
    }

    fn is_ignored(&self, path: &str, is_dir: bool) -> bool {
        if self.folders.is_empty() {
            return false;
        }
        let full = rooted(path);
        for kind in 0..KINDS.len() {
            let mut folder = path;
            while !folder.is_empty() {
                folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
                let patterns = self.folders.get(folder).and_then(|kinds| kinds[kind].as_ref());
                let matched = patterns.map(|patterns| patterns.matched(&full, is_dir));
                if let Some(matched) = matched.filter(|matched| !matched.is_none()) {
                    return matched.is_ignore();
                }
            }
        }
        false
    }
}

/// Patterns need a root to match below, and a tree in git has none.
fn rooted(path: &str) -> PathBuf {
    Path::new("/").join(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_tree_lists_what_its_folder_does() {
        let files = [
            (".gitignore", "*.log\n/build\n!keep.log\nnested/only.txt\n# note\n"),
            (".lukasaignore", "vendor/\n*.min.js\n!src/lib.min.js\n!kept/node_modules/\n"),
            (".ignore", "dumps\n"),
            ("a.log", ""),
            ("keep.log", ""),
            ("build/x.py", ""),
            ("src/build/x.py", ""),
            ("src/.gitignore", "!a.log\ngenerated_*\n"),
            ("src/a.log", ""),
            ("src/b.log", ""),
            ("src/lib.min.js", ""),
            ("src/other.min.js", ""),
            ("src/deep/generated_x.py", ""),
            ("src/deep/.lukasaignore", "*.rs\n"),
            ("src/deep/x.rs", ""),
            ("src/x.rs", ""),
            ("vendor/a/b.py", ""),
            ("vendor/.gitignore", "!*\n"),
            ("src/vendor/c.py", ""),
            ("dumps/d.txt", ""),
            ("nested/only.txt", ""),
            ("src/nested/only.txt", ""),
            (".lukasa/store", ""),
            ("src/.hidden", ""),
            ("node_modules/left/pad.js", ""),
            ("src/dist/bundle.js", ""),
            ("target/debug/x.rs", ""),
            ("src/target/by_name.rs", ""),
            ("tool/Cargo.toml", ""),
            ("tool/target/x.rs", ""),
            ("kept/node_modules/own.js", ""),
        ];
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let place = folder.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        let listing = super::super::files::list(folder.path(), &Default::default()).unwrap();
        assert!(listing.faults.is_empty(), "{listing:?}");
        assert_eq!(listing.left_out, ["node_modules", "src/dist", "target", "tool/target"]);
        let listed: Vec<String> = listing.files.into_iter().map(|l| l.path).collect();
        let rules = IgnoreRules::new(files.into_iter().filter(|(path, _)| is_rules(path)));
        let mut paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        paths.sort();
        let found: Vec<String> =
            rules.listed(paths.iter().map(|p| (p, ()))).into_iter().map(|(p, ())| p.clone()).collect();
        assert_eq!(found, listed);
        let has = |path: &str| found.iter().any(|found| found == path);
        assert!(has("src/a.log") && !has("vendor/a/b.py"));
        assert!(has("src/target/by_name.rs") && has("kept/node_modules/own.js"), "{found:?}");
    }
}
