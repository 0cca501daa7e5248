//! Connections to PostgreSQL: broken connections, read-only and silent servers, aborted transactions, TLS.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use lukasa_model::batch::PutObject;
use lukasa_model::{Batch, Error, ErrorCode, ErrorKind, Scope, Tx};
use lukasa_store::postgres::PostgresConfig;
use lukasa_store::{Ledger, Store, SystemClock};
use lukasa_testkit::{Authority, Cluster, TestDatabase};
use std::net::TcpListener;
use std::sync::Arc;

fn ledger(store: Arc<dyn Store>) -> Ledger {
    Ledger::new(store, Arc::new(SystemClock), Scope::new("a", "shop").unwrap())
}

fn put(ledger: &Ledger, key: &str) -> Result<Option<Tx>, Error> {
    ledger.commit(&Batch::on("main").write(PutObject::new("Service", key))).map(|done| done.tx)
}

/// Terminates every connection of the application, as a server does that shuts down.
fn break_connections(database: &TestDatabase) {
    let role = database.as_app("SELECT current_user").unwrap().remove(0);
    database.as_admin_rows(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"));
}

#[test]
fn broken_connections_are_replaced_without_an_error() {
    let Some(database) = TestDatabase::new() else { return };
    let ledger = ledger(Arc::new(database.open(None).unwrap()));
    put(&ledger, "first").unwrap();
    for n in 0..5 {
        break_connections(&database);
        assert_eq!(ledger.head().unwrap().tx, Tx(n * 2 + 1));
        put(&ledger, &format!("read {n}")).unwrap();
        break_connections(&database);
        put(&ledger, &format!("written {n}")).unwrap();
        break_connections(&database);
        ledger.store().derived().set_mark(ledger.scope(), "m", n).unwrap();
    }
    ledger.verify(&mut |_, _| {}).unwrap();
}

#[test]
fn a_read_only_server_is_reported_and_left_once_another_accepts_writes() {
    let Some(database) = TestDatabase::new() else { return };
    let ledger = ledger(Arc::new(database.open(None).unwrap()));
    put(&ledger, "before").unwrap();
    let role = database.as_app("SELECT current_user").unwrap().remove(0);
    database.as_admin(&format!("ALTER ROLE {role} SET default_transaction_read_only = on"));
    break_connections(&database);
    let refused = put(&ledger, "meanwhile").unwrap_err();
    assert_eq!((refused.code, refused.kind), (ErrorCode::ReadOnlyStore, ErrorKind::Unavailable), "{refused:?}");
    assert_eq!(ledger.head().unwrap().tx, Tx(1), "it can be read");
    let refused = ledger.store().derived().set_mark(ledger.scope(), "m", 1).unwrap_err();
    assert_eq!(refused.code, ErrorCode::ReadOnlyStore);
    // Connections made meanwhile stay read-only and must not be reused.
    database.as_admin(&format!("ALTER ROLE {role} RESET default_transaction_read_only"));
    assert_eq!(put(&ledger, "after").unwrap(), Some(Tx(2)));
    ledger.store().derived().set_mark(ledger.scope(), "m", 1).unwrap();
}

#[test]
fn an_aborted_transaction_is_retried() {
    let Some(database) = TestDatabase::new() else { return };
    let ledger = ledger(Arc::new(database.open(None).unwrap()));
    put(&ledger, "before").unwrap();
    for state in ["40001", "40P01"] {
        database.as_admin(&format!(
            "CREATE SEQUENCE lukasa.tries;
             CREATE FUNCTION lukasa.give_up() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
             BEGIN
                 IF nextval('lukasa.tries') <= 2 THEN RAISE EXCEPTION 'given up' USING ERRCODE = '{state}'; END IF;
                 RETURN NEW;
             END $$;
             CREATE TRIGGER give_up BEFORE INSERT ON lukasa.transactions FOR EACH ROW EXECUTE FUNCTION lukasa.give_up()"
        ));
        let before = ledger.head().unwrap().tx;
        assert_eq!(put(&ledger, &format!("through {state}")).unwrap(), Some(before.next()), "{state}");
        database.as_admin("ALTER SEQUENCE lukasa.tries MINVALUE -1000 RESTART WITH -1000");
        let refused = put(&ledger, &format!("never {state}")).unwrap_err();
        assert_eq!((refused.code, refused.kind), (ErrorCode::StoreConflict, ErrorKind::Unavailable), "{refused:?}");
        assert_eq!(ledger.head().unwrap().tx, before.next(), "nothing was written");
        database.as_admin("DROP FUNCTION lukasa.give_up CASCADE; DROP SEQUENCE lukasa.tries");
    }
    ledger.verify(&mut |_, _| {}).unwrap();
}

#[test]
fn a_host_that_never_answers_is_skipped() {
    let Some(database) = TestDatabase::new() else { return };
    // Accepts connections and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap().port();
    let at = database.app_url.find("@127.0.0.1:").unwrap() + 1;
    let (user, place) = database.app_url.split_at(at);
    for first in [format!("127.0.0.1:{silent}"), "127.0.0.1:1".to_owned()] {
        let config = PostgresConfig::new(&format!("{user}{first},{place}?connect_timeout=1"));
        let store = database.open_with(&config, None).unwrap();
        put(&ledger(Arc::new(store)), &first).unwrap();
    }
}

/// The TLS settings of a URL apply exactly: neither weaker nor stronger checks are made.
#[test]
fn certificates_are_checked_according_to_the_url() {
    let Some(server) = Cluster::alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(authority) = Authority::new(folder.path(), "ours") else { return };
    let stranger = Authority::new(folder.path(), "theirs").unwrap();
    // The administrator connects without TLS, so cleaning up would fail; the whole server is removed instead.
    let database = std::mem::ManuallyDrop::new(TestDatabase::on(&server.primary_url()));
    let only_tls = "hostssl all all 127.0.0.1/32 trust\n";
    let (own, strange) = (authority.root(), stranger.root());
    let roots = |path: &std::path::Path| format!("&sslrootcert={}", path.display());
    let tried = |more: &str| {
        let config = PostgresConfig::new(&format!("{}?{more}", database.app_url));
        database.open_with(&config, None).map(drop).map_err(|e| e.code)
    };
    let refused = Err(ErrorCode::StoreUnreachable);

    server.encrypt(&authority.issue("right", "IP:127.0.0.1"), &own, only_tls);
    assert_eq!(tried("sslmode=disable").unwrap_err(), ErrorCode::StoreLoginFailed, "TLS is required");
    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        assert_eq!(tried(&format!("sslmode={mode}{}", roots(&own))), Ok(()), "{mode}");
    }
    assert_eq!(tried("sslmode=require"), Ok(()), "encrypted, without a check");
    for mode in ["require", "verify-ca", "verify-full"] {
        assert_eq!(tried(&format!("sslmode={mode}{}", roots(&strange))), refused, "{mode} with a foreign root");
    }
    assert_eq!(tried("sslmode=verify-full"), refused, "the authority is not trusted by the machine");

    server.encrypt(&authority.issue("wrong", "DNS:db.example"), &own, only_tls);
    assert_eq!(tried(&format!("sslmode=verify-ca{}", roots(&own))), Ok(()), "for any host");
    assert_eq!(tried(&format!("sslmode=verify-full{}", roots(&own))), refused, "the certificate is for another host");

    let client = authority.issue("client", "DNS:client");
    let with_client = "hostssl all all 127.0.0.1/32 trust clientcert=verify-ca\n";
    server.encrypt(&authority.issue("right", "IP:127.0.0.1"), &own, with_client);
    let mutual = format!("sslcert={}&sslkey={}", client.certificate.display(), client.key.display());
    assert_eq!(tried(&format!("sslmode=verify-full{}&{mutual}", roots(&own))), Ok(()));
    assert!(tried(&format!("sslmode=verify-full{}", roots(&own))).is_err(), "without a client certificate");
}
