//! The dynamic loader that a program names (elf(5), `PT_INTERP`). If it is missing, the kernel reports that
//! the program itself is missing.

use nyquist_system::{OsStrExt as _, open_regular};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use nyquist_object::{Elf, FileSource};

/// The longest path that the kernel accepts (`PATH_MAX`).
const MAX_PATH_LEN: u64 = 4096;

/// The loader that a program names, if it does not exist.
pub fn missing_loader(program: &Path) -> Option<PathBuf> {
    missing_loader_of(&Elf::open(FileSource::new(open_regular(program).ok()?)).ok()?)
}

/// The same for an open file.
pub fn missing_loader_of(elf: &Elf<FileSource>) -> Option<PathBuf> {
    let section = elf.section(".interp").filter(|section| section.size <= MAX_PATH_LEN)?;
    let name = elf.data(section).ok()?;
    let name = name.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
    let loader = PathBuf::from(OsStr::from_bytes(name));
    (!loader.exists()).then_some(loader)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A program whose loader has another name than the system's.
    fn program_without_loader(name: &str) -> PathBuf {
        const KNOWN: &[u8] = b"/ld-linux";
        let mut bytes = fs::read("/bin/true").unwrap();
        let at = bytes.windows(KNOWN.len()).position(|window| window == KNOWN).unwrap();
        bytes[at..at + KNOWN.len()].copy_from_slice(b"/ld-lost_");
        let path = std::env::temp_dir().join(format!("nyquist-loader-{name}-{}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_loader_that_is_not_there_is_named() {
        let lost = program_without_loader("named");
        let named = missing_loader(&lost).unwrap();
        fs::remove_file(lost).unwrap();
        assert!(named.to_string_lossy().contains("/ld-lost_"), "{named:?}");
        assert_eq!(missing_loader(Path::new("/bin/true")), None);
        assert_eq!(missing_loader(Path::new("/etc/passwd")), None);
        assert_eq!(missing_loader(Path::new("/")), None);
    }
}
