//! The functions of the kernel and its modules, from the text of `/proc/kallsyms`.

use super::function_table::{FunctionTable, KernelFunction};
use super::image::AnchorSymbols;
use super::lines::{for_each_line, parse_module};
use nyquist_object::Avma;
use rustc_hash::FxHashMap;
use std::io::{self, BufRead};
use std::ops::Range;
use std::sync::Arc;

/// The name of the kernel itself among its modules.
pub(super) const KERNEL: &str = "vmlinux";

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
#[non_exhaustive]
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

/// The functions in the lists, and the modules that contain them.
pub(super) struct ListedFunctions {
    pub(super) table: FunctionTable,
    /// The names of the functions' modules, by their numbers.
    pub(super) module_names: Vec<Arc<str>>,
    /// By the start of their code.
    pub(super) modules: Vec<KernelModule>,
    /// Where the kernel's code begins in memory.
    pub(super) anchors: AnchorSymbols,
}

/// One line of `/proc/kallsyms`: an address, a type as nm prints it, a name, and a module in brackets.
pub(super) struct KallsymsLine<'a> {
    pub(super) address: u64,
    is_code: bool,
    pub(super) name: &'a str,
    pub(super) module: &'a str,
}

/// Reads the text of `/proc/kallsyms` and `/proc/modules`. Lines that cannot be read are skipped.
pub(super) fn read(kallsyms: impl BufRead, modules: impl BufRead) -> Result<ListedFunctions, KernelError> {
    let mut reading = Reading::default();
    for_each_line(kallsyms, |line| reading.take(line))?;
    if !reading.functions.is_empty() && reading.functions.iter().all(|function| function.start == 0) {
        return Err(KernelError::Hidden);
    }
    if reading.functions.is_empty() {
        return Err(KernelError::Empty);
    }
    let mut provided = FxHashMap::default();
    for_each_line(modules, |line| provided.extend(parse_module(line)))?;
    Ok(reading.finish(&provided))
}

/// The state of reading the lists.
#[derive(Default)]
struct Reading {
    functions: Vec<KernelFunction>,
    names: Vec<u8>,
    numbers: FxHashMap<String, u16>,
    module_names: Vec<Arc<str>>,
    /// The number of the last line's module, because the next line is mostly of the same module.
    last_module: u16,
    /// Where the kernel's own code ends (`_etext`).
    kernel_end: Option<u64>,
    anchors: AnchorSymbols,
}

impl Reading {
    fn take(&mut self, line: &str) {
        let Some(line) = KallsymsLine::parse(line) else { return };
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
        self.functions.push(KernelFunction { start: line.address, name, module });
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

    fn finish(mut self, provided: &FxHashMap<String, Range<Avma>>) -> ListedFunctions {
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
            let range = provided.get(&**name).cloned().or(range)?;
            let end = self.kernel_end.filter(|_| **name == *KERNEL).map_or(range.end, Avma);
            Some(KernelModule { name: name.clone(), range: range.start..end.max(range.end) })
        });
        let mut modules: Vec<_> = modules.collect();
        modules.sort_by_key(|module| module.range.start);
        let Self { functions, names, module_names, anchors, .. } = self;
        ListedFunctions { table: FunctionTable { functions, names }, module_names, modules, anchors }
    }
}

impl<'a> KallsymsLine<'a> {
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        let is_code = matches!(fields.next()?, "t" | "T" | "w" | "W");
        let name = fields.next()?;
        let module = fields.next().and_then(|word| word.strip_prefix('[')?.strip_suffix(']'));
        Some(Self { address, is_code, name, module: module.unwrap_or(KERNEL) })
    }
}
