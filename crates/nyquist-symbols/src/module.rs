//! The symbols of one module: many addresses at once, or one.

use crate::{AddressInfo, Disassembly, DisassemblyError, Found, Reason, SymbolsError};
use nyquist_object::RelativeAddress;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The symbols and debug info of one module. Shared by threads freely.
#[derive(Debug)]
pub struct ModuleSymbols {}

impl ModuleSymbols {
    /// Reads the headers of what was found. A part that is damaged is left out: the answers then come from the
    /// next-best source.
    pub fn open(found: Found) -> Result<Self, SymbolsError> {
        let _ = found;
        Err(SymbolsError::NoFile)
    }

    /// Reads an ELF image that is no file, such as the vDSO's.
    pub fn from_image(image: Vec<u8>) -> Result<Self, SymbolsError> {
        let _ = image;
        Err(SymbolsError::NoFile)
    }

    /// Answers for each of `addresses`, in their order. Equal addresses are looked up once. When `cancel` becomes
    /// true, the addresses whose turn has not come get [`Reason::Cancelled`].
    pub fn symbolicate(
        &self,
        addresses: &[RelativeAddress],
        threads: NonZeroUsize,
        cancel: &AtomicBool,
    ) -> Vec<AddressInfo> {
        let batch = Batch { module: self, addresses };
        symbolicate(&[batch], threads, cancel, &AtomicUsize::new(0)).pop().unwrap_or_default()
    }

    /// Answers for one address.
    pub fn lookup(&self, address: RelativeAddress) -> AddressInfo {
        let _ = address;
        AddressInfo::unknown(Reason::NoSymbols)
    }

    /// The machine code from `start` on as text, `size` bytes of it, and on to the function's end when asked.
    pub fn disassemble(
        &self,
        start: RelativeAddress,
        size: u32,
        until_function_end: bool,
    ) -> Result<Disassembly, DisassemblyError> {
        let _ = (start, size, until_function_end);
        Err(DisassemblyError::NoCode(start))
    }

    /// Whether the debug info of the code at `address` names the source file `file`, spelled as in
    /// [`crate::Frame::file`].
    pub fn names_source(&self, file: &str, address: RelativeAddress) -> bool {
        let _ = (file, address);
        false
    }
}

/// Addresses of one module to be looked up.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The module.
    pub module: &'a ModuleSymbols,
    /// The lookup addresses: a return address less one.
    pub addresses: &'a [RelativeAddress],
}

/// Answers for the addresses of many modules, all units of all modules sharing the threads. `done` counts the
/// addresses that have been answered, up to the sum of all batches' lengths.
pub fn symbolicate(
    batches: &[Batch<'_>],
    threads: NonZeroUsize,
    cancel: &AtomicBool,
    done: &AtomicUsize,
) -> Vec<Vec<AddressInfo>> {
    let _ = (threads, cancel, done);
    let look_up =
        |batch: &Batch<'_>| batch.addresses.iter().map(|&address| batch.module.lookup(address)).collect();
    batches.iter().map(look_up).collect()
}
