//! Computations in floats, written in lanes so that the compiler can use vectors of any length.
//!
//! Everything is `inline(always)`, so that it is compiled with the instructions of the calling function.

use super::{Activations, LARGEST};

/// Number of parallel partial sums. It affects rounding, so it is the same on every machine.
const LANES: usize = 16;

/// Number of parallel least and largest values.
const EXTREMES: usize = 64;

/// Avoids a division by zero without affecting results.
const EPSILON: f32 = 1e-12;

/// Adding and subtracting it rounds to the nearest integer.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are scaled to at most `LARGEST`, and a check would be slow"
)]
pub fn quantise(rows: &[f32], width: usize, to: &mut Activations) {
    to.values.clear();
    to.scales.clear();
    to.lows.clear();
    to.values.resize(rows.len(), 0);
    for (row, values) in rows.chunks_exact(width).zip(to.values.chunks_exact_mut(width)) {
        let mut lows = [f32::MAX; EXTREMES];
        let mut highs = [f32::MIN; EXTREMES];
        for chunk in row.chunks(EXTREMES) {
            for ((low, high), &value) in lows.iter_mut().zip(&mut highs).zip(chunk) {
                *low = if value < *low { value } else { *low };
                *high = if value > *high { value } else { *high };
            }
        }
        let low = lows.into_iter().fold(f32::MAX, f32::min);
        let range = highs.into_iter().fold(f32::MIN, f32::max) - low;
        let factor = if range > 0.0 { LARGEST / range } else { 0.0 };
        for (to, &value) in values.iter_mut().zip(row) {
            *to = whole((value - low) * factor) as u8;
        }
        to.scales.push(range / LARGEST);
        to.lows.push(low);
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

/// Components of a head.
const HEAD: usize = 32;
/// Queries that are processed together, so that keys and values are read once for all of them.
const QUERIES: usize = 8;
/// Rows that are added at a time.
const ROWS: usize = 8;

#[inline(always)]
pub fn attend(three: &[f32], heads: usize, width: usize, to: &mut [f32], scratch: &mut Vec<f32>) {
    assert!(width == heads * HEAD && to.len().is_multiple_of(width) && three.len() == 3 * to.len());
    let tokens = to.len() / width;
    let padded = tokens.next_multiple_of(LANES);
    scratch.clear();
    scratch.resize(HEAD * padded + QUERIES * (padded + HEAD), 0.0);
    let (keys, rest) = scratch.split_at_mut(HEAD * padded);
    let (shares, sums) = rest.split_at_mut(QUERIES * padded);
    let factor = 1.0 / (HEAD as f32).sqrt();
    for head in 0..heads {
        let part = |token: usize, which: usize| -> &[f32; HEAD] {
            let row = &three[(3 * token + which) * width + head * HEAD..];
            row.first_chunk().expect("a row has all its heads")
        };
        // The first components of all keys, then the second ones, and so on.
        for token in 0..tokens {
            for (component, &value) in part(token, 1).iter().enumerate() {
                keys[component * padded + token] = value;
            }
        }
        for first in (0..tokens).step_by(QUERIES) {
            let count = QUERIES.min(tokens - first);
            shares.fill(0.0);
            for start in (0..HEAD).step_by(ROWS) {
                let rows = std::array::from_fn(|row| &keys[(start + row) * padded..][..padded]);
                for (query, shares) in shares.chunks_exact_mut(padded).take(count).enumerate() {
                    let query = part(first + query, 0);
                    add_rows(shares, rows, std::array::from_fn(|row| query[start + row] * factor));
                }
            }
            for shares in shares.chunks_exact_mut(padded).take(count) {
                soften(shares, tokens);
            }
            sums.fill(0.0);
            for start in (0..tokens).step_by(ROWS) {
                // Rows beyond the last token have no share.
                let rows = std::array::from_fn(|row| &part((start + row).min(tokens - 1), 2)[..]);
                for (sums, shares) in sums.chunks_exact_mut(HEAD).zip(shares.chunks_exact(padded)).take(count) {
                    add_rows(sums, rows, std::array::from_fn(|row| shares[start + row]));
                }
            }
            for (query, sums) in sums.chunks_exact(HEAD).take(count).enumerate() {
                to[(first + query) * width + head * HEAD..][..HEAD].copy_from_slice(sums);
            }
        }
    }
}

/// Adds rows to `to`, each multiplied by its factor.
#[inline(always)]
fn add_rows(to: &mut [f32], rows: [&[f32]; ROWS], factors: [f32; ROWS]) {
    let [a, b, c, d, e, f, g, h] = rows.map(|row| &row[..to.len()]);
    for at in 0..to.len() {
        let first = (a[at] * factors[0] + b[at] * factors[1]) + (c[at] * factors[2] + d[at] * factors[3]);
        let second = (e[at] * factors[4] + f[at] * factors[5]) + (g[at] * factors[6] + h[at] * factors[7]);
        to[at] += first + second;
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
