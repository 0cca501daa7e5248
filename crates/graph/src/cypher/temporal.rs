//! Dates, times and durations of queries, and their text form.

pub mod arithmetic;
pub mod calendar;
pub mod fields;
mod text;
pub mod zone;

pub use text::{parse_date, parse_date_time, parse_duration, parse_local_date_time, parse_local_time, parse_time};

use calendar::date_of;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

pub const SECOND: i64 = 1_000_000_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

/// Days since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date(pub i64);

/// Nanoseconds since midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalTime(pub i64);

/// A time of day with an offset, in seconds east of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ZonedTime {
    pub local: LocalTime,
    pub offset: i32,
}

/// A date and time without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalDateTime {
    pub date: Date,
    pub time: LocalTime,
}

/// A date and time in a zone with a name, or with only an offset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DateTime {
    pub local: LocalDateTime,
    /// Seconds east of UTC.
    pub offset: i32,
    /// The name of the zone, for example `Europe/Berlin`.
    pub zone: Option<Arc<str>>,
}

/// Months, days and seconds are separate, because a month has no fixed number of days, and a day no fixed number of
/// seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Duration {
    pub months: i64,
    pub days: i64,
    pub seconds: i64,
    /// 0 to 999,999,999, added to `seconds`.
    pub nanos: i64,
}

impl ZonedTime {
    /// Nanoseconds since midnight in UTC. Negative for the day before, a day or more for the day after.
    pub fn instant(&self) -> i64 {
        self.local.0 - i64::from(self.offset) * SECOND
    }
}

/// Ordered by the moment, then by the offset, so that equal order means equality.
impl Ord for ZonedTime {
    fn cmp(&self, other: &Self) -> Ordering {
        self.instant().cmp(&other.instant()).then(self.offset.cmp(&other.offset))
    }
}

impl PartialOrd for ZonedTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl LocalDateTime {
    /// Nanoseconds since 1970, read as UTC.
    pub fn nanos(&self) -> i128 {
        i128::from(self.date.0) * i128::from(DAY) + i128::from(self.time.0)
    }

    /// The date and time of nanoseconds since 1970, read as UTC.
    pub fn of_nanos(nanos: i128) -> LocalDateTime {
        let (days, rest) = (nanos.div_euclid(i128::from(DAY)), nanos.rem_euclid(i128::from(DAY)));
        let days = i64::try_from(days).expect("moments have at most 96 bits, so their days fit into 64");
        let rest = i64::try_from(rest).expect("the rest is less than a day");
        LocalDateTime { date: Date(days), time: LocalTime(rest) }
    }
}

impl DateTime {
    /// Nanoseconds since 1970 in UTC.
    pub fn instant(&self) -> i128 {
        self.local.nanos() - i128::from(self.offset) * i128::from(SECOND)
    }
}

impl Ord for DateTime {
    fn cmp(&self, other: &Self) -> Ordering {
        let moment = self.instant().cmp(&other.instant());
        moment.then(self.offset.cmp(&other.offset)).then_with(|| self.zone.cmp(&other.zone))
    }
}

impl PartialOrd for DateTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Duration {
    /// From nanoseconds of any size and sign. `None` if it is too long.
    pub fn new(months: i128, days: i128, nanos: i128) -> Option<Duration> {
        let second = i128::from(SECOND);
        Some(Duration {
            months: months.try_into().ok()?,
            days: days.try_into().ok()?,
            seconds: nanos.div_euclid(second).try_into().ok()?,
            nanos: nanos.rem_euclid(second).try_into().ok()?,
        })
    }

    /// The part that is shorter than a day, in nanoseconds.
    pub fn clock_nanos(&self) -> i128 {
        i128::from(self.seconds) * i128::from(SECOND) + i128::from(self.nanos)
    }

    /// For ordering only: with months of average length.
    pub fn average_nanos(&self) -> i128 {
        const MONTH: i128 = 2_629_746 * SECOND as i128;
        i128::from(self.months) * MONTH + i128::from(self.days) * i128::from(DAY) + self.clock_nanos()
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_of(self.0);
        match year {
            0..=9_999 => write!(f, "{year:04}")?,
            10_000.. => write!(f, "+{year}")?,
            _ => write!(f, "-{:04}", -year)?,
        }
        write!(f, "-{month:02}-{day:02}")
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second, nanos) =
            (self.0 / HOUR, self.0 / MINUTE % 60, self.0 / SECOND % 60, self.0 % SECOND);
        write!(f, "{hour:02}:{minute:02}")?;
        if second == 0 && nanos == 0 {
            return Ok(());
        }
        write!(f, ":{second:02}")?;
        // Three, six or nine digits, as many as are needed.
        match nanos {
            0 => Ok(()),
            _ if nanos % 1_000_000 == 0 => write!(f, ".{:03}", nanos / 1_000_000),
            _ if nanos % 1_000 == 0 => write!(f, ".{:06}", nanos / 1_000),
            _ => write!(f, ".{nanos:09}"),
        }
    }
}

/// `Z` or `+01:00`, with seconds if there are any.
fn write_offset(f: &mut fmt::Formatter<'_>, offset: i32) -> fmt::Result {
    if offset == 0 {
        return f.write_str("Z");
    }
    let (sign, abs) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
    write!(f, "{sign}{:02}:{:02}", abs / 3_600, abs / 60 % 60)?;
    if abs % 60 > 0 { write!(f, ":{:02}", abs % 60) } else { Ok(()) }
}

impl fmt::Display for ZonedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.local)?;
        write_offset(f, self.offset)
    }
}

impl fmt::Display for LocalDateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{}", self.date, self.time)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.local)?;
        write_offset(f, self.offset)?;
        self.zone.as_ref().map_or(Ok(()), |zone| write!(f, "[{zone}]"))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Duration::default() {
            return f.write_str("PT0S");
        }
        f.write_str("P")?;
        for (amount, unit) in [(self.months / 12, 'Y'), (self.months % 12, 'M'), (self.days, 'D')] {
            if amount != 0 {
                write!(f, "{amount}{unit}")?;
            }
        }
        let nanos = self.clock_nanos();
        if nanos == 0 {
            return Ok(());
        }
        f.write_str("T")?;
        let (minute, second) = (i128::from(MINUTE), i128::from(SECOND));
        for (amount, unit) in [(nanos / i128::from(HOUR), 'H'), (nanos / minute % 60, 'M')] {
            if amount != 0 {
                write!(f, "{amount}{unit}")?;
            }
        }
        let rest = nanos % minute;
        if rest == 0 {
            return Ok(());
        }
        let (whole, part) = ((rest / second).abs(), (rest % second).abs());
        write!(f, "{}{whole}", if rest < 0 { "-" } else { "" })?;
        if part > 0 {
            write!(f, ".{}", format!("{part:09}").trim_end_matches('0'))?;
        }
        f.write_str("S")
    }
}

#[cfg(test)]
mod tests {
    use super::calendar::days_of;
    use super::*;

    #[test]
    fn text_forms() {
        for (year, want) in [(2015, "2015-07-21"), (1, "0001-07-21"), (-5, "-0005-07-21"), (12_345, "+12345-07-21")] {
            assert_eq!(Date(days_of(year, 7, 21)).to_string(), want);
        }
        for (nanos, want) in [
            (0, "00:00"),
            (12 * HOUR + 31 * MINUTE, "12:31"),
            (14 * SECOND, "00:00:14"),
            (645_000_000, "00:00:00.645"),
            (645_876_000, "00:00:00.645876"),
            (1, "00:00:00.000000001"),
            (700_000_000, "00:00:00.700"),
        ] {
            assert_eq!(LocalTime(nanos).to_string(), want);
        }
        let time = |offset| ZonedTime { local: LocalTime(HOUR), offset }.to_string();
        assert_eq!((time(0), time(3_600), time(-5_400)), ("01:00Z".into(), "01:00+01:00".into(), "01:00-01:30".into()));
        assert_eq!(time(3_208), "01:00+00:53:28");
        let duration = |months, days, nanos| Duration::new(months, days, nanos).unwrap().to_string();
        assert_eq!(duration(0, 0, 0), "PT0S");
        assert_eq!(duration(149, 14, 58_390_000_000_001), "P12Y5M14DT16H13M10.000000001S");
        assert_eq!(duration(-14, 0, 0), "P-1Y-2M");
        assert_eq!(duration(0, 1, -1_000_000), "P1DT-0.001S");
        assert_eq!(duration(0, 0, -60_001_000_000), "PT-1M-0.001S");
        assert_eq!(duration(0, 0, -1_600_000_000), "PT-1.6S");
        assert!(Duration::new(i128::MAX, 0, 0).is_none());
    }

    #[test]
    fn times_are_ordered_by_moment() {
        let time = |hour, offset| ZonedTime { local: LocalTime(hour * HOUR), offset };
        assert!(time(10, 0) > time(10, 3_600), "ten in the east was earlier");
        let at = |hour, offset, zone: Option<&str>| DateTime {
            local: LocalDateTime { date: Date(0), time: LocalTime(hour * HOUR) },
            offset,
            zone: zone.map(Into::into),
        };
        assert!(at(10, 0, None) < at(12, 3_600, None));
        assert_ne!(at(10, 0, None), at(11, 3_600, None), "the same moment, not the same value");
        assert_eq!(LocalDateTime::of_nanos(-1), LocalDateTime { date: Date(-1), time: LocalTime(DAY - 1) });
        assert!(Duration::new(1, 0, 0).unwrap().average_nanos() > Duration::new(0, 30, 0).unwrap().average_nanos());
    }
}
