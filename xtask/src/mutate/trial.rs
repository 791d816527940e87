//! One run of the program over a damaged file, and the checks of its outcome.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;

use super::seed::Seed;
use crate::sys;

/// The limit of the program's address space. Its threads reserve much more than they use.
const ADDRESS_SPACE: u64 = 8 << 30;

/// The limit of its memory for files of at most two megabytes.
const MAX_MEMORY: u64 = 1 << 30;

/// The limit of its time for such files, on a busy machine.
const MAX_TIME: Duration = Duration::from_mins(1);

/// The program and the folder for its runs.
pub(super) struct Trial {
    nyquist: PathBuf,
    pub(super) scratch: PathBuf,
}

impl Trial {
    pub(super) fn new(nyquist: &Path, scratch: &Path) -> Self {
        Self { nyquist: nyquist.to_path_buf(), scratch: scratch.to_path_buf() }
    }

    /// A call of the program that reads none of the user's files or settings.
    pub(super) fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&self.nyquist);
        command.args(words).current_dir(&self.scratch).stdin(Stdio::null());
        command.env("HOME", &self.scratch).env("NYQUIST_NO_CACHE", "1").env_remove("NYQUIST_SYMBOL_PATH");
        command.env_remove("DEBUGINFOD_URLS");
        command
    }

    /// Runs the program. Returns an error if the outcome is wrong.
    pub(super) fn check(&self, words: &[String]) -> Result<(), String> {
        let errors = self.scratch.join("stderr");
        let mut command = self.command(words);
        let file = fs::File::create(&errors).map_err(|error| error.to_string())?;
        command.stdout(Stdio::null()).stderr(file);
        sys::limit_address_space(&mut command, ADDRESS_SPACE);
        let child = command.spawn().map_err(|error| format!("cannot start the program: {error}"))?;
        let ended = sys::wait_measured(&child, MAX_TIME).map_err(|error| error.to_string())?;
        let printed = fs::read(&errors).unwrap_or_default();
        let Some(ended) = ended else { return Err(format!("took more than {} s", MAX_TIME.as_secs())) };
        if ended.peak_bytes > MAX_MEMORY {
            return Err(format!("took {} MB of memory", ended.peak_bytes >> 20));
        }
        match ended.status.code() {
            Some(status @ (0 | 1)) => check_said(&String::from_utf8_lossy(&printed), status),
            Some(status) => Err(format!("ended with the status {status}")),
            None => Err(format!("ended by {}", ended.status)),
        }
    }

    /// Keeps the files that reproduce a failure.
    pub(super) fn keep(&self, number: u64, seed: &Seed, words: &[String], fault: &str) -> Result<()> {
        let folder = self.scratch.join("failed").join(number.to_string());
        fs::create_dir_all(&folder)?;
        // A sparse file stays sparse, because cp makes holes of zeros.
        let _ = Command::new("cp").arg("--sparse=always").arg(&seed.place).arg(&folder).status();
        fs::copy(self.scratch.join("stderr"), folder.join("stderr"))?;
        let place = seed.place.display();
        fs::write(folder.join("what"), format!("{fault}\nnyquist {}\nwith {place}\n", words.join(" ")))?;
        Ok(())
    }
}

/// Checks that the messages are text, and that a failure has one sentence.
fn check_said(printed: &str, status: i32) -> Result<(), String> {
    let is_control = |char: &char| char.is_control() && *char != '\n';
    if let Some(control) = printed.chars().find(is_control) {
        return Err(format!("says the control character {control:?}"));
    }
    let errors = printed.lines().filter(|line| line.starts_with("error: ")).count();
    let expected = usize::from(status != 0);
    if errors != expected {
        return Err(format!("says {errors} errors with the status {status}"));
    }
    if printed.contains("panicked at") {
        return Err("panicked".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_said;

    #[test]
    fn a_failure_is_one_sentence_without_controls() {
        assert_eq!(check_said("error: it is damaged\nhint: make another one\n", 1), Ok(()));
        assert_eq!(check_said("warning: a part is missing\n", 0), Ok(()));
        for (printed, status) in [
            ("", 1),
            ("error: one\nerror: two\n", 1),
            ("error: it is damaged\n", 0),
            ("error: \u{1b}[2J\n", 1),
            ("thread 'x' panicked at src/a.rs:1\n", 0),
        ] {
            assert!(check_said(printed, status).is_err(), "{printed:?}");
        }
    }
}
