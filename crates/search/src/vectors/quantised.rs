//! A vector as it is stored: int8 and one scale; and a question as it is compared with them.

use std::fmt;

const LARGEST: f32 = 127.0;

/// A question's components have more room than a vector's: finer than anything they are compared with.
const LARGEST_ASKED: i32 = 8191;

/// A vector rounded to int8: component = value * scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantised {
    scale: f32,
    values: Vec<i8>,
}

/// Why something is no vector here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorError {
    Dimensions { expected: usize, found: usize },
    NotFinite,
    NoBytes,
}

/// What is looked for: values in 16 bits, and where signs are negative.
pub struct Question {
    pub values: Vec<i16>,
    pub signs: Vec<u64>,
    scale: f32,
}

impl Quantised {
    pub fn from_f32(vector: &[f32]) -> Result<Quantised, VectorError> {
        let largest = largest(vector)?;
        let factor = if largest > 0.0 { LARGEST / largest } else { 0.0 };
        let values = vector.iter().map(|component| rounded_i8(component * factor)).collect();
        Ok(Quantised { scale: largest / LARGEST, values })
    }

    pub(super) fn new(scale: f32, values: Vec<i8>) -> Quantised {
        Quantised { scale, values }
    }

    pub fn to_f32(&self) -> Vec<f32> {
        self.values.iter().map(|&value| f32::from(value) * self.scale).collect()
    }

    /// The scale as f32 and then every value, little endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let values = self.values.iter().map(|value| value.cast_unsigned());
        self.scale.to_le_bytes().into_iter().chain(values).collect()
    }

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

impl Question {
    pub fn new(vector: &[f32]) -> Result<Question, VectorError> {
        // The more dimensions, the smaller the components, so that sums of products fit in 32 bits. A stored value may be
        // -128 (see `from_bytes`).
        let dimensions = i32::try_from(vector.len().max(1)).expect("vectors have few dimensions");
        let room = i32::MAX / (128 * dimensions);
        let room = room.clamp(1, LARGEST_ASKED) as f32;
        let largest = largest(vector)?;
        let factor = if largest > 0.0 { room / largest } else { 0.0 };
        let values = vector.iter().map(|component| rounded_i16(component * factor)).collect();
        let signs = signs(vector.iter().map(|&component| component < 0.0));
        Ok(Question { values, signs, scale: largest / room })
    }

    pub fn score(&self, dot: i32, scale: f32) -> f32 {
        dot as f32 * (self.scale * scale)
    }
}

fn largest(vector: &[f32]) -> Result<f32, VectorError> {
    let finite = vector.iter().all(|component| component.is_finite());
    finite.then(|| vector.iter().fold(0f32, |largest, c| largest.max(c.abs()))).ok_or(VectorError::NotFinite)
}

/// A bit for each component, in words of 64.
#[allow(clippy::cast_possible_truncation, reason = "components are scaled to at most `LARGEST`")]
fn rounded_i8(component: f32) -> i8 {
    component.round_ties_even() as i8
}

#[allow(clippy::cast_possible_truncation, reason = "components are scaled to at most `LARGEST_ASKED`")]
fn rounded_i16(component: f32) -> i16 {
    component.round_ties_even() as i16
}

pub fn signs(negative: impl ExactSizeIterator<Item = bool>) -> Vec<u64> {
    let mut signs = vec![0; words(negative.len())];
    for (place, negative) in negative.enumerate() {
        signs[place / 64] |= u64::from(negative) << (place % 64);
    }
    signs
}

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
