//! Paths that the operator gave to projects: working trees to read, and folders to write and read data in.

use lukasa_model::Scope;
use std::path::{Path, PathBuf};

/// Paths by project. Remote callers may name no other path on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFolders {
    trees: Vec<(Scope, PathBuf)>,
    folders: Vec<(Scope, PathBuf)>,
}

impl ProjectFolders {
    /// Adds a working tree of a project. Its code is indexed only into that project.
    #[must_use]
    pub fn with_tree(mut self, scope: Scope, path: impl Into<PathBuf>) -> ProjectFolders {
        self.trees.push((scope, path.into()));
        self
    }

    /// Adds a folder for exports, imports and backups of a project.
    #[must_use]
    pub fn with_folder(mut self, scope: Scope, path: impl Into<PathBuf>) -> ProjectFolders {
        self.folders.push((scope, path.into()));
        self
    }

    /// Working trees that are not part of a larger repository: indexing such a part would read the whole repository.
    pub fn trees(&self) -> impl Iterator<Item = (&Scope, &Path)> {
        let whole = |(_, path): &&(Scope, PathBuf)| repository_around(path).is_none();
        self.trees.iter().filter(whole).map(|(scope, path)| (scope, path.as_path()))
    }

    /// The default working tree of a project: the first one that it was given.
    pub fn tree_of(&self, scope: &Scope) -> Option<&Path> {
        self.trees().find(|(of, _)| *of == scope).map(|(_, path)| path)
    }

    /// The real path of a folder within a working tree of the project. None if it does not exist or leads outside.
    pub fn in_tree(&self, scope: &Scope, path: &Path) -> Option<PathBuf> {
        let whole = |root: &&Path| repository_around(root).is_none();
        within(&self.trees, scope, |root| Some(root).filter(whole)?.join(path).canonicalize().ok())
    }

    /// The real path of a file within a folder of the project; the file need not exist yet. None for anything but a
    /// file or folder: opening a pipe would block until its other end opens.
    pub fn in_folder(&self, scope: &Scope, path: &Path) -> Option<PathBuf> {
        within(&self.folders, scope, |root| {
            let whole = root.join(path);
            match whole.canonicalize() {
                Ok(real) => real.metadata().ok().filter(|about| about.is_file() || about.is_dir()).map(|_| real),
                Err(_) => Some(whole.parent()?.canonicalize().ok()?.join(whole.file_name()?)),
            }
        })
    }
}

/// The repository that contains a folder below its root. Indexing such a folder would read the whole repository.
pub fn repository_around(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let root = folder.ancestors().find(|folder| folder.join(".git").exists())?;
    (root != folder).then(|| root.to_path_buf())
}

fn within(all: &[(Scope, PathBuf)], scope: &Scope, real: impl Fn(&Path) -> Option<PathBuf>) -> Option<PathBuf> {
    let own = all.iter().filter(|(of, _)| of == scope).filter_map(|(_, root)| root.canonicalize().ok());
    own.filter_map(|root| real(&root).filter(|path| path.starts_with(&root))).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_reaches_its_own_folders_only() {
        let machine = tempfile::tempdir().expect("a folder");
        let [ours, theirs] = ["ours", "theirs"].map(|name| machine.path().join(name));
        for folder in [&ours, &theirs] {
            std::fs::create_dir(folder).expect("made");
            std::fs::write(folder.join("a.txt"), "x").expect("written");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(&theirs, ours.join("out")).expect("linked");
        let [shop, other] = ["shop", "other"].map(|project| Scope::new("acme", project).expect("a scope"));
        let given = ProjectFolders::default()
            .with_tree(shop.clone(), &ours)
            .with_folder(shop.clone(), &ours)
            .with_tree(other.clone(), &theirs);
        let real = |folder: &Path| folder.canonicalize().expect("there");
        assert_eq!(given.in_tree(&shop, Path::new(".")), Some(real(&ours)));
        assert_eq!(given.in_tree(&shop, &ours.join("a.txt")), Some(real(&ours).join("a.txt")));
        assert_eq!(given.in_folder(&shop, Path::new("new.jsonl")), Some(real(&ours).join("new.jsonl")));
        for outside in ["..", "../theirs", "out/a.txt", "/etc/passwd", "no/where", "../new.jsonl", "out/new.jsonl"] {
            assert_eq!(given.in_tree(&shop, Path::new(outside)), None, "{outside}");
            assert_eq!(given.in_folder(&shop, Path::new(outside)), None, "{outside}");
        }
        assert_eq!((given.in_folder(&other, Path::new("a.txt")), given.tree_of(&other)), (None, Some(&*theirs)));
        assert_eq!(given.tree_of(&Scope::new("evil", "shop").expect("a scope")), None);
        // A folder that becomes part of a repository is no longer accepted as a working tree.
        std::fs::create_dir(machine.path().join(".git")).expect("made");
        assert_eq!(repository_around(&ours), Some(real(machine.path())));
        assert_eq!((given.in_tree(&shop, Path::new(".")), given.tree_of(&shop)), (None, None));
        std::fs::create_dir(ours.join(".git")).expect("made");
        assert_eq!(given.in_tree(&shop, Path::new(".")), Some(real(&ours)));
    }
}
