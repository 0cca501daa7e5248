//! Search: text and vector indexes over a view, and the pipeline from a query to a context pack.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod cite;
pub mod count;
pub mod embed;
pub mod fields;
pub mod load_shedding;
pub mod pipeline;
pub mod question;
pub mod recipes;
pub mod text;
pub mod titles;
mod tokenizer;
pub mod tokens;
pub mod vectors;
