//! `.gnu_debugdata`: an ELF file, compressed by xz, with the symbols that stripping has removed (GDB manual,
//! "MiniDebugInfo").

use crate::section_contents::SharedSource;
use crate::unpack::unpack;
use nyquist_object::{DerivedSource, Elf};
use std::sync::Arc;

/// The file in the section. `None` if the section does not exist or is damaged.
pub(crate) fn mini_debug_info(elf: &Elf<SharedSource>) -> Option<Elf<SharedSource>> {
    let packed = elf.section_data(".gnu_debugdata").ok()??;
    let image = DerivedSource::new(unpack(&packed)?, elf.source())?;
    Elf::open(Arc::new(image) as SharedSource).ok()
}
