//! Numbers in readable form.

/// A number with separated thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun, whose plural has an `s`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A share as a percentage with one decimal.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Whether a percentage with one decimal is more than zero.
pub(crate) fn is_visible_percent(share: f64) -> bool {
    share >= 0.0005
}

/// A duration in nanoseconds in readable form: in seconds, in milliseconds below a tenth of a second, or in
/// microseconds below a tenth of a millisecond.
pub(crate) fn time_span(nanoseconds: u64) -> String {
    let seconds = nanoseconds as f64 / 1e9;
    match nanoseconds {
        1..100_000 => format!("{:.1} µs", seconds * 1e6),
        0..100_000_000 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_percentages_are_not_zero() {
        for share in [0.0, 0.0004, 0.0005, 0.0006, 0.5] {
            assert_eq!(is_visible_percent(share), percent(share) != "0.0%", "{share}");
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        let check = |number, expected| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(1_234_567, "1,234,567");
    }

    #[test]
    fn one_is_no_plural() {
        let check = |number, expected| assert_eq!(counted(number, "sample"), expected);
        check(0, "0 samples");
        check(1, "1 sample");
        check(1000, "1,000 samples");
    }

    #[test]
    fn short_times_are_in_milliseconds() {
        let times = [0, 54_300, 1_540_000, 99_999_999, 100_000_000, 2_146_000_000];
        assert_eq!(times.map(time_span), ["0.0 ms", "54.3 µs", "1.5 ms", "100.0 ms", "0.10 s", "2.15 s"]);
    }
}
