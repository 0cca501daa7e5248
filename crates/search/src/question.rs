//! Extracts the weighted words of a query or of a whole issue.

use crate::recipes::{WORDS, WordsRecipe};
use crate::text::Term;
use crate::tokens::{folded, is_common, parts, prose, tokens, words};
use rustc_hash::FxHashMap;

/// Trailer lines of commit messages and pull requests, which name people and not content.
const TRAILERS: [&str; 10] = [
    "co-authored-by:",
    "signed-off-by:",
    "reviewed-by:",
    "pr-url:",
    "change-id:",
    "acked-by:",
    "cc:",
    "tested-by:",
    "reported-by:",
    "piperorigin-revid:",
];
/// Kinds of changes, which may precede a title where a component could be named.
const KINDS: [&str; 21] = [
    "fix", "feat", "feature", "chore", "docs", "doc", "style", "refactor", "perf", "test", "tests", "build", "ci",
    "revert", "types", "dx", "workflow", "release", "wip", "bug", "bugfix",
];
/// Longest prefix of a title, in bytes, that can name a component.
const LONGEST_SCOPE: usize = 40;

/// A task as people write it: a title, text, code, names in backticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskText {
    /// The first line that is not empty.
    pub title: String,
    /// All further text outside of blocks.
    pub rest: String,
    /// Blocks of code and output.
    pub fenced: String,
    /// Names in backticks.
    pub ticked: String,
    /// The component that the title begins with: `fix(parser): …`, `[parser] …`, `parser: …`.
    pub scope: String,
}

impl TaskText {
    /// Splits the text of a task or issue into its parts, without HTML comments, URLs, issue numbers and trailer lines.
    pub fn read(text: &str) -> TaskText {
        let text = without_comments(text);
        let mut task = TaskText::default();
        let mut in_fence = false;
        for line in text.lines() {
            let trimmed = line.trim();
            if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
                in_fence = !in_fence;
                continue;
            }
            if in_fence {
                task.fenced.push_str(&without_links(line));
                task.fenced.push('\n');
                continue;
            }
            let lower = trimmed.to_lowercase();
            if TRAILERS.iter().any(|trailer| lower.starts_with(trailer)) {
                continue;
            }
            let line = without_links(line);
            if task.title.is_empty() {
                task.title = line.trim().to_owned();
            } else {
                task.rest.push_str(&line);
                task.rest.push('\n');
            }
        }
        for zone in [&task.title, &task.rest] {
            for ticked in zone.split('`').skip(1).step_by(2) {
                task.ticked.push_str(ticked);
                task.ticked.push('\n');
            }
        }
        task.scope = scope(&task.title).unwrap_or_default().to_owned();
        task
    }

    /// Returns the words of the task. Those of the title have the highest weight, those of text and code a quarter of
    /// it; repetitions add less and less.
    pub fn terms(&self) -> Vec<Term> {
        let mut counts: FxHashMap<String, f32> = FxHashMap::default();
        let WordsRecipe { title, text, scope, fenced, ticked, limit, half, .. } = WORDS;
        let zones = [
            (&self.title, title),
            (&self.rest, text),
            (&self.scope, scope),
            (&self.fenced, fenced),
            (&self.ticked, ticked),
        ];
        for (zone, weight) in zones {
            tokens(zone, |word| *counts.entry(word.to_owned()).or_default() += weight);
        }
        let has_rare = counts.keys().any(|word| !is_common(word));
        let kept = counts.into_iter().filter(|(word, _)| !has_rare || !is_common(word));
        let weighed = kept.map(|(word, n)| Term { word, weight: n * limit / (n + half) });
        heaviest(weighed.collect())
    }
}

impl TaskText {
    /// Returns the identifiers that a task mentions, case-folded and sorted, each once, and whether the title contains
    /// it. A word counts as an identifier if it has several parts, is in code or backticks, or occurs as a call or
    /// after a dot.
    pub fn names(&self) -> Vec<(String, bool)> {
        let mut found: FxHashMap<String, bool> = FxHashMap::default();
        let zones = [
            (&self.title, true, false),
            (&self.rest, false, false),
            (&self.fenced, false, true),
            (&self.ticked, false, true),
        ];
        for (zone, in_title, is_code) in zones {
            for word in words(zone) {
                let at = word.as_ptr() as usize - zone.as_ptr() as usize;
                let called = zone[at + word.len()..].starts_with('(');
                let of = zone[..at].ends_with('.');
                let plain = folded(word.trim_matches(['_', '$']));
                let looks_so = is_code || called || of || parts(word).count() > 1;
                if looks_so && plain.chars().count() > 2 && !plain.starts_with(|c: char| c.is_numeric()) {
                    let title = found.entry(plain).or_default();
                    *title |= in_title;
                }
            }
        }
        let mut all: Vec<_> = found.into_iter().collect();
        all.sort();
        all
    }
}

/// A name of several parts in a task, such as `DateUtils.truncate`, `Context::JSON` or `net/url.py`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QualifiedName {
    /// As it is written, without the `()` of a call.
    pub text: String,
    /// Whether it is a path or the name of a file: its last part is an ending.
    pub is_path: bool,
}

/// Most names of several parts that are looked up; the first ones are kept.
const MOST_QUALIFIED: usize = 64;
/// Longest ending of a file name, in bytes.
const LONGEST_ENDING: usize = 5;

impl TaskText {
    /// Returns the names that the title writes as code: called, after a dot, or in backticks; case-folded, each once.
    pub fn called(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (place, zone) in self.title.split('`').enumerate() {
            for word in words(zone) {
                let at = word.as_ptr() as usize - zone.as_ptr() as usize;
                let is_code = place % 2 == 1 && self.title.matches('`').count() > place;
                let is_member = zone[..at].ends_with('.') && !zone[..at].ends_with("..");
                if is_code || is_member || zone[at + word.len()..].starts_with('(') {
                    all.push(folded(word.trim_matches(['_', '$'])));
                }
            }
        }
        all.sort();
        all.dedup();
        all
    }

    /// Returns the names of several parts that a task mentions, each once, in order.
    pub fn qualified(&self) -> Vec<QualifiedName> {
        let mut all: Vec<QualifiedName> = Vec::new();
        for zone in [&self.title, &self.ticked, &self.rest, &self.fenced] {
            for text in zone.split(|c: char| !(c.is_alphanumeric() || "_$.:#/\\-".contains(c))) {
                let text = text.trim_matches(['.', ':', '#', '/', '\\', '-']);
                let parts: Vec<&str> = text.split(['.', ':', '#', '/', '\\']).filter(|part| !part.is_empty()).collect();
                let [.., before, last] = &parts[..] else { continue };
                let is_name = |part: &str| part.chars().any(char::is_alphabetic);
                if !is_name(before) || !last.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$') {
                    continue;
                }
                let is_path = text.contains('.')
                    && last.len() <= LONGEST_ENDING
                    && (text.contains(['/', '\\']) || is_ending(last));
                let name = QualifiedName { text: text.to_owned(), is_path };
                if !all.contains(&name) {
                    all.push(name);
                }
            }
        }
        all.truncate(MOST_QUALIFIED);
        all
    }
}

/// Whether a word is a usual ending of source files, and no usual name of a method.
fn is_ending(word: &str) -> bool {
    const ENDINGS: [&str; 27] = [
        "py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "tsx", "vue", "go", "rs", "java", "kt", "kts", "swift", "scala",
        "c", "h", "cc", "cpp", "hpp", "cs", "rb", "php", "md", "rst", "toml",
    ];
    ENDINGS.contains(&word)
}

/// Maps each searched form of a word to the word as written in the query.
pub fn written_forms(question: &str) -> FxHashMap<String, String> {
    let mut all = FxHashMap::default();
    for word in words(question) {
        let each = |form: &str| {
            all.entry(form.to_owned()).or_insert_with(|| word.to_owned());
        };
        tokens(word, each);
        prose(word, |form: &str| {
            all.entry(form.to_owned()).or_insert_with(|| word.to_owned());
        });
    }
    all
}

/// Returns the words of a plain query, each once, without common words unless there are no others.
pub fn terms(question: &str) -> Vec<Term> {
    let mut counts: FxHashMap<String, u32> = FxHashMap::default();
    tokens(question, |word| *counts.entry(word.to_owned()).or_default() += 1);
    let has_rare = counts.keys().any(|word| !is_common(word));
    let kept = counts.into_iter().filter(|(word, _)| !has_rare || !is_common(word));
    heaviest(kept.map(|(word, n)| Term { word, weight: (n as f32).min(WORDS.most_repeats) }).collect())
}

/// Returns the words of a query for prose; repetitions add to the weight.
pub fn prose_terms(question: &str) -> Vec<Term> {
    let mut counts: FxHashMap<String, f32> = FxHashMap::default();
    prose(question, |word| *counts.entry(word.to_owned()).or_default() += 1.0);
    heaviest(counts.into_iter().map(|(word, weight)| Term { word, weight }).collect())
}

/// Sorts terms by word, so that sums are reproducible; keeps those with the highest weight if there are too many.
fn heaviest(mut terms: Vec<Term>) -> Vec<Term> {
    if terms.len() > WORDS.most {
        terms.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.word.cmp(&b.word)));
        terms.truncate(WORDS.most);
    }
    terms.sort_by(|a, b| a.word.cmp(&b.word));
    terms
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        kept.push_str(before);
        match after.split_once("-->") {
            Some((_, after)) => rest = after,
            // Without a closing mark it is not a comment.
            None => return kept + &rest[before.len()..],
        }
    }
    kept + rest
}

/// Removes URLs and issue numbers from a line.
fn without_links(line: &str) -> String {
    if !line.contains("://") && !line.contains('#') {
        return line.to_owned();
    }
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("http").filter(|at| rest[*at..].contains("://")) {
        let is_link = rest[at..].starts_with("http://") || rest[at..].starts_with("https://");
        let end = match is_link {
            true => {
                rest[at..].find(|c: char| c.is_whitespace() || ")>]\"'`".contains(c)).map_or(rest.len(), |e| at + e)
            }
            false => at + 4,
        };
        kept.push_str(if is_link { &rest[..at] } else { &rest[..end] });
        rest = &rest[end..];
    }
    kept.push_str(rest);
    let mut without = String::with_capacity(kept.len());
    let mut chars = kept.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '#' && chars.peek().is_some_and(char::is_ascii_digit) {
            while chars.next_if(char::is_ascii_digit).is_some() {}
        } else {
            without.push(c);
        }
    }
    without
}

fn scope(title: &str) -> Option<&str> {
    let found = if let Some(rest) = title.strip_prefix('[') {
        rest.split_once(']')?.0
    } else {
        let before = title.split_once(": ").or_else(|| title.split_once(':').filter(|(_, after)| after.is_empty()))?.0;
        if before.len() > LONGEST_SCOPE {
            return None;
        }
        match before.split_once('(') {
            Some((_, inner)) => inner.split_once(')')?.0,
            None => before,
        }
    };
    let found = found.trim();
    let fits = found.len() <= LONGEST_SCOPE && !KINDS.contains(&found.to_lowercase().trim_end_matches('!'));
    (fits && !found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_split_into_its_parts() {
        let task = TaskText::read(
            "fix(parser): empty `LIST` crashes (#12)\n\nSee https://example.org/x?y=1#z for `parse_list`.\n<!-- template\nasks -->\n```\nTraceback: boom\n```\nSigned-off-by: A <a@b.c>\n",
        );
        assert_eq!(task.title, "fix(parser): empty `LIST` crashes ()");
        assert_eq!(task.scope, "parser");
        assert_eq!(task.ticked, "LIST\nparse_list\n");
        assert_eq!(task.fenced, "Traceback: boom\n");
        assert!(!task.rest.contains("example") && !task.rest.contains("template") && !task.rest.contains("Signed"));
        let weight = |word: &str| task.terms().into_iter().find(|t| t.word == word).map(|t| t.weight);
        // parser: in the title, and again as the scope.
        assert_eq!(weight("parser"), Some(3.0 * 3.0 / 5.0));
        assert_eq!(weight("boom"), Some(0.5 * 3.0 / 2.5));
        assert_eq!(weight("for"), None, "a common word");
        assert_eq!(weight("12"), None);
    }

    #[test]
    fn identifiers_of_a_task_are_returned() {
        let task = TaskText::read(
            "Crash in parse_list\n\nCalling load(x) or self.close with `Reader` fails.\n```\nboom y\n```\n",
        );
        let names = task.names();
        let names: Vec<_> = names.iter().map(|(name, title)| (name.as_str(), *title)).collect();
        assert_eq!(
            names,
            [("boom", false), ("close", false), ("load", false), ("parse_list", true), ("reader", false)]
        );
    }

    #[test]
    fn names_of_several_parts_are_returned() {
        let task = TaskText::read(
            "DateUtils.truncate and `Context::JSON` differ from c.json()\nSee net/url.py, url.py and\n```\nFile \"/lib/a/net/url.py\", line 3\n```\n1.2 e.g. this.",
        );
        let found = task.qualified();
        let found: Vec<_> = found.iter().map(|name| (name.text.as_str(), name.is_path)).collect();
        let expected = [
            ("DateUtils.truncate", false),
            ("Context::JSON", false),
            ("c.json", false),
            ("net/url.py", true),
            ("url.py", true),
            ("e.g", false),
            ("lib/a/net/url.py", true),
        ];
        assert_eq!(found, expected);
        assert_eq!(task.called(), ["context", "json", "truncate"]);
        assert!(TaskText::read("A title. With two sentences").called().is_empty());
    }

    #[test]
    fn a_scope_is_a_component_and_not_a_kind_of_change() {
        for (title, expected) in [
            ("compiler-core: keep keys", Some("compiler-core")),
            ("[ruff] Enable rules", Some("ruff")),
            ("feat: new thing", None),
            ("fix!: new thing", None),
            ("feat(core)!: new thing", Some("core")),
            ("A sentence that is long and goes on until here: yes", None),
            ("no scope", None),
            ("", None),
        ] {
            assert_eq!(scope(title), expected, "{title}");
        }
    }

    #[test]
    fn questions_keep_their_rare_words() {
        let words = |q: &str| terms(q).into_iter().map(|t| t.word).collect::<Vec<_>>();
        assert_eq!(words("Where is the cache cleared?"), ["cach", "clear"].map(String::from));
        assert_eq!(words("what is it"), ["is", "it", "what"].map(String::from));
        assert!(terms("").is_empty());
        let long: String = (0..2_000).map(|n| format!("w{n}x ")).collect();
        assert_eq!(terms(&long).len(), WORDS.most);
    }

    #[test]
    fn malformed_texts_are_read() {
        for text in ["<!-- never closed", "```\nnever closed", "httphttp:// x://", "[", "a(b: c", "#", "`", "é: ü"] {
            let task = TaskText::read(text);
            task.terms();
        }
    }
}
