//! Reads files by paths from facts or requests: only regular files beneath a root, without following links, up to a
//! size.

use super::files::is_kept_out;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Why a file is not read.
#[derive(Debug)]
pub enum FileNotRead {
    /// Not a valid path of a file beneath the root.
    Name,
    /// A link, folder, device or pipe, or a parent that is not a folder.
    NoFile,
    /// The file is larger than the limit; its size in bytes.
    TooLarge(u64),
    Failed(io::Error),
}

impl fmt::Display for FileNotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileNotRead::Name => f.write_str("not a path below the root"),
            FileNotRead::NoFile => f.write_str("cannot be read: no regular file"),
            FileNotRead::TooLarge(bytes) => write!(f, "{bytes} bytes: too large to read"),
            FileNotRead::Failed(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

impl From<io::Error> for FileNotRead {
    fn from(error: io::Error) -> FileNotRead {
        FileNotRead::Failed(error)
    }
}

/// Returns the bytes of the file with the path `key`. Fails if there are more than `most`. Does not block on a pipe and
/// does not acquire a controlling terminal.
pub fn read(root: &Path, key: &str, most: u64) -> Result<Vec<u8>, FileNotRead> {
    let (file, size) = open(root, key)?;
    if size > most {
        return Err(FileNotRead::TooLarge(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // A file may grow while it is read.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        size if size > most => Err(FileNotRead::TooLarge(size)),
        _ => Ok(bytes),
    }
}

/// Opens the file with the path `key` and returns it with its size.
fn open(root: &Path, key: &str) -> Result<(File, u64), FileNotRead> {
    if !is_beneath(key) {
        return Err(FileNotRead::Name);
    }
    let file = system::open(root, key)?;
    // From the open file: the path may lead to another file by now.
    let about = file.metadata()?;
    match about.is_file() {
        true => Ok((file, about.len())),
        false => Err(FileNotRead::NoFile),
    }
}

/// Whether `key` is a valid path beneath a root in the form that the index uses: relative, separated by `/`, and in no
/// folder that is never indexed.
pub fn is_beneath(key: &str) -> bool {
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !is_kept_out(&part.to_ascii_lowercase());
    // On Windows `\` and `:` can lead out of the root.
    let foreign = cfg!(windows) && key.contains(['\\', ':']);
    !foreign && !key.contains('\0') && key.split('/').all(plain)
}

#[cfg(unix)]
mod system {
    use super::FileNotRead;
    use rustix::fs::{CWD, Mode, OFlags, openat};
    use rustix::io::Errno;
    use std::fs::File;
    use std::os::fd::{AsFd, OwnedFd};
    use std::path::Path;

    /// Does not block on a pipe and does not acquire a controlling terminal.
    const READ: OFlags =
        OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW);
    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);

    pub fn open(root: &Path, key: &str) -> Result<File, FileNotRead> {
        let root = openat(CWD, root, FOLDER, Mode::empty()).map_err(unread)?;
        #[cfg(target_os = "linux")]
        if let Some(opened) = at_once(&root, key) {
            return opened.map(File::from).map_err(unread);
        }
        step_by_step(root, key).map(File::from).map_err(unread)
    }

    /// Lets the kernel keep the whole path beneath the root. None where it cannot: before Linux 5.6, or if the call is
    /// forbidden.
    #[cfg(target_os = "linux")]
    fn at_once(root: &OwnedFd, key: &str) -> Option<Result<OwnedFd, Errno>> {
        use rustix::fs::{ResolveFlags, openat2};
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(root, key, READ, Mode::empty(), within) {
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::TOOBIG | Errno::AGAIN) => None,
            opened => Some(opened),
        }
    }

    /// Opens one folder after another, without following links.
    pub(super) fn step_by_step(root: OwnedFd, key: &str) -> Result<OwnedFd, Errno> {
        let mut folder = root;
        let mut rest = key;
        while let Some((first, behind)) = rest.split_once('/') {
            folder = openat(folder.as_fd(), first, FOLDER.union(OFlags::NOFOLLOW), Mode::empty())?;
            rest = behind;
        }
        openat(folder.as_fd(), rest, READ, Mode::empty())
    }

    fn unread(error: Errno) -> FileNotRead {
        match error {
            // A link, a parent that is not a folder, or a device or socket without a peer.
            Errno::LOOP | Errno::XDEV | Errno::NOTDIR | Errno::NXIO | Errno::NODEV => FileNotRead::NoFile,
            error => FileNotRead::Failed(error.into()),
        }
    }

    #[cfg(test)]
    pub(super) fn open_step_by_step(root: &Path, key: &str) -> Result<File, FileNotRead> {
        let root = openat(CWD, root, FOLDER, Mode::empty()).map_err(unread)?;
        step_by_step(root, key).map(File::from).map_err(unread)
    }
}

#[cfg(not(unix))]
mod system {
    use super::FileNotRead;
    use std::fs::File;
    use std::path::Path;

    /// Where the system cannot refuse links, every part of the path is checked before the file is opened.
    pub fn open(root: &Path, key: &str) -> Result<File, FileNotRead> {
        let mut place = root.to_owned();
        let mut parts = key.split('/').peekable();
        while let Some(part) = parts.next() {
            place.push(part);
            let about = std::fs::symlink_metadata(&place)?;
            let fits = if parts.peek().is_some() { about.is_dir() } else { about.is_file() };
            if !fits {
                return Err(FileNotRead::NoFile);
            }
        }
        Ok(File::open(place)?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;

    fn outcome(read: Result<Vec<u8>, FileNotRead>) -> String {
        match read {
            Ok(bytes) => String::from_utf8(bytes).unwrap(),
            Err(FileNotRead::Name) => "name".into(),
            Err(FileNotRead::NoFile) => "no file".into(),
            Err(FileNotRead::TooLarge(bytes)) => format!("{bytes} bytes"),
            Err(FileNotRead::Failed(error)) => format!("{:?}", error.kind()),
        }
    }

    #[test]
    fn paths_outside_of_the_root_are_refused_before_opening() {
        for key in [
            "",
            "/etc/passwd",
            "..",
            "../x",
            "a/../../x",
            "a/./b",
            "a//b",
            "a/",
            "./a",
            "a\0b",
            ".git/config",
            "vendored/.git/config",
            ".GIT/config",
            ".lukasa/lukasa.db",
            "a/.Lukasa/lukasa.audit.key",
        ] {
            assert!(!is_beneath(key), "{key:?}");
        }
        for key in ["a", "a/b.rs", ".github/x.yml", "a..b", "...", "a b/ü.py", ".gitignore", "git/.lukasaignore"] {
            assert!(is_beneath(key), "{key:?}");
        }
    }

    #[test]
    fn sizes_are_limited() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "12345").unwrap();
        assert_eq!(outcome(read(folder.path(), "a", 5)), "12345");
        assert_eq!(outcome(read(folder.path(), "a", 4)), "5 bytes");
        assert_eq!(outcome(read(folder.path(), "b", 5)), "NotFound");
        assert_eq!(outcome(read(&folder.path().join("none"), "a", 5)), "NotFound");
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_beneath_the_root_are_read() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("secret"), "secret").unwrap();
        std::fs::write(root.join("sub/a"), "inside").unwrap();
        symlink(outside.join("secret"), root.join("link")).unwrap();
        symlink(&outside, root.join("way")).unwrap();
        symlink("sub/a", root.join("within")).unwrap();
        symlink("/dev/zero", root.join("zero")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let stepwise = |key: &str| -> Result<Vec<u8>, FileNotRead> {
            let mut bytes = Vec::new();
            let file = system::open_step_by_step(&root, key)?;
            if !file.metadata()?.is_file() {
                return Err(FileNotRead::NoFile);
            }
            file.take(99).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        for (key, due) in [
            ("sub/a", "inside"),
            ("link", "no file"),
            ("way/secret", "no file"),
            ("within", "no file"),
            ("zero", "no file"),
            ("pipe", "no file"),
            ("socket", "no file"),
            ("sub", "no file"),
            ("sub/a/b", "no file"),
            ("sub/none", "NotFound"),
        ] {
            assert_eq!(outcome(read(&root, key, 99)), due, "{key}");
            assert_eq!(outcome(stepwise(key)), due, "{key}, where the kernel does not help");
        }
        // The operator may choose a root behind a link.
        symlink(&root, folder.path().join("alias")).unwrap();
        assert_eq!(outcome(read(&folder.path().join("alias"), "sub/a", 99)), "inside");
    }
}
