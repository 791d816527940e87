//! A symbol before it is a row of a table.

/// A function symbol that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct SymbolTableEntry {
    pub(super) start: u64,
    /// Where it ends, by its stated size, the next symbol and its section.
    pub(super) end: u64,
    /// The offset of the name in the strings.
    pub(super) name: u32,
    /// The quality of the name among those at the same address. The highest one is used.
    pub(super) rank: u8,
    /// Whether the symbol states its size.
    pub(super) is_sized: bool,
}
