//! `nyquist_object::Elf` over arbitrary bytes: every header, section, note and link.

use nyquist_object::Elf;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Ok(elf) = Elf::open(bytes) else { return };
    let _ = (elf.image_base(), elf.build_id(), elf.debug_link(), elf.debug_alt_link(), elf.text_hash());
    // Thousands of headers can name the same bytes: all of them are the caller's choice to read, not the file's.
    for section in elf.sections().iter().take(64) {
        let _ = (elf.data(section), elf.section_data(&section.name), elf.is_compressed(section));
    }
}
