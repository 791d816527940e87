//! The symbols of functions in ELF files.

use nyquist_object::elf::ElfSection;
use nyquist_object::{ByteSource, Elf};

/// Bytes of a symbol.
const SYMBOL: usize = 24;

/// A symbol in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionSymbol {
    /// Its relative address.
    pub(crate) address: u32,
    /// Whether only its own file can refer to it.
    pub(crate) is_local: bool,
    /// Whether it is stated to be a function. Assembly often leaves that out.
    pub(crate) is_declared: bool,
}

/// The symbols of a section of a file, of functions and of things without a type (System V ABI, "Symbol
/// Table"). Nothing if the section cannot be read.
pub(crate) fn function_symbols<S: ByteSource>(elf: &Elf<S>, section: &ElfSection) -> Vec<FunctionSymbol> {
    let base = elf.image_base().0;
    let data = elf.data(section).unwrap_or_default();
    data.chunks_exact(SYMBOL).filter_map(|symbol| function_symbol(symbol, base)).collect()
}

fn function_symbol(symbol: &[u8], base: u64) -> Option<FunctionSymbol> {
    const NO_TYPE: u8 = 0;
    const FUNCTION: u8 = 2;
    /// GNU's function that is selected when the program starts.
    const SELECTED: u8 = 10;
    let info = *symbol.get(4)?;
    let section = u16::from_le_bytes(*symbol.get(6..)?.first_chunk()?);
    let value = u64::from_le_bytes(*symbol.get(8..)?.first_chunk()?);
    let is_declared = match info & 15 {
        FUNCTION | SELECTED => true,
        NO_TYPE => false,
        _ => return None,
    };
    let address = u32::try_from(value.checked_sub(base)?).ok()?;
    (section != 0).then_some(FunctionSymbol { address, is_local: info >> 4 == 0, is_declared })
}
