//! Checks that numbers of a request are within their ranges.

use lukasa_model::{Error, ErrorCode, Result};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;

/// Returns an error that names the range if a number is outside it.
pub fn check_range<T: PartialOrd + Display + Serialize>(field: &str, value: T, least: T, most: T) -> Result<()> {
    if value >= least && value <= most {
        return Ok(());
    }
    Err(out_of_range(field, value, least, most))
}

/// Returns an error if a number is outside the range that the schema of its field states. Other values are checked when
/// the request is read.
pub fn check_declared_range(field: &str, value: &Value, schema: &Value) -> Result<()> {
    let (Some(number), Some(least), Some(most)) =
        (value.as_f64(), schema["minimum"].as_f64(), schema["maximum"].as_f64())
    else {
        return Ok(());
    };
    if number >= least && number <= most {
        return Ok(());
    }
    let (least, most) = (&schema["minimum"], &schema["maximum"]);
    Err(out_of_range(field, value, least, most))
}

fn out_of_range<T: Display + Serialize>(field: &str, value: T, least: T, most: T) -> Error {
    Error::invalid(ErrorCode::OutOfRange, format!("`{field}` is {value}, allowed is {least} to {most}"))
        .details(json!({"field": field, "minimum": least, "maximum": most}))
}
