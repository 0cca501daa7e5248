//! How ranked answers are scored: recall, pools of files, and messages that name a gold file.

use std::collections::BTreeSet;

/// What should be found, each once.
pub type Gold = BTreeSet<String>;

/// The share of gold in the first `k`.
pub fn recall<S: AsRef<str>>(gold: &Gold, ranked: &[S], k: usize) -> f64 {
    let first: BTreeSet<&str> = ranked.iter().take(k).map(AsRef::as_ref).collect();
    gold.iter().filter(|wanted| first.contains(wanted.as_str())).count() as f64 / gold.len().max(1) as f64
}

/// Whether all gold is in the first `k`: 1 or 0.
pub fn all_within<S: AsRef<str>>(gold: &Gold, ranked: &[S], k: usize) -> f64 {
    f64::from(u8::from(recall(gold, ranked, k) >= 1.0))
}

/// The reciprocal rank of the first gold; 0 if there is none.
pub fn reciprocal<S: AsRef<str>>(gold: &Gold, ranked: &[S]) -> f64 {
    let place = ranked.iter().position(|found| gold.contains(found.as_ref()));
    place.map_or(0.0, |place| 1.0 / (place + 1) as f64)
}

/// NDCG of the first `k`, with all gold of equal relevance.
pub fn ndcg<S: AsRef<str>>(gold: &Gold, ranked: &[S], k: usize) -> f64 {
    let worth = |place: usize| 1.0 / ((place + 2) as f64).log2();
    let mut seen = BTreeSet::new();
    let found = ranked.iter().take(k).enumerate();
    let found = found.map(|(place, found)| (place, found.as_ref()));
    let sum: f64 = found.filter(|(_, it)| gold.contains(*it) && seen.insert(*it)).map(|(place, _)| worth(place)).sum();
    sum / (0..gold.len().min(k)).map(worth).sum::<f64>().max(f64::MIN_POSITIVE)
}

/// The mean in percent, to one digit.
pub fn percent(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    (mean * 1_000.0).round() / 10.0
}

/// The files of a repository that are ranked: sources of one language without tests, docs and examples.
#[derive(Clone, Debug, PartialEq)]
pub enum Pool {
    Issues,
    /// Files with the ending of the first changed file.
    Commits {
        ending: String,
    },
}

impl Pool {
    pub fn of_commit(gold: &[String]) -> Pool {
        let ending = gold.first().and_then(|file| file.rsplit_once('.')).map_or("", |(_, ending)| ending);
        Pool::Commits { ending: format!(".{ending}") }
    }

    pub fn has(&self, path: &str) -> bool {
        let (folders, _) = path.rsplit_once('/').unwrap_or(("", path));
        let below = |names: &[&str]| folders.split('/').any(|folder| names.contains(&folder));
        let contains = |parts: &[&str]| parts.iter().any(|part| path.contains(part));
        match self {
            Pool::Issues => {
                path.ends_with(".py")
                    && !below(&["test", "tests", "testing", "testdata", "examples", "doc", "docs", "benchmarks"])
                    && !path.split('/').any(|part| part.starts_with("test_"))
                    && !contains(&["_test.py", "conftest"])
            }
            Pool::Commits { ending } => {
                path.ends_with(ending)
                    && !below(&["test", "tests", "__tests__", "testdata", "example", "examples", "docs"])
                    && !contains(&["_test.", ".test.", ".spec.", "Test.java"])
            }
        }
    }
}

/// Whether the message contains the name of a gold file without its last ending, in any case.
pub fn names_gold_file(message: &str, gold: &[String]) -> bool {
    let message = message.to_lowercase();
    gold.iter().any(|file| {
        let name = file.rsplit('/').next().unwrap_or(file);
        message.contains(&name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_gold() {
        let gold: Gold = ["a", "b", "b"].map(String::from).into();
        let ranked = ["x", "a", "y", "b"];
        assert_eq!([1, 2, 3, 4].map(|k| recall(&gold, &ranked, k)), [0.0, 0.5, 0.5, 1.0]);
        assert_eq!([3, 4].map(|k| all_within(&gold, &ranked, k)), [0.0, 1.0]);
        assert_eq!(percent(&[1.0, 0.0, 0.0]), 33.3);
    }

    #[test]
    fn places_count() {
        let gold: Gold = ["a", "b"].map(String::from).into();
        assert_eq!([vec!["a"], vec!["x", "b"], vec!["x"]].map(|ranked| reciprocal(&gold, &ranked)), [1.0, 0.5, 0.0]);
        assert_eq!(ndcg(&gold, &["a", "b", "x"], 10), 1.0);
        assert_eq!(ndcg(&gold, &["a", "a", "x"], 10), ndcg(&gold, &["a", "x"], 10), "twice is once");
        let third = (1.0 + 1.0 / 4f64.log2()) / (1.0 + 1.0 / 3f64.log2());
        assert!((ndcg(&gold, &["a", "x", "b"], 10) - third).abs() < 1e-12);
        assert_eq!(ndcg(&gold, &["x", "y", "b"], 2), 0.0);
    }

    #[test]
    fn pools_leave_out_tests_and_docs() {
        for (path, is_in) in [
            ("django/db/models.py", true),
            ("tests/models.py", false),
            ("a/testing/models.py", false),
            ("a/mytests/models.py", true),
            ("test_data/models.py", false),
            ("a/latest_news.py", true),
            ("a/news_test.py", false),
            ("a/conftest.py", false),
            ("a/test.py", true),
            ("a/test.rs", false),
        ] {
            assert_eq!(Pool::Issues.has(path), is_in, "{path}");
        }
        let commits = Pool::of_commit(&["src/a.test.ts".into()]);
        for (path, is_in) in [
            ("src/a.ts", true),
            ("src/a.js", false),
            ("src/__tests__/a.ts", false),
            ("example/a.ts", false),
            ("src/a.spec.ts", false),
            ("test_a/a.ts", true),
            ("src/a_test.ts", false),
        ] {
            assert_eq!(commits.has(path), is_in, "{path}");
        }
        assert!(!Pool::of_commit(&["A.java".into()]).has("a/ATest.java"));
    }

    #[test]
    fn parts_of_words_give_away_too() {
        assert!(names_gold_file("Modify it", &["src/mod.rs".into()]));
        assert!(names_gold_file("fix a.min", &["a.min.js".into()]));
        assert!(!names_gold_file("fix it", &["src/mod.rs".into()]));
    }
}
