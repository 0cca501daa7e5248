//! Bulk export and import as HTTP bodies, streamed without holding all facts in memory.
//!
//! Bodies pass through a temporary file, so that any process with the engine can write or read it, and a slow client
//! does not delay other work.

use super::routes::{fields_of_query, reading};
use super::{RequestId, Site, body, refusal};
use crate::request_gate::Caller;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use lukasa_engine::features::facts::ops::export::ExportOp;
use lukasa_engine::features::facts::ops::import::ImportOp;
use lukasa_engine::registry::Op;
use lukasa_engine::{Operation, registry};
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use lukasa_store::private;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use tokio::sync::mpsc;

/// Paths of bulk transfers.
pub const EXPORT: &str = "/graph/export";
pub const IMPORT: &str = "/graph/import";
/// Newline-delimited JSON, one fact per line.
pub const LINES: &str = "application/x-ndjson";

/// Bytes read and sent at a time.
const PART: usize = 64 << 10;
/// Parts buffered between reader and writer.
const WAITING: usize = 4;

pub async fn export(
    State(site): State<Site>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    RawQuery(query): RawQuery,
) -> Response {
    exported(&site, caller, query).await.unwrap_or_else(|error| refusal(&error, &id))
}

async fn exported(site: &Site, caller: Caller, query: Option<String>) -> Result<Response> {
    let (operation, mut request) = bulk_request(ExportOp::META.name, &caller, query.as_deref())?;
    let counted = site.front.body(&caller)?;
    let kind = match request.get("format").and_then(Value::as_str) {
        Some("node-link") => "application/json",
        _ => LINES,
    };
    let spool = blocking(Spool::new).await?;
    request.insert("file".into(), Value::String(spool.path().display().to_string()));
    site.front.call(&with_local_paths(caller), operation.meta.name, Value::Object(request), None).await?;
    let (send, receive) = mpsc::channel::<std::io::Result<Bytes>>(WAITING);
    tokio::task::spawn_blocking(move || {
        let _counted = counted;
        let mut file = File::open(spool.path());
        loop {
            let part = file.as_mut().map_err(|e| std::io::Error::new(e.kind(), e.to_string())).and_then(|file| {
                let mut part = vec![0; PART];
                let read = file.read(&mut part)?;
                part.truncate(read);
                Ok(Bytes::from(part))
            });
            let last = part.as_ref().map_or(true, Bytes::is_empty);
            // Stops when the client no longer reads.
            if part.as_ref().is_ok_and(Bytes::is_empty) || send.blocking_send(part).is_err() || last {
                return;
            }
        }
    });
    let parts = unfold(receive, |mut receive| async { receive.recv().await.map(|part| (part, receive)) });
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(parts)).into_response())
}

pub async fn import(
    State(site): State<Site>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Response {
    imported(&site, caller, query, body).await.unwrap_or_else(|error| refusal(&error, &id))
}

async fn imported(site: &Site, caller: Caller, query: Option<String>, body: Body) -> Result<Response> {
    let (operation, mut request) = bulk_request(ImportOp::META.name, &caller, query.as_deref())?;
    let _counted = site.front.body(&caller)?;
    let spool = blocking(Spool::new).await?;
    let spool = spooled(spool, body, site).await?;
    request.insert("file".into(), Value::String(spool.path().display().to_string()));
    let answer = site.front.call(&with_local_paths(caller), operation.meta.name, Value::Object(request), None).await;
    // The file must exist until the import has ended.
    drop(spool);
    reading(&answer?)
}

/// Writes a body into the file. An error if the body is too large.
async fn spooled(spool: Spool, body: Body, site: &Site) -> Result<Spool> {
    let (send, mut receive) = mpsc::channel::<Bytes>(WAITING);
    let writing = tokio::task::spawn_blocking(move || {
        let mut file = private::create_new(&spool.path()).map_err(|e| unkept(&e))?;
        while let Some(part) = receive.blocking_recv() {
            file.write_all(&part).map_err(|e| unkept(&e))?;
        }
        Ok::<_, Error>(spool)
    });
    let (mut parts, mut bytes, most) = (body.into_data_stream(), 0_u64, site.patience.import_bytes);
    while let Some(part) = body::part(&mut parts, site.patience.body).await? {
        bytes += part.len() as u64;
        if bytes > most {
            return Err(body::too_large(most));
        }
        // The writer has failed; its error is returned below.
        if send.send(part).await.is_err() {
            break;
        }
    }
    drop(send);
    writing.await.unwrap_or_else(|panic| Err(Error::internal(format!("storing a body failed: {panic}"))))
}

/// The operation and its request without `file`. Permission is checked before anything is sent or stored.
fn bulk_request(name: &str, caller: &Caller, query: Option<&str>) -> Result<(&'static Operation, Map<String, Value>)> {
    let operation = registry::find(name)
        .ok_or_else(|| Error::not_found(ErrorCode::UnknownOperation, format!("no operation `{name}`")))?;
    caller.grants.check(name, operation.meta.scope)?;
    let request = fields_of_query(operation, query)?;
    if request.contains_key("file") {
        return Err(
            Error::invalid(ErrorCode::InvalidArgument, "file: the body contains the facts").hint("leave `file` out")
        );
    }
    Ok((operation, request))
}

/// The caller with the right to name the temporary file that this process chose.
fn with_local_paths(caller: Caller) -> Caller {
    Caller { local: true, ..caller }
}

/// A path for one temporary file, in a folder that only this user can read. Removed when dropped.
struct Spool(PathBuf);

impl Spool {
    fn new() -> Result<Spool> {
        let folder = std::env::temp_dir().join(format!("lukasa-{}", uuid::Uuid::now_v7().simple()));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder).map_err(|e| unkept(&e))?;
        Ok(Spool(folder))
    }

    fn path(&self) -> PathBuf {
        self.0.join("facts")
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // If it cannot be removed now, the system removes it with other temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn blocking<T: Send + 'static>(work: fn() -> Result<T>) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| Err(Error::internal(format!("a file could not be created: {panic}"))))
}

fn unkept(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, ErrorCode::FileFailure, format!("a temporary file cannot be used: {error}"))
}
