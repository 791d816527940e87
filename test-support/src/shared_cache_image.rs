//! A made-up dyld shared cache of two libraries, for tests and fuzzing. The first file has their code, one
//! file has their tables, and one has the symbols that no other library needs.
//!
//! `/usr/lib/libone.dylib` exports `_one` at 0x1000 from its header and has `_hidden_one` at 0x1040 among the
//! separate symbols. `/usr/lib/libtwo.dylib` has the same with `two`. Each function has 0x40 bytes.

/// The UUIDs of the libraries.
pub const UUIDS: [[u8; 16]; 2] = [[0x11; 16], [0x22; 16]];

/// The suffixes of the names of the files.
pub const SUFFIXES: [&str; 3] = ["", ".01", ".symbols"];

const START: u64 = 0x1_8000_0000;
const LINKEDIT: u64 = 0x1_9000_0000;
const HEADER: usize = 0x200;
const NAMES: [&str; 2] = ["one", "two"];

/// The files, in the order of [`SUFFIXES`].
pub fn build() -> [Vec<u8>; 3] {
    let mut files = [vec![0; 0x9000], vec![0; 0x8000], vec![0; 0x4000]];
    for (number, file) in files.iter_mut().enumerate() {
        put(file, 0, b"dyld_v1  arm64e\0");
        // The place and the number of the mappings, and the file's own UUID.
        words(file, 16, &[HEADER as u32, u32::from(number < 2)]);
        put(file, 88, &[number as u8 + 1; 16]);
    }
    let [main, tables, symbols] = &mut files;
    longs(main, HEADER, &[START, 0x9000, 0]);
    longs(tables, HEADER, &[LINKEDIT, 0x4000, 0x4000]);
    longs(main, 136, &[0x300, 2]);
    words(main, 392, &[0x400, 1]);
    put(main, 0x400, &[2; 16]);
    put(main, 0x418, b".01");
    put(main, 400, &[3; 16]);
    let locals_at = 0x1000_u32;
    longs(symbols, 72, &[locals_at.into(), 0x1000]);
    // The place and number of symbols, the place and size of names, and the place and number of libraries.
    words(symbols, locals_at as usize, &[0x100, 2, 0x200, 0x100, 0x40, 2]);
    let mut names_at = 0x200 + locals_at as usize;
    for (number, name) in NAMES.into_iter().enumerate() {
        let place = 0x1000 + 0x4000 * number;
        let address = START + place as u64;
        put(main, 0x300 + 32 * number, &UUIDS[number]);
        longs(main, 0x310 + 32 * number, &[address]);
        words(main, 0x318 + 32 * number, &[0x2000, 0x600 + 0x40 * number as u32]);
        put(main, 0x600 + 0x40 * number, format!("/usr/lib/lib{name}.dylib\0").as_bytes());
        library(main, tables, place, number);
        let entry = locals_at as usize + 0x40 + 16 * number;
        longs(symbols, entry, &[place as u64]);
        words(symbols, entry + 8, &[number as u32, 1]);
        let name_place = (names_at - 0x200 - locals_at as usize) as u32;
        let symbol_at = locals_at as usize + 0x100 + 16 * number;
        symbol(symbols, symbol_at, name_place, 0x0e, address + 0x1040);
        names_at = put(symbols, names_at, format!("_hidden_{name}\0").as_bytes());
    }
    files
}

/// The library's header and code in the first file, and its tables in the second.
fn library(main: &mut [u8], tables: &mut [u8], place: usize, number: usize) {
    let address = START + place as u64;
    // Offsets in the tables are relative to the file that contains them.
    let at = 0x4000 + 0x1000 * number;
    // All libraries share the strings.
    let strings = 0x7000;
    let name = [1, 0x21][number];
    put(tables, strings + name as usize, format!("_{}\0", NAMES[number]).as_bytes());
    symbol(tables, at, name, 0x0f, address + 0x1000);
    put(tables, at + 0x100, &[0x80, 0x20, 0x40, 0]);
    let mut commands = Vec::new();
    let mut command = |kind: u32, fields: &[u8]| {
        commands.extend([kind, fields.len() as u32 + 8].map(u32::to_le_bytes).concat());
        commands.extend(fields);
    };
    let segment = |text: &str, place: [u64; 4], code: u32, sections: &[u8]| {
        let longs = place.map(u64::to_le_bytes).concat();
        let words = [code, code, u32::from(!sections.is_empty()), 0].map(u32::to_le_bytes).concat();
        [&name_of(text)[..], &longs, &words, sections].concat()
    };
    let text = [
        &name_of("__text")[..],
        &name_of("__TEXT"),
        &[address + 0x1000, 0x80].map(u64::to_le_bytes).concat(),
    ];
    let flags = [place as u32 + 0x1000, 0, 0, 0, 0x8000_0400, 0, 0, 0].map(u32::to_le_bytes).concat();
    let section = [&text.concat()[..], &flags].concat();
    command(0x19, &segment("__TEXT", [address, 0x2000, place as u64, 0x2000], 5, &section));
    command(0x19, &segment("__LINKEDIT", [LINKEDIT, 0x4000, 0x4000, 0x4000], 1, &[]));
    command(0x1b, &UUIDS[number]);
    command(0x2, &[at as u32, 1, strings as u32, 0x100].map(u32::to_le_bytes).concat());
    command(0x26, &[at as u32 + 0x100, 4].map(u32::to_le_bytes).concat());
    let header = [0xfeed_facf, 0x0100_000c, 2, 6, 5, commands.len() as u32, 0, 0].map(u32::to_le_bytes);
    let commands_at = put(main, place, &header.concat());
    put(main, commands_at, &commands);
    // ret
    for code in (place + 0x1000..place + 0x1080).step_by(4) {
        words(main, code, &[0xd65f_03c0]);
    }
}

fn symbol(file: &mut [u8], at: usize, name: u32, kind: u8, value: u64) {
    words(file, at, &[name]);
    put(file, at + 4, &[kind, 1, 0, 0]);
    longs(file, at + 8, &[value]);
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) -> usize {
    file[at..at + bytes.len()].copy_from_slice(bytes);
    at + bytes.len()
}

fn words(file: &mut [u8], at: usize, words: &[u32]) {
    put(file, at, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
}

fn longs(file: &mut [u8], at: usize, longs: &[u64]) {
    put(file, at, &longs.iter().flat_map(|long| long.to_le_bytes()).collect::<Vec<_>>());
}

fn name_of(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}
