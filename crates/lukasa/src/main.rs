//! The `lukasa` binary: reads the command line and the environment, opens a store, runs an operation, prints.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod cli;
mod config;
mod settings;

use std::process::ExitCode;

#[cfg(all(unix, feature = "mimalloc"))]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run()
}
