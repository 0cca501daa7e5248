//! Runs a project's tests: chooses the command, runs it within limits, and reads its output.

pub mod command;
pub mod output;
pub mod run;

pub use command::{TestCommand, detect};
pub use output::{TestResults, read};
pub use run::{ProgramRun, run};
