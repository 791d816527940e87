//! `.gnu_debugdata`: an ELF file, compressed by xz, with the symbols that stripping took away (GDB manual,
//! "MiniDebugInfo").

use crate::section::Source;
use lzma_rust2::XzReader;
use nyquist_object::Elf;
use std::io::Read;
use std::sync::Arc;

/// The most memory, in KiB, that the decoder may take for its dictionary; `xz -9` asks for 64 MiB.
const MAX_DICTIONARY_KIB: u32 = 80 << 10;

/// The largest file that is unpacked. Real ones are below ten megabytes.
const MAX_SIZE: u64 = 256 << 20;

/// The file within the section; `None` where there is none or it is damaged.
pub(crate) fn mini_debug_info(elf: &Elf<Source>) -> Option<Elf<Source>> {
    let packed = elf.section_data(".gnu_debugdata").ok()??;
    let image = unpack(&packed)?;
    Elf::open(Arc::new(image) as Source).ok()
}

fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut image = Vec::new();
    let reader = XzReader::new_mem_limit(packed, true, MAX_DICTIONARY_KIB);
    reader.take(MAX_SIZE + 1).read_to_end(&mut image).ok()?;
    (image.len() as u64 <= MAX_SIZE).then_some(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf nyquist | xz -9 | xxd -i`
    const PACKED: [u8; 64] = [
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x1c,
        0x00, 0x00, 0x00, 0x10, 0xcf, 0x58, 0xcc, 0x01, 0x00, 0x06, 0x6e, 0x79, 0x71, 0x75, 0x69, 0x73, 0x74,
        0x00, 0x00, 0x26, 0x26, 0x6d, 0xad, 0xd4, 0x6c, 0xf1, 0x01, 0x00, 0x01, 0x1f, 0x07, 0x16, 0x2e, 0xb8,
        0x73, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
    ];

    #[test]
    fn what_xz_packs_is_unpacked() {
        assert_eq!(unpack(&PACKED).unwrap(), b"nyquist");
    }

    #[test]
    fn a_damaged_file_is_left_out() {
        for len in 0..PACKED.len() {
            assert!(unpack(&PACKED[..len]).is_none(), "{len}");
        }
        for at in 0..PACKED.len() {
            let mut damaged = PACKED;
            damaged[at] ^= 0x40;
            let _ = unpack(&damaged);
        }
    }
}
