//! What readers and writers of JSON formats share.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

/// Writes a value as JSON.
pub(crate) fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(out, value).map_err(io::Error::from)
}

/// An id that is a number in one file and a string in another.
pub(crate) fn id_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A line or column that counts from 1; a negative one or 0 is none.
pub(crate) fn position(number: Option<f64>) -> Option<u32> {
    number.map(|number| number as u32).filter(|&number| number > 0)
}

/// Nanoseconds out of a number of units of so many nanoseconds. What is negative or not a number is 0.
pub(crate) fn nanoseconds(value: f64, unit: f64) -> u64 {
    (value * unit).round() as u64
}
