//! Reads request bodies within limits of size and time.

use axum::body::{Body, Bytes};
use futures_util::StreamExt;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Reads the whole body. An error if it exceeds `most` bytes or takes longer than `time`.
pub async fn whole(body: Body, most: usize, time: Duration) -> Result<Vec<u8>> {
    let until = Instant::now() + time;
    let (mut parts, mut bytes) = (body.into_data_stream(), Vec::new());
    loop {
        let part = timeout_at(until, parts.next()).await.map_err(|_| too_slow(time))?;
        let Some(part) = part else { return Ok(bytes) };
        let part = part.map_err(|e| broken(&e))?;
        if bytes.len() + part.len() > most {
            return Err(too_large(most as u64));
        }
        bytes.extend_from_slice(&part);
    }
}

/// The same body, with an error if it is not complete in time. For code that reads the body itself.
pub fn within(body: Body, time: Duration) -> Body {
    let until = Instant::now() + time;
    let parts = futures_util::stream::unfold(Some(body.into_data_stream()), move |parts| async move {
        let mut parts = parts?;
        match timeout_at(until, parts.next()).await {
            Ok(part) => part.map(|part| (part, Some(parts))),
            Err(_) => Some((Err(axum::Error::new(too_slow(time))), None)),
        }
    });
    Body::from_stream(parts)
}

/// The next part of a long body, with a time limit for each part.
pub async fn part(parts: &mut axum::body::BodyDataStream, time: Duration) -> Result<Option<Bytes>> {
    let part = tokio::time::timeout(time, parts.next()).await.map_err(|_| too_slow(time))?;
    part.transpose().map_err(|e| broken(&e))
}

pub fn too_large(most: u64) -> Error {
    Error::too_large(ErrorCode::RequestTooLarge, format!("the request has more than {most} bytes"))
        .hint("send less at a time")
}

fn too_slow(time: Duration) -> Error {
    let message = format!("the request was not complete within {} ms", time.as_millis());
    Error::new(ErrorKind::Timeout, ErrorCode::RequestTooSlow, message).hint("send it again")
}

fn broken(error: &axum::Error) -> Error {
    Error::invalid(ErrorCode::BrokenRequest, format!("the request ended early: {error}"))
}
