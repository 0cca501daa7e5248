//! Adds durations, computes the time between two moments, and truncates moments to a unit.

use super::calendar::{add_months, date_of, first_monday, quarter_of, week_of, weekday};
use super::text::date;
use super::{DAY, Date, Duration, HOUR, LocalDateTime, LocalTime, MINUTE, SECOND};
use crate::convert::to_i128;

impl Date {
    /// Adds months first, then days. Of the seconds, only whole days count.
    pub fn plus(self, d: &Duration) -> Option<Date> {
        let days = add_months(self.0, d.months)?.checked_add(d.days)?.checked_add(d.seconds / 86_400)?;
        in_range(Date(days))
    }
}

fn in_range(found: Date) -> Option<Date> {
    // The calendar itself would overflow far outside of its range.
    let near = (-400_000_000_000..=400_000_000_000).contains(&found.0);
    (near && super::calendar::YEARS.contains(&date_of(found.0).0)).then_some(found)
}

impl LocalTime {
    /// Wraps around at midnight. Months and days are ignored.
    pub fn plus(self, d: &Duration) -> LocalTime {
        let nanos = (i128::from(self.0) + d.clock_nanos()).rem_euclid(i128::from(DAY));
        LocalTime(i64::try_from(nanos).expect("the rest is less than a day"))
    }
}

impl LocalDateTime {
    pub fn plus(self, d: &Duration) -> Option<LocalDateTime> {
        let days = add_months(self.date.0, d.months)?.checked_add(d.days)?;
        let moved = LocalDateTime { date: in_range(Date(days))?, time: self.time };
        let found = LocalDateTime::of_nanos(moved.nanos() + d.clock_nanos());
        in_range(found.date).map(|_| found)
    }
}

impl Duration {
    pub fn negated(&self) -> Option<Duration> {
        Duration::new(-i128::from(self.months), -i128::from(self.days), -self.clock_nanos())
    }

    pub fn plus(&self, other: &Duration) -> Option<Duration> {
        Duration::new(
            i128::from(self.months) + i128::from(other.months),
            i128::from(self.days) + i128::from(other.days),
            self.clock_nanos() + other.clock_nanos(),
        )
    }

    /// The duration multiplied by a factor.
    pub fn times(&self, factor: f64) -> Option<Duration> {
        Duration::spilled(self.months as f64 * factor, self.days as f64 * factor, self.clock_nanos() as f64 * factor)
    }

    /// From fractional amounts: a fraction of a month becomes days, and a fraction of a day nanoseconds. A month has
    /// its average length.
    pub fn spilled(months: f64, days: f64, nanos: f64) -> Option<Duration> {
        const MONTH_DAYS: f64 = 2_629_746.0 / 86_400.0;
        let days = days + (months - months.trunc()) * MONTH_DAYS;
        let nanos = nanos + (days - days.trunc()) * DAY as f64;
        let fits = |x: f64, most: f64| x.abs() < most;
        if !(fits(months, 9e18) && fits(days, 9e18) && fits(nanos, 9e27)) {
            return None;
        }
        Duration::new(to_i128(months), to_i128(days), to_i128(nanos.round()))
    }
}

/// Whole months from one moment to another, so that the rest is less than a month.
fn months_between(from: LocalDateTime, to: LocalDateTime) -> i64 {
    let ((from_year, from_month, _), (to_year, to_month, _)) = (date_of(from.date.0), date_of(to.date.0));
    let mut months = (to_year - from_year) * 12 + (to_month - from_month);
    let reaches =
        |months: i64| add_months(from.date.0, months).map(|d| LocalDateTime { date: Date(d), time: from.time });
    // The last month may be incomplete.
    while months > 0 && reaches(months).is_none_or(|there| there > to) {
        months -= 1;
    }
    while months < 0 && reaches(months).is_none_or(|there| there < to) {
        months += 1;
    }
    months
}

/// The time between two moments: whole months, then whole days, then the rest.
pub fn between(from: LocalDateTime, to: LocalDateTime) -> Option<Duration> {
    let months = months_between(from, to);
    let there = LocalDateTime { date: Date(add_months(from.date.0, months)?), time: from.time };
    let left = to.nanos() - there.nanos();
    let day = i128::from(DAY);
    Duration::new(i128::from(months), left / day, left % day)
}

/// Only the whole months.
pub fn in_months(from: LocalDateTime, to: LocalDateTime) -> Duration {
    Duration { months: months_between(from, to), ..Duration::default() }
}

/// Only the whole days.
pub fn in_days(from: LocalDateTime, to: LocalDateTime) -> Option<Duration> {
    Duration::new(0, (to.nanos() - from.nanos()) / i128::from(DAY), 0)
}

/// All of it in seconds.
pub fn in_seconds(from: LocalDateTime, to: LocalDateTime) -> Option<Duration> {
    Duration::new(0, 0, to.nanos() - from.nanos())
}

/// The beginning of the unit that contains a moment. `None` if there is no such unit.
pub fn truncated(unit: &str, at: LocalDateTime) -> Option<LocalDateTime> {
    let (year, month, _) = date_of(at.date.0);
    let midnight = |date: Date| LocalDateTime { date, time: LocalTime(0) };
    let to_year = |unit: i64| date(year.div_euclid(unit) * unit, 1, 1).map(midnight);
    let clock = |unit: i64| Some(LocalDateTime { time: LocalTime(at.time.0 / unit * unit), ..at });
    match unit.to_ascii_lowercase().as_str() {
        "millennium" => to_year(1_000),
        "century" => to_year(100),
        "decade" => to_year(10),
        "year" => to_year(1),
        "weekyear" => Some(midnight(Date(first_monday(week_of(at.date.0).0)))),
        "quarter" => date(year, (quarter_of(month) - 1) * 3 + 1, 1).map(midnight),
        "month" => date(year, month, 1).map(midnight),
        "week" => Some(midnight(Date(at.date.0 - weekday(at.date.0) + 1))),
        "day" => Some(midnight(at.date)),
        "hour" => clock(HOUR),
        "minute" => clock(MINUTE),
        "second" => clock(SECOND),
        "millisecond" => clock(1_000_000),
        "microsecond" => clock(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::{parse_date, parse_duration, parse_local_date_time};
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> LocalDateTime {
        parse_local_date_time(text).unwrap()
    }

    fn lasting(text: &str) -> Duration {
        parse_duration(text).unwrap()
    }

    #[test]
    fn adding_durations() {
        let date = parse_date("1984-10-11").unwrap();
        assert_eq!(date.plus(&lasting("P12Y5M14DT16H12M70S")).unwrap().to_string(), "1997-03-25");
        assert_eq!(date.plus(&lasting("PT36H")).unwrap().to_string(), "1984-10-12");
        assert_eq!(at("2024-01-31T12:00").plus(&lasting("P1MT13H")).unwrap().to_string(), "2024-03-01T01:00");
        assert_eq!(LocalTime(23 * HOUR).plus(&lasting("P5DT2H")).to_string(), "01:00");
        assert_eq!(LocalTime(HOUR).plus(&lasting("PT-2H")).to_string(), "23:00");
        assert_eq!(date.plus(&Duration { months: i64::MAX, ..Duration::default() }), None);
        assert_eq!(date.plus(&Duration { days: i64::MAX, ..Duration::default() }), None);
        assert_eq!(lasting("P1M1D").times(0.5).unwrap().to_string(), "P15DT17H14M33S");
        assert_eq!(lasting("PT1S").times(0.5).unwrap().to_string(), "PT0.5S");
        assert_eq!(lasting("P1D").times(f64::INFINITY), None);
    }

    #[test]
    fn between_two_moments() {
        for (from, to, want) in [
            ("1984-10-11", "2015-06-24", "P30Y8M13D"),
            ("2015-06-24", "1984-10-11", "P-30Y-8M-13D"),
            ("1984-10-11", "2015-07-21T21:40:32.142", "P30Y9M10DT21H40M32.142S"),
            ("2018-01-31", "2018-03-01", "P1M1D"),
            ("2018-01-01T10:00:00.2", "2018-01-02T10:00:00.1", "PT23H59M59.9S"),
            ("-999999999-01-01", "+999999999-12-31T23:59:59", "P1999999998Y11M30DT23H59M59S"),
        ] {
            assert_eq!(between(at(from), at(to)).unwrap().to_string(), want, "{from} {to}");
        }
        assert_eq!(in_days(at("2018-01-01"), at("2018-03-01T23:00")).unwrap().to_string(), "P59D");
        assert_eq!(in_months(at("2018-01-01"), at("2019-03-01T23:00")).to_string(), "P1Y2M");
        assert_eq!(in_seconds(at("2018-01-02"), at("2018-01-01")).unwrap().to_string(), "PT-24H");
    }

    #[test]
    fn truncating() {
        let moment = at("2017-11-11T12:31:14.645876123");
        for (unit, want) in [
            ("millennium", "2000-01-01T00:00"),
            ("century", "2000-01-01T00:00"),
            ("decade", "2010-01-01T00:00"),
            ("year", "2017-01-01T00:00"),
            ("weekYear", "2017-01-02T00:00"),
            ("quarter", "2017-10-01T00:00"),
            ("month", "2017-11-01T00:00"),
            ("week", "2017-11-06T00:00"),
            ("day", "2017-11-11T00:00"),
            ("hour", "2017-11-11T12:00"),
            ("minute", "2017-11-11T12:31"),
            ("second", "2017-11-11T12:31:14"),
            ("millisecond", "2017-11-11T12:31:14.645"),
            ("microsecond", "2017-11-11T12:31:14.645876"),
        ] {
            assert_eq!(truncated(unit, moment).unwrap().to_string(), want, "{unit}");
        }
        assert_eq!(truncated("fortnight", moment), None);
    }

    proptest! {
        #[test]
        fn adding_the_time_between_gives_the_later_moment(a in -1_000_000i64..1_000_000, b in -1_000_000i64..1_000_000, s in 0i64..86_400, t in 0i64..86_400) {
            let from = LocalDateTime { date: Date(a), time: LocalTime(s * SECOND) };
            let to = LocalDateTime { date: Date(b), time: LocalTime(t * SECOND) };
            let gap = between(from, to).unwrap();
            prop_assert_eq!(from.plus(&gap), Some(to));
            let signs = [gap.months, gap.days, gap.clock_nanos().signum() as i64];
            prop_assert!(signs.iter().all(|x| *x >= 0) || signs.iter().all(|x| *x <= 0), "{}", gap);
            prop_assert_eq!(from.plus(&in_seconds(from, to).unwrap()), Some(to));
        }
    }
}
