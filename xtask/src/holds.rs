//! What `nyquist record -v` says of how long threads were held to be looked at.

use anyhow::{Context as _, Result, bail};

/// The holds of a recording by ptrace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Holds {
    /// How many there were.
    pub(crate) count: f64,
    /// How many in each second.
    pub(crate) a_second: f64,
    /// All of them together, in milliseconds.
    pub(crate) total_ms: f64,
    /// In microseconds, as the two below.
    pub(crate) median_us: f64,
    /// What one in a hundred takes longer than.
    pub(crate) percentile_99_us: f64,
}

impl Holds {
    /// Reads the line of the summary.
    pub(crate) fn told(stderr: &str) -> Result<Self> {
        let line = stderr.lines().find(|line| line.starts_with("Held running threads "));
        let line = line.context("nothing is said of how long threads were held")?;
        let words = line.split(|char: char| !(char.is_ascii_digit() || char == '.'));
        let numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
        // The fifth number is that of the percentile.
        let [count, a_second, total_ms, median_us, _, percentile_99_us] = numbers[..] else {
            bail!("other numbers than expected: {line}");
        };
        Ok(Self { count, a_second, total_ms, median_us, percentile_99_us })
    }

    /// How long the recording was.
    pub(crate) fn seconds(&self) -> f64 {
        self.count / self.a_second
    }
}

#[cfg(test)]
mod tests {
    use super::Holds;

    #[test]
    fn the_line_of_the_summary_is_read() {
        let line = "Recorded 2 s\nHeld running threads 1998 times (999 a second), 42.5 ms in all: median 17 µs, 99th percentile 151 µs\n";
        let expected = Holds {
            count: 1998.0,
            a_second: 999.0,
            total_ms: 42.5,
            median_us: 17.0,
            percentile_99_us: 151.0,
        };
        assert_eq!(Holds::told(line).unwrap(), expected);
        assert!(Holds::told("Recorded 2 s\n").is_err());
        assert!(Holds::told("Held running threads 3 times\n").is_err());
    }
}
