//! The working tree and the folder that a caller's paths are relative to.

use super::ResolvedNames;
use crate::Context;
use lukasa_model::{Error, ErrorCode, Result};
use std::path::{Component, Path, PathBuf};

/// The folders that paths in names are relative to, and the list of resolved names.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The root of the working tree.
    root: Option<PathBuf>,
    /// The caller's folder, from the root.
    folder: Option<String>,
    pub(super) taken: ResolvedNames,
}

/// A path relative to the root of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootedPath {
    /// The path was absolute, or began with `.` or `..`.
    Fixed(String),
    /// The path may be relative to the root, or else to the caller's folder.
    Open { from_root: String, from_folder: Option<String> },
}

impl Origin {
    /// The origin of a caller.
    pub fn of(context: &Context<'_>) -> Origin {
        let origin = Origin::at(context.tree.as_deref(), context.folder.as_deref());
        Origin { taken: context.taken.clone(), ..origin }
    }

    /// The origin for a working tree and a folder of it.
    pub fn at(root: Option<&Path>, folder: Option<&Path>) -> Origin {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let root = root.map(real);
        let below = root.as_ref().zip(folder).and_then(|(root, folder)| text(real(folder).strip_prefix(root).ok()?));
        Origin { root, folder: below.filter(|folder| !folder.is_empty()), taken: ResolvedNames::default() }
    }

    /// The origin for another working tree, if one is given.
    #[must_use]
    pub fn moved(self, root: Option<&Path>, folder: Option<&Path>) -> Origin {
        if root.is_none() {
            return self;
        }
        Origin { taken: self.taken, ..Origin::at(root, folder) }
    }

    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Makes a path relative to the root of the project. Returns `outside_workspace` if it is outside the project.
    pub fn rooted(&self, path: &str) -> Result<RootedPath> {
        let given = path.replace('\\', "/");
        if Path::new(&given).is_absolute() {
            return self.absolute(&given).map(RootedPath::Fixed).ok_or_else(|| outside(path));
        }
        let joined = |folder: &str| plain(&format!("{folder}/{given}"));
        let folder = self.folder.as_deref();
        if given.starts_with("./") || given.starts_with("../") {
            return joined(folder.unwrap_or_default()).map(RootedPath::Fixed).ok_or_else(|| outside(path));
        }
        let from_root = plain(&given).ok_or_else(|| outside(path))?;
        Ok(RootedPath::Open { from_root, from_folder: folder.and_then(joined) })
    }

    fn absolute(&self, path: &str) -> Option<String> {
        let root = self.root.as_ref()?;
        let real = Path::new(path).canonicalize();
        let real = real.as_deref().unwrap_or(Path::new(path));
        let inside = real.strip_prefix(root).or_else(|_| Path::new(path).strip_prefix(root)).ok()?;
        plain(&text(inside)?)
    }

    /// A name that begins with a path, with the path made relative to the root. If the path may be relative to the root
    /// or to the caller's folder, the one that is a file is used.
    pub fn spelled(&self, text: &str) -> Result<String> {
        let (path, after) = text.find("::").map_or((text, ""), |at| text.split_at(at));
        let typed = path.split_once(':').filter(|(word, _)| !word.contains(['/', '.', '\\']));
        let (before, path) = typed.map_or(("", path), |(word, _)| path.split_at(word.len() + 1));
        let path = match self.rooted(path)? {
            RootedPath::Fixed(path) => path,
            RootedPath::Open { from_root, from_folder } => {
                let here = from_folder.filter(|here| !self.has_file(&from_root) && self.has_file(here));
                here.unwrap_or(from_root)
            }
        };
        Ok(format!("{before}{path}{after}"))
    }

    /// Whether a path of the project is a file of the working tree.
    pub fn has_file(&self, path: &str) -> bool {
        self.root.as_ref().is_some_and(|root| root.join(path).is_file())
    }
}

fn text(path: &Path) -> Option<String> {
    let parts = path.components().map(|part| match part {
        Component::Normal(part) => part.to_str(),
        _ => None,
    });
    Some(parts.collect::<Option<Vec<_>>>()?.join("/"))
}

/// Normalizes a path below a root. None if it is outside of it.
fn plain(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn outside(path: &str) -> Error {
    Error::invalid(ErrorCode::OutsideWorkspace, format!("`{path}` is not within the working tree"))
        .hint("name files by their path from the root of the repository")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_root_or_to_the_callers_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        std::fs::create_dir_all(root.join("src/web")).expect("folders");
        let inside = Origin::at(Some(&root), Some(&root.join("src/web")));
        let open = |from_root: &str, from_folder: &str| RootedPath::Open {
            from_root: from_root.into(),
            from_folder: Some(from_folder.into()),
        };
        for (path, expected) in [
            ("a.ts", open("a.ts", "src/web/a.ts")),
            ("src\\a.ts", open("src/a.ts", "src/web/src/a.ts")),
            ("./a.ts", RootedPath::Fixed("src/web/a.ts".into())),
            ("../a.ts", RootedPath::Fixed("src/a.ts".into())),
        ] {
            assert_eq!(inside.rooted(path).expect(path), expected, "{path}");
        }
        let absolute = root.join("src/new.ts").display().to_string();
        assert_eq!(inside.rooted(&absolute).expect("inside"), RootedPath::Fixed("src/new.ts".into()));
        for path in ["../../../a.ts", "/etc/passwd"] {
            assert_eq!(inside.rooted(path).expect_err(path).code, ErrorCode::OutsideWorkspace);
        }
        let nowhere = Origin::default();
        assert_eq!(nowhere.rooted("./a.ts").expect("a path"), RootedPath::Fixed("a.ts".into()));
        assert_eq!(nowhere.rooted("/a.ts").expect_err("no tree").code, ErrorCode::OutsideWorkspace);
    }
}
