//! Common code of readers and writers of JSON formats.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

/// Writes a value as JSON.
pub(crate) fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(out, value).map_err(io::Error::from)
}

/// Writes the comma before an element of an array, by the element's index.
pub(crate) fn separate(out: &mut impl Write, index: usize) -> io::Result<()> {
    if index > 0 { out.write_all(b",") } else { Ok(()) }
}

/// An id that is a number in one file and a string in another.
pub(crate) fn id_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A line or column, which counts from 1. `None` for 0 or a negative number.
pub(crate) fn position(number: Option<f64>) -> Option<u32> {
    number.map(|number| number as u32).filter(|&number| number > 0)
}

/// Converts a number of units of `unit` nanoseconds, which is whole, to nanoseconds. A negative value, or one that is
/// not a number, becomes 0.
pub(crate) fn nanoseconds(value: f64, unit: f64) -> u64 {
    // The product alone would lose bits of a long time's fraction.
    let whole = value.trunc();
    let rest = ((value - whole) * unit).round() as u64;
    (whole as u64).saturating_mul(unit as u64).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_are_exact() {
        for time in [0, 999, 1 << 51, (1 << 51) + 1, (1 << 52) + 3, 8_000_000_000_000_001_u64] {
            let text = format!("{}.{:03}", time / 1000, time % 1000);
            assert_eq!(nanoseconds(text.parse().unwrap(), 1000.0), time, "{text}");
        }
        assert_eq!([-0.5, -7.0, f64::NAN].map(|value| nanoseconds(value, 1000.0)), [0, 0, 0]);
        assert_eq!(nanoseconds(f64::INFINITY, 1e9), u64::MAX);
        assert_eq!(nanoseconds(0.25, 1e9), 250_000_000);
    }
}
