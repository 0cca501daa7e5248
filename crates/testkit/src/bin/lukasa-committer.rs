//! Commits batches in a loop until it is killed, and reports each: the writer process of the crash tests.
//!
//!   lukasa-committer STORE WRITER FIRST
//!
//! Batch `i` of writer `w` writes five objects `w:i:0` … `w:i:4`, all with `x = i`. `ack i` is printed once the
//! commit has returned; an error is printed as `err code`, and the same batch is sent again under its id.

use lukasa_model::batch::PutObject;
use lukasa_model::transaction::Header;
use lukasa_model::{Batch, Result, Scope};
use lukasa_store::postgres::PostgresConfig;
use lukasa_store::sqlite::Durability;
use lukasa_store::{Ledger, PostgresStore, SqliteStore, Store, SystemClock};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, place, writer, first] = args.as_slice() else { panic!("STORE WRITER FIRST") };
    let first: u64 = first.parse().expect("FIRST is a number");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let store = loop {
        match open(place, &runtime) {
            Ok(store) => break store,
            Err(e) => {
                report(&format!("err {}", e.code));
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    };
    let scope = Scope::new("crash", "test").expect("plain names");
    let ledger = Ledger::new(store, Arc::new(SystemClock), scope);
    for i in first.. {
        let header = Header { client_id: Some(format!("{writer}:{i}")), ..Header::default() };
        let writes =
            (0..5).map(|j| PutObject::new("Crash", &format!("{writer}:{i}:{j}")).property("x", i).into()).collect();
        let batch = Batch { header, writes, ..Batch::on("main") };
        while let Err(e) = ledger.commit(&batch) {
            report(&format!("err {}", e.code));
            std::thread::sleep(Duration::from_millis(20));
        }
        report(&format!("ack {i}"));
    }
}

fn open(place: &str, runtime: &tokio::runtime::Runtime) -> Result<Arc<dyn Store>> {
    if place.starts_with("postgres://") {
        let store = PostgresStore::open(&PostgresConfig::new(place), runtime.handle().clone(), None)?;
        return Ok(Arc::new(store));
    }
    Ok(Arc::new(SqliteStore::open(Path::new(place), Arc::new(SystemClock), Durability::Full)?))
}

fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    // The reader may have closed its end; then this process is about to be killed.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
