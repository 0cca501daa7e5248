//! Quantisation: a stored vector has int8 components and a scale, a query has 16-bit components.

use std::fmt;

const LARGEST: f32 = 127.0;

/// The largest component of a query. Queries are rounded more finely than stored vectors, so that they add little
/// error.
const LARGEST_ASKED: i32 = 8191;

/// A vector rounded to int8: component = value * scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantised {
    scale: f32,
    values: Vec<i8>,
}

/// Why a vector is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorError {
    /// The vector has other dimensions than the stored ones.
    Dimensions { expected: usize, found: usize },
    /// A component is infinite or not a number.
    NotFinite,
    /// There are too few bytes for a scale.
    NoBytes,
}

/// A query: its components in 16 bits, and a bit for each negative one.
pub struct QuantisedQuery {
    pub values: Vec<i16>,
    pub signs: Vec<u64>,
    scale: f32,
}

impl Quantised {
    /// Rounds a vector to int8. Fails if a component is not finite.
    pub fn from_f32(vector: &[f32]) -> Result<Quantised, VectorError> {
        let largest = largest(vector)?;
        let factor = if largest > 0.0 { LARGEST / largest } else { 0.0 };
        let values = vector.iter().map(|component| rounded_i8(component * factor)).collect();
        Ok(Quantised { scale: largest / LARGEST, values })
    }

    pub(super) fn new(scale: f32, values: Vec<i8>) -> Quantised {
        Quantised { scale, values }
    }

    /// Returns the rounded vector as floats.
    pub fn to_f32(&self) -> Vec<f32> {
        self.values.iter().map(|&value| f32::from(value) * self.scale).collect()
    }

    /// Returns the stored form: the scale as `f32`, little-endian, followed by the values.
    pub fn to_bytes(&self) -> Vec<u8> {
        let values = self.values.iter().map(|value| value.cast_unsigned());
        self.scale.to_le_bytes().into_iter().chain(values).collect()
    }

    /// Reads the stored form. The number of dimensions is not checked.
    pub fn from_bytes(bytes: &[u8]) -> Result<Quantised, VectorError> {
        let (scale, values) = bytes.split_first_chunk().ok_or(VectorError::NoBytes)?;
        let scale = f32::from_le_bytes(*scale);
        if !scale.is_finite() {
            return Err(VectorError::NotFinite);
        }
        Ok(Quantised { scale, values: values.iter().map(|byte| byte.cast_signed()).collect() })
    }

    pub fn scale(&self) -> f32 {
        self.scale
    }

    pub fn values(&self) -> &[i8] {
        &self.values
    }
}

impl QuantisedQuery {
    pub fn new(vector: &[f32]) -> Result<QuantisedQuery, VectorError> {
        // The more dimensions, the smaller the components, so that sums of products fit in 32 bits. A stored value may
        // be -128 (see `from_bytes`).
        let dimensions = i32::try_from(vector.len().max(1)).expect("vectors have few dimensions");
        let room = i32::MAX / (128 * dimensions);
        let room = room.clamp(1, LARGEST_ASKED) as f32;
        let largest = largest(vector)?;
        let factor = if largest > 0.0 { room / largest } else { 0.0 };
        let values = vector.iter().map(|component| rounded_i16(component * factor)).collect();
        let signs = signs(vector.iter().map(|&component| component < 0.0));
        Ok(QuantisedQuery { values, signs, scale: largest / room })
    }

    pub fn score(&self, dot: i32, scale: f32) -> f32 {
        dot as f32 * (self.scale * scale)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "components are scaled to at most `LARGEST`")]
fn rounded_i8(component: f32) -> i8 {
    component.round_ties_even() as i8
}

#[allow(clippy::cast_possible_truncation, reason = "components are scaled to at most `LARGEST_ASKED`")]
fn rounded_i16(component: f32) -> i16 {
    component.round_ties_even() as i16
}

fn largest(vector: &[f32]) -> Result<f32, VectorError> {
    let finite = vector.iter().all(|component| component.is_finite());
    finite.then(|| vector.iter().fold(0f32, |largest, c| largest.max(c.abs()))).ok_or(VectorError::NotFinite)
}

/// One bit per component, set if it is negative, in words of 64 bits.
pub fn signs(negative: impl ExactSizeIterator<Item = bool>) -> Vec<u64> {
    let mut signs = vec![0; words(negative.len())];
    for (place, negative) in negative.enumerate() {
        signs[place / 64] |= u64::from(negative) << (place % 64);
    }
    signs
}

/// The number of 64-bit words for one bit per component.
pub fn words(dimensions: usize) -> usize {
    dimensions.div_ceil(64)
}

impl fmt::Display for VectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VectorError::Dimensions { expected, found } => {
                write!(f, "a vector of {found} dimensions among those of {expected}")
            }
            VectorError::NotFinite => write!(f, "a vector with a component that is no finite number"),
            VectorError::NoBytes => write!(f, "too few bytes for a vector"),
        }
    }
}

impl std::error::Error for VectorError {}
