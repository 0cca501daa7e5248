//! Configures the audit log: what is recorded, the name of the chain, and the key.

use crate::config::OpenedStore;
use crate::settings;
use lukasa_engine::Audit;
use lukasa_engine::audit::{AuditKey, AuditedOperations};
use lukasa_engine::telemetry::log;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use lukasa_store::private;
use ring::rand::SecureRandom;
use std::io::{ErrorKind as Io, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the key file beside the settings, and the extension of the one beside a store.
const KEY_FILE: &str = "audit.key";

/// Creates the audit log of an opened store. `port` is that of a listening server.
pub fn recorder(opened: &OpenedStore, keeps: AuditedOperations, port: Option<u16>) -> Result<Audit> {
    let wishes = settings::audit()?;
    let server = match (&wishes.server, &opened.file) {
        (Some(server), _) => server.clone(),
        // Processes that append to one file wait for each other anyway, so they share one chain.
        (None, Some(_)) => "local".into(),
        (None, None) => port.map_or_else(host, |port| format!("{}:{port}", host())),
    };
    let known = wishes.known_key_files.iter().map(|path| read_key(path)).collect::<Result<Vec<_>>>()?;
    let key = Arc::new(key(wishes.key_file, opened.file.as_deref())?.knowing(known));
    log::set_key(Arc::clone(&key));
    let keeps = wishes.keep.unwrap_or(keeps);
    Ok(Audit::new(Arc::clone(&opened.store), Arc::clone(&opened.clock), &server, key, keeps))
}

/// Hides names in logs with the same key as in the audit log, even if another process has the store open.
pub fn hide_names(store: Option<&Path>) -> Result<()> {
    log::set_key(Arc::new(key(settings::audit()?.key_file, store)?));
    Ok(())
}

/// The audit key of a store. It is read from the named file, or from beside the store, or from beside the settings, and
/// created if it is missing.
pub fn key(named: Option<PathBuf>, store: Option<&Path>) -> Result<AuditKey> {
    let Some(path) = place(named, store) else {
        // There is no place to store a key: names are still hidden, but their hashes differ in the next run.
        return AuditKey::new(&random()?);
    };
    let fault = |e: std::io::Error| {
        Error::new(ErrorKind::Unavailable, ErrorCode::FileFailure, format!("`{}`: {e}", path.display()))
            .hint("name another file for the key of the audit log with LUKASA_AUDIT_KEY_FILE")
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => AuditKey::new(text.trim().as_bytes()).map_err(|e| e.at(path.display())),
        Err(e) if e.kind() == Io::NotFound => match make(&path) {
            Ok(text) => AuditKey::new(text.as_bytes()),
            // Another process created it at the same moment.
            Err(e) if e.kind() == Io::AlreadyExists => {
                AuditKey::new(std::fs::read_to_string(&path).map_err(fault)?.trim().as_bytes())
            }
            // A read-only store must still be readable.
            Err(e) if matches!(e.kind(), Io::PermissionDenied | Io::ReadOnlyFilesystem) => AuditKey::new(&random()?),
            Err(e) => Err(fault(e)),
        },
        Err(e) => Err(fault(e)),
    }
}

fn place(named: Option<PathBuf>, store: Option<&Path>) -> Option<PathBuf> {
    let beside = store.map(|store| store.with_extension(KEY_FILE));
    named.or(beside).or_else(|| Some(settings::file()?.parent()?.join(KEY_FILE)))
}

/// A check that the key file can still be read: without it, the next process could not continue the audit chains. None
/// if there is no key file.
pub fn key_check(store: Option<&Path>) -> Result<Option<impl Fn() -> Result<()> + Send + Sync + use<>>> {
    let path = place(settings::audit()?.key_file, store).filter(|path| path.exists());
    Ok(path.map(|path| {
        move || {
            let text = std::fs::read_to_string(&path).map_err(|e| {
                Error::new(ErrorKind::Unavailable, ErrorCode::KeysUnreadable, format!("`{}`: {e}", path.display()))
                    .hint("restore the key file of the audit log")
            })?;
            AuditKey::new(text.trim().as_bytes()).map(drop).map_err(|e| e.at(path.display()))
        }
    }))
}

/// Reads a key file, which must exist.
fn read_key(path: &Path) -> Result<AuditKey> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        Error::new(ErrorKind::Unavailable, ErrorCode::FileFailure, format!("`{}`: {e}", path.display()))
            .hint("audit.known_key_files (LUKASA_AUDIT_KNOWN_KEY_FILES) names files of keys that are there")
    })?;
    AuditKey::new(text.trim().as_bytes()).map_err(|e| e.at(path.display()))
}

/// Writes a new key to a temporary file first, so that no process reads half a key.
fn make(path: &Path) -> std::io::Result<String> {
    let drawn = || random().map_err(|e| std::io::Error::other(e.message));
    let text: String = drawn()?.iter().map(|b| format!("{b:02x}")).collect();
    if let Some(folder) = path.parent() {
        private::create_dir_all(folder)?;
    }
    let part = path.with_extension(format!("{:02x?}.part", &drawn()?[..8]).replace(['[', ']', ',', ' '], ""));
    let written =
        private::create_new(&part).and_then(|mut file| writeln!(file, "{text}").and_then(|()| file.sync_all()));
    // Unlike a rename, a hard link does not replace an existing file.
    let linked = written.and_then(|()| std::fs::hard_link(&part, path));
    std::fs::remove_file(&part)?;
    linked.map(|()| text)
}

fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::internal("the system gives no random bytes"))?;
    Ok(bytes)
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "server".into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

    use super::*;
    use lukasa_store::audit::Seals;

    #[test]
    fn a_key_is_created_once_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("deep/lukasa.db");
        let ids: Vec<String> = std::thread::scope(|threads| {
            let all: Vec<_> =
                (0..8).map(|_| threads.spawn(|| key(None, Some(&store)).unwrap().key_id().to_string())).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let file = folder.path().join("deep/lukasa.audit.key");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions()) & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
        let other = folder.path().join("other");
        std::fs::write(&other, "a secret of some length\n").unwrap();
        assert_ne!(key(Some(other), Some(&store)).unwrap().key_id(), ids[0]);
        std::fs::write(&file, "short").unwrap();
        assert_eq!(key(None, Some(&store)).unwrap_err().code, ErrorCode::WeakKey);
    }
}
