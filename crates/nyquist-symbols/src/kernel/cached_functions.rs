//! The blocks of a file of cached functions. A block is read, and its checksum is checked, when one of its
//! functions is first needed.

use super::block_index::{BlockIndex, FUNCTION_LEN, PER_BLOCK, entry_parts};
use super::function_table::{FunctionTable, KernelFunction, NearestFunction};
use crate::cache::block_file::{CHECKSUM_LEN, FileBlocks};
use nyquist_object::Cursor;
use std::fmt;
use std::sync::OnceLock;

/// A function whose place is relative to the start of its module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedFunction<'a> {
    pub(crate) offset: u32,
    pub(crate) module: u16,
    pub(crate) name: &'a [u8],
}

/// The functions of a file, which are read when they are needed.
pub(crate) struct CachedFunctions {
    file: FileBlocks,
    /// The start of each module in memory.
    bases: Vec<u64>,
    /// By address.
    blocks: Vec<FunctionBlock>,
}

/// A block, as the index describes it.
struct FunctionBlock {
    /// Where its first function begins in memory, and the number of that function's module.
    first: (u64, u16),
    /// Its offset in the file, and its length.
    place: (u64, usize),
    functions: usize,
    /// Its contents, after they were first needed. `None` if it is damaged.
    table: OnceLock<Option<Box<FunctionTable>>>,
}

impl CachedFunctions {
    /// Opens the blocks of an index. `None` if they are not in order.
    pub(crate) fn open(file: FileBlocks, index: &BlockIndex<'_>, bases: Vec<u64>) -> Option<Self> {
        let (mut at, mut unseen) = (index.start, index.functions);
        let mut blocks = Vec::with_capacity(index.entries.len());
        for entry in index.entries {
            let (offset, module, len) = entry_parts(entry)?;
            let first = (bases.get(usize::from(module))?.checked_add(offset.into())?, module);
            let functions = unseen.min(PER_BLOCK);
            blocks.push(FunctionBlock { first, place: (at, len), functions, table: OnceLock::new() });
            at += len as u64;
            unseen -= functions;
        }
        let is_right = blocks.is_sorted_by(|one, next| one.first.0 < next.first.0);
        is_right.then_some(Self { file, bases, blocks })
    }

    /// The function at or before an address. `None` before the first function, and if the block is damaged.
    pub(crate) fn around(&self, address: u64) -> Option<NearestFunction<'_>> {
        let after = self.blocks.partition_point(|block| block.first.0 <= address);
        let around = self.table(after.checked_sub(1)?)?.around(address)?;
        let next = around.next.or_else(|| self.blocks.get(after).map(|block| block.first));
        Some(NearestFunction { next, ..around })
    }

    /// The functions of a block.
    fn table(&self, number: usize) -> Option<&FunctionTable> {
        let block = self.blocks.get(number)?;
        block.table.get_or_init(|| self.read(number, block).map(Box::new)).as_deref()
    }

    fn read(&self, number: usize, block: &FunctionBlock) -> Option<FunctionTable> {
        let bytes = self.file.read(number, block.place)?;
        let table = self.decode(bytes, block.functions)?;
        let end = self.blocks.get(number + 1).map_or(u64::MAX, |next| next.first.0);
        let (first, last) = (table.functions.first()?, table.functions.last()?);
        ((first.start, first.module) == block.first && last.start < end).then_some(table)
    }

    fn decode(&self, block: Vec<u8>, count: usize) -> Option<FunctionTable> {
        let mut name_at = CHECKSUM_LEN + count * FUNCTION_LEN;
        let mut functions = Vec::with_capacity(count);
        for bytes in block.get(CHECKSUM_LEN..name_at)?.as_chunks::<FUNCTION_LEN>().0 {
            let mut cursor = Cursor::new(bytes, 0, true);
            let (offset, len, module) = (cursor.u32()?, cursor.u16()?, cursor.u16()?);
            let start = self.bases.get(usize::from(module))?.checked_add(offset.into())?;
            functions.push(KernelFunction { start, name: (name_at as u32, len), module });
            name_at += usize::from(len);
        }
        let is_right = name_at == block.len() && functions.is_sorted_by(|one, next| one.start < next.start);
        is_right.then_some(FunctionTable { functions, names: block })
    }
}

impl fmt::Debug for CachedFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptFunctions({} blocks)", self.blocks.len())
    }
}

/// The contents of a block after its checksum. `None` if a name is too long. Adds the block to the index.
pub(crate) fn contents(functions: &[PlacedFunction<'_>], index: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut contents = Vec::new();
    for function in functions {
        contents.extend(function.offset.to_le_bytes());
        contents.extend(u16::try_from(function.name.len()).ok()?.to_le_bytes());
        contents.extend(function.module.to_le_bytes());
    }
    for function in functions {
        contents.extend(function.name);
    }
    let first = functions.first()?;
    index.extend(first.offset.to_le_bytes());
    index.extend(first.module.to_le_bytes());
    index.extend(u32::try_from(CHECKSUM_LEN + contents.len()).ok()?.to_le_bytes());
    Some(contents)
}
