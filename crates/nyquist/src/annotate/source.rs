//! The text of source files on this machine.

use crate::failure::io_reason;
use nyquist_symbols::{SourceError, SourceFile, SourceFiles};
use std::time::{Duration, UNIX_EPOCH};

/// A source file's lines.
#[derive(Clone, Debug, Default)]
pub(super) struct SourceText {
    lines: Vec<String>,
    /// Whether it was changed after the recording began. Its lines may have moved then.
    pub(super) is_newer: bool,
}

impl SourceText {
    /// Reads a file that may be shown. `named` returns its path in debug info here, if there is one. Fails
    /// with the reason why it is not available. `recorded` is the start of the recording, in µs since
    /// 1970.
    pub(super) fn read(
        files: &SourceFiles,
        file: &str,
        recorded: u64,
        named: impl FnOnce() -> Option<String>,
    ) -> Result<Self, String> {
        let read = files.read(file, named).map_err(|error| match error {
            SourceError::Unreadable(error) => io_reason(&error),
            other => other.to_string(),
        })?;
        Ok(Self::of(&read, recorded))
    }

    fn of(file: &SourceFile, recorded: u64) -> Self {
        let changed = file.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let is_newer = recorded > 0 && changed.is_some_and(|time| time > Duration::from_micros(recorded));
        Self { lines: file.text.lines().map(display_line).collect(), is_newer }
    }

    /// A line, counted from 1; `None` beyond the end.
    pub(super) fn line(&self, number: u32) -> Option<&str> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.lines.get(index).map(String::as_str)
    }

    /// The number of lines.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }
}

/// A line for display: tabs become four spaces, other control characters are escaped.
fn display_line(line: &str) -> String {
    let line = line.replace('\t', "    ");
    crate::text::one_line(line.trim_end()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn read(file: &str, recorded: u64) -> Result<SourceText, String> {
        SourceText::read(&SourceFiles::default(), file, recorded, || Some(file.to_owned()))
    }

    #[test]
    #[cfg_attr(
        not(target_os = "linux"),
        ignore = "the path of this file is one of the machine that compiled it"
    )]
    fn this_file_is_read_by_lines() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/annotate/source.rs");
        let text = read(&path.to_string_lossy(), 0).unwrap();
        assert_eq!(text.line(1), Some("//! The text of source files on this machine."));
        assert_eq!((text.line(0), text.line(text.len() + 1)), (None, None));
        assert!(!text.is_newer);
        assert!(read(&path.to_string_lossy(), 1).unwrap().is_newer);
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "the paths are those of Linux")]
    fn what_is_no_source_file_has_a_reason() {
        let check = |file, expected| assert_eq!(read(file, 0).unwrap_err(), expected);
        check("a.c", "its folder is not known; --source-map FROM=TO tells where it is");
        check("/proc/nonexistent/a.c", "no such file or directory");
        check("/dev/zero", "it is not a regular file");
        let not_named = SourceText::read(&SourceFiles::default(), "/etc/passwd", 0, || None).unwrap_err();
        assert_eq!(not_named, "no debug info on this machine names it; --source-dir DIR allows its folder");
        let binary = std::env::temp_dir().join(format!("nyquist-source-{}", std::process::id()));
        fs::write(&binary, b"a\0b").unwrap();
        check(&binary.to_string_lossy(), "it is not text");
        fs::remove_file(&binary).unwrap();
    }
}
