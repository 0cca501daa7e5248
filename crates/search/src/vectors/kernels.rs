//! Compares one query with many vectors: scalar products and differing signs, with AVX2 where the processor has it.
//!
//! Both are computed in integers, so every implementation returns the same.

/// Computes the scalar product of `question` and each vector in `values`, one per element of `to`.
pub fn dots(question: &[i16], values: &[i8], to: &mut [i32]) {
    assert_eq!(values.len(), question.len() * to.len(), "vectors have the question's length");
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was detected just now.
        #[allow(unsafe_code)]
        return unsafe { dots_avx2(question, values, to) };
    }
    dots_plain(question, values, to)
}

/// Counts the bits in which each vector of `signs` differs from the query, one count per element of `to`.
pub fn distances(question: &[u64], signs: &[u64], to: &mut [u32]) {
    assert_eq!(signs.len(), question.len() * to.len(), "vectors have the question's length");
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("popcnt") {
        // SAFETY: POPCNT was detected just now.
        #[allow(unsafe_code)]
        return unsafe { distances_popcnt(question, signs, to) };
    }
    distances_plain(question, signs, to)
}

fn dots_plain(question: &[i16], values: &[i8], to: &mut [i32]) {
    for (place, to) in to.iter_mut().enumerate() {
        let values = &values[place * question.len()..][..question.len()];
        *to = dot_plain(question, values);
    }
}

#[inline(always)]
fn dot_plain(question: &[i16], values: &[i8]) -> i32 {
    question.iter().zip(values).map(|(&asked, &value)| i32::from(asked) * i32::from(value)).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code)]
fn dots_avx2(question: &[i16], values: &[i8], to: &mut [i32]) {
    use std::arch::x86_64::*;
    /// Values in one vector of 16-bit numbers.
    const STEP: usize = 16;
    let whole = question.len() / STEP * STEP;
    for (place, to) in to.iter_mut().enumerate() {
        let values = &values[place * question.len()..][..question.len()];
        let mut sum = _mm256_setzero_si256();
        for start in (0..whole).step_by(STEP) {
            // SAFETY: start + STEP <= whole, and both slices have at least `whole` values; alignment is not required.
            let (asked, value) = unsafe {
                let asked = _mm256_loadu_si256(question.as_ptr().add(start).cast());
                (asked, _mm_loadu_si128(values.as_ptr().add(start).cast()))
            };
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(asked, _mm256_cvtepi8_epi16(value)));
        }
        let half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        let quarter = _mm_add_epi32(half, _mm_shuffle_epi32::<0b01_00_11_10>(half));
        let all = _mm_add_epi32(quarter, _mm_shuffle_epi32::<0b10_11_00_01>(quarter));
        *to = _mm_cvtsi128_si32(all) + dot_plain(&question[whole..], &values[whole..]);
    }
}

#[inline(always)]
fn distances_plain(question: &[u64], signs: &[u64], to: &mut [u32]) {
    for (place, to) in to.iter_mut().enumerate() {
        let signs = &signs[place * question.len()..][..question.len()];
        *to = question.iter().zip(signs).map(|(asked, signs)| (asked ^ signs).count_ones()).sum();
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn distances_popcnt(question: &[u64], signs: &[u64], to: &mut [u32]) {
    distances_plain(question, signs, to)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn products_are_the_same_with_and_without_avx2(
            (question, values) in (0usize..200, 0usize..5).prop_flat_map(|(dimensions, count)| (
                proptest::collection::vec(-8191i16..=8191, dimensions),
                proptest::collection::vec(any::<i8>(), dimensions * count),
            )),
        ) {
            let count = values.len().checked_div(question.len()).unwrap_or(0);
            let (mut plain, mut best) = (vec![0; count], vec![1; count]);
            dots_plain(&question, &values, &mut plain);
            dots(&question, &values, &mut best);
            prop_assert_eq!(plain, best);
        }

        #[test]
        fn distances_are_the_same_with_and_without_popcnt(
            question in proptest::collection::vec(any::<u64>(), 6),
            signs in proptest::collection::vec(any::<u64>(), 24),
        ) {
            let (mut plain, mut best) = ([0; 4], [1; 4]);
            distances_plain(&question, &signs, &mut plain);
            distances(&question, &signs, &mut best);
            prop_assert_eq!(plain, best);
        }
    }

    #[test]
    fn the_largest_products_fit() {
        let (question, values) = (vec![-4095i16; 4096], vec![-128i8; 4096]);
        let mut found = [0];
        dots(&question, &values, &mut found);
        assert_eq!(found, [4096 * 4095 * 128]);
    }
}
