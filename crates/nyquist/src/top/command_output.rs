//! The output of the watched command. The screen is in use, so its last lines are kept to show them later.

use crate::failure::Failure;
use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, PipeWriter, Read as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The number of lines that are kept.
const LINES: usize = 500;

/// The number of last lines of a failed command that are repeated.
pub(super) const LINES_REPEATED: usize = 10;

/// The longest line, in bytes. Longer ones continue in the next.
const LINE: u64 = 4096;

/// The last lines that a command has printed.
#[derive(Clone, Debug, Default)]
pub(super) struct CommandOutput {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl CommandOutput {
    /// Returns a pipe, and collects the text that is written to it until all of its writers are closed.
    pub(super) fn collect() -> Result<(Self, PipeWriter), Failure> {
        let (reader, writer) = io::pipe()
            .map_err(|error| Failure::because("no pipe can be made for what the command prints", &error))?;
        let output = Self::default();
        let collected = output.clone();
        thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            while let Some(line) = next_line(&mut reader) {
                collected.add(line);
            }
        });
        Ok((output, writer))
    }

    /// The last `count` lines, or fewer.
    pub(super) fn last(&self, count: usize) -> Vec<String> {
        let lines = self.lock();
        lines.iter().skip(lines.len().saturating_sub(count)).cloned().collect()
    }

    /// All lines that are kept.
    pub(super) fn lines(&self) -> Vec<String> {
        self.last(LINES)
    }

    fn add(&self, line: String) {
        let mut lines = self.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next line without its end; `None` at the end or on an error.
fn next_line(reader: &mut impl io::BufRead) -> Option<String> {
    let mut bytes = Vec::new();
    reader.take(LINE).read_until(b'\n', &mut bytes).ok().filter(|&count| count > 0)?;
    let text = String::from_utf8_lossy(&bytes);
    // A tab is the only control character with a meaning within a line.
    Some(text.trim_end_matches(['\n', '\r']).replace('\t', "    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_and_long_ones_go_on() {
        let long = "x".repeat(5000);
        let text = format!("one\r\n\ttwo\n{long}\nlast");
        let mut reader = text.as_bytes();
        let lines: Vec<_> = std::iter::from_fn(|| next_line(&mut reader)).collect();
        assert_eq!(lines, ["one", "    two", &long[..4096], &long[4096..], "last"]);
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let output = CommandOutput::default();
        (0..LINES + 3).for_each(|number| output.add(number.to_string()));
        assert_eq!((output.lines().len(), output.lines()[0].as_str()), (LINES, "3"));
        assert_eq!(output.last(2), ["501", "502"]);
    }
}
