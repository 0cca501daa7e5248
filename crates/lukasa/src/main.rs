//! The `lukasa` binary: reads the command line and the environment, opens a store, runs an operation, prints.

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
