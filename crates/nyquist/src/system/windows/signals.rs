//! Requests to end, and what a recording is ended with.

pub(crate) use nyquist_record::windows::launch::Signaller;
pub(crate) use nyquist_record::windows::signals::{EndSignal, KILL, Request, Requests};
pub(crate) use nyquist_record::windows::{StopHandle, now};

use std::{io, thread};

/// Runs a program's work on a thread with a stack of this size.
pub(crate) fn on_own_stack<T: Send>(stack_bytes: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(stack_bytes).spawn_scoped(scope, work)?;
        worker.join().map_or_else(|panic| std::panic::resume_unwind(panic), Ok)
    })
}

/// The size of files is not limited here.
pub(crate) fn outlive_file_size_limit() {}
