//! Shares as bars, to an eighth of a character.

/// A bar of `share` of `width` characters. A share that is not 0 is visible.
pub(crate) fn bar(share: f64, width: usize, unicode: bool) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let share = share.clamp(0.0, 1.0);
    if !unicode {
        return "#".repeat((share * width as f64).round() as usize);
    }
    let eighths = (share * width as f64 * 8.0).round().max(f64::from(u8::from(share > 0.0))) as usize;
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(EIGHTHS[eighths % 8]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        let check = |share, unicode, expected| assert_eq!(bar(share, 8, unicode), expected);
        check(0.0, true, "");
        check(0.001, true, "▏");
        check(0.5, true, "████");
        check(0.3, true, "██▍");
        check(1.0, true, "████████");
        check(7.0, true, "████████");
        check(0.5, false, "####");
    }
}
