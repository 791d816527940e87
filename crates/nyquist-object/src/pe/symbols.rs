//! The COFF symbol table, which GNU linkers write into images.

use super::Pe;
use super::coff_symbol::{CoffSymbol, SYMBOL};
use crate::fields::HeaderFields;
use crate::{ByteSource, ObjectError};

/// The type of a function, and the storage classes of symbols with an address ("Type Representation",
/// "Storage Class").
const IMAGE_SYM_DTYPE_FUNCTION: u16 = 0x20;
const IMAGE_SYM_CLASS_EXTERNAL: u8 = 2;
const IMAGE_SYM_CLASS_STATIC: u8 = 3;

impl<S: ByteSource> Pe<S> {
    /// The symbols of code sections, in the order of the file. Empty for images of Microsoft's linker, which
    /// writes no symbol table.
    pub fn coff_symbols(&self) -> Result<Vec<CoffSymbol>, ObjectError> {
        let Some(strings_at) = self.symbol_table.strings() else { return Ok(Vec::new()) };
        let symbols = self.source.read_range(self.symbol_table.offset.into(), self.symbol_table.size())?;
        let strings_size = self.source.read_range(strings_at, 4)?;
        let strings_size = HeaderFields(&strings_size).u32(0).unwrap_or_default();
        let strings = self.source.read_range(strings_at, strings_size.into())?;
        // Names are not shared, so all of them together are no longer than the two tables.
        let mut budget = symbols.len() + strings.len();
        let mut found = Vec::new();
        let mut auxiliary = 0;
        for symbol in symbols.chunks_exact(SYMBOL) {
            if auxiliary > 0 {
                auxiliary -= 1;
                continue;
            }
            auxiliary = symbol[17];
            let Some(symbol) = self.coff_symbol(HeaderFields(symbol), &strings) else { continue };
            let Some(rest) = budget.checked_sub(symbol.name.len()) else { break };
            budget = rest;
            found.push(symbol);
        }
        Ok(found)
    }

    fn coff_symbol(&self, symbol: HeaderFields<'_>, strings: &[u8]) -> Option<CoffSymbol> {
        let section = usize::from(symbol.u16(12)?).checked_sub(1)?;
        let section = self.sections.get(section).filter(|section| section.is_code())?;
        let [class, auxiliary] = symbol.bytes(16)?;
        let is_function = symbol.u16(14)? == IMAGE_SYM_DTYPE_FUNCTION;
        let is_external = class == IMAGE_SYM_CLASS_EXTERNAL;
        // A static symbol that describes its section has an auxiliary record ("Section Definitions").
        let is_section = class == IMAGE_SYM_CLASS_STATIC && auxiliary != 0 && !is_function;
        if is_section || !(is_external || class == IMAGE_SYM_CLASS_STATIC) {
            return None;
        }
        let address = section.address.checked_add(symbol.u32(8)?)?;
        let name = name(symbol, strings).filter(|name| !name.is_empty())?.to_vec();
        Some(CoffSymbol { address, name, is_external, is_function })
    }
}

/// The name: eight bytes, or four zeros and its offset in the strings ("Symbol Name Representation").
fn name<'a>(symbol: HeaderFields<'a>, strings: &'a [u8]) -> Option<&'a [u8]> {
    let bytes = match symbol.u32(0)? {
        0 => strings.get(symbol.u32(4)? as usize..)?,
        _ => symbol.0.get(..8)?,
    };
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    Some(&bytes[..end])
}
