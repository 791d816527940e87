//! The jitdump format: the file in which a just-in-time compiler records the code that it generates.
//!
//! The source of the layouts is the kernel's `tools/perf/Documentation/jitdump-specification.txt`. The
//! file is read while it is written, so an incomplete record is not an error.

use crate::cursor::RecordCursor;
use crate::{ByteOrder, RecordError};

/// `JiTD`, as a big-endian number.
const MAGIC: u32 = 0x4a69_5444;

/// The size of the common prefix of records: kind, size and time.
const PREFIX: usize = 16;

/// The flag of files with times of the CPU's counter instead of a clock.
const ARCH_TIMESTAMP: u64 = 1;

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitDumpHeader {
    /// Its size in bytes; the first record follows.
    pub size: u32,
    /// The process that wrote it, by its pid in its own namespace.
    pub pid: u32,
    /// The machine that its code is for: `e_machine` of ELF.
    pub machine: u32,
    /// The time at which the file was created, in ns of its clock.
    pub time: u64,
    /// Whether the times are those of `CLOCK_MONOTONIC`. If not, only their order has a meaning.
    pub has_clock_times: bool,
}

impl JitDumpHeader {
    /// Parses the header of a little-endian file of version 1. `None` if the bytes do not yet contain the
    /// whole header.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, JitDumpError> {
        let mut cursor = RecordCursor::new(bytes, ByteOrder::Little);
        let fields = (|| {
            let (magic, version, size) = (cursor.u32("magic")?, cursor.u32("version")?, cursor.u32("size")?);
            let (machine, _pad, pid) = (cursor.u32("machine")?, cursor.u32("pad")?, cursor.u32("pid")?);
            let (time, flags) = (cursor.u64("time")?, cursor.u64("flags")?);
            Ok::<_, RecordError>((magic, version, size, (machine, pid, time), flags))
        })();
        let Ok((magic, version, size, (machine, pid, time), flags)) = fields else { return Ok(None) };
        match magic {
            MAGIC => {}
            _ if magic.swap_bytes() == MAGIC => return Err(JitDumpError::BigEndian),
            _ => return Err(JitDumpError::Magic),
        }
        if version != 1 {
            return Err(JitDumpError::Version(version));
        }
        Ok(Some(Self { size, pid, machine, time, has_clock_times: flags & ARCH_TIMESTAMP == 0 }))
    }
}

/// One record of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitDumpRecord<'a> {
    /// The time at which it was written, in ns of the file's clock.
    pub time: u64,
    /// The record's size in bytes, including the prefix.
    pub size: u32,
    /// Its contents.
    pub body: JitDumpBody<'a>,
}

/// The contents of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitDumpBody<'a> {
    /// Code was generated.
    Load {
        /// The address of the code.
        address: u64,
        /// A number that is unique in this file.
        index: u64,
        /// The function's name, usually in UTF-8.
        name: &'a [u8],
        /// The offset of the code's bytes in the record.
        code_offset: u32,
        /// The number of bytes of code, up to the end of the record.
        code_size: u32,
    },
    /// Code was moved.
    Move {
        /// The code's number.
        index: u64,
        /// Its old address.
        from: u64,
        /// Its new address.
        to: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// The lines of code whose `Load` follows.
    DebugInfo {
        /// The address of the code.
        address: u64,
        /// The lines.
        lines: JitDumpLines<'a>,
    },
    /// The unwind information of the code whose `Load` follows.
    UnwindingInfo {
        /// An `.eh_frame` section, then its `.eh_frame_hdr`.
        data: &'a [u8],
        /// The size of the header at the end of `data`.
        header_size: u64,
    },
    /// The file ends.
    Close,
    /// An unknown kind.
    Other(u32),
}

impl<'a> JitDumpRecord<'a> {
    /// The size of the record that begins with `bytes`; `None` if they do not yet contain its prefix. An
    /// impossible size is an error, because what follows cannot be read.
    pub fn size(bytes: &[u8]) -> Result<Option<u32>, JitDumpError> {
        let mut cursor = RecordCursor::new(bytes, ByteOrder::Little);
        let (Ok(_), Ok(size)) = (cursor.u32("kind"), cursor.u32("size")) else { return Ok(None) };
        if (size as usize) < PREFIX { Err(JitDumpError::RecordSize(size)) } else { Ok(Some(size)) }
    }

    /// Parses a record of `size` bytes that is too large to be read completely, from its start. For generated
    /// code that suffices, because the code itself comes last. `None` for other records, and if a name does
    /// not end in `start`.
    pub fn parse_start(start: &'a [u8], size: u32) -> Option<Self> {
        let mut cursor = RecordCursor::new(start, ByteOrder::Little);
        let (kind, _size, time) =
            (cursor.u32("kind").ok()?, cursor.u32("size").ok()?, cursor.u64("time").ok()?);
        if kind != 0 {
            return None;
        }
        let made = CodeLoadFields::read(&mut cursor).ok()?;
        let name = cursor.terminated("name").ok()?;
        let code_size = u32::try_from(made.code_size).ok()?;
        let code_offset = size.checked_sub(code_size)?;
        if (code_offset as usize) < start.len() - cursor.remaining() {
            return None;
        }
        Some(Self { time, size, body: made.with(name, code_offset, code_size) })
    }

    /// Parses the record that begins with `bytes`; `None` if they do not yet contain the whole record.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, JitDumpError> {
        let Some(size) = Self::size(bytes)? else { return Ok(None) };
        let Some(bytes) = bytes.get(..size as usize) else { return Ok(None) };
        let mut cursor = RecordCursor::new(bytes, ByteOrder::Little);
        let (kind, _size, time) = (cursor.u32("kind")?, cursor.u32("size")?, cursor.u64("time")?);
        let body = match kind {
            0 => load(&mut cursor, size)?,
            1 => {
                let _threads = (cursor.u32("pid")?, cursor.u32("tid")?);
                let (_vma, from, to) =
                    (cursor.u64("vma")?, cursor.u64("old address")?, cursor.u64("new address")?);
                JitDumpBody::Move {
                    from,
                    to,
                    size: cursor.u64("code size")?,
                    index: cursor.u64("code index")?,
                }
            }
            2 => {
                let (address, count) = (cursor.u64("address")?, cursor.u64("count")?);
                JitDumpBody::DebugInfo { address, lines: JitDumpLines { entries: cursor.rest(), count } }
            }
            3 => JitDumpBody::Close,
            4 => {
                let (size, header_size) = (cursor.u64("unwinding size")?, cursor.u64("header size")?);
                let _mapped = cursor.u64("mapped size")?;
                JitDumpBody::UnwindingInfo { data: cursor.counted(size, 1, "unwinding data")?, header_size }
            }
            other => JitDumpBody::Other(other),
        };
        Ok(Some(Self { time, size, body }))
    }
}

/// The fields before the name of generated code.
struct CodeLoadFields {
    address: u64,
    code_size: u64,
    index: u64,
}

impl CodeLoadFields {
    fn read(cursor: &mut RecordCursor<'_>) -> Result<Self, RecordError> {
        let _threads = (cursor.u32("pid")?, cursor.u32("tid")?);
        let (_vma, address) = (cursor.u64("vma")?, cursor.u64("address")?);
        Ok(Self { address, code_size: cursor.u64("code size")?, index: cursor.u64("code index")? })
    }

    fn with(self, name: &[u8], code_offset: u32, code_size: u32) -> JitDumpBody<'_> {
        JitDumpBody::Load { address: self.address, index: self.index, name, code_offset, code_size }
    }
}

fn load<'a>(cursor: &mut RecordCursor<'a>, size: u32) -> Result<JitDumpBody<'a>, RecordError> {
    let made = CodeLoadFields::read(cursor)?;
    // The code comes last, so its position is computed from the end; a name may contain any byte except zero.
    let code = usize::try_from(made.code_size).unwrap_or(usize::MAX);
    let code_size = cursor.split_tail(code, "code")?.remaining() as u32;
    Ok(made.with(cursor.text(), size - code_size, code_size))
}

/// The lines of a piece of code, in the file's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitDumpLines<'a> {
    entries: &'a [u8],
    count: u64,
}

impl<'a> JitDumpLines<'a> {
    /// The lines, up to the first truncated one.
    pub fn iter(self) -> impl Iterator<Item = JitDumpLine<'a>> {
        let mut cursor = RecordCursor::new(self.entries, ByteOrder::Little);
        (0..self.count).map_while(move |_| {
            let (address, line) = (cursor.u64("address").ok()?, cursor.u32("line").ok()?);
            let _discriminator = cursor.u32("discriminator").ok()?;
            Some(JitDumpLine { address, line, file: cursor.terminated("file").ok()? })
        })
    }
}

/// The line from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitDumpLine<'a> {
    /// The first address.
    pub address: u64,
    /// The line, from 1.
    pub line: u32,
    /// The file.
    pub file: &'a [u8],
}

/// Marks the same file as in the previous entry.
const SAME_FILE: &[u8] = b"\xff";

impl JitDumpLine<'_> {
    /// Whether the file is the same as in the previous entry.
    pub fn is_same_file(&self) -> bool {
        self.file == SAME_FILE
    }
}

/// Errors in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JitDumpError {
    /// It is not a jitdump.
    #[error("the file does not begin like a jitdump")]
    Magic,
    /// It comes from a big-endian machine.
    #[error("its numbers are big-endian")]
    BigEndian,
    /// It has an unknown version.
    #[error("the file is of version {0}, not 1")]
    Version(u32),
    /// A record is smaller than its own prefix, so later records cannot be found.
    #[error("a record of {0} bytes is smaller than its prefix")]
    RecordSize(u32),
    /// A record contradicts itself.
    #[error(transparent)]
    Record(#[from] RecordError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, fields: &[&[u8]]) -> Vec<u8> {
        let body = fields.concat();
        let size = (PREFIX + body.len()) as u32;
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), &77_u64.to_le_bytes(), &body].concat()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn header(magic: u32, version: u32, flags: u64) -> Vec<u8> {
        let start = [magic, version, 40, 62, 0, 1234];
        let start: Vec<u8> = start.iter().flat_map(|word| word.to_le_bytes()).collect();
        [start, words(&[5, flags])].concat()
    }

    #[test]
    fn a_header_says_its_process_and_clock() {
        let parsed = JitDumpHeader::parse(&header(MAGIC, 1, 0)).unwrap().unwrap();
        assert_eq!(
            parsed,
            JitDumpHeader { size: 40, pid: 1234, machine: 62, time: 5, has_clock_times: true }
        );
        assert!(!JitDumpHeader::parse(&header(MAGIC, 1, 1)).unwrap().unwrap().has_clock_times);
        assert_eq!(JitDumpHeader::parse(&header(MAGIC, 1, 0)[..39]), Ok(None));
        let check = |bytes: &[u8], error| assert_eq!(JitDumpHeader::parse(bytes), Err(error));
        check(&header(MAGIC, 2, 0), JitDumpError::Version(2));
        check(&header(MAGIC.swap_bytes(), 1, 0), JitDumpError::BigEndian);
        check(&header(0, 1, 0), JitDumpError::Magic);
    }

    #[test]
    fn loaded_code_has_a_name_and_bytes() {
        let bytes =
            record(0, &[&words(&[0]), &words(&[9, 0x7000, 3, 17]), b"JS:*f /x.js:1:2\0", b"\0\x90\xc3"]);
        let parsed = JitDumpRecord::parse(&bytes).unwrap().unwrap();
        let JitDumpBody::Load { address, index, name, code_offset, code_size } = parsed.body else {
            panic!()
        };
        assert_eq!((parsed.time, address, index), (77, 0x7000, 17));
        assert_eq!((name, code_size), (&b"JS:*f /x.js:1:2"[..], 3));
        assert_eq!(code_offset as usize, bytes.len() - 3);
        let size = bytes.len() as u32;
        assert_eq!(JitDumpRecord::parse_start(&bytes[..bytes.len() - 3], size), Some(parsed));
        assert_eq!(JitDumpRecord::parse_start(&bytes[..bytes.len() - 4], size), None, "the name may go on");
        assert_eq!(JitDumpRecord::parse_start(&bytes, size - 1), None, "the code would begin in the name");
    }

    #[test]
    fn code_larger_than_its_record_is_an_error() {
        let bytes = record(0, &[&words(&[0]), &words(&[9, 0x7000, 300, 17]), b"f\0"]);
        assert!(matches!(JitDumpRecord::parse(&bytes), Err(JitDumpError::Record(_))));
    }

    #[test]
    fn moves_and_ends_are_read() {
        let moved = record(1, &[&words(&[0]), &words(&[0, 0x1000, 0x2000, 16, 3])]);
        let body = JitDumpRecord::parse(&moved).unwrap().unwrap().body;
        assert_eq!(body, JitDumpBody::Move { index: 3, from: 0x1000, to: 0x2000, size: 16 });
        assert_eq!(JitDumpRecord::parse(&record(3, &[])).unwrap().unwrap().body, JitDumpBody::Close);
        assert_eq!(JitDumpRecord::parse(&record(9, &[b"abc"])).unwrap().unwrap().body, JitDumpBody::Other(9));
    }

    #[test]
    fn lines_name_their_file_or_the_one_before() {
        let line = |address: u64, line: u32, file: &[u8]| {
            [&address.to_le_bytes()[..], &line.to_le_bytes(), &[0; 4], file, b"\0"].concat()
        };
        let bytes = record(2, &[&words(&[0x7000, 3]), &line(0x7000, 4, b"/x.js"), &line(0x7010, 5, b"\xff")]);
        let body = JitDumpRecord::parse(&bytes).unwrap().unwrap().body;
        let JitDumpBody::DebugInfo { address: 0x7000, lines } = body else { panic!("{body:?}") };
        let lines: Vec<_> = lines.iter().map(|line| (line.address, line.line, line.is_same_file())).collect();
        assert_eq!(lines, [(0x7000, 4, false), (0x7010, 5, true)], "the third is not there");
    }

    #[test]
    fn a_record_that_is_being_written_is_no_error() {
        let bytes = record(3, &[]);
        for len in 0..bytes.len() {
            assert_eq!(JitDumpRecord::parse(&bytes[..len]), Ok(None));
        }
        assert_eq!(JitDumpRecord::parse(&[0, 0, 0, 0, 7, 0, 0, 0]), Err(JitDumpError::RecordSize(7)));
    }
}
