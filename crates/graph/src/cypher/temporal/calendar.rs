//! The calendar: days since 1970 as years, months, weeks, quarters and ordinal days.

/// The years that a date can have.
pub const YEARS: std::ops::RangeInclusive<i64> = -999_999_999..=999_999_999;

pub fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub fn days_in_year(year: i64) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar. Years begin in March here, so that the leap day
/// is the last day, and the calendar repeats every 400 years.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let round = year.div_euclid(400);
    let of_round = year.rem_euclid(400);
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day - 1;
    round * 146_097 + of_round * 365 + of_round / 4 - of_round / 100 + of_year - 719_468
}

/// Year, month and day of a number of days since 1970.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let round = days.div_euclid(146_097);
    let of_round = days.rem_euclid(146_097);
    let year = (of_round - of_round / 1_460 + of_round / 36_524 - of_round / 146_096) / 365;
    let of_year = of_round - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (round * 400 + year + i64::from(month <= 2), month, day)
}

/// 1 is Monday, 7 is Sunday.
pub fn weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

/// The Monday of the first week of a year, which is the week that contains the fourth of January.
pub fn first_monday(year: i64) -> i64 {
    let fourth = days_of(year, 1, 4);
    fourth - (weekday(fourth) - 1)
}

/// The year and the number of the week that contains a day.
pub fn week_of(days: i64) -> (i64, i64) {
    let (year, _, _) = date_of(days);
    let year = match () {
        () if days < first_monday(year) => year - 1,
        () if days >= first_monday(year + 1) => year + 1,
        () => year,
    };
    (year, (days - first_monday(year)) / 7 + 1)
}

pub fn weeks_in_year(year: i64) -> i64 {
    (first_monday(year + 1) - first_monday(year)) / 7
}

/// The ordinal of the day in its year, from 1.
pub fn ordinal(days: i64) -> i64 {
    days - days_of(date_of(days).0, 1, 1) + 1
}

pub fn quarter_of(month: i64) -> i64 {
    (month - 1) / 3 + 1
}

/// The ordinal of the day in its quarter, from 1.
pub fn day_of_quarter(days: i64) -> i64 {
    let (year, month, _) = date_of(days);
    days - days_of(year, (quarter_of(month) - 1) * 3 + 1, 1) + 1
}

/// The day a number of months later, or the last day of that month if it is shorter.
pub fn add_months(days: i64, months: i64) -> Option<i64> {
    let (year, month, day) = date_of(days);
    let count = year.checked_mul(12)?.checked_add(month - 1)?.checked_add(months)?;
    let (year, month) = (count.div_euclid(12), count.rem_euclid(12) + 1);
    YEARS.contains(&year).then(|| days_of(year, month, day.min(days_in_month(year, month))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_days() {
        assert_eq!(days_of(1970, 1, 1), 0);
        assert_eq!(days_of(2000, 3, 1), 11_017);
        assert_eq!(date_of(-1), (1969, 12, 31));
        assert_eq!(weekday(0), 4, "a Thursday");
        for (date, week) in [
            ((1816, 12, 30), (1817, 1)),
            ((1818, 12, 28), (1818, 53)),
            ((1819, 1, 3), (1818, 53)),
            ((2026, 11, 16), (2026, 47)),
        ] {
            assert_eq!(week_of(days_of(date.0, date.1, date.2)), week, "{date:?}");
        }
        assert_eq!((ordinal(days_of(2024, 12, 31)), ordinal(days_of(2023, 3, 1))), (366, 60));
        assert_eq!((day_of_quarter(days_of(2024, 5, 1)), weeks_in_year(2020), weeks_in_year(2021)), (31, 53, 52));
        assert_eq!(add_months(days_of(2024, 1, 31), 1), Some(days_of(2024, 2, 29)));
        assert_eq!(add_months(days_of(2024, 1, 31), -2), Some(days_of(2023, 11, 30)));
        assert_eq!(add_months(0, i64::MAX), None);
    }

    proptest! {
        #[test]
        fn dates_round_trip(days in -400_000_000_000i64..400_000_000_000) {
            let (year, month, day) = date_of(days);
            prop_assert_eq!(days_of(year, month, day), days);
            prop_assert!((1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day));
            let (of, week) = week_of(days);
            prop_assert_eq!(first_monday(of) + (week - 1) * 7 + weekday(days) - 1, days);
            prop_assert!((1..=weeks_in_year(of)).contains(&week));
            prop_assert!((1..=days_in_year(year)).contains(&ordinal(days)));
        }

        #[test]
        fn dates_agree_with_jiff(year in -9998i16..9998, month in 1i8..=12, day in 1i8..=28) {
            let date = jiff::civil::date(year, month, day);
            let days = days_of(year.into(), month.into(), day.into());
            prop_assert_eq!(weekday(days), i64::from(date.weekday().to_monday_one_offset()));
            let week = date.iso_week_date();
            prop_assert_eq!(week_of(days), (i64::from(week.year()), i64::from(week.week())));
            prop_assert_eq!(ordinal(days), i64::from(date.day_of_year()));
        }
    }
}
