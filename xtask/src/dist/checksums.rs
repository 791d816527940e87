//! `SHA256SUMS`, which `sha256sum -c` reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The checksums of files by name, in the order of the names.
#[derive(Debug, Default)]
pub(super) struct Checksums(BTreeMap<String, String>);

impl Checksums {
    /// Adds a file.
    pub(super) fn add(&mut self, name: &str, bytes: &[u8]) {
        let mut digits = String::new();
        for byte in Sha256::digest(bytes) {
            write!(digits, "{byte:02x}").expect("a string can be written to");
        }
        self.0.insert(name.to_owned(), digits);
    }

    /// Whether no file was added.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The checksum of a file, if it was added.
    pub(super) fn of(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The file's text.
    pub(super) fn text(&self) -> String {
        let lines = self.0.iter().flat_map(|(name, digits)| [digits, "  ", name, "\n"]);
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Checksums;

    #[test]
    fn the_text_is_that_of_sha256sum() {
        let mut sums = Checksums::default();
        sums.add("b", b"");
        sums.add("a", b"abc");
        assert_eq!(
            sums.text(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
        );
        assert!(sums.of("a").is_some() && sums.of("c").is_none());
    }
}
