//! The lines of a text that is read in pieces, so that a large file is never in memory.

use std::io::BufRead;

use crate::error::ReadError;

/// Passes on each line without its end, and whether it has one. Only the last line may lack it, and an empty last line
/// is none. What is no UTF-8 is replaced. O(length), with memory for the longest line.
///
/// # Errors
/// The text cannot be read.
pub(crate) fn each_line(mut text: impl BufRead, mut take: impl FnMut(&str, bool)) -> Result<(), ReadError> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if text.read_until(b'\n', &mut line).map_err(ReadError::Read)? == 0 {
            return Ok(());
        }
        let whole = line.strip_suffix(b"\n");
        let text = whole.unwrap_or(&line);
        // The check alone is several times faster than the replacement, and most texts need none.
        match std::str::from_utf8(text) {
            Ok(text) => take(text, whole.is_some()),
            Err(_) => take(&String::from_utf8_lossy(text), whole.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_line_may_lack_its_end() {
        let lines = |text: &[u8]| {
            let mut lines = Vec::new();
            each_line(text, |line, is_whole| lines.push((line.to_owned(), is_whole))).unwrap();
            lines
        };
        let line = |text: &str, is_whole| (text.to_owned(), is_whole);
        assert_eq!(lines(b"a\n\nb\n"), [line("a", true), line("", true), line("b", true)]);
        assert_eq!(lines(b"a\nb\xff"), [line("a", true), line("b\u{fffd}", false)]);
        assert_eq!(lines(b""), []);
    }
}
