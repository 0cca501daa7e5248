//! Parses the output of test programs: numbers and names of tests that passed and failed.

use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Maximum number of names in each list.
const NAMES: usize = 1_000;

/// Parsed results; numbers only if the output contains them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestResults {
    pub passed: Option<u64>,
    pub failed: Option<u64>,
    pub passed_tests: Vec<String>,
    pub failed_tests: Vec<String>,
}

impl TestResults {
    /// Whether the output contained the number of passed or of failed tests.
    pub fn are_known(&self) -> bool {
        self.passed.is_some() || self.failed.is_some()
    }
}

/// A line with the result of one test: the pattern, the group of the name, and whether it passed.
struct ResultLine(Regex, bool);

/// A summary line: the pattern with groups `passed` and `failed`, either of which may be missing.
static TOTALS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // cargo test, once for each program.
        r"^test result: \S+ (?P<passed>\d+) passed; (?P<failed>\d+) failed",
        // nextest.
        r"^\s*Summary \[.*\] \d+(?:/\d+)? tests? run: (?P<passed>\d+) passed(?:.*?, (?P<failed>\d+) failed)?",
        // jest and vitest.
        r"^\s*Tests:?\s+(?:(?P<failed>\d+) failed[,|\s]*)?(?:\d+ (?:skipped|todo)[,|\s]*)*(?:(?P<passed>\d+) passed)?",
        // pytest: errors during setup or collection count as failures.
        r"^(?:=+ )?(?:(?P<failed>\d+) failed(?:, )?)?(?:(?P<passed>\d+) passed)?(?:.*?\b(?P<errors>\d+) errors?\b)?.* in [\d.:]+ ?s",
        // mocha.
        r"^\s*(?P<passed>\d+) passing\b",
        r"^\s*(?P<failed>\d+) failing\b",
        // node --test, in TAP and in words.
        r"^(?:#|ℹ) pass (?P<passed>\d+)",
        r"^(?:#|ℹ) fail (?P<failed>\d+)",
    ]
    .iter()
    .map(|pattern| rule(pattern))
    .collect()
});

static LINES: LazyLock<Vec<ResultLine>> = LazyLock::new(|| {
    [
        (r"^test (\S+)(?: - .*)? \.\.\. ok", true),
        (r"^test (\S+)(?: - .*)? \.\.\. FAILED", false),
        (r"^\s+PASS \[.*?\](?: \(.*?\))? \S+ (\S+)", true),
        (r"^\s+(?:FAIL|TIMEOUT|SIGABRT|SIGSEGV) \[.*?\](?: \(.*?\))? \S+ (\S+)", false),
        // Excludes the totals of unittest and trial, which are in parentheses.
        (r"^PASSED ([^(\s]\S*)", true),
        (r"^FAILED ([^(\s]\S*)", false),
        (r"^(\S+::\S+) PASSED", true),
        (r"^(\S+::\S+) FAILED", false),
        (r"^\s*--- PASS: (\S+)", true),
        (r"^\s*--- FAIL: (\S+)", false),
    ]
    .iter()
    .map(|(pattern, passed)| ResultLine(rule(pattern), *passed))
    .collect()
});

/// Parses the output of a run.
pub fn read(output: &str) -> TestResults {
    let (mut passed, mut failed) = (BTreeSet::new(), BTreeSet::new());
    let mut sums: (Option<u64>, Option<u64>) = (None, None);
    let add = |sum: &mut Option<u64>, more: Option<u64>| {
        if let Some(more) = more {
            *sum = Some(sum.unwrap_or(0) + more);
        }
    };
    let mut unittest = Unittest::default();
    for line in output.lines() {
        let plain = without_colours(line);
        // Several programs print a summary each.
        if let Some((ok, not)) = unittest.line(&plain, &mut passed, &mut failed) {
            add(&mut sums.0, Some(ok));
            add(&mut sums.1, Some(not));
            continue;
        }
        for ResultLine(pattern, is_pass) in LINES.iter() {
            if let Some(found) = pattern.captures(&plain) {
                let into = if *is_pass { &mut passed } else { &mut failed };
                into.insert(found[1].to_owned());
            }
        }
        for pattern in TOTALS.iter() {
            let Some(found) = pattern.captures(&plain) else { continue };
            let number = |name: &str| found.name(name).and_then(|text| text.as_str().parse::<u64>().ok());
            let (ok, not, errors) = (number("passed"), number("failed"), number("errors"));
            if ok.is_none() && not.is_none() && errors.is_none() {
                continue;
            }
            add(&mut sums.0, ok);
            add(&mut sums.1, not);
            add(&mut sums.1, errors);
            break;
        }
    }
    // A test that failed and then passed when retried is in both lists.
    let names = |set: BTreeSet<String>| set.into_iter().take(NAMES).collect::<Vec<_>>();
    let (by_name, any) = ((passed.len() as u64, failed.len() as u64), !passed.is_empty() || !failed.is_empty());
    let known = sums.0.is_some() || sums.1.is_some();
    TestResults {
        passed: if known { Some(sums.0.unwrap_or(0)) } else { any.then_some(by_name.0) },
        failed: if known { Some(sums.1.unwrap_or(0)) } else { any.then_some(by_name.1) },
        passed_tests: names(passed),
        failed_tests: names(failed),
    }
}

/// The state of parsing a run of Python's unittest, or of programs with the same output: a heading for each failure, the number
/// of tests, and the totals.
#[derive(Default)]
struct Unittest {
    /// Failures since the last totals, by heading, and the number of headings.
    headed: BTreeSet<String>,
    headings: u64,
    /// The number of tests that ran, until the totals are read.
    ran: Option<u64>,
}

impl Unittest {
    /// Returns how many passed and failed, at the line with the totals. Adds names to the lists.
    fn line(&mut self, line: &str, passed: &mut BTreeSet<String>, failed: &mut BTreeSet<String>) -> Option<(u64, u64)> {
        static HEADING: LazyLock<Regex> =
            LazyLock::new(|| rule(r"^(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\S+) \(([^)]+)\)"));
        static WENT: LazyLock<Regex> = LazyLock::new(|| rule(r"^(\S+) \(([^)]+)\) \.\.\. ok$"));
        static RAN: LazyLock<Regex> = LazyLock::new(|| rule(r"^Ran (\d+) tests? in [\d.]+s$"));
        static TOTALS: LazyLock<Regex> = LazyLock::new(|| rule(r"^(?:OK|PASSED|FAILED|NO TESTS RAN)(?: \((.+)\))?$"));
        if let Some(found) = HEADING.captures(line) {
            let name = full_name(&found[1], &found[2]);
            failed.insert(name.clone());
            self.headed.insert(name);
            self.headings += 1;
        } else if let Some(found) = WENT.captures(line) {
            passed.insert(full_name(&found[1], &found[2]));
        } else if let Some(found) = RAN.captures(line) {
            self.ran = found[1].parse().ok();
        } else if let Some(found) = TOTALS.captures(line)
            && let Some(ran) = self.ran.take()
        {
            let Unittest { headed, headings, .. } = std::mem::take(self);
            return went(ran, found.get(1).map_or("", |totals| totals.as_str()), &headed, headings);
        }
        None
    }
}

/// Computes passed and failed of this many tests; `None` if the numbers contradict each other.
fn went(ran: u64, totals: &str, headed: &BTreeSet<String>, headings: u64) -> Option<(u64, u64)> {
    let total = |name: &str| {
        let parts = totals.split(", ").filter_map(|part| part.split_once('='));
        parts.filter(|(n, _)| *n == name).find_map(|(_, number)| number.parse::<u64>().ok()).unwrap_or(0)
    };
    let reported = total("failures") + total("errors") + total("unexpected successes");
    // Subtests fail separately but are one test; before Python 3.12 unexpected successes had no heading.
    let silent = reported.checked_sub(headings).filter(|silent| *silent <= total("unexpected successes"));
    let fixtures = headed.iter().filter(|name| is_fixture(name)).count() as u64;
    let failed = silent.map_or(reported, |silent| headed.len() as u64 + silent);
    // A fixture that failed is no test that ran.
    let not_passed = failed.saturating_sub(fixtures) + total("skipped") + total("expected failures");
    Some((ran.checked_sub(not_passed)?, failed))
}

/// Fixtures that run before and after all tests of a class or module.
fn is_fixture(name: &str) -> bool {
    ["setUpClass", "tearDownClass", "setUpModule", "tearDownModule"].iter().any(|fixture| name.ends_with(fixture))
}

/// Returns `module.Class.test`: Python prints it in full since 3.11, and without the test before.
fn full_name(test: &str, within: &str) -> String {
    let last = within.rsplit('.').next().unwrap_or(within);
    if last == test { within.to_owned() } else { format!("{within}.{test}") }
}

fn rule(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the rule is written here")
}

fn without_colours(line: &str) -> std::borrow::Cow<'_, str> {
    static COLOURS: LazyLock<Regex> = LazyLock::new(|| rule("\u{1b}\\[[0-9;]*m"));
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
            ("===== 2 passed, 1 warning, 1 error in 1.20s =====", Some(2), Some(1), vec![], vec![]),
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

    #[test]
    fn outputs_of_unittest() {
        let rule = "-".repeat(70);
        let failed = "EF.s\n======\nERROR: test_err (t.A.test_err)\n------\nTraceback\nValueError: y\n\n======\n\
                      FAIL: test_fail (t.A)\n------\nTraceback\nAssertionError: x\n\n";
        let parts = "======\nFAIL: test_sub (t.A.test_sub) (i=0)\n------\n======\nFAIL: test_sub (t.A.test_sub) (i=2)\n------\n";
        let class = "E..\n======\nERROR: setUpClass (t.B)\n------\n";
        for (output, passed, failed, names) in [
            (format!(".....\n{rule}\nRan 5 tests in 0.003s\n\nOK\n"), Some(5), Some(0), vec![]),
            (format!("{rule}\nRan 5 tests in 0.003s\n\nOK (skipped=1)\n"), Some(4), Some(0), vec![]),
            (format!("{rule}\nRan 5 tests in 0.1s\n\nOK (skipped=1, expected failures=2)"), Some(2), Some(0), vec![]),
            (
                format!("{failed}{rule}\nRan 4 tests in 0.003s\n\nFAILED (failures=1, errors=1, skipped=1)\n"),
                Some(1),
                Some(2),
                vec!["t.A.test_err", "t.A.test_fail"],
            ),
            // Nothing but the totals, as where the rest was cut off.
            (format!("{rule}\nRan 9 tests in 1s\n\nFAILED (failures=1, errors=2)"), Some(6), Some(3), vec![]),
            (
                format!("{parts}{rule}\nRan 3 tests in 0.001s\n\nFAILED (failures=2, unexpected successes=1)"),
                Some(1),
                Some(2),
                vec!["t.A.test_sub"],
            ),
            (
                format!("{class}{rule}\nRan 2 tests in 0s\n\nFAILED (errors=1)"),
                Some(2),
                Some(1),
                vec!["t.B.setUpClass"],
            ),
            (
                format!("{rule}\nRan 1 test in 0.000s\n\nOK\n{rule}\nRan 2 tests in 0.1s\n\nOK"),
                Some(3),
                Some(0),
                vec![],
            ),
            (format!("{rule}\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n"), Some(0), Some(0), vec![]),
            // Contradicting numbers and killed runs have no counts.
            (format!("{rule}\nRan 1 test in 0.000s\n\nOK (skipped=3)\n"), None, None, vec![]),
            (format!("{rule}\nRan 3 tests in 0.1s\n"), None, None, vec![]),
            ("OK\nFAILED (failures=1)\n".into(), None, None, vec![]),
        ] {
            let found = read(&output);
            assert_eq!((found.passed, found.failed), (passed, failed), "{output}");
            assert_eq!(found.failed_tests, names, "{output}");
        }
        let results = read("test_a (t.A.test_a) ... ok\ntest_b (t.A) ... ok\ntest_c (t.A.test_c) ... FAIL\n");
        assert_eq!(results.passed_tests, ["t.A.test_a", "t.A.test_b"]);
    }
}
