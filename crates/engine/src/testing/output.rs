//! What the output of a test program says: how many passed and failed, and which.

use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Names kept of each list.
const NAMES: usize = 1_000;

/// What was found; counts only where the output tells them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    pub passed: Option<u64>,
    pub failed: Option<u64>,
    pub passed_tests: Vec<String>,
    pub failed_tests: Vec<String>,
}

impl Results {
    pub fn are_known(&self) -> bool {
        self.passed.is_some() || self.failed.is_some()
    }
}

/// A line that tells how one test went: the pattern, where its name is, and whether it passed.
struct Line(Regex, bool);

/// A line that sums up: the pattern with groups `passed` and `failed`, either of which may be missing.
static TOTALS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // cargo test, once for each program.
        r"^test result: \S+ (?P<passed>\d+) passed; (?P<failed>\d+) failed",
        // nextest.
        r"^\s*Summary \[.*\] \d+(?:/\d+)? tests? run: (?P<passed>\d+) passed(?:.*?, (?P<failed>\d+) failed)?",
        // jest and vitest.
        r"^\s*Tests:?\s+(?:(?P<failed>\d+) failed[,|\s]*)?(?:\d+ (?:skipped|todo)[,|\s]*)*(?:(?P<passed>\d+) passed)?",
        // pytest, whichever order it tells them in.
        r"^(?:=+ )?(?:(?P<failed>\d+) failed(?:, )?)?(?:(?P<passed>\d+) passed)?.* in [\d.:]+ ?s",
        // mocha.
        r"^\s*(?P<passed>\d+) passing\b",
        r"^\s*(?P<failed>\d+) failing\b",
        // node --test, in TAP and in words.
        r"^(?:#|ℹ) pass (?P<passed>\d+)",
        r"^(?:#|ℹ) fail (?P<failed>\d+)",
    ]
    .iter()
    .map(|pattern| Regex::new(pattern).expect("the rule is written here"))
    .collect()
});

static LINES: LazyLock<Vec<Line>> = LazyLock::new(|| {
    [
        (r"^test (\S+)(?: - .*)? \.\.\. ok", true),
        (r"^test (\S+)(?: - .*)? \.\.\. FAILED", false),
        (r"^\s+PASS \[.*?\](?: \(.*?\))? \S+ (\S+)", true),
        (r"^\s+(?:FAIL|TIMEOUT|SIGABRT|SIGSEGV) \[.*?\](?: \(.*?\))? \S+ (\S+)", false),
        (r"^PASSED (\S+)", true),
        (r"^FAILED (\S+)", false),
        (r"^(\S+::\S+) PASSED", true),
        (r"^(\S+::\S+) FAILED", false),
        (r"^\s*--- PASS: (\S+)", true),
        (r"^\s*--- FAIL: (\S+)", false),
    ]
    .iter()
    .map(|(pattern, passed)| Line(Regex::new(pattern).expect("the rule is written here"), *passed))
    .collect()
});

/// Reads what was printed.
pub fn read(output: &str) -> Results {
    let (mut passed, mut failed) = (BTreeSet::new(), BTreeSet::new());
    let mut sums: (Option<u64>, Option<u64>) = (None, None);
    for line in output.lines() {
        let plain = without_colours(line);
        for Line(pattern, is_pass) in LINES.iter() {
            if let Some(found) = pattern.captures(&plain) {
                let into = if *is_pass { &mut passed } else { &mut failed };
                into.insert(found[1].to_owned());
            }
        }
        for pattern in TOTALS.iter() {
            let Some(found) = pattern.captures(&plain) else { continue };
            let number = |name: &str| found.name(name).and_then(|text| text.as_str().parse::<u64>().ok());
            let (ok, not) = (number("passed"), number("failed"));
            if ok.is_none() && not.is_none() {
                continue;
            }
            // Several programs each sum up for themselves.
            let add = |sum: &mut Option<u64>, more: Option<u64>| {
                if let Some(more) = more {
                    *sum = Some(sum.unwrap_or(0) + more);
                }
            };
            add(&mut sums.0, ok);
            add(&mut sums.1, not);
            break;
        }
    }
    // What failed and then passed when tried again is told as both.
    let names = |set: BTreeSet<String>| set.into_iter().take(NAMES).collect::<Vec<_>>();
    let (by_name, any) = ((passed.len() as u64, failed.len() as u64), !passed.is_empty() || !failed.is_empty());
    let known = sums.0.is_some() || sums.1.is_some();
    Results {
        passed: if known { Some(sums.0.unwrap_or(0)) } else { any.then_some(by_name.0) },
        failed: if known { Some(sums.1.unwrap_or(0)) } else { any.then_some(by_name.1) },
        passed_tests: names(passed),
        failed_tests: names(failed),
    }
}

fn without_colours(line: &str) -> std::borrow::Cow<'_, str> {
    static COLOURS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("\u{1b}\\[[0-9;]*m").expect("the rule is written here"));
    COLOURS.replace_all(line, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_the_usual_programs() {
        for (output, passed, failed, ok, not) in [
            (
                "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n\
                 test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured",
                Some(5),
                Some(1),
                vec!["a::b"],
                vec!["a::c"],
            ),
            (
                "        PASS [   0.013s] ( 1/2) my-crate facts::same\n        FAIL [   0.1s] (2/2) my-crate::it facts::other\n\
                 ────\n     Summary [   0.332s] 2 tests run: 1 passed, 1 failed, 248 skipped",
                Some(1),
                Some(1),
                vec!["facts::same"],
                vec!["facts::other"],
            ),
            ("     Summary [   0.3s] 7 tests run: 7 passed, 0 skipped", Some(7), Some(0), vec![], vec![]),
            (
                "PASSED t/a.py::test_x\nFAILED t/a.py::test_y - assert 1 == 2\n1 failed, 1 passed in 0.12s",
                Some(1),
                Some(1),
                vec!["t/a.py::test_x"],
                vec!["t/a.py::test_y"],
            ),
            ("===== 3 passed, 1 warning in 1.20s =====", Some(3), Some(0), vec![], vec![]),
            ("Tests:       1 failed, 3 passed, 4 total", Some(3), Some(1), vec![], vec![]),
            ("  12 passing (30ms)\n  2 failing", Some(12), Some(2), vec![], vec![]),
            ("# tests 3\n# pass 2\n# fail 1", Some(2), Some(1), vec![], vec![]),
            (
                "--- PASS: TestA (0.00s)\n\u{1b}[31m--- FAIL: TestB (0.00s)\u{1b}[0m\nFAIL",
                Some(1),
                Some(1),
                vec!["TestA"],
                vec!["TestB"],
            ),
            ("all fine\nbuilt in 3.2s\n", None, None, vec![], vec![]),
        ] {
            let found = read(output);
            assert_eq!((found.passed, found.failed), (passed, failed), "{output}");
            assert_eq!(
                (found.passed_tests, found.failed_tests),
                (ok.iter().map(|s| s.to_string()).collect(), not.iter().map(|s| s.to_string()).collect()),
                "{output}"
            );
        }
    }
}
