//! Results on the standard output. A reader who has seen enough closes the pipe, and that is no error.

use crate::failure::{Failure, io_reason};
use serde_json::Value;
use std::io::{self, Write};

/// Writes a text.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write_with(|out| out.write_all(text.as_bytes()))
}

/// Writes the completion script of a command for a shell.
pub(crate) fn print_completions(
    shell: clap_complete::Shell,
    command: &mut clap::Command,
    name: &str,
) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, name, &mut script);
    write_with(|out| out.write_all(&script))
}

/// Writes JSON, indented.
pub(crate) fn print_json(json: &Value) -> Result<(), Failure> {
    print(&format!("{json:#}\n"))
}

/// Writes whatever `write` does, buffered.
pub(crate) fn write_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // What is still in the buffer has no reader either.
            let _ = out.into_parts();
            Ok(())
        }
        Err(error) => Err(Failure::new(format!("cannot write the result: {}", io_reason(&error)))),
        Ok(()) => Ok(()),
    }
}
