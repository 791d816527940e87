//! Tests with generated files.

use super::*;
use crate::FileOffset;

const UUID: [u8; 16] = [0x4c, 0x4c, 0x44, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
const TEXT_ADDRESS: u64 = 0x1_0000_0000;

fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

/// A command: its number and its fields.
fn command(number: u32, fields: &[u8]) -> Vec<u8> {
    [&words(&[number, fields.len() as u32 + 8]), fields].concat()
}

fn section(segment: &str, text: &str, address: u64, size: u64, offset: u32, flags: u32) -> Vec<u8> {
    let head = [name(text), name(segment)].concat();
    [head, longs(&[address, size]), words(&[offset, 2, 0, 0, flags, 0, 12, 0])].concat()
}

fn segment(text: &str, address: u64, offset: u64, file_size: u64, sections: &[Vec<u8>]) -> Vec<u8> {
    let mut fields = [&name(text)[..], &longs(&[address, 0x4000, offset, file_size])].concat();
    fields.extend(words(&[7, 5, sections.len() as u32, 0]));
    fields.extend(sections.concat());
    command(0x19, &fields)
}

/// A program for arm64: its commands, then consecutive byte values up to a size of 4096.
fn file(cpu_type: u32, commands: &[Vec<u8>]) -> Vec<u8> {
    let all = commands.concat();
    let header = words(&[MAGIC_64, cpu_type, 2, 2, commands.len() as u32, all.len() as u32, 0, 0]);
    let mut bytes = [header, all].concat();
    bytes.extend((bytes.len()..4096).map(|at| at as u8));
    bytes
}

fn program() -> Vec<u8> {
    let text = [
        section("__TEXT", "__text", TEXT_ADDRESS + 0x800, 0x100, 0x800, 0x8000_0400),
        section("__TEXT", "__stubs", TEXT_ADDRESS + 0x900, 24, 0x900, 0x8000_0408),
        section("__TEXT", "__bss", TEXT_ADDRESS + 0x1000, 0x100, 0, 1),
    ];
    file(
        CPU_TYPE_ARM64,
        &[
            segment("__PAGEZERO", 0, 0, 0, &[]),
            segment("__TEXT", TEXT_ADDRESS, 0, 4096, &text),
            command(0x1b, &UUID),
            command(0x2, &words(&[0xa00, 3, 0xb00, 64])),
            command(0x26, &words(&[0xc00, 8])),
            command(0x8000_0033, &words(&[0xd00, 16])),
            command(0x8000_0028, &longs(&[0x810, 0])),
        ],
    )
}

#[test]
fn a_program_says_what_it_is() {
    let file = MachO::open(program()).unwrap();
    assert_eq!(file.architecture(), Architecture::Aarch64);
    assert!(file.authenticates_pointers());
    assert_eq!(file.kind(), FileKind::Executable);
    assert_eq!(file.image_base(), Svma(TEXT_ADDRESS));
    assert_eq!(file.entry_point(), Some(Svma(TEXT_ADDRESS + 0x810)));
    assert_eq!(file.relative(Svma(TEXT_ADDRESS + 0x810)), Some(RelativeAddress(0x810)));
    assert_eq!(file.uuid().unwrap().to_string(), "4C4C440102030405060708090A0B0C0D");
    assert_eq!(file.exports_trie(), Some(FileRange { offset: FileOffset(0xd00), size: 16 }));
    let symbols = file.symbol_table().unwrap();
    assert_eq!(symbols.symbols, FileRange { offset: FileOffset(0xa00), size: 48 });
    assert_eq!(symbols.strings, FileRange { offset: FileOffset(0xb00), size: 64 });
}

#[test]
fn sections_are_found_and_read() {
    let file = MachO::open(program()).unwrap();
    let text = file.section_data("__TEXT", "__text").unwrap().unwrap();
    assert_eq!((text.len(), text[1]), (0x100, 1));
    let stubs = file.section("__TEXT", "__stubs").unwrap();
    assert!(stubs.is_stubs() && stubs.is_code());
    assert_eq!(stubs.stub_size, 12);
    assert_eq!(file.section_data("__TEXT", "__bss").unwrap(), None);
    assert_eq!(file.section_data("__DATA", "__text").unwrap(), None);
}

fn nlist(name: u32, kind: u8, section: u8, flags: u16, value: u64) -> Vec<u8> {
    [words(&[name]), vec![kind, section], flags.to_le_bytes().to_vec(), longs(&[value])].concat()
}

#[test]
fn symbols_say_what_they_are() {
    let mut bytes = program();
    let entries = [
        nlist(1, 0x0f, 1, 0x80, TEXT_ADDRESS + 0x810),
        nlist(9, 0x1e, 2, 0, TEXT_ADDRESS + 0x900),
        nlist(17, 0x66, 0, 1, 0x5ca1_2c43),
    ];
    bytes[0xa00..0xa30].copy_from_slice(&entries.concat());
    let file = MachO::open(bytes).unwrap();
    let symbols = file.symbols().unwrap();
    let [function, private, object] = symbols.as_slice() else { panic!("{symbols:?}") };
    assert!(
        function.is_defined() && function.is_external() && function.is_weak() && function.stab().is_none()
    );
    assert_eq!(function.section_of(file.sections()).unwrap().name, "__text");
    assert!(private.is_private_external() && !private.is_external() && !private.is_weak());
    assert_eq!(private.section_of(file.sections()).unwrap().name, "__stubs");
    assert_eq!((object.stab(), object.name, object.value), (Some(Stab::Object), 17, 0x5ca1_2c43));
    assert!(!object.is_defined() && object.section_of(file.sections()).is_none());
}

#[test]
fn stubs_stand_for_symbols() {
    let text = [section("__TEXT", "__stubs", TEXT_ADDRESS + 0x900, 24, 0x900, 0x8000_0408)];
    let mut tables = vec![0; 72];
    tables[48..56].copy_from_slice(&words(&[0xa00, 3]));
    let commands = [segment("__TEXT", TEXT_ADDRESS, 0, 4096, &text), command(0xb, &tables)];
    let mut bytes = file(CPU_TYPE_ARM64, &commands);
    bytes[0xa00..0xa0c].copy_from_slice(&words(&[5, 9, 77]));
    let stubs = MachO::open(bytes).unwrap().stubs().unwrap();
    assert_eq!(stubs, [(Svma(TEXT_ADDRESS + 0x900), 12, 5), (Svma(TEXT_ADDRESS + 0x90c), 12, 9)]);
}

#[test]
fn compressed_debug_info_has_a_cut_name() {
    let parts = [
        section("__DWARF", "__debug_str_offs", 0, 16, 0x800, 0x0200_0000),
        section("__DWARF", "__zdebug_info", 0, 19, 0x900, 0x0200_0000),
    ];
    let mut bytes = file(CPU_TYPE_ARM64, &[segment("__DWARF", 0, 0x800, 0x200, &parts)]);
    // "abc" as a stored block of a zlib stream.
    let packed = b"ZLIB\0\0\0\0\0\0\0\x03\x78\x01\x01\x03\0\xfc\xff";
    bytes[0x900..0x900 + packed.len()].copy_from_slice(packed);
    let file = MachO::open(bytes).unwrap();
    assert_eq!(file.debug_data("str_offsets").unwrap().unwrap().len(), 16);
    assert!(file.has_debug_info() && file.debug_section("info").is_none());
    assert_eq!(file.debug_data("line").unwrap(), None);
    assert!(file.debug_data("info").is_err(), "a stream that is cut");
}

#[test]
fn the_code_of_a_dsym_has_no_bytes() {
    let text = section("__TEXT", "__text", TEXT_ADDRESS + 0x800, 0x100, 0x800, 0x8000_0400);
    let dsym = file(CPU_TYPE_X86_64, &[segment("__TEXT", TEXT_ADDRESS, 0, 0, &[text])]);
    let dsym = MachO::open(dsym).unwrap();
    assert_eq!(dsym.image_base(), Svma(TEXT_ADDRESS));
    assert_eq!(dsym.section_data("__TEXT", "__text").unwrap(), None);
}

#[test]
fn function_starts_are_distances() {
    let check = |bytes: &[u8], expected: &[u32]| {
        let starts: Vec<_> = function_starts(bytes).iter().map(|start| start.0).collect();
        assert_eq!(starts, expected, "{bytes:x?}");
    };
    check(&[0x80, 0x20, 0x10, 0x04, 0, 0, 0], &[0x1000, 0x1010, 0x1014]);
    check(&[], &[]);
    check(&[0, 1], &[]);
    check(&[1, 0x80], &[1]);
    check(&[1, 0xff, 0xff, 0xff, 0xff, 0x0f, 1], &[1]);
    check(&[0xff; 30], &[]);
}

#[test]
fn a_static_programs_entry_is_in_its_registers() {
    let mut state = [0; 34];
    state[32] = TEXT_ADDRESS + 0x20;
    let thread = command(5, &[words(&[6, 68]), longs(&state)].concat());
    let file = MachO::open(file(CPU_TYPE_ARM64, &[thread])).unwrap();
    assert_eq!(file.entry_point(), Some(Svma(TEXT_ADDRESS + 0x20)));
}

#[test]
fn what_is_no_file_of_the_format_says_so() {
    for bytes in [b"".as_slice(), b"\xcf\xfa", b"\x7fELF\x02", b"MZ\x90\0\x03"] {
        assert!(matches!(MachO::open(bytes), Err(ObjectError::NotAnObject)), "{bytes:?}");
        assert!(matches!(UniversalFile::read(&bytes), Err(ObjectError::NotAnObject)), "{bytes:?}");
    }
    for bytes in [b"\xce\xfa\xed\xfe", b"\xfe\xed\xfa\xcf"] {
        assert!(matches!(MachO::open(bytes.as_slice()), Err(ObjectError::Unsupported(_))), "{bytes:?}");
    }
    // A Java class of version 61.
    assert!(matches!(
        UniversalFile::read(&b"\xca\xfe\xba\xbe\0\0\0\x3d".as_slice()),
        Err(ObjectError::NotAnObject)
    ));
}

#[test]
fn a_damaged_command_ends_the_commands_before_it() {
    let uuid = command(0x1b, &UUID);
    for size in [0, 7, 0xffff_ffff] {
        let damaged = words(&[0x26, size, 0, 0]);
        let file =
            MachO::open(file(CPU_TYPE_ARM64, &[uuid.clone(), damaged, command(0x8000_0028, &[0; 16])]));
        let file = file.unwrap();
        assert!(file.uuid().is_some() && file.entry_point().is_none(), "{size}");
    }
    // A command that is too short for its fields is skipped.
    let file = MachO::open(file(CPU_TYPE_ARM64, &[command(0x19, &[1; 70]), uuid]));
    assert!(file.unwrap().uuid().is_some());
}

#[test]
fn a_file_cut_anywhere_causes_no_panic() {
    let whole = program();
    for len in 0..whole.len() {
        if let Ok(file) = MachO::open(&whole[..len]) {
            let _ = (file.function_starts(), file.text_hash(), file.section_data("__TEXT", "__text"));
        }
    }
}

/// A universal file of these files, with 32-bit or 64-bit fields.
fn universal(files: &[(u32, Vec<u8>)], is_64: bool) -> Vec<u8> {
    let mut bytes = vec![0xca, 0xfe, 0xba, if is_64 { 0xbf } else { 0xbe }];
    bytes.extend((files.len() as u32).to_be_bytes());
    for (number, (cpu_type, file)) in files.iter().enumerate() {
        let (offset, size) = (0x1000 * (number as u32 + 1), file.len() as u32);
        let fields: &[u32] = if is_64 {
            &[*cpu_type, 0, 0, offset, 0, size, 12, 0]
        } else {
            &[*cpu_type, 0, offset, size, 12]
        };
        bytes.extend(fields.iter().flat_map(|field| field.to_be_bytes()));
    }
    for (_, file) in files {
        bytes.resize(bytes.len().next_multiple_of(0x1000), 0);
        bytes.extend(file);
    }
    bytes
}

#[test]
fn the_slice_for_an_architecture_is_opened() {
    let intel = file(CPU_TYPE_X86_64, &[segment("__TEXT", 0x5000, 0, 4096, &[])]);
    for is_64 in [false, true] {
        let both = universal(&[(CPU_TYPE_X86_64, intel.clone()), (CPU_TYPE_ARM64, program())], is_64);
        let open = |architecture| MachO::open_for(both.as_slice(), architecture, |_| true);
        assert_eq!(open(Architecture::X86_64).unwrap().image_base(), Svma(0x5000));
        let arm = open(Architecture::Aarch64).unwrap();
        assert_eq!(arm.uuid(), Some(MachUuid(UUID)));
        assert_eq!(arm.section_data("__TEXT", "__text").unwrap().unwrap()[..2], [0, 1]);
        assert!(matches!(open(Architecture::X86), Err(ObjectError::Unsupported(_))));
        let none = MachO::open_for(both.as_slice(), Architecture::Aarch64, |_| false);
        assert!(matches!(none, Err(ObjectError::Unsupported(_))));
    }
}

#[test]
fn a_single_architecture_file_opens_for_it_alone() {
    let open = |architecture| MachO::open_for(program(), architecture, |_| true);
    assert!(open(Architecture::Aarch64).is_ok());
    assert!(matches!(open(Architecture::X86_64), Err(ObjectError::Unsupported(_))));
}

#[test]
fn a_part_of_a_source_ends_where_it_says() {
    let bytes: Vec<u8> = (0..16).collect();
    let part = SourceRange::new(bytes, FileOffset(4), 8);
    assert_eq!((ByteSource::len(&part), part.read_range(0, 2).unwrap()), (8, vec![4, 5]));
    assert!(part.read_range(7, 2).is_err());
    assert!(part.read_exact_at(8, &mut [0]).is_err());
    assert!(part.read_exact_at(u64::MAX, &mut [0; 2]).is_err());
}
