//! Archives of object files (`.a`), in the formats of BSD's and GNU's `ar` (ar(5)).

use crate::{ByteSource, FileOffset, ObjectError};

const MAGIC: &[u8; 8] = b"!<arch>\n";
const HEADER_SIZE: usize = 60;

/// The maximum number of members, and the maximum length of a name.
const MAX_MEMBERS: usize = 1 << 20;
const MAX_NAME: u64 = 4096;

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveMember {
    /// Its name, without folders.
    pub name: Vec<u8>,
    /// The time of its last modification, in seconds since the epoch; 0 in reproducible archives.
    pub modified: u64,
    /// The start of its contents.
    pub offset: FileOffset,
    /// Its size in bytes.
    pub size: u64,
}

/// The table of contents of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    members: Vec<ArchiveMember>,
}

impl Archive {
    /// Reads the headers of all members, up to the first damaged one, with a small read for each.
    ///
    /// # Errors
    /// If the file is not an archive.
    pub fn read(source: &impl ByteSource) -> Result<Self, ObjectError> {
        let mut magic = [0; 8];
        source.read_exact_at(0, &mut magic).map_err(|_| ObjectError::NotAnObject)?;
        if &magic != MAGIC {
            return Err(ObjectError::NotAnObject);
        }
        let (mut members, mut long_names, mut at) = (Vec::new(), Vec::new(), MAGIC.len() as u64);
        while members.len() < MAX_MEMBERS
            && let Some((member, next)) = read_member(source, at, &long_names)
        {
            at = next;
            match member.name.as_slice() {
                b"//" => long_names = source.read_range(member.offset.0, member.size).unwrap_or_default(),
                // The symbol table, in its spellings.
                b"" | b"/" | b"/SYM64/" => {}
                name if name.starts_with(b"__.SYMDEF") => {}
                _ => members.push(member),
            }
        }
        Ok(Self { members })
    }

    /// The files in it, in order.
    pub fn members(&self) -> &[ArchiveMember] {
        &self.members
    }
}

/// The member whose header is at `at`, and the position of the next one.
fn read_member(source: &impl ByteSource, at: u64, long_names: &[u8]) -> Option<(ArchiveMember, u64)> {
    let mut header = [0; HEADER_SIZE];
    source.read_exact_at(at, &mut header).ok()?;
    let (fields, end) = header.split_at(58);
    if end != b"`\n" {
        return None;
    }
    let name = fields.get(..16)?.trim_ascii_end();
    let modified = number(fields.get(16..28)?).unwrap_or(0);
    let size = number(fields.get(48..58)?)?;
    let offset = at.checked_add(HEADER_SIZE as u64)?;
    let next = offset.checked_add(size)?.checked_next_multiple_of(2)?;
    // BSD puts a long name before the contents, GNU puts all of them into a separate member.
    if let Some(len) = name.strip_prefix(b"#1/").and_then(number) {
        let bytes = source.read_range(offset, len).ok().filter(|_| len <= size.min(MAX_NAME))?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let name = bytes.get(..end)?.to_vec();
        return Some((
            ArchiveMember { name, modified, offset: FileOffset(offset + len), size: size - len },
            next,
        ));
    }
    let name = match name.strip_prefix(b"/").and_then(number) {
        Some(long) => {
            let rest = long_names.get(usize::try_from(long).ok()?..)?;
            let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            rest.get(..end.min(MAX_NAME as usize))?.strip_suffix(b"/")?
        }
        None if matches!(name, b"/" | b"//" | b"/SYM64/") => name,
        None => name.strip_suffix(b"/").unwrap_or(name),
    };
    Some((ArchiveMember { name: name.to_vec(), modified, offset: FileOffset(offset), size }, next))
}

/// A decimal number, padded with spaces.
fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, modified: u64, contents: &[u8]) -> Vec<u8> {
        let header =
            format!("{name:16}{modified:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", contents.len());
        let mut bytes = [header.as_bytes(), contents].concat();
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        bytes
    }

    fn check(parts: &[Vec<u8>], expected: &[(&str, u64, &str)]) {
        let bytes = [MAGIC.to_vec(), parts.concat()].concat();
        let archive = Archive::read(&bytes).unwrap();
        let found = archive.members().iter().map(|member| {
            let contents = bytes.read_range(member.offset.0, member.size).unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (text(&member.name), member.modified, text(&contents))
        });
        let expected = expected.iter().map(|&(name, time, text)| (name.to_owned(), time, text.to_owned()));
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        for len in 8..bytes.len() {
            assert!(Archive::read(&&bytes[..len]).unwrap().members().len() <= parts.len());
        }
    }

    #[test]
    fn members_have_names_of_three_kinds() {
        check(
            &[
                member("__.SYMDEF SORTED", 0, b"table"),
                member("short.o", 7, b"one"),
                member("#1/20", 12345, b"a_rather_long_name.oTWO"),
            ],
            &[("short.o", 7, "one"), ("a_rather_long_name.o", 12345, "TWO")],
        );
        check(
            &[
                member("/", 0, b"table"),
                member("//", 0, b"a_rather_long_name.o/\nanother.o/\n"),
                member("/22", 3, b"x"),
                member("short.o/", 4, b"yz"),
            ],
            &[("another.o", 3, "x"), ("short.o", 4, "yz")],
        );
    }

    #[test]
    fn what_is_no_archive_says_so() {
        for bytes in [b"".as_slice(), b"!<arch>", b"!<thin>\n", b"\x7fELF...."] {
            assert!(matches!(Archive::read(&bytes), Err(ObjectError::NotAnObject)), "{bytes:?}");
        }
        assert_eq!(Archive::read(&b"!<arch>\n no header".as_slice()).unwrap().members(), []);
    }
}
