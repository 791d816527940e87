//! The processes and threads of the machine, as the system lists them.
//!
//! The records are those of `SYSTEM_PROCESS_INFORMATION` and `SYSTEM_THREAD_INFORMATION` of 64-bit systems.

use crate::suspend::system::{ListedProcess, ListedThread};

use super::sys::snapshot;

/// The size of a process's record, after which those of its threads come.
const PROCESS: usize = 256;
/// The size of a thread's record.
const THREAD: usize = 80;
/// The states of a thread that has or awaits a CPU (`KTHREAD_STATE`: ready, running, standby, deferred ready).
const ACTIVE_STATES: [u32; 4] = [1, 2, 3, 7];

/// One look at all processes and threads. Its memory is used again by the next look.
#[derive(Debug, Default)]
pub(crate) struct ProcessListing {
    buffer: Vec<u8>,
    len: usize,
}

/// The record of a process.
#[derive(Clone, Copy)]
struct ProcessRecord<'a> {
    /// The whole listing, and where the record begins in it.
    all: &'a [u8],
    at: usize,
}

impl ProcessListing {
    /// Looks at all processes and threads. Returns whether that was possible.
    pub(crate) fn refresh(&mut self) -> bool {
        self.len = snapshot::read(&mut self.buffer);
        self.len > 0
    }

    /// All processes.
    pub(crate) fn processes(&self) -> impl Iterator<Item = ListedProcess> {
        let processes = self.records().filter_map(ProcessRecord::process);
        // The idle process has the number 0.
        processes.filter(|process| process.pid != 0)
    }

    /// The threads of a process.
    pub(crate) fn threads(&self, pid: u32) -> impl Iterator<Item = ListedThread> {
        let record = self.records().find(|record| record.process().is_some_and(|it| it.pid == pid));
        record.into_iter().flat_map(ProcessRecord::threads)
    }

    /// The processes and the names of their programs' files.
    pub(crate) fn names(&self) -> impl Iterator<Item = (u32, String)> {
        let buffer = self.buffer.as_ptr().addr();
        self.records().filter_map(move |record| Some((record.process()?.pid, record.name(buffer)?)))
    }

    fn records(&self) -> impl Iterator<Item = ProcessRecord<'_>> {
        let all = self.buffer.get(..self.len).unwrap_or_default();
        let mut next = (!all.is_empty()).then_some(0);
        std::iter::from_fn(move || {
            let record = ProcessRecord { all, at: next? };
            let step = record.u32(0).unwrap_or_default() as usize;
            next = (step > 0).then(|| record.at.saturating_add(step)).filter(|at| *at < all.len());
            Some(record)
        })
    }
}

impl<'a> ProcessRecord<'a> {
    fn bytes<const N: usize>(self, offset: usize) -> Option<[u8; N]> {
        self.all.get(self.at.checked_add(offset)?..)?.first_chunk().copied()
    }

    fn u16(self, offset: usize) -> Option<u16> {
        self.bytes(offset).map(u16::from_le_bytes)
    }

    fn u32(self, offset: usize) -> Option<u32> {
        self.bytes(offset).map(u32::from_le_bytes)
    }

    fn u64(self, offset: usize) -> Option<u64> {
        self.bytes(offset).map(u64::from_le_bytes)
    }

    fn process(self) -> Option<ListedProcess> {
        Some(ListedProcess {
            began: self.u64(32)?,
            pid: u32::try_from(self.u64(80)?).ok()?,
            parent: u32::try_from(self.u64(88)?).unwrap_or_default(),
        })
    }

    /// The threads, as many as the listing has room for.
    fn threads(self) -> impl Iterator<Item = ListedThread> + use<'a> {
        let count = self.u32(4).unwrap_or_default() as usize;
        (0..count).map_while(move |index| self.thread(PROCESS + index * THREAD))
    }

    fn thread(self, at: usize) -> Option<ListedThread> {
        let (switches, state) = (self.u32(at + 64)?, self.u32(at + 68)?);
        Some(ListedThread {
            tid: u32::try_from(self.u64(at + 48)?).ok()?,
            began: self.u64(at + 16)?,
            turns: switches,
            is_active: ACTIVE_STATES.contains(&state),
        })
    }

    /// The name of the program's file. It is in the listing, at an address that `buffer` is the base of.
    fn name(self, buffer: usize) -> Option<String> {
        let len = usize::from(self.u16(56)?);
        let at = usize::try_from(self.u64(64)?).ok()?.checked_sub(buffer)?;
        let bytes = self.all.get(at..at.checked_add(len)?)?;
        let units: Vec<u16> = bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
        Some(String::from_utf16_lossy(&units))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_and_its_threads_are_listed() {
        let mut listing = ProcessListing::default();
        assert!(listing.refresh());
        let pid = std::process::id();
        let own = listing.processes().find(|process| process.pid == pid).unwrap();
        // The parent has the number 0 if Wine was started by a program of Linux.
        assert!(own.began != 0, "{own:?}");
        assert!(listing.threads(pid).count() >= 2, "the main thread, and that of the test");
        let name = listing.names().find(|(other, _)| *other == pid).unwrap().1;
        assert_eq!(Some(name.as_str()), std::env::current_exe().unwrap().file_name().unwrap().to_str());
    }

    #[test]
    fn a_damaged_listing_ends_early() {
        let mut listing = ProcessListing::default();
        listing.refresh();
        for len in [0, 3, 100, PROCESS, PROCESS + 50] {
            let cut = ProcessListing { buffer: listing.buffer[..len].to_vec(), len };
            let _ = (cut.processes().count(), cut.names().count(), cut.threads(4).count());
        }
        let endless = ProcessListing { buffer: [8, 0, 0, 0].repeat(1000), len: 4000 };
        assert!(endless.processes().count() < 1000);
    }
}
