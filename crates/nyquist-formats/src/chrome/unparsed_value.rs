//! Unparsed values of a trace, so that unused values are not copied.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{id_text, nanoseconds};

/// The ids of a process and of a thread.
pub(super) type ThreadId = (String, String);

/// An unparsed value of the document. A missing value is null.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct UnparsedValue<'a>(#[serde(borrow)] Option<&'a RawValue>);

impl<'a> UnparsedValue<'a> {
    /// The JSON text. Empty for null.
    pub(crate) fn json(self) -> &'a str {
        self.0.map_or("", RawValue::get)
    }

    /// The value. Null if it is nested too deeply to be read.
    pub(crate) fn value(self) -> Value {
        serde_json::from_str(self.json()).unwrap_or_default()
    }

    /// The text of a string. Empty for other values.
    pub(super) fn text(self) -> Cow<'a, str> {
        let quoted = self.json().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        match quoted {
            Some(text) if !text.contains('\\') => text.into(),
            Some(_) => serde_json::from_str::<String>(self.json()).unwrap_or_default().into(),
            None => "".into(),
        }
    }

    /// An id that is a number in one file and a string in another.
    pub(super) fn id(self) -> String {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number(self.json()) { self.json().to_owned() } else { id_text(&self.value()) }
    }

    /// A time in µs, which is a number or a number in a string, as ns.
    pub(super) fn microseconds(self) -> u64 {
        let number = self.json().parse().or_else(|_| self.text().parse());
        nanoseconds(number.unwrap_or(0.0), 1000.0)
    }
}

/// A time in µs, which is a number or a number in a string, as ns.
pub(super) fn microseconds(value: &Value) -> u64 {
    let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    nanoseconds(number.unwrap_or(0.0), 1000.0)
}
