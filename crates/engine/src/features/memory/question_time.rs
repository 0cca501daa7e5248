//! Times in a question, such as "last week" or "before the release", as periods of valid time.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};
use lukasa_model::Time;
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// The time that a question names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionTime {
    /// The words of the question that name it.
    pub phrase: String,
    /// The first moment of the period; `None` if it has no beginning.
    pub from: Option<Time>,
    /// The end of the period, exclusive; `None` if it has no end.
    pub to: Option<Time>,
    /// The question names a date or a month, which may also be mentioned later: what happened in March may be recorded in
    /// April. "Last week" and "since March" refer to the time of recording only.
    pub of_event: bool,
}

impl QuestionTime {
    /// Whether a time is within the period.
    pub fn holds(&self, at: Time) -> bool {
        self.from.is_none_or(|from| at >= from) && self.to.is_none_or(|to| at < to)
    }
}

/// A release that questions may name, and its time.
pub type NamedRelease = (String, Time);

/// Returns the first time that a question names. Days, weeks and months are in UTC; weeks begin on Monday.
pub fn read(question: &str, now: Time, releases: &[NamedRelease]) -> Option<QuestionTime> {
    let text = question.to_lowercase();
    let today = date(now)?;
    let mut found: Option<(usize, QuestionTime)> = None;
    for rule in RULES.iter() {
        for words in rule.pattern.captures_iter(&text) {
            let Some(whole) = words.get(0) else { continue };
            let Some((from, to)) = (rule.period)(&words, today, now, releases) else { continue };
            let (start, side) = side(&text[..whole.start()]);
            if rule.needs_word && start == whole.start() {
                continue;
            }
            let of_event = rule.is_date && matches!(side, Side::Within | Side::At);
            let (from, to) = match side {
                Side::Within => (Some(from), Some(to)),
                Side::Before => (None, Some(from)),
                Side::After => (Some(to), None),
                Side::Since => (Some(from), None),
                // A release is a moment, so it has no duration.
                Side::At if from == to => continue,
                Side::At => (Some(from), Some(to)),
            };
            if from.is_some() && from == to {
                continue;
            }
            let end = whole.end();
            if found.as_ref().is_none_or(|(at, _)| start < *at) {
                found = Some((start, QuestionTime { phrase: text[start..end].trim().to_owned(), from, to, of_event }));
            }
        }
    }
    found.map(|(_, when)| when)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Within,
    Before,
    After,
    Since,
    At,
}

/// Returns the preposition right before a time, and where it begins.
fn side(before: &str) -> (usize, Side) {
    static WORDS: LazyLock<Regex> = LazyLock::new(|| {
        rule(
            r"\b(before|until|till|prior to|up to|after|since|in|on|during|from|over|within|around|at)\s+(?:the\s+)?(?:month of\s+|year\s+)?$",
        )
    });
    let Some(words) = WORDS.captures(before) else { return (before.len(), Side::Within) };
    let side = match &words[1] {
        "before" | "until" | "till" | "prior to" | "up to" => Side::Before,
        "after" => Side::After,
        "since" => Side::Since,
        _ => Side::At,
    };
    (words.get(0).map_or(before.len(), |words| words.start()), side)
}

/// Computes the period from the words of a time, today, now and releases.
type ToPeriod = fn(&Captures<'_>, Date, Time, &[NamedRelease]) -> Option<(Time, Time)>;

struct TimeRule {
    pattern: Regex,
    /// It is a time only after a preposition such as `in`, because "may" alone is ambiguous.
    needs_word: bool,
    /// It names a day, a month or a year of the calendar.
    is_date: bool,
    period: ToPeriod,
}

fn rule(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the rule is written here")
}

const MONTHS: &str = "january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec";
const NUMBERS: &str = r"\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|couple of|few";

static RULES: LazyLock<Vec<TimeRule>> = LazyLock::new(|| {
    let plain = |pattern: &str, period| TimeRule { pattern: rule(pattern), needs_word: false, is_date: false, period };
    let dated = |pattern: &str, period| TimeRule { is_date: true, ..plain(pattern, period) };
    vec![
        plain(r"\b(today|yesterday|the day before yesterday|last night)\b", |words, today, _, _| {
            let day = match &words[1] {
                "today" => today,
                "the day before yesterday" => back(today, 2.days())?,
                _ => back(today, 1.day())?,
            };
            days(day, 1)
        }),
        plain(r"\b(this|last|past|previous) (week|month|year|quarter)\b", |words, today, _, _| {
            let ago = i64::from(&words[1] != "this");
            named_period(&words[2], today, ago)
        }),
        plain(
            &format!(r"\b(?:the )?(?:last|past) ({NUMBERS}) (hour|day|week|month|year)s?\b"),
            |words, today, now, _| {
                let n = number(&words[1])?;
                let from = match &words[2] {
                    "hour" => Time(now.0 - n * 3_600_000_000),
                    unit => begin(back(today, span(unit, n)?)?)?,
                };
                Some((from, Time(now.0 + 1)))
            },
        ),
        plain(&format!(r"\b({NUMBERS}) (day|week|month|year)s? ago\b"), |words, today, _, _| {
            let n = number(&words[1])?;
            match &words[2] {
                "day" => days(back(today, n.days())?, 1),
                unit => named_period(unit, today, n),
            }
        }),
        plain(r"\b(?:last )?(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b", |words, today, _, _| {
            let day = weekday(&words[1])?;
            // The last one that is over.
            let since = (i64::from(today.weekday().since(day)) + 6) % 7 + 1;
            days(back(today, since.days())?, 1)
        }),
        plain(r"\b(\d{4})-(\d{2})-(\d{2})\b", |words, _, _, _| {
            let part = |at: usize| words[at].parse::<i16>().ok();
            days(Date::new(part(1)?, i8::try_from(part(2)?).ok()?, i8::try_from(part(3)?).ok()?).ok()?, 1)
        }),
        dated(
            &format!(r"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({MONTHS})(?:,? (\d{{4}}))?\b"),
            |words, today, _, _| of_day(&words[1], &words[2], words.get(3).map(|year| year.as_str()), today),
        ),
        dated(&format!(r"\b({MONTHS}) (\d{{1,2}})(?:st|nd|rd|th)?(?:,? (\d{{4}}))?\b"), |words, today, _, _| {
            of_day(&words[2], &words[1], words.get(3).map(|year| year.as_str()), today)
        }),
        dated(&format!(r"\b({MONTHS}),? (\d{{4}})\b"), |words, _, _, _| {
            let first = Date::new(words[2].parse().ok()?, month(&words[1])?, 1).ok()?;
            Some((begin(first)?, begin(first.checked_add(1.month()).ok()?)?))
        }),
        TimeRule {
            pattern: rule(&format!(r"\b(?:last )?({MONTHS})\b")),
            needs_word: true,
            is_date: true,
            period: |words, today, _, _| {
                let mut first = Date::new(today.year(), month(&words[1])?, 1).ok()?;
                if first > today {
                    first = back(first, 1.year())?;
                }
                Some((begin(first)?, begin(first.checked_add(1.month()).ok()?)?))
            },
        },
        TimeRule {
            pattern: rule(r"\b((?:19|20)\d{2})\b"),
            needs_word: true,
            is_date: true,
            period: |words, _, _, _| {
                let first = Date::new(words[1].parse().ok()?, 1, 1).ok()?;
                Some((begin(first)?, begin(first.checked_add(1.year()).ok()?)?))
            },
        },
        TimeRule {
            pattern: rule(r"\b(?:(?:last|latest|newest|first) )?release(?: ([\w.+-]*\w))?\b"),
            needs_word: true,
            is_date: false,
            period: |words, _, _, releases| {
                let named = words.get(1).and_then(|name| {
                    let is = |release: &&NamedRelease| {
                        release.0.to_lowercase().trim_start_matches('v') == name.as_str().trim_start_matches('v')
                    };
                    releases.iter().find(is)
                });
                let first = words[0].starts_with("first");
                let by_time = |release: &&NamedRelease| release.1;
                let any = if first { releases.iter().min_by_key(by_time) } else { releases.iter().max_by_key(by_time) };
                let at = named.or(any)?.1;
                Some((at, at))
            },
        },
    ]
});

fn named_period(unit: &str, today: Date, ago: i64) -> Option<(Time, Time)> {
    let (first, length) = match unit {
        "week" => (back(today, i64::from(today.weekday().to_monday_zero_offset()).days())?, 1.week()),
        "month" => (today.first_of_month(), 1.month()),
        "quarter" => (Date::new(today.year(), (today.month() - 1) / 3 * 3 + 1, 1).ok()?, 3.months()),
        _ => (today.first_of_year(), 1.year()),
    };
    let mut first = first;
    for _ in 0..ago {
        first = back(first, length)?;
    }
    Some((begin(first)?, begin(first.checked_add(length).ok()?)?))
}

fn of_day(day: &str, name: &str, year: Option<&str>, today: Date) -> Option<(Time, Time)> {
    let day = day.parse().ok()?;
    let of = |year: i16| Date::new(year, month(name)?, day).ok();
    let date = match year {
        Some(year) => of(year.parse().ok()?)?,
        // The last one that is not in the future.
        None => of(today.year()).filter(|date| *date <= today).or_else(|| of(today.year() - 1))?,
    };
    days(date, 1)
}

fn date(at: Time) -> Option<Date> {
    Some(Timestamp::from_microsecond(at.0).ok()?.to_zoned(TimeZone::UTC).date())
}

fn begin(date: Date) -> Option<Time> {
    Some(Time(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_microsecond()))
}

fn days(first: Date, count: i64) -> Option<(Time, Time)> {
    Some((begin(first)?, begin(first.checked_add(count.days()).ok()?)?))
}

fn back(date: Date, by: Span) -> Option<Date> {
    date.checked_sub(by).ok()
}

fn span(unit: &str, n: i64) -> Option<Span> {
    Some(match unit {
        "day" => n.days(),
        "week" => n.weeks(),
        "month" => n.months(),
        "year" => n.years(),
        _ => return None,
    })
}

fn number(word: &str) -> Option<i64> {
    let words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    match word {
        "a" | "an" => Some(1),
        "couple of" => Some(2),
        "few" => Some(3),
        word => match words.iter().position(|known| *known == word) {
            Some(at) => i64::try_from(at + 1).ok(),
            None => word.parse().ok(),
        },
    }
}

fn month(name: &str) -> Option<i8> {
    let names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    names.iter().position(|known| name.starts_with(known)).and_then(|at| i8::try_from(at + 1).ok())
}

fn weekday(name: &str) -> Option<Weekday> {
    let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let at = names.iter().position(|known| *known == name)?;
    Weekday::from_monday_zero_offset(i8::try_from(at).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Wednesday.
    const NOW: &str = "2026-03-18T10:30:00Z";

    #[test]
    fn times_in_questions() {
        let at = |text: &str| Time::parse(text).unwrap();
        let releases = [("1.0".to_owned(), at("2026-01-10")), ("v2.0".to_owned(), at("2026-03-01T12:00:00Z"))];
        let none = ("", "", "");
        for (question, (phrase, from, to)) in [
            ("what failed yesterday?", ("yesterday", "2026-03-17", "2026-03-18")),
            ("What did we decide today", ("today", "2026-03-18", "2026-03-19")),
            ("what happened the day before yesterday", ("the day before yesterday", "2026-03-16", "2026-03-17")),
            ("what broke last week?", ("last week", "2026-03-09", "2026-03-16")),
            ("what broke this week?", ("this week", "2026-03-16", "2026-03-23")),
            ("decisions of last month", ("last month", "2026-02-01", "2026-03-01")),
            ("decisions before last month", ("before last month", "", "2026-02-01")),
            ("what changed last quarter", ("last quarter", "2025-10-01", "2026-01-01")),
            ("errors in the last 3 days", ("in the last 3 days", "2026-03-15", "2026-03-18T10:30:00.000001Z")),
            ("errors in the past two weeks", ("in the past two weeks", "2026-03-04", "2026-03-18T10:30:00.000001Z")),
            ("errors of the last 2 hours", ("the last 2 hours", "2026-03-18T08:30:00Z", "2026-03-18T10:30:00.000001Z")),
            ("what was tried two days ago", ("two days ago", "2026-03-16", "2026-03-17")),
            ("what was tried a month ago", ("a month ago", "2026-02-01", "2026-03-01")),
            ("who edited it on Monday?", ("on monday", "2026-03-16", "2026-03-17")),
            ("who edited it last wednesday?", ("last wednesday", "2026-03-11", "2026-03-12")),
            ("what did Ann do in March 2024?", ("in march 2024", "2024-03-01", "2024-04-01")),
            ("what did Ann do in February", ("in february", "2026-02-01", "2026-03-01")),
            ("what did Ann do in October", ("in october", "2025-10-01", "2025-11-01")),
            ("what was said on 7 May 2023?", ("on 7 may 2023", "2023-05-07", "2023-05-08")),
            ("what was said on May 7th, 2023?", ("on may 7th, 2023", "2023-05-07", "2023-05-08")),
            ("what was said on December 24", ("on december 24", "2025-12-24", "2025-12-25")),
            ("since 2026-02-01, what failed?", ("since 2026-02-01", "2026-02-01", "")),
            ("what failed after March 5", ("after march 5", "2026-03-06", "")),
            ("what was planned in 2025", ("in 2025", "2025-01-01", "2026-01-01")),
            ("what did we know before the release?", ("before the release", "", "2026-03-01T12:00:00Z")),
            ("what broke since the last release", ("since the last release", "2026-03-01T12:00:00Z", "")),
            ("what broke after release 1.0", ("after release 1.0", "2026-01-10", "")),
            ("why may this fail?", none),
            ("how do we march on", none),
            ("how is the release made", none),
            ("what is in the release", none),
            ("port 2024 is taken", none),
            ("how does login work", none),
            ("on 31 February 2024", ("february 2024", "2024-02-01", "2024-03-01")),
        ] {
            let read = read(question, at(NOW), &releases);
            if phrase.is_empty() {
                assert_eq!(read, None, "{question}");
                continue;
            }
            let time = |text: &str| (!text.is_empty()).then(|| at(text));
            let read = read.unwrap_or_else(|| panic!("{question}"));
            assert_eq!((read.phrase.as_str(), read.from, read.to), (phrase, time(from), time(to)), "{question}");
        }
        assert_eq!(read("before the release", at(NOW), &[]), None, "nothing was released");
    }

    #[test]
    fn dates_of_events_differ_from_periods_of_recording() {
        let now = Time::parse(NOW).unwrap();
        for (question, of_event) in [
            ("what happened on 7 May 2023", true),
            ("what happened in March 2024", true),
            ("what happened in 2024", true),
            ("what happened since March 2024", false),
            ("what happened before 7 May 2023", false),
            ("what happened last week", false),
            ("what happened on 2024-05-07", false),
            ("what happened on Monday", false),
        ] {
            assert_eq!(read(question, now, &[]).unwrap().of_event, of_event, "{question}");
        }
    }

    #[test]
    fn periods_hold_their_beginning_and_not_their_end() {
        let at = |text: &str| Time::parse(text).unwrap();
        let when = read("yesterday", at(NOW), &[]).unwrap();
        for (moment, holds) in [
            ("2026-03-16T23:59:59Z", false),
            ("2026-03-17", true),
            ("2026-03-17T23:59:59Z", true),
            ("2026-03-18", false),
        ] {
            assert_eq!(when.holds(at(moment)), holds, "{moment}");
        }
    }
}
