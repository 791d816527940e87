//! A symbol before it is a row of a table.

/// A function symbol as it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) start: u64,
    /// Where it ends, by its stated size, the next symbol and its section.
    pub(super) end: u64,
    /// Where the name is in the strings.
    pub(super) name: u32,
    /// How good a name it is among those at the same address; the highest wins.
    pub(super) rank: u8,
    /// Whether the symbol states its size.
    pub(super) is_sized: bool,
}
