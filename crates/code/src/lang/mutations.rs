//! Damages texts at random, the same way in every run, for mutation tests.

/// A random number generator with a fixed seed.
pub(crate) struct MutationRng(u64);

impl MutationRng {
    pub(crate) fn new() -> MutationRng {
        MutationRng(0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// One of the texts with one of the pieces inserted, or with a few bytes removed.
    pub(crate) fn damaged(&mut self, texts: &[&str], pieces: &[&str]) -> String {
        let mut text = texts[self.below(texts.len())].to_owned();
        let place = |text: &str, mut at: usize| {
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let from = place(&text, self.below(text.len() + 1));
        if self.below(2) == 0 {
            text.insert_str(from, pieces[self.below(pieces.len())]);
        } else {
            let to = place(&text, (from + self.below(6)).min(text.len())).max(from);
            text.replace_range(from..to, "");
        }
        text
    }
}
