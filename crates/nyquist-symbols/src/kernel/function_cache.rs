//! The cached functions of the kernel. Each has its offset from the start of its module, so that the file
//! does not reveal the addresses of the kernel.
//!
//! ```text
//! head     = length of identity, number of modules, number of functions (u32)  identity  modules  index
//! module   = where it begins and ends (u64)  length of its name (u16)  name, none where it had no place
//! index    = for each block: where its first function is (u32), that one's module (u16), length of the block (u32)
//! block    = functions  names
//! function = where it is from the start of its module (u32)  length of its name (u16)  module (u16)
//! ```
//!
//! The file has the format of all files of a cache (`cache/block_file.rs`). A few hundred of a hundred
//! thousand functions are needed, so only the head is read first. A file is never modified.

use super::block_index::PER_BLOCK;
use super::cache_head::{CacheHead, CachedKernelModule, MAGIC, MAX_HEAD};
use super::cached_functions::{self, CachedFunctions, PlacedFunction};
use super::function_table::FunctionTable;
use super::functions::KernelFunctions;
use super::kallsyms::{KERNEL, KernelModule};
use super::symbols::KernelSymbols;
use crate::cache::block_file::{FileBlocks, FileHead, sealed_file};
use crate::section_contents::SharedSource;
use nyquist_object::{Avma, ByteSource as _};
use rustc_hash::FxHashMap;
use std::ops::Range;
#[cfg(any(test, feature = "test-hooks"))]
use std::sync::Arc;

/// The ranges of modules in memory. `vmlinux` begins at its first code.
pub(crate) type ModuleRanges = FxHashMap<String, Range<Avma>>;

/// A file of the functions of the modules that have a place.
pub(crate) fn encode(symbols: &KernelSymbols, places: &ModuleRanges, identity: &str) -> Option<Vec<u8>> {
    let KernelFunctions::Read(table) = &symbols.functions else { return None };
    let mut modules = Vec::new();
    let bases: Vec<_> =
        symbols.module_names.iter().map(|name| add_module(&mut modules, symbols, places, name)).collect();
    let functions = placed(table, &bases)?;
    let mut index = Vec::new();
    let blocks =
        functions.chunks(PER_BLOCK).map(|functions| cached_functions::contents(functions, &mut index));
    let blocks = blocks.collect::<Option<Vec<_>>>()?;
    let mut head = Vec::new();
    for count in [identity.len(), bases.len(), functions.len()] {
        head.extend(u32::try_from(count).ok()?.to_le_bytes());
    }
    for part in [identity.as_bytes(), &modules, &index] {
        head.extend_from_slice(part);
    }
    (head.len() <= MAX_HEAD as usize).then(|| sealed_kernel(&head, &blocks))
}

/// Adds a module, which is empty if it has no place. Returns its start.
fn add_module(
    bytes: &mut Vec<u8>,
    symbols: &KernelSymbols,
    places: &ModuleRanges,
    name: &str,
) -> Option<Avma> {
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

/// The functions of the modules that begin at `bases`. `None` if a function is too far from its module's
/// start.
fn placed<'a>(table: &'a FunctionTable, bases: &[Option<Avma>]) -> Option<Vec<PlacedFunction<'a>>> {
    let mut placed = Vec::with_capacity(table.functions.len());
    for function in &table.functions {
        let base = bases.get(usize::from(function.module)).copied().flatten();
        let Some(offset) = base.and_then(|base| function.start.checked_sub(base.0)) else { continue };
        let offset = u32::try_from(offset).ok()?;
        placed.push(PlacedFunction { offset, module: function.module, name: table.name(function) });
    }
    Some(placed)
}

/// A file with this head and these blocks, valid or not, with checksums that `read_kernel` accepts.
pub(crate) fn sealed_kernel(head: &[u8], blocks: &[Vec<u8>]) -> Vec<u8> {
    sealed_file(MAGIC, 0, head, blocks.iter())
}

/// The functions that were stored with this identity, at the current places of their modules, without the
/// build id.
pub(crate) fn open(source: &SharedSource, places: &ModuleRanges, identity: &str) -> Option<KernelSymbols> {
    let file = FileHead::read(source, MAGIC, 0, MAX_HEAD)?;
    let head = CacheHead::parse(&file, source.len())?;
    if head.identity != identity {
        return None;
    }
    head.at(places, file.blocks(source))
}

/// The kernel's functions in the bytes of a cache file, as if each module were at address zero. `None` if it
/// is another file or its head is damaged. Functions in damaged blocks are not found.
#[cfg(any(test, feature = "test-hooks"))]
pub(crate) fn read_kernel(bytes: Vec<u8>) -> Option<KernelSymbols> {
    let source: SharedSource = Arc::new(bytes);
    let file = FileHead::read(&source, MAGIC, 0, MAX_HEAD)?;
    let head = CacheHead::parse(&file, source.len())?;
    let names = head.modules.iter().map(|module| module.name).chain([KERNEL]);
    let places = names.map(|name| (name.to_owned(), Avma(0)..Avma(0))).collect();
    head.at(&places, file.blocks(&source))
}

impl CacheHead<'_> {
    /// The functions, in the blocks of the file with this head, at the current places of their modules.
    fn at(&self, places: &ModuleRanges, blocks: FileBlocks) -> Option<KernelSymbols> {
        let mut modules = self.modules.iter().map(|module| module.at(places)).collect::<Option<Vec<_>>>()?;
        let bases = modules.iter().map(|module| module.range.start.0).collect();
        let functions = KernelFunctions::Kept(CachedFunctions::open(blocks, &self.index, bases)?);
        modules.retain(|module| !module.name.is_empty());
        modules.sort_by_key(|module| module.range.start);
        let mut symbols = KernelSymbols { functions, modules, ..KernelSymbols::default() };
        symbols.anchors.note(b"_stext", places.get(KERNEL)?.start.0);
        Some(symbols)
    }
}

impl CachedKernelModule<'_> {
    fn at(&self, places: &ModuleRanges) -> Option<KernelModule> {
        let place = if self.name.is_empty() { 0 } else { places.get(self.name)?.start.0 };
        let [start, end] = self.offsets.map(|offset| Avma(place.wrapping_add(offset)));
        Some(KernelModule { name: self.name.into(), range: start..end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::block_file::HEADER;
    use crate::kernel::cache_head::count_functions;
    use crate::section_contents::tests::CountedBytes;
    use std::fmt::Write as _;

    const TEXT: u64 = 0xffff_ffff_8100_0000;
    const MODULES: &str = "ext4 8192 1 - Live 0xffffffffc0100000\nlate 8192 1 - Live 0xffffffffc0300000\n";

    /// `functions` functions of the image, mostly some of two modules after it, and a compiled BPF program
    /// between these.
    fn listed(functions: usize) -> KernelSymbols {
        let mut text = format!("{TEXT:x} T _stext\n");
        for n in 1..functions {
            writeln!(text, "{:x} t image_{n}", TEXT + 0x11 * n as u64).unwrap();
        }
        for n in 0..functions as u64 % 3 * 60 {
            writeln!(text, "{:x} t ext4_{n}\t[ext4]", 0xffff_ffff_c010_0010_u64 + 8 * n).unwrap();
            writeln!(text, "{:x} t late_{n}\t[late]", 0xffff_ffff_c030_0000_u64 + 8 * n).unwrap();
        }
        text.push_str("ffffffffc0200000 t bpf_prog\t[bpf]\n");
        KernelSymbols::parse(text.as_bytes(), MODULES.as_bytes(), &[]).unwrap()
    }

    fn places(symbols: &KernelSymbols) -> ModuleRanges {
        let lasting = symbols.modules.iter().filter(|module| *module.name != *"bpf");
        lasting.map(|module| (module.name.to_string(), module.range.clone())).collect()
    }

    fn file(symbols: &KernelSymbols) -> Vec<u8> {
        encode(symbols, &places(symbols), "this kernel").unwrap()
    }

    fn opened(bytes: Vec<u8>, like: &KernelSymbols) -> Option<KernelSymbols> {
        open(&(Arc::new(bytes) as SharedSource), &places(like), "this kernel")
    }

    fn head_len(file: &[u8]) -> usize {
        HEADER + u32::from_le_bytes(file[8..12].try_into().unwrap()) as usize
    }

    /// The places of the blocks in a file, according to its index.
    fn blocks_of(file: &[u8]) -> Vec<Range<usize>> {
        let count = count_functions(&file).unwrap().div_ceil(PER_BLOCK);
        let mut at = head_len(file);
        let entries = file[at - 10 * count..at].as_chunks::<10>().0;
        let place = |entry: &[u8; 10]| {
            let start = at;
            at += u32::from_le_bytes(*entry.last_chunk().unwrap()) as usize;
            start..at
        };
        entries.iter().map(place).collect()
    }

    /// The addresses of all functions, the addresses next to them, and some that are in no function.
    fn addresses(symbols: &KernelSymbols) -> Vec<u64> {
        let KernelFunctions::Read(table) = &symbols.functions else { panic!("they were listed") };
        let beside = |function: &u64| [function - 1, *function, function + 1, function + 0x900];
        let starts: Vec<_> = table.functions.iter().map(|function| function.start).collect();
        starts.iter().flat_map(beside).chain([0, u64::MAX]).collect()
    }

    #[test]
    fn kept_functions_are_those_that_were_listed() {
        for functions in [1, 2, 127, 128, 129, 256, 257, 1000] {
            let listed = listed(functions);
            let KernelFunctions::Read(mut table) = self::listed(functions).functions else {
                panic!("they were listed");
            };
            table.functions.retain(|function| table.names[function.name.0 as usize..][..4] != *b"bpf_");
            let cached = opened(file(&listed), &listed).unwrap();
            for address in addresses(&listed) {
                assert_eq!(
                    cached.functions.around(address),
                    table.around(address),
                    "{functions} {address:#x}"
                );
            }
            let count = count_functions(&file(&listed).as_slice());
            assert_eq!(count, Some(table.functions.len()));
            assert_eq!(cached.modules.len() + 1, listed.modules.len());
        }
    }

    #[test]
    fn opening_reads_the_head_and_a_lookup_one_block() {
        let listed = listed(1000);
        let bytes = file(&listed);
        let head = head_len(&bytes) as u64;
        let counted = Arc::new(CountedBytes::new(bytes));
        let read = || counted.take_read();
        let cached = open(&(counted.clone() as SharedSource), &places(&listed), "this kernel").unwrap();
        assert_eq!(read(), head);
        let lookup = |n: u64| cached.lookup(Avma(TEXT + 0x11 * n + 2)).symbol.map(|symbol| symbol.name);
        // The last function of a block, whose next function is in another block, and the other functions of
        // its block.
        for n in (0..128).rev() {
            assert!(lookup(n).is_some_and(|name| n == 0 || *name == *format!("image_{n}")));
        }
        let block = read();
        assert!(block > 0 && block < counted.len() / 7, "{block} of {}", counted.len());
        assert_eq!(cached.lookup(Avma(TEXT - 1)).symbol, None);
        assert_eq!(read(), 0);
    }

    #[test]
    fn damage_costs_the_functions_of_its_block_alone() {
        let listed = listed(300);
        let whole = file(&listed);
        let other = encode(&listed, &places(&listed), "that kernel").unwrap();
        let KernelFunctions::Read(table) = &listed.functions else { panic!("they were listed") };
        let second = blocks_of(&whole)[1].clone();
        let check = |bytes: Vec<u8>| {
            let cached = opened(bytes, &listed).unwrap();
            for (n, function) in table.functions[..300].iter().enumerate() {
                let around = cached.functions.around(function.start);
                let expected = table.around(function.start).filter(|_| !(128..256).contains(&n));
                assert_eq!(around.map(|around| around.name), expected.map(|around| around.name), "{n}");
            }
        };
        for damaged in second.clone().step_by(37) {
            let mut bytes = whole.clone();
            bytes[damaged] ^= 0x10;
            check(bytes);
        }
        let mut of_other = whole.clone();
        of_other[second].copy_from_slice(&other[blocks_of(&other)[1].clone()]);
        check(of_other);
    }

    #[test]
    fn a_foreign_or_partial_file_is_not_opened() {
        let listed = listed(300);
        let whole = file(&listed);
        assert!(opened(whole.clone(), &listed).is_some());
        assert!(open(&(Arc::new(whole.clone()) as SharedSource), &places(&listed), "another").is_none());
        for len in 0..whole.len() {
            assert!(opened(whole[..len].to_vec(), &listed).is_none(), "{len}");
        }
        assert!(opened([whole.as_slice(), &[0]].concat(), &listed).is_none());
        for damaged in 0..head_len(&whole) {
            let mut bytes = whole.clone();
            bytes[damaged] ^= 0x10;
            assert_eq!(count_functions(&bytes), None, "{damaged}");
            assert!(opened(bytes, &listed).is_none(), "{damaged}");
        }
    }

    #[test]
    fn nothing_that_is_sealed_panics() {
        let whole = file(&listed(131));
        let head = &whole[HEADER..head_len(&whole)];
        let blocks: Vec<_> = blocks_of(&whole).into_iter().map(|at| whole[at][8..].to_vec()).collect();
        assert!(sealed_kernel(head, &blocks) == whole);
        let all = (0..200_u64).map(|n| TEXT + 0x11 * n).chain([0, 0x11, 0x1000, u64::MAX]);
        let all: Vec<_> = all.collect();
        let read = |file: Vec<u8>| {
            let Some(cached) = read_kernel(file) else { return };
            let around = cached.modules.iter().flat_map(|module| [module.range.start.0, module.range.end.0]);
            for address in around.chain(all.iter().copied()) {
                let _ = cached.lookup(Avma(address));
            }
        };
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            for at in 0..head.len() {
                let mut damaged = head.to_vec();
                damaged[at] = value;
                read(sealed_kernel(&damaged, &blocks));
            }
            for at in 0..blocks[0].len() {
                let mut damaged = blocks.clone();
                damaged[0][at] = value;
                read(sealed_kernel(head, &damaged));
            }
        }
    }
}
