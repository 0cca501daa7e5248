//! Files and folders that only their owner can read: stores, keys, caches, backups and exports hold source and names.
//!
//! Modes are given when something is made, so that there is no moment at which others could open it. What is there
//! already keeps the mode its owner gave it. Systems without Unix modes use their own defaults.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Result, Write};
use std::path::Path;

/// How files are opened that may be made by that: readable and writable by their owner alone.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A file to write to, empty; one that is there is emptied.
pub fn create(path: &Path) -> Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// A file to write to that must not be there yet.
pub fn create_new(path: &Path) -> Result<File> {
    options().write(true).create_new(true).open(path)
}

/// Makes a file with these contents, or replaces those it has.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    create(path)?.write_all(contents.as_ref())
}

/// Makes sure that there is a file, for code that opens it next by other means.
pub fn touch(path: &Path) -> Result<()> {
    match create_new(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// Makes a folder and those above it that are missing.
pub fn create_dir_all(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
