//! The engine through its operations, on every store: one program, so that it is linked once.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod audit;
mod claims;
mod code_git;
mod code_history;
mod code_index;
mod code_ops;
mod code_ops_indexed;
mod code_summaries;
mod code_watch;
mod compact;
mod diffs;
mod embedding;
mod embedding_endpoint;
mod embedding_engine;
mod events;
mod faults;
mod formats;
mod git;
mod git_formats;
mod graph;
mod kept_indexes;
mod lineage;
mod made;
mod memory;
mod mentions;
mod names;
mod operations;
mod packs;
mod patterns;
mod replaced;
mod scip;
mod search;
mod search_rules;
mod slices;
mod tasks;
mod test_engine;
mod test_run;
mod tools;
mod trees;
mod type_fields;
mod type_names;
mod unread_files;
