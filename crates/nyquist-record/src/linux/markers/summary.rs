//! What was counted while markers were read.

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Markers that were read.
    pub markers: u64,
    /// Records for which the programs had no room.
    pub lost: u64,
    /// Records and lines that could not be understood.
    pub unreadable: u64,
    /// Files of processes that are not known, or of another user than the file.
    pub unknown_processes: u64,
    /// Text files that are not those that were mapped, and that the program may not be able to read.
    pub refused: u64,
    /// Rings, or all that would have followed, whose file has become shorter.
    pub cut: u64,
    /// Whether the markers took all memory that they may take, and later ones were not read.
    pub is_full: bool,
}
