//! Decides and finds the owner of a store: a lock file beside the store, and a socket in a private folder of the user.

use lukasa_model::id::named;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use lukasa_store::private as private_file;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};
use uuid::Uuid;

/// Socket addresses hold 104 bytes on some systems and 108 on others, including the final zero.
const ADDRESS_BYTES: usize = 100;
/// A note contains a path and a process id; anything longer is not a note.
const NOTE_BYTES: u64 = 4_096;

/// A store in a file, with the paths of its lock and of its owner's socket.
#[derive(Clone, Debug)]
pub struct StoreLocation {
    store: PathBuf,
    lock: PathBuf,
    /// The folder for sockets of this user's session, if there is one.
    runtime: Option<PathBuf>,
    temp: PathBuf,
}

/// The process that owns a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerInfo {
    /// None until the owner has written its note.
    pub pid: Option<u32>,
    /// Why other processes cannot attach.
    pub fault: Option<String>,
}

/// What the owner writes into the lock file. It contains the path of the socket, because processes with other
/// environments would derive another one.
#[derive(Serialize, Deserialize)]
pub(super) struct OwnerNote {
    pub pid: u32,
    pub socket: Option<PathBuf>,
    /// Why other processes cannot attach.
    pub fault: Option<String>,
}

/// The ownership of a store. It ends with the process, however that ends.
pub(super) struct Ownership {
    /// Removed before the lock is released, so that it can never be the socket of the next owner.
    socket: Option<PathBuf>,
    lock: File,
}

impl StoreLocation {
    /// `runtime`: the folder for sockets of this user's session, if there is one.
    pub fn of(store: &Path, runtime: Option<&Path>, temp: &Path) -> Result<StoreLocation> {
        let store = real(store).map_err(|e| {
            Error::new(ErrorKind::Unavailable, ErrorCode::NoFolder, format!("`{}` has no folder: {e}", store.display()))
        })?;
        let mut lock = store.clone().into_os_string();
        lock.push(".owner");
        Ok(StoreLocation { lock: lock.into(), store, runtime: runtime.map(Path::to_path_buf), temp: temp.into() })
    }

    /// The real path of the store, equal for all processes that use it.
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// Takes the ownership. None if another process has it.
    pub(super) fn take(&self) -> Result<Option<Ownership>> {
        let fault = |e: std::io::Error| {
            Error::new(ErrorKind::Unavailable, ErrorCode::CannotLock, format!("`{}`: {e}", self.lock.display()))
                .hint("the store's folder must be writable and on a file system that has locks")
        };
        let lock = private_file::options().read(true).write(true).create(true).truncate(false).open(&self.lock);
        let lock = lock.map_err(fault)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(fault(e)),
        }
        // If the file was removed meanwhile, this is the lock of a file that no other process finds.
        let (ours, there) = (lock.metadata().map_err(fault)?, std::fs::metadata(&self.lock));
        let same = there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino()));
        Ok(same.then_some(Ownership { socket: None, lock }))
    }

    /// The current owner, without trying to become it. None if there is no owner.
    pub fn owner(&self) -> Option<OwnerInfo> {
        let lock = File::open(&self.lock).ok()?;
        // The shared lock is released at once; a process that fails to get the lock meanwhile retries.
        if !matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return None;
        }
        let note = self.note();
        Some(OwnerInfo { pid: note.as_ref().map(|note| note.pid), fault: note.and_then(|note| note.fault) })
    }

    /// The note of the owner; None until it has written one.
    pub(super) fn note(&self) -> Option<OwnerNote> {
        let mut text = String::new();
        File::open(&self.lock).ok()?.take(NOTE_BYTES).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn socket(&self) -> Result<PathBuf> {
        let name = format!("{}.sock", named(Uuid::NAMESPACE_OID, self.store.as_os_str().as_bytes()).simple());
        let user = own_user()?;
        let mine = format!("lukasa-{user}");
        let runtime = self.runtime.as_ref().map(|folder| folder.join("lukasa"));
        let mut fault = None;
        for folder in runtime.into_iter().chain([self.temp.join(&mine), Path::new("/tmp").join(&mine)]) {
            let socket = folder.join(&name);
            match private(&folder, user) {
                Ok(()) if socket.as_os_str().len() <= ADDRESS_BYTES => return Ok(socket),
                Ok(()) => fault = Some(format!("`{}` is too long for a socket", socket.display())),
                Err(e) => fault = Some(e),
            }
        }
        let fault = fault.unwrap_or_else(|| "there is no folder for sockets".into());
        Err(Error::new(ErrorKind::Unavailable, ErrorCode::CannotListen, fault))
    }
}

impl Ownership {
    /// Listens for other processes and writes the socket into the note, or the reason why they cannot attach.
    pub fn listen(&mut self, place: &StoreLocation) -> Result<UnixListener> {
        let listener = place.socket().and_then(|socket| {
            let fault = |e: std::io::Error| {
                Error::new(ErrorKind::Unavailable, ErrorCode::CannotListen, format!("`{}`: {e}", socket.display()))
            };
            match std::fs::remove_file(&socket) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(fault(e)),
                _ => {}
            }
            let listener = UnixListener::bind(&socket).map_err(fault)?;
            std::fs::set_permissions(&socket, Permissions::from_mode(0o600)).map_err(fault)?;
            self.socket = Some(socket);
            Ok(listener)
        });
        let fault = listener.as_ref().err().map(|error| error.message.clone());
        let note = OwnerNote { pid: std::process::id(), socket: self.socket.clone(), fault };
        self.leave(&note).and(listener)
    }

    fn leave(&mut self, note: &OwnerNote) -> Result<()> {
        let text = serde_json::to_vec(note).map_err(|e| Error::internal(format!("a note cannot be written: {e}")))?;
        let written = self
            .lock
            .set_len(0)
            .and_then(|()| self.lock.rewind())
            .and_then(|()| self.lock.write_all(&text))
            .and_then(|()| self.lock.flush());
        written
            .map_err(|e| Error::new(ErrorKind::Unavailable, ErrorCode::CannotListen, format!("the owner's note: {e}")))
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            // The next owner replaces a socket that is left over.
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// The path with links resolved; the file itself need not exist yet.
fn real(path: &Path) -> std::io::Result<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Ok(real);
    }
    let path = std::path::absolute(path)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::ErrorKind::NotFound.into());
    };
    Ok(folder.canonicalize()?.join(name))
}

/// Creates a folder that only this user can enter, or checks that it is one: any user can write to temporary folders.
fn private(folder: &Path, user: u32) -> Result<(), String> {
    let fault = |e: std::io::Error| format!("`{}`: {e}", folder.display());
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(fault(e)),
        _ => {}
    }
    let found = std::fs::symlink_metadata(folder).map_err(fault)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        return Err(format!("`{}` is not a folder of this user alone", folder.display()));
    }
    Ok(())
}

/// The user id of this process, as the peer of a socket sees it.
pub(super) fn own_user() -> Result<u32> {
    let peer = UnixStream::pair().and_then(|(one, _other)| one.peer_cred());
    peer.map(|peer| peer.uid()).map_err(|e| Error::internal(format!("the user of this process is unknown: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(folder: &Path) -> StoreLocation {
        StoreLocation::of(&folder.join("lukasa.db"), Some(folder), folder).unwrap()
    }

    #[tokio::test]
    async fn one_owner_per_store_and_a_note_with_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        assert_eq!(place.owner(), None);
        let mut seat = place.take().unwrap().unwrap();
        assert!(place.take().unwrap().is_none(), "another process is the owner");
        assert_eq!(place.owner(), Some(OwnerInfo { pid: None, fault: None }));
        let other = StoreLocation::of(&folder.path().join("other.db"), None, folder.path()).unwrap();
        assert!(other.take().unwrap().is_some(), "another store in the same folder has its own owner");
        let listener = seat.listen(&place).unwrap();
        let socket = place.note().unwrap().socket.unwrap();
        assert_eq!(std::fs::metadata(&socket).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(socket.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        assert_eq!(place.owner().unwrap().pid, Some(std::process::id()));
        drop((listener, seat));
        assert!(!socket.exists());
        assert_eq!(place.owner(), None, "the note of an ended owner is ignored");
        // A socket that a killed owner left behind is replaced.
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        let mut seat = place.take().unwrap().unwrap();
        let listener = seat.listen(&place).unwrap();
        UnixStream::connect(&socket).await.unwrap();
        drop(listener);
    }

    #[tokio::test]
    async fn folders_that_others_can_enter_and_long_paths_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(120));
        std::fs::create_dir(&long).unwrap();
        let open = folder.path().join("lukasa");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        let place = StoreLocation::of(&long.join("lukasa.db"), Some(folder.path()), &long).unwrap();
        let user = own_user().unwrap();
        assert_eq!(place.socket().unwrap().parent().unwrap(), Path::new(&format!("/tmp/lukasa-{user}")));
        let fault = private(&open, user).unwrap_err();
        assert!(fault.contains("of this user alone"), "{fault}");
        assert!(private(folder.path(), user + 1).is_err(), "a folder of another user");
    }

    #[tokio::test]
    async fn if_no_process_can_attach_the_note_has_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        // There is a folder at the path of the socket.
        std::fs::create_dir(place.socket().unwrap()).unwrap();
        let mut seat = place.take().unwrap().unwrap();
        assert_eq!(seat.listen(&place).unwrap_err().code, ErrorCode::CannotListen);
        let note = place.note().unwrap();
        assert!(note.socket.is_none() && note.fault.is_some());
    }

    #[test]
    fn a_store_behind_a_link_has_the_same_place() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert_eq!(place(folder.path()).store, place(&link).store, "before the store is made");
        std::fs::write(folder.path().join("lukasa.db"), "").unwrap();
        assert_eq!(place(folder.path()).store, place(&link).store, "and afterwards");
    }
}
