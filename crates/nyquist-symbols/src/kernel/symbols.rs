//! The functions of the running kernel and its modules: which one is at an address, with its lines.

use super::function_table::NearestFunction;
use super::functions::KernelFunctions;
use super::image::{AnchorSymbols, KernelImage};
use super::kallsyms::{self, KERNEL, KernelError, KernelModule, ListedFunctions};
use super::lists::RunningKernel;
use super::modules::{ModuleFiles, PlacedModule};
use crate::{AddressInfo, Finder, Origin, Reason, SourceFrame, Symbol, SymbolFiles, demangle};
use nyquist_object::elf::build_id_in_notes;
use nyquist_object::{Avma, BuildId, RelativeAddress};
use rustc_hash::FxHashMap;
use std::io::{BufRead, BufReader};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The functions of the running kernel and its modules.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    pub(crate) functions: KernelFunctions,
    /// The names of the functions' modules, by their numbers. Empty for cached functions.
    pub(crate) module_names: Vec<Arc<str>>,
    /// By the start of their code.
    pub(crate) modules: Vec<KernelModule>,
    pub(crate) build_id: Option<BuildId>,
    /// Where its code begins in memory.
    pub(crate) anchors: AnchorSymbols,
    pub(crate) image: Option<KernelImage>,
    pub(crate) module_files: Option<ModuleFiles>,
    /// The file of each module, after one of its addresses was first looked up.
    pub(crate) placed: Vec<OnceLock<Option<PlacedModule>>>,
    /// The way to read all symbols, if these are cached ones.
    pub(crate) uncached: Option<UncachedSymbols>,
}

/// The way to read all symbols, for addresses without a cached answer. These are of code that comes and goes
/// while the kernel runs, such as compiled BPF programs and trampolines, or are in a damaged part of the
/// file.
#[derive(Debug)]
pub(crate) struct UncachedSymbols {
    kernel: RunningKernel,
    all: OnceLock<Option<Box<KernelSymbols>>>,
}

impl UncachedSymbols {
    pub(super) fn new(kernel: RunningKernel) -> Self {
        Self { kernel, all: OnceLock::new() }
    }

    fn lookup(&self, address: Avma) -> AddressInfo {
        let all = self.all.get_or_init(|| KernelSymbols::read(&self.kernel).ok().map(Box::new));
        all.as_ref().map_or_else(|| AddressInfo::unknown(Reason::NotCovered), |all| all.lookup(address))
    }
}

impl KernelSymbols {
    /// Reads the text of `/proc/kallsyms` and `/proc/modules` and the bytes of `/sys/kernel/notes`; a text
    /// that is not available can be empty. Lines that cannot be read are skipped.
    pub fn parse(kallsyms: impl BufRead, modules: impl BufRead, notes: &[u8]) -> Result<Self, KernelError> {
        let ListedFunctions { table, module_names, modules, anchors } = kallsyms::read(kallsyms, modules)?;
        let build_id = build_id_in_notes(notes, cfg!(target_endian = "little"));
        let functions = KernelFunctions::Read(table);
        Ok(Self { functions, module_names, modules, build_id, anchors, ..Self::default() })
    }

    /// Reads the symbols from the files of the running kernel.
    pub(super) fn read(kernel: &RunningKernel) -> Result<Self, KernelError> {
        let kallsyms = BufReader::new(kernel.kallsyms()?);
        Self::parse(kallsyms, kernel.modules().as_slice(), &kernel.notes())
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
            let requested: Vec<_> = indexes.iter().map(|&index| addresses[index]).collect();
            for (index, lines) in indexes.into_iter().zip(self.lines(number, &requested, threads)) {
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
        let frames = vec![SourceFrame { function: Some(name), ..SourceFrame::default() }];
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

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
