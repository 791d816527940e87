//! Formats of tracepoints and their raw data: any text, and any bytes behind its first zero.

use nyquist_perf::ByteOrder;
use nyquist_perf::file::{FieldValue, TracepointFormat};

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let text = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let raw = parts.next().unwrap_or_default();
    let Some(format) = TracepointFormat::parse("group", &text) else { return };
    for field in &format.fields {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            if let Some(FieldValue::Text(text)) = field.value(raw, order) {
                assert!(text.len() <= 3 * raw.len(), "no text is longer than what it is read from");
            }
        }
    }
}
