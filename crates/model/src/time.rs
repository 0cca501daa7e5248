//! Moments in microseconds, and half-open periods of valid time with open ends.

use crate::ErrorCode;
use crate::error::{Error, Result};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Microseconds since 1970 UTC: PostgreSQL's precision, so that all stores return the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// Before every moment: an open start.
    pub const MIN: Time = Time(i64::MIN);
    /// After every moment: an open end.
    pub const MAX: Time = Time(i64::MAX);

    /// Parses RFC 3339, or a date, which means midnight UTC.
    pub fn parse(text: &str) -> Result<Time> {
        let stamp = text.parse::<Timestamp>().or_else(|_| {
            text.parse::<jiff::civil::DateTime>()
                .and_then(|d| d.to_zoned(jiff::tz::TimeZone::UTC))
                .map(|z| z.timestamp())
        });
        stamp.map(|t| Time(t.as_microsecond())).map_err(|_| {
            Error::invalid(ErrorCode::InvalidTime, format!("`{text}` is not a time"))
                .hint("write times as 2026-01-31 or 2026-01-31T09:00:00Z")
        })
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Time::MIN => f.write_str("-∞"),
            Time::MAX => f.write_str("∞"),
            Time(us) => match Timestamp::from_microsecond(us) {
                Ok(stamp) => write!(f, "{stamp}"),
                Err(_) => write!(f, "{us}us"),
            },
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Time::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Time {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

/// A half-open period `[from, to)`. `Time::MIN` and `Time::MAX` are open ends. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period {
    pub from: Time,
    pub to: Time,
}

impl Period {
    /// All valid time.
    pub const ALWAYS: Period = Period { from: Time::MIN, to: Time::MAX };

    /// Creates a period. Fails if `from` is not before `to`.
    pub fn new(from: Time, to: Time) -> Result<Period> {
        if from < to {
            Ok(Period { from, to })
        } else {
            Err(Error::invalid(
                ErrorCode::ReversedPeriod,
                format!("the period from `{from}` to `{to}` is empty or reversed"),
            )
            .hint("valid_from must be earlier than valid_to"))
        }
    }

    /// Returns the period from a moment on, with an open end.
    pub fn since(from: Time) -> Period {
        Period { from, to: Time::MAX }
    }

    /// Whether the period contains a moment.
    pub fn holds(&self, at: Time) -> bool {
        self.from <= at && at < self.to
    }

    /// Returns the common part of two periods; `None` if they do not overlap.
    pub fn intersect(&self, other: &Period) -> Option<Period> {
        let (from, to) = (self.from.max(other.from), self.to.min(other.to));
        (from < to).then_some(Period { from, to })
    }

    /// Returns the parts of `self` outside `other`: zero, one or two periods.
    pub fn minus(&self, other: &Period) -> impl Iterator<Item = Period> + use<> {
        let (this, other) = (*self, *other);
        let pieces = match this.intersect(&other) {
            None => [Some(this), None],
            Some(cut) => [
                (this.from < cut.from).then_some(Period { from: this.from, to: cut.from }),
                (cut.to < this.to).then_some(Period { from: cut.to, to: this.to }),
            ],
        };
        pieces.into_iter().flatten()
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_parse_and_print() {
        for (text, shown) in [
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("2026-01-31T09:00:00Z", "2026-01-31T09:00:00Z"),
            ("2026-01-31T09:00:00.000001+01:00", "2026-01-31T08:00:00.000001Z"),
        ] {
            assert_eq!(Time::parse(text).unwrap().to_string(), shown);
        }
        assert_eq!(Time::parse("yesterday").unwrap_err().code, ErrorCode::InvalidTime);
    }

    #[test]
    fn minus_leaves_what_is_outside() {
        let p = |a, b| Period { from: Time(a), to: Time(b) };
        let cases: [(Period, Period, &[Period]); 5] = [
            (p(0, 10), p(20, 30), &[p(0, 10)]),
            (p(0, 10), p(0, 10), &[]),
            (p(0, 10), p(3, 5), &[p(0, 3), p(5, 10)]),
            (p(0, 10), p(-5, 5), &[p(5, 10)]),
            (p(0, 10), p(5, 50), &[p(0, 5)]),
        ];
        for (a, b, want) in cases {
            assert_eq!(a.minus(&b).collect::<Vec<_>>(), want, "{a} minus {b}");
        }
    }

    #[test]
    fn reversed_periods_are_rejected() {
        assert_eq!(Period::new(Time(5), Time(5)).unwrap_err().code, ErrorCode::ReversedPeriod);
        assert_eq!(Period::new(Time(6), Time(5)).unwrap_err().code, ErrorCode::ReversedPeriod);
    }
}
