//! Time zones: a fixed offset from UTC, or a name whose offset depends on the moment.

use super::text::parse_offset;
use super::{DateTime, LocalDateTime, SECOND};
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Zone {
    /// Seconds ahead of UTC.
    Offset(i32),
    Named(Arc<str>, TimeZone),
}

/// Zones that are links to another one in the time zone database, because they have agreed since 1970. Some packages of
/// the database keep their older differences. With this list, every machine returns the result of the database.
const LINKS: [(&str, &str); 9] = [
    ("Arctic/Longyearbyen", "Europe/Berlin"),
    ("Atlantic/Reykjavik", "Africa/Abidjan"),
    ("Europe/Amsterdam", "Europe/Brussels"),
    ("Europe/Copenhagen", "Europe/Berlin"),
    ("Europe/Luxembourg", "Europe/Brussels"),
    ("Europe/Monaco", "Europe/Paris"),
    ("Europe/Oslo", "Europe/Berlin"),
    ("Europe/Stockholm", "Europe/Berlin"),
    ("Indian/Christmas", "Asia/Bangkok"),
];

impl Zone {
    pub const UTC: Zone = Zone::Offset(0);

    /// Parses `Z`, `+01:00`, or a name of the time zone database.
    pub fn parse(text: &str) -> Option<Zone> {
        parse_offset(text).map(Zone::Offset).or_else(|| Zone::named(text))
    }

    pub fn named(name: &str) -> Option<Zone> {
        let zone = TimeZone::get(name).ok()?;
        let name: Arc<str> = zone.iana_name().unwrap_or(name).into();
        let link = LINKS.iter().find(|(from, _)| **from == *name).and_then(|(_, to)| TimeZone::get(to).ok());
        Some(Zone::Named(name, link.unwrap_or(zone)))
    }

    /// The offset of a zone that has only one.
    pub fn fixed_offset(&self) -> Option<i32> {
        match self {
            Zone::Offset(offset) => Some(*offset),
            Zone::Named(..) => None,
        }
    }

    fn name(&self) -> Option<Arc<str>> {
        match self {
            Zone::Offset(_) => None,
            Zone::Named(name, _) => Some(Arc::clone(name)),
        }
    }

    /// The offset at a moment, in nanoseconds since 1970.
    pub fn offset_at(&self, instant: i128) -> i32 {
        match self {
            Zone::Offset(offset) => *offset,
            Zone::Named(_, zone) => {
                let seconds = instant.div_euclid(i128::from(SECOND));
                // Beyond the range of the database, the rules of its ends apply.
                let most = Timestamp::MAX.as_second();
                let seconds = i64::try_from(seconds).unwrap_or(if seconds < 0 { -most } else { most });
                let stamp = Timestamp::from_second(seconds.clamp(Timestamp::MIN.as_second(), most));
                stamp.map_or(0, |stamp| zone.to_offset(stamp).seconds())
            }
        }
    }

    /// The local date and time at a moment.
    pub fn local_of(&self, instant: i128) -> LocalDateTime {
        LocalDateTime::of_nanos(instant + i128::from(self.offset_at(instant)) * i128::from(SECOND))
    }

    /// The moment of a local date and time. If clocks skip it, the moment is later by as much as they skip. If clocks
    /// show it twice, it is the first one.
    pub fn at_local(&self, local: LocalDateTime) -> DateTime {
        let offset = offset_of_local(self, local);
        let instant = local.nanos() - i128::from(offset) * i128::from(SECOND);
        DateTime { local: self.local_of(instant), offset: self.offset_at(instant), zone: self.name() }
    }

    pub fn at_instant(&self, instant: i128) -> DateTime {
        DateTime { local: self.local_of(instant), offset: self.offset_at(instant), zone: self.name() }
    }
}

/// The offset that converts a local date and time to a moment.
pub fn offset_of_local(zone: &Zone, local: LocalDateTime) -> i32 {
    let Zone::Named(_, named) = zone else { return zone.offset_at(0) };
    let (year, month, day) = super::calendar::date_of(local.date.0);
    let seconds = local.time.0 / SECOND;
    let small = |n: i64| i8::try_from(n).expect("months, days, hours, minutes and seconds are below 100");
    let date = i16::try_from(year).ok().and_then(|y| civil::Date::new(y, small(month), small(day)).ok());
    let Some(date) = date else { return zone.offset_at(local.nanos()) };
    let clock = date.at(small(seconds / 3_600), small(seconds / 60 % 60), small(seconds % 60), 0);
    let moment = named.to_ambiguous_timestamp(clock).compatible();
    moment.map_or_else(
        |_| zone.offset_at(local.nanos()),
        |stamp| {
            let shown = named.to_datetime(stamp);
            // In a gap, the offset before the gap gives the moment after it.
            if shown == clock {
                named.to_offset(stamp).seconds()
            } else {
                named.to_offset(stamp - jiff::SignedDuration::from_hours(3)).seconds()
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::super::text::parse_local_date_time;
    use super::*;

    fn at(zone: &str, local: &str) -> String {
        Zone::parse(zone).unwrap().at_local(parse_local_date_time(local).unwrap()).to_string()
    }

    #[test]
    fn clock_changes() {
        assert_eq!(at("+01:00", "2015-07-21T10:00"), "2015-07-21T10:00+01:00");
        assert_eq!(at("Europe/Stockholm", "2015-01-21T10:00"), "2015-01-21T10:00+01:00[Europe/Stockholm]");
        assert_eq!(
            at("Europe/Stockholm", "2017-10-29T02:30"),
            "2017-10-29T02:30+02:00[Europe/Stockholm]",
            "the first time"
        );
        assert_eq!(
            at("Europe/Stockholm", "2017-03-26T02:30"),
            "2017-03-26T03:30+02:00[Europe/Stockholm]",
            "never shown"
        );
        assert_eq!(at("Europe/Stockholm", "+99999-01-01T00:00"), "+99999-01-01T00:00+01:00[Europe/Stockholm]");
        assert_eq!(
            at("Europe/Stockholm", "1818-07-21"),
            "1818-07-21T00:00+00:53:28[Europe/Stockholm]",
            "by Berlin's sun"
        );
        assert!(Zone::parse("Nowhere/Land").is_none());
        let instant = Zone::parse("Europe/London").unwrap().at_instant(0);
        assert_eq!(instant.to_string(), "1970-01-01T01:00+01:00[Europe/London]");
    }
}
