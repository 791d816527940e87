//! The median of several rounds, and their spread.

use std::fmt;

/// The least, the median and the greatest of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    least: f64,
    median: f64,
    greatest: f64,
}

impl Spread {
    /// The spread of figures; `None` if there are none.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (lower, upper) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
        Some(Self { least: *sorted.first()?, median: lower.midpoint(*upper), greatest: *sorted.last()? })
    }
}

/// The median, then the least and the greatest: `1.25 (1.20–1.40)`.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        let Self { least, median, greatest } = self;
        write!(f, "{median:.digits$} ({least:.digits$}–{greatest:.digits$})")
    }
}

/// A table cell: the spread with this many digits, or a dash.
pub(crate) fn cell(digits: usize, figures: impl IntoIterator<Item = f64>) -> String {
    Spread::of(figures).map_or_else(|| "–".to_owned(), |spread| format!("{spread:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn a_cell_shows_the_median_and_both_ends() {
        let check = |figures: &[f64], expected: &str| assert_eq!(cell(1, figures.iter().copied()), expected);
        check(&[], "–");
        check(&[2.0], "2.0 (2.0–2.0)");
        check(&[3.0, 1.0, 9.0], "3.0 (1.0–9.0)");
        check(&[4.0, 1.0, 2.0, 9.0], "3.0 (1.0–9.0)");
    }
}
