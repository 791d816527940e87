//! Files whose names are not UTF-8. A profile has their paths with replacement characters in place of invalid
//! bytes.

use std::fs;
use std::path::{Path, PathBuf};

/// The number of entries of a folder that are examined, and the maximum number of files found.
const ENTRIES: usize = 10_000;
const FOUND: usize = 16;

/// The files that a profile may mean by this path, if it has replacement characters: those whose paths equal
/// it after invalid bytes are replaced. There may be several, so the caller checks their identity. macOS and
/// Windows have few such files, and they are not looked for there.
pub fn files_of_lossy_path(path: &str) -> Vec<PathBuf> {
    let is_lossy = path.contains(char::REPLACEMENT_CHARACTER) && path.starts_with('/');
    if !is_lossy || !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let mut found = vec![PathBuf::from("/")];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let is_lossy = part.contains(char::REPLACEMENT_CHARACTER);
        found = if is_lossy {
            found.iter().flat_map(|folder| called(folder, part)).take(FOUND).collect()
        } else {
            found.into_iter().map(|folder| folder.join(part)).collect()
        };
    }
    found
}

/// The entries of a folder that are displayed with this name.
fn called(folder: &Path, name: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.take(ENTRIES).filter_map(|entry| Some(entry.ok()?.file_name()));
    names
        .filter(|entry| entry.to_string_lossy() == name)
        .map(|entry| folder.join(entry))
        .take(FOUND)
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn a_file_is_found_by_its_name_in_a_profile() {
        let folder = std::env::temp_dir().join(format!("nyquist-lossy-{}", std::process::id()));
        let folder_of_bytes = folder.join(OsStr::from_bytes(b"f\xfcr"));
        fs::create_dir_all(&folder_of_bytes).unwrap();
        let names = [&b"app\xff"[..], b"app\xfe", b"app", b"bpp\xff"].map(OsStr::from_bytes);
        for name in &names {
            fs::write(folder_of_bytes.join(name), "").unwrap();
        }
        let path = folder_of_bytes.join(names[0]);
        let mut found = files_of_lossy_path(&path.to_string_lossy());
        found.sort();
        assert_eq!(found, [folder_of_bytes.join(names[1]), path]);
        for path in ["/no/such/\u{fffd}", "\u{fffd}", "/bin/sh"] {
            assert!(files_of_lossy_path(path).is_empty(), "{path}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
