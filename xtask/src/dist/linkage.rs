//! What a program of Linux needs to start.

use anyhow::{Context as _, Result, ensure};
use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader64, PT_DYNAMIC, PT_INTERP};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};

/// Fails unless a program needs neither a loader nor a library.
pub(super) fn expect_static(program: &[u8]) -> Result<()> {
    let header = FileHeader64::<Endianness>::parse(program).context("it is not a 64-bit ELF file")?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, program)? {
        ensure!(segment.p_type(endian) != PT_INTERP, "it needs a loader");
        if segment.p_type(endian) != PT_DYNAMIC {
            continue;
        }
        let entries = segment.dynamic(endian, program)?.unwrap_or_default();
        let needs = entries.iter().filter(|entry| entry.d_tag(endian) == DT_NEEDED).count();
        ensure!(needs == 0, "it needs {needs} libraries");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::expect_static;

    #[test]
    fn a_program_with_a_loader_is_not_static() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(expect_static(&own).unwrap_err().to_string(), "it needs a loader");
        assert!(expect_static(b"MZ").is_err());
    }
}
