//! Conversions between number types whose ranges are known, each with the reason why it is exact or saturates.

use std::time::Duration;

/// A length or a place in memory. Numbers beyond the address space become its largest address, where nothing is.
pub fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Whole milliseconds.
pub fn to_ms(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// A count from a float, rounded down. Negative floats and NaN become 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float truncates towards zero and saturates"
)]
pub fn to_count(float: f64) -> u64 {
    float as u64
}

/// A length or a place as 32 bits. Panics if it needs more: every list, file and text has a limit below that.
pub fn to_u32(place: usize) -> u32 {
    u32::try_from(place).expect("lists and texts are limited")
}
