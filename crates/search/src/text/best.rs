//! The best documents of a part, without looking at all that have a common word.
//!
//! The rarest words are taken first. Once what all further ones can add together is less than what
//! the last of the best has already, no new document can come among them: from there on only those met are looked at,
//! and of them only those that still have a chance.

use super::segment::{Posting, Segment};
use super::{Norms, Part};

/// Bounds and sums are rounded: only what is clearly below is left out.
const MARGIN: f32 = 1.001;
/// Documents met for each one wanted before it is worth looking whether more are needed.
const WORTH: usize = 2;
/// Documents are looked up one by one in a list of so many times their number.
const FEW: usize = 8;

/// A word that is looked for, with what it counts wherever it stands.
pub(super) struct Wanted<'t> {
    pub word: &'t str,
    pub rarity: f32,
}

/// Sums by several ways to score, of every document of the part that may be among the best `most` of one of them, in
/// the order of documents.
pub(super) fn sums<const N: usize>(
    part: &Part,
    wanted: &[Wanted<'_>],
    norms: &[Norms<'_>; N],
    most: usize,
) -> Vec<(u32, [f32; N])> {
    let segment = &*part.segment;
    let mut sums = vec![[0.0f32; N]; segment.len()];
    let mut met: Vec<u32> = Vec::new();
    // What words from here on can add, by each way.
    let mut rest = vec![[0.0f32; N]; wanted.len() + 1];
    for (at, word) in wanted.iter().enumerate().rev() {
        let bounds = segment.word(word.word).map(|number| segment.bounds(number));
        let most = |way: usize| bounds.map_or(0.0, |(counts, lengths)| norms[way].score(lengths, counts));
        rest[at] = std::array::from_fn(|way| rest[at + 1][way] + word.rarity * most(way));
    }
    let mut closed = false;
    for (at, word) in wanted.iter().enumerate() {
        if met.len() > most.saturating_mul(WORTH) {
            let floors: [f32; N] =
                std::array::from_fn(|way| super::floor(met.iter().map(|at| sums[*at as usize][way]), most));
            closed |= (0..N).all(|way| floors[way] > rest[at][way] * MARGIN);
            if closed {
                met.retain(|doc| {
                    let sum = &mut sums[*doc as usize];
                    let has_a_chance = (0..N).any(|way| (sum[way] + rest[at][way]) * MARGIN >= floors[way]);
                    if !has_a_chance {
                        *sum = [0.0; N];
                    }
                    has_a_chance
                });
            }
        }
        let Some(number) = segment.word(word.word) else { continue };
        let postings = segment.postings(number);
        let add = |sum: &mut [f32; N], posting: &Posting| {
            let lengths = segment.lengths(posting.at);
            for (sum, norms) in sum.iter_mut().zip(norms) {
                *sum += norms.score(lengths, &posting.counts) * word.rarity;
            }
        };
        if !closed {
            for posting in postings {
                let sum = &mut sums[posting.at as usize];
                let is_new = *sum == [0.0; N];
                add(sum, posting);
                if is_new && *sum != [0.0; N] {
                    met.push(posting.at);
                }
            }
        } else if met.len() * FEW < postings.len() {
            for doc in &met {
                if let Ok(place) = postings.binary_search_by_key(doc, |posting| posting.at) {
                    add(&mut sums[*doc as usize], &postings[place]);
                }
            }
        } else {
            for posting in postings {
                let sum = &mut sums[posting.at as usize];
                if *sum != [0.0; N] {
                    add(sum, posting);
                }
            }
        }
    }
    in_order(part, segment, &sums, met)
}

fn in_order<const N: usize>(
    part: &Part,
    segment: &Segment,
    sums: &[[f32; N]],
    mut met: Vec<u32>,
) -> Vec<(u32, [f32; N])> {
    let is_there = |at: &u32| part.gone.docs.is_empty() || !part.gone.docs.contains(at);
    let found = |at: u32| (segment.doc(at), sums[at as usize]);
    // By looking at all where many were met, by sorting where few were.
    if met.len() > segment.len() / 16 {
        let met = (0..sums.len() as u32).filter(|at| sums[*at as usize] != [0.0; N]);
        met.filter(is_there).map(found).collect()
    } else {
        met.sort_unstable();
        met.into_iter().filter(is_there).map(found).collect()
    }
}
