//! Numbers in the names of events.

/// A number, decimal or with `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(
            [number("10"), number("0x10"), number("x"), number("-1")],
            [Some(10), Some(16), None, None]
        );
    }
}
