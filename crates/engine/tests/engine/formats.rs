//! Formats of earlier builds can still be read: the audit record, and cursors.

use lukasa_engine::audit::AuditKey;
use lukasa_engine::cursor::Cursor;
use lukasa_model::json::Hash;
use lukasa_model::{BranchNo, ErrorCode, Time, Tx};
use lukasa_store::audit::{AuditFlaw, walk};
use lukasa_store::sqlite::Durability;
use lukasa_store::{SqliteStore, Store, SystemClock};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

#[test]
fn a_record_of_schema_1_verifies_with_its_key_and_with_no_other() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(fixture("audit-schema-1.audit.db"), folder.path().join("lukasa.audit.db")).unwrap();
    let store =
        SqliteStore::open(&folder.path().join("lukasa.db"), Arc::new(SystemClock), Durability::Rebuildable).unwrap();
    let text = std::fs::read_to_string(fixture("audit-schema-1.key")).unwrap();
    let key = AuditKey::new(text.trim().as_bytes()).unwrap();
    let chains = walk(store.audit(), "test", &key, &[], &mut |_| {}).unwrap().unwrap();
    assert_eq!(
        chains.iter().map(|chain| (chain.server.as_str(), chain.entries)).collect::<Vec<_>>(),
        [("local", ENTRIES)]
    );
    let other = AuditKey::new(&[1; 32]).unwrap();
    let fault = walk(store.audit(), "test", &other, &[], &mut |_| {}).unwrap().unwrap_err();
    assert_eq!(fault.flaw, AuditFlaw::UnknownSeal);
}

/// Operations in the fixture.
const ENTRIES: u64 = 17;

#[test]
fn a_cursor_of_form_2_opens() {
    let cursor = Cursor {
        branch: BranchNo(2),
        known: Tx(7),
        digest: 11,
        valid: Time(1_767_225_600_000_000),
        place: 40,
        backwards: true,
        spared: 5,
        request: [1, 2, 3, 4, 5, 6, 7, 8],
    };
    let key = Hash([9; 32]);
    let first_form = "AQAAAAIAAAAAAAAABwAGR0hGIEAAAAAAKAsBAgMEBQYHCGftjWxbKTJEkEdP14LcfPk";
    assert_eq!(Cursor::open(first_form, &key).unwrap_err().code, ErrorCode::InvalidCursor);
    let text = "AgAAAAIAAAAAAAAABwAAAAAAAAALAAZHSEYgQAAAAAAoCwECAwQFBgcICJyOlEDCP-OWF1enD9gmNQ";
    assert_eq!(cursor.seal(&key), text);
    assert_eq!(Cursor::open(text, &key).unwrap(), cursor);
    assert_eq!(Cursor::open(text, &Hash([8; 32])).unwrap_err().code, ErrorCode::InvalidCursor);
}
