//! The requests of a file to the dynamic loader: its libraries, and the folders to search for them.

use crate::{ByteSource, Elf, ObjectError};

/// Tags of `.dynamic` (System V gABI, "Dynamic Section").
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// The maximum number of entries; real files have a few hundred.
const MAX_ENTRIES: usize = 1 << 16;

/// The requests of a file to the dynamic loader. Names and paths are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicSection {
    /// The libraries that it needs (`DT_NEEDED`), in order.
    pub needed: Vec<Vec<u8>>,
    /// Folders separated by colons. They are searched first, also for the libraries of libraries
    /// (`DT_RPATH`).
    pub rpath: Option<Vec<u8>>,
    /// Folders separated by colons. They are searched only for the libraries of this file (`DT_RUNPATH`).
    pub runpath: Option<Vec<u8>>,
}

impl<S: ByteSource> Elf<S> {
    /// Reads `.dynamic`; `None` if the file has none, such as a statically linked one.
    pub fn dynamic(&self) -> Result<Option<DynamicSection>, ObjectError> {
        let Some(section) = self.section(".dynamic").filter(|section| section.has_bytes()) else {
            return Ok(None);
        };
        let names = self.sections().get(section.link as usize);
        let names = names.ok_or_else(|| ObjectError::malformed(".dynamic", "no table of strings"))?;
        let (entries, names) = (self.data(section)?, self.data(names)?);
        Ok(Some(parse(&entries, &names, self.is_64_bit(), self.is_little_endian())))
    }
}

/// Parses the entries: a tag and a value each. A name beyond the strings is left out.
fn parse(entries: &[u8], names: &[u8], is_64: bool, little_endian: bool) -> DynamicSection {
    let word = if is_64 { 8 } else { 4 };
    let number = |bytes: &[u8]| {
        let step = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if little_endian { bytes.iter().rev().fold(0, step) } else { bytes.iter().fold(0, step) }
    };
    let mut dynamic = DynamicSection::default();
    for entry in entries.chunks_exact(2 * word).take(MAX_ENTRIES) {
        let (tag, value) = entry.split_at(word);
        let name = || name_at(names, number(value));
        match number(tag) {
            DT_NULL => break,
            DT_NEEDED => dynamic.needed.extend(name()),
            DT_RPATH => dynamic.rpath = name(),
            DT_RUNPATH => dynamic.runpath = name(),
            _ => {}
        }
    }
    dynamic
}

fn name_at(names: &[u8], offset: u64) -> Option<Vec<u8>> {
    let rest = names.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    Some(rest[..end].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[u8] = b"\0libc.so.6\0$ORIGIN/lib\0";

    fn entries(pairs: &[(u64, u64)]) -> Vec<u8> {
        pairs.iter().flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()]).flatten().collect()
    }

    #[test]
    fn needed_libraries_and_their_folders_are_read() {
        let found = parse(&entries(&[(1, 1), (29, 11), (5, 99), (0, 0), (1, 1)]), NAMES, true, true);
        let expected = DynamicSection {
            needed: vec![b"libc.so.6".to_vec()],
            rpath: None,
            runpath: Some(b"$ORIGIN/lib".to_vec()),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn big_endian_files_of_32_bits_are_read() {
        let found = parse(&[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0], NAMES, false, false);
        assert_eq!(found.needed, [b"libc.so.6"]);
    }

    #[test]
    fn names_beyond_the_strings_are_left_out() {
        for at in [23, 24, u64::MAX] {
            assert_eq!(parse(&entries(&[(1, at)]), NAMES, true, true), DynamicSection::default(), "{at}");
        }
        assert_eq!(parse(&entries(&[(1, 1)]), b"\0no end", true, true), DynamicSection::default());
    }
}
