//! Linear layers in integers: blocks of tokens by panels of sixteen outputs.

use super::PANEL;
use crate::embed::builtin::weights::LinearLayer;

/// As many tokens as leave two registers for weights and one for a pair of activations.
#[cfg(target_arch = "x86_64")]
const BLOCK: usize = 6;

pub fn linear_plain(values: &[i16], scales: &[f32], layer: &LinearLayer, to: &mut [f32]) {
    for (number, panel) in layer.panels.chunks_exact(layer.inputs * PANEL).enumerate() {
        for (token, row) in values.chunks_exact(layer.inputs).enumerate() {
            let mut sums = [0i32; PANEL];
            for (pair, weights) in row.as_chunks::<2>().0.iter().zip(panel.as_chunks::<{ 2 * PANEL }>().0) {
                for (sum, both) in sums.iter_mut().zip(weights.as_chunks::<2>().0) {
                    *sum += i32::from(pair[0]) * i32::from(both[0].cast_signed())
                        + i32::from(pair[1]) * i32::from(both[1].cast_signed());
                }
            }
            finish(&sums, scales[token], layer, number, &mut to[token * layer.outputs..][..layer.outputs]);
        }
    }
}

/// Converts integer sums to the outputs of one token and one panel.
#[inline(always)]
fn finish(sums: &[i32; PANEL], scale: f32, layer: &LinearLayer, panel: usize, to: &mut [f32]) {
    let place = panel * PANEL..(panel + 1) * PANEL;
    let weights = layer.scales[place.clone()].iter().zip(&layer.bias[place.clone()]);
    for ((to, &sum), (&weight, &bias)) in to[place].iter_mut().zip(sums).zip(weights) {
        *to = sum as f32 * (scale * weight) + bias;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub fn linear_avx2(values: &[i16], scales: &[f32], layer: &LinearLayer, to: &mut [f32]) {
    for (number, panel) in layer.panels.chunks_exact(layer.inputs * PANEL).enumerate() {
        for (block, rows) in values.chunks(layer.inputs * BLOCK).enumerate() {
            let first = block * BLOCK;
            let to = &mut to[first * layer.outputs..];
            let scales = &scales[first..];
            match rows.len() / layer.inputs {
                1 => block_avx2::<1>(rows, panel, scales, layer, number, to),
                2 => block_avx2::<2>(rows, panel, scales, layer, number, to),
                3 => block_avx2::<3>(rows, panel, scales, layer, number, to),
                4 => block_avx2::<4>(rows, panel, scales, layer, number, to),
                5 => block_avx2::<5>(rows, panel, scales, layer, number, to),
                _ => block_avx2::<BLOCK>(rows, panel, scales, layer, number, to),
            }
        }
    }
}

/// Multiplies `TOKENS` rows by one panel.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn block_avx2<const TOKENS: usize>(
    rows: &[i16],
    panel: &[u8],
    scales: &[f32],
    layer: &LinearLayer,
    number: usize,
    to: &mut [f32],
) {
    for (token, sums) in sums_avx2::<TOKENS>(rows, panel, layer.inputs).iter().enumerate() {
        finish(sums, scales[token], layer, number, &mut to[token * layer.outputs..][..layer.outputs]);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code)]
#[inline]
fn sums_avx2<const TOKENS: usize>(rows: &[i16], panel: &[u8], inputs: usize) -> [[i32; PANEL]; TOKENS] {
    use std::arch::x86_64::*;
    assert!(inputs.is_multiple_of(2) && rows.len() == TOKENS * inputs && panel.len() == inputs * PANEL);
    let mut sums = [[_mm256_setzero_si256(); 2]; TOKENS];
    for pair in 0..inputs / 2 {
        // SAFETY: pair < inputs / 2 and the panel has 32 bytes for each pair, so both halves lie within it.
        let [low, high] = unsafe {
            let weights = panel.as_ptr().add(pair * 2 * PANEL).cast::<__m128i>();
            [_mm_loadu_si128(weights), _mm_loadu_si128(weights.add(1))]
        };
        let (low, high) = (_mm256_cvtepi8_epi16(low), _mm256_cvtepi8_epi16(high));
        for (token, sums) in sums.iter_mut().enumerate() {
            // SAFETY: token < TOKENS and 2 * pair + 1 < inputs, so both values lie within the rows; alignment is not
            // required.
            let both = unsafe { rows.as_ptr().add(token * inputs + 2 * pair).cast::<i32>().read_unaligned() };
            let both = _mm256_set1_epi32(both);
            sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(low, both));
            sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(high, both));
        }
    }
    sums.map(|[low, high]| {
        let mut all = [0; PANEL];
        // SAFETY: `all` has room for two vectors of eight.
        unsafe {
            _mm256_storeu_si256(all.as_mut_ptr().cast(), low);
            _mm256_storeu_si256(all.as_mut_ptr().add(PANEL / 2).cast(), high);
        }
        all
    })
}
