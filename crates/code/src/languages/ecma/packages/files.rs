//! Presents the program's paths as a file system for `oxc_resolver`; the real one is never read.

use super::manifests::{ManifestPackage, PackageLinks};
use super::{EXTENSIONS, WRITTEN_AS};
use crate::resolve::program::join;
use oxc_resolver::{FileMetadata, FileSystem, ResolveError};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The repository's root in the virtual file system.
pub const ROOT: &str = "/";

const MODULES: &str = "node_modules";

/// Folders of build output in a package.
const OUTPUTS: [&str; 12] =
    ["dist", "lib", "build", "out", "output", "esm", "cjs", "es", "umd", "es6", "commonjs", "bundle"];

/// Folders below those, one per kind of output.
const KINDS: [&str; 10] =
    ["types", "typings", "declarations", "module", "main", "node", "browser", "mjs", "dev", "prod"];

/// Folders of the source of build output, relative to the package.
const SOURCES: [&str; 4] = ["src", "", "source", "lib"];

/// Parts of names by which bundlers distinguish their output: `index.esm.js`.
const MARKS: [&str; 12] = [
    ".esm",
    ".cjs",
    ".umd",
    ".min",
    ".module",
    ".modern",
    ".es",
    ".mjs",
    ".common",
    ".development",
    ".production",
    ".bundle",
];

enum Entry {
    File,
    Folder,
    Manifest(Box<str>),
}

struct Tree {
    entries: FxHashMap<Arc<str>, Entry>,
    /// Folders with a `package.json`.
    packages: FxHashSet<Arc<str>>,
    links: PackageLinks,
    /// Folders with links in their `node_modules`.
    linked: FxHashSet<Arc<str>>,
    /// Whether the repository contains a `node_modules` folder with packages of others.
    modules: bool,
}

#[derive(Clone)]
pub struct VirtualFiles(Arc<Tree>);

impl VirtualFiles {
    pub fn new(
        paths: Vec<Arc<str>>,
        texts: FxHashMap<String, String>,
        links: PackageLinks,
        packages: &[ManifestPackage],
    ) -> VirtualFiles {
        let mut entries: FxHashMap<Arc<str>, Entry> = FxHashMap::default();
        entries.reserve(paths.len() * 2);
        let mut modules = false;
        for path in &paths {
            modules |= path.split('/').any(|part| part == MODULES);
            add_folders(&mut entries, path);
        }
        for (path, text) in texts {
            add_folders(&mut entries, &path);
            entries.insert(path.into(), Entry::Manifest(text.into()));
        }
        entries.extend(paths.into_iter().map(|path| (path, Entry::File)));
        let packages = packages.iter().map(|package| package.folder.as_str().into()).collect();
        let linked =
            links.values().flat_map(|by_folder| by_folder.keys().map(|folder| folder.as_str().into())).collect();
        VirtualFiles(Arc::new(Tree { entries, packages, links, linked, modules }))
    }

    pub fn has_modules(&self) -> bool {
        self.0.modules
    }

    /// The package that a name refers to in a folder.
    pub fn package(&self, folder: &str, name: &str) -> Option<usize> {
        let by_folder = self.0.links.get(name)?;
        upwards(folder).find_map(|folder| by_folder.get(folder)).map(|link| link.package)
    }

    /// The path in the repository of a file that the resolver found.
    pub fn real(&self, path: &Path) -> Option<String> {
        let (path, entry) = self.find(path)?;
        matches!(entry, Entry::File).then(|| path.into_owned())
    }

    /// Whether the path to which a configuration maps a module can be a file or folder.
    pub fn may_be(&self, path: &Path) -> bool {
        let Some(place) = path.to_str() else { return false };
        self.find(path).is_some()
            || WRITTEN_AS.iter().any(|(written, _)| place.ends_with(written))
            || EXTENSIONS.iter().any(|extension| self.find(Path::new(&format!("{place}.{extension}"))).is_some())
    }

    fn find<'a>(&'a self, path: &'a Path) -> Option<(Cow<'a, str>, &'a Entry)> {
        let path = path.to_str()?.strip_prefix(ROOT)?;
        if let Some(entry) = self.0.entries.get(path) {
            return Some((Cow::Borrowed(path), entry));
        }
        let path = self.follow(path);
        if let Some(entry) = self.0.entries.get(&*path) {
            return Some((path, entry));
        }
        let found = self.source(&path)?;
        let entry = self.0.entries.get(&*found)?;
        Some((Cow::Owned(found), entry))
    }

    /// Maps a path in `node_modules` to a package of the repository, as package managers link it.
    fn follow<'a>(&self, path: &'a str) -> Cow<'a, str> {
        let Some((folder, rest)) = split_modules(path) else { return Cow::Borrowed(path) };
        let name = super::package_name(rest);
        let link = self.0.links.get(name).and_then(|by_folder| by_folder.get(folder));
        match link {
            Some(link) => {
                let inside = rest[name.len()..].trim_start_matches('/');
                Cow::Owned(if inside.is_empty() { link.folder.to_string() } else { join(&link.folder, inside) })
            }
            None => Cow::Borrowed(path),
        }
    }

    /// The source of a file or folder of build output.
    fn source(&self, path: &str) -> Option<String> {
        if !path.split('/').any(is_output) {
            return None;
        }
        let package = upwards(above(path)).find(|folder| self.0.packages.contains(*folder)).unwrap_or("");
        let mut rest = if package.is_empty() { path } else { path[package.len()..].trim_start_matches('/') };
        let made_in = rest.split('/').next().filter(|first| is_output(first))?;
        // If the output itself is in the repository, with any extension, it is used.
        let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
        let stem = stem.strip_suffix(".d").unwrap_or(stem);
        let kept = |extension: &&str| self.0.entries.contains_key(format!("{stem}.{extension}").as_str());
        if EXTENSIONS.iter().filter(|extension| !extension.starts_with("d.")).any(kept) {
            return None;
        }
        let mut kind = made_in;
        while is_output(kind) || KINDS.contains(&kind) {
            rest = rest[kind.len()..].trim_start_matches('/');
            for folder in SOURCES {
                if folder != made_in
                    && let Some(found) = self.made_of(&join_all(package, folder), rest)
                {
                    return Some(found);
                }
            }
            kind = rest.split('/').next().unwrap_or(rest);
            if rest.is_empty() {
                break;
            }
        }
        // Compiled together with others from a common parent folder: `dist/package/src/…`.
        let (_, inside) = rest.split_once("/src/")?;
        self.made_of(&join(package, "src"), inside)
    }

    fn made_of(&self, folder: &str, rest: &str) -> Option<String> {
        // The source of a whole output folder is never the package itself.
        if rest.is_empty() {
            let is_source = folder.rsplit('/').next().is_some_and(|name| name == "src" || name == "source");
            return (is_source && matches!(self.0.entries.get(folder), Some(Entry::Folder))).then(|| folder.to_owned());
        }
        let is_file = |path: &String| matches!(self.0.entries.get(path.as_str()), Some(Entry::File));
        let path = join_all(folder, rest);
        // Manifests are not build output: a copy of one would count as a separate package.
        if matches!(self.0.entries.get(path.as_str()), Some(Entry::File | Entry::Folder)) {
            return Some(path);
        }
        let declared = [".d.ts", ".d.mts", ".d.cts"].iter().find_map(|ending| path.strip_suffix(ending));
        if let Some(stem) = declared {
            return EXTENSIONS.iter().map(|extension| format!("{stem}.{extension}")).find(is_file);
        }
        let (stem, extension) = path.rsplit_once('.')?;
        let stem = MARKS.iter().find_map(|mark| stem.strip_suffix(mark))?;
        Some(format!("{stem}.{extension}")).filter(is_file)
    }
}

pub fn is_output(folder: &str) -> bool {
    OUTPUTS.contains(&folder) || folder.starts_with("dist-") || folder.starts_with("lib-")
}

/// Adds each folder above a path.
fn add_folders(entries: &mut FxHashMap<Arc<str>, Entry>, path: &str) {
    for folder in upwards(path).skip(1) {
        if entries.contains_key(folder) {
            break;
        }
        entries.insert(folder.into(), Entry::Folder);
    }
}

/// The folder of a path; empty at the root.
pub fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}

/// A path, and all folders above it up to the root.
pub fn upwards(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| (!path.is_empty()).then(|| above(path)))
}

fn join_all(folder: &str, rest: &str) -> String {
    if rest.is_empty() { folder.to_owned() } else { join(folder, rest) }
}

/// The folder that contains the last `node_modules` of a path, and the path after it.
fn split_modules(path: &str) -> Option<(&str, &str)> {
    if let Some(at) = path.rfind("/node_modules/") {
        return Some((&path[..at], &path[at + MODULES.len() + 2..]));
    }
    path.strip_prefix("node_modules/").map(|rest| ("", rest))
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl FileSystem for VirtualFiles {
    fn new() -> VirtualFiles {
        VirtualFiles::new(vec![], FxHashMap::default(), PackageLinks::default(), &[])
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.read_to_string(path).map(String::into_bytes)
    }

    fn read_to_string(&self, path: &Path) -> io::Result<String> {
        match self.find(path) {
            Some((_, Entry::Manifest(text))) => Ok(text.to_string()),
            _ => Err(missing()),
        }
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMetadata> {
        if let Some((_, entry)) = self.find(path) {
            let folder = matches!(entry, Entry::Folder);
            return Ok(FileMetadata::new(!folder, folder, false));
        }
        // A `node_modules` folder that contains only links.
        let holder = path.to_str().and_then(|path| path.strip_prefix(ROOT)).filter(|path| {
            let folder = path.strip_suffix(MODULES).map(|folder| folder.trim_end_matches('/'));
            folder.is_some_and(|folder| self.0.linked.contains(folder))
        });
        holder.map(|_| FileMetadata::new(false, true, false)).ok_or_else(missing)
    }

    fn symlink_metadata(&self, path: &Path) -> io::Result<FileMetadata> {
        self.metadata(path)
    }

    fn read_link(&self, _path: &Path) -> Result<PathBuf, ResolveError> {
        Err(missing().into())
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
}
