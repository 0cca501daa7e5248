//! Synthetic functions and documents with words in a Zipf distribution; the same for the same seed.

use lukasa_model::batch::PutObject;
use lukasa_testkit::random_queries::SeededRandom;

/// Different words.
const WORDS: u64 = 20_000;
/// Words of a document, and of the summary of a function.
const LONG: u64 = 60;
const SHORT: u64 = 12;
/// Words of a question.
const ASKED: u64 = 4;

pub struct SyntheticTexts {
    objects: u64,
    seed: u64,
}

impl SyntheticTexts {
    pub fn new(objects: u64, seed: u64) -> SyntheticTexts {
        SyntheticTexts { objects, seed }
    }

    /// Functions and documents in turn.
    pub fn object(&self, at: u64) -> PutObject {
        let mut dice = self.dice(at);
        let name = [word(&mut dice), word(&mut dice), word(&mut dice)];
        if at.is_multiple_of(2) {
            let path = format!("src/{}/{}.rs", word(&mut dice), word(&mut dice));
            let object = PutObject::new("Function", &format!("{path}::{}_{at}", name.join("_"))).title(&name.join("_"));
            object.property("path", path).property("summary", sentence(&mut dice, SHORT))
        } else {
            let object = PutObject::new("Document", &format!("doc-{at}")).title(&name.join(" "));
            object.property("text", sentence(&mut dice, LONG))
        }
    }

    /// The text of an object.
    pub fn text(&self, at: u64) -> String {
        text_of(&self.object(at % self.objects.max(1)))
    }

    /// A question: some words of one object.
    pub fn question(&self, at: u64) -> String {
        let mut dice = self.dice(u64::MAX - at);
        let text = self.text(dice.below(self.objects.max(1)));
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2).collect();
        let asked: Vec<&str> = (0..ASKED).map(|_| words[dice.below(words.len() as u64) as usize]).collect();
        asked.join(" ")
    }

    fn dice(&self, at: u64) -> SeededRandom {
        SeededRandom(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }
}

/// Title and properties of an object.
pub fn text_of(object: &PutObject) -> String {
    let properties = object.properties.values().filter_map(|value| value.as_str());
    object.title.as_deref().into_iter().chain(properties).collect::<Vec<_>>().join(" ")
}

/// A random word; the first words are the most frequent (Zipf).
pub fn word(dice: &mut SeededRandom) -> String {
    let share = dice.below(1 << 53) as f64 / (1u64 << 53) as f64;
    let mut at = (WORDS as f64).powf(share) as u64;
    let mut word = String::new();
    loop {
        word.push(char::from(b"bdfgklmnprstvz"[(at % 14) as usize]));
        word.push(char::from(b"aeiou"[(at / 14 % 5) as usize]));
        at /= 70;
        if at == 0 {
            word.push('n');
            return word;
        }
    }
}

pub fn sentence(dice: &mut SeededRandom, words: u64) -> String {
    (0..words).map(|_| word(dice)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_again_and_words_are_uneven() {
        let (a, b) = (SyntheticTexts::new(1_000, 7), SyntheticTexts::new(1_000, 7));
        assert_eq!(a.object(5), b.object(5));
        assert_eq!(a.question(3), b.question(3));
        assert_ne!(a.question(3), a.question(4));
        let mut counts = std::collections::BTreeMap::<String, usize>::new();
        for at in 0..1_000 {
            a.text(at).split(' ').for_each(|word| *counts.entry(word.to_owned()).or_default() += 1);
        }
        let most = counts.values().max().copied().unwrap_or(0);
        assert!(counts.len() > 2_000 && most > 500, "{} {most}", counts.len());
    }
}
