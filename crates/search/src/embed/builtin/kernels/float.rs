//! Computations in floats, written in lanes so that the compiler can use vectors of any length.
//!
//! Everything is `inline(always)`, so that it is compiled with the instructions of the calling function.

use super::{Activations, LARGEST};

/// Number of parallel partial sums. It affects rounding, so it is the same on every machine.
const LANES: usize = 16;

/// Avoids a division by zero without affecting results.
const EPSILON: f32 = 1e-12;

/// Adding and subtracting it rounds to the nearest integer.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "values are scaled to at most `LARGEST`, and a check would be slow")]
pub fn quantise(rows: &[f32], width: usize, to: &mut Activations) {
    to.values.clear();
    to.scales.clear();
    to.values.resize(rows.len(), 0);
    for (row, values) in rows.chunks_exact(width).zip(to.values.chunks_exact_mut(width)) {
        let mut largest = [0f32; LANES];
        for chunk in row.as_chunks::<LANES>().0 {
            for (largest, &value) in largest.iter_mut().zip(chunk) {
                *largest = if value.abs() > *largest { value.abs() } else { *largest };
            }
        }
        let largest = largest.into_iter().fold(0f32, f32::max);
        let factor = if largest > 0.0 { LARGEST / largest } else { 0.0 };
        for (to, &value) in values.iter_mut().zip(row) {
            *to = whole(value * factor) as i16;
        }
        to.scales.push(largest / LARGEST);
    }
}

#[inline(always)]
pub fn gelu(values: &mut [f32]) {
    for chunk in values.as_chunks_mut::<LANES>().0 {
        for value in chunk {
            *value = 0.5 * *value * (1.0 + erf(*value * std::f32::consts::FRAC_1_SQRT_2));
        }
    }
}

#[inline(always)]
pub fn add_and_norm(rows: &mut [f32], more: &[f32], gain: &[f32], bias: &[f32]) {
    let width = gain.len();
    for (row, more) in rows.chunks_exact_mut(width).zip(more.chunks_exact(width)) {
        for (value, &more) in row.iter_mut().zip(more) {
            *value += more;
        }
        let mean = sum_of(row, |value| value) / width as f32;
        let variance = sum_of(row, |value| (value - mean) * (value - mean)) / width as f32;
        let factor = 1.0 / (variance + EPSILON).sqrt();
        for ((value, &gain), &bias) in row.iter_mut().zip(gain).zip(bias) {
            *value = (*value - mean) * factor * gain + bias;
        }
    }
}

/// Queries processed together: their sums, in lanes, fill half of AVX2's registers.
const QUERIES: usize = 4;
/// Components of a head.
const HEAD: usize = 32;

#[inline(always)]
pub fn attend(three: &[f32], heads: usize, width: usize, to: &mut [f32], scratch: &mut Vec<f32>) {
    assert!(width == heads * HEAD && to.len().is_multiple_of(width) && three.len() == 3 * to.len());
    let tokens = to.len() / width;
    let padded = tokens.next_multiple_of(LANES);
    scratch.clear();
    scratch.resize((HEAD + QUERIES) * padded, 0.0);
    let (keys, shares) = scratch.split_at_mut(HEAD * padded);
    for head in 0..heads {
        let part = |token: usize, which: usize| -> &[f32; HEAD] {
            let row = &three[(3 * token + which) * width + head * HEAD..];
            row.first_chunk().expect("a row has all its heads")
        };
        for token in 0..tokens {
            for (component, &value) in part(token, 1).iter().enumerate() {
                keys[component * padded + token] = value;
            }
        }
        for first in (0..tokens).step_by(QUERIES) {
            let query = |number: usize| (first + number).min(tokens - 1);
            let queries: [&[f32; HEAD]; QUERIES] = std::array::from_fn(|number| part(query(number), 0));
            scores(&queries, keys, padded, shares);
            for shares in shares.chunks_exact_mut(padded) {
                soften(&mut shares[..padded], tokens);
            }
            for half in (0..HEAD).step_by(LANES) {
                let mut sums = [[0f32; LANES]; QUERIES];
                for token in 0..tokens {
                    let value = &part(token, 2)[half..half + LANES];
                    for (number, sums) in sums.iter_mut().enumerate() {
                        let share = shares[number * padded + token];
                        for (sum, &value) in sums.iter_mut().zip(value) {
                            *sum += share * value;
                        }
                    }
                }
                for (number, sums) in sums.iter().enumerate().take(tokens - first) {
                    to[(first + number) * width + head * HEAD + half..][..LANES].copy_from_slice(sums);
                }
            }
        }
    }
}

/// Scores of each query for each key; `keys` has the first components of all keys, then the second ones, and so on.
#[inline(always)]
fn scores(queries: &[&[f32; HEAD]; QUERIES], keys: &[f32], padded: usize, to: &mut [f32]) {
    let factor = 1.0 / (HEAD as f32).sqrt();
    for start in (0..padded).step_by(LANES) {
        let mut sums = [[0f32; LANES]; QUERIES];
        for component in 0..HEAD {
            let keys: &[f32; LANES] =
                keys[component * padded + start..].first_chunk().expect("keys are padded to whole lanes");
            for (sums, query) in sums.iter_mut().zip(queries) {
                for (sum, &key) in sums.iter_mut().zip(keys) {
                    *sum += query[component] * key;
                }
            }
        }
        for (number, sums) in sums.iter().enumerate() {
            for (to, &sum) in to[number * padded + start..][..LANES].iter_mut().zip(sums) {
                *to = sum * factor;
            }
        }
    }
}

/// Softmax: turns scores into shares that sum to one; entries beyond the first `count` get no share.
#[inline(always)]
fn soften(scores: &mut [f32], count: usize) {
    scores[count..].fill(f32::MIN);
    let mut largest = [f32::MIN; LANES];
    for chunk in scores.as_chunks::<LANES>().0 {
        for (largest, &score) in largest.iter_mut().zip(chunk) {
            *largest = if score > *largest { score } else { *largest };
        }
    }
    let largest = largest.into_iter().fold(f32::MIN, f32::max);
    for chunk in scores.as_chunks_mut::<LANES>().0 {
        for score in chunk {
            *score = exp(*score - largest);
        }
    }
    scores[count..].fill(0.0);
    let factor = 1.0 / sum_of(scores, |share| share);
    for share in scores {
        *share *= factor;
    }
}

/// Sums whole lanes, always in the same order.
#[inline(always)]
fn sum_of(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0f32; LANES];
    for chunk in values.as_chunks::<LANES>().0 {
        for (sum, &value) in sums.iter_mut().zip(chunk) {
            *sum += of(value);
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

/// Rounds to the nearest integer, for values below 2^22.
#[inline(always)]
fn whole(value: f32) -> i32 {
    (value + ROUND).to_bits().cast_signed().wrapping_sub(ROUND.to_bits().cast_signed())
}

/// The exponential of values up to 0; for values below -87 about 0. Relative error below 3e-7.
#[inline(always)]
fn exp(value: f32) -> f32 {
    let value = if value < -87.0 { -87.0 } else { value };
    let twos = (value * std::f32::consts::LOG2_E + ROUND) - ROUND;
    // ln 2 in two parts, so that the remainder is exact.
    let rest = (value - twos * 0.693_359_4) + twos * 2.121_944_4e-4;
    let mut sum = 1.987_569_1e-4f32;
    for factor in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        sum = sum * rest + factor;
    }
    let power = f32::from_bits(((whole(twos) + 127) << 23).cast_unsigned());
    (sum * rest * rest + rest + 1.0) * power
}

/// Abramowitz and Stegun 7.1.26: absolute error below 2e-7 plus rounding.
#[inline(always)]
fn erf(value: f32) -> f32 {
    let size = value.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let mut sum = 1.061_405_4f32;
    for factor in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        sum = sum * t + factor;
    }
    let result = 1.0 - sum * t * exp(-(size * size));
    result.copysign(value)
}
