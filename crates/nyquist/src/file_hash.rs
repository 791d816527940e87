//! The hash by which OpenTelemetry identifies a file without a build id (`htlhash`): of its first and last 4 KiB, and
//! its length.

use nyquist_object::{DebugId, Elf, FileSource};
use nyquist_profile::Lib;
use nyquist_system::open_regular;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The bytes at each end.
const END_BYTES: u64 = 4096;

/// The bytes of the hash that are used.
const ID_BYTES: usize = 16;

/// The hash of a lib's file, if its code is still that of the lib.
pub(crate) fn of(lib: &Lib) -> Option<String> {
    if lib.breakpad_id.is_empty() || !Path::new(&lib.path).is_absolute() {
        return None;
    }
    let file = open_regular(Path::new(&lib.path)).ok()?;
    let code = Elf::open(FileSource::new(file.try_clone().ok()?)).ok()?.text_hash().ok()?;
    let is_same = DebugId::from_guid(code, 0).breakpad() == lib.breakpad_id;
    of_file(&file).ok().filter(|_| is_same)
}

fn of_file(mut file: &File) -> io::Result<String> {
    let length = file.metadata()?.len();
    let mut hash = Sha256::new();
    for start in [0, length.saturating_sub(END_BYTES)] {
        let mut part = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.take(END_BYTES).read_to_end(&mut part)?;
        hash.update(&part);
    }
    hash.update(length.to_be_bytes());
    Ok(hash.finalize().iter().take(ID_BYTES).fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The hash of `sha256sum` over the same bytes.
    #[test]
    fn both_ends_and_the_length_are_hashed() {
        let path = std::env::temp_dir().join(format!("nyquist-file-hash-{}", std::process::id()));
        fs::write(&path, b"abc").unwrap();
        let hash = of_file(&File::open(&path).unwrap()).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(hash, "a7e79e8a85da69bad5c3fea209342ac9");
        assert_eq!(of(&Lib { path: "relative".into(), breakpad_id: "x".into(), ..Lib::default() }), None);
    }
}
