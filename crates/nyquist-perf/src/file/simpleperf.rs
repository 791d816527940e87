//! Android simpleperf's extensions of perf.data: symbol tables, descriptions of the recording, and own
//! records.
//!
//! Source: `simpleperf/record_file_format.h`, `record.h`, `record_file.proto` and, for the layout of the
//! symbol tables, `record_file_reader.cpp` in Android's `platform/system/extras`.

use crate::cursor::RecordCursor;
use crate::{ByteOrder, RecordError};

/// The numbers of simpleperf's features.
pub(crate) mod feature {
    pub(crate) const FILE: u32 = 128;
    pub(crate) const META_INFO: u32 = 129;
    pub(crate) const FILE2: u32 = 132;
}

/// The numbers of simpleperf's records. Their size has 32 bits: its upper half is stored in `misc`.
pub(crate) mod record {
    pub(crate) const FIRST: u32 = 32768;
    pub(crate) const KERNEL_SYMBOL: u32 = 32769;
    pub(crate) const SPLIT: u32 = 32772;
    pub(crate) const SPLIT_END: u32 = 32773;
    pub(crate) const EVENT_ID: u32 = 32774;
    pub(crate) const TRACING_DATA: u32 = 32777;
    /// Later numbers are not known to be simpleperf's.
    pub(crate) const LAST: u32 = FIRST + 0xff;
}

/// Whether a number is that of a simpleperf record.
pub(crate) fn is_record(kind: u32) -> bool {
    (record::FIRST..=record::LAST).contains(&kind)
}

/// Descriptions in a simpleperf recording that perf does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimplePerf {
    /// Names and values (`META_INFO`), such as `app_package_name`, `android_version`, `trace_offcpu`.
    pub meta: Vec<(String, String)>,
    /// The symbols of files, as they were on the device (`FILE`, `FILE2`).
    pub files: Vec<SymbolFile>,
    /// The kernel's symbols from `/proc/kallsyms` (`KERNEL_SYMBOL`); empty if they are missing.
    pub kallsyms: Vec<u8>,
}

/// A file with its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolFile {
    /// Its path, the same as in mappings.
    pub path: String,
    /// Its kind.
    pub kind: SymbolFileKind,
    /// The lowest stated virtual memory address of its code; 0 if it is not an ELF file.
    pub min_vaddr: u64,
    /// Its offset in the file or, for a kernel module, in its memory; `None` if an old simpleperf did not
    /// record it.
    pub min_vaddr_offset: Option<u64>,
    /// Its functions.
    pub symbols: Vec<FileSymbol>,
}

/// The kind of a file with symbols (`enum DsoType` in simpleperf's `dso.h`), which determines the meaning
/// of its symbols' addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SymbolFileKind {
    /// The kernel: addresses in its memory.
    Kernel,
    /// A module of the kernel: stated virtual memory addresses.
    KernelModule,
    /// An ELF file: stated virtual memory addresses.
    Elf,
    /// A file that contains dex files: offsets in the file.
    Dex,
    /// Code generated at run time: addresses in the process's memory.
    SymbolMap,
    /// Anything else.
    #[default]
    Unknown,
}

impl SymbolFileKind {
    fn from_number(number: u64) -> Self {
        match number {
            0 => Self::Kernel,
            1 => Self::KernelModule,
            2 => Self::Elf,
            3 => Self::Dex,
            4 => Self::SymbolMap,
            _ => Self::Unknown,
        }
    }
}

/// A function of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSymbol {
    /// Its address, in the terms of its file's kind.
    pub address: u64,
    /// Its size in bytes.
    pub len: u32,
    /// Its name, not demangled.
    pub name: String,
}

impl SimplePerf {
    /// The value with that name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.meta.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The names of events by their types and configurations (`event_type_info`).
    pub(crate) fn event_names(&self) -> impl Iterator<Item = (u32, u64, &str)> {
        let lines = self.value("event_type_info").unwrap_or_default().lines();
        lines.filter_map(|line| {
            let mut words = line.rsplitn(3, ',');
            let (config, kind) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some((kind, config, words.next()?))
        })
    }

    /// Reads the section of a feature, up to the first damaged item.
    pub(crate) fn add(&mut self, number: u32, cursor: &mut RecordCursor<'_>) -> Result<(), RecordError> {
        match number {
            feature::META_INFO => self.meta = meta(cursor.rest()),
            feature::FILE => {
                while cursor.remaining() > 0 {
                    self.files.push(file(&mut piece(cursor)?)?);
                }
            }
            feature::FILE2 => {
                while cursor.remaining() > 0 {
                    self.files.push(file_of_message(piece(cursor)?.rest()));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Names and values, each with a terminating zero.
fn meta(bytes: &[u8]) -> Vec<(String, String)> {
    let mut texts = bytes.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    let mut pairs = Vec::new();
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        pairs.push((name, value));
    }
    pairs
}

/// The next item of a section, after its length.
fn piece<'a>(cursor: &mut RecordCursor<'a>) -> Result<RecordCursor<'a>, RecordError> {
    let len = cursor.u32("file")?;
    Ok(RecordCursor::new(cursor.bytes(len as usize, "file")?, cursor.order()))
}

/// A file of the feature `FILE`.
fn file(cursor: &mut RecordCursor<'_>) -> Result<SymbolFile, RecordError> {
    let path = text(cursor)?;
    let kind = SymbolFileKind::from_number(cursor.u32("file type")?.into());
    let min_vaddr = cursor.u64("address")?;
    let mut file = SymbolFile { path, kind, min_vaddr, ..SymbolFile::default() };
    for _ in 0..cursor.u32("symbols")? {
        let (address, len) = (cursor.u64("symbol")?, cursor.u32("symbol")?);
        file.symbols.push(FileSymbol { address, len, name: text(cursor)? });
    }
    let has_offset = matches!(kind, SymbolFileKind::Elf | SymbolFileKind::KernelModule);
    if has_offset && cursor.remaining() >= 8 {
        file.min_vaddr_offset = Some(cursor.u64("offset")?);
    }
    Ok(file)
}

fn text(cursor: &mut RecordCursor<'_>) -> Result<String, RecordError> {
    Ok(String::from_utf8_lossy(cursor.terminated("text")?).into_owned())
}

/// A file of the feature `FILE2`: the message `FileFeature`.
fn file_of_message(bytes: &[u8]) -> SymbolFile {
    let mut file = SymbolFile::default();
    for (number, value) in MessageFields(bytes) {
        match (number, value) {
            (1, FieldValue::Bytes(bytes)) => file.path = String::from_utf8_lossy(bytes).into_owned(),
            (2, FieldValue::Number(number)) => file.kind = SymbolFileKind::from_number(number),
            (3, FieldValue::Number(number)) => file.min_vaddr = number,
            (4, FieldValue::Bytes(bytes)) => file.symbols.push(symbol_of_message(bytes)),
            // `ElfFile` and `KernelModule` have the offset as their first field.
            (6 | 7, FieldValue::Bytes(bytes)) => file.min_vaddr_offset = Some(first_number(bytes)),
            _ => {}
        }
    }
    // A message without a type is of the type 0.
    if file.kind == SymbolFileKind::Unknown && MessageFields(bytes).all(|(number, _)| number != 2) {
        file.kind = SymbolFileKind::Kernel;
    }
    file
}

fn symbol_of_message(bytes: &[u8]) -> FileSymbol {
    let mut symbol = FileSymbol::default();
    for (number, value) in MessageFields(bytes) {
        match (number, value) {
            (1, FieldValue::Number(number)) => symbol.address = number,
            (2, FieldValue::Number(number)) => symbol.len = u32::try_from(number).unwrap_or(u32::MAX),
            (3, FieldValue::Bytes(bytes)) => symbol.name = String::from_utf8_lossy(bytes).into_owned(),
            _ => {}
        }
    }
    symbol
}

/// The field 1 of a message, which is 0 if it is missing.
fn first_number(bytes: &[u8]) -> u64 {
    let numbers = MessageFields(bytes).filter_map(|field| match field {
        (1, FieldValue::Number(number)) => Some(number),
        _ => None,
    });
    numbers.last().unwrap_or_default()
}

/// The fields of a message (Protocol Buffers, "Encoding"), up to the first damaged one.
struct MessageFields<'a>(&'a [u8]);

/// The value of a field.
enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl MessageFields<'_> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl<'a> Iterator for MessageFields<'a> {
    type Item = (u64, FieldValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let mut take = |len: usize| {
            let (taken, rest) = self.0.split_at_checked(len)?;
            self.0 = rest;
            Some(taken)
        };
        let value = match key & 7 {
            0 => FieldValue::Number(self.varint()?),
            1 => FieldValue::Bytes(take(8)?),
            5 => FieldValue::Bytes(take(4)?),
            2 => {
                let len = usize::try_from(self.varint()?).ok()?;
                let (taken, rest) = self.0.split_at_checked(len)?;
                self.0 = rest;
                FieldValue::Bytes(taken)
            }
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

/// `EVENT_ID`: the indexes of events, and ids that belong to them.
pub(crate) fn event_ids(body: &[u8], order: ByteOrder) -> Vec<(usize, u64)> {
    let Some((_count, entries)) = body.split_first_chunk::<8>() else { return Vec::new() };
    let word = |bytes: &[u8], at: usize| Some(order.u64(*bytes.get(at..)?.first_chunk()?));
    let entry = |entry: &[u8; 16]| Some((usize::try_from(word(entry, 0)?).ok()?, word(entry, 8)?));
    entries.as_chunks::<16>().0.iter().filter_map(entry).collect()
}

/// The contents of `KERNEL_SYMBOL` and `TRACING_DATA`: a length, and that many bytes.
pub(crate) fn counted(body: &[u8], order: ByteOrder) -> Option<&[u8]> {
    let (len, rest) = body.split_first_chunk::<4>()?;
    Some(rest.get(..order.u32(*len) as usize).unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(number: u32, bytes: &[u8]) -> SimplePerf {
        let mut parsed = SimplePerf::default();
        let _ = parsed.add(number, &mut RecordCursor::new(bytes, ByteOrder::Little));
        parsed
    }

    #[test]
    fn events_have_the_names_that_the_recording_says() {
        let text =
            b"simpleperf_version\x001.build\0event_type_info\0cpu-clock:u,1,0\nsched:sched_switch,2,91\0";
        let parsed = parsed(feature::META_INFO, text);
        assert_eq!(parsed.value("simpleperf_version"), Some("1.build"));
        let names: Vec<_> = parsed.event_names().collect();
        assert_eq!(names, [(1, 0, "cpu-clock:u"), (2, 91, "sched:sched_switch")]);
    }

    /// A file with one symbol, in the format of each of the two features.
    fn both(kind: u8, offset_field: u8) -> [Vec<u8>; 2] {
        let mut first = b"/a\0".to_vec();
        first.extend([kind, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        first.extend([0x44, 0x33, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
        first.extend(b"_Zf\0");
        first.extend([0, 2, 0, 0, 0, 0, 0, 0]);
        let mut second = b"\x0a\x02/a\x10".to_vec();
        second.push(kind);
        second.extend(b"\x18\x80\x20\x22\x0a\x08\xc4\x66\x10\x09\x1a\x03_Zf");
        second.extend([offset_field << 3 | 2, 3, 8, 0x80, 4]);
        [first, second].map(|bytes| [(bytes.len() as u32).to_le_bytes().to_vec(), bytes].concat())
    }

    #[test]
    fn both_kinds_of_symbol_tables_say_the_same() {
        let expected = |kind| SymbolFile {
            path: "/a".into(),
            kind,
            min_vaddr: 0x1000,
            min_vaddr_offset: Some(0x200),
            symbols: vec![FileSymbol { address: 0x3344, len: 9, name: "_Zf".into() }],
        };
        for (number, field, kind) in [(2, 6, SymbolFileKind::Elf), (1, 7, SymbolFileKind::KernelModule)] {
            let [first, second] = both(number, field);
            assert_eq!(parsed(feature::FILE, &first).files, [expected(kind)]);
            assert_eq!(parsed(feature::FILE2, &second).files, [expected(kind)]);
        }
    }

    #[test]
    fn cut_symbol_tables_give_less_and_no_panic() {
        let [first, second] = both(2, 6);
        for (number, bytes) in [(feature::FILE, first), (feature::FILE2, second)] {
            for len in 0..bytes.len() {
                assert_eq!(parsed(number, &bytes[..len]).files, []);
            }
            let twice = [&bytes[..], &bytes[..bytes.len() - 3]].concat();
            assert_eq!(parsed(number, &twice).files.len(), 1);
        }
    }
}
