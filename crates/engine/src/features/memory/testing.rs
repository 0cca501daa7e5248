//! Running a project's tests: which command that is, running it within limits, and what its output says.

pub mod command;
pub mod output;
pub mod run;

pub use command::{TestCommand, detect};
pub use output::{Results, read};
pub use run::{Ran, run};
