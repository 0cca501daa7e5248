//! Kernels of linear layers for AVX2, AVX-VNNI and AVX-512 VNNI.

use std::arch::x86_64::*;

use super::{Activations, GROUP, LinearLayer, PANEL, finish};

/// Tokens that are multiplied at a time: as many as the registers have sums for.
const BLOCK: usize = 6;
/// Panels that AVX-512 multiplies at a time.
const PANELS: usize = 4;

/// Calls a block kernel with the number of tokens that are left as a constant.
macro_rules! in_blocks {
    ($count:expr, $first:ident => $kernel:ident($($argument:expr),*)) => {
        let mut $first = 0;
        while $first < $count {
            match $count - $first {
                1 => $kernel::<1>($($argument),*),
                2 => $kernel::<2>($($argument),*),
                3 => $kernel::<3>($($argument),*),
                4 => $kernel::<4>($($argument),*),
                5 => $kernel::<5>($($argument),*),
                _ => $kernel::<BLOCK>($($argument),*),
            }
            $first += BLOCK;
        }
    };
}

#[target_feature(enable = "avx2")]
pub fn linear_avx2(from: &Activations, layer: &LinearLayer, to: &mut [f32]) {
    let wide: Vec<i16> = from.values.iter().map(|&value| i16::from(value)).collect();
    for number in 0..layer.outputs / PANEL {
        in_blocks!(from.scales.len(), first => block_avx2(&wide, from, first, layer, number, to));
    }
}

#[target_feature(enable = "avx2")]
fn block_avx2<const TOKENS: usize>(
    wide: &[i16],
    from: &Activations,
    first: usize,
    layer: &LinearLayer,
    number: usize,
    to: &mut [f32],
) {
    let panel = &layer.panels[number * layer.inputs * PANEL..][..layer.inputs * PANEL];
    let rows = &wide[first * layer.inputs..][..TOKENS * layer.inputs];
    for (token, sums) in sums_avx2::<TOKENS>(rows, panel, layer.inputs).iter().enumerate() {
        finish(sums, from, first + token, layer, number, to);
    }
}

#[target_feature(enable = "avx2")]
#[allow(unsafe_code)]
#[inline]
fn sums_avx2<const TOKENS: usize>(rows: &[i16], panel: &[u8], inputs: usize) -> [[i32; PANEL]; TOKENS] {
    assert!(inputs.is_multiple_of(GROUP) && rows.len() == TOKENS * inputs && panel.len() == inputs * PANEL);
    let mut all = [[0; PANEL]; TOKENS];
    for half in 0..2 {
        // Each output has two sums side by side, of the first two and of the last two inputs of every group.
        let mut sums = [[_mm256_setzero_si256(); 2]; TOKENS];
        for group in 0..inputs / GROUP {
            // SAFETY: group < inputs / GROUP and the panel has 64 bytes for each group, so these 32 lie within it.
            let [low, high] = unsafe {
                let weights = panel.as_ptr().add((group * 2 + half) * 2 * PANEL).cast::<__m128i>();
                [_mm_loadu_si128(weights), _mm_loadu_si128(weights.add(1))]
            };
            let (low, high) = (_mm256_cvtepi8_epi16(low), _mm256_cvtepi8_epi16(high));
            for (token, sums) in sums.iter_mut().enumerate() {
                // SAFETY: token < TOKENS and the group lies within the row; alignment is not required.
                let four = unsafe { rows.as_ptr().add(token * inputs + group * GROUP).cast::<i64>().read_unaligned() };
                let four = _mm256_set1_epi64x(four);
                sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(low, four));
                sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(high, four));
            }
        }
        for (all, [low, high]) in all.iter_mut().zip(sums) {
            // `hadd` adds within halves of registers, so the middle quarters change places.
            let both = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(low, high));
            // SAFETY: `all` has room for two vectors of eight, and half < 2.
            unsafe { _mm256_storeu_si256(all.as_mut_ptr().add(half * PANEL / 2).cast(), both) };
        }
    }
    all
}

#[target_feature(enable = "avx2,avxvnni")]
pub fn linear_avx_vnni(from: &Activations, layer: &LinearLayer, to: &mut [f32]) {
    for number in 0..layer.outputs / PANEL {
        in_blocks!(from.scales.len(), first => block_avx_vnni(from, first, layer, number, to));
    }
}

#[target_feature(enable = "avx2,avxvnni")]
fn block_avx_vnni<const TOKENS: usize>(
    from: &Activations,
    first: usize,
    layer: &LinearLayer,
    number: usize,
    to: &mut [f32],
) {
    let panel = &layer.panels[number * layer.inputs * PANEL..][..layer.inputs * PANEL];
    let rows = &from.values[first * layer.inputs..][..TOKENS * layer.inputs];
    for (token, sums) in sums_avx_vnni::<TOKENS>(rows, panel, layer.inputs).iter().enumerate() {
        finish(sums, from, first + token, layer, number, to);
    }
}

#[target_feature(enable = "avx2,avxvnni")]
#[allow(unsafe_code)]
#[inline]
fn sums_avx_vnni<const TOKENS: usize>(rows: &[u8], panel: &[u8], inputs: usize) -> [[i32; PANEL]; TOKENS] {
    assert!(inputs.is_multiple_of(GROUP) && rows.len() == TOKENS * inputs && panel.len() == inputs * PANEL);
    let mut sums = [[_mm256_setzero_si256(); 2]; TOKENS];
    for group in 0..inputs / GROUP {
        // SAFETY: group < inputs / GROUP and the panel has 64 bytes for each group, so both halves lie within it.
        let [low, high] = unsafe {
            let weights = panel.as_ptr().add(group * GROUP * PANEL).cast::<__m256i>();
            [_mm256_loadu_si256(weights), _mm256_loadu_si256(weights.add(1))]
        };
        for (token, sums) in sums.iter_mut().enumerate() {
            // SAFETY: token < TOKENS and the group lies within the row; alignment is not required.
            let four = unsafe { rows.as_ptr().add(token * inputs + group * GROUP).cast::<i32>().read_unaligned() };
            let four = _mm256_set1_epi32(four);
            sums[0] = _mm256_dpbusd_avx_epi32(sums[0], four, low);
            sums[1] = _mm256_dpbusd_avx_epi32(sums[1], four, high);
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

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub fn linear_avx512(from: &Activations, layer: &LinearLayer, to: &mut [f32]) {
    let count = layer.outputs / PANEL;
    let mut number = 0;
    while number < count {
        if count - number >= PANELS {
            in_blocks!(from.scales.len(), first => panels_avx512(from, first, layer, number, to));
            number += PANELS;
        } else {
            in_blocks!(from.scales.len(), first => panel_avx512(from, first, layer, number, to));
            number += 1;
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn panels_avx512<const TOKENS: usize>(
    from: &Activations,
    first: usize,
    layer: &LinearLayer,
    number: usize,
    to: &mut [f32],
) {
    block_avx512::<TOKENS, PANELS>(from, first, layer, number, to);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn panel_avx512<const TOKENS: usize>(
    from: &Activations,
    first: usize,
    layer: &LinearLayer,
    number: usize,
    to: &mut [f32],
) {
    block_avx512::<TOKENS, 1>(from, first, layer, number, to);
}

/// Multiplies `TOKENS` rows by `WIDTH` panels.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
#[inline]
fn block_avx512<const TOKENS: usize, const WIDTH: usize>(
    from: &Activations,
    first: usize,
    layer: &LinearLayer,
    number: usize,
    to: &mut [f32],
) {
    let panels = &layer.panels[number * layer.inputs * PANEL..][..WIDTH * layer.inputs * PANEL];
    let rows = &from.values[first * layer.inputs..][..TOKENS * layer.inputs];
    for (token, sums) in sums_avx512::<TOKENS, WIDTH>(rows, panels, layer.inputs).iter().enumerate() {
        for (panel, sums) in sums.iter().enumerate() {
            finish(sums, from, first + token, layer, number + panel, to);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
#[allow(unsafe_code)]
#[inline]
fn sums_avx512<const TOKENS: usize, const WIDTH: usize>(
    rows: &[u8],
    panels: &[u8],
    inputs: usize,
) -> [[[i32; PANEL]; WIDTH]; TOKENS] {
    assert!(inputs.is_multiple_of(GROUP) && rows.len() == TOKENS * inputs && panels.len() == WIDTH * inputs * PANEL);
    let mut sums = [[_mm512_setzero_si512(); WIDTH]; TOKENS];
    for group in 0..inputs / GROUP {
        let mut weights = [_mm512_setzero_si512(); WIDTH];
        for (panel, weights) in weights.iter_mut().enumerate() {
            // SAFETY: panel < WIDTH and group < inputs / GROUP, and each panel has 64 bytes for each group.
            *weights = unsafe {
                _mm512_loadu_si512(panels.as_ptr().add((panel * inputs + group * GROUP) * PANEL).cast::<__m512i>())
            };
        }
        for (token, sums) in sums.iter_mut().enumerate() {
            // SAFETY: token < TOKENS and the group lies within the row; alignment is not required.
            let four = unsafe { rows.as_ptr().add(token * inputs + group * GROUP).cast::<i32>().read_unaligned() };
            let four = _mm512_set1_epi32(four);
            for (sum, &weights) in sums.iter_mut().zip(&weights) {
                *sum = _mm512_dpbusd_epi32(*sum, four, weights);
            }
        }
    }
    sums.map(|sums| {
        sums.map(|sum| {
            let mut all = [0; PANEL];
            // SAFETY: `all` has room for sixteen numbers.
            unsafe { _mm512_storeu_si512(all.as_mut_ptr().cast(), sum) };
            all
        })
    })
}
