//! Compares two commands, and determines whether their difference is significant.

use super::format::value;
use super::measured::{CONFIDENCE, MeasuredRow, Summary};
use crate::number::counted;
use crate::text::{Cell, Column, Screen, Style, Table, Text, one_line};
use nyquist_analysis::MeanChange;

/// The rows that both have, in pairs, with their differences.
pub(super) fn pairs(before: &Summary, after: &Summary) -> Vec<(MeasuredRow, MeasuredRow, MeanChange)> {
    let (before, after) = (before.all_rows(), after.all_rows());
    let pair = |(one, other): (MeasuredRow, MeasuredRow)| {
        let change = MeanChange::between(&one.spread.ok()?, &other.spread.ok()?, CONFIDENCE);
        Some((one, other, change))
    };
    before.into_iter().zip(after).filter_map(pair).collect()
}

/// The table.
pub(super) fn text(before: &Summary, after: &Summary, names: &[Option<String>; 2], screen: Screen) -> Text {
    let name = |name: &Option<String>| one_line(name.as_deref().unwrap_or_default()).into_owned();
    let mut text = Text::from("\n");
    text += format!("before: {} ({})\n", name(&names[0]), counted(before.runs as u64, "run"));
    text += format!("after:  {} ({})\n", name(&names[1]), counted(after.runs as u64, "run"));
    let columns = ["CHANGE", "BEFORE", "AFTER"].map(Column::Number);
    let mut table = Table::new([&columns[..], &[Column::Main("EVENT")]].concat());
    for (one, other, change) in pairs(before, after) {
        let mean = |row: &MeasuredRow| row.spread.map_or(0.0, |spread| spread.mean);
        table.add(vec![
            Cell::new(format_change(&change), style(&change)),
            value(&one, mean(&one)).into(),
            value(&other, mean(&other)).into(),
            one.name.into(),
        ]);
    }
    text += table.render(screen);
    text + format!(
        "CHANGE is that of the means, with its {:.0} % confidence interval (Welch's t); ~ marks what may be chance.\n",
        CONFIDENCE * 100.0
    )
}

/// A change in per cent with half its interval: `-12.3% ± 1.0`, or with `~` before it if it is not
/// significant.
fn format_change(change: &MeanChange) -> String {
    if change.difference == 0.0 {
        return "0.0%".to_owned();
    }
    let Some(relative) = change.relative else { return "new".to_owned() };
    let mark = if change.is_significant() { "" } else { "~ " };
    let scale = relative / change.difference;
    let margin = change.margin.map(|margin| format!(" ± {:.1}", (margin * scale).abs() * 100.0));
    format!("{mark}{:+.1}%{}", relative * 100.0, margin.unwrap_or_default())
}

fn style(change: &MeanChange) -> Style {
    match change {
        change if !change.is_significant() => Style::Dim,
        change if change.difference > 0.0 => Style::Hot,
        _ => Style::Good,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_analysis::RunSpread;

    #[test]
    fn a_change_says_whether_it_may_be_chance() {
        let spread = |values: &[f64]| RunSpread::of(values).unwrap();
        let between = |one: &[f64], other: &[f64]| {
            format_change(&MeanChange::between(&spread(one), &spread(other), CONFIDENCE))
        };
        assert!(between(&[10.0, 10.1, 9.9], &[8.0, 8.1, 7.9]).starts_with("-20.0% ± "));
        assert!(between(&[10.0, 12.0, 9.0], &[10.5, 9.5, 12.5]).starts_with("~ +"));
        assert_eq!(between(&[0.0, 0.0], &[0.0, 0.0]), "0.0%");
        assert_eq!(between(&[5.0, 5.0], &[5.0, 5.0]), "0.0%");
        assert_eq!(between(&[10.0], &[20.0]), "~ +100.0%");
    }
}
