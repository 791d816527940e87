//! `/proc/kallsyms`, `/proc/modules` and the kernel's notes of any bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nyquist_object::Avma;
use nyquist_symbols::KernelSymbols;

fuzz_target!(|parts: (&[u8], &[u8], &[u8], Vec<u64>)| {
    let (kallsyms, modules, notes, addresses) = parts;
    let Ok(kernel) = KernelSymbols::parse(kallsyms, modules, notes) else { return };
    for address in addresses {
        let info = kernel.lookup(Avma(address));
        assert!(info.symbol.is_none() || kernel.module_of(Avma(address)).is_some());
    }
});
