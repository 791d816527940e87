//! Reads the small texts that the kernel makes when they are read, as those in `/proc`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The room for a text at first. Few are larger.
const ROOM: usize = 4096;

/// Reads a text of the kernel. Its length is not known before, so the standard functions would begin with a few
/// bytes, and call the kernel many times. A name in it may be any bytes, so those that are not UTF-8 are replaced.
///
/// # Errors
/// If it cannot be opened or read.
pub fn read_kernel_text(path: impl AsRef<Path>) -> io::Result<String> {
    let mut bytes = vec![0; ROOM];
    let mut len = 0;
    let mut file = File::open(path)?;
    loop {
        match file.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if len == bytes.len() {
            bytes.resize(2 * len, 0);
        }
    }
    bytes.truncate(len);
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_are_read() {
        for path in ["/proc/self/comm", "/proc/self/maps", "/proc/kallsyms"] {
            let expected = std::fs::read_to_string(path).unwrap();
            let text = read_kernel_text(path).unwrap();
            assert_eq!(text.lines().next(), expected.lines().next(), "{path}");
        }
        assert!(read_kernel_text("/proc/self/maps").unwrap().ends_with('\n'));
        assert!(read_kernel_text("/proc/self/none").is_err());
    }

    #[test]
    fn a_name_of_any_bytes_hides_nothing() {
        let status = std::thread::spawn(|| {
            std::fs::write("/proc/thread-self/comm", b"\xff\xfe").unwrap();
            read_kernel_text("/proc/thread-self/status").unwrap()
        });
        let status = status.join().unwrap();
        assert!(status.starts_with("Name:\t\u{fffd}\u{fffd}\n") && status.contains("\nUid:"), "{status}");
    }
}
