//! The reference: the same serialised rows, written by raw prepared inserts into one plain indexed table per kind.

use super::facts::SyntheticFacts;
use futures_util::future::try_join_all;
use lukasa_model::id::{object_id, relationship_id};
use lukasa_model::{Reference, Scope, Write};
use lukasa_testkit::TestDatabase;
use rusqlite::{Connection, params};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};
use uuid::Uuid;

enum Row {
    Object { id: Uuid, key: String, type_name: String, content: String },
    Relationship { id: Uuid, type_name: String, src: Uuid, dst: Uuid, content: String },
}

/// Serialised beforehand, so that only the work of the database is measured.
fn rows(writes: Vec<Write>, namespace: Uuid) -> Vec<Row> {
    let end = |reference: &Reference| match reference.typed() {
        Some((type_name, key)) => object_id(namespace, type_name, key),
        None => Uuid::nil(),
    };
    writes
        .into_iter()
        .map(|write| match write {
            Write::Object(put) => {
                let (content, key) = (put.content().canonical(), put.key.unwrap_or_default());
                Row::Object { id: object_id(namespace, &put.type_name, &key), key, type_name: put.type_name, content }
            }
            Write::Relationship(put) => {
                let (src, dst, content) = (end(&put.src), end(&put.dst), put.content().canonical());
                let id = relationship_id(namespace, &put.type_name, src, dst, &put.discriminator);
                Row::Relationship { id, type_name: put.type_name, src, dst, content }
            }
            Write::End(_) => unreachable!("the facts have no ends"),
        })
        .collect()
}

fn namespace() -> Uuid {
    Scope { tenant: "evals".into(), project: "store".into() }.namespace()
}

/// With the durability of the ledger: WAL, synchronous FULL, the same transactions.
pub fn sqlite(path: &Path, facts: &SyntheticFacts, size: usize) -> Result<Duration, Box<dyn Error>> {
    let db = Connection::open(path)?;
    db.execute_batch(
        "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
         PRAGMA wal_autocheckpoint = 4096;
         CREATE TABLE objects (id BLOB PRIMARY KEY, key TEXT NOT NULL, type TEXT NOT NULL, content TEXT NOT NULL);
         CREATE INDEX objects_key ON objects (key);
         CREATE TABLE relationships (id BLOB PRIMARY KEY, type TEXT NOT NULL, src BLOB NOT NULL, dst BLOB NOT NULL,
                                     content TEXT NOT NULL);
         CREATE INDEX relationships_src ON relationships (src);
         CREATE INDEX relationships_dst ON relationships (dst);",
    )?;
    let mut spent = Duration::ZERO;
    for writes in facts.batches(size) {
        let rows = rows(writes, namespace());
        let start = Instant::now();
        db.execute_batch("BEGIN IMMEDIATE")?;
        let mut object = db.prepare_cached("INSERT INTO objects VALUES (?1, ?2, ?3, ?4)")?;
        let mut relationship = db.prepare_cached("INSERT INTO relationships VALUES (?1, ?2, ?3, ?4, ?5)")?;
        for row in &rows {
            match row {
                Row::Object { id, key, type_name, content } => {
                    object.execute(params![id.as_bytes(), key, type_name, content])?
                }
                Row::Relationship { id, type_name, src, dst, content } => {
                    relationship.execute(params![id.as_bytes(), type_name, src.as_bytes(), dst.as_bytes(), content])?
                }
            };
        }
        db.execute_batch("COMMIT")?;
        spent += start.elapsed();
    }
    Ok(spent)
}

/// Pipelined, so that it does not wait for a round trip per row.
pub fn postgres(database: &TestDatabase, facts: &SyntheticFacts, size: usize) -> Result<Duration, Box<dyn Error>> {
    database.as_admin(
        "CREATE TABLE public.objects (id uuid PRIMARY KEY, key text NOT NULL, type text NOT NULL, content text NOT NULL);
         CREATE INDEX ON public.objects (key);
         CREATE TABLE public.relationships (id uuid PRIMARY KEY, type text NOT NULL, src uuid NOT NULL,
                                            dst uuid NOT NULL, content text NOT NULL);
         CREATE INDEX ON public.relationships (src);
         CREATE INDEX ON public.relationships (dst);",
    );
    database.runtime().block_on(async {
        let (client, connection) = tokio_postgres::connect(&database.admin_url, tokio_postgres::NoTls).await?;
        let pump = tokio::spawn(connection);
        let object = client.prepare("INSERT INTO public.objects VALUES ($1, $2, $3, $4)").await?;
        let relationship = client.prepare("INSERT INTO public.relationships VALUES ($1, $2, $3, $4, $5)").await?;
        let mut spent = Duration::ZERO;
        for writes in facts.batches(size) {
            let rows = rows(writes, namespace());
            let start = Instant::now();
            client.batch_execute("BEGIN").await?;
            for chunk in rows.chunks(1_000) {
                try_join_all(chunk.iter().map(|row| {
                    let (client, object, relationship) = (&client, &object, &relationship);
                    async move {
                        match row {
                            Row::Object { id, key, type_name, content } => {
                                client.execute(object, &[id, key, type_name, content]).await
                            }
                            Row::Relationship { id, type_name, src, dst, content } => {
                                client.execute(relationship, &[id, type_name, src, dst, content]).await
                            }
                        }
                    }
                }))
                .await?;
            }
            client.batch_execute("COMMIT").await?;
            spent += start.elapsed();
        }
        drop(client);
        let _ = pump.await;
        Ok(spent)
    })
}
