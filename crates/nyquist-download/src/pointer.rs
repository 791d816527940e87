//! `file.ptr`, a replacement for a file in a symbol store. It contains the file's path, or the reason why
//! it is missing (<https://learn.microsoft.com/windows-hardware/drivers/debugger/symstore-file-pointer>;
//! `symstore /p`, `/h MSG`).

use std::path::PathBuf;

/// The maximum size that is read of such a file; it contains a path or a sentence.
pub(crate) const MAX_SIZE: u64 = 4 << 10;

/// The maximum length of a message.
const MAX_MESSAGE: usize = 200;

/// The contents of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pointer {
    /// The path of the file.
    Path(PathBuf),
    /// The file is not available, for this reason, in one line.
    Nowhere(String),
}

impl Pointer {
    /// Parses the text. Only absolute paths of this system can be followed here. Paths of Windows become
    /// messages.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let text = text.trim_start_matches('\u{feff}').trim_matches(|c: char| c.is_whitespace() || c == '\0');
        let line = text.lines().next().unwrap_or_default().trim();
        if let Some(message) = line.strip_prefix("MSG:") {
            return Self::Nowhere(format!("the store says: {}", plain(message)));
        }
        let path = line.strip_prefix("PATH:").unwrap_or(line).trim();
        if path.starts_with('/') && !path.contains('\0') {
            return Self::Path(PathBuf::from(path));
        }
        Self::Nowhere(format!("the store points to {}, which is not a path of this system", plain(path)))
    }
}

/// Removes characters that a terminal would interpret as commands.
fn plain(text: &str) -> String {
    text.trim().chars().filter(|letter| !letter.is_control()).take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &Result<&str, &str>) {
        let expected = match expected {
            Ok(path) => Pointer::Path(PathBuf::from(path)),
            Err(reason) => Pointer::Nowhere((*reason).to_owned()),
        };
        assert_eq!(Pointer::parse(text.as_bytes()), expected, "{text:?}");
    }

    #[test]
    fn paths_and_messages() {
        check("PATH:/srv/builds/app.pdb\r\n", &Ok("/srv/builds/app.pdb"));
        check("/srv/with blanks/app.pdb", &Ok("/srv/with blanks/app.pdb"));
        check("MSG: Removed by policy \u{1b}[31m", &Err("the store says: Removed by policy [31m"));
        let elsewhere = "the store points to \\\\builds\\app.pdb, which is not a path of this system";
        check("PATH:\\\\builds\\app.pdb", &Err(elsewhere));
        check("", &Err("the store points to , which is not a path of this system"));
    }
}
