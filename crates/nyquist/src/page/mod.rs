//! Results on the standard output, which nothing else writes to. A reader that closes the pipe early is no
//! error.

use crate::failure::Failure;
use crate::text::{Screen, Text};
use escaping::{Escaping, Form};
use serde::Serialize;
use std::io::{self, IsTerminal as _, Stdout, Write};

mod escaping;

/// Writes a text, and escapes text from outside in it.
pub(crate) fn print(text: impl Into<Text>) -> Result<(), Failure> {
    let text = text.into();
    write_with(|out| out.write_all(text.as_str().as_bytes()))
}

/// Writes a script of this program's own for a shell, unchanged.
pub(crate) fn print_script(script: &str) -> Result<(), Failure> {
    write_with(|out| out.write_all(script.as_bytes()))
}

/// Writes a text at once. Returns whether it still has a reader.
#[allow(dead_code, reason = "for commands that are for Linux")]
pub(crate) fn print_at_once(text: impl Into<Text>) -> Result<bool, Failure> {
    let mut out = stdout().lock();
    match out.write_all(text.into().as_str().as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(cannot_write(&error)),
    }
}

/// Writes JSON, indented. Hidden characters in strings are escaped in JSON syntax, for all readers.
pub(crate) fn print_json(json: &impl Serialize) -> Result<(), Failure> {
    // As a value, its members are in alphabetical order, and it is indented below.
    let json = serde_json::to_value(json)
        .map_err(|error| Failure::new(format!("cannot write the result: {error}")))?;
    write_json_with(|out| writeln!(out, "{json:#}"))
}

/// Writes the output of `write` as JSON, with hidden characters escaped in JSON syntax.
pub(crate) fn write_json_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    write_with(|out| Escaping::new(out, Form::Json).write_with(write))
}

/// Writes the output of `write` as text, with hidden characters escaped except newlines and tabs.
pub(crate) fn write_text_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    write_with(|out| Escaping::new(out, Form::Text).write_with(write))
}

/// Writes a file of some format. It is unchanged in a pipe or a file, where each byte has the format's
/// meaning, and escaped on a terminal.
pub(crate) fn write_file_with(
    is_json: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    match (is_terminal(), is_json) {
        (false, _) => write_with(write),
        (true, false) => write_text_with(write),
        (true, true) => write_json_with(write),
    }
}

/// Whether the standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    stdout().is_terminal()
}

/// The standard output, for querying its kind, and for libraries that write no recorded text.
#[expect(clippy::disallowed_methods, reason = "this is the place that all go through")]
pub(crate) fn stdout() -> Stdout {
    io::stdout()
}

impl Screen {
    /// The kind of the standard output.
    pub(crate) fn of_stdout() -> Self {
        Self::of(&stdout())
    }
}

/// Writes the output of `write`, buffered.
fn write_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::BufWriter::with_capacity(1 << 16, stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // The pipe is closed, so the rest of the buffer is dropped.
            let _ = out.into_parts();
            Ok(())
        }
        Err(error) => Err(cannot_write(&error)),
        Ok(()) => Ok(()),
    }
}

fn cannot_write(error: &io::Error) -> Failure {
    Failure::io("cannot write the result", error)
}
