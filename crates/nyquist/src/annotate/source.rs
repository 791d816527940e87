//! The text of source files on this machine.

use crate::failure::io_reason;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// The longest source file that is read, in bytes; amalgamated C reaches 10 MB.
const LONGEST: u64 = 32 << 20;

/// A source file's lines.
#[derive(Clone, Debug, Default)]
pub(super) struct SourceText {
    lines: Vec<String>,
    /// Whether it was changed after the recording began, so that lines may have moved.
    pub(super) is_newer: bool,
}

impl SourceText {
    /// Reads a file; the reason why it cannot be had otherwise. `recorded` is when the recording began, in µs since
    /// 1970.
    pub(super) fn read(file: &str, recorded: u64) -> Result<Self, String> {
        if !Path::new(file).is_absolute() {
            return Err("its folder is not known".to_owned());
        }
        let found = crate::lossy_path::files(file);
        let file = found.first().map_or(Path::new(file), PathBuf::as_path);
        // Asked ahead of opening: merely opening a FIFO or a device can wait for ever or have effects.
        let metadata = fs::metadata(file).map_err(|error| io_reason(&error))?;
        if !metadata.is_file() {
            return Err("it is no regular file".to_owned());
        }
        if metadata.len() > LONGEST {
            return Err("it is too long".to_owned());
        }
        let bytes = read_first(file, metadata.len()).map_err(|error| io_reason(&error))?;
        if bytes.contains(&0) {
            return Err("it is not text".to_owned());
        }
        let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let is_newer = recorded > 0 && changed.is_some_and(|time| time > Duration::from_micros(recorded));
        Ok(Self { lines: String::from_utf8_lossy(&bytes).lines().map(shown).collect(), is_newer })
    }

    /// A line, counted from 1; `None` behind the end.
    pub(super) fn line(&self, number: u32) -> Option<&str> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.lines.get(index).map(String::as_str)
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }
}

fn read_first(file: &Path, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A line as it is shown: tabs are four blanks, other hidden characters are escaped.
fn shown(line: &str) -> String {
    let line = line.replace('\t', "    ");
    crate::text::one_line(line.trim_end()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_file_is_read_by_lines() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/annotate/source.rs");
        let text = SourceText::read(&path.to_string_lossy(), 0).unwrap();
        assert_eq!(text.line(1), Some("//! The text of source files on this machine."));
        assert_eq!((text.line(0), text.line(text.len() + 1)), (None, None));
        assert!(!text.is_newer);
        assert!(SourceText::read(&path.to_string_lossy(), 1).unwrap().is_newer);
    }

    #[test]
    fn what_is_no_source_file_has_a_reason() {
        let check = |file, expected| assert_eq!(SourceText::read(file, 0).unwrap_err(), expected);
        check("a.c", "its folder is not known");
        check("/nonexistent/a.c", "no such file or directory");
        check("/dev/zero", "it is no regular file");
        let binary = std::env::temp_dir().join(format!("nyquist-source-{}", std::process::id()));
        fs::write(&binary, b"a\0b").unwrap();
        check(&binary.to_string_lossy(), "it is not text");
        fs::remove_file(&binary).unwrap();
    }
}
