//! Checks that numbers of a request are within their ranges.

use lukasa_model::{Error, ErrorCode, Result};
use serde::Serialize;
use serde_json::json;
use std::fmt::Display;

/// Returns an error that names the range if a number is outside it.
pub fn check_range<T: PartialOrd + Display + Serialize>(field: &str, value: T, least: T, most: T) -> Result<()> {
    if value >= least && value <= most {
        return Ok(());
    }
    Err(Error::invalid(ErrorCode::OutOfRange, format!("`{field}` is {value}, allowed is {least} to {most}"))
        .details(json!({"field": field, "minimum": least, "maximum": most})))
}

/// Refuses a page size outside 1 to 1,000.
pub fn check_limit(limit: usize) -> Result<()> {
    match limit {
        1..=1_000 => Ok(()),
        _ => Err(Error::invalid(ErrorCode::InvalidLimit, format!("limit {limit} is not within 1 to 1000"))),
    }
}
