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
    LinearLayer {
        panels: panels.leak(),
        scales: numbers(outputs, 8).iter().map(|n| n.abs() / 100.0).collect(),
        bias: numbers(outputs, 9),
        inputs,
        outputs,
    }
}

#[test]
fn a_linear_layer_is_a_matrix_product_at_every_level() {
    for (tokens, inputs, outputs) in [(1, 32, 16), (5, 64, 48), (6, 384, 32), (13, 1536, 16), (20, 32, 64)] {
        let rows = numbers(tokens * inputs, 3);
        let layer = layer(inputs, outputs);
        let mut activations = Activations::default();
        InstructionSet::plain().quantise(&rows, inputs, &mut activations);
        let mut plain = vec![0.0; tokens * outputs];
        InstructionSet::plain().linear(&activations, &layer, &mut plain);
        for token in 0..tokens {
            for output in 0..outputs {
                let weight = |input: usize| {
                    let place = output / PANEL * PANEL * inputs + input / 2 * 32 + output % PANEL * 2 + input % 2;
                    f64::from(layer.panels[place] as i8) * f64::from(layer.scales[output])
                };
                let row = &rows[token * inputs..][..inputs];
                let sum: f64 = row.iter().enumerate().map(|(i, &value)| f64::from(value) * weight(i)).sum();
                let size: f64 = row.iter().enumerate().map(|(i, &value)| (f64::from(value) * weight(i)).abs()).sum();
                let expected = sum + f64::from(layer.bias[output]);
                let found = f64::from(plain[token * outputs + output]);
                assert!((expected - found).abs() <= size * 3e-4 + 1e-5, "{found} is not {expected}");
            }
        }
        let mut best = vec![0.0; tokens * outputs];
        InstructionSet::best().linear(&activations, &layer, &mut best);
        assert_eq!(plain, best);
    }
}

#[test]
fn the_largest_sums_do_not_overflow() {
    let inputs = 1536;
    let panels = vec![(-127i8) as u8; inputs * PANEL].leak();
    let layer = LinearLayer { panels, scales: vec![1.0; PANEL], bias: vec![0.0; PANEL], inputs, outputs: PANEL };
    for level in [InstructionSet::plain(), InstructionSet::best()] {
        let mut activations = Activations::default();
        level.quantise(&vec![-2.0; inputs], inputs, &mut activations);
        let mut found = vec![0.0; PANEL];
        level.linear(&activations, &layer, &mut found);
        let expected = 2.0 * 127.0 * inputs as f32;
        assert!(found.iter().all(|&sum| (sum / expected - 1.0).abs() < 1e-5), "{found:?}");
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
    for tokens in [1, 3, 4, 17, 33] {
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
        let [plain, best] = [InstructionSet::plain(), InstructionSet::best()].map(|level| {
            let mut activations = Activations::default();
            level.quantise(&rows, width, &mut activations);
            let mut activated = rows.clone();
            level.gelu(&mut activated);
            let mut normed = rows.clone();
            level.add_and_norm(&mut normed, &three[..rows.len()], &gain, &bias);
            let mut attended = vec![0.0; rows.len()];
            level.attend(&three, 12, width, &mut attended, &mut Vec::new());
            let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            let floats = [&activations.scales, &activated, &normed, &attended].map(|values| bits(values));
            (activations.values, floats)
        });
        assert_eq!(plain, best);
    }
}

#[test]
fn an_empty_row_stays_empty() {
    let mut activations = Activations::default();
    InstructionSet::best().quantise(&[0.0; 32], 32, &mut activations);
    assert_eq!((activations.values, activations.scales), (vec![0; 32], vec![0.0]));
}
