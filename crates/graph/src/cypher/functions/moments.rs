//! Functions that create, truncate and measure dates, times and durations, and the components of such values.

use super::super::temporal::arithmetic::{between, in_days, in_months, truncated};
use super::super::temporal::calendar::{date_of, day_of_quarter, ordinal, quarter_of, week_of, weekday};
use super::super::temporal::fields::{NUMBERS, TemporalBase, TemporalFields};
use super::super::temporal::zone::Zone;
use super::super::temporal::{self, DAY, Date, Duration, HOUR, LocalDateTime, LocalTime, MINUTE, SECOND, ZonedTime};
use super::{FaultClass, Function, FunctionContext, FunctionError, FunctionResult, Value};
use crate::convert::to_i128;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Date,
    LocalTime,
    Time,
    LocalDateTime,
    DateTime,
}

pub(super) fn find(name: &str) -> Option<Function> {
    let of = |least, most, run| Some(Function { least, most, run });
    match name {
        "date" | "date.transaction" | "date.statement" | "date.realtime" => of(0, 1, |a, s| make(Kind::Date, a, s)),
        "localtime" | "localtime.transaction" | "localtime.statement" | "localtime.realtime" => {
            of(0, 1, |a, s| make(Kind::LocalTime, a, s))
        }
        "time" | "time.transaction" | "time.statement" | "time.realtime" => of(0, 1, |a, s| make(Kind::Time, a, s)),
        "localdatetime" | "localdatetime.transaction" | "localdatetime.statement" | "localdatetime.realtime" => {
            of(0, 1, |a, s| make(Kind::LocalDateTime, a, s))
        }
        "datetime" | "datetime.transaction" | "datetime.statement" | "datetime.realtime" => {
            of(0, 1, |a, s| make(Kind::DateTime, a, s))
        }
        "datetime.fromepoch" => of(2, 2, |a, _| from_epoch(&a[0], SECOND, &a[1])),
        "datetime.fromepochmillis" => of(1, 1, |a, _| from_epoch(&a[0], 1_000_000, &Value::Integer(0))),
        "date.truncate" => of(1, 3, |a, s| truncate(Kind::Date, a, s)),
        "localtime.truncate" => of(1, 3, |a, s| truncate(Kind::LocalTime, a, s)),
        "time.truncate" => of(1, 3, |a, s| truncate(Kind::Time, a, s)),
        "localdatetime.truncate" => of(1, 3, |a, s| truncate(Kind::LocalDateTime, a, s)),
        "datetime.truncate" => of(1, 3, |a, s| truncate(Kind::DateTime, a, s)),
        "duration" => of(1, 1, |a, _| duration(&a[0])),
        "duration.between" => of(2, 2, |a, _| measure(a, Measure::Between)),
        "duration.inmonths" => of(2, 2, |a, _| measure(a, Measure::Months)),
        "duration.indays" => of(2, 2, |a, _| measure(a, Measure::Days)),
        "duration.inseconds" => of(2, 2, |a, _| measure(a, Measure::Seconds)),
        _ => None,
    }
}

fn wrong(message: impl Into<String>) -> FunctionError {
    FunctionError { class: FaultClass::Argument, detail: "InvalidArgumentValue", message: message.into() }
}

/// Creates a value of a kind: from nothing (the current time), a text, another date or time, or a map.
fn make(kind: Kind, a: &[Value], around: &FunctionContext) -> FunctionResult {
    match a.first() {
        None => finish(kind, &TemporalFields::default(), &now(around)),
        Some(Value::Null) => Ok(Value::Null),
        Some(Value::Text(text)) => parse(kind, text),
        Some(Value::Map(map)) => {
            if let Some(found) = epoch(kind, map)? {
                return Ok(found);
            }
            let (fields, base) = read(map)?;
            finish(kind, &fields, &base)
        }
        Some(other) => {
            let base = base_of(other)
                .ok_or_else(|| FunctionError::kind("a date or time", "a text, a map or another one", other))?;
            finish(kind, &TemporalFields::default(), &base)
        }
    }
}

fn now(around: &FunctionContext) -> TemporalBase {
    let local = LocalDateTime::of_nanos(around.now);
    TemporalBase { date: Some(local.date), time: Some(local.time), zone: Some(Zone::UTC) }
}

fn finish(kind: Kind, fields: &TemporalFields, base: &TemporalBase) -> FunctionResult {
    let made = match kind {
        Kind::Date => fields.date(base.date).map(Value::Date),
        Kind::LocalTime => fields.time(base.time).map(Value::LocalTime),
        Kind::Time => {
            // The offset of the named zone on that day, if there is a date.
            let fixed = |zone: &Option<Zone>| {
                let at = base.date.unwrap_or(Date(0)).0;
                let instant = i128::from(at) * i128::from(DAY) + i128::from(base.time.map_or(0, |t| t.0));
                zone.as_ref().map(|z| Zone::Offset(z.offset_at(instant)))
            };
            let base = TemporalBase { zone: fixed(&base.zone), ..base.clone() };
            TemporalFields { zone: fixed(&fields.zone), ..fields.clone() }.zoned_time(&base).map(Value::Time)
        }
        Kind::LocalDateTime => fields.local_date_time(base).map(Value::LocalDateTime),
        Kind::DateTime => fields.date_time(base).map(|v| Value::DateTime(Arc::new(v))),
    };
    made.map_err(wrong)
}

fn parse(kind: Kind, text: &str) -> FunctionResult {
    let found = match kind {
        Kind::Date => temporal::parse_date(text).map(Value::Date),
        Kind::LocalTime => temporal::parse_local_time(text).map(Value::LocalTime),
        Kind::Time => temporal::parse_time(text).map(Value::Time),
        Kind::LocalDateTime => temporal::parse_local_date_time(text).map(Value::LocalDateTime),
        Kind::DateTime => temporal::parse_date_time(text).and_then(|(local, offset, zone)| {
            let zone = match (zone, offset) {
                (Some(name), _) => Zone::parse(name)?,
                (None, Some(offset)) => Zone::Offset(offset),
                (None, None) => Zone::UTC,
            };
            // A given offset decides between the two moments of a local time that occurs twice.
            let by_offset = offset.map(|o| zone.at_instant(local.nanos() - i128::from(o) * i128::from(SECOND)));
            Some(Value::DateTime(Arc::new(by_offset.unwrap_or_else(|| zone.at_local(local)))))
        }),
    };
    found.ok_or_else(|| wrong(format!("`{text}` cannot be read as a {kind:?}")))
}

/// The parts of a date or time.
fn base_of(value: &Value) -> Option<TemporalBase> {
    let none = TemporalBase::default();
    Some(match value {
        Value::Date(d) => TemporalBase { date: Some(*d), ..none },
        Value::LocalTime(t) => TemporalBase { time: Some(*t), ..none },
        Value::Time(t) => TemporalBase { time: Some(t.local), zone: Some(Zone::Offset(t.offset)), ..none },
        Value::LocalDateTime(v) => TemporalBase { date: Some(v.date), time: Some(v.time), ..none },
        Value::DateTime(v) => {
            let named = v.zone.as_deref().and_then(Zone::named);
            let zone = named.unwrap_or(Zone::Offset(v.offset));
            TemporalBase { date: Some(v.local.date), time: Some(v.local.time), zone: Some(zone) }
        }
        _ => return None,
    })
}

/// The fields of a map, and the dates and times that they apply to.
fn read(map: &BTreeMap<String, Value>) -> Result<(TemporalFields, TemporalBase), FunctionError> {
    let (mut fields, mut base) = (TemporalFields::default(), TemporalBase::default());
    for (name, value) in map {
        if value.is_null() {
            continue;
        }
        if let Some(known) = NUMBERS.iter().find(|n| n.eq_ignore_ascii_case(name)) {
            let Value::Integer(n) = value else { return Err(FunctionError::kind(known, "an integer", value)) };
            fields.numbers.insert(known, *n);
            continue;
        }
        let part = || base_of(value).ok_or_else(|| FunctionError::kind(name, "a date or time", value));
        match name.to_ascii_lowercase().as_str() {
            "timezone" => {
                let Value::Text(text) = value else { return Err(FunctionError::kind("timezone", "a text", value)) };
                fields.zone = Some(Zone::parse(text).ok_or_else(|| wrong(format!("no time zone `{text}`")))?);
            }
            "date" => base.date = part()?.date.or(base.date),
            "time" => {
                let part = part()?;
                (base.time, base.zone) = (part.time, part.zone.or(base.zone));
            }
            "datetime" => base = part()?,
            _ => return Err(wrong(format!("a date or time has no field `{name}`"))),
        }
    }
    Ok((fields, base))
}

/// `{epochSeconds: …}` and `{epochMillis: …}` are moments of their own.
fn epoch(kind: Kind, map: &BTreeMap<String, Value>) -> Result<Option<Value>, FunctionError> {
    let find = |name: &str| map.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v);
    let (value, unit) = match (find("epochSeconds"), find("epochMillis")) {
        (Some(value), _) => (value, SECOND),
        (None, Some(value)) => (value, 1_000_000),
        (None, None) => return Ok(None),
    };
    if kind != Kind::DateTime {
        return Err(wrong("only a datetime can be made from an epoch"));
    }
    from_epoch(value, unit, find("nanosecond").unwrap_or(&Value::Integer(0))).map(Some)
}

fn from_epoch(count: &Value, unit: i64, nanos: &Value) -> FunctionResult {
    match (count, nanos) {
        (Value::Integer(n), Value::Integer(nanos)) => {
            let instant = i128::from(*n) * i128::from(unit) + i128::from(*nanos);
            Ok(Value::DateTime(Arc::new(Zone::UTC.at_instant(instant))))
        }
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Integer(_), other) | (other, _) => Err(FunctionError::kind("fromEpoch", "integers", other)),
    }
}

/// `(unit, value, fields)`: truncates the value, then sets the fields.
fn truncate(kind: Kind, a: &[Value], around: &FunctionContext) -> FunctionResult {
    let Value::Text(unit) = &a[0] else { return Err(FunctionError::kind("truncate", "a unit", &a[0])) };
    let base = match a.get(1) {
        None => now(around),
        Some(Value::Null) => return Ok(Value::Null),
        Some(value) => base_of(value).ok_or_else(|| FunctionError::kind("truncate", "a date or time", value))?,
    };
    let at = LocalDateTime { date: base.date.unwrap_or(Date(0)), time: base.time.unwrap_or(LocalTime(0)) };
    let cut = truncated(unit, at).ok_or_else(|| wrong(format!("no unit `{unit}`")))?;
    let clock = matches!(kind, Kind::LocalTime | Kind::Time);
    if base.date.is_none() && !clock || base.time.is_none() && clock {
        return Err(wrong(format!("a {kind:?} cannot be cut from what has no such part")));
    }
    let cut = TemporalBase { date: Some(cut.date), time: Some(cut.time), zone: base.zone };
    let (fields, _) = match a.get(2) {
        Some(Value::Map(map)) => read(map)?,
        Some(Value::Null) | None => (TemporalFields::default(), TemporalBase::default()),
        Some(other) => return Err(FunctionError::kind("truncate", "a map of fields", other)),
    };
    // A given zone is attached without conversion, because a truncated value is no longer a moment.
    let cut = if fields.zone.is_some() { TemporalBase { zone: None, ..cut } } else { cut };
    finish(kind, &TemporalFields { adds_parts: true, ..fields }, &cut)
}

/// Names of the components of a duration, with the size of each in months, days or nanoseconds.
const UNITS: [(&str, f64, u8); 10] = [
    ("years", 12.0, 0),
    ("quarters", 3.0, 0),
    ("months", 1.0, 0),
    ("weeks", 7.0, 1),
    ("days", 1.0, 1),
    ("hours", HOUR as f64, 2),
    ("minutes", MINUTE as f64, 2),
    ("seconds", SECOND as f64, 2),
    ("milliseconds", 1e6, 2),
    ("microseconds", 1e3, 2),
];

fn duration(value: &Value) -> FunctionResult {
    let too_long = || wrong("the duration is too long");
    match value {
        Value::Null => Ok(Value::Null),
        Value::Duration(d) => Ok(Value::Duration(Arc::clone(d))),
        Value::Text(text) => {
            let found = temporal::parse_duration(text).map(Value::duration);
            found.ok_or_else(|| wrong(format!("`{text}` cannot be read as a duration")))
        }
        Value::Map(map) => {
            // Whole numbers are added exactly, fractions with the precision of floating point.
            let (mut whole, mut parts) = ([0i128; 3], [0f64; 3]);
            for (name, value) in map.iter() {
                let lower = name.to_ascii_lowercase();
                let known = UNITS.iter().find(|(unit, _, _)| *unit == lower).map(|(_, size, place)| (*size, *place));
                let known = known.or((lower == "nanoseconds").then_some((1.0, 2)));
                let (size, place) = known.ok_or_else(|| wrong(format!("a duration has no part `{name}`")))?;
                let place = usize::from(place);
                match value {
                    Value::Null => return Ok(Value::Null),
                    Value::Integer(n) => whole[place] += i128::from(*n) * to_i128(size),
                    Value::Float(f) => parts[place] += f * size,
                    other => return Err(FunctionError::kind("duration", "numbers", other)),
                }
            }
            let left = Duration::new(whole[0], whole[1], whole[2]).ok_or_else(too_long)?;
            let right = Duration::spilled(parts[0], parts[1], parts[2]).ok_or_else(too_long)?;
            left.plus(&right).map(Value::duration).ok_or_else(too_long)
        }
        other => Err(FunctionError::kind("duration", "a text or a map", other)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Between,
    Months,
    Days,
    Seconds,
}

/// The time from one value to another. If only one of them has a date or a zone, it applies to both. A missing time is
/// midnight. Months and days are those of the calendar, and the rest is elapsed time.
fn measure(a: &[Value], by: Measure) -> FunctionResult {
    if a.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let base = |v: &Value| base_of(v).ok_or_else(|| FunctionError::kind("duration", "dates or times", v));
    let (from, to) = (base(&a[0])?, base(&a[1])?);
    let local = |b: &TemporalBase, other: &TemporalBase| LocalDateTime {
        date: if other.date.is_some() { b.date.or(other.date) } else { None }.unwrap_or(Date(0)),
        time: b.time.unwrap_or(LocalTime(0)),
    };
    let mut start = local(&from, &to);
    let mut end = local(&to, &from);
    if from.date.is_none() != to.date.is_none() {
        // Only one has a date, so both are times of that day.
        let date = from.date.or(to.date).unwrap_or(Date(0));
        (start.date, end.date) = (date, date);
    }
    let zone = from.zone.clone().or_else(|| to.zone.clone()).unwrap_or(Zone::UTC);
    let instant = |zone: &Zone, local: LocalDateTime| {
        local.nanos() - i128::from(temporal::zone::offset_of_local(zone, local)) * i128::from(SECOND)
    };
    let ended = instant(to.zone.as_ref().unwrap_or(&zone), end);
    let end = zone.local_of(ended);
    let found = match by {
        Measure::Months => Some(in_months(start, end)),
        Measure::Days => in_days(start, end),
        Measure::Seconds => Duration::new(0, 0, ended - instant(&zone, start)),
        Measure::Between => between(start, end).and_then(|d| {
            let calendar = Duration { seconds: 0, nanos: 0, ..d };
            let left = ended - instant(&zone, start.plus(&calendar)?);
            Duration::new(i128::from(d.months), i128::from(d.days), left)
        }),
    };
    found.map(Value::duration).ok_or_else(|| wrong("the duration is too long"))
}

/// A component of a date, time or duration by its name. `None` if it has no such component.
pub fn component(value: &Value, name: &str) -> Option<Value> {
    if let Value::Duration(d) = value {
        return duration_part(d, name).map(Value::Integer);
    }
    let base = base_of(value)?;
    let number = base.date.and_then(|d| date_part(d, name)).or_else(|| base.time.and_then(|t| time_part(t, name)));
    if let Some(number) = number {
        return Some(Value::Integer(number));
    }
    let offset = match value {
        Value::Time(t) => t.offset,
        Value::DateTime(v) => v.offset,
        _ => return None,
    };
    // Far outside of the usual years, the milliseconds since 1970 do not fit.
    let integer = |n: i128| i64::try_from(n).map_or(Value::Null, Value::Integer);
    let shown = || ZonedTime { local: LocalTime(0), offset }.to_string()["00:00".len()..].to_string();
    Some(match (name, value) {
        ("timezone", Value::DateTime(v)) => Value::text(&v.zone.as_deref().map_or_else(shown, str::to_owned)),
        ("timezone" | "offset", _) => Value::text(&shown()),
        ("offsetMinutes", _) => Value::Integer(i64::from(offset / 60)),
        ("offsetSeconds", _) => Value::Integer(i64::from(offset)),
        ("epochSeconds", Value::DateTime(v)) => integer(v.instant().div_euclid(i128::from(SECOND))),
        ("epochMillis", Value::DateTime(v)) => integer(v.instant().div_euclid(1_000_000)),
        _ => return None,
    })
}

fn date_part(date: Date, name: &str) -> Option<i64> {
    let (year, month, day) = date_of(date.0);
    Some(match name {
        "year" => year,
        "quarter" => quarter_of(month),
        "month" => month,
        "week" => week_of(date.0).1,
        "weekYear" => week_of(date.0).0,
        "dayOfQuarter" | "quarterDay" => day_of_quarter(date.0),
        "ordinalDay" => ordinal(date.0),
        "dayOfWeek" | "weekDay" => weekday(date.0),
        "day" => day,
        _ => return None,
    })
}

fn time_part(time: LocalTime, name: &str) -> Option<i64> {
    Some(match name {
        "hour" => time.0 / HOUR,
        "minute" => time.0 / MINUTE % 60,
        "second" => time.0 / SECOND % 60,
        "millisecond" => time.0 % SECOND / 1_000_000,
        "microsecond" => time.0 % SECOND / 1_000,
        "nanosecond" => time.0 % SECOND,
        _ => return None,
    })
}

fn duration_part(d: &Duration, name: &str) -> Option<i64> {
    let nanos = d.clock_nanos();
    let count = |unit: i64| i64::try_from(nanos.div_euclid(i128::from(unit))).unwrap_or(i64::MAX);
    Some(match name {
        "years" => d.months / 12,
        "quarters" => d.months / 3,
        "months" => d.months,
        "weeks" => d.days / 7,
        "days" => d.days,
        "hours" => d.seconds / 3_600,
        "minutes" => d.seconds / 60,
        "seconds" => d.seconds,
        "milliseconds" => count(1_000_000),
        "microseconds" => count(1_000),
        "nanoseconds" => count(1),
        "quartersOfYear" => d.months / 3 % 4,
        "monthsOfYear" => d.months % 12,
        "monthsOfQuarter" => d.months % 3,
        "daysOfWeek" => d.days % 7,
        "minutesOfHour" => d.seconds / 60 % 60,
        "secondsOfMinute" => d.seconds % 60,
        "millisecondsOfSecond" => d.nanos / 1_000_000,
        "microsecondsOfSecond" => d.nanos / 1_000,
        "nanosecondsOfSecond" => d.nanos,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{FunctionContext, find, to_text};
    use super::*;

    const AROUND: FunctionContext = FunctionContext { now: 1_700_000_000_000_000_000, longest_list: 1_000 };

    fn call(name: &str, arguments: &[Value]) -> Result<String, String> {
        let found = (find(name).unwrap().run)(arguments, &AROUND).map_err(|e| e.detail.to_string())?;
        match to_text(&found).unwrap() {
            Value::Text(text) => Ok(text.to_string()),
            _ => Ok("null".into()),
        }
    }

    fn map(entries: &[(&str, Value)]) -> Value {
        Value::Map(Arc::new(entries.iter().map(|(k, v)| (k.to_string(), v.clone())).collect()))
    }

    fn int(n: i64) -> Value {
        Value::Integer(n)
    }

    fn made(name: &str, text: &str) -> Value {
        (find(name).unwrap().run)(&[Value::text(text)], &AROUND).unwrap()
    }

    #[test]
    fn creating_moments() {
        let t = Value::text;
        assert_eq!(call("date", &[]).unwrap(), "2023-11-14");
        assert_eq!(call("datetime", &[]).unwrap(), "2023-11-14T22:13:20Z");
        assert_eq!(call("date", &[Value::Null]).unwrap(), "null");
        assert_eq!(call("date", &[t("2015-W30-2")]).unwrap(), "2015-07-21");
        assert_eq!(
            call("datetime", &[t("2015-07-21T21:40:32.142[Europe/London]")]).unwrap(),
            "2015-07-21T21:40:32.142+01:00[Europe/London]"
        );
        assert_eq!(call("date", &[t("x")]).unwrap_err(), "InvalidArgumentValue");
        assert_eq!(call("date", &[int(1)]).unwrap_err(), "InvalidArgumentType");
        assert_eq!(call("date", &[map(&[("year", int(1)), ("epoch", int(1))])]).unwrap_err(), "InvalidArgumentValue");
        assert_eq!(call("date", &[map(&[("year", t("x"))])]).unwrap_err(), "InvalidArgumentType");
        assert_eq!(
            call("datetime", &[map(&[("epochSeconds", int(416_779)), ("nanosecond", int(42))])]).unwrap(),
            "1970-01-05T19:46:19.000000042Z"
        );
        assert_eq!(call("datetime.fromepochmillis", &[int(237_821_673_987)]).unwrap(), "1977-07-15T13:34:33.987Z");
        let moment = made("datetime", "1984-10-11T12:31:14.645+01:00");
        assert_eq!(call("date", std::slice::from_ref(&moment)).unwrap(), "1984-10-11");
        assert_eq!(
            call("time", &[map(&[("time", moment.clone()), ("timezone", t("+05:00")), ("second", int(42))])]).unwrap(),
            "16:31:42.645+05:00"
        );
        assert_eq!(
            call("localdatetime", &[map(&[("datetime", moment), ("day", int(28))])]).unwrap(),
            "1984-10-28T12:31:14.645"
        );
    }

    #[test]
    fn truncating_and_measuring_moments() {
        let t = Value::text;
        let date = made("date", "1984-10-11");
        assert_eq!(call("date.truncate", &[t("decade"), date.clone(), map(&[("day", int(2))])]).unwrap(), "1980-01-02");
        assert_eq!(
            call(
                "datetime.truncate",
                &[t("week"), date.clone(), map(&[("dayOfWeek", int(5)), ("timezone", t("Europe/London"))])]
            )
            .unwrap(),
            "1984-10-12T00:00+01:00[Europe/London]"
        );
        assert_eq!(
            call(
                "localtime.truncate",
                &[t("minute"), made("time", "12:31:14.6+01:00"), map(&[("nanosecond", int(2))])]
            )
            .unwrap(),
            "12:31:00.000000002"
        );
        assert_eq!(call("date.truncate", &[t("hour"), made("time", "12:31Z")]).unwrap_err(), "InvalidArgumentValue");
        assert_eq!(call("duration.between", &[date.clone(), made("date", "2015-06-24")]).unwrap(), "P30Y8M13D");
        assert_eq!(
            call("duration.between", &[made("localtime", "14:30"), made("time", "16:30+01:00")]).unwrap(),
            "PT2H"
        );
        assert_eq!(call("duration.between", &[made("time", "14:30Z"), made("time", "16:30+01:00")]).unwrap(), "PT1H");
        assert_eq!(call("duration.indays", &[date.clone(), made("localtime", "16:30")]).unwrap(), "PT0S");
        assert_eq!(call("duration.inseconds", &[date, Value::Null]).unwrap(), "null");
        let parts = map(&[
            ("years", Value::Float(12.5)),
            ("months", Value::Float(5.5)),
            ("days", Value::Float(14.5)),
            ("hours", Value::Float(16.5)),
            ("minutes", Value::Float(12.5)),
            ("seconds", Value::Float(70.5)),
            ("nanoseconds", int(3)),
        ]);
        assert_eq!(call("duration", &[parts]).unwrap(), "P12Y11M29DT33H58M13.500000003S");
        assert_eq!(call("duration", &[map(&[("fortnights", int(1))])]).unwrap_err(), "InvalidArgumentValue");
    }

    #[test]
    fn components_of_moments() {
        let moment = made("datetime", "1984-11-11T12:31:14.645876123+01:00");
        for (name, want) in [
            ("year", 1984),
            ("quarter", 4),
            ("month", 11),
            ("week", 45),
            ("weekYear", 1984),
            ("day", 11),
            ("ordinalDay", 316),
            ("weekDay", 7),
            ("dayOfQuarter", 42),
            ("hour", 12),
            ("minute", 31),
            ("second", 14),
            ("millisecond", 645),
            ("microsecond", 645_876),
            ("nanosecond", 645_876_123),
            ("offsetMinutes", 60),
            ("epochSeconds", 469_020_674),
        ] {
            assert!(
                matches!(component(&moment, name), Some(Value::Integer(n)) if n == want),
                "{name}: {:?}",
                component(&moment, name)
            );
        }
        assert!(matches!(component(&moment, "timezone"), Some(Value::Text(t)) if *t == *"+01:00"));
        let lasting = Value::duration(temporal::parse_duration("P1Y4M10DT1H1M1.111111111S").unwrap());
        for (name, want) in [
            ("years", 1),
            ("months", 16),
            ("monthsOfYear", 4),
            ("days", 10),
            ("weeks", 1),
            ("hours", 1),
            ("minutesOfHour", 1),
            ("milliseconds", 3_661_111),
            ("nanosecondsOfSecond", 111_111_111),
        ] {
            assert!(matches!(component(&lasting, name), Some(Value::Integer(n)) if n == want), "{name}");
        }
        assert!(component(&moment, "years").is_none() && component(&int(1), "year").is_none());
    }
}
