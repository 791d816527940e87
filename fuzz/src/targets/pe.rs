//! `nyquist_object::Pe` over arbitrary bytes: headers, sections, directories, exports, symbols and ids.

use nyquist_object::Pe;
use nyquist_object::pe::DataDirectory;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let Ok(pe) = Pe::open(bytes) else { return };
    let _ = (pe.id(), pe.code_view(), pe.exports(), pe.coff_symbols(), pe.segments());
    if let Some((address, size)) = pe.directory(DataDirectory::Exceptions) {
        let _ = pe.read_at(address, size);
    }
    for section in pe.sections().iter().take(64) {
        let _ = pe.data(section);
    }
}
