//! `lukasa watch`: indexes every change as it is saved, until it is stopped.

use super::style::Colours;
use super::{Session, render};
use lukasa_engine::features::code::Watch;
use lukasa_engine::features::code::watch::DEBOUNCE;
use lukasa_model::shown::safe_json;
use lukasa_model::{Error, ErrorCode, ErrorKind, Result};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::channel;

/// Prints the result of each pass until Ctrl-C.
pub fn run(session: &Session, path: &Path, as_json: bool, colours: Colours) -> Result<()> {
    let (send, stopped) = channel::<()>();
    ctrlc::set_handler(move || {
        // The receiver may have ended already.
        let _ = send.send(());
    })
    .map_err(|e| Error::new(ErrorKind::Unavailable, ErrorCode::NoSignals, format!("Ctrl-C cannot be caught: {e}")))?;
    let listener = Box::new(move |pass: &Result<lukasa_engine::features::code::PassReport>| {
        let mut out = std::io::stdout().lock();
        let summarized = pass.as_ref().ok().and_then(|report| report.model.as_ref());
        // If the output is closed, indexing continues.
        let _ = match pass {
            Ok(report) if report.tx.is_none() && (summarized.is_none() || !as_json) => Ok(()),
            Ok(report) if as_json => writeln!(out, "{}", safe_json(&json!(report).to_string())),
            Ok(report) => writeln!(
                out,
                "transaction {} on {}: {} changed, {} removed, {} files written, {} ms",
                report.tx.unwrap_or_default(),
                report.branch,
                report.changed,
                report.removed,
                report.written_files,
                report.took_ms
            ),
            Err(e) if as_json => writeln!(out, "{}", safe_json(&json!({"error": e}).to_string())),
            Err(e) => render::error(&mut out, colours.stdout(), e),
        };
        if let Some((done, tx)) = summarized.and_then(|done| Some((done, done.tx?)))
            && !as_json
        {
            let _ =
                writeln!(out, "transaction {tx}: {} summaries by {}, {} left", done.summaries, done.model, done.left);
        }
        let _ = out.flush();
    });
    let watch = Watch::start(&session.engine, &session.scope, path, DEBOUNCE, Some(listener))?;
    let health = watch.health();
    if !as_json {
        let _ = writeln!(std::io::stderr(), "watching {}; Ctrl-C ends it", path.display());
    } else {
        let _ = writeln!(std::io::stderr(), "{}", json!(health));
    }
    // Returns on Ctrl-C, or if the handler is gone.
    let _ = stopped.recv();
    Ok(())
}
