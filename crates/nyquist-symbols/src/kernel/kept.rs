//! The kernel's functions as they are kept for the next time: where each is from the start of its module, so that the
//! file does not tell where the kernel is in memory.
//!
//! A checksum of all that follows; how long the identity is, and how many modules and functions there are; the identity;
//! of each module where it begins and ends and its name; of each function where it is, how long its name is and its module;
//! the names.

use super::{Function, KERNEL, KernelModule, KernelSymbols};
use crate::cache::checksum;
use crate::cursor::Cursor;
use nyquist_object::Avma;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Where these functions come from, for people.
pub(crate) const KALLSYMS: &str = "/proc/kallsyms";

const CHECKSUM_LEN: usize = 8;
/// The checksum and the three numbers behind it.
const HEADER_LEN: usize = CHECKSUM_LEN + 12;
const FUNCTION_LEN: usize = 8;

/// Where modules are in memory: `vmlinux` begins at its first code.
pub(crate) type Places = FxHashMap<String, Range<Avma>>;

/// The functions of the modules that have a place.
pub(crate) fn encode(symbols: &KernelSymbols, places: &Places, identity: &str) -> Option<Vec<u8>> {
    let mut modules = Vec::new();
    let bases: Vec<_> =
        symbols.module_names.iter().map(|name| add_module(&mut modules, symbols, places, name)).collect();
    let mut functions = Vec::with_capacity(symbols.functions.len() * FUNCTION_LEN);
    let (mut names, mut count) = (Vec::with_capacity(symbols.names.len()), 0_u32);
    for function in &symbols.functions {
        let base = bases.get(usize::from(function.module)).copied().flatten();
        let Some(offset) = base.and_then(|base| function.start.checked_sub(base.0)) else { continue };
        let name = symbols.name_bytes(function);
        functions.extend_from_slice(&u32::try_from(offset).ok()?.to_le_bytes());
        functions.extend_from_slice(&u16::try_from(name.len()).ok()?.to_le_bytes());
        functions.extend_from_slice(&function.module.to_le_bytes());
        names.extend_from_slice(name);
        count += 1;
    }
    let lens = [identity.len(), bases.len()].map(|len| u32::try_from(len).unwrap_or(u32::MAX));
    let mut bytes =
        Vec::with_capacity(HEADER_LEN + identity.len() + modules.len() + functions.len() + names.len());
    bytes.extend([0; CHECKSUM_LEN]);
    bytes.extend(lens.into_iter().chain([count]).flat_map(u32::to_le_bytes));
    for part in [identity.as_bytes(), &modules, &functions, &names] {
        bytes.extend_from_slice(part);
    }
    let sum = checksum(0, &bytes[CHECKSUM_LEN..]);
    bytes[..CHECKSUM_LEN].copy_from_slice(&sum.to_le_bytes());
    Some(bytes)
}

/// Adds a module, empty where it has no place. Gives back where it begins.
fn add_module(bytes: &mut Vec<u8>, symbols: &KernelSymbols, places: &Places, name: &str) -> Option<Avma> {
    let place = places.get(name);
    let range = symbols.modules.iter().find(|module| *module.name == *name).map(|module| &module.range);
    let offsets = place
        .zip(range)
        .map(|(place, range)| [range.start, range.end].map(|end| end.0.wrapping_sub(place.start.0)));
    let name = if offsets.is_some() { name } else { "" };
    bytes.extend(offsets.unwrap_or_default().into_iter().flat_map(u64::to_le_bytes));
    bytes.extend(u16::try_from(name.len()).unwrap_or_default().to_le_bytes());
    bytes.extend_from_slice(name.as_bytes());
    offsets.and(range).map(|range| range.start)
}

/// How many functions are kept; `None` of damaged bytes.
pub(crate) fn count_functions(bytes: &[u8]) -> Option<usize> {
    Some(Kept::open(bytes)?.functions)
}

/// The functions that were kept with this identity, at the places where their modules are now; without the build id.
pub(crate) fn decode(mut bytes: Vec<u8>, places: &Places, identity: &str) -> Option<KernelSymbols> {
    let mut kept = Kept::open(&bytes)?;
    if kept.text(kept.identity)? != identity {
        return None;
    }
    let in_order = (0..kept.modules).map(|_| kept.module(places)).collect::<Option<Vec<_>>>()?;
    let names_at = kept.at.checked_add(kept.functions.checked_mul(FUNCTION_LEN)?)?;
    let table = bytes.get(kept.at..names_at)?;
    let mut name_at = 0_usize;
    let mut functions = Vec::with_capacity(kept.functions);
    for bytes in table.as_chunks::<FUNCTION_LEN>().0 {
        let word = u64::from_le_bytes(*bytes);
        let (offset, len, module) = (word & 0xffff_ffff, (word >> 32) as u16, (word >> 48) as u16);
        let start = in_order.get(usize::from(module))?.range.start.0.checked_add(offset)?;
        functions.push(Function { start, name: (u32::try_from(name_at).ok()?, len), module });
        name_at += usize::from(len);
    }
    let module_names = in_order.iter().map(|module| module.name.clone()).collect();
    let mut modules = in_order;
    modules.retain(|module| !module.name.is_empty());
    modules.sort_by_key(|module| module.range.start);
    let mut symbols = KernelSymbols { functions, module_names, modules, ..KernelSymbols::default() };
    let first_code = places.get(KERNEL)?.start.0;
    symbols.anchors.note(b"_stext", first_code);
    // Nothing else of the bytes is asked for again.
    bytes.drain(..names_at);
    bytes.shrink_to_fit();
    symbols.names = bytes;
    symbols.functions.is_sorted_by_key(|function| function.start).then_some(symbols)
}

/// What is kept, as far as it was read.
struct Kept<'a> {
    bytes: &'a [u8],
    at: usize,
    identity: usize,
    modules: usize,
    functions: usize,
}

impl<'a> Kept<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, 0, true);
        if cursor.u64()? != checksum(0, bytes.get(CHECKSUM_LEN..)?) {
            return None;
        }
        let [identity, modules, functions] =
            [cursor.u32()?, cursor.u32()?, cursor.u32()?].map(|n| n as usize);
        // Not more than there can be, whatever is claimed.
        (functions <= bytes.len() / FUNCTION_LEN && modules <= bytes.len()).then_some(Self {
            bytes,
            at: cursor.position(),
            identity,
            modules,
            functions,
        })
    }

    fn text(&mut self, len: usize) -> Option<&'a str> {
        let text = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        std::str::from_utf8(text).ok()
    }

    /// The next module; one without a name where it had no place.
    fn module(&mut self, places: &Places) -> Option<KernelModule> {
        let mut cursor = Cursor::new(self.bytes, self.at, true);
        let (start, end, len) = (cursor.u64()?, cursor.u64()?, cursor.u16()?);
        self.at = cursor.position();
        let name = self.text(usize::from(len))?;
        let place = if name.is_empty() { 0 } else { places.get(name)?.start.0 };
        let [start, end] = [start, end].map(|offset| Avma(place.wrapping_add(offset)));
        Some(KernelModule { name: name.into(), range: start..end })
    }
}
