//! The counts of the marker reader.

/// The counts of the marker reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkerSummary {
    /// Markers that were read.
    pub markers: u64,
    /// Records that programs dropped because there was no room.
    pub lost: u64,
    /// Records and lines that could not be decoded.
    pub unreadable: u64,
    /// Files of processes that are unknown, or that belong to another user than the file.
    pub unknown_processes: u64,
    /// Text files that differ from the mapped ones, and that the program may lack the permission to read.
    pub refused: u64,
    /// Rings whose file was truncated, with all their later content.
    pub cut: u64,
    /// Whether the markers reached their memory limit, so that later ones were not read.
    pub is_full: bool,
}
