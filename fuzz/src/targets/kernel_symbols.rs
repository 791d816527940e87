//! The kernel's symbols from arbitrary text: kallsyms, modules and notes, divided by zero bytes.

use nyquist_object::Avma;
use nyquist_symbols::KernelSymbols;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |&byte| byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let Ok(symbols) = KernelSymbols::parse(part(), part(), part()) else { return };
    let starts = symbols.modules().iter().flat_map(|module| [module.range.start.0, module.range.end.0]);
    for address in starts.chain([0, 0xffff_ffff_8100_0010, u64::MAX]) {
        let _ = (symbols.lookup(Avma(address)), symbols.module_of(Avma(address.wrapping_sub(1))));
    }
}
