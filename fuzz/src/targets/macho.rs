//! `nyquist_object::MachO`, universal files and archives over arbitrary bytes: every load command, section and table.

use nyquist_object::macho::UniversalFile;
use nyquist_object::{Architecture, Archive, ByteSource, MachO};

/// Takes one input.
pub fn run(bytes: &[u8]) {
    if let Ok(universal) = UniversalFile::read(&bytes) {
        for architecture in universal.slices().iter().map(|slice| slice.architecture) {
            let _ = MachO::open_for(bytes, architecture, |_| true).map(|file| look_at(&file));
        }
    }
    let _ = MachO::open_for(bytes, Architecture::Aarch64, |_| true).map(|file| look_at(&file));
    let _ = MachO::open(bytes).map(|file| look_at(&file));
    let _ = Archive::read(&bytes);
}

fn look_at<S: ByteSource>(file: &MachO<S>) {
    let _ = (file.image_base(), file.uuid(), file.entry_point(), file.symbol_table(), file.exports_trie());
    let _ = (file.function_starts(), file.text_hash(), file.main_function());
    let _ = (file.exports(), file.stubs(), file.debug_data("info"), file.debug_data("str_offsets"));
    for symbol in file.symbols().unwrap_or_default() {
        let _ = (symbol.stab(), symbol.section_of(file.sections()), symbol.is_external(), symbol.is_weak());
    }
    // Many sections can name the same bytes: all of them are the caller's choice to read, not the file's.
    for section in file.sections().iter().take(64) {
        let _ = (file.data(section), file.relative(section.address), section.is_code(), section.is_stubs());
    }
}
