//! The kernel's own symbols: `/proc/kallsyms`, `/proc/modules` and the notes in `/sys/kernel/notes`, and the
//! lines and inlined calls of its debug info, if it is on this machine.

mod block_index;
mod blocks;
mod code;
mod files;
mod function_table;
mod functions;
mod image;
mod kept;
pub(crate) mod kept_head;
mod lines;
mod modules;
mod running;
mod section_places;

use crate::{AddressInfo, Finder, Frame, Origin, Reason, Symbol, SymbolFiles, demangle};
pub use code::{KernelCode, KernelCodeError};
pub use files::KernelFiles;
use function_table::{Function, FunctionTable, NearestFunction};
use functions::Functions;
use image::{Anchors, KernelImage};
pub use kept::{read_kernel, sealed_kernel};
use lines::{for_each_line, parse_module};
use modules::{ModuleFiles, PlacedModule};
use nyquist_object::elf::build_id_in_notes;
use nyquist_object::{Avma, BuildId, RelativeAddress};
use running::UncachedSymbols;
use rustc_hash::FxHashMap;
use std::io::{self, BufRead};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The name of the kernel's lib in profiles, as perf calls its image.
pub const KERNEL_LIB: &str = "[kernel.kallsyms]";

/// The name of the kernel itself among its modules.
pub(crate) const KERNEL: &str = "vmlinux";

/// The functions of the running kernel and its modules.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    pub(crate) functions: Functions,
    /// The names of the functions' modules, by their numbers. Empty for cached functions.
    pub(crate) module_names: Vec<Arc<str>>,
    /// By the start of their code.
    pub(crate) modules: Vec<KernelModule>,
    pub(crate) build_id: Option<BuildId>,
    /// Where its code begins in memory.
    pub(crate) anchors: Anchors,
    pub(crate) image: Option<KernelImage>,
    pub(crate) module_files: Option<ModuleFiles>,
    /// The file of each module, after one of its addresses was first looked up.
    pub(crate) placed: Vec<OnceLock<Option<PlacedModule>>>,
    /// The way to read all symbols, if these are cached ones.
    pub(crate) uncached: Option<UncachedSymbols>,
}

/// A part of the kernel that was linked on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelModule {
    /// `vmlinux`, a module's name such as `ext4`, or `bpf` for compiled BPF programs.
    pub name: Arc<str>,
    /// The addresses of its code, by symbols and `/proc/modules`.
    pub range: Range<Avma>,
}

/// Why the kernel's symbols are not available.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Every address is zero: `kptr_restrict` or missing privileges.
    #[error("the kernel hides its addresses (kernel.kptr_restrict, or not privileged)")]
    Hidden,
    /// The list has no functions.
    #[error("the kernel lists no functions")]
    Empty,
    /// Reading failed.
    #[error("cannot read the kernel's symbols")]
    Read(#[from] io::Error),
}

/// One line of `/proc/kallsyms`: an address, a type as nm prints it, a name, and a module in brackets.
struct Line<'a> {
    address: u64,
    is_code: bool,
    name: &'a str,
    module: &'a str,
}

impl KernelSymbols {
    /// Reads the text of `/proc/kallsyms` and `/proc/modules` and the bytes of `/sys/kernel/notes`; a text
    /// that is not available can be empty. Lines that cannot be read are skipped.
    pub fn parse(kallsyms: impl BufRead, modules: impl BufRead, notes: &[u8]) -> Result<Self, KernelError> {
        let mut reading = Reading::default();
        for_each_line(kallsyms, |line| reading.take(line))?;
        if !reading.functions.is_empty() && reading.functions.iter().all(|function| function.start == 0) {
            return Err(KernelError::Hidden);
        }
        if reading.functions.is_empty() {
            return Err(KernelError::Empty);
        }
        let mut stated = FxHashMap::default();
        for_each_line(modules, |line| stated.extend(parse_module(line)))?;
        Ok(reading.finish(&stated, build_id_in_notes(notes, cfg!(target_endian = "little"))))
    }

    /// Looks for the kernel's debug info. Every file of it must have the kernel's build id. It is a `vmlinux`
    /// at the places of the distributions' packages for this release, in a kernel's own build folder, or at
    /// the places of `finder`. Nothing is downloaded, because it would be a gigabyte.
    #[must_use]
    pub fn with_debug_info(self, finder: &Finder, release: &str) -> Self {
        let image =
            self.build_id.as_ref().and_then(|id| KernelImage::find(finder, release, id, self.anchors));
        Self { image, ..self }
    }

    /// Also looks for the debug info of modules, when one of a module's addresses is first looked up. The
    /// places are the packages and folders of this release below `root` (`/`), and those of `finder`. A
    /// module's build id and the addresses of its sections are read from `/sys/module` there. Without them
    /// its file is not used. Nothing is downloaded.
    #[must_use]
    pub fn with_module_files(self, finder: &Finder, root: &Path, release: &str) -> Self {
        let placed = self.modules.iter().map(|_| OnceLock::new()).collect();
        Self { module_files: Some(ModuleFiles::new(finder, root, release)), placed, ..self }
    }

    /// The files that were found for the kernel's own debug info.
    pub fn debug_info(&self) -> Option<&SymbolFiles> {
        self.image.as_ref().map(KernelImage::symbol_files)
    }

    /// The files that were found for the debug info of the module that contains an address, or of the kernel
    /// itself, as far as they were needed.
    pub fn debug_info_at(&self, address: Avma) -> Option<&SymbolFiles> {
        match self.module_number(address) {
            Some(number) if !self.is_kernel(number) => {
                Some(self.placed.get(number)?.get()?.as_ref()?.symbol_files())
            }
            _ => self.debug_info(),
        }
    }

    /// The answers for `addresses`, in their order: those of [`KernelSymbols::lookup`], with the files, lines
    /// and inlined calls of the debug info.
    pub fn symbolicate(&self, addresses: &[Avma], threads: NonZeroUsize) -> Vec<AddressInfo> {
        let mut infos: Vec<_> = addresses.iter().map(|&address| self.lookup(address)).collect();
        let mut by_module: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for (index, &address) in addresses.iter().enumerate() {
            if let Some(number) = self.module_number(address) {
                by_module.entry(number).or_default().push(index);
            }
        }
        for (number, indexes) in by_module {
            let wanted: Vec<_> = indexes.iter().map(|&index| addresses[index]).collect();
            for (index, lines) in indexes.into_iter().zip(self.lines(number, &wanted, threads)) {
                if lines.origin == Origin::DebugInfo {
                    infos[index].frames = lines.frames;
                    infos[index].origin = lines.origin;
                }
            }
        }
        infos
    }

    /// The answers of a module's debug info for addresses in it, in their order. Empty if there is no debug
    /// info.
    fn lines(&self, number: usize, addresses: &[Avma], threads: NonZeroUsize) -> Vec<AddressInfo> {
        if self.is_kernel(number) {
            return self
                .image
                .as_ref()
                .map(|image| image.symbolicate(addresses, threads))
                .unwrap_or_default();
        }
        let name = self.modules.get(number).map(|module| &module.name);
        let open = || self.module_files.as_ref()?.open(name?);
        let placed = self.placed.get(number).and_then(|placed| placed.get_or_init(open).as_ref());
        placed.map(|placed| placed.symbolicate(addresses, threads)).unwrap_or_default()
    }

    fn is_kernel(&self, number: usize) -> bool {
        self.modules.get(number).is_some_and(|module| *module.name == *KERNEL)
    }

    /// The answer for an address in the kernel. The symbol's address is relative to its module's start.
    pub fn lookup(&self, address: Avma) -> AddressInfo {
        let around = self.functions.around(address.0);
        match self.uncached.as_ref().filter(|_| !around.is_some_and(|around| around.is_inside_module())) {
            Some(uncached) => uncached.lookup(address),
            None => self.lookup_here(around, address),
        }
    }

    fn lookup_here(&self, around: Option<NearestFunction<'_>>, address: Avma) -> AddressInfo {
        let found = self.module_of(address).zip(around);
        let Some((module, function)) = found.filter(|(module, found)| found.start >= module.range.start.0)
        else {
            return AddressInfo::unknown(Reason::NotCovered);
        };
        // It ends at the next function, or with its module.
        let end = function.next.map_or(u64::MAX, |(next, _)| next).min(module.range.end.0);
        let name: Arc<str> = demangle(&String::from_utf8_lossy(function.name)).into();
        let relative = RelativeAddress::from_avma(Avma(function.start), module.range.start);
        let symbol = relative.map(|address| Symbol {
            name: name.clone(),
            address,
            size: u32::try_from(end - function.start).ok(),
        });
        let frames = vec![Frame { function: Some(name), ..Frame::default() }];
        AddressInfo { symbol, frames, origin: Origin::Kallsyms }
    }

    /// The module that contains an address.
    pub fn module_of(&self, address: Avma) -> Option<&KernelModule> {
        self.module_number(address).and_then(|number| self.modules.get(number))
    }

    fn module_number(&self, address: Avma) -> Option<usize> {
        let after = self.modules.partition_point(|module| module.range.start <= address);
        self.modules[..after].iter().rposition(|module| address < module.range.end)
    }

    /// All modules, including the kernel itself, by address.
    pub fn modules(&self) -> &[KernelModule] {
        &self.modules
    }

    /// The build id of the kernel itself.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.build_id.as_ref()
    }
}

/// The state of reading the lists.
#[derive(Default)]
struct Reading {
    functions: Vec<Function>,
    names: Vec<u8>,
    numbers: FxHashMap<String, u16>,
    module_names: Vec<Arc<str>>,
    /// The number of the last line's module, because the next line is mostly of the same module.
    last_module: u16,
    /// Where the kernel's own code ends (`_etext`).
    kernel_end: Option<u64>,
    anchors: Anchors,
}

impl Reading {
    fn take(&mut self, line: &str) {
        let Some(line) = Line::parse(line) else { return };
        if line.module == KERNEL && (line.name == "_etext" || line.name == "_einittext") {
            self.kernel_end = self.kernel_end.max(Some(line.address));
        }
        if line.module == KERNEL {
            self.anchors.note(line.name.as_bytes(), line.address);
        }
        if !line.is_code || self.names.len() > u32::MAX as usize - 0xffff {
            return;
        }
        let Some(module) = self.module(line.module) else { return };
        let Ok(len) = u16::try_from(line.name.len()) else { return };
        let name = (self.names.len() as u32, len);
        self.names.extend_from_slice(line.name.as_bytes());
        self.functions.push(Function { start: line.address, name, module });
    }

    fn module(&mut self, name: &str) -> Option<u16> {
        if self.module_names.get(usize::from(self.last_module)).is_some_and(|last| **last == *name) {
            return Some(self.last_module);
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let number = u16::try_from(self.module_names.len()).ok()?;
                self.numbers.insert(name.to_owned(), number);
                self.module_names.push(name.into());
                number
            }
        };
        self.last_module = number;
        Some(number)
    }

    fn finish(mut self, stated: &FxHashMap<String, Range<Avma>>, build_id: Option<BuildId>) -> KernelSymbols {
        // Of several names at one address, the kernel itself prints the first one.
        self.functions.sort_by_key(|function| function.start);
        self.functions.dedup_by_key(|function| function.start);
        let mut ranges: Vec<Option<Range<Avma>>> = vec![None; self.module_names.len()];
        for function in &self.functions {
            let start = Avma(function.start);
            // The last function's size is not known. It extends at least to the end of its page.
            let end = Avma((function.start | 0xfff).saturating_add(1));
            let range = ranges[usize::from(function.module)].get_or_insert(start..end);
            range.end = range.end.max(end);
        }
        let modules = self.module_names.iter().zip(ranges).filter_map(|(name, range)| {
            let range = stated.get(&**name).cloned().or(range)?;
            let end = self.kernel_end.filter(|_| **name == *KERNEL).map_or(range.end, Avma);
            Some(KernelModule { name: name.clone(), range: range.start..end.max(range.end) })
        });
        let mut modules: Vec<_> = modules.collect();
        modules.sort_by_key(|module| module.range.start);
        let Self { functions, names, module_names, anchors, .. } = self;
        KernelSymbols {
            functions: Functions::Read(FunctionTable { functions, names }),
            module_names,
            modules,
            build_id,
            anchors,
            ..KernelSymbols::default()
        }
    }
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
        let name = words.next()?;
        let module = words.next().and_then(|word| word.strip_prefix('[')?.strip_suffix(']'));
        Some(Self { address, is_code, name, module: module.unwrap_or(KERNEL) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 t first_alias
ffffffff81000100 t do_syscall_64
ffffffff81000180 T _etext
ffffffff82000000 D some_data
ffffffffc0100000 t ext4_read\t[ext4]
ffffffffc0100040 t _RNvCs1234_4rust3run\t[ext4]
ffffffffc0300000 t bpf_prog_1234_count\t[bpf]
garbage
";
    const MODULES: &str = "ext4 8192 1 - Live 0xffffffffc0100000 (E)\nhidden 4096 0 - Live 0x0\n";

    fn check(address: u64, expected: Option<(&str, &str, u32, u32)>) {
        let kernel = KernelSymbols::parse(KALLSYMS.as_bytes(), MODULES.as_bytes(), &[]).unwrap();
        let info = kernel.lookup(Avma(address));
        let found = info.symbol.as_ref().map(|symbol| {
            let module = &kernel.module_of(Avma(address)).unwrap().name;
            (&**module, &*symbol.name, symbol.address.0, symbol.size.unwrap())
        });
        assert_eq!(found, expected, "{address:#x}");
    }

    #[test]
    fn an_address_has_its_function_and_module() {
        check(0xffff_ffff_8100_0020, Some(("vmlinux", "_stext", 0, 0x100)));
        check(0xffff_ffff_8100_0101, Some(("vmlinux", "do_syscall_64", 0x100, 0x80)));
        check(0xffff_ffff_8200_0000, None);
        check(0xffff_ffff_c010_0050, Some(("ext4", "rust::run", 0x40, 0x1fc0)));
        check(0xffff_ffff_c010_2000, None);
        check(0xffff_ffff_c030_0004, Some(("bpf", "bpf_prog_1234_count", 0, 0x1000)));
        check(0, None);
    }

    #[test]
    fn hidden_addresses_are_said_to_be_hidden() {
        let text = "0000000000000000 T _stext\n0000000000000000 t do_idle\n";
        let parse = |text: &str| KernelSymbols::parse(text.as_bytes(), io::empty(), &[]);
        assert!(matches!(parse(text), Err(KernelError::Hidden)));
        assert!(matches!(parse(""), Err(KernelError::Empty)));
    }
}
