//! Conversions between number types whose ranges are known, each with the reason why it is exact or saturates.

/// An index or a count of nodes, edges or names as 32 bits. A graph has at most [`crate::snapshot::MOST`] nodes and as
/// many edges, so twice their number still fits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the numbers of nodes and edges are below 2^31")]
pub(crate) fn to_u32(count: usize) -> u32 {
    debug_assert!(u32::try_from(count).is_ok(), "tables of a graph are limited");
    count as u32
}

/// A length as an integer of a query.
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "no collection has more than `isize::MAX` elements")]
pub(crate) fn length(count: usize) -> i64 {
    count as i64
}

/// The integer part of a float. Floats outside the range of integers become its nearest bound, and NaN becomes 0.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a cast of a float truncates towards zero and saturates")]
pub(crate) fn to_i64(float: f64) -> i64 {
    float as i64
}

/// The integer part of a float, saturating like [`to_i64`].
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a cast of a float truncates towards zero and saturates")]
pub(crate) fn to_i128(float: f64) -> i128 {
    float as i128
}

/// An index from a share of a length. Negative floats and NaN become 0.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float truncates towards zero and saturates"
)]
pub(crate) fn to_index(float: f64) -> usize {
    float as usize
}
