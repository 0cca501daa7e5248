//! Files and folders that only their owner can read: stores, keys, caches, backups and exports contain source and
//! names.
//!
//! The mode is set on creation, so that others can never open the file in between. Existing files keep their mode.
//! Systems without Unix modes use their own defaults.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Result, Write};
use std::path::Path;

/// Options for opening files; a file they create is readable and writable only by its owner.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a file for writing, creating or truncating it.
pub fn create(path: &Path) -> Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Creates a file for writing; fails if it exists.
pub fn create_new(path: &Path) -> Result<File> {
    options().write(true).create_new(true).open(path)
}

/// Writes a file, replacing existing contents.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    create(path)?.write_all(contents.as_ref())
}

/// Creates a file if it does not exist, for code that opens it next by other means.
pub fn touch(path: &Path) -> Result<()> {
    match create_new(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// Creates a folder and its missing parents.
pub fn create_dir_all(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
