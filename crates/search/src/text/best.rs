//! Finds the best documents of a part without reading every posting of common words.
//!
//! The rarest words come first. Once all further words together can add less than the score of the last of the best, no
//! new document can become one of them. From then on only the documents seen so far are considered, and of them only
//! those that can still be among the best.

use super::segment::{Posting, TextSegment, index_u32};
use super::{Doc, Norms, Part};
use std::cell::Cell;

/// Bounds and sums are rounded, so only documents that are clearly below are dropped.
const MARGIN: f32 = 1.001;
/// Check whether more documents are needed only after this many per wanted one.
const WORTH: usize = 2;
/// Look up documents one by one in lists that are more than this many times as long.
const FEW: usize = 8;

/// A word to search for, with its weight in any document.
pub(super) struct QueryWord<'t> {
    pub word: &'t str,
    pub rarity: f32,
}

/// Sums for several scorings, for every document of the part that may be among the best `most` of one of them, in
/// document order.
pub(super) fn sums<const N: usize>(
    part: &Part,
    wanted: &[QueryWord<'_>],
    norms: &[Norms; N],
    most: usize,
) -> Vec<(Doc, [f32; N])> {
    let segment = &*part.segment;
    let mut room = Room::take(segment.len() * N);
    let (sums, _) = room.0.as_chunks_mut::<N>();
    let mut met: Vec<u32> = Vec::new();
    // The most that the words from here on can add, for each scoring.
    let mut rest = vec![[0.0f32; N]; wanted.len() + 1];
    for (at, word) in wanted.iter().enumerate().rev() {
        let bounds = segment.word(word.word).map(|number| segment.bounds(number));
        let most = |way: usize| bounds.map_or(0.0, |(counts, lengths)| norms[way].score(lengths, counts));
        rest[at] = std::array::from_fn(|way| rest[at + 1][way] + word.rarity * most(way));
    }
    let alike = norms.iter().all(|norms_of| norms_of.by == norms[0].by);
    let mut closed = false;
    for (at, word) in wanted.iter().enumerate() {
        if met.len() > most.saturating_mul(WORTH) {
            let floors: [f32; N] =
                std::array::from_fn(|way| super::floor(met.iter().map(|at| sums[*at as usize][way]), most));
            if !closed && (0..N).all(|way| floors[way] > rest[at][way] * MARGIN) {
                closed = true;
                // Sorted, because from here on documents are looked up in sorted lists.
                met.sort_unstable();
            }
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
            let shares = norms[0].by.shares(lengths, &posting.counts);
            for (sum, norms) in sum.iter_mut().zip(norms) {
                let score = if alike { norms.score_of(&shares) } else { norms.score(lengths, &posting.counts) };
                *sum += score * word.rarity;
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
            let mut postings = postings;
            for doc in &met {
                postings = from(postings, *doc);
                if let Some(posting) = postings.first().filter(|posting| posting.at == *doc) {
                    add(&mut sums[*doc as usize], posting);
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
    let found = in_order(part, segment, sums, &mut met);
    met.iter().for_each(|doc| sums[*doc as usize] = [0.0; N]);
    room.give_back();
    found
}

/// A buffer for sums, all zero. Kept by each thread, because allocating and clearing it takes as long as most queries.
struct Room(Vec<f32>);

/// The largest buffer that a thread keeps, in sums.
const KEPT: usize = 1 << 21;

thread_local! {
    static ROOM: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

impl Room {
    fn take(len: usize) -> Room {
        let mut room = ROOM.take();
        if room.len() < len {
            room.resize(len, 0.0);
        }
        Room(room)
    }

    /// Returns the buffer, in which all sums must be zero again.
    fn give_back(self) {
        if self.0.len() <= KEPT {
            ROOM.set(self.0);
        }
    }
}

/// The part of a list from a document on, by galloping search: the next one is rarely far.
fn from(postings: &[Posting], doc: u32) -> &[Posting] {
    let mut step = 1;
    while postings.get(step).is_some_and(|posting| posting.at < doc) {
        step *= 2;
    }
    let near = &postings[step / 2..(step + 1).min(postings.len())];
    &postings[step / 2 + near.partition_point(|posting| posting.at < doc)..]
}

fn in_order<const N: usize>(
    part: &Part,
    segment: &TextSegment,
    sums: &[[f32; N]],
    met: &mut [u32],
) -> Vec<(Doc, [f32; N])> {
    let is_there = |at: &u32| part.gone.docs.is_empty() || !part.gone.docs.contains(at);
    let found = |at: u32| (segment.doc(at), sums[at as usize]);
    // Scans all documents if many were seen, sorts the seen ones otherwise.
    if met.len() > segment.len() / 16 {
        let met = (0..index_u32(segment.len())).filter(|at| sums[*at as usize] != [0.0; N]);
        met.filter(is_there).map(found).collect()
    } else {
        met.sort_unstable();
        met.iter().copied().filter(is_there).map(found).collect()
    }
}
