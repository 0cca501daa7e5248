//! Compares the nearest vectors with those of an exhaustive search over floats, and measures what selection by signs
//! misses.

use proptest::prelude::*;

use super::*;

/// Deterministic pseudo-random numbers, roughly normally distributed.
struct Numbers(u64);

impl Numbers {
    fn whole(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn normal(&mut self) -> f32 {
        let sum: u64 = (0..4).map(|_| self.whole() & 0xFFFF).sum();
        (sum as f32 / 65_536.0 - 2.0) * 1.732
    }

    fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        unit((0..dimensions).map(|_| self.normal()).collect())
    }

    /// A vector near `centre`: `spread` is the length of the difference before it is scaled to length one.
    fn near(&mut self, centre: &[f32], spread: f32) -> Vec<f32> {
        let spread = spread / (centre.len() as f32).sqrt();
        unit(centre.iter().map(|component| component + spread * self.normal()).collect())
    }
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = dot(&vector, &vector).sqrt().max(f32::MIN_POSITIVE);
    vector.iter_mut().for_each(|component| *component /= length);
    vector
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn ids(found: &[(u32, f32)]) -> Vec<u32> {
    found.iter().map(|&(id, _)| id).collect()
}

#[derive(Clone, Debug)]
enum Change {
    Put(u32, Vec<f32>),
    Remove(u32),
}

fn change() -> impl Strategy<Value = Change> {
    // Some ids share a chunk, others do not.
    let id = prop_oneof![0u32..20, 1020u32..1030, Just(5_000_000), Just(u32::MAX)];
    prop_oneof![
        3 => (id.clone(), proptest::collection::vec(-2i8..=2, 5)).prop_map(|(id, values)| {
            Change::Put(id, values.into_iter().map(f32::from).collect())
        }),
        1 => id.prop_map(Change::Remove),
    ]
}

proptest! {
    /// Compares with a map of floats. Components are small integers, so that rounding does not break ties.
    #[test]
    fn nearest_returns_the_same_as_a_search_over_floats(
        changes in proptest::collection::vec(change(), 0..60),
        question in proptest::collection::vec(-2i8..=2, 5),
        most in 0usize..8,
        odd in any::<bool>(),
    ) {
        let question: Vec<f32> = question.into_iter().map(f32::from).collect();
        let mut vectors = Vectors::new(5);
        let mut expected = std::collections::BTreeMap::new();
        let mut before = None;
        for (number, change) in changes.into_iter().enumerate() {
            if number == 20 {
                before = Some((vectors.clone(), vectors.nearest(&question, 100, |_| true).unwrap()));
            }
            match change {
                Change::Put(id, vector) => {
                    vectors.put(id, &vector).unwrap();
                    expected.insert(id, vector);
                }
                Change::Remove(id) => prop_assert_eq!(vectors.remove(id), expected.remove(&id).is_some()),
            }
        }
        if let Some((snapshot, found)) = before {
            prop_assert_eq!(snapshot.nearest(&question, 100, |_| true).unwrap(), found);
        }
        prop_assert_eq!(vectors.len(), expected.len());
        let allowed = |id: u32| !odd || id % 2 == 1;
        let found = vectors.nearest(&question, most, allowed).unwrap();
        let mut all: Vec<(f32, u32)> =
            expected.iter().filter(|(id, _)| allowed(**id)).map(|(&id, vector)| (dot(&question, vector), id)).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        prop_assert_eq!(found.len(), most.min(all.len()));
        for (&(_, score), &(expected, _)) in found.iter().zip(&all) {
            prop_assert!((score - expected).abs() < 0.1, "{} is not {}", score, expected);
        }
        prop_assert!(found.is_sorted_by(|a, b| a.1 > b.1 || (a.1 == b.1 && a.0 < b.0)));
    }

    #[test]
    fn a_vector_survives_conversion_to_bytes(vector in proptest::collection::vec(-1e3f32..1e3, 0..50)) {
        let quantised = Quantised::from_f32(&vector).unwrap();
        prop_assert_eq!(&Quantised::from_bytes(&quantised.to_bytes()).unwrap(), &quantised);
        for (component, rounded) in vector.iter().zip(quantised.to_f32()) {
            prop_assert!((component - rounded).abs() <= quantised.scale() * 0.501);
        }
    }
}

#[test]
fn scores_differ_from_those_of_floats_only_by_rounding() {
    let mut numbers = Numbers(1);
    let all: Vec<Vec<f32>> = (0..3000).map(|_| numbers.vector(384)).collect();
    let mut vectors = Vectors::new(384);
    for (id, vector) in all.iter().enumerate() {
        vectors.put(id as u32, vector).unwrap();
    }
    for _ in 0..20 {
        let question = numbers.vector(384);
        let mut exact: Vec<f32> = all.iter().map(|vector| dot(&question, vector)).collect();
        for (id, score) in vectors.nearest(&question, 50, |_| true).unwrap() {
            assert!((score - exact[id as usize]).abs() < 0.003);
        }
        let tenth = vectors.nearest(&question, 10, |_| true).unwrap()[9].1;
        exact.sort_by(|a, b| b.total_cmp(a));
        assert!((tenth - exact[9]).abs() < 0.003);
    }
}

#[test]
fn equal_scores_are_ordered_by_id() {
    let mut vectors = Vectors::new(3);
    for id in [9, 2, 5000, 7, 1] {
        vectors.put(id, &[0.0, 1.0, 0.0]).unwrap();
    }
    let found = vectors.nearest(&[0.0, 2.0, 0.0], 4, |id| id != 2).unwrap();
    assert_eq!(ids(&found), [1, 7, 9, 5000]);
}

#[test]
fn invalid_vectors_are_rejected() {
    let mut vectors = Vectors::new(3);
    let wrong = VectorError::Dimensions { expected: 3, found: 2 };
    assert_eq!(vectors.put(1, &[1.0, 2.0]), Err(wrong));
    assert_eq!(vectors.nearest(&[1.0, 2.0], 1, |_| true), Err(wrong));
    assert_eq!(vectors.put(1, &[1.0, f32::NAN, 2.0]), Err(VectorError::NotFinite));
    assert_eq!(Quantised::from_bytes(&[1, 2, 3]), Err(VectorError::NoBytes));
    assert_eq!(Quantised::from_bytes(&f32::NAN.to_le_bytes()), Err(VectorError::NotFinite));
    assert!(vectors.is_empty());
}

#[test]
fn selection_by_signs_misses_few_of_the_best() {
    let mut numbers = Numbers(2);
    let dimensions = 384;
    let centres: Vec<Vec<f32>> = (0..400).map(|_| numbers.vector(dimensions)).collect();
    let mut vectors = Vectors::new(dimensions);
    let count = SCAN_ALL as u32 + 10_000;
    for id in 0..count {
        let centre = numbers.whole() as usize % centres.len();
        let vector = numbers.near(&centres[centre], 0.8);
        vectors.put(id, &vector).unwrap();
    }
    let (mut right, mut asked) = (0, 0);
    for centre in &centres[..25] {
        let question = numbers.near(centre, 0.8);
        let found = vectors.nearest(&question, 10, |_| true).unwrap();
        assert_eq!(found, vectors.nearest(&question, 10, |_| true).unwrap());
        let exact = vectors.scan_all(&QuantisedQuery::new(&question).unwrap(), 10, &|_| true);
        right += ids(&exact).iter().filter(|id| ids(&found).contains(id)).count();
        asked += exact.len();
    }
    let recall = right as f64 / asked as f64;
    println!("recall@10 of {count} vectors by signs: {recall:.3}");
    assert!(recall >= 0.95, "recall@10 is {recall}");

    // If few ids are allowed, all of them are compared.
    let question = numbers.vector(dimensions);
    let found = vectors.nearest(&question, 10, |id| id % 7 == 0).unwrap();
    assert_eq!(found, vectors.scan_all(&QuantisedQuery::new(&question).unwrap(), 10, &|id| id % 7 == 0));
}
