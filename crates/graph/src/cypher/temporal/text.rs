//! Parses dates, times and durations, in the forms of ISO 8601 that openCypher accepts.

use super::calendar::{YEARS, days_in_month, days_in_year, days_of, first_monday, weeks_in_year};
use super::{Date, Duration, HOUR, LocalDateTime, LocalTime, MINUTE, SECOND, ZonedTime};
use crate::convert::to_i128;

/// `2015-07-21`, `20150721`, `2015-07`, `201507`, `2015-W30-2`, `2015W302`, `2015-W30`, `2015W30`, `2015-202`, `2015202`,
/// `2015`; years of more than four digits have a sign.
pub fn parse_date(text: &str) -> Option<Date> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let signed = rest.len() < text.len();
    // A signed year goes up to the next dash or W; an unsigned one has four digits.
    let end = if signed { rest.find(['-', 'W']).unwrap_or(rest.len()) } else { 4 };
    let year = sign * number(rest.get(..end)?)?;
    if !YEARS.contains(&year) {
        return None;
    }
    let rest = &rest[end..];
    if rest.is_empty() {
        return Some(Date(days_of(year, 1, 1)));
    }
    let dashed = rest.starts_with('-');
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    if let Some(week) = rest.strip_prefix('W') {
        let day = week.get(2..)?;
        let day = match (day.is_empty(), dashed) {
            (true, _) => 1,
            (false, true) => number(day.strip_prefix('-')?)?,
            (false, false) => number(day)?,
        };
        return week_date(year, number(&week[..2])?, day);
    }
    match (rest.len(), dashed) {
        (3, _) => ordinal_date(year, number(rest)?),
        (2, _) => date(year, number(rest)?, 1),
        (5, true) if rest.as_bytes()[2] == b'-' => date(year, number(&rest[..2])?, number(&rest[3..])?),
        (4, false) => date(year, number(&rest[..2])?, number(&rest[2..])?),
        _ => None,
    }
}

pub fn date(year: i64, month: i64, day: i64) -> Option<Date> {
    let fits = YEARS.contains(&year) && (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    fits.then(|| Date(days_of(year, month, day)))
}

pub fn week_date(year: i64, week: i64, day: i64) -> Option<Date> {
    let fits = YEARS.contains(&year) && (1..=weeks_in_year(year)).contains(&week) && (1..=7).contains(&day);
    fits.then(|| Date(first_monday(year) + (week - 1) * 7 + day - 1))
}

pub fn ordinal_date(year: i64, day: i64) -> Option<Date> {
    let fits = YEARS.contains(&year) && (1..=days_in_year(year)).contains(&day);
    fits.then(|| Date(days_of(year, 1, 1) + day - 1))
}

/// Parses a text that consists of digits only.
fn number(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// `21:40:32.142`, `214032.142`, `21:40`, `2140`, `21`.
pub fn parse_local_time(text: &str) -> Option<LocalTime> {
    let (clock, nanos) = match text.split_once(['.', ',']) {
        Some((clock, part)) => (clock, fraction(part)?),
        None => (text, 0),
    };
    let parts: Vec<i64> = if clock.contains(':') {
        clock.split(':').map(|p| if p.len() == 2 { number(p) } else { None }).collect::<Option<_>>()?
    } else {
        if clock.len() % 2 == 1 || !clock.is_ascii() {
            return None;
        }
        (0..clock.len()).step_by(2).map(|i| number(&clock[i..i + 2])).collect::<Option<_>>()?
    };
    let with_part = clock.len() < text.len();
    let (hour, minute, second) = match parts.as_slice() {
        [hour] if !with_part => (*hour, 0, 0),
        [hour, minute] if !with_part => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    local_time(hour, minute, second, nanos)
}

pub fn local_time(hour: i64, minute: i64, second: i64, nanos: i64) -> Option<LocalTime> {
    let fits = (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second)
        && (0..SECOND).contains(&nanos);
    fits.then(|| LocalTime(hour * HOUR + minute * MINUTE + second * SECOND + nanos))
}

/// Nanoseconds from up to nine digits after the decimal point.
fn fraction(digits: &str) -> Option<i64> {
    let missing = 9u32.checked_sub(u32::try_from(digits.len()).ok()?)?;
    Some(number(digits)? * 10i64.pow(missing))
}

/// `Z`, `+01:00`, `+0100`, `+01`, `+01:00:30`: seconds ahead of UTC.
pub fn parse_offset(text: &str) -> Option<i32> {
    if text == "Z" || text == "z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text[1..].split(':').collect();
    let colons = text.matches(':').count();
    let parts = digits.len() / 2;
    if digits.len() % 2 == 1 || !digits.is_ascii() || !(1..=3).contains(&parts) || colons != 0 && colons + 1 != parts {
        return None;
    }
    let part = |i: usize| digits.get(i * 2..i * 2 + 2).map_or(Some(0), number);
    let (hours, minutes, seconds) = (part(0)?, part(1)?, part(2)?);
    let total = i32::try_from(hours * 3_600 + minutes * 60 + seconds).ok()?;
    (minutes < 60 && seconds < 60 && total <= 18 * 3_600).then_some(sign * total)
}

/// Splits a time from its offset.
fn split_offset(text: &str) -> (&str, &str) {
    match text.find(['Z', 'z', '+', '-']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    }
}

/// UTC if there is no offset.
pub fn parse_time(text: &str) -> Option<ZonedTime> {
    let (clock, offset) = split_offset(text);
    let offset = if offset.is_empty() { 0 } else { parse_offset(offset)? };
    Some(ZonedTime { local: parse_local_time(clock)?, offset })
}

/// A date without a time is its midnight.
pub fn parse_local_date_time(text: &str) -> Option<LocalDateTime> {
    let (date, time) = match text.split_once(['T', 't']) {
        Some((date, time)) => (date, parse_local_time(time)?),
        None => (text, LocalTime(0)),
    };
    Some(LocalDateTime { date: parse_date(date)?, time })
}

/// The local date and time, the offset and the name of the zone. Offset and zone are optional.
pub fn parse_date_time(text: &str) -> Option<(LocalDateTime, Option<i32>, Option<&str>)> {
    let (text, zone) = match text.split_once('[') {
        Some((text, zone)) => (text, Some(zone.strip_suffix(']')?)),
        None => (text, None),
    };
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return Some((parse_local_date_time(text)?, None, zone));
    };
    let (clock, offset) = split_offset(time);
    let offset = if offset.is_empty() { None } else { Some(parse_offset(offset)?) };
    Some((LocalDateTime { date: parse_date(date)?, time: parse_local_time(clock)? }, offset, zone))
}

/// `P12Y5M14DT16H12M70S` with a fraction in any part, `P2.5W`, or `P2012-02-02T14:37:21.545`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1i8, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let rest = rest.strip_prefix(['P', 'p'])?;
    if rest.get(4..5) == Some("-") && rest.as_bytes()[..4].iter().all(u8::is_ascii_digit) {
        let at = parse_local_date_time_amounts(rest)?;
        return Duration::new(at.0, at.1, at.2);
    }
    let (date, time) = match rest.split_once(['T', 't']) {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let mut amounts = Amounts::default();
    for (part, units) in [(date, "YMWD"), (time, "HMS")] {
        let mut left = part;
        let mut last = 0;
        while !left.is_empty() {
            let end = left.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+')))?;
            let amount: f64 = left[..end].replace(',', ".").parse().ok()?;
            let whole: i128 = left[..end].split(['.', ',']).next()?.parse().unwrap_or(0);
            let unit = left[end..].chars().next()?.to_ascii_uppercase();
            // Each unit once, the larger ones first.
            let place = units.find(unit)? + 1;
            if place <= last {
                return None;
            }
            last = place;
            let nanos = if unit == 'S' { seconds(&left[..end])? } else { 0 };
            amounts.add(
                unit,
                part == time && !std::ptr::eq(date, time),
                amount * f64::from(sign),
                whole * i128::from(sign),
                nanos * i128::from(sign),
            );
            left = &left[end + unit.len_utf8()..];
        }
    }
    amounts.duration()
}

/// `2012-02-02T14:37:21.545` as a number of years, months, days, hours and so on.
fn parse_local_date_time_amounts(text: &str) -> Option<(i128, i128, i128)> {
    let (date, time) = text.split_once(['T', 't']).unwrap_or((text, "00"));
    let parts: Vec<i64> = date.split('-').map(number).collect::<Option<_>>()?;
    let [years, months, days] = parts.as_slice() else { return None };
    let time = parse_local_time(time)?;
    Some((i128::from(years * 12 + months), i128::from(*days), i128::from(time.0)))
}

/// Nanoseconds of a decimal number of seconds, computed without floating point.
fn seconds(text: &str) -> Option<i128> {
    let (whole, part) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let negative = whole.starts_with('-');
    let whole: i128 = if whole.is_empty() || whole == "-" { 0 } else { whole.parse().ok()? };
    let mut digits: String = part.chars().take(9).collect();
    while digits.len() < 9 {
        digits.push('0');
    }
    let part: i128 = digits.parse().ok()?;
    Some(whole * i128::from(SECOND) + if negative { -part } else { part })
}

/// Amounts of units. Whole amounts are exact; fractions of a larger unit are carried into smaller ones.
#[derive(Default)]
pub struct Amounts {
    months: i128,
    days: i128,
    nanos: i128,
    /// The fraction of months, in months.
    part_months: f64,
    part_days: f64,
}

impl Amounts {
    /// Adds an amount of a unit. Minutes and months have the same letter, which `clock` distinguishes. `exact` is the
    /// amount in nanoseconds if the unit is seconds.
    pub fn add(&mut self, unit: char, clock: bool, amount: f64, whole: i128, exact: i128) {
        let part = amount - whole as f64;
        match (unit, clock) {
            ('Y', _) => {
                self.months += whole * 12;
                self.part_months += part * 12.0;
            }
            ('M', false) => {
                self.months += whole;
                self.part_months += part;
            }
            ('W', _) => {
                self.days += whole * 7;
                self.part_days += part * 7.0;
            }
            ('D', _) => {
                self.days += whole;
                self.part_days += part;
            }
            ('H', _) => self.nanos += whole * i128::from(HOUR) + to_i128((part * HOUR as f64).round()),
            ('M', true) => self.nanos += whole * i128::from(MINUTE) + to_i128((part * MINUTE as f64).round()),
            _ => self.nanos += exact,
        }
    }

    pub fn duration(self) -> Option<Duration> {
        let whole = Duration::new(self.months, self.days, self.nanos)?;
        whole.plus(&Duration::spilled(self.part_months, self.part_days, 0.0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_in_all_forms() {
        for (text, want) in [
            ("2015-07-21", "2015-07-21"),
            ("20150721", "2015-07-21"),
            ("2015-07", "2015-07-01"),
            ("201507", "2015-07-01"),
            ("2015-W30-2", "2015-07-21"),
            ("2015W302", "2015-07-21"),
            ("2015-W30", "2015-07-20"),
            ("2015W30", "2015-07-20"),
            ("2015-202", "2015-07-21"),
            ("2015202", "2015-07-21"),
            ("2015", "2015-01-01"),
            ("-999999999-01-01", "-999999999-01-01"),
            ("+999999999-12-31", "+999999999-12-31"),
        ] {
            assert_eq!(parse_date(text).map(|d| d.to_string()).as_deref(), Some(want), "{text}");
        }
        for bad in ["", "2015-13-01", "2015-02-30", "2015-W54", "15-07-21", "2015-7-1", "x", "2015-000", "+-1", "2015é"]
        {
            assert_eq!(parse_date(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_and_moments() {
        for (text, want) in [
            ("21:40:32.142+0100", "21:40:32.142+01:00"),
            ("214032.142Z", "21:40:32.142Z"),
            ("214032-0100", "21:40:32-01:00"),
            ("21:40-01:30", "21:40-01:30"),
            ("2140-00:00", "21:40Z"),
            ("2140-02", "21:40-02:00"),
            ("22+18:00", "22:00+18:00"),
            ("12:34:54.7", "12:34:54.700Z"),
        ] {
            assert_eq!(parse_time(text).map(|t| t.to_string()).as_deref(), Some(want), "{text}");
        }
        for bad in ["", "24:00", "21:60", "2", "21:4", "21.5", "21:40:32.1234567890", "21:40+19:00", "21:40+1", "2é"] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
        assert_eq!(parse_local_date_time("2015-W30T2140").unwrap().to_string(), "2015-07-20T21:40");
        let (local, offset, zone) = parse_date_time("2015-07-21T21:40:32.142+02:00[Europe/Stockholm]").unwrap();
        assert_eq!(
            (local.to_string().as_str(), offset, zone),
            ("2015-07-21T21:40:32.142", Some(7_200), Some("Europe/Stockholm"))
        );
        assert_eq!(parse_date_time("2015T214032-0100").unwrap().1, Some(-3_600));
    }

    #[test]
    fn durations() {
        for (text, want) in [
            ("P14DT16H12M", "P14DT16H12M"),
            ("P5M1.5D", "P5M1DT12H"),
            ("P0.75M", "P22DT19H51M49.5S"),
            ("PT0.75M", "PT45S"),
            ("P2.5W", "P17DT12H"),
            ("P12Y5M14DT16H12M70S", "P12Y5M14DT16H13M10S"),
            ("P2012-02-02T14:37:21.545", "P2012Y2M2DT14H37M21.545S"),
            ("PT-1.5S", "PT-1.5S"),
            ("PT0S", "PT0S"),
            ("-P1D", "P-1D"),
        ] {
            assert_eq!(parse_duration(text).map(|d| d.to_string()).as_deref(), Some(want), "{text}");
        }
        for bad in ["", "P", "PT", "1D", "P1X", "P1D1Y", "P1DT", "Pé", "PT1S1H"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }
}
