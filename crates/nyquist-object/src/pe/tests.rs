//! Images built byte by byte.

use super::*;
use crate::pe::debug::CodeView;

const BASE: u64 = 0x1_4000_0000;

/// An image under construction: all sections have the same offsets in memory and in the file.
struct TestImage {
    bytes: Vec<u8>,
    is_64: bool,
}

const SECTIONS_AT: usize = 0x200;

impl TestImage {
    /// An image with two sections: `.text` at 0x1000, and one with a long name at 0x2000 that contains
    /// `data`.
    fn new(is_64: bool, data: &[u8]) -> Self {
        let mut image = Self { bytes: vec![0; 0x3000], is_64 };
        image.put(0, b"MZ");
        image.put(60, &0x80_u32.to_le_bytes());
        image.put(0x80, b"PE\0\0");
        let machine: u16 = if is_64 { 0x8664 } else { 0x14c };
        image.put(0x84, &machine.to_le_bytes());
        image.put(0x86, &2_u16.to_le_bytes());
        image.put(0x88, &0x5ca1_2c43_u32.to_le_bytes());
        image.put(0x8c, &0x2f00_u32.to_le_bytes());
        image.put(0x94, &((SECTIONS_AT - 0x98) as u16).to_le_bytes());
        let magic: u16 = if is_64 { 0x20b } else { 0x10b };
        image.put(0x98, &magic.to_le_bytes());
        image.put(0x98 + 16, &0x1010_u32.to_le_bytes());
        if is_64 {
            image.put(0x98 + 24, &BASE.to_le_bytes());
        } else {
            image.put(0x98 + 28, &0x40_0000_u32.to_le_bytes());
        }
        image.put(0x98 + 56, &[0x00, 0x30, 0, 0, 0, 0x04, 0, 0]);
        image.put(0x98 + image.directories() - 4, &16_u32.to_le_bytes());
        image.section(0, b".text", 0x1000, 0x6000_0020);
        image.section(1, b"/4", 0x2000, 0x4000_0040);
        image.put(0x1000, &[0x90; 16]);
        image.put(0x2000, data);
        // No symbols, and a string table.
        image.put(0x2f00, b"\x20\0\0\0.long_name\0");
        image
    }

    fn directories(&self) -> usize {
        if self.is_64 { 112 } else { 96 }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn section(&mut self, number: usize, name: &[u8], at: u32, flags: u32) {
        let header = SECTIONS_AT + 40 * number;
        self.put(header, name);
        let fields = [0x800, at, 0x800, at].map(u32::to_le_bytes);
        self.put(header + 8, fields.as_flattened());
        self.put(header + 36, &flags.to_le_bytes());
    }

    fn directory(mut self, directory: DataDirectory, address: u32, size: u32) -> Self {
        let at = 0x98 + self.directories() + 8 * directory as usize;
        self.put(at, [address, size].map(u32::to_le_bytes).as_flattened());
        self
    }

    fn open(&self) -> Pe<&[u8]> {
        Pe::open(self.bytes.as_slice()).unwrap()
    }
}

#[test]
fn headers_of_both_widths_are_read() {
    for is_64 in [true, false] {
        let image = TestImage::new(is_64, b"data");
        let pe = image.open();
        assert_eq!(pe.is_64_bit(), is_64);
        assert_eq!(pe.architecture(), if is_64 { Architecture::X86_64 } else { Architecture::X86 });
        assert_eq!(pe.image_base(), Svma(if is_64 { BASE } else { 0x40_0000 }));
        assert_eq!(pe.entry_point(), Some(RelativeAddress(0x1010)));
        assert_eq!(pe.code_id().to_string(), "5CA12C433000");
        let names: Vec<_> = pe.sections().iter().map(|section| &*section.name).collect();
        assert_eq!(names, [".text", ".long_name"]);
        assert_eq!(pe.segments().iter().filter(|segment| segment.executable).count(), 1);
    }
}

#[test]
fn addresses_lead_to_bytes_of_the_file() {
    let image = TestImage::new(true, b"data");
    let pe = image.open();
    assert_eq!(pe.read_at(RelativeAddress(0x2000), 4).unwrap(), b"data");
    assert_eq!(pe.read_at(RelativeAddress(0x80), 4).unwrap(), b"PE\0\0");
    assert_eq!(pe.file_range(RelativeAddress(0x27ff)), Some((FileOffset(0x27ff), 1)));
    for (address, len) in [(0x2800, 1), (0x27ff, 2), (0x1fff, 1), (u32::MAX, 1), (0x2000, u32::MAX)] {
        assert!(pe.read_at(RelativeAddress(address), len).is_err(), "{address:#x}");
    }
}

fn guid_record(path: &[u8]) -> Vec<u8> {
    let guid: Vec<u8> = (1..=16).collect();
    [b"RSDS".as_slice(), &guid, &0x1a_u32.to_le_bytes(), path].concat()
}

/// A debug directory of two entries, the second of which refers to the record after it.
fn debug_directory(record: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 2 * 28];
    let fields = [2, record.len() as u32, 0x2100, 0x2100].map(u32::to_le_bytes);
    bytes[28 + 12..].copy_from_slice(fields.as_flattened());
    bytes.resize(0x100, 0);
    bytes.extend_from_slice(record);
    bytes
}

#[test]
fn the_debug_directory_names_the_pdb() {
    let record = guid_record(b"C:\\build/out\\app.pdb\0");
    let image = TestImage::new(true, &debug_directory(&record)).directory(DataDirectory::Debug, 0x2000, 56);
    let found = image.open().code_view().unwrap().unwrap();
    assert_eq!(found.debug_id.breakpad(), "0403020106050807090A0B0C0D0E0F101a");
    assert_eq!(found.path, b"C:\\build/out\\app.pdb");
    assert_eq!(found.file_name(), b"app.pdb");
    let id = image.open().id().unwrap();
    assert_eq!((id.code.to_string(), id.debug), ("5CA12C433000".to_owned(), found.debug_id));
}

#[test]
fn an_image_without_a_pdb_is_known_by_its_code() {
    for image in [
        TestImage::new(true, b""),
        TestImage::new(true, b"").directory(DataDirectory::Debug, 0x9000, 56),
        TestImage::new(true, &debug_directory(b"NB10")).directory(DataDirectory::Debug, 0x2000, 56),
        TestImage::new(true, &debug_directory(&guid_record(b"")[..20])).directory(
            DataDirectory::Debug,
            0x2000,
            56,
        ),
    ] {
        let pe = image.open();
        assert!(matches!(pe.code_view(), Ok(None) | Err(_)));
        assert_eq!(pe.id().unwrap().debug.breakpad(), "909090909090909090909090909090900");
    }
}

/// An export table: `alpha` and `beta`, an export without a name, and a forwarded one.
fn export_table() -> Vec<u8> {
    let mut table = vec![0; 0x80];
    let fields = [7, 4, 3, 0x2028, 0x2038, 0x2044].map(u32::to_le_bytes);
    table[16..40].copy_from_slice(fields.as_flattened());
    table[0x28..0x38].copy_from_slice([0x1010, 0x1020, 0x1030, 0x2060].map(u32::to_le_bytes).as_flattened());
    table[0x38..0x44].copy_from_slice([0x2050, 0x2056, 0x205b].map(u32::to_le_bytes).as_flattened());
    table[0x44..0x4a].copy_from_slice([2, 0, 3].map(u16::to_le_bytes).as_flattened());
    table[0x50..0x6c].copy_from_slice(b"alpha\0beta\0away\0NTDLL.Rtl\0\0\0");
    table
}

#[test]
fn exports_have_names_or_ordinals() {
    // A linker may state a size that does not include the names. Then they are read one by one.
    for size in [0x80, 0x64] {
        let image = TestImage::new(true, &export_table()).directory(DataDirectory::Exports, 0x2000, size);
        let exports = image.open().exports().unwrap();
        let found: Vec<_> =
            exports.iter().map(|export| (export.address.0, export.ordinal, export.name.as_deref())).collect();
        let expected: [(u32, u32, Option<&[u8]>); 3] =
            [(0x1030, 9, Some(b"alpha")), (0x1010, 7, Some(b"beta")), (0x1020, 8, None)];
        assert_eq!(found, expected, "{size:#x}");
    }
    assert!(TestImage::new(true, b"").open().exports().unwrap().is_empty());
}

#[test]
fn absurd_exports_take_no_memory() {
    let mut table = export_table();
    table[20..28].copy_from_slice(&[0xff; 8]);
    let image = TestImage::new(true, &table).directory(DataDirectory::Exports, 0x2000, 0x80);
    assert!(image.open().exports().is_err());
    let image = TestImage::new(true, &export_table()).directory(DataDirectory::Exports, 0x27f0, u32::MAX);
    assert!(image.open().exports().is_err());
}

#[test]
fn symbols_of_code_are_read() {
    let mut image = TestImage::new(true, b"");
    let symbol = |name: &[u8; 8], value: u32, section: u16, kind: u16, class: u8, auxiliary: u8| {
        let parts = [&name[..], &value.to_le_bytes(), &section.to_le_bytes(), &kind.to_le_bytes()];
        [parts.concat(), vec![class, auxiliary]].concat()
    };
    let symbols = [
        symbol(b".text\0\0\0", 0, 1, 0, 3, 1),
        vec![0xff; 18],
        symbol(b"main\0\0\0\0", 0x10, 1, 0x20, 2, 0),
        symbol(b"\0\0\0\0\x04\0\0\0", 0x20, 1, 0x20, 3, 0),
        symbol(b"eightchr", 0x30, 1, 0, 2, 0),
        symbol(b"data\0\0\0\0", 0, 2, 0, 2, 0),
        symbol(b"\0\0\0\0\xff\xff\0\0", 0x40, 1, 0x20, 3, 0),
        symbol(b"absolute", 0x40, 0xffff, 0, 2, 0),
    ];
    let at = 0x2f00 - symbols.concat().len();
    image.put(at, &symbols.concat());
    image.put(0x8c, [at as u32, symbols.len() as u32].map(u32::to_le_bytes).as_flattened());
    let found = image.open().coff_symbols().unwrap();
    let found: Vec<_> = found.iter().map(|s| (&*s.name, s.address.0, s.is_external, s.is_function)).collect();
    let expected: [(&[u8], u32, bool, bool); 3] = [
        (b"main", 0x1010, true, true),
        (b".long_name", 0x1020, false, true),
        (b"eightchr", 0x1030, true, false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn long_section_names_are_decimal_or_base_64() {
    assert_eq!(name_offset(b"/4"), Some(4));
    assert_eq!(name_offset(b"/1234567"), Some(1_234_567));
    assert_eq!(name_offset(b"//AAAABB"), Some(65));
    for wrong in [b".text".as_slice(), b"/", b"/x", b"//A="] {
        assert_eq!(name_offset(wrong), None);
    }
}

#[test]
fn what_is_no_image_says_so() {
    for bytes in [b"".as_slice(), b"MZ", &[0; 100], b"\x7fELF", &[b"MZ".as_slice(), &[0xff; 98]].concat()] {
        assert!(matches!(Pe::open(bytes), Err(ObjectError::NotAnObject)), "{bytes:?}");
    }
    let mut image = TestImage::new(true, b"");
    image.put(0x98, b"\x07\x01");
    assert!(matches!(Pe::open(image.bytes.as_slice()), Err(ObjectError::Unsupported(_))));
    image.put(0x86, &[0xff, 0xff]);
    assert!(Pe::open(image.bytes.as_slice()).is_err());
}

#[test]
fn an_image_cut_anywhere_causes_no_panic() {
    let image = TestImage::new(true, &debug_directory(&guid_record(b"x.pdb")))
        .directory(DataDirectory::Debug, 0x2000, 56)
        .directory(DataDirectory::Exports, 0x2000, 0x200);
    for len in (0..image.bytes.len()).step_by(7) {
        if let Ok(cut) = Pe::open(&image.bytes[..len]) {
            let _ = (cut.id(), cut.exports(), cut.coff_symbols());
        }
    }
}

#[test]
fn without_a_terminator_the_rest_is_the_path() {
    let record = guid_record(b"a.pdb");
    assert_eq!(CodeView::parse(&record).unwrap().path, b"a.pdb");
    assert_eq!(CodeView::parse(&record[..24]).unwrap().file_name(), b"");
    assert_eq!(CodeView::parse(&record[..23]), None);
}

#[test]
fn arm64ec_is_told_from_x86_64() {
    let configuration = |size: u32, pointer: u64| {
        let mut data = vec![0; 208];
        data[..4].copy_from_slice(&size.to_le_bytes());
        data[200..].copy_from_slice(&pointer.to_le_bytes());
        data
    };
    let is_arm64ec = |is_64, size, pointer, address| {
        let image = TestImage::new(is_64, &configuration(size, pointer));
        let image = image.directory(DataDirectory::LoadConfiguration, address, 64);
        Pe::open(image.bytes).unwrap().is_arm64ec()
    };
    assert!(is_arm64ec(true, 208, BASE + 0x2100, 0x2000));
    assert!(!is_arm64ec(true, 208, 0, 0x2000), "x86_64");
    assert!(!is_arm64ec(true, 148, BASE + 0x2100, 0x2000), "of an old linker");
    assert!(!is_arm64ec(false, 208, BASE + 0x2100, 0x2000), "of 32 bits");
    for address in [0, 0x27f0, 0x9000, u32::MAX] {
        assert!(!is_arm64ec(true, 208, 1, address), "{address:#x}");
    }
    let mut arm = TestImage::new(true, &configuration(208, 1));
    arm.put(0x84, &0xaa64_u16.to_le_bytes());
    let arm = arm.directory(DataDirectory::LoadConfiguration, 0x2000, 64);
    assert!(!Pe::open(arm.bytes).unwrap().is_arm64ec(), "plain code for 64-bit ARM");
}
