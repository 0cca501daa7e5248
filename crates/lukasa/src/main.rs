//! The `lukasa` binary: reads the command line and the environment, opens a store, runs an operation, prints.

mod cli;
mod config;
mod settings;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
