//! Times, ranges and shares in command-line syntax.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;
use std::time::Duration;

/// Reads a time within a range of seconds: `10`, `10s`, `500ms`, `2min`.
pub(crate) fn seconds(text: &str, range: RangeInclusive<f64>) -> Result<Duration, String> {
    let ends_with_unit =
        text.ends_with(char::is_alphabetic) && text.starts_with(|c: char| c.is_ascii_digit());
    let seconds =
        if ends_with_unit { (nanoseconds(text)? as f64 / 1e9).to_string() } else { text.to_owned() };
    number(&seconds, "seconds", range).map(Duration::from_secs_f64)
}

/// Reads a number of per cent within a range, with or without the sign.
pub(crate) fn percent(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    number(text.trim_end_matches('%'), "per cent", range)
}

/// Reads a whole number within a range.
pub(crate) fn whole<T: FromStr + PartialOrd + Display>(
    text: &str,
    range: RangeInclusive<T>,
) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("not a whole number from {} to {}", range.start(), range.end()))
}

/// The samples a second that can be requested. The kernel, and a program's performance, allow fewer.
const RATES: RangeInclusive<u32> = 1..=1_000_000;

/// Reads a number of samples a second.
pub(crate) fn rate(text: &str) -> Result<u32, String> {
    let rate = text.parse().ok().filter(|rate| RATES.contains(rate));
    rate.ok_or_else(|| {
        format!("a rate is a whole number from {} to {}, such as 1000", RATES.start(), RATES.end())
    })
}

/// Reads a number of something within a range.
pub(crate) fn number(text: &str, of: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("not a number of {of}"))?;
    if range.contains(&number) {
        Ok(number)
    } else if *range.end() < f64::MAX {
        Err(format!("not from {} to {}", range.start(), range.end()))
    } else {
        Err(format!("not from {} on", range.start()))
    }
}

/// A part of a recording, in ns since the profile's zero; the end is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    start: u64,
    end: u64,
}

impl TimeRange {
    /// The times.
    pub(crate) fn times(self) -> Range<u64> {
        self.start..self.end
    }
}

impl FromStr for TimeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || "a range is written as 1.2s-3s, 500ms- or -3s".to_owned();
        let (start, end) = text.split_once('-').ok_or_else(form)?;
        let start = if start.is_empty() { 0 } else { nanoseconds(start)? };
        let end = if end.is_empty() { u64::MAX } else { nanoseconds(end)? };
        if start >= end {
            return Err("the range ends before it begins".to_owned());
        }
        Ok(Self { start, end })
    }
}

/// A time with its unit, or in seconds without a unit.
fn nanoseconds(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 6] =
        [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("min", 60e9), ("s", 1e9)];
    let unit = UNITS.iter().find_map(|(name, length)| Some((text.strip_suffix(name)?, *length)));
    let (number, length) = unit.unwrap_or((text, 1e9));
    let number: f64 =
        number.trim().parse().map_err(|_| format!("`{text}` is not a time such as 1.5s or 20ms"))?;
    if !(number >= 0.0 && number.is_finite()) {
        return Err(format!("`{text}` is not a time of 0 or more"));
    }
    Ok((number * length).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_held_to_their_range() {
        assert_eq!(percent("0.5", 0.0..=100.0), Ok(0.5));
        assert_eq!(percent("5%", 0.0..=100.0), Ok(5.0));
        let refused = |text, range| percent(text, range).unwrap_err();
        assert_eq!(refused("101", 0.0..=100.0), "not from 0 to 100");
        assert_eq!(refused("-1", 0.0..=f64::MAX), "not from 0 on");
        assert_eq!(refused("x", 0.0..=100.0), "not a number of per cent");
        for text in ["nan", "inf"] {
            assert_eq!(refused(text, 0.0..=f64::MAX), "not from 0 on");
        }
        assert_eq!(seconds("1.5", 0.1..=2.0), Ok(Duration::from_millis(1500)));
        for (text, ms) in [("10s", 10_000), ("500ms", 500), ("2min", 120_000)] {
            assert_eq!(seconds(text, 0.1..=1e3), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(seconds("5ms", 0.1..=2.0).unwrap_err(), "not from 0.1 to 2");
        assert_eq!(seconds("2h", 0.1..=2.0).unwrap_err(), "`2h` is not a time such as 1.5s or 20ms");
    }

    #[test]
    fn whole_numbers_are_held_to_their_range() {
        assert_eq!(whole::<u32>("8", 8..=9), Ok(8));
        for text in ["7", "10", "8.5", "8k", "", "-8", "99999999999"] {
            assert_eq!(whole::<u32>(text, 8..=9), Err("not a whole number from 8 to 9".to_owned()), "{text}");
        }
    }

    #[test]
    fn a_rate_is_a_whole_number_that_makes_sense() {
        assert_eq!((rate("1"), rate("1000"), rate("1000000")), (Ok(1), Ok(1000), Ok(1_000_000)));
        for text in ["0", "-5", "abc", "", "1.5", "1k", "1000001", "99999999999"] {
            assert!(rate(text).unwrap_err().contains("from 1 to 1000000, such as 1000"), "{text}");
        }
    }

    #[test]
    fn ranges_are_read_in_any_unit() {
        let check = |text: &str, expected: Range<u64>| {
            assert_eq!(text.parse::<TimeRange>().map(TimeRange::times), Ok(expected), "{text}");
        };
        check("1.2s-3s", 1_200_000_000..3_000_000_000);
        check("500ms-", 500_000_000..u64::MAX);
        check("-250us", 0..250_000);
        check("1-2.5", 1_000_000_000..2_500_000_000);
        check("1min-2min", 60_000_000_000..120_000_000_000);
        check("10ns-20µs", 10..20_000);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<TimeRange>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("1s", "is written as");
        check("3s-1s", "ends before");
        check("1s-1s", "ends before");
        check("x-2s", "`x` is not a time");
        check("1h-2h", "`1h` is not a time");
        check("nan-1s", "`nan` is not a time of 0 or more");
    }
}
