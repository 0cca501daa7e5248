//! Conversions between number types whose ranges are known, each with the reason why it is exact or saturates.

/// A length, a place or a count within one source.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a source is shorter than 4 GiB, and has fewer parts than bytes")]
pub(crate) fn to_u32(count: usize) -> u32 {
    debug_assert!(u32::try_from(count).is_ok(), "sources are limited");
    count as u32
}

/// The place of a parameter or an argument. Those beyond the largest number share it.
#[inline]
pub(crate) fn to_place(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
