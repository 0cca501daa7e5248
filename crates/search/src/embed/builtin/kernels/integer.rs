//! Linear layers in integers: blocks of tokens by panels of sixteen outputs, with a kernel for each set of instructions.
//!
//! Sums of integers are exact, so all kernels give the same result.

#[cfg(any(target_arch = "aarch64", test))]
pub mod neon;
#[cfg(target_arch = "x86_64")]
pub mod x86;

use super::{Activations, GROUP, PANEL};
use crate::embed::builtin::weights::LinearLayer;

pub fn linear_plain(from: &Activations, layer: &LinearLayer, to: &mut [f32]) {
    for (number, panel) in layer.panels.chunks_exact(layer.inputs * PANEL).enumerate() {
        for (token, row) in from.values.chunks_exact(layer.inputs).enumerate() {
            let mut sums = [0i32; PANEL];
            for (group, weights) in row.as_chunks::<GROUP>().0.iter().zip(panel.as_chunks::<{ GROUP * PANEL }>().0) {
                for (sum, weights) in sums.iter_mut().zip(weights.as_chunks::<GROUP>().0) {
                    for (&value, &weight) in group.iter().zip(weights) {
                        *sum += i32::from(value) * i32::from(weight.cast_signed());
                    }
                }
            }
            finish(&sums, from, token, layer, number, to);
        }
    }
}

/// Converts integer sums to the outputs of one token and one panel.
#[inline(always)]
fn finish(sums: &[i32; PANEL], from: &Activations, token: usize, layer: &LinearLayer, panel: usize, to: &mut [f32]) {
    let (scale, low) = (from.scales[token], from.lows[token]);
    let start = panel * PANEL;
    let part = |values: &[f32]| -> [f32; PANEL] { *values[start..].first_chunk().expect("layers have whole panels") };
    let (scales, offsets, bias) = (part(&layer.scales), part(&layer.offsets), part(&layer.bias));
    let to: &mut [f32; PANEL] = to[token * layer.outputs + start..].first_chunk_mut().expect("rows have whole panels");
    for output in 0..PANEL {
        to[output] = sums[output] as f32 * (scale * scales[output]) + (low * offsets[output] + bias[output]);
    }
}
