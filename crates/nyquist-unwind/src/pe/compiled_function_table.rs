//! What the compilers of both architectures share: the place of the table of functions, and the result.

use crate::Damage;
use crate::rule_table::RuleTable;
use nyquist_object::pe::DataDirectory;
use nyquist_object::{ByteSource, Pe};
use std::ops::Range;

/// The compiled table of functions of an image.
#[derive(Debug)]
pub(crate) struct CompiledFunctionTable<F> {
    pub(crate) table: RuleTable,
    pub(crate) functions: F,
    /// The described ranges by address.
    pub(crate) covered: Vec<Range<u32>>,
}

impl<F> CompiledFunctionTable<F> {
    /// The same with other functions, which `change` makes of these.
    pub(super) fn map<T>(self, change: impl FnOnce(F) -> T) -> CompiledFunctionTable<T> {
        CompiledFunctionTable { table: self.table, functions: change(self.functions), covered: self.covered }
    }
}

/// The words of the table of functions.
pub(super) fn table_of_functions<S: ByteSource>(pe: &Pe<S>, damage: &mut Damage) -> Vec<u32> {
    let Some((address, size)) = pe.directory(DataDirectory::Exceptions) else { return Vec::new() };
    let room = pe.file_range(address).map_or(0, |(_, room)| room);
    let bytes = pe.read_at(address, size.min(room)).unwrap_or_else(|error| {
        damage.add(|| format!("the table of functions is unreadable: {error}"));
        Vec::new()
    });
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// The size of the code from its first to its last byte, limited to the size for which memory is reserved.
pub(super) fn extent(code: &[Range<u32>]) -> usize {
    let extent =
        code.first().zip(code.last()).map_or(0, |(first, last)| last.end.saturating_sub(first.start));
    extent.min(1 << 28) as usize
}
