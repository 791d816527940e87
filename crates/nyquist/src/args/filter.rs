//! The filters, the same flags in every command that reads a profile.

use clap::Args;
use std::ops::Range;
use std::str::FromStr;

/// Which part of a profile is asked about.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Only these threads: a thread's id, its handle (t-3), its name, or a regex for names (may be repeated)
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Vec<String>,
    /// Only these processes: a process's id, its name, or a regex for names (may be repeated)
    #[arg(long, value_name = "PROCESS")]
    pub(crate) process: Vec<String>,
    /// Only time spent in the code of these libraries: a name or a regex (may be repeated)
    #[arg(long, value_name = "LIB")]
    pub(crate) lib: Vec<String>,
    /// Only this part of the recording, as 1.2s-3s, 500ms-, -250us (seconds where no unit is given)
    #[arg(long, value_name = "START-END", allow_hyphen_values = true)]
    pub(crate) range: Option<TimeRange>,
    /// Only samples with a frame whose function, file or library this regex matches (may be repeated)
    #[arg(long, value_name = "REGEX")]
    pub(crate) focus: Vec<String>,
    /// Leave out samples with a frame that this regex matches (may be repeated)
    #[arg(long, value_name = "REGEX")]
    pub(crate) ignore: Vec<String>,
    /// Show only frames that this regex matches (may be repeated)
    #[arg(long, value_name = "REGEX")]
    pub(crate) show: Vec<String>,
    /// Hide frames that this regex matches; their time goes to their callers (may be repeated)
    #[arg(long, value_name = "REGEX")]
    pub(crate) hide: Vec<String>,
    /// Only time spent in code of these categories, as User or Kernel: a name or a regex (may be repeated)
    #[arg(long, value_name = "CATEGORY")]
    pub(crate) category: Vec<String>,
    /// Time that threads waited, instead of CPU time
    #[arg(long)]
    pub(crate) off_cpu: bool,
}

impl FilterArgs {
    /// Whether all of a profile's CPU time is asked about.
    pub(crate) fn is_empty(&self) -> bool {
        let lists =
            [&self.thread, &self.process, &self.lib, &self.focus, &self.ignore, &self.show, &self.hide];
        lists.iter().all(|list| list.is_empty())
            && self.category.is_empty()
            && self.range.is_none()
            && !self.off_cpu
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

/// A time with its unit; seconds where there is none.
fn nanoseconds(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 6] =
        [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("min", 60e9), ("s", 1e9)];
    let unit = UNITS.iter().find_map(|(name, length)| Some((text.strip_suffix(name)?, *length)));
    let (number, length) = unit.unwrap_or((text, 1e9));
    let number: f64 =
        number.trim().parse().map_err(|_| format!("`{text}` is no time, such as 1.5s or 20ms"))?;
    if !(number >= 0.0 && number.is_finite()) {
        return Err(format!("`{text}` is no time from 0 on"));
    }
    Ok((number * length).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_no_range_is_told_apart() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<TimeRange>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("1s", "is written as");
        check("3s-1s", "ends before");
        check("1s-1s", "ends before");
        check("x-2s", "`x` is no time");
        check("1h-2h", "`1h` is no time");
        check("nan-1s", "no time");
    }
}
