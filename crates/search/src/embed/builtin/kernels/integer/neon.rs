//! Kernels of linear layers for NEON, which every 64-bit ARM processor has.
//!
//! On other processors, tests compile it with twins of its instructions (`neon/instructions.rs`).

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::*;

#[cfg(not(target_arch = "aarch64"))]
mod instructions;
#[cfg(not(target_arch = "aarch64"))]
use instructions::*;

use super::{Activations, GROUP, LinearLayer, PANEL, finish};

/// Tokens that are multiplied at a time: with two quarters of a panel, their sums fill half of the registers.
const BLOCK: usize = 4;
/// What makes a value of an activation fit into eight bits with a sign.
const MIDDLE: u8 = 128;

pub fn linear_neon(from: &Activations, layer: &LinearLayer, to: &mut [f32]) {
    let signed: Vec<i8> = from.values.iter().map(|&value| (value ^ MIDDLE).cast_signed()).collect();
    for (number, panel) in layer.panels.chunks_exact(layer.inputs * PANEL).enumerate() {
        for (block, rows) in signed.chunks(layer.inputs * BLOCK).enumerate() {
            let first = block * BLOCK;
            match rows.len() / layer.inputs {
                1 => block_neon::<1>(rows, panel, from, first, layer, number, to),
                2 => block_neon::<2>(rows, panel, from, first, layer, number, to),
                3 => block_neon::<3>(rows, panel, from, first, layer, number, to),
                _ => block_neon::<BLOCK>(rows, panel, from, first, layer, number, to),
            }
        }
    }
}

/// Multiplies `TOKENS` rows by one panel.
fn block_neon<const TOKENS: usize>(
    rows: &[i8],
    panel: &[u8],
    from: &Activations,
    first: usize,
    layer: &LinearLayer,
    number: usize,
    to: &mut [f32],
) {
    for (token, sums) in sums_neon::<TOKENS>(rows, panel, layer.inputs).iter_mut().enumerate() {
        for (sum, weights) in sums.iter_mut().zip(&layer.sums[number * PANEL..]) {
            *sum += i32::from(MIDDLE) * weights;
        }
        finish(sums, from, first + token, layer, number, to);
    }
}

#[allow(unsafe_code)]
#[inline]
fn sums_neon<const TOKENS: usize>(rows: &[i8], panel: &[u8], inputs: usize) -> [[i32; PANEL]; TOKENS] {
    assert!(inputs.is_multiple_of(2 * GROUP) && rows.len() == TOKENS * inputs && panel.len() == inputs * PANEL);
    let mut all = [[0; PANEL]; TOKENS];
    for quarter in 0..PANEL / GROUP {
        let mut sums = [[vdupq_n_s32(0); 2]; TOKENS];
        for group in (0..inputs / GROUP).step_by(2) {
            // SAFETY: group + 1 < inputs / GROUP, as their number is even, and the panel has 64 bytes for each group,
            // 16 for each quarter.
            let [now, next] = [group, group + 1].map(|group| unsafe {
                vld1q_s8(panel.as_ptr().add((group * PANEL / GROUP + quarter) * PANEL).cast::<i8>())
            });
            for (token, sums) in sums.iter_mut().enumerate() {
                let four = |group: usize| {
                    // SAFETY: token < TOKENS and the group lies within the row; alignment is not required.
                    let four =
                        unsafe { rows.as_ptr().add(token * inputs + group * GROUP).cast::<i32>().read_unaligned() };
                    vreinterpretq_s8_s32(vdupq_n_s32(four))
                };
                let (first, second) = (four(group), four(group + 1));
                // Two products of at most 128 by 127 fit into 16 bits.
                let low = vmull_s8(vget_low_s8(now), vget_low_s8(first));
                let low = vmlal_s8(low, vget_low_s8(next), vget_low_s8(second));
                let high = vmlal_high_s8(vmull_high_s8(now, first), next, second);
                sums[0] = vpadalq_s16(sums[0], low);
                sums[1] = vpadalq_s16(sums[1], high);
            }
        }
        for (all, [low, high]) in all.iter_mut().zip(sums) {
            // SAFETY: `all` has room for four vectors of four, and quarter < 4.
            unsafe { vst1q_s32(all.as_mut_ptr().add(quarter * GROUP), vpaddq_s32(low, high)) };
        }
    }
    all
}
