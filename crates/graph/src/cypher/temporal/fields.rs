//! Dates and times from fields: a map with some of them, optionally on top of another date or time.

use super::calendar::{date_of, quarter_of, week_of, weekday};
use super::text::{date, local_time, ordinal_date, week_date};
use super::zone::{Zone, offset_of_local};
use super::{Date, DateTime, HOUR, LocalDateTime, LocalTime, MINUTE, SECOND, ZonedTime};
use std::collections::BTreeMap;

/// The given fields, by name. Names are those of openCypher and ignore case.
#[derive(Clone, Debug, Default)]
pub struct TemporalFields {
    pub numbers: BTreeMap<&'static str, i64>,
    pub zone: Option<Zone>,
    /// Whether parts of a second are added to those of the base, as after truncation to a larger part.
    pub adds_parts: bool,
}

/// Names of fields that contain numbers, the most significant first within date and time.
pub const NUMBERS: [&str; 14] = [
    "year",
    "quarter",
    "month",
    "week",
    "dayOfWeek",
    "dayOfQuarter",
    "ordinalDay",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "nanosecond",
];

/// The date or time that fields are applied to. Missing parts are `None`.
#[derive(Clone, Debug, Default)]
pub struct TemporalBase {
    pub date: Option<Date>,
    pub time: Option<LocalTime>,
    pub zone: Option<Zone>,
}

type Result<T> = std::result::Result<T, String>;

impl TemporalFields {
    fn get(&self, name: &str) -> Option<i64> {
        self.numbers.get(name).copied()
    }

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|n| self.numbers.contains_key(n))
    }

    /// The date of these fields, on top of another one.
    pub fn date(&self, base: Option<Date>) -> Result<Date> {
        let from = base.map(|d| (date_of(d.0), d.0));
        let wrong = |what: &str| format!("{what} is out of range");
        let year = |or: Option<i64>| self.get("year").or(or).ok_or_else(|| "a date needs a `year`".to_string());
        if self.has_any(&["week", "dayOfWeek"]) {
            let (base_year, base_week) = base.map(|d| week_of(d.0)).unzip();
            let week = self.get("week").or(base_week).ok_or("`dayOfWeek` needs a `week`")?;
            let day = self.get("dayOfWeek").unwrap_or_else(|| base.map_or(1, |d| weekday(d.0)));
            return week_date(year(base_year)?, week, day).ok_or_else(|| wrong("the week or its day"));
        }
        let base_year = from.map(|((year, _, _), _)| year);
        if let Some(day) = self.get("ordinalDay") {
            return ordinal_date(year(base_year)?, day).ok_or_else(|| wrong("`ordinalDay`"));
        }
        if self.has_any(&["quarter", "dayOfQuarter"]) {
            return self.quarter_date(year(base_year)?, base);
        }
        let year = year(base_year)?;
        if base.is_none() && self.get("day").is_some() && self.get("month").is_none() {
            return Err("`day` needs a `month`".into());
        }
        let month = self.get("month").or(from.map(|((_, month, _), _)| month)).unwrap_or(1);
        let day = self.get("day").or(from.map(|((_, _, day), _)| day)).unwrap_or(1);
        date(year, month, day).ok_or_else(|| wrong("the date"))
    }

    fn quarter_date(&self, year: i64, base: Option<Date>) -> Result<Date> {
        let (month, day) = base.map_or((1, 1), |d| {
            let (_, month, day) = date_of(d.0);
            (month, day)
        });
        let quarter = match (self.get("quarter"), base) {
            (Some(quarter), _) => quarter,
            (None, Some(_)) => quarter_of(month),
            (None, None) => return Err("`dayOfQuarter` needs a `quarter`".into()),
        };
        if !(1..=4).contains(&quarter) {
            return Err("`quarter` is out of range".into());
        }
        let first = (quarter - 1) * 3 + 1;
        if let Some(day) = self.get("dayOfQuarter") {
            let begin = date(year, first, 1).ok_or("the year is out of range")?;
            let found = Date(begin.0 + day - 1);
            let (_, month, _) = date_of(found.0);
            let inside = day >= 1 && quarter_of(month) == quarter && found.0 - begin.0 < 92;
            return if inside { Ok(found) } else { Err("`dayOfQuarter` is out of range".into()) };
        }
        // Without further fields, the same month and day within the given quarter.
        let month = self.get("month").unwrap_or(first + (month - 1) % 3);
        let day = self.get("day").unwrap_or(day);
        date(year, month, day).ok_or_else(|| "the date is out of range".into())
    }

    /// The time of day of these fields, on top of another one.
    pub fn time(&self, base: Option<LocalTime>) -> Result<LocalTime> {
        let from = base.map_or(0, |t| t.0);
        if base.is_none() {
            let order = ["hour", "minute", "second"];
            for pair in order.windows(2) {
                if self.get(pair[1]).is_some() && self.get(pair[0]).is_none() {
                    return Err(format!("`{}` needs `{}`", pair[1], pair[0]));
                }
            }
            let parts = ["millisecond", "microsecond", "nanosecond"];
            if self.has_any(&parts) && self.get("second").is_none() {
                return Err("a part of a second needs the `second`".into());
            }
        }
        let hour = self.get("hour").unwrap_or(from / HOUR);
        let minute = self.get("minute").unwrap_or(from / MINUTE % 60);
        let second = self.get("second").unwrap_or(from / SECOND % 60);
        let nanos = self.part_of_second(from % SECOND)?;
        local_time(hour, minute, second, nanos).ok_or_else(|| "the time is out of range".into())
    }

    /// Milliseconds, microseconds and nanoseconds are added. A given larger part limits the smaller ones to below
    /// 1,000.
    fn part_of_second(&self, base: i64) -> Result<i64> {
        let (milli, micro, nano) = (self.get("millisecond"), self.get("microsecond"), self.get("nanosecond"));
        if milli.is_none() && micro.is_none() && nano.is_none() {
            return Ok(base);
        }
        let micro_most = if milli.is_some() { 999 } else { 999_999 };
        let nano_most = match (milli, micro) {
            (_, Some(_)) => 999,
            (Some(_), None) => 999_999,
            (None, None) => 999_999_999,
        };
        for (value, most, name) in
            [(milli, 999, "millisecond"), (micro, micro_most, "microsecond"), (nano, nano_most, "nanosecond")]
        {
            if value.is_some_and(|v| !(0..=most).contains(&v)) {
                return Err(format!("`{name}` is out of range"));
            }
        }
        let given = milli.unwrap_or(0) * 1_000_000 + micro.unwrap_or(0) * 1_000 + nano.unwrap_or(0);
        Ok(if self.adds_parts { base + given } else { given })
    }

    pub fn local_date_time(&self, base: &TemporalBase) -> Result<LocalDateTime> {
        let time = if base.time.is_none() && !self.has_any(&TIME) { LocalTime(0) } else { self.time(base.time)? };
        Ok(LocalDateTime { date: self.date(base.date)?, time })
    }

    /// A time with its zone. A base in another zone is converted to the new zone before the fields apply.
    pub fn zoned_time(&self, base: &TemporalBase) -> Result<ZonedTime> {
        let zone = self.zone.clone().or_else(|| base.zone.clone()).unwrap_or(Zone::UTC);
        let offset = |zone: &Zone| zone.fixed_offset().ok_or("a time takes an offset, not the name of a zone");
        let to = offset(&zone)?;
        let time = match (base.time, &base.zone, &self.zone) {
            (Some(time), Some(old), Some(_)) => {
                let moved = time.0 + i64::from(to - offset(old)?) * SECOND;
                Some(LocalTime(moved.rem_euclid(super::DAY)))
            }
            (time, _, _) => time,
        };
        Ok(ZonedTime { local: self.time(time)?, offset: to })
    }

    /// A date and time with its zone. The fields apply in the zone of the base, and the result is converted to the new
    /// zone.
    pub fn date_time(&self, base: &TemporalBase) -> Result<DateTime> {
        let local = self.local_date_time(base)?;
        match (&base.zone, &self.zone) {
            (Some(old), Some(new)) => {
                let instant = local.nanos() - i128::from(offset_of_local(old, local)) * i128::from(SECOND);
                Ok(new.at_instant(instant))
            }
            (None, Some(zone)) | (Some(zone), None) => Ok(zone.at_local(local)),
            (None, None) => Ok(Zone::UTC.at_local(local)),
        }
    }
}

/// Fields of a time of day.
pub const TIME: [&str; 6] = ["hour", "minute", "second", "millisecond", "microsecond", "nanosecond"];

#[cfg(test)]
mod tests {
    use super::super::text::{parse_date, parse_local_time, parse_time};
    use super::*;

    fn fields(numbers: &[(&'static str, i64)]) -> TemporalFields {
        TemporalFields { numbers: numbers.iter().copied().collect(), ..TemporalFields::default() }
    }

    #[test]
    fn dates_from_fields() {
        for (given, base, want) in [
            (vec![("year", 1984), ("month", 10), ("day", 11)], None, "1984-10-11"),
            (vec![("year", 1984), ("month", 10)], None, "1984-10-01"),
            (vec![("year", 1984)], None, "1984-01-01"),
            (vec![("year", 1817), ("week", 1)], None, "1816-12-30"),
            (vec![("year", 1817), ("week", 1), ("dayOfWeek", 2)], None, "1816-12-31"),
            (vec![("week", 2), ("dayOfWeek", 3)], Some("1816-12-30"), "1817-01-08"),
            (vec![("week", 2)], Some("1816-12-31"), "1817-01-07"),
            (vec![("year", 1984), ("quarter", 3), ("dayOfQuarter", 45)], None, "1984-08-14"),
            (vec![("year", 1984), ("quarter", 3)], None, "1984-07-01"),
            (vec![("quarter", 3)], Some("1984-10-11"), "1984-07-11"),
            (vec![("year", 1984), ("ordinalDay", 202)], None, "1984-07-20"),
            (vec![("day", 28)], Some("1984-10-11"), "1984-10-28"),
            (vec![("year", 28)], Some("1984-10-11"), "0028-10-11"),
        ] {
            let base = base.map(|b| parse_date(b).unwrap());
            assert_eq!(fields(&given).date(base).map(|d| d.to_string()).as_deref(), Ok(want), "{given:?}");
        }
        for given in [
            vec![],
            vec![("year", 1984), ("day", 1)],
            vec![("year", 1984), ("month", 13)],
            vec![("year", 1984), ("week", 53)],
            vec![("year", 1985), ("quarter", 1), ("dayOfQuarter", 91)],
            vec![("year", 1984), ("quarter", 5)],
            vec![("year", 1_000_000_000)],
        ] {
            assert!(fields(&given).date(None).is_err(), "{given:?}");
        }
    }

    #[test]
    fn times_from_fields() {
        for (given, base, want) in [
            (
                vec![
                    ("hour", 12),
                    ("minute", 31),
                    ("second", 14),
                    ("millisecond", 645),
                    ("microsecond", 876),
                    ("nanosecond", 123),
                ],
                None,
                "12:31:14.645876123",
            ),
            (vec![("hour", 12), ("minute", 31), ("second", 14), ("microsecond", 645_876)], None, "12:31:14.645876"),
            (vec![("hour", 12)], None, "12:00"),
            (vec![("second", 42)], Some("12:31:14.645"), "12:31:42.645"),
            (vec![], Some("12:31"), "12:31"),
        ] {
            let base = base.map(|b| parse_local_time(b).unwrap());
            assert_eq!(fields(&given).time(base).map(|t| t.to_string()).as_deref(), Ok(want), "{given:?}");
        }
        for given in [
            vec![("minute", 1)],
            vec![("hour", 24)],
            vec![("hour", 1), ("second", 1)],
            vec![("hour", 1), ("minute", 1), ("second", 1), ("millisecond", 1), ("microsecond", 1_000)],
        ] {
            assert!(fields(&given).time(None).is_err(), "{given:?}");
        }
    }

    #[test]
    fn a_new_zone_keeps_the_moment() {
        let old = parse_time("12:31:14.645876+01:00").unwrap();
        let base = TemporalBase { time: Some(old.local), zone: Some(Zone::Offset(old.offset)), date: None };
        let zone = Some(Zone::Offset(5 * 3_600));
        let moved = TemporalFields { zone: zone.clone(), ..TemporalFields::default() }.zoned_time(&base).unwrap();
        assert_eq!(moved.to_string(), "16:31:14.645876+05:00");
        let and_changed = TemporalFields { zone, ..fields(&[("second", 42)]) }.zoned_time(&base).unwrap();
        assert_eq!(and_changed.to_string(), "16:31:42.645876+05:00");
        let attached = TemporalFields { zone: Some(Zone::Offset(-3_600)), ..TemporalFields::default() };
        assert_eq!(
            attached.zoned_time(&TemporalBase { zone: None, ..base }).unwrap().to_string(),
            "12:31:14.645876-01:00"
        );
        let at = |zone: &str, year| {
            let zone = Zone::named(zone);
            let given = TemporalFields { zone, ..fields(&[("year", year), ("month", 7), ("day", 21)]) };
            given.date_time(&TemporalBase::default()).unwrap().to_string()
        };
        assert_eq!(at("Europe/Berlin", 1818), "1818-07-21T00:00+00:53:28[Europe/Berlin]", "by the sun");
        assert_eq!(at("Europe/Stockholm", 2015), "2015-07-21T00:00+02:00[Europe/Stockholm]");
    }
}
