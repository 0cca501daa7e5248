//! Row-level security in PostgreSQL: its setup, and the check that it is as required.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_model::batch::PutObject;
use lukasa_model::json::Hash;
use lukasa_model::{Batch, ErrorCode, Scope, Tx};
use lukasa_store::audit::{AuditFlaw, AuditHead, AuditNote, Seals, walk};
use lukasa_store::derived::{JobLane, NewJob, Vector};
use lukasa_store::postgres::PostgresConfig;
use lukasa_store::{AccessKey, Ledger, Store, SystemClock};
use lukasa_testkit::TestDatabase;
use std::sync::Arc;

const TABLES: [&str; 13] = [
    "projects",
    "things",
    "statements",
    "provenance",
    "transactions",
    "client_batches",
    "vector_models",
    "vectors",
    "jobs",
    "marks",
    "access_keys",
    "audit",
    "audit_heads",
];

fn ledger(database: &TestDatabase, tenant: &str) -> Ledger {
    let store: Arc<dyn Store> = Arc::new(database.open(None).unwrap());
    Ledger::new(store, Arc::new(SystemClock), Scope::new(tenant, "shop").unwrap())
}

fn access_key(id: &str, tenant: &str) -> AccessKey {
    AccessKey {
        id: id.into(),
        secret: Hash::of(id.as_bytes()),
        tenant: tenant.into(),
        project: None,
        user: "ada".into(),
        scopes: ["graph:read".to_string()].into(),
        agents: Default::default(),
        created_at: lukasa_model::Time(0),
        expires_at: None,
        revoked_at: None,
        last_used: None,
    }
}

struct Unsealed;

impl Seals for Unsealed {
    fn seal(&self, head: &AuditHead) -> Hash {
        head.hash
    }

    fn key_id(&self) -> &str {
        ""
    }
}

fn audit_note(tenant: &str) -> AuditNote {
    AuditNote {
        tenant: tenant.into(),
        project: "shop".into(),
        at: lukasa_model::Time(0),
        user: None,
        agent: None,
        operation: "get".into(),
        scopes: "*".into(),
        request: "r".into(),
        status: "ok".into(),
        counts: Default::default(),
        truncated: false,
        took_us: 1,
        request_id: None,
        address: None,
    }
}

fn put(ledger: &Ledger, key: &str) {
    let header = lukasa_model::transaction::Header { client_id: Some(key.into()), ..Default::default() };
    ledger.commit(&Batch { header, ..Batch::on("main") }.write(PutObject::new("Service", key))).unwrap();
}

#[test]
fn without_a_scope_the_application_role_sees_no_rows() {
    let Some(database) = TestDatabase::new() else { return };
    put(&ledger(&database, "a"), "mine");
    put(&ledger(&database, "b"), "theirs");
    let store = database.open(None).unwrap();
    for tenant in ["a", "b"] {
        let (scope, derived) = (Scope::new(tenant, "shop").unwrap(), store.derived());
        let made_at = lukasa_model::Time(0);
        let vector = Vector { input: Hash::of(b"x"), bytes: vec![1], made_at, redacted: 0 };
        derived.put_vectors(&scope, "m", &[vector]).unwrap();
        let (key, payload) = ("k".into(), String::new());
        let job = NewJob { key, lane: JobLane::Ordinary, required: true, priority: 0.0, payload, not_before: made_at };
        derived.enqueue(&scope, "embedding", &[job], made_at).unwrap();
        derived.set_mark(&scope, "m", 1).unwrap();
        store.access_keys().add(&access_key(&format!("of-{tenant}"), tenant)).unwrap();
        store.audit().append("s1", &[audit_note(tenant)], &Unsealed, true).unwrap();
    }
    let scoped = |tenant: &str, sql: &str| {
        database.as_app(&format!(
            "BEGIN; SET LOCAL lukasa.tenant = '{tenant}'; SET LOCAL lukasa.project = 'shop'; {sql}; COMMIT"
        ))
    };
    for table in TABLES {
        let count = format!("SELECT count(*) FROM lukasa.{table}");
        assert_eq!(database.as_app(&count).unwrap(), ["0"], "{table} without a scope");
        let own = if table == "provenance" { "0" } else { "1" };
        assert_eq!(scoped("a", &count).unwrap(), [own], "{table} with a scope");
        let others = format!("SELECT count(*) FROM lukasa.{table} WHERE tenant = 'b'");
        assert_eq!(scoped("a", &others).unwrap(), ["0"], "{table} of another tenant");
        // An empty scope is no scope.
        assert_eq!(scoped("", &count).unwrap(), ["0"], "{table} with an empty scope");
    }
    // Only rows of the own scope can be removed.
    for table in ["vectors", "jobs", "marks"] {
        let gone = format!("DELETE FROM lukasa.{table} WHERE tenant = 'b' RETURNING 1");
        assert_eq!(scoped("a", &gone).unwrap(), Vec::<String>::new(), "{table} of another tenant");
        assert_eq!(scoped("b", &format!("SELECT count(*) FROM lukasa.{table}")).unwrap(), ["1"], "{table}");
    }
    // Writing to another scope, and changing or removing any fact, is rejected (42501).
    let insert =
        "INSERT INTO lukasa.things VALUES ('b', 'shop', 99, gen_random_uuid(), 'X', NULL, NULL, NULL, NULL, false)";
    assert_eq!(scoped("a", insert).unwrap_err(), "42501");
    for sql in [
        "UPDATE lukasa.statements SET content = '{}'",
        "DELETE FROM lukasa.statements",
        "TRUNCATE lukasa.transactions",
        "DELETE FROM lukasa.projects",
        "UPDATE lukasa.audit SET status = 'x'",
        "DELETE FROM lukasa.audit",
        "TRUNCATE lukasa.audit",
        "DELETE FROM lukasa.audit_heads",
        "UPDATE lukasa.audit_heads SET server = 'x'",
        "ALTER TABLE lukasa.things DISABLE ROW LEVEL SECURITY",
        "DROP POLICY things_isolation ON lukasa.things",
        "SET ROLE postgres",
    ] {
        assert_eq!(scoped("a", sql).unwrap_err(), "42501", "{sql}");
    }
    // An update of another tenant's head affects no row.
    assert_eq!(
        scoped("a", "UPDATE lukasa.projects SET tx = 0 WHERE tenant = 'b' RETURNING 1").unwrap(),
        Vec::<String>::new()
    );
    assert_eq!(ledger(&database, "b").head().unwrap().tx, Tx(1));
    let role = database
        .as_app("SELECT rolsuper::text || rolbypassrls::text FROM pg_roles WHERE rolname = current_user")
        .unwrap();
    assert_eq!(role, ["falsefalse"]);
}

#[test]
fn a_transaction_that_names_a_key_sees_only_it_and_cannot_change_it() {
    let Some(database) = TestDatabase::new() else { return };
    let store = database.open(None).unwrap();
    for (id, tenant) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
        store.access_keys().add(&access_key(id, tenant)).unwrap();
    }
    let naming = |id: &str, tenant: &str, sql: &str| {
        database.as_app(&format!(
            "BEGIN; SET LOCAL lukasa.key = '{id}'; SET LOCAL lukasa.tenant = '{tenant}'; {sql}; COMMIT"
        ))
    };
    let seen = "SELECT id FROM lukasa.access_keys ORDER BY id";
    assert_eq!(database.as_app(seen).unwrap(), Vec::<String>::new());
    assert_eq!(naming("b1", "", seen).unwrap(), ["b1"]);
    assert_eq!(naming("b", "", seen).unwrap(), Vec::<String>::new());
    assert_eq!(naming("", "", seen).unwrap(), Vec::<String>::new());
    assert_eq!(naming("b1", "a", seen).unwrap(), ["a1", "a2", "b1"]);
    // Only its tenant can revoke a key. No one can change its tenant or its scopes.
    let revoke = "UPDATE lukasa.access_keys SET revoked_at = 1 WHERE id = 'b1' RETURNING 1";
    for tenant in ["", "a"] {
        assert_eq!(naming("b1", tenant, revoke).unwrap_err(), "42501", "as `{tenant}`");
    }
    assert_eq!(store.access_keys().find("b1").unwrap().unwrap().revoked_at, None);
    for sql in [
        "UPDATE lukasa.access_keys SET tenant = 'a'",
        "UPDATE lukasa.access_keys SET scopes = 'admin'",
        "UPDATE lukasa.access_keys SET secret = 'x'",
        "UPDATE lukasa.access_keys SET expires_at = NULL",
        "DELETE FROM lukasa.access_keys",
        "INSERT INTO lukasa.access_keys VALUES ('new', 'x', 'b', NULL, 'eve', 'admin', 0, NULL, NULL, NULL)",
    ] {
        assert_eq!(naming("b1", "a", sql).unwrap_err(), "42501", "{sql}");
    }
    assert_eq!(naming("", "b", revoke).unwrap(), ["1"]);
    // The access to a key ends with the transaction that named it.
    for _ in 0..20 {
        assert!(store.access_keys().find("a1").unwrap().is_some());
        assert_eq!(store.access_keys().of_tenant("c").unwrap(), []);
    }
}

#[test]
fn a_strict_store_does_not_start_when_policies_differ() {
    let Some(database) = TestDatabase::new() else { return };
    assert!(database.open(None).is_ok());
    let lax = PostgresConfig { strict: false, ..PostgresConfig::new(&database.app_url) };
    for (sql, says) in [
        ("CREATE POLICY extra ON lukasa.things USING (true)", "unknown policy `extra` on `things`"),
        (
            "DROP POLICY statements_isolation ON lukasa.statements",
            "policy `statements_isolation` on `statements` is missing",
        ),
        (
            "ALTER POLICY things_isolation ON lukasa.things USING (true)",
            "policy `things_isolation` on `things` was changed",
        ),
        (
            "ALTER POLICY access_keys_isolation ON lukasa.access_keys WITH CHECK (true)",
            "policy `access_keys_isolation` on `access_keys` was changed",
        ),
        ("ALTER TABLE lukasa.transactions NO FORCE ROW LEVEL SECURITY", "not forced on `transactions`"),
        ("ALTER TABLE lukasa.provenance DISABLE ROW LEVEL SECURITY", "not forced on `provenance`"),
        ("CREATE TABLE lukasa.leak (x int)", "unknown table `leak`"),
    ] {
        database.as_admin(sql);
        let error = database.open(None).err().expect(sql);
        assert_eq!(error.code, ErrorCode::PolicyDrift, "{sql}");
        assert!(error.message.contains(says), "{}", error.message);
        assert!(error.hint.is_some());
        let store = database.open_with(&lax, None).unwrap();
        assert!(store.warnings().iter().any(|w| w.contains(says)), "{:?}", store.warnings());
        database.as_admin("DROP TABLE IF EXISTS lukasa.leak");
        database.setup_again().unwrap();
        assert!(database.open(None).unwrap().warnings().is_empty(), "setup repairs it");
    }
    let owner = PostgresConfig::new(&database.admin_url);
    let error = database.open_with(&owner, None).err().expect("a superuser is refused");
    assert!(error.message.contains("superuser"), "{}", error.message);
}

/// Memberships, ownership and rights of the login role that setup did not grant.
#[test]
fn a_strict_store_does_not_start_when_the_role_has_too_many_rights() {
    let Some(database) = TestDatabase::new() else { return };
    let role = database.as_app("SELECT current_user").unwrap().remove(0);
    for (sql, undo, says) in [
        (
            "CREATE ROLE {r}_root SUPERUSER; GRANT {r}_root TO {r}",
            "DROP ROLE {r}_root",
            "is a member of `{r}_root`, which is a superuser",
        ),
        (
            "CREATE ROLE {r}_in; CREATE ROLE {r}_past BYPASSRLS; GRANT {r}_past TO {r}_in; GRANT {r}_in TO {r}",
            "DROP ROLE {r}_in; DROP ROLE {r}_past",
            "is a member of `{r}_past`, which may bypass row-level security",
        ),
        (
            "CREATE ROLE {r}_own; ALTER TABLE lukasa.things OWNER TO {r}_own; GRANT {r}_own TO {r}",
            "ALTER TABLE lukasa.things OWNER TO CURRENT_USER; DROP ROLE {r}_own",
            "is a member of `{r}_own`, which owns a part of the schema",
        ),
        (
            "GRANT pg_write_all_data TO {r}",
            "REVOKE pg_write_all_data FROM {r}",
            "is a member of `pg_write_all_data`, which reaches beyond what is granted",
        ),
        (
            "ALTER TABLE lukasa.statements OWNER TO {r}",
            "ALTER TABLE lukasa.statements OWNER TO CURRENT_USER",
            "owns table `statements`",
        ),
        ("ALTER SCHEMA lukasa OWNER TO {r}", "ALTER SCHEMA lukasa OWNER TO CURRENT_USER", "owns schema `lukasa`"),
        ("ALTER ROLE {r} CREATEROLE", "", "may make roles and join them"),
        ("GRANT TRUNCATE ON lukasa.transactions TO {r}", "", "may TRUNCATE on `transactions`"),
        ("GRANT DELETE ON lukasa.audit TO PUBLIC", "", "may DELETE on `audit`"),
        ("GRANT UPDATE ON lukasa.statements TO {r}", "", "may UPDATE on `statements`"),
        ("GRANT UPDATE (content) ON lukasa.statements TO {r}", "", "may UPDATE on `statements.content`"),
        ("GRANT UPDATE (scopes) ON lukasa.access_keys TO {r}", "", "may UPDATE on `access_keys.scopes`"),
        ("GRANT INSERT ON lukasa.refinery_schema_history TO {r}", "", "may INSERT on `refinery_schema_history`"),
        ("GRANT CREATE ON SCHEMA lukasa TO PUBLIC", "", "may make tables in the schema `lukasa`"),
    ] {
        let [sql, undo, says] = [sql, undo, says].map(|text| text.replace("{r}", &role));
        database.as_admin(&sql);
        let error = database.open(None).err().unwrap_or_else(|| panic!("{sql} is not detected"));
        assert_eq!(error.code, ErrorCode::PolicyDrift, "{sql}");
        assert!(error.message.contains(&says), "{sql}: {}", error.message);
        database.as_admin(&undo);
        database.setup_again().unwrap();
        let left = database.open(None).err().map(|e| e.message);
        assert_eq!(left, None, "setup repairs it: {sql}");
    }
}

#[test]
fn databases_that_are_newer_or_not_set_up_are_rejected() {
    let Some(database) = TestDatabase::new() else { return };
    database.as_admin("INSERT INTO lukasa.refinery_schema_history (version, name, applied_on, checksum) VALUES (999, 'later', 'x', '1')");
    let error = database.open(None).err().unwrap();
    assert_eq!(error.code, ErrorCode::NewerSchema);
    assert!(error.message.contains("schema version 999") && error.hint.is_some(), "{}", error.message);
    assert_eq!(database.setup_again().unwrap_err().code, ErrorCode::NewerSchema);
    database.as_admin("DROP SCHEMA lukasa CASCADE");
    assert_eq!(database.open(None).err().unwrap().code, ErrorCode::SchemaMissing);
    let nowhere = PostgresConfig::new("postgres://nobody@127.0.0.1:1/none");
    assert_eq!(database.open_with(&nowhere, None).err().unwrap().code, ErrorCode::StoreUnreachable);
    let garbage = PostgresConfig::new("postgres://host:notaport/x");
    assert_eq!(database.open_with(&garbage, None).err().unwrap().code, ErrorCode::InvalidUrl);
}

#[test]
fn two_servers_on_one_database_share_one_log() {
    let Some(database) = TestDatabase::new() else { return };
    let (one, two) = (ledger(&database, "a"), ledger(&database, "a"));
    put(&one, "x");
    put(&two, "y");
    put(&one, "z");
    assert_eq!(two.head().unwrap().tx, Tx(3));
    let view = two.view(&Default::default()).unwrap();
    assert_eq!(two.stream_view(&view, lukasa_store::VersionFields::Header).unwrap().count(), 3);
    one.verify(&mut |_, _| {}).unwrap();
}

#[test]
fn what_an_administrator_does_to_the_record_is_named() {
    let Some(database) = TestDatabase::new() else { return };
    let store = database.open(None).unwrap();
    let notes: Vec<_> = (1..=6).map(|took_us| AuditNote { took_us, ..audit_note("a") }).collect();
    store.audit().append("s1", &notes, &Unsealed, true).unwrap();
    let verify = || walk(store.audit(), "a", &Unsealed, &[], &mut |_| {}).unwrap().map_err(|f| (f.number, f.flaw));
    assert_eq!(verify().unwrap()[0].entries, 6);
    let of = "WHERE tenant = 'a' AND number";
    // Each change is undone before the next one.
    for (change, back, number, flaw) in [
        ("UPDATE lukasa.audit SET status = 'x'", "UPDATE lukasa.audit SET status = 'ok'", 3, AuditFlaw::Changed),
        ("UPDATE lukasa.audit SET agent = ''", "UPDATE lukasa.audit SET agent = NULL", 6, AuditFlaw::Changed),
    ] {
        database.as_admin(&format!("{change} {of} = {number}"));
        assert_eq!(verify().unwrap_err(), (number, flaw), "{change}");
        database.as_admin(&format!("{back} {of} = {number}"));
        assert!(verify().is_ok(), "{back}");
    }
    let swap = |a: u32, b: u32| {
        let (there, back) = (format!("{of} = {a}"), format!("{of} = {b}"));
        database.as_admin(&format!(
            "UPDATE lukasa.audit SET number = 99 {there}; UPDATE lukasa.audit SET number = {a} {back};
             UPDATE lukasa.audit SET number = {b} {of} = 99"
        ));
    };
    swap(2, 5);
    assert_eq!(verify().unwrap_err(), (2, AuditFlaw::Reordered));
    swap(2, 5);
    assert!(verify().is_ok());
    database.as_admin(&format!("DELETE FROM lukasa.audit {of} > 5"));
    assert_eq!(verify().unwrap_err(), (5, AuditFlaw::CutOff));
    database.as_admin(&format!("DELETE FROM lukasa.audit {of} = 1"));
    assert_eq!(verify().unwrap_err(), (1, AuditFlaw::Missing));
}
