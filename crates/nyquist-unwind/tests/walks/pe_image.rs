//! Makes small PE images with a table of functions, byte by byte.

/// The preferred address of the image.
pub(crate) const BASE: u64 = 0x1_4000_0000;
/// The offsets of its code, the table of functions and the infos, in memory and in the file.
pub(crate) const TEXT: u32 = 0x1000;
const TABLE: u32 = 0x2000;
pub(crate) const INFOS: u32 = 0x3000;

/// The numbers of machines.
pub(crate) const X86_64: u16 = 0x8664;
pub(crate) const AARCH64: u16 = 0xaa64;

fn put(bytes: &mut Vec<u8>, at: u32, part: &[u8]) {
    let at = at as usize;
    if bytes.len() < at + part.len() {
        bytes.resize(at + part.len(), 0);
    }
    bytes[at..at + part.len()].copy_from_slice(part);
}

/// The bytes of words.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// An image whose sections are in memory as in the file: code, the table of functions, their infos.
pub(crate) fn image(machine: u16, text: &[u8], table: &[u32], infos: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 0x4000];
    put(&mut bytes, 0, b"MZ");
    put(&mut bytes, 60, &0x40_u32.to_le_bytes());
    put(&mut bytes, 0x40, b"PE\0\0");
    put(&mut bytes, 0x44, [machine, 3].map(u16::to_le_bytes).as_flattened());
    put(&mut bytes, 0x54, &[0xf0, 0, 0x22, 0, 0x0b, 0x02]);
    put(&mut bytes, 0x58 + 24, &BASE.to_le_bytes());
    put(&mut bytes, 0x58 + 56, &words(&[0x4000, 0x400]));
    put(&mut bytes, 0x58 + 108, &16_u32.to_le_bytes());
    put(&mut bytes, 0x58 + 112 + 24, &words(&[TABLE, table.len() as u32 * 4]));
    for (number, (at, flags)) in [(TEXT, 0x6000_0020), (TABLE, 0x40), (INFOS, 0x40)].into_iter().enumerate() {
        let header = 0x58 + 0xf0 + 40 * number as u32;
        put(&mut bytes, header + 8, &words(&[0x1000, at, 0x1000, at]));
        put(&mut bytes, header + 36, &u32::to_le_bytes(flags));
    }
    put(&mut bytes, TEXT, text);
    put(&mut bytes, TABLE, &words(table));
    put(&mut bytes, INFOS, infos);
    bytes
}
