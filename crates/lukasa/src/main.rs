//! The `lukasa` binary: reads the command line and the environment, opens a store, runs an operation, prints.

mod cli;
mod config;
mod settings;

use std::process::ExitCode;

#[cfg(all(unix, feature = "jemalloc"))]
#[global_allocator]
static MEMORY: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    cli::run()
}
