//! Tests the arithmetic against a naive implementation, and every level against every other.

use super::*;

/// Deterministic pseudo-random numbers.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next() * 4.0).collect()
}

fn layer(inputs: usize, outputs: usize) -> LinearLayer {
    let panels: Vec<u8> = numbers(inputs * outputs, 7).iter().map(|n| (n * 31.7) as i8 as u8).collect();
    layer_of(panels, numbers(outputs, 8).iter().map(|n| n.abs() / 100.0).collect(), numbers(outputs, 9))
}

fn layer_of(panels: Vec<u8>, scales: Vec<f32>, bias: Vec<f32>) -> LinearLayer {
    let outputs = scales.len();
    let inputs = panels.len() / outputs;
    let mut sums = vec![0; outputs];
    for (place, &weight) in panels.iter().enumerate() {
        let (panel, within) = (place / (PANEL * inputs), place % (PANEL * GROUP));
        sums[panel * PANEL + within / GROUP] += i32::from(weight as i8);
    }
    let offsets = scales.iter().zip(&sums).map(|(scale, &sum)| scale * sum as f32).collect();
    LinearLayer { panels: panels.leak(), scales, sums, offsets, bias, inputs, outputs }
}

/// The result of every set of instructions that this processor has, and of the kernel for NEON.
fn results(activations: &Activations, layer: &LinearLayer) -> Vec<(String, Vec<f32>)> {
    let empty = || vec![0.0; activations.scales.len() * layer.outputs];
    let mut all = Vec::new();
    for level in InstructionSet::all() {
        let mut to = empty();
        level.linear(activations, layer, &mut to);
        all.push((format!("{level:?}"), to));
    }
    let mut to = empty();
    integer::neon::linear_neon(activations, layer, &mut to);
    all.push(("NEON".to_string(), to));
    all
}

#[test]
fn a_linear_layer_is_a_matrix_product_at_every_level() {
    let shapes = [(1, 32, 16), (5, 64, 48), (6, 384, 32), (13, 1536, 16), (20, 32, 64), (8, 384, 80), (3, 16, 128)];
    for (tokens, inputs, outputs) in shapes {
        let rows = numbers(tokens * inputs, 3);
        let layer = layer(inputs, outputs);
        let mut activations = Activations::default();
        InstructionSet::plain().quantise(&rows, inputs, &mut activations);
        let results = results(&activations, &layer);
        let plain = &results[0].1;
        for token in 0..tokens {
            let row: Vec<f64> = (0..inputs)
                .map(|input| {
                    let value = f64::from(activations.values[token * inputs + input]);
                    let value = value * f64::from(activations.scales[token]) + f64::from(activations.lows[token]);
                    let distance = (value - f64::from(rows[token * inputs + input])).abs();
                    assert!(distance <= f64::from(activations.scales[token]) * 0.501, "{value} is {distance} away");
                    value
                })
                .collect();
            for output in 0..outputs {
                let weight = |input: usize| {
                    let group = output / PANEL * PANEL * inputs + input / GROUP * GROUP * PANEL;
                    let place = group + output % PANEL * GROUP + input % GROUP;
                    f64::from(layer.panels[place] as i8) * f64::from(layer.scales[output])
                };
                let sum: f64 = row.iter().enumerate().map(|(input, value)| value * weight(input)).sum();
                let size: f64 = row.iter().enumerate().map(|(input, value)| (value * weight(input)).abs()).sum();
                let expected = sum + f64::from(layer.bias[output]);
                let found = f64::from(plain[token * outputs + output]);
                assert!((expected - found).abs() <= size * 1e-5 + 1e-5, "{found} is not {expected}");
            }
        }
        for (level, found) in &results {
            assert_eq!(found, plain, "{level} for {tokens} tokens, {inputs} inputs, {outputs} outputs");
        }
    }
}

#[test]
fn the_largest_sums_do_not_overflow() {
    let inputs = 1536;
    for weight in [-127i8, 127] {
        let layer = layer_of(vec![weight as u8; inputs * PANEL], vec![1.0; PANEL], vec![0.0; PANEL]);
        for value in [0, 255] {
            let activations = Activations { values: vec![value; inputs], scales: vec![1.0], lows: vec![0.0] };
            let expected = f32::from(value) * f32::from(weight) * inputs as f32;
            for (level, found) in results(&activations, &layer) {
                assert_eq!(found, vec![expected; PANEL], "{level}");
            }
        }
    }
}

#[test]
fn gelu_is_close_to_its_definition() {
    // Computed from the definition in 64 bits.
    let known = [(-6.0, -5.919_526e-9), (-3.0, -0.004_049_694), (-1.0, -0.158_655_25), (-0.1, -0.046_017_216)]
        .into_iter()
        .chain([(0.0, 0.0), (0.1, 0.053_982_78), (0.5, 0.345_731_23), (1.0, 0.841_344_7), (4.0, 3.999_873_3)]);
    for (value, expected) in known {
        let mut values = [value; 16];
        InstructionSet::best().gelu(&mut values);
        assert!(values.iter().all(|found| (found - expected).abs() < 1e-6), "{value}: {values:?}, not {expected}");
    }
}

#[test]
fn attention_is_a_mean_of_values_by_softmax() {
    for tokens in [1, 3, 4, 8, 17, 33] {
        let (heads, width) = (2, 64);
        let three = numbers(tokens * 3 * width, 5);
        let mut found = vec![0.0; tokens * width];
        InstructionSet::best().attend(&three, heads, width, &mut found, &mut Vec::new());
        let at = |token: usize, which: usize, place: usize| f64::from(three[(3 * token + which) * width + place]);
        for token in 0..tokens {
            for head in 0..heads {
                let places = || head * 32..(head + 1) * 32;
                let weights: Vec<f64> = (0..tokens)
                    .map(|other| {
                        let score: f64 = places().map(|place| at(token, 0, place) * at(other, 1, place)).sum();
                        (score / 32f64.sqrt()).exp()
                    })
                    .collect();
                let total: f64 = weights.iter().sum();
                for place in places() {
                    let sum: f64 = weights.iter().enumerate().map(|(o, weight)| weight * at(o, 2, place)).sum();
                    let found = f64::from(found[token * width + place]);
                    assert!((found - sum / total).abs() < 2e-5, "{found} is not {}", sum / total);
                }
            }
        }
    }
}

#[test]
fn every_level_computes_the_same_floats() {
    for tokens in [1, 2, 16, 37] {
        let width = 384;
        let rows = numbers(tokens * width, 11);
        let (gain, bias) = (numbers(width, 12), numbers(width, 13));
        let three = numbers(tokens * width * 3, 14);
        let all = InstructionSet::all().into_iter().map(|level| {
            let mut activations = Activations::default();
            level.quantise(&rows, width, &mut activations);
            let mut activated = rows.clone();
            level.gelu(&mut activated);
            let mut normed = rows.clone();
            level.add_and_norm(&mut normed, &three[..rows.len()], &gain, &bias);
            let mut attended = vec![0.0; rows.len()];
            level.attend(&three, 12, width, &mut attended, &mut Vec::new());
            let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            let floats =
                [&activations.scales, &activations.lows, &activated, &normed, &attended].map(|values| bits(values));
            (activations.values, floats)
        });
        let all: Vec<_> = all.collect();
        assert!(all.iter().all(|found| *found == all[0]));
    }
}

#[test]
fn an_empty_row_stays_empty() {
    let mut activations = Activations::default();
    InstructionSet::best().quantise(&[0.0; 32], 32, &mut activations);
    assert_eq!(activations, Activations { values: vec![0; 32], scales: vec![0.0], lows: vec![0.0] });
}
