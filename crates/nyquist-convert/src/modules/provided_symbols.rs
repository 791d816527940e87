//! The functions of files that a recording itself states, as simpleperf's recordings and .NET's traces do. They are
//! used for files that are not on this machine.

use nyquist_object::Avma;
use nyquist_perf::file::{FileSymbol, SimplePerf, SymbolFile, SymbolFileKind};
use nyquist_perf::{PerfMap, PerfMapEntry};
use nyquist_symbols::{KERNEL_LIB, demangle};
use std::sync::Arc;

use crate::event::Mapping;

/// The functions of a file.
#[derive(Clone, Debug)]
pub struct ProvidedSymbols {
    map: Arc<PerfMap>,
    addresses: Addresses,
}

/// The kind of address of a file's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addresses {
    /// Offsets in the file, plus this number.
    InFile(u64),
    /// Addresses relative to the start of the mapping, which has this address.
    FromStart(u64),
    /// Addresses in the process's, or the kernel's, memory.
    InMemory,
}

impl ProvidedSymbols {
    /// Each file of a simpleperf recording that has functions, with its functions.
    pub fn of_simpleperf(simpleperf: &SimplePerf) -> impl Iterator<Item = (String, Self)> {
        let files = simpleperf.files.iter().filter(|file| !file.symbols.is_empty());
        let kallsyms = (!simpleperf.kallsyms.is_empty()).then(|| Self::of_kallsyms(&simpleperf.kallsyms));
        let kallsyms = kallsyms.map(|symbols| (KERNEL_LIB.to_owned(), symbols));
        kallsyms.into_iter().chain(files.map(|file| (file.path.clone(), Self::of_file(file))))
    }

    /// Functions at addresses relative to the start of a mapping.
    pub(crate) fn from_start(entries: Vec<PerfMapEntry>) -> Self {
        Self { map: Arc::new(map(entries)), addresses: Addresses::FromStart(0) }
    }

    /// Functions at addresses in a process's memory.
    pub(crate) fn in_memory(entries: Vec<PerfMapEntry>) -> Self {
        Self { map: Arc::new(map(entries)), addresses: Addresses::InMemory }
    }

    fn of_file(file: &SymbolFile) -> Self {
        let first = file.min_vaddr;
        let addresses = match (file.kind, file.min_vaddr_offset) {
            _ if is_jit_cache(&file.path) => Addresses::InMemory,
            (SymbolFileKind::Kernel | SymbolFileKind::SymbolMap, _) => Addresses::InMemory,
            (SymbolFileKind::Elf, Some(offset)) => Addresses::InFile(first.wrapping_sub(offset)),
            (SymbolFileKind::KernelModule, offset) => {
                Addresses::FromStart(first.wrapping_sub(offset.unwrap_or_default()))
            }
            (SymbolFileKind::Elf, None) => Addresses::FromStart(first),
            (SymbolFileKind::Dex | SymbolFileKind::Unknown, _) => Addresses::InFile(0),
        };
        let entries = file.symbols.iter().map(entry).collect();
        Self { map: Arc::new(map(entries)), addresses }
    }

    /// The kernel's functions, from the lines of `/proc/kallsyms`: address, type, name.
    fn of_kallsyms(text: &[u8]) -> Self {
        /// The maximum assumed size of the last function, or of one before a gap.
        const MAX_FUNCTION_SIZE: u64 = 0x10000;
        let text = String::from_utf8_lossy(text);
        let mut functions: Vec<(u64, &str)> = text.lines().filter_map(kernel_function).collect();
        functions.sort_unstable();
        let ends = functions.iter().skip(1).map(|(start, _)| *start).chain([u64::MAX]);
        let entry = |(&(start, name), next): (&(u64, &str), u64)| {
            let end = next.min(start.saturating_add(MAX_FUNCTION_SIZE));
            PerfMapEntry { start, end, name: name.into() }
        };
        let entries = functions.iter().zip(ends).map(entry).collect();
        Self { map: Arc::new(map(entries)), addresses: Addresses::InMemory }
    }

    /// The functions, by their stated addresses.
    pub(crate) fn map(&self) -> Arc<PerfMap> {
        Arc::clone(&self.map)
    }

    /// The base of relative addresses of the file's mapping, and the stated address of that base.
    pub(crate) fn base(&self, mapping: &Mapping) -> (Avma, u64) {
        /// The span of the 31 bits of a relative address.
        const WINDOW: u64 = 1 << 31;
        let start = mapping.start.0;
        match self.addresses {
            Addresses::InFile(more) => (Avma(start.wrapping_sub(mapping.offset.0.wrapping_add(more))), 0),
            Addresses::FromStart(first) => (Avma(start.wrapping_sub(first)), 0),
            Addresses::InMemory if mapping.pid.is_none() => (mapping.start, start),
            Addresses::InMemory => (Avma(start & !(WINDOW - 1)), start & !(WINDOW - 1)),
        }
    }
}

/// Whether a path is that of code which Android's runtime has generated and simpleperf has copied. Simpleperf
/// states such code's addresses in memory, and some versions append a range of addresses to the path.
fn is_jit_cache(path: &str) -> bool {
    let path = path.rsplit_once(':').map_or(path, |(path, _)| path);
    let name = path.rsplit('/').next().unwrap_or_default();
    name.ends_with("_jit_app_cache") || name.starts_with("TemporaryFile-")
}

fn entry(symbol: &FileSymbol) -> PerfMapEntry {
    let end = symbol.address.saturating_add(u64::from(symbol.len.max(1)));
    PerfMapEntry { start: symbol.address, end, name: demangle(&symbol.name).into() }
}

fn map(entries: Vec<PerfMapEntry>) -> PerfMap {
    let mut map = PerfMap::default();
    for entry in entries.into_iter().filter(|entry| entry.start < entry.end) {
        map.insert(entry);
    }
    map
}

fn kernel_function(line: &str) -> Option<(u64, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let is_code = ["t", "T", "w", "W"].contains(&fields.next()?);
    fields.next().filter(|_| is_code && address != 0).map(|name| (address, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{MappedFile, Pid};
    use nyquist_object::FileOffset;

    fn mapping(start: u64, offset: u64) -> Mapping {
        Mapping {
            pid: Some(Pid(1)),
            start: Avma(start),
            len: 0x1000,
            offset: FileOffset(offset),
            path: String::new(),
            identity: MappedFile::Unknown,
        }
    }

    fn name_at(file: &SymbolFile, mapping: &Mapping, address: u64) -> Option<String> {
        let symbols = ProvidedSymbols::of_file(file);
        let (base, first) = symbols.base(mapping);
        let provided = address.wrapping_sub(base.0).wrapping_add(first);
        symbols.map().find(provided).map(|entry| entry.name.to_string())
    }

    #[test]
    fn addresses_are_what_the_files_kind_says() {
        let check = |kind, path: &str, (min_vaddr, min_vaddr_offset), symbol: u64, address: u64| {
            let symbols = vec![FileSymbol { address: symbol, len: 8, name: "_ZN3foo3barEv".into() }];
            let file = SymbolFile { path: path.into(), kind, min_vaddr, min_vaddr_offset, symbols };
            let found = name_at(&file, &mapping(0x7f_0000_0000, 0x2000), address);
            assert_eq!(found.as_deref(), Some("foo::bar()"), "{kind:?} {path}");
        };
        // The file offset 0x2000 is the address 0x3000.
        check(SymbolFileKind::Elf, "/a.so", (0x2000, Some(0x1000)), 0x3010, 0x7f_0000_0017);
        check(SymbolFileKind::Elf, "/a.so", (0x5000, None), 0x5010, 0x7f_0000_0010);
        check(SymbolFileKind::KernelModule, "/a.ko", (0x40, Some(0)), 0x50, 0x7f_0000_0010);
        check(SymbolFileKind::Dex, "/a.vdex", (0, None), 0x2100, 0x7f_0000_0100);
        check(SymbolFileKind::SymbolMap, "perf-1.map", (0, None), 0x7f_0000_0020, 0x7f_0000_0020);
        check(SymbolFileKind::Elf, "/x_jit_app_cache:0-9", (0, Some(0)), 0x7f_0000_0020, 0x7f_0000_0020);
    }

    #[test]
    fn the_kernels_functions_go_up_to_the_next_one() {
        let text = b"ffff10 t first\nffff40 T second\nffff30 d data\n0 T hidden\n";
        let symbols = ProvidedSymbols::of_kallsyms(text);
        let name = |address| symbols.map().find(address).map(|entry| entry.name.to_string());
        assert_eq!(name(0x00ff_ff3f).as_deref(), Some("first"));
        assert_eq!(name(0x00ff_ff41).as_deref(), Some("second"));
        assert_eq!(name(0x0), None);
    }
}
