//! The report of `nyquist record -v` on how long threads were held while their stacks were read.

use anyhow::{Context as _, Result, bail};

/// The holds of a recording by ptrace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Holds {
    /// The number of holds.
    pub(crate) count: f64,
    /// The number of holds in each second.
    pub(crate) a_second: f64,
    /// The time of all holds together, in milliseconds.
    pub(crate) total_ms: f64,
    /// The median time of a hold in microseconds, like the next field.
    pub(crate) median_us: f64,
    /// The duration that one in a hundred holds exceeds.
    pub(crate) percentile_99_us: f64,
    /// The used part of the budget, in milliseconds.
    pub(crate) used_ms: f64,
    /// The whole budget, in milliseconds.
    pub(crate) allowed_ms: f64,
    /// The number of rounds in which the recorder left threads out.
    pub(crate) cut_rounds: f64,
}

impl Holds {
    /// Reads the lines of the summary.
    pub(crate) fn parse(stderr: &str) -> Result<Self> {
        let (line, held) = numbers(stderr, "Held running threads ")?;
        // The fifth number is the 99 of the percentile.
        let [count, a_second, total_ms, median_us, _, percentile_99_us] = held[..] else {
            bail!("other numbers than expected: {line}");
        };
        let (line, budget) = numbers(stderr, "Looks used ")?;
        let (used_ms, allowed_ms, cut_rounds) = match budget[..] {
            [used, allowed] => (used, allowed, 0.0),
            [used, allowed, rounds] => (used, allowed, rounds),
            _ => bail!("other numbers than expected: {line}"),
        };
        Ok(Self { count, a_second, total_ms, median_us, percentile_99_us, used_ms, allowed_ms, cut_rounds })
    }

    /// How long the recording was.
    pub(crate) fn seconds(&self) -> f64 {
        self.count / self.a_second
    }
}

/// The line with this beginning, and the numbers in it.
fn numbers<'a>(stderr: &'a str, beginning: &str) -> Result<(&'a str, Vec<f64>)> {
    let line = stderr.lines().find(|line| line.starts_with(beginning));
    let line = line.with_context(|| format!("no line begins with {beginning:?}"))?;
    // Commas separate the thousands.
    let args = line.split(|char: char| !(char.is_ascii_digit() || char == '.' || char == ','));
    let numbers = args.map(|word| word.trim_matches(',').replace(',', ""));
    Ok((line, numbers.filter_map(|word| word.parse().ok()).collect()))
}

#[cfg(test)]
mod tests {
    use super::Holds;

    #[test]
    fn the_lines_of_the_summary_are_read() {
        let held = "Recorded 2 s\nHeld running threads 1998 times (999 a second), 42.5 ms in all: median 17 µs, 99th percentile 151 µs\n";
        let parsed = |budget: &str| {
            Holds::parse(&format!("{held}Looks used 50.1 of the 100.2 ms that they may take{budget}\n"))
        };
        let expected = Holds {
            count: 1998.0,
            a_second: 999.0,
            total_ms: 42.5,
            median_us: 17.0,
            percentile_99_us: 151.0,
            used_ms: 50.1,
            allowed_ms: 100.2,
            cut_rounds: 0.0,
        };
        assert_eq!(parsed("").unwrap(), expected);
        let cut = parsed(", and were cut short in 1,204 rounds: the rate was lower").unwrap();
        assert_eq!(cut, Holds { cut_rounds: 1204.0, ..expected });
        assert!(Holds::parse(held).is_err());
        assert!(Holds::parse("Held running threads 3 times\n").is_err());
    }
}
