//! Prints how fast the built-in model embeds and how fast vectors are scanned, on one core and on all.

use std::time::Instant;

use lukasa_search::embed::builtin::{BuiltinModel, InstructionSet};
use lukasa_search::vectors::Vectors;
use rayon::ThreadPoolBuilder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let builtin = BuiltinModel::get()?;
    println!("ready after {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let one = ThreadPoolBuilder::new().num_threads(1).build()?;
    let all = ThreadPoolBuilder::new().build()?;
    for (words, count) in [(8, 1024), (30, 512), (126, 256), (300, 128)] {
        let texts: Vec<String> = (0..count).map(|number| text(number, words)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let tokens: usize = texts.iter().map(|text| builtin.tokenizer().ids(text, 256).len()).sum();
        for level in InstructionSet::all().into_iter().rev() {
            // Plain instructions are measured for comparison only, so a few texts are enough.
            let texts = if level == InstructionSet::plain() { &texts[..count / 16] } else { &texts[..] };
            for (cores, pool) in [("one core", &one), ("all cores", &all)] {
                let start = Instant::now();
                let vectors = pool.install(|| builtin.embed_at(level, texts));
                let rate = vectors.len() as f64 / start.elapsed().as_secs_f64();
                println!("{:4} tokens, {:8}, {cores:9}: {rate:7.1} texts/s", tokens / count, level.name());
            }
        }
    }
    for count in [100_000, 400_000] {
        let mut numbers = Numbers(7);
        let mut vectors = Vectors::new(384);
        let start = Instant::now();
        for id in 0..count {
            vectors.put(id, &numbers.vector())?;
        }
        println!("{count} vectors put in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        let copy = vectors.clone();
        println!("cloned in {:.3} ms", start.elapsed().as_secs_f64() * 1e3);
        for (cores, pool) in [("one core", &one), ("all cores", &all)] {
            let mut times: Vec<f64> = (0..21)
                .map(|_| {
                    let question = numbers.vector();
                    let start = Instant::now();
                    let found = pool.install(|| copy.nearest(&question, 10, |_| true));
                    assert!(found.is_ok_and(|found| found.len() == 10));
                    start.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            times.sort_by(f64::total_cmp);
            println!("{count} vectors, {cores:9}: {:.2} ms a question (median of {})", times[10], times.len());
        }
    }
    Ok(())
}

fn text(number: usize, words: usize) -> String {
    const WORDS: [&str; 12] =
        ["the", "server", "returns", "an", "error", "when", "this", "function", "is", "called", "without", "token"];
    (0..words).map(|word| WORDS[(number * 7 + word * word + word) % WORDS.len()]).collect::<Vec<_>>().join(" ")
}

struct Numbers(u64);

impl Numbers {
    fn vector(&mut self) -> Vec<f32> {
        (0..384).map(|_| self.next() / 13.0).collect()
    }

    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}
