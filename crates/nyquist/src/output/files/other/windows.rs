//! Files that are not replaced, and how new ones are made.

pub(crate) use crate::system::windows::sys::redirect_stdout_to_stderr;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::io::AsHandle as _;
use std::path::Path;

/// The devices of DOS, which every folder seems to contain ("Naming Files, Paths, and Namespaces").
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// Those that have a digit behind their names.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];

/// The device that keeps nothing.
#[cfg(test)]
pub(crate) const NULL_DEVICE: &str = "NUL";

/// What is written to and not replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// What has no positions.
    Pipe,
    Device,
}

/// The kind of special file that a path names, if it is one.
pub(crate) fn kind(path: &Path) -> Option<Special> {
    if path.to_string_lossy().starts_with(r"\\.\pipe\") {
        return Some(Special::Pipe);
    }
    let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let is_device = DEVICES.iter().any(|device| stem.eq_ignore_ascii_case(device)) || is_numbered(stem);
    is_device.then_some(Special::Device)
}

fn is_numbered(stem: &str) -> bool {
    let mut chars = stem.chars();
    let is_number = matches!(chars.next_back(), Some('1'..='9' | '¹' | '²' | '³'));
    is_number && NUMBERED_DEVICES.iter().any(|device| chars.as_str().eq_ignore_ascii_case(device))
}

/// The standard output.
#[expect(clippy::disallowed_methods, reason = "the profile is written to it, and not text")]
pub(crate) fn standard_output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}

/// A new file. It may be renamed and removed while it is open, as the standard library opens it.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// A new folder.
pub(crate) fn new_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_dos_are_no_files() {
        for name in ["NUL", "con.json", "Com1", "LPT9.gz", "COM\u{b2}", "conout$", r"C:\folder\aux"] {
            assert_eq!(kind(Path::new(name)), Some(Special::Device), "{name}");
        }
        for name in ["COM", "COM10", "lpt0", "console.json", "common1"] {
            assert_eq!(kind(Path::new(name)), None, "{name}");
        }
        assert_eq!(kind(Path::new(r"\\.\pipe\a")), Some(Special::Pipe));
    }
}
