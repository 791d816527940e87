//! What a caller receives while a file is read, so that it can show progress and messages at once.

use crate::note::Note;
use nyquist_convert::{Progress, SymbolicatedProfile};
use nyquist_symbols::Finder;
use std::sync::Arc;

/// Is notified of what happens while a file is read. All methods are called on the thread that reads, one after
/// another.
pub trait ReadObserver {
    /// Something that the user should know.
    fn note(&self, note: Note);

    /// So many bytes were read of all that will be read of a trace. A trace is read twice.
    fn bytes_read(&self, done: u64, total: u64) {
        let _ = (done, total);
    }

    /// No more of the trace will be read.
    fn reading_ended(&self) {}

    /// Names are looked up from now on. `progress` says how far this is.
    fn lookup_began(&self, progress: &Arc<Progress>) {
        let _ = progress;
    }

    /// The look-up ended: these are the names, and the places where the finder has searched for them.
    fn lookup_ended(&self, symbolicated: &SymbolicatedProfile, finder: &Finder) {
        let _ = (symbolicated, finder);
    }
}
