//! Sends a request to the process that already has the store open, if there is one: its graphs and indexes are in
//! memory.

use super::{Bar, author, near, serve};
use crate::config;
use clap::ArgMatches;
use lukasa_engine::registry::{DataStream, StoreNeed};
use lukasa_engine::{Operation, OperationAnswer};
use lukasa_model::{Error, Result};
use lukasa_server::{Caller, owner};
use lukasa_store::{Clock, SystemClock};
use serde_json::Value;

/// The owner's answer. None if no process owns the store; it is then opened here.
pub fn answer(matches: &ArgMatches, operation: &Operation, request: &Value) -> Result<Option<OperationAnswer>> {
    // It brings a store, or streams to and from this process.
    if operation.meta.needs == StoreNeed::Nothing || operation.meta.stream != DataStream::None {
        return Ok(None);
    }
    let Some(meant) = config::existing_store(matches, near(operation, request))? else { return Ok(None) };
    let Some(file) = &meant.file else { return Ok(None) };
    let place = serve::place(file)?;
    if place.owner().is_none_or(|owner| owner.fault.is_some()) {
        return Ok(None);
    }
    let caller = Caller {
        user: author(matches),
        agent: config::text(matches, "agent", "LUKASA_AGENT"),
        session: config::text(matches, "session", "LUKASA_SESSION"),
        request_id: Some(SystemClock.new_id().simple().to_string()),
        tree: Some(config::working_tree(&meant.home)?),
        folder: std::env::current_dir().ok(),
        ..Caller::owner(meant.scope)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::internal(format!("no runtime: {e}")))?;
    runtime.block_on(async {
        let bar = Bar::of(operation);
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let mut asking = std::pin::pin!(owner::ask(&place, &caller, operation, request, Some(sender)));
        loop {
            tokio::select! {
                answer = &mut asking => return answer,
                Some(progress) = receiver.recv() => bar.show(progress.done, progress.of),
            }
        }
    })
}
