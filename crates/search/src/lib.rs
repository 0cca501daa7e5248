//! Search: text and vector indexes over a view, and the pipeline from a query to a context pack.

pub mod cite;
pub mod code;
pub mod count;
pub mod embed;
pub mod expand;
pub mod fields;
pub mod fuse;
pub mod gain;
pub mod intent;
pub mod ladder;
pub mod pack;
pub mod question;
pub mod recall;
pub mod rerank;
pub mod text;
pub mod titles;
pub mod tokens;
pub mod vectors;
