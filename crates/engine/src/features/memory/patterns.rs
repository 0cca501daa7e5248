//! Patterns in episodes, found by rule.

use super::EpisodeKind;
use lukasa_model::Time;
use lukasa_model::json::Hash;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Number of edits of a file that make it a hotspot.
const HOT: usize = 3;
/// Number of similar observations that count as repeated.
const REPEATED: usize = 3;
/// Number of episodes after a decision within which a failure is attributed to it.
const NEAR: usize = 5;
/// Share of common words from which two observations count as similar.
const ALIKE: f64 = 0.6;
/// Number of pieces of work that change two files, from which these change together.
const TOGETHER: usize = 2;
/// Minimum confidence of a pattern that becomes a learning.
pub const LEARNED: f64 = 0.7;
/// Maximum number of files in one piece of work that are paired: a change of everything relates no two of them.
const WIDE: usize = 12;

/// An episode with the fields that patterns are searched in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PastEpisode {
    /// `Type:key`.
    pub reference: String,
    pub kind: EpisodeKind,
    pub title: Option<String>,
    pub content: String,
    pub agent: Option<String>,
    pub session: Option<String>,
    pub task: Option<String>,
    pub outcome: Option<String>,
    pub time: Option<Time>,
    /// Current names of the facts it involves.
    pub entities: Vec<String>,
    pub metadata: Map<String, Value>,
}

impl PastEpisode {
    fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.metadata.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    fn count(&self, name: &str) -> u64 {
        self.metadata.get(name).and_then(Value::as_u64).unwrap_or(0)
    }

    fn file(&self) -> Option<&str> {
        self.metadata.get("file").and_then(Value::as_str)
    }

    fn failed(&self) -> bool {
        self.kind == EpisodeKind::Error || self.kind == EpisodeKind::TestResult && self.count("failed") > 0
    }

    /// The piece of work it belongs to: its task or session.
    fn work(&self) -> Option<&str> {
        self.task.as_deref().or(self.session.as_deref())
    }

    fn named(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.reference)
    }
}

/// The kind of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EpisodePatternKind {
    /// A file that is edited again and again.
    Hotspot,
    /// A decision soon followed by a failure.
    DecisionNearError,
    /// An observation made several times.
    RepeatedObservation,
    /// A test that passed and failed.
    FlakyTest,
    /// Files that change together.
    ChangeTogether,
}

impl EpisodePatternKind {
    pub fn name(self) -> &'static str {
        match self {
            EpisodePatternKind::Hotspot => "hotspot",
            EpisodePatternKind::DecisionNearError => "decision_near_error",
            EpisodePatternKind::RepeatedObservation => "repeated_observation",
            EpisodePatternKind::FlakyTest => "flaky_test",
            EpisodePatternKind::ChangeTogether => "change_together",
        }
    }
}

/// A pattern in episodes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EpisodePattern {
    #[serde(rename = "type")]
    pub shape: EpisodePatternKind,
    /// A description in words.
    pub insight: String,
    /// Confidence, 0 to 1; from 0.7 on it is recorded as a learning.
    pub confidence: f64,
    /// The facts it is about.
    pub entities: Vec<String>,
    /// The episodes it was found in.
    pub episodes: Vec<String>,
    /// Identifies the pattern, whichever episodes it was found in this time.
    #[serde(skip)]
    pub subject: String,
    /// The observations it was found in, oldest first.
    #[serde(skip)]
    observed: Vec<String>,
}

impl EpisodePattern {
    /// The id of the learning that records it, if there is none yet.
    pub fn id(&self) -> String {
        let hash = Hash::of(format!("{}\0{}", self.shape.name(), self.subject).as_bytes());
        format!("{}-{}", self.shape.name(), hash.digits(24))
    }

    /// Returns how much of a learning's text this pattern covers, 0 to 1; `None` if it is another pattern. Patterns are
    /// compared by subject, repeated observations by their words, because the first observation may be outside of the examined
    /// episodes.
    pub fn likeness(&self, learning: &RecordedLearning) -> Option<f64> {
        if learning.shape != self.shape.name() {
            return None;
        }
        if learning.id == self.id() {
            return Some(1.0);
        }
        if self.shape != EpisodePatternKind::RepeatedObservation || are_apart(&learning.entities, &self.entities) {
            return None;
        }
        let text = learning.content.split_once(OBSERVED).map_or(learning.content.as_str(), |(_, text)| text);
        let known = words(text);
        let likeness = self.observed.iter().map(|own| jaccard(&words(&short(own)), &known)).fold(0.0, f64::max);
        (likeness >= ALIKE).then_some(likeness)
    }

    /// Returns the same pattern, with these episodes added.
    #[must_use]
    pub fn with(mut self, episodes: &BTreeSet<String>) -> EpisodePattern {
        let count = self.episodes.iter().chain(episodes).collect::<BTreeSet<_>>().len();
        match self.shape {
            EpisodePatternKind::Hotspot => (self.insight, self.confidence) = hotspot(&self.subject, count),
            EpisodePatternKind::RepeatedObservation => {
                let last = self.observed.last().map(String::as_str).unwrap_or_default();
                (self.insight, self.confidence) = repetition(last, count);
            }
            // These patterns do not report the number of episodes.
            EpisodePatternKind::DecisionNearError
            | EpisodePatternKind::FlakyTest
            | EpisodePatternKind::ChangeTogether => {}
        }
        self
    }
}

/// A recorded learning, for comparison with patterns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedLearning {
    pub id: String,
    /// The name of its kind of pattern.
    pub shape: String,
    pub content: String,
    pub confidence: Option<f64>,
    pub entities: Vec<String>,
    /// The episodes it was derived from.
    pub episodes: BTreeSet<String>,
}

/// Comes before the text of a repeated observation.
const OBSERVED: &str = " times: ";

fn hotspot(file: &str, edits: usize) -> (String, f64) {
    (format!("`{file}` is a hotspot: it was edited {edits} times"), (0.4 + 0.1 * edits as f64).min(0.95))
}

fn repetition(text: &str, count: usize) -> (String, f64) {
    (format!("found out {count}{OBSERVED}{}", short(text)), (0.4 + 0.1 * count as f64).min(0.9))
}

/// Whether two observations are about different facts.
fn are_apart(one: &[String], other: &[String]) -> bool {
    !one.is_empty() && !other.is_empty() && !one.iter().any(|name| other.contains(name))
}

/// Returns all patterns in episodes, which are ordered oldest first; the most confident first.
pub fn find(episodes: &[PastEpisode]) -> Vec<EpisodePattern> {
    let mut all = hotspots(episodes);
    all.extend(near_errors(episodes));
    all.extend(repeated(episodes));
    all.extend(flaky(episodes));
    all.extend(together(episodes));
    all.sort_by(|a, b| {
        b.confidence.total_cmp(&a.confidence).then(a.shape.cmp(&b.shape)).then(a.subject.cmp(&b.subject))
    });
    all
}

fn refs<'a>(episodes: impl IntoIterator<Item = &'a PastEpisode>) -> Vec<String> {
    episodes.into_iter().map(|episode| episode.reference.clone()).collect()
}

fn hotspots(episodes: &[PastEpisode]) -> Vec<EpisodePattern> {
    let mut edits: BTreeMap<&str, Vec<&PastEpisode>> = BTreeMap::new();
    for edit in episodes.iter().filter(|episode| episode.kind == EpisodeKind::Edit) {
        if let Some(file) = edit.file() {
            edits.entry(file).or_default().push(edit);
        }
    }
    let hot = edits.into_iter().filter(|(_, edits)| edits.len() >= HOT);
    hot.map(|(file, edits)| {
        let (insight, confidence) = hotspot(file, edits.len());
        EpisodePattern {
            shape: EpisodePatternKind::Hotspot,
            insight,
            confidence,
            entities: vec![file.to_owned()],
            episodes: refs(edits),
            subject: file.to_owned(),
            observed: vec![],
        }
    })
    .collect()
}

fn near_errors(episodes: &[PastEpisode]) -> Vec<EpisodePattern> {
    let mut all = Vec::new();
    for (at, decision) in episodes.iter().enumerate().filter(|(_, episode)| episode.kind == EpisodeKind::Decision) {
        let same_work = |other: &&PastEpisode| decision.work().is_none() || other.work() == decision.work();
        let failure = episodes[at + 1..].iter().filter(same_work).take(NEAR).find(|episode| episode.failed());
        let Some(failure) = failure else { continue };
        let shared: Vec<String> =
            decision.entities.iter().filter(|entity| failure.entities.contains(entity)).cloned().collect();
        let (confidence, about) = if shared.is_empty() { (0.5, decision.entities.clone()) } else { (0.75, shared) };
        all.push(EpisodePattern {
            shape: EpisodePatternKind::DecisionNearError,
            insight: format!(
                "soon after the decision \"{}\" something failed: {}",
                decision.named(),
                short(&failure.content)
            ),
            confidence,
            entities: about,
            episodes: refs([decision, failure]),
            subject: decision.reference.clone(),
            observed: vec![],
        });
    }
    all
}

fn repeated(episodes: &[PastEpisode]) -> Vec<EpisodePattern> {
    let seen: Vec<(&PastEpisode, BTreeSet<String>)> = episodes
        .iter()
        .filter(|episode| episode.kind == EpisodeKind::Observation)
        .map(|episode| (episode, words(&episode.content)))
        .collect();
    let mut taken = vec![false; seen.len()];
    let mut all = Vec::new();
    for at in 0..seen.len() {
        if taken[at] {
            continue;
        }
        let is_alike = |other: &usize| {
            jaccard(&seen[at].1, &seen[*other].1) >= ALIKE && !are_apart(&seen[at].0.entities, &seen[*other].0.entities)
        };
        let alike: Vec<usize> = (at..seen.len()).filter(|other| !taken[*other] && is_alike(other)).collect();
        if alike.len() < REPEATED {
            continue;
        }
        alike.iter().for_each(|other| taken[*other] = true);
        let same: Vec<&PastEpisode> = alike.iter().map(|other| seen[*other].0).collect();
        let mut entities: Vec<String> = same.iter().flat_map(|episode| episode.entities.clone()).collect();
        entities.sort();
        entities.dedup();
        // The first observation and its facts identify the pattern: several observations may be about one symbol.
        let first: Vec<&str> = seen[at].1.iter().map(String::as_str).collect();
        let mut about = seen[at].0.entities.clone();
        about.sort();
        let (insight, confidence) = repetition(&same[same.len() - 1].content, same.len());
        all.push(EpisodePattern {
            shape: EpisodePatternKind::RepeatedObservation,
            insight,
            confidence,
            entities,
            episodes: refs(same.iter().copied()),
            subject: format!("{}\0{}", about.join(" "), first.join(" ")),
            observed: same.iter().map(|episode| episode.content.clone()).collect(),
        });
    }
    all
}

fn flaky(episodes: &[PastEpisode]) -> Vec<EpisodePattern> {
    /// Results of one test: the episode, whether it passed, and the number of edits before.
    type Results<'a> = Vec<(&'a PastEpisode, bool, usize)>;
    let mut by_test: BTreeMap<&str, (Results<'_>, bool)> = BTreeMap::new();
    let mut edits = 0;
    for episode in episodes {
        edits += usize::from(episode.kind == EpisodeKind::Edit);
        if episode.kind != EpisodeKind::TestResult {
            continue;
        }
        let names = |name| episode.texts(name);
        let named =
            names("passed_tests").map(|test| (test, true)).chain(names("failed_tests").map(|test| (test, false)));
        let named: Vec<(&str, bool)> = named.collect();
        let by_name = !named.is_empty();
        // Without names of tests, a file represents all of its tests.
        let files = episode.texts("test_files").map(|file| (file, episode.count("failed") == 0));
        let results = if by_name { named } else { files.collect() };
        for (test, passed) in results {
            by_test.entry(test).or_insert((vec![], by_name)).0.push((episode, passed, edits));
        }
    }
    let mut all = Vec::new();
    for (test, (results, by_name)) in by_test {
        let flips: Vec<_> = results.windows(2).filter(|pair| pair[0].1 != pair[1].1).collect();
        if flips.is_empty() {
            continue;
        }
        let unedited = flips.iter().any(|pair| pair[0].2 == pair[1].2);
        let confidence = match (unedited, by_name) {
            (true, true) => 0.85,
            (true, false) => 0.7,
            // An edit in between explains the different results.
            (false, _) => 0.4,
        };
        let passed = results.iter().filter(|(_, passed, _)| *passed).count();
        let failed = results.len() - passed;
        all.push(EpisodePattern {
            shape: EpisodePatternKind::FlakyTest,
            insight: format!("`{test}` is flaky: it passed {passed} and failed {failed} times"),
            confidence,
            entities: vec![test.to_owned()],
            episodes: refs(results.iter().map(|(episode, _, _)| *episode)),
            subject: test.to_owned(),
            observed: vec![],
        });
    }
    all
}

fn together(episodes: &[PastEpisode]) -> Vec<EpisodePattern> {
    let mut by_work: BTreeMap<&str, BTreeMap<&str, &PastEpisode>> = BTreeMap::new();
    for edit in episodes.iter().filter(|episode| episode.kind == EpisodeKind::Edit) {
        if let (Some(work), Some(file)) = (edit.work(), edit.file()) {
            by_work.entry(work).or_default().insert(file, edit);
        }
    }
    let mut pairs: BTreeMap<(&str, &str), Vec<&PastEpisode>> = BTreeMap::new();
    for files in by_work.values().filter(|files| (2..=WIDE).contains(&files.len())) {
        for (one, first) in files {
            for (other, second) in files.range::<str, _>((std::ops::Bound::Excluded(*one), std::ops::Bound::Unbounded))
            {
                pairs.entry((one, other)).or_default().extend([*first, *second]);
            }
        }
    }
    let often = pairs.into_iter().filter(|(_, edits)| edits.len() / 2 >= TOGETHER);
    often
        .map(|((one, other), edits)| EpisodePattern {
            shape: EpisodePatternKind::ChangeTogether,
            insight: format!("`{one}` and `{other}` change together: {} pieces of work changed both", edits.len() / 2),
            confidence: (0.5 + 0.1 * (edits.len() / 2) as f64).min(0.9),
            entities: vec![one.to_owned(), other.to_owned()],
            episodes: refs(edits),
            subject: format!("{one} {other}"),
            observed: vec![],
        })
        .collect()
}

fn words(text: &str) -> BTreeSet<String> {
    lukasa_search::tokens::list(text).into_iter().collect()
}

fn jaccard(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let shared = a.intersection(b).count();
    let all = a.len() + b.len() - shared;
    if all == 0 { 0.0 } else { shared as f64 / all as f64 }
}

/// Returns the beginning of a text, on one line.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(160) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn past(n: usize, kind: EpisodeKind, work: &str, content: &str, metadata: Value) -> PastEpisode {
        PastEpisode {
            reference: format!("Episode:episode:{n}"),
            kind,
            content: content.into(),
            session: Some(work.into()),
            metadata: metadata.as_object().cloned().unwrap_or_default(),
            ..PastEpisode::default()
        }
    }

    fn edit(n: usize, work: &str, file: &str) -> PastEpisode {
        past(n, EpisodeKind::Edit, work, "edited", json!({"file": file}))
    }

    fn tested(n: usize, passed: &[&str], failed: &[&str]) -> PastEpisode {
        let metadata =
            json!({"passed_tests": passed, "failed_tests": failed, "passed": passed.len(), "failed": failed.len()});
        past(n, EpisodeKind::TestResult, "s", "tests ran", metadata)
    }

    /// Shapes with subjects and confidences, the surest first.
    fn found(episodes: &[PastEpisode]) -> Vec<(EpisodePatternKind, String, f64)> {
        let round = |n: f64| (n * 100.0).round() / 100.0;
        find(episodes).into_iter().map(|p| (p.shape, p.subject, round(p.confidence))).collect()
    }

    #[test]
    fn three_edits_make_a_hotspot_and_two_do_not() {
        assert!(found(&[edit(1, "s", "a"), edit(2, "s", "a")]).is_empty());
        let three = [edit(1, "s", "a"), edit(2, "s", "b"), edit(3, "s", "a"), edit(4, "s", "a")];
        assert_eq!(found(&three), [(EpisodePatternKind::Hotspot, "a".into(), 0.7)]);
        let more: Vec<PastEpisode> = (0..20).map(|n| edit(n, "s", "a")).collect();
        assert_eq!(found(&more), [(EpisodePatternKind::Hotspot, "a".into(), 0.95)]);
        assert_eq!(find(&more)[0].id(), find(&three)[0].id(), "more of the same is the same learning");
    }

    #[test]
    fn decisions_with_a_failure_soon_after() {
        let decision = |entities: &[&str]| PastEpisode {
            title: Some("Cache tokens".into()),
            entities: entities.iter().map(|e| e.to_string()).collect(),
            ..past(1, EpisodeKind::Decision, "s", "cache", json!({}))
        };
        let error = |work: &str, entities: &[&str]| PastEpisode {
            entities: entities.iter().map(|e| e.to_string()).collect(),
            ..past(2, EpisodeKind::Error, work, "tokens were stale", json!({}))
        };
        let both = find(&[decision(&["auth"]), error("s", &["auth", "x"])]);
        assert_eq!((both[0].shape, both[0].confidence), (EpisodePatternKind::DecisionNearError, 0.75));
        assert_eq!(both[0].entities, ["auth"]);
        assert!(both[0].insight.contains("Cache tokens") && both[0].insight.contains("tokens were stale"));
        assert_eq!(find(&[decision(&["auth"]), error("s", &["mail"])])[0].confidence, 0.5, "not about the same");
        assert!(find(&[decision(&["auth"]), error("other", &["auth"])]).is_empty(), "other work");
        assert!(find(&[error("s", &["auth"]), decision(&["auth"])]).is_empty(), "it came before");
        let between: Vec<PastEpisode> = (0..NEAR)
            .map(|n| past(10 + n, EpisodeKind::Observation, "s", &format!("note {n} {n}{n}"), json!({})))
            .collect();
        let far: Vec<PastEpisode> = [vec![decision(&["auth"])], between, vec![error("s", &["auth"])]].concat();
        assert!(find(&far).is_empty(), "too long after");
    }

    #[test]
    fn observations_that_say_the_same() {
        let see = |n, content| past(n, EpisodeKind::Observation, "s", content, json!({}));
        let same = [
            see(1, "login calls refresh before reading the token"),
            see(2, "mail is sent by a queue"),
            see(3, "login calls refresh before reading the token."),
            see(4, "the login calls refresh before reading a token"),
        ];
        let patterns = find(&same);
        assert_eq!(patterns.len(), 1);
        assert_eq!((patterns[0].shape, patterns[0].episodes.len()), (EpisodePatternKind::RepeatedObservation, 3));
        assert!(find(&same[..3]).is_empty(), "twice is no pattern");
    }

    /// An observation about a symbol.
    fn seen_of(n: usize, symbol: &str, content: &str) -> PastEpisode {
        PastEpisode { entities: vec![symbol.into()], ..past(n, EpisodeKind::Observation, "s", content, json!({})) }
    }

    #[test]
    fn two_observations_of_one_symbol_are_two_patterns() {
        let retry = |n| seen_of(n, "login", "login retries without a limit");
        let token = |n| seen_of(n, "login", "the token is read before it is refreshed");
        let both = find(&[retry(1), token(2), retry(3), token(4), token(5), retry(6)]);
        assert_eq!(both.len(), 2);
        assert_ne!(both[0].id(), both[1].id());
        // The same words about something else are another pattern as well.
        let other = |n| seen_of(n, "logout", "login retries without a limit");
        let apart = find(&[retry(1), retry(2), retry(3), other(4), other(5), other(6)]);
        assert_eq!(apart.iter().map(|p| p.entities.join(" ")).collect::<BTreeSet<_>>().len(), 2, "{apart:?}");
    }

    #[test]
    fn a_repeated_observation_is_known_by_its_words_wherever_it_begins() {
        let retry = |n, words: &str| seen_of(n, "login", words);
        let all = [
            retry(1, "login retries without a limit"),
            retry(2, "login retries without a limit today"),
            retry(3, "login retries without a limit"),
            retry(4, "login retries without a limit, always"),
        ];
        let whole = find(&all)[0].clone();
        let learned = RecordedLearning {
            id: whole.id(),
            shape: whole.shape.name().into(),
            content: whole.insight.clone(),
            confidence: Some(whole.confidence),
            entities: whole.entities.clone(),
            episodes: whole.episodes.iter().cloned().collect(),
        };
        let later = find(&all[1..])[0].clone();
        assert_ne!(later.id(), whole.id(), "the first one is out of sight");
        assert!(later.likeness(&learned).is_some());
        assert_eq!(later.with(&learned.episodes).insight, whole.insight, "and counts all the same");
        let token = |n| seen_of(n, "login", "the token is read before it is refreshed");
        assert_eq!(find(&[token(1), token(2), token(3)])[0].likeness(&learned), None);
        let elsewhere = RecordedLearning { entities: vec!["logout".into()], id: "x".into(), ..learned };
        assert_eq!(whole.likeness(&elsewhere), None);
    }

    #[test]
    fn tests_that_pass_and_fail() {
        assert_eq!(
            found(&[tested(1, &["a", "b"], &[]), tested(2, &["b"], &["a"])]),
            [(EpisodePatternKind::FlakyTest, "a".into(), 0.85)]
        );
        let edited = [tested(1, &[], &["a"]), edit(2, "s", "x"), tested(3, &["a"], &[])];
        assert_eq!(found(&edited), [(EpisodePatternKind::FlakyTest, "a".into(), 0.4)], "an edit explains it");
        assert!(found(&[tested(1, &["a"], &[]), tested(2, &["a"], &[])]).is_empty());
        let by_file = |n, failed| {
            past(n, EpisodeKind::TestResult, "s", "ran", json!({"test_files": ["t.py"], "passed": 1, "failed": failed}))
        };
        assert_eq!(found(&[by_file(1, 0), by_file(2, 1)]), [(EpisodePatternKind::FlakyTest, "t.py".into(), 0.7)]);
    }

    #[test]
    fn files_that_change_together() {
        let twice =
            [edit(1, "s1", "a"), edit(2, "s1", "b"), edit(3, "s2", "b"), edit(4, "s2", "a"), edit(5, "s3", "c")];
        assert_eq!(found(&twice), [(EpisodePatternKind::ChangeTogether, "a b".into(), 0.7)]);
        assert!(found(&twice[..3]).is_empty(), "once is chance");
        let wide: Vec<PastEpisode> =
            ["s1", "s2"].iter().flat_map(|work| (0..20).map(|n| edit(n, work, &format!("f{n:02}")))).collect();
        assert!(found(&wide).is_empty(), "a change of everything is no pattern");
    }
}
